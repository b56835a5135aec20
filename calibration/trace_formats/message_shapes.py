"""Messages in the shapes of frameworks and model APIs, as texts, calls and results in order.

Read are OpenAI chat and responses, LangChain (also serialised), Anthropic, Gemini, the parts of
OpenTelemetry, the AI SDK, and text such as ``user: hello``. Definitions of tools are left out;
`said` says what is shown of a message.
"""

import re
from collections.abc import Iterator, Mapping

from calibration.trace_formats.fields import first_of, part
from calibration.trace_formats.said import (
    MEDIA,
    ROLES,
    TEXTS,
    THOUGHT_FIELDS,
    THOUGHTS,
    Said,
    Unseen,
    call_of,
    is_call,
    is_result,
    text_of,
    unpacked,
)

_SPOKEN = re.compile(
    r"^(system|developer|user|human|assistant|ai|model|tool|function): ?", re.MULTILINE
)
_ASKED = ("input", "question", "query", "prompt", "user_input", "text", "task", "message")
_ANSWERED = ("output", "answer", "response", "result", "final_output", "content", "text", "raw")


def read_said(value: object, role: str = "user", unseen: Unseen | None = None) -> tuple[Said, ...]:
    """Return what the messages of a value say; empty for plain text and other data.

    `role` is that of messages which name none, such as the candidates of an answer. What reviewers
    do not see is noted in `unseen`. Messages in JSON that ends early are read but for tools, whose
    results may be cut on purpose.

    Examples
    --------
    >>> read_said([{"type": "human", "content": "Hello"}])[0].role
    'user'
    >>> call = {"type": "tool_use", "id": "c1", "name": "find", "input": {"q": "desk"}}
    >>> read_said({"role": "assistant", "content": [call]})[0].arguments
    '{"q": "desk"}'
    """
    unseen = Unseen() if unseen is None else unseen
    return tuple(_any(unpacked(value), role, unseen))


def plain_text(value: object, unseen: Unseen | None = None, *, answer: bool) -> str | None:
    """Return the text of a task or an answer that is no message: the text or a named field."""
    unseen = Unseen() if unseen is None else unseen
    value = unpacked(value)
    if isinstance(value, list) and len(value) == 1:
        value = value[0]
    if isinstance(value, dict):
        for name in THOUGHT_FIELDS if answer else ():
            unseen.think(value.get(name))
        found = first_of(value, *(_ANSWERED if answer else _ASKED))
        value = unpacked(found)
    # Some frameworks write the word for a missing value.
    if not isinstance(value, str) or value.strip() in ("", "None"):
        return None
    return text_of(unseen.text(value, "assistant" if answer else "user"))


def _any(value: object, role: str, unseen: Unseen) -> Iterator[Said]:
    if isinstance(value, str) and role != "tool":
        messages = unseen.cut(value, role)
        value = value if messages is None else messages
    if isinstance(value, str):
        yield from _spoken(value, unseen)
    elif isinstance(value, list):
        yield from _listed(value, role, unseen)
    elif isinstance(value, dict):
        message = _as_message(value)
        if message is not None:
            yield from _message(message, role, unseen)
        else:
            yield from _inside(value, role, unseen)


def _listed(items: list[object], role: str, unseen: Unseen) -> Iterator[Said]:
    if len(items) == 2 and isinstance(items[0], str) and items[0].lower() in ROLES:
        yield from _message({"role": items[0], "content": items[1]}, role, unseen)
        return
    if items and all(map(_is_of_one_message, items)):
        yield from _message({"content": items}, role, unseen)
        return
    for item in items:
        item = unpacked(item)
        if isinstance(item, list | dict):
            yield from _any(item, role, unseen)


