"""What a lead is told to do next, and that the rate is the one of the report."""

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path

import numpy as np
import pytest

from calibration.analyses.reviewers.adjudication import adjudication_work, open_traces
from calibration.analyses.sampling.draw import SamplingDesign, batch_of, draw_batch
from calibration.analyses.status import NextAction, StoreStatus, store_status
from calibration.analyses.success_rate.from_store import report_on_store
from calibration.reporting.document import text_lines
from calibration.reporting.sections.status import NOTHING, document, rate_words, trend_words
from calibration.store import Store, TraceFilter
from calibration.store.database import utc_now
from calibration.store.leases import claim
from tests.analyses.conftest import NewWorld
from tests.analyses.worlds import World, ids, make_trace
from tests.classes import OUTCOMES
from tests.stores import copy_store, hashing_quickly

C, P, M, H, A = OUTCOMES


def kinds(found: StoreStatus) -> list[str]:
    return [action.kind for action in found.next]


def one(actions: Sequence[NextAction], kind: str) -> NextAction:
    (found,) = [action for action in actions if action.kind == kind]
    return found


def labelled(world: World, other: str = C) -> None:
    """Let two people label everything; they differ on the first two traces."""
    world.label("Ann", dict.fromkeys(world.drawn, C))
    world.label("Ben", {t: other if k < 2 else C for k, t in enumerate(world.drawn)})


@pytest.fixture
def world(new_world: NewWorld) -> World:
    made = new_world(n=60, n_drawn=20)
    made.store.set_identities("open")
    made.store.add_reviewer("Lea", role="lead")
    return made


def test_an_empty_store_asks_for_traces_then_people_then_a_batch(tmp_path: Path) -> None:
    with Store.open(tmp_path / "new.duckdb", create=True) as store:
        found = store_status(store)
        assert [(a.kind, a.page) for a in found.next] == [("import", "start")]
        assert rate_words(found.rate) == "No rate yet: no batch has been drawn."
        store.set_identities("open")
        store.ingest([make_trace(t) for t in ids(30)])
        found = store_status(store)
        assert [(a.kind, a.page, a.n) for a in found.next] == [
            ("people", "start", 0), ("draw", "overview", 30),
        ]  # fmt: skip
        store.add_reviewer("Ann")
        assert kinds(store_status(store)) == ["draw"]
        # A chosen batch is labelled, and has no rate.
        batch_of(
            store, TraceFilter(workflows=("flights",), text="r00"), SamplingDesign(seed=1), n=5
        )
        found = store_status(store)
        assert kinds(found) == ["label"]
        assert found.results is None
        assert "no random sample" in rate_words(found.rate)


def test_the_rate_and_the_trend_are_those_of_the_report(built_demo: Path, tmp_path: Path) -> None:
    with Store.open(copy_store(built_demo, tmp_path / "demo.duckdb")) as store:
        found, report = store_status(store), report_on_store(store)
    assert found.results is not None
    assert report.weekly is not None
    assert found.results.weekly is not None
    assert (found.rate, found.results.weekly.drop) == (report.asr, report.weekly.drop)
    assert found.results.weekly.weeks == report.weekly.weeks
    assert rate_words(found.rate) == (
        "The agent success rate is 56.6 % (95 % interval: 53.0 % to 60.1 %)."
    )
    drift, more = found.next
    assert (drift.kind, drift.what, drift.page) == (
        "drift",
        "Examine Cleo (simulated) again",
        "reviewers",
    )
    assert f"Probably since {datetime.now(UTC):%d %b %Y}."[:14] in drift.why
    assert (more.kind, more.n) == ("precision", 80)
    assert more.why == "They narrow the interval from ±3.5 points to about ±3.2 points."


