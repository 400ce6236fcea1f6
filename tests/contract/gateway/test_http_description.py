"""The description of the HTTP interface, and a page to read it that needs nothing from elsewhere."""

import json
import re

import aiohttp

from tests.fakes.gateway.gateway_harness import gateway_harness

PROMISED = {
    "/api/v1/benchmarking/run",
    "/api/v1/benchmarking/results",
    "/api/v1/benchmarking/results/{job_id}",
    "/api/v1/benchmarking/cancel/{job_id}",
    "/api/v1/benchmarking/pause/{job_id}",
    "/api/v1/benchmarking/resume/{job_id}",
    "/api/v1/benchmarking/retry/{job_id}",
    "/api/v1/benchmarking/results/{job_id}/export",
    "/api/v1/benchmarking/rescore/{job_id}",
    "/api/v1/benchmarking/compare",
    "/api/v1/benchmarking/leaderboard",
    "/api/v1/benchmarking/history",
    "/api/v1/queue",
    "/api/v1/queue/limits",
    "/api/v1/suites",
    "/api/v1/suites/{suite}/tasks/{task}/samples/{row}",
    "/api/v1/suites/{suite}/versions/{version}",
    "/api/v1/models",
    "/admin/models",
    "/admin/datasets",
    "/admin/datasets/upload",
    "/admin/datasets/{dataset_id}",
    "/admin/datasets/{dataset_id}/preview",
    "/admin/benchmarks",
    "/admin/benchmarks/run",
    "/admin/benchmarks/side-by-side",
    "/admin/benchmarks/golden/export",
    "/admin/benchmarks/{benchmark_id}",
    "/admin/benchmarks/{benchmark_id}/golden",
    "/admin/benchmarks/{benchmark_id}/results",
    "/admin/benchmarks/{benchmark_id}/export",
    "/admin/benchmarks/{benchmark_id}/cancel",
    "/admin/benchmarks/{benchmark_id}/pause",
    "/admin/benchmarks/{benchmark_id}/resume",
    "/admin/benchmarks/{benchmark_id}/retry",
    "/v1/files",
    "/v1/files/{file_id}",
    "/v1/files/{file_id}/content",
    "/v1/batches",
    "/v1/batches/{batch_id}",
    "/v1/batches/{batch_id}/cancel",
    "/v1/models",
    "/v1/models/{model}",
    "/healthz",
    "/readyz",
}


async def test_description_names_every_promised_path() -> None:
    async with (
        gateway_harness() as harness,
        aiohttp.ClientSession() as session,
        session.get(f"{harness.http}/openapi.json") as response,
    ):
        paths = (await response.json())["paths"]
    assert set(paths) == PROMISED


async def test_every_reference_of_the_description_leads_somewhere() -> None:
    async with (
        gateway_harness() as harness,
        aiohttp.ClientSession() as session,
        session.get(f"{harness.http}/openapi.json") as response,
    ):
        text = await response.text()
    described = json.loads(text)
    references = set(re.findall(r'"\$ref":\s*"#/([^"]+)"', text))
    assert references
    for reference in references:
        place = described
        for part in reference.split("/"):
            assert part in place, reference
            place = place[part]


async def test_docs_page_loads_its_parts_from_the_gateway_itself() -> None:
    async with gateway_harness() as harness, aiohttp.ClientSession() as session:
        async with session.get(f"{harness.http}/docs") as response:
            page = await response.text()
        parts = re.findall(r'(?:src|href)="([^"]+)"', page)
        assert parts
        for part in parts:
            assert part.startswith("/")
            async with session.get(harness.http + part) as response:
                assert response.status == 200
