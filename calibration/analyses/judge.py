"""The judge against the humans: how far off it is, and the rate corrected for that."""

from collections import Counter, defaultdict
from collections.abc import Collection, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from calibration.analyses.calibrated import (
    Calibrated,
    Choices,
    HumanSide,
    range_if_skipped,
)
from calibration.analyses.calibration_checks import Objection, checked_claims, refused
from calibration.analyses.fingerprint import fingerprint
from calibration.analyses.judge_alpha import judge_alpha
from calibration.analyses.judged_population import (
    INPUT_COLUMNS,
    VERDICT_NAMES,
    JudgedPopulation,
    drawn_frame,
    human_frame,
    judged_population,
    labelled_rows,
    labelled_sample,
)
from calibration.analyses.labelled_batch import LabelledBatch, choose_batch, load_batch
from calibration.correction.calibrate import (
    ESTIMATORS,
    HEADLINE,
    Calibration,
    Design,
    LabelledSample,
    calibrate,
)
from calibration.errors import CalibrationError, InputError, MixedDataError
from calibration.estimates import Estimate, not_estimable
from calibration.records import OUTCOMES, SOURCE_JUDGE
from calibration.store import Store

CHOSEN = Objection(
    code="chosen",
    why="the labelled traces were chosen and not drawn at random: no rate follows from them",
    mend="label at least 100 traces drawn at random from production",
)


@dataclass(frozen=True, slots=True, kw_only=True)
class JudgeAnalysis(Calibrated):
    """A judge calibrated against the human labels of one batch of a store."""

    batch_id: str
    judge_id: str
    simulated: bool


def choose_judge(store: Store, judge_id: str | None) -> str:
    """Return the judge asked for, else the only one, else the grades of the files.

    Raises
    ------
    InputError
        If there is no such judge, or several and none was named.
    CalibrationError
        If the store holds no verdicts.
    """
    known = list(store.judge_frame()["judge_id"])
    if not known:
        raise CalibrationError(
            "the store holds no verdicts; import traces that carry a grade, or a verdict file with "
            "`asr verdicts FILE --judge NAME`"
        )
    if judge_id is not None:
        if judge_id in known or (judge_id == SOURCE_JUDGE and any(map(_is_source, known))):
            return judge_id
        raise InputError(f"no judge {judge_id!r}; there are {known}")
    if len(known) == 1:
        return str(known[0])
    if all(map(_is_source, known)):
        return SOURCE_JUDGE
    raise InputError(f"several judges have verdicts, name one with --judge: {known}")


def _is_source(judge_id: str) -> bool:
    return judge_id.startswith(SOURCE_JUDGE)


def analyse_judge(
    store: Store,
    batch_id: str | None = None,
    *,
    judge_id: str | None = None,
    design: Design = "production",
    pseudo_count: float = 0.5,
    confidence_level: float = 0.95,
    seed: int = 0,
) -> JudgeAnalysis:
    """Calibrate a judge on the labels of one batch.

    With design ``production`` the batch is a random sample of the traces the rate speaks
    about. With ``reference`` its traces are calibration material only: they are left out of
    production and the judge's error rates are assumed to be the same in both. Traces that were
    chosen and not drawn allow no rate: every estimator is refused, and what the judge does on
    these traces stands.
    """
    batch = choose_batch(store, batch_id, sample=True)
    loaded = load_batch(store, batch.batch_id, sample=False)
    chosen = choose_judge(store, judge_id)
    refuse_mixture(store, chosen, loaded)
    return judge_of(
        loaded,
        store.verdict_frame(chosen),
        judge_id=chosen,
        design=design,
        pseudo_count=pseudo_count,
        confidence_level=confidence_level,
        seed=seed,
    )


def judge_of(
    loaded: LabelledBatch,
    verdicts: pd.DataFrame,
    *,
    judge_id: str,
    design: Design,
    pseudo_count: float = 0.5,
    confidence_level: float = 0.95,
    seed: int = 0,
) -> JudgeAnalysis:
    """Calibrate a judge on a batch that is already read."""
    if loaded.labelled.empty:
        raise CalibrationError(
            f"batch {loaded.batch.batch_id!r} has no labels yet; label it on the Label page"
        )
    population = judged_population(loaded, verdicts)
    choices = Choices(
        design=design, pseudo_count=pseudo_count, confidence_level=confidence_level, seed=seed
    )
    sample = labelled_sample(loaded, population, loaded.human, design)
    result = _calibrate(loaded, population, sample, choices)
    names = VERDICT_NAMES[: _n_verdicts(population)]
    if not loaded.is_sample:
        counts = np.bincount(population.verdicts, minlength=len(names))
        result = refused(
            checked_claims(result, production_counts=counts, verdict_names=names, classes=OUTCOMES),
            [CHOSEN],
        )
    at = labelled_rows(loaded, population)
    return JudgeAnalysis(
        batch_id=loaded.batch.batch_id,
        judge_id=judge_id,
        design=design,
        classes=OUTCOMES,
        credit={name: loaded.taxonomy.credit[name] for name in OUTCOMES},
        verdict_names=names,
        calibration=result,
        alpha=judge_alpha(sample, n_verdicts=len(names), confidence_level=confidence_level),
        human=_human_side(loaded, population),
        disagreements=_disagreements(loaded, population.verdicts[at]),
        without_reviewer=_without_each_reviewer(loaded, population, choices)
        if loaded.is_sample
        else {},
        skipped=loaded.skipped,
        if_skipped=range_if_skipped(result, skipped=loaded.skipped, labelled=len(loaded.labelled)),
        seed=seed,
        simulated=loaded.simulated,
        fingerprint=fingerprint(
            taxonomy=loaded.taxonomy.fingerprint,
            settings={
                "kind": "judge",
                "judge": judge_id,
                **asdict(choices),
                "skipped": loaded.skipped,
            },
            labels=loaded.labels[["trace_id", "reviewer_id", "outcome"]],
            human=human_frame(loaded),
            drawn=drawn_frame(loaded),
            traces=loaded.traces[INPUT_COLUMNS],
            verdicts=verdicts[["trace_id", "outcome"]],
        ),
    )


