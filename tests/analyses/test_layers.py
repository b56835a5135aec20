"""Which layer caught which failure: counts by hand, from tables and from a store."""

import itertools
import re
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from calibration.analyses.layers import LAYERS, LayersAnalysis, layers_of_store, layers_of_table
from calibration.errors import CalibrationError, InputError
from calibration.records import LabelDraft
from calibration.reporting import to_json
from calibration.reporting.document import text_lines
from calibration.reporting.sections.layers import document
from calibration.statistics.intervals import exact_limits
from tests.analyses.conftest import NewWorld
from tests.analyses.production_files import write
from tests.analyses.test_signals import signals_of, traces
from tests.cli_runs import Run

PAGE = (Path(__file__).parents[2] / "docs" / "evaluation.md").read_text(encoding="utf-8")
TABLE = re.findall(r"```csv\n(.*?)```", PAGE, flags=re.DOTALL)[0]


def counts(found: LayersAnalysis) -> dict[str, tuple[list[int], list[int], int]]:
    """Return what each layer caught, what it alone caught, and what none caught, by type."""
    rows = {of.name: of for of in (found.all_types, *found.types)}
    return {
        name: ([c.n for c in of.caught], [c.n_alone for c in of.caught], of.n_nowhere)
        for name, of in rows.items()
    }


def test_the_example_of_the_documents(asr: Run) -> None:
    Path("failures.csv").write_text(TABLE, encoding="utf-8")
    ((words, shown),) = re.findall(r"```console\n\$ asr (layers .*)\n([^`]*)```", PAGE)
    assert asr(*words.split()).stdout == shown
    found = layers_of_table(Path("failures.csv"))
    assert counts(found) == {
        "all": ([4, 4, 3, 5], [2, 2, 1, 3], 0),
        "invented citation": ([1, 2, 0, 3], [1, 1, 0, 2], 0),
        "wrong account": ([3, 2, 0, 1], [2, 1, 0, 1], 0),
        "loop": ([1, 0, 3, 1], [0, 0, 1, 0], 0),
    }
    citation = found.types[0]
    assert (found.of_users, citation.by("user").alone.value) == ("user", 0.4)
    assert found.types[1].caught[2].share.interval == exact_limits(0, 5, 0.95)
    assert found.types[2].caught[0].share.status.startswith("not_estimable: no interval from 3")
    data = to_json.data(found)
    assert data["types"]["invented citation"]["caught"]["user"]["n_alone"] == 2


def test_a_row_a_catch_says_the_same(tmp_path: Path) -> None:
    frame = pd.read_csv(Path(write_text(tmp_path / "w.csv", TABLE)))
    rows = [
        {"trace_id": row.trace_id, "failure_type": row.failure_type, "layer": layer}
        for row in frame.itertuples()
        for layer in LAYERS
        if getattr(row, layer) == "yes"
    ]
    rows += [{"trace_id": "r99", "failure_type": "loop", "layer": ""}]
    long, wide = layers_of_table(Path(write(tmp_path / "l.csv", rows))), layers_of_table(frame)
    one, other = counts(long), counts(wide)
    assert one.pop("loop") == ([1, 0, 3, 1], [0, 0, 1, 0], 1)
    assert one.pop("all")[:2] == other.pop("all")[:2]
    assert one == {name: of for name, of in other.items() if name != "loop"}
    assert "1 known failures were caught by none" in "\n".join(text_lines(document(long)))


def write_text(path: Path, text: str) -> Path:
    path.write_text(text, encoding="utf-8")
    return path


def test_the_runs_of_a_task_are_one_unit() -> None:
    """Ten tasks of four runs that all agree: as sure as ten runs."""
    rows = [
        {"trace_id": f"r{k}", "failure_type": "f", "task_id": f"t{k // 4}", "a": k < 20, "b": True}
        for k in range(40)
    ]
    found = layers_of_table(pd.DataFrame(rows), layers=("a", "b"))
    apart = layers_of_table(pd.DataFrame(rows).drop(columns="task_id"), layers=("a", "b"))
    one, other = (of.all_types.caught[0].share.half_width or 0 for of in (found, apart))
    assert (found.n_tasks, apart.n_tasks) == (10, 40)
    assert one > 1.8 * other
    assert found.all_types.caught[1].share.interval == pytest.approx((0.025**0.1, 1))


