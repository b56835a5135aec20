"""The default taxonomy, and the counting of runs bound to it, for tests about something else."""

from functools import partial

from calibration.success_rate import runs
from calibration.taxonomy import default_taxonomy

TAXONOMY = default_taxonomy()
OUTCOMES, CREDIT = TAXONOMY.names, TAXONOMY.credits
count_runs = partial(runs.count_runs, taxonomy=TAXONOMY)
counts_of_frame = partial(runs.counts_of_frame, taxonomy=TAXONOMY)
