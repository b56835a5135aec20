"""Which labelled traces a judge may be built on, tuned on, and tested on once."""

import hashlib

import pandas as pd

from calibration.store import Store

FEW_SHOTS, DEVELOPMENT, LOCKED_TEST = "few_shots", "development", "locked_test"

SPLITS = (FEW_SHOTS, DEVELOPMENT, LOCKED_TEST)

# The practice form teaches, and so it may teach a judge; of the exams only A may be tuned on.
SPLIT_OF_FORM = {"practice": FEW_SHOTS, "exam_a": DEVELOPMENT, "exam_b": LOCKED_TEST}

# Shares of the tasks of production, in the order of SPLITS.
SHARES = (0.2, 0.4, 0.4)


def split_of_task(task_key: str) -> str:
    """Return the split of a task of production, from a hash of its key alone.

    It depends on nothing else, so that all trials of a task are in one split, in every store and
    for ever: traces and labels that come later move nothing.

    Examples
    --------
    >>> split_of_task("tau/airline/7") == split_of_task("tau/airline/7")
    True
    """
    digest = hashlib.sha256(task_key.encode()).digest()
    place = int.from_bytes(digest[:8], "big") / 2**64
    if place < SHARES[0]:
        return FEW_SHOTS
    return DEVELOPMENT if place < SHARES[0] + SHARES[1] else LOCKED_TEST


def labelled_splits(store: Store) -> pd.DataFrame:
    """Return the split of every labelled trace: trace_id, task_key, batch_id, split.

    Traces of a form of the reference dataset have the split of the form, others that of their
    task. A task that stands in several forms, or in a form and in production, is in the split
    that is furthest from being learnt from. A trace labelled in several batches has a row each.
    """
    tasks = store.trace_frame().set_index("trace_id")["task_key"]
    rows = []
    for batch in store.batches():
        events = store.label_frame(batch.batch_id)
        form = str(batch.design.get("form")) if batch.design.get("form") else None
        for trace_id in events.loc[events["kind"] == "label", "trace_id"].unique():
            task = tasks.get(trace_id, trace_id)
            own = SPLIT_OF_FORM.get(form or "") or split_of_task(str(task))
            rows.append((str(trace_id), str(task), batch.batch_id, own))
    found = pd.DataFrame(rows, columns=["trace_id", "task_key", "batch_id", "split"])
    rank = found["split"].map(SPLITS.index)
    furthest = rank.groupby(found["task_key"]).transform("max")
    found["split"] = [SPLITS[int(place)] for place in furthest]
    return found.sort_values(["batch_id", "trace_id"]).reset_index(drop=True)
