"""What all tests share: how Hypothesis searches, and less effort for what is not tested."""

import os
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, settings

from calibration.judge_calibration import bayesian
from calibration.judge_calibration.bayesian import Draws, draw_posterior
from tests.cli_runs import asr, calibrate, filled, template
from tests.stores import built_in

__all__ = ["asr", "calibrate", "filled", "template"]

# The same examples in every run of the suite, others in `make fuzz`: a suite that draws new
# examples each time may fail on a commit that it passed an hour before.
# Without a deadline: how long an example takes says how busy the machine is, not what is wrong.
settings.register_profile(
    "suite",
    derandomize=True,
    database=None,
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow],
)

settings.register_profile("fuzz", max_examples=2000, print_blob=True, deadline=None)

settings.load_profile("suite")


@pytest.fixture
def full_draws() -> None:
    """Draw from the posterior as in the field, where a figure of it is looked at."""


@pytest.fixture
def few_draws(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Draw a tenth from the posterior: tests/judge_calibration looks at its figures."""

    def few(*tables: Any, wanted: int, **options: Any) -> Draws:
        return draw_posterior(*tables, wanted=wanted // 10, **options)

    if "full_draws" not in request.fixturenames:
        monkeypatch.setattr(bayesian, "draw_posterior", few)


@pytest.fixture(scope="session")
def built_demo(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the demo of seed 1, to be copied and not to be opened."""
    own = tmp_path_factory.mktemp("demo")
    base = tmp_path_factory.getbasetemp()
    of_all = base.parent if "PYTEST_XDIST_WORKER" in os.environ else base
    return built_in(of_all / "built-demo", own)
