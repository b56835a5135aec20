"""Whatever a file holds, reading it sets rows aside or refuses the file, and nothing else."""

import json
import tempfile
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from calibration.errors import TraceFormatError
from calibration.records import SetAside
from calibration.trace_formats import Item, Parsed, preview, read_traces

FIXTURES = Path(__file__).parents[1] / "fixtures" / "importers"
NUMBERS = st.integers() | st.floats() | st.just(10**400)
KEYS = st.sampled_from(
    ["role", "content", "tool_calls", "name", "function", "id", "text", "type", "reward", "error"]
)
VALUES = st.recursive(
    st.none() | st.booleans() | NUMBERS | st.text(max_size=8),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(KEYS | st.text(max_size=4), inner, max_size=3)
    ),
    max_leaves=8,
)
NAMES = ["lamp-1-retail.json", "tau2.json", "records.jsonl", "transcripts.jsonl"]
PLATFORMS = [
    "langfuse/trace-page.json",
    "langfuse/observations.jsonl",
    "langsmith/runs.jsonl",
    "phoenix/spans.json",
    "otel/day-2.jsonl",
]
SLOW = [HealthCheck.too_slow]
FEW = settings(max_examples=30, deadline=None, suppress_health_check=SLOW)
RELAXED = settings(max_examples=150, deadline=None, suppress_health_check=SLOW)


def read_anything(content: bytes) -> None:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "any"
        path.write_bytes(content)
        items: list[Item] = []
        problem = str(path)
        try:
            items.extend(read_traces(path))
        except TraceFormatError as error:
            problem = str(error)
        assert problem.startswith(str(path))
    for item in items:
        assert isinstance(item, Parsed | SetAside)
        if isinstance(item, Parsed):
            assert item.trace.content_hash()
            json.dumps(item.trace.metadata, allow_nan=False).encode()
            assert item.trace.cost_usd is None or 0 <= item.trace.cost_usd <= 1e6
            assert item.verdict is None or item.verdict.trace_id == item.trace.trace_id
        else:
            assert item.reason
            item.reason.encode()
    preview(items)


def places(value: Any, path: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    listed = dict(enumerate(value)) if isinstance(value, list) else {}
    entries = value if isinstance(value, dict) else listed
    inner = [place for key, of in entries.items() for place in places(of, (*path, key))]
    return [path, *inner] if path else inner


def put(value: Any, path: tuple[Any, ...], new: Any) -> None:
    for key in path[:-1]:
        value = value[key]
    value[path[-1]] = new


@RELAXED
@given(VALUES)
def test_arbitrary_json(value: Any) -> None:
    read_anything(json.dumps(value).encode())


@RELAXED
@given(st.binary(max_size=200))
def test_arbitrary_bytes(content: bytes) -> None:
    read_anything(content)
    read_anything(b"trace_id,workflow,prompt,cost_usd,steps\n" + content)
    read_anything(b'{"trace_id": "a", "workflow": "w", "prompt": "p"}\n' + content)


@pytest.mark.parametrize("name", NAMES)
@RELAXED
@given(data=st.data())
def test_any_value_anywhere_in_a_good_file(name: str, data: st.DataObject) -> None:
    read_changed(name, data)


@pytest.mark.parametrize("name", PLATFORMS)
@FEW
@given(data=st.data())
def test_any_value_anywhere_in_an_export_of_a_platform(name: str, data: st.DataObject) -> None:
    read_changed(name, data)
    content = (FIXTURES / name).read_bytes()
    read_anything(content[: data.draw(st.integers(0, len(content) - 1))])


def read_changed(name: str, data: st.DataObject) -> None:
    text = (FIXTURES / name).read_text()
    lines = name.endswith("l")
    value = [json.loads(line) for line in text.splitlines()] if lines else json.loads(text)
    put(value, data.draw(st.sampled_from(places(value))), data.draw(VALUES))
    written = "\n".join(map(json.dumps, value)) if lines else json.dumps(value)
    read_anything(written.encode())


@pytest.mark.parametrize("name", [*NAMES, "records.csv"])
@RELAXED
@given(data=st.data())
def test_a_file_cut_anywhere(name: str, data: st.DataObject) -> None:
    content = (FIXTURES / name).read_bytes()
    read_anything(content[: data.draw(st.integers(0, len(content) - 1))])
