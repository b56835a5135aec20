"""The decision tree as a picture: where its questions and classes lie."""

from dataclasses import replace

from app.components.tree_chart import _places
from calibration.taxonomy import default_taxonomy


def test_a_class_has_a_row_and_a_question_lies_between_its_ends() -> None:
    taxonomy = default_taxonomy()
    places = {of.name: of for of in _places(taxonomy)}
    assert set(places) == {*taxonomy.names, *(node.id for node in taxonomy.nodes)}
    rows = [of.row for of in places.values() if not of.is_question]
    assert sorted(rows) == list(range(len(taxonomy.names)))
    for node in taxonomy.nodes:
        ends = [places[node.target(answer)] for answer in ("yes", "no")]
        assert [of.answer for of in ends] == ["yes", "no"]
        assert ends[0].row < places[node.id].row < ends[1].row
        assert {of.depth for of in ends} == {places[node.id].depth + 1}


def test_a_fork_that_asks_in_another_order_is_drawn_as_it_asks() -> None:
    taxonomy = default_taxonomy()
    swapped = replace(taxonomy, nodes=tuple(replace(n, yes=n.no, no=n.yes) for n in taxonomy.nodes))
    rows = {of.name: of.row for of in _places(taxonomy)}
    assert {of.name: 4 - of.row for of in _places(swapped)} == rows
