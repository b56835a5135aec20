"""The diagnostics of a judge as text and JSON."""

import json
from pathlib import Path

import pytest

from calibration.analyses.judge.diagnostics import diagnose_judge
from calibration.analyses.judge.drift import compare_judges
from calibration.analyses.judge.groups import analyse_groups
from calibration.judge_calibration.bias import ordinal_agreement
from calibration.records import Evidence, Verdict
from calibration.reporting import to_json as as_json
from calibration.reporting.sections import judge as comparisons
from calibration.reporting.sections import judge as text
from tests.analyses.worlds import World, ids, make_world

C, P, M, A = "complete", "partial_plus", "partial_minus", "abandoned"

HOSTILE = "\x1b[31mred\n\u202eturned" + "x" * 5000


@pytest.fixture
def world(tmp_path: Path) -> World:
    agents = {name: {"model": f"m{k % 2}{HOSTILE[:6]}"} for k, name in enumerate(ids(60))}
    made = make_world(tmp_path / "w.duckdb", n=60, n_drawn=40, traces=agents)
    made.label("Ann", dict(zip(made.drawn, [C] * 20 + [M] * 12 + [A] * 8, strict=True)))
    made.label("Ben", dict(zip(made.drawn, [C] * 19 + [M] * 13 + [A] * 8, strict=True)))
    wrong = dict.fromkeys(made.drawn[:2], M) | dict.fromkeys(made.drawn[25:29], C)
    said = dict.fromkeys(ids(60), C) | dict(zip(made.drawn[20:], [M] * 12 + [A] * 8, strict=True))
    for judge, verdicts in (("v1", said), ("v2", said | wrong)):
        made.store.add_verdicts(
            [
                Verdict(
                    judge_id=judge, trace_id=name, outcome=outcome, reason=HOSTILE,
                    evidence=(Evidence(step_id="response", quote="Booked"),),
                )
                for name, outcome in verdicts.items()
            ]
        )  # fmt: skip
    made.store.add_verdicts([Verdict(judge_id="v2", trace_id="r000", outcome=A, sample=1)])
    return made


def test_the_diagnostics_as_text(world: World) -> None:
    lines = list(text.diagnostics(diagnose_judge(world.store, judge_id="v2")))
    everything = "\n".join(lines)
    assert "  40 traces with two or more labels" in everything
    assert "alpha" in everything
    assert "Where do they differ? 7 traces" in everything
    assert 'response: "Booked"' in everything
    assert "1 traces, asked 2 times" in everything
    assert "name it" in everything
    # Hostile text comes on one line, without control characters, and bounded.
    assert all(line.isprintable() and len(line) < 500 for line in lines)


def test_drift_and_groups_as_text(world: World) -> None:
    drift = list(comparisons.drift(compare_judges(world.store, "v1", "v2")))
    assert drift[0] == "Has the judge moved? v1 and v2 on the same 60 traces"
    assert any(line.startswith("  change of accuracy  -0.") for line in drift)
    groups = list(comparisons.groups(analyse_groups(world.store, judge_id="v2", by="model")))
    everything = "\n".join(groups)
    assert (
        "~ synthetic, taking the judge to err as in all groups: fewer than 50 own labels"
        in everything
    )
    assert "does the judge err alike? chi-square" in everything
    assert all(line.isprintable() for line in [*drift, *groups])


def test_a_synthetic_difference_says_that_it_gates_nothing(tmp_path: Path) -> None:
    traces = {name: {"model": "one" if k % 3 else "two"} for k, name in enumerate(ids(160))}
    made = make_world(tmp_path / "w.duckdb", n=160, n_drawn=100, traces=traces)
    made.judge({name: C if k % 5 else P for k, name in enumerate(ids(160))})
    right = {name: C if int(name[1:]) % 5 else P for name in made.drawn}
    made.label("Ann", right | dict.fromkeys([n for n in made.drawn if int(n[1:]) % 11 == 0], P))
    found = analyse_groups(made.store, by="model")
    assert [pair.net.kind for pair in found.pairs] == ["synthetic"]
    everything = "\n".join(comparisons.groups(found))
    assert "  one less two ~  " in everything
    assert "gates nothing" in everything
    assert "for the ranking to turn around" in everything
    (pair,) = as_json.data(found)["comparisons"]
    assert pair["may_gate"] is False
    assert 0 < pair["net"]["flip_chance"] <= 0.5


def test_json_is_plain_and_has_no_nan(world: World) -> None:
    for plain in (
        as_json.data(diagnose_judge(world.store, judge_id="v2")),
        as_json.data(compare_judges(world.store, "v1", "v2")),
        as_json.data(analyse_groups(world.store, judge_id="v2", by="model")),
        as_json.data(ordinal_agreement([[4, 1], [0, 5]])),
    ):
        written = json.dumps(plain, allow_nan=False)
        assert json.dumps(json.loads(written)) == written
    found = as_json.data(diagnose_judge(world.store, judge_id="v2"))
    assert found["ceiling"]["gwet_ac"]["humans"]["n"] == 40
    assert found["per_node"]["output"]["accuracy"]["value"] == 1.0
    assert found["retest"]["changed"]["value"] == 1.0
    assert found["own_family"]["status"].startswith("not_estimable")


def test_grades_as_text() -> None:
    lines = list(text.ordinal(ordinal_agreement([[4, 1, 0], [0, 5, 1], [1, 0, 6]])))
    assert lines[1].startswith("  within one grade 0.944")
    assert lines[1].endswith("by chance alone")
    assert lines[3] == "  judge less human, mean +0.000 grades"
