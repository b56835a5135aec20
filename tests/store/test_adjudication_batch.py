"""The batch in which a lead adjudicates: whose it is, what it serves, in which order."""

import pytest

from calibration.errors import InputError
from tests.store.benches import Bench
from tests.store.builders import COMPLETE


def test_traces_are_served_in_the_order_asked_for(bench: Bench) -> None:
    a, b, c, d, _ = bench.desk.traces
    batch = bench.serve(c, a)
    assert [t.trace_id for t in bench.store.queue("lea", batch, limit=1).items] == [c]
    assert bench.serve(c, d, b) == batch  # what is held comes first, a is gone, b and d are new
    queue = bench.store.queue("lea", batch, limit=5)
    assert [t.trace_id for t in queue.items] == [c, d, b]
    assert queue.total == 3


def test_what_is_decided_stays_in_the_batch(bench: Bench) -> None:
    a, b, c, *_ = bench.desk.traces
    bench.serve(a, b)
    bench.blind(COMPLETE, a)
    batch = bench.serve(c)
    queue = bench.store.queue("lea", batch, limit=5)
    assert ([t.trace_id for t in queue.items], queue.done, queue.total) == ([c], 1, 2)
    assert bench.serve(by="lea") == batch


def test_each_lead_has_a_batch_of_their_own(bench: Bench) -> None:
    assert bench.serve() != bench.serve(by="leo")
    owners = {b.reviewer_id: b.purpose for b in bench.store.batches() if b.reviewer_id}
    assert owners == {"lea": "adjudication", "leo": "adjudication"}


def test_only_leads_and_only_traces_of_the_batch(bench: Bench) -> None:
    with pytest.raises(InputError, match="'ann' is not a lead"):
        bench.serve(by="ann")
    with pytest.raises(InputError, match="'t-none' is not in batch"):
        bench.serve("t-none")
    own = bench.serve()
    with pytest.raises(InputError, match="no production batch"):
        bench.store.serve_adjudication(adjudicator="lea", batch_id=own, trace_ids=[bench.trace])


def test_without_traces_there_is_no_batch(bench: Bench) -> None:
    none = bench.store.serve_adjudication(
        adjudicator="lea", batch_id=bench.desk.batch, trace_ids=[]
    )
    assert none is None
    assert bench.store.adjudication_batch("lea", bench.desk.batch) is None
