"""The adjudication queue, its progress, and handbook sentences from recurring causes."""

import hashlib
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from calibration.agreement.coefficients import KRIPPENDORFF_ALPHA, estimate
from calibration.agreement.dawid_skene import dawid_skene
from calibration.agreement.inference import costly_items
from calibration.agreement.ratings import count_patterns
from calibration.analyses.agreement.analysis import planned_codes
from calibration.analyses.evidence.data import CalibrationData
from calibration.analyses.evidence.from_store import Settled, load_batch, settled_traces
from calibration.statistics.estimate import Estimate
from calibration.store import Batch, Store
from calibration.taxonomy import Taxonomy

NO_QUESTION = "no question"
AT_LEAST = 3
OPEN, ACCEPTED = "open", "accepted"
RUBRIC = "rubric_unclear"

# Placeholder in a drafted sentence for the lead to fill in.
BLANK = "when ..."

# Causes that say nothing about the rubric.
NOT_OF_THE_RUBRIC = ("slip", "trace_unclear")


@dataclass(frozen=True, slots=True, kw_only=True)
class Due:
    """A trace that awaits its adjudicator: disputed, flagged, reopened, or a chosen agreed one."""

    trace_id: str
    cost: float  # alpha without the trace less alpha with it, in points; 0 if agreed; descriptive
    entropy: float  # of its class given all labels (Dawid-Skene), in bits
    disputed: bool
    flagged: bool
    reopened: bool
    calibrates: bool  # in a random sample, with a verdict: the corrected rate needs it
    own: bool  # labelled by the adjudicator in the batch


@dataclass(frozen=True, slots=True, kw_only=True)
class AdjudicationWork:
    """The adjudication of one production batch, for one adjudicator."""

    batch_id: str
    due: tuple[Due, ...]  # in the order to decide
    settled: tuple[Settled, ...]  # newest first
    alpha: Estimate  # Krippendorff's, of all labels, adjudicated or not
    n_shared: int  # traces with two or more labels that count
    agreed: tuple[str, ...]  # agreed by two or more, not adjudicated

    @property
    def n_disputed(self) -> int:
        """Open disagreements."""
        return sum(of.disputed and not of.reopened for of in self.due)

    @property
    def n_flagged(self) -> int:
        """Flagged traces that wait, disputed or not."""
        return sum(of.flagged for of in self.due)

    @property
    def n_reopened(self) -> int:
        """Adjudicated traces whose labels have changed since."""
        return sum(of.reopened for of in self.settled)

    def by_cause(self) -> pd.DataFrame:
        """Return the number of uses of each cause at each question: question, cause, n."""
        counted = Counter(
            (of.question or NO_QUESTION, of.cause) for of in self.settled if of.cause is not None
        )
        rows = [(question, cause, n) for (question, cause), n in sorted(counted.items())]
        return pd.DataFrame(rows, columns=["question", "cause", "n"])


@dataclass(frozen=True, slots=True, kw_only=True)
class OpenTraces:
    """The traces of a production batch that wait for a lead's decision."""

    batch_id: str
    disputed: frozenset[str]  # reviewers gave different classes
    flagged: frozenset[str]
    reopened: frozenset[str]  # adjudicated, and their labels have changed since

    @property
    def waiting(self) -> frozenset[str]:
        """All of them."""
        return self.disputed | self.flagged | self.reopened


