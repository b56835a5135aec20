"""Labels and verdicts by the columns and words that people have, and what was left out of them."""

import csv
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

import calibration
from calibration.analyses.evidence.from_files import load_tables
from calibration.analyses.imports import import_labels, import_verdicts
from calibration.analyses.judge.calibration import CalibrationOptions, calibrate_judge
from calibration.errors import CalibrationError, InputError
from calibration.tables.labels import read_labels, read_verdicts, settled_labels
from calibration.tables.reading import ReadingOptions
from calibration.tables.vocabulary import of_one_table
from calibration.taxonomy import load_taxonomy, ready_rubrics
from tests.analyses.conftest import NewWorld
from tests.classes import OUTCOMES
from tests.cli_runs import Run, data

N, N_LABELLED = 90, 50
HUMAN = ["pass" if k * 7 % 10 < 6 else "fail" for k in range(N_LABELLED)]
JUDGE = ["pass" if (k * 7 % 10 < 6 and k % 5) or k % 11 == 0 else "fail" for k in range(N)]
CREDIT = {"pass": 1.0, "fail": 0.0}
Frames = tuple[pd.DataFrame, pd.DataFrame]


def frames(human: list[str] | None = None, judged: list[str] | None = None) -> Frames:
    labels, verdicts = human or HUMAN, judged or JUDGE
    return (
        pd.DataFrame({"trace_id": [f"t{k}" for k in range(len(labels))], "outcome": labels}),
        pd.DataFrame({"trace_id": [f"t{k}" for k in range(len(verdicts))], "outcome": verdicts}),
    )


def figures(human: Any, judged: Any, **options: Any) -> tuple[float, float]:
    """Return kappa and the corrected rate."""
    found = calibrate_judge(
        load_tables(human, judged, **options), CalibrationOptions(diagnostics=False)
    ).calibration
    kappa, rate = found.judge.kappa.value, found.estimates["post_stratified"].net.value
    assert kappa is not None
    assert rate is not None
    return kappa, rate


EXPECTED = figures(*frames(), classes=["pass", "fail"], credit=CREDIT)


def written(words: list[str], spelling: dict[str, str]) -> list[str]:
    return [spelling.get(word, word) for word in words]


@pytest.mark.parametrize(
    ("human", "judged"),
    [
        ({}, {}),
        ({"pass": "PASS", "fail": "Fail "}, {"pass": "Passed"}),
        ({"pass": "TRUE", "fail": "FALSE"}, {}),
        ({"pass": "yes", "fail": "no"}, {"pass": "T", "fail": "f"}),
        ({"pass": "good", "fail": "bad"}, {"pass": "resolved", "fail": "unresolved"}),
        ({"pass": "ok", "fail": "not ok"}, {"pass": "✓", "fail": "✗"}),
        ({"pass": "Success", "fail": "Failure"}, {"pass": "success", "fail": "failure"}),
    ],
)
def test_words_of_pass_and_fail_are_read_in_both_tables(
    human: dict[str, str], judged: dict[str, str]
) -> None:
    tables = frames(written(HUMAN, human), written(JUDGE, judged))
    assert figures(*tables) == pytest.approx(EXPECTED)
    found = calibration.calibrate(*tables)
    assert found.analysis.classes == ("success", "failure")
    assert isinstance(found.reading, tuple)
    assert found.reading[0].rubric == "two-class-1"


def test_a_rubric_that_was_chosen_keeps_its_classes() -> None:
    two = load_taxonomy(ready_rubrics()["two_class"])
    mixed = frames(written(HUMAN, {"pass": "Success"}))
    assert figures(*mixed, taxonomy=two) == pytest.approx(EXPECTED)
    five = calibration.calibrate(*frames(), taxonomy=calibration.default_taxonomy())
    assert five.analysis.classes == OUTCOMES
    assert isinstance(five.reading, tuple)
    assert any("a pass was taken as complete" in note for note in five.reading[0].notes)


def test_classes_are_read_in_capitals_and_by_their_titles() -> None:
    rubric = calibration.default_taxonomy()
    human = [OUTCOMES[k * 7 % 5] for k in range(N_LABELLED)]
    judged = [OUTCOMES[(k * 7 + (k % 3 == 0)) % 5] for k in range(N)]
    expected = figures(*frames(human, judged))
    titles = dict(zip(rubric.names, rubric.titles.values(), strict=True))
    for spelling in (titles, {name: name.upper().replace("_", " ") for name in OUTCOMES}):
        found = figures(*frames(written(human, spelling), judged))
        assert found == pytest.approx(expected)
    assert figures(*frames(human, [*judged[:-1], "partial+"])) is not None


