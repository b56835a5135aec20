"""Ratings from files: what is read, what is refused, and the outside values through the command."""

import csv
import json
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
from click.testing import CliRunner

from calibration.analyses.agreement.ratings import agreement_on, read_ratings
from calibration.cli.main import main
from calibration.errors import InputError
from tests.agreement.golden import classes_of, codes_of, entries
from tests.classes import OUTCOMES

WIDE = "item,ann,bob,cy\na,x,x,\nb,y,x,y\nc,,,y\nd,,,\n"
LONG = "item,rater,label\na,ann,x\na,bob,x\nb,ann,y\nb,bob,x\nb,cy,y\nc,cy,y\nd,ann,\n"


def written(tmp_path: Path, text: str, name: str = "ratings.csv") -> Path:
    path = tmp_path / name
    path.write_text(text, encoding="utf-8")
    return path


def asked(*words: str) -> tuple[int, dict[str, Any]]:
    done = CliRunner().invoke(main, ["agreement", *words, "--json"])
    return done.exit_code, json.loads(done.stdout)


GOLDEN = entries(
    "percent_agreement", "krippendorff_alpha", "gwet_ac", "fleiss_kappa", "conger_kappa",
    "brennan_prediger", "scott_pi", "cohen_kappa",
)  # fmt: skip


