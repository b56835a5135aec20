"""One run out of the tree of its spans: transcript, cost, latency and verdict.

Each call of a model repeats the conversation so far; a message is one step however often it is
repeated.
"""

import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from datetime import datetime

from calibration.records import Step, Trace, trace_identity
from calibration.taxonomy import Taxonomy
from calibration.trace_formats.base import (
    MAX_NAME,
    MAX_STEPS,
    ImportSettings,
    Parsed,
    RunGrades,
    human_score,
    run_score,
)
from calibration.trace_formats.fields import (
    FieldError,
    identifier,
    note,
    readable,
)
from calibration.trace_formats.message_shapes import plain_text, read_said
from calibration.trace_formats.own_records import NO_WORKFLOW
from calibration.trace_formats.said import Said, Unseen, unpacked
from calibration.trace_formats.spans import (
    DOUBLED,
    OWN_SCORES,
    SINCE,
    RunFacts,
    SourceScore,
    Span,
    SpanTree,
)

_MAX_ENTRIES = 2 * MAX_STEPS  # a text may share its step with a call
_TOOL_PREFIX = re.compile(
    r"^(?:(?:execute_tool|running tool:?|tool:?|call)\s+|tool\.)", re.IGNORECASE
)
_UUID = re.compile(r"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}", re.IGNORECASE)
# Scores that say whether the run succeeded: 1 is success and 0 is not.
_SUCCESS = frozenset(
    {
        "accuracy", "correct", "correctness", "goal_completion", "is_correct", "outcome", "pass",
        "passed", "resolved", "reward", "success", "task_completion", "task_success",
    }
)  # fmt: skip


def build_trace(
    source: str, facts: RunFacts, spans: Sequence[Span], settings: ImportSettings
) -> Parsed:
    """Return the run that these spans are, with the verdicts that its scores propose.

    File and line are those of the first span, which the caller knows. Raises FieldError where it
    is no run of an agent: neither a call of a model nor an answer.
    """
    theirs = tuple(s for s in facts.scores if not s.name.startswith(OWN_SCORES))
    facts = replace(facts, scores=theirs)
    tree = SpanTree(spans)
    _refuse_fragments(facts, spans)
    unseen = Unseen()
    talk = _conversation(facts, tree, unseen)
    steps = talk.steps(_start(facts, tree))
    response = _answer(facts, tree, talk, unseen)
    model = _models(spans)
    found = _workflow(facts, spans)
    workflow = settings.workflow_for(found) or found
    trace_id = trace_identity(source, facts.source_id, facts.trial)
    task_id = facts.task_id or facts.source_id
    cost = facts.cost_usd
    if facts.costs_add_up and (cost is None or tree.is_doubled(cost)):
        cost = tree.cost()
    trace = Trace(
        trace_id=trace_id,
        source=source,
        source_id=facts.source_id,
        workflow=workflow,
        task_id=task_id,
        task_key=f"{source}/{found}/{task_id}",
        trial=facts.trial,
        prompt=_task(facts, tree, talk, unseen),
        steps=steps,
        response=response,
        status=facts.status,
        model=model,
        agent_version=facts.version,
        started_at=_start(facts, tree),
        latency_s=facts.latency_s if facts.latency_s is not None else tree.latency(),
        cost_usd=cost,
        total_tokens=facts.total_tokens if facts.total_tokens is not None else tree.tokens(),
        metadata=unseen.metadata(_metadata(facts, tree)),
    )
    grades = _grades(source, facts.scores, settings.taxonomy)
    return Parsed(trace=trace, grades=grades, line=None, file="")


def _refuse_fragments(facts: RunFacts, spans: Sequence[Span]) -> None:
    if any(span.kind in ("model", "agent") for span in spans):
        return
    around = [span for span in spans if span.kind == "other"]
    texts = [facts.returned, *(value for span in around for value in (span.given, span.returned))]
    if any(value not in (None, "", {}, []) for value in texts):
        return
    if not spans:
        raise FieldError("has neither spans nor an answer: export it with its observations or runs")
    kinds = ", ".join(sorted({span.kind for span in spans}))
    raise FieldError(
        f"is no run of an agent: no span of it is a call of a model (kinds: {kinds}), and there is "
        "no answer"
    )


