import json
from pathlib import Path
from typing import Any

import pytest
from streamlit.testing.v1 import AppTest

from app import session
from app.views.data import imports
from calibration.analyses.sampling.draw import traces_csv
from calibration.records import LabelDraft, Verdict
from calibration.store import Store, TraceFilter
from tests.app.conftest import OpenApp, figures, go_to, press, texts
from tests.app.conftest import shown as no_trouble
from tests.store.builders import make_trace
from tests.store.test_selection import calls

HOSTILE = "![x](http://evil.test/x.png) <img src=http://evil.test/y>"


def record(trace_id: str, **changes: Any) -> dict[str, Any]:
    return {"trace_id": trace_id, "workflow": "flights", "prompt": f"Book {trace_id}"} | changes


def lines(*rows: Any) -> bytes:
    return "\n".join(r if isinstance(r, str) else json.dumps(r) for r in rows).encode()


@pytest.fixture
def filled(store_file: Path) -> Path:
    """Return a store with trials of one task, some of which failed to pay."""
    with Store.open(store_file, create=True) as store:
        store.ingest(
            [
                make_trace(k, task_key="shop/7", trial=k, model=f"m-{k % 2}", status=status,
                           steps=calls(pay=ended), prompt=f"Buy {HOSTILE} {k}")
                for k, (ended, status) in enumerate(
                    [("e", "failed"), ("o", "done"), ("oe", "failed"), ("o", "failed")]
                )
            ]
            + [make_trace(9, workflow="hotels")]
        )  # fmt: skip
        store.add_reviewer("Lea", role="lead")
        store.add_reviewer("Rea")
    return store_file


def shown(app: AppTest) -> list[str]:
    return list(app.dataframe[0].value["trace"]) if app.dataframe else []


def ids(*numbers: int) -> list[str]:
    return [make_trace(k).trace_id for k in numbers]


def search(app: AppTest, *terms: str) -> AppTest:
    app.multiselect(key="q").set_value(list(terms))
    return no_trouble(app.run())


def test_a_search_line_finds_traces_and_is_saved_for_later(filled: Path, open_app: OpenApp) -> None:
    app = open_app("data", reviewer="lea")
    assert shown(app) == ids(0, 1, 2, 3, 9)
    app.selectbox(key="sort").select("steps")
    app.toggle(key="desc").set_value(True)
    app.multiselect(key="columns").set_value(["steps", "model"])
    search(app, "task:shop/7 status:failed tool:pay error:yes")
    assert shown(app) == ids(2, 0)
    assert "2 traces" in texts(app)
    # Typed in one go, each is a chip of its own.
    chips = ["task:shop/7", "status:failed", "tool:pay", "error:yes"]
    assert sorted(app.multiselect(key="q").value) == sorted(chips)
    app.text_input(key="data_save_as").input("Failed *calls*").run()
    press(app, "data_save")
    assert "Saved as Failed *calls*." in texts(app)
    again = open_app("data", reviewer="lea")
    assert next(b for b in again.button if b.key == "data_pick_0").label == "Failed \\*calls\\*"
    press(again, "data_pick_0")
    assert shown(again) == ids(2, 0)
    assert list(again.dataframe[0].value) == ["trace", "steps", "model"]
    press(again, "data_forget_0")
    assert "No view is saved yet." in texts(again)
    again.text_input(key="data_save_as").input("?!").run()
    press(again, "data_save")
    assert "Not saved: the name of a" in texts(again)


@pytest.mark.parametrize(
    ("line", "says"),
    [
        ("colour:red", "colour: at character 1 is not a key; keys are workflow, task, status"),
        ('tool:pay "half', '"half at character 10: a quotation mark without its partner'),
        ("class:perfect", "class:perfect at character 1: it is one of complete"),
        ("error:maybe", "error:maybe at character 1: write error:yes or error:no"),
    ],
)
def test_what_cannot_be_read_is_named_with_its_place(
    filled: Path, open_app: OpenApp, line: str, says: str
) -> None:
    app = search(open_app("data", reviewer="lea"), line)
    assert says in texts(app)
    assert shown(app) == []
    assert app.multiselect(key="q").value == [line]
    assert shown(search(app)) == ids(0, 1, 2, 3, 9)


