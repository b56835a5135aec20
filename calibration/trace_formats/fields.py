"""Checks of one JSON field: each returns its value in our type, or raises `FieldError`.

None alone means missing; it is returned unchanged.
"""

import json
import math
import re
from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime, tzinfo

from calibration.records import NO_VERDICT, YEARS, Verdict
from calibration.taxonomy import Taxonomy

MAX_ID_BYTES = 4_096
MAX_FIELD_NAME = 200
MAX_METADATA_CHARS = 64_000
MAX_METADATA_TEXT = 4_000
MAX_METADATA_DEPTH = 8
MAX_SECONDS = 1e9
MAX_COUNT = 1_000_000_000_000


class FieldError(ValueError):
    """A run cannot be imported; the message is the reason of its `SetAside`."""


_JSON = json.JSONEncoder(ensure_ascii=False).encode
_CONTROL = re.compile(r"[\x00-\x1f\x7f-\x9f]")
_ESCAPE = re.compile(r"\x1b(?:\[[0-?]*[ -/]*[@-~]|\][^\x07\x1b]*(?:\x07|\x1b\\)|[@-_])")
_UNSTORABLE = re.compile("[\x00\ud800-\udfff]")


def shown(value: object) -> str:
    """Return a short quotation of a value for an error message."""
    if value is None:
        return "nothing"
    if isinstance(value, dict):
        return "an object"
    if isinstance(value, list):
        return "a list"
    text = repr(value)
    return text if len(text) <= 60 else text[:57] + "..."


def wrong(name: str, rule: str, value: object) -> FieldError:
    """Build the error of one field: its name, the rule and the value."""
    return FieldError(f"field {name!r}: {rule}, got {shown(value)}")


def number(
    value: object,
    name: str,
    *,
    maximum: float = MAX_SECONDS,
    above_zero: bool = False,
) -> float | None:
    """Check a finite number >= 0 (or > 0) and at most `maximum`."""
    if value is None:
        return None
    rule = "must be a number > 0" if above_zero else "must be a number >= 0"
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise wrong(name, rule, value)
    if not (value > 0 if above_zero else value >= 0) or value == math.inf:
        raise wrong(name, rule, value)
    if value > maximum:
        raise wrong(name, f"must be at most {maximum:,.0f}", value)
    return float(value)


def whole(value: object, name: str, *, maximum: int = MAX_COUNT) -> int | None:
    """Check a whole number >= 0; 3.0 counts as 3."""
    checked = number(value, name, maximum=maximum)
    if checked is None:
        return None
    if checked != int(checked):
        raise wrong(name, "must be a whole number", value)
    return int(checked)


def flag(value: object, name: str) -> bool | None:
    """Check true or false."""
    if value is None or isinstance(value, bool):
        return value
    raise wrong(name, "must be true or false", value)


def text(value: object, name: str) -> str | None:
    """Check a string."""
    if value is None or isinstance(value, str):
        return value
    raise wrong(name, "must be text", value)


def required_text(value: object, name: str) -> str:
    """Check a string that is not blank."""
    checked = text(value, name)
    if checked is None:
        raise FieldError(f"field {name!r}: is missing")
    if not checked.strip():
        raise FieldError(f"field {name!r}: must not be empty")
    return checked


def identifier(value: object, name: str) -> str | None:
    """Check an id of 1 to 4,096 bytes of printable text; a whole number becomes its digits."""
    if value is None:
        return None
    if isinstance(value, int) and not isinstance(value, bool):
        value = str(value)
    rule = f"must be 1 to {MAX_ID_BYTES:,} bytes without control characters"
    if not isinstance(value, str):
        raise wrong(name, rule, value)
    value = value.strip(" ")
    if not 1 <= len(value.encode("utf-8", "replace")) <= MAX_ID_BYTES or _CONTROL.search(value):
        raise wrong(name, rule, value)
    return value


def required_id(value: object, name: str) -> str:
    """Check an id that is required."""
    checked = identifier(value, name)
    if checked is None:
        raise FieldError(f"field {name!r}: is missing")
    return checked


def moment(value: object, name: str, zone: tzinfo) -> datetime | None:
    """Return an ISO 8601 time, in `zone` without an offset, in UTC; a bare number is ambiguous."""
    if value is None:
        return None
    rule = "must be an ISO 8601 time such as 2026-03-01T09:30:00Z"
    if not isinstance(value, str):
        raise wrong(name, rule, value)
    try:
        parsed = datetime.fromisoformat(value.strip())
        aware = parsed if parsed.tzinfo is not None else parsed.replace(tzinfo=zone)
        at = aware.astimezone(UTC)
    # Years 1 and 9999 overflow in the conversion to UTC.
    except (ValueError, OverflowError) as error:
        raise wrong(name, rule, value) from error
    if at.year not in YEARS:
        raise wrong(name, f"must be of the years {YEARS[0]} to {YEARS[-1]}", value)
    return at


