import json
import shutil
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from calibration.errors import TraceFormatError
from calibration.trace_formats import ImportSettings, Parsed, detect, read_traces
from tests.trace_formats.conftest import verdict_of


@pytest.fixture
def raw(fixtures: Path) -> Any:
    return json.loads((fixtures / "tau2.json").read_text())


@pytest.fixture
def runs(fixtures: Path, split: Any) -> list[Parsed]:
    return list(split(fixtures / "tau2.json")[0])


def test_every_field_of_a_simulation(runs: list[Parsed]) -> None:
    trace, verdict = runs[0].trace, verdict_of(runs[0])
    assert (trace.source, trace.source_id, trace.trial) == ("tau2", "sim-1", 0)
    assert (trace.workflow, trace.task_key) == ("kiosk", "tau2/kiosk/[a]|b")
    assert trace.prompt == (
        "Reason for the call\nYou want a snack.\n\nWhat the user knows\nYou are Bo.\n\n"
        "How the user behaves\nInsist twice.\n\nTicket\nCustomer Bo asks for a snack."
    )
    assert [(a.name, a.text) for a in trace.inputs] == [("Agent policy", "Sell tickets only.")]
    assert trace.success_criteria == (
        'Purpose: Checks a refusal.\nactions:\n- {"name": "refuse", "arguments": {}}\n'
        "nl_assertions:\n- The agent refuses.\nreward_basis:\n- DB"
    )
    assert (trace.cost_usd, trace.latency_s, trace.status) == (0.003, 9.0, "user_stop")
    assert (trace.model, trace.agent_version) == ("maker/model-x", "llm_agent@0123456789ab")
    assert trace.started_at == datetime(2026, 1, 10, 8, tzinfo=UTC)
    assert trace.response == "We sell tickets only."
    assert trace.metadata["user_cost"] == 0.5
    # 100 + 10 for the message with two calls, 200 + 20 for the answer; the user's 990 are not.
    assert trace.total_tokens == 330
    assert [s.tokens_in for s in trace.steps if s.tokens_in is not None] == [100, 200]
    assert trace.steps[-1].seconds == 1.5
    assert verdict is not None
    assert (verdict.judge_id, verdict.outcome) == ("source:tau2", "complete")
    assert verdict.reason == "reward 1; DB 1.0"


def test_steps_keep_whose_tool_it_was(runs: list[Parsed]) -> None:
    shown = [(s.role, s.tool, s.result, s.error, s.at) for s in runs[0].trace.steps]
    assert shown == [
        ("assistant", None, None, False, 0.5),
        ("user", None, None, False, 2.0),
        ("assistant", "stock", None, False, 4.0),
        ("assistant", "prices", None, False, 4.0),
        ("tool", "stock", "none", True, 4.0),
        ("tool", "prices", "[]", False, 4.0),
        ("user", "look_at_menu", None, False, 5.0),
        ("user", "look_at_menu", "tickets", False, 6.0),
        ("assistant", None, None, False, 8.0),
    ]


def test_missing_cost_stays_missing_and_a_missing_task_is_noted(
    runs: list[Parsed], write: Any, split: Any, raw: Any
) -> None:
    trace = runs[1].trace
    assert (trace.cost_usd, trace.response, trace.prompt) == (None, None, "Anyone there?")
    assert trace.metadata["task_missing"] is True
    assert trace.started_at == datetime(2026, 1, 10, 7, tzinfo=UTC)
    # Zero with tokens is an unknown price, and without them zero.
    assert runs[2].trace.cost_usd is None
    assert "price was not known" in str(runs[2].trace.metadata["cost_note"])
    raw["simulations"][1]["agent_cost"] = 0
    assert split(write("a.json", raw))[0][1].trace.cost_usd == 0.0


def test_runs_that_the_benchmark_leaves_out_have_no_class_and_voice_is_set_aside(
    fixtures: Path, split: Any
) -> None:
    path = fixtures / "tau2.json"
    runs, (aside,) = split(path)
    verdict = verdict_of(runs[2])
    assert (verdict.outcome, verdict.proposed) == ("no_verdict", False)
    assert "infrastructure_error" in str(verdict.reason)
    assert "voice" in aside.reason
    assert '"id": "sim-4"' in path.read_text().splitlines()[aside.line - 1]


