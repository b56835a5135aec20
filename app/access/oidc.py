"""Signing in with an identity provider (OpenID Connect), with the settings of Streamlit's st.login.

Authlib speaks the protocol. The callback starts a session of this app, as a passphrase does:
Streamlit's own is a cookie that is good for 30 days, whatever the server knows by then.
"""

import logging
import secrets
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from typing import Any

import streamlit as st
from itsdangerous import BadData, URLSafeTimedSerializer
from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import RedirectResponse, Response
from starlette.routing import Route

from app import session
from app.access import pages as html
from app.access.door import CALLBACK, SIGN_IN, START, is_secure, opened_store
from app.access.sign_in import UNKEPT, address, keep_session, next_page, page, sent_form, sentence
from calibration.errors import CalibrationError, InputError
from calibration.serving import (
    RoleClaim,
    WebOrigin,
    provider_name,
    public_origin,
    role_claim,
)
from calibration.store import Claims, Store, is_loopback

LOG = logging.getLogger("asr.server")
COOKIE, GOOD_FOR_S, TIMEOUT_S = "asr_sign_in", 600, 10
LEAST_SECRET = 32
KEYS = ("client_id", "client_secret", "cookie_secret", "redirect_uri", "server_metadata_url")

# With any other the signature could be made by whoever knows a public key, or by nobody.
SIGNATURES = frozenset(
    f"{kind}{bits}" for kind in ("RS", "PS", "ES") for bits in (256, 384, 512)
) | {"EdDSA", "Ed25519"}
SUPPORTED = "id_token_signing_alg_values_supported"

STALE = (
    "This "
    "sign-in was started in another browser or more than ten minutes ago, or it is already used. "
    "Sign in again."
)
UNREACHABLE = (
    "{name} cannot be reached from this server. Try again in a minute; if this happens again, tell "
    "whoever runs the server: its log says what failed."
)
UNVERIFIED = (
    "The answer of {name} could not be verified. Sign in again; if this happens again, tell "
    "whoever runs the server: its log says what failed."
)
CLOCK = (
    "The times in the answer of {name} do not fit the clock of this server. Tell whoever runs the "
    "server to check its clock (NTP)."
)
REFUSED = "{name} did not let you in ({error}). Ask whoever looks after your account there."


@dataclass(frozen=True, slots=True)
class Provider:
    """The identity provider of this server; `client` is Authlib's, which keeps its metadata."""

    client: Any
    redirect_uri: str
    signer: URLSafeTimedSerializer
    claim: RoleClaim | None

    @property
    def origin(self) -> str:
        """The origin that people must have opened: the provider sends them back there."""
        return self.redirect_uri.removesuffix(CALLBACK)


@cache
def provider() -> Provider:
    """Return the identity provider that the settings name.

    Raises
    ------
    InputError
        If the extra is not installed, a setting is missing, or the settings do not fit together.
    """
    try:
        from authlib.integrations.starlette_client import OAuth
    except ImportError as error:
        raise InputError(
            "sign-in with an identity provider needs the extra: pip install 'asr-calibration[oidc]'"
        ) from error
    given = _settings()
    more = dict(given.get("client_kwargs", {}))
    client = OAuth().register(
        "provider",
        client_id=given["client_id"],
        client_secret=given["client_secret"],
        server_metadata_url=given["server_metadata_url"],
        client_kwargs={"scope": "openid email profile", "prompt": "select_account"} | more
        | {"code_challenge_method": "S256", "timeout": TIMEOUT_S},
    )  # fmt: skip
    signer = URLSafeTimedSerializer(given["cookie_secret"], salt="asr sign-in")
    return Provider(client, given["redirect_uri"], signer, role_claim())


