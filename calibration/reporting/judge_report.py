"""Everything on a judge as text and JSON: the human ceiling first, then the judge, then rates."""

from collections.abc import Callable, Iterator
from typing import TypeVar

from calibration.analyses.diagnosing import Diagnostics
from calibration.analyses.judge_report import DIAGNOSTICS, DRIFT, GROUPS, JudgeReport
from calibration.reporting import calibration as of_calibration
from calibration.reporting import calibration_json, judge_comparisons
from calibration.reporting import judge_diagnostics as of_diagnostics
from calibration.reporting import judge_diagnostics_json as diagnostics_json
from calibration.reporting.json_values import Json

Part = TypeVar("Part")


def text(report: JudgeReport) -> Iterator[str]:
    """Yield the report; a part that could not be computed says why and hides no other."""
    found, not_computed = report.calibration, report.not_computed
    yield from of_calibration.heading(found)
    if report.diagnostics is not None:
        yield ""
        yield from of_diagnostics.ceiling(report.diagnostics.ceiling)
    yield ""
    yield from of_calibration.use(found)
    yield ""
    yield from of_calibration.crossed(found)
    yield ""
    yield from of_calibration.quality(found)
    if report.diagnostics is not None:
        yield from of_diagnostics.where(report.diagnostics)
    elif DIAGNOSTICS in not_computed:
        yield ""
        yield f"Diagnostics: not computed, {not_computed[DIAGNOSTICS]}"
    if report.drift is not None:
        yield ""
        yield from judge_comparisons.drift(report.drift)
    elif DRIFT in not_computed:
        yield ""
        yield f"Has the judge moved? Not known: {not_computed[DRIFT]}"
    yield ""
    yield from of_calibration.rates(found)
    if report.groups is not None:
        yield ""
        yield from judge_comparisons.groups(report.groups)
    elif GROUPS in not_computed:
        yield ""
        yield f"Agent success rate by group: not estimable, {not_computed[GROUPS]}"
    yield ""
    yield from of_calibration.mending(found)
    yield ""
    yield f"seed {found.seed}; fingerprint {found.fingerprint[:16]}"


def as_json(report: JudgeReport) -> Json:
    """Return the calibration, and beside its keys the other parts; null where not asked for."""
    not_computed = report.not_computed

    def part(name: str, found: Part | None, shown: Callable[[Part], Json]) -> Json | None:
        if found is not None:
            return shown(found)
        why = not_computed.get(name)
        return None if why is None else {"status": f"not_estimable: {why}"}

    diagnostics: Diagnostics | None = report.diagnostics
    return {
        **calibration_json.result(report.calibration),
        DIAGNOSTICS: part(DIAGNOSTICS, diagnostics, diagnostics_json.diagnostics),
        GROUPS: part(GROUPS, report.groups, diagnostics_json.groups),
        DRIFT: part(DRIFT, report.drift, diagnostics_json.drift),
    }
