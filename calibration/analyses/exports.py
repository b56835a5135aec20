"""What a store gives away as rows: labels, consensus, verdicts, probabilities, training data."""

import json
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from datetime import UTC
from typing import Any

import pandas as pd
import pyarrow as pa

from calibration.agreement.dawid_skene import dawid_skene
from calibration.analyses.agreement.analysis import planned_codes
from calibration.analyses.evidence.data import MISSING, UNKNOWN, CalibrationData, group_names
from calibration.analyses.evidence.from_store import (
    batches_of,
    drawn_by,
    load_batch,
    pooled_id,
    settled_traces,
    started,
    with_judge,
)
from calibration.analyses.judging.versions import excerpts, judge_of
from calibration.analyses.platform_scores import (
    AS_SCORE,
    PlatformScore,
    consensus_scores,
    inspect_score,
    judge_scores,
)
from calibration.analyses.reference_traces import LOCKED, published_set
from calibration.errors import CalibrationError, InputError
from calibration.judging.answers import Quotes
from calibration.judging.prompt import pieces_of
from calibration.judging.requests import Capabilities
from calibration.judging.selection import CERTIFICATION, DEVELOPMENT, split_of
from calibration.judging.steps import TreeJudge
from calibration.judging.versions import new_version
from calibration.records import NO_VERDICT, Trace, TraceForReview, is_perturbed
from calibration.store import Store
from calibration.tables.rows import FLAG, NUMBER, TEXT, TEXTS, TIME, WHOLE, Row, TypedRows
from calibration.text import TOGETHER
from calibration.trace_formats import inspect_ai
from reference_dataset.team import team_reference

QUOTES = pa.list_(pa.struct({"step_id": TEXT, "quote": TEXT}))
VIOLATIONS = pa.list_(pa.struct({"constraint": TEXT, "severity": TEXT, "step": TEXT}))
MESSAGES = pa.list_(pa.struct({"role": TEXT, "content": TEXT}))

LABEL_COLUMNS = {
    "trace_id": TEXT, "reviewer": TEXT, "outcome": TEXT, "adjudicated": FLAG, "weight": NUMBER,
    "cluster": TEXT, "rationale": TEXT, "evidence": QUOTES, "confidence": WHOLE, "tags": TEXTS,
    "sub_goals": TEXT, "violations": VIOLATIONS, "unseen_parts": WHOLE, "perturbation": TEXT,
    "exposed": FLAG, "simulated": FLAG,
}  # fmt: skip
CONSENSUS_COLUMNS = {
    "trace_id": TEXT, "workflow": TEXT, "task": TEXT, "outcome": TEXT, "basis": TEXT,
    "n_labels": WHOLE, "weight": NUMBER, "adjudicator": TEXT, "cause": TEXT, "question": TEXT,
    "rationale": TEXT, "reopened": FLAG, "decided_at": TIME, "perturbation": TEXT,
    "unseen_parts": WHOLE, "simulated": FLAG,
}  # fmt: skip
VERDICT_COLUMNS = {
    "trace_id": TEXT, "outcome": TEXT, "sample": WHOLE, "judge": TEXT, "workflow": TEXT,
    "task": TEXT, "stratum": TEXT, "cost_usd": NUMBER, "units": NUMBER, "ceiling_usd": NUMBER,
    "started_at": TIME, "agent": TEXT, "model": TEXT, "steps": NUMBER, "response_chars": WHOLE,
    "grade": WHOLE, "reason": TEXT, "evidence": QUOTES, "of_all": FLAG, "cause": TEXT,
    "prompt": TEXT, "unseen_parts": WHOLE, "simulated": FLAG,
}  # fmt: skip

ADJUDICATED, AGREED, ONE_LABEL, OPEN = "adjudicated", "agreed", "one label", "open"

CHUNK = 5_000  # rows that are looked up at a time
TEXTS_HELD = 100  # traces whose text is held at a time


