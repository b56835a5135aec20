"""Rules that the traces of a dataset must keep together."""

from collections import Counter, defaultdict
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from statistics import median, quantiles
from typing import Any

from calibration.errors import TaxonomyError
from calibration.taxonomy import Taxonomy, default_taxonomy
from reference_dataset.records import FAMILIES, FORMS, Problem, Row
from reference_dataset.words import places, runs, visible, words


@dataclass(frozen=True, slots=True, kw_only=True)
class Rows:
    """Everything a set rule may look at."""

    traces: list[Row]
    labels: list[Row]
    forms: dict[str, tuple[str, ...]]
    readings: list[Row] = field(default_factory=list)
    settlements: list[Row] = field(default_factory=list)
    taxonomy: Taxonomy = field(default_factory=default_taxonomy)

    @property
    def label_of(self) -> dict[str, dict[str, Any]]:
        """Labels by trace id."""
        return {row.data["trace_id"]: row.data for row in self.labels}

    @property
    def by_family(self) -> dict[str, list[Row]]:
        """Traces by family."""
        found: dict[str, list[Row]] = defaultdict(list)
        for row in self.traces:
            found[row.data["family"]].append(row)
        return found


CLASS_MIX = {
    "complete": 0.38,
    "partial_plus": 0.22,
    "partial_minus": 0.16,
    "hallucinated": 0.14,
    "abandoned": 0.10,
}

SetRule = Callable[[Rows], Iterator[tuple[Row | str, str]]]


def sorted_and_unique(rows: Rows) -> Iterator[tuple[Row | str, str]]:
    """Require traces sorted by id within their file, and every id once."""
    for listed in (rows.traces, rows.labels, rows.readings, rows.settlements):
        seen: set[str] = set()
        last: dict[str, str] = {}
        for row in listed:
            trace_id = row.data["trace_id"]
            if trace_id in seen:
                yield row, f"{trace_id} occurs twice"
            elif trace_id < last.get(row.file, ""):
                yield row, f"{trace_id} is listed after {last[row.file]}"
            seen.add(trace_id)
            last[row.file] = trace_id
    for row in rows.traces:
        family = row.data["family"]
        if not row.data["trace_id"].startswith(f"{family}-") or row.file != f"{family}.jsonl":
            yield row, f"{row.data['trace_id']} is not of the family {family!r}"


def every_trace_has_its_label(rows: Rows) -> Iterator[tuple[Row | str, str]]:
    """Require one label of every trace, and a trace of every label."""
    traces = {row.data["trace_id"] for row in rows.traces}
    for row in rows.traces:
        if row.data["trace_id"] not in rows.label_of:
            yield row, f"{row.data['trace_id']} has no label"
    for row in rows.labels:
        if row.data["trace_id"] not in traces:
            yield row, f"{row.data['trace_id']} labels no trace"


def families_are_full(rows: Rows) -> Iterator[tuple[Row | str, str]]:
    """Require of a family its number of traces, every class three times, its median cost."""
    for name, listed in rows.by_family.items():
        file = f"{name}.jsonl"
        family = FAMILIES.get(name)
        if family is None:
            yield file, f"the family {name!r} is unknown; there are {sorted(FAMILIES)}"
            continue
        if len(listed) != family.n_traces:
            yield file, f"{len(listed)} traces, the family has {family.n_traces}"
        classes = Counter(
            rows.label_of.get(row.data["trace_id"], {}).get("outcome") for row in listed
        )
        for outcome in default_taxonomy().names:
            if classes[outcome] < 3:
                yield file, f"{classes[outcome]} traces are {outcome}, at least 3 are needed"
        middle = median(row.data["cost_usd"] / row.data["units"] for row in listed)
        if round(middle, 2) != family.median_usd:
            yield file, f"the median cost is {middle:.4f} USD, not {family.median_usd:.2f}"


