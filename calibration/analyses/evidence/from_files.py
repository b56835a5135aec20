"""A file of human labels and one of verdicts, joined by trace and turned into numbers."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from calibration.analyses.agreement.ratings import in_order
from calibration.errors import CalibrationError, InputError
from calibration.records import NO_VERDICT, OUTCOMES, SetAside
from calibration.success_rate.scoring import cost_penalties
from calibration.tables.labels import LabelFile, LabelRow, VerdictFile, VerdictRow
from calibration.taxonomy import default_taxonomy

SPLIT = "split"

NO_CLASS = (NO_VERDICT, SPLIT)

NO_ROW = "the trace has no row in the verdict file"


@dataclass(frozen=True, slots=True, kw_only=True)
class Ceilings:
    """Cost ceilings per unit: of each workflow, and of every other one."""

    by_workflow: Mapping[str, float]
    otherwise: float | None = None

    def of(self, workflow: str) -> float | None:
        """Return the ceiling of a workflow, None where none was set."""
        return self.by_workflow.get(workflow, self.otherwise)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class JoinedFiles:
    """Both files in numbers.

    Parameters
    ----------
    classes : tuple of str
    credit : tuple of float
        Of each class.
    names : tuple of str
        Of the verdicts, the classes first.
    traces : list of VerdictRow
        Every trace of the verdict file.
    verdicts : int array, shape (n_traces,)
        Position in `names`.
    penalties : float array, shape (n_traces,)
    labelled : list of tuple of LabelRow
        The labels of each labelled trace that has a verdict row.
    at : int array, shape (n_labelled,)
        Its place in `traces`.
    skipped : list of int
        Places of the traces that were asked about and not labelled.
    skipped_weights : list of float or None
        Their weights in the file.
    """

    classes: tuple[str, ...]
    credit: tuple[float, ...]
    names: tuple[str, ...]
    traces: list[VerdictRow]
    verdicts: NDArray[np.int64]
    penalties: NDArray[np.float64]
    labelled: list[tuple[LabelRow, ...]]
    at: NDArray[np.int64]
    skipped: list[int]
    skipped_weights: list[float | None]


def join_files(
    human: LabelFile,
    verdicts: VerdictFile,
    classes: Sequence[str] | None,
    credit: Mapping[str, float] | None,
    ceilings: Ceilings,
) -> tuple[JoinedFiles, tuple[SetAside, ...]]:
    """Join labels and verdicts; also return the labels whose trace has no verdict row.

    Raises
    ------
    InputError
        If an outcome is no class, or credit is missing.
    CalibrationError
        If no labelled trace has a verdict row.
    """
    named = _classes(human, verdicts, classes)
    worth = _credit(named, credit)
    traces = list(verdicts.rows.values())
    beyond = [name for name in NO_CLASS if name not in named]
    said = {row.outcome or NO_VERDICT for row in traces}
    names = (*named, *(name for name in beyond if name in said))
    code = {name: k for k, name in enumerate(names)}
    place = {trace_id: k for k, trace_id in enumerate(verdicts.rows)}
    found: list[tuple[int, tuple[LabelRow, ...]]] = []
    skipped: list[int] = []
    skipped_weights: list[float | None] = []
    set_aside: list[SetAside] = []
    for trace_id, rows in human.rows.items():
        given = tuple(row for row in rows if row.outcome)
        if trace_id not in place:
            set_aside += [SetAside(file=str(human.path), line=r.line, reason=NO_ROW) for r in rows]
        elif given:
            found.append((place[trace_id], given))
        else:
            skipped.append(place[trace_id])
            skipped_weights.append(rows[0].weight)
    if not found:
        raise CalibrationError(
            f"no labelled trace of {human.path} has a row in {verdicts.path}; the trace_id must "
            "be the same in both"
        )
    joined = JoinedFiles(
        classes=named,
        credit=worth,
        names=names,
        traces=traces,
        verdicts=np.array([code[row.outcome or NO_VERDICT] for row in traces], dtype=np.int64),
        penalties=_penalties(traces, ceilings),
        labelled=[rows for _, rows in found],
        at=np.array([k for k, _ in found], dtype=np.int64),
        skipped=skipped,
        skipped_weights=skipped_weights,
    )
    return joined, tuple(set_aside)


def _classes(
    human: LabelFile, verdicts: VerdictFile, given: Sequence[str] | None
) -> tuple[str, ...]:
    """Return the classes in order; every outcome must be one of them."""
    labels = [row for rows in human.rows.values() for row in rows if row.outcome]
    occurring = {row.outcome for row in labels}
    occurring |= {row.outcome for row in verdicts.rows.values()} - {"", *NO_CLASS}
    if given is None:
        classes = OUTCOMES if occurring <= set(OUTCOMES) else tuple(in_order(occurring))
    else:
        classes = tuple(name.strip() for name in given)
    if len(set(classes)) != len(classes) or "" in classes or len(classes) < 2:
        raise InputError(
            f"two classes or more are needed, each once, got {', '.join(classes)!r:.200}; name "
            "them with --classes"
        )
    for path, rows, also in (
        (human.path, labels, ()), (verdicts.path, verdicts.rows.values(), ("", *NO_CLASS)),
    ):  # fmt: skip
        for row in rows:
            if row.outcome not in classes and row.outcome not in also:
                raise InputError(
                    f"{path}, line {row.line}, field 'outcome': {row.outcome!r:.80} is none of "
                    f"{', '.join(classes):.200}"
                )
    return classes


def _credit(classes: tuple[str, ...], given: Mapping[str, float] | None) -> tuple[float, ...]:
    if given is None:
        if set(classes) <= set(OUTCOMES):
            ours = default_taxonomy().credit
            return tuple(ours[name] for name in classes)
        shown = ",".join(f"{name}=..." for name in classes)
        raise InputError(f"the credit of each class is needed: --credit {shown:.300}")
    for name in (*given, *classes):
        if name not in classes:
            raise InputError(f"--credit: {name!r:.80} is none of {', '.join(classes):.200}")
        if name not in given:
            raise InputError(f"--credit: that of {name!r:.80} is missing")
    return tuple(given[name] for name in classes)


def _penalties(traces: Sequence[VerdictRow], ceilings: Ceilings) -> NDArray[np.float64]:
    held_to = [ceilings.of(row.workflow) for row in traces]
    costs = [
        np.nan if limit is None or row.cost_usd is None else row.cost_usd
        for row, limit in zip(traces, held_to, strict=True)
    ]
    return cost_penalties(costs, [limit or 1.0 for limit in held_to], [row.units for row in traces])


def human_shares(joined: JoinedFiles, *, leave_out: str | None) -> tuple[NDArray[np.float64], int]:
    """Return class shares of the labelled traces, zeros without a label, and how many are open.

    The adjudicated class first, else the mean over reviewers.
    """
    code = {name: k for k, name in enumerate(joined.classes)}
    shares = np.zeros((len(joined.labelled), len(joined.classes)))
    open_disagreements = 0
    for k, rows in enumerate(joined.labelled):
        settled = [row.outcome for row in rows if row.adjudicated][:1]
        said = settled or [row.outcome for row in rows if not row.reviewer == leave_out is not None]
        for outcome in said:
            shares[k, code[outcome]] += 1 / len(said)
        open_disagreements += len(set(said)) > 1
    return shares, open_disagreements
