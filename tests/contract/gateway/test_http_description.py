"""The description of the HTTP interface, and a page to read it that needs nothing from elsewhere."""

import json
import re
import uuid
from typing import Any

import aiohttp
import pytest

from proctor.v1 import file_service_pb2 as file_pb2
from tests.fakes.gateway.gateway_harness import GatewayHarness, gateway_harness
from tests.fakes.gateway.http_calls import call

PROMISED = {
    "/api/v1/benchmarking/run",
    "/api/v1/benchmarking/results",
    "/api/v1/benchmarking/results/{job_id}",
    "/api/v1/benchmarking/cancel/{job_id}",
    "/api/v1/benchmarking/pause/{job_id}",
    "/api/v1/benchmarking/resume/{job_id}",
    "/api/v1/benchmarking/retry/{job_id}",
    "/api/v1/benchmarking/archive/{job_id}",
    "/api/v1/benchmarking/restore/{job_id}",
    "/api/v1/benchmarking/reclose/{job_id}",
    "/api/v1/benchmarking/results/{job_id}/export",
    "/api/v1/benchmarking/rescore/{job_id}",
    "/api/v1/benchmarking/judgements/{job_id}",
    "/api/v1/benchmarking/annotations/{job_id}",
    "/api/v1/benchmarking/annotations/{job_id}/agreement",
    "/api/v1/benchmarking/annotations/{job_id}/next",
    "/api/v1/benchmarking/judgements/{job_id}/panel",
    "/api/v1/benchmarking/judgements/{job_id}/verdicts",
    "/api/v1/benchmarking/compare",
    "/api/v1/benchmarking/gate",
    "/api/v1/benchmarking/contamination/{job_id}",
    "/api/v1/benchmarking/plan-size",
    "/api/v1/imports",
    "/api/v1/benchmarking/estimate",
    "/api/v1/benchmarking/leaderboard",
    "/api/v1/benchmarking/ratings",
    "/api/v1/benchmarking/noise/{job_id}",
    "/api/v1/benchmarking/history",
    "/api/v1/queue",
    "/api/v1/queue/limits",
    "/api/v1/rollouts",
    "/api/v1/rollouts/{order_id}",
    "/api/v1/rollouts/tasks",
    "/api/v1/rollouts/runs/{job_id}/{sample}/{rollout}/artifacts",
    "/api/v1/rollouts/runs/{job_id}/{sample}/{rollout}/artifacts/{execution}/{name}",
    "/api/v1/storage",
    "/api/v1/suites",
    "/api/v1/suites/{suite}/document",
    "/api/v1/suites/{suite}/tasks/{task}/samples/{row}",
    "/api/v1/suites/{suite}/versions/{version}",
    "/api/v1/me",
    "/api/v1/audit",
    "/api/v1/audit/export",
    "/api/v1/changes",
    "/api/v1/keys",
    "/api/v1/keys/{key_id}",
    "/api/v1/keys/{key_id}/rotate",
    "/api/v1/notices",
    "/api/v1/notices/targets",
    "/api/v1/notices/targets/{target_id}",
    "/api/v1/notices/targets/{target_id}/test",
    "/api/v1/schedules",
    "/api/v1/schedules/{schedule_id}",
    "/api/v1/schedules/{schedule_id}/pause",
    "/api/v1/schedules/{schedule_id}/resume",
    "/api/v1/projects",
    "/api/v1/projects/{project_id}",
    "/api/v1/projects/{project_id}/members",
    "/api/v1/models",
    "/admin/models",
    "/admin/datasets",
    "/admin/datasets/mappings",
    "/admin/datasets/mappings/{name}",
    "/admin/datasets/upload",
    "/admin/datasets/upload/preview",
    "/admin/datasets/{dataset_id}",
    "/admin/datasets/{dataset_id}/preview",
    "/admin/benchmarks",
    "/admin/benchmarks/run",
    "/admin/benchmarks/side-by-side",
    "/admin/benchmarks/golden/export",
    "/admin/benchmarks/{benchmark_id}",
    "/admin/benchmarks/{benchmark_id}/golden",
    "/admin/benchmarks/{benchmark_id}/golden/changes",
    "/admin/benchmarks/{benchmark_id}/wrong",
    "/admin/benchmarks/{benchmark_id}/results",
    "/admin/benchmarks/{benchmark_id}/export",
    "/admin/benchmarks/{benchmark_id}/cancel",
    "/admin/benchmarks/{benchmark_id}/pause",
    "/admin/benchmarks/{benchmark_id}/resume",
    "/admin/benchmarks/{benchmark_id}/retry",
    "/admin/benchmarks/{benchmark_id}/archive",
    "/admin/benchmarks/{benchmark_id}/restore",
    "/admin/benchmarks/{benchmark_id}/reclose",
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
        node = described
        for part in reference.split("/"):
            assert part in node, reference
            node = node[part]


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


async def described(harness: GatewayHarness) -> dict[str, dict[str, dict[str, Any]]]:
    _, document, _ = await call(harness, "GET", "/openapi.json")
    paths: dict[str, dict[str, dict[str, Any]]] = document["paths"]
    return paths


# A repeated call changes nothing: they change what is there, compute, or store a content under its digest.
REPEATABLE = {
    "/admin/datasets/upload/preview",
    "/api/v1/benchmarking/annotations/{job_id}",
    "/api/v1/benchmarking/rescore/{job_id}",
    *(
        f"/api/v1/benchmarking/{change}/{{job_id}}"
        for change in (
            "annotations",
            "archive",
            "cancel",
            "pause",
            "resume",
            "retry",
            "reclose",
            "rescore",
            "restore",
        )
    ),
    *(
        f"/admin/benchmarks/{{benchmark_id}}/{change}"
        for change in ("archive", "cancel", "pause", "resume", "retry", "reclose", "restore")
    ),
    "/api/v1/notices/targets/{target_id}/test",
    *(f"/api/v1/schedules/{{schedule_id}}/{change}" for change in ("pause", "resume")),
    "/v1/batches/{batch_id}/cancel",
    "/api/v1/benchmarking/compare",
    "/api/v1/benchmarking/gate",
    "/api/v1/benchmarking/contamination/{job_id}",
    "/api/v1/benchmarking/plan-size",
    "/api/v1/benchmarking/estimate",
    "/api/v1/rollouts/tasks",
    "/api/v1/suites",
}


async def test_each_call_that_creates_takes_an_idempotency_key(harness: GatewayHarness) -> None:
    without_key = {
        path
        for path, operations in (await described(harness)).items()
        if "post" in operations
        and "Idempotency-Key" not in {each["name"] for each in operations["post"].get("parameters", ())}
    }
    assert without_key == REPEATABLE


async def test_keys_of_two_users_are_two_requests(harness: GatewayHarness) -> None:
    order = {"project_id": 1, "suite": "glue", "config": {"provider": "vllm", "model": "starter"}}
    for user in ("ann", "bob", "ann"):
        headers = {"Idempotency-Key": "nightly", "X-Proctor-User": user}
        path = "/api/v1/benchmarking/run"
        assert (await call(harness, "POST", path, json=order, headers=headers))[0] == 200
    ann, bob, again = (each.request_id for each in harness.scheduler.submitted)
    assert ann == again != bob
    assert str(uuid.UUID(ann)) == ann


async def test_errors_are_described_with_the_media_type_and_the_status_they_have(
    harness: GatewayHarness,
) -> None:
    for path, operations in (await described(harness)).items():
        for operation in operations.values():
            errors = {
                status: set(response["content"])
                for status, response in operation["responses"].items()
                if status >= "400"
            }
            is_openai = path.startswith("/v1/")
            # A probe that fails lists its backends, as one that succeeds.
            is_problem = not is_openai and path != "/readyz"
            media_type = "application/problem+json" if is_problem else "application/json"
            assert all(content == {media_type} for content in errors.values()), path
            assert not (is_openai and "422" in errors), path
    for path, status in (("/admin/datasets/x", 404), (f"/v1/files/{'0' * 300}", 400)):
        answered, _, response = await call(harness, "GET", path)
        assert answered == status
        assert response.content_type == ("application/json" if "v1" in path else "application/problem+json")


@pytest.mark.parametrize(
    ("path", "methods"),
    [
        ("/api/v1/queue/limits", "GET, HEAD, PATCH"),
        ("/admin/benchmarks/x/golden", "DELETE, PUT"),
        ("/v1/files", "GET, HEAD, POST"),
        ("/v1/files/x", "DELETE, GET, HEAD"),
    ],
)
async def test_method_that_a_path_has_not_names_all_that_it_has(
    harness: GatewayHarness, path: str, methods: str
) -> None:
    for method in ("OPTIONS", "TRACE"):
        status, _, response = await call(harness, method, path)
        assert (status, response.headers["Allow"]) == (405, methods)


async def test_head_has_the_headers_of_get_and_no_body(harness: GatewayHarness) -> None:
    for path in ("/api/v1/queue/limits", "/admin/datasets/x", "/healthz", "/docs"):
        wanted, _, got = await call_text(harness, "GET", path)
        status, body, head = await call_text(harness, "HEAD", path)
        assert (status, body) == (wanted, "")
        for name in ("Content-Type", "Content-Length"):
            assert head.headers[name] == got.headers[name]


async def test_head_of_a_download_has_the_headers_of_get_and_no_body(harness: GatewayHarness) -> None:
    file = harness.scheduler.files.put("rows.jsonl", b"0123456789", file_pb2.FILE_PURPOSE_BATCH_OUTPUT)
    harness.results.exports.pieces = [b"a,b\n", b"1,2\n"]
    run_id = str(uuid.uuid4())
    rollout = f"/api/v1/rollouts/runs/{run_id}/0/0/artifacts"
    for path in (
        f"/v1/files/{file.file_id}/content",
        f"/api/v1/benchmarking/results/{run_id}/export?format=csv",
        f"{rollout}/{32 * '0'}/diff.patch",
    ):
        wanted, content, got = await call_text(harness, "GET", path)
        status, body, head = await call_text(harness, "HEAD", path)
        assert (wanted, status, body) == (200, 200, ""), path
        assert content
        for name in ("Content-Type", "Content-Disposition", "Content-Length", "Accept-Ranges"):
            assert head.headers.get(name) == got.headers.get(name), (path, name)


async def call_text(
    harness: GatewayHarness, method: str, path: str
) -> tuple[int, str, aiohttp.ClientResponse]:
    async with aiohttp.ClientSession() as session, session.request(method, harness.http + path) as response:
        return response.status, await response.text(), response
