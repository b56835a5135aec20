"""Conversations, tools and loops as a document, and what graders propose as another."""

from collections.abc import Iterator

from calibration.analyses.reliability.grading import GraderResult, GradingAnalysis
from calibration.analyses.reliability.tools import (
    ConversationRow,
    KeptOrder,
    NamedTool,
    Routes,
    ScoreBand,
    StoredRoutes,
    ToolAnalysis,
    ToolRule,
)
from calibration.records import LOOP
from calibration.reliability.tools import PARTS
from calibration.reporting.document import (
    Block,
    Document,
    Headline,
    Lines,
    Name,
    Section,
    Table,
    Words,
    figure,
    notes,
    percent_cell,
    percent_figure,
    percent_number,
    reading_lines,
    table_of,
)
from calibration.text import counted

SHOWN_ROWS = 20


def document(found: ToolAnalysis) -> Document:
    """Return conversation correctness, tool correctness with its parts, rules and loops."""
    rate = found.conversation_correctness.estimate
    level = f"{100 * rate.confidence_level:g} % interval"
    n = counted(rate.n, "conversation")
    return Document(
        title="Conversations and tools",
        headline=Headline(
            name="Conversations that are correct",
            value=percent_figure(rate).partition(" [")[0],
            limits="" if rate.interval is None else _limits(rate.interval),
            half_width="",
            kind="all of their interactions are correct",
            how=f"{level}, {rate.method}, {n}",
            basis=f"{level}, {n}, {counted(found.n_interactions, 'interaction')}",
            sentence=_sentence(found),
        ),
        about=tuple(_about(found)),
        sections=(
            Section(title="Tool correctness", blocks=(_parts(found), _bands(found.bands))),
            Section(title="By tool", blocks=(_by_tool(found.by_tool),)),
            Section(title="Rules and loops", blocks=tuple(_rules(found))),
            *_several_agents(found.routes),
            Section(title="Worst conversations", blocks=(_worst(found),)),
            *_set_aside(found),
        ),
        brief=tuple(Words(text=text, kind=kind) for text, kind in _brief(found)),
        reading=reading_lines(found.reading),
    )


def _limits(interval: tuple[float, float]) -> str:
    return f"[{100 * interval[0]:.1f}, {100 * interval[1]:.1f}]"


def _sentence(found: ToolAnalysis) -> str:
    rate = found.conversation_correctness.estimate
    if rate.value is None:
        return f"No conversation can be judged: {rate.status.partition(': ')[2]}."
    right = round(rate.value * rate.n)
    verb = "is" if right == 1 else "are"
    return (
        f"Of {counted(rate.n, 'conversation')}, {right:,} {verb} correct: {percent_figure(rate)}. "
        "One wrong interaction makes a conversation wrong."
    )


def _about(found: ToolAnalysis) -> Iterator[str]:
    options = found.options
    rule = f"an answer is correct from a score of {options.answer_threshold:g}"
    if options.require_tools:
        rule += f", and its tools from {options.tool_threshold:g}"
    yield rule
    yield f"answers that are correct: {percent_number(found.answer_correctness)}"
    if options.require_tools:
        yield f"interactions that are correct: {percent_number(found.interaction_correctness)}"
    lost = found.conversation_correctness.n_left_out
    if lost:
        yield f"{counted(lost, 'conversation')} left out: a row of each was skipped"
    of_none = found.conversation_correctness.n_rows_of_none
    if of_none:
        yield (
            f"{counted(of_none, 'skipped row')} without a readable conversation_id: whatever "
            "conversations these belong to are judged without them"
        )


def _brief(found: ToolAnalysis) -> Iterator[tuple[str, str]]:
    tools = found.tool_correctness
    if tools.overall.value is None:
        yield f"Tool correctness: {tools.overall.status.replace('_', ' ', 1)}", "text"
    else:
        least = min(
            (part for part in PARTS if getattr(tools, part).value is not None),
            key=lambda part: getattr(tools, part).value,
        )
        yield (
            f"Tool correctness {figure(tools.overall)}; lowest part: {least} "
            f"{figure(getattr(tools, least))}",
            "text",
        )
    for rule, what in _broken(found):
        yield f"{Name(rule.name)}: {what}", "warning"
    for order in found.before:
        if order.n_broken:
            yield (
                f"{Name(order.later)} without {Name(order.first)} before it, in "
                f"{counted(order.n_broken, 'conversation')}",
                "warning",
            )
    if found.routes is not None and found.routes.accuracy.ok:
        yield f"Routed as expected: {percent_number(found.routes.accuracy)}", "text"
    if found.loops.n_anywhere:
        yield (
            f"{counted(found.loops.n_anywhere, 'conversation')} in a loop: identical calls "
            f"{LOOP} times or more, in a row in {found.loops.n_in_a_row:,}",
            "warning",
        )
    worst = next((of for of in found.worst if of.correct is False), None)
    if worst is not None:
        yield f"Look at first: {worst.conversation_id}", "text"


