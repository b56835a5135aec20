"""`asr export labels` and `asr export verdicts`: files on which a rate is that of the store."""

import re
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from calibration.analyses.sampling.draw import (
    SamplingDesign,
    draw_batch,
    drawn_from,
    recorded_population,
)
from calibration.analyses.sampling.stratified import store_stratified
from calibration.records import Verdict, Workflow
from calibration.store import Store
from tests.analyses.worlds import World, make_trace
from tests.classes import OUTCOMES
from tests.cli_runs import Run, data, write_csv
from tests.stores import copy_store

pytestmark = pytest.mark.usefixtures("few_draws")

# Ids that a spreadsheet would run, or that look guarded already.
NASTY = ("=1+1", "'=1", "-7", "@x", "+49", "a,b", 'say "x"', "007", "''@")
SAME = (
    "estimates", "estimates_gross", "class_shares", "two_phase", "skips", "composition",
    "confusion", "judge", "n_labels", "n_production", "label_worth", "warnings", "refusals",
)  # fmt: skip


def demo(folder: Path, built_demo: Path) -> Path:
    return copy_store(built_demo, folder / "demo.duckdb")


def uneven(folder: Path, _: Path) -> Path:
    """Draw half of the failures and a fifth of the rest, of tasks in four runs each.

    Traces were skipped, adjudicated, labelled by one who had seen the verdict, and never judged.
    """
    path, rng = folder / "uneven.duckdb", np.random.default_rng(5)
    names = [*NASTY, *(f"r{k:03d}" for k in range(391))]
    truth = dict(zip(names, rng.choice(5, len(names), p=[0.5, 0.1, 0.1, 0.1, 0.2]), strict=True))
    with Store.open(path, create=True) as store:
        store.ingest([
            make_trace(
                name, task_key=f"test/task-{k // 4}", workflow=["flights", "support_triage"][k % 2],
                cost_usd=None if k % 50 == 0 else 0.01 * (k % 40), units=1 + k % 3 / 2,
                model=f"maker/model-{k % 3}", agent_version=str(k % 2), response="x" * (k + 1),
            )
            for k, name in enumerate(names)
        ])  # fmt: skip
        # No ceiling for a workflow that the taxonomy has one for.
        store.set_workflow(Workflow(name="flights", ceiling_usd=0.1, unit="seat"))
        store.set_workflow(Workflow(name="support_triage", ceiling_usd=None, unit="ticket"))
        said = {t: OUTCOMES[c if rng.random() < 0.8 else 0] for t, c in truth.items()}
        said = {t: c for k, (t, c) in enumerate(said.items()) if k % 20 != 1}
        store.add_verdicts([
            Verdict(judge_id="judge-1", trace_id=t, outcome=c, sample=s, reason=f"={t}")
            for k, (t, c) in enumerate(said.items())
            for s in range(1 + (k % 9 == 0))
        ])  # fmt: skip
        design = SamplingDesign(seed=3, labels_wanted=2, overlap=0.5)
        frame = drawn_from(store, design)
        verdicts = [*OUTCOMES, "no_verdict"]
        stratum = np.array([verdicts.index(said.get(t, "no_verdict")) for t in frame["trace_id"]])
        sizes = np.bincount(stratum, minlength=6)
        drawn = sizes // np.where(np.array(verdicts) == "abandoned", 2, 5)
        recorded: dict[str, object] = {
            "kind": "half of the failures and a fifth of the rest", "n": int(drawn.sum()),
            **recorded_population(frame, design), "overlap": 0.5, "judge": "judge-1",
            "strata": [
                {"verdict": name, "workflow": None, "population": int(size), "n": int(n)}
                for name, size, n in zip(verdicts, sizes, drawn, strict=True)
            ],
        }  # fmt: skip
        batch = store_stratified(store, design, frame, stratum, drawn, recorded)
        items = store.batch_items(batch.batch_id)
        world = World(store=store, batch_id=batch.batch_id, drawn=tuple(items["trace_id"]))
        skipped, never, seen = world.drawn[:4], world.drawn[4:7], world.drawn[7:9]
        store.record_exposure(store.add_reviewer("zoe", role="lead").reviewer_id, seen, "verdicts")
        first = [t for t in world.drawn[7:] if t not in seen]
        world.label("Mara Lind", {t: OUTCOMES[truth[t]] for t in first})
        shared = items.loc[items["labels_wanted"] == 2, "trace_id"]
        world.label("ben", {t: OUTCOMES[0] for t in shared if t in first})
        world.label("zoe", {t: OUTCOMES[truth[t]] for t in seen})
        for trace_id in skipped:
            world.skip("ben", trace_id)
        assert not set(never) & set(store.label_frame(batch.batch_id)["trace_id"])
        for trace_id in [t for t in shared if t in first and truth[t]]:
            world.settle(trace_id, OUTCOMES[truth[trace_id]])
    return path