def test_classes_beside_pass_and_fail_are_a_question() -> None:
    human = ["complete" if word == "pass" else "abandoned" for word in HUMAN]
    with pytest.raises(InputError, match=r"which class is fail\? --map fail=partial_minus"):
        figures(*frames(human))
    with pytest.raises(InputError, match=r"'maybe' is not one of success, failure; --map"):
        figures(*frames([*HUMAN[:-1], "maybe"]))
    for word in ("error", "unknown", "skipped"):
        with pytest.raises(InputError, match=rf"line 90, field 'outcome': '{word}' is not one of"):
            figures(*frames(judged=[*JUDGE[:-1], word]))
    rest = calibration.calibrate(*frames(judged=[*JUDGE[:-1], "error"]), rest="no_verdict")
    assert rest.analysis.verdict_names[-1] == "no_verdict"


def test_numbers_need_their_meaning() -> None:
    bare = frames(
        written(HUMAN, {"pass": "1", "fail": "0"}), written(JUDGE, {"pass": "1", "fail": "0"})
    )
    labelled = tuple(table.rename(columns={"outcome": "label"}) for table in bare)
    with pytest.raises(InputError, match=r"label holds 0 and 1.*--map 1=pass,0=fail"):
        figures(*labelled)
    options = ReadingOptions(mapped={"1": "pass", "0": "fail"})
    assert figures(*labelled, reading=options) == pytest.approx(EXPECTED)
    turned = figures(*labelled, reading=ReadingOptions(mapped={"1": "fail", "0": "pass"}))
    assert turned[0] == pytest.approx(EXPECTED[0])
    assert turned[1] != pytest.approx(EXPECTED[1])
    checks = tuple(table.rename(columns={"outcome": "passed"}) for table in bare)
    assert figures(*checks) == pytest.approx(EXPECTED)
    grades = frames([{"pass": "5", "fail": "2"}[word] for word in HUMAN], JUDGE)
    with pytest.raises(InputError, match=r"from 2 to 5: --scale 1-5"):
        figures(*grades)
    found = calibration.calibrate(*grades, scale=(1, 5), pass_at=4)
    assert found.estimates["post_stratified"].value == pytest.approx(EXPECTED[1])


def test_missing_words_are_counted_and_a_skipped_trace_stays_one() -> None:
    gaps = [word if k % 10 else "" for k, word in enumerate(HUMAN)]
    words = [word if k % 10 else "NA" for k, word in enumerate(HUMAN)]
    empty, named = (load_tables(*frames(labels)) for labels in (gaps, words))
    assert empty.skipped_ids == named.skipped_ids
    assert len(named.skipped_ids) == 5
    assert named.readings[0].missing_words == {"NA": 5}
    assert "5 labels written NA were taken as missing." in named.readings[0].lines
    judged = load_tables(*frames(judged=[*JUDGE[:-2], "NA", "NaN"]))
    assert judged.verdict_names[-1] == "no_verdict"
    assert judged.readings[1].missing_words == {"NA": 1, "NaN": 1}
    # A class that is called so.
    kept = load_tables(*frames(words), classes=["pass", "fail", "NA"], credit=CREDIT | {"NA": 0.0})
    assert kept.skipped_ids == ()


def test_classes_of_ones_own_that_fold_alike_are_one() -> None:
    human = [
        "US" if k % 9 == 0 else "us" if word == "pass" else "uk" for k, word in enumerate(HUMAN)
    ]
    judged = ["us" if word == "pass" else "UK" for word in JUDGE]
    found = load_tables(*frames(human, judged), credit={"us": 1.0, "UK": 0.0})
    assert set(found.classes) == {"us", "UK"}
    assert "US and us were taken as one." in found.readings[0].notes
    with pytest.raises(InputError, match="'US' is not one of us, uk"):
        load_tables(*frames(human, judged), classes=["us", "uk"], credit={"us": 1.0, "uk": 0.0})


