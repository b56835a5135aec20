"""Logs of Inspect AI: a JSON file, or an ``.eval`` archive with one file for each sample.

Every sample in every epoch is a run: the epoch is its trial. A score C, I or N (1 or 0) proposes a
class; P (0.5), other numbers, lists and objects are kept as a verdict without one. A run that ended
with an error or at a limit and is not correct proposes the class of runs without output. The cost
is that of the model usage where all of it has a price, without that of graders.
"""

import math
import re
from collections.abc import Iterator, Mapping
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

from calibration.errors import TraceFormatError
from calibration.records import Attachment, SetAside, Trace, trace_identity
from calibration.trace_formats.base import (
    MAX_COST_USD,
    MAX_TRACE_BYTES,
    Head,
    HumanScore,
    Importer,
    ImportSettings,
    Item,
    Parsed,
    RunGrades,
    RunScore,
    Slot,
    attempt,
    human_score,
    run_score,
    stated_scale,
)
from calibration.trace_formats.compressed import ZIP, Archive, first_bytes
from calibration.trace_formats.fields import (
    FieldError,
    as_list,
    as_object,
    first_of,
    identifier,
    moment,
    note,
    number,
    part,
    readable,
    required_id,
    shown,
    whole,
)
from calibration.trace_formats.json_scanner import JsonText
from calibration.trace_formats.messages import read_messages
from calibration.trace_formats.said import SPEECH_FIELDS, Unseen
from calibration.trace_formats.spans import OWN_SCORES

SOURCE = "inspect-ai"
HEADER, START = "header.json", "_journal/start.json"
SAMPLES = "samples"

# What an archive holds beside its header.
_BESIDE = ("samples/", "_journal/", "summaries.json", "reductions.json")
_ENTRY = re.compile(r"samples/[^/]+\.json")
_CHUNKED = re.compile(r"samples/.+/sample\.json")  # of logs in the .eval2 layout
_ATTACHED = re.compile(r"(?:attachment|tc)://([0-9a-f]{8,64})")

# What is long and nobody reads here: the events repeat the messages of every call.
_PASSED_OVER = frozenset({"events", "events_data", "store", "output_events", "timelines"})
_LETTERS = {"C": True, "I": False, "P": 0.5, "N": False}
_UNCHANGED = "UNCHANGED"

CONVERT = "`inspect log convert --to json --output-dir json FILE` writes logs that are read"


def read(path: Path, settings: ImportSettings) -> Iterator[Item]:
    """Yield the samples of a log, each with its grade."""
    if first_bytes(path).startswith(ZIP):
        yield from _read_archive(path, settings)
        return
    source = JsonText(path)
    shared: dict[str, object] = {}
    later: int | None = None
    found = False
    for key, at in source.members(source.start):
        if key != SAMPLES:
            if key != "reductions":
                shared[key] = source.decode(at)[0]
        elif source.mark(at) != "[":
            later = None
        elif "eval" in shared:  # the usual order
            found = True
            yield from _samples(source, at, _Log(settings, shared))
        else:
            later = at
    if later is not None:
        found = True
        yield from _samples(source, later, _Log(settings, shared))
    if not found:
        raise _no_samples(path, shared)


def _samples(source: JsonText, at: int, log: "_Log") -> Iterator[Item]:
    for place in source.places(at):
        sample = _members(source, place)
        line = source.line(place)
        yield attempt(source.path, line, partial(log.parse, sample, line, source.path))


def _members(source: JsonText, at: int) -> object:
    """Return a sample without what is passed over, so that it may be long."""
    if source.mark(at) != "{":
        return source.decode(at)[0]
    sample: dict[str, object] = {}
    for key, place in source.members(at):
        if key not in _PASSED_OVER:
            sample[key] = source.decode(place)[0]
    return sample


