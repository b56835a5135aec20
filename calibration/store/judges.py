"""Judges that we run: their versions, and looks at locked labels."""

import json
import re
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from calibration.errors import InputError
from calibration.store.database import Cursor, record_audit, rows, utc_now
from calibration.store.people import LEAD, StorePart, open_to

MOST_BODY = 1_000_000  # characters

# Before the name of a batch whose development labels compared judges, in place of a form.
LABELS_OF = "labels of "

_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}")


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredJudge:
    """A version of a judge; `judge_id` is its name, as in its verdicts.

    `version_id` is the identity of all that can change an answer. `line` names the first of the
    versions that it was made from, itself if it was made from none. `body` is plain JSON data.
    """

    judge_id: str
    version_id: str
    line: str
    body: dict[str, Any]
    created_by: str | None
    created_at: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredLook:
    """A look of a line of versions at locked labels; counted from 1.

    `form` names a form of the reference set, or a batch after `LABELS_OF`.
    """

    line: str
    judge_id: str
    form: str
    number: int
    body: dict[str, Any]
    created_by: str | None
    created_at: datetime


class JudgeStore(StorePart):
    """Versions of judges, and what was read of them."""

    @open_to(LEAD)
    def add_judge(
        self, judge_id: str, version_id: str, body: str, parent: str | None = None
    ) -> None:
        """Store a version of a judge under a name; the same one again changes nothing.

        Parameters
        ----------
        judge_id : str
            Its name: 1 to 64 of a-z, A-Z, 0-9, ".", "_" and "-".
        version_id : str
            The identity of the version.
        body : str
            JSON object: the version, and what is needed to ask it.
        parent : str, optional
            The version that it was made from.

        Raises
        ------
        InputError
            If the name does not fit or is taken, or the version has another name already.
        """
        if not _NAME.fullmatch(judge_id):
            raise InputError(
                f"{judge_id!r:.80}: a judge is named by 1 to 64 of a-z, A-Z, 0-9, '.', '_' and '-'"
            )
        if len(body) > MOST_BODY:
            raise InputError(f"a judge has at most {MOST_BODY:,} characters of text")
        with self._db.write() as cursor:
            if _is_there(cursor, judge_id, version_id):
                return
            line = judge_id if parent is None else _stored(cursor, parent).line
            cursor.execute(
                "INSERT INTO judge_version VALUES (?, ?, ?, ?, ?, ?)",
                [judge_id, version_id, line, body, self._by(), utc_now()],
            )
            record_audit(cursor, "judge", judge=judge_id, version=version_id, parent=parent)

    @open_to(LEAD)
    def judges(self) -> list[StoredJudge]:
        """Return the judges that we run, oldest first."""
        with self._db.read() as cursor:
            found = rows(cursor, "SELECT * FROM judge_version ORDER BY created_at, judge_id")
        return [_judge(row) for row in found]

    @open_to(LEAD)
    def judge(self, judge_id: str) -> StoredJudge:
        """Return a judge that we run; InputError if there is none of this name."""
        with self._db.read() as cursor:
            return _stored(cursor, judge_id)

    @open_to(LEAD)
    def add_look(self, judge_id: str, form: str, number: int, body: str) -> None:
        """Store a look at the locked labels of a form: the next one of the judge's line.

        Raises
        ------
        InputError
            If somebody else has looked since: read the looks again.
        """
        with self._db.write() as cursor:
            line = _line(cursor, judge_id)
            if number != 1 + _looks(cursor, line, form):
                raise InputError(f"somebody else has looked at {form} with {line} meanwhile")
            cursor.execute(
                "INSERT INTO judge_look (line, judge_id, form, number, body, created_by, "
                "created_at) VALUES (?, ?, ?, ?, ?, ?, ?)",
                [line, judge_id, form, number, body, self._by(), utc_now()],
            )
            record_audit(cursor, "judge_look", judge=judge_id, form=form, number=number)

    @open_to(LEAD)
    def looks(self, judge_id: str, form: str) -> list[StoredLook]:
        """Return the looks of a judge's line at a form, oldest first."""
        with self._db.read() as cursor:
            found = rows(
                cursor,
                "SELECT * EXCLUDE (seq) FROM judge_look WHERE line = ? AND form = ? "
                "ORDER BY number",
                [_line(cursor, judge_id), form],
            )
        return [StoredLook(**row | {"body": json.loads(row["body"])}) for row in found]

    @open_to(LEAD)
    def spend_labels(self, judge_ids: Sequence[str], batch_id: str) -> None:
        """Note that development labels of a batch compared judges; a second time changes nothing.

        They may have chosen a version, and correct the rate of no judge of these lines any more.
        """
        form = LABELS_OF + batch_id
        with self._db.write() as cursor:
            for judge_id in judge_ids:
                line = _line(cursor, judge_id)
                if _looks(cursor, line, form):
                    continue
                cursor.execute(
                    "INSERT INTO judge_look (line, judge_id, form, number, body, created_by, "
                    "created_at) VALUES (?, ?, ?, 1, ?, ?, ?)",
                    [line, judge_id, form, json.dumps({"with": list(judge_ids)}), self._by(),
                     utc_now()],
                )  # fmt: skip
                record_audit(cursor, "labels_spent", judge=judge_id, batch=batch_id)

    @open_to(LEAD)
    def spent_batches(self, judge_id: str) -> list[str]:
        """Return the batches whose development labels compared a judge, or one of its line."""
        with self._db.read() as cursor:
            found = cursor.execute(
                "SELECT form FROM judge_look WHERE line = ? AND starts_with(form, ?) ORDER BY seq",
                [_line(cursor, judge_id), LABELS_OF],
            ).fetchall()
        return [str(row[0]).removeprefix(LABELS_OF) for row in found]


