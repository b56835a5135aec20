"""Limits of connections that Streamlit has no setting for: how many, and how long they may idle.

Streamlit starts uvicorn itself, with neither a limit of connections nor a time for the headers of a
request: a few thousand silent sockets took all descriptors of the process.
"""

import logging
import time
from typing import Any

MOST_CONNECTIONS = 1_000
HEADERS_S = 15.0

# Records of one text within a span of seconds; more of them are counted, not written.
MOST_RECORDS, SPAN_S = 20, 60.0


def limit_sockets(protocol: Any) -> None:
    """Give a protocol class of uvicorn a limit of connections and a time for headers."""
    if getattr(protocol, "limited", False):
        return
    made, received, lost = (
        protocol.connection_made, protocol.data_received, protocol.connection_lost,
    )  # fmt: skip

    def connection_made(self: Any, transport: Any) -> None:
        made(self, transport)
        self.waiting = None
        if len(self.connections) > MOST_CONNECTIONS:
            transport.abort()
            return
        _watch(self)

    def data_received(self: Any, data: bytes) -> None:
        received(self, data)
        _watch(self)

    def connection_lost(self: Any, error: Exception | None) -> None:
        _unwatch(self)
        lost(self, error)

    protocol.connection_made, protocol.data_received = connection_made, data_received
    protocol.connection_lost, protocol.limited = connection_lost, True


def _is_idle(connection: Any) -> bool:
    """Return whether a connection is one of HTTP on which no request is being answered."""
    if connection.transport.get_protocol() is not connection:
        return False  # it became a WebSocket, which has its own pings
    return connection.cycle is None or bool(connection.cycle.response_complete)


def _watch(connection: Any) -> None:
    if not _is_idle(connection):
        _unwatch(connection)
    elif connection.waiting is None:  # more bytes of a header do not buy more time
        connection.waiting = connection.loop.call_later(HEADERS_S, _cut, connection)


def _unwatch(connection: Any) -> None:
    if connection.waiting is not None:
        connection.waiting.cancel()
        connection.waiting = None


def _cut(connection: Any) -> None:
    connection.waiting = None
    if _is_idle(connection):
        connection.transport.abort()


class Bounded(logging.Filter):
    """Lets a burst of one text through up to a limit, and counts the rest."""

    def __init__(self) -> None:
        super().__init__()
        self._since: dict[str, tuple[float, int]] = {}

    def filter(self, record: logging.LogRecord) -> bool:
        """Return whether a record is written."""
        text, now = str(record.msg), time.monotonic()
        since, n = self._since.get(text, (now, 0))
        if now - since > SPAN_S:
            if n > MOST_RECORDS:
                record.msg = f"{text} ({n - MOST_RECORDS} more were not written)"
            since, n = now, 0
        if len(self._since) > 1_000:
            self._since.clear()
        self._since[text] = since, n + 1
        return n < MOST_RECORDS


def limit_server() -> None:
    """Limit the sockets and the log of the server of this process."""
    from uvicorn.protocols.http.auto import AutoHTTPProtocol

    limit_sockets(AutoHTTPProtocol)
    for name in ("uvicorn.error", "streamlit.web.server.starlette.starlette_websocket"):
        log = logging.getLogger(name)
        if not any(isinstance(one, Bounded) for one in log.filters):
            log.addFilter(Bounded())
