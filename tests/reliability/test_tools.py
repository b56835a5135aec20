"""Tool correctness, conversations and bands: by hand, by the golden items, and as properties."""

import json
import math
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from calibration.analyses.reliability.tools import (
    MOST_CALLS,
    ToolAnalysis,
    ToolOptions,
    analyse_tools,
    read_interactions,
)
from calibration.errors import InputError
from calibration.records import Step, repeats_of
from calibration.reliability.tools import (
    BANDS,
    EQUAL_WEIGHTS,
    CallRecord,
    OrderRule,
    band_of,
    canonical,
    checked_tool_weights,
    conversation_correct,
    interaction_pass,
    tool_score,
)
from calibration.reporting.document import brief_lines
from calibration.reporting.sections.tools import document
from calibration.store import Store
from calibration.tables.reading import ReadingOptions
from calibration.trace_formats.fields import FieldError
from tests.cli_runs import asr, data
from tests.store.builders import make_trace

__all__ = ["asr"]
GOLDEN = Path(__file__).parents[1] / "golden" / "seed_golden.json"


def golden(item: str) -> dict[str, Any]:
    entries = json.loads(GOLDEN.read_text("utf-8"))
    (found,) = [e for e in entries if e["seed"] == "001" and e["item"] == item]
    assert isinstance(found, dict)
    return found


def call(name: str, step: float | None = None, **arguments: Any) -> CallRecord:
    values = {key: canonical(value) for key, value in arguments.items()}
    return CallRecord(name=name, arguments=values, step=step)


def parts(*args: Any, **options: Any) -> tuple[float | None, ...]:
    of = tool_score(*args, **options)
    return of.selection, of.parameters, of.sequence, of.utilisation, of.overall


def row(conversation: str, name: object, score: object = 1.0, **cells: Any) -> dict[str, Any]:
    return {"conversation_id": conversation, "interaction": name, "answer_score": score} | {
        "calls": [], "expected_calls": None, "final_answer_uses_tools": None, **cells,
    }  # fmt: skip


def analysed(rows: list[dict[str, Any]], **options: Any) -> ToolAnalysis:
    return analyse_tools(pd.DataFrame(rows).astype(object), ToolOptions(**options))


# The golden items of source 001 on conversations and tools


def test_the_bands_have_no_gaps() -> None:
    entry = golden("tool score bands")
    assert BANDS == (1.0, 0.75, 0.5, 0.0)
    for low, high in entry["recomputed"]["uncovered"]:
        assert band_of((low + high) / 2) == (1 if high == 1.0 else 2)
    assert [band_of(score) for score in (1, 0.75, 0.5, 0.499999, 0)] == [0, 1, 2, 3, 3]


def test_the_weights_add_up_to_one() -> None:
    entry = golden("tool weights sum")
    assert list(EQUAL_WEIGHTS.values()) == entry["inputs"]["w"]
    assert math.fsum(EQUAL_WEIGHTS.values()) == entry["recomputed"]


def test_a_conversation_is_correct_only_if_all_its_interactions_are() -> None:
    entry = golden("n/c unit: 9 of 10 interactions correct in one conversation, k=3")
    inputs, expected = entry["inputs"], entry["recomputed"]
    n, c = inputs["n_interactions"], inputs["c_interactions"]
    found = interaction_pass(n, c, 3)
    assert found.interaction_pass_at_k == pytest.approx(expected["interaction_level_pass@3"])
    assert found.interaction_pass_hat_k == pytest.approx(expected["interaction_level_pass^3"])
    right = [True] * c + [False] * (n - c)
    assert conversation_correct(right) == bool(expected["conversation_correct"])
    made = analysed([row("c", k, float(value)) for k, value in enumerate(right)])
    assert made.conversation_correctness.estimate.value == expected["conversation_correct"]
    assert made.conversations[0].of_interactions == found


# By hand


