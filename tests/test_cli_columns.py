"""Tables whose columns have other names, one table of many raters, exports of annotation tools."""

import csv
import json
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from calibration.agreement.inference import ORDINAL
from calibration.analyses.agreement.ratings import agreement_on, read_ratings
from calibration.tables.reading import ReadingOptions
from calibration.tables.rows import any_rows
from tests.cli_runs import FIXTURES, run

ANNOTATIONS = FIXTURES / "annotations"
N = 60


def written(path: Path, rows: Sequence[dict[str, Any]], *, delimiter: str = ",") -> Path:
    """Write a table as CSV (with a byte order mark), JSONL, JSON or Parquet, by its ending."""
    if path.suffix == ".parquet":
        pd.DataFrame(rows).to_parquet(path)
    elif path.suffix == ".jsonl":
        path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    elif path.suffix == ".json":
        path.write_text(json.dumps(rows))
    else:
        with path.open("w", encoding="utf-8-sig", newline="") as file:
            writer = csv.DictWriter(file, list(rows[0]), delimiter=delimiter)
            writer.writeheader()
            writer.writerows(rows)
    return path


def judged(k: int) -> tuple[str, int]:
    """Return what a person and a judge say of a trace: the judge passes one in five failures."""
    return "no" if k % 3 else "yes", int(k % 3 == 0 or k % 5 == 0)


HUMAN = [{"trace_id": f"t{k}", "outcome": judged(k)[0]} for k in range(N)]
VERDICTS = [
    {"trace_id": f"t{k}", "outcome": "yes" if judged(k)[1] else "no", "cost_usd": 0.1}
    for k in range(N)
]
SHEET = [
    {"Task ID": f"t{k}", "Cleo": judged(k)[0], "gpt 4": judged(k)[1], "USD": 0.1, "weight": "n/a"}
    for k in range(N)
]
CLASSES = ["--classes", "no,yes", "--credit", "no=0,yes=1", "--brief", "--json"]


@pytest.mark.parametrize("name", ["a.csv", "a.jsonl", "a.json", "a.parquet"])
def test_one_table_gives_what_two_files_give(tmp_path: Path, name: str) -> None:
    two = run(
        "calibrate", "--human", written(tmp_path / "human.csv", HUMAN),
        "--verdicts", written(tmp_path / "verdicts.csv", VERDICTS), *CLASSES,
    )  # fmt: skip
    one = run(
        "calibrate", "--table", written(tmp_path / name, SHEET, delimiter=";"),
        "--column", "trace_id=Task ID", "--column", "human=Cleo", "--column", "verdict=gpt 4",
        "--column", "cost_usd=USD", "--column", "weight=", "--map", "1=yes,0=no", *CLASSES,
    )  # fmt: skip
    expected, found = json.loads(two.stdout), json.loads(one.stdout)
    assert found["estimates"] == expected["estimates"]
    assert found["confusion"] == expected["confusion"]
    # 20 of 60 passed by people, 28 by the judge.
    assert sum(judged(k)[1] for k in range(N)) == 28


def test_two_files_share_the_names_of_their_columns(tmp_path: Path) -> None:
    human = [{"run": f"t{k}", "label": judged(k)[0]} for k in range(N)]
    verdicts = [{"trace_id": row["trace_id"], "gpt": row["outcome"]} for row in VERDICTS]
    files = (
        "calibrate", "--human", written(tmp_path / "human.csv", human),
        "--verdicts", written(tmp_path / "verdicts.jsonl", verdicts),
    )  # fmt: skip
    names = ["trace_id=run", "human=label", "verdict=gpt"]
    found = run(*files, *(f"--column={one}" for one in names), *CLASSES)
    same = run(
        "calibrate", "--human", written(tmp_path / "a.csv", HUMAN),
        "--verdicts", written(tmp_path / "b.csv", verdicts), "--column=verdict=gpt", *CLASSES,
    )  # fmt: skip
    assert json.loads(found.stdout)["estimates"] == json.loads(same.stdout)["estimates"]
    said = run(*files, *(f"--column={one}" for one in [*names[:2], "verdict=gtp"]), code=2).stderr
    assert "column 'gtp' (for verdict) is not there" in said
    assert "did you mean 'gpt'?" in said


def test_another_column_is_another_judge(tmp_path: Path) -> None:
    rows = [row | {"old judge": int(judged(k)[0] == "yes")} for k, row in enumerate(SHEET)]
    told = run(
        "calibrate", "--table", written(tmp_path / "a.csv", rows), "--column", "trace_id=Task ID",
        "--column", "human=Cleo", "--column", "verdict=gpt 4", "--column", "weight=",
        "--map", "1=yes,0=no", "--against", "old judge", "--json",
        "--classes", "no,yes", "--credit", "no=0,yes=1",
    )  # fmt: skip
    drift = json.loads(told.stdout)["drift"]
    assert [drift["before"], drift["after"]] == ["old judge", "gpt 4"]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["label=verdct"], "did you mean 'verdict'?"),
        (["lable=verdict"], "no name 'lable' is read; there are item, rater, label, "),
        (["label=verdict", "rater=verdict"], "the column 'verdict' has two names"),
        (["label=verdict", "label=by"], "'label' is given twice"),
        (["label"], "must be NAME=VALUE"),
    ],
)
def test_a_wrong_name_is_refused(tmp_path: Path, options: list[str], message: str) -> None:
    path = written(tmp_path / "a.jsonl", [{"item": "t1", "by": "Ann", "verdict": "yes"}])
    said = run("agreement", path, *(f"--column={one}" for one in options), code=2).stderr
    assert message in said


