"""Sign-in with an identity provider: who of the provider is which person of the store.

A person of the provider is known by issuer and subject, which never change. Before the first
sign-in an admin names an email address or a subject. An email address counts only if the provider
has verified it, and only once: whoever is given it later is somebody else.
"""

from dataclasses import dataclass

from calibration.errors import InputError, SignInError
from calibration.records import ROLES, Reviewer
from calibration.store.database import Cursor, record_audit, rows, utc_now
from calibration.store.people import ADMIN, StorePart, open_to, put_reviewer, reviewer_id_of
from calibration.store.sign_in import (
    LINKS,
    OIDC,
    address_key,
    end_sessions_of,
    identities_in,
    keep_an_admin,
    note_attempt,
    person_in,
    start_session,
)

LONGEST_EMAIL, LONGEST_SUBJECT, LONGEST_NAME = 254, 255, 80


@dataclass(frozen=True, slots=True)
class Claims:
    """What an identity provider says of somebody who has signed in there.

    `email` is a verified address or None. `role` is the role that a claim gives; with
    `decides_roles` whoever has none is refused, without it the store keeps the roles.
    """

    issuer: str
    subject: str
    name: str = ""
    email: str | None = None
    role: str | None = None
    decides_roles: bool = False


class ProviderStore(StorePart):
    """Links between people of the store and people of the identity provider."""

    @open_to(ADMIN)
    def link(self, reviewer_id: str, email: str | None = None, subject: str | None = None) -> None:
        """Name the email address or the subject that a person has at the identity provider.

        Their sessions end. Whoever was linked to this person before is so no longer.
        """
        email = None if email is None else _email(email)
        if (email is None) == (subject is None):
            raise InputError("name either an email address or a subject")
        if subject is not None and not 0 < len(subject.strip()) <= LONGEST_SUBJECT:
            raise InputError(f"a subject has 1 to {LONGEST_SUBJECT} characters")
        subject = None if subject is None else subject.strip()
        with self._db.write() as cursor:
            person = person_in(cursor, reviewer_id)
            if person.simulated:
                raise InputError(f"{person.name} is simulated and signs in nowhere")
            found = rows(
                cursor, f"{LINKS} SELECT * FROM link WHERE email = $email OR subject = $subject",
                {"email": email, "subject": subject},
            )  # fmt: skip
            other = next((r for r in found if r["reviewer_id"] != reviewer_id), None)
            if other is not None:
                raise InputError(f"{email or subject} is linked to {other['reviewer_id']!r}")
            if any(r["issuer"] is None for r in found):
                return
            _put_link(cursor, reviewer_id, None, subject, email)
            end_sessions_of(cursor, reviewer_id)
            record_audit(cursor, "linked", reviewer_id=reviewer_id, by=self._by())

    @open_to(ADMIN)
    def unlink(self, reviewer_id: str) -> None:
        """Take the link of a person away: they cannot sign in; their labels stay."""
        with self._db.write() as cursor:
            person_in(cursor, reviewer_id)
            if identities_in(cursor) == OIDC:
                keep_an_admin(cursor, reviewer_id)
            _put_link(cursor, reviewer_id, None, None, None)
            end_sessions_of(cursor, reviewer_id)
            record_audit(cursor, "unlinked", reviewer_id=reviewer_id, by=self._by())

    @open_to(ADMIN)
    def sign_in_by_provider(self, claims: Claims, address: str) -> str:
        """Return the token of a new session for somebody whom the identity provider vouches for.

        Raises
        ------
        SignInError
            If nobody of the store is linked to them and no claim lets them in, or if the claim
            that decides gives them no role; their other sessions end then.
        """
        refused: SignInError | None = None
        token = ""
        with self._db.write() as cursor:
            if identities_in(cursor) != OIDC:
                raise SignInError("People do not sign in with an identity provider here.")
            person = _linked(cursor, claims)
            if claims.decides_roles and claims.role is None:
                refused = SignInError(
                    "None of your groups has a role here. Ask an admin which group you need."
                )
                if person is not None:
                    # What the provider has taken away is not to come back by another way.
                    _give_role(cursor, person, ROLES[0])
                    end_sessions_of(cursor, person.reviewer_id)
            else:
                person = person or _new(cursor, claims)
                if claims.role is not None:
                    _give_role(cursor, person, claims.role)
                now = utc_now()
                attempt = note_attempt(cursor, person.reviewer_id, address_key(address), now)
                cursor.execute("UPDATE sign_in SET succeeded = true WHERE seq = ?", [attempt])
                token = start_session(cursor, person.reviewer_id, now)
        if refused is not None:
            raise refused
        return token


