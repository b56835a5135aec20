"""The judge report: calibration, diagnostics, groups and drift, from any calibration data."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, TypeVar

from calibration.analyses.evidence.data import CalibrationData
from calibration.analyses.evidence.from_store import choose_judge, load_judged, with_context
from calibration.analyses.judge.calibration import (
    CalibrationOptions,
    JudgeCalibration,
    calibrate_judge,
)
from calibration.analyses.judge.diagnostics import JudgeDiagnostics, diagnose
from calibration.analyses.judge.drift import (
    JudgeDrift,
    compare_judges,
    compare_verdicts,
    other_verdicts,
)
from calibration.analyses.judge.groups import GroupRates, check_by, group_rates
from calibration.errors import CalibrationError, InputError
from calibration.tables.labels import VerdictTable, settled_verdicts

if TYPE_CHECKING:
    from calibration.store import Store

DIAGNOSTICS, GROUPS, DRIFT = "diagnostics", "groups", "drift"

# An objection to the labels that refuses the rate also refuses the rate of every group.
OBJECTIONS = ("one_class_only", "not_a_sample", "other_workflows", "other_judge")

Result = TypeVar("Result")


@dataclass(frozen=True, slots=True, kw_only=True)
class JudgeReport:
    """A calibrated judge with its diagnostics; `not_computed` gives reasons for missing parts."""

    calibration: JudgeCalibration
    diagnostics: JudgeDiagnostics | None = None
    groups: GroupRates | None = None
    drift: JudgeDrift | None = None
    not_computed: Mapping[str, str] = field(default_factory=dict)


def report_on_store(
    store: "Store", batch_id: str | None, judge_id: str | None, options: CalibrationOptions
) -> JudgeReport:
    """Report on a judge of a store and the labels of one batch.

    Parts that cannot be computed are named in the report. Raises InputError if a batch, judge or
    kind of group is not known; CalibrationError if the judge cannot be calibrated.
    """
    if options.by is not None:
        check_by(options.by)
    if options.against is not None:
        choose_judge(store, options.against)
    data = load_judged(store, batch_id, judge_id)
    provenance = data.provenance
    return _report(
        with_context(store, data) if options.diagnostics else data,
        options,
        lambda other: compare_judges(
            store, other, provenance.judge_id, batch_id=provenance.batch_id, options=options
        ),
    )


def report_on(
    data: CalibrationData, options: CalibrationOptions, against: VerdictTable | None = None
) -> JudgeReport:
    """Report on a judge by labels and verdicts of tables; raises as `report_on_store`.

    `against` has the verdicts of the judge that `options` names, where they were read already.
    """
    if options.by is not None:
        check_by(options.by)
    if options.against is None:
        return _report(data, options, None)
    other = (
        other_verdicts(data.provenance, options.against)
        if against is None
        else settled_verdicts(against)
    )
    return _report(data, options, lambda _: compare_verdicts(data, other, options))


def _report(
    data: CalibrationData,
    options: CalibrationOptions,
    drift: Callable[[str], JudgeDrift] | None,
) -> JudgeReport:
    calibration = calibrate_judge(data, options)
    refusals = calibration.calibration.refusals
    not_computed: dict[str, str] = {}

    def attempt(part: str, compute: Callable[[], Result]) -> Result | None:
        try:
            return compute()
        except InputError:
            raise
        except CalibrationError as error:
            not_computed[part] = str(error)
            return None

    by, against, groups = options.by, options.against, None
    objections = {n.why: n for n in refusals if n.code in OBJECTIONS}
    if by is not None and objections:
        not_computed[GROUPS] = "; ".join(objections)
    elif by is not None:
        groups = attempt(GROUPS, lambda: group_rates(data, options, by=by))
    one_class = any(n.code == "one_class_only" for n in refusals)
    return JudgeReport(
        calibration=calibration,
        diagnostics=attempt(DIAGNOSTICS, lambda: diagnose(data, options, one_class=one_class))
        if options.diagnostics
        else None,
        groups=groups,
        drift=None if against is None or drift is None else attempt(DRIFT, lambda: drift(against)),
        not_computed=not_computed,
    )
