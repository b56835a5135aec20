"""What the words of a cell mean: missing, pass and fail, classes, numbers and times.

Constants and pure functions, for every reader in Python; the statements of `calibration.runs` get
their lists from here. `clean` is the text of a cell, `fold` what two spellings of one word share.
"""

import math
import re
import unicodedata
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from calibration.errors import InputError
from calibration.text import names_there

# What pandas takes as missing when it reads a CSV, in exactly this spelling, and lone dashes.
MISSING = frozenset(
    "|#N/A|#N/A N/A|#NA|-1.#IND|-1.#QNAN|-NaN|-nan|1.#IND|1.#QNAN|<NA>|N/A|NA|NULL|NaN|None|n/a|"
    "nan|null|-|\u2013|\u2014".split("|")
)
PASS = (
    "true",
    "t",
    "yes",
    "y",
    "1",
    "1.0",
    "pass",
    "passed",
    "success",
    "successful",
    "succeeded",
    "correct",
    "resolved",
    "solved",
)
FAIL = (
    "false",
    "f",
    "no",
    "n",
    "0",
    "0.0",
    "fail",
    "failed",
    "failure",
    "unsuccessful",
    "incorrect",
    "unresolved",
    "unsolved",
    "not_resolved",
    "not_solved",
)
ENDED = (
    "error",
    "errored",
    "crash",
    "crashed",
    "exception",
    "timeout",
    "timed_out",
    "infrastructure_error",
)
PENDING = (
    "pending",
    "running",
    "in_progress",
    "skipped",
    "not_run",
    "cancelled",
    "canceled",
    "unknown",
)
# Read where a column holds both and nothing else.
PAIRS = (
    ("right", "wrong"),
    ("good", "bad"),
    ("accept", "reject"),
    ("accepted", "rejected"),
    ("approved", "rejected"),
    ("ok", "ko"),
    ("ok", "not_ok"),
    ("c", "i"),
    ("up", "down"),
    ("✓", "✗"),
)
LIKED = ("up", "true", "thumbs_up", "thumbsup", "positive", "like", "👍")
DISLIKED = ("down", "false", "thumbs_down", "thumbsdown", "negative", "dislike", "👎")
NEUTRAL = ("neutral",)
NUMERALS = ("1", "1.0", "0", "0.0")

Verdict = Literal["pass", "fail", "ended", "pending"]
VERDICTS: dict[str, Verdict] = {
    **dict.fromkeys(PASS, "pass"),
    **dict.fromkeys(FAIL, "fail"),
    **dict.fromkeys(ENDED, "ended"),
    **dict.fromkeys(PENDING, "pending"),
}
TRUTHS = dict.fromkeys(PASS, True) | dict.fromkeys(FAIL, False)

ZERO_WIDTH, BLANKS = "\u200b\u200c\u200d\u2060\ufeff\u00ad", "\u00a0\u202f\u2007"
# What `str.strip` takes away at both ends, for statements.
AROUND = "".join(filter(str.isspace, map(chr, range(0x3001))))
_TO_CLEAN = str.maketrans(dict.fromkeys(ZERO_WIDTH, "") | dict.fromkeys(BLANKS, " "))
_APART = re.compile(r"[\s_\-/]+")
_PLUS, _MINUS = re.compile(r"(?<=[^\W\d_])\s*\+$"), re.compile(r"(?<=[^\W\d_])\s*[-\u2212\u2013]$")


def clean(text: str) -> str:
    r"""Return the text of a cell: NFC, without zero-width signs, trimmed.

    Examples
    --------
    >>> clean(" a\u00a0b\u200b ")
    'a b'
    """
    if text.isascii():
        return text.strip()
    return unicodedata.normalize("NFC", text.translate(_TO_CLEAN)).strip()


def cell(value: Any) -> str:
    """Return any value of a table as `clean` text; a whole number has no decimals.

    Examples
    --------
    >>> cell(3.0), cell(None), cell(float("nan")), cell(" x ")
    ('3', '', '', 'x')
    """
    if isinstance(value, str):
        return clean(value)
    # pandas' own missing values, without loading pandas.
    if value is None or type(value).__name__ in ("NAType", "NaTType"):
        return ""
    if isinstance(value, float):
        if math.isnan(value):
            return ""
        value = int(value) if value.is_integer() else value
    return clean(str(value))


