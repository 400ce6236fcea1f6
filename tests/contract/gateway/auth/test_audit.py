"""What the gateway records: files that are read, changes at results, sign-ins, and refusals at every door."""

import json
import re
from collections.abc import AsyncIterator
from typing import Any

import aiohttp
import grpc
import pytest

from proctor.v1 import export_service_pb2 as export_pb2
from proctor.v1 import export_service_pb2_grpc as export_grpc
from proctor.v1 import scheduler_service_pb2 as scheduler_pb2
from proctor.v1 import scheduler_service_pb2_grpc as scheduler_grpc
from services.common.grpc.permissions import METHODS, RECORDED, Permission
from services.gateway.auth.permissions import ROUTES, route_permission
from services.gateway.grpc_proxy.forwarded_services import RESULTS_FILES
from services.scheduler.audit.audit_record import AuditRecord, Outcome
from tests.fakes.gateway.gateway_harness import GatewayHarness, gateway_harness
from tests.fakes.gateway.http_calls import call, session_cookie

AUDIT = "/api/v1/audit"
ROOT = {"X-API-Key": "secret-key-of-olga"}
ANN = {"X-API-Key": "secret-key-of-ann-1"}
RUN = "0a4b7f3e-7d36-4f0e-9f5a-6a0d6f1f6c55"
EXPORT = f"/api/v1/benchmarking/results/{RUN}/export"


@pytest.fixture
async def keyed() -> AsyncIterator[GatewayHarness]:
    keys = {"olga": ROOT["X-API-Key"], "ann": ANN["X-API-Key"]}
    async with gateway_harness(api_keys=keys, operators=["olga"]) as running:
        yield running


async def recorded(harness: GatewayHarness) -> list[AuditRecord]:
    """Also what would be sent within a second."""
    assert harness.gateway
    await harness.gateway.drain()
    return harness.scheduler.audit.added


async def status_of(harness: GatewayHarness, method: str, path: str, **more: Any) -> int:
    """As a page of the gateway or a program calls it."""
    more["headers"] = {"Origin": harness.http, **more.get("headers", {})}
    async with (
        aiohttp.ClientSession() as session,
        session.request(method, harness.http + path, allow_redirects=False, **more) as response,
    ):
        await response.read()
        return response.status


def test_each_change_of_results_is_recorded_by_the_gateway() -> None:
    of_results = {
        method.name
        for file in RESULTS_FILES
        for service in file.DESCRIPTOR.services_by_name.values()
        for method in service.methods
    }
    changes = {name for name in of_results if METHODS[name] is not Permission.READ}
    assert changes <= RECORDED
    assert {name for name in METHODS if name.startswith(("Export", "Read"))} <= RECORDED <= set(METHODS)


@pytest.mark.parametrize(
    ("method", "path", "words"),
    [
        ("GET", EXPORT, "export run"),
        ("GET", f"/runs/{RUN}/results/export.csv", "export outcomes"),
        ("GET", f"/admin/benchmarks/golden/export?ids=bm_{RUN.replace('-', '')}", "export golden answers"),
        ("GET", f"/api/v1/rollouts/runs/{RUN}/0/0/artifacts/e/log.txt", "read artifact"),
        ("GET", "/v1/files/file-1/content", "read file"),
        ("POST", f"/runs/{RUN}/marks", "mark answers"),
        ("POST", f"/api/v1/benchmarking/rescore/{RUN}", "rescore task"),
    ],
)
async def test_files_and_changes_at_results_are_recorded_with_who_and_where(
    keyed: GatewayHarness, method: str, path: str, words: str
) -> None:
    await status_of(keyed, method, path, headers=ANN)
    [record] = await recorded(keyed)
    assert f"{record.action} {record.kind}" == words
    assert record.object_id in (RUN, "file-1")
    assert (record.user, record.address, record.outcome) == ("ann", "127.0.0.1", Outcome.ADMITTED)


async def test_file_is_not_read_where_nobody_can_record_it(keyed: GatewayHarness) -> None:
    keyed.scheduler.audit.is_away = True
    assert await status_of(keyed, "GET", EXPORT, headers=ANN) == 503
    assert not keyed.results.exports.asked
    assert await status_of(keyed, "GET", "/api/v1/queue", headers=ANN) == 200


