"""What a label may hold: evidence that stands in the trace, bounded texts, known sub-goals."""

from collections.abc import Iterable, Mapping

from calibration.errors import LabelRefusedError
from calibration.records import (
    CONFIDENCES,
    MAX_TAG,
    MAX_TAGS,
    SUB_GOAL_STATES,
    Evidence,
    LabelDraft,
    TraceForReview,
)
from calibration.store.database import Database
from calibration.store.review import for_review
from calibration.taxonomy import Taxonomy

MAX_TEXT = 4_000
MAX_QUOTES = 20


def check_label(db: Database, taxonomy: Taxonomy, draft: LabelDraft) -> None:
    """Require evidence where the tree asks for it, and only sub-goals that the trace has.

    Raises
    ------
    LabelRefusedError
        If something of this is missing or too much.
    """
    check_confidence(draft.confidence)
    needed = [
        node.id
        for node in taxonomy.path(draft.answers)
        if node.evidence_on == draft.answers[node.id]
    ]
    if needed and not draft.evidence:
        raise LabelRefusedError(
            f"the answer to {needed[0]!r} needs a step and a quoted span as evidence"
        )
    if len(draft.evidence) > MAX_QUOTES:
        raise LabelRefusedError(
            f"a label has at most {MAX_QUOTES} quotes, got {len(draft.evidence)}"
        )
    if not draft.evidence and not draft.sub_goals:
        return
    shown = for_review(db, [draft.trace_id])
    for item in draft.evidence:
        if not item.quote.strip() or not _stands(item, _texts(shown, item)):
            raise LabelRefusedError(
                f"the quoted span does not stand in step {item.step_id!r}; quote it literally"
            )
    check_sub_goals(draft.sub_goals, {goal.id for trace in shown for goal in trace.sub_goals})


def _stands(item: Evidence, texts: list[str]) -> bool:
    """Compare literally, but for the line ends that a browser selection rewrites."""
    quote = item.quote.replace("\r\n", "\n")
    return any(quote in text.replace("\r\n", "\n") for text in texts)


def _texts(shown: list[TraceForReview], item: Evidence) -> list[str]:
    if not shown:
        return []
    if item.step_id == "response":
        return [shown[0].response or ""]
    return [
        text
        for step in shown[0].steps
        if step.step_id == item.step_id
        for text in (step.content, step.arguments, step.result)
        if text
    ]


def check_confidence(confidence: int | None) -> None:
    """Require 1, 2, 3 or nothing."""
    if confidence is not None and confidence not in CONFIDENCES:
        raise LabelRefusedError(f"confidence must be 1, 2 or 3, got {confidence!r:.80}")


def check_sub_goals(sub_goals: Mapping[str, str], known: Iterable[str]) -> None:
    """Require known sub-goals, each done, not_done or unclear."""
    for goal, state in sub_goals.items():
        if goal not in known:
            raise LabelRefusedError(f"the trace has no sub-goal {goal!r:.80}")
        if state not in SUB_GOAL_STATES:
            raise LabelRefusedError(
                f"sub-goal {goal!r:.80} must be one of {', '.join(SUB_GOAL_STATES)}, "
                f"got {state!r:.80}"
            )


def clean_tags(tags: Iterable[str]) -> tuple[str, ...]:
    """Return tags as they are stored: white space closed up, each one once.

    A semicolon parts tags in a file, so that it parts them here too.

    Raises
    ------
    LabelRefusedError
        If there are more than eight, or one is longer than 40 characters.

    Examples
    --------
    >>> clean_tags(["policy  gap", "Policy gap", "refund; late"])
    ('policy gap', 'refund', 'late')
    """
    found: dict[str, str] = {}
    for text in tags:
        for part in text.split(";"):
            tag = " ".join(part.encode(errors="replace").decode().split())
            if len(tag) > MAX_TAG:
                raise LabelRefusedError(f"a tag has at most {MAX_TAG} characters, got {tag!r:.60}")
            if tag:
                found.setdefault(tag.casefold(), tag)
    if len(found) > MAX_TAGS:
        raise LabelRefusedError(f"a label has at most {MAX_TAGS} tags, got {len(found)}")
    return tuple(found.values())


def bounded(text: str | None, most: int = MAX_TEXT) -> str | None:
    """Cut a text to what is kept of it, without what UTF-8 cannot hold."""
    if text is None:
        return None
    return text.strip()[:most].encode(errors="replace").decode().strip() or None


def duration(seconds: float | None) -> float | None:
    """Drop a time that no clock measured: a label is not refused for it."""
    return seconds if seconds is not None and 0 <= seconds < float("inf") else None
