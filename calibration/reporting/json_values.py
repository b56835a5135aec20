"""What every result in JSON is made of."""

import json
from typing import Any

from calibration.estimates import Estimate

Json = dict[str, Any]


def estimate(result: Estimate) -> Json:
    """Return one estimate."""
    return {
        "value": result.value,
        "interval": None if result.interval is None else list(result.interval),
        "se": result.se,
        "n": result.n,
        "method": result.method,
        "confidence_level": result.confidence_level,
        "status": result.status,
    }


def as_text(data: Json) -> str:
    """Return JSON for a file, in full precision; NaN is an error here, never output."""
    return json.dumps(data, ensure_ascii=True, allow_nan=False, indent=1) + "\n"