@pytest.mark.parametrize(
    ("calls", "expected", "options", "scores"),
    [
        ([], [], {}, (1, 1, 1, 1, 1)),
        ([], [call("a")], {"uses_tools": True}, (0, 0, 0, 0, 0)),
        ([call("a")], [], {"uses_tools": True}, (0, 0, 0, 1, 0.25)),
        ([call("a", x=1)], [call("a", x=1)], {"uses_tools": True}, (1, 1, 1, 1, 1)),
        ([call("a", x=1)], [call("a", x=1)], {"uses_tools": False}, (1, 1, 1, 0, 0.75)),
        ([call("a", x=1)], [call("a", x=1)], {}, (1, 1, 1, None, 1)),
        # Another tool, one too few, one too many: a in both, of two names.
        ([call("b")], [call("a")], {"uses_tools": False}, (0, 0, 0, 0, 0)),
        ([call("a")], [call("a"), call("b")], {"uses_tools": True}, (0.5, 0.5, 0.5, 1, 0.625)),
        ([call("a"), call("b")], [call("a")], {"uses_tools": True}, (0.5, 1, 1, 1, 0.875)),
        # x and y in either: x is right, y is missing.
        ([call("a", x=1)], [call("a", x=1, y=2)], {"uses_tools": True}, (1, 0.5, 1, 1, 0.875)),
        ([call("a", x=True)], [call("a", x=1)], {"uses_tools": True}, (1, 0, 1, 1, 0.75)),
        ([call("a", x=1.0)], [call("a", x=1)], {"uses_tools": True}, (1, 1, 1, 1, 1)),
    ],
)
def test_the_parts_by_hand(
    calls: list[CallRecord],
    expected: list[CallRecord],
    options: dict[str, Any],
    scores: tuple[float | None, ...],
) -> None:
    assert parts(calls, expected, **options) == pytest.approx(scores)


def test_calls_of_one_name_are_matched_in_order_not_always_with_the_first() -> None:
    made = [call("find", 1, q="a"), call("find", 2, q="b")]
    assert parts(made, made, uses_tools=True)[1] == 1
    # The original compares both with the first call: one of two is right.
    assert parts(made, [call("find", 1, q="b"), call("find", 2, q="a")], uses_tools=True)[1] == 0
    # Steps give the order, not the list.
    assert parts(made[::-1], made, uses_tools=True)[4] == 1
    one = tool_score(made[:1], made, uses_tools=True)
    assert (one.parameters, one.sequence, one.missing) == (0.5, 0.5, ("find",))
    assert tool_score(made, made[:1]).extra == ("find",)


def test_the_sequence_is_the_order_and_not_the_number_of_a_step() -> None:
    expected = [call("a", 1), call("b", 2)]
    assert tool_score([call("a", 3), call("b", 7)], expected).sequence == 1
    assert tool_score([call("b", 1), call("a", 2)], expected).sequence == 0
    assert tool_score([call("b", 1), call("a", 2)], expected, sequence_matters=False).sequence == 1
    together = [call("a", 1), call("b", 1)]
    assert tool_score(together[::-1], together).sequence == 1


def test_weights_are_checked_and_used() -> None:
    only = {"selection": 0.0, "parameters": 1.0, "sequence": 0.0, "utilisation": 0.0}
    found = tool_score([call("a", x=1)], [call("a", x=1, y=1)], weights=only)
    assert found.overall == 0.5
    last = dict.fromkeys(EQUAL_WEIGHTS, 0.0) | {"utilisation": 1.0}
    assert tool_score([call("a")], [call("a")], weights=last).overall is None
    for wrong in (
        {},
        {**only, "other": 0.0},
        {**only, "selection": 0.5},
        {**only, "selection": -1},
    ):
        with pytest.raises(ValueError, match="weight"):
            checked_tool_weights(wrong)


def test_an_empty_conversation_is_rejected() -> None:
    with pytest.raises(ValueError, match="got none"):
        conversation_correct([])
    with pytest.raises(ValueError, match="n=0"):
        interaction_pass(0, 0, 3)
    found = analysed([row("c", 1), row("empty", None, None)])
    assert found.conversation_correctness.estimate.n == 1
    assert found.set_aside[0].reason == "the conversation has no interaction"


def test_tools_count_for_an_interaction_only_where_they_are_required() -> None:
    rows = [row("c", 1, calls=[], expected_calls=[{"name": "a"}]), row("d", 1)]
    assert analysed(rows).conversation_correctness.estimate.value == 1
    strict = analysed(rows, require_tools=True)
    assert [of.correct for of in strict.conversations] == [False, True]
    assert strict.tool_correctness.overall.value == 0
    assert strict.tool_correctness.n_without_expected == 1


def test_thresholds_are_reached_exactly() -> None:
    rows = [row("c", 1, 0.7), row("d", 1, 0.6999)]
    assert [of.correct for of in analysed(rows).conversations] == [True, False]
    half = row("c", 1, calls=[{"name": "a"}, {"name": "b"}], expected_calls=[{"name": "a"}])
    half["final_answer_uses_tools"] = True
    assert analysed([half], tool_threshold=0.875).tool_correctness.share_correct.value == 1
    assert analysed([half], tool_threshold=0.876).tool_correctness.share_correct.value == 0


