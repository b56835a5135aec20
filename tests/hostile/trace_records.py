"""Trace records: JSON structure, each typed field, depths, texts, sizes, and CSV."""

import json
from functools import partial
from typing import Any

from tests.hostile.case import CLASSES, REFUSED, add, lines, nested, raw, record

# A wrong document in place of the records.
for kind in ("[]", "{}", "null", "1", '"x"', "[1,2,3]", "[[]]", "[null]", "[{}]", '{"a":1}'):
    add("import", kind, kind, codes=REFUSED)

WRONG: list[Any] = [
    None,
    [],
    {},
    [1],
    {"a": 1},
    True,
    -1,
    1.5,
    "",
    " ",
    "x" * 5_000,
    "\x00",
    10**20,
]
FIELDS = (
    "trace_id", "workflow", "task_id", "trial", "prompt", "inputs", "sub_goals", "steps",
    "response", "status", "agent", "cost_usd", "latency_s", "started_at", "units", "total_tokens",
    "simulated", "verdict", "metadata", "success_criteria", "perturbation", "confidence",
    "context_tokens", "expected_calls", "violations",
)  # fmt: skip
for name in FIELDS:
    rows = [record(f"{name}-{k}", **{name: value}) for k, value in enumerate(WRONG)]
    add("import", name, lines(record(name), *rows), rows=len(rows) + 1)

NUMBERS = {
    "NaN": "NaN", "Inf": "Infinity", "-Inf": "-Infinity", "1e400": "1e400", "int30": "9" * 30,
    "int5000": "9" * 5_000, "1e308": "1e308", "-0": "-0", "1e-320": "1e-320", "0x": "0x10",
    "01": "01", "+1": "+1",
}  # fmt: skip
for name in (
    "cost_usd", "latency_s", "trial", "units", "total_tokens", "confidence", "context_tokens",
):  # fmt: skip
    for kind, value in NUMBERS.items():
        row = raw(record(f"{name}-{kind}"), name, value)
        add("import", f"num:{name}={kind}", lines(record(), row), rows=2)
LISTS: dict[str, list[Any]] = {
    "expected_calls": [
        [{"name": name} for name in WRONG],
        [{"name": "a", "arguments": value} for value in WRONG],
        [{"name": "a"}] * 501,
        [{"name": "a", "arguments": {str(k): "x" * 3_000 for k in range(30)}}],
    ],
    "violations": [
        [{"constraint": value, "severity": "low"} for value in WRONG],
        [{"constraint": "c", "severity": value} for value in WRONG],
        [{"constraint": "c", "severity": "low"}] * 51,
    ],
}
for name, values in LISTS.items():
    rows = [record(f"{name}-list-{k}", **{name: value}) for k, value in enumerate(values)]
    add("import", f"{name}-list", lines(record(), *rows), rows=len(rows) + 1)
    deep = raw(record(f"{name}-deep"), name, '[{"name": "a", "arguments": ' + nested(900) + "}]")
    add("import", f"{name}-deep", lines(record(), deep), rows=2)
HUGE = raw(record("meta-huge"), "metadata", '{"a": ' + "9" * 5_000 + "}")
add("import", "num:metadata-int5000", lines(record(), HUGE), rows=2)
CSV_HEAD = "trace_id,workflow,prompt,response,cost_usd\n"
add("import", "num:csv-int", f"{CSV_HEAD}n1,w,p,r,{'9' * 5_000}\nn2,w,p,r,1\n",
    name="t.csv", rows=2)  # fmt: skip

TWICE = '{"trace_id": "d1", "workflow": "w", "prompt": "p", "response": "a", "response": "b"}'
add("import", "dup-keys", lines(record(), TWICE), rows=2)
for kind, text in {
    "meta-arr": f'{{"a": {nested(900)}}}',
    "meta-obj": nested(900, kind="{}"),
    "5000": nested(5_000, kind="{}"),
}.items():
    add("import", kind, lines(record(), raw(record(kind), "metadata", text)), rows=2)
for depth in (300, 500, 900, 940, 960, 975, 980, 990, 1_000, 1_200, 2_000, 3_000):
    for kind, inner in (("steps-args", "1"), ("lone-surr", '"\\ud800"')):
        if kind == "lone-surr" and depth in (940, 975):
            continue
        steps = f'[{{"role": "assistant", "tool": "t", "arguments": {nested(depth, inner)}}}]'
        row = raw(record(f"{kind}-{depth}"), "steps", steps)
        add("import", f"{kind}-{depth}", lines(record(), row), rows=2)
