"""Batches and models over a socket, as the official client of the OpenAI protocol handles them."""

import json
import uuid
from typing import Final, get_args

import aiohttp
import pytest
from openai import AsyncOpenAI, BadRequestError, ConflictError, NotFoundError
from openai.types import Batch, Model

from proctor.v1 import batch_service_pb2 as batch_pb2
from proctor.v1 import file_service_pb2 as file_pb2
from services.common.errors import ErrorKind
from tests.fakes.gateway.batch_services import STARTED, FakeBatches
from tests.fakes.gateway.gateway_harness import GatewayHarness, gateway_harness
from tests.fakes.gateway.http_calls import call
from tests.fakes.gateway.openai_client import openai_client
from tests.fakes.refusals import refused

BATCHES = "/v1/batches"
CHATS: Final = "/v1/chat/completions"
MISSING = "batch_" + 32 * "f"
MOMENTS = (
    "in_progress_at",
    "finalizing_at",
    "completed_at",
    "failed_at",
    "expired_at",
    "cancelling_at",
    "cancelled_at",
)
STATUSES = [name.removeprefix("BATCH_STATE_").lower() for name in batch_pb2.BatchState.keys()[1:]]


@pytest.fixture
def batches(harness: GatewayHarness) -> FakeBatches:
    return harness.scheduler.batches


@pytest.fixture
def file_id(harness: GatewayHarness) -> str:
    return harness.scheduler.files.put("lines.jsonl", b"{}\n", file_pb2.FILE_PURPOSE_BATCH).file_id


def order(file_id: str, **changes: object) -> dict[str, object]:
    return {"input_file_id": file_id, "endpoint": CHATS, "completion_window": "24h", **changes}


async def test_batch_is_started_over_a_file(client: AsyncOpenAI, batches: FakeBatches, file_id: str) -> None:
    batch = await client.batches.create(
        input_file_id=file_id, endpoint=CHATS, completion_window="24h", metadata={"sort": "nightly"}
    )
    assert (batch.id, batch.status, batch.object) == ("batch_" + 32 * "0", "validating", "batch")
    assert (batch.created_at, batch.expires_at) == (STARTED, STARTED + 24 * 3600)
    assert (batch.endpoint, batch.completion_window, batch.input_file_id) == (CHATS, "24h", file_id)
    assert (batch.metadata, batch.errors, batch.output_file_id) == ({"sort": "nightly"}, None, None)
    [created] = batches.created
    assert (created.user, dict(created.metadata)) == ("local", {"sort": "nightly"})
    assert str(uuid.UUID(created.request_id)) == created.request_id
    assert await client.batches.retrieve(batch.id) == batch


async def test_time_that_its_files_stay_is_passed_on(
    client: AsyncOpenAI, batches: FakeBatches, file_id: str
) -> None:
    await client.batches.create(
        input_file_id=file_id,
        endpoint=CHATS,
        completion_window="24h",
        output_expires_after={"anchor": "created_at", "seconds": 7200},
    )
    await client.batches.create(input_file_id=file_id, endpoint=CHATS, completion_window="24h")
    timed, kept = batches.created
    assert timed.output_expires_after_seconds == 7200
    assert not kept.HasField("output_expires_after_seconds")


async def test_batch_has_all_fields_of_the_protocol_and_no_others(
    harness: GatewayHarness, file_id: str
) -> None:
    status, body, _ = await call(harness, "POST", BATCHES, json=order(file_id, metadata=None))
    assert status == 200
    assert set(body) == set(Batch.model_fields)
    assert body | dict.fromkeys(MOMENTS) == body
    assert body["usage"] == {
        "input_tokens": 0,
        "input_tokens_details": {"cached_tokens": 0},
        "output_tokens": 0,
        "output_tokens_details": {"reasoning_tokens": 0},
        "total_tokens": 0,
    }
    assert (body["request_counts"], body["metadata"]) == ({"total": 0, "completed": 0, "failed": 0}, None)
    assert (body["model"], body["output_file_id"], body["error_file_id"]) == (None, None, None)


