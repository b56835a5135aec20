"""Common parts of all commands: options, opening a store, printing."""

import functools
import json
import math
import shlex
import sys
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, fields
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
from click.core import ParameterSource

from calibration.errors import InputError, LeftOutError, StoreLockedError
from calibration.text import visible

if TYPE_CHECKING:
    from calibration.analyses.trace_files import FilesProgress
    from calibration.reporting.document import Document
    from calibration.store import Store
    from calibration.taxonomy import Taxonomy

EXISTING = click.Path(path_type=Path)


class _Rubric(click.ParamType[Path]):
    """A taxonomy file, or the name of a rubric that comes with the package."""

    name = "rubric"

    def get_metavar(self, param: click.Parameter, ctx: click.Context) -> str:
        return "FILE|NAME"

    def convert(self, value: Any, param: Any, ctx: Any) -> Path:
        from calibration.taxonomy import ready_rubrics

        return ready_rubrics().get(str(value), Path(value))


RUBRIC = _Rubric()
# Longer than any sentence.
WHOLE = 1_000
PAGE_BEGINS = b"<!DOCTYPE html"
MOST_SAID = 1_200
USE_JUDGE = "Use the verdicts of this judge; `source:` means the grades that came with the traces."
DESIGN = (
    "Say what the labelled traces are: a random sample of production, or the reference set only."
)
Command = Callable[..., Any]


