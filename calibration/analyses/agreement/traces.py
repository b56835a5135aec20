"""The traces behind each number of an agreement analysis, with their labels."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from calibration.agreement.ratings import answers_at, parting_questions
from calibration.analyses.agreement.analysis import AgreementAnalysis
from calibration.analyses.evidence.data import ReviewedTrace

Chosen = NDArray[np.bool_]


@dataclass(frozen=True, slots=True, kw_only=True)
class TraceSet:
    """Some traces of an analysis in the order of adjudication: disputed and most open first.

    `what` is their common property; it completes "traces ...".
    """

    what: str
    trace_ids: tuple[str, ...]


def rated_traces(result: AgreementAnalysis, chosen: TraceSet) -> tuple[ReviewedTrace, ...]:
    """Return some traces with their labels, in their order."""
    known = {of.trace_id: of for of in result.reviewed}
    return tuple(known[trace_id] for trace_id in chosen.trace_ids)


def disputed_traces(result: AgreementAnalysis) -> TraceSet:
    """Return the traces on which reviewers differ."""
    return _set(result, "on which reviewers differ", _disputed(result))


def open_traces(result: AgreementAnalysis) -> TraceSet:
    """Return the disputed traces without an adjudicated class."""
    chosen = _disputed(result) & (result.settled < 0)
    return _set(result, "on which reviewers differ, not adjudicated yet", chosen)


def shared_traces(result: AgreementAnalysis) -> TraceSet:
    """Return the traces that have two or more labels."""
    return _set(result, "with two or more labels", _shared(result))


def parting_at(result: AgreementAnalysis, question: str) -> TraceSet:
    """Return the traces on which the paths of two labels part at a question."""
    parts = parting_questions(result.taxonomy.paths(result.classes))
    chosen = np.zeros(len(result.codes), dtype=bool)
    for first, row in enumerate(parts):
        for second in range(first):
            if row[second] == question:
                chosen |= _gave(result, first) & _gave(result, second)
    return _set(result, f"with disagreements that start at {_question(result, question)}", chosen)


def reaching(result: AgreementAnalysis, question: str) -> TraceSet:
    """Return the traces on which two or more labels reach a question."""
    paths = result.taxonomy.paths(result.classes)
    arrived = answers_at(result.codes, node=question, paths=paths) >= 0
    return _set(
        result, f"with two answers to {_question(result, question)}", arrived.sum(axis=1) >= 2
    )


def with_class(result: AgreementAnalysis, class_code: int) -> TraceSet:
    """Return the traces to which a reviewer gave a class."""
    what = f"that a reviewer calls {_title(result, class_code)}"
    return _set(result, what, _gave(result, class_code))


def contested(result: AgreementAnalysis, class_code: int) -> TraceSet:
    """Return the traces on which one reviewer names a class and another does not."""
    chosen = _gave(result, class_code) & _disputed(result)
    name = _title(result, class_code)
    return _set(result, f"that one reviewer calls {name} and another does not", chosen)


def confused(result: AgreementAnalysis, first: int, second: int) -> TraceSet:
    """Return the traces to which one reviewer gave one class and another the other."""
    chosen = _gave(result, first) & _gave(result, second)
    what = f"where {_title(result, first)} and {_title(result, second)} are confused"
    return _set(result, what, chosen)


def labelled_by(result: AgreementAnalysis, reviewer: int, name: str) -> TraceSet:
    """Return the traces that a reviewer labelled."""
    return _set(result, f"that {name} labelled", result.codes[:, reviewer] >= 0)


def apart_from_others(result: AgreementAnalysis, reviewer: int, name: str) -> TraceSet:
    """Return the traces on which a reviewer differs from one of the others."""
    own = result.codes[:, [reviewer]]
    chosen = ((own >= 0) & (result.codes >= 0) & (own != result.codes)).any(axis=1)
    return _set(result, f"where {name} differs from another", chosen)


def settled_with(result: AgreementAnalysis, reviewer: int, name: str) -> TraceSet:
    """Return the adjudicated traces that a reviewer labelled."""
    chosen = (result.codes[:, reviewer] >= 0) & (result.settled >= 0)
    return _set(result, f"that are adjudicated and {name} labelled", chosen)


def apart_from_settled(result: AgreementAnalysis, reviewer: int, name: str) -> TraceSet:
    """Return the adjudicated traces to which a reviewer gave another class."""
    own = result.codes[:, reviewer]
    chosen = (own >= 0) & (result.settled >= 0) & (own != result.settled)
    return _set(result, f"adjudicated differently from the label of {name}", chosen)


def using_apart(result: AgreementAnalysis, reviewer: int, class_code: int, name: str) -> TraceSet:
    """Return the traces on which a reviewer gave a class and another did not, or vice versa."""
    own = result.codes[:, [reviewer]]
    is_class = result.codes == class_code
    differs = (own >= 0) & (result.codes >= 0) & ((own == class_code) != is_class)
    what = f"where {name} and another differ over {_title(result, class_code)}"
    return _set(result, what, differs.any(axis=1))


def shared_by_pair(
    result: AgreementAnalysis, first: int, second: int, names: tuple[str, str]
) -> TraceSet:
    """Return the traces that both of two reviewers labelled."""
    chosen = (result.codes[:, first] >= 0) & (result.codes[:, second] >= 0)
    return _set(result, f"that {names[0]} and {names[1]} both labelled", chosen)


def apart_in_pair(
    result: AgreementAnalysis, first: int, second: int, names: tuple[str, str]
) -> TraceSet:
    """Return the traces on which two reviewers differ."""
    one, other = result.codes[:, first], result.codes[:, second]
    chosen = (one >= 0) & (other >= 0) & (one != other)
    return _set(result, f"where {names[0]} and {names[1]} differ", chosen)


def in_cell(
    result: AgreementAnalysis,
    reviewers: tuple[int, int],
    classes: tuple[int, int],
    names: tuple[str, str],
) -> TraceSet:
    """Return the traces of one cell of the two-way table of two reviewers."""
    chosen = (result.codes[:, list(reviewers)] == np.array(classes)).all(axis=1)
    both = [f"{n} gave {_title(result, k)}" for n, k in zip(names, classes, strict=True)]
    return _set(result, f"where {both[0]} and {both[1]}", chosen)


def in_week(result: AgreementAnalysis, week: str) -> TraceSet:
    """Return the traces with two or more labels, the last of them in a week."""
    chosen = np.array([of == week for of in result.weeks], dtype=bool) & _shared(result)
    return _set(result, f"with two labels, the last in {week}", chosen)


def _title(result: AgreementAnalysis, class_code: int) -> str:
    return result.taxonomy.titles[result.classes[class_code]]


def _question(result: AgreementAnalysis, node_id: str) -> str:
    return result.taxonomy.question_name(node_id)


def _gave(result: AgreementAnalysis, class_code: int) -> Chosen:
    found: Chosen = (result.codes == class_code).any(axis=1)
    return found


def _shared(result: AgreementAnalysis) -> Chosen:
    found: Chosen = (result.codes >= 0).sum(axis=1) >= 2
    return found


def _disputed(result: AgreementAnalysis) -> Chosen:
    return np.array([of.differs for of in result.reviewed], dtype=bool)


def _set(result: AgreementAnalysis, what: str, chosen: Chosen) -> TraceSet:
    """Return the chosen traces in the order of adjudication."""
    picked = [t for t, taken in zip(result.trace_ids, chosen.tolist(), strict=True) if taken]
    among = set(picked)
    first = [of.trace_id for of in result.disputed if of.trace_id in among]
    done = set(first)
    return TraceSet(what=what, trace_ids=(*first, *(t for t in picked if t not in done)))
