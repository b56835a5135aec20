"""Prove that a dataset keeps every rule, or name file, line and rule of what is broken."""

import hashlib
import json
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import asdict
from functools import cache, lru_cache
from importlib.resources import files
from pathlib import Path
from typing import Any

from jsonschema import Draft202012Validator

from calibration.records import Trace
from calibration.taxonomy import Taxonomy, default_taxonomy
from calibration.trace_formats import ImportSettings, Parsed, read_traces
from reference_dataset.loader import (
    LABELS,
    SECOND_PASS,
    SETTLEMENTS,
    UnreadableError,
    all_rows,
    forms,
    published,
    rows,
    trace_files,
)
from reference_dataset.records import Problem, Row
from reference_dataset.set_rules import Rows, set_problems
from reference_dataset.trace_rules import LABEL_RULES, TRACE_RULES

CHECKSUMS = "SHA256SUMS"


def validate(folder: Path | None = None, *, taxonomy: Taxonomy | None = None) -> list[Problem]:
    """Return every broken rule of a dataset; an empty list is the proof that there is none.

    Rules about the contents are checked only on rows that have the right form: a row that
    breaks the schema is named for that and left out of the rest. Rules about the whole set
    are checked once every row has the right form: a row left out would break several of them.
    """
    folder = folder or published()
    taxonomy = taxonomy or default_taxonomy()
    problems: list[Problem] = []
    traces: list[Row] = []
    try:
        for path in trace_files(folder):
            traces += _well_formed(path, "trace", problems)
        labels = _well_formed(folder / LABELS, "label", problems)
        readings = _well_formed_if_there(folder / SECOND_PASS, "second_reading", problems)
        settlements = _well_formed_if_there(folder / SETTLEMENTS, "settlement", problems)
        forms_found = forms(folder)
    except UnreadableError as error:
        unread = Problem(file=error.file, line=error.line, rule="files", message=error.reason)
        return [*problems, unread]
    well_formed = not problems
    by_id = {row.data["trace_id"]: row for row in traces}
    for row in labels:
        trace = by_id.get(row.data["trace_id"])
        if trace is not None:
            problems += _trace_problems(row, trace, taxonomy)
    if well_formed:
        whole = Rows(
            traces=traces,
            labels=labels,
            forms=forms_found,
            readings=readings,
            settlements=settlements,
            taxonomy=taxonomy,
        )
        problems += set_problems(whole)
    problems += _checksum_problems(folder)
    return problems


def own_problems(folder: Path, *, taxonomy: Taxonomy | None = None) -> list[Problem]:
    """Return what is wrong with a team's own set: trace records, with a label and a form each.

    Any trace record will do. A label needs the answers of the taxonomy, the class that they lead to
    and a rationale; quotes stand in the trace. How the published set is composed is no rule here.
    """
    taxonomy = taxonomy or default_taxonomy()
    problems: list[Problem] = []
    try:
        traces = _own_traces(folder, problems)
        labels = _own_labels(folder, traces, taxonomy, problems)
        held = Counter(trace_id for form in forms(folder).values() for trace_id in form)
    except UnreadableError as error:
        unread = Problem(file=error.file, line=error.line, rule="files", message=error.reason)
        return [*problems, unread]
    for trace_id in sorted({*traces, *labels, *held}):
        for missing, rule, why in (
            (trace_id not in traces, "labels", "is no trace of the set"),
            (trace_id not in labels, "labels", "has no label"),
            (held[trace_id] != 1, "forms", f"is in {held[trace_id]} forms, it must be in one"),
        ):
            if missing:
                problems.append(
                    Problem(file=folder.name, line=None, rule=rule, message=f"{trace_id} {why}")
                )
    return problems


def _own_traces(folder: Path, problems: list[Problem]) -> dict[str, Trace]:
    """Return the traces that can be read; name the lines that cannot."""
    found: dict[str, Trace] = {}
    for path in trace_files(folder):
        for item in read_traces(path, ImportSettings()):
            if isinstance(item, Parsed) and item.trace.trace_id not in found:
                found[item.trace.trace_id] = item.trace
            else:
                twice = "a trace of another file has this id"
                why = twice if isinstance(item, Parsed) else item.reason
                problems.append(Problem(file=path.name, line=item.line, rule="schema", message=why))
    return found


