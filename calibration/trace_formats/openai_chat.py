"""Chats in OpenAI form: JSON Lines, a JSON list or a Parquet file whose rows have ``messages``.

The form has no id, cost or time. A run without an id is named by its content: the same chat twice
is one run. What else a row or its ``metadata`` says (`FIELDS`) is taken.
"""

import hashlib
import json
from collections.abc import Iterator, Mapping
from pathlib import Path

from calibration.records import Trace, trace_identity
from calibration.trace_formats.base import (
    MAX_COST_USD,
    Head,
    Importer,
    ImportSettings,
    Item,
    Parsed,
    RunGrades,
    run_score,
    stated_scale,
)
from calibration.trace_formats.compressed import first_bytes
from calibration.trace_formats.fields import (
    FieldError,
    as_list,
    first_of,
    identifier,
    moment,
    number,
    part,
    shown,
    whole,
)
from calibration.trace_formats.messages import read_messages
from calibration.trace_formats.own_files import read_json, read_parquet
from calibration.trace_formats.own_records import MAX_TRIAL, NO_WORKFLOW
from calibration.trace_formats.parquet import PARQUET
from calibration.trace_formats.said import Unseen

SOURCE = "openai-chat"
FIELDS = (
    "id", "trace_id", "task_id", "trial", "workflow", "model", "cost_usd", "latency_s",
    "started_at", "reward", "score", "passed",
)  # fmt: skip
_IDS = ("id", "trace_id")
_GRADES = ("reward", "score", "passed")


def read(path: Path, settings: ImportSettings) -> Iterator[Item]:
    """Yield the chats of one file; bad rows are set aside with their line."""

    def parse(row: object, line: int) -> Parsed:
        return _parse(row, line, path, settings)

    if first_bytes(path).startswith(PARQUET):
        yield from read_parquet(path, parse)
    else:
        yield from read_json(path, parse, _has_messages)


def _parse(row: object, line: int, path: Path, settings: ImportSettings) -> Parsed:
    """Convert one chat into a trace and its grade, if it names one."""
    if not isinstance(row, dict):
        raise FieldError(f"is not a chat: an object was expected, got {shown(row)}")
    declared = row.get("metadata")
    told = {**(declared if isinstance(declared, dict) else {}), **row}
    unseen = Unseen()
    spoken = read_messages(as_list(row.get("messages"), "messages"), "messages", unseen)
    if not any(step.role == "assistant" for step in spoken.steps):
        raise FieldError("field 'messages': none is of the assistant, so nothing was done")
    own_id = identifier(first_of(told, *_IDS), "id")
    content = json.dumps([row.get("messages"), row.get("tools")], sort_keys=True)
    source_id = own_id or hashlib.sha256(content.encode()).hexdigest()[:16]
    trial = whole(told.get("trial"), "trial", maximum=MAX_TRIAL) or 0
    task_id = identifier(told.get("task_id"), "task_id") or source_id
    workflow = identifier(told.get("workflow"), "workflow") or NO_WORKFLOW
    trace = Trace(
        trace_id=trace_identity(SOURCE, source_id, trial),
        source=SOURCE,
        source_id=source_id,
        workflow=settings.workflow_for(workflow) or workflow,
        task_id=task_id,
        task_key=f"{SOURCE}/{workflow}/{task_id}",
        trial=trial,
        prompt=spoken.first_user or "The file does not say what was asked.",
        steps=spoken.steps,
        response=spoken.response,
        model=identifier(told.get("model"), "model"),
        started_at=moment(told.get("started_at"), "started_at", settings.zone),
        latency_s=number(told.get("latency_s"), "latency_s"),
        cost_usd=number(told.get("cost_usd"), "cost_usd", maximum=MAX_COST_USD),
        total_tokens=spoken.tokens,
        metadata=unseen.metadata(_metadata(row, told)),
    )
    names = [name for name in _GRADES if told.get(name) is not None]
    scores = tuple(
        run_score(
            name,
            told[name],
            settings.taxonomy,
            role="success" if k else "grade",
            scale=stated_scale(told),
        )
        for k, name in enumerate(names)
    )
    grades = RunGrades(judge=f"source:{SOURCE}", scores=scores)
    return Parsed(trace=trace, grades=grades, line=line, file=str(path))


def _metadata(
    row: Mapping[str, object], told: Mapping[str, object]
) -> Iterator[tuple[str, object]]:
    for key, value in told.items():
        if key not in (*FIELDS, "messages", "tools", "functions", "metadata"):
            yield key, value
    tools = first_of(row, "tools", "functions")
    names = [
        first_of(part(tool, "function") or tool, "name")
        for tool in (tools if isinstance(tools, list) else [])
    ]
    yield "tools", names or None


def _has_messages(head: Head) -> bool:
    return head.any_has("messages")


def _recognises(head: Head) -> bool:
    kinds = ("array", "object", "lines", "parquet")
    return head.kind in kinds and _has_messages(head) and head.is_spoken


OPENAI_CHAT = Importer(
    name=SOURCE,
    title="chats in OpenAI form",
    expects="JSON Lines or Parquet with 'messages', each with its 'role'; optional 'metadata' with "
    "'task_id', 'trial', 'cost_usd' and 'reward'",
    recognises=_recognises,
    read=read,
)
