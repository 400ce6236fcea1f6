"""Keys that operators make are taken at every door of every replica, and refused once they end."""

import asyncio
import uuid
from collections.abc import AsyncIterator, Mapping
from contextlib import AsyncExitStack
from datetime import datetime, timedelta
from http import HTTPStatus

import aiohttp
import grpc
import pytest

from proctor.v1 import key_pb2, run_pb2
from proctor.v1 import queue_service_pb2 as queue_pb2
from proctor.v1 import queue_service_pb2_grpc as queue_grpc
from proctor.v1 import scheduler_service_pb2 as scheduler_pb2
from proctor.v1 import scheduler_service_pb2_grpc as scheduler_grpc
from proctor.values.names.user import Role
from proctor.wire.enums import words_of
from services.common.api_keys import Pepper
from services.gateway.auth.key_ring import MAX_AGE_SECONDS
from services.gateway.pages.asset_files import Assets
from services.gateway.settings import GatewaySettings
from services.gateway.wiring import running_gateway
from tests.fakes.callers import CALLER_KEY
from tests.fakes.eventually import eventually
from tests.fakes.gateway.gateway_harness import GatewayHarness, gateway_harness
from tests.fakes.gateway.http_calls import call

# Of another installation.
FOREIGN = Pepper(b"the key of others").new_key(str(uuid.UUID(int=7))).secret
ROOT = {"X-API-Key": "secret-key-of-olga"}
KEYS = "/api/v1/keys"
QUEUE = "/api/v1/queue"
SOCKET = f"/queue/socket?build={Assets.load().digest}"


@pytest.fixture
async def keyed() -> AsyncIterator[GatewayHarness]:
    async with gateway_harness(api_keys={"olga": ROOT["X-API-Key"]}, operators=["olga"]) as running:
        yield running


async def made(harness: GatewayHarness, user: str = "ann", **order: object) -> tuple[str, str]:
    """The id and the text of a new key."""
    status, body, _ = await call(harness, "POST", KEYS, json={"user": user, **order}, headers=ROOT)
    assert status == 201, body
    return body["key"]["key_id"], body["secret"]


async def at_rest(http: str, _: str, key: str) -> bool:
    return await _is_open(f"{http}{QUEUE}", {"Authorization": f"Bearer {key}"})


async def at_page(http: str, _: str, key: str) -> bool:
    return await _is_open(f"{http}/settings", {"X-API-Key": key})


async def _is_open(address: str, headers: Mapping[str, str]) -> bool:
    async with aiohttp.ClientSession() as session, session.get(address, headers=headers) as answer:
        assert answer.status in (200, 401)
        return answer.status == 200


async def at_socket(http: str, _: str, key: str) -> bool:
    headers = {"X-API-Key": key, "Origin": http}
    async with aiohttp.ClientSession() as session:
        try:
            async with session.ws_connect(f"{http}{SOCKET}", headers=headers):
                return True
        except aiohttp.WSServerHandshakeError as error:
            # Forbidden: the key has ended between the look at it and the answer to the handshake.
            if error.status not in (HTTPStatus.UNAUTHORIZED, HTTPStatus.FORBIDDEN):
                raise
            return False


async def over_grpc(_: str, address: str, key: str) -> bool:
    async with grpc.aio.insecure_channel(address) as channel:
        try:
            await queue_grpc.QueueServiceStub(channel).GetQueue(
                queue_pb2.GetQueueRequest(), metadata=(("x-api-key", key),), timeout=20
            )
        except grpc.aio.AioRpcError as error:
            if error.code() is not grpc.StatusCode.UNAUTHENTICATED:
                raise
            return False
        return True


DOORS = (at_rest, at_page, at_socket, over_grpc)


async def doors_open(harness: GatewayHarness, key: str) -> list[bool]:
    return [await door(harness.http, harness.grpc, key) for door in DOORS]


async def test_of_two_keys_each_ends_alone_at_every_door(keyed: GatewayHarness) -> None:
    (first, ann), (_, bob) = await made(keyed, "ann"), await made(keyed, "bob")
    assert await doors_open(keyed, ann) == await doors_open(keyed, bob) == [True] * len(DOORS)
    assert (await call(keyed, "DELETE", f"{KEYS}/{first}", headers=ROOT))[0] == 200

    async def is_refused() -> bool:
        return not any(await doors_open(keyed, ann))

    await eventually(is_refused, "the revoked key is refused at every door")
    assert await doors_open(keyed, bob) == [True] * len(DOORS)


