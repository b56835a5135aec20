"""Errors that the command line and the app turn into a sentence for the user.

A bad argument of a library function raises `ValueError`. What the data cannot support is
no error but a result with a `not_estimable` status (see `calibration.statistics.estimate`).
"""


class CalibrationError(Exception):
    """Base of every error that a user can act on; the message says what to do."""


class InputError(CalibrationError):
    """A file, field or option is not what the command needs (exit code 2)."""


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
    """The role of a person does not allow this."""


class SignInError(StoreError):
    """Somebody is not let in; `wait_s` is for how long no further attempt is taken."""

    wait_s: float = 0.0


class UncertifiedReviewerError(StoreError):
    """A batch asks for a certificate that this reviewer does not have; the message says how."""
