"""How people reach the app: the origin of its pages, and the settings that name it."""

import ipaddress
import os
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, NamedTuple, Self
from urllib.parse import urlsplit

from calibration.errors import InputError
from calibration.records import ROLES
from calibration.store import is_loopback

PUBLIC_ORIGIN = "ASR_PUBLIC_ORIGIN"

# The server below reads this one: proxies whose word for the address of a visitor is taken.
TRUSTED_PROXIES = "FORWARDED_ALLOW_IPS"
PORTS = {"http": 80, "https": 443}

# Of the identity provider: what its button is called, the claim that decides on roles, and the
# values of it that give each role.
PROVIDER_NAME, ROLE_CLAIM = "ASR_OIDC_NAME", "ASR_OIDC_ROLE_CLAIM"
ROLE_VALUES = {
    "reviewer": "ASR_OIDC_REVIEWERS", "lead": "ASR_OIDC_LEADS", "admin": "ASR_OIDC_ADMINS",
}  # fmt: skip


class WebOrigin(NamedTuple):
    """The scheme, host and port of a page, with the port that its scheme implies."""

    scheme: str
    host: str
    port: int

    @classmethod
    def parsed(cls, text: str) -> Self | None:
        """Return the origin that a text names; None if it names none, or more than an origin.

        Examples
        --------
        >>> WebOrigin.parsed("https://ASR.example")
        WebOrigin(scheme='https', host='asr.example', port=443)
        >>> [WebOrigin.parsed(text) for text in ("null", "asr.example", "https://a@b", "https://a/b")]
        [None, None, None, None]
        """
        try:
            parts = urlsplit(text)
            host, port = parts.hostname, parts.port
        except ValueError:
            return None
        name = text.partition("://")[2]
        if parts.scheme not in PORTS or not host or name != parts.netloc or "@" in name:
            return None
        return cls(parts.scheme, host, PORTS[parts.scheme] if port is None else port)

    @property
    def netloc(self) -> str:
        """Host and port as a browser writes them: without the port that the scheme implies."""
        host = f"[{self.host}]" if ":" in self.host else self.host
        return host if self.port == PORTS[self.scheme] else f"{host}:{self.port}"

    def __str__(self) -> str:
        return f"{self.scheme}://{self.netloc}"


def public_origin() -> WebOrigin | None:
    """Return the origin at which a proxy shows this app to people; None without a setting.

    Raises
    ------
    InputError
        If `ASR_PUBLIC_ORIGIN` is no origin.
    """
    text = os.environ.get(PUBLIC_ORIGIN, "").strip()
    return parsed_public_origin(text) if text else None


@lru_cache(maxsize=8)
def parsed_public_origin(text: str) -> WebOrigin:
    """Return the public origin that a setting names.

    Raises
    ------
    InputError
        If it is no origin.
    """
    origin = WebOrigin.parsed(text)
    if origin is None:
        raise InputError(
            f"the public origin must be a scheme, a host and, if unusual, a port, such as "
            f"https://asr.example.org, got {text!r}"
        )
    return origin


def lets_others_in(address: str | None, public: WebOrigin | None) -> str | None:
    """Return what opens the app to other machines; None if only this machine gets in."""
    if not is_loopback(address):
        return f"host {address!r}" if address else "every address"
    if public is not None and not is_loopback(public.host):
        return f"public origin {public}"
    return None


def check_proxies(text: str) -> None:
    """Refuse a list of proxies that trusts everybody or holds what is no address.

    Raises
    ------
    InputError
        If a part between commas is no IP address or network.
    """
    for part in filter(None, (part.strip() for part in text.split(","))):
        try:
            network = ipaddress.ip_network(part)
        except ValueError as error:
            raise InputError(
                f"a trusted proxy must be an IP address or network such as 10.0.0.5 or 10.0.0.0/24 "
                f"({TRUSTED_PROXIES}), got {part!r}"
            ) from error
        if not network.prefixlen:
            raise InputError(f"{part} trusts the address that any visitor claims; name the proxy")


def trouble_with_proxy(address: str | None) -> list[str]:
    """Return what is wrong with the way that other machines reach the app; nothing if all is well.

    Raises
    ------
    InputError
        If a setting cannot be read.
    """
    public, proxies = public_origin(), os.environ.get(TRUSTED_PROXIES, "").strip()
    check_proxies(proxies)
    if lets_others_in(address, public) is None:
        return []
    if public is None:
        return [
            "passphrases and labels cross the network in plain text: put a proxy with HTTPS before "
            "the app and name its address with --public-origin"
        ]
    found = []
    if public.scheme == "http" and not is_loopback(public.host):
        found.append(f"passphrases and labels reach {public} in plain text: use HTTPS")
    if not is_loopback(address) and not proxies:
        found.append(
            "every visitor has the address of the proxy, so that one who guesses passphrases makes "
            "all others wait: name it with --trusted-proxy, unless it runs on this machine"
        )
    return found


@dataclass(frozen=True, slots=True)
class RoleClaim:
    """The claim of the identity provider that decides on roles, and the values for each role."""

    name: str
    values: Mapping[str, frozenset[str]]

    def role_of(self, claims: Mapping[str, Any]) -> str | None:
        """Return the highest role that claims give, None if they give none.

        Examples
        --------
        >>> groups = RoleClaim("realm.groups", {"reviewer": frozenset({"qa"}),
        ...                                     "lead": frozenset({"leads"})})
        >>> groups.role_of({"realm": {"groups": ["qa", "leads", "staff"]}})
        'lead'
        >>> groups.role_of({"realm.groups": "qa"})
        'reviewer'
        >>> groups.role_of({"groups": ["leads"]}) is None
        True
        """
        found: Any = claims.get(self.name)
        if self.name not in claims:
            found = claims
            for part in self.name.split("."):
                found = found.get(part) if isinstance(found, Mapping) else None
        given = [found] if isinstance(found, str) else found if isinstance(found, list) else []
        theirs = {value for value in given if isinstance(value, str)}
        return next((r for r in reversed(ROLES) if theirs & self.values.get(r, frozenset())), None)


def provider_name() -> str:
    """Return what people call the identity provider."""
    return os.environ.get(PROVIDER_NAME, "").strip()[:40] or "your identity provider"


def role_claim() -> RoleClaim | None:
    """Return the claim that decides on roles; None if the store keeps them.

    Raises
    ------
    InputError
        If only one of claim and values is set.
    """
    name = os.environ.get(ROLE_CLAIM, "").strip()
    values = {
        role: frozenset(filter(None, map(str.strip, os.environ.get(variable, "").split(","))))
        for role, variable in ROLE_VALUES.items()
    }
    if bool(name) != any(values.values()):
        missing = f"values in {', '.join(ROLE_VALUES.values())}" if name else ROLE_CLAIM
        raise InputError(f"roles are read from a claim of the identity provider: set {missing} too")
    return RoleClaim(name, values) if name else None