def test_forbidden_and_required_tools_have_exact_names() -> None:
    rows = [
        row("c", 1, calls=[{"name": "cancel_order_all"}]),
        row("d", 1, calls=[{"name": "cancel_order"}, {"name": "verify"}]),
    ]
    found = analysed(rows, forbidden=("cancel_order",), required=("verify", "verif"))
    assert [(of.n_violating, of.examples) for of in found.forbidden] == [(1, ("d",))]
    assert [of.examples for of in found.required] == [("c",), ("c", "d")]
    assert found.forbidden[0].violations.value == 0.5


def test_every_later_call_needs_an_earlier_first_one() -> None:
    def calls(*names: str) -> list[dict[str, Any]]:
        return [{"name": name} for name in names]

    late = [{"name": "cancel", "step": 1}, {"name": "lookup", "step": 0}]
    rows = [
        row("kept", 1, calls=calls("lookup")), row("kept", 2, calls=calls("cancel", "cancel")),
        row("broken", 1, calls=calls("cancel", "lookup", "cancel")),
        row("kept by step", 1, calls=late), row("other", 1, calls=calls("cancel_all")),
        row("lost", 1, calls=calls("cancel")), row("lost", 2, "bad"),
        row("patterns", 1, calls=calls("write:b", "write:open", "write:c")),
    ]  # fmt: skip
    rules = (
        OrderRule(first="lookup", later="cancel"),
        OrderRule(first="write:open", later="write:*"),
    )
    found = analysed(rows, before=rules)
    lookup, opened = found.before
    assert (lookup.n_kept, lookup.n_broken) == (2, 1)
    assert (lookup.n_not_applicable, lookup.n_left_out) == (2, 1)
    assert lookup.kept.value == pytest.approx(2 / 3)
    assert lookup.kept.interval is not None
    assert [(b.conversation_id, b.calls) for b in lookup.broken] == [
        ("broken", ("1: cancel, call 1",)),
    ]  # fmt: skip
    # A call that the first tool names is none of the later ones.
    assert [b.calls for b in opened.broken] == [("1: write:b, call 1",)]
    lines = "\n".join(brief_lines(document(found)))
    assert "cancel without lookup before it, in 1 conversation" in lines
    assert not analysed(rows[4:5], before=rules).before[0].kept.ok


@pytest.mark.parametrize("rule", ["lookup", "lookup,", "a,a", "*,b", "a*b,c", "a," + "b" * 201])
def test_a_rule_of_order_that_is_none_is_refused(asr: Any, rule: str) -> None:
    Path("i.csv").write_text("conversation_id,interaction,answer_correct\na,1,1\n", "utf-8")
    assert "is not FIRST,LATER" in asr("tools", "i.csv", "--before", rule, code=2).stderr


def test_the_routes_of_the_documents(asr: Any) -> None:
    page = (Path(__file__).parents[2] / "docs" / "methods" / "tools.md").read_text("utf-8")
    example = page.partition("## Several agents")[2].partition("```csv\n")[2].partition("```")[0]
    Path("routes.csv").write_text(example, encoding="utf-8")
    made = data(asr("tools", "routes.csv", "--json"))["routes"]
    assert made["accuracy"]["value"] == pytest.approx(5 / 7)
    assert made["accuracy"]["interval"] is not None
    assert {of["name"]: (of["n"], of["share"]["value"]) for of in made["by_route"]} == {
        "billing": (4, 0.75), "flights": (3, pytest.approx(2 / 3)),
    }  # fmt: skip
    cells = [(of["expected_route"], of["routed_to"], of["n"]) for of in made["confusion"]]
    assert cells == [
        ("billing", "billing", 3), ("billing", "flights", 1), ("flights", "flights", 2),
        ("flights", None, 1),
    ]  # fmt: skip
    assert (made["right_then_correct"]["value"], made["wrong_then_correct"]["value"]) == (0.8, 0.0)
    assert [of["name"] for of in made["by_agent"]] == ["billing", "flights", "front desk"]
    assert "Routed as expected: 71.4 %" in asr("tools", "routes.csv").stdout
    # Without an agent of its own an interaction is that of the one that it was handed to.
    lines = [line.rpartition(",")[0] for line in example.splitlines()]
    Path("short.csv").write_text("\n".join(lines), encoding="utf-8")
    by_agent = data(asr("tools", "short.csv", "--json"))["routes"]["by_agent"]
    assert [(of["name"], of["n"]) for of in by_agent] == [("billing", 3), ("flights", 3)]


