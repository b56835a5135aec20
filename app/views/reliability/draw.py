"""The pictures of the Reliability page, each with the numbers of the command's report below it."""

from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import partial

import pandas as pd
import streamlit as st

from app import session
from app.components import document, trace_links
from app.components.charts import Curve, curves_chart, interval_chart, parts_chart
from app.components.sections import folded
from app.components.tables import RELIABILITY, cell_of
from app.views.reliability.data import Found
from calibration.analyses.reliability.runs import ReliabilityReport
from calibration.analyses.reliability.trials import PassFigure, TrialsAnalysis
from calibration.reporting.document import Section, Table, percent_figure
from calibration.reporting.sections import trials as passes
from calibration.reporting.sections.reliability import (
    PREDICTABILITY,
    ROBUSTNESS,
    SAFETY,
    TASKS,
    TASKS_SHOWN,
)
from calibration.store import Store
from calibration.tables.trials import GROUPS
from calibration.text import counted

# Points of the risk-coverage curve: more than these no screen shows.
MOST_POINTS = 100
PASSES, WHOLE = "pass@k and pass^k", ("Dimensions",)
# Parts of the report on trials below the curve, and what their widgets are called.
PARTS = {passes.BAYESIAN: "bayesian"} | {passes.by_group(name): name for name in GROUPS}


def sections(store: Store, found: Found) -> None:
    """Draw the sections, folded: those of the report, each with its picture, and the passes."""
    if found.trials is not None:
        folded(RELIABILITY.key("passes"), PASSES, _passes_answer(found.trials),
               partial(_passes, found.trials))  # fmt: skip
    pictures = {
        PREDICTABILITY: _confidence, ROBUSTNESS: _perturbations, SAFETY: _violations,
    }  # fmt: skip
    for number, section in enumerate(found.document.sections):
        key = RELIABILITY.key(f"s{number}")
        if section.title == TASKS:
            folded(RELIABILITY.listing, section.title, _tasks_answer(found),
                   partial(_tasks, store, found, section))  # fmt: skip
        elif section.title in pictures:
            draw = partial(_pictured, found.report, pictures[section.title], section, key)
            folded(key, section.title, section.answer, draw)
        elif section.title not in WHOLE:
            document.section(section, key=key)


def _pictured(
    report: ReliabilityReport,
    picture: Callable[[ReliabilityReport], None],
    section: Section,
    key: str,
) -> None:
    picture(report)
    # The picture has drawn what the tables with a title hold.
    kept = [
        replace(block, scale=None, folded=True)
        if isinstance(block, Table) and block.title
        else block
        for block in section.blocks
    ]
    document.blocks(kept, key=key)


# pass@k


def _passes_answer(found: TrialsAnalysis) -> str:
    last = [k for k in found.ks if found.pass_hat_k[k].estimate.ok]
    if not last:
        return "not estimable"
    return ", ".join(
        f"{name}{k} {percent_figure(of[k].estimate)}"
        for name, k, of in (
            ("pass@", last[0], found.pass_at_k), ("pass^", last[-1], found.pass_hat_k),
        )
    )  # fmt: skip


def _passes(found: TrialsAnalysis) -> None:
    curves_chart(
        [
            _curve("pass@k: at least one of k runs succeeds", found.pass_at_k),
            _curve("pass^k: all k runs succeed", found.pass_hat_k),
        ],
        title="Success of k runs of a task", x="k, runs of a task", y="mean over tasks",
        counts=True,
    )  # fmt: skip
    first, *others = passes.trials(found).sections
    document.blocks(first.blocks, key=RELIABILITY.key("passes_table"))
    for part in others:
        name = PARTS.get(part.title)
        if name is not None:
            inside = partial(document.blocks, part.blocks, key=RELIABILITY.key(f"{name}_table"))
            folded(RELIABILITY.key(name), part.title, part.answer, inside, small=True)


def _curve(name: str, of: Mapping[int, PassFigure]) -> Curve:
    known = [(k, one.estimate) for k, one in of.items() if one.estimate.value is not None]
    return Curve(
        name=name,
        points=[(k, e.value) for k, e in known if e.value is not None],
        limits=[e.interval for _, e in known],
    )


# Confidence, perturbations, violations


def _confidence(report: ReliabilityReport) -> None:
    found = report.predictability
    bins = [(b.confidence, b.success_rate) for b in found.bins]
    known = [(x, y) for x, y in bins if x is not None and y is not None]
    if not known:
        return
    left, right = st.columns(2)
    with left:
        curves_chart(
            [
                Curve(name="the agent", points=known),
                Curve(name="as it should be", points=[(0, 0), (1, 1)], dashed=True),
            ],
            title="Calibration: how often runs succeed, by the agent's confidence",
            x="mean confidence", y="success rate",
        )  # fmt: skip
    every = max(1, len(found.curve) // MOST_POINTS)
    points = [(p.coverage, p.risk) for p in found.curve[::-1][::every][::-1]]
    with right:
        curves_chart(
            [
                Curve(name="most confident runs first", points=points),
                Curve(
                    name="in random order", points=[(0, points[-1][1]), (1, points[-1][1])],
                    dashed=True,
                ),
            ],
            title="Risk and coverage: failures among the runs with the most confidence",
            x="share of runs kept", y="failures among them",
        )  # fmt: skip


def _perturbations(report: ReliabilityReport) -> None:
    arms = [(arm.perturbation, arm.success_rate) for arm in report.robustness.arms if arm.n_runs]
    if len(arms) > 1:
        interval_chart(
            [("no perturbation" if name == "none" else name, rate) for name, rate in arms],
            title="success rate, mean over tasks", domain=(0.0, 1.0), figures=True, percents=True,
        )  # fmt: skip


def _violations(report: ReliabilityReport) -> None:
    rows = [(name, of.by_severity) for name, of in report.safety.by_constraint.items()]
    parts_chart(rows, title="Violations by constraint and severity", x="violations")


# Tasks and their runs


def _tasks_answer(found: Found) -> str:
    differ = sum(0 < task.n_success < task.n_runs for task in found.report.tasks)
    return f"the runs of {counted(differ, 'task')} of {len(found.report.tasks):,} differ"


def _tasks(store: Store, found: Found, section: Section) -> None:
    """Draw the tasks; a click on one lists its runs, where they are traces of the store."""
    if found.runs is None:
        document.blocks(section.blocks, key=RELIABILITY.key("tasks"))
        return
    tasks = [task.task_id for task in found.report.tasks[:TASKS_SHOWN]]
    # How many runs of a task succeeded tells what their labels are.
    session.log_exposure(
        store, [run["trace"] for task in tasks for run in found.runs_of[task]], "labels"
    )
    (table,) = (block for block in section.blocks if isinstance(block, Table))
    key = RELIABILITY.key("tasks")
    st.text("Click a task to list its runs below.")
    st.dataframe(
        document.cells_of(table), key=key, hide_index=True, on_select="rerun",
        selection_mode="single-cell", alt=section.title, width="stretch",
    )  # fmt: skip
    cell = cell_of(key)
    if cell is not None and cell[0] < len(tasks):
        _runs(found, tasks[cell[0]])


def _runs(found: Found, task: str) -> None:
    cells = pd.DataFrame(found.runs_of[task])
    cells = cells.drop(columns=[name for name in cells if cells[name].isna().all()])
    title = f"Runs of task {task}"
    st.text(title)
    trace_links.table(
        cells, key=RELIABILITY.key("runs"), page="reliability", title=title, width="stretch"
    )
