"""Some seconds of what `make load` does for an hour."""

from pathlib import Path

import pytest
from click.testing import CliRunner

from benchmarks.load import main


@pytest.mark.long
def test_the_load_of_a_few_reviewers_is_measured(tmp_path: Path) -> None:
    page = tmp_path / "load.md"
    words = "--people 3 --seconds 6 --think 1 --steps 10 --part steady --output".split()
    done = CliRunner().invoke(main, [*words, str(page)])
    assert done.exit_code == 0, done.output
    row = page.read_text(encoding="utf-8").rstrip().splitlines()[-1]
    people, minutes, labels, per_second, p50, p95, *counts = row.strip("| ").split(" | ")[:9]
    assert (people, minutes, counts) == ("3", "0.1", ["0", "0", "0"])
    assert 3 <= int(labels) <= 60
    assert float(per_second) == pytest.approx(int(labels) / 6, abs=0.2)
    assert 0 < float(p50.replace(",", "")) <= float(p95.replace(",", ""))
