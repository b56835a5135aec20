"""The DuckDB store: the only place with SQL on labels."""

from calibration.store.addresses import is_loopback
from calibration.store.batches import Batch
from calibration.store.handover import make_way
from calibration.store.interface.roles import ranks
from calibration.store.keeper import Keeper
from calibration.store.label_checks import check_sub_goals, clean_tags
from calibration.store.label_import import LabelsStored, import_token
from calibration.store.labels import LabelReceipt
from calibration.store.own_labels import OwnLabel
from calibration.store.passphrases import generated_passphrase
from calibration.store.people import reviewer_id_of
from calibration.store.queue import Queue
from calibration.store.remote import RemoteStore
from calibration.store.selection import SORTED_BY, TraceFacets
from calibration.store.settling import Settlement
from calibration.store.sign_in import IDENTITIES, Access
from calibration.store.store import Store
from calibration.store.trace_filter import CLASSES, UNLABELLED, TraceFilter
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
