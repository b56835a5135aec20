"""A command in a process of its own: how long it took, and how much memory."""

import os
import subprocess
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

REPORT = "from calibration.cli import main; main()"


@dataclass(frozen=True, slots=True, kw_only=True)
class Run:
    """Wall time and processor time in seconds, and the most memory in GB."""

    wall: float
    cpu: float
    memory: float
    output: str


def run(command: Sequence[str]) -> Run:
    """Run a command to its end.

    Raises
    ------
    RuntimeError
        If it fails.
    """
    began = time.perf_counter()
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as process:
        if process.stdout is None or process.stderr is None:
            raise RuntimeError("a command without output")
        output = process.stdout.read()
        errors = process.stderr.read()
        # The usage of this child alone: that of all children would keep the largest of them.
        _, status, usage = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
    wall = time.perf_counter() - began
    if process.returncode:
        raise RuntimeError(f"{' '.join(command)}: {errors.strip()[-500:]}")
    return Run(
        wall=wall,
        cpu=usage.ru_utime + usage.ru_stime,
        memory=usage.ru_maxrss * resource_unit() / 1e9,
        output=output,
    )


def resource_unit() -> int:
    """Return the bytes of one unit of `ru_maxrss`."""
    return 1 if sys.platform == "darwin" else 1024


def report(path: Path, *, resamples: int) -> Run:
    """Run `asr report` on a file, from the start of Python to the printed JSON."""
    return run(
        [sys.executable, "-c", REPORT, "report", str(path), "--json", "--resamples", str(resamples)]
    )


def floor(name: str, path: Path) -> Run:
    """Run one of `benchmarks.asr.floors` on a file."""
    return run([sys.executable, "-m", "benchmarks.asr.floors", name, str(path)])


def peer(name: str, path: Path, *arguments: object) -> Run:
    """Run one of `benchmarks.asr.peers` on a file."""
    return run(
        [sys.executable, "-m", "benchmarks.asr.peers", name, str(path), *map(str, arguments)]
    )
