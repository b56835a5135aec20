"""Trajectories of SWE-agent: one ``.traj`` file is one run, named by the instance it worked on.

The steps are the actions of the agent with what came back; a file without them has its messages.
Demonstrations are no part of the run. The cost is `info.model_stats.instance_cost`; a run that did
not submit anything proposes the class of runs without output. The file holds no grade: whether the
patch solves the issue is in the report of the benchmark.
"""

import hashlib
import json
import math
import re
from collections.abc import Iterator, Mapping
from functools import partial
from pathlib import Path

from calibration.records import Step, Trace, trace_identity
from calibration.trace_formats.base import (
    MAX_COST_USD,
    Head,
    Importer,
    ImportSettings,
    Item,
    Parsed,
    RunGrades,
    attempt,
)
from calibration.trace_formats.fields import (
    FieldError,
    as_list,
    first_of,
    identifier,
    note,
    number,
    part,
    readable,
    whole,
    without_output,
)
from calibration.trace_formats.json_scanner import JsonText, decode_text
from calibration.trace_formats.messages import read_messages
from calibration.trace_formats.said import THOUGHT_FIELDS, Unseen

SOURCE = "swe-agent"
SUBMITTED = "submitted"
TRAJECTORY, HISTORY = "trajectory", "history"

_KNOWN = frozenset({TRAJECTORY, HISTORY, "info", "environment", "replay_config"})
# Every step repeats the messages that led to it.
_PASSED_OVER = frozenset({"query", "messages", "extra_info"})
_TOOL = re.compile(r"[\w./-]{1,60}")


def read(path: Path, settings: ImportSettings) -> Iterator[Item]:
    """Yield the run of one file."""
    source = JsonText(path)
    found: dict[str, object] = {}
    for key, at in source.members(source.start):
        if key == TRAJECTORY and source.mark(at) == "[":
            found[key] = [_action(source, place) for place in source.places(at)]
        elif key in _KNOWN:
            found[key] = source.decode(at)[0]
    line = source.line(source.start)
    yield attempt(path, line, partial(_parse, found, path, line, settings))


def _action(source: JsonText, at: int) -> object:
    if source.mark(at) != "{":
        return source.decode(at)[0]
    return {
        key: source.decode(place)[0] for key, place in source.members(at) if key not in _PASSED_OVER
    }


def _parse(found: Mapping[str, object], path: Path, line: int, settings: ImportSettings) -> Parsed:
    """Convert a file into a trace and, if it was broken off, a verdict."""
    history = [_message(m) for m in as_list(found.get(HISTORY), HISTORY)]
    unseen = Unseen()
    spoken = read_messages([m for m in history if not part(m, "is_demo")], HISTORY, unseen)
    actions = as_list(found.get(TRAJECTORY), TRAJECTORY)
    if not spoken.steps and not actions:
        raise FieldError("has no step: 'trajectory' and 'history' are empty")
    info = found.get("info")
    stats = part(info, "model_stats")
    steps = spoken.steps
    if actions:
        asked = _before_the_first_action(steps)
        taken = [_step(action, len(asked) + k, unseen) for k, action in enumerate(actions, start=1)]
        steps = (*asked, *taken)
    task_id = _stem(path)
    content = json.dumps([found.get(HISTORY), actions], sort_keys=True)
    source_id = f"{task_id}/{hashlib.sha256(content.encode()).hexdigest()[:12]}"
    workflow = identifier(found.get("environment"), "environment") or SOURCE
    exit_status = identifier(part(info, "exit_status"), "info.exit_status")
    cost = number(part(stats, "instance_cost"), "instance_cost", maximum=MAX_COST_USD)
    counts = [whole(part(stats, f"tokens_{way}"), f"tokens_{way}") for way in ("sent", "received")]
    tokens = None if None in counts else sum(count or 0 for count in counts)
    trace = Trace(
        trace_id=trace_identity(SOURCE, source_id, 0),
        source=SOURCE,
        source_id=source_id,
        workflow=settings.workflow_for(workflow) or workflow,
        task_id=task_id,
        task_key=f"{SOURCE}/{workflow}/{task_id}",
        trial=0,
        prompt=spoken.first_user or f"Instance {task_id}; the file does not say what was asked.",
        steps=steps,
        response=unseen.text(part(info, "submission")) or spoken.response,
        status=exit_status,
        model=_model(found.get("replay_config")),
        agent_version=identifier(part(info, "swe_agent_version"), "swe_agent_version"),
        latency_s=_latency(actions),
        cost_usd=None if cost == 0 and tokens else cost,  # 0: a model without a price
        total_tokens=tokens,
        metadata=unseen.metadata(_metadata(info, found, history)),
    )
    verdict = None
    if exit_status is not None and not exit_status.startswith(SUBMITTED):
        why = f"exit status {exit_status}: nothing was submitted"
        verdict = without_output(why, f"source:{SOURCE}", trace.trace_id, settings.taxonomy)
    grades = RunGrades(judge=f"source:{SOURCE}", verdict=verdict)
    return Parsed(trace=trace, grades=grades, line=line, file=str(path))


