"""Traces to label, drawn with equal probability or chosen by filters; splits for judges."""

import hashlib
import json
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from calibration.analyses.evidence.from_store import agreed_traces, load_batch
from calibration.errors import CalibrationError, InputError
from calibration.store import UNLABELLED, Batch, Store, TraceFilter
from calibration.store.batches import AUDIT, SELECTION, ids_digest
from calibration.tables.rows import as_csv
from calibration.text import first_day, names_there, weeks_of

REPEATED = "seed {} drew {} {} already; leave --seed out for another draw, or take another seed"


@dataclass(frozen=True, slots=True, kw_only=True)
class SamplingDesign:
    """Options shared by all draws."""

    seed: int  # of the draw, 0 or more
    workflow: str | None = None  # the only one to draw from
    week: str | None = None  # ISO week (UTC) of the start times to draw from
    labels_wanted: int = 2  # per trace of the overlap; one for the others
    overlap: float = 1.0  # share of traces, drawn at random, in [0, 1]
    certificate: str | None = None  # any or private: required of the reviewers
    once: bool = False  # store the same draw from the same traces only once
    token: str | None = None  # a batch stored under it is returned as it is
    repeats: bool = True  # whether its seed may draw from the same traces again


@dataclass(frozen=True, slots=True, kw_only=True)
class DrawnBatch:
    """A batch with its traces, in their order."""

    batch: Batch
    trace_ids: tuple[str, ...]
    probabilities: tuple[float, ...]  # of inclusion
    strata: tuple[int, ...] | None
    labels_wanted: tuple[int, ...]

    @property
    def equal(self) -> bool:
        """Whether each trace had the same chance."""
        return max(self.probabilities) - min(self.probabilities) < 1e-12


def drawn_batch(store: Store, batch: Batch) -> DrawnBatch:
    """Return a drawn batch with its traces."""
    items = store.batch_items(batch.batch_id)
    strata = items["stratum"]
    return DrawnBatch(
        batch=batch,
        trace_ids=tuple(items["trace_id"].tolist()),
        probabilities=tuple(items["inclusion_probability"].tolist()),
        strata=None if strata.isna().any() else tuple(strata.astype(int).tolist()),
        labels_wanted=tuple(map(int, items["labels_wanted"])),
    )


def draw_batch(store: Store, design: SamplingDesign, *, n: int, by_workflow: bool = False) -> Batch:
    """Draw `n` traces without replacement, each with the same probability.

    The order is random too: the traces labelled when labelling stops are a random sample. With
    `by_workflow` the draw is proportional to workflow size, see `draw_evenly`.
    """
    frame = drawn_from(store, design, n=n)
    ids = frame["trace_id"].to_numpy(dtype=str)
    recorded: dict[str, object] = {
        "kind": "random sample even over workflows" if by_workflow else "simple random sample",
        "n": n,
        **recorded_population(frame, design),
        "overlap": design.overlap,
    }
    if by_workflow:
        workflows = frame["workflow"].to_numpy(dtype=str)
        drawn = draw_evenly(ids, workflows, n=n, seed=design.seed)
        recorded["population_by_workflow"] = frame["workflow"].value_counts().to_dict()
    else:
        drawn = draw_ids(ids, n=n, seed=design.seed)
    return store_batch(store, design, drawn, recorded, probabilities=[n / len(ids)] * n)


