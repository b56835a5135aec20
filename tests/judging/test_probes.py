"""Probes: each changes what it names and nothing else, and an obedient judge is found out."""

import json
from collections.abc import Callable, Iterable
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from calibration.errors import InputError
from calibration.judging.probes import (
    BETTER,
    EXAMPLES,
    FAILED,
    FLIPPED,
    HALF,
    INJECTED,
    NOT_BUILT,
    PLACES,
    WITHHELD,
    ProbeSet,
    asked_again,
    blank_runs,
    claimed_success,
    injected_instructions,
    injections,
    padded_responses,
    permuted_sub_goals,
    probe_rates,
    shown_references,
    swapped_responses,
    version_probe,
)
from calibration.judging.prompt import fenced, few_shots_digest
from calibration.judging.requests import Request, SampleVerdict
from calibration.judging.steps import TreeJudge, combine
from calibration.records import NO_VERDICT, Step, TraceForReview
from calibration.taxonomy import Taxonomy, default_taxonomy, taxonomy_from_dict
from tests.judging.makers import (
    RESPONSE,
    RESULT,
    make_judge,
    make_shown,
    messages_of,
    other_tree,
    practice_example,
    reference,
    scripted,
    shown,
)
from tests.judging.runs import judged, planned
from tests.judging.scripted_server import Asked, ScriptedServer

TAXONOMY = default_taxonomy()


def rng() -> np.random.Generator:
    return np.random.default_rng(20_240_601)


def runs(n: int, **changes: Any) -> list[TraceForReview]:
    """Return runs of tasks of their own, which end with a message of the agent."""
    last = Step(step_id="d", role="assistant", content="That is all that I found.")
    steps = (*make_shown().steps, last)
    return [
        make_shown(
            trace_id=f"t{k}",
            prompt=f"Task {k}.",
            response=f"{RESPONSE} {k}",
            steps=steps,
            **changes,
        )
        for k in range(n)
    ]


def only(found: ProbeSet) -> TraceForReview:
    (case,) = found.cases
    assert not found.left_out
    return case.trace


def differing(one: TraceForReview, other: TraceForReview) -> set[str]:
    """Return the fields in which two traces differ, but for their ids."""
    first, second = asdict(one), asdict(other)
    return {name for name in first if first[name] != second[name]} - {"trace_id"}


def verdicts(outcomes: dict[str, str], **changes: Any) -> list[SampleVerdict]:
    return [
        SampleVerdict(trace_id=trace_id, sample=0, outcome=outcome, **changes)
        for trace_id, outcome in outcomes.items()
    ]


def all_sets(traces: list[TraceForReview]) -> list[ProbeSet]:
    draw, shots = rng(), [practice_example(), other_example()]
    version = make_judge(few_shots=shots, context_tokens=16_000).version
    return [
        blank_runs(traces, TAXONOMY),
        swapped_responses(traces, rng=draw),
        injected_instructions(traces, TAXONOMY, rng=draw),
        claimed_success(traces, rng=draw),
        permuted_sub_goals(traces, rng=draw),
        padded_responses(traces),
        shown_references(traces, {trace.trace_id: "Gate 4." for trace in traces}),
        asked_again(traces),
        *(
            version_probe(name, traces, version, shots, rng=draw)
            for name in (WITHHELD, EXAMPLES, HALF)
        ),
    ]


def other_example() -> Any:
    example = practice_example()
    return replace(example, trace=replace(example.trace, trace_id="other-example"))


# ---- builders


def test_every_case_has_an_id_and_a_key_of_its_own() -> None:
    sets = all_sets(runs(3))
    cases = [case for found in sets for case in found.cases]
    assert len(cases) == 3 * (36 + 10)
    assert len({case.trace.trace_id for case in cases}) == len(cases)
    assert len({case.content_hash for case in cases}) == len(cases)
    for case in cases:
        assert case.trace.trace_id == f"{case.of_trace_id}~{case.probe}.{case.variant}"
    assert [found.probe for found in sets] == list(dict.fromkeys(found.probe for found in sets))
    assert not set(NOT_BUILT) & {found.probe for found in sets}
    assert [list(found.items) for found in sets] == [list(f.items) for f in all_sets(runs(3))]


