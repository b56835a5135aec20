"""Signing in with an identity provider, as requests and a local provider meet it."""

import html
import os
import re
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import parse_qsl, urlsplit

import pytest
import streamlit as st
from itsdangerous import URLSafeTimedSerializer
from joserfc import jwt
from joserfc.jwk import OctKey

from app import asgi, session
from app.access import oidc
from calibration.errors import InputError
from calibration.store import Store
from tests.app.test_sign_in import GOOD, SECRET, Answer, ask, sign
from tests.identity_provider import (
    CLIENT_ID,
    CLIENT_SECRET,
    COOKIE_SECRET,
    FORGED,
    IdentityProvider,
    running_provider,
)

pytestmark = pytest.mark.long  # a server of its own, with its waits

REDIRECT = "http://localhost:8501/oauth2callback"
MARA = {"sub": "m-1", "name": "Mara Lind", "email": "Mara@Example.org", "email_verified": True}
SETTINGS = {
    "ASR_OIDC_ROLE_CLAIM": "groups", "ASR_OIDC_ADMINS": "asr-admins",
    "ASR_OIDC_LEADS": "asr-leads, quality", "ASR_OIDC_REVIEWERS": "asr-reviewers",
    "ASR_OIDC_NAME": "Example Login",
}  # fmt: skip


@pytest.fixture(scope="module")
def provider_process() -> Iterator[IdentityProvider]:
    with running_provider() as provider:
        yield provider


@pytest.fixture
def provider(
    provider_process: IdentityProvider, monkeypatch: pytest.MonkeyPatch
) -> Iterator[IdentityProvider]:
    """Return the provider that the settings name, where Mara is about to sign in."""
    made = provider_process
    made.person, made.user_info, made.refuses = dict(MARA), {}, ""
    made.forge, made.sign = (lambda claims: claims), made.signed
    monkeypatch.setattr(st, "secrets", {"auth": made.settings(REDIRECT)})
    oidc.provider.cache_clear()
    yield made
    oidc.provider.cache_clear()


@pytest.fixture
def served(store_file: Path, provider: IdentityProvider) -> Store:
    """Return the store of the server: people sign in by the provider, and Mara is its admin."""
    with Store.open(store_file, create=True) as made:
        made.add_reviewer("Mara Lind", role="admin")
        made.add_reviewer("Rea")
        made.link("mara-lind", email="mara@example.org")
        made.set_identities("oidc")
    return session.open_store(store_file)


@pytest.fixture
def claimed(served: Store, monkeypatch: pytest.MonkeyPatch) -> Store:
    """Let the claim `groups` decide on roles."""
    for name, value in SETTINGS.items():
        monkeypatch.setenv(name, value)
    return served


def begin(to: str = "/agreement") -> tuple[str, str]:
    """Press the button; return the address at the provider, and the cookie of this browser."""
    answer = ask("POST", "/sign-in/provider", {"next": to})
    assert answer.status == 200, answer.body
    assert "HttpOnly" in answer.headers["set-cookie"]
    assert "samesite=lax" in answer.headers["set-cookie"].lower()
    found = re.search(r'http-equiv="refresh" content="0; url=([^"]+)"', answer.body)
    assert found is not None
    return html.unescape(found[1]), answer.headers["set-cookie"].partition(";")[0]


def back(provider: IdentityProvider, address: str) -> str:
    """Return where the provider sends the browser back to."""
    asked = urlsplit(address)
    assert f"{asked.scheme}://{asked.netloc}{asked.path}" == f"{provider.issuer}/authorize"
    sent = urlsplit(provider.authorize(dict(parse_qsl(asked.query))))
    return f"{sent.path}?{sent.query}"


def come(provider: IdentityProvider) -> Answer:
    """Sign in as a browser does, and return the answer to the callback."""
    address, cookie = begin()
    return ask("GET", back(provider, address), cookie=cookie, origin=None)


def refusal(provider: IdentityProvider) -> str:
    """Come back from the provider, and return why nobody was let in."""
    answer = come(provider)
    assert answer.status in (403, 502), answer.body
    assert "asr_session" not in answer.headers["set-cookie"]
    found = re.search(r'role="alert"[^>]*>([^<]+)<', answer.body)
    assert found is not None
    return html.unescape(found[1])


# The way


