"""Calibration on files and tables: what is read, what is refused, and that both agree."""

import json
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from calibration.analyses.calibrated import Choices
from calibration.analyses.calibration_files import (
    FileCalibration,
    calibrate_on_files,
)
from calibration.analyses.calibration_tables import calibrate_on_tables, read_tables
from calibration.analyses.joined_files import Ceilings
from calibration.analyses.judge_alpha import judge_alpha
from calibration.analyses.nonresponse import standing_in
from calibration.analyses.verdict_files import read_ceilings, read_human_labels, read_verdicts
from calibration.correction.calibrate import Design, LabelledSample
from calibration.correction.confusion import confusion_from_table
from calibration.correction.quality import cohen_kappa
from calibration.errors import CalibrationError, InputError
from calibration.metrics.score import DEFAULT_CREDIT
from calibration.records import OUTCOMES

TWO = {"pass": 1.0, "fail": 0.0}
# Human x judge: 24 of 30 and 18 of 20 right.
COUNTS = [[24, 6], [2, 18]]

Write = Callable[[str, str], Path]


@pytest.fixture
def write(tmp_path: Path) -> Write:
    def written(name: str, text: str) -> Path:
        path = tmp_path / name
        path.write_text(text, encoding="utf-8")
        return path

    return written


def rows(head: str, *lines: str) -> str:
    return "\n".join([head, *lines]) + "\n"


def spread(
    table: Sequence[Sequence[int]], classes: Sequence[str], verdicts: Sequence[str]
) -> list[tuple[str, str, str]]:
    """Return trace, human class and verdict of every labelled trace of a table."""
    cells = [
        (classes[j], verdicts[k])
        for j, row in enumerate(table)
        for k, n in enumerate(row)
        for _ in range(n)
    ]
    return [(f"t{n}", *cell) for n, cell in enumerate(cells)]


def two_files(
    write: Write,
    labelled: Sequence[tuple[str, str, str]],
    others: Mapping[str, int],
    columns: Mapping[str, Sequence[object]] | None = None,
) -> tuple[Path, Path]:
    """Write labels and verdicts; `others` counts unlabelled traces by verdict."""
    more = columns or {}
    head = ",".join(["trace_id,outcome", *more])
    labels = [
        ",".join([trace, human, *(str(values[k]) for values in more.values())])
        for k, (trace, human, _) in enumerate(labelled)
    ]
    said = [f"{trace},{verdict}" for trace, _, verdict in labelled]
    said += [f"u-{name}-{k},{name}" for name, n in others.items() for k in range(n)]
    return write("human.csv", rows(head, *labels)), write(
        "verdicts.csv", rows("trace_id,outcome", *said)
    )


def calibrated(
    human: Path, verdicts: Path, design: Design = "production", **options: Any
) -> FileCalibration:
    return calibrate_on_files(
        read_human_labels(human), read_verdicts(verdicts), Choices(design=design), **options
    )


def of_two(
    write: Write, design: Design = "production", columns: Any = None, **options: Any
) -> FileCalibration:
    labelled = spread(COUNTS, ["pass", "fail"], ["pass", "fail"])
    files = two_files(write, labelled, {"pass": 474, "fail": 476}, columns)
    given = {"classes": ["pass", "fail"], "credit": TWO} | options
    return calibrated(*files, design, **given)


# Files and tables are one thing


@pytest.mark.parametrize("design", ["production", "reference"])
def test_files_say_what_their_table_says(write: Write, design: Design) -> None:
    table = [
        [80, 6, 2, 3, 1],
        [9, 41, 7, 2, 1],
        [3, 7, 43, 3, 4],
        [9, 4, 2, 42, 1],
        [1, 1, 5, 2, 31],
    ]
    others = dict(zip(OUTCOMES, [600, 160, 80, 90, 40], strict=True))
    of_files = calibrated(*two_files(write, spread(table, OUTCOMES, OUTCOMES), others), design)
    labelled = np.array(table).sum(axis=0) if design == "production" else 0
    content = {
        "design": design, "classes": list(OUTCOMES), "credit": list(DEFAULT_CREDIT),
        "confusion": table,
        "production_judge_counts": (np.array(list(others.values())) + labelled).tolist(),
    }  # fmt: skip
    path = write("tables.json", json.dumps(content))
    of_tables = calibrate_on_tables(read_tables(path), Choices())
    assert of_files.classes == OUTCOMES
    assert of_files.calibration.headline == of_tables.calibration.headline
    assert of_tables.calibration.headline is not None
    for name, e in of_tables.calibration.estimates.items():
        found = of_files.calibration.estimates[name]
        for one, other in ((found.net, e.net), (found.gross, e.gross)):
            assert one.value == pytest.approx(other.value, abs=1e-12)
            assert one.interval == pytest.approx(other.interval, abs=1e-9)
    assert of_files.alpha.value == pytest.approx(of_tables.alpha.value, abs=1e-12)
    assert of_files.alpha.interval == pytest.approx(of_tables.alpha.interval, abs=1e-9)