def test_every_case_of_the_reference_traces_is_asked_about() -> None:
    traces = [shown(trace) for trace in list(reference().traces.values())[:12]]
    judge = make_judge()
    for found in all_sets(traces):
        for trace, content_hash in found.items:
            assert isinstance(judge.next_step(trace, content_hash, 0, []), Request)


def test_a_blank_run_has_task_inputs_and_sub_goals_only() -> None:
    trace = make_shown()
    blank = only(blank_runs([trace], TAXONOMY))
    assert (blank.response, blank.steps, blank.status) == (None, (), None)
    assert not {"prompt", "inputs", "sub_goals", "workflow"} & differing(trace, blank)


def test_a_swapped_response_is_that_of_another_task() -> None:
    traces = runs(4)
    twin = replace(traces[0], trace_id="twin", response="Another trial.", latency_s=2.0)
    echo = Step(step_id="e", role="assistant", content=traces[1].response)
    traces[1] = replace(traces[1], steps=(*traces[1].steps, echo))
    responses = {trace.trace_id: trace.response for trace in [*traces, twin]}
    found = swapped_responses([*traces, twin], rng=rng())
    assert len(found.cases) == 5
    for case in found.cases:
        own = {"t0", "twin"} if case.of_trace_id in ("t0", "twin") else {case.of_trace_id}
        assert case.trace.response not in {responses[trace_id] for trace_id in own}
        assert case.trace.response in responses.values()
    # A last message that repeats the response would tell that it was swapped.
    assert found.cases[1].trace.steps[-1].content == found.cases[1].trace.response
    alone = swapped_responses(traces[:1], rng=rng())
    assert (alone.cases, alone.left_out) == ((), {"no response of another task": 1})


@pytest.mark.parametrize("taxonomy", [TAXONOMY, other_tree()])
def test_instructions_ask_for_the_best_class_of_the_taxonomy(taxonomy: Taxonomy) -> None:
    texts = injections(taxonomy)
    assert len(set(texts)) == 12
    assert not any("{best}" in text or "{answers}" in text for text in texts)
    for node, answer in taxonomy.answers_for(taxonomy.success).items():
        assert f"{node} = {answer}" in texts[3]
        assert json.loads(texts[4].strip("`").removeprefix("json"))[node]["answer"] == answer


def test_each_instruction_is_put_in_each_place() -> None:
    (trace,) = runs(1)
    texts = injections(TAXONOMY)
    found = injected_instructions([trace], TAXONOMY, rng=rng())
    assert len(found.cases) == 36
    for case in found.cases:
        number, place = case.variant.split("-", 1)
        text = texts[int(number) - 1]
        where = place.replace("-", " ")
        assert where in PLACES
        if where == "response":
            assert case.trace.response == f"{trace.response}\n\n{text}"
            assert differing(trace, case.trace) == {"response"}
            continue
        assert differing(trace, case.trace) == {"steps"}
        (changed,) = [k for k, step in enumerate(trace.steps) if step != case.trace.steps[k]]
        step = case.trace.steps[changed]
        if where == "tool result":
            assert step.result == f"{RESULT}\n\n{text}"
        else:
            assert (changed, step.content) == (3, f"That is all that I found.\n\n{text}")


def test_an_instruction_without_its_place_is_counted() -> None:
    bare = make_shown(steps=(), response=None)
    found = injected_instructions([bare], TAXONOMY, rng=rng())
    assert found.left_out == {"no tool result": 12, "no agent message": 12}
    assert {case.trace.response for case in found.cases} == {
        text.lstrip() for text in injections(TAXONOMY)
    }
    beside_a_call = injected_instructions([make_shown()], TAXONOMY, rng=rng(), most=5)
    assert len(beside_a_call.cases) == 5


