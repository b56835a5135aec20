"""Files, rows of a trace and rows of a label that break one rule each."""

import json
import re
from typing import Any

from reference_dataset.loader import LABELS
from reference_dataset.records import FAMILIES
from reference_dataset.words import words
from tests.reference_dataset.broken import Break, Broken, complete, hallucinated, outcome_is
from tests.reference_dataset.copies import Copy, Row, plain

BREAKS: dict[str, Break] = {}

# What is changed: the first line of a file, a complete trace, its label, an invented trace, the
# evidence of its invention, the first step of a tool. ``a/b`` alone is removed, ``= x`` replaces
# it, ``+= x`` adds to it, ``# n`` makes it a list of n items, ``~`` swaps the case of its letters;
# KEY is the invented word.
TABLE = """
trace header without canary  | schema    | head of traces | canary | canary
trace header with more       | schema    | head of traces | by = "me" | 'by'
label header without licence | schema    | head of labels | licence | licence
label header without version | schema    | head of labels | version | version
no cost                      | schema    | trace     | cost_usd = null | cost_usd
free of charge               | schema    | trace     | cost_usd = 0 | cost_usd
no prompt                    | schema    | trace     | prompt = "" | prompt
no status                    | schema    | trace     | status | status
a named model                | schema    | trace     | agent = "gpt" | agent
a local time                 | schema    | trace     | started_at = "2026-01-02 10:00" | started
no units                     | schema    | trace     | units = 0 | units
a label in the trace         | schema    | trace     | outcome = "complete" | outcome
two sub-goals                | schema    | trace     | sub_goals # 2 | sub_goals
a sub-goal that may matter | schema | trace | sub_goals/0/matters = "yes" | sub_goals/0/matters
an input without text        | schema    | trace     | inputs = [{"name": "a.txt"}] | inputs/0
three steps                  | schema    | trace     | steps # 3 | steps
26 steps                     | schema    | trace     | steps # 26 | steps
a step of a robot            | schema    | trace     | steps/1/role = "robot" | steps/1/role
arguments as an object | schema | trace | steps/1/arguments = {"q": 1} | steps/1/arguments
tokens below zero            | schema    | trace     | steps/1/tokens_in = -1 | tokens_in
a step id of its own         | schema    | trace     | steps/0/step_id = "a" | steps/0
a step without seconds       | schema    | trace     | steps/1/seconds | seconds
an answer maybe              | schema    | label     | answers/output = "maybe" | answers/output
a sixth class                | schema    | label     | outcome = "fine" | outcome
difficulty easy              | schema    | label     | difficulty = "easy" | difficulty
no reason against            | schema    | label     | why_not = "" | why_not
no nearest wrong             | schema    | label     | nearest_wrong | nearest_wrong
no evidence                  | schema    | label     | evidence = [] | evidence
evidence without a quote     | schema    | label     | evidence/0/quote | evidence/0
evidence that shows nothing  | schema    | label     | evidence/0/shows = "" | evidence/0/shows
a key that was not searched  | schema    | label     | evidence/0/key = "x" | absent_from
a search without a key       | schema    | label     | evidence/0/absent_from = ["s1"] | key
answers lead elsewhere       | answers   | label     | answers = {"output": "no"} | 'abandoned'
answers stop short           | answers   | label     | answers/all_subgoals | all_subgoals
answers go on | answers | label | answers/material_error = "no" | material_error
nearest wrong is right       | answers   | label     | nearest_wrong = "complete" | nearest wrong
a quote of nothing | quotes | label | evidence/0/quote = "no such words" | no such words
a quote in other letters     | quotes    | label     | evidence/0/quote ~ | is not in
a quote in no step           | quotes    | label     | evidence/0/step_id = "s99" | 's99'
one sentence                 | rationale | label     | rationale = "All is right." | 1 sentences
seven sentences | rationale | label | rationale = "A. B. C. D. E. F. G." | 7 sentences
a slower run                 | latency   | trace     | latency_s += 0.2 | latency_s
a web address | domains | trace | prompt += " https://shop.acme.com/x" | acme.com
a key outside its quote      | fabrication | invention | key = "Zzyzx" | 'Zzyzx' is not part
absent from no step          | fabrication | invention | absent_from += ["s99"] | names 's99'
no tool                      | steps     | tool step | tool = null | lacks
no result                    | steps     | tool step | result = null & content = "none" | lacks
the key in the prompt        | fabrication | invented  | prompt += " KEY " | occurs
the key in an input | fabrication | invented | inputs += [{"name": "b", "text": "KEY"}] | occurs
the key in a sub-goal        | fabrication | invented  | sub_goals/0/text += " KEY " | occurs
the key in a tool result     | fabrication | invented  | steps/3/result += " KEY " | occurs
the key in a tool message    | fabrication | invented  | steps/3/content = "KEY" | occurs
the key in a system note     | fabrication | invented  | steps/0/content += " KEY " | occurs
the key in a word of the user | fabrication | invented  | steps/1/content += " KEY " | occurs
"""