def label_table(store: Store, batch_id: str) -> TypedRows:
    """Return the labels of a batch as rows for `import_labels` and `read_labels`.

    One row a label, a skip or an adjudicated class, with the inverse inclusion probability of its
    trace; the reviewer of an adjudicated class is the adjudicator. Labelled traces first, in the
    order of the batch: a result on the file adds its numbers in the order in which a result on the
    store does, and has the same last digit.
    """
    return TypedRows(
        columns=LABEL_COLUMNS,
        rows=_label_rows(store, batch_id),
        about=_about(store, "labels, skips and adjudicated classes", batch_id),
    )


def _about(store: Store, what: str, batch_id: str, **more: object) -> Row:
    taxonomy = store.taxonomy()
    return {
        "what": what,
        "batch_id": batch_id,
        "taxonomy": taxonomy.version,
        "classes": list(taxonomy.names),
        **more,
        "simulated": store.is_simulated(),
    }


def _label_rows(store: Store, batch_id: str) -> Iterator[Row]:
    names = {r.reviewer_id: r.name for r in store.reviewers()}
    batches = batches_of(store, batch_id)
    traces = store.production_traces(arms=True)
    if len(batches) > 1:
        traces = batches[-1].population(traces)
    items, events, _ = drawn_by(store, batches, traces)
    items = items.set_index("trace_id")
    about = store.trace_frame().set_index("trace_id")
    settled = {of.trace_id: of for one in batches for of in settled_traces(store, one.batch_id)}
    unseen = store.unseen_parts()
    given: dict[str, list[Row]] = {}
    labelled: set[str] = set()
    for event in events.to_dict("records"):
        label = {str(name): value for name, value in event.items()}
        given.setdefault(label["trace_id"], []).append(_label_row(label, names))
        if label["kind"] == "label" and not label["exposed"]:
            labelled.add(label["trace_id"])
    for trace_id in labelled & settled.keys():
        one = settled[trace_id]
        given[trace_id].append({
            "reviewer": names.get(one.adjudicator, one.adjudicator), "outcome": one.outcome,
            "adjudicated": True, "rationale": one.rationale,
        })  # fmt: skip
    order = [t for t in items.index if t in labelled] + sorted(given.keys() - labelled)
    for trace_id in order:
        of_trace = {
            "trace_id": trace_id,
            "weight": _number(1 / items["inclusion_probability"].get(trace_id, float("nan"))),
            "cluster": about["task_key"].get(trace_id),
            "perturbation": _text(about["perturbation"].get(trace_id)),
            "unseen_parts": unseen.get(trace_id, 0),
            "simulated": bool(about["simulated"].get(trace_id)),
        }
        for row in sorted(given[trace_id], key=lambda row: (row["adjudicated"], row["reviewer"])):
            yield NO_LABEL | row | of_trace


NO_LABEL: Row = dict.fromkeys(LABEL_COLUMNS) | {"exposed": False}


def _label_row(label: Row, names: Mapping[str, str]) -> Row:
    confidence = label["confidence"]
    return {
        "reviewer": names[label["reviewer_id"]],
        "outcome": _text(label["outcome"]),
        "adjudicated": False,
        "rationale": _text(label["rationale"]) or _text(label["reason"]),
        "evidence": _listed(label["evidence"]) or None,
        "confidence": None if pd.isna(confidence) else int(confidence),
        "tags": _listed(label["tags"]),
        "sub_goals": json.loads(_text(label["sub_goals"]) or "{}") or None,
        "violations": _listed(label["violations"]) if _text(label["violations"]) else None,
        "exposed": bool(label["exposed"]) and label["kind"] == "label",
    }


def consensus_table(store: Store, batch_id: str) -> TypedRows:
    """Return the class of each labelled trace of a batch, and what it rests on.

    `basis` is ``adjudicated``, ``agreed`` (two blind labels or more, all of one class), ``one
    label``, or ``open``: reviewers differ and nobody has decided. An open trace has no class, for
    no consensus comes from a majority.
    """
    data = load_batch(store, batch_id, sample=False, arms=True)
    settled = {
        of.trace_id: of
        for one in data.provenance.batch_id.split(TOGETHER)
        for of in settled_traces(store, one)
    }
    rows = _consensus_rows(data, settled, store.unseen_parts())
    about = _about(store, "the class of each labelled trace", data.provenance.batch_id)
    return TypedRows(columns=CONSENSUS_COLUMNS, rows=rows, about=about)


