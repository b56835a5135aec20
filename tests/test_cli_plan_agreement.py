"""Planning for agreement on the command line: class shares given or from a store, and refusals."""

from pathlib import Path

import pytest

from tests.analyses.worlds import World, make_world
from tests.cli_runs import Run, data

# Wide enough to be found in a second.
WIDE = ["plan", "agreement", "--half-width", "0.3", "--alpha", "0.7"]


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
    assert {n: s for n, s in shares.items() if s} == {"complete": 0.75, "abandoned": 0.25}
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