def test_rows_that_say_nothing_are_set_aside_and_tables_without_layers_refused() -> None:
    good = {"trace_id": "a", "failure_type": "f", "layer": "user"}
    bad: list[dict[str, Any]] = [
        {"layer": "users"}, {"failure_type": ""}, {"trace_id": "x" * 5000},
        {"failure_type": "a\x1b[2J"}, {"layer": 3.5},
    ]  # fmt: skip
    found = layers_of_table(pd.DataFrame([good, *(good | of for of in bad)]))
    assert [(of.n, of.reason.partition(" must")[0]) for of in found.set_aside] == [
        (2, "field 'layer':"), (2, "field 'failure_type':"), (1, "field 'trace_id':"),
    ]  # fmt: skip
    unclear = layers_of_table(
        pd.DataFrame([{"trace_id": k, "failure_type": "f", "user": v, "ci_gate": "no"}
                      for k, v in enumerate(["yes", "perhaps", float("nan"), 2])])
    )  # fmt: skip
    assert (unclear.all_types.n, unclear.set_aside[0].n) == (2, 2)
    assert "Not recorded, so not in the matrix: weekly_review, production_signal." in unclear.notes
    silent = layers_of_table(
        pd.DataFrame([{"trace_id": "a", "failure_type": "f", "ci_gate": 1, "weekly_review": 0}])
    )
    assert (silent.layers, silent.of_users) == (("ci_gate", "weekly_review"), None)
    assert "What escaped to users is not known" in "\n".join(text_lines(document(silent)))
    for table, layers, says in (
        ({"trace_id": ["a"], "failure_type": ["f"], "user": [1]}, (), "needs a column 'layer'"),
        ({"trace_id": ["a"], "layer": ["user"]}, (), "no column is failure_type"),
        ({"trace_id": ["a"], "failure_type": ["f"], "b": [1]}, ("a", "b"), "column for each of a"),
        ({name: ["user"] for name in good}, ("a",), "name two layers or more"),
        ({name: ["user"] for name in good}, ("a", "a"), "each once"),
        ({"trace_id": range(201), "failure_type": range(201), "layer": "user"}, (), "200 failure"),
    ):
        with pytest.raises(InputError, match=says):
            layers_of_table(pd.DataFrame(table), layers=layers)
    with pytest.raises(CalibrationError, match="holds no failure"):
        layers_of_table(pd.DataFrame([good | {"trace_id": ""}]))


def test_a_store_by_hand(new_world: NewWorld) -> None:
    """Of the eight runs of test_signals 0, 1, 2, 3 and 4 have signals; the user of 6 complained."""
    made = {of.trace_id: of for of in traces()}
    fields = ("steps", "status", "metadata", "started_at")
    changes = {name: {f: getattr(of, f) for f in fields} for name, of in made.items()}
    world = new_world(traces=changes, order=list(made), n_drawn=8)
    world.label("Ann", {"t0": "hallucinated", "t1": "complete", "t5": "partial_minus"})
    ben = world.store.add_reviewer("Ben").reviewer_id
    taxonomy, numbers = world.store.taxonomy(), itertools.count()
    said = {"t5": "partial_minus", "t3": "abandoned", "t2": "complete"}
    world.store.import_labels(world.batch_id, [
        LabelDraft(client_token=f"ben-{next(numbers)}", trace_id=t, batch_id=world.batch_id,
                   reviewer_id=ben, answers=taxonomy.answers_for(c), tags=("Citation",))
        for t, c in said.items()
    ])  # fmt: skip
    world.label("Cleo", {"t3": "complete"})
    graded = {"t4": "partial_minus", "t5": "hallucinated", "t3": "partial_minus"}
    world.judge(graded, "source:files")
    found = layers_of_store(world.store)
    assert counts(found) == {
        # In the order gate, review, signal, user; t3 is open, t1 and t2 are no failures.
        "all": ([2, 2, 2, 1], [0, 0, 0, 1], 0),
        "hallucinated": ([0, 1, 1, 0], [0, 0, 0, 0], 0),
        "partial_minus": ([1, 1, 0, 0], [0, 0, 0, 0], 0),
        "Citation": ([1, 1, 0, 0], [0, 0, 0, 0], 0),
        "not labelled": ([1, 0, 1, 1], [0, 0, 0, 1], 0),
    }
    assert "1 run on which reviewers differ without a consensus: in no row." in found.notes
    assert not found.simulated
    # The same runs as in the report's signals: one definition, in SQL there and by run here.
    shares = {of.key: of.over_all for of in signals_of(world.store, None).signals}
    negative = shares["feedback_negative"]
    assert (negative.value or 0) * negative.n == pytest.approx(found.all_types.caught[3].n)
