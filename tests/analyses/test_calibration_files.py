"""Calibration on files and tables: what their loaders read, and what is refused."""

import json
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from calibration.analyses.evidence.data import nonresponse_weights
from calibration.analyses.evidence.from_files import Ceilings, load_tables, read_tables
from calibration.analyses.exports import label_table, verdict_table
from calibration.analyses.judge.calibration import (
    CalibrationOptions,
    JudgeCalibration,
    analyse_judge,
    calibrate_judge,
    judge_alpha,
)
from calibration.errors import CalibrationError, InputError
from calibration.judge_calibration.samples import (
    Design,
    LabelledSample,
    confusion_from_table,
    judge_quality,
)
from calibration.statistics.intervals import unseen_reach
from calibration.tables.labels import read_ceilings
from calibration.tables.rows import Source
from tests.analyses.conftest import NewWorld
from tests.analyses.worlds import ids, known
from tests.classes import CREDIT, OUTCOMES

TWO = {"pass": 1.0, "fail": 0.0}
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


def calibrated(
    human: Source, verdicts: Source, design: Design = "production", **options: Any
) -> JudgeCalibration:
    data = load_tables(human, verdicts, design=design, **options)
    return calibrate_judge(data, CalibrationOptions(design=design))


def of_lines(
    write: Write, labels: Sequence[str], said: Sequence[str], design: Design = "production",
    more: tuple[str, str] = ("", ""), **options: Any,
) -> JudgeCalibration:  # fmt: skip
    """Calibrate on lines of trace and outcome, and of the further columns of either file."""
    human = write("human.csv", rows("trace_id,outcome" + more[0], *labels))
    verdicts = write("verdicts.csv", rows("trace_id,outcome" + more[1], *said))
    return calibrated(human, verdicts, design, **({"classes": list(TWO), "credit": TWO} | options))


def of_table(
    write: Write, table: Sequence[Sequence[int]], others: Mapping[str, int],
    column: tuple[str, Sequence[object]] | None = None, **options: Any,
) -> JudgeCalibration:  # fmt: skip
    """Calibrate on a table of labelled traces; `others` counts unlabelled ones by verdict."""
    labelled = spread(table, ["pass", "fail"], ["pass", "fail"])
    name, values = column or ("note", [""] * len(labelled))
    labels = [f"{t},{human},{v}" for (t, human, _), v in zip(labelled, values, strict=True)]
    said = [f"{trace},{verdict}" for trace, _, verdict in labelled]
    said += [f"u-{verdict}-{k},{verdict}" for verdict, n in others.items() for k in range(n)]
    return of_lines(write, labels, said, more=(f",{name}", ""), **options)


of_two = partial(of_table, table=COUNTS, others={"pass": 474, "fail": 476})


def test_json_lines_parquet_and_frames_say_what_the_csv_says(write: Write, tmp_path: Path) -> None:
    expected = of_two(write)
    frames = [pd.read_csv(tmp_path / f"{name}.csv") for name in ("human", "verdicts")]
    # The order of rows changes nothing.
    given: list[list[Any]] = [frames, [frame[::-1] for frame in frames]]
    for suffix in ("jsonl", "parquet"):
        given.append([tmp_path / f"{name}.{suffix}" for name in ("human", "verdicts")])
    for path, frame in zip(given[2], frames, strict=True):
        frame.to_json(path, orient="records", lines=True)
    for path, frame in zip(given[3], frames, strict=True):
        frame.to_parquet(path)
    for human, verdicts in given:
        found = calibrated(human, verdicts, classes=["pass", "fail"], credit=TWO)
        assert found.fingerprint == expected.fingerprint
        for name, estimate in expected.calibration.estimates.items():
            value = found.calibration.estimates[name].net.value
            assert value == pytest.approx(estimate.net.value, abs=1e-12)


def test_reviewers_count_by_their_mean_and_a_settled_trace_by_its_class(write: Write) -> None:
    labels = []
    for k in range(40):
        labels += [f"t{k},{'pass' if k % 2 else 'fail'},ann,", f"t{k},pass,bob,"]
    labels += ["t0,fail,lead,yes", "t2,pass,lead,1"]
    said = [f"t{k},pass" for k in range(40)]
    result = of_lines(write, labels, said, more=(",reviewer,adjudicated", ""))
    # 20 agree on pass, t0 settled fail, t2 settled pass, 18 stay one half.
    net = result.calibration.estimates["human_only"].net
    assert net.value == pytest.approx((20 + 0 + 1 + 18 / 2) / 40)
    assert net.status == "provisional: 18 open disagreements"
    side = known(result.human)
    assert (side.n_labels, side.n_shared, side.n_adjudicated, side.n_open) == (80, 40, 2, 18)
    assert result.calibration.confusion.table.tolist() == [[30.0, 0.0], [10.0, 0.0]]
    # Of what is settled so far reviewers would seem to agree.
    status = "not_estimable: 18 open disagreements: adjudicate them"
    assert {one.status for one in result.reviewers.values()} == {status}
    assert known(result.noise_ceiling).reviewer.status == status
    assert len(result.disagreements) == 19


