"""Every change is recorded: who made it, when, and by which command or page."""

import json
from pathlib import Path

import pytest

from calibration.errors import LabelRefusedError, NotAllowedError
from calibration.records import Reviewer, Workflow
from calibration.store import Store
from tests.store.builders import COMPLETE, Desk, empty_store, make_desk, make_traces
from tests.store.test_keeper import remote, until

LEA = Reviewer(reviewer_id="lea", name="Lea", role="lead")
ANN = Reviewer(reviewer_id="ann", name="Ann", role="reviewer")


@pytest.fixture
def desk(tmp_path: Path) -> Desk:
    return make_desk(tmp_path / "store.duckdb")


def trail(store: Store) -> list[tuple[object, ...]]:
    """Return actor, origin, what and detail of what the test changed, oldest first."""
    found = store.audit_trail().iloc[::-1]
    columns = zip(found["actor"], found["origin"], found["what"], found["detail"], strict=True)
    return [(who, origin, what, json.loads(about)) for who, origin, what, about in columns]


def test_a_label_names_the_person_the_page_and_the_trace(desk: Desk) -> None:
    before = len(trail(desk.store))
    own = desk.store.acting_as(ANN).by_way_of("page label")
    (first, *_) = own.queue("ann", desk.batch, limit=1).items
    own.record_label(desk.draft(first.trace_id, answers=COMPLETE, rationale="secret thought"))
    own.record_undo(client_token="back", reviewer_id="ann", batch_id=desk.batch)
    (label, undo) = trail(desk.store)[before:]
    about = {"trace_id": first.trace_id, "batch_id": desk.batch, "reviewer_id": "ann"}
    assert label == ("ann", "page label", "record_label", about)
    assert undo[:3] == ("ann", "page label", "record_undo")


def test_a_new_store_says_where_its_taxonomy_comes_from(tmp_path: Path) -> None:
    with empty_store(tmp_path / "store.duckdb") as store:
        first = trail(store)[0]
    assert first[:3] == (None, "opening", "taxonomy")


def test_every_change_of_people_rules_and_traces_has_one_entry(tmp_path: Path) -> None:
    with empty_store(tmp_path / "store.duckdb") as store:
        before = len(trail(store))
        by = store.by_way_of("asr test")
        by.add_reviewer("Mara", role="lead")
        by.set_role("mara", "admin")
        by.set_passphrase("mara", "correct horse battery")
        by.set_workflow(Workflow(name="w", ceiling_usd=1.0))
        by.set_workflow(Workflow(name="w", ceiling_usd=1.0))
        by.ingest(make_traces(2))
        entries = trail(store)[before:]
    assert [entry[2] for entry in entries] == [
        "add_reviewer", "role", "passphrase", "workflow", "import"
    ]  # fmt: skip
    assert {entry[:2] for entry in entries} == {(None, "asr test")}
    assert "correct horse" not in json.dumps(entries)
    assert "argon2" not in json.dumps(entries)


def test_what_was_refused_leaves_no_entry(desk: Desk) -> None:
    before = len(trail(desk.store))
    with pytest.raises(NotAllowedError):
        desk.store.acting_as(ANN).set_role("ann", "admin")
    with pytest.raises(LabelRefusedError):
        desk.store.record_label(desk.draft("nowhere", answers=COMPLETE, client_token="x"))
    assert len(trail(desk.store)) == before


def test_what_changes_nothing_leaves_no_entry(desk: Desk) -> None:
    before, (first, *_) = len(trail(desk.store)), desk.queue()
    for _ in range(2):
        desk.label(first, client_token="label")
    for _ in range(2):
        desk.undo(client_token="undo")
    for _ in range(2):
        desk.flag(first, client_token="flag", reason="odd")
        desk.store.add_reviewer("Mara")
    desk.store.import_labels(desk.batch, [])
    assert [entry[2] for entry in trail(desk.store)[before:]] == [
        "record_label", "record_undo", "record_flag", "add_reviewer"
    ]  # fmt: skip


def test_reviewers_whom_an_import_adds_have_an_entry_each(desk: Desk) -> None:
    before = len(trail(desk.store))
    draft = desk.draft(desk.traces[0], reviewer="mara", answers=COMPLETE)
    desk.store.import_labels(desk.batch, [draft], names=["Mara", "Nobody"])
    added, imported = trail(desk.store)[before:]
    assert added[2:] == ("add_reviewer", {"name": "Mara", "role": "reviewer"})
    assert imported[2] == "labels imported"


def test_only_admins_see_it(desk: Desk) -> None:
    for person in (ANN, LEA):
        with pytest.raises(NotAllowedError):
            desk.store.acting_as(person).audit_trail()


def test_it_can_be_narrowed(desk: Desk) -> None:
    desk.label(desk.queue(limit=1)[0])
    desk.store.acting_as(LEA).set_workflow(Workflow(name="w", ceiling_usd=1.0))
    assert desk.store.audit_trail(who="lea")["what"].tolist() == ["workflow"]
    assert set(desk.store.audit_trail(what="record_label")["what"]) == {"record_label"}
    newest = desk.store.audit_trail(limit=1)
    assert newest["what"].tolist() == ["workflow"]
    assert len(desk.store.audit_trail(since=newest["created_at"][0])) == 1


def test_a_request_that_was_handed_over_keeps_its_command(desk: Desk) -> None:
    keeper = desk.store.keeper()
    keeper.start()
    until(lambda: desk.store.path.with_suffix(".snapshot.duckdb").exists())
    remote(desk.store).by_way_of("asr people add (as root)").add_reviewer("Mara")
    keeper.stop()
    assert trail(desk.store)[-1][1:3] == ("asr people add (as root)", "add_reviewer")
