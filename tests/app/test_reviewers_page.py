"""The Reviewers page, and what the desk sends of an insert."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from streamlit.testing.v1 import AppTest

from app import session
from app.desk.data import desk_data
from app.desk.events import Receipts, apply_events
from app.views.certificate import data
from calibration.analyses.reviewers.examinations import Examiner
from calibration.records import Reviewer
from calibration.store import queue
from reference_dataset.loader import load_reference
from tests.analyses.examinees import Examinee, set_clock
from tests.analyses.worlds import make_world as make_small
from tests.app.conftest import OpenApp, figures, opened, texts
from tests.store.builders import COMPLETE
from tests.store.inserts import World, make_world

VIEW = Path(__file__).parents[2] / "app" / "views" / "reviewers" / "page.py"


def test_a_lead_sees_how_each_one_agrees_and_what_certificate_they_have(
    store_file: Path, open_app: OpenApp, monkeypatch: pytest.MonkeyPatch
) -> None:
    clock = set_clock(monkeypatch)
    monkeypatch.setattr(data, "now", clock)
    made = make_small(store_file)
    made.store.add_reviewer("Lea", role="lead")
    given = dict.fromkeys(made.drawn[:4], "complete")
    made.label("Ann", given)
    made.label("Ben", given | {made.drawn[0]: "abandoned"})
    made.label("Cy", {made.drawn[5]: "complete"})
    by = Examiner(dataset=load_reference(), private=frozenset())
    ann, ben, cy = (Examinee(made.store, by, clock, who=who) for who in ("ann", "ben", "cy"))
    ben.sit(ben.start())
    clock.forward(days=85)
    ann.sit(ann.start())
    clock.forward(days=10)
    ben.start()
    cy.start()
    made.store.close()
    app = opened(open_app("reviewers", reviewer="lea"), "reviewers_all")
    assert figures(app)["Least agreement with others"] == "75.0 %"
    assert "No quality checks yet: only the agreement with the others is known." in texts(app)
    (table,) = (f.value.set_index("reviewer") for f in app.dataframe if "beside" in f.value)
    # Ann and Ben agree on 3 of 4.
    assert table["beside"]["Ann"].startswith("75.0 % [")
    assert table["beside"]["Ann"].endswith("], n = 4")
    assert table["beside"]["Cy"] == "not estimable"
    assert "Cy: not estimable: this rater shared no item with another" in texts(app)
    assert table["certificate"].to_dict() == {
        "Ann": "until 25 Jun 2026", "Ben": "expired 01 Apr 2026; being examined",
        "Cy": "being examined",
    }  # fmt: skip
    assert table["gold"]["Cy"] == "no check yet"


@pytest.mark.long
def test_missed_checks_that_a_lead_was_shown_are_noted(demo_store: Path, open_app: OpenApp) -> None:
    app = open_app("reviewers", reviewer="lea")
    # Closed sections show no check, work nothing out, and expose nobody.
    assert session.open_store(demo_store).exposure_frame().empty
    opened(app, "reviewers_time")
    (missed,) = (f.value for f in app.dataframe if "right class" in f.value)
    shown = set(missed["trace"])
    frame = session.open_store(demo_store).exposure_frame()
    mine = frame[frame["reviewer_id"] == "lea"]
    assert shown <= set(mine["trace_id"])


def test_a_reviewer_sees_nothing_of_it(demo_store: Path) -> None:
    app = AppTest.from_file(VIEW, default_timeout=20)
    app.query_params["reviewer"] = "rea"
    app.run()
    assert not app.dataframe
    assert "Cleo" not in texts(app)


# What the desk sends of an insert.


@pytest.fixture
def world(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[World]:
    monkeypatch.setattr(queue, "GOLD_RATE", 0.25)
    monkeypatch.setattr(queue, "REPEAT_RATE", 0.25)
    made = make_world(tmp_path / "world.duckdb")
    yield made
    made.store.close()


def shape(value: Any) -> Any:
    """Return what a value is made of, without what it says."""
    if isinstance(value, dict):
        return {key: shape(of) for key, of in value.items()}
    if isinstance(value, list):
        return [shape(of) for of in value[:1]]
    return type(value).__name__


@pytest.mark.long
def test_what_is_sent_of_an_insert_is_what_is_sent_of_every_trace(world: World) -> None:
    """The whole traffic of a batch, answer by answer: inserts and traces look and count alike."""
    ann, batch, receipts = Reviewer(reviewer_id="ann", name="Ann"), world.desk.batch, Receipts()
    traces: dict[str, Any] = {}
    answers: list[dict[str, Any]] = []
    number = 0
    while True:
        receipts.listing = True
        sent = desk_data(world.store, ann, batch, receipts)
        if not sent["queue"]:
            break
        answers.append(sent)
        traces |= {trace["trace_id"]: shape(trace) for trace in sent["queue"]}
        (first, *_) = (trace["trace_id"] for trace in sent["queue"])
        number += 1
        event = {
            "token": f"t{number}", "kind": "label", "trace_id": first, "answers": COMPLETE,
            "seconds_active": 30.0, "tags": ["late"] if number > 5 else [],
        }  # fmt: skip
        apply_events(world.store, "ann", batch, [event], receipts)
        assert not receipts.refused
        assert desk_data(world.store, ann, batch, receipts)["acked"] == [event["token"]]
    put_in = world.put_in()
    assert len(put_in) > 10
    assert len({str(of) for of in traces.values()}) == 1
    for place, sent in enumerate(answers):
        # Nothing but the number of decisions tells one answer from the next.
        assert sent["progress"] == {"done": place, "skipped": 0, "total": len(answers)}
        assert sent["batch"] == batch
        assert (sent["last"] is None) is (place == 0)
        assert len(sent["own_labels"] or []) == place
        assert sent["tags"] == (["late"] if place > 5 else [])
        assert sent["pace_s"] == (30.0 if place >= 5 else None)
        assert sent["state"] == "open"
        assert sent["purpose"] == "production"
    # The catalogue of failure patterns is the same for everybody, and speaks of repeated calls.
    said = repr([sent | {"guide": sent["guide"] | {"patterns": None}} for sent in answers])
    for word in ("inserted", "gold", "repeat", "production-001", "production-002"):
        assert word not in said
