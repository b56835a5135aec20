"""One labelled sample against one production, and the choices of the calibration."""

from dataclasses import dataclass

import numpy as np

from calibration.correction.confusion import Confusion
from calibration.correction.intervals import FloatArray
from calibration.correction.production import ProductionSums
from calibration.correction.refusals import Notice
from calibration.correction.results import ESTIMATORS, HEADLINE, Design, LabelledSample


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """Choices of a calibration that every step needs.

    Raises
    ------
    ValueError
        If the design or an estimator is unknown.
    """

    design: Design
    names: tuple[str, ...]
    pseudo_count: float
    prior: float
    seed: int
    open_disagreements: int
    refusals: tuple[Notice, ...]
    estimators: frozenset[str]
    force: bool
    confidence_level: float

    def __post_init__(self) -> None:
        if self.design not in HEADLINE:
            raise ValueError(f"design must be 'production' or 'reference', got {self.design!r}")
        if unknown := self.estimators - set(ESTIMATORS):
            raise ValueError(f"estimators must be among {ESTIMATORS}, got {sorted(unknown)!r}")


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Case:
    """One labelled sample against one production, net or gross."""

    labelled: LabelledSample
    human: FloatArray
    crossed: Confusion
    production: ProductionSums
    settings: Settings
    net: bool

    @property
    def counts(self) -> FloatArray:
        """Production counts; labels of a reference set, no part of them, are added.

        Post-stratification is refused for a reference set; only diagnostics are read from it.
        """
        if self.settings.design == "production":
            return self.production.counts
        added = np.bincount(self.labelled.verdicts, minlength=self.production.counts.size)
        counts: FloatArray = self.production.counts + added
        return counts

    @property
    def verdict_values(self) -> FloatArray:
        """The credit each verdict would mean, NaN for verdicts that are no class."""
        values = np.full(self.production.counts.size, np.nan)
        values[: self.production.credit.size] = self.production.credit
        return values

    @property
    def unscored(self) -> bool:
        """Whether the labelled traces lack the costs that production has."""
        return self.net and self.labelled.penalties is None and self.production.has_costs

    def scores(self) -> FloatArray:
        """Return the score of each labelled trace, with its own cost when net."""
        credit = self.production.credit
        if not self.net or self.labelled.penalties is None:
            return self.human @ credit
        penalty = np.asarray(self.labelled.penalties, dtype=np.float64)
        n = self.human.shape[0]
        if penalty.shape != (n,):
            raise ValueError(f"penalties must have shape ({n},), got {penalty.shape!r}")
        if penalty.size and not (penalty.min() >= 0 and penalty.max() <= 1):
            raise ValueError(
                f"penalties must be in [0, 1], got {penalty.min()!r} to {penalty.max()!r}"
            )
        kept: FloatArray = (self.human * np.maximum(0.0, credit - penalty[:, None])).sum(axis=1)
        return kept