def _consensus_rows(
    data: CalibrationData, settled: Mapping[str, Any], unseen: Mapping[str, int]
) -> Iterator[Row]:
    labels = data.labels.groupby("trace_id").size()
    for k, trace in enumerate(_records(data.labelled)):
        n, one = int(labels[trace["trace_id"]]), settled.get(str(trace["trace_id"]))
        certain = data.human[k].max() == 1
        basis = (AGREED if n > 1 else ONE_LABEL) if certain else OPEN
        drawn = trace["inclusion_probability"]
        yield {
            "trace_id": trace["trace_id"],
            "workflow": trace["workflow"],
            "task": trace["task_key"],
            "outcome": data.classes[int(data.human[k].argmax())] if certain else None,
            "basis": ADJUDICATED if data.adjudicated[k] else basis,
            "n_labels": n,
            "weight": None if pd.isna(drawn) else 1 / float(drawn),
            "adjudicator": one and one.adjudicator,
            "cause": one and one.cause,
            "question": one and one.question,
            "rationale": one and one.rationale,
            "reopened": bool(one and one.reopened),
            "perturbation": _text(trace["perturbation"]),
            "unseen_parts": unseen.get(str(trace["trace_id"]), 0),
            "decided_at": one and one.at.replace(tzinfo=one.at.tzinfo or UTC),
            "simulated": bool(trace["simulated"]),
        }


def verdict_table(store: Store, batch_id: str, judge_id: str | None = None) -> TypedRows:
    """Return the verdicts of a judge on the population of a batch, as rows for `read_verdicts`.

    Every trace has a row, `no_verdict` where the judge gave none, and one more for each time it was
    asked again. Raises as `load_batch` and `with_judge`.
    """
    data = with_judge(store, load_batch(store, batch_id, sample=False), judge_id)
    judge = data.provenance.judge_id
    return TypedRows(
        columns=VERDICT_COLUMNS,
        rows=_verdict_rows(store, data),
        about=_about(store, "verdicts of a judge", batch_id, judge_id=judge),
    )


def _verdict_rows(store: Store, data: CalibrationData) -> Iterator[Row]:
    judge = data.provenance.judge_id
    samples = store.verdict_samples(judge)
    labelled = set(data.labelled["trace_id"])
    unseen = store.unseen_parts()
    traces = data.traces.assign(
        agent=group_names(data.traces, "agent"),
        started_at=started(data.traces),
        stratum=""
        if data.strata is None
        else [str(k + 1) if k != MISSING else "" for k in data.strata],
    )
    for start in range(0, len(traces), CHUNK):
        chunk = traces.iloc[start : start + CHUNK]
        again: defaultdict[str, list[Row]] = defaultdict(list)
        for verdict in samples[samples["trace_id"].isin(chunk["trace_id"])].to_dict("records"):
            again[verdict["trace_id"]].append({str(k): value for k, value in verdict.items()})
        lengths = dict(_response_lengths(store, [t for t in chunk["trace_id"] if t in labelled]))
        for found in chunk.to_dict("records"):
            trace = {str(name): value for name, value in found.items()}
            of_trace = again[trace["trace_id"]]
            if not of_trace or of_trace[0]["sample"] > 0:
                of_trace = [{"outcome": NO_VERDICT, "sample": 0}, *of_trace]
            about = {
                "trace_id": trace["trace_id"],
                "judge": judge,
                "workflow": trace["workflow"],
                "task": trace["task_key"],
                "stratum": trace["stratum"],
                **{name: _number(trace[name]) for name in ("cost_usd", "units", "ceiling_usd")},
                "started_at": None if pd.isna(trace["started_at"]) else trace["started_at"],
                "agent": "" if trace["agent"] == UNKNOWN else trace["agent"],
                "model": _text(trace["model"]),
                "steps": trace["n_steps"],
                "response_chars": lengths.get(trace["trace_id"]),
                "unseen_parts": unseen.get(str(trace["trace_id"]), 0),
                "simulated": bool(trace["simulated"]),
            }
            for row in of_trace:
                yield dict.fromkeys(VERDICT_COLUMNS) | about | _verdict_row(row)


