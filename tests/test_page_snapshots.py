"""What every page shows, kept as text: of the demo, of nothing, of two judges; by who looks.

``ASR_SNAPSHOTS=write`` writes the texts anew. Pages are opened by their address, so it does not
matter in which modules they are. Of a table with many rows the first are kept and a hash of all;
a chart is kept with its specification and data, the desk with what it is given. What downloads
hold is not.
"""

import hashlib
import json
import re
from collections.abc import Iterator
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
from tests.analyses.worlds import repeated_world
from tests.snapshot_files import SNAPSHOTS, hold, hold_names
from tests.stores import copy_store

FOLDER = SNAPSHOTS / "pages"
MAIN = Path(__file__).parents[1] / "app" / "main.py"
LEADS = (
    "overview label certify agreement adjudicate reviewers judge asr reliability data start".split()
)
MOST_ROWS, KEPT_ROWS = 40, 12

# Keys of the framework, addresses of files, styles: no word of the page.
_LEFT_OUT = """
id block_id form_id element_id url script_hash page_script_hash page_fallback_url deferred_file_id
data datasets arrow_data value set_value raw_values raw_value css_content js_content isolate_styles
flex_container width_config height_config gap_config wrap element_type $schema""".split()

# Sections of a page, all open here.
SECTIONS = {
    "agreement": ("where", "confused", "who", "sure", "listing", "export"),
    "judge": (
        "more", "estimates", "outcomes", "groups", "off", "errors", "favours", "compare",
        "listing", "draw", "escalate", "export",
    ),
    "reviewers": ("all", "time", "pool"),
    "reliability": (
        "passes", "bayesian", "listing", *(f"s{number}" for number in range(8)), "command", "other",
    ),
    "asr": (*(f"s{number}" for number in range(11)), "weeks_table_folded", "listing", "command"),
}  # fmt: skip

# A page by its name: the store, who looks, the page, and what else is chosen on it.
CASES = [
    *(f"{store}-lea-{page}" for store in ("demo", "empty") for page in LEADS),
    "repeated-lea-reliability",
    *(f"judges-lea-{page}" for page in ("overview", "judge", "asr")),
    *(f"demo-rea-{page}" for page in ("label", "label-plain", "certify", "overview", "people")),
    "demo-rea-label-welcome",
    *(f"demo-nobody-{page}" for page in ("label", "certify", "adjudicate")),
    "demo-adam-people", "demo-lea-adjudicate-adjudicated", "demo-lea-adjudicate-handbook",
    "empty-adam-people", "empty-rea-label", "none-nobody-label", "none-nobody-start",
]  # fmt: skip


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
    for name in ("demo", "empty"):
        with Store.open(made[name], create=name == "empty") as store:
            store.set_identities("open")
            for who, role in (("Lea", "lead"), ("Rea", "reviewer"), ("Adam", "admin")):
                store.add_reviewer(who, role=role)
    copy_store(made["demo"], made["judges"])
    with Store.open(made["judges"]) as store:
        _second_judge(store)
    made["repeated"] = folder / "repeated.duckdb"
    world = repeated_world(made["repeated"])
    world.store.set_identities("open")
    world.store.add_reviewer("Lea", role="lead")
    world.settle("t01-0", "abandoned")
    world.store.close()
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


def show(case: str) -> AppTest:
    """Open a page by its address, with nothing kept from another one."""
    _, who, page, *also = case.split("-")
    app = AppTest.from_file(MAIN, default_timeout=120)
    if who != "nobody":
        app.query_params["reviewer"] = who
    if also == ["plain"]:
        app.query_params["plain"] = "true"
    elif also and page == "adjudicate":
        app.query_params["view"] = also[0].title()
    for section in SECTIONS.get(page, ()):
        app.session_state[f"{page}_{section}"] = True
    if page == "label" and also != ["welcome"]:
        app.session_state["label_welcomed"] = True
    app._page_hash = calc_hash(page)
    app.run()
    assert not app.exception, [error.message for error in app.exception]
    return app


def dump(app: AppTest, store: Path, *, reading: bool) -> str:
    """Return all that a page shows, in its order; of one for `reading` traces with all days."""
    lines = [line for part in (app.main, app.sidebar) for line in _block(part, 0)]
    lines.append(f"address: {json.dumps(app.query_params, sort_keys=True, default=str)}")
    return normalised("\n".join(map(str if reading else undated, lines)) + "\n", store)


