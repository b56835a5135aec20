"""What a probe finds out about endpoints that can more or less, or say so falsely."""

import asyncio
from collections.abc import Callable
from typing import Any

import pytest

from calibration.errors import JudgeRunError
from calibration.judging.pace import RunClock
from calibration.judging.probe import Probe, probe
from calibration.judging.transport import Transport
from tests.judging.scripted_server import KINDS, Asked, ScriptedServer

pytestmark = pytest.mark.long  # a server of its own, with its waits


def obedient(asked: Asked) -> dict[str, Any]:
    return {"code": "violet-42"}


def probed(rule: Callable[[Asked], str], **options: Any) -> Probe:
    async def ask() -> Probe:
        transport = Transport(server.url, "sk-k", deadline_s=2.0)
        try:
            return await probe(transport, "m", clock=RunClock(1000))
        finally:
            await transport.aclose()

    with ScriptedServer(obedient, rule, scale=1000, **options) as server:
        return asyncio.run(ask())


def test_an_endpoint_that_can_everything_needs_three_calls() -> None:
    models = {"data": [{"id": "other"}, {"id": "m", "max_model_len": 8192}]}
    found = probed(lambda asked: "good", models=models)
    can = found.capabilities
    assert found.calls == 3
    assert (can.structured, can.token_parameter, can.context) == ("json_schema", "max_tokens", 8192)
    assert (can.temperature, can.seed, can.usage, can.model_returned) == (True, True, True, "m")
    assert found.input_tokens > 0
    assert found.to_dict()["capabilities"]["structured"] == "json_schema"


def with_mode(asked: Asked) -> str:
    return str(asked.body.get("response_format", {}).get("type") or "tools" in asked.body)


@pytest.mark.parametrize(
    ("ignored", "expected", "calls"),
    [
        ({"json_schema"}, "tool", 4),
        ({"json_schema", "True"}, "json_object", 5),
        ({"json_schema", "True", "json_object"}, "plain", 5),
    ],
)
def test_a_mode_that_is_ignored_in_silence_is_not_believed(
    ignored: set[str], expected: str, calls: int
) -> None:
    found = probed(lambda a: "response_format ignored" if with_mode(a) in ignored else "good")
    assert (found.capabilities.structured, found.calls) == (expected, calls)
    assert "json_schema: accepted, ignored" in found.findings


@pytest.mark.parametrize("refusal", ["no response_format", "no response_format, text"])
def test_a_mode_that_is_refused_is_left_out(refusal: str) -> None:
    assert probed(lambda asked: refusal).capabilities.structured == "tool"


def test_an_endpoint_that_wants_the_other_limit() -> None:
    found = probed(lambda asked: "no max_tokens")
    assert found.capabilities.token_parameter == "max_completion_tokens"
    assert found.calls == 4


def test_a_temperature_that_is_refused_leaves_the_seed() -> None:
    found = probed(lambda a: "no temperature" if "temperature" in a.body else "good")
    assert (found.capabilities.temperature, found.capabilities.seed) == (False, True)


@pytest.mark.parametrize("kind", ["usage absent", "usage zero", "usage half", "usage null"])
def test_tokens_that_are_not_counted(kind: str) -> None:
    assert not probed(lambda asked: kind).capabilities.usage


@pytest.mark.parametrize("kind", ["401", "403", "404 model", "402", "429 quota"])
def test_a_refusal_is_an_error_with_the_words_of_the_endpoint(kind: str) -> None:
    with pytest.raises(JudgeRunError, match="the endpoint refuses: "):
        probed(lambda asked: kind)


def test_an_outage_that_passes_does_no_harm_and_one_that_stays_is_said() -> None:
    assert probed(lambda a: "503 loading" if a.attempt < 3 else "good").capabilities.usage
    with pytest.raises(JudgeRunError, match="cannot be reached: 500"):
        probed(lambda asked: "500")


@pytest.mark.parametrize("kind", sorted(KINDS))
def test_every_kind_ends_in_capabilities_or_a_sentence(kind: str) -> None:
    said = "the endpoint answers"
    try:
        assert probed(lambda asked: kind).capabilities.structured
    except JudgeRunError as error:
        said = str(error)
    assert said.startswith("the endpoint ")
