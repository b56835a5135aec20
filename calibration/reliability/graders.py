"""Graders written as code: each looks at one run and proposes pass or fail, with a reason.

A grader file is TOML: a table ``[graders.NAME]`` a grader, and rules of order, ``before = [["find",
"book"]]``. No grader gives a label. Regular expressions are RE2's, whose time grows with the length
of the text alone: no pattern can make it backtrack. A text of more than 200,000 characters is not
graded.
"""

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from math import fsum, isfinite
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from calibration.errors import InputError
from calibration.files import MOST_TOML_BYTES, parse_toml, read_text
from calibration.records import ToolCall, Trace, calls_of
from calibration.reliability.tools import MOST_NAME, ROUNDING, OrderRule, canonical
from calibration.text import one_line

MOST_GRADERS, MOST_PATTERN, MOST_TEXT = 200, 500, 200_000
MOST_STEPS = 5
PLACES = ("response", "results", "arguments")
TESTS = ("equals", "contains", "regex")
OF_ALL = ("kind", "workflow", "task")
KEYS: Mapping[str, tuple[str, ...]] = {
    "text": ("in", "ignore_case", *TESTS),
    "tool_called": ("tool", "arguments", "at_least", "at_most"),
    "tool_not_called": ("tool",),
    "state": ("path", "equals", "same_as"),
    "before": ("first", "later"),
    "all": ("of",),
    "any": ("of",),
    "weighted": ("of", "weights", "threshold"),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Grade:
    """What a grader proposes on one run: pass, fail, or None where it cannot say.

    `applies` is False where the grader is not for the run, such as a rule on a tool not called.
    """

    passed: bool | None
    reason: str
    applies: bool = True


Check = Callable[[Trace, Mapping[str, Grade]], Grade]


@dataclass(frozen=True, slots=True, kw_only=True)
class Grader:
    """One grader: its name and kind, the workflows and tasks it is for (none: all), its check."""

    name: str
    kind: str
    check: Check
    workflows: frozenset[str] = frozenset()
    tasks: frozenset[str] = frozenset()

    def is_for(self, trace: Trace) -> bool:
        """Whether the grader is for the workflow and the task of a run."""
        return (not self.workflows or trace.workflow in self.workflows) and (
            not self.tasks or bool(self.tasks & {trace.task_id, trace.task_key})
        )


def parse_graders(text: str) -> tuple[Grader, ...]:
    """Return the graders of a TOML text, those that others are made of first.

    InputError names the grader and the key that is wrong.

    Examples
    --------
    >>> made = parse_graders('graders.quiet = { kind = "tool_not_called", tool = "pay" }')
    >>> [(grader.name, grader.kind) for grader in made]
    [('quiet', 'tool_not_called')]
    """
    data = parse_toml(text)
    for key in data:
        if key not in ("graders", "before"):
            raise InputError(f"unknown key {key!r:.80}: the keys are graders, before")
    tables = data.get("graders", {})
    if not isinstance(tables, dict):
        raise InputError("'graders' must be tables, written [graders.NAME]")
    made = [_rule_of_order(pair) for pair in _listed(data.get("before", []), "before", "")]
    made += [_grader(name, table) for name, table in tables.items()]
    if not made:
        raise InputError("holds no grader: add a table [graders.NAME]")
    if len(made) > MOST_GRADERS:
        raise InputError(f"holds {len(made):,} graders; at most {MOST_GRADERS} are used")
    names = [grader.name for grader in made]
    twice = next((name for name in names if names.count(name) > 1), None)
    if twice is not None:
        raise InputError(f"two graders are called {twice!r:.80}")
    return tuple(_parts_first(made, tables))


def read_graders(path: Path) -> tuple[Grader, ...]:
    """Read a grader file; an error names the file, the grader and the key."""
    text = read_text(path, most=MOST_TOML_BYTES, hint="; a grader file is a few pages")
    try:
        return parse_graders(text)
    except InputError as error:
        raise InputError(f"{path}: {error}") from error


def grade_trace(trace: Trace, graders: Sequence[Grader]) -> dict[str, Grade]:
    """Return what each grader that is for a run proposes on it, by name.

    `graders` are in the order of `parse_graders`.

    Examples
    --------
    >>> from calibration.records import Step
    >>> pay = Step(step_id="2", role="assistant", tool="pay", arguments="{}")
    >>> run = Trace(
    ...     trace_id="t", source="s", source_id="t", workflow="w", task_id="1", task_key="1",
    ...     trial=0, prompt="p", steps=(pay,),
    ... )
    >>> made = parse_graders('before = [["find", "pay"]]')
    >>> grade_trace(run, made)["find before pay"].reason
    'pay without find before it: step 2'
    """
    found: dict[str, Grade] = {}
    for grader in graders:
        if grader.is_for(trace):
            found[grader.name] = grader.check(trace, found)
    return found


def _grader(name: str, table: object) -> Grader:
    where = f'[graders."{name:.80}"]'
    if not isinstance(table, dict):
        raise InputError(f"{where}: must be a table")
    if not name.strip() or len(name) > MOST_NAME:
        raise InputError(f"{where}: a name has 1 to {MOST_NAME} characters")
    kind = table.get("kind")
    if not isinstance(kind, str) or kind not in KEYS:
        raise InputError(f"{where}: 'kind' must be one of {', '.join(KEYS)}, got {kind!r:.60}")
    for key in table:
        if key not in (*OF_ALL, *KEYS[kind]):
            known = ", ".join((*OF_ALL, *KEYS[kind]))
            raise InputError(f"{where}: unknown key {key!r:.80}; the keys are {known}")
    made: Mapping[str, Callable[[Mapping[str, Any], str], Check]] = {
        "text": _text_check,
        "tool_called": _called_check,
        "tool_not_called": _not_called_check,
        "state": _state_check,
        "before": _before_check,
        "all": _composite_check,
        "any": _composite_check,
        "weighted": _weighted_check,
    }
    return Grader(
        name=name,
        kind=kind,
        check=made[kind](table, where),
        workflows=frozenset(_texts(table, "workflow", where)),
        tasks=frozenset(_texts(table, "task", where)),
    )


def _parts_first(made: Sequence[Grader], tables: Mapping[str, Any]) -> list[Grader]:
    """Sort graders so that composite ones follow their parts; refuse a circle."""
    left = {grader.name: grader for grader in made}
    parts = {name: set(tables.get(name, {}).get("of", ())) for name in left}
    for name, of in parts.items():
        unknown = sorted(of - left.keys())
        if unknown:
            raise InputError(f'[graders."{name:.80}"]: there is no grader {unknown[0]!r:.80}')
    found: list[Grader] = []
    while left:
        ready = [name for name in left if not parts[name] & left.keys()]
        if not ready:
            raise InputError(f"graders are made of each other: {', '.join(left):.200}")
        found += [left.pop(name) for name in ready]
    return found


# Checks of one run


def _text_check(table: Mapping[str, Any], where: str) -> Check:
    place = table.get("in", PLACES[0])
    if place not in PLACES:
        raise InputError(f"{where}: 'in' must be one of {', '.join(PLACES)}, got {place!r:.60}")
    tests = [test for test in TESTS if test in table]
    if len(tests) != 1:
        raise InputError(f"{where}: needs one of {', '.join(TESTS)}")
    test, sought = tests[0], _text(table, tests[0], where)
    folded = _flag(table, "ignore_case", where)
    matches = _matcher(test, sought, folded, where)

    def check(trace: Trace, _found: Mapping[str, Grade]) -> Grade:
        texts = list(_texts_of(trace, place))
        if not texts:
            return Grade(passed=None, reason=f"the run has no {place}")
        if sum(map(len, texts)) > MOST_TEXT:
            return Grade(passed=None, reason=f"{place}: more than {MOST_TEXT:,} characters")
        passed = matches(texts)
        return Grade(
            passed=passed,
            reason=f"{place} {'' if passed else 'not '}{test}: {one_line(sought, most=80)}",
        )

    return check


def _texts_of(trace: Trace, place: str) -> Iterable[str]:
    if place == "response":
        return [] if trace.response is None else [trace.response]
    if place == "results":
        return [step.result for step in trace.steps if step.tool and step.result is not None]
    calls = _agent_calls(trace)
    return [call.step.arguments for call in calls if call.step.arguments is not None]


def _matcher(test: str, sought: str, folded: bool, where: str) -> Callable[[list[str]], bool]:
    """Return what tells whether one of some texts matches."""
    if test == "regex":
        if len(sought) > MOST_PATTERN:
            raise InputError(f"{where}: 'regex' has more than {MOST_PATTERN} characters")

        def found(texts: list[str]) -> bool:
            given = pa.array(texts, pa.string())
            return bool(pc.any(pc.match_substring_regex(given, sought, ignore_case=folded)).as_py())

        try:
            found([""])
        except pa.ArrowInvalid as error:
            raise InputError(f"{where}: 'regex' is not one of RE2 ({error!s:.120})") from error
        return found
    wanted = sought.casefold() if folded else sought
    compare = str.__eq__ if test == "equals" else str.__contains__

    def same(texts: list[str]) -> bool:
        read = (text.casefold() if folded else text for text in texts)
        return any(compare(text.strip() if test == "equals" else text, wanted) for text in read)

    return same


def _agent_calls(trace: Trace) -> list[ToolCall]:
    return [call for call in calls_of(trace.steps) if not call.by_user]


def _called_check(table: Mapping[str, Any], where: str) -> Check:
    tool = _text(table, "tool", where)
    least, most = _count(table, "at_least", 1, where), _count(table, "at_most", None, where)
    wanted = _arguments(table.get("arguments", {}), where)
    said = tool if not wanted else f"{tool} with {', '.join(wanted)} as given"

    def check(trace: Trace, _found: Mapping[str, Grade]) -> Grade:
        calls = [c for c in _agent_calls(trace) if c.tool == tool and _has(c, wanted)]
        n = len(calls)
        passed = n >= (least or 0) and (most is None or n <= most)
        return Grade(passed=passed, reason=f"{said}: {n} call{'s' * (n != 1)}{_steps(calls)}")

    return check


def _not_called_check(table: Mapping[str, Any], where: str) -> Check:
    tools = _texts(table, "tool", where)
    if not tools:
        raise InputError(f"{where}: 'tool' is missing")

    def check(trace: Trace, _found: Mapping[str, Grade]) -> Grade:
        calls = [call for call in _agent_calls(trace) if call.tool in tools]
        if not calls:
            return Grade(passed=True, reason="not called")
        names = ", ".join(dict.fromkeys(call.tool for call in calls))
        return Grade(passed=False, reason=f"called {names}{_steps(calls)}")

    return check


def _steps(calls: Sequence[ToolCall]) -> str:
    """Return the steps of calls, as an ending; nothing without any."""
    if not calls:
        return ""
    named = ", ".join(call.step.step_id for call in calls[:MOST_STEPS])
    more = " and more" if len(calls) > MOST_STEPS else ""
    return f": step{'s' * (len(calls) > 1)} {named}{more}"


def _has(call: ToolCall, wanted: Mapping[str, str]) -> bool:
    if not wanted:
        return True
    given = _decoded(call.step.arguments)
    return isinstance(given, dict) and all(
        name in given and _canonical(given[name]) == value for name, value in wanted.items()
    )


def _state_check(table: Mapping[str, Any], where: str) -> Check:
    path = _path(table, "path", where)
    if ("equals" in table) == ("same_as" in table):
        raise InputError(f"{where}: needs one of equals, same_as")
    other = _path(table, "same_as", where) if "same_as" in table else None
    fixed = None if other else _plain_value(table["equals"], "equals", where)
    said = ".".join(path)

    def check(trace: Trace, _found: Mapping[str, Grade]) -> Grade:
        values = [_at(trace.metadata, place) for place in (path, other) if place]
        for place, value in zip((path, other), values, strict=False):
            if value is None:
                return Grade(passed=None, reason=f"no {'.'.join(place or ())} in the metadata")
        passed = values[0] == (values[1] if other else fixed)
        goal = "the expected value" if other is None else ".".join(other)
        return Grade(
            passed=passed, reason=f"{said} {'is' if passed else 'is not'} {goal}: {values[0]:.80}"
        )

    return check


def _at(metadata: object, path: Sequence[str]) -> str | None:
    """Return the value at a path as canonical text; None where there is none."""
    value = metadata
    for key in path:
        if isinstance(value, str):  # a state kept as JSON text
            value = _decoded(value)
        if not isinstance(value, dict) or key not in value:
            return None
        value = value[key]
    return _canonical(value)


def _before_check(table: Mapping[str, Any], where: str) -> Check:
    return _order_check(_rule(_text(table, "first", where), _text(table, "later", where), where))


def _rule_of_order(pair: object) -> Grader:
    if not (isinstance(pair, list) and len(pair) == 2 and all(isinstance(p, str) for p in pair)):
        raise InputError(f"'before' must be pairs of tools, [FIRST, LATER], got {pair!r:.80}")
    first, later = pair
    rule = _rule(first, later, f"before [{first!r:.60}, {later!r:.60}]")
    return Grader(name=rule.name, kind="before", check=_order_check(rule))


def rules_of_tasks(before: Mapping[str, Sequence[tuple[str, str]]]) -> tuple[Grader, ...]:
    """Return a grader a rule of order, for the tasks that have the rule.

    InputError names the task whose rule is no rule.

    Examples
    --------
    >>> made = rules_of_tasks({"a": [("find", "pay")], "b": [("find", "pay")]})
    >>> [(grader.name, sorted(grader.tasks)) for grader in made]
    [('find before pay (task file)', ['a', 'b'])]
    """
    tasks: dict[OrderRule, set[str]] = {}
    for task, pairs in before.items():
        for first, later in pairs:
            tasks.setdefault(_rule(first, later, f"task {task!r:.80}, before"), set()).add(task)
    if len(tasks) > MOST_GRADERS:
        raise InputError(f"the tasks have {len(tasks):,} rules; at most {MOST_GRADERS} are used")
    return tuple(
        Grader(
            name=f"{rule.name} (task file)", kind="before", check=_order_check(rule),
            tasks=frozenset(of),
        )
        for rule, of in tasks.items()
    )  # fmt: skip


def _rule(first: str, later: str, where: str) -> OrderRule:
    try:
        return OrderRule(first=first, later=later)
    except ValueError as error:
        raise InputError(f"{where}: {error}") from error


def _order_check(rule: OrderRule) -> Check:
    """Return the check that a call of the first tool precedes every call of the later one."""

    def check(trace: Trace, _found: Mapping[str, Grade]) -> Grade:
        calls = _agent_calls(trace)
        broken = rule.broken_at([call.tool for call in calls])
        if broken is None:
            return Grade(passed=None, reason=f"{rule.later} not called", applies=False)
        if broken:
            steps = _steps([calls[k] for k in broken])
            reason = f"{rule.later} without {rule.first} before it{steps}"
            return Grade(passed=False, reason=reason)
        return Grade(passed=True, reason=f"{rule.first} came first")

    return check


def _composite_check(table: Mapping[str, Any], where: str) -> Check:
    names = _parts(table, where)
    every = table["kind"] == "all"

    def check(_trace: Trace, found: Mapping[str, Grade]) -> Grade:
        parts = {name: found[name] for name in names if name in found and found[name].applies}
        if not parts:
            return Grade(passed=None, reason="no part applies", applies=False)
        decided = [name for name, part in parts.items() if part.passed is (not every)]
        if decided:
            word = "failed" if every else "passed"
            return Grade(passed=not every, reason=f"{word}: {', '.join(decided):.150}")
        open_ = [name for name, part in parts.items() if part.passed is None]
        if open_:
            return Grade(passed=None, reason=f"cannot be graded: {', '.join(open_):.150}")
        return Grade(passed=every, reason="every part passed" if every else "no part passed")

    return check


def _weighted_check(table: Mapping[str, Any], where: str) -> Check:
    names = _parts(table, where)
    given = _listed(table.get("weights", [1] * len(names)), "weights", where)
    if len(given) != len(names):
        raise InputError(f"{where}: 'weights' must hold one number for each of 'of'")
    weights = dict(zip(names, (_number(w, "weights", where) for w in given), strict=True))
    threshold = _number(table.get("threshold", 1.0), "threshold", where)
    if not 0 <= threshold <= 1 or min(weights.values()) < 0 or not any(weights.values()):
        raise InputError(f"{where}: weights are 0 or more, and the threshold is from 0 to 1")

    def check(_trace: Trace, found: Mapping[str, Grade]) -> Grade:
        parts = {name: found[name] for name in names if name in found and found[name].applies}
        total = fsum(weights[name] for name in parts)
        if not total:
            return Grade(passed=None, reason="no part applies", applies=False)
        open_ = [name for name, part in parts.items() if part.passed is None]
        if open_:
            return Grade(passed=None, reason=f"cannot be graded: {', '.join(open_):.150}")
        score = fsum(weights[name] for name, part in parts.items() if part.passed) / total
        passed = score >= threshold - ROUNDING
        return Grade(passed=passed, reason=f"score {score:.3f}, threshold {threshold:g}")

    return check


# Values of the file


def _parts(table: Mapping[str, Any], where: str) -> tuple[str, ...]:
    names = _texts(table, "of", where)
    if not names or len(set(names)) < len(names):
        raise InputError(f"{where}: 'of' must name graders, each once")
    return names


def _listed(value: object, key: str, where: str) -> list[Any]:
    if not isinstance(value, list):
        raise InputError(f"{where}: {key!r} must be a list".removeprefix(": "))
    return value


def _text(table: Mapping[str, Any], key: str, where: str) -> str:
    value = table.get(key)
    if not isinstance(value, str) or not value:
        raise InputError(f"{where}: {key!r} must be text, got {value!r:.60}")
    return value


def _texts(table: Mapping[str, Any], key: str, where: str) -> tuple[str, ...]:
    """Return one text or a list of them; none where the key is missing."""
    value = table.get(key, [])
    listed = value if isinstance(value, list) else [value]
    if not all(isinstance(item, str) and item for item in listed):
        raise InputError(f"{where}: {key!r} must be text or a list of texts, got {value!r:.60}")
    return tuple(listed)


def _flag(table: Mapping[str, Any], key: str, where: str) -> bool:
    value = table.get(key, False)
    if not isinstance(value, bool):
        raise InputError(f"{where}: {key!r} must be true or false, got {value!r:.60}")
    return value


def _count(table: Mapping[str, Any], key: str, default: int | None, where: str) -> int | None:
    value = table.get(key, default)
    if value is not None and (isinstance(value, bool) or not isinstance(value, int) or value < 0):
        raise InputError(f"{where}: {key!r} must be a whole number from 0 up, got {value!r:.60}")
    return value


def _number(value: object, key: str, where: str) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float) or not isfinite(value):
        raise InputError(f"{where}: {key!r} must be a number, got {value!r:.60}")
    return float(value)


