"""Stores on which some number cannot be given: it is refused in words, never NaN or certainty."""

import json
import re
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import jsonschema
import pytest

from calibration.analyses.agreement.analysis import analyse_agreement
from calibration.analyses.judge.calibration import JudgeCalibration, analyse_judge
from calibration.analyses.judge.report import JudgeReport
from calibration.analyses.success_rate.from_store import (
    StoreRates,
    rates_of_store,
    report_with_work,
)
from calibration.analyses.success_rate.report import ReportOptions
from calibration.errors import CalibrationError, InputError, MixedDataError
from calibration.reporting import to_json
from calibration.reporting.document import text_lines
from calibration.reporting.sections import agreement as agreement_text
from calibration.reporting.sections import judge as judge_sections
from calibration.reporting.sections.success_rate import document
from tests.analyses.conftest import NewWorld
from tests.analyses.worlds import World, ids, known
from tests.classes import OUTCOMES

FEW = ReportOptions(n_resamples=100)
C, A = "complete", "abandoned"
UNDEFINED = re.compile(r"\b(?:[Nn]a[Nn]|inf|None)\b")


def check_shown(world: World, **options: Any) -> tuple[StoreRates, JudgeCalibration | None]:
    """Print and serialise every result; nothing undefined may come out as a number."""
    agreed = analyse_agreement(world.store)
    made = report_with_work(world.store, options=replace(FEW, **options))
    report, result = made.report, made.rates
    printed = [*text_lines(agreement_text.agreement(agreed)), *text_lines(document(report))]
    data = [to_json.data(agreed), to_json.data(report)]
    jsonschema.Draft202012Validator(to_json.schema()).validate(data[1])
    if result.judge is not None:
        printed += text_lines(judge_sections.document(JudgeReport(calibration=result.judge)))
        data.append(to_json.data(result.judge))
    for line in printed:
        assert not UNDEFINED.search(line), line
    for item in data:
        check_json(json.loads(json.dumps(item, allow_nan=False)))
    return result, result.judge


def check_json(item: object) -> None:
    """Hold every estimate to the contract: null with a status, or a value in its interval."""
    if isinstance(item, dict):
        if {"value", "interval", "status"} <= item.keys():
            check_estimate(item)
        for inner in item.values():
            check_json(inner)
    elif isinstance(item, list):
        for inner in item:
            check_json(inner)


def check_estimate(item: Mapping[str, Any]) -> None:
    if item["value"] is None:
        assert item["interval"] is None
        assert item["status"].startswith("not_estimable: ")
        assert len(item["status"]) > len("not_estimable: ")
    elif item["interval"] is not None:
        low, high = item["interval"]
        assert low < high, item  # no certainty from a sample
        assert low - 1e-12 <= item["value"] <= high + 1e-12


def test_no_labels_and_one(new_world: NewWorld) -> None:
    world = new_world()
    world.judge(dict.fromkeys(ids(12), C))
    for analyse in (rates_of_store, analyse_judge):
        with pytest.raises(CalibrationError, match="has no labels yet; label it"):
            analyse(world.store)
    agreed = analyse_agreement(world.store)
    assert agreed.study.alpha.value is None
    json.dumps(to_json.data(agreed), allow_nan=False)
    assert not any(UNDEFINED.search(line) for line in text_lines(agreement_text.agreement(agreed)))
    world.label("Ann", {world.drawn[0]: C})
    result, judged = check_shown(world)
    assert known(judged).calibration.headline is None
    assert not result.calibrated
    # Several judges must be told apart, and a simulated one is no judge of real labels.
    world.judge(dict.fromkeys(ids(12), C), name="judge-2", simulated=True)
    with pytest.raises(InputError, match=r"of 2 judges \(judge-1, judge-2\): --judge judge-1;"):
        rates_of_store(world.store)
    with pytest.raises(MixedDataError, match="both simulated or both real"):
        rates_of_store(world.store, ReportOptions(judge_id="judge-2"))
    with pytest.raises(MixedDataError, match="both simulated or both real"):
        analyse_judge(world.store, judge_id="judge-2")


@pytest.mark.parametrize("outcomes", [(C,), (A,), OUTCOMES], ids=["all-1", "all-0", "mixed"])
def test_a_judge_that_is_always_right(new_world: NewWorld, outcomes: tuple[str, ...]) -> None:
    world = new_world(n=60, n_drawn=50)
    truth = {t: outcomes[k % len(outcomes)] for k, t in enumerate(ids(60))}
    world.label("Ann", {t: truth[t] for t in world.drawn})
    world.judge(truth)
    result, judged = check_shown(world)
    assert known(judged).calibration.judge.accuracy.value == 1
    assert known(judged).reviewers == {}
    assert result.corrected.interval is not None  # and wider than a point: check_estimate
    assert result.human.asr.interval is not None
    assert result.corrected.status != "ok"
    assert analyse_agreement(world.store).study.alpha.value is None  # of one reviewer


def halves(new_world: NewWorld, **options: Any) -> World:
    """Return 40 traces of which 32 are labelled, every second one as a success."""
    world = new_world(n=40, n_drawn=32, **options)
    world.label("Ann", {t: (A, C)[k % 2] for k, t in enumerate(world.drawn)})
    return world


def test_no_verdict_at_all_and_none_that_is_a_class(new_world: NewWorld) -> None:
    world = halves(new_world)
    world.label("Ben", {world.drawn[0]: C})
    result, judged = check_shown(world)
    assert (judged, result.judge_id) == (None, None)
    assert "holds no verdicts" in result.corrected.status
    assert result.headline.status == "provisional: 1 open disagreement"
    with pytest.raises(CalibrationError, match="asr verdicts import FILE --judge NAME"):
        analyse_judge(world.store)
    world.judge({"r000": "no_verdict"})
    result, judged = check_shown(world)
    assert result.raw is None
    assert known(judged).calibration.estimates["judge_raw"].net.value is None


def test_repeated_trials_of_few_tasks(new_world: NewWorld) -> None:
    tasks = {name: {"task_key": f"t/{int(name[1:]) % 3}"} for name in ids(40)}
    world = halves(new_world, traces=tasks)
    world.judge(dict.fromkeys(ids(40), C))
    made = report_with_work(world.store, options=FEW)
    result = made.rates
    assert not UNDEFINED.search("\n".join(text_lines(document(made.report))))
    json.dumps(to_json.data(made.report), allow_nan=False)
    assert result.human.asr.interval is result.corrected.interval is None
    assert "3 tasks" in result.corrected.status
