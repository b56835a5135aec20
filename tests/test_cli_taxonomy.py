"""`asr taxonomy`: its own credit of a workflow, suggested ceilings, and a fitted credit."""

import json
import re
import tomllib
from importlib.resources import files
from pathlib import Path

import pytest

from calibration.taxonomy import load_taxonomy
from tests.cli_runs import Run
from tests.stores import copy_store

ROOT = Path(__file__).parents[1]
METHODS = (ROOT / "docs" / "methods" / "asr.md").read_text(encoding="utf-8")
INPUTS = ROOT / "tests" / "fixtures" / "snapshots"
DEFAULT_TOML = files("calibration").joinpath("taxonomy.toml").read_text(encoding="utf-8")


def test_the_document_shows_what_the_command_prints(
    asr: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    shown = re.search(r"```console\n\$ (asr taxonomy fit-credit .*)\n(?s:(.*?))```", METHODS)
    assert shown is not None
    monkeypatch.chdir(INPUTS)
    # The fingerprint changes with the version of the package.
    assert asr(*shown[1].split()[1:]).output.partition("\nfingerprint")[0] == shown[2]


def test_the_credit_of_the_document_is_that_of_the_workflow(asr: Run, tmp_path: Path) -> None:
    block = re.search(r"```toml\n(\[workflows\.research\]\n(?s:.*?))```", METHODS)
    assert block is not None
    fork = tmp_path / "fork.toml"
    plain = re.compile(r"\[workflows\.research\]\n(?s:.*?)\n\n")
    text = plain.sub(block[1] + "\n", DEFAULT_TOML).replace('"1.0"', '"1.1"', 1)
    fork.write_text(text, encoding="utf-8")
    assert load_taxonomy(fork).credit_in("research")["partial_plus"] == 0.3
    store = str(tmp_path / "own.duckdb")
    used = asr("taxonomy", "use", str(fork), "--store", store)
    assert "research has its own credit: partial_plus 0.3." in used.output
    shown = json.loads(asr("taxonomy", "show", "--store", store, "--json").output)
    assert shown["workflows"]["research"]["credit"] == {"partial_plus": 0.3}
    fork.write_text(text.replace("partial_plus = 0.3", "partial_pluss = 0.3"), encoding="utf-8")
    refused = asr("taxonomy", "use", str(fork), "--store", store, code=2)
    assert "workflow 'research': credit names the unknown class 'partial_pluss'" in refused.output


def runs(path: Path, n: int = 80) -> Path:
    """Write runs of two workflows at 1 to n cents a unit, each of two units and acceptable."""
    rows = ["trace_id,workflow,outcome,cost_usd,units"]
    for k in range(1, n + 1):
        rows.append(f"a{k},research,{'complete' if k % 2 else 'partial_plus'},{k / 50},2")
        rows.append(f"b{k},research,abandoned,500,2")
    rows += [f"c{k},scheduling,complete,0.01,1" for k in range(9)]
    path.write_text("\n".join(rows), encoding="utf-8")
    return path


def test_ceilings_are_percentiles_of_what_acceptable_runs_cost(asr: Run, tmp_path: Path) -> None:
    """Of 80 runs at .01 to .80 a unit the 72nd is P90: .72; none is above 2.00."""
    source, out = runs(tmp_path / "runs.csv"), tmp_path / "ceilings.toml"
    done = asr("taxonomy", "suggest", str(source), "--json", "--out", str(out))
    found = json.loads(done.stdout)["workflows"]
    research = found["research"]
    assert (research["n"], research["ceiling_usd"]) == (80, 2.0)
    assert research["suggested"]["value"] == pytest.approx(0.72)
    low, high = research["suggested"]["interval"]
    assert 0.6 < low < 0.72 < high < 0.8
    assert research["share_above"]["value"] == 0.0
    few = found["scheduling"]["suggested"]
    assert (few["interval"], few["status"]) == (
        None, "provisional: no interval, 9 runs are too few",
    )  # fmt: skip
    fragment = tomllib.loads(out.read_text(encoding="utf-8"))["workflows"]
    assert fragment["research"] == {"ceiling_usd": 0.72, "unit": "task"}
    assert fragment["scheduling"]["ceiling_usd"] == 0.15
    half = asr("taxonomy", "suggest", str(source), "--percentile", "0.5", "--json")
    assert json.loads(half.stdout)["workflows"]["research"]["suggested"]["value"] == 0.4
    for more, says in (
        (["--out", str(source)], "is one of the files that are read"),
        (["--batch", "b"], "--batch is for a store"),
        (["--percentile", "1"], "not in the range"),
        (["--percentile", "nan"], "must be a number"),
    ):
        assert says in asr("taxonomy", "suggest", str(source), *more, code=2).output
    source.write_text("trace_id,workflow,outcome,cost_usd\na,research,abandoned,1\n")
    nothing = asr("taxonomy", "suggest", str(source), code=1)
    assert "no acceptable run with a known cost" in nothing.output


def test_ceilings_of_a_store_are_those_of_labels_that_all_reviewers_accept(
    asr: Run, built_demo: Path, tmp_path: Path
) -> None:
    store = copy_store(built_demo, tmp_path / "demo.duckdb")
    shown = asr("taxonomy", "suggest", "--store", str(store))
    assert "that all their reviewers call complete or partial_plus" in shown.output
    fork = asr("taxonomy", "suggest", "--store", str(store), "--taxonomy", "t.toml", code=2)
    assert "--taxonomy is for files" in fork.output


@pytest.mark.parametrize(
    ("text", "code", "says"),
    [
        ("", 2, "the file is empty"),
        ("class,task\ncomplete,a\n", 2, "neither is there"),
        ("class,usefulness,feedback\ncomplete,1,up\n", 2, "both are there"),
        ("kind,usefulness\ncomplete,1\n", 2, "column 'class' is missing"),
        ("class,usefulness\nwon,1\n", 2, "--map won=CLASS reads them, as one of complete"),
        ("class,usefulness\ncomplete,101\n", 1, "usefulness is a number from 0 to 100"),
        ("class,usefulness\ncomplete,90\npartial_plus,40\n", 1, "no run of partial_minus or"),
        ("class,feedback\ncomplete,maybe\n", 1, "feedback is up or down, 1 or 0"),
    ],
)
def test_tables_without_a_credit_say_why(
    asr: Run, tmp_path: Path, text: str, code: int, says: str
) -> None:
    path = tmp_path / "table.csv"
    path.write_text(text, encoding="utf-8")
    assert says in asr("taxonomy", "fit-credit", str(path), code=code).output


def test_feedback_and_tasks_are_read(asr: Run, tmp_path: Path) -> None:
    """Up: 9 of 10 complete, 5 of 10 partial, 1 of 10 failed runs: (.5 - .1) / (.9 - .1)."""
    lines = ["outcome,feedback,task"]
    for outcome, ups in (("complete", 9), ("partial_plus", 5), ("hallucinated", 1)):
        lines += [f"{outcome},{'up' if k < ups else 'Down'},t{k}" for k in range(10)]
    lines.append("abandoned,NaN,")
    path = tmp_path / "feedback.csv"
    path.write_text("\n".join(lines), encoding="utf-8")
    found = json.loads(asr("taxonomy", "fit-credit", str(path), "--json").stdout)
    assert found["credit"]["value"] == pytest.approx(0.5)
    assert (found["n"], found["n_tasks"], found["by_task"]) == (30, 10, True)
    (unread,) = found["reading"]["left_out"]
    assert (unread["code"], unread["rows"], unread["first"]["line"]) == ("bad_value", 1, 32)
    assert found["credit"]["method"] == "jackknife over tasks, t"
