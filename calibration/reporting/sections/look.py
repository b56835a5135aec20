"""What a file is for, and how it would be read, in lines of text."""

from collections.abc import Iterator
from datetime import datetime

from calibration.analyses.look import FileLook, RoleContent, WordCount
from calibration.reporting.document import usd
from calibration.text import counted, shown

MOST_NAME, MOST_WORD, MOST_WORDS = 40, 40, 6

# What follows where no column has a role.
WITHOUT = {
    "trace_id": "each row is a run, by its number",
    "task_id": "each run is a task of its own",
    "cost_usd": "no cost penalty",
    "item": "rows are numbered",
}


def look_lines(look: FileLook) -> Iterator[str]:
    """Yield how a file is written, its columns by role, what is left out, and the command."""
    reading = look.reading
    yield f"{reading.place}: {counted(reading.rows, _noun(look))}, {look.written}"
    rows = [
        (one.role, "(none)" if one.column is None else one.column, content_words(one))
        for one in look.roles
    ]
    if reading.not_read:
        rows.append(("not read", reading.unread, ""))
    names = [shown(column, most=MOST_NAME) for _, column, content in rows if content]
    role_width = max((len(role) for role, _, _ in rows), default=0)
    name_width = max(map(len, names), default=0)
    for role, column, content in rows:
        name = shown(column, most=MOST_NAME if content else 400)
        yield f"  {role.ljust(role_width)}  {name.ljust(name_width)}  {content}".rstrip()
    yield from (line for line in (*reading.notes, reading.left_out_line) if line)
    if reading.folded_line:
        yield reading.folded_line
    if reading.is_over_limit:
        yield shown(reading.refusal, most=600)
    yield f"  {look.command}"


def _noun(look: FileLook) -> str:
    return "run" if look.used_for == "traces" else "row"


def content_words(content: RoleContent) -> str:
    """Return what a column holds, in a few words."""
    if content.column is None:
        return WITHOUT.get(content.role, "")
    if content.low is not None and content.high is not None:
        ends = dict.fromkeys(_amount(content.role, end) for end in (content.low, content.high))
        return f"{' to '.join(ends)}, {content.known:,} known"
    if content.words and (content.role == "outcome" or len(content.words) <= MOST_WORDS):
        listed = ", ".join(map(_word, content.words[:MOST_WORDS]))
        more = (content.different or 0) - MOST_WORDS
        return listed + (f" and {more:,} more" if more > 0 else "")
    if content.different is not None:
        return counted(content.different, "different value")
    return f"{content.known:,} known"


def _word(one: WordCount) -> str:
    word = shown(one.word, most=MOST_WORD) or "(empty)"
    return f"{word} = {one.taken_as} {one.rows:,}" if one.taken_as else f"{word} {one.rows:,}"


def _amount(role: str, value: float | str) -> str:
    if isinstance(value, str):
        return f"{datetime.fromisoformat(value):%Y-%m-%d %H:%M}"
    if role == "cost_usd":
        return usd(value)
    return f"{value:.4g} s" if role == "latency_s" else f"{value:.4g}"