def test_json_lines_and_parquet_say_what_the_csv_says(write: Write, tmp_path: Path) -> None:
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
    result = calibrate_on_files(
        read_human_labels(files[0]), read_verdicts(files[1]),
        Choices(design="reference", pseudo_count=0), classes=["pass", "fail"], credit=TWO,
    )  # fmt: skip
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
    weights = standing_in(
        [0, 0, 0, 1, 1], ["a", "a", "b", "a", "c"], np.array([True, True, False, True, True])
    )
    assert weights is not None
    assert weights.tolist() == [1.5, 1.5, 1.0, 1.0]
    nobody = standing_in([0, 1], ["a", "a"], np.array([True, False]))
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
    assert (found.classes, tuple(found.credit.values())) == (OUTCOMES, DEFAULT_CREDIT)


# Refusals


def test_labels_of_one_class_allow_its_recall_and_no_rate() -> None:
    """As in AgentRx: rewards for every run, human annotations of the failed ones only."""
    fixtures = Path(__file__).parents[1] / "fixtures"
    human, said = (fixtures / f"failures_only_{name}.csv" for name in ("labels", "verdicts"))
    for design in ("production", "reference"):
        result = calibrated(human, said, design, credit={"success": 1.0, "failure": 0.0})
        calibration = result.calibration
        assert calibration.headline is None
        for name, e in calibration.estimates.items():
            assert (e.net.value is None) == (name != "judge_raw"), name
            if name != "judge_raw":
                codes = {n.code for n in calibration.refusals if n.estimator == name}
                assert "one_class_only" in codes
                assert ("not_a_sample" in codes) == (design == "production")
        failure, success = calibration.judge.per_class
        assert failure.recall.value == 1
        # Wilson: 12 / (12 + 1.96^2)
        assert failure.recall.interval == pytest.approx((12 / (12 + 1.959964**2), 1.0), abs=1e-6)
        assert failure.precision.value is None
        assert success.recall.value is None
        assert calibration.judge.accuracy.value is None
        assert [w.code for w in calibration.warnings] == ["chosen_by_verdict"]
        assert len(result.set_aside) == 2


def test_a_verdict_that_a_random_sample_would_hold_refuses_the_rate(write: Write) -> None:
    labelled = spread([[30, 0], [10, 0]], ["pass", "fail"], ["pass", "fail"])
    refused = calibrated(
        *two_files(write, labelled, {"pass": 60, "fail": 40}), classes=["pass", "fail"], credit=TWO
    )
    assert "not_a_sample" in {n.code for n in refused.calibration.refusals}
    # 3 of 103: .971^40 = .31, as chance would have it.
    fine = calibrated(
        *two_files(write, labelled, {"pass": 60, "fail": 3}), classes=["pass", "fail"], credit=TWO
    )
    assert fine.calibration.headline == "post_stratified"


@pytest.mark.parametrize(
    ("column", "code"), [("workflow", "other_workflows"), ("judge", "other_judge")]
)
def test_a_reference_of_something_else_is_refused(write: Write, column: str, code: str) -> None:
    labelled = spread(COUNTS, ["pass", "fail"], ["pass", "fail"])
    human, _ = two_files(write, labelled, {})
    said = [f"{trace},{verdict},old" for trace, _, verdict in labelled]
    said += [f"u{k},{'pass' if k % 2 else 'fail'},{'new' if k < 60 else 'old'}" for k in range(100)]
    verdicts = write("v.csv", rows(f"trace_id,outcome,{column}", *said))
    result = calibrated(human, verdicts, "reference", classes=["pass", "fail"], credit=TWO)
    assert result.calibration.headline is None
    why = {n.why for n in result.calibration.refusals if n.code == code}
    assert len(why) == 1
    assert "new (60.0 %)" in why.pop()
    sampled = calibrated(human, verdicts, "production", classes=["pass", "fail"], credit=TWO)
    assert sampled.calibration.headline == "post_stratified"


def test_another_period_is_a_warning(write: Write) -> None:
    labelled = spread(COUNTS, ["pass", "fail"], ["pass", "fail"])
    human, _ = two_files(write, labelled, {})
    said = [f"{t},{v},2026-03-0{1 + k % 9}" for k, (t, _, v) in enumerate(labelled)]
    said += [f"u{k},{'pass' if k % 2 else 'fail'},2026-04-01T10:00:00Z" for k in range(99)]
    verdicts = write("v.csv", rows("trace_id,outcome,started_at", *said))
    result = calibrated(human, verdicts, "reference", classes=["pass", "fail"], credit=TWO)
    assert result.calibration.headline == "inversion"
    (warning,) = [w for w in result.calibration.warnings if w.code == "other_period"]
    assert "99 of 99" in warning.why
    assert "2026-03-01 to 2026-03-09" in warning.why


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
    assert cohen_kappa(confusion_from_table(table)).value == pytest.approx(0.27743420616147174)
    none = LabelledSample(human=np.zeros((0, 2)), verdicts=np.zeros(0, dtype=np.int64))
    assert judge_alpha(none, n_verdicts=2).status.startswith("not_estimable")


