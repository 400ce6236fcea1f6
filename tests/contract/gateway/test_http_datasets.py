"""Data sets over a socket: uploads of every form, refusals with every line, list, preview, delete."""

import asyncio
import io
import uuid
from collections.abc import AsyncIterator

import aiohttp
import pytest

from proctor.v1 import dataset_service_pb2 as dataset_pb2
from services.common.errors import ErrorKind, RemoteError
from tests.fakes.eventually import eventually
from tests.fakes.gateway.dataset_service import FakeDatasets
from tests.fakes.gateway.gateway_harness import GatewayHarness, gateway_harness
from tests.fakes.gateway.http_calls import call
from tests.fakes.refusals import refused

DATASETS = "/admin/datasets"
UPLOAD = f"{DATASETS}/upload"
ROWS = b'{"prompt": "a"}\n{"prompt": "b"}\n{"prompt": "c"}\n'


@pytest.fixture
def datasets(harness: GatewayHarness) -> FakeDatasets:
    return harness.scheduler.datasets


def form(content: bytes = ROWS, name: str = "rows.jsonl", field: str = "file") -> aiohttp.FormData:
    data = aiohttp.FormData()
    data.add_field(field, content, filename=name)
    return data


def raw_form(*parts: bytes, boundary: bytes = b"XX", end: bytes = b"--XX--\r\n") -> dict[str, object]:
    """A form written by hand."""
    body = b"".join(b"--XX\r\n" + part + b"\r\n" for part in parts) + end
    return {
        "data": body,
        "headers": {"Content-Type": f"multipart/form-data; boundary={boundary.decode()}"},
    }


def part(name: str = "file", content: bytes = ROWS, file_name: str = "rows.jsonl") -> bytes:
    return f'Content-Disposition: form-data; name="{name}"; filename="{file_name}"\r\n\r\n'.encode() + content


async def test_uploaded_file_reaches_the_scheduler_as_it_is(
    harness: GatewayHarness, datasets: FakeDatasets
) -> None:
    headers = {"X-Proctor-User": "bob"}
    status, body, _ = await call(harness, "POST", UPLOAD, data=form(), headers=headers)
    assert status == 200
    assert body == {
        "dataset_id": "ds_" + 32 * "0",
        "name": "rows.jsonl",
        "count": 3,
        "uploaded_at": "2023-11-14T22:13:20Z",
    }
    assert datasets.content == ROWS
    [header] = datasets.headers
    assert (header.name, header.user, header.format) == ("rows.jsonl", "bob", 0)
    assert str(uuid.UUID(header.request_id)) == header.request_id


async def test_file_may_be_the_body_itself_with_name_and_format_beside_it(
    harness: GatewayHarness, datasets: FakeDatasets
) -> None:
    key = str(uuid.uuid4())
    headers = {"Content-Type": "text/csv", "Idempotency-Key": key}
    path = f"{UPLOAD}?name=rows&format=csv&project_id=7"
    status, body, _ = await call(harness, "POST", path, data=ROWS, headers=headers)
    assert (status, body["name"]) == (200, "rows")
    [header] = datasets.headers
    expected = (dataset_pb2.DATASET_FORMAT_CSV, key, 7)
    assert (header.format, header.request_id, header.project_id) == expected
    assert datasets.content == ROWS


@pytest.mark.parametrize(
    ("file_name", "name"),
    [
        ("a b.jsonl", "a b.jsonl"),
        ("répons.jsonl", "répons.jsonl"),
        ("C:\\\\data\\\\rows.jsonl", "rows.jsonl"),
        ("/home/bob/rows.jsonl", "rows.jsonl"),
    ],
)
async def test_name_of_the_file_is_taken_without_its_folders(
    harness: GatewayHarness, datasets: FakeDatasets, file_name: str, name: str
) -> None:
    assert (await call(harness, "POST", UPLOAD, **raw_form(part(file_name=file_name))))[1]["name"] == name
    assert datasets.content == ROWS


