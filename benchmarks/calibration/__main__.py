"""Measure a calibration and add a section to docs/benchmarks/calibration.md."""

import json
import os
import subprocess
import tempfile
from functools import partial
from pathlib import Path
from typing import Any

import click
import numpy as np

from benchmarks.agreement.ours import Times
from benchmarks.agreement.peers import environment
from benchmarks.calibration.data import CREDIT, Traces, traces
from benchmarks.calibration.plain import plain_loop
from benchmarks.report import add_section, run_head, table
from calibration.judge_calibration.calibrate import Calibration, calibrate
from calibration.judge_calibration.samples import ESTIMATORS, HEADLINE, Design, LabelledSample

PAGE = Path(__file__).parents[2] / "docs" / "benchmarks" / "calibration.md"
CALLS = Path(__file__).with_name("peer_calls.py")
PEER = "ppi-python==0.2.3"

HEAD = """# Calibration, measured

`make bench-calibration` measures and adds a section here, newest first. Times are in milliseconds
and depend on the machine and its load: compare the ratios, which are measured in one
run. Ours is from the verdicts and penalties in memory to the estimates, net and gross, with
intervals and class shares; ppi_py is given the proxies ready-made, and one target. Limits must
equal ppi_py's to 1e-9 and the spread of the plain bootstrap ours within a quarter, or the run
stops. `benchmarks/calibration/` holds the code.
"""

RESAMPLES = 2_000
SAME = 1e-9
NEAR = 0.25


def run(
    labelled: Traces, production: Traces, design: Design, *, estimators: tuple[str, ...], seed: int
) -> Calibration:
    """Return the calibration of one judge."""
    return calibrate(
        LabelledSample(
            human=np.eye(5)[labelled.human],
            verdicts=labelled.verdicts,
            penalties=labelled.penalties,
        ),
        production_verdicts=production.verdicts,
        production_penalties=production.penalties,
        credit=CREDIT,
        design=design,
        estimators=estimators,
        seed=seed,
    )


def ours_part(samples: dict[Design, Traces], production: Traces, repeats: int, seed: int) -> str:
    """Time all estimators together, and each with what every calibration computes."""
    rows: list[list[object]] = []
    for design, labelled in samples.items():
        own: tuple[tuple[str, tuple[str, ...]], ...] = (
            ("all estimators", ESTIMATORS),
            *((name, (name,)) for name in ESTIMATORS if name != "lee"),
        )
        for name, estimators in own:
            call = partial(run, labelled, production, design, estimators=estimators, seed=seed)
            times = Times.of(call, repeats=repeats)
            found = call().estimates
            shown = found.get(name if name != "all estimators" else HEADLINE[design])
            value = None if shown is None else shown.net.value
            shows = "refused" if value is None else f"{value:.4f}"
            rows.append([design, name, times.median, times.spread, shows])
    columns = ["labels from", "estimators", "median", "range", "net value"]
    return (
        f"### {production.human.size:,} verdicts with costs, {samples['production'].human.size} "
        "labels\n\n" + table(columns, rows)
        + f"\nMedians of {repeats} runs. Every line holds what all share: sums over production, "
        "confusion, post-stratification and inversion.\n"
    )  # fmt: skip


