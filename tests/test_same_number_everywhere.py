"""The same table gives the same number in the command line and in the library."""

import json
from collections.abc import Callable, Mapping
from typing import Any

import pandas as pd
import pytest

from calibration import agent_success_rate, calibrate, compare, measure_agreement, pass_at_k
from calibration.api import Result, as_parameters
from calibration.errors import InputError, LeftOutError
from tests.cli_runs import Run

N = 60
CLASSES = ("complete", "partial_plus", "abandoned", "hallucinated")
Table = dict[str, list[Any]]


def of(value: Callable[[int], Any]) -> list[Any]:
    return [value(k) for k in range(N)]


IDS = {"id": of(lambda k: f"r{k:03d}")}
# Tables of runs as strangers have them, the options that read them, and the same in the library.
RUNS: dict[str, tuple[Table, list[str], dict[str, Any]]] = {
    "classes": (
        {
            "trace_id": IDS["id"],
            "workflow": of(lambda k: ("support", "research")[k % 2]),
            "outcome": of(lambda k: CLASSES[k * 7 % 4]),
            "cost_usd": of(lambda k: k / 20),
        },
        [],
        {},
    ),
    "capitals": (IDS | {"outcome": of(lambda k: ("Complete", " complete ", "ABANDONED")[k % 3])},
                 [], {}),
    "pass and fail": (IDS | {"passed": of(lambda k: k % 3 > 0), "cost": of(lambda k: k / 9)},
                      [], {}),
    "one is missing": (IDS | {"success": of(lambda k: "NA" if k == 9 else ("yes", "no")[k % 2])},
                       [], {}),
    "words": (IDS | {"outcome": of(lambda k: ("done", "gave up")[k % 5 > 2])},
              ["--map", "done=pass,gave up=fail"], {"words": {"done": "pass", "gave up": "fail"}}),
    "grades": (IDS | {"score": of(lambda k: k * 7 % 5 + 1)}, ["--scale", "1-5"],
               {"scale": (1, 5)}),
    "fractions": (IDS | {"score": of(lambda k: k * 7 % 5 / 4)},
                  ["--scale", "0-1", "--pass-at", "0.5"], {"scale": (0, 1), "pass_at": 0.5}),
    "a column": (IDS | {"golden": of(lambda k: ("pass", "fail")[k % 4 == 0])},
                 ["--column", "outcome=golden"], {"columns": {"outcome": "golden"}}),
    "one arm": (IDS | {"passed": of(lambda k: k % 3 > 0), "arm": of(lambda k: "ab"[k % 2])},
                ["--where", "arm=a"], {"where": {"arm": "a"}}),
    "tasks": ({"task": of(lambda k: f"t{k // 4}"), "correct": of(lambda k: k * 5 % 7 > 2)},
              [], {}),
    "many left out": (IDS | {"outcome": of(lambda k: "pending" if k % 5 == 0 else "passed")},
                      ["--max-left-out", "0.4"], {"max_left_out": 0.4}),
}  # fmt: skip


def estimate(value: Any) -> tuple[float, float, float]:
    low, high = value["interval"]
    return value["value"], low, high


def in_library(found: Result[Any], name: str) -> tuple[float, float, float]:
    estimated = found.estimates[name]
    assert estimated.value is not None
    assert estimated.interval is not None
    return estimated.value, *estimated.interval


def same_figures(found: Result[Any], printed: Mapping[str, Any]) -> None:
    """Assert that all figures are equal; where the tables come from is another matter."""
    own = json.loads(json.dumps(found.to_dict()))
    apart = {name for name in own.keys() & printed.keys() if own[name] != printed[name]}
    # The command adds what it is told of several judges and of the answers of the judge.
    assert own.keys() <= printed.keys()
    assert len(own) > len(apart) + 3
    assert apart <= {
        "human_file",
        "verdict_file",
        "source",
        "reading",
        "origin",
        "inputs",
        "fingerprint",
        "labels",
        "verdicts",
    }


@pytest.mark.parametrize("kind", RUNS)
def test_report(asr: Run, kind: str) -> None:
    table, options, parameters = RUNS[kind]
    pd.DataFrame(table).to_csv("runs.csv", index=False)
    printed = json.loads(asr("report", "runs.csv", *options, "--json").stdout)
    found = agent_success_rate(pd.DataFrame(table), **parameters)
    assert in_library(found, "asr") == pytest.approx(estimate(printed["asr"]), abs=1e-9)
    assert found.to_dict()["asr"]["value"] == pytest.approx(printed["asr"]["value"], abs=1e-9)
    assert found.to_dict()["reading"]["left_out_share"] == printed["reading"]["left_out_share"]
    same_columns(found.to_dict()["reading"], printed["reading"])


