import json
from importlib.resources import files
from pathlib import Path
from typing import Any

import pytest

from calibration.trace_formats import load_settings, preview, read_traces
from calibration.trace_formats.own_records import FIELDS

# Comes with Streamlit (through Altair); it has no type stubs.
jsonschema = pytest.importorskip("jsonschema")
SCHEMA = json.loads(files("calibration.trace_formats").joinpath("trace.schema.json").read_text())
DOCS = Path(__file__).parents[2] / "docs" / "trace-format.md"


def test_published_schema_names_the_fields_that_are_read() -> None:
    jsonschema.Draft202012Validator.check_schema(SCHEMA)
    assert set(SCHEMA["$defs"]["trace"]["properties"]) == set(FIELDS)


@pytest.mark.parametrize("name", ["records.jsonl", "transcripts.jsonl"])
def test_fixtures_follow_the_published_schema(fixtures: Path, name: str) -> None:
    for line in (fixtures / name).read_text().splitlines():
        jsonschema.validate(json.loads(line), SCHEMA)


def test_schema_refuses_what_the_importer_refuses() -> None:
    row = {"trace_id": "a", "workflow": "w", "prompt": "p"}
    valid = jsonschema.Draft202012Validator(SCHEMA).is_valid
    assert valid(row)
    changes: list[dict[str, Any]] = [{"cost_usd": -1}, {"cost_usd": "1"}, {"steps": [{}]}]
    for change in changes:
        assert not valid(row | change)
    assert not valid({"trace_id": "a", "workflow": "w"})


def test_examples_of_the_documentation_can_be_imported(write: Any) -> None:
    before, _, results = DOCS.read_text().partition("\n## Result files of benchmarks\n")
    # Result files are no traces: tests/runs/test_benchmark_results.py reads them.
    blocks = (before + results[results.index("\n## ") :]).split("```")[1::2]
    texts = {kind: [b for b in blocks if b.startswith(kind)] for kind in ("json", "csv", "toml")}
    for block in texts["json"]:
        jsonschema.validate(json.loads(block.removeprefix("json")), SCHEMA)
        assert preview(read_traces(write("a.jsonl", block.removeprefix("json")))).n_traces == 1
    rows = preview(read_traces(write("a.csv", texts["csv"][0].removeprefix("csv\n"))))
    assert (rows.n_traces, rows.n_set_aside, rows.costs_known) == (2, 0, 1)
    settings = load_settings(write("map.toml", texts["toml"][0].removeprefix("toml")))
    assert settings.workflow_for("airline") == "flight_support"
