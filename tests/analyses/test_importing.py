import csv
import json
from pathlib import Path
from typing import Any

import pytest

from calibration.analyses.imports import (
    import_labels,
    import_verdicts,
    read_files,
    set_aside_csv,
    store_files,
    stored_label_rows,
)
from calibration.errors import CalibrationError, InputError
from calibration.records import SetAside, Workflow
from calibration.store import Store
from calibration.trace_formats import ImportSettings
from tests.analyses.conftest import NewWorld
from tests.analyses.worlds import World, ids

SETTINGS = ImportSettings()

FIXTURES = Path(__file__).parents[1] / "fixtures" / "importers"


def record(trace_id: str, **changes: Any) -> str:
    row = {"trace_id": trace_id, "workflow": "flights", "prompt": "p", "response": "r"}
    return json.dumps(row | changes) + "\n"


def bring(store: Store, path: Path, content: str, **options: Any) -> Any:
    path.write_text(content, encoding="utf-8")
    settings = options.pop("settings", SETTINGS)
    return store_files(store, read_files([path], settings), settings, **options)


def grades(store: Store) -> dict[str, str]:
    frame = store.verdict_frame("source:")
    return dict(zip(frame["trace_id"], frame["outcome"], strict=True))


def test_a_grade_goes_with_the_content_it_rates(tmp_path: Path) -> None:
    with Store.open(tmp_path / "s.duckdb", create=True) as store:
        file = tmp_path / "f.jsonl"
        bring(store, file, record("a") + record("b", verdict="complete"))
        assert grades(store) == {"b": "complete"}
        # Other content with a grade: set aside, and so is the grade.
        changed = record("a", response="other", verdict="abandoned")
        report = bring(store, file, changed)
        assert (report.imported, report.changed, report.verdicts) == (0, 1, 0)
        assert "--take-changed" in report.set_aside[0].reason
        assert grades(store) == {"b": "complete"}
        report = bring(store, file, changed, take_changed=True)
        assert report.verdicts == 1
        assert grades(store) == {"a": "abandoned", "b": "complete"}


def test_another_grade_for_the_same_content_is_told_and_not_taken(tmp_path: Path) -> None:
    with Store.open(tmp_path / "s.duckdb", create=True) as store:
        file = tmp_path / "f.jsonl"
        bring(store, file, record("a", verdict="complete"))
        report = bring(store, file, record("x") + record("a", verdict="abandoned"))
        assert (report.already_there, report.imported) == (1, 1)
        (aside,) = report.set_aside
        assert (aside.file, aside.line) == (str(file), 2)
        assert "another grade" in aside.reason
        assert grades(store) == {"a": "complete"}


def test_of_two_versions_in_one_import_the_first_is_stored_with_its_grade(tmp_path: Path) -> None:
    one, two = tmp_path / "1.jsonl", tmp_path / "2.jsonl"
    one.write_text(record("a", verdict="complete"), encoding="utf-8")
    two.write_text(record("a", prompt="q", verdict="abandoned"), encoding="utf-8")
    with Store.open(tmp_path / "s.duckdb", create=True) as store:
        report = store_files(store, read_files([one, two], SETTINGS), SETTINGS)
        assert (report.imported, report.changed) == (1, 1)
        assert report.set_aside[0].file == str(two)
        assert grades(store) == {"a": "complete"}


def test_settings_that_are_not_given_stay_as_they_are_stored(tmp_path: Path) -> None:
    with Store.open(tmp_path / "s.duckdb", create=True) as store:
        file = tmp_path / "f.jsonl"
        triage = ImportSettings(workflow="support_triage", ceiling_usd=0.2)
        bring(store, file, record("a"), settings=triage)
        assert store.workflows()["support_triage"] == Workflow(
            name="support_triage", ceiling_usd=0.2, unit="ticket"
        )
        bring(store, file, record("b"), settings=ImportSettings(workflow="support_triage"))
        assert store.workflows()["support_triage"].ceiling_usd == 0.2
        only_unit = ImportSettings(workflow="support_triage", unit="mail")
        bring(store, file, record("c"), settings=only_unit)
        assert store.workflows()["support_triage"] == Workflow(
            name="support_triage", ceiling_usd=0.2, unit="mail"
        )


LABELS = "trace_id,reviewer,outcome,rationale,evidence_step,evidence_quote\n"


