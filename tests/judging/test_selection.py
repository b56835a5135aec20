"""Splits, the best of several versions, pairs of versions, looks and certificates."""

from datetime import UTC, datetime, timedelta

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from calibration.agreement.annotators import equal_margins
from calibration.judging.selection import (
    AGREEMENT,
    CERTIFICATE_LABELS,
    DEVELOPMENT,
    KAPPA,
    JudgeCertificate,
    Minimum,
    PairedComparison,
    best_version,
    certify_judge,
    level_of_look,
    paired_comparison,
    split_of,
)
from calibration.statistics.contingency import (
    kappa_of_table,
    kappas_of_tables,
    mcnemar,
    paired_difference,
)
from calibration.statistics.estimate import IntArray

NOW = datetime(2026, 5, 1, tzinfo=UTC)
BEFORE = NOW - timedelta(days=1)


def rng() -> np.random.Generator:
    return np.random.default_rng(1)


def codes(*values: int) -> IntArray:
    return np.array(values, dtype=np.int64)


def test_the_split_is_for_ever() -> None:
    """As computed once: a change would turn locked labels into known ones."""
    keys = ("tau2/airline/1", "tau2/airline/2", "demo/run-0001", "ünïcode", "")
    assert "".join(split_of(key)[0] for key in keys) == "dcccd"


def test_three_tasks_in_ten_are_for_development() -> None:
    """10,000 keys: three standard errors of a share of .3 are .0137."""
    share = np.mean([split_of(f"task {k}") == DEVELOPMENT for k in range(10_000)])
    assert share == pytest.approx(0.3, abs=0.0137)


def test_the_correction_of_two_versions_on_two_traces() -> None:
    """Each is right on one trace. A bag of one trace twice, (1,1) or (2,2), chooses the version
    that is right there, which errs outside, where the two have .5 on average: -.5. Bags of both
    traces leave nothing out. So .5, the mean of the two, less .5.
    """
    found = best_version(codes(0, 0), np.array([[0, 1], [1, 0]]), n_classes=2, rng=rng())
    assert found.as_read.value == 0.5
    assert found.corrected.value == 0.0
    assert (found.version, found.n_versions) == (0, 2)


def test_one_version_is_not_corrected() -> None:
    human, verdicts = codes(0, 1, 0, 1, 1), np.array([[0], [1], [1], [1], [0]])
    for measure in (AGREEMENT, KAPPA):
        found = best_version(human, verdicts, n_classes=2, rng=rng(), measure=measure)
        assert found.corrected == found.as_read


def test_the_measure_decides_which_version_is_best() -> None:
    """Of 8 and 2 traces the first is right on 8 by naming one class, the second on 4 + 2.

    Kappa of the first is 0; of the second (.6 - .5) / (1 - .5), by chance .8 x .4 + .2 x .6 = .44:
    (.6 - .44) / .56 = 2/7.
    """
    human = codes(*[0] * 8, *[1] * 2)
    second = codes(0, 0, 0, 0, 1, 1, 1, 1, 1, 1)
    verdicts = np.column_stack([np.zeros(10, dtype=np.int64), second])
    by = {
        measure: best_version(human, verdicts, n_classes=2, rng=rng(), measure=measure)
        for measure in (AGREEMENT, KAPPA)
    }
    assert (by[AGREEMENT].version, by[AGREEMENT].as_read.value) == (0, 0.8)
    assert by[KAPPA].version == 1
    assert by[KAPPA].as_read.value == pytest.approx(2 / 7)


def test_few_labels_make_a_correction_provisional() -> None:
    for n, status in ((29, "provisional: 29 labels, 30 are needed: label more"), (30, "ok")):
        human = np.arange(n, dtype=np.int64) % 2
        verdicts = np.column_stack([human, 0 * human])
        found = best_version(human, verdicts, n_classes=2, rng=rng())
        assert found.corrected.status == status


def test_a_verdict_that_is_no_class_is_wrong() -> None:
    human = codes(0, 1, 0, 1)
    found = best_version(human, np.array([[5], [6], [0], [1]]), n_classes=2, rng=rng())
    assert found.as_read.value == 0.5


def test_no_labels_say_what_would_help() -> None:
    nothing = np.zeros((0, 3), dtype=np.int64)
    found = best_version(codes(), nothing, n_classes=2, rng=rng())
    assert found.corrected.status.startswith("not_estimable: no labelled trace")


def test_wrong_shapes_and_codes_are_refused() -> None:
    human, one = codes(0, 1), np.array([[0], [1]])
    with pytest.raises(ValueError, match="verdicts must have shape"):
        best_version(human, codes(0, 1), n_classes=2, rng=rng())
    with pytest.raises(ValueError, match="human must be in"):
        best_version(codes(0, 2), one, n_classes=2, rng=rng())
    with pytest.raises(ValueError, match="measure must be"):
        best_version(human, one, n_classes=2, rng=rng(), measure="f1")


