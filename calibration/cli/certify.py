"""Commands on certificates: who has one, and what the store asks for."""

from pathlib import Path

import click

from calibration.cli.stores import open_to_read, open_to_write
from calibration.cli.terminal import print_json, print_lines, with_json, with_store
from calibration.store.leases import CertificateDemand

HOLDER = "command line"


@click.group()
def certify() -> None:
    """See who is certified, and say where that is asked for."""


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
    help="Which forms do, wherever a certificate is asked for.",
)
@click.option("--every-batch", is_flag=True, help="Ask for one in every production batch.")
@with_store
def demand(form: str, every_batch: bool, path: Path) -> None:
    """Say what certificate this store asks for; each call replaces what was said before.

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


COMMANDS = (certify,)
