"""The corrected rate by group: by its own labels, or with the help of other groups."""

from collections.abc import Iterator
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any

import numpy as np
import pytest

from calibration.analyses.evidence.data import group_names
from calibration.analyses.judge.groups import analyse_groups
from calibration.analyses.success_rate.from_store import report_on_store
from calibration.analyses.success_rate.report import ReportOptions
from calibration.errors import InputError
from calibration.statistics.contingency import holm
from calibration.statistics.random_effects import shrunk_means
from calibration.taxonomy import default_taxonomy
from tests.analyses.conftest import NewWorld
from tests.analyses.worlds import World, drawn_ids, ids, make_world
from tests.classes import OUTCOMES

C, P, M, H, A = OUTCOMES
N, N_DRAWN = 420, 210
START = datetime(2026, 1, 5, 12)  # noqa: DTZ001  a Monday; the store keeps UTC without zone


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> Iterator[World]:
    """Return a store of three agents, with verdicts, to be read only."""
    folder = tmp_path_factory.mktemp("agents")
    made = three_agents(lambda **options: make_world(folder / "s.duckdb", **options))
    with made.store:
        yield made


def three_agents(new_world: NewWorld, *, judged: bool = True) -> World:
    """Agent `big` has most traces, `mid` some 60 labels, `small` few; the judge errs alike."""
    rng = np.random.default_rng(5)
    names, drawn = ids(N), drawn_ids(N, N_DRAWN)
    model = dict(zip(names, rng.choice(["big", "mid", "small"], N, p=[0.6, 0.3, 0.1]), strict=True))
    traces: dict[str, dict[str, Any]] = {
        name: {
            "model": str(model[name]),
            "workflow": f"of {model[name]}",
            "started_at": START + timedelta(days=13 * k / N),
        }
        for k, name in enumerate(names)
    }
    made = new_world(n=N, n_drawn=N_DRAWN, traces=traces)
    assert list(made.drawn) == drawn
    truth = rng.choice(5, N, p=[0.45, 0.2, 0.15, 0.1, 0.1])
    wrong = rng.random(N) < 0.1
    said = np.where(wrong, rng.choice(5, N), truth)
    if judged:
        made.judge({name: OUTCOMES[k] for name, k in zip(names, said, strict=True)})
    true = {name: OUTCOMES[k] for name, k in zip(names, truth, strict=True)}
    made.label("Ann", {name: true[name] for name in drawn})
    return made


def test_groups_by_model_are_direct_or_pooled(world: World) -> None:
    found = analyse_groups(world.store, by="model")
    rows = {row.name: row for row in found.groups}
    assert list(rows) == ["big", "mid", "small"]
    assert {name: row.net.kind for name, row in rows.items()} == {
        "big": "direct", "mid": "direct", "small": "pooled",
    }  # fmt: skip
    assert sum(row.net.n_labels for row in rows.values()) == N_DRAWN
    assert sum(row.net.n_production for row in rows.values()) == N
    frame = world.store.trace_frame().set_index("trace_id")
    verdicts = world.store.verdict_frame("judge-1").set_index("trace_id")["outcome"]
    labels = world.store.label_frame(world.batch_id).set_index("trace_id")["outcome"]
    credit = default_taxonomy().credit
    # The judge's error on the labels of each model, and the variance pooled within models.
    errors = {
        name: np.array(
            [
                credit[labels[trace]] - credit[verdicts[trace]]
                for trace in world.drawn
                if frame.loc[trace, "model"] == name
            ]
        )
        for name in rows
    }
    df = sum(of.size - 1 for of in errors.values())
    within = sum((of.size - 1) * of.var(ddof=1) for of in errors.values()) / df
    shrunk = shrunk_means(
        np.array([of.mean() for of in errors.values()]),
        np.array([within / of.size for of in errors.values()]),
        df=df,
    )
    said = [credit[verdicts[trace]] for trace in frame.index[frame["model"] == "small"]]
    small = rows["small"].net
    assert small.estimate.value == pytest.approx(np.mean(said) + shrunk.values[2])
    assert small.own_weight == pytest.approx(shrunk.kept[2])
    se = np.hypot(shrunk.reaches[2] / 1.959964, np.std(said) / np.sqrt(len(said)))
    assert small.estimate.se == pytest.approx(se)
    assert sum(share.value or 0 for share in small.shares) == pytest.approx(1)


