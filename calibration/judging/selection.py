"""Choosing among versions of a judge, and what may be said of the one that was chosen.

Labels that chose a version read too high for it. So production labels are split by task, a score is
corrected for the choice, versions are compared on the same traces, and a certificate has one look.

Classes are codes from 0; a verdict from `n_classes` up is no class and counts as wrong. Traces are
a random sample and independent, as one run of each task is. Functions raise ValueError for arrays
of other shapes or codes.
"""

import hashlib
from dataclasses import dataclass
from datetime import datetime

import numpy as np

from calibration.statistics.contingency import (
    QualityAgainstKey,
    TestResult,
    kappas_of_tables,
    mcnemar,
    paired_difference,
    quality_against_key,
)
from calibration.statistics.estimate import (
    Estimate,
    FloatArray,
    IntArray,
    check_confidence_level,
    not_estimable,
    provisional,
    validated_codes,
)
from calibration.statistics.intervals import wilson_interval

DEVELOPMENT, CERTIFICATION = "development", "certification"
DEVELOPMENT_SHARE = 0.3  # as in the reference dataset: 60 traces to practise, 140 in examinations
SPLIT = "split of production labels, 1"  # changed with the rule below

AGREEMENT, KAPPA = "agreement", "kappa"
N_RESAMPLES = 2_000
LABELS_FOR_CORRECTION = 30
CORRECTED = "chosen in the bag, scored out of it"

FIRST, SECOND, NOT_SHOWN, CANNOT_TELL = "first", "second", "not_shown", "cannot_tell"

CERTIFIED, EXPLORATORY, TOO_FEW = "certified", "exploratory", "too_few"
LEVEL = 0.95
CERTIFICATE_LABELS = 70

NO_LABELS = "no labelled trace has a verdict: label some, or judge the labelled ones"


def split_of(task_key: str) -> str:
    """Return the part of a production label: ``development`` or ``certification``.

    All runs of a task are in one part, and in the same part for ever: the hash of the task decides,
    not who asks, when, or what else is there. Three tasks in ten are for development.

    Examples
    --------
    >>> [split_of(f"task-{k}") for k in range(4)]
    ['certification', 'certification', 'development', 'certification']
    """
    text = hashlib.sha256(f"{SPLIT}\n{task_key}".encode()).digest()
    share = int.from_bytes(text[:8], "big") / 2**64
    return DEVELOPMENT if share < DEVELOPMENT_SHARE else CERTIFICATION


@dataclass(frozen=True, slots=True, kw_only=True)
class ChosenVersion:
    """The best of several versions on the labels that chose it.

    Parameters
    ----------
    version : int
        Its column; of equal ones the first.
    n_versions : int
        Versions tried.
    as_read : Estimate
        Its score as if it alone had been tried: too high.
    corrected : Estimate
        Its score less what the choice adds.
    """

    version: int
    n_versions: int
    as_read: Estimate
    corrected: Estimate


def best_version(
    human: IntArray,
    verdicts: IntArray,
    *,
    n_classes: int,
    rng: np.random.Generator,
    measure: str = AGREEMENT,
    n_resamples: int = N_RESAMPLES,
    confidence_level: float = LEVEL,
) -> ChosenVersion:
    """Choose the version with the best score, and correct that score for the choice.

    In each resample of traces the best version in the bag is scored on the traces outside it. What
    its score there exceeds the mean score of all versions there by, on average over resamples, is
    added to the mean score of all versions: resampling noise that all versions share cancels. The
    result is never above the score as read. It is the score of the rule "take the best": editing a
    version after reading its errors is not covered.

    The interval is Wilson's, around the corrected agreement; for kappa its limits are put through
    kappa at the chance agreement of the chosen version. If versions truly differ, the correction is
    cautious: the bag holds two thirds of the traces, and a choice from fewer is worse.

    Parameters
    ----------
    human : int array, shape (n,)
        Class of each trace.
    verdicts : int array, shape (n, n_versions)
    measure : {"agreement", "kappa"}

    References
    ----------
    Tsamardinos, Greasidou and Borboudakis (2018), "Bootstrapping the out-of-sample predictions for
    efficient and accurate cross-validation", Mach. Learn. 107.
    https://doi.org/10.1007/s10994-018-5714-4

    Examples
    --------
    Two versions, of which each is right where the other errs, are no better than one:

    >>> human = np.zeros(40, dtype=np.int64)
    >>> right = np.arange(40) % 2
    >>> found = best_version(
    ...     human, np.column_stack([right, 1 - right]), n_classes=2, rng=np.random.default_rng(1))
    >>> found.version, found.as_read.value, round(found.corrected.value, 1)
    (0, 0.5, 0.4)
    """
    check_confidence_level(confidence_level)
    if measure not in (AGREEMENT, KAPPA):
        raise ValueError(f"measure must be {AGREEMENT} or {KAPPA}, got {measure!r}")
    cells, width = _cells(human, verdicts, n_classes)
    n, n_versions = cells.shape
    if n == 0:
        nothing = not_estimable(NO_LABELS, method=CORRECTED, confidence_level=confidence_level)
        return ChosenVersion(version=0, n_versions=n_versions, as_read=nothing, corrected=nothing)
    scores = _scores(cells, width, np.ones((1, n)), measure)[0]
    best = int(_best(scores[None])[0])
    table = np.bincount(cells[:, best], minlength=width**2).reshape(width, width)
    quality = quality_against_key(table[:n_classes], confidence_level=confidence_level)
    as_read, by_chance = quality.accuracy, 0.0
    if measure == KAPPA:
        as_read, by_chance = quality.kappa, float(table.sum(axis=1) @ table.sum(axis=0)) / n**2
    gain = None if n_versions == 1 else _gain(cells, width, measure, n_resamples, rng)
    if as_read.value is None or gain is None:
        corrected = as_read
    else:
        corrected = _moved(as_read, float(np.nanmean(scores)) + gain, by_chance)
    return ChosenVersion(version=best, n_versions=n_versions, as_read=as_read, corrected=corrected)