def _response_lengths(store: Store, trace_ids: Sequence[str]) -> Iterator[tuple[str, int]]:
    for trace in _shown(store, trace_ids):
        yield trace.trace_id, len(trace.response or "")


def _shown(store: Store, trace_ids: Sequence[str]) -> Iterator[TraceForReview]:
    """Yield what reviewers see of traces, with the text of few of them in memory."""
    for start in range(0, len(trace_ids), TEXTS_HELD):
        yield from store.for_review(trace_ids[start : start + TEXTS_HELD])


def _verdict_row(verdict: Row) -> Row:
    grade = verdict.get("grade")
    return {
        "outcome": verdict["outcome"],
        "sample": int(verdict["sample"]),
        "of_all": bool(verdict.get("of_all")),
        "cause": _text(verdict.get("cause")),
        "prompt": _text(verdict.get("prompt")),
        "grade": None if pd.isna(grade) else int(grade),
        "reason": _text(verdict.get("reason")),
        "evidence": _listed(verdict.get("evidence")) or None,
    }


def posterior_table(store: Store, batch_id: str) -> TypedRows:
    """Return the probability of each class of each labelled trace, given its labels alone.

    Dawid-Skene, as `AgreementAnalysis.truth`: it knows no adjudication and no judge. The status
    says where there are too few labels to tell errors of reviewers from the truth.
    """
    data = load_batch(store, batch_id, sample=False)
    traces, codes, _ = planned_codes(data)
    truth = dawid_skene(codes, n_classes=len(data.classes))
    about = _about(
        store, "class probabilities given the labels", data.provenance.batch_id,
        method=truth.method, status=truth.status,
    )  # fmt: skip
    columns = {
        "trace_id": TEXT, "workflow": TEXT, "task_key": TEXT, "n_labels": WHOLE,
        **dict.fromkeys(data.classes, NUMBER), "likeliest": TEXT, "probability": NUMBER,
        "entropy_bits": NUMBER, "simulated": FLAG,
    }  # fmt: skip
    rows = (
        {
            "trace_id": trace["trace_id"],
            "workflow": trace["workflow"],
            "task_key": trace["task_key"],
            "n_labels": int((codes[k] >= 0).sum()),
            **dict(zip(data.classes, truth.posterior[k].tolist(), strict=True)),
            "likeliest": data.classes[int(truth.posterior[k].argmax())],
            "probability": float(truth.posterior[k].max()),
            "entropy_bits": float(truth.entropy[k]),
            "simulated": bool(trace["simulated"]),
        }
        for k, trace in enumerate(_records(traces))
    )
    return TypedRows(columns=columns, rows=rows, about=about)


# ---- scores

AS_LINE: Mapping[str, Callable[[PlatformScore], Row]] = {
    **AS_SCORE,
    inspect_ai.SOURCE: inspect_score,
}


def score_lines(
    store: Store, platform: str, batch_id: str | None, judge_id: str | None
) -> tuple[TypedRows, int]:
    """Return scores in the form that a platform takes, and how many traces are not of it.

    They are the consensus of a batch, or the verdicts of a judge; `platform` is the source of the
    traces, one of `AS_LINE`. A trace without a class has no score.

    Raises
    ------
    CalibrationError
        If no trace of the platform has a class, or as `consensus_scores` and `judge_scores`.
    """
    if judge_id is None:
        batch_id = pooled_id(store, batch_id)
        found = consensus_scores(store, platform, batch_id)
        said = consensus_table(store, batch_id).rows
        classed = sum(row["outcome"] is not None for row in said)
    else:
        found = judge_scores(store, platform, judge_id)
        verdicts = store.verdict_frame(judge_id)["outcome"]
        classed = int((verdicts != NO_VERDICT).sum())
    if not found:
        raise CalibrationError(
            f"no trace of {platform} has a class; {classed:,} of other sources have one"
        )
    lines = [AS_LINE[platform](score) for score in found]
    about = _about(store, f"scores for {platform}", found[0].batch_id, judge_id=judge_id)
    columns = dict.fromkeys(lines[0], TEXT)
    return TypedRows(columns=columns, rows=lines, about=about), classed - len(found)