def draw_audit(
    store: Store, *, n: int, seed: int, reviewer_id: str, batch_id: str | None = None
) -> Batch:
    """Draw `n` traces on which two reviewers agree, for a lead to label again without their labels.

    From the batches of the rate, or of `batch_id`; adjudicated traces and those that the lead has
    labelled are left out. Two who agree may both be wrong: how often is what the audit shows.
    """
    if n < 1 or seed < 0:
        raise InputError(f"n must be at least 1 and seed 0 or more, got {n} and {seed}")
    data = load_batch(store, batch_id)
    own = set(data.labels.loc[data.labels["reviewer_id"] == reviewer_id, "trace_id"])
    settled = set(data.labelled.loc[data.adjudicated, "trace_id"])
    agreed = [t for t in agreed_traces(data.labels).index if t not in own | settled]
    if n > len(agreed):
        raise CalibrationError(
            f"{n} agreed traces were asked for and there are {len(agreed)} that {reviewer_id} has "
            "not labelled; ask for fewer"
        )
    trace_ids = draw_ids(np.array(agreed), n=n, seed=seed)
    for batch in store.batches():
        before = store.batch_items(batch.batch_id)["trace_id"] if batch.is_audit else ()
        if batch.design.get("seed") == seed and set(before) == set(trace_ids):
            raise InputError(REPEATED.format(seed, batch.batch_id, "these traces"))
    return store.add_batch(
        purpose="production",
        trace_ids=trace_ids,
        inclusion_probability=n / len(agreed),
        labels_wanted=1,
        design={
            "kind": AUDIT,
            "n": n,
            "population": len(agreed),
            "seed": seed,
            "of": data.provenance.batch_id,
        },
        reviewer_id=reviewer_id,
    )


def drawn_from(store: Store, design: SamplingDesign, *, n: int | None = None) -> pd.DataFrame:
    """Return the traces from which `n` are to be drawn, in order of id."""
    if n is not None and n < 1:
        raise InputError(f"n must be at least 1, got {n}")
    if design.seed < 0:
        raise InputError(f"seed must be 0 or more, got {design.seed}")
    frame = store.production_traces()
    if frame.empty:
        raise CalibrationError("the store holds no traces; `asr import FILES` adds some")
    if design.workflow is not None:
        known = sorted(frame["workflow"].unique())
        frame = frame[frame["workflow"] == design.workflow]
        if frame.empty:
            raise InputError(
                f"no trace has the workflow {design.workflow!r:.80}; "
                f"{names_there(design.workflow, known)}"
            )
    if design.week is not None:
        frame = _of_week(frame, design.week)
    if n is not None and n > len(frame):
        raise CalibrationError(
            f"{n} traces were asked for and there are {len(frame)}; draw fewer or import more"
        )
    return frame.sort_values("trace_id").reset_index(drop=True)


def last_week(now: datetime) -> str:
    """Return the last ISO week that is over (UTC).

    Examples
    --------
    >>> from datetime import UTC
    >>> last_week(datetime(2026, 11, 25, tzinfo=UTC))
    '2026-W47'
    """
    year, week, _ = (now - timedelta(days=7)).isocalendar()
    return f"{year:04d}-W{week:02d}"


def seed_of_week(week: str) -> int:
    """Return the seed of the draw of a week; InputError if it is no ISO week.

    Examples
    --------
    >>> seed_of_week("2026-W07")
    202607
    """
    try:
        first_day(week)
    except ValueError as error:
        raise InputError(str(error)) from error
    return int(week.replace("-W", ""))


def _of_week(frame: pd.DataFrame, week: str) -> pd.DataFrame:
    """Return the traces that started in a week; refuse a week without any."""
    seed_of_week(week)
    weeks = weeks_of(pd.to_datetime(frame["started_at"], utc=True))
    found = frame[weeks == week]
    if found.empty:
        known = sorted(weeks.dropna().unique())
        there = f"the last week with traces is {known[-1]}" if known else "no trace has a start"
        raise CalibrationError(f"no trace started in {week}; {there}: name it with --week")
    return found


def recorded_population(frame: pd.DataFrame, design: SamplingDesign) -> dict[str, object]:
    """Return the part of a design from which `Batch.population` restores the population."""
    return {
        "population": len(frame),
        "seed": design.seed,
        "workflow": design.workflow,
        **({} if design.week is None else {"week": design.week}),
        "last_seq": int(frame["seq"].max()),
        "population_sha256": ids_digest(frame["trace_id"]),
    }


def _refuse_repeated(store: Store, recorded: Mapping[str, object]) -> None:
    """Refuse a seed that has drawn from the same traces: batches must be independent draws."""
    same = ("seed", "population_sha256")
    for batch in store.batches():
        # An escalation draws from the verdicts that were accepted.
        if "audit_half_width" not in batch.design and all(
            batch.design.get(name) == recorded[name] for name in same
        ):
            these = f"from the same {recorded['population']:,} traces"
            raise InputError(REPEATED.format(recorded["seed"], batch.batch_id, these))


