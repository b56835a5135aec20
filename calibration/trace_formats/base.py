"""Common parts of all importers: settings, the parsed item, limits on one trace."""

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime, tzinfo
from pathlib import Path
from typing import Any, Literal
from zoneinfo import ZoneInfo

from calibration.errors import InputError
from calibration.files import read_toml
from calibration.records import NO_VERDICT, SetAside, Trace, Verdict, Workflow
from calibration.tables import words
from calibration.tables.scales import Scale, ScoreNumbers, scale_from, score_rule
from calibration.taxonomy import Taxonomy, default_taxonomy
from calibration.text import names_there
from calibration.trace_formats.fields import FieldError, first_of, note, shown, without_output

MAX_TRACE_BYTES = 20_000_000
MAX_FIELD_BYTES = 2_000_000
MAX_STEPS = 2_000
MAX_NAME = 200
MAX_COST_USD = 1_000_000.0
MAX_REVIEWER = 80
MAX_NUMBER = 1e15  # of a score
MAX_SCORE_NAMES = 10_000
MOST_NOTES = 8
TOO_MANY = f"is of one of more than {MAX_SCORE_NAMES:,} names of scores"

# How platforms and graders call the lowest and the highest number of a score.
LOWEST = ("min", "minValue", "min_score", "minimum", "min_value")
HIGHEST = ("max", "maxValue", "max_score", "maximum", "max_value")


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
    that reviewers cannot see are set aside. Grades map to the classes of `taxonomy`; `scales` has
    the scale of scores by their name, `pass_at` the lowest number that is a success.

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
    scales: Mapping[str, Scale] = field(default_factory=dict)
    pass_at: Mapping[str, float] = field(default_factory=dict)
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

    def scored(self, scales: Iterable[str], pass_at: Iterable[str]) -> "ImportSettings":
        """Return settings with what a user says of scores by their names.

        Examples
        --------
        >>> ImportSettings().scored(["quality=1-5"], ["reward=0.5"]).pass_at
        {'reward': 0.5}
        """
        by_name = {
            name: scale_from(text) for name, text in _of_scores("--scale", scales, "quality=1-5")
        }
        passes: dict[str, float] = {}
        for name, text in _of_scores("--pass-at", pass_at, "quality=0.5"):
            number = words.number_of(text)
            if number is None:
                raise InputError(f"--pass-at {name:.80}=: must be a number, got {text!r:.60}")
            passes[name] = number
        return replace(self, scales=by_name, pass_at=passes)

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


def _of_scores(option: str, texts: Iterable[str], example: str) -> Iterator[tuple[str, str]]:
    """Yield the name of a score and what an option says of it."""
    names = set()
    for text in texts:
        name, sign, value = text.rpartition("=")
        name = words.clean(name)
        if not sign or not name:
            raise InputError(f"{option}: must name the score, such as {example}, got {text!r:.80}")
        if name in names:
            raise InputError(f"{option}: {name!r:.80} is named twice")
        names.add(name)
        yield name, value


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


Role = Literal["grade", "success", "other"]


@dataclass(frozen=True, slots=True, kw_only=True)
class RunScore:
    """A score of one run as its file holds it; what numbers mean is decided over all files.

    `number` or `word` : its value; `outcome` : the class that it names. `role` : a ``grade`` is a
    verdict, with a class or without; ``success`` is one where its value can be read, ``other``
    where the user named its scale. `details` follow in the reason of the verdict.
    """

    name: str
    shown: str
    number: float | None = None
    word: words.Verdict | None = None
    outcome: str | None = None
    role: Role = "grade"
    scale: tuple[float | None, float] | None = None
    details: tuple[str, ...] = ()

    @property
    def said(self) -> str:
        """Name and value, as a reason says them."""
        return f"{self.name} {self.shown}"


def run_score(
    name: str,
    value: object,
    taxonomy: Taxonomy,
    *,
    role: Role = "grade",
    scale: tuple[float | None, float] | None = None,
    details: Iterable[str | None] = (),
) -> RunScore:
    """Return a score with what its value says by itself: a number, a word, a class.

    Examples
    --------
    >>> found = run_score("quality", "PASSED", default_taxonomy())
    >>> found.word, found.number, found.outcome
    ('pass', None, None)
    >>> run_score("quality", "4", default_taxonomy()).number
    4.0
    """
    word: words.Verdict | None = None
    number = outcome = None
    if isinstance(value, bool):
        word = "pass" if value else "fail"
    elif isinstance(value, int | float):
        number = float(value) if abs(value) < MAX_NUMBER else None
    elif isinstance(value, str) and len(value) <= MAX_NAME:
        folded = words.fold(value)
        outcome = class_names(taxonomy).get(folded)
        number = words.number_of(value)
        word = None if number is not None else words.VERDICTS.get(folded)
    return RunScore(
        name=note(name, limit=MAX_NAME) or "score",
        shown=shown(value) if number is None else words.cell(value),
        number=number,
        word=word,
        outcome=outcome,
        role=role,
        scale=scale,
        details=tuple(text for text in details if text),
    )