def rate_at_credit(
    loaded: LabelledBatch,
    population: JudgedPopulation,
    judge: JudgeAnalysis,
    credit: Sequence[float],
) -> Estimate:
    """Return the headline of a calibration under another table of credit."""
    choices = Choices(
        design=judge.design,
        confidence_level=judge.calibration.confidence_level,
        seed=judge.seed,
    )
    sample = labelled_sample(loaded, population, loaded.human, judge.design)
    alone = (HEADLINE[judge.design],)
    found = _calibrate(loaded, population, sample, choices, alone, credit).headline_estimate
    if found is None:
        return not_estimable("the estimator is refused at these weights", method=alone[0])
    return found.net


def _calibrate(
    loaded: LabelledBatch,
    population: JudgedPopulation,
    sample: LabelledSample,
    choices: Choices,
    estimators: Collection[str] = ESTIMATORS,
    credit: Sequence[float] | None = None,
) -> Calibration:
    counted = np.ones(len(population.verdicts), dtype=bool)
    if choices.design == "reference":
        counted[labelled_rows(loaded, population)] = False
    return calibrate(
        sample,
        production_verdicts=population.verdicts[counted],
        production_penalties=population.penalties[counted],
        credit=credit or tuple(loaded.taxonomy.credit[name] for name in OUTCOMES),
        n_verdicts=_n_verdicts(population),
        verdict_names=VERDICT_NAMES,
        open_disagreements=loaded.open_disagreements,
        estimators=estimators,
        **asdict(choices),
    )


def _human_side(loaded: LabelledBatch, population: JudgedPopulation) -> HumanSide:
    per_trace = loaded.labels.groupby("trace_id").size()
    said = [population.verdicts[population.row[trace_id]] for trace_id in loaded.skipped_ids]
    return HumanSide(
        n_labels=len(loaded.labels),
        reviewers=tuple(loaded.reviewers),
        n_shared=int((per_trace >= 2).sum()),
        n_adjudicated=int(loaded.adjudicated.sum()),
        n_open=loaded.open_disagreements,
        skipped_by_verdict=dict(Counter(VERDICT_NAMES[code] for code in said)),
    )


def _n_verdicts(population: JudgedPopulation) -> int:
    return len(OUTCOMES) + int((population.verdicts == len(OUTCOMES)).any())


def _without_each_reviewer(
    loaded: LabelledBatch, population: JudgedPopulation, choices: Choices
) -> dict[str, float | None]:
    """Return the headline with each reviewer's labels left out; adjudicated traces stay."""
    codes = loaded.codes()
    if codes.shape[1] < 2:
        return {}
    one_hot = np.eye(len(OUTCOMES))
    found: dict[str, float | None] = {}
    for column, reviewer in enumerate(loaded.reviewers):
        others = np.delete(codes, column, axis=1)
        votes = np.where((others >= 0)[..., None], one_hot[others], 0.0).sum(axis=1)
        total = votes.sum(axis=1, keepdims=True)
        human = np.divide(votes, total, out=np.zeros_like(votes), where=total > 0)
        human[loaded.adjudicated] = loaded.human[loaded.adjudicated]
        sample = labelled_sample(loaded, population, human, choices.design)
        alone = (HEADLINE[choices.design],)
        headline = _calibrate(loaded, population, sample, choices, alone).headline_estimate
        found[reviewer] = None if headline is None else headline.net.value
    return found


def _disagreements(
    loaded: LabelledBatch, verdicts: NDArray[np.int64]
) -> tuple[dict[str, Any], ...]:
    """List the labelled traces on which not every human agrees with the verdict."""
    said: defaultdict[str, list[tuple[str, str, object]]] = defaultdict(list)
    columns = ["trace_id", "reviewer_id", "outcome", "rationale"]
    for trace_id, *label in zip(*(loaded.labels[name].tolist() for name in columns), strict=True):
        said[trace_id].append((label[0], label[1], label[2]))
    listed = []
    for row, trace_id in enumerate(loaded.labelled["trace_id"].tolist()):
        verdict = int(verdicts[row])
        if verdict < len(OUTCOMES) and loaded.human[row, verdict] == 1:
            continue
        listed.append(
            {
                "trace_id": trace_id,
                "verdict": VERDICT_NAMES[verdict],
                "labels": {reviewer: outcome for reviewer, outcome, _ in said[trace_id]},
                "rationales": {
                    reviewer: text for reviewer, _, text in said[trace_id] if isinstance(text, str)
                },
            }
        )
    return tuple(listed)


def refuse_mixture(store: Store, judge_id: str, loaded: LabelledBatch) -> None:
    """Refuse a simulated judge for real labels, and the other way round.

    Raises
    ------
    MixedDataError
        If one is simulated and the other is not.
    """
    judges = store.judge_frame()
    used = judges[
        judges["judge_id"].map(_is_source)
        if judge_id == SOURCE_JUDGE
        else judges["judge_id"] == judge_id
    ]
    if (used["simulated"] != loaded.simulated).any():
        raise MixedDataError(
            f"judge {judge_id!r} and the labels must be both simulated or both real"
        )
