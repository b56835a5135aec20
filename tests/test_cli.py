"""The way by the command line from the files to the report: what is stored, worked out by hand."""

import json
from pathlib import Path

import pytest

from calibration.store import SavedView, Store, TraceFilter
from tests.cli_runs import Run, data, record, write, write_csv, write_runs

pytestmark = pytest.mark.usefixtures("few_draws")


def label(asr: Run, tmp_path: Path, drawn: list[str], reviewer: str, n: int = 40) -> None:
    rows = [f"{t},{reviewer},{'complete' if int(t[1:]) % 4 else 'abandoned'}" for t in drawn[:n]]
    path = write_csv(tmp_path / f"{reviewer}.csv", "trace_id,reviewer,outcome", *rows)
    done = data(asr("labels", "import", path, "--json"))
    assert (done["stored"], done["changed"], done["not_in_batch"]) == (n, [], [])
    assert data(asr("labels", "import", path, "--json"))["already_there"] == n


def test_the_whole_way(asr: Run, tmp_path: Path, filled: list[str]) -> None:
    label(asr, tmp_path, filled, "Ann")
    label(asr, tmp_path, filled, "Ben")
    alpha = data(asr("agreement", "--json"))["coefficients"]["krippendorff_alpha"]
    assert (alpha["value"], alpha["n_items"]) == (1.0, 40)
    calibrated = data(asr("calibrate", "--json"))
    assert (calibrated["headline"], calibrated["design"]) == ("two_phase", "production")
    # 0.25 USD at a ceiling of 0.20: every credit loses a quarter.
    net, gross = (
        calibrated[name]["post_stratified"]["value"] for name in ("estimates", "estimates_gross")
    )
    assert net == pytest.approx(0.75 * gross, abs=1e-12)
    reported = data(asr("report", "--json", "--seed", 3))
    assert reported["asr"] == calibrated["estimates"]["two_phase"]
    assert reported["by_workflow"]["flights"]["n"] == 40
    assert data(asr("report", "--json", "--seed", 3)) == reported


def test_marks_round_trip_and_those_that_cannot_be_stored_stop_an_import(
    asr: Run, tmp_path: Path, filled: list[str]
) -> None:
    row = {"trace_id": filled[0], "reviewer": "Ann", "outcome": "complete"}
    marks = {"confidence": 2, "tags": ["-late", "policy  gap"], "sub_goals": {"1": "done"}}
    asr("labels", "import", write(tmp_path / "l.jsonl", row | marks))
    asr("export", "labels", "out.csv")
    assert asr("export", "labels").stdout_bytes == (tmp_path / "out.csv").read_bytes()
    asr("sample", "--n", 60, "--seed", 9)  # a batch of every trace, without labels
    assert data(asr("labels", "import", "out.csv", "--json"))["stored"] == 1
    with Store.open(tmp_path / "asr.duckdb") as store:
        (stored,) = store.label_frame("production-002")[[*marks]].to_numpy().tolist()
    assert stored == [2, '["-late", "policy gap"]', '{"1": "done"}']
    many = "; ".join(f"tag {k}" for k in range(52)) + "; " + "x" * 81
    beyond = row | {"trace_id": filled[1], "tags": many}
    told = asr("labels", "import", write(tmp_path / "l.jsonl", beyond)).stdout
    assert "3 tags left out: a label has at most 50 tags of 80 characters." in told
    for field, value, why in (
        ("confidence", "4", "must be a whole number from 1 to 3"),
        ("sub_goals", "3", "must be an object"),
        ("sub_goals", '{"1": "half"}', "must be one of done"),
    ):
        refused = asr("labels", "import", write(tmp_path / "l.jsonl", row | {field: value}), code=2)
        assert f"line 1, field '{field}'" in refused.stderr
        assert why in refused.stderr


