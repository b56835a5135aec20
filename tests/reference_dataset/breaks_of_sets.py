"""Orders, families, costs, lengths and forms that break a rule of the set."""

from collections import Counter
from collections.abc import Callable
from typing import Any

from calibration.taxonomy import default_taxonomy
from reference_dataset.loader import LABELS
from reference_dataset.records import FAMILIES
from reference_dataset.words import RUN, words
from tests.reference_dataset.broken import Break, Broken, complete
from tests.reference_dataset.copies import Copy, Row, plain, set_cost, shorten, size

BREAKS: dict[str, Break] = {}


def reordered(file: str, order: tuple[int, ...], says: str, *also: str) -> Break:
    """Put lines in the place of the fifth and the sixth."""

    def broken(copy: Copy) -> Broken:
        rows = copy.read(file)
        copy.write(file, [*rows[:4], *(rows[k] for k in order), *rows[6:]])
        return Broken("ids", file, 6, f"{rows[4]['trace_id']} {says}", also)

    return broken


BREAKS |= {
    "traces out of order": reordered("research.jsonl", (5, 4), "is listed after"),
    "labels out of order": reordered(LABELS, (5, 4), "is listed after"),
    "a trace twice": reordered("research.jsonl", (4, 4, 5), "occurs twice", "family"),
    "a label twice": reordered(LABELS, (4, 4, 5), "occurs twice"),
}


def a_trace_in_the_wrong_file(copy: Copy) -> Broken:
    first, second = copy.read("research.jsonl"), copy.read("support_triage.jsonl")
    copy.write("research.jsonl", first[:-1])
    copy.write("support_triage.jsonl", [second[0], first[-1], *second[1:]])
    return Broken("ids", "support_triage.jsonl", 2, "is not of the family 'research'")


def lone_cell(copy: Copy) -> Row:
    """Return a clear trace that its family, its class and its form can miss."""
    labels = {row["trace_id"]: row for row in copy.read(LABELS)[1:]}
    form_of = {i: form for form, ids in copy.forms().items() for i in ids}
    cells = Counter(
        (i.rsplit("-", 1)[0], labels[i]["outcome"], form) for i, form in form_of.items()
    )

    def can_go(trace: Row, label: Row) -> bool:
        counts = {f: cells[trace["family"], label["outcome"], f] for f in copy.forms()}
        mine = counts[form_of[trace["trace_id"]]]
        return sum(counts.values()) > 3 and mine == max(counts.values())

    return copy.find(can_go)[0]


def a_trace_without_a_label(copy: Copy) -> Broken:
    trace = lone_cell(copy)
    copy.drop(LABELS, trace["trace_id"])
    file = f"{trace['family']}.jsonl"
    line = copy.line(file, trace["trace_id"])
    return Broken("labels", file, line, f"{trace['trace_id']} has no label")


def a_label_without_a_trace(copy: Copy) -> Broken:
    rows = copy.read(LABELS)
    copy.write(LABELS, [*rows, rows[-1] | {"trace_id": "support_triage-999"}])
    return Broken("labels", LABELS, len(rows) + 1, "support_triage-999 labels no trace")


def no_labels_at_all(copy: Copy) -> Broken:
    copy.write(LABELS, copy.read(LABELS)[:1])
    also = ("family", "difficulty", "strata")
    return Broken("labels", "research.jsonl", 2, "has no label", also)


def a_family_of_one_less(copy: Copy) -> Broken:
    trace = lone_cell(copy)
    copy.drop_everywhere(trace["trace_id"])
    expected = FAMILIES[trace["family"]].n_traces
    says = f"{expected - 1} traces, the family has {expected}"
    return Broken("family", f"{trace['family']}.jsonl", None, says)


def a_class_of_two(copy: Copy) -> Broken:
    """Relabel runs without output until two are left; the new label follows from its answers."""
    answers = default_taxonomy().answers_for("partial_plus")
    new = {"outcome": "partial_plus", "answers": answers, "nearest_wrong": "abandoned"}
    found = [label for t, label in copy.pairs() if t["family"] == "research"]
    for label in [label for label in found if label["outcome"] == "abandoned"][2:]:
        copy.put_label(label | new)
    says = "2 traces are abandoned, at least 3"
    return Broken("family", "research.jsonl", None, says, also=("strata", "length"))


def a_family_of_strangers(copy: Copy) -> Broken:
    trace, label = complete(copy)
    new = {"trace_id": "gardening-001", "family": "gardening"}
    stranger = trace | new | {"prompt": "Which roses?", "response": "The red ones."}
    copy.write("traces/gardening.jsonl", [copy.read("research.jsonl")[0], stranger])
    evidence = [{"step_id": "response", "quote": "red ones", "shows": "the answer"}]
    head, *rows = copy.read(LABELS)
    rows.append(label | {"trace_id": "gardening-001", "evidence": evidence})
    copy.write(LABELS, [head, *sorted(rows, key=lambda row: row["trace_id"])])
    forms = copy.forms()
    copy.write_forms(forms | {"practice": [*forms["practice"], "gardening-001"]})
    return Broken("family", "gardening.jsonl", None, "the family 'gardening' is unknown")


