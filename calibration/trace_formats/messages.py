"""Chat messages in OpenAI form, and tau2's variant of it, as steps."""

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime, tzinfo
from typing import Any, NamedTuple

from calibration.records import Step
from calibration.trace_formats.fields import (
    FieldError,
    as_list,
    first_of,
    flag,
    identifier,
    moment,
    number,
    part,
    readable,
    whole,
)
from calibration.trace_formats.said import Said, Unseen, is_part, is_result, is_thought

_ROLES = ("user", "assistant", "system", "tool")
_WRITTEN = re.compile(r"([\w.:-]{1,200})\((.*)\)", re.DOTALL)


@dataclass(frozen=True, slots=True, kw_only=True)
class Clock:
    """How the times of messages are read: relative to `start`, in `zone` without an offset."""

    start: datetime | None = None
    zone: tzinfo | None = None

    def seconds(self, value: object) -> float | None:
        """Return seconds since the start; None when either time is missing or invalid."""
        if self.start is None or self.zone is None:
            return None
        try:
            at = moment(value, "timestamp", self.zone)
        except FieldError:
            return None
        elapsed = None if at is None else (at - self.start).total_seconds()
        return elapsed if elapsed is not None and elapsed >= 0 else None


@dataclass(frozen=True, slots=True, kw_only=True)
class Transcript:
    """The steps of a run and their totals.

    `call_ids` holds the id of the call of each step (None for a step without a call). `tokens` is
    the sum over the agent's own messages, None if one has no count.
    """

    steps: tuple[Step, ...]
    call_ids: tuple[str | None, ...]
    response: str | None
    first_user: str | None
    tokens: int | None


@dataclass(slots=True, kw_only=True)
class _Call:
    tool: str
    arguments: str | None
    result: str | None
    call_id: str | None
    by_user: bool = False
    answered: bool = False
    place: int = -1  # of its step


class _Draft(NamedTuple):
    """The fields of a step whose place is not known yet."""

    fields: dict[str, Any]
    call_id: str | None = None
    answers: _Call | None = None


def read_messages(
    messages: list[object],
    name: str,
    unseen: Unseen,
    *,
    clock: Clock | None = None,
    is_error: Callable[[str], bool] | None = None,
) -> Transcript:
    """Convert messages into steps, one per message and one per tool call.

    An assistant message with several calls becomes one step per call; its text and tokens are on
    the first, so that neither counts twice. Steps of tools that the simulated user runs have the
    role ``user``, calls and results alike. `name` is the field in errors; what reviewers do not see
    is noted in `unseen`; `is_error` recognises a failed call by its result, where messages have no
    flag.
    """
    asked_for: list[_Call] = []
    drafts: list[_Draft] = []
    flat = list(_flat(messages, name))
    for message in flat:
        known = len(asked_for)
        new = list(_drafts(message, asked_for, unseen, clock or Clock(), is_error))
        # The calls of a message are its steps, in order.
        for place, call in enumerate(asked_for[known:], start=len(drafts)):
            call.place = place
        drafts.extend(new)
    steps = tuple(
        Step(step_id=f"s{i}", call=f"s{answers.place + 1}" if answers else None, **fields)
        for i, (fields, _, answers) in enumerate(drafts, start=1)
    )
    replies = [s for s in steps if s.role == "assistant" and s.content and s.content.strip()]
    asked = [s for s in steps if s.role == "user" and s.content and s.tool is None]
    return Transcript(
        steps=steps,
        call_ids=tuple(d.call_id for d in drafts),
        response=replies[-1].content if replies else None,
        first_user=asked[0].content if asked else None,
        tokens=_agent_tokens(flat),
    )


def _flat(messages: list[object], name: str) -> Iterator[Mapping[str, object]]:
    for index, message in enumerate(messages, start=1):
        if not isinstance(message, dict):
            raise FieldError(f"field {name!r}: message {index} must be an object")
        inner = message.get("tool_messages")  # tau2: several results in one message
        if isinstance(inner, list):
            yield from _flat(inner, name)
        elif isinstance(message.get("role"), str):
            yield message
        elif message.get("type") in _ROLES:
            yield {**message, "role": message["type"]}
        elif isinstance(kind := message.get("type"), str) and is_part(message):
            role = "tool" if is_result(kind) else "assistant"
            yield {"role": role, "content": [message], "timestamp": message.get("timestamp")}
        elif first_of(message, "tool_call", "tool_calls") is not None:
            yield {**message, "role": "assistant"}
        elif first_of(message, "tool", "name") is not None:  # a call by itself
            yield {"role": "assistant", "tool_call": message, "timestamp": message.get("timestamp")}
        else:
            raise FieldError(f"field {name!r}: message {index} has no role")


def _drafts(
    message: Mapping[str, object],
    asked_for: list[_Call],
    unseen: Unseen,
    clock: Clock,
    is_error: Callable[[str], bool] | None,
) -> Iterator[_Draft]:
    role = str(message["role"])
    content, others = unseen.message(message, "tool" if role == "function" else role)
    results = [part_of for part_of in others if part_of.kind == "result"]
    at = clock.seconds(message.get("timestamp"))
    if role in ("tool", "function") and not results:
        if content is None:
            content = readable(first_of(message, "result", "output"))
        by_user = message.get("requestor") == "user"
        result = Said(
            kind="result",
            role="user" if by_user else "tool",
            text=content,
            tool=identifier(first_of(message, "name", "tool"), "name"),
            call_id=_call_id(message.get("tool_call_id")) or _call_id(message.get("id")),
            failed=flag(message.get("error"), "error")
            or (message.get("error") is None and bool(is_error and content and is_error(content))),
        )
        yield _result(result, asked_for, at)
        return
    agent = role == "assistant"
    if not agent:
        yield from (_result(result, asked_for, at) for result in results)
    thinks = agent and content is None and not others and _only_thinks(message)
    if not thinks and (agent or content is not None or not results):
        calls = [call_of_part for call_of_part in others if call_of_part.kind == "call"]
        yield from _spoken(message, content, calls, asked_for, at)
    if agent:
        yield from (_result(result, asked_for, at) for result in results)


