"""How people of a store say who they are: identities to pick, or names with a passphrase."""

from dataclasses import dataclass
from datetime import datetime

from calibration.errors import InputError, NotAllowedError, SignInError
from calibration.records import ROLES, Reviewer
from calibration.store import people
from calibration.store.addresses import address_key
from calibration.store.database import Cursor, Database, record_audit, rows, utc_now
from calibration.store.passphrases import check_hash, hashed, is_outdated, of_nobody, verified
from calibration.store.sessions import end_sessions_of, start_session
from calibration.store.settings import put_setting, setting
from calibration.store.sign_in_limits import name_key, note_attempt, seconds_to_wait

OPEN, PASSPHRASE = IDENTITIES = ("open", "passphrase")
DEFAULT = PASSPHRASE
# Nobody becomes the first admin from elsewhere.
FIRST_FROM = "127.0.0.1"
WRONG = "This name and passphrase do not belong together."


@dataclass(frozen=True, slots=True)
class Access:
    """A person, whether they can sign in with a passphrase, and when they last did (UTC)."""

    person: Reviewer
    has_passphrase: bool
    last_sign_in: datetime | None


def identities(db: Database) -> str:
    """Return how people say who they are: `open` or `passphrase`."""
    with db.read() as cursor:
        return _identities(cursor)


def _identities(cursor: Cursor) -> str:
    return setting(cursor, "identities") or DEFAULT


def set_identities(db: Database, wanted: str, *, by: str | None = None) -> None:
    """Choose how people say who they are.

    Raises
    ------
    InputError
        If that is no way that there is, or people have passphrases: identities to pick would
        let anybody be any of them. Or if nobody could administer the store afterwards.
    """
    if wanted not in IDENTITIES:
        raise InputError(f"identities must be open or passphrase, got {wanted!r}")
    with db.write() as cursor:
        n, admins = _credentials(cursor)
        if wanted == OPEN and n:
            raise InputError(
                f"{n} of this store's people sign in with a passphrase: open identities would let "
                "anybody be any of them; take a store of its own for a demo"
            )
        if wanted == PASSPHRASE and n and not admins:
            raise InputError("no admin has a passphrase yet; `asr passphrase NAME` gives them one")
        put_setting(cursor, "identities", wanted, by=by)


def _credentials(cursor: Cursor) -> tuple[int, list[str]]:
    """Return how many people have a passphrase, and which admins do."""
    found = cursor.execute(
        "SELECT r.reviewer_id, r.role FROM credential c JOIN reviewer r USING (reviewer_id)"
    ).fetchall()
    return len(found), [who for who, role in found if role == "admin"]


def is_configured(db: Database) -> bool:
    """Return whether the store may be served beyond this machine."""
    with db.read() as cursor:
        return _identities(cursor) == PASSPHRASE and bool(_credentials(cursor)[1])


def wants_first_admin(db: Database) -> bool:
    """Return whether people have to sign in and nobody can yet."""
    with db.read() as cursor:
        return _identities(cursor) == PASSPHRASE and not _credentials(cursor)[0]


def access(db: Database) -> list[Access]:
    """Return everybody who is real, by name, with how they come in."""
    with db.read() as cursor:
        found = rows(
            cursor,
            "SELECT r.reviewer_id, r.name, r.role, r.simulated, c.hash IS NOT NULL AS known, "
            "(SELECT max(created_at) FROM sign_in s "
            " WHERE s.succeeded AND s.reviewer_id = r.reviewer_id) AS seen "
            "FROM reviewer r LEFT JOIN credential c USING (reviewer_id) "
            "WHERE NOT r.simulated ORDER BY lower(r.name), r.reviewer_id",
        )
    return [Access(has_passphrase=r.pop("known"), last_sign_in=r.pop("seen"), person=Reviewer(**r))
            for r in found]  # fmt: skip


# Passphrases


def store_hash(db: Database, reviewer_id: str, hash: str, *, by: str | None = None) -> None:
    """Give a person a passphrase by its hash; sessions that they have end.

    Raises
    ------
    InputError
        If there is no such person, or the hash is none of ours.
    """
    check_hash(hash)
    with db.write() as cursor:
        _person(cursor, reviewer_id)
        _put_hash(cursor, reviewer_id, hash)
        record_audit(cursor, "passphrase", reviewer_id=reviewer_id, by=by)


def _put_hash(cursor: Cursor, reviewer_id: str, hash: str) -> None:
    cursor.execute(
        "INSERT INTO credential VALUES (?, ?, ?) ON CONFLICT (reviewer_id) "
        "DO UPDATE SET hash = excluded.hash, created_at = excluded.created_at",
        [reviewer_id, hash, utc_now()],
    )
    end_sessions_of(cursor, reviewer_id)


def take_passphrase(db: Database, reviewer_id: str, *, by: str | None = None) -> None:
    """Let a person sign in no more; what they labelled stays.

    Raises
    ------
    NotAllowedError
        If they are the last admin who can sign in.
    """
    with db.write() as cursor:
        _keep_an_admin(cursor, reviewer_id)
        cursor.execute("DELETE FROM credential WHERE reviewer_id = ?", [reviewer_id])
        end_sessions_of(cursor, reviewer_id)
        record_audit(cursor, "passphrase taken", reviewer_id=reviewer_id, by=by)