def test_weights_are_inverse_probabilities(write: Write) -> None:
    # Failing traces were drawn three times as often: weight 1 against 3.
    labelled = spread(COUNTS, ["pass", "fail"], ["pass", "fail"])
    weights = [3 if human == "pass" else 1 for _, human, _ in labelled]
    found = of_two(write, column=("weight", weights)).calibration
    assert found.estimates["human_only"].net.value == pytest.approx(90 / 110)
    # Passes given verdict pass: 72 of 74; given fail: 18 of 36. Verdicts are 500 each of 1,000.
    expected = (72 / 74 + 18 / 36) / 2
    assert found.estimates["post_stratified"].net.value == pytest.approx(expected)
    assert found.judge.accuracy.value == pytest.approx((72 + 18) / 110)
    # The same to weigh each trace alike, whatever the number.
    alike, plain = of_two(write, column=("weight", [7.5] * 50)), of_two(write)
    assert alike.alpha.value == pytest.approx(plain.alpha.value, abs=1e-12)
    assert alike.alpha.interval == pytest.approx(plain.alpha.interval, abs=1e-12)


def test_clusters_widen_the_interval_and_move_no_value(write: Write) -> None:
    plain = of_two(write)
    clusters = of_two(write, column=("cluster", [f"c{k // 5}" for k in range(50)]))
    one_each = of_two(write, column=("cluster", range(50)))
    for name in ("post_stratified", "human_only"):
        alone, kept = (r.calibration.estimates[name].net for r in (plain, clusters))
        assert kept.value == pytest.approx(alone.value)
        assert kept.method != alone.method
        assert known(kept.half_width) > known(alone.half_width)
        assert one_each.calibration.estimates[name].net == alone
    assert clusters.alpha.value == pytest.approx(plain.alpha.value)
    assert (clusters.alpha.n, plain.alpha.n) == (10, 50)
    said = [any("no task" in note for note in result.notes) for result in (plain, clusters)]
    assert said == [True, False]


@pytest.mark.parametrize("as_frame", [False, True])
def test_a_row_without_a_reviewer_counts_once_however_often_it_stands(
    write: Write, as_frame: bool
) -> None:
    labels = [f"t{k},{'pass' if k % 2 else 'fail'},,{k}" for k in range(40)]
    again = [labels[0], labels[0], labels[7]]
    human: Source = write("h.csv", rows("trace_id,outcome,reviewer,tags", *labels, *again))
    said: Source = write("v.csv", rows("trace_id,outcome", *(f"t{k},pass" for k in range(40))))
    if as_frame:
        human, said = (pd.read_csv(of) for of in (human, said) if isinstance(of, Path))
    found = calibrated(human, said, classes=list(TWO), credit=TWO)
    first = 41 if as_frame else 42
    (repeated,) = found.reading[0].left_out
    assert (repeated.code, repeated.rows) == ("identical_duplicate", 3)
    assert known(repeated.first).line == first
    side = known(found.human)
    assert (side.n_labels, side.n_shared, side.reviewers) == (40, 0, ())
    # Another class is another reviewer.
    differs = write("d.csv", rows("trace_id,outcome", *(["t0,pass", "t0,fail", "t1,fail"])))
    side = known(calibrated(differs, said, classes=list(TWO), credit=TWO).human)
    assert (side.n_labels, side.n_shared, side.n_open) == (3, 1, 1)


def test_ceilings_of_the_verdict_file_go_before_the_taxonomy(write: Write) -> None:
    """support_triage: .10 in the taxonomy, .15 in the file, none on the last runs."""
    said = [f"t{k},complete,support_triage,.15,{'.15' if k < 60 else ''}" for k in range(80)]
    labels = [f"t{k},complete" for k in range(40)]
    own: dict[str, Any] = {"classes": None, "credit": None}
    more = ("", ",workflow,cost_usd,ceiling_usd")
    found = of_lines(write, labels, said, more=more, **own)
    assert found.calibration.estimates["judge_raw"].net.value == pytest.approx(1.0)
    assert "20 of 80 traces have no ceiling and carry no penalty" in found.notes
    given = of_lines(write, labels, said, more=more, ceilings=Ceilings(otherwise=0.1), **own)
    assert given.calibration.estimates["judge_raw"].net.value == pytest.approx(0.5)


