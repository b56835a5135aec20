"""Tables of runs in Parquet, labels, verdicts, ratings, counted tables, and values of options."""

import io
import json
import random
from collections.abc import Callable
from decimal import Decimal
from functools import partial
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from tests.hostile.case import (
    CASES,
    CLASSES,
    JUDGED,
    RECORDS,
    REFUSED,
    TARGETS,
    Case,
    add,
    label,
    lines,
    nested,
    parquet,
    raw,
    verdict,
)

N = 40
GOOD = parquet()


def _flipped(k: int) -> bytes:
    content = bytearray(GOOD)
    at = random.Random(k).randrange(len(content))
    content[at] ^= 1 << (k % 8)
    return bytes(content)


for share in ("0.1", "0.5", "0.9", "0.99"):
    cut = GOOD[: int(len(GOOD) * float(share))]
    if share in ("0.9", "0.99"):
        add("report", f"trunc{share}", cut, codes=REFUSED)
add("report", "magic-only", b"PAR1PAR1", codes=REFUSED)
add("report", "random-body", b"PAR1" + random.Random(2).randbytes(500) + GOOD[-8:], codes=REFUSED)
add("report", "footer-len-huge", GOOD[:-8] + b"\xff\xff\xff\x7f" + b"PAR1", codes=REFUSED)
for k in range(25):
    add("report", f"bitflip{k}", partial(_flipped, k))


def _cost(value: Any) -> Callable[[], bytes]:
    return lambda: parquet(cost_usd=[value, *[0.1] * (N - 1)])


FAR = pa.array([2**62] + [0] * (N - 1), pa.timestamp("us"))
FAR_NS = pa.array([2**63 - 1, -(2**63)] + [0] * (N - 2), pa.timestamp("ns"))
OUTCOMES = [CLASSES[k % 5] for k in range(N)]
RUNS_OF = {
    "no-outcome": lambda: parquet(outcome=None),
    "outcome-null": lambda: parquet(outcome=[None, *OUTCOMES[1:]]),
    "outcome-int": lambda: parquet(outcome=[1] * N),
    "outcome-list": lambda: parquet(outcome=[[o] for o in OUTCOMES]),
    "outcome-struct": lambda: parquet(outcome=[{"a": o} for o in OUTCOMES]),
    "outcome-binary": lambda: parquet(outcome=[b"\xff\xfe"] + [o.encode() for o in OUTCOMES[1:]]),
    "outcome-dict": lambda: parquet(outcome=pa.array(OUTCOMES).dictionary_encode()),
    "cost-1e308": _cost(1e308),
    "cost-dec": lambda: parquet(cost_usd=pa.array([Decimal("0.1")] * N, pa.decimal128(38, 10))),
    "cost-list": lambda: parquet(cost_usd=[[0.1]] * N),
    "cost-neg": _cost(-1.0),
    "cost-nan": _cost(float("nan")),
    "cost-inf": _cost(float("inf")),
    "cost-str": lambda: parquet(cost_usd=["cheap"] + ["0.1"] * (N - 1)),
    "time-int": lambda: parquet(started_at=[1_700_000_000] * N),
    "time-extreme": lambda: parquet(started_at=FAR),
    "time-ns-extreme": lambda: parquet(started_at=FAR_NS),
    "time-str": lambda: parquet(started_at=["soon", "0001-01-01", "9999-12-31"] + [None] * (N - 3)),
    "id-null": lambda: parquet(trace_id=[None, *(f"p{k}" for k in range(N - 1))]),
    "id-dup": lambda: parquet(trace_id=["same"] * N),
    "id-html": lambda: parquet(trace_id=[f"<script>{k}</script>" for k in range(N)]),
    "id-nul": lambda: parquet(trace_id=[f"a\0{k}" for k in range(N)]),
    "wf-many": lambda: parquet(workflow=[f"w{k}" for k in range(N)]),
    "units-0": lambda: parquet(units=[0.0] + [1.0] * (N - 1)),
    "units-nan": lambda: parquet(units=[float("nan")] + [1.0] * (N - 1)),
    "weight-neg": lambda: parquet(weight=[-1.0] + [1.0] * (N - 1)),
    "case-cols": lambda: parquet(Outcome=OUTCOMES, OUTCOME=OUTCOMES),
    "quote-col": lambda: parquet(**{'a"; DROP TABLE traces; --': OUTCOMES, "'": OUTCOMES}),
    "zero-rows": lambda: parquet(0),
}  # fmt: skip
for kind, made in RUNS_OF.items():
    add("report", kind, made, rows=None if kind == "zero-rows" else N)