add("import", "top-arr", nested(50_000), codes=REFUSED)
add("import", "top-open", "[" * 100_000, codes=REFUSED)
add("import", "top-obj", nested(50_000, kind="{}"), codes=REFUSED)
add("import", "csv-cell", 'trace_id,workflow,prompt,response,steps\nc1,w,p,r,"'
    + nested(3_000) + '"\nc2,w,p,r,\n', name="t.csv", rows=2)  # fmt: skip

TEXTS = {
    "lone": "\\ud83d",
    "lonelow": "\\udc00",
    "bidi": "\\u202eevil\\u2066",
    "zw": "a\\u200b\\u200db\\ufeff",
    "ctl": "\\u0000\\u0007\\u001b[31m\\u009b",
    "ansi-osc": "\\u001b]0;title\\u0007\\u001b]8;;http://x\\u001b\\\\",
    "tag": "\\udb40\\udc41\\udb40\\udc42",
    "noncha": "\\uffff\\ufffe",
    "md": "# h [a](javascript:alert(1)) ![i](http://x) | `c` <b>",
    "formula": "=cmd|' /C calc'!A0",
    "emoji": "\\ud83d\\udc69\\u200d\\ud83d\\udcbb" * 20,
    "ls": "a\\u2028b\\u2029c\\u0085d",
    "homoglyph": "\\u0430dmin",
    "traversal": "../../../../etc/passwd",
}
for kind, text in TEXTS.items():
    rows_of_text = [raw(record(f"{kind}-{name}"), name, f'"{text}"') for name in FIELDS]
    add("import", kind, lines(*rows_of_text), rows=len(FIELDS))
add("import", "html", lines(*(record(f"html-{n}", **{n: "<img src=x onerror=alert(1)>"})
    for n in FIELDS)), rows=len(FIELDS))  # fmt: skip
add("import", "long", lines(record("long", prompt="x" * 3_000_000), record()), rows=2)


def _step(**changes: Any) -> dict[str, Any]:
    return {"role": "assistant", "content": "Done."} | changes


def _inputs(n: int, text: str) -> list[dict[str, str]]:
    return [{"name": f"{text}{k}", "text": "t"} for k in range(n)]


LIMITS = {
    "lim:2001steps": record("l1", steps=[_step()] * 2_001),
    "lim:dup-stepids": record("l2", steps=[_step(step_id="s")] * 2),
    "lim:many-inputs": record("l3", inputs=_inputs(20_000, "n")),
    "lim:huge-names": record("l4", inputs=_inputs(1, "n" * 5_000)),
    "lim:huge-step-tool": record("l5", steps=[_step(tool="t" * 5_000)]),
    "lim:goal-id-huge": record("l6", sub_goals=[{"id": "g" * 5_000, "text": "t"}]),
    "lim2:2001steps": record("m1", steps=[_step(content="x" * 200)] * 2_001),
    "lim2:dup-stepids": record("m2", steps=[_step(step_id="s1"), _step(), _step(step_id="s2")]),
    "lim2:huge-wf": record("m3", workflow="w" * 100_000),
    "lim2:huge-fieldname": record("m4", **{"f" * 100_000: 1}),
    "lim2:many-fields": record("m5", **{f"f{k}": k for k in range(20_000)}),
    "lim2:20000tools": record("m6", steps=[_step(tool=f"t{k}") for k in range(20_000)]),
    "lim2:huge-step-step_id": record("m7", steps=[_step(step_id="s" * 100_000)]),
    "lim2:huge-step-tool": record("m8", steps=[_step(tool="t" * 100_000)]),
    "lim2:huge-step-role": record("m9", steps=[_step(role="r" * 100_000)]),
    "lim2:huge-step-error": record("m10", steps=[_step(error="e" * 100_000)]),
    "lim2:huge-step-tokens_in": record("m11", steps=[_step(tokens_in=10**30)]),
    "lim2:huge-step-seconds": record("m12", steps=[_step(seconds=1e300)]),
    "lim2:huge-step-at": record("m13", steps=[_step(at=1e300)]),
}
for kind, row_of_limit in LIMITS.items():
    add("import", kind, lines(record(), row_of_limit), rows=2)

