"""Permissions: the role that each call of the store requires."""

import functools
import inspect
from collections.abc import Callable
from typing import Any, TypeVar, cast

from calibration.errors import NotAllowedError
from calibration.records import ROLES, Reviewer
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


REVIEWER, LEAD, ADMIN = ROLES

RANK = {role: rank for rank, role in enumerate(ROLES)}


F = TypeVar("F", bound=Callable[..., Any])


def open_to(role: str, *, oneself: str | None = None, or_lead: bool = False) -> Callable[[F], F]:
    """Let people of a role and above make a call.

    Parameters
    ----------
    role : str
        The lowest role that may.
    oneself : str, optional
        The argument, or an attribute of it (``draft.reviewer_id``), that must name the caller:
        nobody, of whatever role, decides in another one's name.
    or_lead : bool, default False
        Leads may ask this about others.
    """

    def decorate(call: F) -> F:
        signature = inspect.signature(call)

        @functools.wraps(call)
        def checked(self: Calls, *args: Any, **kwargs: Any) -> Any:
            actor = self._actor
            if self._lasts is not None and not self._lasts():
                raise NotAllowedError("your session has ended; sign in again")
            if actor is not None:
                if not ranks(actor, role):
                    raise NotAllowedError(f"{call.__name__}: this is for {role}s and above")
                if oneself is not None and not (or_lead and ranks(actor, LEAD)):
                    named: Any = signature.bind(self, *args, **kwargs).arguments
                    first, *rest = oneself.split(".")
                    meant = functools.reduce(getattr, rest, named.get(first))
                    if meant != actor.reviewer_id:
                        raise NotAllowedError(f"{call.__name__}: only in one's own name")
            return call(self, *args, **kwargs)

        checked.opened_to = (role, oneself, or_lead)  # type: ignore[attr-defined]
        return cast("F", checked)

    return decorate


def ranks(person: Reviewer, role: str) -> bool:
    """Return whether a person has a role or one above it."""
    return RANK[person.role] >= RANK[role]
