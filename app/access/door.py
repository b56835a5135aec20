"""Who gets past the door of the server: checked before anything of the app is sent.

With open identities anybody could be anybody, so only this machine is let in, and only by a
name of this machine: a page elsewhere that points its own name here (DNS rebinding) is not.
Where people sign in nothing but the sign-in pages, Streamlit's own static files and the health
route goes to a visitor without a session.

What acts (a WebSocket, an upload, a form) must come from a page of this server. A cookie does not
tell ports apart, and Streamlit lets every page of the same host in and asks an address service
about the others: it sees only requests whose `Host` is that of their page.
"""

from typing import Literal
from urllib.parse import quote

from starlette.concurrency import run_in_threadpool
from starlette.requests import HTTPConnection
from starlette.responses import PlainTextResponse, RedirectResponse, Response
from starlette.types import ASGIApp, Receive, Scope, Send

from app import session
from calibration.errors import CalibrationError
from calibration.serving import WebOrigin, public_origin
from calibration.store import Store, is_loopback

HEALTH, READY, METRICS = WATCHED = "/healthz", "/readyz", "/metrics"
SIGN_IN, SIGN_OUT = "/sign-in", "/sign-out"

# To the identity provider and back; Streamlit's own name, as its documentation has it.
START, CALLBACK = "/sign-in/provider", "/oauth2callback"
STATIC = ("/static/", "/favicon.png", "/manifest.json")

# What is no page: asked for without a session, it is refused and not sent to the form.
PARTS = ("/_stcore/", "/media/", "/component/", "/app/static/", "/desk/")

FORWARDING = ("forwarded", "x-real-ip", "x-client-ip", "true-client-ip", "via")
HARMLESS = ("GET", "HEAD", "OPTIONS")
Entry = Literal["in", "sign in", "refuse", "only here", "not from here"]

REFUSALS = {
    "only here": (
        "Sign-in "
        "is off, so only this machine has access: on the machine that runs the server, open "
        "http://localhost with its port."
    ),
    "not from here": (
        "This request did not come from a page of this server. Open the server's own address and "
        "reload. "
        "Behind a proxy, start the server with the address that people open: "
        "asr serve --public-origin https://asr.example.org"
    ),
    "refuse": "Sign in first.",
}


class Door:
    """Lets a request or a connection in, sends it to the sign-in form, or refuses it."""

    def __init__(self, app: ASGIApp) -> None:
        self.app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Decide before the app sees anything of it."""
        if scope["type"] == "lifespan" or _is_harmless(scope):
            await self.app(scope, receive, send)
            return
        page = page_of(HTTPConnection(scope)) if _acts(scope) else None
        if _acts(scope) and page is None:
            entry: Entry = "not from here"
        else:
            entry = await run_in_threadpool(_entry, HTTPConnection(scope))
        if entry == "in":
            await self.app(scope if page is None else _as_of(page, scope), receive, send)
        elif scope["type"] == "websocket":
            await receive()
            await send({"type": "websocket.close", "code": 1008, "reason": REFUSALS["refuse"]})
        else:
            await _answer(entry, scope)(scope, receive, send)


def _acts(scope: Scope) -> bool:
    """Return whether a request does something, so that the page that sent it matters."""
    return bool(scope["type"] == "websocket" or scope["method"] not in HARMLESS)


def page_of(visit: HTTPConnection) -> WebOrigin | None:
    """Return the origin of the page that sent a request, if it is a page of this server.

    With a public origin that is the only one: what a proxy makes of `Host` and scheme does not
    matter then. A request that does not say where it comes from is no request of a page.
    """
    sent, hosts = visit.headers.getlist("origin"), visit.headers.getlist("host")
    if len(sent) != 1 or len(hosts) != 1:
        return None
    page, scheme = WebOrigin.parsed(sent[0]), visit.scope["scheme"].replace("ws", "http", 1)
    own = public_origin() or WebOrigin.parsed(f"{scheme}://{hosts[0]}")
    return page if page == own else None


def _as_of(page: WebOrigin, scope: Scope) -> Scope:
    """Return a request as if it had come without a proxy, straight to the origin of its page."""
    headers = [(n, v) for n, v in scope["headers"] if n not in (b"host", b"origin")]
    own = [(b"host", page.netloc.encode()), (b"origin", str(page).encode())]
    secure = "s" if page.scheme == "https" else ""
    scheme = f"{'ws' if scope['type'] == 'websocket' else 'http'}{secure}"
    return {**scope, "headers": [*headers, *own], "scheme": scheme}


def _is_harmless(scope: Scope) -> bool:
    return bool(
        scope["type"] == "http" and scope["path"] in WATCHED and scope["method"] in HARMLESS
    )


def _entry(visit: HTTPConnection) -> Entry:
    store = opened_store()
    path: str = visit.scope["path"]
    if store is None or store.identities() == "open":
        return "in" if is_local(visit) else "only here"
    if visit.scope["type"] == "http":
        if path in (SIGN_IN, SIGN_OUT, START, CALLBACK):
            return "in"
        if path.startswith(STATIC) and visit.scope["method"] in ("GET", "HEAD"):
            return "in"
    token = visit.cookies.get(session.cookie())
    if token and store.person_of_session(token) is not None:
        return "in"
    if visit.scope["type"] == "http" and visit.scope["method"] in ("GET", "HEAD"):
        return "refuse" if path.startswith(PARTS) else "sign in"
    return "refuse"


def _answer(entry: Entry, scope: Scope) -> Response:
    unkept = {"cache-control": "no-store"}
    if entry == "sign in":
        asked = quote(scope["path"], safe="/")
        to = SIGN_IN if asked == "/" else f"{SIGN_IN}?next={quote(asked, safe='')}"
        return RedirectResponse(to, 303, headers=unkept)
    return PlainTextResponse(f"{REFUSALS[entry]}\n", 403, headers=unkept)


def opened_store() -> Store | None:
    """Return the store of this server; None while there is none that can be opened."""
    path = session.store_path()
    if not path.exists():
        return None
    try:
        return session.open_store(path)
    except CalibrationError:
        return None


def is_secure(visit: HTTPConnection) -> bool:
    """Return whether the visitor's browser speaks HTTPS, to this server or to its proxy."""
    public = public_origin()
    scheme = visit.scope["scheme"] if public is None else public.scheme
    return scheme in ("https", "wss")


def is_local(visit: HTTPConnection) -> bool:
    """Return whether a visitor is on this machine and asked for it by a name of this machine.

    Whoever comes through a proxy may be anywhere, whatever address the proxy names.
    """
    public, host = public_origin(), WebOrigin.parsed(f"http://{visit.headers.get('host', '')}")
    if host is None or (public is not None and not is_loopback(public.host)):
        return False
    here = visit.client is not None and is_loopback(visit.client.host)
    return here and is_loopback(host.host) and not _is_forwarded(visit)


def _is_forwarded(visit: HTTPConnection) -> bool:
    if visit.scope["http_version"] == "1.0":
        return True  # no browser speaks it; nginx does that was given no more than proxy_pass
    return any(name.startswith("x-forwarded-") or name in FORWARDING for name in visit.headers)
