"""From an endpoint to a calibrated judge on the command line, as docs/judge.md shows it."""

import json
import re
import shlex
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import pytest

from calibration.analyses.judging import versions
from calibration.judging import steps
from calibration.records import LabelDraft
from calibration.store import Store
from calibration.taxonomy import Taxonomy
from tests.cli_runs import ASR, HOLDER, Run, run
from tests.judging.makers import reference
from tests.judging.scripted_server import Asked, ScriptedServer
from tests.judging.small_model import outcome_by_word, small_model
from tests.store.builders import make_traces

# Runs of a judge from end to end: commands and workers at a server with real sockets.
pytestmark = pytest.mark.long

DOCUMENT = Path(__file__).parents[2] / "docs" / "judge.md"
ADDRESS = "https://api.example.org/v1"
KEY = "sk-marked-9c1f7e22"


def knowing(asked: Asked, word: str, taxonomy: Taxonomy) -> str:
    """Return the reference class of a reference trace; of other traces any class."""
    record = asked.body["messages"][-1]["content"]
    for trace in reference().traces.values():
        if trace.response and len(trace.response) > 80 and trace.response[:60] in record:
            return reference().labels[trace.trace_id].outcome
    return outcome_by_word(word, taxonomy)


@pytest.fixture
def server() -> Iterator[ScriptedServer]:
    with ScriptedServer(small_model(knowing), api_key=KEY) as serving:
        yield serving


@pytest.fixture
def asr(tmp_path: Path, server: ScriptedServer, monkeypatch: pytest.MonkeyPatch) -> Run:
    monkeypatch.setenv("ASR_JUDGE_KEY", KEY)
    path = tmp_path / "s.duckdb"

    def called(*arguments: object, code: int = 0) -> Any:
        words = [server.url if word == ADDRESS else word for word in arguments]
        return run(*words, "--store", path, code=code)

    return called


def ten_commands() -> list[list[str]]:
    block = re.findall(r"^```bash\n(.*?)^```", DOCUMENT.read_text("utf-8"), re.M | re.S)[0]
    lines = [line for line in block.splitlines() if line.startswith("asr ")]
    return [shlex.split(line)[1:] for line in lines]


def labelled_store(path: Path) -> None:
    """Make a store with 150 runs, of which a random 60 are labelled."""
    with Store.open(path, create=True) as store:
        store.ingest(make_traces(150))
        store.add_reviewer("Ann")
    run("sample", "--n", 60, "--seed", 1, "--labels-wanted", 1, "--store", path)
    with Store.open(path) as store:
        batch = store.batches()[0].batch_id
        names, taxonomy = store.taxonomy().names, store.taxonomy()
        ids = sorted(store.batch_items(batch)["trace_id"])
        store.import_labels(
            batch,
            [
                LabelDraft(
                    trace_id=trace_id, reviewer_id="ann", batch_id=batch, client_token=trace_id,
                    answers=taxonomy.answers_for(names[k % len(names)]),
                )
                for k, trace_id in enumerate(ids)
            ],
        )  # fmt: skip


def test_the_causes_of_no_verdict_are_beside_the_corrected_rate(
    tmp_path: Path, asr: Run, server: ScriptedServer
) -> None:
    labelled_store(tmp_path / "s.duckdb")
    server.rule = lambda asked: "refusal" if int(asked.key, 16) % 4 == 0 else "good"
    made(asr)
    asr("judge", "run", "one", "--cap-tokens", 10**7)
    with Store.open(tmp_path / "s.duckdb") as opened:
        frame = opened.verdict_frame("one")
        ids = set(opened.production_traces()["trace_id"])
    n = int((frame["trace_id"].isin(ids) & (frame["cause"] == "refusal")).sum())
    assert n > 0
    note = f"no verdict on {n} of 150 traces, by cause: refusal {n}"
    assert note in json.loads(asr("calibrate", "--json").stdout)["notes"]
    assert note in asr("calibrate", "--full").stdout