def test_skipped_traces_are_stood_for_and_counted(write: Write) -> None:
    # Verdict pass, workflow a: 20 of 20 labelled, all pass; b: 5 of 20 labelled, all fail.
    said, labels = [], []
    for k in range(60):
        said.append(f"t{k},{'pass' if k < 40 else 'fail'},{'a' if k < 20 else 'b'}")
        labels.append(f"t{k},{'pass' if k < 20 else 'fail' if k < 25 or k >= 40 else ''}")
    result = of_lines(write, labels, said, more=("", ",workflow"))
    assert result.skipped == 15
    assert known(result.human).skipped_by_verdict == {"pass": 15}
    net = result.calibration.estimates["post_stratified"].net
    assert net.value == pytest.approx(20 / 60)  # not 20/25 of the 40 with verdict pass
    # All fifteen fail, or all pass: 20 or 35 of the 40 with verdict pass.
    moved = known(result.if_skipped)
    assert (moved.lowest, moved.highest) == pytest.approx((20 / 60, 35 / 60))


def test_a_skipped_trace_is_stood_for_by_its_own_weight(write: Write) -> None:
    labels = [f"t{k},{'pass' if k < 20 else 'fail'},1" for k in range(40)] + ["t40,,4"]
    said = [f"t{k},pass,{'a' if k < 20 else 'b'}" for k in range(41)]
    result = of_lines(write, labels, said, more=(",weight", ",workflow"))
    # The 20 that fail carry 24.
    assert result.calibration.estimates["human_only"].net.value == pytest.approx(20 / 44)


def test_a_cell_without_labels_is_stood_for_by_its_verdict() -> None:
    workflows, kept = ["a", "a", "b", "a", "c"], np.array([True, True, False, True, True])
    weights = nonresponse_weights([0, 0, 0, 1, 1], workflows, kept)
    assert known(weights).tolist() == [1.5, 1.5, 1.0, 1.0]
    nobody = nonresponse_weights([0, 1], ["a", "a"], np.array([True, False]))
    assert known(nobody).tolist() == [1.0]


def test_what_is_no_verdict_is_a_verdict_of_its_own(write: Write) -> None:
    said = ["pass"] * 30 + ["fail"] * 20 + [""] * 6 + ["no_verdict"] * 2 + ["split"] * 4
    labels = [f"t{k},{'pass' if k % 3 else 'fail'}" for k in range(62)]
    result = of_lines(write, labels, [f"t{k},{v}" for k, v in enumerate(said)])
    assert result.verdict_names == ("pass", "fail", "no_verdict", "split")
    assert result.calibration.confusion.table.sum(axis=0).tolist() == [30, 20, 8, 4]
    assert result.calibration.n_production == 62


def test_cost_is_held_to_the_ceiling_of_its_workflow(write: Write) -> None:
    classes = ["pass" if k % 2 else "fail" for k in range(80)]
    said = [f"t{k},{c},{'ab'[k % 4 > 1]},.3,{1 + k % 2}" for k, c in enumerate(classes)]
    labels = [f"t{k},{c}" for k, c in enumerate(classes[:40])]
    of_file = read_ceilings(write("c.csv", rows("workflow,ceiling_usd", "a,0.1", "z,1")))
    columns = ("", ",workflow,cost_usd,units")
    result, for_all, without = (
        of_lines(write, labels, said, more=columns, ceilings=ceilings)
        for ceilings in (
            Ceilings(by_workflow=of_file), Ceilings(by_workflow={}, otherwise=0.1), Ceilings()
        )
    )  # fmt: skip
    # Passing traces have two units: 0.1 over 0.2 is half of it, in workflow a; b has no ceiling.
    net = result.calibration.estimates["post_stratified"]
    assert net.net.value == pytest.approx((0.5 + 1.0) / 2 / 2)
    assert net.gross.value == pytest.approx(0.5)
    assert result.notes[:2] == (
        "40 of 80 traces have no ceiling and carry no penalty",
        "ceilings of workflows without a trace: z",
    )
    assert for_all.calibration.estimates["post_stratified"].net.value == pytest.approx(0.25)
    assert "no cost penalty is taken off" in without.notes[0]


