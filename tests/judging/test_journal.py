"""The folder of a run: what is on the disk stays, what is torn goes, and nobody else reads it."""

import asyncio
import json
import stat
from pathlib import Path
from typing import Any

import pytest

from calibration.errors import CalibrationError, InputError
from calibration.judging.journal import Replay, RunFolder


def sent(key: str, reserved: int = 10) -> dict[str, Any]:
    return {"line": "sent", "key": key, "attempt": 1, "reserved": reserved}


def answered(key: str, spent: int = 4) -> dict[str, Any]:
    return {
        "line": "answered", "key": key, "status": 200, "headers": {}, "body": "{\u2028}",
        "usage": None, "spent": spent, "latency_s": 0.1,
    }  # fmt: skip


def written(folder: RunFolder, *lines: dict[str, Any]) -> None:
    async def write() -> None:
        journal = folder.journal()
        await asyncio.gather(*(journal.append(line) for line in lines))
        journal.close()

    asyncio.run(write())


def replayed(folder: RunFolder) -> Replay:
    journal = folder.journal()
    journal.close()
    return journal.replay


@pytest.fixture
def folder(tmp_path: Path) -> RunFolder:
    made = RunFolder(tmp_path / "demo.judge", "first")
    made.begin({"model": "m", "cap": 5})
    return made


def test_only_the_owner_reads_a_run(folder: RunFolder) -> None:
    written(folder, sent("a"), answered("a"))
    folder.write_progress({"answered": 1})
    folder.order("pause")
    with folder.lock():
        pass
    assert stat.S_IMODE(folder.path.stat().st_mode) == 0o700
    assert {stat.S_IMODE(file.stat().st_mode) for file in folder.path.iterdir()} == {0o600}


def test_what_was_answered_is_found_again_and_what_was_open_is_in_doubt(folder: RunFolder) -> None:
    written(folder, sent("a"), answered("a"), sent("b", reserved=30))
    replay = replayed(folder)
    found = replay.reply("a")
    assert found is not None
    assert found.body == "{\u2028}"
    assert replay.reply("b") is None
    assert (replay.doubts, replay.open, replay.spent) == ({"b": 1}, {}, 34)
    # The doubt is written once: a third process counts the same.
    again = replayed(folder)
    assert (again.doubts, again.spent) == ({"b": 1}, 34)


@pytest.mark.parametrize("cut", range(1, 40, 3))
def test_a_torn_last_line_is_cut_off(folder: RunFolder, cut: int) -> None:
    written(folder, sent("a"), answered("a"), sent("b"), answered("b"))
    path = folder.path / "journal.jsonl"
    whole = path.read_bytes()
    path.write_bytes(whole[:-cut])
    replay = replayed(folder)
    assert replay.reply("a") is not None
    assert replay.reply("b") is None
    assert replay.doubts == {"b": 1}
    assert all(json.loads(line) for line in path.read_bytes().splitlines())


def test_a_broken_line_in_the_middle_is_named(folder: RunFolder) -> None:
    written(folder, sent("a"), answered("a"))
    path = folder.path / "journal.jsonl"
    first, rest = path.read_bytes().split(b"\n", 1)
    path.write_bytes(first[:-3] + b"\n" + rest)
    with pytest.raises(InputError, match="line 1 is no line of a journal"):
        folder.journal()


def test_another_run_of_the_judge_finds_its_answers_and_pays_nothing(folder: RunFolder) -> None:
    written(folder, sent("a"), answered("a"), sent("b"))
    second = RunFolder(folder.root, "second")
    second.begin({"model": "m"})
    replay = replayed(second)
    assert replay.reply("a") is not None
    assert (replay.spent, replay.doubts) == (0, {"b": 1})


def test_lines_are_in_the_order_of_their_offsets(folder: RunFolder) -> None:
    keys = [f"k{n}" for n in range(200)]
    written(folder, *(sent(key) for key in keys), *(answered(key, n) for n, key in enumerate(keys)))
    replay = replayed(folder)
    assert [replay.reply(key) is not None for key in keys] == [True] * 200
    assert replay.spent == sum(range(200))


def test_a_plan_is_frozen(folder: RunFolder) -> None:
    folder.begin({"model": "m", "cap": 5})
    with pytest.raises(InputError, match="planned with another cap"):
        folder.begin({"model": "m", "cap": 6})
    with pytest.raises(InputError, match="no run 'other'"):
        RunFolder(folder.root, "other").plan()
    with pytest.raises(InputError, match="at most 64 letters"):
        RunFolder(folder.root, "../elsewhere")


def test_one_worker_a_run(folder: RunFolder) -> None:
    with folder.lock():
        with pytest.raises(CalibrationError, match=r"under way in process \d+: one worker"):
            with folder.lock():
                pass
    with folder.lock():
        pass


def test_orders_are_taken_once(folder: RunFolder) -> None:
    assert folder.take_order() is None
    folder.order("pause")
    assert (folder.take_order(), folder.take_order()) == ("pause", None)
    with pytest.raises(ValueError, match="pause, resume, stop"):
        folder.order("explode")


def test_a_worker_without_heartbeat_is_dead(folder: RunFolder) -> None:
    assert folder.progress() is None
    folder.write_progress({"answered": 1})
    assert (folder.progress() or {})["alive"]
    path = folder.path / "progress.json"
    old = {**json.loads(path.read_text()), "heartbeat": 1.0}
    path.write_text(json.dumps(old))
    assert not (folder.progress() or {})["alive"]


def test_a_full_disk_ends_the_run_and_keeps_what_is_there(folder: RunFolder) -> None:
    async def write() -> None:
        journal = folder.journal()
        await journal.append(sent("a"))
        journal._file.close()
        with pytest.raises(CalibrationError, match="journal cannot be written"):
            await journal.append(answered("a"))
        journal.close()

    asyncio.run(write())
    assert replayed(folder).doubts == {"a": 1}
