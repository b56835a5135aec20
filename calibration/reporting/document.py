"""A report as a document: what it says, in order, before it is text, Markdown or HTML.

Every string is plain text. `Name` marks a text that came with the data, which a renderer keeps
apart from its own words.
"""

from dataclasses import dataclass


class Name(str):
    """A text that came with the data: a workflow, a model, a file, a trace."""

    __slots__ = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Mark:
    """A value to be drawn with its limits; `target` is a line to hold it against."""

    value: float
    low: float | None = None
    high: float | None = None
    target: float | None = None
    hollow: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """One row of a table; `flagged` stands out."""

    cells: tuple[str, ...]
    mark: Mark | None = None
    flagged: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Table:
    """A table whose first column names the rows.

    With a `scale` the marks are drawn on it, in a column of their own. `notes` say what a sign in
    a cell stands for. `folded`: in HTML behind a line to click on.
    `most_in_text`: a terminal shows no more rows.
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
    """A series over weeks, with the table that holds its numbers."""

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
    """Names and values, one a line."""

    items: tuple[tuple[str, str], ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Lines:
    """Lines of any length; one that begins with spaces belongs to the one before it."""

    items: tuple[str, ...]


Block = Table | Trend | Words | Listing | Facts | Lines


@dataclass(frozen=True, slots=True, kw_only=True)
class Section:
    """A heading and what stands under it; without a title, what stands apart."""

    title: str
    blocks: tuple[Block, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Headline:
    """The number of the report, what kind it is, how it was made, and others `beside` it."""

    name: str
    value: str
    limits: str
    half_width: str
    kind: str
    how: str
    beside: tuple[tuple[str, str], ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Document:
    """A whole report; `banners` come before everything else. Not every one has one number."""

    title: str
    about: tuple[str, ...] = ()
    headline: Headline | None = None
    banners: tuple[str, ...] = ()
    sections: tuple[Section, ...] = ()
    footer: str = ""
