"""The corrected share of each class, and the rate by agent, workflow, model or week."""

import pandas as pd
import streamlit as st

from app.components.charts import interval_chart, points
from app.components.tables import JUDGE, Table
from app.views.judge import data
from app.views.judge.data import Found
from calibration.analyses.agreement.traces import TraceSet
from calibration.analyses.evidence.data import BY
from calibration.analyses.judge.diagnostics import in_group
from calibration.analyses.judge.groups import GroupPair, GroupRates
from calibration.reporting.document import notes, percent, percent_figure
from calibration.reporting.sections.judge import BORROWED, adjusted_p, errs_alike
from calibration.statistics.estimate import Estimate
from calibration.store import Store
from calibration.text import sentence

GROUPING = JUDGE.key("by")

# Models are hidden from who labels.
FOR_ALL = ("workflow", "week")

LISTED = ("agent", "workflow")

# Few judges have read a trace cut to fit; the command line has groups by that too.
ON_PAGE = tuple(by for by in BY if by != "prompt")
LONGEST = 60
FROM = {
    "direct": "own labels",
    "pooled": "own labels and those of all",
    "synthetic": "common error rates",
}


def chosen(store: Store, found: Found) -> GroupRates | None:
    """Return the groups of the kind that is chosen; None where no rate can be given of any."""
    if not found.is_sample:
        return None
    by = st.session_state.get(GROUPING) or "workflow"
    return data.grouped(found.asked, by, store)


def table(found: Found, groups: GroupRates) -> Table:
    """Return the rate of each group."""
    rows = groups.groups

    def behind(row: int, _: str) -> TraceSet | None:
        if groups.by not in LISTED:
            return None
        return in_group(found.traces, groups.by, rows[row].name)

    return Table(
        key=JUDGE.key(f"groups_{groups.by}"),
        cells=pd.DataFrame(
            {
                groups.by: [_short(of.name) for of in rows],
                "from": [FROM[of.net.kind] for of in rows],
                "labels": [of.net.n_labels for of in rows],
                "judged": [of.net.n_production for of in rows],
                "net of cost": [percent_figure(of.net.estimate) for of in rows],
                "before cost penalty": [percent_figure(of.gross.estimate) for of in rows],
                "judge lenient by, points": [points(of.leniency.estimate) for of in rows],
            }
        ),
        behind=behind,
        alt=f"The corrected rate by {groups.by}",
        estimates=[(_short(of.name), of.net.estimate) for of in rows],
    )


def classes_answer(found: Found) -> str:
    """Return the share of the largest class."""
    calibration = found.result.calibration
    shares = calibration.class_shares.get(calibration.headline or "")
    known = [] if shares is None else [
        (share.value, name)
        for name, share in zip(found.result.classes, shares, strict=True) if share.value is not None
    ]  # fmt: skip
    if not known:
        return "not known while the corrected rate is refused"
    most, name = max(known)
    return f"{found.taxonomy.titles[name]} {percent(most)}"


def show_groups(groups: GroupRates, rates: Table) -> None:
    """Draw the rate of each group of one kind, and their differences."""
    st.segmented_control("By", ON_PAGE, key=GROUPING, default=groups.by, required=True)
    # Why the others have none stands below the table.
    known = [of for of in groups.groups if of.net.estimate.ok]
    rows = [(_short(of.name), of.net.estimate) for of in known]
    kinds = {of.net.kind for of in known}
    interval_chart(
        rows, title=f"Agent success rate by {groups.by}, net of cost", percents=True,
        hollow=[_short(of.name) for of in known if of.net.kind != "direct"], figures=True,
    )  # fmt: skip
    alike = errs_alike(groups.rates)
    st.text(sentence(alike))
    if "pooled" in kinds:
        st.text(f"Hollow: {BORROWED}.")
    if "synthetic" in kinds:
        st.text(
            "Hollow: synthetic, fewer than 50 labels of its own. The "
            "judge's error rates there are assumed to be those of all groups. A synthetic rate, "
            "and any difference with one, cannot gate."
        )
    rates.show()
    if groups.pairs:
        _differences(groups)


def show_classes(found: Found) -> None:
    """Draw the corrected share of each class."""
    calibration = found.result.calibration
    shares = calibration.class_shares.get(calibration.headline or "")
    if shares is None:
        st.text(
            "Without a corrected rate there are no corrected shares. How far off the judge is, and "
            "where its errors start, is known: see below."
        )
        return
    titles = (found.taxonomy.titles[name] for name in found.result.classes)
    named = list(zip(titles, shares, strict=True))
    interval_chart(
        named, title="Share of production traces, corrected", figures=True, percents=True
    )
    _explained(named)


def _differences(groups: GroupRates) -> None:
    st.markdown("#### Differences, net of cost")
    pairs = groups.pairs
    flips = {
        "wrong sign": [percent(of.net.flip_chance) for of in pairs],
        "flips at": [percent(of.net.flips_at) for of in pairs],
    }
    st.dataframe(
        pd.DataFrame(
            {
                "difference": [_both(of) for of in pairs],
                "points, net of cost": [points(of.net.difference) for of in pairs],
                "adjusted p": [adjusted_p(of.net) for of in pairs],
                "may gate": ["yes" if of.net.may_gate else "cannot gate" for of in pairs],
                **(flips if any(of.net.kind == "synthetic" for of in pairs) else {}),
                "judge lenient by, points": [points(of.leniency_difference) for of in pairs],
            }
        ),
        hide_index=True, alt=f"Differences between every two by {groups.by}",
    )  # fmt: skip
    _explained([("difference", of.net.difference) for of in pairs])
    text = "Each interval is for one pair; the p-value is adjusted for all pairs (Holm)."
    if any(of.net.kind == "pooled" for of in pairs):
        text += " Both sides are rated by their own labels alone."
    if any(of.net.kind == "synthetic" for of in pairs):
        text += (
            " Wrong sign: its probability if the judge has the same error rates in both. Flips "
            "at: the order changes if the judge wrongly passes this much more of one side's traces."
        )
    st.caption(text)


def _both(pair: GroupPair) -> str:
    return f"{_short(pair.net.first)} minus {_short(pair.net.second)}"


def _explained(named: list[tuple[str, Estimate]]) -> None:
    reasons = [line.removeprefix("+ ") for line in notes(e for e in named if e[1].ok)]
    if reasons:
        st.text("\n".join(reasons))


def _short(name: str) -> str:
    return name if len(name) <= LONGEST else f"{name[: LONGEST - 1]}\u2026"
