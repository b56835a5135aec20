"""`python -m calibration.cli`: the `asr` command, wherever its script is."""

from calibration.cli import main

main()
