"""The page of sources has every row, its links lead somewhere, and its commands run."""

import json
import re
import shlex
import shutil
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from statistics import median

import pytest
from click.testing import CliRunner

from calibration.analyses.reliability.trial_plan import plan_trials
from calibration.cli import main
from reference_dataset.loader import load_reference
from tests.cli_runs import Run, write_csv
from tests.judging.scripted_server import ScriptedServer
from tests.judging.small_model import outcome_by_word, small_model

DOCS = Path(__file__).parents[1] / "docs"
INPUTS = [Path(__file__).parent / "fixtures" / name for name in ("snapshots", "importers")]
# What the page calls a file, and the file that it is here.
NAMES = {
    "before.csv": "runs.csv", "after.csv": "gate-runs.csv", "new.csv": "gate-good.csv",
    "gates.toml": "gates-own.toml", "labels.csv": "gate-labels.csv", "old.csv": "trials-before.csv",
    "trials.csv": "trials-before.csv", "models.csv": "full.csv",
}  # fmt: skip
USEFUL = {"complete": 85, "partial_plus": 35, "partial_minus": 5}
N_ROWS = 158
ADDRESS, KEY = "https://api.example.org/v1", "sk-marked-51c3a8d0"


def page(name: str) -> str:
    return (DOCS / name).read_text(encoding="utf-8")


def rows() -> list[list[str]]:
    """Return the cells of each row of the four tables."""
    found = [line for line in page("sources.md").splitlines() if re.match(r"\| \d+ \|", line)]
    return [[cell.strip() for cell in line.strip("| ").split(" | ")] for line in found]


def anchors(document: Path) -> Iterator[str]:
    """Yield the address of each heading."""
    for heading in re.findall(r"^#+ (.+)$", document.read_text(encoding="utf-8"), re.MULTILINE):
        words = re.sub(r"[^\w\- ]", "", heading.lower())
        yield words.replace(" ", "-")


def test_every_row_of_the_sources_is_there_once_with_an_answer() -> None:
    assert [int(row[0]) for row in rows()] == list(range(1, N_ROWS + 1))
    assert {len(row) for row in rows()} == {4}
    assert all(len(row[3]) > 5 for row in rows())


@pytest.mark.parametrize("name", ["sources.md", "practice.md", "glossary.md", "scope.md"])
def test_every_link_leads_to_a_heading(name: str) -> None:
    links = re.findall(r"\]\(([^)\s:]*)\)", page(name))
    assert len(links) > 3
    for link in links:
        file, _, anchor = link.partition("#")
        target = DOCS / (file or name)
        assert target.exists(), link
        assert not anchor or anchor in set(anchors(target)), link


def tables(heading: str) -> Iterator[list[str]]:
    """Yield the rows of the tables below a heading of the page on practice."""
    section = page("practice.md").split(f"## {heading}")[1].split("\n## ")[0]
    for line in section.splitlines():
        if line.startswith("|"):
            yield [cell.strip() for cell in line.strip("| ").split("|")]


def most_tasks(half_width: float, p: float, k: int, n: int) -> int:
    """Return the tasks that the dearer case of a plan takes."""
    plan = plan_trials(half_width=half_width, p=p, k=k, n_trials=[n])
    return max(c.n_tasks or 0 for case in plan.cases for c in case.combinations)


def test_what_k_and_thresholds_cost_is_what_the_plan_says() -> None:
    found = list(tables("Choosing K and thresholds"))
    costs = [[int(cell) for cell in row] for row in found if all(map(str.isdigit, row))]
    assert len(costs) == 9
    for k, n, tasks, runs in costs:
        assert (tasks, runs) == (most_tasks(0.1, 0.9, k, n), tasks * n)
    shares = next(row for row in found if row[0] == "p" and row[1].startswith("."))
    needed = next(row for row in found if row[0] == "conversations")
    assert [int(n) for n in needed[1:]] == [most_tasks(0.05, float(p), 1, 1) for p in shares[1:]]
    assert most_tasks(0.05, 0.85, 1, 1) == 196
    bands = [row for row in found if row[-1].startswith("p above")]
    assert len(bands) == 4
    for row in bands:
        power = 1 / int(row[0])
        low, high = 1 - 0.05**power, 0.5**power
        between = "never" if low > high else f"p from {low:.3f} to {high:.3f}"
        above = f"p above {max(low, 0.7**power):.3f}"
        expected = [f"p below {1 - 0.3**power:.3f}", between, above]
        assert row[1:] == [word.replace("0.", ".") for word in expected]


def test_the_width_of_each_benchmark_is_what_the_plan_says() -> None:
    found = [row for row in tables("Benchmarks") if "±" in row[-1]]
    assert len(found) == 7
    for row in found:
        sizes, widths = re.findall(r"\d+", row[3]), re.findall(r"±([\d.]+)", row[4])
        for tasks, width in zip(sizes, widths, strict=True):
            plan = plan_trials(half_width=0.5, n_tasks=int(tasks), n_trials=[1])
            half_widths = {c.half_width or 0 for case in plan.cases for c in case.combinations}
            assert [f"{100 * h:.1f}" for h in half_widths] == [width], row


