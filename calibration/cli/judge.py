"""Commands that make, run and examine a judge at an endpoint of our own choice."""

import sys
from collections.abc import Callable
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any

import click
import numpy as np

from calibration.cli.terminal import (
    EXISTING,
    Command,
    FiniteRange,
    Group,
    Output,
    open_to_read,
    open_to_write,
    origin,
    print_json,
    print_lines,
    print_next,
    print_result,
    with_json,
    with_output,
    with_seed,
    with_store,
    working,
)
from calibration.errors import InputError, JudgeRunError

FORMS = ["practice", "exam_a", "exam_b"]


def with_traces(command: Command) -> Command:
    """Add the options that choose traces; they become one `Chosen`."""
    options = (
        click.option("--batch", help="Judge the traces of this batch."),
        click.option("--workflow", help="Judge the traces of this workflow."),
        click.option(
            "--form", type=click.Choice(FORMS), help="Judge this form of the reference set instead."
        ),
        click.option(
            "--limit", type=click.IntRange(1), help="Judge so many of them, the same each time."
        ),
    )
    for option in reversed(options):
        command = option(command)
    return command


def with_rates(command: Command) -> Command:
    """Add the limits of the endpoint."""
    options = (
        click.option("--requests-per-minute", type=FiniteRange(0, min_open=True),
                     help="Send no more requests than this."),
        click.option("--tokens-per-minute", type=FiniteRange(0, min_open=True),
                     help="Send and ask for no more tokens than this."),
        click.option("--at-once", type=click.IntRange(1, 32), default=32, show_default=True,
                     help="Keep at most so many requests in flight."),
    )  # fmt: skip
    for option in reversed(options):
        command = option(command)
    return command


def _chosen(batch: str | None, workflow: str | None, form: str | None, limit: int | None) -> Any:
    from calibration.analyses.judging.runs import Chosen

    return Chosen(batch=batch, workflow=workflow, form=form, limit=limit)


def _rates(requests_per_minute: float | None, tokens_per_minute: float | None, at_once: int) -> Any:
    from calibration.judging.pace import START_CONCURRENCY, Rates

    return Rates(
        requests_per_minute=requests_per_minute, tokens_per_minute=tokens_per_minute,
        start=min(START_CONCURRENCY, at_once), most=at_once,
    )  # fmt: skip


def writer(path: Path) -> Callable[[], Any]:
    """Return what opens the store for writing, from any thread, under the name of this command."""
    who = origin()
    return lambda: open_to_write(path).by_way_of(who)


@click.group(cls=Group)
def judge() -> None:
    """Run a judge of your own on the reviewers' questions, and see what it is worth."""


