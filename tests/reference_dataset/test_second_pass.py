"""The rules on the second pass, and its agreement, on readings made for them."""

from typing import Any

import pytest

from calibration.taxonomy import default_taxonomy
from reference_dataset.loader import ReferenceSet, load_reference
from reference_dataset.records import CanonicalLabel, Row, SecondReading, Settlement
from reference_dataset.repeat_pass import repeat_pass
from reference_dataset.set_rules import (
    Rows,
    every_disagreement_is_settled,
    every_trace_was_read_again,
)
from tests.classes import OUTCOMES

TAXONOMY = default_taxonomy()
TRACE = {"trace_id": "research-001", "prompt": "Find it.", "response": "It is red."}
LABEL = {"trace_id": "research-001", "outcome": "complete", "difficulty": "clear"}


def reading(leads_to: str, **other: Any) -> dict[str, Any]:
    answers = TAXONOMY.answers_for(leads_to)
    made = {"trace_id": "research-001", "answers": answers, "outcome": leads_to}
    return made | {"step_id": "response", "quote": "It is red."} | other


def settlement(before: str, decision: str, **other: Any) -> dict[str, Any]:
    made = {"trace_id": "research-001", "before": before, "decision": decision, "why": "So."}
    return made | other


def said(
    rule: Any, readings: list[Any], settlements: list[Any], difficulty: str = "clear"
) -> list[str]:
    """Return what a rule says of one trace, its label and what is said of it a second time."""

    def listed(file: str, items: list[dict[str, Any]]) -> list[Row]:
        return [Row(file=file, line=line, data=data) for line, data in enumerate(items, 2)]

    rows = Rows(
        traces=listed("research.jsonl", [TRACE | {"inputs": [], "sub_goals": [], "steps": []}]),
        labels=listed("labels.jsonl", [LABEL | {"difficulty": difficulty}]),
        forms={},
        readings=listed("second_pass.jsonl", readings),
        settlements=listed("settlements.jsonl", settlements),
    )
    return [message for _, message in rule(rows)]


RIGHT, BLUE = reading("complete"), reading("complete", quote="It is blue.")


@pytest.mark.parametrize(
    ("readings", "settlements", "says"),
    [
        ([RIGHT], [], None),
        ([], [], "research-001 was not read again"),
        ([reading("complete", outcome="abandoned")], [], "lead to 'complete', not 'abandoned'"),
        ([reading("complete", answers={"output": "yes"})], [], "fabrication"),
        ([BLUE], [], "is not in 'response'"),
        ([BLUE], [settlement("complete", "trace_repaired")], None),  # the quote may be gone
        ([reading("complete", step_id="s1")], [], "is not in 's1'"),
        ([RIGHT, reading("complete", trace_id="x-2")], [], "x-2 is not a trace"),
    ],
)
def test_a_reading_that_breaks_a_rule_is_named(
    readings: list[Any], settlements: list[Any], says: str | None
) -> None:
    messages = said(every_trace_was_read_again, readings, settlements)
    assert len(messages) == (says is not None)
    assert says is None or says in messages[0]


@pytest.mark.parametrize(
    ("second", "before", "decision", "difficulty", "says"),
    [
        ("complete", "", "", "clear", None),
        ("complete", "complete", "trace_repaired", "clear", None),
        ("complete", "partial_plus", "label_changed", "clear", None),
        ("partial_plus", "complete", "kept", "boundary", None),
        ("partial_plus", "complete", "trace_repaired", "clear", None),
        ("partial_plus", "", "", "clear", "reading gave partial_plus, and nothing was decided"),
        ("partial_plus", "complete", "kept", "clear", "its difficulty is boundary"),
        ("complete", "complete", "kept", "clear", "nothing to keep"),
        ("partial_plus", "partial_plus", "kept", "clear", "its label was changed"),
        ("partial_plus", "complete", "label_changed", "clear", "was not changed to what"),
        ("partial_plus", "abandoned", "label_changed", "clear", "was not changed to what"),
        ("complete", "abandoned", "trace_repaired", "clear", "its label was changed"),
    ],
)
def test_what_is_not_settled_is_named(
    second: str, before: str, decision: str, difficulty: str, says: str | None
) -> None:
    settled = [settlement(before, decision)] if decision else []
    messages = said(every_disagreement_is_settled, [reading(second)], settled, difficulty)
    assert len(messages) == (says is not None)
    assert says is None or says in messages[0]