def test_naive_times_are_read_in_the_zone_of_the_settings(fixtures: Path, split: Any) -> None:
    taken, _ = split(fixtures / "tau2.json", ImportSettings(timezone="America/New_York"))
    assert taken[0].trace.started_at == datetime(2026, 1, 10, 13, tzinfo=UTC)
    assert taken[0].trace.steps[0].at == 0.5
    assert taken[1].trace.started_at == datetime(2026, 1, 10, 7, tzinfo=UTC)  # had an offset


@pytest.mark.parametrize(
    ("key", "value", "why"),
    [
        ("agent_cost", -0.1, "field 'agent_cost': must be a number >= 0, got -0.1"),
        ("id", None, "field 'id': is missing"),
        ("start_time", 1767999600000, "field 'start_time': must be an ISO 8601 time"),
        ("messages", {}, "field 'messages': must be a list, got an object"),
    ],
)
def test_a_malformed_simulation_is_set_aside(
    write: Any, split: Any, raw: Any, key: str, value: Any, why: str
) -> None:
    raw["simulations"][0][key] = value
    taken, aside = split(write("a.json", raw))
    assert len(taken) == 2
    assert aside[0].reason.startswith(why)


def test_compact_files_any_order_of_keys_and_several_results_in_one_message(
    write: Any, split: Any, raw: Any
) -> None:
    taken, _ = split(write("turned.json", dict(reversed(raw.items()))))
    assert taken[0].trace.inputs[0].text == "Sell tickets only."
    assert [item.line for item in taken] == [1, 1, 1]
    messages = raw["simulations"][0]["messages"]
    messages[3:5] = [{"role": "tool", "id": "x", "tool_messages": messages[3:5]}]
    assert len(split(write("a.json", raw))[0][0].trace.steps) == 9


def test_run_directory(fixtures: Path, tmp_path: Path, split: Any) -> None:
    folder = fixtures / "tau2_run"
    assert detect(folder).name == "tau2"
    taken, aside = split(folder)
    assert [item.trace.prompt for item in taken] == ["Ask for a map."]
    assert verdict_of(taken[0]) is None
    assert taken[0].file == str(folder / "simulations" / "one.json")
    assert [(Path(item.file).name, item.reason.split(": ")[-1][:20]) for item in aside] == [
        ("two.json", "it was not written t"),
        ("results.json", "simulation 'gone' is"),
    ]
    by_index, _ = split(folder / "results.json")
    assert [item.trace for item in by_index] == [item.trace for item in taken]
    shutil.copytree(folder, tmp_path / "run")
    index = json.loads((folder / "results.json").read_text())
    del index["simulation_index"]
    (tmp_path / "run" / "results.json").write_text(json.dumps(index))
    assert len(split(tmp_path / "run" / "results.json")[0]) == 1


def test_a_truncated_file_names_the_line(fixtures: Path, write: Any) -> None:
    text = (fixtures / "tau2.json").read_text()
    path = write("cut.json", text[: text.index('"sim-2"')])
    line = text[: text.index('"id": "sim-2"')].rstrip().count("\n") + 1
    with pytest.raises(TraceFormatError, match=rf"cut\.json, line {line}: "):
        list(read_traces(path))
    with pytest.raises(TraceFormatError, match=r"not recognised.*not written to the end"):
        detect(write("cut.json", text[: text.index('"ticket"')]))


def test_a_file_without_runs_is_refused(write: Any, raw: Any) -> None:
    nothing: list[Any] = [[], None, {}]
    for simulations in nothing:
        with pytest.raises(TraceFormatError, match="holds no run"):
            list(read_traces(write("a.json", raw | {"simulations": simulations})))


def test_what_reviewers_see_holds_nothing_that_is_hidden(runs: list[Parsed]) -> None:
    for run in runs:
        trace = run.trace
        visible = str(
            (trace.trace_id, trace.prompt, trace.inputs, trace.steps, trace.response, trace.status)
        )
        for hidden in ("model-x", "llm_agent", "Checks a refusal", "reward", "sim-", "tau2"):
            assert hidden not in visible
