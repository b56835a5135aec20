"""The gate file: what it says, and that nothing in it is overlooked."""

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from calibration.errors import InputError
from calibration.gates.gate_file import DEFAULTS, default_gates, parse_gates, read_gate_file


def test_an_empty_file_is_the_default_table() -> None:
    """Its numbers stand in the snapshots of `asr gate`, its names in docs/gates.md."""
    assert parse_gates("") == default_gates()


def test_a_gate_in_the_file_goes_before_the_table() -> None:
    found = parse_gates(
        'rule = "shown_good"\n[gates."pass_at_1[core]"]\nthreshold = 0.9\nlevel = "should"\n'
        "rule = 'value'\n[gates.loops]\nlevel = 'off'\n"
        '[gates."pass_hat_8[hard ones]"]\nthreshold = 0.2\n[ceilings]\n"my flow" = 2\n'
    )
    by_name = {gate.name: gate for gate in found.gates}
    core = by_name["pass_at_1[core]"]
    assert (core.numbers["threshold"], core.level, core.rule) == (0.9, "should", "value")
    assert "loops" not in by_name
    hard = by_name["pass_hat_8[hard ones]"]
    assert (hard.k, hard.tier, hard.level, hard.rule) == (8, "hard ones", "must", "shown_good")
    assert dict(found.ceilings) == {"my flow": 2}
    assert len(found.gates) == len(DEFAULTS)
    # The table can be left out.
    found = parse_gates("defaults = false\nallow_skipped = true\n[gates.asr]\nthreshold = 0.6")
    assert [(gate.name, gate.allow_skipped) for gate in found.gates] == [("asr", True)]


def test_interval_aware_is_read_as_a_rule_with_a_notice() -> None:
    found = parse_gates("interval_aware = true\n[gates.loops]\nrule = 'shown_good'\n"
                        "[gates.cost]\ninterval_aware = false")  # fmt: skip
    by_name = {gate.name: gate.rule for gate in found.gates}
    assert (by_name["judge"], by_name["loops"], by_name["cost"]) == (
        "not_shown_bad", "shown_good", "value",
    )  # fmt: skip
    (notice,) = found.notices
    assert 'rule = "not_shown_bad"' in notice
    assert not parse_gates("interval_aware = false").notices


@pytest.mark.parametrize(
    ("text", "match"),
    [
        ("a = ]", r"is not TOML \(Invalid value \(at line 1"),
        ("[" * 5000, "is not TOML"),
        ("thresold = 1", "unknown key 'thresold'"),
        ("[loops]\nthreshold = 0", r'unknown key \'loops\'.* written \[gates."loops"\]'),
        ("[gates.speed]\nthreshold = 1", r'\[gates."speed"\]: there is no such gate; the gates'),
        ('[gates."pass_at_2"]', "'threshold' is missing"),
        ("[gates.cost]\nthreshold = 1", "unknown key 'threshold'; the keys are max_share_over"),
        ("[gates.loops]\nlevel = 'may'", "'level' must be one of must, should, off, got 'may'"),
        ("[gates.order]\nthreshold = 0", r"\[gates.order\]: needs rules"),
        ("before = [['a']]", "must be pairs of tools"),
        ("before = 'a'", "must be a list of at most 100"),
        ("[gates.loops]\nthreshold = 1.5", r"'threshold' must be a number from 0 to 1, got 1.5"),
        ("[gates.loops]\nthreshold = 'none'", "'threshold' must be a number, got 'none'"),
        ("[gates.loops]\nthreshold = nan", "'threshold' must be a finite number"),
        (
            "[gates.loops]\nthreshold = 1" + "0" * 400,
            "'threshold': an integer of more than 64 bits",
        ),
        ("[gates.human_review]\nminimum_n = 2.5", "'minimum_n' must be a whole number"),
        ("[gates.loops]\nallow_skipped = 1", "'allow_skipped' must be true or false"),
        ("defaults = false", "holds no gate"),
        ("rule = 'interval'", "'rule' must be one of value, shown_good, not_shown_bad, got"),
        ("[gates.loops]\nrule = 1", r'\[gates."loops"\]: \'rule\' must be one of'),
        ("rule = 'value'\ninterval_aware = true", "'rule' and 'interval_aware' are both given"),
        ("interval_aware = 1", "'interval_aware' must be true or false"),
        ("confidence_level = 1", "'confidence_level' must be from .5 to below 1"),
        ("gates = 3", "'gates' must be a table"),
        ("[ceilings]\na = 0", "'a' must be USD per unit, above 0"),
    ],
)
def test_a_slip_is_an_error_that_names_it(text: str, match: str, tmp_path: Path) -> None:
    path = tmp_path / "gates.toml"
    path.write_text(text, encoding="utf-8")
    with pytest.raises(InputError, match=match) as caught:
        read_gate_file(path)
    assert str(caught.value).startswith(str(path))
    assert len(str(caught.value)) < 600


def test_files_that_are_none(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"missing.toml: cannot be read \(No such file"):
        read_gate_file(tmp_path / "missing.toml")
    path = tmp_path / "gates.toml"
    path.write_bytes(b"a = '\xff'")
    with pytest.raises(InputError, match="is not UTF-8"):
        read_gate_file(path)
    path.write_bytes(b"#" * 1_000_001)
    with pytest.raises(InputError, match="is larger than"):
        read_gate_file(path)
    path.write_bytes(b"\xef\xbb\xbfallow_skipped = true\n")
    assert read_gate_file(path).gates[0].allow_skipped


@given(st.text(max_size=200))
def test_any_text_is_a_gate_file_or_an_input_error(text: str) -> None:
    try:
        parse_gates(text)
    except InputError:
        pass


simple = st.booleans() | st.integers() | st.floats() | st.text(max_size=8)
scalars = simple | st.lists(st.integers())
names = st.sampled_from([*DEFAULTS, "asr", "pass_at_3", "speed", "gates"]) | st.text(max_size=8)

keys = st.sampled_from([
    "level", "threshold", "allow_skipped", "rule", "interval_aware", "minimum_n", "kappa",
    "margin_pp",
])  # fmt: skip

tops = st.sampled_from(
    ["defaults", "rule", "interval_aware", "allow_skipped", "confidence_level", "ceilings"]
)


def as_toml(value: Any) -> str:
    return json.dumps(value) if isinstance(value, str | bool) else str(value)


@given(
    st.dictionaries(tops, scalars, max_size=2),
    st.dictionaries(names, st.dictionaries(keys, scalars, max_size=3), max_size=3),
)
def test_any_values_are_a_gate_file_or_an_input_error(
    top: dict[str, Any], gates: dict[str, dict[str, Any]]
) -> None:
    lines = [f"{name} = {as_toml(value)}" for name, value in top.items()]
    for name, table in gates.items():
        lines.append(f"[gates.{json.dumps(name)}]")
        lines += [f"{key} = {as_toml(value)}" for key, value in table.items()]
    try:
        found = parse_gates("\n".join(lines))
    except InputError:
        return
    assert all(0 <= gate.numbers.get("threshold", 0) <= 1e9 for gate in found.gates)