@dataclass(slots=True, kw_only=True, eq=False)
class _Entry:
    """One step in the making; of a call `result` is its entry, of a result `answers` its call."""

    said: Said
    at: datetime | None = None
    seconds: float | None = None
    tokens: tuple[int | None, int | None] = (None, None)
    failed: bool = False
    opens: bool = False  # the first of what a model said at once
    spoken: bool = False
    of_span: bool = False
    answers: "_Entry | None" = None
    result: "_Entry | None" = None


@dataclass(slots=True)
class _Talk:
    """The conversation of a run: each message once; several may have an id, the oldest first."""

    unseen: Unseen
    entries: list[_Entry] = field(default_factory=list)
    _by_id: dict[tuple[str, str], list[_Entry]] = field(default_factory=lambda: defaultdict(list))
    _by_content: dict[tuple[str, ...], list[_Entry]] = field(
        default_factory=lambda: defaultdict(list)
    )
    _open: dict[str, list[_Entry]] = field(default_factory=lambda: defaultdict(list))
    _results: list[_Entry] = field(default_factory=list)  # of spans, not repeated by a model yet

    def hear(self, messages: Iterable[Said], at: datetime | None) -> None:
        """Add what is new in the messages that a model was given."""
        used: set[int] = set()
        next_of: dict[tuple[str, ...], int] = {}
        for said in messages:
            entry = self._known(said, used, next_of)
            if entry is None:
                entry = self._add(_Entry(said=said, at=at))
            elif said.call_id and entry.said.call_id is None:
                entry.said = replace(entry.said, call_id=said.call_id)
                self._by_id[said.kind, said.call_id].append(entry)
            used.add(id(entry))

    def _known(
        self, said: Said, used: set[int], next_of: dict[tuple[str, ...], int]
    ) -> _Entry | None:
        if said.call_id is not None:
            same_id = [e for e in self._by_id[said.kind, said.call_id] if id(e) not in used]
            if not same_id and said.kind == "result":
                results = [call.result for call in self._by_id["call", said.call_id]]
                same_id = [e for e in results if e is not None and id(e) not in used]
            if same_id:
                return next((e for e in same_id if e.said.content == said.content), same_id[0])
        content = said.content
        same = self._by_content[content]
        at = next_of.get(content, 0)
        while at < len(same):
            entry, at = same[at], at + 1
            both = said.call_id and entry.said.call_id and said.call_id != entry.said.call_id
            if id(entry) not in used and not both:
                next_of[content] = at
                return entry
        next_of[content] = at
        if said.kind == "result" and said.call_id is None and self._results:
            entry = self._results.pop(0)  # a model is told the result in other words
            self._by_content[content].append(entry)
            return entry
        return None

    def speak(self, messages: Sequence[Said], span: Span) -> None:
        """Add what a model said; a span may also hold calls and results that are known."""
        first = True
        for said in messages:
            if said.call_id is not None and self._spoken(said):
                continue
            entry = self._taken_up(said) if said.kind == "call" else None
            if entry is None:
                entry = self._add(_Entry(said=said, at=span.started, opens=first, spoken=True))
            if first:
                entry.tokens, entry.seconds = (span.tokens_in, span.tokens_out), _seconds(span)
            first = False

    def _spoken(self, said: Said) -> bool:
        """Return whether a model has made this call before, or whether its result is known.

        Some models number their calls anew in every turn: one with other content is another call.
        """
        calls = self._by_id["call", said.call_id or ""]
        if said.kind == "call":
            return any(call.spoken and call.said.content == said.content for call in calls)
        return bool(calls) and all(call.result is not None for call in calls)

    def _taken_up(self, said: Said) -> _Entry | None:
        """Return the call that a span of its tool has shown before the model's own span ended."""
        for entry in self._by_content[said.content]:
            if entry.of_span and not entry.spoken:
                entry.spoken = True
                if said.call_id and entry.said.call_id is None:
                    entry.said = replace(entry.said, call_id=said.call_id)
                    self._by_id["call", said.call_id].append(entry)
                return entry
        return None

    def _add(self, entry: _Entry) -> _Entry:
        said = entry.said
        if len(self.entries) == _MAX_ENTRIES:
            raise FieldError(f"has more than {_MAX_ENTRIES:,} messages, calls and results")
        self.entries.append(entry)
        self._by_content[said.content].append(entry)
        if said.call_id is not None:
            self._by_id[said.kind, said.call_id].append(entry)
        if said.kind == "call":
            self._open[said.tool or ""].append(entry)
        elif said.kind == "result" and entry.answers is None:
            call = self._asked(said)
            if call is not None:
                entry.answers, call.result = call, entry
        return entry

    def _asked(self, said: Said) -> _Entry | None:
        """Return the call that a result answers: by its id, else the oldest open call."""
        if said.call_id is not None:
            calls = self._by_id["call", said.call_id]
            return next((c for c in calls if c.result is None), calls[-1] if calls else None)
        named = [said.tool] if said.tool else list(self._open)
        waiting = (entry for tool in named for entry in self._open[tool])
        return next((entry for entry in waiting if entry.result is None), None)

    def has_call(self, tool: str) -> bool:
        """Return whether a model has asked for this tool and no span has shown the call yet."""
        return any(not entry.of_span for entry in self._open.get(tool, ()))

    def call(self, span: Span, tool: str) -> _Entry:
        """Return the call that a span of a tool carries out."""
        messages = read_said(span.returned, "tool", self.unseen)
        returned = next((s for s in messages if s.kind == "result"), None)
        call_id = span.call_id or (returned.call_id if returned is not None else None)
        if call_id is not None and (calls := self._by_id["call", call_id]):
            known = next((call for call in calls if not call.of_span), calls[-1])
            known.of_span = True
            return known
        said = Said(
            kind="call", role="assistant", tool=tool, arguments=_arguments(span.given),
            call_id=call_id,
        )  # fmt: skip
        waiting = [entry for entry in self._open.get(tool, ()) if not entry.of_span]
        content = said.content
        entry = next((e for e in waiting if e.said.content == content), None)
        if entry is None and waiting:
            entry = waiting[0]
        if entry is None:
            entry = self._add(_Entry(said=said, at=span.started))
        entry.of_span = True
        return entry

    def returned(self, span: Span, call: _Entry) -> None:
        """Add the result that a span of a tool returned, if it is not known."""
        text = _result_text(span.returned, self.unseen)
        if call.result is not None:
            call.result.failed |= span.failed
            call.result.seconds = _seconds(span)
            return
        if text is None and not span.failed:
            return
        said = Said(kind="result", role="tool", text=text, tool=call.said.tool)
        entry = _Entry(
            said=said, at=span.ended, seconds=_seconds(span), failed=span.failed, answers=call
        )
        call.result = self._add(entry)
        self._results.append(entry)

    def steps(self, start: datetime | None) -> tuple[Step, ...]:
        """Return the steps; the text of a model is on the first call that it makes with it."""
        steps: list[Step] = []
        place: dict[int, str] = {}
        texts: dict[int, str | None] = {}
        entries = list(self.entries)
        for k, entry in enumerate(entries):
            following = entries[k + 1] if k + 1 < len(entries) else None
            if _joins(entry, following) and following is not None:
                texts[id(following)] = entry.said.text
                following.tokens, following.seconds = entry.tokens, entry.seconds
                continue
            said = entry.said
            step_id = place[id(entry)] = f"s{len(steps) + 1}"
            content = said.text if said.kind == "text" else texts.get(id(entry))
            tool = said.tool if said.kind != "result" or entry.answers is None else None
            steps.append(
                Step(
                    step_id=step_id,
                    role=said.role,
                    content=content,
                    tool=_tool_name(tool or (entry.answers.said.tool if entry.answers else None))
                    if said.kind != "text"
                    else None,
                    arguments=said.arguments,
                    result=said.text if said.kind == "result" else None,
                    error=entry.failed or said.failed,
                    tokens_in=entry.tokens[0],
                    tokens_out=entry.tokens[1],
                    seconds=entry.seconds,
                    at=_elapsed(entry.at, start),
                    call=place.get(id(entry.answers)) if entry.answers is not None else None,
                )
            )
        return tuple(steps)


