"""Common parts of all importers: settings, the parsed item, limits on one trace."""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import datetime, tzinfo
from pathlib import Path
from typing import Any
from zoneinfo import ZoneInfo

from calibration.errors import InputError
from calibration.files import read_toml
from calibration.records import SetAside, Trace, Verdict, Workflow
from calibration.taxonomy import Taxonomy, default_taxonomy
from calibration.trace_formats.fields import FieldError, graded, note

MAX_TRACE_BYTES = 20_000_000
MAX_FIELD_BYTES = 2_000_000
MAX_STEPS = 2_000
MAX_NAME = 200
MAX_COST_USD = 1_000_000.0
MAX_REVIEWER = 80


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkflowRule:
    """Rule for a workflow name in a file: its new name (None: same), ceiling per unit, and unit."""

    name: str | None = None
    ceiling_usd: float | None = None
    unit: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ImportSettings:
    """Settings of an import.

    `workflow` of every run overrides the mapping and the file. `ceiling_usd` (per unit) and `unit`
    apply to workflows without a rule in `workflows`, by the name in the file. `timezone` is the
    IANA zone of times without an offset, UTC when None. With `leave_out_unseen`, runs with parts
    that reviewers cannot see are set aside. Grades map to the classes of `taxonomy`.

    Raises InputError if the time zone is unknown, a name is blank or a ceiling is not a number
    above 0.

    Examples
    --------
    >>> rule = WorkflowRule(name="flights", ceiling_usd=0.05, unit="call")
    >>> settings = ImportSettings(workflows={"airline": rule})
    >>> settings.workflow_record(settings.workflow_for("airline"))
    Workflow(name='flights', ceiling_usd=0.05, unit='call')
    """

    workflow: str | None = None
    ceiling_usd: float | None = None
    unit: str | None = None
    timezone: str | None = None
    workflows: Mapping[str, WorkflowRule] = field(default_factory=dict)
    leave_out_unseen: bool = False
    taxonomy: Taxonomy = field(default_factory=default_taxonomy)

    def __post_init__(self) -> None:
        if self.timezone is not None:
            _zone(self.timezone)
        rules = [WorkflowRule(name=self.workflow, ceiling_usd=self.ceiling_usd, unit=self.unit)]
        for rule in (*rules, *self.workflows.values()):
            if rule.name is not None and not rule.name.strip():
                raise InputError("workflow must be a name, got a blank one")
            if max(len(rule.name or ""), len(rule.unit or "")) > MAX_NAME:
                raise InputError(f"workflow and unit must have up to {MAX_NAME} characters")
            if rule.ceiling_usd is not None and not 0 < rule.ceiling_usd <= MAX_COST_USD:
                raise InputError(f"ceiling_usd must be a number above 0, got {rule.ceiling_usd!r}")

    @property
    def zone(self) -> tzinfo:
        """Zone of times without an offset."""
        return _zone(self.timezone or "UTC")

    def workflow_for(self, found: str | None) -> str | None:
        """Return the stored workflow of a run whose file names `found` (None: no name)."""
        if self.workflow is not None:
            return self.workflow
        rule = self.workflows.get(found) if found is not None else None
        return rule.name if rule is not None and rule.name is not None else found

    def workflow_record(self, name: str) -> Workflow:
        """Return ceiling and unit of a workflow, by its name after the import."""
        for found, rule in self.workflows.items():
            if name == (rule.name or found):
                ceiling = self.ceiling_usd if rule.ceiling_usd is None else rule.ceiling_usd
                unit = rule.unit or self.unit or "task"
                return Workflow(name=name, ceiling_usd=ceiling, unit=unit)
        return Workflow(name=name, ceiling_usd=self.ceiling_usd, unit=self.unit or "task")


def _zone(name: str) -> tzinfo:
    try:
        return ZoneInfo(name)
    # ZoneInfo reads a file named by the caller: a directory name or a missing zone are OSErrors.
    except (ValueError, OSError, KeyError) as error:
        raise InputError(
            f"timezone must be an IANA name such as Europe/Berlin, got {name!r}"
        ) from error


def load_settings(path: Path) -> ImportSettings:
    """Read a TOML file of ``timezone`` and ``[workflows.FOUND_NAME]``; errors name file and key."""
    data = read_toml(path)
    tables = data.pop("workflows", {})
    if not isinstance(tables, dict):
        raise InputError(f"{path}: 'workflows' must be tables [workflows.NAME]")
    rules = {}
    for found, table in tables.items():
        where = f"workflows.{found}"
        if not isinstance(table, dict):
            raise InputError(f"{path}: '{where}' must be a table")
        rules[found] = WorkflowRule(**_typed(path, where, table, ("name", "ceiling_usd", "unit")))
    top = _typed(path, "", data, ("workflow", "ceiling_usd", "unit", "timezone"))
    try:
        return ImportSettings(workflows=rules, **top)
    except InputError as error:
        raise InputError(f"{path}: {error}") from error