@pytest.mark.parametrize(
    ("human", "judged"),
    [
        (["id", "human_label"], ["id", "judge_verdict"]),
        (["Trace ID", "Label"], ["trace_id", "verdict"]),
        (["run_id", "rating"], ["run_id", "llm_verdict"]),
        (["item_id", "annotation"], ["item_id", "result"]),
        (["traceId", "passed"], ["trace_id", "is_correct"]),
    ],
)
def test_columns_go_by_the_names_that_people_have(human: list[str], judged: list[str]) -> None:
    labels, verdicts = frames()
    labels.columns, verdicts.columns = pd.Index(human), pd.Index(judged)
    data_read = load_tables(labels, verdicts)
    assert figures(labels, verdicts) == pytest.approx(EXPECTED)
    assert human[1] in data_read.readings[0].read_as


def test_two_columns_that_may_be_it_are_a_question() -> None:
    labels, verdicts = frames()
    other = ["fail" if k % 2 else "pass" for k in range(N_LABELLED)]
    for name in ("human_label", "label", "gold"):
        with pytest.raises(InputError, match=rf"outcome and {name} both may be the outcome"):
            figures(labels.assign(**{name: other}), verdicts)
        assert figures(labels.assign(**{name: HUMAN}), verdicts) == pytest.approx(EXPECTED)
    wide = labels.rename(columns={"outcome": "label"}).assign(verdict=other)
    with pytest.raises(InputError, match="label and verdict both may be the outcome"):
        figures(wide, verdicts)
    options = ReadingOptions(columns={"human": "label"})
    assert figures(wide, verdicts, reading=options) == pytest.approx(EXPECTED)
    # Two ids that join other rows; the row number of a table is none of its traces.
    numbered = labels.rename(columns={"trace_id": "item_id"}).assign(id=range(N_LABELLED))
    shuffled = verdicts.rename(columns={"trace_id": "item_id"}).iloc[::-1].assign(id=range(N))
    with pytest.raises(InputError, match="id and item_id both may name the trace"):
        figures(numbered, shuffled)


def test_one_table_may_number_its_rows(tmp_path: Path) -> None:
    labels, verdicts = frames(judged=JUDGE[:N_LABELLED])
    expected = figures(labels, verdicts)
    one = pd.DataFrame({"human_label": HUMAN, "judge_verdict": JUDGE[:N_LABELLED]})
    path = tmp_path / "one.csv"
    one.to_csv(path, index=False)
    tables = of_one_table(path)
    assert tables.verdicts.judge == "judge_verdict"
    read = load_tables(tables.labels, tables.verdicts)
    assert figures(tables.labels, tables.verdicts) == pytest.approx(expected)
    assert "No column names the trace: each row is one." in read.readings[0].notes
    other = one.assign(llm_verdict=HUMAN)
    other.to_csv(path, index=False)
    with pytest.raises(InputError, match="judge_verdict and llm_verdict both may be the verdict"):
        of_one_table(path)


LABELS = [
    ("t0", "Ann", "pass", "2026-03-02"),
    ("t0", "Ann", "fail", "2026-03-05"),
    ("t0", "Bo", "pass", "2026-03-01"),
    ("t1", "Ann", "fail", "2026-03-02"),
    ("t1", "Ann", "fail", "2026-03-01"),
]


@pytest.mark.parametrize("order", [[0, 1, 2, 3, 4], [4, 1, 3, 0, 2]])
def test_the_later_of_two_labels_of_a_person_counts_wherever_it_is(order: list[int]) -> None:
    names = ["trace_id", "rater", "label", "submitted_at"]
    table = pd.DataFrame([LABELS[k] for k in order], columns=names)
    read = settled_labels(read_labels(table))
    assert {(row.reviewer, row.outcome) for row in read.rows["t0"]} == {
        ("Ann", "fail"), ("Bo", "pass"),
    }  # fmt: skip
    assert {one.code: one.rows for one in read.left_out} == {
        "identical_duplicate": 1, "superseded": 1,
    }  # fmt: skip
    untimed = table.drop(columns="submitted_at")
    with pytest.raises(InputError, match=r"'t0' has two different labels of 'Ann' \(lines"):
        settled_labels(read_labels(untimed))
    read = settled_labels(read_labels(untimed[untimed["trace_id"] == "t1"]))
    assert len(read.rows["t1"]) == 1