def _joins(entry: _Entry, following: _Entry | None) -> bool:
    """Return whether a text and the next entry are one turn of a model: the call that it makes."""
    return (
        following is not None
        and entry.said.kind == "text"
        and entry.said.role == "assistant"
        and following.said.kind == "call"
        and not following.opens
        and entry.at == following.at
    )


def _tool_name(name: str | None) -> str:
    return identifier(name, "tool") or "tool"


def _elapsed(at: datetime | None, start: datetime | None) -> float | None:
    if at is None or start is None or at < start:
        return None
    return (at - start).total_seconds()


def _seconds(span: Span) -> float | None:
    return _elapsed(span.ended, span.started)


def _arguments(given: object) -> str | None:
    value = unpacked(given)
    if isinstance(value, dict) and set(value) == {"input"} and isinstance(value["input"], dict):
        value = value["input"]
    return readable(value)


def _result_text(returned: object, unseen: Unseen) -> str | None:
    """Return the text of what a tool returned; None where it is empty."""
    said = [s for s in read_said(returned, "tool", unseen) if s.kind == "result"]
    if said:
        return said[0].text
    value = unpacked(returned)
    if value in (None, "", {}, []):
        return None
    if isinstance(value, dict) and set(value) == {"content"} and isinstance(value["content"], list):
        return unseen.text(value["content"], "tool")
    if isinstance(value, str):
        return unseen.text(returned if isinstance(returned, str) else value, "tool")
    return unseen.returned(value)


