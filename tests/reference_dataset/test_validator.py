"""The published set keeps every rule, and each rule notices when it alone is broken."""

import shutil
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from calibration.taxonomy import default_taxonomy
from reference_dataset.loader import LABELS
from reference_dataset.records import FAMILIES, Problem
from reference_dataset.set_rules import SET_RULES
from reference_dataset.trace_rules import TRACE_RULES
from reference_dataset.validator import validate
from reference_dataset.words import RUN, words
from tests.reference_dataset.copies import Copy, Row, plain, set_cost, shorten, size


class Broken(NamedTuple):
    """What the validator must say: file and line, the rule, words of the message.

    `also` names rules that cannot but break with it; `seal` is false when the checksums
    themselves are what is broken.
    """

    rule: str
    file: str
    line: int | None
    says: str
    also: tuple[str, ...] = ()
    seal: bool = True


Break = Callable[[Copy], Broken]
# A second reading quotes the text and is held against the class, so it breaks when they do.
AGAIN = {"second-pass", "settlements"}
BREAKS: dict[str, Break] = {}


def breaks(test: Break) -> Break:
    BREAKS[test.__name__] = test
    return test


def outcome_is(outcome: str) -> Callable[[Row, Row], bool]:
    return lambda trace, label: label["outcome"] == outcome


def complete(copy: Copy) -> tuple[Row, Row]:
    """Return a complete trace of ordinary length and cost in the middle of its file."""
    return copy.find(
        lambda t, label: label["outcome"] == "complete" and not t["trace_id"].endswith("001")
    )


def hallucinated(copy: Copy) -> tuple[Row, Row, Row]:
    """Return an invented trace, its label and the evidence that holds the key."""
    trace, label = copy.find(outcome_is("hallucinated"))
    return trace, label, next(item for item in label["evidence"] if "key" in item)


def test_the_published_set_keeps_every_rule() -> None:
    assert [str(problem) for problem in validate()] == []


def test_a_copy_keeps_every_rule(copy: Copy) -> None:
    copy.seal()
    assert validate(copy.folder) == []


def test_a_copy_written_again_keeps_every_rule(copy: Copy) -> None:
    """What the tests below write is broken by the test, not by the writing."""
    for file in (LABELS, *(f"{name}.jsonl" for name in copy.families)):
        copy.write(file, copy.read(file))
    copy.write_forms(copy.forms())
    copy.seal()
    assert validate(copy.folder) == []


# Schema


def bad_header(file: str, change: Callable[[Row], Any], says: str) -> Break:
    def broken(copy: Copy) -> Broken:
        rows = copy.read(file)
        change(rows[0])
        copy.write(file, rows)
        return Broken("schema", file, 1, says)

    return broken


def bad_row(kind: str, change: Callable[[Row], Any], says: str) -> Break:
    def broken(copy: Copy) -> Broken:
        trace, label = complete(copy)
        change(trace if kind == "trace" else label)
        place = copy.put_trace(trace) if kind == "trace" else copy.put_label(label)
        return Broken("schema", *place, says)

    return broken