def test_the_later_of_two_verdicts_counts() -> None:
    rows = [("t0", "pass", "2026-03-05"), ("t0", "fail", "2026-03-02"), ("t1", "fail", ""),
            ("t1", "fail", "")]  # fmt: skip
    table = pd.DataFrame(rows, columns=["trace_id", "verdict", "updated_at"])
    assert read_verdicts(table).rows["t0"].outcome == "pass"
    assert read_verdicts(table.iloc[::-1]).rows["t0"].outcome == "pass"
    with pytest.raises(InputError, match=r"two different verdicts \(lines 1, 2\)"):
        read_verdicts(table.drop(columns="updated_at"))


def test_cells_of_numbers_flags_and_times_are_read_as_people_write_them() -> None:
    labels, verdicts = frames()
    verdicts["cost"] = ["0,12" if k % 2 else "1,5" for k in range(N)]
    verdicts["timestamp"] = [str(1767225600 + k) for k in range(N)]
    labels["exposed"] = ["Y" if k == 0 else "-" if k == 1 else "False" for k in range(N_LABELLED)]
    read = load_tables(labels, verdicts)
    assert set(read.traces["cost_usd"]) == {0.12, 1.5}
    assert read.traces["started_at"].notna().all()
    assert [(one.code, one.rows) for one in read.readings[0].left_out] == [("not_blind", 1)]
    with pytest.raises(InputError, match="costs are read in US dollars, and cost holds EUR"):
        load_tables(labels, verdicts.assign(cost="€0.12"))
    without = ReadingOptions(columns={"cost_usd": None})
    assert (
        load_tables(labels, verdicts.assign(cost="€0.12"), reading=without)
        .traces["cost_usd"]
        .isna()
        .all()
    )
    with pytest.raises(InputError, match="must be yes or no"):
        load_tables(labels.assign(exposed="maybe"), verdicts)


def test_the_short_answer_says_what_was_left_out(calibrate: Run, tmp_path: Path) -> None:
    labels, verdicts = frames()
    labels["exposed"] = ["yes" if k == 3 else "" for k in range(N_LABELLED)]
    labels["site"] = ["a"] * (N_LABELLED - 1) + ["b"]
    human, judged = tmp_path / "h.csv", tmp_path / "v.csv"
    labels.to_csv(human, index=False)
    verdicts.to_csv(judged, index=False)
    files = ["--human", human, "--verdicts", judged, "--where", "site=a"]
    text = calibrate(*files).stdout
    line = (
        "Left out: 2 of 50 rows (1 not chosen by --where, first line 51; 1 not blind, first line 5)"
    )
    assert line in text
    assert text.index(line) < text.index("% succeed")
    shown = calibrate(*files, "--json")
    assert line in shown.stderr
    readings = data(shown)["reading"]
    assert [one["used"] for one in readings] == [48, N]
    assert readings[0]["words"] == {"outcome": {"pass": "success", "fail": "failure"}}


def test_a_later_label_is_a_new_event_and_the_old_one_stays(
    new_world: NewWorld, tmp_path: Path
) -> None:
    world = new_world()
    first, second = world.drawn[:2]

    def bring(outcome: str, at: str = "", **options: Any) -> Any:
        table = pd.DataFrame(
            [(first, "Ann", outcome, at)], columns=["trace_id", "annotator", "label", "updated_at"]
        )
        return import_labels(world.store, table, batch_id=world.batch_id, **options).stored

    def current() -> Any:
        return world.store.label_frame(world.batch_id).set_index("trace_id")["outcome"][first]

    assert len(bring("Complete", "2026-03-02").imported) == 1
    assert len(bring("ABANDONED", "2026-03-01").changed) == 1
    assert current() == "complete"
    assert bring("abandoned", "2026-03-03").replaced == ((first, "ann"),)
    assert current() == "abandoned"
    assert len(bring("abandoned", "2026-03-03").already_there) == 1
    # Back again, later; and without a time only on request.
    assert len(bring("complete", "2026-03-04").replaced) == 1
    assert len(bring("abandoned").changed) == 1
    assert len(bring("abandoned", replacing=True).replaced) == 1
    assert len(bring("complete", "2026-03-02", replacing=True).replaced) == 1
    assert current() == "complete"
    with world.store._db.read() as cursor:
        counted = cursor.execute("SELECT count(*) FROM label_event WHERE kind = 'label'")
        n = counted.fetchall()[0][0]
    assert n == 5
    with pytest.raises(InputError, match="two different labels of 'Ann'"):
        import_labels(
            world.store,
            pd.DataFrame({"trace_id": [second] * 2, "rater": "Ann", "label": OUTCOMES[:2]}),
            batch_id=world.batch_id,
        )


