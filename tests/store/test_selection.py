import re
from collections.abc import Iterator
from dataclasses import fields, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from calibration.errors import InputError, StoreError
from calibration.records import REFERENCE_SOURCE, Step, Verdict
from calibration.store import (
    Keeper,
    SavedView,
    Store,
    TraceFilter,
    parse_search,
    search_terms,
    trace_search,
)
from calibration.store.trace_search import KEYS
from calibration.store.traces import parts_directory
from calibration.taxonomy import default_taxonomy
from tests.store.builders import ABANDONED, COMPLETE, Desk, empty_store, make_trace, query
from tests.store.test_keeper import remote, until


def at(day: int, hour: int = 0) -> datetime:
    return datetime(2026, 1, day, hour)  # noqa: DTZ001  the store keeps UTC without zone


def calls(**tools: str) -> tuple[Step, ...]:
    """Return one step a letter: ``e`` is a call that ended in an error, ``o`` one that did not."""
    steps = [(tool, letter) for tool, letters in tools.items() for letter in letters]
    return tuple(
        Step(step_id=f"s{k}", role="tool", tool=tool, result="", error=letter == "e")
        for k, (tool, letter) in enumerate(steps)
    )


CHANGES: dict[int, dict[str, Any]] = {
    0: {"task_key": "t/a", "trial": 0, "steps": calls(pay="oe", find="o"), "status": "failed"},
    1: {"task_key": "t/a", "trial": 1, "steps": calls(pay="oo"), "prompt": "Refund 50 % of Ärzte"},
    2: {"task_key": "t/a", "trial": 2, "steps": calls(find="e"), "model": "model-y"},
    3: {"workflow": "hotels", "started_at": datetime(2026, 1, 2, tzinfo=UTC), "steps": ()},
    4: {
        "workflow": "hotels", "started_at": datetime(2026, 1, 3, tzinfo=UTC), "steps": (),
        "perturbation": "fault",
    },
    5: {"source": REFERENCE_SOURCE, "steps": calls(secret="o")},
}  # fmt: skip

TRACES = [make_trace(k, **CHANGES[k]) for k in CHANGES]
NUMBER = {trace.trace_id: k for k, trace in enumerate(TRACES)}


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    with empty_store(tmp_path / "s.duckdb") as opened:
        opened.ingest(TRACES)
        yield opened


@pytest.fixture(scope="module")
def read_only(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Store]:
    with empty_store(tmp_path_factory.mktemp("selection") / "s.duckdb") as opened:
        opened.ingest(TRACES)
        yield opened


def found(store: Store, **chosen: Any) -> list[int]:
    """Return the numbers of the traces found, which every way of asking must agree on."""
    filters = TraceFilter(**chosen)
    numbers = sorted(NUMBER[trace_id] for trace_id in store.selected_ids(filters))
    assert store.count_traces(filters) == len(numbers)
    shown = store.trace_list(filters, for_leads=True)["trace_id"]
    assert sorted(map(NUMBER.__getitem__, shown)) == numbers
    return numbers


@pytest.mark.parametrize(
    ("chosen", "expected"),
    [
        ({}, [0, 1, 2, 3, 4]),
        ({"workflows": ("hotels",)}, [3, 4]),
        ({"workflows": ("hotels", "research")}, [0, 1, 2, 3, 4]),
        ({"workflows": ("x' OR 1 = 1 --",)}, []),
        ({"statuses": ("failed",)}, [0]),
        ({"models": ("model-y",)}, [2]),
        ({"perturbations": ("fault", "prompt")}, [4]),
        ({"perturbations": ("none",)}, [0, 1, 2, 3]),
        ({"task_key": "t/a"}, [0, 1, 2]),
        ({"tool": "pay"}, [0, 1]),
        ({"tool": "pay", "tool_ended": "error"}, [0]),
        ({"tool": "pay", "tool_ended": "ok"}, [1]),
        ({"tool_ended": "error"}, [0, 2]),
        ({"tool_ended": "ok"}, [1]),
        ({"tool": "find", "tool_ended": "error", "task_key": "t/a"}, [2]),
        ({"tool": "PAY"}, []),
        ({"text": "50 % of ä"}, [1]),
        ({"text": "task"}, [0, 2, 3, 4]),
        ({"text": "%"}, [1]),
        ({"text": "ärzte refund"}, [1]),
        ({"text": '"50 % of"'}, [1]),
        ({"text": '"of 50 %"'}, []),
        ({"text": TRACES[4].trace_id[:9].upper()}, [4]),
        ({"text": f"{TRACES[2].trace_id} task"}, [2]),
        ({"text": '"'}, []),
        ({"text": TRACES[4].trace_id[2:]}, []),
        ({"text": "'; DROP TABLE trace; --"}, []),
        ({"started_from": at(2)}, [3, 4]),
        ({"started_from": at(2, 1)}, [4]),
        ({"started_before": at(3)}, [3]),
        ({"started_from": at(2), "started_before": at(2)}, []),
    ],
)
def test_each_filter_finds_its_traces(
    read_only: Store, chosen: dict[str, Any], expected: list[int]
) -> None:
    assert found(read_only, **chosen) == expected


