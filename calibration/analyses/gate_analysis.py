"""What came of the gates on one set of runs, as reports take it."""

from dataclasses import dataclass

from calibration.analyses.asr_report import LeftOut
from calibration.analyses.gate_comparable import Comparable
from calibration.estimates import Estimate
from calibration.gates.results import GateReport
from calibration.gates.settings import GateFile
from calibration.metrics.asr import AgentSuccessRate


@dataclass(frozen=True, slots=True, kw_only=True)
class GateAnalysis:
    """The gates of one set of runs, and everything a report on them names.

    Parameters
    ----------
    report : GateReport
    settings : GateFile
    asr : Estimate
        The rate that is gated.
    rates : AgentSuccessRate
        Everything it splits into; of a store, of the labelled sample.
    calibrated : bool
        Whether `asr` is corrected for the errors of a judge.
    kind : str
        What it is, in words.
    n_runs, n_tasks : int
    notes, marks : tuple of str
        What must be said, and what before everything else.
    set_aside : tuple of LeftOut
        Rows that do not count, by reason.
    baseline : Comparable or None
        What was compared with.
    comparable : Comparable or None
        What later runs may be compared with; None of a store.
    """

    report: GateReport
    settings: GateFile
    asr: Estimate
    rates: AgentSuccessRate
    calibrated: bool
    kind: str
    n_runs: int
    n_tasks: int
    notes: tuple[str, ...]
    marks: tuple[str, ...]
    set_aside: tuple[LeftOut, ...]
    baseline: Comparable | None
    comparable: Comparable | None
    taxonomy_version: str
    taxonomy_fingerprint: str
    seed: int
    fingerprint: str
