"""Our own trace records: one run with its steps, labels and verdicts."""

import re
from collections.abc import Collection, Iterator, Mapping
from dataclasses import replace
from datetime import datetime
from pathlib import Path

from calibration.records import (
    GRADES,
    Attachment,
    Step,
    SubGoal,
    Trace,
    Verdict,
    trace_identity,
)
from calibration.tables import words
from calibration.taxonomy import Taxonomy
from calibration.trace_formats.base import (
    HIGHEST,
    LOWEST,
    MAX_COST_USD,
    MAX_NAME,
    ImportSettings,
    Parsed,
    RunGrades,
    RunScore,
    class_names,
    run_score,
    stated_scale,
)
from calibration.trace_formats.fields import (
    MAX_SECONDS,
    FieldError,
    as_list,
    as_object,
    first_of,
    flag,
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
from calibration.trace_formats.message_shapes import read_said
from calibration.trace_formats.messages import Clock, Transcript, call_arguments, read_messages
from calibration.trace_formats.reliability_fields import RELIABILITY_FIELDS, read_reliability
from calibration.trace_formats.said import Unseen

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
    *RELIABILITY_FIELDS,
)

TRANSCRIPT_SOURCE = "transcript"
NO_WORKFLOW = "unspecified"

_RESULT_NAMES = {
    "response": ("response", "output"),
    "status": ("status",),
    "cost_usd": ("cost_usd", "total_cost_usd"),
}
_SECONDS = ("latency_s", "latency", "total_latency_s")
_MILLISECONDS = ("latency_ms", "total_latency_ms")

# A run may end in these without having been graded; reviewers see them as its status.
_OF_A_RUN = frozenset(
    "success successful succeeded failure failed unsuccessful resolved unresolved solved unsolved "
    "not_resolved not_solved".split()
)
_SCORES = ("reward", "score", "passed")
_GRADE_FIELDS = (*_SCORES, "outcome")
_BARE = ("grading", "result", "status")  # names of what has no name of its own


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
    unseen = Unseen()
    trace = Trace(
        trace_id=trace_id,
        source=RECORD_SOURCE,
        source_id=trace_id,
        workflow=workflow,
        task_id=task_id,
        task_key=f"{RECORD_SOURCE}/{found or workflow}/{task_id}",
        trial=whole(row.get("trial"), "trial", maximum=MAX_TRIAL) or 0,
        prompt=unseen.text(required_text(row.get("prompt"), "prompt")) or "",
        inputs=read_inputs(row.get("inputs")),
        sub_goals=read_sub_goals(row.get("sub_goals")),
        steps=_unnamed(_steps(row.get("steps"), unseen), row),
        response=_response(row, row.get("response"), unseen),
        status=identifier(row.get("status"), "status"),
        model=model,
        agent_version=identifier(row.get("agent_version"), "agent_version"),
        started_at=moment(row.get("started_at"), "started_at", settings.zone),
        latency_s=number(row.get("latency_s"), "latency_s"),
        cost_usd=number(row.get("cost_usd"), "cost_usd", maximum=MAX_COST_USD),
        units=1.0 if units is None else units,
        total_tokens=whole(row.get("total_tokens"), "total_tokens"),
        success_criteria=text(row.get("success_criteria"), "success_criteria"),
        metadata=unseen.metadata(extra_metadata(row, FIELDS)),
        simulated=simulated,
        **read_reliability(row),
    )
    verdict = _verdict(row.get("verdict"), trace_id, simulated, settings.taxonomy)
    return Parsed(trace=trace, grades=RunGrades(verdict=verdict), line=line, file=str(file))


def _response(row: Mapping[str, object], response: object, unseen: Unseen) -> str | None:
    """Return the answer of a run, which may be a refusal beside it."""
    if isinstance(response, dict):  # a message, or the whole answer of a model API
        parts = read_said(response, "assistant", unseen)
        texts = [one.text for one in parts if one.kind == "text" and one.role == "assistant"]
        if texts:
            return texts[-1]
    answer = {"content": response, "refusal": row.get("refusal")}
    return unseen.message(answer, "assistant").text or None


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


