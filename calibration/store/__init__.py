"""The DuckDB store: the only place with SQL on labels."""

from calibration.store.batches import Batch, Queue
from calibration.store.handover import make_way
from calibration.store.keeper import Keeper
from calibration.store.label_checks import check_sub_goals, clean_tags
from calibration.store.label_import import LabelsStored, import_token
from calibration.store.labels import LabelReceipt
from calibration.store.own_labels import OwnLabel
from calibration.store.remote import RemoteStore
from calibration.store.selection import SORTED_BY, TraceFacets
from calibration.store.settling import Settlement
from calibration.store.store import Store
from calibration.store.trace_filter import CLASSES, UNLABELLED, TraceFilter
from calibration.store.traces import IngestResult
from calibration.store.verdicts import VerdictsStored

__all__ = [
    "CLASSES",
    "SORTED_BY",
    "UNLABELLED",
    "Batch",
    "IngestResult",
    "Keeper",
    "LabelReceipt",
    "LabelsStored",
    "OwnLabel",
    "Queue",
    "RemoteStore",
    "Settlement",
    "Store",
    "TraceFacets",
    "TraceFilter",
    "VerdictsStored",
    "check_sub_goals",
    "clean_tags",
    "import_token",
    "make_way",
]
