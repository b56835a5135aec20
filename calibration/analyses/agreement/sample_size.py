"""Number of traces to label for an agreement interval of a given width."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

import numpy as np

from calibration.agreement.coefficients import GWET_AC, KRIPPENDORFF_ALPHA
from calibration.agreement.sample_size import AgreementPlan, ItemsNeeded, plan_items
from calibration.analyses.evidence.from_store import load_batch
from calibration.errors import CalibrationError, InputError

if TYPE_CHECKING:
    from calibration.store import Store

Planned = Literal["krippendorff_alpha", "gwet_ac"]
COEFFICIENTS = {"krippendorff_alpha": KRIPPENDORFF_ALPHA, "gwet_ac": GWET_AC}


@dataclass(frozen=True, slots=True, kw_only=True)
class ClassShares:
    """Class shares to plan with, and their source.

    `classes` and `batch_id` are empty, and `n_labels` is 0, when the shares were given.
    """

    shares: tuple[float, ...]
    classes: tuple[str, ...] = ()
    batch_id: str | None = None
    n_labels: int = 0
    simulated: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class PlannedAgreement:
    """A plan, where its class shares are from, and what is assumed, in sentences."""

    plan: AgreementPlan
    basis: ClassShares
    notes: tuple[str, ...]

    def labels(self, part: ItemsNeeded) -> int | None:
        """Return the expected number of labels on the traces of a part."""
        if part.n is None:
            return None
        return round(part.n * self.plan.n_raters * (1 - self.plan.missing))


def shares_of_batch(store: "Store", batch_id: str | None = None) -> ClassShares:
    """Return the share of each class in the labels of a batch.

    InputError for an unknown batch; CalibrationError without a batch or with one class only.
    """
    loaded = load_batch(store, batch_id, sample=False)
    counts = np.bincount(
        loaded.labels["code"].to_numpy(dtype=np.int64), minlength=len(loaded.classes)
    )
    if (counts > 0).sum() < 2:
        seen = "no labels yet" if counts.sum() == 0 else "labels of one class only"
        raise CalibrationError(
            f"batch {loaded.batch.batch_id!r} has {seen}, so "
            "the class shares are not known; give --class-shares"
        )
    return ClassShares(
        shares=tuple((counts / counts.sum()).tolist()),
        classes=loaded.classes,
        batch_id=loaded.provenance.batch_id,
        n_labels=int(counts.sum()),
        simulated=loaded.simulated,
    )


def plan_agreement(
    basis: ClassShares | Sequence[float],
    *,
    alpha: float,
    n_raters: int,
    half_width: float,
    missing: float = 0.0,
    coefficient: Planned = "krippendorff_alpha",
    confidence_level: float = 0.95,
    seed: int = 0,
) -> PlannedAgreement:
    """Plan the number of traces for an interval of a given half-width.

    InputError names an argument outside its range.
    """
    if not isinstance(basis, ClassShares):
        basis = ClassShares(shares=tuple(basis))
    if seed < 0:
        raise InputError(f"seed must not be negative, got {seed}")
    try:
        plan = plan_items(
            basis.shares,
            alpha=alpha,
            n_raters=n_raters,
            half_width=half_width,
            missing=missing,
            confidence_level=confidence_level,
            coefficient=COEFFICIENTS[coefficient],
            rng=np.random.default_rng(seed),
        )
    except ValueError as error:
        raise InputError(str(error)) from error
    return PlannedAgreement(plan=plan, basis=basis, notes=_notes(plan, basis))


def _notes(plan: AgreementPlan, basis: ClassShares) -> tuple[str, ...]:
    notes = []
    if basis.batch_id is not None:
        notes.append(
            f"class shares are those of {basis.n_labels:,} labels of {basis.batch_id}; the new "
            "traces are assumed to be alike"
        )
    notes.append(
        "reviewers are assumed to make errors independently of each other; shared errors need "
        "more traces"
    )
    notes.append(
        f"{plan.typical.repetitions:,} simulated samples of each size tried; traces to about 1 %"
    )
    return tuple(notes)
