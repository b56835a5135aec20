"""The server as requests meet it: who is let in, the forms, the cookie, what is refused."""

import asyncio
import re
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

import pytest
from starlette.applications import Starlette
from starlette.middleware import Middleware
from starlette.requests import Request
from starlette.responses import PlainTextResponse
from starlette.routing import Mount, Route, WebSocketRoute
from starlette.websockets import WebSocket

from app import asgi, session
from app.access import health, oidc
from app.access import sign_in as forms
from app.access.door import HEALTH, Door
from app.access.sign_in import ROUTES
from calibration.errors import NotAllowedError
from calibration.store import Store, sign_in
from tests.stores import hashing_quickly

GOOD, OTHER = "correct horse battery", "another good phrase"
SECRET = "inside of the app"


async def inside(_: Request) -> PlainTextResponse:
    return PlainTextResponse(SECRET)


async def stream(socket: WebSocket) -> None:
    await socket.accept()
    await socket.send_text(SECRET)
    await socket.close()


APP = Starlette(
    routes=[
        Route(HEALTH, health.healthz),
        *ROUTES,
        *oidc.ROUTES,
        WebSocketRoute("/{path:path}", stream),
        Mount("/", Route("/{path:path}", inside, methods=["GET", "POST", "PUT", "DELETE"])),
    ],
    middleware=[Middleware(asgi.SecurityHeaders), Middleware(Door)],
)


@dataclass
class Answer:
    status: int = 0
    headers: dict[str, str] = field(default_factory=dict)
    body: str = ""

    @property
    def cookie(self) -> str:
        """The value of the session's cookie that came with the answer."""
        given = self.headers.get("set-cookie", "").partition(f"{session.COOKIE}=")[2]
        return given.partition(";")[0]


def ask(
    method: str,
    path: str,
    form: dict[str, str] | bytes | None = None,
    *,
    client: str | None = "127.0.0.1",
    host: str = "localhost:8501",
    origin: str | None = "own",
    cookie: str = "",
    kind: str = "http",
    scheme: str = "http",
    **more: str,
) -> Answer:
    """Send one request to the app as an ASGI server would; `own` is a page of this server."""
    origin = f"{scheme}://{host}" if origin == "own" else origin
    scheme = scheme.replace("http", "ws") if kind == "websocket" else scheme
    content = form if isinstance(form, bytes) else urlencode(form or {}).encode()
    path, _, query = path.partition("?")
    headers = {"host": host, "content-type": "application/x-www-form-urlencoded"}
    headers |= {"origin": origin} if origin else {}
    headers |= (
        {"cookie": cookie if "=" in cookie else f"{session.cookie()}={cookie}"} if cookie else {}
    )
    headers |= {name.replace("_", "-"): value for name, value in more.items()}
    scope: dict[str, Any] = {
        "type": kind, "method": method, "path": path, "raw_path": path.encode(), "scheme": scheme,
        "query_string": query.encode(), "root_path": "", "http_version": "1.1",
        "headers": [(n.encode(), v.encode()) for n, v in headers.items()],
        "client": None if client is None else (client, 5), "server": ("localhost", 8501),
        "subprotocols": [],
    }  # fmt: skip
    answer = Answer()
    waiting = [{"type": "http.request", "body": content, "more_body": False}]
    if kind == "websocket":
        waiting = [{"type": "websocket.connect"}]

    async def receive() -> Any:
        return waiting.pop(0) if waiting else {"type": "http.disconnect"}

    async def send(message: Any) -> None:
        if message["type"] == "http.response.start":
            answer.status = message["status"]
            for name, value in message["headers"]:  # of cookies there may be several
                known = answer.headers.get(name.decode())
                answer.headers[name.decode()] = (
                    f"{known}, {value.decode()}" if known else value.decode()
                )
        elif message["type"] == "websocket.accept":
            answer.status = 101
        elif message["type"] == "websocket.close" and not answer.status:
            answer.status = 403
        answer.body += message.get("body", b"").decode() + message.get("text", "")

    asyncio.run(APP(scope, receive, send))
    return answer


@pytest.fixture
def served(store_file: Path, monkeypatch: pytest.MonkeyPatch) -> Store:
    """Return the store of the server: people sign in, and nobody can yet."""
    monkeypatch.setattr(sign_in, "DEFAULT", sign_in.PASSPHRASE)
    Store.open(store_file, create=True).close()
    return hashing_quickly(session.open_store(store_file))


@pytest.fixture
def team(served: Store) -> Store:
    served.add_reviewer("Ada", role="admin")
    served.add_reviewer("Rea")
    served.set_passphrase("ada", GOOD)
    return served


