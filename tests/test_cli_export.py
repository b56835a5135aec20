"""`asr export`: what comes back from each format, what is left out, and what other tools read."""

import json
import re
import shlex
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pandas as pd
import pyarrow.parquet as pq
import pytest
from jsonschema import Draft202012Validator

from calibration.analyses.evidence.from_store import load_batch
from calibration.analyses.exports import CHUNK, NO_CLASS, OF_REFERENCE, training_set
from calibration.analyses.judging.versions import judge_of
from calibration.analyses.reference_traces import LOCKED
from calibration.errors import InputError
from calibration.judging.requests import Reply, SampleVerdict
from calibration.judging.selection import DEVELOPMENT, split_of
from calibration.store import Store
from calibration.tables.rows import FLAG, NUMBER, TEXT, TypedRows, write_rows
from reference_dataset.loader import load_reference
from tests.analyses.worlds import World, make_world
from tests.cli_runs import Run, data, write
from tests.stores import copy_store

pytestmark = pytest.mark.usefixtures("few_draws")
FORMS = ("csv", "jsonl", "parquet")
QUOTES = [{"step_id": "response", "quote": "Booked."}, {"step_id": "prompt", "quote": '=1, "x"'}]
IMPORTERS = Path(__file__).parent / "fixtures" / "importers"
# What the platforms document, transcribed; docs/exports.md names the pages.
DOCUMENTED = json.loads((IMPORTERS.parent / "platform_schemas.json").read_text("utf-8"))


@pytest.fixture
def labelled(asr: Run, tmp_path: Path, filled: list[str]) -> list[str]:
    """Label 40 runs twice, with every mark there is; settle three, and keep an unlabelled copy."""
    for name in FORMS:
        shutil.copy(tmp_path / "asr.duckdb", tmp_path / f"{name}.duckdb")
        shutil.copytree(tmp_path / "asr.traces", tmp_path / f"{name}.traces")
    rows: list[dict[str, Any]] = []
    for k, trace_id in enumerate(filled):
        for who in ("Ann", "=Bo; d'Arc"):
            outcome = "complete" if k % 3 or who == "Ann" else "partial_plus"
            rows.append({"trace_id": trace_id, "reviewer": who, "outcome": outcome})
    rows[0] |= {"rationale": "=1+1\nfor a reason", "evidence": QUOTES, "confidence": 2,
                "tags": ["-late", "policy gap"], "sub_goals": {"1": "done"}}  # fmt: skip
    rows[1] |= {"violations": []}
    rows[2] |= {"violations": [{"constraint": "no PII exposure", "severity": "high", "step": "s"}]}
    settled = [
        {"trace_id": trace_id, "reviewer": "Lea", "outcome": "partial_minus", "adjudicated": True}
        for trace_id in filled[:3]
    ]
    given = write(tmp_path / "given.jsonl", *rows, *[s | {"rationale": "Late."} for s in settled])
    done = data(asr("labels", "import", given, "--json"))
    assert (done["stored"], done["adjudicated"]) == (80, 3)
    return filled


KEPT = ["trace_id", "reviewer_id", "outcome", "answers", "rationale", "evidence", "confidence",
        "tags", "sub_goals", "violations"]  # fmt: skip


def held(path: Path) -> tuple[Any, ...]:
    """Return all that people said in a store, and what rates and agreement begin with."""
    with Store.open(path) as store:
        batch = store.batches()[0].batch_id
        frame = store.label_frame(batch)[KEPT].sort_values(["trace_id", "reviewer_id"])
        settled = store.adjudication_frame(batch)[["trace_id", "outcome", "adjudicator",
                                                  "rationale"]]  # fmt: skip
        loaded = load_batch(store, batch)
        codes, human = loaded.codes().tolist(), loaded.human.tolist()
    return (frame.astype(str).to_dict("list"), settled.sort_values("trace_id").to_dict("list"),
            codes, human)  # fmt: skip


