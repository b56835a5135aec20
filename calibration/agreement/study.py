"""All agreement statistics of one set of ratings, from one count of its patterns."""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import ArrayLike

from calibration.agreement.annotators import (
    BesideOthers,
    EqualMargins,
    PairAgreement,
    equal_margins,
    leave_one_out,
    pairwise_agreement,
)
from calibration.agreement.coefficients import (
    FLEISS_KAPPA,
    KRIPPENDORFF_ALPHA,
    KRIPPENDORFF_ORDINAL,
    Agreement,
    agreement,
    class_kappas,
    specific_agreement,
    specific_coefficient,
    sums_of,
)
from calibration.agreement.disagreement import (
    Prevalence,
    Share,
    class_pairs,
    disagreement_shares,
    prevalence,
)
from calibration.agreement.inference import (
    Costly,
    agreement_panel,
    clusters_of,
    costly_items,
    resample,
)
from calibration.agreement.ratings import (
    RELY,
    TENTATIVE,
    CountPatterns,
    Path,
    answers_at,
    count_patterns,
    parting_questions,
    patterns_of_items,
    validated_codes,
)
from calibration.statistics.estimate import Estimate, FloatArray, IntArray


@dataclass(frozen=True, slots=True, kw_only=True)
class Options:
    """Options of a study.

    `ordinal` replaces `weights` by Krippendorff's ordinal distances, for alpha only. `interval` is
    as in `agreement_panel`; a bootstrap interval also applies to specific agreement.
    """

    weights: FloatArray | None = None
    ordinal: bool = False
    interval: str = "jackknife"
    n_resamples: int = 2000
    seed: int = 0
    confidence_level: float = 0.95


@dataclass(frozen=True, slots=True, kw_only=True)
class AlphaBootstrap:
    """Alpha on resamples: two intervals, and how often it reaches the bounds for its use.

    `reaches` is None at a bound where draws say nothing, as without any disagreement.
    """

    percentile: Estimate
    bca: Estimate
    reaches: dict[float, float | None]
    n_resamples: int
    seed: int


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeAgreement(Agreement):
    """Agreement on the answers at one question, of ratings whose path comes to it.

    `n_items` counts the items on which two or more ratings arrive: the deeper the question, the
    fewer and the more alike they are. `share` is the part of all disagreement that starts here.
    """

    share: Share


@dataclass(frozen=True, slots=True, kw_only=True)
class ConfusedPair:
    """Two classes, by position, and the part of all disagreement that lies between them."""

    first: int
    second: int
    share: Share


@dataclass(frozen=True, slots=True, kw_only=True)
class Study:
    """Agreement on one set of ratings, whole and in its parts.

    `n_items` counts items with two or more ratings, `n_raters` raters with a rating; `class_shares`
    are zeros without ratings. `confusions` are the pairs of classes that were confused, the most
    frequent first; `nodes` are by question in the order of the tree; `costly` are the items that
    lower alpha most; `groups` are by group of items, in sorted order. `fleiss_of_pairs` is Fleiss'
    kappa with the class shares of items with two or more ratings alone, None where all items are
    such or it is not defined.
    """

    coefficients: dict[str, Estimate]
    bootstrap: AlphaBootstrap
    n_items: int
    n_items_total: int
    n_ratings: int
    n_raters: int
    class_shares: tuple[float, ...]
    specific: tuple[Estimate, ...]
    class_kappas: tuple[Estimate, ...]
    confusions: tuple[ConfusedPair, ...]
    nodes: dict[str, NodeAgreement]
    pairs: tuple[PairAgreement, ...]
    beside: tuple[BesideOthers, ...]
    margins: EqualMargins
    prevalence: Prevalence
    costly: tuple[Costly, ...]
    groups: dict[str, Agreement]
    fleiss_of_pairs: float | None = None

    @property
    def alpha(self) -> Estimate:
        """Krippendorff's alpha, under the weights of the options."""
        return self.coefficients[KRIPPENDORFF_ALPHA.name]


def study(
    codes: ArrayLike,
    *,
    n_classes: int,
    options: Options | None = None,
    paths: Sequence[Path] | None = None,
    cluster: ArrayLike | None = None,
    group: Sequence[str] | None = None,
    costly: int = 50,
) -> Study:
    """Compute all agreement statistics of one set of ratings.

    Arguments, assumptions and errors as in `agreement_panel`.

    Parameters
    ----------
    paths : sequence of sequence of (question, answer), length n_classes, optional
        The path through the decision tree to each class.
    cluster : array-like, shape (n_items,), optional
        Cluster of each item; coefficients and bootstrap are then over clusters.
    group : sequence of str, length n_items, optional
        Groups to compare, for instance weeks.
    costly : int, default 50
        Largest number of costly items.

    Examples
    --------
    >>> found = study([[0, 0], [0, 1], [1, 1], [1, 1]], n_classes=2)
    >>> found.alpha.value, found.confusions[0].share.n_items, found.costly[0].item
    (0.53333, 1, 1)
    """
    chosen = options or Options()
    level = chosen.confidence_level
    array = validated_codes(codes, n_classes=n_classes)
    patterns = count_patterns(array, n_classes=n_classes)
    totals = patterns.multiplicity @ patterns.counts
    return Study(
        coefficients=agreement_panel(
            array, n_classes=n_classes, weights=chosen.weights, ordinal=chosen.ordinal,
            interval=chosen.interval, cluster=cluster, n_resamples=chosen.n_resamples,
            rng=np.random.default_rng([chosen.seed, 1]), confidence_level=level,
        ),
        bootstrap=_bootstrap(array, n_classes, chosen, cluster),
        n_items=patterns.pairable().n_items,
        n_items_total=patterns.n_items,
        n_ratings=patterns.n_ratings,
        n_raters=int((array >= 0).any(axis=0).sum()),
        class_shares=tuple((totals / max(1, patterns.n_ratings)).tolist()),
        specific=_specific(array, n_classes, chosen, cluster),
        class_kappas=class_kappas(patterns, confidence_level=level),
        confusions=_confusions(array, n_classes, level),
        nodes={} if paths is None else _nodes(array, paths, level),
        pairs=pairwise_agreement(
            array, n_classes=n_classes, weights=chosen.weights, confidence_level=level
        ),
        beside=leave_one_out(
            array, n_classes=n_classes, weights=chosen.weights, confidence_level=level
        ).raters,
        margins=equal_margins(array, n_classes=n_classes, confidence_level=level),
        prevalence=prevalence(array, n_classes=n_classes, confidence_level=level),
        costly=costly_items(KRIPPENDORFF_ALPHA, array, n_classes=n_classes, limit=costly),
        groups={} if group is None else _groups(array, n_classes, group, level),
        fleiss_of_pairs=_fleiss_of_pairs(patterns, chosen.weights),
    )  # fmt: skip