def test_the_ten_commands_of_the_document_calibrate_a_judge(
    tmp_path: Path, asr: Run, server: ScriptedServer
) -> None:
    labelled_store(tmp_path / "s.duckdb")
    commands = ten_commands()
    assert len(commands) == 10
    for words in commands:
        result = asr(*words)
        assert KEY not in result.output
        if words[1:2] == ["certify"]:
            assert "Judge strict is certified" in result.stdout
    found = json.loads(asr("calibrate", "--json").stdout)
    assert found["judge_id"] == "strict"
    # The verdict of three samples is none of them: files say the same of the judge.
    files = [tmp_path / name for name in ("labels.csv", "verdicts.csv")]
    asr("export", "labels", files[0])
    asr("export", "verdicts", files[1])
    from_files = run("calibrate", "--human", files[0], "--verdicts", files[1], "--json")
    again = json.loads(from_files.stdout)
    assert again["diagnostics"]["retest"] == found["diagnostics"]["retest"]
    assert again["estimates"] == found["estimates"]
    asked = [key for key, entry in server.ledger.entries.items() if entry.answered]
    # Three samples of each trace, the anchor set once in each of three runs, and the probe.
    assert len(asked) == 3 * (70 + 70 + 150 + 3 * 10) + 3
    assert all(entry.answered == 1 for entry in server.ledger.entries.values())
    files = [path for path in tmp_path.rglob("*") if path.is_file()]
    assert [path for path in files if KEY.encode() in path.read_bytes()] == []
    with Store.open_to_read(tmp_path / "s.duckdb")[0] as store:
        detail = json.loads(store.trace_verdicts("code_review-001")["detail"][0])
    assert (detail["samples"], detail["run"]) == (3, "strict-001")


@pytest.fixture
def store(tmp_path: Path) -> Path:
    """Return a store with twelve runs."""
    path = tmp_path / "s.duckdb"
    with Store.open(path, create=True) as store:
        store.ingest(make_traces(12))
    return path


def made(asr: Run, name: str = "one", *more: object) -> None:
    asr("judge", "new", name, "--model", "m", "--url", ADDRESS, "--samples", 1, *more)


