"""Files over a socket as the official client of the OpenAI protocol handles them, and as curl does."""

import asyncio
import json
import uuid
from functools import partial
from pathlib import Path
from typing import Any

import aiohttp
import pytest
from openai import AsyncOpenAI, BadRequestError, ConflictError, NotFoundError
from openai.types import FileDeleted, FileObject

from proctor.v1 import file_service_pb2 as file_pb2
from tests.fakes.eventually import eventually
from tests.fakes.gateway.backend_services import FakeScheduler
from tests.fakes.gateway.batch_services import STARTED, FakeFiles
from tests.fakes.gateway.gateway_harness import GatewayHarness, gateway_harness
from tests.fakes.gateway.gateway_process import gateway_process
from tests.fakes.gateway.http_calls import call
from tests.fakes.gateway.openai_client import openai_client
from tests.harness.processes import bound, output_of

FILES = "/v1/files"
LINES = b'{"custom_id": "a"}\n{"custom_id": "b"}\n'
MISSING = "file-" + 32 * "f"


@pytest.fixture
def files(harness: GatewayHarness) -> FakeFiles:
    return harness.scheduler.files


def form(*fields: tuple[str, bytes], content: bytes = LINES, is_file_first: bool = False) -> dict[str, Any]:
    """A form written by hand: the file comes last, as curl and the official client send it, or first."""
    parts = [f'form-data; name="{name}"\r\n\r\n'.encode() + value for name, value in fields]
    file = b'form-data; name="file"; filename="lines.jsonl"\r\n\r\n' + content
    ordered = [file, *parts] if is_file_first else [*parts, file]
    body = b"".join(b"--XX\r\nContent-Disposition: " + part + b"\r\n" for part in ordered) + b"--XX--\r\n"
    return {"data": body, "headers": {"Content-Type": "multipart/form-data; boundary=XX"}}


PURPOSE = ("purpose", b"batch")


async def test_file_is_uploaded_looked_at_and_deleted(
    client: AsyncOpenAI, files: FakeFiles, tmp_path: Path
) -> None:
    path = tmp_path / "lines.jsonl"
    path.write_bytes(LINES)
    uploaded = await client.files.create(file=path, purpose="batch")
    assert uploaded == FileObject(
        id="file-" + 32 * "0",
        bytes=len(LINES),
        created_at=STARTED,
        filename="lines.jsonl",
        object="file",
        purpose="batch",
        status="processed",
    )
    assert files.content[uploaded.id] == LINES
    [header] = files.headers
    assert (header.user, header.HasField("expires_after_seconds")) == ("local", False)
    assert str(uuid.UUID(header.request_id)) == header.request_id
    assert await client.files.retrieve(uploaded.id) == uploaded
    assert (await client.files.wait_for_processing(uploaded.id)).status == "processed"
    deleted = await client.files.delete(uploaded.id)
    assert deleted == FileDeleted(id=uploaded.id, object="file", deleted=True)
    with pytest.raises(NotFoundError):
        await client.files.retrieve(uploaded.id)


async def test_file_has_all_fields_of_the_protocol_and_no_others(harness: GatewayHarness) -> None:
    status, body, _ = await call(harness, "POST", FILES, **form(PURPOSE))
    assert status == 200
    assert body == {
        "id": "file-" + 32 * "0",
        "object": "file",
        "bytes": len(LINES),
        "created_at": STARTED,
        "expires_at": None,
        "filename": "lines.jsonl",
        "purpose": "batch",
        "status": "processed",
        "status_details": None,
    }
    assert set(body) == set(FileObject.model_fields)


async def test_file_may_go_away_by_itself(client: AsyncOpenAI) -> None:
    uploaded = await client.files.create(
        file=("lines.jsonl", LINES),
        purpose="batch",
        expires_after={"anchor": "created_at", "seconds": 7200},
    )
    assert uploaded.expires_at == STARTED + 7200


async def test_file_may_name_its_project(client: AsyncOpenAI, files: FakeFiles) -> None:
    create = partial(client.files.create, file=("lines.jsonl", LINES), purpose="batch")
    await create(extra_body={"project_id": 7})
    assert files.headers[-1].project_id == 7
    for wrong in (-1, 2**53):
        with pytest.raises(BadRequestError) as refused:
            await create(extra_body={"project_id": wrong})
        assert refused.value.param == "project_id"
    with pytest.raises(NotFoundError):
        await create(extra_body={"project_id": "no such project"})


