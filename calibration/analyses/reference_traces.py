"""Traces of the reference set, for practice and examinations only: known, and drafted."""

import json
from collections import Counter
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from calibration.errors import CalibrationError, InputError
from calibration.judging.selection import DEVELOPMENT, split_of
from calibration.records import Trace, TraceForReview
from calibration.taxonomy import Taxonomy
from reference_dataset.loader import LABELS, OF_TASK, ReferenceSet, load_reference, published, rows
from reference_dataset.records import FAMILIES
from reference_dataset.words import places

if TYPE_CHECKING:
    import pandas as pd

    from calibration.store import Store

FORCED = "REFERENCE SET: {n} of these traces are calibration material; no agent is ranked by them."


@cache
def published_set() -> ReferenceSet:
    """Return the published dataset, read once."""
    return load_reference()


def is_reference(trace: Trace) -> bool:
    """Return whether a trace is one of the published dataset, by id and task."""
    family, _, number = trace.trace_id.rpartition("-")
    if family not in FAMILIES or not number.isdigit():
        return False
    found = published_set().traces.get(trace.trace_id)
    return found is not None and found.prompt == trace.prompt


def reference_names() -> set[tuple[str, str]]:
    """Return workflow and trace ids of the published set: an id alone may belong to other data."""
    ids = (row.data["trace_id"] for row in rows(published() / LABELS))
    return {(trace_id.rpartition("-")[0], trace_id) for trace_id in ids}


def refuse_reference(name: str, n: int, *, force: bool) -> None:
    """Raise InputError for a source with `n` traces of the reference set, unless forced."""
    if n and not force:
        raise InputError(
            f"{name}: {n:,} traces are of the reference set, which is material for calibration "
            "and ranks no agent; --force takes them with a mark"
        )


def marks(*numbers: int) -> tuple[str, ...]:
    """Return the notes that precede a report on forced sources with reference traces."""
    return tuple(dict.fromkeys(FORCED.format(n=n) for n in numbers if n))


# ---- a draft of a team's own set

NO_REASON = "nobody gave a reason for the class"
LOCKED = "of a task whose labels stay unread: seven in ten"


@dataclass(frozen=True, slots=True, kw_only=True)
class DraftSet:
    """Traces and labels of a draft as lines of files, and what was left out, by reason."""

    traces: tuple[dict[str, Any], ...]
    labels: tuple[dict[str, Any], ...]
    left_out: dict[str, int]


def draft_set(
    store: "Store", batch_id: str | None = None, *, judge_id: str | None = None, most: int = 60
) -> DraftSet:
    """Make a set to practise on of adjudicated runs on which people, or a judge, erred.

    Runs of development tasks alone. A trace gets an id of its own and names its task, so that no
    judge with it as a worked example judges a run of this task. Where there are more than `most`,
    classes take turns. What a judge errs on may make its next version: the store must be open for
    writing, as `spend_labels` notes that these labels correct no rate of its line any more.

    Raises
    ------
    CalibrationError
        If there is no such run.
    InputError
        If there is no such batch or judge.
    """
    import pandas as pd

    from calibration.analyses.evidence.from_store import batches_of, choose_judge, settled_traces

    taxonomy = store.taxonomy()
    names = [batch.batch_id for batch in batches_of(store, batch_id)]
    settled = {one.trace_id: one for name in names for one in settled_traces(store, name)}
    given = pd.concat([store.label_frame(name) for name in names])
    given = given[(given["kind"] == "label") & ~given["exposed"].astype(bool)]
    by_trace = {str(trace_id): of for trace_id, of in given.groupby("trace_id")}
    verdicts: Mapping[str, str] = {}
    if judge_id is not None:
        frame = store.verdict_frame(choose_judge(store, judge_id))
        for name in names:
            store.spend_labels((judge_id,), name)
        verdicts = dict(zip(frame["trace_id"], frame["outcome"], strict=True))
    about = store.production_traces().set_index("trace_id")
    left_out: Counter[str] = Counter()
    labels: list[dict[str, Any]] = []
    for trace_id, one in sorted(settled.items()):
        others = Counter(by_trace[trace_id]["outcome"]) if trace_id in by_trace else Counter()
        if verdicts.get(trace_id) in taxonomy.names:
            others[verdicts[trace_id]] += 1
        others.pop(one.outcome, None)
        if not others or trace_id not in about.index:
            continue
        if split_of(str(about.at[trace_id, "task_key"])) != DEVELOPMENT:
            left_out[LOCKED] += 1
            continue
        label = _label(trace_id, one.outcome, one.rationale, by_trace.get(trace_id), taxonomy)
        if label is None:
            left_out[NO_REASON] += 1
        else:
            labels.append(label | {"nearest_wrong": others.most_common(1)[0][0]})
    if not labels:
        why = "; ".join(f"{n:,}: {why}" for why, n in left_out.items())
        raise CalibrationError(
            f"no adjudicated run of development tasks on which anybody erred ({why or 'none'})"
        )
    kept = _in_turns(labels, taxonomy)[:most]
    if len(kept) < len(labels):
        left_out[f"more than {most:,}"] = len(labels) - len(kept)
    shown = {trace.trace_id: trace for trace in store.for_review([of["of"] for of in kept])}
    traces = [_record(shown[of["of"]], of["trace_id"], about.loc[of["of"]]) for of in kept]
    for of, record in zip(kept, traces, strict=True):
        del of["of"]
        of["evidence"] = _literal(of["evidence"], record)
    return DraftSet(traces=tuple(traces), labels=tuple(kept), left_out=dict(left_out))


