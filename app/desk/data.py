"""What the Label page shows, as plain data: the queue, the tree, what became of the events."""

import json
import math
from collections.abc import Sequence
from dataclasses import asdict
from datetime import UTC, datetime
from hashlib import sha256
from typing import Any

from app import session
from app.desk.events import SKIP_REASONS, Receipts
from calibration.analyses.reviewers.examinations import Lesson, lesson, practice_score
from calibration.records import SEVERITIES, Label, LabelDraft, Reviewer, Step, TraceForReview
from calibration.store import Queue, Store
from calibration.store.labels import PARTS
from calibration.taxonomy import Taxonomy
from reference_dataset.handbook import handbook

PREFETCHED = 3
SHOWN_CHARACTERS = 100_000


def desk_data(
    store: Store, reviewer: Reviewer, batch_id: str, receipts: Receipts
) -> dict[str, Any]:
    """Return everything that the component shows; the position comes from the store.

    Receipts are read before the queue: a queue is then never older than the events that the
    same data acknowledges.
    """
    reviewer_id = reviewer.reviewer_id
    acked = sorted(receipts.stored & set(receipts.tokens))
    queue = store.queue(reviewer_id, batch_id, limit=PREFETCHED)
    practice = queue.purpose == "practice"
    shown, score = None, None
    if practice:
        known, own = (
            session.reference_set(store),
            {"reviewer_id": reviewer_id, "batch_id": batch_id},
        )
        shown, score = lesson(store, known, **own), practice_score(store, known, **own)
    if shown is not None:
        store.record_exposure(reviewer_id, [shown.label.trace_id], "canonical")
    return {
        "store": store.store_id(),
        "reviewer": reviewer_id,
        "name": reviewer.name,
        "batch": batch_id,
        "guide": _guide(store, receipts),
        "queue": [
            {"trace_id": trace.trace_id, "held": True}
            if trace.trace_id in receipts.held
            else trace_for_page(trace)
            for trace in queue.items
        ],
        "drafts": {trace_id: _parts(draft) for trace_id, draft in queue.drafts.items()},
        **own_work(store, reviewer_id, batch_id, receipts, queue),
        "acked": acked,
        "refused": [
            {"token": token, "why": receipts.refused[token]}
            for token in receipts.tokens
            if token in receipts.refused
        ],
        "trouble": receipts.trouble,
        "number": receipts.number,
        "progress": {"done": queue.done, "skipped": queue.skipped, "total": queue.total},
        "last": queue.last and {"trace_id": queue.last[0], "outcome": queue.last[1]},
        # None to choose from: there is no skipping.
        "skip_reasons": [] if queue.purpose == "exam" else list(SKIP_REASONS),
        "purpose": queue.purpose,
        # None to choose from: violations are not asked for.
        "constraints": list(queue.constraints),
        "severities": list(SEVERITIES),
        "score": score and {"right": score[0], "of": score[1]},
        "lesson": None if shown is None else lesson_for_page(shown),
        "state": queue.state,
        "simulated": store.is_simulated(),
    }


def _guide(store: Store, receipts: Receipts) -> dict[str, Any]:
    """Return tree, handbook and catalogue under a key; the key alone if the page has them."""
    taxonomy = store.taxonomy()
    patterns = [
        {"tag": p.tag, "definition": p.definition, "test": p.test} for p in taxonomy.patterns
    ]
    texts = {"tree": tree(taxonomy), "handbook": team_handbook(store), "patterns": patterns}
    key = sha256(json.dumps(texts).encode()).hexdigest()[:16]
    return {"key": key} if receipts.guide == key else {"key": key, **texts}


def team_handbook(store: Store) -> dict[str, str]:
    """Return the handbook by question, with the sentences that the team has added."""
    texts = dict(handbook())
    for question, sentences in store.handbook_additions().items():
        added = "\n".join(f"- {sentence}" for sentence in sentences)
        texts[question] = f"{texts.get(question, '')}\n\nAdded by your team:\n{added}".strip()
    return texts


def _parts(draft: LabelDraft) -> dict[str, Any]:
    """Return what a draft holds, without the names that it is stored under."""
    return {name: value for name, value in asdict(draft).items() if name in PARTS}


def own_work(
    store: Store, reviewer_id: str, batch_id: str, receipts: Receipts, queue: Queue
) -> dict[str, Any]:
    """Return what the page shows of the reviewer's own work; nothing of anybody else."""
    mine = store.own_labels(reviewer_id, batch_id) if receipts.listing else None
    skipped = store.own_skips(reviewer_id, batch_id) if receipts.listing else []
    shown = [trace.trace_id for trace in queue.items]
    shown += [label.trace_id for label, _ in mine or ()]
    shown += [queue.last[0]] if queue.last else []
    return {
        "own_labels": None if mine is None else _own_list(mine, skipped),
        "flags": store.own_flags(reviewer_id, batch_id, shown),
        "tags": queue.tags,
        "pace_s": queue.pace_s,
    }


