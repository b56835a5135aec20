"""What every command prints and writes, held still; `make snapshots` writes it anew."""

import difflib
import hashlib
import json
import os
import re
import shlex
import shutil
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from importlib.metadata import version
from pathlib import Path
from typing import Any

import click
import pyarrow.parquet as pq
import pytest
from click.testing import CliRunner

from calibration.cli import main
from calibration.records import Verdict
from calibration.store import Store
from tests.stores import copy_store

HERE = Path(__file__).parent
KEPT = HERE / "snapshots" / "commands"
INPUTS = (HERE / "fixtures" / "snapshots", HERE / "fixtures" / "importers")
WRITE = os.environ.get("ASR_SNAPSHOTS") == "write"
SHOWN = 60  # lines of a difference
MANY, LARGE = 10, 150_000  # files, and bytes of one, of which only names and digests are kept
STORES = (".duckdb", ".wal", ".traces")

# Asked for by `asr passphrase`, twice; no other command reads what is typed.
TYPED = "a passphrase that is long enough\n" * 2


@dataclass(frozen=True)
class Case:
    """Command lines that run one after the other; the code is the last one's.

    Those that write into a store do so in a folder with a copy of it.
    """

    name: str
    lines: tuple[str, ...]
    code: int = 0
    copied: str | None = None


def reads(name: str, *lines: str, code: int = 0) -> Case:
    return Case(name, lines, code)


def writes(name: str, copied: str, *lines: str, code: int = 0) -> Case:
    return Case(name, lines, code, copied)


