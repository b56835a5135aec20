"""The group of all commands, and what their errors turn into."""

import errno
from typing import Any

import click

from calibration.cli import (
    agreement,
    calibrate,
    data,
    escalation,
    gate,
    planning,
    reference,
    results,
    server,
    traces,
)
from calibration.cli.terminal import print_error
from calibration.errors import CalibrationError, InputError

NOT_ALLOWED, BAD_INPUT = 1, 2


class Commands(click.Group):
    """Commands whose errors end in one sentence and the right exit code."""

    def invoke(self, ctx: click.Context) -> Any:
        """Run a command; 1: the data do not allow it, 2: bad input."""
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


@click.group(cls=Commands, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(package_name="asr-calibration")
def main() -> None:
    """Turn raw agent traces into one Agent Success Rate (ASR) you can defend."""


for command in (
    *data.COMMANDS,
    *planning.COMMANDS,
    *escalation.COMMANDS,
    *traces.COMMANDS,
    agreement.agreement,
    calibrate.calibrate,
    gate.gate,
    *results.COMMANDS,
    *server.COMMANDS,
    *reference.COMMANDS,
):
    main.add_command(command)
