"""What a gate is: its metric, its keys with their ranges, and the default table."""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

Level = Literal["must", "should"]
LEVELS: tuple[str, ...] = ("must", "should", "off")

MAX_TIER = 60
MAX_SET_ASIDE = 0.05
_PASS = re.compile(r"(pass_at|pass_hat)_([1-9][0-9]{0,3})(?:\[([^\[\]\x00-\x1f\x7f]+)\])?")


@dataclass(frozen=True, slots=True, kw_only=True)
class Key:
    """One number of a gate: its default (None: it must be given) and range."""

    default: float | None
    low: float
    high: float
    whole: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Setting:
    """One gate.

    Parameters
    ----------
    name : str
        As in the gate file, for instance ``pass_hat_3[core]``.
    metric : str
        Its kind: one of `METRICS`.
    level : {"must", "should"}
        Whether it can fail the run.
    numbers : mapping of str to float
        Thresholds and other keys of `METRICS`.
    k : int
        Of pass@k and pass^k.
    tier : str
        Tier of tasks that it looks at; empty for all.
    allow_skipped : bool
        Whether a must gate without a result lets the run pass.
    interval_aware : bool
        Whether it fails only when the whole interval lies beyond the threshold.
    """

    name: str
    metric: str
    level: Level
    numbers: Mapping[str, float]
    k: int = 0
    tier: str = ""
    allow_skipped: bool = False
    interval_aware: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class GateFile:
    """All gates, and what holds for all of them.

    Parameters
    ----------
    gates : tuple of Setting
        In the order they are shown.
    confidence_level : float
        Of every interval, in (0, 1).
    partial_plus_passes : bool
        Whether a partial_plus run passes in pass@k and pass^k.
    ceilings : mapping of str to float
        Cost ceiling of workflows in USD per unit; goes before that of the taxonomy.
    max_set_aside : float
        Share of the rows that may be set aside; a file with more is refused.
    """

    gates: tuple[Setting, ...]
    confidence_level: float = 0.95
    partial_plus_passes: bool = False
    ceilings: Mapping[str, float] = field(default_factory=dict)
    max_set_aside: float = MAX_SET_ASIDE


_SHARE = Key(default=None, low=0, high=1)
_NONE = Key(default=0, low=0, high=1)
METRICS: Mapping[str, Mapping[str, Key]] = {
    "pass_at": {"threshold": _SHARE},
    "pass_hat": {"threshold": _SHARE},
    "asr": {"threshold": _SHARE},
    "loops": {"threshold": _NONE, "max_upper": Key(default=1, low=0, high=1)},
    "data_corruption": {"threshold": _NONE, "max_upper": Key(default=1, low=0, high=1)},
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
    interval_aware: bool = False,
) -> Setting:
    """Return a gate, with the defaults of the keys that were not given.

    Raises
    ------
    ValueError
        If there is no such gate, or a key is unknown, missing or out of range.

    Examples
    --------
    >>> dict(setting("human_review", "must", {}).numbers)
    {'threshold': 0.9, 'minimum_n': 20}
    """
    parsed = parse_name(name)
    if parsed is None:
        raise ValueError(f"there is no gate {name!r:.80}")
    metric, k, tier = parsed
    keys = METRICS[metric]
    for given, value in numbers.items():
        if given not in keys:
            raise ValueError(f"{given!r:.80} is none of {', '.join(keys)}")
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
        interval_aware=interval_aware,
    )


def default_gates() -> GateFile:
    """Return the default table.

    Examples
    --------
    >>> [gate.name for gate in default_gates().gates if gate.level == "should"]
    ['pass_at_1[edge]', 'judge', 'non_inferior', 'latency_p95']
    """
    return GateFile(
        gates=tuple(setting(name, level, given) for name, (level, given) in DEFAULTS.items())
    )
