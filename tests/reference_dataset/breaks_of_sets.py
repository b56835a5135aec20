"""Traces, labels and forms that break a rule of the set."""

from collections import Counter
from collections.abc import Callable
from typing import Any

from calibration.taxonomy import default_taxonomy
from reference_dataset.loader import LABELS
from reference_dataset.records import FAMILIES
from reference_dataset.words import RUN, words
from tests.reference_dataset.broken import Break, Breaks, Broken, complete
from tests.reference_dataset.copies import Copy, Row, plain, set_cost, shorten, size

BREAKS = Breaks()


@BREAKS.named
def traces_out_of_order(copy: Copy) -> Broken:
    rows = copy.read("research.jsonl")
    rows[4], rows[5] = rows[5], rows[4]
    copy.write("research.jsonl", rows)
    return Broken("ids", "research.jsonl", 6, f"{rows[5]['trace_id']} stands after")


@BREAKS.named
def labels_out_of_order(copy: Copy) -> Broken:
    rows = copy.read(LABELS)
    rows[4], rows[5] = rows[5], rows[4]
    copy.write(LABELS, rows)
    return Broken("ids", LABELS, 6, f"{rows[5]['trace_id']} stands after")


@BREAKS.named
def a_label_twice(copy: Copy) -> Broken:
    rows = copy.read(LABELS)
    copy.write(LABELS, [*rows[:5], rows[4], *rows[5:]])
    return Broken("ids", LABELS, 6, f"{rows[4]['trace_id']} occurs twice")


@BREAKS.named
def a_trace_twice(copy: Copy) -> Broken:
    rows = copy.read("research.jsonl")
    copy.write("research.jsonl", [*rows[:5], rows[4], *rows[5:]])
    return Broken(
        "ids", "research.jsonl", 6, f"{rows[4]['trace_id']} occurs twice", also=("family",)
    )


@BREAKS.named
def a_trace_in_the_wrong_file(copy: Copy) -> Broken:
    first, second = sorted(copy.families)[:2]
    rows, others = copy.read(f"{first}.jsonl"), copy.read(f"{second}.jsonl")
    copy.write(f"{first}.jsonl", rows[:-1])
    copy.write(f"{second}.jsonl", [others[0], rows[-1], *others[1:]])
    return Broken("ids", f"{second}.jsonl", 2, f"is not of the family {first!r}")


def lone_cell(copy: Copy) -> tuple[Row, Row]:
    """Return a clear trace that its family, its class and its form can miss."""
    labels = {row["trace_id"]: row for row in copy.read(LABELS)[1:]}
    cells: Counter[tuple[str, str, str]] = Counter()
    form_of = {i: form for form, ids in copy.forms().items() for i in ids}
    for trace_id, form in form_of.items():
        cells[trace_id.rsplit("-", 1)[0], labels[trace_id]["outcome"], form] += 1

    def can_go(trace: Row, label: Row) -> bool:
        family, outcome = trace["family"], label["outcome"]
        counts = {form: cells[family, outcome, form] for form in copy.forms()}
        mine = counts[form_of[trace["trace_id"]]]
        return sum(counts.values()) > 3 and mine == max(counts.values())

    return copy.find(can_go)


@BREAKS.named
def a_trace_without_a_label(copy: Copy) -> Broken:
    trace, _ = lone_cell(copy)
    copy.drop(LABELS, trace["trace_id"])
    file = f"{trace['family']}.jsonl"
    line = copy.line(file, trace["trace_id"])
    return Broken("labels", file, line, f"{trace['trace_id']} has no label")


@BREAKS.named
def a_label_without_a_trace(copy: Copy) -> Broken:
    rows = copy.read(LABELS)
    copy.write(LABELS, [*rows, rows[-1] | {"trace_id": "support_triage-999"}])
    return Broken("labels", LABELS, len(rows) + 1, "support_triage-999 labels no trace")


