"""The commands on the reference dataset, and what they say of a broken one."""

import json
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from click.testing import Result

from reference_dataset.loader import load_reference
from tests.cli_runs import Run


@pytest.fixture
def asr(asr: Run) -> Run:
    def called(*arguments: object, code: int = 0) -> Result:
        return asr("reference", *arguments, code=code)

    return called


@pytest.fixture
def mine(asr: Run, tmp_path: Path) -> Path:
    """Return the published set, exported to a new folder."""
    asr("export", "mine")
    return tmp_path / "mine"


def change(path: Path, line: int, edit: Callable[[dict[str, Any]], object]) -> None:
    """Edit one line of a JSONL file."""
    lines = path.read_text(encoding="utf-8").split("\n")
    row = json.loads(lines[line - 1])
    edit(row)
    lines[line - 1] = json.dumps(row)
    path.write_text("\n".join(lines), encoding="utf-8")


def test_a_broken_set_is_named_by_file_line_and_rule(asr: Run, mine: Path) -> None:
    research = mine / "traces" / "research.jsonl"
    change(research, 3, lambda row: row.update(latency_s=row["latency_s"] + 5))
    (mine / "SHA256SUMS").write_text(asr("checksums", "--set", mine).stdout, encoding="utf-8")
    result = asr("validate", "--set", mine, code=2)
    (line,) = result.stdout.splitlines()
    assert line.startswith("research.jsonl, line 3: latency: research-002: ")
    assert result.stderr == "error: 1 problem found\n"
    found = json.loads(asr("validate", "--set", mine, "--json", code=2).stdout)
    (problem,) = found["problems"]
    shown = (found["ok"], problem["file"], problem["line"], problem["rule"])
    assert shown == (False, "research.jsonl", 3, "latency")
    assert line.endswith(problem["message"])
    change(mine / "labels.jsonl", 5, lambda row: row.update(rationale="Short."))
    result = asr("validate", "--set", mine, code=2)
    assert "labels.jsonl, line 5: rationale: " in result.stdout
    assert "SHA256SUMS: checksums: labels.jsonl has changed since" in result.stdout


def test_a_line_of_the_second_pass_that_is_none_is_named(asr: Run, mine: Path) -> None:
    change(mine / "second_pass.jsonl", 3, lambda row: row.pop("quote"))
    result = asr("stats", "--set", mine, code=2)
    assert "second_pass.jsonl, line 3: is no reading of the second pass" in result.stderr


def test_a_copy_gets_ids_of_its_own(asr: Run, mine: Path, tmp_path: Path) -> None:
    result = asr("add", mine, "--name", "ours", code=2)
    assert "'code_review-001' is taken" in result.stderr
    assert "--rename PREFIX" in result.stderr
    assert (
        "prefix of --rename must be"
        in asr("add", mine, "--name", "a", "--rename", "a b", code=2).stderr
    )
    text = asr("add", mine, "--name", "ours", "--rename", "ours").stdout
    assert text.startswith(
        "200 traces added as ours\n200 of them have task and answer of a published"
    )
    kept, given = (
        load_reference(folder) for folder in (tmp_path / "asr.reference" / "sets" / "ours", mine)
    )
    for name in ("traces", "labels", "second_pass", "settlements"):
        before, after = getattr(given, name), getattr(kept, name)
        assert [f"ours-{trace_id}" for trace_id in before] == list(after)
        for trace_id, one in before.items():
            # Nothing differs but the id and what is made from it.
            renamed = after[f"ours-{trace_id}"]
            made = ("trace_id", *(("task_id", "task_key", "source_id") if name == "traces" else ()))
            assert replace(one, **{field: getattr(renamed, field) for field in made}) == renamed
    assert kept.forms == {
        form: tuple(f"ours-{trace_id}" for trace_id in ids) for form, ids in given.forms.items()
    }
    assert asr("validate", "--set", tmp_path / "asr.reference" / "sets" / "ours", "--own").stdout
    again = asr("add", mine, "--name", "again", "--rename", "ours", code=2)
    assert "a different prefix with --rename" in again.stderr


def test_an_export_overwrites_nothing(asr: Run, tmp_path: Path) -> None:
    (tmp_path / "there").mkdir()
    (tmp_path / "file").write_text("mine", encoding="utf-8")
    for name in ("there", "file"):
        result = asr("export", name, code=1)
        assert f"{name}: exists already" in result.stderr
    assert list((tmp_path / "there").iterdir()) == []
    assert (tmp_path / "file").read_text(encoding="utf-8") == "mine"


@pytest.mark.skipif(sys.platform == "win32", reason="needs a link")
def test_an_export_does_not_follow_a_dangling_link(asr: Run, tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to(tmp_path / "elsewhere")
    asr("export", "link", code=2)
    assert not (tmp_path / "elsewhere" / "labels.jsonl").exists()
