"""Whether a judge can be used, in one plain sentence for each use."""

from calibration.agreement.outsider import BesidePanel
from calibration.analyses.calibrated import Calibrated
from calibration.correction.results import HEADLINE
from calibration.estimates import OK
from calibration.reporting.calibration import WIDER
from calibration.reporting.judge_diagnostics import beside_humans
from calibration.reporting.text import figure

ELSEWHERE = (
    "For other tasks, other periods or another version of the judge: not without labels of theirs."
)
# Of single classes or of cross-checks: no reason to doubt the rate.
ASIDE = ("class_few_labels",)


def for_the_rate(result: Calibrated) -> str:
    """Say whether the rate corrected with this judge can be used: yes, yes but, or no because."""
    calibration = result.calibration
    head = calibration.headline_estimate
    if head is None:
        refused = HEADLINE[result.design]
        whys = [n.why for n in calibration.refusals if n.estimator == refused]
        return f"For the rate: no, because {'; '.join(whys) or 'it is refused'}."
    but = [] if head.net.status == OK else [head.net.status.replace("_", " ", 1)]
    mine = [w for w in calibration.warnings if w.estimator == calibration.headline]
    if any(w.code == WIDER for w in mine):
        but.append("it adds nothing to the human labels: the interval is no shorter with it")
    but += [w.why for w in mine if w.code not in (*ASIDE, WIDER)]
    if result.design == "reference":
        but.append("only as long as it errs in production as on these traces")
    said = f"yes, corrected it is {figure(head.net).removesuffix(' +')}"
    return f"For the rate: {said}{', but ' if but else ''}{'; '.join(but)}."


def for_single_traces(result: Calibrated, alpha: BesidePanel) -> str:
    """Say whether the verdict on a single trace may stand for a human label."""
    accuracy = result.calibration.judge.accuracy
    if accuracy.value is None:
        return f"For single traces: not known, {accuracy.status.replace('_', ' ', 1)}."
    if alpha.within is None:
        return (
            "For single traces: not known, too few traces have two human labels to tell how far "
            "humans differ among themselves."
        )
    said = beside_humans(alpha)
    return f"For single traces: {'perhaps' if alpha.within else 'no'}, {said}."
