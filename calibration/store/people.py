"""People, the permission that each call requires, workflows and the taxonomy in force."""

import functools
import inspect
import json
import re
import unicodedata
from collections.abc import Callable
from copy import copy
from dataclasses import is_dataclass
from datetime import datetime
from typing import Any, Self, TypeVar, cast

import pandas as pd

from calibration.errors import InputError, NotAllowedError, TaxonomyError
from calibration.records import ROLES, Reviewer, Workflow
from calibration.store.database import (
    ACT,
    NAMED,
    Act,
    Cursor,
    Database,
    record_audit,
    rows,
    utc_now,
)
from calibration.taxonomy import Taxonomy, taxonomy_from_dict
from calibration.text import shown

# All traces, and the verdicts of the judges that are looked at.
MOST_FRAMES = 4


class Frames(dict[tuple[object, ...], tuple[object, pd.DataFrame]]):
    """Frames with a row a trace, each with the number of the commit after which it was read."""


class StorePart:
    """A group of calls on one database; without an `_actor` every call is allowed."""

    _actor: Reviewer | None = None
    _lasts: Callable[[], bool] | None = None  # whether the actor's session is still open
    _origin: str | None = None  # the command or page that calls, for the audit trail

    def __init__(self, db: Database) -> None:
        self._db = db

    def _unbound(self) -> Self:
        """Return this store without an actor, for the calls that a permitted call makes."""
        unbound = copy(self)
        unbound._actor = unbound._lasts = None
        return unbound

    def acting_as(self, person: Reviewer) -> Self:
        """Return this store with a person's rights; calls that their role forbids are refused."""
        bound = copy(self)
        bound._actor, bound._lasts = person, None
        return bound

    def by_way_of(self, origin: str) -> Self:
        """Return this store as a command or page uses it; the audit trail names that."""
        bound = copy(self)
        bound._origin = origin
        return bound

    @property
    def actor(self) -> Reviewer | None:
        """The person whose rights apply; None: the process that holds the file."""
        return self._actor

    def _by(self) -> str | None:
        return None if self._actor is None else self._actor.reviewer_id

    def _rules(self) -> Taxonomy:
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

    def _frame_kept(self, sql: str, values: list[object] | None = None) -> pd.DataFrame:
        """Return a frame with a row a trace, read again once something was written."""
        return self._kept((sql, *(values or [])), lambda: self._frame(sql, values))

    def _kept(self, key: tuple[object, ...], read: Callable[[], pd.DataFrame]) -> pd.DataFrame:
        """Return the frame that `read` gives, again once something was written."""
        with self._db.read() as cursor:
            commits = cursor.execute("SELECT commits FROM store_state").fetchone()
        kept = self._db.held(Frames)
        found = kept.get(key)
        if found is None or found[0] != commits:
            found = kept[key] = commits, read()
            for oldest in list(kept)[:-MOST_FRAMES]:
                kept.pop(oldest, None)
        return found[1].copy(deep=False)


REVIEWER, LEAD, ADMIN = ROLES
MAX_KEPT = 200
RANK = {role: rank for rank, role in enumerate(ROLES)}
F = TypeVar("F", bound=Callable[..., Any])


