"""Adjudication: blind first, with reasons and provenance, and never by majority."""

import pytest

from calibration.errors import InputError, LabelRefusedError
from tests.store.benches import Bench
from tests.store.builders import ABANDONED, COMPLETE, PARTIAL_PLUS, query, token

PARTIAL_MINUS = PARTIAL_PLUS | {"material_error": "yes"}


def test_a_consensus_knows_where_it_comes_from(bench: Bench) -> None:
    bench.said(COMPLETE, PARTIAL_PLUS)
    assert bench.blind(COMPLETE) is not None
    receipt = bench.settle(COMPLETE, cause="rubric_unclear")
    (row,) = bench.frame()
    assert (row["event_id"], row["outcome"]) == (receipt.event_id, "complete")
    assert (row["adjudicator"], row["batch_id"]) == ("lea", bench.desk.batch)
    assert (row["cause"], row["question"]) == ("rubric_unclear", "all_subgoals")
    assert (row["blind_outcome"], row["blind"], row["own_label"]) == ("complete", True, False)
    assert row["labels"] == (
        '[{"reviewer_id":"ann","outcome":"complete"},'
        '{"reviewer_id":"bob","outcome":"partial_plus"}]'
    )
    assert row["reopened"] is False
    stored = query(bench.store, "SELECT len(label_events) FROM adjudication_event")
    assert stored == [(2,)]
    assert bench.store.consensus_frame()["outcome"].tolist() == ["complete"]


def test_who_labelled_the_trace_and_adjudicates_it_is_said(bench: Bench) -> None:
    bench.desk.queue("lea")
    bench.desk.label(bench.trace, "lea", answers=ABANDONED)
    bench.said(COMPLETE)
    bench.blind(ABANDONED)
    bench.settle(ABANDONED)
    assert bench.frame()[0]["own_label"] is True


def test_nothing_becomes_consensus_by_majority(bench: Bench) -> None:
    bench.said(COMPLETE, COMPLETE, ABANDONED)
    bench.serve()
    assert bench.store.consensus_frame().empty
    bench.blind(ABANDONED)
    assert bench.store.consensus_frame().empty
    bench.settle(ABANDONED)
    assert bench.store.consensus_frame()["outcome"].tolist() == ["abandoned"]


def test_a_consensus_from_elsewhere_has_no_provenance(bench: Bench) -> None:
    bench.said(COMPLETE, ABANDONED)
    bench.store.adjudicate(trace_id=bench.trace, answers=COMPLETE, adjudicator="a file")
    (row,) = bench.frame()
    assert (row["adjudicator"], row["outcome"], row["reopened"]) == ("a file", "complete", False)
    assert all(row[name] is None for name in ("batch_id", "cause", "question", "labels"))


def test_the_answers_come_after_the_blind_decision_only(bench: Bench) -> None:
    bench.said(COMPLETE, PARTIAL_PLUS)
    bench.serve()
    assert bench.store.settlement("lea", bench.desk.batch) is None
    assert bench.store.exposure_frame().empty
    with pytest.raises(LabelRefusedError, match="decided blind before"):
        bench.settle(COMPLETE)
    shown = bench.blind(PARTIAL_PLUS)
    assert shown is not None
    assert (shown.trace_id, shown.question) == (bench.trace, "all_subgoals")
    assert [(of.reviewer_id, of.outcome) for of in shown.labels] == [
        ("ann", "complete"), ("bob", "partial_plus"),
    ]  # fmt: skip
    assert (shown.blind.outcome, shown.blind.blind) == ("partial_plus", True)
    seen = bench.store.exposure_frame()[["reviewer_id", "trace_id", "what"]]
    assert seen.to_numpy().tolist() == [["lea", bench.trace, "labels"]]


