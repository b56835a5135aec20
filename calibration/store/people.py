"""Reviewers, workflows and the taxonomy in force."""

import json
import re
import unicodedata

from calibration.errors import InputError, TaxonomyError
from calibration.records import ROLES, Reviewer, Workflow
from calibration.store.database import Cursor, record_audit, rows, utc_now
from calibration.store.permissions import ADMIN, LEAD, REVIEWER, StorePart, open_to
from calibration.taxonomy import Taxonomy


def put_reviewer(cursor: Cursor, name: str, *, role: str, simulated: bool) -> Reviewer:
    """Add a reviewer in a transaction of the caller's, or return who already has this name."""
    name = " ".join(name.split())
    reviewer_id = reviewer_id_of(name)
    if not reviewer_id or len(name) > 80:
        raise InputError(f"reviewer name must have 1 to 80 letters or digits, got {name!r}")
    if role not in ROLES:
        raise InputError(f"role must be one of {', '.join(ROLES)}, got {role!r}")
    cursor.execute(
        "INSERT INTO reviewer VALUES (?, ?, ?, ?, ?) ON CONFLICT (reviewer_id) DO NOTHING",
        [reviewer_id, name, role, simulated, utc_now()],
    )
    stored = rows(
        cursor,
        "SELECT reviewer_id, name, role, simulated FROM reviewer WHERE reviewer_id = ?",
        [reviewer_id],
    )
    return Reviewer(**stored[0])


def reviewer_id_of(name: str) -> str:
    """Return an id that "Zoë B." and "zoe b" share; other scripts keep letters and marks.

    Only Latin letters lose their accents: elsewhere a mark is a vowel or another letter, and
    two people would share an id.
    """
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
        raise InputError(f"{reviewer_id!r:.80} is no lead of this store")


class PeopleStore(StorePart):
    """People, the taxonomy in force, workflows."""

    @open_to(REVIEWER)
    def taxonomy(self) -> Taxonomy:
        """Return the taxonomy in force: the one set last."""
        return self._rules()

    @open_to(ADMIN)
    def set_taxonomy(self, taxonomy: Taxonomy) -> None:
        """Put a taxonomy in force and add the workflows it names that the store does not know.

        Raises
        ------
        TaxonomyError
            If another taxonomy of the same version is stored: labels name the version only.
        """
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
            # The one set last is in force, even if the clock was put back in between.
            cursor.execute(
                "INSERT INTO taxonomy SELECT ?, ?, ?, greatest(?::TIMESTAMP, "
                "(SELECT max(created_at) + INTERVAL 1 MICROSECOND FROM taxonomy)) "
                "ON CONFLICT (fingerprint) DO UPDATE SET created_at = excluded.created_at",
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
        """Return the workflows by name; one that traces name but nobody set has no ceiling."""
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
        """Set the ceiling and unit of a workflow; the change is audited, numbers follow it."""
        if workflow.ceiling_usd is not None and not 0 < workflow.ceiling_usd < float("inf"):
            raise InputError(
                f"ceiling must be a positive amount in USD, got {workflow.ceiling_usd!r}"
            )
        with self._db.write() as cursor:
            before = rows(
                cursor, "SELECT ceiling_usd, unit FROM workflow WHERE name = ?", [workflow.name]
            )
            after = {"ceiling_usd": workflow.ceiling_usd, "unit": workflow.unit}
            if before == [after]:
                return
            cursor.execute(
                "INSERT INTO workflow VALUES (?, ?, ?, ?) ON CONFLICT (name) "
                "DO UPDATE SET ceiling_usd = excluded.ceiling_usd, unit = excluded.unit",
                [workflow.name, workflow.ceiling_usd, workflow.unit, utc_now()],
            )
            record_audit(cursor, "workflow", name=workflow.name, before=before, after=after)

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
        """Add a reviewer, or return the one who already has this name."""
        with self._db.write() as cursor:
            return put_reviewer(cursor, name, role=role, simulated=simulated)
