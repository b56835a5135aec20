"""What the result of an examination says, counted by hand."""

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from calibration.agreement.annotators import against_key
from calibration.analyses.reviewers.exam_report import (
    ExamReport,
    ac1_lower_limits,
    exam_report,
    examined_trace,
    operating_curve,
)
from calibration.analyses.reviewers.examinations import Examiner
from calibration.errors import NotAllowedError
from calibration.reviewers.certification import PassRule
from calibration.store import Store
from calibration.taxonomy import default_taxonomy
from reference_dataset.loader import load_reference
from tests.analyses.examinees import ME, Examinee, set_clock
from tests.analyses.worlds import known
from tests.classes import OUTCOMES


@pytest.fixture(scope="module")
def anna(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Examinee]:
    """Return who calls four complete runs partial and three abandoned ones an invention."""
    path: Path = tmp_path_factory.mktemp("certified") / "store.duckdb"
    with pytest.MonkeyPatch.context() as patched, Store.open(path, create=True) as store:
        store.add_reviewer("Anna")
        by = Examiner(dataset=load_reference(), private=frozenset())
        anna = Examinee(store, by, set_clock(patched))
        exam = anna.start()
        errors = anna.wrong(exam, "complete", "partial_plus", 4)
        anna.sit(exam, errors | anna.wrong(exam, "abandoned", "hallucinated", 3))
        yield anna


def over(anna: Examinee) -> ExamReport:
    """Return the report, after the further traces."""
    form, *more = anna.store.exams_of(ME)
    if more and more[0].status is None:
        with pytest.raises(NotAllowedError, match="is not over"):
            exam_report(anna.store, anna.by, ME, form.batch_id)
        with pytest.raises(NotAllowedError, match="is not over"):
            examined_trace(anna.store, anna.by, ME, form.batch_id, "research-001")
        anna.sit(more[0], anna.wrong(more[0], "partial_minus", "complete", 1))
    return exam_report(anna.store, anna.by, ME, form.batch_id)


def test_agreement_and_accuracy_are_of_the_form_alone(anna: Examinee) -> None:
    report = over(anna)
    assert report.fingerprint == over(anna).fingerprint
    assert (report.n, report.n_further) == (70, 12)
    assert report.accuracy.value == pytest.approx(63 / 70)
    # Shares: complete (26 + 22)/140, partial_plus (16 + 20)/140, partial_minus 11/70,
    # hallucinated (11 + 14)/140, abandoned (6 + 3)/140.
    shares = [48 / 140, 36 / 140, 22 / 140, 25 / 140, 9 / 140]
    chance = sum(p * (1 - p) for p in shares) / 4
    assert report.ac1.value == pytest.approx((0.9 - chance) / (1 - chance))
    assert known(report.ac1.interval)[0] > 0.70


def test_a_class_topped_up_counts_on_all_its_traces(anna: Examinee) -> None:
    report = over(anna)
    assert report.exam.status == report.decision.status == "passed"
    by_class = {c.decision.outcome: c for c in report.classes}
    assert [by_class[name].topped_up for name in OUTCOMES] == [False] * 4 + [True]
    abandoned = by_class["abandoned"].decision
    assert (abandoned.hits, abandoned.n, abandoned.shown) == (11, 14, True)
    assert by_class["complete"].recall.value == pytest.approx(22 / 26)


def test_errors_are_born_at_one_question_each(anna: Examinee) -> None:
    nodes = {n.node: n for n in over(anna).nodes}
    assert nodes["output"].table == ((64, 0), (3, 3))
    assert nodes["fabrication"].table == ((11, 0), (0, 53))
    assert nodes["all_subgoals"].table == ((22, 4), (0, 27))
    assert nodes["material_error"].table == ((11, 0), (0, 16))
    assert nodes["output"].agreement.value == pytest.approx(67 / 70)