@judge.command()
@click.argument("name")
@with_store
@click.option("--model", help="Ask for this model, as the endpoint names it.")
@click.option("--url", help="The address of the endpoint, up to /v1.")
@click.option(
    "--from", "parent", metavar="JUDGE",
    help="Take over the settings of this judge where none are given; both are of one line.",
)  # fmt: skip
@click.option("--kind", help="Name the kind of endpoint, such as vllm.  [default: its host]")
@click.option("--samples", type=click.IntRange(1, 25), help="Ask so many times.  [default: 3]")
@click.option(
    "--examples",
    type=click.IntRange(0, 10),
    help="Show so many practice traces of each class.  [default: 0]",
)
@click.option(
    "--plan",
    type=click.Choice(["one_call", "per_node", "plan_first"]),
    help="Ask all questions at once, each alone, or for a plan first.",
)
@click.option(
    "--thoughts",
    type=click.Choice(["shown", "withheld"]),
    help="Show the agent's own words between its calls, or not.",
)
@click.option("--temperature", type=FiniteRange(0, 2), help="Set the temperature.")
@click.option("--model-seed", "seed", type=click.IntRange(0), help="Set the seed of the model.")
@click.option("--token-limit", type=click.IntRange(64), help="Bound an answer to so many tokens.")
@click.option(
    "--context",
    "context_tokens",
    type=click.IntRange(1_000),
    help="Cut traces so that the prompt fits into so many tokens.",
)
@click.option("--reasoning-effort", help="Ask for this effort, where the model reasons.")
@click.option("--role", type=EXISTING, help="Read what the judge is told to be from this file.")
@click.option("--price-in", type=FiniteRange(0), help="USD for a million input tokens.")
@click.option("--price-out", type=FiniteRange(0), help="USD for a million output tokens.")
@click.option("--price-cached", type=FiniteRange(0), help="USD for a million cached ones.")
@with_json
def new(
    name: str,
    path: Path,
    model: str | None,
    url: str | None,
    parent: str | None,
    kind: str | None,
    examples: int | None,
    role: Path | None,
    price_in: float | None,
    price_out: float | None,
    price_cached: float | None,
    as_data: bool,
    **settings: Any,
) -> None:
    """Make a judge: ask the endpoint what it can do, and store the version under NAME.

    A version holds all that can change an answer; to change anything, make another one. The key of
    the endpoint is read from ASR_JUDGE_KEY and stored nowhere.

    \b
    asr judge new strict --model gpt-x --url https://api.example.org/v1 --price-in 2 --price-out 8
    asr judge new strict-2 --from strict --examples 1
    """
    from calibration.analyses.judging import versions
    from calibration.files import read_text
    from calibration.judging.versions import MOST_TEXT
    from calibration.reporting.sections import judging as shown

    if parent is None and (model is None or url is None):
        raise InputError("give --model and --url, or --from a judge that has them")
    with open_to_write(path) as store:
        entry = versions.make_judge(
            store, name, model=model, address=url, kind=kind, parent=parent,
            prices=_prices(price_in, price_out, price_cached), per_class=examples,
            role=None if role is None else read_text(role, most=MOST_TEXT),
            settings=settings,
        )  # fmt: skip
    print_result(entry, shown.made, Output(full=False, as_data=as_data))


def _prices(price_in: float | None, price_out: float | None, price_cached: float | None) -> Any:
    from calibration.judging.budget import Prices

    if price_in is None and price_out is None:
        return None
    if price_in is None or price_out is None:
        raise InputError("give both --price-in and --price-out")
    return Prices(input=price_in, output=price_out, cached=price_cached)


@judge.command()
@click.argument("name", required=False)
@with_store
@click.option("--model", help="Ask for this model; without NAME.")
@click.option("--url", help="The address of the endpoint; without NAME, or if it has moved.")
@with_json
def probe(name: str | None, path: Path, model: str | None, url: str | None, as_data: bool) -> None:
    """Ask an endpoint what it can do, in about five tiny calls; nothing is stored.

    With NAME, it also says whether a judge could still be asked there as it was made.

    \b
    asr judge probe strict
    asr judge probe --model gpt-x --url https://api.example.org/v1
    """
    from calibration.analyses.judging import versions
    from calibration.judging.versions import misfit

    entry = None
    if name is not None:
        with open_to_read(path) as store:
            entry = versions.entry_of(store.judge(name))
        model, url = model or entry.version.model, url or entry.address
    if model is None or url is None:
        raise InputError("name a judge, or give --model and --url")
    found = versions.ask_endpoint(url, model)
    reason = None if entry is None else misfit(entry.version, found.capabilities)
    before = "" if entry is None else entry.capabilities.model_returned
    moved = bool(before) and before != found.capabilities.model_returned
    if as_data:
        print_json(found.to_dict() | {"fits": reason is None, "reason": reason, "moved": moved})
    else:
        print_lines(found.findings)
        if entry is not None:
            words = f"Judge {name} can be asked as it was made." if reason is None else reason
            print_lines([words])
        if moved:
            now = found.capabilities.model_returned
            print_lines([f"It calls itself {now} now, {before} when the judge was made: "
                         "make a new judge, its answers may differ."])  # fmt: skip
    if reason is not None:
        raise JudgeRunError(f"judge {name} does not fit the endpoint: {reason}")


