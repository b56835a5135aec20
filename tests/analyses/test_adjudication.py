"""The order of adjudication, worked by hand, and what is left when a trace is settled."""

from collections.abc import Iterator
from itertools import count
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from calibration.analyses.reviewers.adjudication import (
    AdjudicationWork,
    Due,
    Proposal,
    adjudication_work,
    draw_agreed,
    handbook_proposals,
    in_order,
    serve,
)
from calibration.records import LabelDraft
from calibration.store.batches import SELECTION
from tests.analyses.worlds import World, ids, known, make_world
from tests.classes import OUTCOMES

_tokens = count(1)
C, P, M, H, A = OUTCOMES


@pytest.fixture
def world(tmp_path: Path) -> Iterator[World]:
    made = make_world(tmp_path / "s.duckdb", n=12, n_drawn=8)
    made.store.add_reviewer("Lea", role="lead")
    yield made
    made.store.close()


def said(world: World, **pairs: tuple[str, str]) -> dict[str, str]:
    """Let Ann and Ben label; return the traces by the names of the pairs."""
    names = dict(zip(pairs, world.drawn, strict=False))
    for place, who in enumerate(("Ann", "Ben")):
        world.label(who, {names[name]: pair[place] for name, pair in pairs.items()})
    return names


def five(world: World) -> dict[str, str]:
    return said(world, one=(C, C), two=(C, C), three=(A, A), four=(C, A), five=(C, H))


def work(world: World, by: str = "lea") -> AdjudicationWork:
    return adjudication_work(world.store, world.batch_id, by)


def order(world: World, by: str = "lea") -> list[str]:
    return [of.trace_id for of in work(world, by).due]


def settle(world: World, trace_id: str, outcome: str, **more: Any) -> None:
    """Let Lea decide a trace blind, and settle it."""
    answers = world.store.taxonomy().answers_for(outcome)
    batch = known(serve(world.store, work(world), "lea", also=[trace_id]))
    world.store.queue("lea", batch.batch_id, limit=20)
    blind = LabelDraft(
        client_token=f"blind-{next(_tokens)}", trace_id=trace_id, reviewer_id="lea",
        batch_id=batch.batch_id, answers=answers,
    )  # fmt: skip
    world.store.record_label(blind)
    values: dict[str, Any] = {"cause": "rubric_unclear", "rationale": "Because."} | more
    world.store.adjudicate(
        trace_id=trace_id, answers=answers, adjudicator="lea", batch_id=world.batch_id, **values
    )


def flag(world: World, trace_id: str) -> None:
    world.store.record_flag(
        client_token=f"flag-{next(_tokens)}", trace_id=trace_id, reviewer_id="cy",
        batch_id=world.batch_id, flagged=True, reason="look",
    )  # fmt: skip


def test_the_dearest_disagreement_comes_first(world: World) -> None:
    # Ten labels: complete 6, abandoned 3, hallucinated 1. Alpha is 1 - .4 / (1 - 36/90) = 1/3.
    # Without "four" it is 1 - .25 / (34/56) = 10/17, without "five" 1 - .25 / (30/56) = 8/15.
    names = five(world)
    found = work(world)
    assert [of.trace_id for of in found.due] == [names["four"], names["five"]]
    assert [of.cost for of in found.due] == pytest.approx([10 / 17 - 1 / 3, 8 / 15 - 1 / 3])
    assert found.alpha.value == pytest.approx(1 / 3)
    assert found.alpha.interval is not None
    assert (found.alpha.n, found.alpha.method) == (5, "delete-one jackknife, Fisher z")
    assert (found.n_disputed, found.n_shared) == (2, 5)
    settle(world, names["four"], C)
    assert work(world).alpha.value == pytest.approx(1 / 3)


def test_what_the_corrected_rate_waits_for_comes_first(world: World) -> None:
    names = five(world)
    assert not any(of.calibrates for of in work(world).due)
    world.judge({names["five"]: "complete"})
    assert order(world) == [names["five"], names["four"]]
    assert [of.calibrates for of in work(world).due] == [True, False]


