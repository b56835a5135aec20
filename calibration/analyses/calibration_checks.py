"""What files and tables cannot prove: whether their labels allow a rate at all.

The store draws its batches itself. A file only claims that its labels are a random sample.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import ArrayLike, NDArray

from calibration.correction.calibrate import Calibration, NetGross, Notice
from calibration.correction.quality import ClassQuality, JudgeQuality
from calibration.estimates import Estimate, not_estimable

# The judge as it is rests on no label.
WITHOUT_LABELS = ("judge_raw",)
# A random sample that leaves out a verdict by chance as rarely as this is none.
TOO_UNLIKELY = 0.001
# Workflows and judges with a smaller share of either side say nothing against the other.
SHARE_THAT_COUNTS = 0.02


@dataclass(frozen=True, slots=True, kw_only=True)
class Objection:
    """Why nothing may be estimated from these labels; a `Notice` once it meets an estimator."""

    code: str
    why: str
    mend: str


def refused(calibration: Calibration, objections: Iterable[Objection]) -> Calibration:
    """Refuse every estimator that rests on the labels; without objections nothing changes."""
    found = list(objections)
    if not found:
        return calibration
    against = [name for name in calibration.estimates if name not in WITHOUT_LABELS]
    notices = [
        Notice(code=one.code, estimator=name, why=one.why, mend=one.mend)
        for one in found
        for name in against
    ]
    why = "; ".join(f"{one.why} ({one.mend})" for one in found)
    return replace(
        calibration,
        headline=None,
        estimates={
            name: NetGross(net=_refused(e.net, why), gross=_refused(e.gross, why))
            if name in against
            else e
            for name, e in calibration.estimates.items()
        },
        class_shares={
            name: tuple(_refused(share, why) for share in shares)
            for name, shares in calibration.class_shares.items()
        },
        gain=None if calibration.gain is None else _refused(calibration.gain, why),
        refusals=(*notices, *calibration.refusals),
        # What would make a number narrower says nothing where there is none.
        warnings=tuple(w for w in calibration.warnings if w.estimator not in against),
    )


def _refused(estimate: Estimate, why: str) -> Estimate:
    if not estimate.ok:
        why = f"{why}; {estimate.status.removeprefix('not_estimable: ')}"
    return not_estimable(
        why, method=estimate.method, n=estimate.n, confidence_level=estimate.confidence_level
    )


def checked_claims(
    calibration: Calibration,
    *,
    production_counts: ArrayLike,
    verdict_names: Sequence[str],
    classes: Sequence[str],
) -> Calibration:
    """Refuse what labels of one class, or of chosen traces, cannot support.

    Parameters
    ----------
    calibration : Calibration
    production_counts : array-like of int, shape (n_verdicts,)
        Judged production traces by verdict.
    verdict_names, classes : sequence of str
        In the order of the confusion table.

    Returns
    -------
    Calibration
        With the refusals ``one_class_only`` (every label is of one class: the recall of that class
        is what can be known) and, for design ``"production"``, ``not_a_sample`` (a verdict that a
        random sample would hold has no label). Warned of ``chosen_by_verdict``: every labelled
        trace has one verdict, so that recall may be 1 by construction.
    """
    table = calibration.confusion.table
    labelled, labels = table.sum(axis=0), calibration.n_labels
    share = _shares(production_counts)
    unlikely = (labelled == 0) & ((1 - share) ** labels < TOO_UNLIKELY)
    missing = np.flatnonzero(unlikely).tolist()
    objections = []
    only = np.flatnonzero(table.sum(axis=1) > 0)
    if only.size == 1:
        objections.append(_one_class(classes[int(only[0])], labels))
        judge = _of_one_class(calibration.judge)
        calibration = replace(calibration, judge=judge)
    if calibration.design == "production" and missing:
        objections += [_not_drawn(verdict_names[k], float(share[k]), labels) for k in missing]
    seen = np.flatnonzero(labelled > 0)
    result = refused(calibration, objections)
    if seen.size == 1 and missing:
        one = verdict_names[int(seen[0])]
        warning = _chosen(one, float(share[seen[0]]), labels)
        result = replace(result, warnings=(*result.warnings, warning))
    return result


def _shares(counts: ArrayLike) -> NDArray[np.float64]:
    array = np.asarray(counts, dtype=np.float64)
    return array / max(1.0, float(array.sum()))


def _one_class(name: str, n: int) -> Objection:
    return Objection(
        code="one_class_only",
        why=f"all {n:,} labelled traces are of the human class {name}: only its recall can be "
        "known, no rate",
        mend="label traces of the other classes, best 100 drawn at random from production",
    )


def _not_drawn(name: str, share: float, n: int) -> Objection:
    return Objection(
        code="not_a_sample",
        why=f"no label on a trace with verdict {name}, {100 * share:.1f} % of production: "
        f"{n:,} traces drawn at random would hold some",
        mend="draw traces at random from all of production and label those",
    )


def _chosen(name: str, share: float, n: int) -> Notice:
    return Notice(
        code="chosen_by_verdict",
        estimator="judge",
        why=f"all {n:,} labelled traces have the verdict {name}, {100 * share:.1f} % of "
        "production: if they were chosen by their verdict, recall is 1 or 0 by construction",
        mend="label traces whatever their verdict",
    )


def _of_one_class(quality: JudgeQuality) -> JudgeQuality:
    """Keep recall: what else there is depends on classes that have no label."""
    why = "every label is of one class; label traces of the others"
    return replace(
        quality,
        accuracy=_refused_quality(quality.accuracy, why),
        per_class=tuple(
            ClassQuality(
                recall=one.recall,
                precision=_refused_quality(one.precision, why),
                n_human=one.n_human,
                n_judge=one.n_judge,
            )
            for one in quality.per_class
        ),
    )


def _refused_quality(estimate: Estimate, why: str) -> Estimate:
    return _refused(estimate, why) if estimate.ok else estimate


def other_side(
    code: str, what: str, reference: Sequence[str], production: Sequence[str]
) -> list[Objection]:
    """Object to a reference set that carries other workflows, or another judge, than production.

    Examples
    --------
    >>> other_side("other_workflows", "workflows", ["a"] * 9, ["a"] * 5 + ["b"] * 5)[0].why
    'workflows of production without a reference label: b (50.0 %)'
    >>> other_side("other_workflows", "workflows", ["a", "b"], ["b", "a", "a"])
    []
    """
    sides = (
        (reference, production, f"{what} of production without a reference label"),
        (production, reference, f"{what} of the reference that production does not have"),
    )
    found = []
    for known, asked, why in sides:
        names, counts = np.unique(np.array(asked, dtype=object).astype(str), return_counts=True)
        share = counts / max(1, len(asked))
        strange = [
            f"{name:.60} ({100 * part:.1f} %)"
            for name, part in zip(names.tolist(), share.tolist(), strict=True)
            if name not in set(known) and part > SHARE_THAT_COUNTS
        ]
        if strange:
            listed = ", ".join(strange[:5]) + (", ..." if len(strange) > 5 else "")
            found.append(
                Objection(
                    code=code,
                    why=f"{why}: {listed}",
                    mend="label 100 random production traces, or reference traces like them",
                )
            )
    return found
