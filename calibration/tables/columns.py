"""The columns of a table: what each role is called in the tables that people have.

`ALIASES` is the one table of names; `find_columns` says which column of a table has which role, and
asks where that cannot be told. Our own name goes first, then the aliases in order.
"""

import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from calibration.errors import InputError
from calibration.tables import words
from calibration.tables.scales import CHECKS
from calibration.taxonomy import default_taxonomy
from calibration.text import names_there

LOOKED = 10_000  # first rows by which columns are recognised

OUTCOMES = (
    ("outcome",),
    CHECKS,
    ("verdict", "result", "human_label", "label", "rating"),
    ("reward", "score", "grade", "human_score"),
)
# Always a task; the ids after them are one where their values repeat.
TASKS = ("task_id", "task", "task_key")
REPEATED_TASKS = (
    "instance_id",
    "problem_id",
    "question_id",
    "scenario_id",
    "scenario",
    "case_id",
    "case",
    "example_id",
    "sample_id",
    "input_id",
    "input_idx",
    "test_id",
    "test_name",
    "query_id",
    "item_id",
    "item",
    "doc_id",
    "id",
)
RUN_IDS = (
    "run_id",
    "session_id",
    "conversation_id",
    "trajectory_id",
    "id",
    "uuid",
    "call_id",
    "sample_id",
    "response_id",
    "row_id",
    "case_id",
    "instance_id",
    "example_id",
    "item_id",
    "item",
)
MILLISECONDS = ("latency_ms", "duration_ms", "elapsed_ms")
ARMS = (
    "model",
    "model_id",
    "model_name",
    "candidate_model",
    "agent",
    "agent_name",
    "agent_version",
    "version",
    "harness",
    "system",
    "system_id",
    "variant",
    "arm",
    "condition",
    "defense",
    "setting",
    "provider",
    "competitor",
    "approach",
    "prompt",
    "prompt_id",
    "prompt_version",
)

ALIASES: dict[str, tuple[str, ...]] = {
    "trace_id": ("trace_id", *RUN_IDS),
    "task_id": (*TASKS, *REPEATED_TASKS),
    "trial": (
        "trial",
        "attempt",
        "epoch",
        "repetition",
        "rep",
        "repeat",
        "run_idx",
        "run_index",
        "iteration",
        "replicate",
        "run",
        "seed",
        "run_id",
    ),
    "outcome": tuple(name for group in OUTCOMES for name in group),
    "cost_usd": (
        "cost_usd",
        "total_cost_usd",
        "llm_cost_usd",
        "price_usd",
        "cost",
        "total_cost",
        "execution_cost",
        "usd",
    ),
    "workflow": ("workflow", "workflow_name", "use_case"),
    "started_at": (
        "started_at",
        "start_time",
        "started",
        "timestamp",
        "timestamp_iso",
        "created_at",
        "created",
        "datetime",
        "time",
        "date",
    ),
    "latency_s": (
        "latency_s",
        "duration_s",
        "duration_seconds",
        "elapsed_seconds",
        "wall_time_seconds",
        "wall_seconds",
        "execution_time_s",
        *MILLISECONDS,
    ),
    "arm": ARMS,
    "model": ("model", "model_id", "model_name"),
    "item": (
        "item",
        "item_id",
        "unit",
        "unit_id",
        "trace_id",
        "task_id",
        "task",
        "example_id",
        "sample_id",
        "question_id",
        "instance_id",
        "case_id",
        "doc_id",
        "document_id",
        "response_id",
        "answer_id",
        "row_id",
        "image_id",
        "id",
        "url",
    ),
    "rater": (
        "rater",
        "rater_id",
        "annotator",
        "annotator_id",
        "reviewer",
        "worker_id",
        "worker",
        "performer",
        "coder",
        "coder_id",
        "labeler",
        "labeller",
        "evaluator",
        "expert",
        "user",
        "user_id",
        "username",
        "completed_by",
        "judge",
    ),
    "label": (
        "label",
        "annotation",
        "rating",
        "verdict",
        "outcome",
        "class",
        "value",
        "judgment",
        "judgement",
        "score",
        "human_label",
        "result",
        "answer",
        "choice",
    ),
    "updated_at": (
        "updated_at",
        "submitted_at",
        "created_at",
        "completed_at",
        "timestamp",
        "datetime",
        "time",
        "date",
    ),
}

