"""The calibration of a judge as text: can it be used, for what, how far off, what would help."""

from collections.abc import Iterator, Sequence

from calibration.analyses.calibrated import Calibrated, HumanSide
from calibration.analyses.calibration_files import FileCalibration
from calibration.analyses.calibration_tables import TableCalibration
from calibration.analyses.judge import CHOSEN, JudgeAnalysis
from calibration.correction.calibrate import Calibration, Notice
from calibration.correction.results import HEADLINE
from calibration.estimates import Estimate
from calibration.reporting.text import SIMULATED, confusion, figure, notes, number, table

SAMPLE = {
    "production": "taken as a random sample of production",
    "reference": "reference only: assumes that the judge errs there as in production",
}
WIDER = "wider_than_human_only"
# What a report shows of a list that may be as long as the files.
SHOWN = 5


def result(found: Calibrated) -> Iterator[str]:
    """Yield a calibration, headed by where its labels and verdicts came from."""
    if isinstance(found, JudgeAnalysis):
        yield from of_store(found)
        return
    if isinstance(found, FileCalibration):
        yield f"The verdicts of {found.verdict_file} against the labels of {found.human_file}"
    elif isinstance(found, TableCalibration):
        yield f"The tables of {found.file}"
    yield from calibrated(found)


def of_store(result: JudgeAnalysis) -> Iterator[str]:
    """Yield the calibration of a judge of the store."""
    if result.simulated:
        yield SIMULATED
    yield f"Judge {result.judge_id} against the labels of {result.batch_id}"
    yield from calibrated(result)


def calibrated(result: Calibrated) -> Iterator[str]:
    """Yield everything below the heading."""
    calibration = result.calibration
    yield (
        f"  {calibration.n_labels:,} labelled traces ({drawn(result)}), "
        f"{calibration.n_production:,} judged"
    )
    if result.human is not None:
        yield from human_side(result.human)
    for note in result.notes:
        yield f"  {note}"
    yield from _set_aside(result)
    yield ""
    yield "Can this judge be used?"
    yield from _for_the_rate(result)
    yield from for_a_trace(result)
    yield ""
    yield "How far off is it?"
    yield from _quality(result)
    yield ""
    yield "Human class (rows) x verdict (columns)"
    yield from confusion(result.classes, result.verdict_names, calibration.confusion.table.tolist())
    if result.disagreements:
        yield f"  {len(result.disagreements)} traces where a human and the judge differ"
    yield ""
    yield "Agent success rate, net of cost and gross"
    yield from _rates(result)
    yield ""
    yield "What would make it better?"
    yield from _mending(result)
    yield ""
    yield f"seed {result.seed}; fingerprint {result.fingerprint[:16]}"


def drawn(result: Calibrated) -> str:
    """Say where the labelled traces come from."""
    if any(notice.code == CHOSEN.code for notice in result.calibration.refusals):
        return "chosen, not drawn"
    return SAMPLE[result.design]


def human_side(side: HumanSide) -> Iterator[str]:
    """Yield what the human side of the labelled traces is made of."""
    reviewers = f" by {len(side.reviewers)} reviewers" if len(side.reviewers) > 1 else ""
    yield (
        f"  human side: {side.n_labels:,} labels{reviewers}; traces with two or more: "
        f"{side.n_shared:,}, adjudicated: {side.n_adjudicated:,}"
        + (f"; provisional: {side.n_open:,} disagreements open" if side.n_open else "")
    )
    if side.n_adjudicated or side.n_shared:
        yield "  a trace counts by its adjudicated class, else by the mean over its reviewers"
    if side.skipped_by_verdict:
        by = ", ".join(f"{name} {n}" for name, n in side.skipped_by_verdict.items())
        yield f"  {sum(side.skipped_by_verdict.values()):,} skipped, by verdict: {by}"


def _set_aside(result: Calibrated) -> Iterator[str]:
    rows: dict[tuple[str, str], list[int | None]] = {}
    for row in result.set_aside:
        rows.setdefault((row.file, row.reason), []).append(row.line)
    for (file, reason), lines in rows.items():
        shown = ", ".join(map(str, lines[:SHOWN])) + (", ..." if len(lines) > SHOWN else "")
        yield f"  set aside: {len(lines):,} of {file}, line {shown}: {reason}"


def _for_the_rate(result: Calibrated) -> Iterator[str]:
    calibration = result.calibration
    if calibration.headline is None:
        yield f"  for the rate: no, {HEADLINE[result.design]} is refused; why stands below"
        human = calibration.estimates["human_only"].net
        if human.ok:
            yield f"    human labels alone say {number(human)}"
        return
    net = calibration.estimates[calibration.headline].net
    yield f"  for the rate: yes, corrected it is {number(net)}"
    if off := as_it_is(calibration):
        yield f"    {off}"
    explained = calibration.r_squared
    if any(w.code == WIDER and w.estimator == calibration.headline for w in calibration.warnings):
        yield "    it adds nothing to the human labels: the interval is no shorter with it"
    elif result.design == "production" and explained is not None and explained < 1:
        yield f"    with it a human label is worth {1 / (1 - explained):.2f} labels"
    if result.design == "reference":
        yield "    as long as it errs in production as on the reference; 100 random labels show it"


