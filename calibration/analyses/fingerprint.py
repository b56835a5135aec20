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
