"""Trace files of any size in the shape of tau2-bench results, and as JSON lines."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

WORDS = (
    "order flight refund the customer of a seat policy booking total account change to and is "
    "for please confirm number date passenger gate bag fee cannot status your with on"
).split()
TASKS, MESSAGES = 50, 20


def _text(rng: np.random.Generator, words: int) -> str:
    return " ".join(WORDS[k] for k in rng.integers(0, len(WORDS), words))


def _messages(rng: np.random.Generator) -> list[dict[str, Any]]:
    """Return a talk of a user and an agent who calls a tool in every fourth message."""
    found: list[dict[str, Any]] = []
    for k in range(MESSAGES // 4):
        found.append({"role": "user", "content": _text(rng, 30)})
        arguments = {"id": int(rng.integers(1_000_000)), "why": _text(rng, 5)}
        call = {"id": f"c{k}", "name": f"tool_{k % 5}", "arguments": arguments}
        usage = {"completion_tokens": 80, "prompt_tokens": 4_000 + k}
        found.append({"role": "assistant", "content": None, "tool_calls": [call], "usage": usage})
        result = json.dumps({"rows": [_text(rng, 20) for _ in range(12)]})
        found.append({"role": "tool", "id": f"c{k}", "content": result, "error": False})
        found.append({"role": "assistant", "content": _text(rng, 60), "usage": usage})
    return found


def _runs(seed: int) -> Iterator[tuple[int, list[dict[str, Any]]]]:
    number = 0
    while True:
        yield number, _messages(np.random.default_rng([seed, number]))
        number += 1


def write_tau2(path: Path, megabytes: float, seed: int) -> Path:
    """Write one JSON object with tasks, a policy and simulations, as tau2-bench does."""
    rng = np.random.default_rng(seed)
    actions = [
        {"name": f"tool_{k}", "arguments": {"id": k}, "requestor": "assistant"} for k in "ab"
    ]
    tasks = [
        {
            "id": str(k),
            "user_scenario": {"instructions": {"reason_for_call": _text(rng, 40)}},
            "evaluation_criteria": {"actions": actions, "nl_assertions": [_text(rng, 12)]},
        }
        for k in range(TASKS)
    ]
    info = {
        "agent_info": {"llm": "model-a", "implementation": "llm_agent"},
        "environment_info": {"domain_name": "airline", "policy": _text(rng, 1_200)},
    }
    with path.open("w", encoding="utf-8") as file:
        file.write(json.dumps({"info": info, "tasks": tasks})[:-1] + ', "simulations": [')
        for number, messages in _runs(seed):
            at = f"2026-10-{1 + number % 28:02d}T10:00:00.000000"
            run = {
                "id": f"run-{number}", "task_id": str(number % TASKS), "trial": number // TASKS,
                "start_time": at, "duration": 60.5, "agent_cost": 0.02, "user_cost": 0.01,
                "termination_reason": "user_stop", "reward_info": {"reward": float(number % 3 > 0)},
                "messages": [m | {"timestamp": at, "turn_idx": k} for k, m in enumerate(messages)],
            }  # fmt: skip
            file.write((", " if number else "") + json.dumps(run))
            if file.tell() > megabytes * 1e6:
                break
        file.write("]}")
    return path


def write_lines(path: Path, megabytes: float, seed: int) -> Path:
    """Write one run a line, as the documents of this project describe them."""
    with path.open("w", encoding="utf-8") as file:
        for number, messages in _runs(seed):
            run = {
                "trace_id": f"run-{number}", "workflow": "airline", "task_id": number % TASKS,
                "trial": number // TASKS, "cost_usd": 0.02, "messages": messages,
                "started_at": f"2026-10-{1 + number % 28:02d}T10:00:00Z",
            }  # fmt: skip
            file.write(json.dumps(run) + "\n")
            if file.tell() > megabytes * 1e6:
                break
    return path
