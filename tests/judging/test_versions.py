from dataclasses import replace
from typing import Any

import pytest

from calibration.errors import InputError
from calibration.judging.versions import (
    changed_fields,
    new_version,
    tree_digest,
    version_from_dict,
)
from calibration.taxonomy import default_taxonomy

TAXONOMY = default_taxonomy()
VERSION = new_version(model="m", endpoint="vllm", taxonomy=TAXONOMY, handbook={"output": "Any."})

# Another value of each field.
OTHERS: dict[str, Any] = {
    "model": "n", "endpoint": "sglang", "role": "Be brief.", "handbook": (("output", "None."),),
    "tree_version": "2", "tree_sha256": "0", "few_shots": ("t1",), "few_shots_sha256": "0",
    "samples": 1, "temperature": 0.0, "seed": 1, "token_limit": 100, "reasoning_effort": "low",
    "structured": "tool", "plan": "per_node", "thoughts": "withheld", "context_tokens": 8_000,
    "characters_per_token": 4.0, "renderer": "2", "reader": "2",
}  # fmt: skip


def test_every_field_changes_the_judge_and_is_named_in_the_difference() -> None:
    assert set(OTHERS) == set(VERSION.to_dict())
    ids = {VERSION.judge_id}
    for name, value in OTHERS.items():
        other = replace(VERSION, **{name: value})
        ids.add(other.judge_id)
        (line,) = changed_fields(VERSION, other)
        assert line.startswith(name)
        # Answers that are paid for are read again by another reader: same prompts.
        assert (other.prompt_id == VERSION.prompt_id) == (name == "reader")
    assert len(ids) == len(OTHERS) + 1
    assert changed_fields(VERSION, VERSION) == []


def test_a_version_comes_back_from_json_as_the_same_judge() -> None:
    plain = VERSION.to_dict() | {"temperature": 0}
    assert version_from_dict(plain).judge_id == replace(VERSION, temperature=0.0).judge_id


@pytest.mark.parametrize(
    ("name", "value", "says"),
    [
        ("model", " ", "model must be a text of 1 to 200 characters, got ' '"),
        ("samples", True, "samples must be a whole number from 1 to 25, got True"),
        ("samples", 26, "samples must be a whole number from 1 to 25, got 26"),
        ("temperature", float("nan"), "temperature must be a number from 0 to 2, got nan"),
        ("plan", "all", "plan must be one_call, per_node or plan_first, got 'all'"),
        ("few_shots", ["t1", "t1"], "few_shots names trace 't1' twice"),
        ("handbook", [1], r"handbook must be an object, got \[1\]"),
        ("context_tokens", 4_000, r"context_tokens must exceed token_limit \(4,000\), got 4,000"),
        ("handbook", {"output": "x" * 100_001}, "handbook must hold at most 100,000 characters"),
    ],
)
def test_a_bad_field_is_named(name: str, value: object, says: str) -> None:
    with pytest.raises(InputError, match=f"judge.json: {says}"):
        version_from_dict(VERSION.to_dict() | {name: value}, where="judge.json")


@pytest.mark.parametrize("data", [None, [], "x", {"samples": 1}])
def test_what_is_no_version_is_refused(data: object) -> None:
    with pytest.raises(InputError, match="judge version"):
        version_from_dict(data)


def test_credits_and_ceilings_are_no_part_of_the_tree() -> None:
    classes = tuple(replace(c, credit=0.5) for c in TAXONOMY.classes)
    assert tree_digest(replace(TAXONOMY, classes=classes, workflows=())) == tree_digest(TAXONOMY)
    nodes = (replace(TAXONOMY.nodes[0], rule="Another."), *TAXONOMY.nodes[1:])
    assert tree_digest(replace(TAXONOMY, nodes=nodes)) != tree_digest(TAXONOMY)
