"""Who? Each reviewer compared with the others and with adjudicated classes, and every pair."""

from collections.abc import Sequence

import pandas as pd
import streamlit as st

from app.components.charts import counts_in_colour, figure
from app.components.tables import AGREEMENT, Table, cell_of
from calibration.agreement.annotators import AgainstKey, PairAgreement
from calibration.analyses.agreement.analysis import AgreementAnalysis
from calibration.analyses.agreement.traces import (
    TraceSet,
    apart_from_others,
    apart_from_settled,
    apart_in_pair,
    in_cell,
    labelled_by,
    settled_with,
    shared_by_pair,
    using_apart,
)
from calibration.reporting.document import percent, percent_figure
from calibration.reporting.sections.agreement import SIGNIFICANT, other_use

PAIR, SEEN = AGREEMENT.key("pair"), AGREEMENT.key("pair_seen")
PAIRS = AGREEMENT.key("pairs")
CONSENSUS, CANONICAL = "settled", "canonical"


def shared_pairs(result: AgreementAnalysis) -> list[PairAgreement]:
    """Return every two reviewers who share a trace."""
    return [pair for pair in result.study.pairs if pair.n_shared]


def chosen_pair(pairs: Sequence[PairAgreement]) -> int:
    """Return the pair whose two-way table is shown: a click on a pair chooses it."""
    state = st.session_state
    clicked = cell_of(PAIRS)
    if clicked is not None and state.get(SEEN) != clicked:
        state[PAIR] = clicked[0]
    state[SEEN] = clicked
    if not 0 <= state.get(PAIR, 0) < len(pairs):
        state[PAIR] = 0
    return int(state.get(PAIR, 0))


def beside_others(result: AgreementAnalysis, names: Sequence[str]) -> Table:
    """Return each reviewer's agreement with the others."""
    profiles = result.profiles

    def behind(row: int, column: str) -> TraceSet:
        all_labels = column in ("reviewer", "labels")
        return (labelled_by if all_labels else apart_from_others)(result, row, names[row])

    return Table(
        key=AGREEMENT.key("reviewers"),
        cells=pd.DataFrame(
            {
                "reviewer": list(names),
                "labels": [of.n_labels for of in profiles],
                "agrees with others": [
                    percent_figure(of.beside.agreement_with_others) for of in profiles
                ],
                "alpha without": [figure(of.beside.alpha_without) for of in profiles],
                "change": [figure(of.beside.change) for of in profiles],
            }
        ),
        behind=behind,
        alt="Each reviewer compared with the others",
        estimates=[
            (what.format(name), value)
            for name, of in zip(names, profiles, strict=True)
            for what, value in (
                ("agreement of {}", of.beside.agreement_with_others),
                ("alpha without {}", of.beside.alpha_without),
                ("change without {}", of.beside.change),
            )
        ],
        config={
            "change": st.column_config.TextColumn(
                help="Alpha without this reviewer minus alpha of all"
            )
        },
    )


def against_settled(result: AgreementAnalysis, names: Sequence[str]) -> Table:
    """Return each reviewer against adjudicated and canonical classes, where there are any."""
    rows = [
        (row, kind, of)
        for kind in (CONSENSUS, CANONICAL)
        for row, profile in enumerate(result.profiles)
        if (of := profile.consensus if kind == CONSENSUS else profile.canonical) is not None
    ]

    def behind(row: int, column: str) -> TraceSet | None:
        reviewer, kind, _ = rows[row]
        if kind == CANONICAL:
            return None
        every = column in ("traces", "reviewer", "against")
        return (settled_with if every else apart_from_settled)(result, reviewer, names[reviewer])

    return Table(
        key=AGREEMENT.key("settled"),
        cells=pd.DataFrame([_against(names[row], kind, of) for row, kind, of in rows]),
        behind=behind,
        alt="Each reviewer compared with adjudicated and canonical classes",
        estimates=[
            (f"{what} of {names[row]}", value)
            for row, _, of in rows
            for what, value in (("accuracy", of.accuracy), ("AC1", of.gwet_ac))
        ],
    )


def _against(name: str, kind: str, of: AgainstKey) -> dict[str, object]:
    what = "adjudicated here" if kind == CONSENSUS else "canonical, in practice"
    return {
        "reviewer": name, "against": what, "traces": of.n,
        "accuracy": percent_figure(of.accuracy), "AC1": figure(of.gwet_ac),
    }  # fmt: skip


def uses(result: AgreementAnalysis, names: Sequence[str]) -> Table:
    """Return who uses a class otherwise than the others, as sentences."""
    found = [
        d
        for d in result.study.margins.differences
        if d.p_holm is not None and d.p_holm < SIGNIFICANT
    ]
    return Table(
        key=AGREEMENT.key("uses"),
        cells=pd.DataFrame(
            {
                "difference": [
                    other_use(
                        d,
                        names[d.rater],
                        result.taxonomy.titles[result.classes[d.class_code]],
                        "traces",
                    )
                    for d in found
                ]
            }
        ),
        behind=lambda row, _: using_apart(
            result, found[row].rater, found[row].class_code, names[found[row].rater]
        ),
        alt="Reviewers who use a class more or less than the others",
    )