async def test_what_is_no_key_of_this_installation_is_refused_at_every_door(keyed: GatewayHarness) -> None:
    (_, ann), (_, bob) = await made(keyed, "ann"), await made(keyed, "bob")
    mixed = ann[: ann.rindex("_")] + bob[bob.rindex("_") :]
    shortened, prolonged = ann[:-1], ann + "0"
    for key in (FOREIGN, mixed, shortened, prolonged, ann.upper()):
        assert not any(await doors_open(keyed, key)), key


async def test_key_that_is_over_is_refused_at_every_door(keyed: GatewayHarness) -> None:
    key_id, ann = await made(keyed)
    status, body, _ = await call(
        keyed, "POST", f"{KEYS}/{key_id}/rotate", json={"overlap_hours": 0}, headers=ROOT
    )
    assert (status, body["key"]["user"], body["key"]["role"]) == (201, "ann", "runner")

    async def is_refused() -> bool:
        return not any(await doors_open(keyed, ann))

    await eventually(is_refused, "the replaced key is refused")
    assert all(await doors_open(keyed, body["secret"]))


async def test_open_socket_and_watch_end_with_their_key(keyed: GatewayHarness) -> None:
    key_id, ann = await made(keyed)
    keyed.scheduler.put(run_pb2.Run(run_id="7" * 8, state=run_pb2.RUN_STATE_RUNNING))
    async with (
        aiohttp.ClientSession() as session,
        session.ws_connect(
            f"{keyed.http}{SOCKET}", headers={"X-API-Key": ann, "Origin": keyed.http}
        ) as socket,
        grpc.aio.insecure_channel(keyed.grpc) as channel,
    ):
        request = scheduler_pb2.WatchRunRequest(run_id="7" * 8)
        watch = scheduler_grpc.SchedulerServiceStub(channel).WatchRun(request, metadata=(("x-api-key", ann),))
        updates = aiter(watch)
        await anext(updates)
        await call(keyed, "DELETE", f"{KEYS}/{key_id}", headers=ROOT)
        async with asyncio.timeout(30):
            while not socket.closed:
                await socket.receive()
            with pytest.raises(grpc.aio.AioRpcError) as caught:
                await anext(updates)
    assert socket.close_code == aiohttp.WSCloseCode.POLICY_VIOLATION
    assert caught.value.code() is grpc.StatusCode.UNAUTHENTICATED


async def test_other_replica_takes_a_new_key_at_once_and_learns_of_its_end(keyed: GatewayHarness) -> None:
    assert keyed.scheduler_server
    settings = {
        "http_address": "127.0.0.1:0",
        "grpc_address": "127.0.0.1:0",
        "scheduler_address": f"127.0.0.1:{keyed.scheduler_server.port}",
        "results_address": f"127.0.0.1:{keyed.scheduler_server.port}",
        "caller_key": CALLER_KEY,
        "api_keys": {"olga": ROOT["X-API-Key"]},
    }
    async with AsyncExitStack() as opened:
        other = await opened.enter_async_context(running_gateway(GatewaySettings.model_validate(settings)))
        http = f"http://127.0.0.1:{other.http.port}"
        key_id, ann = await made(keyed)
        assert await at_rest(http, "", ann)
        await call(keyed, "DELETE", f"{KEYS}/{key_id}", headers=ROOT)

        async def is_refused() -> bool:
            return not await at_rest(http, "", ann)

        await eventually(is_refused, "the other replica refuses the key")


ROLES = {
    "viewer": (True, False, False, False),
    "runner": (True, True, False, False),
    "maintainer": (True, True, True, False),
    "operator": (True, True, True, True),
}


@pytest.mark.parametrize("role", ROLES)
async def test_role_of_a_key_is_what_it_allows(keyed: GatewayHarness, role: str) -> None:
    _, key = await made(keyed, role=role)
    headers = {"X-API-Key": key}
    assert (await call(keyed, "GET", "/api/v1/me", headers=headers))[1]["role"] == role
    order = {"project_id": 1, "suite": "glue", "config": {"provider": "vllm", "model": "starter"}}
    statuses = (
        (await call(keyed, "GET", QUEUE, headers=headers))[0],
        (await call(keyed, "POST", "/api/v1/benchmarking/run", json=order, headers=headers))[0],
        (await call(keyed, "GET", KEYS, headers=headers))[0],
    )
    reads, orders, _, operates = ROLES[role]
    assert statuses == tuple(200 if allowed else 403 for allowed in (reads, orders, operates))


