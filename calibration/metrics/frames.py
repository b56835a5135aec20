"""Counts from a frame with one row a cell, as production counts them."""

from collections.abc import Mapping

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike

from calibration.metrics.arrays import FloatArray, IntArray
from calibration.metrics.counts import ABANDONED, RunCounts, checked, checked_credit, labels_of
from calibration.metrics.score import DEFAULT_CREDIT
from calibration.records import OUTCOMES

NEEDED = ("stratum", "weight", "outcome", "cost_known", "penalty_step", "n", "penalty", "score")
OTHER_SCORE = "score_"
BY = ("week", "workflow", "model")


def counts_of_frame(
    frame: pd.DataFrame,
    *,
    credit: ArrayLike = DEFAULT_CREDIT,
    own_credit: Mapping[str, ArrayLike] | None = None,
    rounded: bool = True,
    grouped_tasks: int | None = None,
) -> RunCounts:
    """Read counts from a frame with one row a cell.

    Parameters
    ----------
    frame : pandas.DataFrame
        Columns stratum, weight, outcome (position in OUTCOMES), cost_known, penalty_step (0: no
        penalty), n (runs), penalty and score (sums over them); optional: week, workflow, model,
        score_NAME for further credit tables, cost and cost_squared (sums over known costs), and
        for repeated tasks `task` and `tasks`: n and the sums are then of one task, and `tasks`
        says how many are like it.
    credit : array-like of float, shape (n_classes,)
        The credit that `score` was made with.
    own_credit : mapping of str to array-like, optional
        The credit of workflows with their own.
    rounded : bool, default True
        Whether a row holds penalties that differ within their step of 1/1024.
    grouped_tasks : int, optional
        Number of tasks, where `task` names random groups of tasks. Groups must mix tasks of all
        kinds: the variance between groups of one kind each is far too large.

    Returns
    -------
    RunCounts
        The runs of the frame.

    Raises
    ------
    ValueError
        If a column is missing, there is no row, a count is below 1, a weight is not positive, an
        outcome is unknown, or sums are impossible.

    Examples
    --------
    Three complete runs, one of them with a penalty of .5, and an abandoned one:

    >>> frame = pd.DataFrame(
    ...     {
    ...         "stratum": "all", "weight": 1.0, "outcome": [0, 0, 4], "cost_known": True,
    ...         "penalty_step": [0, 512, 0], "n": [2, 1, 1],
    ...         "penalty": [0.0, 0.5, 0.0], "score": [2.0, 0.5, 0.0],
    ...     }
    ... )
    >>> counts = counts_of_frame(frame)
    >>> counts.n, float(counts.score.sum())
    (4, 2.5)
    """
    missing = [name for name in NEEDED if name not in frame]
    if missing:
        raise ValueError(f"frame must have the columns {NEEDED!r}, {missing!r} are missing")
    if frame.empty:
        raise ValueError("frame must not be empty, got no cells")
    outcome = frame["outcome"].to_numpy(dtype=np.int64)
    score = frame["score"].to_numpy(dtype=np.float64)
    others = [
        name for name in map(str, frame.columns) if name.startswith(OTHER_SCORE) and len(name) > 6
    ]
    tasks = "task" in frame
    worth = checked_credit(credit)
    own = {name: checked_credit(table) for name, table in (own_credit or {}).items()}
    gross = _gross(frame, outcome, worth, own)
    return checked(
        RunCounts(
            shares=np.eye(len(OUTCOMES)),
            mix=outcome,
            stratum=labels_of(frame["stratum"]).codes + 1,
            runs=frame["n"].to_numpy(dtype=np.int64),
            like=frame["tasks"].to_numpy(dtype=np.int64)
            if tasks
            else np.ones(len(frame), dtype=np.int64),
            known=frame["cost_known"].to_numpy(dtype=np.bool_),
            weight=frame["weight"].to_numpy(dtype=np.float64),
            # A step that is not zero has a penalty, however small the sum of it may print.
            penalty=np.where(
                frame["penalty_step"] > 0, np.maximum(frame["penalty"], np.finfo(float).tiny), 0.0
            ),
            gross=gross,
            score=score,
            abandoned_score=np.where(outcome == ABANDONED, score, 0.0),
            credit=worth,
            own_credit={name: tuple(table.tolist()) for name, table in own.items()},
            other_scores={
                name.removeprefix(OTHER_SCORE): frame[name].to_numpy(dtype=np.float64)
                for name in others
            },
            task=frame["task"].to_numpy() if tasks else None,
            by={name: labels_of(frame[name]) for name in BY if name in frame},
            cost=frame["cost"].to_numpy(dtype=np.float64) if "cost" in frame else None,
            cost_squared=(
                frame["cost_squared"].to_numpy(dtype=np.float64)
                if "cost_squared" in frame
                else None
            ),
            rounded=rounded,
            grouped_tasks=grouped_tasks,
        )
    )


def _gross(
    frame: pd.DataFrame, outcome: IntArray, worth: FloatArray, own: Mapping[str, FloatArray]
) -> FloatArray:
    known = np.clip(outcome, 0, worth.size - 1)
    each = worth[known]
    for name, table in own.items():
        each = np.where((frame["workflow"] == name).to_numpy(), table[known], each)
    gross: FloatArray = each * frame["n"].to_numpy(dtype=np.float64)
    return gross
