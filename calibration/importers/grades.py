"""The grade that a file gives its own runs, as a proposed verdict."""

import math
from collections.abc import Sequence

from calibration.importers.fields import note, shown
from calibration.records import NO_VERDICT, Outcome, Verdict

TOLERANCE = 1e-6  # tau-bench's own test for a reward of 1


def graded(
    reward: object, judge_id: str, trace_id: str, *, details: Sequence[str] = ()
) -> Verdict | None:
    """Return the verdict that a reward proposes: 1 is complete, 0 is partial_minus.

    Any other reward proposes no class: the verdict is ``no_verdict`` and its reason says so.
    A reward that is missing gives None.

    Examples
    --------
    >>> graded(1.0, "source:tau2", "t-1").outcome
    'complete'
    >>> graded(0.5, "source:tau2", "t-1").reason
    'reward 0.5 is neither 0 nor 1: no class follows from it'
    """
    if reward is None:
        return None
    if isinstance(reward, bool):
        reward = int(reward)
    usable = isinstance(reward, int | float) and (isinstance(reward, int) or math.isfinite(reward))
    outcome, first = NO_VERDICT, f"reward {shown(reward)} is neither 0 nor 1"
    if usable and isinstance(reward, int | float):
        for target, name in ((1, Outcome.COMPLETE), (0, Outcome.PARTIAL_MINUS)):
            if abs(reward - target) <= TOLERANCE:
                outcome, first = name.value, f"reward {target}"
    if outcome == NO_VERDICT:
        first += ": no class follows from it"
    return Verdict(
        judge_id=judge_id,
        trace_id=trace_id,
        outcome=outcome,
        reason=note("; ".join((first, *details))),
        proposed=outcome != NO_VERDICT,
    )
