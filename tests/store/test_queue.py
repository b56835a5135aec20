from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

import pytest

from calibration.errors import InputError, UncertifiedReviewerError
from calibration.records import Workflow
from calibration.store import Store, labels
from calibration.store.database import Cursor, Database
from calibration.store.leases import CertificateDemand
from tests.store.builders import ABANDONED, Clock, Desk, query


def test_a_reviewer_comes_first_to_what_they_already_hold(shared_desk: Desk, clock: Clock) -> None:
    desk = shared_desk
    assert desk.queue("ann", limit=1) == [desk.traces[0]]
    desk.queue("bob", limit=1)
    desk.queue("cy", limit=2)  # the first is held twice: Cy holds the second and the third
    assert desk.queue("cy", limit=3) == list(desk.traces[1:4])
    clock.forward(minutes=14)
    assert desk.queue("cy", limit=1) == [desk.traces[1]]  # renewed; the others run out
    clock.forward(minutes=2)
    assert desk.queue("cy", limit=3) == [desk.traces[1], desk.traces[0], desk.traces[2]]


def test_an_undone_trace_that_another_took_meanwhile_is_not_given_back(
    desk: Desk, clock: Clock
) -> None:
    (trace,) = desk.queue("ann", limit=1)
    desk.label(trace, "ann")
    desk.undo("ann")
    assert trace not in desk.queue("bob", limit=1)  # what was taken back is held again
    clock.forward(hours=1)
    assert desk.queue("bob", limit=1) == [trace]
    assert trace not in desk.queue("ann", limit=5)
    desk.label(trace, "bob")
    assert desk.store.queue("ann", desk.batch).total == 4


def test_batches_do_not_touch_each_other(desk: Desk) -> None:
    other = desk.store.add_batch(purpose="repeat", trace_ids=desk.traces, labels_wanted=1)
    second = Desk(store=desk.store, batch=other.batch_id, traces=desk.traces)
    (trace,) = desk.queue(limit=1)
    desk.label(trace)
    assert second.queue(limit=1) == [trace]
    second.label(trace, answers=ABANDONED)
    assert desk.labelled() == {(trace, "ann"): "complete"}
    assert second.labelled() == {(trace, "ann"): "abandoned"}
    assert second.undo() == trace
    assert desk.labelled() == {(trace, "ann"): "complete"}


def test_another_version_of_the_taxonomy_starts_afresh(desk: Desk) -> None:
    (trace,) = desk.queue(limit=1)
    desk.label(trace)
    old = desk.store.taxonomy()
    desk.store.set_taxonomy(replace(old, version="2.0"))
    assert desk.labelled() == {}
    assert desk.queue(limit=1) == [trace]
    assert desk.undo() is None
    desk.store.set_taxonomy(old)
    assert desk.labelled() == {(trace, "ann"): "complete"}
    assert desk.queue(limit=1) == [desk.traces[1]]


def test_the_queue_follows_other_handles_on_the_file_and_imports(desk: Desk) -> None:
    desk.queue()
    with Store.open(desk.store.path) as other:
        replace(desk, store=other).label(desk.traces[0])
        assert desk.queue(limit=1) == [desk.traces[1]]
        other.set_certificate_demand(CertificateDemand(every_batch=True), by="ada")
    with pytest.raises(UncertifiedReviewerError):
        desk.queue()
    desk.store.set_certificate_demand(CertificateDemand(), by="ada")
    drafts = [desk.draft(t, "bob", client_token=t, answers=ABANDONED) for t in desk.traces[:4]]
    desk.store.import_labels(desk.batch, drafts)
    assert desk.queue("ann", limit=5) == [desk.traces[4]]


def test_a_label_that_was_rolled_back_does_not_move_the_queue(
    desk: Desk, monkeypatch: pytest.MonkeyPatch
) -> None:
    def cut_off(*_: object) -> None:
        raise KeyboardInterrupt

    (trace, *_) = desk.queue()
    with monkeypatch.context() as patch:
        patch.setattr(labels, "drop", cut_off)
        with pytest.raises(KeyboardInterrupt):
            desk.label(trace)
    assert desk.queue()[0] == trace
    assert desk.events() == []
    desk.label(trace)
    assert desk.queue()[0] == desk.traces[1]


def test_an_unknown_reviewer_or_batch_is_given_nothing(desk: Desk) -> None:
    for who, batch, named in (
        ("nobody", desk.batch, "reviewer 'nobody'"), ("ann", "none-1", "batch 'none-1'"),
    ):  # fmt: skip
        with pytest.raises(InputError, match=f"{named} is not in the store"):
            desk.store.queue(who, batch)
    with pytest.raises(ValueError, match="limit must be at least 1"):
        desk.queue(limit=0)
    assert query(desk.store, "SELECT * FROM lease") == []


