"""Judges that we run, on the Judge page: made, run, watched, compared, certified, in use."""

import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from streamlit.testing.v1 import AppTest

from app import session
from app.views.judge import runs as own_runs
from calibration.analyses.judging import runs, versions
from calibration.judging.budget import Cap, Prices
from calibration.judging.journal import RunProgress, write_progress
from calibration.judging.selection import DEVELOPMENT, split_of
from calibration.store import Store
from tests.analyses.worlds import World
from tests.app.conftest import OpenApp, figures, press, shown, texts
from tests.judging.scripted_server import ScriptedServer
from tests.judging.small_model import small_model
from tests.judging.test_judge_commands import knowing
from tests.store.builders import make_traces

# Runs of a judge from end to end, at a server with real sockets.
pytestmark = pytest.mark.long

KEY = "sk-marked-6a2d0b44"
PRICES = Prices(input=2.0, output=8.0)


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> Iterator[ScriptedServer]:
    monkeypatch.setenv("ASR_JUDGE_KEY", KEY)
    with ScriptedServer(small_model(knowing), api_key=KEY) as serving:
        monkeypatch.setenv("ASR_JUDGE_URL", serving.url)
        yield serving


@pytest.fixture
def store(store_file: Path) -> Path:
    """Return a store with eight traces, of which four are in a batch."""
    with Store.open(store_file, create=True) as made:
        done = made.ingest(make_traces(8))
        made.add_reviewer("Lea", role="lead")
        made.add_batch(purpose="production", trace_ids=done.imported[2:6])
    return store_file


def make(path: Path, server: ScriptedServer, *names: str, prices: Prices | None = PRICES) -> None:
    with Store.open(path) as made:
        for number, name in enumerate(names):
            versions.make_judge(
                made, name, model="m", address=server.url, prices=prices,
                settings={"samples": number + 1},
            )  # fmt: skip


def judge_here(path: Path, name: str, chosen: runs.Chosen, cap: Cap | None = None) -> Path:
    """Run a judge in this process."""
    with Store.open(path) as made:
        folder = runs.plan(made, name, chosen, cap=cap or Cap(tokens=10**9))
    runs.work(path, folder, key=KEY, write=lambda: Store.open(path))
    return folder


def view(app: AppTest, name: str) -> AppTest:
    app.session_state["judge_own"] = True
    app.session_state["judge_own_view"] = name
    return shown(app.run())


def test_a_judge_is_made_and_its_key_is_nowhere(
    store: Path, server: ScriptedServer, open_app: OpenApp
) -> None:
    app = open_app("judge", reviewer="lea")
    assert "ASR_JUDGE_KEY is set where the app runs." in texts(app)
    app.text_input(key="judge_own_new_name").set_value("strict")
    app.text_input(key="judge_own_new_model").set_value("m")
    assert app.selectbox(key="judge_own_new_address").value == server.url
    app.number_input(key="judge_own_new_price_in").set_value(2.0)
    make_it = next(b for b in app.button if b.label == "Make this judge")
    shown(make_it.click().run())
    assert "No judge was made. Give the prices of both input and output." in texts(app)
    app.number_input(key="judge_own_new_price_out").set_value(8.0)
    next(b for b in app.button if b.label == "Make this judge").click().run()
    app = shown(app)
    assert "m, 3 samples of each trace." in texts(app)
    press(app, "judge_own_go_run")
    assert app.selectbox(key="judge_own_run_judge").value == "strict"
    assert KEY not in repr(list(app.main))
    made = session.open_store(store)
    entry = versions.entry_of(made.judge("strict"))
    assert (entry.prices, made.judges()[0].created_by) == (PRICES, "lea")


def test_a_refusal_is_a_sentence(
    store: Path, server: ScriptedServer, open_app: OpenApp, monkeypatch: pytest.MonkeyPatch
) -> None:
    server.api_key = "another"
    monkeypatch.setenv("ASR_JUDGE_URL", f"ftp://x, http://[x/v1, {server.url},")
    app = open_app("judge", reviewer="lea")
    app.text_input(key="judge_own_new_name").set_value("strict")
    for address, model, words in (
        (server.url, "", "Give the model and the address"),
        ("ftp://x", "m", "must begin with https:// or http://"),
        ("http://[x/v1", "m", "No judge was made."),
        (server.url, "m", "the endpoint refuses"),
    ):
        app.text_input(key="judge_own_new_model").set_value(model)
        app.selectbox(key="judge_own_new_address").set_value(address)
        shown(next(b for b in app.button if b.label == "Make this judge").click().run())
        assert words.lower() in texts(app).lower()
        assert KEY not in texts(app)
    assert session.open_store(store).judges() == []