def test_workflows_of_the_taxonomy_keep_its_ceilings(write: Write) -> None:
    # support_triage has a ceiling of 0.10: a run of 0.15 loses half; an unknown workflow nothing.
    said = [f"t{k},complete,{('support_triage', 'other')[k % 2]},.15" for k in range(80)]
    labels = [f"t{k},complete" for k in range(40)]
    own: dict[str, Any] = {"classes": None, "credit": None, "more": ("", ",workflow,cost_usd")}
    raw = of_lines(write, labels, said, **own).calibration.estimates["judge_raw"]
    assert [raw.net.value, raw.gross.value] == pytest.approx([0.75, 1.0])
    for given in (Ceilings(otherwise=0.15), Ceilings(by_workflow={"support_triage": 0.15})):
        found = of_lines(write, labels, said, ceilings=given, **own).calibration
        assert found.estimates["judge_raw"].net.value == pytest.approx(1.0)


def test_labels_without_a_verdict_are_asked_about_above_two_per_cent(write: Write) -> None:
    """40 judged traces, half of them pass, and 10 that the judge never saw, all fail."""
    labels = [f"t{k},{'pass' if k % 2 and k < 40 else 'fail'}" for k in range(50)]
    lines = [f"t{k},pass" for k in range(40)]
    files: Any = (write, labels, lines)
    with pytest.raises(CalibrationError, match=r"10 of 50 labelled traces .*--unjudged outside"):
        of_lines(*files)
    outside = of_lines(*files, unjudged="outside")
    (lacking,) = outside.reading[0].left_out
    assert (lacking.code, lacking.rows, known(lacking.first).line) == ("no_verdict", 10, 42)
    assert outside.reading[0].used == 40
    assert outside.calibration.estimates["human_only"].net.value == pytest.approx(0.5)
    inside = of_lines(*files, unjudged="no_verdict")
    assert (inside.calibration.n_production, inside.reading[0].left_out) == (50, ())
    assert inside.calibration.estimates["post_stratified"].net.value == pytest.approx(0.4)
    # One of 51 is below 2 %, and a reference set is no part of production.
    few = of_lines(write, [f"t{k},pass" for k in range(51)], [f"t{k},pass" for k in range(50)])
    assert [one.rows for one in few.reading[0].left_out] == [1]
    of_set = of_lines(write, labels, lines, "reference")
    assert [one.rows for one in of_set.reading[0].left_out] == [10]
    with pytest.raises(CalibrationError, match="must be the same in both"):
        of_lines(write, ["x,pass", "y,fail"], ["t0,pass", "t1,fail"])


def test_an_overlap_said_to_be_random_carries_the_errors_of_reviewers(write: Write) -> None:
    """One reviewer passes all 80; the other, on 40 of them, fails 10, and is right."""
    labels = [f"t{k},pass,Ann," for k in range(80)]
    labels += [f"t{k},{'fail' if k < 10 else 'pass'},Ben," for k in range(40)]
    labels += [f"t{k},fail,,yes" for k in range(10)]
    said = [f"t{k},pass" for k in range(200)]
    for drawn, status in ((False, "provisional: the traces with two labels"), (True, "ok")):
        found = of_lines(
            write, labels, said, more=(",reviewer,adjudicated", ""), overlap_random=drawn
        ).calibration.two_phase
        assert found is not None
        # The single labels are all of Ann: so is the first phase. 10 of 40 are corrected.
        assert found.first == pytest.approx(1.0)
        assert found.overlap == 40
        assert found.correction == pytest.approx(-0.25)
        assert found.estimate.value == pytest.approx(0.75)
        assert found.estimate.status.startswith(status)


def test_classes_are_ours_or_those_that_occur(write: Write) -> None:
    files: Any = (write, ["a,10", "b,2"], ["a,2", "b,10", "c,split"])
    credit = {"2": 0.0, "10": 1.0}
    assert of_lines(*files, classes=None, credit=credit).classes == ("2", "10")
    with pytest.raises(InputError, match=r"goes from 2 to 10: --scale 1-5.*--credit 2=...,10=..."):
        of_lines(*files, classes=None, credit=None)
    found = of_lines(write, ["a,complete"], ["a,abandoned"], classes=None, credit=None)
    assert (found.classes, tuple(found.credit.values())) == (OUTCOMES, CREDIT)


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