def _block(node: Any, depth: int) -> Iterator[str]:
    """Yield a container and what is in it; rows and columns without a word only indent."""
    lines = _fields(node.proto) if node.proto is not None else []
    for line in (f"[{node.type}]", *(f"  {line}" for line in lines)):
        yield ("  " * depth + line).rstrip()
    for _, child in sorted(node.children.items()):
        if hasattr(child, "children"):
            yield from _block(child, depth + 1)
        else:
            yield from (("  " * (depth + 1) + line).rstrip() for line in _element(child))


def _element(node: Any) -> list[str]:
    if node.type == "html" and "<style>" in str(node.proto.body):
        return ["html: style " + _short_hash(node.proto.body)]
    key = [f"key: {node.key}"] if getattr(node, "key", None) else []
    lines = [*key, *_fields(node.proto), *_value(node)]
    # Days can be chosen up to ten years from today unless the page says otherwise.
    left_out = ("min: ", "max: ") if node.type == "date_input" else ()
    return [f"{node.type}:", *(f"  {line}" for line in lines if not line.startswith(left_out))]


def _value(node: Any) -> list[str]:
    """Return what a widget holds, and the rows of a table or chart."""
    if node.type in {"dataframe", "table", "arrow_data_frame", "arrow_table"}:
        return _table(node.value)
    if node.type == "vega_lite_chart":
        lines = []
        for source in [node.proto, *node.proto.datasets]:
            if data := source.data.data:
                lines += ["data:", *_table(pa.ipc.open_stream(data).read_pandas())]
        return lines
    if node.type != "bidi_component" and hasattr(node, "_widget_state"):
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
    try:
        found = json.loads(value) if value[:1] in "{[" else None
    except ValueError:
        found = None
    if isinstance(found, dict):
        return "\n".join(["{}", *(f"{k}: {_plain(v)}" for k, v in sorted(found.items()))])
    return value if found is None else _plain(found)


def _plain(value: Any) -> str:
    """Return a value as JSON, with numbers of twelve digits."""
    found = json.loads(
        json.dumps(value, default=str), parse_constant=str,
        parse_float=lambda number: float(f"{float(number):.12g}"),
    )  # fmt: skip
    return json.dumps(found, sort_keys=True, ensure_ascii=False)


def _table(frame: Any) -> list[str]:
    """Return a table as CSV; of a long one the first rows and a hash of all."""
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
    """Return a text without paths and ids of events."""
    text = text.replace(str(store), "STORE").replace(str(store.parent), "FOLDER")
    text = re.sub(r'"[0-9a-f]{32}"', '"HASH"', text)
    return re.sub(r"\b[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}\b", "UUID", text)


# A cell of a table that is nothing but a day, a week or a time.
_CELL = re.compile(
    r"(?m)(?:(?<=,)|^)(\d{4}-\d\d-\d\d|\d{4}-W\d\d|\d\d [A-Z][a-z]+(?: \d{4})?)"
    r"([T ,]+\d\d:\d\d[^,\n]*)?(?=,|$)"
)


def undated_cells(text: str) -> str:
    """Return a table without the days of now; the text of a trace may tell of any day."""

    def said(found: re.Match[str]) -> str:
        word = _days().get(found[1])
        return found[0] if word is None else "NOW" if found[2] else word

    text = _CELL.sub(said, text)
    return re.sub(r"(?m)(?<=,)(now|\d+ min ago|\d+ h ago)(?=,\d+$)", "LATELY", text)


def undated(line: str) -> str:
    """Return what a page says without the days of now; of a chart or table only whole values."""
    quote = '"' * line.lstrip().startswith("|")
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


def test_there_is_a_text_for_every_case() -> None:
    assert len(set(CASES)) == len(CASES)
    hold_names(FOLDER, [f"{case}.txt" for case in CASES] if FOLDER.exists() else [])


@pytest.mark.parametrize("case", CASES)
def test_a_page_shows_what_it_did(case: str, stores: dict[str, Path], opened: Path) -> None:
    store, _, page, *_ = case.split("-")
    if store == "empty":
        opened.write_bytes(stores["empty"].read_bytes())
    elif store != "none":
        copy_store(stores[store], opened)
    hold(FOLDER / f"{case}.txt", dump(show(case), opened, reading=page == "label"))
