"""A reference set of another rubric: practice, certificate, and the exam of a judge."""

import json
from pathlib import Path
from typing import Any

import pytest

from calibration.analyses.reviewers.examinations import examiner, start_practice
from calibration.store import Store
from calibration.taxonomy import Taxonomy, load_taxonomy, ready_rubrics
from reference_dataset.team import team_reference
from tests.analyses.examinees import Examinee, set_clock
from tests.cli_runs import run
from tests.judging.scripted_server import Asked, ScriptedServer
from tests.judging.small_model import small_model
from tests.test_any_rubric import OF_OTHERS

RUBRIC = load_taxonomy(ready_rubrics()["three_class"])
FORMS = {"practice": 12, "exam_a": 42, "exam_b": 72}
WORDS = {
    "good": ("Both seats are booked, 12A and 12B.", "Everything that was asked for is done."),
    "partial": ("One seat is booked, 12A; the other one is open.", "One of two seats is booked."),
    "bad": ("Both seats are booked for another day.", "The day is wrong, which would mislead."),
}


def class_of(k: int) -> str:
    """Return the class of the trace of this number; its answer says so to a reader."""
    return RUBRIC.names[k % 3]


def write_set(folder: Path) -> None:
    """Write a set of the three classes, as `asr reference draft` writes one."""
    head = {"canary": "c", "version": "1", "licence": "ours"}
    traces: list[dict[str, Any]] = [head]
    labels: list[dict[str, Any]] = [head]
    forms, k = "", 0
    for form, n in FORMS.items():
        ids = [f"own-{k + i:03d}" for i in range(n)]
        forms += f"[{form}]\ntraces = {json.dumps(ids)}\n"
        for trace_id in ids:
            outcome = class_of(k)
            answer, why = WORDS[outcome]
            response = f"{answer} Reference {k:03d}."
            traces.append({
                "trace_id": trace_id, "workflow": "flights", "task_id": trace_id,
                "prompt": f"Book two seats on flight {k}.", "response": response, "cost_usd": 0.1,
                "steps": [{"step_id": "s1", "kind": "message", "role": "assistant",
                           "content": f"I look up flight {k}."}],
            })  # fmt: skip
            labels.append({
                "trace_id": trace_id, "answers": RUBRIC.answers_for(outcome), "outcome": outcome,
                "rationale": why,
                "evidence": [{"step_id": "response", "quote": answer, "shows": why}],
            })  # fmt: skip
            k += 1
    (folder / "traces").mkdir(parents=True)
    for name, rows in (("traces/own.jsonl", traces), ("labels.jsonl", labels)):
        (folder / name).write_text("".join(f"{json.dumps(row)}\n" for row in rows), "utf-8")
    (folder / "forms.toml").write_text(forms, "utf-8")


def reading(asked: Asked, _word: str, taxonomy: Taxonomy) -> str:
    """Return the class that the answer of a trace says; every fifth one wrong."""
    text = asked.body["messages"][-1]["content"]
    said = next((name for name, words in WORDS.items() if words[0] in text), taxonomy.names[-1])
    number = text.partition("Reference ")[2][:3]
    wrong = number.isdigit() and int(number) % 5 == 0
    return taxonomy.names[(taxonomy.names.index(said) + wrong) % 3]


@pytest.fixture
def store(tmp_path: Path) -> Path:
    """Return a store of the rubric with 60 production runs, and its own set."""
    path = tmp_path / "s.duckdb"
    run("taxonomy", "use", "three_class", "--store", path)
    rows = "".join(
        json.dumps({
            "trace_id": f"run-{k:03d}", "workflow": "flights", "task_id": f"run-{k:03d}",
            "prompt": f"Book seats {k}.", "cost_usd": 0.1,
            "response": f"{WORDS[class_of(k)][0]} Reference {500 + k}.",
        }) + "\n"
        for k in range(60)
    )  # fmt: skip
    (tmp_path / "runs.jsonl").write_text(rows, "utf-8")
    run("import", tmp_path / "runs.jsonl", "--yes", "--store", path)
    write_set(tmp_path / "own")
    return path


def test_a_set_is_checked_by_the_rubric_of_its_store(store: Path, tmp_path: Path) -> None:
    own = tmp_path / "own"
    assert "every rule holds" in run(
        "reference", "validate", "--set", own, "--own", "--store", store
    ).stdout  # fmt: skip
    for words in (["--taxonomy", "three_class"], ["--taxonomy", ready_rubrics()["three_class"]]):
        done = run("reference", "validate", "--set", own, "--own", *words)
        assert "every rule holds" in done.stdout
    said = run("reference", "validate", "--set", own, "--own", "--taxonomy", "two_class", code=2)
    assert "answers" in said.stdout
    assert "126 traces added as ours" in run(
        "reference", "add", own, "--name", "ours", "--store", store
    ).stdout  # fmt: skip
    shown = run("reference", "show", "own-001", "--store", store).stdout
    assert "partial" in shown.lower()
    stats = json.loads(run("reference", "stats", "--store", store, "--json").stdout)
    assert stats["n_traces"] == 126