async def test_file_with_faults_is_kept_and_says_so(client: AsyncOpenAI) -> None:
    uploaded = await client.files.create(file=("x.jsonl", b"{}\nbroken\nbroken\n"), purpose="batch")
    reported = "2 faults. line 2 body: It is not valid JSON."
    assert (uploaded.status, uploaded.status_details) == ("error", reported)


async def test_purpose_may_come_after_the_file_as_other_clients_send_it(
    harness: GatewayHarness, files: FakeFiles
) -> None:
    assert (await call(harness, "POST", FILES, **form(PURPOSE, is_file_first=True)))[0] == 200
    for fields in ((), (("purpose", b"fine-tune"),)):
        status, body, _ = await call(harness, "POST", FILES, **form(*fields, is_file_first=True))
        assert (status, body["error"]["param"]) == (400, "purpose")
    await eventually(lambda: not files.open_uploads, "no upload is open")
    assert len(files.kept) == 1


ANCHOR = ("expires_after[anchor]", b"created_at")


@pytest.mark.parametrize(
    ("given", "param", "problem"),
    [
        (form(), "purpose", "needs it"),
        (form(("purpose", b"vision")), "purpose", "and not 'vision'"),
        (form(("purpose", b"x" * 300)), "purpose", "more than 256 bytes"),
        (form(PURPOSE, PURPOSE), "purpose", "more than once"),
        (form(PURPOSE, ("file", b"x")), "file", "file name of 1 to 255"),
        (form(PURPOSE, ("model", b"x")), "model", "no such field; there are: file, purpose"),
        (form(PURPOSE, ANCHOR), "expires_after[seconds]", "a number from 3600 to 2592000"),
        (form(PURPOSE, ANCHOR, ("expires_after[seconds]", b"3599")), "expires_after[seconds]", "3600"),
        (form(PURPOSE, ANCHOR, ("expires_after[seconds]", b"2592001")), "expires_after[seconds]", "3600"),
        (form(PURPOSE, ("expires_after[seconds]", b"3600")), "expires_after[anchor]", "created_at"),
        (form(PURPOSE, ANCHOR, is_file_first=True), "expires_after", "before file"),
        ({"data": {"purpose": "batch"}}, None, "its Content-Type is not multipart/form-data"),
        (
            {"data": b"--XX--\r\n", "headers": {"Content-Type": "multipart/form-data; boundary=XX"}},
            "file",
            "needs it",
        ),
    ],
)
async def test_form_that_lacks_something_is_400_and_keeps_nothing(
    harness: GatewayHarness, files: FakeFiles, given: dict[str, Any], param: str | None, problem: str
) -> None:
    status, body, _ = await call(harness, "POST", FILES, **given)
    error = body["error"]
    assert (status, error["type"], error["param"]) == (400, "invalid_request_error", param)
    assert problem in error["message"]
    await eventually(lambda: not files.open_uploads, "no upload is open")
    assert not files.kept


async def test_curl_uploads_and_resumes(harness: GatewayHarness, files: FakeFiles, tmp_path: Path) -> None:
    path = tmp_path / "lines.jsonl"
    path.write_bytes(LINES * 1000)
    reported = await curl("-F", "purpose=batch", "-F", f"file=@{path}", harness.http + FILES)
    file_id = json.loads(reported)["id"]
    assert files.content[file_id] == path.read_bytes()
    half = tmp_path / "half.jsonl"
    half.write_bytes(path.read_bytes()[:20_001])
    await curl("-C", "-", "-o", str(half), f"{harness.http}{FILES}/{file_id}/content")
    assert half.read_bytes() == path.read_bytes()
    assert files.read_from == [20_001]


async def curl(*arguments: str) -> bytes:
    process = await asyncio.create_subprocess_exec(
        *bound("curl", "-sS", "--fail-with-body", *arguments), stdout=asyncio.subprocess.PIPE
    )
    output, _ = await output_of(process, 60)
    assert process.returncode == 0, output
    return output


async def test_key_of_a_request_is_any_text(harness: GatewayHarness, files: FakeFiles) -> None:
    key = str(uuid.uuid4())
    for given in (key, "again", "again", "other"):
        headers = {"Content-Type": "multipart/form-data; boundary=XX", "Idempotency-Key": given}
        assert (await call(harness, "POST", FILES, data=form(PURPOSE)["data"], headers=headers))[0] == 200
    first, second, third, fourth = (header.request_id for header in files.headers)
    assert first == key
    assert second == third != fourth
    assert str(uuid.UUID(second)) == second


