"""Counts on the real benchmark files, where the folder that holds them is at hand."""

import json
import os
from pathlib import Path

import pytest

from calibration.analyses.trace_files import read_files
from calibration.trace_formats import ImportSettings, preview, read_traces
from tests.trace_formats.conftest import runs_of

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

    def test_costs_of_langfuse_and_langsmith_are_the_totals_of_their_traces() -> None:
        read = read_files([TRACES / "langfuse", TRACES / "langsmith"], ImportSettings())
        found = {item.trace.source_id: item.trace.cost_usd for item in runs_of(read)}
        assert (len(found), read.preview.costs_known, len(read.set_aside)) == (15, 11, 1)
        assert found["root-uuid-1234"] == 0.4614
        for file in (TRACES / "langfuse").glob("*.json"):
            page = json.loads(file.read_text())
            spans = {row["id"]: row for row in page["observations"] if row["totalCost"]}
            around = {row["parentObservationId"] for row in spans.values()}
            leaves = [row["totalCost"] for own, row in spans.items() if own not in around]
            assert found[page["trace"]["id"]] == pytest.approx(sum(leaves), abs=1e-15)

    def test_spans_of_opentelemetry() -> None:
        folder = TRACES / "openinference"
        read = read_files([folder, folder / "openinference-genai"], ImportSettings())
        assert (len(runs_of(read)), len(read.set_aside), read.preview.costs_known) == (12, 3, 0)
        assert all("no run of an agent" in row.reason for row in read.set_aside)
