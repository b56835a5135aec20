"""A small store as an earlier commit wrote it: how it was made, and how a copy is opened.

``python -m tests.store.stores_of_before NAME`` writes a further one under tests/fixtures/stores,
by the code that is checked out. It is run by hand, when the schema is about to change; what is
there already is never written again.
"""

import json
import sys
import zipfile
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import duckdb

from calibration.records import (
    Evidence,
    ExpectedCall,
    LabelDraft,
    Step,
    SubGoal,
    Trace,
    Verdict,
    Violation,
    Workflow,
)
from calibration.store import SavedView, Store, TraceFilter
from tests.store.builders import ABANDONED, COMPLETE, HALLUCINATED, PARTIAL_PLUS

FIXTURES = Path(__file__).parents[1] / "fixtures" / "stores"
STORE = "store.duckdb"
PASSPHRASE = "correct horse battery"


def trace(number: int) -> Trace:
    """Return a trace whose text names its number."""
    return Trace(
        trace_id=f"t-{number}", source="before", source_id=str(number), workflow="research",
        task_id=str(number), task_key=f"before/{number}", trial=0, prompt=f"Task {number}: ärger",
        sub_goals=(SubGoal(id="g1", text="Find it"), SubGoal(id="g2", text="Say", matters=False)),
        steps=(
            Step(step_id="s1", role="assistant", content=f"I look up {number}."),
            Step(step_id="s2", role="tool", tool="find", arguments='{"q": 1}', result="found"),
        ),
        response=f"The answer is {number}.", model="model-x", status="completed", latency_s=2.5,
        cost_usd=0.25, started_at=datetime(2026, 7, 6, 12, number, tzinfo=UTC),
        metadata={"file": "runs.jsonl"},
    )  # fmt: skip


def fill(store: Store) -> None:
    """Put some of everything into an empty store.

    Ann and Bob label batch A (t-0 to t-4): they agree on t-0, Lea settles t-1, Ann undoes t-2 and
    labels it again with a quote, skips t-3, and has a draft and a flag on t-4. Ann passes an
    examination on t-5 to t-7; Bob fails it. t-1 comes back to Ann as an insert.
    """
    store.set_workflow(Workflow(name="research", ceiling_usd=0.5, unit="question"))
    store.ingest([trace(number) for number in range(9)])
    arm = replace(
        trace(9), perturbation="fault", confidence=0.8, context_tokens=1200,
        expected_calls=(ExpectedCall(name="find", arguments={"q": 1}),),
        violations=(Violation(constraint="no PII exposure", severity="low", step="s2"),),
    )  # fmt: skip
    store.ingest([arm])
    store.set_violation_marking(True)
    for name, role in (("Ann", "reviewer"), ("Bob", "reviewer"), ("Lea", "lead")):
        store.add_reviewer(name, role=role)
    store.add_reviewer("Ada", role="admin")
    store.add_reviewer("Robo", simulated=True)
    batch = store.add_batch(
        purpose="production", trace_ids=[f"t-{n}" for n in range(5)], labels_wanted=2,
        inclusion_probability=0.5, design={"n": 5, "population": 10, "last_seq": 10},
    ).batch_id  # fmt: skip
    store.rename_batch(batch, "First week")
    store.assign_batch(batch, ["ann", "bob", "lea"])
    _label(store, batch)
    _settle(store, batch)
    store.adjudicate(trace_id="t-0", answers=COMPLETE, adjudicator="lea", client_token="agreed")
    store.withdraw_consensus(
        client_token="withdraws", trace_id="t-0", adjudicator="lea", reason="too early"
    )
    store.decide_proposal(
        client_token="proposes", proposal_id="p-1", question="all_subgoals",
        text="A missing source is a missing goal.", trace_ids=["t-1"], status="accepted",
        decided_by="lea",
    )  # fmt: skip
    store.add_verdicts(
        [
            Verdict(
                judge_id="judge-1", trace_id=f"t-{n}",
                outcome="complete" if n != 3 else "abandoned",
                reason="=looks well", grade=5 - n % 2, cost_usd=0.002,
                evidence=(Evidence(step_id="s1", quote="I look up"),),
            )
            for n in range(10)
        ]
    )  # fmt: skip
    store.add_verdicts([Verdict(judge_id="judge-2", trace_id="t-0", outcome="hallucinated")])
    _judge(store)
    _examine(store)
    store.import_hidden_items(batch, [_draft("again", "t-0", "ann", batch, PARTIAL_PLUS)])
    store.allow_attempt(client_token="once more", reviewer_id="bob", by="lea", reason="ill")
    store.save_view("long ones", SavedView(chosen=TraceFilter(workflows=("research",))))
    store.set_passphrase("lea", PASSPHRASE)
    store.link("ada", email="ada@example.org")


def _judge(store: Store) -> None:
    """Run two versions of one judge; the second one is in use, and was looked at once."""
    store.add_judge("strict", "a" * 64, '{"version": {"samples": 3}}')
    store.add_judge("strict-2", "b" * 64, '{"version": {"samples": 3}}', "strict")
    none = Verdict(
        judge_id="strict-2", trace_id="t-1", outcome="no_verdict", cause="length",
        detail='{"samples": 3}',
    )  # fmt: skip
    store.add_verdicts([none])
    store.use_judge("strict-2")
    store.add_look("strict-2", "exam_b", 1, '{"status": "not_shown"}')


