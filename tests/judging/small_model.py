"""A model for any trace: it reads the code words, and what it answers is set by the last one.

``python -m tests.judging.small_model SECONDS`` serves it until it is ended; SECONDS for an answer.
"""

import hashlib
import sys
import time
from collections.abc import Callable
from typing import Any

from calibration.taxonomy import Taxonomy, default_taxonomy
from tests.judging.makers import node, words_in
from tests.judging.scripted_server import Asked, ScriptedServer

WORD = {"code": "violet-42"}  # what the probe asks for


OutcomeOf = Callable[[Asked, str, Taxonomy], str]


def outcome_by_word(word: str, taxonomy: Taxonomy) -> str:
    """Return a class that a hash of a code word chooses."""
    digest = hashlib.sha256(word.encode()).digest()
    return taxonomy.names[digest[0] % len(taxonomy.names)]


def small_model(
    outcome_of: OutcomeOf = lambda asked, word, taxonomy: outcome_by_word(word, taxonomy),
    rubric: Taxonomy | None = None,
) -> Callable[[Asked], dict[str, Any]]:
    """Return the contents of a scripted server that answers the probe and every prompt."""
    taxonomy = rubric or default_taxonomy()

    def answer(asked: Asked) -> dict[str, Any]:
        text = "\n".join(message["content"] for message in asked.body["messages"])
        if "Code word at the head: " not in text:
            return WORD
        words = words_in(text)
        given = taxonomy.answers_for(outcome_of(asked, words["tail"], taxonomy))
        questions = {
            question.id: node(given[question.id]) if question.id in given else None
            for question in taxonomy.nodes
        }
        return {**words, "subgoals": [], **questions, "violations": []}

    return answer


def main(seconds: float) -> None:
    """Serve the model, and print its address."""
    with ScriptedServer(small_model(), latency=lambda asked: seconds) as server:
        sys.stdout.write(f"{server.url}\n")
        sys.stdout.flush()
        while True:
            time.sleep(60)


if __name__ == "__main__":
    main(float(sys.argv[1]))
