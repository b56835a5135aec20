"""`asr pull` and `asr push` from the command line, also killed in the middle."""

import json
import os
import random
import subprocess
import sys
import time
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from calibration.store import Store
from calibration.taxonomy import default_taxonomy
from tests.cli_runs import Run as Command
from tests.cli_runs import data
from tests.platform_server import KEY, PROJECT, SECRET, VARIABLES, PlatformServer, Run, runs

ROOT = Path(__file__).parents[1]
KILLS = 6
ALL = ["langfuse", "langsmith", "phoenix"]
# tests/analyses/test_platforms.py has them all in every quick run.
FIRST = ["langfuse", *(pytest.param(name, marks=pytest.mark.long) for name in ALL[1:])]


def recent(n: int) -> list[Run]:
    """Return runs of two days ago: the command has no clock of its own."""
    return runs(n, begun=datetime.now(UTC).replace(microsecond=0) - timedelta(days=2))


def hashes(path: Path) -> dict[str, str]:
    with Store.open(path) as store:
        ids = list(store.trace_frame()["trace_id"])
        assert len(set(ids)) == len(ids)
        return store.content_hashes(ids)


def labelled(asr: Command, name: str, server: PlatformServer) -> list[str]:
    """Pull, draw a batch and import labels; return the ids at the source that have a consensus."""
    asr("pull", name, env=server.env)
    asr("sample", "--n", "4", "--seed", "1")
    ids = [run.uuid if name == "langsmith" else run.hex for run in server.runs]
    rules = default_taxonomy()
    rows = [(ids[0], "Ann", rules.success), (ids[0], "Bo", rules.success)]
    rows += [(ids[1], "Ann", rules.success), (ids[1], "Bo", rules.failed_check)]
    rows += [(ids[2], "Ann", rules.failed_check)]
    text = "".join(f"{','.join(row)}\n" for row in rows)
    Path("labels.csv").write_text("trace_id,reviewer,outcome\n" + text)
    asr("labels", "import", "labels.csv", "--batch", "production-001")
    return [ids[0], ids[2]]


@pytest.mark.parametrize("name", FIRST)
def test_pull_imports_and_pulls_the_new_ones_next(name: str, asr: Command) -> None:
    with PlatformServer(recent(4)) as server:
        said = asr("pull", name, "--since", "7d", "--limit", "3", env=server.env).stdout
        assert said.startswith("3 traces of ")
        assert "3 imported, 0 already there" in said
        assert "there are more in this window" in said
        assert "Next: asr status" in said
        found = data(asr("pull", name, "--since", "7d", "--json", env=server.env))
        assert (found["traces"], found["imported"]["imported"]) == (1, 1)
        assert "no new traces of " in asr("pull", name, env=server.env).stdout
        assert len(hashes(Path("asr.duckdb"))) == 4
        again = asr("pull", name, "--since", "7d", "--again", env=server.env).stdout
        assert "0 imported, 4 already there" in again
        assert not list(Path("asr.platforms").rglob("page-*"))


def test_a_pull_without_a_key_or_into_an_unreadable_window_is_refused(asr: Command) -> None:
    nothing: dict[str, Any] = dict.fromkeys(VARIABLES, "")
    said = asr("pull", "langsmith", code=2, env=nothing).stderr
    assert "set LANGSMITH_API_KEY in the environment" in said
    with PlatformServer([]) as server:
        said = asr("pull", "langfuse", "--since", "soon", code=2, env=server.env).stderr
        assert "must be a date such as" in said
        assert asr("pull", "langfuse", "--project", "x", code=2, env=server.env).stderr
    assert not Path("asr.duckdb").exists()


