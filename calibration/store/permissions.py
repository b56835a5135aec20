"""Permissions: the role that each call of the store requires, and what all its parts share."""

import functools
import inspect
import json
from collections.abc import Callable
from copy import copy
from typing import Any, Self, TypeVar, cast

import pandas as pd

from calibration.errors import NotAllowedError, TaxonomyError
from calibration.records import ROLES, Reviewer
from calibration.store.database import Database
from calibration.taxonomy import Taxonomy, taxonomy_from_dict


class StorePart:
    """A group of calls on one database; without an `_actor` every call is allowed.

    `_lasts` tells whether the session of the actor has not ended.
    """

    _actor: Reviewer | None = None
    _lasts: Callable[[], bool] | None = None

    def __init__(self, db: Database) -> None:
        self._db = db

    def _unbound(self) -> Self:
        """Return this store without an actor, for what a permitted call itself has to call."""
        unbound = copy(self)
        unbound._actor = unbound._lasts = None
        return unbound

    def acting_as(self, person: Reviewer) -> Self:
        """Return this store as a person may use it: what their role does not allow is refused."""
        bound = copy(self)
        bound._actor, bound._lasts = person, None
        return bound

    @property
    def actor(self) -> Reviewer | None:
        """The person whose rights this store goes by; None: the process that holds the file."""
        return self._actor

    def _by(self) -> str | None:
        return None if self._actor is None else self._actor.reviewer_id

    def _rules(self) -> Taxonomy:
        """Return the taxonomy in force: the one set last."""
        # Every label asks several times. No other process can set one while this one has the file.
        return self._db.kept("taxonomy", self._stored_taxonomy)

    def _stored_taxonomy(self) -> Taxonomy:
        with self._db.read() as cursor:
            found = cursor.execute(
                "SELECT body FROM taxonomy ORDER BY created_at DESC LIMIT 1"
            ).fetchone()
        if found is None:
            raise TaxonomyError(f"{self._db.path}: the store has no taxonomy")
        return taxonomy_from_dict(json.loads(found[0]), where=str(self._db.path))

    def _frame(
        self, sql: str, values: list[object] | dict[str, object] | None = None
    ) -> pd.DataFrame:
        with self._db.read() as cursor:
            return cursor.execute(sql, values or []).df()


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
        def checked(self: StorePart, *args: Any, **kwargs: Any) -> Any:
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