def _doubled() -> bytes:
    names = ["trace_id", "workflow", "outcome", "cost_usd", "outcome"]
    columns = [[f"p{k}" for k in range(N)], ["w"] * N, OUTCOMES, [0.1] * N, OUTCOMES[::-1]]
    buffer = io.BytesIO()
    pq.write_table(pa.Table.from_arrays([pa.array(c) for c in columns], names=names), buffer)
    return buffer.getvalue()


def _bomb(column: str) -> bytes:
    """Return 100 million rows in few bytes: one value, in a dictionary."""
    buffer = io.BytesIO()
    block = 10_000_000
    indices = pa.nulls(block, pa.int32()).fill_null(0)
    values = {"trace_id": "t", "workflow": "w", column: "complete", "cost_usd": 0.1}
    table = pa.table({
        name: pa.DictionaryArray.from_arrays(indices, pa.array([value]))
        for name, value in values.items()
    })  # fmt: skip
    with pq.ParquetWriter(buffer, table.schema, compression="zstd") as writer:
        for _ in range(10):
            writer.write_table(table)
    return buffer.getvalue()


def _big_cell() -> bytes:
    buffer = io.BytesIO()
    text = pa.array(["x" * 500_000_000])
    table = pa.table({"trace_id": ["t"], "workflow": text, "outcome": ["complete"],
                      "cost_usd": [0.1]})  # fmt: skip
    pq.write_table(table, buffer, compression="zstd", use_dictionary=False, write_statistics=False)
    return buffer.getvalue()


add("report", "dup-cols", _doubled)
add("report", "5000-cols", lambda: parquet(**{f"c{k}": [0] * N for k in range(5_000)}), rows=N)
add("report", "bomb-100M-rows-2KB-dict", lambda: _bomb("outcome"), alone=True)
add("report", "bigcell-500MB-in-50KB", _big_cell, alone=True)
add("agreement", "parquet-bomb", lambda: _bomb("label"), name="ratings.parquet", alone=True)

# Ratings.
RATED = "item,rater,label\n"
ODD_RATINGS: dict[str, str | bytes] = {
    "one": "item,a,b\ni1,x,y\n",
    "allsame": "item,a,b\n" + "".join(f"i{k},x,x\n" for k in range(9)),
    "manyclasses": "item,a,b\n" + "".join(f"i{k},c{k},d{k}\n" for k in range(3_000)),
    "manyraters": "item," + ",".join(f"r{k}" for k in range(2_000)) + "\n"
    + "".join(f"i{k}," + ",".join("xy" * 1_000) + "\n" for k in range(3)),
    "nanlabels": "item,a,b\n" + "".join(f"i{k},nan,NaN\n" for k in range(9)),
    "text": "item,a,b\n" + "".join(f"i{k},It was {k} good,I say {k}\n" for k in range(200)),
    "wrong": "item,rater\n1,2\n",
    "comment": "# a comment\nitem,a,b\ni1,x,y\ni2,x,x\n",
    "dup": RATED + "i1,a,x\ni1,a,y\ni1,b,x\n",
    "neg": RATED + "".join(f"i{k},{r},{-k % 3}\n" for k in range(9) for r in "ab"),
    "huge": RATED + "".join(f"i{k},{r},1e{300 + k}\n" for k in range(9) for r in "ab"),
    "inf": RATED + "".join(f"i{k},{r},inf\n" for k in range(9) for r in "ab"),
    "nan": RATED + "".join(f"i{k},{r},nan\n" for k in range(9) for r in "ab"),
    "bin": b"\x00\x01\xff" * 100,
}  # fmt: skip
for kind, text in ODD_RATINGS.items():
    add("agreement", kind, text)

