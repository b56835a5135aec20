"""The folder of a run: what a torn, damaged or foreign file does, and who may read it."""

import asyncio
import errno
import json
import os
import stat
from pathlib import Path

import pytest

from calibration.errors import JudgeRunError
from calibration.judging.journal import (
    JOURNAL_FILE,
    PROGRESS_FILE,
    Ended,
    Journal,
    RunProgress,
    Sent,
    Tokens,
    create_run,
    read_plan,
    read_progress,
    take_control,
    write_control,
    write_progress,
)
from calibration.judging.requests import Reply, Request
from tests.judging.fake_judge import content, traces
from tests.judging.runs import judged, planned
from tests.judging.scripted_server import ScriptedServer

REQUEST = Request(trace_id="t", content_hash="c", sample=0, output_limit=5)
SENT = Sent(
    key="k", trace_id="t", sample=0, attempt=1, input_bytes=9, input_characters=9, output_limit=5,
    reserved_tokens=10,
)  # fmt: skip
ANSWER = Reply(key="k", status=200, headers={"x-request-id": "r"}, body="é\ud800\n", latency_s=1.0)


def run_of(tmp_path: Path) -> Path:
    return create_run(tmp_path / "s.judge", "one", {"judge_id": "j"})


async def exchange(folder: Path, *, key: str = "k") -> None:
    sent = Sent(**{**{f: getattr(SENT, f) for f in Sent.__slots__}, "key": key})
    reply = Reply(**{**{f: getattr(ANSWER, f) for f in Reply.__slots__}, "key": key})
    with Journal(folder) as journal:
        await journal.sent(REQUEST, sent)
        await journal.answer_came(reply, Tokens(input=4, output=2))
        assert journal.answer(key) == reply


def test_an_answer_is_kept_as_it_came(tmp_path: Path) -> None:
    folder, noted = run_of(tmp_path), []
    asyncio.run(exchange(folder))
    with Journal(folder, lambda ended, own: noted.append((ended, own))) as journal:
        assert journal.answer("k") == ANSWER
        assert journal.answer("other") is None
        assert not journal.may_ask("k")
    tokens = Tokens(input=4, output=2)
    assert noted == [(Ended(sent=SENT, kind="answered", possible=True, tokens=tokens), True)]


def test_only_the_owner_may_read(tmp_path: Path) -> None:
    folder = planned(tmp_path)
    with ScriptedServer(content) as server:
        judged(folder, server.url, traces(2))
    write_control(folder, "stop")
    for path in [folder.parent, *folder.parent.rglob("*"), *folder.parent.glob(".*")]:
        wanted = 0o700 if path.is_dir() else 0o600
        assert stat.S_IMODE(path.stat().st_mode) == wanted, path


@pytest.mark.parametrize("torn", [b'{"kind":"answ', b"\x00\x00\x00", b'{"kind"}\n', b"[]\n"])
def test_a_torn_last_line_is_cut_off(torn: bytes, tmp_path: Path) -> None:
    folder = run_of(tmp_path)
    asyncio.run(exchange(folder))
    path = folder / JOURNAL_FILE
    whole = path.read_bytes()
    path.write_bytes(whole + torn)
    asyncio.run(exchange(folder, key="next"))
    assert path.read_bytes().startswith(whole + b'{"at":')
    with Journal(folder) as journal:
        assert journal.answered == 2


@pytest.mark.parametrize(
    "line", [b"nonsense\n", b'{"kind":"sent"}\n', b'{"kind":"answered","key":"never"}\n']
)
def test_a_damaged_line_within_is_named(line: bytes, tmp_path: Path) -> None:
    folder = run_of(tmp_path)
    asyncio.run(exchange(folder))
    path = folder / JOURNAL_FILE
    path.write_bytes(line + path.read_bytes())
    with pytest.raises(JudgeRunError, match="damaged at byte 0"), Journal(folder):
        pass
    # Its locks are free again.
    path.write_bytes(b"")
    with Journal(folder):
        pass


def test_a_full_disk_ends_the_run_and_leaves_whole_lines(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = run_of(tmp_path)
    asyncio.run(exchange(folder))
    before = (folder / JOURNAL_FILE).read_bytes()
    write = os.write

    def full(number: int, data: memoryview) -> int:
        if len(data) > 40:
            return write(number, data[:40])
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(os, "write", full)
    with pytest.raises(JudgeRunError, match=r"cannot be written .No space left on device"):
        asyncio.run(exchange(folder, key="next"))
    assert (folder / JOURNAL_FILE).read_bytes() == before


def test_lines_that_wait_share_one_sync(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    synced = [0]
    fsync = os.fsync

    def count(number: int) -> None:
        synced[0] += 1
        fsync(number)

    async def many() -> None:
        with Journal(folder) as journal:
            await asyncio.gather(*(journal.control("word", n=n) for n in range(100)))

    folder = run_of(tmp_path)
    monkeypatch.setattr(os, "fsync", count)
    asyncio.run(many())
    lines = [json.loads(line) for line in (folder / JOURNAL_FILE).read_text().splitlines()]
    assert [line["n"] for line in lines] == list(range(100))
    assert synced[0] <= 3


def test_in_doubt_twice_is_not_asked_again_but_a_kill_is_no_fault_of_the_endpoint(
    tmp_path: Path,
) -> None:
    async def doubt(cause: str) -> bool:
        with Journal(folder) as journal:
            await journal.mark_killed()
            await journal.sent(REQUEST, SENT)
            if cause:
                await journal.in_doubt("k", cause)
            return journal.may_ask("k")

    folder = run_of(tmp_path)
    assert [asyncio.run(doubt(c)) for c in ("", "", "deadline", "", "deadline")] == [
        True, True, True, True, False,
    ]  # fmt: skip


@pytest.mark.parametrize("name", ["", "a/b", "..", ".hidden", "x" * 65])
def test_a_run_has_a_plain_name(name: str, tmp_path: Path) -> None:
    with pytest.raises(JudgeRunError, match="a run is named by"):
        create_run(tmp_path / "s.judge", name, {"judge_id": "j"})


def test_a_plan_is_frozen(tmp_path: Path) -> None:
    folder = run_of(tmp_path)
    with pytest.raises(JudgeRunError, match="run one exists already"):
        run_of(tmp_path)
    assert read_plan(folder) == {"judge_id": "j"}
    (folder / "run.json").write_text("[]")
    with pytest.raises(JudgeRunError, match="names no judge"):
        read_plan(folder)
    with pytest.raises(JudgeRunError, match="holds no run"):
        read_plan(tmp_path)


def test_a_worker_without_a_heartbeat_is_dead(tmp_path: Path) -> None:
    folder = run_of(tmp_path)
    assert read_progress(folder) is None
    write_progress(folder, RunProgress(state="running", heartbeat=1000.0))
    states = [getattr(read_progress(folder, now), "state", None) for now in (1029.0, 1031.0)]
    assert states == ["running", "dead"]
    write_progress(folder, RunProgress(state="finished", heartbeat=1000.0))
    assert getattr(read_progress(folder, 9999.0), "state", None) == "finished"
    (folder / PROGRESS_FILE).write_text("{}")
    assert read_progress(folder) is None


def test_a_control_is_read_once(tmp_path: Path) -> None:
    folder = run_of(tmp_path)
    assert take_control(folder) is None
    write_control(folder, "pause")
    assert [take_control(folder), take_control(folder)] == ["pause", None]
    (folder / "control").write_text("dance")
    assert take_control(folder) is None
    with pytest.raises(JudgeRunError, match="understands pause, resume, stop"):
        write_control(folder, "dance")
