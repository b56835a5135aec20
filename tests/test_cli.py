"""The whole way by the command line, and what it says when it cannot go on."""

import csv
import io
import json
import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import click
import pytest
from click.testing import CliRunner, Result

from calibration.cli import main
from calibration.store import Store

pytestmark = pytest.mark.usefixtures("few_draws")

FIXTURES = Path(__file__).parent / "fixtures" / "importers"
ASR = [sys.executable, "-c", "from calibration.cli import main; main()"]

Run = Callable[..., Result]
GOOD = "correct horse battery"


@pytest.fixture
def asr(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Run:
    """Run the command in a directory of its own; an exception is a failed test."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("ASR_STORE", raising=False)

    def run(*arguments: object, code: int = 0, env: dict[str, str] | None = None) -> Result:
        result = CliRunner().invoke(main, [str(a) for a in arguments], env=env)
        if result.exception is not None and not isinstance(result.exception, SystemExit):
            raise result.exception
        assert result.exit_code == code, result.output
        if code and "Usage:" not in result.stderr:
            assert result.stderr.count("\n") == 1, result.stderr
            assert result.stderr.startswith("error: ")
        return result

    return run


def data(result: Result) -> Any:
    """Return what was printed, which must be JSON and nothing else."""

    def refuse(constant: str) -> None:
        raise AssertionError(constant)

    return json.loads(result.stdout, parse_constant=refuse)


def record(trace_id: str, **changes: Any) -> dict[str, Any]:
    row = {"trace_id": trace_id, "workflow": "flights", "prompt": f"Book {trace_id}"}
    return row | {"response": "Booked.", "cost_usd": 0.25} | changes


def write(path: Path, *rows: Any) -> Path:
    lines = [row if isinstance(row, str) else json.dumps(row) for row in rows]
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return path


def write_runs(path: Path, n: int, **changes: Any) -> Path:
    return write(path, *[record(f"r{k:03d}", **changes) for k in range(n)])


def write_csv(path: Path, head: str, *rows: str) -> Path:
    path.write_text("\n".join([head, *rows]) + "\n", encoding="utf-8")
    return path


# Import


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


# From the batch to the report


@pytest.fixture(scope="session")
def template(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, list[str]]:
    """Bring 60 runs into a store, draw 40, and have a judge say complete of two in three."""
    folder = tmp_path_factory.mktemp("template")
    runs = write_runs(folder / "f.jsonl", 60)
    said = [f"r{k:03d},{'complete' if k % 3 else 'abandoned'}" for k in range(60)]
    verdicts = write_csv(folder / "v.csv", "trace_id,outcome", *said)
    drawn: list[str] = []
    for command in (
        ["import", str(runs), "--ceiling", "0.2", "--json"],
        ["verdicts", str(verdicts), "--judge", "j1", "--json"],
        ["sample", "--n", "40", "--seed", "1", "--json"],
    ):
        done = CliRunner().invoke(main, [*command, "--store", str(folder / "asr.duckdb")])
        assert done.exit_code == 0, done.output
        drawn = data(done).get("trace_ids", [])
    return folder, drawn


@pytest.fixture
def filled(tmp_path: Path, template: tuple[Path, list[str]]) -> list[str]:
    """Start from a copy of the template; return the traces drawn."""
    folder, drawn = template
    shutil.copytree(folder, tmp_path, dirs_exist_ok=True)
    return drawn


def label(asr: Run, tmp_path: Path, drawn: list[str], reviewer: str, n: int = 40) -> None:
    rows = [f"{t},{reviewer},{'complete' if int(t[1:]) % 4 else 'abandoned'}" for t in drawn[:n]]
    path = write_csv(tmp_path / f"{reviewer}.csv", "trace_id,reviewer,outcome", *rows)
    done = data(asr("labels", "import", path, "--json"))
    assert (done["stored"], done["changed"], done["not_in_batch"]) == (n, [], [])
    assert data(asr("labels", "import", path, "--json"))["already_there"] == n


def test_sample_says_how_it_was_drawn(asr: Run, tmp_path: Path) -> None:
    asr("import", write_runs(tmp_path / "f.jsonl", 8), "--yes")
    reverse = write(tmp_path / "g.jsonl", *[record(f"r{k:03d}") for k in reversed(range(8))])
    asr("import", reverse, "--yes", "--store", "other.duckdb")
    draw = ["sample", "--n", 3, "--seed", 5, "--json"]
    one, same, other = (data(asr(*draw, *more)) for more in ([], [], ["--store", "other.duckdb"]))
    assert one["trace_ids"] == same["trace_ids"] == other["trace_ids"]
    assert (one["n"], one["population"], one["inclusion_probability"]) == (3, 8, 3 / 8)
    assert (one["batch_id"], same["batch_id"]) == ("production-001", "production-002")
    assert "each drawn with probability 0.3750" in asr("sample", "--n", 3, "--seed", 6).stdout
    result = asr("sample", "--n", 9, "--seed", 1, code=1)
    assert "9 traces were asked for and there are 8" in result.stderr


def test_the_whole_way(asr: Run, tmp_path: Path, filled: list[str]) -> None:
    label(asr, tmp_path, filled, "Ann")
    label(asr, tmp_path, filled, "Ben")
    agreement = data(asr("agreement", "--json"))
    alpha = agreement["coefficients"]["krippendorff_alpha"]
    assert (alpha["value"], alpha["n_items"]) == (1.0, 40)
    assert alpha.keys() >= {"value", "interval", "se", "n_items", "n_ratings", "method", "status"}

    calibrated = data(asr("calibrate", "--json"))
    assert calibrated["headline"] == "post_stratified"
    assert calibrated["design"] == "production"
    expected = {
        "post_stratified", "ppi_plus_plus", "inversion", "bayesian", "bootstrap", "human_only",
        "judge_raw",
    }  # fmt: skip
    assert calibrated["estimates"].keys() == calibrated["estimates_gross"].keys() == expected
    assert calibrated["estimates"]["judge_raw"]["interval"] is None
    assert calibrated["judge"].keys() >= {"kappa", "accuracy", "per_class"}
    # 0.25 USD at a ceiling of 0.20: every credit loses a quarter.
    net, gross = (
        calibrated[name]["post_stratified"]["value"] for name in ("estimates", "estimates_gross")
    )
    assert net == pytest.approx(0.75 * gross, abs=1e-12)

    reported = data(asr("report", "--json", "--seed", 3))
    assert reported["asr"] == calibrated["estimates"]["post_stratified"]
    assert reported["calibrated"] is True
    assert reported["cost"]["coverage"] == 1.0
    assert reported["origin"]["seed"] == 3
    assert reported["by_workflow"]["flights"]["n"] == 40
    assert data(asr("report", "--json", "--seed", 3)) == reported
    for command in ("agreement", "calibrate", "report"):
        assert reported["fingerprint"] or command
        assert "nan" not in asr(command).stdout.lower().split()


def test_reference_labels_are_no_part_of_production(
    asr: Run, tmp_path: Path, filled: list[str]
) -> None:
    label(asr, tmp_path, filled, "Ann")
    # Two classes have no reference label: inversion is refused, and so is everything else.
    result = asr("calibrate", "--design", "reference", "--json", code=1)
    found = data(result)
    assert found["headline"] is None
    assert found["n_production"] == 20
    assert all(e["value"] is None for n, e in found["estimates"].items() if n != "judge_raw")
    codes = {(r["estimator"], r["code"]) for r in found["refusals"]}
    assert {
        ("post_stratified", "no_probability_sample"),
        ("inversion", "few_reference_labels"),
    } <= codes
    assert all(r["why"] and r["mend"] for r in found["refusals"])


def test_fewer_than_thirty_labels_give_no_headline(
    asr: Run, tmp_path: Path, filled: list[str]
) -> None:
    label(asr, tmp_path, filled, "Ann", n=29)
    found = data(asr("calibrate", "--json", code=1))
    assert found["headline"] is None
    few = [r for r in found["refusals"] if r["code"] == "few_labels"]
    assert {r["estimator"] for r in few} == {"post_stratified", "ppi_plus_plus", "bootstrap"}
    assert {r["why"] for r in few} == {"29 labels, fewer than 30"}
    reported = data(asr("report", "--json"))
    assert reported["calibrated"] is False
    assert reported["judged"]["corrected"]["value"] is None
    assert reported["asr"] == reported["judged"]["human_only"]
    assert "human labels only, not calibrated" in asr("report").stdout


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
        ("confidence", "4", "must be 1, 2 or 3"),
        ("confidence", "high", "must be 1, 2 or 3"),
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


def test_a_verdict_of_no_class_is_named_with_line_and_field(
    asr: Run, tmp_path: Path, filled: list[str]
) -> None:
    file = write_csv(tmp_path / "w.csv", "trace_id,outcome", "r000,complete", "r001,great")
    result = asr("verdicts", file, "--judge", "j2", code=2)
    assert f"{file}, line 3, field 'outcome': 'great' is none of" in result.stderr
    assert "j2" in asr("calibrate", "--judge", "j2", code=2).stderr


def test_verdicts_say_what_became_of_them(asr: Run, tmp_path: Path, filled: list[str]) -> None:
    file = write_csv(
        tmp_path / "w.csv", "trace_id,outcome", "r000,abandoned", "r001,abandoned", "zzz,complete"
    )
    done = data(asr("verdicts", file, "--judge", "j1", "--json"))
    assert done == {
        "stored": 0, "already_there": 1, "changed": ["r001"], "unknown_traces": ["zzz"],
    }  # fmt: skip


def test_reviewers_are_added_once(asr: Run, filled: list[str]) -> None:
    assert data(asr("reviewer", "Mara Lind", "--role", "lead", "--json")) == {
        "reviewer_id": "mara-lind", "name": "Mara Lind", "role": "lead",
    }  # fmt: skip
    assert "Mara Lind (lead) can label as 'mara-lind'" in asr("reviewer", "mara  lind").stdout
    for name in ("", "  ", "!!!", "x" * 81):
        asr("reviewer", name, code=2)


def test_somebody_gets_another_role_and_the_last_admin_keeps_it(
    asr: Run, filled: list[str]
) -> None:
    assert data(asr("reviewer", "Mara", "--role", "admin", "--json"))["role"] == "admin"
    assert data(asr("reviewer", "Mara", "--json"))["role"] == "admin"
    assert "only admin" in asr("reviewer", "Mara", "--role", "lead", code=1).stderr
    asr("reviewer", "Nia", "--role", "admin")
    assert data(asr("reviewer", "Mara", "--role", "lead", "--json"))["role"] == "lead"


def type_in(*lines: str, name: str = "Mara") -> Result:
    return CliRunner().invoke(main, ["passphrase", name], input="".join(f"{x}\n" for x in lines))


def test_a_passphrase_is_asked_for_and_not_shown(asr: Run, filled: list[str]) -> None:
    asr("reviewer", "Mara", "--role", "admin")
    done = type_in(GOOD, GOOD)
    assert done.exit_code == 0
    assert "Mara (admin) has a new passphrase" in done.output
    assert GOOD not in done.output
    with Store.open("asr.duckdb") as store:
        assert store.verify_sign_in("Mara", GOOD, "127.0.0.1")
    short = type_in("short", "short")
    assert (short.exit_code, "12 to 200 characters, got 5" in short.stderr) == (2, True)
    nobody = type_in(GOOD, GOOD, name="Zoe")
    assert (nobody.exit_code, "there is nobody called 'Zoe'" in nobody.stderr) == (2, True)


def test_a_passphrase_is_made_up_and_printed_once(asr: Run, filled: list[str]) -> None:
    asr("reviewer", "Mara", "--role", "admin")
    made = asr("passphrase", "Mara", "--generate").stdout.splitlines()[1]
    with Store.open("asr.duckdb") as store:
        assert store.verify_sign_in("Mara", made, "127.0.0.1")


def test_identities_are_shown_and_chosen(asr: Run, filled: list[str]) -> None:
    assert asr("identities").stdout == "passphrase\n"
    asr("identities", "open")
    assert asr("identities").stdout == "open\n"
    asr("reviewer", "Mara")
    assert "nobody is asked" in asr("passphrase", "Mara", "--generate").stdout
    assert "no admin has a passphrase" in asr("identities", "passphrase", code=2).stderr
    assert "1 of this store's people" in asr("identities", "open", code=2).stderr


@pytest.mark.parametrize("host", ["0.0.0.0", "::", "192.0.2.7", "my-machine"])
def test_other_machines_are_let_in_only_when_sign_in_is_configured(
    asr: Run, filled: list[str], host: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    for command in (["serve"], ["serve", "--store", "none.duckdb"], ["demo"]):
        said = asr(*command, "--host", host, code=2).stderr
        assert "lets other machines in, and sign-in is not configured: first `asr reviewer" in said
    assert not Path("asr-demo.duckdb").exists()
    asr("reviewer", "Mara", "--role", "admin")
    asr("passphrase", "Mara", "--generate")
    started: list[list[str]] = []
    monkeypatch.setattr("os.execv", lambda _program, words: started.append(words))
    monkeypatch.setattr("socket.socket.bind", lambda _socket, _address: None)
    asr("serve", "--host", host)
    assert f"--server.address={host}" in started[0]


# The demonstration


@pytest.fixture(scope="session")
def demo(tmp_path_factory: pytest.TempPathFactory) -> tuple[dict[str, Any], Path]:
    """Run the demonstration once, as a command of its own."""
    folder = tmp_path_factory.mktemp("demo")
    done = subprocess.run(
        [*ASR, "demo", "--no-serve", "--json", "--seed", "2", "--store", "demo.duckdb"],
        cwd=folder, capture_output=True, text=True, timeout=300, check=True,
    )  # fmt: skip
    assert done.stderr == ""
    return json.loads(done.stdout), folder / "demo.duckdb"


@pytest.mark.long
def test_the_demo_reports_beside_the_truth(demo: tuple[dict[str, Any], Path]) -> None:
    shown, _ = demo
    assert shown.keys() >= {"raw", "human_only", "corrected", "truth", "simulated"}
    assert shown["simulated"] is True
    assert 0 < shown["truth"] < 1
    for name in ("raw", "human_only", "corrected"):
        low, high = shown[name]["interval"]
        assert 0 <= low < shown[name]["value"] < high <= 1
    assert abs(shown["corrected"]["value"] - shown["truth"]) < 0.06


def test_the_demo_store_is_a_store_like_any_other(
    asr: Run, demo: tuple[dict[str, Any], Path]
) -> None:
    shown, path = demo
    reported = asr("report", "--store", path)
    assert reported.stdout.startswith("SIMULATED DATA")
    reference = data(asr("calibrate", "--store", path, "--design", "reference", "--json"))
    assert reference["headline"] == "inversion"
    assert reference["simulated"] is True
    assert reference["estimates"]["post_stratified"]["value"] is None
    low, high = reference["estimates"]["inversion"]["interval"]
    assert low < shown["truth"] < high
    assert asr("agreement", "--store", path).stdout.startswith("SIMULATED DATA")
    result = asr("demo", "--no-serve", "--store", path, code=1)
    assert "the demo needs an empty store" in result.stderr


def test_real_labels_are_not_mixed_into_the_demo(
    asr: Run, tmp_path: Path, demo: tuple[dict[str, Any], Path]
) -> None:
    _, path = demo
    asr("import", write_runs(tmp_path / "f.jsonl", 3), "--store", path, "--yes")
    asr("report", "--store", path)  # later traces are no part of the batch
    asr("sample", "--n", 30, "--seed", 1, "--store", path)
    result = asr("report", "--store", path, code=1)
    assert "keep the demo in a store of its own" in result.stderr


def test_a_demo_that_was_cut_off_is_not_served(asr: Run, tmp_path: Path) -> None:
    file = write(tmp_path / "f.jsonl", record("run-0001", simulated=True))
    asr("import", file, "--yes", "--store", "half.duckdb")
    with Store.open(tmp_path / "half.duckdb") as store, store._db.write() as cursor:
        cursor.execute("UPDATE trace SET task_key = 'demo/run-0001'")
    assert "was cut off" in asr("demo", "--store", "half.duckdb", code=1).stderr


# What is told when it cannot go on


COMMANDS = [
    ["sample", "--n", "1", "--seed", "1"],
    ["verdicts", "x.csv", "--judge", "j"],
    ["labels", "export"],
    ["labels", "import", "x.csv"],
    ["reviewer", "Ann"],
    ["agreement"],
    ["calibrate"],
    ["report"],
]


@pytest.mark.parametrize("command", COMMANDS, ids=" ".join)
def test_without_a_store_the_command_that_makes_one_is_named(
    asr: Run, tmp_path: Path, command: list[str]
) -> None:
    result = asr(*command, code=2)
    assert "`asr import FILES --store asr.duckdb` creates one" in result.stderr
    assert os.listdir(tmp_path) == []


def test_without_a_batch_the_command_that_draws_one_is_named(asr: Run, tmp_path: Path) -> None:
    asr("import", write_runs(tmp_path / "f.jsonl", 3), "--yes")
    for command in (["agreement"], ["calibrate"], ["report"], ["labels", "export"]):
        assert "`asr sample --n 40 --seed 1` draws one" in asr(*command, code=1).stderr
    asr("sample", "--n", 2, "--seed", 1)
    assert "has no labels yet" in asr("report", code=1).stderr
    assert "asr verdicts FILE --judge NAME" in asr("calibrate", code=1).stderr
    assert data(asr("agreement", "--json", code=1))["coefficients"]["krippendorff_alpha"][
        "status"
    ].startswith("not_estimable: ")


HOSTILE: list[tuple[list[str], int]] = [
    (["sample", "--n", "0", "--seed", "1"], 2),
    (["sample", "--n", "-1", "--seed", "1"], 2),
    (["sample", "--n", "1.5", "--seed", "1"], 2),
    (["sample", "--n", "1", "--seed", "-1"], 2),
    (["sample", "--n", "9" * 30, "--seed", "1"], 1),
    (["sample", "--n", "1", "--seed", "1", "--labels-wanted", "0"], 2),
    (["sample", "--n", "1", "--seed", "1", "--workflow", "x"], 2),
    (["report", "--batch", "x"], 2),
    (["report", "--judge", "x"], 2),
    (["report", "--seed", "-1"], 2),
    (["calibrate", "--batch", "x"], 2),
    (["calibrate", "--judge", "x"], 2),
    (["calibrate", "--design", "x"], 2),
    (["agreement", "--batch", "x"], 2),
    (["labels", "import", "none.csv"], 2),
    (["labels", "import", "."], 2),
    (["labels", "import", "empty"], 2),
    (["labels", "import", "binary"], 2),
    (["labels", "import", "line"], 2),
    (["verdicts", "none.csv", "--judge", "j"], 2),
    (["verdicts", ".", "--judge", "j"], 2),
    (["verdicts", "empty", "--judge", "j"], 2),
    (["verdicts", "binary", "--judge", "j"], 2),
    (["verdicts", "line", "--judge", "j"], 2),
    (["verdicts", "v.csv", "--judge", ""], 2),
    (["verdicts", "v.csv", "--judge", "source:x"], 2),
    (["import", "none.jsonl"], 2),
    (["import", "folder"], 2),
    (["import", "empty"], 2),
    (["import", "binary"], 2),
    (["import", "long"], 2),
    (["import", "x" * 300], 2),
    (["import", "f.jsonl", "--ceiling", "0"], 2),
    (["import", "f.jsonl", "--ceiling", "-1"], 2),
    (["import", "f.jsonl", "--ceiling", "nan"], 2),
    (["import", "f.jsonl", "--ceiling", "inf"], 2),
    (["import", "f.jsonl", "--workflow", ""], 2),
    (["import", "f.jsonl", "--unit", " "], 2),
    (["import", "f.jsonl", "--timezone", "Mars"], 2),
    (["import", "f.jsonl", "--timezone", ""], 2),
    (["import", "f.jsonl", "--timezone", "../../etc/passwd"], 2),
    (["import", "f.jsonl", "--mapping", "binary"], 2),
    (["import", "f.jsonl", "--mapping", "none.toml"], 2),
    (["import", "f.jsonl", "--taxonomy", "binary"], 2),
    (["import", "f.jsonl", "--taxonomy", "folder"], 2),
    (["import"], 2),
    (["serve", "--port", "0"], 2),
    (["serve", "--port", "99999"], 2),
    (["serve", "--host", "no such host"], 2),
    (["serve", "--host", "x" * 300], 2),
    (["demo", "--no-serve", "--seed", "-1"], 2),
    (["nonsense"], 2),
]


@pytest.fixture(scope="session")
def hostile_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Make a folder with a store of three labelled runs and with files that are none."""
    folder = tmp_path_factory.mktemp("hostile")
    (folder / "folder").mkdir()
    (folder / "empty").touch()
    (folder / "binary").write_bytes(bytes(range(256)) * 40)
    (folder / "long").write_text("x" * 21_000_000)
    (folder / "line").write_text("x" * 1_000_000)
    write_csv(folder / "v.csv", "trace_id,outcome", "r000,complete")
    write_csv(folder / "l.csv", "trace_id,reviewer,outcome", "r000,Ann,complete")
    write_runs(folder / "f.jsonl", 3)
    store = ["--store", str(folder / "asr.duckdb")]
    for command in (
        ["import", str(folder / "f.jsonl")],
        ["sample", "--n", "3", "--seed", "1"],
        ["verdicts", str(folder / "v.csv"), "--judge", "j"],
        ["labels", "import", str(folder / "l.csv")],
    ):
        result = CliRunner().invoke(main, [*command, *store])
        assert result.exit_code == 0, result.output
    return folder


@pytest.mark.parametrize(("command", "code"), HOSTILE, ids=lambda v: str(v)[:70])
def test_a_hostile_user_is_told_in_one_sentence(
    asr: Run, hostile_folder: Path, monkeypatch: pytest.MonkeyPatch, command: list[str], code: int
) -> None:
    monkeypatch.chdir(hostile_folder)
    asr(*command, code=code)


@pytest.mark.parametrize("kind", ["directory", "text", "empty parent", "file as parent"])
def test_a_store_path_that_is_no_store(asr: Run, tmp_path: Path, kind: str) -> None:
    file = write_runs(tmp_path / "f.jsonl", 1)
    paths = {
        "directory": tmp_path, "text": file, "empty parent": tmp_path / "a" / "b.duckdb",
        "file as parent": file / "x.duckdb",
    }  # fmt: skip
    store = ["--store", paths[kind]]
    if kind == "empty parent":
        asr("import", file, "--yes", *store)
        return
    before = file.read_bytes()
    for command in (["import", file], ["sample", "--n", 1, "--seed", 1], ["report"]):
        result = CliRunner().invoke(main, [str(a) for a in [*command, *store]])
        assert isinstance(result.exception, SystemExit), result.exception
        assert result.exit_code in (1, 2)
        assert result.stderr.count("\n") == 1
    assert file.read_bytes() == before


def test_what_may_not_be_read_or_written(asr: Run, tmp_path: Path) -> None:
    if os.geteuid() == 0:
        pytest.skip("root may read and write everything")
    file = write_runs(tmp_path / "f.jsonl", 1)
    file.chmod(0)
    asr("import", file, code=2)
    file.chmod(0o600)
    folder = tmp_path / "closed"
    folder.mkdir(mode=0o500)
    asr("import", file, "--store", folder / "s.duckdb", code=1)


def test_names_that_steer_a_terminal_are_shown_and_not_obeyed(asr: Run, tmp_path: Path) -> None:
    file = write(
        tmp_path / "f.jsonl", record("a", workflow="\x1b[2Jx"), record("b", prompt="\x1b[31mred")
    )
    shown = asr("import", file, "--yes").stdout
    assert "\x1b" not in shown
    error = asr("report", "--batch", "x\n\x1b[2Jy", code=2).stderr
    assert "\x1b" not in error


@pytest.mark.parametrize("option", ["-h", "--help"])
def test_every_command_is_documented_with_an_example(asr: Run, option: str) -> None:
    def walk(group: click.Group, names: list[str]) -> Iterator[list[str]]:
        for name, command in group.commands.items():
            if isinstance(command, click.Group):
                yield from walk(command, [*names, name])
            else:
                yield [*names, name]

    found = list(walk(main, []))
    assert len(found) >= 12
    for names in found:
        shown = asr(*names, option).stdout
        example = shown.split("Options:")[0]
        assert "asr " + " ".join(names) in example.split("\n", 1)[1], names
        # Gates, comparisons and some commands on the reference dataset look at files only.
        if names[0] in ("reference", "gate", "compare") and "--store" not in shown:
            continue
        assert "--store" in shown
        if names != ["demo"]:
            assert "ASR_STORE" in shown


# As a process of its own


def test_a_process_keeps_data_and_messages_apart_in_any_encoding(tmp_path: Path) -> None:
    write(tmp_path / "f.jsonl", record("é-1", cost_usd=-1), record("é-1", workflow=3.5))
    done = subprocess.run(
        [*ASR, "import", "f.jsonl", "--json"], cwd=tmp_path, capture_output=True, timeout=120,
        env=os.environ | {"PYTHONIOENCODING": "ascii"}, check=False,
    )  # fmt: skip
    assert done.returncode == 1, done.stderr
    assert [row["line"] for row in json.loads(done.stdout)["set_aside"]] == [1, 2]
    assert done.stderr == b"error: no trace could be read from these files\n"


def test_a_path_that_is_no_text_is_told_and_not_a_traceback(asr: Run, tmp_path: Path) -> None:
    name = os.fsdecode(b"caf\xe9.jsonl")
    try:
        write(tmp_path / name, record("a"), record("b", cost_usd=-1))
    except OSError:
        pytest.skip("this file system takes no such name")
    (aside,) = data(asr("import", name, "--json"))["set_aside"]
    assert aside["file"] == name
    assert "set aside: caf\\udce9.jsonl, line 2" in asr("import", name, "--yes").stdout
