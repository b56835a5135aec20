from pathlib import Path
from typing import Any

import pytest

from calibration.errors import InputError, TraceFormatError
from calibration.records import Workflow
from calibration.trace_formats import (
    ImportSettings,
    WorkflowRule,
    detect,
    load_settings,
    preview,
    read_traces,
)


@pytest.mark.parametrize(
    ("content", "what"),
    [
        (b"", "the file is empty"),
        (b" \r\n\xef\xbb\xbf", "not recognised: it is neither JSON nor a table"),
        (b"PK\x03\x04rest", "it is a zip archive that cannot be read"),
        (b"PAR1rest", "cannot be read as Parquet"),
        (b"BZh9", "it is a bzip2 file (unpack it with bunzip2)"),
        (b"SQLite format 3\x00", "it is an SQLite database"),
        ("[]".encode("utf-16"), "UTF-16"),
        (b"# A text\n\nwith words\n", "it is neither JSON nor a table with 'trace_id'"),
        (b"a,b\n1,2\n", "it is neither JSON nor a table with 'trace_id'"),
        (b"[]", "it is a JSON list without objects"),
        (b'{"traces": {}, "seen": []}', "it is a JSON object with the fields 'seen', 'traces'"),
        (b'{"said": []}\n{"said": []}', "JSON lines with the fields 'said'"),
        (b'[{"span": 1}]', "JSON list of objects with the fields 'span'"),
        (b'{"a": \xff}', "line 1: is not UTF-8 text"),
        (b'{"a" 1}', "line 1: is not JSON"),
        (b"[" * 100_000, "nested too deeply"),
    ],
)
def test_other_content_is_refused_with_what_it_holds(write: Any, content: bytes, what: str) -> None:
    path = write("results.json", content)
    with pytest.raises(TraceFormatError) as caught:
        detect(path)
    assert str(caught.value).startswith(str(path))
    assert what in str(caught.value)
    if "not recognised" in str(caught.value):
        assert "tau2-bench results, " in str(caught.value)


def test_a_file_or_directory_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(TraceFormatError, match=r"none\.json: cannot be read"):
        detect(tmp_path / "none.json")
    with pytest.raises(TraceFormatError, match=r"directory without results\.json"):
        detect(tmp_path)


def test_format_is_recognised_whatever_the_name(fixtures: Path, write: Any) -> None:
    names = {"lamp-1-retail.json": "tau-bench", "tau2.json": "tau2"}
    names |= dict.fromkeys(("records.jsonl", "records.csv", "transcripts.jsonl"), "records")
    for name, expected in names.items():
        assert detect(write("x.dat", (fixtures / name).read_bytes())).name == expected


def test_settings_refuse_what_they_cannot_use() -> None:
    for zone in ("Mars/Base", "", "/etc/passwd", "../x", "Europe"):
        with pytest.raises(InputError, match="timezone must be an IANA name"):
            ImportSettings(timezone=zone)
    with pytest.raises(InputError, match="ceiling_usd must be a number above 0, got 0"):
        ImportSettings(ceiling_usd=0)
    with pytest.raises(InputError, match="workflow must be a name"):
        ImportSettings(workflows={"a": WorkflowRule(name=" ")})
    for rule in (WorkflowRule(name="w" * 201), WorkflowRule(unit="u" * 201)):
        with pytest.raises(InputError, match="up to 200 characters"):
            ImportSettings(workflows={"a": rule})


def test_mapping_file(write: Any) -> None:
    text = """
timezone = "Europe/Berlin"\nunit = "call"
[workflows.airline]\nname = "flights"\nceiling_usd = 1
[workflows.kiosk]\nunit = "ticket"
"""
    settings = load_settings(write("map.toml", text))
    names = [settings.workflow_for(name) for name in ("airline", "kiosk", None)]
    assert names == ["flights", "kiosk", None]
    flights = Workflow(name="flights", ceiling_usd=1.0, unit="call")
    assert settings.workflow_record("flights") == flights
    assert settings.workflow_record("kiosk").unit == "ticket"
    assert settings.workflow_record("other") == Workflow(name="other", unit="call")


@pytest.mark.parametrize(
    ("text", "what"),
    [
        ("x", "is not TOML"),
        ("zone = 1", "unknown key 'zone'"),
        ("workflows = 1", "'workflows' must be tables"),
        ("[workflows]\na = 1", "'workflows.a' must be a table"),
        ('[workflows.a]\nceiling_usd = "1"', "'workflows.a.ceiling_usd' must be a number"),
        ("[workflows.a]\nunit = 1", "'workflows.a.unit' must be text"),
        ("ceiling_usd = nan", "ceiling_usd must be a number above 0"),
    ],
)
def test_mapping_file_errors_name_file_and_key(write: Any, text: str, what: str) -> None:
    path = write("map.toml", text)
    with pytest.raises(InputError) as caught:
        load_settings(path)
    assert str(caught.value).startswith(f"{path}: ")
    assert what in str(caught.value)
    with pytest.raises(InputError, match="cannot be read"):
        load_settings(path.with_name("none.toml"))


def test_preview_counts(fixtures: Path) -> None:
    items = [*read_traces(fixtures / "tau2.json"), *read_traces(fixtures / "records.jsonl")]
    seen = preview(items)
    assert (seen.n_traces, seen.n_set_aside, seen.n_tasks, seen.n_verdicts) == (5, 1, 4, 4)
    assert seen.costs_known == 2  # sim-1 and inv-1; the price of sim-3 was not known
    assert seen.formats == {"tau2": 3, "records": 2}
    assert seen.workflows == {"kiosk": 3, "invoice_check": 2}
    shares = {field.field: field.share for field in seen.fields}
    assert (shares["cost_usd"], shares["inputs"], shares["verdict"]) == (0.4, 0.8, 0.8)
    assert seen.first is not None
    assert (seen.first.task_id, seen.first.n_steps) == ("[a]|b", 9)
    assert "\n" not in seen.first.prompt
    nothing = preview([])
    assert (nothing.n_traces, nothing.fields, nothing.first) == (0, (), None)


def test_preview_shows_no_terminal_escapes(write: Any) -> None:
    row = {"trace_id": "a", "workflow": "w", "prompt": "\x1b[2J\x1b]0;t\x07 hi " + "x" * 400}
    seen = preview(read_traces(write("a.jsonl", row)))
    assert seen.first is not None
    assert seen.first.prompt.startswith("hi xxx")
    assert len(seen.first.prompt) == 300
