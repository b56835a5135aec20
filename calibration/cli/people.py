"""Commands for people: roles, sign-in and certificates."""

from pathlib import Path

import click

from calibration.cli.terminal import (
    Group,
    open_to_read,
    open_to_write,
    print_json,
    print_lines,
    with_json,
    with_store,
)
from calibration.errors import InputError
from calibration.records import ROLES, Reviewer
from calibration.serving import role_claim
from calibration.store import IDENTITIES, Store, generated_passphrase, reviewer_id_of
from calibration.store.leases import CertificateDemand


@click.group(cls=Group)
def people() -> None:
    """Add people, give them a role, and let them sign in."""


@people.command()
@click.argument("name")
@click.option(
    "--role", type=click.Choice(ROLES), help="Give this role; new people are reviewers without it."
)
@click.option("--email", help="Link them to this verified address at the identity provider.")
@click.option("--subject", help="Link them to this subject (`sub`) there, in place of --email.")
@with_store
@with_json
def add(
    name: str, role: str | None, email: str | None, subject: str | None, path: Path, as_data: bool
) -> None:
    """Add a reviewer, a lead or an admin; change a role; link somebody to the identity provider.

    \b
    asr people add "Mara Lind"
    asr people add "Mara Lind" --role lead
    asr people add "Mara Lind" --email mara@example.org
    """
    if email is not None and subject is not None:
        raise InputError("name either --email or --subject")
    with open_to_write(path) as store:
        person = store.add_reviewer(name, role=role or "reviewer")
        if role is not None and person.role != role:
            person = store.set_role(person.reviewer_id, role)
        if email is not None or subject is not None:
            store.link(person.reviewer_id, email=email, subject=subject)
    if as_data:
        print_json({"reviewer_id": person.reviewer_id, "name": person.name, "role": person.role})
    else:
        print_lines([f"{person.name} ({person.role}) can label as {person.reviewer_id!r}"])
        if email is not None or subject is not None:
            print_lines([f"linked to {email or subject}; sessions they had have ended"])


@people.command()
@click.argument("name")
@click.option("--generate", is_flag=True, help="Generate a passphrase and print it once.")
@with_store
def passphrase(name: str, generate: bool, path: Path) -> None:
    """Give somebody a passphrase, typed at a prompt or generated.

    \b
    asr people passphrase "Mara Lind"
    """
    with open_to_write(path) as store:
        person = _known(store, name)
        chosen = generated_passphrase() if generate else _asked(person)
        store.set_passphrase(person.reviewer_id, chosen)
        now = store.identities()
    lines = [f"{person.name} ({person.role}) has a new passphrase; sessions they had have ended"]
    lines += [chosen] if generate else []
    if now != "passphrase":
        lines.append(
            f"identities are {now} here, so nobody is asked: `asr people sign-in passphrase`"
        )
    print_lines(lines)


def _known(store: Store, name: str) -> Reviewer:
    wanted = reviewer_id_of(name)
    found = next((r for r in store.reviewers() if r.reviewer_id == wanted), None)
    if found is None:
        raise InputError(f"there is nobody called {name!r}; `asr people add NAME` adds them")
    return found


def _asked(person: Reviewer) -> str:
    asked: str = click.prompt(
        f"Passphrase of {person.name} (12 characters or more)",
        hide_input=True,
        confirmation_prompt="Once more",
        err=True,
    )
    return asked


@people.command("sign-in")
@click.argument("wanted", required=False, type=click.Choice(IDENTITIES))
@with_store
def identities(wanted: str | None, path: Path) -> None:
    """Show or choose how people sign in: by name alone, by passphrase or by a provider.

    \b
    asr people sign-in
    asr people sign-in passphrase
    asr people sign-in oidc
    """
    if wanted is None:
        with open_to_read(path) as store:
            print_lines([store.identities()])
        return
    claim = role_claim() if wanted == "oidc" else None
    with open_to_write(path) as store:
        store.set_identities(
            wanted, admins_by_claim=None if claim is None else bool(claim.values["admin"])
        )
        print_lines([f"identities are {store.identities()}"])


HOLDER = "command line"


@click.group(cls=Group)
def certify() -> None:
    """List certificates of reviewers, and say which work requires one."""


@certify.command("list")
@with_store
@with_json
def list_(path: Path, as_data: bool) -> None:
    """List every certificate, past ones among them, oldest first.

    \b
    asr certify list
    asr certify list --json
    """
    with open_to_read(path) as store:
        found = store.certificates()
        names = {r.reviewer_id: r.name for r in store.reviewers()}
    if as_data:
        print_json(
            [
                {
                    "reviewer_id": c.reviewer_id,
                    "taxonomy_version": c.taxonomy_version,
                    "form": c.form,
                    "private": c.private,
                    "simulated": c.simulated,
                    "issued_at": c.issued_at.isoformat(),
                    "expires_at": c.expires_at.isoformat(),
                }
                for c in found
            ]
        )
        return
    if not found:
        print_lines(["nobody is certified yet; the Certificate page of the app examines"])
    print_lines(
        f"{names[c.reviewer_id]}: {'private' if c.private else 'public'} form {c.form}, tree "
        f"{c.taxonomy_version}, {c.issued_at:%Y-%m-%d} to {c.expires_at:%Y-%m-%d}"
        f"{' (simulated)' if c.simulated else ''}"
        for c in found
    )


@certify.command()
@click.option(
    "--form",
    type=click.Choice(["any", "private"]),
    default="any",
    show_default=True,
    help="Accept a certificate on any form, or on a private form only.",
)
@click.option(
    "--every-batch", is_flag=True, help="Require a certificate in every production batch."
)
@with_store
def demand(form: str, every_batch: bool, path: Path) -> None:
    """Say which certificate this store requires; each call replaces the one before.

    \b
    asr certify demand --form private
    asr certify demand --every-batch
    asr certify demand --form any
    """
    with open_to_write(path) as store:
        store.set_certificate_demand(
            CertificateDemand(form=form, every_batch=every_batch), by=HOLDER
        )
    where = "every production batch asks" if every_batch else "batches that say so ask"
    kind = "one on a private form" if form == "private" else "one on any form"
    print_lines([f"{where} for a certificate: {kind}"])
