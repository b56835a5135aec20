from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from calibration.analyses.agreement.analysis import analyse_agreement
from calibration.analyses.judge.calibration import analyse_judge
from calibration.analyses.success_rate.from_store import report_on_store
from calibration.analyses.success_rate.report import ReportOptions, SuccessRateReport
from calibration.records import Workflow
from calibration.reporting import to_json
from calibration.taxonomy import load_taxonomy
from tests.analyses.conftest import NewWorld
from tests.analyses.worlds import World, ids, make_trace

Change = Callable[[World], object]
TRACES = {name: {"cost_usd": 0.5, "task_key": f"t/{int(name[1:]) // 2}"} for name in ids(40)}


def filled(new_world: NewWorld, order: list[str] | None = None) -> World:
    world = new_world(n=40, n_drawn=32, ceiling=0.4, traces=TRACES, order=order)
    backwards = order is not None
    for name, classes in (("Ann", ["complete"]), ("Ben", ["complete", "partial_plus"])):
        said = {t: classes[k % len(classes)] for k, t in enumerate(world.drawn)}
        world.label(name, dict(reversed(said.items())) if backwards else said)
    world.judge({t: "complete" if int(t[1:]) % 3 else "abandoned" for t in ids(40)})
    return world


def report(world: World) -> SuccessRateReport:
    return report_on_store(world.store, options=ReportOptions(n_resamples=100))


def judged_and_agreed(world: World) -> tuple[str, str]:
    return analyse_judge(world.store).fingerprint, analyse_agreement(world.store).fingerprint


def three(world: World) -> tuple[str, str, str]:
    return report(world).origin.fingerprint, *judged_and_agreed(world)


def test_it_is_stable_and_blind_to_the_order_of_rows(new_world: NewWorld) -> None:
    one, other = filled(new_world), filled(new_world, order=ids(40)[::-1])
    prints = judged_and_agreed(one)
    assert prints == judged_and_agreed(other)
    # The same fingerprint stands for the same numbers, seeded intervals included.
    first, second = to_json.data(report(one)), to_json.data(report(other))
    assert first == second
    one.store.ingest([make_trace("z1")])  # later, and no part of it
    assert three(one) == (first["fingerprint"], *prints)


def relabel(world: World) -> None:
    """Have one label say something else, as an undo and a new label would."""
    with world.store._db.write() as cursor:
        cursor.execute(
            "UPDATE label_event SET outcome = 'abandoned' WHERE reviewer_id = 'ann' "
            "AND trace_id = ?",
            [world.drawn[0]],
        )


def reprice(world: World) -> None:
    unlabelled = next(t for t in ids(40) if t not in world.drawn)
    trace = make_trace(unlabelled, **TRACES[unlabelled] | {"cost_usd": 0.51})
    assert world.store.ingest([trace], take_changed=True).replaced


CHANGES: dict[str, tuple[Change, tuple[bool, bool, bool]]] = {
    "label": (relabel, (True, True, True)),
    "cost": (reprice, (True, True, False)),
    "ceiling": (
        lambda w: w.store.set_workflow(Workflow(name="flights", ceiling_usd=0.41, unit="seat")),
        (True, True, False),
    ),
    "consensus": (lambda w: w.settle(w.drawn[1], "complete"), (True, True, False)),
}


@pytest.mark.long
def test_it_changes_with_the_inputs_and_with_what_is_asked(new_world: NewWorld) -> None:
    world = filled(new_world)
    before = three(world)
    for what, (change, expected) in CHANGES.items():
        change(world)
        after = three(world)
        assert tuple(a != b for a, b in zip(before, after, strict=True)) == expected, what
        before = after
    said = {t: "partial_plus" if int(t[1:]) % 2 else "abandoned" for t in ids(40)}
    world.judge(said, name="judge-2")
    few = ReportOptions(n_resamples=100, judge_id="judge-1")
    asked: list[dict[str, Any]] = [
        {}, {"seed": 1}, {"n_resamples": 110}, {"confidence_level": 0.9}, {"compare_to": None},
        {"targets": {"complete": 0.65}}, {"judge_id": "judge-2"}, {"design": "reference"},
        {"workflow": "flights"},
    ]  # fmt: skip
    found = [report_on_store(world.store, replace(few, **one)) for one in asked]
    assert len({result.origin.fingerprint for result in found}) == len(found)


def test_it_changes_with_the_taxonomy(new_world: NewWorld, tmp_path: Path) -> None:
    world = filled(new_world)
    before = three(world)
    default = Path(__file__).parents[2] / "calibration" / "taxonomy.toml"
    fork = tmp_path / "fork.toml"
    text = default.read_text("utf-8").replace("credit = 0.4", "credit = 0.3")
    fork.write_text(text.replace('version = "1.0"', 'version = "1.0-fork"'), encoding="utf-8")
    world.store.set_taxonomy(load_taxonomy(fork))
    with world.store._db.write() as cursor:  # carry the labels over
        cursor.execute("UPDATE label_event SET taxonomy_version = '1.0-fork'")
    assert not set(before) & set(three(world))
