"""What the Label page asks of the store; plain data in and out, no Streamlit.

The browser sends the whole list of events that it has no receipt for. Events are applied in
order and are idempotent by token, so a list that is sent twice, or by a rerun that was
abandoned half way, stores each event once.
"""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from calibration.errors import CalibrationError, LabelRefusedError
from calibration.records import SYSTEM_ROLES, Evidence, LabelDraft, TraceForReview, Violation
from calibration.store import Store
from calibration.taxonomy import ANSWERS, Node, Taxonomy

Apply = Callable[[Store, str, str, Mapping[str, Any]], None]

SKIP_REASONS = (
    "Task or trace unclear",
    "Trace is broken or cut off",
    "Outside my expertise",
    "Other",
)


@dataclass
class Receipts:
    """What became of the events that this browser session sent last.

    `stored` holds the tokens that the store has, drafts included: those leave no event there.
    `held` names the traces that the page already has in full; `number` counts what it sent
    and goes back to it, so that every answer differs from the one before and reaches the page;
    `listing` says that it shows the list of the reviewer's own labels, and `guide` which tree and
    handbook it has.
    """

    tokens: list[str] = field(default_factory=list)
    stored: set[str] = field(default_factory=set)
    refused: dict[str, str] = field(default_factory=dict)
    trouble: str = ""
    held: set[str] = field(default_factory=set)
    number: int = 0
    listing: bool = False
    guide: str = ""


def apply_events(
    store: Store,
    reviewer_id: str,
    batch_id: str,
    events: Iterable[Any],
    receipts: Receipts,
    apply: Apply | None = None,
) -> None:
    """Write the events to the store in order and note what became of each.

    `apply` writes one event; default: `apply_event`. An event that a closed tab left behind
    names its own batch.

    An event that the store refuses is noted and the next one is tried. When the store itself
    fails, the rest stays unacknowledged and the browser sends it again.
    """
    received = [e for e in events if isinstance(e, dict) and isinstance(e.get("token"), str)]
    receipts.tokens = [e["token"] for e in received]
    receipts.trouble = ""
    try:
        unknown: dict[str, list[str]] = {}
        for event in received:
            if event["token"] not in receipts.stored:
                unknown.setdefault(_batch_of(event, batch_id), []).append(event["token"])
        for batch, tokens in unknown.items():
            receipts.stored |= store.acknowledged(reviewer_id, batch, tokens)
        for event in received:
            if event["token"] in receipts.stored:
                continue
            try:
                (apply or apply_event)(store, reviewer_id, _batch_of(event, batch_id), event)
                receipts.stored.add(event["token"])
            except (LabelRefusedError, ValueError) as error:
                receipts.refused[event["token"]] = str(error)
    except CalibrationError as error:
        receipts.trouble = str(error)


def _batch_of(event: Mapping[str, Any], batch_id: str) -> str:
    """Return the batch that an event names, else the one of the page."""
    named = event.get("batch")
    return named if isinstance(named, str) and named else batch_id


def apply_event(store: Store, reviewer_id: str, batch_id: str, event: Mapping[str, Any]) -> None:
    """Write one event of the Label page to the store.

    Raises
    ------
    LabelRefusedError, ValueError
        If the store refuses it, or a part is missing or has the wrong type.
    """
    token, kind = event["token"], event.get("kind")
    if kind == "label":
        store.record_label(label_draft(reviewer_id, batch_id, event))
    elif kind == "skip":
        store.record_skip(
            client_token=token,
            trace_id=_text(event, "trace_id"),
            reviewer_id=reviewer_id,
            batch_id=batch_id,
            reason=_text(event, "reason"),
        )
    elif kind == "undo":
        _undo(store, reviewer_id, batch_id, event)
    elif kind == "draft":
        store.save_draft(label_draft(reviewer_id, batch_id, event))
    elif kind == "flag":
        store.record_flag(
            client_token=token,
            trace_id=_text(event, "trace_id"),
            reviewer_id=reviewer_id,
            batch_id=batch_id,
            flagged=event.get("flagged") is True,
            reason=_optional(event, "reason"),
        )
    else:
        raise ValueError(f"event kind must be label, skip, undo, draft or flag, got {kind!r}")


def _undo(store: Store, reviewer_id: str, batch_id: str, event: Mapping[str, Any]) -> None:
    if reason := _optional(event, "reason"):
        store.reopen(
            client_token=event["token"],
            trace_id=_text(event, "undoes"),
            reviewer_id=reviewer_id,
            batch_id=batch_id,
            reason=reason,
        )
        return
    # The page names the label it means: one that was refused must not take an older one back.
    last, meant = store.last_label(reviewer_id, batch_id), event.get("undoes")
    if last is None or (meant and last[0] != meant):
        raise LabelRefusedError("there is no such label to undo")
    store.record_undo(client_token=event["token"], reviewer_id=reviewer_id, batch_id=batch_id)


