"""Agreement on a file of ratings from any source: CSV, JSONL or Parquet, long or wide."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from calibration.agreement.inference import ORDINAL
from calibration.agreement.ratings import MISSING, WEIGHTS, checked_weights, weight_matrix
from calibration.agreement.study import Options, Study, study
from calibration.errors import InputError
from calibration.tables.rows import Row, Source, any_rows, cell_text, place_of, raters_among
from calibration.tables.vocabulary import check_classes, in_order
from calibration.taxonomy import Taxonomy, default_taxonomy
from calibration.text import names_there

MOST_RATERS = 200  # 19,900 pairs
LONG = ("item", "rater", "label")
BY_VALUE = ("krippendorff_interval", "krippendorff_ratio")
NAMES = (*WEIGHTS, "krippendorff_nominal", ORDINAL, *BY_VALUE)


@dataclass(frozen=True, slots=True, kw_only=True)
class Ratings:
    """Ratings of a file: `codes` has one row per item and one column per rater, -1 for none.

    `columns` holds the value of each requested further column on every item.
    """

    items: tuple[str, ...]
    raters: tuple[str, ...]
    classes: tuple[str, ...]
    codes: NDArray[np.int64]
    columns: dict[str, tuple[str, ...]]


@dataclass(frozen=True, slots=True, kw_only=True)
class RatingsAgreement:
    """Agreement of the raters of a file; questions of the tree where its classes are ours."""

    ratings: Ratings
    weights: str
    cluster: str | None
    study: Study


def read_ratings(
    source: Source,
    *,
    layout: str | None = None,
    classes: Sequence[str] | None = None,
    item_columns: Sequence[str] = (),
    raters: Sequence[str] = (),
    mapped: Mapping[str, str] | None = None,
) -> Ratings:
    """Read ratings from a file or a frame.

    `layout` is ``long`` (columns item, rater, label) or ``wide`` (a column item, or the first one,
    then one per rater), by default long when it has those columns; an empty label is missing.
    `classes` are all possible classes in order, by default those that occur, numbers by value;
    coefficients that count the classes then depend on those. `item_columns` describe the item,
    such as its cluster or week; they are no raters. `raters` are the columns of the raters of a
    wide table, or patterns of them, beside a column item; without it each row is an item, named by
    its number. `mapped` is the class of labels that are none.

    InputError if the file cannot be read, names an item or rating twice, holds an undeclared class,
    or a column of items is missing, empty or differs within an item.
    """
    rows, path = list(any_rows(source)), place_of(source)
    if not rows:
        raise InputError(f"{path}: holds no ratings")
    columns = list(dict.fromkeys(name for _, row in rows for name in row))
    if layout is None:
        layout = "long" if set(LONG) <= set(columns) else "wide"
    for name in item_columns:
        if name not in columns:
            raise InputError(f"{path}: has no column {name!r:.80}")
    columns = [name for name in columns if name not in item_columns]
    item = LONG[0]
    asked = raters_among(raters, [name for name in columns if name != item], path)
    if asked and item not in columns:
        rows = [(line, {**row, item: str(k)}) for k, (line, row) in enumerate(rows, 1)]
    elif layout == "wide" and item not in columns:
        item = columns[0]
    if layout == "long" and not asked:
        found = list(_long_cells(path, rows, columns))
    else:
        others = asked or [name for name in columns if name != item]
        found = list(_wide_cells(path, rows, [item, *others]))
    cells = _mapped(path, found, mapped or {})
    ratings = _coded(path, cells, None if classes is None else [c.strip() for c in classes])
    values = {name: _of_items(path, rows, item, name, ratings.items) for name in item_columns}
    return replace(ratings, columns=values)


def _of_items(
    path: str, rows: list[tuple[int, Row]], item: str, name: str, items: tuple[str, ...]
) -> tuple[str, ...]:
    """Return a column's value on every item; it must be the same in all rows of an item."""
    values: dict[str, str] = {}
    for line, row in rows:
        value = cell_text(row.get(name))
        if not value:
            raise InputError(f"{path}, line {line}: field {name!r:.80} is missing")
        if values.setdefault(cell_text(row.get(item)), value) != value:
            raise InputError(
                f"{path}, line {line}: {name!r:.80} of item {cell_text(row.get(item))!r:.80} is "
                f"{value!r:.80} here and another before"
            )
    return tuple(values[name] for name in items)


