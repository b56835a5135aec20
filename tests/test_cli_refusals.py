"""What the command line says when it cannot go on, and that it says it in one sentence."""

import json
import os
import shlex
import subprocess
from collections.abc import Iterator
from pathlib import Path

import click
import pytest
from click.testing import CliRunner

from calibration.cli import main
from calibration.cli.terminal import FiniteRange
from tests.analyses.production_files import MIXED10, runs
from tests.analyses.production_files import write as write_table
from tests.cli_runs import (
    ASR,
    Run,
    content,
    counted,
    data,
    record,
    run,
    write,
    write_csv,
    write_labelled,
    write_runs,
)

pytestmark = pytest.mark.usefixtures("few_draws")
OF_FILES = ("look", "reference", "gate", "compare", "trials", "tools", "reliability")
ALSO = (["plan", "trials"], ["taxonomy", "fit-credit"])
COMMANDS = [
    "sample --n 1 --seed 1", "verdicts import x.csv --judge j", "export labels",
    "labels import x.csv", "people add Ann", "agreement", "calibrate", "report",
]  # fmt: skip


@pytest.mark.parametrize("line", COMMANDS)
def test_without_a_store_the_command_that_makes_one_is_named(
    asr: Run, tmp_path: Path, line: str
) -> None:
    result = asr(*line.split(), code=2)
    assert "`asr import FILES --store asr.duckdb` creates one" in result.stderr
    assert os.listdir(tmp_path) == []


def test_without_a_batch_the_command_that_draws_one_is_named(asr: Run, tmp_path: Path) -> None:
    asr("import", write_runs(tmp_path / "f.jsonl", 3), "--yes")
    for command in (["agreement"], ["calibrate"], ["report"], ["export", "labels"]):
        assert "`asr sample --n 40 --seed 1` draws one" in asr(*command, code=1).stderr
    asr("sample", "--n", 2, "--seed", 1)
    assert "has no labels yet" in asr("report", code=1).stderr
    assert "asr verdicts import FILE --judge NAME" in asr("calibrate", code=1).stderr
    assert data(asr("agreement", "--json", code=1))["coefficients"]["krippendorff_alpha"][
        "status"
    ].startswith("not_estimable: ")


# What no snapshot shows: a command, and its options | part of the sentence | code, 2 without one.
REFUSED = {
    "sample": """
        --n 0 --seed 1
        --n 999999999999999999999999999999 --seed 1 |  | 1
    """,
    "report": """
        --batch x
        none.csv
        empty.csv
        a.txt
        bad-class.csv | --map done=CLASS reads them
        --ceiling hotels=1 | --ceiling is for files
        --taxonomy fork.toml | --taxonomy is for files
        --compare-to other.csv | a store compares with its own past
        --workflow trains | no trace has the workflow 'trains'
        --memory 4GB | --memory is for files
    """,
    "calibrate": """
        --batch x
        --judge x
        --human h.csv | needed together
        --ceiling 1 | not for the store
        --counts none.json | cannot be read
        --counts binary | is not UTF-8
    """,
    "labels": """
        import none.csv
        import line
    """,
    "verdicts import": """
        . --judge j
        v.csv --judge ''
    """,
    "import": """
        none.jsonl
        folder
        long
        LONG
        --yes
    """,
    "import f.jsonl": """
        --ceiling nan
        --unit ' '
        --timezone Mars
        --mapping none.toml
        --taxonomy binary
    """,
    "gate --gates empty": """
        --from 2026-11-02 | --from is for files; name one
        --baseline b.json | --baseline is for files; name one
        --batch none | no batch 'none'
    """,
    "serve": """
        --port 0
        --host 'no such host'
        --host LONG
    """,
    "nonsense": """
        at all
    """,
    "plan agreement": """
        --alpha .7 --class-shares .3,.2,.2,.17,.13 | Missing option '--half-width'
        --half-width .0005 --alpha .5 --class-shares .5,.5 --json | no number of traces can be | 1
        --half-width nan --alpha .7 --class-shares .3,.2,.2,.17,.13 | half_width must be in (0, 1)
    """,
    "plan agreement --half-width .3 --alpha .7": """
        --class-shares .5,.5 --batch x | --class-shares and --batch
        --class-shares .5,.5 --coefficient x | Invalid value for '--coefficient'
        --class-shares '' | must be numbers separated by commas
        --class-shares 30,70 | must sum to 1
        --batch x | no batch 'x'
    """,
    "traces": """
        tool:pay class:perfect | class:perfect at character 10: it is one of complete,
        verdict:complete | verdict: needs the judge as well
        --saved none tool:pay | --saved goes without a search
        colour:red | colour: at character 1 is not a key; keys are workflow, task, status,
    """,
    "report mixed.csv": """
        --column x
        --ceiling research=nan
        --target great=0.5
        --resamples 1
        --compare-to missing.csv
        --workflow research | is for the store
        --memory lots | --memory: must be a size of 64MB or more such as 512MB or 4GB
    """,
    "compare": """
        mixed.csv none.csv
    """,
    "calibrate --human h.csv --verdicts judged.csv --credit a=1,b=.4": """
        --credit a | must be CLASS=NUMBER from 0 to 1
        --credit a=nan,b=0 | must be CLASS=NUMBER from 0 to 1
        --credit a=1,a=0 | names 'a' twice
        --ceiling nan | must be a number
        --pseudo-count -1 | not in the range
        --design x | is not one of
        --workflow x | --workflow is the workflow that --ceiling is for
        --verdicts judges.csv --judge v9 | no judge 'v9'; there are v1, v2
        --verdicts judges.csv --judge v2 --against v2 | must differ
        --batch x | --batch is for the store, not for files
        --verdicts none.csv | cannot be read
    """,
    "calibrate --counts tables.json": """
        --human h.csv | not for --counts
        --by workflow | not for --counts
    """,
}  # fmt: skip


