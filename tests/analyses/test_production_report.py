"""The report on production files, with numbers that can be worked out by hand."""

from pathlib import Path
from typing import Any

import pytest

from calibration.analyses.success_rate.from_runs import report_on_files, write_work_lists
from calibration.analyses.success_rate.report import ReportOptions, SuccessRateReport
from calibration.errors import CalibrationError, InputError
from calibration.reporting.document import brief_lines
from calibration.reporting.sections.success_rate import document
from calibration.taxonomy import Taxonomy, default_taxonomy
from reference_dataset.loader import load_reference
from tests.analyses.production_files import HOSTILE, MIXED10, alike, fork, runs, write
from tests.analyses.worlds import known


def report(path: str, taxonomy: Taxonomy | None = None, **options: Any) -> SuccessRateReport:
    options = {"n_resamples": 200} | options
    return report_on_files([path], options=ReportOptions(**options), taxonomy=taxonomy)


@pytest.fixture
def mixed(tmp_path: Path) -> str:
    return write(tmp_path / "mixed.csv", runs(MIXED10))


def test_every_number_of_ten_runs(mixed: str) -> None:
    found = report(mixed)
    assert (found.n, found.n_tasks, found.calibrated) == (10, None, False)
    # Scores 1, 1, 1, 1, .5, 0, .4, 0, 0, 0.
    assert found.asr.value == pytest.approx(0.49)
    # Sum of squares 4.41 - 10 x .49^2 = 2.009; se = sqrt(2.009 / 9 / 10); t(9) = 2.262157.
    assert found.asr.interval == pytest.approx((0.152020, 0.827980), abs=1e-5)
    assert found.asr.method == "ratio of totals over 10 runs, t"
    assert found.asr_gross.value == pytest.approx(0.68)  # (6 + 2 x .4) / 10
    assert found.asr_literal.value == pytest.approx(0.28)  # .68 less (.5 + 1 + .5 + 1 + 1) / 10
    assert found.asr_literal.interval is None
    assert found.asr_without_abandoned.value == pytest.approx(4.9 / 9)
    assert found.pass_rate.value == pytest.approx(0.6)
    assert found.mean_effective_penalty == pytest.approx(0.19)
    assert found.identity == (
        "ASR 0.490 = 1 x complete 0.600 + 0.4 x partial_plus 0.200 - mean effective penalty 0.190"
    )
    assert found.asr_range == pytest.approx((0.49, 0.49))
    assert [c.share.value for c in found.classes] == pytest.approx([0.6, 0.2, 0, 0.1, 0.1])
    at = {row.name: row.asr.value for row in found.sensitivity}
    assert at["partial credit 0.3"] == pytest.approx(0.48)
    assert at["partial credit 0.4"] == pytest.approx(0.49)
    assert at["partial credit 0.5"] == pytest.approx(0.50)  # .5 - .5 of the dear one is 0
    assert not any("default" in name for name in at)
    cost = found.cost
    assert (cost.n, cost.n_known, cost.coverage) == (10, 10, 1.0)
    assert cost.mean == pytest.approx(3.4)
    # 1 1 1 1 1 3 3 5 8 10: the fifth, the ninth and the last.
    assert (cost.p50, cost.p90, cost.p99) == (1.0, 8.0, 10.0)
    assert known(cost.share_above_ceiling).value == pytest.approx(0.5)
    assert cost.per_success.value == pytest.approx(34 / 6)


def two_weeks(tmp_path: Path) -> str:
    before = alike("a", {"complete": 60, "abandoned": 40}, started_at="2026-09-28T10:00:00Z")
    after = alike("b", {"complete": 90, "abandoned": 10}, started_at="2026-10-05T10:00:00Z")
    return write(tmp_path / "weeks.csv", before + after)


def test_what_a_week_or_a_window_is_compared_with(tmp_path: Path, mixed: str) -> None:
    path = two_weeks(tmp_path)
    weeks = [(w.week, w.n, w.rate.value) for w in known(report(path).weekly).weeks]
    assert weeks == [("2026-W40", 100, 0.6), ("2026-W41", 100, 0.9)]
    change = known(report(path).change)
    assert (change.earlier, change.later) == ("2026-W40", "2026-W41")
    assert change.asr.estimate.value == pytest.approx(0.3)
    moved = {c.outcome: c for c in change.classes}
    assert moved["abandoned"].change.estimate.value == pytest.approx(-0.3)
    assert {name for name, c in moved.items() if c.flagged} == {"complete", "abandoned"}
    # A window with the one of its length before.
    found = report(path, since="2026-W41", until="2026-W41")
    assert (found.n, found.asr.value) == (100, 0.9)
    assert known(found.change).before.value == pytest.approx(0.6)
    assert known(found.change).later == "2026-W41"
    week = known(report(path, since="2026-10-01", until="2026-10-07").change)
    assert (week.later, week.before.value) == ("2026-10-01 to 2026-10-07", 0.6)
    file = known(report(path, compare_to=mixed).change)
    assert file.before.value == pytest.approx(0.49)
    assert file.earlier == mixed
    days = report(path, since="2026-09-28", until="2026-10-04", compare_to=None)
    assert (days.n, days.change) == (100, None)
    with pytest.raises(CalibrationError, match="no run is left"):
        report(path, since="2027-01-01", until="2027-01-02", compare_to=None)


