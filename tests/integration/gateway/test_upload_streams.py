"""Uploads pass HTTP and gRPC in chunks, with back-pressure, cancellation and errors of the backend."""

import asyncio
import io
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import aiohttp
import grpc
import psutil
import pytest

from proctor.client.datasets import Upload
from proctor.client.errors import Refused, Unreachable
from proctor.client.proctor_client import ProctorClient
from proctor.v1 import dataset_service_pb2 as dataset_pb2
from proctor.v1 import dataset_service_pb2_grpc as dataset_grpc
from services.common.errors import ErrorKind, RemoteError
from tests.fakes.eventually import eventually
from tests.fakes.gateway.backend_services import FakeScheduler
from tests.fakes.gateway.dataset_service import FakeDatasets
from tests.fakes.gateway.gateway_harness import GatewayHarness
from tests.fakes.gateway.gateway_process import GatewayProcess, gateway_process
from tests.fakes.refusals import refused
from tests.fakes.thorough_cases import first_cases

PIECE = b"x" * 500_000
SIZE_BYTES = 200_000_000
MAX_GROWTH_BYTES = 50_000_000


def header(name: str = "rows.jsonl") -> dataset_pb2.UploadDatasetRequest:
    return dataset_pb2.UploadDatasetRequest(header=dataset_pb2.DatasetHeader(name=name, user="bob"))


def content(piece: bytes = PIECE) -> dataset_pb2.UploadDatasetRequest:
    return dataset_pb2.UploadDatasetRequest(content=piece)


END = dataset_pb2.UploadDatasetRequest(end=dataset_pb2.DatasetEnd())


@asynccontextmanager
async def upload_call(
    address: str,
) -> AsyncIterator[
    grpc.aio.StreamUnaryCall[dataset_pb2.UploadDatasetRequest, dataset_pb2.UploadDatasetResponse]
]:
    async with grpc.aio.insecure_channel(address) as channel:
        stub: dataset_grpc.DatasetServiceAsyncStub = dataset_grpc.DatasetServiceStub(channel)
        yield stub.UploadDataset()


async def test_upload_without_request_id_gets_one(harness: GatewayHarness, datasets: FakeDatasets) -> None:
    async with upload_call(harness.grpc) as call:
        for piece in (header(), content(b"a\n"), content(b"b\n"), END):
            await call.write(piece)
        await call.done_writing()
        response = await call
    assert (response.dataset.row_count, datasets.content) == (2, b"a\nb\n")
    [received] = datasets.headers
    assert (received.user, len(received.request_id)) == ("bob", 36)


async def test_upload_that_is_cancelled_or_dies_keeps_nothing(
    harness: GatewayHarness, datasets: FakeDatasets
) -> None:
    for round_number in range(1, 6):
        async with upload_call(harness.grpc) as call:
            await call.write(header())
            await call.write(content(b"a\n"))
            await eventually(
                lambda: len(datasets.piece_sizes) == round_number,  # noqa: B023  # called within the round
                "the piece has arrived",
            )
            call.cancel()
        await eventually(
            lambda: datasets.cut_off == round_number and not datasets.open_uploads,  # noqa: B023  # called within the round
            "the upload is over",
        )
    assert datasets.kept == {}


async def test_upload_that_ends_without_its_end_is_refused(
    harness: GatewayHarness, datasets: FakeDatasets
) -> None:
    async with upload_call(harness.grpc) as call:
        await call.write(header())
        await call.write(content(b"a\n"))
        await call.done_writing()
        with pytest.raises(grpc.aio.AioRpcError, match="cut off"):
            await call
    assert datasets.kept == {}


@pytest.mark.parametrize(
    ("refusal", "kind"),
    [
        (refused(ErrorKind.INVALID, "DATASET_TOO_LARGE", "Too large.", limit="1"), Refused),
        (
            refused(ErrorKind.UNAVAILABLE, "OBJECT_STORE_UNAVAILABLE", "No room.", dependency="s3"),
            Unreachable,
        ),
    ],
)
@pytest.mark.parametrize("after_bytes", [0, 1_500_000])
async def test_refusal_in_the_middle_is_reported_by_its_own_reason(
    harness: GatewayHarness,
    datasets: FakeDatasets,
    refusal: RemoteError,
    kind: type[Exception],
    after_bytes: int,
) -> None:
    datasets.refusal, datasets.refuse_after_bytes = refusal, after_bytes
    async with ProctorClient(harness.grpc) as client:
        for _ in range(5):
            with pytest.raises(kind) as raised:
                await client.upload_dataset(Upload(io.BytesIO(PIECE * 20), "rows.jsonl"))
            assert getattr(raised.value, "reason", "") == refusal.reason


async def test_backend_that_goes_away_in_the_middle_is_named(
    harness: GatewayHarness, datasets: FakeDatasets
) -> None:
    async with upload_call(harness.grpc) as call:
        await call.write(header())
        await eventually(lambda: datasets.open_uploads == 1, "the upload is open")
        await harness.stop_backends()
        with pytest.raises(grpc.aio.AioRpcError, match="scheduler does not answer") as raised:
            await call
    assert raised.value.code() is grpc.StatusCode.UNAVAILABLE


@first_cases(1, "protocol", ["http", "grpc"])
async def test_memory_of_the_gateway_does_not_grow_with_the_file(protocol: str) -> None:
    async with gateway_process(FakeScheduler()) as gateway:
        weighed = psutil.Process(gateway.process.pid)
        upload = upload_by_http if protocol == "http" else upload_by_grpc
        await upload(gateway, 2_000_000)
        before = private_bytes(weighed)
        uploading = asyncio.create_task(upload(gateway, SIZE_BYTES), name="upload")
        most = before
        while not uploading.done():
            most = max(most, private_bytes(weighed))
            await asyncio.wait((uploading,), timeout=0.05)
        assert await uploading == SIZE_BYTES
    assert most - before < MAX_GROWTH_BYTES


def private_bytes(process: psutil.Process) -> int:
    return int(process.memory_full_info().uss)


async def upload_by_http(gateway: GatewayProcess, size: int) -> int:
    async def pieces() -> AsyncIterator[bytes]:
        for _ in range(size // len(PIECE)):
            yield PIECE

    form = aiohttp.FormData()
    form.add_field("file", pieces(), filename="rows.jsonl")
    async with aiohttp.ClientSession() as session:
        async with session.post(f"{gateway.http}/admin/datasets/upload", data=form) as response:
            uploaded = await response.json()
        path = f"{gateway.http}/admin/datasets/{uploaded['dataset_id']}"
        async with session.get(path) as response:
            return int((await response.json())["size_bytes"])


async def upload_by_grpc(gateway: GatewayProcess, size: int) -> int:
    async with upload_call(gateway.grpc) as call:
        await call.write(header())
        for _ in range(size // len(PIECE)):
            await call.write(content())
        await call.write(END)
        await call.done_writing()
        return (await call).dataset.size_bytes
