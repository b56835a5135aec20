"""Planning for agreement on the command line: class shares given or from a store, and refusals."""

from pathlib import Path

import pytest

from tests.analyses.worlds import World, make_world
from tests.cli_runs import Run, data

# Wide enough to be found in a second.
WIDE = ["plan-agreement", "--half-width", "0.3", "--alpha", "0.7"]


def world(path: Path, outcomes: list[str]) -> World:
    """Make a store whose batch carries these labels of one reviewer."""
    made = make_world(path, n=40, n_drawn=40)
    labels = dict(zip(made.drawn, outcomes, strict=False))
    if labels:
        made.label("Ann", labels)
    made.store.close()
    return made


@pytest.mark.long
def test_the_class_shares_are_those_of_the_batch(asr: Run, tmp_path: Path) -> None:
    made = world(tmp_path / "asr.duckdb", ["complete"] * 30 + ["abandoned"] * 10)
    found = data(asr(*WIDE, "--json"))
    shares = dict(zip(found["classes"], found["class_shares"], strict=True))
    assert {name: share for name, share in shares.items() if share} == {
        "complete": 0.75, "abandoned": 0.25,
    }  # fmt: skip
    assert (found["basis"], found["n_basis"]) == (made.batch_id, 40)


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
    words = [
        "plan-agreement",
        "--half-width",
        "0.0005",
        "--alpha",
        ".5",
        "--class-shares",
        ".5,.5",
        "--json",
    ]
    result = asr(*words, code=1)
    found = data(result)
    assert found["typical"]["n"] is None
    assert found["typical"]["n_labels"] is None
    assert found["typical"]["status"].startswith("not_estimable: more than 100,000 items")
