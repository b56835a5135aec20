"""How far off is the judge? Compared with the reviewers, class by class, and by question."""

import pandas as pd
import streamlit as st

from app.components.charts import counts_in_colour, interval_chart, limits_in_percent
from app.components.tables import JUDGE, Table
from app.views.judge.data import Found
from app.views.judge.trust import metric
from calibration.analyses.agreement.traces import TraceSet
from calibration.analyses.judge.diagnostics import (
    in_cell,
    missed,
    of_class,
    parting_at,
    with_verdict,
    wrongly,
)
from calibration.reporting.document import percent, percent_figure
from calibration.reporting.sections.judge import COEFFICIENTS, NO_VERDICT_GIVEN, beside_humans
from calibration.statistics.estimate import Estimate

ACCURACY, BEGIN = "Accuracy", "errors start here"
PANEL, OUTSIDER = "reviewer with reviewer", "judge with reviewer"


def tables(found: Found) -> tuple[Table, Table, Table]:
    """Return the tables of classes, of classes against verdicts, and of questions."""
    return _classes(found), _two_way(found), _questions(found)


def answer(found: Found) -> str:
    """Return how often the judge is right."""
    accuracy = found.result.calibration.judge.accuracy
    if accuracy.value is None:
        return "not known"
    return f"right on {percent(accuracy.value)} of the labelled traces"


def show(found: Found, classes: Table, two_way: Table) -> None:
    """Draw the judge compared with the reviewers, over all and class by class."""
    _ceiling(found)
    _quality(found)
    st.markdown("#### By class")
    classes.show()
    st.caption(
        "Recall: of the traces of this class, how many get the verdict. Precision: of the traces "
        "with the verdict, how many are of this class."
    )
    st.markdown("#### Class by the reviewers in rows, verdict in columns")
    two_way.show(hide_index=False, shown=counts_in_colour(two_way.cells).format("{:g}"))
    if any(of.is_open for of in found.traces.labelled):
        st.caption("A trace with an open disagreement counts in parts.")


def errors_answer(found: Found) -> str:
    """Return at which question most errors start."""
    errors = {name: n for name, n in found.diagnosed.errors.items() if name is not None}
    total = sum(found.diagnosed.errors.values())
    if not errors or not total:
        return "no error seen"
    name, n = max(errors.items(), key=lambda item: item[1])
    return f"{found.taxonomy.question_name(name)}, {percent(n / total)} of errors"


def show_errors(found: Found, questions: Table) -> None:
    """Draw the judge question by question."""
    questions.show()
    st.text("\n".join(f"{k}. {n.question}" for k, n in enumerate(found.taxonomy.nodes, 1)))
    none = found.diagnosed.errors.get(None)
    st.caption(
        "An error starts at the question where judge and reviewer first give another answer. "
        "Recall and precision are of the traces for which both answer the question."
        + ("" if none is None else f" {none:g} more errors: {NO_VERDICT_GIVEN}.")
    )


def _ceiling(found: Found) -> None:
    ceiling = found.diagnosed.ceiling
    n = next(iter(ceiling.values())).panel.n
    st.markdown("#### Compared with the agreement of the reviewers")
    verdict = beside_humans(ceiling["krippendorff_alpha"])
    st.text(f"On {n:,} traces with two or more labels {verdict}.")
    rows = []
    for name, beside in ceiling.items():
        rows.append((f"{COEFFICIENTS[name]}, {PANEL}", beside.panel))
        rows.append((f"{COEFFICIENTS[name]}, {OUTSIDER}", beside.outsider))
    interval_chart(
        rows, title="Agreement on the same traces", figures=True,
        hollow=[name for name, _ in rows if name.endswith(OUTSIDER)],
    )  # fmt: skip