DEMO, TWO, OWN = "--store demo.duckdb", "--store two.duckdb", "--store own.duckdb"
GOOD = "gate-good.csv --gates gates-own.toml"
JUDGED = "--human human.csv --verdicts judged.csv --credit pass=1,fail=0"
SHARES = "--class-shares .3,.2,.2,.17,.13"
CASES = (
    # The rate of a store
    reads("report-demo-text", f"report {DEMO}"),
    reads("report-demo-json-html", f"report {DEMO} --json --html report.html"),
    reads("report-demo-window", f"report {DEMO} --from 2026-W30 --to 2026-W33"),
    reads(
        "report-demo-workflow-work",
        f"report {DEMO} --workflow research --work todo --compare-to none --markdown",
    ),
    reads("report-two-judge", f"report {TWO} --judge judge-2 --interval bca --pooled"),
    reads("report-two-unnamed", f"report {TWO}", code=2),
    reads("report-own-text", f"report {OWN} --judge judge-1 --work todo"),
    reads("report-own-json", f"report {OWN} --judge judge-2 --target complete=0.7 --json"),
    reads(
        "report-own-window-json",
        f"report {OWN} --judge judge-1 --from 2025-03-10 --to 2025-04-06 --workflow flights --json",
    ),
    reads("report-own-grades", f"report {OWN} --judge source: --timezone Europe/Berlin"),
    reads("report-own-no-judge", f"report {OWN} --judge nobody", code=2),
    reads("report-no-store", "report --store none.duckdb", code=2),
    reads("report-window-empty", f"report {DEMO} --from 2031-W01 --to 2031-W02", code=1),
    # The rate of files
    reads("report-file-full", "report full.csv --html page.html --json"),
    reads("report-file-text", "report runs.csv --stratify workflow --ceilings run-ceilings.csv"),
    reads(
        "report-file-markdown",
        "report runs.csv --from 2025-W12 --to 2025-W13 --markdown --pooled "
        "--target hallucinated=0.05",
    ),
    reads("report-file-compared", "report runs.csv --compare-to after.jsonl --interval bca"),
    reads(
        "report-file-any-workflow",
        "report runs.csv --any-workflow --taxonomy fork.toml --compare-to none --json",
    ),
    reads("report-weighted", "report weighted.parquet --html weighted.html --json"),
    reads(
        "report-file-columns",
        "report renamed.csv --column trace_id=id --column workflow=kind --column outcome=class "
        "--column cost_usd=price --ceiling invoices=0.9 --work todo",
    ),
    reads("report-file-strict-cost", "report runs.csv --strict-cost", code=1),
    reads("report-file-no-column", "report renamed.csv", code=2),
    reads("report-file-no-runs", "report runs.csv --from 2031-01-01", code=1),
    reads("report-file-over-itself", "report runs.csv --html runs.csv", code=2),
    # Two sets of runs
    reads("compare-text", "compare runs.csv after.jsonl"),
    reads("compare-json-html", "compare runs.csv after.jsonl --json --html compared.html"),
    reads("compare-markdown", "compare runs.csv weighted.parquet --markdown --unpaired"),
    reads(
        "compare-stricter",
        "compare after.jsonl gate-good.csv --separate-intervals --margin 2 --taxonomy-b fork.toml "
        "--interval bca",
    ),
    reads("compare-one-side", "compare runs.csv", code=2),
    reads("compare-nothing-left", "compare runs.csv after.jsonl --from 2031-01-01", code=1),
    # A report made again
    reads(
        "verify-file",
        "report weighted.parquet --resamples 100 --compare-to none --json > again.json",
        "verify again.json",
    ),
    reads(
        "verify-store",
        f"report {OWN} --judge judge-1 --resamples 100 --json > again.json",
        f"verify again.json --json {OWN}",
    ),
    reads("verify-nothing", "verify 1098f1357550", code=2),
    # Gates
    reads("gate-json", "gate gate-runs.csv --gates gates.toml --json", code=1),
    reads(
        "gate-passed-all-shapes",
        f"gate {GOOD} --junit gates.xml --summary summary.md --labels gate-labels.csv",
    ),
    reads(
        "gate-baseline",
        "gate gate-runs.csv --gates gates-own.toml --write-baseline main.json",
        f"gate {GOOD} --baseline main.json --json --junit gates.xml",
        "gate gate-runs.csv --gates gates.toml --baseline main.json",
        code=1,
    ),
    reads("gate-model", "gate after.jsonl --gates gates-own.toml --model maker/model-y", code=1),
    reads("gate-no-column", "gate renamed.csv --gates gates.toml", code=2),
    reads("gate-store-text", f"gate {DEMO} --gates gates-store.toml", code=1),
    reads(
        "gate-store-json",
        f"gate {OWN} --judge judge-1 --gates gates-store.toml --json --junit g.xml --summary s.md",
        code=1,
    ),
    reads("gate-broken-gates", "gate gate-runs.csv --gates gates-broken.toml", code=2),
    # A judge against humans
    reads("calibrate-demo-text", f"calibrate {DEMO}"),
    reads("calibrate-forms", f"calibrate {OWN} --judge judge-1 --markdown --html judge.html"),
    reads("calibrate-demo-json", f"calibrate {DEMO} --json"),
    reads("calibrate-demo-by-workflow", f"calibrate {DEMO} --by workflow --brief"),
    reads("calibrate-demo-by-week-json", f"calibrate {DEMO} --by week --brief --json"),
    reads(
        "calibrate-two-against",
        f"calibrate {TWO} --judge judge-2 --against demo-judge --by workflow",
    ),
    reads("calibrate-own-text", f"calibrate {OWN} --judge judge-1 --by agent --against judge-2"),
    reads(
        "calibrate-own-json",
        f"calibrate {OWN} --judge judge-1 --by model --against judge-3 --judge-family maker --json",
    ),
    reads(
        "calibrate-own-reference",
        f"calibrate {OWN} --judge judge-2 --design reference --confidence 0.9 --pseudo-count 1",
    ),
    reads("calibrate-own-grades", f"calibrate {OWN} --judge source: --brief"),
    reads("calibrate-own-unnamed", f"calibrate {OWN}", code=2),
    reads("calibrate-files-text", f"calibrate {JUDGED} --judge judge-1 --ceilings ceilings.csv"),
    reads(
        "calibrate-files-json",
        f"calibrate {JUDGED} --judge judge-2 --against judge-1 --by agent --ceiling .05 --json",
    ),
    reads(
        "calibrate-files-reference",
        f"calibrate {JUDGED} --judge judge-2 --design reference --against judged-before.csv "
        "--by model --judge-family maker --classes pass,fail --seed 4",
    ),
    reads(
        "calibrate-files-weighted",
        "calibrate --human human-weighted.csv --verdicts judged-before.csv --credit pass=1,fail=0 "
        "--by week --ceiling .04 --workflow refunds",
    ),
    reads("calibrate-files-unnamed", f"calibrate {JUDGED}", code=2),
    reads("calibrate-counts-text", "calibrate --counts tables-production.json"),
    reads("calibrate-counts-json", "calibrate --counts tables-production.json --json --seed 2"),
    reads("calibrate-counts-reference", "calibrate --counts tables-reference.json"),
    reads("calibrate-counts-refused", "calibrate --counts tables-one-class.json", code=1),
    reads("calibrate-mixed", "calibrate --counts tables-production.json --judge x", code=2),
    # Agreement
    reads("agreement-demo-text", f"agreement {DEMO}"),
    reads("agreement-demo-json", f"agreement {DEMO} --json"),
    reads(
        "agreement-own-slices",
        f"agreement {OWN} --by week --by reviewer --cluster task --interval bca --resamples 200",
    ),
    reads("agreement-own-json", f"agreement {OWN} --weights linear --interval gwet --json"),
    reads("agreement-long-text", "agreement ratings-long.csv --by week --by class --cluster ward"),
    reads(
        "agreement-long-json",
        "agreement ratings-long.csv --by week --classes no,maybe,yes --weights quadratic --json "
        "--interval percentile --resamples 200 --seed 2 --confidence .9",
    ),
    reads(
        "agreement-wide-matrix",
        "agreement ratings-wide.csv --format wide --classes no,maybe,yes --weights matrix.csv",
    ),
    reads("agreement-ours", "agreement ratings-ours.csv --weights krippendorff_ordinal"),
    reads("agreement-alone", "agreement ratings-alone.csv", code=1),
    reads("agreement-no-batch", f"agreement {DEMO} --batch none", code=2),
    # Plans
    reads("plan-demo-text", f"plan {DEMO} --n 200 --overlap .25 --judge demo-judge"),
    reads(
        "plan-demo-json",
        f"plan {DEMO} --half-width .03 --judge demo-judge --seconds-per-label 90 --hourly-rate 60 "
        "--json",
    ),
    reads("plan-own", f"plan {OWN} --half-width .08 --labels-wanted 1 --judge judge-2"),
    reads("plan-nothing-asked", f"plan {DEMO}", code=2),
    reads(
        "plan-agreement",
        f"plan-agreement --half-width .3 --alpha .7 {SHARES} --json",
        f"plan-agreement --half-width .3 --alpha .7 {SHARES} --coefficient gwet_ac --raters 3 "
        "--missing .1",
    ),
    reads("plan-agreement-one-class", "plan-agreement --half-width .3 --alpha .7", code=2),
    # Traces, labels and people of a store
    reads("traces-demo", f"traces {DEMO} --workflow research --class hallucinated"),
    reads(
        "traces-demo-json",
        f"traces {DEMO} --judge demo-judge --verdict abandoned --sort latency --descending --json",
    ),
    reads(
        "traces-own",
        f"traces {OWN} --tool lookup --tool-error --sort started",
        f"traces {OWN} --tag policy --status completed --model maker/model-x --tool-ok",
        f"traces {OWN} --task task-03 --json",
        f"traces {OWN} --text 'trip 14' --from 2025-03-03 --to 2025-03-31 --batch production-001",
        f"traces {OWN} --page 2",
    ),
    reads("traces-no-query", f"traces {DEMO} --query mine", code=2),
    reads("traces-both", f"traces {DEMO} --tool-ok --tool-error", code=2),
    reads("labels-export-demo", f"labels export {DEMO} --output labels.csv"),
    reads("labels-export-own", f"labels export {OWN}"),
    reads("labels-export-no-batch", f"labels export {DEMO} --batch none", code=2),
    reads(
        "labels-calibrated",
        f"labels calibrated {OWN} --judge judge-1 --out out.csv",
        f"labels calibrated {OWN} --judge judge-2 --out out.jsonl",
        f"labels calibrated {OWN} --judge judge-3 --out out.parquet",
    ),
    reads("labels-calibrated-name", f"labels calibrated {DEMO} --out labels.txt", code=2),
    reads("people", f"identities {DEMO}", f"certify list {DEMO}", f"certify list {DEMO} --json"),
    reads("taxonomy", f"taxonomy {DEMO}", f"taxonomy {OWN} --json"),
    # What is written into a store
    writes(
        "people-changed",
        "own",
        f'reviewer "Mara Lind" {OWN}',
        f'reviewer "Mara Lind" --role lead --json {OWN}',
        f'reviewer "Ada Root" --role admin {OWN}',
        f'passphrase "Ada Root" {OWN}',
        f"identities passphrase {OWN}",
        f"identities {OWN}",
        f"certify demand --form private {OWN}",
        f"certify demand --every-batch {OWN}",
        f"certify list {OWN}",
    ),
    writes("passphrase-nobody", "own", f"passphrase Nobody {OWN}", code=2),
    writes("reviewer-no-name", "own", f'reviewer " " {OWN}', code=2),
    writes(
        "sample",
        "own",
        f"sample --n 20 --seed 1 {OWN}",
        f"sample --n 30 --seed 2 --labels-wanted 2 --overlap .25 --by-workflow --json {OWN}",
        f"sample --n 40 --seed 3 --allocate neyman --judge judge-1 {OWN}",
        f"sample --n 40 --seed 4 --allocate proportional --judge judge-2 --json {OWN}",
        f"sample --n 10 --seed 5 --workflow hotels --certificate any {OWN}",
        f"labels export {OWN}",
        f"traces --batch production-004 --all {OWN}",
    ),
    writes("sample-too-many", "own", f"sample --n 9999 --seed 1 {OWN}", code=1),
    writes("sample-judge-alone", "own", f"sample --n 9 --seed 1 --judge judge-1 {OWN}", code=2),
    writes(
        "escalate-samples",
        "own",
        f"escalate --by samples --judge judge-1 --seed 1 --audit-half-width .1 {OWN}",
        f"labels import own-labels.csv --batch production-002 --json {OWN}",
        f"audit --batch production-002 {OWN}",
        f"audit --batch production-002 --json {OWN}",
    ),
    writes(
        "escalate-others",
        "own",
        f"escalate --by probability --judge judge-1 --seed 1 --most 20 --json {OWN}",
        f"escalate --by judges --judge judge-1 --seed 2 --most 20 --audit-half-width .1 {OWN}",
    ),
    writes("escalate-no-samples", "own", f"escalate --by samples --seed 1 {OWN}", code=2),
    reads("audit-no-batch", f"audit --batch none {OWN}", code=2),
    writes(
        "labels-and-verdicts-brought-in",
        "own",
        f"labels import own-labels.csv {OWN}",
        f"verdicts own-judge-2.csv --judge judge-2 {OWN}",
        f"verdicts own-judge-3.csv --judge judge-2 --json {OWN}",
        f"verdicts demo-judge-2.csv --judge other {OWN}",
        code=1,
    ),
    writes("labels-import-no-class", "own", f"labels import bad-labels.csv {OWN}", code=2),
    writes("labels-import-elsewhere", "own", f"labels import human.csv {OWN}", code=2),
    writes("verdicts-no-name", "own", f"verdicts own-judge-2.csv --judge source:x {OWN}", code=2),
    writes(
        "import-every-format",
        "",
        "import lamp-1-retail.json tau2.json tau2_run --yes",
        "import records.jsonl records.csv --timezone Europe/Berlin --json",
        "import transcripts.jsonl --workflow refunds --ceiling .3 --unit refund --yes",
        "import traces.jsonl --mapping mapping.toml --json",
        "import traces.jsonl",
        "import changed-traces.jsonl --yes",
        "import changed-traces.jsonl --take-changed --json",
        "import broken-traces.jsonl --yes",
        "traces --all",
        "traces --all --json --sort workflow",
        "sample --n 5 --seed 1 --json",
    ),
    writes(
        "import-nothing-readable",
        "",
        "import only-broken.jsonl --json --taxonomy fork.toml",
        code=1,
    ),
    writes("import-no-format", "", "import gates-own.toml", code=2),
    writes("taxonomy-forked", "own", f"taxonomy fork.toml {OWN}", f"taxonomy {OWN} --json"),
    writes("taxonomy-broken", "", "taxonomy broken.toml", code=2),
    reads("demo-filled", f"demo --no-serve {DEMO}", code=1),
    writes("demo-seed", "", "demo --no-serve --seed -1", code=2),
    reads("serve-host", f"serve {DEMO} --host 0.0.0.0", code=2),
    # The reference dataset
    reads("reference-stats", "reference stats"),
    reads("reference-stats-json", "reference stats --json"),
    reads(
        "reference-show",
        "reference show research-001",
        "reference show research-002 --no-label",
        "reference checksums",
        "reference validate",
    ),
    reads("reference-show-nothing", "reference show research-999", code=2),
    writes(
        "reference-own",
        "own",
        "reference export mine",
        "reference validate --set mine --own --json",
        f"reference add mine --name ours {OWN}",
        f'reference override research-003 partial_minus --reason "Not for us." {OWN}',
        f"reference show research-003 {OWN}",
        f"reference practise {OWN}",
        f"reference practise --form ours/practice --json {OWN}",
        f"reference stats {OWN}",
    ),
    writes("reference-export-twice", "", "reference export tau2_run", code=1),
    writes("reference-override-class", "own",
           f"reference override research-003 great --reason x {OWN}", code=2),
    reads("reference-validate-nothing", "reference validate --set tau2_run", code=2),
    reads("usage", "--version", "report --seed x", code=2),
)  # fmt: skip


