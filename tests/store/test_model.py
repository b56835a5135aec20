"""Random operations against a model that derives everything from the list of events."""

from dataclasses import dataclass, field
from datetime import datetime, timedelta
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest
from hypothesis import HealthCheck, Phase, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from calibration.errors import LabelRefusedError
from calibration.store import Store, leases, queue
from tests.store.builders import ABANDONED, COMPLETE, PARTIAL_PLUS, Clock, Desk, make_desk

REVIEWERS = ("ann", "bob", "cy")
OUTCOMES = {"complete": COMPLETE, "abandoned": ABANDONED, "partial_plus": PARTIAL_PLUS}
LEASE = timedelta(minutes=15)


@dataclass
class Model:
    """What the store promises, said as plainly and slowly as possible.

    A label or skip ends the lease of its trace, an undo takes it anew.
    """

    traces: tuple[str, ...]
    wanted: int
    events: list[tuple[str, str, str, str | None]] = field(default_factory=list)
    leases: dict[tuple[str, str], datetime] = field(default_factory=dict)

    def decide(self, kind: str, trace: str, by: str, outcome: str | None, now: datetime) -> None:
        self.events.append((kind, trace, by, outcome))
        self.leases[trace, by] = now

    def undo(self, trace: str, by: str, now: datetime) -> None:
        self.events.append(("undo", trace, by, None))
        self.leases[trace, by] = now + LEASE

    def current(self) -> dict[tuple[str, str], str]:
        """Return class or ``skip`` by trace and reviewer."""
        state: dict[tuple[str, str], str] = {}
        for kind, trace, reviewer, outcome in self.events:
            if kind == "undo":
                del state[trace, reviewer]
            else:
                state[trace, reviewer] = outcome or kind
        return state

    def latest(self, reviewer: str) -> str | None:
        current = self.current()
        for kind, trace, by, _ in reversed(self.events):
            # The latest event of a trace that is decided is its decision.
            if by == reviewer and kind != "undo" and (trace, by) in current:
                return trace
        return None

    def queue(self, reviewer: str, now: datetime, limit: int) -> tuple[list[str], str, int]:
        current = self.current()
        left = [
            t
            for t in self.traces
            if (t, reviewer) not in current and self._labels(current, t) < self.wanted
        ]
        free = [
            t
            for t in left
            if self._labels(current, t) + self._holders(current, t, reviewer, now) < self.wanted
        ]
        undone = {
            t: place
            for place, (kind, t, by, _) in enumerate(self.events)
            if by == reviewer and kind == "undo"
        }

        def place(trace: str) -> tuple[Any, ...]:
            held = self.leases.get((trace, reviewer), now) > now
            return -undone.get(trace, -1), not held, self.traces.index(trace)

        offered = sorted(free, key=place)[:limit]
        for trace in offered:
            ends = self.leases.get((trace, reviewer), now)
            if ends - now < LEASE * 0.9:
                self.leases[trace, reviewer] = now + LEASE
        state = "open" if offered else "waiting" if left else "finished"
        mine = sum(by == reviewer for _, by in current)
        return offered, state, mine + len(left)

    def _labels(self, current: dict[tuple[str, str], str], trace: str) -> int:
        return sum(t == trace and what != "skip" for (t, _), what in current.items())

    def _holders(
        self, current: dict[tuple[str, str], str], trace: str, reviewer: str, now: datetime
    ) -> int:
        return sum(
            t == trace and by != reviewer and ends > now and (t, by) not in current
            for (t, by), ends in self.leases.items()
        )


reviewers = st.sampled_from(REVIEWERS)
positions = st.integers(0, 4)