def every_pair(result: AgreementAnalysis, names: Sequence[str]) -> Table:
    """Return the agreement of every two reviewers who share a trace."""
    pairs = shared_pairs(result)

    def behind(row: int, column: str) -> TraceSet:
        pair = pairs[row]
        both = (names[pair.first], names[pair.second])
        every = column in ("pair", "shared traces")
        return (shared_by_pair if every else apart_in_pair)(result, pair.first, pair.second, both)

    return Table(
        key=PAIRS,
        cells=pd.DataFrame(
            {
                "pair": [_pair(pair, names) for pair in pairs],
                "shared traces": [pair.n_shared for pair in pairs],
                "alpha": [figure(pair.alpha) for pair in pairs],
                "kappa": [figure(pair.kappa) for pair in pairs],
                "same class": [percent_figure(pair.percent_agreement) for pair in pairs],
            }
        ),
        behind=behind,
        alt="Agreement of pairs of reviewers",
        estimates=[
            (f"{what} of {_pair(pair, names)}", value)
            for pair in pairs
            for what, value in (
                ("alpha", pair.alpha),
                ("kappa", pair.kappa),
                ("agreement", pair.percent_agreement),
            )
        ],
        config={"kappa": st.column_config.TextColumn(help="Cohen's kappa")},
    )


def two_way(result: AgreementAnalysis, pair: PairAgreement, names: Sequence[str]) -> Table:
    """Return the classes of one reviewer against those of another."""
    who = (pair.first, pair.second)
    both = (names[pair.first], names[pair.second])
    classes = [result.taxonomy.titles[name] for name in result.classes]
    return Table(
        key=AGREEMENT.key(f"two_way_{pair.first}_{pair.second}"),
        cells=pd.DataFrame(pair.table, index=pd.Index(classes), columns=classes),
        behind=lambda row, column: in_cell(result, who, (row, classes.index(column)), both),
        alt=f"Classes given by {both[0]} in rows and by {both[1]} in columns",
    )


def _pair(pair: PairAgreement, names: Sequence[str]) -> str:
    return f"{names[pair.first]} x {names[pair.second]}"


def answer(result: AgreementAnalysis, names: Sequence[str]) -> str:
    """Return who agrees least with the others."""
    known = [
        (of.beside.agreement_with_others.value, name)
        for of, name in zip(result.profiles, names, strict=True)
        if of.beside.agreement_with_others.value is not None
    ]
    if len(known) < 2:
        return "too few reviewers share traces"
    least, name = min(known)
    return f"{name} agrees least with the others, {percent(least)}"


def show(
    result: AgreementAnalysis,
    names: Sequence[str],
    tables: tuple[Table, Table, Table, Table],
    two_way_table: Table | None,
) -> None:
    """Draw the section."""
    beside, settled, differences, pairs = tables
    st.markdown("#### Each reviewer compared with the others")
    st.caption("Different is not wrong: check adjudicated traces.")
    beside.show()
    if not settled.cells.empty:
        st.markdown("#### Compared with adjudicated and canonical classes")
        settled.show()
        st.caption(
            "Traces are adjudicated because reviewers differ, so this is the accuracy on hard "
            "traces, and it favours the reviewer with whom the adjudicator agreed. Canonical "
            "classes are those of the reference traces, which have their own mix of classes; "
            "those traces are not in this batch and not in the list."
        )
    st.markdown("#### Use of the classes")
    test = result.study.margins.test
    st.text(
        test.status.replace("_", " ", 1).capitalize() + "."
        if test.p_value is None
        else f"p = {test.p_value:.2g} for the hypothesis that all reviewers use them alike."
    )
    if not differences.cells.empty:
        differences.show()
    if two_way_table is None:
        st.text("No two reviewers share a trace.")
        return
    st.markdown("#### Pairs of reviewers")
    st.caption("Click a pair to see its two-way table.")
    pairs.show()
    _two_way(result, names, two_way_table)


def _two_way(result: AgreementAnalysis, names: Sequence[str], table: Table) -> None:
    found = shared_pairs(result)
    chosen = st.selectbox(
        "Two-way table of", range(len(found)), key=PAIR,
        format_func=lambda k: _pair(found[k], names),
    )  # fmt: skip
    pair = found[chosen]
    st.text(f"Rows: {names[pair.first]}. Columns: {names[pair.second]}.")
    table.show(hide_index=False, shown=counts_in_colour(table.cells))
    test = pair.margins
    st.text(
        "Same use of the classes (Bhapkar): "
        + (
            test.status.replace("_", " ", 1)
            if test.p_value is None
            else f"p = {test.p_value:.2g}, chi-squared {test.statistic:.2f} on {test.df} df"
        )
    )
