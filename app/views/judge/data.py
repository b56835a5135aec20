"""What the Judge page draws, worked out once for a state of the store."""

from dataclasses import dataclass

import streamlit as st

from calibration.analyses.agreement.recommendations import Recommendation
from calibration.analyses.evidence.data import CalibrationData
from calibration.analyses.evidence.from_store import (
    judged_of,
    load_batch,
    pooled_id,
    with_context,
)
from calibration.analyses.judge.calibration import (
    CHOSEN,
    CalibrationOptions,
    JudgeCalibration,
    calibrate_judge,
)
from calibration.analyses.judge.diagnostics import (
    JudgeDiagnostics,
    JudgedTraces,
    diagnose,
    judged_traces,
)
from calibration.analyses.judge.drift import JudgeDrift, compare_judges
from calibration.analyses.judge.groups import GroupRates, analyse_groups
from calibration.analyses.judge.recommendations import half_width_wanted, judge_steps
from calibration.analyses.sampling.planning import Plan, plan_batch
from calibration.errors import CalibrationError
from calibration.judge_calibration.samples import Design
from calibration.store import Store
from calibration.taxonomy import Taxonomy


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """What the page is about; everything here and nothing else decides what it shows."""

    path: str
    batch_id: str
    judge_id: str
    design: Design
    state: tuple[object, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Found:
    """Everything about one judge on one batch.

    Parameters
    ----------
    plan : Plan or None
        What the judge is worth and what the next half-width takes; None where nothing tells.
    judges : tuple of str
        All that have verdicts in the store.
    """

    asked: Asked
    result: JudgeCalibration
    diagnosed: JudgeDiagnostics
    traces: JudgedTraces
    plan: Plan | None
    steps: tuple[Recommendation, ...]
    judges: tuple[str, ...]
    taxonomy: Taxonomy

    @property
    def is_sample(self) -> bool:
        """Whether the labelled traces were drawn at random."""
        return all(notice.code != CHOSEN.code for notice in self.result.calibration.refusals)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class _Evidence:
    """What does not depend on what the labelled traces are: a sample of production, or not."""

    loaded: CalibrationData
    judged: CalibrationData
    diagnosed: JudgeDiagnostics
    traces: JudgedTraces


@st.cache_resource(show_spinner="Reading the verdicts", max_entries=2)
def _evidence(key: tuple[object, ...], batch_id: str, judge_id: str, _store: Store) -> _Evidence:
    """Return the traces with labels and verdicts; `key` names the store and its state."""
    del key
    loaded = load_batch(_store, pooled_id(_store, batch_id), sample=False)
    judged = judged_of(_store, loaded, judge_id)
    context = with_context(_store, judged)
    return _Evidence(
        loaded=loaded,
        judged=judged,
        diagnosed=diagnose(context, CalibrationOptions()),
        traces=judged_traces(context),
    )


def _evidence_of(asked: Asked, store: Store) -> _Evidence:
    return _evidence((asked.path, asked.state), asked.batch_id, asked.judge_id, store)


@st.cache_resource(show_spinner="Calibrating the judge", max_entries=8)
def analysed(asked: Asked, _store: Store) -> Found:
    """Return the analyses of the page.

    Raises
    ------
    CalibrationError
        As `load_batch`, `judged_of` and `calibrate_judge`.
    """
    found = _evidence_of(asked, _store)
    result = calibrate_judge(found.judged, CalibrationOptions(design=asked.design))
    head = result.calibration.headline_estimate
    plan = planned(asked, half_width_wanted(None if head is None else head.net.half_width), _store)
    judges = tuple(str(name) for name in _store.judge_frame()["judge_id"])
    taxonomy = _store.taxonomy()
    return Found(
        asked=asked,
        result=result,
        diagnosed=found.diagnosed,
        traces=found.traces,
        plan=plan,
        steps=judge_steps(
            result, found.diagnosed, found.traces, taxonomy, plan=plan, n_judges=len(judges)
        ),
        judges=judges,
        taxonomy=taxonomy,
    )


@st.cache_resource(show_spinner="Planning", max_entries=32)
def planned(asked: Asked, half_width: float, _store: Store) -> Plan | None:
    """Return what a half-width takes; None where nothing tells."""
    loaded = _evidence_of(asked, _store).loaded
    try:
        return plan_batch(
            _store,
            n=2,
            half_width=half_width,
            judge_id=asked.judge_id,
            batch_id=asked.batch_id,
            loaded=loaded if loaded.is_sample else None,
        )
    except CalibrationError:
        return None


@st.cache_resource(show_spinner="Comparing groups", max_entries=32)
def grouped(asked: Asked, by: str, _store: Store) -> GroupRates:
    """Return the corrected rate of each group of one kind.

    Raises
    ------
    CalibrationError
        If the labelled traces were chosen.
    """
    return analyse_groups(
        _store, asked.batch_id, by=by, judge_id=asked.judge_id, design=asked.design
    )


@st.cache_resource(show_spinner="Comparing the two judges", max_entries=8)
def compared(asked: Asked, before: str, _store: Store) -> JudgeDrift:
    """Return how this judge differs from another one.

    Raises
    ------
    CalibrationError
        As `compare_judges`.
    """
    return compare_judges(_store, before, asked.judge_id, batch_id=asked.batch_id)