def _settings() -> dict[str, Any]:
    """Return the section [auth] of Streamlit's secrets, checked; no message quotes a secret."""
    where = "section [auth] of Streamlit's secrets (.streamlit/secrets.toml)"
    try:
        given = dict(st.secrets["auth"])
    except (KeyError, FileNotFoundError) as error:
        raise InputError(
            f"sign-in with an identity provider needs the {where}: not found, or not valid TOML"
        ) from error
    missing = [key for key in KEYS if not isinstance(given.get(key), str) or not given[key].strip()]
    if missing:
        raise InputError(f"{where}: lacks {', '.join(missing)}")
    if len(given["cookie_secret"]) < LEAST_SECRET:
        raise InputError(f"{where}: cookie_secret must have {LEAST_SECRET} characters or more")
    metadata = given["server_metadata_url"]
    origin = WebOrigin.parsed("/".join(metadata.split("/")[:3]))
    if origin is None or (origin.scheme == "http" and not is_loopback(origin.host)):
        raise InputError(f"{where}: server_metadata_url must be an https address")
    port = int(st.get_option("server.port"))
    given["redirect_uri"] = given["redirect_uri"].replace("{port}", str(port))
    _check_redirect(given["redirect_uri"], port)
    return given


def _check_redirect(uri: str, port: int) -> None:
    public = public_origin()
    own = WebOrigin.parsed(uri.removesuffix(CALLBACK)) if uri.endswith(CALLBACK) else None
    if public is not None and uri != f"{public}{CALLBACK}":
        raise InputError(
            f"redirect_uri must be {public}{CALLBACK}, as the public origin is {public}, got {uri}"
        )
    if public is None and (own is None or not is_loopback(own.host) or own.port != port):
        raise InputError(
            f"redirect_uri must be http://localhost:{port}{CALLBACK}, or name the address that "
            f"people open with --public-origin, got {uri}"
        )


async def start(request: Request) -> Response:
    """Send somebody to the provider.

    By a page and not by a redirect: the form may be sent to this server only (form-action).
    """
    sent = await sent_form(request)
    if isinstance(sent, Response):
        return sent
    if request.method != "POST" or await run_in_threadpool(_store) is None:
        return RedirectResponse(SIGN_IN, 303, headers=UNKEPT)
    try:
        found = provider()
    except CalibrationError as error:
        return _trouble(sentence(str(error)), 503)
    if request.headers.get("origin") != found.origin:
        return _trouble(f"Open {found.origin} and sign in there.", 403)
    try:
        begun = await found.client.create_authorization_url(found.redirect_uri)
    except _faults() as error:
        return _failed(error)
    kept = {key: begun[key] for key in ("state", "nonce", "code_verifier")}
    answer = page(
        f"Continue to {provider_name()}",
        html.link(f"Continue to {provider_name()}", begun["url"]),
        go_on=begun["url"],
    )
    answer.set_cookie(
        _cookie(), found.signer.dumps(kept | {"next": next_page(sent.get("next"))}),
        max_age=GOOD_FOR_S, path="/", httponly=True, samesite="lax", secure=is_secure(request),
    )  # fmt: skip
    return answer


async def callback(request: Request) -> Response:
    """Take whom the provider sends back, and start their session."""
    store = await run_in_threadpool(_store)
    if store is None:
        return RedirectResponse(SIGN_IN, 303, headers=UNKEPT)
    try:
        answer = await _called_back(provider(), store, request)
    except CalibrationError as error:
        answer = _trouble(sentence(str(error)), 403)
    answer.delete_cookie(
        _cookie(), path="/", httponly=True, samesite="lax", secure=is_secure(request)
    )
    return answer


ROUTES = (
    # Asked for by address it must not fall through to the app.
    Route(START, start, methods=["GET", "POST"]),
    Route(CALLBACK, callback, methods=["GET"]),
)


async def _called_back(found: Provider, store: Store, request: Request) -> Response:
    begun, asked = _begun(found, request), request.query_params
    if begun is None or not secrets.compare_digest(
        begun["state"].encode(), asked.get("state", "").encode()
    ):
        return _trouble(STALE, 403)
    if code := asked.get("error"):
        # Their words go to no page: whoever makes the link could write there.
        known = code if code.replace("_", "").isalpha() and code.isascii() else "no reason given"
        LOG.warning("sign-in refused by the provider", extra={"told": {"error": known[:40]}})
        return _trouble(REFUSED.format(name=provider_name(), error=known[:40]), 403)
    try:
        claims = await _claims(found, asked.get("code", ""), begun)
    except _faults() as error:
        return _failed(error)
    token = await run_in_threadpool(store.sign_in_by_provider, claims, address(request))
    # A redirect would come from the provider's site, and a strict cookie stays at home then.
    to = next_page(begun["next"])
    answer = page("Signed in", html.link("Continue", to), go_on=to)
    keep_session(answer, token, request)
    return answer


