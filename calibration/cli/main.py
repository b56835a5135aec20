"""The group of all commands, and the handling of their errors."""

import errno
import gc
import os
from collections import UserDict
from importlib import import_module
from typing import Any

import click

from calibration.cli.terminal import print_error
from calibration.errors import CalibrationError, InputError

NOT_ALLOWED, BAD_INPUT = 1, 2

# The module of each command, loaded only for that command.
MODULES = {
    "import": "data", "verdicts": "data", "labels": "data", "taxonomy": "data",
    "reviewer": "people", "passphrase": "people", "identities": "people",
    "plan": "planning", "plan-agreement": "planning", "sample": "planning",
    "escalate": "planning", "audit": "planning", "traces": "traces", "agreement": "agreement",
    "calibrate": "calibrate", "gate": "gate", "report": "results", "compare": "results",
    "verify": "results", "serve": "server", "demo": "server", "reference": "reference",
    "certify": "people", "backup": "upkeep", "restore": "upkeep", "upgrade": "upkeep",
    "doctor": "upkeep", "audit-log": "upkeep",
}  # fmt: skip


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


class Commands(click.Group):
    """Commands whose errors become one sentence and an exit code."""

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