def _steps(value: object, unseen: Unseen) -> tuple[Step, ...]:
    steps: list[Step] = []
    earlier: set[str] = set()
    for index, item in enumerate(as_list(value, "steps"), start=1):
        where = f"steps[{index}]"
        entry = _entry(item, where)
        role = required_id(entry.get("role"), f"{where}.role")
        steps.append(
            Step(
                step_id=identifier(entry.get("step_id"), f"{where}.step_id") or f"s{index}",
                role=role,
                content=_content(entry, role, unseen),
                tool=identifier(entry.get("tool"), f"{where}.tool"),
                arguments=readable(entry.get("arguments")),
                result=unseen.returned(entry.get("result")),
                error=flag(entry.get("error"), f"{where}.error") or False,
                tokens_in=whole(entry.get("tokens_in"), f"{where}.tokens_in"),
                tokens_out=whole(entry.get("tokens_out"), f"{where}.tokens_out"),
                seconds=number(entry.get("seconds"), f"{where}.seconds"),
                at=number(entry.get("at"), f"{where}.at"),
                call=identifier(entry.get("call"), f"{where}.call"),
                agent=identifier(entry.get("agent"), f"{where}.agent"),
            )
        )
        if steps[-1].call is not None and steps[-1].call not in earlier:
            raise wrong(f"{where}.call", "must be the step_id of an earlier step", entry["call"])
        earlier.add(steps[-1].step_id)
    _refuse_repeats([step.step_id for step in steps], "steps", "step_id")
    return tuple(steps)


def _content(entry: Mapping[str, object], role: str, unseen: Unseen) -> str | None:
    """Return the text of a step; calls and results in it are written out, for they are no steps."""
    content, others = unseen.message(entry, role)
    if content is None and not others:
        return None
    written = (f"{one.tool or 'tool'}: {one.arguments or one.text or ''}" for one in others)
    return "\n".join(filter(None, (content, *written)))


def _unnamed(steps: tuple[Step, ...], row: Mapping[str, object]) -> tuple[Step, ...]:
    """Return steps without an agent that is the run's own, model or version: it is hidden."""
    own = [row.get(name) for name in ("agent", "model", "agent_version")]
    return tuple(
        replace(step, agent=None) if step.agent is not None and step.agent in own else step
        for step in steps
    )


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
    "transcript",
    "tool_calls",
    "grading",
    "result",
    "output",
    "total_cost_usd",
    *_SECONDS,
    *_MILLISECONDS,
)


def is_transcript(row: Mapping[str, object]) -> bool:
    """Return whether a record is a transcript, not a trace record."""
    spoken = "messages" in row or isinstance(row.get("transcript"), list | dict)
    return spoken and ("task_id" in row or "trial_id" in row)


def parse_transcript(
    row: Mapping[str, object], settings: ImportSettings, file: Path, line: int
) -> Parsed:
    """Convert one transcript record into a trace and its verdict; FieldErrors name the field."""
    if isinstance(inner := row.get("transcript"), dict):
        row = {**inner, **row}
    task_id = required_id(row.get("task_id"), "task_id")
    trial, label = _trial(row)
    source_id = f"{file.stem}/{task_id}" + (f"/{label}" if label else "")
    found = identifier(row.get("workflow"), "workflow") or identifier(row.get("family"), "family")
    own_id = identifier(row.get("trace_id"), "trace_id")
    started = _started(row, settings)
    clock = Clock(start=started, zone=settings.zone)
    said = "transcript" if row.get("messages") is None else "messages"
    unseen = Unseen()
    spoken = read_messages(as_list(row.get(said), said), said, unseen, clock=clock)
    result = _result(row)
    units = number(row.get("units"), "units", above_zero=True)
    model = identifier(row.get("model"), "model") or identifier(row.get("agent"), "agent")
    workflow = settings.workflow_for(found) or NO_WORKFLOW
    trace = Trace(
        trace_id=own_id or trace_identity(TRANSCRIPT_SOURCE, source_id, trial),
        source=TRANSCRIPT_SOURCE,
        source_id=own_id or source_id,
        workflow=workflow,
        task_id=task_id,
        task_key=f"{TRANSCRIPT_SOURCE}/{found or workflow}/{task_id}",
        trial=trial,
        prompt=_prompt(row, spoken, task_id),
        inputs=read_inputs(row.get("inputs")),
        sub_goals=read_sub_goals(row.get("sub_goals")),
        steps=_unnamed(
            _with_calls(spoken, as_list(row.get("tool_calls"), "tool_calls"), clock, unseen), row
        ),
        response=_response(row, result.get("response"), unseen) or spoken.response,
        status=_status(result.get("status"), "result.status"),
        model=model,
        agent_version=identifier(row.get("agent_version"), "agent_version"),
        started_at=started,
        latency_s=_latency(row),
        cost_usd=number(result.get("cost_usd"), "result.cost_usd", maximum=MAX_COST_USD),
        units=1.0 if units is None else units,
        total_tokens=spoken.tokens
        if row.get("total_tokens") is None
        else whole(row.get("total_tokens"), "total_tokens"),
        success_criteria=text(row.get("success_criteria"), "success_criteria"),
        metadata=unseen.metadata(_metadata(row)),
        simulated=flag(row.get("simulated"), "simulated") or False,
        **read_reliability(row),
    )
    grades = _grades(row, settings.taxonomy)
    return Parsed(trace=trace, grades=grades, line=line, file=str(file))


