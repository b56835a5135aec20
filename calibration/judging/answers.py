"""The form of an answer, how a reply is read, and how quotes are checked in code.

A reply is what a server sent: it may be an error, be cut off, hold prose, thoughts or another
answer that a trace has planted. One object with both code words and the right form is an answer;
all else has a cause.
"""

import json
import re
import unicodedata
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from jsonschema import Draft202012Validator
from jsonschema.exceptions import best_match

from calibration.files import unique_keys
from calibration.judging.budget import tokens_of
from calibration.judging.prompt import INPUT, RESPONSE, STATES, UNSEEN, Piece, fenced, pieces_of
from calibration.judging.requests import QuotedEvidence
from calibration.records import TraceForReview
from calibration.taxonomy import ANSWERS, Node, Taxonomy
from calibration.text import shown

FORM, LENGTH, FILTER, REFUSAL = "form", "length", "content_filter", "refusal"
OVERFLOW, CUT, ERROR = "context_overflow", "cut_by_server", "error"

SHORTEST_QUOTE, LONGEST_QUOTE = 12, 300
CUT_BELOW = 0.7  # of the estimated tokens of a prompt
NONSENSE_BELOW = 0.1
MOST_STARTS = 200  # places at which an object is looked for
MOST_OF_A_MESSAGE = 300

# ---- the form


def answer_schema(taxonomy: Taxonomy, only: str | None = None) -> dict[str, Any]:
    """Return the JSON schema of an answer; `only` asks for a single question.

    It keeps to what strict servers accept: every field is required, null stands for what does not
    apply, and numbers and lengths have no rules. Only the first question is on every path.

    Examples
    --------
    >>> from calibration.taxonomy import default_taxonomy
    >>> list(answer_schema(default_taxonomy(), "output")["properties"])
    ['head', 'subgoals', 'output', 'violations', 'tail']
    """
    asked = [node for node in taxonomy.nodes if only in (None, node.id)]
    nodes = {
        node.id: _node_schema() if only or node is taxonomy.root else _or_null(_node_schema())
        for node in asked
    }
    subgoal = {
        "n": {"type": "integer"},
        "state": {"type": "string", "enum": list(STATES)},
        "step": {"type": ["string", "null"]},
        "quote": {"type": ["string", "null"]},
    }
    # Any severity will do: to leave out a verdict for a word beside it would select.
    violation = {"constraint": _TEXT, "severity": _TEXT, "step": _TEXT}
    if only not in (None, taxonomy.root.id):
        return _object({"head": _TEXT, **nodes, "tail": _TEXT})
    return _object(
        {
            "head": _TEXT,
            "subgoals": _list_of(subgoal),
            **nodes,
            "violations": _list_of(violation),
            "tail": _TEXT,
        }
    )


def plan_schema() -> dict[str, Any]:
    """Return the JSON schema of what is expected of each sub-goal.

    Examples
    --------
    >>> shape_of(plan_schema())
    '{"head": string, "expected": [{"n": integer, "result": string}], "tail": string}'
    """
    expected = {"n": {"type": "integer"}, "result": _TEXT}
    return _object({"head": _TEXT, "expected": _list_of(expected), "tail": _TEXT})


def rules_schema(taxonomy: Taxonomy) -> dict[str, Any]:
    """Return the JSON schema of rules that are suggested, each for a question."""
    questions = {"type": "string", "enum": [node.id for node in taxonomy.nodes]}
    rule = {"question": questions, "why": _TEXT, "rule": _TEXT}
    return _object({"head": _TEXT, "rules": _list_of(rule), "tail": _TEXT})


_TEXT: dict[str, Any] = {"type": "string"}


def _object(properties: dict[str, Any]) -> dict[str, Any]:
    """Return the schema of an object with these fields and no others."""
    return {
        "type": "object",
        "properties": properties,
        "required": list(properties),
        "additionalProperties": False,
    }


def _list_of(properties: dict[str, Any]) -> dict[str, Any]:
    """Return the schema of a list of objects."""
    return {"type": "array", "items": _object(properties)}


def _node_schema() -> dict[str, Any]:
    """Return the schema of the answer to a question: the reason stands before the answer."""
    return _object(
        {
            "reason": _TEXT,
            "evidence": _list_of({"step": _TEXT, "quote": _TEXT}),
            "answer": {"type": "string", "enum": list(ANSWERS)},
        }
    )


