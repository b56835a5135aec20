"""The store as the rest of the project uses it, and as another process sees it."""

import functools
import inspect
from collections.abc import Callable, Sequence
from pathlib import Path
from types import TracebackType
from typing import Any, Self
from uuid import uuid4

from calibration.errors import StoreLockedError
from calibration.records import Trace
from calibration.store import sharing
from calibration.store.adjudication import AdjudicationStore
from calibration.store.certification import CertificationStore
from calibration.store.database import Database
from calibration.store.labels import LabelStore
from calibration.store.leases import LeaseStore
from calibration.store.people import PeopleStore
from calibration.store.quality_checks import QualityCheckStore
from calibration.store.queue import QueueStore
from calibration.store.sign_in import SignInStore
from calibration.store.trace_search import TraceSearch
from calibration.store.traces import ImportResult, write_index
from calibration.store.verdicts import VerdictStore
from calibration.taxonomy import Taxonomy, default_taxonomy


class Store(
    AdjudicationStore,
    CertificationStore,
    LabelStore,
    LeaseStore,
    PeopleStore,
    QualityCheckStore,
    QueueStore,
    SignInStore,
    TraceSearch,
    VerdictStore,
):
    """Traces, labels and verdicts of one team, in one DuckDB file.

    Every method opens its own cursor and may be called from any thread. Writes are idempotent:
    repeating one stores nothing twice. The process that opens the file may do everything;
    `acting_as` is the same store with the rights of one person.
    """

    @classmethod
    def open(
        cls, path: str | Path, *, create: bool = False, taxonomy: Taxonomy | None = None
    ) -> Self:
        """Open a store; `create` makes a missing one with `taxonomy` or the default one."""
        store = cls(Database(Path(path), create=create))
        try:
            # One is missing if creating the store was cut off.
            if taxonomy is not None or store._frame("SELECT 1 FROM taxonomy LIMIT 1").empty:
                store.set_taxonomy(taxonomy or default_taxonomy())
        except BaseException:
            store.close()
            raise
        return store

    @classmethod
    def open_to_read(cls, path: str | Path) -> "tuple[Store, float | None]":
        """Open a store for questions only, or its snapshot while the app holds it.

        Returns
        -------
        Store
            Of a snapshot, every write is refused.
        float or None
            The age of the snapshot in seconds; None for the store itself.
        """
        path = Path(path)
        try:
            return cls.open(path), None
        except StoreLockedError as locked:
            return cls(sharing.open_snapshot(path, locked)), sharing.age(path)

    def keeper(self) -> sharing.Keeper:
        """Return the thread that serves other processes while this one holds the store."""
        return sharing.Keeper(self)

    def close(self) -> None:
        """Let the file go, so that another process can open it."""
        self._db.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    @property
    def path(self) -> Path:
        """The DuckDB file."""
        return self._db.path


class RemoteStore(Store):
    """The store as a command sees it while the app holds the file.

    Questions go to the snapshot, and the calls of `sharing.HANDED_OVER` to the inbox of the app.
    After a write the snapshot is read again, so that a command sees what it has stored. Other
    writes are refused: only the Label page makes them.

    Raises
    ------
    StoreLockedError
        `locked`, if no app takes requests in.
    """

    def __init__(
        self, path: Path, locked: StoreLockedError, *, waiting: Callable[[float], None]
    ) -> None:
        if not sharing.is_attended(path):
            raise locked
        self._locked, self._waiting = locked, waiting
        super().__init__(sharing.open_snapshot(path, locked))

    def ingest(self, new: Sequence[Trace], *, take_changed: bool = False) -> ImportResult[str]:
        """Write the text of traces here; the app adds those that are new to its index."""
        return self.ingest_written(write_index(self.path, new), take_changed=take_changed)

    def _hand_over(self, call: Callable[..., Any], arguments: dict[str, Any]) -> Any:
        result = sharing.hand_over(self.path, call, arguments, waiting=self._waiting)
        path = self.path
        self._db.close()
        self._db = sharing.open_snapshot(path, self._locked)
        return result


def _handed_over(call: Callable[..., Any]) -> Callable[..., Any]:
    """Return a call of the store that leaves its arguments in the inbox."""
    signature = inspect.signature(call)

    @functools.wraps(call)
    def hand_over(self: RemoteStore, *args: Any, **kwargs: Any) -> Any:
        _, *given = signature.bind(self, *args, **kwargs).arguments.items()
        arguments = dict(given)
        if "token" in signature.parameters:
            # A request may be taken in twice.
            arguments.setdefault("token", str(uuid4()))
        return self._hand_over(call, arguments)

    return hand_over


for _call in sharing.HANDED_OVER:
    setattr(RemoteStore, _call, _handed_over(getattr(Store, _call)))
