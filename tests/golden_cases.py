"""The golden values of tests/golden, by the name of the case."""

import json
from pathlib import Path
from typing import Any

GOLDEN = Path(__file__).parent / "golden"


def headline_2() -> dict[str, dict[str, Any]]:
    """Return the cases of rules on decisions."""
    cases = json.loads((GOLDEN / "headline_2.json").read_text("utf-8"))["cases"]
    return {case["name"]: case for case in cases}
