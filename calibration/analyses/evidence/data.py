"""Calibration data: all traces with their verdicts, and the labelled ones among them."""

import json
from collections import Counter
from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from calibration.agreement.ratings import parting_questions
from calibration.analyses.fingerprint import fingerprint
from calibration.errors import CalibrationError
from calibration.judge_calibration.reviewer_error import first_phase
from calibration.judge_calibration.samples import Design, LabelledSample
from calibration.records import (
    HARNESS,
    NO_VERDICT,
    VERSION,
    Evidence,
    Violation,
    harness_of,
)
from calibration.success_rate.runs import credit_rows
from calibration.tables.reading import Reading, left_out
from calibration.tables.vocabulary import Recoded, Vocabulary
from calibration.taxonomy import CreditTable, Taxonomy
from calibration.text import weeks_of

if TYPE_CHECKING:
    from calibration.store import Batch

UNKNOWN = "unknown"
BY = ("agent", "workflow", "model", "week", "prompt")
MISSING = -1
MOST_CAUSES = 20

# Shares of the reviewers are sums of 1/m.
ALL = 1 - 1e-9

# Columns of the traces behind every number, and those that the diagnostics add.
INPUTS = ("trace_id", "workflow", "task_key")

CONTEXT = (*INPUTS, "agent", "model", "agent_version", "n_steps", "response_chars")
Sampling = Literal["drawn", "claimed", "chosen"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Provenance:
    """The origin of labels and verdicts.

    `judge_id` is empty for an unnamed judge, `batch_id` outside a store; `labels` and `verdicts`
    name files or tables and are empty for a store.
    """

    source: Literal["store", "files", "tables"]
    judge_id: str = ""
    batch_id: str = ""
    labels: str = ""
    verdicts: str = ""
    simulated: bool = False

    @property
    def named(self) -> dict[str, str | bool]:
        """The origin as named in results."""
        if self.source == "store":
            return {
                "judge_id": self.judge_id,
                "batch_id": self.batch_id,
                "simulated": self.simulated,
            }
        if self.source == "files":
            files: dict[str, str | bool] = {
                "human_file": self.labels,
                "verdict_file": self.verdicts,
            }
            return files | ({"judge_id": self.judge_id} if self.judge_id else {})
        return {"file": self.verdicts}


@dataclass(frozen=True, slots=True, kw_only=True)
class ReviewerLabel:
    """One reviewer's label of a trace; `outcome` is None for a skip, with its `reason`.

    `answers` are by question, in the order asked. A `blind` label was given before its reviewer saw
    other labels; agreement leaves out the others.
    """

    reviewer: str
    outcome: str | None
    rationale: str | None = None
    evidence: tuple[Evidence, ...] = ()
    answers: Mapping[str, str] | None = None
    confidence: str | None = None
    tags: tuple[str, ...] = ()
    reason: str | None = None
    blind: bool = True
    violations: tuple[Violation, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class ReviewedTrace:
    """A labelled trace with its labels and consensus, and its verdict where a judge is calibrated.

    `human` : share of each class; a single class where adjudicated or unanimous
    `reason`, `evidence` : of the judge
    `question` : first question at which the labels, or labels and verdict, take different branches
    `differs` : not every human agrees with the verdict or, without a judge, with each other
    `credit_difference` : credit of the verdict less the human credit; None if the verdict is no
        class
    `weight` : weight in the corrected rate, N_k / (N n_k) for its verdict k; with unequal weights
        N_k / N times its share of their sum
    `moves` : abs(credit difference) x weight: change of the corrected rate if the judge were right
    `changed` : the judge gave another verdict when asked again
    `entropy` : uncertainty of the class given all labels (Dawid-Skene), in bits
    `cost` : alpha without this disputed trace less alpha with it
    `week` : ISO week of the last label
    """

    trace_id: str
    workflow: str = UNKNOWN
    agent: str = UNKNOWN
    labels: tuple[ReviewerLabel, ...] = ()
    human: Mapping[str, float]
    adjudicated: bool = False
    verdict: str | None = None
    reason: str | None = None
    evidence: tuple[Evidence, ...] = ()
    question: str | None = None
    differs: bool = False
    credit_difference: float | None = None
    weight: float = 0.0
    moves: float | None = None
    changed: bool = False
    entropy: float = 0.0
    cost: float | None = None
    week: str = ""

    @property
    def is_open(self) -> bool:
        """Whether the reviewers differ without adjudication."""
        return len(self.human) > 1

    @property
    def consensus(self) -> str | None:
        """The adjudicated class."""
        return next(iter(self.human)) if self.adjudicated else None

    @property
    def classes(self) -> dict[str, str]:
        """The class given by each reviewer."""
        return {label.reviewer: label.outcome for label in self.labels if label.outcome}


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class CalibrationData:
    """Labels and verdicts of the same traces, from any source.

    `taxonomy` : its questions concern the classes only where `ours` is true
    `credit`, `own_credit` : of the classes, and of workflows with their own
    `sampling` : drawn at random by this package, claimed to be, or chosen: then no result extends
        to other traces
    `traces` : the traces of the rate (if chosen, of the batch): trace_id, workflow, task_key,
        agent, model, started_at, cost_usd, units, ceiling_usd, n_steps
    `verdict_names` : the classes first
    `verdicts` : shape (n_traces,), codes of `verdict_names`; all `no_verdict` without a judge
    `penalties` : shape (n_traces,)
    `counts` : shape (n_verdicts,), traces by verdict where no more is known; then `traces` is empty
        and `at` counts the labelled traces alone
    `labels` : the labels that count: trace_id, reviewer_id, outcome, code, rationale, evidence
    `labelled` : the labelled traces, with the columns of `traces` and of the batch
    `at` : shape (n_labelled,), their rows in `traces`
    `tasks` : shape (n_traces,), code of the task of each trace
    `human` : shape (n_labelled, n_classes), the adjudicated class, otherwise class shares of
        reviewers
    `weights` : inverse inclusion probabilities; None if equal
    `strata` : shape (n_traces,), stratum of an uneven draw, `MISSING` where not known; None if
        the draw was even
    `skipped_ids` : traces skipped and never labelled
    `unlabelled` : traces of the batch without a label
    `overlap_random` : whether the traces with two labels are a random part of the batch
    `audit` : whether each agreed trace that a lead labelled again, blind, has another class; None
        without such an audit
    `exposed` : labels left out because they were not blind
    `perturbed` : traces of perturbed arms, left out
    `later_traces` : traces imported after the draw
    `undated` : traces without a time, outside any window
    `grades` : shape (n_labelled,), 1 to 5, 0 if the judge gave none
    `repeats` : shape (n_repeated, n_samples), verdicts of repeated traces, `MISSING` for none
    `vocabulary`, `recoded` : how outcomes were read, and what was taken as something else
    `readings` : what was read of the tables of labels and of verdicts
    """

    provenance: Provenance
    taxonomy: Taxonomy
    classes: tuple[str, ...]
    credit: NDArray[np.float64]
    sampling: Sampling
    traces: pd.DataFrame
    verdict_names: tuple[str, ...]
    verdicts: NDArray[np.int64]
    penalties: NDArray[np.float64]
    counts: NDArray[np.int64] | None = None
    labels: pd.DataFrame
    labelled: pd.DataFrame
    at: NDArray[np.int64]
    human: NDArray[np.float64]
    adjudicated: NDArray[np.bool_]
    tasks: NDArray[np.int64]
    weights: NDArray[np.float64] | None = None
    reviewers: tuple[str, ...] = ()
    skipped_ids: tuple[str, ...] = ()
    skipped_weights: NDArray[np.float64] | None = None
    strata: NDArray[np.int64] | None = None
    unlabelled: int = 0
    audit: tuple[bool, ...] | None = None
    exposed: int = 0
    perturbed: int = 0
    overlap_random: bool = False
    later_traces: int = 0
    undated: int = 0
    grades: NDArray[np.int64] | None = None
    repeats: NDArray[np.int64] | None = None
    stored_batch: "Batch | None" = None
    readings: tuple[Reading, ...] = ()
    notes: tuple[str, ...] = ()
    vocabulary: Vocabulary = field(default_factory=Vocabulary)
    recoded: tuple[Recoded, ...] = ()
    own_credit: Mapping[str, tuple[float, ...]] = field(default_factory=dict)

    @property
    def batch(self) -> "Batch":
        """Return the batch of the labels; raise CalibrationError outside a store."""
        if self.stored_batch is None:
            raise CalibrationError("labels of files belong to no batch")
        return self.stored_batch

    @property
    def reading(self) -> tuple[Reading, ...]:
        """What was read of the tables of labels and verdicts, or of the labels of a store."""
        if self.stored_batch is None:
            return self.readings
        n = len(self.labels)
        return (
            Reading(
                place=self.provenance.batch_id,
                rows=n + self.exposed,
                used=n,
                layout="long",
                rubric=self.taxonomy.version,
                left_out=(left_out("not_blind", self.exposed),) if self.exposed else (),
                max_left_out=None,
            ),
        )

    @property
    def is_sample(self) -> bool:
        """Whether the labelled traces are, or are claimed to be, a random sample."""
        return self.sampling != "chosen"

    @property
    def simulated(self) -> bool:
        """Whether labels and traces belong to a demonstration."""
        return self.provenance.simulated

    @property
    def skipped(self) -> int:
        """Number of traces skipped and never labelled."""
        return len(self.skipped_ids)

    @property
    def ours(self) -> bool:
        """Whether the classes are those of the taxonomy, none of them merged."""
        return not self.vocabulary.merged and set(self.classes) <= set(self.taxonomy.credit)

    @property
    def credits(self) -> dict[str, float]:
        """The credit of each class, in workflows without their own."""
        return dict(zip(self.classes, self.credit.tolist(), strict=True))

    @property
    def credit_table(self) -> CreditTable:
        """The credit of the classes in every workflow."""
        return CreditTable(credit=tuple(self.credit.tolist()), by_workflow=self.own_credit)

    def at_credit(self, table: CreditTable) -> "CalibrationData":
        """Return the data under another table of credit."""
        return replace(self, credit=np.array(table.credit), own_credit=table.by_workflow)

    @property
    def tables(self) -> tuple[NDArray[np.float64], NDArray[np.int64] | None]:
        """The tables of credit that occur, and that of each trace; None where there is one."""
        if not self.own_credit or not len(self.traces):
            return self.credit[None], None
        rows = self.credit_of(self.traces)
        tables, table = np.unique(rows, axis=0, return_inverse=True)
        if len(tables) == 1:
            return tables, None
        return tables, np.asarray(table, dtype=np.int64).ravel()

    def credit_of(
        self, traces: pd.DataFrame, rows: NDArray[np.bool_] | None = None
    ) -> NDArray[np.float64]:
        """Return the credit of the classes, or of those of each trace where workflows differ."""
        if not self.own_credit:
            return self.credit
        if rows is not None:
            traces = traces[rows]
        return credit_rows(self.credit_table, traces["workflow"].tolist())

    @property
    def open_disagreements(self) -> int:
        """Number of traces on which reviewers differ without adjudication."""
        return open_disagreements(self.human)

    @property
    def skipped_at(self) -> NDArray[np.int64]:
        """Rows of the skipped traces in `traces`."""
        row = self.rows_of_traces() if self.skipped_ids else {}
        return np.array([row[trace_id] for trace_id in self.skipped_ids], dtype=np.int64)

    def rows_of_traces(self) -> dict[str, int]:
        """Return the row of each trace in `traces`."""
        return {trace_id: row for row, trace_id in enumerate(self.traces["trace_id"])}

    def codes(self) -> NDArray[np.int64]:
        """Return class codes, labelled traces x reviewers, `MISSING` without a label."""
        return label_codes(self.labels, self.labelled["trace_id"])

    def production(self, design: Design) -> NDArray[np.bool_]:
        """Return whether each trace is production: labelled reference traces are not."""
        counted = np.ones(len(self.verdicts), dtype=bool)
        if design == "reference":
            counted[self.at] = False
        return counted

    def production_counts(self, design: Design) -> NDArray[np.int64]:
        """Return the number of production traces by verdict."""
        if self.counts is not None:
            return self.counts
        verdicts = self.verdicts[self.production(design)]
        return np.bincount(verdicts, minlength=len(self.verdict_names))

    def skipped_by_verdict(self) -> dict[str, int]:
        """Return the number of skipped traces by verdict."""
        codes = self.verdicts[self.skipped_at].tolist()
        return dict(Counter(self.verdict_names[code] for code in codes))

    def sample(self, design: Design) -> LabelledSample:
        """Return the labelled traces in the form of the estimators.

        Under design ``production``, labelled traces have non-response weights for the skipped ones
        of their verdict and workflow, and their first labels where some have two.
        """
        production = design == "production"
        first, overlap = self._phases() if production and self.counts is None else (None, None)
        return LabelledSample(
            human=self.human,
            verdicts=self.verdicts[self.at],
            penalties=self.penalties[self.at],
            weights=self._with_skipped() if production else self.weights,
            clusters=self.tasks[self.at],
            first_human=first,
            overlap=overlap,
            strata=self._strata_of_labels(),
            table=None if (table := self.tables[1]) is None else table[self.at],
        )

    def _strata_of_labels(self) -> NDArray[np.int64] | None:
        found = None if self.strata is None else self.strata[self.at]
        return None if found is None or (found == MISSING).any() else found

    def _phases(self) -> tuple[NDArray[np.float64] | None, NDArray[np.bool_] | None]:
        """Return the shares by first labels, and the traces with two; None where none has two."""
        if not self.labels.duplicated("trace_id").any():
            return None, None
        codes = self.codes()
        first = first_phase(codes, len(self.classes))
        # A trace with an adjudicated label alone has no first one.
        first = np.where(first.any(axis=1, keepdims=True), first, self.human)
        return first, (codes != MISSING).sum(axis=1) >= 2

    def _with_skipped(self) -> NDArray[np.float64] | None:
        if not self.skipped_ids:
            return self.weights
        weights = None
        if self.weights is not None and self.skipped_weights is not None:
            weights = np.concatenate([self.weights, self.skipped_weights])
        asked = np.concatenate([self.at, self.skipped_at])
        return nonresponse_weights(
            self.verdicts[asked].tolist(),
            self.traces["workflow"].iloc[asked].tolist(),
            np.arange(asked.size) < self.at.size,
            weights,
        )

    def fingerprint(
        self, kind: str, settings: Mapping[str, object], columns: Sequence[str] = INPUTS,
        **more: pd.DataFrame,
    ) -> str:  # fmt: skip
        """Return the fingerprint of a result on these data, independent of row order."""
        frames = dict(more)
        if self.counts is None:
            known = [name for name in columns if name in self.traces]
            frames["traces"] = _sorted(
                self.traces[known].assign(
                    verdict=np.array(self.verdict_names)[self.verdicts], penalty=self.penalties
                )
            )
            frames["labels"] = _sorted(self.labels[["trace_id", "reviewer_id", "outcome"]])
            frames["human"] = _sorted(self.human_frame())
        else:
            frames["production"] = pd.DataFrame({"n": self.counts})
            cells = self.human.argmax(axis=1) * len(self.verdict_names) + self.verdicts
            frames["confusion"] = pd.DataFrame({"n": np.bincount(cells)})
        settings = {
            "kind": kind,
            "classes": self.classes,
            "credit": self.credit.tolist(),
            **({"own_credit": dict(self.own_credit)} if self.own_credit else {}),
            "verdict_names": self.verdict_names,
            "skipped": sorted(self.skipped_ids),
            **settings,
        }
        return fingerprint(taxonomy=self.taxonomy.fingerprint, settings=settings, **frames)

    def human_frame(self) -> pd.DataFrame:
        """Return class shares, weight and task of each labelled trace."""
        weights = np.ones(len(self.human)) if self.weights is None else self.weights
        return pd.DataFrame(self.human, columns=list(self.classes)).assign(
            trace_id=self.labelled["trace_id"].to_numpy(),
            adjudicated=self.adjudicated,
            weight=weights,
            task=self.labelled["task_key"].to_numpy(),
        )


def _sorted(frame: pd.DataFrame) -> pd.DataFrame:
    keys = [name for name in ("trace_id", "reviewer_id") if name in frame]
    return frame.sort_values(keys)


def open_disagreements(human: NDArray[np.float64]) -> int:
    """Return the number of traces with more than one class."""
    return int(((human > 0).sum(axis=1) > 1).sum())


def label_codes(labels: pd.DataFrame, trace_ids: Sequence[str] | pd.Series) -> NDArray[np.int64]:
    """Return class codes, traces x reviewers sorted by name, `MISSING` without a label."""
    wide = labels.pivot_table(
        index="trace_id", columns="reviewer_id", values="code", aggfunc="last"
    )
    wide = wide.reindex(index=list(trace_ids), columns=sorted(labels["reviewer_id"].unique()))
    return wide.fillna(MISSING).to_numpy(dtype=np.int64)


def class_shares(
    codes: NDArray[np.int64], settled: NDArray[np.int64], n_classes: int
) -> NDArray[np.float64]:
    """Return class shares of each trace: its adjudicated class, else the mean over its reviewers.

    `codes` has shape (n_traces, n_reviewers), `settled` (the adjudicated classes) (n_traces,); both
    have `MISSING` for none. Rows without a label are zeros.

    Examples
    --------
    >>> class_shares(np.array([[0, 1], [1, -1], [0, 1]]), np.array([-1, -1, 1]), 2).tolist()
    [[0.5, 0.5], [0.0, 1.0], [0.0, 1.0]]
    """
    one_hot = np.vstack([np.eye(n_classes), np.zeros(n_classes)])
    votes = one_hot[codes].sum(axis=1)
    total = votes.sum(axis=1, keepdims=True)
    human: NDArray[np.float64] = np.divide(votes, total, out=np.zeros_like(votes), where=total > 0)
    done = settled != MISSING
    human[done] = one_hot[settled[done]]
    return human


def among(ids: "pd.Series[str]", known: "pd.Series[str]") -> NDArray[np.bool_]:
    """Return which ids are among others, which may be all of a store.

    `Series.isin` would make a Python object of each of the others.
    """
    own, others = (pa.array(of, pa.large_string()) for of in (ids, known))
    return np.asarray(pc.is_in(own, value_set=others))


def group_names(traces: pd.DataFrame, by: str) -> NDArray[np.str_]:
    """Return the agent (or model and version), workflow, model, week ... of each trace.

    The harness is what an agent version ``harness@version`` begins with.

    The prompt is what the judge read: the ``whole`` trace, or a part. ``unknown`` if missing.
    """
    if by == "week":
        names = weeks_of(pd.to_datetime(traces["started_at"]))
    elif by == "agent" and "agent" not in traces:
        names = traces["model"].fillna(UNKNOWN).astype(str)
        if "agent_version" in traces:  # files without an agent have the model alone
            version = traces["agent_version"].fillna("").astype(str)
            names = names.str.cat(version, sep=" ").str.strip()
    elif by in traces:
        names = traces[by]
    elif by == HARNESS and VERSION in traces:
        names = traces[VERSION].map(harness_of, na_action="ignore").astype(object)
    else:
        names = pd.Series(UNKNOWN, index=traces.index)
    of, found = pd.factorize(names.fillna(UNKNOWN).replace("", UNKNOWN))
    return np.asarray(found, dtype=str)[of]


def nonresponse_weights(
    verdicts: Sequence[Hashable],
    workflows: Sequence[Hashable],
    labelled: NDArray[np.bool_],
    weights: NDArray[np.float64] | None = None,
) -> NDArray[np.float64] | None:
    """Return the weights of the labelled traces, raised for similar skipped traces.

    Assumption: within verdict and workflow, skipping is independent of the class. For a cell
    without labels the whole verdict is up-weighted; for a verdict without labels nothing is.

    Parameters
    ----------
    verdicts, workflows : sequence, length n
        Of every trace that was asked about.
    labelled : bool array, shape (n,)
    weights : float array, shape (n,), optional
        Inverse inclusion probabilities; equal when None.

    Returns
    -------
    float array, shape (n_labelled,), or None
        `weights` unchanged when no trace was skipped.

    Examples
    --------
    One of the two traces of workflow b was skipped:

    >>> nonresponse_weights([0, 0, 0], ["a", "b", "b"], np.array([True, True, False])).tolist()
    [1.0, 2.0]
    """
    if labelled.all():
        return weights
    weight = np.ones(labelled.size) if weights is None else np.asarray(weights, dtype=np.float64)
    cell = _numbered(list(zip(verdicts, workflows, strict=True)))
    whole = _numbered(list(verdicts))
    # First within cells, then the rest within verdicts.
    asked = np.bincount(cell, weights=weight)
    kept = np.bincount(cell, weights=weight * labelled)
    own = np.where(kept > 0, asked / np.where(kept > 0, kept, 1), 0.0)[cell] * labelled
    raised = weight * own
    total = np.bincount(whole, weights=weight)
    carried = np.bincount(whole, weights=raised)
    rest = np.where(carried > 0, total / np.where(carried > 0, carried, 1), 0.0)
    result: NDArray[np.float64] = (raised * rest[whole])[labelled]
    return result


def _numbered(names: list[Hashable]) -> NDArray[np.int64]:
    number: dict[Hashable, int] = {}
    return np.array([number.setdefault(name, len(number)) for name in names], dtype=np.int64)


def verdict_codes(
    outcomes: pd.Series,
    classes: Sequence[str],
    others: Sequence[str] = (NO_VERDICT,),
    *,
    causes: pd.Series | None = None,
) -> tuple[NDArray[np.int64], tuple[str, ...]]:
    """Return the code of each verdict, and the names: the classes, then other verdicts.

    No verdict with one of the `causes` is a verdict of its own: runs that one cause keeps from a
    class may succeed more often than those of another. Beyond the `MOST_CAUSES` most frequent ones
    they stay together.
    """
    given = outcomes.fillna(NO_VERDICT)
    if causes is not None and causes.notna().any():
        counts = causes[given == NO_VERDICT].value_counts()
        kept = sorted(counts.items(), key=lambda item: (-item[1], str(item[0])))[:MOST_CAUSES]
        caused = causes.isin([cause for cause, _ in kept]) & (given == NO_VERDICT)
        given = given.where(~caused, f"{NO_VERDICT}: " + causes.astype(str))
        others = (*others, *sorted(set(given[caused])))
    beyond = [name for name in others if name not in classes and (given == name).any()]
    names = (*classes, *beyond)
    code = {name: k for k, name in enumerate(names)}
    return np.asarray(given.map(code), dtype=np.int64), names


def reviewed_traces(data: CalibrationData, sample: LabelledSample) -> tuple[ReviewedTrace, ...]:
    """Return the labelled traces with labels, verdict, and influence by weights of `sample`."""
    return _reviewed(data, sample, range(len(data.labelled)))


def differing_traces(data: CalibrationData, sample: LabelledSample) -> tuple[ReviewedTrace, ...]:
    """Return the labelled traces on which not every human agrees with the verdict."""
    human, verdicts, k = sample.human, sample.verdicts, len(data.classes)
    agreed = np.where(verdicts < k, human[np.arange(len(human)), verdicts % k], 0.0)
    return _reviewed(data, sample, np.flatnonzero(agreed < ALL).tolist())


def by_influence(traces: Iterable[ReviewedTrace]) -> tuple[ReviewedTrace, ...]:
    """Return traces sorted by influence on the rate, those that agree last."""

    # Rounded, so that rounding errors do not order ties.
    def moved(of: ReviewedTrace) -> tuple[bool, float, str]:
        size = 1.0 if of.moves is None else -round(of.moves, 12)
        return not of.differs, size if of.differs else 0.0, of.trace_id if of.differs else ""

    return tuple(sorted(traces, key=moved))


def _reviewed(
    data: CalibrationData, sample: LabelledSample, rows: Iterable[int]
) -> tuple[ReviewedTrace, ...]:
    given = labels_by_trace(data.labels)
    labelled, k = data.labelled, len(data.classes)
    names = labelled["trace_id"].tolist()
    agents, workflows = group_names(labelled, "agent"), group_names(labelled, "workflow")
    reasons, quotes = _column(labelled, "reason"), _column(labelled, "evidence")
    changed = _column(labelled, "changed")
    parting = parting_questions(data.taxonomy.paths(data.classes)) if data.ours else None
    weights = np.ones(len(names)) if sample.weights is None else np.asarray(sample.weights)
    judged = np.bincount(data.verdicts, minlength=len(data.verdict_names))
    of_labels = np.bincount(sample.verdicts, weights=weights, minlength=judged.size)
    credit = np.broadcast_to(data.credit_of(labelled), (len(names), k))
    found = []
    for row in rows:
        verdict, shares = int(sample.verdicts[row]), np.asarray(sample.human)[row]
        differs = verdict >= k or bool(shares[verdict] < ALL)
        difference = question = None
        if verdict < k and differs:
            difference = float(credit[row, verdict] - shares @ credit[row])
            others = shares.copy()
            others[verdict] = 0
            question = None if parting is None else parting[int(others.argmax())][verdict]
        weight = float(judged[verdict] / judged.sum() * weights[row] / of_labels[verdict])
        reason = reasons[row]
        found.append(
            ReviewedTrace(
                trace_id=names[row],
                workflow=str(workflows[row]),
                agent=str(agents[row]),
                labels=given.get(names[row], ()),
                human={n: float(s) for n, s in zip(data.classes, shares, strict=True) if s > 0},
                adjudicated=bool(data.adjudicated[row]),
                verdict=data.verdict_names[verdict],
                reason=reason if isinstance(reason, str) else None,
                evidence=quotes_in(quotes[row]),
                question=question,
                differs=differs,
                credit_difference=difference,
                weight=weight,
                moves=None if difference is None else abs(difference) * weight,
                changed=changed[row] is True,
            )
        )
    return tuple(found)


def _column(frame: pd.DataFrame, name: str) -> list[Any]:
    return frame[name].tolist() if name in frame else [None] * len(frame)


def labels_by_trace(labels: pd.DataFrame) -> dict[str, tuple[ReviewerLabel, ...]]:
    """Return the labels of each trace."""
    found: dict[str, list[ReviewerLabel]] = {}
    columns = ["trace_id", "reviewer_id", "outcome", "rationale", "evidence"]
    for trace_id, who, outcome, why, quotes in labels[columns].itertuples(index=False):
        found.setdefault(trace_id, []).append(
            ReviewerLabel(
                reviewer=who,
                outcome=outcome,
                rationale=why if isinstance(why, str) else None,
                evidence=quotes_in(quotes),
            )
        )
    return {trace_id: tuple(given) for trace_id, given in found.items()}


def quotes_in(value: Any) -> tuple[Evidence, ...]:
    """Return evidence, decoded if stored as JSON."""
    if isinstance(value, str):
        return tuple(Evidence(**part) for part in json.loads(value))
    return value if isinstance(value, tuple) else ()