@pytest.mark.parametrize("entry", GOLDEN[:: max(1, len(GOLDEN) // 10)])
@pytest.mark.long
def test_the_command_gives_the_outside_value(entry: dict[str, Any], tmp_path: Path) -> None:
    codes, _ = codes_of(entry)
    classes = [str(c).replace(",", " ") for c in classes_of(entry)]
    path = tmp_path / "ratings.csv"
    with path.open("w", newline="", encoding="utf-8") as handle:
        writer = csv.writer(handle)
        writer.writerow(["item", *(f"r{k}" for k in range(codes.shape[1]))])
        for item, row in enumerate(codes.tolist()):
            writer.writerow([f"i{item}", *("" if c < 0 else classes[c] for c in row)])
    weights = entry["weights"]
    if isinstance(weights, list):
        matrix = "\n".join(",".join(map(str, row)) for row in weights)
        weights = str(written(tmp_path, matrix, "weights.csv"))
    code, found = asked(str(path), "--classes", ",".join(classes), "--weights", weights)
    result = found["coefficients"][entry["coefficient"]]
    if entry["expected"] is None:
        assert (code, result["value"]) == (1, None)
        assert result["status"].startswith("not_estimable: ")
    else:
        assert result["value"] == pytest.approx(entry["expected"], abs=entry["tolerance"])


def test_long_wide_json_and_parquet_are_the_same_ratings(tmp_path: Path) -> None:
    wide = read_ratings(written(tmp_path, WIDE))
    assert (wide.items, wide.raters, wide.classes) == (
        ("a", "b", "c", "d"), ("ann", "bob", "cy"), ("x", "y"),
    )  # fmt: skip
    assert wide.codes.tolist() == [[0, 0, -1], [1, 0, 1], [-1, -1, 1], [-1, -1, -1]]
    long = read_ratings(written(tmp_path, LONG))
    assert (long.items, long.raters, long.codes.tolist()) == (
        wide.items, wide.raters, wide.codes.tolist(),
    )  # fmt: skip
    frame = pd.read_csv(tmp_path / "ratings.csv")
    frame.to_parquet(tmp_path / "ratings.parquet")
    assert read_ratings(tmp_path / "ratings.parquet").codes.tolist() == wide.codes.tolist()
    lines = "\n".join(json.dumps(row) for row in frame.dropna().to_dict("records"))
    again = read_ratings(written(tmp_path, lines, "ratings.jsonl"))
    assert again.codes.tolist() == wide.codes[:3].tolist()


def test_numbers_are_classes_in_order_of_value(tmp_path: Path) -> None:
    path = written(tmp_path, "item,a,b\n1,10,9\n2,2,10\n3,9,9\n")
    assert read_ratings(path).classes == ("2", "9", "10")
    pd.DataFrame({"item": [1, 2], "a": [1.0, None], "b": [2.0, 1.0]}).to_parquet(
        tmp_path / "r.parquet"
    )
    assert read_ratings(tmp_path / "r.parquet").classes == ("1", "2")


@pytest.mark.parametrize(
    ("text", "options", "says"),
    [
        (LONG + "a,ann,y\n", {}, r"item a has two different ratings of ann \(lines 2, 9\)"),
        (WIDE, {"classes": ["x"]}, "line 3: 'y' is not one of the classes x"),
        (WIDE, {"classes": ["x", "x", "y"]}, "each once"),
        ("item,a\n", {}, "holds no ratings"),
    ],
)
def test_what_is_no_table_of_ratings_is_refused(
    tmp_path: Path, text: str, options: dict[str, Any], says: str
) -> None:
    with pytest.raises(InputError, match=says):
        read_ratings(written(tmp_path, text), **options)


@pytest.mark.parametrize(
    ("weights", "says"),
    [
        ("krippendorff_interval", "needs classes that are numbers"),
        ("nonsense", "must be a CSV file or one of identity"),
        ("matrix", "weights must be symmetric"),
        ("far", "not all told apart"),
    ],
)
def test_weights_that_are_none_are_refused(tmp_path: Path, weights: str, says: str) -> None:
    ratings = read_ratings(written(tmp_path, WIDE))
    if weights == "matrix":
        weights = str(written(tmp_path, "1,0.5\n0.2,1\n", "weights.csv"))
    if weights == "far":
        ratings = read_ratings(written(tmp_path, "item,a,b\n1,1,1\n2,2,1\n3,1e9,1\n"))
        weights = "krippendorff_interval"
    with pytest.raises(InputError, match=says):
        agreement_on(ratings, weights=weights)


def many(tmp_path: Path, classes: list[str]) -> Path:
    rows = ["item,rater,label,task,week"]
    for k in range(60):
        first, second = classes[k % len(classes)], classes[(k + (k % 7 == 0)) % len(classes)]
        of_item = f"t{k // 3},2026-W{40 + k // 30}"
        rows += [f"i{k},a,{first},{of_item}", f"i{k},b,{second},{of_item}"]
    return written(tmp_path, "\n".join(rows) + "\n")


def test_weeks_and_clusters_are_columns(tmp_path: Path) -> None:
    path = str(many(tmp_path, ["a", "b", "c"]))
    _, found = asked(path, "--by", "week", "--cluster", "task")
    assert [group["n_items"] for group in found["per_week"].values()] == [30, 30]
    assert list(found["per_week"]) == ["2026-W40", "2026-W41"]
    alpha = found["coefficients"]["krippendorff_alpha"]
    assert (alpha["n"], alpha["method"][-10:]) == (20, "by cluster")
    _, plain = asked(path)
    assert plain["coefficients"]["krippendorff_alpha"]["value"] == pytest.approx(alpha["value"])
    assert plain["pairwise"][0]["n_shared"] == 60


@pytest.mark.parametrize(
    ("text", "words", "says"),
    [
        (WIDE, ["--by", "week"], "has no column 'week'"),
        (WIDE, ["--batch", "b"], "--batch is for the store, not for a FILE"),
        ("", ["--where", "a=b"], "--where is for a FILE"),
        ("item,rater,label,task\\na,x,1,t\\na,y,1,u\\n", ["--cluster", "task"], "another before"),
        (
            "item,rater,label,task\\na,x,1,\\na,y,1,\\n",
            ["--cluster", "task"],
            "field 'task' is missing",
        ),
        (WIDE, ["--interval", "gwet", "--cluster", "cy"], "is over items"),
    ],
)
def test_columns_that_are_none_are_refused(
    tmp_path: Path, text: str, words: list[str], says: str
) -> None:
    path = written(tmp_path, text.replace("\\n", "\n"))
    done = CliRunner().invoke(main, ["agreement", *([str(path)] if text else []), *words])
    assert (done.exit_code, says in done.stderr) == (2, True)


def test_slices_are_shown_as_asked(tmp_path: Path) -> None:
    path = str(many(tmp_path, list(OUTCOMES)))
    heads = {
        "class": "Per class", "node": "Per question", "reviewer": "Use of the", "week": "Per week",
    }  # fmt: skip
    for by in heads:
        shown = CliRunner().invoke(main, ["agreement", path, "--by", by]).stdout
        assert [word for word, head in heads.items() if head in shown] == [by]
