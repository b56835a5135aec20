"""The way by the command line from the files to the report: what is stored, worked out by hand."""

import csv
import io
from pathlib import Path

import pytest

from calibration.store import Store
from tests.cli_runs import FIXTURES, Run, data, record, write, write_csv, write_runs

pytestmark = pytest.mark.usefixtures("few_draws")


def label(asr: Run, tmp_path: Path, drawn: list[str], reviewer: str, n: int = 40) -> None:
    rows = [f"{t},{reviewer},{'complete' if int(t[1:]) % 4 else 'abandoned'}" for t in drawn[:n]]
    path = write_csv(tmp_path / f"{reviewer}.csv", "trace_id,reviewer,outcome", *rows)
    done = data(asr("labels", "import", path, "--json"))
    assert (done["stored"], done["changed"], done["not_in_batch"]) == (n, [], [])
    assert data(asr("labels", "import", path, "--json"))["already_there"] == n


def test_a_sample_depends_on_the_seed_and_not_on_the_order_of_the_file(
    asr: Run, tmp_path: Path
) -> None:
    asr("import", write_runs(tmp_path / "f.jsonl", 8), "--yes")
    reverse = write(tmp_path / "g.jsonl", *[record(f"r{k:03d}") for k in reversed(range(8))])
    asr("import", reverse, "--yes", "--store", "other.duckdb")
    draw = ["sample", "--n", 3, "--seed", 5, "--json"]
    one, same, other = (data(asr(*draw, *more)) for more in ([], [], ["--store", "other.duckdb"]))
    assert one["trace_ids"] == same["trace_ids"] == other["trace_ids"]
    assert (one["n"], one["population"], one["inclusion_probability"]) == (3, 8, 3 / 8)


def test_the_whole_way(asr: Run, tmp_path: Path, filled: list[str]) -> None:
    label(asr, tmp_path, filled, "Ann")
    label(asr, tmp_path, filled, "Ben")
    alpha = data(asr("agreement", "--json"))["coefficients"]["krippendorff_alpha"]
    assert (alpha["value"], alpha["n_items"]) == (1.0, 40)
    calibrated = data(asr("calibrate", "--json"))
    assert (calibrated["headline"], calibrated["design"]) == ("post_stratified", "production")
    # 0.25 USD at a ceiling of 0.20: every credit loses a quarter.
    net, gross = (
        calibrated[name]["post_stratified"]["value"] for name in ("estimates", "estimates_gross")
    )
    assert net == pytest.approx(0.75 * gross, abs=1e-12)
    reported = data(asr("report", "--json", "--seed", 3))
    assert reported["asr"] == calibrated["estimates"]["post_stratified"]
    assert reported["by_workflow"]["flights"]["n"] == 40
    assert data(asr("report", "--json", "--seed", 3)) == reported


@pytest.mark.parametrize(
    ("n", "design", "codes"),
    [
        # Two classes have no reference label: inversion is refused, and so is everything else.
        (40, "reference", {("post_stratified", "no_probability_sample"),
                           ("inversion", "few_reference_labels")}),
        (29, "production", {(name, "few_labels")
                            for name in ("post_stratified", "ppi_plus_plus", "bootstrap")}),
    ],
)  # fmt: skip
def test_what_the_labels_do_not_allow_has_no_headline(
    asr: Run, tmp_path: Path, filled: list[str], n: int, design: str, codes: set[tuple[str, str]]
) -> None:
    label(asr, tmp_path, filled, "Ann", n=n)
    found = data(asr("calibrate", "--design", design, "--json", code=1))
    assert found["headline"] is None
    assert codes <= {(r["estimator"], r["code"]) for r in found["refusals"]}
    assert all(r["why"] and r["mend"] for r in found["refusals"])
    if n < 30:
        reported = data(asr("report", "--json"))
        assert reported["calibrated"] is False
        assert reported["judged"]["corrected"]["value"] is None
        assert reported["asr"] == reported["judged"]["human_only"]


# Labels and verdicts