def _broken(found: ToolAnalysis) -> Iterator[tuple[ToolRule, str]]:
    for rule in found.forbidden:
        if rule.n_violating:
            yield rule, f"forbidden, called in {counted(rule.n_violating, 'conversation')}"
    for rule in found.required:
        if rule.n_violating:
            yield rule, f"required, not called in {counted(rule.n_violating, 'conversation')}"


def _parts(found: ToolAnalysis) -> Table:
    tools, weights = found.tool_correctness, found.options.tool_weights
    named = [
        ("overall", "", tools.overall),
        *((part, f"{weights[part]:g}", getattr(tools, part)) for part in PARTS),
    ]
    share = ("at the threshold", f"{found.options.tool_threshold:g}", tools.share_correct)
    cells = [(name, weight, figure(of)) for name, weight, of in named]
    cells.append((share[0], share[1], percent_cell(share[2])))
    remarks = list(notes((name, of) for name, _, of in (*named, share)))
    if tools.n_without_expected:
        n = counted(tools.n_without_expected, "interaction")
        remarks.append(f"not scored: {n} without expected calls")
    if tools.n_without_utilisation:
        n = counted(tools.n_without_utilisation, "interaction")
        remarks.append(f"scored without utilisation, which the file does not say: {n}")
    return table_of("", ("part", "weight", "mean"), cells, notes=remarks)


def _bands(bands: tuple[ScoreBand, ...]) -> Table:
    cells = [
        (
            "1" if of.low == 1 else f"[{of.low:g}, {of.high:g})",
            f"{of.n:,}",
            percent_cell(of.share),
        )
        for of in bands
    ]
    remarks = notes((cell[0], of.share) for cell, of in zip(cells, bands, strict=True))
    return table_of(
        "Bands of the score", ("score", "interactions", "share"), cells, notes=tuple(remarks)
    )


def _by_tool(tools: tuple[NamedTool, ...]) -> Table:
    cells = [
        (
            Name(of.name), f"{of.n_calls:,}", f"{of.n_expected:,}", percent_cell(of.precision),
            percent_cell(of.recall),
        )
        for of in tools
    ]  # fmt: skip
    remarks = [
        *notes((Name(f"precision of {of.name}"), of.precision) for of in tools),
        *notes((Name(f"recall of {of.name}"), of.recall) for of in tools),
    ]
    return table_of(
        "",
        ("tool", "calls", "expected", "precision", "recall"),
        cells,
        notes=remarks,
        most_in_text=SHOWN_ROWS,
        empty="no interaction has expected calls",
    )


def _rules(found: ToolAnalysis) -> Iterator[Block]:
    for title, rules in (("Forbidden", found.forbidden), ("Required", found.required)):
        if rules:
            cells = [
                (
                    Name(of.name), f"{of.n_calls:,}", f"{of.n_violating:,}",
                    percent_cell(of.violations), Name(", ".join(of.examples) or "-"),
                )
                for of in rules
            ]  # fmt: skip
            head = ("tool", "calls", "conversations against it", "share", "first")
            yield table_of(title, head, cells)
    if found.before:
        yield _orders(found.before)
        yield from _broken_orders(found.before)
    loops = found.loops
    counts = [
        (f"{LOOP} times or more", f"{loops.n_anywhere:,}", percent_cell(loops.anywhere)),
        (f"{LOOP} times in a row or more", f"{loops.n_in_a_row:,}", percent_cell(loops.in_a_row)),
    ]
    first = [Name(f"first: {', '.join(loops.examples)}")] if loops.examples else []
    yield table_of("Identical calls", ("a call", "conversations", "share"), counts, notes=first)