def _or_null(schema: dict[str, Any]) -> dict[str, Any]:
    """Return a schema that also accepts null."""
    return {"anyOf": [schema, {"type": "null"}]}


def shape_of(schema: Mapping[str, Any]) -> str:
    """Return a schema as a model reads it: the fields in order, with their kinds.

    Examples
    --------
    >>> shape_of({"type": "array", "items": {"type": ["string", "null"]}})
    '[string|null]'
    """
    if "anyOf" in schema:
        return "|".join(shape_of(part) for part in schema["anyOf"])
    if "enum" in schema:
        return "|".join(json.dumps(value) for value in schema["enum"])
    kind = schema["type"]
    if kind == "object":
        fields = (f"{json.dumps(k)}: {shape_of(v)}" for k, v in schema["properties"].items())
        return "{" + ", ".join(fields) + "}"
    if kind == "array":
        return f"[{shape_of(schema['items'])}]"
    return kind if isinstance(kind, str) else "|".join(kind)


# ---- a reply


@dataclass(frozen=True, slots=True, kw_only=True)
class Unusable:
    """Why a reply is no answer; `limit` and `used` are tokens, where the server names them."""

    cause: str
    message: str
    limit: int | None = None
    used: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Usable:
    """An answer in the right form, and the name of the model that gave it."""

    answer: dict[str, Any]
    model: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Expected:
    """What an answer must have: its schema, both code words, and the tokens of its prompt."""

    schema: dict[str, Any]
    head: str
    tail: str
    prompt_tokens: float


def read_reply(status: int, body: str, expected: Expected) -> Usable | Unusable:
    """Return the answer in the reply of a server, or why there is none.

    Parameters
    ----------
    status, body
        The HTTP status and the text of the reply.
    expected
        What the answer must have.

    Examples
    --------
    >>> expected = Expected(schema=plan_schema(), head="a", tail="b", prompt_tokens=9)
    >>> text = 'Sure: {"head": "a", "expected": [], "tail": "b"}'
    >>> body = json.dumps({"choices": [{"message": {"content": text}}]})
    >>> read_reply(200, body, expected).answer["expected"]
    []
    >>> read_reply(200, body[:20], expected).cause
    'error'
    """
    data = _loaded(body)
    if status >= 400:
        return error_of(status, body)
    if not isinstance(data, dict):
        return Unusable(cause=ERROR, message="the reply is no JSON object")
    if data.get("error"):
        return error_of(status, body)
    choices = data.get("choices")
    if not isinstance(choices, list) or not choices or not isinstance(choices[0], dict):
        return Unusable(cause=ERROR, message="the reply holds no choices")
    message = choices[0].get("message")
    ended = _ended(choices[0], message if isinstance(message, dict) else {})
    if ended is not None:
        return ended
    if not isinstance(message, dict):
        return Unusable(cause=ERROR, message="the reply holds no message")
    found = _answer_in(message, expected)
    tokens = _prompt_tokens(body, data)
    # Who copies both code words has read more than a count of nonsense says.
    least = 0 if isinstance(found, Unusable) else NONSENSE_BELOW * expected.prompt_tokens
    if tokens is not None and least <= tokens < CUT_BELOW * expected.prompt_tokens:
        return Unusable(
            cause=CUT,
            message=f"the server read {tokens:,} tokens of about {expected.prompt_tokens:,.0f}",
            limit=tokens,
        )
    if isinstance(found, Unusable):
        return found
    return Usable(answer=found, model=str(data.get("model") or ""))


def error_of(status: int, body: str) -> Unusable:
    """Return the cause of an error: too long, a content filter, or another one.

    The body may be JSON of any depth of wrapping, or plain text.

    Examples
    --------
    >>> message = "This model's maximum context length is 4096 tokens. However, your messages "
    >>> found = error_of(400, message + "resulted in 5000 tokens.")
    >>> found.cause, found.limit, found.used
    ('context_overflow', 4096, 5000)
    >>> error_of(400, '{"error": {"code": "content_filter", "message": "no"}}').cause
    'content_filter'
    """
    data = _loaded(body)
    words = " ".join(_words_in(data)) if data is not None else body
    words = " ".join(words[:20_000].split())
    message = shown(words, most=MOST_OF_A_MESSAGE) or f"HTTP {status}"
    if TOO_LONG.search(words) or status == 413:
        numbers = dict(_numbers_in(data))
        limit = numbers.get("n_ctx") or _first_number(_LIMITS, words)
        used = numbers.get("n_prompt_tokens") or _first_number(_USED, words)
        return Unusable(cause=OVERFLOW, message=message, limit=limit, used=used)
    if FILTERED.search(words):
        return Unusable(cause=FILTER, message=message)
    return Unusable(cause=ERROR, message=message)


