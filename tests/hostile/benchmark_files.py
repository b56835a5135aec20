"""Files of tau-bench and tau2-bench, transcripts and result files, with one wrong part."""

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


def swe(**changes: Any) -> str:
    """Return the report of a run of SWE-bench."""
    ids = {"resolved_ids": ["a", "b", "c"], "unresolved_ids": ["d", "e"], "error_ids": ["f"]}
    return json.dumps(ids | changes)


def terminal(*trials: Any) -> str:
    """Return the results of a run of Terminal-Bench."""
    good = {"task_id": "t", "trial_name": "t.1", "is_resolved": True, "failure_mode": "unset"}
    return json.dumps({"results": [*(good | {"trial_name": f"t.{k}"} for k in range(5)), *trials]})


def harbor(**changes: Any) -> str:
    """Return the result of a trial of Harbor."""
    trial = {"task_name": "t", "trial_name": "t__1", "verifier_result": {"rewards": {"reward": 1}}}
    return json.dumps(trial | {"agent_result": {"cost_usd": 0.1}} | changes)


COUNTS = {"accuracy": 0.5, "correct_count": 1, "total_count": 2}
RESULTS: dict[str, str] = {
    "swe-ids-str": swe(resolved_ids="a"),
    "swe-ids-nested": swe(resolved_ids=[["a"], {"b": 1}, None, True, 1.5, "ok"]),
    "swe-ids-twice": swe(unresolved_ids=["a", "a"]),
    "swe-ids-long": swe(resolved_ids=["x" * 100_000, "y"]),
    "swe-ids-nul": swe(resolved_ids=["a\u0000b", "\ud800", "=1+1", "\u202e"]),
    "swe-unresolved-obj": swe(unresolved_ids={"a": 1}),
    "swe-many": swe(resolved_ids=[f"i{k}" for k in range(200_001)]),
    "swe-instance": json.dumps({"a": {"resolved": 1, "patch_exists": True}}),
    "bfcl-negative": lines(COUNTS | {"correct_count": -1, "total_count": 0}, {"id": "a"}),
    "bfcl-float": lines(COUNTS | {"correct_count": 1.0}, {"id": "a"}),
    "bfcl-true": lines(COUNTS | {"correct_count": True}, {"id": "a"}),
    "bfcl-huge": lines(COUNTS | {"correct_count": 10**30, "total_count": 10**30 + 1}, {"id": "a"}),
    "bfcl-ids": lines(COUNTS, {"id": ["a"]}),
    "bfcl-entry-list": lines(COUNTS, [1]),
    "bfcl-cut": lines(COUNTS) + '{"id": "a"',
    "mle-nums": json.dumps({"competition_reports": [1, None, "x"]}),
    "mle-medal": json.dumps({"competition_reports": [{"competition_id": "a", "any_medal": "no"}]}),
    "mle-medal-num": json.dumps({"competition_reports": [{"competition_id": 1, "any_medal": 3}]}),
    "tb-nums": terminal(1, None, []),
    "tb-mode-obj": terminal({"task_id": "x", "trial_name": "y", "failure_mode": {"a": 1}}),
    "tb-resolved-str": terminal({"task_id": "x", "trial_name": "y", "is_resolved": "soon"}),
    "tb-times": terminal({"task_id": "x", "trial_name": "y", "is_resolved": True,
                          "trial_started_at": "0001-01-01", "agent_started_at": 5,
                          "agent_ended_at": "9999-12-31T23:59:59"}),
    "harbor-cost-nan": harbor(agent_result={"cost_usd": float("nan")}),
    "harbor-cost-neg": harbor(agent_result={"cost_usd": -1}),
    "harbor-cost-huge": harbor(agent_result={"cost_usd": 10**400}),
    "harbor-reward-nan": harbor(verifier_result={"rewards": {"reward": float("nan")}}),
    "harbor-reward-huge": harbor(verifier_result={"rewards": {"reward": 10**400}}),
    "harbor-reward-obj": harbor(verifier_result={"rewards": {"reward": {"a": 1}}}),
    "harbor-rewards-list": harbor(verifier_result={"rewards": [1]}),
    "harbor-agent-str": harbor(agent_info="x", config=nested(10)),
    "harbor-deep": raw(json.loads(harbor()), "config", nested(3_000)),
    "harbor-key-twice": harbor()[:-1] + ', "task_name": "u"}',
    "results-two": swe() + swe(),
}  # fmt: skip
for kind, text in RESULTS.items():
    add("report", kind, text, name="m.r.json")
