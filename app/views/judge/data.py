"""What the Judge page draws, worked out once for a state of the store."""

from dataclasses import dataclass

import streamlit as st

from calibration.analyses.agreement.recommendations import Recommendation
from calibration.analyses.evidence.from_store import load_judged, with_context
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


@st.cache_resource(show_spinner="Calibrating the judge", max_entries=8)
def analysed(asked: Asked, _store: Store) -> Found:
    """Return the analyses of the page.

    Raises
    ------
    CalibrationError
        As `load_judged` and `calibrate_judge`.
    """
    data = load_judged(_store, asked.batch_id, asked.judge_id, sample=False)
    result = calibrate_judge(data, CalibrationOptions(design=asked.design))
    data = with_context(_store, data)
    diagnosed = diagnose(data, CalibrationOptions())
    traces = judged_traces(data)
    head = result.calibration.headline_estimate
    plan = _plan(asked, half_width_wanted(None if head is None else head.net.half_width), _store)
    judges = tuple(str(name) for name in _store.judge_frame()["judge_id"])
    taxonomy = _store.taxonomy()
    return Found(
        asked=asked,
        result=result,
        diagnosed=diagnosed,
        traces=traces,
        plan=plan,
        steps=judge_steps(result, diagnosed, traces, taxonomy, plan=plan, n_judges=len(judges)),
        judges=judges,
        taxonomy=taxonomy,
    )


def _plan(asked: Asked, half_width: float, store: Store) -> Plan | None:
    try:
        return plan_batch(
            store, n=2, half_width=half_width, judge_id=asked.judge_id, batch_id=asked.batch_id
        )
    except CalibrationError:
        return None


@st.cache_resource(show_spinner="Planning", max_entries=32)
def planned(asked: Asked, half_width: float, _store: Store) -> Plan | None:
    """Return what a half-width takes; None where nothing tells."""
    return _plan(asked, half_width, _store)


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
