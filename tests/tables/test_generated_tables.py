"""Whatever a table of runs looks like, its rate is the same, or the table is refused.

Two thousand tables are made by seed: a base table of one kind of outcomes, and changes that say
nothing of the runs. The rate of a changed table is that of the base table, or there is a question.
"""

import random
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path

import pandas as pd
import pytest

from calibration.errors import CalibrationError
from calibration.runs.columns import open_runs
from calibration.runs.counts import production_counts
from calibration.runs.engines import DuckDB, StoredTable
from calibration.runs.recognition import RunOptions, outcomes_of, reading_of_runs
from calibration.runs.sources import Source, open_files, open_frame
from calibration.tables import words
from calibration.tables.reading import ReadingOptions
from calibration.tables.scales import Scale
from calibration.taxonomy import Taxonomy, default_taxonomy

N_TABLES, IN_FILES, OF_A_BASE, LEAST_READ = 2_000, 10, 10, 0.8
Rows = list[dict[str, str]]

TITLES = {one.name: one.title for one in default_taxonomy().classes}
FIVE = ReadingOptions(scale=Scale(1, 5))
HALF = ReadingOptions(scale=Scale(0, 1), pass_at=0.5)
# A kind of outcomes: the column, its values, what the user says, and whether they are words.
KINDS: dict[str, tuple[str, tuple[str, ...], ReadingOptions]] = {
    "classes": ("outcome", tuple(TITLES), ReadingOptions()),
    "titles": ("outcome", tuple(TITLES.values()), ReadingOptions()),
    "truth": ("success", ("TRUE", "FALSE"), ReadingOptions()),
    "words": ("outcome", ("pass", "fail"), ReadingOptions()),
    "numerals": ("passed", ("1", "0"), ReadingOptions()),
    "right and wrong": ("verdict", ("right", "wrong"), ReadingOptions()),
    "approved": ("result", ("approved", "rejected"), ReadingOptions()),
    "ended": ("resolved", ("yes", "no", "timeout"), ReadingOptions()),
    "grades": ("score", ("1", "2", "3", "4", "5"), FIVE),
    "fractions": ("reward", ("0", "0.25", "0.5", "0.75", "1"), HALF),
}
# Names of one role, for the same group of outcomes.
OTHER_NAMES = {
    "trace_id": ("run_id", "session_id", "id", "uuid", "Trace ID", "traceId"),
    "cost_usd": ("total_cost_usd", "cost", "Cost USD", "price_usd"),
    "workflow": ("workflow_name", "use_case", "Workflow"),
    "outcome": ("Outcome", "OUTCOME"),
    "success": ("is_success", "passed", "correct", "is_solved", "taskSuccess"),
    "passed": ("success", "is_correct", "solved", "Passed"),
    "resolved": ("is_resolved", "pass", "successful"),
    "verdict": ("result", "human_label", "label", "rating"),
    "result": ("verdict", "label", "Result"),
    "score": ("grade", "human_score", "Score"),
    "reward": ("score", "grade", "Reward"),
}
PROSE = ("Could not find the order, asked twice.", "Fine", "no", "yes; see the log", "NA")


def base_table(kind: str, draw: random.Random) -> Rows:
    """Return 12 to 30 runs in which every value of a kind occurs."""
    outcome, values, _ = KINDS[kind]
    n = draw.randrange(12, 31)
    listed = [*values, *draw.choices(values, k=n - len(values))]
    draw.shuffle(listed)
    named = draw.random() < 0.5
    rows = []
    for k, value in enumerate(listed):
        row = {"trace_id": f"r{k:03d}-{draw.randrange(10**6)}", outcome: value}
        row["cost_usd"] = f"{draw.randrange(5, 300) / 100}"
        if named:
            row["workflow"] = draw.choice(("support", "billing-eu"))
        rows.append(row)
    return rows


# Changes of rows and columns: each takes the rows, the column of the outcome and a generator, and
# returns the rows and the column.
Change = Callable[[Rows, str, random.Random], tuple[Rows, str]]


def shuffled_rows(rows: Rows, outcome: str, draw: random.Random) -> tuple[Rows, str]:
    return draw.sample(rows, len(rows)), outcome


def shuffled_columns(rows: Rows, outcome: str, draw: random.Random) -> tuple[Rows, str]:
    names = draw.sample(list(rows[0]), len(rows[0]))
    return [{name: row[name] for name in names} for row in rows], outcome


def capitals(rows: Rows, outcome: str, draw: random.Random) -> tuple[Rows, str]:
    change = (str.upper, str.title, str.lower, str.capitalize)
    return [row | {outcome: draw.choice(change)(row[outcome])} for row in rows], outcome


