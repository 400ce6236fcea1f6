"""A run as a file over a socket: streamed, named, refused before it begins, broken off where it breaks."""

import uuid
from collections.abc import AsyncIterator

import aiohttp
import pytest

from proctor.v1 import export_service_pb2 as export_pb2
from services.common.errors import ErrorKind
from tests.fakes.backend_services import refused
from tests.fakes.eventually import eventually
from tests.fakes.gateway_stand import GatewayStand, gateway_stand
from tests.fakes.http_calls import call

RUN = str(uuid.uuid4())
EXPORT = f"/api/v1/benchmarking/results/{RUN}/export"
MEBIBYTE = 1024 * 1024


@pytest.fixture
async def stand() -> AsyncIterator[GatewayStand]:
    async with gateway_stand() as running:
        yield running


async def test_file_comes_with_its_name_type_and_bytes(stand: GatewayStand) -> None:
    exports = stand.results.exports
    exports.pieces = [b"", b"a,b\n", b"1,2\n"]
    exports.file_name = 'glue "a"/b.csv'
    url = f"{stand.http}{EXPORT}?format=csv&task=sst2"
    async with aiohttp.ClientSession() as session, session.get(url) as response:
        assert response.status == 200
        assert await response.read() == b"a,b\n1,2\n"
        assert response.content_type == "text/csv"
        assert response.headers["Content-Disposition"] == 'attachment; filename="glue_a_b.csv"'
    [asked] = exports.asked
    assert (asked.run_id, asked.format, asked.task) == (RUN, export_pb2.EXPORT_FORMAT_CSV, "sst2")


@pytest.mark.parametrize("form", ["csv", "json", "jsonl", "parquet", "html", "lm_eval"])
async def test_every_form_can_be_asked_for(stand: GatewayStand, form: str) -> None:
    async with aiohttp.ClientSession() as session, session.get(f"{stand.http}{EXPORT}?format={form}") as got:
        assert got.status == 200
    word = export_pb2.ExportFormat.Name(stand.results.exports.asked[0].format)
    assert word == f"EXPORT_FORMAT_{form.upper()}"


async def test_refusal_is_a_problem_and_no_file(stand: GatewayStand) -> None:
    stand.results.exports.refusal = refused(
        ErrorKind.NOT_FOUND, "RUN_NOT_FOUND", "Run not found.", run_id=RUN
    )
    status, body, response = await call(stand, "GET", EXPORT)
    assert (status, body["detail"]) == (404, f"Benchmark job {RUN} not found")
    assert "Content-Disposition" not in response.headers
    assert (await call(stand, "GET", f"{EXPORT}?format=docx"))[0] == 422


async def test_file_that_breaks_off_does_not_look_whole(stand: GatewayStand) -> None:
    exports = stand.results.exports
    exports.pieces = [b"a" * 1000]
    exports.refusal, exports.refuse_at = refused(ErrorKind.INTERNAL, "INTERNAL", "The disk is gone."), 1
    async with aiohttp.ClientSession() as session, session.get(stand.http + EXPORT) as response:
        assert response.status == 200
        with pytest.raises(aiohttp.ClientPayloadError):
            await response.read()


async def test_client_that_leaves_ends_the_export_behind_the_gateway(stand: GatewayStand) -> None:
    exports = stand.results.exports
    exports.pieces = [b"x" * MEBIBYTE] * 200
    async with aiohttp.ClientSession() as session, session.get(stand.http + EXPORT) as response:
        await response.content.readexactly(1000)
        assert exports.streams_open == 1
        response.close()
    await eventually(lambda: exports.streams_open == 0, "the export is over")
    assert exports.taken < 200


async def test_client_that_reads_slowly_holds_the_export_back(stand: GatewayStand) -> None:
    exports = stand.results.exports
    exports.pieces = [b"x" * MEBIBYTE] * 200
    async with aiohttp.ClientSession() as session, session.get(stand.http + EXPORT) as response:
        for _ in range(20):
            await response.content.readexactly(1000)
        assert exports.taken < 100
        response.close()
