"""What a judge is: everything that can change an answer, and its identity.

The key and the address of an endpoint are no part of a version: the same judge may be asked at
another address.
"""

import hashlib
import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, fields
from typing import Any, TypeGuard

from calibration.errors import InputError
from calibration.judging.requests import STRUCTURED_MODES, Capabilities
from calibration.taxonomy import Taxonomy

RENDERER, READER = "2", "2"  # of the texts of `prompt`, and of what `answers` accepts
PLANS = ("one_call", "per_node", "plan_first")
THOUGHTS = ("shown", "withheld")
MOST_SAMPLES = 25
MOST_NAME, MOST_TEXT = 200, 100_000
CHARACTERS_PER_TOKEN = 3.5

DEFAULT_ROLE = (
    "You review runs of software agents. You read the record of one run and answer yes/no "
    "questions about it, from the record alone. A run that is right and terse is as good as one "
    "that is right and long; length, style and politeness are no part of any answer."
)

# Fields of a version by what they must be; the others are names.
_CHOICES = {"structured": STRUCTURED_MODES, "plan": PLANS, "thoughts": THOUGHTS}
_COUNTS = {
    "samples": (1, MOST_SAMPLES),
    "token_limit": (64, 1_000_000),
    "context_tokens": (1_000, 100_000_000),
    "seed": (0, 2**31 - MOST_SAMPLES),
}
_NUMBERS = {"temperature": (0.0, 2.0), "characters_per_token": (0.25, 20.0)}
_OPTIONAL = ("temperature", "seed", "reasoning_effort", "context_tokens")


def canonical_json(data: object) -> str:
    """Return the one JSON text of plain data: sorted keys, no blanks, Unicode as it is.

    Raises
    ------
    ValueError
        If a number is not finite.

    Examples
    --------
    >>> canonical_json({"b": [1, None], "a": "é"})
    '{"a":"é","b":[1,null]}'
    """
    return json.dumps(
        data, sort_keys=True, ensure_ascii=False, separators=(",", ":"), allow_nan=False
    )


def sha256_of(data: object) -> str:
    """Return the SHA-256 of the canonical JSON of plain data, as 64 hexadecimal digits.

    Examples
    --------
    >>> sha256_of({})[:8]  # printf '{}' | sha256sum
    '44136fa3'
    """
    return hashlib.sha256(canonical_json(data).encode("utf-8", "surrogatepass")).hexdigest()


def tree_digest(taxonomy: Taxonomy) -> str:
    """Return the SHA-256 of what a judge is told of a taxonomy: its questions, not its credits.

    Examples
    --------
    >>> from dataclasses import replace
    >>> from calibration.taxonomy import default_taxonomy
    >>> other = replace(default_taxonomy(), workflows=())
    >>> tree_digest(other) == tree_digest(default_taxonomy())
    True
    """
    return sha256_of([asdict(node) for node in taxonomy.nodes])


@dataclass(frozen=True, slots=True, kw_only=True)
class JudgeVersion:
    """Everything that can change an answer of a judge; valid by construction.

    `handbook` holds an excerpt by question. `few_shots` are ids of practice traces, and
    `few_shots_sha256` is over their texts and reference answers. `token_limit` bounds an answer.
    The prompt is cut to `context_tokens` less this limit less a tenth, at `characters_per_token`;
    without `context_tokens` it is never cut. With `seed` s, sample k is asked with s + k.

    Raises
    ------
    InputError
        If a field has no permitted value; the message names it.

    Examples
    --------
    >>> from calibration.taxonomy import default_taxonomy
    >>> version = new_version(model="m", endpoint="vllm", taxonomy=default_taxonomy())
    >>> len(version.judge_id), version.samples, version.plan
    (16, 3, 'one_call')
    """

    model: str
    endpoint: str
    role: str
    handbook: tuple[tuple[str, str], ...]
    tree_version: str
    tree_sha256: str
    few_shots: tuple[str, ...]
    few_shots_sha256: str
    samples: int = 3
    temperature: float | None = None
    seed: int | None = None
    token_limit: int = 4_000
    reasoning_effort: str | None = None
    structured: str = "json_schema"
    plan: str = "one_call"
    thoughts: str = "shown"
    context_tokens: int | None = None
    characters_per_token: float = CHARACTERS_PER_TOKEN
    renderer: str = RENDERER
    reader: str = READER

    def __post_init__(self) -> None:
        for name in fields(self):
            problem = _problem(name.name, getattr(self, name.name))
            if problem:
                raise InputError(f"judge version: {name.name} {problem}")
        for number in _NUMBERS:  # 1 and 1.0 are the same judge
            value = getattr(self, number)
            object.__setattr__(self, number, None if value is None else float(value))
        if self.context_tokens is not None and self.context_tokens <= self.token_limit:
            raise InputError(
                f"judge version: context_tokens must exceed token_limit ({self.token_limit:,}), "
                f"got {self.context_tokens:,}"
            )

    @property
    def judge_id(self) -> str:
        """The identity: the first 16 hexadecimal digits of the SHA-256 of the version."""
        return sha256_of(self.to_dict())[:16]

    @property
    def prompt_id(self) -> str:
        """The identity of the prompts: that of the version without the reader of its answers.

        A corrected reader is another judge over answers that are paid for: tags and code words
        in their prompts must remain the same.
        """
        data = self.to_dict()
        del data["reader"]
        return sha256_of(data)[:16]

    def to_dict(self) -> dict[str, Any]:
        """Return plain data that `version_from_dict` reads back."""
        data = asdict(self)
        return data | {"handbook": dict(self.handbook), "few_shots": list(self.few_shots)}


