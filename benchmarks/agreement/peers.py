"""Environments for the peers, thrown away after the run, and what they measured there."""

import json
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

CALLS = Path(__file__).with_name("peer_calls.py")

# irrCAC pins scipy 1.12 and so needs an environment of its own.
TOGETHER = ("krippendorff", "nltk", "statsmodels")

ALONE = "irrCAC==0.4.4"


@dataclass(frozen=True, slots=True)
class Measured:
    """One call of a peer."""

    value: float
    seconds: list[float]


@dataclass(frozen=True, slots=True)
class Environment:
    """A Python with some packages, or why there is none."""

    python: Path
    refused: str = ""


def environment(folder: Path, packages: tuple[str, ...]) -> Environment:
    """Install packages into a new environment."""
    uv = Path(sys.executable).with_name("uv")
    python = folder / "bin" / "python"
    for command in (
        [str(uv), "venv", "--quiet", "--python", sys.executable, str(folder)],
        [str(uv), "pip", "install", "--quiet", "--python", str(python), *packages],
    ):
        try:
            done = subprocess.run(command, capture_output=True, text=True, timeout=600)
        except (OSError, subprocess.TimeoutExpired) as error:
            return Environment(python, str(error))
        if done.returncode:
            return Environment(python, done.stderr.strip().splitlines()[-1])
    return Environment(python)


def environments(folder: Path) -> dict[str, Environment]:
    """Return the environment of each peer."""
    shared = environment(folder / "peers", TOGETHER)
    own = environment(folder / "irrcac", (ALONE,))
    return {**dict.fromkeys(TOGETHER, shared), "irrCAC": own}


def measure(
    where: Environment, package: str, codes: Path, *, repeats: int
) -> tuple[dict[str, str], dict[str, Measured]]:
    """Return versions and calls of a peer on ratings in a file."""
    done = subprocess.run(
        [str(where.python), "-W", "ignore", str(CALLS), package, str(codes), str(repeats)],
        capture_output=True, text=True, timeout=1800,
    )  # fmt: skip
    if done.returncode:
        raise RuntimeError(f"{package}: {done.stderr.strip()[-2000:]}")
    found = json.loads(done.stdout)
    calls = {name: Measured(c["value"], c["seconds"]) for name, c in found["calls"].items()}
    return found["versions"], calls
