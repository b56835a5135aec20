"""What the command line says when it cannot go on, and that it says it in one sentence."""

import json
import os
import subprocess
from collections.abc import Iterator
from pathlib import Path

import click
import pytest
from click.testing import CliRunner

from calibration.cli import main
from tests.cli_runs import ASR, Run, asr, data, record, write, write_csv, write_runs

__all__ = ["asr"]


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
