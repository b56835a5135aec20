"""Conversation correctness, tool correctness, tools and loops of a file of interactions.

Of several agents also where requests went and how the agents did, on a store too.
"""

import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from math import fsum
from typing import Any

import numpy as np

from calibration.analyses.reliability.from_store import outcomes_by_people
from calibration.analyses.reliability.grading import stored_runs
from calibration.analyses.success_rate.report import LeftOutRows
from calibration.errors import CalibrationError, InputError
from calibration.records import RepeatedCalls, Trace, repeated_calls
from calibration.reliability.tools import (
    ANSWER_THRESHOLD,
    BANDS,
    EQUAL_WEIGHTS,
    PARTS,
    ROUNDING,
    TOOL_THRESHOLD,
    CallRecord,
    Interaction,
    InteractionPass,
    OrderRule,
    ToolScore,
    band_of,
    canonical,
    conversation_correct,
    interaction_pass,
    interaction_score,
    is_correct,
    placed,
)
from calibration.statistics.estimate import Estimate, FloatArray, IntArray
from calibration.statistics.intervals import wilson_share
from calibration.statistics.means import clustered_share
from calibration.store import Store
from calibration.tables.columns import Columns, named_columns
from calibration.tables.reading import Reading, ReadingOptions, reading_of
from calibration.tables.rows import OpenTable, Row, Source, open_table
from calibration.tables.words import (
    cell,
    check_mapped,
    decimal_of,
    is_missing,
    number_of,
    truth,
)
from calibration.text import names_there
from calibration.trace_formats.fields import (
    FieldError,
    first_of,
    identifier,
    number,
    required_id,
    wrong,
)
from calibration.trace_formats.json_scanner import decode_text

COLUMNS = ("conversation_id", "interaction")
ANSWER, SCORE, CALLS, EXPECTED = "answer_correct", "answer_score", "calls", "expected_calls"
ROUTES = ("expected_route", "routed_to", "agent")
OF_INTERACTIONS = (
    *COLUMNS, ANSWER, SCORE, CALLS, EXPECTED, "final_answer_uses_tools",
    "sequence_matters", *ROUTES,
)  # fmt: skip
MOST_INTERACTIONS, MOST_CALLS_IN_ALL = 500_000, 2_000_000
MOST_CALLS, MOST_ARGUMENTS, MOST_CHARACTERS = 1_000, 200, 1_000_000
MOST_WORST, MOST_TOOLS, EXAMPLES = 20, 1_000, 5
MOST_BROKEN, MOST_CELLS, MOST_AGENTS = 1_000, 1_000, 100
# What differs between two rows that are wrong in the same way.
_OF_ONE_ROW = re.compile(r", got .*|: [^:]* at column \d+|\[\d+\]| \(lines? .*", re.S)
NO_WHOLE = "no conversation has all of its rows: correct the rows that were skipped"
NO_ANSWER = "field 'answer_score': is missing, and so is 'answer_correct'"


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolOptions:
    """Thresholds, weights and names of `analyse_tools`; `k` is that of `interaction_pass`."""

    answer_threshold: float = ANSWER_THRESHOLD
    tool_threshold: float = TOOL_THRESHOLD
    tool_weights: Mapping[str, float] = field(default_factory=lambda: dict(EQUAL_WEIGHTS))
    require_tools: bool = False
    forbidden: tuple[str, ...] = ()
    required: tuple[str, ...] = ()
    before: tuple[OrderRule, ...] = ()
    k: int = 3
    seed: int = 0
    confidence_level: float = 0.95


@dataclass(frozen=True, slots=True, kw_only=True)
class InteractionRow:
    """The scores of one interaction; `tools` is None where no expected calls are given."""

    conversation_id: str
    interaction: str
    answer_score: float | None
    answer_correct: bool
    correct: bool
    n_calls: int
    n_expected: int | None
    tools: ToolScore | None
    tools_correct: bool | None


@dataclass(frozen=True, slots=True, kw_only=True)
class ConversationRow:
    """One conversation; `correct` is None where one of its rows was set aside."""

    conversation_id: str
    correct: bool | None
    n_interactions: int
    n_correct: int
    n_set_aside: int
    tool_correctness: float | None
    of_interactions: InteractionPass | None
    repeats: RepeatedCalls


