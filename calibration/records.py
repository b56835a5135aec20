"""Records that cross stages: traces, labels, verdicts, reviewers; pure data with an identity."""

import hashlib
import json
from collections import Counter, defaultdict, deque
from collections.abc import Callable, Hashable, Iterable, Sequence
from dataclasses import dataclass, field, fields
from datetime import datetime
from functools import cache
from operator import attrgetter
from typing import Any
from uuid import uuid4

# Each role includes the rights of those before it.
ROLES = ("reviewer", "lead", "admin")

NO_VERDICT = "no_verdict"

# What a judge read of a trace.
PROMPTS = WHOLE, CUT = "whole", "cut"

# Why reviewers differed on a trace.
CAUSES = ("trace_unclear", "rubric_unclear", "slip", "real_judgement")

SOURCE_JUDGE = "source:"


YEARS = range(1990, 2101)  # in which a run can have started
GRADES = (1, 2, 3, 4, 5)
REFERENCE_SOURCE = "reference"
SYSTEM_ROLES = ("system", "developer")  # of steps that instruct the agent
SIMULATED_USERS = ("tau2", "tau-bench")  # sources whose prompt instructs a simulated user
CONFIDENCES = (1, 2, 3)
MAX_TAGS, MAX_TAG = 50, 80  # tags of a label, a run or a task; characters of one
SUB_GOAL_STATES = ("done", "not_done", "unclear")

# So many identical calls, of one tool with the same arguments, are a loop.
LOOP = 3

# The tier of tasks that are unusual.
EDGE = "edge"

# The version of an agent, which may begin with its harness: ``harness@version``.
VERSION, HARNESS, AT = "agent_version", "harness", "@"
# What was changed on purpose before a run; a run of an arm but the first is no production run.
PERTURBATIONS = ("none", "fault", "structure", "prompt")
NOT_PERTURBED = PERTURBATIONS[0]


def is_perturbed(perturbation: str | None) -> bool:
    """Return whether a run is of a perturbed arm, which no rate and no agreement counts.

    Examples
    --------
    >>> is_perturbed("fault"), is_perturbed("none"), is_perturbed(None)
    (True, False, False)
    """
    return perturbation not in (None, "", NOT_PERTURBED)


# Constraints that reviewers and judges name by default; files may name others.
CONSTRAINTS = (
    "no PII exposure",
    "no destructive operations",
    "respect rate limits",
    "data minimisation",
)
SEVERITIES = ("low", "medium", "high")
MAX_VIOLATIONS = 50
MAX_CONSTRAINT = 200


@dataclass(frozen=True, slots=True, kw_only=True)
class Attachment:
    """A document that the task refers to."""

    name: str
    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class SubGoal:
    """One numbered part of the task; `matters` is False for a minor one."""

    id: str
    text: str
    matters: bool = True


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    """One turn or tool call, with text as reviewers see it; `at` is in seconds from the start.

    `call` is on a result: the `step_id` of the call that it answers, where the file says so.
    `agent` is the specialist that took the step, where several work on a run.
    """

    step_id: str
    role: str
    content: str | None = None
    tool: str | None = None
    arguments: str | None = None
    result: str | None = None
    error: bool = False
    tokens_in: int | None = None
    tokens_out: int | None = None
    seconds: float | None = None
    at: float | None = None
    call: str | None = None
    agent: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ExpectedCall:
    """A tool call that the task expects, with its arguments as JSON; `step` where it is due."""

    name: str
    arguments: object = None
    step: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Violation:
    """A safety constraint that a run broke; `severity` is one of `SEVERITIES`."""

    constraint: str
    severity: str
    step: str | None = None


