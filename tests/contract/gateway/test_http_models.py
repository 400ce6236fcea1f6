"""Models over a socket: memory, capabilities, and pools that could not be listed."""

import pytest

from services.gateway.api.models import byte_text
from tests.fakes.gateway.gateway_harness import GatewayHarness
from tests.fakes.gateway.http_calls import call

MODELS = "/api/v1/models"


async def test_models_are_listed_with_what_is_known_and_nulls_for_the_rest(harness: GatewayHarness) -> None:
    status, body, _ = await call(harness, "GET", MODELS)
    assert status == 200
    starter, bare = body["models"]
    can = starter.pop("capabilities")
    assert starter == {
        "model": "vllm/starter",
        "provider": "vllm",
        "name": "starter",
        "pool": "local",
        "loaded": True,
        "context_tokens": 1024,
        "size_bytes": 15_400_000,
        "memory_bytes": 2_015_400_000,
        "quantization": "bfloat16",
        "problem": None,
        "price": None,
        "created_at": "2023-11-14T22:13:20Z",
    }
    assert {word for word, has in can.items() if has} == {"chat", "seed"}
    assert set(can) == {"chat", "completion", "loglikelihood", "constrained", "seed", "logprobs", "images"}
    assert (bare["size_bytes"], bare["capabilities"]) == (None, None)
    assert bare["problem"] == "The folder /none does not exist."


async def test_pool_that_did_not_answer_is_shown_as_such(harness: GatewayHarness) -> None:
    local, remote = (await call(harness, "GET", MODELS))[1]["sources"]
    assert (local["pool"], local["problem"], local["listed_at"]) == ("local", None, "2023-11-14T22:13:20Z")
    assert (remote["pool"], remote["provider"], remote["engine"]) == ("remote", "gemini", "gemini")
    assert (remote["problem"], remote["listed_at"]) == ("No answer within 2 s.", None)


async def test_unknown_provider_is_400_with_the_known_ones(harness: GatewayHarness) -> None:
    status, body, _ = await call(harness, "GET", f"{MODELS}?provider=olama")
    assert (status, body["reason"]) == (400, "UNKNOWN_PROVIDER")
    assert body["detail"] == 'No pool serves the provider "olama". Providers: gemini, vllm.'
    assert (await call(harness, "GET", f"{MODELS}?provider=vllm"))[0] == 200


async def test_admin_pages_get_name_size_and_memory_needed(harness: GatewayHarness) -> None:
    status, body, _ = await call(harness, "GET", "/admin/models")
    assert status == 200
    starter, bare = body["models"]
    assert (starter["id"], starter["name"]) == ("vllm/starter", "starter")
    assert (starter["size"], starter["size_text"]) == (15_400_000, "15.4 MB")
    assert (starter["memory_needed"], starter["memory_needed_text"]) == (2_015_400_000, "2.0 GB")
    assert (bare["size"], bare["size_text"], bare["memory_needed_text"]) == (None, None, None)
    assert body["sources"][1]["problem"] == "No answer within 2 s."


@pytest.mark.parametrize(
    ("count", "text"),
    [
        (0, "0 bytes"),
        (999, "999 bytes"),
        (1000, "1.0 kB"),
        (999_949, "999.9 kB"),
        (999_950, "1.0 MB"),
        (1_321_098_329, "1.3 GB"),
        (10**18, "1000.0 PB"),
    ],
)
def test_bytes_are_shown_in_the_unit_that_fits(count: int, text: str) -> None:
    assert byte_text(count) == text
