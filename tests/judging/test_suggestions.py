"""Rules that a model suggests: one capped request, flagged copies, and a new version at most."""

import json
from pathlib import Path
from typing import Any

import pytest

from calibration.analyses.judging import versions
from calibration.store import Store
from tests.cli_runs import Run
from tests.judging.makers import reference, words_in
from tests.judging.scripted_server import Asked, ScriptedServer
from tests.judging.small_model import small_model
from tests.judging.test_judge_commands import KEY, asr, made, store  # noqa: F401

# Runs of a judge from end to end: commands and workers at a server with real sockets.
pytestmark = pytest.mark.long

RULES = [
    {"question": "output", "why": "Runs 1 to 3.", "rule": "A message that says only that work goes "
     "on is no output."},
    {"question": "fabrication", "why": "Run 2.", "rule": "COPY"},
]  # fmt: skip


class Model:
    """A judge that is always wrong, and whose model suggests rules as told."""

    def __init__(self) -> None:
        self.judge = small_model(lambda asked, word, taxonomy: taxonomy.names[-1])
        self.rules: list[dict[str, str]] = RULES
        self.asked: list[str] = []

    def __call__(self, asked: Asked) -> dict[str, Any]:
        text = asked.body["messages"][0]["content"]
        if "You improve the instructions" not in text:
            return self.judge(asked)
        self.asked.append(text)
        return {**words_in(text), "rules": self.rules}


@pytest.fixture
def model() -> Model:
    return Model()


@pytest.fixture
def server(model: Model) -> Any:
    with ScriptedServer(model, api_key=KEY) as serving:
        yield serving


@pytest.fixture
def judged(asr: Run, store: Path, model: Model) -> Run:  # noqa: F811
    """Return the command line of a store whose judge errs on most practice traces."""
    made(asr)
    asr("judge", "run", "one", "--form", "practice", "--limit", 20, "--cap-tokens", 10**7)
    trace = reference().traces[reference().forms["practice"][0]]
    model.rules = [RULES[0], RULES[1] | {"rule": " ".join(trace.prompt.split()[:9])}]
    return asr


def test_one_request_shows_practice_differences_and_nothing_else(
    judged: Run, model: Model, server: ScriptedServer
) -> None:
    found = json.loads(judged("judge", "suggest", "one", "--cap-tokens", 10**6, "--json").stdout)
    assert (found["n_judged"], found["ended"]) == (20, None)
    assert 10 < found["n_shown"] == found["n_differences"] < 20
    assert [rule["copied"] is None for rule in found["rules"]] == [True, False]
    (text,) = model.asked
    practice = set(reference().forms["practice"])
    for trace_id, trace in reference().traces.items():
        if trace.response and len(trace.response) > 200 and trace_id not in practice:
            assert trace.response[:80] not in text
    # The same question is not paid twice, in another run.
    again = json.loads(judged("judge", "suggest", "one", "--cap-tokens", 10**6, "--json").stdout)
    assert again["rules"] == found["rules"]
    assert len(model.asked) == 1
    capped = judged("judge", "suggest", "one", "--cap-tokens", 100, "--json", code=0)
    assert json.loads(capped.stdout)["rules"] == found["rules"]


def test_a_judge_that_is_told_the_rules_is_a_new_version_of_the_line(
    judged: Run, tmp_path: Path
) -> None:
    text = judged("judge", "suggest", "one", "--as", "two", "--cap-tokens", 10**6).stdout
    assert "copied: " in text
    with Store.open(tmp_path / "s.duckdb") as opened:
        one, two = (versions.entry_of(opened.judge(name)) for name in ("one", "two"))
        assert opened.judge("two").line == "one"
    assert two.rules == ((RULES[0]["question"], RULES[0]["rule"]),)
    before, after = dict(one.version.handbook), dict(two.version.handbook)
    assert after["output"].endswith(RULES[0]["rule"])
    assert after | {"output": ""} == before | {"output": ""}
    # A judge made from that one is told them too.
    judged("judge", "new", "three", "--from", "two", "--samples", 3)
    with Store.open(tmp_path / "s.duckdb") as opened:
        assert versions.entry_of(opened.judge("three")).rules == two.rules


def test_what_is_missing_is_named(
    asr: Run, store: Path, model: Model, judged: Run  # noqa: F811
) -> None:  # fmt: skip
    made(asr, "two", "--model-seed", 3)
    words = ("--cap-tokens", 10**6)
    assert "has judged no practice trace" in asr("judge", "suggest", "two", *words, code=1).stderr
    assert "give a cap" in asr("judge", "suggest", "one", code=2).stderr
    model.rules = [{"question": "output", "why": "", "rule": 3}]  # type: ignore[dict-item]
    done = asr("judge", "suggest", "one", "--as", "new", *words, code=1)
    assert "No answer: " in done.stdout
    assert len(model.asked) == 2  # once more for a wrong form
    with Store.open(store) as opened:
        assert {judge.judge_id for judge in opened.judges()} == {"one", "two"}
