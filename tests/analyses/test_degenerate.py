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
from calibration.analyses.success_rate.from_store import StoreRates, rates_of_store, report_on_store
from calibration.analyses.success_rate.report import ReportOptions
from calibration.errors import CalibrationError, InputError, MixedDataError
from calibration.reporting import to_json
from calibration.reporting.document import text_lines
from calibration.reporting.sections import agreement as agreement_text
from calibration.reporting.sections import judge as judge_sections
from calibration.reporting.sections import success_rate
from tests.analyses.conftest import NewWorld
from tests.analyses.worlds import World, ids
from tests.classes import OUTCOMES

FEW = ReportOptions(n_resamples=100)

UNDEFINED = re.compile(r"\b(?:[Nn]a[Nn]|inf|None)\b")


def check_shown(world: World, **options: Any) -> tuple[StoreRates, JudgeCalibration | None]:
    """Print and serialise every result; nothing undefined may come out as a number."""
    agreed = analyse_agreement(world.store)
    result = rates_of_store(world.store, replace(FEW, **options))
    printed = [*text_lines(agreement_text.agreement(agreed)), *shown(world)]
    data = [to_json.data(agreed), as_data(world)]
    judged = result.judge
    if judged is not None:
        printed += text_lines(judge_sections.document(JudgeReport(calibration=judged)))
        data.append(to_json.data(judged))
    for line in printed:
        assert not UNDEFINED.search(line), line
    for item in data:
        check_json(json.loads(json.dumps(item, allow_nan=False)))
    return result, judged


def as_data(world: World) -> Any:
    """Return the report as JSON that satisfies the published schema."""
    data = to_json.data(report_on_store(world.store, options=FEW))
    jsonschema.Draft202012Validator(to_json.schema()).validate(data)
    return data


def shown(world: World) -> list[str]:
    return list(text_lines(success_rate.document(report_on_store(world.store, options=FEW))))


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


def test_no_labels(new_world: NewWorld) -> None:
    world = new_world()
    world.judge(dict.fromkeys(ids(12), "complete"))
    for analyse in (rates_of_store, analyse_judge):
        with pytest.raises(CalibrationError, match="has no labels yet; label it"):
            analyse(world.store)
    agreed = analyse_agreement(world.store)
    assert agreed.study.alpha.value is None
    json.dumps(to_json.data(agreed), allow_nan=False)
    assert not any(UNDEFINED.search(line) for line in text_lines(agreement_text.agreement(agreed)))


def test_one_label(new_world: NewWorld) -> None:
    world = new_world()
    world.label("Ann", {world.drawn[0]: "complete"})
    world.judge(dict.fromkeys(ids(12), "complete"))
    result, judged = check_shown(world)
    assert judged is not None
    assert judged.calibration.headline is None
    assert not result.calibrated


def test_one_reviewer(new_world: NewWorld) -> None:
    world = new_world(n=40, n_drawn=32)
    world.label("Ann", {t: OUTCOMES[k % 5] for k, t in enumerate(world.drawn)})
    world.judge(dict.fromkeys(ids(40), "complete"))
    result, judged = check_shown(world)
    assert result.calibrated
    assert judged is not None
    assert judged.without_reviewer == {}
    assert analyse_agreement(world.store).study.alpha.value is None


@pytest.mark.parametrize("outcome", ["complete", "partial_plus", "abandoned"])
def test_all_labels_one_class_and_a_judge_that_is_always_right(
    new_world: NewWorld, outcome: str
) -> None:
    world = new_world(n=40, n_drawn=32)
    for name in ("Ann", "Ben"):
        world.label(name, dict.fromkeys(world.drawn, outcome))
    world.judge(dict.fromkeys(ids(40), outcome))
    result, _ = check_shown(world)
    assert result.corrected.interval is not None  # and wider than a point: check_estimate
    assert result.corrected.status != "ok"
    assert result.human.asr.interval is not None


def test_a_judge_that_is_always_right_on_mixed_classes(new_world: NewWorld) -> None:
    world = new_world(n=60, n_drawn=50)
    truth = {t: OUTCOMES[k % 5] for k, t in enumerate([*world.drawn, *ids(60)])}
    world.label("Ann", {t: truth[t] for t in world.drawn})
    world.judge(truth)
    result, judged = check_shown(world)
    assert judged is not None
    assert judged.calibration.judge.accuracy.value == 1
    assert result.corrected.interval is not None
    check_shown(world, design="reference")


@pytest.mark.long
def test_a_judge_with_no_verdict_on_some_traces(new_world: NewWorld) -> None:
    world = new_world(n=40, n_drawn=32)
    world.label("Ann", {t: "complete" if k % 2 else "abandoned" for k, t in enumerate(world.drawn)})
    # Verdicts for half of the traces, one of them an explicit no_verdict.
    world.judge(dict.fromkeys(ids(40)[:20], "complete") | {"r020": "no_verdict"})
    result, judged = check_shown(world)
    assert judged is not None
    assert judged.verdict_names == (*OUTCOMES, "no_verdict")
    assert judged.calibration.confusion.table.sum() == 32  # no labelled trace is dropped
    assert result.raw is not None
    assert result.raw.n == 20
    check_shown(world, design="reference")