def test_an_export_never_writes_over_the_store(asr: Run, tmp_path: Path, filled: list[str]) -> None:
    assert "is the store itself" in asr("export", "labels", "asr.duckdb", "--force", code=2).stderr
    for command in (
        "report",
        "calibrate",
        "agreement",
        "plan labels --n 9",
        "sample --n 1 --seed 2",
    ):
        refused = asr(*command.split(), "--html", "asr.duckdb", code=2).stderr
        assert "exists and is not an HTML page" in refused
    assert data(asr("sample", "--n", 1, "--seed", 2, "--json"))["population"] == 60
    ratings = tmp_path / "r.csv"
    ratings.write_text(kept := "item,a,b\n1,x,x\n2,y,x\n3,x,x\n")
    asr("agreement", ratings, "--html", ratings, code=2)
    assert ratings.read_text() == kept
    # A page is made anew, again and again.
    for _ in range(2):
        asr("agreement", ratings, "--html", tmp_path / "page.html")
    asr("export", "labels", tmp_path, code=2)
    asr("export", "labels", tmp_path / "no" / "x.csv", code=2)


def test_a_folder_is_imported_file_by_file(asr: Run, tmp_path: Path) -> None:
    folder = tmp_path / "Läufe и прогоны"
    folder.mkdir()
    write_runs(folder / "a.jsonl", 2)
    write(folder / "ü.jsonl", record("x"), record("y"))
    (folder / "notes.txt").write_text("nothing")
    store = tmp_path / "spéicher" / "новый.duckdb"
    done = data(asr("import", folder, "--json", env={"ASR_STORE": str(store)}))
    assert (done["files"], done["imported"]) == (2, 4)
    assert store.exists()


def test_an_unrecognised_file_stores_nothing(asr: Run, tmp_path: Path) -> None:
    bad = tmp_path / "bad.json"
    for content in (b"", b"{}", b"a,b\n1,2\n", b"\x00\x01\x02\xff" * 99, b"PK\x03\x04"):
        bad.write_bytes(content)
        result = asr("import", bad, code=2)
        assert (str(bad) in result.stderr, result.stdout) == (True, "")
        other = tmp_path / "other.json"
        other.write_bytes(content)
        assert "and 1 more files" in asr("import", bad, other, bad, code=2).stderr
    assert not (tmp_path / "asr.duckdb").exists()


def test_a_foreign_file_among_others_is_named_and_passed_over(asr: Run, tmp_path: Path) -> None:
    good, bad = write_runs(tmp_path / "good.jsonl", 2), tmp_path / "bad.json"
    cut = tmp_path / "cut.json"
    cut.write_text(f"[{good.read_text().splitlines()[0]},", encoding="utf-8")
    for content in (b"", b"{}", b"a,b\n1,2\n", b"PK\x03\x04"):
        bad.write_bytes(content)
        found = data(asr("import", bad, good, cut, "--json"))
        assert found["imported"] + found["already_there"] == 2
        assert [Path(row["file"]).name for row in found["set_aside"]] == ["bad.json", "cut.json"]
        assert all(row["reason"].startswith("not read: ") for row in found["set_aside"])


def test_ids_of_the_source_stand_for_traces(asr: Run, tmp_path: Path) -> None:
    rows = [
        {"task_id": task, "trial_id": 0, "messages": [{"role": "user", "content": "Go."}]}
        for task in ("one", "two" * 1000)
    ]
    runs = tmp_path / "runs.jsonl"
    runs.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    assert data(asr("import", runs, "--workflow", "w", "--json"))["imported"] == 2
    listed = data(asr("traces", "--json"))["traces"]
    assert {row["source_id"] for row in listed} == {"runs/one", f"runs/{'two' * 1000}"}
    found = data(asr("traces", "runs/one", "--json"))["traces"]
    assert [row["task_key"] for row in found] == ["transcript/w/one"]
    given = write_csv(tmp_path / "v.csv", "trace_id,outcome", "runs/one,complete")
    assert data(asr("verdicts", "import", given, "--judge", "j", "--json"))["stored"] == 1
    asr("sample", "--n", 2, "--seed", 1)
    given = write_csv(tmp_path / "l.csv", "trace_id,reviewer,outcome", "runs/one,Ann,complete")
    assert asr("labels", "import", given).stdout.startswith("1 ")


