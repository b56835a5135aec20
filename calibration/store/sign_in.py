"""Sign-in: names and passphrases, waiting times, sessions, local addresses.

An attempt is stored as failed before its passphrase is checked, so that neither parallel attempts
nor a restart evade the count.
"""

import hashlib
import ipaddress
import secrets
import threading
import unicodedata
from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import cached_property
from typing import Self

from argon2 import PasswordHasher, extract_parameters
from argon2.exceptions import InvalidHashError, VerificationError

from calibration.errors import InputError, NotAllowedError, SignInError
from calibration.records import ROLES, Reviewer
from calibration.store.database import (
    Cursor,
    put_setting,
    record_audit,
    rows,
    setting,
    utc_now,
)
from calibration.store.people import (
    ADMIN,
    LEAD,
    REVIEWER,
    StorePart,
    open_to,
    put_reviewer,
    reviewer_id_of,
)

SHORTEST_PASSPHRASE, LONGEST_PASSPHRASE = 12, 200
FEWEST_CHARACTERS = 5
LEGIBLE = "abcdefghjkmnpqrstuvwxyz23456789"
OPEN, PASSPHRASE, OIDC = IDENTITIES = ("open", "passphrase", "oidc")

# Nobody becomes the first admin from elsewhere.
FIRST_FROM = "127.0.0.1"

WRONG = "This name and passphrase do not belong together."


def is_loopback(host: str | None) -> bool:
    """Return whether an address or host name can only be this machine."""
    if host is None:
        return False
    if host.lower().rstrip(".") == "localhost":
        return True
    parsed = _parsed(host)
    return parsed is not None and parsed.is_loopback


def address_key(address: str) -> str:
    """Return the counting key of an address; for IPv6 the network of a household."""
    parsed = _parsed(address)
    if parsed is None:
        return address[:80]
    if isinstance(parsed, ipaddress.IPv4Address):
        return str(parsed)
    return str(ipaddress.ip_network((parsed, 64), strict=False))


def _parsed(address: str) -> ipaddress.IPv4Address | ipaddress.IPv6Address | None:
    try:
        parsed = ipaddress.ip_address(address)
    except ValueError:
        return None
    mapped = getattr(parsed, "ipv4_mapped", None)
    return mapped or parsed


# A hash takes 64 MiB: many attempts at once wait for each other, not for memory.
_hashing = threading.BoundedSemaphore(2)


def generated_passphrase() -> str:
    """Return a passphrase of 99 random bits, in groups that can be read aloud."""
    return "-".join("".join(secrets.choice(LEGIBLE) for _ in range(5)) for _ in range(4))


def _normal(passphrase: str) -> str:
    return unicodedata.normalize("NFKC", passphrase)


def check_hash(hash: str) -> None:
    """Refuse a text that is no hash of ours."""
    try:
        extract_parameters(hash)
    except InvalidHashError:
        raise InputError("this is not an Argon2 hash") from None


class Hashes:
    """Hashes of passphrases, all made with the same effort."""

    def __init__(self, hasher: PasswordHasher) -> None:
        self._hasher = hasher

    def of(self, passphrase: str) -> str:
        """Return the Argon2 hash of a passphrase; weak ones are refused."""
        text = _normal(passphrase)
        if not SHORTEST_PASSPHRASE <= len(text) <= LONGEST_PASSPHRASE:
            raise InputError(
                f"a passphrase must have {SHORTEST_PASSPHRASE} to {LONGEST_PASSPHRASE} characters, "
                f"got {len(text)}"
            )
        if len(set(text)) < FEWEST_CHARACTERS:
            raise InputError(
                f"a passphrase must have {FEWEST_CHARACTERS} different characters or more"
            )
        with _hashing:
            return self._hasher.hash(text)

    @cached_property
    def of_nobody(self) -> str:
        """A hash that no passphrase has: an unknown name must take as long as a known one."""
        return self._hasher.hash(secrets.token_hex(32))

    def verified(self, hash: str, passphrase: str) -> bool:
        """Return whether a passphrase has this hash."""
        with _hashing:
            try:
                return self._hasher.verify(hash, _normal(passphrase)[: LONGEST_PASSPHRASE + 1])
            except (VerificationError, InvalidHashError):
                return False

    def is_outdated(self, hash: str) -> bool:
        """Return whether a hash took another effort than new ones do."""
        return self._hasher.check_needs_rehash(hash)


IDLE, LONGEST_SESSION = timedelta(hours=12), timedelta(days=7)

# The end of a session moves with its use, but is stored no more often than this.
MOVED_EVERY = timedelta(minutes=10)