def test_labels_of_one_class_allow_its_recall_and_no_rate() -> None:
    """As in AgentRx: rewards for every run, human annotations of the failed ones only."""
    fixtures = Path(__file__).parents[1] / "fixtures"
    human, said = (fixtures / f"failures_only_{name}.csv" for name in ("labels", "verdicts"))
    for design in ("production", "reference"):
        result = calibrated(
            human, said, design, credit={"success": 1.0, "failure": 0.0}, unjudged="outside"
        )
        calibration = result.calibration
        assert calibration.headline is None
        for name, e in calibration.estimates.items():
            assert (e.net.value is None) == (name != "judge_raw"), name
            if name != "judge_raw":
                codes = {n.code for n in calibration.refusals if n.estimator == name}
                assert "one_class_only" in codes
                assert ("not_a_sample" in codes) == (design == "production")
        success, failure = calibration.judge.per_class
        assert failure.recall.value == 1
        # Wilson: 12 / (12 + 1.96^2)
        assert failure.recall.interval == pytest.approx((12 / (12 + 1.959964**2), 1.0), abs=1e-6)
        assert failure.precision.value is success.recall.value is None
        assert calibration.judge.accuracy.value is None
        assert "chosen_by_verdict" in {w.code for w in calibration.warnings}
        assert [one.rows for one in result.reading[0].left_out] == [2]


@pytest.mark.parametrize("counted", [False, True])
def test_a_verdict_that_a_random_sample_would_hold_refuses_the_rate(
    write: Write, counted: bool
) -> None:
    """40 of 40 + 60 + n runs: C(100, 40) / C(100 + n, 40) is 4e-10 for 40, .23 for 3.

    A verdict below 5 % of production is not asked for, however unlikely: 20 of 10,020 labelled
    4,000 times over.
    """
    table = [[30, 0], [10, 0]]
    for labelled, others, refused in (
        (table, {"pass": 60, "fail": 40}, True),
        (table, {"pass": 60, "fail": 3}, False),
        ([[3000, 0], [1000, 0]], {"pass": 6000, "fail": 20}, False),
    ):
        if counted:
            whole = [sum(map(sum, labelled)) + others["pass"], others["fail"]]
            text = json.dumps({
                "design": "production", "classes": list(TWO), "credit": [1, 0],
                "confusion": labelled, "production_judge_counts": whole,
            })  # fmt: skip
            found = calibrate_judge(read_tables(write("t.json", text))[0], CalibrationOptions())
        else:
            found = of_table(write, labelled, others)
        codes = {n.code for n in found.calibration.refusals}
        assert ("not_a_sample" in codes) == refused
        assert known(found.composition).refused == ((("verdict", "fail"),) if refused else ())
        assert found.calibration.headline == (None if refused else "post_stratified")


def test_labels_of_one_class_have_the_exact_bound_in_files_as_in_the_store(
    new_world: NewWorld,
) -> None:
    """84 of 84 complete: the exact bound of labels that count by stratum is below 1."""
    world = new_world(n=400, n_drawn=84)
    world.label("Ann", dict.fromkeys(world.drawn, "complete"))
    world.judge({t: "complete" if k % 4 else "abandoned" for k, t in enumerate(ids(400))})
    stored = analyse_judge(world.store)
    labels = pd.DataFrame(label_table(world.store, world.batch_id).rows)
    verdicts = pd.DataFrame(verdict_table(world.store, world.batch_id).rows)
    files = calibrated(labels, verdicts)
    # A quarter of the 400 runs is called abandoned; the labels of each verdict share its part.
    abandoned = sum(t in world.drawn for k, t in enumerate(ids(400)) if k % 4 == 0)
    counts = np.array([84 - abandoned, abandoned])
    reach = unseen_reach(np.repeat([0.75, 0.25] / counts, counts), confidence_level=0.95)
    for found in (stored, files):
        net = found.calibration.estimates["post_stratified"].net
        assert found.calibration.headline == "post_stratified"
        assert net.interval == pytest.approx((1 - reach, 1.0), abs=1e-9)
        assert "one_class_only" not in {n.code for n in found.calibration.refusals}
    assert stored.calibration.estimates == files.calibration.estimates
    # A reference set says nothing of a rate when all of it is of one class.
    reference = calibrated(labels, verdicts, "reference").calibration
    assert (reference.headline, {n.code for n in reference.refusals} >= {"one_class_only"}) == (
        None, True,
    )  # fmt: skip