# Names of what people said, and of what a judge said; the names of `label` may be either.
OF_PEOPLE = (
    "human",
    *(f"human_{name}" for name in ("label", "outcome", "verdict", "rating", "score", "grade")),
    *("human_judgment", "human_judgement", "gold", "gold_label", "ground_truth", "expert_label"),
)
OF_JUDGES = tuple(
    f"{who}_{name}"
    for who in ("judge", "llm", "llm_judge", "auto")
    for name in (
        "verdict",
        "label",
        "outcome",
        "rating",
        "score",
        "judgment",
        "judgement",
        "result",
    )
)
# Of these two in one table may both be the answer; the other names of `label` only stand in.
ANSWERS = ("label", "annotation", "rating", "verdict", "judgment", "judgement", "result")
STAND_INS = ("class", "value", "score", "answer", "choice")
ALIASES |= {
    "reviewer": tuple(name for name in ALIASES["rater"] if name != "judge"),
    "judge": ("judge", "judge_id", "judge_name", "judge_model", "grader"),
    "human": OF_PEOPLE,
    "verdict": ("verdict", *OF_JUDGES),
}

# What a run may have besides, under these names alone.
FURTHER = (
    "units",
    "weight",
    "stratum",
    "agent_version",
    "harness",
    "status",
    "tags",
    "tool_calls",
    "tool_errors",
    "loops",
    "loop",
    "max_repeats",
    "loops_in_a_row",
    "escalated",
    "feedback",
    "verdict",
    "perturbation",
    "tier",
    "difficulty",
    "n_steps",
    "total_tokens",
    "context_tokens",
    "context_window",
    "category",
    "data_corruption",
)
OF_RUNS = (
    "trace_id",
    "task_id",
    "trial",
    "outcome",
    "cost_usd",
    "workflow",
    "started_at",
    "latency_s",
    "model",
)

# Never an outcome by themselves: a run that ended is not one that succeeded, and names of what is
# bad, in which a yes is no success.
NEVER_OUTCOMES = (
    "status",
    "state",
    "completed",
    "finished",
    "failed",
    "error",
    "is_error",
    "toxic",
    "harmful",
    "blocked",
    "flagged",
    "attack_success",
    "violation",
    "exit_code",
    "return_code",
)
# Ids of people and of the work, not of what was rated or run.
OTHER_IDS = ("annotation", "annotator", "rater", "reviewer", "worker", "user", "project", "batch")
# From this share of repeated values on, an id names a task and not a run.
REPEATS = 0.1
MOST_NAMED = 8

_CAMEL = re.compile(r"(?<=[a-z0-9])(?=[A-Z])")
_PREFIX = re.compile(r"^(?:INPUT:|OUTPUT:|ASSIGNMENT:|Answer\.)")
_OTHER = re.compile(r"[^\w]+|_+")


def normalised(header: str) -> str:
    """Return a header in the spelling of `ALIASES`.

    Examples
    --------
    >>> normalised("Task ID"), normalised("totalCostUsd"), normalised("INPUT:question-id")
    ('task_id', 'total_cost_usd', 'question_id')
    """
    name = _CAMEL.sub("_", _PREFIX.sub("", words.clean(header)))
    return _OTHER.sub("_", name.casefold()).strip("_")


def clean_header(cells: Iterable[str], place: str) -> tuple[str, ...]:
    r"""Return the names of columns as clean texts; one without a name is empty.

    Raises
    ------
    InputError
        If a name occurs twice.

    Examples
    --------
    >>> clean_header(["\ufeffid", " cost\u00a0usd", ""], "a.csv")
    ('id', 'cost usd', '')
    """
    columns = tuple(map(words.clean, cells))
    twice = next((name for name, n in Counter(columns).items() if name and n > 1), None)
    if twice is not None:
        raise InputError(f"{place}: column {twice!r:.80} occurs twice; rename one of them")
    return columns