def blanks(rows: Rows, outcome: str, draw: random.Random) -> tuple[Rows, str]:
    around = ("{}", " {}", "{}  ", "\u00a0{}", "{}\u00a0", "\u200b{} ", "{}\u2003", "\t{}")
    return [row | {outcome: draw.choice(around).format(row[outcome])} for row in rows], outcome


def blank_ids(rows: Rows, outcome: str, draw: random.Random) -> tuple[Rows, str]:
    name = next(iter({"trace_id", *OTHER_NAMES["trace_id"]} & rows[0].keys()))
    return [row | {name: f" {row[name]}\u00a0"} for row in rows], outcome


def renamed(rows: Rows, outcome: str, draw: random.Random) -> tuple[Rows, str]:
    names = {name: name for name in rows[0]}
    for name in names:
        if name in OTHER_NAMES and draw.random() < 0.6:
            names[name] = draw.choice(OTHER_NAMES[name])
    return [{names[name]: value for name, value in row.items()} for row in rows], names[outcome]


def dates(rows: Rows, outcome: str, draw: random.Random) -> tuple[Rows, str]:
    name = draw.choice(("started_at", "date", "created_at", "reviewed on"))
    form = draw.choice(("2026-03-{:02d}", "{:02d}/03/2026", "2026-03-{:02d} 10:00:00"))
    return added(rows, name, lambda: form.format(draw.randrange(1, 29)), draw), outcome


def prose(rows: Rows, outcome: str, draw: random.Random) -> tuple[Rows, str]:
    name = draw.choice(("comment", "notes", "rationale", "question", "status", "completed"))
    return added(rows, name, lambda: draw.choice(PROSE), draw), outcome


def ids(rows: Rows, outcome: str, draw: random.Random) -> tuple[Rows, str]:
    name = draw.choice(("Index", "export_id", "batch", "user_id", "customer"))
    return added(rows, name, lambda: str(draw.randrange(10**9)), draw), outcome


def majority(rows: Rows, outcome: str, draw: random.Random) -> tuple[Rows, str]:
    """Add what others say of the runs, which differs in some."""
    name = draw.choice(("majority", "consensus", "gold", "expected", "is_error", "failed"))
    values = [row[outcome] for row in rows]
    return added(rows, name, lambda: draw.choice(values), draw), outcome


def added(rows: Rows, name: str, value: Callable[[], str], draw: random.Random) -> Rows:
    """Return the rows with a further column, before or after the others."""
    if name in rows[0]:
        return rows
    first = draw.random() < 0.5
    return [{name: value()} | row if first else row | {name: value()} for row in rows]


CHANGES: tuple[Change, ...] = (
    shuffled_rows, shuffled_columns, capitals, blanks, blank_ids, renamed, dates, prose, ids,
    majority,
)  # fmt: skip
ENCODINGS = ("utf-8", "utf-8-sig", "utf-16")


@dataclass(frozen=True)
class Figures:
    """Runs, rate, pass rate and the sum of costs of a table."""

    n: int
    rate: float
    pass_rate: float
    cost: float


def figures_of(counts: Mapping[str, float], rubric: Taxonomy, cost: float) -> Figures:
    """Return the figures of runs that are counted by class."""
    n = sum(counts.values())
    assert n, "no run, and no question"
    credit = {one.name: one.credit for one in rubric.classes}
    rate = sum(credit[name] * times for name, times in counts.items()) / n
    return Figures(int(n), round(rate, 9), round(counts[rubric.success] / n, 9), round(cost, 6))


def counted(source: Source, reading: ReadingOptions) -> Figures | None:
    """Return what all statements count; None if the table is refused."""
    options = RunOptions(taxonomy=default_taxonomy(), reading=reading)
    try:
        table = open_runs(source, options)
        counts = production_counts(table, outcomes_of([table.outcomes], options))
        reading_of_runs(counts).check_limit()
    except CalibrationError:
        return None
    rubric, runs = counts.recognised.outcomes.taxonomy, Counter[str]()
    for place, n in zip(counts.cells["outcome"], counts.cells["n"], strict=True):
        runs[rubric.names[place]] += n
    return figures_of(runs, rubric, float(counts.cells["cost"].sum()))


