"""Two judges on the same traces."""

import numpy as np
import pytest

from calibration.analyses.judge.drift import compare_judges
from calibration.errors import CalibrationError, InputError, MixedDataError
from tests.analyses.conftest import NewWorld
from tests.analyses.worlds import World, ids, known

C, P, M, A = "complete", "partial_plus", "partial_minus", "abandoned"
NO = "no_verdict"


@pytest.fixture
def world(new_world: NewWorld) -> World:
    """Both judge 19 of 20 traces; the new one passes six that the old one failed."""
    made = new_world(n=20, n_drawn=10)
    names = ids(20)
    made.judge(dict(zip(names, [C] * 8 + [M] * 9 + [A] * 2 + [NO], strict=True)), "v1")
    made.judge(
        dict(zip(names[:19], [C] * 7 + [P] + [C] * 6 + [M] * 3 + [A, NO], strict=True)), "v2"
    )
    return made


def test_by_hand(world: World) -> None:
    found = compare_judges(world.store, "v1", "v2")
    assert found.n == 19
    assert found.verdict_names[-1] == NO
    assert found.table[0][:2] == (7, 1)
    assert found.table[2][:3] == (6, 0, 3)
    assert found.table[4][4:] == (1, 1)
    classes = {row.name: row for row in found.classes}
    complete = classes[C]
    assert (complete.before, complete.after) == (8 / 19, 13 / 19)
    assert (complete.only_before, complete.only_after) == (1, 6)
    # Seven differ, six one way: 2 x (1 + 7) / 2^7.
    assert complete.test.p_value == pytest.approx(16 / 128)
    # partial_minus: six one way, none the other: 2 / 2^6. Five verdicts are tested.
    assert classes[M].test.p_value == pytest.approx(2 / 64)
    assert classes[M].p_holm == pytest.approx(5 * 2 / 64)
    assert classes["hallucinated"].test.p_value is None
    assert classes["hallucinated"].p_holm is None
    # Credit: one trace 1 to .4, six 0 to 1, of 18 with a class twice.
    assert found.credit_change.estimate.value == pytest.approx(5.4 / 18)
    assert found.same.value == pytest.approx(11 / 19)
    assert found.alpha.ok
    assert found.against_humans is None


def test_whether_the_error_changed(world: World) -> None:
    # The humans agree with the old judge but on traces 8 to 10, where the new one is right.
    by_name = dict(zip(ids(20), [C] * 11 + [M] * 6 + [A] * 3, strict=True))
    drawn = [name for name in world.drawn if name != "r019"]
    world.label("Ann", {name: by_name[name] for name in drawn})
    found = known(compare_judges(world.store, "v1", "v2").against_humans)
    assert found.n == len(drawn)
    old = dict(zip(ids(20), [C] * 8 + [M] * 9 + [A] * 2, strict=False))
    new = dict(zip(ids(20), [C] * 7 + [P] + [C] * 6 + [M] * 3 + [A, NO], strict=False))
    right = np.array([(old[n] == by_name[n], new[n] == by_name[n]) for n in drawn])
    for of, expected in (
        (found.accuracy_before, right[:, 0].mean()),
        (found.accuracy_after, right[:, 1].mean()),
        (found.accuracy_change, right[:, 1].mean() - right[:, 0].mean()),
    ):
        assert of.estimate.value == pytest.approx(expected)
    credit = {C: 1.0, P: 0.4, M: 0.0, A: 0.0}
    scored = [n for n in drawn if new[n] != NO]
    gaps = np.array([[credit[of[n]] - credit[by_name[n]] for of in (old, new)] for n in scored])
    assert found.leniency_change.estimate.value == pytest.approx(np.diff(gaps).mean())
    assert found.error_change.estimate.value == pytest.approx(np.diff(abs(gaps)).mean())


def test_the_same_verdicts_show_no_drift(new_world: NewWorld) -> None:
    made = new_world()
    for name in ("v1", "v2"):
        made.judge(dict(zip(ids(12), [C] * 6 + [M] * 6, strict=True)), name)
    found = compare_judges(made.store, "v1", "v2")
    assert found.same.value == 1.0
    assert all(row.p_holm is None for row in found.classes)
    assert found.credit_change.estimate.status == "no variation seen"
    turned = compare_judges(made.store, "v2", "v1")
    assert turned.fingerprint != found.fingerprint


def test_what_cannot_be_compared_is_refused(world: World) -> None:
    with pytest.raises(InputError, match="must differ"):
        compare_judges(world.store, "v1", "v1")
    with pytest.raises(InputError, match="no judge 'v3'"):
        compare_judges(world.store, "v1", "v3")
    world.judge({"r019": C}, "other")
    with pytest.raises(CalibrationError, match="no trace in common"):
        compare_judges(world.store, "v2", "other")
    world.judge({"r000": C}, "drawn", simulated=True)
    with pytest.raises(MixedDataError, match="simulated"):
        compare_judges(world.store, "v1", "drawn")


def test_agreement_of_the_judges_by_task(new_world: NewWorld) -> None:
    """All runs of 4 of 10 tasks change: .6 x .4 x 10 / 9 / 10, over tasks and not over 40 runs."""
    names = ids(40)
    tasks = {name: {"task_key": f"t/{k // 4}"} for k, name in enumerate(names)}
    world = new_world(n=40, n_drawn=10, traces=tasks)
    world.judge(dict.fromkeys(names, C) | dict.fromkeys(names[20:], M), "v1")
    world.judge(dict.fromkeys(names, C) | dict.fromkeys(names[36:], M), "v2")
    found = compare_judges(world.store, "v1", "v2")
    assert found.same.value == pytest.approx(0.6)
    assert found.same.se == pytest.approx(np.sqrt(0.24 / 9))
    assert found.alpha.method == "delete-one jackknife, Fisher z, by cluster"