def fold(text: str) -> str:
    """Return what spellings of one word have in common.

    Examples
    --------
    >>> fold("Partial-Correct"), fold("PARTIAL+"), fold("timed  out")
    ('partial_correct', 'partial_plus', 'timed_out')
    """
    word = unicodedata.normalize("NFKC", clean(text)).casefold()
    word = _MINUS.sub("_minus", _PLUS.sub("_plus", word))
    return _APART.sub("_", word)


def is_missing(text: str) -> bool:
    """Return whether a clean text stands for a missing value.

    >>> is_missing("NA"), is_missing("none")
    (True, False)
    """
    return text in MISSING


def truth(value: Any) -> bool | None:
    """Return whether a cell says yes or no; None where it says neither.

    Examples
    --------
    >>> truth("Yes"), truth(0), truth(True), truth("maybe"), truth("")
    (True, False, True, None, None)
    """
    return TRUTHS.get(fold(cell(value)))


def pair_of(words: Collection[str]) -> dict[str, bool] | None:
    """Return which of two folded words is the pass, if they are one of `PAIRS`.

    Examples
    --------
    >>> pair_of({"wrong", "right"})
    {'right': True, 'wrong': False}
    """
    for good, bad in PAIRS:
        if set(words) == {good, bad}:
            return {good: True, bad: False}
    return None


# --- missing words, and labels of any classes ---------------------------------------------------


def check_none(counts: Mapping[str, int], mapped: Mapping[str, str], place: str) -> None:
    """Refuse a column that holds both `None` and `none`: one is missing, the other a class."""
    if {"None", "none"} <= counts.keys() and not {"None", "none"} & mapped.keys():
        raise InputError(
            f"{place}: holds both None and none: --map None= takes None as missing, "
            "--map none=CLASS takes none as a class"
        )


def check_marks(counts: Mapping[str, int], known: Collection[str], place: str) -> None:
    """Refuse ``?`` and ``.`` as labels, which may be missing or a class."""
    for mark in ("?", "."):
        if counts.get(mark) and mark not in known:
            n = counts[mark]
            raise InputError(
                f"{place}: {n:,} label{'s are' if n != 1 else ' is'} written {mark}: --map {mark}= "
                f"takes them as missing, --map {mark}=CLASS as a class"
            )


def check_mapped(mapped: Mapping[str, str], counts: Mapping[str, int], place: str) -> None:
    """Refuse a word of --map that does not occur."""
    for word in mapped:
        if word not in counts:
            words = sorted(counts.keys() - {""}, key=lambda name: (-counts[name], name))
            raise InputError(f"--map: no {word!r:.80} in {place}; {names_there(word, words)}")


@dataclass(frozen=True, slots=True, kw_only=True)
class LabelWords:
    """What the labels of a column are taken as.

    `label` : the class of each clean text, empty where it is missing. `classes` : those that
    occur, in the spelling that is most frequent. `missing` : rows of each word that is missing.
    `joined` : spellings that were taken as one, the one in use first.
    """

    label: Mapping[str, str]
    classes: tuple[str, ...]
    missing: Mapping[str, int]
    joined: tuple[tuple[str, ...], ...]

    @property
    def notes(self) -> tuple[str, ...]:
        """What was joined and what is missing, in sentences."""
        lines = [f"{' and '.join(sorted(names))} were taken as one." for names in self.joined]
        return (*lines, *missing_notes(self.missing, "label"))


def missing_notes(missing: Mapping[str, int], noun: str) -> tuple[str, ...]:
    """Return a sentence for each word that was taken as missing.

    >>> missing_notes({"NA": 6}, "label")
    ('6 labels written NA were taken as missing.',)
    """
    return tuple(
        f"{n:,} {noun}{'s' * (n != 1)} written {word} {'were' if n != 1 else 'was'} taken as "
        "missing."
        for word, n in sorted(missing.items())
        if word
    )


