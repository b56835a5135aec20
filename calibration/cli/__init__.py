"""The `asr` command; only this package prints."""

from calibration.cli.main import main

__all__ = ["main"]