def test_pairs_are_marked_and_come_with_the_leniency(world: World) -> None:
    found = analyse_groups(world.store, by="model")
    kinds = {(p.net.first, p.net.second): p.net.kind for p in found.pairs}
    assert kinds == {
        ("big", "mid"): "direct", ("big", "small"): "pooled", ("mid", "small"): "pooled",
    }  # fmt: skip
    gaps = {row.name: row.leniency.estimate.value or 0 for row in found.groups}
    p_values = {(p.net.first, p.net.second): p.net.p_value or 0 for p in found.pairs}
    adjusted = holm(p_values)
    for pair in found.pairs:
        # Without ceilings nothing costs: net is gross.
        assert pair.net.difference.value == pytest.approx(pair.gross.difference.value)
        gap = gaps[pair.net.first] - gaps[pair.net.second]
        assert pair.leniency_difference.value == pytest.approx(gap)
        assert pair.net.p_holm == adjusted[pair.net.first, pair.net.second]
        assert pair.net.may_gate
    assert found.rates.n_groups == 3
    assert found.ranks == dict.fromkeys(("big", "mid", "small"), (1, 3))
    assert min(adjusted.values()) > 0.05
    shown = [
        replace(p, net=replace(p.net, difference=replace(p.net.difference, value=0.1),
                               p_holm=0.01 if p.net.first == "big" else 1.0))
        for p in found.pairs
    ]  # fmt: skip
    ranks = replace(found, pairs=tuple(shown)).ranks
    assert ranks == {"big": (1, 1), "mid": (2, 3), "small": (2, 3)}
    assert replace(found, by="week").ranks is None
    assert (found.rates.p_value or 0) > 0.01
    # A reference set makes every group synthetic.
    found = analyse_groups(world.store, by="model", design="reference")
    assert {row.net.kind for row in found.groups} == {"synthetic"}
    assert sum(row.net.n_production for row in found.groups) == N - N_DRAWN


def test_weeks_are_compared_with_the_week_before(world: World) -> None:
    found = analyse_groups(world.store, by="week")
    assert [row.name for row in found.groups] == ["2026-W02", "2026-W03"]
    assert [(p.net.first, p.net.second) for p in found.pairs] == [("2026-W03", "2026-W02")]


def test_cost_lowers_the_net_rate_of_a_group(new_world: NewWorld) -> None:
    names = ids(200)
    traces = {n: {"model": "dear" if k % 2 else "cheap", "cost_usd": 1.5 if k % 2 else 0.5}
              for k, n in enumerate(names)}  # fmt: skip
    made = new_world(n=200, n_drawn=160, ceiling=1.0, traces=traces)
    made.judge({n: M if k % 3 == 0 else C for k, n in enumerate(names)})
    made.label("Ann", {n: M if int(n[1:]) % 3 == 0 else C for n in made.drawn})
    rows = {row.name: row for row in analyse_groups(made.store, by="model").groups}
    assert {row.net.kind for row in rows.values()} == {"direct"}
    assert rows["dear"].gross.estimate.value == pytest.approx(2 / 3, abs=0.01)
    assert rows["dear"].net.estimate.value == pytest.approx(1 / 3, abs=0.01)
    assert rows["cheap"].net.estimate.value == pytest.approx(2 / 3, abs=0.01)


def test_one_group_and_few_labels_say_what_would_help(new_world: NewWorld) -> None:
    made = new_world()
    made.judge(dict.fromkeys(ids(12), C))
    made.label("Ann", {made.drawn[0]: C})
    found = analyse_groups(made.store)
    assert [row.name for row in found.groups] == ["flights"]
    assert found.pairs == ()
    assert not found.groups[0].net.estimate.ok
    assert found.rates.status.startswith("not_estimable: labels of one group only")
    with pytest.raises(InputError, match="by must be one of agent, workflow, model, week"):
        analyse_groups(made.store, by="colour")


def test_what_a_trace_does_not_say_is_unknown(new_world: NewWorld) -> None:
    made = new_world(
        n=3, n_drawn=1,
        traces={"r000": {"model": "m", "agent_version": "1"}, "r001": {"agent_version": "2"}},
    )  # fmt: skip
    frame = made.store.trace_frame().sort_values("trace_id")
    assert group_names(frame, "agent").tolist() == ["m 1", "unknown 2", "unknown"]
    assert group_names(frame, "model").tolist() == ["m", "unknown", "unknown"]
    assert set(group_names(frame, "week")) == {"unknown"}


@pytest.mark.parametrize("judged", [True, False])
def test_the_rate_of_a_workflow_is_one_number(new_world: NewWorld, judged: bool) -> None:
    """On the Judge page, in the groups of a report, and in a report on the workflow alone."""
    world = three_agents(new_world, judged=judged)
    report = report_on_store(world.store, ReportOptions(n_resamples=100))
    groups = {group.name: group for group in report.by_workflow}
    assert groups.keys() == {"of big", "of mid", "of small"}
    group = groups["of mid"]
    alone = report_on_store(world.store, ReportOptions(workflow="of mid", n_resamples=100))
    # As the headline it says what its interval leaves out; the table of workflows does not.
    assert (replace(alone.asr, status="ok"), replace(alone.asr_gross, status="ok")) == (
        group.asr, group.asr_gross,
    )  # fmt: skip
    assert alone.asr.status.startswith("provisional") == judged
    assert alone.pass_rate == group.pass_rate
    assert [(g.name, g.asr) for g in alone.by_workflow] == [("of mid", group.asr)]
    # All of its runs are of one model.
    assert [g.asr for g in alone.by_model] == [group.asr]
    assert alone.sensitivity[0].asr == alone.asr
    if judged:
        page = {row.name: row for row in analyse_groups(world.store, by="workflow").groups}
        assert {n: (g.asr, g.asr_gross) for n, g in groups.items()} == {
            n: (row.net.estimate, row.gross.estimate) for n, row in page.items()
        }
