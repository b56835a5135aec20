"""The one call: arrays and tables agree, refusals and warnings appear as data."""

from typing import Any, Literal

import numpy as np
import pytest

from calibration.judge_calibration.calibrate import Calibration, calibrate, calibrate_tables
from calibration.judge_calibration.samples import LabelledSample, Notice

CREDIT = [1.0, 0.4, 0.0]
TABLE = np.array([[40, 5, 3, 2], [4, 30, 5, 1], [2, 4, 50, 4]])
COUNTS = [520, 220, 210, 50]
Design = Literal["production", "reference"]
DESIGNS: tuple[Design, ...] = ("production", "reference")


def arrays(table: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    rows, columns = np.divmod(np.repeat(np.arange(table.size), table.ravel()), table.shape[1])
    return np.eye(table.shape[0])[rows], columns


PENALTIES = np.linspace(0, 0.8, 1000)


def run(
    design: Design,
    *,
    penalties: Any = PENALTIES,
    sample: dict[str, Any] | None = None,
    **settings: Any,
) -> Calibration:
    """Calibrate on the labels of TABLE, or on others for what `sample` names."""
    human, verdicts = arrays(TABLE)
    own = None if penalties is None else np.linspace(0, 0.5, verdicts.size)
    of = LabelledSample(**{"human": human, "verdicts": verdicts, "penalties": own} | (sample or {}))
    return calibrate(
        of, production_verdicts=np.repeat(np.arange(4), COUNTS), production_penalties=penalties,
        credit=CREDIT, design=design, **settings,
    )  # fmt: skip


def codes(notices: tuple[Notice, ...]) -> set[tuple[str, str]]:
    return {(n.code, n.estimator) for n in notices}


@pytest.mark.parametrize("design", DESIGNS)
def test_arrays_and_tables_give_the_same_gross_estimates(design: Design) -> None:
    from_arrays = run(design)
    from_tables = calibrate_tables(TABLE, COUNTS, credit=CREDIT, design=design)
    for name, pair in from_tables.estimates.items():
        assert pair.net == pair.gross
        assert from_arrays.estimates[name].gross.value == pytest.approx(pair.gross.value)
        assert from_arrays.estimates[name].gross.interval == pytest.approx(pair.gross.interval)
    assert from_arrays.headline == from_tables.headline


def test_net_is_below_gross_and_the_headline_is_the_named_estimate() -> None:
    result = run("production")
    assert result.headline == "post_stratified"
    assert result.headline_estimate is result.estimates["post_stratified"]
    for pair in result.estimates.values():
        assert pair.net.value is not None
        assert pair.gross.value is not None
        assert pair.net.value < pair.gross.value
    assert (result.n_labels, result.n_production) == (150, 1000)
    assert result.refusals == ()


def test_a_class_that_does_not_count_may_have_few_labels() -> None:
    table = np.array([[40, 3, 1], [4, 30, 1], [0, 1, 6]])
    rare = calibrate_tables(table, [700, 290, 10], credit=CREDIT, design="reference")
    assert rare.headline == "inversion"
    # A class of seven labels has the limits of the posterior.
    shares = rare.class_shares["inversion"]
    assert shares[2].interval == rare.class_shares["bayesian"][2].interval
    assert shares[2].interval is not None
    assert shares[2].value == rare.class_shares["bayesian"][2].value
    assert rare.inversion.prevalence[2] < 0
    assert shares[0].value == rare.inversion.prevalence[0]
    common = calibrate_tables(table, [700, 200, 100], credit=CREDIT, design="reference")
    assert ("few_reference_labels", "inversion") in codes(common.refusals)


def test_ppi_plus_plus_warns_below_sixty_labels() -> None:
    few, enough = (
        np.array([[20, 2, 2], [2, 16, 2], [1, 2, 12]]),
        [[21, 2, 2], [2, 16, 2], [1, 2, 12]],
    )
    warned = [
        ("ppi_few_labels", "ppi_plus_plus")
        in codes(
            calibrate_tables(table, [500, 300, 200], credit=CREDIT, design="production").warnings
        )
        for table in (few, enough)
    ]
    assert (few.sum(), warned) == (59, [True, False])


def test_small_verdicts_are_merged_and_named() -> None:
    table = np.array([[40, 5, 3, 0], [4, 30, 5, 1], [2, 4, 50, 1]])
    result = calibrate_tables(
        table, COUNTS, credit=CREDIT, design="production", verdict_names=["a", "b", "c", "none"]
    )
    (notice,) = (n for n in result.warnings if n.code == "verdict_merged")
    assert notice.why == "verdict none has 2 labels and is merged with b"


def test_shares_outside_the_unit_interval_are_a_warning() -> None:
    table = [[50, 10, 2], [10, 50, 5], [20, 10, 60]]
    result = calibrate_tables(table, [900, 80, 20], credit=CREDIT, design="reference")
    assert ("share_outside_unit_interval", "inversion") in codes(result.warnings)
    assert min(result.inversion.prevalence) < 0 <= min(result.inversion.prevalence_clipped)


def test_open_disagreements_make_the_estimates_provisional() -> None:
    result = run("production", open_disagreements=3)
    assert result.estimates["ppi_plus_plus"].net.status == "provisional: 3 open disagreements"
    status = "provisional: 3 open disagreements: reviewer error is not in the interval"
    assert result.estimates["post_stratified"].net.status == status
    assert result.estimates["judge_raw"].net.status == "ok"
    assert result.headline == "post_stratified"


def test_repeated_tasks_reach_every_estimate() -> None:
    result = run("production", penalties=None, sample={"clusters": np.arange(150) % 30})
    assert "by task" in result.estimates["post_stratified"].net.method
    assert "cluster" in result.estimates["human_only"].net.method
    # 30 tasks of five labels each, of unequal weight by verdict: a little fewer effective ones.
    for share in result.class_shares["post_stratified"]:
        assert share.df is not None
        assert 28 < share.df < 29
    assert "by task" in result.estimates["inversion"].net.method
    assert "cluster" in result.estimates["ppi_plus_plus"].net.method


def test_nothing_labelled_is_no_error() -> None:
    for design in DESIGNS:
        nothing = {"human": np.empty((0, 3)), "verdicts": np.empty(0, dtype=int)}
        result = run(design, penalties=None, sample=nothing)
        assert result.headline is None
        assert result.estimates["judge_raw"].net.ok


def test_bad_arguments_are_refused() -> None:
    with pytest.raises(ValueError, match="design must be"):
        calibrate_tables(TABLE, COUNTS, credit=CREDIT, design="other")  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="penalties must be given for both"):
        run("production", sample={"penalties": None})
    with pytest.raises(ValueError, match="table must have shape"):
        calibrate_tables(TABLE, [1, 2, 3], credit=CREDIT, design="reference")
    with pytest.raises(ValueError, match="table of counts"):
        calibrate_tables([[0.5, 1]], [1, 2], credit=[1, 0], design="reference")


