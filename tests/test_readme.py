"""Every command line in the documents is one that `asr` takes; the demo prints what they show."""

import re
import shlex
from collections.abc import Iterator
from pathlib import Path

import click
import pytest

from calibration.cli import main
from tests.cli_runs import Run

ROOT = Path(__file__).parents[1]
PAGES = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").rglob("*.md"))]
# In a code block: also behind a prompt, a path, a user or a container.
LINE = re.compile(r"(?:^|[\s/])(asr (?!asr\b)[a-z].*)$")


def command_lines() -> Iterator[tuple[str, str]]:
    """Yield the page and the words of each command line in a code block, or in backticks."""
    for page in PAGES:
        inside = False
        text = page.read_text(encoding="utf-8")
        for line in text.splitlines():
            if line.startswith("```"):
                inside = not inside
            elif (inside or line.startswith("    ")) and (found := LINE.search(line)):
                yield page.name, found[1]
            elif not inside:
                for words in re.findall(r"`(asr [^`]+)`", line):
                    yield page.name, words


def refusal(words: str) -> str | None:
    """Say why `asr` does not take a command line; a file that is not there is no reason."""
    arguments = shlex.split(words.partition(" > ")[0], comments=True)[1:]
    command: click.Command = main
    context = click.Context(main, info_name="asr")
    while isinstance(command, click.Group) and arguments and not arguments[0].startswith("-"):
        name, *arguments = arguments
        found = command.get_command(context, name)
        if found is None:
            return f"no command {name}"
        command, context = found, click.Context(found, parent=context, info_name=name)
    try:
        given, _, order = command.make_parser(context).parse_args(list(arguments))
        for option in order:
            value = given.get(option.name)
            if isinstance(value, str | list) and not isinstance(option.type, click.Path):
                option.type_cast_value(context, value)
    except click.UsageError as error:
        if error.format_message() == f"Option {arguments[-1]!r} requires an argument.":
            return None  # prose that names the option
        return error.format_message()
    return None


LINES = sorted(set(command_lines()))


def test_every_command_line_of_the_documents_is_one_that_the_command_takes() -> None:
    assert len(LINES) >= 120
    refused = {words: why for _, words in LINES if (why := refusal(words)) is not None}
    assert refused == {}


@pytest.mark.parametrize(
    ("words", "says"),
    [
        ("asr calibrat", "no command calibrat"),
        ("asr plan label", "no command label"),
        ("asr report --htm r.html", "No such option"),
        ("asr sample --n many", "not a valid integer"),
        ("asr people add Mara --role boss", "is not one of"),
    ],
)
def test_a_command_line_that_is_wrong_is_found(words: str, says: str) -> None:
    assert says in (refusal(words) or "")


@pytest.mark.long
def test_the_demo_prints_what_the_readme_shows(asr: Run) -> None:
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    shown = re.findall(r"```console\n\$ \.venv/bin/(asr demo --no-serve)\n(.*?)```", text, re.S)
    assert len(shown) == 1
    words, output = shown[0]
    assert asr(*words.split()[1:]).output == output
