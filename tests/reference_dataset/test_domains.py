"""Which text counts as an address outside the domains that are reserved for examples."""

import pytest

from reference_dataset.trace_rules import DOMAIN, EXAMPLE


@pytest.mark.parametrize(
    ("text", "outside"),
    [
        ("see https://shop.example.org/a and mara@ferry.example", []),
        ("curl http://127.0.0.1:8080/health", []),
        ("@redis.del(key) and @gateway.charge(order)", []),
        ("@Override public void run()", []),
        ("write to a.b+c@firm.com", ["firm.com"]),
        ("https://www.firm.com/x", ["www.firm.com"]),
        ("http://badexample.com", ["badexample.com"]),
        ("http://10.0.0.1/", ["10.0.0.1"]),
        ("https://example.com.evil.io/", ["example.com.evil.io"]),
    ],
)
def test_any_domain_but_reserved_ones_loopback_and_code_is_named(
    text: str, outside: list[str]
) -> None:
    found = [found for found in DOMAIN.findall(text) if "." in found and not EXAMPLE.search(found)]
    assert found == outside
