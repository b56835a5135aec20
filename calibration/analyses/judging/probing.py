"""Probes of a judge on traces of a store: what changes its verdicts that should not."""

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from calibration.analyses.judging.runs import (
    Chosen,
    StoredTraces,
    choose_traces,
    next_name,
    reading,
    runs_folder,
)
from calibration.analyses.judging.versions import JudgeEntry, judge_of, practice_ids
from calibration.errors import InputError
from calibration.judging.budget import Cap
from calibration.judging.probes import (
    EXAMPLES,
    HALF,
    REFERENCE,
    WITHHELD,
    ProbeRate,
    ProbeSet,
    asked_again,
    blank_runs,
    claimed_success,
    injected_instructions,
    padded_responses,
    permuted_sub_goals,
    probe_rates,
    shown_references,
    swapped_responses,
    version_probe,
)
from calibration.judging.requests import Judge, SampleVerdict
from calibration.judging.runner import FINISHED, Item, plan_run, run
from calibration.judging.steps import TraceVerdict, TreeJudge, combine
from calibration.judging.transport import Transport
from calibration.records import TraceForReview
from calibration.taxonomy import Taxonomy
from reference_dataset.team import team_reference

INJECTIONS = 6  # of the 36 of a trace
OF_VERSION = (WITHHELD, EXAMPLES, HALF)
PROBES = (
    "blank", "swapped", "injected", "claimed", "permuted", "padded", "retest", REFERENCE,
    *OF_VERSION,
)  # fmt: skip