def test_alpha_counts_a_verdict_that_is_no_class_as_one_nobody_else_uses() -> None:
    sample = LabelledSample(human=np.eye(2)[[0, 1, 1]], verdicts=np.array([0, 1, 2]))
    # Ratings by class 2, 3, 1 of 6: 1 - (1/3) / ((36 - 4 - 9 - 1) / (6 x 5))
    assert judge_alpha(sample, n_verdicts=3).value == pytest.approx(1 - (1 / 3) / (22 / 30))


# Bad input


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("trace_id\nt0\n", "must be a header with the columns"),
        ("trace_id,label\nt0,pass\n", "line 2: field 'outcome' is missing"),
        ("trace_id,outcome\n,pass\n", "line 2: field 'trace_id' is missing"),
        ("trace_id,outcome\nt0,\n", "holds no labels"),
        ("trace_id,outcome\nt0,maybe\n", "line 2, field 'outcome': 'maybe' is none of pass, fail"),
        ("trace_id,outcome\nt0,no_verdict\n", "'no_verdict' is none of"),
        ("trace_id,outcome,weight\nt0,pass,0\n", "line 2, field 'weight': must be a number > 0"),
        ("trace_id,outcome,weight\nt0,pass,nan\n", "field 'weight': must be a number > 0"),
        ("trace_id,outcome,weight\nt0,pass,x\n", "field 'weight': must be a number, got 'x'"),
        ("trace_id,outcome,weight\nt0,pass,1\nt1,pass,\n", "line 3 of the labels has no weight"),
        ("trace_id,outcome,weight\nt0,pass,1\nt0,pass,2\n", "line 3, field 'weight': is 2.0 and"),
        ("trace_id,outcome,cluster\nt0,pass,a\nt0,pass,b\n", "line 3, field 'cluster': is 'b'"),
        (
            "trace_id,outcome,reviewer\nt0,pass,a\nt0,fail,a\n",
            "a second label of 'a', after line 2",
        ),
        ("trace_id,outcome,adjudicated\nt0,pass,y?\n", "field 'adjudicated': must be one of"),
        (
            "trace_id,outcome,adjudicated\nt0,pass,yes\nt0,fail,yes\n",
            "line 3, field 'outcome': the trace was adjudicated 'pass' in line 2",
        ),
    ],
)
def test_labels_that_are_none_are_refused(write: Write, text: str, says: str) -> None:
    verdicts = write("v.csv", rows("trace_id,outcome", "t0,pass", "t1,fail"))
    with pytest.raises(InputError) as refused:
        calibrated(write("h.csv", text), verdicts, classes=["pass", "fail"], credit=TWO)
    assert says in str(refused.value)


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("trace_id,outcome\n", "holds no verdicts"),
        ("trace_id,outcome\nt0,pass\nt0,pass\n", "line 3, field 'trace_id': 't0' has a verdict in"),
        ("trace_id,outcome\nt0,great\n", "line 2, field 'outcome': 'great' is none of pass, fail"),
        ("trace_id,outcome,cost_usd\nt0,pass,-1\n", "line 2, field 'cost_usd': must be a number"),
        ("trace_id,outcome,cost_usd\nt0,pass,inf\n", "field 'cost_usd': must be a number >= 0"),
        ("trace_id,outcome,units\nt0,pass,0\n", "field 'units': must be a number > 0"),
        ("trace_id,outcome,started_at\nt0,pass,monday\n", "field 'started_at': must be an ISO"),
        ('{"trace_id": "t0"}\n', "line 1: field 'outcome' is missing"),
        ('{"trace_id": "t0", "outcome": "pass", "cost_usd": true}\n', "field 'cost_usd'"),
    ],
)
def test_verdicts_that_are_none_are_refused(write: Write, text: str, says: str) -> None:
    human = write("h.csv", rows("trace_id,outcome", "t0,pass"))
    with pytest.raises(InputError) as refused:
        calibrated(human, write("v.csv", text), classes=["pass", "fail"], credit=TWO)
    assert says in str(refused.value)


@pytest.mark.parametrize(
    ("options", "says"),
    [
        ({"classes": ["pass"]}, "two classes or more"),
        ({"classes": ["pass", "pass"]}, "each once"),
        ({"classes": ["pass", ""]}, "each once"),
        ({"credit": {"pass": 1.0}}, "that of 'fail' is missing"),
        ({"credit": TWO | {"x": 1.0}}, "'x' is none of pass, fail"),
    ],
)
def test_classes_and_credit_must_fit(write: Write, options: dict[str, Any], says: str) -> None:
    with pytest.raises(InputError, match=says):
        of_two(write, **options)


def test_ceilings_must_be_amounts(write: Write) -> None:
    for lines, says in (
        (["a,0"], "line 2, field 'ceiling_usd': must be a number > 0"),
        (["a,x"], "field 'ceiling_usd': must be a number"),
        (["a,1", "a,2"], "line 3, field 'workflow': 'a' occurs twice"),
    ):
        with pytest.raises(InputError) as refused:
            read_ceilings(write("c.csv", rows("workflow,ceiling_usd", *lines)))
        assert says in str(refused.value)