def test_all_verdicts_missing(new_world: NewWorld) -> None:
    world = new_world(n=40, n_drawn=32)
    world.label("Ann", {t: "complete" if k % 2 else "abandoned" for k, t in enumerate(world.drawn)})
    world.judge({"r000": "no_verdict"})
    result, judged = check_shown(world)
    assert result.raw is None
    assert judged is not None
    assert judged.calibration.estimates["judge_raw"].net.value is None


def test_fewer_than_thirty_labels_are_no_headline(new_world: NewWorld) -> None:
    world = new_world(n=40, n_drawn=29)
    world.label("Ann", {t: "complete" if k % 2 else "abandoned" for k, t in enumerate(world.drawn)})
    world.judge(dict.fromkeys(ids(40), "complete"))
    result, judged = check_shown(world)
    assert judged is not None
    assert judged.calibration.headline is None
    assert ("post_stratified", "few_labels") in {
        (notice.estimator, notice.code) for notice in judged.calibration.refusals
    }
    assert "29 labels, fewer than 30" in result.corrected.status
    assert result.headline is result.human.asr


def test_no_verdicts_at_all(new_world: NewWorld) -> None:
    world = new_world()
    world.label("Ann", dict.fromkeys(world.drawn, "complete"))
    result, judged = check_shown(world)
    assert judged is None
    assert result.judge_id is None
    assert "holds no verdicts" in result.corrected.status
    with pytest.raises(CalibrationError, match="asr verdicts FILE --judge NAME"):
        analyse_judge(world.store)


def test_repeated_trials_of_few_tasks(new_world: NewWorld) -> None:
    tasks = {name: {"task_key": f"t/{int(name[1:]) % 3}"} for name in ids(40)}
    world = new_world(n=40, n_drawn=32, traces=tasks)
    world.label("Ann", {t: "complete" if k % 2 else "abandoned" for k, t in enumerate(world.drawn)})
    world.judge(dict.fromkeys(ids(40), "complete"))
    result, _ = check_shown_without_interval(world)
    assert result.human.asr.interval is None
    assert result.corrected.interval is None
    assert "3 tasks" in result.corrected.status


def check_shown_without_interval(world: World) -> tuple[StoreRates, str]:
    result = rates_of_store(world.store, options=FEW)
    printed = "\n".join(shown(world))
    assert not UNDEFINED.search(printed)
    json.dumps(as_data(world), allow_nan=False)
    return result, printed


@pytest.mark.long
def test_open_disagreements_make_the_headline_provisional(new_world: NewWorld) -> None:
    world = new_world(n=40, n_drawn=32)
    world.label("Ann", {t: "complete" if k % 2 else "abandoned" for k, t in enumerate(world.drawn)})
    world.label("Ben", {world.drawn[0]: "complete"})
    world.judge(dict.fromkeys(ids(40), "complete"))
    result, _ = check_shown(world)
    assert result.headline.status == "provisional: 1 open disagreements"
    data = as_data(world)
    assert data["asr"]["status"].startswith("provisional")
    printed = shown(world)
    assert "provisional" in printed[1]
    assert any("1 disagreements are open" in line for line in printed)
    world.settle(world.drawn[0], "abandoned")
    assert check_shown(world)[0].headline.status == "ok"


def test_the_human_only_headline_is_provisional_too(new_world: NewWorld) -> None:
    world = new_world()
    world.label("Ann", dict.fromkeys(world.drawn, "complete"))
    world.label("Ben", {world.drawn[0]: "abandoned"})
    result, _ = check_shown(world)
    assert not result.calibrated
    assert result.headline.status.startswith("provisional: 1 open")


def test_a_simulated_judge_is_no_judge_of_real_labels(new_world: NewWorld) -> None:
    world = new_world()
    world.label("Ann", dict.fromkeys(world.drawn, "complete"))
    world.judge(dict.fromkeys(ids(12), "complete"), simulated=True)
    for analyse in (rates_of_store, analyse_judge):
        with pytest.raises(MixedDataError, match="both simulated or both real"):
            analyse(world.store)


def test_several_judges_must_be_told_apart(new_world: NewWorld) -> None:
    world = new_world()
    world.label("Ann", dict.fromkeys(world.drawn, "complete"))
    world.judge(dict.fromkeys(ids(12), "complete"))
    world.judge(dict.fromkeys(ids(12), "complete"), name="judge-2")
    with pytest.raises(InputError, match=r"name one with --judge: \['judge-1', 'judge-2'\]"):
        rates_of_store(world.store)
    with pytest.raises(InputError, match="no judge 'x'"):
        rates_of_store(world.store, ReportOptions(judge_id="x"))


def test_a_negative_seed_is_refused(new_world: NewWorld) -> None:
    with pytest.raises(InputError, match="seed must be 0 or more, got -1"):
        rates_of_store(new_world().store, options=ReportOptions(seed=-1))