@pytest.mark.parametrize("form", FORMS)
def test_labels_come_back_from_each_format(
    asr: Run, tmp_path: Path, labelled: list[str], form: str
) -> None:
    name = f"labels.{form}"
    asr("export", "labels", name)
    back = data(asr("labels", "import", name, "--store", f"{form}.duckdb", "--json"))
    assert (back["stored"], back["adjudicated"], back["reading"]["left_out"]) == (80, 3, [])
    mine = held(tmp_path / "asr.duckdb")
    assert mine[1]["adjudicator"] == ["lea"] * 3
    assert held(tmp_path / f"{form}.duckdb") == mine
    # Once more adds nothing, and what came back goes out as it came.
    again = data(asr("labels", "import", name, "--store", f"{form}.duckdb", "--json"))
    assert (again["stored"], again["already_there"], again["adjudicated"]) == (0, 80, 0)
    asr("export", "labels", f"again.{form}", "--store", f"{form}.duckdb")
    if form != "parquet":
        assert Path(f"again.{form}").read_bytes() == Path(name).read_bytes()
        assert ",=" not in Path(name).read_text()
    for name, store in (("a", "asr"), ("b", form)):
        asr("export", "consensus", f"{name}.parquet", "--store", f"{store}.duckdb")
    one, two = (pd.read_parquet(f"{name}.parquet").drop(columns="decided_at") for name in "ab")
    pd.testing.assert_frame_equal(one, two)
    # A class that a lead decided here stays.
    other = {"trace_id": labelled[0], "outcome": "abandoned", "adjudicated": True}
    kept = data(asr("labels", "import", write(tmp_path / "o.jsonl", other), "--json"))
    assert (kept["adjudicated"], kept["adjudicated_otherwise"]) == (0, [labelled[0]])


def test_consensus_says_what_it_rests_on(asr: Run, labelled: list[str]) -> None:
    asr("export", "consensus", "c.jsonl")
    rows = {
        row["trace_id"]: row for row in map(json.loads, Path("c.jsonl").read_text().splitlines())
    }
    assert len(rows) == 40
    bases = [rows[t]["basis"] for t in labelled]
    assert bases[:5] == ["adjudicated"] * 3 + ["open", "agreed"]
    assert (rows[labelled[0]]["outcome"], rows[labelled[3]]["outcome"]) == ("partial_minus", None)
    assert rows[labelled[4]]["weight"] == pytest.approx(60 / 40)
    said = asr("export", "probabilities", "q.parquet", "--of-labels").stdout
    assert "provisional" in said
    frame = pd.read_parquet("q.parquet").set_index("trace_id")
    row = frame.to_dict("index")[labelled[4]]
    assert [row["complete"], row["partial_plus"]] == pytest.approx([1, 0], abs=0.1)
    asr("export", "probabilities", "p.csv", "--of-labels", "--judge", "j1", code=2)


def test_a_file_is_there_whole_or_not_at_all(tmp_path: Path) -> None:
    path = tmp_path / "x.jsonl"

    def rows(n: int) -> Iterator[dict[str, Any]]:
        for k in range(n):
            if k == 7:
                raise InputError("no more")
            yield {"a": f"={k}", "b": k / 4, "c": k % 2 == 0}

    columns = {"a": TEXT, "b": NUMBER, "c": FLAG}
    for form in FORMS:
        with pytest.raises(InputError, match="no more"):
            write_rows(TypedRows(columns=columns, rows=rows(9)), tmp_path / f"y.{form}")
    assert list(tmp_path.iterdir()) == []
    assert write_rows(TypedRows(columns=columns, rows=rows(7)), path) == 7
    with pytest.raises(InputError, match="replace it with --force"):
        write_rows(TypedRows(columns=columns, rows=rows(2)), path)
    assert len(path.read_text().splitlines()) == 7
    assert write_rows(TypedRows(columns=columns, rows=rows(2)), path, replace=True) == 2
    assert json.loads(path.read_text().splitlines()[1]) == {"a": "=1", "b": 0.25, "c": False}
    big = ({"a": "x" * 10, "b": 1.0, "c": True} for _ in range(2 * CHUNK + 1))
    write_rows(TypedRows(columns=columns, rows=big, about={"n": 1}), tmp_path / "z.parquet")
    file = pq.ParquetFile(tmp_path / "z.parquet")
    assert (file.metadata.num_rows, file.num_row_groups) == (2 * CHUNK + 1, 2)
    assert json.loads(file.schema_arrow.metadata[b"about"]) == {"n": 1}


# ---- training data


@pytest.fixture
def world(tmp_path: Path) -> Iterator[World]:
    """Return 60 labelled runs, of which one repeats a task of an examination word for word."""
    reference = load_reference()
    exam = reference.traces[reference.forms["exam_b"][0]]
    ids = [f"r{k:03d}" for k in range(60)]
    copied = next(i for i in ids if split_of(f"test/{i}") == DEVELOPMENT)
    steps = {"prompt": exam.prompt}
    world = make_world(tmp_path / "w.duckdb", n=60, n_drawn=60, traces={copied: steps})
    world.label("Ann", {i: "complete" if k % 3 else "abandoned" for k, i in enumerate(ids)})
    development = [i for i in ids if split_of(f"test/{i}") == DEVELOPMENT and i != copied]
    world.label("Bo", {development[0]: "hallucinated"})
    yield world
    world.store.close()


