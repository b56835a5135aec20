import shutil
from pathlib import Path

import pytest

from tests.reference_dataset.copies import Copy, copy_published


@pytest.fixture(scope="session")
def base(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """One copy of the published dataset, which no test writes to."""
    return copy_published(tmp_path_factory.mktemp("published"))


@pytest.fixture
def copy(base: Path, tmp_path: Path) -> Copy:
    """Return a copy to break."""
    return Copy(Path(shutil.copytree(base, tmp_path / "set")))
