"""What a number means, and with it every outcome of a column: a class, pass or fail, or left out.

A number becomes an outcome by its scale alone, and the scale is decided for all values of a column
together, over all tables of a command.
"""

import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from shlex import quote
from typing import TypeVar

from calibration.errors import InputError
from calibration.records import GRADES, NO_VERDICT
from calibration.tables import words
from calibration.taxonomy import Taxonomy, load_taxonomy, ready_rubrics

T = TypeVar("T")

# Columns by what 0 and 1 say in them.
CHECKS = (
    "success",
    "passed",
    "pass",
    "is_success",
    "task_success",
    "successful",
    "correct",
    "is_correct",
    "resolved",
    "is_resolved",
    "solved",
    "is_solved",
)
SCORES = ("score", "grade", "human_score", "rating")
SURE = (*CHECKS, "outcome", "reward")
BOTH = ("score", "grade", "human_score")

TWO_CLASS = "two_class"
PASS_OR_FAIL = (
    "Outcomes are pass or fail: the rate is the pass rate. A rate of five classes needs classes."
)
TOLERANCE = 1e-9
NEAR = 1e-6  # tau-bench's own test for a reward of 1

# Why a value is no outcome.
MISSING, NOT_RUN, UNKNOWN = "missing_outcome", "not_run", "unknown_outcome"
OFF_SCALE, PARTIAL = "off_scale", "partial_score"


@dataclass(frozen=True, slots=True)
class Scale:
    """The lowest and the highest number that a grader may give."""

    low: float
    high: float

    def __str__(self) -> str:
        return f"{self.low:g}-{self.high:g}"

    @property
    def is_grades(self) -> bool:
        """Whether it is the scale from 1 to 5, which stands for classes."""
        return (self.low, self.high) == (GRADES[0], GRADES[-1])

    def holds(self, value: float) -> bool:
        """Return whether a value lies on the scale."""
        return self.low <= value <= self.high


def scale_from(text: str) -> Scale:
    """Return the scale that a text such as ``1-5`` names.

    Raises
    ------
    InputError
        If it is no two numbers, the lower first.

    Examples
    --------
    >>> scale_from("1-5"), str(scale_from("0-1"))
    (Scale(low=1.0, high=5.0), '0-1')
    """
    low, _, high = text.strip().rpartition("-")
    try:
        scale = Scale(float(low), float(high))
    except ValueError:
        scale = Scale(math.nan, math.nan)
    if not scale.low < scale.high or math.isinf(scale.high - scale.low):
        raise InputError(f"--scale: must be LOW-HIGH, such as 1-5 or 0-1, got {text!r:.60}")
    return scale


@dataclass(frozen=True, slots=True, kw_only=True)
class OutcomeOptions:
    """How the outcomes of a command are read.

    `mapped` : words that are taken as a class, pass, fail, or (empty) as missing. `scale` and
    `pass_at` say what numbers mean. `is_named` : whether the rubric was chosen by the user or the
    store; if not, outcomes that are all pass or fail have the rubric of two classes. `elsewhere` :
    mapped words that another table of the command holds, so that they need not occur.
    """

    mapped: Mapping[str, str] = field(default_factory=dict)
    scale: Scale | None = None
    pass_at: float | None = None
    is_named: bool = False
    elsewhere: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True, kw_only=True)
class OutcomeColumn:
    """The values of one column of outcomes: rows by text, in one table.

    `place` names the table, `name` the column as written, `role_name` its normalised name, by
    which it is known what numbers say.
    """

    place: str
    name: str
    role_name: str
    counts: Mapping[str, int]