def test_training_data_are_what_the_judge_reads_and_people_answered(
    world: World, tmp_path: Path
) -> None:
    before = len(load_batch(world.store, world.batch_id).labelled)
    made = training_set(world.store, world.batch_id, "mine")
    rows = list(made.found.rows)
    development = [i for i in world.drawn if split_of(f"test/{i}") == DEVELOPMENT]
    assert made.left_out == {LOCKED: 60 - len(development), OF_REFERENCE: 1, NO_CLASS: 1}
    assert len(rows) == len(development) - 2
    assert made.prompt_of is None
    assert list(made.found.columns) == ["messages"]  # nothing is simulated
    roles = {tuple(m["role"] for m in row["messages"]) for row in rows}
    assert roles == {("system", "user", "assistant")}
    # The labels correct the rate of this judge no more, but that of all others.
    assert world.store.spent_batches("mine") == [world.batch_id]
    world.judge(dict.fromkeys(world.drawn, "complete"), "mine")
    assert before == 60
    text = "".join(m["content"] for row in rows for m in row["messages"])
    reference = load_reference()
    for form in ("exam_a", "exam_b"):
        for trace_id in reference.forms[form]:
            assert reference.traces[trace_id].prompt not in text


@pytest.mark.parametrize("plan", ["one_call", "per_node"])
def test_a_judge_reads_the_answer_as_the_class_of_the_people(world: World, plan: str) -> None:
    from calibration.analyses.judging.versions import add_judge
    from calibration.judging.requests import Capabilities

    add_judge(
        world.store, "strict", model="m", endpoint="vllm", address="http://127.0.0.1:9/v1",
        capabilities=Capabilities(), settings={"plan": plan, "token_limit": 500},
    )  # fmt: skip
    _, judge = judge_of(world.store, "strict")
    made = training_set(world.store, world.batch_id, "strict")
    rows = list(made.found.rows)
    hashes = world.store.content_hashes(list(world.drawn))
    labels = world.store.label_frame(world.batch_id).set_index("trace_id")["outcome"]
    seen = 0
    for trace in world.store.for_review(list(world.drawn)):
        own = [
            r["messages"] for r in rows if f"Book {trace.trace_id}\n" in r["messages"][1]["content"]
        ]
        if not own:
            continue
        replies: list[Reply] = []
        for messages in own:
            asked = judge.next_step(trace, hashes[trace.trace_id], 0, replies)
            assert not isinstance(asked, SampleVerdict)
            assert asked.body["messages"] == messages[:-1]
            answer = {"choices": [{"finish_reason": "stop", "message": messages[-1]}], "model": "m"}
            replies.append(
                Reply(key="k", status=200, headers={}, body=json.dumps(answer), latency_s=1.0)
            )
        verdict = judge.next_step(trace, hashes[trace.trace_id], 0, replies)
        assert isinstance(verdict, SampleVerdict)
        assert verdict.outcome == labels[trace.trace_id]
        seen += 1
    assert seen > 5


# ---- scores


@pytest.mark.parametrize("platform", DOCUMENTED)
def test_scores_have_the_documented_form(asr: Run, tmp_path: Path, platform: str) -> None:
    for name in ("langfuse", "langsmith", "phoenix"):
        asr("import", IMPORTERS / name, "--yes")
    asr("import", IMPORTERS / "inspect.json", "--yes")
    asr("sample", "--n", 9, "--seed", 1)
    source = "inspect-ai" if platform == "inspect" else platform
    with Store.open(tmp_path / "asr.duckdb") as store:
        theirs, every = store.ids_at_source(source), store.trace_frame()["trace_id"].tolist()
    rows = [{"trace_id": t, "reviewer": "Ann", "outcome": "complete"} for t in every]
    asr("labels", "import", write(tmp_path / "l.jsonl", *rows))
    said = asr("export", "scores", "s.jsonl", "--for", platform).stdout
    assert f"left out: {9 - len(theirs)} traces with a class that are not of" in said
    lines = [json.loads(line) for line in Path("s.jsonl").read_text().splitlines()]
    check = Draft202012Validator(DOCUMENTED[platform])
    assert [error.message for line in lines for error in check.iter_errors(line)] == []
    at = {"langfuse": "traceId", "langsmith": "run_id", "phoenix": "trace_id"}
    assert {line[at.get(platform, "sample_uuid")] for line in lines} == set(theirs.values())
    assert "Ann" not in Path("s.jsonl").read_text()
    # What a schema would refuse.
    for name in DOCUMENTED[platform]["required"]:
        assert not check.is_valid({k: v for k, v in lines[0].items() if k != name})
    asr("export", "scores", "s.csv", "--for", platform, code=2)


