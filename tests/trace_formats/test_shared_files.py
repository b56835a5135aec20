"""Counts on the real benchmark files, where the folder that holds them is at hand."""

import os
from pathlib import Path

from calibration.trace_formats import preview, read_traces

if "ASR_SHARED" in os.environ:
    TRACES = Path(os.environ["ASR_SHARED"]) / "data" / "traces"

    def test_every_run_of_the_benchmark_files_is_taken_in() -> None:
        tau = preview(read_traces(TRACES / "tau-bench" / "gpt-4o-airline.json"))
        assert (tau.n_traces, tau.n_set_aside, tau.n_tasks, tau.costs_known) == (200, 0, 50, 0)
        assert (tau.n_verdicts, tau.workflows) == (200, {"airline": 200})
        files = sorted((TRACES / "tau2-bench").glob("*.json"))
        tau2 = preview(item for file in files for item in read_traces(file))
        assert (tau2.n_traces, tau2.n_set_aside, tau2.costs_known) == (134, 0, 134)
        assert tau2.n_verdicts == 134