@judge.command()
@click.argument("name")
@with_store
@with_traces
@with_rates
@with_output
def estimate(
    name: str, path: Path, batch: str | None, workflow: str | None, form: str | None,
    limit: int | None, requests_per_minute: float | None, tokens_per_minute: float | None,
    at_once: int, output: Output,
) -> None:  # fmt: skip
    """Say what a run would need, in requests, tokens, money and time; nothing is sent.

    \b
    asr judge estimate strict
    asr judge estimate strict --form exam_a
    """
    from calibration.analyses.judging import runs, versions
    from calibration.reporting.sections import judging as shown

    with open_to_write(path) as store:
        found = runs.estimate_run(
            store, name, _chosen(batch, workflow, form, limit),
            rates=_rates(requests_per_minute, tokens_per_minute, at_once),
        )  # fmt: skip
        entry = versions.entry_of(store.judge(name))
    if output.as_data:
        from calibration.reporting import to_json

        about = {"judge": name, "n_traces": len(found.trace_ids), "anchors": len(found.anchors)}
        print_json(about | to_json.data(found.cost))
        return
    print_result((entry, found), shown.estimated, output)


@judge.command()
@click.argument("name")
@with_store
@with_traces
@with_rates
@click.option("--cap-usd", type=FiniteRange(0, min_open=True), help="Spend at most this.")
@click.option("--cap-tokens", type=click.IntRange(1), help="Use at most so many tokens.")
@click.option("--run", "run_name", help="Name the run.  [default: the judge and a number]")
@click.option("--url", help="Ask at this address instead of that of the judge.")
@with_json
def run(
    name: str, path: Path, batch: str | None, workflow: str | None, form: str | None,
    limit: int | None, requests_per_minute: float | None, tokens_per_minute: float | None,
    at_once: int, cap_usd: float | None, cap_tokens: int | None, run_name: str | None,
    url: str | None, as_data: bool,
) -> None:  # fmt: skip
    """Judge traces, and store the verdicts as they come; the app may stay open.

    The cap is hard: a request leaves only if all that is spent, reserved and possible stays under
    it. What is answered is written down before it is read and never asked again, so that a run may
    be ended at any time and resumed.

    \b
    asr judge run strict --cap-usd 5
    asr judge run strict --form exam_a --cap-tokens 2000000
    """
    from calibration.analyses.judging import runs
    from calibration.judging.budget import Cap

    if cap_usd is None and cap_tokens is None:
        raise InputError("give a cap: --cap-usd, or --cap-tokens where prices are not known")
    _check_extra()
    with open_to_write(path) as store:
        folder = runs.plan(
            store, name, _chosen(batch, workflow, form, limit),
            cap=Cap(usd=cap_usd, tokens=cap_tokens), run_name=run_name, address=url,
            rates=_rates(requests_per_minute, tokens_per_minute, at_once),
        )  # fmt: skip
    _work(path, folder, as_data)


def _check_extra() -> None:
    """Name the command that installs the extra, before anything is stored."""
    from calibration.judging.transport import INSTALL

    try:
        import openai  # noqa: F401
    except ImportError as error:
        raise JudgeRunError(f"a judge needs the extra: {INSTALL}") from error


def _work(path: Path, folder: Path, as_data: bool) -> None:
    from calibration.analyses.judging import runs
    from calibration.analyses.judging.versions import endpoint_key
    from calibration.judging.runner import FINISHED

    with _shown(folder):
        runs.work(path, folder, key=endpoint_key(), write=writer(path))
    state = runs.run_state(folder)
    _print_states([state], as_data)
    if state.progress is None or state.progress.state != FINISHED:
        raise JudgeRunError(f"run {folder.name} has not finished; the lines above say why")


@contextmanager
def _shown(folder: Path) -> Any:
    """Show the progress of a run on standard error while it works, if that is a terminal."""
    from calibration.judging.journal import read_progress

    def line(_seconds: float) -> str | None:
        now = read_progress(folder)
        if now is None:
            return None
        of = "" if now.total is None else f" of {now.total:,}"
        spent = "" if now.spent_usd is None else f", ${now.spent_usd:.2f}"
        left = "" if now.eta_s is None else f", about {now.eta_s / 60:.0f} min left"
        return f"{now.verdicts:,}{of} samples{spent}{left}"

    if sys.stderr.isatty():
        click.echo(f"run {folder.name}; `asr judge status` shows it from elsewhere", err=True)
    with working(line):
        yield


