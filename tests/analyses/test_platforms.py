"""Pulls and pushes against a server with the shapes that the platforms document."""

import json
import random
import ssl
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from datetime import timedelta
from functools import cache
from pathlib import Path
from typing import Any

import jsonschema
import pytest

from calibration.analyses.platform_api import PLATFORMS
from calibration.analyses.platform_scores import AS_SCORE, PlatformScore
from calibration.analyses.platform_transfer import (
    Pulled,
    PullOptions,
    folder_of,
    imported,
    moment_of,
    pull,
    push,
)
from calibration.analyses.trace_files import read_files
from calibration.errors import CalibrationError, InputError, PlatformError
from calibration.judging.pace import RunClock
from calibration.records import Trace
from calibration.taxonomy import default_taxonomy
from calibration.trace_formats import ImportSettings
from tests.platform_server import BEGUN, KEY, NOW, PUBLIC, SECRET, PlatformServer, Rule, Run, runs
from tests.trace_formats.conftest import runs_of

ALL = list(PLATFORMS)
FAST = 10_000.0
OPTIONS = ("since", "limit", "again", "project", "store_id")


@pytest.fixture(autouse=True, scope="module")
def _one_context() -> Iterator[None]:
    """Read the certificates of the system once, and not for every client."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(ssl, "create_default_context", cache(ssl.create_default_context))
        yield


def pulled(name: str, server: PlatformServer, store: Path, **given: Any) -> Pulled:
    options = PullOptions(
        **{
            "since": "30d",
            "store_id": "s",
            "project": None if name == "langfuse" else server.env[PLATFORMS[name].projects],
            **{key: given.pop(key) for key in OPTIONS if key in given},
        }
    )
    platform = PLATFORMS[name]
    access = platform.access(server.env)
    clock = RunClock(scale=FAST)
    return pull(platform, access, store, options, clock=clock, now=NOW, **given)


def traces(found: Pulled) -> dict[str, Trace]:
    read = read_files(found.files, ImportSettings()) if found.files else None
    taken = [] if read is None else [run.trace for run in runs_of(read)]
    assert read is None or read.set_aside == ()
    assert len({trace.source_id for trace in taken}) == len(taken)
    return {trace.source_id: trace for trace in taken}


def ids(name: str, of: list[Run]) -> set[str]:
    return {run.uuid if name == "langsmith" else run.hex for run in of}


@pytest.mark.parametrize("old", [False, True])
@pytest.mark.parametrize("name", ALL)
def test_what_is_pulled_is_read_by_the_importers(name: str, old: bool, tmp_path: Path) -> None:
    with PlatformServer(runs(7), page=3, old=old, scored=(2,)) as server:
        if name == "phoenix" and old:
            with pytest.raises(PlatformError, match=r"13\.15 or later"):
                pulled(name, server, tmp_path / "s.duckdb")
            return
        found = traces(pulled(name, server, tmp_path / "s.duckdb"))
    assert set(found) == ids(name, runs(7))
    (trace,) = (t for t in found.values() if t.task_id == "refund-3")
    assert (trace.source, trace.prompt, trace.response) == (
        name, "Refund order 3, please.", "Order 3 is refunded.",
    )  # fmt: skip
    assert (trace.workflow, trace.cost_usd, trace.latency_s) == ("refunds", 0.002, 4.0)
    assert (trace.started_at, trace.model) == (BEGUN + timedelta(minutes=3), "m-1")
    assert trace.total_tokens == 120


@pytest.mark.parametrize("name", ALL)
def test_scores_come_with_their_traces(name: str, tmp_path: Path) -> None:
    with PlatformServer(runs(3), scored=(1,)) as server:
        read = read_files(pulled(name, server, tmp_path / "s.duckdb").files, ImportSettings())
    graded = {
        run.trace.task_id: verdict
        for run in runs_of(read)
        for verdict in read.rules.verdicts(run.trace.trace_id, run.grades)
    }
    assert set(graded) == {"refund-1"}
    assert graded["refund-1"].judge_id == f"source:{name}"
    assert graded["refund-1"].outcome == default_taxonomy().success


@pytest.mark.parametrize("name", ALL)
def test_a_pull_that_is_cut_off_anywhere_has_no_trace_twice_and_none_missing(
    name: str, tmp_path: Path
) -> None:
    store, rng = tmp_path / "s.duckdb", random.Random(25)
    with PlatformServer(runs(9), page=2, scored=(0, 4)) as server:
        undisturbed = traces(pulled(name, server, tmp_path / "calm.duckdb"))
        calm = len(server.received.requests)
        cuts = 0
        while True:
            left = rng.randint(1, 6)

            def cut(_: str) -> None:
                nonlocal left
                left -= 1
                if not left:
                    raise KeyboardInterrupt

            try:
                found = pulled(name, server, store, told=cut)
            except KeyboardInterrupt:
                cuts += 1
                continue
            break
        assert cuts > 2
        assert found.resumed
        assert traces(found) == undisturbed
        # Little was asked for again.
        assert len(server.received.requests) < 2 * calm + 4 * cuts
        imported(found, "s")
        assert not any(found.folder.glob("page-*"))


@pytest.mark.parametrize("name", ALL)
def test_a_pull_reads_what_is_new(name: str, tmp_path: Path) -> None:
    store = tmp_path / "s.duckdb"
    with PlatformServer(runs(5)) as server:
        first = pulled(name, server, store, limit=3)
        newest = ids(name, runs(5)[2:])
        assert (set(traces(first)), first.more) == (newest, True)
        imported(first, "s")
        second = pulled(name, server, store, known=newest)
        assert (set(traces(second)), second.more) == (ids(name, runs(2)), False)
        imported(second, "s")
        before = len(server.received.requests)
        third = pulled(name, server, store, known=ids(name, runs(5)), since=None)
        assert (third.traces, third.files) == (0, ())
        assert third.since == second.until - timedelta(hours=1)
        assert len(server.received.requests) - before <= 2  # the list, and the project
        again = pulled(name, server, store, known=ids(name, runs(5)), again=True)
        assert again.traces == 5
        # Another store at the same place has none of them.
        other = pulled(name, server, store, since=None, store_id="other")
        assert (other.traces, other.since) == (5, NOW - timedelta(days=7))


@pytest.mark.parametrize("name", ALL)
def test_only_the_window_is_read(name: str, tmp_path: Path) -> None:
    recent = NOW - timedelta(minutes=5)
    with PlatformServer([*runs(3), Run(7, recent), Run(8, BEGUN - timedelta(days=90))]) as server:
        found = pulled(name, server, tmp_path / "s.duckdb")
        assert set(traces(found)) == ids(name, runs(3))


def failing(*statuses: tuple[int, Mapping[str, str]], first: int = 2) -> Rule:
    def rule(number: int, path: str, attempt: int) -> tuple[int, Mapping[str, str], str] | None:
        place = number - first
        if 0 <= place < len(statuses):
            return *statuses[place], "{}"
        return None

    return rule


@pytest.mark.parametrize("name", ALL)
def test_busy_and_failing_answers_are_asked_again(name: str, tmp_path: Path) -> None:
    rule = failing((429, {"retry-after": "3"}), (503, {}), (502, {}), (429, {}))
    told: list[str] = []
    with PlatformServer(runs(4), rule=rule) as server:
        found = pulled(name, server, tmp_path / "s.duckdb", told=told.append)
        assert set(traces(found)) == ids(name, runs(4))
    assert any("busy, waiting 3 s" in words for words in told)


KEYS = {
    "langfuse": "LANGFUSE_PUBLIC_KEY and LANGFUSE_SECRET_KEY",
    "langsmith": "LANGSMITH_API_KEY",
    "phoenix": "PHOENIX_API_KEY",
}
HOSTS = {
    "langfuse": "LANGFUSE_BASE_URL",
    "langsmith": "LANGSMITH_ENDPOINT",
    "phoenix": "PHOENIX_COLLECTOR_ENDPOINT",
}


@pytest.mark.parametrize(
    ("status", "headers", "said"),
    [
        (401, {}, "401: the key is not accepted.*{keys}"),
        (403, {}, "403: the key does not permit this.*{keys}"),
        (301, {"location": "https://elsewhere.example"}, "it redirects; set {hosts}"),
        (429, {"retry-after": "5000"}, "too many requests, asks to wait 5000 s.*goes on from here"),
        (503, {}, "503: failed 7 times.*goes on from here"),
        (400, {}, "400: the request is refused"),
        (418, {}, "418: the request is refused"),
    ],
)
@pytest.mark.parametrize("name", ALL)
def test_what_an_error_says(
    name: str, status: int, headers: Mapping[str, str], said: str, tmp_path: Path
) -> None:
    with PlatformServer(runs(2), rule=lambda n, path, a: (status, headers, "{}")) as server:
        match = said.format(keys=KEYS[name], hosts=HOSTS[name])
        with pytest.raises(PlatformError, match=match):
            pulled(name, server, tmp_path / "s.duckdb")


@pytest.mark.parametrize("name", ALL)
def test_a_wrong_address_is_named(name: str, tmp_path: Path) -> None:
    with PlatformServer([], rule=lambda n, p, a: (200, {}, "<html>Sign in</html>")) as server:
        with pytest.raises(PlatformError, match=f"is {HOSTS[name]} the address of the API"):
            pulled(name, server, tmp_path / "s.duckdb")
    with pytest.raises(PlatformError, match=f"cannot be reached.*{HOSTS[name]}"):
        pulled(name, server, tmp_path / "s.duckdb")


@pytest.mark.parametrize("name", ["langsmith", "phoenix"])
def test_a_project_that_is_not_there_is_named(name: str, tmp_path: Path) -> None:
    with PlatformServer(runs(2)) as server, pytest.raises(InputError, match=r"no project 'nix'"):
        pulled(name, server, tmp_path / "s.duckdb", project="nix")


@pytest.mark.parametrize("name", ["langfuse", "langsmith"])
def test_a_missing_key_is_named(name: str) -> None:
    with pytest.raises(InputError, match=f"set {KEYS[name]} in the environment"):
        PLATFORMS[name].access({})


@pytest.mark.parametrize("name", ALL)
def test_a_key_is_in_no_message_and_no_file(name: str, tmp_path: Path) -> None:
    def rule(number: int, path: str, attempt: int) -> tuple[int, Mapping[str, str], str] | None:
        if number < 4:
            return None
        return 401, {}, json.dumps({"message": f"wrong: {SECRET} {KEY}"})

    with PlatformServer(runs(5), page=1, rule=rule) as server:
        with pytest.raises(PlatformError) as refused:
            pulled(name, server, tmp_path / "s.duckdb")
        assert server.received.headers
    secret = SECRET if name == "langfuse" else KEY
    assert secret not in str(refused.value)
    files = [path for path in tmp_path.rglob("*") if path.is_file()]
    assert files
    assert not any(secret.encode() in path.read_bytes() for path in files)
    assert all(path.stat().st_mode & 0o077 == 0 for path in files)


def test_a_page_that_is_too_large_is_asked_for_in_parts(tmp_path: Path) -> None:
    with PlatformServer(runs(2)) as server:

        def rule(number: int, path: str, attempt: int) -> tuple[int, Mapping[str, str], str] | None:
            asked = server.received.requests[-1][1]
            return (413, {}, "{}") if "traceId" in asked and "limit=100" in asked else None

        server.rule = rule
        found = pulled("langfuse", server, tmp_path / "s.duckdb")
        assert set(traces(found)) == ids("langfuse", runs(2))
        assert any("limit=50" in path for _, path in server.received.requests)


def test_an_expired_cursor_begins_its_batch_anew(tmp_path: Path) -> None:
    store = tmp_path / "s.duckdb"
    with PlatformServer(runs(3), page=1) as server:
        expected = traces(pulled("langfuse", server, tmp_path / "calm.duckdb"))
        told = 0

        def cut(words: str) -> None:
            nonlocal told
            told += 1
            if told == 4:  # in the middle of the second trace
                raise KeyboardInterrupt

        with pytest.raises(KeyboardInterrupt):
            pulled("langfuse", server, store, told=cut)
        (folder,) = store.with_suffix(".platforms").iterdir()
        assert json.loads((folder / "place.json").read_text())["cursor"] is not None
        count = len(server.received.requests)
        server.rule = lambda number, path, attempt: (422, {}, "{}") if number == count + 1 else None
        found = pulled("langfuse", server, store)
        assert found.resumed
        assert traces(found) == expected


def test_a_pull_with_other_options_begins_anew(tmp_path: Path) -> None:
    store = tmp_path / "s.duckdb"

    def cut(words: str) -> None:
        if words.startswith("Reading: 2"):
            raise KeyboardInterrupt

    with PlatformServer(runs(5)) as server:
        with pytest.raises(KeyboardInterrupt):
            pulled("langfuse", server, store, told=cut)
        found = pulled("langfuse", server, store, limit=2)
        assert not found.resumed
        assert set(traces(found)) == ids("langfuse", runs(5)[3:])


def test_traces_that_are_gone_are_counted(tmp_path: Path) -> None:
    with PlatformServer(runs(4), old=True) as server:
        server.rule = lambda n, path, a: (404, {}, "{}") if path.endswith(runs(4)[1].hex) else None
        found = pulled("langfuse", server, tmp_path / "s.duckdb")
    assert (found.gone, len(traces(found))) == (1, 3)


def test_nothing_but_reading_requests_is_sent(tmp_path: Path) -> None:
    for name in ALL:
        with PlatformServer(runs(3), scored=(1,)) as server:
            pulled(name, server, tmp_path / f"{name}.duckdb")
            for method, path in server.received.requests:
                assert method == "GET" or path.endswith("/runs/query")
            assert server.received.scores == {}


@pytest.mark.parametrize("text", ["yesterday", "0d", "7", "2026-13-01", "7y", ""])
def test_a_time_that_is_none_is_refused(text: str) -> None:
    with pytest.raises(InputError, match="must be a date"):
        moment_of(text, NOW)


def test_a_window_without_a_moment_is_refused(tmp_path: Path) -> None:
    with PlatformServer([]) as server, pytest.raises(InputError, match="must be before"):
        pulled("langfuse", server, tmp_path / "s.duckdb", since="2027-01-01")


# The documented shapes of what is sent, docs/coming-from.md names the pages.
TEXT = {"type": "string", "minLength": 1}
UUID = {"type": "string", "pattern": "^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$"}
OPEN = {"type": "object"}
SCHEMAS: dict[str, Any] = {
    "langfuse": {
        "type": "object",
        "properties": {
            "id": TEXT, "traceId": TEXT, "sessionId": TEXT, "observationId": TEXT,
            "datasetRunId": TEXT, "name": TEXT, "value": {"type": ["string", "number"]},
            "comment": TEXT, "metadata": OPEN, "environment": TEXT, "queueId": TEXT,
            "dataType": {"enum": ["NUMERIC", "BOOLEAN", "CATEGORICAL", "TEXT"]},
            "configId": TEXT, "source": {"enum": ["API", "ANNOTATION"]},
        },
        "required": ["name", "value"],
        "if": {"properties": {"dataType": {"const": "CATEGORICAL"}}},
        "then": {"properties": {"value": {"type": "string"}}},
        "additionalProperties": False,
    },
    "langsmith": {
        "type": "object",
        "properties": {
            "id": UUID, "run_id": TEXT, "trace_id": TEXT, "session_id": UUID,
            "start_time": TEXT, "key": TEXT | {"maxLength": 180},
            "score": {"type": ["number", "boolean"]}, "value": {}, "comment": TEXT,
            "correction": {}, "created_at": TEXT, "modified_at": TEXT, "error": {},
            "feedback_group_id": UUID, "comparative_experiment_id": UUID, "feedback_config": OPEN,
            "feedback_source": {
                "type": "object",
                "properties": {
                    "type": {"enum": ["app", "api", "model", "auto_eval"]}, "metadata": OPEN,
                },
                "required": ["type"],
            },
        },
        "required": ["key"],
        "additionalProperties": False,
    },
    "phoenix": {
        "type": "object",
        "properties": {
            "name": TEXT, "annotator_kind": {"enum": ["LLM", "CODE", "HUMAN"]}, "trace_id": TEXT,
            "result": {
                "type": "object",
                "properties": {
                    "label": {"type": ["string", "null"]}, "score": {"type": ["number", "null"]},
                    "explanation": {"type": ["string", "null"]},
                },
                "additionalProperties": False,
            },
            "metadata": OPEN, "identifier": {"type": "string"},
        },
        "required": ["name", "annotator_kind", "trace_id"],
        "additionalProperties": False,
    },
}  # fmt: skip


def scores(name: str, n: int) -> list[PlatformScore]:
    rules = default_taxonomy()
    return [
        PlatformScore(
            trace_id=f"t{run.number}", source_id=run.uuid if name == "langsmith" else run.hex,
            name="asr-calibration/consensus", outcome=rules.success, credit=1.0,
            taxonomy=rules.version, by_people=True, batch_id="production-001", labels=2,
            project_id=run.uuid if name == "langsmith" else "",
        )
        for run in runs(n)
    ]  # fmt: skip


@pytest.mark.parametrize("name", ALL)
def test_payloads_have_the_documented_shape(name: str) -> None:
    by_judge = replace(
        scores(name, 1)[0],
        by_people=False,
        judge_id="j",
        batch_id="",
        name="asr-calibration/judge/j",
    )
    for score in (*scores(name, 2), by_judge):
        jsonschema.validate(AS_SCORE[name](score), SCHEMAS[name])


Push = Callable[..., Any]


@pytest.fixture
def pushed(tmp_path: Path) -> Push:
    def run(name: str, server: PlatformServer, given: list[PlatformScore], **more: Any) -> Any:
        platform = PLATFORMS[name]
        access = platform.access(server.env)
        clock = RunClock(scale=FAST)
        return push(platform, access, tmp_path / "s.duckdb", given, clock=clock, **more)

    return run


@pytest.mark.parametrize("name", ALL)
def test_a_second_push_changes_nothing(name: str, pushed: Push, tmp_path: Path) -> None:
    given = scores(name, 5)
    with PlatformServer(runs(5)) as server:
        first = pushed(name, server, given)
        assert (first.sent, first.sent_before, first.gone) == (5, 0, 0)
        asked = len(server.received.requests)
        second = pushed(name, server, given)
        assert (second.sent, second.sent_before) == (0, 5)
        assert len(server.received.requests) == asked
        # Also where nothing is known of the first one.
        folder = folder_of(tmp_path / "s.duckdb", name, PLATFORMS[name].access(server.env), None)
        (folder / "sent.jsonl").unlink()
        assert pushed(name, server, given).sent == 5
        assert (len(server.received.scores), server.received.changed) == (5, 5)
        # A class that has changed takes the place of the one before.
        other = replace(given[0], outcome=default_taxonomy().failed_check, credit=0.0)
        assert pushed(name, server, [other, *given[1:]]).sent == 1
        assert len(server.received.scores) == 5


@pytest.mark.parametrize("name", ALL)
def test_a_push_that_is_cut_off_goes_on(name: str, pushed: Push) -> None:
    given = scores(name, 6)

    def cut(words: str) -> None:
        if words.startswith("Sending: 4"):
            raise KeyboardInterrupt

    with PlatformServer(runs(6)) as server:
        with pytest.raises(KeyboardInterrupt):
            pushed(name, server, given, told=cut)
        assert len(server.received.scores) == 3
        done = pushed(name, server, given)
        assert (done.sent, done.sent_before) == (3, 3)


def test_a_score_of_a_trace_that_is_gone_stops_no_push(pushed: Push) -> None:
    with PlatformServer(runs(2)) as server:
        done = pushed("phoenix", server, scores("phoenix", 4))
    assert (done.sent, done.gone) == (2, 2)


@pytest.mark.parametrize("name", ALL)
def test_own_scores_are_none_of_the_source_when_they_come_back(name: str, tmp_path: Path) -> None:
    """A label that returned as a verdict would make a judge that always agrees with people."""
    with PlatformServer(runs(1)) as server:
        found = pulled(name, server, tmp_path / "s.duckdb")
        payload = AS_SCORE[name](scores(name, 1)[0])
        file = tmp_path / "scores.json"
        about: dict[str, Any] = {"meta": {}} if name == "langfuse" else {}
        listed = [payload] if name == "langsmith" else {"data": [payload], **about}
        file.write_text(json.dumps(listed))
        read = read_files([*found.files, file], ImportSettings())
    (run,) = runs_of(read)
    assert read.set_aside == ()
    assert read.rules.verdicts(run.trace.trace_id, run.grades) == []
    assert run.grades.human == ()
    assert "asr-calibration" not in json.dumps(dict(run.trace.metadata))


def test_two_at_once_are_refused(tmp_path: Path) -> None:
    store = tmp_path / "s.duckdb"
    with PlatformServer(runs(2)) as server:

        def inner(_: str) -> None:
            with pytest.raises(CalibrationError, match="another pull or push"):
                pulled("langfuse", server, store)

        assert pulled("langfuse", server, store, told=inner).traces == 2


def test_the_folder_tells_projects_apart(tmp_path: Path) -> None:
    with PlatformServer([]) as server:
        access = PLATFORMS["langfuse"].access(server.env)
        other = PLATFORMS["langfuse"].access({**server.env, "LANGFUSE_PUBLIC_KEY": "pk-2"})
    folders = {folder_of(tmp_path / "s.duckdb", "langfuse", a, None) for a in (access, other)}
    assert len(folders) == 2
    assert PUBLIC not in str(folders)