def _conversation(facts: RunFacts, tree: SpanTree, unseen: Unseen) -> _Talk:
    """Return what was said and done, in the order of time."""
    talk = _Talk(unseen)
    graders = {span.span_id for span in tree.spans if span.kind == "grader"}
    hidden = graders | tree.within(graders)
    spoken = _spoken(tree, hidden, unseen)
    if not spoken:
        given = [facts.given, *(span.given for span in tree.fronts)]
        asked = (
            said
            for v in given
            if (said := read_said(v, "user", unseen) or _asked_in_text(v, unseen))
        )
        talk.hear(next(asked, ()), _start(facts, tree))
    started: dict[str, _Entry] = {}
    for _, _, event, span in sorted(_events(tree, hidden, spoken), key=lambda e: e[:2]):
        if event == "model is asked":
            talk.hear(spoken[span.span_id][0], span.started)
        elif event == "model answers":
            talk.speak(spoken[span.span_id][1], span)
        elif span.span_id not in started:
            tool = _tool_of(span)
            if span.kind == "tool" or talk.has_call(tool):
                started[span.span_id] = talk.call(span, tool)
        if event == "tool returns" and span.span_id in started:
            talk.returned(span, started[span.span_id])
    if not any(answer for _, answer in spoken.values()):
        results = [facts.returned, *(span.returned for span in reversed(tree.fronts))]
        answers = (said for v in results if (said := read_said(v, "assistant", unseen)))
        talk.hear(next(answers, ()), None)
    return talk


Heard = tuple[tuple[Said, ...], tuple[Said, ...]]


