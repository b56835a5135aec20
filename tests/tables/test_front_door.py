"""Every word has one meaning in every reader of tables, in Python and in SQL."""

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import duckdb
import pandas as pd
import pyarrow as pa
import pytest

from calibration.analyses.evidence.from_files import load_tables
from calibration.analyses.layers import layers_of_table
from calibration.analyses.reliability import tools
from calibration.analyses.success_rate.suggestions import _useful
from calibration.errors import InputError
from calibration.runs.columns import open_runs
from calibration.runs.counts import production_counts
from calibration.runs.engines import feedback_worths, macros
from calibration.runs.recognition import RunOptions, outcomes_of, reading_of_runs
from calibration.runs.sources import Source, open_files
from calibration.tables import words
from calibration.tables.rows import cell_flag
from calibration.tables.scales import OutcomeColumn, read_outcomes
from calibration.tables.trials import TrialSource, audit_details, read_trials
from calibration.taxonomy import default_taxonomy
from calibration.trace_formats.fields import FieldError

ROOT = Path(__file__).parents[2]
LISTS = {
    "pass": words.PASS,
    "fail": words.FAIL,
    "ended": words.ENDED,
    "pending": words.PENDING,
    "missing": sorted(words.MISSING),
}
AROUND = ("  {} ", "\t{}", "\u00a0{}\u200b", "\ufeff{}\u3000")


def spellings(word: str, kind: str) -> Iterator[str]:
    """Yield a word as people write it; missing words have no other capitals."""
    yield word
    yield from (blanks.format(word) for blanks in AROUND)
    if kind != "missing":
        yield from (word.upper(), word.title(), f" {word.capitalize()}")
        yield from (word.replace("_", sign) for sign in "- /" if "_" in word)


EVERY = {
    text: kind
    for kind, listed in LISTS.items()
    for word in listed
    for text in spellings(word, kind)
}
TRUTHS = {"pass": True, "fail": False}
LEFT_OUT = {"pending": "not_run", "missing": "missing_outcome"}
# What ended without a result is a failed check of two classes.
CLASSES = {"pass": "success", "fail": "failure", "ended": "failure"}
TABLE = pd.DataFrame(
    {
        "trace_id": [f"r{k}" for k in range(len(EVERY))],
        "task_id": [f"t{k}" for k in range(len(EVERY))],
        "workflow": [f"w{k}" for k in range(len(EVERY))],
        "outcome": list(EVERY),
    }
)
KINDS = list(EVERY.values())


def test_the_lists_share_no_word() -> None:
    folded = [words.fold(word) for kind, listed in LISTS.items() if kind != "missing"
              for word in listed]  # fmt: skip
    assert len(folded) == len(set(folded))
    assert not words.MISSING & set(folded)


def test_outcomes_in_python() -> None:
    column = OutcomeColumn(
        place="a.csv", name="outcome", role_name="outcome", counts=dict.fromkeys(EVERY, 1)
    )
    found = read_outcomes([column], taxonomy=default_taxonomy())
    assert {text: found.classes.get(text) for text in EVERY} == {
        text: CLASSES.get(kind) for text, kind in EVERY.items()
    }
    assert found.left_out == {
        text: LEFT_OUT[kind] for text, kind in EVERY.items() if kind in LEFT_OUT
    }


@pytest.mark.parametrize("form", ["csv", "parquet"])
def test_outcomes_of_runs_in_sql(tmp_path: Path, form: str) -> None:
    file = tmp_path / f"runs.{form}"
    if form == "csv":
        TABLE.to_csv(file, index=False)
    else:
        TABLE.to_parquet(file)
    with open_files([file]) as source:
        by_workflow, reasons = counted(source)
    assert [by_workflow.get(f"w{k}") for k in range(len(EVERY))] == [
        CLASSES.get(kind) for kind in KINDS
    ]
    assert reasons == {why: KINDS.count(kind) for kind, why in LEFT_OUT.items()}


def counted(source: Source) -> tuple[dict[str, str], dict[str, int]]:
    """Return the class of the run of each workflow, and the rows left out by reason."""
    options = RunOptions(taxonomy=default_taxonomy())
    table = open_runs(source, options)
    counts = production_counts(table, outcomes_of([table.outcomes], options))
    cells, names = counts.cells, counts.recognised.outcomes.taxonomy.names
    assert counts.n_kept == len(cells)
    codes = cells["outcome"]
    named = codes.astype(str) if codes.dtype == "category" else [names[k] for k in codes]
    reasons = {rows.code: rows.rows for rows in reading_of_runs(counts).left_out}
    return dict(zip(cells["workflow"].astype(str), named, strict=True)), reasons


