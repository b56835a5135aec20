"""Numbers of scores in traces are verdicts by their scale alone, over all files of an import."""

import json
import shlex
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from calibration.analyses.sampling.draw import SamplingDesign, draw_batch
from calibration.analyses.trace_files import FilesRead, read_files, store_files
from calibration.errors import InputError
from calibration.records import NO_VERDICT
from calibration.store import Store
from calibration.tables.scales import FIVE, Scale
from calibration.trace_formats import ImportSettings

# 23, 13, 6, 7 and 11 runs of the grades 1 to 5: (11 + .4 * 7) / 60 = 23.0 %.
GRADED = [grade for grade, n in ((1, 23), (2, 13), (3, 6), (4, 7), (5, 11)) for _ in range(n)]
SAID = [{"role": "user", "content": "Hi?"}, {"role": "assistant", "content": "Hi."}]


def page(k: int, *scores: dict[str, Any]) -> dict[str, Any]:
    """Return a trace as Langfuse writes it."""
    span = {
        "id": f"o{k}", "traceId": f"t{k}", "type": "GENERATION", "name": "answer", "model": "m",
        "startTime": "2026-10-01T10:00:00Z", "input": f"q{k}", "output": f"a{k}",
    }  # fmt: skip
    return {
        "id": f"t{k}", "name": "refunds", "timestamp": "2026-10-01T10:00:00Z", "input": f"q{k}",
        "output": f"a{k}", "observations": [span],
        "scores": [{"id": f"s{k}-{n}", "traceId": f"t{k}", **one} for n, one in enumerate(scores)],
    }  # fmt: skip


def langfuse(grade: float, k: int, *, source: str = "EVAL") -> dict[str, Any]:
    score = {"name": "usefulness", "value": grade, "dataType": "NUMERIC", "source": source}
    return page(k, score | {"authorUserId": "Ann"})


def langsmith(grade: float, k: int) -> dict[str, Any]:
    return {
        "id": f"r{k}", "trace_id": f"r{k}", "name": "refunds", "run_type": "chain",
        "start_time": "2026-10-01T10:00:00", "end_time": "2026-10-01T10:00:02",
        "inputs": {"input": f"q{k}"}, "outputs": {"output": f"a{k}"}, "parent_run_id": None,
        "feedback_stats": {"correctness": {"n": 1, "avg": float(grade)}},
    }  # fmt: skip


def chat(grade: float, k: int) -> dict[str, Any]:
    return {"id": f"c{k}", "messages": SAID, "score": grade}


def transcript(grade: float, k: int) -> dict[str, Any]:
    grading = {"model_grader": {"score": grade, "reasoning": "so"}}
    return {"task_id": f"t{k}", "trial_id": 1, "messages": SAID, "grading": grading}


def sample(grade: float, k: int) -> dict[str, Any]:
    return {
        "id": f"s{k}", "epoch": 1, "input": f"q{k}", "messages": SAID,
        "scores": {"rubric": {"value": grade}},
    }  # fmt: skip


def phoenix(grade: float, k: int) -> list[dict[str, Any]]:
    ids = {"trace_id": f"{k + 1:032x}", "span_id": f"{k + 1:016x}"}
    span = {
        "name": "turn", "context": ids, "span_kind": "LLM", "parent_id": None,
        "start_time": "2026-10-01T10:00:00+00:00", "end_time": "2026-10-01T10:00:01+00:00",
        "attributes": {"input.value": f"q{k}", "output.value": f"a{k}"}, "status_code": "OK",
    }  # fmt: skip
    score = {"name": "correctness", "annotator_kind": "LLM", "result": {"score": grade}}
    return [span, {"id": f"a{k}", "span_id": ids["span_id"], **score}]


Files = list[Path]


def _as_lines(rows: list[Any]) -> str:
    return "".join(json.dumps(row) + "\n" for row in rows)


