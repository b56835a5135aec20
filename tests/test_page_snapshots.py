"""What every page shows, kept as text: of the demo, of nothing, of two judges; by who looks.

``ASR_SNAPSHOTS=write`` writes the texts anew. Pages are opened by their address, so it does not
matter in which modules they are. Of a table with many rows the first are kept and a hash of all;
a chart is kept with its specification and data, the desk with what it is given. What downloads
hold is not.
"""

import hashlib
import json
import math
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from functools import cache
from pathlib import Path
from typing import Any

import pandas as pd
import pyarrow as pa
import pytest
import streamlit as st
from google.protobuf.json_format import MessageToDict  # type: ignore[import-untyped]
from streamlit.testing.v1 import AppTest
from streamlit.util import calc_hash

from app import session
from calibration.records import Evidence, Verdict
from calibration.store import Store
from tests.snapshot_files import SNAPSHOTS, hold, hold_names
from tests.stores import copy_store

FOLDER = SNAPSHOTS / "pages"

MAIN = Path(__file__).parents[1] / "app" / "main.py"

LEADS = (
    "overview", "label", "certify", "agreement", "adjudicate", "reviewers", "judge", "asr", "data",
    "start",
)  # fmt: skip

MOST_ROWS, KEPT_ROWS = 40, 12

# Keys of the framework, addresses of files, styles: no word of the page.
_LEFT_OUT = {
    "id", "block_id", "form_id", "element_id", "url", "script_hash", "page_script_hash",
    "page_fallback_url", "deferred_file_id", "data", "datasets", "arrow_data", "value", "set_value",
    "raw_values", "raw_value", "css_content", "js_content", "isolate_styles", "flex_container",
    "width_config", "height_config", "gap_config", "wrap", "element_type", "$schema",
}  # fmt: skip


@dataclass(frozen=True)
class Case:
    """A page as one person sees it on one store."""

    store: str
    who: str
    page: str
    query: dict[str, str] = field(default_factory=dict)
    state: dict[str, Any] = field(default_factory=dict)
    also: str = ""

    @property
    def name(self) -> str:
        parts = (self.store, self.who or "nobody", self.page, self.also)
        return "-".join(part for part in parts if part) + ".txt"


CASES = [
    *(Case("demo", "lea", page) for page in LEADS),
    Case("demo", "adam", "people"),
    Case("demo", "rea", "label"),
    Case("demo", "rea", "label", query={"plain": "true"}, also="plain"),
    Case("demo", "rea", "certify"),
    Case("demo", "rea", "overview"),
    Case("demo", "rea", "people"),
    Case("demo", "", "label"),
    Case("demo", "", "certify"),
    Case("demo", "", "adjudicate"),
    Case("demo", "lea", "adjudicate", state={"adjudicate_view": "Settled"}, also="settled"),
    Case("demo", "lea", "adjudicate", state={"adjudicate_view": "Handbook"}, also="handbook"),
    *(Case("judges", "lea", page) for page in ("overview", "judge", "asr")),
    *(Case("empty", "lea", page) for page in LEADS),
    Case("empty", "adam", "people"),
    Case("empty", "rea", "label"),
    Case("none", "", "label"),
    Case("none", "", "start"),
]


# The stores


def _people(store: Store) -> None:
    store.set_identities("open")
    for name, role in (("Lea", "lead"), ("Rea", "reviewer"), ("Adam", "admin")):
        store.add_reviewer(name, role=role)


def _second_judge(store: Store) -> None:
    """Have another judge repeat the first, call every fifth trace complete, and say why."""
    (known,) = store.judge_frame()["judge_id"]
    frame = store.verdict_frame(known).sort_values("trace_id")
    pairs = zip(frame["trace_id"], frame["outcome"], strict=True)
    store.add_verdicts(
        [
            Verdict(
                judge_id="other-judge", trace_id=trace_id, simulated=True,
                outcome="complete" if number % 5 == 0 else outcome,
                reason=f"Looks {outcome}", grade=1 + number % 5, cost_usd=0.002,
                evidence=(Evidence(step_id="response", quote="the"),) if number % 2 else (),
            )
            for number, (trace_id, outcome) in enumerate(pairs)
        ]
    )  # fmt: skip