async def test_content_that_looks_like_a_boundary_passes_unchanged(
    harness: GatewayHarness, datasets: FakeDatasets
) -> None:
    content = b"\r\n--X\r\n--XY\r\n\r\n--\r--XX\n--XX--\r\n-" * 5000
    assert (await call(harness, "POST", UPLOAD, **raw_form(part(content=content))))[0] == 200
    assert datasets.content == content


async def test_every_fault_is_named_with_line_and_field(
    harness: GatewayHarness, datasets: FakeDatasets
) -> None:
    content = b"fine\n" + b"broken row\n" * 30
    status, body, response = await call(harness, "POST", UPLOAD, data=form(content))
    assert (status, response.content_type) == (422, "application/problem+json")
    assert (body["reason"], body["fault_count"], len(body["faults"])) == ("INVALID_DATASET", 30, 20)
    assert body["faults"][0] == {"line": 2, "field": "body", "problem": "broken row is not a row"}
    sentence = "The file has 30 faults and nothing of it is kept. line 2 body: broken row is not a row"
    assert body["detail"] == sentence
    assert not datasets.kept


@pytest.mark.parametrize(
    ("given", "problem"),
    [
        (raw_form(part("data")), "it has a field 'data'; prompt, target, id and file are the only ones"),
        (
            raw_form(part(), part("purpose", b"batch")),
            "it has a field 'purpose'; prompt, target, id and file are the only ones",
        ),
        (raw_form(part(), part()), "it has more than one file"),
        (raw_form(), "it has no field file"),
        (raw_form(part(), end=b""), "it ends before its last boundary"),
        (raw_form(part(), end=b"--XX"), "it ends before its last boundary"),
        (raw_form(part(), boundary=b"YY"), "boundary"),
        (raw_form(part(), boundary=b""), "names no boundary of 1 to 70 bytes"),
        (raw_form(part(), boundary=b"X" * 71), "names no boundary of 1 to 70 bytes"),
        (raw_form(b"X-Long: " + b"x" * 100_000 + b"\r\n" + part()), "Maximum header size exceeded"),
        (raw_form(b"X: y\r\n" * 1000 + part()), "Maximum header count exceeded"),
        (raw_form(b"Content-Type: text/csv\r\n\r\n" + ROWS), "a part of it has no name"),
        (raw_form(b"no header at all"), "invalid character"),
    ],
)
async def test_form_that_cannot_be_read_is_422_and_keeps_nothing(
    harness: GatewayHarness, datasets: FakeDatasets, given: dict[str, object], problem: str
) -> None:
    status, body, _ = await call(harness, "POST", UPLOAD, **given)
    assert (status, body["reason"]) == (422, "INVALID_PARAMETER")
    assert body["detail"].startswith("The form cannot be read: ")
    assert problem in body["detail"]
    await eventually(lambda: not datasets.open_uploads, "no upload is open")
    assert not datasets.kept


@pytest.mark.parametrize(
    ("path", "given"),
    [
        (UPLOAD, {"data": ROWS, "headers": {"Content-Type": "text/csv"}}),
        (UPLOAD, raw_form(part(file_name=""))),
        (UPLOAD, raw_form(part(file_name="x" * 256))),
    ],
)
async def test_file_without_a_name_is_422(
    harness: GatewayHarness, path: str, given: dict[str, object]
) -> None:
    status, body, _ = await call(harness, "POST", path, **given)
    assert (status, body["detail"][:38]) == (422, "A data set has a name of 1 to 255 char")


