"""Repeated trials, plans of them, and audits of tasks, as documents."""

from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path

from calibration.analyses.reliability.tasks import (
    DISAGREE,
    EVERYBODY,
    IDLE,
    NOBODY,
    TaskAudit,
)
from calibration.analyses.reliability.trial_changes import AgainstBaseline, TrialsChange
from calibration.analyses.reliability.trial_plan import TrialPlan, TrialPlanCase
from calibration.analyses.reliability.trials import (
    FailureModes,
    PassFigure,
    StepCompounding,
    SuccessAfterRetries,
    TaskTrials,
    TrialGroup,
    TrialsAnalysis,
)
from calibration.reporting.document import (
    Block,
    Document,
    Facts,
    Listing,
    Name,
    Section,
    Table,
    Words,
    notes,
    number,
    percent,
    percent_number,
    reading_lines,
    table_of,
    usd,
)
from calibration.reporting.sections.success_rate import (
    between,
    count,
    p_value,
    points,
    share,
    small,
)
from calibration.statistics.resampling import GAFFKE
from calibration.tables.reading import REASONS, MissingOutcome, Reading
from calibration.text import counted
from calibration.text import points as half_points

MOST_TASKS_SHOWN = 20
BAYESIAN = "Bayesian"

ABOUT_PASSES = (
    "pass@k: at least one of k trials passes; pass^k: all k pass. Means over tasks, each with the "
    "same weight; tasks with fewer than k trials are left out."
)


def trials(found: TrialsAnalysis) -> Document:
    """Return repeated trials as a document."""
    of = [word for word in (found.model, found.agent_version) if word]
    about = [Name(f"success: {found.success_source}")]
    if of:
        about.append(Name(f"trials of {', '.join(of)} alone"))
    main = _passes_table(found)
    parts: list[tuple[str, list[Block]]] = [
        ("", [main, small(ABOUT_PASSES), *_listed(found.notes), *_curve(found)]),
        (BAYESIAN, list(_bayesian(found))),
        ("As if trials were independent", list(_independent(found))),
        (f"At least {100 * found.g_threshold:g} % of k trials pass", list(_g_pass(found))),
        ("With retries", list(_retries(found.retries))),
        ("Step by step", list(_steps(found.step_compounding))),
        ("Failures", list(_failures(found.failure_modes))),
        (by_group("difficulty"), list(_groups("difficulty", found.by_difficulty))),
        (by_group("category"), list(_groups("category", found.by_category))),
        (by_group("tier"), list(_groups("tier", found.by_tier))),
        ("Against the baseline", list(_baseline(found.baseline))),
        ("Tasks", list(_tasks(found))),
        ("What was left out", list(_left_out(found.reading, found.missing_outcome))),
        ("How it was made", [_made(found)]),
    ]
    few = found.notes[:2]
    answers = [] if found.baseline is None else [Words(text=_answer(found.baseline))]
    return Document(
        title=f"Repeated trials: {counted(found.n_tasks, 'task')}, "
        f"{counted(found.n_trials, 'trial')}",
        about=tuple(about),
        sections=tuple(
            Section(title=title, blocks=tuple(blocks)) for title, blocks in parts if blocks
        ),
        brief=(Words(text=about[0]), main, *answers, *_listed(few)),
        reading=reading_lines(found.reading),
    )


def _left_out(
    readings: Reading | tuple[Reading, ...], missing: MissingOutcome | None = None
) -> Iterator[Block]:
    """Yield the rows that do not count, by reason, and what pass@1 is whatever they were."""
    tables = (readings,) if isinstance(readings, Reading) else readings
    cells = [
        (
            REASONS[one.code], count(one.rows),
            Name("" if one.first is None else f"{Path(table.place).name}, {one.first}"),
        )
        for table in tables
        for one in table.left_out
    ]  # fmt: skip
    if cells:
        yield table_of("", ("reason", "rows", "for instance"), cells)
    if missing is not None:
        limits = f" {between(missing.limits, 1)}" if missing.limits else ""
        yield small(
            f"pass@1 is {percent(missing.low)} if all trials left out failed, "
            f"{percent(missing.high)} if all passed{limits}."
        )


def by_group(name: str) -> str:
    """Return the title of the section on a group of tasks: difficulty, category or tier."""
    return f"By {name}"


def _listed(items: Iterable[str]) -> list[Block]:
    found = tuple(items)
    return [Listing(items=found)] if found else []