@pytest.fixture(scope="module")
def stores(built_demo: Path, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """Return the stores by name, closed, to be copied."""
    folder = tmp_path_factory.mktemp("stores")
    made = {name: folder / f"{name}.duckdb" for name in ("demo", "judges", "empty")}
    copy_store(built_demo, made["demo"])
    with Store.open(made["demo"]) as store:
        _people(store)
    copy_store(made["demo"], made["judges"])
    with Store.open(made["judges"]) as store:
        _second_judge(store)
    with Store.open(made["empty"], create=True) as store:
        _people(store)
    return made


@pytest.fixture
def opened(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """Return where the app looks for its store."""
    path = tmp_path / "store.duckdb"
    monkeypatch.setenv("ASR_STORE", str(path))
    yield path
    session.close_stores()
    st.cache_resource.clear()
    st.cache_data.clear()


def show(case: Case) -> AppTest:
    """Open a page by its address, with nothing kept from another one."""
    app = AppTest.from_file(MAIN, default_timeout=120)
    if case.who:
        app.query_params["reviewer"] = case.who
    for name, value in case.query.items():
        app.query_params[name] = value
    app._page_hash = calc_hash(case.page)
    for name, value in case.state.items():
        app.session_state[name] = value
    app.run()
    assert not app.exception, [error.message for error in app.exception]
    return app


# The texts


def dump(app: AppTest, store: Path, *, reading: bool) -> str:
    """Return all that a page shows, in its order: the main part, then the sidebar.

    On a page for `reading` traces no day is taken for one of now.
    """
    lines = [line for part in (app.main, app.sidebar) for line in _block(part, 0)]
    lines.append(f"address: {json.dumps(app.query_params, sort_keys=True, default=str)}")
    if not reading:
        lines = [undated(line) for line in lines]
    return normalised("\n".join(lines) + "\n", store)


def _block(node: Any, depth: int) -> Iterator[str]:
    """Yield a container and what is in it; rows and columns without a word only indent."""
    lines = _fields(node.proto) if node.proto is not None else []
    yield from _indented([f"[{node.type}]", *(f"  {line}" for line in lines)], depth)
    for _, child in sorted(node.children.items()):
        if hasattr(child, "children"):
            yield from _block(child, depth + 1)
        else:
            yield from _indented(_element(child), depth + 1)


def _indented(lines: list[str], depth: int) -> Iterator[str]:
    for line in lines:
        yield ("  " * depth + line).rstrip()


def _element(node: Any) -> list[str]:
    if node.type == "html" and "<style>" in str(node.proto.body):
        return ["html: style " + _short_hash(node.proto.body)]
    lines = [*_fields(node.proto), *_value(node)]
    if node.type == "date_input":
        # Ten years from today unless the page says otherwise.
        lines = [line for line in lines if not line.startswith(("min: ", "max: "))]
    if getattr(node, "key", None):
        lines.insert(0, f"key: {node.key}")
    return [f"{node.type}:", *(f"  {line}" for line in lines)]


def _value(node: Any) -> list[str]:
    """Return what a widget holds, and the rows of a table or chart."""
    if node.type in {"dataframe", "table", "arrow_data_frame", "arrow_table"}:
        return _table(node.value)
    if node.type == "vega_lite_chart":
        lines = []
        for source in [node.proto, *node.proto.datasets]:
            data = source.data.data
            if data:
                frame = pa.ipc.open_stream(data).read_pandas()
                lines += ["data:", *_table(frame)]
        return lines
    if node.type == "bidi_component":
        return []
    if hasattr(node, "_widget_state"):
        return [f"value: {_plain(node.value)}"]
    return []


def _fields(proto: Any) -> list[str]:
    """Return the fields of a message that are set, a line each; texts keep their lines."""
    if not hasattr(proto, "DESCRIPTOR"):
        return []
    known = MessageToDict(proto, preserving_proto_field_name=True)
    lines: list[str] = []
    # Streamlit's own setting: it depends on whether a test before this one has loaded our file.
    known.pop("max_upload_size_mb", None)
    for name, value in sorted(_without_keys(known).items()):
        if isinstance(value, str):
            head, *rest = _text(value).splitlines() or [""]
            lines += [f"{name}: {head}", *(f"  | {line}" for line in rest)]
        else:
            lines.append(f"{name}: {_plain(value)}")
    return lines


def _without_keys(value: Any) -> Any:
    if isinstance(value, dict):
        kept = {k: _without_keys(v) for k, v in value.items() if k not in _LEFT_OUT}
        return {k: v for k, v in kept.items() if v not in ({}, [], "")}
    return [_without_keys(one) for one in value] if isinstance(value, list) else value


def _text(value: str) -> str:
    """Return a text; one that is JSON with sorted names, a line for each entry."""
    if value[:1] in "{[":
        try:
            found = json.loads(value)
        except ValueError:
            return value
        if isinstance(found, dict):
            return "\n".join(["{}", *(f"{k}: {_plain(v)}" for k, v in sorted(found.items()))])
        return _plain(found)
    return value


def _plain(value: Any) -> str:
    return json.dumps(_rounded(value), sort_keys=True, ensure_ascii=False, default=str)


def _rounded(value: Any) -> Any:
    """Return a value with numbers of twelve digits."""
    if isinstance(value, float):
        return float(f"{value:.12g}") if math.isfinite(value) else str(value)
    if isinstance(value, dict):
        return {str(k): _rounded(v) for k, v in value.items()}
    if isinstance(value, list | tuple):
        return [_rounded(one) for one in value]
    return value


def _table(frame: Any) -> list[str]:
    """Return a table as CSV; of a long one the first rows and a hash of all."""
    if not isinstance(frame, pd.DataFrame):
        frame = pd.DataFrame(frame)
    index = not isinstance(frame.index, pd.RangeIndex)
    text = undated_cells(frame.to_csv(index=index, float_format="%.12g", lineterminator="\n"))
    lines = [f"| {line}" for line in text.splitlines()]
    if len(lines) > MOST_ROWS:
        lines[KEPT_ROWS + 1 :] = [f"| ... {len(frame)} rows, {_short_hash(text)}"]
    return lines


def _short_hash(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def normalised(text: str, store: Path) -> str:
    """Return a text without what differs from run to run: paths and ids of events."""
    text = text.replace(str(store), "STORE").replace(str(store.parent), "FOLDER")
    text = re.sub(r'"[0-9a-f]{32}"', '"HASH"', text)
    return re.sub(r"\b[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}\b", "UUID", text)


# A cell of a table that is nothing but a day, a week or a time.
_CELL = re.compile(
    r"(?m)(?:(?<=,)|^)(\d{4}-\d\d-\d\d|\d{4}-W\d\d|\d\d [A-Z][a-z]+(?: \d{4})?)"
    r"([T ,]+\d\d:\d\d[^,\n]*)?(?=,|$)"
)


def undated_cells(text: str) -> str:
    """Return a table without what comes from the clock: the store was filled just now.

    Days within a cell stay: the text of a trace may tell of any day.
    """

    def said(found: re.Match[str]) -> str:
        word = _days().get(found[1])
        if word is None:
            return found[0]
        return "NOW" if found[2] else word

    text = _CELL.sub(said, text)
    return re.sub(r"(?m)(?<=,)(now|\d+ min ago|\d+ h ago)(?=,\d+$)", "LATELY", text)


def undated(line: str) -> str:
    """Return what a page says without the days of now; of a chart or table only whole values."""
    quote = '"' if line.lstrip().startswith("|") else ""
    for form, word in _days().items():
        line = line.replace(f"{quote}{form}{quote}", f"{quote}{word}{quote}")
    return line


@cache
def _days() -> dict[str, str]:
    """Return what is put in the place of the days from yesterday on, by how they are written."""
    now, found = datetime.now(UTC), {}
    for days in range(-1, 120):
        day, word = now + timedelta(days=days), "TODAY" if days < 2 else "LATER"
        for form in ("%Y-%m-%d", "%d %B %Y", "%d %b %Y"):
            found[day.strftime(form)] = word
        if days < 2:
            found[day.strftime("%G-W%V")] = "THIS-WEEK"
    for days in (-1, 0, 1):
        # Last, as it is the beginning of others.
        found[(now + timedelta(days=days)).strftime("%d %b")] = "TODAY"
    return found


# The tests


def test_there_is_a_text_for_every_case() -> None:
    assert len({case.name for case in CASES}) == len(CASES)
    hold_names(FOLDER, [case.name for case in CASES] if FOLDER.exists() else [])


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name.removesuffix(".txt"))
def test_a_page_shows_what_it_did(case: Case, stores: dict[str, Path], opened: Path) -> None:
    if case.store == "empty":
        opened.write_bytes(stores["empty"].read_bytes())
    elif case.store != "none":
        copy_store(stores[case.store], opened)
    hold(FOLDER / case.name, dump(show(case), opened, reading=case.page == "label"))
