"""One call from labels and verdicts to the corrected ASR, with refusals and warnings."""

from collections.abc import Sequence

import numpy as np
from numpy.typing import ArrayLike

from calibration.correction.assemble import Settings, assemble
from calibration.correction.intervals import FloatArray, IntArray, validated_codes
from calibration.correction.production import (
    production_sums,
    production_sums_from_counts,
    validated_credit,
)
from calibration.correction.refusals import Notice
from calibration.correction.results import (
    HEADLINE,
    Calibration,
    Design,
    LabelledSample,
    NetGross,
)

__all__ = [
    "Calibration",
    "Design",
    "LabelledSample",
    "NetGross",
    "Notice",
    "calibrate",
    "calibrate_tables",
]


def calibrate(
    labelled: LabelledSample,
    *,
    production_verdicts: IntArray,
    production_penalties: FloatArray | None,
    credit: ArrayLike,
    design: Design,
    n_verdicts: int | None = None,
    verdict_names: Sequence[str] | None = None,
    pseudo_count: float = 0.5,
    open_disagreements: int = 0,
    refusals: Sequence[Notice] = (),
    confidence_level: float = 0.95,
    seed: int = 0,
) -> Calibration:
    """Estimate the ASR of production from verdicts and human labels, by every valid way.

    With design ``"production"`` the labels must be a probability sample of production and the
    headline is `post_stratified`; with ``"reference"`` the judge's error rates must carry over and
    the headline is `invert`. See those functions for what each assumes.

    Parameters
    ----------
    labelled : LabelledSample
        Traces with a human label and a verdict.
    production_verdicts : int array, shape (n_production,)
        Verdict codes of all judged production traces; for design ``"production"`` the labelled
        ones are among them.
    production_penalties : float array, shape (n_production,), or None
        Cost penalties in [0, 1]; None scores without cost.
    credit : array-like of float, shape (n_classes,)
        Credit of each class in [0, 1].
    design : {"production", "reference"}
        Where the labelled traces come from.
    n_verdicts : int, optional
        Number of verdict codes; the default is the larger of n_classes and the largest code + 1.
    verdict_names : sequence of str, optional
        Names for the notices, the classes first.
    pseudo_count : float, default 0.5
        As in `invert`.
    open_disagreements : int, default 0
        Labelled traces whose reviewers disagree and that nobody has adjudicated; above zero every
        estimate is provisional.
    refusals : sequence of Notice, optional
        Refusals the caller found, for instance a reference set judged by another judge.
    confidence_level : float, default 0.95
        Target coverage, strictly between 0 and 1.
    seed : int, default 0
        Of the estimators that draw random numbers.

    Returns
    -------
    Calibration
        Net and gross estimates, class shares, judge quality, headline, refusals and warnings.

    Raises
    ------
    ValueError
        If shapes differ, codes are out of range, or penalties are given for one side only.

    Examples
    --------
    >>> labelled = LabelledSample(
    ...     human=np.eye(2)[[0] * 18 + [1] * 2 + [0] * 2 + [1] * 18], verdicts=np.repeat([0, 1], 20)
    ... )
    >>> result = calibrate(
    ...     labelled, production_verdicts=np.repeat([0, 1], [800, 200]), production_penalties=None,
    ...     credit=[1.0, 0.0], design="production",
    ... )
    >>> result.headline, result.estimates["post_stratified"].net.value
    ('post_stratified', 0.74)
    """
    credits = validated_credit(credit)
    codes = validated_codes(labelled.verdicts, n_codes=n_verdicts, name="verdicts")
    produced = validated_codes(production_verdicts, n_codes=n_verdicts, name="production_verdicts")
    if n_verdicts is None:
        largest = max(int(codes.max(initial=-1)), int(produced.max(initial=-1)))
        n_verdicts = max(credits.size, largest + 1)
    if (production_penalties is None) != (labelled.penalties is None) and design == "production":
        raise ValueError("penalties must be given for both labelled and production traces, or none")
    settings = _settings(
        design,
        n_verdicts,
        verdict_names,
        pseudo_count,
        open_disagreements,
        refusals,
        confidence_level,
    )
    net = production_sums(produced, production_penalties, credit=credits, n_verdicts=n_verdicts)
    gross = production_sums(produced, None, credit=credits, n_verdicts=n_verdicts)
    return assemble(labelled, net, gross, settings)


def calibrate_tables(
    table: ArrayLike,
    production_counts: ArrayLike,
    *,
    credit: ArrayLike,
    design: Design,
    verdict_names: Sequence[str] | None = None,
    pseudo_count: float = 0.5,
    confidence_level: float = 0.95,
    seed: int = 0,
) -> Calibration:
    """Estimate the ASR of production from two tables, without costs.

    Parameters
    ----------
    table : array-like of int, shape (n_classes, n_verdicts)
        Labelled traces by human class and verdict.
    production_counts : array-like of int, shape (n_verdicts,)
        Judged production traces by verdict; for design ``"production"`` the labelled ones are
        among them.
    credit, design, verdict_names, pseudo_count, confidence_level, seed
        As in `calibrate`.

    Returns
    -------
    Calibration
        As `calibrate`; net and gross are equal.

    Raises
    ------
    ValueError
        If a table holds anything but counts or the shapes do not fit.

    Examples
    --------
    >>> result = calibrate_tables(
    ...     [[80, 20], [10, 90]], [450, 550], credit=[1.0, 0.0], design="reference", pseudo_count=0
    ... )
    >>> result.headline, result.estimates["inversion"].net.value
    ('inversion', 0.5)
    """
    cells = np.asarray(table)
    if cells.ndim != 2 or not np.issubdtype(cells.dtype, np.integer) or cells.min(initial=0) < 0:
        raise ValueError(f"table must be a two-dimensional table of counts, got {table!r}")
    n_classes, n_verdicts = int(cells.shape[0]), int(cells.shape[1])
    rows, columns = np.divmod(np.repeat(np.arange(cells.size), cells.ravel()), n_verdicts)
    production = production_sums_from_counts(production_counts, credit=credit)
    if (n_classes, n_verdicts) != (production.credit.size, production.counts.size):
        raise ValueError(
            f"table must have shape {(production.credit.size, production.counts.size)!r}, "
            f"got {cells.shape!r}"
        )
    settings = _settings(design, n_verdicts, verdict_names, pseudo_count, 0, (), confidence_level)
    labelled = LabelledSample(human=np.eye(n_classes)[rows], verdicts=columns)
    return assemble(labelled, production, production, settings)


def _settings(
    design: Design,
    n_verdicts: int,
    verdict_names: Sequence[str] | None,
    pseudo_count: float,
    open_disagreements: int,
    refusals: Sequence[Notice],
    confidence_level: float,
) -> Settings:
    if design not in HEADLINE:
        raise ValueError(f"design must be 'production' or 'reference', got {design!r}")
    names = verdict_names or [f"class {k}" for k in range(n_verdicts)]
    if len(names) < n_verdicts:
        raise ValueError(f"verdict_names must have {n_verdicts} entries, got {len(names)}")
    return Settings(
        design=design,
        names=tuple(names),
        pseudo_count=pseudo_count,
        open_disagreements=open_disagreements,
        refusals=tuple(refusals),
        confidence_level=confidence_level,
    )
