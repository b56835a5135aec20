"""A batch of the traces of one week, drawn once, and the rate over several of them."""

import json
import re
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from calibration.analyses.evidence.from_store import load_batch, pooled_id
from calibration.store import Store
from tests.analyses.worlds import World, ids, make_trace
from tests.cli_runs import data, run

START = datetime(2026, 11, 2, tzinfo=UTC)  # Monday of 2026-W45


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """Return a store of three weeks of forty traces, and one trace without a time."""
    path = tmp_path / "s.duckdb"
    with Store.open(path, create=True) as store:
        store.ingest([
            make_trace(t, started_at=START + timedelta(days=7 * (k // 40), hours=k % 40))
            for k, t in enumerate(ids(120))
        ] + [make_trace("undated")])  # fmt: skip
    return path


def drawn(path: Path, *more: object, code: int = 0) -> str:
    return str(run("sample", "--weekly", 10, *more, "--store", path, code=code).output)


def test_a_week_is_drawn_once_from_its_own_traces(path: Path) -> None:
    drawn(path, "--week", "2026-W46")
    again = json.loads(run("sample", "--weekly", 10, "--week", "2026-W46", "--store", path,
                           "--json").stdout)  # fmt: skip
    with Store.open(path) as store:
        (batch,) = store.batches()
        own = set(store.batch_items(batch.batch_id)["trace_id"])
    assert again["batch_id"] == batch.batch_id
    assert (batch.week, batch.n_items, batch.design["population"]) == ("2026-W46", 10, 40)
    assert own < set(ids(120)[40:80])


def test_the_rate_over_weeks_is_that_of_all_their_traces(path: Path) -> None:
    for week in ("2026-W45", "2026-W46"):
        drawn(path, "--week", week, "--labels-wanted", 1)
    with Store.open(path) as store:
        for batch in store.batches():
            items = tuple(store.batch_items(batch.batch_id)["trace_id"])
            world = World(store=store, batch_id=batch.batch_id, drawn=items)
            success = "complete" if batch.week == "2026-W45" else "abandoned"
            world.label("Ann", dict.fromkeys(items[: 10 if success == "complete" else 5], success))
        data = load_batch(store, pooled_id(store))
        assert sorted(data.traces["trace_id"]) == ids(120)[:80]
        assert data.weights is not None
        weight = dict(zip(data.labelled["trace_id"], data.weights, strict=True))
        # Five of forty labelled count for twice as many each as ten of forty.
        first = {t for t in weight if int(t[1:]) < 40}
        assert {round(w, 9) for t, w in weight.items() if t in first} == {4.0}
        assert {round(w, 9) for t, w in weight.items() if t not in first} == {8.0}
        rate = data.human @ data.credit @ data.weights / data.weights.sum()
        assert rate == pytest.approx(0.5)
        assert data.later_traces == 0


def test_what_does_not_fit_is_refused(path: Path) -> None:
    assert "no trace started in 2026-W30; the last week with traces is 2026-W47" in drawn(
        path, "--week", "2026-W30", code=1
    )
    assert "must be ISO weeks like" in drawn(path, "--week", "last", code=2)
    assert (
        "--week is for --weekly"
        in run(
            "sample", "--n", 3, "--seed", 1, "--week", "2026-W46", "--store", path, code=2
        ).output
    )
    assert "name one of them" in drawn(path, "--n", 3, code=2)
    assert (
        "draw fewer"
        in run("sample", "--weekly", 41, "--week", "2026-W46", "--store", path, code=1).output
    )


def test_a_draw_without_a_seed_has_a_fresh_one_and_says_it(path: Path) -> None:
    def sampled(*options: object, code: int = 0) -> Any:
        result = run("sample", *options, "--store", path, "--json", code=code)
        return data(result) if code == 0 else result.stderr

    first, second = (sampled("--n", 10) for _ in range(2))
    seeds = [batch["design"]["seed"] for batch in (first, second)]
    assert len(set(seeds)) == 2
    assert first["trace_ids"] != second["trace_ids"]
    text = run("sample", "--n", 10, "--store", path).stdout
    (seed,) = re.findall(r", seed (\d+)$", text.splitlines()[0])
    # The same seed draws the same traces from the same store, and so no second sample.
    for n in (10, 7):
        stderr = sampled("--n", n, "--seed", seeds[0], code=2)
        assert f"seed {seeds[0]} drew {first['batch_id']} from the same 121 traces" in stderr
    for options in (["--by-workflow"], ["--labels-wanted", "1"]):
        assert "drew production-003" in sampled("--n", 10, "--seed", seed, *options, code=2)
    # Other traces are another draw, and a week is drawn once whatever is asked.
    week = ("--weekly", 5, "--week", "2026-W46")
    assert sampled(*week) == sampled(*week)
    assert sampled("--n", 10, "--seed", max(*seeds, int(seed)) + 1)["n"] == 10
