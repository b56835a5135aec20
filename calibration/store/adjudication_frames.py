"""The adjudications of a trace or a batch, as frames."""

import pandas as pd

from calibration.store.adjudication import COUNTED, REOPENED
from calibration.store.database import Database

_COLUMNS = (
    "event_id::VARCHAR AS event_id, kind, taxonomy_version, batch_id, adjudicator, blind_outcome, "
    "blind, outcome, question, cause, rationale, own_label, (SELECT to_json(list("
    "{'reviewer_id': e.reviewer_id, 'outcome': e.outcome} ORDER BY e.seq)) FROM label_event e "
    "WHERE list_contains(c.label_events, e.event_id)) AS labels, simulated, created_at"
)


def consensus_history(db: Database, trace_id: str) -> pd.DataFrame:
    """Return every adjudication and withdrawal of a trace, oldest first.

    Columns: event_id, kind, taxonomy_version, batch_id, adjudicator, blind_outcome, blind,
    outcome, question, cause, rationale, own_label, labels (JSON text: reviewer_id and outcome of
    the settled labels, as they stood), simulated, created_at.
    """
    with db.read() as cursor:
        return cursor.execute(
            f"SELECT {_COLUMNS} FROM adjudication_event c WHERE trace_id = ? ORDER BY seq",
            [trace_id],
        ).df()


def adjudication_frame(db: Database, version: str, batch_id: str) -> pd.DataFrame:
    """Return the consensus that stands of each trace of a batch, newest first.

    Columns: trace_id, those of `consensus_history`, and reopened: the labels that it settled are
    others by now. It stays consensus until the lead decides again.
    """
    with db.read() as cursor:
        return cursor.execute(
            f"WITH counted AS {COUNTED} SELECT trace_id, {_COLUMNS}, {REOPENED} AS reopened "
            "FROM consensus c WHERE taxonomy_version = $version AND trace_id IN "
            "(SELECT trace_id FROM batch_item WHERE batch_id = $batch) ORDER BY seq DESC",
            {"batch": batch_id, "version": version},
        ).df()