def test_disagreements_and_flags_come_first_and_are_counted_as_on_their_page(world: World) -> None:
    labelled(world, other=A)
    one_of_them, agreed = world.drawn[1], world.drawn[5]
    with world.store._db.write() as cursor:
        claim(cursor, world.batch_id, [one_of_them, agreed], "ann")
    for trace_id in (one_of_them, agreed):
        world.store.record_flag(
            client_token=trace_id, trace_id=trace_id, reviewer_id="ann",
            batch_id=world.batch_id, flagged=True,
        )  # fmt: skip
    found = store_status(world.store)
    assert kinds(found)[:2] == ["settle", "flags"]
    assert "verdicts" in kinds(found)
    settle, flags = found.next[:2]
    assert (settle.what, settle.page, settle.batch_id) == (
        "Adjudicate 2 disagreements", "adjudicate", world.batch_id,
    )  # fmt: skip
    assert settle.why.endswith("Until then the rate is provisional.")
    # The disputed one that is flagged too is decided once.
    assert (flags.what, flags.n) == ("Look at 1 flagged trace", 1)
    work = adjudication_work(world.store, world.batch_id, "lea")
    opened = open_traces(world.store, world.batch_id)
    assert {of.trace_id for of in work.due} == opened.waiting
    assert work.n_disputed == settle.n
    for trace_id in (*world.drawn[:2], agreed):
        world.settle(trace_id, C)
    assert not {"settle", "flags"} & set(kinds(store_status(world.store)))


def test_a_label_after_the_decision_opens_it_again(world: World) -> None:
    labelled(world, other=A)
    store, trace_id = world.store, world.drawn[0]
    opened = open_traces(store, world.batch_id)
    assert opened.disputed == set(world.drawn[:2])
    store.adjudicate(trace_id=trace_id, answers=store.taxonomy().answers_for(C), adjudicator="lea")
    with store._db.write() as cursor:
        # As if it had been decided on this batch and one of its labels.
        cursor.execute("UPDATE adjudication_event SET batch_id = ?", [world.batch_id])
    opened = open_traces(store, world.batch_id)
    assert opened.disputed == {world.drawn[1]}
    assert opened.reopened == {trace_id}
    again = one(store_status(store).next, "reopened")
    assert again.what == "Decide 1 settled trace again"


def test_labels_that_are_missing_and_people_away(world: World) -> None:
    store = world.store
    labelled_by_ann = dict.fromkeys(world.drawn[:15], C) | {world.drawn[0]: A}
    world.label("Ann", labelled_by_ann)
    store.add_reviewer("Bob")
    store.queue("bob", world.batch_id, limit=3)
    found = store_status(store)
    label = one(found.next, "label")
    assert (label.what, label.page) == ("Label 20 more traces", "label")
    assert label.why == "25 labels missing in production-001."
    assert "away" not in kinds(found)
    with store._db.write() as cursor:
        cursor.execute("UPDATE lease SET expires_at = expires_at - INTERVAL 8 MINUTE")
    away = one(store_status(store).next, "away")
    assert (away.what, away.reviewer_id, away.n) == (
        "Release 3 traces that Bob has claimed", "bob", 3
    )  # fmt: skip
    assert away.why == "In progress in production-001 and without an answer for 8 min."
    # Nobody is told to free their own.
    mine = store.acting_as(store.set_role("bob", "lead"))
    assert "away" not in kinds(store_status(mine))


def test_who_cannot_sign_in_is_named_once_people_sign_in(world: World) -> None:
    labelled(world)
    store, good = world.store, "correct horse battery"
    hashing_quickly(store)
    for name, role in (("Ada", "admin"), ("Cy", "reviewer"), ("Di", "reviewer")):
        store.add_reviewer(name, role=role)
    store.set_passphrase("ada", good)
    assert "sign_in" not in kinds(store_status(store))
    store.set_identities("passphrase")
    # The labels of Ann and Ben came with a file.
    people = one(store_status(store).next, "sign_in")
    assert (people.what, people.page, people.n) == ("Let 3 people sign in", "people", 3)
    assert people.why == "No passphrase yet: Cy, Di, Lea."
    for who in ("cy", "di"):
        store.set_passphrase(who, good)
    assert one(store_status(store).next, "sign_in").what == "Let Lea sign in"
    # A lead may know who it is.
    (lea,) = [r for r in store.reviewers() if r.name == "Lea"]
    assert lea in store.acting_as(lea).without_sign_in()
    # Whose passphrase was taken away after they had used it is meant to stay out.
    store.verify_sign_in("Cy", good, "127.0.0.1")
    store.take_passphrase("cy")
    assert one(store_status(store).next, "sign_in").what == "Let Lea sign in"