class StoreMachine(RuleBasedStateMachine):
    """Drives the store and the model side by side and compares them after every step."""

    @initialize(wanted=st.integers(1, 2))
    def open_store(self, wanted: int) -> None:
        self.directory = TemporaryDirectory()
        path = Path(self.directory.name) / "store.duckdb"
        self.desk = make_desk(path, 5, labels_wanted=wanted, reviewers=REVIEWERS)
        self.model = Model(self.desk.traces, wanted)
        self.clock = Clock()
        self.patch = pytest.MonkeyPatch()
        self.patch.setattr(queue, "utc_now", self.clock)
        self.patch.setattr(leases, "utc_now", self.clock)
        self.sent: list[tuple[str, str, str, str]] = []
        self.tokens = 0

    def token(self) -> str:
        self.tokens += 1
        return f"t{self.tokens}"

    @rule(reviewer=reviewers, limit=st.integers(1, 3))
    def queue(self, reviewer: str, limit: int) -> None:
        queue = self.desk.store.queue(reviewer, self.desk.batch, limit=limit)
        offered, state, total = self.model.queue(reviewer, self.clock.now, limit)
        assert [t.trace_id for t in queue.items] == offered
        assert (queue.state, queue.total) == (state, total)
        mine = [what for (_, by), what in self.model.current().items() if by == reviewer]
        assert queue.skipped == mine.count("skip")
        assert queue.done == len(mine) - queue.skipped

    @rule(reviewer=reviewers, position=positions, outcome=st.sampled_from(sorted(OUTCOMES)))
    def label(self, reviewer: str, position: int, outcome: str) -> None:
        trace, token = self.model.traces[position], self.token()
        try:
            receipt = self.desk.label(
                trace, reviewer, answers=OUTCOMES[outcome], client_token=token
            )
        except LabelRefusedError:
            assert not self.allowed(trace, reviewer)
        else:
            assert self.allowed(trace, reviewer)
            assert (receipt.outcome, receipt.duplicate) == (outcome, False)
            self.model.decide("label", trace, reviewer, outcome, self.clock.now)
            self.sent.append((token, trace, reviewer, outcome))

    @rule(reviewer=reviewers)
    def label_what_comes_first(self, reviewer: str) -> None:
        self.queue(reviewer, 1)
        offered = self.desk.queue(reviewer, 1)
        if offered:
            self.label(reviewer, self.model.traces.index(offered[0]), "complete")

    @rule(reviewer=reviewers, position=positions)
    def skip(self, reviewer: str, position: int) -> None:
        trace = self.model.traces[position]
        try:
            self.desk.skip(trace, reviewer, client_token=self.token())
        except LabelRefusedError:
            assert not self.allowed(trace, reviewer)
        else:
            assert self.allowed(trace, reviewer)
            self.model.decide("skip", trace, reviewer, None, self.clock.now)

    @rule(reviewer=reviewers, again=st.booleans())
    def undo(self, reviewer: str, again: bool) -> None:
        token = self.token()
        expected = self.model.latest(reviewer)
        assert self.desk.undo(reviewer, client_token=token) == expected
        if expected is not None:
            self.model.undo(expected, reviewer, self.clock.now)
            if again:
                assert self.desk.undo(reviewer, client_token=token) == expected

    @precondition(lambda self: self.sent)
    @rule(data=st.data())
    def send_a_label_again(self, data: st.DataObject) -> None:
        token, trace, reviewer, outcome = data.draw(st.sampled_from(self.sent))
        receipt = self.desk.label(trace, reviewer, client_token=token)
        assert (receipt.outcome, receipt.duplicate) == (outcome, True)

    @rule(minutes=st.sampled_from([1, 5, 16]))
    def wait(self, minutes: int) -> None:
        self.clock.forward(minutes=minutes)

    @rule()
    def reopen(self) -> None:
        path = self.desk.store.path
        self.desk.store.close()
        self.desk = Desk(store=Store.open(path), batch=self.desk.batch, traces=self.desk.traces)

    def allowed(self, trace: str, reviewer: str) -> bool:
        given = (trace, reviewer) in self.model.leases
        return given and (trace, reviewer) not in self.model.current()

    @invariant()
    def store_and_model_agree(self) -> None:
        if hasattr(self, "desk"):
            assert self.desk.labelled() == self.model.current()
            assert self.desk.events() == [event[:3] for event in self.model.events]

    def teardown(self) -> None:
        if hasattr(self, "desk"):
            self.patch.undo()
            self.desk.store.close()
            self.directory.cleanup()


StoreMachine.TestCase.settings = settings(
    max_examples=5,
    stateful_step_count=50,
    deadline=None,
    phases=[Phase.explicit, Phase.reuse, Phase.generate, Phase.shrink],
    suppress_health_check=list(HealthCheck),
)

TestStoreAgainstModel = StoreMachine.TestCase
