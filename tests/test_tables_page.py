"""docs/tables.md: its tables are made of the code, and what it shows is what `asr` answers.

``ASR_SNAPSHOTS=write`` writes the tables anew.
"""

import re
import shlex
from collections.abc import Callable, Iterable
from pathlib import Path

import pytest
from click.testing import Result

from calibration.cli.reading_options import OPTIONS
from calibration.errors import InputError
from calibration.tables import columns, layout, words
from calibration.tables.columns import ALIASES
from calibration.tables.reading import DEPENDS, HARMLESS
from calibration.tables.scales import (
    BOTH,
    CHECKS,
    SURE,
    OutcomeColumn,
    class_of_grade,
    read_outcomes,
)
from calibration.taxonomy import default_taxonomy
from tests.snapshot_files import hold

ROOT = Path(__file__).parents[1]
PAGE = ROOT / "docs" / "tables.md"
PART = re.compile(r"(<!-- made of the code: ([a-z ,-]+) -->\n).*?(<!-- end -->)", re.DOTALL)

# What each role says, in the words of the page; the names are those of the code.
OF_RUNS = {
    "outcome": ("how the run ended: a class, or pass or fail", "asked for"),
    "trace_id": ("the run", "the rows are numbered"),
    "task_id": ("the task, which several runs may share", "each run is a task of its own"),
    "trial": ("which run of the task", "the rows of a task in order"),
    "cost_usd": ("US dollars", "no cost penalty"),
    "workflow": ("kind of work, with its cost ceiling", "one, without a name"),
    "started_at": ("when the run began", "no weeks"),
    "latency_s": ("how long it took; `_ms` is divided by 1,000", "not known"),
    "arm": ("what tells agents apart", "one agent"),
}
OF_ANSWERS = {
    "item": "what was rated",
    "rater": "who rated it, in tables of ratings",
    "label": "the rating",
    "reviewer": "who gave a label, in tables of labels",
    "human": "what people said, beside a judge",
    "verdict": "what the judge said",
    "judge": "which judge",
    "updated_at": "when it was given",
}
OF_WORDS = {
    "pass": words.PASS,
    "fail": words.FAIL,
    "ended without a result": words.ENDED,
    "no outcome yet, left out": words.PENDING,
    "missing, in exactly this spelling": ("an empty cell", *sorted(words.MISSING - {""})),
    "read only where a column holds both and nothing else": tuple(map("/".join, words.PAIRS)),
}


def code(names: Iterable[str]) -> str:
    """Return names as code, separated by commas; what is no name stays as it is."""
    listed = (name if name == "an empty cell" else f"`{name}`" for name in names)
    return ", ".join(listed).replace("|", "\\|")


def names_of(role: str) -> str:
    """Return the names of a role in order; those of the outcome by what they say of 0 and 1."""
    if role == "outcome":
        return "; then ".join(map(code, columns.OUTCOMES))
    if role == "task_id":
        repeated = code(columns.REPEATED_TASKS)
        return f"{code(columns.TASKS)}; then, where its values repeat, {repeated}"
    if role == "trace_id":
        return f"`trace_id`; then, where its values differ, {code(columns.RUN_IDS)}, any `*_id`"
    more = ", any other `*_id`" if role == "item" else ""
    return code(ALIASES[role]) + more


def table(*rows: Iterable[str]) -> str:
    first, *others = (f"| {' | '.join(row)} |\n" for row in rows)
    return first + "|---" * (first.count(" | ") + 1) + "|\n" + "".join(others)


def columns_of_runs() -> str:
    rows = [(f"`{r}`", what, names_of(r), without) for r, (what, without) in OF_RUNS.items()]
    return table(("role", "what it is", "names, the first that is there counts", "without"), *rows)


def columns_of_ratings() -> str:
    rows = [(f"`{role}`", what, names_of(role)) for role, what in OF_ANSWERS.items()]
    return table(("role", "what it is", "names"), *rows)


def never_outcomes() -> str:
    bad = sorted(default_taxonomy().follow_up)
    return f"{code((*columns.NEVER_OUTCOMES, *bad))}.\n"


def words_of_cells() -> str:
    rows = [(taken, code(spelled)) for taken, spelled in OF_WORDS.items()]
    return table(("is taken as", "words, in any capitals"), *rows)


def scales_of_numbers() -> str:
    taxonomy = default_taxonomy()
    grades = ", ".join(f"{n} `{class_of_grade(n, taxonomy)}`" for n in (5, 4, 3, 2, 1))
    sure = code([*(name for name in SURE if name not in CHECKS)])
    return table(
        ("numbers", "read as", "option"),
        (f"0 and 1 in {code(CHECKS)}, {sure}", "fail and pass", ""),
        (f"0 and 1 in {code(BOTH)}", "fail and pass if both occur", "else `--scale`"),
        ("0 and 1 in any other column", "a question", "`--map 1=pass,0=fail`, or the reverse"),
        ("from 0 to 1", "a question", "`--scale 0-1 --pass-at 0.5`"),
        (
            f"fractions beside 0 and 1 in {CHECKS[0]}, {CHECKS[1]}, ...",
            "left out as partial scores",
            "`--pass-at 1`",
        ),
        ("1 to 5", "a question", f"`--scale 1-5`: {grades}; a fraction is none"),
        ("any other", "a question", "`--scale LOW-HIGH --pass-at SCORE`"),
    )


