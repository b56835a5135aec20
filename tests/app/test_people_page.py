"""The People page: who is added, what they may, how they sign in."""

from pathlib import Path

import pytest
from streamlit.testing.v1 import AppTest

from app import frame, session
from calibration.store import Claims, Store, sign_in
from tests.app.conftest import OpenApp, press, texts
from tests.stores import hashing_quickly

GOOD = "correct horse battery"


@pytest.fixture
def store(store_file: Path) -> Store:
    with Store.open(store_file, create=True) as made:
        made.add_reviewer("Ada", role="admin")
        made.add_reviewer("Rea")
    return hashing_quickly(session.open_store(store_file))


@pytest.fixture
def people(store: Store, open_app: OpenApp) -> AppTest:
    return open_app("people", reviewer="ada")


def choose(app: AppTest, who: str) -> AppTest:
    app.selectbox(key="people_who").select(who).run()
    return app


def test_people_are_added_and_a_bad_name_is_refused(people: AppTest, store: Store) -> None:
    people.text_input(key="people_name").input("Lea ![x](http://evil.test/x.png)")
    people.selectbox(key="people_role").select("lead")
    press(people, "people_add_now")
    assert "is added, as lead." in texts(people)
    people.text_input(key="people_name").input("!!!")
    press(people, "people_add_now")
    assert "reviewer name must have" in texts(people)
    people.text_input(key="people_name").input("rea")
    press(people, "people_add_now")
    assert "Rea is there already, as reviewer" in texts(people)
    assert len(store.reviewers()) == 3


def test_a_passphrase_is_made_up_and_stays_until_it_is_noted(people: AppTest, store: Store) -> None:
    press(choose(people, "rea"), "people_generate_rea")
    assert "The passphrase of Rea, shown only once." in texts(people)
    made = people.code[0].value.rpartition("Passphrase: ")[2]
    assert store.verify_sign_in("Rea", made, "127.0.0.1")
    choose(people, "ada")
    assert people.code[0].value.endswith(made)
    press(people, "people_noted")
    assert made not in texts(people)


def test_a_typed_passphrase_is_set_or_refused_unseen(people: AppTest, store: Store) -> None:
    for typed, said in (("short", "12 to 200 characters, got 5"), (GOOD, "has a new passphrase")):
        choose(people, "rea").text_input(key="people_typed_passphrase_rea").input(typed)
        press(people, "people_set_rea")
        assert said in texts(people)
        assert typed not in texts(people)
    assert store.verify_sign_in("Rea", GOOD, "127.0.0.1")
    press(people, "people_take_rea")
    assert "Rea cannot sign in any more." in texts(people)
    assert not any(a.has_passphrase for a in store.access())


def test_a_role_is_changed_and_the_last_admin_keeps_it(people: AppTest, store: Store) -> None:
    choose(people, "rea").radio(key="people_role_of_rea").set_value("admin").run()
    press(people, "people_role_now_rea")
    assert "Rea is admin now" in texts(people)
    store.set_role("rea", "reviewer")
    choose(people, "ada").radio(key="people_role_of_ada").set_value("lead").run()
    press(people, "people_role_now_ada")
    assert "ada is the only admin" in texts(people)


def test_identities_are_closed_from_the_page(
    people: AppTest, store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(session, "_token", lambda: "")
    assert "whoever opens the app picks who they are" in texts(people)
    press(people, "people_close")
    assert store.identities() == sign_in.PASSPHRASE
    assert "nobody can yet" in texts(people)


def test_an_admin_is_told_before_they_give_up_their_own_role(people: AppTest, store: Store) -> None:
    assert "This is your own role" not in texts(people)
    choose(people, "rea").radio(key="people_role_of_rea").set_value("lead").run()
    assert "This is your own role" not in texts(people)
    store.add_reviewer("Eva", role="admin")
    choose(people, "ada").radio(key="people_role_of_ada").set_value("lead").run()
    assert "This is your own role: this page closes for you" in texts(people)
    press(people, "people_role_now_ada")
    assert [r.role for r in store.reviewers() if r.reviewer_id == "ada"] == ["lead"]
    assert "Change a person" not in [h.value for h in people.subheader]


def test_the_longest_name_is_taken_and_a_longer_one_refused(people: AppTest, store: Store) -> None:
    assert people.text_input(key="people_name").proto.max_chars == 80
    for number in range(58):
        store.add_reviewer(f"Person {number:02d}")
    store.add_reviewer("N" * 80)
    choose(people.run(), "n" * 80)
    made = people.button(key=f"people_generate_{'n' * 80}").label
    assert made == f"Generate passphrase for {'N' * 27}…"
    # Many people do not fill the page.
    assert "61 people: 60 reviewers, 0 leads, 1 admin." in texts(people)
    assert not people.table
    assert len(people.dataframe[0].value) == 61
    # A name on a button stays a name.
    assert frame.plain("Zoë O'Hara-Lind …") == "Zoë O'Hara-Lind …"
    assert frame.plain("*a* [b](c) :d: \\") == r"\*a\* \[b\]\(c\) \:d\: \\"


def test_people_are_linked_to_the_identity_provider_where_they_sign_in_by_it(
    store: Store, open_app: OpenApp, monkeypatch: pytest.MonkeyPatch
) -> None:
    store.link("ada", email="ada@example.org")
    store.set_identities("oidc")
    claims = Claims("https://login.example.org", "a-1", email="ada@example.org")
    token = store.sign_in_by_provider(claims, "127.0.0.1")
    monkeypatch.setattr(session, "_token", lambda: token)
    people = open_app("people")
    assert "People sign in with their identity provider." in texts(people)
    assert not [b for b in people.button if str(b.key).startswith("people_generate")]
    for typed, said in (
        ("rea", "'rea' is not an email address"),
        ("ada@example.org", "is linked to 'ada'"),
        ("rea@example.org ", "Rea signs in as rea@example.org from now on."),
    ):
        choose(people, "rea").text_input(key="people_email_rea").input(typed)
        press(people, "people_link_now_rea")
        assert said in texts(people)
    assert list(people.table[0].value["at the identity provider"]) == [
        "ada@example.org", "rea@example.org (not used yet)",
    ]  # fmt: skip
    press(choose(people, "ada"), "people_unlink_ada")
    assert "ada is the only admin" in texts(people)
    press(choose(people, "rea"), "people_unlink_rea")
    assert "Rea cannot sign in any more." in texts(people)
    assert [a.link for a in store.access()] == ["ada@example.org", None]
