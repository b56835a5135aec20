"""Results of tau-bench: a JSON list of runs with ``traj``, ``reward`` and ``trial``.

The format has no run id, times or cost of the agent. ``info.user_cost`` is the cost of the
simulated user: it remains metadata and is never the cost of the run.
"""

import re
from collections.abc import Iterator
from functools import partial
from pathlib import Path

from calibration.records import Attachment, Trace, trace_identity
from calibration.taxonomy import Taxonomy
from calibration.trace_formats.base import (
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
    as_object,
    note,
    part,
    readable,
    required_id,
    shown,
    text,
    whole,
)
from calibration.trace_formats.json_scanner import JsonText
from calibration.trace_formats.messages import read_messages
from calibration.trace_formats.reliability_fields import benchmark_calls
from calibration.trace_formats.said import Unseen

SOURCE = "tau-bench"
_POLICY = re.compile(r"#\s*(airline|retail)\s+agent\s+policy", re.IGNORECASE)
_RUN_NAME = re.compile(r"(?:tool-calling|act|react|few-shot)-(?P<model>.+?)-[\d.]+_range_")


def read(path: Path, settings: ImportSettings) -> Iterator[Item]:
    """Yield the runs of one file, each with its grade."""
    source = JsonText(path)
    file = _File(path, settings, source)
    for run, line in source.elements(source.start):
        yield attempt(path, line, partial(file.parse, run, line))


class _File:
    """Data shared by the runs of one file."""

    def __init__(self, path: Path, settings: ImportSettings, source: JsonText) -> None:
        self.path = path
        self.settings = settings
        self.source = source
        self.domain = _domain(source.search(_POLICY) or "") or _stem_domain(path.stem)
        self.model = _model(path.stem)
        self._tasks: dict[str, object] | None = None

    def parse(self, run: object, line: int) -> Parsed:
        """Convert one run into a trace and its grade."""
        if not isinstance(run, dict):
            raise FieldError(f"is not a run: an object was expected, got {shown(run)}")
        task_id = required_id(run.get("task_id"), "task_id")
        trial = whole(run.get("trial"), "trial", maximum=1_000_000)
        if trial is None:
            raise FieldError("field 'trial': is missing")
        info = as_object(run.get("info"), "info")
        failure = readable(info.get("error"))
        messages = as_list(run.get("traj"), "traj") if failure is None else []
        policy, unseen = None, Unseen()
        if messages and part(messages[0], "role") == "system":
            policy = unseen.text(part(messages[0], "content"), "system")
            messages = messages[1:]
        transcript = read_messages(messages, "traj", unseen, is_error=_is_error)
        task = info.get("task") or (self.tasks().get(task_id) if failure is not None else None)
        domain = _domain(policy or "") or self.domain
        workflow = self.settings.workflow_for(domain)
        trace = Trace(
            trace_id=trace_identity(SOURCE, f"{self.path.stem}/{task_id}", trial),
            source=SOURCE,
            source_id=f"{self.path.stem}/{task_id}",
            workflow=workflow or domain,
            task_id=task_id,
            task_key=f"{SOURCE}/{domain}/{task_id}",
            trial=trial,
            prompt=_prompt(task, transcript.first_user, task_id),
            inputs=(Attachment(name="Agent policy", text=policy),) if policy else (),
            steps=transcript.steps,
            response=transcript.response,
            status="error" if failure is not None else None,
            model=self.model,
            success_criteria=_criteria(task),
            expected_calls=benchmark_calls(part(task, "actions"), "kwargs"),
            metadata=unseen.metadata(_metadata(info)),
        )
        grades = _grades(run, self.settings.taxonomy)
        return Parsed(trace=trace, grades=grades, line=line, file=str(self.path))

    def tasks(self) -> dict[str, object]:
        """Return tasks by id, from all runs: a failed run lacks its own."""
        if self._tasks is None:
            self._tasks = {}
            other = JsonText(self.path)
            for run, _ in other.elements(other.start):
                task = part(run, "info", "task")
                if isinstance(task, dict):
                    self._tasks.setdefault(str(part(run, "task_id")), task)
        return self._tasks


def _domain(policy: str) -> str | None:
    found = _POLICY.search(policy)
    return found.group(1).lower() if found else None


def _stem_domain(stem: str) -> str:
    return next((name for name in ("airline", "retail") if name in stem.lower()), SOURCE)


def _model(stem: str) -> str:
    """Return the model in a file name, by tau-bench's pattern or as a plain stem."""
    pattern = _RUN_NAME.match(stem)
    return pattern["model"] if pattern else re.sub(r"[-_](airline|retail)$", "", stem)


def _is_error(result: str) -> bool:
    return result.startswith("Error")


def _prompt(task: object, first_user: str | None, task_id: str) -> str:
    instruction = text(part(task, "instruction"), "info.task.instruction")
    if instruction and instruction.strip():
        return instruction
    return first_user or f"Task {task_id}; the file does not say what was asked."


def _criteria(task: object) -> str | None:
    """Return the expected actions and outputs, the key of the grade, as text."""
    actions, outputs = part(task, "actions"), part(task, "outputs")
    lines = []
    if isinstance(actions, list):
        lines.append("Expected actions:" if actions else "Expected actions: none")
        for index, action in enumerate(actions, start=1):
            name = readable(part(action, "name")) or "?"
            lines.append(f"{index}. {name} {readable(part(action, 'kwargs')) or ''}".rstrip())
    if isinstance(outputs, list) and outputs:
        lines.append("Expected in the answer: " + "; ".join(readable(o) or "" for o in outputs))
    return "\n".join(lines) or None


def _metadata(info: object) -> Iterator[tuple[str, object]]:
    yield "user_cost", part(info, "user_cost")
    yield "user_id", part(info, "task", "user_id")
    yield "reward_source", part(info, "source")
    yield "error", note(readable(part(info, "error")))
    yield "traceback", part(info, "traceback")


def _grades(run: object, taxonomy: Taxonomy) -> RunGrades:
    details = part(run, "info", "reward_info", "info")
    parts = []
    if isinstance(details, dict):
        for name in ("r_actions", "r_outputs"):
            if details.get(name) is not None:
                parts.append(f"{name} {shown(details[name])}")
    if part(run, "info", "error") is not None:
        parts.append("the run ended with an error of the harness")
    reward = part(run, "reward")
    if reward is None:
        return RunGrades()
    score = run_score("reward", reward, taxonomy, details=parts)
    return RunGrades(judge=f"source:{SOURCE}", scores=(score,))


def _recognises(head: Head) -> bool:
    return head.kind == "array" and (
        head.any_has("traj", "reward") or head.any_has("task_id", "reward", "info", "trial")
    )


TAU_BENCH = Importer(
    name=SOURCE,
    title="tau-bench results",
    expects="a JSON list of runs with 'task_id', 'reward', 'traj' and 'trial'",
    recognises=_recognises,
    read=read,
)
