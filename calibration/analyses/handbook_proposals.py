"""What keeps coming back in adjudication, as sentences for the team's handbook."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from calibration.analyses.settled import Settled, settled_traces
from calibration.store import Store
from calibration.taxonomy import Taxonomy

AT_LEAST = 3
OPEN, ACCEPTED = "open", "accepted"
RUBRIC = "rubric_unclear"
# What a drafted sentence leaves for the lead to fill in.
BLANK = "when ..."
# They say nothing about the rubric.
NOT_OF_THE_RUBRIC = ("slip", "trace_unclear")


@dataclass(frozen=True, slots=True, kw_only=True)
class Proposal:
    """A question that the handbook should say more about.

    Parameters
    ----------
    proposal_id, question : str
    classes : tuple of str
        The two classes that reviewers mixed up; empty where it is about the question as a whole.
    trace_ids : tuple of str
        The adjudicated traces that it comes from.
    causes : dict of int
        How often each cause was given.
    text : str
        The sentence: a draft while it is open, else what the lead decided about.
    status : str
        ``open``, ``accepted`` or ``declined``.
    reason, decided_by : str or None
        Of the decision.
    n_new : int
        Traces that came after the decision; so many as make a proposal open it again.
    """

    proposal_id: str
    question: str
    classes: tuple[str, ...]
    trace_ids: tuple[str, ...]
    causes: dict[str, int]
    text: str
    status: str = OPEN
    reason: str | None = None
    decided_by: str | None = None
    n_new: int = 0


def handbook_proposals(store: Store, *, at_least: int = AT_LEAST) -> tuple[Proposal, ...]:
    """Return the proposals under the taxonomy in force, open ones with the most traces first.

    Either the rubric was called unclear `at_least` times at one question, or one pair of classes
    was mixed up there so often, for another cause than a slip or an unclear trace.

    Raises
    ------
    ValueError
        If `at_least` is below 2.
    """
    if at_least < 2:
        raise ValueError(f"'at_least' must be 2 or more, got {at_least}")
    seen: dict[str, Settled] = {}
    for batch in store.batches():
        if batch.purpose == "production":
            seen |= {of.trace_id: of for of in settled_traces(store, batch.batch_id)}
    found = recurring(list(seen.values()), store.taxonomy(), at_least=at_least)
    decided = {
        row["proposal_id"]: row for row in store.proposal_frame().to_dict("records")
    }  # fmt: skip
    current = [_with_decision(of, decided.pop(of.proposal_id, None), at_least) for of in found]
    # What was accepted stays in the handbook, also when its adjudications are taken back.
    kept = [_decided_only(row) for row in decided.values()]
    return tuple(
        sorted(
            [*current, *kept],
            key=lambda of: (of.status != OPEN, -len(of.trace_ids), of.proposal_id),
        )
    )


def recurring(
    settled: Sequence[Settled], taxonomy: Taxonomy, *, at_least: int
) -> tuple[Proposal, ...]:
    """Return the open proposals that adjudications give rise to."""
    groups: dict[tuple[str, tuple[str, ...]], list[Settled]] = {}
    for of in settled:
        if of.question is None or of.cause is None:
            continue
        if of.cause == RUBRIC:
            groups.setdefault((of.question, ()), []).append(of)
        pair = tuple(sorted({outcome for _, outcome in of.labels}))
        if len(pair) == 2 and of.cause not in NOT_OF_THE_RUBRIC:
            groups.setdefault((of.question, pair), []).append(of)
    often = {key: group for key, group in groups.items() if len(group) >= at_least}
    proposals = []
    for (question, pair), group in sorted(often.items()):
        traces = {of.trace_id for of in group}
        whole = {of.trace_id for of in often.get((question, ()), [])}
        # Traces of one pair alone are told best by their pair.
        pairs = [{o.trace_id for o in g} for (q, p), g in often.items() if q == question and p]
        if (pair and traces < whole) or (not pair and any(traces <= other for other in pairs)):
            continue
        proposals.append(
            Proposal(
                proposal_id=f"{taxonomy.version}/{question}/{'-'.join(pair) or 'rubric'}",
                question=question,
                classes=pair,
                trace_ids=tuple(sorted(traces)),
                causes=dict(Counter(str(of.cause) for of in group)),
                text=_draft(question, pair, group, taxonomy),
            )
        )
    return tuple(proposals)


def _draft(
    question: str, pair: tuple[str, ...], group: Sequence[Settled], taxonomy: Taxonomy
) -> str:
    """Return a sentence to edit: how the traces were settled, and where the rule is missing."""
    titles = {c.name: c.title for c in taxonomy.classes}
    ((final, n), *_) = Counter(of.outcome for of in group).most_common(1)
    asked = taxonomy.node(question).question
    between = f"Between {titles[pair[0]]} and {titles[pair[1]]}: " if pair else ""
    answer = taxonomy.answers_for(final).get(question)
    then = f"answer {answer} {BLANK}" if answer else f"decide for {titles[final]} {BLANK}"
    return f"{asked} {between}{then} ({n} of {len(group)} were settled as {titles[final]}.)"


def _with_decision(of: Proposal, row: dict[object, object] | None, at_least: int) -> Proposal:
    if row is None:
        return of
    known = {str(trace_id) for trace_id in _texts(row["trace_ids"])}
    n_new = len(set(of.trace_ids) - known)
    return Proposal(
        proposal_id=of.proposal_id,
        question=of.question,
        classes=of.classes,
        trace_ids=of.trace_ids,
        causes=of.causes,
        text=str(row["text"]),
        status=OPEN if n_new >= at_least else str(row["status"]),
        reason=_optional(row["reason"]),
        decided_by=str(row["decided_by"]),
        n_new=n_new,
    )


def _decided_only(row: dict[object, object]) -> Proposal:
    return Proposal(
        proposal_id=str(row["proposal_id"]),
        question=str(row["question"]),
        classes=(),
        trace_ids=tuple(_texts(row["trace_ids"])),
        causes={},
        text=str(row["text"]),
        status=str(row["status"]),
        reason=_optional(row["reason"]),
        decided_by=str(row["decided_by"]),
    )


def _texts(values: object) -> list[str]:
    return [str(value) for value in values] if hasattr(values, "__iter__") else []


def _optional(value: object) -> str | None:
    return value if isinstance(value, str) else None