def test_a_value_that_no_trace_has_is_named(filled: Path, open_app: OpenApp) -> None:
    app = search(open_app("data", reviewer="lea"), f'workflow:"{HOSTILE}"', "tool:fly")
    assert f"No trace has the workflow {HOSTILE}." in texts(app)
    assert "No trace has the tool fly." in texts(app)
    assert not any("evil.test" in m.value for m in [*app.markdown, *app.caption])
    press(app, "data_clear")
    assert shown(app) == ids(0, 1, 2, 3, 9)


def test_an_address_holds_search_order_page_and_columns(
    store_file: Path, open_app: OpenApp
) -> None:
    with Store.open(store_file, create=True) as store:
        store.ingest([make_trace(k, latency_s=float(k)) for k in range(230)])
        store.ingest([make_trace(k, workflow="hotels") for k in range(300, 303)])
    app = open_app("data", q="workflow:research", sort="latency", desc="true", at="3")
    assert shown(app) == ids(*range(29, -1, -1))
    assert "Page 3 of 3." in "".join(c.value for c in app.caption)
    assert "research" in app.dataframe[0].value["workflow"].tolist()
    search(app, "Task 22")
    assert shown(app)[0] == ids(229)[0]
    assert len(shown(app)) == 12  # 22, 122 and 220 to 229
    app = open_app("data", columns="steps")
    assert list(app.dataframe[0].value) == ["trace", "steps"]
    # What an address holds that is no choice of the page is left out.
    app = open_app("data", sort="; DROP TABLE trace", at="999", columns="colour")
    assert len(shown(app)) == 100


def test_traces_to_be_decided_blind_are_listed_without_class(
    filled: Path, open_app: OpenApp
) -> None:
    mine, done, _, _, other = ids(0, 1, 2, 3, 9)
    with Store.open(filled) as store:
        store.add_reviewer("Bob")
        batch = store.add_batch(purpose="production", trace_ids=[mine, done], labels_wanted=2)
        for who, traces in (("rea", [mine, done]), ("bob", [done])):
            store.queue(who, batch.batch_id)
            for trace_id in traces:
                store.record_label(
                    LabelDraft(
                        trace_id=trace_id, reviewer_id=who, batch_id=batch.batch_id,
                        answers={"output": "no"},
                    )
                )  # fmt: skip
    app = open_app("data", reviewer="lea")
    classes = app.dataframe[0].value.set_index("trace")["class"]
    assert (classes[mine], classes[done], classes[other]) == ("hidden", "Abandoned", "unlabelled")
    assert "this trace listed here blind, so its class and verdict are hidden." in texts(app)
    store = session.open_store(filled)
    assert store.exposure_frame()["trace_id"].tolist() == [done]
    hidden = traces_csv(store, TraceFilter(), for_leads=True, seen_by="lea")
    assert hidden.count("abandoned") == 1
    # A filter by class tells by what it finds.
    search(app, "class:abandoned")
    assert shown(app) == []
    assert "this trace found here blind" in texts(app)
    assert mine not in store.exposure_frame()["trace_id"].tolist()
    press(app, "data_show")
    assert shown(app) == [mine, done]
    assert mine in store.exposure_frame()["trace_id"].tolist()
    nobody = open_app("data")
    assert "hidden" not in nobody.dataframe[0].value["class"].tolist()


