"""How a table that was handed in is read: its columns by role, and what its words are taken as.

The menus begin with what was recognised. What cannot be told is a question above them, in the
words of the command, with menus in place of its options.
"""

import math
import re
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import streamlit as st

from app.components.uploaded import as_uploaded, on_disk
from calibration.analyses.look import LABELS, NOT_STORED, TRIALS, VERDICTS, FileLook, look_as
from calibration.errors import CalibrationError, InputError
from calibration.reporting.sections.look import content_words
from calibration.tables.columns import ALIASES, normalised
from calibration.tables.reading import ReadingOptions
from calibration.tables.rows import open_table
from calibration.tables.scales import scale_from
from calibration.tables.words import is_missing
from calibration.taxonomy import Taxonomy
from calibration.text import counted, shown

NONE, UNCLEAR = "(none)", "not clear yet"
ROLES: dict[str, tuple[str, ...]] = {
    LABELS: ("trace_id", "reviewer", "outcome"),
    VERDICTS: ("trace_id", "outcome"),
    TRIALS: ("task_id", "trial", "outcome"),
}
PASS, FAIL, MISSING = "pass", "fail", "missing"
MOST_WORDS = 12  # words with a menu each; the most frequent
MOST_NAME = 60

# What the options of a command are called on a page.
_MENUS = (
    (re.compile(r"--column (\w+)=(?=$|[\s,;:)])"), r"(none) in the menu \1"),
    (re.compile(r"--column (\w+)=(\S+)"), r"\2 in the menu \1"),
    (re.compile(r"--map ([^\s,;=]+=[^\s,;]*(?:,[^\s,;]+)*)"), r"the menus of words (\1)"),
    (re.compile(r"--scale (\d\S*)"), r"the scale \1"),
    (re.compile(r"--pass-at (\d\S*)"), r"\1 as the lowest score that passes"),
    (re.compile(r"--decimal (comma|point)"), r"decimal \1"),
    (re.compile(r"--dates (dmy|mdy)"), r"dates \1"),
    (re.compile(r"--encoding (\S+)"), r"the encoding \1"),
    (re.compile(r"--raters ('[^']*'|\S+)"), r"the columns of raters \1"),
    (
        re.compile(r"--max-left-out (\d\S*) reports without them"),
        r"To measure without them, enter \1 as the largest share left out",
    ),
    (re.compile(r"--map\b takes"), "the menus of words take"),
    (re.compile(r"--map\b"), "the menus of words"),
    (re.compile(r"--column\b"), "the menus of columns"),
    (re.compile(r"--scale\b"), "the scale"),
    (re.compile(r"--pass-at\b"), "the lowest score that passes"),
    (re.compile(r"--raters\b"), "the columns of raters"),
)
# Settings that a menu is drawn for where a question names them.
_ASKED = {
    "scale": "--scale",
    "pass_at": "--pass-at",
    "decimal": "--decimal",
    "dates": "--dates",
    "encoding": "--encoding",
    "raters": "--raters",
    "max_left_out": "--max-left-out",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class _Seen:
    """What was recognised of a table, or the question; its columns; the words of its outcome."""

    look: FileLook | None
    question: str
    columns: tuple[str, ...]
    words: Mapping[str, int] = field(default_factory=dict)

    @property
    def refusal(self) -> str:
        """Why there would be no rate, where more rows are left out than the limit allows."""
        if self.look is None or not self.look.reading.is_over_limit:
            return ""
        return self.look.reading.refusal


def as_menus(message: str) -> str:
    """Return a question with the menus of the page in place of the options of a command.

    Examples
    --------
    >>> as_menus("a.csv: label holds 0 and 1: --map 1=pass,0=fail; --column outcome=ok")
    'a.csv: label holds 0 and 1: the menus of words (1=pass,0=fail); ok in the menu outcome'
    """
    for option, menu in _MENUS:
        message = option.sub(menu, message)
    return message


def reading_menus(key: str, upload: Any, used_for: str, taxonomy: Taxonomy) -> ReadingOptions:
    """Draw how a table that was handed in is read, with a menu for each role and each word.

    Parameters
    ----------
    key : str
        The prefix of the widgets.
    upload : UploadedFile or None
        The table; nothing is drawn without one.
    used_for : str
        What it is for: labels, verdicts or trials.
    taxonomy : Taxonomy
        The rubric in force.

    Returns
    -------
    ReadingOptions
        What was chosen that differs from what was recognised.
    """
    if upload is None:
        return ReadingOptions()
    key = f"{key}_{upload.file_id}"
    settings, unread = _settings(key)
    first = _seen(upload, used_for, settings, taxonomy)
    heading, question = st.container(), st.container()
    columns = _role_menus(key, first, used_for)
    options = replace(settings, columns=columns)
    named = first if not columns else _seen(upload, used_for, options, taxonomy)
    mapped = _word_menus(key, named, taxonomy)
    options = replace(options, mapped=mapped)
    found = named if not mapped else _seen(upload, used_for, options, taxonomy)
    asked = " ".join((first.question, named.question, found.question, found.refusal))
    _setting_menus(key, asked, found.columns)
    for sentence in unread:
        st.warning(_literal(sentence))
    if found.look is None:
        question.warning(shown(as_menus(found.question), most=600).replace("`", "'"))
    else:
        reading = found.look.reading
        heading.text(
            f"{shown(upload.name, most=MOST_NAME)}: {counted(reading.rows, 'row')}, "
            f"{found.look.written}"
        )
        unclear = [word for word, into in _taken_as(found, taxonomy).items() if into == UNCLEAR]
        if unclear:
            question.warning(_unclear_words(unclear))
        for line in (*reading.notes, reading.left_out_line, reading.folded_line):
            if line and not line.startswith(NOT_STORED):
                st.text(as_menus(shown(line, most=400)))
        if found.refusal:
            st.warning(as_menus(shown(found.refusal, most=600)).replace("`", "'"))
    return options


def _unclear_words(words: Sequence[str]) -> str:
    """Return the question for words that are no outcome, the first of them named."""
    named = ", ".join(repr(shown(word, most=MOST_NAME)) for word in words[:3]).replace("`", "'")
    more = f" and {counted(len(words) - 3, 'more word')}" if len(words) > 3 else ""
    verb = "is" if len(words) == 1 else "are"
    return f"Say in the menus of words what {named}{more} {verb} taken as."


# --- what is drawn -------------------------------------------------------------------------------


def _role_menus(key: str, first: _Seen, used_for: str) -> dict[str, str | None]:
    """Draw a menu for each role; return the columns that differ from those recognised."""
    chosen: dict[str, str | None] = {}
    choices = [NONE, *first.columns]
    contents = {} if first.look is None else {one.role: one for one in first.look.roles}
    recognised = {} if first.look is None else dict(first.look.reading.columns)
    cells = st.columns(len(ROLES[used_for]))
    for cell, role in zip(cells, ROLES[used_for], strict=True):
        known = recognised.get(role) if first.look is not None else _by_name(role, first.columns)
        before = known if known in choices else NONE
        name = _menu(cell, role, choices, before, f"{key}_{role}")
        if role in contents and name == before and contents[role].column is not None:
            cell.caption(shown(_literal(content_words(contents[role])), most=200))
        if name != before:
            chosen[role] = None if name == NONE else name
    return chosen


def _menu(
    cell: Any,
    label: str,
    choices: Sequence[str],
    recognised: str,
    place: str,
    *,
    disabled: bool = False,
) -> str:
    """Draw a menu that follows what is recognised until something else is chosen in it."""
    state, chosen_place = st.session_state, f"{place}_chosen"
    chosen = state.get(chosen_place)
    start = chosen if chosen in choices else recognised
    # A setting may change what is recognised: under another key the menu begins anew.
    name: str = cell.selectbox(
        label,
        choices,
        index=choices.index(start) if start in choices else 0,
        disabled=disabled,
        key=f"{place}_{recognised}",
    )
    if name == recognised:
        state.pop(chosen_place, None)
    else:
        state[chosen_place] = name
    return name


def _by_name(role: str, columns: Sequence[str]) -> str | None:
    """Return the column that has a role by its name, where the outcome has yet to be found."""
    if role == "outcome":
        return role if role in columns else None
    aliases = (role, *ALIASES["rater" if role == "reviewer" else role])
    by_name = {normalised(column): column for column in reversed(columns)}
    return next((by_name[alias] for alias in aliases if alias in by_name), None)


def _literal(text: str) -> str:
    """Return a text in which Markdown finds nothing."""
    return re.sub(r"([\\`*_{}\[\]()#+.!|<>~$:-])", r"\\\1", text)


def _word_menus(key: str, named: _Seen, taxonomy: Taxonomy) -> dict[str, str]:
    """Draw a menu for each word of the outcome; return those that are taken as something else."""
    taken = _taken_as(named, taxonomy)
    listed = list(named.words)[:MOST_WORDS]
    choices = [UNCLEAR, *taxonomy.names, PASS, FAIL, MISSING]
    mapped: dict[str, str] = {}
    if not listed:
        return mapped
    st.text("What the words of the outcome are taken as:")
    for start in range(0, len(listed), 4):
        for cell, word in zip(st.columns(4), listed[start : start + 4], strict=False):
            before = taken.get(word, UNCLEAR)
            label = f"{_literal(shown(word, most=MOST_NAME))} ({named.words[word]:,})"
            place = f"{key}_word_{len(listed)}_{word}"
            # A class is itself.
            into = _menu(cell, label, choices, before, place, disabled=word in taxonomy.names)
            if into not in (before, UNCLEAR):
                mapped[word] = "" if into == MISSING else into
    more = len(named.words) - len(listed)
    if more > 0:
        st.text(
            f"and {counted(more, 'more word')}, read as {UNCLEAR}" if named.look is None else ""
        )
    return mapped


def _taken_as(seen: _Seen, taxonomy: Taxonomy) -> dict[str, str]:
    """Return what each word is taken as now."""
    if seen.look is None:
        return {word: MISSING for word in seen.words if is_missing(word)}
    outcome = next((one for one in seen.look.roles if one.role == "outcome"), None)
    if outcome is None:
        return {}
    known = {*taxonomy.names, PASS, FAIL, MISSING}
    named = ((one.word, one.taken_as or one.word) for one in outcome.words)
    return {word: into if into in known else UNCLEAR for word, into in named}


def _settings(key: str) -> tuple[ReadingOptions, list[str]]:
    """Return the settings given to earlier questions, and a sentence on each that is not read."""
    state = st.session_state
    read: dict[str, Any] = {}
    unread = []
    for name, (label, parse, example) in _TYPED.items():
        text = str(state.get(f"{key}_{name}") or "").strip()
        try:
            read[name] = parse(text) if text else None
        except (InputError, ValueError):
            unread.append(f"{label}: {shown(text, most=40)!r} cannot be read; {example}.")
    options = ReadingOptions(
        decimal=state.get(f"{key}_decimal"),
        dates=state.get(f"{key}_dates"),
        encoding=str(state.get(f"{key}_encoding") or "").strip() or None,
        raters=tuple(state.get(f"{key}_raters") or ()),
        **read,
    )
    return options, unread


def _number(text: str) -> float:
    """Return a finite number, with a decimal point or comma; ValueError if it is none."""
    number = float(text.replace(",", "."))
    if not math.isfinite(number):
        raise ValueError(text)
    return number


def _share(text: str) -> float:
    """Return a share written as 0.27, 0,27 or 27%; ValueError if it is none."""
    number = _number(text.rstrip("% "))
    share = number / 100 if text.endswith("%") else number
    if not 0 <= share <= 1:
        raise ValueError(text)
    return share


# Settings that are typed: their label, how they are read, and what they look like.
_TYPED: dict[str, tuple[str, Callable[[str], Any], str]] = {
    "scale": (
        "Scale of scores",
        scale_from,
        "enter the lowest and the highest score, such as 1-5",
    ),
    "pass_at": ("Lowest score that passes", _number, "enter a number, such as 4"),
    "max_left_out": ("Largest share left out", _share, "enter a share, such as 0.1 or 10%"),
}


def _setting_menus(key: str, asked: str, columns: Sequence[str]) -> None:
    """Draw the settings that a question names, and those that were given."""
    names = [
        name
        for name, option in _ASKED.items()
        if option in asked or st.session_state.get(f"{key}_{name}")
    ]
    if not names:
        return
    for cell, name in zip(st.columns(len(names)), names, strict=True):
        place = f"{key}_{name}"
        if name in _TYPED:
            label, _, example = _TYPED[name]
            cell.text_input(label, key=place, placeholder=example.split()[-1], max_chars=40)
        elif name == "encoding":
            cell.text_input("Encoding", key=place, placeholder="cp1252", max_chars=40)
        elif name == "raters":
            cell.multiselect("Columns of raters", columns, key=place)
        else:
            listed = ["comma", "point"] if name == "decimal" else ["dmy", "mdy"]
            cell.selectbox(name.capitalize(), listed, index=None, key=place)


# --- what is recognised --------------------------------------------------------------------------


def _seen(upload: Any, used_for: str, options: ReadingOptions, taxonomy: Taxonomy) -> _Seen:
    known = (upload.file_id, used_for, repr(options), taxonomy.fingerprint)
    return _recognised(known, upload, options, taxonomy)


@st.cache_resource(show_spinner="Reading the table", max_entries=32)
def _recognised(
    known: tuple[str, ...], _upload: Any, _options: ReadingOptions, _taxonomy: Taxonomy
) -> _Seen:
    """Return how a table is read; the question where it can be read in several ways."""
    used_for = known[1]
    with on_disk([_upload]) as ((path,), folder):
        try:
            table = open_table(path, replace(_options, columns={}, mapped={}))
            columns = table.columns
        except CalibrationError as error:
            return _Seen(look=None, question=as_uploaded(str(error), folder), columns=())
        try:
            look = look_as(path, used_for, _options, taxonomy=_taxonomy)
        except CalibrationError as error:
            question = as_uploaded(str(error), folder)
            name = _options.columns.get("outcome") or next(
                (
                    column
                    for column in columns
                    if f" {column} " in question or f" {column}: " in question
                ),
                "",
            )
            # A question of words names the column; its words are those of the first rows.
            texts = table.sample.texts.get(name, ()) if "--map" in question else ()
            words = Counter(word for word in texts if word).most_common()
            return _Seen(look=None, question=question, columns=columns, words=dict(words))
    look = replace(look, reading=replace(look.reading, place=_upload.name))
    outcome = next((one for one in look.roles if one.role == "outcome"), None)
    listed = {} if outcome is None else {one.word: one.rows for one in outcome.words if one.word}
    return _Seen(look=look, question="", columns=columns, words=listed)