def test_labels_round_trip_through_files(asr: Run, tmp_path: Path, filled: list[str]) -> None:
    formula = '=HYPERLINK("http://evil","x")'
    rows = [
        {"trace_id": filled[0], "reviewer": "Ann", "outcome": "hallucinated",
         "rationale": formula, "evidence_step": "s1", "evidence_quote": "-1 'quoted', \"so\"",
         "confidence": 2, "tags": ["-late", "policy  gap"], "sub_goals": {"1": "done"}},
        {"trace_id": filled[1], "reviewer": "Ann", "outcome": "complete"},
    ]  # fmt: skip
    asr("labels", "import", write(tmp_path / "l.jsonl", *rows))
    asr("labels", "export", "--output", "out.csv")
    printed = asr("labels", "export").stdout_bytes
    assert printed == (tmp_path / "out.csv").read_bytes()
    exported = list(csv.DictReader(io.StringIO(printed.decode(), newline="")))
    assert sorted(row["rationale"] for row in exported) == ["", "'" + formula]
    asr("sample", "--n", 60, "--seed", 9)  # a batch of every trace, without labels
    assert data(asr("labels", "import", "out.csv", "--json"))["stored"] == 2
    asr("labels", "export", "--output", "again.csv")
    assert (tmp_path / "again.csv").read_bytes() == (tmp_path / "out.csv").read_bytes()
    with Store.open(tmp_path / "asr.duckdb") as store:
        stored = store.label_frame("production-002")
    assert set(stored["rationale"].dropna()) == {formula}
    assert stored["confidence"].dropna().tolist() == [2]
    assert sorted(stored["tags"]) == ['["-late", "policy gap"]', "[]"]
    assert sorted(stored["sub_goals"]) == ['{"1": "done"}', "{}"]


@pytest.mark.parametrize(
    ("field", "value", "why"),
    [
        ("confidence", "4", "must be a whole number from 1 to 3"),
        ("confidence", "high", "must be a whole number from 1 to 3"),
        ("tags", "; ".join(f"tag {k}" for k in range(9)), "at most 8 tags"),
        ("sub_goals", "3", "must be an object"),
        ("sub_goals", '{"1": "half"}', "must be one of done"),
    ],
)
def test_marks_that_cannot_be_stored_stop_an_import(
    asr: Run, tmp_path: Path, filled: list[str], field: str, value: str, why: str
) -> None:
    row = {"trace_id": filled[0], "reviewer": "Ann", "outcome": "complete", field: value}
    refused = asr("labels", "import", write(tmp_path / "l.jsonl", row), code=2).stderr
    assert f"line 1, field '{field}'" in refused
    assert why in refused


def test_an_export_never_writes_over_the_store(asr: Run, tmp_path: Path, filled: list[str]) -> None:
    assert "is the store itself" in asr("labels", "export", "--output", "asr.duckdb", code=2).stderr
    assert data(asr("sample", "--n", 1, "--seed", 2, "--json"))["population"] == 60
    asr("labels", "export", "--output", tmp_path, code=2)
    asr("labels", "export", "--output", tmp_path / "no" / "x.csv", code=2)


def test_verdicts_are_stored_once_or_not_at_all(
    asr: Run, tmp_path: Path, filled: list[str]
) -> None:
    file = write_csv(tmp_path / "w.csv", "trace_id,outcome", "r000,complete", "r001,great")
    result = asr("verdicts", file, "--judge", "j2", code=2)
    assert f"{file}, line 3, field 'outcome': 'great' is none of" in result.stderr
    assert "j2" in asr("calibrate", "--judge", "j2", code=2).stderr
    rows = ("r000,abandoned", "r001,abandoned", "zzz,complete")
    done = data(asr("verdicts", write_csv(file, "trace_id,outcome", *rows), "--judge", "j1",
                    "--json"))  # fmt: skip
    assert done == {
        "stored": 0, "already_there": 1, "changed": ["r001"], "unknown_traces": ["zzz"],
    }  # fmt: skip


# Import and taxonomy


def test_every_format_is_imported_once(asr: Run, tmp_path: Path) -> None:
    names = ("tau2.json", "lamp-1-retail.json", "tau2_run")
    files = [FIXTURES / "importers" / name for name in names]
    own = write_runs(tmp_path / "own.jsonl", 3)
    first, again = (data(asr("import", *files, own, "--json")) for _ in range(2))
    assert (again["imported"], again["already_there"]) == (0, first["imported"])
    with Store.open(tmp_path / "asr.duckdb") as store:
        judges = set(store.judge_frame()["judge_id"])
    assert judges == {"source:tau2", "source:tau-bench"}


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


