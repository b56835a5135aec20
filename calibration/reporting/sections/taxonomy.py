"""What a taxonomy's numbers could be: suggested ceilings and a fitted credit, as documents."""

import json
from collections.abc import Iterator

from calibration.analyses.success_rate.suggestions import CreditFit, SuggestedCeilings
from calibration.reporting.document import (
    Block,
    Document,
    Name,
    Section,
    batches_read,
    notes,
    percent,
    reading_lines,
    table_of,
    usd,
)
from calibration.reporting.sections.success_rate import money, share, small
from calibration.statistics.estimate import Estimate
from calibration.success_rate.fitted_credit import FITTED
from calibration.text import counted


def ceilings(found: SuggestedCeilings) -> Document:
    """Return suggested ceilings as a document."""
    level = f"P{100 * found.percentile:g}"
    enough = [row for row in found.workflows if row.suggested.interval is not None]
    rows = [
        (
            Name(row.workflow),
            row.unit,
            "-" if row.ceiling_usd is None else usd(row.ceiling_usd),
            f"{row.n:,}",
            money(row.suggested),
            "-" if row.share_above is None else share(row.share_above),
        )
        for row in found.workflows
    ]
    heading = ("workflow", "unit", "present", "runs", f"{level} of the cost", "above the present")
    return Document(
        title="Cost ceilings from the costs of acceptable runs",
        source=batches_read(found.batch_id),
        reading=reading_lines(found.reading),
        about=(
            f"{counted(len(enough), 'workflow')} of {len(found.workflows)} "
            f"{'has' if len(enough) == 1 else 'have'} enough acceptable runs for a ceiling with an "
            "interval.",
            f"Over {found.basis}, with a known cost. A ceiling at {level} takes credit from "
            f"{percent(1 - found.percentile)} of such runs. It says what acceptable work costs "
            "today, not what it should cost.",
        ),
        sections=(
            Section(
                title="By workflow, in USD per unit",
                blocks=(
                    table_of(
                        "",
                        heading,
                        rows,
                        notes=tuple(
                            notes((row.workflow, row.suggested) for row in found.workflows)
                        ),
                    ),
                ),
            ),
            *_sections_of(found.notes),
        ),
        footer=f"fingerprint {found.fingerprint}",
    )


def _sections_of(said: tuple[str, ...]) -> Iterator[Section]:
    if said:
        yield Section(title="Notes", blocks=tuple(small(one) for one in said))


def fragment(found: SuggestedCeilings) -> str:
    """Return the suggested ceilings as a fragment of a taxonomy file.

    A workflow with too few runs for an interval keeps its ceiling.
    """
    level = f"P{100 * found.percentile:g}"
    lines = [f"# {level} of the cost of acceptable runs; asr taxonomy suggest."]
    for row in found.workflows:
        ceiling, why = row.ceiling_usd, f"{row.n:,} runs are too few, as before"
        if row.suggested.interval is not None and row.suggested.value:
            ceiling, why = float(f"{row.suggested.value:.3g}"), f"{level} of {row.n:,} runs"
        if ceiling is None:
            continue
        lines += [
            "",
            f"[workflows.{json.dumps(row.workflow, ensure_ascii=False)}]",
            f"ceiling_usd = {ceiling!r}  # {why}",
            f"unit = {json.dumps(row.unit, ensure_ascii=False)}",
        ]
    return "\n".join(lines) + "\n"


def fitted_credit(fit: CreditFit) -> Document:
    """Return a fitted credit as a document."""
    found = fit.found
    titles = " and ".join(fit.titles[name] for name in found.partial)
    present = ", ".join(f"{worth:g}" for worth in fit.present.values())
    unit = "0 to 100" if fit.measure == "usefulness" else "share of up"
    return Document(
        title=f"Credit of {titles}: {_plain(found.credit)}, {present} in the taxonomy",
        about=(
            f"By {fit.measure} of {found.n:,} runs of {fit.file}"
            + (f", {counted(found.n_tasks, 'task')}" if fit.by_task else "")
            + f": {_judged(found.credit, list(fit.present.values()))}",
            "1 is the worth of a run of success, 0 that of a run of the classes that earn nothing.",
        ),
        sections=tuple(_fit_sections(fit, unit)),
        reading=(*reading_lines(fit.reading), *filter(None, (fit.reading.folded_line,))),
        footer=f"fingerprint {fit.fingerprint}",
    )


def _judged(credit: Estimate, present: list[float]) -> str:
    if credit.interval is None:
        return f"{credit.status}."
    low, high = credit.interval
    if all(low <= worth <= high for worth in present):
        return "the interval holds the present credit, so nothing speaks against it."
    return "the interval leaves out the present credit: set credit to the fitted one, or ask why."


def _plain(found: Estimate) -> str:
    if found.value is None:
        return "not known"
    limits = found.interval
    return f"{found.value:.2f}" + ("" if limits is None else f" [{limits[0]:.2f}, {limits[1]:.2f}]")


def _fit_sections(fit: CreditFit, unit: str) -> Iterator[Section]:
    found = fit.found
    rates: list[Block] = [
        table_of(
            "",
            ("partial credit", "ASR of these runs, before cost"),
            (
                (
                    row.name if row.name != FITTED or row.credit is None
                    else f"{FITTED}, {row.credit:.2f}",
                    share(row.asr),
                )
                for row in found.rates
            ),
            notes=tuple(notes((row.name, row.asr) for row in found.rates)),
        )
    ]  # fmt: skip
    yield Section(title="The rate at each credit", blocks=tuple(rates))
    yield Section(
        title=f"Usefulness by class ({unit})",
        blocks=(
            table_of(
                "",
                ("class", "runs", "mean", "monotone fit"),
                (
                    (
                        Name(fit.titles[row.outcome]),
                        f"{row.n:,}",
                        "-" if row.mean is None else f"{row.mean:.3g}",
                        _wide(row.fitted),
                    )
                    for row in found.classes
                ),
                notes=tuple(notes((fit.titles[row.outcome], row.fitted) for row in found.classes)),
            ),
        ),
    )


def _wide(found: Estimate) -> str:
    if found.value is None:
        return "-"
    limits = found.interval
    return f"{found.value:.3g}" + ("" if limits is None else f" [{limits[0]:.3g}, {limits[1]:.3g}]")
