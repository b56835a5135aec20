"""Who of the identity provider is which person: links, roles by a claim, and what is refused."""

import json

import pytest

from calibration.errors import InputError, NotAllowedError, SignInError
from calibration.store import Claims, Store
from calibration.store.database import SECRET
from calibration.store.store import publish
from tests.store.builders import query

ISSUER, HERE, GOOD = "https://login.example.org", "192.0.2.7", "correct horse battery"
ADA = Claims(ISSUER, "a-1", name="Ada", email="ada@example.org")


@pytest.fixture
def team(store: Store) -> Store:
    """A store whose people sign in by the provider; Ada is linked, Rea is not."""
    store.add_reviewer("Ada", role="admin")
    store.add_reviewer("Rea")
    store.link("ada", email="Ada@Example.org ")
    store.set_identities("oidc")
    return store


def role(store: Store, reviewer_id: str) -> str:
    return {r.reviewer_id: r.role for r in store.reviewers()}[reviewer_id]


def trail(store: Store, what: str) -> list[dict[str, str]]:
    frame = store.audit_trail(what=what)
    return [json.loads(text) for text in frame["detail"]][::-1]


def test_identities_need_an_admin_who_can_sign_in_by_the_provider(store: Store) -> None:
    store.add_reviewer("Ada", role="admin")
    store.add_reviewer("Rea")
    store.set_passphrase("ada", GOOD)
    store.link("rea", email="rea@example.org")
    with pytest.raises(InputError, match="no admin could sign in by the identity provider"):
        store.set_identities("oidc")
    with pytest.raises(InputError, match="makes nobody an admin: set ASR_OIDC_ADMINS"):
        store.set_identities("oidc", admins_by_claim=False)
    store.link("ada", email="ada@example.org")
    with pytest.raises(InputError, match="makes nobody an admin"):
        store.set_identities("oidc", admins_by_claim=False)
    token = store.verify_sign_in("Ada", GOOD, HERE)
    store.set_identities("oidc")
    assert store.person_of_session(token) is None
    assert (store.sign_in_is_configured(), store.wants_first_admin()) == (True, False)
    with pytest.raises(SignInError, match="sign in with their identity provider"):
        store.verify_sign_in("Ada", GOOD, HERE)
    with pytest.raises(NotAllowedError):
        store.make_first_admin("Eve", GOOD)
    store.take_passphrase("ada")
    with pytest.raises(InputError, match="2 of this store's people sign in with an identity prov"):
        store.set_identities("open")
    store.set_identities("oidc", admins_by_claim=True)


def test_the_first_sign_in_binds_the_subject_and_nothing_else_opens(team: Store) -> None:
    token = team.sign_in_by_provider(ADA, HERE)
    person = team.person_of_session(token)
    assert person is not None
    assert (person.reviewer_id, person.role) == ("ada", "admin")
    moved = Claims(ISSUER, "a-1", name="Eva", email=None)
    assert team.sign_in_by_provider(moved, HERE)
    for other in (
        Claims(ISSUER, "a-2", email="ada@example.org"),
        Claims("https://other.example.org", "a-1", email="ada@example.org"),
        Claims(ISSUER, "a-2", name="Ada"),
        Claims(ISSUER, "", email=None),
    ):
        with pytest.raises(SignInError, match="You are not known here"):
            team.sign_in_by_provider(other, HERE)
    assert len(team.reviewers()) == 2
    assert trail(team, "first sign-in by provider") == [{"reviewer_id": "ada", "issuer": ISSUER}]
    assert query(team, "SELECT count(*) FROM sign_in WHERE succeeded") == [(2,)]
    (ada,) = [a for a in team.access() if a.person.reviewer_id == "ada"]
    assert (ada.link, ada.has_used_link) == ("ada@example.org", True)
    assert ada.last_sign_in is not None


def test_a_link_by_subject_and_a_link_that_replaces_another(team: Store) -> None:
    team.sign_in_by_provider(ADA, HERE)
    team.link("rea", subject="r-1")
    token = team.sign_in_by_provider(Claims(ISSUER, "r-1"), HERE)
    team.link("rea", email="rea@example.org")
    assert team.person_of_session(token) is None
    with pytest.raises(SignInError):
        team.sign_in_by_provider(Claims(ISSUER, "r-1"), HERE)
    assert team.sign_in_by_provider(Claims(ISSUER, "r-9", email="REA@example.org"), HERE)
    assert query(team, "SELECT count(*) FROM provider_link WHERE reviewer_id = 'rea'") == [(4,)]


