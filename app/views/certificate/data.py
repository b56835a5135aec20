"""What the Certificate page works on, read again only when it changes."""

from datetime import UTC, datetime
from pathlib import Path

import numpy as np
import streamlit as st

from calibration.analyses.reviewers.exam_report import OperatingPoint, operating_curve, right_needed
from calibration.analyses.reviewers.examinations import Examiner, exam_form, examiner
from calibration.store import Store
from calibration.taxonomy import Taxonomy
from reference_dataset.loader import ReferenceSet
from reference_dataset.team import layer

SEED = 9
FEWEST_TIMED = 5


def by(store: Store) -> Examiner:
    """Return what this team examines by; its private labels stay in this process."""
    own = layer(store.path)
    changed = max((p.stat().st_mtime for p in [own, *own.rglob("*")] if p.exists()), default=0.0)
    return _examiner(str(store.path), store.taxonomy().fingerprint, changed, store.taxonomy())


@st.cache_resource(show_spinner=False, max_entries=2)
def _examiner(path: str, tree: str, changed: float, _taxonomy: Taxonomy) -> Examiner:
    return examiner(Path(path), _taxonomy)


def form_size(dataset: ReferenceSet) -> int:
    """Return the traces of a form."""
    return exam_form(dataset).total()


def pass_rule(store: Store, dataset: ReferenceSet) -> str:
    """Return what an examination asks for, with a number where the form has these classes."""
    counts = exam_form(dataset)
    try:
        right = right_needed(store.taxonomy(), counts)
    except ValueError:  # a team's own classes, which the form has not or hardly
        return "You pass when you recognise every class."
    return f"You pass with about {right} of {counts.total()} right and every class recognised."


def pace(store: Store, reviewer_id: str) -> float | None:
    """Return a person's median seconds a trace in practice; None before five timed labels."""
    timed = [label.seconds_active for label in store.first_labels(reviewer_id)]
    known = [seconds for seconds in timed if seconds]
    return float(np.median(known)) if len(known) >= FEWEST_TIMED else None


def curve(store: Store, found: Examiner) -> tuple[OperatingPoint, ...]:
    """Return the chance to pass by true accuracy, on a form like the first shipped one."""
    counts = exam_form(found.dataset)
    return _curve(store.taxonomy().fingerprint, tuple(sorted(counts.items())), store.taxonomy())


@st.cache_resource(show_spinner=False, max_entries=4)
def _curve(
    tree: str, counts: tuple[tuple[str, int], ...], _taxonomy: Taxonomy
) -> tuple[OperatingPoint, ...]:
    return operating_curve(_taxonomy, dict(counts), rng=np.random.default_rng(SEED))


def now() -> datetime:
    """Return the time as the store keeps it: UTC without zone."""
    return datetime.now(UTC).replace(tzinfo=None)
