"""The outside values, and the ratings of an entry as the library takes them."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from calibration.agreement.ratings import WEIGHTS, weight_matrix
from tests.agreement.tables import Codes, codes_from

FILE = Path(__file__).parents[1] / "golden" / "agreement.json"
ENTRIES: list[dict[str, Any]] = json.loads(FILE.read_text(encoding="utf-8"))


def entries(*coefficients: str) -> list[Any]:
    """Return the entries of some coefficients as parameters of a test."""
    return [pytest.param(e, id=e["name"]) for e in ENTRIES if e["coefficient"] in coefficients]


def classes_of(entry: dict[str, Any]) -> list[Any]:
    """Return the declared classes, or those that occur."""
    if entry["categories"]:
        return list(entry["categories"])
    if entry["data_kind"] == "ratings_raters_x_items":
        return sorted({v for row in entry["data"] for v in row if v is not None})
    return list(range(len(entry["data"][0])))


def codes_of(entry: dict[str, Any]) -> tuple[Codes, int]:
    """Return codes, (n_items, n_raters); who rated what is made up for counts of classes."""
    names = classes_of(entry)
    data, kind = entry["data"], entry["data_kind"]
    if kind == "ratings_raters_x_items":
        place = {name: k for k, name in enumerate(names)}
        table = [[-1 if v is None else place[v] for v in row] for row in data]
        return np.array(table, dtype=np.int64).T, max(2, len(names))
    if kind == "table_rater1_x_rater2":
        return codes_from(data), len(names)
    most = max(map(sum, data))
    filled = [np.repeat(np.arange(len(names)), row).tolist() for row in data]
    return np.array([row + [-1] * (most - len(row)) for row in filled]), len(names)


def weights_of(entry: dict[str, Any], n_classes: int) -> NDArray[np.float64] | None:
    """Return the matrix of an entry; None for Krippendorff's ordinal and for none."""
    name = entry["weights"]
    if isinstance(name, list):
        return np.array(name)
    if name in WEIGHTS:
        return weight_matrix(name, n_classes)
    if name not in ("krippendorff_interval", "krippendorff_ratio"):
        return None
    value = np.array(classes_of(entry), dtype=np.float64)
    apart, together = value[:, None] - value, value[:, None] + value
    if name == "krippendorff_ratio":
        apart = apart / np.where(together == 0, 1, together)
    return np.asarray(1 - apart**2 / (apart**2).max())
