"""`asr import` and `asr taxonomy`: what is stored, what is set aside, what is refused."""

from pathlib import Path

import pytest

from calibration.store import Store
from tests.cli_runs import FIXTURES, Run, asr, data, record, write, write_csv, write_runs

__all__ = ["asr"]


def test_every_format_is_imported_once(asr: Run, tmp_path: Path) -> None:
    files = [FIXTURES / name for name in ("tau2.json", "lamp-1-retail.json", "tau2_run")]
    own = write_runs(tmp_path / "own.jsonl", 3)
    first = data(asr("import", *files, own, "--json"))
    assert first.keys() >= {"files", "imported", "already_there", "changed", "set_aside"}
    assert first["files"] == 4
    assert first["imported"] > 3
    assert first["changed"] == 0
    assert first["verdicts"] > 0
    for row in first["set_aside"]:
        assert row.keys() == {"file", "line", "reason"}
    again = data(asr("import", *files, own, "--json"))
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
    done = data(asr("import", folder, "--store", store, "--json"))
    assert (done["files"], done["imported"]) == (2, 4)
    assert store.exists()


def test_bad_rows_are_set_aside_with_file_line_and_reason(asr: Run, tmp_path: Path) -> None:
    file = write(
        tmp_path / "f.jsonl", record("a"), "{broken", record("b", cost_usd=-1), record("a")
    )
    done = data(asr("import", file, "--json"))
    assert done["imported"] == 1
    assert [row["line"] for row in done["set_aside"]] == [2, 3, 4]
    assert {row["file"] for row in done["set_aside"]} == {str(file)}
    assert "cost_usd" in done["set_aside"][1]["reason"]
    shown = asr("import", file, "--yes").stdout
    assert "3 set aside" in shown
    assert f"set aside: {file}, line 3: " in shown


def test_only_bad_rows_is_exit_1(asr: Run, tmp_path: Path) -> None:
    file = write(tmp_path / "f.jsonl", record("a", cost_usd=-1))
    result = asr("import", file, "--json", code=1)
    assert data(result)["imported"] == 0
    assert "no trace could be read" in result.stderr


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


def test_nothing_is_asked_without_a_terminal(asr: Run, tmp_path: Path) -> None:
    result = asr("import", write_runs(tmp_path / "f.jsonl", 2))
    assert "Import into" not in result.output
    assert "Traces        2 in 1 files (2 records)" in result.stdout
    assert "2 imported" in result.stdout


def test_the_store_is_named_by_the_environment(asr: Run, tmp_path: Path) -> None:
    file = write_runs(tmp_path / "f.jsonl", 2)
    place = tmp_path / "else.duckdb"
    asr("import", file, "--yes", env={"ASR_STORE": str(place)})
    assert place.exists()
    assert data(asr("sample", "--n", 1, "--seed", 1, "--json", "--store", place))["population"] == 2


def test_a_taxonomy_is_not_changed_in_passing(asr: Run, tmp_path: Path) -> None:
    fork = forked(tmp_path)
    file = write_runs(tmp_path / "f.jsonl", 2)
    asr("import", file, "--yes", "--taxonomy", fork)
    assert data(asr("taxonomy", "--json"))["version"] == "1.0-fork"
    asr("import", file, "--yes", "--taxonomy", fork)  # the same one
    other = tmp_path / "other.toml"
    other.write_text(fork.read_text("utf-8").replace("1.0-fork", "2.0"), encoding="utf-8")
    result = asr("import", file, "--yes", "--taxonomy", other, code=2)
    assert "taxonomy '1.0-fork' is in force there" in result.stderr
    asr("taxonomy", other)
    assert data(asr("taxonomy", "--json"))["version"] == "2.0"


def forked(tmp_path: Path) -> Path:
    default = Path(__file__).parents[1] / "calibration" / "taxonomy.toml"
    fork = tmp_path / "fork.toml"
    text = default.read_text("utf-8").replace('version = "1.0"', 'version = "1.0-fork"')
    fork.write_text(text.replace("credit = 0.4", "credit = 0.3"), encoding="utf-8")
    return fork


def test_taxonomy_shows_the_default_and_refuses_nonsense(asr: Run, tmp_path: Path) -> None:
    shown = data(asr("taxonomy", "--json"))
    assert len(shown["fingerprint"]) == 64
    assert shown["classes"][0]["name"] == "complete"
    assert "credit 0.4" in asr("taxonomy").stdout
    assert not (tmp_path / "asr.duckdb").exists()
    broken = tmp_path / "broken.toml"
    for content in ("", "version = 1", "[[[", 'version = "1"\nclasses = []\n'):
        broken.write_text(content)
        assert "broken.toml" in asr("taxonomy", broken, code=2).stderr
    for path in (tmp_path, tmp_path / "none.toml"):
        asr("taxonomy", path, code=2)