def recognised(source: Source, frame: pd.DataFrame, reading: ReadingOptions) -> Figures | None:
    """Return what the columns and words that are recognised give, counted here."""
    options = RunOptions(taxonomy=default_taxonomy(), reading=reading)
    try:
        table = open_runs(source, options)
        outcomes = outcomes_of([table.outcomes], options)
    except CalibrationError:
        return None
    used = table.columns.used
    classes = [outcomes.classes.get(text) for text in frame[used["outcome"]]]
    if classes.count(None) > max(1, reading.limit * len(classes)):
        return None
    runs = {words.clean(text) for text in frame[used["trace_id"]]}
    assert len(runs) == len(frame), f"runs are told apart by {used['trace_id']}"
    cost = frame[used["cost_usd"]].astype(float).sum() if "cost_usd" in used else 0.0
    listed = Counter(name for name in classes if name is not None)
    return figures_of(listed, outcomes.taxonomy, cost)


@contextmanager
def one_engine() -> Iterator[Callable[[pd.DataFrame], Source]]:
    """Yield what makes a source of a frame, all in one engine, which takes long to start."""
    with open_frame(pd.DataFrame({"outcome": ["complete"]})) as first:
        assert isinstance(first.engine, DuckDB)
        assert isinstance(first.table, StoredTable)
        engine, table = first.engine, first.table

        def source_of(frame: pd.DataFrame) -> Source:
            engine.connection.register("traces", frame.assign(asr_row=range(1, len(frame) + 1)))
            return replace(first, columns=engine.columns(table))

        yield source_of


def as_file(rows: Rows, draw: random.Random, path: Path) -> Path:
    """Write a table with any delimiter and encoding."""
    sep, encoding = draw.choice(",;\t|"), draw.choice(ENCODINGS)
    pd.DataFrame(rows).to_csv(path, index=False, sep=sep, encoding=encoding)
    return path


@dataclass(frozen=True)
class Made:
    """A changed table, and the kind of table that it was made of."""

    number: int
    kind: str
    changes: tuple[str, ...]
    rows: Rows
    base: Rows
    reading: ReadingOptions


def made_tables(n: int) -> Iterator[Made]:
    """Yield `n` changed tables of all kinds, the same in every run."""
    draw, bases = random.Random(20261), dict[str, Rows]()
    for number in range(n):
        kind = list(KINDS)[number % len(KINDS)]
        outcome, _, reading = KINDS[kind]
        if number // len(KINDS) % OF_A_BASE == 0:
            bases[kind] = base_table(kind, draw)
        base = changed = bases[kind]
        changes = draw.sample(CHANGES, draw.randrange(1, 5))
        for change in changes:
            changed, outcome = change(changed, outcome, draw)
        names = tuple(change.__name__ for change in changes)
        yield Made(number, kind, names, changed, base, reading)


def check(found: list[tuple[Made, Figures | None, Figures | None]]) -> None:
    """Assert that every table has the value of its base or is refused, and that most are read."""
    wrong = [
        f"{made.number} {made.kind}, {', '.join(made.changes)}: {value} for {base}; {made.rows[0]}"
        for made, value, base in found
        if base is None or value not in (None, base)
    ]
    assert not wrong, f"{len(wrong)} wrong:\n" + "\n".join(wrong[:20])
    n_read = sum(value is not None for _, value, _ in found)
    refused = Counter(name for made, value, _ in found if value is None for name in made.changes)
    assert n_read >= LEAST_READ * len(found), f"{n_read} of {len(found)} read: {refused}"


@pytest.mark.parametrize("n", [200, pytest.param(N_TABLES, marks=pytest.mark.long)])
def test_what_says_nothing_of_the_runs_changes_no_value(n: int) -> None:
    found, base = [], dict[str, tuple[Rows, Figures | None]]()
    with one_engine() as source_of:
        for made in made_tables(n):
            if made.kind not in base or base[made.kind][0] is not made.base:
                frame = pd.DataFrame(made.base)
                base[made.kind] = made.base, recognised(source_of(frame), frame, made.reading)
            frame = pd.DataFrame(made.rows)
            value = recognised(source_of(frame), frame, made.reading)
            found.append((made, value, base[made.kind][1]))
    check(found)


@pytest.mark.parametrize("n", [20, pytest.param(N_TABLES // IN_FILES, marks=pytest.mark.long)])
def test_files_of_any_delimiter_and_encoding_have_the_value_of_the_frame(
    tmp_path: Path, n: int
) -> None:
    draw, found = random.Random(7), []
    for made in made_tables(n):
        with open_files([as_file(made.rows, draw, tmp_path / f"t{made.number}.csv")]) as source:
            value = counted(source, made.reading)
        with open_frame(pd.DataFrame(made.base)) as source:
            found.append((made, value, counted(source, made.reading)))
    check(found)
