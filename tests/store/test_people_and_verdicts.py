import json
from dataclasses import replace
from typing import Any

import pytest

from calibration.errors import InputError, TaxonomyError
from calibration.records import Evidence, Verdict, Workflow
from calibration.store import Store, people
from calibration.taxonomy import Taxonomy, default_taxonomy
from tests.store.builders import ABANDONED, COMPLETE, Clock, Desk, make_trace, query


def test_a_name_is_one_reviewer_however_it_is_written(store: Store) -> None:
    first = store.add_reviewer("Zoë  B.")
    assert first.name == "Zoë B."
    assert first.reviewer_id == "zoe-b"
    for spelling in ("Zoë B.", " zoe b ", "ZOË B", "Zoe\u0308 B."):
        assert store.add_reviewer(spelling) == first
    assert store.reviewers() == [first]


def test_different_names_of_any_script_are_different_reviewers(kept_store: Store) -> None:
    pairs = "राम रमा,रिम राम,かが かか,Андрей Андреи,สมชาย สมชย,张伟 张玮,Ann Anne,محمد حامد"
    for one, other in (pair.split() for pair in pairs.split(",")):
        ids = {kept_store.add_reviewer(name).reviewer_id for name in (one, other)}
        assert len(ids) == 2
        assert {r.name for r in kept_store.reviewers()} >= {one, other}


def test_a_name_has_letters_a_bound_and_is_kept_literally(kept_store: Store) -> None:
    before = kept_store.reviewers()
    for name in ("", "   ", "\t\n", "...", "🙂", "❤️", "a" * 81, "_-_"):
        with pytest.raises(InputError, match="1 to 80 letters or digits"):
            kept_store.add_reviewer(name)
    with pytest.raises(InputError) as refused:
        kept_store.add_reviewer("a" * 10_000)
    assert len(str(refused.value)) < 200
    with pytest.raises(InputError, match="one of reviewer, lead, admin, got 'boss'"):
        kept_store.add_reviewer("Mia", role="boss")
    for name in ("Ann\u202e", "A\0n", "Ann\x1b[31m", "Ann\ud800", "A\u200bnn"):
        with pytest.raises(InputError, match=r"no hidden characters, got '\S*[\\]\S*'$"):
            kept_store.add_reviewer(name)
    assert kept_store.reviewers() == before
    for name in ("a" * 80, "7", "'; DROP TABLE reviewer; --", "O'Neil", "a_b"):
        assert kept_store.add_reviewer(name).name == name
        assert name in [r.name for r in kept_store.reviewers()]


def test_a_changed_ceiling_is_stored_and_audited_once(store: Store) -> None:
    assert store.workflows()["research"].ceiling_usd == 2.0
    new = Workflow(name="research", ceiling_usd=3.0, unit="report")
    store.set_workflow(new)
    store.set_workflow(new)
    assert store.workflows()["research"] == new
    details = query(store, "SELECT detail FROM audit WHERE what = 'workflow'")
    before, after = {"ceiling_usd": 2.0, "unit": "task"}, {"ceiling_usd": 3.0, "unit": "report"}
    expected = {"name": "research", "before": [before], "after": after}
    assert [json.loads(d) for (d,) in details] == [expected]


def test_the_ceiling_of_a_trace_follows_its_workflow(store: Store) -> None:
    store.ingest([make_trace(1), make_trace(2, workflow="own")])
    assert store.workflows()["own"] == Workflow(name="own")
    assert store.trace_frame()["ceiling_usd"].fillna(-1).tolist() == [2.0, -1]
    store.set_workflow(Workflow(name="own", ceiling_usd=0.5))
    store.set_workflow(Workflow(name="research", ceiling_usd=None))
    assert store.trace_frame()["ceiling_usd"].fillna(-1).tolist() == [-1, 0.5]


def test_a_ceiling_that_is_no_amount_is_refused(kept_store: Store) -> None:
    for ceiling in (0.0, -1.0, float("nan"), float("inf")):
        with pytest.raises(InputError, match="ceiling must be a positive amount"):
            kept_store.set_workflow(Workflow(name="research", ceiling_usd=ceiling))
    assert kept_store.workflows()["research"].ceiling_usd == 2.0


def fork(version: str, **changes: Any) -> Taxonomy:
    return replace(default_taxonomy(), version=version, **changes)


