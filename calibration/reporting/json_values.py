"""What every result in JSON is made of."""

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
