"""Calibration on files and tables: what is read, what is refused, and that both agree."""

from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from calibration.analyses.evidence.data import nonresponse_weights
from calibration.analyses.evidence.from_files import Ceilings
from calibration.analyses.judge.calibration import (
    judge_alpha,
)
from calibration.errors import CalibrationError, InputError
from calibration.judge_calibration.samples import (
    LabelledSample,
    confusion_from_table,
    judge_quality,
)
from calibration.tables.labels import read_ceilings
from tests.analyses.calibration_inputs import (
    COUNTS,
    TWO,
    Write,
    calibrated,
    of_two,
    rows,
    spread,
    two_files,
    write,
)
from tests.classes import CREDIT, OUTCOMES

__all__ = ["write"]


def test_json_lines_parquet_and_frames_say_what_the_csv_says(write: Write, tmp_path: Path) -> None:
    expected = of_two(write)
    frames = [pd.read_csv(tmp_path / f"{name}.csv") for name in ("human", "verdicts")]
    for suffix in ("jsonl", "parquet"):
        paths = [tmp_path / f"{name}.{suffix}" for name in ("human", "verdicts")]
        for path, frame in zip(paths, frames, strict=True):
            if suffix == "parquet":
                frame.to_parquet(path)
            else:
                frame.to_json(path, orient="records", lines=True)
        found = calibrated(paths[0], paths[1], classes=["pass", "fail"], credit=TWO)
        assert found.calibration.estimates == expected.calibration.estimates
        assert found.fingerprint == expected.fingerprint
    of_frames = calibrated(frames[0], frames[1], classes=["pass", "fail"], credit=TWO)
    assert of_frames.calibration.estimates == expected.calibration.estimates
    assert of_frames.fingerprint == expected.fingerprint


def test_the_order_of_rows_changes_nothing(write: Write, tmp_path: Path) -> None:
    expected = of_two(write)
    for name in ("human", "verdicts"):
        path = tmp_path / f"{name}.csv"
        head, *lines = path.read_text().splitlines()
        path.write_text(rows(head, *reversed(lines)))
    found = calibrated(
        tmp_path / "human.csv", tmp_path / "verdicts.csv", classes=["pass", "fail"], credit=TWO
    )
    assert found.fingerprint == expected.fingerprint
    assert found.calibration.estimates["post_stratified"].net.value == pytest.approx(
        expected.calibration.estimates["post_stratified"].net.value, abs=1e-12
    )


def test_reference_labels_are_not_counted_as_production(write: Write) -> None:
    # The judge passes 474 of 950; sensitivity is .8 and specificity .9.
    labelled = spread([[24, 6], [2, 18]], ["pass", "fail"], ["pass", "fail"])
    files = two_files(write, labelled, {"pass": 474, "fail": 476})
    result = calibrated(*files, "reference", pseudo_count=0, classes=["pass", "fail"], credit=TWO)
    assert result.calibration.n_production == 950
    assert result.calibration.headline == "inversion"
    expected = (474 / 950 + 0.9 - 1) / (0.8 + 0.9 - 1)
    assert result.calibration.estimates["inversion"].net.value == pytest.approx(expected)


# The human side


def test_several_reviewers_count_by_their_mean_and_a_settled_trace_by_its_class(
    write: Write,
) -> None:
    said = [f"t{k},pass" for k in range(40)]
    labels = []
    for k in range(40):
        labels += [f"t{k},{'pass' if k % 2 else 'fail'},ann,", f"t{k},pass,bob,"]
    labels += ["t0,fail,lead,yes", "t2,pass,lead,1"]
    result = calibrated(
        write("h.csv", rows("trace_id,outcome,reviewer,adjudicated", *labels)),
        write("v.csv", rows("trace_id,outcome", *said)),
        classes=["pass", "fail"], credit=TWO,
    )  # fmt: skip
    # 20 agree on pass, t0 settled fail, t2 settled pass, 18 stay one half.
    net = result.calibration.estimates["human_only"].net
    assert net.value == pytest.approx((20 + 0 + 1 + 18 / 2) / 40)
    assert net.status == "provisional: 18 open disagreements"
    side = result.human
    assert side is not None
    assert (side.n_labels, side.n_shared, side.n_adjudicated, side.n_open) == (80, 40, 2, 18)
    assert result.calibration.confusion.table.tolist() == [[30.0, 0.0], [10.0, 0.0]]
    # Without ann all but the settled t0 pass, without bob every second one and t2.
    assert result.without_reviewer["ann"] == pytest.approx(39 / 40)
    assert result.without_reviewer["bob"] == pytest.approx(21 / 40)
    assert len(result.disagreements) == 19


