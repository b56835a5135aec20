"""Uploads: from leads only, and no more at once than a session and the server have room for."""

from collections import Counter

from starlette.concurrency import run_in_threadpool
from starlette.requests import HTTPConnection
from starlette.responses import PlainTextResponse
from starlette.types import ASGIApp, Receive, Scope, Send
from streamlit import runtime

from app import session
from app.access.door import opened_store
from calibration.store import ranks

PATH = "/_stcore/upload_file/"
MEGABYTE = 1_000_000
MOST_OF_SESSION, MOST_OF_SERVER = 200 * MEGABYTE, 1_000 * MEGABYTE


class Uploads:
    """Refuses an upload of somebody who may not import, or for which there is no room.

    Streamlit holds what was uploaded in memory, and frees it with the session of the tab. It takes
    a file of a tab that was closed meanwhile, which nothing would free.
    """

    def __init__(self, app: ASGIApp) -> None:
        self.app = app
        self._coming: Counter[str] = Counter()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Decide before any of the file is read."""
        if scope["type"] != "http" or scope["method"] != "PUT" or PATH not in scope["path"]:
            await self.app(scope, receive, send)
            return
        tab = scope["path"].partition(PATH)[2].partition("/")[0]
        visit = HTTPConnection(scope)
        declared = visit.headers.get("content-length", "")
        size = int(declared) if declared.isascii() and declared.isdigit() else None
        refusal = await run_in_threadpool(self._refusal, visit, tab, size)
        if refusal is not None or size is None:
            await (refusal or PlainTextResponse("", 411))(scope, receive, send)
            return
        self._coming[tab] += size
        try:
            await self.app(scope, receive, send)
        finally:
            self._coming[tab] -= size
            self._coming += Counter()  # drops what is zero
            _free_if_closed(tab)

    def _refusal(
        self, visit: HTTPConnection, tab: str, size: int | None
    ) -> PlainTextResponse | None:
        if not _may_import(visit):
            return PlainTextResponse("Leads import files.\n", 403)
        if size is None:
            return PlainTextResponse(
                "The request has no Content-Length header: send the size of the file.\n", 411
            )
        held = held_bytes()
        if held[tab] + self._coming[tab] + size > MOST_OF_SESSION:
            most = MOST_OF_SESSION // MEGABYTE
            return PlainTextResponse(
                f"One tab holds up to {most} MB; import larger files by "
                "their path on the server.\n",
                413,
            )
        if held.total() + self._coming.total() + size > MOST_OF_SERVER:
            return PlainTextResponse(
                "The server has too many open uploads; try again later.\n", 503
            )
        return None


def held_bytes() -> Counter[str]:
    """Return the bytes of uploads that the server holds, by session."""
    if not runtime.exists():
        return Counter()
    files = getattr(runtime.get_instance().uploaded_file_mgr, "file_storage", {})
    return Counter(
        {tab: sum(len(file.data) for file in of.values()) for tab, of in list(files.items())}
    )


def _free_if_closed(tab: str) -> None:
    if runtime.exists() and not runtime.get_instance().is_active_session(tab):
        runtime.get_instance().uploaded_file_mgr.remove_session_files(tab)


def _may_import(visit: HTTPConnection) -> bool:
    store = opened_store()
    if store is None or store.identities() == "open":
        return True  # nobody here but this machine, and whoever picks to be a lead is one
    token = visit.cookies.get(session.cookie())
    person = store.person_of_session(token) if token else None
    return person is not None and ranks(person, "lead")
