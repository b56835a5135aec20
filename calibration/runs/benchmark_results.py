"""Result files of benchmarks as runs: SWE-bench, BFCL, MLE-bench, Terminal-Bench and Harbor.

Such a file says of each run whether it passed, and has no steps. A file is recognised by its
content. Each run becomes a row of text, as in a file of runs; its outcome is one of `WORDS`, which
are taken as classes of the taxonomy where rows are read. docs/trace-format.md describes the files.
"""

import hashlib
import re
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from calibration.errors import InputError
from calibration.files import open_file, parse_json

BENCHMARKS = ("SWE-bench", "BFCL", "MLE-bench", "Terminal-Bench", "Harbor")

# What a result file says of a run; a run that ended without output is an error.
WORDS = PASSED, NOT_PASSED, ERROR = "true", "false", "error"

COLUMNS = (
    "trace_id", "workflow", "task_id", "trial", "outcome", "model", "agent_version", "cost_usd",
    "latency_s", "started_at", "status", "category", "any_medal", "above_median", "line",
)  # fmt: skip

MAX_RESULT_BYTES = 100_000_000
MAX_RESULTS = 200_000
MAX_VALUES = 5_000_000
MOST_CHARACTERS = 4_096  # of a cell
TOLERANCE = 1e-6  # of a reward of 1 or 0
_UNSTORABLE = re.compile("[\x00\ud800-\udfff]")
_BFCL_NAME = re.compile(r"BFCL_v\d+_(?P<category>.+)_score")
_NO_FAILURE = ("", "unset", "none")

Result = dict[str, str | None]
Document = Mapping[str, Any]


class NoResultsError(InputError):
    """The file is no result file of a benchmark."""


def benchmark_results(path: Path) -> list[Result]:
    """Return the runs of a result file, each with all `COLUMNS`; a missing value is None.

    Raises
    ------
    NoResultsError
        If the file is too large, is not JSON, or is of none of `BENCHMARKS`.
    InputError
        If it is of one of them and cannot be used.
    """
    data = _content(path)
    document = _document(path, data)
    for recognised, read in _FORMATS:
        if recognised(document):
            found = list(read(path, document, data))
            if len(found) > MAX_RESULTS:
                raise InputError(f"{path}: has {len(found):,} runs, {MAX_RESULTS:,} at most")
            empty: Result = dict.fromkeys(COLUMNS)
            return [empty | run | {"line": str(k)} for k, run in enumerate(found, 1)]
    raise NoResultsError(f"{path}: is of no known benchmark; {_expected()}")


def _document(path: Path, data: str) -> Document:
    """Return the object of a file; of BFCL, which has an object a line, the first."""
    try:
        first = _object(parse_json(data.partition("\n")[0]))
    except InputError:  # an object of several lines
        first = {}
    if _is_bfcl(first):
        return first
    if data.count(",") > MAX_VALUES:
        raise NoResultsError(f"{path}: has more than {MAX_VALUES:,} values; {_expected()}")
    try:
        return _object(parse_json(data))
    except InputError as error:
        raise NoResultsError(f"{path}: {error}; {_expected()}") from error


def _expected() -> str:
    known = f"{', '.join(BENCHMARKS[:-1])} or {BENCHMARKS[-1]}"
    return f"a .json file holds a list of runs, or results of {known}"


def _content(path: Path) -> str:
    try:
        with open_file(path, most=MAX_RESULT_BYTES) as file:
            return str(file.read(MAX_RESULT_BYTES), "utf-8-sig")
    except UnicodeDecodeError as error:
        raise NoResultsError(f"{path}: is not UTF-8 (byte {error.start})") from error
    except InputError as error:
        raise NoResultsError(str(error)) from error


def _object(value: object) -> Document:
    return value if isinstance(value, dict) else {}


def _list(value: object) -> Sequence[Any]:
    return value if isinstance(value, list) else ()


def _text(value: object) -> str | None:
    """Return a value as the text of a cell; lists and objects as their kind."""
    if value is None or isinstance(value, str):
        text = value or ""
    elif isinstance(value, bool):
        text = str(value).lower()
    else:
        text = str(value) if isinstance(value, int | float) else f"a {type(value).__name__}"
    return _UNSTORABLE.sub("\ufffd", text)[:MOST_CHARACTERS].strip() or None


def _id(value: object) -> str | None:
    """Return a value that can name a run or a task, else None."""
    return _text(value) if isinstance(value, str | int) and not isinstance(value, bool) else None


def _named(*parts: str | None) -> str | None:
    """Return an id of several parts; None where one is missing."""
    known = [part for part in parts if part]
    return "/".join(known) if len(known) == len(parts) else None


# ---- SWE-bench: the report of a run, and that of single instances


