"""Rules that one trace and its label must keep."""

import re
from collections.abc import Callable, Iterator
from typing import Any

from calibration.errors import TaxonomyError
from calibration.taxonomy import Taxonomy
from reference_dataset.records import PRICE_IN, PRICE_OUT
from reference_dataset.words import places, visible, words

Rule = Callable[[dict[str, Any], dict[str, Any], Taxonomy], Iterator[str]]

# An address needs a name before its @: in code, @name.call is none.
DOMAIN = re.compile(r"(?:https?://|(?<=[\w.+-])@)([A-Za-z0-9][A-Za-z0-9.-]*[A-Za-z0-9])")

EXAMPLE = re.compile(
    r"(?:^|\.)(?:example\.(?:com|org|net)|example|test|invalid|localhost)$|^127(?:\.\d+){3}$",
    re.IGNORECASE,
)


def answers_lead_to_outcome(
    trace: dict[str, Any], label: dict[str, Any], taxonomy: Taxonomy
) -> Iterator[str]:
    """Require that the class follows from the answers, and is not its own nearest wrong one."""
    try:
        derived = taxonomy.outcome(label["answers"])
    except TaxonomyError as error:
        yield str(error)
        return
    if derived != label["outcome"]:
        yield f"the answers lead to {derived!r}, the label says {label['outcome']!r}"
    if label.get("nearest_wrong") == label["outcome"]:
        yield "the nearest wrong class is the right one"


def steps_are_whole(
    trace: dict[str, Any], label: dict[str, Any], taxonomy: Taxonomy
) -> Iterator[str]:
    """Require numbered steps, and tool steps with a tool and a result."""
    for number, step in enumerate(trace["steps"], 1):
        if step["step_id"] != f"s{number}":
            yield f"step {number} has the id {step['step_id']!r}"
        if step["role"] == "tool" and (not step["tool"] or step["result"] is None):
            yield f"tool step {step['step_id']} lacks a tool or a result"


def quotes_are_literal(
    trace: dict[str, Any], label: dict[str, Any], taxonomy: Taxonomy
) -> Iterator[str]:
    """Require that every quote stands in the place that the evidence names."""
    texts = places(trace)
    for item in label.get("evidence", ()):
        if not any(item["quote"] in text for text in texts.get(item["step_id"], [])):
            yield f"the quote {item['quote'][:60]!r} is not in {item['step_id']!r}"


def fabrication_is_provable(
    trace: dict[str, Any], label: dict[str, Any], taxonomy: Taxonomy
) -> Iterator[str]:
    """Require that the invented token occurs in no input and in no tool result."""
    invented = [item for item in label["evidence"] if "key" in item]
    if (label["outcome"] == "hallucinated") != bool(invented):
        yield "evidence with key and absent_from is for hallucinated traces, and they need it"
    given = [trace["prompt"]]
    given += [item["text"] for item in (*trace["inputs"], *trace["sub_goals"])]
    for step in trace["steps"]:
        given.append(step["result"] or "")
        if step["role"] != "assistant":
            given.append(step["content"] or "")
    for item in invented:
        key = item["key"]
        if key not in item["quote"]:
            yield f"the key {key!r} is not part of its quote"
        if any(key.lower() in text.lower() for text in given):
            yield f"the key {key!r} occurs in an input or a tool result"
        unknown = sorted(set(item["absent_from"]) - set(places(trace)))
        if unknown:
            yield f"absent_from names {unknown[0]!r}, which is not a step"


def cost_follows_from_tokens(
    trace: dict[str, Any], label: dict[str, Any], taxonomy: Taxonomy
) -> Iterator[str]:
    """Require tokens that cover the words written and, by the price card, make the cost."""
    tokens_in = sum(step["tokens_in"] for step in trace["steps"])
    tokens_out = sum(step["tokens_out"] for step in trace["steps"])
    cost = tokens_in * PRICE_IN + tokens_out * PRICE_OUT
    if round(cost, 2) != trace["cost_usd"]:
        yield f"the tokens cost {cost:.4f} USD, cost_usd is {trace['cost_usd']}"
    read = len(words(visible(trace)))
    if tokens_in + tokens_out < read:
        yield f"has {tokens_in + tokens_out} tokens for {read} words of visible text"
    for step in trace["steps"]:
        written = len(words(f"{step['content'] or ''} {step['arguments'] or ''}"))
        if step["role"] == "assistant" and step["tokens_out"] < written:
            yield f"{step['step_id']} has {step['tokens_out']} tokens for {written} words"


def latency_is_the_sum(
    trace: dict[str, Any], label: dict[str, Any], taxonomy: Taxonomy
) -> Iterator[str]:
    """Require that the latency is the sum of the seconds of the steps."""
    seconds = sum(step["seconds"] for step in trace["steps"])
    if abs(seconds - trace["latency_s"]) > 0.11:
        yield f"the steps take {seconds:.1f} s, latency_s is {trace['latency_s']}"


def long_enough(trace: dict[str, Any], label: dict[str, Any], taxonomy: Taxonomy) -> Iterator[str]:
    """Require at least 150 words, 80 of an abandoned trace."""
    least = 80 if label["outcome"] == "abandoned" else 150
    count = len(words(visible(trace)))
    if count < least:
        yield f"has {count} words, at least {least} are needed"


def rationale_is_short(
    trace: dict[str, Any], label: dict[str, Any], taxonomy: Taxonomy
) -> Iterator[str]:
    """Require a rationale of at least two sentences that stays readable."""
    sentences = len(re.findall(r"[.!?][\"')]*(?:\s|$)", label["rationale"]))
    if not 2 <= sentences <= 6:
        yield f"the rationale has {sentences} sentences, 2 to 4 are asked for"


def domains_are_examples(
    trace: dict[str, Any], label: dict[str, Any], taxonomy: Taxonomy
) -> Iterator[str]:
    """Require that addresses use domains that are reserved for examples."""
    for found in sorted(set(DOMAIN.findall(visible(trace)))):
        if "." in found and not EXAMPLE.search(found):
            yield f"the domain {found!r} is not reserved for examples"


TRACE_RULES: dict[str, Rule] = {
    "answers": answers_lead_to_outcome,
    "steps": steps_are_whole,
    "quotes": quotes_are_literal,
    "fabrication": fabrication_is_provable,
    "cost": cost_follows_from_tokens,
    "latency": latency_is_the_sum,
    "length": long_enough,
    "rationale": rationale_is_short,
    "domains": domains_are_examples,
}

LABEL_RULES = frozenset({"answers", "quotes", "fabrication", "rationale"})