def _passes_table(found: TrialsAnalysis) -> Table:
    both = [(k, found.pass_at_k[k], found.pass_hat_k[k]) for k in found.ks]
    return table_of(
        "",
        ("k", "pass@k", "pass^k", "tasks", "too few trials", "band"),
        [
            (
                str(k),
                share(at.estimate),
                share(hat.estimate),
                count(at.estimate.n),
                count(at.n_tasks_too_few_trials),
                found.band[k] or "-",
            )
            for k, at, hat in both
        ],
        notes=_notes((f"k = {k}", one) for k, *pair in both for one in pair),
    )


def _notes(named: Iterable[tuple[str, PassFigure]]) -> Iterator[str]:
    return notes((name, one.estimate) for name, one in named)


def _curve(found: TrialsAnalysis) -> Iterator[Block]:
    curve = found.task_set
    if curve.largest_k is None:
        return
    if curve.same_tasks:
        yield small(f"Every k rests on the same {counted(curve.n_tasks, 'task')}.")
        return
    yield table_of(
        f"The {counted(curve.n_tasks, 'task')} with {curve.largest_k} trials or more, at every k",
        ("k", "pass@k", "pass^k"),
        [(str(k), percent(at), percent(curve.pass_hat_k[k])) for k, at in curve.pass_at_k.items()],
    )


def _pairs(
    title: str, at: Mapping[int, PassFigure], hat: Mapping[int, PassFigure]
) -> Iterator[Block]:
    yield table_of(
        title,
        ("k", "pass@k", "pass^k"),
        [(str(k), share(one.estimate), share(hat[k].estimate)) for k, one in at.items()],
        notes=_notes((f"k = {k}", one) for k in at for one in (at[k], hat[k])),
    )


def _bayesian(found: TrialsAnalysis) -> Iterator[Block]:
    one = found.bayesian
    yield from _pairs("", one.pass_at_k, one.pass_hat_k)
    words = f"{one.method}. Chance of a pass {percent(one.mean)}"
    if one.correlation is not None:
        words += f"; correlation of two trials of one task {one.correlation:.3f}"
    yield small(f"{words}.")


def _independent(found: TrialsAnalysis) -> Iterator[Block]:
    one = found.independent_trials
    yield from _pairs("", one.pass_at_k, one.pass_hat_k)
    yield small(f"{one.label}. Not what the trials of a task show: use it only for larger k.")


def _g_pass(found: TrialsAnalysis) -> Iterator[Block]:
    yield table_of(
        "",
        ("k", "G-Pass@k", "tasks"),
        [
            (str(k), share(one.estimate), count(one.estimate.n))
            for k, one in found.g_pass_at_k.items()
        ],
        notes=_notes((f"k = {k}", one) for k, one in found.g_pass_at_k.items()),
    )


def _retries(found: SuccessAfterRetries) -> Iterator[Block]:
    items = [
        ("success", percent_number(found.success.estimate)),
        ("expected tries", number(found.expected_tries.estimate)),
        ("success, independent trials", percent_number(found.independent_success.estimate)),
        ("expected tries, independent trials", number(found.independent_tries.estimate)),
    ]
    if found.expected_usd is not None:
        items.append(("expected cost of a task", usd(found.expected_usd)))
    yield Facts(items=tuple(items))
    yield small(f"A failed task is tried again, at most {counted(found.retries, 'time')}.")


def _steps(found: StepCompounding | None) -> Iterator[Block]:
    if found is None:
        return
    limits = ""
    if found.interval is not None:
        limits = f" {between(found.interval, 2)}"
    rate = f"{100 * found.step_rate:.2f} %{limits}"
    yield Words(text=f"pass@1 with {found.steps} independent steps, all needed, is {rate} a step.")
    yield table_of(
        "",
        ("steps", "all succeed"),
        [(str(n), percent(chance)) for n, chance in found.curve.items()],
    )


def _failures(found: FailureModes | None) -> Iterator[Block]:
    if found is None or not found.n_failed:
        return
    cells = [(Name(of.tag), count(of.n), share(of.share), count(of.n_tasks)) for of in found.modes]
    head = ("failure mode", "failed trials", "share of failures", "tasks")
    yield table_of(
        "", head, cells, notes=notes((Name(of.tag), of.share) for of in found.modes),
        most_in_text=MOST_TASKS_SHOWN, empty="no failed trial has a tag",
    )  # fmt: skip
    rest = f"{found.modes_left_out:,} rarer tags are left out. " if found.modes_left_out else ""
    yield small(
        f"{rest}Of {counted(found.n_failed, 'failed trial')}, {found.n_untagged:,} without a tag; "
        "a trial may have several."
    )