def test_what_is_missing_is_named_with_what_to_do(
    asr: Run, store: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert "none yet; `asr judge new`" in asr("judge", "estimate", "one", code=2).stderr
    assert "no judge was run yet" in asr("judge", "status", code=1).stderr
    assert "give --model and --url" in asr("judge", "new", "one", code=2).stderr
    only = asr("judge", "new", "one", "--model", "m", "--url", ADDRESS, "--price-in", 2, code=2)
    assert "both --price-in and --price-out" in only.stderr
    made(asr)
    assert "give a cap" in asr("judge", "run", "one", code=2).stderr
    assert "needs prices" in asr("judge", "run", "one", "--cap-usd", 1, code=1).stderr
    assert "no batch" in asr("judge", "estimate", "one", "--batch", "none", code=2).stderr
    assert (
        "has the workflow" in asr("judge", "estimate", "one", "--workflow", "none", code=2).stderr
    )
    both = asr("judge", "estimate", "one", "--form", "exam_a", "--batch", "b", code=2)
    assert "has no batch" in both.stderr
    assert "has no verdict yet" in asr("judge", "promote", "one", code=2).stderr
    assert "no judge has judged exam_a" in asr("judge", "compare", code=1).stderr
    assert "of exam B" in asr("judge", "certify", "one", "--minimum", 0.5, code=1).stderr
    monkeypatch.setenv("ASR_JUDGE_KEY", "sk-wrong-key-11223344")
    refused = asr("judge", "new", "two", "--model", "m", "--url", ADDRESS, code=1)
    assert "the endpoint refuses" in refused.stderr
    assert "11223344" not in refused.output
    assert json.loads(asr("judge", "list", "--json").stdout)[0]["judge"] == "one"


def test_without_the_extra_the_command_that_installs_it_is_named(
    asr: Run, store: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    made(asr)
    monkeypatch.setitem(sys.modules, "openai", None)
    for words in (
        ("judge", "run", "one", "--cap-tokens", 10**6),
        ("judge", "new", "two", "--model", "m", "--url", ADDRESS),
    ):
        assert "pip install 'asr-calibration[judge]'" in asr(*words, code=1).stderr
    assert "22 traces" in asr("judge", "estimate", "one").stdout
    assert not (store.parent / "s.judge").exists()


def test_a_run_that_meets_its_cap_says_so_and_another_one_uses_its_answers(
    asr: Run, store: Path, server: ScriptedServer
) -> None:
    made(asr, "one", "--price-in", 2, "--price-out", 8, "--token-limit", 500)
    result = asr("judge", "run", "one", "--cap-usd", 0.05, "--at-once", 1, code=1)
    assert "was stopped by its cap" in result.stdout
    answered = len(server.ledger.entries) - 3
    assert 0 < answered < 22
    assert server.ledger.bill <= 0.05 + 0.01  # of the probe besides
    found = json.loads(asr("judge", "estimate", "one", "--json").stdout)
    assert (found["answered"], found["requests"]) == (answered, 22 - answered)
    asr("judge", "run", "one", "--cap-usd", 1)
    (state,) = json.loads(asr("judge", "status", "one-002", "--json").stdout)
    assert state["progress"]["state"] == "finished"
    assert state["progress"]["reused"] == answered
    assert all(entry.answered == 1 for entry in server.ledger.entries.values())


def test_a_person_closes_a_run_that_cannot_go_on(
    asr: Run, store: Path, server: ScriptedServer
) -> None:
    made(asr)
    last = {"n": 0}

    def after_six(asked: Asked) -> str:
        last["n"] += 1
        return "good" if last["n"] <= 16 else "401"

    server.rule = after_six
    result = asr("judge", "run", "one", "--cap-tokens", 10**6, "--at-once", 1, code=1)
    assert "has failed: the endpoint refuses" in result.stdout
    assert "6 of 22 traces have no verdict now" in asr("judge", "close", "one-001").stdout
    with Store.open(store) as opened:
        outcomes = opened.verdict_frame("one")["outcome"].tolist()
        trail = opened.audit_trail(what="verdicts")
        causes = [
            opened.trace_verdicts(trace_id)["cause"][0]
            for trace_id in opened.verdict_frame("one")["trace_id"]
        ]
    assert (len(outcomes), outcomes.count("no_verdict")) == (22, 6)
    assert causes.count("outage") == 6
    assert "asr judge close" in str(trail["origin"].iloc[0])
    assert "closed" in (store.parent / "s.judge" / "one-001" / "journal.jsonl").read_text()


def test_paid_answers_are_read_again_by_another_reader(
    asr: Run, store: Path, server: ScriptedServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    made(asr)
    asr("judge", "run", "one", "--cap-tokens", 10**6)
    asked = len(server.ledger.entries)
    assert "in the same way" in asr("judge", "reparse", "one", "two", code=2).stderr
    # As the next release would have it.
    monkeypatch.setattr(steps, "READER", "3")
    monkeypatch.setattr(versions, "READER", "3")
    assert "22 traces have a verdict of two" in asr("judge", "reparse", "one", "two").stdout
    assert len(server.ledger.entries) == asked
    with Store.open(store) as opened:
        assert opened.judge("two").line == "one"
        same = [opened.verdict_frame(name)["outcome"].tolist() for name in ("one", "two")]
    assert same[0] == same[1]


def test_a_worker_is_paused_stopped_and_resumed_while_the_app_has_the_store(
    asr: Run, store: Path, server: ScriptedServer
) -> None:
    server.latency = lambda asked: 1.0
    made(asr)
    words = ["judge", "run", "one", "--cap-tokens", "1000000", "--at-once", "1"]
    with held_by_another(store):
        worker = subprocess.Popen(
            [*ASR, *words, "--store", str(store)], stdout=subprocess.PIPE, text=True
        )
        wait_for(lambda: state_of(asr) == "running")
        assert "to pause" in asr("judge", "pause").stdout
        wait_for(lambda: state_of(asr) == "paused")
        before = len(server.ledger.entries)
        assert "to resume" in asr("judge", "resume").stdout
        wait_for(lambda: len(server.ledger.entries) > before + 1)
        asr("judge", "stop")
        output, _ = worker.communicate(timeout=60)
        assert worker.returncode == 1
        assert "was stopped: stopped by a person" in output
        server.latency = lambda asked: 0.0
        asr("judge", "resume")
    with Store.open(store) as opened:
        assert len(opened.verdict_frame("one")) == 22
    assert all(entry.answered == 1 for entry in server.ledger.entries.values())


@contextmanager
def held_by_another(store: Path) -> Iterator[None]:
    """Let another process, like the app, hold the store."""
    words = [sys.executable, "-c", HOLDER, str(store)]
    holder = subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    assert holder.stdout is not None
    assert holder.stdout.readline() == "ready\n"
    yield
    holder.communicate("")
    assert holder.returncode == 0


def state_of(asr: Run) -> str:
    with suppress(AssertionError):  # there is no run yet
        (state,) = json.loads(asr("judge", "status", "--json").stdout)
        return str((state["progress"] or {}).get("state"))
    return ""


def wait_for(holds: Callable[[], bool], seconds: float = 30.0) -> None:
    until = time.monotonic() + seconds
    while not holds():
        assert time.monotonic() < until, "did not happen"
        time.sleep(0.1)


def test_a_model_that_changes_under_its_name_is_seen_by_the_anchor_set(
    asr: Run, store: Path, server: ScriptedServer
) -> None:
    made(asr)
    asr("judge", "run", "one", "--cap-tokens", 10**7)
    with Store.open(store) as opened:
        # Ten practice traces besides the twelve; they count nowhere.
        assert len(opened.verdict_frame("one")) == 22
        assert len(opened.production_traces()) == 12
    assert "anchor" not in asr("judge", "status").stdout
    found = json.loads(asr("judge", "estimate", "one", "--json").stdout)
    assert (found["anchors"], found["requests"], found["answered"]) == (10, 10, 12)
    # About half of what it knew it knows no more.
    server.content = small_model(
        lambda asked, word, rules: (
            knowing(asked, word, rules) if word < "m" else outcome_by_word(word, rules)
        )
    )
    asr("judge", "run", "one", "--cap-tokens", 10**7)
    anchors = json.loads(asr("judge", "status", "one-002", "--json").stdout)[0]["anchors"]
    assert anchors["n"] == 10
    assert 0 < anchors["value"] < 1
    assert anchors["interval"][0] < anchors["value"] < anchors["interval"][1]
    assert "of the anchor set changed" in asr("judge", "status", "one-002").stdout
    with Store.open(store) as opened:
        assert len(opened.verdict_frame("one")) == 22


def test_what_changes_a_verdict_that_should_not_is_counted(
    asr: Run, store: Path, server: ScriptedServer
) -> None:
    made(asr)
    words = ("judge", "robustness", "one", "--cap-tokens", 10**7, "--json")
    found = json.loads(asr(*words).stdout)
    rates = {rate["probe"]: rate for rate in found["rates"]}
    assert (found["n_traces"], found["ended"], len(rates)) == (12, None, 11)
    assert rates["reference"]["left_out"] == {"no reference answer": 12}
    # This model chooses a class by the code word, so that any change may change it.
    assert 0 < rates["retest"]["rate"]["value"] < 1
    assert rates["injected"]["rate"]["interval"][0] > 0
    assert rates["examples"]["rate"]["value"] is None
    assert sum(rates["examples"]["left_out"].values()) == 12
    asked = len(server.ledger.entries)
    again = asr("judge", "robustness", "one", "--cap-tokens", 10**7, "--only", "injected")
    assert "orders to the judge in the trace" in again.stdout
    assert len(server.ledger.entries) > asked
    assert "no probe 'none'" in asr(*words[:-1], "--only", "none", code=2).stderr
    capped = asr("judge", "robustness", "one", "--cap-tokens", 9_000, "--seed", 5, code=1)
    assert "Not finished: the next request could cost more than the cap leaves" in capped.stdout
    with Store.open(store) as opened:
        assert opened.verdict_frame("one").empty


def test_the_baseline_is_compared_with_a_judge_on_the_same_traces(
    asr: Run, store: Path, server: ScriptedServer
) -> None:
    made(asr)
    asr("judge", "run", "one", "--form", "exam_a", "--cap-tokens", 10**7)
    name = json.loads(asr("judge", "baseline", "--form", "exam_a", "--json").stdout)["judge"]
    found = json.loads(asr("judge", "compare", "one", name, "--json").stdout)
    low, high = found["paired"]["difference"]["interval"]
    assert found["n"] == 70
    assert 0 < low < found["paired"]["difference"]["value"] < high
    assert found["paired"]["better"] == "first"
    assert {flip["first"] for flip in found["flips"]} <= {flip["human"] for flip in found["flips"]}
    text = asr("judge", "compare", "one", name).stdout
    assert f"one agrees better with the humans than {name}." in text
    assert "70 labelled traces of exam A that both judged." in text
    scores = json.loads(asr("judge", "compare", "--json").stdout)
    assert (scores["tried"][scores["best"]["version"]], scores["best"]["n_versions"]) == ("one", 2)


def test_a_backup_holds_the_runs_and_the_doctor_examines_them(
    asr: Run, store: Path, tmp_path: Path
) -> None:
    made(asr)
    asr("judge", "run", "one", "--cap-tokens", 10**7)
    assert "judge      1 runs" in asr("doctor").stdout
    (tmp_path / "backups").mkdir()
    kept = Path(json.loads(asr("backup", tmp_path / "backups", "--json").stdout)["backup"])
    (journal,) = kept.rglob("journal.jsonl")
    own = tmp_path / "s.judge" / "one-001" / "journal.jsonl"
    assert journal.read_bytes() == own.read_bytes()
    first, *rest = own.read_bytes().splitlines(keepends=True)
    own.write_bytes(first + b"{damaged\n" + b"".join(rest))
    found = asr("doctor", code=1)
    assert "problems with judge" in found.stderr
    assert f"{own}: damaged at byte {len(first)}" in found.stdout
    asr("restore", kept, "--replace")
    assert own.read_bytes() == journal.read_bytes()