def _print_states(states: Any, as_data: bool) -> None:
    from calibration.reporting import to_json
    from calibration.reporting.sections import judging as shown

    if as_data:
        print_json(to_json.data(states))
    else:
        print_result(states, shown.status, Output(full=False))


@judge.command()
@click.argument("run_name", metavar="[RUN]", required=False)
@with_store
@with_json
def status(run_name: str | None, path: Path, as_data: bool) -> None:
    """Show how far runs are: judged, pending, in doubt, causes, spent, time left.

    \b
    asr judge status
    asr judge status strict-001 --json
    """
    from calibration.analyses.judging import runs

    folder = runs.run_folder(path, run_name)
    _print_states([runs.run_state(folder)] if run_name else runs.run_states(path), as_data)


def _ask(path: Path, run_name: str | None, word: str) -> None:
    from calibration.analyses.judging import runs
    from calibration.judging.journal import WORKING, write_control

    folder = runs.run_folder(path, run_name)
    progress = runs.run_state(folder).progress
    if progress is None or progress.state not in WORKING:
        raise JudgeRunError(f"no worker is at run {folder.name}, so there is nothing to {word}")
    write_control(folder, word)
    print_lines([f"asked the worker of {folder.name} to {word}"])
    print_next("judge status")


@judge.command()
@click.argument("run_name", metavar="[RUN]", required=False)
@with_store
def pause(run_name: str | None, path: Path) -> None:
    """Let no further request leave; the worker waits.

    \b
    asr judge pause
    """
    _ask(path, run_name, "pause")


@judge.command()
@click.argument("run_name", metavar="[RUN]", required=False)
@with_store
def stop(run_name: str | None, path: Path) -> None:
    """End a run: requests in flight have 30 seconds; `resume` goes on later.

    \b
    asr judge stop
    """
    _ask(path, run_name, "stop")


@judge.command()
@click.argument("run_name", metavar="[RUN]", required=False)
@with_store
@with_json
def resume(run_name: str | None, path: Path, as_data: bool) -> None:
    """Go on with a run: one that is paused, or one whose worker has ended.

    No request with an answer in the journal is sent again.

    \b
    asr judge resume
    """
    from calibration.analyses.judging import runs
    from calibration.judging.journal import WORKING

    folder = runs.run_folder(path, run_name)
    progress = runs.run_state(folder).progress
    if progress is not None and progress.state in WORKING:
        _ask(path, folder.name, "resume")
        return
    _check_extra()
    _work(path, folder, as_data)


@judge.command()
@click.argument("run_name", metavar="RUN")
@with_store
def close(run_name: str, path: Path) -> None:
    """Give what a run could not judge no verdict, for an outage; stored with who did it.

    Do this when the endpoint will not come back: such traces are otherwise pending for ever.

    \b
    asr judge close strict-001
    """
    from calibration.analyses.judging import runs

    folder = runs.run_folder(path, run_name)
    pending, n = runs.close(path, folder, by=origin(), write=writer(path))
    print_lines([f"{pending:,} of {n:,} traces have no verdict now, cause: {runs.OUTAGE}"])


@judge.command()
@click.argument("name")
@click.argument("new_name")
@with_store
def reparse(name: str, new_name: str, path: Path) -> None:
    """Read the paid answers of a judge again, with the reader of this release, as NEW_NAME.

    \b
    asr judge reparse strict strict-read-2
    """
    from calibration.analyses.judging import runs

    with open_to_write(path) as store:
        stored, missing = runs.reparse(store, name, new_name, write=writer(path))
    print_lines([f"{stored:,} traces have a verdict of {new_name}; nothing was sent"])
    if missing:
        print_lines([f"{missing:,} traces have no complete answers of {name}"])