@dataclass(frozen=True, slots=True, kw_only=True)
class OutcomeWords:
    """What every text of a column of outcomes is taken as.

    `classes` : the class of `taxonomy` by text, as written. `left_out` : why a text is none.
    `is_two_class` : whether all outcomes are pass or fail and the rubric was not chosen. `ended` :
    rows that ended without a result. `missing` : rows by word that is taken as missing.
    `verdicts` : pass, fail or ended by text. `scale` : the scale that numbers are on.
    """

    taxonomy: Taxonomy
    classes: Mapping[str, str]
    left_out: Mapping[str, str]
    is_two_class: bool
    verdicts: Mapping[str, words.Verdict]
    missing: Mapping[str, int]
    ended: int
    counts: Mapping[str, int]
    scale: str | None = None

    @property
    def words(self) -> dict[str, str]:
        """What each text is taken as, where it is not the name of a class: for people."""
        listed = {text: name for text, name in self.classes.items() if text != name}
        for text, verdict in self.verdicts.items():
            listed[text] = verdict if self.is_two_class and verdict != "ended" else listed[text]
        missing = dict.fromkeys(self.missing, "missing")
        return listed | missing

    @property
    def notes(self) -> tuple[str, ...]:
        """What a reader must know of the outcomes, in sentences."""
        lines = [PASS_OR_FAIL] if self.is_two_class else []
        judged = sum(self.counts[t] for t, v in self.verdicts.items() if v in ("pass", "fail"))
        if judged and not self.is_two_class:
            lines.append(
                f"{judged:,} outcomes are pass or fail: a pass was taken as "
                f"{self.taxonomy.success}, a fail as {self.taxonomy.failed_check}."
            )
        if self.ended:
            failed = self.taxonomy.without_output or self.taxonomy.failed_check
            runs = "1 run" if self.ended == 1 else f"{self.ended:,} runs"
            lines.append(f"{runs} ended without a result and counted as {failed}.")
        if self.scale is not None:
            lines.append(f"Numbers were read on the scale {self.scale}.")
        return (*lines, *words.missing_notes(self.missing, "outcome"))


def two_class_rubric(taxonomy: Taxonomy) -> Taxonomy:
    """Return the rubric of success and failure, with the workflows and ceilings of a taxonomy."""
    ready = load_taxonomy(ready_rubrics()[TWO_CLASS])
    return replace(ready, workflows=taxonomy.workflows)


def read_outcomes(
    columns: Sequence[OutcomeColumn], *, taxonomy: Taxonomy, options: OutcomeOptions | None = None
) -> OutcomeWords:
    """Return what the values of the columns of outcomes are taken as, over all tables together.

    Parameters
    ----------
    columns : sequence of OutcomeColumn
        One for each table of the command.
    taxonomy : Taxonomy
        The rubric in force; its names and titles are read in any spelling that folds alike.
    options : OutcomeOptions, optional
        What the user said of words and numbers.

    Raises
    ------
    InputError
        If the values can be read in two ways: a question that names the options.

    Examples
    --------
    >>> from calibration.taxonomy import default_taxonomy
    >>> column = OutcomeColumn(
    ...     place="a.csv", name="ok", role_name="passed", counts={"TRUE": 7, "FALSE": 3, "NA": 1}
    ... )
    >>> found = read_outcomes([column], taxonomy=default_taxonomy())
    >>> found.is_two_class, found.classes["TRUE"], found.left_out["NA"], found.missing
    (True, 'success', 'missing_outcome', {'NA': 1})
    """
    return _OutcomeReader(columns, taxonomy, options or OutcomeOptions()).read()