def test_a_decision_is_blind_when_it_is_ones_own_and_labels_were_not_seen(bench: Bench) -> None:
    bench.said(COMPLETE, ABANDONED)
    bench.blind(COMPLETE, by="leo")
    assert bench.store.settlement("lea", bench.desk.batch) is None
    with pytest.raises(LabelRefusedError, match="decided blind before"):
        bench.settle(COMPLETE)
    bench.store.record_exposure("lea", [bench.trace], "labels")
    shown = bench.blind(COMPLETE)
    assert shown is not None
    assert not shown.blind.blind
    bench.settle(COMPLETE)
    assert bench.frame()[0]["blind"] is False


def test_a_decision_changed_after_the_answers_is_not_the_blind_one(bench: Bench) -> None:
    bench.said(COMPLETE, ABANDONED)
    bench.blind(COMPLETE)
    batch = bench.serve()
    bench.store.record_undo(client_token=token(), reviewer_id="lea", batch_id=batch)
    assert bench.store.settlement("lea", bench.desk.batch) is None
    shown = bench.blind(ABANDONED)
    assert shown is not None
    assert (shown.blind.outcome, shown.blind.blind) == ("complete", True)


def test_blind_decisions_are_no_labels_of_the_production_batch(bench: Bench) -> None:
    bench.said(COMPLETE, ABANDONED)
    before = bench.store.label_frame(bench.desk.batch)
    bench.blind(PARTIAL_PLUS)
    assert bench.store.label_frame(bench.desk.batch).equals(before)
    assert len(bench.desk.queue("cy", limit=5)) == 5


def test_where_reviewers_differ_a_cause_is_needed(bench: Bench) -> None:
    bench.said(COMPLETE, ABANDONED)
    bench.blind(COMPLETE)
    with pytest.raises(LabelRefusedError, match="needs a cause"):
        bench.settle(COMPLETE, cause=None)
    with pytest.raises(InputError, match="cause must be one of trace_unclear"):
        bench.settle(COMPLETE, cause="mood")
    bench.settle(COMPLETE, cause="trace_unclear")


def test_where_they_agree_only_a_class_that_nobody_gave_needs_a_rationale(bench: Bench) -> None:
    bench.said(COMPLETE, COMPLETE)
    bench.blind(PARTIAL_PLUS)
    with pytest.raises(LabelRefusedError, match="no reviewer gave"):
        bench.settle(PARTIAL_PLUS, rationale="  ")
    bench.settle(PARTIAL_PLUS, rationale="A source is missing.")
    assert bench.frame()[0]["question"] == "all_subgoals"
    other = bench.desk.traces[1]
    bench.said(COMPLETE, COMPLETE, trace=other)
    bench.blind(COMPLETE, other)
    bench.settle(COMPLETE, trace_id=other, cause=None)
    frame = bench.store.adjudication_frame(bench.desk.batch).set_index("trace_id")
    assert frame.loc[other, ["cause", "question"]].isna().all()


def test_who_changes_their_mind_says_why(bench: Bench) -> None:
    bench.said(COMPLETE, ABANDONED)
    bench.blind(COMPLETE)
    with pytest.raises(LabelRefusedError, match="decided otherwise before"):
        bench.settle(ABANDONED)
    bench.settle(ABANDONED, rationale="There is no answer, only an apology.")
    (row,) = bench.frame()
    assert (row["blind_outcome"], row["outcome"]) == ("complete", "abandoned")


def test_an_adjudication_that_is_sent_again_is_stored_once(bench: Bench) -> None:
    bench.said(COMPLETE, ABANDONED)
    bench.blind(COMPLETE)
    first = bench.settle(COMPLETE, client_token="once")
    again = bench.settle(COMPLETE, client_token="once")
    assert (first.duplicate, again.duplicate) == (False, True)
    assert first.event_id == again.event_id
    with pytest.raises(LabelRefusedError, match="belongs to another request"):
        bench.settle(COMPLETE, client_token="once", trace_id=bench.desk.traces[1])
    with pytest.raises(LabelRefusedError, match="belongs to another request"):
        bench.store.withdraw_consensus(client_token="once", trace_id=bench.trace, adjudicator="lea")