EVERY_KEY = TraceFilter(
    workflows=("a b", "c"), statuses=("done",), task_key="t/1", text='one "two three" "x:y"',
    tool='say "hi"', tool_ended="ok", started_from=at(2), started_before=at(3, 4), batch_id="b",
    classes=("complete", "disputed"), judge="source:tau", verdicts=("no_verdict",), models=("m",),
    tags=("policy gap",), perturbations=("fault",),
)  # fmt: skip


@pytest.mark.parametrize("chosen", [TraceFilter(), EVERY_KEY, TraceFilter(started_before=at(4))])
def test_a_search_line_holds_every_filter(chosen: TraceFilter) -> None:
    assert parse_search(" ".join(search_terms(chosen)), default_taxonomy()) == chosen


def test_every_filter_has_a_key() -> None:
    assert {*KEYS.values(), "text"} == {field.name for field in fields(TraceFilter)}


@given(st.text(max_size=60))
def test_every_line_is_read_or_refused_with_its_place(line: str) -> None:
    chosen, refused = None, ""
    try:
        chosen = parse_search(line, default_taxonomy())
    except InputError as error:
        refused = str(error)
    if chosen is None:
        assert re.search(r"at character \d+|needs the judge", refused)
    else:
        assert parse_search(" ".join(search_terms(chosen)), default_taxonomy()) == chosen


@pytest.mark.parametrize(
    ("line", "says"),
    [
        ("tool:a tool:b", "tool: is there twice, again at character 8"),
        ("x tool:", "tool: without a value at character 3"),
        ('"" x', "an empty phrase at character 1"),
        ('workflow:"a"b', "at character 1: a quotation mark within a word"),
        ("from:yesterday", "from:yesterday at character 1: write a day like from:2026-07-31"),
        ("from:2026-01-01T00:00+02:00", "times are in UTC, without a zone"),
        ("to:9999-12-31", "the year is not between 1990 and 2100"),
        ("perturbation:chaos", "it is one of none, fault, structure, prompt"),
        ("verdict:complete", "verdict: needs the judge as well"),
        ("x" * 2_001, "at most 2,000 characters, got 2,001"),
    ],
)
def test_a_line_that_cannot_be_read_says_where(line: str, says: str) -> None:
    with pytest.raises(InputError, match=re.escape(says)):
        parse_search(line, default_taxonomy())


def test_classes_are_found_by_name_and_title() -> None:
    found = parse_search('class:"Partial-correct" class:COMPLETE to:2026-01-03', default_taxonomy())
    assert found == TraceFilter(classes=("partial_plus", "complete"), started_before=at(4))


def labelled(store: Store) -> Desk:
    """Return a batch of the first four traces that Ann and Bob were given."""
    ids = tuple(trace.trace_id for trace in TRACES[:4])
    for name in ("Ann", "Bob"):
        store.add_reviewer(name)
    batch = store.add_batch(purpose="production", trace_ids=ids).batch_id
    desk = Desk(store=store, batch=batch, traces=ids)
    for reviewer in ("ann", "bob"):
        desk.queue(reviewer, limit=4)
    return desk