def refused() -> list[tuple[str, int, str]]:
    cases = []
    for command, block in REFUSED.items():
        for line in block.strip().splitlines():
            options, says, code = [*(part.strip() for part in line.split("|")), "", ""][:3]
            cases.append((f"{command} {options.replace('LONG', 'x' * 300)}", int(code or 2), says))
    return cases


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
    write_csv(folder / "ceilings.csv", "workflow,ceiling_usd", "a,1")
    write_runs(folder / "f.jsonl", 3)
    store = ["--store", str(folder / "asr.duckdb")]
    for command in (
        ["import", str(folder / "f.jsonl")],
        ["sample", "--n", "3", "--seed", "1"],
        ["verdicts", "import", str(folder / "v.csv"), "--judge", "j"],
        ["labels", "import", str(folder / "l.csv")],
    ):
        run(*command, *store)
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        write_labelled("judged.csv")
        judges = [f"t{k},a,{judge}" for judge in ("v1", "v2") for k in range(60)]
        write_csv("judges.csv", "trace_id,outcome,judge", *judges)
        counted(content())
    write_table(folder / "mixed.csv", runs(MIXED10))
    write_table(folder / "bad-class.csv", runs([("done", 1.0)]))
    (folder / "empty.csv").touch()
    return folder


@pytest.mark.parametrize(("line", "code", "says"), refused(), ids=lambda value: str(value)[:70])
def test_a_hostile_user_is_told_in_one_sentence(
    asr: Run, hostile_folder: Path, monkeypatch: pytest.MonkeyPatch, line: str, code: int, says: str
) -> None:
    monkeypatch.chdir(hostile_folder)
    told = asr(*shlex.split(line), code=code).stderr
    assert told
    assert says in told