@pytest.mark.parametrize("form", ["frame", "csv"])
def test_outcomes_of_trials(tmp_path: Path, form: str) -> None:
    source: Path | pd.DataFrame = TABLE
    if form == "csv":
        source = tmp_path / "trials.csv"
        TABLE.to_csv(source, index=False)
    (found,) = read_trials(TrialSource(source=source, is_limited=False))
    passed = dict(zip(found.tasks, found.passed.tolist(), strict=True))
    wanted = {
        f"t{k}": CLASSES[kind] == "success" for k, kind in enumerate(KINDS) if kind in CLASSES
    }
    assert passed == wanted
    reasons = {rows.code: rows.rows for rows in found.reading.left_out}
    assert reasons == {why: KINDS.count(kind) for kind, why in LEFT_OUT.items()}


def test_labels_and_verdicts() -> None:
    """Of an answer that ended without a result there is none: it is a class of its own."""
    asked = [text for text, kind in EVERY.items() if kind in TRUTHS or kind == "missing"]
    rows = TABLE[TABLE["outcome"].isin(asked)]
    data = load_tables(rows, rows)
    assert data.classes == ("success", "failure")
    labelled = rows[[EVERY[text] in TRUTHS for text in rows["outcome"]]]
    people = dict(zip(data.labelled["trace_id"], data.human.argmax(axis=1), strict=True))
    assert {trace: data.classes[k] for trace, k in people.items()} == {
        trace: CLASSES[EVERY[text]]
        for trace, text in zip(labelled["trace_id"], labelled["outcome"], strict=True)
    }
    judged = {
        trace: data.verdict_names[k]
        for trace, k in zip(data.traces["trace_id"], data.verdicts, strict=True)
    }
    for trace, text in zip(rows["trace_id"], rows["outcome"], strict=True):
        wanted = CLASSES.get(EVERY[text])
        assert judged.get(trace) in ((wanted,) if wanted else (None, "no_verdict")), text


@pytest.mark.parametrize(("text", "kind"), EVERY.items())
def test_flags(text: str, kind: str) -> None:
    """A flag is a yes or a no; whatever else is no flag is refused, and an empty cell is none."""
    assert words.truth(text) is TRUTHS.get(kind)
    assert words.is_missing(words.cell(text)) == (kind == "missing")
    row = {"adjudicated": text, "human_outcome": text}
    if kind in TRUTHS:
        assert cell_flag(row, "adjudicated") is TRUTHS[kind]
        assert tools._flag(row, "adjudicated") is TRUTHS[kind]
        assert _useful(words.cell(text), "feedback", None) == float(TRUTHS[kind])
    elif kind == "missing":
        assert cell_flag(row, "adjudicated") is False
        assert tools._flag(row, "adjudicated") is None
    else:
        for reader in (cell_flag, tools._flag):
            with pytest.raises(FieldError):
                reader(row, "adjudicated")


@pytest.mark.parametrize("text", [t for t, k in EVERY.items() if k in (*TRUTHS, "missing")])
def test_reviews_of_an_audit(text: str) -> None:
    from calibration.tables.trials import REVIEWED

    assert audit_details({REVIEWED: text}).reviewed is TRUTHS.get(EVERY[text])


def test_catches_of_layers() -> None:
    rows = TABLE.assign(failure_type="wrong", ci_gate=TABLE["outcome"], user="yes")
    found = layers_of_table(rows.drop(columns="outcome"))
    kept = [kind for kind in KINDS if kind in TRUTHS or kind == "missing"]
    share = found.all_types.by("ci_gate").share
    assert found.all_types.n == len(kept)
    assert share.value == pytest.approx(kept.count("pass") / len(kept))
    assert found.reading is not None
    assert {rows.code: rows.rows for rows in found.reading.left_out} == {
        "bad_value": len(KINDS) - len(kept)
    }


def test_truth_and_presence_in_sql() -> None:
    with duckdb.connect() as connection:
        connection.execute(macros("functions", "functions_duckdb"))
        connection.register("texts", pa.table({"text": list(EVERY)}))
        rows = connection.sql(
            "SELECT text, present_of(text), truth_of_word(present_of(text)), clean_of(text) "
            "FROM texts"
        ).fetchall()
    assert len(rows) == len(EVERY)
    for text, present, truth, cleaned in rows:
        kind = EVERY[text]
        assert cleaned == words.clean(text), repr(text)
        assert (present is None) == (kind == "missing"), repr(text)
        assert truth is TRUTHS.get(kind), repr(text)


def test_worth_of_feedback_in_sql_and_in_python() -> None:
    worths = [(words.LIKED, 1.0), (words.DISLIKED, -1.0), (words.NEUTRAL, 0.0)]
    for listed, worth in worths:
        texts = [text for word in listed for text in (word, word.upper(), word.replace("_", " "))]
        assert feedback_worths(texts) == dict.fromkeys(texts, worth)
        if worth:
            assert {_useful(text, "feedback", None) for text in texts} == {float(worth > 0)}


