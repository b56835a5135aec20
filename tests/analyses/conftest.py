from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.analyses.worlds import World, make_world

NewWorld = Callable[..., World]


@pytest.fixture
def new_world(tmp_path: Path) -> Iterator[NewWorld]:
    """Make worlds that are closed in the end."""
    worlds: list[World] = []

    def make(**options: Any) -> World:
        worlds.append(make_world(tmp_path / f"world-{len(worlds)}.duckdb", **options))
        return worlds[-1]

    yield make
    for world in worlds:
        world.store.close()


@pytest.fixture(autouse=True)
def _few_draws(few_draws: None) -> None:
    """Spare every analysis most of the posterior."""