def never_outcome(column: str) -> bool:
    """Return whether a column is no outcome by itself: by its name, or named after a bad class.

    >>> never_outcome("Exit code"), never_outcome("passed")
    (True, False)
    """
    name = normalised(column)
    return name in NEVER_OUTCOMES or name in default_taxonomy().follow_up


@dataclass(frozen=True, slots=True)
class Sample:
    """The first rows of a table as clean texts, by column."""

    texts: Mapping[str, Sequence[str]]

    def values(self, column: str) -> list[str]:
        """Return the texts of a column that are not missing."""
        return [text for text in self.texts.get(column, ()) if not words.is_missing(text)]

    def repeated(self, column: str) -> float:
        """Return the share of values that were there before; 0 for a column without any."""
        values = self.values(column)
        return 1 - len(set(values)) / len(values) if values else 0.0

    def differing(self, one: str, other: str) -> tuple[int, int]:
        """Return the rows of two columns, and in how many of them these say different things."""
        pairs = list(zip(self.texts.get(one, ()), self.texts.get(other, ()), strict=False))
        return len(pairs), sum(_said(first) != _said(second) for first, second in pairs)

    def alike(self, one: str, other: str) -> bool:
        """Return whether two columns hold words of one kind."""
        first, second = ({_said(value) for value in self.values(name)} for name in (one, other))
        return not first.isdisjoint(second)

    def holds_words(self, column: str) -> bool:
        """Return whether a column holds words of pass and fail alone, and not bare 0 and 1."""
        folded = {words.fold(value) for value in self.values(column)}
        if not folded or folded <= set(words.NUMERALS):
            return False
        return folded <= words.VERDICTS.keys() or words.pair_of(folded) is not None


@dataclass(frozen=True, slots=True, kw_only=True)
class Columns:
    """Which column of a table has which role.

    `by_role` : the column by role. `arms` : columns that tell agents apart and have several
    values. `not_read` : the other columns, in order.
    """

    by_role: Mapping[str, str]
    arms: tuple[str, ...] = ()
    not_read: tuple[str, ...] = ()

    @property
    def renamed(self) -> dict[str, str]:
        """The columns that do not have our own name, by role."""
        return {role: name for role, name in self.by_role.items() if role != name}

    @property
    def read_as(self) -> str:
        """How columns of other names were read, in one line; empty if there are none."""
        return ", ".join(f"{name} as {role}" for role, name in self.renamed.items())

    @property
    def unread(self) -> str:
        """Name at most eight columns that were not read, then their number."""
        listed = ", ".join(self.not_read[:MOST_NAMED])
        more = len(self.not_read) - MOST_NAMED
        return listed + (f" and {more} more" if more > 0 else "")


@dataclass(frozen=True, slots=True, kw_only=True)
class Header:
    """The columns of a table by their normalised names, less those that are taken.

    Raises InputError if two columns have one normalised name that is that of a role.
    """

    place: str
    columns: tuple[str, ...]
    names: Mapping[str, str] = field(default_factory=dict)

    @classmethod
    def of(cls, columns: Iterable[str], place: str, roles: Iterable[str]) -> "Header":
        """Return the header of a table, of which `roles` are looked for."""
        kept = tuple(name for name in columns if words.clean(name))
        counted = Counter(map(normalised, kept))
        aliases = {alias for role in roles for alias in ALIASES.get(role, (role,))}
        for name, n in counted.items():
            if n > 1 and name in aliases:
                both = [column for column in kept if normalised(column) == name]
                if name not in both:
                    raise InputError(
                        f"{place}: the columns {' and '.join(map(repr, both))} have one name but "
                        f"for spelling: rename one of them"
                    )
        # Our own spelling goes first.
        by_name: dict[str, str] = {}
        for column in kept:
            by_name.setdefault(normalised(column), column)
        return cls(
            place=place, columns=kept, names=by_name | {c: c for c in kept if normalised(c) == c}
        )

    def there(self, aliases: Iterable[str], but: Iterable[str] = ()) -> list[str]:
        """Return the columns with one of these names, in the order of the names."""
        taken = set(but)
        present = (self.names[alias] for alias in aliases if alias in self.names)
        return [column for column in dict.fromkeys(present) if column not in taken]


