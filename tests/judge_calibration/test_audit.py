import pytest

from calibration.judge_calibration.label_planning import FEWEST, audit_size, error_rate


@pytest.mark.parametrize("error", [0.02, 0.1, 0.3, 0.5])
@pytest.mark.parametrize("half_width", [0.02, 0.05, 0.1])
def test_the_size_gives_the_half_width_and_one_fewer_does_not(
    error: float, half_width: float
) -> None:
    n = audit_size(half_width, error=error)
    reached = error_rate(error * n, n).half_width
    assert reached is not None
    assert reached <= half_width
    if n > FEWEST:
        below = error_rate(error * (n - 1), n - 1).half_width
        assert below is not None
        assert below > half_width


def test_no_error_seen_is_no_certainty() -> None:
    found = error_rate(0, 50)
    assert found.interval is not None
    assert found.interval[1] == pytest.approx(0.0713, abs=1e-3)
    assert not error_rate(0, 1).ok


@pytest.mark.parametrize(("half_width", "error"), [(0.0, 0.5), (0.5, 0.5), (0.1, 1.5)])
def test_what_is_no_plan_is_refused(half_width: float, error: float) -> None:
    with pytest.raises(ValueError, match="must be in"):
        audit_size(half_width, error=error)
