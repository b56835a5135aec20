"""Who gets past the door of the server: checked before anything of the app is sent.

With open identities anybody could be anybody, so only this machine is let in, and only by a
name of this machine: a page elsewhere that points its own name here (DNS rebinding) is not.
With passphrases nothing but the sign-in pages, Streamlit's own static files and the health
route goes to a visitor without a session.
"""

from typing import Literal
from urllib.parse import quote

from starlette.concurrency import run_in_threadpool
from starlette.requests import HTTPConnection
from starlette.responses import PlainTextResponse, RedirectResponse, Response
from starlette.types import ASGIApp, Receive, Scope, Send

from app import session
from calibration.errors import CalibrationError
from calibration.store import Store, is_loopback

HEALTH, SIGN_IN, SIGN_OUT = "/healthz", "/sign-in", "/sign-out"
STATIC = ("/static/", "/favicon.png", "/manifest.json")

# What is no page: asked for without a session, it is refused and not sent to the form.
PARTS = ("/_stcore/", "/media/", "/component/", "/app/static/")

FORWARDING = ("forwarded", "x-forwarded-for", "x-forwarded-host", "x-real-ip", "via")
Entry = Literal["in", "sign in", "refuse", "only here"]


class Door:
    """Lets a request or a connection in, sends it to the sign-in form, or refuses it."""

    def __init__(self, app: ASGIApp) -> None:
        self.app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Decide before the app sees anything of it."""
        if scope["type"] == "lifespan" or _is_harmless(scope):
            await self.app(scope, receive, send)
            return
        entry = await run_in_threadpool(_entry, HTTPConnection(scope))
        if entry == "in":
            await self.app(scope, receive, send)
        elif scope["type"] == "websocket":
            await receive()
            await send({"type": "websocket.close", "code": 1008, "reason": "sign in first"})
        else:
            await _answer(entry, scope)(scope, receive, send)


def _is_harmless(scope: Scope) -> bool:
    return bool(scope["type"] == "http" and scope["path"] == HEALTH)


def _entry(visit: HTTPConnection) -> Entry:
    store = opened_store()
    path: str = visit.scope["path"]
    if store is None or store.identities() == "open":
        return "in" if is_local(visit) else "only here"
    if visit.scope["type"] == "http":
        if path in (SIGN_IN, SIGN_OUT):
            return "in"
        if path.startswith(STATIC) and visit.scope["method"] in ("GET", "HEAD"):
            return "in"
    token = visit.cookies.get(session.COOKIE)
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
    if entry == "only here":
        return PlainTextResponse(
            "Nobody signs in here, so only this machine is let in: open http://localhost with the "
            "port of the server, on the machine that it runs on.\n",
            403,
            headers=unkept,
        )
    return PlainTextResponse("Sign in first.\n", 403, headers=unkept)


def opened_store() -> Store | None:
    """Return the store of this server; None while there is none that can be opened."""
    path = session.store_path()
    if not path.exists():
        return None
    try:
        return session.open_store(path)
    except CalibrationError:
        return None


def is_local(visit: HTTPConnection) -> bool:
    """Return whether a visitor is on this machine and asked for it by a name of this machine."""
    host = visit.headers.get("host", "")
    name = host[1:].partition("]")[0] if host.startswith("[") else host.partition(":")[0]
    return visit.client is not None and is_loopback(visit.client.host) and is_loopback(name)


def is_forwarded(visit: HTTPConnection) -> bool:
    """Return whether another server passes the request on: its visitor may be anywhere."""
    return any(name in visit.headers for name in FORWARDING)
