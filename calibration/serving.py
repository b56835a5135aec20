"""How people reach the app: the origin of its pages, and the settings that name it."""

import ipaddress
import os
from functools import lru_cache
from typing import NamedTuple, Self
from urllib.parse import urlsplit

from calibration.errors import InputError
from calibration.store import is_loopback

PUBLIC_ORIGIN = "ASR_PUBLIC_ORIGIN"

# The server below reads this one: proxies whose word for the address of a visitor is taken.
TRUSTED_PROXIES = "FORWARDED_ALLOW_IPS"
PORTS = {"http": 80, "https": 443}


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