def bring_labels(world: World, path: Path, content: str) -> Any:
    path.write_text(content, encoding="utf-8", newline="")
    return import_labels(world.store, path, batch_id=world.batch_id)


def test_labels_survive_a_round_trip(new_world: NewWorld, tmp_path: Path) -> None:
    texts = [
        '=HYPERLINK("http://x","y")',
        "'=1",
        'two\r\nlines, "quoted"',
        " blank ",
        "nan",
        "\u2028x",
    ]
    rows = [
        {"trace_id": t, "reviewer": "Zoë B.", "outcome": "hallucinated", "rationale": text,
         "evidence_step": "s1", "evidence_quote": text}
        for t, text in zip(new_world().drawn, texts, strict=True)
    ]  # fmt: skip
    one, other = new_world(), new_world()
    done = bring_labels(one, tmp_path / "f.jsonl", "\n".join(map(json.dumps, rows)))
    assert len(done.imported) == 6
    exported = stored_label_rows(one.store, one.batch_id)
    assert {row["rationale"][0] for row in exported} & set("=+-@") == set()
    path = tmp_path / "out.csv"
    with path.open("w", encoding="utf-8", newline="") as file:
        writer = csv.DictWriter(file, fieldnames=list(exported[0]))
        writer.writeheader()
        writer.writerows(exported)
    assert len(import_labels(other.store, path, batch_id=other.batch_id).imported) == 6
    keep = ["trace_id", "reviewer_id", "outcome", "answers", "rationale", "evidence"]
    frames = [
        w.store.label_frame(w.batch_id)[keep].sort_values("trace_id").to_dict("records")
        for w in (one, other)
    ]
    assert frames[0] == frames[1]
    assert {row["rationale"] for row in frames[1]} == set(texts)
    # The same file again adds nothing.
    again = import_labels(other.store, path, batch_id=other.batch_id)
    assert (len(again.imported), len(again.already_there)) == (0, 6)


def test_a_label_without_a_rationale_is_exported_empty(new_world: NewWorld) -> None:
    world = new_world()
    world.label("Ann", {world.drawn[0]: "complete"})
    (row,) = stored_label_rows(world.store, world.batch_id)
    assert (row["rationale"], row["evidence_step"], row["evidence_quote"]) == ("", "", "")


BAD_LABELS = {
    "r000,Cleo,done,,,": "line 3, field 'outcome': 'done' is none of",
    "r000,  ,complete,,,": "line 3: field 'reviewer' is missing",
    "r000,!!!,complete,,,": "line 3, field 'reviewer': must have 1 to 80 letters",
    f"r000,{'x' * 81},complete,,,": "line 3, field 'reviewer'",
    "r000,Cleo,no_verdict,,,": "field 'outcome'",
}


def test_a_bad_label_stores_nothing_of_the_file(new_world: NewWorld, tmp_path: Path) -> None:
    world = new_world()
    for row, message in BAD_LABELS.items():
        content = f"{LABELS}{world.drawn[0]},Ann,complete,,,\n{row}\n"
        with pytest.raises(InputError, match=message):
            bring_labels(world, tmp_path / "f.csv", content)
    assert world.store.label_frame(world.batch_id).empty
    assert world.store.reviewers() == []


def test_labels_of_other_traces_are_counted(new_world: NewWorld, tmp_path: Path) -> None:
    world = new_world()
    other = next(t for t in ids(12) if t not in world.drawn)
    good = f"{world.drawn[0]},Ann,complete,,,\n"
    done = bring_labels(world, tmp_path / "f.csv", f"{LABELS}{good}{other},Ann,complete,,,\n")
    assert (len(done.imported), done.unknown) == (1, (other,))
    with pytest.raises(CalibrationError, match="none of its 1 labels is for a trace of batch"):
        bring_labels(world, tmp_path / "f.csv", f"{LABELS}{other},Ann,complete,,,\n")


def test_a_label_that_differs_from_the_stored_one_is_kept_out(
    new_world: NewWorld, tmp_path: Path
) -> None:
    world = new_world()
    first = world.drawn[0]
    world.label("Ann", {first: "complete"})
    done = bring_labels(world, tmp_path / "f.csv", f"{LABELS}{first},Ann,abandoned,,,\n")
    assert (done.imported, done.changed) == ((), ((first, "ann"),))
    assert world.store.label_frame(world.batch_id)["outcome"].tolist() == ["complete"]


