"""Commands that become the server process of the app."""

import os
import socket
import sys
import tempfile
from functools import partial
from importlib.resources import files
from pathlib import Path

import click

from calibration.analyses import demo as demonstration
from calibration.cli.terminal import (
    EXISTING,
    Command,
    Output,
    origin,
    print_result,
    with_full,
    with_json,
    with_store,
)
from calibration.errors import InputError
from calibration.reporting.sections import success_rate
from calibration.serving import (
    PUBLIC_ORIGIN,
    TRUSTED_PROXIES,
    check_proxies,
    lets_others_in,
    parsed_public_origin,
)
from calibration.store import Store

NO_SIGN_IN = (
    "first `asr people add NAME --role admin`, `asr people passphrase NAME` and "
    "`asr people sign-in passphrase`"
)

PORT = click.IntRange(1, 65535)


def with_address(command: Command) -> Command:
    """Add --port and --host."""
    for option in (
        click.option(
            "--host", default="127.0.0.1", show_default=True, help="Listen on this address."
        ),
        click.option(
            "--port", type=PORT, default=8501, show_default=True, help="Listen on this port."
        ),
    ):
        command = option(command)
    return command


@click.command()
@with_store
@with_address
@click.option(
    "--public-origin",
    envvar=PUBLIC_ORIGIN,
    help="Name the origin at which a proxy shows the app, such as https://asr.example.org; pages "
    "of any other origin are refused.",
)
@click.option(
    "--trusted-proxy",
    "proxies",
    multiple=True,
    help="Trust X-Forwarded-For and X-Forwarded-Proto from a proxy at this address or network; "
    "without it, of this machine (or FORWARDED_ALLOW_IPS).",
)
@click.option(
    "--log-format",
    type=click.Choice(["text", "json"]),
    envvar="ASR_LOG_FORMAT",
    default="text",
    show_default=True,
    help="Write the log for people, or as JSON.",
)
def serve(
    path: Path,
    port: int,
    host: str,
    public_origin: str | None,
    proxies: tuple[str, ...],
    log_format: str,
) -> None:
    """Serve the app on a store.

    \b
    asr serve --store asr.duckdb
    asr serve --public-origin https://asr.example.org
    """
    if proxies:
        check_proxies(",".join(proxies))
        os.environ[TRUSTED_PROXIES] = ",".join(proxies)
    os.environ["ASR_LOG_FORMAT"] = log_format
    _serve(path, port, host, public_origin)


@click.command()
@click.option(
    "--store", "path", type=EXISTING, help="Build it here; without it, in asr-demo.duckdb."
)
@with_address
@click.option(
    "--seed", type=int, default=1, show_default=True, help="Set the seed of the simulation."
)
@click.option(
    "--lenient-reviewer",
    "lenient",
    is_flag=True,
    help="Let one of three reviewers call 30 % of the partly correct runs complete.",
)
@click.option("--no-serve", is_flag=True, help="Build the store, report on it and exit.")
@with_full
@with_json
def demo(
    path: Path | None,
    port: int,
    host: str,
    seed: int,
    lenient: bool,
    no_serve: bool,
    as_data: bool,
    full: bool,
) -> None:
    """Build a store of simulated data with known truth, and serve the app on it.

    \b
    asr demo
    asr demo --no-serve --json --seed 3
    asr demo --no-serve --lenient-reviewer
    """
    output = Output(full=full, as_data=as_data)
    if not no_serve:
        path = path or Path("asr-demo.duckdb")
        _check_host(path, host, None)
        if not path.exists() or _is_empty_demo(path):
            click.echo("Building the demo (simulated data) ...", err=True)
            _demo_report(path, seed, lenient, output, then="")
        _serve(path, port, host)
        return
    if path is not None:
        _demo_report(path, seed, lenient, output)
        return
    with tempfile.TemporaryDirectory() as folder:
        _demo_report(Path(folder) / "demo.duckdb", seed, lenient, output)


def _is_empty_demo(path: Path) -> bool:
    with Store.open(path) as store:
        return demonstration.needs_building(store)


def _demo_report(path: Path, seed: int, lenient: bool, output: Output, then: str = "demo") -> None:
    with Store.open(path, create=True).by_way_of(origin()) as store:
        result = demonstration.run_demo(store, seed=seed, lenient=lenient)
    print_result(result, partial(success_rate.demo_document, then=then), output)


def _check_host(path: Path, host: str, public_origin: str | None) -> None:
    """Refuse access from other machines before sign-in is configured."""
    public = parsed_public_origin(public_origin) if public_origin else None
    configured = False
    if path.exists():
        with Store.open(path) as store:  # its errors are told here, not in a browser
            configured = store.sign_in_is_configured()
    opened = lets_others_in(host, public)
    if opened and not configured:
        raise InputError(
            f"{opened} lets other machines in, and sign-in is not configured: {NO_SIGN_IN}; "
            "or leave the option out"
        )


def _serve(path: Path, port: int, host: str, public_origin: str | None = None) -> None:
    """Become the server process, so that a signal to this one reaches it."""
    _check_host(path, host, public_origin)
    if not path.exists():
        click.echo(f"{path}: there is no store yet; the Set up page makes one", err=True)
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((host, port))
        except (OSError, UnicodeError) as error:  # no such host name is one or the other
            why = f"port {port} on {host!r} cannot be used ({error})"
            raise InputError(f"{why}; choose another --port or --host") from error
    os.environ["ASR_STORE"] = str(path.resolve())
    os.environ[PUBLIC_ORIGIN] = public_origin or ""
    command = [sys.executable, "-m", "streamlit", "run", str(files("app").joinpath("asgi.py"))]
    os.execv(sys.executable, [*command, f"--server.port={port}", f"--server.address={host}"])
