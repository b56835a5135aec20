"""The status of a store as a document, and its sentences."""

from calibration.analyses.reviewers.progress import Progress, Results
from calibration.analyses.status import NextAction, StoreStatus
from calibration.reporting.document import (
    SIMULATED,
    Document,
    Facts,
    Listing,
    Name,
    Section,
    batches_read,
    percent,
)
from calibration.reporting.sections.success_rate import left_out_line
from calibration.statistics.estimate import OK, Estimate
from calibration.success_rate.trend import WeeklySeries
from calibration.text import counted, hours

NOTHING = "Nothing: every label is made, and no disagreement or flag is open."


def rate_words(rate: Estimate) -> str:
    """Return the rate of a store in a sentence to say aloud.

    Examples
    --------
    >>> print(rate_words(Estimate(value=0.566, interval=(0.53, 0.601), n=300, method="t")))
    The agent success rate is 56.6 % (95 % interval: 53.0 % to 60.1 %).
    """
    if rate.value is None:
        why = rate.status.removeprefix("not_estimable: ")
        return f"No rate yet: {why}."
    if rate.interval is None:
        return f"The agent success rate is {percent(rate.value)}, without an interval."
    low, high = map(percent, rate.interval)
    level = f"{100 * rate.confidence_level:g} %"
    return f"The agent success rate is {percent(rate.value)} ({level} interval: {low} to {high})."


def basis_words(results: Results) -> str:
    """Say what a rate is made from, and with what reservation."""
    rate = results.headline
    if rate.value is None:
        return ""
    words = f"From {counted(rate.n, 'labelled trace')}, "
    words += (
        f"corrected for the errors of judge {results.judge_id}."
        if results.calibrated
        else "without a judge."
    )
    if results.includes_reviewers:
        words += " The interval includes the errors of reviewers."
    if rate.status != OK:
        kind, _, why = rate.status.partition(": ")
        words += f" {kind.replace('_', ' ').capitalize()}: {why}."
    return words


def trend_words(weekly: WeeklySeries | None) -> str:
    """Say in a sentence whether the rate has fallen, by CUSUM."""
    if weekly is None or not weekly.weeks or weekly.drop is None:
        return "No trend: no labelled trace says when it was started."
    drop, last = weekly.drop, weekly.weeks[-1].week
    if drop.baseline is None:
        why = drop.status.removeprefix("not_estimable: ")
        return f"Too early to say whether the rate has fallen: {why}."
    base = percent(drop.baseline)
    if drop.since is not None:
        return f"The weekly rate is below its baseline of {base} since {drop.since} (CUSUM)."
    return f"No lasting drop up to {last}: the baseline of the weekly rate is {base} (CUSUM)."


def document(found: StoreStatus) -> Document:
    """Return the status of a store."""
    about = []
    if found.results is not None and found.rate.value is not None:
        about = [basis_words(found.results), trend_words(found.results.weekly)]
    steps = tuple(f"{of.what}. {of.why} (page /{of.page})" for of in found.next)
    sections = [Section(title="Do next", blocks=(Listing(items=steps or (NOTHING,)),))]
    if found.progress:
        facts = tuple((Name(of.batch_id), progress_words(of)) for of in found.progress)
        sections.append(Section(title="Batches, newest first", blocks=(Facts(items=facts),)))
    return Document(
        title=rate_words(found.rate),
        source=batches_read(found.rated),
        reading=() if found.results is None else left_out_line(found.results.left_out),
        about=tuple(about),
        banners=(SIMULATED,) if found.simulated else (),
        sections=tuple(sections),
        then=_command(found.next[0]) if found.next else "report",
    )


def _command(first: NextAction) -> str:
    """Return the command that does the most urgent step, or shows the page that does it."""
    return {
        "import": "import FILES",
        "people": 'people add "NAME"',
        "draw": f"sample --n {first.n}",
        "verdicts": "verdicts import FILE --judge NAME",
        "precision": f"sample --n {first.n}",
    }.get(first.kind, "serve")


def progress_words(of: Progress) -> str:
    """Return the progress of a batch in a line."""
    done = f"{of.n_items - of.items_open:,} of {counted(of.n_items, 'trace')} done"
    if not of.labels_left:
        return done
    return f"{done}, {counted(of.labels_left, 'label')} left ({hours(of.hours_left)})"
