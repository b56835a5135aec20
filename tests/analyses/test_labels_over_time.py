"""Whether labels of earlier runs still hold, and how many a month are needed."""

from datetime import datetime, timedelta

import numpy as np
import pytest
from scipy import stats

from calibration.analyses.evidence.from_store import load_judged
from calibration.analyses.judge.drift import LabelDrift, labels_over_time
from calibration.judge_calibration.bias import changed_meanings
from calibration.reporting.sections.judge import over_time
from tests.analyses.conftest import NewWorld
from tests.analyses.worlds import World, diagnose_judge, ids
from tests.classes import OUTCOMES

C, P, M, H, A = OUTCOMES
N, N_DRAWN = 400, 200
# A Monday; eight weeks of fifty runs, and no label in the last two.
START = datetime(2026, 6, 1, 12)  # noqa: DTZ001  the store keeps UTC without zone


def world_of(new_world: NewWorld, *, moves: bool) -> World:
    """Return a store whose judge errs once in 20, and from the fourth week on every other time."""
    rng = np.random.default_rng(31)
    names = ids(N)
    week = dict(zip(names, (np.arange(N) // 50).tolist(), strict=True))
    traces = {name: {"started_at": START + timedelta(weeks=week[name])} for name in names}
    made = new_world(n=N, n_drawn=N_DRAWN, traces=traces)
    truth = {name: str(rng.choice([C, M])) for name in names}
    wrong = {name: rng.random() < (0.5 if moves and week[name] >= 3 else 0.05) for name in names}
    made.judge(
        {name: (M if truth[name] == C else C) if wrong[name] else truth[name] for name in names}
    )
    made.label("Ann", {name: truth[name] for name in made.drawn if week[name] < 6})
    return made


def found_in(world: World) -> LabelDrift:
    data = load_judged(world.store, world.batch_id, "judge-1")
    return labels_over_time(data, data.sample("production"))


def test_labels_of_before_a_change_are_stale(new_world: NewWorld) -> None:
    found = found_in(world_of(new_world, moves=True))
    assert (found.first, found.middle, found.last) == ("2026-W23", "2026-W26", "2026-W28")
    assert found.stale_before == "2026-W26"
    assert max(found.p_holm[C], found.p_holm[M]) < 0.01
    assert (found.unlabelled_since, found.n_since) == ("2026-W29", 100)
    # As many labels as there are, from the three weeks that hold: 21 days.
    assert found.a_month == np.ceil(found.n * 365.25 / 12 / 21)
    said = over_time(found)
    assert "labels of runs before 2026-W26 are stale" in said
    assert "100 runs since 2026-W29 have no label" in said
    assert said.endswith(f"About {found.a_month} labels a month keep the half-width.")


def test_without_a_change_all_labels_count(new_world: NewWorld) -> None:
    world = world_of(new_world, moves=False)
    found = found_in(world)
    assert found.stale_before is None
    assert found.a_month == np.ceil(found.n * 365.25 / 12 / 42)
    assert "No change of the classes behind a verdict is shown" in over_time(found)
    assert diagnose_judge(world.store, world.batch_id).over_time == found
    assert diagnose_judge(world.store, world.batch_id, design="reference").over_time is None


def test_labels_of_one_week_say_nothing_over_time(new_world: NewWorld) -> None:
    made = new_world()
    made.judge(dict.fromkeys(ids(12), C))
    made.label("Ann", {made.drawn[0]: C})
    found = found_in(made)
    assert (found.middle, found.a_month) == (None, None)
    assert over_time(found) == (
        "Whether the labels still hold is not known: labelled runs of two weeks or more are needed."
    )


def test_a_changed_verdict_by_fisher_and_by_pearson() -> None:
    """Two classes: Fisher; three with enough labels: Pearson; both adjusted by Holm."""
    two, three = np.array([[20, 5], [12, 13]]), np.array([[20, 10, 10], [10, 15, 15]])
    human = np.eye(3)[np.concatenate([np.repeat([0, 1], row) for row in two]
                                     + [np.repeat([0, 1, 2], row) for row in three])]  # fmt: skip
    verdicts = np.repeat([0, 1], [50, 80])
    late = np.repeat([0, 1, 0, 1], [25, 25, 40, 40]) == 1
    p = {
        0: stats.fisher_exact(two).pvalue,
        1: stats.chi2_contingency(three, correction=False).pvalue,
    }
    found = changed_meanings(human, verdicts, late)
    small, large = sorted(p, key=lambda verdict: p[verdict])
    assert found[small] == pytest.approx(2 * p[small])
    assert found[large] == pytest.approx(max(2 * p[small], p[large]))