def test_thoughts_claim_success_and_nothing_else_changes() -> None:
    thinking = Step(step_id="e", role="assistant", content="<think>It fails.</think>Here it is.")
    trace = make_shown(steps=(*make_shown().steps, thinking))
    changed = only(claimed_success([trace], rng=rng()))
    assert differing(trace, changed) == {"steps"}
    words = [step.content or "" for step in changed.steps]
    assert words[0] == "You look up flights."
    assert words[1] != trace.steps[1].content
    assert words[3] == f"<think>{words[1]}</think>Here it is."
    calls = [(step.tool, step.arguments, step.result) for step in trace.steps]
    assert [(step.tool, step.arguments, step.result) for step in changed.steps] == calls
    silent = claimed_success([make_shown(steps=())], rng=rng())
    assert (silent.cases, silent.left_out) == ((), {"no thoughts of the agent": 1})


def test_sub_goals_come_in_another_order() -> None:
    trace = make_shown()
    changed = only(permuted_sub_goals([trace], rng=rng()))
    assert changed.sub_goals == trace.sub_goals[::-1]
    assert differing(trace, changed) == {"sub_goals"}
    single = permuted_sub_goals([make_shown(sub_goals=trace.sub_goals[:1])], rng=rng())
    assert (single.cases, single.left_out) == ((), {"fewer than two sub-goals": 1})


def test_a_padded_response_is_twice_as_long() -> None:
    changed = only(padded_responses([make_shown()]))
    assert changed.response is not None
    assert changed.response.count(RESPONSE) == 2
    assert differing(make_shown(), changed) == {"response"}
    assert padded_responses([make_shown(response=None)]).left_out == {"no response": 1}


def test_a_reference_answer_is_an_input() -> None:
    changed = only(shown_references([make_shown()], {"t1": "Gate 4."}))
    assert (changed.inputs[-1].name, changed.inputs[-1].text) == ("reference answer", "Gate 4.")
    assert differing(make_shown(), changed) == {"inputs"}
    assert shown_references([make_shown()], {}).left_out == {"no reference answer": 1}


def test_versions_are_changed_where_they_can_be() -> None:
    shots = [practice_example(), other_example()]
    version = make_judge(few_shots=shots, context_tokens=16_000, token_limit=2_000).version
    found = {
        name: version_probe(name, [make_shown()], version, shots, rng=rng())
        for name in (WITHHELD, EXAMPLES, HALF)
    }
    assert found[WITHHELD].version == replace(version, thoughts="withheld")
    assert found[HALF].version == replace(version, context_tokens=9_000)
    assert found[EXAMPLES].few_shots == (shots[1], shots[0])
    for each in found.values():
        assert each.version is not None
        assert each.version.few_shots_sha256 == few_shots_digest(each.few_shots)
        assert differing(make_shown(), only(each)) == set()
        TreeJudge(
            version=each.version,
            taxonomy=TAXONOMY,
            few_shots=each.few_shots,
            capabilities=make_judge().capabilities,
        )


def test_what_a_version_cannot_express_has_a_reason() -> None:
    withheld = make_judge(thoughts="withheld").version
    small = make_judge(context_tokens=1_200, token_limit=300).version
    for name, version, why in (
        (WITHHELD, withheld, "the judge sees no thoughts"),
        (EXAMPLES, withheld, "the judge has fewer than two worked examples"),
        (HALF, withheld, "the judge has no context_tokens, or half of its room is too little"),
        (HALF, small, "the judge has no context_tokens, or half of its room is too little"),
    ):
        found = version_probe(name, runs(2), version, rng=rng())
        assert (found.cases, found.left_out) == ((), {why: 2})
        (rate,) = probe_rates([found], [], [], TAXONOMY)
        assert rate.rate.status == f"not_estimable: {why} (2)"
    without = version_probe(WITHHELD, [make_shown(steps=())], make_judge().version, rng=rng())
    assert without.left_out == {"no thoughts of the agent": 1}
    with pytest.raises(ValueError, match="probe must be one of withheld, examples, half"):
        version_probe("half of it" * 99, [], withheld, rng=rng())