def _gain(
    cells: IntArray, width: int, measure: str, n_resamples: int, rng: np.random.Generator
) -> float:
    """Return what the best version in the bag has more than the mean version outside it."""
    n = len(cells)
    counts = rng.multinomial(n, np.full(n, 1 / n), size=n_resamples).astype(np.float64)
    inside = _scores(cells, width, counts, measure)
    outside = _scores(cells, width, (counts == 0).astype(np.float64), measure)
    gain = outside[np.arange(n_resamples), _best(inside)] - outside.mean(axis=1)
    known = gain[np.isfinite(gain)]
    return float(known.mean()) if known.size else 0.0


def _moved(as_read: Estimate, value: float, by_chance: float) -> Estimate:
    """Return a score moved down to a value, with Wilson's interval of the agreement behind it."""
    n, room, level = as_read.n, 1 - by_chance, as_read.confidence_level
    highest = as_read.value if as_read.value is not None else 1.0
    value = min(highest, max(value, -by_chance / room))  # there nothing agrees
    agreement = max(0.0, by_chance + value * room)
    low, high = wilson_interval(agreement * n, n, confidence_level=level)
    found = Estimate(
        value=value, interval=((low - by_chance) / room, (high - by_chance) / room), n=n,
        method=f"{CORRECTED}, Wilson", confidence_level=level,
    )  # fmt: skip
    if n >= LABELS_FOR_CORRECTION:
        return found
    return provisional(found, f"{n} labels, {LABELS_FOR_CORRECTION} are needed: label more")


def _cells(human: IntArray, verdicts: IntArray, n_classes: int) -> tuple[IntArray, int]:
    """Return the cell of each trace in the table of each version, and the width of the tables."""
    key = validated_codes(human, n_codes=n_classes, name="human")
    given = np.asarray(verdicts)
    if given.ndim != 2 or given.shape[0] != key.size or given.shape[1] == 0:
        raise ValueError(f"verdicts must have shape ({key.size}, n_versions), got {given.shape!r}")
    codes = validated_codes(given.ravel(), n_codes=None, name="verdicts").reshape(given.shape)
    # All that is no class is one column: it is wrong, whatever it says.
    codes = np.minimum(codes, n_classes)
    return key[:, None] * (n_classes + 1) + codes, n_classes + 1


def _scores(cells: IntArray, width: int, counts: FloatArray, measure: str) -> FloatArray:
    """Return the score of each version with each row of counts; NaN where it has none."""
    found = np.empty((len(counts), cells.shape[1]))
    for version in range(cells.shape[1]):
        of_trace = np.zeros((len(cells), width * width))
        of_trace[np.arange(len(cells)), cells[:, version]] = 1
        tables = (counts @ of_trace).reshape(-1, width, width)
        if measure == KAPPA:
            found[:, version] = kappas_of_tables(tables)
        else:
            total = tables.sum(axis=(1, 2))
            right = tables.trace(axis1=1, axis2=2)
            found[:, version] = np.where(total > 0, right / np.maximum(total, 1), np.nan)
    return found