def test_a_grade_without_an_outcome_proposes_a_class(asr: Run, tmp_path: Path) -> None:
    asr("import", write_runs(tmp_path / "f.jsonl", 5), "--yes")
    listed = [row["trace_id"] for row in data(asr("traces", "--json"))["traces"]]
    grades = dict(zip(sorted(listed), (5, 4, 3, 2, 1), strict=True))
    given = write_csv(
        tmp_path / "v.csv", "trace_id,grade", *(f"{t},{g}" for t, g in grades.items())
    )
    assert data(asr("verdicts", "import", given, "--judge", "j", "--json"))["stored"] == 5
    with Store.open(tmp_path / "asr.duckdb") as store:
        frame = store.verdict_frame("j").set_index("trace_id").sort_index()
        taxonomy = store.taxonomy()
    assert frame["outcome"].tolist() == [*taxonomy.acceptable, *[taxonomy.failed_check] * 3]
    assert frame["proposed"].all()
    bad = write_csv(tmp_path / "bad.csv", "trace_id,grade", f"{listed[0]},6")
    assert "1 to 5" in asr("verdicts", "import", bad, "--judge", "k", code=2).stderr
    asr("sample", "--n", 2, "--seed", 1)
    human = write_csv(tmp_path / "l.csv", "trace_id,outcome", f"{listed[0]},complete")
    result = asr("calibrate", "--human", human, "--verdicts", given, code=2)
    assert "'outcome' is missing" in result.stderr


def test_an_id_of_the_source_that_several_traces_have_is_refused(asr: Run, tmp_path: Path) -> None:
    messages = [{"role": "user", "content": "Go."}]
    rows = [{"task_id": "one", "trial_id": f"{k}", "messages": messages} for k in ("a1", "b1")]
    runs = tmp_path / "runs.jsonl"
    runs.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    asr("import", runs, "--workflow", "w", "--json")
    with Store.open(tmp_path / "asr.duckdb") as store, store._db.write() as cursor:
        cursor.execute("UPDATE trace SET source_id = 'both'")
    given = write_csv(tmp_path / "v.csv", "trace_id,outcome", "both,complete")
    assert "line 2" in asr("verdicts", "import", given, "--judge", "j", code=2).stderr


def test_a_changed_run_is_set_aside_until_it_is_taken(asr: Run, tmp_path: Path) -> None:
    asr("import", write_runs(tmp_path / "old.jsonl", 4), "--yes")
    asr("sample", "--n", 4, "--seed", 1)
    labels = write_csv(tmp_path / "l.csv", "trace_id,reviewer,outcome", "r000,Ann,complete")
    asr("labels", "import", labels)
    new = write_runs(tmp_path / "new.jsonl", 2, response="Other.", cost_usd=0.5)
    kept = data(asr("import", new, "--json"))
    assert (kept["imported"], kept["changed"], len(kept["set_aside"])) == (0, 2, 2)
    assert "carries labels" in kept["set_aside"][0]["reason"]
    assert "--take-changed" in kept["set_aside"][1]["reason"]
    taken = data(asr("import", new, "--take-changed", "--json"))
    assert (taken["changed"], taken["set_aside"][0]["line"]) == (1, 1)
    with Store.open(tmp_path / "asr.duckdb") as store:
        costs = store.trace_frame().set_index("trace_id")["cost_usd"]
        assert (costs["r000"], costs["r001"]) == (0.25, 0.5)
        assert "Other." in str(store.for_review(["r001"])[0].response)


def test_options_and_a_mapping_file_say_what_a_run_is(asr: Run, tmp_path: Path) -> None:
    mapping = tmp_path / "map.toml"
    mapping.write_text('[workflows.flights]\nname = "trips"\nceiling_usd = 0.2\nunit = "trip"\n')
    flight = record("a", started_at="2026-01-05T09:00:00")
    file = write(tmp_path / "f.jsonl", flight, record("b", workflow="cars", cost_usd=None))
    options = ["--ceiling", 0.9, "--unit", "ride", "--timezone", "Europe/Berlin", "--yes"]
    asr("import", file, "--mapping", mapping, *options)
    with Store.open(tmp_path / "asr.duckdb") as store:
        known = {w.name: (w.ceiling_usd, w.unit) for w in store.workflows().values()}
        frame = store.trace_frame().set_index("trace_id")
    assert (known["trips"], known["cars"]) == ((0.2, "trip"), (0.9, "ride"))
    assert frame["cost_usd"].isna().tolist() == [False, True]  # missing, not zero
    assert frame["started_at"]["a"].isoformat() == "2026-01-05T08:00:00"


