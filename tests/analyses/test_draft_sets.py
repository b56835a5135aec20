"""Adjudicated runs become a set to practise on, and worked examples of a judge."""

import json
from pathlib import Path

import pytest

from calibration.analyses.judging.runs import Chosen, choose_traces
from calibration.analyses.judging.versions import JudgeEntry, worked_examples
from calibration.analyses.reference_traces import LOCKED, NO_REASON, draft_set, write_draft
from calibration.analyses.reviewers.examinations import add_practice
from calibration.errors import InputError
from calibration.judging.requests import Capabilities
from calibration.judging.selection import DEVELOPMENT, split_of
from calibration.judging.versions import new_version
from calibration.records import Evidence, LabelDraft
from reference_dataset.team import team_reference
from reference_dataset.validator import own_problems
from tests.analyses.conftest import NewWorld
from tests.analyses.worlds import World
from tests.cli_runs import run


def development(world: World) -> list[str]:
    """Return the development tasks among the runs on which the two differ."""
    return [t for t in sorted(world.drawn)[1::2] if split_of(f"test/{t}") == DEVELOPMENT]


@pytest.fixture
def world(new_world: NewWorld) -> World:
    """Return a batch on which two people differ on half of the runs, most of them settled."""
    world = new_world(n=60, n_drawn=40)
    taxonomy = world.store.taxonomy()
    drawn = sorted(world.drawn)
    for person, name in (("Ann", "complete"), ("Ben", "abandoned")):
        reviewer = world.store.add_reviewer(person).reviewer_id
        world.store.import_labels(world.batch_id, [
            LabelDraft(
                client_token=f"{person} {t}", trace_id=t, batch_id=world.batch_id,
                reviewer_id=reviewer, answers=taxonomy.answers_for(name if k % 2 else "complete"),
                rationale=None if t == development(world)[0] else f"{person} on {t}.",
                evidence=tuple(
                    Evidence(step_id="response", quote=q) for q in (f"Booked {t}", "as rendered")
                ),
            )
            for k, t in enumerate(drawn)
        ])  # fmt: skip
    for k, t in enumerate(drawn):
        if k % 2:
            world.settle(t, "abandoned" if k % 4 == 1 else "complete")
    return world


def test_only_development_tasks_with_a_reason_are_drafted(world: World, tmp_path: Path) -> None:
    found = draft_set(world.store, world.batch_id)
    _, *reasons = own = development(world)
    assert sorted(line["trace_id"] for line in found.traces) == [f"practice-{t}" for t in reasons]
    assert len(reasons) > 1
    assert found.left_out == {NO_REASON: 1, LOCKED: 20 - len(own)}
    for trace, label in zip(found.traces, found.labels, strict=True):
        assert trace["of_task"] == "test/" + trace["trace_id"].removeprefix("practice-")
        assert {label["outcome"], label["nearest_wrong"]} == {"complete", "abandoned"}
        assert "model" not in trace
        assert [item["quote"] for item in label["evidence"]] == [trace["response"]]
    write_draft(found, tmp_path / "own")
    assert own_problems(tmp_path / "own") == []


def test_a_drafted_set_is_practised_on_and_shown_to_judges_but_not_judged(
    world: World, tmp_path: Path
) -> None:
    store = world.store
    path, taxonomy, folder = store.path, store.taxonomy(), tmp_path / "own"
    write_draft(draft_set(store, world.batch_id), folder)
    store.close()
    text = run("reference", "add", folder, "--name", "ours", "--store", path).stdout
    assert "traces added as ours" in text
    with type(store).open(path) as store:
        dataset = team_reference(path, taxonomy)
        ids = dataset.forms["ours/practice"]
        batch = add_practice(store, dataset, form="ours/practice")
        assert batch.n_items == len(ids)
        assert not set(ids) & set(store.production_traces()["trace_id"])
        (example,) = worked_examples(dataset, taxonomy, [ids[0]])
        assert example.reason == dataset.labels[ids[0]].rationale
        entry = JudgeEntry(
            name="j", address="", capabilities=Capabilities(),
            version=new_version(
                model="m", endpoint="e", taxonomy=taxonomy, few_shots=[ids[0]],
                few_shots_sha256="0" * 64,
            ),
        )  # fmt: skip
        judged = choose_traces(store, entry, Chosen())
    assert ids[0].removeprefix("practice-") not in judged
    assert len(judged) == 59


def test_a_judges_errors_are_taken_too(world: World, tmp_path: Path) -> None:
    store, drawn = world.store, sorted(world.drawn)
    agreed = [t for k, t in enumerate(drawn) if k % 2 == 0 and split_of(f"test/{t}") == DEVELOPMENT]
    for t in agreed:
        world.settle(t, "complete")
    world.judge(dict.fromkeys(drawn, "hallucinated"))
    assert len(draft_set(store, world.batch_id).traces) < len(
        draft_set(store, world.batch_id, judge_id="judge-1").traces
    )
    assert store.spent_batches("judge-1") == [world.batch_id]
    with pytest.raises(InputError, match="no judge 'nobody'"):
        draft_set(store, world.batch_id, judge_id="nobody")
    few = draft_set(store, world.batch_id, judge_id="judge-1", most=2)
    assert len({line["outcome"] for line in few.labels}) == 2
    path = store.path
    store.close()
    out = run("reference", "draft", tmp_path / "own", "--store", path, "--judge", "judge-1").stdout
    assert f"runs written to {tmp_path / 'own'}" in out
    assert "asr reference add" in out
    again = run("reference", "draft", tmp_path / "own", "--store", path, code=1).stderr
    assert "exists already" in again


def test_what_is_wrong_with_a_set_of_ones_own_is_named(tmp_path: Path) -> None:
    folder = tmp_path / "own"
    (folder / "traces").mkdir(parents=True)
    record = {"trace_id": "a", "workflow": "w", "prompt": "Do it.", "response": "Done."}
    quote = {"step_id": "response", "quote": "x", "shows": "y"}
    label = {"trace_id": "a", "answers": {"output": "no"}, "outcome": "complete",
             "rationale": "So.", "evidence": [quote]}  # fmt: skip
    bad = {"trace_id": "b", "prompt": 3}
    (folder / "traces" / "t.jsonl").write_text("\n".join(map(json.dumps, (record, record, bad))))
    (folder / "labels.jsonl").write_text("\n".join(map(json.dumps, (label, {"trace_id": "c"}))))
    (folder / "forms.toml").write_text('[practice]\ntraces = ["a", "d"]\n')
    told = "\n".join(map(str, own_problems(folder)))
    for words in (
        "t.jsonl, line 2: schema: the same run", "t.jsonl, line 3: schema: ",
        "answers: a: the answers lead to",
        "quotes: a: the quote 'x' is not in 'response'", "labels.jsonl, line 2: schema: ",
        "c is no trace of the set", "d has no label", "c is in 0 forms",
    ):  # fmt: skip
        assert words in told, told
    refused = run("reference", "add", folder, "--name", "ours", "--store", tmp_path / "s.duckdb",
                  code=2).stderr  # fmt: skip
    assert "nothing was added" in refused