def sign(name: str = "Ada", passphrase: str = GOOD, **more: str) -> Answer:
    return ask("POST", "/sign-in", {"name": name, "passphrase": passphrase}, **more)


# Without a session

PAGES = (
    ("/", ""), ("/agreement", "?next=%2Fagreement"), ("/passphrase", "?next=%2Fpassphrase"),
    ("//evil.test", "?next=%2F%2Fevil.test"),
)  # fmt: skip

PARTS = (
    "/_stcore/health", "/_stcore/host-config", "/_stcore/metrics", "/_stcore/stream",
    "/_stcore/agent/openapi.json", "/_stcore/bidi-components/x", "/media/abc.csv",
    "/component/x/index.html", "/app/static/x",
)  # fmt: skip


def test_strangers_are_led_to_the_form_and_get_no_part_of_the_app(team: Store) -> None:
    for path, following in PAGES:
        answer = ask("GET", path)
        assert (answer.status, answer.headers["location"]) == (303, f"/sign-in{following}")
        assert answer.headers["cache-control"] == "no-store"
        assert SECRET not in answer.body
    for path in PARTS:
        for cookie in ("", "no-such-token"):
            answer = ask("GET", path, cookie=cookie)
            assert (path, answer.status, SECRET in answer.body) == (path, 403, False)
    for path in ("/_stcore/upload_file/a/b", "/_stcore/agent/interact", "/", "/x"):
        for method in ("POST", "PUT", "DELETE"):
            assert (path, ask(method, path, b"x" * 100).status) == (path, 403)
    for path in ("/_stcore/stream", "/static/x", "/sign-in", "/healthz"):
        answer = ask("GET", path, kind="websocket")
        assert (path, answer.status, answer.body) == (path, 403, "")
    # The static files and the health route stay open.
    for path in ("/static/js/index.js", "/favicon.png", "/healthz"):
        assert ask("GET", path, client="192.0.2.7", host="asr.example").status == 200
    assert ask("POST", "/static/js/index.js").status == 403


def test_whoever_knows_the_passphrase_is_let_in_until_they_sign_out(team: Store) -> None:
    form = ask("GET", "/sign-in?next=/agreement")
    assert 'name="next" value="/agreement"' in form.body
    answer = ask("POST", "/sign-in", {"name": "ada", "passphrase": GOOD, "next": "/agreement"})
    assert (answer.status, answer.headers["location"]) == (303, "/agreement")
    token = answer.cookie
    for path in ("/", "/_stcore/health", "/media/abc.csv"):
        assert SECRET in ask("GET", path, cookie=token).body
    assert ask("GET", "/_stcore/stream", kind="websocket", cookie=token).body == SECRET
    assert ask("GET", "/sign-in", cookie=token).headers["location"] == "/"
    out = ask("POST", "/sign-out", cookie=token)
    assert (out.status, out.headers["location"]) == (303, "/sign-in")
    assert "max-age=0" in out.headers["set-cookie"].lower()
    assert ask("GET", "/_stcore/stream", kind="websocket", cookie=token).status == 403
    assert ask("GET", "/media/abc.csv", cookie=token).status == 403
    # Signing in leads nowhere else.
    for to in ("//evil.test", "https://evil.test", "/\\evil.test", "/sign-in", ""):
        answer = ask("POST", "/sign-in", {"name": "Ada", "passphrase": GOOD, "next": to})
        assert (to, answer.headers["location"]) == (to, "/")


def test_the_cookie_is_for_this_server_and_no_script(team: Store) -> None:
    for scheme in ("http", "https"):
        set_cookie = sign(scheme=scheme).headers["set-cookie"].lower()
        flags = {part.strip() for part in set_cookie.split(";")[1:]}
        assert {"httponly", "samesite=strict", "path=/", "max-age=604800"} <= flags
        assert ("secure" in flags) is (scheme == "https")


def test_a_wrong_passphrase_gives_no_cookie_and_the_same_words_for_nobody(team: Store) -> None:
    before, wrong, nobody = ask("GET", "/sign-in"), sign(passphrase=OTHER), sign(name="Zoe")
    assert wrong.status == nobody.status == 403
    assert "set-cookie" not in wrong.headers
    assert wrong.body.replace('value="Ada"', "") == nobody.body.replace('value="Zoe"', "")
    assert 'role="alert"' in wrong.body
    assert GOOD not in wrong.body
    assert OTHER not in wrong.body
    # One goes on typing, and knows whom to ask.
    for body, name in ((before.body, "name"), (wrong.body, "passphrase")):
        (focused,) = re.findall(r'<input id="(\w+)"[^>]* autofocus', body)
        assert focused == name
        assert "An admin generates a new one on the People page." in body
    hostile = sign(name='"><script>alert(1)</script>').body
    assert "<script" not in hostile
    assert "&lt;script&gt;" in hostile


