"""Messages in the shapes of frameworks and model APIs, as texts, calls and results in order.

Read are OpenAI chat and responses, LangChain (also serialised), Anthropic, Gemini, the parts of
OpenTelemetry, the AI SDK, and text such as ``user: hello``. Thoughts of a model are left out, and
definitions of tools; a picture or file is shown by its kind.
"""

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Literal

from calibration.trace_formats.fields import FieldError, first_of, part, readable
from calibration.trace_formats.json_scanner import decode_text

_ROLES = {
    "user": "user", "human": "user", "humanmessage": "user", "humanmessagechunk": "user",
    "assistant": "assistant", "ai": "assistant", "model": "assistant", "aimessage": "assistant",
    "aimessagechunk": "assistant",
    "system": "system", "developer": "system", "systemmessage": "system",
    "tool": "tool", "function": "tool", "toolmessage": "tool", "functionmessage": "tool",
}  # fmt: skip
_SPOKEN = re.compile(
    r"^(system|developer|user|human|assistant|ai|model|tool|function): ?", re.MULTILINE
)
_THOUGHTS = frozenset({"reasoning", "thinking", "redacted_thinking", "thought"})
_CALLS = frozenset({"tool_use", "tool_call", "tool-call", "function_call", "server_tool_use"})
_RESULTS = frozenset(
    {"tool_result", "tool_call_response", "tool-result", "function_call_output", "tool_response"}
)
_UNPACKED = 3  # times that JSON text may itself hold JSON text
_ASKED = ("input", "question", "query", "prompt", "user_input", "text", "task", "message")
_ANSWERED = ("output", "answer", "response", "result", "final_output", "content", "text", "raw")


@dataclass(frozen=True, slots=True, kw_only=True)
class Said:
    """One text, one call of a tool or one result of it, within a message."""

    kind: Literal["text", "call", "result"]
    role: str
    text: str | None = None  # of a text or a result
    tool: str | None = None
    arguments: str | None = None
    call_id: str | None = None

    @property
    def content(self) -> tuple[str, ...]:
        """What is compared where there is no id: two forms of the same JSON are equal."""
        if self.kind == "call":
            return "call", self.tool or "", canonical(self.arguments)
        return self.kind, self.role if self.kind == "text" else "", canonical(self.text)


def canonical(text: str | None) -> str:
    """Return text without blanks, and JSON objects and lists in one form."""
    value = unpacked((text or "").strip())
    # Frameworks join the parts of a message with lines or without.
    return "".join(value.split()) if isinstance(value, str) else json.dumps(value, sort_keys=True)


def unpacked(value: object) -> object:
    """Return the value of JSON text that holds an object, a list or JSON text; else the text."""
    for _ in range(_UNPACKED):
        if not isinstance(value, str) or value.lstrip()[:1] not in ("{", "[", '"'):
            return value
        try:
            value = decode_text(value)
        except FieldError:
            return value
    return value


def text_of(value: object) -> str | None:
    """Return text that is not blank; None for anything else."""
    return value if isinstance(value, str) and value.strip() else None


def read_said(value: object, role: str = "user") -> tuple[Said, ...]:
    """Return what the messages of a value say; empty for plain text and other data.

    `role` is that of messages which name none, such as the candidates of an answer.

    Examples
    --------
    >>> read_said([{"type": "human", "content": "Hello"}])[0].role
    'user'
    >>> call = {"type": "tool_use", "id": "c1", "name": "find", "input": {"q": "desk"}}
    >>> read_said({"role": "assistant", "content": [call]})[0].arguments
    '{"q": "desk"}'
    """
    return tuple(_any(unpacked(value), role))


def plain_text(value: object, *, answer: bool) -> str | None:
    """Return the text of a task or an answer that is no message: the text or a named field."""
    value = unpacked(value)
    if isinstance(value, list) and len(value) == 1:
        value = value[0]
    if isinstance(value, dict):
        found = first_of(value, *(_ANSWERED if answer else _ASKED))
        value = unpacked(found)
    # Some frameworks write the word for a missing value.
    return value if isinstance(value, str) and value.strip() not in ("", "None") else None


