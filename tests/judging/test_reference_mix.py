"""The 200 reference traces, judged for real at an endpoint that shows every fault it knows."""

import random
from collections import Counter
from dataclasses import replace
from itertools import chain, groupby
from pathlib import Path

import pytest

from calibration.judging.budget import Cap
from calibration.judging.runner import dry_run
from calibration.judging.steps import TraceVerdict, TreeJudge, combine
from calibration.records import NO_VERDICT
from tests.judging.reference_model import (
    Item,
    ReferenceModel,
    first_request,
    reference_items,
    reference_judge,
)
from tests.judging.runs import PRICES, Verdicts, judged, planned
from tests.judging.scripted_server import KINDS, Asked, Rule, ScriptedServer
from tests.judging.test_kills import lines
from tests.judging.test_runner import AT_ONCE, IN_DOUBT, STOP, THROTTLED, TRANSIENT

PASSING = STOP | THROTTLED | TRANSIENT | IN_DOUBT | AT_ONCE
STAYING = sorted(set(KINDS) - PASSING)


def mix(judge: TreeJudge, items: list[Item], seed: int) -> Rule:
    """Return a rule that deals all kinds, those that end a run once, to samples drawn by a seed.

    The kind of a request follows from its key, so that one cut off by a stop meets it again.
    """
    first = [
        first_request(judge, item, sample).key(judge.judge_id)
        for item in items
        for sample in range(judge.samples)
    ]
    deck = [*KINDS, *3 * STAYING, *3 * sorted(PASSING - STOP - AT_ONCE)]
    drawn = random.Random(seed).sample(first, len(deck))
    kinds = dict.fromkeys(first, "good") | dict(zip(drawn, deck, strict=True))
    of_reasks = [*STAYING, *["good"] * len(STAYING)]

    def rule(asked: Asked) -> str:
        kind = kinds.get(asked.key) or random.Random(f"{seed} {asked.key}").choice(of_reasks)
        return kind if kind in STAYING or asked.attempt == 1 else "good"

    return rule


def worked_through(
    folder: Path, server: ScriptedServer, judge: TreeJudge, items: list[Item]
) -> tuple[str, Verdicts]:
    """Resume a run until it is finished or capped; return its state and all verdicts."""
    found: Verdicts = {}
    for _ in range(2 * len(STOP | AT_ONCE)):
        progress, verdicts = judged(
            folder, server.url, items, judge, scale=1000, deadline_s=3.0, seed=1
        )
        assert {key: verdicts[key] for key in found} == found
        found = verdicts
        if progress.state in ("finished", "capped"):
            break
    return progress.state, found


def sent_and_answered(folders: list[Path]) -> Counter[str]:
    """Return how often each key was sent; none of them after its answer."""
    sent: Counter[str] = Counter()
    done: set[str] = set()
    for line in chain.from_iterable(map(lines, folders)):
        if line["kind"] == "sent":
            assert line["key"] not in done
            sent[line["key"]] += 1
        elif line["kind"] == "answered":
            done.add(line["key"])
    return sent


def on_traces(verdicts: Verdicts) -> list[TraceVerdict]:
    by_trace = groupby(sorted(verdicts), key=lambda key: key[0])
    return [combine([verdicts[key] for key in keys]) for _, keys in by_trace]


def judged_under_caps(store: Path, seed: int) -> Verdicts:
    """Judge as much as a small cap allows, then the rest; return the verdicts."""
    judge, items = reference_judge(samples=2), reference_items()
    model = ReferenceModel(judge, items, wrong=0.2, seed=seed)
    expected = dry_run(store / "s.judge", judge, items, prices=PRICES)
    assert expected.usd is not None
    folders, bill = [], 0.0
    with ScriptedServer(model, mix(judge, items, seed), scale=1000) as server:
        for name, share, end in (("small", 0.4, "capped"), ("large", 3.0, "finished")):
            cap = share * expected.usd
            folders.append(planned(store, name, judge, cap=Cap(usd=cap)))
            state, verdicts = worked_through(folders[-1], server, judge, items)
            assert state == end
            assert server.ledger.bill - bill <= cap
            bill = server.ledger.bill
    assert set(server.ledger.kinds) == set(KINDS)
    sent = sent_and_answered(folders)
    assert all(entry.received <= sent[key] for key, entry in server.ledger.entries.items())
    return {key: replace(verdict, latency_s=None) for key, verdict in verdicts.items()}


@pytest.mark.long
@pytest.mark.parametrize("seed", [1, 2])
def test_every_reference_trace_ends_in_a_class_or_a_cause(seed: int, tmp_path: Path) -> None:
    found = []
    for name in ("one", "two"):
        (tmp_path / name).mkdir()
        found.append(judged_under_caps(tmp_path / name, seed))
    assert found[0] == found[1]
    samples, traces = list(found[0].values()), on_traces(found[0])
    assert (len(samples), len(traces)) == (400, 200)
    for verdicts in (samples, traces):
        assert all((v.cause is None) == (v.outcome != NO_VERDICT) for v in verdicts)
    assert {"context_overflow", "cut_by_server", "form"} < {v.cause for v in samples}
    causes = Counter(verdict.cause for verdict in traces)
    assert causes[None] > 100
    assert causes["split"] > 10


@pytest.mark.long
def test_the_dry_run_of_the_real_judge_is_right_once_the_ratio_is_learned(tmp_path: Path) -> None:
    judge, items = reference_judge(samples=1), reference_items()
    random.Random(1).shuffle(items)
    kinds = {1: "429 ms", 2: "bad escape", 3: "length"}

    def rule(asked: Asked) -> str:
        return kinds.get(int(asked.key, 16) % 20, "good") if asked.attempt == 1 else "good"

    runs = tmp_path / "s.judge"
    with ScriptedServer(ReferenceModel(judge, items), rule, scale=100) as server:
        judged(planned(tmp_path, "first", judge), server.url, items[:60], judge, scale=100)
        before = server.ledger.bill
        expected = dry_run(runs, judge, items, prices=PRICES)
        judged(planned(tmp_path, "rest", judge), server.url, items, judge, scale=100)
        bill = server.ledger.bill - before
    assert expected.usd is not None
    assert abs(expected.usd - bill) <= 0.15 * bill