class _OutcomeReader:
    """The steps by which words and numbers of a column become outcomes."""

    def __init__(
        self, columns: Sequence[OutcomeColumn], taxonomy: Taxonomy, options: OutcomeOptions
    ) -> None:
        self.columns, self.taxonomy, self.options = columns, taxonomy, options
        first = columns[0]
        self.place = first.place
        self.name, self.role_name = first.name, first.role_name
        self.written: dict[str, list[str]] = {}
        self.counts: Counter[str] = Counter()
        for column in columns:
            for text, n in column.counts.items():
                word = words.clean(text)
                spellings = self.written.setdefault(word, [])
                if text not in spellings:
                    spellings.append(text)
                self.counts[word] += n
        self.mapped = {
            words.clean(word): words.clean(into) for word, into in options.mapped.items()
        }
        self.names = {
            words.fold(name): one.name for one in taxonomy.classes for name in (one.title, one.name)
        }
        self.classes: dict[str, str] = {}
        self.verdicts: dict[str, words.Verdict] = {}
        self.left_out: dict[str, str] = {}
        self.numbers: dict[str, float] = {}
        self.missing: dict[str, int] = {}
        self.scale: str | None = None
        self.is_graded = False

    def read(self) -> OutcomeWords:
        known = {**dict.fromkeys(self.options.elsewhere, 0), **self.counts}
        words.check_mapped(self.mapped, known, self.where)
        words.check_none(self.counts, self.mapped, self.where)
        unread = [word for word in self.counts if not self._is_plain(word)]
        self._check_mix()
        if self.numbers:
            self._name_numbers()
            self._read_numbers()
        elif self.options.scale is not None or self.options.pass_at is not None:
            raise InputError(f"{self.where} holds no numbers: leave --scale and --pass-at out")
        pair = words.pair_of({words.fold(word) for word in unread})
        if pair and not self.classes and not self.verdicts and not self.numbers:
            for word in unread:
                self.verdicts[word] = "pass" if pair[words.fold(word)] else "fail"
            unread = []
        self.left_out |= dict.fromkeys(unread, UNKNOWN)
        if unread and not self.classes and not self.verdicts:
            listed = ", ".join(sorted(unread, key=lambda word: -self.counts[word])[:6])
            raise InputError(
                f"{self.where}: no value is a class or says pass or fail ({listed:.200}): "
                f"--map {unread[0]:.40}=CLASS reads them, as one of "
                f"{', '.join((*self.taxonomy.names, 'pass', 'fail'))}"
            )
        return self._outcomes()

    @property
    def where(self) -> str:
        return f"{self.place}: {self.name}"

    def _is_plain(self, word: str) -> bool:
        """Sort a word into one of the kinds that need no other word; numbers come later."""
        if word in self.mapped:
            self._take_mapped(word, self.mapped[word])
        elif (name := self.names.get(words.fold(word))) is not None:
            self.classes[word] = name
        elif words.is_missing(word):
            self.left_out[word] = MISSING
            if word:
                self.missing[word] = self.counts[word]
        elif word == NO_VERDICT:
            self.left_out[word] = NO_VERDICT
        elif (value := words.number_of(word)) is not None:
            self.numbers[word] = value
        elif (verdict := words.VERDICTS.get(words.fold(word))) == "pending":
            self.left_out[word] = NOT_RUN
        elif verdict is not None:
            self.verdicts[word] = verdict
        else:
            return False
        return True

    def _take_mapped(self, word: str, into: str) -> None:
        if into in ("pass", "fail"):
            self.verdicts[word] = "pass" if into == "pass" else "fail"
        elif not into:
            self.left_out[word] = MISSING
            if word:
                self.missing[word] = self.counts[word]
        elif into == NO_VERDICT:
            self.left_out[word] = NO_VERDICT
        elif (name := self.names.get(words.fold(into))) is not None:
            self.classes[word] = name
        else:
            raise InputError(
                f"--map: {into!r:.80} is not one of {', '.join(self.taxonomy.names)}, pass, fail"
            )

    def _check_mix(self) -> None:
        """Refuse classes beside words of pass and fail, unless --map says what those are."""
        judged = [
            word
            for word, verdict in self.verdicts.items()
            if verdict != "ended" and word not in self.mapped
        ]
        unmapped = [word for word in self.classes if word not in self.mapped]
        # Of two classes one is the pass and one the fail.
        if not judged or not unmapped or len(self.taxonomy.names) == 2:
            return
        rows = [
            f"{self.counts[word]:,} row{'s' * (self.counts[word] != 1)} "
            f"say{'s' * (self.counts[word] == 1)} {word:.40}"
            for word in (max(unmapped, key=self._rows), max(judged, key=self._rows))
        ]
        failed = [word for word in judged if self.verdicts[word] == "fail"] or judged
        into = self.taxonomy.failed_check if failed[0] in self._failing else self.taxonomy.success
        raise InputError(
            f"{self.where}: {', '.join(rows)}: which class is {failed[0]:.40}? "
            f"--map {failed[0]:.40}={into}"
        )

    def _rows(self, word: str) -> int:
        return self.counts[word]

    @property
    def _failing(self) -> set[str]:
        return {word for word, verdict in self.verdicts.items() if verdict == "fail"}

    # Numbers.

    def _name_numbers(self) -> None:
        """Take the place and name of the column of numbers that says least of them."""
        numeric = [
            column
            for column in self.columns
            if any(words.clean(text) in self.numbers for text in column.counts)
        ]
        first = min(numeric, key=lambda c: 2 * (c.role_name in SURE) + (c.role_name in BOTH))
        self.place, self.name, self.role_name = first.place, first.name, first.role_name

    def _read_numbers(self) -> None:
        values, options = set(self.numbers.values()), self.options
        if options.pass_at is not None:
            self._pass_at(options.pass_at, values)
        elif options.scale is not None:
            self._on_scale(options.scale, values)
        elif values <= {0.0, 1.0}:
            self._zero_and_one(values)
        elif min(values) >= 0 and max(values) <= 1:
            self._fractions()
        else:
            raise InputError(
                f"{self.where} goes from {min(values):g} to {max(values):g}: --scale 1-5, or "
                "another scale with --pass-at"
            )

    def _zero_and_one(self, values: set[float]) -> None:
        if self.role_name in BOTH and len(values) == 1:
            (value,) = values
            raise InputError(
                f"{self.where}: only the value {value:g} occurs: {value:g} of 1, or {value:g} of "
                "5? --scale 0-1 or --scale 1-5"
            )
        if self.role_name == "rating" and len(values) == 1:
            (value,) = values
            raise InputError(
                f"{self.where}: only the value {value:g} occurs: {value:g} of 1, or {value:g} of "
                "5? --scale 0-1 or --scale 1-5, or --map 1=pass"
            )
        if self.role_name not in (*SURE, *BOTH):
            both = "0 and 1" if len(values) == 2 else f"{min(values):g} alone"
            raise InputError(
                f"{self.where} holds {both}, and the name does not say which is a pass: "
                "--map 1=pass,0=fail, or 1=fail,0=pass"
            )
        for word, value in self.numbers.items():
            self.verdicts[word] = "pass" if value == 1 else "fail"

    def _fractions(self) -> None:
        if self.role_name not in CHECKS:
            raise InputError(
                f"{self.where} holds scores from {min(self.numbers.values()):g} to "
                f"{max(self.numbers.values()):g}: from which on is a run a pass? "
                "--scale 0-1 --pass-at 0.5"
            )
        for word, value in self.numbers.items():
            if value in (0.0, 1.0):
                self.verdicts[word] = "pass" if value == 1 else "fail"
            else:
                self.left_out[word] = PARTIAL

    def _pass_at(self, threshold: float, values: set[float]) -> None:
        scale = self.options.scale
        if scale is None:
            if min(values) < 0 or max(values) > 1:
                raise InputError(
                    f"{self.where} goes from {min(values):g} to {max(values):g}: --pass-at needs "
                    f"the scale, such as --scale 0-{math.ceil(max(values))}"
                )
            scale = Scale(0.0, 1.0)
        if not scale.holds(threshold):
            raise InputError(f"--pass-at: {threshold:g} is not on the scale {scale}")
        self.scale = f"{scale}, {threshold:g} or more passes"
        for word, value in self.numbers.items():
            if scale.holds(value):
                self.verdicts[word] = "pass" if value >= threshold - TOLERANCE else "fail"
            else:
                self.left_out[word] = OFF_SCALE

    def _on_scale(self, scale: Scale, values: set[float]) -> None:
        on_scale = {value for value in values if scale.holds(value)}
        self.scale = str(scale)
        if (scale.low, scale.high) == (0.0, 1.0) and on_scale <= {0.0, 1.0}:
            for word, value in self.numbers.items():
                if value in on_scale:
                    self.verdicts[word] = "pass" if value == 1 else "fail"
                else:
                    self.left_out[word] = OFF_SCALE
            return
        if not scale.is_grades or len(self.taxonomy.acceptable) < 2:
            why = (
                f"with a rubric of {len(self.taxonomy.names)} classes"
                if scale.is_grades
                else f"of {self.name}"
            )
            middle = (scale.low + scale.high) / 2
            raise InputError(
                f"{self.place}: the scale {scale} {why} needs --pass-at, the lowest score that is "
                f"a pass, such as --pass-at {middle:g}"
            )
        for word, value in self.numbers.items():
            if value not in on_scale:
                self.left_out[word] = OFF_SCALE
            elif value != int(value):
                self.left_out[word] = NO_VERDICT
            else:
                self.classes[word] = class_of_grade(int(value), self.taxonomy)

    def _outcomes(self) -> OutcomeWords:
        is_two_class = bool(self.verdicts) and not self.classes and not self.options.is_named
        taxonomy = two_class_rubric(self.taxonomy) if is_two_class else self.taxonomy
        taken = {
            "pass": taxonomy.success,
            "fail": taxonomy.failed_check,
            "ended": taxonomy.without_output or taxonomy.failed_check,
        }
        classes = self.classes | {word: taken[v] for word, v in self.verdicts.items()}
        return OutcomeWords(
            taxonomy=taxonomy,
            classes=self._as_written(classes),
            left_out=self._as_written(self.left_out),
            is_two_class=is_two_class,
            verdicts=self._as_written(self.verdicts),
            missing=self.missing,
            ended=sum(self.counts[word] for word, v in self.verdicts.items() if v == "ended"),
            counts=self._rows_as_written(),
            scale=self.scale,
        )

    def _as_written(self, by_word: Mapping[str, T]) -> dict[str, T]:
        return {text: value for word, value in by_word.items() for text in self.written[word]}

    def _rows_as_written(self) -> Counter[str]:
        rows: Counter[str] = Counter()
        for column in self.columns:
            rows.update(column.counts)
        return rows


