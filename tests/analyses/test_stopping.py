"""Whether labelling may stop: the limits that hold at every look, now and with more labels."""

from dataclasses import replace

import numpy as np
import pytest

from calibration.analyses.evidence.from_store import load_batch
from calibration.analyses.reviewers.progress import batch_results
from calibration.analyses.sampling.planning import expected_half_widths
from calibration.errors import InputError
from calibration.judge_calibration.post_stratification import with_any_time
from calibration.reporting.document import text_lines
from calibration.reporting.sections.plans import stop_words, stopping
from tests.analyses.conftest import NewWorld
from tests.analyses.worlds import World, ids
from tests.classes import OUTCOMES
from tests.cli_runs import data
from tests.cli_runs import run as command

C, P, M, H, A = OUTCOMES
N, N_DRAWN = 600, 120


@pytest.fixture
def world(new_world: NewWorld) -> World:
    """Return a store with a judge that errs on one trace of six, and 120 labels."""
    rng = np.random.default_rng(8)
    made = new_world(n=N, n_drawn=N_DRAWN)
    truth = rng.choice([C, M], N, p=[0.6, 0.4])
    said = np.where(rng.random(N) < 1 / 6, rng.choice([C, M], N), truth)
    made.judge(dict(zip(ids(N), said.tolist(), strict=True)))
    true = dict(zip(ids(N), truth.tolist(), strict=True))
    made.label("Ann", {name: true[name] for name in made.drawn})
    return made


def test_labelling_may_stop_when_the_limits_of_every_look_are_narrow(world: World) -> None:
    results = batch_results(world.store, world.batch_id, goal=0.065)
    head, rule = results.headline, results.stopping
    assert head.any_time is not None
    assert rule.now is not None
    low, high = head.any_time.interval
    assert rule.now == pytest.approx((high - low) / 2)
    # Looking often costs: the fixed limits are narrower by half or more.
    assert rule.now > 1.4 * (head.half_width or 1)
    assert (rule.may_stop, rule.n, rule.status) == (False, N_DRAWN, "ok")
    wide = batch_results(world.store, world.batch_id, goal=rule.now + 1e-6).stopping
    assert (wide.may_stop, wide.more) == (True, 0)
    assert stop_words(wide).startswith("Labelling may stop: the goal is ±")
    # The traces named are the fewest that are expected to do.
    expected = expected_half_widths(
        world.store, load_batch(world.store, world.batch_id), judge_id="judge-1"
    )
    assert rule.more is not None
    halves = []
    for more in (rule.more - 1, rule.more):
        se = (head.se or 0) * expected(N_DRAWN + more) / expected(N_DRAWN)
        of = with_any_time(replace(head, n=head.n + more, se=se)).any_time
        assert of is not None
        halves.append((of.interval[1] - of.interval[0]) / 2)
    assert halves[1] <= 0.065 < halves[0]
    assert f"about {rule.more:,} more labelled traces" in stop_words(rule)
    never = batch_results(world.store, world.batch_id, goal=0.001).stopping
    assert never.more is None
    assert "all traces together are not expected to suffice" in "".join(text_lines(stopping(never)))


def test_without_labels_or_a_sample_there_is_no_stopping_rule(new_world: NewWorld) -> None:
    rule = batch_results((made := new_world()).store, made.batch_id).stopping
    assert (rule.now, rule.may_stop, rule.more) == (None, False, None)
    assert stop_words(rule) == "No stopping rule: nobody has labelled this batch yet."
    with pytest.raises(InputError, match=r"half-width must be in \(0, .5\), got 0.7"):
        batch_results(made.store, made.batch_id, goal=0.7)


def test_the_command_says_whether_to_stop(world: World) -> None:
    rule = batch_results(world.store, world.batch_id, goal=0.065).stopping
    path = world.store.path
    world.store.close()
    done = command("plan", "stop", "--half-width", "0.065", "--store", path)
    assert stop_words(rule) in done.stdout
    found = data(command("plan", "stop", "--half-width", "0.065", "--store", path, "--json"))
    assert (found["may_stop"], found["more"], found["goal"]) == (False, rule.more, 0.065)
