"""The DuckDB store: the only place with SQL on labels."""

from calibration.store.batches import Batch, Queue
from calibration.store.labels import LabelReceipt
from calibration.store.store import Store
from calibration.store.traces import IngestResult
from calibration.store.verdicts import VerdictsStored

__all__ = ["Batch", "IngestResult", "LabelReceipt", "Queue", "Store", "VerdictsStored"]
