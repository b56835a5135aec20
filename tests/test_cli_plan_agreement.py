"""Planning for agreement on the command line: class shares given or from a store, and refusals."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from calibration.cli import main
from calibration.records import OUTCOMES
from tests.analyses.worlds import World, make_world

Run = Callable[..., Result]

# Wide enough to be found in a second.
WIDE = ["--half-width", "0.3", "--alpha", "0.7"]

GIVEN = ["--class-shares", ".3,.2,.2,.17,.13"]


@pytest.fixture
def asr(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Run:
    """Run `asr plan-agreement` in a directory of its own; an exception is a failed test."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("ASR_STORE", raising=False)

    def run(*arguments: object, code: int = 0) -> Result:
        result = CliRunner().invoke(main, ["plan-agreement", *map(str, arguments)])
        if result.exception is not None and not isinstance(result.exception, SystemExit):
            raise result.exception
        assert result.exit_code == code, result.output
        if code and "Usage:" not in result.stderr:
            assert result.stderr.count("\n") == 1, result.stderr
            assert result.stderr.startswith("error: ")
        return result

    return run


def world(path: Path, outcomes: list[str], *, simulated: bool = False) -> World:
    """Make a store whose batch carries these labels of one reviewer."""
    changes = {f"r{k:03d}": {"simulated": simulated} for k in range(40)}
    made = make_world(path, n=40, n_drawn=40, traces=changes)
    labels = dict(zip(made.drawn, outcomes, strict=False))
    if labels:
        made.label("Ann", labels, simulated=simulated)
    made.store.close()
    return made


def test_with_class_shares_it_needs_no_store(asr: Run, tmp_path: Path) -> None:
    found = json.loads(asr(*WIDE, *GIVEN, "--raters", 3, "--missing", 0.25, "--json").stdout)
    assert found.keys() >= {"coefficient", "alpha", "target", "typical", "assured", "notes"}
    assert (found["n_raters"], found["missing"], found["target"]) == (3, 0.25, 0.3)
    assert (found["basis"], found["n_basis"], found["simulated"]) == (None, 0, False)
    for part in (found["typical"], found["assured"]):
        assert part["status"] == "ok"
        assert part["half_width_interval"][0] <= part["half_width"] <= 0.3
        assert part["n_labels"] == round(part["n"] * 3 * 0.75)
    assert found["typical"]["n"] < found["assured"]["n"]
    assert list(tmp_path.iterdir()) == []


@pytest.mark.long
def test_it_is_said_in_words_and_the_same_every_time(asr: Run) -> None:
    first = asr(*WIDE, *GIVEN).stdout
    assert first.startswith("alpha to ±.300 (95 %), 2 reviewers a trace, alpha 0.7 expected\n")
    assert "class 1 30.0 %" in first
    assert "nine samples in ten are with" in first
    assert "err independently" in first
    assert asr(*WIDE, *GIVEN).stdout == first
    assert asr(*WIDE, *GIVEN, "--coefficient", "gwet_ac").stdout.startswith("AC1 to ±.300")


@pytest.mark.long
def test_the_class_shares_are_those_of_the_batch(asr: Run, tmp_path: Path) -> None:
    made = world(tmp_path / "asr.duckdb", ["complete"] * 30 + ["abandoned"] * 10)
    found = json.loads(asr(*WIDE, "--json").stdout)
    assert found["classes"] == list(OUTCOMES)
    assert dict(zip(OUTCOMES, found["class_shares"], strict=True)) == {
        "complete": 0.75, "partial_plus": 0.0, "partial_minus": 0.0, "hallucinated": 0.0,
        "abandoned": 0.25,
    }  # fmt: skip
    assert (found["basis"], found["n_basis"]) == (made.batch_id, 40)
    shown = asr(*WIDE, "--batch", made.batch_id).stdout
    assert "complete 75.0 %" in shown
    assert f"those of 40 labels of {made.batch_id}" in shown
    assert "no batch 'x'" in asr(*WIDE, "--batch", "x", code=2).stderr


def test_simulated_labels_are_said_to_be(asr: Run, tmp_path: Path) -> None:
    world(tmp_path / "asr.duckdb", ["complete", "abandoned"], simulated=True)
    assert asr(*WIDE).stdout.startswith("SIMULATED DATA")


@pytest.mark.parametrize(
    ("outcomes", "why"),
    [([], "has no labels yet"), (["complete"] * 9, "has labels of one class only")],
)
def test_labels_that_show_no_shares_are_refused(
    asr: Run, tmp_path: Path, outcomes: list[str], why: str
) -> None:
    world(tmp_path / "asr.duckdb", outcomes)
    error = asr(*WIDE, code=1).stderr
    assert why in error
    assert "give --class-shares" in error


def test_what_no_number_of_traces_gives_is_exit_1(asr: Run) -> None:
    words = ["--half-width", "0.0005", "--alpha", ".5", "--class-shares", ".5,.5", "--json"]
    result = asr(*words, code=1)
    found: dict[str, Any] = json.loads(result.stdout)
    assert found["typical"]["n"] is None
    assert found["typical"]["n_labels"] is None
    assert found["typical"]["status"].startswith("not_estimable: more than 100,000 items")


HOSTILE: list[tuple[list[str], str]] = [
    (WIDE, "no store to take class shares from; give --class-shares"),
    (["--alpha", ".7", *GIVEN], "Missing option '--half-width'"),
    (["--half-width", ".1", *GIVEN], "Missing option '--alpha'"),
    (["--half-width", "nan", "--alpha", ".7", *GIVEN], "half_width must be in (0, 1)"),
    (["--half-width", "10", "--alpha", ".7", *GIVEN], "half_width must be in (0, 1)"),
    (["--half-width", ".1", "--alpha", "-1", *GIVEN], "alpha must be in [0, 1]"),
    ([*WIDE, *GIVEN, "--raters", "1"], "n_raters must be at least 2"),
    ([*WIDE, *GIVEN, "--raters", "900"], "more than 300,000 patterns"),
    ([*WIDE, *GIVEN, "--raters", "9" * 30], "more than 300,000 patterns"),
    ([*WIDE, *GIVEN, "--missing", "1"], "missing must be in [0, 1)"),
    ([*WIDE, *GIVEN, "--seed", "-1"], "seed must not be negative"),
    ([*WIDE, *GIVEN, "--batch", "x"], "--class-shares and --batch"),
    ([*WIDE, *GIVEN, "--coefficient", "x"], "Invalid value for '--coefficient'"),
    ([*WIDE, "--class-shares", ""], "must be numbers parted by commas"),
    ([*WIDE, "--class-shares", ".5,a"], "must be numbers parted by commas"),
    ([*WIDE, "--class-shares", "1"], "two classes or more"),
    ([*WIDE, "--class-shares", "30,70"], "must sum to 1"),
    ([*WIDE, "--class-shares", "nan,1"], "shares from 0 up"),
    ([*WIDE, "--class-shares", "inf,1"], "shares from 0 up"),
]


@pytest.mark.parametrize(("words", "why"), HOSTILE, ids=lambda value: str(value)[-40:])
def test_bad_options_are_exit_2(asr: Run, tmp_path: Path, words: list[str], why: str) -> None:
    assert why in asr(*words, code=2).stderr
    assert list(tmp_path.iterdir()) == []
