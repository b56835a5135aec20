"""Tables of credit beside that of a taxonomy, for the line of sensitivity."""

from collections.abc import Sequence

from calibration.records import OUTCOMES
from calibration.taxonomy import Taxonomy, default_taxonomy

DEFAULT_WEIGHTS = "default_weights"
PARTIAL = {"partial_30": 0.3, "partial_40": 0.4, "partial_50": 0.5}


def other_tables(taxonomy: Taxonomy) -> dict[str, tuple[float, ...]]:
    """Return the tables of credit for the line of sensitivity."""
    own = tuple(taxonomy.credit[name] for name in OUTCOMES)
    place = OUTCOMES.index("partial_plus")
    tables = {name: (*own[:place], partial, *own[place + 1 :]) for name, partial in PARTIAL.items()}
    default = tuple(default_taxonomy().credit[name] for name in OUTCOMES)
    if default != own:
        tables[DEFAULT_WEIGHTS] = default
    return tables


def table_in_words(name: str, credit: Sequence[float]) -> str:
    """Return what a table is, for a reader.

    Examples
    --------
    >>> table_in_words("partial_30", (1, 0.3, 0, 0, 0))
    'partial credit 0.3'
    """
    if name in PARTIAL:
        return f"partial credit {PARTIAL[name]:g}"
    return f"default weights ({credit_in_words(credit)})"


def credit_in_words(credit: Sequence[float]) -> str:
    """Return a table of credit as text."""
    return " / ".join(f"{c:g}" for c in credit)
