"""Our own trace records: one run with its steps, labels and verdicts."""

import re
from collections.abc import Collection, Iterator, Mapping
from dataclasses import replace
from pathlib import Path

from calibration.records import Attachment, Step, SubGoal, Trace, Verdict, trace_identity
from calibration.taxonomy import Taxonomy
from calibration.trace_formats.base import MAX_COST_USD, ImportSettings, Parsed
from calibration.trace_formats.fields import (
    FieldError,
    as_list,
    as_object,
    bounded_metadata,
    flag,
    graded,
    graded_to_five,
    identifier,
    moment,
    note,
    number,
    outcome,
    part,
    readable,
    required_id,
    required_text,
    text,
    whole,
    wrong,
)
from calibration.trace_formats.messages import Clock, Transcript, read_messages

RECORD_SOURCE = "records"
MAX_TRIAL = 1_000_000

FIELDS = (
    "trace_id",
    "workflow",
    "family",
    "task_id",
    "trial",
    "prompt",
    "inputs",
    "sub_goals",
    "steps",
    "response",
    "status",
    "agent",
    "model",
    "agent_version",
    "started_at",
    "latency_s",
    "cost_usd",
    "units",
    "total_tokens",
    "success_criteria",
    "simulated",
    "metadata",
    "verdict",
)

TRANSCRIPT_SOURCE = "transcript"
NO_WORKFLOW = "unspecified"

_RESULT_NAMES = {
    "response": ("response", "output"),
    "status": ("status",),
    "cost_usd": ("cost_usd",),
    "latency_s": ("latency_s", "latency"),
}


def parse_record(
    row: Mapping[str, object], settings: ImportSettings, file: Path, line: int
) -> Parsed:
    """Convert one record into a trace and its verdict, if any; errors name the field."""
    trace_id = required_id(row.get("trace_id"), "trace_id")
    found = identifier(row.get("workflow"), "workflow") or identifier(row.get("family"), "family")
    workflow = settings.workflow_for(found)
    if workflow is None:
        raise FieldError("field 'workflow': is missing; add it to the file or give --workflow")
    task_id = identifier(row.get("task_id"), "task_id") or trace_id
    model = identifier(row.get("model"), "model") or identifier(row.get("agent"), "agent")
    simulated = flag(row.get("simulated"), "simulated") or False
    units = number(row.get("units"), "units", above_zero=True)
    trace = Trace(
        trace_id=trace_id,
        source=RECORD_SOURCE,
        source_id=trace_id,
        workflow=workflow,
        task_id=task_id,
        task_key=f"{RECORD_SOURCE}/{found or workflow}/{task_id}",
        trial=whole(row.get("trial"), "trial", maximum=MAX_TRIAL) or 0,
        prompt=required_text(row.get("prompt"), "prompt"),
        inputs=read_inputs(row.get("inputs")),
        sub_goals=read_sub_goals(row.get("sub_goals")),
        steps=_steps(row.get("steps")),
        response=readable(row.get("response")) or None,
        status=identifier(row.get("status"), "status"),
        model=model,
        agent_version=identifier(row.get("agent_version"), "agent_version"),
        started_at=moment(row.get("started_at"), "started_at", settings.zone),
        latency_s=number(row.get("latency_s"), "latency_s"),
        cost_usd=number(row.get("cost_usd"), "cost_usd", maximum=MAX_COST_USD),
        units=1.0 if units is None else units,
        total_tokens=whole(row.get("total_tokens"), "total_tokens"),
        success_criteria=text(row.get("success_criteria"), "success_criteria"),
        metadata=bounded_metadata(extra_metadata(row, FIELDS)),
        simulated=simulated,
    )
    verdict = _verdict(row.get("verdict"), trace_id, simulated, settings.taxonomy)
    return Parsed(trace=trace, verdict=verdict, line=line, file=str(file))


