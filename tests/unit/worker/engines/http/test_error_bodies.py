"""Errors in the place of an answer, and the sentences that servers and proxies wrap in others."""

from typing import Any

import orjson
import pytest

from services.worker.engines.http.error_bodies import AnswerError, parse_error_body, refuse_error
from services.worker.engines.http.error_texts import short_text
from services.worker.engines.openai.responses import parse_error

CREDIT = {"message": "Insufficient credits"}
RAW = {"error": {"message": "maximum context length is 10 tokens", "code": "context_length_exceeded"}}


@pytest.mark.parametrize(
    ("document", "status"),
    [
        ({"error": {**CREDIT, "code": 402}}, 402),
        ({"error": {**CREDIT, "code": "402"}}, 402),
        ({"error": {**CREDIT, "status": 402}}, 402),
        ({"error": {**CREDIT, "type": "billing_error"}}, 402),
        ({"error": {**CREDIT, "code": "insufficient_quota"}}, 402),
        ({"error": CREDIT, "status": 402}, 402),
        ({"error": CREDIT}, 402),
        ({"error": "Insufficient credits"}, 402),
        ({"error": {"message": "Error code: 402 - no"}}, 402),
        ({"message": "Payment Required", "choices": []}, 402),
        ({"base_resp": {"status_code": 1008, "status_msg": "insufficient balance"}, "choices": None}, 402),
        ({"errors": [{"code": 401, "message": "no"}], "success": False}, 401),
        ({"detail": "Incorrect API key provided"}, 401),
        ({"error": {"message": "no", "code": "invalid_api_key"}}, 401),
        ({"error": {"message": "no", "status": "PERMISSION_DENIED"}}, 403),
        ({"error": {"message": "The model m does not exist"}}, 404),
        ({"error": {"message": "no", "type": "NotFoundError"}}, 404),
        ({"error": {"message": "no", "type": "Bad Request"}}, 400),
        ({"error": {"message": "This endpoint's maximum context length is 10 tokens"}}, 400),
        ({"error": {"message": "no", "code": 429}}, 429),
        ({"error": {"message": "no", "status": "RESOURCE_EXHAUSTED"}}, 429),
        ({"error": {"message": "no", "type": "overloaded_error"}}, 529),
        ({"error": {"message": "no", "code": 1302}}, 500),
        ({"error": {"message": "no", "metadata": {"raw": '{"error": {"code": 429}}'}}}, 429),
        ({"choices": [{"index": 0, "error": {"message": "no", "code": 502}, "message": {}}]}, 502),
        ({"choices": [{"text": "ok"}, {"error": {"message": "no", "type": "rate_limit_error"}}]}, 429),
        ({"object": "error", "message": "no", "code": 400}, 400),
        ({"type": "error", "error": {"type": "not_found_error"}}, 404),
        ({"detail": {"error": {"message": "no such model", "code": 404}}}, 404),
        ({"detail": [{"loc": ["body", "model"], "msg": "Field required", "type": "missing"}]}, 422),
        ({"status": 401, "title": "Unauthorized"}, 401),
        ({"title": "Unauthorized"}, 401),
        ({"fault": {"faultstring": "Rate limit quota violation"}}, 429),
        ({"__type": "ThrottlingException", "message": "Too many"}, 429),
        ({"detail": "Not authenticated"}, 401),
        ({"detail": "Not Found"}, 404),
        ({"error": "Bad Gateway"}, 502),
        ({"Message": "Forbidden"}, 403),
        ({"Message": "User is not authorized to access this resource"}, 403),
        ({"Error": {"Code": "InvalidApiKey", "Message": "Invalid API-key provided."}}, 401),
        ({"statusCode": 403, "body": "no access"}, 403),
        ({"statusCode": 429, "body": '{"error": "slow down"}'}, 429),
        ({"code": 401, "msg": "bad token"}, 401),
        ({"status": "error", "message": "Invalid API key"}, 401),
        ({"status": "failed"}, 500),
        ({"success": False, "message": "Authentication failed"}, 401),
        ({"success": False}, 500),
        ({"ok": False, "reason": "rate limit reached"}, 429),
    ],
)
def test_an_error_in_the_place_of_an_answer_stands_for_a_status(
    document: dict[str, Any], status: int
) -> None:
    with pytest.raises(AnswerError) as refused:
        refuse_error(document)
    assert refused.value.status == status
    assert not refused.value.is_midway


