"""Time one package on ratings from a file; runs in an environment that has it and not us.

`python peer_calls.py PACKAGE CODES.npy REPEATS` prints one JSON object: versions, and for each
call its value and seconds. What a call needs is made before the clock runs.
"""

import json
import sys
import time
from collections.abc import Callable
from importlib import import_module
from importlib.metadata import version
from typing import Any

import numpy as np

CLASSES = 5
Call = tuple[Callable[[], Any], Callable[[Any], float]]


def itself(value: Any) -> float:
    """Return a value that is the coefficient."""
    return float(value)


def of_krippendorff(codes: Any) -> dict[str, Call]:
    """Alpha from the ratings, and from counts that are there already."""
    alpha = import_module("krippendorff").alpha
    table = np.where(codes < 0, np.nan, codes).T.copy()
    counts = np.stack([(codes == k).sum(axis=1) for k in range(CLASSES)], axis=1)
    return {
        "alpha": (
            lambda: alpha(reliability_data=table, level_of_measurement="nominal"),
            itself,
        ),
        "alpha of value_counts": (
            lambda: alpha(value_counts=counts, level_of_measurement="nominal"),
            itself,
        ),
    }


def of_nltk(codes: Any) -> dict[str, Call]:
    """Alpha of a task that is there already; making it takes longer than that."""
    task = import_module("nltk.metrics.agreement").AnnotationTask
    rows, columns = np.nonzero(codes >= 0)
    triples = list(zip(columns.tolist(), rows.tolist(), codes[rows, columns].tolist(), strict=True))
    made = task(data=triples)
    return {
        "alpha": (made.alpha, itself),
        "alpha with AnnotationTask(...)": (lambda: task(data=triples).alpha(), itself),
    }


def of_statsmodels(codes: Any) -> dict[str, Call]:
    """Fleiss' kappa: for complete data only, a missing rating becomes a class without a word."""
    if (codes < 0).any():
        raise ValueError("complete data only")
    module = import_module("statsmodels.stats.inter_rater")
    return {
        "Fleiss' kappa": (lambda: module.fleiss_kappa(module.aggregate_raters(codes)[0]), itself)
    }


def of_irrcac(codes: Any) -> dict[str, Call]:
    """Each coefficient with its interval."""
    frame = import_module("pandas").DataFrame(np.where(codes < 0, np.nan, codes))
    made = import_module("irrCAC.raw").CAC(
        frame, categories=[float(k) for k in range(CLASSES)], digits=15
    )

    def value(result: Any) -> float:
        return float(result["est"]["coefficient_value"])

    return {
        "alpha": (made.krippendorff, value),
        "AC1": (made.gwet, value),
        "Fleiss' kappa": (made.fleiss, value),
        "Brennan-Prediger": (made.bp, value),
    }


PACKAGES = {
    "krippendorff": of_krippendorff,
    "nltk": of_nltk,
    "statsmodels": of_statsmodels,
    "irrCAC": of_irrcac,
}


def main() -> None:
    """Time every call."""
    package, path, repeats = sys.argv[1], sys.argv[2], int(sys.argv[3])
    found = {}
    for name, (call, value) in PACKAGES[package](np.load(path)).items():
        call()  # warms up, as ours does
        seconds = []
        for _ in range(repeats):
            began = time.perf_counter()
            result = call()
            seconds.append(time.perf_counter() - began)
        found[name] = {"value": value(result), "seconds": seconds}
    used = {name: version(name) for name in (package, "numpy")}
    sys.stdout.write(json.dumps({"versions": used, "calls": found}) + "\n")


if __name__ == "__main__":
    main()
