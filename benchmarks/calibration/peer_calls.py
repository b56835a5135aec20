"""Time ppi_py on arrays from a file; runs in an environment that has it and not us.

`python peer_calls.py ARRAYS.npz REPEATS` prints one JSON object: versions, value, limits, seconds.
"""

import json
import sys
import time
from importlib import import_module
from importlib.metadata import version

import numpy as np


def main() -> None:
    """Time the PPI++ mean and its interval."""
    arrays, repeats = np.load(sys.argv[1]), int(sys.argv[2])
    module = import_module("ppi_py")
    data = arrays["scores"], arrays["proxies"], arrays["unlabelled"]
    module.ppi_mean_ci(*data, alpha=0.05)  # warms up, as ours does
    seconds = []
    for _ in range(repeats):
        began = time.perf_counter()
        limits = module.ppi_mean_ci(*data, alpha=0.05)
        seconds.append(time.perf_counter() - began)
    found = {
        "versions": {name: version(name) for name in ("ppi-python", "numpy")},
        "limits": [float(np.ravel(limit)[0]) for limit in limits],
        "seconds": seconds,
    }
    sys.stdout.write(json.dumps(found) + "\n")


if __name__ == "__main__":
    main()
