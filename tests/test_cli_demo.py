"""`asr demo`: a store like any other, marked as simulated."""

import json
import subprocess
from pathlib import Path

import pytest

from calibration.analyses.demo import JUDGE
from calibration.analyses.reviewers.adjudication import adjudication_work, serve
from calibration.records import LabelDraft
from calibration.store import Store
from tests.cli_runs import ASR, Run, data, record, write

pytestmark = pytest.mark.usefixtures("few_draws")


@pytest.mark.long
def test_the_demo_reports_beside_the_truth(asr: Run, tmp_path: Path) -> None:
    done = subprocess.run(
        [*ASR, "demo", "--no-serve", "--json", "--seed", "2", "--store", "demo.duckdb"],
        cwd=tmp_path, capture_output=True, text=True, timeout=300, check=True,
    )  # fmt: skip
    assert done.stderr == ""
    shown = json.loads(done.stdout)
    assert shown["simulated"] is True
    assert 0 < shown["truth"] < 1
    assert shown["raw"]["interval"] is None
    for name in ("human_only", "corrected"):
        low, high = shown[name]["interval"]
        assert 0 <= low < shown[name]["value"] < high <= 1
    assert abs(shown["corrected"]["value"] - shown["truth"]) < 0.06
    # The report on its store shows the same limits, and its reference labels lead to the truth.
    store = ["--store", tmp_path / "demo.duckdb"]
    reported = data(asr("report", *store, "--judge", JUDGE, "--json"))
    assert reported["judged"]["human_only"] == shown["human_only"]
    assert reported["fingerprint"] == shown["fingerprint"]
    reference = data(asr("calibrate", *store, "--design", "reference", "--json"))
    low, high = reference["estimates"]["inversion"]["interval"]
    assert low < shown["truth"] < high


@pytest.mark.long
def test_a_lenient_reviewer_is_corrected_by_the_overlap(asr: Run, tmp_path: Path) -> None:
    store = ["--store", tmp_path / "demo.duckdb"]
    shown = data(asr("demo", "--no-serve", "--lenient-reviewer", "--json", *store))
    found = data(asr("calibrate", "--json", *store))
    assert (found["headline"], found["two_phase"]["overlap"]) == ("two_phase", 75)
    assert found["estimates"]["two_phase"] == shown["corrected"]
    assert found["estimates"]["post_stratified"] == shown["without_reviewer_error"]
    # The second of three is lenient: the others are no further from the settled classes than he.
    worst = max(found["reviewers"], key=lambda who: found["reviewers"][who]["value"])
    assert worst.startswith("ben")
    low, high = shown["corrected"]["interval"]
    assert low < shown["truth"] < high
    assert high - low > 1.1 * sum(
        sign * limit
        for sign, limit in zip((-1, 1), shown["without_reviewer_error"]["interval"], strict=True)
    )


def test_a_demo_that_was_cut_off_is_not_served(asr: Run, tmp_path: Path) -> None:
    file = write(tmp_path / "f.jsonl", record("run-0001", simulated=True))
    asr("import", file, "--yes", "--store", "half.duckdb")
    with Store.open(tmp_path / "half.duckdb") as store, store._db.write() as cursor:
        cursor.execute("UPDATE trace SET task_key = 'demo/run-0001'")
    assert "was cut off" in asr("demo", "--store", "half.duckdb", code=1).stderr


@pytest.mark.long
def test_the_demo_has_something_to_do_for_its_lead(
    asr: Run, built_demo: Path, tmp_path: Path
) -> None:
    asr("demo", "--no-serve", "--store", "demo.duckdb")
    store = ["--store", tmp_path / "demo.duckdb"]
    found = data(asr("status", "--json", *store))
    kinds = [(action["kind"], action["n"]) for action in found["next"]]
    assert kinds == [("settle", 2), ("flags", 1), ("drift", 1), ("label", 4)]
    assert [of["n_in_progress"] for of in found["progress"].values()] == [0, 0]
    # What is begun besides is in no rate.
    plain = data(asr("status", "--json", "--store", built_demo))
    assert plain["rate"] == found["rate"]
    assert plain["alpha"] == found["alpha"]
    with Store.open(tmp_path / "demo.duckdb") as opened:
        (lead,) = [person for person in opened.reviewers() if not person.simulated]
        mine = opened.acting_as(lead)
        work = adjudication_work(mine, "production-002", lead.reviewer_id)
        serve(mine, work, lead.reviewer_id)
        own = mine.adjudication_batch(lead.reviewer_id, "production-002")
        assert own is not None
        (item, *_) = mine.queue(lead.reviewer_id, own.batch_id, limit=1).items
        answers = opened.taxonomy().answers_for(opened.taxonomy().success)
        trace_id = item.trace_id
        mine.record_label(
            LabelDraft(
                client_token="blind", trace_id=trace_id, reviewer_id=lead.reviewer_id,
                batch_id=own.batch_id, answers=answers,
            )
        )  # fmt: skip
        opened_one = mine.settlement(lead.reviewer_id, "production-002")
        assert opened_one is not None
        mine.adjudicate(
            trace_id=trace_id, answers=answers, adjudicator=lead.reviewer_id,
            batch_id="production-002", cause="slip", rationale="As the response says.",
            label_events=[label.event_id for label in opened_one.labels],
        )  # fmt: skip
    after = data(asr("status", "--json", *store))
    assert sum(action["n"] for action in after["next"][:2] if action["kind"] != "drift") == 2
    assert after["rate"] == found["rate"]