def label_draft(reviewer_id: str, batch_id: str, event: Mapping[str, Any]) -> LabelDraft:
    """Build the label, or the draft of one, that an event describes.

    Raises
    ------
    ValueError
        If a part is missing or has the wrong type.
    """
    return LabelDraft(
        client_token=event["token"],
        trace_id=_text(event, "trace_id"),
        reviewer_id=reviewer_id,
        batch_id=batch_id,
        **_parts(event),
    )


def _parts(event: Mapping[str, Any]) -> dict[str, Any]:
    quotes = event.get("evidence") or []
    if not isinstance(quotes, list) or not all(isinstance(quote, dict) for quote in quotes):
        raise ValueError(f"evidence must be a list of quotes, got {quotes!r:.200}")
    tags = event.get("tags") or []
    if not isinstance(tags, list) or not all(isinstance(tag, str) for tag in tags):
        raise ValueError(f"tags must be a list of texts, got {tags!r:.200}")
    sub_goals = event.get("sub_goals") or {}
    if not isinstance(sub_goals, dict) or not all(isinstance(s, str) for s in sub_goals.values()):
        raise ValueError(f"sub_goals must be a state by sub-goal, got {sub_goals!r:.200}")
    confidence, seconds = event.get("confidence"), event.get("seconds_active")
    if confidence is not None and type(confidence) is not int:
        raise ValueError(f"confidence must be 1, 2 or 3, got {confidence!r:.80}")
    return {
        "violations": _violations(event.get("violations")),
        "answers": _answers(event),
        "rationale": _optional(event, "rationale"),
        "evidence": tuple(
            Evidence(step_id=_text(quote, "step_id"), quote=_text(quote, "quote"))
            for quote in quotes
        ),
        "confidence": confidence,
        "tags": tuple(tags),
        "sub_goals": sub_goals,
        "seconds_active": float(seconds) if isinstance(seconds, int | float) else None,
    }


def _violations(given: object) -> tuple[Violation, ...] | None:
    """Return the marked violations; None where the page did not ask for any."""
    if given is None:
        return None
    if not isinstance(given, list) or not all(isinstance(one, dict) for one in given):
        raise ValueError(f"violations must be a list of objects, got {given!r:.200}")
    return tuple(
        Violation(
            constraint=_text(one, "constraint"),
            severity=_text(one, "severity"),
            step=_optional(one, "step"),
        )
        for one in given
    )


def _optional(event: Mapping[str, Any], name: str) -> str | None:
    value = event.get(name)
    return value.strip() or None if isinstance(value, str) else None


def _text(event: Mapping[str, Any], name: str) -> str:
    value = event.get(name)
    if not isinstance(value, str) or not value:
        raise ValueError(f"{name} must be a text, got {value!r}")
    return value


def _answers(event: Mapping[str, Any]) -> dict[str, str]:
    answers = event.get("answers")
    if not isinstance(answers, dict) or not all(a in ANSWERS for a in answers.values()):
        raise ValueError(f"answers must be yes or no by question, got {answers!r}")
    return {str(node): str(answer) for node, answer in answers.items()}


def on_path(taxonomy: Taxonomy, answers: Mapping[str, str]) -> dict[str, str]:
    """Return the answers that walk down the tree, in order; others are from another tree."""
    kept: dict[str, str] = {}
    at = taxonomy.root.id
    while at not in taxonomy.credit and answers.get(at) in ANSWERS:
        kept[at] = answers[at]
        at = taxonomy.node(at).target(answers[at])
    return kept


def next_question(taxonomy: Taxonomy, answers: Mapping[str, str]) -> Node:
    """Return the question that answers short of a class lead to."""
    if not answers:
        return taxonomy.root
    last = list(answers)[-1]
    return taxonomy.node(taxonomy.node(last).target(answers[last]))


def find_quote(trace: TraceForReview, quote: str) -> str:
    """Return the step with a quote, word for word, `response`, or an empty text.

    The system prompt does not count: what it says is not the agent's invention.
    """
    if not quote:
        return ""
    for step in trace.steps:
        if step.role not in SYSTEM_ROLES and any(
            quote in text for text in (step.content, step.arguments, step.result) if text
        ):
            return step.step_id
    return "response" if trace.response and quote in trace.response else ""
