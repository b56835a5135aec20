"""Every hostile file: taken, set aside or refused in a sentence; never a silent part."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from calibration.store import Store
from tests.hostile.case import Case
from tests.hostile.every import CASES
from tests.hostile.runner import check, invoke, prepared

QUICK = [case for case in CASES if not case.alone]


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Store]:
    with prepared(tmp_path_factory.mktemp("hostile")) as opened:
        yield opened


@pytest.mark.long  # an attack on every command
@pytest.mark.usefixtures("few_draws", "store")
@pytest.mark.parametrize("case", QUICK, ids=[f"{n} {case.id}" for n, case in enumerate(QUICK)])
def test_it_is_taken_set_aside_or_refused(case: Case, tmp_path: Path) -> None:
    check(case, invoke(case, case.make(tmp_path)))
