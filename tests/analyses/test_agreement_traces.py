"""Each number of the analysis against the traces said to be behind it."""

import pytest

from calibration.analyses.agreement import traces
from calibration.analyses.agreement.analysis import AgreementAnalysis, analyse_agreement
from tests.analyses.worlds import make_world

NAMES = ("Ann", "Ben", "Cem")

# Trace by trace: what Ann, Ben and Cem say; "" is no label.
SAID = (
    ("complete", "complete", "complete"),
    ("complete", "partial_plus", "complete"),
    ("complete", "partial_minus", ""),
    ("abandoned", "complete", "partial_plus"),
    ("hallucinated", "hallucinated", ""),
    ("partial_minus", "", "partial_plus"),
    ("abandoned", "", ""),
    ("", "partial_plus", "partial_plus"),
)


@pytest.fixture(scope="module")
def result(tmp_path_factory: pytest.TempPathFactory) -> AgreementAnalysis:
    world = make_world(tmp_path_factory.mktemp("said") / "s.duckdb", n=12, n_drawn=len(SAID))
    for k, name in enumerate(NAMES):
        said = {t: row[k] for t, row in zip(world.drawn, SAID, strict=True) if row[k]}
        world.label(name, said)
    world.settle(world.drawn[1], "complete")
    world.settle(world.drawn[4], "partial_plus")
    with world.store:
        return analyse_agreement(world.store)


def rows(result: AgreementAnalysis, found: traces.TraceSet) -> list[int]:
    """Return which lines of `SAID` were found."""
    return sorted(result.trace_ids.index(t) for t in found.trace_ids)


def test_traces_of_each_question_are_as_many_as_the_study_counts(result: AgreementAnalysis) -> None:
    for question, node in result.study.nodes.items():
        parting = traces.parting_at(result, question)
        assert len(parting.trace_ids) == node.share.n_items
        assert len(traces.reaching(result, question).trace_ids) == node.n_items
    assert rows(result, traces.parting_at(result, "output")) == [3]
    assert rows(result, traces.parting_at(result, "all_subgoals")) == [1, 2, 3]
    assert rows(result, traces.reaching(result, "material_error")) == [5, 7]


def test_traces_of_classes_pairs_and_weeks_are_those_counted(result: AgreementAnalysis) -> None:
    assert result.study.confusions
    for c in result.study.confusions:
        assert len(traces.confused(result, c.first, c.second).trace_ids) == c.share.n_items
    assert rows(result, traces.contested(result, 0)) == [1, 2, 3]
    assert rows(result, traces.confused(result, 0, 4)) == [3]
    for week, group in result.study.groups.items():
        assert len(traces.in_week(result, week).trace_ids) == group.n_items
    assert not traces.in_week(result, "1999-W01").trace_ids


def test_traces_of_each_reviewer_are_as_many_as_the_study_counts(result: AgreementAnalysis) -> None:
    for k, (name, of) in enumerate(zip(NAMES, result.profiles, strict=True)):
        assert len(traces.labelled_by(result, k, name).trace_ids) == of.n_labels
        settled = traces.settled_with(result, k, name).trace_ids
        assert len(settled) == (0 if of.consensus is None else of.consensus.n)
    assert rows(result, traces.apart_from_others(result, 2, "Cem")) == [1, 3, 5]
    assert rows(result, traces.apart_from_settled(result, 0, "Ann")) == [4]
    assert rows(result, traces.using_apart(result, 1, 0, "Ben")) == [1, 2, 3]
    assert rows(result, traces.using_apart(result, 0, 1, "Ann")) == [1, 3, 5]


def test_cells_of_a_two_way_table_split_what_a_pair_shares(result: AgreementAnalysis) -> None:
    for pair in result.study.pairs:
        who = (pair.first, pair.second)
        names = (NAMES[pair.first], NAMES[pair.second])
        shared = traces.shared_by_pair(result, *who, names)
        assert len(shared.trace_ids) == pair.n_shared
        found: list[str] = []
        for a, line in enumerate(pair.table):
            for b, count in enumerate(line):
                cell = traces.in_cell(result, who, (a, b), names)
                assert len(cell.trace_ids) == count
                found += cell.trace_ids
        assert sorted(found) == sorted(shared.trace_ids)
    assert rows(result, traces.apart_in_pair(result, 0, 2, ("Ann", "Cem"))) == [3, 5]


def test_disputed_traces_come_first_in_the_order_of_adjudication(result: AgreementAnalysis) -> None:
    order = [of.trace_id for of in result.disputed]
    assert list(traces.disputed_traces(result).trace_ids) == order
    assert rows(result, traces.disputed_traces(result)) == [1, 2, 3, 5]
    assert rows(result, traces.open_traces(result)) == [2, 3, 5]
    labelled = traces.labelled_by(result, 0, "Ann").trace_ids
    assert list(labelled[:4]) == order
    assert rows(result, traces.shared_traces(result)) == [0, 1, 2, 3, 4, 5, 7]


def test_a_row_of_the_list_says_what_everybody_said(result: AgreementAnalysis) -> None:
    listed = traces.rated_traces(result, traces.labelled_by(result, 1, "Ben"))
    by_row = {result.trace_ids.index(of.trace_id): of for of in listed}
    assert by_row[3].classes == {"ann": "abandoned", "ben": "complete", "cem": "partial_plus"}
    assert by_row[3].question == "output"
    assert by_row[3].cost is not None
    assert (by_row[0].question, by_row[0].cost, by_row[0].consensus) == (None, None, None)
    assert by_row[4].consensus == "partial_plus"
    assert by_row[4].classes == {"ann": "hallucinated", "ben": "hallucinated"}
    assert by_row[3].entropy == pytest.approx(result.truth.entropy[3])
