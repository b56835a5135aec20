"""Spans of OpenTelemetry: exports of Phoenix (OpenInference), OTLP JSON, and spans of the AI SDK.

Read are the GenAI conventions, current and deprecated, OpenInference and its flattened messages,
and those of OpenLLMetry. OpenTelemetry has no attribute for a cost; OpenInference has.
"""

import hashlib
import json
from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from typing import Literal

from calibration.tables import words
from calibration.trace_formats.base import Head, ImportSettings, Parsed
from calibration.trace_formats.fields import FieldError, first_of, identifier, part, whole
from calibration.trace_formats.own_records import MAX_TRIAL
from calibration.trace_formats.said import text_of, unpacked
from calibration.trace_formats.span_shelf import RunPart, SpanFormat, WholeRun, part_id
from calibration.trace_formats.span_trees import build_trace
from calibration.trace_formats.spans import (
    SINCE,
    Kind,
    RunFacts,
    SourceScore,
    Span,
    count,
    price,
    time_of,
)

_KINDS: dict[str, Kind] = {
    "llm": "model", "chat": "model", "completion": "model", "text_completion": "model",
    "generate_content": "model",
    "tool": "tool", "execute_tool": "tool", "retriever": "tool", "retrieval": "tool",
    "reranker": "tool", "ai.toolcall": "tool",
    "agent": "agent", "invoke_agent": "agent", "create_agent": "agent",
    "invoke_workflow": "agent", "workflow": "agent",
    "evaluator": "grader", "guardrail": "grader",
    "embedding": "embedding", "embeddings": "embedding",
}  # fmt: skip
_KIND_FIELDS = (
    "openinference.span.kind", "gen_ai.operation.name", "traceloop.span.kind", "llm.request.type",
)  # fmt: skip
_LISTS = frozenset({"resourceSpans", "resource_spans", "data", "spans"})
_ASKED = ("gen_ai.input.messages", "gen_ai.prompt", "ai.prompt.messages", "ai.prompt")
_VALUE_IN = ("input.value", "traceloop.entity.input", "input", "ai.value", "ai.values")
_ANSWERED = ("gen_ai.output.messages", "gen_ai.completion")
_VALUE_OUT = ("output.value", "traceloop.entity.output", "output")
_CALL_IN = ("gen_ai.tool.call.arguments", "ai.toolCall.args", *_VALUE_IN, "tool.parameters")
_CALL_OUT = ("gen_ai.tool.call.result", "ai.toolCall.result", *_VALUE_OUT)
_TOKENS_IN = (
    "llm.token_count.prompt", "gen_ai.usage.input_tokens", "gen_ai.usage.prompt_tokens",
    "ai.usage.inputTokens", "ai.usage.promptTokens",
)  # fmt: skip
_TOKENS_OUT = (
    "llm.token_count.completion", "gen_ai.usage.output_tokens", "gen_ai.usage.completion_tokens",
    "ai.usage.outputTokens", "ai.usage.completionTokens",
)  # fmt: skip
_COSTS = ("llm.cost.total", "gen_ai.usage.cost", "gen_ai.usage.cost_usd", "gen_ai.usage.total_cost")
_MODELS = (
    "gen_ai.response.model", "llm.model_name", "gen_ai.request.model", "ai.response.model",
    "ai.model.id", "embedding.model_name",
)  # fmt: skip
_NAMES = ("gen_ai.workflow.name", "gen_ai.agent.name", "ai.telemetry.functionId", "service.name")
_SESSIONS = ("gen_ai.conversation.id", "session.id")
_PREFIXES = ("openinference.", "gen_ai.", "llm.", "ai.operationId")


def _parts(name: str | None, value: object) -> Iterator[RunPart]:
    """Yield the parts of a span, an annotation, or what an OTLP envelope holds."""
    if not isinstance(value, dict):
        return
    if name in ("resourceSpans", "resource_spans"):
        yield from _of_resource(value)
    elif isinstance(listed := first_of(value, "resourceSpans", "resource_spans"), list):
        for item in listed:
            yield from _parts("resourceSpans", item)
    elif "annotator_kind" in value and ("span_id" in value or "trace_id" in value):
        span, run = (_id(value.get(name), name) for name in ("span_id", "trace_id"))
        yield RunPart(kind="score", run_id=run, span_id=span, data=value)
    elif (row := _normal(value, {})) is not None:
        yield _span_part(row)


