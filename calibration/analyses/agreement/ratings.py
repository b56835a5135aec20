"""Agreement on a file of ratings from any source: CSV, JSONL or Parquet, long or wide."""

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from calibration.agreement.inference import ORDINAL
from calibration.agreement.ratings import MISSING, WEIGHTS, checked_weights, weight_matrix
from calibration.agreement.study import Options, Study, study
from calibration.errors import InputError
from calibration.tables import words
from calibration.tables.annotation_exports import Annotation, without_annotators
from calibration.tables.columns import ALIASES, normalised
from calibration.tables.layout import (
    FEW_ROWS,
    MOST_LABELS,
    ROLES,
    RatingLayout,
    check_labels,
    latest_of,
    may_be_label,
    moments_of,
    rating_layout,
)
from calibration.tables.reading import LeftOutCounter, Reading, ReadingOptions
from calibration.tables.rows import OpenTable, Row, Source, open_table, raters_among
from calibration.tables.vocabulary import check_classes, in_order
from calibration.taxonomy import Taxonomy, default_taxonomy
from calibration.text import names_there

MOST_RATERS = 200  # 19,900 pairs
BY_VALUE = ("krippendorff_interval", "krippendorff_ratio")
NAMES = (*WEIGHTS, "krippendorff_nominal", ORDINAL, *BY_VALUE)


@dataclass(frozen=True, slots=True, kw_only=True)
class Ratings:
    """Ratings of a file: `codes` has one row per item and one column per rater, -1 for none.

    `columns` holds the value of each requested further column on every item. `reading` is what was
    read of the file.
    """

    items: tuple[str, ...]
    raters: tuple[str, ...]
    classes: tuple[str, ...]
    codes: NDArray[np.int64]
    columns: dict[str, tuple[str, ...]]
    reading: Reading


@dataclass(frozen=True, slots=True, kw_only=True)
class RatingsAgreement:
    """Agreement of the raters of a file; questions of the tree where its classes are ours."""

    ratings: Ratings
    weights: str
    cluster: str | None
    study: Study

    @property
    def reading(self) -> Reading:
        """What was read of the file."""
        return self.ratings.reading


def read_ratings(
    source: Source,
    options: ReadingOptions | None = None,
    *,
    classes: Sequence[str] | None = None,
    item_columns: Sequence[str] = (),
    taxonomy: Taxonomy | None = None,
) -> Ratings:
    """Read ratings from a file or a frame.

    A row is a rating (item, rater, label), or an item with a column for each rater; `options` name
    columns, words, rows and raters where the table does not say them. Missing labels are missing
    ratings. Of two ratings of one person on one item the later one counts. `classes` are all
    possible classes in order and exact spelling; by default those of `taxonomy` (the package's if
    None) where all labels are names or titles of it, else those that occur, numbers by value.
    `item_columns` describe the item, such as its cluster or week; they are no raters.

    InputError if the file cannot be read, it is not clear which columns hold ratings, a person gave
    an item two ratings and no time says which is later, a label is no class, or a column of items
    is missing, empty or differs within an item.
    """
    options = options or ReadingOptions()
    table = open_table(source, options)
    rows = list(table.rows)
    if not rows:
        chosen = " that --where chooses" if options.where else ""
        raise InputError(f"{table.place}: holds no ratings{chosen}")
    for name in item_columns:
        if name not in table.columns:
            raise InputError(f"{table.place}: has no column {name!r:.80}")
    classes = None if classes is None else [words.clean(name) for name in classes]
    layout = _layout(table, rows, options, item_columns, is_certain=classes is not None)
    cells = _RatingCells.of(table, rows, layout)
    labels = _labels(table.place, cells, layout, options, classes, taxonomy or default_taxonomy())
    kept = _settled(table.place, cells, layout, labels, options)
    found = _coded(table.place, kept, labels, classes, taxonomy or default_taxonomy())
    _check_shared(table.place, found.codes)
    if classes is None and not options.raters:
        _check_words_in_common(table.place, found)
    values = {name: _of_items(table.place, kept, name) for name in item_columns}
    reading = _reading(table, layout, labels, kept, item_columns)
    return replace(found, columns=values, reading=reading)