@dataclass(frozen=True, slots=True, kw_only=True)
class ConversationCorrectness:
    """The share of conversations of which all interactions are correct.

    `n_left_out` have a row that was set aside: whether they are correct is not known. Of
    `n_rows_of_none` rows set aside the conversation is not known: it is judged without them.
    """

    estimate: Estimate
    n_left_out: int
    n_rows_of_none: int


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolCorrectness:
    """Mean tool correctness of the interactions with expected calls, and its four parts.

    `share_correct` is the share of interactions that reach the threshold.
    """

    overall: Estimate
    selection: Estimate
    parameters: Estimate
    sequence: Estimate
    utilisation: Estimate
    share_correct: Estimate
    n_without_expected: int
    n_without_utilisation: int


@dataclass(frozen=True, slots=True, kw_only=True)
class ScoreBand:
    """The interactions whose tool score is from `low` to below `high`; to 1 inclusive at 1."""

    low: float
    high: float
    n: int
    share: Estimate


@dataclass(frozen=True, slots=True, kw_only=True)
class NamedTool:
    """Calls of one tool, where expected calls are given.

    Precision: the share of its calls that were expected; recall: of its expected calls, made.
    """

    name: str
    n_calls: int
    n_expected: int
    n_matched: int
    precision: Estimate
    recall: Estimate


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolRule:
    """How many conversations break a rule on one tool, and the first of them."""

    name: str
    n_calls: int
    violations: Estimate
    n_violating: int
    examples: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class BrokenOrder:
    """A conversation that breaks a rule of order, with the calls that do."""

    conversation_id: str
    calls: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class KeptOrder:
    """The share of conversations that keep a rule of order, of those that call its second tool.

    `n_left_out` have a row that was set aside: a call may be missing. `broken` are the first.
    """

    first: str
    later: str
    kept: Estimate
    n_kept: int
    n_broken: int
    n_not_applicable: int
    n_left_out: int
    broken: tuple[BrokenOrder, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class RouteCount:
    """Interactions of one expected route by where they went; `routed_to` None: nowhere."""

    expected_route: str
    routed_to: str | None
    n: int


@dataclass(frozen=True, slots=True, kw_only=True)
class AgentSuccess:
    """The interactions that one agent answered, or the routes to it, and the share that is right.

    Of an agent that answers the share is of correct interactions; of a route, of right routes.
    """

    name: str
    n: int
    share: Estimate


@dataclass(frozen=True, slots=True, kw_only=True)
class Routes:
    """Where a router sent interactions, and how the agents did.

    `accuracy` : share of interactions routed as expected; one that went nowhere is wrong. Routes
    that are not known are counted in `n_without_expected`. `right_then_correct` and
    `wrong_then_correct` : share of correct interactions among those routed as expected, and among
    the others. `by_route` : accuracy of each expected route.
    """

    accuracy: Estimate
    n_without_expected: int
    confusion: tuple[RouteCount, ...]
    by_route: tuple[AgentSuccess, ...]
    right_then_correct: Estimate
    wrong_then_correct: Estimate
    by_agent: tuple[AgentSuccess, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredRoutes:
    """Where the runs of a store went, and how the agents that took most of their steps did.

    `correct` : share of the labelled runs that people call a success, whoever did them.
    """

    source: str
    n_runs: int
    n_labelled: int
    correct: Estimate
    routes: Routes


@dataclass(frozen=True, slots=True, kw_only=True)
class LoopCounts:
    """Conversations with identical calls 3 times or more, in a row and anywhere in them."""

    in_a_row: Estimate
    anywhere: Estimate
    n_in_a_row: int
    n_anywhere: int
    examples: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolAnalysis:
    """What `asr tools` prints: conversations, tools, rules, loops, and each interaction.

    `worst` : conversations that are wrong, or whose tools are not, the worst first
    `set_aside` : rows that could not be read, by reason
    """

    source: str
    options: ToolOptions
    n_interactions: int
    conversation_correctness: ConversationCorrectness
    answer_correctness: Estimate
    interaction_correctness: Estimate
    tool_correctness: ToolCorrectness
    bands: tuple[ScoreBand, ...]
    by_tool: tuple[NamedTool, ...]
    forbidden: tuple[ToolRule, ...]
    required: tuple[ToolRule, ...]
    before: tuple[KeptOrder, ...]
    routes: Routes | None
    loops: LoopCounts
    worst: tuple[ConversationRow, ...]
    conversations: tuple[ConversationRow, ...]
    interactions: tuple[InteractionRow, ...]
    set_aside: tuple[LeftOutRows, ...]
    reading: Reading


@dataclass(frozen=True, slots=True, kw_only=True)
class InteractionFile:
    """Interactions in the order of conversations; `lost` counts the rows set aside of each.

    `n_of_none` more rows set aside do not say of which conversation they are. `set_aside` has the
    reasons in words, `reading` the rows that do not count.
    """

    source: str
    interactions: tuple[Interaction, ...]
    lost: Mapping[str, int]
    n_of_none: int
    set_aside: tuple[LeftOutRows, ...]
    reading: Reading


class _NoAnswerError(FieldError):
    """A row that does not say whether the answer is correct."""


def read_interactions(
    source: Source,
    *,
    options: ReadingOptions | None = None,
    answer_threshold: float = ANSWER_THRESHOLD,
) -> InteractionFile:
    """Read a file (CSV, JSONL, Parquet) or a frame with one row per interaction.

    Columns: conversation_id, interaction, answer_correct or answer_score (which is compared with
    the threshold; where both are given, answer_correct counts), calls, expected_calls (JSON lists
    of objects with name, arguments and step), final_answer_uses_tools, sequence_matters, and of
    several agents expected_route, routed_to, agent. A row that cannot be read is left out with its
    reason. Of equal rows of an interaction one counts, of those that differ none; the order of the
    rows plays no part.

    InputError if the file cannot be read, lacks a column, holds no usable row or more than 500,000.
    """
    options = options or ReadingOptions()
    table = open_table(source, options)
    path = table.place
    if not table.columns:
        raise InputError(f"{path}: holds no interactions; it needs the columns {COLUMNS[0]}, ...")
    columns = _columns(table, options)
    reader = _RowReader(table, columns, options, answer_threshold)
    read: dict[tuple[str, str], list[tuple[int, Interaction]]] = defaultdict(list)
    aside: list[tuple[int, str]] = []
    lost: Counter[str] = Counter()
    left_out, n_calls = table.left_out, 0
    for count, (line, row) in enumerate(table.rows, 1):
        if count > MOST_INTERACTIONS:
            raise InputError(f"{path}: has more than {MOST_INTERACTIONS:,} interactions; split it")
        ours = {role: row.get(name) for role, name in columns.by_role.items()}
        try:
            one = reader.interaction(ours)
        except FieldError as error:
            aside.append((line, str(error)))
            code = "missing_outcome" if isinstance(error, _NoAnswerError) else "bad_value"
            left_out.add(code, line, str(error).rpartition(", got ")[2])
            lost[_conversation_of(ours)] += 1
        else:
            read[one.conversation_id, one.interaction].append((line, one))
            n_calls += len(one.calls) + len(one.expected or ())
            if n_calls > MOST_CALLS_IN_ALL:
                raise InputError(f"{path}: has more than {MOST_CALLS_IN_ALL:,} calls; split it")
    check_mapped(options.mapped, reader.answers, f"{path}: {columns.by_role.get(ANSWER, ANSWER)}")
    lost[""] += left_out.counts.get("unreadable_row", 0)
    kept = []
    for (conversation, name), given in read.items():
        first = given[0][1]
        if all(one == first for _, one in given):
            kept.append(first)
            for line, _ in given[1:]:
                left_out.add("identical_duplicate", line)
            continue
        lines = ", ".join(str(line) for line, _ in given[:EXAMPLES])
        reason = f"an interaction is given twice (lines {lines}: {name!r:.80})"
        aside += [(line, reason) for line, _ in given]
        for line, _ in given:
            left_out.add("conflicting_duplicate", line)
        lost[conversation] += len(given)
    if not kept:
        why = f": line {aside[0][0]}, {aside[0][1]}" if aside else ""
        raise InputError(f"{path}: holds no interaction that can be read{why:.400}")
    kept.sort(key=lambda of: (of.conversation_id, _in_order(of.interaction)))
    n_of_none = lost.pop("", 0)
    return InteractionFile(
        source=path,
        interactions=tuple(kept),
        lost=dict(lost),
        n_of_none=n_of_none,
        set_aside=tuple(_by_reason(sorted(aside))),
        reading=reading_of(
            columns,
            roles=OF_INTERACTIONS,
            left_out=left_out.listed(),
            place=path,
            rows=table.n_rows,
            used=len(kept),
            max_left_out=None,
        ),
    )


def _columns(table: OpenTable, options: ReadingOptions) -> Columns:
    """Return the columns of a table of interactions; raise if one is missing."""
    columns = named_columns(
        table.columns, place=table.place, roles=OF_INTERACTIONS, chosen=options.columns
    )
    for name in (*COLUMNS, *([CALLS] if EXPECTED in columns.by_role else [])):
        if name not in columns.by_role:
            raise InputError(
                f"{table.place}: no column is {name}; {names_there(name, table.columns)}: "
                f"--column {name}=NAME"
            )
    return columns


def analyse_tools(
    source: Source,
    options: ToolOptions | None = None,
    *,
    reading: ReadingOptions | None = None,
) -> ToolAnalysis:
    """Measure the conversations and tools of a file of interactions.

    Conversations are independent of each other; the interactions of one are not, so that intervals
    over interactions and calls are those of totals by conversation. Errors as `read_interactions`;
    ValueError where the weights are not those of the four parts.
    """
    options = options or ToolOptions()
    read = read_interactions(source, options=reading, answer_threshold=options.answer_threshold)
    rows = tuple(_row(of, options) for of in read.interactions)
    ids, index = _conversations(read)
    shared = _Shared(index=index, n=len(ids), level=options.confidence_level)
    conversations = tuple(_conversation_rows(read, rows, ids, options))
    known = [of.correct for of in conversations if of.correct is not None]
    return ToolAnalysis(
        source=read.source,
        options=options,
        n_interactions=len(rows),
        conversation_correctness=ConversationCorrectness(
            estimate=wilson_share(
                sum(known), len(known), nothing=NO_WHOLE, confidence_level=options.confidence_level
            ),
            n_left_out=len(conversations) - len(known),
            n_rows_of_none=read.n_of_none,
        ),
        answer_correctness=shared.share([of.answer_correct for of in rows]),
        interaction_correctness=shared.share([of.correct for of in rows]),
        tool_correctness=_tool_correctness(rows, shared),
        bands=_bands(rows, shared),
        by_tool=tuple(_named_tools(read.interactions, rows, shared)),
        forbidden=tuple(_rules(read, ids, options, options.forbidden, broken_by=True)),
        required=tuple(_rules(read, ids, options, options.required, broken_by=False)),
        before=tuple(_orders(read, ids, options)),
        routes=_routes(
            [
                _Sent(expected=of.expected_route, routed_to=of.routed_to, agent=of.specialist)
                for of in read.interactions
            ],
            [row.correct for row in rows],
            shared,
        ),
        loops=_loops([of for of in conversations if of.n_interactions], options.confidence_level),
        worst=tuple(sorted(filter(_is_bad, conversations), key=_badness)[:MOST_WORST]),
        conversations=conversations,
        interactions=rows,
        set_aside=read.set_aside,
        reading=read.reading,
    )


class _RowReader:
    """Reads the interaction of a row under our names."""

    def __init__(
        self, table: OpenTable, columns: Columns, options: ReadingOptions, answer_threshold: float
    ) -> None:
        self.options, self.answer_threshold = options, answer_threshold
        self.answers: Counter[str] = Counter()
        score_in = columns.by_role.get(SCORE)
        self.decimal = options.decimal
        if score_in is not None:
            self.decimal = decimal_of(
                table.sample.values(score_in),
                place=f"{table.place}: {score_in}",
                chosen=options.decimal,
            )

    def interaction(self, row: Row) -> Interaction:
        """Return the interaction; FieldError where a value cannot be read."""
        conversation = required_id(_text(row, COLUMNS[0]) or None, COLUMNS[0])
        name = _text(row, COLUMNS[1])
        if not name and not (_text(row, ANSWER) or _text(row, SCORE)):
            raise FieldError("the conversation has no interaction")
        score, correct = self._score(row), self._answer(row)
        if correct is None:
            if score is None:
                raise _NoAnswerError(NO_ANSWER)
            correct = score >= self.answer_threshold - ROUNDING
        matters = _flag(row, "sequence_matters")
        return Interaction(
            conversation_id=conversation,
            interaction=required_id(name or None, "interaction"),
            answer_correct=correct,
            answer_score=score,
            calls=_calls(row, CALLS) or (),
            expected=_calls(row, EXPECTED),
            uses_tools=_flag(row, "final_answer_uses_tools"),
            sequence_matters=True if matters is None else matters,
            **{route: identifier(_text(row, route) or None, route) for route in ROUTES},
        )

    def _score(self, row: Row) -> float | None:
        text = _text(row, SCORE)
        value = number_of(text, self.decimal)
        if text and (value is None or not 0 <= value <= 1):
            raise wrong(SCORE, "must be a number from 0 to 1", text)
        return value

    def _answer(self, row: Row) -> bool | None:
        """Return whether the answer is correct, by what the user said of its words first."""
        text = cell(row.get(ANSWER))
        self.answers[text] += 1
        into = self.options.mapped.get(text)
        if into is not None:
            if into not in ("pass", "fail", ""):
                raise InputError(f"--map: {into!r:.80} is not one of pass, fail")
            return (into == "pass") if into else None
        return _flag(row, ANSWER)


def _text(row: Row, name: str) -> str:
    """Return the text of a cell, empty where it is missing."""
    text = cell(row.get(name))
    return "" if is_missing(text) else text


def _conversation_of(row: Row) -> str:
    """Return the conversation of a row that is wrong elsewhere; empty if it has no valid id."""
    try:
        return required_id(_text(row, COLUMNS[0]) or None, COLUMNS[0])
    except FieldError:
        return ""


def _flag(row: Row, name: str) -> bool | None:
    text = _text(row, name)
    verdict = truth(text)
    if text and verdict is None:
        raise wrong(name, "must say yes or no", text)
    return verdict


def _calls(row: Row, name: str) -> tuple[CallRecord, ...] | None:
    """Return a list of calls, as JSON text or as it is; None where the cell is empty."""
    value = row.get(name)
    if isinstance(value, np.ndarray):
        value = value.tolist()
    if not isinstance(value, list):
        if is_missing(cell(value)):
            return None
        if not isinstance(value, str):
            raise wrong(name, "must be a JSON list of calls", value)
        if len(value) > MOST_CHARACTERS:
            raise FieldError(f"field {name!r}: is longer than {MOST_CHARACTERS:,} characters")
        try:
            value = decode_text(value)
        except FieldError as error:
            raise FieldError(f"field {name!r}: {error}") from error
    if value is None:
        return None
    if not isinstance(value, list):
        raise wrong(name, "must be a JSON list of calls", value)
    if len(value) > MOST_CALLS:
        raise FieldError(f"field {name!r}: has more than {MOST_CALLS:,} calls")
    return tuple(_call(item, f"{name}[{k}]") for k, item in enumerate(value, 1))


def _call(item: object, where: str) -> CallRecord:
    if not isinstance(item, dict):
        raise wrong(where, "must be an object with name, arguments and step", item)
    arguments = first_of(item, "arguments", "parameters", "args")
    if isinstance(arguments, str):  # as several providers write it
        if len(arguments) > MOST_CHARACTERS:
            raise FieldError(f"field '{where}.arguments': is too long")
        try:
            arguments = decode_text(arguments)
        except FieldError as error:
            raise FieldError(f"field '{where}.arguments': {error}") from error
    if arguments is None:
        arguments = {}
    if not isinstance(arguments, dict):
        raise wrong(f"{where}.arguments", "must be an object", arguments)
    if len(arguments) > MOST_ARGUMENTS:
        raise FieldError(f"field '{where}.arguments': has more than {MOST_ARGUMENTS} names")
    try:
        # An argument without a value is none: Parquet has one for every name in the column.
        plain = {key: canonical(value) for key, value in arguments.items() if value is not None}
    except ValueError as error:
        raise FieldError(f"field '{where}.arguments': is not usable ({error})") from error
    return CallRecord(
        name=required_id(first_of(item, "name", "tool_name", "tool"), f"{where}.name"),
        arguments=plain,
        step=number(_missing_as_none(item.get("step")), f"{where}.step"),
    )


def _missing_as_none(value: object) -> object:
    return None if value != value else value


def _in_order(name: str) -> tuple[int, float, str]:
    """Sort numbers by value, before other names."""
    return (0, float(name), name) if name.isdecimal() and len(name) < 16 else (1, 0.0, name)


def _by_reason(aside: Iterable[tuple[int, str]]) -> Iterator[LeftOutRows]:
    """Yield the rows that were set aside, together where they are wrong in the same way."""
    found: dict[str, list[str]] = defaultdict(list)
    counts: Counter[str] = Counter()
    for line, reason in aside:
        alike = _OF_ONE_ROW.sub("", reason)
        counts[alike] += 1
        if len(found[alike]) < EXAMPLES:
            found[alike].append(f"line {line}: {reason:.300}")
    for reason, n in counts.most_common():
        yield LeftOutRows(reason=reason, n=n, examples=tuple(found[reason]))


def _row(of: Interaction, options: ToolOptions) -> InteractionRow:
    score = interaction_score(of, weights=options.tool_weights)
    known = score is not None and score.overall is not None
    return InteractionRow(
        conversation_id=of.conversation_id,
        interaction=of.interaction,
        answer_score=of.answer_score,
        answer_correct=of.answer_correct,
        correct=is_correct(
            of,
            score,
            require_tools=options.require_tools,
            tool_threshold=options.tool_threshold,
        ),
        n_calls=len(of.calls),
        n_expected=None if of.expected is None else len(of.expected),
        tools=score,
        tools_correct=score.reaches(options.tool_threshold) if score and known else None,
    )


def _conversations(read: InteractionFile) -> tuple[list[str], IntArray]:
    """Return every conversation, in order, and that of each interaction."""
    ids = sorted({of.conversation_id for of in read.interactions} | read.lost.keys())
    place = {name: k for k, name in enumerate(ids)}
    index = [place[of.conversation_id] for of in read.interactions]
    return ids, np.array(index, dtype=np.int64)


def _conversation_rows(
    read: InteractionFile, rows: Sequence[InteractionRow], ids: Sequence[str], options: ToolOptions
) -> Iterator[ConversationRow]:
    of_each: dict[str, list[int]] = {name: [] for name in ids}
    for k, row in enumerate(rows):
        of_each[row.conversation_id].append(k)
    for name, places in of_each.items():
        correct = [rows[k].correct for k in places]
        scores = [score for k in places if (score := _overall(rows[k])) is not None]
        lost = read.lost.get(name, 0)
        calls = [call.identity for k in places for call in read.interactions[k].calls]
        yield ConversationRow(
            conversation_id=name,
            correct=conversation_correct(correct) if correct and not lost else None,
            n_interactions=len(correct),
            n_correct=sum(correct),
            n_set_aside=lost,
            tool_correctness=fsum(scores) / len(scores) if scores else None,
            of_interactions=(
                interaction_pass(len(correct), sum(correct), options.k) if correct else None
            ),
            repeats=repeated_calls(calls),
        )


def _overall(row: InteractionRow) -> float | None:
    return None if row.tools is None else row.tools.overall


def _is_bad(of: ConversationRow) -> bool:
    tools = of.tool_correctness
    return of.correct is False or (of.correct is True and tools is not None and tools < 1)


def _badness(of: ConversationRow) -> tuple[bool, float, float, str]:
    """Sort wrong conversations first, then those with the fewest right interactions and tools."""
    tools = 1.0 if of.tool_correctness is None else of.tool_correctness
    return bool(of.correct), of.n_correct / of.n_interactions, tools, of.conversation_id


@dataclass(frozen=True, slots=True, kw_only=True)
class _Sent:
    """Where an interaction or a run was to go and went, and the agent that answered it."""

    expected: str | None
    routed_to: str | None
    agent: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class _Shared:
    """The conversation of each interaction, over which means and shares are estimated."""

    index: IntArray
    n: int
    level: float
    noun: str = "conversations"

    def share(self, values: Sequence[float | bool | None]) -> Estimate:
        """Estimate the mean of values in [0, 1]; None is left out."""
        return self.share_at(range(len(values)), values)

    def share_at(self, places: Iterable[int], values: Sequence[float | bool | None]) -> Estimate:
        """Estimate the mean of the values at these places."""
        known = [k for k in places if values[k] is not None]
        array = np.array([values[k] for k in known], dtype=np.float64)
        where = self.index[known]
        return self.of_totals(self.sums(where, array), self.sums(where, np.ones(array.size)))

    def sums(self, where: IntArray, values: FloatArray) -> FloatArray:
        """Sum values by conversation."""
        return np.bincount(where, weights=values, minlength=self.n).astype(np.float64)

    def of_totals(self, hits: FloatArray, of: FloatArray) -> Estimate:
        """Estimate a share from totals by conversation."""
        return clustered_share(
            np.minimum(hits, of),
            of,
            n=int(of.sum()),
            noun=self.noun,
            confidence_level=self.level,
        )


def _tool_correctness(rows: Sequence[InteractionRow], shared: _Shared) -> ToolCorrectness:
    scored = [row.tools for row in rows]
    means: dict[str, Any] = {
        part: shared.share([None if score is None else getattr(score, part) for score in scored])
        for part in ("overall", *PARTS)
    }
    return ToolCorrectness(
        **means,
        share_correct=shared.share([row.tools_correct for row in rows]),
        n_without_expected=sum(score is None for score in scored),
        n_without_utilisation=sum(s is not None and s.utilisation is None for s in scored),
    )


def _bands(rows: Sequence[InteractionRow], shared: _Shared) -> tuple[ScoreBand, ...]:
    band = [None if (score := _overall(row)) is None else band_of(score) for row in rows]
    return tuple(
        ScoreBand(
            low=low,
            high=BANDS[max(0, k - 1)],
            n=band.count(k),
            share=shared.share([None if b is None else b == k for b in band]),
        )
        for k, low in enumerate(BANDS)
    )


def _named_tools(
    interactions: Sequence[Interaction], rows: Sequence[InteractionRow], shared: _Shared
) -> Iterator[NamedTool]:
    """Yield the tools with the most calls, made or expected, by name."""
    counts: defaultdict[str, defaultdict[int, list[int]]]
    counts = defaultdict(lambda: defaultdict(lambda: [0, 0, 0]))
    total: Counter[str] = Counter()
    for where, of, row in zip(shared.index.tolist(), interactions, rows, strict=True):
        if of.expected is None or row.tools is None:
            continue
        for call in of.calls:
            counts[call.name][where][0] += 1
        for call in of.expected:
            counts[call.name][where][1] += 1
            counts[call.name][where][2] += 1
        for name in row.tools.missing:
            counts[name][where][2] -= 1
        total.update(call.name for call in (*of.calls, *of.expected))
    most = sorted(total, key=lambda name: (-total[name], name))[:MOST_TOOLS]
    for name in sorted(most):
        made, expected, matched = np.array([*counts[name].values()], dtype=np.float64).T
        yield NamedTool(
            name=name,
            n_calls=int(made.sum()),
            n_expected=int(expected.sum()),
            n_matched=int(matched.sum()),
            precision=shared.of_totals(matched, made),
            recall=shared.of_totals(matched, expected),
        )


def _rules(
    read: InteractionFile,
    ids: Sequence[str],
    options: ToolOptions,
    names: Sequence[str],
    *,
    broken_by: bool,
) -> Iterator[ToolRule]:
    """Yield each rule: a forbidden tool is broken by a call, a required one without any.

    Shares are of the conversations with all of their rows: elsewhere a call may be missing.
    """
    calls: dict[str, Counter[str]] = {name: Counter() for name in ids}
    for of in read.interactions:
        calls[of.conversation_id].update(call.name for call in of.calls)
    whole = [name for name in ids if name not in read.lost]
    for name in dict.fromkeys(names):
        broken = [c for c in whole if bool(calls[c][name]) == broken_by]
        seen = [c for c in ids if calls[c][name]] if broken_by else broken
        yield ToolRule(
            name=name,
            n_calls=sum(of[name] for of in calls.values()),
            violations=wilson_share(
                len(broken),
                len(whole),
                nothing=NO_WHOLE,
                confidence_level=options.confidence_level,
            ),
            n_violating=len(seen),
            examples=tuple(seen[:EXAMPLES]),
        )


def _orders(read: InteractionFile, ids: Sequence[str], options: ToolOptions) -> Iterator[KeptOrder]:
    """Yield the share of conversations that keep each rule of order."""
    calls: dict[str, list[tuple[str, str]]] = {name: [] for name in ids}
    for of in read.interactions if options.before else ():
        calls[of.conversation_id] += [
            (call.name, f"{of.interaction}: {call.name}, call {k}")
            for k, (_, call) in enumerate(placed(of.calls), 1)
        ]
    whole = [name for name in ids if name not in read.lost]
    for rule in options.before:
        found = {name: rule.broken_at([tool for tool, _ in calls[name]]) for name in whole}
        applies = {name: places for name, places in found.items() if places is not None}
        broken = [
            BrokenOrder(
                conversation_id=name, calls=tuple(calls[name][k][1] for k in places[:EXAMPLES])
            )
            for name, places in applies.items()
            if places
        ]
        yield KeptOrder(
            first=rule.first,
            later=rule.later,
            kept=wilson_share(
                len(applies) - len(broken),
                len(applies),
                nothing=f"no conversation calls {rule.later}",
                confidence_level=options.confidence_level,
            ),
            n_kept=len(applies) - len(broken),
            n_broken=len(broken),
            n_not_applicable=len(whole) - len(applies),
            n_left_out=len(ids) - len(whole),
            broken=tuple(broken[:MOST_BROKEN]),
        )


def _routes(
    sent: Sequence[_Sent], correct: Sequence[bool | None], shared: _Shared
) -> Routes | None:
    """Return where interactions went and how their agents did; None without any agent."""
    if not any(of.expected or of.agent for of in sent):
        return None
    right = [None if of.expected is None else of.routed_to == of.expected for of in sent]
    cells = Counter((of.expected, of.routed_to) for of in sent if of.expected is not None)
    most = sorted(cells.most_common(MOST_CELLS), key=lambda of: (of[0][0], -of[1], of[0][1] or ""))
    both = list(zip(correct, right, strict=True))
    return Routes(
        accuracy=shared.share(right),
        n_without_expected=right.count(None),
        confusion=tuple(
            RouteCount(expected_route=expected, routed_to=to, n=n) for (expected, to), n in most
        ),
        by_route=_by_name([of.expected for of in sent], right, shared),
        right_then_correct=shared.share([ok if routed else None for ok, routed in both]),
        wrong_then_correct=shared.share([ok if routed is False else None for ok, routed in both]),
        by_agent=_by_name([of.agent for of in sent], correct, shared),
    )


def _by_name(
    names: Sequence[str | None], values: Sequence[bool | None], shared: _Shared
) -> tuple[AgentSuccess, ...]:
    """Return the share of each name, the most frequent names alone."""
    places: dict[str, list[int]] = defaultdict(list)
    for k, name in enumerate(names):
        if name is not None:
            places[name].append(k)
    most = sorted(places, key=lambda name: (-len(places[name]), name))[:MOST_AGENTS]
    return tuple(
        AgentSuccess(
            name=name, n=len(places[name]), share=shared.share_at(places[name], values)
        )
        for name in sorted(most)
    )  # fmt: skip


def routes_of_store(store: Store, *, confidence_level: float = 0.95) -> StoredRoutes:
    """Return where the production runs of a store went, and how their agents did.

    `expected_route` and `routed_to` are fields of the run that its file had. The agent of a run is
    the one that took most of its steps, of several the later one; where no step names any, that to
    which it was routed. A run is correct if people call it a success, as in `reliability_frame`.
    Tasks are independent, the runs of one are not.

    Raises
    ------
    CalibrationError
        If no run has a route or an agent.
    """
    success = store.taxonomy().success
    people = outcomes_by_people(store)
    sent, correct, tasks = [], [], []
    for trace in stored_runs(store):
        outcome, _ = people.get(trace.trace_id, (None, ""))
        sent.append(_sent(trace))
        correct.append(None if outcome is None else outcome == success)
        tasks.append(trace.task_key)
    names, index = np.unique(np.array(tasks, dtype=str), return_inverse=True)
    shared = _Shared(
        index=index.ravel().astype(np.int64), n=names.size, level=confidence_level, noun="tasks"
    )
    found = _routes(sent, correct, shared)
    if found is None:
        raise CalibrationError(
            "no run names an agent: give expected_route and routed_to, or the agent of each step; "
            "or name a FILE of interactions"
        )
    return StoredRoutes(
        source=str(store.path),
        n_runs=len(sent),
        n_labelled=len(sent) - correct.count(None),
        correct=shared.share(correct),
        routes=found,
    )


def _sent(trace: Trace) -> _Sent:
    routed = {name: trace.metadata.get(name) for name in ROUTES[:2]}
    expected, to = (of if isinstance(of, str) and of.strip() else None for of in routed.values())
    by = [step.agent for step in trace.steps if step.agent is not None]
    most = Counter(reversed(by)).most_common(1)  # of equal counts the first, here the last one
    return _Sent(expected=expected, routed_to=to, agent=most[0][0] if most else to)


def _loops(of: Sequence[ConversationRow], level: float) -> LoopCounts:
    anywhere = [c.conversation_id for c in of if c.repeats.loops]
    row = [c.conversation_id for c in of if c.repeats.loops_in_a_row]
    return LoopCounts(
        in_a_row=wilson_share(len(row), len(of), nothing="no calls", confidence_level=level),
        anywhere=wilson_share(len(anywhere), len(of), nothing="no calls", confidence_level=level),
        n_in_a_row=len(row),
        n_anywhere=len(anywhere),
        examples=tuple(anywhere[:EXAMPLES]),
    )