def test_a_batch_is_made_once_and_says_how_it_was_chosen(filled: Path, open_app: OpenApp) -> None:
    app = open_app("data", reviewer="lea")
    search(app, "tool:pay")
    assert "the ASR page refuses it" in "".join(c.value for c in app.caption)
    app.number_input(key="data_n").set_value(3)
    app.number_input(key="data_seed").set_value(5)
    app.number_input(key="data_wanted").set_value(1)
    for _ in range(2):
        press(app, "data_batch")
        assert "production-001: 3 traces, ready on the Label page." in texts(app)
    session.close_stores()
    with Store.open(filled) as store:
        (batch,) = store.batches()
        assert batch.design["kind"] == "traces chosen by filters"
        assert batch.labels_wanted == 1
        assert store.batch_items(batch.batch_id)["inclusion_probability"].isna().all()


def read(app: AppTest, *files: tuple[str, bytes]) -> AppTest:
    app.file_uploader(key="import_upload").set_value(
        [(name, content, "text/plain") for name, content in files]
    )
    app.run()
    return press(app, "import_read")


def stored(path: Path) -> int:
    return len(session.open_store(path).trace_frame())


def test_files_are_seen_named_and_imported(filled: Path, open_app: OpenApp) -> None:
    app = open_app("data", reviewer="lea")
    rows = [record(f"r{k}", cost_usd=0.1) for k in range(3)]
    bad = record("bad", cost_usd="=1+1")
    read(app, ("a.jsonl", lines(*rows, bad)), ("b.jsonl", lines(record("h1", workflow="sleep"))))
    assert figures(app)["Traces"] == "4"
    assert figures(app)["Costs known"] == "3"
    files = next(f.value for f in app.dataframe if "format" in f.value)
    assert files["file"].tolist() == ["a.jsonl", "b.jsonl"]
    assert files["skipped rows"].tolist() == [1, 0]
    aside = next(f.value for f in app.dataframe if "reason" in f.value)
    assert aside[["file", "line"]].values.tolist() == [["a.jsonl", 4]]
    assert stored(filled) == 5
    app.text_input(key="import_name_1_sleep").input("nights")
    app.number_input(key="import_ceiling_1_sleep").set_value(0.25)
    app.text_input(key="import_unit_1_sleep").input("night")
    press(app, "import_store")
    assert figures(app)["Imported"] == "4"
    assert figures(app)["Skipped rows"] == "1"
    assert stored(filled) == 9
    nights = session.open_store(filled).workflows()["nights"]
    assert (nights.ceiling_usd, nights.unit) == (0.25, "night")
    read(app, ("a.jsonl", lines(record("r0", prompt="Another task"), record("r1", cost_usd=0.1))))
    press(app, "import_store")
    counts = figures(app)
    assert (counts["Imported"], counts["Already there"], counts["Changed"]) == ("0", "1", "1")


def test_what_is_no_trace_file_says_why_and_stores_nothing(filled: Path, open_app: OpenApp) -> None:
    app = open_app("data", reviewer="lea")
    read(app, ("bad.json", b"PK\x03\x04zip"))
    assert "Nothing was read" in texts(app)
    assert "bad.json: it is a zip archive that cannot be read" in texts(app)
    assert "/tmp" not in texts(app)
    assert not any(button.key == "import_store" for button in app.button)
    assert stored(filled) == 5


def test_a_foreign_file_among_others_is_named_and_passed_over(
    filled: Path, open_app: OpenApp
) -> None:
    app = open_app("data", reviewer="lea")
    read(app, ("good.jsonl", lines(record("r1"))), ("bad.json", b"PK\x03\x04zip"))
    assert "Skipped rows (1)" in texts(app)
    shown = [str(frame.value) for frame in app.dataframe]
    assert any("not read: it is a zip archive" in text for text in shown)
    assert not any("/tmp" in text for text in [texts(app), *shown])
    press(app, "import_store")
    assert stored(filled) == 6


