"""What the process that holds a store does beside serving it: snapshot and inbox."""

import logging
import threading
import time
from contextlib import suppress
from typing import Any

from calibration.store import batches, label_import, people, sign_in, traces, verdicts
from calibration.store.database import Database
from calibration.store.handover import beat, take_in
from calibration.store.snapshot import publish

EVERY, SNAPSHOT_EVERY = 1.0, 5.0
log = logging.getLogger(__name__)


class Keeper(threading.Thread):
    """Takes in what other processes hand over, and keeps a snapshot for them to read.

    A snapshot is written after changes, at most every five seconds, and at once after a
    request: whoever handed it over reads next.
    """

    def __init__(self, db: Database) -> None:
        super().__init__(name="store-keeper", daemon=True)
        self._db = db
        self._stopping = threading.Event()
        self._published, self._published_at = -1, -SNAPSHOT_EVERY

    def run(self) -> None:
        """Work until `stop`."""
        # On its own: an import may take longer than a command waits for a sign of life.
        threading.Thread(target=self._beat, name="store-heart", daemon=True).start()
        while not self._stopping.is_set():
            try:
                self.round()
            except Exception:
                # The keeper outlives a full disk: it tries again, and the log says why.
                log.exception("%s: snapshot or inbox failed", self._db.path)
            self._stopping.wait(EVERY)

    def round(self) -> None:
        """Show that requests are taken in, take them in, and write a snapshot if it is due."""
        beat(self._db.path)
        taken = take_in(self._db.path, self._carry_out, before_reply=self._publish)
        due = time.monotonic() - self._published_at >= SNAPSHOT_EVERY
        if due and not taken and self._db.changes != self._published:
            self._publish()

    def stop(self) -> None:
        """Stop after the round that is under way, and leave a snapshot of the last state."""
        self._stopping.set()
        if self.is_alive():
            self.join()

    def _beat(self) -> None:
        while not self._stopping.is_set():
            with suppress(OSError):
                beat(self._db.path)
            self._stopping.wait(EVERY)

    def _publish(self) -> None:
        changes = self._db.changes
        publish(self._db)
        self._published, self._published_at = changes, time.monotonic()

    def _carry_out(self, call: str, arguments: dict[str, Any]) -> Any:
        db = self._db
        match call:
            case "ingest_written":
                return traces.ingest_written(db, **arguments)
            case "add_batch":
                return batches.add_batch(db, **arguments)
            case "add_reviewer":
                return people.add_reviewer(db, **arguments)
            case "store_hash":
                return sign_in.store_hash(db, **arguments)
            case "set_identities":
                return sign_in.set_identities(db, **arguments)
            case "set_role":
                return sign_in.set_role(db, **arguments)
            case "set_workflow":
                return people.set_workflow(db, **arguments)
            case "set_taxonomy":
                return people.set_taxonomy(db, arguments["taxonomy"])
            case "add_verdicts":
                return verdicts.add_verdicts(db, arguments["new"])
            case _:
                return label_import.import_labels(db, people.taxonomy(db), **arguments)
