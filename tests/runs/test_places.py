"""asr report and asr compare on PostgreSQL and Spark: the same report, and no password anywhere."""

import gc
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
from click.testing import CliRunner, Result

from calibration.cli import main
from calibration.errors import InputError
from calibration.runs import engines
from calibration.runs.sources import Files, PostgresTable, SparkFiles, place_of_settings
from tests.analyses.production_files import MIXED10, alike, runs, write
from tests.runs.conftest import NO_PSYCOPG
from tests.runs.test_engines import load

Run = Callable[..., Result]
SECRET = "hunter2!s"


@pytest.fixture
def asr(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Run:
    monkeypatch.chdir(tmp_path)
    for name in ("ASR_STORE", "ASR_POSTGRES", "PGPASSWORD", "PGSERVICE"):
        monkeypatch.delenv(name, raising=False)

    def run(*arguments: object, code: int = 0) -> Result:
        result = CliRunner().invoke(main, [str(a) for a in arguments])
        if result.exception is not None and not isinstance(result.exception, SystemExit):
            raise result.exception
        assert result.exit_code == code, result.output
        assert SECRET not in result.output
        assert SECRET not in result.stderr
        return result

    return run


@pytest.fixture
def psycopg() -> Any:
    return pytest.importorskip("psycopg", reason=NO_PSYCOPG)


@pytest.mark.parametrize(
    ("given", "says"),
    [
        (["--postgres", "service=x"], "--postgres needs --table"),
        (["--table", "runs"], "--table needs --postgres"),
        (["f.csv", "--spark", "x.parquet"], "one kind at a time"),
        (["--spark", "x.parquet", "--postgres", "service=x", "--table", "t"], "one kind at a time"),
        (["--table", "a", "--table", "b", "--postgres", "service=x"], "names one table"),
    ],
)
def test_what_cannot_be_asked(asr: Run, given: list[str], says: str) -> None:
    pytest.importorskip("psycopg", reason=NO_PSYCOPG)
    assert says in asr("report", *given, code=2).stderr


def test_an_address_in_the_environment_does_not_hide_the_files(
    asr: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = write(tmp_path / "f.csv", runs(MIXED10))
    monkeypatch.setenv("ASR_POSTGRES", "service=x")
    assert "49.0 % succeed" in asr("report", file).stdout
    assert "2 to 20 sets of runs are compared, got 1" in asr("compare", file, code=2).stderr


@pytest.mark.parametrize(
    ("given", "extra"),
    [
        (["--postgres", "service=x", "--table", "t"], "asr-calibration[postgres]"),
        (["--spark", "x.parquet"], "asr-calibration[spark]"),
    ],
)
def test_a_missing_extra_is_named(
    asr: Run, monkeypatch: pytest.MonkeyPatch, given: list[str], extra: str
) -> None:
    monkeypatch.setattr(engines, "find_spec", lambda name: None)
    assert f"pip install '{extra}'" in asr("report", *given, code=2).stderr


@pytest.mark.parametrize(
    "dsn",
    [
        f"postgresql://asr:{SECRET}@127.0.0.1:1/none",
        f"postgresql://asr:{SECRET.replace('!', '%21')}@127.0.0.1:1/none",
        f"host=127.0.0.1 port=1 user=asr password='{SECRET}'",
        f"host=127.0.0.1 pasword={SECRET}",
        f"postgresql://asr@127.0.0.1:1/none?pass={SECRET}",
        f"host=127.0.0.1 {SECRET}",
    ],
)
def test_no_error_repeats_a_password(asr: Run, psycopg: Any, dsn: str) -> None:
    said = asr("report", "--postgres", dsn, "--table", "runs", code=2).stderr
    assert "PostgreSQL" in said
    assert "%21" not in said


def test_settings_keep_no_password_and_lead_back(psycopg: Any) -> None:
    place = PostgresTable(f"postgresql://asr:{SECRET}@db.example:5433/x?sslmode=require", "a.runs")
    assert SECRET not in f"{place!r} {place.names} {place.settings()}"
    assert place.settings() == {
        "postgres": "host=db.example port=5433 dbname=x user=asr sslmode=require",
        "table": "a.runs",
    }
    again = place_of_settings(place.settings())
    assert again.names == place.names
    for other in (Files(("a.csv", "b.csv")), SparkFiles(("a.parquet",))):
        assert place_of_settings(other.settings()) == other
    with pytest.raises(InputError, match="nothing to read"):
        place_of_settings({})


def kept(result: Result) -> dict[str, Any]:
    """Return what must not depend on where the runs lie."""
    data: dict[str, Any] = json.loads(result.stdout)
    return {name: data[name] for name in ("asr", "fingerprint", "class_shares", "weekly", "n")}


@pytest.mark.long
def test_a_table_gives_the_report_of_the_file(asr: Run, postgres: str, tmp_path: Path) -> None:
    rows = runs(MIXED10, started_at="2026-10-05T10:00:00Z")
    file = write(tmp_path / "f.csv", rows)
    load(postgres, pd.DataFrame(rows), "few")
    dsn = postgres.replace("asr@", f"asr:{SECRET}@")
    result = asr("report", "--postgres", dsn, "--table", "public.few", "--json", "--html", "r.html")
    assert "is kept in the shell's history" in result.stderr
    assert SECRET not in (tmp_path / "r.html").read_text("utf-8")
    assert kept(result) == kept(asr("report", file, "--json"))
    (tmp_path / "r.json").write_text(result.stdout)
    assert "the same" in asr("verify", "r.json").stdout
    listed = asr("report", "--postgres", postgres, "--table", "few", "--work", "todo")
    assert "49.0 %" in listed.stdout
    assert (tmp_path / "todo" / "abandoned.csv").read_text("utf-8").count("\n") == 2
    (tmp_path / "g.toml").write_text("")
    few = ["--postgres", postgres, "--table", "few"]
    of_table, of_file = (
        json.loads(asr("gate", *runs_of, "--gates", "g.toml", "--json", code=1).stdout)
        for runs_of in (few, [file])
    )
    assert of_table["gates"] == of_file["gates"]


@pytest.mark.long
def test_two_tables_are_compared(asr: Run, postgres: str, monkeypatch: pytest.MonkeyPatch) -> None:
    for name, complete in (("before", 60), ("after", 90)):
        rows = alike("a", {"complete": complete, "abandoned": 100 - complete})
        load(postgres, pd.DataFrame(rows).astype({"cost_usd": float}), name)
    monkeypatch.setenv("ASR_POSTGRES", postgres)
    found = json.loads(asr("compare", "--table", "before", "--table", "after", "--json").stdout)
    assert found["difference"]["value_pp"] == pytest.approx(30.0)
    assert SECRET not in json.dumps(found)


@pytest.mark.long
def test_what_is_not_in_the_database(asr: Run, postgres: str) -> None:
    load(postgres, pd.DataFrame(runs(MIXED10)).rename(columns={"cost_usd": "price"}), "other")

    def said(*more: str) -> str:
        return asr("report", "--postgres", postgres, *more, code=2).stderr

    assert "there is no table 'nothing'" in said("--table", "nothing")
    assert "in the schema 'nowhere'" in said("--table", "nowhere.other")
    assert "no cost" in asr("report", "--postgres", postgres, "--table", "other", "--full").stdout
    assert "column 'cents'" in said("--table", "other", "--column", "cost_usd=cents")
    gone = postgres.replace("127.0.0.1:", "127.0.0.1:1")[:-10] + "/postgres"
    assert "PostgreSQL: " in asr("report", "--postgres", gone, "--table", "x", code=2).stderr


# pyspark leaves the sockets of its answers to the garbage collector.
@pytest.mark.filterwarnings("ignore::ResourceWarning")
@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
@pytest.mark.long
def test_spark_gives_the_report_of_the_file(asr: Run, spark: Any, tmp_path: Path) -> None:
    rows = runs(MIXED10, started_at="2026-10-05T10:00:00Z")
    file = write(tmp_path / "f.csv", rows)
    pd.DataFrame(rows).to_parquet(tmp_path / "part-1.parquet")
    ours = kept(asr("report", file, "--json"))
    assert kept(asr("report", "--spark", tmp_path / "part-*.parquet", "--json")) == ours
    assert kept(asr("report", "--spark", file, "--json")) == ours
    assert "Spark, " in asr("report", "--spark", tmp_path / "no.parquet", code=2).stderr
    same = ("--spark", file, "--spark", tmp_path / "part-1.parquet")
    found = json.loads(asr("compare", *same, "--json").stdout)
    assert found["difference"]["value_pp"] == 0.0
    gc.collect()