BREAKS |= {
    "trace header without canary": bad_header(
        "research.jsonl", lambda h: h.pop("canary"), "canary"
    ),
    "trace header with more": bad_header("research.jsonl", lambda h: h.update(by="me"), "'by'"),
    "label header without licence": bad_header(LABELS, lambda h: h.pop("licence"), "licence"),
    "label header without version": bad_header(LABELS, lambda h: h.pop("version"), "version"),
    "no cost": bad_row("trace", lambda t: t.update(cost_usd=None), "cost_usd"),
    "free of charge": bad_row("trace", lambda t: t.update(cost_usd=0), "cost_usd"),
    "no prompt": bad_row("trace", lambda t: t.update(prompt=""), "prompt"),
    "no status": bad_row("trace", lambda t: t.pop("status"), "status"),
    "a named model": bad_row("trace", lambda t: t.update(agent="gpt"), "agent"),
    "a local time": bad_row("trace", lambda t: t.update(started_at="2026-01-02 10:00"), "started"),
    "no units": bad_row("trace", lambda t: t.update(units=0), "units"),
    "a label in the trace": bad_row("trace", lambda t: t.update(outcome="complete"), "outcome"),
    "two sub-goals": bad_row(
        "trace", lambda t: t.update(sub_goals=t["sub_goals"][:2]), "sub_goals"
    ),
    "a sub-goal that may matter": bad_row(
        "trace", lambda t: t["sub_goals"][0].update(matters="yes"), "sub_goals/0/matters"
    ),
    "an input without text": bad_row(
        "trace", lambda t: t.update(inputs=[{"name": "a.txt"}]), "inputs/0"
    ),
    "three steps": bad_row("trace", lambda t: t.update(steps=t["steps"][:3]), "steps"),
    "26 steps": bad_row(
        "trace", lambda t: t.update(steps=(t["steps"] * 26)[:26]), "steps"
    ),
    "a step of a robot": bad_row(
        "trace", lambda t: t["steps"][1].update(role="robot"), "steps/1/role"
    ),
    "arguments as an object": bad_row(
        "trace", lambda t: t["steps"][1].update(arguments={"q": 1}), "steps/1/arguments"
    ),
    "tokens below zero": bad_row(
        "trace", lambda t: t["steps"][1].update(tokens_in=-1), "tokens_in"
    ),
    "a step id of its own": bad_row(
        "trace", lambda t: t["steps"][0].update(step_id="a"), "steps/0"
    ),
    "a step without seconds": bad_row("trace", lambda t: t["steps"][1].pop("seconds"), "seconds"),
    "an answer maybe": bad_row(
        "label", lambda label: label["answers"].update(output="maybe"), "answers/output"
    ),
    "a sixth class": bad_row("label", lambda label: label.update(outcome="fine"), "outcome"),
    "difficulty easy": bad_row(
        "label", lambda label: label.update(difficulty="easy"), "difficulty"
    ),
    "no reason against": bad_row("label", lambda label: label.update(why_not=""), "why_not"),
    "no nearest wrong": bad_row("label", lambda label: label.pop("nearest_wrong"), "nearest_wrong"),
    "no evidence": bad_row("label", lambda label: label.update(evidence=[]), "evidence"),
    "evidence without a quote": bad_row(
        "label", lambda label: label["evidence"][0].pop("quote"), "evidence/0"
    ),
    "evidence that shows nothing": bad_row(
        "label", lambda label: label["evidence"][0].update(shows=""), "evidence/0/shows"
    ),
    "a key that was not searched": bad_row(
        "label", lambda label: label["evidence"][0].update(key="x"), "absent_from"
    ),
    "a search without a key": bad_row(
        "label", lambda label: label["evidence"][0].update(absent_from=["s1"]), "key"
    ),
}  # fmt: skip


@breaks
def labels_without_header(copy: Copy) -> Broken:
    copy.write(LABELS, copy.read(LABELS)[1:])
    return Broken("schema", LABELS, 1, "canary")


@breaks
def an_empty_trace_file(copy: Copy) -> Broken:
    (copy.folder / "traces" / "scheduling.jsonl").write_text("\n", encoding="utf-8")
    return Broken("schema", "scheduling.jsonl", None, "no header")


# Rules of one trace


def bad_label(rule: str, change: Callable[[Row], Any], says: str) -> Break:
    def broken(copy: Copy) -> Broken:
        _, label = complete(copy)
        change(label)
        return Broken(rule, *copy.put_label(label), says)

    return broken


def bad_trace(rule: str, change: Callable[[Row], Any], says: str) -> Break:
    def broken(copy: Copy) -> Broken:
        trace, _ = complete(copy)
        change(trace)
        return Broken(rule, *copy.put_trace(trace), says)

    return broken


NOWHERE = "words that stand nowhere"
SEVEN = "One. Two. Three. Four. Five. Six. Seven."

