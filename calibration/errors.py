"""Errors that the command line and the app turn into a sentence for the user.

A bad argument of a library function raises `ValueError`. Insufficient data give a result with a
`not_estimable` status (see `calibration.statistics.estimate`), no error.
"""


class CalibrationError(Exception):
    """Base of every error that a user can act on; the message names the remedy."""


class InputError(CalibrationError):
    """A file, field or option is invalid (exit code 2)."""


class NoRunsError(CalibrationError):
    """No run is left of a file or a window, so that it has no rate."""


class MissingColumnError(InputError):
    """A table has no column of this name; `column` may go by another one there."""

    def __init__(self, message: str, *, column: str) -> None:
        super().__init__(message)
        self.column = column


class LeftOutError(CalibrationError):
    """Too many rows of a table are left out for a rate.

    `reading` says which, or is a list of readings; `figures` are the names of the figures that are
    withheld; `missing_outcome` is what the rate is at least and at most, where that is known.
    """

    def __init__(
        self,
        message: str,
        *,
        reading: object,
        figures: tuple[str, ...] = (),
        missing_outcome: object = None,
    ) -> None:
        super().__init__(message)
        self.reading = reading
        self.figures = figures
        self.missing_outcome = missing_outcome


class TraceFormatError(InputError):
    """A trace file cannot be read at all; the message names file and line."""


class TaxonomyError(InputError):
    """A taxonomy is contradictory; the message names the node or class."""


class StoreError(CalibrationError):
    """The store refused an operation."""


class StoreLockedError(StoreError):
    """Another process holds the store."""


class LabelRefusedError(StoreError):
    """A label names a trace that this reviewer was not given, or lacks a required part."""


class MixedDataError(StoreError):
    """Simulated and real rows would enter one number."""


class NotAllowedError(StoreError):
    """The role of a person does not permit this."""


class SignInError(StoreError):
    """Sign-in is refused; `wait_s` is the time until the next attempt is accepted."""

    wait_s: float = 0.0


class UncertifiedReviewerError(StoreError):
    """A batch requires a certificate that this reviewer lacks; the message names the remedy."""


class JudgeRunError(CalibrationError):
    """A judge cannot be run, or its run had to end; the message says why and what helps."""


class PlatformError(CalibrationError):
    """A platform of traces does not answer as asked; `status` is that of its answer, if any."""

    status: int | None = None