def _best(scores: FloatArray) -> IntArray:
    """Return the best version of each row; equal up to rounding, the first."""
    known = np.where(np.isnan(scores), -np.inf, scores).round(12)
    return np.asarray(known.argmax(axis=1), dtype=np.int64)


@dataclass(frozen=True, slots=True, kw_only=True)
class PairedComparison:
    """Two judges on the same traces.

    Parameters
    ----------
    better : str
        ``first``, ``second``, ``not_shown`` or ``cannot_tell``.
    difference : Estimate
        Agreement of the first less that of the second.
    test : TestResult
        Exact McNemar test; it decides, not the interval.
    first_only, second_only : int
        Traces on which the first alone, and the second alone, is right.
    needed : int
        Traces on which one alone is right, from which on the test can decide at all.
    """

    better: str
    difference: Estimate
    test: TestResult
    first_only: int
    second_only: int
    needed: int


def paired_comparison(
    human: IntArray,
    first: IntArray,
    second: IntArray,
    *,
    n_classes: int,
    confidence_level: float = LEVEL,
) -> PairedComparison:
    """Compare two judges, or two versions of one, on the same labelled traces.

    Only traces on which one alone is right tell them apart. If all of them favour one, 6 reach the
    level of .95: 2 x .5^6 = .031. With fewer the comparison says ``cannot_tell``, which is no sign
    that the two are alike.

    Parameters
    ----------
    human, first, second : int array, shape (n,)
        Class of each trace, and its two verdicts.

    References
    ----------
    McNemar (1947), Psychometrika 12. https://doi.org/10.1007/BF02295996

    Examples
    --------
    Of 12 traces on which one is right, 10 favour the first: 2 x (1 + 12 + 66) / 4096.

    >>> human = np.zeros(70, dtype=np.int64)
    >>> first, second = (np.arange(70) < 2), (np.arange(70) >= 60)
    >>> found = paired_comparison(human, 1 * first, 1 * second, n_classes=2)
    >>> found.better, round(found.test.p_value, 4)
    ('first', 0.0386)
    """
    check_confidence_level(confidence_level)
    cells, width = _cells(human, np.column_stack([first, second]), n_classes)
    key, given = np.divmod(cells, width)
    right = key == given
    table = np.bincount(2 * right[:, 0] + right[:, 1], minlength=4).reshape(2, 2)
    first_only, second_only = int(table[1, 0]), int(table[0, 1])
    apart, n = first_only + second_only, len(cells)
    needed = _needed(1 - confidence_level)
    test = mcnemar(table, exact=True)
    difference = paired_difference(
        first_only, second_only, n, nothing=NO_LABELS, confidence_level=confidence_level
    )
    if apart < needed:
        better = CANNOT_TELL
        traces = f"{apart} trace{'s' * (apart != 1)}"
        why = f"cannot tell: one alone is right on {traces}, {needed} are needed: label more"
        difference = provisional(difference, why)
    elif test.p_value is not None and test.p_value < 1 - confidence_level:
        better = FIRST if first_only > second_only else SECOND
    else:
        better = NOT_SHOWN
    return PairedComparison(
        better=better, difference=difference, test=test, first_only=first_only,
        second_only=second_only, needed=needed,
    )  # fmt: skip


def _needed(error: float) -> int:
    """Return the fewest traces that, all favouring one judge, make the test reject."""
    return next(n for n in range(1, 1_100) if 2.0 ** (1 - n) < error)


@dataclass(frozen=True, slots=True, kw_only=True)
class Look:
    """A computation that joins verdicts with locked labels; looks on them are counted from 1."""

    number: int
    confidence_level: float
    exploratory: bool


def level_of_look(number: int) -> Look:
    """Return the level of a look at locked labels: 95 % for the first, then 1 - .05 / number.

    The first look is the only one that certifies. Who looks again has read the labels, so that the
    next version is made with them in mind: the interval is that of one of `number` comparisons
    (Bonferroni), and the result exploratory.

    Dunn (1961), "Multiple comparisons among means", J. Am. Stat. Assoc. 56.
    https://doi.org/10.1080/01621459.1961.10482090

    Examples
    --------
    >>> [(found.confidence_level, found.exploratory) for found in map(level_of_look, (1, 2))]
    [(0.95, False), (0.975, True)]
    """
    if number < 1:
        raise ValueError(f"looks are counted from 1, got {number!r}")
    level = LEVEL if number == 1 else 1 - (1 - LEVEL) / number
    return Look(number=number, confidence_level=level, exploratory=number > 1)


