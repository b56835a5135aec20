"""The group of all commands, and the handling of their errors."""

import errno
import gc
import os
import sys
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
        "demo": "server", "look": "look", "import": "data", "pull": "platforms",
        "people": "people", "taxonomy": "taxonomy", "serve": "server",
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
# The first sentence of each, so that the list of commands loads none; a test keeps them alike.
SENTENCES = {
    "demo": "Build a store of simulated data with known truth, and serve the app on it.",
    "look": "Say what a FILE is for, how it would be read, and which command reads it.",
    "import": (
        "Import trace files, folders of them and patterns; each is recognised by its content."
    ),
    "people": "Add people, give them a role, and let them sign in.",
    "taxonomy": "Show the classes, credits and questions in force, or use your own.",
    "serve": "Serve the app on a store.",
    "plan": "Plan how many traces to label or trials to run, and see when labelling may stop.",
    "sample": "Draw a random batch of traces to label, and record how it was drawn.",
    "labels": "Import labels, and say what reviewers mark; `asr export labels` writes them.",
    "agreement": "Measure how far reviewers agree: in the store, or in a FILE of ratings.",
    "reference": "Practise on the reference dataset, inspect it, and add traces of your own.",
    "certify": "List certificates of reviewers, and say which work requires one.",
    "judge": "Run a judge of your own on the reviewers' questions, and see what it is worth.",
    "verdicts": "Import the verdicts of a judge; `asr export verdicts` writes them.",
    "calibrate": "Compare a judge with the human labels, and correct the rate for its errors.",
    "escalate": "Make a batch of the doubtful verdicts and a random audit of the accepted ones.",
    "audit": "Say how often accepted verdicts are wrong, and give the rate over all traces.",
    "status": "Print the rate of the store, its trend, and what to do next.",
    "report": "Report the Agent Success Rate of production traces, or of the store.",
    "compare": "Compare the Agent Success Rates of two sets of runs, B with A, or of 3 to 20.",
    "gate": "Pass or fail files of runs, or the store, by thresholds, for CI.",
    "trials": "Estimate pass@k and pass^k from repeated trials of tasks.",
    "tasks": "Audit the tasks that an agent is tested with, or make tasks of runs that failed.",
    "reliability": "Measure how reliable an agent is over repeated RUNS of the same tasks.",
    "tools": "Measure whole conversations, and the tools that an agent called in them.",
    "grade": "Grade runs by rules written as code: texts, tools, order of calls, state.",
    "layers": "Show which layer of evaluation caught which failures, and what only users found.",
    "traces": "List the traces that a search finds, the same search as on the Data page.",
    "export": (
        "Write labels, verdicts and results as files: CSV, JSONL or Parquet, by the file's ending."
    ),
    "pull": "Pull traces from Langfuse, LangSmith or Phoenix, and import them.",
    "push": "Push labels and verdicts to the traces that they are of, as scores.",
    "verify": "Recompute a report, and say whether it comes out the same.",
    "backup": "Back up a store with everything beside it, also while the app runs.",
    "restore": "Restore a store from a backup; every file is checked first.",
    "upgrade": "Upgrade a store of an older version; a backup is made first.",
    "doctor": (
        "Find what is wrong with a store and its files, and say what to do; exit 1 if anything is."
    ),
    "audit-log": "Print who changed what, when, and by which command or page, newest first.",
}


READS_INPUT = "calibration.reads_input"


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
    sentences = SENTENCES

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Note whether a word is ``-``, standard input."""
        ctx.meta[READS_INPUT] = any(word == "-" or word.endswith("=-") for word in args)
        return super().parse_args(ctx, args)

    def invoke(self, ctx: click.Context) -> Any:
        """Run a command; exit with 1 if the data do not allow it, with 2 for bad input."""
        try:
            if not ctx.meta[READS_INPUT]:
                return super().invoke(ctx)
            from calibration.files import standard_input

            with standard_input(sys.stdin.buffer):
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
