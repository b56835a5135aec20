"""A model that knows the reference labels, for the judge that asks the real questions."""

import random
from collections.abc import Sequence
from typing import Any

from calibration.judging.prompt import pieces_of
from calibration.judging.requests import Request
from calibration.judging.steps import TreeJudge
from calibration.records import TraceForReview
from reference_dataset.records import CanonicalLabel
from tests.judging.makers import (
    goal,
    make_judge,
    node,
    practice_example,
    reference,
    shown,
    words_in,
    words_of,
)
from tests.judging.scripted_server import Asked

Item = tuple[TraceForReview, str]


def reference_items() -> list[Item]:
    """Return the 200 reference traces, each with the hash of its content."""
    return [(shown(trace), trace.content_hash()) for trace in reference().traces.values()]


def reference_judge(*, samples: int) -> TreeJudge:
    """Return a judge with a worked example of each class; its seed tells samples apart."""
    classes = dict.fromkeys(label.outcome for label in reference().labels.values())
    return make_judge(
        few_shots=[practice_example(outcome) for outcome in classes],
        samples=samples, seed=0, temperature=0.5, token_limit=1_000,
    )  # fmt: skip


def first_request(judge: TreeJudge, item: Item, sample: int = 0) -> Request:
    """Return what is asked first about a sample."""
    request = judge.next_step(*item, sample, [])
    assert isinstance(request, Request)
    return request


class ReferenceModel:
    """Answers a prompt as the label of its trace says; some samples take the nearest wrong class.

    Parameters
    ----------
    judge, items
        Whose prompts it knows: by the code word at the tail, which no two traces share.
    wrong : float, optional
        The share of the samples that are wrong.
    seed : int, optional
        Of the choice of these samples.
    """

    def __init__(
        self, judge: TreeJudge, items: Sequence[Item], *, wrong: float = 0.0, seed: int = 0
    ) -> None:
        self.judge, self.wrong, self.seed = judge, wrong, seed
        requests = [first_request(judge, item) for item in items]
        tails = [words_of(request)["tail"] for request in requests]
        self.traces = {tail: trace for tail, (trace, _) in zip(tails, items, strict=True)}

    def __call__(self, asked: Asked) -> dict[str, Any]:
        """Return the answer to a request."""
        words = words_in("\n".join(message["content"] for message in asked.body["messages"]))
        trace = self.traces[words["tail"]]
        label = reference().labels[trace.trace_id]
        rng = random.Random(f"{self.seed} {trace.trace_id} {asked.body['seed']}")
        outcome = label.nearest_wrong if rng.random() < self.wrong else label.outcome
        return {**words, **self._answer(trace, label, outcome)}

    def _answer(self, trace: TraceForReview, label: CanonicalLabel, outcome: str) -> dict[str, Any]:
        taxonomy = self.judge.taxonomy
        places = {piece.place: piece.label for piece in pieces_of(trace)}
        quotes = [(places[item.step_id], item.quote) for item in label.evidence]
        given = taxonomy.answers_for(outcome)
        state = "met" if outcome == taxonomy.success else "missing"
        answer: dict[str, Any] = {
            question.id: node(given[question.id], *quotes, reason=label.rationale)
            if question.id in given
            else None
            for question in taxonomy.nodes
        }
        count = range(1, len(trace.sub_goals) + 1)
        return answer | {"subgoals": [goal(n, state, *quotes[0]) for n in count], "violations": []}
