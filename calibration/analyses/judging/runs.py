"""Runs of a judge on the traces of a store, and how their verdicts come into it."""

import asyncio
import hashlib
import json
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any, TypeVar

from calibration.analyses.judging.versions import (
    JudgeEntry,
    entry_of,
    judge_of,
    tree_judge,
    with_this_reader,
)
from calibration.errors import CalibrationError, InputError, JudgeRunError, StoreLockedError
from calibration.files import put, read_text
from calibration.judging.budget import Cap, CostEstimate
from calibration.judging.journal import (
    MOST_FILE_BYTES,
    RUN_FILE,
    WORKING,
    Answers,
    Journal,
    RunProgress,
    read_plan,
    read_progress,
)
from calibration.judging.pace import Rates
from calibration.judging.requests import Judge, Reply, Request, SampleVerdict
from calibration.judging.runner import Item, dry_run, paid, plan_run, run
from calibration.judging.steps import combine
from calibration.judging.transport import Transport
from calibration.records import NO_VERDICT, Evidence, Verdict
from calibration.statistics.estimate import Estimate
from calibration.statistics.intervals import wilson_share
from calibration.store import Store
from calibration.store.doctor import OK, PROBLEM, WARNING, Finding
from calibration.text import names_there
from reference_dataset.loader import ReferenceSet
from reference_dataset.team import team_reference

FORMS = ("practice", "exam_a", "exam_b")
MOST_TRACES = 100_000  # of one run
PART = 50  # traces that are read together
PATIENCE_S = 300.0  # for a store that another command holds
OUTAGE = "outage"
ANCHORS = 10  # practice traces that an existing judge is asked again in every run
AGAIN = "~again."
ANCHORS_FILE = "anchors.json"
UNVERIFIED = "unverified"