def new_version(
    *,
    model: str,
    endpoint: str,
    taxonomy: Taxonomy,
    few_shots: Sequence[str] = (),
    few_shots_sha256: str | None = None,
    handbook: Mapping[str, str] | None = None,
    role: str = DEFAULT_ROLE,
    **settings: Any,
) -> JudgeVersion:
    """Return a version for a taxonomy.

    Parameters
    ----------
    model, endpoint
        The name to ask for, and the kind of endpoint, such as ``vllm``; not its address.
    taxonomy
        Its questions are those of the judge.
    few_shots, few_shots_sha256
        Ids of the worked examples, and `prompt.few_shots_digest` of them.
    handbook
        An excerpt by question; questions that the taxonomy lacks are left out.
    role
        What the judge is told to be.
    settings
        Further fields of `JudgeVersion`.

    Raises
    ------
    InputError
        If a field has no permitted value.

    Examples
    --------
    >>> from calibration.taxonomy import default_taxonomy
    >>> new_version(model="m", endpoint="vllm", taxonomy=default_taxonomy(), plan="guess")
    Traceback (most recent call last):
    calibration.errors.InputError: judge version: plan must be one_call, per_node or plan_first,
    got 'guess'
    """
    excerpts = handbook or {}
    known = [node.id for node in taxonomy.nodes if node.id in excerpts]
    return JudgeVersion(
        model=model,
        endpoint=endpoint,
        role=role,
        handbook=tuple((node, excerpts[node]) for node in known),
        tree_version=taxonomy.version,
        tree_sha256=tree_digest(taxonomy),
        few_shots=tuple(few_shots),
        few_shots_sha256=few_shots_sha256 or sha256_of([]),
        **settings,
    )


def version_from_dict(data: object, *, where: str = "judge version") -> JudgeVersion:
    """Build a version from plain data (JSON); `where` names it in errors.

    Raises
    ------
    InputError
        If a field is missing, unknown or has no permitted value.

    Examples
    --------
    >>> from calibration.taxonomy import default_taxonomy
    >>> version = new_version(model="m", endpoint="vllm", taxonomy=default_taxonomy())
    >>> version_from_dict(version.to_dict()) == version
    True
    >>> version_from_dict({"modle": "m"}, where="judge.json")
    Traceback (most recent call last):
    calibration.errors.InputError: judge.json: unknown field 'modle'
    """
    plain = _known_fields(data, where)
    for name, kind, build in (("handbook", dict, _pairs), ("few_shots", list, tuple)):
        if not isinstance(plain[name], kind):
            what = "an object" if kind is dict else "a list"
            raise InputError(f"{where}: {name} must be {what}, got {plain[name]!r:.80}")
        plain[name] = build(plain[name])
    try:
        return JudgeVersion(**plain)
    except InputError as error:
        raise InputError(str(error).replace("judge version", where, 1)) from error


def changed_fields(before: JudgeVersion, after: JudgeVersion) -> list[str]:
    """Return one line a field in which two versions differ; of a long text, where it begins to.

    Examples
    --------
    >>> from dataclasses import replace
    >>> from calibration.taxonomy import default_taxonomy
    >>> old = new_version(model="m", endpoint="vllm", taxonomy=default_taxonomy())
    >>> changed_fields(old, replace(old, samples=5, temperature=0.7))
    ['samples: 3 -> 5', 'temperature: none -> 0.7']
    """
    old, new = before.to_dict(), after.to_dict()
    for data in (old, new):
        for node, text in data.pop("handbook").items():
            data[f"handbook, {node}"] = text
    return [
        f"{name}: {_beside(old.get(name), new.get(name))}"
        for name in dict.fromkeys((*old, *new))
        if old.get(name) != new.get(name)
    ]


