"""The app behind a real nginx: as documented, and with nothing but proxy_pass."""

import http.client
import ssl
from collections.abc import Iterator
from contextlib import ExitStack, closing
from dataclasses import dataclass
from email.message import Message
from pathlib import Path
from urllib.parse import urlencode

import pytest

from calibration.serving import PUBLIC_ORIGIN
from calibration.store import Store
from tests.browser.conftest import Server
from tests.browser.samples import build_store
from tests.proxies import AS_IT_COMES, free_port, nginx_with, running_nginx

pytestmark = pytest.mark.long
ROOT = Path(__file__).parents[2]
FORM = "application/x-www-form-urlencoded"
GOOD = "correct horse battery"
UPGRADE = {
    "Upgrade": "websocket", "Connection": "Upgrade", "Sec-WebSocket-Version": "13",
    "Sec-WebSocket-Key": "dGhlIHNhbXBsZSBub25jZQ==", "Sec-WebSocket-Protocol": "streamlit",
}  # fmt: skip


@pytest.fixture
def stack() -> Iterator[ExitStack]:
    with ExitStack() as stack:
        yield stack


@dataclass(frozen=True)
class Answer:
    status: int
    headers: Message
    text: str


def ask(
    port: int,
    method: str,
    path: str,
    body: str = "",
    *,
    scheme: str = "http",
    client: str = "127.0.0.1",
    **headers: str,
) -> Answer:
    """Send one request as a visitor of an address of this machine."""
    link = http.client.HTTPConnection("127.0.0.1", port, timeout=20, source_address=(client, 0))
    if scheme == "https":
        trusting = ssl._create_unverified_context()
        link = http.client.HTTPSConnection(
            "127.0.0.1", port, timeout=20, source_address=(client, 0), context=trusting
        )
    with closing(link):
        named = {name.replace("_", "-"): value for name, value in headers.items()}
        link.request(method, path, body or None, named)
        with link.getresponse() as answer:
            text = "" if answer.status == 101 else answer.read().decode()
            return Answer(answer.status, answer.headers, text)


def plain(tmp_path: Path, server: Server, stack: ExitStack) -> int:
    port = free_port()
    conf = nginx_with(tmp_path, AS_IT_COMES, app=server.port, http=port, https=0)
    stack.enter_context(running_nginx(conf, port))
    return port


def test_with_proxy_pass_alone_an_open_store_lets_nobody_in(
    server: Server, tmp_path: Path, stack: ExitStack
) -> None:
    build_store(server.store, 3)
    server.start()
    assert ask(server.port, "GET", "/").status == 200
    port = plain(tmp_path, server, stack)
    for host in (f"127.0.0.1:{port}", "asr.example.org"):
        for origin in (f"http://{host}", server.url):
            for path in ("/", "/label", "/_stcore/host-config"):
                answer = ask(port, "GET", path, Host=host, Origin=origin)
                assert (path, answer.status) == (path, 403)
                assert "only this machine has access" in answer.text
            assert (
                ask(port, "GET", "/_stcore/stream", Host=host, Origin=origin, **UPGRADE).status
                != 101
            )
            put = ask(port, "PUT", "/_stcore/upload_file/a/b", "x", Host=host, Origin=origin)
            assert put.status == 403


def test_with_proxy_pass_alone_there_is_no_first_admin(
    server: Server, tmp_path: Path, stack: ExitStack
) -> None:
    build_store(server.store, 3)
    server.identities = None
    server.start()
    port = plain(tmp_path, server, stack)
    token = server.store.with_suffix(".log").read_text().rpartition("?token=")[2].split()[0]
    form = {"form": "first", "name": "Eve", "new": GOOD, "again": GOOD}
    for guess in ("", "x", token):  # whoever reads the terminal is at the machine, not at the proxy
        body = urlencode(form | {"token": guess})
        for origin in (f"http://127.0.0.1:{port}", server.url):
            answer = ask(port, "POST", "/sign-in", body, Origin=origin,
                         Content_Type=FORM)  # fmt: skip
            assert (guess, answer.status, answer.headers["set-cookie"]) == (guess, 403, None)
    assert "Nobody can sign in yet" in ask(port, "GET", "/sign-in").text
    server.stop()
    with Store.open(server.store) as store:
        assert store.reviewers() == []


def test_as_documented_people_sign_in_and_each_visitor_waits_alone(
    server: Server, tmp_path: Path, stack: ExitStack, monkeypatch: pytest.MonkeyPatch
) -> None:
    build_store(server.store, 3)
    with Store.open(server.store) as store:
        store.add_reviewer("Ada", role="admin")
        store.set_passphrase("ada", GOOD)
    http_port, port = free_port(), free_port()
    origin = f"https://asr.example.org:{port}"
    monkeypatch.setenv(PUBLIC_ORIGIN, origin)
    server.identities = None
    server.start()
    text = (ROOT / "deploy" / "nginx.conf").read_text(encoding="utf-8")
    conf = nginx_with(tmp_path, text, app=server.port, http=http_port, https=port)
    stack.enter_context(running_nginx(conf, port))
    host = f"asr.example.org:{port}"

    def sign(passphrase: str, client: str, origin: str = origin, **more: str) -> Answer:
        body = urlencode({"name": "Ada", "passphrase": passphrase})
        sent = {"Host": host, "Origin": origin, "Content-Type": FORM}
        return ask(port, "POST", "/sign-in", body, scheme="https", client=client, **sent, **more)

    moved = ask(http_port, "GET", "/label", Host="asr.example.org")
    assert (moved.status, moved.headers["location"]) == (301, "https://asr.example.org/label")

    # Limits count the visitor that nginx sees, whatever the visitor claims to be.
    found = [
        sign("wrong wrong wrong", "127.0.0.7", X_Forwarded_For=f"192.0.2.{k}").status
        for k in range(6)
    ]
    assert found[-1] == 429
    assert sign(GOOD, "127.0.0.7").status == 429
    signed = sign(GOOD, "127.0.0.8", X_Forwarded_For="127.0.0.7")
    assert signed.status == 303
    cookie = str(signed.headers["set-cookie"])
    assert cookie.startswith("__Host-asr_session=")
    assert "Secure" in cookie
    assert signed.headers["strict-transport-security"]
    held = {"Host": host, "Cookie": cookie.partition(";")[0]}
    for sent, status in ((origin, 101), ("https://asr.example.org:1", 403),
                         ("https://evil.test", 403),
                         (server.url, 403)):  # fmt: skip
        answer = ask(port, "GET", "/_stcore/stream", scheme="https", Origin=sent, **held, **UPGRADE)
        assert (sent, answer.status) == (sent, status)
        assert sign(GOOD, "127.0.0.9", sent).status == (303 if status == 101 else 403)
        put = ask(port, "PUT", "/_stcore/upload_file/a/b", "x", scheme="https", Origin=sent, **held)
        assert ("did not come from a page of this server" in put.text) is (status == 403)
    lines = server.store.with_suffix(".log").read_text().splitlines()
    assert any("signed in" in line and "from=127.0.0.8" in line for line in lines)