TRIALS: list[dict[str, Any]] = [
    {"Task ID": f"t{k // 4}", "n": k % 4, "passed": k % 3 == 0} for k in range(40)
]
TASKS = [{"Task": f"t{k}", "level": "hard" if k % 2 else "easy"} for k in range(10)]
RUN = {"id": "a", "flow": "faq", "class": "complete", "usd": 0.1}


@pytest.mark.parametrize(
    ("command", "rows", "names", "missing"),
    [
        (["trials"], TRIALS, ["task_id=Task ID", "trial=n", "outcome=passed"], "task_id"),
        (["tasks", "audit"], TRIALS, ["task_id=Task ID", "outcome=passed"], "task_id"),
        (
            ["plan", "trials", "--half-width", ".05"],
            TRIALS,
            ["task_id=Task ID", "outcome=passed"],
            "task_id",
        ),
        (
            ["reliability"],
            [row | {"confidence": 0.5 + row["n"] / 10} for row in TRIALS],
            ["task_id=Task ID", "trial=n", "outcome=passed"],
            "task_id",
        ),
        (
            ["tools"],
            [{"chat": f"c{k}", "turn": 1, "ok": k % 2} for k in range(20)],
            ["conversation_id=chat", "interaction=turn", "answer_correct=ok"],
            "conversation_id",
        ),
        (
            ["layers"],
            [{"run": f"r{k}", "kind": "citation", "by": "user", "t": k} for k in range(9)],
            ["trace_id=run", "failure_type=kind", "layer=by", "task_id=t"],
            "trace_id",
        ),
        (
            ["taxonomy", "fit-credit"],
            [
                {"label": name, "stars": 20 * k + j}
                for k, name in enumerate(("abandoned", "partial_minus", "partial_plus", "complete"))
                for j in range(9)
            ],
            ["class=label", "usefulness=stars"],
            "class",
        ),
        (
            ["report"],
            [RUN | {"id": f"r{k}"} for k in range(30)],
            ["trace_id=id", "workflow=flow", "outcome=class", "cost_usd=usd"],
            "trace_id",
        ),
    ],
)
def test_every_command_with_a_table_takes_other_names(
    tmp_path: Path, command: list[str], rows: list[dict[str, Any]], names: list[str], missing: str
) -> None:
    path = written(tmp_path / "table.csv", rows)
    found = run(*command, path, *(f"--column={name}" for name in names), "--json")
    ours = [
        {{of.split("=")[1]: of.split("=")[0] for of in names}.get(k, k): v for k, v in row.items()}
        for row in rows
    ]
    same = run(*command, written(tmp_path / "ours.csv", ours), "--json")
    as_is = json.loads(same.stdout.replace("ours.csv", "table.csv"))
    told = json.loads(found.stdout)
    for key in ("fingerprint", "origin", "notes", "reading", "success_source", "basis"):
        as_is.pop(key, None)
        told.pop(key, None)
    assert _without(told, "sha256") == _without(as_is, "sha256")
    said = run(*command, path, f"--column={missing}=nothing like it", code=2).stderr
    assert "'nothing like it'" in said
    assert f"(for {missing}) is not there; there are " in said


def _without(value: Any, key: str) -> Any:
    """Leave out what is said of the file itself."""
    if isinstance(value, dict):
        left = (key, "fingerprint", "bytes", "size")
        return {k: _without(v, key) for k, v in value.items() if k not in left}
    return [_without(one, key) for one in value] if isinstance(value, list) else value


def test_a_name_goes_for_the_tables_that_have_its_column(tmp_path: Path) -> None:
    nameless = [{"no": row["Task"], "level": row["level"]} for row in TASKS]
    runs, tasks = written(tmp_path / "a.csv", TRIALS), written(tmp_path / "b.csv", nameless)
    names = ["task_id=Task ID", "outcome=passed", "difficulty=level"]
    given = [f"--column={name}" for name in names]
    said = run("trials", runs, "--tasks", tasks, *given, code=2).stderr
    assert "no column names the task; there are no, " in said
    tasks = written(
        tmp_path / "b.csv", [{"Task ID": r["Task"], "level": r["level"]} for r in TASKS]
    )
    found = json.loads(run("trials", runs, "--tasks", tasks, *given, "--json").stdout)
    assert {"easy", "hard"} <= set(re.findall("[a-z]+", json.dumps(found)))


