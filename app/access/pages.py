"""The pages around signing in, written on the server: no script, one form each."""

from collections.abc import Sequence
from dataclasses import dataclass
from html import escape

_STYLE = """
:root { color-scheme: light dark; --ink: #1f2328; --page: #fbfbfa; --field: #ffffff;
  --line: #8b8f94; --act: #2f5d8a; --on-act: #ffffff; --trouble: #9a1c1c; }
@media (prefers-color-scheme: dark) { :root { --ink: #e4e6e9; --page: #15181c; --field: #1d2126;
  --line: #7b838d; --act: #86b4e0; --on-act: #10151a; --trouble: #ff9d94; } }
* { box-sizing: border-box; }
body { margin: 0; background: var(--page); color: var(--ink);
  font: 16px/1.5 "Source Sans", "Source Sans 3", system-ui, sans-serif; }
main { max-width: 26rem; margin: 0 auto; padding: 12vh 1.25rem 2rem; }
h1 { font-size: 1.6rem; line-height: 1.25; margin: 0 0 .75rem; }
p { margin: 0 0 1rem; }
.product { font-weight: 600; margin: 0 0 .25rem; }
label { display: block; font-weight: 600; margin: 0 0 .25rem; }
.hint { font-size: .9rem; margin-top: 1.25rem; }
input { width: 100%; font: inherit; color: inherit; background: var(--field);
  border: 1px solid var(--line); border-radius: 6px; padding: .5rem .65rem; margin: 0 0 1rem; }
button { font: inherit; font-weight: 600; color: var(--on-act); background: var(--act);
  border: 1px solid var(--act); border-radius: 6px; padding: .5rem 1.1rem; cursor: pointer; }
:focus-visible { outline: 3px solid var(--act); outline-offset: 2px; }
a { color: var(--act); }
[role=alert] { color: var(--trouble); border-left: 3px solid; padding-left: .7rem; }
code { overflow-wrap: anywhere; }
"""


@dataclass(frozen=True, slots=True)
class Field:
    """One line to fill in; `kind` is the type of the input, `fills` what a browser may put in."""

    name: str
    label: str
    fills: str
    kind: str = "password"
    value: str = ""


NAME = Field("name", "Name", "username", kind="text")
PASSPHRASE = Field("passphrase", "Passphrase", "current-password")
NEW = Field("new", "Passphrase, 12 characters or more", "new-password")
AGAIN = Field("again", "Repeat the passphrase", "new-password")


def document(title: str, *parts: str, go_on: str = "") -> str:
    """Return a page; every part is HTML already. `go_on` is where a browser goes by itself."""
    refresh = f'<meta http-equiv="refresh" content="0; url={escape(go_on)}">' if go_on else ""
    return (
        '<!DOCTYPE html>\n<html lang="en"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        f"{refresh}<title>{escape(title)} - ASR calibration</title><style>{_STYLE}</style></head>"
        f'<body><main><p class="product">ASR calibration</p><h1>{escape(title)}</h1>'
        f"{''.join(parts)}</main></body></html>\n"
    )


def notice(text: str) -> str:
    """Return a paragraph."""
    return f"<p>{escape(text)}</p>"


def alert(text: str) -> str:
    """Return a paragraph on what went wrong; a reader says it at once."""
    return f'<p role="alert" id="trouble">{escape(text)}</p>'


def hint(text: str) -> str:
    """Return a paragraph in small letters, for what stands under a form."""
    return f'<p class="hint">{escape(text)}</p>'


def command(text: str) -> str:
    """Return a line for a terminal."""
    return f"<p><code>{escape(text)}</code></p>"


def link(text: str, to: str) -> str:
    """Return a paragraph that is a link."""
    return f'<p><a href="{escape(to)}">{escape(text)}</a></p>'


def form(
    action: str, button: str, fields: Sequence[Field], *, kept: dict[str, str], trouble: str = ""
) -> str:
    """Return a form; `kept` is sent with it, `trouble` is what was wrong with it before."""
    wrong = alert(trouble) if trouble else ""
    hidden = "".join(
        f'<input type="hidden" name="{escape(name)}" value="{escape(value)}">'
        for name, value in kept.items()
    )
    # Where there is still something to type.
    first = next((field for field in fields if not field.value), fields[0] if fields else None)
    shown = "".join(_field(field, first=field is first, wrong=bool(trouble)) for field in fields)
    return (
        f'{wrong}<form method="post" action="{escape(action)}">{hidden}{shown}'
        f'<button type="submit">{escape(button)}</button></form>'
    )


def _field(field: Field, *, first: bool, wrong: bool) -> str:
    plain = ' autocapitalize="none" spellcheck="false" maxlength="80"'
    more = plain if field.kind == "text" else ' maxlength="200"'
    more += " autofocus" if first else ""
    more += ' aria-describedby="trouble"' if wrong else ""
    return (
        f'<label for="{field.name}">{escape(field.label)}</label>'
        f'<input id="{field.name}" name="{field.name}" type="{field.kind}" required '
        f'autocomplete="{field.fills}" value="{escape(field.value)}"{more}>'
    )
