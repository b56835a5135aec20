"""The DuckDB store: the only place with SQL on labels."""

from calibration.store.adjudication import Settlement
from calibration.store.batches import Batch
from calibration.store.labels import (
    LabelReceipt,
    LabelsStored,
    OwnLabel,
    check_sub_goals,
    clean_tags,
    import_token,
)
from calibration.store.people import reviewer_id_of
from calibration.store.permissions import ranks
from calibration.store.queue import Queue
from calibration.store.remote import RemoteStore
from calibration.store.sharing import Keeper, make_way
from calibration.store.sign_in import IDENTITIES, Access, generated_passphrase, is_loopback
from calibration.store.store import Store
from calibration.store.trace_search import CLASSES, SORTED_BY, UNLABELLED, TraceFacets, TraceFilter
from calibration.store.traces import IngestResult
from calibration.store.verdicts import VerdictsStored

__all__ = [
    "CLASSES",
    "IDENTITIES",
    "SORTED_BY",
    "UNLABELLED",
    "Access",
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
    "generated_passphrase",
    "import_token",
    "is_loopback",
    "make_way",
    "ranks",
    "reviewer_id_of",
]