def _of_resource(value: Mapping[str, object]) -> Iterator[RunPart]:
    resource = _attributes(part(value, "resource", "attributes"))
    names = ("scopeSpans", "scope_spans", "instrumentationLibrarySpans")
    for scope in _list(first_of(value, *names)):
        for span in _list(part(scope, "spans")):
            row = _normal(span, resource)
            if row is None:
                raise FieldError("holds a span without 'traceId' and 'spanId'")
            yield _span_part(row)


def _span_part(row: Mapping[str, object]) -> RunPart:
    run, span = _id(row["trace"], "trace_id"), _id(row["span"], "span_id")
    if run is None or span is None:
        raise FieldError("field 'trace_id': is missing")
    return RunPart(
        kind="span", run_id=run, span_id=span, parent_id=_id(row["parent"], "parent_id"), data=row
    )


def _normal(row: object, resource: Mapping[str, object]) -> dict[str, object] | None:
    """Return a span of any of the shapes with the same names; None if it is none."""
    if not isinstance(row, dict):
        return None
    context = first_of(row, "context", "spanContext", "span_context") or _dotted(row, "context.")
    holder = {**row, **context} if isinstance(context, dict) else row
    trace = first_of(holder, "traceId", "trace_id")
    span = first_of(holder, "spanId", "span_id")
    if trace is None or span is None:
        return _bare(row)
    attributes = _attributes(row.get("attributes")) or _dotted(row, "attributes.")
    status = row.get("status")
    return {
        "trace": trace,
        "span": span,
        "parent": first_of(row, "parentSpanId", "parent_span_id", "parent_id")
        or part(first_of(row, "parentSpanContext", "parent"), "spanId"),
        "name": row.get("name"),
        "start": first_of(
            row, "startTimeUnixNano", "start_time_unix_nano", "startTime", "start_time"
        ),
        "end": first_of(row, "endTimeUnixNano", "end_time_unix_nano", "endTime", "end_time"),
        "kind": row.get("span_kind"),
        "status": first_of(row, "status_code")
        if not isinstance(status, dict)
        else first_of(status, "code", "status_code"),
        "attributes": attributes,
        "resource": {**resource, **_attributes(part(row, "resource", "attributes"))},
        "events": [_event(event) for event in _list(row.get("events"))],
    }


def _bare(row: Mapping[str, object]) -> dict[str, object] | None:
    """Return a span of which a file holds the attributes alone; its id follows from them."""
    if not any(str(key).startswith(_PREFIXES) for key in row):
        return None
    text = json.dumps(row, sort_keys=True)
    own = hashlib.sha256(text.encode()).hexdigest()[:32]
    none = dict.fromkeys(("parent", "name", "start", "end", "kind", "status"))
    return {**none, "trace": own, "span": own, "attributes": row, "resource": {}, "events": []}


def _event(event: object) -> object:
    return {"name": part(event, "name"), "attributes": _attributes(part(event, "attributes"))}


def _dotted(row: Mapping[str, object], prefix: str) -> dict[str, object]:
    """Return the columns of a table of spans that have this prefix."""
    return {
        key.removeprefix(prefix): value
        for key, value in row.items()
        if key.startswith(prefix) and value is not None
    }


def _list(value: object) -> list[object]:
    return value if isinstance(value, list) else []


def _id(value: object, name: str) -> str | None:
    found = part_id(value, name)
    return None if found is None or not found.strip("0x") else found.removeprefix("0x")


def _attributes(value: object) -> dict[str, object]:
    """Return attributes by name: an object, or the list of keys and typed values of OTLP."""
    if isinstance(value, dict):
        return value
    found: dict[str, object] = {}
    for item in _list(value):
        key = part(item, "key")
        if isinstance(key, str):
            found[key] = _typed(part(item, "value"))
    return found