def test_bad_settings_are_refused_and_new_ones_read_again(filled: Path, open_app: OpenApp) -> None:
    app = open_app("data", reviewer="lea")
    app.text_input(key="import_path").input("/no/such/file")
    read(app, ("a.jsonl", lines(record("r1"), record("r2", workflow="trains"))))
    assert "there is no such file" in texts(app)
    app.text_input(key="import_path").input("")
    app.text_input(key="import_zone").input("Mars/Olympus")
    press(app, "import_read")
    assert "timezone must be an IANA name" in texts(app)
    app.text_input(key="import_zone").input("Europe/Berlin")
    press(app, "import_read")
    app.text_input(key="import_zone").input("UTC").run()
    assert "Read the files again" in texts(app)
    assert not any(button.key == "import_store" for button in app.button)
    press(app, "import_read")
    app.text_input(key="import_name_1_trains").input("flights")
    app.number_input(key="import_ceiling_1_trains").set_value(2.0)
    press(app, "import_store")
    assert "Nothing was imported: workflow 'flights' has two ceilings" in texts(app)
    assert stored(filled) == 5


def test_an_import_is_over_when_its_page_is_left(filled: Path, open_app: OpenApp) -> None:
    app = open_app("data", reviewer="lea")
    read(app, ("a.jsonl", lines(record("r1"))))
    press(app, "import_store")
    assert figures(app)["Imported"] == "1"
    assert "Next, draw a batch of them to label." in texts(app)
    go_to(app, "start")
    go_to(app, "data")
    assert "Imported" not in figures(app)
    assert "Nothing is stored before you have seen the contents of the files." in texts(app)


def test_a_path_on_the_server_fills_an_empty_store(
    store_file: Path, tmp_path: Path, open_app: OpenApp
) -> None:
    Store.open(store_file, create=True).close()
    (tmp_path / "runs").mkdir()
    (tmp_path / "runs" / "x.jsonl").write_bytes(lines(*(record(f"r{k}") for k in range(3))))
    app = open_app("data")
    assert "There are no traces yet" in texts(app)
    app.text_input(key="import_path").input(str(tmp_path / "runs")).run()
    press(app, "import_read")
    press(app, "import_store")
    assert figures(app)["Imported"] == "3"
    assert "3 traces" in texts(app)


def test_classes_and_verdicts_shown_to_a_lead_are_noted(filled: Path, open_app: OpenApp) -> None:
    labelled, judged, other = ids(0, 1, 2)
    with Store.open(filled) as store:
        batch = store.add_batch(purpose="production", trace_ids=[labelled, other], labels_wanted=1)
        store.queue("rea", batch.batch_id)
        store.record_label(
            LabelDraft(
                client_token="one", trace_id=labelled, reviewer_id="rea",
                batch_id=batch.batch_id, answers={"output": "no"},
            )
        )  # fmt: skip
        store.add_verdicts([Verdict(judge_id="j", trace_id=judged, outcome="complete")])
    open_app("data")  # nobody has said who they are
    open_app("data", reviewer="lea")
    store = session.open_store(filled)
    traces_csv(store, TraceFilter(judge="j"), for_leads=True, seen_by="lea")
    seen = store.exposure_frame()[["reviewer_id", "trace_id", "what"]].to_numpy().tolist()
    assert seen == [["lea", labelled, "labels"], ["lea", judged, "verdicts"]]


def test_where_people_sign_in_files_of_the_server_are_of_one_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, store_file: Path
) -> None:
    runs, store = tmp_path / "runs", Store.open(store_file, create=True)
    runs.mkdir()
    (runs / "out").symlink_to("/etc")
    assert imports._outside(store, "/etc/passwd") == ""
    store.set_identities("passphrase")
    assert imports._outside(store, "") == ""
    assert "ASR_IMPORT_FOLDER" in imports._outside(store, str(runs))
    monkeypatch.setenv(imports.IMPORT_FOLDER, str(runs))
    for path in (runs, runs / "a" / "b.jsonl"):
        assert imports._outside(store, str(path)) == ""
    for outside in ("/etc/passwd", f"{runs}/../x", f"{runs}2", f"{runs}/out/passwd", "~"):
        assert f"read from {runs} only" in imports._outside(store, outside)
    store.close()
