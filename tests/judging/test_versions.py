import json
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from calibration.errors import InputError
from calibration.judging.requests import Capabilities
from calibration.judging.versions import (
    JudgeVersion,
    canonical_json,
    changed_fields,
    misfit,
    new_version,
    sha256_of,
    tree_digest,
    version_from_dict,
)
from calibration.taxonomy import default_taxonomy
from tests.judging.makers import other_tree


def make_version(**settings: Any) -> JudgeVersion:
    return new_version(model="m", endpoint="vllm", taxonomy=default_taxonomy(), **settings)


CHANGES: dict[str, object] = {
    "model": "m2",
    "endpoint": "ollama",
    "role": "You judge.",
    "handbook": (("output", "Some words."),),
    "tree_version": "2",
    "tree_sha256": "0",
    "few_shots": ("t1",),
    "few_shots_sha256": "0",
    "samples": 5,
    "temperature": 0.5,
    "seed": 3,
    "token_limit": 500,
    "reasoning_effort": "low",
    "structured": "tool",
    "plan": "per_node",
    "thoughts": "withheld",
    "context_tokens": 32_000,
    "characters_per_token": 3.0,
    "renderer": "1",
    "reader": "1",
}


def test_everything_in_a_version_makes_another_judge() -> None:
    version = make_version()
    assert set(CHANGES) == set(version.to_dict())
    ids = {replace(version, **{name: value}).judge_id for name, value in CHANGES.items()}  # type: ignore[arg-type]
    assert len(ids | {version.judge_id}) == len(CHANGES) + 1


def test_only_the_reader_leaves_the_prompts_as_they_are() -> None:
    version = make_version()
    same = [
        name
        for name, value in CHANGES.items()
        if replace(version, **{name: value}).prompt_id == version.prompt_id  # type: ignore[arg-type]
    ]
    assert same == ["reader"]


def test_the_identity_is_that_of_the_canonical_json() -> None:
    version = make_version()
    assert version.judge_id == sha256_of(json.loads(canonical_json(version.to_dict())))[:16]
    assert replace(version, temperature=1).judge_id == replace(version, temperature=1.0).judge_id


@given(st.sampled_from(sorted(CHANGES)))
def test_a_version_survives_json(name: str) -> None:
    version = replace(make_version(), **{name: CHANGES[name]})  # type: ignore[arg-type]
    assert version_from_dict(json.loads(json.dumps(version.to_dict()))) == version


@pytest.mark.parametrize(
    ("name", "value", "why"),
    [
        ("model", "", "model must be a text of 1 to 200 characters, got ''"),
        ("samples", 0, "samples must be a whole number from 1 to 25, got 0"),
        ("samples", True, "samples must be a whole number from 1 to 25, got True"),
        ("samples", None, "samples must be a whole number from 1 to 25, got None"),
        ("temperature", "hot", "temperature must be a number from 0 to 2, got 'hot'"),
        ("temperature", float("nan"), "temperature must be a number from 0 to 2, got nan"),
        ("plan", "all", "plan must be one_call, per_node or plan_first, got 'all'"),
        ("thoughts", "some", "thoughts must be shown or withheld, got 'some'"),
        ("few_shots", ["a", "a"], "few_shots names trace 'a' twice"),
        ("few_shots", [1], "few_shots must hold ids of traces, got 1"),
        ("few_shots", "a", "few_shots must be a list, got 'a'"),
        ("handbook", {"output": 3}, "handbook must hold a text by question, got ('output', 3)"),
        ("handbook", [], "handbook must be an object, got []"),
        ("handbook", {"output": "x" * 100_001}, "handbook must hold at most 100,000 characters"),
        ("context_tokens", 2_000, "context_tokens must exceed token_limit (4,000), got 2,000"),
    ],
)  # fmt: skip
def test_an_error_names_the_field_and_what_it_must_be(name: str, value: object, why: str) -> None:
    with pytest.raises(InputError) as error:
        version_from_dict(make_version().to_dict() | {name: value}, where="judge.json")
    assert str(error.value) == f"judge.json: {why}"


def test_an_error_names_what_is_missing_or_no_object() -> None:
    data = make_version().to_dict()
    del data["plan"]
    with pytest.raises(InputError, match=r"^judge version: field 'plan' is missing$"):
        version_from_dict(data)
    with pytest.raises(InputError, match=r"^judge version: must be an object, got \[\]$"):
        version_from_dict([])


def test_the_difference_of_two_versions_is_readable() -> None:
    old = make_version(handbook={"output": "a" * 200 + " old end", "fabrication": "Same."})
    new = replace(
        old,
        few_shots=("t1", "t2"),
        handbook=(("output", "a" * 200 + " new end"), ("fabrication", "Same.")),
        seed=7,
    )
    assert changed_fields(old, old) == []
    assert changed_fields(old, new) == [
        "few_shots: none -> t1, t2",
        "seed: none -> 7",
        f"handbook, output: …{'a' * 19} old end -> …{'a' * 19} new end",
    ]
    dropped = changed_fields(old, replace(old, handbook=(("output", old.handbook[0][1]),)))
    assert dropped == ["handbook, fabrication: Same. -> none"]


def test_credits_are_no_part_of_a_judge_and_questions_are() -> None:
    assert tree_digest(other_tree()) != tree_digest(default_taxonomy())


def test_handbook_excerpts_of_other_questions_are_left_out() -> None:
    version = make_version(handbook={"fabrication": "F", "elsewhere": "E", "output": "O"})
    assert version.handbook == (("output", "O"), ("fabrication", "F"))


@pytest.mark.parametrize(
    ("settings", "able", "why"),
    [
        ({"structured": "tool"}, {"structured": "plain"}, "mode tool, the probe found plain"),
        ({"temperature": 0}, {"temperature": False}, "wants a temperature, which"),
        ({"seed": 0}, {"seed": False}, "wants a seed, which"),
        ({"context_tokens": 9_000}, {"context": 8_192}, "9,000 tokens of context, the endpoint"),
    ],
)  # fmt: skip
def test_a_version_that_an_endpoint_cannot_serve_is_named(
    settings: dict[str, Any], able: dict[str, Any], why: str
) -> None:
    version = make_version(**{"structured": "plain"} | settings)
    assert why in (misfit(version, Capabilities(**able)) or "")
    assert misfit(make_version(structured="plain"), Capabilities()) is None