def _spoken(tree: SpanTree, hidden: set[str], unseen: Unseen) -> dict[str, Heard]:
    """Return what each call of a model was given and answered, where that can be read.

    Where two spans hold the same call, one within the other, the inner one counts, completed by
    the outer one.
    """
    found: dict[str, Heard] = {}
    models = {span.span_id: span for span in tree.spans if span.kind == "model"}
    inner: dict[str, list[str]] = defaultdict(list)
    calls = [span for span in tree.calls() if span.span_id not in hidden]
    retried = _retried(tree, calls)
    for span in calls:
        if (parent := tree.parent[span.span_id]) in models and parent is not None:
            inner[parent].append(span.span_id)
    for span in calls:
        given = read_said(span.given, "user", unseen) or _asked_in_text(span.given, unseen)
        answer = read_said(span.returned, "assistant", unseen) or _answered_in_text(
            span.returned, unseen
        )
        parent = tree.parent[span.span_id]
        if parent is not None and inner.get(parent) == [span.span_id]:
            outer = models[parent]
            given = given or read_said(outer.given, "user", unseen)
            told = read_said(outer.returned, "assistant", unseen)
            answer = told if _said_more(told, answer) else answer
        if span.span_id in retried:
            answer = ()
        if given or answer:
            found[span.span_id] = given, answer
    return found


def _retried(tree: SpanTree, calls: Sequence[Span]) -> set[str]:
    """Return the calls of a model that failed and were made again: what they left is no answer."""
    again: set[tuple[str | None, str]] = set()
    failed: set[str] = set()
    for span in reversed(calls):
        key = tree.parent[span.span_id], readable(span.given) or ""
        if span.failed and key in again:
            failed.add(span.span_id)
        again.add(key)
    return failed


def _said_more(one: Sequence[Said], other: Sequence[Said]) -> bool:
    """Return whether one form of an answer holds calls that the other lacks, or more texts."""
    found = [(sum(s.kind == "call" for s in said), len(said)) for said in (one, other)]
    return found[0] > found[1]


def _asked_in_text(given: object, unseen: Unseen) -> tuple[Said, ...]:
    text = plain_text(given, unseen, answer=False)
    return (Said(kind="text", role="user", text=text),) if text else ()


def _answered_in_text(returned: object, unseen: Unseen) -> tuple[Said, ...]:
    text = plain_text(returned, unseen, answer=True)
    return (Said(kind="text", role="assistant", text=text),) if text else ()


Event = tuple[tuple[datetime, int], int, str, Span]


def _events(tree: SpanTree, hidden: set[str], spoken: Mapping[str, Heard]) -> Iterator[Event]:
    """Yield when each model is asked and answers, and each tool is called and returns."""
    with_models = tree.holding({s.span_id for s in tree.spans if s.kind == "model"})
    first_tool = _first_tools(tree)
    for k, span in enumerate(tree.spans):
        if span.span_id in hidden:
            continue
        start = span.started or SINCE
        end = max(span.ended or start, start)
        if span.span_id in spoken:
            yield (start, 2), 2 * k, "model is asked", span
            answered = max(start, min(end, first_tool.get(span.span_id, end)))
            yield (answered, 2 if answered == start else 0), 2 * k + 1, "model answers", span
        elif span.kind == "tool" or (span.kind == "other" and span.span_id not in with_models):
            yield (start, 3), 2 * k, "tool is called", span
            yield (end, 3 if end == start else 1), 2 * k + 1, "tool returns", span


def _first_tools(tree: SpanTree) -> dict[str, datetime]:
    """Return when the first tool below each span starts: a model has answered by then."""
    first: dict[str, datetime] = {}
    for span in reversed(tree.spans):
        parent = tree.parent[span.span_id]
        if span.kind == "tool" and span.started is not None and parent is not None:
            first[parent] = min(span.started, first.get(parent, span.started))
    return first


def _tool_of(span: Span) -> str:
    return _TOOL_PREFIX.sub("", span.name).strip() or span.name


def _start(facts: RunFacts, tree: SpanTree) -> datetime | None:
    starts = [span.started for span in tree.spans if span.started is not None]
    return facts.started or (min(starts) if starts else None)


def _task(facts: RunFacts, tree: SpanTree, talk: _Talk, unseen: Unseen) -> str:
    """Return what the user asked: from the run, from its first spans, or from the transcript."""
    candidates = [facts.given, *(span.given for span in tree.fronts)]
    for value in candidates:
        messages = read_said(value, "user", unseen)
        asked = [s.text for s in messages if s.kind == "text" and s.role == "user"]
        if asked and asked[0]:
            return asked[0]
        if not asked and (text := plain_text(value, unseen, answer=False)):
            return text
    heard = (e.said.text for e in talk.entries if e.said.kind == "text" and e.said.role == "user")
    if (first := next(heard, None)) is not None:
        return first
    rest = next((text for v in candidates if v and (text := unseen.text(unpacked(v)))), None)
    return rest or "The file does not say what was asked."


