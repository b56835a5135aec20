"""Measure everything, or one part, and add a section to docs/benchmarks/labelling.md."""

import os
import tempfile
from pathlib import Path

import click

from benchmarks.labelling.keys import chromium, desk_times, fragment_times
from benchmarks.labelling.load import Load, load
from benchmarks.labelling.network import slow_desk
from benchmarks.labelling.path import path_times
from benchmarks.labelling.report import HEAD
from benchmarks.report import add_section, run_head, table
from tests.browser.conftest import Server
from tests.load.crash import crash

PAGE = Path(__file__).parents[2] / "docs" / "benchmarks" / "labelling.md"

# At 20 steps, measured the same way on a machine like this one (July 2026).
POTATO_MS = 184.0, 272.0
PARTS = "path", "keys", "network", "load", "crash"


def keys_part(folder: Path, port: int, n: int) -> str:
    """Time the key that ends a trace, beside an empty fragment rerun."""
    with chromium() as browser:
        empty = fragment_times(browser, port, n=n)
        desks = [desk_times(browser, folder, steps=steps, n=n) for steps in (20, 100, 200)]
    rows = [
        [t.what, t.n, t.p50, t.p95, f"{t.p50 / empty.p50:.2f}", f"{t.p95 / empty.p95:.2f}"]
        for t in (empty, *desks)
    ]
    flat = desks[-1].p95 / desks[0].p95
    return (
        "### Key down to the next trace painted\n\n"
        + table(["what", "n", "p50", "p95", "p50 ratio", "p95 ratio"], rows)
        + f"\n200 steps against 20: p95 x {flat:.2f}. Potato at 20 steps (another run, see the "
        f"design notes): {POTATO_MS[0]:.0f} / {POTATO_MS[1]:.0f}; the desk takes "
        f"{desks[0].p50 / POTATO_MS[0]:.2f} / {desks[0].p95 / POTATO_MS[1]:.2f} of that.\n"
    )


def network_part(folder: Path, n: int) -> str:
    """Time the desk on a slow line and weigh what comes over it."""
    with chromium() as browser:
        done = slow_desk(browser, folder, n=n)
    rows = [[t.what, t.n, t.p50, t.p95] for t in (done.next_trace, done.confirmed)]
    return (
        "### Over a slow line\n\nA relay between Chromium and the server: 150 ms round trip, 1 "
        "Mbit/s each way, shared by all connections; a label every two seconds.\n\n"
        + table(["what", "n", "p50", "p95"], rows)
        + f"\nA first visit takes {done.first_bytes / 1e6:.2f} MB and {done.first_s:.1f} s. "
        f"A label with the next trace takes {done.bytes_a_label / 1000:.1f} kB; of it up to "
        f"{done.bytes_a_trace / 1000:.1f} kB (uncompressed) are that trace.\n"
    )


def path_part(folder: Path, n: int) -> str:
    """Time the server's part of a label by the size of the batch and the number of reviewers."""
    rows: list[list[object]] = []
    for items in (300, 3_000, 20_000):
        for people in (1, 20):
            for times in path_times(folder, items=items, people=people, n=n):
                rows.append([f"{items:,}", people, times.what, times.n, times.p50, times.p95])
    return (
        "### The server's part of a label\n\nProcessor time, without browser and Streamlit; a "
        "third of the batch was labelled before.\n\n"
        + table(["items", "reviewers", "what", "n", "p50", "p95"], rows)
    )  # fmt: skip


def load_part(done: Load) -> str:
    """Say what the load came to."""
    alone = done.alone
    rows = [
        [t.what, t.n, t.p50, t.p95, f"{t.p95 / alone.p95:.2f}"]
        for t in (alone, done.during_snapshot, done.during_import)
    ]
    return (
        f"### {done.people} reviewers at work\n\n"
        "Websockets that speak the page's protocol to the real server, no browsers (they would "
        "take the cores that are measured); a label is sent with a draft before it, and timed "
        "until the server has confirmed it.\n\n"
        + table(["label sent to confirmed", "n", "p50", "p95", "p95 ratio"], rows)
        + f"\nFor {done.seconds:.0f} s: {done.per_second:.1f} labels/s, {done.snapshots} snapshots "
        f"written. During an import of {done.import_mb:.0f} MB by another process "
        f"({done.import_s:.0f} s): {done.per_second_import:.1f} labels/s. Of {done.labels} "
        f"confirmed labels {done.lost} lost, {done.doubled} doubled, {done.refused} refused.\n"
    )


def crash_part(folder: Path, rounds: int, seed: int) -> str:
    """Say what was left after the kills."""
    done, missing = crash(Server(folder / "crash.duckdb"), rounds=rounds, n_people=6, seed=seed)
    return (
        f"### {done.rounds} x SIGKILL under load\n\n"
        f"Six reviewers without a pause; {done.labels} labels and {done.drafts} open drafts were "
        f"confirmed, {done.lost} of them lost, {done.doubled} doubled, {done.refused} refused "
        f"({done.seconds:.0f} s).\n" + "".join(f"* lost: {what}\n" for what in missing)
    )


@click.command()
@click.option("--part", "parts", multiple=True, type=click.Choice(PARTS))
@click.option("--seed", default=1, show_default=True)
@click.option("--labels", default=100, show_default=True, help="Labels a length.")
@click.option("--people", default=20, show_default=True)
@click.option("--seconds", default=120.0, show_default=True)
@click.option("--megabytes", default=200.0, show_default=True)
@click.option("--rounds", default=25, show_default=True)
@click.option("--port", default=8955, show_default=True, help="Of the empty page.")
@click.option("--output", type=click.Path(path_type=Path), default=PAGE, show_default=False)
def main(
    parts: tuple[str, ...],
    seed: int,
    labels: int,
    people: int,
    seconds: float,
    megabytes: float,
    rounds: int,
    port: int,
    output: Path,
) -> None:
    """Measure and write the page."""
    chosen = parts or PARTS
    busy = os.getloadavg()[0]
    found = []
    with tempfile.TemporaryDirectory() as directory:
        folder = Path(directory)
        if "path" in chosen:
            found.append(path_part(folder, labels))
        if "keys" in chosen:
            found.append(keys_part(folder, port, labels))
        if "network" in chosen:
            found.append(network_part(folder, labels))
        if "load" in chosen:
            done = load(
                folder, n_people=people, seconds=seconds, megabytes=megabytes, think_s=1.0,
                seed=seed,
            )  # fmt: skip
            found.append(load_part(done))
        if "crash" in chosen:
            found.append(crash_part(folder, rounds, seed))
    head = run_head(["asr-calibration", "streamlit", "duckdb"], load=busy, seed=seed)
    section = head + "\n".join(found)
    add_section(output, section, head=HEAD)
    click.echo(section)


if __name__ == "__main__":
    main()
