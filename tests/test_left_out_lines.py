"""Every command that reads a table says before its estimates which rows are left out."""

import json
from collections.abc import Callable
from pathlib import Path

import pandas as pd
import pytest

from tests.cli_runs import Run

N = 120
LEFT_OUT = "Left out: "
CLASSES = ("complete", "partial_plus", "abandoned")


def frame(**columns: object) -> pd.DataFrame:
    """Return 120 rows; what is called takes the number of a row."""
    return pd.DataFrame(
        {
            name: [value(k) if callable(value) else value for k in range(N)]
            for name, value in columns.items()
        }
    )


def outcome(k: int) -> str:
    """Return a class; the outcome of the tenth row is missing."""
    return "NA" if k == 9 else CLASSES[k * 7 % 3]


def runs(**further: object) -> pd.DataFrame:
    return frame(
        trace_id="r{:03d}".format, workflow="support", outcome=outcome, cost_usd=0.1, **further
    )


def of_tasks(**further: object) -> pd.DataFrame:
    return frame(task_id=lambda k: f"t{k // 3}", trial=lambda k: k % 3, outcome=outcome, **further)


def runs_file() -> list[str]:
    runs().to_csv("runs.csv", index=False)
    return ["runs.csv"]


def two_files() -> list[str]:
    runs().to_csv("a.csv", index=False)
    runs().to_csv("b.csv", index=False)
    return ["a.csv", "b.csv"]


def three_files() -> list[str]:
    runs().to_csv("c.csv", index=False)
    return [*two_files(), "c.csv"]


def file_of_groups() -> list[str]:
    runs(model=lambda k: f"m{k % 3}").to_csv("models.csv", index=False)
    return ["models.csv"]


def gated_file() -> list[str]:
    Path("gates.toml").write_text("", encoding="utf-8")
    return [*runs_file(), "--gates", "gates.toml"]


def trials_file() -> list[str]:
    of_tasks().to_csv("trials.csv", index=False)
    return ["trials.csv"]


def audited_file() -> list[str]:
    of_tasks(tool_calls=2).to_csv("audited.csv", index=False)
    return ["audited.csv"]


def interactions() -> list[str]:
    frame(
        conversation_id=lambda k: f"c{k // 2}",
        interaction=lambda k: k % 2 + 1,
        answer_correct=lambda k: "perhaps" if k == 9 else ("yes", "no")[k % 2],
    ).to_csv("interactions.csv", index=False)
    return ["interactions.csv"]


def failures() -> list[str]:
    frame(
        trace_id="r{:03d}".format,
        failure_type="citation",
        ci_gate=lambda k: "perhaps" if k == 9 else ("yes", "no")[k % 2],
        user="yes",
    ).to_csv("failures.csv", index=False)
    return ["failures.csv"]


def judged() -> list[str]:
    runs().iloc[:60].to_csv("labels.csv", index=False)
    runs().assign(outcome=lambda rows: rows["outcome"].replace("NA", "complete")).to_csv(
        "verdicts.csv", index=False
    )
    return ["--human", "labels.csv", "--verdicts", "verdicts.csv"]


def ratings() -> list[str]:
    table = frame(item="i{:03d}".format, rater_1=outcome, rater_2=outcome)
    table.to_csv("ratings.csv", index=False)
    return ["ratings.csv"]


def useful() -> list[str]:
    frame(**{"class": outcome}, usefulness=lambda k: (100, 35, 0)[k * 7 % 3]).to_csv(
        "useful.csv", index=False
    )
    return ["useful.csv"]


COMMANDS: dict[str, Callable[[], list[str]]] = {
    "report": runs_file,
    "compare": two_files,
    "compare --seed 1": three_files,
    "compare --by model": file_of_groups,
    "gate": gated_file,
    "trials": trials_file,
    "reliability": trials_file,
    "tasks audit": audited_file,
    "tools": interactions,
    "layers": failures,
    "calibrate": judged,
    "agreement": ratings,
    "taxonomy suggest": runs_file,
    "taxonomy fit-credit": useful,
}
# Of ratings, labels and verdicts a missing one is no row that is left out: it is named.
INSTEAD = {
    "agreement": "labels written NA were taken as missing",
    "calibrate": "label written NA was taken as missing",
    "verdicts": "verdict written NA was taken as missing",
}
WITHOUT_HTML = {"gate"}


def is_said(text: str, command: str) -> bool:
    return LEFT_OUT in text or INSTEAD.get(command, LEFT_OUT) in text


@pytest.mark.parametrize("command", COMMANDS)
def test_the_short_answer_says_what_is_left_out_before_its_estimates(
    asr: Run, command: str
) -> None:
    words = [*command.split(), *COMMANDS[command]()]
    result = asr(*words, code=None)
    assert result.exit_code in (0, 1), result.output
    assert is_said(result.stdout, command), result.output
    before = result.stdout[: result.stdout.index(INSTEAD.get(command, LEFT_OUT))]
    assert "95%" not in before, "an estimate stands before the line"


@pytest.mark.parametrize("command", sorted(COMMANDS.keys() - WITHOUT_HTML))
def test_so_does_the_answer_beside_a_page(asr: Run, command: str) -> None:
    words = [*command.split(), *COMMANDS[command]()]
    result = asr(*words, "--html", "page.html", code=None)
    assert is_said(result.output, command), result.output
    assert is_said(Path("page.html").read_text(encoding="utf-8"), command)


def readings(value: object) -> list[dict[str, object]]:
    """Return what JSON says of the tables that were read."""
    if isinstance(value, dict):
        own = value.get("reading") or value.get("readings")
        listed = own if isinstance(own, list) else [own] if own else []
        return listed or [one for inner in value.values() for one in readings(inner)]
    return []


@pytest.mark.parametrize("command", COMMANDS)
def test_with_json_the_line_goes_to_standard_error(asr: Run, command: str) -> None:
    words = [*command.split(), *COMMANDS[command]()]
    result = asr(*words, "--json", code=None)
    assert is_said(result.stderr, command), result.stderr
    found = readings(json.loads(result.stdout))
    assert found, "no reading"
    assert any(one["left_out"] or one["missing_words"] for one in found), found


def stored(drawn: list[str], name: str) -> list[str]:
    rows = {"trace_id": [*drawn, drawn[0] + "x"], "outcome": ["complete"] * len(drawn) + ["NA"]}
    people = {"reviewer": "ann"} if name == "labels.csv" else {}
    pd.DataFrame(rows | people).to_csv(name, index=False)
    return ["import", name]


@pytest.mark.parametrize("command", ["labels", "verdicts"])
def test_so_do_imports(asr: Run, filled: list[str], command: str) -> None:
    words = [command, *stored(filled, f"{command}.csv")]
    words += ["--judge", "j2"] if command == "verdicts" else []
    assert is_said(asr(*words).stdout, command)
    result = asr(*words, "--json")
    assert is_said(result.stderr, command)
    found = readings(json.loads(result.stdout))
    assert any(one["left_out"] or one["missing_words"] for one in found)