def class_names(taxonomy: Taxonomy) -> dict[str, str]:
    """Return the class of each folded name and title of a rubric."""
    return {
        words.fold(name): one.name for one in taxonomy.classes for name in (one.title, one.name)
    }


def stated_scale(holder: object) -> tuple[float | None, float] | None:
    """Return the lowest and the highest number that an object says its score may be.

    Examples
    --------
    >>> stated_scale({"score": 4, "max": 5}), stated_scale({"minValue": 1, "maxValue": 5})
    ((None, 5.0), (1.0, 5.0))
    """
    high, low = first_of(holder, *HIGHEST), first_of(holder, *LOWEST)
    if isinstance(high, bool) or not isinstance(high, int | float) or not abs(high) < MAX_NUMBER:
        return None
    if isinstance(low, bool) or not isinstance(low, int | float) or not abs(low) < MAX_NUMBER:
        return None, float(high)
    return float(low), float(high)


@dataclass(frozen=True, slots=True, kw_only=True)
class HumanScore:
    """What a person made of a run on another platform."""

    reviewer: str
    score: RunScore
    comment: str | None = None


def human_score(
    reviewer: str, name: str, value: object, comment: str | None, taxonomy: Taxonomy,
    scale: tuple[float | None, float] | None = None,
) -> HumanScore:  # fmt: skip
    """Return the score of a person, which is a label on request only."""
    return HumanScore(
        reviewer=" ".join(reviewer.split())[:MAX_REVIEWER],
        score=run_score(name, value, taxonomy, scale=scale),
        comment=note(comment),
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class RunGrades:
    """What a file says of how a run went, beside its trace.

    `judge` : the judge that stands for the file, ``source:NAME``. `verdict` : what needs no scale.
    `scores` : the first that is a verdict is that of `judge`, further ones have judges of their own
    (``source:NAME/SCORE``). `graders` count where there are no `scores`: as one, if all say the
    same in every run of the import, else each as a judge of its own. `ended` : why the run broke
    off, which counts unless its first score is a success. `human` : scores of people, which become
    labels on request only.
    """

    judge: str = ""
    verdict: Verdict | None = None
    scores: tuple[RunScore, ...] = ()
    graders: tuple[RunScore, ...] = ()
    ended: str | None = None
    human: tuple[HumanScore, ...] = ()

    @property
    def is_graded(self) -> bool:
        """Whether the run has a verdict, with a class or without."""
        return bool(self.verdict or self.scores or self.graders or self.ended)


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
    """One run: its trace, what its file says of how it went, and the line where it starts.

    Of the runs with one `slot`, the last that did not fail counts.
    """

    trace: Trace
    line: int | None
    file: str
    grades: RunGrades = RunGrades()
    slot: Slot | None = None


Item = Parsed | SetAside


class ScoreNames:
    """The numbers of each score name of an import, in the making."""

    def __init__(self) -> None:
        self.numbers: dict[str, ScoreNumbers] = {}
        self.has_graders = False

    def add(self, grades: RunGrades) -> None:
        """Take in the scores of a run."""
        names = set()
        self.has_graders = self.has_graders or len(grades.graders) > 1
        for score in (*grades.scores, *grades.graders, *(h.score for h in grades.human)):
            if score.number is None:
                continue
            numbers = self.numbers.get(score.name)
            if numbers is None:
                if len(self.numbers) >= MAX_SCORE_NAMES:
                    continue
                numbers = self.numbers[score.name] = ScoreNumbers()
            numbers.add(score.number)
            numbers.is_grade = numbers.is_grade or score.role != "other"
            if score.scale is not None and len(numbers.stated) < 2:
                numbers.stated.add(score.scale)
            if score.name not in names:
                names.add(score.name)
                numbers.runs += 1

    def merge(self, other: "ScoreNames") -> None:
        """Take in what another one counted."""
        self.has_graders = self.has_graders or other.has_graders
        for name, numbers in other.numbers.items():
            if name in self.numbers:
                self.numbers[name].merge(numbers)
            elif len(self.numbers) < MAX_SCORE_NAMES:
                self.numbers[name] = numbers


class ScoreRules:
    """What the scores of an import are taken as, decided for each name over all files.

    Raises InputError if the settings name a score that the files do not hold, or their scale and
    pass do not fit its numbers.
    """

    def __init__(self, names: ScoreNames, settings: ImportSettings) -> None:
        self.taxonomy = settings.taxonomy
        self.graders_apart = False
        self._scaled = {*settings.scales, *settings.pass_at}
        for option, named in (("--scale", settings.scales), ("--pass-at", settings.pass_at)):
            for name in named:
                if name not in names.numbers:
                    called = names_there(name, sorted(names.numbers))
                    raise InputError(
                        f"{option}: no score called {name!r:.80} is a number; {called}"
                    )
        self._rules = {
            name: score_rule(
                name,
                numbers,
                self.taxonomy,
                scale=settings.scales.get(name),
                pass_at=settings.pass_at.get(name),
            )
            for name, numbers in names.numbers.items()
        }

    @property
    def notes(self) -> tuple[str, ...]:
        """What numbers were taken as and what they need to be verdicts, a sentence a name."""
        every = [rule.note for _, rule in sorted(self._rules.items()) if rule.note]
        more = len(every) - MOST_NOTES
        return (*every[:MOST_NOTES], *([f"and {more:,} more names of scores"] if more > 0 else ()))

    def read(self, score: RunScore) -> tuple[str | None, str]:
        """Return the class of a score, or None and why it has none."""
        if score.outcome is not None:
            return score.outcome, ""
        if score.number is not None:
            rule = self._rules.get(score.name)
            return (None, TOO_MANY) if rule is None else rule.read(score.number, self.taxonomy)
        if score.word == "pass":
            return self.taxonomy.success, ""
        if score.word == "fail":
            return self.taxonomy.failed_check, ""
        if score.word == "ended":
            return self.taxonomy.without_output or self.taxonomy.failed_check, ""
        return None, "says that there is no result yet" if score.word else "is neither 0 nor 1"

    def outcome(self, score: RunScore) -> str | None:
        """Return the class of a score, None where none follows from it."""
        return self.read(score)[0]

    def verdict(self, score: RunScore, judge: str, trace_id: str, more: Iterable[str]) -> Verdict:
        """Return the verdict that a score proposes, without a class where none follows."""
        outcome, why = self.read(score)
        first = score.said if outcome else f"{score.said} {why}: no class follows from it"
        grade = None
        if score.number is not None and score.name in self._rules and score.outcome is None:
            grade = self._rules[score.name].grade(score.number)
        return Verdict(
            judge_id=(note(judge, limit=MAX_NAME) or judge),
            trace_id=trace_id,
            outcome=outcome or NO_VERDICT,
            reason=note("; ".join((first, *more, *score.details))),
            proposed=outcome is not None,
            grade=grade,
        )

    def differ(self, grades: RunGrades) -> bool:
        """Return whether the graders of a run do not say the same."""
        said = {self.outcome(score) for score in grades.graders}
        return not grades.scores and len(grades.graders) > 1 and (len(said) > 1 or None in said)

    def verdicts(self, trace_id: str, grades: RunGrades) -> list[Verdict]:
        """Return the verdicts on a run: that of its source first."""
        if grades.verdict is not None:
            return [grades.verdict]
        found = [
            self.verdict(score, judge, trace_id, more)
            for score, judge, more in self._judged(grades)
        ]
        if not found and grades.scores:
            told = "; ".join(score.said for score in grades.scores)
            reason = note(f"{told}: no class follows from these scores")
            found = [
                Verdict(judge_id=grades.judge, trace_id=trace_id, outcome=NO_VERDICT, reason=reason)
            ]
        is_success = bool(found) and found[0].outcome == self.taxonomy.success
        if grades.ended is not None and not is_success:
            broken = without_output(grades.ended, grades.judge, trace_id, self.taxonomy)
            found = [broken, *(v for v in found if v.judge_id != grades.judge)]
        return found

    def _judged(self, grades: RunGrades) -> Iterator[tuple[RunScore, str, tuple[str, ...]]]:
        """Yield the scores that are verdicts, each with its judge and what else its reason says."""
        scores = [score for score in grades.scores if self._is_verdict(score)]
        for k, score in enumerate(scores):
            others = tuple(s.said for s in grades.scores if s is not score) if k == 0 else ()
            yield score, f"{grades.judge}/{score.name}" if k else grades.judge, others
        if self.graders_apart:
            for score in grades.graders:
                yield score, f"{grades.judge}/{score.name}", ()
        elif grades.graders and not scores:
            first, *rest = grades.graders
            yield first, grades.judge, tuple(score.said for score in rest)

    def _is_verdict(self, score: RunScore) -> bool:
        """Return whether a score is a verdict, with a class or without."""
        if score.role == "grade" or score.outcome is not None or score.name in self._scaled:
            return True
        says = score.number is not None or (score.word is not None and score.word != "pending")
        return score.role == "success" and says


@dataclass(frozen=True, slots=True, kw_only=True)
class Head:
    """The beginning of a file, before any run is read.

    `kind` is ``array``, ``object``, ``lines``, ``csv``, ``parquet``, ``zip`` or ``directory``;
    `keys` are field names of the first runs (array, lines), of the object, the columns of the
    table, or the names in the archive. `within` has the fields of the first element of lists of an
    object. `is_spoken` : whether every message has a role, and no row is an event of another kind.
    """

    kind: str
    keys: tuple[frozenset[str], ...]
    within: Mapping[str, frozenset[str]] = field(default_factory=dict)
    is_spoken: bool = True

    def any_has(self, *names: str) -> bool:
        """Return whether one of the first runs has all of these fields."""
        return any(keys.issuperset(names) for keys in self.keys)

    def lists(self, name: str, fields: Collection[str]) -> bool:
        """Return whether an object has a list that is empty or holds one of these fields."""
        if self.kind != "object" or name not in self.within:
            return False
        return not self.within[name] or not self.within[name].isdisjoint(fields)


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