# --- which columns hold what ---------------------------------------------------------------------


def _layout(
    table: OpenTable,
    rows: Sequence[tuple[int, Row]],
    options: ReadingOptions,
    item_columns: Sequence[str],
    *,
    is_certain: bool,
) -> RatingLayout:
    annotations = [row for _, row in rows if isinstance(row, Annotation)]
    if annotations:
        if options.raters:
            raise InputError(
                f"{table.place}: --raters are columns of a table; an export of "
                f"{annotations[0].tool} has a row for each annotation"
            )
        return _annotation_layout(table, annotations, options, item_columns)
    tool = without_annotators(table.columns, rows[0][1])
    if tool is not None and not {"rater", *options.columns} - {"rater"} and not options.raters:
        raise InputError(
            f"{table.place}: an export of {tool} that does not say who gave which label: agreement "
            "needs two raters or more; export the labels with their annotators, or write rows of "
            "item, rater, label"
        )
    return rating_layout(
        table.columns,
        table.sample,
        place=table.place,
        chosen=options.columns,
        raters=raters_among(
            options.raters,
            [name for name in table.columns if name != options.columns.get("item")],
            table.place,
        ),
        apart=(*item_columns, *(name for name, _ in options.where)),
        is_certain=is_certain,
    )


def _annotation_layout(
    table: OpenTable,
    annotations: Sequence[Annotation],
    options: ReadingOptions,
    item_columns: Sequence[str],
) -> RatingLayout:
    """Return the layout of an export of an annotation tool: a row an annotation."""
    place, tool = table.place, annotations[0].tool
    for role, name in options.columns.items():
        if role not in ROLES:
            raise InputError(f"--column: no name {role!r:.80} is read; {names_there(role, ROLES)}")
        if name is not None and name not in table.columns:
            raise InputError(
                f"{place}: column {name!r:.80} (for {role}) is not there; "
                f"{names_there(name, table.columns)}"
            )
    questions = list(dict.fromkeys(name for row in annotations for name in row.questions))
    label = options.columns.get("label")
    if label is None and not questions and any(row.has_regions for row in annotations):
        raise InputError(
            f"{place}: an export of {tool} with boxes or other marks on parts of an item: "
            "agreement is that of one label for each item, such as a choice"
        )
    if label is None:
        likely = [name for name in questions if may_be_label(table.sample, name)] or questions
        if not likely:
            raise InputError(
                f"{place}: no annotation of {tool} holds a choice or a number: "
                "--column label=NAME names the question"
            )
        if len(likely) > 1:
            raise InputError(
                f"{place}: {' and '.join(likely[:8])} are questions of one export; agreement is "
                f"that of one: --column label={likely[0]}"
            )
        label = likely[0]
    several = [row for row in annotations if label in row.several]
    if several:
        raise InputError(
            f"{place}: {label} holds several answers of one person, as "
            f"{str(several[0].get(label))!r:.60}: agreement is that of one label for each item"
        )
    item = options.columns.get("item")
    names = {normalised(name): name for name in table.columns}
    for alias in ("id", *ALIASES["item"]) if item is None else ():
        if alias in names and all(words.cell(row.get(names[alias])) for row in annotations):
            item = names[alias]
            break
    used = {item, "reviewer", "exposed", "updated_at", label, *item_columns}
    return RatingLayout(
        layout="annotations",
        item=() if item is None else (item,),
        rater=options.columns.get("rater") or "reviewer",
        label=label,
        times=(options.columns.get("updated_at") or "updated_at",),
        not_read=tuple(name for name in table.columns if name not in used),
    )


# --- ratings as they stand in the file -----------------------------------------------------------


@dataclass(frozen=True, slots=True)
class _Cell:
    """A rating as it stands in the file; `row` is the number of its row."""

    row: int
    line: int
    item: tuple[str, ...]
    rater: str
    word: str