def test_weights_are_inverse_probabilities(write: Write) -> None:
    # Failing traces were drawn three times as often: weight 1 against 3.
    labelled = spread(COUNTS, ["pass", "fail"], ["pass", "fail"])
    weights = [3 if human == "pass" else 1 for _, human, _ in labelled]
    result = of_two(write, columns={"weight": weights})
    estimates = result.calibration.estimates
    assert estimates["human_only"].net.value == pytest.approx(90 / 110)
    # Passes given verdict pass: 72 of 74; given fail: 18 of 36. Verdicts are 500 each of 1,000.
    assert estimates["post_stratified"].net.value == pytest.approx((72 / 74 + 18 / 36) / 2)
    assert result.calibration.judge.accuracy.value == pytest.approx((72 + 18) / 110)
    # The same to weigh each trace alike, whatever the number.
    alike = of_two(write, columns={"weight": [7.5] * 50})
    plain = of_two(write)
    assert alike.alpha.value == pytest.approx(plain.alpha.value, abs=1e-12)
    assert alike.alpha.interval == pytest.approx(plain.alpha.interval, abs=1e-12)


def test_clusters_widen_the_interval_and_move_no_value(write: Write) -> None:
    plain = of_two(write)
    clusters = of_two(write, columns={"cluster": [f"c{k // 5}" for k in range(50)]})
    one_each = of_two(write, columns={"cluster": range(50)})
    for name in ("post_stratified", "human_only"):
        alone, kept = (r.calibration.estimates[name].net for r in (plain, clusters))
        assert kept.value == pytest.approx(alone.value)
        assert "cluster" in kept.method
        assert kept.half_width is not None
        assert alone.half_width is not None
        assert kept.half_width > alone.half_width
        assert one_each.calibration.estimates[name].net == alone
    assert clusters.alpha.value == pytest.approx(plain.alpha.value)
    assert (clusters.alpha.n, plain.alpha.n) == (10, 50)
    assert any("no cluster" in note for note in plain.notes)
    assert not any("no cluster" in note for note in clusters.notes)


def test_skipped_traces_are_stood_for_and_counted(write: Write) -> None:
    # Verdict pass, workflow a: 20 of 20 labelled, all pass; b: 5 of 20 labelled, all fail.
    said, labels = [], []
    for k in range(60):
        workflow = "a" if k < 20 else "b"
        said.append(f"t{k},{'pass' if k < 40 else 'fail'},{workflow}")
        outcome = "pass" if k < 20 else "fail" if k < 25 or k >= 40 else ""
        labels.append(f"t{k},{outcome}")
    result = calibrated(
        write("h.csv", rows("trace_id,outcome", *labels)),
        write("v.csv", rows("trace_id,outcome,workflow", *said)),
        credit=TWO,
    )
    assert result.skipped == 15
    assert result.human is not None
    assert result.human.skipped_by_verdict == {"pass": 15}
    net = result.calibration.estimates["post_stratified"].net
    assert net.value == pytest.approx(20 / 60)  # not 20/25 of the 40 with verdict pass
    share = 15 / 60
    assert result.if_skipped == pytest.approx((0.75 * 20 / 60, 0.75 * 20 / 60 + share))


