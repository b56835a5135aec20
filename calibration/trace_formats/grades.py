"""The grade that a file gives its own runs, as a proposed verdict."""

import math
from collections.abc import Sequence

from calibration.records import NO_VERDICT, Outcome, Verdict
from calibration.trace_formats.fields import note, shown

TOLERANCE = 1e-6  # tau-bench's own test for a reward of 1


CLASS_OF_GRADE = {
    5: Outcome.COMPLETE,
    4: Outcome.PARTIAL_PLUS,
    3: Outcome.PARTIAL_MINUS,
    2: Outcome.PARTIAL_MINUS,
    1: Outcome.PARTIAL_MINUS,
}


def graded_to_five(
    grade: object, judge_id: str, trace_id: str, *, details: Sequence[str] = ()
) -> Verdict:
    """Return the verdict that a grade from 1 to 5 proposes, with the grade kept beside it.

    5 is complete, 4 partial_plus, less is partial_minus: hallucinated and abandoned do not follow
    from a grade. Anything but a whole number from 1 to 5 proposes no class.

    Examples
    --------
    >>> found = graded_to_five(4, "source:transcript", "t-1")
    >>> found.outcome, found.grade
    ('partial_plus', 4)
    """
    number = None
    if isinstance(grade, int | float) and not isinstance(grade, bool) and grade in CLASS_OF_GRADE:
        number = int(grade)
    first = f"grade {shown(grade)}"
    if number is None:
        first += " is no whole number from 1 to 5: no class follows from it"
    return Verdict(
        judge_id=judge_id,
        trace_id=trace_id,
        outcome=NO_VERDICT if number is None else CLASS_OF_GRADE[number].value,
        reason=note("; ".join((first, *details))),
        proposed=number is not None,
        grade=number,
    )


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