def _result(row: Mapping[str, object]) -> dict[str, object]:
    """Return response, status and cost, from the object `result` or the record itself.

    A bare `result` is never the response: it is a grade, such as PASS, or a note.
    """
    found = {}
    for field, names in _RESULT_NAMES.items():
        inner = first_of(row.get("result"), *names)
        found[field] = first_of(row, *names) if inner is None else inner
    return found


def _started(row: Mapping[str, object], settings: ImportSettings) -> datetime | None:
    """Return the start of a run: `started_at`, else a `timestamp` that is one."""
    started = moment(row.get("started_at"), "started_at", settings.zone)
    try:
        return started or moment(row.get("timestamp"), "timestamp", settings.zone)
    except FieldError:
        return None  # kept as metadata


def _status(value: object, name: str) -> str | None:
    """Return a status that reviewers may see; a grade is none."""
    status = identifier(value, name)
    if status is None or words.fold(status) in _OF_A_RUN:
        return status
    return None if words.VERDICTS.get(words.fold(status)) in ("pass", "fail") else status


def _latency(row: Mapping[str, object]) -> float | None:
    taken = _seconds(row.get("result"), "result")
    return _seconds(row, "record") if taken is None else taken


def _seconds(holder: object, name: str) -> float | None:
    """Return the latency of an object in seconds, from seconds or milliseconds."""
    for key in _SECONDS:
        if (value := part(holder, key)) is not None:
            return number(value, f"{name}.{key}")
    for key in _MILLISECONDS:
        if (value := part(holder, key)) is not None:
            taken = number(value, f"{name}.{key}", maximum=1000 * MAX_SECONDS)
            return None if taken is None else taken / 1000
    return None


def _metadata(row: Mapping[str, object]) -> Iterator[tuple[str, object]]:
    yield from extra_metadata(row, _OWN_FIELDS)
    if isinstance(row.get("grading"), dict | list):
        yield "grading", row.get("grading")
    if not isinstance(row.get("result"), dict):
        yield "result", row.get("result")


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


def _with_calls(
    spoken: Transcript, calls: list[object], clock: Clock, unseen: Unseen
) -> tuple[Step, ...]:
    """Merge the list of tool calls into the steps of the messages.

    A call is matched by its id, else by its tool's name in order: it adds its latency, and its
    arguments, time and result where no message holds them. A call without a message is a step of
    its own, before the agent's last text.
    """
    if not calls:
        return spoken.steps  # numbered already
    steps = list(spoken.steps)
    called = [i for i, s in enumerate(steps) if s.role == "assistant" and s.tool is not None]
    results = {
        call_id: i
        for i, call_id in enumerate(spoken.call_ids)
        if call_id is not None and steps[i].role != "assistant"
    }
    extra = []
    taken = set(results.values())
    for index, call in enumerate(calls, start=1):
        step, call_id = _call_step(call, index, clock, unseen)
        by_id = [i for i in called if call_id is not None and spoken.call_ids[i] == call_id]
        match = by_id or [i for i in called if steps[i].tool == step.tool]
        if not match:
            extra.append(step)
            continue
        at = match[0]
        called.remove(at)
        answered = results.get(spoken.call_ids[at] or "")
        if answered is None and steps[at].result is None:
            answered = _next_result(steps, at, taken)
        if answered is not None:
            taken.add(answered)
            steps[answered] = replace(steps[answered], error=steps[answered].error or step.error)
        steps[at] = replace(
            steps[at],
            arguments=step.arguments if steps[at].arguments is None else steps[at].arguments,
            at=step.at if steps[at].at is None else steps[at].at,
            seconds=step.seconds,
            result=steps[at].result or (step.result if answered is None else None),
            error=step.error if answered is None else False,
        )
    replies = [i for i, s in enumerate(steps) if s.content and s.role == "assistant"]
    last = replies[-1] if replies else len(steps)
    merged = [*steps[:last], *extra, *steps[last:]]
    ids = {step.step_id: f"s{i}" for i, step in enumerate(merged, start=1) if step.step_id}
    return tuple(
        replace(step, step_id=f"s{i}", call=ids[step.call] if step.call else None)
        for i, step in enumerate(merged, start=1)
    )