@judge.command()
@with_store
@with_traces
@with_json
def baseline(
    path: Path, batch: str | None, workflow: str | None, form: str | None, limit: int | None,
    as_data: bool,
) -> None:  # fmt: skip
    """Judge traces with the baseline: a regression on the practice form, at no cost.

    It is the floor beside every other judge: one that is no better has not read the traces.

    \b
    asr judge baseline
    asr judge baseline --form exam_b
    """
    from calibration.analyses.judging import exams, runs

    with open_to_write(path) as store:
        ids = runs.choose_traces(store, None, _chosen(batch, workflow, form, limit))
        name, stored = exams.run_baseline(store, ids, write=writer(path))
    if as_data:
        print_json({"judge": name, "n": stored})
        return
    print_lines([f"{stored:,} traces have a verdict of {name}"])
    print_next(f"calibrate --judge {name}" if form is None else "judge compare")


@judge.command()
@click.argument("first", required=False)
@click.argument("second", required=False)
@with_store
@click.option("--batch", help="Compare on the development labels of this batch instead of exam A.")
@with_seed
@with_output
def compare(
    first: str | None, second: str | None, path: Path, batch: str | None, seed: int, output: Output
) -> None:
    """Compare judges with the humans: two on the same traces, or all on exam A.

    With two names: exact McNemar test, interval of the difference, flips with both reasons, by
    class and by question. Without: the scores of all, the best corrected for the choice.

    With --batch three labelled tasks in ten are read, the same ones each time. They may choose a
    version, so that from then on they are left out of the corrected rate of both judges.

    \b
    asr judge compare
    asr judge compare strict strict-2
    asr judge compare strict strict-2 --batch production-001
    """
    from calibration.analyses.judging import exams
    from calibration.reporting.sections import judging as shown

    if batch is not None and (first is None or second is None):
        raise InputError("name two judges to compare them on the labels of a batch")
    with (open_to_read if batch is None else open_to_write)(path) as store:
        if first is None:
            found = exams.scores(store, rng=np.random.default_rng(seed))
            print_result(found, shown.scored, output)
            return
        if second is None:
            raise InputError("name two judges, or none to see all on exam A")
        pair = exams.compare(store, first, second, batch_id=batch)
    print_result(pair, shown.compared, output)


@judge.command()
@click.argument("name")
@with_store
@with_traces
@click.option("--only", multiple=True, help="Make this change only; may be given several times.")
@click.option("--cap-usd", type=FiniteRange(0, min_open=True), help="Spend at most this.")
@click.option("--cap-tokens", type=click.IntRange(1), help="Use at most so many tokens.")
@with_seed
@with_output
def robustness(
    name: str, path: Path, batch: str | None, workflow: str | None, form: str | None,
    limit: int | None, only: tuple[str, ...], cap_usd: float | None, cap_tokens: int | None,
    seed: int, output: Output,
) -> None:  # fmt: skip
    """Change traces in ways that should not change a verdict, or should, and count what does.

    No output must be seen as none, the response of another task as not complete; orders to the
    judge, claims of the agent, order, length and a second asking should change nothing. Some 15
    requests a sample and trace: ten traces tell much.

    \b
    asr judge robustness strict --limit 10 --cap-usd 5
    asr judge robustness strict --limit 30 --only injected --cap-usd 5
    """
    from calibration.analyses.judging import probing
    from calibration.analyses.judging.versions import endpoint_key
    from calibration.judging.budget import Cap
    from calibration.reporting.sections import judging as shown

    if cap_usd is None and cap_tokens is None:
        raise InputError("give a cap: --cap-usd, or --cap-tokens where prices are not known")
    _check_extra()
    found = probing.run_probes(
        path, name, _chosen(batch, workflow, form, limit),
        cap=Cap(usd=cap_usd, tokens=cap_tokens), key=endpoint_key(),
        rng=np.random.default_rng(seed), only=only,
    )  # fmt: skip
    print_result(found, shown.probed, output)
    if found.ended is not None:
        raise JudgeRunError(f"the probes of {name} have not finished: {found.ended}")