def _own_list(
    labels: Sequence[tuple[Label, str]], skips: Sequence[tuple[str, datetime, str]]
) -> list[dict[str, Any]]:
    """Return own labels and skips (no class) as the page lists them, newest first."""
    decided: list[tuple[str, str | None, datetime, str]] = [
        *((label.trace_id, label.outcome, label.created_at, task) for label, task in labels),
        *((trace_id, None, at, task) for trace_id, at, task in skips),
    ]
    return [
        {"trace_id": t, "outcome": o, "at": at.replace(tzinfo=UTC).isoformat(), "task": task}
        for t, o, at, task in sorted(decided, key=lambda one: one[2], reverse=True)
    ]


def lesson_for_page(shown: Lesson) -> dict[str, Any]:
    """Return the canonical label of a trace that the reviewer has labelled."""
    label = shown.label
    return {
        "trace_id": label.trace_id,
        "answers": label.answers,
        "outcome": label.outcome,
        "yours": shown.yours,
        "your_outcome": shown.your_outcome,
        "rationale": label.rationale,
        "nearest_wrong": label.nearest_wrong,
        "why_not": label.why_not,
        "overridden": label.overridden,
        "evidence": [
            {"step_id": e.step_id, "quote": e.quote, "shows": e.shows} for e in label.evidence
        ],
    }


def tree(taxonomy: Taxonomy) -> dict[str, Any]:
    """Return the decision tree without the credits: they must not move an answer."""
    return {
        "root": taxonomy.root.id,
        "nodes": [
            {
                "id": n.id,
                "question": n.question,
                "rule": n.rule,
                "yes": n.yes,
                "no": n.no,
                "evidence_on": n.evidence_on,
            }
            for n in taxonomy.nodes
        ],
        "classes": [
            {"name": c.name, "title": c.title, "meaning": c.meaning} for c in taxonomy.classes
        ],
    }


def trace_for_page(trace: TraceForReview) -> dict[str, Any]:
    """Return a trace as the component takes it: bounded texts, finite numbers."""
    return {
        "trace_id": trace.trace_id,
        "workflow": trace.workflow,
        "agent": trace.agent,
        "status": trace.status,
        "latency_s": _finite(trace.latency_s),
        "simulated_user": trace.simulated_user,
        "figures": figures(trace.steps),
        "prompt": bounded(trace.prompt),
        "inputs": [{"name": a.name, "text": bounded(a.text)} for a in trace.inputs],
        "sub_goals": [
            {"id": g.id, "text": bounded(g.text), "matters": g.matters} for g in trace.sub_goals
        ],
        "steps": [_step(step) for step in trace.steps],
        "response": bounded(trace.response),
    }


def figures(steps: Sequence[Step]) -> dict[str, int | None]:
    """Return what the head of a trace counts; no token count at all is None, not zero.

    A call and its result may be one step or two: a step with arguments is a call, and so is
    the result of a tool that no such step has called. What a simulated user runs is not the
    agent's.

    Examples
    --------
    >>> call = Step(step_id="s1", role="assistant", tool="get", arguments="{}", tokens_out=7)
    >>> result = Step(step_id="s2", role="tool", tool="get", result="no", error=True)
    >>> figures([call, result])["tool_calls"], figures([call, result])["tool_errors"]
    (1, 1)
    """
    tools = [step for step in steps if step.tool is not None and step.role != "user"]
    called = {step.tool for step in tools if step.arguments is not None}
    counted = [s for s in steps if s.tokens_in is not None or s.tokens_out is not None]
    tokens_in = [s.tokens_in for s in counted if s.tokens_in is not None]
    tokens_out = [s.tokens_out for s in counted if s.tokens_out is not None]
    return {
        "tool_calls": sum(s.arguments is not None or s.tool not in called for s in tools),
        "tool_errors": sum(step.error for step in steps),
        "tokens_in": sum(tokens_in) if tokens_in else None,
        "tokens_out": sum(tokens_out) if tokens_out else None,
        "tokens_on": len(counted),
    }


def _step(step: Step) -> dict[str, Any]:
    named = {"call": step.call, "agent": step.agent}
    return {name: value for name, value in named.items() if value is not None} | {
        "step_id": step.step_id,
        "role": step.role,
        "tool": step.tool,
        "error": step.error,
        "at": _finite(step.at),
        "seconds": _finite(step.seconds),
        "content": bounded(step.content),
        "arguments": bounded(step.arguments),
        "result": bounded(step.result),
    }


def _finite(value: float | None) -> float | None:
    return value if value is not None and math.isfinite(value) else None


def bounded(text: str | None) -> dict[str, Any] | None:
    """Return the first 100,000 characters and how many more there are.

    Examples
    --------
    >>> bounded("short")
    {'text': 'short', 'more': 0}
    >>> bounded("x" * 100_001)["more"]
    1
    """
    if text is None:
        return None
    return {"text": text[:SHOWN_CHARACTERS], "more": max(0, len(text) - SHOWN_CHARACTERS)}


def bounded_text(text: str) -> str:
    """Return the bounded text with a line that says how much is missing."""
    more = len(text) - SHOWN_CHARACTERS
    if more <= 0:
        return text
    return f"{text[:SHOWN_CHARACTERS]}\n[{more:,} further characters not shown]"