def chosen_columns(
    header: Header, chosen: Mapping[str, str | None], roles: Sequence[str]
) -> dict[str, str]:
    """Return the columns that the user named, by role.

    Raises
    ------
    InputError
        If a role is not known or a column is not there.
    """
    for role, name in chosen.items():
        if role not in roles:
            raise InputError(f"--column: no name {role!r:.80} is read; {names_there(role, roles)}")
        if name is not None and name not in header.columns:
            raise InputError(
                f"{header.place}: column {name!r:.80} (for {role}) is not there; "
                f"{names_there(name, header.columns)}"
            )
    return {role: name for role, name in chosen.items() if name is not None}


def columns_by_table(
    chosen: Mapping[str, str | None], *tables: tuple[Header, Sequence[str]]
) -> list[dict[str, str | None]]:
    """Return the columns that the user named for each of several tables; each with its roles.

    A name goes for the tables that have its column, a role left out for all that know it.

    Raises
    ------
    InputError
        If no table knows a role, or none that knows it has its column.

    Examples
    --------
    >>> one, other = (Header.of(names, "a.csv", []) for names in (["id", "x"], ["id", "y"]))
    >>> columns_by_table({"cost": "y"}, (one, ["cost"]), (other, ["cost"]))
    [{}, {'cost': 'y'}]
    """
    every = list(dict.fromkeys(role for _, roles in tables for role in roles))
    for role, name in chosen.items():
        if role not in every:
            raise InputError(f"--column: no name {role!r:.80} is read; {names_there(role, every)}")
        known = [header for header, roles in tables if role in roles]
        if name is not None and not any(name in header.columns for header in known):
            listed = "; ".join(
                f"{header.place}: {names_there(name, header.columns)}" for header in known
            )
            raise InputError(f"column {name!r:.80} (for {role}) is not there; {listed}")
    return [
        {
            role: name
            for role, name in chosen.items()
            if role in roles and (name is None or name in header.columns)
        }
        for header, roles in tables
    ]


def answer_column(
    header: Header, sample: Sample, *, role: str, names: Sequence[str], taken: Iterable[str] = ()
) -> str | None:
    """Return the column of what people or a judge said of each row; None if there is none.

    `names` are those of this answer alone; those of `label` and of checks stand in for them.

    Raises
    ------
    InputError
        If two columns may be it and differ: a question with both.
    """
    taken = set(taken)
    others = {*OF_PEOPLE, *OF_JUDGES} - set(names)
    general = [name for name in ANSWERS if name not in names]
    empty: str | None = None
    for group in (names, general, STAND_INS, CHECKS):
        listed = header.there([name for name in group if name not in others], taken)
        present = [name for name in listed if sample.values(name)]
        empty = empty or next(iter(listed), None)
        if not present:
            continue
        first, rivals = present[0], present[1:] if group is not STAND_INS else []
        if group is names:
            rivals += [
                name
                for name in header.there(general, {*taken, *present})
                if sample.alike(first, name)
            ]
        for other in rivals:
            n, differing = sample.differing(first, other)
            if differing:
                raise InputError(
                    f"{header.place}: {first} and {other} both may be the {role}, and differ in "
                    f"{differing:,} of {n:,} rows: --column {role}={first}"
                )
        return first
    return empty


def trace_columns(header: Header, sample: Sample, taken: Iterable[str] = ()) -> list[str]:
    """Return the columns that may name the trace of a label or a verdict, the likeliest first.

    A column with one value names a project, not a trace. Where some ids repeat, as with several
    raters of a trace, one that never does is the row's own, and comes last.
    """
    if "trace_id" in header.names:
        return [header.names["trace_id"]]
    present = [
        name
        for name in header.there((*RUN_IDS, *_other_ids(header)), taken)
        if len(values := sample.values(name)) < 2 or len(set(values)) > 1
    ]
    if any(0 < sample.repeated(name) for name in present):
        return sorted(present, key=lambda name: sample.repeated(name) == 0)
    return present