@BREAKS.named
def no_labels_at_all(copy: Copy) -> Broken:
    """A file of labels that holds only its header proves nothing."""
    copy.write(LABELS, copy.read(LABELS)[:1])
    return Broken(
        "labels", "research.jsonl", 2, "has no label", also=("family", "difficulty", "strata")
    )


@BREAKS.named
def a_family_of_one_less(copy: Copy) -> Broken:
    trace, _ = lone_cell(copy)
    copy.drop_everywhere(trace["trace_id"])
    expected = FAMILIES[trace["family"]].n_traces
    says = f"{expected - 1} traces, the family has {expected}"
    return Broken("family", f"{trace['family']}.jsonl", None, says)


@BREAKS.named
def a_class_of_two(copy: Copy) -> Broken:
    """Relabel runs without output until two are left; the new label follows from its answers."""
    taxonomy = default_taxonomy()
    found = [label for t, label in copy.pairs() if t["family"] == "research"]
    for label in [label for label in found if label["outcome"] == "abandoned"][2:]:
        label |= {
            "outcome": "partial_plus",
            "answers": taxonomy.answers_for("partial_plus"),
            "nearest_wrong": "abandoned",
        }
        copy.put_label(label)
    says = "2 traces are abandoned, at least 3"
    return Broken("family", "research.jsonl", None, says, also=("strata", "length"))


@BREAKS.named
def a_family_of_strangers(copy: Copy) -> Broken:
    trace, label = complete(copy)
    stranger = trace | {
        "trace_id": "gardening-001", "family": "gardening",
        "prompt": "Which roses?", "response": "The red ones.",
    }  # fmt: skip
    header = copy.read("research.jsonl")[0]
    copy.write("traces/gardening.jsonl", [header, stranger])
    evidence = [{"step_id": "response", "quote": "red ones", "shows": "the answer"}]
    label |= {"trace_id": "gardening-001", "evidence": evidence}
    rows = copy.read(LABELS)
    in_order = sorted([label, *rows[1:]], key=lambda row: row["trace_id"])
    copy.write(LABELS, [rows[0], *in_order])
    forms = copy.forms()
    forms["practice"].append("gardening-001")
    copy.write_forms(forms)
    return Broken("family", "gardening.jsonl", None, "the family 'gardening' is unknown")


@BREAKS.named
def a_median_of_three_cents_less(copy: Copy) -> Broken:
    family = FAMILIES["research"]

    def cheaper(trace: Row, label: Row) -> bool:
        middle = abs(trace["cost_usd"] / trace["units"] - family.median_usd) < 0.06
        if trace["family"] != family.name or not middle:
            return False
        set_cost(trace, round(trace["cost_usd"] - 0.06 * trace["units"], 2))
        return True

    copy.put_pairs(cheaper)
    return Broken("family", "research.jsonl", None, "the median cost is 1.3")


@BREAKS.named
def nothing_over_budget(copy: Copy) -> Broken:
    def cheaper(trace: Row, label: Row) -> bool:
        family = FAMILIES[trace["family"]]
        if trace["cost_usd"] <= family.ceiling_usd * trace["units"] + 1e-9:
            return False
        set_cost(trace, family.ceiling_usd * trace["units"])
        return True

    copy.put_pairs(cheaper)
    return Broken("over-budget", "traces", None, "0.0% of the traces")


@BREAKS.named
def much_over_budget(copy: Copy) -> Broken:
    def dearer(trace: Row, label: Row) -> bool:
        family = FAMILIES[trace["family"]]
        if trace["cost_usd"] / trace["units"] <= family.median_usd + 0.01:
            return False
        set_cost(trace, round(family.ceiling_usd * trace["units"] + 0.01, 2))
        return True

    copy.put_pairs(dearer)
    return Broken("over-budget", "traces", None, "5 to 12 % may")


