"""Results as text for a terminal; percent and rounding appear only here."""

from collections.abc import Iterable, Iterator, Sequence

from calibration.analyses.asr import AsrAnalysis, CostSummary
from calibration.analyses.importing import FilesRead, ImportReport
from calibration.analyses.selecting import TracePage, plain_rows
from calibration.estimates import OK, Estimate
from calibration.records import OUTCOMES
from calibration.taxonomy import Taxonomy

SIMULATED = "SIMULATED DATA: labels, verdicts and production runs are drawn at random."
CHOSEN = "  These traces were chosen, not drawn at random: this holds for them only."


def figure(result: Estimate, digits: int = 3) -> str:
    """Return value and interval of an estimate; its status goes elsewhere."""
    if result.value is None:
        return "not estimable"
    text = f"{result.value:.{digits}f}"
    if result.interval is not None:
        text += f" [{result.interval[0]:.{digits}f}, {result.interval[1]:.{digits}f}]"
    return text if result.status == OK else f"{text} +"


def number(result: Estimate, digits: int = 3) -> str:
    """Return value and interval of an estimate with its status, or why there is none."""
    if result.value is None:
        return result.status.replace("_", " ", 1)
    text = figure(result, digits).removesuffix(" +")
    return text if result.status == OK else f"{text}  ({result.status})"


def notes(named: Iterable[tuple[str, Estimate]]) -> Iterator[str]:
    """Yield what the `+` of a table stands for, each status once with the names it holds for."""
    by_status: dict[str, list[str]] = {}
    for name, result in named:
        if result.status != OK:
            by_status.setdefault(result.status.replace("_", " ", 1), []).append(name)
    for status, names in by_status.items():
        yield f"  + {', '.join(dict.fromkeys(names))}: {status}"


def percent(share: float | None) -> str:
    """Return a share as percent."""
    return "-" if share is None else f"{100 * share:.1f} %"


def usd(amount: float | None) -> str:
    """Return an amount of money."""
    return "-" if amount is None else f"${amount:.4f}" if amount < 0.1 else f"${amount:.2f}"


def table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> Iterator[str]:
    """Yield the lines of a table; the first column is left-aligned, the others right."""
    cells = [list(head), *[list(row) for row in rows]]
    widths = [max(len(row[k]) for row in cells) for k in range(len(head))]
    for row in cells:
        padded = [row[0].ljust(widths[0])]
        padded += [cell.rjust(width) for cell, width in zip(row[1:], widths[1:], strict=True)]
        yield "  " + "  ".join(padded).rstrip()


def preview(read: FilesRead) -> Iterator[str]:
    """Yield what an import would bring in."""
    found = read.preview
    formats = ", ".join(f"{n} {name}" for name, n in found.formats.items()) or "none"
    yield f"Traces        {found.n_traces} in {len(read.paths)} files ({formats})"
    yield f"Tasks         {found.n_tasks}"
    yield "Workflows     " + ", ".join(f"{name} ({n})" for name, n in found.workflows.items())
    yield f"Costs known   {found.costs_known} of {found.n_traces}"
    yield f"Grades        {found.n_verdicts} (kept as verdicts, hidden from reviewers)"
    missing = [f"{f.field} ({f.of - f.found} of {f.of})" for f in found.fields if f.found < f.of]
    yield "Complete      " + ", ".join(f.field for f in found.fields if f.found == f.of)
    yield "Missing       " + (", ".join(missing) or "nothing")
    yield f"Set aside     {found.n_set_aside}"
    if found.first is not None:
        first = found.first
        yield f"First trace   {first.trace_id}, {first.n_steps} steps: {first.prompt}"


def trace_list(found: TracePage) -> Iterator[str]:
    """Yield one page of a list of traces."""
    yield f"{found.n} traces, page {found.page} of {found.pages}"
    if not found.n:
        return
    head = ("trace", "workflow", "task", "trial", "status", "started", "class", "tools", "errors")
    names = (
        "trace_id", "workflow", "task_key", "trial", "status", "started_at", "class",
        "tool_calls", "tool_errors",
    )  # fmt: skip
    rows = []
    for row in plain_rows(found.traces):
        rows.append(
            [
                "-"
                if row[name] is None
                else f"{row[name]:.60}"
                if isinstance(row[name], str)
                else str(row[name])
                for name in names
            ]
        )
    yield from table(head, rows)


def import_report(report: ImportReport) -> Iterator[str]:
    """Yield what an import did."""
    yield (
        f"{report.imported} imported, {report.already_there} already there, {report.changed} "
        f"changed, {len(report.set_aside)} set aside, {report.verdicts} grades kept"
    )
    if report.possible_duplicates:
        yield f"{report.possible_duplicates} have the content of another trace, kept and marked"
    for row in report.set_aside:
        place = row.file if row.line is None else f"{row.file}, line {row.line}"
        yield f"  set aside: {place}: {row.reason}"


def exposed(n: int) -> str:
    """Say that labels were left out because they were not blind."""
    return f"{n:,} label{'s' * (n > 1)} left out: given after seeing what others said of the trace"


