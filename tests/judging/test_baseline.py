"""The baseline judge: what it reads, how it is fitted, and that no examination is in a fit."""

from collections import Counter
from collections.abc import Iterator
from dataclasses import replace

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression  # type: ignore[import-untyped]

from calibration.errors import InputError
from calibration.judging import baseline
from calibration.judging.baseline import Baseline, PracticeExample, fit_baseline
from calibration.records import Attachment, Step, TraceForReview
from calibration.statistics.contingency import QualityAgainstKey, quality_against_key
from calibration.taxonomy import default_taxonomy
from tests.judging.forms import dataset, examples, for_review

TREE = default_taxonomy()


@pytest.fixture(scope="module")
def fitted() -> Baseline:
    return fit_baseline(examples("practice"), TREE)


def trace(
    response: str | None, *steps: Step, prompt: str = "", trace_id: str = "t"
) -> TraceForReview:
    return TraceForReview(
        trace_id=trace_id, workflow="w", prompt=prompt, steps=steps, response=response, status=None,
        inputs=(Attachment(name="n", text="Rent is 1,236.00 at Korven Hall."),), sub_goals=(),
        agent="agent A", latency_s=None,
    )  # fmt: skip


def quality(judge: Baseline, form: str) -> QualityAgainstKey:
    known = {example.trace.trace_id: example.outcome for example in examples(form)}
    verdicts = judge.predict(example.trace for example in examples(form))
    table = np.zeros((5, 5), dtype=np.int64)
    for verdict in verdicts:
        table[TREE.place(known[verdict.trace_id]), TREE.place(verdict.outcome)] += 1
    return quality_against_key(table)


@pytest.mark.long  # fits the whole practice form again
def test_no_trace_of_an_examination_is_in_a_fit(fitted: Baseline) -> None:
    """Neither by id, nor by task, nor by what is read of it."""
    data = dataset()
    assert set(fitted.trained_on) == set(data.forms["practice"])
    tasks = {example.task_key for example in examples("practice")}
    for form in ("exam_a", "exam_b"):
        for trace_id in data.forms[form]:
            assert trace_id not in fitted.trained_on
            assert data.traces[trace_id].task_key not in tasks
            assert baseline._read(for_review(data.traces[trace_id])).key() not in fitted.known


def test_it_is_measured_on_the_first_examination(fitted: Baseline) -> None:
    """As measured once, beside 26 of 70 for the majority class: wording alone says little."""
    found = quality(fitted, "exam_a")
    assert fitted.majority == "complete"
    assert found.accuracy.value == pytest.approx(0.30, abs=0.03)
    assert found.kappa.interval is not None
    assert found.kappa.interval[0] < 0.05 < found.kappa.interval[1]


@pytest.mark.long  # fits the whole practice form again
def test_the_order_of_examples_and_a_second_fit_change_nothing(fitted: Baseline) -> None:
    again = fit_baseline(examples("practice")[::-1], TREE)
    assert again.judge_id == fitted.judge_id
    assert again.out_of_fold == fitted.out_of_fold
    traces = [example.trace for example in examples("exam_a")]
    assert list(again.predict(traces)) == list(fitted.predict(traces))


def test_all_that_can_change_a_verdict_changes_the_judge() -> None:
    first, *rest = (
        PracticeExample(
            trace=trace(f"{'Sorry' if k % 2 else 'Here'}, number {k}", trace_id=f"t{k}"),
            task_key=f"k{k}",
            outcome="abandoned" if k % 2 else "complete",
        )
        for k in range(8)
    )
    ids = {
        fit_baseline([one, *rest], tree).judge_id
        for one, tree in (
            (first, TREE),
            (first, replace(TREE, version="other")),
            (replace(first, outcome="abandoned"), TREE),
            (replace(first, task_key="other"), TREE),
            (replace(first, trace=replace(first.trace, trace_id="other")), TREE),
            (replace(first, trace=replace(first.trace, response="other")), TREE),
        )
    }
    assert len(ids) == 6


def test_practice_traces_have_verdicts_out_of_fold_under_any_id(fitted: Baseline) -> None:
    out_of_fold = {verdict.trace_id: verdict.outcome for verdict in fitted.out_of_fold}
    assert list(out_of_fold) == list(fitted.trained_on)
    renamed = [
        replace(e.trace, trace_id=f"copy of {e.trace.trace_id}") for e in examples("practice")
    ]
    for copy, example in zip(fitted.predict(renamed), examples("practice"), strict=True):
        assert copy.trace_id == f"copy of {example.trace.trace_id}"
        assert copy.outcome == out_of_fold[example.trace.trace_id]


def test_verdicts_cost_nothing_and_are_those_of_any_judge(fitted: Baseline) -> None:
    (verdict,) = fitted.predict([examples("exam_a")[0].trace])
    assert (verdict.cost_usd, verdict.sample, verdict.proposed) == (0.0, 0, False)
    assert verdict.judge_id == fitted.judge_id
    assert len(fitted.judge_id) == 16
    assert verdict.outcome in TREE.names
    assert fitted.name == "baseline"