# By these `transport` knows an error that a judge reads as an answer.
TOO_LONG = re.compile(
    r"context[_ ](?:length|size|window)|exceed_context_size|prompt is too long|input is too long"
    r"|too many tokens|token count.{0,40}exceeds|reduce the length|inputs. tokens"
    r"|maximum model length|request[_ ]too[_ ]large|string_above_max_length",
    re.IGNORECASE,
)
FILTERED = re.compile(
    r"content[_ ]filter|content[_ ]policy|content management policy|responsibleai|moderation"
    r"|safety system|flagged",
    re.IGNORECASE,
)
_N = r"\(?(\d[\d,]*)"
_LIMITS = (
    rf"context length (?:is|of) (?:only )?{_N}",
    rf"maximum model length of {_N}",
    rf"with {_N} maximum context length",
    rf"context size {_N}",
    rf"context window (?:of|is) {_N}",
    rf"> {_N}\b",
    rf"must be <= {_N}",
    rf"tokens allowed {_N}",
    rf"limit:? {_N}",
)
# What is counted "at least" is no count.
_USED = (
    rf"{_N} (?:tokens )?in (?:the messages|your prompt)",
    rf"passed {_N} input tokens",
    rf"messages resulted in {_N}",
    rf"request has {_N} input tokens",
    rf"decoder prompt \(length {_N}",
    rf"prompt contains {_N}",
    rf"too long: {_N}",
    rf"Given: {_N}",
    rf"token count {_N}",
    rf"Requested(?: tokens)? {_N}\b(?! output)",
)


def _first_number(patterns: Sequence[str], words: str) -> int | None:
    """Return the first number that one of the patterns finds."""
    for pattern in patterns:
        found = re.search(pattern, words, re.IGNORECASE)
        if found and len(found[1]) <= 12:
            return int(found[1].replace(",", ""))
    return None


def _loaded(body: str) -> Any:
    """Return the JSON value of a body, None if it is none."""
    try:
        return json.loads(body.removeprefix("\ufeff").strip())
    except (ValueError, RecursionError):
        return None


def _words_in(data: object, depth: int = 0) -> Iterator[str]:
    """Yield the texts of an error, however it is wrapped."""
    if isinstance(data, str):
        inner = _loaded(data) if data.lstrip()[:1] in "{[" else None
        if isinstance(inner, dict | list) and depth < 8:
            yield from _words_in(inner, depth + 1)
        else:
            yield data
    elif isinstance(data, dict | list) and depth < 8:
        for value in data.values() if isinstance(data, dict) else data:
            yield from _words_in(value, depth + 1)


def _numbers_in(data: object, depth: int = 0) -> Iterator[tuple[str, int]]:
    """Yield the whole numbers of an error with their names."""
    if isinstance(data, dict) and depth < 8:
        for name, value in data.items():
            if isinstance(value, int) and not isinstance(value, bool) and value > 0:
                yield name, value
            yield from _numbers_in(value, depth + 1)


def _ended(choice: Mapping[str, Any], message: Mapping[str, Any]) -> Unusable | None:
    """Return why an answer ended before its end, None if it did not."""
    reason = str(choice.get("finish_reason") or "").casefold()
    if reason in ("length", "max_tokens"):
        return Unusable(cause=LENGTH, message="the answer reached its token limit")
    if reason in ("content_filter", "safety"):
        return Unusable(cause=FILTER, message="the answer was filtered")
    if reason == "error":
        return Unusable(cause=ERROR, message="the answer ended with an error")
    content = message.get("content")
    parts = content if isinstance(content, list) else []
    refusals = [part.get("refusal") for part in (message, *parts) if isinstance(part, dict)]
    refusal = next((text for text in refusals if isinstance(text, str) and text.strip()), None)
    if refusal is not None:
        return Unusable(cause=REFUSAL, message=shown(refusal, most=MOST_OF_A_MESSAGE))
    return None


