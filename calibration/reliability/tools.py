"""Tool correctness of one interaction, and the interactions of a conversation.

An interaction is one request to an agent with its answer. What it called is compared with what it
was expected to call, in four parts: selection, parameters, sequence and utilisation.
"""

import json
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from math import fsum, isfinite

PARTS = ("selection", "parameters", "sequence", "utilisation")
EQUAL_WEIGHTS: Mapping[str, float] = dict.fromkeys(PARTS, 0.25)
ANSWER_THRESHOLD, TOOL_THRESHOLD = 0.7, 1.0
MOST_NAME = 200
# The lower limits of the bands of a score; the first holds 1 alone.
BANDS = (1.0, 0.75, 0.5, 0.0)
# Sums of weights this close to a threshold reach it.
ROUNDING = 1e-9
_ENCODER = json.JSONEncoder(ensure_ascii=False, sort_keys=True, separators=(",", ":"))


@dataclass(frozen=True, slots=True, kw_only=True)
class CallRecord:
    """One call of a tool: arguments by name, as JSON text that is equal for equal values.

    `step` orders calls; calls of one step are made together.
    """

    name: str
    arguments: Mapping[str, str] = field(default_factory=dict)
    step: float | None = None

    @property
    def identity(self) -> tuple[str, tuple[tuple[str, str], ...]]:
        """What is equal for identical calls: the tool and all of its arguments."""
        return self.name, tuple(sorted(self.arguments.items()))


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolScore:
    """Tool correctness of an interaction, each part in [0, 1]; None where it is not known.

    `missing` and `extra` name calls: expected and not made, made and not expected. `overall` is
    None where no part with a weight is known.
    """

    overall: float | None
    selection: float
    parameters: float
    sequence: float
    utilisation: float | None
    missing: tuple[str, ...] = ()
    extra: tuple[str, ...] = ()

    def reaches(self, threshold: float) -> bool:
        """Whether the score is known, and at the threshold or above."""
        return self.overall is not None and self.overall >= threshold - ROUNDING


@dataclass(frozen=True, slots=True, kw_only=True)
class Interaction:
    """One request of a conversation and what the agent did.

    `expected` is None where nothing says what was to be called, and empty where nothing was.
    `answer_score` is None where the file says right or wrong. `uses_tools`: whether the final
    answer makes use of what the tools returned. Where several agents work together, `routed_to` is
    the one that was handed the request, `expected_route` the right one, and `agent` the one that
    answered.
    """

    conversation_id: str
    interaction: str
    answer_correct: bool
    answer_score: float | None = None
    calls: tuple[CallRecord, ...] = ()
    expected: tuple[CallRecord, ...] | None = None
    uses_tools: bool | None = None
    sequence_matters: bool = True
    expected_route: str | None = None
    routed_to: str | None = None
    agent: str | None = None

    @property
    def specialist(self) -> str | None:
        """The agent that answered; where that is not known, the one that was handed the request."""
        return self.agent or self.routed_to


@dataclass(frozen=True, slots=True, kw_only=True)
class OrderRule:
    """A rule of order: every call of `later` needs an earlier call of `first`.

    Each is the exact name of a tool, or its beginning and a ``*``. A call that `first` names is
    none of `later`. ValueError if one is no such name, or both are the same.

    Examples
    --------
    >>> rule = OrderRule(first="confirm", later="write:*")
    >>> rule.name, rule.broken_at(["write:a", "confirm", "write:b"]), rule.broken_at(["read"])
    ('confirm before write:*', [0], None)
    """

    first: str
    later: str

    def __post_init__(self) -> None:
        for tool in (self.first, self.later):
            if not tool.strip("*") or len(tool) > MOST_NAME or "*" in tool[:-1]:
                raise ValueError("must be a tool, or the beginning of its name and a '*'")
        if self.first == self.later:
            raise ValueError("names one tool twice")

    @property
    def name(self) -> str:
        """The rule in words."""
        return f"{self.first} before {self.later}"

    def broken_at(self, calls: Sequence[str]) -> list[int] | None:
        """Return the places of calls that break the rule; None where it does not apply.

        It applies where `later` is called.
        """
        seen, applies = False, False
        broken = []
        for k, tool in enumerate(calls):
            if _is_named(tool, self.first):
                seen = True
            elif _is_named(tool, self.later):
                applies = True
                if not seen:
                    broken.append(k)
        return broken if applies else None


def _is_named(tool: str, name: str) -> bool:
    return tool.startswith(name[:-1]) if name.endswith("*") else tool == name