def test_confusions_name_their_traces(anna: Examinee) -> None:
    found = {(c.canonical, c.given): c.trace_ids for c in over(anna).confusions}
    assert {k: len(ids) for k, ids in found.items()} == {
        ("complete", "partial_plus"): 4,
        ("abandoned", "hallucinated"): 3,
        ("partial_minus", "complete"): 1,
    }
    (trace_id, *_) = found["complete", "partial_plus"]
    shown = examined_trace(anna.store, anna.by, ME, over(anna).exam.batch_id, trace_id)
    assert (shown.canonical, shown.given, shown.trace.trace_id) == (
        "complete", "partial_plus", trace_id,
    )  # fmt: skip
    assert shown.rationale == anna.by.dataset.labels[trace_id].rationale
    seen = anna.store.exposure_frame()
    assert list(seen[seen["what"] == "canonical"]["trace_id"]) == [trace_id]
    with pytest.raises(NotAllowedError, match="not a trace of this examination"):
        examined_trace(anna.store, anna.by, ME, over(anna).exam.batch_id, "elsewhere")


def test_leniency_in_points_of_the_rate(anna: Examinee) -> None:
    report = over(anna)
    # Four complete runs get .4 in place of 1; the others have no credit either way.
    assert report.leniency.value == pytest.approx(100 * 4 * -0.6 / 70)
    assert report.leniency.interval is not None
    assert report.mix == "not known"
    assert report.leniency_in_production.value is None
    mix = {"complete": 0.8, "abandoned": 0.2}
    given = exam_report(anna.store, anna.by, ME, report.exam.batch_id, mix=mix)
    # In a class: 4 of 26 complete ones; abandoned ones move nothing.
    assert given.leniency_in_production.value == pytest.approx(100 * 0.8 * 4 * -0.6 / 26)
    assert given.mix == "the mix that was given"


def test_nobody_reports_on_what_is_no_examination_of_theirs(anna: Examinee) -> None:
    anna.store.add_reviewer("Ben")
    with pytest.raises(NotAllowedError, match="not an examination of yours"):
        exam_report(anna.store, anna.by, "ben", over(anna).exam.batch_id)


# The chance to pass: the quick limits are the slow ones, and the demands cost what they must


TREE = default_taxonomy()
FORM = dict(zip(TREE.credit, (26, 16, 11, 11, 6), strict=True))


@pytest.mark.parametrize("wrong", [0, 1, 5, 20])
def test_the_limit_of_many_tables_is_that_of_each(wrong: int) -> None:
    table = np.diag(list(FORM.values()))
    table[0, 0], table[0, 1] = table[0, 0] - wrong, wrong
    key, given = np.repeat(np.divmod(np.arange(25), 5), table.ravel(), axis=1)
    (slow,) = against_key(given[:, None], key, n_classes=5)
    assert slow.gwet_ac.interval is not None
    assert ac1_lower_limits(table[None]) == pytest.approx([slow.gwet_ac.interval[0]], abs=1e-9)


def test_the_same_seed_gives_the_same_curve() -> None:
    curves = [
        operating_curve(TREE, FORM, rng=np.random.default_rng(k), n_draws=200) for k in (1, 1, 2)
    ]
    assert curves[0] == curves[1] != curves[2]


def test_a_harder_rule_is_passed_less_often() -> None:
    def passing(rule: PassRule) -> float:
        rng = np.random.default_rng(1)
        return operating_curve(TREE, FORM, rng=rng, accuracies=(0.88,), rule=rule, n_draws=500)[
            0
        ].whole

    usual = passing(PassRule())
    assert passing(PassRule(ac1=0.8)) < usual < passing(PassRule(ac1=0.6))
    assert passing(PassRule(recall=0.9)) < usual


def test_a_class_that_the_form_lacks_is_not_asked_for() -> None:
    without = FORM | {"abandoned": 0}
    rng = np.random.default_rng(1)
    (point,) = operating_curve(TREE, without, rng=rng, accuracies=(1.0,), n_draws=10)
    assert point.whole == 1.0
