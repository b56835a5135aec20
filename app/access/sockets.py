"""Limits of connections that Streamlit has no setting for: how many, and how slow they may be.

Streamlit starts uvicorn itself, with neither a limit of connections nor a time for a request: a few
thousand silent sockets, or bodies sent byte by byte, took all descriptors of the process.
"""

import logging
import time
from typing import Any

MOST_CONNECTIONS = 1_000
HEADERS_S = 15.0

# A body may take as long as it likes at this rate, looked at after each span of seconds.
BODY_S, LEAST_BYTES_A_SECOND = 15.0, 1_000

# How long a server that is told to stop waits for its visitors; uvicorn alone waits for ever.
STOP_S = 5

# Records of one text within a span of seconds; more of them are counted, not written.
MOST_RECORDS, SPAN_S = 20, 60.0


def limit_sockets(protocol: Any) -> None:
    """Give a protocol class of uvicorn a limit of connections and of how slow a request may be."""
    if getattr(protocol, "limited", False):
        return
    made, received, lost = (
        protocol.connection_made, protocol.data_received, protocol.connection_lost,
    )  # fmt: skip

    def connection_made(self: Any, transport: Any) -> None:
        made(self, transport)
        self.timed, self.timer, self.bytes_in = None, None, 0
        self.config.timeout_graceful_shutdown = STOP_S
        if len(self.connections) > MOST_CONNECTIONS:
            transport.abort()
            return
        _watch(self)

    def data_received(self: Any, data: bytes) -> None:
        received(self, data)
        self.bytes_in += len(data)
        _watch(self)

    def connection_lost(self: Any, error: Exception | None) -> None:
        _time(self, None)
        lost(self, error)

    protocol.connection_made, protocol.data_received = connection_made, data_received
    protocol.connection_lost, protocol.limited = connection_lost, True


def _awaited(connection: Any) -> str | None:
    """Return what the visitor has yet to send: the headers of a request, its body, or nothing."""
    if connection.transport.get_protocol() is not connection:
        return None  # it became a WebSocket, which has its own pings
    cycle = connection.cycle
    if cycle is None or cycle.response_complete:
        return "headers"
    return "body" if cycle.more_body else None


def _watch(connection: Any) -> None:
    awaited = _awaited(connection)
    if connection.timed != awaited:  # more bytes of a header do not buy more time
        _time(connection, awaited)


def _time(connection: Any, awaited: str | None) -> None:
    if connection.timer is not None:
        connection.timer.cancel()
    connection.timed, connection.timer, connection.bytes_in = awaited, None, 0
    if awaited is not None:
        seconds = HEADERS_S if awaited == "headers" else BODY_S
        connection.timer = connection.loop.call_later(seconds, _cut_if_late, connection)


def _cut_if_late(connection: Any) -> None:
    timed, awaited = connection.timed, _awaited(connection)
    # What the app has not taken yet keeps the server from reading: the visitor is not late then.
    fast = connection.bytes_in >= LEAST_BYTES_A_SECOND * BODY_S or connection.flow.read_paused
    if timed == awaited and (awaited == "headers" or not fast):
        connection.transport.abort()
    else:
        _time(connection, awaited)


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