def test_the_page_has_one_button_and_no_passphrase(
    served: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    answer = ask("GET", "/sign-in?next=/agreement")
    assert re.findall(r"<button[^>]*>([^<]+)<", answer.body) == [
        "Sign in with your identity provider"
    ]
    monkeypatch.setenv("ASR_OIDC_NAME", "<Example>")
    assert "Sign in with &lt;Example&gt;" in ask("GET", "/sign-in").body
    assert 'type="password"' not in answer.body
    assert 'name="name"' not in answer.body
    assert ask("GET", "/agreement").headers["location"] == "/sign-in?next=%2Fagreement"


def test_somebody_goes_to_the_provider_comes_back_and_is_in(
    served: Store, provider: IdentityProvider
) -> None:
    address, cookie = begin()
    asked = dict(parse_qsl(urlsplit(address).query))
    assert asked["client_id"] == CLIENT_ID
    assert asked["redirect_uri"] == REDIRECT
    assert set(asked["scope"].split()) == {"openid", "email", "profile"}
    assert asked["prompt"] == "select_account"
    answer = ask("GET", back(provider, address), cookie=cookie, origin=None)
    assert answer.status == 200
    assert 'content="0; url=/agreement"' in answer.body
    assert "form-action 'self'" in answer.headers["content-security-policy"]
    given = answer.headers["set-cookie"].lower()
    assert "httponly; max-age=604800; path=/; samesite=strict" in given
    person = served.person_of_session(answer.cookie)
    assert person is not None
    assert (person.reviewer_id, person.role) == ("mara-lind", "admin")
    assert ask("GET", "/agreement", cookie=answer.cookie).body == SECRET
    ask("POST", "/sign-out", {}, cookie=answer.cookie)
    assert ask("GET", "/agreement", cookie=answer.cookie).status == 303


def test_the_second_time_the_subject_counts_and_not_the_address(
    served: Store, provider: IdentityProvider
) -> None:
    assert come(provider).status == 200
    provider.person |= {"email": "mara.new@example.org", "email_verified": False}
    assert come(provider).status == 200
    # Whoever is given her address later is somebody else.
    provider.person = {**MARA, "sub": "m-2"}
    assert "You are not known here, as Mara@Example.org" in refusal(provider)


def test_an_address_that_nobody_has_verified_counts_for_nothing(
    served: Store, provider: IdentityProvider
) -> None:
    for verified in (False, None, "false", 1.5):
        provider.person["email_verified"] = verified
        assert "You are not known here, as subject m-1. Ask an admin" in refusal(provider)
    served.link("mara-lind", subject="m-1")
    assert come(provider).status == 200


def test_what_the_token_lacks_is_read_from_the_user_info_of_the_same_person(
    served: Store, provider: IdentityProvider
) -> None:
    provider.person, provider.user_info = {"sub": "m-1"}, {**MARA, "sub": "other"}
    assert "You are not known here, as subject m-1" in refusal(provider)
    provider.user_info = dict(MARA)
    assert come(provider).status == 200


def test_passphrases_open_nothing(served: Store) -> None:
    served.set_passphrase("rea", GOOD)
    answer = sign("Rea")
    assert (answer.status, answer.cookie) == (403, "")
    assert "People sign in with their identity provider here." in answer.body
    first = {"form": "first", "name": "Eve", "new": GOOD, "again": GOOD, "token": "x"}
    assert ask("POST", "/sign-in", first).cookie == ""
    assert ask("GET", "/passphrase").status == 303


@pytest.mark.parametrize("mode", ["passphrase", "open"])
def test_where_people_sign_in_otherwise_the_provider_opens_nothing(
    served: Store, provider: IdentityProvider, mode: str
) -> None:
    address, cookie = begin()
    served.unlink("rea")
    if mode == "passphrase":
        served.set_identities(mode)
    else:
        with pytest.raises(InputError, match="sign in with an identity provider"):
            served.set_identities(mode)
        return
    answer = ask("GET", back(provider, address), cookie=cookie, origin=None)
    assert (answer.status, answer.headers["location"]) == (303, "/sign-in")
    assert "set-cookie" not in answer.headers
    assert ask("POST", "/sign-in/provider", {}).status == 303


# Roles


def test_the_highest_role_of_the_claim_counts_at_every_sign_in(
    claimed: Store, provider: IdentityProvider
) -> None:
    provider.person |= {"groups": ["staff", "asr-reviewers", "quality"]}
    token = come(provider).cookie
    person = claimed.person_of_session(token)
    assert person is not None
    assert person.role == "lead"
    provider.person |= {"groups": "asr-admins"}
    assert come(provider).status == 200
    assert claimed.acting_as(claimed.reviewers()[0]).actor == claimed.reviewers()[0]
    assert {r.reviewer_id: r.role for r in claimed.reviewers()}["mara-lind"] == "admin"


def test_a_role_that_is_taken_away_is_gone_and_so_are_the_sessions(
    claimed: Store, provider: IdentityProvider
) -> None:
    provider.person |= {"groups": ["asr-admins"]}
    token = come(provider).cookie
    assert claimed.person_of_session(token) is not None
    for groups in ([], ["staff"], None, {"asr-admins": True}, [["asr-admins"]], 7):
        provider.person |= {"groups": groups}
        assert "None of your groups has a role here." in refusal(provider)
    assert claimed.person_of_session(token) is None
    assert {r.reviewer_id: r.role for r in claimed.reviewers()}["mara-lind"] == "reviewer"


def test_new_people_come_by_a_claim_only_and_under_no_name_that_is_taken(
    claimed: Store, provider: IdentityProvider, monkeypatch: pytest.MonkeyPatch
) -> None:
    provider.person = {"sub": "n-1", "name": "Noa  Berg", "groups": ["asr-reviewers"]}
    token = come(provider).cookie
    person = claimed.person_of_session(token)
    assert person is not None
    assert (person.reviewer_id, person.name, person.role) == ("noa-berg", "Noa Berg", "reviewer")
    provider.person = {"sub": "r-1", "name": "REA", "groups": ["asr-admins"]}
    assert (
        "Somebody called 'REA' is here already. If that is you, ask an admin to link you: "
        'asr people add "REA" --subject r-1'
    ) in refusal(provider)
    provider.person = {"sub": "r-2", "groups": ["asr-admins"]}
    assert "You are not known here, as subject r-2" in refusal(provider)
    for name in SETTINGS:
        monkeypatch.delenv(name)
    oidc.provider.cache_clear()
    provider.person = {"sub": "n-2", "name": "Tom", "groups": ["asr-reviewers"]}
    assert "You are not known here, as subject n-2" in refusal(provider)
    assert len(claimed.reviewers()) == 3


# Forgeries and faults


def test_a_forged_or_stale_callback_opens_nothing(
    served: Store, provider: IdentityProvider, monkeypatch: pytest.MonkeyPatch
) -> None:
    address, cookie = begin()
    path = back(provider, address)
    code = dict(parse_qsl(urlsplit(path).query))["code"]
    name, _, value = cookie.partition("=")
    forged = URLSafeTimedSerializer("x" * 40, salt="asr sign-in").dumps({"state": "s"})
    _, of_another = begin()
    for sent, browser in (
        (path, ""),
        (path, of_another),
        (path, f"{name}={value[:-3]}xxx"),
        (f"/oauth2callback?code={code}&state=s", f"{name}={forged}"),
        (f"/oauth2callback?code={code}&state=other", cookie),
        (f"/oauth2callback?code={code}", cookie),
        ("/oauth2callback", cookie),
        ("/oauth2callback?error=access_denied&state=other", cookie),
    ):
        answer = ask("GET", sent, cookie=browser, origin=None)
        assert answer.status == 403, sent
        assert "This sign-in was started in another browser" in answer.body
        assert "asr_session" not in answer.headers["set-cookie"]
    monkeypatch.setattr(oidc, "GOOD_FOR_S", -1)
    assert ask("GET", path, cookie=cookie, origin=None).status == 403
    monkeypatch.undo()
    assert code in provider.begun


def test_a_code_is_good_once(served: Store, provider: IdentityProvider) -> None:
    address, cookie = begin()
    path = back(provider, address)
    answer = ask("GET", path, cookie=cookie, origin=None)
    assert answer.status == 200
    assert 'asr_sign_in=""' in answer.headers["set-cookie"]
    assert ask("GET", path, cookie=cookie, origin=None).status == 403


NOW = int(time.time())


FORGED_CLAIMS: tuple[dict[str, Any], ...] = (
    {"aud": "another-client"}, {"aud": ["another-client"]}, {"aud": None},
    {"iss": "https://evil.example"}, {"iss": None}, {"nonce": "of another sign-in"},
    {"nonce": None}, {"azp": "another-client"}, {"sub": None}, {"sub": ""}, {"exp": None},
    {"aud": "another-client", "azp": CLIENT_ID},
)  # fmt: skip
WRONG_TIMES: tuple[dict[str, Any], ...] = (
    {"exp": NOW - 600}, {"iat": NOW + 6000, "exp": NOW + 7000}, {"nbf": NOW + 6000},
)  # fmt: skip


def test_a_token_for_others_or_of_another_time_opens_nothing(
    served: Store, provider: IdentityProvider
) -> None:
    change: dict[str, Any] = {}
    provider.forge = lambda claims: {k: v for k, v in (claims | change).items() if v is not None}
    for change in FORGED_CLAIMS:
        assert "could not be verified" in refusal(provider), change
    for change in WRONG_TIMES:
        assert "do not fit the clock of this server" in refusal(provider), change
    change = {}
    assert come(provider).status == 200


def test_a_token_that_another_has_signed_opens_nothing(
    served: Store, provider: IdentityProvider
) -> None:
    head = {"kid": "key-1"}
    public = OctKey.import_key(provider.key.as_dict(private=False)["n"])
    client = OctKey.import_key(CLIENT_SECRET)
    unsigned = "eyJhbGciOiJub25lIiwia2lkIjoia2V5LTEifQ"  # {"alg":"none","kid":"key-1"}
    for sign_with in (
        lambda claims: jwt.encode({"alg": "RS256", **head}, claims, FORGED),
        lambda claims: jwt.encode({"alg": "HS256", **head}, claims, public),
        lambda claims: jwt.encode({"alg": "HS256", **head}, claims, client),
        lambda claims: f"{unsigned}.{provider.signed(claims).split('.')[1]}.",
        lambda claims: provider.signed(claims)[:-8] + "AAAAAAAA",
        lambda _: "no token",
    ):
        provider.sign = sign_with
        assert "could not be verified" in refusal(provider)
    provider.sign = provider.signed
    assert come(provider).status == 200


def test_a_new_key_of_the_provider_is_fetched(served: Store, provider: IdentityProvider) -> None:
    assert come(provider).status == 200
    from joserfc.jwk import RSAKey

    old, provider.key = provider.key, RSAKey.generate_key(2048, {"kid": "key-2"}, private=True)
    provider.sign = lambda claims: jwt.encode(
        {"alg": "RS256", "kid": "key-2"}, claims, provider.key
    )
    try:
        assert come(provider).status == 200
    finally:
        provider.key = old


def test_what_the_provider_refuses_is_told_without_its_words(
    served: Store, provider: IdentityProvider
) -> None:
    provider.refuses = "access_denied"
    assert refusal(provider).startswith(
        "Your identity provider did not let you in (access_denied)."
    )
    provider.refuses = "<script>"
    answer = come(provider)
    assert "(no reason given)" in answer.body
    assert "script" not in answer.body
    assert "words" not in answer.body


def test_a_provider_that_cannot_be_reached_is_named(
    served: Store, provider: IdentityProvider, monkeypatch: pytest.MonkeyPatch
) -> None:
    address, cookie = begin()
    path = back(provider, address)
    monkeypatch.setattr(
        st, "secrets",
        {"auth": provider.settings(REDIRECT) | {"server_metadata_url": "http://127.0.0.1:9/x"}},
    )  # fmt: skip
    oidc.provider.cache_clear()
    for answer in (
        ask("POST", "/sign-in/provider", {}),
        ask("GET", path, cookie=cookie, origin=None),
    ):
        assert answer.status == 502
        assert "cannot be reached from this server" in answer.body


def test_secrets_are_in_no_log_page_or_store(
    claimed: Store,
    provider: IdentityProvider,
    caplog: pytest.LogCaptureFixture,
    monkeypatch: pytest.MonkeyPatch,
    store_file: Path,
) -> None:
    monkeypatch.setattr(oidc.LOG, "handlers", [caplog.handler])
    caplog.set_level(0)
    tokens: list[str] = []
    provider.sign = lambda claims: tokens.append(provider.signed(claims)) or tokens[-1]  # type: ignore[func-returns-value]
    provider.person |= {"groups": ["asr-admins"]}
    shown = [come(provider).body]
    provider.forge = lambda claims: claims | {"aud": "x"}
    shown.append(come(provider).body)
    claimed.set_passphrase("rea", GOOD)
    session.close_stores()
    text = "".join([*shown, *(str(vars(record)) for record in caplog.records)])
    stored = b"".join(f.read_bytes() for f in store_file.parent.rglob("*") if f.is_file())
    assert len(tokens) == 2
    for secret in (CLIENT_SECRET, COOKIE_SECRET, *tokens):
        assert secret not in text
        assert secret.encode() not in stored


# Only from pages of this server, and only at its own address


def test_a_sign_in_begins_on_a_page_of_this_server(served: Store) -> None:
    for origin in (None, "https://evil.test", "http://localhost:9"):
        assert ask("POST", "/sign-in/provider", {}, origin=origin).status == 403
    answer = ask("GET", "/sign-in/provider")
    assert (answer.status, answer.headers["location"]) == (303, "/sign-in")
    answer = ask("POST", "/sign-in/provider", {}, host="127.0.0.1:8501")
    assert (answer.status, "Open http://localhost:8501 and sign in there." in answer.body) == (
        403, True,
    )  # fmt: skip


def test_with_https_the_cookie_is_of_this_host_alone(
    served: Store, provider: IdentityProvider, monkeypatch: pytest.MonkeyPatch
) -> None:
    public = "https://asr.example.org"
    monkeypatch.setenv("ASR_PUBLIC_ORIGIN", public)
    with pytest.raises(InputError, match=r"redirect_uri must be https://asr\.example\.org/oauth2"):
        oidc.provider()
    monkeypatch.setattr(st, "secrets", {"auth": provider.settings(f"{public}/oauth2callback")})
    answer = ask("POST", "/sign-in/provider", {}, origin=public)
    assert answer.headers["set-cookie"].startswith("__Host-asr_sign_in=")
    assert "Secure" in answer.headers["set-cookie"]


# Settings


UNFIT: tuple[tuple[dict[str, str | None], str], ...] = (
    ({"client_id": ""}, "lacks client_id"),
    ({"client_secret": None, "redirect_uri": None}, "lacks client_secret, redirect_uri"),
    ({"cookie_secret": "short"}, "cookie_secret must have 32 characters or more"),
    ({"server_metadata_url": "http://login.example/x"}, "must be an https address"),
    ({"server_metadata_url": "login.example"}, "must be an https address"),
    ({"redirect_uri": "http://localhost:8501/"}, "must be http://localhost:8501/oauth2callback"),
    ({"redirect_uri": "http://localhost:9/oauth2callback"}, "must be http://localhost:8501/oa"),
    ({"redirect_uri": "https://asr.example/oauth2callback"}, "with --public-origin"),
)


def test_settings_that_cannot_work_are_refused(
    served: Store, provider: IdentityProvider, monkeypatch: pytest.MonkeyPatch
) -> None:
    for change, said in UNFIT:
        given: dict[str, Any] = provider.settings(REDIRECT) | change
        monkeypatch.setattr(st, "secrets", {"auth": given})
        with pytest.raises(InputError, match=said) as refused:
            oidc.provider()
        assert COOKIE_SECRET not in str(refused.value)
        assert CLIENT_SECRET not in str(refused.value)
        answer = ask("POST", "/sign-in/provider", {})
        assert (answer.status, said in html.unescape(answer.body)) == (503, True)


def test_no_secrets_at_all_and_half_a_claim_are_refused(
    served: Store, provider: IdentityProvider, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ASR_OIDC_LEADS", "leads")
    with pytest.raises(InputError, match="set ASR_OIDC_ROLE_CLAIM too"):
        oidc.provider()
    monkeypatch.setenv("ASR_OIDC_ROLE_CLAIM", "groups")
    assert oidc.provider().claim is not None
    oidc.provider.cache_clear()
    monkeypatch.delenv("ASR_OIDC_LEADS")
    with pytest.raises(InputError, match="set values in ASR_OIDC_REVIEWERS"):
        oidc.provider()
    monkeypatch.setattr(st, "secrets", {})
    with pytest.raises(InputError, match=r"needs the section \[auth\] of Streamlit's secrets"):
        oidc.provider()


def test_the_server_starts_with_settings_that_fit_only(
    served: Store, provider: IdentityProvider, monkeypatch: pytest.MonkeyPatch
) -> None:
    import asyncio

    async def start() -> None:
        async with asgi.lifespan(asgi.app):
            pass

    monkeypatch.setattr(asgi, "limit_server", lambda: None)
    asyncio.run(start())
    oidc.provider.cache_clear()
    monkeypatch.setattr(st, "secrets", {})
    with pytest.raises(InputError, match=r"needs the section \[auth\]"):
        asyncio.run(start())


def test_a_server_that_refuses_to_start_says_so_in_a_sentence(tmp_path: Path) -> None:
    with Store.open(tmp_path / "s.duckdb", create=True) as store:
        admin = store.add_reviewer("Ada", role="admin")
        store.link(admin.reviewer_id, email="ada@example.org")
        store.set_identities("oidc")
    command = [sys.executable, "-m", "streamlit", "run", asgi.__file__, "--server.port=0"]
    done = subprocess.run(
        command, env=os.environ | {"ASR_STORE": str(tmp_path / "s.duckdb"), "HOME": str(tmp_path)},
        cwd=tmp_path, capture_output=True, text=True, timeout=60,
    )  # fmt: skip
    assert done.returncode != 0
    assert "error: sign-in with an identity provider needs the section [auth]" in done.stderr
    assert "Traceback" not in done.stdout + done.stderr
