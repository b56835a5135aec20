"""What every command prints and writes, held still; `make snapshots` writes it anew."""

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
from tests.snapshot_files import SNAPSHOTS, hold, hold_names
from tests.stores import copy_store

HERE = Path(__file__).parent
KEPT = SNAPSHOTS / "commands"
INPUTS = (HERE / "fixtures" / "snapshots", HERE / "fixtures" / "importers")
MANY, LARGE = 10, 150_000  # files, and bytes of one, of which only names and digests are kept
STORES = (".duckdb", ".wal", ".traces")

# Asked for by `asr people passphrase`, twice; no other command reads what is typed.
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


# Name, code if it is another than 0, and command; or the commands below it, which run one after
# the other and of which the last has the code. Words with @ are written out.
WORDS = {
    "@demo": "--store demo.duckdb", "@two": "--store two.duckdb", "@own": "--store own.duckdb",
    "@good": "gate-good.csv --gates gates-own.toml", "@shares": "--class-shares .3,.2,.2,.17,.13",
    "@judged": "--human human.csv --verdicts judged.csv --credit pass=1,fail=0",
}  # fmt: skip
READS = """
# The rate of a store
report-demo-text: report @demo --full
report-demo-json-html: report @demo --json --html report.html
report-demo-window: report @demo --from 2026-W30 --to 2026-W33
report-demo-workflow-work: report @demo --workflow research --work todo --compare-to none --markdown
report-two-judge: report @two --judge judge-2 --interval bca --pooled
report-two-unnamed =2: report @two
report-own-text: report @own --judge judge-1 --work todo --full
report-own-json: report @own --judge judge-2 --target complete=0.7 --json
report-own-window-json: report @own --judge judge-1 --from 2025-03-10 --to 2025-04-06 --workflow \
flights --json
report-own-grades: report @own --judge source: --timezone Europe/Berlin
report-own-no-judge =2: report @own --judge nobody
report-no-store =2: report --store none.duckdb
report-window-empty =1: report @demo --from 2031-W01 --to 2031-W02
# The rate of files
report-file-full: report full.csv --html page.html --json
report-file-text: report runs.csv --stratify workflow --ceilings run-ceilings.csv --full
report-file-markdown: report runs.csv --max-left-out .05 --from 2025-W12 --to 2025-W13 --markdown \
--pooled --target hallucinated=0.05
report-file-compared: report runs.csv --compare-to after.jsonl --interval bca
report-file-any-workflow: report runs.csv --taxonomy fork.toml --compare-to none \
--json
report-weighted: report weighted.parquet --html weighted.html --json
report-file-columns: report renamed.csv --column trace_id=id --column workflow=kind --column \
outcome=class --column cost_usd=price --ceiling invoices=0.9 --work todo
report-file-strict-cost =1: report runs.csv --strict-cost
report-file-no-column =2: report renamed.csv
report-file-no-runs =1: report runs.csv --from 2031-01-01
report-file-over-itself =2: report runs.csv --html runs.csv
# Two sets of runs
compare-text: compare runs.csv after.jsonl --full
compare-json-html: compare runs.csv after.jsonl --json --html compared.html
compare-markdown: compare runs.csv weighted.parquet --markdown --unpaired
compare-stricter: compare after.jsonl gate-good.csv --separate-intervals --margin 2 --taxonomy-b \
fork.toml --interval bca
compare-one-side =2: compare runs.csv
compare-several-json: compare runs.csv after.jsonl gate-good.csv --baseline after --json
compare-nothing-left =1: compare runs.csv after.jsonl --from 2031-01-01
# Failures by layer
layers-own-json: layers @own --json
# Repeated trials
trials-text: trials trials.csv --tasks tasks.csv --model maker/model-x --full --baseline \
trials-before.csv --max-left-out .05
trials-short-html: trials trials-before.csv -k 1,2,4,8 --tasks tasks.csv --html trials.html
trials-json: trials trials.csv --tasks tasks.csv --model maker/model-x --steps 8 --json --baseline \
trials-before.csv --max-left-out .05
trials-failures: trials trials-tagged.csv --full
trials-markdown: trials trials-before.csv --g-threshold .75 --retries 1 --markdown
trials-models =2: trials trials.csv
trials-too-few =1: trials trials-before.csv -k 9
# Tasks
tasks-file: tasks audit trials-tagged.csv --tasks tasks-known.jsonl --full
tasks-file-json: tasks audit trials-tagged.csv --json --confidence .9
tasks-store: tasks audit @own --full
tasks-nobody =2: tasks audit @own --judge nobody
# What the numbers of a taxonomy could be
look-text: look runs.csv
look-json: look runs.csv --json
taxonomy-suggest: taxonomy suggest runs.csv --out ceilings.toml
taxonomy-suggest-store-json: taxonomy suggest @demo --percentile .8 --json
taxonomy-suggest-two-sources =2: taxonomy suggest runs.csv --batch b
taxonomy-fit-credit: taxonomy fit-credit satisfaction.csv
taxonomy-fit-credit-json: taxonomy fit-credit satisfaction.csv --json --seed 2
taxonomy-fit-credit-no-column =2: taxonomy fit-credit run-ceilings.csv
# A report made again
verify-file:
    report weighted.parquet --resamples 100 --compare-to none --json > again.json
    verify again.json
verify-store:
    report @own --judge judge-1 --resamples 100 --from 2025-03-10 --to 2025-04-06 --workflow \
flights --json > again.json
    verify again.json --json @own
verify-nothing =2: verify 1098f1357550
# Gates
gate-json =1: gate gate-runs.csv --gates gates.toml --json
gate-passed-all-shapes: gate @good --junit gates.xml --summary summary.md --labels gate-labels.csv
gate-baseline =1:
    gate gate-runs.csv --gates gates-own.toml --write-baseline main.json
    gate @good --baseline main.json --json --junit gates.xml
    gate gate-runs.csv --gates gates.toml --baseline main.json
gate-model =1: gate after.jsonl --gates gates-own.toml --model maker/model-y
gate-no-column =2: gate renamed.csv --gates gates.toml
gate-store-text =1: gate @demo --gates gates-store.toml --full
gate-store-json =1: gate @own --judge judge-1 --gates gates-store.toml --json --junit g.xml \
--summary s.md
gate-broken-gates =2: gate gate-runs.csv --gates gates-broken.toml
# Repeated runs
reliability-text: reliability repeated-runs.csv --tasks repeated-tasks.csv --full
reliability-json: reliability repeated-runs.csv --tasks repeated-tasks.csv --json --confidence .9
reliability-markdown-html: reliability repeated-runs.csv --divergence --markdown --html page.html
reliability-no-column =2: reliability run-ceilings.csv
# A judge against humans
calibrate-demo-text: calibrate @demo
calibrate-forms: calibrate @own --judge judge-1 --markdown --html judge.html
calibrate-demo-json: calibrate @demo --json
calibrate-demo-by-workflow: calibrate @demo --by workflow --brief
calibrate-demo-by-week-json: calibrate @demo --by week --brief --json
calibrate-two-against: calibrate @two --judge judge-2 --against demo-judge --by workflow --full
calibrate-own-text: calibrate @own --judge judge-1 --by agent --against judge-2 --full
calibrate-own-json: calibrate @own --judge judge-1 --by model --against judge-3 --judge-family \
maker --json
calibrate-own-reference: calibrate @own --judge judge-2 --design reference --confidence 0.9 \
--pseudo-count 1
calibrate-own-grades: calibrate @own --judge source: --brief
calibrate-own-unnamed =2: calibrate @own
calibrate-files-text: calibrate @judged --judge judge-1 --ceilings ceilings.csv
calibrate-files-json: calibrate @judged --judge judge-2 --against judge-1 --by agent --ceiling .05 \
--json
calibrate-files-reference: calibrate @judged --judge judge-2 --design reference --against \
judged-before.csv --by model --judge-family maker --classes pass,fail --seed 4
calibrate-files-weighted: calibrate --human human-weighted.csv --verdicts judged-before.csv \
--credit pass=1,fail=0 --by week --ceiling .04 --workflow refunds
calibrate-files-unnamed =2: calibrate @judged
calibrate-counts-text: calibrate --counts tables-production.json
calibrate-counts-json: calibrate --counts tables-production.json --json --seed 2
calibrate-counts-reference: calibrate --counts tables-reference.json --full
calibrate-counts-one-class: calibrate --counts tables-one-class.json
calibrate-counts-refused =1: calibrate --counts tables-one-class-reference.json
calibrate-mixed =2: calibrate --counts tables-production.json --judge x
# Agreement
agreement-demo-text: agreement @demo
agreement-demo-json: agreement @demo --json
agreement-own-slices: agreement @own --full --by week --by reviewer --cluster task --interval bca \
--resamples 200
agreement-own-json: agreement @own --weights linear --interval gwet --json
agreement-long-text: agreement ratings-long.csv --full --by week --by class --cluster ward
agreement-long-json: agreement ratings-long.csv --by week --classes no,maybe,yes --weights \
quadratic --json --interval percentile --resamples 200 --seed 2 --confidence .9
agreement-wide-matrix: agreement ratings-wide.csv --classes no,maybe,yes --weights \
matrix.csv
agreement-ours: agreement ratings-ours.csv --weights krippendorff_ordinal
agreement-alone =2: agreement ratings-alone.csv
agreement-no-batch =2: agreement @demo --batch none
# Conversations, tools and graders
tools-text: tools interactions.csv --full --forbidden cancel_order --required find_order
tools-routes: tools routes.csv --full --before find,pay --before "confirm,write:*"
tools-json: tools interactions.csv --json --require-tools --tool-threshold .75 --confidence .9
tools-no-columns =2: tools ratings-long.csv
tools-store =1: tools @own
tools-weights =2: tools interactions.csv --tool-weights selection=1
grade-files-text: grade traces.jsonl --graders graders.toml --full
grade-files-csv: grade traces.jsonl --graders graders-of-tasks.toml --csv proposed.csv
grade-files-tasks: grade traces.jsonl --tasks tasks-known.jsonl --full
grade-store-json: grade @own --graders graders-of-tasks.toml --json
grade-broken =2: grade traces.jsonl --graders gates.toml
# Plans
plan-demo-text: plan labels @demo --full --n 200 --overlap .25 --judge demo-judge
plan-demo-json: plan labels @demo --half-width .03 --judge demo-judge --seconds-per-label 90 \
--hourly-rate 60 --json
plan-stop:
    plan stop @demo --half-width .05 --judge demo-judge --json
    plan stop @demo --half-width .05 --judge demo-judge
plan-own: plan labels @own --half-width .08 --labels-wanted 1 --judge judge-2
plan-nothing-asked =2: plan labels @demo
plan-agreement:
    plan agreement --half-width .3 --alpha .7 @shares --json
    plan agreement --half-width .3 --alpha .7 @shares --coefficient gwet_ac --raters 3 --missing .1
plan-trials:
    plan trials --half-width .05
    plan trials trials-before.csv --half-width .1 -k 3 --json
    plan trials --half-width .1 --tasks 40 --p .8
plan-trials-not-enough =1: plan trials trials-before.csv --half-width .01 --tasks 20
plan-agreement-one-class =2: plan agreement --half-width .3 --alpha .7
# What to do next
status-demo-text: status @demo
status-demo-json: status @demo --json
status-two: status @two
status-own-json: status @own --judge judge-1 --json
status-nothing: status @own
# Traces, labels and people of a store
traces-demo: traces @demo workflow:research class:hallucinated
traces-demo-json: traces @demo judge:demo-judge verdict:abandoned --sort latency --descending \
--json
traces-own:
    traces @own tool:lookup error:yes --sort started
    traces @own tag:policy status:completed model:maker/model-x error:no
    traces @own task:task-03 --json
    traces @own '"trip 14"' from:2025-03-03 to:2025-03-31 batch:production-001
    traces @own --page 2
traces-none-saved =2: traces @demo --saved mine
traces-twice =2: traces @demo error:yes error:no
export-labels-demo: export labels labels.csv @demo
export-labels-own: export labels @own
export-no-batch =2: export labels @demo --batch none
export-probabilities:
    export probabilities out.csv @own --judge judge-1
    export probabilities out.jsonl @own --judge judge-2
    export probabilities out.parquet @own --judge judge-3
    export probabilities posteriors.csv @own --of-labels
export-name =2: export probabilities labels.txt @demo
export-consensus: export consensus @own
export-agreement: export agreement @own
export-dataset: export dataset shared @own
export-scores-simulated =1: export scores scores.jsonl --for langfuse @demo
people:
    people sign-in @demo
    certify list @demo
    certify list @demo --json
taxonomy:
    taxonomy show @demo
    taxonomy show @own --json
audit-no-batch =2: audit --batch none @own
demo-filled =1: demo --no-serve @demo
serve-host =2: serve @demo --host 0.0.0.0
# The reference dataset
reference-stats: reference stats --full
reference-stats-json: reference stats --json
reference-show:
    reference show research-001
    reference show research-002 --no-label
    reference checksums
    reference validate
reference-show-nothing =2: reference show research-999
reference-validate-nothing =2: reference validate --set tau2_run
usage =2:
    --version
    report --seed x
"""
# In a folder of their own, with a copy of a store or with none.
WRITES_INTO_OWN = """
people-changed:
    people add "Mara Lind" @own
    people add "Mara Lind" --role lead --json @own
    people add "Ada Root" --role admin @own
    people passphrase "Ada Root" @own
    people sign-in passphrase @own
    people sign-in @own
    certify demand --form private @own
    certify demand --every-batch @own
    certify list @own
passphrase-nobody =2: people passphrase Nobody @own
people-no-name =2: people add " " @own
sample:
    sample --n 20 --seed 1 @own
    sample --n 30 --seed 2 --labels-wanted 2 --overlap .25 --by-workflow --json @own
    sample --n 40 --seed 3 --allocate neyman --judge judge-1 --full @own
    sample --n 40 --seed 4 --allocate proportional --judge judge-2 --json @own
    sample --n 10 --seed 5 --workflow hotels --certificate any @own
    export labels @own
    traces batch:production-004 --all @own
sample-too-many =1: sample --n 9999 --seed 1 @own
sample-judge-alone =2: sample --n 9 --seed 1 --judge judge-1 @own
escalate-samples:
    escalate --by samples --judge judge-1 --seed 1 --audit-half-width .1 @own
    labels import own-labels.csv --batch production-002 --json @own
    audit --batch production-002 @own
    audit --batch production-002 --json @own
escalate-others:
    escalate --by probability --judge judge-1 --seed 1 --most 20 --json @own
    escalate --by judges --judge judge-1 --seed 2 --most 20 --audit-half-width .1 @own
escalate-no-samples =2: escalate --by samples --seed 1 @own
labels-and-verdicts-brought-in =1:
    labels import own-labels.csv @own
    verdicts import own-judge-2.csv --judge judge-2 @own
    verdicts import own-judge-3.csv --judge judge-2 --json @own
    verdicts import demo-judge-2.csv --judge other @own
labels-import-no-class =2: labels import bad-labels.csv @own
labels-import-elsewhere =1: labels import human.csv @own
verdicts-no-name =2: verdicts import own-judge-2.csv --judge source:x @own
taxonomy-forked:
    taxonomy use fork.toml @own
    taxonomy show @own --json
tasks-exported =2:
    tasks export --from-class partial_minus --out failed.jsonl @own
    tasks export --from-class partial_minus --out failed.jsonl @own
reference-own:
    reference export mine
    reference validate --set mine --own --json
    reference add mine --name ours @own
    reference override research-003 partial_minus --reason "Not for us." @own
    reference show research-003 @own
    reference practise @own
    reference practise --form ours/practice --json @own
    reference stats @own
reference-override-class =2: reference override research-003 great --reason x @own
"""
WRITES_ANEW = """
import-every-format:
    import lamp-1-retail.json tau2.json tau2_run --yes
    import records.jsonl records.csv --timezone Europe/Berlin --json
    import transcripts.jsonl --workflow refunds --ceiling .3 --unit refund --yes
    import traces.jsonl --mapping mapping.toml --json
    import traces.jsonl
    import changed-traces.jsonl --yes
    import changed-traces.jsonl --take-changed --json
    import broken-traces.jsonl --yes
    traces --all
    traces --all --json --sort workflow
    sample --n 5 --seed 1 --json
several-agents:
    import agents.jsonl --yes
    tools
    tools --json
import-nothing-readable =1: import only-broken.jsonl --json --taxonomy fork.toml
import-no-format =2: import gates-own.toml
taxonomy-broken =2: taxonomy use broken.toml
demo-seed =2: demo --no-serve --seed -1
reference-export-twice =1: reference export tau2_run
"""