def _is_swe_run(document: Document) -> bool:
    return isinstance(document.get("resolved_ids"), list) and not (
        {"unresolved_ids", "completed_ids"}.isdisjoint(document)
    )


def _swe_run(path: Path, document: Document, _: str) -> Iterator[Result]:
    resolved = _list(document["resolved_ids"])
    there = {_id(one) for one in resolved}
    rest = [one for one in _list(document.get("completed_ids")) if _id(one) not in there]
    groups = (
        (PASSED, resolved),
        (NOT_PASSED, _list(document.get("unresolved_ids", rest))),
        (ERROR, [*_list(document.get("error_ids")), *_list(document.get("empty_patch_ids"))]),
        (None, _list(document.get("incomplete_ids"))),
    )
    model, _, run = path.stem.rpartition(".")
    for outcome, ids in groups:
        for one in ids:
            yield _swe(_text(model or run), _text(run), _id(one), outcome)


def _is_swe_instances(document: Document) -> bool:
    known = {"patch_exists", "patch_successfully_applied"}
    return bool(document) and all(
        isinstance(of, dict) and "resolved" in of and not known.isdisjoint(of)
        for of in document.values()
    )


def _swe_instances(path: Path, document: Document, _: str) -> Iterator[Result]:
    # logs/run_evaluation/RUN/MODEL/INSTANCE/report.json
    folder = path.resolve().parent
    placed = folder.name in document
    model, run = (folder.parent.name, folder.parent.parent.name) if placed else (None, None)
    for instance, of in document.items():
        missing = of.get("patch_is_None") is True or of.get("patch_exists") is False
        outcome = _passed(of["resolved"])
        outcome = ERROR if missing and outcome != PASSED else outcome
        yield _swe(_text(model), _text(run), _id(instance), outcome)


def _swe(model: str | None, run: str | None, instance: str | None, outcome: str | None) -> Result:
    return {
        "trace_id": _named(*filter(None, (model, run)), instance),
        "workflow": "swe-bench",
        "task_id": instance,
        "trial": run,
        "outcome": outcome,
        "model": model,
    }


def _passed(value: object) -> str | None:
    """Return the word for a truth value; another value is left as it is, to be set aside."""
    return (PASSED if value else NOT_PASSED) if isinstance(value, bool) else _text(value)


# ---- BFCL: a line of counts, and a line for each entry that failed


def _is_bfcl(document: Document) -> bool:
    return {"accuracy", "correct_count", "total_count"} <= document.keys()


def _bfcl(path: Path, document: Document, data: str) -> Iterator[Result]:
    """Yield runs without a task: those that passed have no name in the file."""
    failed: dict[str | None, Document] = {}
    for number, line in enumerate(data.splitlines(), 1):
        if number > 1 and line.strip():
            try:
                entry = _object(parse_json(line))
            except InputError as error:
                raise InputError(f"{path}, line {number}: {error}") from error
            failed.setdefault(_id(entry.get("id")), entry)
    passed, total = document["correct_count"], document["total_count"]
    whole = all(isinstance(n, int) and not isinstance(n, bool) for n in (passed, total))
    if not whole or passed < 0 or passed + len(failed) != total:
        raise InputError(
            f"{path}: {passed!r:.20} of {total!r:.20} entries passed, and the file lists "
            f"{len(failed):,} that failed; is it whole?"
        )
    if passed > MAX_RESULTS:
        raise InputError(f"{path}: has {passed:,} runs, {MAX_RESULTS:,} at most")
    first = next(iter(failed.values()), {})
    name = _BFCL_NAME.match(path.stem)
    category = _text(first.get("test_category") or (name and name["category"]))
    model = _text(first.get("model_name") or path.resolve().parent.name)
    # Ids of entries are the same in every file: without this, files of two models would have
    # the same runs, of which only those that failed would be known by name.
    digest = hashlib.sha256(data.encode("utf-8", "replace")).hexdigest()[:12]
    common: Result = {"workflow": "bfcl", "model": model, "category": category}
    for one in failed:
        yield common | {"trace_id": _named(digest, one), "outcome": NOT_PASSED}
    for k in range(passed):
        yield common | {"trace_id": f"{digest}/passed-{k + 1}", "outcome": PASSED}


# ---- MLE-bench: the grading report


def _is_mle(document: Document) -> bool:
    return isinstance(document.get("competition_reports"), list)


def _mle(path: Path, document: Document, _: str) -> Iterator[Result]:
    seen: Counter[str | None] = Counter()
    for one in map(_object, document["competition_reports"]):
        task = _id(one.get("competition_id"))
        seen[task] += 1
        trial = f"{path.stem}/{seen[task]}"
        absent = one.get("submission_exists") is False
        yield {
            "trace_id": _named(trial, task),
            "workflow": "mle-bench",
            "task_id": task,
            "trial": trial,
            "outcome": ERROR if absent else _passed(one.get("any_medal")),
            "any_medal": _passed(one.get("any_medal")),
            "above_median": _passed(one.get("above_median")),
        }


