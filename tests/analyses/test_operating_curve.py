"""The chance to pass: the quick limits are the slow ones, and the demands cost what they must."""

import numpy as np
import pytest

from calibration.agreement.annotators import against_key
from calibration.analyses.reviewers.exam_report import ac1_lower_limits, operating_curve
from calibration.reviewers.certification import PassRule
from calibration.taxonomy import default_taxonomy

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