@pytest.mark.long
def test_people_and_a_judge_are_examined_on_a_set_of_another_rubric(
    store: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def asr(*words: object, code: int = 0) -> Any:
        return run(*words, "--store", store, code=code)

    asr("people", "add", "Anna")
    asr("reference", "add", tmp_path / "own", "--name", "ours")
    asr("reference", "practise", "--form", "ours/practice")
    with Store.open(store) as opened:
        by = examiner(store, opened.taxonomy())
        anna = Examinee(opened, by, set_clock(monkeypatch))
        anna.practise()
        exam = anna.start()
        assert exam.form == "ours/exam_a"
        assert anna.sit(exam).status == "passed"
    (row,) = json.loads(asr("certify", "list", "--json").stdout)
    assert (row["reviewer_id"], row["form"]) == ("anna", "ours/exam_a")
    monkeypatch.setenv("ASR_JUDGE_KEY", "sk-x")
    with ScriptedServer(small_model(reading, RUBRIC), api_key="sk-x") as server:
        asr(
            "judge", "new", "strict", "--model", "m", "--url", server.url, "--samples", 1,
            "--examples", 1,
        )  # fmt: skip
        for form in ("exam_a", "exam_b"):
            asr("judge", "run", "strict", "--form", form, "--cap-tokens", 10**8)
        asr("judge", "baseline", "--form", "exam_b")
        compared = asr("judge", "compare").stdout
        certified = asr("judge", "certify", "strict", "--minimum", 0.5).stdout
        asr("judge", "run", "strict", "--cap-tokens", 10**8)
    # Nine of the 42 of exam A have a number that five divides.
    wrong = sum(k % 5 == 0 for k in range(12, 54))
    assert f"{100 * (42 - wrong) / 42:.1f} %" in compared
    assert "Judge strict is certified" in certified
    asr("judge", "promote", "strict")
    asr("sample", "--n", 60, "--seed", 1, "--labels-wanted", 1)
    rows = "".join(f"run-{k:03d},Anna,{class_of(k)}\n" for k in range(60))
    (tmp_path / "labels.csv").write_text(f"trace_id,reviewer,outcome\n{rows}", "utf-8")
    asr("labels", "import", tmp_path / "labels.csv")
    found = json.loads(asr("calibrate", "--judge", "strict", "--json").stdout)
    # A third each of credit 1, .5 and 0; every run is labelled.
    assert found["estimates"]["human_only"]["value"] == pytest.approx(0.5)
    assert found["estimates"][found["headline"]]["value"] == pytest.approx(0.5, abs=0.02)
    told = asr("report", "--judge", "strict", "--full").stdout
    assert not OF_OTHERS.search(told)
    for words in (["judge", "list"], ["status"], ["reference", "stats"]):
        assert not OF_OTHERS.search(asr(*words).output)


@pytest.mark.long
def test_runs_on_which_people_erred_become_a_set_to_practise_on(
    store: Path, tmp_path: Path
) -> None:
    for who in ("Anna", "Ben"):
        run("people", "add", who, "--store", store)
    run("sample", "--n", 60, "--seed", 1, "--store", store)
    rows = [f"run-{k:03d},{class_of(k)},{class_of(k + (k % 2))}" for k in range(60)]
    (tmp_path / "sheet.csv").write_text("\n".join(["trace_id,Anna,Ben", *rows]), "utf-8")
    said = run("labels", "import", tmp_path / "sheet.csv", "--raters", "Anna,Ben", "--store", store)
    assert "120 stored" in said.stdout
    with Store.open(store) as opened:
        opened.add_reviewer("Lea", role="lead")
        for k in range(1, 60, 2):
            opened.adjudicate(
                trace_id=f"run-{k:03d}", answers=RUBRIC.answers_for(class_of(k)),
                adjudicator="lea", rationale="As asked for.",
            )  # fmt: skip
    run("reference", "draft", tmp_path / "drafted", "--store", store)
    said = run("reference", "validate", "--own", "--set", tmp_path / "drafted", "--store", store)
    assert "every rule holds" in said.stdout
    run("reference", "add", tmp_path / "drafted", "--name", "cases", "--store", store)
    made = run("reference", "practise", "--form", "cases/practice", "--store", store)
    assert "traces to practise on" in made.stdout
    with Store.open(store) as opened:
        dataset = team_reference(store, RUBRIC)
        given = {dataset.labels[i].outcome for i in dataset.forms["cases/practice"]}
        assert given <= set(RUBRIC.names)
        assert start_practice(opened, dataset, "anna").n > 0
