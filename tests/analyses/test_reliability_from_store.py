"""The table of runs that a store gives for reliability."""

from dataclasses import replace
from typing import Any

import pandas as pd
import pytest

from calibration.analyses.reliability.from_store import COLUMNS, reliability_frame
from calibration.errors import CalibrationError, MixedDataError
from calibration.records import LabelDraft, Step, Trace, Violation
from tests.analyses.conftest import NewWorld
from tests.analyses.worlds import World, ids, make_trace

LEAK = Violation(constraint="no PII exposure", severity="low", step="s1")
STEPS = (
    Step(step_id="s1", role="assistant", tool="find", arguments="{}", seconds=2.0),
    Step(step_id="s2", role="tool", tool="find", result="no", error=True),
    Step(step_id="s3", role="user", tool="phone", arguments="{}", result="ok"),
    Step(step_id="s4", role="assistant", tool="book", arguments="{}", result="ok", seconds=4.0),
)


def trial(name: str, task: str = "a", **changes: Any) -> Trace:
    told = {"task_key": f"test/{task}", "model": "m", "cost_usd": 0.5, "latency_s": 3.0}
    return make_trace(name, **(told | changes))


@pytest.fixture
def world(new_world: NewWorld) -> World:
    """Make a batch of nine runs of two tasks, one of them of a perturbed arm."""
    changes: dict[str, dict[str, Any]] = {
        name: {"task_key": f"test/{'ab'[k % 2]}", "model": "m", "trial": k}
        for k, name in enumerate(ids(9))
    }
    changes["r000"] |= {"steps": STEPS, "confidence": 0.9, "cost_usd": 0.5, "latency_s": 3.0}
    changes["r001"] |= {"perturbation": "fault", "violations": (LEAK,)}
    changes["r002"] |= {"violations": ()}
    found = new_world(n=9, n_drawn=8, traces=changes)
    everything = found.store.add_batch(purpose="production", trace_ids=ids(9), design={})
    return replace(found, batch_id=everything.batch_id, drawn=tuple(ids(9)))


def row(frame: pd.DataFrame, run: str) -> dict[str, Any]:
    (found,) = frame[frame["run"] == run].to_dict("records")
    return {str(name): value for name, value in found.items()}


def test_success_comes_from_people_and_names_how(world: World) -> None:
    world.label("ann", {"r000": "complete", "r001": "abandoned", "r002": "complete"})
    world.label("bob", {"r000": "complete", "r002": "abandoned", "r003": "abandoned"})
    world.settle("r003", "complete")
    world.judge({"r004": "complete", "r005": "complete"})
    found = reliability_frame(world.store)
    assert set(COLUMNS) <= set(found.frame)
    given = found.frame.set_index("run")[["success", "success_from"]].to_dict("index")
    assert given == {
        "r000": {"success": True, "success_from": "labels"},
        "r001": {"success": False, "success_from": "labels"},
        "r003": {"success": True, "success_from": "consensus"},
    }
    assert (found.n_open, found.n_unlabelled, found.n_judged) == (1, 5, 2)
    assert row(found.frame, "r001")["perturbation"] == "fault"
    assert set(found.frame["perturbation"]) == {"none", "fault"}
    assert row(found.frame, "r000")["task_id"] == "test/a"


def test_calls_errors_and_amounts_are_those_of_the_agent(world: World) -> None:
    world.label("ann", {"r000": "complete", "r001": "complete"})
    frame = reliability_frame(world.store).frame
    found = row(frame, "r000")
    assert found["actions"] == ["find", "book"]
    assert (found["n_errors"], found["call_latency_s"]) == (1.0, 3.0)
    assert (found["confidence"], found["cost_usd"], found["latency_s"]) == (0.9, 0.5, 3.0)
    assert pd.isna(found["api_calls"])
    empty = row(frame, "r001")
    assert empty["actions"] is None or pd.isna(empty["actions"])
    assert pd.isna(empty["n_errors"])


def test_violations_of_labels_come_before_those_of_the_record(world: World) -> None:
    store = world.store
    world.label("ann", {"r001": "complete", "r002": "complete", "r003": "complete"})
    for who, severity in (("Bob", "low"), ("Cy", "high")):
        person = store.add_reviewer(who).reviewer_id
        marked = (Violation(constraint="respect rate limits", severity=severity),)
        store.import_labels(world.batch_id, [
            LabelDraft(
                trace_id=name, reviewer_id=person, batch_id=world.batch_id, violations=broken,
                answers=store.taxonomy().answers_for("complete"), client_token=f"{who} {name}",
            )
            for name, broken in (("r004", marked), ("r005", ()), ("r001", ()))
        ])  # fmt: skip
    frame = reliability_frame(store).frame.set_index("run")
    told = frame[["violations_from", "analysed"]].T.to_dict("list")
    assert told == {
        "r001": ["labels", True], "r002": ["record", True], "r003": ["", False],
        "r004": ["labels", True], "r005": ["labels", True],
    }  # fmt: skip
    assert [frame["violations"][name] for name in ("r001", "r002", "r003")] == [[], [], None]
    (worst,) = frame["violations"]["r004"]
    assert worst == {"constraint": "respect rate limits", "severity": "high", "step": None}


def test_several_agents_are_never_taken_together(world: World) -> None:
    store = world.store
    store.ingest([trial("other", model="m2")])
    batch = store.add_batch(purpose="production", trace_ids=["other"], design={}).batch_id
    world.label("ann", {"r000": "complete"})
    replace(world, batch_id=batch).label("ann", {"other": "complete"})
    with pytest.raises(CalibrationError, match=r"of 2 agents.*of m, m2"):
        reliability_frame(store)
    assert list(reliability_frame(store, model="m2").frame["run"]) == ["other"]


def test_nothing_labelled_and_mixed_data_are_refused(world: World) -> None:
    with pytest.raises(CalibrationError, match="no run is labelled"):
        reliability_frame(world.store)
    world.label("ann", {"r000": "complete"})
    world.label("robo", {"r001": "complete"}, simulated=True)
    with pytest.raises(MixedDataError):
        reliability_frame(world.store)
