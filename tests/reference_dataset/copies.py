"""A copy of the published dataset that a test may break and seal again."""

import json
import tomllib
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from reference_dataset.loader import LABELS, SECOND_PASS, SETTLEMENTS
from reference_dataset.records import FAMILIES, FORMS, PRICE_IN, PRICE_OUT
from reference_dataset.validator import checksums
from reference_dataset.words import visible, words

Row = dict[str, Any]


@dataclass(frozen=True)
class Copy:
    """A dataset in a folder of its own; every line as an object, the header first."""

    folder: Path

    def path(self, file: str) -> Path:
        inside = self.folder / "traces" / file
        return inside if inside.exists() else self.folder / file

    def read(self, file: str) -> list[Row]:
        lines = self.path(file).read_text(encoding="utf-8").split("\n")
        return [json.loads(line) for line in lines if line]

    def write(self, file: str, rows: list[Row]) -> None:
        lines = [json.dumps(row, ensure_ascii=False) for row in rows]
        self.path(file).write_text("\n".join(lines) + "\n", encoding="utf-8")

    @property
    def families(self) -> list[str]:
        return [f for f in FAMILIES if (self.folder / "traces" / f"{f}.jsonl").exists()]

    def pairs(self) -> Iterator[tuple[Row, Row]]:
        """Yield every trace with its label."""
        labels = {row["trace_id"]: row for row in self.read(LABELS)[1:]}
        for family in self.families:
            for trace in self.read(f"{family}.jsonl")[1:]:
                yield trace, labels[trace["trace_id"]]

    def find(self, wanted: Callable[[Row, Row], bool]) -> tuple[Row, Row]:
        """Return the first trace, with its label, for which `wanted` holds."""
        return next((t, label) for t, label in self.pairs() if wanted(t, label))

    def line(self, file: str, trace_id: str) -> int:
        ids = [row.get("trace_id") for row in self.read(file)]
        return ids.index(trace_id) + 1

    def put(self, file: str, row: Row) -> int:
        """Write a row in place of the one with its id; return its line."""
        rows, line = self.read(file), self.line(file, row["trace_id"])
        rows[line - 1] = row
        self.write(file, rows)
        return line

    def put_pairs(self, pairs: list[tuple[Row, Row]]) -> None:
        """Write traces and their labels in place of those with their ids."""
        new: dict[str, dict[str, Row]] = {LABELS: {}}
        for trace, label in pairs:
            new[LABELS][label["trace_id"]] = label
            new.setdefault(f"{trace['family']}.jsonl", {})[trace["trace_id"]] = trace
        for file, rows in new.items():
            self.write(file, [rows.get(row.get("trace_id", ""), row) for row in self.read(file)])

    def put_trace(self, trace: Row) -> tuple[str, int]:
        file = f"{trace['trace_id'].rsplit('-', 1)[0]}.jsonl"
        return file, self.put(file, trace)

    def put_label(self, label: Row) -> tuple[str, int]:
        return LABELS, self.put(LABELS, label)

    def drop(self, file: str, trace_id: str) -> None:
        self.write(file, [row for row in self.read(file) if row.get("trace_id") != trace_id])

    def forms(self) -> dict[str, list[str]]:
        data = tomllib.loads((self.folder / "forms.toml").read_text(encoding="utf-8"))
        return {name: data[name]["traces"] for name in FORMS}

    def write_forms(self, forms: dict[str, list[str]]) -> None:
        parts = [f"[{name}]\ntraces = {json.dumps(ids)}\n" for name, ids in forms.items()]
        (self.folder / "forms.toml").write_text("\n".join(parts), encoding="utf-8")

    def drop_everywhere(self, trace_id: str) -> None:
        self.drop(f"{trace_id.rsplit('-', 1)[0]}.jsonl", trace_id)
        for file in (LABELS, SECOND_PASS, SETTLEMENTS):
            self.drop(file, trace_id)
        self.write_forms(
            {name: [i for i in ids if i != trace_id] for name, ids in self.forms().items()}
        )

    def seal(self) -> None:
        """Write the checksums of the files as they are now."""
        (self.folder / "SHA256SUMS").write_text(checksums(self.folder), encoding="utf-8")


def set_cost(trace: Row, usd: float) -> None:
    """Make the tokens of a trace cost exactly this much; what was written stays covered."""
    for step in trace["steps"]:
        step["tokens_out"] = len(words(f"{step['content'] or ''} {step['arguments'] or ''}"))
    tokens_out = sum(step["tokens_out"] for step in trace["steps"])
    tokens_in = round((usd - tokens_out * PRICE_OUT) / PRICE_IN)
    assert tokens_in >= 0, trace["trace_id"]
    for number, step in enumerate(trace["steps"]):
        step["tokens_in"] = tokens_in if number == 0 else 0
    trace["cost_usd"] = round(usd, 2)


def size(trace: Row) -> int:
    """Count the words that a reviewer reads."""
    return len(words(visible(trace)))


def shorten(trace: Row, label: Row, most: int) -> None:
    """Cut texts that no evidence points at, until at most so many words are left (if possible)."""
    kept = {item["step_id"] for item in label["evidence"]}
    texts = [(item, "text") for item in trace["inputs"] if f"input:{item['name']}" not in kept]
    for step in trace["steps"]:
        if step["step_id"] not in kept:
            texts += [(step, name) for name in ("content", "result", "arguments") if step[name]]
    for holder, name in texts:
        spare = size(trace) - most
        if spare <= 0:
            return
        parts = holder[name].split()
        holder[name] = " ".join(parts[: max(1, len(parts) - spare)])


def plain(trace: Row, label: Row, *, n_words: int) -> None:
    """Turn a trace that is not hallucinated into one of exactly so many dull words."""
    trace["inputs"] = []
    for number, goal in enumerate(trace["sub_goals"]):
        goal["text"] = f"goal{number}"
    for step in trace["steps"]:
        step["content"] = step["arguments"] = None
        step["result"] = "done" if step["role"] == "tool" else None
    trace["prompt"], trace["response"] = "Please.", None
    missing = n_words - size(trace)
    assert missing >= 0
    word = f" p{trace['trace_id']}".replace("-", "")
    trace["prompt"] += "".join(f"{word}{k}x" for k in range(missing))
    label["evidence"] = [{"step_id": "prompt", "quote": "Please.", "shows": "the task"}]
