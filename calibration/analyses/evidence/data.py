"""Calibration data: all traces with their verdicts, and the labelled ones among them."""

import hashlib
import json
from collections import Counter
from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from importlib.metadata import version
from typing import Any, Literal

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from calibration.agreement.ratings import parting_questions
from calibration.errors import CalibrationError
from calibration.judge_calibration.samples import Design, LabelledSample
from calibration.records import NO_VERDICT, Evidence, SetAside
from calibration.store import Batch
from calibration.taxonomy import Taxonomy
from calibration.weeks import weeks_of

UNKNOWN = "unknown"

BY = ("agent", "workflow", "model", "week")

MISSING = -1

# Shares of the reviewers are sums of 1/m.
ALL = 1 - 1e-9

# Columns of the traces that every number may depend on, and those that the diagnostics add.
INPUTS = ("trace_id", "workflow", "task_key")

CONTEXT = (*INPUTS, "agent", "model", "agent_version", "n_steps", "response_chars")

Sampling = Literal["drawn", "claimed", "chosen"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Provenance:
    """Where labels and verdicts come from.

    Parameters
    ----------
    source : {"store", "files", "tables"}
    judge_id : str
        Empty where nobody named the judge.
    batch_id : str
        Batch of a store, else empty.
    labels, verdicts : str
        Names of the files or tables, empty for a store.
    simulated : bool
    """

    source: Literal["store", "files", "tables"]
    judge_id: str = ""
    batch_id: str = ""
    labels: str = ""
    verdicts: str = ""
    simulated: bool = False

    @property
    def named(self) -> dict[str, str | bool]:
        """What a result says of where it comes from."""
        if self.source == "store":
            return {
                "judge_id": self.judge_id,
                "batch_id": self.batch_id,
                "simulated": self.simulated,
            }
        if self.source == "files":
            return {"human_file": self.labels, "verdict_file": self.verdicts}
        return {"file": self.verdicts}


@dataclass(frozen=True, slots=True, kw_only=True)
class ReviewerLabel:
    """The label that one reviewer gave a trace.

    Parameters
    ----------
    reviewer : str
    outcome : str or None
        The class; None where the reviewer skipped the trace.
    rationale, confidence : str or None
        Confidence in words.
    evidence : tuple of Evidence
    answers : mapping of str
        By question, in the order asked.
    tags : tuple of str
    reason : str or None
        Of a skip.
    blind : bool
        Whether it was given before its reviewer saw other labels; else agreement leaves it out.
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


@dataclass(frozen=True, slots=True, kw_only=True)
class ReviewedTrace:
    """A labelled trace with its labels and consensus, and its verdict where a judge is calibrated.

    Parameters
    ----------
    labels : tuple of ReviewerLabel
    human : mapping of str to float
        Share of each class: one class where it is adjudicated or all reviewers agree.
    adjudicated : bool
    verdict : str or None
        None where no judge is calibrated.
    reason, evidence
        Of the judge; None and empty where it gave none.
    question : str or None
        First question at which the labels, or labels and verdict, take different branches.
    differs : bool
        Whether not every human agrees: with the verdict, or without a judge with each other.
    credit_difference : float or None
        Credit of the verdict less the human one; None for a verdict that is no class.
    weight : float
        What the trace stands for in the corrected rate: N_k / (N n_k) of its verdict, with unequal
        weights N_k / N of its part in them.
    moves : float or None
        |credit difference| x weight: what the corrected rate would change were the judge right.
    changed : bool
        Whether the judge, asked again, gave another verdict.
    entropy : float
        Uncertainty of its class given all labels (Dawid-Skene), in bits.
    cost : float or None
        What a disputed trace costs alpha: alpha without it less alpha with it.
    week : str
        ISO week of the last label.
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
        """Whether the reviewers differ and nobody has adjudicated."""
        return len(self.human) > 1

    @property
    def consensus(self) -> str | None:
        """The adjudicated class."""
        return next(iter(self.human)) if self.adjudicated else None

    @property
    def classes(self) -> dict[str, str]:
        """The class that each reviewer gave."""
        return {label.reviewer: label.outcome for label in self.labels if label.outcome}


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class CalibrationData:
    """Labels and verdicts of the same traces, whatever they were read from.

    Parameters
    ----------
    taxonomy : Taxonomy
        Its questions are about the classes only where `ours` is true.
    classes : tuple of str
    credit : float array, shape (n_classes,)
    sampling : {"drawn", "claimed", "chosen"}
        Whether the labelled traces were drawn at random by this package, are said to be, or were
        chosen: then nothing may be said about other traces.
    traces : DataFrame
        One row a trace that a rate speaks about (with ``chosen``: of the batch): trace_id,
        workflow, task_key, agent, model, started_at, cost_usd, units, ceiling_usd, n_steps.
    verdict_names : tuple of str
        The classes first.
    verdicts : int array, shape (n_traces,)
        Position in `verdict_names`; without a judge all are `no_verdict`.
    penalties : float array, shape (n_traces,)
    counts : int array, shape (n_verdicts,), optional
        Traces by verdict where only these are known: then `traces` has no rows, and `at` counts
        through verdicts of the labelled traces alone.
    labels : DataFrame
        One row a label that counts: trace_id, reviewer_id, outcome, code, rationale, evidence.
    labelled : DataFrame
        The labelled traces, with the columns of `traces` and those of the batch.
    at : int array, shape (n_labelled,)
        Row of each of them in `traces`.
    human : float array, shape (n_labelled, n_classes)
        The adjudicated class, else the share of each class among the reviewers.
    adjudicated : bool array, shape (n_labelled,)
    tasks : array, shape (n_labelled,)
    weights : float array, shape (n_labelled,), or None
        Inverse inclusion probabilities; None: all are equal.
    reviewers : tuple of str
    skipped_ids : tuple of str
        Traces that were skipped and never labelled.
    skipped_weights : float array, shape (n_skipped,), or None
    unlabelled, exposed, later_traces, undated : int
        Traces of the batch without a label; labels left out because they were not blind; traces
        that came in after the draw; traces that no window of time can hold.
    grades : int array, shape (n_labelled,), or None
        From 1 to 5, 0 where the judge gave none.
    repeats : int array, shape (n_repeated, n_samples), or None
        Verdicts of traces that the judge was asked about again, `MISSING` for none.
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
    tasks: NDArray[Any]
    weights: NDArray[np.float64] | None = None
    reviewers: tuple[str, ...] = ()
    skipped_ids: tuple[str, ...] = ()
    skipped_weights: NDArray[np.float64] | None = None
    unlabelled: int = 0
    exposed: int = 0
    later_traces: int = 0
    undated: int = 0
    grades: NDArray[np.int64] | None = None
    repeats: NDArray[np.int64] | None = None
    stored_batch: Batch | None = None
    set_aside: tuple[SetAside, ...] = ()
    notes: tuple[str, ...] = ()

    @property
    def batch(self) -> Batch:
        """The batch of the labels.

        Raises
        ------
        CalibrationError
            If they are not those of a store.
        """
        if self.stored_batch is None:
            raise CalibrationError("labels of files belong to no batch")
        return self.stored_batch

    @property
    def is_sample(self) -> bool:
        """Whether the labelled traces were, or are said to be, drawn at random."""
        return self.sampling != "chosen"

    @property
    def simulated(self) -> bool:
        """Whether labels and traces are those of a demonstration."""
        return self.provenance.simulated

    @property
    def skipped(self) -> int:
        """Number of traces that were skipped and never labelled."""
        return len(self.skipped_ids)

    @property
    def ours(self) -> bool:
        """Whether the classes are those of the taxonomy."""
        return set(self.classes) <= set(self.taxonomy.credit)

    @property
    def credits(self) -> dict[str, float]:
        """The credit of each class."""
        return dict(zip(self.classes, self.credit.tolist(), strict=True))

    @property
    def open_disagreements(self) -> int:
        """Number of traces on which reviewers differ and nobody has adjudicated."""
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
        """Return class codes, labelled traces x reviewers, `MISSING` where one gave no label."""
        return label_codes(self.labels, self.labelled["trace_id"])

    def production(self, design: Design) -> NDArray[np.bool_]:
        """Return which traces are production: labelled traces of a reference set are not."""
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

    def sample(self, design: Design, human: NDArray[np.float64] | None = None) -> LabelledSample:
        """Return the labelled traces as the estimators take them.

        Under design ``production`` labelled traces are up-weighted for the skipped ones of their
        verdict and workflow. With `human` those that have a class there.
        """
        shares = self.human if human is None else human
        kept = shares.sum(axis=1) > 0
        weights = self.weights if design == "reference" else self._with_skipped()
        tasks = self.tasks[kept]
        return LabelledSample(
            human=shares[kept],
            verdicts=self.verdicts[self.at][kept],
            penalties=self.penalties[self.at][kept],
            weights=None if weights is None else weights[kept],
            clusters=tasks if len(pd.unique(tasks)) < len(tasks) else None,
        )

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
        """Return the fingerprint of a result on these data, whatever the order of their rows."""
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
        said = {
            "kind": kind,
            "classes": self.classes,
            "credit": self.credit.tolist(),
            "verdict_names": self.verdict_names,
            "skipped": sorted(self.skipped_ids),
            **settings,
        }
        return fingerprint(taxonomy=self.taxonomy.fingerprint, settings=said, **frames)

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
    """Return the number of traces that have more than one class."""
    return int(((human > 0).sum(axis=1) > 1).sum())


def label_codes(labels: pd.DataFrame, trace_ids: Sequence[str] | pd.Series) -> NDArray[np.int64]:
    """Return class codes, traces x reviewers in order of name, `MISSING` where one gave none."""
    wide = labels.pivot_table(
        index="trace_id", columns="reviewer_id", values="code", aggfunc="last"
    )
    wide = wide.reindex(index=list(trace_ids), columns=sorted(labels["reviewer_id"].unique()))
    return wide.fillna(MISSING).to_numpy(dtype=np.int64)


def class_shares(
    codes: NDArray[np.int64], settled: NDArray[np.int64], n_classes: int
) -> NDArray[np.float64]:
    """Return class shares of each trace: its adjudicated class, else the mean over its reviewers.

    Parameters
    ----------
    codes : int array, shape (n_traces, n_reviewers)
        `MISSING` where a reviewer gave no label.
    settled : int array, shape (n_traces,)
        `MISSING` where nobody has adjudicated.
    n_classes : int

    Returns
    -------
    float array, shape (n_traces, n_classes)
        Zeros where a trace has no label.

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


def group_names(traces: pd.DataFrame, by: str) -> NDArray[np.str_]:
    """Return the group of each trace: its agent, workflow, model or ISO week.

    Where the traces have no column ``agent`` it is model and version. What a trace does not say
    is ``unknown``.
    """
    if by == "week":
        names = weeks_of(pd.to_datetime(traces["started_at"]))
    elif by == "agent" and "agent" not in traces:
        version = traces["agent_version"].fillna("").astype(str)
        names = traces["model"].fillna(UNKNOWN).astype(str).str.cat(version, sep=" ").str.strip()
    else:
        names = traces[by]
    return names.fillna(UNKNOWN).replace("", UNKNOWN).to_numpy(dtype=str)


def nonresponse_weights(
    verdicts: Sequence[Hashable],
    workflows: Sequence[Hashable],
    labelled: NDArray[np.bool_],
    weights: NDArray[np.float64] | None = None,
) -> NDArray[np.float64] | None:
    """Return the weights of the labelled traces, raised for the skipped ones like them.

    Assumed: within a verdict and workflow whether a trace was skipped has nothing to do with its
    class. For a cell without labels the whole verdict is up-weighted; for a verdict without labels
    nothing is.

    Parameters
    ----------
    verdicts, workflows : sequence, length n
        Of every trace that was asked about.
    labelled : bool array, shape (n,)
        Which of them were labelled.
    weights : float array, shape (n,), optional
        Inverse inclusion probabilities; equal ones when None.

    Returns
    -------
    float array, shape (n_labelled,), or None
        In the order of the labelled traces; `weights` as they were when none was skipped.

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
    # First what a cell can carry itself, then the rest over its verdict.
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
    outcomes: pd.Series, classes: Sequence[str], others: Sequence[str] = (NO_VERDICT,)
) -> tuple[NDArray[np.int64], tuple[str, ...]]:
    """Return the code of each verdict and the names: the classes, then what else was given."""
    given = outcomes.fillna(NO_VERDICT)
    beyond = [name for name in others if name not in classes and (given == name).any()]
    names = (*classes, *beyond)
    code = {name: k for k, name in enumerate(names)}
    return np.asarray(given.map(code), dtype=np.int64), names


def reviewed_traces(data: CalibrationData, sample: LabelledSample) -> tuple[ReviewedTrace, ...]:
    """Return each labelled trace with its labels, its verdict, and what it moves the rate by.

    `sample` are the labelled traces as the calibration weighs them.
    """
    return _reviewed(data, sample, range(len(data.labelled)))


def differing_traces(data: CalibrationData, sample: LabelledSample) -> tuple[ReviewedTrace, ...]:
    """Return the labelled traces on which not every human agrees with the verdict."""
    human, verdicts, k = sample.human, sample.verdicts, len(data.classes)
    agreed = np.where(verdicts < k, human[np.arange(len(human)), verdicts % k], 0.0)
    return _reviewed(data, sample, np.flatnonzero(agreed < ALL).tolist())


def by_influence(traces: Iterable[ReviewedTrace]) -> tuple[ReviewedTrace, ...]:
    """Return traces in the order of what they move the rate by, those that agree last."""

    # Rounded: which of several that move the same comes first is not left to rounding errors.
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
    found = []
    for row in rows:
        verdict, shares = int(sample.verdicts[row]), np.asarray(sample.human)[row]
        differs = verdict >= k or bool(shares[verdict] < ALL)
        difference = question = None
        if verdict < k and differs:
            difference = float(data.credit[verdict] - shares @ data.credit)
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
    """Return evidence, from its JSON where it is stored as such."""
    if isinstance(value, str):
        return tuple(Evidence(**part) for part in json.loads(value))
    return value if isinstance(value, tuple) else ()


def fingerprint(*, taxonomy: str, settings: dict[str, Any], **frames: pd.DataFrame) -> str:
    """Return the SHA-256 over inputs, taxonomy, settings and package version.

    Frames are hashed by value and in order: the same rows give the same fingerprint.
    """
    digest = hashlib.sha256()
    head = {"taxonomy": taxonomy, "settings": settings, "version": package_version()}
    digest.update(json.dumps(head, sort_keys=True, default=str).encode())
    _add(digest, frames)
    return digest.hexdigest()


def frames_digest(frames: Mapping[str, pd.DataFrame]) -> str:
    """Return the SHA-256 over the rows of frames, by value and in order."""
    digest = hashlib.sha256()
    _add(digest, frames)
    return digest.hexdigest()


def settings_digest(data: Mapping[str, Any]) -> str:
    """Return the SHA-256 over plain data."""
    return hashlib.sha256(json.dumps(data, sort_keys=True).encode()).hexdigest()


def package_version() -> str:
    """Return the version of this package."""
    return version("asr-calibration")


def _add(digest: "hashlib._Hash", frames: Mapping[str, pd.DataFrame]) -> None:
    for name in sorted(frames):
        digest.update(name.encode())
        hashes = pd.util.hash_pandas_object(frames[name], index=False).to_numpy(np.uint64)
        digest.update(hashes.tobytes())
