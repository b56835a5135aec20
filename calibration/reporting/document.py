"""A result as a document: its parts, in order, as text and as Markdown.

Every string is plain text. `Name` marks a text from the data, which renderers keep apart from
their own words. Percentages and rounding appear only here.
"""

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from calibration.statistics.estimate import OK, Estimate
from calibration.tables.reading import Reading
from calibration.text import named_batches, sentence, shown

SIMULATED = "SIMULATED DATA: labels, verdicts and production runs are drawn at random."
CHOSEN = "  These traces were chosen, not drawn at random: this holds for them only."

# Names that a note lists.
MOST_NAMED = 6

# Characters that Markdown interprets; a bracket only where a link could begin.
_SIGNS = re.compile(r"([\\`*<>|~]|(?<!\w)_|_(?!\w)|&(?=[\w#])|\](?=[(\[:]))")


class Name(str):
    """A text from the data: a workflow, a model, a file, a trace."""

    __slots__ = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Mark:
    """A value to be drawn with its limits; `target` is a line to compare it with."""

    value: float
    low: float | None = None
    high: float | None = None
    target: float | None = None
    hollow: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """One row of a table; `flagged` is drawn in another colour."""

    cells: tuple[str, ...]
    mark: Mark | None = None
    flagged: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Table:
    """A table whose first column names the rows.

    Marks are drawn on the `scale`, in a separate column. `notes` explain the signs in cells.
    `folded` tables are collapsed in HTML; a terminal shows at most `most_in_text` rows.
    """

    title: str
    head: tuple[str, ...]
    rows: tuple[Row, ...]
    scale: tuple[float, float] | None = None
    scale_labels: tuple[str, ...] = ("", "")
    bars: bool = False
    notes: tuple[str, ...] = ()
    folded: bool = False
    most_in_text: int | None = None
    empty: str = "none"


@dataclass(frozen=True, slots=True, kw_only=True)
class Point:
    """One week of a series; None is a gap."""

    label: str
    value: float | None
    low: float | None = None
    high: float | None = None
    smooth: float | None = None
    marked: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Trend:
    """A series over weeks, with the table of its numbers."""

    title: str
    describes: str
    points: tuple[Point, ...]
    value_name: str
    smooth_name: str
    mark_name: str
    table: Table


@dataclass(frozen=True, slots=True, kw_only=True)
class Words:
    """A paragraph; `kind` is ``text``, ``small`` or ``warning``."""

    text: str
    kind: str = "text"


