"""What all tests share: how Hypothesis searches, and hashes of little effort."""

import pytest
from argon2 import PasswordHasher
from hypothesis import settings

from calibration.store import passphrases

# The same examples in every run of the suite, others in `make fuzz`: a suite that draws new
# examples each time may fail on a commit that it passed an hour before.
settings.register_profile("suite", derandomize=True, database=None)
settings.register_profile("fuzz", max_examples=2000, print_blob=True)
settings.load_profile("suite")


@pytest.fixture
def quick_hashes(monkeypatch: pytest.MonkeyPatch) -> None:
    """Hash passphrases with little effort: what is tested is not how hard they are to guess."""
    quick = PasswordHasher(time_cost=1, memory_cost=64, parallelism=1)
    monkeypatch.setattr(passphrases, "_hasher", quick)
    # A hash of nobody's made with another effort would tell names of nobody from others.
    monkeypatch.setattr(passphrases, "_nobodys_hash", [])