def outcome(value: object, name: str, classes: Sequence[str]) -> str:
    """Check one of the classes."""
    if isinstance(value, str) and value.strip() in classes:
        return value.strip()
    raise wrong(name, f"must be one of {', '.join(classes)}", value)


def as_object(value: object, name: str) -> Mapping[str, object]:
    """Check a JSON object; None is an empty one."""
    if value is None:
        return {}
    if isinstance(value, dict):
        return value
    raise wrong(name, "must be an object", value)


def as_list(value: object, name: str) -> list[object]:
    """Check a JSON list; None is an empty one."""
    if value is None:
        return []
    if isinstance(value, list):
        return value
    raise wrong(name, "must be a list", value)


def part(value: object, *keys: str) -> object:
    """Return a nested value, or None where an object or key on the path is missing."""
    for key in keys:
        if not isinstance(value, dict):
            return None
        value = value.get(key)
    return value


def first_of(holder: object, *names: str) -> object:
    """Return the first value of an object that is not missing, by these names."""
    return next((v for name in names if (v := part(holder, name)) is not None), None)


def readable(value: object) -> str | None:
    """Return text unchanged and any other JSON value as JSON text; None remains None."""
    if value is None or isinstance(value, str):
        return value
    return _JSON(value)


def note(value: str | None, *, limit: int = MAX_METADATA_TEXT) -> str | None:
    """Return a free note on one line, without terminal escapes and outer blanks."""
    if value is None:
        return None
    cleaned = _CONTROL.sub(" ", _ESCAPE.sub("", value)).strip()
    return (cleaned if len(cleaned) <= limit else cleaned[: limit - 1] + "…") or None


def storable(value: object) -> object:
    """Replace NUL and lone surrogates, which neither UTF-8 nor the store can hold."""
    if isinstance(value, str):
        return _UNSTORABLE.sub("\ufffd", value)
    if isinstance(value, list):
        return [storable(item) for item in value]
    if isinstance(value, dict):
        return {_UNSTORABLE.sub("\ufffd", key): storable(item) for key, item in value.items()}
    return value


def bounded_metadata(items: Iterable[tuple[str, object]]) -> dict[str, object]:
    """Return at most 64,000 storable characters; ``fields_not_kept`` counts the fields left out."""
    kept: dict[str, object] = {}
    left_out = 0
    room = MAX_METADATA_CHARS
    for key, value in items:
        if value is None:
            continue
        plain = plain_json(value)
        size = len(key) + len(_JSON(plain))
        if size > room or len(key) > MAX_FIELD_NAME:
            left_out += 1
            continue
        room -= size
        kept[key] = plain
    if left_out:
        kept["fields_not_kept"] = left_out
    return kept


def plain_json(value: object, depth: int = MAX_METADATA_DEPTH) -> object:
    """Return a JSON value with long texts cut, and no deeper than 8 lists and objects."""
    if isinstance(value, str):
        return value if len(value) <= MAX_METADATA_TEXT else value[:MAX_METADATA_TEXT] + "…"
    if isinstance(value, float) and not math.isfinite(value):
        return str(value)
    if isinstance(value, int) and not isinstance(value, bool) and abs(value) >= 2**63:
        return str(value)
    if isinstance(value, list | dict) and depth == 0:
        return "…"
    if isinstance(value, list):
        return [plain_json(item, depth - 1) for item in value]
    if isinstance(value, dict):
        return {str(key): plain_json(item, depth - 1) for key, item in value.items()}
    return value


def without_output(why: str, judge_id: str, trace_id: str, taxonomy: Taxonomy) -> Verdict:
    """Return the verdict on a run that was broken off: a proposal of the class without output.

    Examples
    --------
    >>> from calibration.taxonomy import default_taxonomy
    >>> without_output("exit_cost", "source:swe-agent", "t-1", default_taxonomy()).outcome
    'abandoned'
    """
    outcome = taxonomy.without_output
    return Verdict(
        judge_id=judge_id,
        trace_id=trace_id,
        outcome=NO_VERDICT if outcome is None else outcome,
        reason=note(why),
        proposed=outcome is not None,
    )