@judge.command()
@click.argument("name")
@with_store
@click.option("--as", "new_name", metavar="NEW_NAME", help="Make a judge that is told them too.")
@click.option("--cap-usd", type=FiniteRange(0, min_open=True), help="Spend at most this.")
@click.option("--cap-tokens", type=click.IntRange(1), help="Use at most so many tokens.")
@with_output
def suggest(
    name: str, path: Path, new_name: str | None, cap_usd: float | None, cap_tokens: int | None,
    output: Output,
) -> None:  # fmt: skip
    """Ask the judge's model for rules, from practice traces on which the judge errs.

    One request, with nothing of an examination or of production in it. A rule that copies five
    words out of a practice trace is flagged, and no new judge is told it. Whether the new judge is
    better, exam A says: `asr judge compare`.

    \b
    asr judge suggest strict --cap-usd 1
    asr judge suggest strict --as strict-2 --cap-usd 1
    """
    from calibration.analyses.judging import suggesting, versions
    from calibration.judging.budget import Cap
    from calibration.reporting.sections import judging as shown

    if cap_usd is None and cap_tokens is None:
        raise InputError("give a cap: --cap-usd, or --cap-tokens where prices are not known")
    _check_extra()
    found = suggesting.suggest_rules(
        path, name, cap=Cap(usd=cap_usd, tokens=cap_tokens), key=versions.endpoint_key()
    )
    print_result(found, shown.suggested, output)
    if found.ended is not None:
        raise JudgeRunError(f"no rules for {name}: {found.ended}")
    if new_name is not None:
        if not found.usable:
            raise JudgeRunError(f"judge {new_name} was not made: every rule copies words")
        with open_to_write(path) as store:
            versions.with_rules(store, name, new_name, found.usable)
        if not output.as_data:
            print_next(f"judge run {new_name} --form exam_a")


@judge.command()
@click.argument("name")
@with_store
@click.option(
    "--minimum",
    type=FiniteRange(0, 1, min_open=True, max_open=True),
    required=True,
    help="What the lower limit has to reach.",
)
@click.option(
    "--measure",
    type=click.Choice(["agreement", "kappa"]),
    default="agreement",
    show_default=True,
    help="The minimum is of this.",
)
@with_output
def certify(name: str, path: Path, minimum: float, measure: str, output: Output) -> None:
    """Look at exam B: whether a judge reaches a minimum. The first look alone certifies.

    Each look is stored, and from the second one on a line of versions gets no certificate from
    these labels.

    \b
    asr judge certify strict --minimum .7
    """
    from calibration.analyses.judging import exams
    from calibration.reporting.sections import judging as shown

    with open_to_write(path) as store:
        found = exams.certify(store, name, minimum=minimum, measure=measure)
    print_result(found, shown.certified, output)
    if found.found.status != "certified":
        raise JudgeRunError(f"judge {name} is not certified")


@judge.command()
@click.argument("name")
@with_store
def promote(name: str, path: Path) -> None:
    """Let results take this judge where none is named.

    \b
    asr judge promote strict-2
    """
    with open_to_write(path) as store:
        store.use_judge(name)
    print_lines([f"results take judge {name} where none is named"])
    print_next("report")


@judge.command("list")
@with_store
@with_json
def list_(path: Path, as_data: bool) -> None:
    """List the judges that we run, with their verdicts and which one is in use.

    \b
    asr judge list
    """
    from calibration.analyses.judging import versions
    from calibration.reporting.sections import judging as shown

    with open_to_read(path) as store:
        entries = [versions.entry_of(stored) for stored in store.judges()]
        counts = store.judge_frame().set_index("judge_id")["n"]
        in_use = store.judge_in_use()
    rows = [(entry, int(counts.get(entry.name, 0))) for entry in entries]
    if as_data:
        print_json([
            {"judge": entry.name, "version_id": entry.version.judge_id, "verdicts": n,
             "in_use": entry.name == in_use, "parent": entry.parent, "address": entry.address,
             "version": entry.version.to_dict()}
            for entry, n in rows
        ])  # fmt: skip
        return
    print_result(rows, partial(shown.listed, in_use=in_use), Output(full=False))
