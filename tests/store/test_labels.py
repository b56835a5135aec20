from dataclasses import replace
from typing import Any

import pytest

from calibration.errors import LabelRefusedError
from calibration.records import Evidence, LabelDraft, Step, Trace
from calibration.store import import_token
from calibration.store.labels import MAX_TEXT
from tests.store.builders import ABANDONED, COMPLETE, PARTIAL_PLUS, Desk, make_trace, query

AWKWARD = 'it\'s "quoted"; DROP TABLE label_event; --'


@pytest.fixture
def first(desk: Desk) -> str:
    """Return a trace that Ann was given."""
    return desk.queue()[0]


def stored(desk: Desk, column: str) -> Any:
    """Return a column of the latest label."""
    sql = f"SELECT {column} FROM label_event WHERE kind = 'label' ORDER BY seq DESC LIMIT 1"
    return query(desk.store, sql)[0][0]


def test_a_label_gets_the_class_that_its_answers_lead_to(desk: Desk, first: str) -> None:
    receipt = desk.label(first, answers=PARTIAL_PLUS, rationale="Two missing.", seconds_active=31.5)
    assert (receipt.outcome, receipt.duplicate) == ("partial_plus", False)
    (row,) = desk.store.label_frame(desk.batch).to_dict("records")
    assert (row["kind"], row["outcome"]) == ("label", "partial_plus")
    assert (row["rationale"], row["seconds_active"]) == ("Two missing.", 31.5)


def test_a_token_says_again_what_it_said_whatever_comes_with_it(desk: Desk, first: str) -> None:
    one = desk.label(first, client_token="same")
    two = desk.label(first, client_token="same", answers=ABANDONED)
    assert (two.event_id, two.outcome, two.duplicate) == (one.event_id, "complete", True)
    assert desk.events() == [("label", first, "ann")]
    desk.undo()
    assert desk.label(first, client_token="same").duplicate
    assert desk.labelled() == {}


def test_a_second_label_of_one_reviewer_is_refused(desk: Desk, first: str) -> None:
    desk.label(first)
    for call in (desk.label, desk.skip):
        with pytest.raises(LabelRefusedError, match="already has your label or skip; undo it"):
            call(first)
    assert desk.events() == [("label", first, "ann")]


def test_a_token_never_stands_for_two_things(shared_desk: Desk) -> None:
    desk = shared_desk
    first, second, *_ = desk.queue("ann")
    desk.queue("bob")
    desk.label(first, "ann", client_token="taken")
    for call in (
        lambda: desk.label(first, "bob", client_token="taken"),
        lambda: desk.label(second, "ann", client_token="taken"),
        lambda: desk.skip(first, "ann", client_token="taken"),
        lambda: desk.undo("ann", client_token="taken"),
    ):
        with pytest.raises(LabelRefusedError, match="'taken' already belongs to another request"):
            call()
    assert desk.events() == [("label", first, "ann")]


def test_a_trace_that_was_not_given_is_refused(desk: Desk) -> None:
    desk.queue("ann", limit=1)
    first, *_, last = desk.traces
    for trace, by in [(last, "ann"), (first, "bob"), ("t-none", "ann"), (first, "nobody")]:
        for call in (desk.label, desk.skip, desk.save, desk.flag):
            message = f"trace '{trace}' was not given to '{by}'"
            with pytest.raises(LabelRefusedError, match=message):
                call(trace, by)
    assert desk.events() == []


def test_answers_that_do_not_reach_a_class_are_refused(kept_desk: Desk) -> None:
    for answers, message in (
        (dict[str, str](), "'output' needs"),
        ({"output": "yes"}, "'fabrication' needs"),
        ({"output": "maybe"}, "'output' needs"),
        (ABANDONED | {"fabrication": "no"}, "'fabrication' is not on the path"),
        (COMPLETE | {"invented": "yes"}, "'invented' is not on the path"),
    ):
        with pytest.raises(LabelRefusedError, match=f"do not reach a class: .*{message}"):
            kept_desk.label(kept_desk.traces[0], answers=answers)
    assert kept_desk.labelled() == {}


@pytest.mark.parametrize(
    ("step", "quote"),
    [("response", "answer is 0"), ("s1", "look up 0"), ("s2", '{"q": 1}'), ("s2", "found it")],
)
def test_a_literal_span_of_any_part_of_a_step_is_evidence(
    kept_desk: Desk, step: str, quote: str
) -> None:
    receipt = kept_desk.hallucinated(kept_desk.traces[0], (step, quote))
    assert receipt.outcome == "hallucinated"
    assert stored(kept_desk, "evidence->>'$[0].quote'") == quote