# ---- training data

OF_REFERENCE = "of a task of the reference set, which is for practice and examinations"
NO_CLASS = "reviewers differ and nobody has decided"
TOO_LONG = "does not fit the context of the judge"
OF_ARM = "of a perturbed arm"


@dataclass(slots=True, kw_only=True)
class TrainingSet:
    """Conversations that end in the answer of people; `left_out` is complete once they are read.

    `prompt_of` names the judge whose prompt it is; None for that of a judge with all defaults.
    """

    found: TypedRows
    batch_ids: tuple[str, ...]
    prompt_of: str | None
    left_out: Counter[str] = field(default_factory=Counter)


def training_set(store: Store, batch_id: str, judge_id: str) -> TrainingSet:
    """Return what a judge reads of labelled traces, each with the answer of people behind it.

    A line is one call: the messages that the judge sends, and as the assistant's the answer that
    it should give. Only labels of development tasks are used, three tasks in ten. They are noted as
    spent: they correct the rate of this judge no more, and those of all other tasks still do. The
    store must be open for writing.

    Left out are traces whose reviewers differ without a decision, perturbed arms, and all runs of
    a task of the reference set, whose examinations a judge may sit.

    Parameters
    ----------
    store : Store
    batch_id : str
        As `pooled_id` names batches.
    judge_id : str
        The judge that is to be trained. One that the store runs gives its prompt; another name is
        that of a judge whose verdicts will be imported.

    Raises
    ------
    InputError
        If the judge asks for a plan first, which no label holds, or as `judge_of`.
    CalibrationError
        If no label may be used.
    """
    judge, known = _judge_to_train(store, judge_id)
    batches = [batch.batch_id for batch in batches_of(store, batch_id)]
    data = load_batch(store, TOGETHER.join(batches), sample=False, arms=True)
    found = TrainingSet(
        found=TypedRows(columns={}, rows=()),
        batch_ids=tuple(batches),
        prompt_of=judge_id if known else None,
    )
    chosen = _to_train_on(store, data, found.left_out)
    if not chosen:
        why = "; ".join(f"{n:,} {why}" for why, n in found.left_out.items())
        raise CalibrationError(f"no label may be used to train a judge ({why or 'none is there'})")
    for one in batches:
        store.spend_labels((judge_id,), one)
    columns: dict[str, pa.DataType] = {"messages": MESSAGES}
    if data.simulated:
        columns["simulated"] = FLAG
    found.found = TypedRows(
        columns=columns,
        rows=_lessons(store, judge, data, chosen, found.left_out),
        about=_about(
            store, "training data for a judge: messages, the last of them by people",
            data.provenance.batch_id, judge_id=judge_id, prompt_of=found.prompt_of,
        ),
    )  # fmt: skip
    return found


def _judge_to_train(store: Store, judge_id: str) -> tuple[TreeJudge, bool]:
    """Return the judge of this name, else one with all defaults, and which of them it is."""
    if judge_id in {stored.judge_id for stored in store.judges()}:
        entry, judge = judge_of(store, judge_id)
        if entry.version.plan == "plan_first":
            raise InputError(
                f"judge {judge_id!r} asks for a plan first, which no label holds; name a judge "
                "that answers in one call, or question by question"
            )
        return judge, True
    taxonomy = store.taxonomy()
    version = new_version(
        model=judge_id, endpoint="training", taxonomy=taxonomy, structured="plain",
        handbook=excerpts(store, taxonomy), token_limit=4_000,
    )  # fmt: skip
    return TreeJudge(version=version, taxonomy=taxonomy, capabilities=Capabilities()), False


