"""What labels say of the judges of a store: scores, two judges side by side, certificates."""

import json
from collections import Counter
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from datetime import UTC, datetime

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from calibration.analyses.evidence.from_store import load_batch
from calibration.analyses.judging.runs import Delivery, Write, parts
from calibration.analyses.judging.versions import EXAM_A, EXAM_B, practice_ids
from calibration.errors import CalibrationError, InputError
from calibration.judging.baseline import NAME as BASELINE
from calibration.judging.baseline import Baseline, PracticeExample, fit_baseline
from calibration.judging.requests import SampleVerdict
from calibration.judging.selection import (
    AGREEMENT,
    DEVELOPMENT,
    ChosenVersion,
    JudgeCertificate,
    Minimum,
    PairedComparison,
    best_version,
    certify_judge,
    paired_comparison,
    split_of,
)
from calibration.records import NO_VERDICT
from calibration.statistics.contingency import QualityAgainstKey, quality_against_key
from calibration.store import Store
from calibration.store.judges import StoredLook
from calibration.taxonomy import Taxonomy
from calibration.text import names_there
from reference_dataset.team import team_reference

NO_EXAM = "no judge has judged {form}: `asr judge run NAME --form {form}` does"

Codes = NDArray[np.int64]


@dataclass(frozen=True, slots=True, kw_only=True)
class KeyedTraces:
    """Labelled traces; of verdicts on them `NO_VERDICT` has the code after the classes.

    `source` names a form of the reference set, or a batch. `left_out` are labelled traces on which
    reviewers differ, without an adjudication.
    """

    source: str
    trace_ids: tuple[str, ...]
    human: Codes
    left_out: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Score:
    """A judge on the labels of an examination form."""

    judge: str
    quality: QualityAgainstKey


@dataclass(frozen=True, slots=True, kw_only=True)
class Scores:
    """All judges of a store on exam A, on the traces that all of them judged.

    `best` is the judge with the best agreement, with that corrected for choosing among all;
    `majority` the most frequent class of the practice labels, which a judge that reads nothing
    gives. `tried` are the judges that were compared, `n` their common traces.
    """

    form: str
    classes: tuple[str, ...]
    n: int
    tried: tuple[str, ...]
    scores: tuple[Score, ...]
    majority: Score
    best: ChosenVersion


@dataclass(frozen=True, slots=True, kw_only=True)
class Flip:
    """A trace on which two judges differ, with their reasons.

    `question` is the first one that they answer differently; None if one gave no verdict.
    """

    trace_id: str
    human: str
    first: str
    second: str
    question: str | None
    first_reason: str | None
    second_reason: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Compared:
    """Two judges on the same labelled traces.

    `by_class` has, for each class of the humans, the number of traces and those on which the first
    and the second judge agrees; `by_question` counts flips by their question.
    """

    first: str
    second: str
    source: str
    n: int
    left_out: int
    paired: PairedComparison
    by_class: tuple[tuple[str, int, int, int], ...]
    by_question: tuple[tuple[str, int], ...]
    flips: tuple[Flip, ...]


def labelled_form(store: Store, form: str) -> KeyedTraces:
    """Return the traces of an examination form with their labels, the team's own among them."""
    taxonomy = store.taxonomy()
    dataset = team_reference(store.path, taxonomy, to_examine=True)
    names = [name for name in dataset.forms if name.rpartition("/")[2] == form]
    ids = [i for name in names for i in dataset.forms[name] if i in dataset.labels]
    code = {name: k for k, name in enumerate(taxonomy.names)}
    ids = [i for i in ids if dataset.labels[i].outcome in code]
    human = np.array([code[dataset.labels[i].outcome] for i in ids], dtype=np.int64)
    return KeyedTraces(source=form, trace_ids=tuple(ids), human=human)


