"""Signing in and out, the first admin, and changing one's passphrase: plain forms.

The first admin needs a token that only whoever runs the server reads: a proxy that adds no header
makes a visitor from anywhere look like one of this machine.
"""

import secrets
from collections.abc import Callable
from typing import TypeAlias
from urllib.parse import parse_qs

import click
from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import HTMLResponse, RedirectResponse, Response
from starlette.routing import Route

from app import session
from app.access import pages as html
from app.access.door import SIGN_IN, SIGN_OUT, START, is_local, is_secure, opened_store
from calibration.errors import CalibrationError, SignInError
from calibration.records import Reviewer
from calibration.serving import provider_name
from calibration.store import Store

PASSPHRASE = "/passphrase"
MOST_BYTES = 8_192
KEPT_S = 7 * 24 * 3600
UNKEPT = {"cache-control": "no-store"}
OTHER_TOKEN = "Wrong token: copy the one that the server printed when it was started."
DIFFERENT = "The two passphrases are not the same."
LOST = "No passphrase, or forgotten? An admin generates a new one on the People page."
Fields: TypeAlias = dict[str, str]


async def sign_in(request: Request) -> Response:
    """Show the form, or the one for the first admin, and take it."""
    store = await run_in_threadpool(opened_store)
    if store is None or store.identities() == "open":
        return RedirectResponse("/", 303, headers=UNKEPT)
    if request.method == "POST":
        sent = await sent_form(request)
        if isinstance(sent, Response):
            return sent
        act = _first_admin if sent.get("form") == "first" else _known_person
        return await run_in_threadpool(act, store, request, sent)
    to = next_page(request.query_params.get("next"))
    if _person(store, request) is not None:
        return RedirectResponse(to, 303, headers=UNKEPT)
    return await run_in_threadpool(_form, store, request, to)


async def sign_out(request: Request) -> Response:
    """End the session of the cookie and take the cookie back."""
    sent = await sent_form(request)
    if isinstance(sent, Response):
        return sent
    store, token = await run_in_threadpool(opened_store), request.cookies.get(session.cookie())
    if store is not None and token:
        await run_in_threadpool(store.end_session, token)
    answer = RedirectResponse(SIGN_IN, 303, headers=UNKEPT)
    answer.delete_cookie(
        session.cookie(), path="/", httponly=True, samesite="strict", secure=is_secure(request)
    )
    return answer


async def passphrase(request: Request) -> Response:
    """Let somebody who has signed in change their passphrase."""
    store = await run_in_threadpool(opened_store)
    person = None if store is None else _person(store, request)
    if store is None or person is None or store.identities() != "passphrase":
        return RedirectResponse("/", 303, headers=UNKEPT)
    if request.method == "GET":
        return _change_form(person.name)
    sent = await sent_form(request)
    if isinstance(sent, Response):
        return sent
    if sent.get("new") != sent.get("again"):
        return _change_form(person.name, DIFFERENT)

    def change() -> str:
        return store.change_passphrase(
            person.reviewer_id, sent.get("passphrase", ""), sent.get("new", ""), address(request)
        )

    return await run_in_threadpool(
        _let_in, request, "/", change, lambda trouble, _name: _change_form(person.name, trouble)
    )


ROUTES = (
    Route(SIGN_IN, sign_in, methods=["GET", "POST"]),
    Route(SIGN_OUT, sign_out, methods=["POST"]),
    Route(PASSPHRASE, passphrase, methods=["GET", "POST"]),
)


def _known_person(store: Store, request: Request, sent: Fields) -> Response:
    to, name = next_page(sent.get("next")), sent.get("name", "")
    return _let_in(
        request,
        to,
        lambda: store.verify_sign_in(name, sent.get("passphrase", ""), address(request)),
        lambda trouble, _: _form(store, request, to, trouble, name),
    )


def _first_admin(store: Store, request: Request, sent: Fields) -> Response:
    to, name = next_page(sent.get("next")), sent.get("name", "")
    typed = sent.get("token", "").strip().encode()
    if not is_local(request) or not secrets.compare_digest(typed, _token.encode()):
        return _form(store, request, to, OTHER_TOKEN, name)
    if sent.get("new") != sent.get("again"):
        return _form(store, request, to, DIFFERENT, name, _token)
    return _let_in(
        request,
        to,
        lambda: store.make_first_admin(name, sent.get("new", "")),
        lambda trouble, _: _form(store, request, to, trouble, name, _token),
    )


def _let_in(
    request: Request,
    to: str,
    token_of: Callable[[], str],
    again: Callable[[str, str], Response],
) -> Response:
    """Hand out the cookie of a new session, or the form once more with what was wrong."""
    try:
        token = token_of()
    except SignInError as error:
        answer = again(str(error), "")
        answer.status_code = 429 if error.wait_s else 403
        if error.wait_s:
            answer.headers["retry-after"] = f"{error.wait_s:.0f}"
        return answer
    except CalibrationError as error:
        return again(sentence(str(error)), "")
    answer = RedirectResponse(to, 303, headers=UNKEPT)
    keep_session(answer, token, request)
    return answer