def _email(text: str) -> str:
    email = text.strip().casefold()
    name, at, host = email.rpartition("@")
    if not (name and at and host) or len(email) > LONGEST_EMAIL or any(c.isspace() for c in email):
        raise InputError(f"{text!r:.80} is not an email address")
    return email


def _put_link(
    cursor: Cursor, reviewer_id: str, issuer: str | None, subject: str | None, email: str | None
) -> None:
    cursor.execute(
        "INSERT INTO provider_link (reviewer_id, issuer, subject, email, created_at) "
        "VALUES (?, ?, ?, ?, ?)",
        [reviewer_id, issuer, subject, email, utc_now()],
    )


def _linked(cursor: Cursor, claims: Claims) -> Reviewer | None:
    """Return the person who is linked to somebody of the provider; the first time, bind them."""
    found = rows(
        cursor,
        f"{LINKS} SELECT reviewer_id, issuer FROM link WHERE (subject = $subject AND "
        "coalesce(issuer, $issuer) = $issuer) OR (subject IS NULL AND email = $email) "
        "ORDER BY issuer NULLS LAST, subject NULLS LAST LIMIT 1",
        {
            "subject": claims.subject,
            "issuer": claims.issuer,
            "email": claims.email and claims.email.strip().casefold(),
        },
    )
    if not found:
        return None
    person = person_in(cursor, found[0]["reviewer_id"])
    if found[0]["issuer"] is None:
        _bind(cursor, person, claims)
    return person


def _bind(cursor: Cursor, person: Reviewer, claims: Claims) -> None:
    _put_link(cursor, person.reviewer_id, claims.issuer, claims.subject, claims.email)
    record_audit(cursor, "first sign-in by provider", reviewer_id=person.reviewer_id,
                 issuer=claims.issuer)  # fmt: skip


def _new(cursor: Cursor, claims: Claims) -> Reviewer:
    """Add somebody to whom a claim gives a role."""
    name = " ".join(claims.name.split())[:LONGEST_NAME]
    reviewer_id = reviewer_id_of(name)
    known = cursor.execute("SELECT 1 FROM reviewer WHERE reviewer_id = ?", [reviewer_id]).fetchone()
    if claims.role is None or not reviewer_id:
        who = claims.email or f"subject {claims.subject}"
        raise SignInError(
            f"You are not known here, as {who}. Ask an admin to link you: asr people add NAME "
            f"{_option(claims)}"
        )
    if known is not None:
        # Anybody may call themselves so at the provider.
        raise SignInError(
            f"Somebody called {name!r} is here already. If that is you, ask an admin to link you: "
            f'asr people add "{name}" {_option(claims)}'
        )
    person = put_reviewer(cursor, name, role=claims.role, simulated=False)
    record_audit(cursor, "added by provider", reviewer_id=reviewer_id, role=claims.role)
    _bind(cursor, person, claims)
    return person


def _option(claims: Claims) -> str:
    return f"--email {claims.email}" if claims.email else f"--subject {claims.subject}"


def _give_role(cursor: Cursor, person: Reviewer, role: str) -> None:
    if person.role == role:
        return
    cursor.execute("UPDATE reviewer SET role = ? WHERE reviewer_id = ?", [role, person.reviewer_id])
    record_audit(cursor, "role", reviewer_id=person.reviewer_id, before=person.role, after=role,
                 by="identity provider")  # fmt: skip