async def test_viewer_changes_not_even_what_was_its_own(keyed: GatewayHarness) -> None:
    _, key = await made(keyed, role="viewer")
    run_id = "661bc60f-9225-438c-a7d0-797db3523a5b"
    keyed.scheduler.put(run_pb2.Run(run_id=run_id, user="ann", state=run_pb2.RUN_STATE_RUNNING))
    status, problem, _ = await call(
        keyed, "POST", f"/api/v1/benchmarking/cancel/{run_id}", headers={"X-API-Key": key}
    )
    assert (status, problem["reason"]) == (403, "PERMISSION_DENIED")
    assert "role viewer, which only reads" in problem["detail"]


async def test_key_is_shown_whole_once(keyed: GatewayHarness) -> None:
    key_id, secret = await made(keyed, note="of a notebook", role="viewer", days=7)
    _, listed, _ = await call(keyed, "GET", KEYS, headers=ROOT)
    [shown] = listed["keys"]
    assert (shown["key_id"], shown["note"], shown["role"], shown["created_by"]) == (
        key_id,
        "of a notebook",
        "viewer",
        "olga",
    )
    assert secret.startswith(shown["prefix"])
    lasts = datetime.fromisoformat(shown["expires_at"]) - datetime.fromisoformat(shown["created_at"])
    assert lasts == timedelta(days=7)
    assert secret.rpartition("_")[2] not in str(listed)


async def test_repeated_request_returns_the_same_key(keyed: GatewayHarness) -> None:
    headers = {**ROOT, "Idempotency-Key": "nightly"}
    first, second = [
        (await call(keyed, "POST", KEYS, json={"user": "ann"}, headers=headers))[1] for _ in range(2)
    ]
    assert first == second
    path = f"{KEYS}/{first['key']['key_id']}/rotate"
    headers["Idempotency-Key"] = "after the night"
    body = {"overlap_hours": 0}
    third, fourth = [(await call(keyed, "POST", path, json=body, headers=headers))[1] for _ in range(2)]
    assert third == fourth
    assert third["secret"] != first["secret"]
    assert len(keyed.scheduler.keys.keys) == 2


async def test_uses_are_reported_once_a_minute(keyed: GatewayHarness) -> None:
    key_id, ann = await made(keyed)
    for _ in range(3):
        assert await at_rest(keyed.http, "", ann)

    async def is_reported() -> bool:
        return key_id in keyed.scheduler.keys.uses

    await eventually(is_reported, "the use of the key is reported")
    asked = keyed.scheduler.keys.asked
    assert await at_rest(keyed.http, "", ann)

    async def is_asked_again() -> bool:
        return keyed.scheduler.keys.asked > asked + 1

    await eventually(is_asked_again, "the gateway has asked twice more")
    assert keyed.scheduler.keys.uses == [key_id]


async def test_gateway_that_hears_nothing_takes_no_stored_key_and_says_so(
    keyed: GatewayHarness, monkeypatch: pytest.MonkeyPatch
) -> None:
    _, ann = await made(keyed)
    assert await at_rest(keyed.http, "", ann)
    await keyed.stop_backends()
    headers = {"X-API-Key": ann}
    # What it heard last still holds for a while.
    assert (await call(keyed, "GET", "/api/v1/me", headers=headers))[0] == 200
    assert MAX_AGE_SECONDS > 1
    monkeypatch.setattr("services.gateway.auth.key_ring.MAX_AGE_SECONDS", 0)
    status, problem, _ = await call(keyed, "GET", "/api/v1/me", headers=headers)
    assert (status, problem["reason"]) == (503, "DEPENDENCY_UNAVAILABLE")
    assert (await call(keyed, "GET", "/api/v1/me", headers=ROOT))[0] == 200


async def test_made_key_proves_its_user_where_no_key_is_asked_for(harness: GatewayHarness) -> None:
    status, body, _ = await call(harness, "POST", KEYS, json={"user": "ann", "role": "viewer"})
    assert status == 201
    me = (await call(harness, "GET", "/api/v1/me", headers={"X-API-Key": body["secret"]}))[1]
    assert me == {"user": "ann", "role": "viewer", "is_operator": False, "has_key": True}
    assert (await call(harness, "GET", "/api/v1/me", headers={"X-API-Key": FOREIGN}))[0] == 401


def test_words_of_roles_are_those_of_the_contract() -> None:
    assert words_of(key_pb2.Role) == [role.value for role in Role] == list(ROLES)
