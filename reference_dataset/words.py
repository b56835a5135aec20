"""Words, runs of words and the visible text of a trace, as the rules count them."""

import re
from collections.abc import Mapping
from typing import Any

RUN = 12


def words(text: str | None) -> list[str]:
    """Return the words of a text in lower case."""
    return re.findall(r"[\w']+", (text or "").lower())


def runs(text: str | None) -> set[tuple[str, ...]]:
    """Return every run of twelve words of a text."""
    listed = words(text)
    return {tuple(listed[k : k + RUN]) for k in range(len(listed) - RUN + 1)}


def visible(trace: dict[str, Any]) -> str:
    """Return everything that a reviewer reads of a trace."""
    parts = [trace["prompt"], trace["response"] or ""]
    parts += [item["text"] for item in (*trace["inputs"], *trace["sub_goals"])]
    for step in trace["steps"]:
        parts += [step[name] or "" for name in ("content", "arguments", "result")]
    return "\n".join(parts)


def places(trace: Mapping[str, Any]) -> dict[str, list[str]]:
    """Return the texts of a trace by the name that evidence gives the place."""
    found = {
        step["step_id"]: [
            text for name in ("content", "arguments", "result") if (text := step.get(name))
        ]
        for step in trace["steps"]
    }
    found["prompt"] = [trace["prompt"]]
    found["response"] = [trace["response"] or ""]
    found |= {f"input:{item['name']}": [item["text"]] for item in trace["inputs"]}
    return found
