"""The traces that are kept in memory between two answers."""

from calibration.store.traces import Shown


def test_the_trace_asked_for_longest_ago_goes_first() -> None:
    shown = Shown(size=2)
    for name in "ab":
        shown.put(("part", name), {"name": name}, 1)
    assert shown.get(("part", "a")) == {"name": "a"}
    shown.put(("part", "c"), {}, 1)
    assert shown.get(("part", "b")) is None
    assert shown.get(("part", "a")) == {"name": "a"}


def test_what_is_kept_is_bounded_by_its_text_but_never_nothing() -> None:
    shown = Shown(characters=100)
    for k in range(5):
        shown.put(("part", str(k)), {"k": k}, 40)
    assert [shown.get(("part", str(k))) is not None for k in range(5)] == [False] * 3 + [True] * 2
    shown.put(("part", "huge"), {}, 1_000)
    assert shown.get(("part", "huge")) == {}
    assert shown.get(("part", "4")) is None