def test_raters_in_columns_are_the_ratings_in_rows(tmp_path: Path) -> None:
    """Twenty raters of ordinal scores with blanks, as a sheet and as one row a rating."""
    score = {
        (k, r): "" if (k * r) % 7 == 6 else str(1 + (k + (r % 5 == 0)) % 5)
        for k in range(12)
        for r in range(20)
    }
    wide = [
        {"note": "x", "Item no": f"i{k}", **{f"rater {r}": score[k, r] for r in range(20)}}
        for k in range(12)
    ]
    long = [{"item": f"i{k}", "rater": f"rater {r}", "label": of} for (k, r), of in score.items()]
    options = ["--weights", ORDINAL, "--json"]
    found = run(
        "agreement", written(tmp_path / "wide.csv", wide, delimiter=";"), "--raters", "rater *",
        "--column", "item=Item no", *options,
    )  # fmt: skip
    same = run("agreement", written(tmp_path / "long.csv", long), *options)
    assert _without(json.loads(found.stdout), "reading") == _without(
        json.loads(same.stdout), "reading"
    )
    # Without a column of items each row is one.
    frame = pd.DataFrame(wide).drop(columns=["Item no", "note"])
    alone = read_ratings(frame, ReadingOptions(raters=("rater *",)))
    assert alone.items == tuple(str(k) for k in range(1, 13))
    study = agreement_on(alone, weights=ORDINAL).study
    named = json.loads(found.stdout)["coefficients"]["krippendorff_alpha"]["value"]
    assert study.alpha.value == pytest.approx(named)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--raters", "Ann,Bob"], "'Bob' (of a rater) is not there; there are id, Ann, Bo"),
        (["--raters", "Ann,Ann"], "the rater 'Ann' is named twice"),
        (["--raters", "Ann,,Bo"], "a name is empty"),
        (["--raters", "Ann"], "two raters or more; Ann is one"),
        (["--raters", "Ann,Bo", "--column", "rater=id"], "give one"),
        (["--raters", "Ann,Bo", "--map", "maybe=yes"], "no 'maybe'"),
    ],
)
def test_raters_that_cannot_be_read_are_named(
    tmp_path: Path, options: list[str], message: str
) -> None:
    rows = [{"id": k, "Ann": "yes", "Bo": "no" if k else "yes"} for k in range(3)]
    assert message in run("agreement", written(tmp_path / "a.csv", rows), *options, code=2).stderr


def test_a_name_with_a_comma_is_quoted(tmp_path: Path) -> None:
    rows = [
        {"Lee, Ann": "no" if k % 2 else "yes", "Bo": "no" if k % 3 else "yes"} for k in range(9)
    ]
    path = written(tmp_path / "a.csv", rows)
    found = run("agreement", path, "--raters", '"Lee, Ann", Bo', "--json")
    assert "Lee, Ann" in found.stdout


def test_values_of_raters_are_taken_as_one_another(tmp_path: Path) -> None:
    rows = [{"a": judged(k)[0], "b": judged(k)[1]} for k in range(N)]
    found = run(
        "agreement", written(tmp_path / "a.csv", rows), "--raters", "a,b", "--map", "1=yes,0=no",
        "--json",
    )  # fmt: skip
    assert json.loads(found.stdout)["classes"] == ["no", "yes"]


@pytest.mark.parametrize("name", ["label_studio.json", "argilla.jsonl", "argilla.json"])
def test_an_export_of_an_annotation_tool_is_rows_of_labels(name: str) -> None:
    rows = [row for _, row in any_rows(ANNOTATIONS / name)]
    given = [row["verdict"] for row in rows if "verdict" in row]
    assert sorted(given) == ["Partly"] * 3 + ["Right"] * 6 + ["Wrong"] * 2
    assert sum(row["exposed"] == "yes" for row in rows) == 2
    skipped = [row for row in rows if row.get("outcome") == ""]
    assert len(skipped) == (0 if name == "argilla.json" else 1)
    assert len({row["reviewer"] for row in rows}) == 2
    if name == "argilla.jsonl":
        path = ANNOTATIONS / name
        frame = pd.DataFrame([json.loads(line) for line in path.read_text().splitlines()])
        assert [row["reviewer"] for _, row in any_rows(frame)] == [r["reviewer"] for r in rows]


@pytest.mark.parametrize(
    "row",
    [
        {"data": {}, "annotations": [{"result": "x"}]},
        {"data": [], "annotations": []},
        {"annotations": None, "trace_id": "a"},
        {"responses": 3, "fields": {}},
        {"fields": {"a": 1}, "responses": {"q": "x"}},
        {"data": {"a": 1}, "annotations": [{"result": [3, {"value": 4}], "completed_by": [1]}]},
        {"q.responses.users": 3, "q.responses": {"a": 1}},
        {"fields": {}, "responses": [{"values": {"q": None}}, 7]},
    ],
)
def test_what_looks_like_an_export_and_is_none_is_no_crash(row: dict[str, Any]) -> None:
    found = list(any_rows(pd.DataFrame([pd.Series(row, dtype=object)])))
    assert all(isinstance(one, dict) for _, one in found)