def _own_labels(
    folder: Path, traces: Mapping[str, Trace], taxonomy: Taxonomy, problems: list[Problem]
) -> set[str]:
    """Return the traces with a label; name the labels that break a rule."""
    found: set[str] = set()
    for row in rows(folder / LABELS):
        broken = [("schema", why) for why in _form_errors("own_label", json.dumps(row.data))]
        trace_id = str(row.data["trace_id"])
        if not broken and trace_id in found:
            broken = [("ids", f"{trace_id} occurs twice")]
        found.add(trace_id)
        if not broken and trace_id in traces:
            shown = asdict(traces[trace_id])
            broken = [
                (rule, f"{trace_id}: {why}")
                for rule in ("answers", "quotes")
                for why in TRACE_RULES[rule](shown, row.data, taxonomy)
            ]
        problems += [
            Problem(file=row.file, line=row.line, rule=rule, message=why) for rule, why in broken
        ]
    return found


def _well_formed(path: Path, kind: str, problems: list[Problem]) -> list[Row]:
    """Return the rows of a file that keep the schema; name the others."""
    good = []
    listed = list(all_rows(path))
    if not listed:
        problems.append(Problem(file=path.name, line=None, rule="schema", message="has no header"))
    for number, row in enumerate(listed):
        broken = _form_errors("header" if number == 0 else kind, json.dumps(row.data))
        problems += [
            Problem(file=row.file, line=row.line, rule="schema", message=text) for text in broken
        ]
        if not broken and number > 0:
            good.append(row)
    return good


def _well_formed_if_there(path: Path, kind: str, problems: list[Problem]) -> list[Row]:
    return _well_formed(path, kind, problems) if path.exists() else []


@lru_cache(maxsize=1024)
def _form_errors(kind: str, text: str) -> tuple[str, ...]:
    """Return what is wrong with the form of a row, given as JSON; asked again it costs nothing."""
    return tuple(
        f"{'/'.join(map(str, error.absolute_path)) or kind}: {error.message[:200]}"
        for error in _schema(kind).iter_errors(json.loads(text))
    )


@cache
def _schema(kind: str) -> Draft202012Validator:
    text = files("reference_dataset").joinpath("schema.json").read_text(encoding="utf-8")
    schema: dict[str, Any] = json.loads(text)
    return Draft202012Validator({"$ref": f"#/$defs/{kind}", "$defs": schema["$defs"]})


def _trace_problems(label: Row, trace: Row, taxonomy: Taxonomy) -> Iterator[Problem]:
    for name, rule in TRACE_RULES.items():
        row = label if name in LABEL_RULES else trace
        for message in rule(trace.data, label.data, taxonomy):
            yield Problem(
                file=row.file,
                line=row.line,
                rule=name,
                message=f"{row.data['trace_id']}: {message}",
            )


def checksums(folder: Path) -> str:
    """Return the lines of SHA256SUMS for the files of a dataset as they are now."""
    paths = [*trace_files(folder), folder / LABELS, folder / "forms.toml"]
    paths += [path for name in (SECOND_PASS, SETTLEMENTS) if (path := folder / name).exists()]
    return "".join(
        f"{hashlib.sha256(path.read_bytes()).hexdigest()}  {path.relative_to(folder).as_posix()}\n"
        for path in paths
    )


def _checksum_problems(folder: Path) -> Iterator[Problem]:
    path = folder / CHECKSUMS
    if not path.exists():
        yield Problem(file=CHECKSUMS, line=None, rule="checksums", message="is missing")
        return
    stored = path.read_text(encoding="utf-8", errors="replace").splitlines()
    now = checksums(folder).splitlines()
    for name in (line.partition("  ")[2] for line in now if line not in stored):
        yield Problem(
            file=CHECKSUMS, line=None, rule="checksums", message=f"{name} has changed since"
        )
    there = {line.partition("  ")[2] for line in now}
    for number, name in enumerate((line.partition("  ")[2] for line in stored), 1):
        if name not in there:
            yield Problem(
                file=CHECKSUMS, line=number, rule="checksums", message=f"no file {name!r}"
            )
