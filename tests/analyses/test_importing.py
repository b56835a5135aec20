import gzip
import json
import shutil
from pathlib import Path
from typing import Any, get_type_hints

import pytest

from calibration.analyses.exports import LABEL_COLUMNS, label_table
from calibration.analyses.imports import import_labels, import_verdicts
from calibration.analyses.sampling.draw import SamplingDesign, draw_batch
from calibration.analyses.trace_files import FilesProgress, read_files, set_aside_csv, store_files
from calibration.errors import CalibrationError, InputError, StoreError, StoreLockedError
from calibration.records import SetAside, Workflow
from calibration.store import RemoteStore, Store, traces
from calibration.store import store as store_module
from calibration.tables.rows import as_csv
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


def test_an_import_is_stored_whole_or_not_at_all(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fails(*_: Any) -> None:
        raise StoreError("the disk is full")

    with Store.open(tmp_path / "s.duckdb", create=True) as store:
        graded = record("a", verdict="complete") + record("b")
        with monkeypatch.context() as patch:
            patch.setattr(traces, "_insert_verdicts", fails)
            with pytest.raises(StoreError, match="disk is full"):
                bring(store, tmp_path / "f.jsonl", graded)
        assert store.trace_frame().empty
        assert "flights" not in store.workflows()
        assert bring(store, tmp_path / "f.jsonl", graded).imported == 2
        assert "flights" in store.workflows()


def test_an_import_is_one_request_to_the_app(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    calls: list[str] = []

    def answered(path: Path, call: Any, arguments: dict[str, Any], **_: Any) -> Any:
        calls.append(call.__name__)
        request = store_module._write_request(path, call.__name__, arguments)
        assert held.keeper().take_in() == 1
        reply = json.loads(request.with_name(request.name + store_module.REPLY).read_text())
        return store_module._convert.structure(reply["result"], get_type_hints(call)["return"])

    monkeypatch.setattr(store_module, "hand_over", answered)
    with Store.open(tmp_path / "s.duckdb", create=True) as held:
        store_module.publish(held._db)
        store_module.beat(held.path)
        far = RemoteStore(held.path, StoreLockedError("held"), waiting=lambda _: None)
        report = bring(far, tmp_path / "f.jsonl", record("a", verdict="complete") + record("b"))
        assert (report.imported, report.verdicts) == (2, 1)
        assert grades(held) == {"a": "complete"}
        assert "flights" in held.workflows()
        far.close()
    assert calls == ["ingest_written"]


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
    one, two = tmp_path / "1.jsonl", tmp_path / "2.jsonl"
    one.write_text(record("a", verdict="complete"), encoding="utf-8")
    two.write_text(record("a", prompt="q", verdict="abandoned"), encoding="utf-8")
    with Store.open(tmp_path / "s.duckdb", create=True) as store:
        # Of two versions in one import the first is stored with its grade.
        report = store_files(store, read_files([one, two], SETTINGS), SETTINGS)
        assert (report.imported, report.changed) == (1, 1)
        assert report.set_aside[0].file == str(two)
        assert grades(store) == {"a": "complete"}
        file = tmp_path / "f.jsonl"
        report = bring(store, file, record("x") + record("a", verdict="abandoned"))
        assert (report.already_there, report.imported) == (1, 1)
        (aside,) = report.set_aside
        assert (aside.file, aside.line) == (str(file), 2)
        assert "another grade" in aside.reason
        assert grades(store) == {"a": "complete"}


def test_settings_that_are_not_given_stay_as_they_are_stored(tmp_path: Path) -> None:
    with Store.open(tmp_path / "s.duckdb", create=True) as store:
        for trace_id, given, ceiling, unit in (
            ("a", {"ceiling_usd": 0.2}, 0.2, "ticket"),
            ("b", {}, 0.2, "ticket"),
            ("c", {"unit": "mail"}, 0.2, "mail"),
        ):
            settings = ImportSettings(workflow="support_triage", **given)
            bring(store, tmp_path / "f.jsonl", record(trace_id), settings=settings)
            stored = Workflow(name="support_triage", ceiling_usd=ceiling, unit=unit)
            assert store.workflows()["support_triage"] == stored


LABELS = "trace_id,reviewer,outcome,rationale,evidence_step,evidence_quote\n"


def bring_labels(world: World, path: Path, content: str) -> Any:
    path.write_text(content, encoding="utf-8", newline="")
    return import_labels(world.store, path, batch_id=world.batch_id)


def exported(world: World) -> str:
    found = label_table(world.store, world.batch_id)
    return as_csv(list(found.columns), found.plain())


def test_labels_survive_a_round_trip(new_world: NewWorld, tmp_path: Path) -> None:
    lines = 'two\r\nlines, "quoted"'
    texts = ['=HYPERLINK("http://x","y")', "'=1", lines, " blank ", "nan", "\u2028x"]
    rows = [
        {"trace_id": t, "reviewer": "Zoë B.", "outcome": "hallucinated", "rationale": text,
         "evidence_step": "s1", "evidence_quote": text}
        for t, text in zip(new_world().drawn, texts, strict=True)
    ]  # fmt: skip
    one, other = new_world(), new_world()
    done = bring_labels(one, tmp_path / "f.jsonl", "\n".join(map(json.dumps, rows)))
    assert len(done.stored.imported) == 6
    written = exported(one)
    assert ",=" not in written
    path = tmp_path / "out.csv"
    path.write_text(written, encoding="utf-8", newline="")
    assert len(import_labels(other.store, path, batch_id=other.batch_id).stored.imported) == 6
    keep = ["trace_id", "reviewer_id", "outcome", "answers", "rationale", "evidence"]
    frames = [
        w.store.label_frame(w.batch_id)[keep].sort_values("trace_id").to_dict("records")
        for w in (one, other)
    ]
    assert frames[0] == frames[1]
    assert {row["rationale"] for row in frames[1]} == set(texts)
    # The same file again adds nothing; rows that are no blind label are set aside.
    head, *body = exported(other).split("\r\n")
    blank = "," * (len(LABEL_COLUMNS) - 5)
    none = [
        f"{rows[0]['trace_id']},{of}{blank}"
        for of in ("lead,complete,yes", "Ann,,", "Ann,complete,")
    ]
    no_labels = [f"{none[0]},", f"{none[1]},", f"{none[2]}yes,"]
    again = bring_labels(other, path, "\r\n".join([head, *no_labels, *body]))
    assert (len(again.stored.imported), len(again.stored.already_there)) == (0, 6)
    assert {
        one.code: (one.rows, one.first and one.first.line) for one in again.reading.left_out
    } == {
        "skipped": (1, 3),
        "not_blind": (1, 4),
    }
    # An adjudicated row is the final class of its trace.
    assert again.stored.settled == (rows[0]["trace_id"],)


def test_violations_survive_a_round_trip(new_world: NewWorld, tmp_path: Path) -> None:
    one, other = new_world(), new_world()
    broken = [{"constraint": "no PII exposure", "severity": "high", "step": "s1"}]
    cells = {0: json.dumps(broken), 1: "[]", 2: ""}
    rows = [
        {"trace_id": one.drawn[k], "reviewer": "Ann", "outcome": "complete", "violations": cell}
        for k, cell in cells.items()
    ]
    bring_labels(one, tmp_path / "f.jsonl", "\n".join(map(json.dumps, rows)))
    written = exported(one)
    bring_labels(other, tmp_path / "out.csv", written)
    for world in (one, other):
        frame = world.store.label_frame(world.batch_id).set_index("trace_id")["violations"]
        found = [frame[world.drawn[k]] for k in cells]
        assert json.loads(found[0]) == broken
        assert found[1] == "[]"
        assert not isinstance(found[2], str)
    for bad in ("high", "[1]", '[{"constraint": "c", "severity": "minor"}]'):
        row = {"trace_id": one.drawn[3], "reviewer": "Ann", "outcome": "complete"}
        with pytest.raises(InputError, match="line 1, field 'violations'"):
            bring_labels(one, tmp_path / "b.jsonl", json.dumps(row | {"violations": bad}))


def test_labels_of_other_traces_are_counted(new_world: NewWorld, tmp_path: Path) -> None:
    world = new_world()
    other = next(t for t in ids(12) if t not in world.drawn)
    good = f"{world.drawn[0]},Ann,complete,,,\n"
    done = bring_labels(world, tmp_path / "f.csv", f"{LABELS}{good}{other},Ann,complete,,,\n")
    assert (len(done.stored.imported), done.stored.unknown) == (1, (other,))
    with pytest.raises(CalibrationError, match="none of its 1 labels is for a trace of batch"):
        bring_labels(world, tmp_path / "f.csv", f"{LABELS}{other},Bo,complete,,,\n")
    with pytest.raises(InputError, match="line 3"):
        bring_labels(world, tmp_path / "f.csv", f"{LABELS}{good}{other},Cy,done,,,\n")
    # A file of which nothing is stored adds nobody.
    assert [person.name for person in world.store.reviewers()] == ["Ann"]


def test_files_are_told_one_by_one_with_their_format(tmp_path: Path) -> None:
    own = tmp_path / "own.jsonl"
    own.write_text("".join(record(f"r{k}") for k in range(600)) + '{"trace_id": 5}', "utf-8")
    told: list[FilesProgress] = []
    read = read_files([FIXTURES / "tau2.json", own], SETTINGS, told=told.append)
    first, second = read.files
    assert (first.path.name, "tau2" in first.format.lower()) == ("tau2.json", True)
    assert (second.traces, second.set_aside) == (600, 1)
    assert first.traces + second.traces == read.preview.n_traces
    assert [one.bytes for one in told] == sorted(one.bytes for one in told)
    (within,) = [one for one in told if one.runs == 500]
    assert (within.done, within.of) == (1, 2)
    assert told[0].bytes < within.bytes < told[-1].bytes
    assert told[-1].runs == read.preview.n_traces + len(read.set_aside)
    assert told[-1].share == 1


def test_what_was_set_aside_is_no_formula_in_a_spreadsheet() -> None:
    aside = (("=x.csv", 3, "@why"), ("a", None, "b"))
    rows = [SetAside(file=file, line=line, reason=reason) for file, line, reason in aside]
    assert set_aside_csv(rows) == "file,line,reason\r\n'=x.csv,3,'@why\r\na,,b\r\n"


def verdicts(world: World, path: Path, content: str, judge_id: str = "j") -> Any:
    path.write_text(content, encoding="utf-8")
    return import_verdicts(world.store, path, judge_id=judge_id)


def test_files_with_a_slip_store_nothing(new_world: NewWorld, tmp_path: Path) -> None:
    world = new_world()
    for row, message in {
        "r000,Cleo,done,,,": "line 3, field 'outcome': 'done' is not one of",
        "r000,  ,complete,,,": "line 3: field 'reviewer' is missing",
        "r000,!!!,complete,,,": "line 3, field 'reviewer': must have 1 to 80 letters",
        f"r000,Ann,complete,{'x' * 4001},,": "line 3, field 'rationale': must have up to 4,000",
    }.items():
        content = f"{LABELS}{world.drawn[0]},Ann,complete,,,\n{row}\n"
        with pytest.raises(InputError, match=message):
            bring_labels(world, tmp_path / "f.csv", content)
    good = '{"trace_id": "r000", "outcome": "complete", '
    for content, message in (
        ("trace_id,outcome\nr000,complete\nr001,done\n", "line 3, field 'outcome': 'done'"),
        ("trace_id,outcome,sample\nr000,complete,-1\n", "line 2, field 'sample': must be a whole"),
        ('{"trace_id": "r000", "outcome": ["complete"]}', "outcome: no value is a class"),
        (good + '"reason": 3}', "field 'reason': must be text"),
        ("trace_id,outcome\nx,complete\n", "none of its 1 verdicts is for a trace"),
    ):
        with pytest.raises(CalibrationError, match=message):
            verdicts(world, tmp_path / "v", content)
    # A judge cannot pass for the grades of the files.
    for name in ("", "source:mine"):
        with pytest.raises(InputError, match="must be a name that does not begin with 'source:'"):
            verdicts(world, tmp_path / "v.csv", good, name)
    assert world.store.label_frame(world.batch_id).empty
    assert world.store.reviewers() == []
    assert world.store.judge_frame().empty
    done = verdicts(world, tmp_path / "v", "trace_id,outcome\nr000,complete\nr999,abandoned\n")
    assert (done.stored.imported, done.stored.unknown) == (("r000",), ("r999",))


def test_folders_patterns_and_compressed_files_are_one_import(tmp_path: Path) -> None:
    folder = tmp_path / "runs"
    (folder / "inner" / ".hidden").mkdir(parents=True)
    for name in ("tau2.json", "inspect.json", "chats.jsonl", "kiosk__snacks-7.traj"):
        (folder / "inner" / name).write_bytes((FIXTURES / name).read_bytes())
    (folder / "own.jsonl.gz").write_bytes(gzip.compress(record("a").encode()))
    (folder / "README.md").write_text("no trace file")
    (folder / "inner" / ".hidden" / "x.json").write_text("{}")
    (folder / "broken.json").write_text('{"a": 1}')
    shutil.copytree(FIXTURES / "tau2_run", folder / "inner" / "whole")
    read = read_files([folder], SETTINGS)
    formats = {file.path.name: (file.format, file.traces) for file in read.files}
    assert formats["own.jsonl.gz"] == ("our own records", 1)
    assert formats["inspect.json"] == ("an Inspect AI log", 4)
    assert formats["whole"][0] == "tau2-bench results"
    assert formats["broken.json"] == ("not read", 0)
    assert set(formats) == {"tau2.json", "inspect.json", "chats.jsonl", "kiosk__snacks-7.traj",
                            "own.jsonl.gz", "broken.json", "whole"}  # fmt: skip
    with Store.open(tmp_path / "s.duckdb", create=True) as store:
        report = store_files(store, read, SETTINGS)
        assert sum(file.imported for file in report.by_file) == report.imported
        assert report.imported == read.preview.n_traces
        # The main scorer of a sample speaks for the file; the others are there beside it.
        frame = store.verdict_frame("source:")
        assert frame["trace_id"].is_unique
        assert "source:inspect-ai/grade" in set(store.judge_frame()["judge_id"])
        again = store_files(store, read_files([folder / "inner" / "*.j*"], SETTINGS), SETTINGS)
        assert (again.files, again.imported, again.changed) == (3, 0, 0)
    with pytest.raises(InputError, match="there is no such file"):
        read_files([folder / "*.eval"], SETTINGS)
    (folder / "empty").mkdir()
    with pytest.raises(InputError, match="holds no trace file"):
        read_files([folder / "empty"], SETTINGS)


def test_a_file_that_cannot_be_stored_leaves_the_others(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    one, two = tmp_path / "1.jsonl", tmp_path / "2.jsonl"
    one.write_text(record("a"), encoding="utf-8")
    two.write_text(record("b", verdict="complete"), encoding="utf-8")
    monkeypatch.setattr(traces, "PART_CHARACTERS", 0)  # a part for each trace

    def fails(_cursor: Any, fresh: list[Any]) -> None:
        if fresh:
            raise StoreError("the disk is full")

    with Store.open(tmp_path / "s.duckdb", create=True) as store:
        with monkeypatch.context() as patch:
            patch.setattr(traces, "_insert_verdicts", fails)
            with pytest.raises(StoreError, match="disk is full"):
                store_files(store, read_files([one, two], SETTINGS), SETTINGS)
        assert list(store.trace_frame()["trace_id"]) == ["a"]
        one.write_text(record("a") + record("c") + record("d"), encoding="utf-8")
        report = store_files(store, read_files([one, two], SETTINGS), SETTINGS)
        assert (report.imported, report.already_there) == (3, 1)
        assert [t.trace_id for t in store.whole_traces(["d", "b", "c"])] == ["d", "b", "c"]


def test_scores_of_people_are_labels_on_request_only(tmp_path: Path) -> None:
    path = tmp_path / "inspect.json"
    log = json.loads((FIXTURES / "inspect.json").read_text())
    edit = {"value": "I", "provenance": {"author": "Bo", "reason": None}}
    unclear = {"value": 0.5, "provenance": {"author": "Cy"}}
    log["samples"][0]["scores"]["match"]["history"] = [{"value": "C"}, edit, unclear]
    path.write_text(json.dumps(log))
    with Store.open(tmp_path / "s.duckdb", create=True) as store:
        report = store_files(store, read_files([path], SETTINGS), SETTINGS)
        assert (report.human_scores, report.labels) == (3, 0)
        batch = draw_batch(store, SamplingDesign(seed=1), n=4).batch_id
        read = read_files([path], SETTINGS)
        report = store_files(store, read, SETTINGS, human_batch=batch)
        assert (report.already_there, report.labels) == (4, 2)
        assert [row.reason for row in report.set_aside] == [
            "the scores of 'Cy' imply no class: no label"
        ]
        labels = store.label_frame(batch).set_index("reviewer_id")
        assert dict(labels["outcome"]) == {"ann-lee": "complete", "bo": "partial_minus"}
        assert labels["exposed"].all()
        assert labels.loc["ann-lee", "rationale"] == "match: Same meaning."
        again = store_files(store, read_files([path], SETTINGS), SETTINGS, human_batch=batch)
        assert again.labels == 0