def read_labels(
    counts: Mapping[str, int],
    *,
    place: str,
    classes: Collection[str] | None = None,
    mapped: Mapping[str, str] | None = None,
    ours: Mapping[str, str] | None = None,
) -> LabelWords:
    """Return what labels of any classes are taken as.

    Parameters
    ----------
    counts : mapping of str to int
        Rows of each clean text.
    place : str
        The table and its column, for messages.
    classes : collection of str, optional
        Every class, in exactly this spelling; None joins spellings that fold alike.
    mapped : mapping of str to str, optional
        Words that are taken as others; an empty one is missing.
    ours : mapping of str to str, optional
        The class of each folded name or title of the rubric, used where all labels are of it.

    Raises
    ------
    InputError
        If a mapped word does not occur, or None stands beside none.

    Examples
    --------
    >>> found = read_labels({"us": 3, "US": 1, "NA": 2, "": 1}, place="a.csv")
    >>> found.classes, found.label["US"], found.missing, found.notes[0]
    (('us',), 'us', {'NA': 2}, 'US and us were taken as one.')
    """
    mapped = {clean(word): clean(into) for word, into in (mapped or {}).items()}
    kept = {word for word, into in mapped.items() if into}
    check_mapped(mapped, counts, place)
    if classes is None or not {"None", "none"} & set(classes):
        check_none(counts, mapped, place)
    check_marks(counts, {*mapped, *(classes or ())}, place)
    missing = {
        word: n
        for word, n in counts.items()
        if word not in kept
        and (word in mapped or (is_missing(word) and word not in (classes or ())))
    }
    labels = {word: mapped.get(word, word) for word in counts if word not in missing}
    if classes is None:
        spellings, joined = _joined(labels, counts, ours or {}, set(mapped.values()))
        labels = {word: spellings[label] for word, label in labels.items()}
    else:
        joined = ()
    return LabelWords(
        label=labels | dict.fromkeys(missing, ""),
        classes=tuple(dict.fromkeys(labels.values())),
        missing={word: n for word, n in missing.items() if word},
        joined=joined,
    )


def _joined(
    labels: Mapping[str, str],
    counts: Mapping[str, int],
    ours: Mapping[str, str],
    exact: Collection[str],
) -> tuple[dict[str, str], tuple[tuple[str, ...], ...]]:
    """Return the spelling in use of each label, and the groups of spellings that are one."""
    groups: dict[str, dict[str, int]] = {}
    for word, label in labels.items():
        spellings = groups.setdefault(_same(label), {})
        spellings[label] = spellings.get(label, 0) + counts[word]
    is_ours = groups.keys() <= ours.keys()
    in_use: dict[str, str] = {}
    joined = []
    for same, spellings in groups.items():
        # A class that --map names is spelled as it is there.
        chosen = next((name for name in sorted(spellings) if name in exact), None)
        chosen = chosen or min(spellings, key=lambda name: (-spellings[name], name))
        chosen = ours[same] if is_ours else chosen
        in_use |= dict.fromkeys(spellings, chosen)
        if len(spellings) > 1:
            joined.append((chosen, *sorted(spellings.keys() - {chosen})))
    return in_use, tuple(joined)


def _same(label: str) -> str:
    """Return the fold of a label; numbers of one value are one label."""
    try:
        value = float(label)
    except ValueError:
        return fold(label)
    return f"{value:g}" if math.isfinite(value) else fold(label)


# --- numbers -------------------------------------------------------------------------------------

Decimal = Literal["point", "comma"]
MOST_NUMBER = 60  # characters
_PLAIN = re.compile(r"[+-]?(\d+(\.\d*)?|\.\d+)([eE][+-]?\d{1,3})?")
_DOLLARS = re.compile(r"^(?:US\$|USD|\$)\s*|\s*(?:US\$|USD|\$)$", re.IGNORECASE)
_BLANK_GROUPS = re.compile(r"(?<=\d)[ \u2009'](?=\d{3})")
_SURE_COMMA = re.compile(
    r"[+-]?(0,\d+|\d+,(\d{1,2}|\d{4,})|\d{1,3}(\.\d{3})+,\d+|\d{1,3}(\.\d{3}){2,})"
)
_SURE_POINT = re.compile(
    r"[+-]?(0?\.\d+|\d+\.(\d{1,2}|\d{4,})|\d{1,3}(,\d{3})+\.\d+|\d{1,3}(,\d{3}){2,})"
)
_UNCLEAR = re.compile(r"[+-]?[1-9]\d{0,2},\d{3}")
_WELL = {
    "point": re.compile(r"[+-]?(\d{1,3}(,\d{3})+|\d*)(\.\d*)?([eE][+-]?\d{1,3})?"),
    "comma": re.compile(r"[+-]?(\d{1,3}(\.\d{3})+|\d*)(,\d*)?([eE][+-]?\d{1,3})?"),
}
# Another currency than the dollar, by sign or code, before or after a number.
_CURRENCY = re.compile(
    r"^\s*(€|£|¥|₹|₩|EUR|GBP|JPY|CNY|CHF|INR|KRW|AUD|CAD|SEK|NOK|DKK|PLN|BRL|RMB)\s*[\d.,+-]|"
    r"\d\s*(€|£|¥|₹|₩|EUR|GBP|JPY|CNY|CHF|INR|KRW|AUD|CAD|SEK|NOK|DKK|PLN|BRL|RMB|kr|zł)\s*$",
    re.IGNORECASE,
)
_CODES = {"€": "EUR", "£": "GBP", "¥": "JPY", "₹": "INR", "₩": "KRW"}


