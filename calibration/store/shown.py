"""The text of the traces that were shown last, kept in memory."""

import threading
from collections import OrderedDict
from typing import Any


class Shown:
    """The traces that were shown last, at most so many and of so much text; any thread may ask.

    Twenty reviewers with three traces each ask for sixty in turn: fewer than that kept, and
    every answer would read them all from the disk again.
    """

    def __init__(self, size: int = 256, characters: int = 64_000_000) -> None:
        self._size, self._characters = size, characters
        self._lengths: dict[tuple[str, str], int] = {}
        self._lock = threading.Lock()
        self._kept: OrderedDict[tuple[str, str], dict[str, Any]] = OrderedDict()

    def get(self, key: tuple[str, str]) -> dict[str, Any] | None:
        """Return a trace that is kept; others must not change it."""
        with self._lock:
            if key in self._kept:
                self._kept.move_to_end(key)
            return self._kept.get(key)

    def put(self, key: tuple[str, str], body: dict[str, Any], characters: int) -> None:
        """Keep a trace instead of those asked for longest ago."""
        with self._lock:
            self._kept[key], self._lengths[key] = body, characters
            while len(self._kept) > self._size or (
                len(self._kept) > 1 and sum(self._lengths.values()) > self._characters
            ):
                oldest, _ = self._kept.popitem(last=False)
                del self._lengths[oldest]