def test_after_five_the_form_says_how_long_to_wait(team: Store) -> None:
    for _ in range(5):
        answer = sign(passphrase=OTHER)
    assert (answer.status, answer.headers["retry-after"]) == (429, "900")
    assert "Try again in 15 minutes." in answer.body
    assert sign().status == 429
    assert sign(client="192.0.2.7").status == 303


@pytest.mark.parametrize("path", ["/sign-in", "/sign-out", "/passphrase"])
def test_a_form_of_another_page_is_not_taken(team: Store, path: str) -> None:
    token = sign().cookie
    form = {"name": "Ada", "passphrase": GOOD, "new": OTHER, "again": OTHER}
    origins = (None, "null", "http://evil.test", "http://localhost:9999", "http://localhost")
    for origin in origins:
        answer = ask("POST", path, form, origin=origin, cookie=token)
        assert (origin, answer.status, "set-cookie" in answer.headers) == (origin, 403, False)
        assert team.person_of_session(token) is not None


def test_what_is_no_form_lets_nobody_in(team: Store) -> None:
    fields = "application/x-www-form-urlencoded"
    for sent, kind in (
        (b"name=" + b"a" * 9_000, fields), (b'{"name": "Ada"}', "application/json"),
        (b"a=1&" * 50, fields), (b"\xff\xfe%ff=", fields),
    ):  # fmt: skip
        answer = ask("POST", "/sign-in", sent, content_type=kind)
        assert answer.status in (403, 413)
        assert "set-cookie" not in answer.headers


def test_the_form_can_be_filled_in_by_browsers_and_readers(team: Store) -> None:
    answer = ask("GET", "/sign-in")
    for needed in ('autocomplete="username"', 'autocomplete="current-password"', "<title>Sign in"):
        assert needed in answer.body
    assert "<script" not in answer.body
    assert "style=" not in answer.body
    headers = answer.headers
    assert headers["content-security-policy"] == asgi.CONTENT_SECURITY_POLICY
    assert headers["referrer-policy"] == "same-origin"  # or the origin of a form would be null
    assert headers["cache-control"] == "no-store"


def test_ones_own_passphrase_is_changed(team: Store) -> None:
    token = sign().cookie
    assert "Ada, after the change" in ask("GET", "/passphrase", cookie=token).body
    form = {"passphrase": GOOD, "new": OTHER, "again": OTHER}
    assert "not the same" in ask("POST", "/passphrase", form | {"again": "x"}, cookie=token).body
    short = ask("POST", "/passphrase", form | {"new": "x", "again": "x"}, cookie=token)
    assert "12 to 200 characters" in short.body
    assert ask("POST", "/passphrase", form | {"passphrase": "no"}, cookie=token).status == 403
    # Whoever gets there has given the right one, which ends what else was open.
    token = sign().cookie
    changed = ask("POST", "/passphrase", form, cookie=token)
    assert changed.status == 303
    assert team.person_of_session(token) is None
    assert team.person_of_session(changed.cookie) is not None
    assert sign(passphrase=OTHER).status == 303


# The first admin

FIRST = {"form": "first", "name": "Ada", "new": GOOD, "again": GOOD, "token": forms._token}


def test_the_first_visitor_of_this_machine_becomes_the_admin_and_no_second(served: Store) -> None:
    assert "Create the first admin" in ask("GET", "/sign-in").body
    again = ask("POST", "/sign-in", FIRST | {"again": OTHER}).body
    assert "not the same" in again
    assert forms._token in again  # shown once, it need not be looked up again
    assert "12 to 200" in ask("POST", "/sign-in", FIRST | {"new": "x", "again": "x"}).body
    made = ask("POST", "/sign-in", FIRST)
    person = served.person_of_session(made.cookie)
    assert person is not None
    assert (made.status, person.name, person.role) == (303, "Ada", "admin")
    second = ask("POST", "/sign-in", FIRST | {"name": "Eve"})
    assert "has its admins already" in second.body
    assert "set-cookie" not in second.headers
    assert [p.name for p in served.reviewers()] == ["Ada"]