def _next_result(steps: list[Step], at: int, taken: set[int]) -> int | None:
    """Return the next result of the same tool in a message without a call id."""
    of_tool = (i for i in range(at + 1, len(steps)) if steps[i].tool == steps[at].tool)
    return next((i for i in of_tool if steps[i].role == "tool" and i not in taken), None)


def _call_step(call: object, index: int, clock: Clock, unseen: Unseen) -> tuple[Step, str | None]:
    where = f"tool_calls[{index}]"
    if not isinstance(call, dict):
        raise FieldError(f"field {where!r}: must be an object")
    failure = call.get("error")
    named = isinstance(failure, str | dict) and bool(failure)
    result = call.get("result")
    step = Step(
        step_id="",
        role="assistant",
        tool=required_id(first_of(call, "name", "tool"), f"{where}.name"),
        arguments=call_arguments(call),
        result=unseen.returned(failure if result is None and named else result),
        error=named or (isinstance(failure, bool) and failure),
        seconds=_seconds(call, where),
        at=clock.seconds(call.get("timestamp")),
    )
    call_id = call.get("id")
    return step, call_id if isinstance(call_id, str) else None


def _grades(row: Mapping[str, object], taxonomy: Taxonomy) -> RunGrades:
    """Return what a record says of its run: an outcome by name, a grade, or a reward or score.

    The grading as a whole comes first, then a bare `result`, then the record itself; the graders
    within the grading count where none of these says anything.
    """
    judge, grading = f"source:{TRANSCRIPT_SOURCE}", row.get("grading")
    graders = tuple(_graders(grading, taxonomy))
    details = [note(readable(part(grading, "reason"))), *(score.said for score in graders)]
    scores: list[RunScore] = []
    for name, value, holder, scale in _whole(row, grading, taxonomy):
        score = run_score(
            name,
            value,
            taxonomy,
            role="success" if scores else "grade",
            scale=stated_scale(holder) or scale,
            details=() if scores else details,
        )
        # A run that is complete has ended; what it is worth is another question.
        scores.append(replace(score, outcome=None) if name in _BARE else score)
    return RunGrades(judge=judge, scores=tuple(scores), graders=graders)


Found = tuple[str, object, object, tuple[float, float] | None]


def _whole(row: Mapping[str, object], grading: object, taxonomy: Taxonomy) -> Iterator[Found]:
    """Yield the scores of a run as a whole: name, value, the object that holds it, its scale."""
    named = part(grading, "outcome")
    if isinstance(named, str) and words.fold(named) in class_names(taxonomy):
        yield "outcome", named, None, None
        return
    if (to_five := part(grading, "grade")) is not None:
        yield "grade", to_five, None, (GRADES[0], GRADES[-1])
        return
    within = [(name, value) for name in _GRADE_FIELDS if (value := part(grading, name)) is not None]
    if within:
        yield from ((name, value, grading, None) for name, value in within)
        return
    for name, value in (("grading", grading), ("result", row.get("result"))):
        if isinstance(value, bool | int | float) or (
            isinstance(value, str) and (name == "grading" or _is_grade(value))
        ):
            yield name, value, row, None
            return
    beside = [(name, value) for name in _SCORES if (value := row.get(name)) is not None]
    if beside:
        yield from ((name, value, row, None) for name, value in beside)
        return
    status = _result(row)["status"]
    if status is not None and _is_grade(status) and _status(status, "status") is None:
        yield "status", status, None, None


def _graders(grading: object, taxonomy: Taxonomy) -> Iterator[RunScore]:
    """Yield the score of each grader within a grading."""
    if isinstance(grading, dict):
        own = (*_GRADE_FIELDS, "grade", "reason", *HIGHEST, *LOWEST)
        each = [(str(k), v) for k, v in grading.items() if k not in own]
    elif isinstance(grading, list):
        each = [(str(first_of(g, "name", "grader", "type") or k), g)
                for k, g in enumerate(grading, start=1)]  # fmt: skip
    else:
        each = []
    for name, value in each:
        found = first_of(value, *_GRADE_FIELDS) if isinstance(value, dict) else value
        is_number = isinstance(value, dict) and isinstance(found, str)
        is_number = is_number and words.number_of(str(found)) is not None
        if isinstance(found, bool | int | float) or is_number or _is_grade(found):
            reason = note(readable(part(value, "reason")))
            yield run_score(name, found, taxonomy, scale=stated_scale(value), details=[reason])


def _is_grade(value: object) -> bool:
    """Return whether a text is a word that says how a run went; a numeral may be its answer."""
    if not isinstance(value, str) or len(value) > MAX_NAME:
        return False
    word = words.fold(value)
    return word not in words.NUMERALS and words.VERDICTS.get(word) in ("pass", "fail", "ended")
