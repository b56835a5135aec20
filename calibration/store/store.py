"""The store as the rest of the project sees it."""

from copy import copy
from pathlib import Path
from types import TracebackType
from typing import Self

from calibration.errors import StoreLockedError
from calibration.records import Reviewer
from calibration.store import people, sessions, snapshot
from calibration.store.database import Database
from calibration.store.interface.adjudication import AdjudicationCalls
from calibration.store.interface.batches import BatchCalls
from calibration.store.interface.certification import CertificationCalls
from calibration.store.interface.inserted import InsertedCalls
from calibration.store.interface.judging import JudgingCalls
from calibration.store.interface.labels import LabelCalls
from calibration.store.interface.people import PeopleCalls
from calibration.store.interface.sign_in import SignInCalls
from calibration.store.interface.traces import TraceCalls
from calibration.store.keeper import Keeper
from calibration.taxonomy import Taxonomy, default_taxonomy


class Store(
    AdjudicationCalls,
    BatchCalls,
    CertificationCalls,
    InsertedCalls,
    JudgingCalls,
    LabelCalls,
    PeopleCalls,
    SignInCalls,
    TraceCalls,
):
    """Traces, labels and verdicts of one team, in one DuckDB file.

    Every method opens its own cursor and may be called from any thread. Writes are
    idempotent: repeating one stores nothing twice. Whoever opens the file may do everything;
    `acting_as` is the same store with the rights of one person.
    """

    def __init__(self, db: Database) -> None:
        self._db = db

    @classmethod
    def open(
        cls, path: str | Path, *, create: bool = False, taxonomy: Taxonomy | None = None
    ) -> Self:
        """Open a store; `create` makes a missing one with `taxonomy` or the default one."""
        db = Database(Path(path), create=create)
        try:
            if taxonomy is not None or not people.has_taxonomy(db):
                people.set_taxonomy(db, taxonomy or default_taxonomy())
        except BaseException:
            db.close()
            raise
        return cls(db)

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
            return cls(snapshot.open_snapshot(path, locked)), snapshot.age(path)

    def keeper(self) -> Keeper:
        """Return the thread that serves other processes while this one holds the store."""
        return Keeper(self._db)

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

    def acting_as(self, person: Reviewer) -> Self:
        """Return this store as a person may use it: what their role does not allow is refused."""
        bound = copy(self)
        bound._actor, bound._lasts = person, None
        return bound

    @property
    def actor(self) -> Reviewer | None:
        """The person whose rights this store goes by, None for whoever holds the file."""
        return self._actor

    def of_session(self, token: str) -> Self | None:
        """Return this store as the person of a session may use it, None if it has ended.

        When it ends, or the person gets another role, calls are refused from then on: a page
        may still be open.
        """
        person = sessions.person_of_session(self._db, token)
        if person is None:
            return None
        bound = self.acting_as(person)
        bound._lasts = sessions.lasting(self._db, token, person)
        return bound
