"""Rows that break the schema, files that cannot be read, checksums that do not fit."""

from collections.abc import Callable
from typing import Any

from reference_dataset.loader import LABELS
from tests.reference_dataset.broken import Break, Breaks, Broken, complete
from tests.reference_dataset.copies import Copy, Row

BREAKS = Breaks()


# Schema


def bad_header(file: str, change: Callable[[Row], Any], says: str) -> Break:
    def broken(copy: Copy) -> Broken:
        rows = copy.read(file)
        change(rows[0])
        copy.write(file, rows)
        return Broken("schema", file, 1, says)

    return broken


def bad_row(kind: str, change: Callable[[Row], Any], says: str) -> Break:
    def broken(copy: Copy) -> Broken:
        trace, label = complete(copy)
        change(trace if kind == "trace" else label)
        place = copy.put_trace(trace) if kind == "trace" else copy.put_label(label)
        return Broken("schema", *place, says)

    return broken


BREAKS |= {
    "trace header without canary": bad_header(
        "research.jsonl", lambda h: h.pop("canary"), "canary"
    ),
    "trace header with more": bad_header("research.jsonl", lambda h: h.update(by="me"), "'by'"),
    "label header without licence": bad_header(LABELS, lambda h: h.pop("licence"), "licence"),
    "label header without version": bad_header(LABELS, lambda h: h.pop("version"), "version"),
    "no cost": bad_row("trace", lambda t: t.update(cost_usd=None), "cost_usd"),
    "free of charge": bad_row("trace", lambda t: t.update(cost_usd=0), "cost_usd"),
    "no prompt": bad_row("trace", lambda t: t.update(prompt=""), "prompt"),
    "no status": bad_row("trace", lambda t: t.pop("status"), "status"),
    "a named model": bad_row("trace", lambda t: t.update(agent="gpt"), "agent"),
    "a local time": bad_row("trace", lambda t: t.update(started_at="2026-01-02 10:00"), "started"),
    "no units": bad_row("trace", lambda t: t.update(units=0), "units"),
    "a label in the trace": bad_row("trace", lambda t: t.update(outcome="complete"), "outcome"),
    "two sub-goals": bad_row(
        "trace", lambda t: t.update(sub_goals=t["sub_goals"][:2]), "sub_goals"
    ),
    "a sub-goal that may matter": bad_row(
        "trace", lambda t: t["sub_goals"][0].update(matters="yes"), "sub_goals/0/matters"
    ),
    "an input without text": bad_row(
        "trace", lambda t: t.update(inputs=[{"name": "a.txt"}]), "inputs/0"
    ),
    "three steps": bad_row("trace", lambda t: t.update(steps=t["steps"][:3]), "steps"),
    "26 steps": bad_row(
        "trace", lambda t: t.update(steps=(t["steps"] * 26)[:26]), "steps"
    ),
    "a step of a robot": bad_row(
        "trace", lambda t: t["steps"][1].update(role="robot"), "steps/1/role"
    ),
    "arguments as an object": bad_row(
        "trace", lambda t: t["steps"][1].update(arguments={"q": 1}), "steps/1/arguments"
    ),
    "tokens below zero": bad_row(
        "trace", lambda t: t["steps"][1].update(tokens_in=-1), "tokens_in"
    ),
    "a step id of its own": bad_row(
        "trace", lambda t: t["steps"][0].update(step_id="a"), "steps/0"
    ),
    "a step without seconds": bad_row("trace", lambda t: t["steps"][1].pop("seconds"), "seconds"),
    "an answer maybe": bad_row(
        "label", lambda label: label["answers"].update(output="maybe"), "answers/output"
    ),
    "a sixth class": bad_row("label", lambda label: label.update(outcome="fine"), "outcome"),
    "difficulty easy": bad_row(
        "label", lambda label: label.update(difficulty="easy"), "difficulty"
    ),
    "no reason against": bad_row("label", lambda label: label.update(why_not=""), "why_not"),
    "no nearest wrong": bad_row("label", lambda label: label.pop("nearest_wrong"), "nearest_wrong"),
    "no evidence": bad_row("label", lambda label: label.update(evidence=[]), "evidence"),
    "evidence without a quote": bad_row(
        "label", lambda label: label["evidence"][0].pop("quote"), "evidence/0"
    ),
    "evidence that shows nothing": bad_row(
        "label", lambda label: label["evidence"][0].update(shows=""), "evidence/0/shows"
    ),
    "a key that was not searched": bad_row(
        "label", lambda label: label["evidence"][0].update(key="x"), "absent_from"
    ),
    "a search without a key": bad_row(
        "label", lambda label: label["evidence"][0].update(absent_from=["s1"]), "key"
    ),
}  # fmt: skip


