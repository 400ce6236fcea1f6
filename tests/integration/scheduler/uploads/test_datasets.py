"""Data sets through a scheduler on real Postgres with a folder as object store: kept whole or not at all."""

import asyncio
import json
import os
import resource
from collections.abc import AsyncIterator, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from datetime import datetime, timedelta
from hashlib import sha256
from pathlib import Path
from typing import Any
from uuid import uuid4

import grpc
import pytest
import pytest_asyncio
from pydantic import SecretStr

from proctor.v1 import dataset_service_pb2 as dataset_pb2
from proctor.v1 import dataset_service_pb2_grpc as dataset_grpc
from services.common.clock import SystemClock
from services.common.errors import ObjectStoreUnavailable, RemoteError
from services.common.grpc.client import open_channel
from services.common.grpc.errors import remote_error
from services.common.objects.obstore_objects import ObstoreObjects
from services.common.postgres import PostgresSession, connect_pool
from services.scheduler.postgres import QUERIES, SCHEMA
from services.scheduler.settings import SchedulerSettings
from services.scheduler.uploads.dataset import DatasetId
from services.scheduler.uploads.delete_uploads import CollectUnreferencedObjects, prefix_of
from services.scheduler.wiring import running_scheduler
from tests.fakes.callers import CALLER_KEY, GATEWAY, OPERATOR_METADATA
from tests.fakes.dispatch_proof_key import DISPATCH_PROOF_KEY
from tests.fakes.eventually import eventually
from tests.fakes.scheduler.upload_stores import datasets_in
from tests.fakes.storage.checked_files import batch_line, jsonl
from tests.fakes.storage.uploads import OpenUpload, cut, upload
from tests.fakes.thorough_cases import first_cases
from tests.harness.servers import nats_server, postgres_server

pytestmark = pytest.mark.asyncio(loop_scope="module")

POOLS = "pools: [{name: remote, engine: openai, concurrency: 1, provider: openai, base_url: 'http://x'}]\n"
MAX_UPLOADS = 3
UPLOAD_SECONDS = 20.0
MAX_BYTES = 20_000_000


@dataclass(frozen=True)
class Stand:
    stub: "dataset_grpc.DatasetServiceAsyncStub"
    folder: Path
    postgres: str

    def files(self) -> list[str]:
        """All that lies in the object store, also what the library would not list."""
        return sorted(str(path.relative_to(self.folder)) for path in self.folder.rglob("*") if path.is_file())

    def files_of(self, dataset: dataset_pb2.Dataset) -> list[str]:
        return [name for name in self.files() if dataset.dataset_id in name]

    async def preview(self, dataset_id: str, first: int = 0, count: int = 0) -> list[dataset_pb2.DatasetRow]:
        request = dataset_pb2.PreviewDatasetRequest(
            dataset_id=dataset_id, first_doc_id=first, row_count=count
        )
        return list((await self.stub.PreviewDataset(request)).rows)

    async def delete(self, dataset_id: str) -> None:
        await self.stub.DeleteDataset(
            dataset_pb2.DeleteDatasetRequest(dataset_id=dataset_id), metadata=OPERATOR_METADATA
        )

    async def names(self) -> list[str]:
        listed = await self.stub.ListDatasets(dataset_pb2.ListDatasetsRequest(page_size=500))
        return [dataset.name for dataset in listed.datasets]


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def harness(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Stand]:
    folder = tmp_path_factory.mktemp("scheduler")
    (folder / "pools.yaml").write_text(POOLS)
    async with AsyncExitStack() as opened:
        postgres = await opened.enter_async_context(postgres_server())
        wire = await opened.enter_async_context(nats_server())
        settings = SchedulerSettings(
            postgres_dsn=postgres.address,
            nats_url=wire.address,
            dispatch_proof_key=SecretStr(DISPATCH_PROOF_KEY),
            caller_key=SecretStr(CALLER_KEY),
            scheduler_address="127.0.0.1:0",
            pools_file=folder / "pools.yaml",
            object_store=(folder / "objects").as_uri(),
            max_uploads=MAX_UPLOADS,
            upload_timeout_seconds=UPLOAD_SECONDS,
            max_dataset_bytes=MAX_BYTES,
        )
        scheduler = await opened.enter_async_context(running_scheduler(settings))
        address = f"127.0.0.1:{scheduler.grpc.port}"
        channel = await opened.enter_async_context(open_channel(address, signer=GATEWAY))
        stub = dataset_grpc.DatasetServiceStub(channel)
        yield Stand(stub, folder / "objects", postgres.address)


