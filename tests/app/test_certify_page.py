"""The Certificate page in every state that somebody can be in."""

from dataclasses import replace
from pathlib import Path

import pytest
from streamlit.testing.v1 import AppTest

from app import session
from app.views.certificate import data
from calibration.analyses.reviewers.examinations import Examiner
from calibration.store import Store
from calibration.store.leases import CertificateDemand
from reference_dataset.loader import load_reference
from tests.analyses.examinees import ME, Examinee, set_clock
from tests.app.conftest import OpenApp, press


@pytest.fixture
def anna(store_file: Path, open_app: OpenApp, monkeypatch: pytest.MonkeyPatch) -> Examinee:
    clock = set_clock(monkeypatch)
    monkeypatch.setattr(data, "now", clock)
    Store.open(store_file, create=True).close()
    store = session.open_store(session.store_path())
    store.add_reviewer("Anna")
    store.add_reviewer("Lea", role="lead")
    return Examinee(store, Examiner(dataset=load_reference(), private=frozenset()), clock)


def words(app: AppTest) -> str:
    shown = [*app.header, *app.subheader, *app.text, *app.markdown, *app.caption]
    return "\n".join(str(e.value) for e in shown)


def title(app: AppTest) -> str:
    return str(app.subheader[0].value)


def keys(app: AppTest) -> set[str]:
    return {str(b.key) for b in app.button}


@pytest.mark.parametrize(
    ("n", "said"),
    [
        (70, "You pass with about 61 of 70 right and every class recognised."),
        (3, "You pass when you recognise every class."),
        (0, "You pass when you recognise every class."),
    ],
)
def test_the_rule_names_a_number_where_a_form_can_be_passed(
    anna: Examinee, n: int, said: str
) -> None:
    shipped = load_reference()
    forms = {name: ids[:n] for name, ids in shipped.forms.items()}
    assert data.pass_rule(anna.store, replace(shipped, forms=forms)) == said


def test_practice_then_examination_are_gone_on_with(anna: Examinee, open_app: OpenApp) -> None:
    press(open_app("certify", reviewer=ME), "certificate_practise")
    assert len(anna.store.practice_rounds(ME)) == 1
    app = open_app("certify", reviewer=ME)
    assert "A practice round is open: 0 of 12 labelled." in words(app)
    assert app.button(key="certificate_practise").label == "Continue practising"
    press(app, "certificate_exam")
    assert anna.store.exams_of(ME) == []
    assert "This is attempt 1 of 2." in words(app)
    press(app, "certificate_start")
    (exam,) = anna.store.exams_of(ME)
    assert app.session_state["label_batch"] == exam.batch_id
    app = open_app("certify", reviewer=ME)
    assert title(app) == "Your examination is open"
    assert "0 of 70 traces labelled" in words(app)
    assert "certificate_practise" not in keys(app)
    press(app, "certificate_exam")
    assert len(anna.store.exams_of(ME)) == 1


def test_passed_on_a_public_form_and_ended_later(anna: Examinee, open_app: OpenApp) -> None:
    exam = anna.start()
    assert not open_app(reviewer=ME, plain="true").get("page_link")
    assert "No batch to label" in words(open_app("label", reviewer="lea", batch=exam.batch_id))
    anna.label(exam.batch_id, lambda i: "complete" if i == "research-001" else anna.due(i))
    (link,) = open_app(reviewer=ME, plain="true").get("page_link")
    assert link.proto.label == "See your result on the Certificate page"
    app = open_app("certify", reviewer=ME)  # which settles it
    assert title(app) == "You are certified"
    shown = words(app)
    assert "It was earned on a public form" in shown
    assert "Valid until 01 April 2026" in shown
    assert "You can renew it from 18 March 2026 on." in shown
    assert "certificate_exam" not in keys(app)
    assert "Leniency" in shown
    anna.later(days=91)
    app = open_app("certify", reviewer=ME)
    assert title(app) == "Your certificate has expired"
    assert "certificate_exam" in keys(app)
    row = of_anna(open_app("certify", reviewer="lea"))
    assert (row["certificate"], row["next"]) == ("expired 01 Apr 2026", "an examination")


def test_failed_says_what_next_and_why_on_request(anna: Examinee, open_app: OpenApp) -> None:
    anna.fail()
    app = open_app("certify", reviewer=ME)
    assert title(app) == "You did not pass yet"
    shown = words(app)
    assert "Next: 24 hours must pass between two attempts, and a practice round" in shown
    assert "From 02 January 2026, 12:00 UTC on." in shown
    assert "0.70 is asked for" in shown
    assert "certificate_exam" not in keys(app)
    assert "canonical" not in set(anna.store.exposure_frame()["what"])
    app.selectbox(key="certificate_trace").select_index(0).run()
    assert not app.exception
    (seen,) = anna.store.exposure_frame()["trace_id"]
    assert anna.by.dataset.labels[seen].rationale in words(app)