def as_it_is(calibration: Calibration) -> str | None:
    """Say how far the judge is off when every verdict is taken as true; None without a headline."""
    head, raw = calibration.headline_estimate, calibration.estimates["judge_raw"].net.value
    if head is None or head.net.value is None or raw is None:
        return None
    off, interval = raw - head.net.value, head.net.interval
    inside = interval is not None and interval[0] <= raw <= interval[1]
    return (
        f"taken as it is the judge says {raw:.3f}, {abs(off):.3f} too "
        f"{'high' if off > 0 else 'low'}, {'inside' if inside else 'outside'} that interval"
    )


def for_a_trace(result: Calibrated) -> Iterator[str]:
    """Yield what the verdict on a single trace is worth."""
    quality = result.calibration.judge
    if quality.accuracy.value is None:
        yield f"  for single traces: not known, {number(quality.accuracy)}"
    else:
        yield (
            f"  for single traces: it names the humans' class of {figure(quality.accuracy)} of the "
            f"labelled traces, {figure(quality.kappa)} beyond chance (kappa)"
        )
    found = [
        (one.recall.value, name, one.recall)
        for name, one in zip(result.classes, quality.per_class, strict=True)
        if one.recall.value is not None
    ]
    if found:
        _, name, recall = min(found, key=lambda one: one[0])
        what = "least of" if len(found) > 1 else "only known of"
        yield f"    {what} {name}: {figure(recall)} of them get that verdict"
    yield "  for other tasks, periods or another version of the judge: not without labels of theirs"


def _quality(result: Calibrated) -> Iterator[str]:
    quality = result.calibration.judge
    for name, found in (
        ("accuracy", quality.accuracy), ("kappa", quality.kappa), ("alpha", result.alpha),
    ):  # fmt: skip
        yield f"  {name:<8} {number(found)}"
    pairs = list(zip(result.classes, quality.per_class, strict=True))
    yield from table(
        ["class", "recall", "precision", "labels", "verdicts"],
        [
            [name, figure(q.recall), figure(q.precision), f"{q.n_human:.4g}", f"{q.n_judge:.4g}"]
            for name, q in pairs
        ],
    )
    marked: list[tuple[str, Estimate]] = [(f"recall of {name}", q.recall) for name, q in pairs]
    marked += [(f"precision of {name}", q.precision) for name, q in pairs]
    yield from notes(marked)


def _rates(result: Calibrated) -> Iterator[str]:
    calibration = result.calibration
    estimates = calibration.estimates
    yield from table(
        ["estimator", "net", "gross"],
        [
            [name + (" *" if name == calibration.headline else ""), figure(e.net), figure(e.gross)]
            for name, e in estimates.items()
        ],
    )
    # Why an estimator was refused stands in the refusals below.
    refused = {notice.estimator for notice in calibration.refusals}
    yield from notes((n, e.net) for n, e in estimates.items() if e.net.ok or n not in refused)
    if calibration.headline is not None:
        yield f"  * headline; {estimates[calibration.headline].net.method}"
    for reviewer, value in result.without_reviewer.items():
        shown = "not estimable" if value is None else f"{value:.3f}"
        yield f"  without {reviewer}: {shown} (reviewer error is shown here, not in the interval)"
    if result.if_skipped is not None:
        low, high = result.if_skipped
        yield f"  {result.skipped} skipped traces could move it to [{low:.3f}, {high:.3f}]"
    shares = calibration.class_shares.get(calibration.headline or "")
    if shares is not None:
        yield ""
        yield "Outcome shares (corrected)"
        named = list(zip(result.classes, shares, strict=True))
        yield from table(
            ["class", "share", "credit"],
            [[name, figure(share), f"{result.credit[name]:g}"] for name, share in named],
        )
        yield from notes(named)


def _mending(result: Calibrated) -> Iterator[str]:
    calibration = result.calibration
    yield from notices("refused", calibration.refusals)
    yield from notices("warning", calibration.warnings)
    if result.human is not None and result.human.n_open:
        yield f"  settle the {result.human.n_open:,} open disagreements: until then provisional"
    if calibration.headline is not None and not calibration.warnings:
        yield "  more labels: four times as many halve the interval"


def notices(kind: str, found: Sequence[Notice]) -> Iterator[str]:
    """Yield refusals or warnings, those with the same reason together."""
    together: dict[tuple[str, str], list[str]] = {}
    for notice in found:
        together.setdefault((notice.why, notice.mend), []).append(notice.estimator)
    for (why, mend), estimators in together.items():
        yield f"  {kind}: {', '.join(dict.fromkeys(estimators))}: {why}; {mend}"