async def test_calls_by_grpc_are_recorded_as_those_by_http(keyed: GatewayHarness) -> None:
    key = (("x-api-key", ANN["X-API-Key"]),)
    async with grpc.aio.insecure_channel(keyed.grpc) as channel:
        exports = export_grpc.ExportServiceStub(channel)
        request = export_pb2.ExportRunRequest(run_id=RUN, format=export_pb2.EXPORT_FORMAT_CSV)
        async for _ in exports.ExportRun(request, metadata=key):
            pass
    [record] = await recorded(keyed)
    assert (record.user, record.address, record.action) == ("ann", "127.0.0.1", "export")
    assert (record.kind, record.object_id, record.outcome) == ("run", RUN, Outcome.ADMITTED)


async def test_sign_ins_are_recorded_and_hold_no_key(keyed: GatewayHarness) -> None:
    await session_cookie(keyed, ANN["X-API-Key"])
    await status_of(keyed, "POST", "/sign-in", data={"key": "a-wrong-key"})
    await status_of(keyed, "GET", "/api/v1/queue", headers={"X-API-Key": "a-wrong-key"})
    signed_in, refused, *_ = await recorded(keyed)
    assert (signed_in.user, signed_in.action, signed_in.outcome) == ("ann", "sign in", Outcome.DONE)
    assert signed_in.object_id
    assert (refused.user, refused.address, refused.outcome) == ("", "127.0.0.1", Outcome.REFUSED)
    assert not {"a-wrong-key", *ANN.values()} & set(str(keyed.scheduler.audit.added).split("'"))


async def test_a_change_at_every_door_that_is_refused_leaves_a_record(keyed: GatewayHarness) -> None:
    status, made, _ = await call(
        keyed, "POST", "/api/v1/keys", json={"user": "vic", "role": "viewer"}, headers=ROOT
    )
    assert status == 201
    key = made["secret"]
    asking = (Permission.CHANGE, Permission.OWNER, Permission.OPERATOR)
    routes = [route for route in ROUTES if route_permission(*route) in asking]
    for method, path in routes:
        filled = re.sub(r"\{[a-z_:]+\}", RUN, path)
        assert await status_of(keyed, method, filled, headers={"X-API-Key": key}) == 403, path
    records = await recorded(keyed)
    words = {"".join(word.title() for word in f"{each.action} {each.kind}".split()) for each in records}
    assert words == {ROUTES[route] for route in routes} | {"ExportAuditRecords"}
    key_id = made["key"]["key_id"]
    assert {(each.user, each.key_id, each.outcome) for each in records} == {("vic", key_id, Outcome.REFUSED)}
    async with grpc.aio.insecure_channel(keyed.grpc) as channel:
        runs = scheduler_grpc.SchedulerServiceStub(channel)
        with pytest.raises(grpc.aio.AioRpcError):
            await runs.CancelRun(scheduler_pb2.CancelRunRequest(run_id="r-2"), metadata=(("x-api-key", key),))
    assert (await recorded(keyed))[-1].action == "cancel"


async def test_operators_read_pages_and_a_file_and_others_nothing(keyed: GatewayHarness) -> None:
    for number in range(3):
        await status_of(keyed, "GET", f"/v1/files/file-{number}%E2%80%A8/content", headers=ANN)
    status, page, _ = await call(keyed, "GET", f"{AUDIT}?limit=2&user=ann", headers=ROOT)
    assert (status, [each["object_id"] for each in page["records"]]) == (
        200,
        ["file-2\u2028", "file-1\u2028"],
    )
    cursor = page["next_cursor"]
    _, rest, _ = await call(keyed, "GET", f"{AUDIT}?limit=2&user=ann&cursor={cursor}", headers=ROOT)
    assert ([each["object_id"] for each in rest["records"]], rest["next_cursor"]) == (["file-0\u2028"], None)
    for narrowed, found in (("object_id=file-1\u2028", 1), ("action=sign in", 0), ("outcome=admitted", 3)):
        _, page, _ = await call(keyed, "GET", f"{AUDIT}?user=ann&{narrowed}", headers=ROOT)
        assert len(page["records"]) == found, narrowed
    _, page, _ = await call(keyed, "GET", f"{AUDIT}?since=2999-01-01", headers=ROOT)
    assert page["records"] == []
    async with (
        aiohttp.ClientSession() as session,
        session.get(f"{keyed.http}{AUDIT}/export?user=ann", headers=ROOT) as response,
    ):
        lines = [json.loads(line) for line in (await response.text()).splitlines()]
    assert [line["object_id"] for line in lines] == ["file-2\u2028", "file-1\u2028", "file-0\u2028"]
    for path in (AUDIT, f"{AUDIT}/export"):
        assert await status_of(keyed, "GET", path, headers=ANN) == 403
    assert await status_of(keyed, "GET", f"{AUDIT}?since=0001-01-01T00:00:00%2B14:00", headers=ROOT) == 422