def extra_metadata(
    row: Mapping[str, object], known: Collection[str]
) -> Iterator[tuple[str, object]]:
    """Yield declared metadata, then the fields that are not `known`."""
    declared = as_object(row.get("metadata"), "metadata")
    yield from declared.items()
    if row.get("model") is not None:
        yield "agent", row.get("agent")
    for key, value in row.items():
        if key not in known and key not in declared:
            yield key, value


def read_inputs(value: object) -> tuple[Attachment, ...]:
    """Check the documents of a task: a list of objects with `name` and `text`."""
    attachments = []
    for index, item in enumerate(as_list(value, "inputs"), start=1):
        entry = _entry(item, f"inputs[{index}]")
        name = identifier(entry.get("name"), f"inputs[{index}].name") or f"Input {index}"
        content = text(entry.get("text"), f"inputs[{index}].text")
        if content is None:
            raise FieldError(f"field 'inputs[{index}].text': is missing")
        attachments.append(Attachment(name=name, text=content))
    return tuple(attachments)


def read_sub_goals(value: object) -> tuple[SubGoal, ...]:
    """Check the sub-goals of a task: a list of objects with `id`, `text` and `matters`."""
    goals = []
    for index, item in enumerate(as_list(value, "sub_goals"), start=1):
        entry = _entry(item, f"sub_goals[{index}]")
        matters = flag(entry.get("matters"), f"sub_goals[{index}].matters")
        goals.append(
            SubGoal(
                id=identifier(entry.get("id"), f"sub_goals[{index}].id") or str(index),
                text=required_text(entry.get("text"), f"sub_goals[{index}].text"),
                matters=True if matters is None else matters,
            )
        )
    _refuse_repeats([goal.id for goal in goals], "sub_goals", "id")
    return tuple(goals)


def _steps(value: object) -> tuple[Step, ...]:
    steps = []
    for index, item in enumerate(as_list(value, "steps"), start=1):
        where = f"steps[{index}]"
        entry = _entry(item, where)
        steps.append(
            Step(
                step_id=identifier(entry.get("step_id"), f"{where}.step_id") or f"s{index}",
                role=required_id(entry.get("role"), f"{where}.role"),
                content=readable(entry.get("content")),
                tool=identifier(entry.get("tool"), f"{where}.tool"),
                arguments=readable(entry.get("arguments")),
                result=readable(entry.get("result")),
                error=flag(entry.get("error"), f"{where}.error") or False,
                tokens_in=whole(entry.get("tokens_in"), f"{where}.tokens_in"),
                tokens_out=whole(entry.get("tokens_out"), f"{where}.tokens_out"),
                seconds=number(entry.get("seconds"), f"{where}.seconds"),
                at=number(entry.get("at"), f"{where}.at"),
            )
        )
    _refuse_repeats([step.step_id for step in steps], "steps", "step_id")
    return tuple(steps)


def _entry(item: object, name: str) -> Mapping[str, object]:
    if not isinstance(item, dict):
        raise wrong(name, "must be an object", item)
    return item


def _refuse_repeats(ids: list[str], name: str, key: str) -> None:
    seen: set[str] = set()
    for value in ids:
        if value in seen:
            raise FieldError(f"field {name!r}: {key} {value!r} occurs twice")
        seen.add(value)


def _verdict(value: object, trace_id: str, simulated: bool, taxonomy: Taxonomy) -> Verdict | None:
    if value is None:
        return None
    entry: Mapping[str, object]
    entry = {"outcome": value} if isinstance(value, str) else as_object(value, "verdict")
    proposed = flag(entry.get("proposed"), "verdict.proposed")
    return Verdict(
        judge_id=identifier(entry.get("judge"), "verdict.judge") or f"source:{RECORD_SOURCE}",
        trace_id=trace_id,
        outcome=outcome(entry.get("outcome"), "verdict.outcome", taxonomy.names),
        reason=note(text(entry.get("reason"), "verdict.reason")),
        proposed=proposed or False,
        simulated=simulated,
    )