def not_raters() -> str:
    return f"{code(sorted(layout.NO_RATER))}.\n"


def reasons() -> str:
    rows = [(f"`{name}`", said, "yes") for name, said in DEPENDS.items()]
    rows += [(f"`{name}`", said, "no") for name, said in HARMLESS.items()]
    return table(("in JSON", "in words", "may depend on the outcome"), *rows)


def options() -> str:
    rows = [(f"`{name}`", shown["help"]) for name, shown in OPTIONS.items()]
    return table(("option", "what it says"), *rows)


PARTS: dict[str, Callable[[], str]] = {
    "options": options,
    "columns of runs": columns_of_runs,
    "never outcomes": never_outcomes,
    "columns of ratings, labels and verdicts": columns_of_ratings,
    "not raters": not_raters,
    "words": words_of_cells,
    "scales": scales_of_numbers,
    "reasons": reasons,
}


def test_the_tables_of_the_page_are_those_of_the_code() -> None:
    kept = PAGE.read_text(encoding="utf-8")
    assert {name for _, name, _ in PART.findall(kept)} == set(PARTS)
    hold(PAGE, PART.sub(lambda part: part[1] + PARTS[part[2]]() + part[3], kept))


def test_every_role_and_group_of_the_code_is_on_the_page() -> None:
    of_runs = {*columns.OF_RUNS, "arm"} - {"model"}  # the first of the arms
    assert set(OF_RUNS) == of_runs
    assert {*OF_RUNS, *OF_ANSWERS, "model"} == set(ALIASES)
    spelled = {word for group in list(OF_WORDS.values())[:4] for word in group}
    assert spelled == set(words.VERDICTS)


@pytest.mark.parametrize(
    ("names", "values", "expected"),
    [
        ((*CHECKS, *SURE), "0 1", {"0": "fail", "1": "pass"}),
        (BOTH, "0 1", {"0": "fail", "1": "pass"}),
        (BOTH, "1", "--scale 0-1 or --scale 1-5"),
        (("label", "verdict", "result", "rating"), "0 1", "--map 1=pass,0=fail"),
        ((*BOTH, "reward", "label"), "0 0.4 1", "--scale 0-1 --pass-at 0.5"),
        (CHECKS, "0 0.4 1", {"0": "fail", "0.4": "partial_score", "1": "pass"}),
        ((*CHECKS, *BOTH, "label"), "1 3 5", "--scale 1-5"),
        ((*CHECKS, *BOTH, "label"), "1 40", "another scale with --pass-at"),
    ],
)
def test_numbers_are_read_as_the_table_of_scales_says(
    names: Iterable[str], values: str, expected: dict[str, str] | str
) -> None:
    for name in names:
        counts = dict.fromkeys(values.split(), 3)
        column = OutcomeColumn(place="a.csv", name=name, role_name=name, counts=counts)
        if isinstance(expected, str):
            with pytest.raises(InputError, match=re.escape(expected)):
                read_outcomes([column], taxonomy=default_taxonomy())
        else:
            found = read_outcomes([column], taxonomy=default_taxonomy())
            assert {**found.verdicts, **found.left_out} == expected


def blocks() -> list[str]:
    text = PAGE.read_text(encoding="utf-8")
    return re.findall(r"^```console\n(.*?)```", text, re.DOTALL | re.MULTILINE)


def files() -> dict[str, str]:
    """Return the files that the page shows, by the name that stands before each."""
    text = PAGE.read_text(encoding="utf-8")
    found = re.findall(r"`([\w.-]+\.csv)`[^\n]*:\n\n```csv\n(.*?)```", text, re.DOTALL)
    return dict(found)


@pytest.mark.parametrize("shown", blocks())
def test_what_the_page_shows_is_what_the_command_answers(
    shown: str, asr: Callable[..., Result]
) -> None:
    for name, content in files().items():
        Path(name).write_text(content, encoding="utf-8")
    commands = re.split(r"^\$ asr ", shown, flags=re.MULTILINE)[1:]
    assert commands
    for command in commands:
        line, _, expected = command.partition("\n")
        code = 1 if "more than 2.0%" in expected else 2 if "error:" in expected else 0
        done = asr(*shlex.split(line), code=code)
        answer = (done.stdout + done.stderr).split()
        assert " ".join(expected.split()) in " ".join(answer)


def test_pages_that_read_tables_link_to_it() -> None:
    pages = "report gates library coming-from exports trace-format".split()
    pages += [
        f"methods/{name}" for name in "agreement calibration trials reliability tools".split()
    ]
    texts = {name: (ROOT / "docs" / f"{name}.md").read_text(encoding="utf-8") for name in pages}
    assert [name for name, text in texts.items() if "tables.md" not in text] == []
    assert "docs/tables.md" in (ROOT / "README.md").read_text(encoding="utf-8")