@pytest.mark.parametrize(
    ("query", "headers", "field"),
    [
        ("?format=xlsx", {}, "format"),
        ("?nome=x", {}, "nome"),
        ("?project_id=-1", {}, "project_id"),
        ("", {"Idempotency-Key": "a" * 256}, "Idempotency-Key"),
    ],
)
async def test_what_is_said_beside_the_file_is_checked(
    harness: GatewayHarness, query: str, headers: dict[str, str], field: str
) -> None:
    status, body, _ = await call(harness, "POST", UPLOAD + query, data=form(), headers=headers)
    assert (status, body["errors"][0]["field"]) == (422, field)


@pytest.mark.parametrize(
    ("refusal", "status"),
    [
        (refused(ErrorKind.EXHAUSTED, "TOO_MANY_UPLOADS", "No more of it.", limit="1"), 429),
        (refused(ErrorKind.INVALID, "DATASET_TOO_LARGE", "No more of it.", limit="1"), 413),
        (refused(ErrorKind.INVALID, "CHECK_STOPPED", "No more of it.", gibibytes="4"), 413),
        (refused(ErrorKind.EXHAUSTED, "STORAGE_QUOTA_EXCEEDED", "No more of it.", limit="1"), 413),
        (refused(ErrorKind.EXHAUSTED, "PROJECT_STORAGE_QUOTA_EXCEEDED", "No more of it.", limit="1"), 413),
        (refused(ErrorKind.UNAVAILABLE, "OBJECT_STORE_UNAVAILABLE", "No room.", dependency="s3"), 503),
    ],
)
@pytest.mark.parametrize("after_bytes", [0, 3_000_000])
async def test_refusal_in_the_middle_is_answered_without_the_rest(
    harness: GatewayHarness, datasets: FakeDatasets, refusal: RemoteError, status: int, after_bytes: int
) -> None:
    datasets.refusal = refusal
    datasets.refuse_after_bytes = after_bytes
    goes_on = asyncio.Event()

    async def content() -> AsyncIterator[bytes]:
        for _ in range(100):
            yield b"x" * 50_000
        await goes_on.wait()

    headers = {"Content-Type": "text/csv"}
    try:
        answered, body, _ = await call(harness, "POST", f"{UPLOAD}?name=x", data=content(), headers=headers)
    finally:
        goes_on.set()
    assert (answered, body["reason"], body["detail"]) == (status, refusal.reason, refusal.message)
    assert (datasets.open_uploads, datasets.kept) == (0, {})


async def test_upload_has_a_limit_of_its_own() -> None:
    async with gateway_harness(max_body_bytes=1024, max_dataset_body_bytes=2_000_000) as harness:
        headers = {"Content-Type": "text/csv"}
        path = f"{UPLOAD}?name=x"
        below = io.BytesIO(b"x" * 1_900_000)
        assert (await call(harness, "POST", path, data=below, headers=headers))[0] == 200
        for above in (io.BytesIO(b"x" * 2_100_000), slowly(b"x" * 2_100_000)):
            status, reported, _ = await call(harness, "POST", path, data=above, headers=headers)
            assert status == 413
            assert reported["detail"] == "The body is larger than 2000000 bytes; send a smaller one."
        assert len(harness.scheduler.datasets.kept) == 1


async def slowly(content: bytes) -> AsyncIterator[bytes]:
    """Without a length that is known before."""
    for start in range(0, len(content), 50_000):
        yield content[start : start + 50_000]


async def test_upload_that_breaks_off_cancels_the_call_and_keeps_nothing(
    harness: GatewayHarness, datasets: FakeDatasets
) -> None:
    assert harness.gateway
    reader, writer = await asyncio.open_connection("127.0.0.1", harness.gateway.http.port)
    fields = f"Host: localhost\r\nContent-Type: application/jsonl\r\nContent-Length: {2 * len(ROWS)}"
    head = f"POST {UPLOAD}?name=x HTTP/1.1\r\n{fields}\r\n\r\n"
    writer.write(head.encode() + ROWS)
    await eventually(lambda: sum(datasets.piece_sizes) == len(ROWS), "the first half has arrived")
    writer.transport.abort()
    await eventually(lambda: datasets.cut_off == 1, "the call is cancelled")
    assert (datasets.kept, datasets.open_uploads) == ({}, 0)
    assert not await reader.read()