def _typed(value: object) -> object:
    """Return a value of OTLP, such as ``{"intValue": "3"}``."""
    if not isinstance(value, dict) or len(value) != 1:
        return value
    kind, inner = next(iter(value.items()))
    kind = kind.replace("_v", "V")
    if kind == "intValue" and isinstance(inner, str) and inner.lstrip("-").isdecimal():
        return int(inner) if len(inner) < 20 else inner
    if kind == "arrayValue":
        return [_typed(item) for item in _list(part(inner, "values"))]
    if kind == "kvlistValue":
        return _attributes(part(inner, "values"))
    return inner if kind.endswith("Value") else value


def nested(attributes: Mapping[str, object], prefix: str) -> object:
    """Return flattened attributes below a name as lists and objects; None without one.

    Examples
    --------
    >>> nested({"m.0.role": "user", "m.0.content": "Hi"}, "m")
    [{'role': 'user', 'content': 'Hi'}]
    """
    if isinstance(whole_value := attributes.get(prefix), list):
        return [_expanded(item) for item in whole_value]
    below = {
        key[len(prefix) + 1 :]: value
        for key, value in attributes.items()
        if key.startswith(prefix + ".")
    }
    return _expanded(below) if below else None


def _expanded(value: object) -> object:
    if isinstance(value, list):
        return [_expanded(item) for item in value]
    if not isinstance(value, dict):
        return value
    groups: dict[str, object] = {}
    deeper: dict[str, dict[str, object]] = {}
    for key, item in value.items():
        first, _, rest = str(key).partition(".")
        if rest:
            deeper.setdefault(first, {})[rest] = item
        else:
            groups[first] = _expanded(item)
    groups |= {first: _expanded(inner) for first, inner in deeper.items()}
    if groups and all(key.isdecimal() and len(key) < 9 for key in groups):
        return [groups[key] for key in sorted(groups, key=int)]
    return groups


def _build(run: WholeRun, settings: ImportSettings, *, source: str) -> Parsed:
    rows = list(run.spans.values())
    spans = [_span(span_id, row) for span_id, row in run.spans.items()]
    known = set(run.spans)
    tops = [span for span in spans if span.parent_id not in known] or spans
    first = min(tops, key=lambda span: span.started or SINCE, default=None)
    root = {} if first is None else run.spans[first.span_id]
    attributes = _attributes(root.get("attributes"))
    about = unpacked(attributes.get("metadata"))
    everywhere = [_attributes(row.get("attributes")) for row in rows]
    facts = RunFacts(
        source_id=run.run_id,
        name=_workflow(attributes, root),
        status=_status(root.get("status")),
        version=text_of(first_of(_attributes(root.get("resource")), "service.version")),
        task_id=identifier(
            first_of(about, "task_id") or first_of(attributes, "task_id", "metadata.task_id"),
            "task_id",
        ),
        trial=whole(first_of(about, "trial"), "trial", maximum=MAX_TRIAL) or 0,
        scores=tuple(_score(row) for row in run.scores),
        metadata=(
            ("session", next((s for a in everywhere if (s := first_of(a, *_SESSIONS))), None)),
            ("tags", attributes.get("tag.tags")),
            ("metadata", about or None),
        ),
    )
    return build_trace(source, facts, spans, settings)


def _workflow(attributes: Mapping[str, object], root: Mapping[str, object]) -> str | None:
    """Return the agent or function that ran, the service, or the name of the first span."""
    resource = _attributes(root.get("resource"))
    named = text_of(first_of(attributes, *_NAMES)) or text_of(
        first_of(resource, "openinference.project.name", "service.name")
    )
    unknown = named is None or named.startswith("unknown_service")
    return text_of(root.get("name")) if unknown else named


