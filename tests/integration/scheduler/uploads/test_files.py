"""Files through a scheduler on real Postgres, in a folder: byte by byte, with their rows or their faults."""

import asyncio
import os
import resource
from collections.abc import AsyncIterator
from datetime import datetime, timedelta
from typing import Any
from uuid import uuid4

import pytest
import pytest_asyncio

from proctor.v1 import dataset_service_pb2 as dataset_pb2
from proctor.v1 import file_service_pb2 as file_pb2
from services.backup.tables import QUERIES as BACKUP_QUERIES
from services.backup.tables import connect
from services.common.clock import SystemClock
from services.common.objects.obstore_objects import ObstoreObjects
from services.common.postgres import PostgresSession, connect_pool
from services.scheduler.postgres import QUERIES, SCHEMA
from services.scheduler.uploads.delete_uploads import CollectUnreferencedObjects, DeleteFile
from services.scheduler.uploads.storage.store_parts import PART_BYTES
from tests.fakes.callers import OPERATOR_METADATA
from tests.fakes.eventually import eventually
from tests.fakes.scheduler.batch_harness import (
    MAX_BYTES,
    MAX_LINES,
    BatchHarness,
    batch_harness,
    lines,
    refused,
    upload_requests,
)
from tests.fakes.scheduler.upload_stores import datasets_in, files_in
from tests.fakes.storage.checked_files import batch_line, jsonl
from tests.fakes.storage.uploads import cut, upload
from tests.fakes.thorough_cases import first_cases

pytestmark = pytest.mark.asyncio(loop_scope="module")

