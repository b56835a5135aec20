"""What the Reliability page draws, worked out once for a state of the store, or of files."""

import hashlib
import json
import shlex
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any

import streamlit as st

from app.components.uploaded import as_uploaded, on_disk
from calibration.analyses.look import option_words
from calibration.analyses.reliability.from_store import (
    LabelledAgent,
    labelled_agents,
    read_stored_runs,
)
from calibration.analyses.reliability.runs import (
    ReliabilityReport,
    RepeatedRuns,
    measure_reliability,
    read_runs,
    trial_frame,
)
from calibration.analyses.reliability.trials import TrialOptions, TrialsAnalysis, analyse_trials
from calibration.errors import CalibrationError, InputError
from calibration.reliability.robustness import ARMS
from calibration.reporting import to_json
from calibration.reporting.document import Document, markdown
from calibration.reporting.render_html import html
from calibration.reporting.sections.reliability import document
from calibration.store import Store
from calibration.tables.reading import ReadingOptions
from calibration.tables.trials import read_task_groups

# The curve of pass@k and pass^k ends here, whatever the number of runs.
MOST_K = 10


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """What the page is about; everything here and nothing else decides what it shows."""

    path: str
    agent: LabelledAgent
    state: tuple[object, ...]


@dataclass(frozen=True, kw_only=True)
class Found:
    """The reliability of repeated runs, of the store or of a file.

    Parameters
    ----------
    trials : TrialsAnalysis or None
        pass@k and pass^k of the runs without perturbation; None without any.
    runs : RepeatedRuns or None
        Runs whose names are traces of the store; None of a file.
    words : str
        The command that prints the same, after ``asr``.
    """

    report: ReliabilityReport
    trials: TrialsAnalysis | None
    runs: RepeatedRuns | None
    words: str

    @cached_property
    def document(self) -> Document:
        """The report as the command prints it."""
        return document(self.report)

    @property
    def tells(self) -> bool:
        """Whether any part can be measured."""
        of = self.report
        scores = (of.consistency.score, of.predictability.score, of.robustness.score)
        return any(score.ok for score in (*scores, of.safety.score))

    @cached_property
    def runs_of(self) -> Mapping[str, list[dict[str, Any]]]:
        """The runs of each task that are traces of the store, as rows of a table."""
        found: dict[str, list[dict[str, Any]]] = {}
        if self.runs is None:
            return found
        runs = self.runs
        for k, trace_id in enumerate(runs.run):
            found.setdefault(runs.tasks[runs.task[k]], []).append(
                {
                    "trace": trace_id,
                    "succeeded": "yes" if runs.success[k] else "no",
                    "perturbation": ARMS[runs.arm[k]],
                    "confidence": runs.confidence[k],
                    "actions": int(runs.actions.lengths[k]) if runs.actions.known[k] else None,
                    "cost in USD": runs.amounts["cost"][k],
                }
            )
        return found

    def file(self, kind: str) -> str:
        """Return the report as HTML, Markdown or JSON."""
        if kind == "html":
            return html(self.document)
        if kind == "md":
            return markdown(self.document)
        data = to_json.data(self.report)
        return json.dumps(data, indent=2, ensure_ascii=False, allow_nan=False) + "\n"


@st.cache_resource(show_spinner=False, max_entries=8)
def agents(path: str, state: tuple[object, ...], _store: Store) -> tuple[LabelledAgent, ...]:
    """Return the agents of which runs are labelled; everything but the store tells it apart."""
    del path, state
    return labelled_agents(_store)


@st.cache_resource(show_spinner="Measuring reliability", max_entries=8)
def measured(asked: Asked, _store: Store) -> Found:
    """Return what the page shows of the store.

    Raises
    ------
    CalibrationError
        As `reliability_frame`.
    """
    agent = asked.agent
    runs = read_stored_runs(_store, model=agent.model, agent_version=agent.agent_version)
    options = {"--model": agent.model, "--agent-version": agent.agent_version}
    words = " ".join(["reliability", *(f"{k} {shlex.quote(v)}" for k, v in options.items() if v)])
    return _found(runs, measure_reliability(runs), words, kept=True)


def of_files(runs: Any, tasks: Any | None, options: ReadingOptions) -> Found:
    """Return what the page shows of a file that was handed in, and perhaps of one on its tasks.

    Raises
    ------
    InputError
        As `read_runs` and `read_task_groups`; files are named as the person does.
    """
    digest = hashlib.sha256()
    for upload in (runs, tasks):
        if upload is not None:
            digest.update(f"{upload.name} {upload.size} ".encode())
            digest.update(upload.getbuffer())
    digest.update(repr(options).encode())
    return _of_files(digest.hexdigest(), [runs], [] if tasks is None else [tasks], options)


@st.cache_resource(show_spinner="Measuring reliability", max_entries=4)
def _of_files(digest: str, _runs: list[Any], _tasks: list[Any], _options: ReadingOptions) -> Found:
    del digest
    with on_disk([*_runs, *_tasks]) as ((path, *more), folder):
        try:
            read = _unplaced(read_runs(path, _options), folder)
            groups = read_task_groups(more[0]) if more else None
            words = shlex.join(["reliability", path.name, *option_words(_options)])
            if more:
                words += f" --tasks {shlex.quote(more[0].name)}"
            report = measure_reliability(read, groups)
            return _found(read, report, words, kept=False, groups=groups)
        except CalibrationError as error:
            raise InputError(as_uploaded(str(error), folder)) from error


def _unplaced(runs: RepeatedRuns, folder: Path) -> RepeatedRuns:
    """Name the file as the person does, without the place where it lay."""
    return replace(
        runs,
        place=as_uploaded(runs.place, folder),
        success_source=as_uploaded(runs.success_source, folder),
        reading=runs.reading
        and replace(runs.reading, place=as_uploaded(runs.reading.place, folder)),
    )


def _found(
    runs: RepeatedRuns,
    report: ReliabilityReport,
    words: str,
    *,
    kept: bool,
    groups: Mapping[str, Mapping[str, str]] | None = None,
) -> Found:
    k = report.runs_per_task
    trials = None
    if k is not None:
        options = TrialOptions(ks=tuple(range(1, min(k.max, MOST_K) + 1)))
        trials = analyse_trials(trial_frame(runs), options, groups=groups)
    return Found(report=report, trials=trials, runs=runs if kept else None, words=words)