def _orders(rules: tuple[KeptOrder, ...]) -> Table:
    cells = [
        (
            Name(of.first), Name(of.later), percent_cell(of.kept), f"{of.n_kept:,}",
            f"{of.n_broken:,}", f"{of.n_not_applicable:,}",
        )
        for of in rules
    ]  # fmt: skip
    remarks = list(notes((Name(of.later), of.kept) for of in rules))
    if rules[0].n_left_out:
        left_out = counted(rules[0].n_left_out, "conversation")
        remarks.append(f"{left_out} with skipped rows left out: a call may be missing")
    head = (
        "first",
        "before each",
        "kept",
        "conversations that keep it",
        "break it",
        "no such call",
    )
    return table_of("Order of calls", head, cells, notes=remarks)


def _broken_orders(rules: tuple[KeptOrder, ...]) -> Iterator[Table]:
    cells = [
        (Name(of.later), Name(one.conversation_id), Name("; ".join(one.calls)))
        for of in rules
        for one in of.broken
    ]
    if cells:
        yield table_of(
            "", ("called too early", "conversation", "interaction and call"), cells,
            most_in_text=SHOWN_ROWS,
        )  # fmt: skip


def routes(found: StoredRoutes) -> Document:
    """Return where the runs of a store went and how their agents did."""
    blocks = (*_routing(found.routes, "run"), *_by_agent(found.routes, "run"))
    end = percent_number(found.correct)
    return Document(
        title=f"Several agents: {counted(found.n_runs, 'run')}, {found.n_labelled:,} labelled",
        about=(f"correct end to end, by labels: {end}",),
        sections=(Section(title="", blocks=blocks),),
    )


def _several_agents(found: Routes | None) -> Iterator[Section]:
    if found is not None:
        blocks = (*_routing(found, "interaction"), *_by_agent(found, "interaction"))
        yield Section(title="Several agents", blocks=blocks)


def _routing(found: Routes, noun: str) -> Iterator[Table]:
    if not found.confusion:
        return
    rates = (
        ("routed as expected", found.accuracy),
        ("correct, where routed as expected", found.right_then_correct),
        ("correct, where not", found.wrong_then_correct),
    )
    remarks = list(notes(rates))
    if found.n_without_expected:
        n = counted(found.n_without_expected, noun)
        remarks.append(f"not counted: {n} without an expected route")
    shares = [(name, f"{of.n:,}", percent_cell(of)) for name, of in rates]
    yield table_of("Routing", (f"{noun}s", "n", "share"), shares, notes=remarks)
    routes = {of.name: of.share for of in found.by_route}
    cells = [
        (
            Name(of.expected_route), Name(of.routed_to or "-"), f"{of.n:,}",
            percent_cell(routes[of.expected_route])
            if of.routed_to == of.expected_route and of.expected_route in routes
            else "",
        )
        for of in found.confusion
    ]  # fmt: skip
    head = ("expected", "routed to", f"{noun}s", "share of those expected")
    remarks = list(notes((Name(name), of) for name, of in routes.items()))
    yield table_of("", head, cells, notes=remarks, most_in_text=SHOWN_ROWS)


def _by_agent(found: Routes, noun: str) -> Iterator[Table]:
    cells = [(Name(of.name), f"{of.n:,}", percent_cell(of.share)) for of in found.by_agent]
    if cells:
        remarks = list(notes((Name(of.name), of.share) for of in found.by_agent))
        head = ("agent", f"{noun}s", "correct")
        yield table_of("By agent", head, cells, notes=remarks, most_in_text=SHOWN_ROWS)


def _worst(found: ToolAnalysis) -> Table:
    k = found.options.k
    return table_of(
        "",
        (
            "conversation", "correct interactions", "tools", f"interaction_pass_at_{k}",
            f"interaction_pass_hat_{k}",
        ),
        [_conversation(of) for of in found.worst],
        empty="none is wrong",
        notes=(
            "interaction_pass_at_k and _hat_k are powers of the share of correct interactions, not "
            "pass@k of trials",
        ),
    )  # fmt: skip


