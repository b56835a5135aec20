"""The judge report: calibration, diagnostics, groups and drift, on a store or on files."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import TypeVar

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from calibration.agreement.ratings import parting_questions
from calibration.analyses.evidence.data import UNKNOWN, BothSides, group_names
from calibration.analyses.evidence.from_files import (
    NO_CLASS,
    Ceilings,
    JoinedFiles,
    human_shares,
    join_files,
)
from calibration.analyses.evidence.from_store import choose_judge, read_judged
from calibration.analyses.judge.calibration import (
    Calibrated,
    Choices,
    Tables,
    calibrate_joined,
    calibrate_on_tables,
    file_fingerprint,
    judge_of,
    sample_of_files,
    sample_of_tables,
)
from calibration.analyses.judge.diagnostics import Diagnostics, diagnose, diagnose_judged
from calibration.analyses.judge.disagreements import Heard, Said, disagreements
from calibration.analyses.judge.drift import Drift, SameTraces, compare_judges, drift_of
from calibration.analyses.judge.groups import (
    Grouped,
    GroupRates,
    check_by,
    group_rates,
    groups_of_judged,
)
from calibration.errors import CalibrationError, InputError
from calibration.judge_calibration.bias import MISSING
from calibration.records import NO_VERDICT, OUTCOMES
from calibration.store import Store
from calibration.tables.labels import LabelFile, VerdictFile, read_verdicts
from calibration.taxonomy import default_taxonomy

SIZES = {"response": "response_chars", "steps": "steps"}

COLUMN = {"agent": "agent", "workflow": "workflow", "model": "model", "week": "started_at"}


DIAGNOSTICS, GROUPS, DRIFT = "diagnostics", "groups", "drift"

# A claim about the labels that refuses the rate refuses that of every group.
OBJECTIONS = ("one_class_only", "not_a_sample", "other_workflows", "other_judge")

OF_TABLES = (
    "a table does not know single traces: no agreement among the humans, no leniency by group, no "
    "list of disagreements",
)


def diagnose_files(
    joined: JoinedFiles,
    verdicts: VerdictFile,
    choices: Choices,
    *,
    one_class: bool,
    judge_family: str | None = None,
) -> Diagnostics:
    """Compare a judge with the humans on the labelled traces of files.

    With `one_class` every label is of one class: then nothing can be said of how lenient the judge
    is, nor of the questions.
    """
    shares, _ = human_shares(joined, leave_out=None)
    sides = sides_of_files(joined, shares, choices)
    ours = set(joined.classes) <= set(OUTCOMES)
    taxonomy = default_taxonomy() if ours else None
    frame = _frame(joined)
    agents, workflows = (_groups(frame, by)[joined.at] for by in ("agent", "workflow"))

    def heard(row: int) -> Heard:
        return _heard(joined, row, str(workflows[row]), str(agents[row]))

    return diagnose(
        sides,
        taxonomy=taxonomy,
        one_class=one_class,
        disagreements=disagreements(
            sides,
            heard,
            judged=np.bincount(joined.verdicts, minlength=len(joined.names)),
            parting=parting_questions(taxonomy.paths(joined.classes)) if taxonomy else None,
        ),
        samples=_samples(joined, verdicts),
        judge_family=judge_family,
        missing=tuple(_missing(joined, verdicts, sides, ours=ours)),
        fingerprint=file_fingerprint(
            joined,
            "diagnose files",
            {
                "judge": verdicts.judge, "family": judge_family, "design": choices.design,
                "confidence_level": choices.confidence_level,
            },
            rows=frame.sort_values("trace_id"),
        ),
        confidence_level=choices.confidence_level,
    )  # fmt: skip


def sides_of_files(joined: JoinedFiles, shares: NDArray[np.float64], choices: Choices) -> BothSides:
    """Return both sides of the labelled traces, with the columns that say something of them."""
    frame = _frame(joined).iloc[joined.at]
    panel = _panel(joined)
    return BothSides(
        classes=joined.classes,
        verdict_names=joined.names,
        credit=np.array(joined.credit),
        sample=sample_of_files(joined, shares, choices),
        groups={
            by: names
            for by in ("agent", "workflow", "model")
            if not ((names := _groups(frame, by)) == UNKNOWN).all()
        },
        sizes={
            name: size
            for name, column in SIZES.items()
            if np.isfinite(size := frame[column].to_numpy(dtype=np.float64)).any()
        },
        panel=panel,
        panel_verdicts=None if panel is None else joined.verdicts[joined.at],
    )


def groups_of_files(joined: JoinedFiles, choices: Choices, *, by: str) -> GroupRates:
    """Estimate the rate of each group of the verdict file.

    Raises
    ------
    CalibrationError
        If no row says what group it is of.
    """
    frame = _frame(joined)
    of_trace = _groups(frame, by)
    if (of_trace == UNKNOWN).all():
        raise CalibrationError(f"the verdict file has no column {COLUMN[by]!r}, or it is empty")
    shares, open_disagreements = human_shares(joined, leave_out=None)
    return group_rates(
        sides_of_files(joined, shares, choices),
        Grouped(
            of_trace=of_trace, verdicts=joined.verdicts, penalties=joined.penalties, at=joined.at
        ),
        by=by,
        design=choices.design,
        pseudo_count=choices.pseudo_count,
        confidence_level=choices.confidence_level,
        seed=choices.seed,
        open_disagreements=open_disagreements,
        fingerprint=file_fingerprint(
            joined, "groups of files",
            {
                "by": by, "design": choices.design, "pseudo_count": choices.pseudo_count,
                "confidence_level": choices.confidence_level, "seed": choices.seed,
            },
            groups=pd.DataFrame({"trace_id": frame["trace_id"], "group": of_trace}).sort_values(
                "trace_id"
            ),
        ),
    )  # fmt: skip


def drift_of_files(
    joined: JoinedFiles, verdicts: VerdictFile, other: VerdictFile, choices: Choices
) -> Drift:
    """Compare the verdicts with those of another file, or of another judge of the same file.

    Raises
    ------
    InputError
        If the other one names an outcome that is no class.
    CalibrationError
        If they have no trace in common.
    """
    shares, _ = human_shares(joined, leave_out=None)
    sample = sample_of_files(joined, shares, choices)
    code = {name: k for k, name in enumerate(_every_name(joined))}
    said = np.full(len(joined.traces), MISSING, dtype=np.int64)
    for k, row in enumerate(joined.traces):
        if (theirs := other.rows.get(row.trace_id)) is not None:
            said[k] = _code(other, code, theirs.outcome or NO_VERDICT)
    common = np.flatnonzero(said != MISSING)
    if common.size == 0:
        raise CalibrationError(f"{verdicts.path} and {other.path} have no trace in common")
    place = np.full(len(joined.traces), MISSING, dtype=np.int64)
    place[common] = np.arange(common.size)
    both = place[joined.at] != MISSING
    tasks = np.arange(common.size)
    if sample.clusters is not None:
        # Where only labelled traces have a task, each of the others is one of its own.
        tasks[place[joined.at[both]]] = (
            common.size + np.unique(sample.clusters, return_inverse=True)[1][both]
        )
    codes = np.column_stack([said[common], joined.verdicts[common]])
    before, after = _name(other, verdicts), _name(verdicts, other)
    weights = None if sample.weights is None else np.asarray(sample.weights)[both]
    return drift_of(
        SameTraces(
            codes=codes, tasks=tasks, human=sample.human[both], labelled=place[joined.at[both]],
            weights=weights,
        ),
        before=before,
        after=after,
        verdict_names=_every_name(joined),
        credit=np.array(joined.credit),
        fingerprint=file_fingerprint(
            joined, "drift of files",
            {"confidence_level": choices.confidence_level, "judges": [before, after]},
            before=pd.DataFrame(
                {"trace_id": [joined.traces[k].trace_id for k in common], "verdict": codes[:, 0]}
            ).sort_values("trace_id"),
        ),
        confidence_level=choices.confidence_level,
    )  # fmt: skip


def _every_name(joined: JoinedFiles) -> tuple[str, ...]:
    """Return the verdicts, also those that nobody gave first."""
    return (*joined.names, *(name for name in NO_CLASS if name not in joined.names))


def _name(of: VerdictFile, beside: VerdictFile) -> str:
    """Return the judge, else the file; both where the names alone are the same."""
    name, other = (f.judge or str(f.path) for f in (of, beside))
    return name if name != other else f"{name} of {of.path}"


def _code(file: VerdictFile, code: dict[str, int], outcome: str) -> int:
    if outcome not in code:
        raise InputError(
            f"{file.path}, field 'outcome': {outcome!r:.80} is none of {', '.join(code):.200}"
        )
    return code[outcome]


def _frame(joined: JoinedFiles) -> pd.DataFrame:
    """Return what the verdict file says of each trace beside the verdict, None where nothing."""
    traces = joined.traces
    return pd.DataFrame(
        {
            "trace_id": [row.trace_id for row in traces],
            "workflow": [row.workflow or None for row in traces],
            "agent": [row.agent or row.model or None for row in traces],
            "model": [row.model or None for row in traces],
            "steps": np.array([row.steps for row in traces], dtype=np.float64),
            "response_chars": np.array([row.response_chars for row in traces], dtype=np.float64),
            "started_at": pd.to_datetime(
                pd.Series([row.started_at for row in traces], dtype=object), utc=True
            ),
        }
    )


def _groups(frame: pd.DataFrame, by: str) -> NDArray[np.str_]:
    """Return the group of each trace; an agent without a name goes by its model."""
    return group_names(frame, by) if by == "week" else frame[by].fillna(UNKNOWN).to_numpy(dtype=str)


def _panel(joined: JoinedFiles) -> NDArray[np.int64] | None:
    """Return what each reviewer said of each labelled trace; None where no trace has two."""
    code = {name: k for k, name in enumerate(joined.classes)}
    said = [
        {r.reviewer or f"\0{n}": code[r.outcome] for n, r in enumerate(rows) if not r.adjudicated}
        for rows in joined.labelled
    ]
    if max(map(len, said)) < 2:
        return None
    column = {name: k for k, name in enumerate(sorted({name for one in said for name in one}))}
    panel = np.full((len(said), len(column)), MISSING, dtype=np.int64)
    for row, one in enumerate(said):
        for name, outcome in one.items():
            panel[row, column[name]] = outcome
    return panel


def _heard(joined: JoinedFiles, row: int, workflow: str, agent: str) -> Heard:
    rows, trace = joined.labelled[row], joined.traces[int(joined.at[row])]
    return Heard(
        trace_id=trace.trace_id,
        workflow=workflow,
        agent=agent,
        adjudicated=any(label.adjudicated for label in rows),
        labels=tuple(
            Said(
                reviewer=label.reviewer or f"label {n}",
                outcome=label.outcome,
                rationale=label.rationale,
                evidence=tuple(asdict(part) for part in label.evidence),
            )
            for n, label in enumerate(rows, 1)
            if not label.adjudicated
        ),
        reason=trace.reason,
        evidence=tuple(asdict(part) for part in trace.evidence),
    )


def _samples(joined: JoinedFiles, verdicts: VerdictFile) -> NDArray[np.int64] | None:
    """Return what the judge said first and again of the traces that it was asked about again."""
    if not verdicts.again:
        return None
    code = {name: k for k, name in enumerate(_every_name(joined))}
    said = [
        [_code(verdicts, code, one) for one in (row.outcome or NO_VERDICT, *more)]
        for row in joined.traces
        if (more := verdicts.again.get(row.trace_id))
    ]
    most = max(map(len, said), default=1)
    rows = [[*one, *[MISSING] * (most - len(one))] for one in said]
    return np.array(rows, dtype=np.int64).reshape(len(rows), most)


def _missing(
    joined: JoinedFiles, verdicts: VerdictFile, sides: BothSides, *, ours: bool
) -> Iterator[str]:
    """Yield what the files do not say, each with the column that would."""
    if sides.panel is None:
        yield "how far the humans agree (no trace has labels of two `reviewer`s)"
    if not ours:
        yield "at which question errors begin (the classes are not those of the taxonomy)"
    for by in ("workflow", "agent"):
        if by not in sides.groups:
            yield f"leniency by {by} (`{by}`)"
    for name, column in SIZES.items():
        if name not in sides.sizes:
            yield f"whether it follows the {name} (`{column}`)"
    if not any(label.rationale for rows in joined.labelled for label in rows):
        yield "reasons of the humans (`rationale`)"
    if not any(joined.traces[k].reason for k in joined.at.tolist()):
        yield "reasons of the judge (`reason`)"
    if not verdicts.again:
        yield "whether it says the same twice (`sample`)"


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
