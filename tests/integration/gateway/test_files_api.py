"""Files of batches pass the gateway piece by piece both ways: held back, let go of, in memory that stays."""

import asyncio
import hashlib
from collections.abc import AsyncIterator

import aiohttp
import psutil
import pytest

from proctor.v1 import file_service_pb2 as file_pb2
from tests.fakes.eventually import eventually
from tests.fakes.gateway.backend_services import FakeScheduler
from tests.fakes.gateway.gateway_harness import gateway_harness
from tests.fakes.gateway.gateway_process import GatewayProcess, gateway_process

PIECE = bytes(range(250)) * 2000
PIECES = 200
MAX_GROWTH_BYTES = 50_000_000


@pytest.mark.thorough
async def test_memory_of_the_gateway_does_not_grow_with_the_file() -> None:
    scheduler = FakeScheduler()
    scheduler.files.piece_bytes = 1024 * 1024
    async with gateway_process(scheduler) as gateway:
        weighed = psutil.Process(gateway.process.pid)
        await there_and_back(gateway, 4)
        before = most = private_bytes(weighed)
        moving = asyncio.create_task(there_and_back(gateway, PIECES), name="there and back")
        while not moving.done():
            most = max(most, private_bytes(weighed))
            await asyncio.wait((moving,), timeout=0.05)
        assert await moving == hashlib.sha256(PIECE * PIECES).hexdigest()
    assert most - before < MAX_GROWTH_BYTES


async def there_and_back(gateway: GatewayProcess, pieces: int) -> str:
    """The digest of what comes back of an upload."""

    async def content() -> AsyncIterator[bytes]:
        for _ in range(pieces):
            yield PIECE

    form = aiohttp.FormData()
    form.add_field("purpose", "batch")
    form.add_field("file", content(), filename="lines.jsonl")
    digest = hashlib.sha256()
    async with aiohttp.ClientSession() as session:
        async with session.post(f"{gateway.http}/v1/files", data=form) as response:
            file_id = (await response.json())["id"]
        async with session.get(f"{gateway.http}/v1/files/{file_id}/content") as response:
            async for piece in response.content.iter_any():
                digest.update(piece)
    return digest.hexdigest()


def private_bytes(process: psutil.Process) -> int:
    return int(process.memory_full_info().uss)


async def test_reader_that_goes_away_ends_the_reading_behind_the_gateway() -> None:
    async with gateway_harness() as harness:
        files = harness.scheduler.files
        file = files.put("a", PIECE * 100, file_pb2.FILE_PURPOSE_BATCH_OUTPUT)
        async with aiohttp.ClientSession() as session:
            response = await session.get(f"{harness.http}/v1/files/{file.file_id}/content")
            await response.content.readexactly(1000)
            assert files.open_reads == 1
            response.close()
        await eventually(lambda: not files.open_reads, "all reads end")


async def test_slow_reader_holds_back_who_sends() -> None:
    async with gateway_harness() as harness:
        files = harness.scheduler.files
        files.piece_bytes = 100_000
        file = files.put("a", PIECE * 200, file_pb2.FILE_PURPOSE_BATCH_OUTPUT)
        async with aiohttp.ClientSession() as session:
            response = await session.get(f"{harness.http}/v1/files/{file.file_id}/content")

            async def stands_still() -> bool:
                before = files.sent_bytes
                await asyncio.wait((waiting,), timeout=0.3)
                return 0 < before == files.sent_bytes

            waiting = asyncio.get_running_loop().create_future()
            await eventually(stands_still, "no more is sent than is taken")
            assert files.sent_bytes < file.size_bytes / 2
            assert len(await response.read()) == file.size_bytes
