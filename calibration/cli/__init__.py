"""The `asr` command; only this package prints.

`main` is the group; a module holds the commands of one subject: `look`, `data`, `traces`, `people`,
`reference`, `planning`, `agreement`, `calibrate`, `judge`, `results`, `gate`, `reliability`,
`trials`, `tasks`, `tools`, `export`, `taxonomy`, `platforms`, `server`, `upkeep`.
`terminal` has the options and the printing of all, `production_options` those of commands on runs,
`reading_options` those for reading a table.
`__main__` is for `python -m calibration.cli`.
"""

from calibration.cli.main import main

__all__ = ["main"]
