"""Text from traces and files, made safe to show: no control characters, bounded length."""

import re

MOST_CHARACTERS = 200

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
