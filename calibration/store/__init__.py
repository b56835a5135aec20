"""The DuckDB store: the only place with SQL on labels.

`database` is the file with its lock, `schema` its tables and their upgrades, `files` what lies
beside it; `backup` and `doctor` keep it safe; `people`, `sign_in`, `provider_links` and
`certification` say who may do what; `traces` and `batches` hold what is labelled, `trace_search`
finds it, `trace_record` is all about one of it; `judges` are versions that we run; `queue` and
`leases` give it out; `labels` and `adjudication` are the events. `store` is all of it as other
modules use it.
"""

from calibration.store.adjudication import Settlement
from calibration.store.batches import Batch
from calibration.store.labels import (
    MAX_TEXT,
    Receipt,
    check_sub_goals,
    check_violations,
    clean_tags,
    import_token,
    marked_violations,
)
from calibration.store.people import ranks, reviewer_id_of
from calibration.store.provider_links import Claims
from calibration.store.queue import Queue
from calibration.store.sign_in import IDENTITIES, Access, generated_passphrase, is_loopback
from calibration.store.store import Keeper, RemoteStore, Store, make_way
from calibration.store.trace_record import TraceFacts
from calibration.store.trace_search import (
    SORTED_BY,
    UNLABELLED,
    SavedView,
    TraceFacets,
    TraceFilter,
    label_states,
    parse_search,
    search_terms,
)
from calibration.store.traces import ImportResult, PreparedTraces

__all__ = [
    "IDENTITIES",
    "MAX_TEXT",
    "SORTED_BY",
    "UNLABELLED",
    "Access",
    "Batch",
    "Claims",
    "ImportResult",
    "Keeper",
    "PreparedTraces",
    "Queue",
    "Receipt",
    "RemoteStore",
    "SavedView",
    "Settlement",
    "Store",
    "TraceFacets",
    "TraceFacts",
    "TraceFilter",
    "check_sub_goals",
    "check_violations",
    "clean_tags",
    "generated_passphrase",
    "import_token",
    "is_loopback",
    "label_states",
    "make_way",
    "marked_violations",
    "parse_search",
    "ranks",
    "reviewer_id_of",
    "search_terms",
]