BREAKS |= {
    "answers lead elsewhere": bad_label(
        "answers", lambda label: label.update(answers={"output": "no"}), "'abandoned'"
    ),
    "answers stop short": bad_label(
        "answers", lambda label: label["answers"].pop("all_subgoals"), "all_subgoals"
    ),
    "answers go on": bad_label(
        "answers", lambda label: label["answers"].update(material_error="no"), "material_error"
    ),
    "nearest wrong is right": bad_label(
        "answers", lambda label: label.update(nearest_wrong="complete"), "nearest wrong"
    ),
    "a quote of nothing": bad_label(
        "quotes", lambda label: label["evidence"][0].update(quote=NOWHERE), NOWHERE
    ),
    "a quote in other letters": bad_label(
        "quotes",
        lambda label: label["evidence"][0].update(quote=label["evidence"][0]["quote"].swapcase()),
        "does not stand",
    ),
    "a quote in no step": bad_label(
        "quotes", lambda label: label["evidence"][0].update(step_id="s99"), "'s99'"
    ),
    "one sentence": bad_label(
        "rationale", lambda label: label.update(rationale="All is right."), "1 sentences"
    ),
    "seven sentences": bad_label(
        "rationale", lambda label: label.update(rationale=SEVEN), "7 sentences"
    ),
    "a slower run": bad_trace(
        "latency", lambda t: t.update(latency_s=t["latency_s"] + 0.2), "latency_s"
    ),
    "a web address": bad_trace(
        "domains", lambda t: t.update(prompt=t["prompt"] + " https://shop.acme.com/x"), "acme.com"
    ),
    "a mail address": bad_trace(
        "domains", lambda t: t["steps"][-1].update(result="to jo@acme.io"), "acme.io"
    ),
    "nearly an example": bad_trace(
        "domains", lambda t: t.update(prompt=t["prompt"] + " http://badexample.com"), "badexample"
    ),
}  # fmt: skip


@breaks
def a_quote_in_another_step(copy: Copy) -> Broken:
    trace, label = complete(copy)
    item = label["evidence"][0]
    item["step_id"] = next(
        step["step_id"]
        for step in trace["steps"]
        if not any(
            item["quote"] in (step[name] or "") for name in ("content", "arguments", "result")
        )
    )
    return Broken("quotes", *copy.put_label(label), item["step_id"])


@breaks
def a_step_out_of_number(copy: Copy) -> Broken:
    def named(label: Row) -> set[str]:
        return {p for e in label["evidence"] for p in (e["step_id"], *e.get("absent_from", []))}

    trace, _ = copy.find(lambda t, label: t["steps"][-1]["step_id"] not in named(label))
    number = len(trace["steps"])
    trace["steps"][-1]["step_id"] = f"s{number + 1}"
    return Broken("steps", *copy.put_trace(trace), f"step {number} has the id 's{number + 1}'")


def tool_step(copy: Copy) -> tuple[Row, Row]:
    trace, _ = copy.find(lambda t, label: any(s["role"] == "tool" for s in t["steps"]))
    return trace, next(s for s in trace["steps"] if s["role"] == "tool")


@breaks
def a_tool_step_without_a_tool(copy: Copy) -> Broken:
    trace, step = tool_step(copy)
    step["tool"] = None
    return Broken("steps", *copy.put_trace(trace), f"tool step {step['step_id']} lacks")


@breaks
def a_tool_step_without_a_result(copy: Copy) -> Broken:
    trace, step = tool_step(copy)
    step["content"], step["result"] = step["result"], None
    return Broken("steps", *copy.put_trace(trace), f"tool step {step['step_id']} lacks")


def key_in(place: Callable[[Row, str], Any]) -> Break:
    def broken(copy: Copy) -> Broken:
        trace, label, item = hallucinated(copy)
        place(trace, f" {item['key'].upper()} ")
        copy.put_trace(trace)
        return Broken("fabrication", *copy.put_label(label), f"the key {item['key']!r} occurs in")

    return broken


def in_step(role: str, name: str) -> Callable[[Row, str], Any]:
    def place(trace: Row, text: str) -> None:
        step = next((s for s in trace["steps"] if s["role"] == role), None)
        if step is None:  # no such step in this trace: its first one plays the part
            step = trace["steps"][0]
            step["role"] = role
        step[name] = (step[name] or "") + text

    return place


BREAKS |= {
    "the key is in the prompt": key_in(lambda t, k: t.update(prompt=t["prompt"] + k)),
    "the key is in an input": key_in(
        lambda t, k: t["inputs"].append({"name": "more.txt", "text": k})
    ),
    "the key is in a sub-goal": key_in(
        lambda t, k: t["sub_goals"][0].update(text=t["sub_goals"][0]["text"] + k)
    ),
    "the key is in a tool result": key_in(in_step("tool", "result")),
    "the key is in a tool message": key_in(in_step("tool", "content")),
    "the key is in a system note": key_in(in_step("system", "content")),
    "the key is in a word of the user": key_in(in_step("user", "content")),
}  # fmt: skip


@breaks
def a_key_outside_its_quote(copy: Copy) -> Broken:
    _, label, item = hallucinated(copy)
    item["key"] = "Zzyzx"
    return Broken("fabrication", *copy.put_label(label), "'Zzyzx' is no part of its quote")


