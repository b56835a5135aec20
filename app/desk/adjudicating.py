"""The desk of an adjudicator, as plain data: blind first, then what the reviewers said."""

from collections.abc import Mapping
from dataclasses import asdict
from typing import Any

from app.desk.data import desk_data, trace_for_page
from app.desk.events import Receipts, apply_event
from calibration.errors import InputError, LabelRefusedError, TaxonomyError
from calibration.records import CAUSES, Reviewer, in_words
from calibration.store import Settlement, Store
from calibration.taxonomy import ANSWERS

SHOWN_TEXT = 4_000


def adjudication_data(
    store: Store, lead: Reviewer, of_batch: str, batch_id: str, receipts: Receipts
) -> dict[str, Any]:
    """Return what the desk shows: traces to decide blind, or the labels of the one just decided.

    Nothing that reviewers said leaves the store before the adjudicator's own decision on the
    trace is in it. The queue is read first: a trace is then never missing from both.
    """
    data = desk_data(store, lead, batch_id, receipts)
    due = store.settlement(lead.reviewer_id, of_batch)
    last = store.last_adjudication(lead.reviewer_id, of_batch)
    return data | {
        "adjudication": True,
        "settle": None if due is None else _settlement(store, lead, due, receipts),
        "last": last and {"trace_id": last[0], "outcome": last[1]},
        "own_labels": None,
        "flags": {},
    }


def _settlement(
    store: Store, lead: Reviewer, due: Settlement, receipts: Receipts
) -> dict[str, Any]:
    """Return the labels to settle under letters: a name must not lend weight to an answer."""
    if due.trace_id in receipts.held:
        trace: dict[str, Any] = {"trace_id": due.trace_id, "held": True}
    else:
        (found,) = store.for_review([due.trace_id])
        trace = trace_for_page(found)
    return {
        "trace_id": due.trace_id,
        "trace": trace,
        "answers": due.blind.answers,
        "outcome": due.blind.outcome,
        "blind": due.blind.blind,
        "question": due.question,
        "given": [
            {
                "who": _letter(place),
                "own": label.reviewer_id == lead.reviewer_id,
                "outcome": label.outcome,
                "answers": label.answers,
                "rationale": (label.rationale or "")[:SHOWN_TEXT],
                "violations": in_words(label.violations or ()),
                "evidence": [
                    asdict(part) | {"quote": part.quote[:SHOWN_TEXT]} for part in label.evidence
                ],
            }
            for place, label in enumerate(due.labels)
        ],
        "label_events": [label.event_id for label in due.labels],
        "flags": list(due.flags),
        "supersedes": due.supersedes,
        "standing": due.standing,
    }


def _letter(place: int) -> str:
    """Return A, B, ... Z, A2, ...

    Examples
    --------
    >>> _letter(1), _letter(26)
    ('B', 'A2')
    """
    return chr(ord("A") + place % 26) + (str(place // 26 + 1) if place >= 26 else "")


def apply_adjudication(
    store: Store, reviewer_id: str, batch_id: str, event: Mapping[str, Any]
) -> None:
    """Write one event of the adjudicator's desk to the store.

    Blind decisions, skips and drafts are those of the Label page.

    Raises
    ------
    LabelRefusedError, ValueError
        If the store refuses it, or a part is missing or has the wrong type.
    """
    kind = event.get("kind")
    if kind not in ("settle", "undo"):
        apply_event(store, reviewer_id, batch_id, event)
        return
    of_batch = next(b.design.get("of") for b in store.batches() if b.batch_id == batch_id)
    if not isinstance(of_batch, str):
        raise LabelRefusedError(f"batch {batch_id!r:.80} is not for adjudication")
    if kind == "undo":
        _undo(store, reviewer_id, batch_id, of_batch, event)
        return
    try:
        _settle(store, reviewer_id, of_batch, event)
    except (InputError, TaxonomyError) as error:
        raise LabelRefusedError(str(error)) from error


def _settle(store: Store, reviewer_id: str, of_batch: str, event: Mapping[str, Any]) -> None:
    answers, cause, shown = event.get("answers"), event.get("cause"), event.get("label_events")
    if not isinstance(answers, dict) or not all(a in ANSWERS for a in answers.values()):
        raise ValueError(f"answers must be yes or no by question, got {answers!r:.200}")
    if cause is not None and cause not in CAUSES:
        raise ValueError(f"cause must be one of {', '.join(CAUSES)}, got {cause!r:.80}")
    if not isinstance(shown, list) or not all(isinstance(one, str) for one in shown):
        raise ValueError(f"label_events must be the labels that were shown, got {shown!r:.200}")
    store.adjudicate(
        client_token=event["token"],
        trace_id=_text(event, "trace_id"),
        adjudicator=reviewer_id,
        batch_id=of_batch,
        answers={str(node): str(answer) for node, answer in answers.items()},
        cause=cause,
        rationale=str(event.get("rationale") or ""),
        label_events=shown,
        supersedes=event.get("supersedes"),
    )


def _undo(
    store: Store, reviewer_id: str, batch_id: str, of_batch: str, event: Mapping[str, Any]
) -> None:
    """Take the last adjudication or skip back; the page names the trace that it means."""
    meant = _text(event, "undoes")
    last = store.last_adjudication(reviewer_id, of_batch)
    if last == (meant, None):
        newest = store.last_label(reviewer_id, batch_id)
        if newest is None or newest[0] != meant:
            raise LabelRefusedError("finish the trace that you have decided blind first")
        store.record_undo(client_token=event["token"], reviewer_id=reviewer_id, batch_id=batch_id)
        return
    history = store.consensus_history(meant)
    resent = not history.empty and history["kind"].iloc[-1] == "withdrawal"
    if not resent and (last is None or last[0] != meant):
        raise LabelRefusedError("there is no such adjudication to undo")
    store.withdraw_consensus(
        client_token=event["token"], trace_id=meant, adjudicator=reviewer_id, reason="Undone"
    )


def _text(event: Mapping[str, Any], name: str) -> str:
    value = event.get(name)
    if not isinstance(value, str) or not value:
        raise ValueError(f"{name} must be a text, got {value!r:.80}")
    return value
