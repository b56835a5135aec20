"""A command in a process of its own: how long it took, and how much memory."""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

REPORT = "from calibration.cli import main; main()"

# The kernel's own figure of this process: that of `getrusage` begins with the peak of the parent.
PEAK = """
import atexit, os
def peak():
    with open("/proc/self/status", encoding="ascii") as status:
        found = [line.split()[1] for line in status if line.startswith("VmHWM")]
    os.write(2, f"\\npeak {found[0]}\\n".encode())
if os.path.exists("/proc/self/status"):
    atexit.register(peak)
"""

MODULE = (
    PEAK
    + """
import runpy, sys
sys.argv = sys.argv[1:]
sys.path.insert(0, os.getcwd())
runpy.run_module(sys.argv[0], run_name="__main__", alter_sys=True)
"""
)


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
    MemoryError
        If the system ended it.
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
    if process.returncode == -signal.SIGKILL:
        raise MemoryError(command[-2])
    if process.returncode:
        raise RuntimeError(f"{' '.join(command)}: {errors.strip()[-500:]}")
    return Run(
        wall=wall,
        cpu=usage.ru_utime + usage.ru_stime,
        memory=_peak(errors, usage.ru_maxrss * resource_unit()) / 1e9,
        output=output,
    )


def _peak(errors: str, otherwise: int) -> int:
    """Return the most memory in bytes, as the child wrote it."""
    found = [line.split()[1] for line in errors.splitlines() if line.startswith("peak ")]
    return int(found[-1]) * 1024 if found else otherwise


def resource_unit() -> int:
    """Return the bytes of one unit of `ru_maxrss`."""
    return 1 if sys.platform == "darwin" else 1024


def report(path: Path, *, resamples: int) -> Run:
    """Run `asr report` on a file, from the start of Python to the printed JSON."""
    return run(
        [
            sys.executable, "-c", PEAK + REPORT, "report", str(path), "--json",
            "--resamples", str(resamples),
        ]
    )  # fmt: skip


def floor(name: str, path: Path) -> Run:
    """Run one of `benchmarks.asr.floors` on a file."""
    return run([sys.executable, "-c", MODULE, "benchmarks.asr.floors", name, str(path)])


def peer(name: str, path: Path, *arguments: object) -> Run:
    """Run one of `benchmarks.asr.peers` on a file."""
    return run(
        [sys.executable, "-c", MODULE, "benchmarks.asr.peers", name, str(path)]
        + [str(argument) for argument in arguments]
    )


def polars(python: Path, path: Path, rubric: str) -> Run:
    """Run the tables of polars in an environment of its own."""
    script = Path(__file__).with_name("polars_tables.py").read_text(encoding="utf-8")
    return run([str(python), "-c", PEAK + script, str(path), rubric])
