"""Draw an equal-probability batch of production traces and record how it was drawn."""

import hashlib
import math

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from calibration.errors import CalibrationError, InputError
from calibration.records import REFERENCE_SOURCE
from calibration.store import Batch, Store


def draw_batch(
    store: Store,
    *,
    n: int,
    seed: int,
    workflow: str | None = None,
    labels_wanted: int = 2,
) -> Batch:
    """Draw `n` traces without replacement, each with the same probability.

    The order of the batch is random too, so the traces labelled by the time labelling stops
    are themselves a random sample.

    Raises
    ------
    InputError
        If `n` is not positive, `seed` is negative, or no trace has the workflow.
    CalibrationError
        If there are fewer than `n` traces.
    """
    if n < 1:
        raise InputError(f"n must be at least 1, got {n}")
    if seed < 0:
        raise InputError(f"seed must be 0 or more, got {seed}")
    frame = production_traces(store)
    if frame.empty:
        raise CalibrationError("the store holds no traces; `asr import FILES` brings some in")
    if workflow is not None:
        known = sorted(frame["workflow"].unique())
        frame = frame[frame["workflow"] == workflow]
        if frame.empty:
            raise InputError(f"no trace has the workflow {workflow!r}; there are {known}")
    if n > len(frame):
        raise CalibrationError(
            f"{n} traces were asked for and there are {len(frame)}; draw fewer or import more"
        )
    ids = np.sort(frame["trace_id"].to_numpy(dtype=str))
    design = {
        "kind": "simple random sample",
        "n": n,
        "population": len(ids),
        "seed": seed,
        "workflow": workflow,
        "last_seq": int(frame["seq"].max()),
        "population_sha256": _sha256(ids),
    }
    return store.add_batch(
        purpose="production",
        trace_ids=draw_ids(ids, n=n, seed=seed),
        inclusion_probability=n / len(ids),
        labels_wanted=labels_wanted,
        design=design,
    )


def production_traces(store: Store) -> pd.DataFrame:
    """Return every trace but those of the reference dataset.

    Reference traces are there to learn the taxonomy on; a rate over them would rank agents on
    cases that were written to be hard.
    """
    frame = store.trace_frame()
    result: pd.DataFrame = frame[frame["source"] != REFERENCE_SOURCE]
    return result


def draw_ids(ids: NDArray[np.str_], *, n: int, seed: int) -> list[str]:
    """Return `n` of the ids in random order, each with the same probability.

    The draw depends on which ids there are and not on their order.
    """
    drawn = np.random.default_rng(seed).choice(np.sort(ids), size=n, replace=False)
    return [str(trace_id) for trace_id in drawn]


def labels_per_trace(n: int, *, labels_wanted: int, overlap: float = 1.0) -> list[int]:
    """Return the labels that each of `n` traces gets: `labels_wanted` for a share, one for others.

    At least one trace is in the overlap when its share is not zero.

    Raises
    ------
    InputError
        If `labels_wanted` is below 1 or `overlap` is outside [0, 1].

    Examples
    --------
    >>> labels_per_trace(4, labels_wanted=2, overlap=0.25)
    [2, 1, 1, 1]
    """
    if labels_wanted < 1:
        raise InputError(f"labels wanted must be at least 1, got {labels_wanted}")
    if not 0 <= overlap <= 1:
        raise InputError(f"overlap must be a share in [0, 1], got {overlap}")
    shared = min(n, math.ceil(round(n * overlap, 6)))
    return [labels_wanted] * shared + [1] * (n - shared)


def population(batch: Batch, traces: pd.DataFrame) -> pd.DataFrame:
    """Return the traces that a production batch was drawn from, in order of id.

    Traces imported after the draw had no chance to be drawn and are not part of it. The order
    is that of the ids, so that a seeded resample does not depend on the order of import.

    Raises
    ------
    CalibrationError
        If the batch was not drawn by `draw_batch`, or if traces of its workflow were moved to
        another one since: what is left would be no random sample of anything.
    """
    design = batch.design
    if "last_seq" not in design:
        raise CalibrationError(
            f"batch {batch.batch_id!r} does not say what it was drawn from; "
            "draw one with `asr sample --n 40 --seed 1`"
        )
    chosen = traces[traces["seq"] <= design["last_seq"]]
    if design.get("workflow") is not None:
        chosen = chosen[chosen["workflow"] == design["workflow"]]
        if _sha256(np.sort(chosen["trace_id"].to_numpy(dtype=str))) != design["population_sha256"]:
            raise CalibrationError(
                f"traces were moved into or out of workflow {design['workflow']!r} after batch "
                f"{batch.batch_id!r} was drawn; import them with the workflow they had, or draw "
                "a new batch"
            )
    result: pd.DataFrame = chosen.sort_values("trace_id").reset_index(drop=True)
    return result


def _sha256(ids: NDArray[np.str_]) -> str:
    return hashlib.sha256("\n".join(ids).encode()).hexdigest()
