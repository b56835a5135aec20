"""What the report says of what is not in it, and of how to make it again."""

from collections.abc import Iterator, Mapping

from calibration.analyses.asr_report import ProductionReport
from calibration.reporting.asr_words import count
from calibration.reporting.document import Block, Facts, Listing, Name, Row, Table, Words
from calibration.reporting.plain import shown

# Settings that stand in a line of their own.
SAID = ("files", "postgres", "table", "spark", "seed", "resamples", "confidence_level")


def left_out(report: ProductionReport) -> Iterator[Block]:
    """Yield what was set aside and why, and the notes."""
    if report.set_aside:
        total = sum(row.n for row in report.set_aside)
        if report.judged is None:
            yield Words(text=f"{total:,} rows were set aside and are in no number above.")
        shown = any(row.examples for row in report.set_aside)
        yield Table(
            title="Set aside" if report.judged is None else "Not among the human labels, and why",
            head=("why", "rows", *(("for instance",) if shown else ())),
            rows=tuple(
                Row(
                    cells=(
                        Name(row.reason),
                        count(row.n),
                        *((Name("; ".join(row.examples) or "-"),) if shown else ()),
                    )
                )
                for row in report.set_aside
            ),
        )
    else:
        yield Words(text="Nothing was set aside.")
    if report.notes:
        yield Listing(items=tuple(Name(note) for note in report.notes))


def made(report: ProductionReport) -> Iterator[Block]:
    """Yield sampling, judge, taxonomy, seed, version and fingerprint."""
    origin = report.origin
    span = "" if report.first is None else f", {report.first} to {report.last}"
    tasks = "" if report.n_tasks is None else f" of {report.n_tasks:,} tasks"
    items = [
        ("runs", f"{report.n:,}{tasks}{span}"),
        ("sampling", origin.sampling),
        ("judge", Name(origin.judge)),
        (
            "taxonomy",
            Name(f"{origin.taxonomy_version} ({origin.taxonomy_fingerprint[:16]})"),
        ),
        (
            "intervals",
            f"{100 * origin.confidence_level:g} %, {origin.n_resamples:,} resamples, "
            f"seed {origin.seed}",
        ),
    ]
    if report.rounding:
        items.append(
            (
                "rounding",
                f"resampled scores are off by at most {report.rounding:.5f}; values by none",
            )
        )
    for source in origin.sources:
        what = source.name
        if source.size is not None:
            what += f" ({source.size:,} bytes)"
        if source.sha256 is not None:
            what += f", SHA-256 {source.sha256[:16]}"
        items.append(("read", Name(what)))
    settings = "; ".join(
        f"{name.replace('_', ' ')} {shown(_plain(value), most=120)}"
        for name, value in sorted(origin.settings.items())
        if value not in (None, "", (), [], {}, False) and name not in SAID
    )
    if settings:
        items.append(("settings", Name(settings)))
    items += [
        ("software", f"asr-calibration {origin.package_version}"),
        ("fingerprint", origin.fingerprint),
    ]
    yield Facts(items=tuple(items))


def _plain(value: object) -> str:
    if isinstance(value, Mapping):
        return ", ".join(f"{name}={inner}" for name, inner in value.items())
    return "yes" if value is True else str(value)
