"""Every operation of HTTP and gRPC has a permission, and callers get what theirs allow on both."""

from collections.abc import AsyncIterator
from importlib import import_module
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import grpc
import pytest
from fastapi import FastAPI
from google.protobuf.descriptor import MethodDescriptor
from pydantic import ValidationError

from proctor.client.errors import NotAllowed
from proctor.client.proctor_client import ProctorClient
from proctor.v1 import queue_service_pb2 as queue_pb2
from proctor.v1 import run_pb2
from proctor.v1 import scheduler_service_pb2 as scheduler_pb2
from proctor.values.names.user import Caller, Role
from services.common.grpc.caller import caller_metadata, caller_of
from services.common.grpc.permissions import METHODS, Permission, method_permission
from services.gateway.auth.permissions import ROUTES, route_permission
from services.gateway.auth.request_counts import WrongKeys
from services.gateway.server.app import HttpParts, routed_app
from services.gateway.settings import GatewaySettings
from tests.fakes.gateway.gateway_harness import GatewayHarness, gateway_harness
from tests.fakes.gateway.http_calls import call

PROTOS = Path(__file__).parents[4] / "protos" / "proctor" / "v1"
INTERNAL_SERVICES = {"AccessService", "GateService", "RunRecordService", "RequestCountService"}
LIMITS = "/api/v1/queue/limits"
QUEUE = "/api/v1/queue"
CHANGES = {"max_running_runs": 2}
KEYS = {"alice": "secret-key-of-alice", "olga": "secret-key-of-olga"}
ALICE = {"Authorization": "Bearer secret-key-of-alice"}
OLGA = {"X-API-Key": "secret-key-of-olga"}


@pytest.fixture
async def keyed() -> AsyncIterator[GatewayHarness]:
    async with gateway_harness(api_keys=KEYS, operators=["olga"]) as running:
        yield running


def grpc_methods() -> list[MethodDescriptor]:
    files = [import_module(f"proctor.v1.{each.stem}_pb2") for each in PROTOS.glob("*_service.proto")]
    services = [service for file in files for service in file.DESCRIPTOR.services_by_name.values()]
    return [method for service in services for method in service.methods]


def public_methods() -> list[MethodDescriptor]:
    return [each for each in grpc_methods() if each.containing_service.name not in INTERNAL_SERVICES]


@pytest.fixture
def app() -> FastAPI:
    parts: Any = SimpleNamespace(
        assets=None, html=None, live_runs=None, live_views=None, identity=None, proxies=None
    )
    return routed_app(HttpParts(*[parts] * 10))


def test_every_public_grpc_method_has_a_permission_and_no_internal_one_has() -> None:
    names = [method.name for method in public_methods()]
    assert len(names) == len(set(names))
    assert set(names) == set(METHODS)
    internal = [each for each in grpc_methods() if each.containing_service.name in INTERNAL_SERVICES]
    assert internal
    assert {method_permission(each.name) for each in internal} == {Permission.INTERNAL}
    assert Permission.PUBLIC not in METHODS.values()


def test_every_route_has_a_permission_and_every_entry_a_route(app: FastAPI) -> None:
    routes = {
        (method, getattr(route, "path", ""))
        for route in app.routes
        for method in getattr(route, "methods", None) or ["GET"]
        if method != "HEAD"
    }
    assert routes == set(ROUTES)
    assert {each for each in ROUTES.values() if not isinstance(each, Permission)} <= set(METHODS)


def test_operation_without_an_entry_is_internal() -> None:
    assert route_permission("GET", "/api/v1/new") is Permission.INTERNAL
    assert route_permission("DELETE", LIMITS) is Permission.INTERNAL
    assert method_permission("NewCall") is Permission.INTERNAL


def test_what_changes_something_is_no_read_and_needs_a_caller() -> None:
    reads = {route for route in ROUTES if route_permission(*route) is Permission.READ}
    public = {route for route in ROUTES if route_permission(*route) is Permission.PUBLIC}
    # Forms of pages that change nothing but cookies.
    cookies = {("POST", "/theme"), ("POST", "/sign-in"), ("POST", "/sign-out")}
    # They store nothing; their bodies do not fit into an address.
    names = ("compare", "estimate", "gate", "plan-size")
    questions = {("POST", f"/api/v1/benchmarking/{name}") for name in names}
    questions |= {("POST", "/suites/check"), ("POST", "/suites/preview"), ("POST", "/datasets/preview")}
    questions.add(("POST", "/admin/datasets/upload/preview"))
    assert {method for method, _ in (reads | public) - cookies - questions} == {"GET"}
    assert questions <= reads
    assert route_permission("GET", "/compare") is Permission.READ
    changing = (
        "Set",
        "Delete",
        "Cancel",
        "Submit",
        "Upload",
        "Add",
        "Create",
        "Mark",
        "Retry",
        "Pause",
        "Resume",
    )
    assert not {name for name in METHODS if name.startswith(changing) and METHODS[name] is Permission.READ}


