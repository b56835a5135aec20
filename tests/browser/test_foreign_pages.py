"""A page of another port or host, in the browser of somebody who is signed in, can do nothing."""

import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest
from playwright.sync_api import Page

from calibration.store import Store
from tests.browser.conftest import Server
from tests.browser.samples import build_store
from tests.browser.test_sign_in import GOOD, make_first_admin

pytestmark = [pytest.mark.browser, pytest.mark.long]

SOCKET = """app => new Promise(done => {
  const socket = new WebSocket(app.replace("http", "ws") + "/_stcore/stream", ["streamlit"]);
  socket.onopen = () => done("open");
  socket.onerror = () => done("refused");
})"""
UPLOAD = """app => fetch(app + "/_stcore/upload_file/a/b",
  {method: "PUT", credentials: "include", body: "x"}
).then(answer => answer.text(), () => "refused")"""
FORM = """([app, passphrase]) => {
  const form = document.createElement("form");
  form.method = "post";
  form.action = app + "/sign-in";
  for (const [name, value] of [["name", "Ada"], ["passphrase", passphrase]]) {
    const field = document.createElement("input");
    [field.name, field.value] = [name, value];
    form.append(field);
  }
  document.body.append(form);
  form.submit();
}"""


class Foreign(BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        self.send_response(200)
        self.send_header("Content-Type", "text/html")
        self.end_headers()
        self.wfile.write(b"<!DOCTYPE html><title>Foreign</title><p>A page.</p>")

    def log_message(self, *_: object) -> None:
        pass


@pytest.fixture
def foreign() -> Iterator[int]:
    with ThreadingHTTPServer(("127.0.0.1", 0), Foreign) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield server.server_port
        server.shutdown()


def test_only_its_own_pages_act_for_the_person_signed_in(
    server: Server, page: Page, foreign: int
) -> None:
    build_store(server.store, 3)
    server.identities = None
    server.start()
    make_first_admin(page, server)
    assert page.evaluate(SOCKET, server.url) == "open"
    assert "did not come from a page of this server" not in page.evaluate(UPLOAD, server.url)
    for host in ("127.0.0.1", "localhost"):
        page.goto(f"http://{host}:{foreign}/")
        assert page.evaluate(SOCKET, server.url) == "refused"
        assert page.evaluate(UPLOAD, server.url) == "refused"
        with page.expect_navigation() as moved:
            page.evaluate(FORM, [server.url, GOOD])
        assert moved.value is not None
        assert (moved.value.url, moved.value.status) == (f"{server.url}/sign-in", 403)
    page.goto(server.url)
    assert page.evaluate(SOCKET, server.url) == "open"
    server.stop()
    with Store.open(server.store) as store:
        assert [person.name for person in store.reviewers()] == ["Ada"]