def _groups(what: str, groups: Mapping[str, TrialGroup]) -> Iterator[Block]:
    if not groups:
        return
    rows = [
        (name, k, one, one.pass_at_k[k], one.pass_hat_k[k])
        for name, one in groups.items()
        for k in one.pass_at_k
    ]
    yield table_of(
        "",
        (what, "k", "pass@k", "pass^k", "tasks", "trials", "band"),
        [
            (
                Name(name),
                str(k),
                share(at.estimate),
                share(hat.estimate),
                count(at.estimate.n),
                count(one.n_trials),
                one.band[k] or "-",
            )
            for name, k, one, at, hat in rows
        ],
        notes=_notes(
            (Name(f"{name}, k = {k}"), figure_) for name, k, _, *both in rows for figure_ in both
        ),
    )


def _answer(found: AgainstBaseline) -> str:
    change = found.pass_at_1
    return (
        f"pass@1 against {Path(found.source).name}: {points(change.difference).removesuffix(' +')}"
        f", p {p_value(change.difference.p_value)}: {change.evidence}"
    )


def _baseline(found: AgainstBaseline | None) -> Iterator[Block]:
    if found is None:
        return
    how = (
        f"paired by task: {found.n_shared:,} in both, {found.n_new:,} new, {found.n_gone:,} gone"
        if found.paired
        else "no task is in both: two samples of tasks"
    )
    yield Words(text=f"{_answer(found)}; {how}.")
    changes = [("pass@1", "", found.pass_at_1)]
    changes += [(f"pass^{k}", "", one) for k, one in found.pass_hat_k.items()]
    for groups in (found.by_difficulty, found.by_category, found.by_tier):
        changes += [("pass@1", name, one) for name, one in groups.items()]
    yield table_of(
        "",
        ("figure", "tasks of", "before", "now", "change", "p", "p (Holm)", "tasks", "evidence"),
        [_change_row(*row) for row in changes],
        notes=notes(
            (Name(f"{name} {group}".strip()), one.difference.estimate)
            for name, group, one in changes
        ),
    )


def _change_row(name: str, group: str, one: TrialsChange) -> tuple[str, ...]:
    return (
        name,
        Name(group) if group else "all",
        percent(one.before),
        percent(one.after),
        points(one.difference),
        p_value(one.difference.p_value),
        p_value(one.p_holm),
        count(one.n_tasks),
        one.evidence.partition(":")[0],
    )


def _tasks(found: TrialsAnalysis) -> Iterator[Block]:
    largest = max(found.ks)
    yield table_of(
        "",
        ("task", "trials", "passes", "pass@1", f"pass@{largest}", f"pass^{largest}", "shrunk"),
        [_task_row(one, found.ks[0], largest) for one in found.tasks],
        most_in_text=MOST_TASKS_SHOWN,
        folded=len(found.tasks) > MOST_TASKS_SHOWN,
    )
    yield small(
        f"shrunk: pass^{found.ks[0]} of the task, drawn towards the other tasks by the hierarchy."
    )
    if found.tasks_left_out:
        yield small(f"{found.tasks_left_out:,} more tasks are not listed.")


def _task_row(one: TaskTrials, first: int, largest: int) -> tuple[str, ...]:
    shrunk = one.shrunk_pass_hat_k.get(first)
    return (
        Name(one.task_id),
        count(one.n),
        count(one.c),
        percent(one.c / one.n),
        percent(one.pass_at_k[largest]),
        percent(one.pass_hat_k[largest]),
        "-" if shrunk is None else share(shrunk).removesuffix(" +"),
    )


def _set_aside(found: TaskAudit) -> list[Block]:
    if found.reading is not None:
        return list(_left_out(found.reading))
    cells = [(of.reason, count(of.n), Name(", ".join(of.examples))) for of in found.set_aside]
    return [table_of("", ("reason", "runs", "for instance"), cells)] if cells else []


def _made(found: TrialsAnalysis) -> Facts:
    level = f"{100 * found.confidence_level:g} %"
    return Facts(
        items=(
            *(
                ("read", Name(f"{file.name}, SHA-256 {(file.sha256 or '-')[:16]}"))
                for file in found.sources
            ),
            (
                "intervals",
                f"{level}, {GAFFKE}, {found.n_resamples:,} draws, seed {found.seed}",
            ),
            ("software", f"asr-calibration {found.version}"),
            ("fingerprint", found.fingerprint),
        )
    )


SOLVED = {
    NOBODY: ("nobody solves", "broken or too hard: try it by hand, look at its grader"),
    EVERYBODY: (
        "everybody solves",
        "tells no two agents apart: keep it as a check, add harder ones",
    ),
    DISAGREE: ("grade and people disagree", "read these runs, mend the grader"),
    IDLE: ("solved by doing nothing", "a pass without an answer or a call: mend the grader"),
}


