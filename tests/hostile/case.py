"""One hostile input, the well-formed file that it was made from, and the list of all."""

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from importlib.resources import files
from pathlib import Path
from typing import Any

Made = bytes | str | Mapping[str, bytes | str]
At = Callable[[Path, str], object]


@dataclass(frozen=True, slots=True, kw_only=True)
class Target:
    """A command that reads a file: how it is called, and a well-formed file for it.

    `words` are the words of the command, with FILE for the hostile file and DIR for its folder;
    `others` are further files, by name.
    """

    name: str
    content: Callable[[], str | bytes]
    words: tuple[str, ...]
    rows: int | None = None
    others: Mapping[str, str] = field(default_factory=dict)

    def call(self, folder: Path, file: object) -> list[object]:
        """Write the other files and return the words of the command."""
        for name, text in self.others.items():
            (folder / name).write_text(text, encoding="utf-8")
        return [file if w == "FILE" else w.replace("DIR", str(folder)) for w in self.words]

    @property
    def good(self) -> bytes:
        """The content of the well-formed file."""
        content = self.content()
        return content if isinstance(content, bytes) else content.encode()


@dataclass(frozen=True, slots=True)
class Case:
    """A kind of hostile input for one command.

    `make` writes into an empty folder and returns the words of the command. `rows` is the number
    of rows of the file: each is taken or set aside if the file is not refused. `alone` may hang or
    eat the memory, and runs in a process of its own.
    """

    command: str
    kind: str
    make: Callable[[Path], Sequence[object]]
    codes: tuple[int, ...] = (0, 1, 2)
    rows: int | None = None
    alone: bool = False

    @property
    def id(self) -> str:
        """The name of the test."""
        return f"{self.command}: {self.kind!a}"


CASES: list[Case] = []
TAKEN, REFUSED = (0,), (1, 2)


def add(
    command: str,
    kind: str,
    content: Made | Callable[[], Made],
    *,
    name: str | None = None,
    words: Sequence[str] | None = None,
    **expected: Any,
) -> None:
    """Add a case whose file has this content: bytes, a text, or the files of a folder."""
    target = TARGETS[command]

    def make(folder: Path) -> Sequence[object]:
        made, path = content() if callable(content) else content, folder / (name or target.name)
        for inner, data in made.items() if isinstance(made, Mapping) else [("", made)]:
            (path / inner).parent.mkdir(parents=True, exist_ok=True)
            (path / inner).write_bytes(_bytes(data))
        called = target.call(folder, path)
        return called if words is None else [*called, *words]

    CASES.append(Case(command, kind, make, **expected))


def add_path(commands: Iterable[str], kind: str, at: At, **expected: Any) -> None:
    """Add a case for several commands whose path `at` makes from a folder and a name."""
    for command in commands:
        target = TARGETS[command]

        def make(folder: Path, target: Target = target) -> Sequence[object]:
            return target.call(folder, at(folder, target.name))

        CASES.append(Case(command, kind, make, **({"codes": REFUSED} | expected)))


def _bytes(data: str | bytes) -> bytes:
    return data if isinstance(data, bytes) else data.encode("utf-8", "surrogatepass")


def lines(*rows: Any) -> str:
    """Return rows as JSON Lines; a text is a line as it is."""
    return "".join(f"{row if isinstance(row, str) else json.dumps(row)}\n" for row in rows)


def record(trace_id: str = "good", /, **changes: Any) -> dict[str, Any]:
    """Return a trace record."""
    row = {"trace_id": trace_id, "workflow": "flights", "prompt": "Book.", "response": "Booked."}
    return row | {"cost_usd": 0.1, "steps": [{"role": "assistant", "content": "Done."}]} | changes


def raw(row: Mapping[str, Any], name: str, value: str) -> str:
    """Return a row as JSON with one value as it is written here."""
    return json.dumps({**row, name: "@RAW@"}).replace('"@RAW@"', value)


def nested(depth: int, inner: str = "1", kind: str = "[]") -> str:
    """Return JSON text of a depth."""
    return ("[" if kind == "[]" else '{"a":') * depth + inner + kind[1] * depth


CLASSES = ("complete", "partial_plus", "partial_minus", "hallucinated", "abandoned")
RECORDS = lines(*(record(f"h{k}") for k in range(6)))
RUNS = "trace_id,workflow,outcome,cost_usd\n" + "".join(
    f"p{k},w,{CLASSES[k % 5]},0.1\n" for k in range(40)
)
JUDGED = "trace_id,outcome,workflow,cost_usd\n" + "".join(
    f"t{k},{'ab'[(k + (k % 7 == 0)) % 2]},w,0.3\n" for k in range(110)
)


