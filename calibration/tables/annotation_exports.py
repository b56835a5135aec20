"""Exports of annotation tools as rows of labels: Label Studio, Argilla, doccano, Potato.

A task of Label Studio has `annotations`, a record of Argilla `responses`; each of a person is one
row, an `Annotation`: the item's own fields, `reviewer`, a column for each question, `exposed` where
the person was shown a suggestion, and `updated_at` where the export says when. Examples of doccano
and instances of Potato are read where they name their annotators. Any other row stays as it is.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from calibration.tables.columns import ALIASES, normalised

Row = dict[str, Any]

# What an answer of Label Studio is called in its value, by the type of the control.
_ANSWERS = {
    "choices": "choices",
    "rating": "rating",
    "number": "number",
    "textarea": "text",
    "pairwise": "selected",
}
_PROSE = ("textarea",)
# What the value of a region has: a box, a span, a stretch of sound.
_PLACES = frozenset(("x", "y", "points", "start", "end", "startOffset", "sequence", "rle"))
_FROM_OTHERS = ("parent_prediction", "parent_annotation", "prediction")
_OF_QUESTION, _USERS, _STATUS = ".responses", ".responses.users", ".responses.status"
_SUGGESTED = ".suggestion"
_POTATO, _OPTION = "label_annotations", ":::"
# Fields of Potato whose answer is the value and not the name.
_POTATO_VALUES = ("slider", "number", "scale", "text")
DRAFT, DISCARDED = "draft", "discarded"
SEPARATOR = "; "


class Annotation(Row):
    """One person's answers to one item of an annotation tool, as a row.

    `tool` : its name. `record` : the number of the item in the file. `person` : what tells people
    of one name apart. `questions` : the columns that hold answers other than prose. `several` :
    those in which the person gave several answers. `has_regions` : whether the person marked parts
    of the item.
    """

    def __init__(
        self,
        fields: Mapping[str, Any],
        *,
        tool: str,
        person: str = "",
        questions: Iterable[str] = (),
        several: Iterable[str] = (),
        has_regions: bool = False,
    ) -> None:
        super().__init__(fields)
        self.tool, self.person, self.has_regions = tool, person, has_regions
        self.questions, self.several = tuple(questions), frozenset(several)
        self.record = 0


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
    for record, (line, row) in enumerate(rows, 1):
        found = _annotations_of(row)
        if found is None:
            yield line, row
            continue
        for label in found:
            label.record = record
            yield line, label


def _annotations_of(row: Row) -> Iterator[Annotation] | None:
    """Return the annotations of an item, None for a row of no annotation tool."""
    if _is_task(row):
        return _of_task(row)
    if isinstance(row.get("responses"), dict | list) and isinstance(row.get("fields"), dict):
        return _of_record(row)
    if any(name.endswith(_USERS) for name in row):
        return _of_flat_record(row)
    if _is_example(row):
        return _of_example(row)
    # Names are looked at last: most rows are of no tool, and there may be millions of them.
    has_object, is_text = isinstance(row.get(_POTATO), dict), _is_labelled_text(row)
    if not (has_object or is_text or any(_OPTION in name for name in row)):
        return None
    rater = _field_of("rater", row)
    if rater is None:
        return None
    if has_object:
        return _of_instance(row, rater)
    return _of_labelled_text(row, rater) if is_text else _of_flat_instance(row, rater)


def without_annotators(columns: Sequence[str], first: Row) -> str | None:
    """Return the tool of an export that does not say who gave a label, if it is one.

    Examples
    --------
    >>> row = {"id": 1, "text": "a", "label": ["x"], "Comments": []}
    >>> without_annotators(list(row), row)
    'doccano'
    """
    names = {normalised(name) for name in columns}
    if names & set(ALIASES["rater"]):
        return None
    if isinstance(first.get(_POTATO), dict) or any(_OPTION in name for name in columns):
        return "Potato"
    of_doccano = {"comments", "annotation_approver"} & names and {"text", "data"} & names
    return "doccano" if _is_labelled_text(first) or (of_doccano and "id" in names) else None


def _is_task(row: Row) -> bool:
    """Return whether a row is a task of Label Studio with its annotations."""
    given = row.get("annotations")
    return (
        isinstance(row.get("data"), dict)
        and isinstance(given, list)
        and all(isinstance(one, dict) and isinstance(one.get("result"), list) for one in given)
    )


def _of_task(row: Row) -> Iterator[Annotation]:
    for one in row["annotations"]:
        seen = bool(row.get("predictions")) or any(one.get(name) for name in _FROM_OTHERS)
        who = one.get("completed_by")
        about = _about(row, row["data"], _person(who), exposed=seen)
        when = one.get("updated_at") or one.get("created_at")
        about |= {"updated_at": when} if when else {}
        key = str((who.get("id") or who.get("email") or "") if isinstance(who, dict) else who)
        if one.get("was_cancelled"):
            yield Annotation(about | {"outcome": ""}, tool="Label Studio", person=key)
            continue
        answers: dict[str, list[Any]] = {}
        questions: dict[str, None] = {}
        has_regions = False
        for part in one["result"]:
            if not isinstance(part, dict) or not isinstance(part.get("value"), dict):
                continue
            if _PLACES & part["value"].keys():
                has_regions = True
                continue
            kind = str(part.get("type"))
            value = part["value"].get(_ANSWERS.get(kind, ""))
            if value is not None and isinstance(part.get("from_name"), str):
                given = value if isinstance(value, list) else [value]
                answers.setdefault(part["from_name"], []).extend(given)
                if kind not in _PROSE:
                    questions[part["from_name"]] = None
        yield Annotation(
            about | {name: _one(values) for name, values in answers.items()},
            tool="Label Studio",
            person=key,
            questions=questions,
            several=(name for name, values in answers.items() if len(values) > 1),
            has_regions=has_regions,
        )


def _person(given: object) -> str:
    """Return the name of a person of Label Studio, else their address or number."""
    if not isinstance(given, dict):
        return "" if given is None else str(given)
    name = " ".join(str(given.get(part) or "") for part in ("first_name", "last_name")).strip()
    return name or str(given.get("email") or given.get("id") or "")


def _of_record(row: Row) -> Iterator[Annotation]:
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


def _of_flat_record(row: Row) -> Iterator[Annotation]:
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
) -> Iterator[Annotation]:
    for who, given in answers.items():
        about = _about(row, fields, who, exposed=exposed)
        if status[who] == DISCARDED:
            yield Annotation(about | {"outcome": ""}, tool="Argilla", person=who)
        elif status[who] != DRAFT:
            values = {name: _list(value) for name, value in given.items()}
            yield Annotation(
                about | {name: _one(found) for name, found in values.items()},
                tool="Argilla",
                person=who,
                questions=values,
                several=(name for name, found in values.items() if len(found) > 1),
            )


def _field_of(role: str, row: Row) -> str | None:
    """Return the name of the field that says who gave a label, or which."""
    names = {normalised(name): name for name in row}
    return next((names[name] for name in ALIASES[role] if name in names), None)


def _is_example(row: Row) -> bool:
    """Return whether a row is an item with a list of annotations, each with its rater."""
    parts = row.get("annotations")
    return (
        isinstance(parts, list)
        and bool(parts)
        and all(
            isinstance(one, dict) and _field_of("rater", one) and _field_of("label", one)
            for one in parts
        )
    )


def _of_example(row: Row) -> Iterator[Annotation]:
    """Yield the annotations of an example of doccano, all of a person at one time as one."""
    tool = "doccano" if "user" in row["annotations"][0] else "annotations"
    answers: dict[tuple[str, str], list[Row]] = {}
    for one in row["annotations"]:
        who = one[_field_of("rater", one) or ""]
        when = str(one.get("updated_at") or one.get("created_at") or "")
        answers.setdefault(("" if who is None else str(who).strip(), when), []).append(one)
    fields = {name: value for name, value in row.items() if name not in ("annotations", "label")}
    for (who, when), given in answers.items():
        about = _about({}, fields, who, exposed=False) | ({"updated_at": when} if when else {})
        labels = [part for one in given for part in _list(one[_field_of("label", one) or ""])]
        has_regions = any("start_offset" in one for one in given)
        yield Annotation(
            about if has_regions else about | {"label": _one(labels)},
            tool=tool,
            person=who,
            questions=() if has_regions else ("label",),
            several=("label",) if len(labels) > 1 else (),
            has_regions=has_regions,
        )


def _is_labelled_text(row: Row) -> bool:
    """Return whether a row is a text of doccano with the list of its labels."""
    return (
        "id" in row
        and ("text" in row or "data" in row)
        and isinstance(row.get("label", row.get("labels")), list)
    )


def _of_labelled_text(row: Row, rater: str) -> Iterator[Annotation]:
    given = row.get("label", row.get("labels"))
    labels = _list(given)
    fields = {name: value for name, value in row.items() if name not in ("label", "labels", rater)}
    # A mark of a span is a list: its first and last character and its label.
    has_regions = any(isinstance(label, list | dict) for label in labels)
    who = "" if row[rater] is None else str(row[rater]).strip()
    about = _about({}, fields, who, exposed=False)
    yield Annotation(
        about if has_regions else about | {"label": _one(labels)},
        tool="doccano",
        person=who,
        questions=() if has_regions else ("label",),
        several=("label",) if len(labels) > 1 else (),
        has_regions=has_regions,
    )


def _of_instance(row: Row, rater: str) -> Iterator[Annotation]:
    """Yield the answers to an instance of Potato, an object of options by question."""
    chosen: dict[str, list[Any]] = {}
    for question, given in row[_POTATO].items():
        options = given.get("labels", given) if isinstance(given, dict) else {str(given): True}
        for option, value in options.items() if isinstance(options, dict) else ():
            if value not in (None, "", False, "false"):
                chosen.setdefault(str(question), []).append(_potato_answer(str(option), value))
    kept = (_POTATO, "span_annotations", "behavioral_data", rater)
    fields = {name: value for name, value in row.items() if name not in kept}
    yield _of_potato(fields, str(row[rater] or ""), chosen, bool(row.get("span_annotations")))


def _of_flat_instance(row: Row, rater: str) -> Iterator[Annotation]:
    """Yield the answers to an instance of Potato, a column for each option."""
    chosen: dict[str, list[Any]] = {}
    for name, value in row.items():
        question, sign, option = name.partition(_OPTION)
        if sign and _list(value) and value not in ("", False, "false", "False", "nan"):
            chosen.setdefault(question, []).append(_potato_answer(option, value))
    fields = {name: value for name, value in row.items() if _OPTION not in name and name != rater}
    yield _of_potato(fields, str(row[rater] or ""), chosen, has_regions=False)


def _potato_answer(option: str, value: Any) -> Any:
    """Return what an option of Potato says: its name, or its value where it is a field."""
    is_value = normalised(option).split("_")[0] in _POTATO_VALUES
    return value if is_value and value not in (True, "true", "True") else option


def _of_potato(
    fields: Row, who: str, chosen: Mapping[str, list[Any]], has_regions: bool
) -> Annotation:
    about = _about({}, fields, who, exposed=False)
    return Annotation(
        about | {name: _one(values) for name, values in chosen.items()},
        tool="Potato",
        person=who,
        questions=chosen,
        several=(name for name, values in chosen.items() if len(values) > 1),
        has_regions=has_regions,
    )


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