def class_of_grade(grade: int, taxonomy: Taxonomy) -> str:
    """Return the class that a grade from 1 to 5 stands for.

    5 is success, 4 the other acceptable class, below 4 a failed check: a grade implies no other.

    >>> from calibration.taxonomy import default_taxonomy
    >>> [class_of_grade(grade, default_taxonomy()) for grade in (5, 4, 1)]
    ['complete', 'partial_plus', 'partial_minus']
    """
    if grade == max(GRADES):
        return taxonomy.success
    return taxonomy.acceptable[-1] if grade == max(GRADES) - 1 else taxonomy.failed_check


def off_unit(values: Iterable[float]) -> bool:
    """Return whether scores of one name leave [0, 1], so that none of them is a verdict by itself.

    >>> off_unit([0, 1, 0.5]), off_unit([1, 4])
    (False, True)
    """
    return any(value < -NEAR or value > 1 + NEAR for value in values)


# --- scores of traces, by their names ------------------------------------------------------------

UNIT = Scale(0.0, 1.0)
FIVE = Scale(1.0, 5.0)


@dataclass(slots=True)
class ScoreNumbers:
    """The numbers of all scores of one name: in how many runs, and from where to where.

    `fractions` counts those between 0 and 1. `stated` : the scales that the files state, each with
    None for the lowest number where only the highest is stated. `is_grade` : whether it is a
    verdict by its name, so that 0 and 1 are fail and pass.
    """

    runs: int = 0
    is_grade: bool = False
    low: float = math.inf
    high: float = -math.inf
    fractions: int = 0
    stated: set[tuple[float | None, float]] = field(default_factory=set)

    def add(self, value: float) -> None:
        """Take a number in."""
        self.low, self.high = min(self.low, value), max(self.high, value)
        self.fractions += NEAR < value < 1 - NEAR

    def merge(self, other: "ScoreNumbers") -> None:
        """Take in what another one counted."""
        self.runs += other.runs
        self.low, self.high = min(self.low, other.low), max(self.high, other.high)
        self.fractions += other.fractions
        self.stated |= other.stated
        self.is_grade = self.is_grade or other.is_grade

    @property
    def scale(self) -> Scale | None:
        """The scale that the files state, None where they state none or several."""
        scales = set()
        for low, high in self.stated:
            if low is None:  # grades to 5 are from 1, unless a lower one was given
                low = FIVE.low if high == FIVE.high and self.low >= FIVE.low else 0.0
            if low < high:
                scales.add(Scale(low, high))
        return scales.pop() if len(scales) == 1 else None