def test_verdicts_are_imported_by_their_words(new_world: NewWorld) -> None:
    world = new_world()
    ids = list(world.drawn[:4])
    table = pd.DataFrame({"id": ids, "verdict": ["PASS", "fail", "NA", ""]})
    done = import_verdicts(world.store, table, judge_id="j")
    frame = world.store.verdict_frame("j").set_index("trace_id")["outcome"]
    assert frame[ids].tolist() == ["complete", "partial_minus", "no_verdict", "no_verdict"]
    assert any("a pass was taken as complete" in note for note in done.reading.notes)
    assert done.reading.missing_words == {"NA": 1}
    with pytest.raises(InputError, match="verdict holds 0 and 1"):
        import_verdicts(world.store, table.assign(verdict=["1", "0", "1", "1"]), judge_id="k")


# What may be done to a table without changing what it says.


def _shuffled(table: pd.DataFrame, rng: np.random.Generator) -> pd.DataFrame:
    columns = rng.permutation(table.columns)
    return table.sample(frac=1, random_state=int(rng.integers(2**31)))[columns]


def _capitals(table: pd.DataFrame, rng: np.random.Generator) -> pd.DataFrame:
    change: list[Callable[[str], str]] = [str.upper, str.title, lambda s: f" {s} ", str.lower]
    words = [
        change[k](w)
        for k, w in zip(rng.integers(4, size=len(table)), table["outcome"], strict=True)
    ]
    return table.assign(outcome=words)


def _added(table: pd.DataFrame, rng: np.random.Generator) -> pd.DataFrame:
    n = len(table)
    further: dict[str, Any] = {
        "comment": [f"some words, and {k}" for k in range(n)],
        "date": ["2026-03-01"] * n,
        "majority": rng.choice(["pass", "fail"], n),
        "row_id": range(n),
        "status": rng.choice(["completed", "open"], n),
    }
    chosen = [name for name in further if rng.random() < 0.5]
    return table.assign(**{name: further[name] for name in chosen})


def _renamed(table: pd.DataFrame, rng: np.random.Generator) -> pd.DataFrame:
    outcome = rng.choice(["outcome", "label", "verdict", "rating", "Result", "score"])
    return table.rename(columns={"outcome": str(outcome)})


def test_a_table_says_the_same_however_it_is_written(tmp_path: Path) -> None:
    rng = np.random.default_rng(20)
    changes = (_capitals, _added, _shuffled, _renamed)
    n_read, questions = 0, []
    for _ in range(60):
        paths = []
        ids = str(rng.choice(["trace_id", "id", "run_id", "session_id", "Trace ID"]))
        for name, table in zip(("h.csv", "v.csv"), frames(), strict=True):
            for change in changes:
                if rng.random() < 0.6:
                    table = change(table, rng)
            table = table.rename(columns={"trace_id": ids})
            encoding = str(rng.choice(["utf-8", "utf-8-sig"]))
            table.to_csv(tmp_path / name, index=False, sep=str(rng.choice([",", ";", "\t"])),
                         encoding=encoding, quoting=csv.QUOTE_MINIMAL)  # fmt: skip
            paths.append(tmp_path / name)
        try:
            found = figures(*paths)
        except CalibrationError as error:
            questions.append(str(error))
            continue
        n_read += 1
        assert found == pytest.approx(EXPECTED)
    assert n_read > 45
    assert all("--column" in question or "--map" in question for question in questions)


def test_fitted_credit_reads_words_and_columns(asr: Run, tmp_path: Path) -> None:
    rows = [
        {"run": f"r{k}", "Class": name.upper(), "usefulness": f"{25 * j + k % 5}", "comment": "x"}
        for j, name in enumerate(("abandoned", "partial_minus", "partial_plus", "complete"))
        for k in range(9)
    ]
    rows.append({"run": "r", "Class": "NA", "usefulness": "3", "comment": ""})
    path = tmp_path / "f.jsonl"
    path.write_text("\n".join(map(json.dumps, rows)))
    text = asr("taxonomy", "fit-credit", path).stdout
    assert "Left out: 1 of 37 rows (1 without an outcome, first line 37: 'NA')" in text
    found = data(asr("taxonomy", "fit-credit", path, "--json"))
    assert found["n"] == 36
    assert found["reading"]["columns"]["class"] == "Class"
