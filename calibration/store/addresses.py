"""Addresses of visitors and of the server: which are this machine, and what one counts as."""

import ipaddress


def is_loopback(host: str | None) -> bool:
    """Return whether an address or a name of a host is this machine and can be no other one.

    Examples
    --------
    >>> [is_loopback(h) for h in ("127.0.0.1", "::1", "localhost", "::ffff:127.0.0.1")]
    [True, True, True, True]
    >>> [is_loopback(h) for h in ("0.0.0.0", "::", "192.0.2.7", "localhost.evil.test", "", None)]
    [False, False, False, False, False, False]
    """
    if host is None:
        return False
    if host.lower().rstrip(".") == "localhost":
        return True
    parsed = _parsed(host)
    return parsed is not None and parsed.is_loopback


def address_key(address: str) -> str:
    """Return what an address counts as; of IPv6 the network, which one household shares.

    Examples
    --------
    >>> address_key("::ffff:192.0.2.7"), address_key("2001:db8:1:2:3::4")
    ('192.0.2.7', '2001:db8:1:2::/64')
    """
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
