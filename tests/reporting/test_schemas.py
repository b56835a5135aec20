"""The published schemas: made from the types of the results, and kept by what commands print."""

import json
import os
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from typing import Any

import jsonschema
import pytest

import calibration.reporting
from calibration.reporting import to_json

SCHEMAS = Path(calibration.reporting.__file__).parent / "schemas"
COMMANDS = Path(__file__).parents[1] / "snapshots" / "commands"
SCHEMA_OF = {
    "report": "report",
    "look": "look",
    "compare": "comparison",
    "gate": "gates",
    "grade": "grades",
    "layers": "layers",
    "tools": "tools",
    "tasks": "tasks",
    "audit": "audit",
    "sample": "batch",
    "escalate": "batch",
    "calibrate": "calibration",
    "status": "status",
    "reliability": "reliability",
    "trials": "trials",
}

TAXONOMY = {"suggest": "ceilings", "fit-credit": "fitted_credit"}
PLANS = {
    "labels": "plan",
    "stop": "stopping",
    "agreement": "plan_agreement",
    "trials": "plan_trials",
}


@pytest.mark.parametrize("name", to_json.ROOTS)
def test_a_schema_is_what_the_types_say(name: str) -> None:
    made = to_json.schema_of(name)
    jsonschema.Draft202012Validator.check_schema(made)
    if os.environ.get("ASR_SNAPSHOTS") == "write":
        (SCHEMAS / f"{name}.schema.json").write_text(to_json.as_text(made), encoding="utf-8")
    assert to_json.schema(name) == made, "ASR_SNAPSHOTS=write writes it"


def test_shapes_are_of_classes_by_their_own_names() -> None:
    for name in (*to_json.SHAPES, *to_json.NAMES):
        module, _, own = name.rpartition(".")
        found = getattr(import_module(module), own)
        assert f"{found.__module__}.{found.__qualname__}" == name


def test_every_schema_is_of_a_result() -> None:
    assert {file.name for file in SCHEMAS.iterdir()} == {f"{n}.schema.json" for n in to_json.ROOTS}


def printed() -> Iterator[tuple[str, str, Any]]:
    """Yield snapshot, schema and content of every JSON that a command printed."""
    for file in sorted(COMMANDS.glob("*.txt")):
        for run in file.read_text(encoding="utf-8").split("$ asr ")[1:]:
            command = run.split()[0]
            _, _, shown = run.partition("--- stdout\n")
            if not shown.startswith("{"):
                continue
            found, _ = json.JSONDecoder().raw_decode(shown)
            if command == "agreement":
                yield file.stem, "agreement" if "batch_id" in found else "agreement_file", found
            elif command == "tools" and "n_runs" in found:
                yield file.stem, "routes", found
            elif command == "plan":
                yield file.stem, PLANS[run.split()[1]], found
            elif command == "taxonomy" and run.split()[1] in TAXONOMY:
                yield file.stem, TAXONOMY[run.split()[1]], found
            elif found.get("format") == "asr-ranking/1":
                yield file.stem, "ranking", found
            elif command in SCHEMA_OF:
                yield file.stem, SCHEMA_OF[command], found


def test_what_commands_print_satisfies_its_schema() -> None:
    checks = {name: jsonschema.Draft202012Validator(to_json.schema(name)) for name in to_json.ROOTS}
    seen = set()
    for snapshot, name, found in printed():
        errors = [
            f"{snapshot}: {e.json_path}: {e.message:.200}" for e in checks[name].iter_errors(found)
        ]
        assert not errors, errors[:5]
        seen.add(name)
    assert seen == set(to_json.ROOTS)
