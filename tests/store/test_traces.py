import json
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from datetime import UTC, datetime, timedelta, timezone
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from calibration.errors import InputError, StoreError
from calibration.records import Attachment, Step, SubGoal, Verdict
from calibration.store import Store, traces
from calibration.store.traces import parts_directory
from tests.store.builders import Desk, empty_store, make_trace, make_traces, query


def test_new_traces_are_imported_once_in_their_order(store: Store) -> None:
    assert store.ingest([]).imported == ()
    assert not parts_directory(store.path).exists()
    new = make_traces(4)
    result = store.ingest(new)
    assert result.imported == tuple(t.trace_id for t in new)
    assert result.already_there == result.changed == ()
    assert store.trace_frame()["trace_id"].tolist() == list(result.imported)
    assert store.trace_frame()["seq"].tolist() == [1, 2, 3, 4]
    again = store.ingest(make_traces(5))
    assert (again.imported, len(again.already_there)) == ((make_trace(4).trace_id,), 4)
    assert len(list(parts_directory(store.path).iterdir())) == 2
    details = query(store, "SELECT detail FROM audit WHERE what = 'import'")
    assert [json.loads(detail)["imported"] for (detail,) in details] == [4, 1]


def test_changed_content_is_taken_on_request_only_and_in_the_same_place(store: Store) -> None:
    store.ingest(make_traces(3))
    newer = make_trace(1, response="Newer.", status="failed")
    result = store.ingest([newer])
    assert (result.changed, result.imported) == ((newer.trace_id,), ())
    assert store.for_review(result.changed)[0].response == "The answer is 1."
    assert store.ingest([newer], take_changed=True).replaced == (newer.trace_id,)
    assert store.for_review([newer.trace_id])[0].response == "Newer."
    assert store.trace_frame()["trace_id"].tolist() == [t.trace_id for t in make_traces(3)]
    assert store.ingest([make_trace(1)]).changed == (newer.trace_id,)


def test_signals_are_those_of_the_content_in_force(store: Store) -> None:
    """What is cached of a transcript goes with the part that it is in."""

    def told() -> list[tuple[float, str | None]]:
        frame = store.operation_frame()
        feedback = frame["feedback"].astype(object).where(frame["feedback"].notna(), None)
        return list(zip(frame["loops"], feedback, strict=True))

    calls = [
        Step(step_id=f"s{n}", role="assistant", tool="find", arguments="{}", result="none")
        for n in range(3)
    ]
    store.ingest([make_trace(0, steps=tuple(calls)), make_trace(1, steps=tuple(calls[:2]))])
    assert told() == told() == [(1.0, None), (0.0, None)]
    newer = make_trace(0, steps=tuple(calls[:1]), metadata={"feedback": "-1"})
    store.ingest([newer], take_changed=True)
    assert told() == [(0.0, "-1"), (0.0, None)]


def test_what_one_caller_does_to_a_frame_another_one_does_not_see(store: Store) -> None:
    store.ingest(make_traces(2))
    frame = store.trace_frame()
    frame["workflow"] = "other"
    frame.loc[0, "cost_usd"] = 99.0
    assert "other" not in set(store.trace_frame()["workflow"])
    assert 99.0 not in set(store.trace_frame()["cost_usd"])


def test_taking_changed_content_drops_the_grade_that_came_with_the_old(store: Store) -> None:
    (trace,) = store.ingest([make_trace(1)]).imported
    judges = ("source:test", "other")
    store.add_verdicts([Verdict(judge_id=j, trace_id=trace, outcome="complete") for j in judges])
    store.ingest([make_trace(1, response="Newer.")], take_changed=True)
    assert [len(store.verdict_frame(judge)) for judge in ("source:", "other")] == [0, 1]


@pytest.mark.parametrize("meanwhile", [False, True])
def test_a_labelled_trace_is_never_replaced(
    desk: Desk, monkeypatch: pytest.MonkeyPatch, meanwhile: bool
) -> None:
    (first, *_) = desk.queue()
    write = traces.write_part

    def label_first(*arguments: Any) -> str:
        desk.label(first)
        return write(*arguments)

    if meanwhile:
        monkeypatch.setattr(traces, "write_part", label_first)
    else:
        desk.label(first)
    result = desk.store.ingest([make_trace(0, response="Newer.")], take_changed=True)
    assert (result.replaced, result.changed) == ((), (first,))
    assert meanwhile or result.labelled == {first}
    assert desk.store.for_review([first])[0].response == "The answer is 0."


def test_equal_content_under_another_identity_is_a_possible_duplicate(store: Store) -> None:
    first = make_trace(1)
    second = replace(first, trace_id="t-2", source_id="copy")
    third = replace(first, trace_id="t-3", trial=5)
    store.ingest([first])
    result = store.ingest([second, third])
    assert result.imported == ("t-2", "t-3")
    assert result.possible_duplicates == {"t-2": first.trace_id, "t-3": first.trace_id}
    assert query(store, "SELECT possible_duplicate_of FROM trace ORDER BY seq") == [
        (None,), (first.trace_id,), (first.trace_id,),
    ]  # fmt: skip