def checked_tool_weights(weights: Mapping[str, float]) -> dict[str, float]:
    """Return the weights of the four parts; ValueError unless each is in [0, 1] and their sum is 1.

    Examples
    --------
    >>> sum(checked_tool_weights(EQUAL_WEIGHTS).values())
    1.0
    """
    if set(weights) != set(PARTS):
        raise ValueError(f"the weights must be of {', '.join(PARTS)}, got {', '.join(weights)!r}")
    for name, weight in weights.items():
        if isinstance(weight, bool) or not (isfinite(weight) and 0 <= weight <= 1):
            raise ValueError(f"the weight of {name} must be from 0 to 1, got {weight!r}")
    total = fsum(weights.values())
    if abs(total - 1) > ROUNDING:
        raise ValueError(f"the weights must add up to 1, got {total:g}")
    return {name: float(weights[name]) for name in PARTS}


def tool_score(
    calls: Sequence[CallRecord],
    expected: Sequence[CallRecord],
    *,
    uses_tools: bool | None = None,
    sequence_matters: bool = True,
    weights: Mapping[str, float] = EQUAL_WEIGHTS,
) -> ToolScore:
    """Score what an interaction called against what it was expected to call.

    The n-th call of a name is compared with the n-th expected call of that name.

    * selection: tools both called and expected, of the tools in either (Jaccard index of names)
    * parameters: mean over expected calls of the share of argument names, of either call, with
      equal values; 0 for a call that was not made
    * sequence: share of expected calls made at their place in the order; 1 if order is of no matter
    * utilisation: 1 if the final answer makes use of the tools, else 0; None where it is not known

    The overall score is their weighted mean; an unknown utilisation leaves the weights of the other
    three. Nothing expected and nothing called is 1 in every part. Expected and nothing called is 0
    overall and in every part; so are selection, parameters and sequence where calls were made and
    none was expected.

    Parameters
    ----------
    calls, expected : sequence of CallRecord
        Ordered by `step` where every call of the list has one, otherwise as listed.
    uses_tools : bool, optional
    sequence_matters : bool, default True
    weights : mapping, default .25 each

    Raises
    ------
    ValueError
        If the weights are not those of the four parts, or do not add up to 1.

    Examples
    --------
    One of two argument values is right: parameters .5, and (1 + .5 + 1 + 1) / 4.

    >>> found = tool_score(
    ...     [CallRecord(name="book", arguments={"to": '"FRA"', "seats": "1"})],
    ...     [CallRecord(name="book", arguments={"to": '"FRA"', "seats": "2"})],
    ...     uses_tools=True,
    ... )
    >>> found.parameters, found.overall
    (0.5, 0.875)
    >>> tool_score([], [CallRecord(name="book")]).overall, tool_score([], []).overall
    (0.0, 1.0)
    """
    weighted = checked_tool_weights(weights)
    used = None if uses_tools is None else float(uses_tools)
    if not calls or not expected:
        same = 0.0 if calls or expected else 1.0
        return _scored(
            (same, same, same, used if calls else same), weighted, _names(expected), _names(calls)
        )
    pairs, missing, extra = _matched(placed(calls), placed(expected))
    n = len(expected)
    names, wanted = set(_names(calls)), set(_names(expected))
    in_place = sum(place == its for (place, _), (its, _) in pairs)
    return _scored(
        (
            len(names & wanted) / len(names | wanted),
            fsum(_alike(call, like) for (_, call), (_, like) in pairs) / n,
            in_place / n if sequence_matters else 1.0,
            used,
        ),
        weighted,
        missing,
        extra,
    )


def interaction_score(
    of: Interaction, *, weights: Mapping[str, float] = EQUAL_WEIGHTS
) -> ToolScore | None:
    """Return the tool score of an interaction; None where no expected calls are given."""
    if of.expected is None:
        return None
    return tool_score(
        of.calls,
        of.expected,
        uses_tools=of.uses_tools,
        sequence_matters=of.sequence_matters,
        weights=weights,
    )


def _scored(
    parts: tuple[float, float, float, float | None],
    weights: Mapping[str, float],
    missing: tuple[str, ...],
    extra: tuple[str, ...],
) -> ToolScore:
    known = {name: part for name, part in zip(PARTS, parts, strict=True) if part is not None}
    total = fsum(weights[name] for name in known)
    weighted = fsum(weights[name] * part for name, part in known.items())
    selection, parameters, sequence, utilisation = parts
    return ToolScore(
        overall=min(1.0, weighted / total) if total else None,
        selection=selection,
        parameters=parameters,
        sequence=sequence,
        utilisation=utilisation,
        missing=missing,
        extra=extra,
    )


def _names(calls: Iterable[CallRecord]) -> tuple[str, ...]:
    return tuple(call.name for call in calls)


Placed = tuple[int, CallRecord]


def placed(calls: Sequence[CallRecord]) -> list[Placed]:
    """Return calls in order with their place; calls of one step share a place."""
    steps = [call.step for call in calls]
    if any(step is None for step in steps):
        return list(enumerate(calls))
    place = {step: k for k, step in enumerate(sorted({s for s in steps if s is not None}))}
    found = [(place[call.step], call) for call in calls if call.step is not None]
    return sorted(found, key=lambda of: of[0])