def open_traces(store: Store, batch_id: str) -> OpenTraces:
    """Return the disputed, flagged and reopened traces of a batch."""
    labels = store.label_frame(batch_id)
    labels = labels[(labels["kind"] == "label") & ~labels["exposed"].astype(bool)]
    classes = labels.groupby("trace_id")["outcome"].nunique()
    settled = store.adjudication_frame(batch_id)
    done = set(settled["trace_id"])
    return OpenTraces(
        batch_id=batch_id,
        disputed=frozenset(classes.index[classes > 1]) - done,
        flagged=frozenset(store.flag_frame(batch_id)["trace_id"]) - done,
        reopened=frozenset(settled.loc[settled["reopened"].astype(bool), "trace_id"]),
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class BlindWork:
    """The traces of a production batch that a lead has left to decide blind."""

    batch_id: str
    to_adjudicate: frozenset[str]
    to_label: frozenset[str]

    @property
    def traces(self) -> frozenset[str]:
        """All of them."""
        return self.to_adjudicate | self.to_label


def blind_work(store: Store, reviewer_id: str, batch_id: str) -> BlindWork:
    """Return what a lead has left to do in a batch without knowing what others said.

    To adjudicate: what waits for a decision. To label: what can be given to them, if they label in
    this batch; `Store.still_blind` says which traces count.
    """
    still = store.still_blind(reviewer_id, store.batch_items(batch_id)["trace_id"].tolist())
    if not still:
        return BlindWork(batch_id=batch_id, to_adjudicate=frozenset(), to_label=frozenset())
    waiting = open_traces(store, batch_id).waiting
    frames = store.label_frame(batch_id), store.lease_frame(batch_id)
    takes_part = any((frame["reviewer_id"] == reviewer_id).any() for frame in frames)
    return BlindWork(
        batch_id=batch_id,
        to_adjudicate=waiting & still,
        to_label=frozenset(still - waiting if takes_part else ()),
    )


def adjudication_work(store: Store, batch_id: str, adjudicator: str) -> AdjudicationWork:
    """Return the traces to be adjudicated in a batch, in order, and the adjudicated ones.

    Disagreements and flags come by cost, then entropy; first those that the corrected rate needs,
    last those that the adjudicator has labelled. Agreed traces are scattered between them, so
    that their position does not reveal the agreement.
    """
    # Labels of perturbed arms are settled like all others; only agreement leaves them out.
    loaded = load_batch(store, batch_id, sample=False, arms=True)
    counted = load_batch(store, batch_id, sample=False) if loaded.perturbed else loaded
    codes = loaded.codes()
    trace_ids = [str(trace_id) for trace_id in loaded.labelled["trace_id"]]
    differ = np.array([len(set(row[row >= 0].tolist())) > 1 for row in codes], dtype=bool)
    twice = (codes >= 0).sum(axis=1) >= 2
    settled = settled_traces(store, batch_id)
    found, done = open_traces(store, batch_id), {of.trace_id for of in settled}
    disputed = {t for t, one in zip(trace_ids, differ, strict=True) if one}
    flagged = set(store.flag_frame(batch_id)["trace_id"])
    alike = {t for t, some, one in zip(trace_ids, twice, differ, strict=True) if some and not one}
    agreed = tuple(sorted(alike - done))
    asked = _asked_for(store, batch_id, adjudicator) & set(agreed)
    waiting = found.waiting | asked
    judged, own = _calibrating(store), _own(loaded, adjudicator)
    costs, entropies = _costs(loaded), _entropies(loaded, trace_ids, codes)
    due = [
        Due(
            trace_id=trace_id,
            cost=costs.get(trace_id, 0.0),
            entropy=entropies.get(trace_id, 0.0),
            disputed=trace_id in disputed,
            flagged=trace_id in flagged,
            reopened=trace_id in found.reopened,
            calibrates=trace_id in judged,
            own=trace_id in own,
        )
        for trace_id in waiting
    ]
    return AdjudicationWork(
        batch_id=batch_id,
        due=in_order(due),
        settled=settled,
        alpha=_alpha(counted),
        n_shared=int(twice.sum()),
        agreed=tuple(t for t in agreed if t not in waiting),
    )


def in_order(due: Sequence[Due]) -> tuple[Due, ...]:
    """Return traces in the order of `adjudication_work`."""

    def key(of: Due) -> tuple[object, ...]:
        return of.own, not of.calibrates, -of.cost, -of.entropy, of.trace_id

    asked = [of for of in due if not (of.disputed or of.flagged or of.reopened)]
    ordered = sorted((of for of in due if of not in asked), key=key)
    n = len(ordered)
    for of in sorted(asked, key=lambda of: _scatter(of.trace_id)):
        ordered.insert(int(_scatter(of.trace_id) * (n + 1)), of)
    return tuple(ordered)


def _scatter(trace_id: str) -> float:
    """Return a fixed position in [0, 1) that does not depend on the labels."""
    return int.from_bytes(hashlib.sha256(trace_id.encode()).digest()[:6], "big") / 2**48


def serve(
    store: Store, work: AdjudicationWork, adjudicator: str, *, also: Sequence[str] = ()
) -> Batch | None:
    """Give the adjudicator the traces due, and `also` some agreed ones."""
    return store.serve_adjudication(
        adjudicator=adjudicator,
        batch_id=work.batch_id,
        trace_ids=[*(of.trace_id for of in work.due), *also],
    )


def draw_agreed(work: AdjudicationWork, n: int, *, rng: np.random.Generator) -> list[str]:
    """Return up to `n` of the agreed traces at random; adjudicated, they are gold items."""
    size = min(n, len(work.agreed))
    return [str(t) for t in rng.choice(np.array(work.agreed, dtype=str), size, replace=False)]


def _asked_for(store: Store, batch_id: str, adjudicator: str) -> set[str]:
    batch = store.adjudication_batch(adjudicator, batch_id)
    return set() if batch is None else set(store.batch_items(batch.batch_id)["trace_id"])


def _own(loaded: CalibrationData, adjudicator: str) -> set[str]:
    return set(loaded.labels.loc[loaded.labels["reviewer_id"] == adjudicator, "trace_id"])


def _calibrating(store: Store) -> set[str]:
    """Return the traces of random samples with a judge's verdict."""
    drawn: set[str] = set()
    for batch in store.batches():
        if batch.purpose == "production" and batch.is_sample:
            drawn |= set(store.batch_items(batch.batch_id)["trace_id"])
    judged: set[str] = set()
    for judge_id in store.judge_frame()["judge_id"] if drawn else ():
        judged |= set(store.verdict_frame(judge_id)["trace_id"])
    return drawn & judged


def _costs(loaded: CalibrationData) -> dict[str, float]:
    """Return the cost of each trace in alpha, where there is one."""
    traces, codes, _ = planned_codes(loaded)
    names = list(traces["trace_id"])
    found = costly_items(KRIPPENDORFF_ALPHA, codes, n_classes=len(loaded.classes), limit=len(codes))
    return {names[item.item]: item.cost for item in found}


def _entropies(
    loaded: CalibrationData, trace_ids: list[str], codes: NDArray[np.int64]
) -> dict[str, float]:
    if not len(codes):
        return {}
    truth = dawid_skene(codes, n_classes=len(loaded.classes))
    return dict(zip(trace_ids, truth.entropy.tolist(), strict=True))


def _alpha(loaded: CalibrationData) -> Estimate:
    _, codes, _ = planned_codes(loaded)
    return estimate(KRIPPENDORFF_ALPHA, count_patterns(codes, n_classes=len(loaded.classes)))


@dataclass(frozen=True, slots=True, kw_only=True)
class Proposal:
    """A question on which the handbook should say more."""

    proposal_id: str
    question: str
    classes: tuple[str, ...]  # the two mixed up; empty: the whole question
    trace_ids: tuple[str, ...]
    causes: dict[str, int]
    text: str  # a draft while open, else as decided
    status: str = OPEN  # open, accepted or declined
    reason: str | None = None
    decided_by: str | None = None
    n_new: int = 0  # traces since the decision; enough of them reopen it


def handbook_proposals(store: Store, *, at_least: int = AT_LEAST) -> tuple[Proposal, ...]:
    """Return the proposals under the taxonomy in force, open ones with the most traces first.

    At one question, either the rubric was called unclear `at_least` times, or one pair of classes
    was confused that often for a cause other than a slip or an unclear trace.
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
    # Accepted sentences stay in the handbook, even if their adjudications are withdrawn.
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
    """Return the open proposals from adjudications."""
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
        # Traces of a single pair are best described by the pair.
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
    """Return a sentence to edit: how the traces were adjudicated, and where the rule is missing."""
    titles = {c.name: c.title for c in taxonomy.classes}
    ((final, n), *_) = Counter(of.outcome for of in group).most_common(1)
    asked = taxonomy.node(question).question
    between = f"Between {titles[pair[0]]} and {titles[pair[1]]}: " if pair else ""
    answer = taxonomy.answers_for(final).get(question)
    then = f"answer {answer} {BLANK}" if answer else f"decide for {titles[final]} {BLANK}"
    return f"{asked} {between}{then} ({n} of {len(group)} were adjudicated as {titles[final]}.)"


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