def change_passphrase(db: Database, reviewer_id: str, old: str, new: str, address: str) -> str:
    """Give oneself another passphrase, knowing the old one; return the token of a new session.

    Raises
    ------
    SignInError
        If the old one is wrong.
    """
    verify_sign_in(db, reviewer_id, old, address)
    store_hash(db, reviewer_id, hashed(new), by=reviewer_id)
    with db.write() as cursor:
        return start_session(cursor, reviewer_id, utc_now())


# Roles


def set_role(db: Database, reviewer_id: str, role: str, *, by: str | None = None) -> Reviewer:
    """Give a person another role.

    Raises
    ------
    NotAllowedError
        If they are the last admin.
    """
    if role not in ROLES:
        raise InputError(f"role must be one of {', '.join(ROLES)}, got {role!r}")
    with db.write() as cursor:
        before = _person(cursor, reviewer_id)
        if before.role == role:
            return before
        if before.role == "admin":
            _keep_an_admin(cursor, reviewer_id)
        cursor.execute("UPDATE reviewer SET role = ? WHERE reviewer_id = ?", [role, reviewer_id])
        record_audit(cursor, "role", reviewer_id=reviewer_id, before=before.role, after=role, by=by)
        return _person(cursor, reviewer_id)


def _keep_an_admin(cursor: Cursor, reviewer_id: str) -> None:
    """Refuse what would leave nobody to administer the store."""
    n, admins = _credentials(cursor)
    if not n:
        found = cursor.execute("SELECT reviewer_id FROM reviewer WHERE role = 'admin'").fetchall()
        admins = [who for (who,) in found]
    if admins == [reviewer_id]:
        raise NotAllowedError(
            f"{reviewer_id} is the only admin; make somebody else an admin first"
            + (", with a passphrase" if n else "")
        )


def _person(cursor: Cursor, reviewer_id: str) -> Reviewer:
    found = rows(
        cursor,
        "SELECT reviewer_id, name, role, simulated FROM reviewer WHERE reviewer_id = ?",
        [reviewer_id],
    )
    if not found:
        raise InputError(f"there is nobody called {reviewer_id!r}; `asr reviewer NAME` adds people")
    return Reviewer(**found[0])


# Signing in


def make_first_admin(db: Database, name: str, passphrase: str) -> str:
    """Make the first admin of a store in which nobody can sign in; return their session's token.

    Raises
    ------
    NotAllowedError
        If somebody can sign in, or identities are open.
    """
    if not wants_first_admin(db):
        raise NotAllowedError("this store has its admins already; sign in, or ask one of them")
    hash = hashed(passphrase)
    with db.write() as cursor:
        # Of two who try at the same time, one is first.
        if _identities(cursor) != PASSPHRASE or _credentials(cursor)[0]:
            raise NotAllowedError("somebody else has just become the first admin; ask them")
        person = people.put_reviewer(cursor, name, role="admin", simulated=False)
        cursor.execute("UPDATE reviewer SET role = 'admin' WHERE reviewer_id = ?",
                       [person.reviewer_id])  # fmt: skip
        _put_hash(cursor, person.reviewer_id, hash)
        record_audit(cursor, "first admin", reviewer_id=person.reviewer_id)
        attempt = note_attempt(cursor, person.reviewer_id, FIRST_FROM, utc_now())
        cursor.execute("UPDATE sign_in SET succeeded = true WHERE seq = ?", [attempt])
        return start_session(cursor, person.reviewer_id, utc_now())


def verify_sign_in(db: Database, name: str, passphrase: str, address: str) -> str:
    """Return the token of a new session for whoever knows the passphrase of a name.

    Whether the name is anybody's shows neither in the message nor in the time taken.

    Raises
    ------
    SignInError
        If name and passphrase do not belong together, or after too many attempts; `wait_s`
        says for how long no further one is taken.
    """
    reviewer_id, where, now = people.reviewer_id_of(name), address_key(address), utc_now()
    with db.write() as cursor:
        found = rows(cursor, "SELECT hash FROM credential WHERE reviewer_id = ?", [reviewer_id])
        key = name_key(reviewer_id, known=bool(found))
        wait_s = seconds_to_wait(cursor, key, where, now)
        attempt = None if wait_s else note_attempt(cursor, key, where, now)
    if attempt is None:
        raise _refusal("Too many attempts.", wait_s)
    nobodys = of_nobody()
    hash = found[0]["hash"] if found else nobodys
    if not verified(hash, passphrase) or not found:
        with db.read() as cursor:
            wait_s = seconds_to_wait(cursor, key, where, now)
        raise _refusal(WRONG, wait_s)
    renewed = hashed(passphrase) if is_outdated(hash) else None
    with db.write() as cursor:
        # It may have been changed or taken away while it was looked at.
        still = rows(cursor, "SELECT hash FROM credential WHERE reviewer_id = ?", [reviewer_id])
        if still != found:
            raise _refusal(WRONG, 0.0)
        cursor.execute("UPDATE sign_in SET succeeded = true WHERE seq = ?", [attempt])
        if renewed is not None:
            cursor.execute(
                "UPDATE credential SET hash = ? WHERE reviewer_id = ? AND hash = ?",
                [renewed, reviewer_id, hash],
            )
        return start_session(cursor, reviewer_id, now)


def _refusal(why: str, wait_s: float) -> SignInError:
    minutes = -(-wait_s // 60)
    again = "" if not wait_s else f" Try again in {minutes:.0f} minute{'s' * (minutes != 1)}."
    error = SignInError(why + again)
    error.wait_s = wait_s
    return error
