from dataclasses import fields
from pathlib import Path
from typing import Any

import pytest

from calibration.errors import InputError
from calibration.records import Trace
from reference_dataset.loader import LABELS, all_rows, forms, load_reference, published
from reference_dataset.records import FORMS, CanonicalEvidence, CanonicalLabel
from tests.reference_dataset.copies import Copy


def test_the_published_set_is_typed() -> None:
    dataset = load_reference()
    assert dataset.traces.keys() == dataset.labels.keys()
    assert tuple(dataset.forms) == FORMS
    assert all(isinstance(trace, Trace) for trace in dataset.traces.values())
    for trace_id, label in dataset.labels.items():
        assert isinstance(label, CanonicalLabel)
        assert (label.trace_id, label.overridden) == (trace_id, None)
        assert any(item.key for item in label.evidence) == (label.outcome == "hallucinated")
        for item in label.evidence:
            assert isinstance(item, CanonicalEvidence)
            assert isinstance(item.absent_from, tuple)


def test_a_trace_comes_whole(copy: Copy) -> None:
    """Everything that the line says is in the record."""

    def same(record: object, row: dict[str, Any], *names: str) -> bool:
        return all(getattr(record, name) == row[name] for name in names)

    loaded = load_reference(copy.folder).traces
    for row, _ in copy.pairs():
        trace = loaded[row["trace_id"]]
        assert trace.workflow == row["family"]
        assert same(trace, row, "prompt", "response", "status", "cost_usd", "latency_s", "units")
        for item, given in zip(trace.inputs, row["inputs"], strict=True):
            assert same(item, given, "name", "text")
        for goal, given in zip(trace.sub_goals, row["sub_goals"], strict=True):
            assert same(goal, given, "id", "text", "matters")
        names = ("step_id", "role", "content", "tool", "arguments", "result", "tokens_in")
        for step, given in zip(trace.steps, row["steps"], strict=True):
            assert same(step, given, *names)


def test_a_trace_holds_nothing_of_its_label() -> None:
    dataset = load_reference()
    canonical = {f.name for f in fields(CanonicalLabel)} - {"trace_id"}
    assert canonical.isdisjoint(f.name for f in fields(Trace))
    for trace_id, trace in dataset.traces.items():
        label = dataset.labels[trace_id]
        assert label.rationale not in repr(trace)
        assert label.why_not not in repr(trace)
        assert all(item.shows not in repr(trace) for item in label.evidence if len(item.shows) > 30)


def test_every_file_begins_with_the_canary() -> None:
    heads = [next(iter(all_rows(p))).data for p in published().rglob("*.jsonl")]
    assert len({head["canary"] for head in heads}) == 1
    assert {head["licence"] for head in heads} == {"CC-BY-4.0"}


def test_what_cannot_be_read_is_named(copy: Copy) -> None:
    for text, says in (
        ('{"trace_id": "research-001"}', "labels.jsonl, line 1: is no canonical"),
        ('{"trace_id": "a", "evidence": [3]}', "line 1: is no canonical"),
        ("{", "labels.jsonl, line 1: is not JSON"),  # and more of it in the table of breaks
    ):
        copy.path(LABELS).write_text(text, encoding="utf-8")
        with pytest.raises(InputError, match=says):
            load_reference(copy.folder)


def test_a_folder_of_something_else_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="not a reference dataset"):
        load_reference(tmp_path)
    with pytest.raises(InputError, match=r"forms\.toml: cannot be read"):
        forms(tmp_path)
