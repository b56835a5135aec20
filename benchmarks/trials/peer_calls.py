"""Time scorio on trials from a file; runs in an environment that has it and not us.

`python peer_calls.py TRIALS.npy K REPEATS` prints one JSON object: versions, seconds of each run
over all k, and the values.
"""

import json
import sys
import time
from importlib import import_module
from importlib.metadata import version

import numpy as np


def main() -> None:
    """Print what scorio says and how long it takes."""
    results, most, repeats = np.load(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3])
    of = import_module("scorio").eval
    ks = range(1, most + 1)
    found = {}
    for name, call in (("pass@k", of.pass_at_k), ("pass^k", of.pass_hat_k)):
        seconds, values = [], []
        for _ in range(repeats):
            start = time.perf_counter()
            values = [float(call(results, k)) for k in ks]
            seconds.append(time.perf_counter() - start)
        found[name] = {"seconds": seconds, "values": values}
    versions = {name: version(name) for name in ("scorio", "numpy")}
    sys.stdout.write(json.dumps({"versions": versions, "calls": found}))


if __name__ == "__main__":
    main()