def test_a_score_in_a_log_of_inspect_is_no_grade_when_it_is_read_again(
    asr: Run, tmp_path: Path
) -> None:
    log = json.loads((IMPORTERS / "inspect.json").read_text())
    asr("import", write(tmp_path / "a.json", log), "--yes")
    for sample in log["samples"]:
        sample["scores"]["asr-calibration/consensus"] = {"value": 0.0, "answer": "abandoned"}
    done = data(asr("import", write(tmp_path / "b.json", log), "--json", "--yes"))
    assert (done["imported"], done["already_there"], done["changed"]) == (0, 4, 0)
    with Store.open(tmp_path / "asr.duckdb") as store:
        judges = set(store.judge_frame()["judge_id"])
    assert not [name for name in judges if "asr-calibration" in name]


# ---- dataset


def test_a_dataset_has_a_card_and_no_names(asr: Run, labelled: list[str]) -> None:
    said = asr("export", "dataset", "shared").stdout
    folder = Path("shared")
    _, front, card = (folder / "README.md").read_text().split("---\n", 2)
    head, infos = front.split("dataset_info:\n")
    assert "license: unknown  # fill in" in head
    configs = [json.loads(line[2:]) for line in head.split("configs:\n")[1].splitlines()]
    rows = {}
    for config, line in zip(configs, infos.splitlines(), strict=True):
        info = json.loads(line[2:])
        assert info["config_name"] == config["config_name"]
        for files, split in zip(config["data_files"], info["splits"], strict=True):
            read = pq.read_table(folder / files["path"])
            assert read.column_names == [of["name"] for of in info["features"]]
            assert (split["name"], split["num_examples"]) == (files["split"], read.num_rows)
            rows[info["config_name"], split["name"]] = read.to_pylist()
    assert {name for name, _ in rows} == {"traces", "labels", "verdicts"}
    traces = [row for (name, _), of in rows.items() if name == "traces" for row in of]
    assert sorted(row["trace_id"] for row in traces) == sorted(labelled)
    assert traces[0]["response"] == "Booked."
    for split in ("development", "certification"):
        assert {split_of(row["task"]) for row in rows["traces", split]} == {split}
    people = {row["reviewer"] for (name, _), of in rows.items() if name == "labels" for row in of}
    assert people == {"reviewer 1", "reviewer 2", "reviewer 3"}
    everything = b"".join(path.read_bytes() for path in folder.rglob("*.*") if path.is_file())
    assert b"Ann" not in everything
    assert "d'Arc" not in card
    assert "## Agreement" in card
    assert "Of runs like these" in card
    assert "60 rows in shared/data/verdicts/production.parquet" in said
    assert "is a folder" in asr("export", "dataset", "shared", code=2).stderr


def test_simulated_rows_say_so_in_every_format(asr: Run, tmp_path: Path, built_demo: Path) -> None:
    store = ("--store", copy_store(built_demo, tmp_path / "demo.duckdb"))
    for form in FORMS:
        asr("export", "consensus", f"c.{form}", *store)
    assert set(pd.read_csv("c.csv")["simulated"]) == {"yes"}
    assert set(pd.read_json("c.jsonl", lines=True)["simulated"]) == {True}
    assert set(pd.read_parquet("c.parquet")["simulated"]) == {True}
    about = json.loads(pq.read_schema("c.parquet").metadata[b"about"])
    assert about["simulated"] is True
    refused = asr("export", "scores", "s.jsonl", "--for", "langfuse", *store, code=1).stderr
    assert "simulated" in refused
    # Runs of the demo have the tasks of the reference set.
    refused = asr("export", "training", "t.jsonl", "--judge", "x", *store, code=1).stderr
    assert OF_REFERENCE in refused
    assert not Path("t.jsonl").exists()


@pytest.mark.long
def test_the_commands_of_the_page_run(asr: Run, tmp_path: Path, labelled: list[str]) -> None:
    page = (Path(__file__).parents[1] / "docs" / "exports.md").read_text(encoding="utf-8")
    commands = re.findall(r"^\$ asr (.+)$", page, flags=re.MULTILINE)
    assert len(commands) == 9
    for command in commands[:7]:
        asr(*shlex.split(command))
        assert Path(shlex.split(command)[2]).exists()
    # The scores are of runs of another store.
    (tmp_path / "other").mkdir()
    store = ("--store", tmp_path / "other" / "asr.duckdb")
    asr("import", IMPORTERS / "langfuse", "--yes", *store)
    drawn = data(asr("sample", "--n", 3, "--seed", 1, "--json", *store))["trace_ids"]
    rows = [{"trace_id": t, "reviewer": "Ann", "outcome": "complete"} for t in drawn]
    asr("labels", "import", write(tmp_path / "l.jsonl", *rows), *store)
    verdicts = write(tmp_path / "v.jsonl", *({"trace_id": t, "outcome": "complete"} for t in drawn))
    asr("verdicts", "import", verdicts, "--judge", "judge-1", *store)
    for command in commands[7:]:
        assert "3 rows" in asr(*shlex.split(command), "--force", *store).stdout
