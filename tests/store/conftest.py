from collections.abc import Iterator
from pathlib import Path

import pytest

from calibration.store import Store, leases, queue
from tests.store.benches import bench
from tests.store.builders import Clock, Desk, empty_store, make_desk
from tests.store.inserts import first_world, often, world

__all__ = ["bench", "first_world", "often", "world"]


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    with empty_store(tmp_path / "store.duckdb") as opened:
        yield opened


@pytest.fixture
def desk(tmp_path: Path) -> Iterator[Desk]:
    made = make_desk(tmp_path / "desk.duckdb")
    yield made
    made.store.close()


@pytest.fixture(scope="module")
def _kept_desk(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Desk]:
    made = make_desk(tmp_path_factory.mktemp("kept") / "kept.duckdb")
    yield made
    made.store.close()


@pytest.fixture
def kept_desk(_kept_desk: Desk) -> Iterator[Desk]:
    """Return a desk that the tests of a module share; what Ann decided is undone after each."""
    _kept_desk.queue()
    yield _kept_desk
    while _kept_desk.undo() is not None:
        pass


@pytest.fixture(scope="module")
def kept_store(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Store]:
    """Return a store that the tests of a module share."""
    with empty_store(tmp_path_factory.mktemp("kept") / "store.duckdb") as opened:
        yield opened


@pytest.fixture
def shared_desk(tmp_path: Path) -> Iterator[Desk]:
    """Return a desk whose traces want two labels each."""
    made = make_desk(tmp_path / "shared.duckdb", labels_wanted=2, reviewers=("Ann", "Bob", "Cy"))
    yield made
    made.store.close()


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    made = Clock()
    monkeypatch.setattr(queue, "utc_now", made)
    monkeypatch.setattr(leases, "utc_now", made)
    return made