def carry_out(changes: str, row: Row) -> None:
    for change in changes.split(" & "):
        path, sign, value = [*re.split(r" (=|\+=|#|~) ?", change, maxsplit=1), "", ""][:3]
        *way, last = (int(part) if part.isdigit() else part for part in path.split("/"))
        holder: Any = row
        for part in way:
            holder = holder[part]
        match sign:
            case "~":
                holder[last] = holder[last].swapcase()
            case "=":
                holder[last] = json.loads(value)
            case "+=":
                holder[last] += json.loads(value)
            case "#":
                holder[last] = (holder[last] * 26)[: int(value)]
            case _:
                del holder[last]


def in_table(rule: str, where: str, change: str, says: str) -> Break:
    def broken(copy: Copy) -> Broken:
        if where.startswith("head"):
            file = "research.jsonl" if where == "head of traces" else LABELS
            rows = copy.read(file)
            carry_out(change, rows[0])
            copy.write(file, rows)
            return Broken(rule, file, 1, says)
        if where == "tool step":
            trace, _ = copy.find(lambda t, label: any(s["role"] == "tool" for s in t["steps"]))
            step = next(s for s in trace["steps"] if s["role"] == "tool")
            carry_out(change, step)
            return Broken(rule, *copy.put_trace(trace), f"{step['step_id']} {says}")
        if where in ("invented", "invention"):
            trace, label, item = hallucinated(copy)
            key = item["key"].upper()
            carry_out(change.replace("KEY", key), trace if where == "invented" else item)
            copy.put_trace(trace)
            return Broken(rule, *copy.put_label(label), says)
        trace, label = complete(copy)
        put, row = (copy.put_trace, trace) if where == "trace" else (copy.put_label, label)
        carry_out(change, row)
        return Broken(rule, *put(row), says)

    return broken


for line in TABLE.strip().splitlines():
    name, *cells = (cell.strip() for cell in line.split(" | "))
    BREAKS[name] = in_table(*cells)


def spoilt(file: str, line: int | None, text: bytes | None, says: str) -> Break:
    """Replace a line, or the whole file, or remove it."""

    def broken(copy: Copy) -> Broken:
        path = copy.path(file)
        if text is None:
            path.unlink()
        else:
            lines = path.read_bytes().split(b"\n")
            new = [text] if line is None else [*lines[: line - 1], text, *lines[line:]]
            path.write_bytes(b"\n".join(new))
        return Broken("checksums" if file == "SHA256SUMS" else "files", file, line, says)

    return broken


BREAKS |= {
    "no labels": spoilt(LABELS, None, None, "No such file"),
    "no forms": spoilt("forms.toml", None, None, "No such file"),
    "no checksums": spoilt("SHA256SUMS", None, None, "is missing"),
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
}


