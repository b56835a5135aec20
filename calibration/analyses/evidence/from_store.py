"""Calibration data from a store: a batch with labels and consensus, and the verdicts of a judge."""

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from calibration.analyses.evidence.data import (
    MISSING,
    CalibrationData,
    Provenance,
    ReviewedTrace,
    ReviewerLabel,
    among,
    class_shares,
    label_codes,
    quotes_in,
    verdict_codes,
)
from calibration.errors import CalibrationError, InputError, MixedDataError
from calibration.records import CUT, NO_VERDICT, SOURCE_JUDGE, TraceForReview
from calibration.success_rate.runs import cost_penalties
from calibration.text import (
    TOGETHER,
    arms_left_out,
    named_batches,
    names_there,
    several_judges,
)

if TYPE_CHECKING:
    from calibration.store import Batch, Store

# Columns of a trace that numbers depend on, beside labels and verdicts.
INPUT_COLUMNS = ["trace_id", "workflow", "task_key", "cost_usd", "units", "ceiling_usd"]

# Name of the stratum of workflows that are too small for one of their own.
OTHER_WORKFLOWS = "other workflows"

CONFIDENCE = {1: "low", 2: "medium", 3: "high"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Part:
    """A part of production, by start time (UTC, `until` excluded) and workflow.

    The rest of a random sample is a random sample of the rest of production: every trace keeps its
    inclusion probability. With a time limit, a trace without a start time is excluded.
    """

    since: datetime | None = None
    until: datetime | None = None
    workflow: str | None = None

    @property
    def dated(self) -> bool:
        """Whether the time of a trace matters."""
        return self.since is not None or self.until is not None

    def of(self, traces: pd.DataFrame) -> NDArray[np.bool_]:
        """Return whether each trace is in the part."""
        kept = self.of_workflow(traces)
        times = started(traces)
        if self.since is not None:
            kept = kept & (times >= self.since).to_numpy()
        if self.until is not None:
            kept = kept & (times < self.until).to_numpy()
        return kept

    def of_workflow(self, traces: pd.DataFrame) -> NDArray[np.bool_]:
        """Return whether each trace is of the workflow, at any time."""
        if self.workflow is None:
            return np.ones(len(traces), dtype=bool)
        return np.asarray(traces["workflow"] == self.workflow, dtype=bool)


def started(traces: pd.DataFrame) -> pd.Series:
    """Return start times of traces in UTC, NaT if missing."""
    return pd.to_datetime(traces["started_at"], utc=True)


WHOLE = Part()


def choose_batch(store: "Store", batch_id: str | None, *, to_label: bool = False) -> "Batch":
    """Return the named batch, or the newest random sample, the one rule of commands and pages.

    It is the newest one that somebody has labelled, if any; the newest in any case if labels are to
    be given (`to_label`). Without a random sample it is a batch of chosen traces, by the same rule.
    Raises InputError if there is no batch of that name; CalibrationError if none is named and there
    is no production batch.
    """
    batches = store.batches()
    if batch_id is not None:
        for batch in batches:
            if batch.batch_id == batch_id:
                return batch
        known = names_there(batch_id, [batch.batch_id for batch in batches])
        raise InputError(f"no batch {batch_id!r:.80}; {known}")
    production = [b for b in batches if b.purpose == "production" and not b.is_audit]
    drawn = [batch for batch in production if batch.is_sample] or production
    if not drawn:
        raise CalibrationError("there is no batch yet; `asr sample --n 40 --seed 1` draws one")
    labelled = (b for b in drawn if not to_label and not store.label_frame(b.batch_id).empty)
    return next(labelled, drawn[0])


def batches_of(store: "Store", batch_id: str | None = None) -> "list[Batch]":
    """Return the batches of a rate, as `pooled_id`; the last one has the population."""
    return [choose_batch(store, name) for name in pooled_id(store, batch_id).split(TOGETHER)]


def pooled_id(store: "Store", batch_id: str | None = None) -> str:
    """Return the batches of a rate by their joined names, in the order of their draw.

    By default the batch that `choose_batch` takes, with the earlier random samples that somebody
    has labelled, as far as the chance of every trace to be drawn is known; a name, or joined names,
    narrows. Raises as `choose_batch`, and InputError
    for several names of which one is no such batch.
    """
    if batch_id is not None:
        named = [choose_batch(store, name) for name in batch_id.split(TOGETHER)]
        for batch in named:
            if len(named) > 1 and not _has_chances(batch):
                raise InputError(
                    f"batch {batch.batch_id!r} cannot be taken together with others: it does not "
                    "say with what chance it would have drawn each trace; name it alone"
                )
        return TOGETHER.join(batch.batch_id for batch in named)
    newest = choose_batch(store, None)
    labelled = labelled_batches(store)
    if not labelled or not _has_chances(newest):
        return newest.batch_id
    return TOGETHER.join(batch.batch_id for batch in labelled if _has_chances(batch))


def rated_with(store: "Store", batch_id: str) -> str:
    """Return the batches whose rate a batch is part of: all random ones together, or itself."""
    pooled = pooled_id(store)
    return pooled if batch_id in pooled.split(TOGETHER) else batch_id


def labelled_batches(store: "Store") -> "list[Batch]":
    """Return the random batches that somebody has labelled, in the order of their draw."""
    return [
        batch
        for batch in reversed(store.batches())
        if batch.purpose == "production"
        and batch.is_sample
        and not store.label_frame(batch.batch_id).empty
    ]


def _has_chances(batch: "Batch") -> bool:
    """Whether the chance of every trace to be drawn is known, not of the drawn ones alone."""
    return batch.is_sample and ("strata" not in batch.design or "allocation" in batch.design)


def drawn_by(
    store: "Store", batches: "Sequence[Batch]", traces: pd.DataFrame
) -> tuple[pd.DataFrame, pd.DataFrame, NDArray[np.int64] | None]:
    """Return the items of batches among some traces, what people said of them, and strata.

    Strata are those of all traces by their chances, None for a single batch. Of several batches an
    item has the probability of being drawn by one of them: 1 - (1 - p_1)(1 - p_2)..., for they are
    drawn independently. In each batch the traces are in random order, so those asked about so far
    are a random part of it, and only they count.
    """
    items = [store.batch_items(batch.batch_id) for batch in batches]
    events = [store.label_frame(batch.batch_id) for batch in batches]
    told, strata = pd.concat(events), None
    if len(batches) > 1:
        pairs = zip(items, events, strict=True)
        asked = [own["trace_id"].isin(of["trace_id"]) for own, of in pairs]
        by_batch = np.column_stack([
            _chances(store, batch, own, traces) * of.mean()
            for batch, own, of in zip(batches, items, asked, strict=True)
        ])  # fmt: skip
        # The labelled ones among traces with the same chance in each batch are a random part.
        strata = np.unique(by_batch.round(12), axis=0, return_inverse=True)[1].ravel()
        chance = pd.Series(1 - (1 - by_batch).prod(axis=1), index=traces["trace_id"])
        items = [own[of] for own, of in zip(items, asked, strict=True)]
        told = told.sort_values("created_at", kind="stable")
        told = told.drop_duplicates(["trace_id", "reviewer_id"], keep="last")
    found = pd.concat(items)
    found = found[among(found["trace_id"], traces["trace_id"])]
    found = found.drop_duplicates("trace_id").reset_index(drop=True)
    if len(batches) > 1:
        found["inclusion_probability"] = chance.loc[found["trace_id"]].to_numpy()
    return found, told[among(told["trace_id"], traces["trace_id"])], strata


def _chances(
    store: "Store", batch: "Batch", items: pd.DataFrame, traces: pd.DataFrame
) -> NDArray[np.float64]:
    """Return the chance with which a batch would have drawn each trace."""
    design, inside = batch.design, batch.could_draw(traces).to_numpy(dtype=bool)
    if "allocation" not in design:
        return np.where(inside, items["inclusion_probability"].iloc[0], 0.0)
    strata = _strata_by_verdict(store, batch, traces, design["strata"])
    if strata is None:
        raise CalibrationError(f"batch {batch.batch_id!r} does not name the verdicts of its strata")
    chance = np.array([cell["inclusion_probability"] for cell in design["strata"]])
    return np.where(inside & (strata != MISSING), chance[strata], 0.0)


def load_batch(
    store: "Store",
    batch_id: str | None = None,
    *,
    sample: bool = True,
    part: Part = WHOLE,
    arms: bool = False,
) -> CalibrationData:
    """Read batches with their labels, consensus and population, or a `part` of them.

    `batch_id` : a name, or names joined as by `pooled_id`, the default of a `sample`. The
    population is that of the newest of the batches; with batches of a week, all of theirs.

    Perturbed arms are left out and counted; with `arms` they are in the data, for work on labels
    that is no number of production.

    No judge is read: see `with_judge`. Results on production require a random `sample` and refuse
    other batches; results on the traces of the batch do not. Raises InputError if there is no such
    batch, or no trace of the workflow of the `part`; MixedDataError if simulated and real traces or
    labels would enter one number; CalibrationError if a random batch lacks inclusion probabilities.
    """
    from calibration.store.traces import perturbed

    if batch_id is None and not sample:
        batch_id = choose_batch(store, None).batch_id
    batches = batches_of(store, batch_id)
    batch, joined = batches[-1], TOGETHER.join(one.batch_id for one in batches)
    for one in batches:
        if one.purpose != "production":
            raise InputError(f"batch {one.batch_id!r} is for {one.purpose}, not for production")
    every = store.production_traces(arms=True)
    if sample or batch.is_sample:
        whole = _population(batches, every)
    else:
        own = store.batch_items(batch.batch_id)["trace_id"]
        whole = every[among(every["trace_id"], own)]
    of_arms = perturbed(kept_traces(whole, part))
    if not arms:
        every, whole = (frame[~perturbed(frame)] for frame in (every, whole))
    traces = kept_traces(whole, part)
    items, events, pooled = drawn_by(store, batches, traces)
    labels = events[events["kind"] == "label"]
    exposed = int(labels["exposed"].sum())
    labels = labels[~labels["exposed"]]
    labels = labels.sort_values(["trace_id", "reviewer_id"]).reset_index(drop=True)
    taxonomy = store.taxonomy()
    labels["code"] = labels["outcome"].map(taxonomy.places)
    labelled = items[items["trace_id"].isin(labels["trace_id"])].merge(
        traces.drop(columns="seq"), on="trace_id", how="left"
    )
    consensus = store.consensus_frame()
    consensus = consensus[consensus["trace_id"].isin(labelled["trace_id"])]
    only_skipped = set(events.loc[events["kind"] == "skip", "trace_id"]) - set(labels["trace_id"])
    settled = labelled["trace_id"].map(
        consensus.set_index("trace_id")["outcome"].map(taxonomy.places)
    )
    settled_codes = np.asarray(settled.fillna(MISSING), dtype=np.int64)
    codes = label_codes(labels, labelled["trace_id"])
    strata = _strata(store, batch, traces, items) if pooled is None else pooled
    if _weights(batch, items, []) is None:
        strata = None
    return CalibrationData(
        provenance=Provenance(
            source="store", batch_id=joined, simulated=all_simulated(whole, labels, consensus)
        ),
        taxonomy=taxonomy,
        classes=taxonomy.names,
        credit=np.array(taxonomy.credits),
        own_credit=taxonomy.credit_table.by_workflow,
        sampling="drawn" if batch.is_sample else "chosen",
        traces=traces,
        verdict_names=(*taxonomy.names, NO_VERDICT),
        verdicts=np.full(len(traces), len(taxonomy.names), dtype=np.int64),
        penalties=trace_penalties(traces),
        labels=labels,
        labelled=labelled,
        at=pd.Index(traces["trace_id"]).get_indexer(labelled["trace_id"]).astype(np.int64),
        human=class_shares(codes, settled_codes, len(taxonomy.names)),
        adjudicated=settled_codes != MISSING,
        tasks=pd.factorize(traces["task_key"])[0],
        weights=_weights(batch, items, list(labelled["trace_id"])),
        reviewers=tuple(sorted(labels["reviewer_id"].unique())),
        skipped_ids=tuple(sorted(only_skipped)),
        skipped_weights=_weights(batch, items, sorted(only_skipped)),
        strata=strata if part == WHOLE else None,
        unlabelled=len(items) - len(labelled) - len(only_skipped),
        audit=_audit(store, labels, labelled["trace_id"], settled_codes),
        exposed=exposed,
        perturbed=int(of_arms.sum()),
        overlap_random=batch.is_sample,
        later_traces=_later_traces(batch, every, part),
        undated=int((part.of_workflow(whole) & started(whole).isna()).sum()) if part.dated else 0,
        stored_batch=batch,
        notes=tuple(_notes(store, batches, 0 if arms else int(of_arms.sum()))),
    )


def _population(batches: "Sequence[Batch]", every: pd.DataFrame) -> pd.DataFrame:
    """Return what a rate is of: what the newest batch was drawn from, of weeks what all were."""
    newest = batches[-1].population(every)
    if all(batch.week is None for batch in batches):
        return newest
    of_each = [newest, *(batch.population(every) for batch in batches[:-1])]
    whole = pd.concat(of_each).drop_duplicates("trace_id")
    return whole.sort_values("trace_id").reset_index(drop=True)


def agreed_traces(labels: pd.DataFrame) -> pd.Series:
    """Return the code of the class of each trace on which two reviewers or more agree."""
    of_trace = labels.groupby("trace_id")["code"]
    agreed: pd.Series = of_trace.first()[(of_trace.size() >= 2) & (of_trace.nunique() == 1)]
    return agreed


def _audit(
    store: "Store", labels: pd.DataFrame, trace_ids: pd.Series, settled: NDArray[np.int64]
) -> tuple[bool, ...] | None:
    """Compare the agreed labels with those that a lead gave again; None without an audit."""
    audits = [batch for batch in store.batches() if batch.is_audit]
    if not audits:
        return None
    agreed = agreed_traces(labels)
    agreed = agreed[~agreed.index.isin(trace_ids[settled != MISSING])]
    again = pd.concat([store.label_frame(batch.batch_id) for batch in audits])
    again = again[(again["kind"] == "label") & ~again["exposed"].astype(bool)]
    again = again[again["trace_id"].isin(agreed.index)].drop_duplicates("trace_id")
    codes = again["outcome"].map(store.taxonomy().places)
    return tuple((codes.to_numpy() != agreed[again["trace_id"]].to_numpy()).tolist())


def _notes(store: "Store", batches: "Sequence[Batch]", n_perturbed: int) -> Iterator[str]:
    """Say what is left out: perturbed arms, and the labels of other random batches."""
    if n_perturbed:
        yield arms_left_out(n_perturbed)
    used = {batch.batch_id for batch in batches}
    others = [b.batch_id for b in labelled_batches(store) if b.batch_id not in used]
    if others and all(batch.is_sample for batch in batches):
        yield f"labels of {named_batches(TOGETHER.join(others))} are not used here (--batch)"


def with_judge(store: "Store", data: CalibrationData, judge_id: str | None) -> CalibrationData:
    """Return the data with the first verdicts of a judge; a trace without one is `no_verdict`.

    Labels that compared versions of the judge are left out, see `without_spent`. Raises InputError,
    CalibrationError as `choose_judge`; MixedDataError if only one of judge and labels is simulated.
    """
    chosen = choose_judge(store, judge_id)
    refuse_mixture(store, chosen, data)
    verdicts = store.verdict_frame(chosen)
    found = with_verdicts(without_spent(store, data, chosen), verdicts, judge_id=chosen)
    return replace(found, notes=(*found.notes, *_causes(verdicts, found.traces)))


def without_spent(store: "Store", data: CalibrationData, judge_id: str) -> CalibrationData:
    """Return the data without labels that may have chosen this version of a judge.

    Such labels read too high for it. They are those of the development tasks, three in ten by the
    hash of the task, of each batch on which the judge or another version of its line was compared.
    The other labels are a random part of all, so that a random sample stays one.
    """
    spent = store.spent_batches(judge_id)
    if not spent or data.labelled.empty:
        return data
    from calibration.judging.selection import DEVELOPMENT, split_of

    items = set(pd.concat([store.batch_items(name)["trace_id"] for name in spent]))
    tasks = data.traces.set_index("trace_id")["task_key"]
    kept, skipped = (
        np.array(
            [i not in items or split_of(str(tasks[i])) != DEVELOPMENT for i in ids], dtype=bool
        )
        for ids in (data.labelled["trace_id"], data.skipped_ids)
    )
    if kept.all():
        return data
    names = data.labelled["trace_id"][kept]
    weights, away = data.weights, data.skipped_weights
    n = int((~kept).sum())
    note = (
        f"{n:,} of {len(kept):,} labelled traces compared versions of judge {judge_id} "
        f"({', '.join(spent)}); they do not enter its results"
    )
    return replace(
        data,
        labels=data.labels[data.labels["trace_id"].isin(names)].reset_index(drop=True),
        labelled=data.labelled[kept].reset_index(drop=True),
        at=data.at[kept],
        human=data.human[kept],
        adjudicated=data.adjudicated[kept],
        weights=None if weights is None else weights[kept],
        skipped_ids=tuple(np.array(data.skipped_ids, dtype=object)[skipped]),
        skipped_weights=None if away is None else away[skipped],
        notes=(*data.notes, note),
    )


def _causes(verdicts: pd.DataFrame, traces: pd.DataFrame) -> Iterator[str]:
    """Yield why a judge that we run gave no verdict, if it did not on any of these traces."""
    of_these = verdicts.loc[among(verdicts["trace_id"], traces["trace_id"]), "cause"].dropna()
    counts = sorted(of_these.value_counts().items(), key=lambda item: (-item[1], str(item[0])))
    if counts:
        causes = ", ".join(f"{cause} {n:,}" for cause, n in counts)
        yield f"no verdict on {len(of_these):,} of {len(traces):,} traces, by cause: {causes}"


def with_verdicts(
    data: CalibrationData, verdicts: pd.DataFrame, *, judge_id: str = ""
) -> CalibrationData:
    """Return the data with verdicts from a frame with columns trace_id and outcome."""
    of_trace = verdicts.set_index("trace_id")
    known = of_trace[[name for name in ("outcome", "cause") if name in of_trace]]
    known = known.reindex(data.traces["trace_id"]).reset_index(drop=True)
    codes, names = verdict_codes(known["outcome"], data.classes, causes=known.get("cause"))
    found = replace(
        data,
        provenance=replace(data.provenance, judge_id=judge_id),
        verdicts=codes,
        verdict_names=names,
    )
    if "prompt" not in of_trace or not (of_trace["prompt"] == CUT).any():
        return found
    traces, labelled = (
        frame.assign(prompt=frame["trace_id"].map(of_trace["prompt"]))
        for frame in (found.traces, found.labelled)
    )
    return replace(found, traces=traces, labelled=labelled)


def with_context(store: "Store", data: CalibrationData) -> CalibrationData:
    """Return the data with reasons, quotes, grades, repeats of the judge, and response lengths."""
    samples = store.verdict_samples(data.provenance.judge_id)
    verdicts = samples.drop_duplicates("trace_id").set_index("trace_id")
    first = verdicts[verdicts["sample"] == 0]
    ids = data.labelled["trace_id"]
    texts = {t.trace_id: t.response or "" for t in store.for_review(ids.tolist())}
    grades = ids.map(first["grade"]).fillna(0).to_numpy(dtype=np.int64)
    known = samples[among(samples["trace_id"], data.traces["trace_id"]) & ~samples["of_all"]]
    # Verdicts on a sample are classes or none, whatever its cause.
    code = {name: k for k, name in enumerate(data.classes)}
    named = data.verdict_names
    code[NO_VERDICT] = named.index(NO_VERDICT) if NO_VERDICT in named else len(named)
    wide = known.assign(code=known["outcome"].map(code)).pivot_table(
        index="trace_id", columns="sample", values="code", aggfunc="first"
    )
    changed = known.groupby("trace_id")["outcome"].nunique() > 1
    return replace(
        data,
        labelled=data.labelled.assign(
            response_chars=[float(len(texts[trace_id])) for trace_id in ids],
            reason=ids.map(verdicts["reason"]),
            evidence=ids.map(verdicts["evidence"]),
            changed=ids.isin(changed.index[changed]),
        ),
        grades=grades if grades.any() else None,
        repeats=wide.fillna(MISSING).to_numpy(dtype=np.int64),
    )


def load_judged(
    store: "Store", batch_id: str | None, judge_id: str | None, *, sample: bool = True
) -> CalibrationData:
    """Read a batch, by default the newest random one, with its labels and a judge.

    Raises as `load_batch` and `judged_of`.
    """
    return judged_of(store, load_batch(store, pooled_id(store, batch_id), sample=sample), judge_id)


def judged_of(store: "Store", loaded: CalibrationData, judge_id: str | None) -> CalibrationData:
    """Return a batch as `with_judge`; CalibrationError if nothing of it is labelled."""
    data = with_judge(store, loaded, judge_id)
    if data.labelled.empty:
        name = loaded.provenance.batch_id
        raise CalibrationError(f"batch {name!r} has no labels yet; label it on the Label page")
    return data


def kept_traces(traces: pd.DataFrame, part: Part) -> pd.DataFrame:
    """Return the traces of a part; InputError, with those there are, without its workflow."""
    if part.workflow is not None and not part.of_workflow(traces).any():
        known = names_there(part.workflow, sorted(traces["workflow"].unique()))
        raise InputError(f"no trace has the workflow {part.workflow!r:.80}; {known}")
    kept: pd.DataFrame = traces[part.of(traces)].reset_index(drop=True)
    return kept


def _weights(
    batch: "Batch", items: pd.DataFrame, trace_ids: list[str]
) -> NDArray[np.float64] | None:
    """Return inverse inclusion probabilities; None if equal or no random sample."""
    if not batch.is_sample:
        return None
    drawn = items["inclusion_probability"]
    if drawn.isna().any():
        raise CalibrationError(
            f"batch {batch.batch_id!r} does not say with what probability {drawn.isna().sum()} of "
            "its traces were drawn; draw a batch with `asr sample`"
        )
    if drawn.empty or np.allclose(drawn, drawn.iloc[0], rtol=1e-9, atol=0):
        return None
    probability = items.set_index("trace_id")["inclusion_probability"].loc[trace_ids]
    return np.asarray(1 / probability.to_numpy(dtype=np.float64))


def _strata(
    store: "Store", batch: "Batch", traces: pd.DataFrame, items: pd.DataFrame
) -> NDArray[np.int64] | None:
    """Return the stratum of an uneven draw of each trace, `MISSING` where it is not known."""
    if items["stratum"].isna().any():
        return None
    given = items.set_index("trace_id")["stratum"].reindex(traces["trace_id"])
    drawn = given.fillna(MISSING).to_numpy(dtype=np.int64)
    described = batch.design.get("strata") or []
    found = _strata_by_verdict(store, batch, traces, described)
    left = [k for k, one in enumerate(described) if one["n"] < one["population"]]
    if found is None and len(left) == 1:
        # Whatever was not drawn is of the only stratum that was not drawn whole.
        found = np.where(drawn == MISSING, left[0], drawn)
    if found is None or (found == MISSING).any() or (found != drawn)[drawn != MISSING].any():
        return drawn
    sizes = np.bincount(found, minlength=len(described)).tolist()
    return found if sizes == [one["population"] for one in described] else drawn


def _strata_by_verdict(
    store: "Store", batch: "Batch", traces: pd.DataFrame, described: list[dict[str, Any]]
) -> NDArray[np.int64] | None:
    """Return the stratum of each trace by the judge's verdict and the workflow."""
    place = {(one.get("verdict"), one.get("workflow")): k for k, one in enumerate(described)}
    if not place or any(verdict is None for verdict, _ in place):
        return None
    said = store.verdict_frame(str(batch.design["judge"])).set_index("trace_id")["outcome"]
    verdicts = traces["trace_id"].map(said)
    verdicts = verdicts.where(verdicts.isin(store.taxonomy().names), NO_VERDICT)
    found = [
        next((place[of, w] for w in (flow, OTHER_WORKFLOWS, None) if (of, w) in place), MISSING)
        for of, flow in zip(verdicts, traces["workflow"], strict=True)
    ]
    return np.array(found, dtype=np.int64)


def _later_traces(batch: "Batch", every: pd.DataFrame, part: Part) -> int:
    """Count the traces imported after the draw that would have been in its population."""
    # A later week is no later part of this one.
    if not batch.is_sample or batch.week is not None:
        return 0
    later = every[(every["seq"] > batch.design["last_seq"]) & part.of(every)]
    workflow = batch.design.get("workflow")
    return len(later) if workflow is None else int((later["workflow"] == workflow).sum())


def all_simulated(*frames: pd.DataFrame) -> bool:
    """Return whether all rows are simulated; MixedDataError if only some are."""
    found = {bool(value) for frame in frames for value in frame["simulated"].unique()}
    if len(found) > 1:
        raise MixedDataError(
            "simulated and real rows would enter one number; keep the demo in a store of its own"
        )
    return found == {True}


def trace_penalties(frame: pd.DataFrame, *, factor: float = 1.0) -> NDArray[np.float64]:
    """Return the penalty of each trace, zero without a cost or a ceiling.

    `factor` multiplies every ceiling.
    """
    costs = known_costs(frame)
    ceilings = factor * frame["ceiling_usd"].fillna(1.0).to_numpy(dtype=np.float64)
    return cost_penalties(costs, ceilings, frame["units"].to_numpy(dtype=np.float64))


def known_costs(frame: pd.DataFrame) -> NDArray[np.float64]:
    """Return the cost of each trace, NaN without a cost or a ceiling."""
    costs = frame["cost_usd"].to_numpy(dtype=np.float64)
    return np.where(frame["ceiling_usd"].isna().to_numpy(), np.nan, costs)


def human_frame(loaded: CalibrationData) -> pd.DataFrame:
    """Return the human side of each labelled trace, for the fingerprint."""
    return pd.DataFrame(loaded.human).assign(
        trace_id=loaded.labelled["trace_id"].to_numpy(), adjudicated=loaded.adjudicated
    )


def drawn_frame(loaded: CalibrationData) -> pd.DataFrame:
    """Return the inclusion probability of each labelled trace, for the fingerprint."""
    return loaded.labelled[["trace_id", "inclusion_probability"]]


def choose_judge(store: "Store", judge_id: str | None) -> str:
    """Return the named judge, else the one in use, else the only one, else the grades of the files.

    Raises InputError if there is no such judge, or several and none was named; CalibrationError if
    the store holds no verdicts.
    """
    known = list(map(str, store.judge_frame()["judge_id"]))
    if not known:
        raise CalibrationError(
            "the store holds no verdicts; import traces that carry a grade, or a verdict file with "
            "`asr verdicts import FILE --judge NAME`"
        )
    if judge_id is not None:
        if judge_id in known or (judge_id == SOURCE_JUDGE and any(map(_is_source, known))):
            return judge_id
        raise InputError(f"no judge {judge_id!r:.80}; {names_there(judge_id, known)}")
    in_use = store.judge_in_use()
    if in_use in known:
        return str(in_use)
    if len(known) == 1:
        return str(known[0])
    if all(map(_is_source, known)):
        return SOURCE_JUDGE
    raise InputError(
        f"the store holds verdicts of {several_judges(known)}; `asr judge promote NAME` puts one "
        "in use for good"
    )


def _is_source(judge_id: str) -> bool:
    return judge_id.startswith(SOURCE_JUDGE)


def source_judges(store: "Store") -> list[str]:
    """Return the judges whose verdicts came with the traces, those on most traces first."""
    judges = store.judge_frame()
    found = judges[judges["judge_id"].map(_is_source).astype(bool) & (judges["n"] > 0)]
    found = found.sort_values(["n", "judge_id"], ascending=[False, True])
    return [str(name) for name in found["judge_id"]]


def source_judge(store: "Store", judge_id: str | None) -> str:
    """Return the judge whose outcomes are taken as given: the named one, else the only source.

    InputError, which lists the judges there are, if it gave no verdict, or is no source: the rate
    by a judge alone is a diagnostic.
    """
    sources, judges = source_judges(store), store.judge_frame()
    known = ", ".join(judges.loc[judges["n"] > 0, "judge_id"]) or "none"
    if judge_id is None and len(sources) == 1:
        return sources[0]
    if judge_id is None:
        raise InputError(
            "outcomes are taken as given from a judge source:...; name one with --judge; the "
            f"judges with verdicts are: {known:.300}"
        )
    if not _is_source(judge_id):
        raise InputError(
            f"judge {judge_id!r:.80} is not a source of the runs (source:...): what it says is not "
            "taken as given; label a random sample, and the rate is corrected for its errors; the "
            f"judges with verdicts are: {known:.300}"
        )
    if judge_id in sources or (judge_id == SOURCE_JUDGE and sources):
        return judge_id
    raise InputError(
        f"judge {judge_id!r:.80} gave no verdicts; the judges with verdicts are: {known:.300}"
    )


def words_of_judge(store: "Store", judge_id: str) -> str:
    """Return the name of a judge, or the names of all sources where they are taken together."""
    return " and ".join(source_judges(store)) if judge_id == SOURCE_JUDGE else judge_id


def labelled_traces(store: "Store") -> int:
    """Return how many traces of production somebody has labelled."""
    batches = [b.batch_id for b in store.batches() if b.purpose == "production"]
    labels = [store.label_frame(name) for name in batches]
    ids = [of.loc[of["kind"] == "label", "trace_id"] for of in labels if len(of)]
    return int(pd.concat(ids).nunique()) if ids else 0


def judges_behind(store: "Store", judge_id: str) -> pd.DataFrame:
    """Return the rows of `Store.judge_frame` of a judge, or of all sources together."""
    judges = store.judge_frame()
    return judges[
        judges["judge_id"].map(_is_source).astype(bool)
        if judge_id == SOURCE_JUDGE
        else judges["judge_id"] == judge_id
    ]


def refuse_mixture(store: "Store", judge_id: str, loaded: CalibrationData) -> None:
    """Raise MixedDataError if only one of judge and labels is simulated."""
    if (judges_behind(store, judge_id)["simulated"] != loaded.simulated).any():
        raise MixedDataError(
            f"judge {judge_id!r} and the labels must be both simulated or both real"
        )


def labelled_trace(
    store: "Store", batch_id: str, trace_id: str
) -> tuple[TraceForReview, ReviewedTrace]:
    """Return a trace of a batch with labels and consensus; raise InputError if missing."""
    from calibration.store import marked_violations

    found = store.for_review([trace_id])
    if not found:
        raise InputError(f"no trace {trace_id!r}")
    names = batch_id.split(TOGETHER)
    labels = pd.concat([store.label_frame(name, trace_id) for name in names])
    labels = labels.drop_duplicates("reviewer_id", keep="last")
    labels = labels.astype(object).where(labels.notna(), None)
    consensus = store.consensus_frame()
    settled = consensus.loc[consensus["trace_id"] == trace_id, "outcome"].tolist()
    reviewed = ReviewedTrace(
        trace_id=trace_id,
        human=dict.fromkeys(settled[:1], 1.0),
        adjudicated=bool(settled),
        labels=tuple(
            ReviewerLabel(
                reviewer=row["reviewer_id"],
                outcome=row["outcome"],
                answers=json.loads(row["answers"] or "{}"),
                rationale=row["rationale"],
                confidence=CONFIDENCE.get(row["confidence"]),
                evidence=quotes_in(row["evidence"]),
                tags=tuple(json.loads(row["tags"] or "[]")),
                reason=row["reason"],
                blind=not row["exposed"],
                violations=marked_violations(row["violations"]) or (),
            )
            for row in labels.to_dict("records")
        ),
    )
    return found[0], reviewed


@dataclass(frozen=True, slots=True, kw_only=True)
class Settled:
    """A trace with a consensus.

    `labels` are the reviewers and classes at adjudication, empty for a consensus `elsewhere` (from
    a file). `blind` is true if the adjudicator saw no answers before deciding, `own` if the
    adjudicator is a reviewer of the trace, `reopened` if labels have changed since; the consensus
    remains until the next decision.
    """

    trace_id: str
    outcome: str
    adjudicator: str
    labels: tuple[tuple[str, str], ...]
    blind_outcome: str | None
    blind: bool
    question: str | None
    cause: str | None
    rationale: str | None
    own: bool
    reopened: bool
    elsewhere: bool
    at: datetime

    @property
    def changed(self) -> bool:
        """Whether the adjudicator changed the class after seeing the answers."""
        return self.blind_outcome is not None and self.blind_outcome != self.outcome


def settled_traces(store: "Store", batch_id: str) -> tuple[Settled, ...]:
    """Return the current consensus of a batch, newest first."""
    frame = store.adjudication_frame(batch_id)
    rows = frame.astype(object).where(frame.notna(), None).to_dict("records")
    return tuple(_settled({str(name): value for name, value in row.items()}) for row in rows)


def _settled(row: dict[str, Any]) -> Settled:
    labels = json.loads(row["labels"] or "[]")
    return Settled(
        trace_id=row["trace_id"],
        outcome=row["outcome"],
        adjudicator=row["adjudicator"],
        labels=tuple((label["reviewer_id"], label["outcome"]) for label in labels),
        blind_outcome=row["blind_outcome"],
        blind=bool(row["blind"]),
        question=row["question"],
        cause=row["cause"],
        rationale=row["rationale"],
        own=bool(row["own_label"]),
        reopened=bool(row["reopened"]),
        elsewhere=row["batch_id"] is None,
        at=pd.Timestamp(row["created_at"]).to_pydatetime(),
    )
