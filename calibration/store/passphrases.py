"""Passphrases: what a good one is, and its hash, which alone is kept."""

import secrets
import threading
import unicodedata

from argon2 import PasswordHasher, extract_parameters
from argon2.exceptions import InvalidHashError, VerificationError

from calibration.errors import InputError

SHORTEST, LONGEST = 12, 200
FEWEST_CHARACTERS = 5
LEGIBLE = "abcdefghjkmnpqrstuvwxyz23456789"

_hasher = PasswordHasher()
# A hash takes 64 MiB: many attempts at once wait for each other, not for memory.
_hashing = threading.BoundedSemaphore(2)
_nobodys_hash: list[str] = []


def generated_passphrase() -> str:
    """Return a passphrase of 99 random bits, in groups that can be read out."""
    return "-".join("".join(secrets.choice(LEGIBLE) for _ in range(5)) for _ in range(4))


def hashed(passphrase: str) -> str:
    """Return the Argon2 hash of a passphrase that is good enough.

    Raises
    ------
    InputError
        If it is too short, too long, or made of too few different characters.
    """
    text = _normal(passphrase)
    if not SHORTEST <= len(text) <= LONGEST:
        raise InputError(
            f"a passphrase must have {SHORTEST} to {LONGEST} characters, got {len(text)}"
        )
    if len(set(text)) < FEWEST_CHARACTERS:
        raise InputError(f"a passphrase must have {FEWEST_CHARACTERS} different characters or more")
    with _hashing:
        return _hasher.hash(text)


def _normal(passphrase: str) -> str:
    return unicodedata.normalize("NFKC", passphrase)


def check_hash(hash: str) -> None:
    """Refuse what is no hash of ours.

    Raises
    ------
    InputError
        If it is none.
    """
    try:
        extract_parameters(hash)
    except InvalidHashError:
        raise InputError("this is no Argon2 hash") from None


def is_outdated(hash: str) -> bool:
    """Return whether passphrases are hashed with more effort today."""
    return _hasher.check_needs_rehash(hash)


def of_nobody() -> str:
    """Return a hash that no passphrase has, so that a name of nobody takes as long as another."""
    if not _nobodys_hash:
        _nobodys_hash.append(_hasher.hash(secrets.token_hex(32)))
    return _nobodys_hash[0]


def verified(hash: str, passphrase: str) -> bool:
    """Return whether a passphrase has this hash."""
    with _hashing:
        try:
            return _hasher.verify(hash, _normal(passphrase)[: LONGEST + 1])
        except (VerificationError, InvalidHashError):
            return False