def store_batch(
    store: Store,
    design: SamplingDesign,
    trace_ids: Sequence[str],
    recorded: dict[str, object],
    *,
    probabilities: Sequence[float] | None = None,
    strata: Sequence[int] | None = None,
) -> Batch:
    """Store drawn traces in their order, with the record of the draw."""
    arms = store.perturbed_traces()
    if n_arms := int((arms["workflow"] == (design.workflow or arms["workflow"])).sum()):
        recorded = recorded | {"perturbed_left_out": n_arms}
    # A random stream of its own: the overlap does not depend on the draw.
    labels = labels_per_trace(
        len(trace_ids), labels_wanted=design.labels_wanted, overlap=design.overlap
    )
    if not design.repeats:
        _refuse_repeated(store, recorded)
    token = design.token
    if design.once:
        text = json.dumps([recorded, design.labels_wanted], sort_keys=True)
        token = "draw-" + hashlib.sha256(text.encode()).hexdigest()
    return store.add_batch(
        purpose="production",
        trace_ids=trace_ids,
        item_probabilities=probabilities,
        item_strata=strata,
        labels_wanted=max(labels),
        item_labels=np.random.default_rng([design.seed, 1]).permutation(labels).tolist(),
        design=recorded,
        token=token,
        certificate=design.certificate,
    )


def draw_ids(ids: NDArray[np.str_], *, n: int, seed: int) -> list[str]:
    """Return `n` ids in random order, each equally likely, whatever the order of `ids`."""
    drawn = np.random.default_rng(seed).choice(np.sort(ids), size=n, replace=False)
    return [str(trace_id) for trace_id in drawn]


def draw_evenly(
    ids: NDArray[np.str_], workflows: NDArray[np.str_], *, n: int, seed: int
) -> list[str]:
    """Return `n` of the ids in random order, spread evenly over workflows.

    A systematic draw with a random start through the traces by workflow, shuffled within: every
    trace has exactly the same probability n / N, and a workflow with N_h traces gets n N_h / N of
    the draw, rounded down or up. So no weights are needed, and intervals for a simple random
    sample are slightly too wide rather than too narrow.

    References
    ----------
    Cochran (1977), Sampling Techniques, 3rd ed., chapter 8: systematic sampling.

    Examples
    --------
    >>> names = np.array(["a1", "a2", "a3", "a4", "b1", "b2"])
    >>> of = np.array(["a"] * 4 + ["b"] * 2)
    >>> sorted(name[0] for name in draw_evenly(names, of, n=3, seed=1))
    ['a', 'a', 'b']
    """
    rng = np.random.default_rng(seed)
    in_order = np.argsort(ids)
    shuffled = rng.permutation(in_order)
    lined_up = shuffled[np.argsort(workflows[shuffled], kind="stable")]
    places = np.floor((np.arange(n) + rng.random()) * (ids.size / n)).astype(np.int64)
    drawn = rng.permutation(ids[lined_up[np.minimum(places, ids.size - 1)]])
    return [str(trace_id) for trace_id in drawn]


def draw_within(
    stratum: NDArray[np.int64], drawn: NDArray[np.int64], *, seed: int
) -> NDArray[np.int64]:
    """Return positions of traces, `drawn` of each stratum at random, in random order over all.

    The first m hold m n_h / n of stratum h on average: if labelling stops early, the
    probabilities are still proportional to the design.

    Examples
    --------
    >>> sorted(draw_within(np.array([0, 0, 0, 1]), np.array([3, 1]), seed=1).tolist())
    [0, 1, 2, 3]
    """
    rng = np.random.default_rng(seed)
    chosen = [
        rng.choice(np.flatnonzero(stratum == number), size=size, replace=False)
        for number, size in enumerate(drawn.tolist())
    ]
    return rng.permutation(np.concatenate(chosen)).astype(np.int64)


