"""docs/gates.md: its example is read, and it names every gate, key and option."""

import re
from pathlib import Path

from click.testing import CliRunner

from calibration.cli import main
from calibration.gates.gate_file import parse_gates
from calibration.gates.settings import DEFAULTS, METRICS

PAGE = (Path(__file__).parents[2] / "docs" / "gates.md").read_text(encoding="utf-8")


def test_the_example_is_a_gate_file() -> None:
    (example,) = re.findall(r"```toml\n(.*?)```", PAGE, flags=re.DOTALL)
    by_name = {gate.name: gate for gate in parse_gates(example).gates}
    assert by_name["pass_at_1[core]"].numbers["threshold"] == 0.85
    assert by_name["human_review"].allow_skipped
    assert "judge" not in by_name


def test_every_gate_key_and_option_is_described() -> None:
    for name in DEFAULTS:
        assert f"`{name}`" in PAGE
    for keys in METRICS.values():
        for key in keys:
            assert f"`{key}`" in PAGE
    shown = CliRunner().invoke(main, ["gate", "--help"]).stdout
    for option in ("--baseline", "--labels", "--model", "--junit", "--summary", "--write-baseline"):
        assert option in shown
        assert option in PAGE
