"""How far off a judge of the store is, and where."""

from dataclasses import dataclass, fields

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from calibration.agreement.recoding import parting_questions
from calibration.analyses.agreement import planned_codes
from calibration.analyses.both_sides import BothSides, group_names
from calibration.analyses.diagnosing import Diagnostics, Leniency, diagnose
from calibration.analyses.fingerprint import fingerprint
from calibration.analyses.judge_disagreements import disagreements, heard_in_store
from calibration.analyses.judged import Judged, read_judged
from calibration.analyses.judged_population import (
    INPUT_COLUMNS,
    VERDICT_NAMES,
    drawn_frame,
    human_frame,
)
from calibration.correction.calibrate import Design
from calibration.correction.retest import MISSING
from calibration.records import OUTCOMES
from calibration.store import Store

__all__ = ["JudgeDiagnostics", "Leniency", "diagnose_judge", "diagnose_judged"]


@dataclass(frozen=True, slots=True, kw_only=True)
class JudgeDiagnostics(Diagnostics):
    """What a calibrated rate does not show of a judge of the store."""

    batch_id: str
    judge_id: str
    simulated: bool


def diagnose_judge(
    store: Store,
    batch_id: str | None = None,
    *,
    judge_id: str | None = None,
    design: Design = "production",
    judge_family: str | None = None,
    confidence_level: float = 0.95,
) -> JudgeDiagnostics:
    """Compare a judge with the humans on the labelled traces of a batch.

    `judge_family` is a word that the names of models of the judge's own family hold, for instance
    ``gpt``; without it self-preference is left out and says so.
    """
    judged = read_judged(store, batch_id, judge_id, design=design, sample=False)
    return diagnose_judged(
        store, judged, judge_family=judge_family, confidence_level=confidence_level
    )


def diagnose_judged(
    store: Store,
    judged: Judged,
    *,
    judge_family: str | None = None,
    confidence_level: float = 0.95,
) -> JudgeDiagnostics:
    """Compare a judge with the humans on a batch that is already read."""
    loaded = judged.loaded
    samples = store.verdict_samples(judged.judge_id)
    sides = sides_of_store(store, judged, samples)
    found = diagnose(
        sides,
        taxonomy=loaded.taxonomy,
        disagreements=disagreements(
            sides,
            heard_in_store(loaded, samples, sides.groups),
            judged=np.bincount(judged.population.verdicts, minlength=judged.n_verdicts),
            parting=parting_questions(loaded.taxonomy.paths(OUTCOMES)),
        ),
        samples=_samples(judged, samples),
        judge_family=judge_family,
        fingerprint=_fingerprint(judged, samples, judge_family, confidence_level),
        confidence_level=confidence_level,
    )
    return JudgeDiagnostics(
        **{field.name: getattr(found, field.name) for field in fields(found)},
        batch_id=loaded.batch.batch_id,
        judge_id=judged.judge_id,
        simulated=loaded.simulated,
    )


def sides_of_store(store: Store, judged: Judged, samples: pd.DataFrame) -> BothSides:
    """Return both sides of the labelled traces of a batch, and what the store says of them.

    Judge and humans are compared with each other on the traces that the plan gave to two or more
    reviewers.
    """
    labelled = judged.loaded.labelled
    texts = {t.trace_id: t.response or "" for t in store.for_review(labelled["trace_id"].tolist())}
    planned, codes, _ = planned_codes(judged.loaded)
    rows = planned["trace_id"].map(judged.population.row).to_numpy(dtype=np.int64)
    first = samples[samples["sample"] == 0].drop_duplicates("trace_id")
    grades = (
        labelled["trace_id"]
        .map(first.set_index("trace_id")["grade"])
        .fillna(0)
        .to_numpy(dtype=np.int64)
    )
    return BothSides(
        classes=OUTCOMES,
        verdict_names=VERDICT_NAMES[: judged.n_verdicts],
        credit=judged.credit,
        sample=judged.sample,
        groups={by: group_names(labelled, by) for by in ("agent", "workflow", "model")},
        sizes={
            "response": np.array([len(texts[n]) for n in labelled["trace_id"]], dtype=np.float64),
            "steps": labelled["n_steps"].to_numpy(dtype=np.float64),
        },
        panel=codes,
        panel_verdicts=judged.population.verdicts[rows],
        grades=grades if grades.any() else None,
    )


def _samples(judged: Judged, samples: pd.DataFrame) -> NDArray[np.int64]:
    known = samples[samples["trace_id"].isin(judged.population.row)]
    codes = known["outcome"].map({name: k for k, name in enumerate(VERDICT_NAMES)})
    wide = known.assign(code=codes).pivot_table(
        index="trace_id", columns="sample", values="code", aggfunc="first"
    )
    return wide.fillna(MISSING).to_numpy(dtype=np.int64)


def _fingerprint(
    judged: Judged, samples: pd.DataFrame, judge_family: str | None, confidence_level: float
) -> str:
    loaded = judged.loaded
    return fingerprint(
        taxonomy=loaded.taxonomy.fingerprint,
        settings={
            "kind": "judge diagnostics",
            "judge": judged.judge_id,
            "family": judge_family,
            "design": judged.design,
            "skipped": loaded.skipped,
            "confidence_level": confidence_level,
        },
        labels=loaded.labels[["trace_id", "reviewer_id", "outcome"]],
        human=human_frame(loaded),
        drawn=drawn_frame(loaded),
        traces=loaded.traces[[*INPUT_COLUMNS, "model", "agent_version", "n_steps"]],
        verdicts=samples[["trace_id", "sample", "outcome"]],
    )
