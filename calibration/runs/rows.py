"""Which rows count: checks with reasons, and duplicates."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

import ibis

from calibration.records import OUTCOMES
from calibration.runs.columns import APART, any_text, moment, number, text
from calibration.runs.engines import Engine
from calibration.runs.signals import signal_columns
from calibration.runs.sources import Source

MAX_USD = 1e6

MAX_UNITS = MAX_WEIGHT = 1e9

SHOWN = 80

VALUE = {
    "unknown_workflow": "workflow", "unknown_class": "outcome", "unreadable_cost": "cost_usd",
    "not_finite_cost": "cost_usd", "negative_cost": "cost_usd", "absurd_cost": "cost_usd",
    "bad_units": "units", "bad_weight": "weight", "unreadable_time": "started_at",
}  # fmt: skip

READ = (
    "trace_id", "workflow", "outcome", "cost", "units", "weight", "stratum", "model", "task",
    "trial", "status", "latency",
)  # fmt: skip


REST = ("naive", "no_units", "bad_latency", "reason", "value", "row", "file")


WHY: dict[str, str] = {
    "unreadable_row": "the line cannot be read, or holds none of the columns",
    "missing_trace_id": "trace_id is missing",
    "missing_workflow": "workflow is missing",
    "unknown_workflow": "the workflow is none of the taxonomy",
    "missing_outcome": "outcome is missing",
    "unknown_class": f"outcome is none of {', '.join(OUTCOMES)}",
    "unreadable_cost": "cost_usd is no number",
    "not_finite_cost": "cost_usd is not finite",
    "negative_cost": "cost_usd is negative",
    "bad_units": "units is no number above 0 and up to 1e9",
    "absurd_cost": "cost_usd is above 1,000,000 USD a unit",
    "bad_weight": "weight is missing, or no number above 0 and up to 1e9",
    "unreadable_time": "started_at is no time",
    "identical_duplicate": "the same trace_id with the same values; one of the rows is kept",
    "conflicting_duplicate": "the same trace_id with other values; none of the rows is kept",
}

REASONS = tuple(WHY)

CODE = {reason: k for k, reason in enumerate(REASONS, 1)}


def check(
    source: Source,
    columns: Mapping[str, str],
    *,
    workflows: Mapping[str, float | None] | None,
    zone: str,
    further: Sequence[str] = (),
) -> Any:
    """Return the rows in our own columns, with `reason` (0: the row counts) and the bad `value`.

    Columns: those of `READ`, `at`, `row`, `file`, true or false `naive`, `no_units` and
    `bad_latency`, and the texts of `further` ones. What a source does not have is null.
    """
    table, where = source.table, source.name

    def given(ours: str, kind: str = "string") -> Any:
        return table[columns[ours]] if ours in columns else ibis.null(kind)

    def words(ours: str) -> Any:
        return text(given(ours), ours, where)

    trace_id, workflow, outcome = words("trace_id"), words("workflow"), words("outcome")
    cost, units, weight, latency = (
        number(given(ours, "float64"), ours, where)
        for ours in ("cost_usd", "units", "weight", "latency_s")
    )
    time = moment(given("started_at", "timestamp"), "started_at", where, zone, source.engine)
    counted = units.value.fill_null(1.0)
    good_units = ~units.unreadable & ~units.not_finite & (counted > 0) & (counted <= MAX_UNITS)
    weighted = weight.value.between(0.0, MAX_WEIGHT) & (weight.value > 0)
    bad_latency = latency.unreadable | latency.not_finite | (latency.value < 0).fill_null(False)
    bad: dict[str, Any] = {
        "missing_trace_id": trace_id.isnull(),
        "missing_workflow": workflow.isnull(),
        "missing_outcome": outcome.isnull(),
        "unknown_class": ~one_of(outcome, OUTCOMES),
        "unreadable_cost": cost.unreadable,
        "not_finite_cost": cost.not_finite,
        "negative_cost": cost.value < 0,
        "bad_units": ~good_units,
        "absurd_cost": cost.value > MAX_USD * counted,
        "unreadable_time": time.unreadable,
    }
    if workflows is not None:
        bad["unknown_workflow"] = ~one_of(workflow, tuple(workflows))
    if "weight" in columns:
        bad["bad_weight"] = ~weighted.fill_null(False)
    if source.null_is_unreadable:
        bad["unreadable_row"] = ibis.and_(
            *(table[c].isnull() for c in sorted(set(columns.values())))
        )
    reason = ibis.cases(
        *((bad[r], ibis.literal(CODE[r], "int8")) for r in REASONS if r in bad),
        else_=ibis.literal(0, "int8"),
    )
    shown = [(r, ours) for r, ours in VALUE.items() if r in bad and ours in columns]
    checked = table.select(
        trace_id=trace_id,
        workflow=workflow,
        outcome=outcome,
        cost=cost.value,
        units=counted,
        weight=weight.value if "weight" in columns else ibis.literal(1.0),
        stratum=words("stratum"),
        model=words("model"),
        # Ids of tasks collide between workflows.
        task=workflow + APART + words("task_id"),
        trial=words("trial"),
        status=words("status"),
        latency=ibis.ifelse(bad_latency, ibis.null("float64"), latency.value),
        at=time.at,
        naive=time.naive,
        no_units=units.value.isnull(),
        bad_latency=bad_latency,
        reason=reason,
        row=table[source.row].cast("int64") if source.row else ibis.null("int64"),
        file=table[source.file] if source.file else ibis.null("string"),
        **{c: any_text(given(c)) for c in further},
        **signal_columns(table, columns, where),
        **{f"said_{c}": table[columns[c]] for _, c in shown},
    )
    # Written out inside the cases: few rows need it, and a time takes long to write.
    value = ibis.cases(
        *(
            (checked.reason == CODE[reason], checked[f"said_{ours}"].cast("string").left(SHOWN))
            for reason, ours in shown
        ),
        else_=ibis.null("string"),
    )
    return checked.mutate(value=value).drop(*(f"said_{ours}" for ours in {o for _, o in shown}))


def one_of(value: Any, names: Sequence[str]) -> Any:
    """Return where a text is one of the names."""
    # Not `isin`: DuckDB makes a join of it, and several of several.
    return ibis.or_(ibis.literal(False), *(value == name for name in names))


def within(rows: Any, since: datetime | None, until: datetime | None) -> Any:
    """Return the checked rows from `since` to before `until`, both in UTC.

    Rows without a time are in no window, but those that could not be read stay to be counted.
    """
    inside = None
    for limit, later in ((since, True), (until, False)):
        if limit is not None:
            moment = _moment(limit, rows.at)
            this = rows.at >= moment if later else rows.at < moment
            inside = this if inside is None else inside & this
    if inside is None:
        return rows
    return rows.filter(inside.fill_null(False) | (rows.at.isnull() & (rows.reason != 0)))


def _moment(limit: datetime, at: Any) -> Any:
    return ibis.literal(limit.replace(tzinfo=None)).cast(at.type())


@dataclass(frozen=True, slots=True, kw_only=True)
class Deduplicated:
    """The rows that stay, and those that went."""

    rows: Any
    identical: Any
    conflicting: Any


def deduplicate(rows: Any, engine: Engine) -> Deduplicated:
    """Sort out rows with the same trace_id, where there are some.

    Rows that were set aside for another reason do not count as duplicates. Two rows are identical
    when every column that is read has the same value.
    """
    times = rows.group_by("trace_id").aggregate(times=rows.count())
    several = engine.keep(times.filter(times.times > 1).select("trace_id"), "repeated")
    doubtful = rows.semi_join(several, "trace_id")
    # The first row of each version stands for it.
    compared = [name for name in rows.columns if name not in REST]
    versions = doubtful.group_by(compared).aggregate(
        naive=doubtful.naive.any(),
        no_units=doubtful.no_units.any(),
        bad_latency=doubtful.bad_latency.any(),
        reason=doubtful.reason.min(),
        value=doubtful.value.min(),
        row=doubtful.row.min(),
        file=doubtful.file.min(),
    )
    counted = versions.group_by("trace_id").aggregate(versions=versions.count())
    same = engine.keep(counted.filter(counted.versions == 1).select("trace_id"), "identical")
    kept = versions.semi_join(same, "trace_id").select(*rows.columns)
    return Deduplicated(
        rows=rows.anti_join(several, "trace_id").union(kept, distinct=False),
        identical=doubtful.semi_join(same, "trace_id"),
        conflicting=doubtful.anti_join(same, "trace_id"),
    )