@breaks
def hallucinated_without_a_key(copy: Copy) -> Broken:
    _, label, _ = hallucinated(copy)
    for item in label["evidence"]:
        item.pop("key", None)
        item.pop("absent_from", None)
    return Broken("fabrication", *copy.put_label(label), "they need it")


@breaks
def a_key_on_a_complete_trace(copy: Copy) -> Broken:
    trace, label = complete(copy)
    trace["response"] += " Zzyzx."
    label["evidence"].append(
        {
            "step_id": "response", "quote": "Zzyzx.", "shows": "a word of its own",
            "key": "Zzyzx", "absent_from": ["s1"],
        }
    )  # fmt: skip
    copy.put_trace(trace)
    return Broken("fabrication", *copy.put_label(label), "is for hallucinated traces")


@breaks
def absent_from_no_step(copy: Copy) -> Broken:
    _, label, item = hallucinated(copy)
    item["absent_from"] = [*item["absent_from"], "s99"]
    return Broken("fabrication", *copy.put_label(label), "absent_from names 's99'")


@breaks
def a_cent_too_much(copy: Copy) -> Broken:
    trace, _ = copy.find(
        lambda t, label: t["cost_usd"] < FAMILIES[t["family"]].median_usd * t["units"] - 0.02
    )
    trace["cost_usd"] = round(trace["cost_usd"] + 0.01, 2)
    return Broken("cost", *copy.put_trace(trace), "the tokens cost")


@breaks
def fewer_tokens_than_words(copy: Copy) -> Broken:
    trace, _ = complete(copy)
    step = max(
        (s for s in trace["steps"] if s["role"] == "assistant"), key=lambda s: s["tokens_out"]
    )
    other = next(s for s in trace["steps"] if s is not step)
    written = len(words(f"{step['content'] or ''} {step['arguments'] or ''}"))
    assert written > 0
    moved = step["tokens_out"] - (written - 1)
    step["tokens_out"] -= moved
    other["tokens_out"] += moved
    return Broken(
        "cost", *copy.put_trace(trace),
        f"{step['step_id']} has {written - 1} tokens for {written} words",
    )  # fmt: skip


def too_short(outcome: str, n_words: int) -> Break:
    def broken(copy: Copy) -> Broken:
        trace, label = copy.find(outcome_is(outcome))
        plain(trace, label, n_words=n_words)
        copy.put_label(label)
        return Broken("length", *copy.put_trace(trace), f"has {n_words} words")

    return broken


BREAKS |= {
    "149 words": too_short("complete", 149),
    "79 words of an abandoned run": too_short("abandoned", 79),
}


@pytest.mark.parametrize(("outcome", "n_words"), [("complete", 150), ("abandoned", 80)])
def test_just_long_enough(copy: Copy, outcome: str, n_words: int) -> None:
    trace, label = copy.find(outcome_is(outcome))
    plain(trace, label, n_words=n_words)
    copy.put_label(label)
    copy.put_trace(trace)
    copy.seal()
    assert "length" not in {problem.rule for problem in validate(copy.folder)}


# Rules of the set


@breaks
def traces_out_of_order(copy: Copy) -> Broken:
    rows = copy.read("research.jsonl")
    rows[4], rows[5] = rows[5], rows[4]
    copy.write("research.jsonl", rows)
    return Broken("ids", "research.jsonl", 6, f"{rows[5]['trace_id']} stands after")


@breaks
def labels_out_of_order(copy: Copy) -> Broken:
    rows = copy.read(LABELS)
    rows[4], rows[5] = rows[5], rows[4]
    copy.write(LABELS, rows)
    return Broken("ids", LABELS, 6, f"{rows[5]['trace_id']} stands after")


@breaks
def a_label_twice(copy: Copy) -> Broken:
    rows = copy.read(LABELS)
    copy.write(LABELS, [*rows[:5], rows[4], *rows[5:]])
    return Broken("ids", LABELS, 6, f"{rows[4]['trace_id']} occurs twice")


@breaks
def a_trace_twice(copy: Copy) -> Broken:
    rows = copy.read("research.jsonl")
    copy.write("research.jsonl", [*rows[:5], rows[4], *rows[5:]])
    return Broken(
        "ids", "research.jsonl", 6, f"{rows[4]['trace_id']} occurs twice", also=("family",)
    )


@breaks
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