def test_a_batch_that_is_no_random_sample_calibrates_nothing(world: World) -> None:
    (first, *_) = rest = tuple(t for t in ids(12) if t not in world.drawn)
    chosen = world.store.add_batch(
        purpose="production", trace_ids=rest, design={"kind": SELECTION}, labels_wanted=2
    )
    world.judge(dict.fromkeys(ids(12), "complete"))
    other = World(world.store, chosen.batch_id, rest)
    said(other, one=(C, A))
    assert [(of.trace_id, of.calibrates) for of in work(other).due] == [(first, False)]


def test_what_the_adjudicator_labelled_comes_last(world: World) -> None:
    names = five(world)
    assert order(world, "ann") == order(world)  # both labelled both
    world.label("Lea", {names["four"]: "complete"})
    assert order(world)[-1] == names["four"]
    assert [of.own for of in work(world).due] == [False, True]


def test_a_flag_waits_behind_what_costs_something(world: World) -> None:
    world.store.add_reviewer("Cy")
    world.store.queue("cy", world.batch_id, limit=20)
    names = five(world)
    flag(world, names["one"])
    assert order(world) == [names["four"], names["five"], names["one"]]
    flag(world, names["five"])
    found = work(world)
    assert (found.n_disputed, found.n_flagged) == (2, 2)
    assert order(world) == [names["four"], names["five"], names["one"]]


def due(trace_id: str, **more: Any) -> Due:
    values: dict[str, Any] = {
        "cost": 0.0, "entropy": 0.0, "disputed": True, "flagged": False, "reopened": False,
        "calibrates": False, "own": False,
    }  # fmt: skip
    return Due(trace_id=trace_id, **(values | more))


def test_equal_costs_go_by_how_open_the_class_is_and_agreed_traces_lie_scattered() -> None:
    ordered = in_order([due("a"), due("b", entropy=0.5), due("c", cost=0.1)])
    assert [of.trace_id for of in ordered] == ["c", "b", "a"]
    disputes = [due(f"d{k}", cost=1 - k / 10) for k in range(6)]
    asked = [due(f"a{k}", disputed=False) for k in range(6)]
    names = [of.trace_id for of in in_order([*asked, *disputes])]
    assert [t for t in names if t.startswith("d")] == [f"d{k}" for k in range(6)]
    assert not names[6:] == [f"a{k}" for k in range(6)]
    assert names == [of.trace_id for of in in_order([*disputes, *reversed(asked)])]


def test_what_is_settled_is_left_out_and_counted(world: World) -> None:
    names = five(world)
    settle(world, names["four"], C, cause="slip")
    found = work(world)
    assert [of.trace_id for of in found.due] == [names["five"]]
    (done,) = found.settled
    assert (done.trace_id, done.outcome, done.cause, done.question) == (
        names["four"], "complete", "slip", "output",
    )  # fmt: skip
    assert done.labels == (("ann", "complete"), ("ben", "abandoned"))
    assert (done.blind, done.own, done.changed, done.elsewhere) == (True, False, False, False)
    assert found.by_cause().to_numpy().tolist() == [["output", "slip", 1]]
    # A further label reopens it; it stays settled.
    world.label("Cy", {names["four"]: "complete"})
    found = work(world)
    assert names["four"] in [of.trace_id for of in found.due]
    assert (found.n_reopened, [of.trace_id for of in found.settled]) == (1, [names["four"]])


