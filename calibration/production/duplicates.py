"""Rows with the same trace_id: of equal ones one is kept, of others none."""

from dataclasses import dataclass
from typing import Any

from calibration.production.engines import Engine

REST = ("naive", "no_units", "bad_latency", "reason", "value", "row", "file")


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
