"""The public functions: ten of them, quick to import, and true to their page."""

import doctest
import json
import subprocess
import sys
from pathlib import Path

import pandas as pd
import pytest

import calibration
from calibration.errors import InputError

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