def test_labels_that_changed_since_they_were_shown_are_looked_at_again(bench: Bench) -> None:
    bench.said(COMPLETE, ABANDONED)
    shown = bench.blind(COMPLETE)
    assert shown is not None
    bench.desk.undo("bob")
    ids = [of.event_id for of in shown.labels]
    with pytest.raises(LabelRefusedError, match="labels have changed"):
        bench.settle(COMPLETE, label_events=ids)
    bench.settle(COMPLETE, label_events=ids[:1])


def test_two_leads_do_not_settle_a_trace_over_each_other(bench: Bench) -> None:
    bench.said(COMPLETE, ABANDONED)
    bench.blind(COMPLETE)
    bench.blind(ABANDONED, by="leo")
    bench.settle(COMPLETE)
    assert bench.store.settlement("leo", bench.desk.batch) is None
    with pytest.raises(LabelRefusedError, match="adjudicated this trace meanwhile"):
        bench.settle(ABANDONED, adjudicator="leo")
    assert bench.store.consensus_frame()["outcome"].tolist() == ["complete"]


def test_a_settled_label_that_is_taken_back_reopens_the_trace(bench: Bench) -> None:
    bench.settled()
    assert bench.reopened() == [False]
    bench.desk.undo("bob")
    assert bench.reopened() == [True]
    # It stays consensus until the lead decides again, for whom it is waiting.
    assert bench.store.consensus_frame()["outcome"].tolist() == ["complete"]
    shown = bench.store.settlement("lea", bench.desk.batch)
    assert shown is not None
    assert shown.standing == "complete"
    with pytest.raises(LabelRefusedError, match="meanwhile"):
        bench.settle(COMPLETE)
    bench.settle(COMPLETE, supersedes=shown.supersedes)
    assert bench.reopened() == [False]


def test_a_further_label_reopens_it_and_one_that_does_not_count_does_not(bench: Bench) -> None:
    bench.settled()
    bench.desk.queue("lea")
    bench.desk.label(bench.trace, "lea", answers=COMPLETE)
    assert bench.reopened() == [False]  # she had seen the labels
    bench.desk.undo("lea")
    bench.desk.queue("cy")
    bench.desk.label(bench.trace, "cy", answers=COMPLETE)
    assert bench.reopened() == [True]


def test_what_is_withdrawn_is_open_again_and_all_of_it_is_kept(bench: Bench) -> None:
    bench.settled()
    for _ in range(2):
        bench.store.withdraw_consensus(
            client_token="w", trace_id=bench.trace, adjudicator="leo", reason="Wrong trace"
        )
    assert bench.store.consensus_frame().empty
    assert bench.store.settlement("lea", bench.desk.batch) is not None
    history = bench.store.consensus_history(bench.trace)
    assert history[["kind", "adjudicator"]].to_numpy().tolist() == [
        ["consensus", "lea"], ["withdrawal", "leo"],
    ]  # fmt: skip
    assert history["rationale"].tolist()[1] == "Wrong trace"
    with pytest.raises(LabelRefusedError, match="no final label to withdraw"):
        bench.store.withdraw_consensus(
            client_token=token(), trace_id=bench.trace, adjudicator="lea"
        )


def test_the_last_step_is_the_last_adjudication_or_a_later_skip(bench: Bench) -> None:
    a, b, c, *_ = bench.desk.traces
    assert bench.store.last_adjudication("lea", bench.desk.batch) is None
    for trace in (a, b):
        bench.said(COMPLETE, ABANDONED, trace=trace)
        bench.blind(COMPLETE, trace)
        bench.settle(COMPLETE, trace_id=trace)
    assert bench.store.last_adjudication("lea", bench.desk.batch) == (b, "complete")
    bench.store.withdraw_consensus(client_token=token(), trace_id=b, adjudicator="lea")
    assert bench.store.last_adjudication("lea", bench.desk.batch) == (a, "complete")
    batch = bench.serve(c)
    bench.store.queue("lea", batch)
    bench.store.record_skip(
        client_token=token(), trace_id=c, reviewer_id="lea", batch_id=batch, reason="no idea"
    )
    assert bench.store.last_adjudication("lea", bench.desk.batch) == (c, None)