def currency_of(text: str) -> str | None:
    """Return the code of a currency that is not the dollar, if a text names one.

    >>> currency_of("€0.12"), currency_of("3 CHF"), currency_of("$1")
    ('EUR', 'CHF', None)
    """
    match = _CURRENCY.search(text[:MOST_NUMBER])
    if match is None:
        return None
    name = match[1] or match[2]
    return _CODES.get(name, name.upper())


def is_plain(text: str) -> bool:
    """Return whether a text is a number with a decimal point and nothing else.

    >>> is_plain("-1.5e3"), is_plain("1,5"), is_plain("$1")
    (True, False, False)
    """
    return _PLAIN.fullmatch(text) is not None


def bare_number(text: str) -> tuple[str, bool]:
    """Return a number without dollars, blanks and percent sign, and whether it had the last.

    >>> bare_number("US$ 1 234.5"), bare_number("56.6 %")
    (('1234.5', False), ('56.6', True))
    """
    bare = _DOLLARS.sub("", clean(text))
    percent = bare.endswith("%")
    bare = bare[:-1].rstrip() if percent else bare
    return _BLANK_GROUPS.sub("", bare), percent


def decimal_of(
    texts: Iterable[str], *, place: str, chosen: Decimal | None = None
) -> Decimal | None:
    """Return the decimal sign of a column of numbers; None where every number is plain.

    Raises
    ------
    InputError
        If numbers with a decimal comma stand beside numbers with a decimal point, or it cannot be
        told whether a comma parts thousands, as in ``1,234``.

    Examples
    --------
    >>> decimal_of(["0,12", "3,5"], place="a.csv"), decimal_of(["1", "2.5"], place="a.csv")
    ('comma', None)
    """
    if chosen is not None:
        return chosen
    comma = point = unclear = ""
    plain = True
    for text in texts:
        if is_plain(text):  # nearly all: it holds no comma
            point = point or (text if _SURE_POINT.fullmatch(text) else "")
            continue
        bare, percent = bare_number(text[:MOST_NUMBER])
        plain = plain and not percent and is_plain(clean(text))
        if not comma and _SURE_COMMA.fullmatch(bare):
            comma = text
        elif not point and _SURE_POINT.fullmatch(bare):
            point = text
        elif not unclear and _UNCLEAR.fullmatch(bare):
            unclear = text
    if comma and point:
        raise InputError(
            f"{place}: holds {comma!r:.40} and {point!r:.40}: which sign parts the decimals? "
            "--decimal comma or --decimal point"
        )
    if unclear and not comma and not point:
        raise InputError(
            f"{place}: {unclear!r:.40} may be a thousand or a decimal number: --decimal comma or "
            "--decimal point"
        )
    return "comma" if comma else None if plain else "point"


def number_of(text: str, decimal: Decimal | None = None) -> float | None:
    """Return the number that a text holds, None where it holds none or it is not finite.

    Examples
    --------
    >>> number_of("$1,234.50"), number_of("1.234,5", "comma"), number_of("12 %"), number_of("x")
    (1234.5, 1234.5, 0.12, None)
    """
    bare, percent = bare_number(text[:MOST_NUMBER]) if len(text) <= MOST_NUMBER else ("", False)
    sign: Decimal = decimal or "point"
    if not _WELL[sign].fullmatch(bare) or not any(c.isdigit() for c in bare):
        return None
    plain = bare.replace(",", "") if sign == "point" else bare.replace(".", "").replace(",", ".")
    value = float(plain)
    return (value / 100 if percent else value) if math.isfinite(value) else None