def test_precision_and_recall_by_tool() -> None:
    # find: 3 calls, 2 expected, 2 of them made; book: expected and never called.
    rows = [
        row(f"c{k}", 1, calls=[{"name": "find"}] * n, expected_calls=[{"name": "find"}, *more])
        for k, (n, more) in enumerate([(2, []), (1, [{"name": "book"}])])
    ]
    found = {of.name: of for of in analysed(rows).by_tool}
    assert found["find"].precision.value == pytest.approx(2 / 3)
    assert found["find"].recall.value == 1
    assert found["book"].recall.value == 0
    assert found["book"].precision.status.startswith("not_estimable: ")


def test_loops_are_counted_over_the_interactions_of_a_conversation() -> None:
    again = {"name": "a", "arguments": {"x": 1, "y": 2}}
    same = {"name": "a", "arguments": '{"y": 2.0, "x": 1}'}
    rows = [
        row("row", 1, calls=[again, same]), row("row", 2, calls=[again]),
        row("spread", 1, calls=[again, {"name": "b"}, same]), row("spread", 10, calls=[again]),
        row("spread", 2, calls=[{"name": "b"}]),
    ]  # fmt: skip
    found = analysed(rows)
    assert (found.loops.n_in_a_row, found.loops.n_anywhere) == (1, 2)
    assert found.loops.examples == ("row", "spread")
    assert found.conversations[1].repeats.in_a_row == 1


# Hostile cells


DEEP: list[Any] = []
for _ in range(60):
    DEEP = [DEEP]


@pytest.mark.parametrize(
    ("cells", "reason"),
    [
        ({"calls": "not json"}, "field 'calls': is not JSON"),
        ({"calls": '[{"name": "a"'}, "field 'calls': is not JSON"),
        ({"calls": "[" * 100_000}, "nested too deeply"),
        ({"calls": '{"name": "a"}'}, "must be a JSON list of calls"),
        ({"calls": 7}, "must be a JSON list of calls"),
        ({"calls": ["a"]}, "must be an object"),
        ({"calls": [{"arguments": {}}]}, "is missing"),
        ({"calls": [{"name": "a", "arguments": [1]}]}, "must be an object"),
        ({"calls": [{"name": "a", "arguments": {"x": math.nan}}]}, "is not usable"),
        ({"calls": '[{"name": "a", "arguments": {"x": Infinity}}]'}, "is not usable"),
        ({"calls": [{"name": "a", "arguments": {"x": DEEP}}]}, "nested too deeply"),
        ({"calls": [{"name": "a", "step": True}]}, "must be a number"),
        ({"calls": [{"name": "a"}] * (MOST_CALLS + 1)}, "has more than 1,000 calls"),
        ({"calls": [{"name": "a", "arguments": dict.fromkeys(map(str, range(300)), 1)}]}, "names"),
        ({"expected_calls": " " + "x" * 2_000_000}, "is longer than"),
        ({"final_answer_uses_tools": "maybe"}, "must say yes or no"),
        ({"answer_score": "nan"}, "and so is 'answer_correct'"),
        ({"answer_score": 1.5}, "must be a number from 0 to 1"),
        ({"answer_score": True}, "must be a number"),
        ({"answer_score": None}, "and so is 'answer_correct'"),
        ({"conversation_id": "a\nb"}, "without control characters"),
        ({"conversation_id": None}, "is missing"),
    ],
)
def test_a_bad_cell_sets_its_row_aside(cells: dict[str, Any], reason: str) -> None:
    found = analysed([row("good", 1), row("bad", 1) | cells, row("bad", 2)])
    assert [of.n for of in found.set_aside] == [1]
    assert reason in found.set_aside[0].reason + found.set_aside[0].examples[0]
    assert [of.correct for of in found.conversations][-1] is True
    assert found.n_interactions == 2
    json.dumps([str(of) for of in found.set_aside])


def test_rows_wrong_in_the_same_way_are_counted_together() -> None:
    rows = [row("c", k, calls="]" * (k + 1) + "x" * k) for k in range(8)]
    found = analysed([row("good", 1), *rows])
    assert [(of.reason, of.n) for of in found.set_aside] == [("field 'calls': is not JSON", 8)]
    assert len(found.set_aside[0].examples) == 5


