"""Whole stores as files: the demo, built once by whoever needs it first, and copies."""

import os
import shutil
from pathlib import Path

from argon2 import PasswordHasher

from calibration.analyses.demo import build_demo
from calibration.store import Store
from calibration.store.sign_in import Hashes
from calibration.store.traces import parts_directory

NAME = "demo.duckdb"
QUICK = Hashes(PasswordHasher(time_cost=1, memory_cost=64, parallelism=1))


def hashing_quickly(store: Store) -> Store:
    """Let a store hash with little effort, where it is no matter how hard guessing is."""
    store.hashes = QUICK
    return store


def copy_store(store: Path, to: Path) -> Path:
    """Copy a closed store with the text of its traces."""
    shutil.copy(store, to)
    shutil.copytree(parts_directory(store), parts_directory(to))
    return to


def built_in(shared: Path, own: Path) -> Path:
    """Return the demo that lies in a folder of all processes; build it in an own one if none does.

    Of two that build it at the same time the later one keeps its own.
    """
    if not (shared / NAME).exists():
        with Store.open(own / NAME, create=True) as store:
            build_demo(store, seed=1)
        try:
            os.rename(own, shared)
        except OSError:
            return own / NAME
    return shared / NAME
