"""What an earlier commit stored is all there, by the calls of the store and in its tables."""

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from calibration.store import SavedView, Store, TraceFilter
from calibration.store.backup import upgrade
from calibration.store.schema import migrations
from tests.store.stores_of_before import FIXTURES, PASSPHRASE, kept_rows, rows_of, unpack

NAMES = sorted(path.stem for path in FIXTURES.glob("*.zip"))
BATCH = "production-001"

# Opening a store may write a line there.
MAY_GROW = {"audit", "schema_migration", "setting"}


@pytest.fixture(params=NAMES, scope="module")
def store(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Store]:
    path = unpack(request.param, tmp_path_factory.mktemp("before"))
    upgrade(path)
    with Store.open(path) as opened:
        yield opened


def test_a_store_of_today_is_among_them() -> None:
    readme = (FIXTURES / "README.md").read_text("utf-8")
    assert {f"schema-{one.version}" for one in migrations()} <= set(NAMES)
    assert all(f"{name}.zip" in readme for name in NAMES)


@pytest.mark.parametrize("name", NAMES)
def test_every_row_of_every_table_is_there(name: str, tmp_path: Path) -> None:
    path = unpack(name, tmp_path)
    upgrade(path)
    with Store.open(path) as store:
        store.reviewers()
    now = rows_of(path)
    for table, kept in kept_rows(name).items():
        assert table in now, f"table {table} is gone"
        columns = set(kept[0]) if kept else set()
        there = [{c: v for c, v in row.items() if c in columns} for row in now[table]]
        assert [row for row in kept if row not in there] == [], f"rows of {table} have changed"
        assert table in MAY_GROW or len(there) == len(kept), f"{table} has other rows"


def test_people_and_workflows_are_there(store: Store) -> None:
    people = {r.reviewer_id: (r.name, r.role, r.simulated) for r in store.reviewers()}
    assert people == {
        "ann": ("Ann", "reviewer", False), "bob": ("Bob", "reviewer", False),
        "lea": ("Lea", "lead", False), "ada": ("Ada", "admin", False),
        "robo": ("Robo", "reviewer", True),
    }  # fmt: skip
    workflow = store.workflows()["research"]
    assert (workflow.ceiling_usd, workflow.unit) == (0.5, "question")
    assert store.saved_views() == {
        "long ones": SavedView(chosen=TraceFilter(workflows=("research",)))
    }
    assert [a.person.reviewer_id for a in store.access() if a.has_passphrase] == ["lea"]


def test_somebody_signs_in_with_the_passphrase_of_before(store: Store) -> None:
    token = store.verify_sign_in("Lea", PASSPHRASE, "127.0.0.1")
    person = store.person_of_session(token)
    assert person is not None
    assert person.reviewer_id == "lea"


def test_traces_and_their_text_are_there(store: Store) -> None:
    frame = store.trace_frame()
    assert list(frame["trace_id"]) == [f"t-{n}" for n in range(10)]
    assert set(frame["cost_usd"]) == {0.25}
    assert set(frame["model"]) == {"model-x"}
    (shown,) = store.for_review(["t-7"])
    assert (shown.prompt, shown.response) == ("Task 7: ärger", "The answer is 7.")
    assert [s.step_id for s in shown.steps] == ["s1", "s2"]
    assert [(g.text, g.matters) for g in shown.sub_goals] == [("Find it", True), ("Say", False)]


def test_labels_are_there(store: Store) -> None:
    rows = store.label_frame(BATCH).to_dict("records")
    found = {(r["reviewer_id"], r["trace_id"]): r for r in rows}
    given = {who: r["outcome"] if r["kind"] == "label" else "skip" for who, r in found.items()}
    by_ann = ("complete", "complete", "hallucinated", "skip")
    by_bob = ("complete", "partial_plus", "hallucinated", "abandoned")
    expected = {("ann", f"t-{n}"): said for n, said in enumerate(by_ann)}
    assert given == expected | {("bob", f"t-{n}"): said for n, said in enumerate(by_bob)}
    quoted = found["ann", "t-2"]
    assert json.loads(quoted["evidence"]) == [{"step_id": "response", "quote": "The answer is 2"}]
    assert json.loads(quoted["tags"]) == ["made up"]
    assert json.loads(quoted["sub_goals"]) == {"g1": "not_done", "g2": "unclear"}
    assert (quoted["confidence"], quoted["seconds_active"]) == (3, 41.5)
    assert found["ann", "t-1"]["rationale"] == "All is there."
    assert found["ann", "t-3"]["reason"] == "unclear"