def _stem(path: Path) -> str:
    """Return the name of a file without the endings of its format and its compression."""
    name = path.name
    for ending in (".gz", ".zst", ".traj", ".json"):
        name = name.removesuffix(ending)
    return name or SOURCE


def _message(message: object) -> object:
    """Return a message in OpenAI form: a result lists the calls that it answers."""
    calls = part(message, "tool_call_ids")
    if isinstance(message, dict) and isinstance(calls, list) and calls:
        return {**message, "tool_call_id": calls[0]}
    return message


def _before_the_first_action(steps: tuple[Step, ...]) -> tuple[Step, ...]:
    """Return the instructions and the task: what the trajectory does not repeat."""
    first = next((k for k, s in enumerate(steps) if s.role not in ("system", "user")), len(steps))
    told = [k for k, step in enumerate(steps[:first]) if step.role == "user"]
    return steps[: told[0] + 1] if told else steps[:first]


def _step(action: object, place: int, unseen: Unseen) -> Step:
    if not isinstance(action, dict):
        raise FieldError(f"field {TRAJECTORY!r}: step {place} must be an object")
    done = readable(action.get("action"))
    # Models that think send their thoughts apart; `thought` is what they say.
    speech = {name: action.get(name) for name in THOUGHT_FIELDS}
    speech["content"] = first_of(action, "thought", "response")
    words = (done or "").split(maxsplit=1)
    return Step(
        step_id=f"s{place}",
        role="assistant",
        content=unseen.message(speech, "assistant").text or None,
        tool=(words[0] if _TOOL.fullmatch(words[0]) else "shell") if words else None,
        arguments=done if words else None,
        result=unseen.text(action.get("observation"), "tool"),
        seconds=number(action.get("execution_time"), f"{TRAJECTORY}.execution_time"),
    )


def _latency(actions: list[object]) -> float | None:
    """Return the time that the actions took; None if one has none."""
    taken = [number(part(a, "execution_time"), "execution_time") for a in actions]
    known = [seconds for seconds in taken if seconds is not None]
    return math.fsum(known) if known and len(known) == len(taken) else None


def _model(config: object) -> str | None:
    """Return the model of the configuration, which is an object or JSON text."""
    try:
        config = decode_text(config) if isinstance(config, str) else config
        return identifier(part(config, "agent", "model", "name"), "model")
    except FieldError:
        return None


def _metadata(
    info: object, found: Mapping[str, object], history: list[object]
) -> Iterator[tuple[str, object]]:
    yield "api_calls", part(info, "model_stats", "api_calls")
    yield "edited_files30", part(info, "edited_files30")
    yield "demonstrations", sum(bool(part(m, "is_demo")) for m in history) or None
    yield "environment", note(readable(found.get("environment")), limit=200)


def _recognises(head: Head) -> bool:
    if head.kind != "object" or not head.keys:
        return False
    only = head.keys[0] <= _KNOWN and head.any_has(HISTORY, "info")
    return only or head.any_has(TRAJECTORY, "info") or head.any_has(TRAJECTORY, HISTORY)


SWE_AGENT = Importer(
    name=SOURCE,
    title="a SWE-agent trajectory",
    expects="a .traj file: a JSON object with 'trajectory', 'history' and 'info'",
    recognises=_recognises,
    read=read,
)
