import json
from pathlib import Path

import pytest

from calibration.errors import InputError, NotAllowedError
from calibration.records import Reviewer, Verdict
from calibration.store import Store
from tests.store.builders import empty_store, make_traces

BODY = json.dumps({"version": {"samples": 3}})


@pytest.fixture
def store(tmp_path: Path) -> Store:
    store = empty_store(tmp_path / "s.duckdb")
    store.ingest(make_traces(2))
    return store


def test_a_version_has_one_name_and_a_name_one_version(store: Store) -> None:
    store.add_judge("strict", "a" * 64, BODY)
    store.add_judge("strict", "a" * 64, BODY)
    store.add_judge("strict-2", "b" * 64, BODY, "strict")
    store.add_judge("strict-3", "c" * 64, BODY, "strict-2")
    found = [(judge.judge_id, judge.version_id[0], judge.line) for judge in store.judges()]
    assert found == [
        ("strict", "a", "strict"), ("strict-2", "b", "strict"), ("strict-3", "c", "strict")
    ]  # fmt: skip
    assert store.judge("strict").body == {"version": {"samples": 3}}
    with pytest.raises(InputError, match="taken by another version"):
        store.add_judge("strict", "d" * 64, BODY)
    with pytest.raises(InputError, match="there already, as 'strict-2'"):
        store.add_judge("lenient", "b" * 64, BODY)
    with pytest.raises(InputError, match="no judge 'lenient' that we run; there are: strict, "):
        store.add_judge("new", "e" * 64, BODY, "lenient")
    assert len(store.judges()) == 3


def test_a_name_is_short_plain_and_of_no_imported_judge(store: Store) -> None:
    trace_id = str(store.trace_frame()["trace_id"][0])
    store.add_verdicts([Verdict(judge_id="theirs", trace_id=trace_id, outcome="complete")])
    with pytest.raises(InputError, match="imported verdicts are of a judge 'theirs'"):
        store.add_judge("theirs", "a" * 64, BODY)
    for name in ("", "a b", "x" * 65, "../x", "source:x", ".x", "a\n"):
        with pytest.raises(InputError, match="a judge is named by"):
            store.add_judge(name, "a" * 64, BODY)
    with pytest.raises(InputError, match="at most 1,000,000"):
        store.add_judge("long", "a" * 64, " " * 1_000_001)
    assert store.judges() == []


def test_the_judge_in_use_has_a_verdict(store: Store) -> None:
    assert store.judge_in_use() is None
    store.add_judge("strict", "a" * 64, BODY)
    with pytest.raises(InputError, match="has no verdict yet"):
        store.use_judge("strict")
    trace_id = str(store.trace_frame()["trace_id"][0])
    store.add_verdicts([Verdict(judge_id="strict", trace_id=trace_id, outcome="complete")])
    store.use_judge("strict")
    assert store.judge_in_use() == "strict"


def test_looks_are_counted_by_line_and_form(store: Store) -> None:
    store.add_judge("strict", "a" * 64, BODY)
    store.add_judge("strict-2", "b" * 64, BODY, "strict")
    store.add_look("strict", "exam_b", 1, '{"n": 70}')
    with pytest.raises(InputError, match="somebody else has looked"):
        store.add_look("strict-2", "exam_b", 1, "{}")
    store.acting_as(Reviewer(reviewer_id="lea", name="Lea", role="lead")).add_look(
        "strict-2", "exam_b", 2, "{}"
    )
    looks = store.looks("strict", "exam_b")
    assert [(look.number, look.judge_id, look.created_by) for look in looks] == [
        (1, "strict", None), (2, "strict-2", "lea")
    ]  # fmt: skip
    assert looks[0].body == {"n": 70}
    assert store.looks("imported", "exam_b") == []
    with pytest.raises(NotAllowedError):
        store.acting_as(Reviewer(reviewer_id="ann", name="Ann")).looks("strict", "exam_b")


def test_the_verdict_of_all_samples_is_none_of_them(store: Store) -> None:
    trace_id = str(store.trace_frame()["trace_id"][0])
    of_all = Verdict(
        judge_id="strict", trace_id=trace_id, outcome="no_verdict", cause="split",
        detail='{"of_all": true}',
    )  # fmt: skip
    single = [
        Verdict(judge_id="strict", trace_id=trace_id, outcome=outcome, sample=k)
        for k, outcome in enumerate(("complete", "abandoned"), 1)
    ]
    store.add_verdicts([of_all, *single])
    assert store.verdict_samples("strict")["of_all"].tolist() == [True, False, False]
    assert store.verdict_frame("strict")["outcome"].tolist() == ["no_verdict"]
    assert store.trace_verdicts(trace_id)["cause"].tolist()[0] == "split"