def test_two_further_verdicts_reach_every_estimator() -> None:
    """`no_verdict` and `split` are columns beside the classes."""
    table = np.array([[60, 5, 3, 2, 1], [4, 50, 5, 1, 3], [2, 4, 70, 4, 2]])
    counts = [5200, 2200, 2100, 500, 300]
    for design in DESIGNS:
        result = calibrate_tables(table, counts, credit=CREDIT, design=design, force=True)
        assert result.headline == ("inversion" if design == "reference" else "post_stratified")
        for name, pair in result.estimates.items():
            assert pair.net.ok, name
            assert len(result.class_shares[name]) == 3
            total = sum(share.value or 0 for share in result.class_shares[name])
            assert total == pytest.approx(1, abs=1e-6), name
    near = [result.estimates[name].net.value for name in ("inversion", "bayesian", "bootstrap")]
    assert near == pytest.approx([near[0]] * 3, abs=0.02)


def test_the_seed_decides_the_draws_and_nothing_else_does() -> None:
    def drawn(seed: int, **settings: Any) -> list[Any]:
        result = calibrate_tables(
            TABLE, COUNTS, credit=CREDIT, design="reference", seed=seed, **settings
        )
        return [result.estimates[name].net for name in ("bayesian", "bootstrap")]

    assert drawn(0) == drawn(0)
    assert drawn(0) != drawn(1)
    assert drawn(3, estimators=["bootstrap", "bayesian"]) == drawn(3)


def test_only_what_was_asked_for_is_run() -> None:
    result = calibrate_tables(
        TABLE, COUNTS, credit=CREDIT, design="reference", estimators=["bayesian", "inversion"]
    )
    assert list(result.estimates) == ["inversion", "bayesian"]
    assert result.posterior_size is not None
    assert result.power_tuning is None
    raw = calibrate_tables(
        TABLE, COUNTS, credit=CREDIT, design="production", estimators=["judge_raw"]
    )
    assert raw.headline is None
    with pytest.raises(ValueError, match="estimators must be among"):
        calibrate_tables(TABLE, COUNTS, credit=CREDIT, design="reference", estimators=["em"])


def test_a_refusal_reaches_all_that_share_the_assumption() -> None:
    notice = Notice(code="other_judge", estimator="inversion", why="another judge", mend="rerun")
    result = calibrate_tables(TABLE, COUNTS, credit=CREDIT, design="reference", refusals=[notice])
    refused = {name for code, name in codes(result.refusals) if code == "other_judge"}
    assert refused == {"inversion", "bayesian", "bootstrap"}
    assert result.headline is None
    assert "another judge" in result.estimates["inversion"].net.status
    two = calibrate_tables([[20, 20], [20, 20]], [50, 50], credit=[1.0, 0.0], design="reference")
    weak = {name for code, name in codes(two.refusals) if code == "judge_too_weak"}
    assert weak == {"inversion", "bayesian", "bootstrap", "lee"}
    assert "classes_not_separated" in {code for code, _ in codes(two.refusals)}
    assert all(share.value is None for share in two.class_shares["inversion"])
    few = calibrate_tables(
        [[10, 1, 1], [1, 6, 1], [1, 1, 6]], [50, 40, 30], credit=CREDIT, design="production"
    )
    sample = {name for code, name in codes(few.refusals) if code == "few_labels"}
    assert sample == {"post_stratified", "ppi_plus_plus", "bootstrap"}
    assert (few.headline, few.headline_estimate) == (None, None)
    assert few.estimates["human_only"].net.ok


def test_a_forced_value_is_still_refused() -> None:
    weak = np.array([[20, 12, 12], [12, 20, 12], [12, 12, 20]])
    plain = calibrate_tables(weak, [400, 300, 300], credit=CREDIT, design="reference")
    forced = calibrate_tables(weak, [400, 300, 300], credit=CREDIT, design="reference", force=True)
    assert plain.estimates["inversion"].net.value is None
    estimate = forced.estimates["inversion"].net
    assert estimate.value is not None
    assert estimate.status == plain.estimates["inversion"].net.status
    assert forced.headline is None
    assert forced.refusals == plain.refusals


def test_net_scores_of_labels_need_their_costs() -> None:
    result = run("reference", sample={"penalties": None}, force=True)
    assert result.headline == "inversion"
    assert result.estimates["human_only"].net.value is None
    assert result.estimates["human_only"].gross.value is not None
    assert result.estimates["bayesian"].net.value == pytest.approx(
        result.estimates["inversion"].net.value, abs=0.02
    )