def test_a_certificate_that_ended_or_is_missing_is_asked_for(world: World) -> None:
    store = world.store
    world.label("Ann", dict.fromkeys(world.drawn, C))
    assert "certificate" not in kinds(store_status(store))
    with store._db.write() as cursor:
        cursor.execute("UPDATE batch SET certificate = 'any' WHERE batch_id = ?", [world.batch_id])
    missing = one(store_status(store).next, "certificate")
    assert (missing.what, missing.page) == ("Have Ann examined", "certify")
    assert missing.why == "production-001 asks for a certificate, and theirs is missing."
    now, version = utc_now(), store.taxonomy().version
    with store._db.write() as cursor:
        cursor.execute(
            "INSERT INTO certificate (seq, batch_id, reviewer_id, taxonomy_version, form, "
            "private, simulated, issued_at, expires_at) "
            "VALUES (1, 'exam', 'ann', ?, 'a', false, false, ?, ?)",
            [version, now - timedelta(days=90), now - timedelta(days=1)],
        )
    ended = one(store_status(store).next, "certificate")
    assert ended.why.endswith(f"theirs expired on {now - timedelta(days=1):%d %b %Y}.")
    with store._db.write() as cursor:
        cursor.execute("UPDATE certificate SET expires_at = ?", [now + timedelta(days=1)])
    assert "certificate" not in kinds(store_status(store))


def test_a_judge_that_cannot_correct_is_explained_and_none_is_asked_for(world: World) -> None:
    labelled(world)
    assert one(store_status(world.store).next, "verdicts").page == "judge"
    # A judge that says one thing of everything tells nothing.
    world.judge(dict.fromkeys(ids(60), C))
    found = store_status(world.store)
    assert "verdicts" not in kinds(found)
    assert found.results is not None
    assert ("judge" in kinds(found)) is (not found.results.calibrated)
    world.judge(dict.fromkeys(ids(60), C), name="judge-2")
    found = store_status(world.store)
    assert "verdicts of 2 judges" in rate_words(found.rate)
    assert store_status(world.store, judge_id="judge-2").rate.value is not None


def test_a_lasting_drop_is_the_first_thing_to_look_at(new_world: NewWorld) -> None:
    rng, n = np.random.default_rng(3), 480
    start = datetime(2026, 1, 5, tzinfo=UTC)
    week = {t: k % 12 for k, t in enumerate(ids(n))}
    world = new_world(
        n=n, n_drawn=n,
        traces={t: {"started_at": start + timedelta(weeks=of)} for t, of in week.items()},
    )  # fmt: skip
    shares = {t: 0.9 if week[t] < 8 else 0.3 for t in world.drawn}
    classes = {t: C if rng.random() < share else A for t, share in shares.items()}
    world.label("Ann", classes)
    world.label("Ben", classes)
    found = store_status(world.store)
    drop = found.next[0]
    assert (drop.kind, drop.page) == ("trend", "asr")
    assert drop.why.endswith("since 2026-W10 (CUSUM).")
    assert found.results is not None
    assert "below its baseline of" in trend_words(found.results.weekly)
    calm = dict.fromkeys(classes, C) | dict.fromkeys(list(classes)[::5], A)
    world = new_world(n=n, n_drawn=n, traces={
        t: {"started_at": start + timedelta(weeks=of)} for t, of in week.items()
    })  # fmt: skip
    world.label("Ann", {t: calm[t] for t in world.drawn})
    found = store_status(world.store)
    assert found.results is not None
    assert trend_words(found.results.weekly).startswith("No lasting drop up to 2026-W13")
    assert "trend" not in kinds(found)


def test_nothing_to_do_is_said(world: World) -> None:
    labelled(world)
    world.judge(dict.fromkeys(ids(60), C))
    found = store_status(world.store)
    done = StoreStatus(
        n_traces=found.n_traces, rated=found.rated, results=found.results, no_rate="",
        progress=found.progress, next=(), simulated=False,
    )  # fmt: skip
    assert f"  - {NOTHING}" in list(text_lines(document(done)))


def test_several_batches_are_named(world: World) -> None:
    labelled(world, other=A)
    draw_batch(world.store, SamplingDesign(seed=9), n=5)
    found = store_status(world.store)
    assert [of.batch_id for of in found.progress] == ["production-002", "production-001"]
    assert "in production-001." in one(found.next, "settle").why
    assert one(found.next, "label").batch_id == "production-002"