def open_to(role: str, *, oneself: str | None = None, or_lead: bool = False) -> Callable[[F], F]:
    """Let people of a role and above make a call.

    `oneself` is an argument, or an attribute of it (``draft.reviewer_id``), that must name the
    caller: no role may decide in another person's name. With `or_lead` leads may ask about others.
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
            if ACT.get() is not None:  # a call that another one makes is a part of that
                return call(self, *args, **kwargs)

            def about() -> dict[str, object]:
                return _named(signature.bind(self, *args, **kwargs).arguments)

            who = self._by()
            act = Act(call=call.__name__, actor=who, origin=self._origin, about=about)
            token = ACT.set(act)
            try:
                return call(self, *args, **kwargs)
            finally:
                ACT.reset(token)

        checked.opened_to = (role, oneself, or_lead)  # type: ignore[attr-defined]
        return cast("F", checked)

    return decorate


def _named(arguments: dict[str, Any]) -> dict[str, object]:
    """Return the arguments that the audit trail keeps, also those within a draft or a record."""
    found = dict(arguments)
    for value in arguments.values():
        if is_dataclass(value) and not isinstance(value, type):
            found |= {name: getattr(value, name) for name in NAMED if hasattr(value, name)}
    kept = {name: found[name] for name in NAMED if found.get(name) is not None}
    return {name: str(value)[:MAX_KEPT] for name, value in kept.items()}


def ranks(person: Reviewer, role: str) -> bool:
    """Return whether a person has a role or one above it."""
    return RANK[person.role] >= RANK[role]


def put_reviewer(cursor: Cursor, name: str, *, role: str, simulated: bool) -> Reviewer:
    """Add a reviewer within a transaction, or return the one with this name."""
    name = " ".join(name.split())
    reviewer_id = reviewer_id_of(name)
    if not reviewer_id or len(name) > 80:
        raise InputError(f"reviewer name must have 1 to 80 letters or digits, got {name!r:.80}")
    if shown(name) != name:
        raise InputError(f"reviewer name must have no hidden characters, got {name!a}")
    if role not in ROLES:
        raise InputError(f"role must be one of {', '.join(ROLES)}, got {role!r}")
    added = cursor.execute(
        "INSERT INTO reviewer VALUES (?, ?, ?, ?, ?) ON CONFLICT (reviewer_id) DO NOTHING "
        "RETURNING reviewer_id",
        [reviewer_id, name, role, simulated, utc_now()],
    ).fetchone()
    if added is not None:
        record_audit(cursor, "add_reviewer", name=name, role=role)
    stored = rows(
        cursor,
        "SELECT reviewer_id, name, role, simulated FROM reviewer WHERE reviewer_id = ?",
        [reviewer_id],
    )
    return Reviewer(**stored[0])


def put_workflow(cursor: Cursor, workflow: Workflow) -> None:
    """Set the ceiling and unit of a workflow within a transaction."""
    if workflow.ceiling_usd is not None and not 0 < workflow.ceiling_usd < float("inf"):
        raise InputError(f"ceiling must be a positive amount in USD, got {workflow.ceiling_usd!r}")
    before = rows(cursor, "SELECT ceiling_usd, unit FROM workflow WHERE name = ?", [workflow.name])
    after = {"ceiling_usd": workflow.ceiling_usd, "unit": workflow.unit}
    if before == [after]:
        return
    cursor.execute(
        "INSERT INTO workflow VALUES (?, ?, ?, ?) ON CONFLICT (name) "
        "DO UPDATE SET ceiling_usd = excluded.ceiling_usd, unit = excluded.unit",
        [workflow.name, workflow.ceiling_usd, workflow.unit, utc_now()],
    )
    record_audit(cursor, "workflow", name=workflow.name, before=before, after=after)


def reviewer_id_of(name: str) -> str:
    """Return an id that "Zoë B." and "zoe b" share."""
    # Only Latin letters lose their marks: elsewhere a mark is a vowel or another letter, and two
    # people would share an id.
    kept: list[str] = []
    latin = False
    for c in unicodedata.normalize("NFKD", name.casefold()):
        if not unicodedata.category(c).startswith("M"):
            latin = unicodedata.name(c, "").startswith("LATIN")
            kept.append(c if c.isalnum() or c == "_" else "-")
        elif not latin and kept and kept[-1] != "-":
            kept.append(c)
    return unicodedata.normalize("NFC", re.sub("-+", "-", "".join(kept)).strip("-_"))


def check_lead(cursor: Cursor, reviewer_id: str) -> None:
    """Require a lead of the store, or an admin."""
    found = cursor.execute(
        "SELECT 1 FROM reviewer WHERE reviewer_id = ? AND role <> 'reviewer'", [reviewer_id]
    ).fetchone()
    if found is None:
        raise InputError(f"{reviewer_id!r:.80} is not a lead of this store")


class PeopleStore(StorePart):
    """People, workflows and the taxonomy in force."""

    @open_to(REVIEWER)
    def taxonomy(self) -> Taxonomy:
        """Return the taxonomy in force: the one set last."""
        return self._rules()

    @open_to(ADMIN)
    def set_taxonomy(self, taxonomy: Taxonomy) -> None:
        """Put a taxonomy in force and add its new workflows."""
        with self._db.write() as cursor:
            clash = cursor.execute(
                "SELECT fingerprint FROM taxonomy WHERE version = ? AND fingerprint <> ?",
                [taxonomy.version, taxonomy.fingerprint],
            ).fetchone()
            if clash is not None:
                raise TaxonomyError(
                    f"version {taxonomy.version!r} is taken by another taxonomy ({clash[0][:12]}); "
                    "give the changed one a new version"
                )
            body = json.dumps(taxonomy.to_dict())
            # The one set last is in force, even if the clock was set back.
            cursor.execute(
                "INSERT INTO taxonomy SELECT ?, ?, ?, greatest(?::TIMESTAMP, "
                "(SELECT max(created_at) + INTERVAL 1 MICROSECOND FROM taxonomy)) "
                "ON CONFLICT (fingerprint) DO UPDATE SET created_at = excluded.created_at, "
                # Of the same fingerprint: at most another catalogue of tags.
                "body = excluded.body",
                [taxonomy.fingerprint, taxonomy.version, body, utc_now()],
            )
            for workflow in taxonomy.workflows:
                cursor.execute(
                    "INSERT INTO workflow VALUES (?, ?, ?, ?) ON CONFLICT (name) DO NOTHING",
                    [workflow.name, workflow.ceiling_usd, workflow.unit, utc_now()],
                )
            record_audit(
                cursor, "taxonomy", version=taxonomy.version, fingerprint=taxonomy.fingerprint
            )
        self._db.forget("taxonomy")

    @open_to(REVIEWER)
    def workflows(self) -> dict[str, Workflow]:
        """Return the workflows by name; one that only traces name has no ceiling."""
        with self._db.read() as cursor:
            found = rows(
                cursor,
                "SELECT name, ceiling_usd, unit FROM workflow UNION ALL "
                "SELECT DISTINCT workflow, NULL, 'task' FROM trace "
                "WHERE workflow NOT IN (SELECT name FROM workflow) ORDER BY name",
            )
        return {row["name"]: Workflow(**row) for row in found}

    @open_to(LEAD)
    def set_workflow(self, workflow: Workflow) -> None:
        """Set the ceiling and unit of a workflow; the change is audited."""
        with self._db.write() as cursor:
            put_workflow(cursor, workflow)

    @open_to(LEAD)
    def reviewers(self) -> list[Reviewer]:
        """Return everybody who can label, by name."""
        with self._db.read() as cursor:
            found = rows(
                cursor,
                "SELECT reviewer_id, name, role, simulated FROM reviewer "
                "ORDER BY lower(name), reviewer_id",
            )
        return [Reviewer(**row) for row in found]

    @open_to(ADMIN)
    def add_reviewer(
        self, name: str, *, role: str = "reviewer", simulated: bool = False
    ) -> Reviewer:
        """Add a reviewer, or return the one with this name."""
        with self._db.write() as cursor:
            return put_reviewer(cursor, name, role=role, simulated=simulated)

    @open_to(ADMIN)
    def audit_trail(
        self,
        *,
        since: datetime | None = None,
        who: str | None = None,
        what: str | None = None,
        limit: int | None = None,
    ) -> pd.DataFrame:
        """Return who did what, when and from where, newest first.

        Columns: seq, created_at (UTC), actor (missing: the process that held the file), origin,
        what, detail (JSON text).
        """
        return self._frame(
            "SELECT seq, created_at, actor, origin, what, detail::VARCHAR AS detail FROM audit "
            "WHERE ($since IS NULL OR created_at >= $since) AND ($who IS NULL OR actor = $who) "
            "AND ($what IS NULL OR what = $what) ORDER BY seq DESC LIMIT $limit",
            {
                "since": since,
                "who": who,
                "what": what,
                "limit": 1 << 62 if limit is None else limit,
            },
        )
