"""The gate file: TOML, read strictly, so that a slip of the pen is never a gate that passes."""

import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from calibration.errors import InputError
from calibration.gates.settings import (
    DEFAULTS,
    LEVELS,
    MAX_SET_ASIDE,
    METRICS,
    GateFile,
    Level,
    Setting,
    parse_name,
    setting,
)

TOP = (
    "defaults", "interval_aware", "allow_skipped", "confidence_level", "partial_plus_passes",
    "max_set_aside", "ceilings", "gates",
)  # fmt: skip
OF_EVERY_GATE = ("level", "allow_skipped", "interval_aware")
MAX_BYTES = 1_000_000
MAX_USD = 1_000_000


def read_gate_file(path: Path) -> GateFile:
    """Read a gate file.

    Raises
    ------
    InputError
        If the file cannot be read, is no TOML (the message has line and column), or holds an
        unknown key, a wrong type or a number out of range (the message has the key).
    """
    try:
        content = path.read_bytes()
    except OSError as error:
        raise InputError(f"{path}: cannot be read ({error.strerror})") from error
    if len(content) > MAX_BYTES:
        raise InputError(f"{path}: is larger than {MAX_BYTES:,} bytes; a gate file is a page")
    try:
        return parse_gates(content.decode("utf-8-sig"))
    except UnicodeDecodeError as error:
        raise InputError(f"{path}: is not UTF-8 (byte {error.start})") from error
    except InputError as error:
        raise InputError(f"{path}: {error}") from error


def parse_gates(text: str) -> GateFile:
    r"""Return the gates of a TOML text, over the default table unless it says `defaults = false`.

    Raises
    ------
    InputError
        As `read_gate_file`, without the name of the file.

    Examples
    --------
    >>> found = parse_gates('defaults = false\n[gates.latency_p95]\nthreshold = 12')
    >>> [(gate.name, gate.level, gate.numbers["threshold"]) for gate in found.gates]
    [('latency_p95', 'should', 12)]
    """
    try:
        data = tomllib.loads(text)
    # Thousands of open brackets exhaust the parser's stack; huge numbers its integers.
    except (ValueError, RecursionError) as error:
        what = "nests too deep" if isinstance(error, RecursionError) else f"{error!s:.200}"
        raise InputError(f"is not TOML ({what})") from error
    for key in data:
        if key not in TOP:
            hint = f'; a gate is written [gates."{key:.60}"]' if parse_name(key) else ""
            raise InputError(f"unknown key {key!r:.80}: the keys are {', '.join(TOP)}{hint}")
    tables = _table(data, "gates")
    given = {name: _table(tables, name, within="gates") for name in tables}
    names = [*DEFAULTS] if _flag(data, "defaults", default=True) else []
    names += [name for name in given if name not in names]
    found = [_gate(name, given.get(name, {}), data) for name in names]
    gates = tuple(gate for gate in found if gate is not None)
    if not gates:
        raise InputError("holds no gate: add one, or leave out `defaults = false`")
    level = _number(data.get("confidence_level", 0.95), "confidence_level")
    if not 0.5 <= level < 1:
        raise InputError(f"'confidence_level' must be from .5 to below 1, got {level!r}")
    most = _number(data.get("max_set_aside", MAX_SET_ASIDE), "max_set_aside")
    if not 0 <= most <= 1:
        raise InputError(f"'max_set_aside' must be a share from 0 to 1, got {most!r}")
    return GateFile(
        gates=gates,
        confidence_level=level,
        partial_plus_passes=_flag(data, "partial_plus_passes", default=False),
        ceilings=_ceilings(_table(data, "ceilings")),
        max_set_aside=most,
    )


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
            interval_aware=_flag(
                table, "interval_aware", default=_flag(data, "interval_aware", default=False),
                where=where,
            ),
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


def _number(value: object, key: str, where: str = "") -> float:
    place = f"{where}: " if where else ""
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise InputError(f"{place}{key!r:.80} must be a number, got {value!r:.60}")
    # Whole numbers beyond a float's range would raise where they meet one; NaN is not below it.
    if not abs(value) <= 1e300:
        raise InputError(f"{place}{key!r:.80} must be a finite number, got {value!r:.60}")
    return value
