"""Gates of several conditions: the judge, the comparison with a baseline, the cost."""

from dataclasses import replace

from calibration.estimates import Estimate
from calibration.gates.held import ROUNDING, Found, held, part_of, together
from calibration.gates.measurements import Measurements
from calibration.gates.results import Part, Status
from calibration.gates.settings import Setting

ONE_SIDED = 0.95


def of_judge(gate: Setting, measured: Measurements) -> Found:
    """Hold a judge against everything that an always-pass judge would fail."""
    numbers = gate.numbers
    least = int(numbers["minimum_labels"])
    rule = (
        f"agreement >= {numbers['agreement']:g}, kappa >= {numbers['kappa']:g} with lower limit "
        f">= {numbers['kappa_lower']:g}, recall >= {numbers['recall']:g} of every class with "
        f"{least} labels"
    )
    judge = measured.judge
    if judge is None:
        return Found(status="skipped", rule=rule)
    aware = gate.interval_aware
    parts = [
        part_of("agreement", judge.agreement, numbers["agreement"], aware),
        part_of("kappa", judge.kappa, numbers["kappa"], aware),
        _kappa_lower(judge.kappa, numbers["kappa_lower"]),
    ]
    for name, recall in judge.recall.items():
        if recall.n >= least:
            parts.append(part_of(f"recall of {name}", recall, numbers["recall"], aware))
    few = [f"{name} ({recall.n})" for name, recall in judge.recall.items() if recall.n < least]
    status, why = together(parts)
    if few:
        why = "; ".join(filter(None, [why, f"too few labels to check {', '.join(few)}"]))
    return Found(
        status=status, rule=rule, why=why, value=judge.kappa.value,
        interval=judge.kappa.interval, threshold=numbers["kappa"], n=judge.n,
        method=f"kappa, {judge.kappa.method}", parts=tuple(parts),
    )  # fmt: skip


def _kappa_lower(kappa: Estimate, threshold: float) -> Part:
    """Hold the lower limit, which is an interval's whatever the mode."""
    low = None if kappa.interval is None else kappa.interval[0]
    status: Status = "not_estimable"
    if low is not None:
        status = "pass" if low >= threshold - ROUNDING else "fail"
    return Part(
        name="lower limit of kappa", status=status, value=low, interval=None,
        rule=f">= {threshold:g}", n=kappa.n, why=kappa.status if low is None else "",
    )  # fmt: skip


def of_non_inferior(gate: Setting, measured: Measurements) -> Found:
    """Ask whether the rate is shown to be no worse than the baseline less the margin."""
    margin = gate.numbers["margin_pp"] / 100
    rule = f"ASR lower limit (one-sided {100 * ONE_SIDED:g} %) above baseline - {100 * margin:g} pp"
    change = measured.changes.get("asr")
    if change is None:
        return Found(status="skipped", rule=rule, threshold=-margin)
    estimate, lower = change.estimate, change.lower
    if lower is None:
        status: Status = "not_estimable"
        why = estimate.status.removeprefix("not_estimable: ")
    elif lower > -margin - ROUNDING:
        status, why = "pass", f"lower limit {100 * lower:+.1f} pp"
    else:
        status, why = "fail", f"not shown: lower limit {100 * lower:+.1f} pp"
        upper = None if estimate.interval is None else estimate.interval[1]
        if gate.interval_aware and upper is not None and upper >= -margin:
            status, why = "pass", f"{why}, but not shown to be inferior either"
    return Found(
        status=status, rule=rule, why="; ".join(filter(None, [why, change.note])),
        value=estimate.value, interval=estimate.interval, threshold=-margin, n=estimate.n,
        method=estimate.method,
    )  # fmt: skip


def of_regression(gate: Setting, measured: Measurements, confidence_level: float) -> Found:
    """Ask whether pass@1 dropped, over all tasks and in any category."""
    drop = gate.numbers["max_drop_pp"] / 100
    rule = f"pass@1 not more than {100 * drop:g} pp below the baseline"
    change = measured.changes.get("pass_at_1")
    if change is None:
        return Found(status="skipped", rule=rule, threshold=-drop)
    estimate = change.estimate
    status, why = held(estimate, -drop, at_least=True, interval_aware=gate.interval_aware)
    parts = _categories(measured, drop, 1 - confidence_level)
    worse = [part.name for part in parts if part.status == "fail"]
    if worse:
        shown = ", ".join(worse[:5]) + (f" and {len(worse) - 5} more" if worse[5:] else "")
        status, why = "fail", "; ".join(filter(None, [why, f"category {shown} (Holm)"]))
    return Found(
        status=status, rule=rule, why="; ".join(filter(None, [why, change.note])),
        value=estimate.value, interval=estimate.interval, threshold=-drop, n=estimate.n,
        method=estimate.method, parts=parts,
    )  # fmt: skip


def _categories(measured: Measurements, drop: float, alpha: float) -> tuple[Part, ...]:
    """Fail the categories that are shown to have dropped by more, at `alpha` over all (Holm).

    A category that cannot be tested neither fails nor passes: the gate rests on all tasks.
    """
    p_values = {name: change.p_below for name, change in measured.by_category.items()}
    tested = sorted((p, name) for name, p in p_values.items() if p is not None)
    rejected: set[str] = set()
    for rank, (smallest, name) in enumerate(tested):
        if smallest > alpha / (len(tested) - rank):
            break
        rejected.add(name)
    parts = []
    for name, change in measured.by_category.items():
        p, estimate = p_values[name], change.estimate
        status: Status = "not_estimable" if p is None else "fail" if name in rejected else "pass"
        why = estimate.status.removeprefix("not_estimable: ") if p is None else f"p = {p:.2g}"
        parts.append(
            Part(
                name=name, status=status, value=estimate.value, interval=estimate.interval,
                rule=f">= {-100 * drop:g} pp (Holm)", n=estimate.n, why=why,
            )
        )  # fmt: skip
    return tuple(parts)


def of_cost(gate: Setting, measured: Measurements) -> Found:
    """Hold every workflow against its ceiling, and the share of runs above theirs."""
    most, least = gate.numbers["max_share_over"], gate.numbers["minimum_coverage"]
    rule = f"mean per unit <= ceiling in every workflow, <= {100 * most:g} % of runs above"
    cost = measured.cost
    if cost is None:
        return Found(status="skipped", rule=rule, threshold=most)
    parts = [part_of("runs above their ceiling", cost.share_over, most, gate.interval_aware,
                   at_least=False)]  # fmt: skip
    for flow in cost.workflows:
        mean, coverage = flow.mean_per_unit, flow.n_known / flow.n if flow.n else 0.0
        if flow.ceiling is None:
            part = Part(
                name=flow.name, status="not_estimable", value=mean.value, interval=mean.interval,
                rule="<= ceiling", n=flow.n_known,
                why="no ceiling: set one, for files under [ceilings]",
            )  # fmt: skip
        else:
            part = part_of(flow.name, mean, flow.ceiling, gate.interval_aware, at_least=False)
        # What is cheap among the runs that say what they cost proves nothing of the others.
        if coverage < least - ROUNDING and part.status == "pass":
            why = f"cost known of {flow.n_known:,} of {flow.n:,} runs, {100 * least:g} % are needed"
            part = replace(part, status="not_estimable", why=why)
        parts.append(part)
    status, why = together(parts)
    share = cost.share_over
    return Found(
        status=status, rule=rule, why=why, value=share.value, interval=share.interval,
        threshold=most, n=share.n, method=share.method, parts=tuple(parts),
    )  # fmt: skip
