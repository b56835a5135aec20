"""What every group of calls has: the database, and who is calling."""

from collections.abc import Callable

from calibration.records import Reviewer
from calibration.store import people
from calibration.store.database import Database
from calibration.taxonomy import Taxonomy


class Calls:
    """Calls on one database; `_actor` is None for whoever holds the file itself.

    `_lasts` says whether the session of the actor still does.
    """

    _db: Database
    _actor: Reviewer | None = None
    _lasts: Callable[[], bool] | None = None

    def _rules(self) -> Taxonomy:
        return people.taxonomy(self._db)