def _any(value: object, role: str) -> Iterator[Said]:
    if isinstance(value, str):
        yield from _spoken(value)
    elif isinstance(value, list):
        yield from _listed(value, role)
    elif isinstance(value, dict):
        message = _as_message(value)
        yield from _message(message, role) if message is not None else _inside(value, role)


def _listed(items: list[object], role: str) -> Iterator[Said]:
    if len(items) == 2 and isinstance(items[0], str) and items[0].lower() in _ROLES:
        yield from _message({"role": items[0], "content": items[1]}, role)
        return
    for item in items:
        item = unpacked(item)
        if isinstance(item, list | dict):
            yield from _any(item, role)


def _spoken(text: str) -> Iterator[Said]:
    """Yield the messages of text such as ``user: hello``, if it begins with a role."""
    starts = list(_SPOKEN.finditer(text))
    if not starts or starts[0].start() != 0:
        return
    ends = [start.start() for start in starts[1:]] + [len(text)]
    for start, end in zip(starts, ends, strict=True):
        content = text[start.end() : end].strip()
        if content and content != "None":
            yield from _message({"role": start[1], "content": content}, "user")


def _as_message(value: Mapping[str, object]) -> Mapping[str, object] | None:
    """Return a message as an object with its role, None if the value is none."""
    if value.get("type") == "constructor" and isinstance(value.get("kwargs"), dict):
        name = value.get("id")  # a serialised LangChain object
        kind = name[-1] if isinstance(name, list) and name else None
        return _as_message({"type": kind, **value["kwargs"]}) if isinstance(kind, str) else None  # type: ignore[dict-item]
    kind = value.get("type")
    if isinstance(value.get("role"), str):
        return value
    if isinstance(kind, str):
        if kind.lower() in _ROLES and isinstance(value.get("data"), dict):
            return {**value["data"], "role": kind}  # type: ignore[dict-item]
        if kind.lower() in _ROLES and not isinstance(value.get("function"), dict):
            return {**value, "role": kind}
        if kind in _CALLS or kind in _RESULTS:
            return {"role": "assistant" if kind in _CALLS else "tool", "content": [value]}
    if isinstance(value.get("parts"), list):
        return value
    return None


def _inside(value: Mapping[str, object], role: str) -> Iterator[Said]:
    """Yield the messages in a request or an answer of a model API, or in the state of a graph."""
    system = first_of(value, "system", "systemInstruction", "system_instruction")
    if system is None:
        system = part(value, "config", "system_instruction")
    if system is None and value.get("object") != "response":
        system = value.get("instructions")
    asked = first_of(value, "messages", "contents", "new_message", "prompt")
    if asked is None and isinstance(value.get("input"), list):
        asked = value["input"]
    if asked is not None:
        found = list(_any(unpacked(asked), role))
        if not found and isinstance(asked, str) and system is not None:
            found = [Said(kind="text", role="user", text=asked)]
        if found and system is not None:
            yield from _message({"role": "system", "content": system}, "system")
        yield from found
        if found:
            return
    for name in ("choices", "candidates", "generations"):
        if isinstance(given := value.get(name), list) and given:
            yield from _answer(given[0], "assistant")
            return
    for name in ("message", "output", "content"):
        if isinstance(given := value.get(name), list | dict):
            yield from _any(given, "assistant")
            return
    if isinstance(value.get("text"), str) and "finish_reason" in value:
        yield from _message({"role": "assistant", "content": value["text"]}, role)


def _answer(choice: object, role: str) -> Iterator[Said]:
    """Yield the first of the answers that a model gives."""
    if isinstance(choice, list):
        choice = choice[0] if choice else None
    inner = first_of(choice, "message", "delta", "content")
    if isinstance(inner, dict):
        yield from _any({"role": role, **inner} if "type" not in inner else inner, role)
    elif isinstance(text := part(choice, "text"), str):
        yield from _message({"role": role, "content": text}, role)


