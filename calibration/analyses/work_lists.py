"""Work lists as CSV: every run that somebody should look at, safe to open in a spreadsheet."""

from collections.abc import Sequence
from pathlib import Path

import pandas as pd

from calibration.analyses.production_reading import with_ceilings
from calibration.analyses.report_options import ReportOptions
from calibration.analyses.report_parts import GOES_TO
from calibration.analyses.rows import as_csv
from calibration.production.listing import Reading, list_runs
from calibration.production.places import Place, place_of
from calibration.taxonomy import Taxonomy, default_taxonomy

COLUMNS = (
    "trace_id", "workflow", "week", "started_at", "model", "task_id", "cost_usd", "latency_s",
)  # fmt: skip
OURS = {"at": "started_at", "task": "task_id", "cost": "cost_usd", "latency": "latency_s"}


def write_work_lists(
    paths: Place | Sequence[str],
    folder: Path,
    *,
    options: ReportOptions,
    taxonomy: Taxonomy | None = None,
) -> list[Path]:
    """Write one CSV file for each class that somebody looks at, oldest run first.

    A text that a spreadsheet would run as a formula gets a quote in front.

    Returns
    -------
    list of Path
        The files.
    """
    since, until = options.window
    reading = Reading(
        taxonomy=with_ceilings(taxonomy or default_taxonomy(), options.ceilings),
        columns=dict(options.columns),
        known_workflows_only=not options.any_workflow,
        timezone=options.timezone,
        since=since,
        until=until,
    )
    with place_of(paths).open() as source:
        listed = list_runs(source, reading, outcomes=tuple(GOES_TO))
    folder.mkdir(parents=True, exist_ok=True)
    written = []
    for outcome in GOES_TO:
        file = folder / f"{outcome}.csv"
        own = listed[listed["outcome"] == outcome]
        file.write_text(work_list_csv(own), encoding="utf-8", newline="")
        written.append(file)
    return written


def work_list_csv(listed: pd.DataFrame) -> str:
    """Return listed runs as CSV."""
    times = pd.to_datetime(listed["at"], utc=True).dt.strftime("%Y-%m-%dT%H:%M:%SZ")
    frame = listed.assign(at=times).rename(columns=OURS)[list(COLUMNS)]
    clean = frame.astype(object).where(frame.notna(), None)
    return as_csv(
        COLUMNS, ({str(k): v for k, v in row.items()} for row in clean.to_dict("records"))
    )
