"""What the outcomes of labels and verdicts mean, and classes that are merged.

The words of both tables are read together: as classes of the rubric in force, as pass and fail, or
as classes of the user's own.
"""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Literal

from calibration.errors import InputError
from calibration.records import NO_VERDICT
from calibration.tables import words
from calibration.tables.columns import (
    ALIASES,
    OF_JUDGES,
    Header,
    answer_column,
    columns_by_table,
    normalised,
)
from calibration.tables.labels import (
    HUMAN,
    JUDGE,
    OF_LABELS,
    OF_VERDICTS,
    OUTCOME,
    PEOPLE,
    VERDICT,
    AnswerTable,
    LabelFile,
    LabelRow,
    LabelTable,
    VerdictFile,
    VerdictRow,
    VerdictTable,
    WordsRead,
    label_table,
    lacking,
    open_answers,
    reading_of_answers,
    settled_labels,
    settled_verdicts,
    verdict_table,
)
from calibration.tables.reading import Reading, ReadingOptions
from calibration.tables.rows import OpenTable, Source, located, none_of, open_table
from calibration.tables.scales import OutcomeColumn, OutcomeOptions, read_outcomes
from calibration.taxonomy import Taxonomy
from calibration.text import names_there
from calibration.trace_formats.fields import FieldError

SPLIT = "split"
NO_CLASS = (NO_VERDICT, SPLIT)
MAX_CLASSES, MAX_NUMBERS = 50, 200
Rest = Literal["no_verdict"]
Names = tuple[str, ...]
REMEDY = (
    "; --map takes it as one of them, --rest no_verdict takes it as no verdict, --classes lists "
    "classes of your own"
)
OF_LABEL = "; --map takes it as one of them, --classes lists classes of your own"


@dataclass(frozen=True, slots=True, kw_only=True)
class Vocabulary:
    """How outcomes are read.

    `mapped` : class, or verdict without a class, by word; empty: the word is missing
    `rest` : what every other verdict that is no class is taken as; None refuses it
    `merged` : classes by the name of the class that they become
    `classes` : the classes in order, before they are merged; empty before `read_answers`
    `words` : what each word of the tables is taken as before classes are merged
    `is_exact` : whether classes have exactly this spelling
    `verdicts` : the classes that are pass and fail, where the outcomes are that
    """

    mapped: Mapping[str, str] = field(default_factory=dict)
    rest: Rest | None = None
    merged: Mapping[str, Sequence[str]] = field(default_factory=dict)
    classes: tuple[str, ...] = ()
    words: Mapping[str, str] = field(default_factory=dict)
    is_exact: bool = False
    verdicts: Mapping[str, str] = field(default_factory=dict)

    @property
    def into(self) -> dict[str, str]:
        """The merged class of each class that is part of one."""
        return {name: new for new, names in self.merged.items() for name in names}

    @property
    def final(self) -> tuple[str, ...]:
        """The classes in order, a merged one in the place of the first of its parts."""
        into = self.into
        return tuple(dict.fromkeys(into.get(name, name) for name in self.classes))

    def taken(self, outcome: str) -> str:
        """Return what a verdict is taken as before classes are merged."""
        if (known := self.words.get(outcome, self.mapped.get(outcome))) is not None:
            return known
        if outcome in (*self.classes, *NO_CLASS, ""):
            return outcome
        if words.is_missing(outcome):
            return ""
        if not self.is_exact:
            word = words.fold(outcome)
            alike = {words.fold(name): name for name in (*self.classes, *NO_CLASS)}
            verdict = words.VERDICTS.get(word, "")
            if word in alike or verdict in self.verdicts:
                return alike.get(word) or self.verdicts[verdict]
        return outcome if self.rest is None else self.rest

    def verdict(self, outcome: str) -> str:
        """Return what a verdict is taken as."""
        known = self.taken(outcome)
        return self.into.get(known, known)


