"""Items for a wanted half-width: against outside figures, the samples themselves, and nonsense."""

from typing import Any

import numpy as np
import pytest

from calibration.agreement.coefficients import GWET_AC, KRIPPENDORFF_ALPHA, Coefficient
from calibration.agreement.ratings import patterns_from_counts
from calibration.agreement.sample_size import (
    MOST_ITEMS,
    AgreementPlan,
    _pattern_probabilities,
    plan_items,
)
from tests.agreement.tables import of_codes, rated

FIVE = (0.13, 0.17, 0.20, 0.20, 0.30)


def plan(shares: Any = FIVE, **changes: Any) -> AgreementPlan:
    options: dict[str, Any] = {
        "alpha": 0.7, "n_raters": 2, "half_width": 0.1, "repetitions": 300,
        "rng": np.random.default_rng(5),
    }  # fmt: skip
    return plan_items(shares, **(options | changes))


@pytest.mark.parametrize(("n_raters", "published"), [(2, 135), (3, 83), (4, 66), (5, 57)])
def test_it_is_near_what_kappasize_says(n_raters: int, published: int) -> None:
    """R kappaSize 1.2, CI5Cats: kappa .7, limits .6 and .8; another interval and model."""
    found = plan(n_raters=n_raters)
    assert 0.75 * published < (found.typical.n or 0) < 1.05 * published
    assert 0.85 * published < (found.assured.n or 0) < 1.15 * published


@pytest.mark.long
@pytest.mark.parametrize(
    ("coefficient", "missing"),
    [(KRIPPENDORFF_ALPHA, 0.0), (KRIPPENDORFF_ALPHA, 0.3), (GWET_AC, 0.3)],
)
def test_samples_of_that_size_are_as_narrow_as_said(
    coefficient: Coefficient, missing: float
) -> None:
    found = plan(n_raters=3, missing=missing, coefficient=coefficient, repetitions=600)
    rng = np.random.default_rng(8)
    for part in (found.typical, found.assured):
        assert part.n is not None
        widths = []
        for _ in range(600):
            codes = rated(rng, part.n, [np.sqrt(0.7)] * 3, FIVE, missing=missing)
            widths.append(of_codes(coefficient, codes, 5).half_width or np.inf)
        reached = (np.array(widths) <= 0.1).mean()
        # Binomial sd .02 at the median, plus 1 % of the items.
        assert abs(reached - part.assurance) < 0.09


def test_the_probabilities_are_those_of_the_model() -> None:
    patterns, probabilities = _pattern_probabilities(np.array(FIVE), 0.6, 3, 0.2)
    assert len(np.unique(patterns, axis=0)) == len(patterns) == 56  # C(3 + 5, 5)
    assert probabilities.sum() == pytest.approx(1)
    codes = rated(np.random.default_rng(2), 200_000, [np.sqrt(0.6)] * 3, FIVE, missing=0.2)
    counted = (codes[:, :, None] == np.arange(5)).sum(axis=1)
    seen = patterns_from_counts(counted)
    share = {tuple(row): m / 200_000 for row, m in zip(seen.counts, seen.multiplicity, strict=True)}
    for row, probability in zip(patterns, probabilities, strict=True):
        sd = np.sqrt(probability / 200_000)
        assert abs(share.get(tuple(row), 0.0) - probability) < 4.5 * sd


def test_what_is_found_meets_the_target_and_says_how_surely() -> None:
    found = plan()
    for part in (found.typical, found.assured):
        assert part.status == "ok"
        assert part.half_width is not None
        assert part.half_width_interval is not None
        low, high = part.half_width_interval
        assert low <= part.half_width <= min(high, 0.1)
        assert (high - low) / part.half_width < 0.05
        assert part.repetitions == 300
    typical = found.typical.n or 0
    assert 0 < typical < (found.assured.n or 0)
    # Half the width takes four times the items.
    assert (plan(half_width=0.05).typical.n or 0) / typical == pytest.approx(4, rel=0.08)


def test_ends_of_the_scale_are_planned() -> None:
    """At alpha 1 nobody differs: the exact bound 1 - .025^(1/n) over 2 x expected disagreement."""
    always = plan(alpha=1.0)
    assert always.typical.n is not None
    expected = 1 - float(np.square(FIVE).sum())
    bound = (1 - 0.025 ** (1 / always.typical.n)) / (2 * expected)
    assert always.typical.half_width == pytest.approx(bound, rel=0.05)
    assert (plan(alpha=0.0).typical.n or 0) > 20
    assert (plan(half_width=0.9).assured.n or 99) < 12


def test_beyond_the_bound_is_said_not_guessed() -> None:
    found = plan(half_width=0.001, repetitions=100)
    for part in (found.typical, found.assured):
        assert (part.n, part.half_width, part.half_width_interval) == (None, None, None)
        assert part.status.startswith(f"not_estimable: more than {MOST_ITEMS:,} items")


NO_SHARES: tuple[Any, ...] = ((1.5, -0.5), (np.nan, 1.0), [[0.5, 0.5]])


@pytest.mark.parametrize(
    ("changes", "match"),
    [
        ({"alpha": 1.2}, r"alpha must be in \[0, 1\], got 1.2"),
        ({"n_raters": 1}, "n_raters must be at least 2, got 1"),
        ({"half_width": 0.0}, r"half_width must be in \(0, 1\), got 0.0"),
        ({"missing": 1.0}, r"missing must be in \[0, 1\), got 1.0"),
        ({"confidence_level": 1.0}, r"confidence_level must be in \(0, 1\)"),
        ({"repetitions": 50}, "repetitions must be at least 100, got 50"),
        ({"shares": (0.5, 0.4)}, "class_shares must sum to 1, got 0.9"),
        ({"shares": (1.0, 0.0)}, "class_shares must give two classes or more a share"),
        *(({"shares": of}, "class_shares must be a list of shares from 0 up") for of in NO_SHARES),
        ({"shares": [0.05] * 20, "n_raters": 9}, "20 classes have more than 300,000 patterns"),
    ],
)
def test_nonsense_is_refused(changes: dict[str, Any], match: str) -> None:
    with pytest.raises(ValueError, match=match):
        plan(**changes)
