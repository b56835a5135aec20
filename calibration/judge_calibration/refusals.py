"""When a correction may not be used, and what a reader must be told: decisions as data."""

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from calibration.judge_calibration.confusion_inversion import Inversion
from calibration.judge_calibration.post_stratification import Strata
from calibration.statistics.estimate import Estimate, FloatArray

SIGMA_MIN = 0.2

YOUDEN_MIN = 0.3

REFERENCE_LABELS_MIN = 10

CLASS_LABELS_MIN = 10

VERDICT_SHARE_THAT_COUNTS = 0.02

PROBABILITY_SAMPLE_MIN = 30


@dataclass(frozen=True, slots=True, kw_only=True)
class Notice:
    """A refusal or a warning.

    Parameters
    ----------
    code : str
        Short name that programs compare.
    estimator : str
        The estimator concerned.
    why : str
        What was found, with the number.
    mend : str
        What would help.
    """

    code: str
    estimator: str
    why: str
    mend: str


def repeated_tasks(estimator: str) -> Notice:
    """Warn that the interval takes repeated tasks for independent; code ``repeated_tasks``."""
    return Notice(
        code="repeated_tasks",
        estimator=estimator,
        why="tasks repeat among the labelled traces, which this interval takes for independent",
        mend="label one trace a task, or read the post-stratified estimate",
    )


def families(design: str, names: Collection[str]) -> dict[str, tuple[str, ...]]:
    """Return which estimators share the assumption of which, of those in `names`.

    A refusal of `inversion` for its assumption, for instance because another judge gave the
    reference verdicts, is one of all that carry error rates over; likewise `post_stratified` and
    the probability sample. The bootstrap belongs to the default of the design.

    Examples
    --------
    >>> families("reference", ["inversion", "bootstrap", "lee"])
    {'inversion': ('inversion', 'lee', 'bootstrap'), 'post_stratified': ()}
    """
    kin = {
        "inversion": ["inversion", "bayesian", "lee"],
        "post_stratified": ["post_stratified", "ppi_plus_plus"],
    }
    kin["inversion" if design == "reference" else "post_stratified"].append("bootstrap")
    return {head: tuple(name for name in several if name in names) for head, several in kin.items()}


def carried_over(
    notices: Iterable[Notice], kin: Mapping[str, tuple[str, ...]]
) -> tuple[Notice, ...]:
    """Return each notice for every estimator that shares the assumption of the one it names."""
    return tuple(
        replace(notice, estimator=name)
        for notice in notices
        for name in kin.get(notice.estimator, (notice.estimator,))
    )


def youden_index(table: FloatArray) -> FloatArray:
    """Return recall + specificity - 1 of the judge for each class, shape (n_classes,).

    NaN for a class without labels, or if all labels are of the class.

    Examples
    --------
    >>> youden_index(np.array([[8.0, 2.0], [1.0, 9.0]])).tolist()
    [0.7, 0.7]
    """
    n_classes = table.shape[0]
    rows, columns = table.sum(axis=1), table.sum(axis=0)[:n_classes]
    hits = table[np.arange(n_classes), np.arange(n_classes)]
    others = table.sum() - rows
    index = np.full(n_classes, np.nan)
    usable = (rows > 0) & (others > 0)
    index[usable] = hits[usable] / rows[usable] - (columns - hits)[usable] / others[usable]
    return index