def _read_archive(path: Path, settings: ImportSettings) -> Iterator[Item]:
    archive = Archive(path)
    try:
        chunked = next(filter(_CHUNKED.fullmatch, archive.names), None)
        if chunked is not None:
            raise TraceFormatError(
                f"{path}: is an Inspect AI log in the .eval2 layout, which is not read; {CONVERT}"
            )
        # A log whose run was broken off has no header yet.
        head = HEADER if HEADER in archive.names else START
        shared = _entry(archive, head)
        names = list(filter(_ENTRY.fullmatch, archive.names))
        if not isinstance(shared, dict) or not names:
            raise _no_samples(path, shared)
        log = _Log(settings, shared)
        for name in names:
            place = path / name
            try:
                sample = _entry(archive, name)
            except TraceFormatError as error:
                reason = str(error).removeprefix(str(place)).removeprefix(str(path)).lstrip(":, ")
                yield SetAside(file=str(place), line=None, reason=reason)
                continue
            yield attempt(place, None, partial(log.parse, sample, None, place))
    finally:
        archive.close()


def _entry(archive: Archive, name: str) -> object:
    source = JsonText(archive.path / name, archive.open(name))
    found = _members(source, source.start)
    if not isinstance(found, dict):
        source.finish(source.decode(source.start)[1])
    return found


def _no_samples(path: Path, shared: object) -> TraceFormatError:
    status = part(shared, "status")
    told = f" (its status is {shown(status)})" if status is not None else ""
    return TraceFormatError(
        f"{path}: is an Inspect AI log without samples{told}; Inspect leaves them out with "
        "--no-log-samples, and `inspect eval-retry` finishes a run that was broken off"
    )


class _Log:
    """Data shared by the samples of one log."""

    def __init__(self, settings: ImportSettings, shared: Mapping[str, object]) -> None:
        self.settings = settings
        self.about = part(shared, "eval")
        self.task = _name(part(self.about, "task")) or SOURCE
        self.model = _name(part(self.about, "model"))
        commit = _name(part(self.about, "revision", "commit"))
        self.version = commit and commit[:12]
        self.run_id = _name(first_of(self.about, "run_id", "eval_id")) or ""
        self.created = part(self.about, "created")
        self.headline = part(shared, "results", "headline", "scorer")

    def parse(self, sample: object, line: int | None, file: Path) -> Parsed:
        """Convert one sample into a trace and its grades."""
        if not isinstance(sample, dict):
            raise FieldError(f"is not a sample: an object was expected, got {shown(sample)}")
        sample = _resolved(sample)
        task_id = required_id(sample.get("id"), "id")
        epoch = whole(sample.get("epoch"), "epoch", maximum=1_000_000) or 0
        own_id = identifier(sample.get("uuid"), "uuid")
        source_id = own_id or f"{self.run_id}/{task_id}"
        unseen = Unseen()
        spoken = read_messages(_messages(sample.get("messages")), "messages", unseen)
        cost, tokens = _usage(sample)
        started = sample.get("started_at")
        trace = Trace(
            trace_id=trace_identity(SOURCE, source_id, epoch),
            source=SOURCE,
            source_id=source_id,
            workflow=self.settings.workflow_for(self.task) or self.task,
            task_id=task_id,
            task_key=f"{SOURCE}/{self.task}/{task_id}",
            trial=epoch,
            prompt=_prompt(sample, unseen) or spoken.first_user or f"Sample {task_id}",
            inputs=_inputs(sample),
            steps=spoken.steps,
            response=spoken.response or _output(sample, unseen),
            status=_status(sample),
            model=self.model,
            agent_version=self.version,
            started_at=moment(
                self.created if started is None else started, "started_at", self.settings.zone
            ),
            latency_s=number(sample.get("total_time"), "total_time"),
            cost_usd=cost,
            total_tokens=tokens,
            success_criteria=_criteria(sample),
            metadata=unseen.metadata(_metadata(sample, started is None)),
        )
        return Parsed(
            trace=trace,
            grades=self._grades(sample),
            line=line,
            file=str(file),
            slot=self._slot(task_id, epoch, sample.get("error") is not None),
        )

    def _slot(self, sample_id: str, epoch: int, failed: bool) -> Slot | None:
        """Return the place of a sample in its eval, which a retry in another log fills again."""
        task = _name(part(self.about, "task_id"))
        if task is None:
            return None
        try:
            logged = moment(self.created, "created", self.settings.zone)
        except FieldError:
            logged = None
        return Slot(key=(task, sample_id, epoch), failed=failed, logged=logged)

    def _grades(self, sample: Mapping[str, object]) -> RunGrades:
        """Return the scores of a sample, the main one first, and what people made of them."""
        taxonomy = self.settings.taxonomy
        scores = sample.get("scores")
        # Logs of 2024 have one score without a name.
        named = _theirs(scores) if isinstance(scores, dict) else {"score": sample.get("score")}
        found: list[RunScore] = []
        human: list[HumanScore] = []
        for name in sorted(named, key=lambda name: name != self.headline):
            machine, edits = _edited(named[name])
            scale = stated_scale(part(machine, "metadata"))
            for author, edit in edits:
                value, comment = _value(edit.get("value")), readable(edit.get("reason"))
                human.append(human_score(author, str(name), value, comment, taxonomy, scale))
            value = part(machine, "value")
            if _value(value) is None:
                continue
            why = note(readable(part(machine, "explanation")))
            score = run_score(str(name), _value(value), taxonomy, scale=scale, details=[why])
            found.append(replace(score, shown=shown(value)))
        return RunGrades(
            judge=f"source:{SOURCE}",
            scores=tuple(found),
            ended=_ended(sample),
            human=tuple(human),
        )


