"""A rubric of two, three or nine classes: every number and every text names its classes alone."""

import csv
import json
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from calibration.taxonomy import (
    Taxonomy,
    load_taxonomy,
    ready_rubrics,
)
from tests.cli_runs import Run, data

# Nine classes on a chain of eight questions, with credits in ninths.
NINE = "\n".join(
    [
        'version = "nine-1"',
        *(
            f'[[classes]]\nname = "grade_{k}"\ntitle = "Grade {k}"\ncredit = {(9 - k) / 8:.3f}'
            for k in range(1, 10)
        ),
        *(
            f'[[nodes]]\nid = "below_{k}"\nquestion = "Is it below grade {k}?"\n'
            f'yes = "{f"below_{k + 1}" if k < 8 else "grade_9"}"\nno = "grade_{k}"'
            for k in range(1, 9)
        ),
    ]
)
# What belongs to the published classes and to no other rubric. As a whole word: `partial_30` is a
# table of the sensitivity analysis.
OF_OTHERS = re.compile(
    r"\b(partial_plus|partial_minus|hallucinated|abandoned|Partial-correct|Completed)\b"
)


def rubric_file(name: str, folder: Path) -> Path:
    if name in ready_rubrics():
        return ready_rubrics()[name]
    path = folder / "nine.toml"
    path.write_text(NINE, encoding="utf-8")
    return path


def write_files(taxonomy: Taxonomy, folder: Path, n: int = 60) -> None:
    """Write runs of tasks with three trials, labels of two reviewers, and verdicts."""
    rng = np.random.default_rng(3)
    names = taxonomy.names
    truth = rng.integers(len(names), size=n)

    def noisy(error: float) -> list[str]:
        other = rng.integers(len(names), size=n)
        return [names[o if rng.random() < error else t] for t, o in zip(truth, other, strict=True)]

    judge, ann, bob = noisy(0.25), noisy(0.1), noisy(0.1)
    with (folder / "runs.jsonl").open("w", encoding="utf-8") as file:
        for k in range(n):
            run = {
                "trace_id": f"r{k:03d}", "workflow": "flights", "prompt": f"Book {k // 3}",
                "response": "Booked.", "cost_usd": 0.25 + k / 100, "task_id": f"t{k // 3}",
                "trial": k % 3, "started_at": f"2026-07-{1 + k % 28:02d}T12:00:00Z",
                "latency_s": 2.0 + k / 10, "model": "m",
            }  # fmt: skip
            file.write(json.dumps(run) + "\n")
    tables: dict[str, tuple[list[str], list[list[Any]]]] = {
        "labels.csv": (
            ["trace_id", "reviewer", "outcome"],
            [
                [f"r{k:03d}", who, of[k]]
                for who, of in (("ann", ann), ("bob", bob))
                for k in range(n)
            ],
        ),
        "ratings.csv": (
            ["item", "rater", "label"],
            [
                [f"r{k:03d}", who, of[k]]
                for who, of in (("ann", ann), ("bob", bob))
                for k in range(n)
            ],
        ),
        "verdicts.csv": (
            ["trace_id", "outcome", "workflow", "task_id"],
            [[f"r{k:03d}", judge[k], "flights", f"t{k // 3}"] for k in range(n)],
        ),
        "runs.csv": (
            ["trace_id", "task_id", "trial", "workflow", "outcome", "cost_usd", "tier"],
            [
                [f"r{k:03d}", f"t{k // 3}", k % 3, "flights", ann[k], 0.25, "core"]
                for k in range(n)
            ],
        ),
    }  # fmt: skip
    (folder / "gates.toml").write_text("defaults = true\n", encoding="utf-8")
    for name, (head, rows) in tables.items():
        with (folder / name).open("w", encoding="utf-8", newline="") as out:
            csv.writer(out).writerows([head, *rows])


@pytest.mark.long
@pytest.mark.parametrize("name", ["two_class", "three_class", "nine"])
def test_the_whole_way_on_a_store(name: str, asr: Run, tmp_path: Path) -> None:
    file = rubric_file(name, tmp_path)
    taxonomy = load_taxonomy(file)
    write_files(taxonomy, tmp_path)
    shown = [asr("taxonomy", "use", file).output]
    asr("import", "runs.jsonl", "--yes")
    for who in ("ann", "bob"):
        asr("people", "add", who)
    asr("sample", "--n", 60, "--seed", 1)
    asr("labels", "import", "labels.csv")
    asr("verdicts", "import", "verdicts.csv", "--judge", "strict")
    for command in (
        ["agreement", "--full"], ["calibrate", "--judge", "strict", "--full"], ["report", "--full"],
        ["report", "--judge", "strict", "--json"], ["status"],
        ["taxonomy", "show"], ["export", "labels"], ["plan", "labels", "--n", "40"],
    ):  # fmt: skip
        shown.append(asr(*command).output)
    shown.append(asr("gate", "--gates", "gates.toml", "--store", "asr.duckdb", code=1).output)
    for text in shown:
        assert OF_OTHERS.search(text) is None, OF_OTHERS.search(text)
    found = data(asr("report", "--judge", "strict", "--json"))
    rates = json.dumps(found)
    assert all(name in rates for name in taxonomy.names)


@pytest.mark.parametrize("name", ["two_class", "nine"])
def test_the_whole_way_on_files(name: str, asr: Run, tmp_path: Path) -> None:
    file = rubric_file(name, tmp_path)
    taxonomy = load_taxonomy(file)
    write_files(taxonomy, tmp_path)
    fork = ("--taxonomy", file, "--ceiling", "flights=0.5")
    shown = [
        asr("report", "runs.csv", "--full", *fork).output,
        asr("compare", "runs.csv", "runs.csv", "--full", *fork).output,
        asr("agreement", "ratings.csv", "--full").output,
    ]
    for text in shown:
        assert OF_OTHERS.search(text) is None, OF_OTHERS.search(text)
    asr("gate", "runs.csv", "--gates", "gates.toml", *fork, code=1)
    last = taxonomy.names[-1]
    worth = data(asr("report", "runs.csv", "--json", *fork, "--credit", f"{last}=.25"))
    found = data(asr("report", "runs.csv", "--json", *fork))
    with (tmp_path / "runs.csv").open(encoding="utf-8") as rows:
        classes = [row["outcome"] for row in csv.DictReader(rows)]
    mean = float(np.mean([taxonomy.credit[of] for of in classes]))
    assert found["asr"]["value"] == pytest.approx(mean)
    gained = classes.count(last) / len(classes) * (0.25 - taxonomy.credit[last])
    assert worth["asr"]["value"] == pytest.approx(mean + gained)
    assert worth["fingerprint"] != found["fingerprint"]
    assert "is not one of" in asr("report", "runs.csv", *fork, "--credit", "x=1", code=2).stderr
    assert found["pass_rate"]["value"] == pytest.approx(classes.count(taxonomy.success) / 60)


def test_a_rubric_of_another_kind_has_no_published_practice(asr: Run) -> None:
    asr("taxonomy", "use", ready_rubrics()["two_class"])
    assert "asr reference add" in asr("reference", "practise", code=1).output