def development_labels(store: Store, batch_id: str) -> KeyedTraces:
    """Return the labels of a batch that may choose a version: those of its development tasks.

    The traces have one class, adjudicated or undisputed.
    """
    data = load_batch(store, batch_id, sample=False)
    part = data.labelled["task_key"].map(lambda task: split_of(str(task))) == DEVELOPMENT
    certain = np.asarray(part & (data.human.max(axis=1, initial=0) == 1))
    ids = data.labelled["trace_id"].to_numpy()[certain]
    return KeyedTraces(
        source=batch_id,
        trace_ids=tuple(map(str, ids)),
        human=data.human[certain].argmax(axis=1).astype(np.int64),
        left_out=int((part & ~certain).sum()),
    )


def _verdicts(store: Store, judge: str, taxonomy: Taxonomy) -> "pd.Series[int]":
    """Return the codes of a judge's verdicts by trace; that after the classes is no verdict."""
    frame = store.verdict_frame(judge)
    code = {name: k for k, name in enumerate((*taxonomy.names, NO_VERDICT))}
    return pd.Series(frame["outcome"].map(code).to_numpy(), index=frame["trace_id"])


def _on(
    labelled: KeyedTraces, verdicts: Sequence["pd.Series[int]"]
) -> tuple[NDArray[np.bool_], Codes]:
    """Return which traces all judges judged, and the verdicts on them, a column each."""
    found = pd.DataFrame({k: of.reindex(labelled.trace_ids) for k, of in enumerate(verdicts)})
    judged = found.notna().all(axis=1).to_numpy()
    return judged, found[judged].to_numpy(dtype=np.int64)


def _quality(human: Codes, verdicts: Codes, n_classes: int) -> QualityAgainstKey:
    table = np.zeros((n_classes, n_classes + 1), dtype=np.int64)
    np.add.at(table, (human, verdicts), 1)
    return quality_against_key(table)


def judges_with(store: Store, labelled: KeyedTraces, *, fewest: int = 1) -> list[str]:
    """Return the judges with verdicts on at least so many of these traces."""
    wanted = set(labelled.trace_ids)
    return [
        judge
        for judge in map(str, store.judge_frame()["judge_id"])
        if len(wanted & set(store.verdict_frame(judge)["trace_id"])) >= fewest
    ]