def everywhere(
    wanted: Callable[[Row, Row], bool], change: Callable[[Row, Row], None], *expected: Any
) -> Break:
    """Change all traces and labels that are wanted."""

    def broken(copy: Copy) -> Broken:
        found = [pair for pair in copy.pairs() if wanted(*pair)]
        for pair in found:
            change(*pair)
        copy.put_pairs(found)
        return Broken(*expected)

    return broken


def ceiling(trace: Row) -> float:
    return FAMILIES[trace["family"]].ceiling_usd * float(trace["units"])


def above_median(trace: Row) -> float:
    return float(trace["cost_usd"] / trace["units"]) - FAMILIES[trace["family"]].median_usd


BREAKS |= {
    "a median of three cents less": everywhere(
        lambda t, label: t["family"] == "research" and abs(above_median(t)) < 0.06,
        lambda t, label: set_cost(t, round(t["cost_usd"] - 0.06 * t["units"], 2)),
        "family", "research.jsonl", None, "the median cost is 1.3",
    ),
    "nothing over budget": everywhere(
        lambda t, label: t["cost_usd"] > ceiling(t) + 1e-9,
        lambda t, label: set_cost(t, ceiling(t)),
        "over-budget", "traces", None, "0.0% of the traces",
    ),
    "much over budget": everywhere(
        lambda t, label: above_median(t) > 0.01,
        lambda t, label: set_cost(t, round(ceiling(t) + 0.01, 2)),
        "over-budget", "traces", None, "5 to 12 % may",
    ),
    "a short median": everywhere(
        lambda t, label: size(t) < 1200 and label["outcome"] != "hallucinated",
        lambda t, label: plain(t, label, n_words=200),
        "lengths", "traces", None, "the median length is",
    ),
    "no long trace": everywhere(
        lambda t, label: size(t) > 1000,
        lambda t, label: shorten(t, label, 900),  # its own evidence aside
        "lengths", "traces", None, "the 90th percentile is",
    ),
}  # fmt: skip


def difficulty(wanted: str) -> Break:
    return everywhere(
        lambda t, label: True, lambda t, label: label.update(difficulty=wanted),
        "difficulty", LABELS, None, f"100% of the traces are {wanted}",
    )  # fmt: skip


def borrowed(copy: Copy, part: str, n_words: int) -> Row:
    """Give the second complete trace a run of words of the first; return it."""
    found = [t for t, label in copy.pairs() if label["outcome"] == "complete"]
    first = next(t for t in found if len(words(t[part])) > n_words)
    second = found[found.index(first) + 1]
    second[part] += " -- " + " ".join(words(first[part])[:n_words])
    return second


def shared(part: str) -> Break:
    def broken(copy: Copy) -> Broken:
        second = borrowed(copy, part, RUN)
        said = f"the {part} of {second['trace_id']} shares"
        return Broken("shared-text", *copy.put_trace(second), said)

    return broken


BREAKS |= {f"all is {wanted}": difficulty(wanted) for wanted in ("clear", "judgement", "boundary")}

BREAKS |= {f"a shared {part}": shared(part) for part in ("response", "prompt")}


def bad_forms(change: Callable[[dict[str, list[str]]], Any], says: str, *also: str) -> Break:
    def broken(copy: Copy) -> Broken:
        forms = copy.forms()
        change(forms)
        copy.write_forms(forms)
        return Broken("forms", "forms.toml", None, says, also)

    return broken


BREAKS |= {
    "a trace in two forms": bad_forms(
        lambda f: f["exam_a"].append(f["practice"][0]), "is in practice and in exam_a", "strata"
    ),
    "a form with a stranger": bad_forms(
        lambda f: f["exam_b"].append("research-999"), "exam_b names research-999"
    ),
    "no practice": bad_forms(lambda f: f.pop("practice"), "is in no form", "strata"),
}


def a_lopsided_form(copy: Copy) -> Broken:
    of_kind = {t["trace_id"] for t, label in copy.pairs()
               if (t["family"], label["outcome"]) == ("research", "complete")}  # fmt: skip
    forms = copy.forms()
    forms["exam_a"] += [i for i in forms["practice"] if i in of_kind]
    forms["practice"] = [i for i in forms["practice"] if i not in of_kind]
    copy.write_forms(forms)
    return Broken("strata", "forms.toml", None, "research complete is shared out unevenly")
