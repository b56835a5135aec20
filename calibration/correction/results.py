"""What goes into a calibration and what comes out of it."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from calibration.correction.confusion import Confusion
from calibration.correction.intervals import FloatArray, IntArray
from calibration.correction.inversion import Inversion
from calibration.correction.post_stratified import PostStratified
from calibration.correction.production import ProductionSums
from calibration.correction.quality import JudgeQuality
from calibration.correction.refusals import Notice
from calibration.estimates import Estimate

Design = Literal["production", "reference"]
HEADLINE: Mapping[str, str] = {"production": "post_stratified", "reference": "inversion"}
ESTIMATORS = (
    "post_stratified",
    "ppi_plus_plus",
    "inversion",
    "bayesian",
    "bootstrap",
    "lee",
    "human_only",
    "judge_raw",
)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class LabelledSample:
    """Traces that have both a human label and a verdict.

    Parameters
    ----------
    human : float array, shape (n, n_classes)
        Class shares, rows summing to one: one-hot for an adjudicated or single label, else the
        mean over the reviewers.
    verdicts : int array, shape (n,)
        Verdict codes; codes from n_classes up are verdicts that are no class.
    penalties : float array, shape (n,), optional
        Cost penalty of each trace in [0, 1]; None scores without cost.
    weights : float array, shape (n,), optional
        Inverse inclusion probabilities.
    clusters : array, shape (n,), optional
        Task of each trace, when tasks repeat.
    """

    human: FloatArray
    verdicts: IntArray
    penalties: FloatArray | None = None
    weights: FloatArray | None = None
    clusters: NDArray[np.generic] | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class NetGross:
    """An estimate with cost penalties (net) and without (gross)."""

    net: Estimate
    gross: Estimate


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Calibration:
    """ASR corrected for judge error, and everything needed to judge the correction.

    Parameters
    ----------
    design : str
        ``"production"``: the labels are a probability sample of production. ``"reference"``: they
        are another set of traces.
    headline : str or None
        Estimator of the headline, None when it is refused.
    estimates : mapping of str to NetGross
        The names in `ESTIMATORS` (``lee`` for two classes only); refused ones say why and have no
        value unless it was forced.
    class_shares : mapping of str to tuple of Estimate
        Class shares of production by the same estimators.
    judge : JudgeQuality
        Accuracy, kappa, recall and precision on the labelled traces.
    inversion, inversion_gross : Inversion
        Diagnostics of the inversion, filled also when it is refused.
    post_stratification, post_stratification_gross : PostStratified
        Diagnostics of the post-stratification, filled also when it is refused.
    production, production_gross : ProductionSums
        What the estimators saw of production.
    gain : Estimate or None
        A label with the judge is worth as many without, see `effective_gain` (net); refused where
        post-stratification is, None where the labels are no sample of production.
    power_tuning : float or None
        How much of the verdicts `ppi_plus_plus` used (net), 0 to 1; None when it was not run.
    posterior_size : float or None
        Effective number of draws behind `bayesian` (net); None when it was not run.
    confusion : Confusion
        Labelled traces by human class and verdict.
    n_labels, n_production : int
        Labelled traces; judged production traces.
    refusals, warnings : tuple of Notice
        Why estimators may not be used, and what a reader must be told.
    """

    design: Design
    headline: str | None
    estimates: Mapping[str, NetGross]
    class_shares: Mapping[str, tuple[Estimate, ...]]
    judge: JudgeQuality
    inversion: Inversion
    inversion_gross: Inversion
    post_stratification: PostStratified
    post_stratification_gross: PostStratified
    production: ProductionSums
    production_gross: ProductionSums
    gain: Estimate | None
    power_tuning: float | None
    posterior_size: float | None
    confusion: Confusion
    n_labels: int
    n_production: int
    refusals: tuple[Notice, ...]
    warnings: tuple[Notice, ...]
    confidence_level: float

    @property
    def headline_estimate(self) -> NetGross | None:
        """The estimate of the headline, or None."""
        return None if self.headline is None else self.estimates[self.headline]
