"""What the ASR page draws, worked out once for a state of the store."""

import json
import shlex
from dataclasses import dataclass

import streamlit as st

from calibration.analyses.evidence.data import CalibrationData
from calibration.analyses.evidence.from_store import WHOLE, Part, load_batch
from calibration.analyses.success_rate.from_store import (
    ReportChoices,
    StoreReport,
    report_choices,
    report_on_store,
    report_with_work,
    without_models,
)
from calibration.analyses.success_rate.report import ReportOptions, SuccessRateReport
from calibration.reporting import to_json
from calibration.reporting.document import Document, markdown
from calibration.reporting.render_html import html
from calibration.reporting.sections.success_rate import document
from calibration.store import Store


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """What the page is about; everything here and nothing else decides what it shows.

    Parameters
    ----------
    batch_id : str
        Empty where the outcomes that came with the runs are taken as given.
    models : bool
        Whether models may be named: reviewers who label must not know them.
    """

    path: str
    batch_id: str
    judge_id: str | None
    since: str | None
    until: str | None
    workflow: str | None
    models: bool
    state: tuple[object, ...]

    @property
    def words(self) -> str:
        """The command that prints the same, after ``asr``."""
        options = {
            "--batch": self.batch_id, "--judge": self.judge_id, "--from": self.since,
            "--to": self.until, "--workflow": self.workflow,
        }  # fmt: skip
        return " ".join(["report", *(f"{k} {shlex.quote(v)}" for k, v in options.items() if v)])


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Found:
    """The report and what it says, as the command line prints it.

    `made` has the labelled runs behind it; None where outcomes are taken as given.
    """

    asked: Asked
    report: SuccessRateReport
    document: Document
    made: StoreReport | None = None

    def file(self, kind: str) -> str:
        """Return the report as ``html``, ``md`` or ``json``, as the command line writes it."""
        if kind == "html":
            return html(self.document)
        if kind == "md":
            return markdown(self.document)
        data = to_json.data(self.report)
        return json.dumps(data, indent=2, ensure_ascii=False, allow_nan=False) + "\n"


@st.cache_resource(show_spinner="Calculating the rate, a few seconds", max_entries=12)
def reported(asked: Asked, _store: Store) -> Found:
    """Return the report of the page.

    Raises
    ------
    CalibrationError
        As `report_with_work`.
    """
    options = ReportOptions(
        batch_id=asked.batch_id or None,
        judge_id=asked.judge_id,
        as_given=not asked.batch_id,
        workflow=asked.workflow,
        since=asked.since,
        until=asked.until,
    )
    if not asked.batch_id:
        report = report_on_store(_store, options)
        return Found(asked=asked, report=report, document=document(report))
    key = (asked.path, asked.state)
    made = report_with_work(
        _store, options, load=lambda store, batch, *, part: _batch(key, batch, part, store)
    )
    if not asked.models:
        made = without_models(made)
    return Found(asked=asked, report=made.report, document=document(made.report), made=made)


@st.cache_resource(show_spinner=False, max_entries=8)
def choices(key: tuple[object, ...], batch_id: str, _store: Store) -> ReportChoices:
    """Return what the report can be narrowed to; `key` names the store and its state.

    Raises
    ------
    CalibrationError
        As `load_batch`.
    """
    if not batch_id:
        return report_choices(_store.production_traces())
    return report_choices(_batch(key, batch_id, WHOLE, _store).traces)


@st.cache_resource(show_spinner=False, max_entries=2)
def _batch(
    key: tuple[object, ...], batch_id: str | None, part: Part, _store: Store
) -> CalibrationData:
    """Return what every choice of a workflow reads; `key` names the store and its state."""
    del key
    return load_batch(_store, batch_id, part=part)