def test_tasks_stay_whole_and_classes_are_spread_over_the_folds() -> None:
    """20 tasks of two runs, of which 10 have the rare class: each of ten folds has one of them."""
    keys = [f"k{k // 2}" for k in range(40)]
    codes = np.array([int(k // 2 < 10) for k in range(40)])
    fold = baseline._folds(keys, codes)
    assert all(fold[2 * k] == fold[2 * k + 1] for k in range(20))
    assert np.bincount(fold).tolist() == [4] * 10
    assert np.bincount(fold[codes == 1]).tolist() == [2] * 10


def test_a_rare_word_of_a_class_is_found_and_the_majority_is_not_preferred() -> None:
    """36 runs that report and 4 that give up: weighted alike, the few are found too."""
    given = [
        PracticeExample(
            trace=trace(
                f"I give up on number {k}" if k % 10 == 0 else f"Here is report {k}",
                trace_id=f"t{k}",
            ),
            task_key=f"k{k}",
            outcome="abandoned" if k % 10 == 0 else "complete",
        )
        for k in range(40)
    ]
    judge = fit_baseline(given, TREE)
    assert [v.outcome for v in judge.out_of_fold] == [
        e.outcome for e in sorted(given, key=lambda e: e.trace.trace_id)
    ]
    assert judge.majority == "complete"
    assert judge.log_loss < np.log(2) / 2


def test_two_classes_have_the_chances_of_the_regression_itself() -> None:
    """The coefficients found in the span of the traces are those of scikit-learn on all columns."""
    some = [e for e in examples("practice") if e.outcome in ("complete", "abandoned")]
    for kinds in (some, list(examples("practice"))):
        readings = [baseline._read(e.trace) for e in kinds]
        codes = np.array([TREE.place(e.outcome) for e in kinds])
        (fit,) = baseline._fit(readings, codes, (1.0,), 5)
        matrix = fit.features.of(readings)
        whole = LogisticRegression(C=1.0, class_weight="balanced", tol=1e-8, max_iter=9_999).fit(
            matrix, codes
        )
        found = fit.chances(matrix)
        assert found[:, whole.classes_] == pytest.approx(whole.predict_proba(matrix), abs=1e-4)
        assert found.sum(axis=1) == pytest.approx(1)


@pytest.mark.parametrize(
    ("response", "figures", "names"),
    [
        ("It costs 1236 in Korven and 77 in Oslo", 1 / 2, 1 / 2),
        ("It costs 1,236.0 at the Hall", 1.0, 1.0),
        ("Step 1 is done. Nothing else", 1.0, 1.0),
        ("Paid 55 by Mr Nobody", 0.0, 0.0),
    ],
)  # fmt: skip
def test_figures_and_names_are_looked_up_in_what_the_agent_was_given(
    response: str, figures: float, names: float
) -> None:
    """1,236.00, 1236 and 1236.0 are one figure; single digits and sentence starts count not."""
    assert baseline._supported(response, ["Rent is 1,236.00 at Korven Hall."]) == (figures, names)


def test_facts_of_a_run() -> None:
    """Two results of which one failed, one call; sizes as log(1 + n)."""
    steps = (
        Step(step_id="s1", role="assistant", tool="find", arguments="{}"),
        Step(step_id="s2", role="tool", tool="find", result="none", error=True),
        Step(step_id="s3", role="tool", tool="find", result="1234"),
    )
    reading = baseline._read(trace("It is 1234", *steps, prompt="Find it"))
    sizes = np.expm1(reading.facts[:5]).round(6).tolist()
    assert sizes == [10, 7, 3, 1, 8]  # response, task, steps, calls, results
    assert reading.facts[5:] == (0.0, 0.5, 1.0, 1.0)  # empty response, errors, figures, names


@pytest.mark.parametrize("response", [None, "", "   ", "\ud800", "7" * 10_000_000])
def test_any_response_has_a_verdict(fitted: Baseline, response: str | None) -> None:
    (verdict,) = fitted.predict([trace(response)])
    assert verdict.outcome in TREE.names


def test_many_traces_are_judged_in_parts_without_being_held(fitted: Baseline) -> None:
    taken = 0

    def endless() -> Iterator[TraceForReview]:
        nonlocal taken
        while True:
            taken += 1
            yield trace("Done", trace_id=f"t{taken}")

    verdicts = fitted.predict(endless())
    assert [next(verdicts).trace_id for _ in range(3)] == ["t1", "t2", "t3"]
    assert taken == baseline.PART


def test_labels_that_no_fit_can_use_are_refused() -> None:
    one = PracticeExample(trace=trace("a"), task_key="k", outcome="complete")
    other = PracticeExample(trace=trace("b", trace_id="u"), task_key="l", outcome="abandoned")
    with pytest.raises(InputError, match="two classes, in two tasks each"):
        fit_baseline([one, other], TREE)
    with pytest.raises(InputError, match="two classes"):
        fit_baseline([], TREE)
    with pytest.raises(InputError, match="two practice labels"):
        fit_baseline([one, one], TREE)
    with pytest.raises(InputError, match="'good' is not a class"):
        fit_baseline([replace(one, outcome="good")], TREE)


def test_counts_of_the_forms() -> None:
    """The share of the majority class, which stands beside each figure of a judge."""
    majority = {form: Counter(e.outcome for e in examples(form)) for form in ("practice", "exam_a")}
    assert majority["practice"]["complete"] == 23
    assert majority["exam_a"]["complete"] == 26
