"""The gate file: metrics, keys, default gates, and strict reading of TOML."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import date, datetime
from pathlib import Path
from typing import Any, Literal

from calibration.errors import InputError
from calibration.files import MOST_TOML_BYTES, parse_toml, read_text
from calibration.records import SOURCE_JUDGE
from calibration.tables.reading import MAX_LEFT_OUT

MAX_TIER = 60

TOP = (
    "defaults", "rule", "interval_aware", "allow_skipped", "confidence_level",
    "partial_plus_passes", "max_left_out", "outcomes", "before", "ceilings", "accepted", "gates",
)  # fmt: skip

OF_EVERY_GATE = ("level", "rule", "allow_skipped", "interval_aware")
OF_ACCEPTED = ("gate", "by", "why", "until")
MOST_BY, MOST_WHY = 100, 500  # characters
MAX_USD = 1_000_000
ORDER, MAX_RULES = "order", 100
Level = Literal["must", "should"]
LEVELS: tuple[str, ...] = ("must", "should", "off")
Rule = Literal["value", "shown_good", "not_shown_bad"]
RULES: tuple[Rule, ...] = ("value", "shown_good", "not_shown_bad")
# Read until two minor versions after the rules came.
INTERVAL_AWARE = (
    'interval_aware is read as rule = "not_shown_bad": the one-sided 95 % limit decides (was: the '
    "limits of the two-sided 95 % interval), and a gate that neither passes nor fails is open, not "
    "passed. Write the rule; the key goes in a later version"
)
_PASS = re.compile(r"(pass_at|pass_hat)_([1-9][0-9]{0,3})(?:\[([^\[\]\x00-\x1f\x7f]+)\])?")


@dataclass(frozen=True, slots=True, kw_only=True)
class Key:
    """One number of a gate: its range and default (None: required)."""

    default: float | None
    low: float
    high: float
    whole: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Setting:
    """One gate.

    `name` : as in the gate file, for instance ``pass_hat_3[core]``; `metric` is one of `METRICS`
    `numbers` : thresholds and other keys of `METRICS`; `k` that of pass@k and pass^k
    `tier` : tier of tasks; empty for all
    `allow_skipped` : a must gate without a result lets the run pass
    `rule` : what decides. ``value``: it passes if the value reaches the threshold. ``shown_good``:
        if the one-sided 95 % limit does. ``not_shown_bad``: it fails if that limit excludes the
        threshold, passes if the value reaches it, and is open otherwise
    """

    name: str
    metric: str
    level: Level
    numbers: Mapping[str, float]
    k: int = 0
    tier: str = ""
    allow_skipped: bool = False
    rule: Rule = "value"


@dataclass(frozen=True, slots=True, kw_only=True)
class Acceptance:
    """One person's decision to ship although a should gate fails, up to and including a day."""

    gate: str
    by: str
    why: str
    until: date


@dataclass(frozen=True, slots=True, kw_only=True)
class GateFile:
    """All gates, and what holds for all of them.

    `gates` are in the order they are shown; `ceilings` (USD per unit, by workflow) go before those
    of the taxonomy; no gate is given where more than `max_left_out` (share of the runs) is left out
    for a reason that may depend on the outcome.
    `outcomes` is the judge ``source:...`` of a store whose outcomes are taken as given, empty for
    none. `before` are pairs of tools, of which the first must be called before the second;
    `accepted` has at most one decision a gate. `notices` are on keys that go in a later version.
    """

    gates: tuple[Setting, ...]
    confidence_level: float = 0.95
    partial_plus_passes: bool = False
    ceilings: Mapping[str, float] = field(default_factory=dict)
    max_left_out: float = MAX_LEFT_OUT
    outcomes: str = ""
    before: tuple[tuple[str, str], ...] = ()
    accepted: tuple[Acceptance, ...] = ()
    notices: tuple[str, ...] = ()

    @property
    def by_limits(self) -> bool:
        """Whether the limits of a gate decide, and not its value alone."""
        return any(gate.rule != "value" for gate in self.gates)


_SHARE = Key(default=None, low=0, high=1)
_NONE = Key(default=0, low=0, high=1)

