"""A run as a file over a socket: streamed, named, refused before it begins, broken off where it breaks."""

import uuid

import aiohttp
import pytest
from multidict import CIMultiDictProxy

from proctor.v1 import export_service_pb2 as export_pb2
from services.common.errors import ErrorKind
from tests.fakes.eventually import eventually
from tests.fakes.gateway.backend_services import refused
from tests.fakes.gateway.gateway_harness import GatewayHarness
from tests.fakes.gateway.http_calls import call

RUN = str(uuid.uuid4())
EXPORT = f"/api/v1/benchmarking/results/{RUN}/export"
MEBIBYTE = 1024 * 1024


async def test_file_comes_with_its_name_type_and_bytes(harness: GatewayHarness) -> None:
    exports = harness.results.exports
    exports.pieces = [b"", b"a,b\n", b"1,2\n"]
    exports.file_name = 'glue "a"/b.csv'
    url = f"{harness.http}{EXPORT}?format=csv&task=sst2"
    async with aiohttp.ClientSession() as session, session.get(url) as response:
        assert response.status == 200
        assert await response.read() == b"a,b\n1,2\n"
        assert response.content_type == "text/csv"
        assert response.headers["Content-Disposition"] == 'attachment; filename="glue_a_b.csv"'
    [asked] = exports.asked
    assert (asked.run_id, asked.format, asked.task) == (RUN, export_pb2.EXPORT_FORMAT_CSV, "sst2")


@pytest.mark.parametrize(
    ("query", "headers", "is_csv_safe"),
    [
        ("", {"User-Agent": "curl/8.5"}, False),
        ("", {"User-Agent": "Mozilla/5.0 (X11; Linux x86_64)"}, True),
        ("", {"User-Agent": "curl/8.5", "Sec-Fetch-Mode": "navigate"}, True),
        ("&csv_safe=true", {"User-Agent": "curl/8.5"}, True),
        ("&csv_safe=false", {"User-Agent": "Mozilla/5.0 (X11; Linux x86_64)"}, False),
    ],
)
async def test_a_browser_gets_a_table_without_formulas(
    harness: GatewayHarness, query: str, headers: dict[str, str], *, is_csv_safe: bool
) -> None:
    url = f"{harness.http}{EXPORT}?format=csv{query}"
    async with aiohttp.ClientSession() as session, session.get(url, headers=headers) as response:
        assert response.status == 200
    assert [asked.is_csv_safe for asked in harness.results.exports.asked] == [is_csv_safe]


@pytest.mark.parametrize("form", ["csv", "json", "jsonl", "parquet", "html", "lm_eval"])
async def test_every_form_can_be_asked_for(harness: GatewayHarness, form: str) -> None:
    async with (
        aiohttp.ClientSession() as session,
        session.get(f"{harness.http}{EXPORT}?format={form}") as got,
    ):
        assert got.status == 200
    word = export_pb2.ExportFormat.Name(harness.results.exports.asked[0].format)
    assert word == f"EXPORT_FORMAT_{form.upper()}"


async def test_report_opens_as_a_page_that_can_run_nothing(harness: GatewayHarness) -> None:
    exports = harness.results.exports
    exports.pieces, exports.file_name = [b"<!doctype html>"], "glue.html"
    async with aiohttp.ClientSession() as session:
        async with session.get(f"{harness.http}{EXPORT}?format=html") as shown:
            assert shown.headers["Content-Disposition"] == 'inline; filename="glue.html"'
            [policy] = [each for each in shown.headers.getall("Content-Security-Policy") if "sandbox" in each]
            assert "default-src 'none'" in policy
            assert "script-src" not in policy
            assert "allow-" not in policy
        # As one file, and every other form: never a page.
        for query in ("format=html&download=true", "format=csv", "format=lm_eval"):
            async with session.get(f"{harness.http}{EXPORT}?{query}") as saved:
                assert saved.headers["Content-Disposition"] == 'attachment; filename="glue.html"'


async def test_refusal_is_a_problem_and_no_file(harness: GatewayHarness) -> None:
    harness.results.exports.refusal = refused(
        ErrorKind.NOT_FOUND, "RUN_NOT_FOUND", "Run not found.", run_id=RUN
    )
    status, body, response = await call(harness, "GET", EXPORT)
    assert (status, body["detail"]) == (404, f"Benchmark job {RUN} not found")
    assert "Content-Disposition" not in response.headers
    assert (await call(harness, "GET", f"{EXPORT}?format=docx"))[0] == 422


async def test_file_that_breaks_off_does_not_look_whole(harness: GatewayHarness) -> None:
    exports = harness.results.exports
    exports.pieces = [b"a" * 1000]
    exports.refusal, exports.refuse_at = refused(ErrorKind.INTERNAL, "INTERNAL", "The disk is gone."), 1
    async with aiohttp.ClientSession() as session, session.get(harness.http + EXPORT) as response:
        assert response.status == 200
        with pytest.raises(aiohttp.ClientPayloadError):
            await response.read()