def inversion_refusals(
    table: FloatArray,
    inversion: Inversion,
    *,
    credit: FloatArray,
    verdict_shares: FloatArray,
    names: Sequence[str],
) -> tuple[Notice, ...]:
    """Return why the inverted estimate may not be used; empty when it may.

    Parameters
    ----------
    table : float array, shape (n_classes, n_verdicts)
        Labelled traces by human class and verdict.
    inversion : Inversion
        The result to judge.
    credit : float array, shape (n_classes,)
        Credit of each class.
    verdict_shares : float array, shape (n_verdicts,)
        Share of each verdict in production.
    names : sequence of str
        Names of the verdicts, the classes first.

    Returns
    -------
    tuple of Notice
        Codes ``classes_not_separated`` (smallest singular value below .2), ``judge_too_weak``
        (recall + specificity - 1 below .3 for a class) and ``few_reference_labels`` (fewer than
        10 of a class that has credit or more than 2 % of the verdicts).
    """
    found = []
    if inversion.sigma_min < SIGMA_MIN:
        found.append(
            Notice(
                code="classes_not_separated",
                estimator="inversion",
                why="its verdicts do not tell the classes apart (smallest singular value of the "
                f"error rates {inversion.sigma_min:.3f}, below {SIGMA_MIN})",
                mend="improve the judge, merge classes, or label a random sample of production",
            )
        )
    index = youden_index(table)
    for k in np.flatnonzero(index < YOUDEN_MIN).tolist():
        found.append(
            Notice(
                code="judge_too_weak",
                estimator="inversion",
                why=f"it hardly tells {names[k]} from the rest (recall + specificity - 1 is "
                f"{index[k]:.2f}, below {YOUDEN_MIN})",
                mend="improve the judge on this class, or label a random sample of production",
            )
        )
    rows, n_classes = table.sum(axis=1), table.shape[0]
    counts = (credit > 0) | (verdict_shares[:n_classes] > VERDICT_SHARE_THAT_COUNTS)
    for k in np.flatnonzero(counts & (rows < REFERENCE_LABELS_MIN)).tolist():
        found.append(
            Notice(
                code="few_reference_labels",
                estimator="inversion",
                why=f"{rows[k]:g} reference labels of {names[k]}, "
                f"fewer than {REFERENCE_LABELS_MIN}",
                mend=f"label more reference traces of {names[k]}",
            )
        )
    return tuple(found)


def sample_refusals(
    n_labels: int, *, probability_sample: bool, estimator: str, minimum_labels: int
) -> tuple[Notice, ...]:
    """Return why an estimator that needs a random sample of production may not be used.

    Codes ``no_probability_sample`` and ``few_labels``.

    Examples
    --------
    >>> found = sample_refusals(
    ...     12, probability_sample=True, estimator="post_stratified", minimum_labels=30
    ... )
    >>> found[0].code, found[0].why
    ('few_labels', '12 labels, fewer than 30')
    """
    if not probability_sample:
        return (
            Notice(
                code="no_probability_sample",
                estimator=estimator,
                why="the labelled traces are no probability sample of production",
                mend="label at least 100 traces drawn at random from production",
            ),
        )
    if n_labels < minimum_labels:
        return (
            Notice(
                code="few_labels",
                estimator=estimator,
                why=f"{n_labels} labels, fewer than {minimum_labels}",
                mend="label more traces drawn at random from production",
            ),
        )
    return ()


def precision_warnings(
    estimator: str, estimate: Estimate, *, human_half_width: float | None
) -> tuple[Notice, ...]:
    """Warn when the judge adds nothing: human labels alone would give a shorter interval.

    Code ``wider_than_human_only``.
    """
    half = estimate.half_width
    if half is None or human_half_width is None or half <= human_half_width:
        return ()
    return (
        Notice(
            code="wider_than_human_only",
            estimator=estimator,
            why=f"half-width {half:.3f}; as many human labels of production alone would give "
            f"about {human_half_width:.3f}",
            mend="label production at random, or improve the judge",
        ),
    )


def share_warnings(inversion: Inversion, *, names: Sequence[str]) -> tuple[Notice, ...]:
    """Warn of inverted class shares outside [0, 1]; code ``share_outside_unit_interval``."""
    return tuple(
        Notice(
            code="share_outside_unit_interval",
            estimator="inversion",
            why=f"the share of {names[k]} comes out as {share:.3f}",
            mend="use the clipped shares beside it; check that the judge's error rates carry over",
        )
        for k, share in enumerate(inversion.prevalence)
        if share < 0 or share > 1
    )


def merge_warnings(
    strata: Strata, labels: Sequence[int], *, names: Sequence[str]
) -> tuple[Notice, ...]:
    """Warn of verdicts with too few labels, merged with the nearest; code ``verdict_merged``."""
    return tuple(
        Notice(
            code="verdict_merged",
            estimator="post_stratified",
            why=f"verdict {names[small]} has {labels[small]} labels and is merged with "
            f"{names[target]}",
            mend=f"label more production traces with verdict {names[small]}",
        )
        for small, target in strata.merged
    )


def class_warnings(
    estimator: str, class_labels: FloatArray, *, names: Sequence[str]
) -> tuple[Notice, ...]:
    """Warn of classes with fewer than 10 labels; code ``class_few_labels``."""
    return tuple(
        Notice(
            code="class_few_labels",
            estimator=estimator,
            why=f"{class_labels[k]:g} labels of {names[k]}: its own share gets no interval",
            mend=f"label more traces of {names[k]}",
        )
        for k in np.flatnonzero(class_labels < CLASS_LABELS_MIN).tolist()
    )