T = TypeVar("T")
# Opens the store for writing, or hands over to the app that has it.
Write = Callable[[], AbstractContextManager[Store]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Chosen:
    """Which traces are judged: those of production, or of one form of the reference set.

    `limit` takes so many of them, by a hash of their ids: at random, and the same each time.
    """

    batch: str | None = None
    workflow: str | None = None
    form: str | None = None
    limit: int | None = None

    def __post_init__(self) -> None:
        if self.form is not None and (self.batch or self.workflow):
            raise InputError("a form of the reference set has no batch and no workflow")
        if self.form is not None and self.form not in FORMS:
            raise InputError(f"form must be one of {', '.join(FORMS)}, got {self.form!r:.80}")


def runs_folder(store: Path) -> Path:
    """Return the folder of the runs of judges beside a store; it may not exist."""
    return store.with_suffix(".judge")


def choose_traces(store: Store, entry: JudgeEntry | None, chosen: Chosen) -> list[str]:
    """Return the traces that a judge is to judge, without those of its worked examples' tasks.

    Without a judge all of them.

    Traces of the reference set are stored if they are not there yet; they count nowhere else.

    Raises
    ------
    InputError
        If there is no such batch, workflow or trace, or there are more than a run takes.
    """
    dataset, form, tasks = _examples_of(store, entry, chosen.form or "")
    ids = _of_form(store, dataset, form, tasks) if form else _of_production(store, chosen, tasks)
    if not ids:
        raise InputError("there is no such trace; `asr traces` lists those of the store")
    if chosen.limit is not None:
        ids = sorted(ids, key=lambda i: hashlib.sha256(i.encode()).digest())[: chosen.limit]
    if len(ids) > MOST_TRACES:
        raise InputError(
            f"{len(ids):,} traces, a run takes {MOST_TRACES:,}: choose a batch or a workflow, or "
            "give --limit"
        )
    return ids


def _examples_of(
    store: Store, entry: JudgeEntry | None, form: str
) -> tuple[ReferenceSet, str, set[str]]:
    """Return the dataset, the form, and the tasks of a judge's worked examples."""
    dataset = team_reference(store.path, store.taxonomy())
    examples = () if entry is None else entry.version.few_shots
    return dataset, form, {dataset.traces[i].task_key for i in examples if i in dataset.traces}


def _of_form(store: Store, dataset: ReferenceSet, form: str, tasks: set[str]) -> list[str]:
    """Return the traces of a form, the team's own among them, once they are in the store."""
    names = [name for name in dataset.forms if name.rpartition("/")[2] == form]
    found = [dataset.traces[i] for name in names for i in dataset.forms[name]]
    found = [trace for trace in found if trace.task_key not in tasks]
    there = store.content_hashes([trace.trace_id for trace in found])
    missing = [trace for trace in found if trace.trace_id not in there]
    if missing:
        store.ingest(missing)
    return [trace.trace_id for trace in found]


def _of_production(store: Store, chosen: Chosen, tasks: set[str]) -> list[str]:
    # Perturbed arms are judged where a batch of them is named: no rate takes their verdicts.
    frame = store.production_traces(arms=chosen.batch is not None)
    if chosen.workflow is not None:
        known = sorted(frame["workflow"].unique())
        if chosen.workflow not in known:
            raise InputError(
                f"no trace has the workflow {chosen.workflow!r:.80}; "
                f"{names_there(chosen.workflow, known)}"
            )
        frame = frame[frame["workflow"] == chosen.workflow]
    if chosen.batch is not None:
        if chosen.batch not in {batch.batch_id for batch in store.batches()}:
            raise InputError(f"no batch {chosen.batch!r:.80}; `asr status` lists them")
        frame = frame[frame["trace_id"].isin(store.batch_items(chosen.batch)["trace_id"])]
    frame = frame[~frame["task_key"].isin(tasks)]
    return [str(trace_id) for trace_id in frame["trace_id"]]


class StoredTraces:
    """The traces of a run, read from the store in parts of 50, each time anew.

    Of a path the store is open for the moment of each part only, so that other commands find it
    free. Those of `again` come first, as `under_own_key` in a run of this name.
    """

    def __init__(
        self,
        source: Path | Store,
        trace_ids: Sequence[str],
        *,
        again: Sequence[str] = (),
        run_name: str = "",
    ) -> None:
        self._source, self._ids, self._again = source, list(trace_ids), list(again)
        self._run_name = run_name

    def __len__(self) -> int:
        return len(self._again) + len(self._ids)

    def __iter__(self) -> Iterator[Item]:
        for item in self._read(self._again):
            yield under_own_key(item, self._run_name)
        yield from self._read(self._ids)

    def _read(self, trace_ids: Sequence[str]) -> Iterator[Item]:
        source = self._source
        for ids in parts(trace_ids):
            with nullcontext(source) if isinstance(source, Store) else reading(source) as store:
                hashes = store.content_hashes(ids)
                traces = store.for_review(ids)
            for trace in traces:
                yield trace, hashes[trace.trace_id]


def under_own_key(item: Item, run_name: str) -> Item:
    """Return a trace under an id and a hash of its own: no journaled answer is its answer."""
    trace, content_hash = item
    own = hashlib.sha256(f"{content_hash} again in {run_name}".encode()).hexdigest()
    return replace(trace, trace_id=f"{trace.trace_id}{AGAIN}{run_name}"), own


def parts(items: Sequence[T]) -> Iterator[Sequence[T]]:
    """Yield a sequence in parts of 50."""
    yield from (items[at : at + PART] for at in range(0, len(items), PART))


@contextmanager
def reading(path: Path) -> Iterator[Store]:
    """Open a store for a moment, waiting for whoever has it."""
    store, _ = patiently(lambda: Store.open_to_read(path))
    with store:
        yield store


def patiently(call: Callable[[], T], patience_s: float = PATIENCE_S) -> T:
    """Return what a call returns, trying again while another command has the store."""
    until = time.monotonic() + patience_s
    while True:
        try:
            return call()
        except StoreLockedError:
            if time.monotonic() > until:
                raise
            time.sleep(0.5)


class Delivery:
    """Brings verdicts into the store: those of a trace once all of its samples are there.

    Parameters
    ----------
    judge_id : str
        The judge's name.
    run : str
        The name of the run.
    samples : int
        Of each trace.
    write : callable
        Opens the store for writing, or what hands over to the app that has it.
    """

    def __init__(self, judge_id: str, run: str, samples: int, write: Write) -> None:
        self.judge_id, self.run, self.samples, self._write = judge_id, run, samples, write
        self._waiting: dict[str, dict[int, SampleVerdict]] = {}
        self.again: dict[str, str] = {}  # outcomes of traces that were asked again, by their id
        self.stored = 0

    def __call__(self, part: Sequence[SampleVerdict]) -> None:
        """Take verdicts in."""
        whole: list[Verdict] = []
        for verdict in part:
            of_trace = self._waiting.setdefault(verdict.trace_id, {})
            of_trace[verdict.sample] = verdict
            if len(of_trace) < self.samples:
                continue
            del self._waiting[verdict.trace_id]
            trace_id, again, _ = verdict.trace_id.partition(AGAIN)
            if again:
                self.again[trace_id] = combine(list(of_trace.values())).outcome
            else:
                whole += verdicts_of(self.judge_id, self.run, list(of_trace.values()))
        if not whole:
            return
        with patiently(self._write) as store:
            # Of a demonstration the verdicts are one too: they mix with no real labels.
            simulated = store.is_simulated()
            done = store.add_verdicts([replace(v, simulated=simulated) for v in whole])
        self.stored += sum(v.sample == 0 for v in whole)
        if done.changed:
            raise JudgeRunError(
                f"{len(done.changed):,} verdicts of judge {self.judge_id} are stored with another "
                "outcome, which no run of it can have written; nothing was overwritten"
            )


def verdicts_of(judge_id: str, run: str, samples: Sequence[SampleVerdict]) -> list[Verdict]:
    """Return the verdict of all samples of a trace, and those of the samples if there are several.

    Of the quotes those count as evidence that were found in the trace; `detail` has them all.
    """
    of_all = combine(samples)
    costs = [sample.cost_usd for sample in samples if sample.cost_usd is not None]
    several = len(samples) > 1
    about: dict[str, Any] = {
        "run": run, "of_all": several, "samples": of_all.n_samples, "valid": of_all.n_valid,
        "shares": of_all.shares,
        "causes": of_all.causes, "flags": of_all.flags, "cut_characters": of_all.cut_characters,
    }  # fmt: skip
    first = Verdict(
        judge_id=judge_id,
        trace_id=of_all.trace_id,
        outcome=of_all.outcome,
        cause=of_all.cause,
        reason=of_all.reason,
        evidence=_found(of_all.evidence),
        cost_usd=sum(costs) if costs else None,
        detail=json.dumps(about if several else about | _detail(samples[0])),
    )
    return [first] + [
        Verdict(
            judge_id=judge_id,
            trace_id=sample.trace_id,
            sample=sample.sample + 1,
            outcome=sample.outcome,
            cause=sample.cause,
            reason=sample.reason,
            evidence=_found(sample.evidence),
            cost_usd=sample.cost_usd,
            detail=json.dumps({"run": run} | _detail(sample)),
        )
        for sample in sorted(samples, key=lambda sample: sample.sample)
        if several
    ]


def _found(evidence: Sequence[Any]) -> tuple[Evidence, ...]:
    return tuple(
        Evidence(step_id=each.step, quote=each.quote)
        for each in evidence
        if each.state != UNVERIFIED
    )


def _detail(sample: SampleVerdict) -> dict[str, Any]:
    return {
        "answer": sample.answer, "quotes": [asdict(each) for each in sample.evidence],
        "flags": sample.flags, "cut_characters": sample.cut_characters,
        "replies": sample.replies, "latency_s": sample.latency_s,
    }  # fmt: skip


@dataclass(frozen=True, slots=True, kw_only=True)
class DryRun:
    """What a run would do: its traces, those that it asks again, and what it would need.

    `anchors` are practice traces with a verdict of the judge. Whether it gives them the same one
    again shows a model that has changed under its name. Until all have one they are in `trace_ids`.
    """

    run_name: str
    trace_ids: tuple[str, ...]
    anchors: tuple[str, ...]
    cost: CostEstimate


def estimate_run(
    store: Store,
    name: str,
    chosen: Chosen,
    *,
    run_name: str | None = None,
    rates: Rates | None = None,
) -> DryRun:
    """Return what judging these traces would need; nothing is sent.

    Raises
    ------
    InputError
        As `judge_of` and `choose_traces`.
    """
    entry, judge = judge_of(store, name)
    ids = choose_traces(store, entry, chosen)
    folder = runs_folder(store.path)
    run_name = run_name or next_name(folder, name)
    practice = _of_form(store, *_examples_of(store, entry, "practice"))
    anchors = sorted(practice, key=lambda i: hashlib.sha256(i.encode()).digest())[:ANCHORS]
    judged = set(store.verdict_frame(name)["trace_id"])
    again = anchors if judged.issuperset(anchors) else []
    ids = list(dict.fromkeys([*anchors, *ids])) if not again else ids
    traces = StoredTraces(store, ids, again=again, run_name=run_name)
    cost = dry_run(folder, judge, traces, prices=entry.prices, rates=rates)
    return DryRun(run_name=run_name, trace_ids=tuple(ids), anchors=tuple(again), cost=cost)


def plan(
    store: Store,
    name: str,
    chosen: Chosen,
    *,
    cap: Cap,
    run_name: str | None = None,
    address: str | None = None,
    rates: Rates | None = None,
) -> Path:
    """Freeze a run of a judge, and return its folder.

    Raises
    ------
    InputError
        As `choose_traces`.
    JudgeRunError
        As `runner.plan_run`.
    """
    entry, judge = judge_of(store, name)
    expected = estimate_run(store, name, chosen, run_name=run_name, rates=rates)
    return plan_run(
        runs_folder(store.path),
        expected.run_name,
        judge,
        cap=cap,
        prices=entry.prices,
        expected=expected.cost,
        about={
            "judge": name,
            "chosen": asdict(chosen),
            "address": address or entry.address,
            "rates": asdict(rates or Rates()),
            "trace_ids": expected.trace_ids,
            "anchors": expected.anchors,
        },
    )


def next_name(folder: Path, judge_id: str) -> str:
    """Return the next free name for a run of a judge: ``strict-001``, ``strict-002``, ..."""
    stem = judge_id.replace(".", "-")[:56]
    taken = {path.name for path in folder.iterdir()} if folder.exists() else set()
    return next(n for k in range(1, 10**6) if (n := f"{stem}-{k:03d}") not in taken)


def work(path: Path, folder: Path, *, key: str, write: Write) -> RunProgress:
    """Work on a run until it ends, and return how far it came.

    Parameters
    ----------
    path : Path
        The store; it must not be open.
    folder : Path
        What `plan` returned.
    key : str
        The key of the endpoint; empty for one that wants none.
    write : callable
        Opens the store for writing.

    Raises
    ------
    JudgeRunError
        As `runner.run`, and if the extra is not installed.
    """
    found = read_plan(folder)
    with reading(path) as store:
        _, judge = judge_of(store, str(found["judge"]))
    delivery = Delivery(str(found["judge"]), folder.name, judge.samples, write)
    traces = StoredTraces(path, found["trace_ids"], again=found["anchors"], run_name=folder.name)

    async def go() -> RunProgress:
        transport = Transport(str(found["address"]), key)
        try:
            return await run(
                folder, judge, traces, transport, delivery, rates=Rates(**found["rates"])
            )
        finally:
            await transport.aclose()

    progress = asyncio.run(go())
    if delivery.again:
        with reading(path) as store:
            stored = store.verdict_frame(delivery.judge_id).set_index("trace_id")["outcome"]
        changed = [i for i, outcome in delivery.again.items() if stored.get(i) != outcome]
        about = {"n": len(delivery.again), "changed": changed}
        put(folder / ANCHORS_FILE, json.dumps(about).encode())
    return progress


def _anchors_changed(folder: Path) -> Estimate | None:
    """Return the share of the anchor set that got another verdict; None if none was asked again."""
    try:
        about = json.loads(read_text(folder / ANCHORS_FILE, most=MOST_FILE_BYTES))
        return wilson_share(len(about["changed"]), about["n"], nothing="no anchor was asked again")
    except (InputError, ValueError, KeyError, TypeError):
        return None


@dataclass(frozen=True, slots=True, kw_only=True)
class RunState:
    """A run as its folder shows it; `progress` is None if it never started.

    `anchors` is the share of the anchor set that got another verdict than before: 10 practice
    traces that an existing judge is asked again. None in a judge's first run.
    """

    name: str
    judge: str
    n_traces: int
    chosen: Chosen
    cap: Cap
    estimate: CostEstimate | None
    progress: RunProgress | None
    anchors: Estimate | None

    @property
    def is_working(self) -> bool:
        """Whether a worker is at the run."""
        return self.progress is not None and self.progress.state in WORKING


def run_states(path: Path) -> list[RunState]:
    """Return the runs of a store's judges, the newest last; folders that hold none are left out."""
    made = sorted(runs_folder(path).glob(f"*/{RUN_FILE}"), key=lambda file: file.stat().st_mtime)
    found = []
    for each in [file.parent for file in made]:
        try:
            found.append(run_state(each))
        except CalibrationError:
            continue
    return found


def run_state(folder: Path) -> RunState:
    """Return the state of one run; JudgeRunError if the folder holds none of a store's judge."""
    made = read_plan(folder)
    try:
        expected = made["estimate"]
        return RunState(
            name=folder.name,
            judge=str(made["judge"]),
            n_traces=len(made["trace_ids"]) + len(made["anchors"]),
            chosen=Chosen(**made["chosen"]),
            cap=Cap(**made["cap"]),
            estimate=None if expected is None else CostEstimate(**expected),
            progress=read_progress(folder),
            anchors=_anchors_changed(folder),
        )
    except (KeyError, TypeError) as error:
        raise JudgeRunError(f"{folder}: holds no run of a judge of this store") from error


def examine_runs(path: Path) -> tuple[Finding, ...]:
    """Check the runs of a store's judges: a worker that has died, a journal that is damaged."""
    found, folder = [], runs_folder(path)
    states = run_states(path)
    for judge_id in {read_plan(folder / state.name)["judge_id"] for state in states}:
        try:
            Answers().read_runs(folder, judge_id)
        except JudgeRunError as error:
            found.append(Finding(check="judge", status=PROBLEM, found=str(error)))
    dead = [s.name for s in states if s.progress is not None and s.progress.state == "dead"]
    found += [
        Finding(
            check="judge", status=WARNING, found=f"run {name}: its worker shows no sign of life",
            mend=f"`asr judge resume {name}` goes on",
        )
        for name in dead
    ]  # fmt: skip
    sound = Finding(check="judge", status=OK, found=f"{len(states)} runs")
    return tuple(found) or (sound,)


def run_folder(path: Path, name: str | None) -> Path:
    """Return the folder of a run by name, or the newest one; JudgeRunError if there is none."""
    states = run_states(path)
    if not states:
        raise JudgeRunError("no judge was run yet; `asr judge run NAME --cap-usd 5` starts one")
    chosen = states[-1].name if name is None else name
    if chosen not in {state.name for state in states}:
        there = ", ".join(state.name for state in states[-10:])
        raise JudgeRunError(f"no run {chosen!r:.80}; there are: {there}")
    return runs_folder(path) / chosen


def journaled(
    judge: Judge, asked_as: str, answers: Answers, traces: Iterable[Item]
) -> Iterator[SampleVerdict]:
    """Yield what journaled answers make of each sample: no verdict for `OUTAGE` if one is missing.

    `asked_as` is the id of the judge that asked: one with a corrected reader has another.
    """
    for trace, content_hash in traces:
        for sample in range(judge.samples):
            replies: list[Reply] = []
            step = judge.next_step(trace, content_hash, sample, replies)
            while isinstance(step, Request):
                reply = answers.answer(step.key(asked_as))
                if reply is None:
                    break
                replies.append(reply)
                step = judge.next_step(trace, content_hash, sample, replies)
            if isinstance(step, Request):
                step = SampleVerdict(
                    trace_id=trace.trace_id, sample=sample, outcome=NO_VERDICT, cause=OUTAGE
                )
            yield paid(step, replies)


def close(path: Path, folder: Path, *, by: str, write: Write) -> tuple[int, int]:
    """Give the pending samples of a run no verdict, for an outage.

    Returns
    -------
    tuple of int
        Traces with such a sample, and all traces of the run.

    Raises
    ------
    JudgeRunError
        If a worker is at the run.
    """
    found = read_plan(folder)
    with reading(path) as store:
        _, judge = judge_of(store, str(found["judge"]))
    delivery = Delivery(str(found["judge"]), folder.name, judge.samples, write)
    traces = StoredTraces(path, found["trace_ids"])
    with Journal(folder) as journal:
        verdicts = list(journaled(judge, judge.judge_id, journal, traces))
        pending = {v.trace_id for v in verdicts if v.cause == OUTAGE}
        asyncio.run(_note_closed(journal, len(pending), by))
    for part in parts(verdicts):
        delivery(part)
    return len(pending), len(traces)


async def _note_closed(journal: Journal, pending: int, by: str) -> None:
    await journal.control("closed", pending=pending, by=by)
    await journal.drain()


def reparse(store: Store, name: str, new_name: str, *, write: Write) -> tuple[int, int]:
    """Read the paid answers of a judge with the reader of this release, as a new judge.

    Returns
    -------
    tuple of int
        Traces with verdicts of the new judge, and those whose answers are not all journaled.

    Raises
    ------
    InputError
        If this release reads answers as the judge did.
    """
    old = entry_of(store.judge(name))
    entry, taxonomy = with_this_reader(old, new_name), store.taxonomy()
    judge = tree_judge(entry, team_reference(store.path, taxonomy), taxonomy)
    folder = runs_folder(store.path)
    states = [state.name for state in run_states(store.path) if state.judge == name]
    ids = dict.fromkeys(i for run in states for i in read_plan(folder / run)["trace_ids"])
    answers = Answers()
    answers.read_runs(folder, old.version.judge_id)
    traces = StoredTraces(store, list(ids))
    verdicts = list(journaled(judge, old.version.judge_id, answers, traces))
    missing = {v.trace_id for v in verdicts if v.cause == OUTAGE}
    delivery = Delivery(new_name, f"answers of {name}", judge.samples, write)
    store.add_judge(new_name, entry.version.judge_id, entry.body(), name)
    for part in parts([v for v in verdicts if v.trace_id not in missing]):
        delivery(part)
    return delivery.stored, len(missing)