METRICS: Mapping[str, Mapping[str, Key]] = {
    "pass_at": {"threshold": _SHARE},
    "pass_hat": {"threshold": _SHARE},
    "asr": {"threshold": _SHARE},
    "trend": {},
    "loops": {"threshold": _NONE, "max_upper": Key(default=1, low=0, high=1)},
    "data_corruption": {"threshold": _NONE, "max_upper": Key(default=1, low=0, high=1)},
    ORDER: {"threshold": _NONE, "max_upper": Key(default=1, low=0, high=1)},
    "human_review": {
        "threshold": Key(default=0.90, low=0, high=1),
        "minimum_n": Key(default=20, low=1, high=1_000_000, whole=True),
    },
    "judge": {
        "agreement": Key(default=0.80, low=0, high=1),
        "kappa": Key(default=0.60, low=-1, high=1),
        "kappa_lower": Key(default=0.40, low=-1, high=1),
        "recall": Key(default=0.50, low=0, high=1),
        "minimum_labels": Key(default=10, low=1, high=1_000_000, whole=True),
    },
    "non_inferior": {"margin_pp": Key(default=5, low=0, high=100)},
    "regression": {"max_drop_pp": Key(default=5, low=0, high=100)},
    "latency_p95": {"threshold": Key(default=30, low=0, high=1e9)},
    "cost": {
        "max_share_over": Key(default=0.10, low=0, high=1),
        "minimum_coverage": Key(default=0.90, low=0, high=1),
    },
}

DEFAULTS: Mapping[str, tuple[Level, Mapping[str, float]]] = {
    "pass_at_1[core]": ("must", {"threshold": 0.80}),
    "pass_hat_3[core]": ("must", {"threshold": 0.50}),
    "pass_at_1[edge]": ("should", {"threshold": 0.60}),
    "loops": ("must", {}),
    "data_corruption": ("must", {}),
    "human_review": ("must", {}),
    "judge": ("should", {}),
    "non_inferior": ("should", {}),
    "regression": ("must", {}),
    "trend": ("should", {}),
    "latency_p95": ("should", {}),
    "cost": ("must", {}),
}


def parse_name(name: str) -> tuple[str, int, str] | None:
    """Return metric, k and tier of a gate's name, None when there is no such gate.

    Examples
    --------
    >>> parse_name("pass_hat_3[core]"), parse_name("cost"), parse_name("pass_at_0")
    (('pass_hat', 3, 'core'), ('cost', 0, ''), None)
    """
    if name in METRICS and not name.startswith("pass_"):
        return name, 0, ""
    found = _PASS.fullmatch(name)
    if found is None or len(found[3] or "") > MAX_TIER:
        return None
    return found[1], int(found[2]), found[3] or ""


def setting(
    name: str,
    level: Level,
    numbers: Mapping[str, float],
    *,
    allow_skipped: bool = False,
    rule: Rule = "value",
) -> Setting:
    """Return a gate, with defaults for the keys that are not given."""
    parsed = parse_name(name)
    if parsed is None:
        raise ValueError(f"there is no gate {name!r:.80}")
    metric, k, tier = parsed
    keys = METRICS[metric]
    for given, value in numbers.items():
        if given not in keys:
            raise ValueError(f"{given!r:.80} is not one of {', '.join(keys)}")
        key = keys[given]
        if not key.low <= value <= key.high or (key.whole and value != int(value)):
            kind = "a whole number" if key.whole else "a number"
            raise ValueError(
                f"{given!r} must be {kind} from {key.low:g} to {key.high:g}, got {value!r:.40}"
            )
    filled: dict[str, float] = {}
    for wanted, key in keys.items():
        filling = numbers[wanted] if wanted in numbers else key.default
        if filling is None:
            raise ValueError(
                f"{wanted!r} is missing: give a number from {key.low:g} to {key.high:g}"
            )
        filled[wanted] = filling
    return Setting(
        name=name,
        metric=metric,
        level=level,
        numbers=filled,
        k=k,
        tier=tier,
        allow_skipped=allow_skipped,
        rule=rule,
    )


def default_gates() -> GateFile:
    """Return the default gates."""
    return GateFile(
        gates=tuple(setting(name, level, given) for name, (level, given) in DEFAULTS.items())
    )


def read_gate_file(path: Path) -> GateFile:
    """Read a gate file; an error names the line, or the key."""
    text = read_text(path, most=MOST_TOML_BYTES, hint="; a gate file is a page")
    try:
        return parse_gates(text)
    except InputError as error:
        raise InputError(f"{path}: {error}") from error