@dataclass(frozen=True, slots=True, kw_only=True)
class Listing:
    """Short statements in a list."""

    items: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Facts:
    """Names and values, one per line."""

    items: tuple[tuple[str, str], ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Lines:
    """Lines of any length; one that begins with spaces continues the one before it."""

    items: tuple[str, ...]


Block = Table | Trend | Words | Listing | Facts | Lines


@dataclass(frozen=True, slots=True, kw_only=True)
class Section:
    """A heading with its blocks; the title may be empty.

    `answer` is what the section says in a few words, for a page that folds it.
    """

    title: str
    blocks: tuple[Block, ...]
    answer: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Headline:
    """The main number of a report in a `sentence`, its kind and method, and others `beside` it.

    `basis` is what a reader has to know of the method: the level of the limits, and n.
    """

    name: str
    value: str
    limits: str
    half_width: str
    kind: str
    how: str
    basis: str = ""
    sentence: str = ""
    beside: tuple[tuple[str, str], ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Document:
    """A whole report; `banners` come before everything else. Some have no headline.

    `source` names what was read, in the first line: the batches of a store.
    `brief` is what a terminal shows below the headline unless it is asked for everything; None is
    everything. `then` is the command that comes next, without ``asr``. `reading` says what was read
    of the tables and what was left out, before the estimates.
    """

    title: str
    source: str = ""
    about: tuple[str, ...] = ()
    headline: Headline | None = None
    banners: tuple[str, ...] = ()
    sections: tuple[Section, ...] = ()
    footer: str = ""
    brief: tuple[Block, ...] | None = None
    then: str = ""
    reading: tuple[str, ...] = ()


def reading_lines(readings: Reading | Sequence[Reading] | None) -> tuple[str, ...]:
    """Return what stands before the estimates of one table, or of several, with their names.

    Examples
    --------
    >>> read_before = Reading(place="a.csv", rows=2, used=2, columns={"outcome": "passed"})
    >>> reading_lines(read_before), reading_lines(None)
    (('Read passed as outcome.',), ())
    """
    if readings is None:
        return ()
    # They hold words, columns and workflows of the table, in which nothing is to be interpreted.
    if isinstance(readings, Reading):
        return tuple(map(Name, readings.lines))
    return tuple(Name(f"{one.place}: {line}") for one in readings for line in one.lines)


ESTIMANDS = {
    "process": "the rate is that of runs like these: tasks and runs are a sample",
    "these_runs": "the rate is the mean of these {n:,} runs themselves, not of runs like them",
}


def batches_read(batch_id: str | None) -> str:
    """Return the first line of what is read from batches of a store; empty without any.

    Examples
    --------
    >>> batches_read("production-001+production-002")
    'Batches production-001 and production-002.'
    """
    return "" if batch_id is None else sentence(named_batches(batch_id))


def figure(result: Estimate, digits: int = 3) -> str:
    """Return value and interval of an estimate, without its status."""
    if result.value is None:
        return "not estimable"
    text = f"{result.value:z.{digits}f}"
    if result.interval is not None:
        text += f" [{result.interval[0]:z.{digits}f}, {result.interval[1]:z.{digits}f}]"
    return text if result.status == OK else f"{text} +"


def number(result: Estimate, digits: int = 3) -> str:
    """Return value and interval of an estimate with its status, or the reason why there is none."""
    if result.value is None:
        return result.status.replace("_", " ", 1)
    text = figure(result, digits).removesuffix(" +")
    return text if result.status == OK else f"{text}  ({result.status})"


def rate_sentence(result: Estimate, runs: str, *, reviewers: bool, given_by: str = "") -> str:
    """Return a rate of runs in one sentence, and whether its limits carry the error of reviewers.

    `given_by` names whose outcomes are taken as given, where no reviewer is behind the rate.

    Examples
    --------
    >>> made = Estimate(value=0.566, interval=(0.530, 0.601), n=300, method="two phases")
    >>> rate_sentence(made, "runs like these", reviewers=True)
    'Of runs like these, 56.6 % succeed [53.0, 60.1], reviewer error included.'
    """
    if result.value is None:
        return f"No rate of {runs}: {result.status.replace('_', ' ', 1)}."
    digits = 1
    while result.half_width and digits < 3 and 100 * result.half_width < 10.0**-digits:
        digits += 1
    value, *limits = (f"{100 * x:.{digits}f}" for x in (result.value, *(result.interval or ())))
    between = f" [{', '.join(limits)}]" if limits else ""
    if given_by:
        return (
            f"Of {runs}, {value} % succeed{between} by the outcomes of {given_by}, taken as given."
        )
    return (
        f"Of {runs}, {value} % succeed{between}, reviewer error {'' if reviewers else 'not '}"
        "included."
    )


def notes(named: Iterable[tuple[str, Estimate | None]]) -> Iterator[str]:
    """Yield each status that a `+` in a table refers to, once, with its names."""
    by_status: dict[str, dict[str, None]] = {}
    for name, result in named:
        if result is not None and result.status != OK:
            by_status.setdefault(result.status.replace("_", " ", 1), {})[name] = None
    for status, names in by_status.items():
        few = list(names)[:MOST_NAMED]
        note = f"+ {', '.join(few)}{' and others' * (len(names) > len(few))}: {status}"
        yield Name(note) if any(isinstance(name, Name) for name in names) else note


def percent(share: float | None) -> str:
    """Return a share in percent."""
    return "-" if share is None else f"{100 * share:.1f} %"


def percent_figure(result: Estimate) -> str:
    """Return a share with its limits in percent, one decimal each.

    Examples
    --------
    >>> percent_figure(Estimate(value=0.566, interval=(0.530, 0.601), n=300, method="t"))
    '56.6 % [53.0, 60.1]'
    """
    if result.value is None:
        return "not estimable"
    limits = [f"{100 * end:.1f}" for end in result.interval or ()]
    return percent(result.value) + (f" [{', '.join(limits)}]" if limits else "")


def percent_cell(result: Estimate) -> str:
    """Return a share in percent with its limits; a `+` refers to its status below."""
    text = percent_figure(result)
    return text if result.value is None or result.status == OK else f"{text} +"


def coefficient_cell(name: str, result: Estimate) -> str:
    """Return a coefficient of agreement for a table; percent agreement is a share, in percent."""
    return percent_cell(result) if name == "percent_agreement" else figure(result)


def percent_number(result: Estimate) -> str:
    """Return a share in percent with its limits and its status, or why there is none."""
    if result.value is None:
        return result.status.replace("_", " ", 1)
    text = percent_figure(result)
    return text if result.status == OK else f"{text}  ({result.status})"


def rank_words(rank: tuple[int, int]) -> str:
    """Return the ranks that something may have.

    Examples
    --------
    >>> rank_words((1, 1)), rank_words((2, 3))
    ('1', '2 to 3')
    """
    low, high = rank
    return str(low) if low == high else f"{low} to {high}"


def usd(amount: float | None) -> str:
    """Return an amount in USD."""
    return "-" if amount is None else f"${amount:.4f}" if amount < 0.1 else f"${amount:.2f}"


def exposed(n: int) -> str:
    """Return a note that labels were left out because they were not blind."""
    return f"{n:,} label{'s' * (n > 1)} left out: given after seeing the labels of others"


def table_of(
    title: str,
    head: tuple[str, ...],
    cells: Iterable[tuple[str, ...]],
    marks: Sequence[Mark | None] | None = None,
    notes: Iterable[str] = (),
    **options: Any,
) -> Table:
    """Return a table of cells, each row with its mark."""
    listed = list(cells)
    drawn = marks or [None] * len(listed)
    rows = (Row(cells=row, mark=one) for row, one in zip(listed, drawn, strict=True))
    return Table(title=title, head=head, rows=tuple(rows), notes=tuple(notes), **options)


def table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> Iterator[str]:
    """Yield the lines of a table, the first column left-aligned, the others right-aligned."""
    cells = [list(head), *[list(row) for row in rows]]
    widths = [max(len(row[k]) for row in cells) for k in range(len(head))]
    for row in cells:
        padded = [row[0].ljust(widths[0])]
        padded += [cell.rjust(width) for cell, width in zip(row[1:], widths[1:], strict=True)]
        yield "  " + "  ".join(padded).rstrip()


def text_lines(document: Document) -> Iterator[str]:
    """Yield the lines of a document."""
    for banner in document.banners:
        yield shown(banner, most=600)
    yield from _source(document)
    for line in document.reading:
        yield shown(line, most=600)
    if document.headline is None:
        yield document.title
    else:
        yield from _text_headline(document.headline)
    for line in document.about:
        yield f"  {shown(line, most=600)}"
    for section in document.sections:
        yield ""
        if section.title:
            yield section.title
        for block in section.blocks:
            yield from _text_block(block)
    if document.footer:
        yield ""
        yield document.footer


def brief_lines(document: Document) -> Iterator[str]:
    """Yield the lines of the answer that a document gives."""
    for banner in document.banners:
        yield shown(banner, most=600)
    yield from _source(document)
    for line in document.reading:
        yield shown(line, most=600)
    head = document.headline
    if head is None:
        yield document.title
    else:
        yield head.sentence or _figure_line(head)
        basis = "; ".join(filter(None, (head.kind if head.sentence else "", head.basis)))
        if basis:
            yield f"  {shown(basis, most=600)}"
        yield from _beside(head)
    for block in document.brief or ():
        yield from _text_block(block)


def _source(document: Document) -> Iterator[str]:
    if document.source:
        yield shown(document.source, most=600)


def _figure_line(head: Headline) -> str:
    limits = f" {head.limits}" if head.limits else ""
    half = f" ({head.half_width})" if head.half_width else ""
    return f"{head.name} {head.value}{limits}{half}  {head.kind}"


def _beside(head: Headline) -> Iterator[str]:
    for name, value in head.beside:
        yield f"  {shown(name)}: {shown(value)}"


def _text_headline(head: Headline) -> Iterator[str]:
    if head.sentence:
        yield head.sentence
    yield _figure_line(head)
    if head.how:
        yield f"  {head.how}"
    yield from _beside(head)


def _text_block(block: Block) -> Iterator[str]:
    if isinstance(block, Table):
        yield from _text_table(block)
    elif isinstance(block, Trend):
        yield from _text_table(block.table)
    elif isinstance(block, Words):
        yield f"  {'! ' * (block.kind == 'warning')}{shown(block.text, most=600)}"
    elif isinstance(block, Listing):
        for item in block.items:
            yield f"  - {shown(item, most=600)}"
    elif isinstance(block, Lines):
        yield from (shown(item, most=1_000) for item in block.items)
    else:
        yield from _facts(block)


def _facts(block: Facts) -> Iterator[str]:
    width = max((len(name) for name, _ in block.items), default=0)
    for name, value in block.items:
        yield f"  {name.ljust(width)}  {shown(value, most=600)}"


def _text_table(block: Table) -> Iterator[str]:
    if not block.rows:
        yield f"  {block.empty}"
        return
    if block.most_in_text == 0:
        yield f"  {shown(block.title)}: in --json, --markdown and --html"
        return
    if block.title:
        yield f"  {shown(block.title)}"
    rows = [
        ["! " * row.flagged + shown(row.cells[0], most=60), *(shown(c) for c in row.cells[1:])]
        for row in block.rows[: block.most_in_text]
    ]
    yield from table(block.head, rows)
    if len(rows) < len(block.rows):
        yield f"  ... {len(block.rows) - len(rows)} more in --json, --markdown and --html"
    for note in block.notes:
        yield f"  {shown(note, most=600)}"


def markdown(document: Document) -> str:
    """Return a document as Markdown; names are code spans, so nothing in them is interpreted."""
    return "\n".join(_markdown_lines(document)) + "\n"


def escaped(text: str, *, most: int = 600) -> str:
    """Return a text that Markdown shows literally."""
    safe = shown(text, most=most)
    if not isinstance(text, Name):
        return _SIGNS.sub(r"\\\1", safe)
    if not safe.strip():
        return "(empty)" if not safe else "(blank)"
    fence = "`" * (1 + max((len(run) for run in re.findall("`+", safe)), default=0))
    room = " " if safe[0] == "`" or safe[-1] == "`" else ""
    # A table ends its cell at a bar even inside a code span.
    return f"{fence}{room}{safe}{room}{fence}".replace("|", "\\|")


def _markdown_lines(document: Document) -> Iterator[str]:
    yield f"# {escaped(document.title)}"
    yield ""
    for banner in document.banners:
        yield f"> **{escaped(banner)}**"
        yield ""
    for line in document.reading:
        yield escaped(line)
        yield ""
    if document.headline is not None:
        yield from _markdown_headline(document.headline)
    for line in filter(None, (document.source, *document.about)):
        yield ""
        yield escaped(line)
    for section in document.sections:
        if section.title:
            yield ""
            yield f"## {escaped(section.title)}"
        for block in section.blocks:
            yield ""
            yield from _markdown_block(block)
    if document.footer:
        yield from ("", "---", "", escaped(document.footer))


def _markdown_headline(head: Headline) -> Iterator[str]:
    half = f" ({head.half_width})" if head.half_width else ""
    if head.sentence:
        yield from (f"**{escaped(head.sentence)}**", "")
    yield f"**{escaped(head.name)} {escaped(head.value)}** {escaped(head.limits)}{half}".rstrip()
    yield ""
    yield f"*{escaped(head.kind)}.* {escaped(head.how)}".rstrip()
    yield ""
    for name, value in head.beside:
        yield f"- {escaped(name)}: {escaped(value)}"


def _markdown_block(block: Block) -> Iterator[str]:
    if isinstance(block, Table):
        yield from _markdown_table(block)
    elif isinstance(block, Trend):
        yield escaped(block.describes)
        yield ""
        yield from _markdown_table(block.table)
    elif isinstance(block, Words):
        yield f"> {escaped(block.text)}" if block.kind == "warning" else escaped(block.text)
    elif isinstance(block, Listing):
        for item in block.items:
            yield f"- {escaped(item)}"
    elif isinstance(block, Facts):
        for name, value in block.items:
            yield f"- {escaped(name)}: {escaped(value)}"
    else:
        for item in block.items:
            # Nested below the line it belongs to, if there is one.
            inner = item.startswith("    ") and item is not block.items[0]
            yield f"{'  ' * inner}- {escaped(Name(item.strip()), most=1_000)}"


def _markdown_table(block: Table) -> Iterator[str]:
    if not block.rows:
        yield escaped(block.empty)
        return
    if block.title:
        yield f"**{escaped(block.title)}**"
        yield ""
    yield "| " + " | ".join(escaped(name) for name in block.head) + " |"
    yield "| :--- |" + " ---: |" * (len(block.head) - 1)
    for row in block.rows:
        first, *others = (escaped(cell, most=200) for cell in row.cells)
        yield "| " + " | ".join([f"**{first}**" if row.flagged else first, *others]) + " |"
    for note in block.notes:
        yield ""
        yield escaped(note)