def find_columns(
    columns: Iterable[str],
    sample: Sample,
    *,
    place: str,
    chosen: Mapping[str, str | None] | None = None,
    further: Sequence[str] = FURTHER,
    mapped: Iterable[str] = (),
) -> Columns:
    """Return which columns of a table of runs have which role.

    Parameters
    ----------
    columns : iterable of str
        The header.
    sample : Sample
        The first rows, at most `LOOKED`.
    place : str
        The name of the table in messages.
    chosen : mapping of str to (str or None), optional
        The column by role that the user named; None leaves a role out.
    further : sequence of str
        Roles that are read under their own name alone.
    mapped : iterable of str
        Words of --map, which say what a column means that is no outcome by itself.

    Raises
    ------
    InputError
        If no column holds the outcome, or two may and differ.

    Examples
    --------
    >>> sample = Sample({"id": ["1", "2"], "passed": ["yes", "no"], "note": ["", "x"]})
    >>> found = find_columns(["id", "passed", "note"], sample, place="a.csv")
    >>> found.by_role, found.not_read
    ({'trace_id': 'id', 'outcome': 'passed'}, ('note',))
    """
    chosen = chosen or {}
    roles = (*OF_RUNS, *(name for name in further if name not in OF_RUNS))
    header = Header.of(columns, place, roles)
    by_role = chosen_columns(header, chosen, roles)
    if "outcome" not in chosen:
        by_role["outcome"] = outcome_column(header, sample, by_role.values())
    elif "outcome" not in by_role:
        raise InputError("--column: the outcome cannot be left out")
    else:
        _check_chosen(header.place, by_role["outcome"], sample, mapped)
    for role in ("cost_usd", "workflow", "started_at", "latency_s", "model", *further):
        if role not in chosen and (
            present := header.there(ALIASES.get(role, (role,)), by_role.values())
        ):
            by_role[role] = present[0]
    _find_ids(header, sample, by_role, chosen)
    arms = tuple(
        name
        for name in header.there(ARMS)
        if len(set(sample.values(name))) > 1
        and name not in {by_role.get(role) for role in OF_RUNS if role != "model"}
    )
    used = {*by_role.values(), *arms}
    return Columns(
        by_role={role: by_role[role] for role in roles if role in by_role},
        arms=arms,
        not_read=tuple(name for name in header.columns if name not in used),
    )


def named_columns(
    columns: Iterable[str],
    *,
    place: str,
    roles: Sequence[str],
    chosen: Mapping[str, str | None] | None = None,
    sample: Sample | None = None,
) -> Columns:
    """Return which columns have these roles, by their names: our own, then the aliases in order.

    With a `sample`, an id that may be that of a run is one of a task only where its values repeat.

    Raises
    ------
    InputError
        If a chosen column is not there, or two columns of a role differ in spelling alone.

    Examples
    --------
    >>> named_columns(["Task ID", "Tier", "x"], place="a.csv", roles=["task_id", "tier"]).by_role
    {'task_id': 'Task ID', 'tier': 'Tier'}
    """
    chosen = chosen or {}
    header = Header.of(columns, place, roles)
    by_role = chosen_columns(header, chosen, roles)
    for role in roles:
        if role in chosen:
            continue
        taken = set(by_role.values())
        present = [role] if role in header.columns and role not in taken else []
        present += header.there((normalised(role), *ALIASES.get(role, ())), taken)
        if role == "task_id" and sample is not None:
            present = [
                name
                for name in present
                if normalised(name) in TASKS or sample.repeated(name) >= REPEATS
            ]
        if present:
            by_role[role] = present[0]
    used = set(by_role.values())
    return Columns(
        by_role={role: by_role[role] for role in roles if role in by_role},
        not_read=tuple(name for name in header.columns if name not in used),
    )


