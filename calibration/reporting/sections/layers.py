"""Which layer caught which failures, as a document."""

from collections.abc import Callable, Sequence

from calibration.analyses.layers import CaughtBy, FailureType, LayersAnalysis
from calibration.reporting.document import (
    SIMULATED,
    Block,
    Document,
    Listing,
    Name,
    Section,
    Table,
    Words,
    notes,
    percent,
    percent_cell,
    percent_figure,
    reading_lines,
    table_of,
)
from calibration.statistics.estimate import Estimate

SHOWN = 12


def document(result: LayersAnalysis) -> Document:
    """Return the matrix as a document."""
    answer = tuple(Words(text=text) for text in _answer(result))
    caught = _table(
        result, "Caught by each layer, of the known failures", lambda of: (of.n, of.share)
    )
    alone = _table(result, "Caught by this layer and no other", lambda of: (of.n_alone, of.alone))
    about = Listing(items=result.notes)
    blocks: tuple[Block, ...] = (*answer, caught, alone, about)
    aside = table_of(
        "Skipped rows",
        ("why", "rows"),
        ((Name(row.reason), f"{row.n:,}") for row in result.set_aside),
        empty="No row was skipped.",
    )
    return Document(
        title="Failures by the layer that caught them",
        about=(Name(result.source),),
        banners=(SIMULATED,) if result.simulated else (),
        sections=(
            Section(title="", blocks=blocks),
            Section(title="What was left out", blocks=(aside,)),
        ),
        footer=f"fingerprint {result.fingerprint}",
        brief=(*answer, caught, about),
        reading=reading_lines(result.reading),
    )


def _answer(result: LayersAnalysis) -> list[str]:
    """Return what escaped to the user, and where to look first."""
    whole, users = result.all_types, result.of_users
    found = [f"{whole.n:,} runs with a known failure."]
    if users is None:
        found.append("What escaped to users is not known: no layer of users is recorded.")
    else:
        alone = whole.by(users).alone
        found = [
            f"Of {whole.n:,} runs with a known failure {percent_figure(alone)} escaped all layers "
            f"before {users}."
        ]
        most = max(result.types, key=lambda of: of.by(users).n_alone)
        if most.by(users).n_alone:
            found.append(
                f"Most of them: {most.name} ({most.by(users).n_alone:,} of {most.n:,}). Write the "
                "test, the rule or the signal that would have seen these first."
            )
    if whole.n_nowhere:
        found.append(f"{whole.n_nowhere:,} known failures were caught by none of the layers.")
    return found


def _table(
    result: LayersAnalysis, title: str, read: Callable[[CaughtBy], tuple[int, Estimate]]
) -> Table:
    rows: Sequence[FailureType] = (result.all_types, *result.types)
    return table_of(
        title,
        ("failure type", "runs", *map(Name, result.layers), "none"),
        (
            (
                Name(of.name) if of is not result.all_types else "all runs, once each",
                f"{of.n:,}",
                *(_cell(*read(one)) for one in of.caught),
                f"{of.n_nowhere:,}, {percent(of.n_nowhere / of.n)}",
            )
            for of in rows
        ),
        notes=tuple(notes((Name(of.name), read(of.caught[0])[1]) for of in rows)),
        most_in_text=None if len(rows) <= SHOWN else SHOWN,
    )


def _cell(n: int, share: Estimate) -> str:
    return f"{n:,}, {percent_cell(share)}"
