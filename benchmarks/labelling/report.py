"""Times of one run, and what the page in docs/ says of them."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Self

import numpy as np

HEAD = """# The labelling desk, measured

`make bench` measures and adds a section here, newest first. Times are in milliseconds and depend
on the machine: compare the ratios, which are measured in one run. `benchmarks/labelling/` holds the
code.
"""


@dataclass(frozen=True)
class Times:
    """How long something took, in milliseconds."""

    what: str
    n: int
    p50: float
    p95: float

    @classmethod
    def of(cls, what: str, milliseconds: Sequence[float]) -> Self:
        """Summarise single times; without any, both quantiles are NaN."""
        if not milliseconds:
            return cls(what, 0, float("nan"), float("nan"))
        p50, p95 = np.percentile(milliseconds, [50, 95])
        return cls(what, len(milliseconds), float(p50), float(p95))
