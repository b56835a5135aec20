"""Exports of Langfuse: the JSON of a trace page, answers of the public API, and blob exports.

The cost is what the trace says, else the sum over observations without priced ones below them;
0 is an unknown price. Scores become a verdict that no reviewer sees; those of people do not.
"""

import re
from collections.abc import Iterator, Mapping
from datetime import UTC

from calibration.trace_formats.base import Head, ImportSettings, Parsed, stated_scale
from calibration.trace_formats.fields import (
    FieldError,
    as_list,
    first_of,
    identifier,
    number,
    part,
    whole,
)
from calibration.trace_formats.own_records import MAX_TRIAL
from calibration.trace_formats.said import text_of, unpacked
from calibration.trace_formats.span_shelf import RunPart, SpanFormat, WholeRun, part_id
from calibration.trace_formats.span_trees import build_trace
from calibration.trace_formats.spans import (
    Kind,
    RunFacts,
    SourceScore,
    Span,
    count,
    price,
    time_of,
)

SOURCE = "langfuse"

_KINDS: dict[str, Kind] = {
    "GENERATION": "model",
    "TOOL": "tool",
    "RETRIEVER": "tool",
    "AGENT": "agent",
    "EVALUATOR": "grader",
    "GUARDRAIL": "grader",
    "EMBEDDING": "embedding",
}
_SNAKE = re.compile(r"_([a-z0-9])")
_LISTS = frozenset({"observations", "scores", "data"})
_RUN_FIELDS = ("sessionId", "userId", "environment", "release", "tags", "projectId")


def _parts(name: str | None, value: object) -> Iterator[RunPart]:
    """Yield the parts of a trace, an observation or a score, in any of the three exports."""
    if not isinstance(value, dict):
        return
    row = _camel(value)
    if isinstance(page := row.get("trace"), dict):
        about = {key: value for key, value in _camel(page).items() if key != "observations"}
        yield from _trace(about)  # the observations are beside it, with more fields
        for item in as_list(row.get("observations"), "observations"):
            yield from _parts("observations", item)
    elif "traceId" not in row and "name" in row and stated_scale(row) is not None:
        yield RunPart(kind="scale", run_id=None, data=row)  # a score config
    elif name == "scores" or _is_score(row):
        yield from _score(row, None)
    elif name == "observations" or _is_observation(row):
        yield from _observation(row)
    elif "id" in row and ("timestamp" in row or "observations" in row):
        yield from _trace(row)


def _camel(row: Mapping[str, object]) -> dict[str, object]:
    """Return a row with the names of the API: blob exports write ``trace_id`` for ``traceId``."""
    return {_SNAKE.sub(lambda found: found[1].upper(), str(key)): row[key] for key in row}


def _is_score(row: Mapping[str, object]) -> bool:
    return "name" in row and "value" in row and ("dataType" in row or "source" in row)


def _is_observation(row: Mapping[str, object]) -> bool:
    return "traceId" in row and "type" in row


def _trace(row: Mapping[str, object]) -> Iterator[RunPart]:
    run = _run_id(row.get("id"), "id")
    scores, inner = row.get("scores"), row.get("observations")
    about = {key: row[key] for key in row if key not in ("observations", "scores")}
    yield RunPart(kind="run", run_id=run, data=about)
    for item in inner if isinstance(inner, list) else []:
        if isinstance(item, dict):
            yield from _observation({"traceId": run, **_camel(item)})
    if isinstance(scores, dict):  # the table of the page: values by name
        scores = [{"name": name, "value": scores[name]} for name in scores]
    for item in scores if isinstance(scores, list) else []:
        if isinstance(item, dict):
            yield from _score(_camel(item), run)


def _observation(row: Mapping[str, object]) -> Iterator[RunPart]:
    yield RunPart(
        kind="span",
        run_id=_run_id(row.get("traceId"), "traceId"),
        span_id=_run_id(row.get("id"), "id"),
        parent_id=part_id(row.get("parentObservationId"), "parentObservationId"),
        data=row,
    )


def _score(row: Mapping[str, object], run: str | None) -> Iterator[RunPart]:
    found = run or part_id(row.get("traceId"), "traceId")
    span = part_id(row.get("observationId"), "observationId")
    if (kind := part(row, "subject", "kind")) == "trace":  # version 3 of scores
        found = part_id(part(row, "subject", "id"), "subject.id")
    elif kind == "observation":
        span = part_id(part(row, "subject", "id"), "subject.id")
        found = part_id(part(row, "subject", "traceId"), "subject.traceId")
    if found is None and span is None:
        raise FieldError("is a score of a session or a dataset run, not of a trace")
    yield RunPart(kind="score", run_id=found, span_id=span, data=row)


def _run_id(value: object, name: str) -> str:
    found = part_id(value, name)
    if found is None:
        raise FieldError(f"field {name!r}: is missing")
    return found