def scores(store: Store, *, rng: np.random.Generator) -> Scores:
    """Return the judges of a store on exam A, and the best of them corrected for the choice.

    A judge with verdicts on less than half of the form is left out: its run has not come far.

    Raises
    ------
    CalibrationError
        If no judge has judged exam A.
    """
    taxonomy = store.taxonomy()
    labelled = labelled_form(store, EXAM_A)
    tried = judges_with(store, labelled, fewest=len(labelled.trace_ids) // 2)
    if not tried:
        raise CalibrationError(NO_EXAM.format(form=EXAM_A))
    judged, verdicts = _on(labelled, [_verdicts(store, judge, taxonomy) for judge in tried])
    human, k = labelled.human[judged], len(taxonomy.names)
    qualities = [_quality(human, verdicts[:, c], k) for c in range(len(tried))]
    most = _majority(store, taxonomy)
    return Scores(
        form=EXAM_A,
        classes=taxonomy.names,
        n=len(human),
        tried=tuple(tried),
        scores=tuple(
            Score(judge=judge, quality=quality)
            for judge, quality in zip(tried, qualities, strict=True)
        ),
        majority=Score(
            judge=taxonomy.names[most], quality=_quality(human, np.full(len(human), most), k)
        ),
        best=best_version(human, verdicts, n_classes=k, rng=rng),
    )


def compare(store: Store, first: str, second: str, *, batch_id: str | None = None) -> Compared:
    """Compare two judges on the labelled traces that both judged.

    Parameters
    ----------
    store : Store
    first, second : str
        Their names.
    batch_id : str, optional
        Compare on the labels of its development tasks, which from then on correct the rate of no
        judge of these lines; the store must be open for writing. Without it on those of exam A.

    Raises
    ------
    InputError
        If a judge is not there, or both are the same.
    CalibrationError
        If there is no labelled trace that both judged.
    """
    taxonomy = store.taxonomy()
    known = list(map(str, store.judge_frame()["judge_id"]))
    for judge in (first, second):
        if judge not in known:
            raise InputError(f"no judge {judge!r:.80} has verdicts; {names_there(judge, known)}")
    if first == second:
        raise InputError(f"name two judges, got {first!r:.80} twice")
    labelled = (
        labelled_form(store, EXAM_A) if batch_id is None else development_labels(store, batch_id)
    )
    judged, verdicts = _on(labelled, [_verdicts(store, j, taxonomy) for j in (first, second)])
    human, k = labelled.human[judged], len(taxonomy.names)
    if not len(human):
        raise CalibrationError(
            f"no labelled trace of {labelled.source} was judged by both; let both judge it"
        )
    if batch_id is not None:
        store.spend_labels((first, second), batch_id)  # before anybody reads the result
    ids = [i for i, there in zip(labelled.trace_ids, judged, strict=True) if there]
    flips = _flips(store, taxonomy, ids, human, verdicts, (first, second))
    right = verdicts == human[:, None]
    counted = Counter(flip.question or "no verdict of one of them" for flip in flips)
    return Compared(
        first=first,
        second=second,
        source=labelled.source,
        n=len(human),
        left_out=labelled.left_out,
        paired=paired_comparison(human, verdicts[:, 0], verdicts[:, 1], n_classes=k),
        by_class=tuple(
            (name, int(mine.sum()), int(right[mine, 0].sum()), int(right[mine, 1].sum()))
            for code, name in enumerate(taxonomy.names)
            if (mine := human == code).any()
        ),
        by_question=tuple(sorted(counted.items(), key=lambda item: (-item[1], item[0]))),
        flips=flips,
    )


def _flips(
    store: Store,
    taxonomy: Taxonomy,
    ids: Sequence[str],
    human: Codes,
    verdicts: Codes,
    judges: tuple[str, str],
) -> tuple[Flip, ...]:
    names = (*taxonomy.names, NO_VERDICT)
    reasons = [_reasons(store, judge) for judge in judges]
    return tuple(
        Flip(
            trace_id=ids[row],
            human=names[human[row]],
            first=names[one],
            second=names[other],
            question=_first_question(taxonomy, names[one], names[other]),
            first_reason=reasons[0].get(ids[row]),
            second_reason=reasons[1].get(ids[row]),
        )
        for row, (one, other) in enumerate(verdicts.tolist())
        if one != other
    )


def _reasons(store: Store, judge: str) -> dict[str, str | None]:
    frame = store.verdict_samples(judge)
    first = frame[frame["sample"] == 0]
    kept = first["reason"].where(first["reason"].notna(), None)
    return dict(zip(first["trace_id"], kept, strict=True))


def _first_question(taxonomy: Taxonomy, one: str, other: str) -> str | None:
    """Return the first question on which the ways to two classes part."""
    if NO_VERDICT in (one, other):
        return None
    left, right = taxonomy.answers_for(one), taxonomy.answers_for(other)
    return next((node for node in left if right.get(node) != left[node]), None)


# ---- baseline


def baseline_of(store: Store) -> Baseline:
    """Return the baseline judge of a store: a regression fitted on the practice form.

    Raises
    ------
    InputError
        As `fit_baseline`.
    """
    taxonomy = store.taxonomy()
    dataset = team_reference(store.path, taxonomy)
    examples = [
        PracticeExample(
            trace=dataset.traces[i].for_review(),
            task_key=dataset.traces[i].task_key,
            outcome=dataset.labels[i].outcome,
        )
        for i in practice_ids(dataset)
    ]
    return fit_baseline(examples, taxonomy)


def run_baseline(store: Store, trace_ids: Sequence[str], *, write: Write) -> tuple[str, int]:
    """Judge traces with the baseline; return its name and how many verdicts are stored.

    Its name holds its identity, so that another fit, as after a practice label was changed, is
    another judge.
    """
    fitted = baseline_of(store)
    name = f"{BASELINE}-{fitted.judge_id[:8]}"
    delivery = Delivery(name, BASELINE, 1, write)
    for ids in parts(trace_ids):
        delivery(
            [
                SampleVerdict(trace_id=v.trace_id, sample=0, outcome=v.outcome)
                for v in fitted.predict(store.for_review(list(ids)))
            ]
        )
    return name, delivery.stored


def _majority(store: Store, taxonomy: Taxonomy) -> int:
    """Return the most frequent class of the practice labels."""
    dataset = team_reference(store.path, taxonomy)
    counts = Counter(dataset.labels[i].outcome for i in practice_ids(dataset))
    return max(range(len(taxonomy.names)), key=lambda k: counts[taxonomy.names[k]])


# ---- locked labels


@dataclass(frozen=True, slots=True, kw_only=True)
class CertifiedJudge:
    """A look at exam B: what was found, and the looks before it."""

    judge: str
    form: str
    classes: tuple[str, ...]
    n: int
    missing: int
    found: JudgeCertificate
    earlier: tuple[StoredLook, ...]


def looks(store: Store, judge: str) -> list[StoredLook]:
    """Return the looks at exam B of a judge's line, oldest first."""
    return store.looks(judge, EXAM_B)


def certify(
    store: Store, judge: str, *, minimum: float, measure: str = AGREEMENT
) -> CertifiedJudge:
    """Look at exam B: say whether a judge reaches a minimum that was stated before.

    The look is stored with who and when before its result is returned. The traces of exam B must
    have been judged; a trace without a verdict counts as wrong.

    Parameters
    ----------
    store : Store
    judge : str
    minimum : float
        Of the lower limit, in (0, 1).
    measure : {"agreement", "kappa"}

    Raises
    ------
    CalibrationError
        If less than half of exam B was judged by this judge, or exam B not by the baseline.
    InputError
        If the minimum is no share.
    """
    if not 0 < minimum < 1:
        raise InputError(f"the minimum must be between 0 and 1, got {minimum!r}")
    stated = Minimum(value=minimum, stated_at=datetime.now(UTC), measure=measure)
    taxonomy = store.taxonomy()
    labelled, k = labelled_form(store, EXAM_B), len(taxonomy.names)
    verdicts = _verdicts(store, judge, taxonomy).reindex(labelled.trace_ids)
    missing = int(verdicts.isna().sum())
    if missing > len(labelled.trace_ids) // 2:
        raise CalibrationError(
            f"judge {judge} has judged {len(labelled.trace_ids) - missing} of "
            f"{len(labelled.trace_ids)} traces of exam B: `asr judge run {judge} --form exam_b`"
        )
    floor = [name for name in judges_with(store, labelled, fewest=len(labelled.trace_ids))
             if name.startswith(f"{BASELINE}-")]  # fmt: skip
    if not floor:
        raise CalibrationError(
            "the baseline is the floor beside every judge: `asr judge baseline --form exam_b` "
            "judges exam B with it, at no cost"
        )
    baseline = _verdicts(store, floor[-1], taxonomy).reindex(labelled.trace_ids)
    earlier = looks(store, judge)
    found = certify_judge(
        stated,
        labelled.human,
        np.asarray(verdicts.fillna(k), dtype=np.int64),
        baseline=np.asarray(baseline, dtype=np.int64),
        majority=_majority(store, taxonomy),
        n_classes=k,
        looked_at=datetime.now(UTC),
        number=len(earlier) + 1,
    )
    body = {"status": found.status, "why": found.why, "minimum": minimum, "measure": measure,
            "agreement": asdict(found.quality.accuracy), "n": found.quality.n}  # fmt: skip
    store.add_look(judge, EXAM_B, found.look.number, json.dumps(body, default=str))
    return CertifiedJudge(
        judge=judge, form=EXAM_B, classes=taxonomy.names, n=len(labelled.trace_ids),
        missing=missing, found=found,
        earlier=tuple(earlier),
    )  # fmt: skip