async def test_list_pages_by_itself_in_both_orders(client: AsyncOpenAI, files: FakeFiles) -> None:
    put = [files.put(f"{number}.jsonl", b"x", file_pb2.FILE_PURPOSE_BATCH).file_id for number in range(7)]
    output = files.put("out.jsonl", b"x", file_pb2.FILE_PURPOSE_BATCH_OUTPUT).file_id
    assert [file.id async for file in client.files.list(limit=3)] == [output, *put[::-1]]
    assert [file.id async for file in client.files.list(limit=3, order="asc")] == [*put, output]
    assert [file.id async for file in client.files.list(purpose="batch_output")] == [output]
    assert [file.id async for file in client.files.list(after=put[2], purpose="batch")] == [put[1], put[0]]
    assert len((await client.files.list()).data) == 8


async def test_page_names_its_ends(harness: GatewayHarness, files: FakeFiles) -> None:
    no_ends = {"first_id": None, "last_id": None}
    empty: dict[str, Any] = {"object": "list", "data": [], "has_more": False, **no_ends}
    assert (await call(harness, "GET", FILES))[1] == empty
    put = [files.put("a.jsonl", b"x", file_pb2.FILE_PURPOSE_BATCH).file_id for _ in range(3)]
    _, page, _ = await call(harness, "GET", f"{FILES}?limit=2")
    assert (page["first_id"], page["last_id"], page["has_more"]) == (put[2], put[1], True)
    _, page, _ = await call(harness, "GET", f"{FILES}?limit=2&after={put[1]}")
    assert (page["first_id"], page["last_id"], page["has_more"]) == (put[0], put[0], False)


@pytest.mark.parametrize(
    ("query", "param"),
    [
        ("limit=0", "limit"),
        ("limit=10001", "limit"),
        ("order=up", "order"),
        ("purpose=x", "purpose"),
        ("a=b", "a"),
    ],
)
async def test_what_a_list_cannot_do_is_400(harness: GatewayHarness, query: str, param: str) -> None:
    status, body, _ = await call(harness, "GET", f"{FILES}?{query}")
    assert (status, body["error"]["param"], body["error"]["code"]) == (400, param, "invalid_parameter")


async def test_content_comes_byte_by_byte(client: AsyncOpenAI, files: FakeFiles) -> None:
    content = bytes(range(256)) * 40
    file = files.put("réponse é.jsonl", content, file_pb2.FILE_PURPOSE_BATCH_OUTPUT)
    answer = await client.files.content(file.file_id)
    assert answer.content == content
    headers = answer.response.headers
    assert (headers["Content-Length"], headers["Accept-Ranges"]) == (str(len(content)), "bytes")
    assert headers["ETag"] == f'"{file.file_id}"'
    assert headers["Content-Disposition"] == (
        "attachment; filename=\"r_ponse_.jsonl\"; filename*=UTF-8''r%C3%A9ponse%20%C3%A9.jsonl"
    )
    with pytest.raises(NotFoundError):
        await client.files.content(MISSING)


@pytest.mark.parametrize(
    ("asked", "status", "sent"),
    [
        ("bytes=0-", 206, range(10_240)),
        ("bytes=5000-", 206, range(5000, 10_240)),
        ("bytes=999-1000", 206, range(999, 1001)),
        ("bytes=10000-99999", 206, range(10_000, 10_240)),
        ("bytes=-240", 206, range(10_000, 10_240)),
        ("bytes=-99999", 206, range(10_240)),
        ("bytes=0-1,5-6", 200, range(10_240)),
        ("bytes=9-2", 200, range(10_240)),
        ("lines=1-2", 200, range(10_240)),
    ],
)
async def test_range_of_a_file_is_answered_alone(
    harness: GatewayHarness, files: FakeFiles, asked: str, status: int, sent: range
) -> None:
    content = bytes(range(256)) * 40
    path = f"{FILES}/{files.put('a', content, file_pb2.FILE_PURPOSE_BATCH).file_id}/content"
    got, body, headers = await fetched(harness, path, Range=asked)
    assert (got, body) == (status, content[sent.start : sent.stop])
    assert headers["Content-Length"] == str(len(sent))
    reported = f"bytes {sent.start}-{sent.stop - 1}/10240" if status == 206 else None
    assert headers.get("Content-Range") == reported
    assert files.read_from == [sent.start]
    await eventually(lambda: not files.open_reads, "no read is left open")


@pytest.mark.parametrize("asked", ["bytes=10-", "bytes=11-20", "bytes=-0"])
async def test_range_behind_the_end_is_416(harness: GatewayHarness, files: FakeFiles, asked: str) -> None:
    file = files.put("a", b"0123456789", file_pb2.FILE_PURPOSE_BATCH)
    status, body, headers = await fetched(harness, f"{FILES}/{file.file_id}/content", Range=asked)
    assert (status, headers["Content-Range"]) == (416, "bytes */10")
    assert "10 bytes" in json.loads(body)["error"]["message"]