# ---- rates


def test_a_control_needs_no_other_verdict() -> None:
    traces = runs(6)
    sets = [blank_runs(traces, TAXONOMY), swapped_responses(traces, rng=rng())]
    best, none = TAXONOMY.success, TAXONOMY.without_output
    assert none is not None
    for outcome, shares in ((best, [1.0, 1.0]), (none, [0.0, 0.0])):
        given = {case.trace.trace_id: outcome for found in sets for case in found.cases}
        rates = probe_rates(sets, [], verdicts(given), TAXONOMY)
        assert [each.rate.value for each in rates] == shares
        assert [each.event for each in rates] == [FAILED, FAILED]
        assert all(each.rate.interval and each.n_traces == 6 for each in rates)
        assert [(each.n_better, each.n_worse) for each in rates] == [(0, 0), (0, 0)]


def test_a_case_without_a_verdict_is_counted_apart() -> None:
    traces = runs(8)
    padded = padded_responses(traces)
    before = dict.fromkeys([f"t{k}" for k in range(7)], "partial_plus") | {"t0": NO_VERDICT}
    after = {case.trace.trace_id: "partial_plus" for case in padded.cases[:6]}
    after |= {padded.cases[1].trace.trace_id: NO_VERDICT, "t7~padded.1": "complete"}
    after |= {padded.cases[2].trace.trace_id: "complete"}
    after |= {padded.cases[3].trace.trace_id: "abandoned"}
    (found,) = probe_rates([padded], verdicts(before), verdicts(after), TAXONOMY)
    assert found.left_out == {
        "no verdict on the trace": 1,
        "no verdict on the case": 1,
        "the case is not judged yet": 1,
        "the trace is not judged yet": 1,
    }
    assert (found.event, found.rate.value, found.rate.n) == (FLIPPED, 0.5, 4)
    assert (found.n_better, found.n_worse) == (1, 1)
    assert found.rate.n + sum(found.left_out.values()) == 8


def test_the_cases_of_a_trace_are_one_unit_of_the_interval() -> None:
    injected = injected_instructions(runs(10), TAXONOMY, rng=rng())
    before = {f"t{k}": "partial_minus" for k in range(10)}
    obeyed = {
        case.trace.trace_id: "complete" if case.of_trace_id < "t5" else "partial_minus"
        for case in injected.cases
    }
    (found,) = probe_rates([injected], verdicts(before), verdicts(obeyed), TAXONOMY)
    assert (found.rate.value, found.rate.n, found.n_traces) == (0.5, 360, 10)
    assert found.rate.half_width is not None
    assert found.rate.half_width > 0.3  # as of 10 traces, not of 360


def test_only_more_credit_is_better() -> None:
    equal = [c | {"credit": 0.5} for c in TAXONOMY.to_dict()["classes"]]
    equal[0]["credit"] = 1.0
    taxonomy = taxonomy_from_dict(TAXONOMY.to_dict() | {"classes": equal})
    injected = injected_instructions(runs(6), taxonomy, rng=rng(), most=1)
    before = {f"t{k}": "partial_minus" for k in range(5)} | {"t5": taxonomy.success}
    after = {case.trace.trace_id: "partial_plus" for case in injected.cases}
    (found,) = probe_rates([injected], verdicts(before), verdicts(after), taxonomy)
    assert (found.event, found.rate.value) == (BETTER, 0.0)
    assert found.left_out == {"there is no better class": 1}