async def test_slow_reader_holds_the_sender_back(harness: GatewayHarness, datasets: FakeDatasets) -> None:
    datasets.gate.clear()
    sent = 0

    async def content() -> AsyncIterator[bytes]:
        nonlocal sent
        for _ in range(1000):
            yield b"x" * 65_536
            sent += 65_536

    headers = {"Content-Type": "text/csv"}
    upload = asyncio.create_task(
        call(harness, "POST", f"{UPLOAD}?name=x", data=content(), headers=headers), name="upload"
    )

    async def stands_still() -> bool:
        before = sent
        await asyncio.wait((upload,), timeout=0.3)
        return 0 < before == sent

    await eventually(stands_still, "no more is sent than is taken")
    assert sent < 32_000_000
    datasets.gate.set()
    assert (await upload)[0] == 200
    assert sum(datasets.piece_sizes) == sent == 65_536_000
    assert max(datasets.piece_sizes) <= 1024 * 1024


async def test_list_pages_newest_first(harness: GatewayHarness) -> None:
    for name in ("a", "b", "c"):
        await call(harness, "POST", UPLOAD, data=form(name=name))
    status, body, _ = await call(harness, "GET", f"{DATASETS}?limit=2")
    assert (status, body["total"], [each["name"] for each in body["datasets"]]) == (200, 3, ["c", "b"])
    newest = body["datasets"][0]
    assert (newest["id"], newest["count"]) == ("ds_" + 31 * "0" + "2", 3)
    assert (newest["uploaded_at"], newest["format"]) == ("2023-11-14T22:13:22Z", "jsonl")
    assert (newest["models"], newest["endpoint"]) == (["starter"], "/v1/completions")
    _, body, _ = await call(harness, "GET", f"{DATASETS}?limit=2&cursor={body['next_cursor']}")
    assert ([each["name"] for each in body["datasets"]], body["next_cursor"]) == (["a"], None)


async def test_rows_are_shown_as_a_model_would_be_asked(harness: GatewayHarness) -> None:
    _, uploaded, _ = await call(harness, "POST", UPLOAD, data=form())
    path = f"{DATASETS}/{uploaded['dataset_id']}"
    assert (await call(harness, "GET", path))[1]["digest"]
    status, body, _ = await call(harness, "GET", f"{path}/preview?first=1&rows=2")
    assert status == 200
    first, second = body["rows"]
    assert first == {
        "row": 1,
        "id": "request-1",
        "body": {"prompt": "One and one?"},
        "target": "two",
        "metadata": {"level": 1},
    }
    assert (second["row"], second["target"], second["metadata"]) == (2, None, None)
    assert len((await call(harness, "GET", f"{path}/preview"))[1]["rows"]) == 3
    assert (await call(harness, "GET", f"{path}/preview?rows=101"))[0] == 422


async def test_data_set_is_deleted_unless_a_run_uses_it(
    harness: GatewayHarness, datasets: FakeDatasets
) -> None:
    _, uploaded, _ = await call(harness, "POST", UPLOAD, data=form())
    path = f"{DATASETS}/{uploaded['dataset_id']}"
    datasets.in_use = {uploaded["dataset_id"]}
    status, body, _ = await call(harness, "DELETE", path)
    assert (status, body["reason"]) == (409, "DATASET_IN_USE")
    datasets.in_use = set()
    status, body, _ = await call(harness, "DELETE", path)
    assert (status, body["message"]) == (200, f"Data set {uploaded['dataset_id']} deleted")
    for method, tail in (("DELETE", ""), ("GET", ""), ("GET", "/preview")):
        status, body, _ = await call(harness, method, path + tail)
        assert (status, body["reason"]) == (404, "DATASET_NOT_FOUND")