def _fleiss_of_pairs(patterns: CountPatterns, weights: ArrayLike | None) -> float | None:
    paired = patterns.pairable()
    if paired.n_items in (0, patterns.n_items):
        return None
    value = sums_of(FLEISS_KAPPA, paired, weights=weights).value()
    return value if math.isfinite(value) else None


def _specific(
    array: IntArray, n_classes: int, options: Options, cluster: ArrayLike | None
) -> tuple[Estimate, ...]:
    """Return specific agreement, with a bootstrap interval where the options ask for one."""
    level = options.confidence_level
    patterns, clusters = _units(array, n_classes, cluster)
    found = specific_agreement(patterns, confidence_level=level)
    if options.interval not in ("percentile", "bca"):
        return found
    resampled = resample(
        [sums_of(specific_coefficient(k), patterns, clusters=clusters) for k in range(n_classes)],
        rng=np.random.default_rng([options.seed, 3]), n_resamples=options.n_resamples,
        confidence_level=level,
    )  # fmt: skip
    drawn = [replace(r, seen=seen) for r, seen in zip(resampled, found, strict=True)]
    return tuple(r.percentile() if options.interval == "percentile" else r.bca() for r in drawn)


def _units(
    array: IntArray, n_classes: int, cluster: ArrayLike | None
) -> tuple[CountPatterns, IntArray | None]:
    patterns, of_item = patterns_of_items(array, n_classes=n_classes)
    if cluster is None:
        return patterns, None
    return patterns, clusters_of(of_item, cluster, n_patterns=len(patterns.counts))


def _bootstrap(
    array: IntArray, n_classes: int, options: Options, cluster: ArrayLike | None
) -> AlphaBootstrap:
    patterns, clusters = _units(array, n_classes, cluster)
    alpha = KRIPPENDORFF_ORDINAL if options.ordinal else KRIPPENDORFF_ALPHA
    (found,) = resample(
        [sums_of(alpha, patterns, weights=options.weights, clusters=clusters)],
        rng=np.random.default_rng([options.seed, 2]), n_resamples=options.n_resamples,
        confidence_level=options.confidence_level,
    )  # fmt: skip
    return AlphaBootstrap(
        percentile=found.percentile(),
        bca=found.bca(),
        reaches={bound: found.at_least(bound) for bound in (TENTATIVE, RELY)},
        n_resamples=options.n_resamples,
        seed=options.seed,
    )


def _confusions(array: IntArray, n_classes: int, level: float) -> tuple[ConfusedPair, ...]:
    pairs, part = class_pairs(n_classes)
    shares = disagreement_shares(
        count_patterns(array, n_classes=n_classes), part, n_parts=len(pairs), confidence_level=level
    )
    found = [
        ConfusedPair(first=first, second=second, share=share)
        for (first, second), share in zip(pairs, shares, strict=True)
        if share.n_items
    ]
    return tuple(sorted(found, key=lambda c: -(c.share.observed.value or 0)))


def _nodes(array: IntArray, paths: Sequence[Path], level: float) -> dict[str, NodeAgreement]:
    names = list(dict.fromkeys(question for path in paths for question, _ in path))
    place = {name: k for k, name in enumerate(names)} | {None: -1}
    part = [[place[name] for name in row] for row in parting_questions(paths)]
    shares = disagreement_shares(
        count_patterns(array, n_classes=len(paths)), part, n_parts=len(names),
        confidence_level=level,
    )  # fmt: skip
    found = {}
    for name, share in zip(names, shares, strict=True):
        answers = answers_at(array, node=name, paths=paths)
        of_node = agreement(answers, n_classes=2, confidence_level=level)
        found[name] = NodeAgreement(
            alpha=of_node.alpha, ac1=of_node.ac1, percent_agreement=of_node.percent_agreement,
            n_items=of_node.n_items, n_ratings=of_node.n_ratings, share=share,
        )  # fmt: skip
    return found


def _groups(
    array: IntArray, n_classes: int, group: Sequence[str], level: float
) -> dict[str, Agreement]:
    names = np.asarray(group, dtype=str)
    if names.shape != (len(array),):
        raise ValueError(f"group must have one entry an item, got shape {names.shape!r}")
    return {
        str(name): agreement(array[names == name], n_classes=n_classes, confidence_level=level)
        for name in np.unique(names)
    }