@asynccontextmanager
async def refused() -> AsyncIterator[list[RemoteError]]:
    reported: list[RemoteError] = []
    with pytest.raises(grpc.aio.AioRpcError) as error:
        yield reported
    reported.append(remote_error(error.value))


def lines(count: int, salt: str) -> bytes:
    return jsonl(batch_line(number, custom_id=f"{salt}-{number}") for number in range(count))


async def test_uploaded_file_is_listed_shown_and_deleted(harness: Stand) -> None:
    content = jsonl(
        {"id": f"q{number}", "prompt": f"{number} + 1?", "target": number + 1, "metadata": {"n": number}}
        for number in range(2500)
    )
    uploaded = (await upload(harness.stub, cut(content), name="sums.jsonl")).dataset
    got = (
        await harness.stub.GetDataset(dataset_pb2.GetDatasetRequest(dataset_id=uploaded.dataset_id))
    ).dataset
    assert got == uploaded
    assert (got.name, got.user, got.row_count, got.target_count) == ("sums.jsonl", "ann", 2500, 2500)
    assert (got.size_bytes, got.format) == (len(content), dataset_pb2.DATASET_FORMAT_JSONL)
    rows = await harness.preview(got.dataset_id, 1998, 4)
    assert [(row.doc_id, row.row_id, row.target) for row in rows] == [
        (number, f"q{number}", str(number + 1)) for number in range(1998, 2002)
    ]
    assert json.loads(rows[0].body_json) == {"prompt": "1998 + 1?"}
    assert json.loads(rows[0].metadata_json) == {"n": 1998}
    assert (len(await harness.preview(got.dataset_id)), await harness.preview(got.dataset_id, 2500)) == (
        10,
        [],
    )
    assert "sums.jsonl" in await harness.names()
    await harness.delete(got.dataset_id)
    assert harness.files_of(got) == []
    async with refused() as reported:
        await harness.preview(got.dataset_id)
    assert (reported[0].reason, reported[0].facts["dataset_id"]) == ("DATASET_NOT_FOUND", got.dataset_id)


async def test_refused_file_names_its_faults_and_leaves_nothing(harness: Stand) -> None:
    before = harness.files()
    response = await upload(harness.stub, cut(lines(3000, "x") + lines(1, "x")))
    assert not response.HasField("dataset")
    assert response.fault_count == 1
    [fault] = response.faults
    assert (fault.line, fault.field) == (3001, "custom_id")
    assert harness.files() == before


async def test_same_content_is_stored_once_and_goes_with_its_last_data_set(harness: Stand) -> None:
    content = lines(100, "same")
    responses = await asyncio.gather(
        *(upload(harness.stub, cut(content), name=f"same {number}") for number in range(MAX_UPLOADS))
    )
    datasets = [response.dataset for response in responses]
    assert len({dataset.dataset_id for dataset in datasets}) == MAX_UPLOADS
    assert len({dataset.digest for dataset in datasets}) == 1
    [keeper] = [dataset for dataset in datasets if harness.files_of(dataset)]
    await harness.delete(keeper.dataset_id)
    left = [dataset for dataset in datasets if dataset != keeper]
    for dataset in left:
        assert len(await harness.preview(dataset.dataset_id)) == 10
        await harness.delete(dataset.dataset_id)
    assert harness.files_of(keeper) == []


async def test_content_can_come_again_while_it_goes(harness: Stand) -> None:
    content = lines(10, "again")
    for _ in range(5):
        first = (await upload(harness.stub, cut(content))).dataset
        second, _ = await asyncio.gather(upload(harness.stub, cut(content)), harness.delete(first.dataset_id))
        assert len(await harness.preview(second.dataset.dataset_id)) == 10
        await harness.delete(second.dataset.dataset_id)


async def test_repeated_request_finds_the_data_set_of_the_first(harness: Stand) -> None:
    request_id = str(uuid4())
    content = lines(10, "repeated")
    first, *others = await asyncio.gather(
        *(upload(harness.stub, cut(content), request_id=request_id) for _ in range(MAX_UPLOADS))
    )
    later = await upload(harness.stub, cut(content), request_id=request_id)
    known = first.dataset.digest
    unsent = await upload(harness.stub, cut(b"never looked at"), request_id=request_id, digest=known)
    found = {response.dataset.dataset_id for response in (*others, later, unsent)}
    assert found == {first.dataset.dataset_id}
    async with refused() as reported:
        await upload(harness.stub, cut(content), request_id=request_id, name="other.jsonl")
    assert (reported[0].reason, reported[0].facts["name"]) == ("REQUEST_ID_TAKEN", "rows.jsonl")
    of_another = (await upload(harness.stub, cut(content), request_id=request_id, user="bob")).dataset
    assert (of_another.user, of_another.dataset_id != first.dataset.dataset_id) == ("bob", True)
    async with refused() as reported:
        await upload(harness.stub, cut(content), request_id="mine")
    assert reported[0].reason == "INVALID_PARAMETER"


