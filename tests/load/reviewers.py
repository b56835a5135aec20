"""Reviewers who speak to the server as the Label page in a browser does, without a browser.

Each has a websocket and a Streamlit session of its own and runs the same script, fragment and
callback on the server as a person at the keyboard. Like the page, a reviewer keeps every event
in an outbox and sends it again until the server says that the store holds its token.
"""

import asyncio
import json
import time
from dataclasses import dataclass, field
from random import Random
from typing import Any
from uuid import uuid4

from streamlit.proto.BackMsg_pb2 import BackMsg
from streamlit.proto.ForwardMsg_pb2 import ForwardMsg
from websockets.asyncio.client import ClientConnection, connect
from websockets.exceptions import WebSocketException
from websockets.typing import Origin, Subprotocol

RESEND_S, RESEND_MOST_S = 1.5, 12.0
SPREAD = 0.6  # standard deviation of the logarithm of a think time

PATHS = (
    {"output": "no"},
    {"output": "yes", "fabrication": "no", "all_subgoals": "yes"},
    {"output": "yes", "fabrication": "no", "all_subgoals": "no", "material_error": "no"},
    {"output": "yes", "fabrication": "no", "all_subgoals": "no", "material_error": "yes"},
)


@dataclass(frozen=True)
class Taken:
    """A label that the server has confirmed: when it was sent, and after how long."""

    trace_id: str
    token: str
    sent: float
    seconds: float