@dataclass(frozen=True, slots=True, kw_only=True)
class Minimum:
    """What a judge has to show, stated before the locked labels are looked at."""

    value: float
    stated_at: datetime
    measure: str = AGREEMENT

    def __post_init__(self) -> None:
        if not 0 < self.value < 1:
            raise ValueError(f"a minimum must be in (0, 1), got {self.value!r}")
        if self.measure not in (AGREEMENT, KAPPA):
            raise ValueError(f"measure must be {AGREEMENT} or {KAPPA}, got {self.measure!r}")


@dataclass(frozen=True, slots=True, kw_only=True)
class JudgeCertificate:
    """What locked labels say of a judge.

    Parameters
    ----------
    status : str
        ``certified``, ``not_shown``, ``exploratory`` or ``too_few``.
    why : str
        The status in words.
    quality : QualityAgainstKey
        Agreement, kappa, and recall and precision of each class, at the level of the look.
    majority, baseline : PairedComparison
        The judge (first) beside the majority class and beside the baseline judge (second).
    """

    status: str
    why: str
    minimum: Minimum
    look: Look
    quality: QualityAgainstKey
    majority: PairedComparison
    baseline: PairedComparison


def certify_judge(
    minimum: Minimum,
    human: IntArray,
    verdicts: IntArray,
    *,
    baseline: IntArray,
    majority: int,
    n_classes: int,
    looked_at: datetime,
    number: int,
) -> JudgeCertificate:
    """Say whether a judge reaches a minimum on locked labels, beside what costs nothing.

    It is certified if the lower limit of the minimum's measure is at least the minimum, at the
    first look, on 70 labels or more.

    Parameters
    ----------
    minimum : Minimum
        ValueError unless it was stated before `looked_at`.
    human, verdicts, baseline : int array, shape (n,)
        Class of each trace, verdict of the judge, and of the baseline judge.
    majority : int
        The most frequent class of the practice labels.
    looked_at : datetime
    number : int
        Which look at these labels this is, for this judge and the versions before it.

    Examples
    --------
    Of 70 verdicts 63 are right, and Wilson's lower limit is .808:

    >>> from datetime import timedelta
    >>> now = datetime(2026, 1, 2)
    >>> minimum = Minimum(value=0.8, stated_at=now - timedelta(days=1))
    >>> human = np.arange(70) % 2
    >>> verdicts = np.where(np.arange(70) < 7, 1 - human, human)
    >>> options = dict(baseline=0 * human, majority=0, n_classes=2, looked_at=now)
    >>> certify_judge(minimum, human, verdicts, number=1, **options).status
    'certified'
    >>> certify_judge(minimum, human, verdicts, number=2, **options).status
    'exploratory'
    """
    if minimum.stated_at >= looked_at:
        raise ValueError(
            f"the minimum must be stated before the look, got {minimum.stated_at} and {looked_at}"
        )
    now = level_of_look(number)
    level = now.confidence_level
    cells, width = _cells(human, np.column_stack([verdicts]), n_classes)
    table = np.bincount(cells[:, 0], minlength=width**2).reshape(width, width)[:n_classes]
    quality = quality_against_key(table, nothing=NO_LABELS, confidence_level=level)
    status, why = _decision(minimum, quality, now)

    def beside(other: IntArray) -> PairedComparison:
        """Compare the judge with another one on these traces."""
        return paired_comparison(
            human, verdicts, other, n_classes=n_classes, confidence_level=level
        )

    return JudgeCertificate(
        status=status,
        why=why,
        minimum=minimum,
        look=now,
        quality=quality,
        majority=beside(np.full(len(human), majority)),
        baseline=beside(baseline),
    )


def _decision(minimum: Minimum, quality: QualityAgainstKey, now: Look) -> tuple[str, str]:
    """Return the status of a certificate and its reason."""
    found = quality.accuracy if minimum.measure == AGREEMENT else quality.kappa
    asked = f"{minimum.value:.2f} is asked for"
    if now.exploratory:
        return EXPLORATORY, (
            f"look {now.number} at these labels: no certificate before {CERTIFICATE_LABELS} fresh "
            "locked labels"
        )
    if quality.n < CERTIFICATE_LABELS:
        return TOO_FEW, f"{quality.n} locked labels, {CERTIFICATE_LABELS} are needed: label more"
    if found.interval is None:
        return NOT_SHOWN, f"{minimum.measure} has no lower limit ({found.status}); {asked}"
    limit = f"the lower limit of {minimum.measure} is {found.interval[0]:.3f}; {asked}"
    return CERTIFIED if found.interval[0] >= minimum.value else NOT_SHOWN, limit