@dataclass(frozen=True, slots=True, kw_only=True)
class _RatingCells:
    """Ratings of a file, its rows, and the rows that are left out."""

    cells: list[_Cell]
    rows: Sequence[tuple[int, Row]]
    left_out: LeftOutCounter
    notes: tuple[str, ...] = ()

    @classmethod
    def of(
        cls, table: OpenTable, rows: Sequence[tuple[int, Row]], layout: RatingLayout
    ) -> "_RatingCells":
        found = cls(cells=[], rows=rows, left_out=table.left_out)
        found.cells.extend(
            _wide_cells(found, layout) if layout.layout == "wide" else _long_cells(found, layout)
        )
        return found


def _item_of(row: Row, number: int, layout: RatingLayout) -> tuple[str, ...]:
    if not layout.item:
        return (str(row.record if isinstance(row, Annotation) else number + 1),)
    return tuple(words.cell(row.get(name)) for name in layout.item)


def _long_cells(found: _RatingCells, layout: RatingLayout) -> Iterator[_Cell]:
    people = _people(found.rows, layout)
    is_export = layout.layout == "annotations"
    for k, (line, row) in enumerate(found.rows):
        if is_export and not isinstance(row, Annotation):
            continue
        item = _item_of(row, k, layout)
        rater = words.cell(row.get(layout.rater))
        if any(map(words.is_missing, item)):
            found.left_out.add("missing_item", line, rater or None)
        elif words.is_missing(rater):
            found.left_out.add("missing_rater", line, " / ".join(item))
        else:
            name = people.get((rater, row.person), rater) if isinstance(row, Annotation) else rater
            yield _Cell(k, line, item, name, words.cell(row.get(layout.label)))


def _people(rows: Sequence[tuple[int, Row]], layout: RatingLayout) -> dict[tuple[str, str], str]:
    """Return the name of each person of an export, with a number where two have one name."""
    persons = dict.fromkeys(
        (words.cell(row.get(layout.rater)), row.person)
        for _, row in rows
        if isinstance(row, Annotation) and row.person
    )
    counted = Counter(name for name, _ in persons)
    return {(name, key): f"{name} ({key})" if counted[name] > 1 else name for name, key in persons}


def _wide_cells(found: _RatingCells, layout: RatingLayout) -> Iterator[_Cell]:
    for k, (line, row) in enumerate(found.rows):
        item = _item_of(row, k, layout)
        given = [words.cell(row.get(rater)) for rater in layout.raters]
        if any(map(words.is_missing, item)):
            if not all(map(words.is_missing, given)):
                found.left_out.add("missing_item", line)
            continue
        for rater, word in zip(layout.raters, given, strict=True):
            yield _Cell(k, line, item, words.clean(rater), word)


# --- what the labels mean, and which of them count -----------------------------------------------


def _labels(
    place: str,
    cells: _RatingCells,
    layout: RatingLayout,
    options: ReadingOptions,
    classes: Sequence[str] | None,
    taxonomy: Taxonomy,
) -> words.LabelWords:
    counts = Counter(cell.word for cell in cells.cells)
    if classes is None:
        check_labels(counts, place, layout.label or layout.raters[0])
    ours = {
        words.fold(name): one.name for one in taxonomy.classes for name in (one.title, one.name)
    }
    labels = words.read_labels(
        counts, place=place, classes=classes, mapped=options.mapped, ours=ours
    )
    if classes is None:
        found = set(labels.classes)
        is_named = bool(options.raters) or bool(options.columns.get("label"))
        check_classes(place, found, "name all classes with --classes")
        if len(found) > MOST_LABELS and not is_named:
            raise InputError(
                f"{place}: {len(found):,} different labels, as {min(found)!r:.60}: "
                f"{layout.label or layout.raters[0]} may hold something else; --column label=NAME "
                "or --raters A,B if these are the labels"
            )
        return labels
    for cell in cells.cells:
        label = labels.label[cell.word]
        if label and label not in classes:
            raise InputError(
                f"{place}, line {cell.line}: {label!r:.80} is not one of the classes "
                f"{', '.join(classes):.200}"
            )
    return labels