def test_a_skipped_trace_is_stood_for_by_its_own_weight(write: Write) -> None:
    labels = [f"t{k},{'pass' if k < 20 else 'fail'},1" for k in range(40)] + ["t40,,4"]
    said = [f"t{k},pass,{'a' if k < 20 else 'b'}" for k in range(41)]
    result = calibrated(
        write("h.csv", rows("trace_id,outcome,weight", *labels)),
        write("v.csv", rows("trace_id,outcome,workflow", *said)),
        credit=TWO,
    )
    # The 20 that fail carry 24.
    assert result.calibration.estimates["human_only"].net.value == pytest.approx(20 / 44)


def test_a_cell_without_labels_is_stood_for_by_its_verdict() -> None:
    weights = nonresponse_weights(
        [0, 0, 0, 1, 1], ["a", "a", "b", "a", "c"], np.array([True, True, False, True, True])
    )
    assert weights is not None
    assert weights.tolist() == [1.5, 1.5, 1.0, 1.0]
    nobody = nonresponse_weights([0, 1], ["a", "a"], np.array([True, False]))
    assert nobody is not None
    assert nobody.tolist() == [1.0]


# Verdicts that are no class, costs, what is left out


def test_what_is_no_verdict_is_a_verdict_of_its_own(write: Write) -> None:
    said = ["pass"] * 30 + ["fail"] * 20 + [""] * 6 + ["no_verdict"] * 2 + ["split"] * 4
    labels = [f"t{k},{'pass' if k % 3 else 'fail'}" for k in range(62)]
    result = calibrated(
        write("h.csv", rows("trace_id,outcome", *labels)),
        write("v.csv", rows("trace_id,outcome", *(f"t{k},{v}" for k, v in enumerate(said)))),
        classes=["pass", "fail"], credit=TWO,
    )  # fmt: skip
    assert result.verdict_names == ("pass", "fail", "no_verdict", "split")
    assert result.calibration.confusion.table.sum(axis=0).tolist() == [30, 20, 8, 4]
    assert result.calibration.n_production == 62


def test_cost_is_held_to_the_ceiling_of_its_workflow(write: Write) -> None:
    said = [
        f"t{k},{'pass' if k % 2 else 'fail'},{'ab'[k % 4 > 1]},.3,{1 + k % 2}" for k in range(80)
    ]
    labels = [f"t{k},{'pass' if k % 2 else 'fail'}" for k in range(40)]
    files = (
        write("h.csv", rows("trace_id,outcome", *labels)),
        write("v.csv", rows("trace_id,outcome,workflow,cost_usd,units", *said)),
    )
    of_file = read_ceilings(write("c.csv", rows("workflow,ceiling_usd", "a,0.1", "z,1")))
    result = calibrated(
        *files, classes=["pass", "fail"], credit=TWO, ceilings=Ceilings(by_workflow=of_file)
    )
    # Passing traces have two units: 0.1 over 0.2 is half of it, in workflow a; b has no ceiling.
    net = result.calibration.estimates["post_stratified"]
    assert net.net.value == pytest.approx((0.5 + 1.0) / 2 / 2)
    assert net.gross.value == pytest.approx(0.5)
    assert result.notes[:2] == (
        "40 of 80 traces have no ceiling and carry no penalty",
        "ceilings of workflows without a trace: z",
    )
    for_all = calibrated(
        *files, classes=["pass", "fail"], credit=TWO,
        ceilings=Ceilings(by_workflow={}, otherwise=0.1),
    )  # fmt: skip
    assert for_all.calibration.estimates["post_stratified"].net.value == pytest.approx(0.25)
    without = calibrated(*files, classes=["pass", "fail"], credit=TWO)
    assert "nothing is penalised" in without.notes[0]


