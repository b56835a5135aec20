"""Pages of other origins: what they send does nothing, and nobody outside is asked about them."""

import asyncio
import re
from pathlib import Path
from typing import Any, cast

import pytest
from starlette.requests import HTTPConnection
from starlette.types import Message, Scope
from streamlit.web.server.starlette import starlette_websocket
from uvicorn.middleware.proxy_headers import ProxyHeadersMiddleware

from app import asgi, session
from app.access.door import is_local, page_of
from calibration.errors import InputError, NotAllowedError
from calibration.serving import (
    PUBLIC_ORIGIN,
    TRUSTED_PROXIES,
    WebOrigin,
    check_proxies,
    parsed_public_origin,
    trouble_with_proxy,
)
from calibration.store import Store, sign_in
from tests.app import test_sign_in
from tests.app.test_sign_in import GOOD, SECRET, ask, sign
from tests.stores import hashing_quickly

pytestmark = pytest.mark.long  # a server of its own, with its waits

SOCKET, UPLOAD = "/_stcore/stream", "/_stcore/upload_file/a/b"
PUBLIC = "https://asr.example.org"

# Host of the request, scheme, origin of the page, and whether the page is one of this server.
PAGES = [
    ("localhost:8501", "http", "http://localhost:8501", True),
    ("LOCALHOST:8501", "http", "http://localhost:8501", True),
    ("asr.example.org", "http", "http://asr.example.org:80", True),
    ("asr.example.org:443", "https", "https://asr.example.org", True),
    ("[::1]:8501", "http", "http://[::1]:8501", True),
    ("[::1]:8501", "http", "http://[::1]:8502", False),
    ("localhost:8501", "http", "http://localhost:3000", False),
    ("localhost:8501", "http", "http://localhost", False),
    ("localhost:8501", "http", "http://127.0.0.1:8501", False),
    ("localhost:8501", "http", "https://localhost:8501", False),
    ("localhost:8501", "https", "http://localhost:8501", False),
    ("localhost:8501", "http", "http://evil.test", False),
    ("localhost:8501", "http", "http://localhost:8501@evil.test", False),
    ("localhost:8501", "http", "http://localhost:8501/", False),
    ("localhost:8501", "http", "file://", False),
    ("localhost:8501", "http", "null", False),
    ("localhost:8501", "http", "", False),
    ("localhost:8501", "http", None, False),
    ("", "http", "http://", False),
    ("localhost:x", "http", "http://localhost:x", False),
]