def _theirs(scores: Any) -> Any:
    """Return scores without those that were made of classes of the store (`OWN_SCORES`)."""
    if not isinstance(scores, dict):
        return scores
    return {name: of for name, of in scores.items() if not str(name).startswith(OWN_SCORES)}


def _name(value: object) -> str | None:
    try:
        return identifier(value, "eval")
    except FieldError:
        return None


def _resolved(sample: Mapping[str, object]) -> dict[str, object]:
    """Put long texts, which a sample holds once, where they belong."""
    attached = sample.get("attachments")
    texts = attached if isinstance(attached, dict) else {}
    room = MAX_TRACE_BYTES

    def put(value: object) -> object:
        nonlocal room
        if isinstance(value, str):
            found = _ATTACHED.fullmatch(value) if len(value) < 100 else None
            text = texts.get(found[1]) if found else None
            if not isinstance(text, str):
                return value
            room -= len(text)
            if room < 0:
                raise FieldError(f"has more than {MAX_TRACE_BYTES / 1e6:.0f} MB of text")
            return text
        if isinstance(value, list):
            return [put(item) for item in value]
        if isinstance(value, dict):
            return {key: put(item) for key, item in value.items()}
        return value

    return {key: put(value) for key, value in sample.items() if key != "attachments"}


def _messages(value: object) -> list[object]:
    """Return messages in OpenAI form: Inspect names a function where that has an object."""
    found: list[object] = []
    for message in as_list(value, "messages"):
        if not isinstance(message, dict):
            found.append(message)
            continue
        own = {key: message.get(key) for key in ("role", "content", "tool_call_id", *SPEECH_FIELDS)}
        if isinstance(message.get("tool_calls"), list):
            own["tool_calls"] = [_call(call) for call in message["tool_calls"]]
        if message.get("role") == "tool":
            failure = message.get("error")
            own |= {"name": message.get("function"), "error": failure is not None}
            if failure is not None and not message.get("content"):
                own["content"] = first_of(failure, "message", "type")
        found.append(own)
    return found


def _call(call: object) -> object:
    name = part(call, "function")
    if not isinstance(call, dict) or not isinstance(name, str):
        return call
    return {"id": call.get("id"), "name": name, "arguments": call.get("arguments")}


def _prompt(sample: Mapping[str, object], unseen: Unseen) -> str | None:
    given = sample.get("input")
    if isinstance(given, list):
        asked = [unseen.text(part(m, "content")) for m in given if part(m, "role") == "user"]
        given = "\n\n".join(text for text in asked if text)
    return given if isinstance(given, str) and given.strip() else None


def _inputs(sample: Mapping[str, object]) -> tuple[Attachment, ...]:
    choices = sample.get("choices")
    if not isinstance(choices, list) or not choices:
        return ()
    text = "\n".join(f"{chr(65 + k)}) {readable(c) or ''}" for k, c in enumerate(choices[:26]))
    return (Attachment(name="Choices", text=text),)


