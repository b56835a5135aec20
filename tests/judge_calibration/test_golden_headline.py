"""The headline through `asr calibrate`, beside values of an implementation written apart."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy import special, stats

from tests.cli_runs import run

CASES = json.loads((Path(__file__).parents[1] / "golden" / "headline.json").read_text("utf-8"))
CLOSE = 1e-9
# Labelled tasks of unequal size; few_effective_tasks has values by the present rule.
BY_SIZE = ("tasks_repeated", "tasks_and_costs")


def calibrated(case: dict[str, Any], folder: Path) -> dict[str, Any]:
    """Return the JSON of `asr calibrate` on the files of a case."""
    human, verdicts = folder / "human.csv", folder / "verdicts.csv"
    human.write_text(case["human_csv"], "utf-8")
    verdicts.write_text(case["verdicts_csv"], "utf-8")
    options = case["options"]
    more = ["--ceiling", str(options["ceiling"])] if "ceiling" in options else []
    if "target" in options:
        more += ["--estimand", options["target"].replace("_", "-")]
    found: dict[str, Any] = json.loads(
        run("calibrate", "--human", str(human), "--verdicts", str(verdicts), *more, "--json").stdout
    )
    return found


def differing(found: dict[str, Any], expected: dict[str, Any]) -> list[str]:
    """Return the fields of an estimate that are not as expected."""
    away = [
        f"{name}: {found[name]!r}, expected {expected[name]!r}"
        for name in ("value", "se", "df")
        if found[name] != pytest.approx(expected[name], abs=CLOSE, rel=CLOSE)
    ]
    if found["interval"] != pytest.approx(expected["interval"], abs=CLOSE):
        away.append(f"interval: {found['interval']!r}, expected {expected['interval']!r}")
    if "any_time" in expected:
        asked = expected["any_time"]
        if found["any_time"]["factor"] != pytest.approx(asked["factor"], abs=CLOSE):
            away.append("any_time: factor")
        if found["any_time"]["interval"] != pytest.approx(asked["interval"], abs=CLOSE):
            away.append("any_time: interval")
    return away


def by_size(
    expected: dict[str, Any], found: dict[str, Any], n: int | None = None
) -> dict[str, Any]:
    """Return a value with the error and df of tasks of unequal size, and the limits by these.

    Both are a little more careful than where all tasks count alike. `n` labels: of a share, which
    has exact limits at its effective number of labels.
    """
    value, se, df = expected["value"], found["se"], found["df"]
    assert expected["se"] * (1 - CLOSE) <= se < 1.01 * expected["se"]
    assert 0.8 * expected["df"] < df <= expected["df"] * (1 + CLOSE)
    if n is not None:
        effective = value * (1 - value) / se**2
        effective *= (stats.t.ppf(0.975, n - 1) / stats.t.ppf(0.975, df)) ** 2
        hits, misses = effective * value, effective * (1 - value)
        limits = stats.beta.ppf([0.025, 0.975], [hits, hits + 1], [misses + 1, misses])
        return {"value": value, "se": se, "df": df, "interval": np.asarray(limits).tolist()}
    reach = stats.t.ppf(0.975, df) * se / (value * (1 - value))
    limits = special.expit(special.logit(value) + np.array([-reach, reach]))
    return {"value": value, "se": se, "df": df, "interval": np.asarray(limits).tolist()}


@pytest.mark.parametrize("case", CASES, ids=[case["name"] for case in CASES])
def test_every_value(case: dict[str, Any], tmp_path: Path) -> None:
    found, expected = calibrated(case, tmp_path), case["expected"]
    assert (found["n_labels"], found["n_production"]) == (expected["n"], expected["N"])
    rates = [
        (found["estimates"]["post_stratified"], expected["net"]),
        (found["estimates_gross"]["post_stratified"], expected["gross"]),
        (found["estimates"]["human_only"], expected["human_only"]),
    ]
    if case["name"] in BY_SIZE:
        rates = [(one, by_size(other, one)) for one, other in rates]
    shares = found["class_shares"]["post_stratified"]
    of_classes = [(shares[asked["class"]], asked) for asked in expected["class_shares"]]
    if case["name"] in BY_SIZE:
        of_classes = [(one, by_size(other, one, expected["n"])) for one, other in of_classes]
    rates += of_classes
    assert [differing(one, other) for one, other in rates] == [[]] * len(rates)
    composed = expected["composition"]
    assert found["composition"]["p"] == pytest.approx(composed["p"], rel=CLOSE)
    assert found["composition"]["p_holm"] == pytest.approx(composed["p_holm"], rel=CLOSE)
    assert (found["composition"]["warned"], found["composition"]["refused"]) == ([], [])
    if "two_phase" in expected:
        asked, given = expected["two_phase"], found["two_phase"]
        assert differing(given, asked) == []
        for name in ("correction", "first_phase", "overlap"):
            assert given[name] == pytest.approx(asked[name], abs=CLOSE)
        assert given["status"].startswith("provisional: the traces with two labels")
    if "skips" in expected:
        asked = expected["skips"]
        assert found["skipped"] == asked["skipped"]
        for name in ("lowest", "highest", "lower_limit", "upper_limit"):
            assert found["skips"][name] == pytest.approx(asked[name], abs=CLOSE)
