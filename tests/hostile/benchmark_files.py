"""Files of tau-bench and tau2-bench, and transcripts, with one wrong part."""

import json
from typing import Any

from tests.hostile.case import REFUSED, add, lines, nested, raw

MESSAGES: list[dict[str, Any]] = [
    {"role": "system", "content": "# Airline agent policy"},
    {"role": "user", "content": "Refund."},
    {"role": "assistant", "content": "Done."},
]


def tau(task: object = 1, /, **changes: Any) -> dict[str, Any]:
    """Return a run of tau-bench."""
    info = {"task": {"instruction": "Refund.", "actions": []}}
    return {"task_id": task, "reward": 1.0, "trial": 0, "info": info, "traj": MESSAGES} | changes


def _tau(kind: str, rows: int | None = 2, **changes: Any) -> None:
    add("import", kind, json.dumps([tau("good"), tau(**changes)]), name="tau.json", rows=rows)


def _said(**changes: Any) -> list[dict[str, Any]]:
    return [*MESSAGES, {"role": "assistant", "content": "x"} | changes]


CALL = {"id": "c", "type": "function", "function": None}
WRONG_TAU: dict[str, dict[str, Any]] = {
    "traj-null": {"traj": None},
    "traj-str": {"traj": "said"},
    "traj-nums": {"traj": [1, 2]},
    "role-list": {"traj": _said(role=["a"])},
    "content-int": {"traj": _said(content=3)},
    "toolcalls-str": {"traj": _said(tool_calls="call")},
    "toolcalls-null-func": {"traj": _said(tool_calls=[CALL])},
    "reward-str": {"reward": "one"},
    "reward-list": {"reward": [1]},
    "reward-2": {"reward": 2},
    "info-str": {"info": "x"},
    "task-str": {"info": {"task": "x"}},
    "trial-neg": {"trial": -1},
    "trial-huge": {"trial": 10**30},
    "taskid-obj": {"task_id": {"a": 1}},
    "taskid-long": {"task_id": "t" * 5_000},
}
for kind, changes in WRONG_TAU.items():
    _tau(kind, **changes)
for kind, depth in (("tau", 900), ("tau-600", 600), ("tau-3000", 3_000)):
    deep = raw(tau("deep"), "info", f'{{"task": {nested(depth, kind="{}")}}}')
    add("import", kind, f"[{json.dumps(tau('good'))}, {deep}]", name="tau.json")
TWO = json.dumps([tau("a")])
add("import", "tau-two-lists", TWO + "\n" + json.dumps([tau("b")]), name="tau.json", codes=REFUSED)


def tau2(*runs: Any, **changes: Any) -> dict[str, Any]:
    """Return a file of tau2-bench."""
    task = {"id": "1", "user_scenario": {"instructions": "Refund."}}
    info = {"environment_info": {"domain_name": "airline"}, "agent_info": {"llm": "m"}}
    return {"info": info, "tasks": [task], "simulations": list(runs)} | changes


def simulation(run_id: object = "s-good", /, **changes: Any) -> dict[str, Any]:
    """Return a simulation of tau2-bench."""
    run = {"id": run_id, "task_id": "1", "trial": 0, "messages": MESSAGES, "agent_cost": 0.1}
    times = {"start_time": "2026-03-01T09:00:00", "duration": 3.0, "reward_info": {"reward": 1}}
    return run | times | changes


WRONG_RUNS: dict[str, dict[str, Any]] = {
    "msgs-null": {"messages": None},
    "msgs-str": {"messages": "said"},
    "ticks": {"messages": None, "ticks": [1]},
    "time-bad": {"start_time": "yesterday"},
    "time-y1": {"start_time": "0001-01-01T00:00:00"},
    "time-y9999": {"start_time": "9999-12-31T23:59:59"},
    "time-int": {"start_time": 1_700_000_000},
    "id-null": {"id": None},
    "id-path": {"id": "../../../etc/passwd"},
    "task-missing": {"task_id": "no-such-task"},
    "reward-bd": {"reward_info": {"reward": 1, "reward_breakdown": "x"}},
    "reward-nan": {"reward_info": {"reward": float("nan")}},
    "dur-huge": {"duration": 1e300},
    "cost-neg": {"agent_cost": -1},
    "cost-str": {"agent_cost": "cheap"},
    "reason-obj": {"termination_reason": {"a": 1}},
}
for kind, changes in WRONG_RUNS.items():
    add("import", kind, json.dumps(tau2(simulation(), simulation(kind, **changes))),
        name="tau2.json", rows=2)  # fmt: skip
WRONG_FILES: dict[str, dict[str, Any]] = {
    "sims-null": {"simulations": None},
    "sims-obj": {"simulations": {"a": 1}},
    "tasks-str": {"tasks": "x"},
    "tasks-nums": {"tasks": [1, 2]},
    "info-list": {"info": [1]},
    "idx": {"simulations": None, "simulation_index": [1, {"id": None}, {"id": "x"}]},
}
for kind, changes in WRONG_FILES.items():
    add("import", kind, json.dumps(tau2(simulation("s1"), **changes)), name="tau2.json")
DEEP = json.dumps(tau2(simulation("s2"))).replace('"llm": "m"', f'"llm_args": {nested(900)}')
add("import", "tau2-info", DEEP, name="tau2.json")
ONE = json.dumps(tau2(simulation("s3")))
add("import", "tau2-two-objects", ONE + ONE.replace("s3", "s4"), name="t.json", codes=REFUSED)
KEYS = ONE[:-1] + f', "simulations": [{json.dumps(simulation("s5"))}]}}'
add("import", "tau2-two-sims-keys", KEYS, name="tau2.json", codes=REFUSED)
add("import", "tau2dir", {
    "results.json": json.dumps({**tau2(), "simulations": None, "simulation_index": [{"id": "x"}]}),
    "simulations/a.json": json.dumps(simulation("s6")),
    "simulations/b.json": "[",
    "simulations/c.json": json.dumps(simulation("s7")) * 2,
}, name="run")  # fmt: skip


def spoken(trial: object = 1, /, **changes: Any) -> dict[str, Any]:
    """Return a transcript."""
    return {"task_id": "t", "trial_id": trial, "messages": MESSAGES} | changes


WRONG_TRANSCRIPTS: dict[str, dict[str, Any]] = {
    "msgs-empty": {"messages": []},
    "msgs-bad": {"messages": [1, None]},
    "tc-bad": {"tool_calls": [1]},
    "tc-bad2": {"tool_calls": [{"name": None}]},
    "grading-str": {"grading": "good"},
    "grade-9": {"grading": {"grade": 9}},
    "reward-bool": {"grading": {"reward": True}},
    "result-str": {"result": "Done."},
    "trial-str": {"trial_id": "run-3"},
    "trial-list": {"trial_id": [1]},
}
for number, (kind, changes) in enumerate(WRONG_TRANSCRIPTS.items()):
    add("import", kind, lines(spoken(), spoken(**{"trial_id": number + 2} | changes)),
        name="spoken.jsonl", rows=2)  # fmt: skip
