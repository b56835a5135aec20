"""Draw an equal-probability batch of production traces and record how it was drawn."""

import hashlib
import json
import math

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from calibration.errors import CalibrationError, InputError
from calibration.records import REFERENCE_SOURCE
from calibration.store import Batch, Store

SELECTION = "traces chosen by filters"


def draw_batch(
    store: Store,
    *,
    n: int,
    seed: int,
    workflow: str | None = None,
    labels_wanted: int = 2,
    overlap: float = 1.0,
    by_workflow: bool = False,
    once: bool = False,
    token: str | None = None,
    certificate: str | None = None,
) -> Batch:
    """Draw `n` traces without replacement, each with the same probability.

    The order of the batch is random too, so the traces labelled by the time labelling stops
    are themselves a random sample. With `overlap` below one only a random share of the traces
    wants `labels_wanted` labels and the others one. With `by_workflow` every workflow gets its
    share of the draw, to the nearest trace, see `draw_evenly`. With `once` the same draw from the
    same traces is stored once, however often it is asked for. `certificate` (any or private) is
    what the batch demands of those who label it.

    Raises
    ------
    InputError
        If `n` is not positive, `seed` is negative, labels or overlap are none, or no trace has the
        workflow.
    CalibrationError
        If there are fewer than `n` traces.
    """
    if n < 1:
        raise InputError(f"n must be at least 1, got {n}")
    frame = drawn_from(store, seed=seed, workflow=workflow)
    if n > len(frame):
        raise CalibrationError(
            f"{n} traces were asked for and there are {len(frame)}; draw fewer or import more"
        )
    labels = labels_per_trace(n, labels_wanted=labels_wanted, overlap=overlap)
    ids = frame["trace_id"].to_numpy(dtype=str)
    design: dict[str, object] = {
        "kind": "random sample even over workflows" if by_workflow else "simple random sample",
        "n": n,
        **design_of(frame, seed=seed, workflow=workflow),
        "overlap": overlap,
    }
    if by_workflow:
        workflows = frame["workflow"].to_numpy(dtype=str)
        drawn = draw_evenly(ids, workflows, n=n, seed=seed)
        design["population_by_workflow"] = frame["workflow"].value_counts().to_dict()
    else:
        drawn = draw_ids(ids, n=n, seed=seed)
    return store.add_batch(
        purpose="production",
        trace_ids=drawn,
        inclusion_probability=n / len(ids),
        labels_wanted=max(labels),
        item_labels=shuffled_labels(labels, seed=seed),
        design=design,
        token=token_of(design, labels_wanted) if once else token,
        certificate=certificate,
    )


def drawn_from(store: Store, *, seed: int, workflow: str | None = None) -> pd.DataFrame:
    """Return the traces to draw from, in order of id.

    Raises
    ------
    InputError
        If `seed` is negative or no trace has the workflow.
    CalibrationError
        If the store holds no traces of production.
    """
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
    return frame.sort_values("trace_id").reset_index(drop=True)


def design_of(frame: pd.DataFrame, *, seed: int, workflow: str | None) -> dict[str, object]:
    """Return what `population` needs to find the traces again that a batch was drawn from."""
    return {
        "population": len(frame),
        "seed": seed,
        "workflow": workflow,
        "last_seq": int(frame["seq"].max()),
        "population_sha256": _sha256(frame["trace_id"].to_numpy(dtype=str)),
    }


def shuffled_labels(labels: list[int], *, seed: int) -> list[int]:
    """Return the labels wanted of each trace of a draw, in the order of the batch.

    A stream of its own: which traces are labelled twice does not depend on how they were drawn.
    """
    wanted: list[int] = np.random.default_rng([seed, 1]).permutation(labels).tolist()
    return wanted


def token_of(design: dict[str, object], labels_wanted: int) -> str:
    """Return the token under which the same draw from the same traces is stored once."""
    text = json.dumps([design, labels_wanted], sort_keys=True)
    return "draw-" + hashlib.sha256(text.encode()).hexdigest()


def production_traces(store: Store) -> pd.DataFrame:
    """Return every trace but those of the reference dataset.

    Reference traces are there to learn the taxonomy on; a rate over them would rank agents on
    cases that were written to be hard.
    """
    frame = store.trace_frame()
    result: pd.DataFrame = frame[frame["source"] != REFERENCE_SOURCE]
    return result


def is_sample(batch: Batch) -> bool:
    """Return whether a batch was drawn at random from production, and from which part of it."""
    return "last_seq" in batch.design


def draw_ids(ids: NDArray[np.str_], *, n: int, seed: int) -> list[str]:
    """Return `n` of the ids in random order, each with the same probability.

    The draw depends on which ids there are and not on their order.
    """
    drawn = np.random.default_rng(seed).choice(np.sort(ids), size=n, replace=False)
    return [str(trace_id) for trace_id in drawn]


def draw_evenly(
    ids: NDArray[np.str_], workflows: NDArray[np.str_], *, n: int, seed: int
) -> list[str]:
    """Return `n` of the ids in random order, spread evenly over workflows.

    A systematic draw with a random start through the traces in order of workflow, shuffled
    within: every trace has the same probability n / N, exactly, and a workflow with N_h traces
    gets n N_h / N of the draw, rounded down or up. So no weights are needed, and intervals made
    for a simple random sample are a little too wide rather than too narrow.

    References
    ----------
    Cochran (1977), Sampling Techniques, 3rd ed., chapter 8: systematic sampling.

    Examples
    --------
    >>> names = np.array(["a1", "a2", "a3", "a4", "b1", "b2"])
    >>> of = np.array(["a"] * 4 + ["b"] * 2)
    >>> sorted(name[0] for name in draw_evenly(names, of, n=3, seed=1))
    ['a', 'a', 'b']
    """
    rng = np.random.default_rng(seed)
    in_order = np.argsort(ids)
    shuffled = rng.permutation(in_order)
    lined_up = shuffled[np.argsort(workflows[shuffled], kind="stable")]
    places = np.floor((np.arange(n) + rng.random()) * (ids.size / n)).astype(np.int64)
    drawn = rng.permutation(ids[lined_up[np.minimum(places, ids.size - 1)]])
    return [str(trace_id) for trace_id in drawn]


def draw_within(
    stratum: NDArray[np.int64], drawn: NDArray[np.int64], *, seed: int
) -> NDArray[np.int64]:
    """Return places of traces, `drawn` of each stratum at random, in random order over all.

    Of the first m places a stratum holds m n_h / n on average, so whoever stops early has
    traces whose probabilities are still in the proportion they were drawn with.

    Examples
    --------
    >>> sorted(draw_within(np.array([0, 0, 0, 1]), np.array([3, 1]), seed=1).tolist())
    [0, 1, 2, 3]
    """
    rng = np.random.default_rng(seed)
    chosen = [
        rng.choice(np.flatnonzero(stratum == number), size=size, replace=False)
        for number, size in enumerate(drawn.tolist())
    ]
    return rng.permutation(np.concatenate(chosen)).astype(np.int64)


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
    if design.get("kind") == SELECTION:
        raise CalibrationError(
            f"batch {batch.batch_id!r} holds {SELECTION} and no random sample of production: no "
            "rate follows from it; name another batch, or draw one with "
            "`asr sample --n 40 --seed 1`"
        )
    if not is_sample(batch):
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