def same_columns(one: Mapping[str, Any], other: Mapping[str, Any]) -> None:
    for name in ("rows", "used", "columns", "rubric", "scale", "bounds", "not_read"):
        assert one[name] == other[name], name


@pytest.mark.parametrize("kind", ["classes", "pass and fail", "words", "grades", "tasks"])
def test_compare(asr: Run, kind: str) -> None:
    table, options, parameters = RUNS[kind]
    before, after = pd.DataFrame(table), pd.DataFrame(table).iloc[5:]
    before.to_csv("before.csv", index=False)
    after.to_csv("after.csv", index=False)
    words = ["compare", "before.csv", "after.csv", *options, "--json"]
    printed = json.loads(asr(*words).stdout)
    found = compare(before, after, **parameters)
    assert found.to_dict()["difference"] == printed["difference"]
    assert isinstance(found.reading, tuple)
    assert [reading.used for reading in found.reading] == [N, N - 5]


@pytest.mark.parametrize("kind", ["tasks"])
def test_trials(asr: Run, kind: str) -> None:
    table, options, parameters = RUNS[kind]
    pd.DataFrame(table).to_csv("trials.csv", index=False)
    printed = json.loads(asr("trials", "trials.csv", *options, "--json").stdout)
    found = pass_at_k(pd.DataFrame(table), **parameters)
    own = found.to_dict()["pass_at_k"]
    assert own
    assert own == {k: printed["pass_at_k"][k] for k in own}


def test_agreement(asr: Run) -> None:
    table = pd.DataFrame({"item": IDS["id"], "rater_1": of(lambda k: CLASSES[k % 3]),
                          "rater_2": of(lambda k: CLASSES[k * 7 % 9 % 3].upper())})  # fmt: skip
    table.to_csv("ratings.csv", index=False)
    printed = json.loads(asr("agreement", "ratings.csv", "--json").stdout)
    same_figures(measure_agreement(table), printed)


def test_calibrate(asr: Run) -> None:
    verdicts = pd.DataFrame(IDS | {"judge_verdict": of(lambda k: ("pass", "fail")[k % 3 == 0])})
    labels = pd.DataFrame(IDS | {"human_label": of(lambda k: k % 4 > 0)}).iloc[:40]
    labels.to_csv("labels.csv", index=False)
    verdicts.to_csv("verdicts.csv", index=False)
    words = ["calibrate", "--human", "labels.csv", "--verdicts", "verdicts.csv", "--json"]
    printed = json.loads(asr(*words).stdout)
    same_figures(calibrate(labels, verdicts), printed)


@pytest.mark.parametrize(
    ("table", "parameter"),
    [
        (IDS | {"golden": of(lambda k: ("pass", "fail")[k % 2])}, 'columns={"outcome": "golden"}'),
        (IDS | {"label": of(lambda k: k % 2)}, 'words={"1": "pass", "0": "fail"}'),
        (IDS | {"score": of(lambda k: k % 5 + 1)}, "scale=(1, 5)"),
        (IDS | {"score": of(lambda k: k % 5 / 4)}, "pass_at=0.5"),
        (IDS | {"outcome": of(lambda k: "pending" if k % 5 == 0 else "pass")}, "max_left_out="),
        (IDS | {"passed": 1, "cost": "1,234"}, 'decimal="comma"'),
    ],
)
def test_an_error_names_parameters(table: Table, parameter: str) -> None:
    with pytest.raises((InputError, LeftOutError)) as error:
        agent_success_rate(pd.DataFrame(table))
    assert parameter in str(error.value)
    assert "--" not in str(error.value)


@pytest.mark.parametrize(
    ("message", "translated"),
    [
        ("--column outcome=x", 'columns={"outcome": "x"}'),
        ("--column cost_usd= leaves them out", 'columns={"cost_usd": None} leaves them out'),
        ("--column item=,label= for", 'columns={"item": ..., "label": ...} for'),
        ("--map a=b", 'words={"a": "b"}'),
        ("--map ?= takes", 'words={"?": ""} takes'),
        ("--where c=v", 'where={"c": "v"}'),
        ("--where 'my arm'='a b'", 'where={"my arm": "a b"}'),
        ("--scale 1-5,", "scale=(1, 5),"),
        ("--scale 0-1 --pass-at 0.5", "scale=(0, 1) pass_at=0.5"),
        ("--max-left-out 0.4 reports", "max_left_out=0.4 reports"),
        ("--raters A,B", 'raters=["A", "B"]'),
        ("--decimal comma or --decimal point", 'decimal="comma" or decimal="point"'),
        ("--dates dmy", 'dates="dmy"'),
        ("--map: no 'x'", "words: no 'x'"),
    ],
)  # fmt: skip
def test_options_become_parameters(message: str, translated: str) -> None:
    assert as_parameters(message) == translated