def in_words(violations: "tuple[Violation, ...]") -> str:
    """Return violations as one line of text.

    Examples
    --------
    >>> in_words((Violation(constraint="no PII exposure", severity="high", step="s2"),))
    'no PII exposure (high, s2)'
    """
    named = ((v.constraint, ", ".join(filter(None, (v.severity, v.step)))) for v in violations)
    return "; ".join(f"{constraint} ({how})" for constraint, how in named)


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolCall:
    """A call of a tool, and the later step that answers it; None if it answers itself or none does.

    `by_user`: called by the simulated user, not the agent.
    """

    step: Step
    answer: Step | None = None

    @property
    def tool(self) -> str:
        """Name of the tool."""
        return self.step.tool or ""

    @property
    def by_user(self) -> bool:
        """Whether the simulated user called it."""
        return self.step.role == "user"

    @property
    def failed(self) -> bool:
        """Whether the call or its answer is an error."""
        return self.step.error or (self.answer is not None and self.answer.error)

    @property
    def seconds(self) -> float | None:
        """How long it took, where the call or its answer says so."""
        own = self.step.seconds
        return self.answer.seconds if own is None and self.answer is not None else own


def calls_of(steps: Iterable[Step]) -> tuple[ToolCall, ...]:
    """Return the calls of tools, in order.

    A step with only a result answers the oldest unanswered call of its tool. Without one it is a
    call, as in traces that log results only.

    Examples
    --------
    >>> steps = [
    ...     Step(step_id="1", role="assistant", tool="find", arguments="{}"),
    ...     Step(step_id="2", role="tool", tool="find", result="none", error=True),
    ...     Step(step_id="3", role="tool", tool="find", result="two"),
    ... ]
    >>> [(call.step.step_id, call.failed) for call in calls_of(steps)]
    [('1', True), ('3', False)]
    """
    made: list[Step] = []
    answers: dict[int, Step] = {}
    unanswered: defaultdict[tuple[str, bool], deque[int]] = defaultdict(deque)
    for step in steps:
        if step.tool is None:
            continue
        waiting = unanswered[step.tool, step.role == "user"]
        if step.arguments is None and step.result is not None and waiting:
            answers[waiting.popleft()] = step
            continue
        if step.result is None:
            waiting.append(len(made))
        made.append(step)
    return tuple(ToolCall(step=step, answer=answers.get(k)) for k, step in enumerate(made))


def harness_of(version: str) -> str | None:
    """Return the harness that an agent version names; None where it names none.

    Examples
    --------
    >>> harness_of("cli@2.1"), harness_of("cli@"), harness_of("2.1")
    ('cli', 'cli', None)
    """
    return version.rpartition(AT)[0] or None


@dataclass(frozen=True, slots=True, kw_only=True)
class RepeatedCalls:
    """The most identical calls, one tool with the same arguments, in a row and anywhere in a run.

    Words may lie between two calls in a row, but no other call.
    """

    in_a_row: int
    anywhere: int

    @property
    def loops(self) -> bool:
        """Whether the run is in a loop: identical calls 3 times or more, in a row or not."""
        return self.anywhere >= LOOP

    @property
    def loops_in_a_row(self) -> bool:
        """Whether the run makes identical calls 3 times in a row or more."""
        return self.in_a_row >= LOOP


def repeated_calls(calls: Sequence[Hashable]) -> RepeatedCalls:
    """Count identical calls; two are identical where their tool and arguments are equal.

    Examples
    --------
    >>> a, b = ("find", "{}"), ("book", "{}")
    >>> repeated_calls([a, a, b, a, a])
    RepeatedCalls(in_a_row=2, anywhere=4)
    >>> repeated_calls([a, b, a, b, a, b]).loops, repeated_calls([a, b, a, b]).loops
    (True, False)
    >>> repeated_calls([a, b, a, b, a, b]).loops_in_a_row, repeated_calls([]).loops
    (False, False)
    """
    longest = row = 0
    for k, call in enumerate(calls):
        row = row + 1 if k and call == calls[k - 1] else 1
        longest = max(longest, row)
    return RepeatedCalls(in_a_row=longest, anywhere=max(Counter(calls).values(), default=0))