def _span(span_id: str, row: Mapping[str, object]) -> Span:
    attributes = _attributes(row.get("attributes"))
    name = text_of(row.get("name")) or ""
    kind = _kind(row, attributes, name)
    tool = kind == "tool"
    return Span(
        span_id=span_id,
        parent_id=_id(row.get("parent"), "parent_id"),
        kind=kind,
        name=text_of(first_of(attributes, "gen_ai.tool.name", "tool.name", "ai.toolCall.name"))
        or name
        or kind,
        given=first_of(attributes, *_CALL_IN) if tool else _given(attributes, row),
        returned=first_of(attributes, *_CALL_OUT) or nested(attributes, "retrieval.documents")
        if tool
        else _returned(attributes, row),
        started=time_of(row.get("start"), "start_time"),
        ended=time_of(row.get("end"), "end_time"),
        model=text_of(first_of(attributes, *_MODELS)),
        tokens_in=count(first_of(attributes, *_TOKENS_IN), "tokens"),
        tokens_out=count(first_of(attributes, *_TOKENS_OUT), "tokens"),
        cost_usd=price(first_of(attributes, *_COSTS), "cost"),
        failed=_status(row.get("status")) == "error",
        call_id=text_of(first_of(attributes, "gen_ai.tool.call.id", "tool.id", "ai.toolCall.id")),
    )


def _kind(row: Mapping[str, object], attributes: Mapping[str, object], name: str) -> Kind:
    operation = str(attributes.get("ai.operationId") or "")
    if operation:
        if "embed" in operation:
            return "embedding"
        inner = operation.rpartition(".")[2].startswith("do")
        return "tool" if operation == "ai.toolCall" else "model" if inner else "agent"
    for given in (*(attributes.get(key) for key in _KIND_FIELDS), row.get("kind")):
        if isinstance(given, str) and (kind := _KINDS.get(given.lower())) is not None:
            return kind
    first = name.partition(" ")[0].lower()
    if first in ("chat", "execute_tool", "invoke_agent", "embeddings"):
        return _KINDS[first]
    asked = "gen_ai.request.model" in attributes or "llm.model_name" in attributes
    return "model" if asked else "other"


def _given(attributes: Mapping[str, object], row: Mapping[str, object]) -> object:
    messages: object = _flat_messages(attributes, "llm.input_messages")
    if messages is None:
        messages = first_of(attributes, *_ASKED) or nested(attributes, "gen_ai.prompt")
    if messages is None:
        messages = _event_messages(row, asked=True)
    if messages is None:
        return first_of(attributes, *_VALUE_IN)
    system = unpacked(attributes.get("gen_ai.system_instructions"))
    return messages if system is None else {"system": system, "messages": messages}


def _returned(attributes: Mapping[str, object], row: Mapping[str, object]) -> object:
    messages: object = _flat_messages(attributes, "llm.output_messages")
    if messages is None:
        messages = first_of(attributes, *_ANSWERED) or nested(attributes, "gen_ai.completion")
    if messages is None:
        messages = _event_messages(row, asked=False) or _sdk_answer(attributes)
    return first_of(attributes, *_VALUE_OUT) if messages is None else messages


def _flat_messages(attributes: Mapping[str, object], prefix: str) -> list[object] | None:
    """Return the flattened messages of OpenInference as messages with parts and calls."""
    found = nested(attributes, prefix)
    if not isinstance(found, list):
        return None
    messages: list[object] = []
    for item in found:
        message = part(item, "message")
        if not isinstance(message, dict):
            continue
        parts = [part(c, "message_content") or c for c in _list(message.get("contents"))]
        calls = [part(c, "tool_call") or c for c in _list(message.get("tool_calls"))]
        content = message.get("content") if not parts else parts
        messages.append({**message, "content": content, "tool_calls": calls})
    return messages


