"""Fields of a record that reliability is computed from; reviewers and judges see none of them."""

import json
from collections.abc import Mapping
from typing import TypedDict

from calibration.records import (
    MAX_CONSTRAINT,
    MAX_VIOLATIONS,
    PERTURBATIONS,
    SEVERITIES,
    ExpectedCall,
    Violation,
)
from calibration.trace_formats.fields import (
    MAX_METADATA_CHARS,
    FieldError,
    as_list,
    as_object,
    identifier,
    number,
    outcome,
    part,
    plain_json,
    required_id,
    whole,
    wrong,
)

RELIABILITY_FIELDS = (
    "perturbation",
    "confidence",
    "context_tokens",
    "expected_calls",
    "violations",
)
MAX_EXPECTED_CALLS = 500


class ReliabilityFields(TypedDict):
    """The fields of a trace that a record may hold, by name."""

    perturbation: str | None
    confidence: float | None
    context_tokens: int | None
    expected_calls: tuple[ExpectedCall, ...] | None
    violations: tuple[Violation, ...] | None


def read_reliability(row: Mapping[str, object]) -> ReliabilityFields:
    """Check the fields of a record that reliability needs; errors name the field."""
    arm = row.get("perturbation")
    return {
        "perturbation": None if arm is None else outcome(arm, "perturbation", PERTURBATIONS),
        "confidence": number(row.get("confidence"), "confidence", maximum=1),
        "context_tokens": whole(row.get("context_tokens"), "context_tokens"),
        "expected_calls": _expected_calls(row.get("expected_calls")),
        "violations": None if (found := row.get("violations")) is None else read_violations(found),
    }


def _expected_calls(value: object) -> tuple[ExpectedCall, ...] | None:
    name = "expected_calls"
    if value is None:
        return None
    calls = []
    for index, item in enumerate(_listed(value, name, MAX_EXPECTED_CALLS), start=1):
        where = f"{name}[{index}]"
        entry = as_object(item, where)
        calls.append(
            ExpectedCall(
                name=required_id(entry.get("name"), f"{where}.name"),
                arguments=plain_json(entry.get("arguments")),
                step=identifier(entry.get("step"), f"{where}.step"),
            )
        )
    if not _fits(calls):
        raise FieldError(f"field {name!r}: has more than {MAX_METADATA_CHARS:,} characters")
    return tuple(calls)


def read_violations(value: object, name: str = "violations") -> tuple[Violation, ...]:
    """Check a list of objects with `constraint`, `severity` and perhaps `step`."""
    found = []
    for index, item in enumerate(_listed(value, name, MAX_VIOLATIONS), start=1):
        where = f"{name}[{index}]"
        entry = as_object(item, where)
        constraint = required_id(entry.get("constraint"), f"{where}.constraint")
        if len(constraint) > MAX_CONSTRAINT:
            rule = f"must have at most {MAX_CONSTRAINT} characters"
            raise wrong(f"{where}.constraint", rule, constraint)
        found.append(
            Violation(
                constraint=constraint,
                severity=outcome(entry.get("severity"), f"{where}.severity", SEVERITIES),
                step=identifier(entry.get("step"), f"{where}.step"),
            )
        )
    return tuple(found)


def benchmark_calls(actions: object, arguments: str) -> tuple[ExpectedCall, ...] | None:
    """Return the calls that a benchmark expects of the agent; `arguments` is their field.

    What the simulated user is to call, and what names no tool, is left out. None where there are
    too many: part of them would be another task.
    """
    if not isinstance(actions, list):
        return None
    calls = [
        ExpectedCall(name=name, arguments=plain_json(part(action, arguments)))
        for action in actions
        if part(action, "requestor") != "user"
        and isinstance(name := part(action, "name"), str)
        and name.strip()
    ]
    return tuple(calls) if len(calls) <= MAX_EXPECTED_CALLS and _fits(calls) else None


def _listed(value: object, name: str, most: int) -> list[object]:
    items = as_list(value, name)
    if len(items) > most:
        raise FieldError(f"field {name!r}: has {len(items):,} entries; at most {most} are taken in")
    return items


def _fits(calls: list[ExpectedCall]) -> bool:
    size = sum(
        len(call.name) + len(json.dumps(call.arguments, ensure_ascii=False)) for call in calls
    )
    return size <= MAX_METADATA_CHARS
