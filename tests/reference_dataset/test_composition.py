"""The rules that hold once every family is there, on rows made for them."""

from itertools import cycle

import pytest

from reference_dataset.records import FAMILIES, Row
from reference_dataset.set_rules import CLASS_MIX, Rows, whole_set_is_composed

# 38, 22, 16, 14 and 10 of 100: the mix to the point.
MIX = [name for name, share in CLASS_MIX.items() for _ in range(round(100 * share))]


def made(outcomes: list[str], n_long: int, families: list[str]) -> Rows:
    """Return rows with these classes, `n_long` of them with 12 steps and the others with 4."""
    traces, labels = [], []
    for number, (outcome, family) in enumerate(zip(outcomes, cycle(families), strict=False)):
        trace_id = f"{family}-{number:03d}"
        steps: list[dict[str, str]] = [{}] * (12 if number < n_long else 4)
        data = {"trace_id": trace_id, "family": family, "steps": steps}
        traces.append(Row(file=f"{family}.jsonl", line=number, data=data))
        label = {"trace_id": trace_id, "outcome": outcome}
        labels.append(Row(file="labels.jsonl", line=number, data=label))
    return Rows(traces=traces, labels=labels, forms={})


def said(rows: Rows) -> list[str]:
    return [message for _, message in whole_set_is_composed(rows)]


def test_thirty_long_traces_are_needed_once_every_family_is_there() -> None:
    assert said(made(MIX, 30, list(FAMILIES))) == []
    too_few = "29 traces have 12 or more steps, at least 30 are needed"
    assert said(made(MIX, 29, list(FAMILIES))) == [too_few]
    assert said(made(["complete"] * 40, 0, list(FAMILIES)[:5])) == []


@pytest.mark.parametrize("moved", [4, 10])
def test_a_class_that_is_off_by_more_than_three_points_is_named(moved: int) -> None:
    named = said(made(["partial_plus"] * moved + MIX[moved:], 30, list(FAMILIES)))
    classes = [message.split(" are ")[1].split(",")[0] for message in named]
    assert classes == ["complete", "partial_plus"]
