"""Which text counts as an address outside the domains that are reserved for examples."""

import pytest

from reference_dataset.trace_rules import DOMAIN, EXAMPLE


def outside(text: str) -> list[str]:
    return [found for found in DOMAIN.findall(text) if "." in found and not EXAMPLE.search(found)]


@pytest.mark.parametrize(
    "text",
    [
        "see https://shop.example.org/a and mara@ferry.example",
        "curl http://127.0.0.1:8080/health",
        "@redis.del(key) and @gateway.charge(order)",
        "@Override public void run()",
    ],
)
def test_reserved_domains_loopback_and_code_are_no_addresses(text: str) -> None:
    assert outside(text) == []


@pytest.mark.parametrize(
    ("text", "domain"),
    [
        ("write to a.b+c@firm.com", "firm.com"),
        ("https://www.firm.com/x", "www.firm.com"),
        ("http://10.0.0.1/", "10.0.0.1"),
        ("https://example.com.evil.io/", "example.com.evil.io"),
    ],
)
def test_any_other_domain_is_named(text: str, domain: str) -> None:
    assert outside(text) == [domain]