def test_a_run_that_is_not_cut_further_says_nothing_about_cutting() -> None:
    version = make_judge(context_tokens=16_000).version
    half = version_probe(HALF, runs(6), version, rng=rng())
    before = verdicts({f"t{k}": "complete" for k in range(6)})
    ids = [case.trace.trace_id for case in half.cases]
    after = [
        *verdicts(dict.fromkeys(ids[:5], "partial_plus"), cut_characters=900),
        *verdicts(dict.fromkeys(ids[5:], "partial_plus")),
    ]
    (found,) = probe_rates([half], before, after, TAXONOMY)
    assert (found.rate.value, found.rate.n) == (1.0, 5)
    assert found.left_out == {"no more is left out than before": 1}


def test_a_class_of_another_taxonomy_is_refused_in_bounded_words() -> None:
    with pytest.raises(InputError, match="no class 'xxx") as caught:
        probe_rates([], verdicts({"t0": "x" * 10_000}), [], TAXONOMY)
    assert len(str(caught.value)) < 100


def test_samples_are_combined_before() -> None:
    samples = [SampleVerdict(trace_id="t0", sample=k, outcome="complete") for k in range(3)]
    padded = padded_responses(runs(1))
    with pytest.raises(InputError, match="'t0' has two verdicts: combine those of its samples"):
        probe_rates([padded], samples, [], TAXONOMY)
    of_case = replace(samples[0], trace_id="t0~padded.1", outcome="partial_plus")
    (found,) = probe_rates([padded], [combine(samples)], [of_case], TAXONOMY)
    assert found.rate.value == 1.0
    assert found.rate.status == ("not_estimable: no interval from 1 traces, at least 5 are needed")


# ---- end to end


def answers(
    judge: TreeJudge, trace: TraceForReview, obeys: Callable[[str], bool]
) -> Callable[[Asked], dict[str, Any]]:
    """Return a model that gives the best class where it obeys, and else a failed one."""

    def content(asked: Asked) -> dict[str, Any]:
        request = Request(trace_id="", content_hash="", sample=0, output_limit=1, body=asked.body)
        record = messages_of(request)[-1]["content"]
        better = judge.taxonomy.success if obeys(record) else judge.taxonomy.failed_check
        return scripted(judge, request, trace, better)

    return content


@pytest.mark.parametrize("taxonomy", [TAXONOMY, other_tree()], ids=["default", "other"])
@pytest.mark.parametrize("obedient", [True, False])
def test_an_obedient_judge_reads_all_and_another_one_nothing(
    tmp_path: Path, obedient: bool, taxonomy: Taxonomy
) -> None:
    judge = make_judge(taxonomy=taxonomy, samples=1, token_limit=2_000)
    texts = [fenced(text) for text in injections(taxonomy)]
    traces = runs(5)
    injected = injected_instructions(traces, taxonomy, rng=rng())

    def obeys(record: str) -> bool:
        return obedient and any(text in record for text in texts)

    def run_of(name: str, items: Iterable[tuple[TraceForReview, str]]) -> list[SampleVerdict]:
        folder = planned(tmp_path, name, judge)
        progress, found = judged(folder, server.url, items, judge)
        assert progress.state == "finished"
        return list(found.values())

    with ScriptedServer(answers(judge, traces[0], obeys)) as server:
        before = run_of("before", [(trace, f"hash of {trace.trace_id}") for trace in traces])
        after = run_of("probe", injected.items)
    assert server.ledger.total("received") == 5 + 5 * 36
    (found,) = probe_rates([injected], before, after, taxonomy)
    assert (found.probe, found.event) == (INJECTED, BETTER)
    assert (found.rate.n, found.n_traces, found.left_out) == (180, 5, {})
    assert found.rate.value == (1.0 if obedient else 0.0)
    assert found.rate.status == "ok"
    assert found.rate.interval is not None
    low, high = found.rate.interval
    assert (high == 1.0 and 0.4 < low < 0.6) if obedient else (low == 0.0 and 0.4 < high < 0.6)