@first_cases(1, "other", [lines(10, "other"), b"no JSON\n"])
async def test_request_of_another_file_of_the_same_name_is_refused_and_leaves_nothing(
    harness: Stand, other: bytes
) -> None:
    request_id = str(uuid4())
    content = lines(10, f"first of {request_id}")
    first = (await upload(harness.stub, cut(content), request_id=request_id)).dataset
    before = harness.files()
    for digest in ("", sha256(other).hexdigest()):
        async with refused() as reported:
            await upload(harness.stub, cut(other), request_id=request_id, digest=digest)
        assert (reported[0].reason, reported[0].facts["name"]) == ("REQUEST_ID_TAKEN", "rows.jsonl")
        assert harness.files() == before
    again = (await upload(harness.stub, cut(content), request_id=request_id)).dataset
    assert again.dataset_id == first.dataset_id


async def test_pages_go_from_the_newest_to_the_oldest(harness: Stand) -> None:
    for number in range(5):
        await upload(harness.stub, cut(lines(1, f"page {number}")), name=f"page {number}")
    names, token, totals = [], "", set()
    while True:
        request = dataset_pb2.ListDatasetsRequest(page_size=2, page_token=token)
        page = await harness.stub.ListDatasets(request)
        names += [dataset.name for dataset in page.datasets]
        totals.add(page.total)
        token = page.next_page_token
        if not token:
            break
    assert names[:5] == [f"page {number}" for number in (4, 3, 2, 1, 0)]
    assert totals == {len(names)}
    async with refused() as reported:
        await harness.stub.ListDatasets(dataset_pb2.ListDatasetsRequest(page_token="x"))
    assert reported[0].reason == "INVALID_PAGE_TOKEN"


async def test_upload_that_is_cut_off_leaves_nothing(harness: Stand) -> None:
    before = harness.files()
    async with refused() as reported:
        await upload(harness.stub, cut(lines(50_000, "cut")[:6_000_000]), is_whole=False)
    assert reported[0].reason == "INVALID_PARAMETER"
    assert harness.files() == before


async def test_upload_that_is_cancelled_in_the_middle_leaves_nothing(harness: Stand) -> None:
    before = harness.files()
    names = await harness.names()
    going = OpenUpload(harness.stub)
    # What hardly compresses fills a part.
    going.send(jsonl({"prompt": os.urandom(1_800_000).hex()} for _ in range(5)))
    await eventually(lambda: len(harness.files()) > len(before), "a part is stored")
    going.call.cancel()
    await eventually(lambda: harness.files() == before, "all of it is removed")
    assert await harness.names() == names


async def test_so_many_uploads_at_a_time_and_no_more(harness: Stand) -> None:
    # Seen in Postgres: a try that comes too soon would take the place of one of them.
    async with await connect_pool(harness.postgres, schema=SCHEMA) as pool:
        started = await pool.fetchval("SELECT now()")
        going = [OpenUpload(harness.stub, f"going {number}") for number in range(MAX_UPLOADS)]
        for number, one in enumerate(going):
            one.send(lines(10, f"going {number}"))

        async def have_begun() -> bool:
            begun = await pool.fetchval(
                "SELECT count(*) FROM unreferenced_prefixes WHERE since > $1", started
            )
            return bool(begun == MAX_UPLOADS)

        await eventually(have_begun, "all of them have begun")
    async with refused() as reported:
        await upload(harness.stub, cut(b"{}"))
    assert reported[0].reason == "TOO_MANY_UPLOADS"
    responses = [await one.end() for one in going]
    assert [response.dataset.row_count for response in responses] == [10] * MAX_UPLOADS
    assert (await upload(harness.stub, cut(lines(1, "room")))).HasField("dataset")


async def test_too_large_a_file_is_refused_while_it_comes(harness: Stand) -> None:
    before = harness.files()
    going = OpenUpload(harness.stub)
    going.send(b" " * (MAX_BYTES + 1))
    async with refused() as reported:
        await going.call
    assert (reported[0].reason, reported[0].facts["limit"]) == ("DATASET_TOO_LARGE", str(MAX_BYTES))
    assert harness.files() == before


async def test_store_without_room_is_reported_and_nothing_is_left(harness: Stand) -> None:
    before = harness.files()
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (1_000_000, hard))
    try:
        async with refused() as reported:
            await upload(harness.stub, cut(jsonl({"prompt": os.urandom(1_000_000).hex()} for _ in range(9))))
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    assert reported[0].reason == "OBJECT_STORE_UNAVAILABLE"
    assert reported[0].message.startswith("The object store cannot be used: ")
    assert harness.files() == before


