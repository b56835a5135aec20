"""What the outcomes of labels and verdicts mean: verdicts mapped to classes, and classes merged."""

from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Literal

from calibration.errors import InputError
from calibration.records import NO_VERDICT
from calibration.tables.labels import LabelFile, LabelRow, VerdictFile, VerdictRow
from calibration.tables.rows import located, none_of
from calibration.taxonomy import Taxonomy
from calibration.text import names_there
from calibration.trace_formats.fields import FieldError

SPLIT = "split"
NO_CLASS = (NO_VERDICT, SPLIT)
MAX_CLASSES, MAX_NUMBERS = 50, 200
Rest = Literal["no_verdict"]
REMEDY = "; --map takes it as one of them, --rest no_verdict as no verdict"


@dataclass(frozen=True, slots=True, kw_only=True)
class Vocabulary:
    """How outcomes are read.

    `mapped` : class, or verdict without a class, by verdict that is no class
    `rest` : what every other verdict that is no class is taken as; None refuses it
    `merged` : classes by the name of the class that they become
    `classes` : the classes in order, before they are merged; empty before `read`
    """

    mapped: Mapping[str, str] = field(default_factory=dict)
    rest: Rest | None = None
    merged: Mapping[str, Sequence[str]] = field(default_factory=dict)
    classes: tuple[str, ...] = ()

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
        found = self.mapped.get(outcome, outcome)
        if self.rest is not None and found not in (*self.classes, *NO_CLASS, ""):
            return self.rest
        return found

    def verdict(self, outcome: str) -> str:
        """Return what a verdict is taken as."""
        found = self.taken(outcome)
        return self.into.get(found, found)


@dataclass(frozen=True, slots=True, kw_only=True)
class Recoded:
    """One outcome of the tables that was taken as another, with its rows of either table."""

    option: Literal["map", "rest", "merge"]
    outcome: str
    into: str
    verdicts: int
    labels: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcomes:
    """Labels and verdicts whose outcomes are classes, with what was done to them."""

    labels: LabelFile
    verdicts: VerdictFile
    vocabulary: Vocabulary
    recoded: tuple[Recoded, ...]


def read_outcomes(
    labels: LabelFile,
    verdicts: VerdictFile,
    given: Sequence[str] | None,
    taxonomy: Taxonomy,
    vocabulary: Vocabulary,
) -> Outcomes:
    """Map verdicts to classes, then merge classes of labels and verdicts.

    Without `given`, the classes are those of the taxonomy if no others occur, else those that
    occur; with `rest`, those that occur among the labels.

    Raises
    ------
    InputError
        If an outcome is no class, a name of the vocabulary is not known, or there are fewer than
        two classes.

    Examples
    --------
    >>> import pandas as pd
    >>> from calibration.tables.labels import read_human_labels, read_verdicts
    >>> from calibration.taxonomy import default_taxonomy
    >>> human = pd.DataFrame({"trace_id": ["a", "b"], "outcome": ["complete", "abandoned"]})
    >>> found = read_outcomes(
    ...     read_human_labels(human),
    ...     read_verdicts(human.assign(outcome=["pass", "error"])),
    ...     ["complete", "hallucinated", "abandoned"],
    ...     default_taxonomy(),
    ...     Vocabulary(
    ...         mapped={"pass": "complete"},
    ...         rest="no_verdict",
    ...         merged={"failed": ["hallucinated", "abandoned"]},
    ...     ),
    ... )
    >>> found.vocabulary.final, [row.outcome for row in found.verdicts.rows.values()]
    (('complete', 'failed'), ['complete', 'no_verdict'])
    """
    known = replace(vocabulary, classes=_classes(labels, verdicts, given, taxonomy, vocabulary))
    said = Counter(row.outcome for row in verdicts.rows.values())
    said.update(outcome for more in verdicts.again.values() for outcome in more)
    check_map(known, verdicts.path, said.keys())
    _check_merge(known)
    _check_outcomes(known, labels, verdicts)
    heard = Counter(row.outcome for rows in labels.rows.values() for row in rows)
    into = known.into
    return Outcomes(
        labels=replace(
            labels,
            rows={
                trace_id: tuple(replace(r, outcome=into.get(r.outcome, r.outcome)) for r in rows)
                for trace_id, rows in labels.rows.items()
            },
        )
        if into
        else labels,
        verdicts=replace(
            verdicts,
            rows={
                t: replace(r, outcome=known.verdict(r.outcome)) for t, r in verdicts.rows.items()
            },
            again={t: tuple(map(known.verdict, more)) for t, more in verdicts.again.items()},
        )
        if known.mapped or known.rest or into
        else verdicts,
        vocabulary=known,
        recoded=tuple(_recoded(known, said, heard)),
    )


