"""What the reference dataset holds: traces, canonical labels, forms; as read, line by line."""

from dataclasses import dataclass
from typing import Any

PRICE_IN, PRICE_OUT = 3e-6, 15e-6
FORMS = ("practice", "exam_a", "exam_b")
JUDGEMENT = "judgement"  # a difficulty
DECISIONS = ("label_changed", "trace_repaired", "kept")


@dataclass(frozen=True, slots=True, kw_only=True)
class Family:
    """One kind of task: how many traces, and what a unit may and does cost (USD)."""

    name: str
    n_traces: int
    ceiling_usd: float
    median_usd: float
    unit: str


FAMILIES = {
    family.name: family
    for family in (
        Family(name="research", n_traces=35, ceiling_usd=2.00, median_usd=1.40, unit="task"),
        Family(
            name="support_triage", n_traces=32, ceiling_usd=0.10, median_usd=0.06, unit="ticket"
        ),
        Family(
            name="code_review", n_traces=30, ceiling_usd=0.50, median_usd=0.32, unit="pull request"
        ),
        Family(
            name="data_extraction", n_traces=33, ceiling_usd=0.25, median_usd=0.18, unit="document"
        ),
        Family(
            name="content_drafting", n_traces=35, ceiling_usd=0.50, median_usd=0.31, unit="draft"
        ),
        Family(name="scheduling", n_traces=35, ceiling_usd=0.15, median_usd=0.09, unit="task"),
    )
}


@dataclass(frozen=True, slots=True, kw_only=True)
class CanonicalEvidence:
    """A quoted span and what it shows.

    For a fabrication `key` is the invented token of the quote and `absent_from` names the
    steps in which it does not occur.
    """

    step_id: str
    quote: str
    shows: str
    absent_from: tuple[str, ...] = ()
    key: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class CanonicalLabel:
    """The label that the reference dataset gives a trace, with its reasons.

    `overridden` holds the reason when a team has replaced the published label by its own. The label
    of a team's own set may have no evidence, `nearest_wrong` and `why_not` (then empty).
    """

    trace_id: str
    answers: dict[str, str]
    outcome: str
    rationale: str
    evidence: tuple[CanonicalEvidence, ...]
    difficulty: str
    nearest_wrong: str
    why_not: str
    overridden: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class SecondReading:
    """What the second pass said of a trace, which it read without the canonical label."""

    trace_id: str
    answers: dict[str, str]
    outcome: str
    step_id: str
    quote: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Settlement:
    """What was decided on a trace after the second pass, and why.

    `before` is the canonical class at the time of the second pass. A label was changed, the
    trace repaired so that it says what was meant, or the label kept and the trace shown as
    a boundary case.
    """

    trace_id: str
    before: str
    decision: str
    why: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """One line of a file of the dataset, and where it stands."""

    file: str
    line: int
    data: dict[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class Problem:
    """One broken rule: where, which rule, and what is wrong."""

    file: str
    line: int | None
    rule: str
    message: str

    def __str__(self) -> str:
        place = self.file if self.line is None else f"{self.file}, line {self.line}"
        return f"{place}: {self.rule}: {self.message}"
