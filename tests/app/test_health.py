"""What watches the server is told, and what it is not."""

import json
import logging
from pathlib import Path
from typing import Any

import pytest
from starlette.applications import Starlette
from starlette.middleware import Middleware

from app import session
from app.access import health
from app.access.door import Door
from app.access.sign_in import ROUTES
from calibration.store import Store, sign_in
from tests.app import test_sign_in
from tests.app.test_sign_in import GOOD, OTHER, ask, sign
from tests.stores import hashing_quickly

TOKEN = "a token of the monitoring"


@pytest.fixture
def served(store_file: Path, monkeypatch: pytest.MonkeyPatch) -> Store:
    app = Starlette(
        routes=[*health.ROUTES, *ROUTES], middleware=[Middleware(health.Watch), Middleware(Door)]
    )
    monkeypatch.setattr(test_sign_in, "APP", app)
    monkeypatch.setattr(health, "MEASURED", health.Measured())
    monkeypatch.setattr(sign_in, "DEFAULT", sign_in.PASSPHRASE)
    Store.open(store_file, create=True).close()
    store = hashing_quickly(session.open_store(store_file))
    store.add_reviewer("Ada", role="admin")
    store.set_passphrase("ada", GOOD)
    return store


def test_alive_and_ready_until_the_store_is_replaced(served: Store, store_file: Path) -> None:
    stranger: dict[str, Any] = {"client": "192.0.2.7", "host": "asr.example"}
    for path in ("/healthz", "/readyz"):
        assert (ask("GET", path, **stranger).status, ask("GET", path).body) == (200, "ok")
    other = store_file.with_name("other")
    other.write_bytes(store_file.read_bytes())
    other.replace(store_file)
    for path in ("/healthz", "/readyz"):
        answer = ask("GET", path, **stranger)
        assert (answer.status, "replaced" in answer.body) == (503, True)
        assert str(store_file.parent) not in answer.body
    store_file.unlink()
    assert [ask("GET", path).status for path in ("/healthz", "/readyz")] == [503, 503]


def test_before_there_is_a_store_the_server_is_alive(store_file: Path) -> None:
    assert health.is_in_place(None)
    assert health.troubles() == []


def test_a_full_disk_is_not_ready(served: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(health, "LITTLE_DISK", 1 << 70)
    answer = ask("GET", "/readyz")
    assert (answer.status, answer.body) == (503, "disk: less than 100 MB are free")
    assert ask("GET", "/healthz").status == 200


def test_figures_are_for_the_token(served: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    assert ask("GET", "/metrics", authorization="Bearer ").status == 404
    monkeypatch.setenv(health.METRICS_TOKEN, TOKEN)
    for sent in ("", "Bearer", "Bearer x", f"Bearer {TOKEN}x"):
        assert ask("GET", "/metrics", authorization=sent).status == 401
    sign(passphrase=OTHER)
    answer = ask("GET", "/metrics", authorization=f"Bearer {TOKEN}")
    found = dict(line.rsplit(" ", 1) for line in answer.body.splitlines())
    assert found['asr_http_responses_total{status="4xx"}'] == "6"
    assert found["asr_http_response_seconds_count"] == "6"
    assert found['asr_http_response_seconds_bucket{le="+Inf"}'] == "6"
    assert found["asr_sign_ins_refused_total"] == "1"
    assert (found["asr_labels"], found["asr_traces"], found["asr_ready"]) == ("0", "0", "1")
    assert int(found["asr_resident_memory_bytes"]) > 10_000_000


def test_the_log_says_who_signed_in_and_holds_no_secret(
    served: Store, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(health.LOG, "propagate", False)
    monkeypatch.setattr(health.LOG, "handlers", [caplog.handler])
    caplog.set_level(logging.INFO, health.LOG.name)
    token = sign().cookie
    sign(passphrase=OTHER)
    ask("GET", "/_stcore/stream", kind="websocket", cookie="x")
    ask("PUT", "/a\nb" + "x" * 200, b"text of a trace", origin="http://evil.test", cookie=token)
    monkeypatch.setattr(health, "SLOW_S", -1.0)
    ask("GET", "/sign-in")
    lines = [health.Lines(as_json=True).format(record) for record in caplog.records
             if record.name == health.LOG.name]  # fmt: skip
    told = [json.loads(line) for line in lines]
    assert [(t["what"], t["status"]) for t in told] == [
        ("signed in", 303), ("sign-in refused", 403), ("refused", 403), ("refused", 403),
        ("slow", 200),
    ]  # fmt: skip
    assert told[0]["from"] == "127.0.0.1"
    assert len(told[3]["path"]) == 80
    plain = [health.Lines(as_json=False).format(record) for record in caplog.records]
    for line in [*lines, *plain]:
        assert not any(secret in line for secret in (GOOD, OTHER, token, "text of a trace", "\n"))