MAX_UPLOADS = 3


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def harness(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[BatchHarness]:
    async with batch_harness(tmp_path_factory.mktemp("scheduler"), max_uploads=MAX_UPLOADS) as opened:
        yield opened


async def listed(harness: BatchHarness, **wanted: Any) -> file_pb2.ListFilesResponse:
    return await harness.files.ListFiles(file_pb2.ListFilesRequest(**wanted))


def heavy_lines(megabytes: int) -> bytes:
    """What hardly compresses."""

    def body() -> dict[str, object]:
        return {"model": "m", "messages": [{"role": "user", "content": os.urandom(500_000).hex()}]}

    return jsonl(batch_line(custom_id=f"h{number}", body=body()) for number in range(megabytes))


async def test_file_comes_back_byte_by_byte_from_any_byte(harness: BatchHarness) -> None:
    content = heavy_lines(18)
    file = await harness.upload(content, name="heavy.jsonl")
    assert (file.size_bytes, file.row_count, file.fault_count) == (len(content), 18, 0)
    assert (file.name, file.user, file.purpose) == ("heavy.jsonl", "ann", file_pb2.FILE_PURPOSE_BATCH)
    assert not file.HasField("expires_at")
    got = (await harness.files.GetFile(file_pb2.GetFileRequest(file_id=file.file_id))).file
    assert got == file
    for first in (0, 1, PART_BYTES - 1, PART_BYTES, PART_BYTES + 1, len(content) - 1, len(content)):
        assert await harness.read(file.file_id, first) == content[first:]
    async with refused() as reported:
        await harness.read(file.file_id, len(content) + 1)
    assert (reported[0].reason, reported[0].facts["field"]) == ("INVALID_PARAMETER", "first_byte")
    await harness.delete(file.file_id)
    assert harness.objects_of(file.file_id) == []
    async with refused() as reported:
        await harness.read(file.file_id)
    assert (reported[0].reason, reported[0].facts["file_id"]) == ("FILE_NOT_FOUND", file.file_id)


async def test_faulty_file_is_kept_with_its_faults_and_without_rows(harness: BatchHarness) -> None:
    content = lines(30, "fault") + b'{"custom_id": "x"\n' + lines(1, "fault") + b'{"prompt": "x"}'
    file = await harness.upload(content)
    assert (file.row_count, file.fault_count) == (0, 3)
    assert [(fault.line, fault.field) for fault in file.faults] == [(31, ""), (32, "custom_id"), (33, "")]
    assert await harness.read(file.file_id) == content
    assert {name.split("/")[0] for name in harness.objects_of(file.file_id)} == {"files"}
    [shown] = [one for one in (await listed(harness)).files if one.file_id == file.file_id]
    assert (shown.fault_count, list(shown.faults)) == (3, [])
    await harness.delete(file.file_id)


async def test_empty_file_and_one_with_too_many_lines_are_kept(harness: BatchHarness) -> None:
    empty, long = await harness.upload(b""), await harness.upload(lines(MAX_LINES + 1, "many"))
    assert [fault.problem for fault in empty.faults] == [
        "The file is empty. Upload one with at least one line."
    ]
    assert [fault.problem for fault in long.faults] == [
        f"It has more than {MAX_LINES} lines, the maximum of a batch. Split it."
    ]
    assert (await harness.read(empty.file_id), len(await harness.read(long.file_id))) == (
        b"",
        long.size_bytes,
    )


async def test_too_large_a_file_is_refused_while_it_comes_and_leaves_nothing(harness: BatchHarness) -> None:
    before = harness.objects()
    async with refused() as reported:
        await harness.upload(b" " * (MAX_BYTES + 1), name="vast.jsonl")
    assert (reported[0].reason, reported[0].facts["limit"]) == ("FILE_TOO_LARGE", str(MAX_BYTES))
    assert harness.objects() == before


async def test_upload_that_is_cut_off_leaves_nothing(harness: BatchHarness) -> None:
    before = harness.objects()
    async with refused() as reported:
        await harness.files.UploadFile(upload_requests(cut(heavy_lines(12)), is_whole=False))
    assert reported[0].reason == "INVALID_PARAMETER"
    assert harness.objects() == before


async def test_rows_are_shared_by_files_and_data_sets_and_go_with_the_last(harness: BatchHarness) -> None:
    content = lines(100, "shared")
    first, dataset_response, second = (
        await harness.upload(content),
        await upload(harness.datasets, cut(content)),
        await harness.upload(content),
    )
    dataset = dataset_response.dataset
    rows = [name for name in harness.objects_of(first.file_id) if name.startswith("datasets/")]
    assert rows
    assert harness.objects_of(dataset.dataset_id) == []
    assert [name.split("/")[0] for name in harness.objects_of(second.file_id)] == ["files"]
    await harness.delete(first.file_id)
    assert harness.objects_of(first.file_id) == rows
    await harness.delete(second.file_id)
    assert harness.objects_of(first.file_id) == rows
    shown = await harness.datasets.PreviewDataset(
        dataset_pb2.PreviewDatasetRequest(dataset_id=dataset.dataset_id)
    )
    assert len(shown.rows) == 10
    await harness.datasets.DeleteDataset(
        dataset_pb2.DeleteDatasetRequest(dataset_id=dataset.dataset_id), metadata=OPERATOR_METADATA
    )
    assert harness.objects_of(first.file_id) == []


async def test_repeated_request_finds_the_file_of_the_first(harness: BatchHarness) -> None:
    request_id, content = str(uuid4()), lines(10, "repeated")
    first, *others = await asyncio.gather(
        *(harness.upload(content, request_id=request_id) for _ in range(MAX_UPLOADS))
    )
    later = await harness.upload(content, request_id=request_id)
    assert {file.file_id for file in (*others, later)} == {first.file_id}
    async with refused() as reported:
        await harness.upload(content, request_id=request_id, name="other.jsonl")
    assert reported[0].reason == "REQUEST_ID_TAKEN"
    # A key that is any text became an id that its caller never saw.
    assert request_id not in reported[0].message
    of_another = await harness.upload(content, request_id=request_id, user="bob")
    assert of_another.file_id != first.file_id


@first_cases(
    1,
    ("content", "other"),
    [
        (lines(10, "one"), lines(10, "two")),
        (lines(10, "one"), b"no JSON\n"),
        (b"no JSON\n", lines(10, "one")),
        (b"no JSON\n", b"nothing of the kind\n"),
    ],
)
async def test_request_of_another_file_of_the_same_name_is_refused_and_leaves_nothing(
    harness: BatchHarness, content: bytes, other: bytes
) -> None:
    request_id = str(uuid4())
    first = await harness.upload(content, request_id=request_id)
    count = len((await listed(harness, page_size=100)).files)
    async with refused() as reported:
        await harness.upload(other, request_id=request_id)
    assert reported[0].reason == "REQUEST_ID_TAKEN"
    assert len((await listed(harness, page_size=100)).files) == count
    assert (await harness.upload(content, request_id=request_id)).file_id == first.file_id


async def test_pages_go_both_ways_and_by_purpose(harness: BatchHarness) -> None:
    for number in range(5):
        await harness.upload(lines(1, f"page {number}"), name=f"page {number}")
    names, after = [], ""
    while True:
        page = await listed(harness, page_size=2, after_file_id=after, purpose=file_pb2.FILE_PURPOSE_BATCH)
        names += [file.name for file in page.files]
        if not page.has_more:
            break
        after = page.files[-1].file_id
    assert names[:5] == [f"page {number}" for number in (4, 3, 2, 1, 0)]
    ascending = [file.name for file in (await listed(harness, is_ascending=True)).files]
    assert ascending == names[::-1]
    written = await listed(harness, purpose=file_pb2.FILE_PURPOSE_BATCH_OUTPUT)
    assert (list(written.files), written.has_more) == ([], False)
    async with refused() as reported:
        await listed(harness, after_file_id=f"file-{uuid4().hex}")
    assert reported[0].reason == "FILE_NOT_FOUND"
    async with refused() as reported:
        await listed(harness, page_size=10_001)
    assert reported[0].reason == "INVALID_PARAMETER"


async def test_uploads_of_files_and_data_sets_share_their_slots(harness: BatchHarness) -> None:
    waiting = asyncio.Event()
    before = await harness.count("SELECT count(*) FROM unreferenced_prefixes WHERE prefix LIKE 'files/%'")

    async def held(name: str) -> AsyncIterator[file_pb2.UploadFileRequest]:
        async for request in upload_requests(cut(lines(10, name)), is_whole=False):
            yield request
        await waiting.wait()
        yield file_pb2.UploadFileRequest(end=file_pb2.FileEnd())

    going = [
        asyncio.ensure_future(harness.files.UploadFile(held(f"held {number}")))
        for number in range(MAX_UPLOADS)
    ]

    async def all_have_begun() -> bool:
        begun = "SELECT count(*) FROM unreferenced_prefixes WHERE prefix LIKE 'files/%'"
        return await harness.count(begun) >= before + MAX_UPLOADS

    await eventually(all_have_begun, "all have their slots")
    async with refused() as reported:
        await upload(harness.datasets, cut(b"{}"))
    assert reported[0].reason == "TOO_MANY_UPLOADS"
    waiting.set()
    assert [(await one).file.row_count for one in going] == [10] * MAX_UPLOADS


async def test_store_without_room_is_reported_and_nothing_is_left(harness: BatchHarness) -> None:
    before = harness.objects()
    content = heavy_lines(9)
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (1_000_000, hard))
    try:
        async with refused() as reported:
            await harness.upload(content)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    assert reported[0].reason == "OBJECT_STORE_UNAVAILABLE"
    assert harness.objects() == before