def start_session(cursor: Cursor, reviewer_id: str, now: datetime) -> str:
    """Store a new session and return its token, which is not stored."""
    token = secrets.token_urlsafe(32)
    cursor.execute("DELETE FROM session WHERE expires_at < ?", [now])
    cursor.execute(
        "INSERT INTO session VALUES (?, ?, ?, ?)", [_digest(token), reviewer_id, now, now + IDLE]
    )
    return token


def end_sessions_of(cursor: Cursor, reviewer_id: str) -> None:
    """End every session of a person."""
    cursor.execute("DELETE FROM session WHERE reviewer_id = ?", [reviewer_id])


def _digest(token: str) -> str:
    return hashlib.sha256(token.encode("utf-8", "replace")).hexdigest()


# Of one name from one address: the wait doubles with every further failure.
FREE, WAIT, LONGEST_WAIT = 5, timedelta(minutes=15), timedelta(hours=4)

# Of one address with any names, and of one name from addresses it never signed in from.
FREE_OF_ADDRESS, HOUR = 50, timedelta(hours=1)

FREE_OF_NAME, DAY = 100, timedelta(days=1)
KEPT = timedelta(days=30)


def name_key(reviewer_id: str, *, known: bool) -> str:
    """Return the counting key of a name; a digest if unknown: it may be a passphrase."""
    return reviewer_id if known else "-" + hashlib.sha256(reviewer_id.encode()).hexdigest()


def seconds_to_wait(cursor: Cursor, name: str, address: str, now: datetime) -> float:
    """Return the seconds until this name may be tried from this address; 0: now."""
    ends = [
        _of_pair(cursor, name, address, now),
        _of_many(cursor, "address = ?", [address], FREE_OF_ADDRESS, now - HOUR),
    ]
    known_here = cursor.execute(
        "SELECT 1 FROM sign_in WHERE reviewer_id = ? AND address = ? AND succeeded LIMIT 1",
        [name, address],
    ).fetchone()
    if known_here is None:  # or strangers could lock a person out of their own desk
        ends.append(_of_many(cursor, "reviewer_id = ?", [name], FREE_OF_NAME, now - DAY))
    return max(0.0, *((end - now).total_seconds() for end in ends if end is not None), 0.0)


def _of_pair(cursor: Cursor, name: str, address: str, now: datetime) -> datetime | None:
    n, last = _failures(
        cursor,
        "reviewer_id = ? AND address = ? AND seq > coalesce((SELECT max(seq) FROM sign_in "
        "WHERE reviewer_id = ? AND address = ? AND succeeded), 0)",
        [name, address, name, address],
        now - DAY,
    )
    if last is None or n < FREE:
        return None
    return last + min(LONGEST_WAIT, WAIT * (1 << min(n - FREE, 10)))


def _of_many(
    cursor: Cursor, where: str, values: list[str], free: int, since: datetime
) -> datetime | None:
    n, last = _failures(cursor, where, values, since)
    if last is None or n < free:
        return None
    return last + WAIT


def _failures(
    cursor: Cursor, where: str, values: list[str], since: datetime
) -> tuple[int, datetime | None]:
    row = cursor.execute(
        f"SELECT count(*), max(created_at) FROM sign_in "
        f"WHERE NOT succeeded AND created_at > ? AND {where}",
        [since, *values],
    ).fetchone()
    return (0, None) if row is None else (int(row[0]), row[1])


def note_attempt(cursor: Cursor, name: str, address: str, now: datetime) -> int:
    """Store an attempt as failed, delete old failures, and return its number."""
    cursor.execute("DELETE FROM sign_in WHERE NOT succeeded AND created_at < ?", [now - KEPT])
    row = cursor.execute(
        "INSERT INTO sign_in (reviewer_id, address, succeeded, created_at) "
        "VALUES (?, ?, false, ?) RETURNING seq",
        [name, address, now],
    ).fetchone()
    return 0 if row is None else int(row[0])


DEFAULT = PASSPHRASE


@dataclass(frozen=True, slots=True)
class Access:
    """A person, how they may sign in, and their last sign-in (UTC).

    `link` is who they are at the identity provider: an email address or a subject.
    """

    person: Reviewer
    has_passphrase: bool
    last_sign_in: datetime | None
    link: str | None = None
    has_used_link: bool = False


def identities_in(cursor: Cursor) -> str:
    """Return how people identify themselves."""
    return setting(cursor, "identities") or DEFAULT


# The link of every person to the identity provider.
LINKS = (
    "WITH link AS (SELECT * FROM provider_link QUALIFY row_number() OVER "
    "(PARTITION BY reviewer_id ORDER BY seq DESC) = 1)"
)