def _to_train_on(store: Store, data: CalibrationData, left_out: Counter[str]) -> dict[str, int]:
    """Return the rows of the labelled traces that may be used, by trace; count the others."""
    reference = _reference(store).values()
    tasks = {of.task_key for of in reference}
    prompts = {of.prompt for of in reference}
    chosen: dict[str, int] = {}
    for k, trace in enumerate(_records(data.labelled)):
        if is_perturbed(_text(trace["perturbation"])):
            left_out[OF_ARM] += 1
        elif split_of(str(trace["task_key"])) != DEVELOPMENT:
            left_out[LOCKED] += 1
        elif data.human[k].max() < 1:
            left_out[NO_CLASS] += 1
        elif trace["task_key"] in tasks:
            left_out[OF_REFERENCE] += 1
        else:
            chosen[str(trace["trace_id"])] = k
    for shown in _shown(store, list(chosen)):
        if shown.prompt in prompts:
            left_out[OF_REFERENCE] += 1
            del chosen[shown.trace_id]
    return chosen


def _lessons(
    store: Store,
    judge: TreeJudge,
    data: CalibrationData,
    chosen: Mapping[str, int],
    left_out: Counter[str],
) -> Iterator[Row]:
    """Yield the conversations of the chosen traces."""
    settled = {
        of.trace_id: of
        for one in data.provenance.batch_id.split(TOGETHER)
        for of in settled_traces(store, one)
    }
    hashes = store.content_hashes(list(chosen))
    by_trace = data.labels[data.labels["trace_id"].isin(chosen)].groupby("trace_id")
    labels = {str(trace_id): _records(of) for trace_id, of in by_trace}
    for trace in _shown(store, list(chosen)):
        outcome = data.classes[int(data.human[chosen[trace.trace_id]].argmax())]
        same = [label for label in labels[trace.trace_id] if label["outcome"] == outcome]
        one = settled.get(trace.trace_id)
        reasons = [one and one.rationale, *(label["rationale"] for label in same)]
        reason = next((r.strip() for r in reasons if isinstance(r, str) and r.strip()), "")
        answer = _answer(trace, data.taxonomy.answers_for(outcome), reason, same)
        lessons = judge.lessons(trace, hashes[trace.trace_id], answer)
        if lessons is None:
            left_out[TOO_LONG] += 1
            continue
        for messages in lessons:
            yield {"messages": messages, "simulated": data.simulated}


STATE_OF = {"done": "met", "not_done": "missing"}


def _answer(
    trace: TraceForReview, answers: Mapping[str, str], reason: str, same: Sequence[Row]
) -> Row:
    """Return what people said of a trace in the form of a judge's answer.

    The reason and the quotes are at the question that decided; where nobody said anything, a field
    is empty.
    """
    quotes, places = Quotes(trace), {p.place: p.label for p in pieces_of(trace) if p.label != "G"}
    stands = {
        (places[item["step_id"]], item["quote"]): None
        for label in same
        for item in _listed(label["evidence"])
        if item["step_id"] in places
        and quotes.checked(places[item["step_id"]], item["quote"]).state == "verified"
    }
    *_, last = answers
    goals: list[Row] = [json.loads(_text(label["sub_goals"]) or "{}") for label in same]
    marked, broken = next(filter(None, goals), {}), [_listed(of["violations"]) for of in same]
    return {
        node: {
            "reason": reason if node == last else "",
            "evidence": [{"step": s, "quote": q} for s, q in stands] if node == last else [],
            "answer": said,
        }
        for node, said in answers.items()
    } | {
        "subgoals": [
            {"n": n, "state": STATE_OF[marked[goal.id]], "step": None, "quote": None}
            for n, goal in enumerate(trace.sub_goals, 1)
            if marked.get(goal.id) in STATE_OF
        ],
        "violations": [
            {
                "constraint": of["constraint"],
                "severity": of["severity"],
                "step": places.get(of["step"], ""),
            }
            for of in next(filter(None, broken), [])
        ],
    }


def _records(frame: pd.DataFrame) -> list[Row]:
    return [{str(name): cell for name, cell in row.items()} for row in frame.to_dict("records")]


def _listed(stored: object) -> list[Any]:
    """Return a list that is stored as JSON; empty where it is missing."""
    found: list[Any] = json.loads(_text(stored) or "[]")
    return found


def _number(value: Any) -> float | None:
    return None if pd.isna(value) else float(value)


def _text(value: object) -> str:
    """Return the text of a cell, empty if missing (None or NaN)."""
    return value if isinstance(value, str) else ""