@pytest.mark.parametrize(("good", "bad"), words.PAIRS)
def test_pairs(good: str, bad: str, tmp_path: Path) -> None:
    """A pair is read where it is alone, in runs, trials and verdicts alike."""
    texts = [good.upper(), f" {good}", bad, bad.title(), bad]
    frame = TABLE.head(5).assign(outcome=texts)
    frame.to_csv(tmp_path / "runs.csv", index=False)
    wanted = [True, True, False, False, False]
    with open_files([tmp_path / "runs.csv"]) as source:
        by_workflow, _ = counted(source)
    assert [by_workflow[f"w{k}"] == "success" for k in range(5)] == wanted
    (found,) = read_trials(TrialSource(source=frame))
    assert found.passed.tolist() == wanted
    data = load_tables(frame, frame)
    assert [data.verdict_names[k] == "success" for k in data.verdicts] == wanted
    beside = frame.assign(outcome=[*texts[:4], "a word"])
    with pytest.raises(InputError):
        read_trials(TrialSource(source=beside))


# --- no second list ------------------------------------------------------------------------------

SAYS = {
    word
    for word in (*words.PASS, *words.FAIL, *words.LIKED, *words.DISLIKED)
    if word not in words.NUMERALS and len(word) > 1 and word != "like"
}
# The two verdicts themselves, as `words.VERDICTS` and --map have them.
NAMES = {"pass", "fail"}
# Where several of these words stand together and are no list of what cells of a table say.
TREE = "the two answers to a question of the decision tree"
STATUS = "states of our own records, never read from a table"
HEAD = "names of columns that are shown"
ALLOWED: dict[str, str] = {
    "app/components/tree_chart.py": TREE,
    "app/desk/data.py": TREE,
    "app/desk/plain.py": TREE,
    "app/views/certificate/page.py": STATUS,
    "calibration/agreement/ratings.py": TREE,
    "calibration/analyses/reviewers/exam_report.py": TREE,
    "calibration/judge_calibration/trial_scores.py": HEAD,
    "calibration/judging/prompt.py": TREE,
    "calibration/judging/transport.py": "a header of HTTP",
    "calibration/reporting/sections/tools.py": HEAD,
    "calibration/reviewers/certification.py": STATUS,
    "calibration/runs/benchmark_results.py": "what the reader of result files writes",
    "calibration/store/trace_search.py": "what the search field of the app takes",
    "calibration/tables/scales.py": "names of columns, not words of cells",
    "calibration/tables/vocabulary.py": "names of the classes of the rubric two_class",
    "calibration/taxonomy.py": TREE,
    "calibration/trace_formats/span_trees.py": "names of scores, not words of cells",
}


def python_files() -> list[Path]:
    return [file for part in ("calibration", "app") for file in sorted((ROOT / part).rglob("*.py"))]


def lists_of_words(file: Path) -> Iterator[tuple[int, set[str]]]:
    """Yield the lists, tuples, sets, keys and comparisons of a file with two such words or more."""
    for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
        parts: list[ast.expr | None] = []
        if isinstance(node, ast.List | ast.Tuple | ast.Set):
            parts = [*node.elts]
        elif isinstance(node, ast.Dict):
            parts = [*node.keys]
        elif isinstance(node, ast.Compare):
            parts = [node.left, *node.comparators]
        texts = {
            part.value.strip().casefold()
            for part in parts
            if isinstance(part, ast.Constant) and isinstance(part.value, str)
        }
        found = texts & SAYS
        if found <= NAMES:
            continue
        if len(found) >= 2 or (found & {"true", "yes", "passed"} and isinstance(node, ast.Compare)):
            yield getattr(node, "lineno", 0), found


def test_no_other_list_of_words() -> None:
    found: dict[str, list[tuple[int, list[str]]]] = {}
    for file in python_files():
        name = str(file.relative_to(ROOT))
        if name == "calibration/tables/words.py":
            continue
        for line, listed in lists_of_words(file):
            found.setdefault(name, []).append((line, sorted(listed)))
    assert not {name: listed for name, listed in found.items() if name not in ALLOWED}
    assert not ALLOWED.keys() - found.keys(), "a place that no longer needs to be allowed"


def test_no_list_of_words_in_sql() -> None:
    for file in sorted((ROOT / "calibration/runs/sql").glob("*.sql")):
        quoted = {text.casefold() for text in re.findall(r"'([^'\n]*)'", file.read_text("utf-8"))}
        assert len(quoted & SAYS) < 2, file.name
        assert not quoted & {"true", "yes", "passed"}, file.name
