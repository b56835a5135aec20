"""Reviewers on silent gold and own repeats, and that no other number knows of either."""

from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from calibration.analyses.agreement.analysis import analyse_agreement
from calibration.analyses.judge.calibration import analyse_judge
from calibration.analyses.reviewers.drift import reviewer_checks
from calibration.analyses.sampling.draw import SamplingDesign, draw_batch
from calibration.analyses.success_rate.from_store import report_on_store
from calibration.analyses.success_rate.report import ReportOptions
from calibration.errors import InputError
from calibration.records import LabelDraft, Verdict
from calibration.reporting import to_json
from calibration.store import Store, TraceFilter, queue
from calibration.store.database import utc_now
from tests.analyses.worlds import drawn_ids, ids, make_trace
from tests.store.inserts import label_all, settle
from tests.stores import copy_store

NEW = tuple(drawn_ids(60, 30))
OLD = tuple(t for t in ids(60) if t not in NEW)
CLASSES = ("complete", "partial_plus", "abandoned")


def check(store: Store, batch: str, trace: str, outcome: str, reviewer: str = "ann") -> int:
    taxonomy = store.taxonomy()
    draft = LabelDraft(
        client_token=f"{reviewer} {trace} again", trace_id=trace, reviewer_id=reviewer,
        batch_id=batch, answers=taxonomy.answers_for(outcome),
    )  # fmt: skip
    return store.import_hidden_items(batch, [draft])


def make_store(path: Path) -> tuple[Store, str, str]:
    """Return a store with an old batch that Ben and Cy labelled, and a new one of Ann and Ben."""
    store = Store.open(path, create=True)
    store.ingest([make_trace(t, cost_usd=0.5) for t in ids(60)])
    for name in ("Ann", "Ben", "Cy"):
        store.add_reviewer(name)
    store.add_reviewer("Lea", role="lead")
    store.add_verdicts([Verdict(judge_id="j", trace_id=t, outcome="complete") for t in ids(60)])
    old = store.add_batch(purpose="production", trace_ids=OLD, labels_wanted=2).batch_id
    label_all(store, old, OLD, "ben", "cy")
    settle(store, OLD)
    new = draw_batch(store, SamplingDesign(seed=1), n=30).batch_id
    return store, old, new


def numbers(store: Store, old: str, new: str) -> dict[str, Any]:
    """Return every number and fingerprint that is drawn from labels."""
    report = report_on_store(store, ReportOptions(batch_id=new, n_resamples=100))
    agreement = [analyse_agreement(store, batch) for batch in (old, new)]
    return {
        "asr": to_json.data(report),
        "fingerprint": report.origin.fingerprint,
        "alpha": [str(a.study.alpha) for a in agreement],
        "agreement": [a.fingerprint for a in agreement],
        "batches": [(b.batch_id, b.n_items) for b in store.batches()],
        "overlap": [len(store.label_frame(batch)) for batch in (old, new)],
        "judge": analyse_judge(store, new).fingerprint,
        "list": store.trace_list(TraceFilter(), for_leads=True).to_csv(),
        "tags": store.count_traces(TraceFilter(tags=("seen",))),
    }


def work(store: Store, batch: str, reviewer: str) -> None:
    """Label a whole batch at the desk; an insert is given the class that is never right."""
    taxonomy, number = store.taxonomy(), 0
    while items := store.queue(reviewer, batch).items:
        trace = items[0].trace_id
        outcome = CLASSES[int(trace[1:]) % 3] if trace in NEW else "abandoned"
        number += 1
        store.record_label(
            LabelDraft(
                client_token=f"{reviewer} {number}", trace_id=trace, reviewer_id=reviewer,
                batch_id=batch, answers=taxonomy.answers_for(outcome), tags=("seen",),
            )
        )  # fmt: skip