# Labels and verdicts of `asr calibrate`: one odd row in the verdicts or the labels.
HUMAN = TARGETS["calibrate"].good.decode()
for kind, value in {"w-nan": "nan", "w-neg": "-1", "w-inf": "inf", "w-0": "0", "w-huge": "1e308",
                    "str": "heavy", "neg": "-0.5", "huge": "9" * 400}.items():  # fmt: skip
    add("calibrate", kind, HUMAN.replace("t0,a,1", f"t0,a,{value}"))
add("calibrate", "ragged", HUMAN + "t30,a,1,2,3\n", codes=REFUSED)
for kind, value in {"cost-nan": "nan", "cost-inf": "inf", "cost-neg": "-1", "cost-huge": "1e308",
                    "cost-txt": "cheap"}.items():  # fmt: skip

    def _verdicts(folder: Any, value: str = value) -> list[object]:
        target = TARGETS["calibrate"]
        (folder / "human.csv").write_text(HUMAN, encoding="utf-8")
        words = target.call(folder, folder / "human.csv")
        judged = JUDGED.replace("0.3", value, 1)
        (folder / "judged.csv").write_text(judged, encoding="utf-8")
        return words

    CASES.append(Case("calibrate", kind, _verdicts))

COUNTS: dict[str, Any] = {
    "design": "production", "classes": ["a", "b"], "credit": {"a": 1, "b": 0},
    "confusion": [[9, 2], [3, 26]], "production_judge_counts": [400, 600],
}  # fmt: skip


def _counts(content: str) -> Callable[[Any], list[object]]:
    def made(folder: Any) -> list[object]:
        (folder / "tables.json").write_text(content, encoding="utf-8")
        return ["calibrate", "--counts", folder / "tables.json", "--json"]

    return made


ODD_COUNTS = {
    "counts": [json.dumps(COUNTS | change) for change in (
        {"confusion": [[9, 2], [3]]}, {"confusion": "x"}, {"confusion": [[-1, 2], [3, 26]]},
        {"production_judge_counts": [1e308, 1e308]}, {"classes": [f"c{k}" for k in range(2_000)]},
        {"credit": {"a": None}}, {"design": ["production"]}, {"classes": ["a", "a"]},
    )],
    "nan": [raw(COUNTS, "confusion", "[[NaN, 1], [1, 1]]")],
    "huge": [raw(COUNTS, "confusion", f"[[{'9' * n}, 1], [1, 1]]") for n in (30, 400, 5_000)],
    "neg": [raw(COUNTS, "production_judge_counts", "[-1, 2]")],
    "deepobj": [raw(COUNTS, "confusion", nested(100_000))],
    "deep990": [raw(COUNTS, "confusion", nested(990))],
    "array": [json.dumps([COUNTS])], "num": ["5"], "trunc0.5": [json.dumps(COUNTS)[:60]],
    "garbage-tail": [json.dumps(COUNTS) * 2],
}  # fmt: skip
for kind, contents in ODD_COUNTS.items():
    CASES.extend(Case("calibrate", kind, _counts(content), REFUSED) for content in contents)

# Labels for the store.
LONE = "\\ud800"
ODD_LABELS: dict[str, dict[str, Any]] = {
    "conf-9": {"confidence": 9}, "conf-nan": {"confidence": float("nan")},
    "conf-list": {"confidence": [1]}, "tags-obj": {"tags": {"a": 1}},
    "tags-nums": {"tags": [1, 2]}, "tags-huge": {"tags": ["t" * 100_000]},
    "tags-many": {"tags": [f"t{k}" for k in range(10_000)]},
    "tags-html": {"tags": ["<script>alert(1)</script>"]}, "sub-str": {"sub_goals": "done"},
    "sub-deep": {"sub_goals": nested(3_000, kind="{}")}, "sub-list": {"sub_goals": [1]},
    "sub-unk": {"sub_goals": {"no-such": "met"}}, "rev-list": {"reviewer": ["Ann"]},
    "rev-num": {"reviewer": 7}, "rev-long": {"reviewer": "A" * 5_000},
    "rev-html": {"reviewer": "<b>Ann</b>"}, "rev-path": {"reviewer": "../../Ann"},
    "rev-bidi": {"reviewer": "Ann\u202e"}, "rev-nul": {"reviewer": "An\0n"},
    "rev-ctl": {"reviewer": "Ann\x1b[31m"}, "rationale-obj": {"rationale": {"a": 1}},
    "quote-nostep": {"evidence_quote": "Booked."}, "outcome-bad": {"outcome": "great"},
    "hallu-noquote": {"outcome": "hallucinated"}, "not-in-batch": {"trace_id": "nowhere"},
}  # fmt: skip
for kind, changes in ODD_LABELS.items():
    add("labels import", kind, lines(label(1), label(2, **changes)), rows=2)
