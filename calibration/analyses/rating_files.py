"""Agreement on a file of ratings made anywhere: CSV, JSONL or Parquet, long or wide."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from numpy.typing import NDArray

from calibration.agreement.coefficients import Agreement, agreement
from calibration.agreement.counts import MISSING
from calibration.agreement.pairs import PairAgreement, pairwise_agreement
from calibration.agreement.panel import ORDINAL, agreement_panel
from calibration.agreement.weights import WEIGHTS, checked_weights, weight_matrix
from calibration.analyses.rows import Row, read_rows
from calibration.errors import InputError
from calibration.estimates import Estimate

LONG = ("item", "rater", "label")
BY_VALUE = ("krippendorff_interval", "krippendorff_ratio")
NAMES = (*WEIGHTS, "krippendorff_nominal", ORDINAL, *BY_VALUE)


@dataclass(frozen=True, slots=True, kw_only=True)
class Ratings:
    """Ratings of a file: `codes` has an item a row and a rater a column, -1 for none."""

    items: tuple[str, ...]
    raters: tuple[str, ...]
    classes: tuple[str, ...]
    codes: NDArray[np.int64]


@dataclass(frozen=True, slots=True, kw_only=True)
class RatingsAgreement:
    """Agreement of the raters of a file."""

    ratings: Ratings
    weights: str
    coefficients: dict[str, Estimate]
    overall: Agreement
    pairs: tuple[PairAgreement, ...]


def read_ratings(
    path: Path, *, layout: str | None = None, classes: Sequence[str] | None = None
) -> Ratings:
    """Read ratings.

    Parameters
    ----------
    path : Path
        CSV, JSONL or Parquet.
    layout : str, optional
        ``long`` (columns item, rater, label) or ``wide`` (first column the item, then one a
        rater); an empty label is a missing rating in both. Default: long when it has those columns.
    classes : sequence of str, optional
        Every class that could have been given, in order. Default: those that occur, numbers in
        order of value; coefficients that count the classes then depend on what occurs.

    Raises
    ------
    InputError
        If the file cannot be read, names an item or rating twice, or holds a label that is no
        declared class.
    """
    rows = list(_parquet_rows(path) if path.suffix == ".parquet" else read_rows(path, required=()))
    if not rows:
        raise InputError(f"{path}: holds no ratings")
    columns = list(dict.fromkeys(name for _, row in rows for name in row))
    if layout is None:
        layout = "long" if set(LONG) <= set(columns) else "wide"
    read = _long_cells if layout == "long" else _wide_cells
    cells = list(read(path, rows, columns))
    return _coded(path, cells, None if classes is None else [c.strip() for c in classes])


@dataclass(frozen=True, slots=True)
class _Cell:
    line: int
    item: str
    rater: str
    label: str


def _parquet_rows(path: Path) -> Iterator[tuple[int, Row]]:
    try:
        table = pq.read_table(path)
    except (OSError, pa.ArrowException) as error:
        raise InputError(f"{path}: cannot be read as Parquet ({error!s:.200})") from error
    yield from enumerate(table.to_pylist(), 1)


def _said(value: Any) -> str:
    """Return a cell as text; a whole number is written as one however it was stored."""
    if value is None or value != value:
        return ""
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    return str(value).strip()


def _long_cells(path: Path, rows: Iterable[tuple[int, Row]], columns: list[str]) -> Iterator[_Cell]:
    for name in LONG:
        if name not in columns:
            raise InputError(f"{path}: a long file needs the columns {', '.join(LONG)}")
    for line, row in rows:
        item, rater, label = (_said(row.get(name)) for name in LONG)
        for name, value in (("item", item), ("rater", rater)):
            if not value:
                raise InputError(f"{path}, line {line}: field {name!r} is missing")
        yield _Cell(line, item, rater, label)


def _wide_cells(path: Path, rows: Iterable[tuple[int, Row]], columns: list[str]) -> Iterator[_Cell]:
    first, *raters = columns
    if not raters:
        raise InputError(f"{path}: a wide file needs a column a rater after the item")
    for line, row in rows:
        item = _said(row.get(first))
        if not item:
            raise InputError(f"{path}, line {line}: field {first!r} is missing; it names the item")
        for rater in raters:
            yield _Cell(line, item, rater, _said(row.get(rater)))


def _coded(path: Path, cells: list[_Cell], classes: list[str] | None) -> Ratings:
    items = {name: k for k, name in enumerate(dict.fromkeys(cell.item for cell in cells))}
    raters = {name: k for k, name in enumerate(dict.fromkeys(cell.rater for cell in cells))}
    if classes is None:
        classes = _in_order({cell.label for cell in cells if cell.label})
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
                f"{path}, line {cell.line}: {cell.label!r:.80} is none of the classes "
                f"{', '.join(classes):.200}"
            )
        codes[at] = place[cell.label] if cell.label else MISSING
    return Ratings(items=tuple(items), raters=tuple(raters), classes=tuple(classes), codes=codes)


def _in_order(names: set[str]) -> list[str]:
    try:
        return sorted(names, key=float)
    except ValueError:
        return sorted(names)


def weights_of(name: str, classes: Sequence[str]) -> NDArray[np.float64] | None:
    """Return the weights that a name or a file stands for; None for Krippendorff's ordinal.

    Raises
    ------
    InputError
        If it is neither a name nor a file with a matrix, or classes are no numbers where their
        value counts.
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
        raise InputError(f"{path}: is no matrix of weights ({error})") from error


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
    return np.asarray(1 - distance / distance.max())


def agreement_on(
    ratings: Ratings, *, weights: str = "identity", confidence_level: float = 0.95
) -> RatingsAgreement:
    """Measure agreement on ratings from a file."""
    q = max(2, len(ratings.classes))
    matrix = weights_of(weights, ratings.classes)
    return RatingsAgreement(
        ratings=ratings,
        weights=weights,
        coefficients=agreement_panel(
            ratings.codes, n_classes=q, weights=matrix, ordinal=matrix is None,
            confidence_level=confidence_level,
        ),
        overall=agreement(ratings.codes, n_classes=q, confidence_level=confidence_level),
        pairs=pairwise_agreement(ratings.codes, n_classes=q, confidence_level=confidence_level),
    )  # fmt: skip