def written(form: str, folder: Path, grades: list[float]) -> Files:
    """Write runs with these grades in one of the forms; Langfuse in a file for each run."""
    if form == "langfuse":
        files = [folder / f"{k}.json" for k in range(len(grades))]
        for k, file in enumerate(files):
            file.write_text(json.dumps(langfuse(grades[k], k)))
        return files
    build: dict[str, Callable[[float, int], Any]] = {
        "langsmith": langsmith, "openai-chat": chat, "transcript": transcript,
        "inspect-ai": sample, "phoenix": phoenix,
    }  # fmt: skip
    rows = [build[form](grade, k) for k, grade in enumerate(grades)]
    file = folder / "runs.json"
    if form == "inspect-ai":
        about = {"task": "t", "model": "m", "run_id": "r", "created": "2026-10-01T10:00:00Z"}
        file.write_text(json.dumps({"eval": about, "samples": rows}))
    elif form == "phoenix":
        file.write_text(json.dumps([one for pair in rows for one in pair]))
    else:
        file = folder / "runs.jsonl"
        file.write_text(_as_lines(rows))
    return [file]


NAMES = {
    "langfuse": "usefulness",
    "langsmith": "correctness",
    "openai-chat": "score",
    "transcript": "model_grader",
    "inspect-ai": "rubric",
    "phoenix": "correctness",
}


def shares(read: FilesRead) -> dict[str, float]:
    """Return the runs of each class by the verdicts of the source."""
    counted: dict[str, float] = {}
    for file in read.files:
        for run in file.runs.beside if file.runs is not None else ():
            first = read.rules.verdicts(run.trace_id, run.grades)[0]
            counted[first.outcome] = counted.get(first.outcome, 0) + 1
    return counted


@pytest.mark.parametrize("form", NAMES)
def test_grades_from_1_to_5_are_verdicts_with_their_scale_alone(form: str, tmp_path: Path) -> None:
    files = written(form, tmp_path, list(map(float, GRADED)))
    name = NAMES[form]
    read = read_files(files, ImportSettings())
    assert shares(read) == {NO_VERDICT: 60}
    assert read.rules.notes == (
        f"scores called {name} (60 runs) go from 1 to 5 and are kept as they are; "
        f"`--scale {name}=1-5` makes verdicts of them",
    )
    scaled = read_files(files, ImportSettings(scales={name: FIVE}))
    assert shares(scaled) == {"partial_minus": 42, "partial_plus": 7, "complete": 11}


def test_an_import_without_a_scale_is_settled_by_one_with_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, asr: Callable[..., Any]
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "runs").mkdir()
    written("langfuse", tmp_path / "runs", list(map(float, GRADED)))
    report = ("report", "--judge", "source:langfuse", "--json")
    first = asr("import", "runs", "--yes").stdout
    hint = first.partition("`--scale ")[2].partition("`")[0]
    assert "without a verdict" in asr(*report, code=1).output
    again = asr("import", "runs", "--yes", "--scale", *shlex.split(hint)).stdout
    assert "0 imported, 60 already there" in again
    assert "60 grades kept" in again
    found = json.loads(asr(*report).stdout)
    assert round(found["asr_gross"]["value"], 3) == 0.230


@pytest.mark.parametrize(
    ("grades", "options", "outcomes"),
    [
        ([0, 1, 1], {}, ["partial_minus", "complete", "complete"]),
        ([0, 0.5, 1], {}, ["partial_minus", NO_VERDICT, "complete"]),
        ([0, 0.5, 1], {"pass_at": 0.5}, ["partial_minus", "complete", "complete"]),
        ([1, 1, 1], {}, [NO_VERDICT] * 3),  # of 1, or of 5?
        ([1, 1, 1], {"scale": "0-1"}, ["complete"] * 3),
        ([1, 1, 1], {"scale": "1-5"}, ["partial_minus"] * 3),
        ([1, 0, -1], {}, [NO_VERDICT] * 3),
        ([5, 4, 4.5], {"scale": "1-5"}, ["complete", "partial_plus", NO_VERDICT]),
        ([5, 4, 7], {"scale": "1-5"}, ["complete", "partial_plus", NO_VERDICT]),
        ([10, 7, 6], {"scale": "0-10", "pass_at": 7}, ["complete", "complete", "partial_minus"]),
    ],
)
def test_what_numbers_of_one_name_mean(
    grades: list[float], options: dict[str, Any], outcomes: list[str], tmp_path: Path
) -> None:
    low, _, high = options.get("scale", "").partition("-")
    settings = ImportSettings(
        scales={"score": Scale(float(low), float(high))} if high else {},
        pass_at={"score": options["pass_at"]} if "pass_at" in options else {},
    )
    read = read_files(written("openai-chat", tmp_path, grades), settings)
    (file,) = read.files
    assert file.runs is not None
    found = [read.rules.verdicts(run.trace_id, run.grades)[0] for run in file.runs.beside]
    assert [verdict.outcome for verdict in found] == outcomes


