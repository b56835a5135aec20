"""Where do reviewers differ? By question of the tree, by class, and by confused classes."""

import pandas as pd
import streamlit as st

from app.components.charts import figure
from app.components.sections import as_table
from app.components.tables import AGREEMENT, Table
from app.components.tree_chart import tree_chart
from calibration.agreement.study import ConfusedPair
from calibration.analyses.agreement.analysis import AgreementAnalysis
from calibration.analyses.agreement.traces import (
    TraceSet,
    confused,
    contested,
    parting_at,
    reaching,
    with_class,
)
from calibration.reporting.document import percent

BORN, REACHING = "disagreements start here", "traces with two answers"
TREE = "tree"


def tables(result: AgreementAnalysis) -> tuple[Table, Table, Table]:
    """Return the tables of questions, of classes, and of confused classes."""
    return _questions(result), _classes(result), _confusions(result)


def answer(result: AgreementAnalysis) -> str:
    """Return at which question most disagreements start."""
    found = _starts(result)
    if not found:
        return "nowhere yet"
    name, share = max(found.items(), key=lambda item: item[1])
    return f"{result.taxonomy.question_name(name)}, {percent(share)} of disagreements"


def _starts(result: AgreementAnalysis) -> dict[str, float]:
    """Return the share of all disagreement that starts at each question; empty without any."""
    if not result.disputed:
        return {}
    nodes = result.study.nodes.items()
    return {name: node.share.observed.value or 0.0 for name, node in nodes}


def picture(result: AgreementAnalysis) -> None:
    """Draw the tree with the share of disagreement that starts at each question."""
    found = _starts(result)
    if not found:
        st.text("No disagreement yet: every trace with two labels has the same class twice.")
        return
    tree_chart(
        result.taxonomy, found, title="Where disagreements start: share of all of them",
        key=AGREEMENT.chart_key(TREE),
    )  # fmt: skip
    nodes = list(result.study.nodes.items())
    as_table(
        pd.DataFrame(
            {
                "question": [result.taxonomy.question_name(name) for name, _ in nodes],
                BORN: [percent(found[name]) for name, _ in nodes],
                "traces": [node.share.n_items for _, node in nodes],
            }
        ),
        alt="Where disagreements start",
    )


def confused_answer(result: AgreementAnalysis) -> str:
    """Return the two classes that are confused most often."""
    if not result.study.confusions:
        return "none yet"
    worst = result.study.confusions[0]
    return f"{_pair(result, worst)}, {percent(worst.share.observed.value)} of disagreements"


def _pair(result: AgreementAnalysis, of: ConfusedPair) -> str:
    titles = result.taxonomy.titles
    return f"{titles[result.classes[of.first]]} and {titles[result.classes[of.second]]}"


def show(result: AgreementAnalysis, questions: Table) -> None:
    """Draw agreement question by question."""
    questions.show()
    st.text("\n".join(f"{k}. {n.question}" for k, n in enumerate(result.taxonomy.nodes, 1)))
    st.caption(
        "Each disagreement counts at the question where the answers of two reviewers first differ. "
        "Alpha and AC1 of a question use the traces on which two reviewers answered it. A question "
        "further down has fewer of them, and they are more alike: both agreed on all before it."
    )


def show_classes(result: AgreementAnalysis, classes: Table, confusions: Table) -> None:
    """Draw agreement class by class, and the classes that are confused."""
    st.markdown("#### By class")
    classes.show()
    st.caption(
        "Specific agreement: if one reviewer gives the class, how likely another gives it too. "
        "Both intervals are too short for a class that only a handful of traces have."
    )
    if not result.study.confusions:
        return
    st.markdown("#### Most confused classes")
    confusions.show()
    st.caption(
        "Lift compares with chance, from how often each class is used: 1 is as often as by chance, "
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
                "question": [result.taxonomy.question_name(name) for name, _ in nodes],
                BORN: [_points(node.share.observed.value) for _, node in nodes],
                "95 %": [_interval(node.share.observed.interval) for _, node in nodes],
                "traces": [node.share.n_items for _, node in nodes],
                "alpha": [figure(node.alpha) for _, node in nodes],
                "AC1": [figure(node.ac1) for _, node in nodes],
                REACHING: [node.n_items for _, node in nodes],
            }
        ),
        behind=behind,
        alt="Share of all disagreement that starts at each question",
        estimates=[
            (what.format(result.taxonomy.question_name(name)), value)
            for name, node in nodes
            for what, value in (
                ("{}", node.share.observed),
                ("alpha of {}", node.alpha),
                ("AC1 of {}", node.ac1),
            )
        ],
        config={
            BORN: _bar("Share of all disagreement that starts at this question"),
            "traces": st.column_config.NumberColumn(
                help="Traces with a disagreement that starts here"
            ),
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
                "class": _titles(result),
                "share of labels": [_points(share) for share in found.class_shares],
                "specific agreement": [figure(same) for same in found.specific],
                "kappa": [figure(kappa) for kappa in found.class_kappas],
                "disputed traces": [len(of.trace_ids) for of in sets],
            }
        ),
        behind=behind,
        alt="Agreement on each class",
        estimates=[
            *zip(_titles(result), found.specific, strict=True),
            *(
                (f"kappa of {name}", kappa)
                for name, kappa in zip(_titles(result), found.class_kappas, strict=True)
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
                "classes": [_pair(result, c) for c in pairs],
                "share of disagreement": [_points(c.share.observed.value) for c in pairs],
                "95 %": [_interval(c.share.observed.interval) for c in pairs],
                "lift": ["-" if c.share.lift is None else f"{c.share.lift:.2f}" for c in pairs],
                "traces": [c.share.n_items for c in pairs],
            }
        ),
        behind=lambda row, _: confused(result, pairs[row].first, pairs[row].second),
        alt="Pairs of classes by how often they are confused",
        estimates=[(_pair(result, c), c.share.observed) for c in pairs],
        config={
            "share of disagreement": _bar("Share of all disagreement between these two classes")
        },
    )


def _titles(result: AgreementAnalysis) -> list[str]:
    return [result.taxonomy.titles[name] for name in result.classes]


def _bar(about: str) -> object:
    return st.column_config.ProgressColumn(
        help=about, min_value=0.0, max_value=100.0, format="%.1f %%"
    )


def _points(share: float | None) -> float | None:
    return None if share is None else 100 * share


def _interval(interval: tuple[float, float] | None) -> str:
    if interval is None:
        return "-"
    low, high = (100 * end for end in interval)
    return f"{low:.1f} to {high:.1f} %"