def _path(table: Mapping[str, Any], key: str, where: str) -> tuple[str, ...]:
    """Return a path within the metadata: keys with dots between them, or a list of keys."""
    value = table.get(key)
    keys = value.split(".") if isinstance(value, str) else value
    if not isinstance(keys, list) or not all(isinstance(k, str) and k for k in keys) or not keys:
        raise InputError(f"{where}: {key!r} must be keys of the metadata, such as state.order")
    return tuple(keys)


def _arguments(value: object, where: str) -> dict[str, str]:
    if not isinstance(value, dict):
        raise InputError(f"{where}: 'arguments' must be a table")
    return {name: _plain_value(of, f"arguments.{name:.60}", where) for name, of in value.items()}


def _plain_value(value: object, key: str, where: str) -> str:
    found = _canonical(value)
    if found is None:
        raise InputError(f"{where}: {key!r} must be a value that JSON has, got {value!r:.60}")
    return found


def _canonical(value: object) -> str | None:
    try:
        return canonical(value)
    except ValueError:
        return None


def _decoded(text: str | None) -> object:
    """Return the value of JSON text; None if it is none, or too long."""
    if text is None or len(text) > MOST_TEXT:
        return None
    try:
        value: object = json.loads(text)
    except (ValueError, RecursionError):
        return None
    return value
