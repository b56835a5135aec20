"""The public functions: ten of them, quick to import, and true to their page."""

import doctest
import json
import subprocess
import sys
from pathlib import Path

import pandas as pd
import pytest

import calibration
from calibration.errors import InputError, NoRunsError

PAGE = Path(__file__).parents[1] / "docs" / "library.md"
NAMES = [
    "agent_success_rate", "calibrate", "compare", "default_taxonomy", "measure_agreement",
    "open_store", "pass_at_k", "plan_agreement", "plan_labels", "read_traces",
]  # fmt: skip


def test_the_page_shows_what_the_functions_give() -> None:
    found = doctest.testfile(str(PAGE), module_relative=False)
    assert found.attempted >= 20
    assert found.failed == 0


def test_ten_functions_are_public_and_no_other_name() -> None:
    assert calibration.__all__ == NAMES
    assert all(callable(getattr(calibration, name)) for name in NAMES)
    with pytest.raises(AttributeError, match="no attribute 'nothing'"):
        _ = calibration.nothing


def test_importing_the_package_loads_nothing_slow() -> None:
    code = "import sys, calibration; print([m for m in sys.modules if m in sys.argv[1:]])"
    words = [sys.executable, "-c", code, "scipy.stats", "streamlit", "pandas", "duckdb"]
    assert subprocess.run(words, capture_output=True, text=True, check=True).stdout == "[]\n"


def test_a_result_is_a_frame_json_and_an_escaped_table() -> None:
    ratings = pd.DataFrame({"item": list("abcd"), "one": list("ynny"), "two": list("yyny")})
    found = calibration.measure_agreement(ratings)
    assert list(found.to_frame().columns) == [
        "estimate", "value", "low", "high", "n", "method", "confidence_level", "status",
    ]  # fmt: skip
    json.dumps(found.to_dict(), allow_nan=False)
    hostile = calibration.api.Result(
        title="<script>", analysis=None, estimates=dict(found.estimates)
    )
    assert "<script>" not in hostile._repr_html_()
    assert hostile.document().title == "<script>"
    assert set(hostile.to_dict()["estimates"]) == set(found.estimates)


def test_what_a_frame_lacks_is_named() -> None:
    with pytest.raises(InputError, match="no column holds the outcome"):
        calibration.pass_at_k(pd.DataFrame({"task_id": [1]}))
    with pytest.raises(InputError, match="'outcome' is missing"):
        calibration.calibrate(pd.DataFrame({"a": [1]}), pd.DataFrame({"a": [1]}))
    with pytest.raises(InputError, match="either n or half_width"):
        calibration.plan_labels()


def test_an_argument_that_a_function_does_not_use_is_an_error() -> None:
    runs = pd.DataFrame({"trace_id": list("ab"), "passed": [True, False]})
    with pytest.raises(TypeError, match=r"'colums'.*did you mean 'columns'"):
        calibration.agent_success_rate(runs, colums={"outcome": "passed"})  # type: ignore[call-arg]
    with pytest.raises(TypeError, match="'scale'"):
        calibration.measure_agreement(runs, scale=(1, 5))  # type: ignore[call-arg]
    with pytest.raises(TypeError, match="'max_left_out'"):
        calibration.calibrate(runs, runs, max_left_out=0.1)  # type: ignore[call-arg]


def test_how_a_table_is_read_is_said_in_the_same_words_everywhere() -> None:
    ids = [f"r{k}" for k in range(8)] * 2
    days = ["2026-01-01"] * 8 + ["2026-01-02"] * 8
    runs = pd.DataFrame({"Key": ids, "ok": ["fail"] * 8 + ["pass"] * 8, "date": days})
    named = {"trace_id": "Key", "outcome": "ok"}
    with pytest.raises(NoRunsError):
        calibration.agent_success_rate(runs, columns=named)
    latest = calibration.agent_success_rate(runs, columns=named, latest=True)
    assert latest.estimates["asr"].value == 1.0
    first = calibration.agent_success_rate(runs, columns=named, where={"date": "2026-01-01"})
    assert first.estimates["asr"].value == 0.0