def _output(sample: Mapping[str, object], unseen: Unseen) -> str | None:
    told = part(sample, "output", "completion")
    if isinstance(told, str) and told:
        return unseen.text(told, "assistant")
    choices = part(sample, "output", "choices")
    first = choices[0] if isinstance(choices, list) and choices else None
    message = part(first, "message")
    return unseen.message(message, "assistant").text if isinstance(message, dict) else None


def _ended(sample: Mapping[str, object]) -> str | None:
    """Return how a run ended before its end: with an error, or at a limit."""
    if sample.get("error") is not None:
        told = readable(part(sample, "error", "message")) or "no message"
        return f"the run ended with an error: {note(told, limit=300)}"
    if sample.get("limit") is not None:
        return f"the run ended at a limit: {note(readable(part(sample, 'limit', 'type'))) or '?'}"
    return None


def _status(sample: Mapping[str, object]) -> str | None:
    if sample.get("error") is not None:
        return "error"
    kind = note(readable(part(sample, "limit", "type")), limit=60)
    return f"{kind} limit" if kind else None


def _usage(sample: Mapping[str, object]) -> tuple[float | None, int | None]:
    """Return cost and tokens of all models; a cost without a price for each is missing."""
    models = as_object(sample.get("model_usage"), "model_usage")
    costs = [
        number(part(u, "total_cost"), "total_cost", maximum=MAX_COST_USD) for u in models.values()
    ]
    tokens = [whole(part(u, "total_tokens"), "total_tokens") for u in models.values()]
    known = [cost for cost in costs if cost is not None]
    total = math.fsum(known) if known and len(known) == len(costs) else None
    grader = part(sample, "role_usage", "grader", "total_cost")
    if total is not None and grader is not None:
        paid = number(grader, "role_usage.grader", maximum=MAX_COST_USD) or 0.0
        total = max(0.0, total - paid)
    counted = [count for count in tokens if count is not None]
    if total == 0 and any(counted):
        total = None  # a model without a price
    return total, sum(counted) if counted and len(counted) == len(tokens) else None


def _value(value: object) -> object:
    """Return a score without the letters of Inspect; NaN is no score."""
    if isinstance(value, str):
        return _LETTERS.get(value.strip(), value)
    return None if isinstance(value, float) and math.isnan(value) else value


def _edited(score: object) -> tuple[object, list[tuple[str, Mapping[str, object]]]]:
    """Return what the scorer gave, and what people made of it: author, and value with reason."""
    history = part(score, "history")
    edits: list[tuple[str, Mapping[str, object]]] = []
    machine = score
    for entry in history if isinstance(history, list) else []:
        author = note(readable(part(entry, "provenance", "author")), limit=80)
        if author is None:
            machine = entry
        elif part(entry, "value") not in (None, _UNCHANGED):
            reason = note(readable(part(entry, "provenance", "reason")))
            edits.append((author, {"value": part(entry, "value"), "reason": reason}))
    return machine, edits


def _criteria(sample: Mapping[str, object]) -> str | None:
    target = sample.get("target")
    if isinstance(target, list):
        target = "\n".join(readable(item) or "" for item in target)
    told = readable(target)
    return f"Target: {told}" if told and told.strip() else None


def _metadata(sample: Mapping[str, object], undated: bool) -> Iterator[tuple[str, object]]:
    own = sample.get("metadata")
    if isinstance(own, dict):
        yield from own.items()
    yield "scores", _theirs(sample.get("scores"))
    yield "model_usage", sample.get("model_usage")
    yield "working_time", sample.get("working_time")
    yield "error", part(sample, "error", "message")
    yield "limit", sample.get("limit")
    if undated:
        yield "started_at_of", "the eval, as the log dates no sample"


def _recognises(head: Head) -> bool:
    if head.kind == "zip":
        return any(
            (
                (HEADER in keys or START in keys)
                and (len(keys) == 1 or any(name.startswith(_BESIDE) for name in keys - {START}))
            )
            or any(_CHUNKED.fullmatch(name) for name in keys)
            for keys in head.keys
        )
    return head.kind == "object" and (
        head.any_has("eval", "samples") or head.any_has("eval", "plan", "status")
    )


INSPECT = Importer(
    name=SOURCE,
    title="an Inspect AI log",
    expects=f"a JSON object with 'eval' and 'samples', or an .eval archive; {CONVERT}",
    recognises=_recognises,
    read=read,
)