@pytest.mark.parametrize(
    ("scales", "pass_at", "message"),
    [
        ({"scores": FIVE}, {}, "no score called 'scores' is a number; there are score"),
        ({"score": Scale(0, 10)}, {}, "needs the lowest score that passes"),
        ({}, {"score": 3}, "--pass-at needs their scale"),
        ({"score": FIVE}, {"score": 7}, "is not on the scale 1-5"),
    ],
)
def test_a_scale_that_does_not_fit_is_refused(
    scales: dict[str, Scale], pass_at: dict[str, float], message: str, tmp_path: Path
) -> None:
    files = written("openai-chat", tmp_path, [1, 3, 5])
    with pytest.raises(InputError, match=message):
        read_files(files, ImportSettings(scales=scales, pass_at=pass_at))


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (("--scale", "1-5"), "must name the score"),
        (("--scale", "score=5-1"), "must be LOW-HIGH"),
        (("--pass-at", "score=high"), "must be a number"),
        (("--scale", "score=1-5", "--scale", "score=0-1"), "is named twice"),
    ],
)
def test_options_that_say_nothing_are_refused(
    options: tuple[str, ...], message: str, tmp_path: Path, asr: Callable[..., Any]
) -> None:
    (file,) = written("openai-chat", tmp_path, [1, 3, 5])
    store = str(tmp_path / "s.duckdb")
    assert message in asr("import", str(file), "--store", store, *options, code=2).output
    assert not Path(store).exists()


def test_a_scale_in_the_file_is_taken_and_said(tmp_path: Path) -> None:
    config = {"id": "c", "name": "correctness", "dataType": "NUMERIC", "minValue": 1, "maxValue": 5}
    score = {"name": "correctness", "value": 1, "dataType": "NUMERIC", "source": "EVAL"}
    traces, configs = tmp_path / "traces.json", tmp_path / "configs.json"
    traces.write_text(json.dumps([page(1, score), page(2, score | {"value": 5})]))
    configs.write_text(json.dumps({"data": [config], "meta": {"page": 1}}))
    read = read_files([traces, configs], ImportSettings())
    assert shares(read) == {"partial_minus": 1, "complete": 1}
    said = "scores called correctness (2 runs) are read on the scale 1-5, which the files state"
    assert read.rules.notes == (said,)
    graders = [{"score": 1, "max": 5}, {"score": 4, "max": 5}]
    rows = [transcript(1, k) | {"grading": {"judge": one}} for k, one in enumerate(graders)]
    file = tmp_path / "own.jsonl"
    file.write_text(_as_lines(rows))
    assert shares(read_files([file], ImportSettings())) == {"partial_minus": 1, "partial_plus": 1}


def test_a_score_of_people_on_an_unknown_scale_is_no_label(tmp_path: Path) -> None:
    file = tmp_path / "runs.json"
    rows = [langfuse(grade, k, source="ANNOTATION") for k, grade in enumerate([1, 4, 5])]
    file.write_text(json.dumps(rows))
    settings = ImportSettings()
    with Store.open(tmp_path / "s.duckdb", create=True) as store:
        store_files(store, read_files([file], settings), settings)
        batch = draw_batch(store, SamplingDesign(seed=1), n=3).batch_id
        unknown = store_files(store, read_files([file], settings), settings, human_batch=batch)
        assert (unknown.labels, unknown.notes) == (
            0,
            (
                "scores called usefulness (3 runs) go from 1 to 5 and are kept as they are; "
                "`--scale usefulness=1-5` makes verdicts of them",
            ),
        )
        scaled = ImportSettings(scales={"usefulness": FIVE})
        known = store_files(store, read_files([file], scaled), scaled, human_batch=batch)
        assert known.labels == 3
        outcomes = sorted(store.label_frame(batch)["outcome"])
    assert outcomes == ["complete", "partial_minus", "partial_plus"]
