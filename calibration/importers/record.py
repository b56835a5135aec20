"""One record of our own trace format (docs/trace-format.md) as a trace."""

from collections.abc import Collection, Iterator, Mapping
from pathlib import Path

from calibration.importers.base import MAX_COST_USD, FieldError, ImportSettings, Parsed
from calibration.importers.fields import (
    as_list,
    as_object,
    bounded_metadata,
    flag,
    identifier,
    moment,
    note,
    number,
    outcome,
    readable,
    required_id,
    required_text,
    text,
    whole,
    wrong,
)
from calibration.records import Attachment, Step, SubGoal, Trace, Verdict

SOURCE = "records"
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


def parse_record(
    row: Mapping[str, object], settings: ImportSettings, file: Path, line: int
) -> Parsed:
    """Turn one record into a trace and the verdict that it may carry.

    Raises
    ------
    FieldError
        If a field is missing or ill-typed; the message names it.
    """
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
        source=SOURCE,
        source_id=trace_id,
        workflow=workflow,
        task_id=task_id,
        task_key=f"{SOURCE}/{found or workflow}/{task_id}",
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
    verdict = _verdict(row.get("verdict"), trace_id, simulated)
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


def _verdict(value: object, trace_id: str, simulated: bool) -> Verdict | None:
    if value is None:
        return None
    entry: Mapping[str, object]
    entry = {"outcome": value} if isinstance(value, str) else as_object(value, "verdict")
    proposed = flag(entry.get("proposed"), "verdict.proposed")
    return Verdict(
        judge_id=identifier(entry.get("judge"), "verdict.judge") or f"source:{SOURCE}",
        trace_id=trace_id,
        outcome=outcome(entry.get("outcome"), "verdict.outcome"),
        reason=note(text(entry.get("reason"), "verdict.reason")),
        proposed=proposed or False,
        simulated=simulated,
    )
