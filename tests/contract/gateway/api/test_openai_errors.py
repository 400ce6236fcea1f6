"""Every refusal below /v1 has the form of the OpenAI protocol; the official client raises its own class."""

import asyncio
from collections.abc import AsyncIterator
from typing import Final

import aiohttp
import openai
import pytest
from openai import AsyncOpenAI

from proctor.v1 import file_service_pb2 as file_pb2
from services.common.errors import ErrorKind, RemoteError
from tests.fakes.eventually import eventually
from tests.fakes.gateway.gateway_harness import GatewayHarness, gateway_harness
from tests.fakes.gateway.http_calls import call
from tests.fakes.gateway.openai_client import openai_client
from tests.fakes.refusals import refused

CHATS: Final = "/v1/chat/completions"
FIELDS = {"message", "type", "param", "code"}


async def create(client: AsyncOpenAI, harness: GatewayHarness) -> None:
    file = harness.scheduler.files.put("a", b"{}", file_pb2.FILE_PURPOSE_BATCH)
    await client.batches.create(input_file_id=file.file_id, endpoint=CHATS, completion_window="24h")


def remote(kind: ErrorKind, reason: str, **facts: str) -> RemoteError:
    return refused(kind, reason, "One sentence.", **facts)


@pytest.mark.parametrize(
    ("refusal", "raises", "status", "code"),
    [
        (remote(ErrorKind.INVALID, "INVALID_PARAMETER"), openai.BadRequestError, 400, "invalid_parameter"),
        (remote(ErrorKind.INVALID, "UNKNOWN_MODEL"), openai.BadRequestError, 400, "model_not_found"),
        (remote(ErrorKind.NOT_FOUND, "FILE_NOT_FOUND"), openai.NotFoundError, 404, "file_not_found"),
        (remote(ErrorKind.CONFLICT, "REQUEST_ID_TAKEN"), openai.ConflictError, 409, "request_id_taken"),
        (remote(ErrorKind.EXHAUSTED, "QUEUE_FULL"), openai.RateLimitError, 429, "queue_full"),
        (remote(ErrorKind.INTERNAL, "INTERNAL"), openai.InternalServerError, 500, "internal"),
        (
            remote(ErrorKind.UNAVAILABLE, "OBJECT_STORE_UNAVAILABLE", dependency="s3"),
            openai.InternalServerError,
            503,
            "object_store_unavailable",
        ),
    ],
)
async def test_refusal_is_the_class_that_the_client_has_for_it(
    harness: GatewayHarness, refusal: RemoteError, raises: type[openai.APIStatusError], status: int, code: str
) -> None:
    harness.scheduler.batches.refusal = refusal
    async with openai_client(harness.http) as client:
        with pytest.raises(raises) as raised:
            await create(client, harness)
    error = raised.value
    assert (error.status_code, error.code) == (status, code)
    assert isinstance(error.body, dict)
    assert set(error.body) == FIELDS
    assert ("Retry-After" in error.response.headers) == (status in (429, 503))


@pytest.mark.parametrize(
    ("refusal", "status"),
    [
        (remote(ErrorKind.INVALID, "FILE_TOO_LARGE", limit="1"), 413),
        (remote(ErrorKind.EXHAUSTED, "STORAGE_QUOTA_EXCEEDED", limit="1"), 413),
        (remote(ErrorKind.EXHAUSTED, "TOO_MANY_UPLOADS"), 429),
        (remote(ErrorKind.CONFLICT, "REQUEST_TIMEOUT"), 408),
    ],
)
async def test_refused_upload_says_what_the_scheduler_said(
    harness: GatewayHarness, client: AsyncOpenAI, refusal: RemoteError, status: int
) -> None:
    harness.scheduler.files.refusal = refusal
    with pytest.raises(openai.APIStatusError, match=r"One sentence\.") as raised:
        await client.files.create(file=("a.jsonl", b"x" * 100_000), purpose="batch")
    assert (raised.value.status_code, raised.value.code) == (status, refusal.reason.lower())


async def test_page_behind_nothing_that_is_known_names_the_parameter(client: AsyncOpenAI) -> None:
    for listed in (client.files.list(after="file-none"), client.batches.list(after="batch_none")):
        with pytest.raises(openai.NotFoundError, match="none") as raised:
            await listed
        assert raised.value.param == "after"