tables = st.integers(2, 4).flatmap(
    lambda q: st.tuples(
        st.just(q),
        st.lists(
            st.tuples(st.integers(0, q - 1), st.lists(st.integers(0, q), min_size=3, max_size=3)),
            min_size=1,
            max_size=30,
        ),
    )
)


@settings(deadline=None, max_examples=60)
@given(tables, st.sampled_from([AGREEMENT, KAPPA]))
def test_invariants_of_the_correction(
    drawn: tuple[int, list[tuple[int, list[int]]]], measure: str
) -> None:
    q, rows = drawn
    human = codes(*[key for key, _ in rows])
    verdicts = np.array([three for _, three in rows])
    options = {"n_classes": q, "measure": measure, "n_resamples": 40}
    found = best_version(human, verdicts, rng=rng(), **options)  # type: ignore[arg-type]
    if found.as_read.value is None:
        assert found.corrected == found.as_read
        return
    # Never above what was read, and inside its own interval.
    assert found.corrected.value is not None
    assert found.corrected.value <= found.as_read.value
    if found.corrected.interval is not None:
        low, high = found.corrected.interval
        assert low - 1e-12 <= found.corrected.value <= high + 1e-12
    # Other numbers of the classes change nothing.
    turned = np.append(np.arange(q)[::-1], q)
    same = best_version(turned[human], turned[verdicts], rng=rng(), **options)  # type: ignore[arg-type]
    assert same.corrected.value == pytest.approx(found.corrected.value, abs=1e-9)
    # Equal versions: nothing was chosen.
    alike = best_version(human, verdicts[:, [0, 0, 0]], rng=rng(), **options)  # type: ignore[arg-type]
    if alike.as_read.value is not None:
        assert alike.corrected.value == pytest.approx(alike.as_read.value, abs=1e-9)


def compared(first_only: int, second_only: int, n: int = 70, **more: float) -> PairedComparison:
    """Compare two judges that are right alone on so many traces, and both on the others."""
    human = np.zeros(n, dtype=np.int64)
    first, second = human.copy(), human.copy()
    second[:first_only] = 1
    first[first_only : first_only + second_only] = 1
    return paired_comparison(human, first, second, n_classes=2, **more)


@pytest.mark.parametrize(
    ("first_only", "second_only", "better"),
    [
        (5, 0, "cannot_tell"),  # 2 x .5^5 = .0625
        (6, 0, "first"),  # .03125
        (0, 6, "second"),
        (0, 0, "cannot_tell"),
        (3, 3, "not_shown"),
        (10, 2, "first"),  # 2 x (1 + 12 + 66) / 4096 = .0386
        (9, 3, "not_shown"),  # 2 x (1 + 12 + 66 + 220) / 4096 = .1460
    ],
)
def test_who_is_better(first_only: int, second_only: int, better: str) -> None:
    found = compared(first_only, second_only)
    assert found.better == better
    assert found.needed == 6
    assert (found.first_only, found.second_only) == (first_only, second_only)
    assert found.difference.value == pytest.approx((first_only - second_only) / 70)
    tells = "provisional: cannot tell" not in found.difference.status
    assert tells == (better != "cannot_tell")


def test_a_stricter_level_needs_more() -> None:
    """At the second look, .975: 2 x .5^6 = .031 is too much, 2 x .5^7 = .0156 is not."""
    level = level_of_look(2).confidence_level
    assert compared(6, 0, confidence_level=level).better == "cannot_tell"
    assert compared(7, 0, confidence_level=level).better == "first"


def test_the_test_is_exact_for_many_too() -> None:
    found = compared(40, 20)
    assert found.test == mcnemar([[0, 20], [40, 10]], exact=True)
    assert found.test.method == "exact McNemar"


@given(st.integers(0, 30), st.integers(0, 30), st.integers(0, 40))
def test_the_other_way_round_it_is_the_opposite(a: int, b: int, both: int) -> None:
    if a + b + both == 0:
        return
    one, other = compared(a, b, a + b + both), compared(b, a, a + b + both)
    swapped = {"first": "second", "second": "first"}
    assert other.better == swapped.get(one.better, one.better)
    assert one.difference.interval is not None
    assert other.difference.interval is not None
    assert other.difference.interval == pytest.approx([-x for x in one.difference.interval[::-1]])
    assert one.test.p_value == other.test.p_value