# ---- dataset

SPLITS = (DEVELOPMENT, CERTIFICATION)
STEPS = pa.list_(
    pa.struct({
        "step_id": TEXT, "role": TEXT, "content": TEXT, "tool": TEXT, "arguments": TEXT,
        "result": TEXT, "error": FLAG,
    })
)  # fmt: skip
TRACE_COLUMNS = {
    "trace_id": TEXT, "workflow": TEXT, "task": TEXT, "prompt": TEXT,
    "inputs": pa.list_(pa.struct({"name": TEXT, "text": TEXT})),
    "sub_goals": pa.list_(pa.struct({"id": TEXT, "text": TEXT, "matters": FLAG})),
    "steps": STEPS, "response": TEXT, "status": TEXT, "outcome": TEXT, "basis": TEXT,
    "n_labels": WHOLE, "weight": NUMBER, "simulated": FLAG,
}  # fmt: skip


@dataclass(frozen=True, slots=True, kw_only=True)
class Dataset:
    """Tables by config and split, and the number of traces left out."""

    tables: Mapping[tuple[str, str], TypedRows]
    left_out: int


def dataset_of(store: Store, batch_id: str, judge_id: str | None) -> Dataset:
    """Return a dataset: labelled traces, their labels, and the verdicts of a judge.

    Traces and labels are split by task, as labels are for judges: development, three tasks in ten,
    and certification. Reviewers are numbered, and what they and adjudicators wrote stays. Traces
    are as reviewers see them, labelled ones alone, without those of tasks of the team's own
    reference set, whose answers would be shared. Without a judge there are no verdicts.
    """
    known, left_out = published_set().traces, 0
    examined = {of.task_key for i, of in _reference(store).items() if i not in known}
    consensus = consensus_table(store, batch_id)
    of_split: dict[str, list[Row]] = {name: [] for name in SPLITS}
    for row in consensus.rows:
        if row["task"] in examined:
            left_out += 1
        elif not is_perturbed(row["perturbation"]):
            of_split[split_of(str(row["task"]))].append(row)
    number: dict[str, str] = {}
    labels: dict[str, list[Row]] = {name: [] for name in SPLITS}
    split = {row["trace_id"]: name for name, of in of_split.items() for row in of}
    for row in label_table(store, batch_id).rows:
        if row["trace_id"] in split:
            who = row["reviewer"]
            who = number.setdefault(who, f"reviewer {len(number) + 1}")
            labels[split[row["trace_id"]]].append(row | {"reviewer": who})
    found: dict[tuple[str, str], TypedRows] = {}
    for name in SPLITS:
        rows = _trace_rows(store, of_split[name])
        found["traces", name] = TypedRows(
            columns=TRACE_COLUMNS, rows=rows, about=consensus.about | {"what": "labelled traces"}
        )
    for name in SPLITS:
        found["labels", name] = TypedRows(
            columns=LABEL_COLUMNS, rows=labels[name], about=consensus.about | {"what": "labels"}
        )
    if judge_id is not None:
        found["verdicts", "production"] = verdict_table(store, batch_id, judge_id)
    return Dataset(tables=found, left_out=left_out)


def _reference(store: Store) -> Mapping[str, Trace]:
    """Return the traces of the reference set, the team's own and private ones among them."""
    return team_reference(store.path, store.taxonomy(), to_examine=True).traces


def _trace_rows(store: Store, consensus: Sequence[Row]) -> Iterator[Row]:
    """Yield what reviewers see of traces, with their consensus."""
    by_id = {row["trace_id"]: row for row in consensus}
    for trace in _shown(store, list(by_id)):
        row = by_id[trace.trace_id]
        yield {name: row.get(name) for name in TRACE_COLUMNS} | {
            "prompt": trace.prompt,
            "inputs": [asdict(item) for item in trace.inputs],
            "sub_goals": [asdict(goal) for goal in trace.sub_goals],
            "steps": [
                {part.name: getattr(step, part.name) for part in STEPS.value_type}
                for step in trace.steps
            ],
            "response": trace.response,
            "status": trace.status,
        }