def test_workflows_of_the_taxonomy_keep_its_ceilings(write: Write) -> None:
    # support_triage has a ceiling of 0.10: a run of 0.15 loses half; an unknown workflow nothing.
    said = [f"t{k},complete,{('support_triage', 'other')[k % 2]},.15" for k in range(80)]
    files = (
        write("h.csv", rows("trace_id,outcome", *(f"t{k},complete" for k in range(40)))),
        write("v.csv", rows("trace_id,outcome,workflow,cost_usd", *said)),
    )
    raw = calibrated(*files).calibration.estimates["judge_raw"]
    assert raw.net.value == pytest.approx(0.75)
    assert raw.gross.value == pytest.approx(1.0)
    for given in (Ceilings(otherwise=0.15), Ceilings(by_workflow={"support_triage": 0.15})):
        raw = calibrated(*files, ceilings=given).calibration.estimates["judge_raw"]
        assert raw.net.value == pytest.approx(1.0)


def test_labels_without_a_verdict_are_set_aside_with_line_and_reason(write: Write) -> None:
    labels = [f"t{k},{'pass' if k % 2 else 'fail'}" for k in range(42)]
    result = calibrated(
        write("h.csv", rows("trace_id,outcome", *labels)),
        write("v.csv", rows("trace_id,outcome", *(f"t{k},pass" for k in range(40)))),
        credit=TWO,
    )
    assert [row.line for row in result.set_aside] == [42, 43]
    assert {row.reason for row in result.set_aside} == {"the trace has no row in the verdict file"}
    assert result.calibration.n_labels == 40
    with pytest.raises(CalibrationError, match="must be the same in both"):
        calibrated(
            write("h.csv", rows("trace_id,outcome", "x,pass", "y,fail")),
            write("v.csv", rows("trace_id,outcome", "t0,pass", "t1,fail")),
            credit=TWO,
        )


def test_classes_are_ours_or_those_that_occur(write: Write) -> None:
    verdicts = write("v.csv", rows("trace_id,outcome", "a,2", "b,10", "c,split"))
    human = write("h.csv", rows("trace_id,outcome", "a,10", "b,2"))
    credit = {"2": 0.0, "10": 1.0}
    assert calibrated(human, verdicts, credit=credit).classes == ("2", "10")
    with pytest.raises(InputError, match=r"--credit 2=...,10=..."):
        calibrated(human, verdicts)
    ours = write("h.csv", rows("trace_id,outcome", "a,complete"))
    said = write("v.csv", rows("trace_id,outcome", "a,abandoned"))
    found = calibrated(ours, said)
    assert (found.classes, tuple(found.credit.values())) == (OUTCOMES, CREDIT)


# Alpha


def test_alpha_of_the_judge_is_that_of_two_raters() -> None:
    """Outside value: the krippendorff package on the 4 x 4 table, as in the golden file."""
    table = [[1586, 229, 98, 92], [602, 302, 183, 146], [225, 143, 212, 228], [57, 58, 64, 198]]
    labelled = spread(table, "0123", "0123")
    sample = LabelledSample(
        human=np.eye(4)[[int(human) for _, human, _ in labelled]],
        verdicts=np.array([int(verdict) for *_, verdict in labelled]),
    )
    assert judge_alpha(sample, n_verdicts=4).value == pytest.approx(0.2689081791654123, abs=1e-12)
    kappa = judge_quality(confusion_from_table(table)).kappa
    assert kappa.value == pytest.approx(0.27743420616147174)
    none = LabelledSample(human=np.zeros((0, 2)), verdicts=np.zeros(0, dtype=np.int64))
    assert judge_alpha(none, n_verdicts=2).status.startswith("not_estimable")


def test_alpha_counts_a_verdict_that_is_no_class_as_one_nobody_else_uses() -> None:
    sample = LabelledSample(human=np.eye(2)[[0, 1, 1]], verdicts=np.array([0, 1, 2]))
    # Ratings by class 2, 3, 1 of 6: 1 - (1/3) / ((36 - 4 - 9 - 1) / (6 x 5))
    assert judge_alpha(sample, n_verdicts=3).value == pytest.approx(1 - (1 / 3) / (22 / 30))