Made = Callable[[list[TraceForReview], Taxonomy, np.random.Generator], ProbeSet]
# Of the trace; those of the version need the judge.
_BUILDERS: dict[str, Made] = {
    "blank": lambda traces, taxonomy, rng: blank_runs(traces, taxonomy),
    "swapped": lambda traces, taxonomy, rng: swapped_responses(traces, rng=rng),
    "injected": lambda traces, taxonomy, rng: injected_instructions(
        traces, taxonomy, rng=rng, most=INJECTIONS
    ),
    "claimed": lambda traces, taxonomy, rng: claimed_success(traces, rng=rng),
    "permuted": lambda traces, taxonomy, rng: permuted_sub_goals(traces, rng=rng),
    "padded": lambda traces, taxonomy, rng: padded_responses(traces),
    "retest": lambda traces, taxonomy, rng: asked_again(traces),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class ProbeReport:
    """What probes found of a judge; `ended` says why the run ended early, None if it did not."""

    judge: str
    n_traces: int
    rates: tuple[ProbeRate, ...]
    spent_usd: float | None
    spent_tokens: int
    ended: str | None


@dataclass(slots=True)
class Spending:
    """What is left of a cap over several runs."""

    cap: Cap
    usd: float = 0.0
    tokens: int = 0

    def left(self) -> Cap:
        """Return what may still be spent; a last cent or token keeps a cap positive."""
        return Cap(
            usd=None if self.cap.usd is None else max(self.cap.usd - self.usd, 1e-9),
            tokens=None if self.cap.tokens is None else max(self.cap.tokens - self.tokens, 1),
        )


def run_probes(
    path: Path,
    name: str,
    chosen: Chosen,
    *,
    cap: Cap,
    key: str,
    rng: np.random.Generator,
    only: Sequence[str] = (),
) -> ProbeReport:
    """Probe a judge on traces of a store: judge them as they are and changed, and compare.

    No verdict enters the store. Requests have journal keys of their own, so that the same command
    again asks only what was not answered.

    Parameters
    ----------
    path : Path
        The store; it must not be open.
    name : str
        The judge.
    chosen : Chosen
        The traces; each is asked some 20 times, so that ten are many.
    cap : Cap
        For all probes together.
    key : str
        Of the endpoint.
    rng : numpy.random.Generator
        Chooses what is changed.
    only : sequence of str, optional
        Some of `PROBES`; all by default.

    Raises
    ------
    InputError
        If there is no such judge, trace or probe.
    JudgeRunError
        As `runner.run`.
    """
    wanted = tuple(only) or PROBES
    unknown = [probe for probe in wanted if probe not in PROBES]
    if unknown:
        raise InputError(f"no probe {unknown[0]!r:.40}; there are {', '.join(PROBES)}")
    with reading(path) as store:
        entry, judge = judge_of(store, name)
        ids = choose_traces(store, entry, chosen)
        items = list(StoredTraces(store, ids))
        taxonomy = store.taxonomy()
        dataset = team_reference(store.path, taxonomy)
    traces = [trace for trace, _ in items]
    sets = [_BUILDERS[probe](traces, taxonomy, rng) for probe in wanted if probe in _BUILDERS]
    if REFERENCE in wanted:
        # Of practice traces alone: an examination stays one.
        reasons = {i: dataset.labels[i].rationale for i in practice_ids(dataset)}
        sets.append(shown_references(traces, reasons))
    of_version = [_of_version(probe, traces, judge, rng) for probe in wanted if probe in OF_VERSION]
    runs = RunsInMemory(path, entry, key, Spending(cap))
    every = [*items, *(item for cases in sets for item in cases.items)]
    found = runs.ask(judge, every)
    for cases in of_version:
        if cases.version is not None and cases.cases and runs.ended is None:
            own = TreeJudge(
                version=cases.version, taxonomy=taxonomy, few_shots=cases.few_shots,
                capabilities=entry.capabilities,
            )  # fmt: skip
            found |= runs.ask(own, list(cases.items))
    known = {trace.trace_id for trace in traces}
    return ProbeReport(
        judge=name,
        n_traces=len(traces),
        rates=probe_rates(
            [*sets, *of_version],
            [verdict for trace_id, verdict in found.items() if trace_id in known],
            [verdict for trace_id, verdict in found.items() if trace_id not in known],
            taxonomy,
        ),
        spent_usd=None if entry.prices is None else runs.spending.usd,
        spent_tokens=runs.spending.tokens,
        ended=runs.ended,
    )


def _of_version(
    probe: str, traces: list[TraceForReview], judge: TreeJudge, rng: np.random.Generator
) -> ProbeSet:
    return version_probe(probe, traces, judge.version, judge.few_shots, rng=rng)


class RunsInMemory:
    """Runs judges on traces in memory, one after the other, under one cap."""

    def __init__(
        self, path: Path, entry: JudgeEntry, key: str, spending: Spending, what: str = "probes"
    ) -> None:
        self.folder, self.entry, self.key, self.spending = runs_folder(path), entry, key, spending
        self.what = what
        self.ended: str | None = None

    def ask(self, judge: Judge, items: Sequence[Item]) -> dict[str, TraceVerdict]:
        """Return the verdict of a judge on each trace of which all samples were answered."""
        return {
            trace_id: combine(of_trace)
            for trace_id, of_trace in self.samples(judge, items).items()
            if len(of_trace) == judge.samples
        }

    def samples(self, judge: Judge, items: Sequence[Item]) -> dict[str, list[SampleVerdict]]:
        """Return the verdicts on the samples of each trace that were answered."""
        samples: dict[str, list[SampleVerdict]] = {}

        def take(part: list[SampleVerdict]) -> None:
            for verdict in part:
                samples.setdefault(verdict.trace_id, []).append(verdict)

        run_name = next_name(self.folder, f"{self.entry.name}-{self.what}")
        folder = plan_run(
            self.folder, run_name, judge, cap=self.spending.left(), prices=self.entry.prices,
            about={f"{self.what}_of": self.entry.name},
        )  # fmt: skip

        async def go() -> None:
            transport = Transport(self.entry.address, self.key)
            try:
                progress = await run(folder, judge, items, transport, take)
            finally:
                await transport.aclose()
            self.spending.usd += (progress.spent_usd or 0.0) + (progress.possible_usd or 0.0)
            self.spending.tokens += progress.spent_tokens + progress.possible_tokens
            if progress.state != FINISHED:
                self.ended = progress.reason or progress.state

        asyncio.run(go())
        return samples
