"""The server: security headers, who is let in, and a lifespan that closes the store."""

import asyncio
import logging
import re
from base64 import b64encode
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager, suppress
from hashlib import sha256
from pathlib import Path

import click
import streamlit as st
from starlette.middleware import Middleware
from starlette.middleware.gzip import GZipMiddleware
from starlette.requests import HTTPConnection
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from app.access import health, oidc
from app.access.door import Door, is_secure, opened_store
from app.access.sign_in import ROUTES, announce_first_admin
from app.access.sockets import limit_server
from app.access.uploads import Uploads
from app.desk import module
from app.session import close_stores, open_store, store_path
from calibration.errors import CalibrationError, NotAllowedError
from calibration.serving import lets_others_in, public_origin, trouble_with_proxy
from calibration.store import Store


def own_scripts() -> str:
    """Return the hashes of the scripts inside Streamlit's page: no other inline script runs."""
    page = Path(st.__file__).parent / "static" / "index.html"
    scripts = re.findall(r"<script>(.*?)</script>", page.read_text(encoding="utf-8"), re.DOTALL)
    return " ".join(
        f"'sha256-{b64encode(sha256(script.encode()).digest()).decode()}'" for script in scripts
    )


CONTENT_SECURITY_POLICY = "; ".join(
    (
        "default-src 'self'",
        f"script-src 'self' blob: {own_scripts()}".rstrip(),
        "style-src 'self' 'unsafe-inline'",
        "img-src 'self' data: blob:",
        "font-src 'self' data:",
        "connect-src 'self'",  # its WebSocket too: same host and port
        "worker-src 'self' blob:",
        "frame-ancestors 'none'",
        "object-src 'none'",
        "base-uri 'self'",
        "form-action 'self'",
    )
)

HEADERS = (
    (b"content-security-policy", CONTENT_SECURITY_POLICY.encode()),
    (b"x-content-type-options", b"nosniff"),
    # With no referrer at all a browser does not say either which page sent a form.
    (b"referrer-policy", b"same-origin"),
    (b"cross-origin-opener-policy", b"same-origin"),
    (b"permissions-policy", b"camera=(), microphone=(), geolocation=(), payment=(), usb=()"),
)

# A year, as browsers ask for; the other names of the domain are not ours to decide on.
ONLY_HTTPS = (b"strict-transport-security", b"max-age=31536000")


class SecurityHeaders:
    """Adds the security headers to every response.

    Trace text comes from strangers. The component writes it as text only; the policy is
    the second wall, for everything that a page may render by another way.
    """

    def __init__(self, app: ASGIApp) -> None:
        self.app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass the request on and add the headers to the start of the response."""

        async def send_with_headers(message: Message) -> None:
            if message["type"] == "http.response.start":
                more = (*HEADERS, ONLY_HTTPS) if is_secure(HTTPConnection(scope)) else HEADERS
                message["headers"] = [*message["headers"], *more]
            await send(message)

        await self.app(scope, receive, send_with_headers)


class Packed:
    """Compresses scripts and styles, which Streamlit sends as they are: 3 MB for a first visit.

    Nothing else: whoever can choose a part of a page could learn the rest from its packed size.
    """

    def __init__(self, app: ASGIApp) -> None:
        self.app, self.packing = app, GZipMiddleware(app, compresslevel=6)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass the request on, packed if it asks for a script or a style."""
        is_asset = scope["type"] == "http" and scope["path"].endswith((".js", ".css"))
        await (self.packing if is_asset else self.app)(scope, receive, send)


@asynccontextmanager
async def lifespan(_app: st.App) -> AsyncIterator[None]:
    """Hold the store from the start, so that a second server is refused, and let it go.

    Raises
    ------
    NotAllowedError
        If the server listens beyond this machine before sign-in is configured.
    InputError
        If the public origin is none, the trusted proxies are no addresses, or people sign in by an
        identity provider whose settings are incomplete.
    """
    path = store_path()
    if path.exists():
        with suppress(CalibrationError):  # the page says what is wrong, and tries again
            open_store(path)
    try:
        with _in_a_sentence():
            address, store = st.get_option("server.address"), opened_store()
            refuse_strangers(address, store)
            if store is not None and store.identities() == "oidc":
                oidc.provider()
        for line in trouble_with_proxy(address):
            click.echo(f"asr-calibration: {line}", err=True)
        announce_first_admin(store)
        limit_server()
        health.set_up_log()
        health.is_in_place(store)
        telling = asyncio.create_task(_tell_address(address or "127.0.0.1", path))
        yield
        telling.cancel()
    finally:
        close_stores()


async def _tell_address(host: str, path: Path) -> None:
    """Print where the app is, once its port answers."""
    port = st.get_option("server.port")
    while True:
        try:
            _, writer = await asyncio.open_connection(host, port)
        except OSError:
            await asyncio.sleep(0.1)
        else:
            break
    writer.close()
    where = public_origin() or f"http://{f'[{host}]' if ':' in host else host}:{port}"
    click.echo(f"asr-calibration: {where}  (store {path})", err=True)


@contextmanager
def _in_a_sentence() -> Iterator[None]:
    """Print an error as a sentence; the server would print a traceback in its place."""
    try:
        yield
    except CalibrationError as error:
        click.echo(f"error: {error}", err=True)
        logging.getLogger("uvicorn.error").addFilter(lambda told: "Traceback" not in str(told.msg))
        raise


def refuse_strangers(address: str | None, store: Store | None) -> None:
    """Refuse to serve other machines while anybody could be anybody.

    Raises
    ------
    NotAllowedError
        If that is so; no address is every address.
    """
    opened = lets_others_in(address, public_origin())
    if opened is None or (store is not None and store.sign_in_is_configured()):
        return
    raise NotAllowedError(
        f"{opened} lets other machines in, and sign-in is not configured: "
        "first `asr people add NAME --role admin`, `asr people passphrase NAME` and "
        "`asr people sign-in passphrase`; or start it with --server.address=127.0.0.1 and "
        "without a public origin"
    )


app = st.App(
    Path(__file__).with_name("main.py"),
    lifespan=lifespan,
    routes=[*health.ROUTES, *ROUTES, *oidc.ROUTES, *module.ROUTES],
    middleware=[
        Middleware(SecurityHeaders),
        Middleware(health.Watch),
        Middleware(Door),
        Middleware(Uploads),
        Middleware(Packed),
    ],
)