@dataclass(frozen=True, slots=True, kw_only=True)
class _SettledRatings:
    """The one cell that counts of each item and rater, all items and raters in order of the file.

    `replaced` : ratings that a later one replaced. `dropped` : rows of which nothing counts, with
    the reason.
    """

    cells: list[_Cell]
    items: dict[tuple[str, ...], int]
    raters: dict[str, int]
    rows: Sequence[tuple[int, Row]]
    item_rows: dict[tuple[str, ...], list[int]] = field(default_factory=dict)
    left_out: LeftOutCounter
    replaced: int
    dropped: dict[int, str]


def _settled(
    place: str,
    cells: _RatingCells,
    layout: RatingLayout,
    labels: words.LabelWords,
    options: ReadingOptions,
) -> _SettledRatings:
    """Return the rating of each person on each item that counts.

    Raises InputError if a person gave two and no time says which is later.
    """
    groups: dict[tuple[tuple[str, ...], str], list[_Cell]] = {}
    items: dict[tuple[str, ...], int] = {}
    raters: dict[str, int] = {}
    item_rows: dict[tuple[str, ...], list[int]] = {}
    for cell in cells.cells:
        items.setdefault(cell.item, len(items))
        raters.setdefault(cell.rater, len(raters))
        groups.setdefault((cell.item, cell.rater), []).append(cell)
        of_item = item_rows.setdefault(cell.item, [])
        if not of_item or of_item[-1] != cell.row:
            of_item.append(cell.row)
    moments: list[list[datetime | None]] | None = None
    kept, replaced = [], 0
    dropped: dict[int, str] = {}
    for group in groups.values():
        given = [cell for cell in group if labels.label[cell.word]]
        if len({labels.label[cell.word] for cell in given}) < 2 and (
            len(given) == len(group) or not given or len(group) == 1
        ):
            kept.append(group[0])
            for cell in group[1:]:
                dropped.setdefault(cell.row, "identical_duplicate")
            continue
        if moments is None:
            moments = [
                moments_of([words.cell(row.get(name)) for _, row in cells.rows], options.dates)
                for name in layout.times
            ]
        latest = latest_of([cell.row for cell in group], moments)
        if latest is not None:
            kept.append(next(cell for cell in group if cell.row == latest))
            replaced += sum(cell.row != latest for cell in given)
            dropped |= {cell.row: "superseded" for cell in group if cell.row != latest}
        elif len({labels.label[cell.word] for cell in given}) == 1:
            kept.append(given[0])
            for cell in group:
                dropped.setdefault(cell.row, "identical_duplicate")
        else:
            raise InputError(_two_ratings(place, given, len(moments)))
    for row in {cell.row for cell in kept} & dropped.keys():
        del dropped[row]
    return _SettledRatings(
        cells=kept,
        items=items,
        raters=raters,
        rows=cells.rows,
        item_rows=item_rows,
        left_out=cells.left_out,
        replaced=replaced,
        dropped=dropped,
    )


def _two_ratings(place: str, given: Sequence[_Cell], n_times: int) -> str:
    """Say that a person gave an item ratings that differ."""
    first = given[0]
    number = {2: "two", 3: "three"}.get(len(given), str(len(given)))
    lines = ", ".join(f"{cell.line:,}" for cell in given[:8])
    return (
        f"{place}: item {' / '.join(first.item):.80} has {number} different ratings of "
        f"{first.rater:.80} (lines {lines}), and no time says which is later"
        + ("" if n_times else ": --column updated_at=NAME names a column of times")
    )


def _check_shared(place: str, codes: NDArray[np.int64]) -> None:
    """Refuse ratings in which no item has two."""
    if codes.size and ((codes != MISSING).sum(axis=1) < 2).all():
        raise InputError(
            f"{place}: every item has one rating or none; agreement needs two raters of one item: "
            "--column item=NAME, or --raters A,B for a column a rater"
        )


