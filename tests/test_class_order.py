"""A taxonomy may declare its classes in any order: the same numbers come out by class name."""

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from calibration.analyses.agreement.analysis import analyse_agreement
from calibration.analyses.evidence.from_files import load_tables
from calibration.analyses.gates.run import gate_files
from calibration.analyses.judge.calibration import (
    CalibrationOptions,
    analyse_judge,
    calibrate_judge,
    calibrated_labels,
)
from calibration.analyses.success_rate.comparison import compare_files
from calibration.analyses.success_rate.from_runs import report_on_files
from calibration.analyses.success_rate.from_store import report_on_store
from calibration.reporting import to_json
from calibration.store import Store
from calibration.taxonomy import Taxonomy
from tests.analyses.production_files import write
from tests.analyses.worlds import World, ids, make_world
from tests.classes import OUTCOMES, TAXONOMY

OTHER = replace(
    TAXONOMY, version="other order", classes=tuple(TAXONOMY.classes[k] for k in (4, 2, 0, 3, 1))
)
N, DRAWN, MIX = 120, 90, (0.5, 0.2, 0.15, 0.1, 0.05)
# What names the taxonomy, the software or a draw, and not a number.
OTHERWISE = ("fingerprint", "taxonomy_version", "taxonomy_fingerprint", "identity", "origin")
TABLES = ("rows_key_columns_reviewer", "counts", "table", "confusion")
# Resamples are drawn cell by cell, so their order moves an end of an interval a little.
CLOSE = 0.03


def numbers(value: Any, place: str = "") -> Iterator[tuple[str, float]]:
    """Yield every number of plain data under its place; entries of a list by their name."""
    if isinstance(value, dict):
        for key, of in value.items():
            if key not in OTHERWISE:
                yield from numbers(of, f"{place}/{key}")
    elif isinstance(value, list) and place.rsplit("/", 1)[-1] in TABLES:
        # A table by class codes holds the same counts at other places.
        for k, of in enumerate(sorted(of for row in value for of in row)):
            yield f"{place}/{k}", of
    elif isinstance(value, list):
        for k, of in enumerate(value):
            named = isinstance(of, dict)
            name = (
                next((of[n] for n in ("outcome", "class", "name", "classes") if n in of), k)
                if named
                else k
            )
            name = " ".join(sorted(name)) if isinstance(name, list) else name
            # Weights in words are in the order of the classes.
            yield from numbers(of, f"{place}/{str(name).split(' (')[0]}")
    elif isinstance(value, int | float) and not isinstance(value, bool):
        yield place, value


def same(one: object, other: object, close: float = CLOSE) -> None:
    first, second = (dict(numbers(to_json.data(result))) for result in (one, other))
    assert first.keys() == second.keys()
    assert len(first) > 20
    different = {
        place: (value, second[place])
        for place, value in first.items()
        if value != pytest.approx(second[place], rel=0.05, abs=close)
    }
    assert different == {}


def outcomes(n: int, seed: int) -> list[str]:
    return list(map(str, np.random.default_rng(seed).choice(OUTCOMES, size=n, p=MIX)))


def world(path: Path, other: bool) -> World:
    rng = np.random.default_rng(3)
    costs = rng.uniform(1, 3, N).round(2).tolist()
    traces = {t: {"cost_usd": cost} for t, cost in zip(ids(N), costs, strict=True)}
    made = make_world(path, n=N, n_drawn=DRAWN, ceiling=2.0, traces=traces)
    if other:
        made.store.set_taxonomy(OTHER)
    truth = dict(zip(ids(N), outcomes(N, 1), strict=True))
    wrong = dict(zip(ids(N), outcomes(N, 2), strict=True))
    ann = {t: truth[t] if k % 8 else wrong[t] for k, t in enumerate(made.drawn)}
    ben = {t: truth[t] if k % 6 else wrong[t] for k, t in enumerate(made.drawn)}
    made.label("Ann", ann)
    made.label("Ben", ben)
    for trace_id in made.drawn[:40]:
        made.settle(trace_id, truth[trace_id])
    made.judge({t: truth[t] if k % 5 else wrong[t] for k, t in enumerate(ids(N))})
    return made


@pytest.fixture(scope="module")
def stores(tmp_path_factory: pytest.TempPathFactory) -> tuple[Store, Store]:
    folder = tmp_path_factory.mktemp("orders")
    return world(folder / "one.duckdb", False).store, world(folder / "two.duckdb", True).store


def test_a_store(stores: tuple[Store, Store]) -> None:
    one, other = stores
    assert other.taxonomy().names != one.taxonomy().names
    same(report_on_store(one), report_on_store(other))
    same(analyse_agreement(one), analyse_agreement(other))
    same(analyse_judge(one), analyse_judge(other))
    mine, theirs = calibrated_labels(one).frame, calibrated_labels(other).frame
    for name in OUTCOMES:
        assert mine[name].to_numpy() == pytest.approx(theirs[name].to_numpy())


GATES = """
[gates.asr]
threshold = 0.5
[gates."pass_at_1[core]"]
threshold = 0.5
[gates.human_review]
allow_skipped = true
[gates.judge]
allow_skipped = true
"""


def test_files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    costs = np.random.default_rng(4).uniform(0.5, 3, N).round(2).tolist()
    rows = [
        {
            "trace_id": f"t{k}", "workflow": "research", "outcome": outcome, "cost_usd": cost,
            "verdict": verdict, "started_at": f"2026-10-{1 + k % 28:02d}T00:00:00Z",
        }
        for k, (outcome, verdict, cost) in enumerate(
            zip(outcomes(N, 1), outcomes(N, 2), costs, strict=True)
        )
    ]  # fmt: skip
    runs = write(Path("runs.csv"), rows)
    later = write(Path("later.csv"), [row | {"outcome": row["verdict"]} for row in rows])
    labels = write(
        Path("labels.csv"),
        [
            {"trace_id": row["trace_id"], "reviewer": "Ann", "outcome": row["outcome"]}
            for row in rows[::2]
        ],
    )
    judged = write(
        Path("judged.csv"), [{n: row[n] for n in ("trace_id", "outcome")} for row in rows]
    )
    Path("gates.toml").write_text(GATES)

    def report(taxonomy: Taxonomy) -> object:
        return report_on_files([runs], taxonomy=taxonomy)

    def gates(taxonomy: Taxonomy) -> object:
        return gate_files([runs], Path("gates.toml"), labels=Path(labels), taxonomy=taxonomy)

    def comparison(taxonomy: Taxonomy) -> object:
        return compare_files(runs, later, taxonomies=(TAXONOMY, taxonomy))

    def calibration(taxonomy: Taxonomy) -> object:
        data = load_tables(Path(labels), Path(judged), taxonomy=taxonomy)
        return calibrate_judge(data, CalibrationOptions())

    for made in (report, gates, calibration):
        same(made(TAXONOMY), made(OTHER))
    same(comparison(TAXONOMY), comparison(OTHER), close=100 * CLOSE)  # in percentage points