def test_further_traces_tell_nothing_of_the_form(anna: Examinee, open_app: OpenApp) -> None:
    exam = anna.start()
    anna.sit(exam, anna.wrong(exam, "abandoned", "partial_plus", 3))
    app = open_app("certify", reviewer=ME)
    assert title(app) == "Further traces are open"
    shown = words(app)
    assert "of several classes" in shown
    for told in ("Abandoned", "abandoned", "AC1 against canonical", "Fingerprint"):
        assert told not in shown
    assert not app.metric
    assert "certificate_exam" in keys(app)


def test_a_private_form_that_is_demanded_and_not_there(anna: Examinee, open_app: OpenApp) -> None:
    anna.store.set_certificate_demand(CertificateDemand(form="private"), by="lea")
    app = open_app("certify", reviewer=ME)
    assert "asr reference add FOLDER --name NAME --private" in words(app)
    assert "This team asks for a certificate on a private form" in words(app)
    assert "certificate_exam" not in keys(app)


def test_a_public_one_where_a_private_is_demanded(anna: Examinee, open_app: OpenApp) -> None:
    anna.sit(anna.start())
    anna.store.set_certificate_demand(CertificateDemand(form="private"), by="lea")
    app = open_app("certify", reviewer=ME)
    assert title(app) == "Your certificate is not enough here"
    assert "Next: 24 hours must pass between two attempts" in words(app)
    row = of_anna(open_app("certify", reviewer="lea"))
    assert row["certificate"] == "until 01 Apr 2026, public form: not enough here"


def of_anna(app: AppTest) -> dict[str, object]:
    table = next(d.value for d in app.dataframe if "next" in d.value)
    (row,) = table[table["reviewer"] == "Anna"].to_dict("records")
    return {str(column): value for column, value in row.items()}


def use_up(anna: Examinee) -> None:
    for _ in range(2):
        anna.fail()
        anna.later(hours=25)
        anna.practise()


def test_an_allowed_attempt_waits_for_enough_traces(anna: Examinee, open_app: OpenApp) -> None:
    anna.store.add_reviewer("Ben")
    use_up(anna)
    use_up(replace(anna, who="ben"))
    app = open_app("certify", reviewer="lea")
    assert "2 people have used up both attempts" in words(app)
    assert "Anna could not start yet: a further attempt needs 40 adjudicated" in words(app)
    row = of_anna(app)
    assert (row["attempts"], row["next"]) == (2, "waits for a lead")
    press(app, "certificate_allow_it")
    assert "needs a reason" in words(app)
    app.text_input(key="certificate_reason").input("She was ill.")
    press(app, "certificate_allow_it")
    assert len(anna.store.attempts_allowed(ME)) == 1
    assert "Anna is allowed another attempt." in words(app)
    assert "Ben has used up both attempts and waits for a lead" in words(app)
    # A reason for one is not kept for the next.
    assert app.selectbox(key="certificate_who").value == "ben"
    assert app.text_input(key="certificate_reason").value == ""
    assert of_anna(app)["next"] == "allowed; too few adjudicated traces"
    app = open_app("certify", reviewer=ME)
    assert "A lead has allowed you another attempt.\nA further attempt needs 40" in words(app)
    assert "certificate_exam" not in keys(app)


def test_who_is_certified_can_be_examined_again(anna: Examinee, open_app: OpenApp) -> None:
    anna.sit(anna.start())
    anna.later(hours=2)
    app = open_app("certify", reviewer="lea")
    assert "Nobody is waiting for another attempt." in words(app)
    (who,) = app.selectbox(key="certificate_who").options
    assert who == "Anna (certified: would be examined again)"
    assert "could not start yet" not in words(app)
    app.text_input(key="certificate_reason").input("Fell on silent gold.")
    press(app, "certificate_allow_it")
    shown = words(open_app("certify", reviewer=ME))
    assert "A lead allows you another examination" in shown
    assert "Next: 24 hours must pass between two attempts" in shown
    anna.later(hours=25)
    anna.practise()
    app = open_app("certify", reviewer=ME)
    assert title(app) == "You are certified"
    assert "certificate_exam" in keys(app)


def test_the_label_page_asks_for_the_certificate(anna: Examinee, open_app: OpenApp) -> None:
    some = next(iter(anna.by.dataset.traces.values()))
    ids = anna.store.ingest([replace(some, trace_id="own", source_id="own")]).imported
    anna.store.add_batch(purpose="production", trace_ids=ids, certificate="any")
    for query in ({}, {"plain": "true"}):
        app = open_app(reviewer=ME, **query)
        assert "This batch asks for a certificate" in words(app)
        assert "take the examination on the Certificate page" in words(app)