def test_agreed_traces_can_be_asked_for(world: World) -> None:
    names = five(world)
    found = work(world)
    assert set(found.agreed) == {names["one"], names["two"], names["three"]}
    drawn = draw_agreed(found, 2, rng=np.random.default_rng(1))
    assert len(set(drawn)) == 2
    assert set(drawn) < set(found.agreed)
    assert draw_agreed(found, 10, rng=np.random.default_rng(1)) != []
    serve(world.store, found, "lea", also=drawn)
    again = work(world)
    assert {of.trace_id for of in again.due} == {names["four"], names["five"], *drawn}
    assert again.n_disputed == 2
    assert known(serve(world.store, again, "lea")).n_items == 4
    settle(world, drawn[0], "partial_plus", cause=None)
    assert drawn[0] not in order(world)


def test_nothing_to_do(world: World) -> None:
    assert work(world).due == ()
    said(world, one=(C, C))
    assert work(world).due == ()
    assert "every rating names one class" in work(world).alpha.status


def thrice(world: World, cause: str, pairs: list[tuple[str, str]]) -> None:
    names = said(world, **{f"t{k}": pair for k, pair in enumerate(pairs)})
    for name in names.values():
        settle(world, name, P, cause=cause)


def test_a_question_whose_rubric_is_unclear_three_times_becomes_a_proposal(world: World) -> None:
    thrice(world, "rubric_unclear", [(C, P), (P, M), (C, P)])
    assert handbook_proposals(world.store) == ()  # complete/partial+ twice, partial+/- once
    pairs = {"slip": (C, P), "trace_unclear": (C, P), "rubric_unclear": (C, M)}
    for trace, (cause, pair) in zip(world.drawn[3:], pairs.items(), strict=False):
        assert handbook_proposals(world.store) == ()  # the others say nothing of the rubric
        for who, outcome in zip(("Ann", "Ben"), pair, strict=True):
            world.label(who, {trace: outcome})
        settle(world, trace, P, cause=cause)
    (found,) = handbook_proposals(world.store)
    assert (found.question, found.classes, found.causes, found.status) == (
        "all_subgoals", (), {"rubric_unclear": 3}, "open",
    )  # fmt: skip
    assert len(found.trace_ids) == 3
    assert found.text == (
        "Are all sub-goals satisfied and the spec met? answer no when ... "
        "(3 of 3 were adjudicated as Partial-correct.)"
    )


def test_a_pair_of_classes_that_is_mixed_up_three_times_becomes_one(world: World) -> None:
    thrice(world, "real_judgement", [(C, P)] * 3)
    (found,) = handbook_proposals(world.store)
    assert (found.question, found.classes) == ("all_subgoals", (C, P))
    assert "Between Completed and Partial-correct: answer no when ..." in found.text
    assert handbook_proposals(world.store, at_least=4) == ()
    with pytest.raises(ValueError, match="2 or more"):
        handbook_proposals(world.store, at_least=1)


def decide(world: World, found: Proposal, status: str, **more: Any) -> None:
    world.store.decide_proposal(
        client_token=status, proposal_id=found.proposal_id, question=found.question,
        trace_ids=found.trace_ids, status=status, decided_by="lea", **more,
    )  # fmt: skip


def test_a_decision_holds_until_as_many_come_again(world: World) -> None:
    thrice(world, "rubric_unclear", [(C, P)] * 3)
    (found,) = handbook_proposals(world.store)
    decide(world, found, "declined", text="x", reason="It is there.")
    (declined,) = handbook_proposals(world.store)
    assert (declined.status, declined.reason, declined.n_new) == ("declined", "It is there.", 0)
    for trace in world.drawn[3:6]:
        world.label("Ann", {trace: C})
        world.label("Ben", {trace: P})
        settle(world, trace, P)
    (again,) = handbook_proposals(world.store)
    assert (again.status, again.n_new) == ("open", 3)
    # What was accepted stays when its adjudications are taken back.
    decide(world, again, "accepted", text="Cite it.")
    for k, trace in enumerate(again.trace_ids):
        world.store.withdraw_consensus(client_token=f"w{k}", trace_id=trace, adjudicator="lea")
    (kept,) = handbook_proposals(world.store)
    assert (kept.status, kept.text) == ("accepted", "Cite it.")
