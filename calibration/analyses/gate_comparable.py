"""The part of a result that a later run is compared with, from the runs."""

import hashlib
import json

import numpy as np
from numpy.typing import NDArray

from calibration.analyses.gate_baseline import Comparable, tree_fingerprint
from calibration.analyses.gate_changes import MOST_CATEGORIES, categories_of, totals
from calibration.analyses.gate_rates import ceilings_of, pass_rate, rate, run_scores, subset
from calibration.analyses.gate_runs import FloatArray, Runs
from calibration.estimates import Estimate
from calibration.gates.settings import GateFile, Setting, setting
from calibration.metrics.pass_at_k import Trials
from calibration.taxonomy import Taxonomy, default_taxonomy

PASS_AT_1 = setting("pass_at_1", "must", {"threshold": 0.0})


def comparable_of(
    runs: Runs,
    settings: GateFile,
    taxonomy: Taxonomy,
    ceilings: FloatArray,
    asr: Estimate,
    trials: Trials,
    rng: np.random.Generator,
) -> Comparable:
    """Return what a later run can be compared with."""
    level = settings.confidence_level
    ours = default_taxonomy()
    default_ceilings = ceilings_of(runs, ours, {})
    forked = taxonomy_of(taxonomy, settings) != ours.fingerprint
    asr_default = asr
    if forked:
        asr_default = rate(runs, ours, default_ceilings, rng=rng, confidence_level=level).asr
    categories = np.array(categories_of(runs))
    named = [name for name in np.unique(categories).tolist() if name]
    return Comparable(
        taxonomy=taxonomy_of(taxonomy, settings),
        tree=tree_fingerprint(taxonomy),
        partial_plus_passes=settings.partial_plus_passes,
        asr=asr,
        asr_default=asr_default,
        pass_at_1=_pass_at_1(runs, trials, PASS_AT_1, rng, level),
        by_category={
            name: _pass_at_1_of(runs, trials, categories == name, rng, level)
            for name in (named if len(named) <= MOST_CATEGORIES else ())
        },
        tasks=totals(
            runs,
            trials,
            run_scores(runs, taxonomy, ceilings),
            run_scores(runs, ours, default_ceilings),
        ),
    )


def _pass_at_1(
    runs: Runs, trials: Trials, gate: Setting, rng: np.random.Generator, level: float
) -> Estimate:
    found = pass_rate(runs, trials, gate, rng=rng, confidence_level=level)
    if isinstance(found, str):  # no tier is asked for, so nothing can be missing
        raise TypeError(found)
    return found


def _pass_at_1_of(
    runs: Runs, trials: Trials, tasks: NDArray[np.bool_], rng: np.random.Generator, level: float
) -> Estimate:
    part = subset(runs, tasks[runs.tasks])
    inside = Trials(tasks=trials.tasks[tasks], n=trials.n[tasks], c=trials.c[tasks])
    return _pass_at_1(part, inside, PASS_AT_1, rng, level)


def taxonomy_of(taxonomy: Taxonomy, settings: GateFile) -> str:
    """Return the fingerprint of the taxonomy with the ceilings of the gate file in it."""
    if not settings.ceilings:
        return taxonomy.fingerprint
    text = json.dumps([taxonomy.fingerprint, dict(settings.ceilings)], sort_keys=True)
    return hashlib.sha256(text.encode()).hexdigest()