def _ratings() -> str:
    return "item,a,b\n" + "".join(f"i{k},{'xy'[k % 2]},{'xy'[k % 3 == 0]}\n" for k in range(12))


def _human() -> str:
    return "trace_id,outcome,weight\n" + "".join(f"t{k},{'ab'[k % 2]},1\n" for k in range(50))


def _taxonomy() -> str:
    return files("calibration").joinpath("taxonomy.toml").read_text(encoding="utf-8")


def label(trace: int = 0, /, **changes: Any) -> dict[str, Any]:
    """Return a label of a trace of the batch that the runner draws."""
    row = {"trace_id": f"r{trace:03d}", "reviewer": "Ann", "outcome": "complete"}
    return row | {"rationale": "As asked."} | changes


def verdict(trace: int = 0, /, **changes: Any) -> dict[str, Any]:
    """Return a verdict on a trace of the store of the runner."""
    return {"trace_id": f"r{trace:03d}", "outcome": "complete"} | changes


def parquet(rows: int = 40, /, **columns: Any) -> bytes:
    """Return a Parquet file of runs; a column None is left out."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    own: dict[str, Any] = {
        "trace_id": [f"p{k}" for k in range(rows)],
        "workflow": ["w"] * rows,
        "outcome": [CLASSES[k % 5] for k in range(rows)],
        "cost_usd": [0.1] * rows,
    }
    table = pa.table({name: of for name, of in (own | columns).items() if of is not None})
    buffer = pa.BufferOutputStream()
    pq.write_table(table, buffer)
    return bytes(buffer.getvalue().to_pybytes())


REPORT = ("--resamples", "200", "--json")

TARGETS = {
    "agreement": Target(
        name="ratings.csv", content=_ratings, rows=12,
        words=("agreement", "FILE", "--resamples", "100", "--json"),
    ),
    "calibrate": Target(
        name="human.csv", content=_human, others={"judged.csv": JUDGED},
        words=("calibrate", "--human", "FILE", "--verdicts", "DIR/judged.csv", "--credit",
               "a=1,b=.4", "--brief", "--json"),
    ),
    "gate": Target(
        name="gates.toml", others={"runs.csv": RUNS},
        content=lambda: 'defaults = false\n[gates.pass_at_1]\nlevel = "should"\nthreshold = 0.1\n',
        words=("gate", "DIR/runs.csv", "--gates", "FILE", "--resamples", "200"),
    ),
    "import": Target(
        name="traces.jsonl", content=lambda: RECORDS, rows=6,
        words=("import", "FILE", "--yes", "--json"),
    ),
    "import --mapping": Target(
        name="mapping.toml", others={"traces.jsonl": RECORDS},
        content=lambda: '[workflows.flights]\nname = "air"\nceiling_usd = 0.05\nunit = "call"\n',
        words=("import", "DIR/traces.jsonl", "--mapping", "FILE", "--yes", "--json"),
    ),
    "labels import": Target(
        name="labels.jsonl", content=lambda: lines(*map(label, range(4))), rows=4,
        words=("labels", "import", "FILE", "--json"),
    ),
    "report": Target(
        name="runs.parquet", content=parquet, rows=40, words=("report", "FILE", *REPORT)
    ),
    "taxonomy": Target(
        name="taxonomy.toml", content=_taxonomy, words=("taxonomy", "use", "FILE", "--json")
    ),
    "verdicts": Target(
        name="verdicts.jsonl", content=lambda: lines(*map(verdict, range(4))), rows=4,
        words=("verdicts", "import", "FILE", "--judge", "j", "--json"),
    ),
    "verify": Target(
        name="report.json", content=lambda: saved_report(), others={"runs.csv": RUNS},
        words=("verify", "FILE", "--json"),
    ),
}  # fmt: skip


def saved_report() -> str:
    """Return what `asr report` prints of the runs, which lie in the working directory."""
    if not _SAVED:
        from tests.cli_runs import run

        Path("runs.csv").write_text(RUNS, encoding="utf-8")
        _SAVED.append(run("report", "runs.csv", *REPORT).stdout)
    return _SAVED[0]


_SAVED: list[str] = []