def test_draft_flag_and_undone_label_are_there(store: Store) -> None:
    queue = store.queue("ann", BATCH)
    assert [t.trace_id for t in queue.items] == ["t-4"]
    draft = queue.drafts["t-4"]
    assert (draft.answers, draft.rationale) == ({"output": "yes"}, "so far")
    assert store.own_flags("ann", BATCH, ["t-4"]) == {"t-4": "odd"}
    assert store.acknowledged("ann", BATCH, ["a2", "a2 back", "never"]) == {"a2", "a2 back"}


def test_what_was_adjudicated_is_there(store: Store) -> None:
    (settled,) = store.consensus_frame().to_dict("records")
    assert (settled["trace_id"], settled["outcome"]) == ("t-1", "partial_plus")
    assert list(store.consensus_history("t-0")["kind"]) == ["consensus", "withdrawal"]
    (row,) = store.adjudication_frame(BATCH).to_dict("records")
    assert (row["cause"], row["adjudicator"]) == ("rubric_unclear", "lea")
    assert (row["blind_outcome"], row["rationale"]) == ("complete", "A goal is missing.")
    assert store.handbook_additions() == {"all_subgoals": ["A missing source is a missing goal."]}


def test_examinations_and_certificates_are_there(store: Store) -> None:
    exams = {who: store.exams_of(who) for who in ("ann", "bob", "lea")}
    assert {who: [(e.form, e.status, e.labelled, e.body) for e in all_of_them]
            for who, all_of_them in exams.items()} == {
        "ann": [("exam_a", "passed", 3, {"ac1": 0.9})],
        "bob": [("exam_a", "failed", 3, {"ac1": 0.9})],
        "lea": [],
    }  # fmt: skip
    (certificate,) = store.certificates()
    assert certificate == store.certificate_of("ann")
    assert (certificate.form, certificate.private) == ("exam_a", False)
    labels = store.exam_labels("ann", certificate.batch_id)
    assert labels == dict.fromkeys(("t-5", "t-6", "t-7"), "complete")
    assert len(store.attempts_allowed("bob")) == 1


def test_verdicts_are_there(store: Store) -> None:
    assert {"judge-1", "judge-2"} <= set(store.judge_frame()["judge_id"])
    found = store.verdict_frame("judge-1").set_index("trace_id")["outcome"].to_dict()
    expected = dict.fromkeys((f"t-{n}" for n in range(10)), "complete")
    assert found == expected | {"t-3": "abandoned"}
    assert list(store.verdict_frame("judge-2")["outcome"]) == ["hallucinated"]


def test_judges_that_were_run_are_there(store: Store) -> None:
    if not store.judges():  # none could be run before schema 5
        assert store.judge_in_use() is None
        return
    assert [(j.judge_id, j.line) for j in store.judges()] == [
        ("strict", "strict"), ("strict-2", "strict")
    ]  # fmt: skip
    assert store.judge_in_use() == "strict-2"
    assert [look.body for look in store.looks("strict", "exam_b")] == [{"status": "not_shown"}]
    assert store.trace_verdicts("t-1").set_index("judge_id")["cause"]["strict-2"] == "length"


def test_the_insert_is_there_with_its_label(store: Store) -> None:
    (row,) = store.hidden_item_frame().to_dict("records")
    assert (row["reviewer_id"], row["trace_id"], row["kind"]) == ("ann", "t-0", "repeat")
    assert (row["against"], row["given"]) == ("complete", "partial_plus")
    assert list(store.exposure_frame()["reviewer_id"]) == ["lea"]