def test_a_taxonomy_is_not_changed_in_passing(asr: Run, tmp_path: Path) -> None:
    default = Path(__file__).parents[1] / "calibration" / "taxonomy.toml"
    text = default.read_text("utf-8").replace('version = "1.0"', 'version = "1.0-fork"')
    fork, other = tmp_path / "fork.toml", tmp_path / "other.toml"
    fork.write_text(text.replace("credit = 0.4", "credit = 0.3"), encoding="utf-8")
    other.write_text(text.replace("1.0-fork", "2.0"), encoding="utf-8")
    file = write_runs(tmp_path / "f.jsonl", 2)
    assert data(asr("taxonomy", "show", "--json"))["version"] == "1.0"
    assert not (tmp_path / "asr.duckdb").exists()
    for _ in range(2):
        asr("import", file, "--yes", "--taxonomy", fork)
        assert data(asr("taxonomy", "show", "--json"))["version"] == "1.0-fork"
    result = asr("import", file, "--yes", "--taxonomy", other, code=2)
    assert "taxonomy '1.0-fork' is in force there" in result.stderr
    asr("taxonomy", "use", other)
    assert data(asr("taxonomy", "show", "--json"))["version"] == "2.0"
    # Another catalogue of tags is no other taxonomy.
    before = data(asr("taxonomy", "show", "--json"))
    tags = text.partition("[tags.")[0].replace("1.0-fork", "2.0")
    tags += '[tags.rude]\ndefinition = "Rude."\ntest = "Read it aloud."\nexample = "No."\n'
    other.write_text(tags, encoding="utf-8")
    asr("taxonomy", "use", other)
    after = data(asr("taxonomy", "show", "--json"))
    assert (list(after["tags"]), len(before["tags"])) == (["rude"], 13)
    assert after["fingerprint"] == before["fingerprint"]
    assert "tag rude: Rude.  Test: Read it aloud." in asr("taxonomy", "show").stdout


def test_the_list_of_traces_holds_what_a_stored_query_and_other_filters_find(
    asr: Run, tmp_path: Path
) -> None:
    calls = [{"role": "tool", "tool": "pay", "result": "x", "error": True}]
    rows = [record(f"r{k}", started_at=f"2026-01-0{k}T10:00:00Z") for k in (1, 2, 3)]
    asr("import", write(tmp_path / "f.jsonl", rows[0] | {"steps": calls}, *rows[1:]), "--yes")
    with Store.open(tmp_path / "asr.duckdb") as store:
        store.save_view(
            "Failed payments", SavedView(chosen=TraceFilter(tool="pay", tool_ended="error"))
        )

    def listed(*words: str) -> list[str]:
        return [row["trace_id"] for row in data(asr("traces", *words, "--json"))["traces"]]

    assert listed("--saved", "Failed payments") == ["r1"]
    assert listed("tool:pay", "error:yes") == ["r1"]
    assert listed("to:2026-01-02") == ["r1", "r2"]
    assert listed("to:2026-01-02T10:00") == ["r1"]
    assert listed("class:unlabelled", "--descending") == ["r3", "r2", "r1"]
    assert data(asr("traces", "to:2026-01-02", "--json"))["search"] == "to:2026-01-02"


def test_an_audit_of_agreed_labels_needs_a_lead(
    asr: Run, tmp_path: Path, filled: list[str]
) -> None:
    label(asr, tmp_path, filled, "Ann")
    label(asr, tmp_path, filled, "Ben")
    audit = ("sample", "--audit-agreed", 5, "--seed", 1)
    assert "name a lead with --by" in asr(*audit, code=2).stderr
    assert "name one of them" in asr(*audit, "--n", 5, code=2).stderr
    assert (
        "--by is for --audit-agreed"
        in asr("sample", "--n", 5, "--seed", 1, "--by", "x", code=2).stderr
    )
    asr("people", "add", "Lena", "--role", "lead")
    drawn = data(asr(*audit, "--json"))
    assert (drawn["n"], drawn["population"], drawn["inclusion_probability"]) == (5, 40, 0.125)
    assert f"drew {drawn['batch_id']}" in asr(*audit, "--by", "Lena", code=2).stderr
    assert "5 of 40 traces" in asr(*audit[:3], "--by", "Lena").stdout
    assert data(asr("calibrate", "--json"))["agreed_error"]["value"] is None