def _only_thinks(message: Mapping[str, object]) -> bool:
    parts = message.get("content")
    called = first_of(message, "tool_calls", "tool_call", "function_call")
    return (
        isinstance(parts, list) and bool(parts) and called is None and all(map(is_thought, parts))
    )


def _result(result: Said, asked_for: list[_Call], at: float | None) -> _Draft:
    """Return the step of what a tool returned, with the call that it answers."""
    tool, call_id = result.tool, result.call_id
    call = _answered_call(asked_for, call_id, tool, result.role == "user")
    if call is not None:
        call.answered, tool, call_id = True, tool or call.tool, call.call_id
    fields: dict[str, Any] = {
        "role": result.role, "tool": tool or "tool", "result": result.text,
        "error": result.failed, "at": at,
    }  # fmt: skip
    return _Draft(fields, call_id, call)


def _spoken(
    message: Mapping[str, object],
    content: str | None,
    in_content: list[Said],
    asked_for: list[_Call],
    at: float | None,
) -> Iterator[_Draft]:
    """Yield the steps of a message: its text, on the first of its calls if it makes any."""
    role = str(message["role"])
    agent = role == "assistant"
    specialist = _specialist(message) if agent else None
    every = {"role": role, "at": at, "agent": specialist}
    usage = message.get("usage") if agent else None
    first: dict[str, Any] = every | {
        "content": content or None,
        "tokens_in": whole(part(usage, "prompt_tokens"), "usage"),
        "tokens_out": whole(part(usage, "completion_tokens"), "usage"),
        "seconds": number(message.get("generation_time_seconds"), "generation_time_seconds"),
    }
    single = first_of(message, "tool_call", "function_call")
    calls = as_list(message.get("tool_calls"), "tool_calls") or ([] if single is None else [single])
    made = [_call(item) for item in calls]
    known = {call.call_id for call in made if call.call_id is not None}
    made += [
        _Call(tool=one.tool or "tool", arguments=one.arguments, result=None, call_id=one.call_id)
        for one in in_content
        if one.call_id not in known
    ]
    if not made:
        yield _Draft(first)
    for index, call in enumerate(made):
        call.by_user, call.answered = role == "user", call.result is not None
        asked_for.append(call)
        of_call = {"tool": call.tool, "arguments": call.arguments, "result": call.result}
        yield _Draft((every if index else first) | of_call, call.call_id)


def _specialist(message: Mapping[str, object]) -> str | None:
    """Return who wrote a message, of several agents; None where that is no name."""
    try:
        return identifier(message.get("agent"), "agent")
    except FieldError:
        return None


def _answered_call(
    asked_for: list[_Call], call_id: str | None, tool: str | None, by_user: bool
) -> _Call | None:
    """Return the call that a result answers: by its id, else the oldest that has no answer."""
    if call_id is not None:
        # An id may be used again: the oldest call without an answer is meant.
        same = [call for call in asked_for if call.call_id == call_id]
        return next((call for call in same if not call.answered), same[-1] if same else None)
    waiting = (c for c in asked_for if not c.answered and c.by_user == by_user)
    return next((call for call in waiting if tool is None or call.tool == tool), None)


def _call(call: object) -> _Call:
    """Return a call in OpenAI or tau2 form, or written as text: ``lookup(order=7)``."""
    if isinstance(call, str):
        written = _WRITTEN.fullmatch(call.strip())
        name, arguments = written.groups() if written else (call, None)
        return _Call(tool=_tool(name), arguments=arguments or None, result=None, call_id=None)
    function = part(call, "function")
    holder = function if isinstance(function, dict) else call
    return _Call(
        tool=_tool(part(holder, "name") or part(holder, "tool")),
        arguments=call_arguments(holder),
        result=readable(first_of(call, "result", "output")),
        call_id=_call_id(part(call, "id")),
    )


def _tool(name: object) -> str:
    tool = identifier(name, "tool_calls.name")
    if tool is None:
        raise FieldError("field 'tool_calls': a call has no name")
    return tool


def call_arguments(call: object) -> str | None:
    """Return the arguments of a call, by any of the names that they go by."""
    return readable(first_of(call, "arguments", "args", "input", "parameters"))


def _call_id(value: object) -> str | None:
    return value if isinstance(value, str) and value else None


def _agent_tokens(messages: list[Mapping[str, object]]) -> int | None:
    total = 0
    counted = False
    for index, message in enumerate(messages):
        if message["role"] != "assistant":
            continue
        tokens_in = part(message, "usage", "prompt_tokens")
        tokens_out = part(message, "usage", "completion_tokens")
        if tokens_in is None or tokens_out is None:
            if index == 0:  # a scripted greeting costs nothing
                continue
            return None
        total += (whole(tokens_in, "usage") or 0) + (whole(tokens_out, "usage") or 0)
        counted = True
    return total if counted else None
