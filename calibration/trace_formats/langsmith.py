"""Runs of LangSmith: lists and lines of runs, batches of its clients, and langsmith-fetch files.

A trace is all runs with one trace id. LangSmith adds the cost of a run to those above it: the
cost is that of the first run alone. Feedback becomes a verdict that no reviewer sees; that of
people does not.
"""

from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime

from calibration.trace_formats.base import Head, ImportSettings, Parsed, stated_scale
from calibration.trace_formats.fields import (
    FieldError,
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

SOURCE = "langsmith"

_KINDS: dict[str, Kind] = {
    "llm": "model",
    "tool": "tool",
    "retriever": "tool",
    "embedding": "embedding",
}
_STATUS = {"success": "completed", "error": "error", "pending": "pending"}
_LISTS = frozenset({"runs", "post", "patch", "feedback", "feedbacks"})
_KEPT = (
    "tags", "session_name", "session_id", "project_id", "reference_example_id", "error", "app_path",
)  # fmt: skip
_PACKED = ("inputs", "outputs", "extra", "feedback_stats")  # JSON text in Parquet
_THREAD = ("thread_id", "session_id", "conversation_id")


def _parts(name: str | None, value: object) -> Iterator[RunPart]:
    """Yield the part that a run, a feedback row or a langsmith-fetch file is."""
    if not isinstance(value, dict):
        return
    if name in ("feedback", "feedbacks") or ("key" in value and "run_id" in value):
        yield from _feedback(value, None)
    elif name in ("runs", "post", "patch") or "run_type" in value or "dotted_order" in value:
        yield from _run(value)
    elif name == "rows" and (
        isinstance(value.get("post"), list) or isinstance(value.get("patch"), list)
    ):
        for key in ("post", "patch"):
            for item in value.get(key) or []:  # a batch a line
                yield from _parts(key, item)
    elif isinstance(value.get("messages"), list) and ("trace_id" in value or "thread_id" in value):
        yield from _fetched(value)


def _run(row: Mapping[str, object]) -> Iterator[RunPart]:
    order = row.get("dotted_order")  # ``<time>Z<id>`` of the first run to this one, by dots
    places = order.split(".") if isinstance(order, str) else [""]
    span = part_id(row.get("id"), "id") or places[-1].partition("Z")[2]
    if not span:
        raise FieldError("field 'id': is missing")
    yield RunPart(
        kind="span",
        run_id=part_id(row.get("trace_id"), "trace_id") or places[0].partition("Z")[2] or None,
        span_id=span,
        parent_id=_parent(row),
        data={
            key: unpacked(row[key]) if key in _PACKED else row[key]
            for key in row
            if key not in ("serialized", "events", "child_runs")
        },
    )
    children = row.get("child_runs")
    for child in children if isinstance(children, list) else []:
        if isinstance(child, dict):
            yield from _run({"parent_run_id": span, "trace_id": row.get("trace_id"), **child})


def _parent(row: Mapping[str, object]) -> str | None:
    """Return the parent of a run; the second version of the API lists all runs above it."""
    above = row.get("parent_run_ids")
    last = above[-1] if isinstance(above, list) and above else None
    return part_id(first_of(row, "parent_run_id") or last, "parent_run_id")


def _feedback(row: Mapping[str, object], run: str | None) -> Iterator[RunPart]:
    span = part_id(row.get("run_id"), "run_id")
    found = run or part_id(row.get("trace_id"), "trace_id")
    if found is None and span is None:
        raise FieldError("is feedback on a project or a session, not on a run")
    yield RunPart(kind="score", run_id=found, span_id=span, data=row)


def _fetched(value: Mapping[str, object]) -> Iterator[RunPart]:
    """Yield the parts of a langsmith-fetch file: messages, their metadata and feedback."""
    run = part_id(first_of(value, "trace_id", "thread_id"), "trace_id")
    yield RunPart(kind="run", run_id=run, span_id=run, data=value)
    given = value.get("feedback")
    for row in given if isinstance(given, list) else []:
        if isinstance(row, dict):
            yield from _feedback(row, run)


def _build(run: WholeRun, settings: ImportSettings) -> Parsed:
    spans = [_span(span_id, row) for span_id, row in run.spans.items()]
    if not spans:
        return build_trace(SOURCE, _facts_of_fetched(run), spans, settings)
    tops = [row for row in run.spans.values() if _parent(row) is None]
    first = (tops or list(run.spans.values()))[0]
    root: Mapping[str, object] = run.spans.get(run.run_id, first)
    about = part(root, "extra", "metadata") or part(root, "metadata")
    total = first_of(root, "total_tokens")
    cost = price(root.get("total_cost"), "total_cost")
    whole_root = bool(tops)
    facts = RunFacts(
        source_id=run.run_id,
        name=text_of(root.get("name")),
        given=root.get("inputs") if whole_root else None,
        returned=root.get("outputs") if whole_root else None,
        started=time_of(root.get("start_time"), "start_time") if whole_root else None,
        latency_s=_between(root, "start_time", "end_time") if whole_root else None,
        cost_usd=cost if whole_root else None,
        costs_add_up=False,
        total_tokens=count(total, "total_tokens") or None,
        status=_status(root),
        version=text_of(part(about, "revision_id")),
        task_id=identifier(
            first_of(about, "task_id") or root.get("reference_example_id"), "task_id"
        ),
        trial=whole(first_of(about, "trial"), "trial", maximum=MAX_TRIAL) or 0,
        scores=(*map(_score, run.scores), *_stats(root.get("feedback_stats"), run.scores)),
        metadata=(
            ("thread", first_of(about, *_THREAD)),
            *((name, first_of(root, name) or None) for name in _KEPT),
            ("metadata", about or None),
        ),
    )
    return build_trace(SOURCE, facts, spans, settings)


def _facts_of_fetched(run: WholeRun) -> RunFacts:
    """Return what a langsmith-fetch file says: the conversation and a summary of the run."""
    about = part(run.about, "metadata")
    costs, usage = part(about, "costs"), part(about, "token_usage")
    milliseconds = number(part(about, "duration_ms"), "duration_ms", maximum=1e12)
    return RunFacts(
        source_id=run.run_id,
        given=None,
        returned={"messages": run.about.get("messages")},
        started=time_of(part(about, "start_time"), "start_time"),
        latency_s=None if milliseconds is None else milliseconds / 1000,
        cost_usd=price(first_of(costs, "total_cost", "total"), "costs.total_cost"),
        costs_add_up=False,
        total_tokens=count(first_of(usage, "total_tokens", "total"), "token_usage.total_tokens"),
        status=_status(about),
        task_id=identifier(part(about, "custom_metadata", "task_id"), "task_id"),
        scores=(*map(_score, run.scores), *_stats(part(about, "feedback_stats"), run.scores)),
        metadata=(("metadata", part(about, "custom_metadata")),),
    )


def _span(span_id: str, row: Mapping[str, object]) -> Span:
    about = part(row, "extra", "metadata") or part(row, "metadata")
    usage = first_of(row.get("outputs"), "usage_metadata", "usage") or part(about, "usage_metadata")
    kind = str(row.get("run_type") or "").lower()
    model = first_of(about, "ls_model_name") or part(row, "extra", "invocation_params", "model")
    returned = row.get("outputs")
    return Span(
        span_id=span_id,
        parent_id=_parent(row),
        kind=_KINDS.get(kind, "other"),
        name=text_of(row.get("name")) or kind or "run",
        given=_tool_input(row) if kind == "tool" else row.get("inputs"),
        returned=_tool_output(returned) if kind == "tool" else returned,
        started=time_of(row.get("start_time"), "start_time"),
        ended=time_of(row.get("end_time"), "end_time"),
        model=text_of(model) if kind == "llm" else None,
        tokens_in=count(
            first_of(row, "prompt_tokens") or first_of(usage, "input_tokens", "prompt_tokens"),
            "prompt_tokens",
        ),
        tokens_out=count(
            first_of(row, "completion_tokens")
            or first_of(usage, "output_tokens", "completion_tokens"),
            "completion_tokens",
        ),
        cost_usd=price(row.get("total_cost"), "total_cost"),
        failed=_status(row) == "error",
    )


def _tool_input(row: Mapping[str, object]) -> object:
    """Return the arguments of a tool: LangChain writes them as text of a Python object."""
    given = row.get("inputs")
    inner = part(given, "input")
    return inner if isinstance(given, dict) and set(given) == {"input"} else unpacked(given)


def _tool_output(returned: object) -> object:
    if isinstance(returned, dict) and len(returned) == 1:
        return first_of(returned, "output", "result", "content") or returned
    return returned


def _status(row: object) -> str | None:
    if part(row, "error"):
        return "error"
    return _STATUS.get(str(part(row, "status") or "").lower())


def _between(row: Mapping[str, object], start: str, end: str) -> float | None:
    first: datetime | None = time_of(row.get(start), start)
    last: datetime | None = time_of(row.get(end), end)
    if first is None or last is None or last < first:
        return None
    return number((last - first).total_seconds(), "latency")


def _score(row: Mapping[str, object]) -> SourceScore:
    """Return a row of feedback; a person gave what came from the page or corrects the answer."""
    source = part(row, "feedback_source", "type") or row.get("source")
    value = first_of(row, "score", "value")
    return SourceScore(
        name=text_of(row.get("key")) or "feedback",
        value=value,
        comment=text_of(row.get("comment")),
        human=source == "app" or row.get("correction") is not None,
        author=text_of(first_of(row.get("feedback_source"), "user_name", "user_id")),
        scale=stated_scale(row.get("feedback_config")),
    )


def _stats(stats: object, rows: Sequence[Mapping[str, object]]) -> Iterator[SourceScore]:
    """Yield the means of feedback of which the file holds no rows."""
    named = [row.get("key") for row in rows]
    for key, about in stats.items() if isinstance(stats, dict) else ():
        if key not in named and isinstance(key, str):
            n = part(about, "n")
            yield SourceScore(name=key, value=part(about, "avg"), comment=f"mean of {n}")


def _recognises(head: Head) -> bool:
    if any(head.lists(name, _OF_RUNS) for name in ("runs", "post", "patch")):
        return True
    return head.kind in ("object", "array", "lines", "csv", "parquet") and any(
        head.any_has(*names) for names in _TELLING
    )


_OF_RUNS = ("run_type", "dotted_order", "trace_id", "parent_run_id")
_TELLING = (
    ("run_type", "id"),
    ("dotted_order", "id"),
    ("post", "patch"),
    ("run_id", "key", "score"),
    ("trace_id", "messages", "metadata"),
    ("trace_id", "messages", "feedback"),
)

LANGSMITH = SpanFormat(
    name=SOURCE,
    title="a LangSmith export",
    expects="runs as JSON or JSON lines, langsmith-fetch files",
    recognises=_recognises,
    streamed=_LISTS,
    parts=_parts,
    build=_build,
    convert="Export runs with `client.list_runs` as JSON or JSON lines, or with "
    "`langsmith-fetch traces FOLDER --include-metadata --include-feedback`",
)