async def test_client_that_leaves_ends_the_export_behind_the_gateway(harness: GatewayHarness) -> None:
    exports = harness.results.exports
    exports.pieces = [b"x" * MEBIBYTE] * 200
    async with aiohttp.ClientSession() as session, session.get(harness.http + EXPORT) as response:
        await response.content.readexactly(1000)
        assert exports.streams_open == 1
        response.close()
    await eventually(lambda: exports.streams_open == 0, "the export is over")
    assert exports.taken < 200


async def test_client_that_reads_slowly_holds_the_export_back(harness: GatewayHarness) -> None:
    exports = harness.results.exports
    exports.pieces = [b"x" * MEBIBYTE] * 200
    async with aiohttp.ClientSession() as session, session.get(harness.http + EXPORT) as response:
        for _ in range(20):
            await response.content.readexactly(1000)
        assert exports.taken < 100
        response.close()


FILE = [b"", b"0123", b"4567", b"89"]
TAG = '"of-this-content"'


async def fetched(harness: GatewayHarness, **headers: str) -> tuple[int, bytes, CIMultiDictProxy[str]]:
    url = f"{harness.http}{EXPORT}?format=jsonl"
    async with aiohttp.ClientSession() as session, session.get(url, headers=headers) as response:
        return response.status, await response.read(), response.headers


@pytest.fixture
async def closed(harness: GatewayHarness) -> GatewayHarness:
    """With the file of a run that is finished."""
    exports = harness.results.exports
    exports.pieces, exports.content_tag = FILE, "of-this-content"
    return harness


@pytest.mark.parametrize(
    ("asked", "body", "reported"),
    [
        ("bytes=0-", b"0123456789", "bytes 0-9/10"),
        ("bytes=3-", b"3456789", "bytes 3-9/10"),
        ("bytes=3-5", b"345", "bytes 3-5/10"),
        ("bytes=0-3", b"0123", "bytes 0-3/10"),
        ("bytes=0-4", b"01234", "bytes 0-4/10"),
        ("bytes=8-99", b"89", "bytes 8-9/10"),
        ("bytes=-4", b"6789", "bytes 6-9/10"),
    ],
)
async def test_range_is_answered_alone(
    closed: GatewayHarness, asked: str, body: bytes, reported: str
) -> None:
    status, got, headers = await fetched(closed, Range=asked)
    assert (status, got, headers["Content-Range"]) == (206, body, reported)
    assert (headers["ETag"], headers["Content-Length"]) == (TAG, str(len(body)))
    await eventually(lambda: closed.results.exports.streams_open == 0, "nothing is read on")


async def test_file_that_stays_says_that_it_can_be_gone_on_with(closed: GatewayHarness) -> None:
    status, body, headers = await fetched(closed)
    assert (status, body) == (200, b"0123456789")
    assert (headers["ETag"], headers["Accept-Ranges"]) == (TAG, "bytes")
    assert not closed.results.exports.asked[0].includes_total


async def test_file_of_a_run_that_goes_on_has_no_ranges(harness: GatewayHarness) -> None:
    harness.results.exports.pieces = FILE
    status, body, headers = await fetched(harness, Range="bytes=3-")
    assert (status, body) == (200, b"0123456789")
    assert not {"ETag", "Accept-Ranges", "Content-Range"} & set(headers)


async def test_range_behind_the_end_is_416(closed: GatewayHarness) -> None:
    status, _, headers = await fetched(closed, Range="bytes=10-")
    assert (status, headers["Content-Range"]) == (416, "bytes */10")


async def test_range_of_other_content_is_answered_with_all(closed: GatewayHarness) -> None:
    status, body, _ = await fetched(closed, **{"Range": "bytes=3-", "If-Range": '"of-other-content"'})
    assert (status, body) == (200, b"0123456789")
    status, body, _ = await fetched(closed, **{"Range": "bytes=3-", "If-Range": TAG})
    assert (status, body) == (206, b"3456789")


async def test_content_that_the_client_has_is_not_sent_again(closed: GatewayHarness) -> None:
    status, body, headers = await fetched(closed, **{"If-None-Match": f"W/{TAG}"})
    assert (status, body, headers["ETag"]) == (304, b"", TAG)


@pytest.mark.parametrize("asked", ["bytes=1-2,5-6", "lines=3-", "bytes=5-3", "nonsense"])
async def test_range_that_is_not_understood_is_answered_with_all(closed: GatewayHarness, asked: str) -> None:
    status, body, _ = await fetched(closed, Range=asked)
    assert (status, body) == (200, b"0123456789")
