"""A rater from outside beside a panel."""

import numpy as np
import pytest

from calibration.agreement.annotators import outsider_beside_panel
from tests.agreement.tables import rated


def test_by_hand() -> None:
    # Members agree on 4 of 6; the outsider agrees with Ann on 3 and with Ben on 4 of the 6.
    ann, ben = [0, 0, 1, 1, 0, 1], [0, 0, 1, 1, 1, 0]
    outsider = [0, 1, 1, 0, 1, 0]
    found = outsider_beside_panel(np.column_stack([ann, ben]), outsider, n_classes=2)
    percent = found["percent_agreement"]
    assert percent.panel.value == pytest.approx(4 / 6)
    assert percent.outsider.value == pytest.approx((2 / 6 + 4 / 6) / 2)
    # Per item the outsider's share less the panel's: -0, -1, 0, -1, .5, .5: jackknife of a mean.
    per_item = np.array([0, -1, 0, -1, 0.5, 0.5])
    assert percent.difference.value == pytest.approx(per_item.mean())
    assert percent.difference.se == pytest.approx(per_item.std(ddof=1) / np.sqrt(6))
    # Alpha: pairs count half, so 12 values, half the outsider's (6 of 0 and 6 of 1 in all);
    # D_o = 6/12, D_e = 2 x 6 x 6 / (12 x 11).
    assert found["krippendorff_alpha"].outsider.value == pytest.approx(1 - 0.5 / (72 / 132))
    # AC1: shares of the classes .5 each, so chance is .5.
    assert found["gwet_ac"].outsider.value == pytest.approx(0.0)


def test_an_outsider_like_a_member_lies_within() -> None:
    rng = np.random.default_rng(7)
    truth = rng.choice(3, 400, p=[0.6, 0.3, 0.1])
    raters = [np.where(rng.random(400) < 0.8, truth, rng.choice(3, 400)) for _ in range(4)]
    codes, outsider = np.column_stack(raters[:3]), raters[3]
    for beside in outsider_beside_panel(codes, outsider, n_classes=3).values():
        assert beside.within is True
        assert beside.difference.value == pytest.approx(0, abs=0.06)
    guess = outsider_beside_panel(codes, rng.choice(3, 400), n_classes=3)
    assert guess["gwet_ac"].within is False


def test_the_jackknife_covers_the_difference_of_zero() -> None:
    rng, covered = np.random.default_rng(8), 0
    for _ in range(200):
        raters = rated(rng, 60, [0.8] * 3, (0.6, 0.3, 0.1))
        found = outsider_beside_panel(raters[:, :2], raters[:, 2], n_classes=3)
        limits = found["krippendorff_alpha"].difference.interval
        assert limits is not None
        covered += limits[0] <= 0 <= limits[1]
    assert 178 <= covered <= 199


def test_only_items_that_all_share_count() -> None:
    codes = [[0, 0], [0, -1], [1, 1], [0, 1], [1, 1]]
    found = outsider_beside_panel(codes, [0, 0, -1, 0, 1], n_classes=2)["percent_agreement"]
    assert found.panel.n == found.outsider.n == 3
    assert found.panel.value == pytest.approx(2 / 3)


def test_nothing_to_compare_says_what_would_help() -> None:
    found = outsider_beside_panel([[0, -1], [1, -1]], [0, 1], n_classes=2)["gwet_ac"]
    assert found.within is None
    for part in (found.panel, found.outsider, found.difference):
        assert part.status.startswith("not_estimable: no item has two ratings of the panel")
    one = outsider_beside_panel([[0, 0]], [0], n_classes=2)["percent_agreement"]
    assert one.panel.value == 1.0
    assert one.difference.interval is None
    same = outsider_beside_panel([[0, 0], [0, 0]], [0, 0], n_classes=2)["krippendorff_alpha"]
    assert not same.panel.ok
    assert not same.difference.ok
    with pytest.raises(ValueError, match="outsider must have shape"):
        outsider_beside_panel([[0, 0]], [0, 1], n_classes=2)