def test_an_interaction_given_twice_leaves_its_conversation_out() -> None:
    found = analysed([row("c", 1), row("c", 1, 0.0), row("c", 2), row("d", 1)])
    assert [of.correct for of in found.conversations] == [None, True]
    assert (found.set_aside[0].n, found.conversation_correctness.n_left_out) == (2, 1)


def test_a_file_without_the_columns_is_refused() -> None:
    with pytest.raises(InputError, match="no column is calls"):
        read_interactions(pd.DataFrame([{k: v for k, v in row("c", 1).items() if k != "calls"}]))
    with pytest.raises(InputError, match="holds no interaction that can be read"):
        read_interactions(pd.DataFrame([row("c", None)]))


# Properties


NAMES = st.sampled_from(["find", "book", "pay"])
VALUES = st.one_of(st.integers(0, 2), st.booleans(), st.just("x"), st.none())
CALLS = st.lists(
    st.builds(
        lambda name, arguments, step: {"name": name, "arguments": arguments, "step": step},
        NAMES, st.dictionaries(st.sampled_from("ab"), VALUES, max_size=2),
        st.one_of(st.none(), st.integers(0, 3)),
    ),
    max_size=4,
)  # fmt: skip


@given(made=CALLS, expected=CALLS, uses=st.sampled_from([True, False, None]))
@settings(max_examples=60, deadline=None)
def test_scores_are_shares(made: Any, expected: Any, uses: bool | None) -> None:
    found = analysed(
        [row("c", 1, calls=made, expected_calls=expected, final_answer_uses_tools=uses)]
    )
    tools = found.interactions[0].tools
    assert tools is not None
    known = [tools.overall, tools.selection, tools.parameters, tools.sequence, tools.utilisation]
    assert all(value is None or 0 <= value <= 1 for value in known)
    assert (tools.overall == 0) or made or not expected
    same = analysed([row("c", 1, calls=made, expected_calls=made, final_answer_uses_tools=True)])
    assert same.interactions[0].tools_correct


@given(data=st.data())
@settings(max_examples=15, deadline=None)
def test_the_order_of_rows_plays_no_part(data: st.DataObject) -> None:
    rows = [
        row(f"c{c}", k, data.draw(st.sampled_from([0.2, 0.9, None])), calls=data.draw(CALLS),
            expected_calls=data.draw(st.one_of(st.none(), CALLS)))
        for c in range(3) for k in range(2)
    ]  # fmt: skip
    rows.append(row("fixed", 1))
    found, other = analysed(rows), analysed(data.draw(st.permutations(rows)))
    for name in ("tool_correctness", "bands", "by_tool", "loops", "conversations", "interactions"):
        assert getattr(found, name) == getattr(other, name), name
    assert [of.n for of in found.set_aside] == [of.n for of in other.set_aside]


def test_canonical_text_refuses_what_is_no_json() -> None:
    for value in (math.inf, {1: 2}, object()):
        with pytest.raises(ValueError, match="no JSON"):
            canonical(value)
    assert canonical(0.0) == canonical(-0.0) == canonical(0) != canonical(False)
    assert issubclass(FieldError, ValueError)


# Loops are the same everywhere


STEPS = st.lists(
    st.tuples(
        st.sampled_from(["find", "book", None]), st.sampled_from([None, "", "{}", "{ }"]),
        st.sampled_from([None, "", "found"]),
    ),
    max_size=8,
)  # fmt: skip


@given(runs=st.lists(STEPS, min_size=1, max_size=40))
@settings(max_examples=4, deadline=None)
def test_the_store_counts_loops_as_the_library_does(
    tmp_path_factory: pytest.TempPathFactory, runs: list[list[Any]]
) -> None:
    runs.append([("find", "{}", None)] * 3)

    def step(n: int, tool: str | None, arguments: str | None, result: str | None) -> Step:
        return Step(step_id=f"{n}", role="assistant", tool=tool, arguments=arguments, result=result)

    traces = [
        make_trace(
            k,
            steps=tuple(
                Step(
                    step_id=str(n), role="assistant", tool=tool, arguments=arguments, result=result
                )
                for n, (tool, arguments, result) in enumerate(steps)
            ),
        )
        for k, steps in enumerate(runs)
    ]
    with Store.open(tmp_path_factory.mktemp("loops") / "asr.duckdb", create=True) as store:
        store.ingest(traces)
        found = store.operation_frame().set_index("trace_id")
    repeats = {t.trace_id: repeats_of(t.steps) for t in traces}
    for name in ("loops", "loops_in_a_row"):
        assert {trace_id: getattr(of, name) for trace_id, of in repeats.items()} == {
            trace_id: loop == 1 for trace_id, loop in found[name].items()
        }