def test_without_a_key_the_page_says_so(
    store: Path, open_app: OpenApp, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ASR_JUDGE_URL", "https://api.example.org/v1")
    app = open_app("judge", reviewer="lea")
    assert "ASR_JUDGE_KEY is not set where the app runs." in texts(app)


def test_the_key_goes_to_no_address_but_those_of_the_server(
    store: Path, server: ScriptedServer, open_app: OpenApp, monkeypatch: pytest.MonkeyPatch
) -> None:
    make(store, server, "strict")
    with Store.open(store) as made:
        folder = runs.plan(made, "strict", runs.Chosen(), cap=Cap(tokens=10**9))
    asked = len(server.ledger.entries)
    monkeypatch.setenv("ASR_JUDGE_URL", "https://api.example.org/v1")
    app = view(open_app("judge", reviewer="lea"), "Run")
    press(app, "judge_own_start_strict-001")
    assert "is not in ASR_JUDGE_URL where the app runs" in texts(app)
    assert not (folder / "worker.log").exists()
    view(app, "New judge")
    assert app.selectbox(key="judge_own_new_address").options == ["https://api.example.org/v1"]
    monkeypatch.delenv("ASR_JUDGE_URL")
    view(app, "New judge")
    assert "ASR_JUDGE_URL is not set where the app runs." in texts(app)
    assert "Make this judge" not in [button.label for button in app.button]
    assert len(server.ledger.entries) == asked


def test_a_dry_run_says_what_it_costs_and_starts_a_worker(
    store: Path, server: ScriptedServer, open_app: OpenApp, monkeypatch: pytest.MonkeyPatch
) -> None:
    make(store, server, "strict")
    started: list[Path] = []
    monkeypatch.setattr(own_runs, "start_worker", lambda path, folder: started.append(folder))
    app = view(open_app("judge", reviewer="lea"), "Run")
    app.selectbox(key="judge_own_run_traces").set_value("batch production-001")
    app.number_input(key="judge_own_run_limit").set_value(3)
    shown(next(b for b in app.button if b.label == "Dry run").click().run())
    assert "13 traces, 1 sample each. Nothing was sent." in texts(app)
    assert "13 requests, about $" in texts(app)
    cap = app.number_input(key="judge_own_cap_usd").value
    press(app, "judge_own_start")
    state = runs.run_state(started[0])
    assert (state.cap.usd, state.n_traces, state.chosen.limit) == (cap, 13, 3)
    assert "Run strict-001 of judge strict has not started." in texts(app)
    # It is in the snapshot that a worker reads.
    with Store.open_to_read(store)[0] as read:
        assert read.judge("strict").judge_id == "strict"


STATES = {
    "running": ("is running", ["Pause", "Stop"]),
    "paused": ("No request leaves until it is resumed.", ["Resume", "Stop"]),
    "dead": ("has a worker that shows no sign of life", ["Resume"]),
    "capped": ("Start another run with a higher cap", []),
    "failed": ("Correct what it names, then resume it.", ["Resume"]),
    "finished": ("has finished", []),
}


def test_a_run_shows_its_state_and_what_can_be_done(
    store: Path, server: ScriptedServer, open_app: OpenApp
) -> None:
    make(store, server, "strict")
    with Store.open(store) as made:
        folder = runs.plan(made, "strict", runs.Chosen(), cap=Cap(usd=5.0))
    progress = RunProgress(
        state="running", total=8, verdicts=2, pending=6, in_doubt=1, spent_usd=1.5,
        possible_usd=0.2, possible_tokens=9, eta_s=600.0, last_answer_at=time.time() - 20,
        causes={"throttled: 429": 3}, no_verdict={"form": 1},
    )  # fmt: skip
    for state, (words, buttons) in STATES.items():
        beat = 0.0 if state == "dead" else time.time()
        kept = "running" if state == "dead" else state
        write_progress(folder, replace(progress, state=kept, heartbeat=beat))
        app = view(open_app("judge", reviewer="lea"), "Run")
        said = texts(app)
        assert words in said
        assert "Samples without a verdict: form: 1" in said
        assert [b.label for b in app.button if b.label in ("Pause", "Resume", "Stop")] == buttons
        found = figures(app)
        assert (found["Samples judged"], found["Spent, of the cap"]) == ("2 of 8", "$1.50 of $5.00")
        assert ("Time left" in found) == (state in ("running", "paused"))
        if state == "running":
            press(app, "judge_own_pause_strict-001")
            assert (folder / "control").read_text() == "pause"
            assert "The worker was asked to pause." in texts(app)
    assert "strict has finished" in next(e.label for e in app.expander if "own" in str(e.key))


def test_a_run_that_cannot_go_on_is_closed(
    store: Path, server: ScriptedServer, open_app: OpenApp
) -> None:
    make(store, server, "strict")
    with Store.open(store) as made:
        folder = runs.plan(made, "strict", runs.Chosen(), cap=Cap(usd=5.0))
    write_progress(folder, RunProgress(state="incomplete", total=8, heartbeat=time.time()))
    app = view(open_app("judge", reviewer="lea"), "Run")
    press(app, "judge_own_close_strict-001")
    assert "18 of 18 traces have no verdict now, cause: outage." in texts(app)
    frame = session.open_store(store).verdict_frame("strict")
    assert len(frame) == 18
    assert set(frame["cause"]) == {"outage"}
    assert '"closed"' in (folder / "journal.jsonl").read_text()


def test_two_judges_are_compared_with_both_reasons_and_a_look_is_kept(
    store: Path, server: ScriptedServer, open_app: OpenApp
) -> None:
    make(store, server, "strict", "other")
    for name in ("strict", "other"):
        judge_here(store, name, runs.Chosen(form="exam_a"))
    judge_here(store, "strict", runs.Chosen(form="exam_b"))
    app = view(open_app("judge", reviewer="lea"), "Compare")
    said = texts(app)
    assert "70 labelled traces of exam A that both judged." in said
    app.session_state["judge_own_scores"] = True
    assert "corrected for choosing among 2" in texts(shown(app.run()))
    view(app, "Certificate")
    press(app, "judge_own_floor")
    assert "No look yet. The first one certifies." in texts(app)
    assert app.button(key="judge_own_look").disabled
    app.number_input(key="judge_own_minimum").set_value(0.6).run()
    press(app, "judge_own_look")
    assert "Judge strict is certified" in texts(app)
    assert "1 look so far. The next one is exploratory" in texts(app)
    press(app, "judge_own_look")
    assert "No certificate" in texts(app)
    assert [look.created_by for look in session.open_store(store).looks("strict", "exam_b")] == [
        "lea", "lea",
    ]  # fmt: skip
    view(app, "Judges")
    press(app, "judge_own_use_1")
    assert session.open_store(store).judge_in_use() == "strict"
    assert "Results take judge strict where none is named." in texts(app)


def test_a_worker_of_its_own_brings_verdicts_into_the_app(
    store: Path, server: ScriptedServer, open_app: OpenApp
) -> None:
    make(store, server, "strict")
    app = view(open_app("judge", reviewer="lea"), "Run")
    app.selectbox(key="judge_own_run_traces").set_value("production, all 8 traces")
    shown(next(b for b in app.button if b.label == "Dry run").click().run())
    press(app, "judge_own_start")
    assert "is starting" in texts(app) or "is running" in texts(app)
    folder = runs.runs_folder(store) / "strict-001"
    until = time.monotonic() + 60
    while runs.run_state(folder).is_working or not (folder / "progress.json").exists():
        assert time.monotonic() < until, (folder / "worker.log").read_text()
        time.sleep(0.2)
    assert (folder / "worker.log").stat().st_mode & 0o777 == 0o600
    view(app, "Run")
    assert "Run strict-001 of judge strict has finished." in texts(app)
    assert len(session.open_store(store).verdict_frame("strict")) == 18


def test_on_a_batch_the_traces_that_differ_lead_to_their_pages(
    store: Path, server: ScriptedServer, open_app: OpenApp
) -> None:
    make(store, server, "strict")
    judge_here(store, "strict", runs.Chosen(batch="production-001"))
    with Store.open(store) as made:
        ids = sorted(made.batch_items("production-001")["trace_id"])
        outcomes = made.verdict_frame("strict").set_index("trace_id")["outcome"]
        world = World(store=made, batch_id="production-001", drawn=tuple(ids))
        world.label("Ann", {trace_id: str(outcomes[trace_id]) for trace_id in ids})
        keys = made.production_traces().set_index("trace_id")["task_key"]
        own = [t for t in ids if split_of(str(keys[t])) == DEVELOPMENT]
        other = {t: "abandoned" if outcomes[t] != "abandoned" else "complete" for t in own}
        world.judge({t: str(outcomes[t]) for t in ids} | other, "other")
    app = view(open_app("judge", reviewer="lea", judge="strict"), "Compare")
    app.selectbox(key="judge_own_first").set_value("strict").run()
    app.selectbox(key="judge_own_second").set_value("other").run()
    shown(app.selectbox(key="judge_own_on").set_value("production-001").run())
    assert "no longer enter the corrected rate of either judge. Exam A costs none." in texts(app)
    assert session.open_store(store).spent_batches("strict") == []
    press(app, "judge_own_spend")
    assert "2 labelled traces of the development tasks of production-001" in texts(app)
    assert session.open_store(store).spent_batches("other") == ["production-001"]
    (flips,) = [f.value for f in app.dataframe if "first_reason" in f.value.columns]
    assert sorted(flips["trace"]) == own
    assert list(flips["first_reason"]) == ["Because."] * 2
    seen = session.open_store(store).exposure_frame()
    assert {"labels", "verdicts"} <= set(seen[seen["trace_id"] == own[0]]["what"])
