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
    """Yield a calibration without diagnostics."""
    for part in (heading, use, crossed, quality, rates, mending):
        yield from part(found)
        yield ""
    yield f"seed {found.seed}; fingerprint {found.fingerprint[:16]}"


def heading(result: Calibrated) -> Iterator[str]:
    """Yield where labels and verdicts came from, and what the human side is made of."""
    if isinstance(result, JudgeAnalysis):
        if result.simulated:
            yield SIMULATED
        yield f"Judge {result.judge_id} against the labels of {result.batch_id}"
    elif isinstance(result, FileCalibration):
        whose = "" if result.judge_id is None else f" of {result.judge_id}"
        files = f"{result.verdict_file} against the labels of {result.human_file}"
        yield f"The verdicts{whose} of {files}"
    elif isinstance(result, TableCalibration):
        yield f"The tables of {result.file}"
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


def use(result: Calibrated) -> Iterator[str]:
    """Yield what the judge can be used for."""
    yield "Can this judge be used?"
    yield from _for_the_rate(result)
    yield from for_a_trace(result)


def crossed(result: Calibrated) -> Iterator[str]:
    """Yield labelled traces by human class and verdict."""
    yield "Human class (rows) x verdict (columns), labelled traces"
    table = result.calibration.confusion.table.tolist()
    yield from confusion(result.classes, result.verdict_names, table)
    if result.disagreements:
        yield f"  {len(result.disagreements):,} traces where a human and the judge differ"


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
    if any(w.code == WIDER and w.estimator == calibration.headline for w in calibration.warnings):
        yield "    it adds nothing to the human labels: the interval is no shorter with it"
    elif calibration.gain is not None and calibration.gain.value is not None:
        yield f"    one label with it is worth this many without: {number(calibration.gain, 2)}"
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


def quality(result: Calibrated) -> Iterator[str]:
    """Yield accuracy, kappa and alpha, and recall and precision of each class."""
    yield "How far off is it?"
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
    yield "  recall: of the class, the share with its verdict; precision: of the verdict, its class"
    if any(w.code == "chosen_by_verdict" for w in result.calibration.warnings):
        yield "  if these traces were chosen by their verdict, recall is 1 or 0 by construction"


def rates(result: Calibrated) -> Iterator[str]:
    """Yield the rate by every estimator, and the class shares of the headline."""
    yield "Agent success rate, net of cost and gross"
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


def mending(result: Calibrated) -> Iterator[str]:
    """Yield what was refused or must be told, and what would help."""
    yield "What would make it better?"
    calibration = result.calibration
    yield from notices("refused", calibration.refusals)
    yield from notices("warning", calibration.warnings)
    if result.human is not None and result.human.n_open:
        yield f"  settle the {result.human.n_open:,} open disagreements: until then provisional"
    if calibration.headline is not None and not calibration.warnings:
        yield "  more labels: four times as many halve the interval"


def notices(kind: str, found: Sequence[Notice]) -> Iterator[str]:
    """Yield notices of one kind: what holds for several estimators, or classes, stands once."""
    estimators: dict[tuple[str, str, str], list[str]] = {}
    for notice in found:
        key = notice.code, notice.why, notice.mend
        estimators.setdefault(key, []).append(notice.estimator)
    alike: dict[tuple[str, str], list[tuple[str, str]]] = {}
    for (code, why, mend), names in estimators.items():
        whom = ", ".join(dict.fromkeys(names))
        alike.setdefault((whom, code), []).append((why, mend))
    for (whom, _), said in alike.items():
        why = "; ".join(one for one, _ in said)
        # What helps with the first of many helps with the others in the same way.
        same = len({one for _, one in said}) == 1
        yield f"  {kind}: {whom}: {why}; {said[0][1]}{'' if same else ', and so for the others'}"
