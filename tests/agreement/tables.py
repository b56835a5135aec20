"""Tables of ratings for Hypothesis: any number of raters and classes, ratings missing."""

from dataclasses import dataclass

import numpy as np
from hypothesis import strategies as st
from hypothesis.extra import numpy as npst
from numpy.typing import NDArray


@dataclass(frozen=True, slots=True)
class Table:
    """Codes of shape (n_items, n_raters), -1 for none, and the declared number of classes."""

    codes: NDArray[np.int64]
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
    q, raters = draw(st.integers(2, 6)), draw(st.integers(2, 7))
    shape = draw(st.integers(2, 200)), raters
    known, missing = draw(st.floats(0, 1)), draw(st.floats(0, 0.8))
    rng = np.random.default_rng(draw(st.integers(0, 2**32)))
    prevalence = rng.dirichlet(np.ones(q))
    truth = rng.choice(q, size=(shape[0], 1), p=prevalence)
    guess = rng.choice(q, size=shape, p=prevalence)
    codes = np.where(rng.random(shape) < known, truth, guess)
    codes[rng.random(shape) < missing] = -1
    return Table(codes, q)