LONE_LABEL = json.dumps(label(2, rationale="@")).replace("@", LONE)
add("labels import", "lone", lines(label(1), LONE_LABEL), rows=2)
add("labels import", "rationale-10MB", lambda: lines(label(3, rationale="x" * 10_000_000)), rows=1)
CSV = "trace_id,reviewer,outcome,rationale\nr004,Ann,complete,Done.\nr005,Ann,complete,Done.\n"
add("labels import", "as csv", CSV, name="labels.csv", rows=2)

# Verdicts for the store.
ODD_VERDICTS: dict[str, dict[str, Any]] = {
    "outcome-unknown": {"outcome": "great"}, "outcome-null": {"outcome": None},
    "outcome-list": {"outcome": ["complete"]}, "id-obj": {"trace_id": {"a": 1}},
    "id-num": {"trace_id": 7}, "id-unknown": {"trace_id": "nowhere"},
    "grade-str": {"grade": "five"}, "grade-6": {"grade": 6}, "grade-nan": {"grade": float("nan")},
    "sample-huge": {"sample": 10**30}, "sample-neg": {"sample": -1},
    "sample-digits": {"sample": "9" * 5_000}, "reason-obj": {"reason": {"a": 1}},
    "ev-str": {"evidence": "x"}, "ev-30": {"evidence": [{"step_id": "s1", "quote": "q"}] * 30},
    "ev-bad": {"evidence": [{"step_id": 1}]},
}  # fmt: skip
for kind, changes in ODD_VERDICTS.items():
    add("verdicts", kind, lines(verdict(1), verdict(2, **changes)), rows=2)
add("verdicts", "lone", lines(verdict(1), json.dumps(verdict(2, reason="@")).replace("@", LONE)),
    rows=2)  # fmt: skip
add("verdicts", "reason-10MB", lambda: lines(verdict(3, reason="x" * 10_000_000)), rows=1)
add("verdicts", "dup-rows-differ", lines(verdict(4), verdict(4, outcome="abandoned")), rows=2)
add("verdicts", "dup-key", '{"trace_id": "r005", "outcome": "complete", "outcome": "abandoned"}\n',
    codes=REFUSED)  # fmt: skip


def _named(judge: str) -> Callable[[Any], list[object]]:
    def made(folder: Any) -> list[object]:
        (folder / "v.jsonl").write_text(lines(verdict(1)), encoding="utf-8")
        return ["verdicts", "import", folder / "v.jsonl", "--judge", judge, "--json"]

    return made


for judge in ("  ", "source:x", "../../x", "<script>alert(1)</script>", "=1+1", "x" * 100_000,
              "a\nb\x1b[31m", "\u202e", "-x"):  # fmt: skip
    CASES.append(
        Case("verdicts", f"'{judge[:20].encode('unicode_escape').decode()}'", _named(judge))
    )


# A report on runs that was changed by hand.
def _verify() -> str:
    return TARGETS["verify"].good.decode()


add("verify", "json", lambda: _verify().replace('"n": 40', '"n": "40"'))


def _option(option: str) -> Callable[[Any], list[object]]:
    def made(folder: Any) -> list[object]:
        (folder / "traces.jsonl").write_text(RECORDS, encoding="utf-8")
        return ["import", folder / "traces.jsonl", option, "--yes", "--json"]

    return made


for option in (
    "--ceiling=nan", "--ceiling=inf", "--ceiling=-1", "--ceiling=1e400", "--unit=",
    "--unit=" + "x" * 100_000, "--workflow=../../x", "--workflow=\x1b[31m",
    "--timezone=../../etc/passwd", "--timezone=Europe", "--timezone=/",
):  # fmt: skip
    name, _, value = option.partition("=")
    shown = value[:20].encode("unicode_escape").decode()
    CASES.append(Case("options", f"{name}='{shown}'", _option(option)))
