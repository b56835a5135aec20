"""From a label that the page sends to the next trace it is given: the server's part, no browser.

Processor time of this process, for the machine may be busy with something else.
"""

import time
from pathlib import Path

from app.desk.data import desk_data
from app.desk.events import Receipts, apply_events
from benchmarks.labelling.report import Times
from calibration.records import LabelDraft
from calibration.store import Store
from tests.load.crash import build_team_store

ANSWERS = {"output": "no"}

# A third of the batch is labelled before: what is done must not make the next label slower.
DONE = 3


def path_times(folder: Path, *, items: int, people: int, n: int) -> tuple[Times, Times]:
    """Label `n` traces in turns; return the times of the queue alone, and of the whole path."""
    path = folder / f"path-{items}-{people}.duckdb"
    batch, names = build_team_store(path, people, items, steps=6)
    with Store.open(path) as store:
        ids = store.batch_items(batch)["trace_id"].tolist()
        store.import_labels(
            batch,
            [
                LabelDraft(
                    client_token=f"before-{k}", trace_id=trace_id,
                    reviewer_id=names[k % people], batch_id=batch, answers=ANSWERS,
                )
                for k, trace_id in enumerate(ids[: items // DONE])
            ],
        )  # fmt: skip
        reviewers = {r.reviewer_id: r for r in store.reviewers()}
        pages = [(store.acting_as(reviewers[name]), reviewers[name], Receipts()) for name in names]
        shown = [desk_data(own, person, batch, receipts) for own, person, receipts in pages]
        queue, whole = [], []
        for k in range(n):
            own, person, receipts = pages[k % people]
            first = shown[k % people]["queue"][0]["trace_id"]
            event = {"token": f"path-{k}", "kind": "label", "trace_id": first, "answers": ANSWERS}
            began = time.process_time()
            apply_events(own, person.reviewer_id, batch, [event], receipts)
            shown[k % people] = desk_data(own, person, batch, receipts)
            whole.append(1000 * (time.process_time() - began))
            if receipts.refused or receipts.trouble:
                raise RuntimeError(f"not stored: {receipts.refused} {receipts.trouble}")
            began = time.process_time()
            own.queue(person.reviewer_id, batch)
            queue.append(1000 * (time.process_time() - began))
    return Times.of("queue asked again", queue), Times.of("label to next trace", whole)