def test_one_identity_twice_in_a_call_is_stored_once(store: Store) -> None:
    trace, newer = make_trace(1), make_trace(1, response="Newer.")
    result = store.ingest([trace, trace, newer])
    assert result.imported == result.already_there == result.changed == (trace.trace_id,)
    assert len(store.trace_frame()) == 1
    assert store.for_review([trace.trace_id])[0].response == "The answer is 1."


def test_threads_importing_the_same_traces_store_each_once(store: Store) -> None:
    with ThreadPoolExecutor(6) as pool:
        results = list(pool.map(lambda _: store.ingest(make_traces(20)), range(6)))
    assert sorted(len(r.imported) for r in results) == [0, 0, 0, 0, 0, 20]
    assert len(store.trace_frame()) == 20


def test_agent_tags_are_neutral_and_stable(tmp_path: Path) -> None:
    def agents(store: Store) -> list[str]:
        ids = store.trace_frame()["trace_id"].tolist()
        return [trace.agent for trace in store.for_review(ids)]

    path = tmp_path / "store.duckdb"
    with Store.open(path, create=True) as store:
        store.ingest(
            [
                make_trace(1, model="zeta", agent_version="1"),
                make_trace(2, model="alpha", agent_version="1"),
                make_trace(3, model="zeta", agent_version="2"),
                make_trace(4, model=None),
            ]
        )
        assert agents(store) == ["agent-a", "agent-b", "agent-c", "agent-d"]
    with Store.open(path) as store:
        store.ingest([make_trace(5, model="alpha", agent_version="1"), make_trace(6, model="new")])
        assert agents(store)[4:] == ["agent-b", "agent-e"]
        store.ingest([make_trace(10 + k, model=f"m{k}") for k in range(30)])
        tags = query(store, "SELECT DISTINCT agent_tag FROM trace")
        assert {("agent-z",), ("agent-aa",), ("agent-ab",)} < set(tags)
        assert len(tags) == 35


def test_a_leftover_temporary_part_is_harmless(store: Store) -> None:
    directory = parts_directory(store.path)
    directory.mkdir()
    (directory / ".0123.parquet.99").write_bytes(b"half a file")
    (directory / "orphan.parquet").write_bytes(b"half a file")
    ids = store.ingest(make_traces(2)).imported
    assert [t.trace_id for t in store.for_review(ids)] == list(ids)


@pytest.mark.parametrize(
    ("module", "name", "error"),
    [
        (pq, "write_table", OSError(28, "No space left")),
        (traces, "_insert_index", KeyboardInterrupt),
    ],
)
def test_an_import_that_was_cut_off_stores_nothing_and_can_be_repeated(
    store: Store, monkeypatch: pytest.MonkeyPatch, module: Any, name: str, error: Any
) -> None:
    def cut_off(*_: Any, **__: Any) -> None:
        raise error

    with monkeypatch.context() as patch:
        patch.setattr(module, name, cut_off)
        with pytest.raises((StoreError, KeyboardInterrupt)):
            store.ingest(make_traces(2))
    assert len(store.trace_frame()) == 0
    assert len(store.ingest(make_traces(2)).imported) == 2
    assert len(list(parts_directory(store.path).iterdir())) == 1


def test_a_part_that_is_missing_or_lacks_the_trace_is_named(store: Store) -> None:
    first, second = make_traces(2)
    store.ingest([first])
    (kept,) = parts_directory(store.path).iterdir()
    store.ingest([second])
    (other,) = set(parts_directory(store.path).iterdir()) - {kept}
    other.write_bytes(kept.read_bytes())
    with pytest.raises(StoreError, match=second.trace_id):
        store.for_review([second.trace_id])
    kept.unlink()
    with pytest.raises(StoreError, match=rf"{kept.name}: .* cannot be read; import the files"):
        store.for_review([first.trace_id])


@pytest.mark.parametrize("name", ["a [b] c", "st*r", "it's", "Zoë 张", "a{1,2}", "%20", "#1"])
def test_any_path_holds_a_store(tmp_path: Path, name: str) -> None:
    path = tmp_path / name / f"{name}.duckdb"
    path.parent.mkdir()
    with empty_store(path) as store:
        ids = store.ingest(make_traces(2)).imported
        assert len(store.for_review(ids)) == 2
    with pytest.raises(InputError, match="question mark"):  # DuckDB would misread it
        Store.open(tmp_path / "what?" / "store.duckdb", create=True)
    assert [found.name for found in tmp_path.iterdir()] == [name]


def test_traces_come_back_in_the_order_asked_for_and_unknown_ones_are_left_out(
    store: Store,
) -> None:
    first = store.ingest(make_traces(2)).imported
    second = store.ingest([make_trace(7), make_trace(8)]).imported
    wanted = [second[1], first[1], "unknown", second[0], first[0]]
    shown = [t.trace_id for t in store.for_review(wanted)]
    assert shown == [t for t in wanted if t != "unknown"]
    assert store.for_review([]) == []