def _begun(found: Provider, request: Request) -> dict[str, str] | None:
    """Return what this browser was given when it was sent to the provider."""
    try:
        kept = found.signer.loads(request.cookies.get(_cookie(), ""), max_age=GOOD_FOR_S)
    except BadData:
        return None
    return {str(key): str(value) for key, value in kept.items()}


async def _claims(found: Provider, code: str, begun: Mapping[str, str]) -> Claims:
    """Exchange a code, verify the token, and return what it says of a person."""
    client = found.client
    metadata = await client.load_server_metadata()
    metadata[SUPPORTED] = [
        kind for kind in metadata.get(SUPPORTED) or ["RS256"] if kind in SIGNATURES
    ]
    token = await client.fetch_access_token(
        redirect_uri=found.redirect_uri, code=code, code_verifier=begun["code_verifier"]
    )
    own = {
        "iss": {"essential": True, "value": metadata["issuer"]},
        "aud": {"essential": True, "value": client.client_id},
    }
    if "id_token" not in token:
        raise ValueError("no id_token")
    said = dict(await client.parse_id_token(token, nonce=begun["nonce"], claims_options=own))
    if not said["sub"]:
        raise ValueError("no subject")
    wanted = {"name", "email"} | ({found.claim.name} if found.claim else set())
    if wanted - set(said) and "userinfo_endpoint" in metadata:
        more = await client.userinfo(token=token)
        if more.get("sub") == said["sub"]:
            said = {**more, **said}
    verified = said.get("email_verified") in (True, "true") and isinstance(said.get("email"), str)
    called = (said.get(key) for key in ("name", "preferred_username", "email"))
    return Claims(
        issuer=str(said["iss"]),
        subject=str(said["sub"]),
        name=next((text for text in called if isinstance(text, str) and text.strip()), ""),
        email=said["email"] if verified else None,
        role=found.claim.role_of(said) if found.claim else None,
        decides_roles=found.claim is not None,
    )


def _faults() -> tuple[type[Exception], ...]:
    """Return what an answer of a provider, or none, makes Authlib raise."""
    import httpx2
    from authlib.integrations.base_client import OAuthError
    from joserfc.errors import JoseError

    return (httpx2.HTTPError, OAuthError, JoseError, KeyError, RuntimeError, TypeError, ValueError)


def _failed(error: Exception) -> Response:
    """Return the page on a fault of the provider; the log names its kind, and nothing it sent."""
    import httpx2
    from joserfc.errors import MissingClaimError

    claim = str(getattr(error, "claim", ""))
    told = {"error": f"{type(error).__name__} {claim}".strip()[:60]}
    LOG.warning("sign-in by the provider failed", extra={"told": told})
    if isinstance(error, httpx2.HTTPError):
        return _trouble(UNREACHABLE.format(name=provider_name()), 502)
    is_of_time = claim in ("iat", "exp", "nbf") and not isinstance(error, MissingClaimError)
    text = CLOCK if is_of_time else UNVERIFIED
    return _trouble(text.format(name=provider_name()), 403)


def _trouble(text: str, status: int) -> Response:
    text = f"{text[:1].upper()}{text[1:]}"
    return page("Not signed in", html.alert(text), html.link("Back to sign-in", SIGN_IN),
                status=status)  # fmt: skip


def _store() -> Store | None:
    """Return the store if people sign in to it by a provider."""
    store = opened_store()
    return store if store is not None and store.identities() == "oidc" else None


def _cookie() -> str:
    return session.cookie().replace(session.COOKIE, COOKIE)