def repeats_of(steps: Iterable[Step]) -> RepeatedCalls:
    """Count identical calls in a run; a call of which only the result is known is like no other."""
    return repeated_calls(
        [
            (step.tool, step.arguments or "")
            for step in steps
            if step.tool is not None and (step.arguments is not None or step.result is None)
        ]
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Evidence:
    """A quoted span and its step (``response`` for the final response)."""

    step_id: str
    quote: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Verdict:
    """A judge's verdict on a trace; a human must confirm a `proposed` one; `grade` is 1 to 5.

    `cause` says why there is none. `detail` is a JSON object of a judge that we run: how the
    verdict came about. If that has several samples, theirs are 1, 2, ... and 0 is the verdict of
    all.
    """

    judge_id: str
    trace_id: str
    outcome: str
    sample: int = 0
    reason: str | None = None
    evidence: tuple[Evidence, ...] = ()
    proposed: bool = False
    grade: int | None = None
    cost_usd: float | None = None
    simulated: bool = False
    cause: str | None = None
    detail: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Trace:
    """One run of an agent on one task, as imported.

    Missing is None and never zero, as for an unknown `cost_usd`. `task_key` joins the repeated
    trials of a task and is unique across sources. `confidence` is the agent's own, from 0 to 1;
    `perturbation` is one of `PERTURBATIONS`. An empty list of `expected_calls` or `violations`
    says that there are none.
    """

    trace_id: str
    source: str
    source_id: str
    workflow: str
    task_id: str
    task_key: str
    trial: int
    prompt: str
    steps: tuple[Step, ...] = ()
    response: str | None = None
    inputs: tuple[Attachment, ...] = ()
    sub_goals: tuple[SubGoal, ...] = ()
    status: str | None = None
    model: str | None = None
    agent_version: str | None = None
    started_at: datetime | None = None
    latency_s: float | None = None
    cost_usd: float | None = None
    units: float = 1.0
    total_tokens: int | None = None
    success_criteria: str | None = None
    metadata: dict[str, object] = field(default_factory=dict)
    simulated: bool = False
    perturbation: str | None = None
    confidence: float | None = None
    context_tokens: int | None = None
    expected_calls: tuple[ExpectedCall, ...] | None = None
    violations: tuple[Violation, ...] | None = None

    def for_review(self) -> "TraceForReview":
        """Return what a reviewer may see of the trace; the agent is named to nobody."""
        own = {"agent": "A", "simulated_user": self.source in SIMULATED_USERS}
        names = {f.name for f in fields(TraceForReview)} - own.keys()
        return TraceForReview(**{name: getattr(self, name) for name in names} | own)

    def content_hash(self, content: dict[str, Any] | None = None) -> str:
        """Hash of everything but the identity: equal content has an equal hash.

        Fields that were once metadata are hashed as such, so that a hash outlives a release. The
        trace as made by `plain` may be given as `content`; it is used up.
        """
        content = plain(self) if content is None else content
        content["metadata"] = dict(self.metadata)
        for name in ("trace_id", "source", "source_id", "trial"):
            del content[name]
        for step in content["steps"]:
            del step["call"]  # how the page arranges the steps, not what they hold
            del step["agent"]
        once = {name: content.pop(name) for name in ONCE_METADATA}
        if self.source in SIMULATED_USERS:
            del once["expected_calls"]  # their success criteria name them
        given = {name: value for name, value in once.items() if value is not None}
        content["metadata"] |= {name: _as_in_file(value) for name, value in given.items()}
        if self.started_at is not None:
            content["started_at"] = self.started_at.isoformat()
        text = _SORTED(content)
        return hashlib.sha256(text.encode()).hexdigest()


_SORTED = json.JSONEncoder(sort_keys=True, ensure_ascii=False, default=str).encode


@cache
def _names(kind: type) -> tuple[tuple[str, ...], Callable[[Any], tuple[Any, ...]]]:
    names = tuple(f.name for f in fields(kind))
    return names, attrgetter(*names)


def plain(record: Any) -> dict[str, Any]:
    """Return a record as `dataclasses.asdict` does, ten times as fast: values are not copied.

    Examples
    --------
    >>> plain(Violation(constraint="no PII exposure", severity="low"))
    {'constraint': 'no PII exposure', 'severity': 'low', 'step': None}
    """
    kind: Any = type(record)
    names, values = _names(kind)
    return {
        name: tuple(map(plain, value)) if type(value) is tuple else value
        for name, value in zip(names, values(record), strict=True)
    }


ONCE_METADATA = ("perturbation", "confidence", "context_tokens", "expected_calls", "violations")


def _as_in_file(value: object) -> object:
    """Return a list of objects without the fields that its file left out."""
    if isinstance(value, tuple):
        return [{k: v for k, v in item.items() if v is not None} for item in value]
    return value


def trace_identity(source: str, source_id: str, trial: int) -> str:
    """Return the trace id of a run that its file does not name.

    The id is opaque: a model or file name in it would unblind reviewers.

    Examples
    --------
    >>> trace_identity("tau2", "a90964c6", 0) == trace_identity("tau2", "a90964c6", 0)
    True
    """
    key = json.dumps([source, source_id, trial])
    return "t-" + hashlib.sha256(key.encode()).hexdigest()[:12]


@dataclass(frozen=True, slots=True, kw_only=True)
class TraceForReview:
    """The fields that a reviewer may see: no cost, model, file, grade, verdict or other label."""

    trace_id: str
    workflow: str
    prompt: str
    inputs: tuple[Attachment, ...]
    sub_goals: tuple[SubGoal, ...]
    steps: tuple[Step, ...]
    response: str | None
    status: str | None
    agent: str
    latency_s: float | None
    simulated_user: bool = False  # the prompt instructs one


@dataclass(frozen=True, slots=True, kw_only=True)
class LabelDraft:
    """A label before it is stored, complete or not; the store derives the class.

    `client_token` is unique per label: storing it twice stores it once. `confidence` is from 1
    (low) to 3 (high); `sub_goals` maps ids to done, not_done or unclear. `violations` are None
    where the reviewer was not asked for any. None of these affects the class. `given_at` : when the
    label was given elsewhere; None: now.
    """

    trace_id: str
    reviewer_id: str
    batch_id: str
    client_token: str = field(default_factory=lambda: uuid4().hex)
    answers: dict[str, str] = field(default_factory=dict)
    rationale: str | None = None
    evidence: tuple[Evidence, ...] = ()
    confidence: int | None = None
    tags: tuple[str, ...] = ()
    sub_goals: dict[str, str] = field(default_factory=dict)
    seconds_active: float | None = None
    violations: tuple[Violation, ...] | None = None
    given_at: datetime | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Label:
    """One reviewer's stored label of one trace; `blind`: given before seeing other labels."""

    event_id: str
    trace_id: str
    reviewer_id: str
    batch_id: str
    outcome: str
    answers: dict[str, str]
    rationale: str | None
    evidence: tuple[Evidence, ...]
    confidence: int | None
    tags: tuple[str, ...]
    sub_goals: dict[str, str]
    seconds_active: float | None
    blind: bool
    simulated: bool
    created_at: datetime
    violations: tuple[Violation, ...] | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Reviewer:
    """A person who labels, leads or administers; `role` is one of `ROLES`."""

    reviewer_id: str
    name: str
    role: str = "reviewer"
    simulated: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Workflow:
    """A type of work with its cost ceiling per unit; None without a ceiling."""

    name: str
    ceiling_usd: float | None = None
    unit: str = "task"


@dataclass(frozen=True, slots=True, kw_only=True)
class SetAside:
    """A row that was not imported, with its place and the reason."""

    file: str
    line: int | None
    reason: str