def _find_ids(
    header: Header, sample: Sample, by_role: dict[str, str], chosen: Mapping[str, str | None]
) -> None:
    """Find the columns that name the run, its task and its trial."""
    if "trace_id" not in chosen and "trace_id" in header.names:
        by_role.setdefault("trace_id", header.names["trace_id"])
    if "task_id" not in chosen and (present := header.there(TASKS, by_role.values())):
        by_role["task_id"] = present[0]
    if "trace_id" not in chosen and "trace_id" not in by_role:
        for name in header.there((*RUN_IDS, *_other_ids(header)), by_role.values()):
            if sample.values(name) and sample.repeated(name) < REPEATS:
                by_role["trace_id"] = name
                break
    if "task_id" not in chosen and "task_id" not in by_role:
        for name in header.there(REPEATED_TASKS, by_role.values()):
            if sample.repeated(name) >= REPEATS:
                by_role["task_id"] = name
                break
    if "trial" not in chosen:
        for name in header.there(ALIASES["trial"], by_role.values()):
            # A seed that is the same throughout tells no trials apart.
            several = len(set(sample.values(name))) > 1
            if normalised(name) == "run_id":
                several = "task_id" in by_role and sample.repeated(name) >= REPEATS
            if normalised(name) == "trial" or several:
                by_role["trial"] = name
                break


def _other_ids(header: Header) -> list[str]:
    """Return further names that end in ``_id`` and name neither agents nor people."""
    return [
        name
        for name in header.names
        if name.endswith("_id")
        and name not in (*ARMS, *TASKS)
        and name.removesuffix("_id") not in OTHER_IDS
    ]


def outcome_column(header: Header, sample: Sample, taken: Iterable[str]) -> str:
    """Return the column of the outcome.

    Raises
    ------
    InputError
        If there is none, or two may be it and differ: a question with the columns.
    """
    taken = set(taken)
    for number, group in enumerate(OUTCOMES):
        present = header.there(group, taken)
        if not present:
            continue
        if number == 1:
            _check_flags(header.place, present, sample)
        elif number == 2 and len(present) > 1:
            raise InputError(
                f"{header.place}: {' and '.join(present)} may hold the outcome: "
                f"--column outcome={present[0]}"
            )
        return present[0]
    raise InputError(f"{header.place}: {_no_outcome(header, sample)}")


def _no_outcome(header: Header, sample: Sample) -> str:
    """Say that no column holds the outcome, and which one may."""
    likely = [
        name for name in header.columns if not never_outcome(name) and sample.holds_words(name)
    ]
    if likely:
        verb = "holds" if len(likely) == 1 else "hold"
        return (
            f"no column holds the outcome; {', '.join(likely[:MOST_NAMED])} {verb} pass/fail "
            f"words: --column outcome={likely[0]}"
        )
    unclear = [name for name in header.columns if never_outcome(name)]
    about = (
        f"; {unclear[0]} does not say by itself which runs succeeded: --column "
        f"outcome={unclear[0]} with --map WORD=pass,WORD=fail"
        if unclear
        else f"; {names_there('outcome', header.columns)}; --column outcome=NAME names it"
    )
    return f"no column holds the outcome{about}"


def _check_flags(place: str, present: Sequence[str], sample: Sample) -> None:
    """Refuse two columns that both say whether a run passed, and differ."""
    first = present[0]
    for other in present[1:]:
        n, differing = sample.differing(first, other)
        if differing:
            raise InputError(
                f"{place}: {first} and {other} both may say what passed, and differ in "
                f"{differing:,} of {n:,} rows: --column outcome={first}"
            )


def _said(text: str) -> object:
    """Return what a text says: pass, fail, or its fold; None where it is missing."""
    word = words.fold(text)
    return words.VERDICTS.get(word) or (None if words.is_missing(text) else word)


def _check_chosen(place: str, column: str, sample: Sample, mapped: Iterable[str]) -> None:
    """Refuse a named outcome whose values do not say which of them is a pass."""
    if never_outcome(column) and not list(mapped):
        values = sorted(set(sample.values(column)))[:2]
        told = ",".join(
            f"{value:.40}={into}" for value, into in zip(values, ("pass", "fail"), strict=False)
        )
        raise InputError(
            f"{place}: {column} does not say by itself which runs succeeded: "
            f"--map {told or 'WORD=pass,WORD=fail'}"
        )