_OWN_FIELDS = (
    *FIELDS,
    "trial_id",
    "messages",
    "tool_calls",
    "grading",
    "result",
    "output",
    "latency",
)


def is_transcript(row: Mapping[str, object]) -> bool:
    """Return whether a record is a transcript, not a trace record."""
    return "messages" in row and ("task_id" in row or "trial_id" in row)


def parse_transcript(
    row: Mapping[str, object], settings: ImportSettings, file: Path, line: int
) -> Parsed:
    """Convert one transcript record into a trace and its verdict; FieldErrors name the field."""
    task_id = required_id(row.get("task_id"), "task_id")
    trial, label = _trial(row)
    source_id = f"{file.stem}/{task_id}" + (f"/{label}" if label else "")
    found = identifier(row.get("workflow"), "workflow") or identifier(row.get("family"), "family")
    own_id = identifier(row.get("trace_id"), "trace_id")
    started = moment(row.get("started_at"), "started_at", settings.zone)
    spoken = read_messages(
        as_list(row.get("messages"), "messages"),
        "messages",
        clock=Clock(start=started, zone=settings.zone),
    )
    result = _result(row)
    units = number(row.get("units"), "units", above_zero=True)
    model = identifier(row.get("model"), "model") or identifier(row.get("agent"), "agent")
    trace = Trace(
        trace_id=own_id or trace_identity(TRANSCRIPT_SOURCE, source_id, trial),
        source=TRANSCRIPT_SOURCE,
        source_id=own_id or source_id,
        workflow=settings.workflow_for(found) or NO_WORKFLOW,
        task_id=task_id,
        task_key=f"{TRANSCRIPT_SOURCE}/{found or NO_WORKFLOW}/{task_id}",
        trial=trial,
        prompt=_prompt(row, spoken, task_id),
        inputs=read_inputs(row.get("inputs")),
        sub_goals=read_sub_goals(row.get("sub_goals")),
        steps=_with_calls(spoken, as_list(row.get("tool_calls"), "tool_calls")),
        response=readable(result.get("response")) or spoken.response,
        status=identifier(result.get("status"), "result.status"),
        model=model,
        agent_version=identifier(row.get("agent_version"), "agent_version"),
        started_at=started,
        latency_s=number(result.get("latency_s"), "result.latency_s"),
        cost_usd=number(result.get("cost_usd"), "result.cost_usd", maximum=MAX_COST_USD),
        units=1.0 if units is None else units,
        total_tokens=spoken.tokens
        if row.get("total_tokens") is None
        else whole(row.get("total_tokens"), "total_tokens"),
        success_criteria=text(row.get("success_criteria"), "success_criteria"),
        metadata=bounded_metadata(_metadata(row)),
        simulated=flag(row.get("simulated"), "simulated") or False,
    )
    verdict = _grade(row.get("grading"), trace.trace_id, settings.taxonomy)
    return Parsed(trace=trace, verdict=verdict, line=line, file=str(file))


def _result(row: Mapping[str, object]) -> dict[str, object]:
    """Return response, status, cost and latency, from `result` or the record itself."""
    given = row.get("result")
    inner = given if isinstance(given, dict) else {"response": given}
    found = {}
    for field, names in _RESULT_NAMES.items():
        values = [holder.get(name) for holder in (inner, row) for name in names]
        found[field] = next((value for value in values if value is not None), None)
    return found


def _metadata(row: Mapping[str, object]) -> Iterator[tuple[str, object]]:
    yield from extra_metadata(row, _OWN_FIELDS)
    if isinstance(row.get("grading"), dict):
        yield "grading", row.get("grading")


def _trial(row: Mapping[str, object]) -> tuple[int, str | None]:
    """Return the trial number (3 for ``run-3``, 0 without a number), and the name if it differs."""
    value = row["trial_id"] if row.get("trial_id") is not None else row.get("trial")
    if isinstance(value, str):
        label = required_id(value, "trial_id")
        digits = re.search(r"([0-9]{1,6})$", label)
        trial = int(digits[1]) if digits else 0
        return trial, None if label == str(trial) else label
    return whole(value, "trial_id", maximum=MAX_TRIAL) or 0, None