def _prompt_tokens(body: str, data: Mapping[str, Any]) -> int | None:
    """Return how many tokens the server read, those in its cache too; None if it does not say."""
    counted = tokens_of(body)
    if counted is not None:
        return counted.input
    usage = data.get("usage")
    tokens = usage.get("prompt_tokens") if isinstance(usage, dict) else None
    known = isinstance(tokens, int) and not isinstance(tokens, bool) and tokens > 0
    return tokens if known else None


# ---- the text of an answer


def _answer_in(message: Mapping[str, Any], expected: Expected) -> dict[str, Any] | Unusable:
    """Return the one object of a message with both code words and the right form."""
    found: list[dict[str, Any]] = []
    problem = ""
    texts = _texts_of(message)
    for text in texts:
        objects, error = objects_in(text) if isinstance(text, str) else ([text], "")
        found, problem = [*found, *objects], problem or error
    own = [item for item in found if _has(item, "head", expected) and _has(item, "tail", expected)]
    if not found and any(isinstance(t, str) and _REFUSING.match(t.strip()) for t in texts):
        return Unusable(cause=REFUSAL, message=shown(str(texts[0]), most=MOST_OF_A_MESSAGE))
    if not own:
        if problem or not found:
            why = f"it is no valid JSON ({problem})" if problem else "it holds no JSON object"
        else:
            why = "it does not hold both code words as they stand in the prompt"
        return Unusable(cause=FORM, message=why)
    if len(own) > 1:
        return Unusable(cause=FORM, message=f"it holds {len(own)} JSON objects, not one")
    error = best_match(Draft202012Validator(expected.schema).iter_errors(own[0]))
    if error is not None:
        why = shown(f"{error.json_path}: {error.message}", most=MOST_OF_A_MESSAGE)
        return Unusable(cause=FORM, message=why)
    return {name: _storable(value) for name, value in own[0].items()}


_REFUSING = re.compile(
    r"(?:i['\u2019]?m (?:very )?sorry|sorry|i (?:cannot|can['\u2019]?t|am unable|won['\u2019]?t)"
    r"|i['\u2019]m (?:unable|not able)|as an ai)\b",
    re.IGNORECASE,
)


def _has(item: Mapping[str, Any], field: str, expected: Expected) -> bool:
    """Return whether an object holds a code word."""
    word = expected.head if field == "head" else expected.tail
    value = item.get(field)
    return isinstance(value, str) and value.strip() == word


def _texts_of(message: Mapping[str, Any]) -> list[str | dict[str, Any]]:
    """Return where an answer may stand: tool arguments, else the content, else the reasoning."""
    calls = message.get("tool_calls")
    given = []
    for call in calls if isinstance(calls, list) else []:
        function = call.get("function") if isinstance(call, dict) else None
        arguments = function.get("arguments") if isinstance(function, dict) else None
        if isinstance(arguments, dict) or (isinstance(arguments, str) and arguments.strip()):
            given.append(arguments)
    if given:
        return given
    content = message.get("content")
    if isinstance(content, dict):
        return [content]
    if isinstance(content, list):
        parts = [part.get("text") if isinstance(part, dict) else part for part in content]
        content = "".join(part for part in parts if isinstance(part, str))
    if isinstance(content, str) and content.strip():
        return [content]
    for name in ("reasoning", "reasoning_content"):
        text = message.get(name)
        if isinstance(text, str) and text.strip():
            return [text]
    return []