def _message(message: Mapping[str, object], default: str) -> Iterator[Said]:
    role = _ROLES.get(str(message.get("role") or default).lower(), default)
    content = first_of(message, "parts", "content")
    if isinstance(content, dict):
        if isinstance(content.get("function"), dict) and "parameters" in content["function"]:
            return  # the definition of a tool
        content = content["parts"] if isinstance(content.get("parts"), list) else [content]
    texts, rest = [], []
    for item in content if isinstance(content, list) else [content]:
        said = _part(item, role)
        if isinstance(said, Said):
            rest.append(said)
        elif said:
            texts.append(said)
    known = {said.call_id for said in rest if said.call_id is not None}
    rest += [call for call in _calls(message, role) if call.call_id not in known]
    text = "\n".join(texts)
    if role == "tool":
        yield from rest or [_result_of(message, text)]
        return
    results = [said for said in rest if said.kind == "result"]
    if role != "assistant":
        yield from results
    if text.strip():
        yield Said(kind="text", role=role, text=text)
    yield from (said for said in rest if said.kind == "call")
    if role == "assistant":
        yield from results


def _part(item: object, role: str) -> Said | str | None:
    """Return the text of one part of a message, or the call or result that it is."""
    if not isinstance(item, dict):
        return readable(item)
    kind = text_of(item.get("type"))
    if kind in _THOUGHTS or item.get("thought") is True:
        return None
    for name in ("function_call", "functionCall"):
        if isinstance(inner := item.get(name), dict):
            return _call(inner)
    for name in ("function_response", "functionResponse"):
        if isinstance(inner := item.get(name), dict):
            return _result_of(inner, None)
    if kind in _CALLS or (kind == "function" and isinstance(item.get("function"), dict)):
        return _call(item)
    if kind in _RESULTS:
        return _result_of(item, None)
    text = first_of(item, "text", "content", "value")
    if text is None or (isinstance(text, dict) and kind not in (None, "text")):
        return f"[{kind}]" if isinstance(kind, str) else readable(item) if role == "tool" else None
    return text if isinstance(text, str) else readable(part(text, "value") or text)


def _calls(message: Mapping[str, object], role: str) -> Iterator[Said]:
    """Yield the calls that a message holds beside its content."""
    if role == "tool":
        return
    given = message.get("tool_calls") or part(message, "additional_kwargs", "tool_calls")
    for call in given if isinstance(given, list) else []:
        yield _call(call)
    if not given and isinstance(legacy := message.get("function_call"), dict):
        yield _call(legacy)


def _call(call: object) -> Said:
    function = part(call, "function") or part(call, "tool_call")
    holder = function if isinstance(function, dict) else call
    name = first_of(holder, "name", "toolName", "tool_name")
    return Said(
        kind="call",
        role="assistant",
        tool=text_of(name) or text_of(function) or "tool",
        arguments=readable(first_of(holder, "arguments", "args", "input", "parameters")),
        call_id=_id_of(first_of(call, "call_id", "id", "toolCallId", "tool_call_id")),
    )


def _id_of(value: object) -> str | None:
    """Return the id of a call; one framework writes a list of the ids of run and call."""
    value = unpacked(value)
    return text_of(value[-1] if isinstance(value, list) and value else value)


def _result_of(holder: Mapping[str, object], text: str | None) -> Said:
    found: object = text
    if text is None:
        found = first_of(holder, "output", "response", "result", "content")
        inner = part(found, "value") if part(found, "type") in ("text", "json", "content") else None
        found = found if inner is None else inner
    if isinstance(found, list):
        parts = [_part(item, "tool") for item in found]
        if all(isinstance(item, str) for item in parts):
            found = "\n".join(item for item in parts if isinstance(item, str))
    ids = ("tool_call_id", "tool_use_id", "call_id", "toolCallId", "id")
    return Said(
        kind="result",
        role="tool",
        text=readable(found),
        tool=text_of(first_of(holder, "name", "toolName", "tool_name")),
        call_id=_id_of(first_of(holder, *(ids if text is None else ids[:4]))),
    )