def test_the_first_admin_has_read_what_the_server_printed(
    served: Store, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(forms, "_announced", False)
    # A proxy that adds no header makes everybody a visitor of this machine.
    for token in ("", "x", f"{forms._token}x", forms._token[:-1], "\N{SNOWMAN}"):
        answer = ask("POST", "/sign-in", FIRST | {"token": token})
        assert (token, answer.status, "set-cookie" in answer.headers) == (token, 403, False)
        assert "Wrong token: copy the one that the server printed" in answer.body
        assert forms._token not in answer.body
    assert "set-cookie" not in ask("POST", "/sign-in", {**FIRST, "token": ""}).headers
    assert served.reviewers() == []
    printed = capsys.readouterr().err
    assert printed.count(forms._token) == 1  # once, however often the form is shown
    link = next(word for word in printed.split() if word.startswith("/sign-in?token="))
    assert f'value="{forms._token}"' in ask("GET", link).body
    assert ask("POST", "/sign-in", FIRST).status == 303
    monkeypatch.setattr(forms, "_announced", False)
    forms.announce_first_admin(served)
    assert capsys.readouterr().err == ""


def test_nobody_else_becomes_the_first_admin(served: Store) -> None:
    visits: tuple[dict[str, Any], ...] = (
        {"client": "192.0.2.7"}, {"client": None}, {"x_forwarded_for": "127.0.0.1"},
        {"host": "asr.example", "origin": "http://asr.example"}, {"via": "1.1 proxy"},
    )  # fmt: skip
    for visit in visits:
        assert "Nobody can sign in yet" in ask("GET", "/sign-in", **visit).body
        answer = ask("POST", "/sign-in", FIRST, **visit)
        assert (visit, answer.status, "set-cookie" in answer.headers) == (visit, 403, False)
    assert served.reviewers() == []


def test_where_identities_are_open_only_this_machine_is_let_in(served: Store) -> None:
    served.set_identities("open")
    elsewhere: tuple[dict[str, Any], ...] = (
        {"client": "192.0.2.7"}, {"client": None}, {"host": "evil.test:8501"}, {"host": ""},
        {"client": "192.0.2.7", "host": "192.0.2.1:8501"}, {"host": "localhost.evil.test"},
        {"forwarded": "for=127.0.0.1"}, {"x_forwarded_for": "127.0.0.1"}, {"x_real_ip": "::1"},
        {"x_forwarded_proto": "https"}, {"x_forwarded_host": "localhost"}, {"via": "1.1 proxy"},
    )  # fmt: skip
    for visit in elsewhere:
        for path in ("/", "/_stcore/health", "/static/x", "/sign-in", "/media/x"):
            answer = ask("GET", path, **visit)
            assert (visit, answer.status, SECRET in answer.body) == (visit, 403, False)
        assert ask("GET", "/_stcore/stream", kind="websocket", **visit).status == 403
    for host in ("localhost:8501", "127.0.0.1:8501", "[::1]:8501", "LOCALHOST"):
        client = "::ffff:127.0.0.1" if host == "LOCALHOST" else "127.0.0.1"
        here: dict[str, Any] = {"host": host, "client": client}
        assert ask("GET", "/", **here).body == SECRET
        assert ask("GET", "/_stcore/stream", kind="websocket", **here).status == 101
        assert ask("GET", "/sign-in", **here).headers["location"] == "/"


def test_before_there_is_a_store_only_this_machine_is_let_in(store_file: Path) -> None:
    for _ in range(2):
        assert ask("GET", "/").body == SECRET
        assert ask("GET", "/", client="192.0.2.7").status == 403
        store_file.write_text("no store")


def test_the_server_does_not_listen_beyond_this_machine_without_sign_in(served: Store) -> None:
    beyond = (None, "", "0.0.0.0", "::", "192.0.2.7", "asr.example", "unix:///tmp/asr")
    for address in beyond:
        for store in (None, served):
            with pytest.raises(NotAllowedError, match="sign-in is not configured: first"):
                asgi.refuse_strangers(address, store)
    served.add_reviewer("Ada", role="admin")
    served.set_passphrase("ada", GOOD)
    for address in beyond:
        asgi.refuse_strangers(address, served)
    config = (Path(asgi.__file__).parent / ".streamlit" / "config.toml").read_text()
    assert 'address = "127.0.0.1"' in config


def test_the_lifespan_refuses_and_lets_the_store_go(
    served: Store, store_file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def run() -> None:
        async with asgi.lifespan(asgi.app):
            pass

    def start(address: str | None) -> None:
        monkeypatch.setattr("streamlit.get_option", lambda _name: address)
        asyncio.run(run())

    start("127.0.0.1")
    with pytest.raises(NotAllowedError):
        start(None)
    Store.open(store_file).close()
