"""Ratings in exports of annotation tools: each tool's own shape, its times, and what is refused."""

import json
from pathlib import Path
from typing import Any

import pytest

from calibration.analyses.agreement.ratings import read_ratings
from calibration.errors import InputError
from calibration.tables.reading import ReadingOptions

ANNOTATIONS = Path(__file__).parent.parent / "fixtures" / "annotations"


def choice(value: str, name: str = "verdict", **place: Any) -> dict[str, Any]:
    return {"from_name": name, "type": "choices", "value": {"choices": [value], **place}}


def annotation(who: Any, *result: dict[str, Any], day: int = 1, **more: Any) -> dict[str, Any]:
    at = f"2026-03-{day:02d}T10:00:00Z"
    return {"completed_by": who, "result": list(result), "created_at": at} | more


def exported(tmp_path: Path, rows: list[dict[str, Any]], name: str = "export.json") -> Path:
    path = tmp_path / name
    lines = "\n".join(map(json.dumps, rows))
    path.write_text(json.dumps(rows) if name.endswith(".json") else lines, encoding="utf-8")
    return path


def task(number: int, *annotations: dict[str, Any]) -> dict[str, Any]:
    return {"id": number, "data": {"prompt": f"Question {number}"}, "annotations": [*annotations]}


def test_the_later_annotation_of_a_person_counts_wherever_it_is(tmp_path: Path) -> None:
    tasks = [
        task(1, annotation(3, choice("Right"), day=2), annotation(3, choice("Wrong")),
             annotation(4, choice("Right"))),
        task(2, annotation(3, choice("Wrong")), annotation(4, choice("Wrong")),
             annotation(3, choice("Right"), updated_at="2026-03-09T10:00:00Z")),
    ]  # fmt: skip
    found = read_ratings(exported(tmp_path, tasks))
    assert (found.items, found.raters, found.classes) == (
        ("1", "2"),
        ("3", "4"),
        ("Right", "Wrong"),
    )
    assert found.codes.tolist() == [[0, 0], [0, 1]]
    assert "2 earlier ratings replaced by a later one." in found.reading.notes
    assert found.reading.layout == "annotations"
    assert found.reading.columns == {"item": "id", "rater": "reviewer", "label": "verdict"}
    again = [task(1, *(annotation(3, choice(v)) for v in ("Right", "Wrong")))]
    with pytest.raises(InputError, match="item 1 has two different ratings of 3"):
        read_ratings(exported(tmp_path, again))


def test_a_deleted_annotator_takes_that_annotation_along_and_no_other(tmp_path: Path) -> None:
    tasks = [
        task(k, annotation(3, choice("Right")), annotation(None if k == 2 else 4, choice("Wrong")))
        for k in range(1, 5)
    ]
    found = read_ratings(exported(tmp_path, tasks))
    assert (found.codes >= 0).sum() == 7
    assert found.raters == ("3", "4")
    assert "1 without a rater" in found.reading.left_out_line
    assert "'2'" in found.reading.left_out_line


def test_two_people_of_one_name_are_two(tmp_path: Path) -> None:
    people = [{"id": k, "first_name": "Ann", "last_name": ""} for k in (3, 4)]
    tasks = [task(k, *(annotation(who, choice("Right")) for who in people)) for k in range(2)]
    assert read_ratings(exported(tmp_path, tasks)).raters == ("Ann (3)", "Ann (4)")


def test_a_skipped_item_and_prose_are_no_ratings(tmp_path: Path) -> None:
    why = {"from_name": "why", "type": "textarea", "value": {"text": ["Late"]}}
    tasks = [
        task(k, annotation(3, choice("Right"), why), annotation(4, choice("Wrong"), why))
        for k in range(3)
    ]
    tasks.append(task(9, annotation(3, choice("Right")), annotation(4, was_cancelled=True)))
    found = read_ratings(exported(tmp_path, tasks))
    assert (found.codes >= 0).sum(axis=1).tolist() == [2, 2, 2, 1]


def two_of(*results: dict[str, Any]) -> list[dict[str, Any]]:
    return [task(k, annotation(3, *results), annotation(4, *results)) for k in range(3)]


BOX = {"from_name": "box", "type": "rectanglelabels", "value": {"x": 1, "rectanglelabels": ["A"]}}
TEXT = {"id": 1, "text": "One", "label": ["good"]}
POTATO = {"id": "i1", "displayed_text": "One", "label_annotations": {"tone": {"good": "true"}}}


@pytest.mark.parametrize(
    ("rows", "says"),
    [
        (two_of(BOX), "an export of Label Studio with boxes"),
        (two_of(choice("Right", x=3.0, y=4.0)), "boxes or other marks"),
        (two_of(choice("Right"), choice("Kind", "tone")), "--column label=verdict"),
        (two_of(choice("Right"), choice("Wrong")), "several answers of one person"),
        ([TEXT | {"Comments": []}], "an export of doccano that does not say who"),
        ([{"id": 1, "text": "a", "labels": [[0, 3, "X"]], "meta": {}}], "an export of doccano"),
        ([POTATO], "an export of Potato that does not say who"),
    ],
)
def test_an_export_that_holds_no_ratings_of_items_is_refused_by_name(
    tmp_path: Path, rows: list[dict[str, Any]], says: str
) -> None:
    with pytest.raises(InputError, match=says):
        read_ratings(exported(tmp_path, rows))


def test_one_of_several_questions_is_chosen(tmp_path: Path) -> None:
    path = exported(tmp_path, two_of(choice("Right"), choice("Kind", "tone")))
    chosen = ReadingOptions(columns={"label": "tone"})
    assert read_ratings(path, chosen).classes == ("Kind",)


LABELS = {("1", "ann"): "good", ("1", "bo"): "bad", ("2", "ann"): "good", ("2", "bo"): "good"}


@pytest.mark.parametrize("name", ["export.json", "export.jsonl"])
@pytest.mark.parametrize(
    "rows",
    [
        [
            {
                "id": item,
                "text": "x",
                "annotations": [
                    {"label": label, "user": who}
                    for (at, who), label in LABELS.items()
                    if at == item
                ],
            }
            for item in ("1", "2")
        ],
        [
            {"id": item, "text": "x", "label": [label], "username": who}
            for (item, who), label in LABELS.items()
        ],
        [
            {"id": item, "user": who, "displayed_text": "x", "span_annotations": [],
             "label_annotations": {"tone": {label: "true"}}}
            for (item, who), label in LABELS.items()
        ],
        [
            {"instance_id": item, "user": who, "tone:::good": "1" if label == "good" else "",
             "tone:::bad": "1" if label == "bad" else ""}
            for (item, who), label in LABELS.items()
        ],
    ],
    ids=["doccano", "doccano with a user a row", "Potato", "Potato in columns"],
)  # fmt: skip
def test_doccano_and_potato_are_read_where_they_name_their_people(
    tmp_path: Path, rows: list[dict[str, Any]], name: str
) -> None:
    found = read_ratings(exported(tmp_path, rows, name))
    assert (found.items, found.raters, found.classes) == (
        ("1", "2"),
        ("ann", "bo"),
        ("bad", "good"),
    )
    assert found.codes.tolist() == [[1, 0], [1, 1]]


@pytest.mark.parametrize("name", ["label_studio.json", "argilla.jsonl", "argilla.json"])
def test_exports_are_read_without_naming_columns(name: str) -> None:
    found = read_ratings(ANNOTATIONS / name)
    assert (found.codes >= 0).sum() == 11
    assert found.reading.columns["label"] == "verdict"