def test_a_window_with_no_run_before_it_is_reported_without_a_change(tmp_path: Path) -> None:
    path = two_weeks(tmp_path)
    week: dict[str, Any] = {"since": "2026-W40", "until": "2026-W40"}
    first = report(path, **week)
    assert first.asr == report(path, **week, compare_to=None).asr
    assert first.change is None
    assert first.why_no_change == (
        "the window before, from 2026-09-21 to 2026-09-27, holds no run to compare with"
    )
    assert f"change: none; {first.why_no_change}" in "\n".join(brief_lines(document(first)))
    assert report(path, **week, timezone="Asia/Tokyo").why_no_change == first.why_no_change
    without_end = report(path, since="2026-W41")
    assert (without_end.change, without_end.n) == (None, report(path, since="2026-W41",
                                                               until="2026-W41").n)  # fmt: skip
    assert without_end.why_no_change.startswith("a window without --to has no length")
    assert report(path, since="2026-W41", until="2026-W41").why_no_change == ""
    # A file that was named is another matter.
    (bad := tmp_path / "bad.csv").write_text("trace_id,workflow,outcome,cost_usd\na,research,?,1\n")
    with pytest.raises(CalibrationError, match="no run is left"):
        report(path, **week, compare_to=str(bad))


@pytest.mark.parametrize(
    ("options", "why"),
    [
        ({"since": "soon"}, "--from: 'soon' is not a day"),
        ({"since": "2026-W60"}, "--from: '2026-W60' is not a day"),
        ({"since": "2026-10-02", "until": "2026-10-01"}, "is not before"),
        ({"seed": -1}, "seed must be 0 or more"),
    ],
)
def test_what_cannot_be_asked(tmp_path: Path, options: dict[str, Any], why: str) -> None:
    path = two_weeks(tmp_path)
    with pytest.raises(InputError, match=why):
        report(path, **options)


def test_work_lists_name_the_first_runs_of_each_class(tmp_path: Path) -> None:
    path = two_weeks(tmp_path)
    abandoned = {w.outcome: w for w in report(path).work_lists}["abandoned"]
    assert (abandoned.n, abandoned.goes_to) == (50, "infrastructure")
    assert abandoned.by_week == (("2026-W40", 40), ("2026-W41", 10))
    assert [run.trace_id for run in abandoned.first[:2]] == ["a060", "a061"]
    assert abandoned.first[0].week == "2026-W40"
    assert len(abandoned.first) == 20


def test_work_lists_for_a_spreadsheet_hold_no_formula(tmp_path: Path) -> None:
    rows = alike("x", {"abandoned": len(HOSTILE)})
    for row, name in zip(rows, HOSTILE, strict=True):
        row["trace_id"] = name
    path = write(tmp_path / "f.csv", rows)
    written = write_work_lists([path], tmp_path / "out", options=ReportOptions())
    assert [file.stem for file in written] == ["partial_minus", "hallucinated", "abandoned"]
    text = (tmp_path / "out" / "abandoned.csv").read_text("utf-8")
    assert "\n=cmd" not in text
    assert "\n\"'=cmd" in text or "\n'=cmd" in text
    assert "\n'@everyone" in text
    assert (tmp_path / "out" / "hallucinated.csv").read_text("utf-8").count("\n") == 1


def test_reference_traces_are_refused_unless_forced(tmp_path: Path) -> None:
    trace = next(iter(load_reference().traces.values()))
    rows = alike("a", {"complete": 9})
    rows.append({**rows[0], "trace_id": trace.trace_id, "workflow": trace.workflow})
    path = write(tmp_path / "f.csv", rows)
    with pytest.raises(InputError, match="1 traces are of the reference set"):
        report(path)
    forced = report(path, force=True)
    assert forced.marks[0].startswith("REFERENCE SET: 1 ")
    # The same id in another workflow is somebody else's.
    rows[-1]["workflow"] = next(w for w in ("research", "scheduling") if w != trace.workflow)
    assert not report(write(tmp_path / "g.csv", rows)).marks


def test_other_weights_and_ceilings_change_rate_and_fingerprint(mixed: str) -> None:
    found = report(mixed, fork(partial_plus=0.6))
    assert found.asr.value == pytest.approx(0.52)  # .6 and .6 - .5 instead of .4 and 0
    at = {row.name: row.asr.value for row in found.sensitivity}
    assert at["default weights (1 / 0.4 / 0 / 0 / 0)"] == pytest.approx(0.49)
    assert found.origin.taxonomy_version == "fork"
    assert found.origin.taxonomy_fingerprint != report(mixed).origin.taxonomy_fingerprint
    dear = report(mixed, ceilings={"research": 10.0})
    assert dear.asr.value == pytest.approx(0.68)
    assert dear.origin.taxonomy_fingerprint != default_taxonomy().fingerprint


def test_the_fingerprint_is_blind_to_the_order_of_rows_only(tmp_path: Path) -> None:
    rows = runs(MIXED10)
    one = report(write(tmp_path / "f.csv", rows))
    other = report(write(tmp_path / "g.csv", rows[::-1]))
    assert one.origin.fingerprint == other.origin.fingerprint
    assert one.asr == other.asr
    seeded = report(str(tmp_path / "f.csv"), seed=1)
    rows[0]["outcome"] = "partial_plus"
    changed = report(write(tmp_path / "h.csv", rows))
    assert len({r.origin.fingerprint for r in (one, seeded, changed)}) == 3


def test_costs_count_with_the_weights_of_their_runs(tmp_path: Path) -> None:
    data = [
        {"trace_id": f"{kind}{k}", "workflow": "research", "outcome": outcome, "cost_usd": cost,
         "weight": weight}
        for k in range(10)
        for kind, outcome, cost, weight in (("a", "complete", 1, 3), ("b", "abandoned", 5, 1))
    ]  # fmt: skip
    found = report_on_files([str(write(tmp_path / "f.csv", data))]).cost.per_success
    assert found.value == pytest.approx((3 * 1 + 5) / 3)
