"""Where do we disagree? By question of the tree, by class, and by the classes that are confused."""

import pandas as pd
import streamlit as st

from app.components.charts import figure
from app.components.tables import AGREEMENT, Table
from calibration.analyses.agreement.analysis import AgreementAnalysis
from calibration.analyses.agreement.traces import (
    TraceSet,
    confused,
    contested,
    parting_at,
    reaching,
    with_class,
)

BORN, REACHING = "disagreement born here", "two labels come here"


def tables(result: AgreementAnalysis) -> tuple[Table, Table, Table]:
    """Return the tables of questions, of classes, and of confused classes."""
    return _questions(result), _classes(result), _confusions(result)


def show(result: AgreementAnalysis, questions: Table, classes: Table, confusions: Table) -> None:
    """Draw the section."""
    st.subheader("Where do we disagree?", anchor="where")
    if not result.disputed:
        st.text("Nowhere yet: every trace with two labels has the same class twice.")
        st.markdown("#### By class")
        classes.show()
        return
    st.markdown("#### By question")
    questions.show()
    st.text("\n".join(f"{n.id}: {n.question}" for n in result.taxonomy.nodes))
    st.caption(
        "All disagreement is shared out over the questions at which the paths of labels part. "
        "Alpha and AC1 at a question are of the labels whose path comes to it: the deeper, the "
        "fewer traces, and they are selected, for two reviewers agreed on the way."
    )
    st.markdown("#### By class")
    classes.show()
    st.caption(
        "Specific agreement: if one reviewer gives the class, how likely does another give it too. "
        "Both intervals are too short for a class that only a handful of traces carry."
    )
    st.markdown("#### Most confused classes")
    confusions.show()
    st.caption(
        "Lift is against what chance would give from how often each class is used: 1 as often, "
        "0 never."
    )


def _questions(result: AgreementAnalysis) -> Table:
    nodes = list(result.study.nodes.items())

    def behind(row: int, column: str) -> TraceSet:
        at_all = column in (REACHING, "alpha", "AC1")
        return (reaching if at_all else parting_at)(result, nodes[row][0])

    return Table(
        key=AGREEMENT.key("questions"),
        cells=pd.DataFrame(
            {
                "question": [name for name, _ in nodes],
                BORN: [_points(node.share.observed.value) for _, node in nodes],
                "95 %": [_interval(node.share.observed.interval) for _, node in nodes],
                "traces": [node.share.n_items for _, node in nodes],
                "alpha": [figure(node.alpha) for _, node in nodes],
                "AC1": [figure(node.ac1) for _, node in nodes],
                REACHING: [node.n_items for _, node in nodes],
            }
        ),
        behind=behind,
        alt="Share of all disagreement born at each question",
        estimates=[
            *((name, node.share.observed) for name, node in nodes),
            *((f"alpha of {name}", node.alpha) for name, node in nodes),
            *((f"AC1 of {name}", node.ac1) for name, node in nodes),
        ],
        config={
            BORN: _bar("Share of all disagreement that is born at this question"),
            "traces": st.column_config.NumberColumn(help="Traces whose labels part here"),
        },
    )


def _classes(result: AgreementAnalysis) -> Table:
    found = result.study
    sets = [contested(result, code) for code in range(len(result.classes))]

    def behind(row: int, column: str) -> TraceSet:
        return with_class(result, row) if column in ("class", "share of labels") else sets[row]

    return Table(
        key=AGREEMENT.key("classes"),
        cells=pd.DataFrame(
            {
                "class": list(result.classes),
                "share of labels": [_points(share) for share in found.class_shares],
                "specific agreement": [figure(same) for same in found.specific],
                "kappa": [figure(kappa) for kappa in found.class_kappas],
                "disputed traces": [len(of.trace_ids) for of in sets],
            }
        ),
        behind=behind,
        alt="Agreement on each class",
        estimates=[
            *zip(result.classes, found.specific, strict=True),
            *(
                (f"kappa of {name}", kappa)
                for name, kappa in zip(result.classes, found.class_kappas, strict=True)
            ),
        ],
        config={
            "share of labels": _bar("Share of all labels that name this class"),
            "kappa": st.column_config.TextColumn(help="The same, beyond chance (Fleiss)"),
        },
    )


def _confusions(result: AgreementAnalysis) -> Table:
    pairs = result.study.confusions
    return Table(
        key=AGREEMENT.key("confusions"),
        cells=pd.DataFrame(
            {
                "classes": [
                    f"{result.classes[c.first]} / {result.classes[c.second]}" for c in pairs
                ],
                "share of disagreement": [_points(c.share.observed.value) for c in pairs],
                "95 %": [_interval(c.share.observed.interval) for c in pairs],
                "lift": ["-" if c.share.lift is None else f"{c.share.lift:.2f}" for c in pairs],
                "traces": [c.share.n_items for c in pairs],
            }
        ),
        behind=lambda row, _: confused(result, pairs[row].first, pairs[row].second),
        alt="Pairs of classes by how often they are confused",
        estimates=[
            (f"{result.classes[c.first]} / {result.classes[c.second]}", c.share.observed)
            for c in pairs
        ],
        config={
            "share of disagreement": _bar("Share of all disagreement between these two classes")
        },
    )


def _bar(about: str) -> object:
    return st.column_config.ProgressColumn(
        help=about, min_value=0.0, max_value=100.0, format="%.0f %%"
    )


def _points(share: float | None) -> float | None:
    return None if share is None else 100 * share


def _interval(interval: tuple[float, float] | None) -> str:
    if interval is None:
        return "-"
    low, high = (100 * end for end in interval)
    return f"{low:.0f} to {high:.0f} %"
