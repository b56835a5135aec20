"""Exports of annotation tools as rows of labels: Label Studio, Argilla.

A task of Label Studio has `annotations`, a record of Argilla `responses`; each of a person is one
row: the item's own fields, `reviewer`, a column for each question, and `exposed` where the person
was shown a suggestion. Any other row stays as it is.
"""

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

Row = dict[str, Any]

# What an answer of Label Studio is called in its value, by the type of the control.
_ANSWERS = {
    "choices": "choices",
    "rating": "rating",
    "number": "number",
    "textarea": "text",
    "pairwise": "selected",
}
_FROM_OTHERS = ("parent_prediction", "parent_annotation", "prediction")
_OF_QUESTION, _USERS, _STATUS = ".responses", ".responses.users", ".responses.status"
_SUGGESTED = ".suggestion"
DRAFT, DISCARDED = "draft", "discarded"
SEPARATOR = "; "


def label_rows_of(rows: Iterable[tuple[int, Row]]) -> Iterator[tuple[int, Row]]:
    """Yield rows with their line; an item of an annotation tool as one row for each person.

    Answers that a person discarded are a skipped item, with an empty `outcome`; drafts are left
    out. Several choices of one answer are joined by semicolons.

    Examples
    --------
    >>> task = {
    ...     "id": 7,
    ...     "data": {"trace_id": "a"},
    ...     "annotations": [
    ...         {
    ...             "completed_by": 3,
    ...             "result": [
    ...                 {"from_name": "verdict", "type": "choices", "value": {"choices": ["Good"]}}
    ...             ],
    ...         }
    ...     ],
    ... }
    >>> list(label_rows_of([(1, task)]))
    [(1, {'id': 7, 'trace_id': 'a', 'reviewer': '3', 'exposed': '', 'verdict': 'Good'})]
    """
    for line, row in rows:
        if _is_task(row):
            found = _of_task(row)
        elif isinstance(row.get("responses"), dict | list) and isinstance(row.get("fields"), dict):
            found = _of_record(row)
        elif any(name.endswith(_USERS) for name in row):
            found = _of_flat_record(row)
        else:
            yield line, row
            continue
        for label in found:
            yield line, label


def _is_task(row: Row) -> bool:
    """Return whether a row is a task of Label Studio with its annotations."""
    given = row.get("annotations")
    return (
        isinstance(row.get("data"), dict)
        and isinstance(given, list)
        and all(isinstance(one, dict) and isinstance(one.get("result"), list) for one in given)
    )


def _of_task(row: Row) -> Iterator[Row]:
    for one in row["annotations"]:
        seen = bool(row.get("predictions")) or any(one.get(name) for name in _FROM_OTHERS)
        about = _about(row, row["data"], _person(one.get("completed_by")), exposed=seen)
        if one.get("was_cancelled"):
            yield about | {"outcome": ""}
            continue
        answers: dict[str, list[Any]] = {}
        for part in one["result"]:
            if not isinstance(part, dict) or not isinstance(part.get("value"), dict):
                continue
            value = part["value"].get(_ANSWERS.get(str(part.get("type")), ""))
            if value is not None and isinstance(part.get("from_name"), str):
                given = value if isinstance(value, list) else [value]
                answers.setdefault(part["from_name"], []).extend(given)
        yield about | {name: _one(values) for name, values in answers.items()}


def _person(given: object) -> str:
    """Return the name of a person of Label Studio, else their address or number."""
    if not isinstance(given, dict):
        return "" if given is None else str(given)
    name = " ".join(str(given.get(part) or "") for part in ("first_name", "last_name")).strip()
    return name or str(given.get("email") or given.get("id") or "")


def _of_record(row: Row) -> Iterator[Row]:
    """Yield the labels of a record of Argilla, with its responses by question or by person."""
    answers: dict[str, Row] = {}
    status: dict[str, str] = {}
    responses = row["responses"]
    by_question = responses.items() if isinstance(responses, dict) else ()
    for question, given in by_question:
        for one in given if isinstance(given, list) else ():
            if isinstance(one, dict):
                who = str(one.get("user_id") or "")
                answers.setdefault(who, {})[question] = one.get("value")
                status[who] = str(one.get("status") or status.get(who, ""))
    for one in responses if isinstance(responses, list) else ():
        if isinstance(one, dict) and isinstance(one.get("values"), dict):
            who = str(one.get("user_id") or "")
            status[who] = str(one.get("status") or "")
            answers[who] = {
                question: value.get("value") if isinstance(value, dict) else value
                for question, value in one["values"].items()
            }
    metadata = row.get("metadata")
    fields = {**row["fields"], **(metadata if isinstance(metadata, dict) else {})}
    yield from _of_people(row, fields, answers, status, exposed=bool(row.get("suggestions")))


def _of_flat_record(row: Row) -> Iterator[Row]:
    """Yield the labels of a record of Argilla whose responses are lists in columns."""
    questions = [name.removesuffix(_USERS) for name in row if name.endswith(_USERS)]
    answers: dict[str, Row] = {}
    status: dict[str, str] = {}
    for question in questions:
        users, values, states = (
            _list(row.get(question + of)) for of in (_USERS, _OF_QUESTION, _STATUS)
        )
        states += [None] * (len(users) - len(states))
        for who, value, state in zip(map(str, users), values, states, strict=False):
            answers.setdefault(who, {})[question] = value
            status[who] = str(state or status.get(who, ""))
    parts = tuple(question + of for question in questions for of in (_OF_QUESTION, _SUGGESTED))
    fields = {name: value for name, value in row.items() if not name.startswith(parts)}
    seen = any(_list(row.get(question + _SUGGESTED)) for question in questions)
    yield from _of_people({}, fields, answers, status, exposed=seen)


def _of_people(
    row: Row, fields: Row, answers: Mapping[str, Row], status: Mapping[str, str], *, exposed: bool
) -> Iterator[Row]:
    for who, given in answers.items():
        about = _about(row, fields, who, exposed=exposed)
        if status[who] == DISCARDED:
            yield about | {"outcome": ""}
        elif status[who] != DRAFT:
            yield about | {name: _one(_list(value)) for name, value in given.items()}


def _about(row: Row, fields: Row, who: str, *, exposed: bool) -> Row:
    """Return what is known of an item and a person; the item's own id comes before the tool's."""
    own = {"id": row["id"]} if "id" in row else {}
    return own | fields | {"reviewer": who, "exposed": "yes" if exposed else ""}


def _list(value: object) -> list[Any]:
    """Return the parts of a cell, none where it is empty."""
    if hasattr(value, "tolist"):  # an array of a frame
        value = value.tolist()
    if value is None or value != value:
        return []
    return list(value) if isinstance(value, list) else [value]


def _one(values: list[Any]) -> Any:
    return values[0] if len(values) == 1 else SEPARATOR.join(map(str, values))
