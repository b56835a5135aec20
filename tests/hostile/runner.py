"""Run one hostile case in this process, on a store that stays open, and look at what it says."""

import json
import os
import signal
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, nullcontext
from pathlib import Path
from types import FrameType
from unittest import mock

from click.testing import CliRunner, Result

from calibration.cli import data, main
from calibration.store import Store
from calibration.taxonomy import default_taxonomy
from tests.cli_runs import run, write_runs
from tests.hostile.case import Case

PATIENCE_S = 60


class HangsError(BaseException):
    """A case takes too long; no command catches it."""


@contextmanager
def prepared(folder: Path) -> Iterator[Store]:
    """Give the commands of the command line one store with a batch, open for all of the cases."""
    before = Path.cwd()
    os.chdir(folder)
    path = folder / "asr.duckdb"
    run("import", write_runs(folder / "f.jsonl", 30), "--ceiling", "0.2", "--yes")
    run("sample", "--n", 20, "--seed", 1)
    try:
        with Store.open(path) as store:

            def opened(*_: object, **__: object) -> nullcontext[Store]:
                return nullcontext(store)

            with (
                mock.patch.object(data, "open_to_write", opened),
                mock.patch.object(data, "open_to_read", opened),
                mock.patch.object(data, "_open_for_import", opened),
                mock.patch.object(data, "taxonomy_in_force", return_value=default_taxonomy()),
                mock.patch.object(data, "make_way", return_value=None),
            ):
                yield store
    finally:
        os.chdir(before)


def invoke(case: Case, words: Sequence[object]) -> Result:
    """Run a case; one that hangs is an error after some seconds."""

    def give_up(_signal: int, _frame: FrameType | None) -> None:
        raise HangsError(f"{case.id} takes more than {PATIENCE_S} s")

    before = signal.signal(signal.SIGALRM, give_up)
    signal.alarm(PATIENCE_S)
    try:
        return CliRunner().invoke(main, list(map(str, words)))
    finally:
        signal.alarm(0)
        signal.signal(signal.SIGALRM, before)


def check(case: Case, result: Result) -> None:
    """Assert that a case is taken, refused in a sentence or set aside, with no silent part."""
    if result.exception is not None and not isinstance(result.exception, SystemExit):
        raise result.exception
    assert "Traceback" not in result.output
    assert result.exit_code in case.codes, (result.exit_code, result.stderr)
    if result.exit_code and not (case.command == "gate" and result.stdout):
        last = result.stderr.splitlines()[-1]
        assert last.lower().startswith("error: ")
        assert len(last) < 1_500
    elif case.rows is not None:
        assert accounted(case.command, result.stdout) == case.rows, result.stdout


def accounted(command: str, printed: str) -> int:
    """Return how many rows of a file a command took or named as set aside."""
    said = json.loads(printed)
    if command == "import":
        # A run that is there already may have another grade, which is named beside it.
        rows = [row for row in said["set_aside"] if not row["reason"].endswith("which stays")]
        return int(said["imported"] + said["already_there"] + len(rows))
    if command == "report":
        return int(said["n"] + sum(rows["n"] for rows in said["set_aside"]))
    if command == "agreement":
        return int(said["ratings"]["n_items"])
    counts = [
        value if isinstance(value, int) else len(value)
        for name, value in said.items()
        if name not in ("batch_id", "reading")
    ]
    return sum(counts) + sum(int(rows["rows"]) for rows in said["reading"]["left_out"])
