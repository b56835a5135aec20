"""What the answers of many servers are taken for, and how long they ask to wait."""

import pytest

from calibration.judging.requests import Reply
from calibration.judging.transport import Ruling, asked_wait, classify


def ruling(status: int, body: str = "", **headers: str) -> Ruling:
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    return classify(Reply(key="k", status=status, headers=named, body=body, latency_s=0.0), 0.0)


@pytest.mark.parametrize(
    ("status", "body", "kind"),
    [
        # Context: OpenAI, vLLM, llama.cpp, SGLang, Mistral, Gemini, TGI, Groq.
        (400, '{"error": {"code": "context_length_exceeded", "param": "messages"}}', "answer"),
        (400, '{"object": "error", "message": "maximum context length is 4096"}', "answer"),
        (400, '{"error": {"type": "exceed_context_size_error", "code": 400}}', "answer"),
        (400, '{"message": "longer than the model\'s context length"}', "answer"),
        (400, '{"detail": [{"msg": "too large for model with 32768 maximum context length"}]}',
         "answer"),
        (400, '[{"error": {"message": "The input token count (9) exceeds the maximum"}}]',
         "answer"),
        (422, '{"error": "`inputs` tokens + `max_new_tokens` must be <= 4096"}', "answer"),
        (413, "<html>Request Entity Too Large</html>", "answer"),
        (429, '{"error": {"message": "Request too large for gpt: Limit 30000"}}', "answer"),
        # Filters.
        (400, '{"error": {"code": "content_filter"}}', "answer"),
        (403, '{"error": {"message": "Your input was flagged", "metadata": {}}}', "answer"),
        # Load.
        (429, '{"error": {"message": "You exceeded your current quota, retry in 9s"}}',
         "throttled"),
        (429, "", "throttled"),
        (529, "", "throttled"),
        (429, '{"error": {"code": "insufficient_quota"}}', "stop"),
        (402, '{"error": {"message": "Insufficient Balance"}}', "stop"),
        (408, "", "transient"),
        (409, "", "transient"),
        (503, '{"error": {"message": "Loading model"}}', "transient"),
        (524, "<html>A timeout occurred</html>", "transient"),
        # An error in a 200, as of gateways.
        (200, '{"error": {"code": 429, "message": "Rate limited upstream"}}', "throttled"),
        (200, '{"error": {"message": "rate limit exceeded"}}', "throttled"),
        (200, '{"error": {"code": 502, "message": "Provider returned error"}}', "transient"),
        (200, '{"error": "boom"}', "transient"),
        (200, '{"error": {"code": 401, "message": "No auth"}}', "stop"),
        (200, '{"error": null, "choices": []}', "answer"),
        (200, "not JSON", "answer"),
        (200, "  ", "transient"),
        (200, "[" * 100_000, "answer"),
        # Refused for all: the run must not go on.
        (400, '{"error": {"code": "unsupported_value", "param": "temperature"}}', "stop"),
        (400, '{"detail": [{"loc": ["body", "response_format"], "msg": "Extra inputs"}]}', "stop"),
        (404, '{"error": {"code": "model_not_found"}}', "stop"),
        (404, "", "stop"),
        (307, "", "stop"),
        # Of this prompt only: pending, so that no verdict is made of it.
        (400, '{"error": {"message": "invalid character"}}', "refused"),
        (422, "", "refused"),
    ],
)  # fmt: skip
def test_what_an_answer_is_taken_for(status: int, body: str, kind: str) -> None:
    assert ruling(status, body).kind == kind


def test_the_advice_of_the_server_is_taken() -> None:
    assert ruling(400, "odd", x_should_retry="true").kind == "transient"
    assert not ruling(500, "odd", x_should_retry="false").again
    assert ruling(429, "{}", x_should_retry="false").kind == "transient"
    assert ruling(429, "{}", retry_after="7").wait_s == 7.0


def test_what_a_gateway_gave_up_may_be_on_the_bill() -> None:
    found = {status: ruling(status).possible for status in (408, 500, 502, 503, 504, 520, 524, 529)}
    assert found == {
        408: True, 500: False, 502: True, 503: False, 504: True, 520: True, 524: True, 529: False,
    }  # fmt: skip
    assert ruling(200, '{"error": {"code": 500}}').possible


@pytest.mark.parametrize(
    ("headers", "wait"),
    [
        ({"retry-after": "1.5"}, 1.5),
        ({"retry-after": "Thu, 01 Jan 1970 00:02:00 GMT"}, 20.0),
        ({"retry-after": "Thu, 01 Jan 1970 00:00:00 GMT"}, None),
        ({"retry-after": "soon"}, None),
        ({"retry-after": "nan"}, None),
        ({"retry-after": "1.2.3s"}, None),
        ({"retry-after-ms": "-5", "retry-after": "2"}, 2.0),
        ({"x-ratelimit-reset": "1000000130"}, 30.0),
        ({"x-ratelimit-reset": "1000000130000"}, 30.0),
        ({"x-ratelimit-reset-requests": "20ms", "x-ratelimit-reset-tokens": "6m0s"}, 360.0),
        (
            {
                "x-ratelimit-reset-requests": "1s",
                "x-ratelimit-remaining-requests": "0",
                "x-ratelimit-reset-tokens": "6m0s",
                "x-ratelimit-remaining-tokens": "900",
            },
            1.0,
        ),
        (
            {
                "anthropic-ratelimit-requests-reset": "2001-09-09T01:48:50Z",
                "anthropic-ratelimit-requests-remaining": "0",
            },
            30.0,
        ),
    ],
)
def test_how_long_a_server_asks_to_wait(headers: dict[str, str], wait: float | None) -> None:
    now = 1_000_000_100.0 if "ratelimit" in " ".join(headers) else 100.0
    assert asked_wait(headers, now) == wait
