"""The runs of a store as a source: its traces, what they say of operation, and verdicts."""

from collections.abc import Iterator
from contextlib import contextmanager

import pandas as pd

from calibration.runs.signals import VERDICTS
from calibration.runs.sources import Source, open_frame

READ = (
    "trace_id", "workflow", "cost_usd", "units", "started_at", "latency_s", "model", "status",
    "tool_calls", "tool_errors", "loop", "escalated", "feedback",
)  # fmt: skip


@contextmanager
def from_store(
    traces: pd.DataFrame, operation: pd.DataFrame, verdicts: pd.DataFrame | None = None
) -> Iterator[Source]:
    """Open traces of a store as `production_counts` reads them.

    The rate of a store comes from its labels, which may be shares of several classes; nothing may
    be read from the outcomes of this source, which are the first class throughout.

    Parameters
    ----------
    traces, operation : pandas.DataFrame
        Rows of `Store.trace_frame`, and `Store.operation_frame`.
    verdicts : pandas.DataFrame, optional
        `Store.verdict_frame` of a judge.

    Notes
    -----
    A column in which no trace says anything is left out, and so is the task where each trace has
    its own: what is not recorded is then named as such, and runs are called runs.
    """
    frame = traces.merge(operation, on="trace_id", how="left")
    found = frame[list(READ)].assign(outcome=VERDICTS[0])
    found["started_at"] = pd.to_datetime(frame["started_at"], utc=True)
    for name in ("escalated", "feedback"):
        found[name] = frame[name].where(frame[name].isna(), frame[name].astype("str"))
    if frame["task_key"].duplicated().any():
        found["task_id"] = frame["task_key"]
    # What gates read.
    found["loops"] = frame["loop"]
    if verdicts is not None:
        said = verdicts.set_index("trace_id")["outcome"]
        found["verdict"] = found["trace_id"].map(said).where(lambda name: name.isin(VERDICTS))
    columns = [str(name) for name in found if name != "cost_usd"]
    silent = [name for name in columns if found[name].isna().all()]
    if not (frame["tool_calls"] > 0).any():
        silent += ["tool_calls", "tool_errors"]
    with open_frame(found.drop(columns=sorted(set(silent))), name="the store") as source:
        yield source
