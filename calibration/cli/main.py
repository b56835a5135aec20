"""The group of all commands, and the handling of their errors."""

import errno
import gc
import os
from collections import UserDict
from importlib import import_module
from typing import Any

import click

from calibration.cli.terminal import Group, print_error
from calibration.errors import CalibrationError, InputError

NOT_ALLOWED, BAD_INPUT = 1, 2

# The module of each command, loaded only for that command; by the sections of the help.
SECTIONS = {
    "Set up": {
        "demo": "server", "import": "data", "pull": "platforms", "people": "people",
        "taxonomy": "taxonomy", "serve": "server",
    },
    "Label": {
        "plan": "planning", "sample": "planning", "labels": "data", "agreement": "agreement",
        "reference": "reference", "certify": "people",
    },
    "Judge": {
        "judge": "judge", "verdicts": "data", "calibrate": "calibrate", "escalate": "planning",
        "audit": "planning",
    },
    "Results": {
        "status": "results", "report": "results", "compare": "results", "gate": "gate",
        "trials": "trials", "tasks": "tasks", "reliability": "reliability", "tools": "tools",
        "grade": "tools", "layers": "results", "traces": "traces", "verify": "results",
        "export": "export", "push": "platforms",
    },
    "Upkeep": {
        "backup": "upkeep", "restore": "upkeep", "upgrade": "upkeep", "doctor": "upkeep",
        "audit-log": "upkeep",
    },
}  # fmt: skip
MODULES = {name: module for part in SECTIONS.values() for name, module in part.items()}


class Loaded(UserDict[str, Any]):
    """Commands by name, each loaded on use."""

    def __getitem__(self, key: str) -> click.Command:
        """Return a command."""
        if MODULES[key] == "results":
            # Matrices are small: a second thread would only wait, on a needed core.
            os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
            # Loading creates hundreds of thousands of permanent objects: collecting garbage every
            # 700 of them takes a twentieth of the time of a small report.
            gc.set_threshold(100_000, *gc.get_threshold()[1:])
        module = import_module(f"calibration.cli.{MODULES[key]}")
        commands = (c for c in vars(module).values() if isinstance(c, click.Command))
        return next(command for command in commands if command.name == key)


class Commands(Group):
    """Commands whose errors become one sentence and an exit code."""

    sections = {title: list(part) for title, part in SECTIONS.items()}  # noqa: RUF012

    def invoke(self, ctx: click.Context) -> Any:
        """Run a command; exit with 1 if the data do not allow it, with 2 for bad input."""
        try:
            return super().invoke(ctx)
        except CalibrationError as error:
            print_error(str(error))
            ctx.exit(BAD_INPUT if isinstance(error, InputError) else NOT_ALLOWED)
        except OSError as error:
            if error.errno == errno.EPIPE:  # whoever read the output has seen enough
                raise
            what = error.strerror or str(error)
            print_error(what if error.filename is None else f"{error.filename}: {what}")
            ctx.exit(NOT_ALLOWED if error.filename is None else BAD_INPUT)


@click.group(
    cls=Commands,
    commands=Loaded(dict.fromkeys(MODULES)),
    context_settings={"help_option_names": ["-h", "--help"]},
)
@click.version_option(package_name="asr-calibration")
def main() -> None:
    """Turn raw agent traces into one Agent Success Rate (ASR) you can defend."""
