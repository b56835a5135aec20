"""From raw agent traces to one Agent Success Rate you can defend.

Ten functions take pandas frames and give results; the stages behind them are the folders. They
are loaded when they are first asked for, so that ``import calibration`` costs nothing.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from calibration.api import (
        agent_success_rate,
        calibrate,
        compare,
        measure_agreement,
        open_store,
        pass_at_k,
        plan_agreement,
        plan_labels,
        read_traces,
    )
    from calibration.taxonomy import default_taxonomy

__all__ = [
    "agent_success_rate",
    "calibrate",
    "compare",
    "default_taxonomy",
    "measure_agreement",
    "open_store",
    "pass_at_k",
    "plan_agreement",
    "plan_labels",
    "read_traces",
]


def __getattr__(name: str) -> Any:
    """Load a public function when it is asked for."""
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module("calibration.api"), name)
