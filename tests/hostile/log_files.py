"""Logs of Inspect AI, SWE-agent trajectories, chats, Parquet tables and compressed files."""

import gzip
import io
import json
import zipfile
from typing import Any

from tests.hostile.case import REFUSED, TAKEN, add, lines, nested, raw, record
from tests.hostile.case import parquet as table

SAID: list[dict[str, Any]] = [
    {"role": "user", "content": "Refund."},
    {"role": "assistant", "content": "Done."},
]


def sample(name: object = "good", /, **changes: Any) -> dict[str, Any]:
    """Return a sample of Inspect AI."""
    row = {"id": name, "epoch": 1, "input": "Refund.", "messages": SAID, "target": "yes"}
    return row | {"scores": {"match": {"value": "C"}}} | changes


def log(*samples: Any, **changes: Any) -> dict[str, Any]:
    """Return a log of Inspect AI."""
    about = {"task": "t", "run_id": "r", "model": "m", "created": "2026-03-01T09:00:00Z"}
    return {"version": 2, "status": "success", "eval": about, "samples": list(samples)} | changes


def archive(*entries: tuple[str, str | bytes], method: int = zipfile.ZIP_DEFLATED) -> bytes:
    """Return an archive with a header."""
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w", method) as packed:
        header = {key: value for key, value in log().items() if key != "samples"}
        for name, content in (("header.json", json.dumps(header)), *entries):
            packed.writestr(name, content)
    return file.getvalue()


ONE = ("samples/good_epoch_1.json", json.dumps(sample()))

WRONG_SAMPLES: dict[str, dict[str, Any]] = {
    "inspect-id-null": {"id": None},
    "inspect-id-obj": {"id": {}},
    "inspect-epoch-neg": {"epoch": -1},
    "inspect-epoch-huge": {"epoch": 10**30},
    "inspect-epoch-str": {"epoch": "x"},
    "inspect-messages-str": {"messages": "said"},
    "inspect-messages-nums": {"messages": [1]},
    "inspect-role-list": {"messages": [{"role": ["a"], "content": "x"}]},
    "inspect-calls-str": {"messages": [*SAID, {"role": "assistant", "tool_calls": "x"}]},
    "inspect-calls-nums": {"messages": [*SAID, {"role": "assistant", "tool_calls": [3]}]},
    "inspect-scores-list": {"scores": [1]},
    "inspect-score-deep": {"scores": {"s": {"value": [[[{}]]]}}},
    "inspect-score-huge": {"scores": {"s": {"value": 10**400}}},
    "inspect-history": {"scores": {"s": {"value": 1, "history": [3, {"provenance": "x"}]}}},
    "inspect-many-scores": {"scores": {f"s{k}\u202e": {"value": "I"} for k in range(300)}},
    "inspect-usage-str": {"model_usage": "x"},
    "inspect-usage-nums": {"model_usage": {"m": 3}},
    "inspect-cost-neg": {"model_usage": {"m": {"total_cost": -1}}},
    "inspect-time-y9999": {"started_at": "9999-12-31T23:59:59"},
    "inspect-time-int": {"started_at": 1_700_000_000},
    "inspect-attachments": {"input": "attachment://" + "a" * 32, "attachments": {"a" * 32: 3}},
    "inspect-cycle": {"input": "attachment://" + "a" * 32,
                      "attachments": {"a" * 32: "attachment://" + "a" * 32}},
    "inspect-target-deep": {"target": [[["x"]]]},
    "inspect-choices": {"choices": [None, 3, {}]},
    "inspect-error-str": {"error": "x"},
    "inspect-limit-list": {"limit": ["x"]},
    "inspect-uuid-path": {"uuid": "../../etc/passwd"},
    "inspect-ctl": {"input": "\x1b[31m\u202e\x00\ud800", "uuid": "a\x1b[31m"},
}  # fmt: skip
for kind, changes in WRONG_SAMPLES.items():
    content = json.dumps(log(sample("a"), sample(**changes)))
    add("import", kind, content, name="log.json", rows=2)
add("import", "inspect-dup", json.dumps(log(sample(), sample())), name="log.json", rows=2)
for number in ("NaN", "Infinity", "-Infinity", "1e400", "-0"):
    score = raw({"value": 0}, "value", number)
    content = json.dumps(log(sample(scores={"s": "@RAW@"}))).replace('"@RAW@"', score)
    add("import", f"inspect-{number}", content, name="log.json", rows=1, codes=TAKEN)
for depth in (600, 3_000, 100_000):
    text = json.dumps(log(sample(), sample("b", metadata="@RAW@")))
    deep = text.replace('"@RAW@"', nested(depth, kind="{}"))
    add("import", f"inspect-deep-{depth}", deep, name="log.json")
for kind, content in {
    "inspect-cut": json.dumps(log(sample(), sample("b")))[:-40],
    "inspect-no-samples": json.dumps(log(samples={})),
    "inspect-tail": json.dumps(log(sample())) + "{}",
}.items():
    add("import", kind, content, name="log.json", codes=REFUSED)

for kind, packed in {
    "eval-climbs": archive(ONE, ("../../etc/x", "1")),
    "eval-root": archive(ONE, ("/etc/x", "1")),
    "eval-chunked": archive(("samples/a_epoch_1/sample.json", "{}")),
    "eval-empty": archive(),
    "eval-header": archive(ONE).replace(b"header.json", b"letter.json"),
    "eval-cut": archive(ONE)[:-40],
    "eval-magic": b"PK\x03\x04",
    "eval-bzip2": archive(ONE, method=zipfile.ZIP_BZIP2),
    "xlsx": archive(("xl/workbook.xml", "<x/>")),
}.items():
    add("import", kind, packed, name="log.eval", codes=REFUSED)