def _conversation(of: ConversationRow) -> tuple[str, ...]:
    powers = of.of_interactions
    return (
        Name(of.conversation_id),
        f"{of.n_correct:,} of {of.n_interactions + of.n_set_aside:,}",
        "-" if of.tool_correctness is None else f"{of.tool_correctness:.3f}",
        "-" if powers is None else f"{powers.interaction_pass_at_k:.3f}",
        "-" if powers is None else f"{powers.interaction_pass_hat_k:.3f}",
    )


def _set_aside(found: ToolAnalysis) -> Iterator[Section]:
    if found.set_aside:
        cells = [
            (Name(row.reason), f"{row.n:,}", Name(row.examples[0] if row.examples else "-"))
            for row in found.set_aside
        ]
        yield Section(
            title="Skipped",
            blocks=(
                table_of("", ("reason", "rows", "first"), cells, most_in_text=SHOWN_ROWS),
            ),
        )  # fmt: skip


PROPOSED = "Graders propose; they give no label."


def grading(found: GradingAnalysis) -> Document:
    """Return the share of runs that pass each grader, with the first that fail."""
    failing = sorted((of for of in found.graders if of.n_failed), key=lambda of: -of.n_failed)
    runs = counted(found.n_traces, "run")
    if failing:
        first = failing[0]
        title = (
            f"{runs}: some fail {len(failing)} of {counted(len(found.graders), 'grader')}, "
            f"most of them {first.name} ({first.n_failed:,})"
        )
    else:
        title = f"{runs}: none fails a grader"
    sections = [
        Section(title="Graders", blocks=(_graders(found.graders),)),
    ]
    if failing:
        lines = Lines(items=tuple(_failed(found)))
        sections.append(Section(title="The first runs that fail", blocks=(lines,)))
    labelled = [of for of in found.graders if of.against_labels is not None]
    if labelled:
        sections.append(Section(title="Beside the labels", blocks=(_beside(labelled),)))
    if found.set_aside:
        cells = [(Name(row.reason), f"{row.n:,}", Name(row.examples[0])) for row in found.set_aside]
        aside = table_of("", ("reason", "runs", "first"), cells, most_in_text=SHOWN_ROWS)
        sections.append(Section(title="Skipped", blocks=(aside,)))
    return Document(
        title=title,
        about=(PROPOSED,),
        sections=tuple(sections),
        brief=(_graders(found.graders), Words(text=PROPOSED, kind="small")),
        reading=tuple(_not_read(found)),
    )


def _not_read(found: GradingAnalysis) -> Iterator[str]:
    """Yield the runs that could not be read, in one line."""
    if found.set_aside:
        n = sum(row.n for row in found.set_aside)
        reasons = "; ".join(f"{row.n:,}: {row.reason}" for row in found.set_aside[:3])
        yield f"Left out: {n:,} of {counted(found.n_traces + n, 'run')} ({reasons})"


def _graders(graders: tuple[GraderResult, ...]) -> Table:
    cells = [
        (
            Name(of.name), percent_cell(of.share), f"{of.n_passed:,}", f"{of.n_failed:,}",
            f"{of.n_not_graded:,}", f"{of.n_not_applicable:,}",
        )
        for of in graders
    ]  # fmt: skip
    remarks = list(notes((Name(of.name), of.share) for of in graders))
    remarks += [
        Name(f"{of.name}: not graded, {row.reason} ({row.n:,})")
        for of in graders
        for row in of.not_graded[:1]
    ]
    head = ("grader", "pass", "passed", "failed", "not graded", "does not apply")
    return table_of("", head, cells, notes=remarks)


def _failed(found: GradingAnalysis) -> Iterator[str]:
    for of in found.graders:
        if of.first_failed:
            yield Name(f"  {of.name}")
        for grade in of.first_failed:
            yield Name(f"    {grade.trace_id}: {grade.reason}")


def _beside(graders: list[GraderResult]) -> Table:
    cells = [
        (
            Name(of.name), percent_cell(beside.agreement), f"{beside.pass_success:,}",
            f"{beside.pass_other:,}", f"{beside.fail_success:,}", f"{beside.fail_other:,}",
        )
        for of in graders
        if (beside := of.against_labels) is not None
    ]  # fmt: skip
    return table_of(
        "",
        (
            "grader", "agrees", "pass, success", "pass, no success", "fail, success",
            "fail, no success",
        ),
        cells,
        notes=("success: full credit by the consensus of reviewers",),
    )  # fmt: skip