def _answer(facts: RunFacts, tree: SpanTree, talk: _Talk, unseen: Unseen) -> str | None:
    """Return the answer of the run or of its last first span, else the last text of the agent."""
    candidates = [facts.returned, *(span.returned for span in reversed(tree.fronts))]
    for value in candidates:
        said = read_said(value, "assistant", unseen)
        texts = [s.text for s in said if s.kind == "text" and s.role == "assistant"]
        if texts:
            return texts[-1]
        if not said and (text := plain_text(value, unseen, answer=True)):
            return text
    said_last = [e.said for e in talk.entries if e.said.kind == "text"]
    texts = [said.text for said in said_last if said.role == "assistant"]
    if texts:
        return texts[-1]
    rest = (unpacked(v) for v in candidates if v not in (None, "", {}, []))
    return next((unseen.text(value, "assistant") for value in rest), None)


def _models(spans: Sequence[Span]) -> str | None:
    """Return the models of a run in the order of their first call."""
    called = [s.model for s in spans if s.model and s.kind == "model"]
    names = list(dict.fromkeys(called or [s.model for s in spans if s.model]))
    return note(", ".join(names), limit=MAX_NAME) if names else None


def _workflow(facts: RunFacts, spans: Sequence[Span]) -> str:
    """Return the name of the run without models, which reviewers must not see, and without ids."""
    name = _UUID.sub("", facts.name or "")
    for model in sorted({s.model for s in spans if s.model}, key=len, reverse=True):
        name = re.sub(re.escape(model), "", name, flags=re.IGNORECASE)
    return note(re.sub(r"\s+", " ", name).strip(" .:-"), limit=MAX_NAME) or NO_WORKFLOW


def _metadata(facts: RunFacts, tree: SpanTree) -> Iterator[tuple[str, object]]:
    yield "scores", [_as_kept(score) for score in facts.scores] or None
    yield from facts.metadata
    yield "spans", len(tree.spans) or None
    yield "spans_without_parent", tree.missing or None
    yield "circles_of_spans", tree.circles or None
    if facts.costs_add_up and facts.cost_usd is not None and tree.is_doubled(facts.cost_usd):
        leaves = tree.cost()
        yield DOUBLED, True
        yield (
            "cost_note",
            f"the stated total of {facts.cost_usd:.6g} USD holds costs twice: an observation "
            f"repeats those within it; the sum without them is {leaves:.6g} USD",
        )
    if facts.cost_usd is None and (unpriced := tree.unpriced()):
        yield "cost_note", f"{unpriced} calls of a model have tokens and no cost: price not known"


def _as_kept(score: SourceScore) -> dict[str, object]:
    """Return a score as the metadata of a trace hold it."""
    kept = asdict(score)
    del kept["scale"]
    return kept


def _grades(source: str, scores: Sequence[SourceScore], taxonomy: Taxonomy) -> RunGrades:
    """Return the scores of a run; one named like success is a verdict, and one that is a class."""
    judged = {score.name: score for score in scores if not score.human}
    return RunGrades(
        judge=f"source:{source}",
        scores=tuple(
            run_score(
                score.name,
                score.value,
                taxonomy,
                scale=score.scale,
                details=[score.comment],
                role="success" if _says_success(score.name) else "other",
            )
            for score in judged.values()
        ),
        human=tuple(
            human_score(
                score.author or "unknown",
                score.name,
                score.value,
                score.comment,
                taxonomy,
                score.scale,
            )
            for score in scores
            if score.human
        ),
    )


def _says_success(name: str) -> bool:
    return name.strip().casefold().replace(" ", "_").replace("-", "_") in _SUCCESS