async def test_all_that_is_known_of_a_batch_is_reported(client: AsyncOpenAI, batches: FakeBatches) -> None:
    put = batch_pb2.Batch(
        batch_id="batch_1",
        state=batch_pb2.BATCH_STATE_COMPLETED,
        model="openai/fake",
        output_file_id="file-1",
        error_file_id="file-2",
        total=10,
        answered=7,
        failed=3,
    )
    put.usage.prompt_tokens, put.usage.completion_tokens = 30, 12
    put.usage.cached_tokens, put.usage.reasoning_tokens = 5, 4
    for number, name in enumerate(("created_at", "expires_at", *MOMENTS), 1):
        getattr(put, name).FromSeconds(STARTED + number)
    batches.kept["batch_1"] = put
    reported = await client.batches.retrieve("batch_1")
    assert (reported.model, reported.output_file_id, reported.error_file_id) == (
        "openai/fake",
        "file-1",
        "file-2",
    )
    assert reported.request_counts
    assert reported.request_counts.to_dict() == {"total": 10, "completed": 7, "failed": 3}
    assert reported.usage
    assert (reported.usage.input_tokens, reported.usage.output_tokens, reported.usage.total_tokens) == (
        30,
        12,
        42,
    )
    assert reported.usage.input_tokens_details.cached_tokens == 5
    assert reported.usage.output_tokens_details.reasoning_tokens == 4
    moments = [getattr(reported, name) for name in ("created_at", "expires_at", *MOMENTS)]
    assert moments == [STARTED + number for number in range(1, 10)]


@pytest.mark.parametrize("status", STATUSES)
async def test_every_state_has_the_word_of_the_protocol(
    client: AsyncOpenAI, batches: FakeBatches, status: str
) -> None:
    state = batch_pb2.BatchState.Value(f"BATCH_STATE_{status.upper()}")
    batches.kept["batch_1"] = batch_pb2.Batch(batch_id="batch_1", state=state)
    assert status in get_args(Batch.model_fields["status"].annotation)
    assert (await client.batches.retrieve("batch_1")).status == status


async def test_batch_over_a_file_with_faults_has_failed_and_names_them(client: AsyncOpenAI) -> None:
    file = await client.files.create(file=("x.jsonl", b"{}\nbroken\n"), purpose="batch")
    batch = await client.batches.create(input_file_id=file.id, endpoint=CHATS, completion_window="24h")
    assert (batch.status, batch.errors and batch.errors.object) == ("failed", "list")
    assert batch.errors
    assert batch.errors.data
    [error] = batch.errors.data
    assert error.to_dict() == {
        "code": "invalid_json_line",
        "message": "It is not valid JSON.",
        "param": "body",
        "line": 2,
    }


async def test_list_pages_by_itself_newest_first(client: AsyncOpenAI, file_id: str) -> None:
    ids = [
        (await client.batches.create(input_file_id=file_id, endpoint=CHATS, completion_window="24h")).id
        for _ in range(7)
    ]
    assert [batch.id async for batch in client.batches.list(limit=3)] == ids[::-1]
    page = await client.batches.list(limit=3)
    assert page.has_more
    following = await page.get_next_page()
    assert [batch.id for batch in following.data] == [ids[3], ids[2], ids[1]]
    assert [batch.id async for batch in client.batches.list(after=ids[2])] == [ids[1], ids[0]]


async def test_batch_is_cancelled_unless_it_has_ended(
    client: AsyncOpenAI, batches: FakeBatches, file_id: str
) -> None:
    batch = await client.batches.create(input_file_id=file_id, endpoint=CHATS, completion_window="24h")
    cancelled = await client.batches.cancel(batch.id)
    assert (cancelled.status, cancelled.cancelling_at) == ("cancelling", STARTED + 60)
    batches.kept[batch.id].state = batch_pb2.BATCH_STATE_COMPLETED
    with pytest.raises(ConflictError, match="is completed and cannot be cancelled") as raised:
        await client.batches.cancel(batch.id)
    assert raised.value.code == "batch_already_finished"


async def test_what_is_not_there_is_not_found(client: AsyncOpenAI) -> None:
    with pytest.raises(NotFoundError) as raised:
        await client.batches.retrieve(MISSING)
    assert (raised.value.code, raised.value.param) == ("batch_not_found", "batch_id")
    with pytest.raises(NotFoundError):
        await client.batches.cancel(MISSING)
    with pytest.raises(NotFoundError) as raised:
        await client.batches.create(input_file_id="file-x", endpoint=CHATS, completion_window="24h")
    assert (raised.value.code, raised.value.param) == ("file_not_found", "input_file_id")


EXPIRY = "output_expires_after"
HOUR = {"anchor": "created_at", "seconds": 3600}


