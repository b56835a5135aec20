"""Three rounds of what `make bench` does 25 times."""

import pytest

from tests.browser.conftest import Server, server
from tests.load.crash import crash

__all__ = ["server"]


@pytest.mark.long
def test_what_was_confirmed_outlives_a_kill_under_load(server: Server) -> None:
    result, missing = crash(server, rounds=3, n_people=4, seed=5)
    assert missing == []
    assert (result.doubled, result.refused) == (0, 0)
    assert result.labels >= 12
    assert result.drafts > 0