def test_a_settlement_of_what_was_not_read_again_is_named() -> None:
    stranger = settlement("complete", "kept", trace_id="research-002")
    (message,) = said(every_disagreement_is_settled, [RIGHT], [stranger])
    assert "research-002 was not read again" in message


def set_of(pairs: list[tuple[str, str]], settlements: dict[int, Settlement]) -> ReferenceSet:
    """Return a set without traces: the label now and the second reading of each."""
    ids = [f"research-{k:03d}" for k in range(len(pairs))]
    return ReferenceSet(
        traces={},
        labels={
            i: CanonicalLabel(
                trace_id=i, answers=TAXONOMY.answers_for(now), outcome=now, rationale="So.",
                evidence=(), difficulty="clear", nearest_wrong="complete", why_not="No.",
            )
            for i, (now, _) in zip(ids, pairs, strict=True)
        },
        forms={},
        second_pass={
            i: SecondReading(
                trace_id=i, answers=TAXONOMY.answers_for(second), outcome=second,
                step_id="response", quote="It.",
            )
            for i, (_, second) in zip(ids, pairs, strict=True)
        },
        settlements={ids[k]: settled for k, settled in settlements.items()},
    )  # fmt: skip


def test_agreement_counts_what_was_settled_later_as_disagreement() -> None:
    """Four traces, three agree; the fourth was changed to what the reading said.

    Alpha by hand: of 8 ratings 3 complete, 2 hallucinated, 2 abandoned and 1 partial_plus;
    observed disagreement 2/8, expected (64 - 9 - 4 - 4 - 1) / 56 = 46/56, alpha 1 - 14/46.
    AC1: shares 3/8, 1/8, 2/8, 2/8; p_e = (1 - 18/64) / 4 = 46/256; (3/4 - p_e) / (1 - p_e).
    """
    changed = Settlement(
        trace_id="research-003", before="complete", decision="label_changed", why="It is."
    )
    pairs = [(name, name) for name in ("complete", "hallucinated", "abandoned", "partial_plus")]
    found = repeat_pass(set_of(pairs, {3: changed}), TAXONOMY)
    assert found is not None
    assert found.n_traces == 4
    assert found.overall.percent_agreement.value == pytest.approx(3 / 4)
    assert found.overall.alpha.value == pytest.approx(1 - 14 / 46)
    assert found.overall.ac1.value == pytest.approx((3 / 4 - 46 / 256) / (1 - 46 / 256))
    assert found.table[OUTCOMES.index("complete")][OUTCOMES.index("partial_plus")] == 1
    assert sum(map(sum, found.table)) == 4
    (differs,) = found.disagreements
    assert (differs.before, differs.second, differs.now) == (
        "complete", "partial_plus", "partial_plus",
    )  # fmt: skip
    assert found.settled == {"label_changed": 1}
    # The two came together until the third question, which the abandoned and invented never saw.
    assert found.nodes["output"].percent_agreement.value == 1
    assert found.nodes["all_subgoals"].alpha.n == 2
    assert found.nodes["all_subgoals"].percent_agreement.value == pytest.approx(1 / 2)
    assert found.classes["hallucinated"].alpha.value == 1
    assert found.classes["complete"].percent_agreement.value == pytest.approx(3 / 4)


def test_what_nobody_decided_is_open_and_a_repair_in_agreement_is_counted() -> None:
    repaired = Settlement(
        trace_id="research-000", before="complete", decision="trace_repaired", why="A sum."
    )
    pairs = [("complete", "complete"), ("complete", "abandoned")]
    found = repeat_pass(set_of(pairs, {0: repaired}), TAXONOMY)
    assert found is not None
    assert (found.settled, found.repaired_agreed) == ({"open": 1}, 1)
    assert repeat_pass(set_of([], {}), TAXONOMY) is None


def test_the_published_set_was_read_again_in_full() -> None:
    dataset = load_reference()
    found = repeat_pass(dataset, TAXONOMY)
    assert found is not None
    assert found.n_traces == len(dataset.traces)
    assert "open" not in found.settled
    assert found.overall.alpha.value is not None