def _label(
    trace_id: str, outcome: str, rationale: str | None, given: "pd.DataFrame | None",
    taxonomy: Taxonomy,
) -> dict[str, Any] | None:  # fmt: skip
    """Return the label of a settled trace with the reason of who gave its class; None without."""
    same = [] if given is None else given[given["outcome"] == outcome].to_dict("records")
    reasons = [rationale, *(row["rationale"] for row in same)]
    reason = next((r for r in reasons if isinstance(r, str) and r.strip()), None)
    if reason is None:
        return None
    quotes = {
        (item["step_id"], item["quote"]): None
        for row in same
        for item in json.loads(row["evidence"] or "[]")
    }
    return {
        "of": trace_id,
        "trace_id": f"practice-{trace_id}",
        "answers": taxonomy.answers_for(outcome),
        "outcome": outcome,
        "rationale": reason.strip(),
        "evidence": [
            {"step_id": step, "quote": quote, "shows": "quoted by a reviewer"}
            for step, quote in quotes
        ],
    }


def _literal(evidence: list[dict[str, str]], record: Mapping[str, Any]) -> list[dict[str, str]]:
    """Return the quotes that are in the trace word for word, as a set demands of them."""
    texts = places(record)
    return [
        of for of in evidence if any(of["quote"] in text for text in texts.get(of["step_id"], []))
    ]


def _in_turns(labels: list[dict[str, Any]], taxonomy: Taxonomy) -> list[dict[str, Any]]:
    """Return labels so that the classes take turns."""
    by_class = [[of for of in labels if of["outcome"] == name] for name in taxonomy.names]
    longest = max(map(len, by_class))
    return [of[turn] for turn in range(longest) for of in by_class if turn < len(of)]


def _record(trace: TraceForReview, trace_id: str, about: "pd.Series[Any]") -> dict[str, Any]:
    """Return what reviewers see of a trace as a trace record."""
    steps = [
        {name: value for name, value in asdict(step).items() if value not in (None, False)}
        for step in trace.steps
    ]
    return {
        "trace_id": trace_id,
        OF_TASK: str(about["task_key"]),
        "workflow": str(about["workflow"]),
        "prompt": trace.prompt,
        "inputs": [asdict(item) for item in trace.inputs],
        "sub_goals": [asdict(goal) for goal in trace.sub_goals],
        "steps": steps,
        "response": trace.response,
        "status": trace.status,
        "latency_s": trace.latency_s,
        "simulated": bool(about["simulated"]),
    }


def write_draft(draft: DraftSet, folder: Path) -> None:
    """Write a draft in the form of a dataset: traces, labels, and a practice form of all."""
    (folder / "traces").mkdir(parents=True)
    for path, lines in ((folder / "traces" / "practice.jsonl", draft.traces),
                        (folder / LABELS, draft.labels)):  # fmt: skip
        text = "".join(json.dumps(line, ensure_ascii=False) + "\n" for line in lines)
        path.write_text(text, encoding="utf-8", errors="surrogatepass")
    ids = json.dumps([line["trace_id"] for line in draft.traces])
    (folder / "forms.toml").write_text(f"[practice]\ntraces = {ids}\n", encoding="utf-8")