@dataclass(frozen=True, slots=True, kw_only=True)
class ScoreRule:
    """What the numbers of one score name mean.

    Without a `scale` they are no verdicts, and `unknown` says why. `note` is for people.
    """

    name: str
    scale: Scale | None = None
    pass_at: float | None = None
    unknown: str = ""
    note: str = ""

    def read(self, value: float, taxonomy: Taxonomy) -> tuple[str | None, str]:
        """Return the class of a number, or None and why it has none.

        Examples
        --------
        >>> from calibration.taxonomy import default_taxonomy
        >>> ScoreRule(name="correctness", scale=FIVE).read(4, default_taxonomy())
        ('partial_plus', '')
        >>> ScoreRule(name="reward", scale=UNIT).read(0.5, default_taxonomy())
        (None, 'is neither 0 nor 1')
        """
        if self.scale is None:
            return None, self.unknown
        if not self.scale.low - NEAR <= value <= self.scale.high + NEAR:
            return None, f"is not on the scale {self.scale}"
        if self.pass_at is not None:
            passed = value >= self.pass_at - TOLERANCE
            return (taxonomy.success if passed else taxonomy.failed_check), ""
        if self.scale.is_grades:
            if value != int(value):
                return None, "is not a whole number from 1 to 5"
            return class_of_grade(int(value), taxonomy), ""
        if abs(value - 1) <= NEAR:
            return taxonomy.success, ""
        if abs(value) <= NEAR:
            return taxonomy.failed_check, ""
        return None, "is neither 0 nor 1"

    def grade(self, value: float) -> int | None:
        """Return the grade from 1 to 5 that a number is."""
        if self.scale is None or not self.scale.is_grades or value not in GRADES:
            return None
        return int(value)


