"""Text that people read: names of weeks, and text from traces and files made safe to show.

A week is an ISO week: Monday to Sunday, in UTC, named like ``2026-W07``. Safe text has no control
characters and bounded length.
"""

import re
import shlex
from collections.abc import Iterable, Mapping
from datetime import date, timedelta
from difflib import get_close_matches
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import pandas as pd

MOST_CHARACTERS = 200

# Between the names of batches that are taken together.
TOGETHER = "+"

# Control characters, line and paragraph separators, and direction marks.
_STEERING = re.compile(
    "[\x00-\x08\x0a-\x1f\x7f-\x9f\u061c\u200b-\u200f\u2028-\u202e\u2060-\u2069\ufeff]"
)

_SURROGATE = re.compile("[\ud800-\udfff]")


def visible(text: str) -> str:
    r"""Return a text with control, line-breaking and direction characters spelled out.

    Examples
    --------
    >>> visible("a\x1b[31mb")
    'a\\x1b[31mb'
    """
    return _STEERING.sub(lambda found: ascii(found[0])[1:-1], text)


def shown(text: str, *, most: int = MOST_CHARACTERS) -> str:
    r"""Return a text for a report: one line of bounded length, in valid Unicode.

    Examples
    --------
    >>> shown("two\nlines"), shown("x" * 9, most=5)
    ('two\\nlines', 'xxxx…')
    """
    whole = _SURROGATE.sub("\ufffd", visible(text[: most + 1]))
    return whole if len(whole) <= most else whole[: most - 1] + "…"


def one_line(text: str, *, most: int) -> str:
    r"""Return a text as a one-line quotation of bounded length: blanks for line breaks.

    Examples
    --------
    >>> one_line("two\n  lines\x1b[m", most=99), one_line("x" * 9, most=5)
    ('two lines [m', 'xxxx…')
    """
    line = "".join(c if c.isprintable() else " " for c in " ".join(text[: 4 * most].split()))
    return line if len(line) <= most else line[: most - 1] + "…"


def arms_left_out(n: int) -> str:
    """Return how many runs of perturbed arms are in no number.

    Examples
    --------
    >>> arms_left_out(12), arms_left_out(1)
    ('12 runs of perturbed arms are left out', '1 run of a perturbed arm is left out')
    """
    if n == 1:
        return "1 run of a perturbed arm is left out"
    return f"{n:,} runs of perturbed arms are left out"


def sentence(words: str) -> str:
    """Return words, such as the reason of an error, as a sentence of a page.

    Examples
    --------
    >>> sentence("no label yet"), sentence("Is it labelled?")
    ('No label yet.', 'Is it labelled?')
    """
    return words[:1].upper() + words[1:] + "." * (not words.endswith((".", "!", "?")))


def counted(n: int, noun: str) -> str:
    """Return a number of things in words.

    Examples
    --------
    >>> counted(1, "disagreement"), counted(1_200, "flag")
    ('1 disagreement', '1,200 flags')
    """
    return f"{n:,} {noun}{'s' * (n != 1)}"


def names_there(name: str, there: Iterable[str]) -> str:
    """Return which names there are, and the one most like a name that is not among them.

    Examples
    --------
    >>> names_there("Verdict ", ["id", "verdict"])
    "there are id, verdict (did you mean 'verdict'?)"
    >>> names_there("x", ["id"])
    'there are id'
    """
    known = list(there)
    folded = {other.casefold(): other for other in reversed(known)}
    near = get_close_matches(name.strip().casefold()[:MOST_CHARACTERS], folded, n=1)
    listed = ", ".join(other[:80] for other in known[:40]) + ", …" * (len(known) > 40)
    hint = f" (did you mean {folded[near[0]]!r:.80}?)" if near else ""
    return f"there are {listed or 'none'}{hint}"