def misfit(version: JudgeVersion, endpoint: Capabilities) -> str | None:
    """Return why a version cannot be asked at an endpoint, None if it can.

    Examples
    --------
    >>> from calibration.taxonomy import default_taxonomy
    >>> version = new_version(
    ...     model="m", endpoint="vllm", taxonomy=default_taxonomy(), structured="plain", seed=1
    ... )
    >>> misfit(version, Capabilities(structured="plain", seed=False))
    'the judge wants a seed, which the endpoint does not take; use a version without one'
    """
    if version.structured != endpoint.structured:
        return (
            f"the judge wants answers in the mode {version.structured}, the probe found "
            f"{endpoint.structured}; use a version with structured = {endpoint.structured}"
        )
    for name, wanted, takes in (
        ("temperature", version.temperature, endpoint.temperature),
        ("seed", version.seed, endpoint.seed),
    ):
        if wanted is not None and not takes:
            return (
                f"the judge wants a {name}, which the endpoint does not take; "
                "use a version without one"
            )
    context = version.context_tokens
    if context is not None and endpoint.context is not None and context > endpoint.context:
        return (
            f"the judge wants {context:,} tokens of context, the endpoint has "
            f"{endpoint.context:,}; use a version with fewer"
        )
    return None


def _known_fields(data: object, where: str) -> dict[str, Any]:
    """Return the fields of a version that plain data hold; all of them must be there."""
    if not isinstance(data, dict):
        raise InputError(f"{where}: must be an object, got {data!r:.80}")
    names = [item.name for item in fields(JudgeVersion)]
    for key in data:
        if key not in names:
            raise InputError(f"{where}: unknown field {key!r:.80}")
    for name in names:
        if name not in data:
            raise InputError(f"{where}: field {name!r} is missing")
    return {name: data[name] for name in names}


def _pairs(excerpts: dict[str, str]) -> tuple[tuple[str, str], ...]:
    """Return the excerpts of a handbook in their order."""
    return tuple(excerpts.items())


def _problem(name: str, value: object) -> str | None:
    """Return what is wrong with a field of a version."""
    if value is None and name in _OPTIONAL:
        return None
    if name in _CHOICES:
        known = _CHOICES[name]
        return None if value in known else f"must be {_either(known)}, got {value!r:.80}"
    if name in _COUNTS:
        low, high = _COUNTS[name]
        if _is_whole(value) and low <= value <= high:
            return None
        return f"must be a whole number from {low:,} to {high:,}, got {value!r:.80}"
    if name in _NUMBERS:
        return _number_problem(value, *_NUMBERS[name])
    if name == "handbook":
        return _handbook_problem(value)
    if name == "few_shots":
        return _ids_problem(value)
    most = MOST_TEXT if name == "role" else MOST_NAME
    if isinstance(value, str) and value.strip() and len(value) <= most:
        return None
    return f"must be a text of 1 to {most:,} characters, got {value!r:.80}"


def _number_problem(value: object, low: float, high: float) -> str | None:
    """Return what is wrong with a number in a range."""
    if isinstance(value, int | float) and not isinstance(value, bool):
        if math.isfinite(value) and low <= value <= high:
            return None
    return f"must be a number from {low:g} to {high:g}, got {value!r:.80}"


def _handbook_problem(value: object) -> str | None:
    """Return what is wrong with the excerpts of a handbook."""
    pairs = value if isinstance(value, tuple) else (None,)
    for pair in pairs:
        if not (
            isinstance(pair, tuple)
            and len(pair) == 2
            and all(isinstance(part, str) for part in pair)
        ):
            return f"must hold a text by question, got {pair!r:.80}"
    if sum(len(text) for _, text in pairs) > MOST_TEXT:
        return f"must hold at most {MOST_TEXT:,} characters"
    return None


def _ids_problem(value: object) -> str | None:
    """Return what is wrong with the ids of the worked examples."""
    ids = value if isinstance(value, tuple) else (None,)
    for trace_id in ids:
        if not isinstance(trace_id, str) or not trace_id:
            return f"must hold ids of traces, got {trace_id!r:.80}"
        if ids.count(trace_id) > 1:
            return f"names trace {trace_id!r:.80} twice"
    return None


def _is_whole(value: object) -> TypeGuard[int]:
    """Return whether a value is a whole number; True and False are none."""
    return isinstance(value, int) and not isinstance(value, bool)


def _either(known: Sequence[str]) -> str:
    """Return choices in words."""
    return f"{', '.join(known[:-1])} or {known[-1]}"


def _beside(before: object, after: object) -> str:
    """Return two values in one line; of long texts, the words around their first difference."""
    first, second = _words(before), _words(after)
    if max(len(first), len(second)) > 80:
        same = next(
            (at for at, (a, b) in enumerate(zip(first, second, strict=False)) if a != b),
            min(len(first), len(second)),
        )
        begin = max(0, same - 20)
        first, second = (
            ("…" if begin else "")
            + text[begin : begin + 60]
            + ("…" if begin + 60 < len(text) else "")
            for text in (first, second)
        )
    return f"{first} -> {second}"


def _words(value: object) -> str:
    """Return a value of a field on one line."""
    if value is None:
        return "none"
    if isinstance(value, list):
        return ", ".join(map(str, value)) or "none"
    return " ".join(str(value).split())
