"""How far off is it? Beside the humans, class by class, in a two-way table, and by question."""

import pandas as pd
import streamlit as st

from app.components.charts import counts_in_colour, figure, interval_chart
from app.components.tables import JUDGE, Table
from app.views.judge.data import Found
from app.views.judge.trust import limits, metric
from calibration.analyses.agreement.traces import TraceSet
from calibration.analyses.judge.diagnostics import (
    in_cell,
    missed,
    of_class,
    parting_at,
    with_verdict,
    wrongly,
)
from calibration.reporting.sections.judge import COEFFICIENTS, NO_VERDICT_GIVEN, beside_humans

BEGIN = "errors begin here"
PANEL, OUTSIDER = "human with human", "judge with human"


def tables(found: Found) -> tuple[Table, Table, Table]:
    """Return the tables of classes, of classes against verdicts, and of questions."""
    return _classes(found), _two_way(found), _questions(found)


def show(found: Found, classes: Table, two_way: Table, questions: Table) -> None:
    """Draw the first part of the section."""
    st.subheader("How far off is it?", anchor="off")
    _ceiling(found)
    _quality(found)
    st.markdown("#### By class")
    classes.show()
    st.caption(
        "Recall: of the traces that humans call so, how many get that verdict. Precision: of the "
        "traces with that verdict, how many humans call so."
    )
    st.markdown("#### Human class in rows, verdict in columns")
    two_way.show(hide_index=False, shown=counts_in_colour(two_way.cells).format("{:g}"))
    if any(of.is_open for of in found.traces.labelled):
        st.caption("A trace on which reviewers differ and nobody has settled it counts in parts.")
    st.markdown("#### By question")
    questions.show()
    st.text("\n".join(f"{n.id}: {n.question}" for n in found.taxonomy.nodes))
    none = found.diagnosed.errors.get(None)
    st.caption(
        "An error begins where the way of the verdict parts from that of the humans. Recall and "
        "precision are of the traces on which both come to the question."
        + ("" if none is None else f" {none:g} more errors: {NO_VERDICT_GIVEN}.")
    )


def _ceiling(found: Found) -> None:
    ceiling = found.diagnosed.ceiling
    n = next(iter(ceiling.values())).panel.n
    st.markdown("#### What humans reach among themselves comes first")
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
        ("Accuracy", quality.accuracy),
        ("Cohen's kappa", quality.kappa),
        ("Krippendorff's alpha", found.result.alpha),
    ]
    for column, (label, value) in zip(st.columns(3), cells, strict=True):
        metric(
            column, label, "not known" if value.value is None else f"{value.value:.3f}",
            limits(value),
        )  # fmt: skip
    for label, value in cells:
        if not value.ok:
            st.text(f"{label}: {value.status.replace('_', ' ', 1)}.")
    st.caption("Over all labelled traces, against the human side of each.")


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
                "class": list(names),
                "recall": [figure(one.recall) for one in of],
                "precision": [figure(one.precision) for one in of],
                "labels": [f"{one.n_human:.4g}" for one in of],
                "verdicts": [f"{one.n_judge:.4g}" for one in of],
            }
        ),
        behind=behind,
        alt="Recall and precision of the judge on each class",
        estimates=[
            (f"{what} of {name}", value)
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
    counts = found.result.calibration.confusion.table
    return Table(
        key=JUDGE.key("two_way"),
        cells=pd.DataFrame(counts, index=pd.Index(classes), columns=verdicts),
        behind=lambda row, column: in_cell(found.traces, classes[row], column),
        alt="Human class in rows, verdict of the judge in columns",
    )


def _questions(found: Found) -> Table:
    nodes, errors = list(found.diagnosed.nodes.items()), found.diagnosed.errors
    total = sum(errors.values())
    return Table(
        key=JUDGE.key("questions"),
        cells=pd.DataFrame(
            {
                "question": [name for name, _ in nodes],
                BEGIN: [100 * errors.get(name, 0.0) / total if total else 0.0 for name, _ in nodes],
                "errors": [f"{errors.get(name, 0.0):g}" for name, _ in nodes],
                "accuracy": [figure(q.accuracy, 2) for _, q in nodes],
                "recall of yes": [figure(q.yes_recall, 2) for _, q in nodes],
                "recall of no": [figure(q.no_recall, 2) for _, q in nodes],
                "precision of yes": [figure(q.yes_precision, 2) for _, q in nodes],
                "precision of no": [figure(q.no_precision, 2) for _, q in nodes],
            }
        ),
        behind=lambda row, _: parting_at(found.traces, nodes[row][0]),
        alt="How the judge answers each question",
        config={
            BEGIN: st.column_config.ProgressColumn(
                help="Share of the judge's errors that begin at this question",
                min_value=0.0, max_value=100.0, format="%.0f %%",
            )
        },
    )  # fmt: skip