def _event_messages(row: Mapping[str, object], *, asked: bool) -> list[object] | None:
    """Return messages that are events of a span: the older form of the conventions."""
    messages: list[object] = []
    for event in _list(row.get("events")):
        name, attributes = part(event, "name"), _attributes(part(event, "attributes"))
        inner = first_of(
            attributes,
            *(("gen_ai.input.messages", "gen_ai.prompt") if asked else _ANSWERED),
        )
        if inner is not None:
            messages += _list(unpacked(inner))
        elif name == "gen_ai.choice" and not asked:
            message = unpacked(attributes.get("message"))
            found = message if isinstance(message, dict) else attributes
            messages.append({"role": "assistant", **found})
        elif (
            asked
            and isinstance(name, str)
            and name.startswith("gen_ai.")
            and name.endswith(".message")
        ):
            role = name.split(".")[1]
            messages.append({"role": role, **attributes})
    return messages or None


def _sdk_answer(attributes: Mapping[str, object]) -> object:
    """Return the answer that the AI SDK writes: text, calls of tools, or an object."""
    text = first_of(attributes, "ai.response.text", "ai.response.object")
    calls = unpacked(attributes.get("ai.response.toolCalls"))
    files = _list(unpacked(attributes.get("ai.response.files")))
    thought = unpacked(attributes.get("ai.response.reasoning"))
    if text is None and not calls and not files and not thought:
        return None
    parts = [{"type": "file", **file} for file in files if isinstance(file, dict)]
    parts += [{"type": "tool-call", **call} for call in _list(calls) if isinstance(call, dict)]
    content = [{"type": "text", "text": text}] if isinstance(text, str) and text else []
    return [{"role": "assistant", "reasoning": thought, "content": [*content, *parts]}]


def _status(code: object) -> str | None:
    word = str(code).rpartition("_")[2].rpartition(".")[2].upper()
    return {"ERROR": "error", "2": "error", "OK": "completed", "1": "completed"}.get(word)


def _score(row: Mapping[str, object]) -> SourceScore:
    result = row.get("result")
    # A label such as "correct" beside a 1 says that 1 is a pass.
    label = words.truth(part(result, "label"))
    is_unit = label is not None and part(result, "score") == int(label)
    return SourceScore(
        name=text_of(row.get("name")) or "annotation",
        value=first_of(result, "score", "label"),
        comment=text_of(part(result, "explanation")),
        human=row.get("annotator_kind") == "HUMAN",
        author=text_of(first_of(row, "user_id", "identifier")),
        scale=(0.0, 1.0) if is_unit else None,
    )


def _has(head: Head, names: Sequence[tuple[str, ...]]) -> bool:
    return head.kind in ("object", "array", "lines", "csv", "parquet") and any(
        head.any_has(*telling) for telling in names
    )


def _is_phoenix(head: Head) -> bool:
    listed = head.lists("data", ("context", "span_kind", "annotator_kind", "span_id"))
    return listed or _has(
        head,
        (
            ("context", "span_kind"),
            ("context", "start_time", "attributes"),
            ("context.trace_id", "context.span_id"),
            ("span_id", "annotator_kind"),
            ("trace_id", "annotator_kind"),
        ),
    )


def _is_otel(head: Head) -> bool:
    names = (
        ("resourceSpans",), ("resource_spans",), ("spanContext", "attributes"),
        ("traceId", "spanId"), ("trace_id", "span_id", "attributes"),
    )  # fmt: skip
    bare = any(key.startswith(_PREFIXES) for keys in head.keys for key in keys)
    return _has(head, names) or (head.kind in ("object", "array", "lines") and bare)


def _format(name: Literal["phoenix", "otel"], title: str, expects: str, convert: str) -> SpanFormat:
    return SpanFormat(
        name=name,
        title=title,
        expects=expects,
        recognises=_is_phoenix if name == "phoenix" else _is_otel,
        streamed=_LISTS,
        parts=_parts,
        build=partial(_build, source=name),
        convert=convert,
    )


PHOENIX = _format(
    "phoenix",
    "a Phoenix export",
    "spans and annotations of its REST API as JSON or JSON lines",
    "Export spans from GET /v1/projects/{project}/spans as JSON",
)

OTEL = _format(
    "otel",
    "OpenTelemetry spans",
    "OTLP JSON or JSON lines, a list of spans of an SDK",
    "Export spans as OTLP JSON, such as with the file exporter of a collector",
)