# The command


def test_the_command_reads_csv_and_jsonl_alike(asr: Any, tmp_path: Path) -> None:
    rows = [
        row(f"c{k}", 1, calls=[{"name": "a"}], expected_calls=[{"name": "a"}]) for k in range(6)
    ]
    lines = "\n".join(json.dumps(of) for of in rows)
    (tmp_path / "rows.jsonl").write_text(lines, "utf-8")
    frame = pd.DataFrame(rows)
    for name in ("calls", "expected_calls"):
        frame[name] = frame[name].map(json.dumps)
    frame.to_csv("rows.csv", index=False)
    pd.DataFrame(rows).to_parquet("rows.parquet")
    made = [data(asr("tools", f"rows.{kind}", "--json")) for kind in ("jsonl", "csv", "parquet")]
    for of in made:
        of.pop("source")
        of["reading"].pop("place")
    assert made[0] == made[1] == made[2]
    assert made[0]["conversation_correctness"]["n_conversations"] == 6
    said = asr("tools", "rows.csv").stdout
    assert said.startswith("Of 6 conversations, 6 are correct: 100.0 %")


@pytest.mark.parametrize("weights", ["selection=1", "a=b", "selection=.5,selection=.5", ""])
def test_weights_of_the_command_are_checked(asr: Any, weights: str) -> None:
    Path("rows.jsonl").write_text(json.dumps(row("c", 1)), "utf-8")
    assert "--tool-weights" in asr("tools", "rows.jsonl", "--tool-weights", weights, code=2).stderr


def test_lines_that_are_no_rows_are_skipped_too(asr: Any) -> None:
    good = json.dumps(row("c", 1))
    bomb = '{"conversation_id": "d", "interaction": 1, "calls": ' + "[" * 100_000 + "}"
    nan = json.dumps(row("e", 1, math.nan))
    Path("rows.jsonl").write_text("\n".join([good, bomb, "[1]", '{"conv', nan]), "utf-8")
    found = data(asr("tools", "rows.jsonl", "--json"))
    assert [of["n"] for of in found["set_aside"]] == [1]
    assert {of["code"]: of["rows"] for of in found["reading"]["left_out"]} == {
        "unreadable_row": 3, "missing_outcome": 1,
    }  # fmt: skip
    correctness = found["conversation_correctness"]
    assert (correctness["n_rows_of_none"], correctness["n_left_out"]) == (3, 1)
    assert (correctness["value"], correctness["n_conversations"]) == (1.0, 1)
    Path("rows.csv").write_text("conversation_id,interaction,answer_score\nc,1,1\nd,1\n", "utf-8")
    (left_out,) = data(asr("tools", "rows.csv", "--json"))["reading"]["left_out"]
    assert (left_out["code"], left_out["rows"]) == ("unreadable_row", 1)
    assert "Left out: 1 of 2 rows (1 unreadable, first line 3" in asr("tools", "rows.csv").stdout


def test_columns_and_words_of_other_tables_are_read() -> None:
    rows = pd.DataFrame(
        {"Conversation ID": ["a", "a", "b"], "Interaction": [1, 2, 1],
         "answerCorrect": ["Passed", "NO", "T"], "note": ["x", "", ""]}
    )  # fmt: skip
    made = analyse_tools(rows)
    assert made.conversation_correctness.estimate.value == 0.5
    assert made.reading.not_read == ("note",)
    own = rows.assign(answerCorrect=["fine", "NO", "T"])
    said = ReadingOptions(mapped={"fine": "pass"})
    assert analyse_tools(own, reading=said).interactions == made.interactions
    with pytest.raises(InputError, match="no 'fein' in the frame: answerCorrect"):
        analyse_tools(own, reading=ReadingOptions(mapped={"fein": "pass"}))
    twice = pd.concat([rows, rows[:1]])
    assert analyse_tools(twice).conversations == made.conversations


def test_nothing_to_judge_is_no_success(asr: Any) -> None:
    rows = [row("c", 1), row("c", 2, None)]
    Path("rows.jsonl").write_text("\n".join(map(json.dumps, rows)), "utf-8")
    assert "no conversation can be judged" in asr("tools", "rows.jsonl", code=1).stderr