def some_are_over_budget(rows: Rows) -> Iterator[tuple[Row | str, str]]:
    """Require that 5 to 12 % of the traces cost more than their ceiling."""
    known = [row.data for row in rows.traces if row.data["family"] in FAMILIES]
    over = [
        trace
        for trace in known
        if trace["cost_usd"] > FAMILIES[trace["family"]].ceiling_usd * trace["units"] + 1e-9
    ]
    share = len(over) / len(known) if known else 0.0
    if not 0.05 <= share <= 0.12:
        yield "traces", f"{share:.1%} of the traces cost more than their ceiling, 5 to 12 % may"


def lengths_vary(rows: Rows) -> Iterator[tuple[Row | str, str]]:
    """Require a median of at least 450 words, and 1,200 at the 90th percentile."""
    counts = [len(words(visible(row.data))) for row in rows.traces] or [0]
    if median(counts) < 450:
        yield "traces", f"the median length is {median(counts):.0f} words, at least 450 are needed"
    tenths = quantiles(counts, n=10, method="inclusive") if len(counts) > 1 else counts
    if tenths[-1] < 1200:
        yield "traces", f"the 90th percentile is {tenths[-1]:.0f} words, 1,200 are needed"


def whole_set_is_composed(rows: Rows) -> Iterator[tuple[Row | str, str]]:
    """Require, once every family is there, the class mix of the set and thirty long traces."""
    if set(rows.by_family) != set(FAMILIES):
        return
    counts = Counter(row.data["outcome"] for row in rows.labels)
    for outcome, aim in CLASS_MIX.items():
        share = counts[outcome] / max(1, len(rows.labels))
        if abs(share - aim) > 0.03:
            yield "labels.jsonl", f"{share:.0%} of the traces are {outcome}, about {aim:.0%} should"
    long = sum(len(row.data["steps"]) >= 12 for row in rows.traces)
    if long < 30:
        yield "traces", f"{long} traces have 12 or more steps, at least 30 are needed"


def difficulty_is_mixed(rows: Rows) -> Iterator[tuple[Row | str, str]]:
    """Require about 60 % clear, 25 % judgement and 15 % boundary traces."""
    counts = Counter(row.data["difficulty"] for row in rows.labels)
    for name, aim in (("clear", 0.60), ("judgement", 0.25), ("boundary", 0.15)):
        share = counts[name] / max(1, len(rows.labels))
        if abs(share - aim) > 0.08:
            yield "labels.jsonl", f"{share:.0%} of the traces are {name}, about {aim:.0%} should be"


def no_text_is_shared(rows: Rows) -> Iterator[tuple[Row | str, str]]:
    """Require that no two responses and no two tasks share a run of twelve words."""
    for part in ("response", "prompt"):
        first: dict[tuple[str, ...], str] = {}
        for row in rows.traces:
            trace_id, told = row.data["trace_id"], set()
            for run in sorted(runs(row.data[part])):
                other = first.setdefault(run, trace_id)
                if other != trace_id and other not in told:
                    told.add(other)
                    yield row, f"the {part} of {trace_id} shares {' '.join(run)!r} with {other}"


def forms_are_disjoint(rows: Rows) -> Iterator[tuple[Row | str, str]]:
    """Require disjoint forms that hold every trace once."""
    traces = {row.data["trace_id"]: row.data["family"] for row in rows.traces}
    held: dict[str, str] = {}
    for form in FORMS:
        for trace_id in rows.forms[form]:
            if trace_id in held:
                yield "forms.toml", f"{trace_id} is in {held[trace_id]} and in {form}"
            if trace_id not in traces:
                yield "forms.toml", f"{form} names {trace_id}, which is not a trace"
            held[trace_id] = form
    for trace_id in sorted(set(traces) - set(held)):
        yield "forms.toml", f"{trace_id} is in no form"


def forms_are_strata(rows: Rows) -> Iterator[tuple[Row | str, str]]:
    """Require that the forms share out every class of every family."""
    traces = {row.data["trace_id"]: row.data["family"] for row in rows.traces}
    cells: dict[tuple[str, str], Counter[str]] = defaultdict(Counter)
    for form in FORMS:
        for trace_id in rows.forms[form]:
            outcome = rows.label_of.get(trace_id, {}).get("outcome", "")
            cells[traces.get(trace_id, ""), outcome][form] += 1
    for (family, outcome), counts in sorted(cells.items()):
        if max(counts[f] for f in FORMS) - min(counts[f] for f in FORMS) > 1:
            shown = ", ".join(f"{form} {counts[form]}" for form in FORMS)
            yield "forms.toml", f"{family} {outcome} is shared out unevenly: {shown}"


