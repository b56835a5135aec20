"""The way by the command line from the batch to the report."""

import csv
import io
from pathlib import Path

import pytest

from calibration.store import Store
from tests.cli_runs import Run, asr, data, filled, record, template, write, write_csv, write_runs

__all__ = ["asr", "filled", "template"]

pytestmark = pytest.mark.usefixtures("few_draws")


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