def test_bad_rows_are_set_aside_with_file_line_and_reason(asr: Run, tmp_path: Path) -> None:
    file = write(
        tmp_path / "f.jsonl", record("a"), "{broken", record("b", cost_usd=-1), record("a")
    )
    done = data(asr("import", file, "--json"))
    assert done["imported"] == 1
    assert [(row["file"], row["line"]) for row in done["set_aside"]] == [
        (str(file), line) for line in (2, 3, 4)
    ]
    assert "cost_usd" in done["set_aside"][1]["reason"]


@pytest.mark.parametrize(
    "content", [b"", b"{}", b"[1, 2]", b"a,b\n1,2\n", b"\x00\x01\x02\xff" * 99, b"PK\x03\x04"]
)
def test_an_unrecognised_file_stores_nothing(asr: Run, tmp_path: Path, content: bytes) -> None:
    good = write_runs(tmp_path / "good.jsonl", 2)
    bad = tmp_path / "bad.json"
    bad.write_bytes(content)
    result = asr("import", good, bad, code=2)
    assert str(bad) in result.stderr
    assert result.stdout == ""
    assert not (tmp_path / "asr.duckdb").exists()


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


def test_workflow_ceiling_unit_and_timezone(asr: Run, tmp_path: Path) -> None:
    file = write(tmp_path / "f.jsonl", record("a", started_at="2026-01-05T09:00:00"))
    options = ["--workflow", "hotels", "--ceiling", 0.3, "--unit", "room"]
    asr("import", file, *options, "--timezone", "Europe/Berlin", "--yes")
    with Store.open(tmp_path / "asr.duckdb") as store:
        workflow = store.workflows()["hotels"]
        assert (workflow.ceiling_usd, workflow.unit) == (0.3, "room")
        (run,) = store.trace_frame().to_dict("records")
    assert (run["workflow"], run["started_at"].isoformat()) == ("hotels", "2026-01-05T08:00:00")


def test_a_mapping_file_says_what_a_run_is(asr: Run, tmp_path: Path) -> None:
    mapping = tmp_path / "map.toml"
    mapping.write_text('[workflows.flights]\nname = "trips"\nceiling_usd = 0.2\nunit = "trip"\n')
    file = write(tmp_path / "f.jsonl", record("a"), record("b", workflow="cars", cost_usd=None))
    asr("import", file, "--mapping", mapping, "--ceiling", 0.9, "--yes")
    with Store.open(tmp_path / "asr.duckdb") as store:
        known = store.workflows()
        costs = store.trace_frame().set_index("trace_id")["cost_usd"]
    assert (known["trips"].ceiling_usd, known["trips"].unit) == (0.2, "trip")
    assert known["cars"].ceiling_usd == 0.9
    assert costs.isna().tolist() == [False, True]  # missing, not zero
    mapping.write_text("[workflows.flights]\ncolour = 1\n")
    result = asr("import", file, "--mapping", mapping, code=2)
    assert "unknown key 'workflows.flights.colour'" in result.stderr


def test_a_taxonomy_is_not_changed_in_passing(asr: Run, tmp_path: Path) -> None:
    default = Path(__file__).parents[1] / "calibration" / "taxonomy.toml"
    text = default.read_text("utf-8").replace('version = "1.0"', 'version = "1.0-fork"')
    fork, other = tmp_path / "fork.toml", tmp_path / "other.toml"
    fork.write_text(text.replace("credit = 0.4", "credit = 0.3"), encoding="utf-8")
    other.write_text(text.replace("1.0-fork", "2.0"), encoding="utf-8")
    file = write_runs(tmp_path / "f.jsonl", 2)
    assert data(asr("taxonomy", "--json"))["version"] == "1.0"
    assert not (tmp_path / "asr.duckdb").exists()
    for _ in range(2):
        asr("import", file, "--yes", "--taxonomy", fork)
        assert data(asr("taxonomy", "--json"))["version"] == "1.0-fork"
    result = asr("import", file, "--yes", "--taxonomy", other, code=2)
    assert "taxonomy '1.0-fork' is in force there" in result.stderr
    asr("taxonomy", other)
    assert data(asr("taxonomy", "--json"))["version"] == "2.0"
    for nonsense in ("", "version = 1", "[[[", 'version = "1"\nclasses = []\n'):
        other.write_text(nonsense)
        assert "other.toml" in asr("taxonomy", other, code=2).stderr
