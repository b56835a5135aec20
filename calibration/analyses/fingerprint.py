"""The fingerprint that ties a result to everything it was made from."""

import hashlib
import json
from importlib.metadata import version
from typing import Any

import numpy as np
import pandas as pd


def fingerprint(*, taxonomy: str, settings: dict[str, Any], **frames: pd.DataFrame) -> str:
    """Return the SHA-256 over inputs, taxonomy, settings and package version.

    Frames are hashed by value and in order: the same rows give the same fingerprint.
    """
    digest = hashlib.sha256()
    head = {"taxonomy": taxonomy, "settings": settings, "version": version("asr-calibration")}
    digest.update(json.dumps(head, sort_keys=True, default=str).encode())
    for name in sorted(frames):
        digest.update(name.encode())
        hashes = pd.util.hash_pandas_object(frames[name], index=False).to_numpy(np.uint64)
        digest.update(hashes.tobytes())
    return digest.hexdigest()
