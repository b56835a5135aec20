"""Traces and labels that break a rule of one trace."""

from collections.abc import Callable
from typing import Any

from reference_dataset.records import FAMILIES
from reference_dataset.words import words
from tests.reference_dataset.broken import Break, Breaks, Broken, complete, hallucinated, outcome_is
from tests.reference_dataset.copies import Copy, Row, plain

BREAKS = Breaks()


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


@BREAKS.named
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


@BREAKS.named
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


@BREAKS.named
def a_tool_step_without_a_tool(copy: Copy) -> Broken:
    trace, step = tool_step(copy)
    step["tool"] = None
    return Broken("steps", *copy.put_trace(trace), f"tool step {step['step_id']} lacks")


@BREAKS.named
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


@BREAKS.named
def a_key_outside_its_quote(copy: Copy) -> Broken:
    _, label, item = hallucinated(copy)
    item["key"] = "Zzyzx"
    return Broken("fabrication", *copy.put_label(label), "'Zzyzx' is no part of its quote")


@BREAKS.named
def hallucinated_without_a_key(copy: Copy) -> Broken:
    _, label, _ = hallucinated(copy)
    for item in label["evidence"]:
        item.pop("key", None)
        item.pop("absent_from", None)
    return Broken("fabrication", *copy.put_label(label), "they need it")


@BREAKS.named
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


@BREAKS.named
def absent_from_no_step(copy: Copy) -> Broken:
    _, label, item = hallucinated(copy)
    item["absent_from"] = [*item["absent_from"], "s99"]
    return Broken("fabrication", *copy.put_label(label), "absent_from names 's99'")


@BREAKS.named
def a_cent_too_much(copy: Copy) -> Broken:
    trace, _ = copy.find(
        lambda t, label: t["cost_usd"] < FAMILIES[t["family"]].median_usd * t["units"] - 0.02
    )
    trace["cost_usd"] = round(trace["cost_usd"] + 0.01, 2)
    return Broken("cost", *copy.put_trace(trace), "the tokens cost")


@BREAKS.named
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