def _classes(
    labels: LabelFile, verdicts: VerdictFile, given: Sequence[str] | None, taxonomy: Taxonomy,
    vocabulary: Vocabulary,
) -> tuple[str, ...]:  # fmt: skip
    if given is None:
        occurring = {row.outcome for rows in labels.rows.values() for row in rows} - {""}
        if vocabulary.rest is None:
            occurring |= {row.outcome for row in verdicts.rows.values()} - {"", *NO_CLASS}
            occurring -= set(vocabulary.mapped)
        check_classes(
            f"{labels.path}, {verdicts.path}", occurring, "name the classes with --classes"
        )
        ours = occurring <= set(taxonomy.names)
        classes = taxonomy.names if ours else tuple(in_order(occurring))
    else:
        classes = tuple(name.strip() for name in given)
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


def check_map(known: Vocabulary, path: str, said: Collection[str]) -> None:
    """Raise InputError if what is mapped is a class or does not occur, or becomes no class."""
    for name, into in known.mapped.items():
        if name in known.classes:
            raise InputError(f"--map: {name!r:.80} is a class; classes are joined by --merge")
        if name not in said:
            there = names_there(name, sorted(set(said) - {""}))
            raise InputError(f"--map: no {name!r:.80} in {path}; {there}")
        if into not in (*known.classes, *NO_CLASS):
            raise InputError(
                f"--map: {into!r:.80} is not one of {', '.join((*known.classes, *NO_CLASS)):.200}"
            )


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


def _check_outcomes(known: Vocabulary, labels: LabelFile, verdicts: VerdictFile) -> None:
    """Raise if an outcome is no class."""
    allowed = {"", *known.classes}
    heard = (row for rows in labels.rows.values() for row in rows)
    strange: list[tuple[str, LabelRow | VerdictRow]] = [
        *((labels.path, row) for row in heard if row.outcome not in allowed),
        *(
            (verdicts.path, row)
            for row in verdicts.rows.values()
            if known.taken(row.outcome) not in allowed.union(NO_CLASS)
        ),
    ]
    for path, row in strange:
        with located(path, row.line):
            error = none_of("outcome", row.outcome, known.classes)
            raise FieldError(f"{error}{REMEDY}") if isinstance(row, VerdictRow) else error


def _recoded(
    known: Vocabulary, said: Mapping[str, int], heard: Mapping[str, int]
) -> Iterator[Recoded]:
    for name, into in known.mapped.items():
        yield Recoded(option="map", outcome=name, into=into, verdicts=said[name], labels=0)
    if known.rest is not None:
        for name in sorted(said.keys() - {"", *NO_CLASS, *known.classes, *known.mapped}):
            yield Recoded(
                option="rest", outcome=name, into=known.rest, verdicts=said[name], labels=0
            )
    mapped = Counter(said)
    for name, into in known.mapped.items():
        mapped[into] += said[name]
    for name, into in known.into.items():
        yield Recoded(
            option="merge", outcome=name, into=into, verdicts=mapped[name],
            labels=heard.get(name, 0),
        )  # fmt: skip
