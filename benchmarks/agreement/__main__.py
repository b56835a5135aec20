"""Measure everything, or one part, and add a section to docs/benchmarks/agreement.md."""

import os
import tempfile
from collections import defaultdict
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

import click
import numpy as np

from benchmarks.agreement.bootstrap import bootstrap_part
from benchmarks.agreement.data import CLASSES, RATERS, Codes, ratings
from benchmarks.agreement.ours import Times, calls, four
from benchmarks.agreement.peers import Environment, environments, measure
from benchmarks.report import add_section, run_head, table
from calibration.agreement.ratings import count_patterns

PAGE = Path(__file__).parents[2] / "docs" / "benchmarks" / "agreement.md"

HEAD = """# Agreement, measured

`make bench-agreement` measures and adds a section here, newest first. Times are in milliseconds
and depend on the machine and its load: compare the ratios, of the medians and of the
shortest times, which are measured in one run, ours and the peers' in turns. A time is from the
ratings in memory to the number; preparing the input of a call (a table of floats, a data frame, a
list of triples) is not timed. Ours is with the interval, and so is irrCAC's; the other peers give
the value alone. Values must equal the peer's to 1e-9, or the run stops. `benchmarks/agreement/`
holds the code.
"""

SAME = 1e-9
AIM_FOUR_MS = 100
GROWTH = 10_000, 100_000, 1_000_000


def check_same(name: str, mine: float, theirs: float) -> float:
    """Return how far apart two values are; stop if they are not the same."""
    if not abs(mine - theirs) <= SAME:
        raise RuntimeError(f"{name}: {mine!r} here, {theirs!r} there")
    return abs(mine - theirs)


@dataclass
class Turns:
    """Times of ours and of the peers' on the same ratings, taken in turns."""

    folder: Path
    where: dict[str, Environment]
    data: dict[float, Codes]  # by share of missing ratings
    mine: dict[tuple[float, str], Times] = field(default_factory=lambda: defaultdict(Times))
    theirs: dict[tuple[str, str], Times] = field(default_factory=lambda: defaultdict(Times))
    apart: dict[tuple[str, str], float] = field(default_factory=dict)
    versions: dict[str, str] = field(default_factory=dict)

    def take(self, repeats: int) -> None:
        """Time everything once more."""
        for share, codes in self.data.items():
            for name, call in calls(codes).items():
                self.mine[share, name].seconds += Times.of(call, repeats=repeats).seconds
        for peer, environment in self.where.items():
            if not environment.refused:
                self._take_peer(peer, environment, repeats)

    def _take_peer(self, peer: str, environment: Environment, repeats: int) -> None:
        codes = self.data[share_of(peer)]
        file = self.folder / "codes.npy"
        np.save(file, codes)
        found, measured = measure(environment, peer, file, repeats=repeats)
        self.versions[peer] = f"{found[peer]} (numpy {found['numpy']})"
        for name, call in measured.items():
            (value,) = calls(codes)[ours_for(name)]()
            self.apart[peer, name] = check_same(f"{peer}, {name}", value, call.value)
            self.theirs[peer, name].seconds += call.seconds

    def rows(self) -> list[list[object]]:
        """Return the rows of the table, ours beside each call of a peer."""
        rows = [
            _row(f"{peer}: {name}", times, self.mine[share_of(peer), ours_for(name)],
                 f"{self.apart[peer, name]:.0e}")
            for (peer, name), times in self.theirs.items()
        ]  # fmt: skip
        every = [times.seconds for (peer, _), times in self.theirs.items() if peer == "irrCAC"]
        if every:
            summed = Times([sum(run) for run in zip(*every, strict=True)])
            rows.append(_row("irrCAC: all four", summed, self.mine[0.3, "all four"], ""))
        return rows


def _row(name: str, theirs: Times, mine: Times, apart: str) -> list[object]:
    ratios = [theirs.median / mine.median, min(theirs.seconds) / min(mine.seconds)]
    return [name, theirs.median, theirs.spread, mine.median, mine.spread, *ratios, apart]


def share_of(peer: str) -> float:
    """Return the share of missing ratings that a peer is given."""
    return 0.0 if peer == "statsmodels" else 0.3


def ours_for(call: str) -> str:
    """Return our call that answers a peer's."""
    return "alpha" if call.startswith("alpha with ") else call