@breaks
def a_trace_without_a_label(copy: Copy) -> Broken:
    trace, _ = lone_cell(copy)
    copy.drop(LABELS, trace["trace_id"])
    file = f"{trace['family']}.jsonl"
    line = copy.line(file, trace["trace_id"])
    return Broken("labels", file, line, f"{trace['trace_id']} has no label")


@breaks
def a_label_without_a_trace(copy: Copy) -> Broken:
    rows = copy.read(LABELS)
    copy.write(LABELS, [*rows, rows[-1] | {"trace_id": "support_triage-999"}])
    return Broken("labels", LABELS, len(rows) + 1, "support_triage-999 labels no trace")


@breaks
def no_labels_at_all(copy: Copy) -> Broken:
    """A file of labels that holds only its header proves nothing."""
    copy.write(LABELS, copy.read(LABELS)[:1])
    return Broken(
        "labels", "research.jsonl", 2, "has no label", also=("family", "difficulty", "strata")
    )


@breaks
def a_family_of_one_less(copy: Copy) -> Broken:
    trace, _ = lone_cell(copy)
    copy.drop_everywhere(trace["trace_id"])
    expected = FAMILIES[trace["family"]].n_traces
    says = f"{expected - 1} traces, the family has {expected}"
    return Broken("family", f"{trace['family']}.jsonl", None, says)


@breaks
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


@breaks
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


@breaks
def a_median_of_three_cents_less(copy: Copy) -> Broken:
    family = FAMILIES["research"]
    for trace, _ in list(copy.pairs()):
        middle = abs(trace["cost_usd"] / trace["units"] - family.median_usd) < 0.06
        if trace["family"] == family.name and middle:
            set_cost(trace, round(trace["cost_usd"] - 0.06 * trace["units"], 2))
            copy.put_trace(trace)
    return Broken("family", "research.jsonl", None, "the median cost is 1.3")


def over(trace: Row) -> bool:
    family = FAMILIES[trace["family"]]
    return bool(trace["cost_usd"] > family.ceiling_usd * trace["units"] + 1e-9)


@breaks
def nothing_over_budget(copy: Copy) -> Broken:
    for trace, _ in list(copy.pairs()):
        if over(trace):
            set_cost(trace, FAMILIES[trace["family"]].ceiling_usd * trace["units"])
            copy.put_trace(trace)
    return Broken("over-budget", "traces", None, "0.0% of the traces")


@breaks
def much_over_budget(copy: Copy) -> Broken:
    for trace, _ in list(copy.pairs()):
        family = FAMILIES[trace["family"]]
        if trace["cost_usd"] / trace["units"] > family.median_usd + 0.01:
            set_cost(trace, round(family.ceiling_usd * trace["units"] + 0.01, 2))
            copy.put_trace(trace)
    return Broken("over-budget", "traces", None, "5 to 12 % may")


def shortened(copy: Copy, above: int, most: int) -> None:
    """Shorten every longer trace, its own evidence aside."""
    for trace, label in list(copy.pairs()):
        if size(trace) > above:
            shorten(trace, label, most)
            copy.put_trace(trace)


@breaks
def a_short_median(copy: Copy) -> Broken:
    for trace, label in list(copy.pairs()):
        if size(trace) < 1200 and label["outcome"] != "hallucinated":
            plain(trace, label, n_words=200)
            copy.put_trace(trace)
            copy.put_label(label)
    return Broken("lengths", "traces", None, "the median length is")


@breaks
def no_long_trace(copy: Copy) -> Broken:
    shortened(copy, above=1000, most=900)
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


def test_eleven_words_may_be_shared(copy: Copy) -> None:
    for part in ("response", "prompt"):
        copy.put_trace(borrowed(copy, part, RUN - 1)[1])
    copy.seal()
    assert validate(copy.folder) == []


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


@breaks
def a_trace_in_no_form(copy: Copy) -> Broken:
    trace, _ = lone_cell(copy)
    forms = {name: [i for i in ids if i != trace["trace_id"]] for name, ids in copy.forms().items()}
    copy.write_forms(forms)
    return Broken("forms", "forms.toml", None, f"{trace['trace_id']} is in no form")


@breaks
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


# Checksums and files


@breaks
def changed_since(copy: Copy) -> Broken:
    with copy.path(LABELS).open("a", encoding="utf-8") as file:
        file.write("\n")
    return Broken("checksums", "SHA256SUMS", None, f"{LABELS} has changed since", seal=False)


