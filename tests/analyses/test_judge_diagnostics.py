"""What a calibrated rate does not show of a judge, from the store to the figures."""

from typing import Any

import pytest

from calibration.records import Evidence, LabelDraft, Step, Verdict
from tests.analyses.conftest import NewWorld
from tests.analyses.worlds import World, diagnose_judge, drawn_ids, ids, known
from tests.classes import OUTCOMES

C, P, M, H, A = OUTCOMES


def again(world: World, sample: int, said: dict[str, str]) -> None:
    """Let the judge say something of traces it was asked about before."""
    asked: dict[str, Any] = {"judge_id": "judge-1", "sample": sample}
    world.store.add_verdicts([Verdict(trace_id=t, outcome=c, **asked) for t, c in said.items()])


def steps(n: int) -> tuple[Step, ...]:
    return tuple(Step(step_id=f"s{k}", role="assistant", content="...") for k in range(n))


@pytest.fixture
def world(new_world: NewWorld) -> World:
    """Twenty traces, twelve labelled by two; the judge calls most of them complete."""
    drawn = drawn_ids(20, 12)
    traces: dict[str, dict[str, Any]] = {
        name: {"model": "gpt-x" if k % 2 else "other", "agent_version": "2" if k % 4 == 1 else None}
        for k, name in enumerate(drawn)
    }
    made = new_world(n=20, n_drawn=12, traces=traces)
    assert list(made.drawn) == drawn
    made.label("Ann", dict(zip(drawn, [C] * 6 + [P] * 2 + [M] * 2 + [H, A], strict=True)))
    made.label("Ben", dict(zip(drawn, [C] * 5 + [P] * 3 + [M] * 2 + [H, A], strict=True)))
    made.judge(dict.fromkeys(ids(20), C) | dict(zip(drawn[7:], [P, M, C, M, A], strict=True)))
    return made


def test_the_ceiling_is_of_the_same_traces(world: World) -> None:
    found = diagnose_judge(world.store).ceiling["percent_agreement"]
    # Ann and Ben differ on one of twelve; the judge agrees with Ann on 6 + 1 + 1 + 1 and with Ben
    # on 5 + 1 + 1 + 1 of the twelve.
    assert found.panel.value == pytest.approx(11 / 12)
    assert found.outsider.value == pytest.approx((9 / 12 + 8 / 12) / 2)
    assert found.panel.n == found.outsider.n == 12


def test_a_trace_without_verdict_lowers_the_judge_alone(new_world: NewWorld) -> None:
    made = new_world(n=8, n_drawn=8)
    for name in ("Ann", "Ben"):
        made.label(name, dict(zip(made.drawn, [C] * 4 + [A] * 4, strict=True)))
    made.judge(dict(zip(made.drawn[:6], [C] * 4 + [A] * 2, strict=True)))
    found = diagnose_judge(made.store)
    assert found.ceiling["percent_agreement"].panel.value == 1.0
    assert found.ceiling["percent_agreement"].outsider.value == pytest.approx(6 / 8)
    assert found.errors == {None: 2.0}
    assert [d.verdict for d in found.disagreements] == ["no_verdict"] * 2
    assert found.disagreements[0].moves is None
    assert found.verdict_names[-1] == "no_verdict"


def test_questions_and_errors_by_question(world: World) -> None:
    found = diagnose_judge(world.store)
    assert list(found.nodes) == ["output", "fabrication", "all_subgoals", "material_error"]
    # Fabrication: the humans say yes of one trace, where the judge says partial_minus.
    assert found.nodes["fabrication"].table == ((0.0, 1.0), (0.0, 10.0))
    assert found.nodes["fabrication"].yes_recall.value == 0.0
    # All sub-goals, judge no on traces 7 and 8 and 10 (not asked by the humans there).
    assert found.nodes["all_subgoals"].table == ((5.5, 0.0), (2.5, 2.0))
    assert found.nodes["output"].accuracy.value == 1.0
    assert found.errors == {"all_subgoals": 2.5, "fabrication": 1.0}


def test_disagreements_come_with_both_reasons_what_moves_most_first(new_world: NewWorld) -> None:
    made = new_world(n=10, n_drawn=5)
    ann, said = made.store.add_reviewer("Ann").reviewer_id, made.store.taxonomy().answers_for
    booked, quote = (Evidence(step_id="response", quote=q) for q in ("Booked", "judge's quote"))
    drafts = [
        LabelDraft(
            client_token=f"d{k}", trace_id=name, reviewer_id=ann, batch_id=made.batch_id,
            answers=said((C, P, M, C, H)[k]), rationale=f"because {k}", evidence=(booked,),
        )
        for k, name in enumerate(made.drawn)
    ]  # fmt: skip
    made.store.import_labels(made.batch_id, drafts)
    judged = dict.fromkeys(ids(10), C) | {made.drawn[3]: P, made.drawn[4]: M}
    every: dict[str, Any] = {"judge_id": "judge-1", "evidence": (quote,)}
    made.store.add_verdicts(
        [Verdict(trace_id=t, outcome=c, reason=f"judged {t}", **every) for t, c in judged.items()]
    )
    found = diagnose_judge(made.store).disagreements
    # complete: 8 of 10 in production, 3 labelled: weight .8 / 3. Trace 2 moves 1 x that, trace 1
    # .6 x that; partial_plus: .1 / 1 x .6; hallucinated for partial_minus: nothing.
    assert [d.trace_id for d in found] == [made.drawn[k] for k in (2, 1, 3, 4)]
    assert [d.moves for d in found] == pytest.approx([0.8 / 3, 0.6 * 0.8 / 3, 0.06, 0.0])
    assert [d.credit_difference for d in found] == pytest.approx([1.0, 0.6, -0.6, 0.0])
    top = found[0]
    assert (top.labels[0].rationale, top.reason) == ("because 2", f"judged {made.drawn[2]}")
    assert (top.labels[0].evidence[0].quote, top.evidence) == ("Booked", (quote,))
    assert top.human == {M: 1.0}
    assert [d.question for d in found] == ["all_subgoals"] * 3 + ["fabrication"]