def test_links_that_cannot_be_are_refused(team: Store) -> None:
    team.add_reviewer("Robo", simulated=True)
    for who, given, said in (
        ("rea", {"email": "ada@example.org"}, "is linked to 'ada'"),
        ("rea", {"email": "ada"}, "is not an email address"),
        ("rea", {"email": "a b@example.org"}, "is not an email address"),
        ("rea", {"subject": " "}, "a subject has 1 to 255 characters"),
        ("rea", {}, "either an email address or a subject"),
        ("rea", {"email": "r@example.org", "subject": "r"}, "either an email address or a subject"),
        ("zoe", {"email": "z@example.org"}, "there is nobody called 'zoe'"),
        ("robo", {"email": "r@example.org"}, "simulated"),
    ):
        with pytest.raises(InputError, match=said):
            team.link(who, **given)
    before = query(team, "SELECT count(*) FROM provider_link")
    team.link("ada", email="ada@example.org")
    assert query(team, "SELECT count(*) FROM provider_link") == before


def test_the_only_admin_keeps_link_and_role(team: Store) -> None:
    with pytest.raises(NotAllowedError, match=r"the only admin; .* with a link"):
        team.unlink("ada")
    with pytest.raises(NotAllowedError, match="the only admin"):
        team.set_role("ada", "lead")
    team.set_role("rea", "admin")
    with pytest.raises(NotAllowedError, match="the only admin"):
        team.unlink("ada")
    team.link("rea", email="rea@example.org")
    token = team.sign_in_by_provider(ADA, HERE)
    team.unlink("ada")
    assert team.person_of_session(token) is None
    with pytest.raises(SignInError, match=r"You are not known here, as ada@example\.org"):
        team.sign_in_by_provider(ADA, HERE)
    assert trail(team, "unlinked") == [{"reviewer_id": "ada", "by": None}]


def test_a_claim_gives_and_takes_roles(team: Store) -> None:
    lead = Claims(ISSUER, "a-1", email="ada@example.org", role="lead", decides_roles=True)
    token = team.sign_in_by_provider(lead, HERE)
    page = team.of_session(token)
    assert page is not None
    assert role(team, "ada") == "lead"
    none = Claims(ISSUER, "a-1", decides_roles=True)
    with pytest.raises(SignInError, match="None of your groups has a role here"):
        team.sign_in_by_provider(none, HERE)
    assert role(team, "ada") == "reviewer"
    with pytest.raises(NotAllowedError, match="your session has ended"):
        page.workflows()
    assert [(d["before"], d["after"], d["by"]) for d in trail(team, "role")] == [
        ("admin", "lead", "identity provider"), ("lead", "reviewer", "identity provider"),
    ]  # fmt: skip
    with pytest.raises(SignInError, match="None of your groups"):
        team.sign_in_by_provider(Claims(ISSUER, "x", name="Eve", decides_roles=True), HERE)
    assert len(team.reviewers()) == 2


def test_a_claim_adds_people_but_never_as_somebody_who_is_there(team: Store) -> None:
    new = Claims(ISSUER, "n-1", name=" Noa  Berg ", role="reviewer", decides_roles=True)
    for _ in range(2):
        team.sign_in_by_provider(new, HERE)
    assert [r.name for r in team.reviewers()] == ["Ada", "Noa Berg", "Rea"]
    assert trail(team, "added by provider") == [{"reviewer_id": "noa-berg", "role": "reviewer"}]
    for name in ("rea", "ADA", "Noa Berg"):
        with pytest.raises(SignInError, match="is here already"):
            team.sign_in_by_provider(
                Claims(ISSUER, "e-1", name=name, role="admin", decides_roles=True), HERE
            )
    for name in ("", "!!!"):
        with pytest.raises(SignInError, match="You are not known here, as subject e-1"):
            team.sign_in_by_provider(
                Claims(ISSUER, "e-1", name=name, role="admin", decides_roles=True), HERE
            )
    long = Claims(ISSUER, "l-1", name="N" * 300, role="reviewer", decides_roles=True)
    assert team.sign_in_by_provider(long, HERE)
    assert role(team, "ada") == "admin"


def test_who_people_are_at_the_provider_is_in_no_snapshot_and_no_audit_trail(team: Store) -> None:
    team.sign_in_by_provider(ADA, HERE)
    assert "provider_link" in SECRET
    assert b"ada@example.org" not in publish(team._db).read_bytes()
    assert "ada@example.org" not in str(team.audit_trail().to_dict("records"))
