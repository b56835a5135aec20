"""The Label page as a reviewer at the keyboard uses it, and what was sent, shown and stored."""

import json
import subprocess
import sys
import time
from contextlib import suppress
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path
from typing import Any

from playwright.sync_api import Error, Locator, Page, Response, TimeoutError, WebSocket

KEYS = {
    "complete": "yny",
    "partial_plus": "ynnn",
    "partial_minus": "ynny",
    "hallucinated": "yy",
    "abandoned": "n",
}

QUOTE = "arrives on Tuesday"
QUIET_S = 0.23

# Run by a process of its own: the server must have let the file go.
READ_BACK = """
import json, sys, duckdb
from calibration.store import Store
with Store.open(sys.argv[1]) as store:
    frame = store.label_frame(sys.argv[2])
found = {"current": [[r.trace_id, r.reviewer_id, r.kind, r.outcome] for r in frame.itertuples()]}
with duckdb.connect(sys.argv[1], read_only=True) as con:
    found |= {name: con.execute(f"SELECT {sql} ORDER BY seq").fetchall() for name, sql in {
        "events": "kind, trace_id FROM label_event",
        "labels": "trace_id, outcome, confidence, tags, sub_goals, rationale FROM label_current "
                  "WHERE kind = 'label'",
        "undos": "trace_id, reason FROM label_event WHERE kind = 'undo'",
        "flags": "kind, trace_id, reason FROM flag_event",
        "seconds": "seconds_active FROM label_event WHERE kind = 'label'",
    }.items()}
print(json.dumps(found, default=lambda v: None))
"""


def read_back(store: Path, batch: str = "production-001") -> dict[str, list[list[Any]]]:
    done = subprocess.run(
        [sys.executable, "-c", READ_BACK, str(store), batch],
        capture_output=True, text=True, check=True, timeout=60,
    )  # fmt: skip
    found: dict[str, list[list[Any]]] = json.loads(done.stdout)
    return found


def labels(stored: dict[str, list[list[Any]]]) -> dict[str, str]:
    found = [(trace, outcome) for trace, _, kind, outcome in stored["current"] if kind == "label"]
    assert len(found) == len(dict(found))
    return dict(found)


class Traffic:
    """Every frame and every body that reaches a page, but for scripts and fonts."""

    def __init__(self, page: Page) -> None:
        self.page = page
        self.frames: list[bytes] = []
        self._bodies: list[bytes] = []
        self._answers: list[Response] = []
        page.on("websocket", self._listen)
        page.on("response", lambda answer: self._answers.append(answer))

    def _listen(self, socket: WebSocket) -> None:
        socket.on("framereceived", self._keep)

    def _keep(self, data: str | bytes) -> None:
        self.frames.append(data.encode() if isinstance(data, str) else data)

    def _body(self, answer: Response) -> bytes:
        """Return a body; ask for it again where the browser has let it go already."""
        try:
            return answer.body()
        except Error:
            if answer.request.method != "GET":
                raise
            return self.page.context.request.get(answer.url).body()

    def heard(self) -> str:
        """Return it as one text.

        A browser forgets bodies when it goes on to another page: call it before that.
        """
        self.page.wait_for_load_state("networkidle")
        wanted = [a for a in self._answers if not 300 <= a.status < 400]
        self._answers.clear()
        self._bodies += [
            self._body(answer) for answer in wanted if not answer.url.endswith((".js", ".woff2"))
        ]
        return b"\n".join([*self.frames, *self._bodies]).decode("utf-8", "replace")


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

    def wait(self, condition: str, arg: str = "", timeout: float = 90_000) -> None:
        """Wait until the data `d` of the desk meet a condition, in which `arg` may be used."""
        try:
            self.page.wait_for_function(
                f"""(arg) => {{
                  const host = document.querySelector('[data-testid=stBidiComponentIsolated]');
                  const d = host?.shadowRoot?.querySelector('.desk')?.dataset;
                  return d && ({condition});
                }}""",
                arg=arg,
                timeout=timeout,
            )
        except TimeoutError as error:
            error.add_note(f"the desk when time was up: {self.state()}")
            raise

    def state(self) -> object:
        """Return the data of the desk and its text, or the text of a page without a desk."""
        desk = self.frame.first
        if not desk.is_visible():
            return self.page.locator("body").inner_text()
        return desk.evaluate("(d) => [{...d.dataset}, d.innerText.slice(0, 1000)]")

    def wait_painted(self, before: str, timeout: float = 90_000) -> str:
        """Wait until a trace other than `before` is painted and takes keys; return its id."""
        self.wait("d.ready === 'true' && d.trace !== arg", before, timeout)
        time.sleep(QUIET_S)
        return self.get("trace")

    def wait_next(self, before: str, timeout: float = 120_000) -> None:
        """Wait until another trace is painted, or there is none left."""
        ends = "d.trace !== arg && (d.ready === 'true' || d.state === 'finished')"
        self.wait(ends, before, timeout)
        time.sleep(QUIET_S)

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
        self.wait_next(trace)
        return trace

    def wait_saved(self) -> None:
        self.wait("d.unsaved === '0'")


def choose(page: Page, menu: str, option: str, *, exact: bool = False) -> None:
    """Choose from a menu; one that closes because the page was drawn anew is opened again."""
    box = page.get_by_role("combobox", name=menu)
    for patience_ms in (5_000, 10_000, 30_000):
        box.click()
        with suppress(TimeoutError):
            page.get_by_role("option", name=option, exact=exact).click(timeout=patience_ms)
            return
        box.press("Escape")
    raise AssertionError(f"{menu} does not offer {option}")


def settle(page: Page) -> None:
    """Wait until nothing runs, is stale or fades in: half-faded text has too little contrast."""
    page.locator('[data-testid="stApp"][data-test-script-state="notRunning"]').wait_for()
    page.wait_for_function(
        "() => !document.querySelector('[data-stale=\"true\"]') "
        "&& document.getAnimations().every((a) => a.playState !== 'running')"
    )
    page.wait_for_timeout(1500)
