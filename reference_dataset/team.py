"""A team's own layer on the published dataset, in a folder beside its store.

The published files are never changed. What a team adds or decides otherwise is kept apart:
whole sets under ``sets/NAME``, and labels decided otherwise, each with its reason, in
``overrides.jsonl``; the last word on a trace counts.
"""

import json
import shutil
from dataclasses import asdict, dataclass, replace
from datetime import UTC, datetime
from pathlib import Path

from calibration.errors import InputError
from calibration.taxonomy import Taxonomy, default_taxonomy
from reference_dataset.loader import (
    SECOND_PASS,
    SETTLEMENTS,
    ReferenceSet,
    all_rows,
    forms,
    load_reference,
    rows,
)
from reference_dataset.records import FORMS
from reference_dataset.validator import own_problems

FILES = ("labels.jsonl", "forms.toml")
READINGS = (SECOND_PASS, SETTLEMENTS)  # a set may have none
PRIVATE = "PRIVATE"


@dataclass(frozen=True, slots=True, kw_only=True)
class Override:
    """A published label that a team has decided otherwise."""

    trace_id: str
    outcome: str
    reason: str
    at: str


@dataclass(frozen=True, slots=True, kw_only=True)
class AddedSet:
    """A set that was added: its traces, and how many have task and answer of a published one."""

    n: int
    n_published: int


def layer(store: Path) -> Path:
    """Return the folder of a store's own layer; it may not exist."""
    return store.with_suffix(".reference")


def team_reference(store: Path, taxonomy: Taxonomy, *, to_examine: bool = False) -> ReferenceSet:
    """Return the published dataset with the sets and the decisions of a team on top.

    The published traces belong to the published classes: a rubric with others has a team's own sets
    alone, those that it labels. The labels of private sets are left out unless it is `to_examine`
    by.
    """
    base = load_reference()
    if set(taxonomy.names) != set(default_taxonomy().names):
        base = ReferenceSet(traces={}, labels={}, forms=dict.fromkeys(FORMS, ()))
    traces, labels, forms = dict(base.traces), dict(base.labels), dict(base.forms)
    for folder in _sets(store):
        own = load_reference(folder)
        if not {label.outcome for label in own.labels.values()} <= set(taxonomy.names):
            continue  # of a rubric that was in force before
        traces |= own.traces
        # A private set is for examining: its labels are shown to nobody who practises.
        labels |= own.labels if to_examine or not _hidden(folder) else {}
        for form in FORMS:
            if own.forms[form]:
                forms[f"{folder.name}/{form}"] = own.forms[form]
    for override in overrides(store):
        published = labels.get(override.trace_id)
        if published is not None:
            labels[override.trace_id] = replace(
                published,
                answers=taxonomy.answers_for(override.outcome),
                outcome=override.outcome,
                overridden=override.reason,
            )
    return replace(base, traces=traces, labels=labels, forms=forms)


def private_traces(store: Path) -> frozenset[str]:
    """Return the traces of a team's private sets."""
    return frozenset(i for s in _sets(store) if _hidden(s) for i in load_reference(s).traces)


def _hidden(folder: Path) -> bool:
    return (folder / PRIVATE).exists()


def _sets(store: Path) -> list[Path]:
    folder = layer(store) / "sets"
    return sorted(p for p in folder.iterdir() if p.is_dir()) if folder.exists() else []


def add_set(
    store: Path,
    folder: Path,
    *,
    name: str,
    private: bool,
    taxonomy: Taxonomy | None = None,
    rename: str | None = None,
) -> AddedSet:
    """Copy a team's own set beside the store.

    Its labels are by the questions of `taxonomy`, the default one without it. With `rename` every
    id begins with this prefix and a hyphen, in traces, labels, forms and readings alike.

    Raises
    ------
    InputError
        If the set breaks a rule that its labels depend on, its name is taken or no plain
        name, or one of its traces has the id of a trace that is there.
    """
    for what, given in (("name", name), ("the prefix of --rename", rename)):
        if given is not None and not given.isidentifier():
            raise InputError(f"{what} must be letters, digits and _, got {given!r}")
    target = layer(store) / "sets" / name
    if target.exists():
        raise InputError(f"{target}: a set of this name exists already; choose another --name")
    broken = own_problems(folder, taxonomy=taxonomy)
    if broken:
        raise InputError(f"{broken[0]} (and {len(broken) - 1} more); nothing was added")
    own = load_reference(folder)
    published = load_reference().traces
    taken = {i for s in _sets(store) for i in load_reference(s).traces} | set(published)
    new = {_renamed(trace_id, rename): trace for trace_id, trace in own.traces.items()}
    clash = sorted(set(new) & taken)
    if clash:
        raise InputError(
            f"{folder}: the id {clash[0]!r} is taken; give the traces ids of their own, or all a "
            f"{'' if rename is None else 'different '}prefix with --rename PREFIX"
        )
    temporary = target.with_name(f".{name}")
    shutil.rmtree(temporary, ignore_errors=True)
    shutil.copytree(folder / "traces", temporary / "traces")
    for file in (*FILES, *(file for file in READINGS if (folder / file).exists())):
        shutil.copy(folder / file, temporary / file)
    if rename is not None:
        _rename(temporary, rename)
    if private:
        (temporary / PRIVATE).touch()
    temporary.replace(target)
    known = {(trace.prompt, trace.response) for trace in published.values()}
    return AddedSet(
        n=len(new), n_published=sum((t.prompt, t.response) in known for t in new.values())
    )


def _renamed(trace_id: str, prefix: str | None) -> str:
    return trace_id if prefix is None else f"{prefix}-{trace_id}"


def _rename(folder: Path, prefix: str) -> None:
    """Give every trace of a set another id, in all of its files."""
    files = [*(folder / "traces").glob("*.jsonl"), *(folder / f for f in (FILES[0], *READINGS))]
    for path in (file for file in files if file.exists()):
        lines = []
        for row in all_rows(path):
            data = dict(row.data)
            if "trace_id" in data:  # not the header
                data["trace_id"] = _renamed(str(data["trace_id"]), prefix)
            lines.append(json.dumps(data) + "\n")
        path.write_text("".join(lines), encoding="utf-8")
    parts = [
        f"[{form}]\ntraces = {json.dumps([_renamed(i, prefix) for i in ids])}\n"
        for form, ids in forms(folder).items()
        if ids
    ]
    (folder / FILES[1]).write_text("\n".join(parts), encoding="utf-8")


def override_label(
    store: Path, taxonomy: Taxonomy, *, trace_id: str, outcome: str, reason: str
) -> Override:
    """Decide a label otherwise, for this team; the published label stays as it is.

    Raises
    ------
    InputError
        If there is no such trace or class, or the reason is missing.
    """
    known = team_reference(store, taxonomy).labels
    if trace_id not in known:
        raise InputError(f"no trace {trace_id!r} with a label; ids run like {min(known)!r}")
    taxonomy.answers_for(outcome)
    if not reason.strip():
        raise InputError("reason must say why the published label does not hold for your team")
    at = datetime.now(UTC).isoformat(timespec="seconds")
    entry = Override(trace_id=trace_id, outcome=outcome, reason=reason.strip(), at=at)
    path = layer(store) / "overrides.jsonl"
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("a", encoding="utf-8") as handle:
        handle.write(json.dumps(asdict(entry), ensure_ascii=False) + "\n")
    return entry


def overrides(store: Path) -> list[Override]:
    """Return every label that the team has decided otherwise, oldest first."""
    path = layer(store) / "overrides.jsonl"
    return [Override(**row.data) for row in rows(path)] if path.exists() else []
