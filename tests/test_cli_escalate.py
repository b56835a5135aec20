"""`asr escalate` and `asr audit`: doubtful traces, and always an audit of the accepted ones."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from calibration.analyses.sampling.draw import SamplingDesign
from calibration.analyses.sampling.escalation import audit, escalate
from calibration.analyses.success_rate.from_store import rates_of_store
from calibration.analyses.success_rate.report import ReportOptions
from calibration.errors import CalibrationError, InputError
from calibration.records import Verdict
from calibration.store import Batch, Store
from tests.analyses.worlds import World, ids, make_world

pytestmark = pytest.mark.usefixtures("few_draws")
N = 1000
RNG = np.random.default_rng(11)

# The judge says complete of all; a fifth failed, and on half of those its samples disagree.
FAILED = set(RNG.choice(ids(N), 200, replace=False).tolist())
DOUBTFUL = set(sorted(FAILED)[::2]) | set(sorted(set(ids(N)) - FAILED)[:20])
TRUTH = {name: "abandoned" if name in FAILED else "complete" for name in ids(N)}
RATE, ACCEPTED_WRONG = 0.8, 100 / 880


def sampled(world: World, names: list[str], n: int) -> World:
    """Ask the judge n times of these traces; the third time it doubts."""
    world.store.add_verdicts(
        [
            Verdict(
                judge_id="judge-1", trace_id=name, sample=sample,
                outcome="abandoned" if sample == 2 and name in DOUBTFUL else "complete",
            )
            for name in names
            for sample in range(n)
        ]
    )  # fmt: skip
    return world


@pytest.fixture
def judged(tmp_path: Path) -> Iterator[World]:
    world = sampled(make_world(tmp_path / "asr.duckdb", n=N, n_drawn=2), ids(N), 3)
    yield world
    world.store.close()


def labelled(world: World, batch_id: str) -> World:
    drawn = tuple(world.store.batch_items(batch_id)["trace_id"])
    made = World(store=world.store, batch_id=batch_id, drawn=drawn)
    made.label("Ann", {name: TRUTH[name] for name in drawn})
    return made


def escalation(store: Store, seed: int, **options: Any) -> Batch:
    return escalate(store, SamplingDesign(seed=seed, labels_wanted=1), **options)


def test_doubtful_traces_are_all_in_and_a_random_part_of_the_others(judged: World) -> None:
    batch = escalation(judged.store, 1, signal="samples", audit_half_width=0.1)
    items = judged.store.batch_items(batch.batch_id)
    escalated = items[items["stratum"] == 0]
    assert set(escalated["trace_id"]) == DOUBTFUL
    assert set(escalated["inclusion_probability"]) == {1.0}
    audited = items[items["stratum"] == 1]
    # Nobody knows the error rate yet: the worst case, 1.96^2 x .25 / .1^2 = 96 less Wilson's 4.
    assert (batch.design["expected_error"], len(audited)) == (0.5, 93)
    assert set(audited["inclusion_probability"]) == {93 / 880}
    assert batch.design["audit_half_width"] == 0.1
    # In random order: whoever stops early has some of both.
    assert 0 < items["stratum"][:40].sum() < 40


def test_the_audit_tells_what_was_accepted_wrongly_and_the_rate_is_weighted(judged: World) -> None:
    batch = escalation(judged.store, 2, signal="samples", audit_half_width=0.06)
    world = labelled(judged, batch.batch_id)
    found = audit(judged.store, batch.batch_id)
    assert found.error.value == pytest.approx(ACCEPTED_WRONG, abs=0.06)
    assert found.error.interval is not None
    assert found.error.interval[0] < ACCEPTED_WRONG < found.error.interval[1]
    result = rates_of_store(judged.store, ReportOptions(batch_id=batch.batch_id, n_resamples=300))
    for estimate in (found.headline, result.corrected, result.human.asr):
        assert estimate.value is not None
        assert estimate.value == pytest.approx(RATE, abs=0.05)
        assert estimate.interval is not None
        assert estimate.interval[0] < RATE < estimate.interval[1]
    # What must not be reported: accepted verdicts as they are with human labels on the rest, and
    # the plain mean of the batch.
    as_accepted = (880 + sum(TRUTH[name] == "complete" for name in DOUBTFUL)) / N
    assert as_accepted - RATE == pytest.approx(0.1)
    plain = np.mean([TRUTH[name] == "complete" for name in world.drawn])
    assert RATE - plain > 0.1

    # The labels show which verdicts are doubtful.
    with pytest.raises(CalibrationError, match="no trace is doubtful by low calibrated prob"):
        escalation(judged.store, 1, signal="probability")
    with pytest.raises(CalibrationError, match="every trace is doubtful"):
        escalation(judged.store, 1, signal="probability", threshold=0.05)
    # Earlier labels make the next audit smaller.
    second = escalation(judged.store, 3, signal="samples", audit_half_width=0.06)
    assert second.design["expected_error"] < 0.25
    assert second.design["strata"][1]["n"] < batch.design["strata"][1]["n"] * 0.8


def test_no_more_than_asked_for_are_escalated_and_the_rest_may_be_audited(judged: World) -> None:
    batch = escalation(judged.store, 1, signal="samples", most=50, audit_half_width=0.1)
    assert [s["population"] for s in batch.design["strata"]] == [50, 950]
    items = judged.store.batch_items(batch.batch_id)
    assert set(items.loc[items["stratum"] == 0, "trace_id"]) < DOUBTFUL


def test_several_judges_that_differ_escalate(judged: World) -> None:
    with pytest.raises(CalibrationError, match="1 judges have verdicts and 3 are needed"):
        escalation(judged.store, 1, signal="judges")
    judged.judge(TRUTH, "judge-2")
    other = {name: "complete" if name in DOUBTFUL else TRUTH[name] for name in ids(N)}
    judged.judge(other, "judge-3")
    batch = escalation(
        judged.store, 1, signal="judges", judge_id="judge-2", threshold=0.001, audit_half_width=0.1
    )
    items = judged.store.batch_items(batch.batch_id)
    differing = {name for name in ids(N) if len({"complete", TRUTH[name], other[name]}) > 1}
    assert set(items.loc[items["stratum"] == 0, "trace_id"]) <= differing


def test_traces_without_a_verdict_are_never_accepted(tmp_path: Path) -> None:
    world = sampled(make_world(tmp_path / "other.duckdb", n=60, n_drawn=2), ids(60)[:50], 2)
    batch = escalation(world.store, 1, signal="samples", audit_half_width=0.1)
    items = world.store.batch_items(batch.batch_id)
    assert set(items.loc[items["stratum"] == 0, "trace_id"]) == set(ids(60)[50:])
    assert batch.design["strata"][1]["n"] == 50  # the audit is all there is
    world.store.close()


def test_impossible_escalations_are_refused(judged: World) -> None:
    wrong: list[dict[str, Any]] = [
        {"most": 0}, {"audit_half_width": 0.0}, {"threshold": -1.0}, {"signal": "mood"},
        {"seed": -1},
    ]  # fmt: skip
    for options in wrong:
        with pytest.raises(InputError, match="must be"):
            escalation(judged.store, options.pop("seed", 1), **{"signal": "samples", **options})
    with pytest.raises(CalibrationError, match="is not an escalation"):
        audit(judged.store, judged.batch_id)