def test_the_limits_are_those_of_two_raters() -> None:
    """The share of class 0 of the first rater less the second's: 10 + 8 less 10 + 4, of 32."""
    pairs = [[0, 0]] * 10 + [[0, 1]] * 8 + [[1, 0]] * 4 + [[1, 1]] * 10
    margin = equal_margins(pairs, n_classes=2).differences[0].difference
    found = paired_difference(8, 4, 32, nothing="")
    assert found.value == margin.value
    assert found.interval == pytest.approx(margin.interval)
    with pytest.raises(ValueError, match="not above n"):
        paired_difference(8, 4, 11, nothing="")
    assert paired_difference(0, 0, 0, nothing="label some").status == "not_estimable: label some"


@given(st.lists(st.lists(st.integers(0, 20), min_size=9, max_size=9), min_size=1, max_size=5))
def test_many_kappas_are_those_of_each_table(cells: list[list[int]]) -> None:
    many = np.array(cells, dtype=np.float64).reshape(-1, 3, 3)
    for value, table in zip(kappas_of_tables(many), many, strict=True):
        one = kappa_of_table(table).value
        assert np.isnan(value) if one is None else value == pytest.approx(one, abs=1e-12)


def test_levels_of_looks() -> None:
    assert [round(level_of_look(k).confidence_level, 4) for k in (1, 2, 5, 10)] == [
        0.95,
        0.975,
        0.99,
        0.995,
    ]
    assert [level_of_look(k).exploratory for k in (1, 2, 10)] == [False, True, True]
    with pytest.raises(ValueError, match="counted from 1"):
        level_of_look(0)


def certificate(
    right: int,
    n: int = CERTIFICATE_LABELS,
    *,
    minimum: float = 0.8,
    measure: str = AGREEMENT,
    number: int = 1,
    stated_at: datetime = BEFORE,
) -> JudgeCertificate:
    """Look at a judge that is right on so many of n traces of two classes."""
    human = np.arange(n, dtype=np.int64) % 2
    verdicts = np.where(np.arange(n) < right, human, 1 - human)
    return certify_judge(
        Minimum(value=minimum, measure=measure, stated_at=stated_at),
        human,
        verdicts,
        baseline=np.where(np.arange(n) < n // 2, human, 2),  # right on half, else no verdict
        majority=0,
        n_classes=2,
        looked_at=NOW,
        number=number,
    )


def test_a_judge_is_certified_by_its_lower_limit() -> None:
    """Wilson of 63 of 70 is [.808, .951], of 62 [.790, .941]; half-width about .07 at .9."""
    assert certificate(63).status == "certified"
    assert certificate(62).status == "not_shown"
    assert certificate(62).why == ("the lower limit of agreement is 0.790; 0.80 is asked for")


def test_the_half_width_at_70_is_about_nine_points() -> None:
    found = certificate(56).quality.accuracy
    assert found.half_width == pytest.approx(0.093, abs=0.001)


def test_kappa_may_be_what_is_asked_for() -> None:
    """Balanced classes: kappa is 2 x agreement - 1, 63 of 70 give .8."""
    found = certificate(63, minimum=0.6, measure=KAPPA)
    assert found.quality.kappa.value == pytest.approx(0.8)
    assert found.status == "certified"
    assert certificate(63, minimum=0.7, measure=KAPPA).status == "not_shown"


def test_a_second_look_never_certifies() -> None:
    found = certificate(70, number=2)
    assert found.status == "exploratory"
    assert "no certificate before 70 fresh locked labels" in found.why
    assert found.quality.accuracy.confidence_level == 0.975


def test_fewer_labels_never_certify() -> None:
    assert certificate(69, 69).status == "too_few"


def test_a_minimum_is_stated_first() -> None:
    with pytest.raises(ValueError, match="must be stated before the look"):
        certificate(70, stated_at=NOW)
    with pytest.raises(ValueError, match="a minimum must be in"):
        Minimum(value=1.0, stated_at=BEFORE)
    with pytest.raises(ValueError, match="measure must be"):
        Minimum(value=0.5, stated_at=BEFORE, measure="f1")


def test_a_certificate_stands_beside_what_costs_nothing() -> None:
    """The judge is right on 63. The majority class is right on 35 of them or of the 7 others: of
    traces 63 to 69 the judge errs, and the majority is right on those of class 0: 64, 66, 68.
    The baseline is right on 0 to 34, where the judge is right too.
    """
    found = certificate(63)
    assert (found.majority.first_only, found.majority.second_only) == (63 - 32, 3)
    assert (found.baseline.first_only, found.baseline.second_only) == (28, 0)
    assert found.majority.better == found.baseline.better == "first"
    assert [c.recall.n for c in found.quality.per_class] == [35, 35]


@given(st.integers(1, 69))
def test_one_more_right_never_takes_a_certificate_away(right: int) -> None:
    status = {certificate(k, minimum=0.5).status for k in (right, right + 1)}
    assert status != {"certified", "not_shown"} or certificate(right + 1, minimum=0.5).status == (
        "certified"
    )
