"""The Label page as a reviewer at the keyboard uses it, with a note of what was shown."""

import time
from dataclasses import dataclass, field
from itertools import pairwise

from playwright.sync_api import Locator, Page

KEYS = {
    "complete": "yny",
    "partial_plus": "ynnn",
    "partial_minus": "ynny",
    "hallucinated": "yy",
    "abandoned": "n",
}

QUOTE = "arrives on Tuesday"

QUIET_S = 0.23


@dataclass
class Desk:
    """One open page; `shown` maps each labelled trace to the class given to it."""

    page: Page
    url: str
    shown: dict[str, str] = field(default_factory=dict)

    def open(self, name: str = "Anna B.") -> None:
        self.page.goto(self.url)
        self.page.get_by_label("name").fill(name)
        self.page.get_by_role("button", name="Start labelling").click()
        self.wait_painted("")

    @property
    def frame(self) -> Locator:
        return self.page.locator(".desk")

    def get(self, name: str) -> str:
        return self.frame.get_attribute(f"data-{name}") or ""

    @property
    def painted(self) -> list[str]:
        return self.get("painted").split()

    def wait_painted(self, before: str, timeout: float = 30_000) -> str:
        """Wait until a trace other than `before` is painted and takes keys; return its id."""
        self.page.wait_for_function(
            """(before) => {
              const host = document.querySelector('[data-testid=stBidiComponentIsolated]');
              const desk = host?.shadowRoot?.querySelector('.desk');
              return desk && desk.dataset.ready === 'true' && desk.dataset.trace !== before;
            }""",
            arg=before,
            timeout=timeout,
        )
        time.sleep(QUIET_S)
        return self.get("trace")

    def press(self, keys: str, gap: float = 0.1) -> None:
        for key in keys:
            self.page.keyboard.press(key)
            time.sleep(gap)

    def burst(self, gap: float) -> bool:
        """Press n ten times at this gap; return whether the machine kept the pace.

        A pause longer than the page's quiet time is a new press and labels the next trace
        rightly. What was labelled is read off the list of painted traces.
        """
        n_painted, pressed = len(self.painted), [time.monotonic()]
        for _ in range(10):
            self.press("n", gap)
            pressed.append(time.monotonic())
        time.sleep(0.3)
        self.wait_painted("")
        passed = self.painted[n_painted - 1 : -1]
        self.shown |= dict.fromkeys(passed, "abandoned")
        kept_pace = max(b - a for a, b in pairwise(pressed)) < 0.15
        assert len(passed) == 1 if kept_pace else len(passed) >= 1
        return kept_pace

    def label(self, outcome: str) -> str:
        """Label the painted trace and wait for the next one or for a state without one."""
        trace = self.get("trace")
        self.press(KEYS[outcome])
        if outcome == "hallucinated":
            self.page.keyboard.type(QUOTE)
            self.page.keyboard.press("Enter")
        self.shown[trace] = outcome
        self.page.wait_for_function(
            """(before) => {
              const host = document.querySelector('[data-testid=stBidiComponentIsolated]');
              const desk = host.shadowRoot.querySelector('.desk');
              return desk.dataset.trace !== before
                && (desk.dataset.ready === 'true' || desk.dataset.state === 'finished');
            }""",
            arg=trace,
        )
        time.sleep(QUIET_S)
        return trace

    def wait_saved(self) -> None:
        self.page.wait_for_function(
            """() => document.querySelector('[data-testid=stBidiComponentIsolated]')
              ?.shadowRoot?.querySelector('.desk')?.dataset.unsaved === '0'"""
        )