@pytest.mark.long
def test_no_number_differs_with_and_without_inserts(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    found = []
    for rate in (0.0, 0.3):
        monkeypatch.setattr(queue, "GOLD_RATE", rate)
        monkeypatch.setattr(queue, "REPEAT_RATE", 0.0)
        store, old, new = make_store(tmp_path / f"{rate}.duckdb")
        for who in ("ann", "ben"):
            work(store, new, who)
        assert (len(store.hidden_item_frame()) > 0) is (rate > 0)
        found.append(numbers(store, old, new))
        store.close()
    assert found[0] == found[1]


@pytest.fixture
def made(tmp_path: Path) -> Iterator[tuple[Store, str, str]]:
    store, old, new = make_store(tmp_path / "made.duckdb")
    label_all(store, new, NEW, "ann")
    yield store, old, new
    store.close()


def test_checks_that_were_made_elsewhere_change_no_number(made: tuple[Store, str, str]) -> None:
    store, old, new = made
    label_all(store, new, NEW, "ben")
    before = numbers(store, old, new)
    for trace in ids(60)[::4]:
        assert check(store, new, trace, "abandoned") == 1
        assert check(store, new, trace, "abandoned") == 0
    assert len(store.hidden_item_frame()) == 15
    assert numbers(store, old, new) == before


def test_a_check_is_held_against_the_own_label_or_consensus(made: tuple[Store, str, str]) -> None:
    store, _, new = made
    check(store, new, NEW[0], "partial_plus")
    check(store, new, OLD[0], "complete")
    check(store, new, OLD[1], "abandoned")
    frame = store.hidden_item_frame()
    assert frame["kind"].tolist() == ["repeat", "gold", "gold"]
    assert frame["against"].tolist() == ["complete"] * 3
    with pytest.raises(InputError, match="no reviewer 'nobody'"):
        check(store, new, OLD[0], "complete", "nobody")
    store.ingest([make_trace("r999")])
    with pytest.raises(InputError, match="nothing to compare a check with"):
        check(store, new, "r999", "complete")
    # What was not blind does not count.
    store.record_exposure("ann", [OLD[2]], "labels")
    check(store, new, OLD[2], "complete")
    (ann,) = (of for of in reviewer_checks(store) if of.reviewer_id == "ann")
    assert (ann.gold.drift.n_hits, ann.gold.drift.n, ann.n_labels) == (1, 2, 30)
    assert (ann.gold.n_not_blind, ann.gold.n_skipped) == (1, 0)
    assert (ann.repeats.drift.n_hits, ann.repeats.drift.n) == (0, 1)
    assert [(m.trace_id, m.kind, m.number, m.against, m.given) for m in ann.missed] == [
        (OLD[1], "gold", 2, "complete", "abandoned"),
        (NEW[0], "repeat", 1, "complete", "partial_plus"),
    ]


@pytest.mark.long
def test_who_drifts_comes_first_and_is_examined_again(built_demo: Path, tmp_path: Path) -> None:
    with Store.open(copy_store(built_demo, tmp_path / "demo.duckdb")) as store:
        first, *others = reviewer_checks(store)
        assert first.name == "Cleo (simulated)"
        (why,) = first.recertify
        assert why.startswith("Self-agreement fell from")
        assert first.repeats.drift.status == "marked"
        assert first.gold.drift.status.startswith("not_estimable: needs")
        assert not any(of.recertify for of in others)
        # A certificate of today begins the checks anew.
        begun = utc_now(), utc_now() + timedelta(days=90)
        again = reviewer_checks(store, certificates={first.reviewer_id: begun})
        assert not any(of.recertify for of in again)
        (cleo,) = (of for of in again if of.reviewer_id == first.reviewer_id)
        assert (cleo.certificate_until, cleo.repeats.drift.n) == (begun[1], 0)


def test_nobody_has_labelled(tmp_path: Path) -> None:
    with Store.open(tmp_path / "empty.duckdb", create=True) as store:
        store.add_reviewer("Ann")
        assert reviewer_checks(store) == ()
