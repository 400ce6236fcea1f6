"""Unknown keys are counted by address, however they come, and no caller with a known one is locked out."""

from collections.abc import AsyncIterator
from http import HTTPStatus

import aiohttp
import grpc
import pytest

from proctor.v1 import queue_service_pb2 as queue_pb2
from proctor.v1 import queue_service_pb2_grpc as queue_grpc
from services.common.clock import Clock
from services.gateway.auth import request_counts
from services.gateway.auth.request_counts import RequestCounts, WrongKeys
from services.gateway.auth.session_cookies import PLAIN_COOKIE
from services.gateway.http.errors import TooManyWrongKeys
from tests.fakes.gateway.gateway_harness import GatewayHarness, gateway_harness
from tests.fakes.gateway.http_calls import call, session_cookie
from tests.fakes.scheduler.surroundings import SetClock

ALICE = "secret-key-of-alice"
GUESS = "secret-key-of-alicf"
QUEUE = "/api/v1/queue"
LIMIT = 4


class FewCounts(RequestCounts):
    def __init__(self, clock: Clock) -> None:  # noqa: ARG002  # a minute that does not end
        super().__init__(SetClock(), limits={False: LIMIT, True: LIMIT})


@pytest.fixture
async def keyed(monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[GatewayHarness]:
    monkeypatch.setattr(request_counts, "RequestCounts", FewCounts)
    async with gateway_harness(api_keys={"alice": ALICE}) as running:
        yield running


async def at_rest(harness: GatewayHarness, key: str) -> int:
    return (await call(harness, "GET", QUEUE, headers={"Authorization": f"Bearer {key}"}))[0]


async def by_cookie(harness: GatewayHarness, key: str) -> int:
    cookie = await session_cookie(harness, key) if key == ALICE else f"{PLAIN_COOKIE}={key}"
    return (await call(harness, "GET", QUEUE, headers={"Cookie": cookie}))[0]


async def at_sign_in(harness: GatewayHarness, key: str) -> int:
    async with (
        aiohttp.ClientSession() as session,
        session.post(
            f"{harness.http}/sign-in",
            data={"key": key},
            headers={"Origin": harness.http},
            allow_redirects=False,
        ) as answer,
    ):
        return 200 if answer.status == HTTPStatus.SEE_OTHER else answer.status


async def over_grpc(harness: GatewayHarness, key: str) -> int:
    codes = {grpc.StatusCode.UNAUTHENTICATED: 401, grpc.StatusCode.RESOURCE_EXHAUSTED: 429}
    async with grpc.aio.insecure_channel(harness.grpc) as channel:
        stub = queue_grpc.QueueServiceStub(channel)
        request = queue_pb2.GetQueueRequest()
        try:
            await stub.GetQueue(request, metadata=(("x-api-key", key),), timeout=20)
        except grpc.aio.AioRpcError as error:
            return codes[error.code()]
    return 200


WAYS = (at_rest, by_cookie, at_sign_in, over_grpc)


async def test_guesses_count_together_however_they_come_and_ask_the_scheduler_nothing(
    keyed: GatewayHarness,
) -> None:
    assert [await way(keyed, GUESS) for way in WAYS] == [401] * LIMIT
    assert [await way(keyed, GUESS) for way in WAYS] == [429] * LIMIT
    assert keyed.scheduler.queue.requests == {}


async def test_known_key_is_taken_from_an_address_that_guesses(keyed: GatewayHarness) -> None:
    for _ in range(LIMIT):
        assert await at_rest(keyed, GUESS) == 401
    assert await at_rest(keyed, GUESS) == 429
    assert [await way(keyed, ALICE) for way in WAYS] == [200] * LIMIT


def test_addresses_have_their_own_counts_and_a_network_of_ipv6_has_one() -> None:
    counting = WrongKeys(SetClock())

    def refused(address: str) -> bool:
        try:
            counting.count(address)
        except TooManyWrongKeys:
            return True
        return False

    assert not any(refused("2001:db8::1") for _ in range(100))
    assert refused("2001:db8::2")
    assert not refused("2001:db8:0:1::1")
    assert not any(refused("203.0.113.7") for _ in range(100))
    assert refused("::ffff:203.0.113.7")
    assert not refused("203.0.113.8")
    assert not refused("")