@breaks
def no_checksums(copy: Copy) -> Broken:
    copy.path("SHA256SUMS").unlink()
    return Broken("checksums", "SHA256SUMS", None, "is missing", seal=False)


@breaks
def a_checksum_of_nothing(copy: Copy) -> Broken:
    with copy.path("SHA256SUMS").open("a", encoding="utf-8") as file:
        file.write(f"{'0' * 64}  traces/poetry.jsonl\n")
    line = len(copy.path("SHA256SUMS").read_text(encoding="utf-8").splitlines())
    return Broken("checksums", "SHA256SUMS", line, "traces/poetry.jsonl", seal=False)


def missing(file: str) -> Break:
    def broken(copy: Copy) -> Broken:
        copy.path(file).unlink()
        return Broken("files", file, None, "No such file", seal=False)

    return broken


def spoilt(file: str, line: int | None, text: bytes, says: str) -> Break:
    """Replace a line, or the whole file."""

    def broken(copy: Copy) -> Broken:
        path = copy.path(file)
        lines = path.read_bytes().split(b"\n")
        lines = [text] if line is None else [*lines[: line - 1], text, *lines[line:]]
        path.write_bytes(b"\n".join(lines))
        return Broken("files", file, line, says, seal=False)

    return broken


BREAKS |= {
    "no labels": missing(LABELS),
    "no forms": missing("forms.toml"),
    "a trace cut off": spoilt("research.jsonl", 4, b'{"trace_id": "resea', "is not JSON"),
    "a label cut off": spoilt(LABELS, 3, b'{"trace_id"', "is not JSON"),
    "a cost of NaN": spoilt("research.jsonl", 4, b'{"cost_usd": NaN}', "NaN"),
    "a number without end": spoilt(LABELS, 3, b'{"n": ' + b"9" * 5000 + b"}", "is not JSON"),
    "brackets without end": spoilt(LABELS, 3, b"[" * 100_000, "is not JSON"),
    "a list for a trace": spoilt("research.jsonl", 4, b"[1, 2]", "must be an object"),
    "traces in Latin-1": spoilt("research.jsonl", None, '{"a": "é"}'.encode("latin-1"), "UTF-8"),
    "forms that are no TOML": spoilt("forms.toml", None, b"practice = [", "is not TOML"),
    "a form that is no table": spoilt("forms.toml", None, b"practice = 3", "must be a table"),
    "a form of numbers": spoilt("forms.toml", None, b"practice.traces = [[1]]", "must be a table"),
}  # fmt: skip


@breaks
def no_traces(copy: Copy) -> Broken:
    for path in (copy.folder / "traces").iterdir():
        path.unlink()
    return Broken("files", copy.folder.name, None, "holds no traces", seal=False)


# All of them


@pytest.mark.parametrize("name", BREAKS)
def test_breaking_one_rule_names_it(copy: Copy, name: str) -> None:
    expected = BREAKS[name](copy)
    if expected.seal:
        copy.seal()
    found = validate(copy.folder)
    assert any(is_named(problem, expected) for problem in found), "\n".join(map(str, found))
    others = {problem.rule for problem in found} - {expected.rule, *expected.also} - AGAIN
    assert not others, "\n".join(map(str, found))


def is_named(problem: Problem, expected: Broken) -> bool:
    return (problem.rule, problem.file, problem.line) == (
        expected.rule,
        expected.file,
        expected.line,
    ) and expected.says in problem.message


def test_a_problem_reads_as_file_line_rule_message(copy: Copy) -> None:
    expected = BREAKS["a slower run"](copy)
    copy.seal()
    (shown,) = map(str, validate(copy.folder))
    assert shown.startswith(f"{expected.file}, line {expected.line}: latency: ")
    copy.path("SHA256SUMS").unlink()
    assert "SHA256SUMS: checksums: is missing" in map(str, validate(copy.folder))


def test_no_rule_goes_untested(base: Path, tmp_path: Path) -> None:
    broken = set()
    for test in BREAKS.values():
        folder = Path(shutil.copytree(base, tmp_path / "set"))
        broken.add(test(Copy(folder)).rule)
        shutil.rmtree(folder)
    # These have tests of their own, on rows made for them.
    tested = broken | {"composition"} | AGAIN
    assert tested == {*TRACE_RULES, *SET_RULES, "schema", "files", "checksums"}