@BREAKS.named
def labels_without_header(copy: Copy) -> Broken:
    copy.write(LABELS, copy.read(LABELS)[1:])
    return Broken("schema", LABELS, 1, "canary")


@BREAKS.named
def an_empty_trace_file(copy: Copy) -> Broken:
    (copy.folder / "traces" / "scheduling.jsonl").write_text("\n", encoding="utf-8")
    return Broken("schema", "scheduling.jsonl", None, "no header")


# Checksums and files


@BREAKS.named
def changed_since(copy: Copy) -> Broken:
    with copy.path(LABELS).open("a", encoding="utf-8") as file:
        file.write("\n")
    return Broken("checksums", "SHA256SUMS", None, f"{LABELS} has changed since", seal=False)


@BREAKS.named
def no_checksums(copy: Copy) -> Broken:
    copy.path("SHA256SUMS").unlink()
    return Broken("checksums", "SHA256SUMS", None, "is missing", seal=False)


@BREAKS.named
def a_checksum_of_nothing(copy: Copy) -> Broken:
    with copy.path("SHA256SUMS").open("a", encoding="utf-8") as file:
        file.write(f"{'0' * 64}  traces/poetry.jsonl\n")
    line = len(copy.path("SHA256SUMS").read_text(encoding="utf-8").splitlines())
    return Broken("checksums", "SHA256SUMS", line, "traces/poetry.jsonl", seal=False)


def missing(file: str) -> Break:
    def broken(copy: Copy) -> Broken:
        copy.path(file).unlink()
        return Broken("files", file, None, "No such file", seal=False)

    return broken


def spoilt(file: str, line: int | None, text: bytes, says: str) -> Break:
    """Replace a line, or the whole file."""

    def broken(copy: Copy) -> Broken:
        path = copy.path(file)
        lines = path.read_bytes().split(b"\n")
        lines = [text] if line is None else [*lines[: line - 1], text, *lines[line:]]
        path.write_bytes(b"\n".join(lines))
        return Broken("files", file, line, says, seal=False)

    return broken


BREAKS |= {
    "no labels": missing(LABELS),
    "no forms": missing("forms.toml"),
    "a trace cut off": spoilt("research.jsonl", 4, b'{"trace_id": "resea', "is not JSON"),
    "a label cut off": spoilt(LABELS, 3, b'{"trace_id"', "is not JSON"),
    "a cost of NaN": spoilt("research.jsonl", 4, b'{"cost_usd": NaN}', "NaN"),
    "a number without end": spoilt(LABELS, 3, b'{"n": ' + b"9" * 5000 + b"}", "is not JSON"),
    "brackets without end": spoilt(LABELS, 3, b"[" * 100_000, "is not JSON"),
    "a list for a trace": spoilt("research.jsonl", 4, b"[1, 2]", "must be an object"),
    "traces in Latin-1": spoilt("research.jsonl", None, '{"a": "é"}'.encode("latin-1"), "UTF-8"),
    "forms that are no TOML": spoilt("forms.toml", None, b"practice = [", "is not TOML"),
    "a form that is no table": spoilt("forms.toml", None, b"practice = 3", "must be a table"),
    "a form of numbers": spoilt("forms.toml", None, b"practice.traces = [[1]]", "must be a table"),
}  # fmt: skip


@BREAKS.named
def no_traces(copy: Copy) -> Broken:
    for path in (copy.folder / "traces").iterdir():
        path.unlink()
    return Broken("files", copy.folder.name, None, "holds no traces", seal=False)
