"""Tags of runs: a run with several counts under each, so the rows are laid out once a tag."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import ibis

from calibration.errors import InputError
from calibration.production.checks import one_of
from calibration.production.columns import APART, mapped
from calibration.production.listing import columns_of
from calibration.production.signals import COLUMNS as SIGNALS
from calibration.production.sources import Source

MOST_TAGS = 50
# Longer ones are cut: a tag is a word, not a text.
MAX_TAG = 80
TAG, RUN = "asr_tag", "asr_run"


@dataclass(frozen=True, slots=True, kw_only=True)
class Tagged:
    """A source with a row for each run and tag, and how its columns are called.

    Parameters
    ----------
    source : Source
        Of the most frequent tags.
    columns : Mapping of str to str or None
        As the `columns` of `production_counts`; the tag stands for the model.
    left_out : int
        Further tags, which are in none of its rows.
    """

    source: Source
    columns: Mapping[str, str | None]
    left_out: int


def laid_out(
    source: Source, columns: Mapping[str, str | None], *, conflicts: bool, most: int = MOST_TAGS
) -> Tagged | None:
    """Return the runs of a source once for each of their tags; None without a column of tags.

    Tags are a list, a JSON list as text, or a text in which ``;`` or ``,`` parts them.

    Parameters
    ----------
    source : Source
    columns : Mapping of str to str or None
        As for `production_counts`.
    conflicts : bool
        Whether there are runs with one trace_id and other values: they are left out.
    most : int, default 50
        The tags of the most rows.

    Raises
    ------
    InputError
        If the column holds neither texts nor lists of texts.
    """
    used = mapped(columns, columns_of(source), source.name)
    if "tags" not in used:
        return None
    table = source.table
    if conflicts:
        table = _without_conflicts(table, used)
    tags = _as_list(table[used["tags"]], source.name)
    rows = table.mutate(asr_tags=tags)
    rows = rows.mutate(**{TAG: rows.asr_tags.unique().unnest()}).drop("asr_tags")
    rows = rows.filter(rows[TAG].notnull() & (rows[TAG] != ""))
    counted = rows.group_by(TAG).aggregate(n=rows.count())
    found = source.engine.run(counted.order_by(ibis.desc("n"), TAG).limit(most))
    n_tags = int(source.engine.run(counted.aggregate(n=counted.count()))["n"][0])
    rows = rows.filter(one_of(rows[TAG], found[TAG].tolist()))
    # A run is there once for each tag: the same again under one tag is still a duplicate.
    run = rows[used["trace_id"]].cast("string") + APART + rows[TAG]
    return Tagged(
        source=replace(
            source, table=rows.mutate(**{RUN: run}), rejects=False, null_is_unreadable=False
        ),
        columns={
            **columns,
            **dict.fromkeys(("tags", *SIGNALS)),
            "trace_id": RUN,
            "model": TAG,
        },
        left_out=n_tags - len(found),
    )


def _as_list(column: Any, where: str) -> Any:
    """Return tags as a list of texts."""
    kind = column.type()
    if kind.is_array() and kind.value_type.is_string():
        return column
    if not kind.is_string():
        raise InputError(f"{where}: column 'tags' holds {kind}, not texts or lists of texts")
    said = column.strip()
    # A JSON list of texts is parted at its quotes, so that a tag of it may hold a comma.
    quoted = said.re_search(r'^\[\s*"')
    listed = said.re_replace(r'^\[\s*"|"\s*\]$', "").re_replace(r'"\s*,\s*"', ";")
    plain = said.re_replace(r"^\[|\]$", "").re_replace(",", ";")
    return ibis.ifelse(quoted, listed, plain).re_replace(r"\s*;\s*", ";").strip().split(";")


def _without_conflicts(table: Any, used: Mapping[str, str]) -> Any:
    """Leave out the runs that say two things under one trace_id."""
    others = [theirs for ours, theirs in used.items() if ours not in ("trace_id", "tags")]
    seen = table.group_by(asr_id=table[used["trace_id"]]).aggregate(
        **{
            f"asr_{k}": table[name].cast("string").fill_null("").nunique()
            for k, name in enumerate(others)
        }
    )
    twice = seen.filter(ibis.or_(*(seen[f"asr_{k}"] > 1 for k in range(len(others)))))
    return table.anti_join(twice.select("asr_id"), table[used["trace_id"]] == twice.asr_id)