def _matched(
    made: Sequence[Placed], wanted: Sequence[Placed]
) -> tuple[list[tuple[Placed, Placed]], tuple[str, ...], tuple[str, ...]]:
    """Pair the n-th call of a name with the n-th expected one; name those without a partner."""
    by_name: defaultdict[str, list[Placed]] = defaultdict(list)
    for one in made:
        by_name[one[1].name].append(one)
    taken: Counter[str] = Counter()
    pairs, missing = [], []
    for due in wanted:
        name = due[1].name
        if taken[name] < len(by_name[name]):
            pairs.append((by_name[name][taken[name]], due))
            taken[name] += 1
        else:
            missing.append(name)
    extra = [name for name, of in by_name.items() for _ in of[taken[name] :]]
    return pairs, tuple(missing), tuple(extra)


def _alike(call: CallRecord, like: CallRecord) -> float:
    """Return the share of argument names, of either call, with equal values."""
    names = call.arguments.keys() | like.arguments.keys()
    equal = sum(call.arguments.get(name) == like.arguments.get(name) for name in names)
    return equal / len(names) if names else 1.0


def canonical(value: object, *, most_nested: int = 20) -> str:
    """Return a JSON value as text that is equal for equal values: 1 and 1.0, but not 1 and true.

    ValueError if it is not JSON: NaN, an infinity, a key that is no text, or nested too deeply.

    Examples
    --------
    >>> canonical({"b": 1.0, "a": [True, None]}), canonical({"a": [True, None], "b": 1})
    ('{"a":[true,null],"b":1}', '{"a":[true,null],"b":1}')
    """
    return _ENCODER.encode(_plain(value, most_nested))


def _plain(value: object, depth: int) -> object:
    if value is None or isinstance(value, str | bool | int):
        return value
    if isinstance(value, float):
        if not isfinite(value):
            raise ValueError(f"{value} is no JSON number")
        return int(value) if value.is_integer() else value
    if depth == 0:
        raise ValueError("nested too deeply")
    if isinstance(value, list):
        return [_plain(item, depth - 1) for item in value]
    if isinstance(value, dict) and all(isinstance(key, str) for key in value):
        return {key: _plain(item, depth - 1) for key, item in value.items()}
    raise ValueError(f"{type(value).__name__} is no JSON value")


def band_of(score: float) -> int:
    """Return the band of a score, a place in `BANDS`: 1, [.75, 1), [.5, .75), [0, .5).

    Examples
    --------
    >>> [band_of(score) for score in (1.0, 0.995, 0.75, 0.745, 0.5, 0.0)]
    [0, 1, 1, 2, 2, 3]
    """
    if not 0 <= score <= 1:
        raise ValueError(f"a score is from 0 to 1, got {score!r}")
    return next(k for k, low in enumerate(BANDS) if score >= low - ROUNDING)


def is_correct(
    of: Interaction,
    score: ToolScore | None,
    *,
    require_tools: bool = False,
    tool_threshold: float = TOOL_THRESHOLD,
) -> bool:
    """Return whether an interaction is correct: its answer, and with `require_tools` its tools too.

    Tools without a score do not count.
    """
    if score is None or score.overall is None or not require_tools:
        return of.answer_correct
    return of.answer_correct and score.reaches(tool_threshold)


def conversation_correct(interactions: Sequence[bool]) -> bool:
    """Return whether all interactions of a conversation are correct; ValueError without any.

    Examples
    --------
    >>> conversation_correct([True] * 9 + [False])
    False
    """
    if not len(interactions):
        raise ValueError("a conversation has one interaction or more, got none")
    return all(interactions)


@dataclass(frozen=True, slots=True, kw_only=True)
class InteractionPass:
    """The share of a conversation's interactions that are correct, and its powers.

    A figure of interactions, not of trials: pass@k of a task is `success_rate.pass_at_k`.
    """

    k: int
    interaction_pass_at_k: float
    interaction_pass_hat_k: float


def interaction_pass(n: int, c: int, k: int) -> InteractionPass:
    """Return 1 - (1 - c/n)^k and (c/n)^k for c correct of the n interactions of a conversation.

    The first is the chance that one of k interactions drawn with replacement is correct, the second
    that all are. Neither says whether the conversation is correct, nor how often a repetition of it
    would be. ValueError unless 0 <= c <= n, n >= 1 and k >= 1: an empty conversation has none.

    Examples
    --------
    >>> found = interaction_pass(10, 9, 3)
    >>> found.interaction_pass_at_k, found.interaction_pass_hat_k
    (0.999, 0.729)
    """
    if n < 1 or not 0 <= c <= n or k < 1:
        raise ValueError(f"n and k must be at least 1 and c from 0 to n, got n={n}, c={c}, k={k}")
    share = c / n
    return InteractionPass(
        k=k,
        interaction_pass_at_k=1 - (1 - share) ** k,
        interaction_pass_hat_k=share**k,
    )