def test_evidence_that_is_missing_or_not_literal_is_refused(kept_desk: Desk) -> None:
    cases: list[tuple[list[tuple[str, str]], str]] = [
        ([], "'fabrication' needs a step and a quoted span"),
        ([("response", "The answer is 1.")], "is not in step 'response'"),
        ([("response", "the ANSWER is 0")], "is not in step"),
        ([("response", "")], "is not in step"),
        ([("response", "  ")], "is not in step"),
        ([("s1", "found it")], "is not in step 's1'"),
        ([("s9", "found it")], "is not in step 's9'"),
        ([("s2", "found it"), ("s2", "lost it")], "is not in step"),
    ]
    for evidence, message in cases:
        with pytest.raises(LabelRefusedError, match=message):
            kept_desk.hallucinated(kept_desk.traces[0], *evidence)
    with pytest.raises(LabelRefusedError, match="is not in step"):  # and where none is needed
        kept_desk.label(kept_desk.traces[0], evidence=(Evidence(step_id="s1", quote="invented"),))
    assert kept_desk.labelled() == {}


def test_words_that_instruct_the_agent_are_not_its_invention(desk: Desk) -> None:
    rules = Step(step_id="s0", role="system", content="Refunds take 5 days.")
    trace = make_trace(9)
    (told,) = desk.store.ingest([replace(trace, steps=(rules, *trace.steps))]).imported
    batch = desk.store.add_batch(purpose="exam", trace_ids=[told]).batch_id
    other = Desk(store=desk.store, batch=batch, traces=(told,))
    other.queue()
    rule = Evidence(step_id="s0", quote="Refunds take 5 days.")
    with pytest.raises(LabelRefusedError, match="'fabrication' needs words of the agent"):
        other.hallucinated(told, ("s0", rule.quote))
    # Beside its own words, and for any other class, they are evidence.
    assert (
        other.hallucinated(told, ("s0", rule.quote), ("s2", "found it")).outcome == "hallucinated"
    )


def test_evidence_may_have_the_line_ends_of_a_browser_and_needs_a_response(desk: Desk) -> None:
    new = [make_trace(8, response=None), make_trace(9, response="one\r\ntwo")]
    none, two = desk.store.ingest(new).imported
    batch = desk.store.add_batch(purpose="exam", trace_ids=[none, two]).batch_id
    other = Desk(store=desk.store, batch=batch, traces=(none, two))
    other.queue()
    assert other.hallucinated(two, ("response", "one\ntwo")).outcome == "hallucinated"
    with pytest.raises(LabelRefusedError, match="is not in step 'response'"):
        other.hallucinated(none, ("response", "anything"))


@pytest.mark.parametrize(
    ("given", "kept"),
    [
        (None, None), ("   ", None), ("  because  ", "because"), ("x" * 100_000, "x" * MAX_TEXT),
        (" " * 5000 + "late", "late"), (AWKWARD, AWKWARD), ("नमस्ते 👩‍👩‍👧", "नमस्ते 👩‍👩‍👧"),
        ("half an emoji \ud83d", "half an emoji ?"),
    ],
)  # fmt: skip
def test_a_rationale_is_bounded_and_kept_literally(
    kept_desk: Desk, given: str | None, kept: str | None
) -> None:
    kept_desk.label(kept_desk.traces[0], rationale=given)
    assert stored(kept_desk, "rationale") == kept


@pytest.mark.parametrize(
    ("given", "kept"),
    [(None, None), (0, 0.0), (12.5, 12.5), (-3, None), (float("nan"), None), (float("inf"), None)],
)
def test_an_impossible_duration_is_dropped_and_the_label_kept(
    kept_desk: Desk, given: float | None, kept: float | None
) -> None:
    kept_desk.label(kept_desk.traces[0], seconds_active=given)
    assert stored(kept_desk, "seconds_active") == kept


def test_undoing_twice_walks_back_and_with_nothing_to_take_back_stores_nothing(desk: Desk) -> None:
    assert desk.undo(client_token="early") is None
    assert desk.events() == []
    # The token is free still: nothing was acknowledged by it.
    first, second, _ = desk.queue()
    receipt = desk.label(first)
    desk.skip(second)
    for last, sent in (((second, None), "late"), ((first, "complete"), "early")):
        assert desk.store.last_label("ann", desk.batch) == last
        assert [desk.undo(client_token=sent) for _ in range(2)] == [last[0], last[0]]
    assert desk.undo() is None
    assert desk.store.last_label("ann", desk.batch) is None
    assert desk.labelled() == {}
    *_, (superseded,) = query(
        desk.store, "SELECT supersedes FROM label_event WHERE kind = 'undo' ORDER BY seq"
    )
    assert str(superseded) == receipt.event_id


def test_a_skip_needs_a_reason_and_is_stored_once(desk: Desk, first: str) -> None:
    with pytest.raises(LabelRefusedError, match="a skip needs a reason"):
        desk.skip(first, reason="  \n")
    for _ in range(2):
        desk.skip(first, client_token="again", reason="broken")
    assert desk.events() == [("skip", first, "ann")]
    (row,) = desk.store.label_frame(desk.batch).to_dict("records")
    assert (row["reason"], row["outcome"]) == ("broken", None)


