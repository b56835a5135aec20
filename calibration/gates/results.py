"""What came of the gates."""

from dataclasses import dataclass
from typing import Literal

from calibration.gates.settings import Level

Status = Literal["pass", "fail", "skipped", "not_estimable"]
PASSED, FAILED = 0, 1


@dataclass(frozen=True, slots=True, kw_only=True)
class Part:
    """One of several conditions of a gate: a class, a category, a workflow."""

    name: str
    status: Status
    value: float | None
    interval: tuple[float, float] | None
    rule: str
    n: int
    why: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class GateResult:
    """One gate.

    Parameters
    ----------
    name : str
        As in the gate file.
    level : {"must", "should"}
        Whether it can fail the run.
    status : {"pass", "fail", "skipped", "not_estimable"}
        `skipped` when it was not recorded, `not_estimable` when there is too little of it.
    value, interval : float, tuple of float or None
        What was measured.
    threshold : float or None
        What it was held to; None where the parts have their own.
    rule : str
        The condition in words.
    n : int
        Units behind the value.
    method : str
        Estimator and interval.
    why : str
        Why it has this status, and what would help.
    blocks : bool
        Whether it fails the run: a must gate that failed, or has no result and may not.
    parts : tuple of Part
        The conditions it is made of, where there are several.
    """

    name: str
    level: Level
    status: Status
    value: float | None
    interval: tuple[float, float] | None
    threshold: float | None
    rule: str
    n: int
    method: str
    why: str
    blocks: bool
    parts: tuple[Part, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class GateReport:
    """All gates of a run."""

    gates: tuple[GateResult, ...]
    confidence_level: float

    @property
    def blocking(self) -> tuple[GateResult, ...]:
        """The gates that fail the run."""
        return tuple(gate for gate in self.gates if gate.blocks)

    @property
    def exit_code(self) -> int:
        """0 when nothing blocks, else 1."""
        return FAILED if self.blocking else PASSED