def test_drafts_are_kept_until_the_label_and_only_for_their_reviewer(shared_desk: Desk) -> None:
    desk = shared_desk
    first, second, *_ = desk.queue("ann")
    desk.queue("bob")
    for answers in ({"output": "no"}, {"output": "yes", "fabrication": "no"}):
        desk.save(first, answers=answers)
    assert desk.drafts() == [desk.draft(first, answers=answers)]
    assert desk.drafts("bob") == []
    desk.label(second, "ann")
    assert desk.drafts() == [desk.draft(first, answers=answers)]
    desk.label(first, "ann")
    assert query(desk.store, "SELECT * FROM draft") == []


def test_a_draft_outlives_a_skip_and_an_undone_label_leaves_one_without_answers(desk: Desk) -> None:
    (first, *_) = desk.queue()
    draft = desk.draft(first, answers={"output": "yes"}, rationale="so far", tags=("late",))
    desk.store.save_draft(draft)
    desk.skip(first)
    assert desk.undo("ann") == first
    assert desk.drafts() == [draft]
    desk.label(first, "ann", rationale="why", confidence=2, tags=("late",), seconds_active=7.0)
    desk.undo("ann")
    assert desk.drafts() == [desk.draft(first, rationale="why", confidence=2, tags=("late",))]
    desk.label(first, "ann")
    assert desk.drafts() == []


def test_batches_are_listed_newest_first_with_their_design(desk: Desk, clock: Clock) -> None:
    design = {"method": "stratified", "seed": 7, "by": ["workflow"]}
    new = desk.store.add_batch(
        purpose="exam", trace_ids=desk.traces[:2], inclusion_probability=0.25, design=design
    )
    assert new.design == design
    assert (new.n_items, new.labels_wanted) == (2, 2)
    assert [b.batch_id for b in desk.store.batches()] == [new.batch_id, desk.batch]
    items = desk.store.batch_items(new.batch_id)
    columns = ["trace_id", "position", "inclusion_probability"]
    assert items[columns].to_numpy().tolist() == [
        [desk.traces[0], 0, 0.25], [desk.traces[1], 1, 0.25],
    ]  # fmt: skip
    clock.forward(days=-900)  # order is no matter of the clock
    older = desk.store.add_batch(purpose="practice", trace_ids=desk.traces)
    assert [b.batch_id for b in desk.store.batches()] == [older.batch_id, new.batch_id, desk.batch]


def test_the_queue_shows_the_workflow_without_its_ceiling(desk: Desk) -> None:
    desk.store.set_workflow(Workflow(name="research", ceiling_usd=12.3456))
    (first, *_) = desk.store.queue("ann", desk.batch).items
    assert first.workflow == "research"
    assert "12.3456" not in repr(first)


class Counted:
    """A cursor that counts its statements."""

    def __init__(self, cursor: Cursor, statements: list[str]) -> None:
        self._cursor, self._statements = cursor, statements

    def execute(self, sql: str, *values: Any) -> Any:
        self._statements.append(sql)
        return self._cursor.execute(sql, *values)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._cursor, name)


def test_an_answer_takes_eight_statements_however_much_is_done(
    desk: Desk, monkeypatch: pytest.MonkeyPatch
) -> None:
    sent: list[str] = []

    def counting(opened: Any) -> Any:
        @contextmanager
        def counted(db: Database) -> Iterator[Any]:
            with opened(db) as cursor:
                yield Counted(cursor, sent)

        return counted

    for name in ("read", "write"):
        monkeypatch.setattr(Database, name, counting(getattr(Database, name)))
    for trace in desk.traces[:2]:
        desk.queue()
        desk.label(trace)
        sent.clear()
        desk.queue()
        # Events, leases, inserts, what is claimed was not held, claimed now, drafts, traces.
        assert 0 < len(sent) <= 8, sent


def test_a_trace_that_was_undone_keeps_its_place_for_everybody(shared_desk: Desk) -> None:
    desk = shared_desk
    for reviewer in ("ann", "bob", "cy"):
        assert desk.queue(reviewer, limit=1) == [desk.traces[0 if reviewer != "cy" else 1]]
    desk.label(desk.traces[0], "ann")
    desk.label(desk.traces[0], "bob")
    assert desk.queue("cy", limit=5)[0] == desk.traces[1]
    assert desk.store.queue("cy", desk.batch).total == 4
    assert desk.undo("bob") == desk.traces[0]
    assert desk.store.queue("cy", desk.batch).total == 5
    desk.skip(desk.traces[0], "bob")
    assert desk.queue("cy", limit=5) == [*desk.traces[1:], desk.traces[0]]
    assert desk.store.queue("bob", desk.batch).total == 5


def test_leases_are_seen_when_the_clock_goes_back(desk: Desk, clock: Clock) -> None:
    first, second = desk.queue(limit=2)
    desk.label(first)
    clock.forward(hours=-3)
    assert desk.queue(limit=1) == [second]
    clock.forward(minutes=20)
    assert desk.queue(limit=1) == [second]
    assert desk.queue("bob", limit=1) == [desk.traces[2]]