BROKEN: dict[str, str | bytes] = {
    "eval-list": "[]",
    "eval-broken": "{",
    "eval-utf16": "{}".encode("utf-16"),
}
for kind, entry in BROKEN.items():
    add("import", kind, archive(ONE, ("samples/b.json", entry)), name="log.eval", rows=2)
add("import", "eval-bomb", lambda: archive(("samples/b.json", b" " * 200_000_000)),
    name="log.eval", rows=1, alone=True)  # fmt: skip
add("import", "eval-many", lambda: archive(ONE, *((f"x/{k}", "") for k in range(70_000))),
    name="log.eval", rows=1, alone=True)  # fmt: skip


def trajectory(**changes: Any) -> str:
    """Return a trajectory of SWE-agent."""
    steps = [{"action": "submit", "observation": "", "thought": "Done."}]
    info = {"exit_status": "submitted", "model_stats": {"instance_cost": 0.5}}
    return json.dumps({"trajectory": steps, "history": SAID, "info": info} | changes)


STATS = {"exit_status": "submitted"}
WRONG_RUNS: dict[str, dict[str, Any]] = {
    "traj-history-str": {"history": "x"},
    "traj-history-nums": {"history": [1]},
    "traj-steps-str": {"trajectory": "x"},
    "traj-steps-nums": {"trajectory": [1]},
    "traj-empty": {"trajectory": [], "history": []},
    "traj-action-obj": {"trajectory": [{"action": {"a": 1}, "observation": [1], "thought": None}]},
    "traj-action-blank": {"trajectory": [{"action": "  "}, {"action": "\x1b[31m rm"}]},
    "traj-time-neg": {"trajectory": [{"action": "x", "execution_time": -1}]},
    "traj-many": {"trajectory": [{"action": "ls"}] * 2_001},
    "traj-info-str": {"info": "x"},
    "traj-cost-str": {"info": STATS | {"model_stats": {"instance_cost": "1"}}},
    "traj-cost-neg": {"info": STATS | {"model_stats": {"instance_cost": -1}}},
    "traj-exit-list": {"info": {"exit_status": ["x"]}},
    "traj-config": {"replay_config": "[" * 5_000},
    "traj-env-obj": {"environment": {"a": 1}},
    "traj-demo": {"history": [m | {"is_demo": True} for m in SAID]},
}
for kind, wrong in WRONG_RUNS.items():
    add("import", kind, trajectory(**wrong), name="a.traj", rows=1)


def chat(**changes: Any) -> dict[str, Any]:
    """Return a chat in OpenAI form."""
    return {"messages": SAID} | changes


GOOD = chat(messages=[SAID[0], {"role": "assistant", "content": "Yes."}])
for kind, row in {
    "chat-str": chat(messages="x"),
    "chat-nums": chat(messages=[1]),
    "chat-empty": chat(messages=[]),
    "chat-user-only": chat(messages=SAID[:1]),
    "chat-role-null": chat(messages=[{"role": None}]),
    "chat-meta-str": chat(metadata="x"),
    "chat-task-obj": chat(metadata={"task_id": {}}),
    "chat-trial-neg": chat(metadata={"trial": -1}),
    "chat-cost-inf": chat(metadata={"cost_usd": "Infinity"}),
    "chat-reward": chat(metadata={"reward": [1]}),
    "chat-tools-str": chat(tools="x"),
    "chat-tools-nums": chat(tools=[1, {"function": 3}]),
    "chat-call-null": chat(
        messages=[*SAID, {"role": "assistant", "function_call": {"name": None}}]
    ),
    "chat-id-long": chat(id="x" * 5_000),
    "chat-bidi": chat(id="\u202e"),
    "chat-3MB": chat(messages=[{"role": "assistant", "content": "x" * 3_000_000}]),
}.items():
    add("import", kind, lines(GOOD, row), name="chats.jsonl", rows=2)

RECORDS = lines(*(record(f"g{k}") for k in range(3))).encode()
add("import", "gz", gzip.compress(RECORDS), name="a.jsonl.gz", rows=3, codes=TAKEN)
add("import", "gz-cut", gzip.compress(RECORDS)[:-9], name="a.jsonl.gz", codes=REFUSED)
add("import", "gz-twice", gzip.compress(gzip.compress(RECORDS)), name="a.gz", codes=REFUSED)
add("import", "gz-zip", gzip.compress(archive(ONE)), name="a.gz", codes=REFUSED)
add("import", "gz-tail", gzip.compress(RECORDS) + b"tail", name="a.gz", codes=REFUSED)
add("import", "zst-magic", b"\x28\xb5\x2f\xfd", name="a.zst", codes=REFUSED)
add("import", "gz-bomb", lambda: gzip.compress(b" " * 200_000_000), name="a.gz", codes=REFUSED,
    alone=True)  # fmt: skip
add("import", "parquet-runs", table(), name="runs.parquet", rows=40)
add("import", "parquet-cut", table()[:-20], name="runs.parquet", codes=REFUSED)
add("import", "parquet-other", table(trace_id=None), name="runs.parquet", codes=REFUSED)