@dataclass(frozen=True, slots=True, kw_only=True)
class Numbers:
    """The numbers of a column, NaN where there is none.

    `unread` : cells that hold something else than a number from `0` to the most allowed; `first`
    is the place of the first of them, and its text.
    """

    values: list[float]
    unread: int = 0
    first: tuple[int, str] | None = None


def read_numbers(
    texts: Sequence[str],
    *,
    place: str,
    most: float,
    chosen: Decimal | None = None,
    in_dollars: bool = True,
) -> Numbers:
    """Return the numbers of a column from 0 to `most`, by one decimal sign for all of them.

    Raises
    ------
    InputError
        As `decimal_of`, or if a number is in another currency than the dollar.

    Examples
    --------
    >>> read_numbers(["$1.50", "", "x"], place="a.csv: cost", most=9)
    Numbers(values=[1.5, nan, nan], unread=1, first=(2, 'x'))
    """
    different = dict.fromkeys(texts)
    present = [text for text in different if text and not is_missing(text)]
    plain = all(map(_PLAIN.fullmatch, present))
    decimal = chosen if plain else decimal_of(present, place=place, chosen=chosen)
    value_of: dict[str, float] = {}
    for text in present:
        value = float(text) if plain and chosen != "comma" else number_of(text, decimal)
        if value is None and in_dollars and (code := currency_of(text)):
            raise InputError(
                f"{place}: costs are read in US dollars, and {text!r:.40} is in {code}: "
                "--column cost_usd= leaves them out"
            )
        value_of[text] = value if value is not None and 0 <= value <= most else math.nan
    wrong = [k for k, text in enumerate(texts) if math.isnan(value_of.get(text, 0.0))]
    return Numbers(
        values=[value_of.get(text, math.nan) for text in texts],
        unread=len(wrong),
        first=(wrong[0], texts[wrong[0]]) if wrong else None,
    )


# --- times ---------------------------------------------------------------------------------------

Dates = Literal["dmy", "mdy"]
Clock = Literal["iso", "seconds", "milliseconds", "dmy", "mdy", "unclear"]
_SLASHED = re.compile(r"(\d{1,2})([/.-])(\d{1,2})\2(\d{4})(?:[ T].*)?")
_SECONDS, _MILLISECONDS = re.compile(r"\d{10}(\.\d+)?"), re.compile(r"\d{13}(\.0)?")


def clock_of(texts: Iterable[str], *, chosen: Dates | None = None) -> Clock:
    """Return how a column writes its times; ``unclear`` where day and month cannot be told apart.

    Examples
    --------
    >>> clock_of(["2026-03-04"]), clock_of(["1767225600"]), clock_of(["03/04/2026", "13/04/2026"])
    ('iso', 'seconds', 'dmy')
    >>> clock_of(["03/04/2026"]), clock_of(["03/04/2026"], chosen="mdy")
    ('unclear', 'mdy')
    """
    present = [text for text in map(clean, texts) if not is_missing(text)]
    slashed = [match for text in present if (match := _SLASHED.fullmatch(text))]
    if slashed:
        if chosen is not None:
            return chosen
        days, months = (max(int(match[k]) for match in slashed) for k in (1, 3))
        return "dmy" if days > 12 >= months else "mdy" if months > 12 >= days else "unclear"
    if present and all(map(_SECONDS.fullmatch, present)):
        return "seconds"
    if present and all(map(_MILLISECONDS.fullmatch, present)):
        return "milliseconds"
    return "iso"


def iso_of(text: str, clock: Clock) -> str:
    """Return a time of `clock` in the form of ISO 8601; as it is where it is of another form.

    Examples
    --------
    >>> iso_of("13/4/2026 09:30", "dmy"), iso_of("1767225600", "seconds")
    ('2026-04-13 09:30', '2026-01-01T00:00:00+00:00')
    """
    bare = clean(text)
    if clock in ("dmy", "mdy") and (match := _SLASHED.fullmatch(bare)):
        first, second = match[1].zfill(2), match[3].zfill(2)
        day, month = (first, second) if clock == "dmy" else (second, first)
        rest = bare[match.end(4) :]
        return f"{match[4]}-{month}-{day}{rest}"
    if clock in ("seconds", "milliseconds"):
        from datetime import UTC, datetime

        try:
            value = float(bare) / (1000 if clock == "milliseconds" else 1)
            return datetime.fromtimestamp(value, UTC).isoformat()
        except (ValueError, OverflowError, OSError):
            return bare
    return bare
