"""Whatever a file holds, reading it sets rows aside or refuses the file, and nothing else.

`make fuzz` runs 10,000 cases of each format, and writes down how many reached the row writer.
"""

import copy
import gzip
import json
import os
import tempfile
import zipfile
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from calibration.errors import TraceFormatError
from calibration.records import SetAside
from calibration.trace_formats import FORMATS, Item, Parsed, preview, read_traces
from calibration.trace_formats.base import Importer
from tests.trace_formats.archives import ZSTANDARD, eval_archive, zstandard
from tests.trace_formats.conftest import Reached, verdict_of

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
# The good files of each format; an importer without any fails its test.
SEEDS: dict[str, list[str]] = {
    "tau-bench": ["lamp-1-retail.json"],
    "tau2": ["tau2.json"],
    "inspect-ai": ["inspect.json"],
    "swe-agent": ["kiosk__snacks-7.traj"],
    "records": ["records.jsonl", "transcripts.jsonl"],
    "langfuse": ["langfuse/trace-page.json", "langfuse/observations.jsonl"],
    "langsmith": ["langsmith/runs.jsonl"],
    "phoenix": ["phoenix/spans.json"],
    "otel": ["otel/day-1.jsonl", "otel/day-2.jsonl"],
    "openai-chat": ["chats.jsonl", "parts.jsonl"],
}
NAMES = ["lamp-1-retail.json", "tau2.json", "records.jsonl", "transcripts.jsonl"]
CASES = int(os.environ.get("ASR_FUZZ_CASES", "0"))
RELAXED = settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.too_slow])


def read_anything(content: bytes) -> list[Item]:
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
            assert verdict_of(item) is None or verdict_of(item).trace_id == item.trace.trace_id
        else:
            assert item.reason
            item.reason.encode()
    preview(items)
    return items


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
    text = (FIXTURES / name).read_text()
    lines = name.endswith("l")
    value = [json.loads(line) for line in text.splitlines()] if lines else json.loads(text)
    put(value, data.draw(st.sampled_from(places(value))), data.draw(VALUES))
    written = "\n".join(map(json.dumps, value)) if lines else json.dumps(value)
    read_anything(written.encode())


def loaded(name: str) -> Any:
    text = (FIXTURES / name).read_text()
    return [json.loads(line) for line in text.splitlines()] if is_lines(name) else json.loads(text)


def is_lines(name: str) -> bool:
    return name.endswith(".jsonl")


def as_file(name: str, value: Any, container: str) -> bytes:
    """Return the bytes of a changed file: plain, compressed, or as the archive of its format."""
    if name == "inspect.json" and container != "plain" and isinstance(value, dict):
        samples = [s for s in value.get("samples") or [] if isinstance(s, dict)]
        if {"eval", "plan"} <= value.keys():
            method = ZSTANDARD if container == "zst" else zipfile.ZIP_DEFLATED
            unique = {(str(s.get("id")), str(s.get("epoch"))): s for s in samples}
            return eval_archive({**value, "samples": list(unique.values())}, method=method)
    lines = is_lines(name) and isinstance(value, list)
    text = "\n".join(map(json.dumps, value)) if lines else json.dumps(value)
    written = text.encode()
    if container == "gz":
        return gzip.compress(written, 1)
    return zstandard(written) if container == "zst" else written


@pytest.mark.parametrize("importer", FORMATS, ids=lambda importer: importer.name)
@settings(
    max_examples=CASES or 20, deadline=None, suppress_health_check=list(HealthCheck), database=None
)
@given(data=st.data())
def test_a_few_changes_of_a_good_file(importer: Importer, reached: Reached, data: Any) -> None:
    name = data.draw(st.sampled_from(SEEDS[importer.name]))
    value = copy.deepcopy(loaded(name))
    for _ in range(data.draw(st.integers(1, 3))):
        there = places(value)
        if not there:
            break
        place = data.draw(st.sampled_from(there))
        change = data.draw(st.sampled_from(["put", "drop", "twice", "swap"]))
        holder = at(value, place[:-1])
        if change == "drop":
            del holder[place[-1]]
        elif change == "twice" and isinstance(holder, list):
            holder.append(copy.deepcopy(holder[place[-1]]))
        elif change == "swap":
            holder[place[-1]] = copy.deepcopy(at(value, data.draw(st.sampled_from(there))))
        else:
            holder[place[-1]] = data.draw(VALUES)
    container = data.draw(st.sampled_from(["plain", "plain", "gz", "zst"]))
    content = as_file(name, value, container)
    if data.draw(st.integers(0, 9)) == 0:
        content = content[: data.draw(st.integers(0, len(content)))]
    items = read_anything(content)
    reached.note(importer.name, any(isinstance(item, Parsed) for item in items))


def at(value: Any, path: tuple[Any, ...]) -> Any:
    for key in path:
        value = value[key]
    return value


@pytest.mark.parametrize("name", [*NAMES, "records.csv"])
@RELAXED
@given(data=st.data())
def test_a_file_cut_anywhere(name: str, data: st.DataObject) -> None:
    content = (FIXTURES / name).read_bytes()
    read_anything(content[: data.draw(st.integers(0, len(content) - 1))])