def cases(table: str, copied: str | None) -> Iterator[Case]:
    """Read a table of commands."""
    for block in re.split(r"\n(?=\S)", re.sub(r"\n#.*", "", table).strip()):
        head, *lines = [line.strip() for line in block.split("\n")]
        name, _, only = head.partition(":")
        name, _, code = name.partition(" =")
        lines = [re.sub(r"@\w+", lambda m: WORDS[m[0]], line) for line in lines or [only.strip()]]
        yield Case(name, tuple(lines), int(code or 0), copied)


CASES = (*cases(READS, None), *cases(WRITES_INTO_OWN, "own"), *cases(WRITES_ANEW, ""))


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
            "import traces.jsonl --ceiling .3 --unit trip --yes --store own.duckdb",
            "sample --n 110 --seed 3 --store own.duckdb",
            "labels import own-labels.csv --store own.duckdb",
            *(
                f"verdicts import own-judge-{k}.csv --judge judge-{k} --store own.duckdb"
                for k in (1, 2, 3)
            ),
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
        text = text.replace(f"{day:%d %b %Y}", "<today>")
        if weeks:
            text = text.replace(f"{day:%G-W%V}", "<week>")
    ids = r"\b[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}\b"
    # How many writes a command takes is no promise.
    return re.sub(r"<id> \d{20}\b", "<id> <changes>", re.sub(ids, "<id>", text))


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


@pytest.mark.parametrize("taken", CASES, ids=lambda case: case.name, indirect=True)
def test_a_command_says_what_it_said(taken: tuple[Case, str, int]) -> None:
    case, text, code = taken
    hold(KEPT / f"{case.name}.txt", text, alike)
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
    hold(KEPT / "help.txt", "\n".join(helps(main, ["asr"], None)), alike)


def test_every_snapshot_is_of_a_case() -> None:
    names = {case.name for case in CASES} | {"help"}
    assert len(names) == len(CASES) + 1
    hold_names(KEPT, [f"{name}.txt" for name in names])
