"""A report is made again from its JSON, and what differs is named."""

import json
from pathlib import Path
from typing import Any

import pytest

from calibration.analyses.success_rate.from_runs import report_on_files
from calibration.analyses.success_rate.report import (
    ReportOptions,
    Verification,
    saved_report,
    verify_report,
)
from calibration.errors import InputError
from calibration.reporting import to_json
from calibration.runs.sources import place_of_settings
from tests.analyses.production_files import MIXED10, runs, write


@pytest.fixture
def saved(tmp_path: Path) -> Path:
    path = write(tmp_path / "f.csv", runs(MIXED10, started_at="2026-10-01T00:00:00Z"))
    options = ReportOptions(n_resamples=100, targets={"complete": 0.7})
    made = report_on_files([path], options=options)
    file = tmp_path / "report.json"
    file.write_text(json.dumps(to_json.data(made)), encoding="utf-8")
    return file


def made_again(file: Path) -> Verification:
    found = saved_report(str(file), Path())
    now = report_on_files(place_of_settings(found.settings), options=found.options)
    return verify_report(found, now)


def change(file: Path, *keys: str, to: Any) -> None:
    data = json.loads(file.read_text("utf-8"))
    inner = data
    for key in keys[:-1]:
        inner = inner[key]
    inner[keys[-1]] = to
    file.write_text(json.dumps(data), encoding="utf-8")


def test_a_report_is_found_by_its_fingerprint(saved: Path) -> None:
    (saved.parent / "other.json").write_text("[1]")
    (saved.parent / "broken.json").write_text("{")
    fingerprint = json.loads(saved.read_text("utf-8"))["fingerprint"]
    assert saved_report(fingerprint, saved.parent).path == saved
    assert saved_report(fingerprint[:8].upper(), saved.parent).path == saved
    assert saved_report(str(saved), Path()).path == saved
    for named, why in (("0" * 64, "no report with"), ("abc", "neither"), ("zz" * 8, "neither")):
        with pytest.raises(InputError, match=why):
            saved_report(named, saved.parent)


def test_what_did_not_change_comes_out_the_same_and_changed_inputs_are_named(saved: Path) -> None:
    found = made_again(saved)
    assert (found.same, found.differences) == (True, ())
    assert found.saved == found.recomputed == json.loads(saved.read_text("utf-8"))["fingerprint"]
    rows = runs(MIXED10, started_at="2026-10-01T00:00:00Z")
    rows[0]["outcome"] = "abandoned"
    write(saved.parent / "f.csv", rows)
    found = made_again(saved)
    assert not found.same
    text = "\n".join(found.differences)
    assert "f.csv has changed" in text
    assert "the runs are not the same" in text
    assert "asr: 0.49" in text
    (saved.parent / "f.csv").unlink()
    with pytest.raises(InputError, match="no such file"):
        made_again(saved)


@pytest.mark.long
@pytest.mark.parametrize(
    ("keys", "to", "why"),
    [
        (("asr", "value"), 0.99, "asr: 0.99 then, 0.49"),
        (("asr", "interval"), [0.1, 0.2], "asr, lower limit: 0.1 then"),
        (("pass_rate", "value"), None, "pass_rate: None then"),
        (("origin", "version"), "9.9", "version: 9.9 then"),
        (("origin", "taxonomy", "fingerprint"), "f" * 64, "taxonomy: "),
        (("fingerprint",), "0" * 64, "do not belong to its fingerprint"),
        (("origin", "settings", "seed"), 5, ""),
    ],
)
def test_what_was_altered_is_named(saved: Path, keys: tuple[str, ...], to: Any, why: str) -> None:
    change(saved, *keys, to=to)
    found = made_again(saved)
    assert not found.same
    assert why in "\n".join(found.differences)


def test_what_is_no_report_is_refused(saved: Path) -> None:
    whole = saved.read_text("utf-8")
    for keys, to in ("origin", None), ("origin settings", {}), ("asr value", "much"), ("asr", 3):
        saved.write_text(whole, encoding="utf-8")
        change(saved, *keys.split(), to=to)
        with pytest.raises(InputError):
            made_again(saved)