@pytest.mark.parametrize(
    "document",
    [
        {"choices": [{"text": "Error code: 402"}], "error": None, "message": "ok"},
        {"choices": [{"message": {"content": "ok"}, "error": None}], "error": {}},
        {"message": {"role": "assistant", "content": "ok"}, "done": True},
        {"response": "ok", "done": True, "detail": "x"},
        {"type": "message", "content": [{"type": "text", "text": "ok"}]},
        {"data": [], "object": "list"},
        {"candidates": [{"finishReason": "STOP"}]},
        {"choices": [{"text": "ok"}], "code": 401, "success": False, "Message": "x"},
        {"status": "success", "statusCode": 200},
        {"choices": 3},
        {},
    ],
)
def test_an_answer_is_no_error(document: dict[str, Any]) -> None:
    refuse_error(document)


@pytest.mark.parametrize(
    ("document", "sentence"),
    [
        ({"detail": "no such field"}, "no such field"),
        (
            {"detail": [{"loc": ["body", "top_p"], "msg": "Input should be at most 1", "type": "x"}]},
            "top_p: Input should be at most 1",
        ),
        (
            {"detail": [{"loc": ["body", "a", 0], "msg": "bad"}, {"loc": ["body"], "msg": "worse"}]},
            "a.0: bad; worse",
        ),
        ({"detail": {"error": {"message": "nested"}}}, "nested"),
        ({"fault": {"faultstring": "over quota", "detail": {"errorcode": "q"}}}, "over quota"),
        ({"Error": {"Code": "X", "Message": "no such key"}}, "no such key"),
        ({"statusCode": 403, "body": "no access"}, "no access"),
        ({"ok": False, "reason": "slow down"}, "slow down"),
        ({"error": "Bad Request", "message": "temperature is odd"}, "Bad Request: temperature is odd"),
        ({"errors": [{"message": "one"}, {"message": "two"}]}, "one; two"),
        ({"title": "Bad", "detail": "the field x is odd", "status": 400}, "the field x is odd"),
        (
            {"error": {"message": "Provider returned error", "metadata": {"raw": "too hot"}}},
            "Provider returned error: too hot",
        ),
        (
            {
                "error": {
                    "message": "Provider returned error",
                    "metadata": {"raw": orjson.dumps(RAW).decode(), "provider_name": "P"},
                }
            },
            "Provider returned error (P: maximum context length is 10 tokens)",
        ),
        ({"error": {"message": "no", "metadata": {"raw": {"message": "since"}}}}, "no: since"),
        ({"error": {"message": '{\n "error": {"code": 400, "message": "odd"}}', "code": 400}}, "odd"),
        ({"error": {"message": "[{'odd'}]", "code": 400}}, "[{'odd'}]"),
        ({"error": {"message": "{}", "code": 400}}, "{}"),
    ],
)
def test_the_sentence_of_an_error_is_kept_however_it_is_wrapped(
    document: dict[str, Any], sentence: str
) -> None:
    assert parse_error_body(orjson.dumps(document))[1] == sentence


def test_the_code_that_a_proxy_passes_on_decides_the_meaning() -> None:
    passed_on = {"message": "Provider returned error", "metadata": {"raw": orjson.dumps(RAW).decode()}}
    short = {"error": {"code": "insufficient_quota", "message": "no"}}
    assert parse_error(orjson.dumps({"error": passed_on})).meaning == "too_long"
    passed_on["metadata"] = {"raw": short}
    assert parse_error(orjson.dumps({"error": passed_on})).meaning == "no_credit"


def test_an_error_nested_without_an_end_has_a_sentence() -> None:
    document: dict[str, Any] = {"message": "inner"}
    for _ in range(40):
        document = {"error": {"metadata": {"raw": document}}}
    assert parse_error_body(orjson.dumps(document)) is not None
    with pytest.raises(AnswerError):
        refuse_error(document)


@pytest.mark.parametrize(
    "secret",
    [
        "sk-proj-0123456789abcdef",
        "AIzaSyA0123456789abcdefghij",
        "hf_0123456789abcdef",
        "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxIn0.abc",
    ],
)
def test_a_key_of_any_provider_is_left_out(secret: str) -> None:
    said = short_text(f"Incorrect API key provided: {secret}. Bearer 0123456789abcdef at http://me:pw1@host/")
    assert said == "Incorrect API key provided: ***. Bearer *** at http://***@host/"
