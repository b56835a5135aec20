"""What leads decide on sentences for the handbook."""

from typing import Any

import pytest

from calibration.errors import InputError, LabelRefusedError
from tests.store.benches import Bench
from tests.store.builders import query, token


def decide(bench: Bench, **more: Any) -> None:
    values: dict[str, Any] = {
        "client_token": token(), "proposal_id": "p", "question": "output", "text": "Say no.",
        "trace_ids": ["t"], "status": "accepted", "decided_by": "lea",
    }  # fmt: skip
    bench.store.decide_proposal(**(values | more))


def test_an_accepted_sentence_is_in_the_handbook_until_it_is_declined(bench: Bench) -> None:
    decide(bench)
    decide(bench, proposal_id="q", text="Say yes.")
    assert bench.store.handbook_additions() == {"output": ["Say no.", "Say yes."]}
    decide(bench, status="declined", reason="It misleads.", client_token="d")
    decide(bench, status="declined", reason="It misleads.", client_token="d")
    assert bench.store.handbook_additions() == {"output": ["Say yes."]}
    frame = bench.store.proposal_frame()
    assert frame[["proposal_id", "status"]].to_numpy().tolist() == [
        ["p", "declined"], ["q", "accepted"],
    ]  # fmt: skip
    assert query(bench.store, "SELECT count(*) FROM proposal_event") == [(3,)]


def test_a_decision_without_what_it_needs_is_refused(bench: Bench) -> None:
    with pytest.raises(LabelRefusedError, match="needs its sentence"):
        decide(bench, text=" ")
    with pytest.raises(LabelRefusedError, match="needs a reason"):
        decide(bench, status="declined")
    with pytest.raises(InputError, match="status must be"):
        decide(bench, status="open")
    with pytest.raises(InputError, match="not in the tree"):
        decide(bench, question="mood")
    decide(bench, client_token="t")
    with pytest.raises(LabelRefusedError, match="another request"):
        decide(bench, client_token="t", proposal_id="other")