def _linked(cursor: Cursor) -> tuple[int, list[str]]:
    """Return the number of people who are linked to the provider, and the admins among them."""
    found = cursor.execute(
        f"{LINKS} SELECT r.reviewer_id, r.role FROM link JOIN reviewer r USING (reviewer_id) "
        "WHERE email IS NOT NULL OR subject IS NOT NULL"
    ).fetchall()
    return len(found), [who for who, role in found if role == "admin"]


def _credentials(cursor: Cursor) -> tuple[int, list[str]]:
    """Return the number of people with a passphrase, and the admins with one."""
    found = cursor.execute(
        "SELECT r.reviewer_id, r.role FROM credential c JOIN reviewer r USING (reviewer_id)"
    ).fetchall()
    return len(found), [who for who, role in found if role == "admin"]


def _put_hash(cursor: Cursor, reviewer_id: str, hash: str) -> None:
    cursor.execute(
        "INSERT INTO credential VALUES (?, ?, ?) ON CONFLICT (reviewer_id) "
        "DO UPDATE SET hash = excluded.hash, created_at = excluded.created_at",
        [reviewer_id, hash, utc_now()],
    )
    end_sessions_of(cursor, reviewer_id)


def keep_an_admin(cursor: Cursor, reviewer_id: str) -> None:
    """Refuse to lose the only admin who can sign in."""
    by_provider = identities_in(cursor) == OIDC
    n, admins = (_linked if by_provider else _credentials)(cursor)
    if not n:
        found = cursor.execute("SELECT reviewer_id FROM reviewer WHERE role = 'admin'").fetchall()
        admins = [who for (who,) in found]
    if admins == [reviewer_id]:
        raise NotAllowedError(
            f"{reviewer_id} is the only admin; make somebody else an admin first"
            + (f", with {'a link' if by_provider else 'a passphrase'}" if n else "")
        )


def person_in(cursor: Cursor, reviewer_id: str) -> Reviewer:
    """Return a person within a transaction."""
    found = rows(
        cursor,
        "SELECT reviewer_id, name, role, simulated FROM reviewer WHERE reviewer_id = ?",
        [reviewer_id],
    )
    if not found:
        raise InputError(f"there is nobody called {reviewer_id!r}; `asr people add NAME` adds them")
    return Reviewer(**found[0])