def objects_in(text: str) -> tuple[list[dict[str, Any]], str]:
    """Return the JSON objects at the top level of a text, and why the first other one is none.

    What stands in a block of thoughts, or before the end of one, is left out; thoughts that are
    quoted within an object belong to it.

    Examples
    --------
    >>> objects_in('<think>{"a": 1}</think> So: ```json {"a": {"b": 2}} ```')
    ([{'a': {'b': 2}}], '')
    >>> objects_in('{"a": 1, "a": 2}')
    ([], "the key 'a' occurs twice in one object")
    """
    decoder = json.JSONDecoder(
        strict=False, object_pairs_hook=unique_keys, parse_constant=_no_number
    )
    found: list[dict[str, Any]] = []
    problem, at, starts = "", 0, 0
    text = text.removeprefix("\ufeff")
    last_end = max((end.end() for end in _THOUGHTS_END.finditer(text)), default=0)
    while starts < MOST_STARTS and (mark := _START.search(text, at)) is not None:
        at = mark.end()
        if "/" in mark[0]:  # all before was a thought
            found, problem = [], ""
        elif mark[0] != "{":
            if at < last_end and (end := _THOUGHTS_END.search(text, at)) is not None:
                at = end.end()
        else:
            starts += 1
            try:
                item, at = decoder.raw_decode(text, mark.start())
                found.append(item)
            except (ValueError, RecursionError) as error:
                problem = problem or shown(str(error), most=120)
    return found, problem


_START = re.compile(r"\{|</?think(?:ing)?>", re.IGNORECASE)
_THOUGHTS_END = re.compile(r"</think(?:ing)?>", re.IGNORECASE)


def _no_number(constant: str) -> None:
    """Refuse NaN and infinity, which are no JSON."""
    raise ValueError(f"{constant} is not a number")


def _storable(value: Any) -> Any:
    """Return a value without characters that neither UTF-8 nor a store can hold."""
    if isinstance(value, str):
        return re.sub("[\x00\ud800-\udfff]", "\ufffd", value)
    if isinstance(value, list):
        return [_storable(item) for item in value]
    if isinstance(value, dict):
        return {name: _storable(item) for name, item in value.items()}
    return value


# ---- quotes


def plain_words(text: str) -> str:
    r"""Return a text for the search of a quote: one form of letters, blanks and quote marks.

    Examples
    --------
    >>> plain_words("\u201cTotal\u201d:\n  12\u00a0\uff05")
    '"Total": 12 %'
    """
    for marks, one in (
        ("\u201c\u201d\u201e\u201f\u2033\u00ab\u00bb", '"'),
        ("\u2018\u2019\u201a\u201b\u2032\u00b4`", "'"),
    ):
        text = re.sub(f"[{marks}]", one, text)
    return " ".join(unicodedata.normalize("NFKC", text).split())


_LABELS = {"TASK": "T", "RESPONSE": "R"}  # what judges write for what they are told


class Quotes:
    """The texts of a trace, uncut, for the search of quotes.

    Examples
    --------
    >>> from calibration.records import Step
    >>> trace = TraceForReview(
    ...     trace_id="t1", workflow="w", prompt="How warm is it?", inputs=(), sub_goals=(),
    ...     steps=(Step(step_id="a", role="tool", tool="air", result="The air has 21 degrees."),),
    ...     response="It is 21 degrees warm.", status=None, agent="x", latency_s=None,
    ... )
    >>> quotes = Quotes(trace)
    >>> quotes.checked("S1", "The air has 21 degrees").state
    'verified'
    >>> quotes.checked("S1", "21 degrees warm")
    QuotedEvidence(step='response', quote='21 degrees warm', state='moved')
    >>> quotes.checked("R", "It is 22 degrees warm.").state, quotes.checked("R", "21 degrees").state
    ('unverified', 'unverified')
    """

    def __init__(self, trace: TraceForReview) -> None:
        self._pieces = pieces_of(trace)

    @cached_property
    def _texts(self) -> list[tuple[Piece, tuple[str, str]]]:
        """Each text as it is, without what cannot be seen, and as the judge sees it."""
        return [
            (piece, (plain_words(_unseen_removed(piece.text)), plain_words(fenced(piece.text))))
            for piece in self._pieces
        ]

    @property
    def has_sources(self) -> bool:
        """Whether the trace has a tool result or an input."""
        return any(_is_source(piece) for piece in self._pieces)

    def checked(self, label: str, quote: str) -> QuotedEvidence:
        """Return a quote with its step and state; that of a moved one is where it stands."""
        named = self.place_of(label)
        places = [piece.place for piece in self._with(quote)]
        if named in places:
            return QuotedEvidence(step=named or "", quote=quote, state="verified")
        if places:
            return QuotedEvidence(step=places[0], quote=quote, state="moved")
        return QuotedEvidence(step=named or shown(label, most=40), quote=quote, state="unverified")

    def in_source(self, quote: str) -> bool:
        """Return whether a quote stands in a tool result or an input."""
        return any(map(_is_source, self._with(quote)))

    def place_of(self, label: str) -> str | None:
        """Return the step, input or response that a label such as ``S3`` names."""
        wanted = label.strip().strip("[]").strip().upper()
        wanted = _LABELS.get(wanted, wanted)
        return next((p.place for p in self._pieces if p.label == wanted), None)

    def _with(self, quote: str) -> list[Piece]:
        """Return the texts in which a quote stands."""
        forms = {plain_words(quote), plain_words(_unseen_removed(quote))}
        wanted = [form for form in forms if SHORTEST_QUOTE <= len(form) <= LONGEST_QUOTE]
        return [
            piece
            for piece, texts in self._texts
            if any(form in text for form in wanted for text in texts)
        ]