def _judge(row: dict[str, Any]) -> StoredJudge:
    return StoredJudge(**row | {"body": json.loads(row["body"])})


def _stored(cursor: Cursor, judge_id: str) -> StoredJudge:
    found = rows(cursor, "SELECT * FROM judge_version WHERE judge_id = ?", [judge_id])
    if not found:
        known = cursor.execute("SELECT judge_id FROM judge_version ORDER BY judge_id").fetchall()
        there = ", ".join(row[0] for row in known) or "none yet; `asr judge new` makes one"
        raise InputError(f"no judge {judge_id!r:.80} that we run; there are: {there}")
    return _judge(found[0])


def _line(cursor: Cursor, judge_id: str) -> str:
    """Return the line of a judge; one whose verdicts were imported is a line of its own."""
    found = cursor.execute(
        "SELECT line FROM judge_version WHERE judge_id = ?", [judge_id]
    ).fetchone()
    return judge_id if found is None else str(found[0])


def _looks(cursor: Cursor, line: str, form: str) -> int:
    found = cursor.execute(
        "SELECT count(*) FROM judge_look WHERE line = ? AND form = ?", [line, form]
    ).fetchone()
    return 0 if found is None else int(found[0])


def _is_there(cursor: Cursor, judge_id: str, version_id: str) -> bool:
    """Return whether this version is stored under this name; InputError if only one of them is."""
    found = cursor.execute(
        "SELECT judge_id, version_id FROM judge_version WHERE judge_id = ? OR version_id = ?",
        [judge_id, version_id],
    ).fetchall()
    if (judge_id, version_id) in found:
        return True
    for name, _ in found:
        if name == judge_id:
            raise InputError(f"the name {judge_id!r} is taken by another version; choose another")
        raise InputError(f"this version is there already, as {name!r}")
    if cursor.execute("SELECT 1 FROM judge WHERE judge_id = ?", [judge_id]).fetchone():
        raise InputError(f"imported verdicts are of a judge {judge_id!r}; choose another name")
    return False