def verdicts(world: World, path: Path, content: str, judge_id: str = "j") -> Any:
    path.write_text(content, encoding="utf-8")
    return import_verdicts(world.store, path, judge_id=judge_id)


def test_verdicts_are_stored_once_and_never_overwritten(
    new_world: NewWorld, tmp_path: Path
) -> None:
    world, path = new_world(), tmp_path / "v.csv"
    content = "trace_id,outcome,reason\nr000,complete,ok\nr001,no_verdict,\nr999,abandoned,\n"
    done = verdicts(world, path, content)
    assert (len(done.imported), done.unknown) == (2, ("r999",))
    done = verdicts(world, path, content.replace("r000,complete", "r000,abandoned"))
    assert (done.imported, len(done.already_there), done.changed) == ((), 1, ("r000",))
    assert world.store.verdict_frame("j")["outcome"].tolist() == ["complete", "no_verdict"]


BAD_VERDICTS = [
    ("trace_id,outcome\nr000,complete\nr001,done\n", "line 3, field 'outcome': 'done'"),
    ("trace_id,outcome,sample\nr000,complete,x\n", "line 2, field 'sample': must be a whole"),
    ("trace_id,outcome,sample\nr000,complete,-1\n", "line 2, field 'sample'"),
    ("trace_id,outcome,sample\nr000,complete,99999999999\n", "line 2, field 'sample'"),
    ('{"trace_id": "r000", "outcome": "complete", "sample": 1.5}', "field 'sample'"),
    ('{"trace_id": "r000", "outcome": "complete", "sample": true}', "field 'sample'"),
    ('{"trace_id": "r000", "outcome": ["complete"]}', "field 'outcome'"),
    (
        '{"trace_id": "r000", "outcome": "complete", "reason": 3}',
        "field 'reason': must be text",
    ),
]


def test_a_bad_verdict_stores_nothing_of_the_file(new_world: NewWorld, tmp_path: Path) -> None:
    world = new_world()
    for content, message in BAD_VERDICTS:
        with pytest.raises(InputError, match=message):
            verdicts(world, tmp_path / "v", content)
    assert world.store.judge_frame().empty


def test_a_verdict_file_of_another_store_is_refused(new_world: NewWorld, tmp_path: Path) -> None:
    with pytest.raises(CalibrationError, match="none of its 1 verdicts is for a trace"):
        verdicts(new_world(), tmp_path / "v.csv", "trace_id,outcome\nx,complete\n")


def test_a_judge_cannot_pass_for_the_grades_of_the_files(
    new_world: NewWorld, tmp_path: Path
) -> None:
    world, content = new_world(), "trace_id,outcome\nr000,complete\n"
    for name in ("", "  ", "source:mine"):
        with pytest.raises(InputError, match="must be a name that does not begin with 'source:'"):
            verdicts(world, tmp_path / "v.csv", content, name)


def test_files_are_told_one_by_one_with_their_format(tmp_path: Path) -> None:
    own = tmp_path / "own.jsonl"
    rows = [{"trace_id": f"r{k}", "workflow": "w", "prompt": "Do it"} for k in range(1200)]
    own.write_text("\n".join([*map(json.dumps, rows), '{"trace_id": 5}']), encoding="utf-8")
    told: list[tuple[int, int]] = []
    read = read_files(
        [FIXTURES / "tau2.json", own], ImportSettings(), told=lambda *t: told.append(t)
    )
    first, second = read.files
    assert first.path.name == "tau2.json"
    assert "tau2" in first.format.lower()
    assert (second.traces, second.set_aside) == (1200, 1)
    assert first.traces + second.traces == read.preview.n_traces
    assert told == sorted(told)
    assert {(1, 500), (1, 1000)} <= set(told)
    assert told[-1] == (2, len(read.parsed) + len(read.set_aside))


def test_what_was_set_aside_is_no_formula_in_a_spreadsheet() -> None:
    rows = [
        SetAside(file="=x.csv", line=3, reason="@why"),
        SetAside(file="a", line=None, reason="b"),
    ]
    assert set_aside_csv(rows) == "file,line,reason\r\n'=x.csv,3,'@why\r\na,,b\r\n"