async def test_what_a_killed_upload_left_is_swept_and_nothing_else(harness: Stand) -> None:
    kept = (await upload(harness.stub, cut(lines(10, "kept")))).dataset
    left, of_another_scheduler = (prefix_of(DatasetId(f"ds_{uuid4().hex}")) for _ in range(2))
    put(harness.folder / of_another_scheduler / "rows-000000.jsonl.zst")
    put(harness.folder / "datasets" / "train" / "readme.md")
    others = harness.files()
    put(harness.folder / left / "rows-000000.jsonl.zst")
    # A file of the library's own, while an object is written.
    put(harness.folder / left / "rows-000001.jsonl.zst#1")
    before = harness.files()
    async with await connect_pool(harness.postgres, schema=SCHEMA) as pool:
        datasets = datasets_in(PostgresSession(pool, QUERIES))
        objects = ObstoreObjects(harness.folder.as_uri())
        await datasets.register_prefix(left)
        await CollectUnreferencedObjects(datasets, objects, SystemClock(), UPLOAD_SECONDS).collect()
        assert harness.files() == before
        await CollectUnreferencedObjects(datasets, objects, _LaterClock(), UPLOAD_SECONDS).collect()
        assert await datasets.unreferenced_prefixes(_LaterClock().now()) == []
    assert harness.files_of(kept)
    assert harness.files() == others
    assert len(await harness.preview(kept.dataset_id)) == 10


async def test_what_the_store_did_not_let_go_of_is_swept_later(harness: Stand) -> None:
    gone = (await upload(harness.stub, cut(lines(10, "gone")))).dataset
    folder = harness.folder / prefix_of(DatasetId(gone.dataset_id))
    held = {path: path.read_bytes() for path in folder.iterdir()}
    await harness.delete(gone.dataset_id)
    for path, content in held.items():
        put(path, content)
    async with await connect_pool(harness.postgres, schema=SCHEMA) as pool:
        datasets = datasets_in(PostgresSession(pool, QUERIES))
        objects = ObstoreObjects(harness.folder.as_uri())
        await CollectUnreferencedObjects(datasets, objects, _LaterClock(), UPLOAD_SECONDS).collect()
    assert harness.files_of(gone) == []


class _StuckObjects(ObstoreObjects):
    """Lets go of nothing below one prefix, as a bucket with a retention rule does."""

    stuck = ""

    def delete(self, keys: Sequence[str]) -> None:
        if any(key.startswith(self.stuck) for key in keys):
            raise ObjectStoreUnavailable(problem="it refuses the credentials of this service")
        super().delete(keys)


async def test_objects_that_cannot_be_deleted_hold_up_none_behind_them(harness: Stand) -> None:
    stuck, behind = (prefix_of(DatasetId(f"ds_{uuid4().hex}")) for _ in range(2))
    async with await connect_pool(harness.postgres, schema=SCHEMA) as pool:
        datasets = datasets_in(PostgresSession(pool, QUERIES))
        objects = _StuckObjects(harness.folder.as_uri())
        objects.stuck = stuck
        for prefix in (stuck, behind):
            put(harness.folder / prefix / "rows-000000.jsonl.zst")
            await datasets.register_prefix(prefix)
        await CollectUnreferencedObjects(datasets, objects, _LaterClock(), UPLOAD_SECONDS).collect()
        assert await datasets.unreferenced_prefixes(_LaterClock().now()) == [stuck]
        assert not list(objects.keys(behind))
        await CollectUnreferencedObjects(
            datasets, ObstoreObjects(harness.folder.as_uri()), _LaterClock(), UPLOAD_SECONDS
        ).collect()
        assert await datasets.unreferenced_prefixes(_LaterClock().now()) == []


def put(path: Path, content: bytes = b"x") -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content)


class _LaterClock(SystemClock):
    def now(self) -> datetime:
        return super().now() + timedelta(seconds=UPLOAD_SECONDS + 700)


@pytest.mark.parametrize(
    ("header", "field"),
    [({"name": ""}, "header.name"), ({"name": "x" * 256}, "header.name"), ({"user": "a\0b"}, "user")],
)
async def test_header_is_checked_before_the_file(harness: Stand, header: dict[str, Any], field: str) -> None:
    async with refused() as reported:
        await upload(harness.stub, cut(b"{}"), **header)
    assert (reported[0].reason, reported[0].facts["field"]) == ("INVALID_PARAMETER", field)