@BREAKS.named
def a_short_median(copy: Copy) -> Broken:
    def short(trace: Row, label: Row) -> bool:
        if size(trace) >= 1200 or label["outcome"] == "hallucinated":
            return False
        plain(trace, label, n_words=200)
        return True

    copy.put_pairs(short)
    return Broken("lengths", "traces", None, "the median length is")


@BREAKS.named
def no_long_trace(copy: Copy) -> Broken:
    def short(trace: Row, label: Row) -> bool:
        if size(trace) <= 1000:
            return False
        # Its own evidence aside.
        shorten(trace, label, 900)
        return True

    copy.put_pairs(short)
    return Broken("lengths", "traces", None, "the 90th percentile is")


def difficulty(wanted: str) -> Break:
    def broken(copy: Copy) -> Broken:
        rows = copy.read(LABELS)
        copy.write(LABELS, [rows[0], *(row | {"difficulty": wanted} for row in rows[1:])])
        return Broken("difficulty", LABELS, None, f"100% of the traces are {wanted}")

    return broken


BREAKS |= {f"all is {wanted}": difficulty(wanted) for wanted in ("clear", "judgement", "boundary")}


def borrowed(copy: Copy, part: str, n_words: int) -> tuple[Row, Row]:
    """Give the second complete trace a run of words of the first; return both."""
    found = [t for t, label in copy.pairs() if label["outcome"] == "complete"]
    first = next(t for t in found if len(words(t[part])) > n_words)
    second = next(t for t in found if t["trace_id"] > first["trace_id"])
    second[part] += " -- " + " ".join(words(first[part])[:n_words])
    return first, second


def shared(part: str) -> Break:
    def broken(copy: Copy) -> Broken:
        _, second = borrowed(copy, part, RUN)
        place = copy.put_trace(second)
        said = f"the {part} of {second['trace_id']} shares"
        return Broken("shared-text", *place, said)

    return broken


BREAKS |= {f"a shared {part}": shared(part) for part in ("response", "prompt")}


# Forms


def bad_forms(
    change: Callable[[dict[str, list[str]]], Any], says: str, also: tuple[str, ...] = ()
) -> Break:
    def broken(copy: Copy) -> Broken:
        forms = copy.forms()
        change(forms)
        copy.write_forms(forms)
        return Broken("forms", "forms.toml", None, says, also)

    return broken


BREAKS |= {
    "a trace in two forms": bad_forms(
        lambda f: f["exam_a"].append(f["practice"][0]),
        "is in practice and in exam_a",
        also=("strata",),
    ),
    "a trace twice in a form": bad_forms(
        lambda f: f["exam_a"].append(f["exam_a"][0]),
        "is in exam_a and in exam_a",
        also=("strata",),
    ),
    "a form with a stranger": bad_forms(
        lambda f: f["exam_b"].append("research-999"), "exam_b names research-999"
    ),
    "no practice": bad_forms(
        lambda f: f.pop("practice"), "is in no form", also=("strata",)
    ),
}  # fmt: skip


@BREAKS.named
def a_trace_in_no_form(copy: Copy) -> Broken:
    trace, _ = lone_cell(copy)
    forms = {name: [i for i in ids if i != trace["trace_id"]] for name, ids in copy.forms().items()}
    copy.write_forms(forms)
    return Broken("forms", "forms.toml", None, f"{trace['trace_id']} is in no form")


@BREAKS.named
def a_lopsided_form(copy: Copy) -> Broken:
    labels = {row["trace_id"]: row for row in copy.read(LABELS)[1:]}
    forms = copy.forms()
    moved = [
        trace_id
        for trace_id in forms["practice"]
        if trace_id.startswith("research-") and labels[trace_id]["outcome"] == "complete"
    ]
    forms["practice"] = [i for i in forms["practice"] if i not in moved]
    forms["exam_a"] += moved
    copy.write_forms(forms)
    return Broken("strata", "forms.toml", None, "research complete is shared out unevenly")