def keep_session(answer: Response, token: str, request: Request) -> None:
    """Give a browser the cookie of its new session."""
    answer.set_cookie(
        session.cookie(), token, max_age=KEPT_S, path="/", httponly=True, samesite="strict",
        secure=is_secure(request),
    )  # fmt: skip


# The first admin

_token = secrets.token_urlsafe(24)
_announced = False


def announce_first_admin(store: Store | None) -> None:
    """Print once, to the terminal or log of the server, how the first admin signs in."""
    global _announced
    if _announced or (store is not None and not store.wants_first_admin()):
        return
    _announced = True
    click.echo(
        "asr-calibration: nobody can sign in yet. On this machine, open "
        f"{SIGN_IN}?token={_token} at the address below to become the admin; the token is good "
        "until there is one.",
        err=True,
    )


# Pages


def _form(
    store: Store, request: Request, to: str, trouble: str = "", name: str = "", token: str = ""
) -> Response:
    who = html.Field("name", "Name", "username", kind="text", value=name[:80])
    if not store.wants_first_admin():
        if store.identities() == "oidc":
            button = f"Sign in with {provider_name()}"
            parts = [html.form(START, button, (), kept={"next": to}, trouble=trouble)]
        else:
            parts = [
                html.form(SIGN_IN, "Sign in", (who, html.PASSPHRASE), kept={"next": to},
                          trouble=trouble),
                html.hint(LOST),
            ]  # fmt: skip
        if request.headers.get("sec-fetch-site") == "cross-site":
            # A strict cookie stays at home when a link on another site was followed.
            parts.append(html.link("Already signed in? Continue.", to))
        return page("Sign in", *parts, status=403 if trouble else 200)
    if not is_local(request):
        return page(
            "Nobody can sign in yet",
            html.notice("Whoever runs this server creates the first admin, on its machine:"),
            html.command(session.command('people add "NAME" --role admin')),
            html.command(session.command('people passphrase "NAME"')),
            status=403,
        )
    announce_first_admin(store)
    read = html.Field(
        "token", "Token, printed where the server was started", "off", kind="text",
        value=token or request.query_params.get("token", "")[:80],
    )  # fmt: skip
    return page(
        "Create the first admin",
        html.notice(
            "Nobody can sign in to this store yet. The first admin adds the others, on the People "
            "page. For a demo in which everybody picks a name:"
        ),
        html.command(session.command("people sign-in open")),
        html.form(SIGN_IN, "Become the admin", (read, who, html.NEW, html.AGAIN),
                  kept={"next": to, "form": "first"}, trouble=trouble),
        status=200 if not trouble else 422 if token else 403,
    )  # fmt: skip


def _change_form(name: str, trouble: str = "") -> Response:
    fields = (
        html.Field("passphrase", "Current passphrase", "current-password"),
        html.Field("new", "New passphrase, 12 characters or more", "new-password"),
        html.AGAIN,
    )
    return page(
        "Change your passphrase",
        html.notice(f"{name}, after the change you have to sign in again everywhere."),
        html.form(PASSPHRASE, "Change passphrase", fields, kept={}, trouble=trouble),
        html.link("Cancel", "/"),
        status=422 if trouble else 200,
    )


def page(title: str, *parts: str, status: int = 200, go_on: str = "") -> Response:
    """Return a page that no browser keeps; with `go_on` it goes on there by itself."""
    return HTMLResponse(html.document(title, *parts, go_on=go_on), status, headers=UNKEPT)


def sentence(text: str) -> str:
    """Return the message of an error as a sentence."""
    return f"{text[:1].upper()}{text[1:].removesuffix('.')}."


# What came in


async def sent_form(request: Request) -> Fields | Response:
    """Return the fields of a form, or why they are not taken; the door knows who sent it."""
    body = b""
    async for chunk in request.stream():
        body += chunk
        if len(body) > MOST_BYTES:
            return page("Too long", html.notice("This name is too long."), status=413)
    kind = request.headers.get("content-type", "").partition(";")[0].strip()
    if kind != "application/x-www-form-urlencoded":
        return {}
    try:
        found = parse_qs(body.decode("utf-8", "replace"), keep_blank_values=True, max_num_fields=10)
    except ValueError:
        return {}
    return {name: values[0] for name, values in found.items()}


def next_page(asked: str | None) -> str:
    """Return the page to go on to: one of this server, whatever an address says.

    Examples
    --------
    >>> [next_page(asked) for asked in ("/agreement", "//evil.test", "https://evil.test", None)]
    ['/agreement', '/', '/', '/']
    """
    wanted = (asked or "/")[:200]
    fine = wanted.startswith("/") and all(c.isalnum() or c in "/_-." for c in wanted)
    return wanted if fine and not wanted.startswith(("//", SIGN_IN, SIGN_OUT)) else "/"


def _person(store: Store, request: Request) -> Reviewer | None:
    token = request.cookies.get(session.cookie())
    return store.person_of_session(token) if token else None


def address(request: Request) -> str:
    """Return the address that attempts are counted by."""
    return request.client.host if request.client else "unknown"