def score_rule(
    name: str,
    numbers: ScoreNumbers,
    taxonomy: Taxonomy,
    *,
    scale: Scale | None = None,
    pass_at: float | None = None,
) -> ScoreRule:
    """Return what the numbers of one score name mean, from all of them together.

    Parameters
    ----------
    name : str
        The name of the score, which messages repeat.
    numbers : ScoreNumbers
        What all files of the import hold of it.
    taxonomy : Taxonomy
        The rubric in force: grades from 1 to 5 need two acceptable classes.
    scale, pass_at : Scale and float, optional
        What the user said; a scale goes before that of the files.

    Raises
    ------
    InputError
        If `scale` or `pass_at` do not suffice for these numbers.

    Examples
    --------
    >>> from calibration.taxonomy import default_taxonomy
    >>> numbers = ScoreNumbers(runs=60, low=1, high=5, is_grade=True)
    >>> score_rule("quality", numbers, default_taxonomy()).scale is None
    True
    >>> score_rule("quality", numbers, default_taxonomy(), scale=FIVE).note
    'scores called quality (60 runs) are read on the scale 1-5'
    """
    option = quote(f"{name:.80}=")
    called = f"scores called {name:.80} ({numbers.runs:,} run{'s' * (numbers.runs != 1)})"
    stated = numbers.scale if scale is None and numbers.is_grade else None
    on = scale or stated
    if pass_at is not None:
        if on is None and off_unit((numbers.low, numbers.high)):
            raise InputError(
                f"{called} go from {numbers.low:g} to {numbers.high:g}: --pass-at needs their "
                f"scale, such as --scale {option}0-{math.ceil(numbers.high)}"
            )
        on = on or UNIT
        if not on.holds(pass_at):
            raise InputError(f"--pass-at {option}{pass_at:g}: is not on the scale {on}")
        note = f"{called} are read on the scale {on}: {pass_at:g} or more passes"
        return ScoreRule(name=name, scale=on, pass_at=pass_at, note=note)
    if on is not None:
        known = on == UNIT or (on.is_grades and len(taxonomy.acceptable) > 1)
        needs = f"`--pass-at {option}{(on.low + on.high) / 2:g}`"
        if not known and stated is None:
            raise InputError(
                f"--scale {option}{on} needs the lowest score that passes, such as {needs}"
            )
        by = ", which the files state" * (stated is not None)
        note = f"{called} are read on the scale {on}{by}"
        if not known:
            note = f"{called} are on the scale {on}{by}; {needs} makes verdicts of them"
            return ScoreRule(name=name, unknown=f"is on the scale {on}, no pass named", note=note)
        return ScoreRule(name=name, scale=on, note=note)
    return _without_a_scale(name, numbers, called, option)


def _without_a_scale(name: str, numbers: ScoreNumbers, called: str, option: str) -> ScoreRule:
    """Return what numbers mean by themselves: 0 and 1 in a name that has nothing else."""
    if off_unit((numbers.low, numbers.high)):
        span = f"from {numbers.low:g} to {numbers.high:g}"
        more = f"`--scale {option}1-5`"
        if numbers.low < FIVE.low or numbers.high > FIVE.high:
            more = f"`--scale {option}LOW-HIGH` with `--pass-at {option}N`"
        note = f"{called} go {span} and are kept as they are; {more} makes verdicts of them"
        return ScoreRule(name=name, unknown=f"is of scores that go {span}", note=note)
    if not numbers.is_grade:
        return ScoreRule(name=name, unknown="is no score of success")
    if numbers.low > 1 - NEAR and words.fold(name) not in SURE:
        note = (
            f"{called} are all 1: 1 of 1, or 1 of 5? `--scale {option}0-1` or "
            f"`--scale {option}1-5` makes verdicts of them"
        )
        return ScoreRule(name=name, unknown="is 1 as all of its name: of 1, or of 5?", note=note)
    note = ""
    if numbers.fractions:
        note = (
            f"{called} are fractions in {numbers.fractions:,}, which give no verdict; "
            f"`--pass-at {option}0.5` makes verdicts of them"
        )
    return ScoreRule(name=name, scale=UNIT, note=note)