def parse_gates(text: str) -> GateFile:
    """Return the gates of a TOML text, over the default gates unless it has `defaults = false`."""
    data = parse_toml(text)
    for key in data:
        if key not in TOP:
            hint = f'; a gate is written [gates."{key:.60}"]' if parse_name(key) else ""
            raise InputError(f"unknown key {key!r:.80}: the keys are {', '.join(TOP)}{hint}")
    tables = _table(data, "gates")
    given = {name: _table(tables, name, within="gates") for name in tables}
    names = [*DEFAULTS] if _flag(data, "defaults", default=True) else []
    before = _pairs(data)
    names += [name for name in (*given, *([ORDER] if before else [])) if name not in names]
    names = list(dict.fromkeys(names))
    if ORDER in given and not before:
        raise InputError(f"[gates.{ORDER}]: needs rules: before = [[FIRST, LATER], ...]")
    found = [_gate(name, given.get(name, {}), data) for name in names]
    gates = tuple(gate for gate in found if gate is not None)
    if not gates:
        raise InputError("holds no gate: add one, or leave out `defaults = false`")
    level = _number(data.get("confidence_level", 0.95), "confidence_level")
    if not 0.5 <= level < 1:
        raise InputError(f"'confidence_level' must be from .5 to below 1, got {level!r}")
    most = _number(data.get("max_left_out", MAX_LEFT_OUT), "max_left_out")
    if not 0 <= most <= 1:
        raise InputError(f"'max_left_out' must be a share from 0 to 1, got {most!r}")
    whole = GateFile(
        gates=gates,
        confidence_level=level,
        partial_plus_passes=_flag(data, "partial_plus_passes", default=False),
        ceilings=_ceilings(_table(data, "ceilings")),
        max_left_out=most,
        outcomes=_outcomes(data.get("outcomes", "")),
        before=before,
        notices=(INTERVAL_AWARE,)
        * any(table.get("interval_aware") for table in (data, *given.values())),
    )
    return with_accepted(whole, _accepted(data.get("accepted", [])))


def _outcomes(given: object) -> str:
    """Return the judge whose outcomes are taken as given; it came with the runs."""
    if given != "" and not (isinstance(given, str) and given.startswith(SOURCE_JUDGE)):
        raise InputError(
            f"'outcomes' must be a judge that came with the runs, such as \"{SOURCE_JUDGE}tau2\", "
            f"got {given!r:.80}"
        )
    return str(given)


def acceptance(gate: str, by: str, why: str, until: str | date) -> Acceptance:
    """Return a decision; InputError if a text is empty, too long or not one line, or no date.

    Examples
    --------
    >>> acceptance("judge", "Mara", "Labels come next week.", "2026-12-31").until
    datetime.date(2026, 12, 31)
    """
    for name, text, most in (("gate", gate, MOST_BY), ("by", by, MOST_BY), ("why", why, MOST_WHY)):
        plain = isinstance(text, str) and text.isprintable() and text.strip()
        if not plain or len(text) > most:
            raise InputError(
                f"{name!r} must be 1 to {most} characters on one line, without control "
                f"characters, got {text!r:.80}"
            )
    day = until
    if isinstance(until, str):
        try:
            day = date.fromisoformat(until)
        except ValueError:
            day = until
    if not isinstance(day, date) or isinstance(day, datetime):
        raise InputError(f"'until' must be a day such as 2026-12-31, got {until!r:.60}")
    return Acceptance(gate=gate, by=by.strip(), why=why.strip(), until=day)


def with_accepted(gates: GateFile, given: Sequence[Acceptance]) -> GateFile:
    """Return the gates with further decisions, which replace earlier ones on the same gate.

    InputError if one is on a gate that is not there, or on a must gate, or two are on one gate.
    """
    levels = {gate.name: gate.level for gate in gates.gates}
    for one in given:
        if one.gate not in levels:
            raise InputError(
                f"accepted: there is no gate {one.gate!r:.80}; the gates are {', '.join(levels)}"
            )
        if levels[one.gate] == "must":
            raise InputError(
                f"accepted: {one.gate!r:.80} is required (level must), so that nobody can "
                'accept its failure; fix the run, or set level = "should" in the gate file'
            )
    names = [one.gate for one in given]
    twice = next((name for name in names if names.count(name) > 1), None)
    if twice is not None:
        raise InputError(f"accepted: {twice!r:.80} is accepted twice; one decision a gate")
    kept = [one for one in gates.accepted if one.gate not in names]
    return replace(gates, accepted=(*kept, *given))


def _accepted(tables: object) -> list[Acceptance]:
    """Return the decisions of the gate file."""
    if not isinstance(tables, list) or not all(isinstance(table, dict) for table in tables):
        raise InputError("'accepted' must be tables, each written [[accepted]]")
    found = []
    for number, table in enumerate(tables, 1):
        if set(table) != set(OF_ACCEPTED):
            raise InputError(
                f"[[accepted]] {number}: must have {', '.join(OF_ACCEPTED)} and nothing else, "
                f"has {', '.join(table):.200}"
            )
        try:
            found.append(acceptance(**table))
        except InputError as error:
            raise InputError(f"[[accepted]] {number}: {error}") from error
    return found