def labels_per_trace(n: int, *, labels_wanted: int, overlap: float = 1.0) -> list[int]:
    """Return the labels wanted of each trace: `labels_wanted` in the overlap, one elsewhere.

    The overlap has at least one trace unless its share is zero.

    Examples
    --------
    >>> labels_per_trace(4, labels_wanted=2, overlap=0.25)
    [2, 1, 1, 1]
    """
    if labels_wanted < 1:
        raise InputError(f"labels wanted must be at least 1, got {labels_wanted}")
    if not 0 <= overlap <= 1:
        raise InputError(f"overlap must be a share in [0, 1], got {overlap}")
    shared = min(n, math.ceil(round(n * overlap, 6)))
    return [labels_wanted] * shared + [1] * (n - shared)


PAGE = 100

HIDDEN_FILTER = (
    "classes, tags, verdicts and models are for leads: whoever labels must not know them; "
    "remove these filters"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class TracePage:
    """One page of the traces that a filter finds; `page` counts from 1.

    `still_blind` of its traces have class and verdict left out, as the reader can still label or
    adjudicate them blind. None are listed where the filter itself would tell.
    """

    n: int
    page: int
    pages: int
    traces: pd.DataFrame
    still_blind: int = 0


def list_traces(
    store: Store,
    chosen: TraceFilter,
    *,
    for_leads: bool,
    sort: str = "imported",
    descending: bool = False,
    page: int = 1,
    page_size: int | None = PAGE,
    seen_by: str | None = None,
    show_all: bool = False,
    n: int | None = None,
) -> TracePage:
    """List the traces that a filter finds; past the end, the last page; `page_size` None: one page.

    Classes, verdicts, models and costs are for leads only. Exposure of the reviewer `seen_by` to
    each class and verdict is recorded; those that the reviewer can still decide blind are left out
    unless `show_all`. `n` is how many there are, where that was counted before.
    """
    _allow(chosen, for_leads=for_leads)
    n = store.count_traces(chosen) if n is None else n
    pages = 1 if page_size is None else max(1, -(-n // page_size))
    page = min(max(1, page), pages)
    traces = store.trace_list(
        chosen,
        for_leads=for_leads,
        sort=sort,
        descending=descending,
        limit=page_size,
        offset=0 if page_size is None else (page - 1) * page_size,
    )
    blind = 0
    if for_leads and seen_by is not None:
        if not show_all:
            traces, blind = _without_blind(store, traces, seen_by, chosen)
        _record_seen(store, traces, seen_by)
    return TracePage(n=n, page=page, pages=pages, traces=traces, still_blind=blind)


def _without_blind(
    store: Store, traces: pd.DataFrame, seen_by: str, chosen: TraceFilter
) -> tuple[pd.DataFrame, int]:
    """Leave out what would end somebody's blindness; return how many traces that concerns."""
    said = traces["class"] != UNLABELLED
    if "verdict" in traces:
        said |= traces["verdict"].notna()
    still = store.still_blind(seen_by, traces["trace_id"].tolist())
    blind = traces["trace_id"].isin(still)
    if chosen.classes or chosen.tags or chosen.verdicts:
        return (traces.iloc[:0], int(blind.sum())) if blind.any() else (traces, 0)
    # Also of the unlabelled ones: what is missing would tell which are labelled.
    hidden = [name for name in ("class", "labels", "verdict") if name in traces]
    traces[hidden] = traces[hidden].astype(object).where(~blind, None)
    return traces, int((blind & said).sum())


def _record_seen(store: Store, traces: pd.DataFrame, seen_by: str) -> None:
    labelled = traces["trace_id"][traces["class"].notna() & (traces["class"] != UNLABELLED)]
    store.record_exposure(seen_by, labelled.tolist(), "labels")
    if "verdict" in traces:
        judged = traces["trace_id"][traces["verdict"].notna()]
        store.record_exposure(seen_by, judged.tolist(), "verdicts")


def _allow(chosen: TraceFilter, *, for_leads: bool) -> None:
    if chosen.for_leads and not for_leads:
        raise InputError(HIDDEN_FILTER)


def plain_rows(traces: pd.DataFrame) -> Iterator[dict[str, Any]]:
    """Yield the rows of a list as JSON values; missing ones are None."""
    for row in traces.to_dict("records"):
        yield {str(name): _plain(value) for name, value in row.items()}


def _plain(value: Any) -> Any:
    if value is None or value is pd.NaT or (isinstance(value, float) and np.isnan(value)):
        return None
    if isinstance(value, datetime):
        return value.isoformat() + "Z"
    return value


def traces_csv(
    store: Store,
    chosen: TraceFilter,
    *,
    for_leads: bool,
    seen_by: str | None = None,
    show_all: bool = False,
) -> str:
    """Return the list of `list_traces` as CSV without spreadsheet formulas."""
    listed = list_traces(
        store, chosen, for_leads=for_leads, page_size=None, seen_by=seen_by, show_all=show_all
    )
    return as_csv([str(name) for name in listed.traces.columns], plain_rows(listed.traces))


def batch_of(
    store: Store,
    chosen: TraceFilter,
    design: SamplingDesign,
    *,
    n: int | None = None,
    for_leads: bool = True,
) -> Batch:
    """Make a batch of the traces that a filter finds, or of `n` of them at random.

    A filtered batch says nothing about the rate of production: it records the filters, has no
    inclusion probabilities, and analyses of a rate refuse it. Without a filter, or with one
    workflow alone, it is the random sample of `draw_batch`.
    """
    _allow(chosen, for_leads=for_leads)
    if n is not None and n < 1:
        raise InputError(f"n must be at least 1, got {n}")
    if design.seed < 0:
        raise InputError(f"seed must be 0 or more, got {design.seed}")
    workflow = chosen.workflows[0] if len(chosen.workflows) == 1 else None
    found = store.selected_ids(chosen)
    if not found:
        raise CalibrationError("these filters find no trace; remove some")
    n = len(found) if n is None else n
    if n > len(found):
        raise CalibrationError(
            f"{n} traces were asked for and the filters find {len(found)}; ask for fewer"
        )
    if chosen == (TraceFilter() if workflow is None else TraceFilter(workflows=(workflow,))):
        return draw_batch(store, replace(design, workflow=workflow), n=n)
    drawn = draw_ids(np.array(found, dtype=str), n=n, seed=design.seed)
    recorded = {
        "kind": SELECTION,
        "filters": chosen.to_dict(),
        "n": n,
        "found": len(found),
        "seed": design.seed,
        "found_sha256": ids_digest(found),
    }
    return store_batch(store, design, drawn, recorded)


FEW_SHOTS, DEVELOPMENT, LOCKED_TEST = "few_shots", "development", "locked_test"
SPLITS = (FEW_SHOTS, DEVELOPMENT, LOCKED_TEST)

# The practice form may also teach a judge; of the exams only A may be tuned on.
SPLIT_OF_FORM = {"practice": FEW_SHOTS, "exam_a": DEVELOPMENT, "exam_b": LOCKED_TEST}

# Shares of the production tasks, in the order of SPLITS.
SHARES = (0.2, 0.4, 0.4)


def split_of_task(task_key: str) -> str:
    """Return the split of a production task: all trials in one, in every store, for ever."""
    digest = hashlib.sha256(task_key.encode()).digest()
    place = int.from_bytes(digest[:8], "big") / 2**64
    if place < SHARES[0]:
        return FEW_SHOTS
    return DEVELOPMENT if place < SHARES[0] + SHARES[1] else LOCKED_TEST


def labelled_splits(store: Store) -> pd.DataFrame:
    """Return trace_id, task_key, batch_id and split of every labelled trace."""
    # A task in several forms, or in production too, has the split furthest from training.
    tasks = store.trace_frame().set_index("trace_id")["task_key"]
    rows = []
    for batch in store.batches():
        events = store.label_frame(batch.batch_id)
        form = str(batch.design.get("form")) if batch.design.get("form") else None
        for trace_id in events.loc[events["kind"] == "label", "trace_id"].unique():
            task = tasks.get(trace_id, trace_id)
            own = SPLIT_OF_FORM.get(form or "") or split_of_task(str(task))
            rows.append((str(trace_id), str(task), batch.batch_id, own))
    found = pd.DataFrame(rows, columns=["trace_id", "task_key", "batch_id", "split"])
    rank = found["split"].map(SPLITS.index)
    furthest = rank.groupby(found["task_key"]).transform("max")
    found["split"] = [SPLITS[int(place)] for place in furthest]
    return found.sort_values(["batch_id", "trace_id"]).reset_index(drop=True)