class Group(click.Group):
    """Commands listed in sections, each with the first sentence of its help."""

    sections: Mapping[str, Sequence[str]] | None = None
    sentences: Mapping[str, str] = {}  # known without loading the command

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the commands; click would cut their sentences."""
        listed = self.sections or {"Commands": self.list_commands(ctx)}
        for title, names in listed.items():
            with formatter.section(title):
                formatter.write_dl([(name, self.sentence(ctx, name)) for name in names])

    def sentence(self, ctx: click.Context, name: str) -> str:
        """Return the first sentence of the help of a command."""
        if name in self.sentences:
            return self.sentences[name]
        command = self.get_command(ctx, name)
        return "" if command is None else command.get_short_help_str(WHOLE)


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
        help="Use this store file.",
    )(command)


def with_batch(command: Command) -> Command:
    """Add --batch, for what `choose_batch` and `pooled_id` take."""
    return click.option(
        "--batch",
        "batch_id",
        help="Use this batch; without it, the newest random sample: the newest one that has "
        "labels, where labels are read, and for rates and exports the earlier ones with it.",
    )(command)


def with_json(command: Command) -> Command:
    """Add --json."""
    return click.option("--json", "as_data", is_flag=True, help="Print everything as JSON.")(
        command
    )


def _no_other_file(
    _context: click.Context, _option: click.Parameter, page: Path | None
) -> Path | None:
    """Refuse to overwrite a file that is no page: an input, or the store itself."""
    if page is not None and page.is_file() and page.stat().st_size:
        with page.open("rb") as file:
            if not file.read(len(PAGE_BEGINS)).startswith(PAGE_BEGINS):
                raise InputError(
                    f"--html {page}: exists and is not an HTML page; name another file"
                )
    return page


@dataclass(frozen=True, slots=True, kw_only=True)
class Output:
    """The form that was asked for; without one, the short text."""

    full: bool = False
    as_data: bool = False
    as_markdown: bool = False
    page: Path | None = None


class FiniteRange(click.FloatRange):
    """A range of numbers; NaN, which passes any comparison, and infinity are no numbers."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """Return the number, or refuse it."""
        found = super().convert(value, param, ctx)
        if not math.isfinite(found):
            self.fail(f"must be a number, got {value}", param, ctx)
        return found


def with_output(command: Command) -> Command:
    """Add --full, --json, --markdown and --html; the command receives them as `output`."""

    @functools.wraps(command)
    def wrapped(*args: Any, **kwargs: Any) -> Any:
        output = Output(**{of.name: kwargs.pop(of.name) for of in fields(Output)})
        try:
            return command(*args, output=output, **kwargs)
        except LeftOutError as error:
            if output.as_data:
                from calibration.reporting.to_json import withheld

                print_json(withheld(error))
            raise

    made: Command = wrapped
    for option in (
        click.option(
            "--html",
            "page",
            type=EXISTING,
            callback=_no_other_file,
            help="Write the whole report to this HTML file.",
        ),
        click.option(
            "--markdown", "as_markdown", is_flag=True, help="Print the whole report as Markdown."
        ),
        with_json,
        with_full,
    ):
        made = option(made)
    return made


def with_full(command: Command) -> Command:
    """Add --full."""
    return click.option("--full", is_flag=True, help="Print the whole report as text.")(command)


def with_seed(command: Command) -> Command:
    """Add --seed."""
    return click.option(
        "--seed",
        type=click.IntRange(0),
        default=0,
        show_default=True,
        help="Set the seed of the random numbers.",
    )(command)


def with_confidence(command: Command) -> Command:
    """Add --confidence."""
    return click.option(
        "--confidence",
        type=FiniteRange(0, 1, min_open=True, max_open=True),
        default=0.95,
        show_default=True,
        help="Set the confidence level of the intervals.",
    )(command)


def with_estimand(command: Command) -> Command:
    """Add --estimand; its value is a name of `Estimand`."""
    option: Callable[[Command], Command] = click.option(
        "--estimand",
        type=click.Choice(["process", "these-runs"]),
        default="process",
        show_default=True,
        callback=lambda _context, _option, value: value.replace("-", "_"),
        help="Give the rate of runs like these (process), or of these runs themselves.",
    )
    return option(command)


def with_judge(command: Command) -> Command:
    """Add --judge and --design."""

    @click.option("--judge", "judge_id", help=USE_JUDGE)
    @click.option(
        "--design",
        type=click.Choice(["production", "reference"]),
        default="production",
        show_default=True,
        help=DESIGN,
    )
    @functools.wraps(command)
    def wrapped(*args: Any, **kwargs: Any) -> Any:
        return command(*args, **kwargs)

    return wrapped


def with_given(command: Command) -> Command:
    """Add --as-given."""
    return click.option(
        "--as-given",
        is_flag=True,
        help="Take the outcomes of the judge source:... as given, though there are labels.",
    )(command)


def refuse_given(names: Iterable[str], whose: str) -> None:
    """Refuse options on the command line that are for something else, in words.

    `names` are those of the parameters of the command. An option that repeats its default is
    refused too; a variable of the environment is not, for it goes for all commands.
    """
    context, unused = click.get_current_context(), set(names)
    for parameter in context.command.params:
        name = parameter.name or ""
        if name in unused and context.get_parameter_source(name) is ParameterSource.COMMANDLINE:
            raise InputError(f"{max(parameter.opts, key=len)} is for {whose}")


def whole_numbers(option: str, given: str) -> tuple[int, ...]:
    """Return the whole numbers of an option, sorted and once each."""
    try:
        found = {int(word) for word in given.split(",")}
    except ValueError as error:
        raise InputError(
            f"{option} must be whole numbers separated by commas, got {given!r:.80}"
        ) from error
    return tuple(sorted(found))


def print_result(result: Any, document: Callable[[Any], "Document"], output: Output) -> None:
    """Print or write a result in the form that was asked for; short text unless another was."""
    from calibration.reporting.document import markdown

    if output.page is not None:
        from calibration.reporting.render_html import html

        output.page.write_text(html(document(result)), encoding="utf-8")
        click.echo(f"wrote {output.page}", err=True)
    if output.as_data:
        # JSON imports every analysis; text needs none of them.
        from calibration.reporting import to_json

        for line in document(result).reading:
            click.echo(visible(line), err=True)
        print_json(to_json.data(result))
    elif output.as_markdown:
        print_lines(markdown(document(result)).splitlines())
    else:
        print_document(document(result), full=output.full)


def print_document(document: "Document", *, full: bool) -> None:
    """Print the answer of a document, or all of it, and the command that comes next."""
    from calibration.reporting.document import brief_lines, text_lines

    if full or document.brief is None:
        print_lines(text_lines(document))
    else:
        print_lines(brief_lines(document))
        print_lines(["", "All figures: the same command with --full"])
    if document.then:
        print_next(document.then, apart=full or document.brief is None)


def print_next(words: str, *, apart: bool = True) -> None:
    """Print the command that comes next, on the same store."""
    context = click.get_current_context()
    if context.get_parameter_source("path") is ParameterSource.COMMANDLINE:
        words += f" --store {shlex.quote(str(context.params['path']))}"
    print_lines([*([""] if apart else []), f"Next: asr {words}"])


@contextmanager
def working(line: Callable[[float], str | None]) -> Iterator[Callable[[], None]]:
    """Show that a command works: a line on standard error, if that is a terminal.

    `line` makes it of the seconds since the start, every second from the first one on; None leaves
    what is there. Yields what shows it at once. The line is gone when the work is done, before
    anything else is printed.
    """
    if not sys.stderr.isatty():
        yield lambda: None
        return
    started, done, turn = time.monotonic(), threading.Event(), threading.Lock()

    def show() -> None:
        with turn:
            words = line(time.monotonic() - started)
            if words is not None and not done.is_set():
                click.echo(f"\r{words}\x1b[K", err=True, nl=False)

    def every_second() -> None:
        while not done.wait(1.0):
            show()

    worker = threading.Thread(target=every_second, daemon=True)
    worker.start()
    try:
        yield show
    finally:
        done.set()
        worker.join()
        click.echo("\r\x1b[K", err=True, nl=False)


def computing(what: str) -> AbstractContextManager[Callable[[], None]]:
    """Show how long a command works, and how far it is with the step that it is at."""

    def line(seconds: float) -> str:
        # Loaded by what reads runs, and by nothing else.
        engines = sys.modules.get("calibration.runs.engines")
        step = None if engines is None else engines.step_now()
        return f"{what}: {', '.join(filter(None, [f'{seconds:.0f} s', step]))}"

    return working(line)


@contextmanager
def progress() -> Iterator["Callable[[FilesProgress], None] | None"]:
    """Yield what shows how far files are read, on standard error if it is a terminal."""
    if not sys.stderr.isatty():
        yield None
        return
    seen: FilesProgress | None = None

    def line(seconds: float) -> str | None:
        if seen is None:
            return None
        words = f"Reading: {seen.words()}"
        if 0.02 < seen.share < 1:
            words += f", about {seconds * (1 - seen.share) / seen.share:.0f} s left"
        return words

    with working(line) as show:

        def told(reading: "FilesProgress") -> None:
            nonlocal seen
            seen = reading
            show()

        yield told


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
    """Print an error as one sentence to standard error; a long one without its middle."""
    said = visible(message)
    if len(said) > MOST_SAID:
        said = f"{said[: MOST_SAID // 2]} … {said[-MOST_SAID // 2 :]}"
    click.echo(f"error: {said}", err=True)


def _encoding() -> str:
    return getattr(sys.stdout, "encoding", None) or "utf-8"


def open_to_read(path: Path) -> "Store":
    """Open a store for reading; print a note when the answer comes from a snapshot."""
    from calibration.store import Store

    store, age = Store.open_to_read(path)
    if age is not None:
        click.echo(
            f"note: the app has {path} open; read from its snapshot, {age:.0f} s old", err=True
        )
    return store


def open_to_write(
    path: Path, *, create: bool = False, taxonomy: "Taxonomy | None" = None
) -> "Store":
    """Open a store for writing; while the app holds it, the app makes the change."""
    from calibration.store import RemoteStore, Store

    try:
        return Store.open(path, create=create, taxonomy=taxonomy).by_way_of(origin())
    except StoreLockedError as locked:
        remote = RemoteStore(path, locked, waiting=_tell).by_way_of(origin())
        if taxonomy is not None:
            remote.set_taxonomy(taxonomy)
        return remote


def taxonomy_in_force(path: Path, rules: "Taxonomy | None" = None) -> "Taxonomy":
    """Return the given taxonomy, else that of the store, else the published one."""
    from calibration.taxonomy import default_taxonomy

    if rules is not None or not path.exists():
        return rules or default_taxonomy()
    with open_to_read(path) as store:
        return store.taxonomy()


def origin() -> str:
    """Return the command that runs, and as whom, for the audit trail."""
    import getpass

    context = click.get_current_context(silent=True)
    words = "asr" if context is None else " ".join(["asr", *context.command_path.split()[1:]])
    try:
        return f"{words} (as {getpass.getuser()})"
    except (KeyError, OSError):  # a user without a name, as in some containers
        return words


def _tell(seconds: float) -> None:
    if seconds > 2:
        click.echo(f"handed over to the app, waiting ({seconds:.0f} s) ...", err=True)


def pairs(given: Sequence[str], option: str) -> list[tuple[str, str]]:
    """Return the parts of each NAME=VALUE."""
    found = []
    for text in given:
        name, sign, value = text.partition("=")
        if not name.strip() or not sign:
            raise InputError(f"{option}: must be NAME=VALUE, got {text!r:.80}")
        found.append((name.strip(), value.strip()))
    return found


def named(value: str, form: str) -> list[tuple[str, str]]:
    """Read NAME=VALUE pairs separated by commas, each name once."""
    found: list[tuple[str, str]] = []
    for part in value.split(","):
        name, _, into = (piece.strip() for piece in part.rpartition("="))
        if not name or not into:
            raise click.BadParameter(f"must be {form}, got {part!r:.80}")
        if name in dict(found):
            raise click.BadParameter(f"names {name!r:.80} twice")
        found.append((name, into))
    return found


def credit_of(
    _context: click.Context, _option: click.Parameter, value: str | None
) -> dict[str, float] | None:
    """Read `a=1,b=.4`, the credit of classes."""
    if value is None:
        return None
    credit: dict[str, float] = {}
    for part in value.split(","):
        name, _, amount = (piece.strip() for piece in part.rpartition("="))
        try:
            worth = float(amount)
        except ValueError:
            worth = -1.0
        if not name or not 0 <= worth <= 1:
            raise click.BadParameter(f"must be CLASS=NUMBER from 0 to 1, got {part!r:.80}")
        if name in credit:
            raise click.BadParameter(f"names {name!r:.80} twice")
        credit[name] = worth
    return credit
