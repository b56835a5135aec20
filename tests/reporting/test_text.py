import json

from calibration.reporting import to_json
from calibration.reporting.document import number, percent, table, usd
from calibration.statistics.estimate import Estimate, not_estimable


def estimate(value: float | None = 0.5, **changes: object) -> Estimate:
    values = {"value": value, "interval": (0.25, 0.75), "n": 8, "method": "bootstrap"} | changes
    return Estimate(**values)  # type: ignore[arg-type]


def test_a_number_is_shown_with_its_interval_and_its_reservation() -> None:
    assert number(estimate()) == "0.500 [0.250, 0.750]"
    assert number(estimate(), digits=1) == "0.5 [0.2, 0.8]"
    assert number(estimate(interval=None)) == "0.500"
    shown = number(estimate(status="provisional: 2 open disagreements"))
    assert shown == "0.500 [0.250, 0.750]  (provisional: 2 open disagreements)"


def test_what_cannot_be_given_is_said_in_words_without_a_digit() -> None:
    refused = not_estimable("no labels: label some traces", method="bootstrap")
    assert number(refused) == "not estimable: no labels: label some traces"
    assert [percent(None), *map(usd, (None, 0.0123, 0.1))] == ["-", "-", "$0.0123", "$0.10"]


def test_a_table_is_aligned() -> None:
    lines = list(table(["a", "number"], [["long name", "1"], ["b", "22"]]))
    assert lines == ["  a          number", "  long name       1", "  b              22"]
    assert list(table(["a"], [])) == ["  a"]


def test_full_precision_and_null_in_json() -> None:
    third = 1 / 3
    written = json.loads(json.dumps(to_json.data(estimate(third, interval=None))))
    assert written["value"] == third
    assert written["interval"] is None
    assert to_json.data(estimate())["interval"] == [0.25, 0.75]
    refused = to_json.data(not_estimable("why: do this", method="m"))
    assert (refused["value"], refused["interval"], refused["se"]) == (None, None, None)
    assert refused["status"] == "not_estimable: why: do this"