@dataclass(frozen=True, slots=True)
class _Cell:
    line: int
    item: str
    rater: str
    label: str


def _long_cells(path: str, rows: Iterable[tuple[int, Row]], columns: list[str]) -> Iterator[_Cell]:
    for name in LONG:
        if name not in columns:
            raise InputError(f"{path}: a long file needs the columns {', '.join(LONG)}")
    for line, row in rows:
        item, rater, label = (cell_text(row.get(name)) for name in LONG)
        for name, value in (("item", item), ("rater", rater)):
            if not value:
                raise InputError(f"{path}, line {line}: field {name!r} is missing")
        yield _Cell(line, item, rater, label)


def _wide_cells(path: str, rows: Iterable[tuple[int, Row]], columns: list[str]) -> Iterator[_Cell]:
    first, *raters = columns
    if not raters:
        raise InputError(f"{path}: a wide file needs a column a rater after the item")
    for line, row in rows:
        item = cell_text(row.get(first))
        if not item:
            raise InputError(f"{path}, line {line}: field {first!r} is missing; it names the item")
        for rater in raters:
            yield _Cell(line, item, rater, cell_text(row.get(rater)))


def _mapped(path: str, cells: list[_Cell], mapped: Mapping[str, str]) -> list[_Cell]:
    """Return the cells with labels taken as others; raise if one of them does not occur."""
    if not mapped:
        return cells
    said = {cell.label for cell in cells}
    for name in mapped:
        if name not in said:
            raise InputError(
                f"--map: no label {name!r:.80} in {path}; {names_there(name, sorted(said - {''}))}"
            )
    return [replace(cell, label=mapped.get(cell.label, cell.label)) for cell in cells]


def _coded(path: str, cells: list[_Cell], classes: list[str] | None) -> Ratings:
    items = {name: k for k, name in enumerate(dict.fromkeys(cell.item for cell in cells))}
    raters = {name: k for k, name in enumerate(dict.fromkeys(cell.rater for cell in cells))}
    if len(raters) > MOST_RATERS:
        raise InputError(
            f"{path}: {len(raters):,} raters; at most {MOST_RATERS} are compared with each other. "
            "For the agreement of a crowd, write rows of item, rater, label, and number the "
            "ratings of an item 1, 2, 3 as its raters"
        )
    if classes is None:
        found = {cell.label for cell in cells if cell.label}
        check_classes(path, found, "name all classes with --classes")
        classes = in_order(found)
    if len(set(classes)) != len(classes) or "" in classes:
        raise InputError(f"classes must be named, each once, got {', '.join(classes)!r:.200}")
    place = {name: k for k, name in enumerate(classes)}
    codes = np.full((len(items), len(raters)), MISSING, dtype=np.int64)
    seen: set[tuple[int, int]] = set()
    for cell in cells:
        at = items[cell.item], raters[cell.rater]
        if at in seen:
            raise InputError(
                f"{path}, line {cell.line}: item {cell.item!r:.80} has a second rating of "
                f"{cell.rater!r:.80}"
            )
        seen.add(at)
        if cell.label and cell.label not in place:
            raise InputError(
                f"{path}, line {cell.line}: {cell.label!r:.80} is not one of the classes "
                f"{', '.join(classes):.200}"
            )
        codes[at] = place[cell.label] if cell.label else MISSING
    return Ratings(
        items=tuple(items),
        raters=tuple(raters),
        classes=tuple(classes),
        codes=codes,
        columns={},
    )


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