def test_leniency_by_hand(world: World) -> None:
    found = diagnose_judge(world.store)
    # Credit of the verdict less the human one: trace 5 is complete/partial_plus: 1 - .7; trace 6
    # 1 - .4; trace 9 1 - 0; the others nothing.
    assert found.leniency.estimate.value == pytest.approx((0.3 + 0.6 + 1.0) / 12)
    agents = {row.group: row for row in found.leniency_by["agent"]}
    # Even places are "other"; of the odd ones 1, 5 and 9 are version 2.
    assert set(agents) == {"other", "gpt-x 2", "gpt-x"}
    assert agents["gpt-x 2"].gap.estimate.value == pytest.approx((0.3 + 1.0) / 3)
    assert agents["other"].gap.estimate.value == pytest.approx(0.6 / 6)
    assert agents["other"].gap.p_value is not None
    # The third group shows no variation: two p-values are adjusted, the smaller one doubled.
    assert agents["gpt-x"].p_holm is None
    tested = sorted(row.gap.p_value or 1 for row in agents.values() if row.gap.p_value is not None)
    adjusted = sorted(row.p_holm for row in agents.values() if row.p_holm is not None)
    assert adjusted == pytest.approx([2 * tested[0], max(2 * tested[0], tested[1])])
    assert [row.group for row in found.leniency_by["workflow"]] == ["flights"]
    flights = found.leniency_by["workflow"][0]
    assert flights.verdict_credit - flights.human_credit == pytest.approx(1.9 / 12)


def test_slopes_follow_the_size_of_the_trace(new_world: NewWorld) -> None:
    """The judge passes the failed traces of 16 steps and fails those of one step."""
    drawn = drawn_ids(40, 40)
    sizes = {name: 16 if k % 2 else 1 for k, name in enumerate(drawn)}
    made = new_world(
        n=40, n_drawn=40,
        traces={name: {"steps": steps(size), "response": "x" * 8} for name, size in sizes.items()},
    )  # fmt: skip
    made.label("Ann", {name: M if k < 30 else C for k, name in enumerate(drawn)})
    said = {name: C if k >= 30 or (k % 2 and k < 28) else M for k, name in enumerate(drawn)}
    made.judge(said)
    found = diagnose_judge(made.store)
    # Within the failed ones 14 of 15 long ones pass and none of the short, four doublings apart;
    # the other class has no gap and as many of both: it pulls the common slope towards zero.
    failed, passed = 30 * 4, 10 * 4
    expected = (14 / 15 / 4) * failed / (failed + passed)
    steep = found.slopes["steps"]
    assert steep.estimate.value == pytest.approx(expected)
    assert known(steep.p_value) < 1e-6
    assert "does not vary" in found.slopes["response"].estimate.status


def test_self_preference_by_hand(new_world: NewWorld) -> None:
    drawn = drawn_ids(40, 40)
    traces = {n: {"model": "GPT-9" if k % 2 else "other"} for k, n in enumerate(drawn)}
    made = new_world(n=40, n_drawn=40, traces=traces)
    made.label("Ann", dict.fromkeys(drawn, M))
    made.judge({n: C if k % 2 and k < 20 else M for k, n in enumerate(drawn)})
    found = diagnose_judge(made.store, judge_family="gpt").own_family
    assert found.estimate.value == pytest.approx(10 / 20)
    assert known(found.p_value) < 1e-3
    assert "name it" in diagnose_judge(made.store).own_family.estimate.status


def test_flips_between_samples(world: World) -> None:
    assert "judge some traces twice" in diagnose_judge(world.store).retest.changed.status
    again(world, 1, dict.fromkeys(world.drawn[:4], C) | {world.drawn[8]: A})
    again(world, 2, {world.drawn[0]: P})
    found = diagnose_judge(world.store).retest
    assert found.changed.value == pytest.approx(2 / 5)
    assert found.changed.n == 5
    assert found.most_asked == 3
    assert found.per_verdict[0].value == pytest.approx(1 / 4)
    assert found.per_verdict[2].value == 1.0


def test_the_fingerprint_follows_what_the_figures_are_made_of(world: World) -> None:
    before = diagnose_judge(world.store).fingerprint
    assert diagnose_judge(world.store, judge_family="gpt").fingerprint != before
    again(world, 1, {world.drawn[0]: C})
    assert diagnose_judge(world.store).fingerprint != before


def test_one_label_and_no_verdict_at_all_on_it(new_world: NewWorld) -> None:
    made = new_world()
    made.judge({name: C for name in ids(12) if name not in made.drawn})
    made.label("Ann", {made.drawn[0]: C})
    found = diagnose_judge(made.store)
    assert not found.leniency.estimate.ok
    assert not found.ceiling["gwet_ac"].panel.ok
    assert found.leniency_by == {"workflow": ()}  # no trace names its agent
    assert all(not slope.estimate.ok for slope in found.slopes.values())
    assert len(found.disagreements) == 1