texts = st.text(st.characters(exclude_categories=["Cs"]), max_size=40)


@settings(
    max_examples=25, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(text=texts, other=texts | st.none(), number=st.floats(0, 1e9))
def test_any_text_round_trips(store: Store, text: str, other: str | None, number: float) -> None:
    step = Step(step_id="s1", role="tool", content=other, arguments=text, result=text, at=number)
    trace = make_trace(
        1, trace_id=f"t-{len(store.trace_frame())}", prompt=text, response=other, status=other,
        latency_s=number, steps=(step,), inputs=(Attachment(name=text, text=text),),
        sub_goals=(SubGoal(id="g", text=text, matters=False),),
    )  # fmt: skip
    store.ingest([trace])
    (shown,) = store.for_review([trace.trace_id])
    for name in ("prompt", "response", "status", "latency_s", "steps", "inputs", "sub_goals"):
        assert getattr(shown, name) == getattr(trace, name)


@pytest.mark.parametrize(
    "text",
    [
        "'; DROP TABLE trace; --", '{"json": "in \\"json\\""}', "null\x00byte", "\r\n\t  ",
        "\u202eright to left\u2066", "👩‍👩‍👧 é e\u0301", "<script>alert(1)</script>",
        "x" * 3_000_000,
    ],
)  # fmt: skip
def test_awkward_text_round_trips(kept_store: Store, text: str) -> None:
    trace = make_trace(len(text), trace_id=f"t-{text[:9]}", prompt=text, response=text, status=text)
    kept_store.ingest([trace])
    (shown,) = kept_store.for_review([trace.trace_id])
    assert shown.trace_id == trace.trace_id
    assert shown.prompt == shown.response == shown.status == text


def test_times_are_stored_in_utc_wherever_the_machine_stands(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    noon = datetime(2026, 3, 1, 12, 0)  # noqa: DTZ001  without a zone: UTC
    india, samoa = timezone(timedelta(hours=5, minutes=30)), timezone(timedelta(hours=-13))
    times = [noon, noon.replace(tzinfo=UTC), noon.replace(tzinfo=UTC).astimezone(india),
             noon.replace(tzinfo=UTC).astimezone(samoa)]  # fmt: skip
    monkeypatch.setenv("TZ", "America/New_York")
    time.tzset()
    try:
        store.ingest([make_trace(k, started_at=started) for k, started in enumerate(times)])
    finally:
        monkeypatch.undo()
        time.tzset()
    assert query(store, "SELECT started_at FROM trace") == [(noon,)] * 4


def test_missing_stays_missing_and_is_never_zero(store: Store) -> None:
    store.ingest([make_trace(1, cost_usd=None, latency_s=None), make_trace(2, cost_usd=0.0)])
    frame = store.trace_frame()
    assert frame["cost_usd"].isna().tolist() == [True, False]
    assert frame["cost_usd"].tolist()[1] == 0.0


def test_an_impossible_number_is_refused_and_nothing_is_stored(store: Store) -> None:
    for changes in ({"cost_usd": -1.0}, {"units": 0.0}):
        with pytest.raises(StoreError, match="nothing was stored"):
            store.ingest([make_trace(1), make_trace(2, **changes)])
    assert len(store.trace_frame()) == 0


def test_a_store_is_simulated_as_soon_as_one_trace_is(store: Store) -> None:
    for number, simulated in enumerate((False, True)):
        assert not store.is_simulated()
        store.ingest([make_trace(number, simulated=simulated)])
    assert store.is_simulated()
    assert store.trace_frame()["simulated"].tolist() == [False, True]


def test_prepared_traces_are_stored_as_the_traces_themselves(tmp_path: Path) -> None:
    new = [make_trace(k, metadata={"k": k}, violations=()) for k in range(3)]
    found = []
    for name, made in (("a", new), ("b", traces.PreparedTraces(new))):
        with Store.open(tmp_path / f"{name}.duckdb", create=True) as store:
            store.ingest(made)
            parts = sorted(part.name for part in traces.parts_directory(store.path).iterdir())
            with store._db.read() as cursor:
                hashes = cursor.execute("SELECT content_hash FROM trace ORDER BY seq").fetchall()
            found.append((parts, [digest for (digest,) in hashes]))
    assert found[0] == found[1]
    assert found[0][1] == [trace.content_hash() for trace in new]
    assert [row.trace_id for row in traces.PreparedTraces(new)] == [t.trace_id for t in new]


def test_a_part_holds_an_id_once(tmp_path: Path) -> None:
    new = [make_trace(1), make_trace(1, response="Newer."), make_trace(2)]
    rows = traces.write_index(tmp_path / "asr.duckdb", new)
    assert rows[0].part != rows[1].part == rows[2].part