async def test_condition_of_a_range_is_looked_at(harness: GatewayHarness, files: FakeFiles) -> None:
    file = files.put("a", b"0123456789", file_pb2.FILE_PURPOSE_BATCH)
    path, tag = f"{FILES}/{file.file_id}/content", f'"{file.file_id}"'
    same = await fetched(harness, path, **{"Range": "bytes=5-", "If-Range": tag})
    assert same[:2] == (206, b"56789")
    other = await fetched(harness, path, **{"Range": "bytes=5-", "If-Range": '"other"'})
    assert other[:2] == (200, b"0123456789")
    assert (await fetched(harness, path, **{"If-None-Match": f'"x", W/{tag}'}))[:2] == (304, b"")
    assert (await fetched(harness, path, **{"If-None-Match": "*"}))[:2] == (304, b"")


async def fetched(harness: GatewayHarness, path: str, **headers: str) -> tuple[int, bytes, Any]:
    async with (
        aiohttp.ClientSession() as session,
        session.get(harness.http + path, headers=headers) as response,
    ):
        return response.status, await response.read(), response.headers


async def test_content_that_breaks_off_is_no_whole_answer(harness: GatewayHarness, files: FakeFiles) -> None:
    file = files.put("a", b"x" * 100_000, file_pb2.FILE_PURPOSE_BATCH)
    files.breaks_at = 50_000
    with pytest.raises(aiohttp.ClientPayloadError):
        await fetched(harness, f"{FILES}/{file.file_id}/content")


async def test_empty_file_is_an_answer(harness: GatewayHarness, files: FakeFiles) -> None:
    file = files.put("a", b"", file_pb2.FILE_PURPOSE_BATCH)
    assert (await fetched(harness, f"{FILES}/{file.file_id}/content"))[:2] == (200, b"")


async def test_file_that_a_batch_uses_is_a_conflict_that_no_client_repeats(
    harness: GatewayHarness, files: FakeFiles
) -> None:
    file = files.put("a", b"x", file_pb2.FILE_PURPOSE_BATCH)
    files.in_use = {file.file_id}
    async with openai_client(harness.http, max_retries=2) as client:
        with pytest.raises(ConflictError, match="Batch batch_1 uses this file") as raised:
            await client.files.delete(file.file_id)
    assert (raised.value.code, raised.value.type) == ("file_in_use", "invalid_request_error")
    assert harness.scheduler.queue.requests == {"local": 1}


async def test_file_has_a_limit_of_its_own() -> None:
    async with gateway_harness(max_body_bytes=1024, max_batch_file_body_bytes=200_000) as harness:
        assert (await call(harness, "POST", FILES, **form(PURPOSE, content=b"x" * 190_000)))[0] == 200
        status, body, _ = await call(harness, "POST", FILES, **form(PURPOSE, content=b"x" * 210_000))
        assert (status, body["error"]["type"]) == (413, "invalid_request_error")
        assert body["error"]["message"] == "The body is larger than 200000 bytes; send a smaller one."
        assert len(harness.scheduler.files.kept) == 1


async def test_upload_of_a_key_is_of_its_user() -> None:
    async with gateway_harness(api_keys={"carol": "secret-key-of-carol"}) as harness:
        async with openai_client(harness.http, api_key="secret-key-of-carol") as client:
            await client.files.create(file=("a.jsonl", LINES), purpose="batch")
        assert [header.user for header in harness.scheduler.files.headers] == ["carol"]


async def test_empty_upload_without_purpose_names_the_purpose(client: AsyncOpenAI) -> None:
    with pytest.raises(BadRequestError, match="and not 'assistants'") as raised:
        await client.files.create(file=("a.jsonl", b""), purpose="assistants")
    assert (raised.value.param, raised.value.code) == ("purpose", "invalid_parameter")


async def test_any_replica_goes_on_with_a_download() -> None:
    scheduler = FakeScheduler()
    file = scheduler.files.put("a", bytes(range(250)) * 40, file_pb2.FILE_PURPOSE_BATCH_OUTPUT)
    async with gateway_process(scheduler) as first, gateway_process(scheduler) as second:
        whole = b""
        for number, gateway in enumerate((first, second) * 5):
            headers = {"Range": f"bytes={number * 1000}-{number * 1000 + 999}"}
            url = f"{gateway.http}{FILES}/{file.file_id}/content"
            async with aiohttp.ClientSession() as session, session.get(url, headers=headers) as response:
                whole += await response.read()
    assert whole == scheduler.files.content[file.file_id]
