"""Tables of ratings: for Hypothesis, and of raters who know how much they know."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from hypothesis import strategies as st
from hypothesis.extra import numpy as npst
from numpy.typing import ArrayLike, NDArray

from calibration.agreement.coefficients import Coefficient, estimate
from calibration.agreement.ratings import count_patterns
from calibration.statistics.estimate import Estimate

Codes = NDArray[np.int64]

# Shares of five classes, evenly spread and with one rare class after the other.
MODERATE, SKEWED = (0.30, 0.20, 0.20, 0.17, 0.13), (0.85, 0.05, 0.04, 0.03, 0.03)


def rated(
    rng: np.random.Generator,
    n_items: int,
    knows: ArrayLike,
    mix: Sequence[float],
    *,
    missing: float = 0.0,
    first: Sequence[float] | None = None,
    truth: Codes | None = None,
) -> Codes:
    """Each rater knows an item's class with a probability of its own, and else draws one.

    From the mix; the first rater from a mix of its own, if given.
    """
    if truth is None:
        truth = rng.choice(len(mix), size=(n_items, 1), p=mix)
    guess = rng.choice(len(mix), size=(n_items, np.size(knows)), p=mix)
    if first is not None:
        guess[:, 0] = rng.choice(len(mix), size=n_items, p=first)
    codes = np.where(rng.random(guess.shape) < np.asarray(knows), truth, guess)
    codes[rng.random(codes.shape) < missing] = -1
    return codes


def of_codes(
    coefficient: Coefficient, codes: ArrayLike, n_classes: int, **options: Any
) -> Estimate:
    return estimate(coefficient, count_patterns(codes, n_classes=n_classes), **options)


def codes_from(table: ArrayLike) -> Codes:
    """Return the pairs of codes that a two-way table counts."""
    counts = np.asarray(table)
    pairs = np.column_stack(np.nonzero(counts))
    return np.repeat(pairs, counts[tuple(pairs.T)], axis=0)


def jackknife_se(values: Iterable[float | None]) -> float:
    """Return the error by hand from the values with each item left out."""
    left_out = np.array([*values], dtype=np.float64)
    n = left_out.size
    return float(np.sqrt((n - 1) / n * ((left_out - left_out.mean()) ** 2).sum()))


@dataclass(frozen=True, slots=True)
class Table:
    """Codes of shape (n_items, n_raters), -1 for none, and the declared number of classes."""

    codes: Codes
    n_classes: int


def tables(
    *, raters: tuple[int, int] = (2, 7), classes: tuple[int, int] = (2, 6), items: int = 25
) -> st.SearchStrategy[Table]:
    """Return small tables; a fifth of them are mostly empty, where the odd cases are."""

    @st.composite
    def draw_table(draw: st.DrawFn) -> Table:
        q = draw(st.integers(*classes))
        shape = draw(st.integers(1, items)), draw(st.integers(*raters))
        empty = draw(st.integers(1, 5)) == 5
        codes = draw(
            npst.arrays(
                np.int64, shape, elements=st.integers(-1, q - 1),
                fill=st.just(-1) if empty else st.nothing(),
            )
        )  # fmt: skip
        return Table(codes, q)

    return draw_table()


@st.composite
def likely_tables(draw: st.DrawFn) -> Table:
    """Return tables as reviewers make them: up to 200 items, the class known or guessed."""
    q, raters, n_items = (draw(st.integers(*of)) for of in ((2, 6), (2, 7), (2, 200)))
    known, missing = draw(st.floats(0, 1)), draw(st.floats(0, 0.8))
    rng = np.random.default_rng(draw(st.integers(0, 2**32)))
    mix = rng.dirichlet(np.ones(q)).tolist()
    return Table(rated(rng, n_items, [known] * raters, mix, missing=missing), q)
