"""All cases: their modules add them to the list."""

from tests.hostile import (  # noqa: F401
    benchmark_files,
    bytes_and_places,
    log_files,
    span_files,
    tables_and_options,
    toml_files,
    trace_records,
)
from tests.hostile.case import CASES

__all__ = ["CASES"]