def several_judges(names: Iterable[str], *, most: int = 6) -> str:
    """Return that there are several judges, and how one of them is chosen, in words.

    Examples
    --------
    >>> several_judges(["a", "gpt 4"])
    '2 judges (a, gpt 4): --judge a'
    >>> several_judges(["", "strict"])
    '2 judges (strict, one without a name): --judge strict'
    """
    every = list(names)
    named = [name for name in every if name]
    listed = [name[:80] for name in named[:most]]
    listed += [f"{len(named) - most:,} more"] * (len(named) > most)
    listed += ["one without a name"] * (len(named) < len(every))
    return f"{len(every):,} judges ({', '.join(listed)}): --judge {shlex.quote(named[0][:80])}"


def named_batches(batch_id: str) -> str:
    """Return joined names in words.

    Examples
    --------
    >>> named_batches("production-001"), named_batches("production-001+production-002")
    ('batch production-001', 'batches production-001 and production-002')
    """
    *first, last = batch_id.split(TOGETHER)
    return f"batches {', '.join(first)} and {last}" if first else f"batch {last}"


def points(value: float) -> str:
    """Return half the width of an interval in percentage points.

    Examples
    --------
    >>> points(0.0353)
    '±3.5 points'
    """
    return f"±{100 * value:.1f} points"


def hours(value: float | None) -> str:
    """Return hours, or minutes below one hour and a half.

    Examples
    --------
    >>> hours(0.4), hours(12.34), hours(None)
    ('24 min', '12.3 h', 'not known')
    """
    if value is None:
        return "not known"
    return f"{60 * value:.0f} min" if value < 1.5 else f"{value:,.1f} h"


def week_of(day: date) -> str:
    """Return the week of a day or moment.

    Examples
    --------
    >>> week_of(date(2027, 1, 3))
    '2026-W53'
    """
    year, week, _ = day.isocalendar()
    return f"{year:04d}-W{week:02d}"


def weeks_of(times: "pd.Series[pd.Timestamp]") -> "pd.Series[str]":
    """Return the week of each moment, missing for a missing one or a year beyond 9999.

    Examples
    --------
    >>> import pandas as pd
    >>> weeks_of(pd.Series(pd.to_datetime(["2026-11-04", None]))).tolist()
    ['2026-W45', nan]
    """
    import pandas as pd  # for this alone: the command line spells text without it

    of, days = pd.factorize(times.dt.normalize())  # few days hold all moments
    iso = pd.Series(days).dt.isocalendar()
    parts = zip(iso["year"], iso["week"], strict=True)
    names = [*(f"{year:04d}-W{week:02d}" for year, week in parts), None]
    return pd.Series(names, dtype="str").take(of).set_axis(times.index)


def first_day(week: str) -> date:
    """Return the Monday of a week; raise ValueError if it is no ISO week.

    Examples
    --------
    >>> first_day("2026-W45")
    datetime.date(2026, 11, 2)
    """
    try:
        return date.fromisoformat(f"{week}-1")
    except ValueError as error:
        raise ValueError(f"weeks must be ISO weeks like '2026-W07', got {week!r}") from error


def calendar(first: str, last: str) -> tuple[str, ...]:
    """Return the weeks from one to another; raises as `first_day`.

    Examples
    --------
    >>> calendar("2026-W52", "2027-W01")
    ('2026-W52', '2026-W53', '2027-W01')
    """
    monday, end = first_day(first), first_day(last)
    n_weeks = (end - monday).days // 7 + 1
    return tuple(week_of(monday + timedelta(weeks=n)) for n in range(n_weeks))


def own_credit(by_workflow: Mapping[str, Mapping[str, float]]) -> list[str]:
    """Return a sentence for each workflow with credit of its own.

    Examples
    --------
    >>> own_credit({"research": {"partial_plus": 0.3}})
    ['research has its own credit: partial_plus 0.3.']
    """
    return [
        f"{shown(workflow, most=60)} has its own credit: "
        f"{', '.join(f'{name} {value:g}' for name, value in credit.items())}."
        for workflow, credit in by_workflow.items()
    ]
