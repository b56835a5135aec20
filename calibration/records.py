"""The words of the trade: traces, labels, verdicts, reviewers.

Everything that crosses a stage is one of these records. They hold what was read or decided
and compute nothing but their own identity.
"""

import hashlib
import json
from dataclasses import asdict, dataclass, field
from datetime import datetime
from uuid import uuid4

# Each may do what those before it may.
ROLES = ("reviewer", "lead", "admin")

NO_VERDICT = "no_verdict"

# Why reviewers differed on a trace.
CAUSES = ("trace_unclear", "rubric_unclear", "slip", "real_judgement")

SOURCE_JUDGE = "source:"

GRADES = (1, 2, 3, 4, 5)

REFERENCE_SOURCE = "reference"


CONFIDENCES = (1, 2, 3)

MAX_TAGS = 8

MAX_TAG = 40

SUB_GOAL_STATES = ("done", "not_done", "unclear")


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
    """One turn or tool call of a transcript.

    `arguments` and `result` are strings, exactly as the reviewer sees them. `at` counts
    seconds from the start of the run.
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


@dataclass(frozen=True, slots=True, kw_only=True)
class Evidence:
    """A quoted span and the step it stands in (``response`` for the final response)."""

    step_id: str
    quote: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Verdict:
    """What a judge says about one trace; `proposed` marks a class that a human must confirm.

    `grade` is the grade from 1 to 5 that the class was taken from, where the judge gave one.
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


@dataclass(frozen=True, slots=True, kw_only=True)
class Trace:
    """One run of an agent on one task, as imported.

    Missing is None and never zero: `cost_usd` None means that the file does not say what the
    run cost. `task_key` joins the repeated trials of a task and is unique across sources.
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

    def content_hash(self) -> str:
        """Hash of everything but the identity: equal content has an equal hash."""
        content = asdict(self)
        for name in ("trace_id", "source", "source_id", "trial"):
            del content[name]
        if self.started_at is not None:
            content["started_at"] = self.started_at.isoformat()
        text = json.dumps(content, sort_keys=True, ensure_ascii=False, default=str)
        return hashlib.sha256(text.encode()).hexdigest()


def trace_identity(source: str, source_id: str, trial: int) -> str:
    """Return the trace id of a run that its file does not name.

    The id is opaque on purpose: reviewers see it, and a model or file name in it would tell
    them what they must not know.

    Examples
    --------
    >>> trace_identity("tau2", "a90964c6", 0) == trace_identity("tau2", "a90964c6", 0)
    True
    >>> len(trace_identity("tau2", "a90964c6", 0))
    14
    """
    key = json.dumps([source, source_id, trial])
    return "t-" + hashlib.sha256(key.encode()).hexdigest()[:12]


@dataclass(frozen=True, slots=True, kw_only=True)
class TraceForReview:
    """What a labelling reviewer may see of a trace: an allow-list, complete.

    It has no field for cost, model, file, grade, verdict, other labels or free metadata.
    """

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


@dataclass(frozen=True, slots=True, kw_only=True)
class LabelDraft:
    """A label on its way to the store, complete or not; the store derives the class.

    `client_token` is made once by whoever creates the label: storing it twice stores it once.
    `confidence` goes from 1 (low) to 3 (high); `sub_goals` says by the id of a sub-goal whether
    it is done, not_done or unclear. Neither moves the class.
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


@dataclass(frozen=True, slots=True, kw_only=True)
class Label:
    """One reviewer's label of one trace as stored; `outcome` follows from the answers.

    `blind`: given before the reviewer was shown what others said of the trace.
    """

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


@dataclass(frozen=True, slots=True, kw_only=True)
class Reviewer:
    """A person who labels, leads or administers; `role` is one of `ROLES`."""

    reviewer_id: str
    name: str
    role: str = "reviewer"
    simulated: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Workflow:
    """A kind of task with its cost ceiling per unit; None: no ceiling was set."""

    name: str
    ceiling_usd: float | None = None
    unit: str = "task"


@dataclass(frozen=True, slots=True, kw_only=True)
class SetAside:
    """A row that was not taken in, where it stands and why."""

    file: str
    line: int | None
    reason: str