@pytest.fixture
def folder(tmp_path: Path, asr: Run) -> Path:
    """Return a folder with the files of the page, and a store whose last runs are of last week."""
    for inputs in INPUTS:
        shutil.copytree(inputs, tmp_path, dirs_exist_ok=True)
    for name, there in NAMES.items():
        shutil.copy(INPUTS[0] / there, tmp_path / name)
    Path("gates-store.toml").write_text("defaults = false\n[gates.asr]\nthreshold = 0.1\n")
    useful = [f"{name},{n + k % 9}" for k in range(40) for name, n in USEFUL.items()]
    write_csv("satisfaction.csv", "class,usefulness", *useful)
    routes = [f"c{k},1,yes,billing,{'flights' if k % 5 else 'billing'}" for k in range(9)]
    write_csv(
        "routes.csv", "conversation_id,interaction,answer_correct,expected_route,routed_to", *routes
    )
    shown = r"^`([\w.-]+\.json)`, [^\n]*\n\n```json\n(.*?)```"
    for name, content in re.findall(shown, page("trace-format.md"), re.MULTILINE | re.DOTALL):
        Path(name).write_text(content, encoding="utf-8")
    monday = datetime.now(UTC).date() - timedelta(days=datetime.now(UTC).weekday())
    first = datetime.combine(monday, datetime.min.time(), UTC) - timedelta(weeks=4)
    lines = Path("traces.jsonl").read_text(encoding="utf-8").splitlines()
    for k, line in enumerate(lines):
        at = first + timedelta(hours=4.4 * k)
        lines[k] = json.dumps(json.loads(line) | {"started_at": at.isoformat()})
    Path("traces.jsonl").write_text("\n".join(lines), encoding="utf-8")
    asr("import", "traces.jsonl", "--ceiling", 0.3, "--unit", "trip", "--yes")
    asr("sample", "--n", 110, "--seed", 3)
    asr("labels", "import", "own-labels.csv")
    asr("verdicts", "import", "own-judge-2.csv", "--judge", "my-judge-v2")
    asr("verdicts", "import", "own-judge-1.csv", "--judge", "my-judge-v3")
    asr("judge", "promote", "my-judge-v3")
    return tmp_path


@pytest.mark.long
def test_every_command_of_the_sources_runs(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ASR_JUDGE_KEY", KEY)
    found = list(dict.fromkeys(re.findall(r"`(asr [^`]+)`", page("sources.md"))))
    assert len(found) > 60
    # Those of platforms run in tests/test_coming_from.py, beside a server that answers.
    found = [words for words in found if words.split()[1] not in ("pull", "push")]
    model = small_model(lambda _asked, word, taxonomy: outcome_by_word(word, taxonomy))
    failed = {}
    with ScriptedServer(model, api_key=KEY) as server:
        for words in found:
            line, _, output = words.partition(" > ")
            done = CliRunner().invoke(main, shlex.split(line.replace(ADDRESS, server.url))[1:])
            if done.exit_code:
                failed[words] = done.exit_code, repr(done.exception), done.output[-800:]
            if output:
                Path(output).write_text(done.stdout, encoding="utf-8")
    assert failed == {}


@pytest.mark.long
def test_the_weekly_report_runs_as_printed(asr: Run, folder: Path) -> None:
    section = page("practice.md").split("## The weekly report")[1].split("\n## ")[0]
    Path("weekly.toml").write_text(section.split("```toml\n")[1].split("```")[0], encoding="utf-8")
    # The run whose cost cannot be read repeats a trial, which a gate refuses.
    runs = Path("runs.csv").read_text(encoding="utf-8").splitlines(keepends=True)
    sound = [line for line in runs if not line.startswith("bad-2,")]
    Path("runs.csv").write_text("".join(sound), encoding="utf-8")
    lines = re.findall(r"(?:^|[ /])(asr (?:report|sample|gate) .*)$", section, re.MULTILINE)
    assert len(lines) == 6
    for line in lines:
        asr(*shlex.split(line)[1:])
        if "report" in line:
            assert Path("weekly.html").stat().st_size > 10_000
            assert list(Path("queue").glob("*.csv"))


def test_the_medians_of_the_reference_traces_are_those_of_the_page() -> None:
    dataset = load_reference()
    costs: dict[str, list[float]] = {}
    for trace in dataset.traces.values():
        assert trace.cost_usd is not None
        costs.setdefault(trace.workflow, []).append(trace.cost_usd / trace.units)
    shown = dict(re.findall(r"([a-z_]+) ([\d.]+)", rows()[21][3].partition("USD:")[2]))
    assert {name: float(value) for name, value in shown.items()} == {
        name: pytest.approx(median(values), abs=0.005) for name, values in costs.items()
    }
