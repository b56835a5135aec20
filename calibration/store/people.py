"""Reviewers, workflows and the taxonomy in force."""

import json
import re
import unicodedata

from calibration.errors import InputError, TaxonomyError
from calibration.records import Reviewer, Workflow
from calibration.store.database import Database, record_audit, rows, utc_now
from calibration.taxonomy import Taxonomy, taxonomy_from_dict


def reviewers(db: Database) -> list[Reviewer]:
    """Return everybody who can label, by name."""
    with db.read() as cursor:
        found = rows(
            cursor, "SELECT reviewer_id, name, role, simulated FROM reviewer ORDER BY lower(name)"
        )
    return [Reviewer(**row) for row in found]


def add_reviewer(
    db: Database, name: str, *, role: str = "reviewer", simulated: bool = False
) -> Reviewer:
    """Add a reviewer, or return the one who already has this name."""
    name = " ".join(name.split())
    reviewer_id = _slug(name)
    if not reviewer_id or len(name) > 80:
        raise InputError(f"reviewer name must have 1 to 80 letters or digits, got {name!r}")
    if role not in ("reviewer", "lead"):
        raise InputError(f"role must be reviewer or lead, got {role!r}")
    with db.write() as cursor:
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


def _slug(name: str) -> str:
    """Return an id that "Zoë B." and "zoe b" share; other scripts keep their letters."""
    folded = unicodedata.normalize("NFKD", name.casefold())
    letters = "".join(c for c in folded if not unicodedata.combining(c))
    return re.sub(r"\W+", "-", letters).strip("-_")


def workflows(db: Database) -> dict[str, Workflow]:
    """Return the workflows by name; one that traces name but nobody set has no ceiling."""
    with db.read() as cursor:
        found = rows(
            cursor,
            "SELECT name, ceiling_usd, unit FROM workflow UNION ALL "
            "SELECT DISTINCT workflow, NULL, 'task' FROM trace "
            "WHERE workflow NOT IN (SELECT name FROM workflow) ORDER BY name",
        )
    return {row["name"]: Workflow(**row) for row in found}


def set_workflow(db: Database, workflow: Workflow) -> None:
    """Set the ceiling and unit of a workflow; the change is audited, numbers follow it."""
    if workflow.ceiling_usd is not None and not 0 < workflow.ceiling_usd < float("inf"):
        raise InputError(f"ceiling must be a positive amount in USD, got {workflow.ceiling_usd!r}")
    with db.write() as cursor:
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


def taxonomy(db: Database) -> Taxonomy:
    """Return the taxonomy in force: the one set last."""
    with db.read() as cursor:
        row = cursor.execute("SELECT body FROM taxonomy ORDER BY created_at DESC").fetchone()
    if row is None:
        raise TaxonomyError(f"{db.path}: the store has no taxonomy")
    return taxonomy_from_dict(json.loads(row[0]), where=str(db.path))


def set_taxonomy(db: Database, new: Taxonomy) -> None:
    """Put a taxonomy in force and add the workflows it names that the store does not know.

    Raises
    ------
    TaxonomyError
        If another taxonomy of the same version is stored: labels name the version only.
    """
    with db.write() as cursor:
        clash = cursor.execute(
            "SELECT fingerprint FROM taxonomy WHERE version = ? AND fingerprint <> ?",
            [new.version, new.fingerprint],
        ).fetchone()
        if clash is not None:
            raise TaxonomyError(
                f"version {new.version!r} is taken by another taxonomy ({clash[0][:12]}); "
                "give the changed one a new version"
            )
        body = json.dumps(new.to_dict())
        cursor.execute(
            "INSERT INTO taxonomy VALUES (?, ?, ?, ?) ON CONFLICT (fingerprint) "
            "DO UPDATE SET created_at = excluded.created_at",
            [new.fingerprint, new.version, body, utc_now()],
        )
        for workflow in new.workflows:
            cursor.execute(
                "INSERT INTO workflow VALUES (?, ?, ?, ?) ON CONFLICT (name) DO NOTHING",
                [workflow.name, workflow.ceiling_usd, workflow.unit, utc_now()],
            )
        record_audit(cursor, "taxonomy", version=new.version, fingerprint=new.fingerprint)
