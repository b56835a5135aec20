"""A thousand resamples of the items for every coefficient, timed and checked."""

from collections.abc import Callable
from functools import partial

import numpy as np

from benchmarks.agreement.data import CLASSES, RATERS, Codes, ratings
from benchmarks.agreement.ours import FOUR, Times
from benchmarks.report import table
from calibration.agreement.coefficients import (
    PERCENT_AGREEMENT,
    conger_sums,
    specific_coefficient,
    sums_of,
)
from calibration.agreement.inference import ResampledCoefficient, resample
from calibration.agreement.ratings import count_patterns

RESAMPLES = 1000
AIM_MS = 500

# Of a standard deviation from 1,000 draws: 2.2 % is one standard error.
NEAR = 0.1


def all_of_counts(codes: Codes, seed: int) -> tuple[ResampledCoefficient, ...]:
    """Resample alpha, AC1, Fleiss, Brennan-Prediger, percent and specific agreement."""
    patterns = count_patterns(codes, n_classes=CLASSES)
    coefficients = [
        *FOUR.values(), PERCENT_AGREEMENT, *map(specific_coefficient, range(CLASSES))
    ]  # fmt: skip
    found = resample(
        [sums_of(coefficient, patterns) for coefficient in coefficients],
        rng=np.random.default_rng(seed),
        n_resamples=RESAMPLES,
    )
    for one in found:
        one.percentile()
        one.bca()
    return found


def conger(codes: Codes, seed: int) -> tuple[ResampledCoefficient, ...]:
    """Resample Conger's kappa, which needs who rated what: nearly as many patterns as items."""
    sums = conger_sums(codes, n_classes=CLASSES)
    (found,) = resample([sums], rng=np.random.default_rng(seed), n_resamples=RESAMPLES)
    found.percentile()
    found.bca()
    return (found,)


def check_spread(found: tuple[ResampledCoefficient, ...]) -> float:
    """Return the largest departure of a bootstrap error from the jackknife's; stop if far."""
    apart = [abs(np.std(one.draws, ddof=1) / (one.seen.se or np.nan) - 1) for one in found]
    if not max(apart) < NEAR:
        raise RuntimeError(f"errors of the bootstrap and the jackknife differ by {max(apart):.0%}")
    return float(max(apart))


def bootstrap_part(n_items: int, repeats: int, seed: int, *, krippendorff_ms: float) -> str:
    """Time the resamples of all coefficients, of one size and as the items grow."""
    rows: list[list[object]] = []
    calls: list[tuple[str, Callable[[Codes, int], tuple[ResampledCoefficient, ...]], int, int]] = [
        ("ten coefficients", all_of_counts, size, repeats)
        for size in sorted({10_000, n_items, 1_000_000})
    ]
    calls.append(("Conger's kappa", conger, n_items, 1))
    aimed = Times()
    for name, call, size, runs in calls:
        codes = ratings(size, missing=0.3, seed=seed)
        apart = check_spread(call(codes, seed))
        times = Times.of(partial(call, codes, seed), repeats=runs)
        ratio = float("nan")
        if size == n_items and name == "ten coefficients":
            aimed, ratio = times, RESAMPLES * krippendorff_ms / times.median
        rows.append([name, f"{size:,}", times.median, times.spread, f"{apart:.1%}", ratio])
    columns = [
        "1,000 resamples of", "items", "median", "range", "SD against jackknife",
        "krippendorff x 1,000 / ours",
    ]  # fmt: skip
    return (
        f"### {RESAMPLES:,} resamples of the items, {RATERS} raters, 30 % missing\n\n"
        "Alpha, AC1, Fleiss' kappa, Brennan-Prediger, percent agreement "
        "and specific agreement of each class on the same resamples, "
        "with percentile and BCa intervals, from the ratings: "
        f"**{aimed.median:.0f} ms** ({aimed.spread}; aim: below {AIM_MS}).\n\n"
        + table(columns, rows)
        + "\nThe last column is alpha alone, one call of krippendorff(value_counts) times "
        f"{RESAMPLES:,}, without resampling. Medians of {repeats} runs (Conger's: one).\n"
    )