def _refusal(why: str, wait_s: float) -> SignInError:
    minutes = -(-wait_s // 60)
    again = "" if not wait_s else f" Try again in {minutes:.0f} minute{'s' * (minutes != 1)}."
    error = SignInError(why + again)
    error.wait_s = wait_s
    return error


class SignInStore(StorePart):
    """Identities, passphrases, sessions and roles."""

    hashes = Hashes(PasswordHasher())

    @open_to(REVIEWER)
    def identities(self) -> str:
        """Return how people identify themselves: `open`, `passphrase` or `oidc`."""
        with self._db.read() as cursor:
            return identities_in(cursor)

    @open_to(ADMIN)
    def set_identities(self, wanted: str, admins_by_claim: bool | None = None) -> None:
        """Set how people identify themselves; every session ends.

        `admins_by_claim` is whether a claim of the identity provider makes admins; None if no
        claim decides on roles.
        """
        if wanted not in IDENTITIES:
            raise InputError(f"identities must be one of {', '.join(IDENTITIES)}, got {wanted!r}")
        with self._db.write() as cursor:
            (n, admins), (linked, linked_admins) = _credentials(cursor), _linked(cursor)
            if wanted == OPEN and n:
                raise InputError(
                    f"{n} of this store's people sign in with a passphrase: open identities would "
                    "let anybody be any of them; take a store of its own for a demo"
                )
            if wanted == OPEN and linked:
                raise InputError(
                    f"{linked} of this store's people sign in with an identity provider: open "
                    "identities would let anybody be any of them; take a store of its own for a "
                    "demo"
                )
            if wanted == PASSPHRASE and n and not admins:
                raise InputError(
                    "no admin has a passphrase yet; `asr people passphrase NAME` gives them one"
                )
            if wanted == OIDC and admins_by_claim is None and not linked_admins:
                raise InputError(
                    "no admin could sign in by the identity provider: link one with `asr "
                    "people add NAME --role admin --email ADDRESS`, or let a claim decide on roles "
                    "(ASR_OIDC_ROLE_CLAIM and ASR_OIDC_ADMINS)"
                )
            if wanted == OIDC and admins_by_claim is False:
                raise InputError(
                    "the claim in ASR_OIDC_ROLE_CLAIM decides on roles and makes nobody an admin: "
                    "set ASR_OIDC_ADMINS"
                )
            if identities_in(cursor) != wanted:
                # Nobody stays in by a way that is closed.
                cursor.execute("DELETE FROM session")
            put_setting(cursor, "identities", wanted, by=self._by())

    @open_to(ADMIN)
    def sign_in_is_configured(self) -> bool:
        """Return whether the store may be served beyond this machine."""
        with self._db.read() as cursor:
            now = identities_in(cursor)
            return now == OIDC or (now == PASSPHRASE and bool(_credentials(cursor)[1]))

    @open_to(ADMIN)
    def wants_first_admin(self) -> bool:
        """Return whether sign-in is required and nobody can sign in yet."""
        with self._db.read() as cursor:
            return identities_in(cursor) == PASSPHRASE and not _credentials(cursor)[0]

    @open_to(ADMIN)
    def make_first_admin(self, name: str, passphrase: str) -> str:
        """Create the first admin if nobody can sign in; return the token of their session."""
        if not self.wants_first_admin():
            raise NotAllowedError("this store has its admins already; sign in, or ask one of them")
        hash = self.hashes.of(passphrase)
        with self._db.write() as cursor:
            # Of two simultaneous requests one is first.
            if identities_in(cursor) != PASSPHRASE or _credentials(cursor)[0]:
                raise NotAllowedError("somebody else has just become the first admin; ask them")
            person = put_reviewer(cursor, name, role="admin", simulated=False)
            cursor.execute("UPDATE reviewer SET role = 'admin' WHERE reviewer_id = ?",
                           [person.reviewer_id])  # fmt: skip
            _put_hash(cursor, person.reviewer_id, hash)
            record_audit(cursor, "first admin", reviewer_id=person.reviewer_id)
            attempt = note_attempt(cursor, person.reviewer_id, FIRST_FROM, utc_now())
            cursor.execute("UPDATE sign_in SET succeeded = true WHERE seq = ?", [attempt])
            return start_session(cursor, person.reviewer_id, utc_now())

    @open_to(ADMIN)
    def access(self) -> list[Access]:
        """Return the access of every real person, by name."""
        with self._db.read() as cursor:
            found = rows(
                cursor,
                f"{LINKS} SELECT r.reviewer_id, r.name, r.role, r.simulated, "
                "c.hash IS NOT NULL AS has_passphrase, "
                "(SELECT max(created_at) FROM sign_in s "
                " WHERE s.succeeded AND s.reviewer_id = r.reviewer_id) AS last_sign_in, "
                "coalesce(l.email, l.subject) AS link, l.issuer IS NOT NULL AS has_used_link "
                "FROM reviewer r LEFT JOIN credential c USING (reviewer_id) "
                "LEFT JOIN link l USING (reviewer_id) WHERE NOT r.simulated "
                "ORDER BY lower(r.name), r.reviewer_id",
            )
        of_access = ("has_passphrase", "last_sign_in", "link", "has_used_link")
        return [
            Access(**{name: r.pop(name) for name in of_access}, person=Reviewer(**r)) for r in found
        ]

    @open_to(LEAD)
    def without_sign_in(self) -> list[Reviewer]:
        """Return the real people who have never had a way to sign in, where people sign in."""
        how = self.identities()
        return [
            one.person
            for one in ([] if how == OPEN else self._unbound().access())
            if one.last_sign_in is None
            and (one.link is None if how == OIDC else not one.has_passphrase)
        ]

    @open_to(ADMIN)
    def set_passphrase(self, reviewer_id: str, passphrase: str) -> None:
        """Set a person's passphrase; their sessions end."""
        self.store_hash(reviewer_id, self.hashes.of(passphrase))

    @open_to(ADMIN)
    def store_hash(self, reviewer_id: str, hash: str) -> None:
        """Set a person's passphrase by its hash; their sessions end."""
        check_hash(hash)
        with self._db.write() as cursor:
            person_in(cursor, reviewer_id)
            _put_hash(cursor, reviewer_id, hash)
            record_audit(cursor, "passphrase", reviewer_id=reviewer_id, by=self._by())

    @open_to(REVIEWER, oneself="reviewer_id")
    def change_passphrase(self, reviewer_id: str, old: str, new: str, address: str) -> str:
        """Change one's own passphrase, given the old one; return the token of a new session."""
        self._unbound().verify_sign_in(reviewer_id, old, address)
        hash = self.hashes.of(new)
        with self._db.write() as cursor:
            _put_hash(cursor, reviewer_id, hash)
            record_audit(cursor, "passphrase", reviewer_id=reviewer_id, by=reviewer_id)
            return start_session(cursor, reviewer_id, utc_now())

    @open_to(ADMIN)
    def take_passphrase(self, reviewer_id: str) -> None:
        """Remove a person's passphrase; their labels stay."""
        with self._db.write() as cursor:
            if identities_in(cursor) != OIDC:
                keep_an_admin(cursor, reviewer_id)
            cursor.execute("DELETE FROM credential WHERE reviewer_id = ?", [reviewer_id])
            end_sessions_of(cursor, reviewer_id)
            record_audit(cursor, "passphrase taken", reviewer_id=reviewer_id, by=self._by())

    @open_to(ADMIN)
    def set_role(self, reviewer_id: str, role: str) -> Reviewer:
        """Change a person's role."""
        if role not in ROLES:
            raise InputError(f"role must be one of {', '.join(ROLES)}, got {role!r}")
        with self._db.write() as cursor:
            before = person_in(cursor, reviewer_id)
            if before.role == role:
                return before
            if before.role == "admin":
                keep_an_admin(cursor, reviewer_id)
            cursor.execute(
                "UPDATE reviewer SET role = ? WHERE reviewer_id = ?", [role, reviewer_id]
            )
            record_audit(
                cursor,
                "role",
                reviewer_id=reviewer_id,
                before=before.role,
                after=role,
                by=self._by(),
            )
            return person_in(cursor, reviewer_id)

    @open_to(ADMIN)
    def verify_sign_in(self, name: str, passphrase: str, address: str) -> str:
        """Return the token of a new session for a name and its passphrase."""
        # Neither the message nor the time taken shows whether the name exists.
        reviewer_id, where, now = reviewer_id_of(name), address_key(address), utc_now()
        with self._db.write() as cursor:
            if identities_in(cursor) == OIDC:
                raise SignInError("People sign in with their identity provider here.")
            found = rows(cursor, "SELECT hash FROM credential WHERE reviewer_id = ?", [reviewer_id])
            key = name_key(reviewer_id, known=bool(found))
            wait_s = seconds_to_wait(cursor, key, where, now)
            attempt = None if wait_s else note_attempt(cursor, key, where, now)
        if attempt is None:
            raise _refusal("Too many attempts.", wait_s)
        nobodys = self.hashes.of_nobody  # made at the first attempt, whoever makes it
        hash = found[0]["hash"] if found else nobodys
        if not self.hashes.verified(hash, passphrase) or not found:
            with self._db.read() as cursor:
                wait_s = seconds_to_wait(cursor, key, where, now)
            raise _refusal(WRONG, wait_s)
        renewed = self.hashes.of(passphrase) if self.hashes.is_outdated(hash) else None
        with self._db.write() as cursor:
            # It may have been changed or removed meanwhile.
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

    @open_to(ADMIN)
    def person_of_session(self, token: str) -> Reviewer | None:
        """Return the person of a session; None if there is none or it has ended."""
        now = utc_now()
        with self._db.read() as cursor:
            found = rows(
                cursor,
                "SELECT r.reviewer_id, r.name, r.role, r.simulated, s.created_at, s.expires_at "
                "FROM session s JOIN reviewer r ON r.reviewer_id = s.reviewer_id "
                "WHERE s.token_hash = ? AND s.expires_at > ?",
                [_digest(token), now],
            )
        if not found:
            return None
        started, ends = found[0].pop("created_at"), found[0].pop("expires_at")
        later = min(now + IDLE, started + LONGEST_SESSION)
        if later - ends > MOVED_EVERY:
            with self._db.write() as cursor:
                cursor.execute(
                    "UPDATE session SET expires_at = ? WHERE token_hash = ?",
                    [later, _digest(token)],
                )
        return Reviewer(**found[0])

    def of_session(self, token: str) -> Self | None:
        """Return this store with the rights of a session's person, None if it has ended."""
        # Later calls check again: a page may still be open.
        whole = self._unbound()
        person = whole.person_of_session(token)
        if person is None:
            return None
        known, until = -1, utc_now()

        def lasts() -> bool:
            nonlocal known, until
            changes, now = whole._db.changes, utc_now()
            # Sessions end by a change of this process, or by time.
            if changes != known or now >= until:
                if whole.person_of_session(token) != person:
                    return False
                known, until = changes, now + timedelta(seconds=30)
            return True

        bound = self.acting_as(person)
        bound._lasts = lasts
        return bound

    @open_to(REVIEWER)
    def end_session(self, token: str) -> None:
        """End a session; ended ones stay ended."""
        with self._db.write() as cursor:
            cursor.execute("DELETE FROM session WHERE token_hash = ?", [_digest(token)])
