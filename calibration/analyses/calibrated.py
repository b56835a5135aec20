"""A judge calibrated against human labels, wherever the two came from."""

from dataclasses import dataclass, field
from typing import Any

from calibration.correction.calibrate import Calibration, Design
from calibration.estimates import Estimate
from calibration.records import SetAside

# Above this share of skipped traces the report says what the worst of them could do.
SKIPPED_SHARE_SHOWN = 0.03


@dataclass(frozen=True, slots=True, kw_only=True)
class Choices:
    """How to calibrate; as the parameters of `calibrate`."""

    design: Design = "production"
    pseudo_count: float = 0.5
    confidence_level: float = 0.95
    seed: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class HumanSide:
    """What the human side of the labelled traces is made of.

    A trace counts by its adjudicated class if it has one, else by the mean over its reviewers.

    Parameters
    ----------
    n_labels : int
        Labels behind the traces.
    reviewers : tuple of str
        Empty where they are not named.
    n_shared : int
        Traces with labels of two or more reviewers.
    n_adjudicated, n_open : int
        Traces that somebody has settled; traces on which reviewers differ and nobody has.
    skipped_by_verdict : dict of int
        Traces that reviewers were asked about and did not label, by what the judge said.
    """

    n_labels: int
    reviewers: tuple[str, ...]
    n_shared: int
    n_adjudicated: int
    n_open: int
    skipped_by_verdict: dict[str, int]


@dataclass(frozen=True, slots=True, kw_only=True)
class Calibrated:
    """A judge calibrated against human labels.

    Parameters
    ----------
    design : {"production", "reference"}
    classes : tuple of str
        In the order of `calibration`.
    credit : dict of float
        By class.
    verdict_names : tuple of str
        The classes first; one a column of the confusion table.
    alpha : Estimate
        Krippendorff's alpha of human against judge.
    human : HumanSide or None
        None where only a table is known.
    without_reviewer : dict of float or None
        The headline when one reviewer's labels are left out: reviewer error is shown there and is
        not part of the interval.
    skipped : int
        Traces that were asked about and not labelled.
    if_skipped : tuple of float, optional
        The headline under the worst and the best class for skipped traces, when more than 3 %
        were skipped.
    disagreements : tuple of dict
        Labelled traces on which not every human agrees with the verdict.
    notes : tuple of str
        What a reader must know that is neither refusal nor warning.
    set_aside : tuple of SetAside
        Rows that were not used, and why.
    """

    design: Design
    classes: tuple[str, ...]
    credit: dict[str, float]
    verdict_names: tuple[str, ...]
    calibration: Calibration
    alpha: Estimate
    human: HumanSide | None = None
    without_reviewer: dict[str, float | None] = field(default_factory=dict)
    skipped: int = 0
    if_skipped: tuple[float, float] | None = None
    disagreements: tuple[dict[str, Any], ...] = ()
    notes: tuple[str, ...] = ()
    set_aside: tuple[SetAside, ...] = ()
    seed: int = 0
    fingerprint: str


def range_if_skipped(
    calibration: Calibration, *, skipped: int, labelled: int
) -> tuple[float, float] | None:
    """Return the headline if every skipped trace were worth nothing, and if every one were whole.

    None without a headline or when at most 3 % were skipped.
    """
    asked = skipped + labelled
    headline = calibration.headline_estimate
    if headline is None or headline.net.value is None or skipped <= SKIPPED_SHARE_SHOWN * asked:
        return None
    share = skipped / asked
    low = (1 - share) * headline.net.value
    return low, low + share