@dataclass(frozen=True, slots=True, kw_only=True)
class Recoded:
    """One outcome of the tables that was taken as another, with its rows of either table."""

    option: Literal["map", "rest", "merge"]
    outcome: str
    into: str
    verdicts: int
    labels: int


@dataclass(frozen=True, slots=True, kw_only=True)
class AnswersRead:
    """Labels and verdicts whose outcomes are classes, with what was done to them."""

    labels: LabelFile
    verdicts: VerdictFile
    vocabulary: Vocabulary
    recoded: tuple[Recoded, ...]
    taxonomy: Taxonomy
    readings: tuple[Reading, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class AnswerOptions:
    """How the answers of a command are read: the rubric, and what the user said.

    `classes` : every class in order, in exactly this spelling. `credit` : the credit that the user
    gave; its names are classes. `is_named` : whether the user or the store chose the rubric.
    """

    taxonomy: Taxonomy
    is_named: bool = False
    classes: Sequence[str] | None = None
    credit: Mapping[str, float] | None = None
    reading: ReadingOptions = field(default_factory=ReadingOptions)


def read_answers(
    labels: LabelTable,
    verdicts: VerdictTable,
    vocabulary: Vocabulary,
    options: AnswerOptions,
    further: Sequence[VerdictTable] = (),
) -> AnswersRead:
    """Take the words of labels and verdicts as classes, settle their rows, and merge classes.

    The classes are those that `options` lists; else those of the rubric, where all words are of it;
    else success and failure, where all words say pass or fail; else the words themselves, of which
    those that fold alike are one. `further` are verdicts of other judges, whose words count too.

    Raises
    ------
    InputError
        If an outcome is no class, a name of the vocabulary is not known, there are fewer than two
        classes, or two rows contradict each other.

    Examples
    --------
    >>> import pandas as pd
    >>> from calibration.tables.labels import read_labels, read_verdict_rows
    >>> from calibration.taxonomy import default_taxonomy
    >>> human = pd.DataFrame({"trace_id": ["a", "b"], "outcome": ["complete", "abandoned"]})
    >>> read = read_answers(
    ...     read_labels(human),
    ...     read_verdict_rows(human.assign(outcome=["good", "error"])),
    ...     Vocabulary(
    ...         mapped={"good": "complete"},
    ...         rest="no_verdict",
    ...         merged={"failed": ["hallucinated", "abandoned"]},
    ...     ),
    ...     AnswerOptions(
    ...         taxonomy=default_taxonomy(), classes=["complete", "hallucinated", "abandoned"]
    ...     ),
    ... )
    >>> read.vocabulary.final, [row.outcome for row in read.verdicts.rows.values()]
    (('complete', 'failed'), ['complete', 'no_verdict'])
    """
    reader = _AnswerReader(labels, verdicts, vocabulary, options, further)
    known = reader.read()
    _check_merge(known)
    reader.check(known)
    into = known.into
    of_labels = {word: into.get(name, name) for word, name in reader.of_labels.items()}
    of_verdicts = {word: into.get(name, name) for word, name in reader.of_verdicts.items()}
    human = settled_labels(labels, of_labels)
    judged = settled_verdicts(verdicts, of_verdicts)
    return AnswersRead(
        labels=human,
        verdicts=judged,
        vocabulary=known,
        recoded=tuple(_recoded(known, verdicts.counts, labels.counts)),
        taxonomy=reader.taxonomy,
        readings=reader.readings(human, judged),
    )


class _AnswerReader:
    """The steps by which the words of labels and verdicts become classes."""

    def __init__(
        self,
        labels: LabelTable,
        verdicts: VerdictTable,
        vocabulary: Vocabulary,
        options: AnswerOptions,
        further: Sequence[VerdictTable],
    ) -> None:
        self.labels, self.verdicts, self.options = labels, verdicts, options
        self.mapped = {words.clean(w): words.clean(c) for w, c in vocabulary.mapped.items()}
        self.vocabulary = replace(vocabulary, mapped=self.mapped)
        self.heard, self.judged = labels.counts, verdicts.counts
        for table in further:
            for word in table.counts:
                self.judged.setdefault(word, 0)
        self.taxonomy = options.taxonomy
        self.of_labels: dict[str, str] = {}
        self.of_verdicts: dict[str, str] = {}
        self.missing: list[Counter[str]] = [Counter(), Counter()]
        self.notes: tuple[str, ...] = ()
        self.scale: str | None = None

    @property
    def place(self) -> str:
        return ", ".join(dict.fromkeys((self.labels.place, self.verdicts.place)))

    def read(self) -> Vocabulary:
        """Return the vocabulary with its classes and the words of both tables."""
        every = Counter(self.heard)
        every.update(self.judged)
        words.check_mapped(self.mapped, every, self.place)
        if self.options.classes is not None:
            known = self._exact(self.options.classes)
        elif self._is_of_rubric():
            self._check_grades(every)
            known = self._by_rubric()
        else:
            known = self._of_their_own()
        return replace(known, words=self.of_labels | self.of_verdicts)

    def of_one(self, side: int) -> WordsRead:
        """Return the words of the labels alone (0) or of the verdicts (1), of the rubric."""
        counts, taken_as = self._sides[side]
        known = self._by_rubric() if any(map(self._says, counts)) else self.vocabulary
        for word in counts.keys() - taken_as.keys():
            taken_as[word] = ""
        return WordsRead(
            taken_as=taken_as,
            missing=self.missing[side],
            classes=(*known.classes, *((NO_VERDICT,) if side else ())),
            rubric=self.taxonomy.version,
            scale=self.scale,
            notes=self.notes,
        )

    def _says(self, word: str) -> bool:
        return word in self.mapped or not words.is_missing(word)

    # Classes that the user lists.

    def _exact(self, listed: Sequence[str]) -> Vocabulary:
        classes = _two_or_more(tuple(words.clean(name) for name in listed))
        known = replace(self.vocabulary, classes=classes, is_exact=True)
        self._check_map(classes)
        for n, (counts, taken_as) in enumerate(self._sides):
            for word in counts:
                if word in classes:
                    taken_as[word] = word
                elif word in self.mapped:
                    taken_as[word] = self.mapped[word]
                elif words.is_missing(word):
                    taken_as[word] = ""
                else:
                    taken_as[word] = known.taken(word) if n else word
                if not taken_as[word] and word and counts[word]:
                    self.missing[n][word] = counts[word]
        return known

    @property
    def _sides(self) -> tuple[tuple[Counter[str], dict[str, str]], ...]:
        return (self.heard, self.of_labels), (self.judged, self.of_verdicts)

    def _check_map(self, classes: Sequence[str]) -> None:
        """Refuse a word of --map that is a class, or becomes none."""
        for name, into in self.mapped.items():
            if name in classes and name != into:
                raise InputError(f"--map: {name!r:.80} is a class; classes are joined by --merge")
            if into and into not in (*classes, *NO_CLASS):
                listed = ", ".join((*classes, *NO_CLASS))
                raise InputError(f"--map: {into!r:.80} is not one of {listed:.200}")

    # Classes of the rubric in force, or pass and fail.

    def _is_of_rubric(self) -> bool:
        """Return whether the words are classes of the rubric, pass and fail, or numbers."""
        # Names of a credit or a merge that occur as words are classes of the user's own.
        named = {*(self.options.credit or ()), *self.vocabulary.into}
        folded = {words.fold(word) for word in [*self.heard, *self.judged]}
        rubric = self._names.keys() | {"success", "failure"}
        if {words.fold(name) for name in named} & folded - rubric:
            return False
        heard = self.heard if self.vocabulary.rest else [*self.heard, *self.judged]
        plain = [word for word in heard if not self._is_none(word)]
        kinds = {self._kind(word, self._pairs) for word in plain}
        if "other" in kinds or kinds == {"ended"}:
            return bool(kinds & {"class", "verdict"}) and self.options.credit is None
        return bool(kinds) or bool(self.mapped)

    @property
    def _names(self) -> dict[str, str]:
        rubric = self.options.taxonomy
        return {words.fold(n): c.name for c in rubric.classes for n in (c.title, c.name)}

    def _is_none(self, word: str) -> bool:
        """Return whether a word is no outcome, or --map says what it is."""
        return word in self.mapped or words.is_missing(word) or words.fold(word) in NO_CLASS

    def _kind(self, word: str, pairs: set[str]) -> str:
        folded = words.fold(word)
        if folded in self._names:
            return "class"
        if words.number_of(word) is not None:
            return "number"
        verdict = words.VERDICTS.get(folded)
        if verdict in ("pass", "fail") or folded in pairs:
            return "verdict"
        return "other" if verdict is None else "ended"

    @property
    def _pairs(self) -> set[str]:
        """The words of pairs such as right and wrong, of tables that hold one and nothing else."""
        both: set[str] = set()
        sides = [
            {words.fold(word) for word in counts if not self._is_none(word)}
            for counts, _ in self._sides
        ]
        for side in (*sides, sides[0] | sides[1]):
            if words.pair_of(side):
                both |= side
        return both if all(s <= both or not s & both for s in sides) else set()

    def _by_rubric(self) -> Vocabulary:
        """Take words as classes of the rubric, as pass and fail, or numbers on a scale."""
        options, pairs = self.options, self._pairs
        mapped = {w: c for w, c in self.mapped.items() if c != SPLIT}
        goods = {good for good, _ in words.PAIRS}
        columns = []
        for table, counts in ((self.labels, self.heard), (self.verdicts, self.judged)):
            kept = {w: n for w, n in counts.items() if self.mapped.get(w) != SPLIT and w != SPLIT}
            columns.append(
                OutcomeColumn(
                    place=self.place if table is self.labels else table.place,
                    name=table.columns.by_role.get(OUTCOME, table.column),
                    role_name=table.column,
                    counts=kept,
                )
            )
            for word in kept:
                if (folded := words.fold(word)) in pairs and word not in mapped:
                    mapped[word] = "pass" if folded in goods else "fail"
                elif folded == NO_VERDICT and word not in mapped:
                    mapped[word] = NO_VERDICT
        for name, into in self.mapped.items():
            if words.fold(name) in self._names and self._names[words.fold(name)] != into:
                raise InputError(f"--map: {name!r:.80} is a class; classes are joined by --merge")
        read = read_outcomes(
            columns,
            taxonomy=options.taxonomy,
            options=OutcomeOptions(
                mapped=mapped,
                scale=options.reading.scale,
                pass_at=options.reading.pass_at,
                is_named=options.is_named,
            ),
        )
        self.taxonomy = read.taxonomy
        known = replace(
            self.vocabulary,
            classes=read.taxonomy.names,
            verdicts={"pass": read.taxonomy.success, "fail": read.taxonomy.failed_check}
            if read.verdicts
            else {},
        )
        for n, (counts, taken_as) in enumerate(self._sides):
            for word in counts:
                # What ended without an answer is no answer, and no fail either.
                is_ended = read.verdicts.get(word) == "ended" and word not in self.mapped
                if word in read.classes and not is_ended:
                    taken_as[word] = read.classes[word]
                elif self.mapped.get(word) == SPLIT or word == SPLIT:
                    taken_as[word] = SPLIT
                elif (why := read.left_out.get(word)) == "missing_outcome":
                    taken_as[word] = ""
                    if word and counts[word]:
                        self.missing[n][word] = counts[word]
                elif why in ("no_verdict", "off_scale", "partial_score"):
                    taken_as[word] = NO_VERDICT
                else:
                    taken_as[word] = (known.rest or word) if n else word
        self.scale = read.scale
        said_elsewhere = ("taken as missing", "ended without a result")
        self.notes = tuple(n for n in read.notes if not any(part in n for part in said_elsewhere))
        return known

    def _check_grades(self, every: Mapping[str, int]) -> None:
        """Refuse numbers of which nobody says whether they are grades or classes."""
        reading = self.options.reading
        plain = [word for word in every if not self._is_none(word)]
        values = {value for word in plain if (value := words.number_of(word)) is not None}
        if reading.scale or reading.pass_at is not None or not values - {0.0, 1.0}:
            return
        if max(values) > 1 and len(values) <= MAX_CLASSES:
            listed = ",".join(f"{value:g}=..." for value in sorted(values))
            raise InputError(
                f"{self.place}: the outcome goes from {min(values):g} to {max(values):g}: --scale "
                f"1-5, or another scale with --pass-at; --credit {listed:.200} takes each number "
                "as a class"
            )

    # Classes of the user's own.

    def _of_their_own(self) -> Vocabulary:
        """Take words as classes of their own, those that fold alike as one."""
        self._check_scale()
        counts = Counter(self.heard)
        if self.vocabulary.rest is None:
            counts.update(self.judged)
        else:
            counts.update({w: n for w, n in self.judged.items() if w in self.mapped})
        none = {w for w in counts if words.fold(w) in NO_CLASS and w not in self.heard}
        none |= {w for w, into in self.mapped.items() if into in NO_CLASS}
        for word in none:
            counts.pop(word, None)
        mapped = {w: c for w, c in self.mapped.items() if w in counts}
        labels = words.read_labels(counts, place=self.place, mapped=mapped)
        names = {name for name in labels.label.values() if name}
        check_classes(self.place, names, "name the classes with --classes")
        classes = _two_or_more(tuple(in_order(names)))
        known = replace(self.vocabulary, classes=classes)
        for n, (rows, taken_as) in enumerate(self._sides):
            for word in rows:
                taken_as[word] = labels.label[word] if word in labels.label else known.taken(word)
                if word in labels.missing and rows[word]:
                    self.missing[n][word] = rows[word]
        self.notes = tuple(note for note in labels.notes if "taken as missing" not in note)
        return known

    def _check_scale(self) -> None:
        """Refuse a scale for words."""
        scale = self.options.reading
        if scale.scale is not None or scale.pass_at is not None:
            raise InputError(
                f"{self.place}: some outcomes are neither numbers nor classes of the rubric: leave "
                "--scale and --pass-at out, or --map the words"
            )

    def check(self, known: Vocabulary) -> None:
        """Raise if an outcome is no class."""
        allowed = {"", *known.classes}
        strange: list[tuple[str, LabelRow | VerdictRow]] = [
            *(
                (self.labels.place, row)
                for row in self.labels.rows
                if self.of_labels[row.outcome] not in allowed
            ),
            *(
                (self.verdicts.place, row)
                for row in self.verdicts.rows
                if self.of_verdicts[row.outcome] not in allowed.union(NO_CLASS)
            ),
        ]
        for path, row in strange:
            with located(path, row.line):
                error = none_of("outcome", row.outcome, known.classes)
                raise FieldError(f"{error}{REMEDY if isinstance(row, VerdictRow) else OF_LABEL}")

    def readings(self, human: LabelFile, judged: VerdictFile) -> tuple[Reading, ...]:
        """Return what was read of the labels and of the verdicts."""
        tables: tuple[tuple[LabelTable | VerdictTable, LabelFile | VerdictFile, Names], ...] = (
            (self.labels, human, ("trace_id", "reviewer", OUTCOME)),
            (self.verdicts, judged, ("trace_id", OUTCOME, "judge", "cost_usd")),
        )
        return tuple(
            reading_of_answers(
                table,
                settled.left_out,
                roles=roles,
                words=WordsRead(
                    taken_as={w: c for w, c in taken_as.items() if counts[w]},
                    missing=self.missing[n],
                    rubric=self.taxonomy.version,
                    scale=self.scale,
                    notes=() if n else self.notes,
                ),
            )
            for n, ((table, settled, roles), (counts, taken_as)) in enumerate(
                zip(tables, self._sides, strict=True)
            )
        )


def read_words(
    table: LabelTable | VerdictTable,
    taxonomy: Taxonomy,
    options: ReadingOptions | None = None,
    *,
    rest: Rest | None = None,
) -> WordsRead:
    """Return what the words of one table are taken as: classes of a taxonomy that is in force.

    Raises InputError if the words can be read in two ways, or --map names one that does not occur.
    """
    options = options or ReadingOptions()
    empty = LabelTable(place=table.place, rows=(), columns=table.columns, column=table.column)
    vocabulary = Vocabulary(mapped=options.mapped, rest=rest)
    known = AnswerOptions(taxonomy=taxonomy, is_named=True, reading=options)
    if isinstance(table, LabelTable):
        none = VerdictTable(place=table.place, rows=(), columns=table.columns, column=table.column)
        reader = _AnswerReader(table, none, vocabulary, known, ())
    else:
        reader = _AnswerReader(empty, table, vocabulary, known, ())
    return reader.of_one(int(isinstance(table, VerdictTable)))


def check_words(table: LabelTable | VerdictTable, read: WordsRead) -> None:
    """Raise InputError, with the line, if an outcome is no class."""
    known = read.classes
    for row in table.rows:
        if read.taken_as[row.outcome] not in ("", *known):
            with located(table.place, row.line):
                error = none_of("outcome", row.outcome, known)
                raise FieldError(f"{error}; --map takes it as one of them")


def _two_or_more(classes: tuple[str, ...]) -> tuple[str, ...]:
    """Return the classes, or refuse fewer than two, or one that is there twice."""
    if len(set(classes)) != len(classes) or "" in classes or len(classes) < 2:
        raise InputError(
            f"two classes or more are needed, each once, got {', '.join(classes)!r:.200}; name "
            "them with --classes"
        )
    return classes


def check_classes(place: str, names: set[str], remedy: str) -> None:
    """Raise InputError if more classes occur than people tell apart; numbers may be more."""
    try:
        most = MAX_NUMBERS if [float(name) for name in names] else MAX_CLASSES
    except ValueError:
        most = MAX_CLASSES
    if len(names) > most:
        raise InputError(
            f"{place}: {len(names):,} different labels, as {min(names)!r:.60}: is this a free-text "
            f"column? At most {most} are taken as classes; {remedy}"
        )


def in_order(names: set[str]) -> list[str]:
    """Return class names sorted, numbers by value."""
    try:
        return sorted(names, key=float)
    except ValueError:
        return sorted(names)


def _check_merge(known: Vocabulary) -> None:
    seen: set[str] = set()
    for new, names in known.merged.items():
        for name in names:
            if name not in known.classes:
                raise InputError(
                    f"--merge: {name!r:.80} is not one of {', '.join(known.classes):.200}"
                )
            if name in seen:
                raise InputError(f"--merge: {name!r:.80} is merged twice")
            seen.add(name)
        if len(names) < 2:
            raise InputError(f"--merge: {new!r:.80} must be made of two classes or more")
    for new, names in known.merged.items():
        if new in NO_CLASS or (new in known.classes and new not in names):
            raise InputError(f"--merge: {new!r:.80} has a meaning already; choose another name")
    if len(known.final) < 2:
        raise InputError(
            f"--merge leaves one class, {known.final[0]!r:.80}; two or more are needed"
        )


def _recoded(
    known: Vocabulary, judged: Mapping[str, int], heard: Mapping[str, int]
) -> Iterator[Recoded]:
    """Yield what was taken as something else by an option, with its rows."""
    for name, into in known.mapped.items():
        yield Recoded(
            option="map",
            outcome=name,
            into=known.words.get(name, into),
            verdicts=judged.get(name, 0),
            labels=heard.get(name, 0),
        )
    of_words = {name: known.taken(name) for name in {*judged, *heard}}
    if known.rest is not None:
        for name in sorted(judged.keys() - {"", *known.mapped}):
            if of_words[name] == known.rest and words.fold(name) not in NO_CLASS:
                yield Recoded(
                    option="rest", outcome=name, into=known.rest, verdicts=judged[name], labels=0
                )
    for name, into in known.into.items():
        yield Recoded(
            option="merge",
            outcome=name,
            into=into,
            verdicts=sum(n for word, n in judged.items() if of_words[word] == name),
            labels=sum(n for word, n in heard.items() if of_words[word] == name),
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class JudgedTables:
    """Labels and verdicts to be joined, and the verdicts of another judge if one was named."""

    labels: LabelTable
    verdicts: VerdictTable
    against: VerdictTable | None = None


def of_two_tables(
    human: Source,
    verdicts: Source,
    options: ReadingOptions | None = None,
    *,
    judge_id: str | None = None,
    against: str | None = None,
) -> JudgedTables:
    """Open labels and verdicts in two tables.

    A name of --column goes for the tables that have its column; `human` and `verdict` are the
    outcome of the one and of the other. `against` names another judge of `verdicts`, or another
    file. The column of the traces is one that both tables have, if there is one.

    Raises InputError as `open_answers` and `columns_by_table`.
    """
    options = options or ReadingOptions()
    other = Path(against) if against is not None and Path(against).is_file() else None
    sources = [(human, PEOPLE), (verdicts, JUDGE), *([(other, JUDGE)] if other else [])]
    tables = [
        open_table(source, options, is_strict=True, shares_where=True) for source, _ in sources
    ]
    for name, _ in options.where:
        if not any(name in table.columns for table in tables):
            places = ", ".join(table.place for table in tables)
            known = [column for table in tables for column in table.columns]
            raise InputError(
                f"--where: {places} have no column {name!r:.80}; {names_there(name, known)}"
            )
    headers = [Header.of(table.columns, table.place, ()) for table in tables]
    by_table = columns_by_table(
        options.columns,
        *(
            (header, (*side.roles, *side.also))
            for header, (_, side) in zip(headers, sources, strict=True)
        ),
    )
    opened = [
        open_answers(
            source,
            side,
            replace(options, columns=columns, raters=options.raters if side is PEOPLE else ()),
            table=table,
        )
        for (source, side), table, columns in zip(sources, tables, by_table, strict=True)
    ]
    _join(opened[0], opened[1])
    every = verdict_table(opened[1])
    if other is not None:
        earlier: VerdictTable | None = verdict_table(opened[2])
    elif against is None or against == judge_id:
        earlier = None
    else:
        earlier = every.of_judge(against)
    return JudgedTables(
        labels=label_table(opened[0]),
        verdicts=every.of_judge(judge_id, names_it=True),
        against=earlier,
    )


def _join(labels: AnswerTable, verdicts: AnswerTable) -> None:
    """Choose the columns by which labels and verdicts are joined.

    Raises InputError if two columns may name the trace, and join other rows.
    """
    if not labels.traces or not verdicts.traces:
        return
    of_labels, of_verdicts = (
        {name: answers.table.sample.texts[name] for name in answers.traces}
        for answers in (labels, verdicts)
    )
    pairs = []
    for name in labels.traces:
        for other in verdicts.traces:
            if normalised(name) == normalised(other) and not set(of_labels[name]).isdisjoint(
                of_verdicts[other]
            ):
                pairs.append((name, other))
    if not pairs:
        return
    (name, other), *rivals = pairs
    for one, two in rivals:
        place = dict(zip(of_verdicts[other], of_verdicts[two], strict=True))
        if any(
            place.get(trace, rival) != rival
            for trace, rival in zip(of_labels[name], of_labels[one], strict=True)
        ):
            raise InputError(
                f"{labels.table.place}: {name} and {one} both may name the trace, and join other "
                f"verdicts: --column trace_id={one}"
            )
    labels.by_role["trace_id"], verdicts.by_role["trace_id"] = name, other


def of_one_table(
    table: Source,
    options: ReadingOptions | None = None,
    *,
    judge_id: str | None = None,
    against: str | None = None,
) -> JudgedTables:
    """Open labels and verdicts in one table, a row a trace.

    The column `human` has the class that people gave, or raters have a column each; `verdict` that
    of the judge, who has the name of the column, unless there is a column `judge`. `against` is
    another column of verdicts, another judge, or another file. Without a column that names the
    trace the rows are numbered.

    Raises InputError as `of_two_tables`.
    """
    options = options or ReadingOptions()
    first = open_table(table, options, is_strict=True)
    columns = _of_both(first, options)
    people = {r: c for r, c in columns.items() if r in (HUMAN, "rater", *OF_LABELS)}
    judge = {r: c for r, c in columns.items() if r in ("task", *OF_VERDICTS)}

    def side(verdict: str | None) -> VerdictTable:
        opened = open_answers(
            table, JUDGE, replace(options, columns={**judge, OUTCOME: verdict}, raters=())
        )
        opened.is_numbered = "trace_id" not in opened.by_role
        return verdict_table(opened)

    column = columns[VERDICT]
    every = side(column)
    judged = every.of_judge(judge_id, names_it=True)
    if judge_id is None and column != VERDICT and not any(row.judge for row in judged.rows):
        judged = replace(judged, judge=column)
    earlier: VerdictTable | None = None
    if against is not None and Path(against).is_file():
        earlier = verdict_table(open_answers(Path(against), JUDGE))
    elif against is not None and against in first.columns:
        earlier = replace(side(against), judge=against)
    elif against is not None and against != judged.judge:
        earlier = every.of_judge(against)
    del people[HUMAN]
    human = open_answers(
        table, PEOPLE, replace(options, columns={**people, OUTCOME: columns[HUMAN]})
    )
    human.is_numbered = "trace_id" not in human.by_role
    labels = label_table(human)
    if human.is_numbered:
        note = "No column names the trace: each row is one."
        labels = replace(labels, notes=(*labels.notes, note))
    return JudgedTables(labels=labels, verdicts=judged, against=earlier)


def _of_both(table: OpenTable, options: ReadingOptions) -> dict[str, str | None]:
    """Return the columns that the user named, with those of the labels and of the verdicts."""
    columns = {HUMAN if r == "label" else r: name for r, name in options.columns.items()}
    if options.raters and HUMAN in columns:
        raise InputError("--raters are columns of the labels, as --column human=; give one of them")
    if OUTCOME in columns:
        raise InputError(f"--column: name {HUMAN} and {VERDICT} instead of {OUTCOME}")
    if None in (columns.get(HUMAN, HUMAN), columns.get(VERDICT, VERDICT)):
        raise InputError(f"--column: {HUMAN} and {VERDICT} cannot be left out")
    roles = (*OF_LABELS, *OF_VERDICTS, HUMAN, VERDICT, *PEOPLE.also, *JUDGE.also)
    header = Header.of(table.columns, table.place, (HUMAN, VERDICT))
    columns_by_table(columns, (header, roles))
    used = {name for name in columns.values() if name is not None}
    sides = ((HUMAN, ALIASES[HUMAN]), (VERDICT, (VERDICT, *OF_JUDGES)))
    for role, names in sides:
        if role in columns or (role == HUMAN and options.raters):
            columns.setdefault(role, None)
            continue
        specific = tuple(n for n in ALIASES[HUMAN if role == VERDICT else VERDICT])
        column = answer_column(
            header, table.sample, role=role, names=names, taken={*used, *header.there(specific)}
        )
        if column is None:
            raise lacking(table.place, role, header.columns)
        columns[role] = column
        used.add(column)
    return columns