def _check_words_in_common(place: str, found: Ratings) -> None:
    """Refuse a rater who never says what any other says: it may be the same in other words."""
    used = [set(column[column != MISSING].tolist()) for column in found.codes.T]
    enough = ((found.codes != MISSING).sum(axis=0) >= FEW_ROWS).tolist()
    for number, name in enumerate(found.raters):
        others = set().union(*(words_used for k, words_used in enumerate(used) if k != number))
        if enough[number] and others and not used[number] & others:
            ours, theirs = (
                ", ".join(found.classes[k] for k in sorted(codes)[:5])
                for codes in (used[number], others)
            )
            raise InputError(
                f"{place}: {name:.80} says {ours:.200} and the others {theirs:.200}, and no word "
                "is of both: --map WORD=CLASS,... where they mean the same, --classes where not"
            )


def _of_items(place: str, kept: _SettledRatings, name: str) -> tuple[str, ...]:
    """Return a column's value on every item; it must be the same in all rows of an item."""
    values = []
    for item, numbers in kept.item_rows.items():
        shown = " / ".join(item)
        value = ""
        for number in numbers:
            line, row = kept.rows[number]
            here = words.cell(row.get(name))
            if not here:
                raise InputError(f"{place}, line {line}: field {name!r:.80} is missing")
            if value and here != value:
                raise InputError(
                    f"{place}, line {line}: {name!r:.80} of item {shown!r:.80} is "
                    f"{here!r:.80} here and another before"
                )
            value = here
        values.append(value)
    return tuple(values)


def _coded(
    place: str,
    kept: _SettledRatings,
    labels: words.LabelWords,
    classes: Sequence[str] | None,
    taxonomy: Taxonomy,
) -> Ratings:
    if len(kept.raters) > MOST_RATERS:
        raise InputError(
            f"{place}: {len(kept.raters):,} raters; at most {MOST_RATERS} are compared with each "
            "other. For the agreement of a crowd, write rows of item, rater, label, and number the "
            "ratings of an item 1, 2, 3 as its raters"
        )
    if classes is None:
        is_ours = 0 < len(labels.classes) and set(labels.classes) <= set(taxonomy.names)
        classes = taxonomy.names if is_ours else in_order(set(labels.classes))
    if len(set(classes)) != len(classes) or "" in classes:
        raise InputError(f"classes must be named, each once, got {', '.join(classes)!r:.200}")
    place_of_class = {name: k for k, name in enumerate(classes)}
    codes = np.full((len(kept.items), len(kept.raters)), MISSING, dtype=np.int64)
    for cell in kept.cells:
        label = labels.label[cell.word]
        if label:
            codes[kept.items[cell.item], kept.raters[cell.rater]] = place_of_class[label]
    return Ratings(
        items=tuple(" / ".join(item) for item in kept.items),
        raters=tuple(kept.raters),
        classes=tuple(classes),
        codes=codes,
        columns={},
        reading=Reading(place=place, rows=0, used=0),
    )


# --- what was read -------------------------------------------------------------------------------


def _reading(
    table: OpenTable,
    layout: RatingLayout,
    labels: words.LabelWords,
    kept: _SettledRatings,
    item_columns: Sequence[str],
) -> Reading:
    for row, code in sorted(kept.dropped.items()):
        kept.left_out.add(code, kept.rows[row][0])
    left_out = kept.left_out.listed()
    apart = {*item_columns}
    return Reading(
        place=table.place,
        rows=table.n_rows,
        used=table.n_rows - sum(rows.rows for rows in left_out),
        layout=layout.layout,
        columns=layout.columns,
        item=layout.item,
        raters=layout.raters,
        not_read=tuple(name for name in layout.not_read if name not in apart),
        words={
            "label": {
                word: label for word, label in labels.label.items() if label and word != label
            }
        },
        missing_words=labels.missing,
        left_out=left_out,
        max_left_out=None,
        notes=_notes(layout, labels, kept),
    )


