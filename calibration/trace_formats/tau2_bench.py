"""Results of tau2-bench: one JSON object, or a directory with one file per simulation.

Times without an offset are in the zone of the settings (default UTC). The cost is ``agent_cost``
alone. The benchmark writes 0 when its price list lacks the model: a cost of 0 with counted tokens
is therefore missing, not free.
"""

from collections.abc import Iterator
from functools import partial
from pathlib import Path

from calibration.errors import TraceFormatError
from calibration.records import (
    NO_VERDICT,
    Attachment,
    ExpectedCall,
    SetAside,
    Trace,
    Verdict,
    trace_identity,
)
from calibration.taxonomy import Taxonomy
from calibration.trace_formats.base import (
    MAX_COST_USD,
    Head,
    Importer,
    ImportSettings,
    Item,
    Parsed,
    RunGrades,
    attempt,
    run_score,
)
from calibration.trace_formats.fields import (
    FieldError,
    as_list,
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
from calibration.trace_formats.messages import Clock, read_messages
from calibration.trace_formats.reliability_fields import benchmark_calls
from calibration.trace_formats.said import Unseen

SOURCE = "tau2"
INDEX = "results.json"
FOLDER = "simulations"

_SCENARIO = (
    ("reason_for_call", "Reason for the call"),
    ("known_info", "What the user knows"),
    ("unknown_info", "What the user does not know"),
    ("task_instructions", "How the user behaves"),
)

# The benchmark excludes these runs from its rates: the agent did not fail.
_NOT_GRADED = "infrastructure_error"


def read(path: Path, settings: ImportSettings) -> Iterator[Item]:
    """Yield the simulations of a file or a run directory, each with its grade."""
    index = path / INDEX if path.is_dir() else path
    source = JsonText(index)
    later: int | None = None
    found, shared = False, {}
    for key, at in source.members(source.start):
        if key != FOLDER:
            shared[key] = source.decode(at)[0]
        elif "info" in shared and "tasks" in shared:  # the usual order
            found = True
            yield from _simulations(source, at, _Context(settings, shared), index)
        else:
            later = at
    context = _Context(settings, shared)
    if later is not None:
        yield from _simulations(source, later, context, index)
    elif not found:
        yield from _folder(index, context, shared.get("simulation_index"))


def _simulations(source: JsonText, at: int, context: "_Context", index: Path) -> Iterator[Item]:
    if source.mark(at) == "[":
        for run, line in source.elements(at):
            yield attempt(index, line, partial(context.parse, run, line, index))


def _folder(index: Path, context: "_Context", listed: object) -> Iterator[Item]:
    files = sorted((index.parent / FOLDER).glob("*.json"))
    for file in files:
        try:
            source = JsonText(file)
            run, end = source.decode(source.start)
            line = source.line(source.start)
            source.finish(end)
        except TraceFormatError as error:
            yield SetAside(file=str(file), line=None, reason=str(error))
            continue
        yield attempt(file, line, partial(context.parse, run, line, file))
    there = {file.stem for file in files}
    for entry in listed if isinstance(listed, list) else []:
        name = readable(part(entry, "id")) or "?"
        if name not in there:
            reason = f"simulation {shown(name)} is in the index, but its file is missing"
            yield SetAside(file=str(index), line=None, reason=reason)


class _Context:
    """Data shared by the simulations of one run: policy, tasks, agent."""

    def __init__(self, settings: ImportSettings, shared: dict[str, object]) -> None:
        self.settings = settings
        info = shared.get("info")
        self.policy = readable(part(info, "environment_info", "policy"))
        self.domain = _name(part(info, "environment_info", "domain_name")) or SOURCE
        self.model = _name(part(info, "agent_info", "llm"))
        kind = _name(part(info, "agent_info", "implementation"))
        commit = _name(part(info, "git_commit"))
        self.version = "@".join(p for p in (kind, commit and commit[:12]) if p) or None
        self.llm_args = part(info, "agent_info", "llm_args")
        tasks = shared.get("tasks")
        self.tasks = {
            str(part(task, "id")): task for task in (tasks if isinstance(tasks, list) else [])
        }

        self._keys: dict[str, tuple[str | None, tuple[ExpectedCall, ...] | None]] = {}

    def parse(self, run: object, line: int, file: Path) -> Parsed:
        """Convert one simulation into a trace and its grade."""
        if not isinstance(run, dict):
            raise FieldError(f"is not a simulation: an object was expected, got {shown(run)}")
        run_id = required_id(run.get("id"), "id")
        task_id = required_id(run.get("task_id"), "task_id")
        if run.get("messages") is None and run.get("ticks") is not None:
            raise FieldError("is a voice run ('ticks' in place of 'messages'): not supported")
        zone = self.settings.zone
        started = moment(run.get("start_time"), "start_time", zone)
        unseen = Unseen()
        transcript = read_messages(
            as_list(run.get("messages"), "messages"),
            "messages",
            unseen,
            clock=Clock(start=started, zone=zone),
        )
        cost = number(run.get("agent_cost"), "agent_cost", maximum=MAX_COST_USD)
        unpriced = cost == 0 and bool(transcript.tokens)
        task = self.tasks.get(task_id)
        criteria, calls = self._key(task_id)
        policy = readable(run.get("policy")) or self.policy
        trial = whole(run.get("trial"), "trial", maximum=1_000_000) or 0
        trace = Trace(
            trace_id=trace_identity(SOURCE, run_id, trial),
            source=SOURCE,
            source_id=run_id,
            workflow=self.settings.workflow_for(self.domain) or self.domain,
            task_id=task_id,
            task_key=f"{SOURCE}/{self.domain}/{task_id}",
            trial=trial,
            prompt=_prompt(task, transcript.first_user, task_id),
            inputs=(Attachment(name="Agent policy", text=policy),) if policy else (),
            steps=transcript.steps,
            response=transcript.response,
            status=identifier(run.get("termination_reason"), "termination_reason"),
            model=self.model,
            agent_version=self.version,
            started_at=started,
            latency_s=number(run.get("duration"), "duration"),
            cost_usd=None if unpriced else cost,
            total_tokens=transcript.tokens,
            success_criteria=criteria,
            expected_calls=calls,
            metadata=unseen.metadata(self._metadata(run, task, unpriced)),
        )
        grades = _grades(run, trace.trace_id, self.settings.taxonomy)
        return Parsed(trace=trace, grades=grades, line=line, file=str(file))

    def _key(self, task_id: str) -> tuple[str | None, tuple[ExpectedCall, ...] | None]:
        """Return the criteria of a task and the calls that it expects, read once for its trials."""
        if task_id not in self._keys:
            task = self.tasks.get(task_id)
            actions = part(task, "evaluation_criteria", "actions")
            self._keys[task_id] = _criteria(task), benchmark_calls(actions, "arguments")
        return self._keys[task_id]

    def _metadata(
        self, run: dict[str, object], task: object, unpriced: bool
    ) -> Iterator[tuple[str, object]]:
        yield "seed", run.get("seed")
        yield "user_cost", run.get("user_cost")
        yield "end_time", run.get("end_time")
        yield "llm_args", self.llm_args
        yield "persona", part(task, "user_scenario", "persona")
        if task is None:
            yield "task_missing", True
        if unpriced:
            yield "cost_note", "agent_cost is 0 with tokens counted: the price was not known"


def _name(value: object) -> str | None:
    try:
        return identifier(value, "info")
    except FieldError:
        return None


def _prompt(task: object, first_user: str | None, task_id: str) -> str:
    """Return the scenario as plain text, otherwise the user's first message."""
    instructions = part(task, "user_scenario", "instructions")
    sections = []
    if isinstance(instructions, str):
        sections.append(instructions.strip())
    for key, title in _SCENARIO:
        text = readable(part(instructions, key))
        if text and text.strip():
            sections.append(f"{title}\n{text.strip()}")
    ticket = readable(part(task, "ticket"))
    if ticket and ticket.strip():
        sections.append(f"Ticket\n{ticket.strip()}")
    prompt = "\n\n".join(s for s in sections if s)
    return prompt or first_user or f"Task {task_id}; the file does not say what was asked."


def _criteria(task: object) -> str | None:
    """Return purpose and evaluation criteria, the key of the grade, as text."""
    lines = []
    purpose = readable(part(task, "description", "purpose"))
    if purpose:
        lines.append(f"Purpose: {purpose}")
    criteria = part(task, "evaluation_criteria")
    for key, value in criteria.items() if isinstance(criteria, dict) else ():
        if isinstance(value, list) and value:
            lines.append(f"{key}:")
            lines.extend(f"- {readable(item)}" for item in value)
        elif value not in (None, [], {}):
            lines.append(f"{key}: {readable(value)}")
    return "\n".join(lines) or None


def _grades(run: dict[str, object], trace_id: str, taxonomy: Taxonomy) -> RunGrades:
    reward = part(run, "reward_info", "reward")
    if reward is None:
        return RunGrades()
    breakdown = part(run, "reward_info", "reward_breakdown")
    details = []
    if isinstance(breakdown, dict):
        details = [f"{key} {shown(value)}" for key, value in breakdown.items()]
    judge = f"source:{SOURCE}"
    if run.get("termination_reason") == _NOT_GRADED:
        reason = f"{_NOT_GRADED}: the benchmark leaves this run out, reward {shown(reward)}"
        verdict = Verdict(
            judge_id=judge, trace_id=trace_id, outcome=NO_VERDICT, reason=note(reason)
        )
        return RunGrades(judge=judge, verdict=verdict)
    score = run_score("reward", reward, taxonomy, details=details)
    return RunGrades(judge=judge, scores=(score,))


def _recognises(head: Head) -> bool:
    if head.kind == "directory":
        return head.any_has("tasks")
    return head.kind == "object" and (
        head.any_has(FOLDER, "tasks")
        or head.any_has(FOLDER, "info")
        or head.any_has("simulation_index", "tasks")
    )


TAU2 = Importer(
    name=SOURCE,
    title="tau2-bench results",
    expects="a JSON object with 'tasks' and 'simulations', or its directory with results.json",
    recognises=_recognises,
    read=read,
)