def test_acknowledged_names_the_tokens_of_one_reviewer_only(shared_desk: Desk) -> None:
    desk = shared_desk
    first, second, *_ = desk.queue("ann")
    desk.queue("bob")
    desk.label(first, "ann", client_token="a1")
    desk.skip(second, "ann", client_token="a2")
    desk.undo("ann", client_token="a3")
    desk.label(first, "bob", client_token="b1")
    tokens = ["a1", "a2", "a3", "b1", "none"]
    assert desk.store.acknowledged("ann", desk.batch, tokens) == {"a1", "a2", "a3"}
    assert desk.store.acknowledged("bob", desk.batch, tokens) == {"b1"}
    assert desk.store.acknowledged("ann", desk.batch, []) == set()


def given(desk: Desk, to: str, trace: Trace) -> Desk:
    """Return a desk of one new trace that somebody was given."""
    (new,) = desk.store.ingest([trace]).imported
    batch = desk.store.add_batch(purpose="exam", trace_ids=[new]).batch_id
    with desk.store._db.write() as cursor:
        cursor.execute("INSERT INTO lease VALUES (?, ?, ?, now())", [batch, new, to])
    return Desk(store=desk.store, batch=batch, traces=(new,))


def test_a_label_is_simulated_when_its_reviewer_or_its_trace_is(desk: Desk) -> None:
    desk.store.add_reviewer("Robot", simulated=True)
    cases = [("ann", False), ("robot", False), ("ann", True), ("robot", True)]
    for number, (who, simulated) in enumerate(cases):
        other = given(desk, who, make_trace(9 + number, simulated=simulated))
        other.label(other.traces[0], who)
        frame = desk.store.label_frame(other.batch)
        assert frame["simulated"].tolist() == [simulated or who == "robot"]
    # Whoever is no reviewer is refused, even on simulated traces.
    other = given(desk, "ghost", make_trace(20, simulated=True))
    with pytest.raises(LabelRefusedError, match="no reviewer 'ghost'"):
        other.label(other.traces[0], "ghost")


def imported(desk: Desk, trace: str, answers: dict[str, str], reviewer: str = "bob") -> LabelDraft:
    outcome = desk.store.taxonomy().outcome(answers)
    return LabelDraft(
        client_token=import_token(desk.batch, "1.0", reviewer, trace, outcome), trace_id=trace,
        reviewer_id=reviewer, batch_id=desk.batch, answers=answers,
    )  # fmt: skip


def test_imported_labels_are_stored_once_and_never_overwritten(desk: Desk) -> None:
    drafts = [imported(desk, trace, COMPLETE) for trace in desk.traces[:3]]
    assert len(desk.store.import_labels(desk.batch, drafts).imported) == 3
    again = desk.store.import_labels(desk.batch, [*drafts, imported(desk, "t-none", COMPLETE)])
    assert (again.imported, len(again.already_there), again.unknown) == ((), 3, ("t-none",))
    other = desk.store.import_labels(desk.batch, [imported(desk, desk.traces[0], ABANDONED)])
    assert other.changed == ((desk.traces[0], "bob"),)
    assert desk.labelled()[desk.traces[0], "bob"] == "complete"


def test_nobody_takes_the_token_of_a_label_that_is_imported_later(desk: Desk) -> None:
    first, *_ = desk.queue("ann")
    draft = imported(desk, first, COMPLETE)
    for call in (desk.label, desk.skip, desk.flag):
        with pytest.raises(LabelRefusedError, match="is no token of a page"):
            call(first, "ann", client_token=draft.client_token)
    assert desk.store.import_labels(desk.batch, [draft]).imported == ((first, "bob"),)


@pytest.mark.parametrize("sent", ["", "x" * 201, "\ud800"])
def test_a_token_is_short_text(desk: Desk, sent: str) -> None:
    first, *_ = desk.queue("ann")
    with pytest.raises(LabelRefusedError, match="is no token of a page") as refused:
        desk.label(first, "ann", client_token=sent)
    assert len(str(refused.value)) < 200
    assert desk.events() == []


def test_an_imported_label_that_was_taken_back_or_replaced_stays_so(desk: Desk) -> None:
    drafts = [imported(desk, desk.traces[0], COMPLETE)]
    desk.store.import_labels(desk.batch, drafts)
    assert desk.undo("bob") == desk.traces[0]
    again = desk.store.import_labels(desk.batch, drafts)
    assert (again.imported, len(again.already_there)) == ((), 1)
    assert desk.labelled() == {}
    desk.queue("bob")
    desk.label(desk.traces[0], "bob", answers=ABANDONED)
    assert desk.store.import_labels(desk.batch, drafts).changed == ((desk.traces[0], "bob"),)
    assert desk.labelled() == {(desk.traces[0], "bob"): "abandoned"}