# A command with its source, and the options that are for another one, some with their default.
UNUSED = {
    "report mixed.csv": "--store x | --batch b | --judge j | --design production | --workflow w | "
    "--as-given | --estimand process",
    "report": "--column outcome=o | --only-known-workflows | --taxonomy f.toml | "
    "--ceiling a=1 | --ceilings ceilings.csv | --credit complete=1 | --stratify workflow | --force",
    "gate mixed.csv --gates empty": "--store x | --batch b | --judge j | --as-given",
    "gate --gates empty": "--column outcome=o | --only-known-workflows | --taxonomy f.toml | "
    "--memory 1GB | --timezone UTC | --interval percentile | --strict-cost | --to 2026-W40 | "
    "--model m | --labels l.csv | --write-baseline b.json",
    "agreement v.csv": "--store x | --batch b",
    "agreement": "--raters a,b | --column item=i | --map a=b | --where a=b | "
    "--classes a,b",
    "calibrate --counts tables.json": "--store x | --batch b | --judge j | --human h.csv | "
    "--table t.csv | --design production | --by workflow | --against j | --judge-family m | "
    "--map a=b | --column outcome=o | --unjudged outside",
    "calibrate --human h.csv --verdicts judged.csv": "--store x | --batch b",
    "calibrate --table judged.csv": "--store x | --batch b | --human h.csv | --verdicts v.csv",
    "calibrate": "--classes a,b | --credit a=1 | --map a=b | --rest no_verdict | --merge a+b=c | "
    "--ceilings c.csv | --ceiling 1 | --column outcome=o | --raters a | --workflow w | "
    "--unjudged outside | --overlap random",
    "tools mixed.csv": "--store x",
    "tools": "--answer-threshold 0.7 | --tool-threshold 1 | --require-tools | --forbidden t | "
    "--required t | --before a,b | --k 3 | --seed 0",
    "grade f.jsonl": "--store x",
    "reliability v.csv": "--store x | --model m | --agent-version v",
    "layers v.csv": "--store x",
    "layers": "--layer gate",
    "tasks audit v.csv": "--store x | --judge j",
    "tasks audit": "--column outcome=o",
    "taxonomy suggest mixed.csv": "--store x | --batch b",
    "taxonomy suggest": "--taxonomy f.toml | --from 2026-W40 | --timezone UTC | --seed 0 | "
    "--resamples 1000 | --credit complete=1 | --column outcome=o",
    "plan agreement --half-width .3 --alpha .7 --class-shares .5,.5": "--store x",
    "plan trials --half-width .1": "--model m | --agent-version v | --column outcome=o",
    "compare a.csv b.csv c.csv": "--margin 5 | --separate-intervals | --taxonomy-b f.toml",
    "sample --n 2": "--week 2026-W40 | --by Ann | --judge j | --basis b",
    "sample --audit-agreed 2": "--workflow w | --overlap 1 | --by-workflow | --certificate any | "
    "--labels-wanted 2 | --allocate neyman",
}  # fmt: skip


@pytest.mark.parametrize(
    ("command", "option"),
    [(command, option.strip()) for command, line in UNUSED.items() for option in line.split("|")],
)
def test_an_option_that_the_source_does_not_use_is_refused_by_name(
    asr: Run, hostile_folder: Path, monkeypatch: pytest.MonkeyPatch, command: str, option: str
) -> None:
    monkeypatch.chdir(hostile_folder)
    stderr = asr(*shlex.split(command), *shlex.split(option), code=2).stderr
    assert stderr.startswith(f"error: {option.split()[0]} is for "), stderr


def test_what_the_environment_names_goes_for_all_commands(
    asr: Run, hostile_folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(hostile_folder)
    everywhere = {"ASR_STORE": "asr.duckdb", "ASR_MEMORY": "1GB"}
    assert asr("report", "mixed.csv", env=everywhere).stdout
    assert "no rate can be given" in asr("report", env=everywhere, code=1).stderr


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
        # Some commands look at files only.
        if (names[0] in OF_FILES or names in ALSO) and "--store" not in shown:
            continue
        assert "--store" in shown
        if names != ["demo"]:
            assert "ASR_STORE" in shown


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
    assert "skipped: caf\\udce9.jsonl, line 2" in asr("import", name, "--yes").stdout


def floats(command: click.Command, words: tuple[str, ...] = ()) -> Iterator[tuple[str, str]]:
    """Yield every option for a number, by the words of its command."""
    if isinstance(command, click.Group):
        for name in command.list_commands(click.Context(command)):
            found = command.get_command(click.Context(command), name)
            assert found is not None
            yield from floats(found, (*words, name))
        return
    for parameter in command.params:
        if isinstance(parameter.type, click.FloatRange):
            assert isinstance(parameter.type, FiniteRange), (words, parameter.name)
            yield " ".join(words), parameter.opts[0]


def test_no_range_of_numbers_lets_nan_through(asr: Run) -> None:
    known = set(floats(main))
    assert len(known) > 15
    assert ("judge run", "--cap-usd") in known
    for value in ("nan", "inf"):
        told = asr("agreement", "x.csv", "--confidence", value, code=2).stderr
        assert "must be a number" in told or "is not in the range" in told