@pytest.mark.parametrize(("column", "code"), [("workflow", "other_workflows")])
def test_a_reference_of_something_else_is_refused(write: Write, column: str, code: str) -> None:
    labelled = spread(COUNTS, ["pass", "fail"], ["pass", "fail"])
    labels = [f"{trace},{human}" for trace, human, _ in labelled]
    said = [f"{trace},{verdict},old" for trace, _, verdict in labelled]
    said += [f"u{k},{'pass' if k % 2 else 'fail'},{'new' if k < 60 else 'old'}" for k in range(100)]
    found = of_lines(write, labels, said, "reference", more=("", f",{column}")).calibration
    assert found.headline is None
    (why,) = {n.why for n in found.refusals if n.code == code}
    assert "new (60.0 %)" in why
    sampled = of_lines(write, labels, said, "production", more=("", f",{column}")).calibration
    assert {n.code for n in sampled.refusals if n.estimator == "post_stratified"} == {
        "not_a_sample"
    }


def test_another_period_is_a_warning(write: Write) -> None:
    labelled = spread(COUNTS, ["pass", "fail"], ["pass", "fail"])
    labels = [f"{trace},{human}" for trace, human, _ in labelled]
    said = [f"{t},{v},2026-03-0{1 + k % 9}" for k, (t, _, v) in enumerate(labelled)]
    said += [f"u{k},{'pass' if k % 2 else 'fail'},2026-04-01T10:00:00Z" for k in range(99)]
    found = of_lines(write, labels, said, "reference", more=("", ",started_at")).calibration
    assert (found.headline, found.n_production) == ("inversion", 99)
    (warning,) = [w for w in found.warnings if w.code == "other_period"]
    assert "99 of 99" in warning.why
    assert "2026-03-01 to 2026-03-09" in warning.why


@pytest.mark.parametrize(
    ("of", "more", "lines", "says"),
    [
        ("labels", "", "t0,", "holds no labels"),
        ("labels", "", "t0,maybe", "line 2, field 'outcome': 'maybe' is not one of pass, fail"),
        ("labels", ",weight", "t0,pass,1 t1,pass,", "line 3, field 'weight': is missing and"),
        ("labels", ",weight", "t0,pass,1 t0,pass,2", "line 3, field 'weight': is 2.0 and"),
        ("labels", ",cluster", "t0,pass,a t0,pass,b", "line 3, field 'cluster': is 'b'"),
        ("labels", ",reviewer", "t0,pass,a t0,fail,a", "two different labels of 'a' (lines 2, 3)"),
        ("labels", ",adjudicated", "t0,pass,yes t0,fail,yes", "was adjudicated 'pass' in line 2"),
        ("verdicts", "", "", "holds no verdicts"),
        ("verdicts", "", "t0,pass t0,fail", "'t0' has two different verdicts (lines 2, 3)"),
        ("verdicts", "", "t0,great", "line 2, field 'outcome': 'great' is not one of pass, fail"),
        ("verdicts", ",cost_usd", "t0,pass,-1", "line 2, field 'cost_usd': must be a number"),
    ],
)
def test_labels_and_verdicts_that_are_none_are_refused(
    write: Write, of: str, more: str, lines: str, says: str
) -> None:
    good = write("good.csv", rows("trace_id,outcome", "t0,pass", "t1,fail"))
    bad = write("bad.csv", rows("trace_id,outcome" + more, *lines.split()))
    human, verdicts = (bad, good) if of == "labels" else (good, bad)
    with pytest.raises(InputError) as refused:
        calibrated(human, verdicts, classes=["pass", "fail"], credit=TWO)
    assert says in str(refused.value)


@pytest.mark.parametrize(
    ("options", "says"),
    [
        ({"classes": ["pass"]}, "two classes or more"),
        ({"classes": ["pass", "pass"]}, "each once"),
        ({"credit": {"pass": 1.0}}, "that of 'fail' is missing"),
        ({"credit": TWO | {"x": 1.0}}, "'x' is not one of pass, fail"),
    ],
)
def test_classes_and_credit_must_fit(write: Write, options: dict[str, Any], says: str) -> None:
    with pytest.raises(InputError, match=says):
        of_two(write, **options)


def test_ceilings_must_be_amounts(write: Write) -> None:
    for lines, says in (
        (["a,0"], "line 2, field 'ceiling_usd': must be a number > 0"),
        (["a,1", "a,2"], "line 3, field 'workflow': 'a' occurs twice"),
    ):
        with pytest.raises(InputError) as refused:
            read_ceilings(write("c.csv", rows("workflow,ceiling_usd", *lines)))
        assert says in str(refused.value)