async def test_backend_that_is_away_is_unavailable(harness: GatewayHarness, client: AsyncOpenAI) -> None:
    await harness.stop_backends()
    with pytest.raises(openai.InternalServerError, match="scheduler does not answer") as raised:
        await client.batches.list()
    assert (raised.value.status_code, raised.value.type) == (503, "server_error")
    assert raised.value.response.headers["Retry-After"] == "2"


async def test_too_many_requests_say_when_to_come_again(harness: GatewayHarness, client: AsyncOpenAI) -> None:
    harness.scheduler.queue.max_requests = 1
    await client.batches.list()
    with pytest.raises(openai.RateLimitError) as raised:
        await client.batches.list()
    assert (raised.value.code, raised.value.type) == ("rate_limit_exceeded", "rate_limit_error")
    assert raised.value.response.headers["Retry-After"] == "12"


async def test_unknown_paths_are_counted_and_answered_in_the_same_form(harness: GatewayHarness) -> None:
    for method, path in (
        ("POST", CHATS),
        ("GET", "/v1/nothing"),
        ("GET", "/v1/"),
        ("PUT", "/v1/files"),
        ("POST", "/v1/models"),
    ):
        status, body, response = await call(harness, method, path)
        assert status == (405 if path in ("/v1/files", "/v1/models") else 404)
        assert (set(body["error"]), response.content_type) == (FIELDS, "application/json")
        assert path in body["error"]["message"]
    assert harness.scheduler.queue.requests == {"local": 5}


async def test_other_paths_keep_their_form(harness: GatewayHarness) -> None:
    for path in ("/v2/files", "/v1x", "/admin/nothing"):
        status, body, response = await call(harness, "GET", path)
        assert (status, response.content_type) == (404, "application/problem+json")
        assert body["detail"] == "Not Found"


async def test_body_of_a_batch_is_bounded() -> None:
    async with gateway_harness(max_body_bytes=1024) as harness:
        status, body, _ = await call(harness, "POST", "/v1/batches", data=b"x" * 2000)
        assert (status, body["error"]["type"]) == (413, "invalid_request_error")


async def test_any_key_is_good_where_there_are_none(harness: GatewayHarness) -> None:
    for key in ("anything", "EMPTY", "sk-" + 40 * "x"):
        async with openai_client(harness.http, api_key=key) as client:
            assert (await client.batches.list()).data == []
    assert harness.scheduler.queue.requests == {"local": 3}


async def test_unknown_key_is_refused_where_there_are_keys() -> None:
    async with gateway_harness(api_keys={"carol": "secret-key-of-carol"}) as harness:
        async with openai_client(harness.http, api_key="secret-kex") as client:
            for ask in (client.batches.list, client.files.list, client.models.list):
                with pytest.raises(openai.AuthenticationError, match="API key is unknown") as raised:
                    await ask()
                assert raised.value.code == "invalid_api_key"
                assert "secret" not in raised.value.message
        async with openai_client(harness.http, api_key="secret-key-of-carol") as client:
            assert (await client.batches.list()).data == []
        headers = {"X-Proctor-User": "bob"}
        assert (await call(harness, "GET", "/v1/batches", headers=headers))[0] == 401
        assert harness.scheduler.queue.requests == {"carol": 1}


async def test_client_that_goes_away_leaves_no_upload_open(harness: GatewayHarness) -> None:
    async def endless() -> AsyncIterator[bytes]:
        yield b'--XX\r\nContent-Disposition: form-data; name="purpose"\r\n\r\nbatch\r\n'
        yield b'--XX\r\nContent-Disposition: form-data; name="file"; filename="a"\r\n\r\nhalf'
        await asyncio.Event().wait()

    headers = {"Content-Type": "multipart/form-data; boundary=XX"}
    async with aiohttp.ClientSession() as session:
        posting = asyncio.create_task(
            session.post(f"{harness.http}/v1/files", data=endless(), headers=headers).__aenter__()
        )
        await eventually(lambda: harness.scheduler.files.open_uploads == 1, "the upload is open")
        posting.cancel()
        await asyncio.gather(posting, return_exceptions=True)
    await eventually(lambda: not harness.scheduler.files.open_uploads, "the upload is over")
    assert not harness.scheduler.files.kept