def _draft(
    token: str, trace_id: str, who: str, batch: str, answers: dict[str, str], **more: Any
) -> LabelDraft:
    return LabelDraft(
        client_token=token, trace_id=trace_id, reviewer_id=who, batch_id=batch, answers=answers,
        seconds_active=41.5, **more,
    )  # fmt: skip


def _label(store: Store, batch: str) -> None:
    for who in ("ann", "bob"):
        store.queue(who, batch, limit=5)
    store.record_label(_draft("a0", "t-0", "ann", batch, COMPLETE))
    store.record_label(_draft("a1", "t-1", "ann", batch, COMPLETE, rationale="All is there."))
    store.record_label(_draft("a2", "t-2", "ann", batch, COMPLETE))
    store.record_undo(client_token="a2 back", reviewer_id="ann", batch_id=batch)
    quote = Evidence(step_id="response", quote="The answer is 2")
    store.record_label(
        _draft(
            "a2 again", "t-2", "ann", batch, HALLUCINATED, evidence=(quote,), confidence=3,
            tags=("made up",), sub_goals={"g1": "not_done", "g2": "unclear"},
            violations=(Violation(constraint="no PII exposure", severity="high", step="s1"),),
        )
    )  # fmt: skip
    store.record_skip(
        client_token="a3", trace_id="t-3", reviewer_id="ann", batch_id=batch, reason="unclear"
    )
    store.record_flag(
        client_token="a4", trace_id="t-4", reviewer_id="ann", batch_id=batch, flagged=True,
        reason="odd",
    )  # fmt: skip
    store.save_draft(_draft("", "t-4", "ann", batch, {"output": "yes"}, rationale="so far"))
    for number, answers in enumerate((COMPLETE, PARTIAL_PLUS, HALLUCINATED, ABANDONED)):
        quotes = (quote,) if number == 2 else ()
        store.record_label(
            _draft(f"b{number}", f"t-{number}", "bob", batch, answers, evidence=quotes)
        )


def _settle(store: Store, batch: str) -> None:
    """Let Lea decide t-1 blind, see what was said, and settle it."""
    own = store.serve_adjudication(adjudicator="lea", batch_id=batch, trace_ids=["t-1"])
    assert own is not None
    store.queue("lea", own.batch_id)
    store.record_label(_draft("l1", "t-1", "lea", own.batch_id, COMPLETE))
    due = store.settlement("lea", batch)
    assert due is not None
    store.record_exposure("lea", ["t-1"], "labels")
    store.adjudicate(
        trace_id="t-1", answers=PARTIAL_PLUS, adjudicator="lea", batch_id=batch,
        cause="rubric_unclear", rationale="A goal is missing.", client_token="settles",
        label_events=[label.event_id for label in due.labels],
    )  # fmt: skip


def _examine(store: Store) -> None:
    for who, status in (("ann", "passed"), ("bob", "failed")):
        exam = store.start_exam(
            reviewer_id=who, form="exam_a", private=False, trace_ids=["t-5", "t-6", "t-7"]
        )
        while items := store.queue(who, exam.batch_id, limit=1).items:
            trace_id = items[0].trace_id
            store.record_label(_draft(f"{who} {trace_id}", trace_id, who, exam.batch_id, COMPLETE))
        store.record_result(
            reviewer_id=who, batch_id=exam.batch_id, status=status, body={"ac1": 0.9},
            valid=timedelta(days=36_500),
        )  # fmt: skip


def rows_of(path: Path) -> dict[str, list[dict[str, Any]]]:
    """Return all rows of all tables of a closed store, by plain SQL, values as texts."""
    with duckdb.connect(str(path), read_only=True) as connection:
        tables = connection.execute(
            "SELECT table_name FROM duckdb_tables() WHERE NOT internal ORDER BY table_name"
        ).fetchall()
        found = {}
        for (table,) in tables:
            read = connection.execute(f'SELECT * FROM "{table}"')
            names = [column[0] for column in read.description or []]
            rows = [
                dict(zip(names, (None if v is None else str(v) for v in row), strict=True))
                for row in read.fetchall()
            ]
            found[table] = sorted(rows, key=lambda row: json.dumps(row, sort_keys=True))
        return found


def write(name: str) -> None:
    """Write a store by the code of today, with the rows of its tables beside it."""
    packed, rows = FIXTURES / f"{name}.zip", FIXTURES / f"{name}.json"
    if packed.exists():
        raise SystemExit(f"{packed} is there already")
    with TemporaryDirectory() as directory:
        path = Path(directory) / STORE
        with Store.open(path, create=True) as store:
            fill(store)
        rows.write_text(json.dumps(rows_of(path), indent=1, ensure_ascii=False) + "\n", "utf-8")
        parts = path.with_suffix(".traces")
        with zipfile.ZipFile(packed, "w", zipfile.ZIP_LZMA) as archive:
            for file in (path, *sorted(parts.iterdir())):
                archive.write(file, file.relative_to(directory))


def unpack(name: str, folder: Path) -> Path:
    """Return a copy of a store that was written before."""
    with zipfile.ZipFile(FIXTURES / f"{name}.zip") as archive:
        archive.extractall(folder)
    return folder / STORE


def kept_rows(name: str) -> dict[str, list[dict[str, Any]]]:
    """Return the rows that its tables had when it was written."""
    found: dict[str, list[dict[str, Any]]] = json.loads(
        (FIXTURES / f"{name}.json").read_text("utf-8")
    )
    return found


if __name__ == "__main__":
    write(sys.argv[1])