def pooled(folder: Path, _: Path) -> Path:
    """Draw a batch, import more runs of the same tasks, and draw another from all."""
    path, rng = folder / "pooled.duckdb", np.random.default_rng(6)
    names = [f"r{k:03d}" for k in range(300)]
    truth = dict(zip(names, rng.choice(5, 300, p=[0.5, 0.1, 0.1, 0.1, 0.2]), strict=True))
    with Store.open(path, create=True) as store:
        store.set_workflow(Workflow(name="flights", ceiling_usd=0.2, unit="seat"))
        for count, n, overlap in ((200, 70, 0.5), (300, 60, 1.0)):
            some = [name for name in names[:count] if name not in set(store.trace_frame().trace_id)]
            store.ingest([
                make_trace(t, task_key=f"test/task-{int(t[1:]) % 75}", cost_usd=0.01 * (k % 50))
                for k, t in enumerate(some)
            ])  # fmt: skip
            store.add_verdicts([
                Verdict(judge_id="j", trace_id=t,
                        outcome=OUTCOMES[truth[t] if rng.random() < 0.8 else 0])
                for t in some
            ])  # fmt: skip
            batch = draw_batch(store, SamplingDesign(seed=n, labels_wanted=2, overlap=overlap), n=n)
            items = store.batch_items(batch.batch_id)
            world = World(store=store, batch_id=batch.batch_id, drawn=tuple(items["trace_id"]))
            shared = items.loc[items["labels_wanted"] == 2, "trace_id"]
            world.label("Ann", {t: OUTCOMES[truth[t]] for t in world.drawn})
            lenient = {t: OUTCOMES[truth[t] if rng.random() < 0.7 else 0] for t in shared}
            world.label("Ben", lenient)
            for t in shared:
                world.settle(t, OUTCOMES[truth[t]])
    return path


@pytest.mark.long
@pytest.mark.parametrize("built", [demo, uneven, pooled])
def test_exported_files_give_every_digit_of_the_store(
    asr: Run, tmp_path: Path, built_demo: Path, built: Callable[[Path, Path], Path]
) -> None:
    store = ["--store", built(tmp_path, built_demo)]
    asr("export", "labels", "labels.csv", *store)
    asr("export", "verdicts", "verdicts.csv", *store)
    stored = data(asr("calibrate", "--json", *store))
    files = ["--human", "labels.csv", "--verdicts", "verdicts.csv", "--overlap", "random"]
    found = data(asr("calibrate", *files, "--json"))
    assert stored["estimates"]["post_stratified"]["value"] is not None
    assert stored["two_phase"]["value"] is not None
    assert {name: found[name] for name in SAME} == {name: stored[name] for name in SAME}
    assert data(asr("report", "--json", *store))["asr"] == stored["estimates"][stored["headline"]]
    said = [asr(*words).stdout for words in (
        ["calibrate", *store], ["calibrate", *files], ["report", *store],
    )]  # fmt: skip
    (sentence,) = {re.search(r"Of runs like these, .*", text)[0] for text in said}  # type: ignore[index]
    assert f"{100 * stored['estimates'][stored['headline']]['value']:.1f} % succeed" in sentence
    if built is uneven:
        assert stored["skipped"] == 4
        assert stored["composition"]["strata"] == 6
        assert set(stored["composition"]["p"]) == {"workflow", "agent", "model"}
        assert 0 < stored["human"]["n_adjudicated"] < stored["human"]["n_shared"]
        # The two labels by somebody who had seen the verdict.
        (exposed,) = found["reading"][0]["left_out"]
        assert (exposed["code"], exposed["rows"]) == ("not_blind", 2)
    written = pd.read_csv("verdicts.csv", dtype=str, keep_default_na=False)
    assert len(written.drop_duplicates("trace_id")) == stored["n_production"]
    assert not written.apply(lambda column: column.str.match(r"[=+@-]").any()).any()


def test_verdicts_come_in_once_and_go_out_again(asr: Run, filled: list[str]) -> None:
    given = write_csv("again.csv", "trace_id,outcome", f"{filled[0]},complete")
    assert asr("verdicts", "import", "--judge", "j2", given).stdout.startswith("1 stored")
    assert "1 already there" in asr("verdicts", "import", given, "--judge", "j2").stdout
    assert "asr export verdicts" in asr("export", "verdicts", "--help").stdout
    said = asr("export", "verdicts", "--judge", "j2").stdout.splitlines()
    assert len(said) == 61
    assert sum(",no_verdict,0,j2," in line for line in said) == 59


def test_the_store_is_not_written_over(asr: Run, filled: list[str]) -> None:
    for what in ("labels", "verdicts"):
        words = ["export", what, *(["--judge", "j1"] if what == "verdicts" else [])]
        assert "is the store itself" in asr(*words, "asr.duckdb", "--force", code=2).stderr


def test_reviewers_are_asked_for_violations_by_a_command(asr: Run, tmp_path: Path) -> None:
    path = tmp_path / "asked.duckdb"
    with Store.open(path, create=True):
        pass
    store = ("--store", path)
    assert "are not asked" in asr("labels", "violations", *store).stdout
    assert "no PII exposure" in asr("labels", "violations", "on", *store).stdout
    assert data(asr("labels", "violations", "--json", *store))["violations"] is True
    assert "are not asked" in asr("labels", "violations", "off", *store).stdout
    asr("labels", "violations", "perhaps", *store, code=2)