def _pairs(data: Mapping[str, Any]) -> tuple[tuple[str, str], ...]:
    """Return the rules of order; what they name is checked where it is used."""
    given = data.get("before", [])
    if not isinstance(given, list) or len(given) > MAX_RULES:
        raise InputError(f"'before' must be a list of at most {MAX_RULES} pairs of tools")
    for pair in given:
        two = isinstance(pair, list) and len(pair) == 2
        if not two or not all(isinstance(tool, str) for tool in pair):
            raise InputError(f"'before' must be pairs of tools, [FIRST, LATER], got {pair!r:.80}")
    return tuple(dict.fromkeys((first, later) for first, later in given))


def _gate(name: str, table: Mapping[str, Any], data: Mapping[str, Any]) -> Setting | None:
    where = f'[gates."{name:.80}"]'
    parsed = parse_name(name)
    if parsed is None:
        others = [metric for metric in METRICS if not metric.startswith("pass_")]
        raise InputError(
            f"{where}: there is no such gate; the gates are pass_at_K and pass_hat_K, as "
            f'"pass_at_1[core]", and {", ".join(others)}'
        )
    keys = METRICS[parsed[0]]
    for key in table:
        if key not in keys and key not in OF_EVERY_GATE:
            raise InputError(
                f"{where}: unknown key {key!r:.80}; the keys are "
                f"{', '.join((*keys, *OF_EVERY_GATE))}"
            )
    default_level, numbers = DEFAULTS.get(name, ("must", {}))
    level = table.get("level", default_level)
    if not isinstance(level, str) or level not in LEVELS:
        raise InputError(f"{where}: 'level' must be one of {', '.join(LEVELS)}, got {level!r:.60}")
    own = {key: _number(table[key], key, where) for key in keys if key in table}
    checked: Level = "must" if level == "must" else "should"
    try:
        found = setting(
            name,
            checked,
            {**numbers, **own},
            allow_skipped=_flag(
                table, "allow_skipped", default=_flag(data, "allow_skipped", default=False),
                where=where,
            ),
            rule=_rule(table, where) or _rule(data, "") or "value",
        )  # fmt: skip
    except ValueError as error:
        if level == "off" and not own:
            return None
        raise InputError(f"{where}: {error}") from error
    return None if level == "off" else found


def _ceilings(table: Mapping[str, Any]) -> dict[str, float]:
    found = {}
    for name, value in table.items():
        amount = _number(value, name, "[ceilings]")
        if not 0 < amount <= MAX_USD:
            raise InputError(
                f"[ceilings]: {name!r:.80} must be USD per unit, above 0 and at most "
                f"{MAX_USD:,}, got {amount!r}"
            )
        found[name] = amount
    return found


def _table(data: Mapping[str, Any], key: str, *, within: str = "") -> dict[str, Any]:
    value = data.get(key, {})
    if not isinstance(value, dict):
        shown = f'[{within}."{key:.80}"]' if within else f"[{key}]"
        raise InputError(f"{key!r:.80} must be a table, written {shown}, got {value!r:.60}")
    return value


def _flag(data: Mapping[str, Any], key: str, *, default: bool, where: str = "") -> bool:
    value = data.get(key, default)
    if not isinstance(value, bool):
        place = f"{where}: " if where else ""
        raise InputError(f"{place}{key!r} must be true or false, got {value!r:.60}")
    return value


def _rule(table: Mapping[str, Any], where: str) -> Rule | None:
    """Return the rule that a table gives; None without one."""
    place = f"{where}: " if where else ""
    if "rule" in table and "interval_aware" in table:
        raise InputError(f"{place}'rule' and 'interval_aware' are both given; leave out the second")
    if "interval_aware" in table:
        return (
            "not_shown_bad"
            if _flag(table, "interval_aware", default=False, where=where)
            else "value"
        )
    if "rule" not in table:
        return None
    found = next((rule for rule in RULES if rule == table["rule"]), None)
    if found is None:
        raise InputError(
            f"{place}'rule' must be one of {', '.join(RULES)}, got {table['rule']!r:.60}"
        )
    return found


def _number(value: object, key: str, where: str = "") -> float:
    place = f"{where}: " if where else ""
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise InputError(f"{place}{key!r:.80} must be a number, got {value!r:.60}")
    # Integers beyond a float's range would raise when compared with one; NaN is not below it.
    if not abs(value) <= 1e300:
        raise InputError(f"{place}{key!r:.80} must be a finite number, got {value!r:.60}")
    return value
