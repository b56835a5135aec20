"""What a break of one rule is, and the rows that most of them change."""

from collections.abc import Callable
from typing import NamedTuple

from tests.reference_dataset.copies import Copy, Row


class Broken(NamedTuple):
    """What the validator must say; `also` names rules that cannot but break with it."""

    rule: str
    file: str
    line: int | None
    says: str
    also: tuple[str, ...] = ()


Break = Callable[[Copy], Broken]


def outcome_is(outcome: str) -> Callable[[Row, Row], bool]:
    return lambda trace, label: label["outcome"] == outcome


def complete(copy: Copy) -> tuple[Row, Row]:
    """Return a complete trace of ordinary length and cost in the middle of its file."""
    return copy.find(
        lambda t, label: label["outcome"] == "complete" and not t["trace_id"].endswith("001")
    )


def hallucinated(copy: Copy) -> tuple[Row, Row, Row]:
    """Return an invented trace, its label and the evidence that holds the key."""
    trace, label = copy.find(outcome_is("hallucinated"))
    return trace, label, next(item for item in label["evidence"] if "key" in item)
