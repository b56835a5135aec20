"""Common parts of all commands: options, opening a store, printing."""

import functools
import getpass
import json
import sys
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from calibration.errors import InputError, StoreLockedError
from calibration.store import RemoteStore, Store
from calibration.taxonomy import Taxonomy
from calibration.text import visible

if TYPE_CHECKING:
    from calibration.reporting.document import Document

EXISTING = click.Path(path_type=Path)
PAGE_BEGINS = b"<!DOCTYPE html"
Command = Callable[..., Any]


def with_store(command: Command) -> Command:
    """Add --store."""
    return click.option(
        "--store",
        "path",
        type=EXISTING,
        envvar="ASR_STORE",
        default=Path("asr.duckdb"),
        show_default="asr.duckdb",
        show_envvar=True,
        help="The store file.",
    )(command)


def with_batch(command: Command) -> Command:
    """Add --batch."""
    return click.option("--batch", "batch_id", help="Batch to use; default: the newest one.")(
        command
    )


def with_json(command: Command) -> Command:
    """Add --json."""
    return click.option("--json", "as_data", is_flag=True, help="Print JSON.")(command)


def _no_other_file(
    _context: click.Context, _option: click.Parameter, page: Path | None
) -> Path | None:
    """Refuse to overwrite a file that is no page: an input, or the store itself."""
    if page is not None and page.is_file() and page.stat().st_size:
        with page.open("rb") as file:
            if not file.read(len(PAGE_BEGINS)).startswith(PAGE_BEGINS):
                raise InputError(f"--html {page}: is there and no HTML page; name another file")
    return page


def with_output(command: Command) -> Command:
    """Add --json, --markdown and --html, which `print_result` answers."""
    for option in (
        click.option(
            "--html",
            "page",
            type=EXISTING,
            callback=_no_other_file,
            help="Write one self-contained HTML file.",
        ),
        click.option("--markdown", "as_markdown", is_flag=True, help="Print Markdown."),
        with_json,
    ):
        command = option(command)
    return command


def with_estimand(command: Command) -> Command:
    """Add --estimand; its value is a name of `Estimand`."""
    option: Callable[[Command], Command] = click.option(
        "--estimand",
        type=click.Choice(["process", "these-runs"]),
        default="process",
        show_default=True,
        callback=lambda _context, _option, value: value.replace("-", "_"),
        help="The rate of runs like these, or of these runs themselves.",
    )
    return option(command)


def with_judge(command: Command) -> Command:
    """Add --judge and --design."""

    @click.option("--judge", "judge_id", help="Judge to use; `source:` pools the files' grades.")
    @click.option(
        "--design",
        type=click.Choice(["production", "reference"]),
        default="production",
        show_default=True,
        help="What the labelled traces are: a random sample of production, or reference only.",
    )
    @functools.wraps(command)
    def wrapped(*args: Any, **kwargs: Any) -> Any:
        return command(*args, **kwargs)

    return wrapped


def print_result(
    result: Any,
    document: Callable[[Any], "Document"],
    as_data: bool,
    as_markdown: bool,
    page: Path | None,
) -> None:
    """Print or write a result in the form that was asked for; text unless another was."""
    from calibration.reporting.document import markdown, text_lines

    if page is not None:
        from calibration.reporting.render_html import html

        page.write_text(html(document(result)), encoding="utf-8")
        click.echo(f"wrote {page}", err=True)
    if as_data:
        # JSON imports every analysis; text needs none of them.
        from calibration.reporting import to_json

        print_json(to_json.data(result))
    elif as_markdown:
        print_lines(markdown(document(result)).splitlines())
    elif page is None:
        print_lines(text_lines(document(result)))


def print_json(data: Any) -> None:
    """Print data as JSON in full precision; NaN is an error."""
    shown = json.dumps(data, indent=2, ensure_ascii=False, allow_nan=False)
    try:
        shown.encode(_encoding())
    except UnicodeEncodeError:  # a file name that is no text, or a terminal without Unicode
        shown = json.dumps(data, indent=2, allow_nan=False)
    click.echo(shown)


def print_lines(lines: Iterable[str]) -> None:
    """Print lines, with control and unprintable characters spelled out."""
    for line in lines:
        shown = visible(line).encode(_encoding(), "backslashreplace")
        click.echo(shown.decode(_encoding()))


def print_error(message: str) -> None:
    """Print an error as one sentence to standard error."""
    click.echo(f"error: {visible(message)}", err=True)


def _encoding() -> str:
    return getattr(sys.stdout, "encoding", None) or "utf-8"


def open_to_read(path: Path) -> Store:
    """Open a store for reading; print a note when the answer comes from a snapshot."""
    store, age = Store.open_to_read(path)
    if age is not None:
        click.echo(f"note: the app holds {path}; read from its snapshot, {age:.0f} s old", err=True)
    return store


def open_to_write(path: Path, *, create: bool = False, taxonomy: Taxonomy | None = None) -> Store:
    """Open a store for writing; while the app holds it, the app makes the change."""
    try:
        return Store.open(path, create=create, taxonomy=taxonomy).by_way_of(origin())
    except StoreLockedError as locked:
        remote = RemoteStore(path, locked, waiting=_tell).by_way_of(origin())
        if taxonomy is not None:
            remote.set_taxonomy(taxonomy)
        return remote


def origin() -> str:
    """Return the command that runs, and as whom, for the audit trail."""
    context = click.get_current_context(silent=True)
    words = "asr" if context is None else " ".join(["asr", *context.command_path.split()[1:]])
    try:
        return f"{words} (as {getpass.getuser()})"
    except (KeyError, OSError):  # a user without a name, as in some containers
        return words


def _tell(seconds: float) -> None:
    if seconds > 2:
        click.echo(f"handed over to the app, waiting ({seconds:.0f} s) ...", err=True)