def test_classes_are_what_humans_said(store: Store) -> None:
    desk = labelled(store)
    ids, batch = desk.traces, desk.batch
    for k, by_bob in enumerate((COMPLETE, ABANDONED, ABANDONED)):
        desk.label(ids[k], "ann")
        desk.label(ids[k], "bob", answers=by_bob)
    store.adjudicate(trace_id=ids[2], answers=ABANDONED, adjudicator="lead")
    for classes, expected in (
        (("complete",), [0]), (("disputed",), [1]), (("abandoned",), [2]),
        (("unlabelled",), [3, 4]), (("complete", "disputed"), [0, 1]),
    ):  # fmt: skip
        assert found(store, classes=classes) == expected
    shown = store.trace_list(TraceFilter(batch_id=batch), for_leads=True)
    assert shown["class"].tolist() == ["complete", "disputed", "abandoned", "unlabelled"]
    assert shown["labels"].tolist() == [2, 2, 2, 0]
    exam = replace(desk, batch=store.add_batch(purpose="exam", trace_ids=ids).batch_id)
    exam.queue(limit=4)
    exam.label(ids[3])
    assert found(store, classes=("unlabelled",)) == [3, 4]  # labels of an exam are no class


def test_a_tag_is_found_on_labels_that_stand(store: Store) -> None:
    desk = labelled(store)
    assert store.trace_facets().tags == ()
    desk.label(desk.traces[0], "ann", tags=("policy gap", "Late"))
    desk.label(desk.traces[0], "bob")
    desk.label(desk.traces[1], "bob", tags=("LATE",))
    desk.label(desk.traces[2], "bob", tags=("taken back",))
    desk.undo("bob")
    assert store.trace_facets().tags == ("LATE", "policy gap")
    assert found(store, tags=("late",)) == [0, 1]
    assert found(store, tags=("policy gap", "nowhere")) == [0]
    assert found(store, tags=("taken back",)) == []


def test_a_verdict_is_found_with_its_judge(store: Store) -> None:
    ids = [trace.trace_id for trace in TRACES]
    given = zip(("j", "k", "source:tau"), ids, ("complete", "complete", "abandoned"), strict=False)
    store.add_verdicts([Verdict(judge_id=j, trace_id=t, outcome=said) for j, t, said in given])
    assert found(store, judge="j", verdicts=("complete",)) == [0]
    assert found(store, judge="source:", verdicts=("abandoned",)) == [2]
    shown = store.trace_list(TraceFilter(judge="k"), for_leads=True)
    assert shown["verdict"].fillna("-").tolist() == ["-", "complete", "-", "-", "-"]
    with pytest.raises(InputError, match="judge"):
        TraceFilter(verdicts=("complete",))


def test_the_list_for_others_than_leads_has_no_hidden_column(read_only: Store) -> None:
    shown = read_only.trace_list(TraceFilter(), for_leads=False)
    assert list(shown) == [
        "trace_id", "workflow", "task_key", "trial", "status", "started_at", "latency_s",
        "n_steps", "tool_calls", "tool_errors", "task",
    ]  # fmt: skip
    assert shown["tool_calls"].tolist() == [3, 2, 1, 0, 0]
    assert shown["tool_errors"].tolist() == [1, 0, 1, 0, 0]
    assert shown["task"].tolist()[:2] == ["Task 0", "Refund 50 % of Ärzte"]
    of = read_only.trace_facets()  # without the reference traces
    assert (of.workflows, of.statuses) == (("hotels", "research"), ("completed", "failed"))
    assert (of.models, of.tools) == (("model-x", "model-y"), ("find", "pay"))


def test_filters_for_leads_say_so() -> None:
    for_leads: list[dict[str, Any]] = [
        {"classes": ("complete",)}, {"tags": ("late",)}, {"judge": "j"}, {"models": ("m",)},
        {"judge": "j", "verdicts": ("complete",)},
    ]  # fmt: skip
    assert all(TraceFilter(**chosen).for_leads for chosen in for_leads)
    assert not TraceFilter(tool="pay", text="x", batch_id="b").for_leads


