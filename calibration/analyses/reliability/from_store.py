"""Repeated runs of a store as the table that reliability is measured on."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

import pandas as pd

from calibration.analyses.evidence.data import among
from calibration.analyses.reliability.runs import RepeatedRuns, read_runs
from calibration.errors import CalibrationError, InputError, MixedDataError
from calibration.records import NOT_PERTURBED, SEVERITIES, Violation
from calibration.runs.results import SetAsideRows
from calibration.store import Store, marked_violations
from calibration.tables.reading import ReadingOptions

COLUMNS = (
    "task_id", "run", "success", "confidence", "actions", "cost_usd", "latency_s", "api_calls",
    "n_errors", "call_latency_s", "perturbation", "violations", "analysed",
)  # fmt: skip

CONSENSUS, LABELS, RECORD = "consensus", "labels", "record"

# Agents that an error names.
MOST_NAMED = 5

# Why runs of a store are left out.
OPEN, UNLABELLED, JUDGED = "open_disagreement", "no_label", "verdict_only"


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredRuns:
    """Runs of a store whose success is known from people.

    `frame` : one row a run, with `COLUMNS`, and whence success and violations are known
    `n_open` : runs left out because their labels differ without adjudication
    `n_unlabelled` : runs left out because nobody has labelled them
    `n_judged` : those of them that have a verdict: a verdict is no success, for judges err
    `simulated` : whether the runs are; some and others are never taken together
    """

    frame: pd.DataFrame
    n_open: int
    n_unlabelled: int
    n_judged: int
    simulated: bool

    @property
    def left_out(self) -> tuple[SetAsideRows, ...]:
        """The runs left out, by reason."""
        reasons = (
            (OPEN, "its labels differ and nobody has adjudicated", self.n_open),
            (UNLABELLED, "nobody has labelled it", self.n_unlabelled - self.n_judged),
            (JUDGED, "it has a verdict but no label, and judges err", self.n_judged),
        )
        return tuple(SetAsideRows(reason=code, why=why, n=n) for code, why, n in reasons if n)


@dataclass(frozen=True, slots=True, kw_only=True)
class LabelledAgent:
    """A model and agent version (empty: not recorded), and how many of its runs are labelled."""

    model: str
    agent_version: str
    n_runs: int

    @property
    def name(self) -> str:
        """What it is called."""
        return _agent((self.model, self.agent_version))


def reliability_frame(
    store: Store, *, model: str | None = None, agent_version: str | None = None
) -> StoredRuns:
    """Return the runs of a store as a table for reliability, perturbed arms included.

    A run succeeds if its adjudicated class is complete; without adjudication, if that is what all
    blind labels of it say (column ``success_from``: consensus or labels). Violations are those that
    reviewers marked, of each constraint the worst, where they were asked for any; else those of the
    trace record (``violations_from``: labels, record, or empty). A run is analysed if somebody
    looked: its labels say what was broken, or its record has a list, however empty.

    Parameters
    ----------
    store : Store
    model, agent_version : str, optional
        Only runs of this agent. Runs of several agents are never taken together.

    Returns
    -------
    StoredRuns
        ``task_id`` is unique across sources, ``run`` the trace id. ``actions`` are the tools that
        the agent called, in order. ``api_calls`` is missing: a store does not count calls of the
        model. Units: USD and seconds.

    Raises
    ------
    InputError
        If no run is of the model or version.
    CalibrationError
        If no run is labelled, or the labelled runs are of several agents.
    MixedDataError
        If some of them are simulated and others are not.
    """
    runs = store.repeated_frame()
    for name, wanted in (("model", model), ("agent_version", agent_version)):
        if wanted is not None:
            runs = _of_one(runs, name, wanted)
    labels = _labels(store)
    labels = labels[among(labels["trace_id"], runs["trace_id"])]
    outcomes = _outcomes(store, labels)
    marked = _marked(labels)
    known = runs[runs["trace_id"].map(lambda t: outcomes.get(t, (None,))[0] is not None)]
    _check_alike(known, labels)
    lacking = runs.loc[~runs["trace_id"].isin(outcomes), "trace_id"]
    return StoredRuns(
        frame=_frame(known, outcomes, marked, store.taxonomy().success),
        n_open=sum(outcome is None for outcome, _ in outcomes.values()),
        n_unlabelled=len(lacking),
        n_judged=int(lacking.isin(_judged(store)).sum()),
        simulated=bool(known["simulated"].astype(bool).any()),
    )


def read_stored_runs(
    store: Store, *, model: str | None = None, agent_version: str | None = None
) -> RepeatedRuns:
    """Read the runs of a store as `read_runs` reads a table; those left out are set aside.

    Raises as `reliability_frame`.
    """
    stored = reliability_frame(store, model=model, agent_version=agent_version)
    # The runs are of one agent, each named by its trace.
    columns = {"trial": "run", "outcome": "success", "arm": None}
    runs = read_runs(stored.frame, ReadingOptions(columns=columns))
    n = Counter(stored.frame["success_from"])
    return replace(
        runs,
        reading=None,
        success_source=f"labels: {n[CONSENSUS]:,} adjudicated, {n[LABELS]:,} undisputed",
        simulated=stored.simulated,
        set_aside=stored.left_out,
    )


def labelled_agents(store: Store) -> tuple[LabelledAgent, ...]:
    """Return the agents of which runs are labelled, that with the most such runs first."""
    traces = store.production_traces(arms=True)
    known = {*_labels(store)["trace_id"], *store.consensus_frame()["trace_id"]}
    named = traces.loc[traces["trace_id"].isin(known), ["model", "agent_version"]].fillna("")
    counts = Counter(named.itertuples(index=False, name=None))
    return tuple(
        LabelledAgent(model=model, agent_version=version, n_runs=n)
        for (model, version), n in sorted(counts.items(), key=lambda of: (-of[1], of[0]))
    )


def outcomes_by_people(store: Store) -> dict[str, tuple[str | None, str]]:
    """Return the class of each labelled run by people, and from what: consensus or labels.

    As in `reliability_frame`; the class is None where labels differ and nobody has decided.
    """
    return _outcomes(store, _labels(store))


def _of_one(runs: pd.DataFrame, name: str, wanted: str) -> pd.DataFrame:
    """Return the runs of one model or version; an empty one is that which is not recorded."""
    values = runs[name].fillna("")
    if not (values == wanted).any():
        there = ", ".join(map(repr, sorted(set(values))[:MOST_NAMED])) or "no runs"
        raise InputError(f"no run of {name} {wanted!r:.80}; there are {there:.600}")
    return runs[values == wanted]


def _labels(store: Store) -> pd.DataFrame:
    """Return the blind labels of all production batches."""
    empty = pd.DataFrame(columns=["trace_id", "outcome", "violations", "simulated"])
    frames = [empty]
    for batch in store.batches():
        if batch.purpose == "production":
            given = store.label_frame(batch.batch_id)
            given = given[(given["kind"] == "label") & ~given["exposed"].astype(bool)]
            frames += [] if given.empty else [given]
    return pd.concat(frames[1:] or frames, ignore_index=True)


def _outcomes(store: Store, labels: pd.DataFrame) -> dict[str, tuple[str | None, str]]:
    """Return class and source by trace; no class where labels differ without adjudication."""
    found: dict[str, tuple[str | None, str]] = {}
    for trace_id, given in labels.groupby("trace_id")["outcome"]:
        said = sorted(set(given))
        found[str(trace_id)] = (said[0] if len(said) == 1 else None, LABELS)
    consensus = store.consensus_frame()
    for trace_id, outcome in zip(consensus["trace_id"], consensus["outcome"], strict=True):
        found[trace_id] = (outcome, CONSENSUS)
    return found


def _marked(labels: pd.DataFrame) -> dict[str, list[dict[str, Any]]]:
    """Return the marked violations by trace, of each constraint the worst; empty: none broken."""
    found: dict[str, dict[str, Violation]] = {}
    for trace_id, stored in zip(labels["trace_id"], labels["violations"], strict=True):
        marked = marked_violations(stored)
        if marked is None:
            continue
        worst = found.setdefault(trace_id, {})
        for one in marked:
            other = worst.setdefault(one.constraint, one)
            if SEVERITIES.index(one.severity) > SEVERITIES.index(other.severity):
                worst[one.constraint] = one
    return {trace_id: list(map(asdict, worst.values())) for trace_id, worst in found.items()}


def _judged(store: Store) -> set[str]:
    """Return the traces with a verdict of any judge."""
    frames = [store.verdict_frame(judge) for judge in store.judge_frame()["judge_id"]]
    return {str(trace_id) for frame in frames for trace_id in frame["trace_id"]}


def _check_alike(runs: pd.DataFrame, labels: pd.DataFrame) -> None:
    """Require labelled runs, of one agent, all simulated or none."""
    if runs.empty:
        raise CalibrationError("no run is labelled: label runs of tasks that were run repeatedly")
    agents = runs[["model", "agent_version"]].fillna("").drop_duplicates()
    if len(agents) > 1:
        few = agents.sort_values(["model", "agent_version"]).head(MOST_NAMED).to_numpy().tolist()
        raise CalibrationError(
            f"the labelled runs are of {len(agents)} agents, and no reliability is of several: "
            f"choose one by model and agent_version, of {', '.join(map(_agent, few)):.300}"
        )
    used = labels.loc[among(labels["trace_id"], runs["trace_id"]), "simulated"]
    if len({*runs["simulated"].astype(bool), *used.astype(bool)}) > 1:
        raise MixedDataError(
            "simulated and real rows would enter one number; keep the demo in a store of its own"
        )


def _agent(named: Sequence[str]) -> str:
    return " ".join(filter(None, named)) or "(no model)"


def _frame(
    runs: pd.DataFrame,
    outcomes: dict[str, tuple[str | None, str]],
    marked: dict[str, list[dict[str, Any]]],
    success: str,
) -> pd.DataFrame:
    ids = list(runs["trace_id"])
    record = [of if isinstance(of, list) else None for of in runs["violations"]]
    violations = [marked.get(t, of) for t, of in zip(ids, record, strict=True)]
    source = [
        LABELS if t in marked else "" if of is None else RECORD
        for t, of in zip(ids, record, strict=True)
    ]
    found = runs.assign(
        task_id=runs["task_key"],
        run=runs["trace_id"],
        success=[outcomes[t][0] == success for t in ids],
        api_calls=float("nan"),
        perturbation=runs["perturbation"].fillna(NOT_PERTURBED),
        violations=pd.Series(violations, index=runs.index, dtype=object),
        analysed=[of is not None for of in violations],
        success_from=[outcomes[t][1] for t in ids],
        violations_from=source,
    )
    for name in ("n_errors", "call_latency_s"):
        found[name] = found[name].astype("float64")
    columns = [*COLUMNS, "success_from", "violations_from", "model", "agent_version"]
    return found[columns].reset_index(drop=True)