def _notes(
    layout: RatingLayout, labels: words.LabelWords, kept: _SettledRatings
) -> tuple[str, ...]:
    """Return what a reader must know of how the ratings were read, in sentences."""
    notes = []
    if layout.layout == "wide" and not layout.item:
        notes.append("No column names the item: each row is one.")
    if len(layout.item) > 1:
        notes.append(f"Items are named by {' and '.join(layout.item)} together.")
    if layout.layout == "wide" and layout.not_read:
        notes.append(f"Raters: {_some(layout.raters)}; not read: {_some(layout.not_read)}.")
    if kept.replaced:
        one = kept.replaced == 1
        notes.append(
            f"{kept.replaced:,} earlier rating{'' if one else 's'} replaced by a later one."
        )
    return (*notes, *labels.notes)


def _some(names: Sequence[str], most: int = 8) -> str:
    listed = ", ".join(name or "a column without a name" for name in names[:most])
    return listed + (f" and {len(names) - most} more" if len(names) > most else "")


def weights_of(name: str, classes: Sequence[str]) -> NDArray[np.float64] | None:
    """Return the weights by name or from a file; None for Krippendorff's ordinal.

    InputError if it is neither a name nor a file with a matrix, or if classes are not numbers where
    their value counts.
    """
    q = max(2, len(classes))
    if name in WEIGHTS:
        return weight_matrix(name, q)
    if name == "krippendorff_nominal":
        return np.eye(q)
    if name == ORDINAL:
        return None
    if name in BY_VALUE:
        return _by_value(name, classes)
    path = Path(name)
    if not path.is_file():
        raise InputError(f"--weights must be a CSV file or one of {', '.join(NAMES)}, got {name!r}")
    try:
        return checked_weights(np.loadtxt(path, delimiter=",", ndmin=2), n_classes=q)
    except (OSError, ValueError) as error:
        raise InputError(f"{path}: is not a matrix of weights ({error})") from error


def _by_value(name: str, classes: Sequence[str]) -> NDArray[np.float64]:
    try:
        value = np.array([float(c) for c in classes])
    except ValueError as error:
        raise InputError(f"--weights {name} needs classes that are numbers ({error})") from error
    if len(value) < 2:
        return np.eye(2)
    apart, together = value[:, None] - value, value[:, None] + value
    if name == "krippendorff_ratio":
        if (value < 0).any():
            raise InputError(f"--weights {name} needs classes from 0 up")
        apart = apart / np.where(together == 0, 1, together)
    distance = apart**2
    try:
        return checked_weights(1 - distance / distance.max(), n_classes=len(value))
    except ValueError as error:
        raise InputError(
            f"--weights {name}: the classes {', '.join(classes):.200} are not all told apart "
            f"by their numbers ({error})"
        ) from error


def agreement_on(
    ratings: Ratings,
    *,
    weights: str = "identity",
    options: Options | None = None,
    cluster: str | None = None,
    group: str | None = None,
    taxonomy: Taxonomy | None = None,
) -> RatingsAgreement:
    """Measure agreement on ratings from a file; `weights` as in `weights_of`, not from `options`.

    `cluster` and `group` are columns of `ratings`. The questions are those of `taxonomy`, or of the
    package, where the classes are its own.
    """
    matrix = weights_of(weights, ratings.classes)
    taxonomy = taxonomy or default_taxonomy()
    of_tree = set(ratings.classes) == set(taxonomy.names)
    return RatingsAgreement(
        ratings=ratings,
        weights=weights,
        cluster=cluster,
        study=study(
            ratings.codes,
            n_classes=max(2, len(ratings.classes)),
            options=replace(options or Options(), weights=matrix, ordinal=matrix is None),
            paths=taxonomy.paths(ratings.classes) if of_tree else None,
            cluster=None if cluster is None else ratings.columns[cluster],
            group=None if group is None else ratings.columns[group],
        ),
    )