def test_pages_in_either_order_hold_every_trace_once(read_only: Store) -> None:
    for descending in (False, True):
        pages = [
            read_only.trace_list(
                TraceFilter(), for_leads=False, sort="started", descending=descending,
                limit=2, offset=offset,
            )["trace_id"].tolist()
            for offset in (0, 2, 4)
        ]  # fmt: skip
        assert [len(page) for page in pages] == [2, 2, 1]
        order = [NUMBER[trace_id] for page in pages for trace_id in page]
        # Traces without a time come last, in the order of import.
        assert order == ([4, 3] if descending else [3, 4]) + [0, 1, 2]
    with pytest.raises(InputError, match="sort must be one of"):
        read_only.trace_list(TraceFilter(), for_leads=False, sort="seq; DROP TABLE trace")


def test_taking_a_changed_trace_takes_its_tools_and_task(store: Store) -> None:
    newer = replace(TRACES[0], steps=calls(ship="e"), prompt="Another task entirely")
    assert store.ingest([newer], take_changed=True).replaced
    assert found(store, tool="pay") == [1]
    assert found(store, tool="ship", tool_ended="error") == [0]
    assert found(store, text="entirely") == [0]
    # The part with the old text is still there; its task must not be found.
    assert found(store, text='"task 0"') == []
    old, _ = sorted(parts_directory(store.path).iterdir(), key=lambda part: part.stat().st_mtime)
    old.unlink()
    with pytest.raises(StoreError, match=old.name):
        store.count_traces(TraceFilter(text="x"))
    store.ingest([make_trace(9, steps=calls(**{"x" * 5000: "o"}))])
    assert query(store, "SELECT max(length(tool)) FROM trace_tool") == [(200,)]


def test_traces_handed_over_bring_their_tools(tmp_path: Path) -> None:
    with empty_store(tmp_path / "s.duckdb") as held:
        assert held.trace_list(TraceFilter(text="x"), for_leads=True).empty
        assert held.count_traces(TraceFilter(text="x")) == 0
        assert held.trace_facets().tools == ()
        held.ingest([make_trace(50)])
        keeper: Keeper = held.keeper()
        keeper.start()
        try:
            until(lambda: (tmp_path / "s.snapshot.duckdb").exists())
            far = remote(held)
            far.ingest(TRACES)
            # A snapshot that cannot be written to answers too.
            assert far.count_traces(TraceFilter(tool="pay", tool_ended="error")) == 1
            assert len(far.trace_list(TraceFilter(), for_leads=True)) == 6
            far.close()
        finally:
            keeper.stop()
        assert found(held, tool="pay") == [0, 1]


def test_a_saved_view_comes_back_and_the_newest_counts(store: Store) -> None:
    first = SavedView(
        chosen=TraceFilter(task_key="t/a", tool="pay", tool_ended="error", classes=("abandoned",)),
        sort="latency", descending=True, columns=("steps", "task"),
    )  # fmt: skip
    newer = SavedView(
        chosen=TraceFilter(
            workflows=("hotels",), started_from=at(2), started_before=at(3, 4), text="x y"
        )
    )
    assert newer.to_dict() == newer.chosen.to_dict()
    assert store.save_view("  Failed   payments ", first) == "Failed payments"
    store.save_view("Other", newer)
    assert store.saved_views() == {"Failed payments": first, "Other": newer}
    store.save_view("Failed payments", newer)
    assert store.saved_views()["Failed payments"] == newer
    store.forget_view("Failed payments")
    assert list(store.saved_views()) == ["Other"]
    assert query(store, "SELECT count(*) FROM saved_query") == [(4,)]
    for name in ("", "  ", "?!", "x" * 81):
        with pytest.raises(InputError, match="name of a view"):
            store.save_view(name, newer)
    with pytest.raises(InputError, match="sort must be one of"):
        store.save_view("Other", SavedView(chosen=newer.chosen, sort="seq; DROP TABLE trace"))
    # Of another version: left out.
    trace_search._append(store._db, "old", {"colour": "red"})
    trace_search._append(store._db, "bad", {"classes": ["none such"]})
    trace_search._append(store._db, "odd", {"shown": {"colour": "red"}})
    trace_search._append(store._db, "off", {"shown": {"sort": "colour"}})
    assert list(store.saved_views()) == ["Other"]
