"""Digests of what a result was made of: rows, settings, and the version of this package.

Apart from the data of a calibration: a report on files has digests and no labels.
"""

import hashlib
import json
from collections.abc import Mapping
from importlib.metadata import version
from typing import Any

import numpy as np
import pandas as pd

# Digits of sums in a digest; far more than the order of adding moves, far less than a digit.
DIGITS, HALF = 6, 1e-11


def fingerprint(*, taxonomy: str, settings: dict[str, Any], **frames: pd.DataFrame) -> str:
    """Return the SHA-256 over inputs (values and order), taxonomy, settings, package version."""
    digest = hashlib.sha256()
    head = {"taxonomy": taxonomy, "settings": settings, "version": package_version()}
    digest.update(json.dumps(head, sort_keys=True, default=str).encode())
    _add(digest, frames)
    return digest.hexdigest()


def frames_digest(frames: Mapping[str, pd.DataFrame]) -> str:
    """Return the SHA-256 over the rows of frames, by value and in order."""
    digest = hashlib.sha256()
    _add(digest, frames)
    return digest.hexdigest()


def rounded_sums(frame: pd.DataFrame) -> pd.DataFrame:
    """Return a frame with its sums rounded, so that the order of adding does not show.

    Costs have few decimals, so that their means end in a half of the last digit: what decides it
    would be the order in which threads added them. A little is added before such a half.

    Examples
    --------
    >>> sums = [0.2594625 - 1e-16, 0.2594625 + 1e-16]
    >>> rounded_sums(pd.DataFrame({"mean": sums}))["mean"].tolist()
    [0.259463, 0.259463]
    """
    amounts = frame.select_dtypes("float")
    return frame.assign(**{str(name): amounts[name] + HALF for name in amounts}).round(DIGITS)


def settings_digest(data: Mapping[str, Any]) -> str:
    """Return the SHA-256 over plain data."""
    return hashlib.sha256(json.dumps(data, sort_keys=True).encode()).hexdigest()


def package_version() -> str:
    """Return the version of this package."""
    return version("asr-calibration")


def _add(digest: "hashlib._Hash", frames: Mapping[str, pd.DataFrame]) -> None:
    for name in sorted(frames):
        digest.update(name.encode())
        hashes = pd.util.hash_pandas_object(frames[name], index=False).to_numpy(np.uint64)
        digest.update(hashes.tobytes())