def _unseen_removed(text: str) -> str:
    """Return a text without the characters that a prompt spells out."""
    return UNSEEN.sub("", text.replace("\r\n", "\n"))


def _is_source(piece: Piece) -> bool:
    """Return whether a text is a tool result or an input."""
    return piece.cut == "result" or piece.place.startswith(INPUT)


# ---- what an answer says


@dataclass(frozen=True, slots=True, kw_only=True)
class Judged:
    """What an answer says about a trace: class, reason of the last question, quotes and flags."""

    outcome: str
    reason: str
    evidence: tuple[QuotedEvidence, ...]
    flags: tuple[str, ...]


def path_of(answer: Mapping[str, Any], taxonomy: Taxonomy) -> list[Node]:
    """Return the questions on the path of an answer; TaxonomyError if one of them is missing."""
    return taxonomy.path(answers_of(answer, taxonomy))


def answers_of(answer: Mapping[str, Any], taxonomy: Taxonomy) -> dict[str, str]:
    """Return the yes and no of an answer by question."""
    return {node.id: answer[node.id]["answer"] for node in taxonomy.nodes if answer.get(node.id)}


def judged(answer: Mapping[str, Any], taxonomy: Taxonomy, trace: TraceForReview) -> Judged:
    """Return what an answer in the right form says about a trace.

    Quotes and contradictions set flags; they never change the class.

    Parameters
    ----------
    answer
        Of the form of `answer_schema`, whole.
    taxonomy, trace
        The tree that it answers and the trace that it is about.

    Raises
    ------
    TaxonomyError
        If a question on the path has no answer.

    Notes
    -----
    Flags: ``inconsistent``, the class contradicts the sub-goals; ``subgoals_incomplete``, they are
    not named once each; ``unsupported_subgoal``, a met one without a quote from a tool result or
    an input, where the trace has any; ``unsupported_answer``, an answer that needs a quote from the
    response has none; ``beyond_path``, questions were answered that are not reached.
    """
    path, given = path_of(answer, taxonomy), answers_of(answer, taxonomy)
    outcome = path[-1].target(given[path[-1].id])
    quotes, subgoals = Quotes(trace), answer["subgoals"]
    states = [goal["state"] for goal in subgoals]
    evidence: list[QuotedEvidence] = []
    unsupported = False
    for node in path:
        own = [quotes.checked(e["step"], e["quote"]) for e in answer[node.id]["evidence"]]
        evidence += own
        if node.evidence_on == given[node.id]:
            unsupported |= not any(e.step == RESPONSE and e.state != "unverified" for e in own)
    evidence += [quotes.checked(g["step"] or "", g["quote"]) for g in subgoals if g["quote"]]
    met = [goal for goal in subgoals if goal["state"] == "met"]
    found = {
        "inconsistent": (outcome == taxonomy.success and any(s != "met" for s in states))
        or (outcome == taxonomy.without_output and bool(met)),
        "subgoals_incomplete": sorted(goal["n"] for goal in subgoals)
        != list(range(1, len(trace.sub_goals) + 1)),
        "unsupported_subgoal": quotes.has_sources
        and any(not goal["quote"] or not quotes.in_source(goal["quote"]) for goal in met),
        "unsupported_answer": unsupported,
        "beyond_path": len(given) > len(path),
    }
    return Judged(
        outcome=outcome,
        reason=answer[path[-1].id]["reason"],
        evidence=tuple(dict.fromkeys(evidence)),
        flags=tuple(flag for flag, holds in found.items() if holds),
    )