@dataclass
class Reviewer:
    """One reviewer at work; what is known of the server outlives a lost connection."""

    port: int
    reviewer_id: str
    batch: str
    think_s: float
    rng: Random
    lingers: float = 0.0  # how often the second question takes seconds: its draft must stand
    labels: list[Taken] = field(default_factory=list)
    drafts: dict[str, dict[str, str]] = field(default_factory=dict)
    refused: list[str] = field(default_factory=list)
    connections: int = 0
    _outbox: list[dict[str, Any]] = field(default_factory=list)
    _sent: dict[str, float] = field(default_factory=dict)
    _held: set[str] = field(default_factory=set)
    _data: dict[str, Any] = field(default_factory=dict)
    _place: dict[str, str] = field(default_factory=dict)
    _number: int = 0
    _guide: str = ""
    _resend_s: float = RESEND_S

    async def work(self, until: asyncio.Event) -> None:
        """Label until told to stop, and then until everything is confirmed."""
        while not until.is_set() or self._outbox:
            try:
                await self._session(until)
            except (OSError, WebSocketException, TimeoutError):
                await asyncio.sleep(0.1)  # no server: the outbox waits

    async def _session(self, until: asyncio.Event) -> None:
        address = f"ws://127.0.0.1:{self.port}/_stcore/stream"
        async with connect(
            address, subprotocols=[Subprotocol("streamlit")], max_size=None,
            open_timeout=30, origin=Origin(f"http://127.0.0.1:{self.port}"),
        ) as socket:  # fmt: skip
            self.connections += 1
            self._held, self._place, self._guide = set(), {}, ""
            hello = BackMsg()
            hello.rerun_script.query_string = f"reviewer={self.reviewer_id}&batch={self.batch}"
            await socket.send(hello.SerializeToString())
            await self._next_data(socket, timeout=120)  # a browser waits, too
            while not until.is_set() or self._outbox:
                if self._outbox:
                    await self._deliver(socket)
                elif (trace := self._current()) is None:
                    await self._pause(self.think_s or 0.05)
                    await self._deliver(socket)
                else:
                    await self._decide(socket, trace)

    def _current(self) -> str | None:
        queue = self._data["queue"]
        return str(queue[0]["trace_id"]) if queue else None

    async def _pause(self, seconds: float) -> None:
        """Wait for a log-normal time with this mean: people pause rarely, and then for long."""
        await asyncio.sleep(seconds * self.rng.lognormvariate(-(SPREAD**2) / 2, SPREAD))

    async def _decide(self, socket: ClientConnection, trace_id: str) -> None:
        """Think, answer a question, think, answer the rest."""
        answers = self.rng.choice(PATHS)
        await self._pause(self.think_s / 2)
        if len(answers) > 1:
            cut = self.rng.randrange(1, len(answers))
            self._put("draft", trace_id, dict(list(answers.items())[:cut]))
            await self._deliver(socket)
        await self._pause(2.0 if self.rng.random() < self.lingers else self.think_s / 2)
        self.drafts.pop(trace_id, None)
        self._outbox = [e for e in self._outbox if e["kind"] != "draft"]
        self._put("label", trace_id, answers)
        await self._deliver(socket)

    def _put(self, kind: str, trace_id: str, answers: dict[str, str]) -> None:
        token = str(uuid4())
        event = {"token": token, "kind": kind, "trace_id": trace_id, "answers": answers}
        self._outbox.append(event)
        self._sent[token] = time.monotonic()

    async def _deliver(self, socket: ClientConnection) -> None:
        """Send the outbox and take in the answer; what stays in it is sent again."""
        self._number += 1
        sent = {
            "reviewer": self.reviewer_id, "batch": self.batch, "events": self._outbox,
            "held": sorted(self._held), "number": self._number, "guide": self._guide,
        }  # fmt: skip
        message = BackMsg()
        message.rerun_script.query_string = f"reviewer={self.reviewer_id}&batch={self.batch}"
        message.rerun_script.page_script_hash = self._place["page"]
        message.rerun_script.fragment_id = self._place["fragment"]
        state = message.rerun_script.widget_states.widgets.add()
        state.id = f"$$STREAMLIT_INTERNAL_KEY_{self._place['component']}__events"
        state.json_trigger_value = json.dumps([{"event": "outbox", "value": sent}])
        await socket.send(message.SerializeToString())
        try:
            while self._data.get("number") != self._number:
                await self._next_data(socket, timeout=self._resend_s * self.rng.uniform(0.75, 1.25))
        except TimeoutError:
            self._resend_s = min(2 * self._resend_s, RESEND_MOST_S)
            return
        self._resend_s = RESEND_S
        self._settle()

    async def _next_data(self, socket: ClientConnection, timeout: float) -> None:
        """Read messages until the server shows the desk anew."""
        async with asyncio.timeout(timeout):
            while True:
                message = ForwardMsg()
                message.ParseFromString(bytes(await socket.recv(decode=False)))
                kind = message.WhichOneof("type")
                if kind == "new_session" and not self._place.get("page"):
                    self._place["page"] = message.new_session.page_script_hash
                elif kind == "delta" and message.delta.new_element.HasField("bidi_component"):
                    component = message.delta.new_element.bidi_component
                    self._place["component"] = component.id
                    self._place["fragment"] = message.delta.fragment_id
                    self._data = json.loads(component.mixed.json or component.json)
                    self._guide = self._data["guide"]["key"]
                    self._held |= {t["trace_id"] for t in self._data["queue"]}
                    return

    def _settle(self) -> None:
        now = time.monotonic()
        acked = set(self._data["acked"])
        refused = {r["token"]: r["why"] for r in self._data["refused"]}
        for event in self._outbox:
            token = event["token"]
            if token in refused:
                self.refused.append(f"{event['kind']}: {refused[token]}")
            elif token in acked and event["kind"] == "draft":
                self.drafts[event["trace_id"]] = event["answers"]
            elif token in acked:
                sent = self._sent[token]
                self.labels.append(Taken(event["trace_id"], token, sent, now - sent))
        self._outbox = [e for e in self._outbox if e["token"] not in acked | set(refused)]


def team(
    port: int, names: list[str], batch: str, *, think_s: float, seed: int, lingers: float = 0.0
) -> list[Reviewer]:
    """Return reviewers who are in the store already, each with a random stream of its own."""
    return [
        Reviewer(port, name, batch, think_s, Random(f"{seed} {name}"), lingers) for name in names
    ]
