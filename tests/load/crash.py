"""Kill the server under load, again and again, and look each time at what the file holds."""

import asyncio
import json
import time
from dataclasses import dataclass
from pathlib import Path
from random import Random

import duckdb

from calibration.store import Store
from calibration.store.traces import parts_directory
from tests.browser.conftest import Server
from tests.browser.samples import even, sample_trace, store_of
from tests.load.reviewers import Reviewer, team


@dataclass(frozen=True)
class Held:
    """What a store file holds: labels by token, and drafts by reviewer and trace."""

    tokens: dict[str, tuple[str, str]]
    events: int
    drafts: dict[tuple[str, str], dict[str, str]]


@dataclass(frozen=True)
class Crashes:
    """What became of what was confirmed, over all rounds."""

    rounds: int
    labels: int
    drafts: int
    lost: int
    doubled: int
    refused: int
    seconds: float


def build_team_store(
    path: Path, n_people: int, n_traces: int, *, steps: int
) -> tuple[str, list[str]]:
    """Create a store with people and one batch; return the batch and the reviewers."""
    traces = [even(sample_trace(k, steps=steps)) for k in range(n_traces)]
    names = [f"Reviewer {k}" for k in range(n_people)]
    batch = store_of(path, traces, names, inclusion_probability=None, design=None)
    with Store.open(path) as store:
        return batch, [person.reviewer_id for person in store.reviewers()]


def look(path: Path) -> Held:
    """Read a store that no process holds, after DuckDB has replayed what was not yet in it."""
    with Store.open(path):
        pass
    with duckdb.connect(str(path), read_only=True) as connection:
        labels = connection.execute(
            "SELECT client_token, reviewer_id, trace_id FROM label_event WHERE kind = 'label'"
        ).fetchall()
        drafts = connection.execute("SELECT reviewer_id, trace_id, body FROM draft").fetchall()
    return Held(
        tokens={token: (by, trace) for token, by, trace in labels},
        events=len(labels),
        drafts={(by, trace): json.loads(body)["answers"] for by, trace, body in drafts},
    )


def lost(held: Held, people: list[Reviewer]) -> list[str]:
    """Return what was confirmed and is not there."""
    missing = [
        f"label {taken.token} of {person.reviewer_id}"
        for person in people
        for taken in person.labels
        if held.tokens.get(taken.token) != (person.reviewer_id, taken.trace_id)
    ]
    for person in people:
        for trace_id, answers in person.drafts.items():
            stored = held.drafts.get((person.reviewer_id, trace_id))
            if stored != answers:
                missing.append(f"draft on {trace_id} of {person.reviewer_id}: {stored}")
    return missing


def doubled(held: Held) -> int:
    """Return how many labels stand on a trace that already had one of the same reviewer."""
    return held.events - len(set(held.tokens.values()))


async def _rounds(
    server: Server, people: list[Reviewer], rounds: int, rng: Random
) -> tuple[list[str], int]:
    until = asyncio.Event()
    work = [asyncio.create_task(person.work(until)) for person in people]
    missing: list[str] = []
    drafts = 0
    for _ in range(rounds):
        before = sum(len(p.labels) for p in people)
        while sum(len(p.labels) for p in people) < before + len(people):
            await asyncio.sleep(0.02)
            if failed := [t for t in work if t.done()]:
                failed[0].result()
        await asyncio.sleep(rng.uniform(0.0, 1.0))
        await asyncio.to_thread(server.kill)
        await asyncio.sleep(0.2)  # what was confirmed before the end is read to the end
        drafts += sum(len(p.drafts) for p in people)
        missing += lost(await asyncio.to_thread(look, server.store), people)
        await asyncio.to_thread(server.start)
    until.set()
    await asyncio.wait_for(asyncio.gather(*work), timeout=60)
    return missing, drafts


def crash(server: Server, *, rounds: int, n_people: int, seed: int) -> tuple[Crashes, list[str]]:
    """Let reviewers without a pause work while the server is killed at random moments."""
    started = time.monotonic()
    batch, names = build_team_store(server.store, n_people, 40 * rounds + 200, steps=6)
    assert parts_directory(server.store).is_dir()
    people = team(server.port, names, batch, think_s=0.05, seed=seed, lingers=0.3)
    server.start()
    missing, drafts = asyncio.run(_rounds(server, people, rounds, Random(seed)))
    server.stop()
    held = look(server.store)
    missing += lost(held, people)
    result = Crashes(
        rounds=rounds,
        labels=sum(len(p.labels) for p in people),
        drafts=drafts,
        lost=len(missing),
        doubled=doubled(held),
        refused=sum(len(p.refused) for p in people),
        seconds=time.monotonic() - started,
    )
    return result, missing