def _typed(
    path: Path, where: str, table: Mapping[str, object], known: tuple[str, ...]
) -> dict[str, Any]:
    typed: dict[str, Any] = {}
    for key, value in table.items():
        label = f"{where}.{key}".lstrip(".")
        if key not in known:
            raise InputError(f"{path}: unknown key {label!r}; known: {', '.join(known)}")
        if key == "ceiling_usd":
            if isinstance(value, bool) or not isinstance(value, int | float):
                raise InputError(f"{path}: {label!r} must be a number, got {value!r}")
            typed[key] = float(value)
        elif isinstance(value, str):
            typed[key] = value
        else:
            raise InputError(f"{path}: {label!r} must be text, got {value!r}")
    return typed


@dataclass(frozen=True, slots=True, kw_only=True)
class HumanScore:
    """What a person made of a run on another platform; `outcome` is None if no class follows."""

    reviewer: str
    name: str
    outcome: str | None
    comment: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Slot:
    """The place of a run that may have been repeated because it failed; one run of it counts.

    `key` names the place in all files, `failed` whether this run ended with an error, and `logged`
    when its log was begun.
    """

    key: tuple[str, str, int]
    failed: bool
    logged: datetime | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Parsed:
    """One run: its trace, the grade of its file and the line where it starts.

    `verdict` is None without a grade. For a grade that implies no class, its outcome is
    ``no_verdict`` and its reason says why. `more` are the verdicts of further scorers, each with a
    judge of its own (``source:NAME/SCORER``); `human` are the scores of people, which become labels
    on request only. Of the runs with one `slot`, the last that did not fail counts.
    """

    trace: Trace
    verdict: Verdict | None
    line: int | None
    file: str
    more: tuple[Verdict, ...] = ()
    human: tuple[HumanScore, ...] = ()
    slot: Slot | None = None


Item = Parsed | SetAside


def human_score(
    reviewer: str, name: str, value: object, comment: str | None, taxonomy: Taxonomy
) -> HumanScore:
    """Return the score of a person: a class by its name, else what `graded` makes of it.

    Examples
    --------
    >>> human_score("Ann", "quality", True, None, default_taxonomy()).outcome
    'complete'
    >>> human_score("Ann", "quality", 0.7, None, default_taxonomy()).outcome is None
    True
    """
    outcome: str | None = None
    if isinstance(value, str) and value.strip() in taxonomy.names:
        outcome = value.strip()
    elif (verdict := graded(value, "", "", taxonomy)) is not None and verdict.proposed:
        outcome = verdict.outcome
    return HumanScore(
        reviewer=" ".join(reviewer.split())[:MAX_REVIEWER],
        name=note(name, limit=MAX_NAME) or "score",
        outcome=outcome,
        comment=note(comment),
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Head:
    """The beginning of a file, before any run is read.

    `kind` is ``array``, ``object``, ``lines``, ``csv``, ``parquet``, ``zip`` or ``directory``;
    `keys` are field names of the first runs (array, lines), of the object, the columns of the
    table, or the names in the archive.
    """

    kind: str
    keys: tuple[frozenset[str], ...]

    def any_has(self, *names: str) -> bool:
        """Return whether one of the first runs has all of these fields."""
        return any(keys.issuperset(names) for keys in self.keys)


@dataclass(frozen=True, slots=True, kw_only=True)
class Importer:
    """One trace format: its recognition and its reader; `title` is its name for people."""

    name: str
    title: str
    expects: str
    recognises: Callable[[Head], bool]
    read: Callable[[Path, ImportSettings], Iterator[Item]]


def attempt(file: Path, line: int | None, build: Callable[[], Parsed]) -> Item:
    """Build one run, or the row set aside with the reason."""
    try:
        parsed = build()
        check_limits(parsed.trace)
    except FieldError as error:
        return SetAside(file=str(file), line=line, reason=str(error))
    except RecursionError:
        return SetAside(file=str(file), line=line, reason="is nested too deeply")
    return parsed


def check_limits(trace: Trace) -> None:
    """Refuse a trace too large to review or store."""
    if len(trace.steps) > MAX_STEPS:
        raise FieldError(f"has {len(trace.steps):,} steps; at most {MAX_STEPS:,} are taken in")
    total = 0
    for name, text in _texts(trace):
        # A character takes at most 4 bytes of UTF-8: only long text needs to be encoded.
        size = len(text) if len(text) * 4 <= MAX_FIELD_BYTES else len(text.encode())
        if size > MAX_FIELD_BYTES:
            raise FieldError(
                f"field {name!r}: has {size / 1e6:.1f} MB; at most {MAX_FIELD_BYTES / 1e6:.0f} MB"
            )
        total += size
    if total > MAX_TRACE_BYTES:
        raise FieldError(
            f"has {total / 1e6:.1f} MB of text; at most {MAX_TRACE_BYTES / 1e6:.0f} MB"
        )


def _texts(trace: Trace) -> Iterator[tuple[str, str]]:
    yield "prompt", trace.prompt
    yield "response", trace.response or ""
    yield "success_criteria", trace.success_criteria or ""
    for attachment in trace.inputs:
        yield "inputs", attachment.text
    for goal in trace.sub_goals:
        yield "sub_goals", goal.text
    for step in trace.steps:
        for name in ("content", "arguments", "result"):
            yield f"{step.step_id}.{name}", getattr(step, name) or ""