def _spoken(text: str, unseen: Unseen) -> Iterator[Said]:
    """Yield the messages of text such as ``user: hello``, if it begins with a role."""
    starts = list(_SPOKEN.finditer(text))
    if not starts or starts[0].start() != 0:
        return
    ends = [start.start() for start in starts[1:]] + [len(text)]
    for start, end in zip(starts, ends, strict=True):
        content = text[start.end() : end].strip()
        if content and content != "None":
            yield from _message({"role": start[1], "content": content}, "user", unseen)


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
        if kind.lower() in ROLES and isinstance(value.get("data"), dict):
            return {**value["data"], "role": kind}  # type: ignore[dict-item]
        if kind.lower() in ROLES and not isinstance(value.get("function"), dict):
            return {**value, "role": kind}
        if is_call(kind) or is_result(kind):
            return {"role": "assistant" if is_call(kind) else "tool", "content": [value]}
        if kind in THOUGHTS or kind == "refusal":
            return {"role": "assistant", "content": [value]}
    if isinstance(value.get("parts"), list) or _is_of_one_message(value):
        return value if isinstance(value.get("parts"), list) else {"content": [value]}
    refuses = text_of(value.get("refusal")) is not None
    if refuses or ("content" in value and any(value.get(name) for name in THOUGHT_FIELDS)):
        return {**value, "role": "assistant"}
    return None


def _is_of_one_message(item: object) -> bool:
    """Return whether a value is a text, thought, picture or file, which needs a message around."""
    kind = part(item, "type")
    if not isinstance(kind, str):
        return False
    if kind in TEXTS:
        return isinstance(first_of(item, "text", "content", "value"), str | dict)
    return kind in THOUGHTS or kind in MEDIA or kind == "refusal"


def _inside(value: Mapping[str, object], role: str, unseen: Unseen) -> Iterator[Said]:
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
        found = list(_any(unpacked(asked), role, unseen))
        if not found and isinstance(asked, str) and system is not None:
            found = [Said(kind="text", role="user", text=asked)]
        if found and system is not None:
            yield from _message({"role": "system", "content": system}, "system", unseen)
        yield from found
        if found:
            return
    for name in ("choices", "candidates", "generations"):
        if isinstance(given := value.get(name), list) and given:
            yield from _answer(given[0], "assistant", unseen)
            return
    for name in ("message", "output", "content"):
        if isinstance(given := value.get(name), list | dict):
            yield from _any(given, "assistant", unseen)
            return
    if isinstance(value.get("text"), str) and "finish_reason" in value:
        yield from _message({"role": "assistant", "content": value["text"]}, role, unseen)


def _answer(choice: object, role: str, unseen: Unseen) -> Iterator[Said]:
    """Yield the first of the answers that a model gives."""
    if isinstance(choice, list):
        choice = choice[0] if choice else None
    inner = first_of(choice, "message", "delta", "content")
    if isinstance(inner, dict):
        yield from _any({"role": role, **inner} if "type" not in inner else inner, role, unseen)
    elif isinstance(text := part(choice, "text"), str):
        yield from _message({"role": role, "content": text}, role, unseen)


def _message(message: Mapping[str, object], default: str, unseen: Unseen) -> Iterator[Said]:
    role = ROLES.get(str(message.get("role") or default).lower(), default)
    if part(message, "content", "function", "parameters") is not None:
        return  # the definition of a tool
    text, rest = unseen.message(message, role)
    known = {said.call_id for said in rest if said.call_id is not None}
    rest += [call for call in _calls(message, role) if call.call_id not in known]
    if role == "tool":
        yield from rest or [unseen.result(message, text or "")]
        return
    results = [said for said in rest if said.kind == "result"]
    if role != "assistant":
        yield from results
    if text is not None and text.strip():
        yield Said(kind="text", role=role, text=text)
    yield from (said for said in rest if said.kind == "call")
    if role == "assistant":
        yield from results


def _calls(message: Mapping[str, object], role: str) -> Iterator[Said]:
    """Yield the calls that a message holds beside its content."""
    if role == "tool":
        return
    given = message.get("tool_calls") or part(message, "additional_kwargs", "tool_calls")
    for call in given if isinstance(given, list) else []:
        yield call_of(call)
    if not given and isinstance(legacy := message.get("function_call"), dict):
        yield call_of(legacy)
