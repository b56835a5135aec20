"""Runs that reviewers see only a part of, and samples that were run again."""

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

from calibration.analyses.exports import label_table
from calibration.analyses.trace_files import (
    SUPERSEDED,
    preview_lines,
    read_files,
    store_files,
    unseen_words,
)
from calibration.store import Store
from calibration.trace_formats import ImportSettings
from tests.analyses.conftest import NewWorld
from tests.analyses.worlds import make_trace
from tests.cli_runs import Run, data

FIXTURES = Path(__file__).parents[1] / "fixtures" / "importers"
PARTS = FIXTURES / "parts.jsonl"
SETTINGS = ImportSettings()


def test_an_import_says_which_runs_are_seen_in_part(asr: Run, tmp_path: Path) -> None:
    store = tmp_path / "s.duckdb"
    done = asr("import", str(PARTS), "--yes", "--store", store)
    line = (
        "3 of 3 runs hold parts that reviewers cannot see (1 picture, 1 part of an unknown kind, "
        "1 sound, 1 cut message): `--leave-out-unseen` leaves them out"
    )
    assert line in done.stdout
    found = data(asr("import", str(PARTS), "--json", "--store", store))
    assert (found["unseen_runs"], found["unseen_parts"]["picture"]) == (3, 1)


def test_runs_with_unseen_parts_are_left_out_on_request() -> None:
    chats = FIXTURES / "chats.jsonl"
    read = read_files([chats, PARTS], SETTINGS)
    assert (read.preview.n_traces, read.preview.unseen_runs) == (6, 4)
    assert unseen_words(read.preview).startswith("4 of 6 runs hold parts")
    less = read_files([chats, PARTS], ImportSettings(leave_out_unseen=True))
    assert (less.preview.n_traces, less.preview.unseen_runs) == (2, 0)
    assert unseen_words(less.preview) == ""
    reasons = [row.reason for row in less.set_aside]
    assert "holds parts that reviewers cannot see (1 picture)" in reasons


def test_labels_of_traces_with_unseen_parts_are_marked(new_world: NewWorld) -> None:
    world = new_world()
    first = world.drawn[0]
    changed = make_trace(first, metadata={"media_not_shown": 2, "cut_messages": 1})
    world.store.ingest([changed], take_changed=True)
    assert world.store.unseen_parts() == {first: 3}
    taxonomy = world.store.taxonomy()
    world.store.add_reviewer("Ann")
    world.label("Ann", dict.fromkeys(world.drawn, taxonomy.success))
    rows = {
        row["trace_id"]: row["unseen_parts"]
        for row in label_table(world.store, world.batch_id).rows
    }
    assert rows == dict.fromkeys(world.drawn, 0) | {first: 3}


def log(path: Path, created: str, samples: list[dict[str, Any]], task_id: str = "t1") -> Path:
    head = {"task": "kiosk", "task_id": task_id, "created": created, "model": "maker/model-x"}
    path.write_text(
        json.dumps({"version": 2, "status": "success", "eval": head, "samples": samples})
    )
    return path


def sample(uuid: str, sample_id: str, answer: str, **more: Any) -> dict[str, Any]:
    messages = [{"role": "user", "content": "Q"}, {"role": "assistant", "content": answer}]
    return {"id": sample_id, "epoch": 1, "uuid": uuid, "input": "Q", "messages": messages, **more}


def test_of_samples_that_were_run_again_one_counts(tmp_path: Path) -> None:
    error = {"error": {"message": "lost"}}
    early = log(
        tmp_path / "early.json",
        "2026-01-10T08:00:00+00:00",
        [sample("u1", "a", "a early", **error), sample("u2", "b", "b early"),
         sample("u3", "c", "c early"), sample("u4", "d", "d early")],
    )  # fmt: skip
    late = log(
        tmp_path / "late.json",
        "2026-01-10T09:00:00+00:00",
        [sample("u5", "a", "a late"), sample("u6", "b", "b late", **error),
         sample("u7", "c", "c late")],
    )  # fmt: skip
    other = log(tmp_path / "x.json", "2026-01-11T09:00:00+00:00", [sample("u8", "a", "x")], "t2")
    for order in ([early, late, other], [other, late, early]):
        read = read_files(order, SETTINGS)
        answers = {
            str(trace.response)
            for file in read.files
            if file.runs is not None
            for trace in responses(tmp_path, read.files.index(file), read)
        }
        assert answers == {"a late", "b early", "c late", "d early", "x"}
        assert sum(row.reason == SUPERSEDED for row in read.set_aside) == 3
        assert "Superseded    3 of them (samples of an eval that were run again)" in list(
            preview_lines(read)
        )


def responses(folder: Path, k: int, read: Any) -> list[Any]:
    path = folder / f"{k}-{read.files[k].path.stem}-{len(list(folder.iterdir()))}.duckdb"
    with Store.open(path, create=True) as store:
        one_file = replace(read, paths=(read.files[k].path,), files=(read.files[k],), set_aside=())
        store_files(store, one_file, SETTINGS)
        ids = list(store.trace_frame()["trace_id"])
        return list(store.whole_traces(ids))