@pytest.fixture(autouse=True)
def _same_everywhere(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in list(os.environ):
        if name.startswith("ASR_") or name in ("TERM", "NO_COLOR", "FORCE_COLOR"):
            monkeypatch.delenv(name)
    monkeypatch.setenv("COLUMNS", "80")


def asr(line: str) -> Any:
    """Run a command line in this process; what follows `>` gets the output."""
    words, _, target = line.partition(" > ")
    done = CliRunner().invoke(main, shlex.split(words), input=TYPED, prog_name="asr")
    if done.exception is not None and not isinstance(done.exception, SystemExit):
        raise done.exception
    if target:
        Path(target).write_text(done.stdout, encoding="utf-8")
    return done


def filled(folder: Path) -> Path:
    """Copy the inputs into a folder."""
    for inputs in INPUTS:
        shutil.copytree(inputs, folder, dirs_exist_ok=True)
    return folder


@pytest.fixture(scope="session")
def prepared(tmp_path_factory: pytest.TempPathFactory, built_demo: Path) -> Path:
    """Return a folder with all inputs, the demo, the demo with a second judge, and a real store."""
    folder = filled(tmp_path_factory.mktemp("snapshots"))
    copy_store(built_demo, folder / "demo.duckdb")
    copy_store(built_demo, folder / "two.duckdb")
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        for line in (
            f"import traces.jsonl --ceiling .3 --unit trip --yes {OWN}",
            f"sample --n 110 --seed 3 {OWN}",
            f"labels import own-labels.csv {OWN}",
            *(f"verdicts own-judge-{k}.csv --judge judge-{k} {OWN}" for k in (1, 2, 3)),
        ):
            done = asr(line)
            assert done.exit_code == 0, done.output
    # Brought in by `asr verdicts` they would be real ones, which never meet simulated labels.
    _, *rows = (folder / "demo-judge-2.csv").read_text(encoding="utf-8").splitlines()
    said = [row.split(",") for row in rows]
    with Store.open(folder / "two.duckdb") as store:
        store.add_verdicts(
            [
                Verdict(judge_id="judge-2", trace_id=name, outcome=outcome, simulated=True)
                for name, outcome in said
            ]
        )
    return folder


def contents(folder: Path) -> dict[str, tuple[int, int]]:
    """Return size and time of every file."""
    found = {}
    for file in sorted(folder.rglob("*")):
        if file.is_file():
            about = file.stat()
            found[file.relative_to(folder).as_posix()] = about.st_size, about.st_mtime_ns
    return found


def is_of_store(name: str) -> bool:
    return any(part.endswith(STORES) for part in name.split("/"))


def written(folder: Path, before: dict[str, tuple[int, int]]) -> list[Path]:
    """Return the files that are new or changed, those of stores left out."""
    now = contents(folder)
    return [folder / n for n in now if now[n] != before.get(n) and not is_of_store(n)]


def rounded(value: Any) -> Any:
    """Return JSON with floats of 12 digits: the last bits depend on the order of sums."""
    if isinstance(value, float):
        return float(f"{value:.12g}")
    if isinstance(value, list):
        return [rounded(item) for item in value]
    if isinstance(value, dict):
        return {name: rounded(item) for name, item in value.items()}
    return value


LONG = re.compile(r"(?<![\w.])\d+\.\d+(?:e[-+]?\d+)?(?![\w.])")


def short(found: re.Match[str]) -> str:
    digits = found[0].split("e")[0].replace(".", "").lstrip("0")
    return f"{float(found[0]):.12g}" if len(digits) > 12 else found[0]


def steady(text: str) -> str:
    """Round what is JSON in the layout of the commands, else the long numbers of a text."""
    try:
        value = json.loads(text)
    except ValueError:
        return LONG.sub(short, text)
    for indent in (2, 1, None):
        if text.rstrip("\n") == json.dumps(value, indent=indent, ensure_ascii=False):
            shown = json.dumps(rounded(value), indent=1, ensure_ascii=False)
            return shown + text[len(text.rstrip("\n")) :]
    return LONG.sub(short, text)


def lasting(text: str, folder: Path, *, weeks: bool) -> str:
    """Return a text without what is another one in each run: folder, version, time and ids.

    Only agreement has the weeks in which labels were made; elsewhere a week is one of the runs.
    """
    text = text.replace(str(folder), "<folder>")
    number = re.escape(version("asr-calibration"))
    text = re.sub(rf"(?<![\d.]){number}(?![\d.])", "<version>", text)
    now = datetime.now(UTC)
    for day in (now, now - timedelta(days=1)):
        text = re.sub(rf"{day:%Y-%m-%d}[T ]\d\d:\d\d[:.\d]*(?:Z|\+00:00)?", "<now>", text)
        if weeks:
            text = text.replace(f"{day:%G-W%V}", "<week>")
    ids = r"\b[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}\b"
    return re.sub(ids, "<id>", text)


def shown_file(file: Path, folder: Path, *, in_full: bool) -> str:
    name = file.relative_to(folder).as_posix()
    content = file.read_bytes()
    if not in_full:
        return f"file {name} {hashlib.sha256(content).hexdigest()}\n"
    if file.suffix == ".parquet":
        rows = pq.read_table(file).to_pylist()
        text = "".join(f"{json.dumps(rounded(row), default=str)}\n" for row in rows)
    else:
        # As it is in the file, with its ends of lines.
        text = steady(content.decode("utf-8")).replace("\r\n", "\\r\n")
    return f"--- file {name}\n{lasting(text, folder, weeks=False)}"


def outcome(line: str, folder: Path) -> tuple[str, int]:
    """Run one line and return all it printed and wrote, and its code."""
    before = contents(folder)
    done = asr(line)
    parts = [f"$ asr {line}\nexit {done.exit_code}\n"]
    kept_for_next = " > " in line
    for title, text in (("stdout", done.stdout), ("stderr", done.stderr)):
        if text and not (kept_for_next and title == "stdout"):
            shown = lasting(steady(text), folder, weeks=line.startswith("agreement"))
            parts.append(f"--- {title}\n{shown}")
    files = [file for file in written(folder, before) if not kept_for_next]
    few = len(files) <= MANY
    parts += [
        shown_file(file, folder, in_full=few and file.stat().st_size <= LARGE) for file in files
    ]
    return "".join(p if p.endswith("\n") else f"{p}\n" for p in parts), done.exit_code


def run_of(case: Case, folder: Path) -> tuple[str, int]:
    texts, code = [], 0
    for line in case.lines:
        text, code = outcome(line, folder)
        texts.append(text)
    return "\n".join(texts), code


@pytest.fixture
def taken(
    request: pytest.FixtureRequest, prepared: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> tuple[Case, str, int]:
    """Run a case where its stores are; a folder that others read is left as it was."""
    case: Case = request.param
    if case.copied is None:
        monkeypatch.chdir(prepared)
        before = contents(prepared)
        text, code = run_of(case, prepared)
        for file in written(prepared, before):
            file.unlink()
        for folder in sorted((f for f in prepared.rglob("*") if f.is_dir()), reverse=True):
            if not any(folder.iterdir()) and not is_of_store(folder.name):
                folder.rmdir()
        assert contents(prepared) == before, "changed what it may only read"
    else:
        monkeypatch.chdir(filled(tmp_path))
        if case.copied:
            copy_store(prepared / f"{case.copied}.duckdb", tmp_path / f"{case.copied}.duckdb")
        text, code = run_of(case, tmp_path)
    return case, text, code


NUMBER = re.compile(r"-?\d+\.?\d*(?:e[-+]?\d+)?")


def alike(line: str, other: str) -> bool:
    """Return whether two lines differ in the last digits of long numbers only."""
    if line == other:
        return True
    if NUMBER.sub("#", line) != NUMBER.sub("#", other):
        return False
    for one, two in zip(NUMBER.findall(line), NUMBER.findall(other), strict=True):
        if one == two:
            continue
        digits = max(len(re.sub(r"e.*|\D", "", number).lstrip("0")) for number in (one, two))
        near = abs(float(one) - float(two)) <= 1e-10 * abs(float(one)) + 1e-15
        if digits < 11 or not near:
            return False
    return True


def differences(kept: str, now: str, name: str) -> list[str]:
    """Return the start of a unified diff; lines alike count as the same."""
    old, new = kept.splitlines(), now.splitlines()
    if len(old) == len(new):
        new = [o if alike(o, n) else n for o, n in zip(old, new, strict=True)]
    diff = list(difflib.unified_diff(old, new, f"kept {name}", "now", lineterm="", n=2))
    rest = [f"... and {len(diff) - SHOWN} lines more"] if len(diff) > SHOWN else []
    return [line[:400] for line in diff[:SHOWN]] + rest


def hold(name: str, now: str) -> None:
    """Compare with what is kept, or keep it where that is asked for."""
    file = KEPT / f"{name}.txt"
    if WRITE:
        file.parent.mkdir(exist_ok=True)
        file.write_text(now, encoding="utf-8", newline="")
        return
    if not file.exists():
        pytest.fail(f"{file.name} is missing; `make snapshots` writes it", pytrace=False)
    with file.open(encoding="utf-8", newline="") as handle:
        diff = differences(handle.read(), now, file.name)
    if diff:
        pytest.fail("\n".join(diff), pytrace=False)


@pytest.mark.parametrize("taken", CASES, ids=lambda case: case.name, indirect=True)
def test_a_command_says_what_it_said(taken: tuple[Case, str, int]) -> None:
    case, text, code = taken
    hold(case.name, text)
    assert code == case.code, text[-2000:]


def helps(command: click.Command, names: list[str], parent: click.Context | None) -> Iterator[str]:
    context = click.Context(command, parent=parent, info_name=names[-1])
    yield f"$ {' '.join(names)} --help"
    yield asr(shlex.join([*names[1:], "--help"])).stdout
    if isinstance(command, click.Group):
        for name in command.list_commands(context):
            inner = command.get_command(context, name)
            assert inner is not None
            yield from helps(inner, [*names, name], context)


def test_every_help_says_what_it_said() -> None:
    hold("help", "\n".join(helps(main, ["asr"], None)))


def test_every_snapshot_is_of_a_case() -> None:
    names = {case.name for case in CASES} | {"help"}
    assert len(names) == len(CASES) + 1
    found = {file.name for file in KEPT.iterdir()}
    extra = found - {f"{name}.txt" for name in names}
    if WRITE:
        for name in extra:
            (KEPT / name).unlink()
    else:
        assert not extra, "`make snapshots` removes what no case is kept in"
