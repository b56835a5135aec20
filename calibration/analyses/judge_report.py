"""Everything that can be said of a judge: calibration, diagnostics, groups and drift."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import TypeVar

import numpy as np

from calibration.analyses.both_sides import BothSides
from calibration.analyses.calibrated import Calibrated, Choices
from calibration.analyses.calibration_files import calibrate_joined
from calibration.analyses.calibration_tables import Tables, calibrate_on_tables, sample_of_tables
from calibration.analyses.diagnosing import Diagnostics, diagnose
from calibration.analyses.drift import Drift
from calibration.analyses.file_diagnostics import diagnose_files, drift_of_files, groups_of_files
from calibration.analyses.joined_files import Ceilings, join_files
from calibration.analyses.judge import choose_judge, judge_of
from calibration.analyses.judge_diagnostics import diagnose_judged
from calibration.analyses.judge_groups import GroupRates, check_by, groups_of_judged
from calibration.analyses.judge_versions import compare_judges
from calibration.analyses.judged import read_judged
from calibration.analyses.verdict_files import LabelFile, VerdictFile, read_verdicts
from calibration.errors import CalibrationError, InputError
from calibration.records import OUTCOMES
from calibration.store import Store
from calibration.taxonomy import default_taxonomy

DIAGNOSTICS, GROUPS, DRIFT = "diagnostics", "groups", "drift"
# A claim about the labels that refuses the rate refuses that of every group.
OBJECTIONS = ("one_class_only", "not_a_sample", "other_workflows", "other_judge")
OF_TABLES = (
    "a table does not know single traces: no agreement among the humans, no leniency by group, no "
    "list of disagreements",
)

Part = TypeVar("Part")


@dataclass(frozen=True, slots=True, kw_only=True)
class Wanted:
    """What a report shall hold beside the calibration.

    Parameters
    ----------
    diagnostics : bool, default True
    by : str, optional
        Kind of group to give a rate for, one of `BY`.
    against : str, optional
        Judge to compare with; of files also another file of verdicts.
    judge_family : str, optional
        As in `diagnose`.
    """

    diagnostics: bool = True
    by: str | None = None
    against: str | None = None
    judge_family: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class JudgeReport:
    """A calibrated judge with its diagnostics.

    `not_computed` says why a part that was wanted is not there.
    """

    calibration: Calibrated
    diagnostics: Diagnostics | None = None
    groups: GroupRates | None = None
    drift: Drift | None = None
    not_computed: Mapping[str, str] = field(default_factory=dict)


def report_on_store(
    store: Store, batch_id: str | None, judge_id: str | None, choices: Choices, wanted: Wanted
) -> JudgeReport:
    """Report on a judge of a store and the labels of one batch.

    Raises
    ------
    InputError
        If a batch, judge or kind of group is not known.
    CalibrationError
        If nothing can be calibrated; what beside that cannot be computed is told in the report.
    """
    if wanted.by is not None:
        check_by(wanted.by)
    if wanted.against is not None:
        choose_judge(store, wanted.against)
    judged = read_judged(store, batch_id, judge_id, design=choices.design)
    calibration = judge_of(
        judged.loaded,
        store.verdict_frame(judged.judge_id),
        judge_id=judged.judge_id,
        **asdict(choices),
    )
    level = choices.confidence_level
    return _assembled(
        calibration,
        wanted,
        diagnostics=lambda: diagnose_judged(
            store, judged, judge_family=wanted.judge_family, confidence_level=level
        ),
        groups=lambda by: groups_of_judged(
            judged, by=by, pseudo_count=choices.pseudo_count, confidence_level=level,
            seed=choices.seed,
        ),
        drift=lambda other: compare_judges(
            store, other, judged.judge_id, batch_id=judged.loaded.batch.batch_id,
            confidence_level=level,
        ),
    )  # fmt: skip


def report_on_files(
    human: LabelFile,
    verdicts: VerdictFile,
    choices: Choices,
    wanted: Wanted,
    *,
    classes: Sequence[str] | None = None,
    credit: Mapping[str, float] | None = None,
    ceilings: Ceilings | None = None,
) -> JudgeReport:
    """Report on a judge by a file of labels and one of verdicts.

    Raises
    ------
    InputError, CalibrationError
        As `calibrate_on_files`.
    """
    if wanted.by is not None:
        check_by(wanted.by)
    other = None if wanted.against is None else _other(verdicts, wanted.against)
    known = ceilings or Ceilings(by_workflow={})
    joined, set_aside = join_files(human, verdicts, classes, credit, known)
    calibration = calibrate_joined(joined, human, verdicts, choices, known, set_aside)
    return _assembled(
        calibration,
        wanted,
        diagnostics=lambda: diagnose_files(
            joined, verdicts, choices, one_class=_one_class(calibration),
            judge_family=wanted.judge_family,
        ),
        groups=lambda by: groups_of_files(joined, choices, by=by),
        drift=lambda _: drift_of_files(joined, verdicts, other or verdicts, choices),
    )  # fmt: skip


def report_on_tables(tables: Tables, choices: Choices, wanted: Wanted) -> JudgeReport:
    """Report on a judge by tables counted elsewhere."""
    calibration = calibrate_on_tables(tables, choices)
    ours = set(tables.classes) <= set(OUTCOMES)

    def diagnosed() -> Diagnostics:
        return diagnose(
            BothSides(
                classes=tables.classes, verdict_names=tables.verdict_names,
                credit=np.array(tables.credit), sample=sample_of_tables(tables),
            ),
            taxonomy=default_taxonomy() if ours else None,
            one_class=_one_class(calibration),
            missing=OF_TABLES,
            fingerprint=calibration.fingerprint,
            confidence_level=choices.confidence_level,
        )  # fmt: skip

    return _assembled(calibration, wanted, diagnostics=diagnosed)


def _assembled(
    calibration: Calibrated,
    wanted: Wanted,
    *,
    diagnostics: Callable[[], Diagnostics],
    groups: Callable[[str], GroupRates] | None = None,
    drift: Callable[[str], Drift] | None = None,
) -> JudgeReport:
    not_computed: dict[str, str] = {}

    def attempt(part: str, compute: Callable[[], Part]) -> Part | None:
        try:
            return compute()
        except InputError:
            raise
        except CalibrationError as error:
            not_computed[part] = str(error)
            return None

    by, against = wanted.by, wanted.against
    found_groups = None
    objections = {n.why: n for n in calibration.calibration.refusals if n.code in OBJECTIONS}
    if by is not None and objections:
        not_computed[GROUPS] = "; ".join(objections)
    elif by is not None and groups is not None:
        found_groups = attempt(GROUPS, lambda: groups(by))
    return JudgeReport(
        calibration=calibration,
        diagnostics=attempt(DIAGNOSTICS, diagnostics) if wanted.diagnostics else None,
        groups=found_groups,
        drift=None if against is None or drift is None else attempt(DRIFT, lambda: drift(against)),
        not_computed=not_computed,
    )


def _one_class(calibration: Calibrated) -> bool:
    return any(n.code == "one_class_only" for n in calibration.calibration.refusals)


def _other(verdicts: VerdictFile, against: str) -> VerdictFile:
    """Return the verdicts to compare with: another file, or another judge of the same."""
    if Path(against).is_file():
        return read_verdicts(Path(against))
    if against == verdicts.judge:
        raise InputError(f"the two judges must differ, got {against!r:.80} twice")
    return read_verdicts(verdicts.path, judge=against)
