"""The command that says what a file is for."""

from pathlib import Path

import click

from calibration.cli.reading_options import FileCommand, with_reading_options
from calibration.cli.terminal import print_json, print_lines, with_json
from calibration.tables.reading import ReadingOptions


@click.command(cls=FileCommand)
@click.argument("file", type=click.Path(path_type=Path))
@with_reading_options()
@with_json
def look(file: Path, reading: ReadingOptions, as_data: bool) -> None:
    """Say what a FILE is for, how it would be read, and which command reads it.

    FILE holds traces, runs, trials, ratings, labels or verdicts. Printed are the columns with the
    role that each has and what it holds, what would be left out, and the command to paste. Where
    the file can be read in several ways, a question with the option that answers it is the error.
    Nothing is changed.

    \b
    asr look runs.csv
    asr look sheet.csv --raters Ann,Bo
    asr look scores.parquet --column outcome=score --scale 1-5 --json
    """
    from calibration.analyses.look import look_at

    found = look_at(file, reading)
    if as_data:
        from calibration.reporting import to_json

        print_json(to_json.data(found))
    else:
        from calibration.reporting.sections.look import look_lines

        print_lines(look_lines(found))