def confusion(
    row_names: Sequence[str], column_names: Sequence[str], counts: Sequence[Sequence[float]]
) -> Iterator[str]:
    """Yield a two-way table of counts; a trace whose reviewers differ counts in parts."""
    yield from table(
        ["", *column_names],
        [[name, *[f"{c:g}" for c in row]] for name, row in zip(row_names, counts, strict=True)],
    )


def asr(result: AsrAnalysis) -> Iterator[str]:
    """Yield the report on one batch."""
    if result.simulated:
        yield SIMULATED
    head = result.headline
    kind = "corrected for judge error" if result.calibrated else "human labels only, not calibrated"
    yield f"Agent success rate (ASR) {number(head)}  {kind}"
    yield f"  {100 * head.confidence_level:g} % {head.method}, n = {head.n:,}"
    yield (
        f"  {result.n_labelled} labelled of {result.n_production:,} traces "
        f"({result.design.get('kind', 'unknown design')}, batch {result.batch_id})"
    )
    yield ""
    three = _three(result)
    yield from table(
        ["", "net of cost", "gross"],
        [[name, figure(net), figure(gross)] for name, net, gross in three],
    )
    yield from notes((name, net) for name, net, _ in three)
    human = result.human_only
    yield (
        f"  human-only pass rate {number(human.pass_rate)}; without abandoned runs "
        f"{number(human.asr_without_abandoned)}"
    )
    yield f"  identity: net = gross - mean effective penalty ({human.mean_effective_penalty:.4f})"
    yield ""
    yield "Outcome shares" + (" (corrected)" if result.calibrated else " (labelled sample)")
    yield from table(
        ["class", "share", "credit"],
        [
            [name, figure(share), f"{result.credit[name]:g}"]
            for name, share in zip(OUTCOMES, result.class_shares, strict=True)
        ],
    )
    yield from notes(zip(OUTCOMES, result.class_shares, strict=True))
    yield ""
    yield from _costs(result)
    yield ""
    yield from _left_out(result)
    yield (
        f"judge {result.judge_id or 'none'}; taxonomy {result.taxonomy_version} "
        f"({result.taxonomy_fingerprint[:12]}); seed {result.seed}; "
        f"fingerprint {result.fingerprint[:16]}"
    )


def _three(result: AsrAnalysis) -> list[tuple[str, Estimate, Estimate]]:
    rows = [
        ("human-only", result.human_only.asr, result.human_only.asr_gross),
        ("corrected", result.corrected, result.corrected_gross),
    ]
    if result.raw is not None:
        rows.insert(0, ("judge-raw", result.raw.asr, result.raw.asr_gross))
    return rows


def _costs(result: AsrAnalysis) -> Iterator[str]:
    yield "Cost per run (USD)"
    names: list[tuple[str, float | None, str, CostSummary]] = [("all", None, "", result.cost)]
    names += [(w.name, w.ceiling_usd, w.unit, w.cost) for w in result.workflows]
    yield from table(
        ["workflow", "ceiling", "P50", "P90", "P99", "mean", "known", "over ceiling"],
        [_cost_row(*row) for row in names],
    )


def _cost_row(name: str, ceiling: float | None, unit: str, cost: CostSummary) -> list[str]:
    limit = "" if name == "all" else "none set" if ceiling is None else f"{usd(ceiling)}/{unit}"
    money = [usd(x) for x in (cost.p50, cost.p90, cost.p99, cost.mean)]
    return [name, limit, *money, f"{cost.n_known}/{cost.n}", percent(cost.share_over_ceiling)]


def _left_out(result: AsrAnalysis) -> Iterator[str]:
    low, high = result.human_only.asr_range
    if result.cost.n_known < result.cost.n:
        yield (
            f"  {result.cost.n - result.cost.n_known} runs have no cost and carry no penalty; "
            f"the labelled sample would give {low:.3f} if they all cost twice their ceiling and "
            f"{high:.3f} if none went over"
        )
    if result.cost.n_without_ceiling:
        yield f"  {result.cost.n_without_ceiling} runs have no ceiling and carry no penalty"
    if result.unlabelled:
        yield f"  {result.unlabelled} traces of the batch are not labelled yet"
    if result.skipped:
        yield f"  {result.skipped} traces were skipped by everybody who saw them"
    if result.open_disagreements:
        yield f"  {result.open_disagreements} disagreements are open: provisional"
    if result.exposed:
        yield f"  {exposed(result.exposed)}"
    if result.later_traces:
        yield f"  {result.later_traces} traces came after the draw and are not covered"


def taxonomy(shown: Taxonomy) -> Iterator[str]:
    """Yield classes and questions of a taxonomy."""
    yield f"taxonomy {shown.version} ({shown.fingerprint[:12]})"
    for item in shown.classes:
        yield f"  {item.name:<14} credit {item.credit:g}  {item.meaning}"
    for node in shown.nodes:
        yield f"  {node.id}: {node.question}  yes -> {node.yes}, no -> {node.no}"