def test_the_taxonomy_set_last_is_in_force_even_when_the_clock_goes_back(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    clock = Clock()
    monkeypatch.setattr(people, "utc_now", clock)
    with Store.open(store.path) as other:
        for version in ("2", "3", "4", "2"):
            clock.forward(days=-1)
            store.set_taxonomy(fork(version))
            assert other.taxonomy() == store.taxonomy() == fork(version)


def test_a_version_names_one_taxonomy_only(store: Store) -> None:
    with pytest.raises(TaxonomyError, match=r"version '1\.0' is taken .*give the changed one"):
        store.set_taxonomy(fork("1.0", workflows=()))
    assert store.taxonomy() == default_taxonomy()


def test_a_new_taxonomy_keeps_the_ceilings_that_were_set(store: Store) -> None:
    store.set_workflow(Workflow(name="research", ceiling_usd=7.0))
    more = (Workflow(name="research", ceiling_usd=1.0), Workflow(name="new", ceiling_usd=4.0))
    store.set_taxonomy(fork("2", workflows=more))
    assert store.workflows()["research"].ceiling_usd == 7.0
    assert store.workflows()["new"].ceiling_usd == 4.0


def verdict(trace_id: str, outcome: str = "complete", **more: Any) -> Verdict:
    return Verdict(**({"judge_id": "j", "trace_id": trace_id, "outcome": outcome} | more))


def test_a_verdict_is_stored_once_and_never_overwritten(desk: Desk) -> None:
    first, second, *_ = desk.traces
    stored = desk.store.add_verdicts([verdict(first), verdict(second, "no_verdict")])
    assert (len(stored.imported), stored.already_there, stored.changed) == (2, (), ())
    again = desk.store.add_verdicts(
        [verdict(first), verdict(second, "abandoned"), verdict("t-none")]
    )
    assert (again.imported, len(again.already_there)) == ((), 1)
    assert (again.changed, again.unknown) == ((second,), ("t-none",))
    frame = desk.store.verdict_frame("j").set_index("trace_id")["outcome"]
    assert frame.to_dict() == {first: "complete", second: "no_verdict"}


def test_verdicts_of_one_call_are_stored_once_beside_further_samples(desk: Desk) -> None:
    assert desk.store.add_verdicts([]).imported == ()
    assert len(desk.store.judge_frame()) == 0
    first, *_ = desk.traces
    stored = desk.store.add_verdicts([verdict(first), verdict(first), verdict(first, "abandoned")])
    assert stored.imported == stored.already_there == stored.changed == (first,)
    assert len(desk.store.add_verdicts([verdict(first, "abandoned", sample=1)]).imported) == 1
    assert desk.store.verdict_frame("j")["outcome"].tolist() == ["complete"]


def test_all_samples_come_with_reason_and_evidence(desk: Desk) -> None:
    first, second, *_ = desk.traces
    quote = Evidence(step_id="s2", quote="found it")
    one = verdict(first, reason="all there", evidence=(quote,))
    desk.store.add_verdicts([verdict(second), verdict(first, "abandoned", sample=1), one])
    frame = desk.store.verdict_samples("j")
    said = frame.groupby("trace_id")["outcome"].agg(list).to_dict()
    assert said == {first: ["complete", "abandoned"], second: ["complete"]}
    assert frame["sample"].tolist() in ([0, 1, 0], [0, 0, 1])
    mine = frame[(frame["trace_id"] == first) & (frame["sample"] == 0)]
    assert mine["reason"].tolist() == ["all there"]
    assert json.loads(mine["evidence"].iloc[0]) == [{"step_id": "s2", "quote": "found it"}]


def test_a_verdict_that_is_no_class_is_refused(kept_desk: Desk) -> None:
    first, second, *_ = kept_desk.traces
    for outcome in ("", "Complete", "good", "split"):
        with pytest.raises(InputError, match=f"'j' on trace '{first}': outcome '{outcome}'"):
            kept_desk.store.add_verdicts([verdict(second), verdict(first, outcome)])
    assert len(kept_desk.store.verdict_frame("j")) == 0


@pytest.mark.parametrize("name", ["", "j" * 201])
def test_a_judge_has_a_name_with_a_bound(kept_desk: Desk, name: str) -> None:
    verdict = Verdict(trace_id=kept_desk.traces[0], judge_id=name, outcome="complete")
    with pytest.raises(InputError, match="judge must have a name of 1 to 200 characters"):
        kept_desk.store.add_verdicts([verdict])


def test_grades_that_came_with_the_traces_are_pooled(desk: Desk) -> None:
    a, b, c, *_ = desk.traces
    desk.store.add_verdicts(
        [
            verdict(a, judge_id="source:tau"),
            verdict(b, "abandoned", judge_id="source:other"),
            verdict(c, judge_id="sourceless"),
        ]
    )
    frame = desk.store.verdict_frame("source:")
    assert dict(zip(frame["trace_id"], frame["outcome"], strict=True)) == {
        a: "complete", b: "abandoned",
    }  # fmt: skip
    assert len(desk.store.verdict_frame("source:tau")) == 1
    assert len(desk.store.verdict_frame("nobody")) == 0


def test_a_judge_with_one_simulated_verdict_is_simulated(desk: Desk) -> None:
    a, b, c, *_ = desk.traces
    for n, (trace, simulated) in enumerate(((a, False), (b, True), (c, False)), 1):
        desk.store.add_verdicts([verdict(trace, simulated=simulated)])
        frame = desk.store.judge_frame()[["judge_id", "n", "simulated"]]
        assert frame.to_numpy().tolist() == [["j", n, n > 1]]


def test_the_last_adjudication_of_a_trace_is_the_consensus(desk: Desk) -> None:
    a, b, *_ = desk.traces
    for trace, answers in ((a, COMPLETE), (b, COMPLETE), (a, ABANDONED)):
        desk.store.adjudicate(trace_id=trace, answers=answers, adjudicator="Lee")
    frame = desk.store.consensus_frame()
    assert dict(zip(frame["trace_id"], frame["outcome"], strict=True)) == {
        a: "abandoned", b: "complete",
    }  # fmt: skip
    assert frame["simulated"].tolist() == [False, False]
    assert query(desk.store, "SELECT count(*) FROM adjudication_event") == [(3,)]
    desk.store.adjudicate(trace_id=b, answers=COMPLETE, adjudicator="Lee", simulated=True)
    simulated = desk.store.consensus_frame().set_index("trace_id")["simulated"]
    assert simulated[[a, b]].tolist() == [False, True]
    desk.store.set_taxonomy(fork("2"))  # a consensus belongs to a version of the taxonomy
    assert desk.store.consensus_frame().empty


def test_an_adjudication_of_nothing_is_refused(desk: Desk) -> None:
    with pytest.raises(InputError, match="'t-none' is not in the store"):
        desk.store.adjudicate(trace_id="t-none", answers=COMPLETE, adjudicator="Lee")
    with pytest.raises(TaxonomyError, match="'output' needs"):
        desk.store.adjudicate(trace_id=desk.traces[0], answers={}, adjudicator="Lee")
    assert len(desk.store.consensus_frame()) == 0