def peers_part(
    folder: Path, where: dict[str, Environment], n_items: int, rounds: int, repeats: int, seed: int
) -> str:
    """Time the four coefficients in turns with the peers."""
    data = {share: ratings(n_items, missing=share, seed=seed) for share in (0.3, 0.0)}
    turns = Turns(folder, where, data)
    for _ in range(rounds):
        turns.take(repeats)
    four_times = turns.mine[0.3, "all four"]
    columns = [
        "peer", "median", "range", "ours", "range", "peer / ours", "of the shortest",
        "values differ by",
    ]  # fmt: skip
    named = ", ".join(f"{name} {version}" for name, version in turns.versions.items())
    return (
        f"### {n_items:,} items x {RATERS} raters, 30 % missing, {CLASSES} classes\n\n"
        f"Alpha, AC1, Fleiss' kappa and Brennan-Prediger with their intervals: "
        f"**{four_times.median:.0f} ms** ({four_times.spread}; aim: below {AIM_FOUR_MS}). Peers: "
        f"{named}. statsmodels is given complete ratings: it takes a missing one for a class.\n\n"
        + table(columns, turns.rows())
        + "".join(f"\nNOT RUN: {p} ({e.refused})\n" for p, e in where.items() if e.refused)
        + f"\nMedians of {rounds} x {repeats} runs.\n"
    )


def krippendorff_ms(
    folder: Path, peer: Environment, n_items: int, repeats: int, seed: int
) -> float:
    """Return what one call of krippendorff on counts takes; NaN without the package."""
    if peer.refused:
        return float("nan")
    np.save(folder / "counts.npy", ratings(n_items, missing=0.3, seed=seed))
    _, measured = measure(peer, "krippendorff", folder / "counts.npy", repeats=repeats)
    return Times(measured["alpha of value_counts"].seconds).median


def growth_part(folder: Path, peer: Environment, repeats: int, seed: int) -> str:
    """Time the four coefficients on ever more items, beside krippendorff's alpha."""
    rows: list[list[object]] = []
    first = float("nan")
    for n_items in GROWTH:
        codes = ratings(n_items, missing=0.3, seed=seed)
        mine = Times.of(partial(four, codes), repeats=repeats)
        first = mine.median if np.isnan(first) else first
        patterns = len(count_patterns(codes, n_classes=CLASSES).counts)
        theirs = Times([float("nan")])
        if not peer.refused:
            np.save(folder / "growth.npy", codes)
            _, measured = measure(peer, "krippendorff", folder / "growth.npy", repeats=repeats)
            check_same("krippendorff", four(codes)[0], measured["alpha"].value)
            theirs = Times(measured["alpha"].seconds)
        rows.append(
            [f"{n_items:,}", f"{patterns:,}", mine.median, mine.spread,
             mine.median / first, theirs.median, theirs.median / mine.median,
             min(theirs.seconds) / min(mine.seconds)]
        )  # fmt: skip
    columns = [
        "items", "patterns", "four with intervals", "range", f"to {GROWTH[0]:,} items",
        "krippendorff: alpha", "krippendorff / ours", "of the shortest",
    ]  # fmt: skip
    return (
        "### Growth with the items\n\n" + table(columns, rows) + f"\nMedians of {repeats} runs.\n"
    )


@click.command()
@click.option("--part", "parts", multiple=True, type=click.Choice(["peers", "bootstrap", "growth"]))
@click.option("--seed", default=1, show_default=True)
@click.option("--items", default=100_000, show_default=True)
@click.option(
    "--rounds",
    default=9,
    show_default=True,
    help="Turns with the peers.",
)
@click.option("--repeats", default=3, show_default=True, help="Runs of a call in a turn.")
@click.option("--output", type=click.Path(path_type=Path), default=PAGE, show_default=False)
def main(
    parts: tuple[str, ...], seed: int, items: int, rounds: int, repeats: int, output: Path
) -> None:
    """Measure and write the page."""
    chosen = parts or ("peers", "bootstrap", "growth")
    busy = os.getloadavg()[0]
    found = []
    with tempfile.TemporaryDirectory() as directory:
        folder = Path(directory)
        where = environments(folder)
        if "peers" in chosen:
            found.append(peers_part(folder, where, items, rounds, repeats, seed))
        if "bootstrap" in chosen:
            one_call = krippendorff_ms(folder, where["krippendorff"], items, rounds, seed)
            found.append(bootstrap_part(items, rounds, seed, krippendorff_ms=one_call))
        if "growth" in chosen:
            found.append(growth_part(folder, where["krippendorff"], rounds, seed))
    head = run_head(["asr-calibration", "numpy", "scipy"], load=busy, seed=seed)
    section = head + "\n".join(found) + f"\nLoad at the end {os.getloadavg()[0]:.1f}.\n"
    add_section(output, section, head=HEAD)
    click.echo(section)


if __name__ == "__main__":
    main()