# ---- Terminal-Bench: results.json of a run, or of one trial


def _is_terminal_trial(document: Document) -> bool:
    return {"is_resolved", "task_id", "trial_name"} <= document.keys()


def _is_terminal_run(document: Document) -> bool:
    results = _list(document.get("results"))
    return bool(results) and all(_is_terminal_trial(_object(one)) for one in results[:5])


def _terminal(_: Path, document: Document, __: str) -> Iterator[Result]:
    for one in map(_object, _list(document.get("results")) or [document]):
        mode = _text(one.get("failure_mode")) or ""
        ended = mode not in _NO_FAILURE or one.get("is_resolved") is None
        outcome = _passed(one.get("is_resolved"))
        yield {
            "trace_id": _id(one.get("id")) or _id(one.get("trial_name")),
            "workflow": "terminal-bench",
            "task_id": _id(one.get("task_id")),
            "trial": _id(one.get("trial_name")),
            "outcome": ERROR if ended and outcome != PASSED else outcome,
            "latency_s": _seconds(one, "agent_started_at", "agent_ended_at"),
            "started_at": _text(one.get("trial_started_at")),
            "status": mode if mode not in _NO_FAILURE else None,
        }


def _seconds(of: Document, begin: str, end: str) -> str | None:
    """Return the seconds between two times; None where one is missing or no time."""
    try:
        times = [datetime.fromisoformat(str(of.get(name))) for name in (begin, end)]
        one, two = (at if at.tzinfo else at.replace(tzinfo=UTC) for at in times)
        return str((two - one).total_seconds())
    except (ValueError, OverflowError):
        return None


# ---- Harbor: result.json of one trial


def _is_harbor(document: Document) -> bool:
    return {"task_name", "trial_name"} <= document.keys() and not (
        {"verifier_result", "exception_info"}.isdisjoint(document)
    )


def _harbor(_: Path, document: Document, __: str) -> Iterator[Result]:
    agent, context = (_object(document.get(name)) for name in ("agent_info", "agent_result"))
    model = _object(agent.get("model_info"))
    maker, name = _id(model.get("provider")), _id(model.get("name"))
    phase = _object(document.get("agent_execution")) or document
    error = _object(document.get("exception_info"))
    rewards = _object(_object(document.get("verifier_result")).get("rewards"))
    outcome = _rewarded(rewards)
    yield {
        "trace_id": _id(document.get("id")) or _id(document.get("trial_name")),
        "workflow": _id(document.get("source")) or "harbor",
        "task_id": _id(document.get("task_name")),
        "trial": _id(document.get("trial_name")),
        "outcome": ERROR if outcome is None or (error and outcome != PASSED) else outcome,
        "model": _named(maker, name) or name,
        "agent_version": " ".join(filter(None, (_id(agent.get(k)) for k in ("name", "version")))),
        "cost_usd": _text(context.get("cost_usd")),
        "latency_s": _seconds(phase, "started_at", "finished_at"),
        "started_at": _text(document.get("started_at")),
        "status": _text(error.get("exception_type")),
    }


def _rewarded(rewards: Document) -> str | None:
    """Return the word for the reward of 1 or 0; another reward is left as it is."""
    value = rewards.get("reward", next(iter(rewards.values())) if len(rewards) == 1 else None)
    if isinstance(value, int | float) and not isinstance(value, bool):
        for target, word in ((1, PASSED), (0, NOT_PASSED)):
            if abs(value - target) <= TOLERANCE:
                return word
        return f"reward {value!r:.40}"
    return _passed(value)


def _is_harbor_job(document: Document) -> bool:
    return "n_total_trials" in document and isinstance(document.get("stats"), dict)


def _harbor_job(path: Path, _: Document, __: str) -> Iterator[Result]:
    raise InputError(
        f"{path}: is the summary of a Harbor job; name the results of its trials: "
        f"'{path.parent}/*/result.json'"
    )


_FORMATS: tuple[
    tuple[Callable[[Document], bool], Callable[[Path, Document, str], Iterator[Result]]], ...
] = (
    (_is_bfcl, _bfcl),
    (_is_terminal_run, _terminal),
    (_is_terminal_trial, _terminal),
    (_is_harbor, _harbor),
    (_is_harbor_job, _harbor_job),
    (_is_mle, _mle),
    (_is_swe_run, _swe_run),
    (_is_swe_instances, _swe_instances),
)