def _prompt(row: Mapping[str, object], spoken: Transcript, task_id: str) -> str:
    given = text(row.get("prompt"), "prompt")
    if given and given.strip():
        return given
    return spoken.first_user or f"Task {task_id}; the file does not say what was asked."


def _with_calls(spoken: Transcript, calls: list[object]) -> tuple[Step, ...]:
    """Merge the list of tool calls into the steps of the messages.

    A call is matched by its id, else by its tool's name in order: it adds its latency, and its
    result where no message holds one. A call without a message is a step of its own, before the
    agent's last text.
    """
    steps = list(spoken.steps)
    called = [i for i, s in enumerate(steps) if s.role == "assistant" and s.tool is not None]
    results = {
        call_id: i
        for i, call_id in enumerate(spoken.call_ids)
        if call_id is not None and steps[i].role != "assistant"
    }
    extra = []
    for index, call in enumerate(calls, start=1):
        step, call_id = _call_step(call, index)
        by_id = [i for i in called if call_id is not None and spoken.call_ids[i] == call_id]
        match = by_id or [i for i in called if steps[i].tool == step.tool]
        if not match:
            extra.append(step)
            continue
        at = match[0]
        called.remove(at)
        answered = results.get(spoken.call_ids[at] or "")
        if answered is not None:
            steps[answered] = replace(steps[answered], error=steps[answered].error or step.error)
        steps[at] = replace(
            steps[at],
            seconds=step.seconds,
            result=step.result if answered is None else None,
            error=step.error if answered is None else False,
        )
    replies = [i for i, s in enumerate(steps) if s.content and s.role == "assistant"]
    last = replies[-1] if replies else len(steps)
    merged = [*steps[:last], *extra, *steps[last:]]
    return tuple(replace(step, step_id=f"s{i}") for i, step in enumerate(merged, start=1))


def _call_step(call: object, index: int) -> tuple[Step, str | None]:
    where = f"tool_calls[{index}]"
    if not isinstance(call, dict):
        raise FieldError(f"field {where!r}: must be an object")
    latency = call["latency_s"] if call.get("latency_s") is not None else call.get("latency")
    failure = call.get("error")
    named = isinstance(failure, str | dict) and bool(failure)
    result = call.get("result")
    step = Step(
        step_id="",
        role="assistant",
        tool=required_id(call.get("name"), f"{where}.name"),
        arguments=readable(call.get("arguments")),
        result=readable(failure if result is None and named else result),
        error=named or (isinstance(failure, bool) and failure),
        seconds=number(latency, f"{where}.latency_s"),
    )
    call_id = call.get("id")
    return step, call_id if isinstance(call_id, str) else None


def _grade(grading: object, trace_id: str, taxonomy: Taxonomy) -> Verdict | None:
    """Return the verdict of a grading: an outcome by name, a grade, or a reward, score or pass."""
    judge = f"source:{TRANSCRIPT_SOURCE}"
    reason = part(grading, "reason")
    details = [d for d in (note(readable(reason)),) if d]
    named = part(grading, "outcome")
    if isinstance(named, str) and named.strip() in taxonomy.names:
        return Verdict(
            judge_id=judge,
            trace_id=trace_id,
            outcome=named.strip(),
            reason=details[0] if details else None,
            proposed=True,
        )
    to_five = part(grading, "grade")
    if to_five is not None:
        return graded_to_five(to_five, judge, trace_id, taxonomy, details=details)
    candidates = [part(grading, key) for key in ("reward", "score", "passed", "outcome")]
    bare = grading if isinstance(grading, bool | int | float | str) else None
    reward = next((value for value in (*candidates, bare) if value is not None), None)
    return graded(reward, judge, trace_id, taxonomy, details=details)
