"""Commands about people: who there is, how they sign in, and whether they have to."""

from pathlib import Path

import click

from calibration.cli.stores import open_to_read, open_to_write
from calibration.cli.terminal import print_json, print_lines, with_json, with_store
from calibration.errors import InputError
from calibration.records import ROLES, Reviewer
from calibration.store import IDENTITIES, Store, generated_passphrase, reviewer_id_of


@click.command()
@click.argument("name")
@click.option("--role", type=click.Choice(ROLES), help="What they may; new people: reviewer.")
@with_store
@with_json
def reviewer(name: str, role: str | None, path: Path, as_data: bool) -> None:
    """Add a reviewer, a lead or an admin; give somebody another role.

    \b
    asr reviewer "Mara Lind"
    asr reviewer "Mara Lind" --role lead
    """
    with open_to_write(path) as store:
        person = store.add_reviewer(name, role=role or "reviewer")
        if role is not None and person.role != role:
            person = store.set_role(person.reviewer_id, role)
    if as_data:
        print_json({"reviewer_id": person.reviewer_id, "name": person.name, "role": person.role})
    else:
        print_lines([f"{person.name} ({person.role}) can label as {person.reviewer_id!r}"])


@click.command()
@click.argument("name")
@click.option("--generate", is_flag=True, help="Make one up and print it, once.")
@with_store
def passphrase(name: str, generate: bool, path: Path) -> None:
    """Give somebody a passphrase to sign in with; it is asked for, never an argument.

    \b
    asr passphrase "Mara Lind"
    """
    with open_to_write(path) as store:
        person = _known(store, name)
        chosen = generated_passphrase() if generate else _asked(person)
        store.set_passphrase(person.reviewer_id, chosen)
        asked_for = store.identities() == "passphrase"
    said = [f"{person.name} ({person.role}) has a new passphrase; sessions they had have ended"]
    said += [chosen] if generate else []
    if not asked_for:
        said.append("identities are open here, so nobody is asked: `asr identities passphrase`")
    print_lines(said)


def _known(store: Store, name: str) -> Reviewer:
    wanted = reviewer_id_of(name)
    found = next((r for r in store.reviewers() if r.reviewer_id == wanted), None)
    if found is None:
        raise InputError(f"there is nobody called {name!r}; `asr reviewer NAME` adds people")
    return found


def _asked(person: Reviewer) -> str:
    asked: str = click.prompt(
        f"Passphrase of {person.name} (12 characters or more)",
        hide_input=True,
        confirmation_prompt="Once more",
        err=True,
    )
    return asked


@click.command()
@click.argument("wanted", required=False, type=click.Choice(IDENTITIES))
@with_store
def identities(wanted: str | None, path: Path) -> None:
    """Show or choose how people say who they are: pick a name, or sign in with a passphrase.

    \b
    asr identities
    asr identities passphrase
    """
    if wanted is None:
        with open_to_read(path) as store:
            print_lines([store.identities()])
        return
    with open_to_write(path) as store:
        store.set_identities(wanted)
        print_lines([f"identities are {store.identities()}"])


COMMANDS = (reviewer, passphrase, identities)