@pytest.mark.parametrize(
    ("body", "param", "problem"),
    [
        ({"endpoint": CHATS, "completion_window": "24h"}, "input_file_id", "Field required"),
        (order("file-1", endpoint=7), "endpoint", "valid string"),
        (order("file-1", metadata={"a": 1}), "metadata.a", "valid string"),
        (order("file-1", metadata={"a": "\ud800"}), "metadata.a", ""),
        (order("file-1", windw="24h"), "windw", "Extra inputs are not permitted"),
        (order("file-1", output_expires_after={"seconds": 3600}), f"{EXPIRY}.anchor", "Field required"),
        (order("file-1", output_expires_after={**HOUR, "seconds": 3599}), f"{EXPIRY}.seconds", "3600"),
        (order("file-1", output_expires_after={**HOUR, "seconds": 2592001}), f"{EXPIRY}.seconds", "2592000"),
        (order("file-1", output_expires_after={**HOUR, "anchor": "now"}), f"{EXPIRY}.anchor", "created_at"),
        ([], "body", "dictionary"),
    ],
)
async def test_body_that_says_something_else_is_400(
    harness: GatewayHarness, batches: FakeBatches, body: object, param: str, problem: str
) -> None:
    headers = {"Content-Type": "application/json"}
    status, reported, _ = await call(harness, "POST", BATCHES, data=json.dumps(body), headers=headers)
    error = reported["error"]
    assert (status, error["type"], error["param"]) == (400, "invalid_request_error", param)
    assert problem in error["message"]
    assert not batches.created


@pytest.mark.parametrize("content", [b"", b"{", b"\xff"])
async def test_body_that_is_no_json_is_400(harness: GatewayHarness, content: bytes) -> None:
    headers = {"Content-Type": "application/json"}
    status, reported, _ = await call(harness, "POST", BATCHES, data=content, headers=headers)
    assert (status, reported["error"]["type"]) == (400, "invalid_request_error")
    assert reported["error"]["message"]


async def test_key_of_a_request_reaches_the_scheduler(
    harness: GatewayHarness, batches: FakeBatches, file_id: str
) -> None:
    for given in ("again", "again"):
        headers = {"Idempotency-Key": given}
        assert (await call(harness, "POST", BATCHES, json=order(file_id), headers=headers))[0] == 200
    first, second = (created.request_id for created in batches.created)
    assert first == second


async def test_batch_of_a_key_is_of_its_user() -> None:
    async with gateway_harness(api_keys={"carol": "secret-key-of-carol"}) as harness:
        file = harness.scheduler.files.put("a", b"{}", file_pb2.FILE_PURPOSE_BATCH)
        async with openai_client(harness.http, api_key="secret-key-of-carol") as client:
            await client.batches.create(input_file_id=file.file_id, endpoint=CHATS, completion_window="24h")
        assert [created.user for created in harness.scheduler.batches.created] == ["carol"]
        assert harness.scheduler.queue.requests == {"carol": 1}


async def test_models_that_can_be_asked_are_listed(client: AsyncOpenAI) -> None:
    starter = Model(id="vllm/starter", created=1_700_000_000, object="model", owned_by="vllm")
    alias = Model(id="small", created=1_700_000_000, object="model", owned_by="vllm")
    assert [model async for model in client.models.list()] == [starter, alias]
    assert await client.models.retrieve("vllm/starter") == starter
    assert await client.models.retrieve("small") == alias
    for unknown in ("vllm/none", "bare", "vllm", "gpt-4"):
        with pytest.raises(NotFoundError, match=f"There is no model {unknown} here") as raised:
            await client.models.retrieve(unknown)
        assert (raised.value.code, raised.value.param) == ("model_not_found", "model")


async def test_name_of_a_model_may_come_with_its_slashes(harness: GatewayHarness) -> None:
    for path in ("/v1/models/vllm/starter", "/v1/models/vllm%2Fstarter"):
        async with aiohttp.ClientSession() as session, session.get(harness.http + path) as response:
            assert (response.status, (await response.json())["id"]) == (200, "vllm/starter")


async def test_refusal_of_the_scheduler_is_the_message(
    client: AsyncOpenAI, batches: FakeBatches, file_id: str
) -> None:
    sentence = "completion_window has to be 1h to 168h, such as 24h."
    batches.refusal = refused(
        ErrorKind.INVALID, "INVALID_PARAMETER", sentence, field="completion_window", sentence=sentence
    )
    with pytest.raises(BadRequestError) as raised:
        await client.batches.create(input_file_id=file_id, endpoint=CHATS, completion_window="24h")
    assert raised.value.body == {
        "message": sentence,
        "type": "invalid_request_error",
        "param": "completion_window",
        "code": "invalid_parameter",
    }