def _quality(found: Found) -> None:
    quality = found.result.calibration.judge
    cells = [
        (ACCURACY, quality.accuracy),
        ("Cohen's kappa", quality.kappa),
        ("Krippendorff's alpha", found.result.alpha),
    ]
    for column, (label, value) in zip(st.columns(3), cells, strict=True):
        metric(
            column, label,
            "not known" if value.value is None
            else percent(value.value) if label == ACCURACY else f"{value.value:.2f}",
            limits_in_percent(value) if label == ACCURACY else limits(value),
        )  # fmt: skip
    for label, value in cells:
        if not value.ok:
            st.text(f"{label}: {value.status.replace('_', ' ', 1)}.")
    st.caption("Over all labelled traces, compared with their final labels.")


def limits(of: Estimate) -> str:
    """Return the interval of an estimate in words."""
    if of.interval is None:
        return "no interval"
    return f"{100 * of.confidence_level:g} %: {of.interval[0]:.2f} to {of.interval[1]:.2f}"


def _classes(found: Found) -> Table:
    names = found.result.classes
    of = found.result.calibration.judge.per_class

    def behind(row: int, column: str) -> TraceSet:
        name = names[row]
        if column == "recall":
            return missed(found.traces, name)
        if column == "precision":
            return wrongly(found.traces, name)
        return (with_verdict if column == "verdicts" else of_class)(found.traces, name)

    return Table(
        key=JUDGE.key("classes"),
        cells=pd.DataFrame(
            {
                "class": [found.taxonomy.titles[name] for name in names],
                "recall": [percent_figure(one.recall) for one in of],
                "precision": [percent_figure(one.precision) for one in of],
                "labels": [f"{one.n_human:.4g}" for one in of],
                "verdicts": [f"{one.n_judge:.4g}" for one in of],
            }
        ),
        behind=behind,
        alt="Recall and precision of the judge on each class",
        estimates=[
            (f"{what} of {found.taxonomy.titles[name]}", value)
            for name, one in zip(names, of, strict=True)
            for what, value in (("recall", one.recall), ("precision", one.precision))
        ],
        config={
            "recall": st.column_config.TextColumn(help="A click lists the traces it misses"),
            "precision": st.column_config.TextColumn(help="A click lists the wrong verdicts"),
        },
    )


def _two_way(found: Found) -> Table:
    classes, verdicts = list(found.result.classes), list(found.result.verdict_names)
    by_title = {found.traces.title(name): name for name in verdicts}
    counts = found.result.calibration.confusion.table
    rows = pd.Index([found.taxonomy.titles[name] for name in classes])
    return Table(
        key=JUDGE.key("two_way"),
        cells=pd.DataFrame(counts, index=rows, columns=list(by_title)),
        behind=lambda row, column: in_cell(found.traces, classes[row], by_title[column]),
        alt="Class by the reviewers in rows, verdict of the judge in columns",
    )


def _questions(found: Found) -> Table:
    nodes, errors = list(found.diagnosed.nodes.items()), found.diagnosed.errors
    total = sum(errors.values())
    return Table(
        key=JUDGE.key("questions"),
        cells=pd.DataFrame(
            {
                "question": [found.taxonomy.question_name(name) for name, _ in nodes],
                BEGIN: [100 * errors.get(name, 0.0) / total if total else 0.0 for name, _ in nodes],
                "errors": [f"{errors.get(name, 0.0):g}" for name, _ in nodes],
                "accuracy": [percent_figure(q.accuracy) for _, q in nodes],
                "recall of yes": [percent_figure(q.yes_recall) for _, q in nodes],
                "recall of no": [percent_figure(q.no_recall) for _, q in nodes],
                "precision of yes": [percent_figure(q.yes_precision) for _, q in nodes],
                "precision of no": [percent_figure(q.no_precision) for _, q in nodes],
            }
        ),
        behind=lambda row, _: parting_at(found.traces, nodes[row][0]),
        alt="How the judge answers each question",
        config={
            BEGIN: st.column_config.ProgressColumn(
                help="Share of the judge's errors that start at this question",
                min_value=0.0, max_value=100.0, format="%.1f %%",
            )
        },
    )  # fmt: skip