# Whole files: what follows the first document, separators, and several files of a folder.
LISTED = json.dumps([record("j1"), record("j2")])
PRETTY = json.dumps(record("j3"), indent=1)
add("import", "two-lists", LISTED + "\n" + LISTED.replace("j1", "k1"), name="t.json", codes=REFUSED)
add("import", "json-objects-multiline", PRETTY + "\n" + PRETTY.replace("j3", "j4"),
    name="t.json", codes=REFUSED)  # fmt: skip
add("import", "missing-comma", LISTED.replace("}, {", "} {"), name="t.json", codes=REFUSED)
add("import", "trailing-comma", LISTED[:-1] + ",]", name="t.json", codes=REFUSED)
add("import", "json object cut", PRETTY[: len(PRETTY) // 2], name="t.json", codes=REFUSED)
add("import", "json list one string", json.dumps(["x" * 3_000_000]), name="t.json", codes=REFUSED)
add("import", "aaaa", "a" * 30_000_000, codes=REFUSED, alone=True)
add("import", "dir-mixed", {"a.jsonl": lines(record("x1")), "b.csv": "a,b\n1,2\n",
    "c.json": "[1]", "d.txt": "x"}, name="folder")  # fmt: skip

# CSV: one row is well-formed, and the one before it is not.
GOOD_ROW = "c-good,w,p,r,1\n"
for kind, body, rows_of_csv in (
    ("unclosed", 'c1,w,"p,r,1\n' + GOOD_ROW, None),
    ("midquote", 'c2,w,p"q,r,1\nc22,w,"p"q,r,1\n' + GOOD_ROW, 3),
    ("extra", "c3,w,p,r,1,more\n" + GOOD_ROW, 2),
    ("few", "c4,w\n" + GOOD_ROW, 2),
    ("headeronly", "", None),
):
    add("import", kind, CSV_HEAD + body, name="t.csv", rows=rows_of_csv)
for kind, text_of_csv, rows_of_csv in (
    ("dupcol", "trace_id,prompt,prompt,workflow\n1,a,b,w\n", None),
    ("manycols", "trace_id,workflow,prompt," + ",".join(f"c{k}" for k in range(5_000)) + "\n"
     + "c6,w,p," + ",".join("1" * 5_000) + "\n", 1),
    ("semicolon", (CSV_HEAD + GOOD_ROW).replace(",", ";"), 1),
    ("tab", (CSV_HEAD + GOOD_ROW).replace(",", "\t"), 1),
    ("sep=", "sep=,\n" + CSV_HEAD + GOOD_ROW, 1),
    ("quotedheader", '"trace_id","workflow","prompt","response"\nc7,w,p,r\n', 1),
    ("nlheader", '"trace_id","work\nflow",workflow,prompt,response\nc8,x,w,p,r\n', 1),
):  # fmt: skip
    add("import", kind, text_of_csv, name="t.csv", rows=rows_of_csv)

# Sizes that a row may not have.
HEADS = {
    "agreement": "item,a,b\ni0,x,y\ni1,{},x\n",
    "import": CSV_HEAD + "b1,w,{},r,1\n",
    "report": "trace_id,workflow,outcome,cost_usd\np0,w,complete,1\np1,{},complete,1\n",
    "verdicts": "trace_id,outcome,reason\nr000,complete,{}\n",
}


def _filled(text: str) -> str:
    return text.format("x" * 30_000_000)


for command, text_of_head in HEADS.items():
    add(command, "csv cell", partial(_filled, text_of_head), name="t.csv", alone=True)
add("import", "bigcell", lambda: CSV_HEAD + "b2,w," + "x" * 21_000_000 + ",r,1\n", name="t.csv",
    alone=True)  # fmt: skip
for command in ("import", "report", "verdicts"):
    add(command, "jsonl line",
        lambda: lines(record(outcome=CLASSES[0]), record("z", prompt="x" * 30_000_000,
                                                         reason="x" * 30_000_000, outcome="x")),
        name="t.jsonl", alone=True)  # fmt: skip


def _empties() -> bytes:
    begin = b'[{"trace_id": "e", "workflow": "w", "prompt": "p", "metadata": ['
    return begin + b"[]," * 66_000_000 + b"[]]}]"


add("import", "list of 66M empties", _empties, name="t.json", alone=True)