def peer_part(
    folder: Path, labelled: Traces, production: Traces, repeats: int, rounds: int, seed: int
) -> str:
    """Time PPI++ in turns with ppi_py and check that the limits are the same."""
    where = environment(folder / "peer", (PEER,))
    if where.refused:
        return f"### ppi_py\n\nNOT RUN: {where.refused}\n"
    file = folder / "arrays.npz"
    proxies = production.proxies()
    np.savez(
        file,
        scores=labelled.scores(),
        proxies=labelled.proxies(),
        unlabelled=proxies[labelled.human.size :],
    )
    mine, theirs = Times(), Times()
    call = partial(
        run, labelled, production, "production", estimators=("ppi_plus_plus",), seed=seed
    )
    measured: dict[str, Any] = {}
    for _ in range(rounds):
        mine.seconds += Times.of(call, repeats=repeats).seconds
        done = subprocess.run(
            [str(where.python), "-W", "ignore", str(CALLS), str(file), str(repeats)],
            capture_output=True, text=True, timeout=1800, check=True,
        )  # fmt: skip
        measured = json.loads(done.stdout)
        theirs.seconds += measured["seconds"]
    limits = call().estimates["ppi_plus_plus"].net.interval or (np.nan, np.nan)
    apart = float(np.abs(np.subtract(limits, measured["limits"])).max())
    if not apart <= SAME:
        raise RuntimeError(f"ppi_py: {measured['limits']} there, {limits} here")
    named = ", ".join(f"{name} {version}" for name, version in measured["versions"].items())
    columns = [
        "ppi_py: ppi_mean_ci", "range", "ours: net, gross, class shares", "range",
        "ppi_py / ours", "of the shortest", "limits differ by",
    ]  # fmt: skip
    ratios = theirs.median / mine.median, min(theirs.seconds) / min(mine.seconds)
    row: list[object] = [
        theirs.median, theirs.spread, mine.median, mine.spread, *ratios, f"{apart:.0e}"
    ]  # fmt: skip
    return (
        f"### PPI++ beside ppi_py ({named})\n\n" + table(columns, [row])
        + f"\nMedians of {rounds} x {repeats} runs, in turns.\n"
    )  # fmt: skip


def loop_part(
    samples: dict[Design, Traces], production: Traces, iterations: int, repeats: int, seed: int
) -> str:
    """Time our resamples against a loop that draws every trace again."""
    rows: list[list[object]] = []
    for design, labelled in samples.items():
        loop = plain_loop(design, labelled, production, iterations=iterations, seed=seed)
        call = partial(run, labelled, production, design, estimators=("bootstrap",), seed=seed)
        times = Times.of(call, repeats=repeats)
        spread = float(loop.draws.std(ddof=1)) / (call().estimates["bootstrap"].net.se or np.nan)
        if not abs(spread - 1) < NEAR:
            raise RuntimeError(f"{design}: the spread of the loop is {spread:.2f} times ours")
        plain = 1000 * RESAMPLES * float(np.median(loop.seconds))
        rows.append(
            [design, plain, times.median, times.spread, plain / times.median, f"{spread:.2f}"]
        )
    columns = [
        "labels from", f"plain loop x {RESAMPLES:,}", f"ours, {RESAMPLES:,} resamples", "range",
        "loop / ours", "SD, loop / ours",
    ]  # fmt: skip
    return (
        "### Two-source bootstrap\n\n" + table(columns, rows)
        + f"\nThe loop was run {iterations} times and its median multiplied; ours, net, gross and "
        f"class shares, is the median of {repeats} runs.\n"
    )  # fmt: skip


@click.command()
@click.option("--seed", default=1, show_default=True)
@click.option("--verdicts", default=1_000_000, show_default=True)
@click.option("--labels", default=600, show_default=True)
@click.option("--repeats", default=5, show_default=True, help="Runs of a call.")
@click.option("--rounds", default=3, show_default=True, help="Turns with ppi_py.")
@click.option("--iterations", default=60, show_default=True, help="Runs of the plain loop.")
@click.option("--output", type=click.Path(path_type=Path), default=PAGE, show_default=False)
def main(
    seed: int,
    verdicts: int,
    labels: int,
    repeats: int,
    rounds: int,
    iterations: int,
    output: Path,
) -> None:
    """Measure and write the page."""
    busy = os.getloadavg()[0]
    production = traces(verdicts, "production", seed=seed)
    samples: dict[Design, Traces] = {
        "production": production.first(labels),
        "reference": traces(labels, "reference", seed=seed),
    }
    with tempfile.TemporaryDirectory() as directory:
        found = [
            ours_part(samples, production, repeats, seed),
            peer_part(Path(directory), samples["production"], production, repeats, rounds, seed),
            loop_part(samples, production, iterations, repeats, seed),
        ]
    head = run_head(["asr-calibration", "numpy", "scipy"], load=busy, seed=seed)
    section = head + "\n".join(found) + f"\nLoad at the end {os.getloadavg()[0]:.1f}.\n"
    add_section(output, section, head=HEAD)
    click.echo(section)


if __name__ == "__main__":
    main()
