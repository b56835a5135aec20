import shutil
from collections.abc import Iterator
from functools import lru_cache
from pathlib import Path

import pytest

from reference_dataset import set_rules, trace_rules, words
from reference_dataset.loader import LABELS, SECOND_PASS, SETTLEMENTS, published
from tests.reference_dataset.copies import Copy


@pytest.fixture(scope="session", autouse=True)
def _known_words() -> Iterator[None]:
    """Count the words of a text once: a hundred copies differ in one trace each."""
    known_words, known_runs = lru_cache(50_000)(words.words), lru_cache(5_000)(words.runs)
    with pytest.MonkeyPatch.context() as patch:
        for module in (words, set_rules, trace_rules):
            patch.setattr(module, "words", known_words)
        patch.setattr(set_rules, "runs", known_runs)
        yield


@pytest.fixture(scope="session")
def base(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two families of the published dataset, which no test writes to.

    A hundred tests break a copy and check all of it; a third of the set is enough for that.
    """
    copy = Copy(tmp_path_factory.mktemp("published"))
    shutil.copytree(published() / "traces", copy.folder / "traces")
    for name in (LABELS, SECOND_PASS, SETTLEMENTS, "forms.toml"):
        shutil.copy(published() / name, copy.folder / name)
    for family in copy.families[2:]:
        copy.path(f"{family}.jsonl").unlink()
    kept = tuple(copy.families)
    for file in (LABELS, SECOND_PASS, SETTLEMENTS):
        head, *rows = copy.read(file)
        copy.write(file, [head, *(row for row in rows if row["trace_id"].startswith(kept))])
    copy.write_forms(
        {name: [i for i in ids if i.startswith(kept)] for name, ids in copy.forms().items()}
    )
    copy.seal()
    return copy.folder


@pytest.fixture
def copy(base: Path, tmp_path: Path) -> Copy:
    """Return a copy to break."""
    return Copy(Path(shutil.copytree(base, tmp_path / "set")))