def no_traces(copy: Copy) -> Broken:
    for path in (copy.folder / "traces").iterdir():
        path.unlink()
    return Broken("files", copy.folder.name, None, "holds no traces")


def labels_without_header(copy: Copy) -> Broken:
    copy.write(LABELS, copy.read(LABELS)[1:])
    return Broken("schema", LABELS, 1, "canary")


def an_empty_trace_file(copy: Copy) -> Broken:
    (copy.folder / "traces" / "scheduling.jsonl").write_text("\n", encoding="utf-8")
    return Broken("schema", "scheduling.jsonl", None, "no header")


def changed_since(copy: Copy) -> Broken:
    with copy.path(LABELS).open("a", encoding="utf-8") as file:
        file.write("\n")
    return Broken("checksums", "SHA256SUMS", None, f"{LABELS} has changed since")


def a_checksum_of_nothing(copy: Copy) -> Broken:
    sums = copy.path("SHA256SUMS")
    sums.write_text(f"{sums.read_text('utf-8')}{'0' * 64}  traces/poetry.jsonl\n", "utf-8")
    line = len(sums.read_text("utf-8").splitlines())
    return Broken("checksums", "SHA256SUMS", line, "traces/poetry.jsonl")


def a_quote_in_another_step(copy: Copy) -> Broken:
    trace, label = complete(copy)
    item = label["evidence"][0]

    def holds(step: Row) -> bool:
        return any(item["quote"] in (step[n] or "") for n in ("content", "arguments", "result"))

    item["step_id"] = next(step["step_id"] for step in trace["steps"] if not holds(step))
    return Broken("quotes", *copy.put_label(label), item["step_id"])


def a_step_out_of_number(copy: Copy) -> Broken:
    def named(label: Row) -> set[str]:
        return {p for e in label["evidence"] for p in (e["step_id"], *e.get("absent_from", []))}

    trace, _ = copy.find(lambda t, label: t["steps"][-1]["step_id"] not in named(label))
    number = len(trace["steps"])
    trace["steps"][-1]["step_id"] = f"s{number + 1}"
    return Broken("steps", *copy.put_trace(trace), f"step {number} has the id 's{number + 1}'")


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


def hallucinated_without_a_key(copy: Copy) -> Broken:
    _, label, _ = hallucinated(copy)
    for item in label["evidence"]:
        item.pop("key", None)
        item.pop("absent_from", None)
    return Broken("fabrication", *copy.put_label(label), "they need it")


def a_key_on_a_complete_trace(copy: Copy) -> Broken:
    trace, label = complete(copy)
    trace["response"] += " Zzyzx."
    more = {"step_id": "response", "quote": "Zzyzx.", "shows": "a word of its own"}
    label["evidence"].append(more | {"key": "Zzyzx", "absent_from": ["s1"]})
    copy.put_trace(trace)
    return Broken("fabrication", *copy.put_label(label), "is for hallucinated traces")


def a_cent_too_much(copy: Copy) -> Broken:
    trace, _ = copy.find(
        lambda t, label: t["cost_usd"] < FAMILIES[t["family"]].median_usd * t["units"] - 0.02
    )
    trace["cost_usd"] = round(trace["cost_usd"] + 0.01, 2)
    return Broken("cost", *copy.put_trace(trace), "the tokens cost")


def fewer_tokens_than_words(copy: Copy) -> Broken:
    trace, _ = complete(copy)
    by_agent = [s for s in trace["steps"] if s["role"] == "assistant"]
    step = max(by_agent, key=lambda s: s["tokens_out"])
    other = next(s for s in trace["steps"] if s is not step)
    written = len(words(f"{step['content'] or ''} {step['arguments'] or ''}"))
    assert written > 0
    # The sum, and with it the cost, stays.
    other["tokens_out"] += step["tokens_out"] - (written - 1)
    step["tokens_out"] = written - 1
    says = f"{step['step_id']} has {written - 1} tokens for {written} words"
    return Broken("cost", *copy.put_trace(trace), says)
