"""Who people are, and what they may: identities, passphrases, sessions, roles."""

from calibration.records import Reviewer
from calibration.store import passphrases, sessions, sign_in
from calibration.store.interface.base import Calls
from calibration.store.interface.roles import ADMIN, REVIEWER, open_to
from calibration.store.sign_in import Access


class SignInCalls(Calls):
    """Who people are, and what they may: identities, passphrases, sessions, roles."""

    @open_to(REVIEWER)
    def identities(self) -> str:
        """Return how people say who they are: `open` or `passphrase`."""
        return sign_in.identities(self._db)

    @open_to(ADMIN)
    def set_identities(self, wanted: str) -> None:
        """Choose how people say who they are; open is refused once somebody has a passphrase."""
        sign_in.set_identities(self._db, wanted, by=self._by())

    @open_to(ADMIN)
    def sign_in_is_configured(self) -> bool:
        """Return whether the store may be served beyond this machine."""
        return sign_in.is_configured(self._db)

    @open_to(ADMIN)
    def wants_first_admin(self) -> bool:
        """Return whether people have to sign in and nobody can yet."""
        return sign_in.wants_first_admin(self._db)

    @open_to(ADMIN)
    def make_first_admin(self, name: str, passphrase: str) -> str:
        """Make the first admin where nobody can sign in yet; return their session's token."""
        return sign_in.make_first_admin(self._db, name, passphrase)

    @open_to(ADMIN)
    def access(self) -> list[Access]:
        """Return everybody who is real, with how they come in."""
        return sign_in.access(self._db)

    @open_to(ADMIN)
    def set_passphrase(self, reviewer_id: str, passphrase: str) -> None:
        """Give a person a passphrase; sessions that they have end."""
        sign_in.store_hash(self._db, reviewer_id, passphrases.hashed(passphrase), by=self._by())

    @open_to(REVIEWER, oneself="reviewer_id")
    def change_passphrase(self, reviewer_id: str, old: str, new: str, address: str) -> str:
        """Give oneself another passphrase; return the token of a new session."""
        return sign_in.change_passphrase(self._db, reviewer_id, old, new, address)

    @open_to(ADMIN)
    def take_passphrase(self, reviewer_id: str) -> None:
        """Let a person sign in no more; what they labelled stays."""
        sign_in.take_passphrase(self._db, reviewer_id, by=self._by())

    @open_to(ADMIN)
    def set_role(self, reviewer_id: str, role: str) -> Reviewer:
        """Give a person another role; the last admin stays one."""
        return sign_in.set_role(self._db, reviewer_id, role, by=self._by())

    @open_to(ADMIN)
    def verify_sign_in(self, name: str, passphrase: str, address: str) -> str:
        """Return the token of a new session for whoever knows the passphrase of a name."""
        return sign_in.verify_sign_in(self._db, name, passphrase, address)

    @open_to(ADMIN)
    def person_of_session(self, token: str) -> Reviewer | None:
        """Return whose session a token is, None when it is nobody's or has ended."""
        return sessions.person_of_session(self._db, token)

    @open_to(REVIEWER)
    def end_session(self, token: str) -> None:
        """End a session."""
        sessions.end_session(self._db, token)

    def _by(self) -> str | None:
        return None if self._actor is None else self._actor.reviewer_id
