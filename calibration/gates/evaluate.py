"""Hold what was measured against the thresholds. Pure: measurements in, results out."""

from dataclasses import replace

from calibration.estimates import Estimate
from calibration.gates.composed import of_cost, of_judge, of_non_inferior, of_regression
from calibration.gates.held import ROUNDING, Found, held
from calibration.gates.measurements import Events, Measurements
from calibration.gates.results import GateReport, GateResult, Status
from calibration.gates.settings import GateFile, Setting

NOT_RECORDED = {
    "loops": "no column 'loops': record the runs that repeat a call three times",
    "data_corruption": "neither a tag data_corruption nor a state grader was recorded",
    "human_review": "no reviewed transcripts: give human labels",
    "judge": "no human labels to hold the judge against",
    "non_inferior": "no baseline: give --baseline",
    "regression": "no baseline: give --baseline",
    "latency_p95": "no latency was recorded",
    "cost": "no cost was recorded",
}


def evaluate(measured: Measurements, gates: GateFile) -> GateReport:
    """Decide every gate.

    A must gate without a result, skipped or not estimable, fails the run unless it has
    `allow_skipped`: what was not measured was not passed.

    Parameters
    ----------
    measured : Measurements
        What is missing there is `skipped`.
    gates : GateFile
        Thresholds and levels.

    Returns
    -------
    GateReport
        Every gate in the order of the file.

    Examples
    --------
    >>> from calibration.gates.settings import default_gates
    >>> report = evaluate(Measurements(), default_gates())
    >>> {gate.status for gate in report.gates}, report.exit_code
    ({'skipped'}, 1)
    """
    results = []
    for gate in gates.gates:
        found = _decide(gate, measured, gates.confidence_level)
        missing = found.status in ("skipped", "not_estimable")
        blocks = gate.level == "must" and (
            found.status == "fail" or (missing and not gate.allow_skipped)
        )
        results.append(
            GateResult(
                name=gate.name, level=gate.level, status=found.status, value=found.value,
                interval=found.interval, threshold=found.threshold, rule=found.rule, n=found.n,
                method=found.method, why=found.why, blocks=blocks, parts=found.parts,
            )
        )  # fmt: skip
    return GateReport(gates=tuple(results), confidence_level=gates.confidence_level)


def _decide(gate: Setting, measured: Measurements, confidence_level: float) -> Found:
    match gate.metric:
        case "pass_at" | "pass_hat" | "asr":
            found = _rate(gate, measured.rates.get(gate.name), at_least=True)
        case "latency_p95":
            found = _rate(gate, measured.rates.get(gate.name), at_least=False, unit=" s")
        case "loops" | "data_corruption":
            found = _events(gate, measured.events.get(gate.name), confidence_level)
        case "human_review":
            found = _review(gate, measured.review)
        case "judge":
            found = of_judge(gate, measured)
        case "non_inferior":
            found = of_non_inferior(gate, measured)
        case "regression":
            found = of_regression(gate, measured, confidence_level)
        case _:
            found = of_cost(gate, measured)
    if found.status != "skipped":
        return found
    why = measured.why_not.get(gate.name) or NOT_RECORDED.get(gate.metric, "not measured")
    return replace(found, why=why)


def _rate(gate: Setting, estimate: Estimate | None, *, at_least: bool, unit: str = "") -> Found:
    threshold = gate.numbers["threshold"]
    # Latency is strictly below its threshold; a rate may equal its own.
    rule = f"{'>=' if at_least else '<'} {threshold:g}{unit}"
    if estimate is None:
        return Found(status="skipped", rule=rule, threshold=threshold)
    status, why = held(estimate, threshold, at_least=at_least, interval_aware=gate.interval_aware)
    if status == "pass" and not at_least and estimate.value == threshold and not why:
        status = "fail"
    return Found(
        status=status, rule=rule, why=why, value=estimate.value, interval=estimate.interval,
        threshold=threshold, n=estimate.n, method=estimate.method,
    )  # fmt: skip


def _events(gate: Setting, events: Events | None, confidence_level: float) -> Found:
    threshold, most = gate.numbers["threshold"], gate.numbers["max_upper"]
    rule = f"<= {threshold:g} of runs" + (f", upper limit <= {most:g}" if most < 1 else "")
    if events is None or not events.n:
        return Found(status="skipped", rule=rule, threshold=threshold)
    share, interval = events.count / events.n, events.interval(confidence_level)
    over = (interval[0] if gate.interval_aware else share) > threshold + ROUNDING
    why = f"{events.count:,} of {events.n:,} runs; exact upper limit {100 * interval[1]:.2g} %"
    if not events.count and events.n_tasks < events.n:
        by_task = events.bound_by_task(confidence_level)
        why += f", {100 * by_task:.2g} % when the runs of a task count once"
    status: Status = "fail" if over else "pass"
    if not over and interval[1] > most:
        status, why = "not_estimable", f"{why}: more runs are needed to show {100 * most:g} %"
    return Found(
        status=status, rule=rule, why=why, value=share, interval=interval, threshold=threshold,
        n=events.n, method="exact, independent runs",
    )  # fmt: skip


def _review(gate: Setting, review: Estimate | None) -> Found:
    threshold, least = gate.numbers["threshold"], int(gate.numbers["minimum_n"])
    rule = f">= {threshold:g} of at least {least} transcripts"
    if review is None:
        return Found(status="skipped", rule=rule, threshold=threshold)
    status, why = held(review, threshold, at_least=True, interval_aware=gate.interval_aware)
    if review.n < least:
        status, why = "not_estimable", f"{review.n} reviewed, {least} are needed: review more"
    return Found(
        status=status, rule=rule, why=why, value=review.value, interval=review.interval,
        threshold=threshold, n=review.n, method=review.method,
    )  # fmt: skip