def _build(run: WholeRun, settings: ImportSettings) -> Parsed:
    """Return the trace of a run."""
    spans = [_span(span_id, row) for span_id, row in run.spans.items()]
    about = run.about
    first = next(iter(run.spans.values()), {})  # enriched observations name their trace
    root = {} if about else _root(run)  # since version 4 there is no row of the trace itself
    metadata = unpacked(about.get("metadata") or root.get("metadata"))
    failed = any(span.failed and span.parent_id is None for span in spans)
    facts = RunFacts(
        source_id=run.run_id,
        name=text_of(first_of(about, "name") or first.get("traceName") or _root_name(spans)),
        given=unpacked(about.get("input")),
        returned=unpacked(about.get("output")),
        started=time_of(about.get("timestamp"), "timestamp"),
        latency_s=number(about.get("latency"), "latency"),
        cost_usd=price(about.get("totalCost"), "totalCost"),
        status="error" if failed else None,
        version=text_of(about.get("version") or root.get("version")),
        task_id=identifier(first_of(metadata, "task_id", "taskId", "dataset_item_id"), "task_id"),
        trial=whole(first_of(metadata, "trial"), "trial", maximum=MAX_TRIAL) or 0,
        scores=tuple(_source_score(row) for row in run.scores),
        metadata=_metadata(about, first, metadata),
    )
    return build_trace(SOURCE, facts, spans, settings)


def _root(run: WholeRun) -> Mapping[str, object]:
    for row in run.spans.values():
        if part_id(row.get("parentObservationId"), "parentObservationId") is None:
            return row
    return {}


def _metadata(
    about: Mapping[str, object], first: Mapping[str, object], metadata: object
) -> tuple[tuple[str, object], ...]:
    found = [(name, first_of(about, name) or first.get(name)) for name in _RUN_FIELDS]
    kept = [(name, value) for name, value in found if value]
    return (
        *kept,
        ("corrections", about.get("corrections") or None),
        ("metadata", metadata or None),
    )


def _span(span_id: str, row: Mapping[str, object]) -> Span:
    attributes = part(unpacked(row.get("metadata")), "attributes")
    tool = text_of(first_of(attributes, "gen_ai.tool.name", "tool.name", "ai.toolCall.name"))
    kind = _KINDS.get(str(row.get("type") or "").upper(), "tool" if tool else "other")
    usage = unpacked(first_of(row, "usageDetails", "usage"))
    cost = first_of(row, "totalCost", "calculatedTotalCost")
    if cost is None:
        cost = part(unpacked(row.get("costDetails")), "total")
    return Span(
        span_id=span_id,
        parent_id=part_id(row.get("parentObservationId"), "parentObservationId"),
        kind=kind,
        name=(tool if kind == "tool" else None) or text_of(row.get("name")) or kind,
        given=unpacked(row.get("input")),
        returned=unpacked(row.get("output")),
        started=time_of(row.get("startTime"), "startTime", UTC),
        ended=time_of(row.get("endTime"), "endTime", UTC),
        model=text_of(first_of(row, "model", "providedModelName", "internalModel")),
        tokens_in=_tokens(usage, row, "input", "prompt_tokens", "inputUsage"),
        tokens_out=_tokens(usage, row, "output", "completion_tokens", "outputUsage"),
        cost_usd=price(cost, "totalCost"),
        failed=row.get("level") == "ERROR",
        call_id=text_of(first_of(attributes, "gen_ai.tool.call.id", "ai.toolCall.id")),
    )


def _tokens(usage: object, row: Mapping[str, object], *names: str) -> int | None:
    """Return tokens from the details of the usage, else from the field that came before them."""
    found = first_of(usage, *names[:-1])
    return count(first_of(row, names[-1]) if found is None else found, names[-1])


def _root_name(spans: list[Span]) -> str | None:
    return next((span.name for span in spans if span.parent_id is None), None)


def _source_score(row: Mapping[str, object]) -> SourceScore:
    """Return a score with its class, text or number; a correction is the text of a person."""
    kind = row.get("dataType")
    text = first_of(row, "stringValue") or row.get("longStringValue")
    value = row.get("value") if kind in (None, "NUMERIC") else text or row.get("value")
    if kind == "BOOLEAN" and row.get("value") in (0, 1):
        value = row.get("value") == 1
    return SourceScore(
        name=text_of(row.get("name")) or "score",
        value=value,
        comment=text_of(row.get("comment")),
        human=row.get("source") == "ANNOTATION" or kind == "CORRECTION",
        author=text_of(row.get("authorUserId")),
        scale=stated_scale(row.get("config")),
    )


def _recognises(head: Head) -> bool:
    if head.any_has("data", "meta") and head.lists("data", _OF_PAGES):
        return True
    if head.kind == "object" and head.any_has("htmlPath", "observations"):
        return True
    return head.kind in ("object", "array", "lines", "csv", "parquet") and (
        head.any_has("trace", "observations")
        or any(head.any_has("id", *names) for names in _TELLING)
    )


_OF_PAGES = (
    "traceId", "observations", "scores", "projectId", "environment", "sessionId", "htmlPath",
    "parentObservationId", "subject", "maxValue",
)  # fmt: skip
_TELLING = (
    ("timestamp", "observations"),
    ("timestamp", "sessionId"),
    ("timestamp", "session_id", "bookmarked"),
    ("timestamp", "environment", "project_id"),
    ("traceId", "parentObservationId"),
    ("trace_id", "parent_observation_id"),
    ("traceId", "dataType"),
    ("maxValue", "dataType"),
    ("trace_id", "data_type"),
)

LANGFUSE = SpanFormat(
    name=SOURCE,
    title="a Langfuse export",
    expects="JSON of a trace page, answers of the public API, JSON lines of a blob export",
    recognises=_recognises,
    streamed=_LISTS,
    parts=_parts,
    build=_build,
    convert="Export traces with their observations: as JSON of the trace page, from "
    "GET /api/public/traces/{id}, or as JSONL to a blob storage",
)