def every_trace_was_read_again(rows: Rows) -> Iterator[tuple[Row | str, str]]:
    """Require one second reading a trace, with answers that lead to its class and a quote.

    The quote stands in the trace unless the trace was repaired since.
    """
    traces = {row.data["trace_id"]: row.data for row in rows.traces}
    read = {row.data["trace_id"] for row in rows.readings}
    for trace_id in sorted(set(traces) - read):
        yield "second_pass.jsonl", f"{trace_id} was not read again"
    repaired = {
        row.data["trace_id"] for row in rows.settlements if row.data["decision"] == "trace_repaired"
    }
    for row in rows.readings:
        trace_id, quote = row.data["trace_id"], row.data["quote"]
        if trace_id not in traces:
            yield row, f"{trace_id} is not a trace"
            continue
        try:
            derived = rows.taxonomy.outcome(row.data["answers"])
        except TaxonomyError as error:
            yield row, f"{trace_id}: {error}"
            continue
        if derived != row.data["outcome"]:
            yield row, f"{trace_id}: the answers lead to {derived!r}, not {row.data['outcome']!r}"
        texts = places(traces[trace_id]).get(row.data["step_id"], [])
        if trace_id not in repaired and not any(quote in text for text in texts):
            yield row, f"{trace_id}: the quote is not in {row.data['step_id']!r}"


def every_disagreement_is_settled(rows: Rows) -> Iterator[tuple[Row | str, str]]:
    """Require a decision where the second reading differed, and that the set shows it.

    A label that was changed is now what the reading said; one that was kept belongs to a
    trace that is shown as a boundary case.
    """
    second = {row.data["trace_id"]: row.data["outcome"] for row in rows.readings}
    settled = {row.data["trace_id"]: row for row in rows.settlements}
    for trace_id, label in sorted(rows.label_of.items()):
        row = settled.get(trace_id)
        if trace_id not in second:
            continue
        if row is None:
            if second[trace_id] != label["outcome"]:
                yield (
                    "settlements.jsonl",
                    f"{trace_id} is {label['outcome']}, the second reading gave "
                    f"{second[trace_id]}, and nothing was decided",
                )
            continue
        before, decision = row.data["before"], row.data["decision"]
        if decision == "label_changed":
            if not before != label["outcome"] == second[trace_id]:
                yield row, f"{trace_id}: its label was not changed to what the second reading gave"
        elif before != label["outcome"]:
            yield row, f"{trace_id} was {before} and is {label['outcome']}: its label was changed"
        elif decision == "kept" and before == second[trace_id]:
            yield row, f"{trace_id}: nothing to keep, the second reading gave the same"
        elif decision == "kept" and label["difficulty"] != "boundary":
            yield row, f"{trace_id}: kept against a reading, so its difficulty is boundary"
    for trace_id in sorted(set(settled) - set(second)):
        yield settled[trace_id], f"{trace_id} was not read again"


SET_RULES: dict[str, SetRule] = {
    "ids": sorted_and_unique,
    "labels": every_trace_has_its_label,
    "family": families_are_full,
    "over-budget": some_are_over_budget,
    "lengths": lengths_vary,
    "difficulty": difficulty_is_mixed,
    "composition": whole_set_is_composed,
    "shared-text": no_text_is_shared,
    "forms": forms_are_disjoint,
    "strata": forms_are_strata,
    "second-pass": every_trace_was_read_again,
    "settlements": every_disagreement_is_settled,
}


def set_problems(rows: Rows) -> Iterator[Problem]:
    """Yield what breaks a rule of the set."""
    for name, rule in SET_RULES.items():
        for where, message in rule(rows):
            file, line = (where, None) if isinstance(where, str) else (where.file, where.line)
            yield Problem(file=file, line=line, rule=name, message=message)