def task_audit(found: TaskAudit) -> Document:
    """Return the audit of a set of tasks as a document."""
    remarkable = sum(bool(of.findings) for of in found.tasks)
    main, words = _findings(found), [Words(text=text) for text in _audit_words(found)]
    parts: list[tuple[str, list[Block]]] = [
        ("", [main, *words, *_listed(found.notes)]),
        ("Tasks", list(_audited_tasks(found))),
        ("What was left out", _set_aside(found)),
    ]
    return Document(
        title=f"Tasks: {remarkable:,} of {counted(found.n_tasks, 'task')} to look at, "
        f"{counted(found.n_runs, 'run')}",
        about=(Name(f"success: {found.success_source}"),),
        sections=tuple(
            Section(title=title, blocks=tuple(blocks)) for title, blocks in parts if blocks
        ),
        brief=(main, *words, *_listed(found.notes)),
        reading=(
            *reading_lines(found.reading),
            *(f"Left out: {of.n:,} {of.reason}." for of in found.set_aside),
        ),
    )


def _findings(found: TaskAudit) -> Table:
    return table_of(
        "",
        ("tasks that", "tasks", "share", "first", "what to do"),
        [
            (SOLVED[of.name][0], count(of.n), share(of.share), Name(", ".join(of.first[:3]) or "-"),
             SOLVED[of.name][1])
            for of in found.findings
        ],
        notes=notes((SOLVED[of.name][0], of.share) for of in found.findings),
    )  # fmt: skip


def _audit_words(found: TaskAudit) -> Iterator[str]:
    yield (
        f"{found.n_telling:,} of {counted(found.n_tasks, 'task')} have passes and failures: only "
        "these can show that one agent passes them more often."
    )
    if found.n_one_run:
        yield (
            f"{counted(found.n_one_run, 'task')} with one run: how much it varies is not known; "
            "run each task twice or more."
        )
    if found.agreement is not None:
        yield f"Grade and people agree on {percent_number(found.agreement)} of the reviewed runs."
    if found.n_unchecked:
        yield f"Without expected state and reference: {counted(found.n_unchecked, 'task')}."


def _audited_tasks(found: TaskAudit) -> Iterator[Block]:
    yield table_of(
        "",
        ("task", "runs", "passes", "pass rate", "share of variance", "reviewed", "false passes",
         "false failures", "idle passes", "finding"),
        [
            (
                Name(of.task_id), count(of.n), count(of.c), share(of.pass_rate),
                percent(of.share_of_variance), count(of.n_reviewed),
                *(count(n) if of.n_reviewed else "-" for n in (of.n_false_pass, of.n_false_fail)),
                "-" if of.n_idle is None else count(of.n_idle),
                ", ".join(SOLVED[name][0] for name in of.findings) or "-",
            )
            for of in found.tasks
        ],
        most_in_text=MOST_TASKS_SHOWN,
        folded=len(found.tasks) > MOST_TASKS_SHOWN,
    )  # fmt: skip
    yield small(
        "share of variance: the part of the variance of the rate over these tasks that comes from "
        "the task; a task that always or never passes adds nothing to a comparison."
    )
    if found.tasks_left_out:
        yield small(f"{found.tasks_left_out:,} more tasks are not listed.")


def trial_plan(found: TrialPlan) -> Document:
    """Return how many tasks and trials a half-width takes, as a document."""
    figure_ = "pass@1" if found.k == 1 else f"pass^{found.k}"
    level = f"{100 * found.confidence_level:g} %"
    for_tasks = "" if found.n_tasks is None else f" from {counted(found.n_tasks, 'task')}"
    return Document(
        title=f"{figure_} to {half_points(found.half_width)} ({level}){for_tasks}",
        about=(Name(f"basis: {found.basis}"),),
        sections=tuple(Section(title="", blocks=tuple(_case(found, case))) for case in found.cases),
        reading=reading_lines(found.reading),
    )


def _case(found: TrialPlan, case: TrialPlanCase) -> Iterator[Block]:
    yield table_of(
        f"{case.name}: chance of a pass {percent(case.mean)}, correlation of two trials of a task "
        f"{case.correlation:.3f}",
        ("trials of each task", "tasks", "runs", "half-width", ""),
        [
            (
                count(one.n_trials),
                "-" if one.n_tasks is None else count(one.n_tasks),
                "-" if one.n_runs is None else count(one.n_runs),
                "-" if one.half_width is None else half_points(one.half_width),
                "enough" if one.enough else "not enough",
            )
            for one in case.combinations
        ],
    )
    if found.n_tasks is not None:
        fewest = "no number of trials is enough: add tasks"
        if case.fewest_trials is not None:
            fewest = f"{counted(case.fewest_trials, 'trial')} of each task are enough"
        yield small(f"With {counted(found.n_tasks, 'task')}, {fewest}.")