@pytest.mark.parametrize("name", FIRST)
def test_push_shows_first_and_sends_on_request(name: str, asr: Command) -> None:
    with PlatformServer(recent(4)) as server:
        settled = labelled(asr, name, server)
        shown = asr("push", name, env=server.env).stdout
        assert "2 scores would be sent to" in shown
        assert f"Next: asr push {name} --batch production-001 --send" in shown
        assert server.received.scores == {}
        dry = data(asr("push", name, "--json", env=server.env))
        assert (dry["scores"], dry["sent"], len(dry["first"])) == (2, False, 2)
        assert "2 sent to" in asr("push", name, "--send", env=server.env).stdout
        again = data(asr("push", name, "--send", "--json", env=server.env))
        assert (again["sent"], again["sent_before"]) == (0, 2)
        sent = json.dumps(server.received.scores)
        assert all(own in sent for own in settled)
        if name == "langsmith":
            told = {score["session_id"] for score in server.received.scores.values()}
            assert told == {PROJECT}
        assert "Ann" not in sent
        assert "Bo" not in sent
        key = SECRET if name == "langfuse" else KEY
        assert not any(
            key.encode() in file.read_bytes() for file in Path().rglob("*") if file.is_file()
        )
        # What was pushed is no grade of the platform when it is pulled again.
        assert "verdicts" not in asr("pull", name, "--again", env=server.env).stdout


def test_push_of_verdicts(asr: Command) -> None:
    with PlatformServer(recent(3)) as server:
        asr("pull", "langfuse", env=server.env)
        rules = default_taxonomy()
        rows = [f"{run.hex},{rules.failed_check}" for run in server.runs]
        Path("verdicts.csv").write_text("\n".join(["trace_id,outcome", *rows]) + "\n")
        asr("verdicts", "import", "verdicts.csv", "--judge", "judge-2")
        asr("push", "langfuse", "--judge", "judge-2", "--send", env=server.env)
    scores = list(server.received.scores.values())
    assert {score["name"] for score in scores} == {"asr-calibration/judge/judge-2"}
    assert {score["value"] for score in scores} == {rules.failed_check}
    assert [score["metadata"]["judge"] for score in scores] == ["judge-2"] * 3


def test_what_cannot_be_pushed(asr: Command, built_demo: Path) -> None:
    from tests.stores import copy_store

    simulated = copy_store(built_demo, Path("demo.duckdb"))
    said = asr("push", "langfuse", "--store", simulated, code=1).stderr
    assert "simulated" in said
    with PlatformServer(recent(4)) as server:
        labelled(asr, "langfuse", server)
        said = asr("push", "phoenix", code=1, env=server.env).stderr
        assert "no consensus label or verdict is on a trace of Phoenix" in said
        asr("push", "langfuse", "--batch", "nix", code=2, env=server.env)
        asr("push", "langfuse", "--judge", "nix", code=1, env=server.env)


@pytest.mark.long
@pytest.mark.parametrize("name", ALL)
def test_killed_pulls_have_no_trace_twice_and_none_missing(
    name: str, asr: Command, tmp_path: Path
) -> None:
    rng = random.Random(KILLS)
    words = [sys.executable, "-m", "calibration.cli", "pull", name, "--since", "7d"]
    with PlatformServer(recent(60), page=2, scored=tuple(range(0, 60, 7))) as server:
        asr("pull", name, "--since", "7d", "--store", "calm.duckdb", env=server.env)
        env = {**os.environ, **server.env, "PYTHONPATH": str(ROOT)}
        store = tmp_path / "killed.duckdb"
        killed = 0
        for _ in range(KILLS):
            target = len(server.received.requests) + rng.randint(1, 30)
            worker = subprocess.Popen([*words, "--store", str(store)], cwd=tmp_path, env=env)
            while worker.poll() is None and len(server.received.requests) < target:
                time.sleep(0.002)
            # Some of them in the middle of the import, after the last request.
            time.sleep(rng.uniform(0.0, 0.05))
            killed += worker.poll() is None
            worker.kill()
            worker.wait()
        assert killed > KILLS // 2
        done = subprocess.run([*words, "--store", str(store)], cwd=tmp_path, env=env, check=False)
        assert done.returncode == 0
    assert len(hashes(store)) == 60
    assert hashes(store) == hashes(tmp_path / "calm.duckdb")