@pytest.fixture
def token(store_file: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """Return the session of an admin who has signed in."""
    monkeypatch.setattr(sign_in, "DEFAULT", sign_in.PASSPHRASE)
    Store.open(store_file, create=True).close()
    store = hashing_quickly(session.open_store(store_file))
    store.add_reviewer("Ada", role="admin")
    store.set_passphrase("ada", GOOD)
    return store.verify_sign_in("Ada", GOOD, "127.0.0.1")


@pytest.mark.parametrize(("host", "scheme", "origin", "own"), PAGES)
def test_only_a_page_of_this_server_acts(
    token: str, host: str, scheme: str, origin: str | None, own: bool
) -> None:
    asked: dict[str, Any] = {"host": host, "scheme": scheme, "origin": origin, "cookie": token}
    assert ask("GET", SOCKET, kind="websocket", **asked).status == (101 if own else 403)
    for method in ("PUT", "DELETE", "POST"):
        answer = ask(method, UPLOAD, b"x", **asked)
        assert (answer.status, SECRET in answer.body) == (200 if own else 403, own)
    # Reading is not acting: the browser does not show an answer to a page elsewhere.
    assert ask("GET", "/media/abc.csv", **asked).status == 200


def test_two_origins_are_none(token: str) -> None:
    headers = [(b"host", b"a"), (b"origin", b"http://a"), (b"origin", b"http://evil.test")]
    scope = {"type": "websocket", "scheme": "ws", "headers": headers}
    assert page_of(HTTPConnection(scope)) is None
    assert page_of(HTTPConnection(scope | {"headers": headers[:2]})) is not None


def test_a_visitor_by_http_1_0_came_through_a_proxy() -> None:
    scope = {"type": "http", "scheme": "http", "headers": [(b"host", b"127.0.0.1:8501")],
             "client": ("127.0.0.1", 5)}  # fmt: skip
    assert is_local(HTTPConnection(scope | {"http_version": "1.1"}))
    assert not is_local(HTTPConnection(scope | {"http_version": "1.0"}))


def test_behind_a_proxy_the_public_origin_alone_acts(
    token: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(PUBLIC_ORIGIN, PUBLIC)
    proxies: tuple[dict[str, Any], ...] = (
        {"host": "127.0.0.1:8501"},  # nginx as it comes
        {"host": "asr.example.org", "x_forwarded_proto": "https", "x_forwarded_for": "192.0.2.7"},
        {"host": "asr.example.org", "scheme": "https"},
    )
    for proxy in proxies:
        for origin, status in (
            (PUBLIC, 101), (f"{PUBLIC}:443", 101), (f"{PUBLIC}:8443", 403),
            ("http://asr.example.org", 403), ("http://127.0.0.1:8501", 403), (None, 403),
        ):  # fmt: skip
            visit: dict[str, Any] = {**proxy, "origin": origin, "cookie": token}
            answer = ask("GET", SOCKET, kind="websocket", **visit)
            assert (proxy, origin, answer.status) == (proxy, origin, status)
        assert sign(origin=PUBLIC, **proxy).status == 303
        assert sign(origin="http://127.0.0.1:8501", **proxy).status == 403
    assert "--public-origin" in sign(origin="http://evil.test").body


def test_streamlit_never_asks_the_address_service(
    token: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[str] = []
    monkeypatch.setattr("streamlit.net_util._make_blocking_http_get",
                        lambda url, timeout=5: asked.append(url))  # fmt: skip
    monkeypatch.setattr("streamlit.net_util._external_ip", None)
    seen: list[tuple[str, str]] = []

    original = starlette_websocket._is_origin_allowed

    def allowed(origin: str, host: str) -> bool:
        seen.append((origin, host))
        return original(origin, host)

    monkeypatch.setattr(starlette_websocket, "_is_origin_allowed", allowed)

    def knock(origin: str, host: str) -> str:
        """Knock at the whole app, and return how it answers the handshake."""
        kinds: list[str] = []
        waiting: list[Message] = [{"type": "websocket.connect"}]
        scope: Scope = {
            "type": "websocket", "path": SOCKET, "raw_path": SOCKET.encode(), "scheme": "ws",
            "query_string": b"", "root_path": "", "http_version": "1.1", "subprotocols": [],
            "headers": [(b"host", host.encode()), (b"origin", origin.encode()),
                        (b"cookie", f"{session.cookie()}={token}".encode())],
            "client": ("127.0.0.1", 5), "server": ("localhost", 8501),
        }  # fmt: skip

        async def receive() -> Message:
            return waiting.pop(0) if waiting else {"type": "websocket.disconnect", "code": 1000}

        async def send(message: Message) -> None:
            kinds.append(message["type"])

        asyncio.run(asgi.app(scope, receive, send))
        return kinds[0]

    for origin in ("http://evil.test", "http://localhost:3000", "http://192.0.2.7:8501", "null"):
        assert knock(origin, "localhost:8501") == "websocket.close"
    assert seen == []
    # What comes from here is of the host that Streamlit compares with, however it was written.
    assert knock("http://localhost", "LocalHost:80") == "websocket.accept"
    monkeypatch.setenv(PUBLIC_ORIGIN, PUBLIC)
    assert knock(PUBLIC, "127.0.0.1:8501") == "websocket.accept"
    assert seen == [("http://localhost", "localhost"), (PUBLIC, "asr.example.org")]
    assert asked == []


def test_a_start_on_every_address_asks_nobody_for_its_own() -> None:
    config = (Path(asgi.__file__).parent / ".streamlit" / "config.toml").read_text()
    assert 'serverAddress = "localhost"' in config  # or Streamlit looks its address up outside


@pytest.mark.parametrize(
    "text", ["asr.example.org", "ftp://a", "https://", "https://a/b", "https://a?b", "https://a:0x"]
)
def test_a_public_origin_is_an_origin(text: str) -> None:
    with pytest.raises(InputError, match="the public origin must be a scheme, a host"):
        parsed_public_origin(text)


def test_a_public_origin_lets_others_in(token: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(PUBLIC_ORIGIN, PUBLIC)
    with pytest.raises(NotAllowedError, match=f"public origin {PUBLIC} lets other machines in"):
        asgi.refuse_strangers("127.0.0.1", None)
    asgi.refuse_strangers("127.0.0.1", session.open_store(session.store_path()))
    monkeypatch.setenv(PUBLIC_ORIGIN, "http://localhost:9000")
    asgi.refuse_strangers("127.0.0.1", None)
    assert str(WebOrigin("http", "::1", 80)) == "http://[::1]"


def test_with_https_the_cookie_and_the_headers_are_for_https(
    token: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    plain = ask("GET", "/sign-in")
    assert "strict-transport-security" not in plain.headers
    assert plain.headers["cross-origin-opener-policy"] == "same-origin"
    assert "camera=()" in plain.headers["permissions-policy"]
    assert "connect-src 'self';" in plain.headers["content-security-policy"]
    # Of inline scripts only those of Streamlit's page, by their content.
    (scripts,) = re.findall(r"script-src ([^;]*);", plain.headers["content-security-policy"])
    assert all(re.fullmatch(r"'self'|blob:|'sha256-[\w+/]{43}='", one) for one in scripts.split())
    assert (
        "max-age=31536000" in ask("GET", "/x", scheme="https").headers["strict-transport-security"]
    )
    monkeypatch.setenv(PUBLIC_ORIGIN, PUBLIC)
    answer = sign(origin=PUBLIC, host="127.0.0.1:8501")
    name, _, rest = answer.headers["set-cookie"].partition("=")
    flags = {part.strip().lower() for part in rest.split(";")[1:]}
    assert name == "__Host-asr_session"
    assert {"secure", "path=/", "httponly", "samesite=strict"} <= flags
    assert not any(flag.startswith("domain") for flag in flags)
    assert "strict-transport-security" in answer.headers
    # A cookie of the plain name, which any port or host of the domain may set, is not looked at.
    held = rest.partition(";")[0]
    for sent, status in (("asr_session", 403), ("__Host-asr_session", 101)):
        answer = ask("GET", SOCKET, kind="websocket", origin=PUBLIC, cookie=f"{sent}={held}")
        assert (sent, answer.status) == (sent, status)


@pytest.mark.parametrize("text", ["*", "proxy", "10.0.0.5/x", "10.0.0.5/8", "0.0.0.0/0", "::/0"])
def test_trusted_proxies_are_addresses(text: str, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(InputError):
        check_proxies(f"10.0.0.5, {text}")
    monkeypatch.setenv(TRUSTED_PROXIES, text)
    with pytest.raises(InputError):
        trouble_with_proxy("127.0.0.1")


@pytest.mark.parametrize(
    ("address", "public", "proxies", "trouble"),
    [
        ("127.0.0.1", "", "", []),
        ("127.0.0.1", PUBLIC, "", []),
        ("0.0.0.0", PUBLIC, "10.0.0.0/24,::1", []),
        ("0.0.0.0", "", "", ["put a proxy with HTTPS before"]),
        ("0.0.0.0", PUBLIC, "", ["name it with --trusted-proxy"]),
        ("127.0.0.1", "http://asr.example.org", "", ["in plain text: use HTTPS"]),
    ],
)
def test_the_start_names_what_is_wrong_with_the_proxy(
    address: str, public: str, proxies: str, trouble: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(PUBLIC_ORIGIN, public)
    monkeypatch.setenv(TRUSTED_PROXIES, proxies)
    found = trouble_with_proxy(address)
    assert len(found) == len(trouble)
    assert all(words in line for words, line in zip(trouble, found, strict=True))


def test_behind_a_trusted_proxy_every_visitor_has_waits_of_their_own(
    token: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    proxied: Any = ProxyHeadersMiddleware(cast("Any", test_sign_in.APP), "10.0.0.0/24")
    monkeypatch.setattr(test_sign_in, "APP", proxied)

    def visit(address: str, passphrase: str = "wrong wrong wrong") -> int:
        return sign(passphrase=passphrase, client="10.0.0.5", x_forwarded_for=address).status

    assert [visit("192.0.2.7") for _ in range(6)][-1] == 429
    assert visit("192.0.2.8", GOOD) == 303
    assert visit("192.0.2.7, 192.0.2.8", GOOD) == 303  # what a visitor adds comes first
    assert visit("192.0.2.8, 192.0.2.7", GOOD) == 429