async def test_file_goes_when_its_time_is_over_but_not_while_a_batch_uses_it(harness: BatchHarness) -> None:
    kept = await harness.upload(lines(1, "kept"))
    going = await harness.upload(lines(1, "going"), expires_after_seconds=3600)
    used = await harness.upload(lines(1, "used"), expires_after_seconds=3600)
    assert (going.expires_at.ToDatetime() - going.created_at.ToDatetime()) == timedelta(hours=1)
    batch = await harness.create(used.file_id)
    async with await connect_pool(harness.postgres, schema=SCHEMA) as pool:
        objects = ObstoreObjects(harness.folder.as_uri())
        files = files_in(PostgresSession(pool, QUERIES))
        await DeleteFile(files, objects, SystemClock()).delete_expired()
        assert harness.objects_of(going.file_id)
        await DeleteFile(files, objects, _LaterClock()).delete_expired()
    assert harness.objects_of(going.file_id) == []
    assert harness.objects_of(kept.file_id)
    assert harness.objects_of(used.file_id)
    async with refused() as reported:
        await harness.delete(used.file_id)
    assert (reported[0].reason, reported[0].facts["batch_id"]) == ("FILE_IN_USE", batch.batch_id)


async def test_expired_file_is_gone_for_all_but_the_batch_that_reads_it(harness: BatchHarness) -> None:
    used = await harness.upload(lines(1, "read on"), expires_after_seconds=3600)
    batch = await harness.create(used.file_id)
    await harness.execute(
        "UPDATE files SET expires_at = now() - interval '1 second' WHERE file_id = $1", used.file_id
    )
    for ask in (harness.read(used.file_id), harness.create(used.file_id)):
        async with refused() as reported:
            await ask
        assert reported[0].reason == "FILE_NOT_FOUND"
    for ascending in (False, True):
        listed = await harness.files.ListFiles(file_pb2.ListFilesRequest(is_ascending=ascending))
        assert used.file_id not in [file.file_id for file in listed.files]
    assert harness.objects_of(used.file_id)
    assert (await harness.get(batch.batch_id)).input_file_id == used.file_id


