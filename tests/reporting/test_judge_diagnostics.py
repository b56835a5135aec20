"""A judge report in every form."""

from pathlib import Path

import pytest

from calibration.analyses.judge.calibration import CalibrationOptions
from calibration.analyses.judge.report import report_on_store
from calibration.records import Evidence, Verdict
from calibration.reporting import to_json
from calibration.reporting.document import Document, escaped, markdown, text_lines
from calibration.reporting.render_html import html
from calibration.reporting.sections import judge
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
    for name, verdicts in (("v1", said), ("v2", said | wrong)):
        made.store.add_verdicts(
            [
                Verdict(
                    judge_id=name, trace_id=trace, outcome=outcome, reason=HOSTILE,
                    evidence=(Evidence(step_id="response", quote="Booked"),),
                )
                for trace, outcome in verdicts.items()
            ]
        )  # fmt: skip
    made.store.add_verdicts([Verdict(judge_id="v2", trace_id="r000", outcome=A, sample=1)])
    return made


@pytest.fixture
def found(world: World) -> Document:
    asked = CalibrationOptions(diagnostics=True, by="model", against="v1")
    return judge.document(report_on_store(world.store, None, "v2", asked))


def test_hostile_text_comes_on_one_line_bounded_and_escaped(found: Document) -> None:
    lines = list(text_lines(found))
    assert "Where do they differ? 7 traces" in lines
    assert any('response: "Booked"' in line for line in lines)
    assert all(line.isprintable() and len(line) < 700 for line in lines)
    for shown in (markdown(found), html(found)):
        assert "\x1b" not in shown
        assert "\u202e" not in shown
        assert HOSTILE not in shown


def test_every_part_of_a_judge_report_is_a_section_of_each_form(found: Document) -> None:
    titles = [section.title for section in found.sections]
    rates = "Agent success rate, net of cost and before the cost penalty"
    assert titles[:2] == ["Can this judge be used?", rates]
    for title in (
        "How far do the reviewers agree themselves?",
        "Has the judge moved? v1 and v2 on the same 60 traces",
        "Does it give the same verdict twice? 1 traces, asked 2 times",
        "Agent success rate by model",
        "What would make it better?",
    ):
        assert title in titles
        assert title in list(text_lines(found))
        assert f'<h2 id="s{titles.index(title)}">{title}</h2>' in html(found)
        assert f"## {escaped(title)}" in markdown(found)


def test_a_synthetic_difference_says_that_it_gates_nothing(tmp_path: Path) -> None:
    traces = {name: {"model": "one" if k % 3 else "two"} for k, name in enumerate(ids(160))}
    made = make_world(tmp_path / "w.duckdb", n=160, n_drawn=100, traces=traces)
    made.judge({name: C if k % 5 else P for k, name in enumerate(ids(160))})
    right = {name: C if int(name[1:]) % 5 else P for name in made.drawn}
    made.label("Ann", right | dict.fromkeys([n for n in made.drawn if int(n[1:]) % 11 == 0], P))
    report = report_on_store(made.store, None, None, CalibrationOptions(by="model"))
    lines = "\n".join(text_lines(judge.document(report)))
    assert "  one minus two ~  " in lines
    assert "gates nothing" in lines
    (pair,) = to_json.data(report.groups)["comparisons"]
    assert pair["kind"] == "synthetic"
    assert pair["may_gate"] is False
    assert 0 < pair["net"]["flip_chance"] <= 0.5