async def test_route_without_an_entry_is_refused_to_operators_too(
    keyed: GatewayHarness, monkeypatch: pytest.MonkeyPatch
) -> None:
    await call(keyed, "GET", "/healthz")  # Reads the API description, which is refused afterwards as well.
    monkeypatch.setattr("services.gateway.auth.permissions.ROUTES", {})
    status, problem, _ = await call(keyed, "GET", QUEUE, headers=OLGA)
    assert (status, problem["reason"]) == (403, "PERMISSION_DENIED")


@pytest.mark.parametrize(
    "headers",
    [{}, {"X-Proctor-User": "alice"}, {"X-API-Key": "wrong"}, {"Authorization": "Bearer secret-key-of-alic"}],
)
async def test_rest_without_a_right_key_is_401_everywhere(
    keyed: GatewayHarness, headers: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    # There are more routes than one address may try keys at.
    monkeypatch.setattr(WrongKeys, "count", lambda *_: None)
    for route in (each for each in ROUTES if ROUTES[each] is not Permission.PUBLIC):
        own = {**headers, "Origin": keyed.http}
        status, body, response = await call(keyed, *route, headers=own)
        assert (status, response.headers["WWW-Authenticate"]) == (401, "Bearer"), route
        assert "key-of" not in str(body)
    assert not keyed.scheduler.queue.requests


@pytest.mark.parametrize("path", ["/nothing", "/api/v1/nothing", "/admin/nothing", "/v1/nothing"])
async def test_path_that_leads_nowhere_needs_a_key_too(keyed: GatewayHarness, path: str) -> None:
    assert (await call(keyed, "GET", path))[0] == 401
    assert (await call(keyed, "GET", path, headers=ALICE))[0] == 404


@pytest.mark.parametrize("path", ["/healthz", "/readyz", "/docs", "/openapi.json"])
async def test_health_and_description_need_no_key(keyed: GatewayHarness, path: str) -> None:
    assert (await call(keyed, "HEAD", path))[0] == 200


@pytest.mark.parametrize(
    "metadata",
    [(), (("x-proctor-user", "alice"),), (("x-api-key", "wrong"),), (("authorization", "Bearer x"),)],
)
async def test_grpc_without_a_right_key_is_unauthenticated_everywhere(
    keyed: GatewayHarness, metadata: tuple[tuple[str, str], ...]
) -> None:
    async with grpc.aio.insecure_channel(keyed.grpc) as channel:
        for method in public_methods():
            with pytest.raises(grpc.aio.AioRpcError) as caught:
                await _called(channel, method, metadata)
            assert caught.value.code() is grpc.StatusCode.UNAUTHENTICATED, method.name
    assert not keyed.scheduler.queue.requests


async def _called(
    channel: grpc.aio.Channel, method: MethodDescriptor, metadata: tuple[tuple[str, str], ...]
) -> None:
    path = f"/{method.containing_service.full_name}/{method.name}"
    upload: grpc.aio.StreamUnaryMultiCallable[bytes, bytes] = channel.stream_unary(path)
    download: grpc.aio.UnaryStreamMultiCallable[bytes, bytes] = channel.unary_stream(path)
    plain: grpc.aio.UnaryUnaryMultiCallable[bytes, bytes] = channel.unary_unary(path)
    if method.client_streaming:
        await upload(iter([b""]), metadata=metadata)
    elif method.server_streaming:
        await anext(aiter(download(b"", metadata=metadata)))
    else:
        await plain(b"", metadata=metadata)


async def test_limits_are_changed_by_operators_only(keyed: GatewayHarness) -> None:
    status, problem, _ = await call(keyed, "PATCH", LIMITS, json=CHANGES, headers=ALICE)
    assert (status, problem["reason"]) == (403, "PERMISSION_DENIED")
    assert "alice is none" in problem["detail"]
    assert (await call(keyed, "PATCH", LIMITS, json=CHANGES, headers=OLGA))[0] == 200
    async with ProctorClient(keyed.grpc, api_key=KEYS["alice"], user="olga") as alice:
        assert (await alice.queue.GetLimits(queue_pb2.GetLimitsRequest())).limits.max_running_runs == 2
        with pytest.raises(NotAllowed, match="Only operators"):
            await alice.queue.SetLimits(
                queue_pb2.SetLimitsRequest(limits=queue_pb2.QueueLimits(max_running_runs=3))
            )
    async with ProctorClient(keyed.grpc, api_key=KEYS["olga"]) as olga:
        changed = (
            await olga.queue.SetLimits(
                queue_pb2.SetLimitsRequest(limits=queue_pb2.QueueLimits(max_running_runs=3))
            )
        ).limits
        assert changed.max_running_runs == 3
    assert keyed.scheduler.queue.requests == {"alice": 3, "olga": 2}


async def test_runs_are_closed_again_by_operators_only(keyed: GatewayHarness) -> None:
    run_id = "661bc60f-9225-438c-a7d0-797db3523a5b"
    for path in (f"/api/v1/benchmarking/reclose/{run_id}", f"/runs/{run_id}/reclose"):
        assert (await call(keyed, "POST", path, headers=ALICE))[0] == 403
    assert (await call(keyed, "POST", f"/api/v1/benchmarking/reclose/{run_id}", headers=OLGA))[0] == 200
    assert keyed.results.reclosed == [run_id]


async def test_operator_above_the_limit_may_raise_it_and_others_may_not(keyed: GatewayHarness) -> None:
    keyed.scheduler.queue.max_requests = 0
    assert (await call(keyed, "PATCH", LIMITS, json=CHANGES, headers=OLGA))[0] == 200
    assert (await call(keyed, "PATCH", LIMITS, json=CHANGES, headers=ALICE))[0] == 429
    assert (await call(keyed, "GET", QUEUE, headers=OLGA))[0] == 429


@pytest.mark.parametrize("name", list(KEYS))
async def test_services_learn_the_caller_from_the_gateway_alone(keyed: GatewayHarness, name: str) -> None:
    key = KEYS[name]
    forged: dict[str, str] = {"x-proctor-role": "operator", "x-proctor-user": "olga"}
    role = Role.OPERATOR if name == "olga" else Role.RUNNER
    expected = Caller(name, role=role, address="127.0.0.1")
    await call(keyed, "GET", QUEUE, headers={"X-API-Key": key, **forged})
    assert caller_of(keyed.scheduler.queue.metadata) == expected
    keyed.scheduler.queue.metadata.clear()
    async with grpc.aio.insecure_channel(keyed.grpc) as channel:
        ask: grpc.aio.UnaryUnaryMultiCallable[bytes, bytes] = channel.unary_unary(
            "/proctor.v1.QueueService/GetQueue"
        )
        forged_caller = Caller("olga", Role.OPERATOR, key_id="f" * 16, address="203.0.113.7")
        forgery = caller_metadata(forged_caller)
        await ask(b"", metadata=(("x-api-key", key), *forgery))
    assert caller_of(keyed.scheduler.queue.metadata) == expected


async def test_callers_can_see_who_they_are(keyed: GatewayHarness) -> None:
    shown = [(await call(keyed, "GET", "/api/v1/me", headers=headers))[1] for headers in (ALICE, OLGA)]
    assert shown == [
        {"user": "alice", "role": "runner", "is_operator": False, "has_key": True},
        {"user": "olga", "role": "operator", "is_operator": True, "has_key": True},
    ]


async def test_single_person_without_keys_may_do_everything(harness: GatewayHarness) -> None:
    assert (await call(harness, "PATCH", LIMITS, json=CHANGES))[0] == 200
    assert (await call(harness, "GET", "/api/v1/me"))[1] == {
        "user": "local",
        "role": "operator",
        "is_operator": True,
        "has_key": False,
    }
    async with ProctorClient(harness.grpc, api_key="any") as client:
        await client.runs.SubmitRun(scheduler_pb2.SubmitRunRequest(order=run_pb2.RunOrder(suite="glue")))
        await client.queue.SetLimits(
            queue_pb2.SetLimitsRequest(limits=queue_pb2.QueueLimits(max_running_runs=3))
        )
    assert caller_of(None) == Caller("local", role=Role.RUNNER)


def test_operator_without_a_key_is_no_setting() -> None:
    with pytest.raises(ValidationError, match="operators bob have no key"):
        GatewaySettings.model_validate({"api_keys": KEYS, "operators": ["bob"]})