async def test_what_a_killed_upload_left_is_swept(harness: BatchHarness) -> None:
    kept = await harness.upload(lines(1, "stays"))
    left = f"files/file-{uuid4().hex}"
    path = harness.folder / left / "bytes-000000"
    path.parent.mkdir(parents=True)
    path.write_bytes(b"x")
    async with await connect_pool(harness.postgres, schema=SCHEMA) as pool:
        objects, sessions = ObstoreObjects(harness.folder.as_uri()), PostgresSession(pool, QUERIES)
        collector = CollectUnreferencedObjects(datasets_in(sessions), objects, _LaterClock(), 60.0)
        await collector.collect()
        assert path.exists()
        await files_in(sessions).register_prefixes((left,))
        await collector.collect()
    assert not path.exists()
    assert harness.objects_of(kept.file_id)


async def test_objects_of_what_is_deleted_stay_while_a_backup_copies_them(harness: BatchHarness) -> None:
    deleted = await harness.upload(lines(1, "backed up"))
    async with await connect_pool(harness.postgres, schema=SCHEMA) as pool:
        datasets = datasets_in(PostgresSession(pool, QUERIES))
        objects = ObstoreObjects(harness.folder.as_uri())
        collector = CollectUnreferencedObjects(datasets, objects, _LaterClock(), 60.0)
        backup = await connect(harness.postgres, SCHEMA)
        assert await backup.fetchval(BACKUP_QUERIES["lock_backup"].statement)
        await harness.delete(deleted.file_id)
        await collector.collect()
        assert harness.objects_of(deleted.file_id)
        await backup.close()
        await collector.collect()
    assert harness.objects_of(deleted.file_id) == []


class _LaterClock(SystemClock):
    def now(self) -> datetime:
        return super().now() + timedelta(hours=2)


@pytest.mark.parametrize(
    ("header", "field"),
    [
        ({"name": ""}, "header.name"),
        ({"user": "a\0b"}, "user"),
        ({"purpose": file_pb2.FILE_PURPOSE_BATCH_OUTPUT}, "header.purpose"),
        ({"purpose": file_pb2.FILE_PURPOSE_UNSPECIFIED}, "header.purpose"),
        ({"expires_after_seconds": 3599}, "header.expires_after_seconds"),
        ({"expires_after_seconds": 2_592_001}, "header.expires_after_seconds"),
    ],
)
async def test_header_is_checked_before_the_file(
    harness: BatchHarness, header: dict[str, Any], field: str
) -> None:
    async with refused() as reported:
        await harness.upload(b"{}", **header)
    assert (reported[0].reason, reported[0].facts["field"]) == ("INVALID_PARAMETER", field)


@pytest.mark.parametrize("file_id", ["", "file-1", "ds_" + "0" * 32, "file-" + "0" * 32, "file-\0"])
async def test_what_is_no_file_is_not_found(harness: BatchHarness, file_id: str) -> None:
    async with refused() as reported:
        await harness.delete(file_id)
    assert reported[0].reason == "FILE_NOT_FOUND"
