"""Run the cases that may hang or eat the memory, in this process, and tell each one's outcome.

A line of JSON before each case names it; the one after has its exit code, its error and the peak
of its memory: a process that dies has told which case it died of.
"""

import json
import resource
import shutil
import sys
import tempfile
import time
from pathlib import Path

import click

from tests.hostile import every  # noqa: F401
from tests.hostile.case import CASES
from tests.hostile.runner import invoke, prepared

LIMIT = 16 << 30  # of addresses: engines and threads reserve some they never use


def peak_mb() -> float:
    """Return the most memory that the process had since `forget_peak`, in MB."""
    status = Path("/proc/self/status").read_text(encoding="ascii")
    return int(status.split("VmHWM:")[1].split()[0]) / 1e3


def main(wanted: str = "") -> None:
    """Run the cases whose name holds a word; all without one."""
    resource.setrlimit(resource.RLIMIT_AS, (LIMIT, LIMIT))
    with tempfile.TemporaryDirectory() as folder, prepared(Path(folder)):
        for number, case in enumerate(CASES):
            if not case.alone or wanted not in case.id:
                continue
            click.echo(json.dumps({"case": number, "begins": case.id}))
            own = Path(folder) / f"case-{number}"
            own.mkdir()
            words = case.make(own)
            Path("/proc/self/clear_refs").write_text("5", encoding="ascii")
            before, start = peak_mb(), time.monotonic()
            result = invoke(case, words)
            told = {
                "case": number, "id": case.id, "code": result.exit_code, "before_mb": before,
                "peak_mb": peak_mb(), "seconds": round(time.monotonic() - start, 2),
                "said": result.stderr[-600:], "exception": repr(result.exception)[:300],
            }  # fmt: skip
            click.echo(json.dumps(told))
            shutil.rmtree(own)


if __name__ == "__main__":
    main(*sys.argv[1:])
