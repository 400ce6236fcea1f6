"""Keys and ended sessions in Postgres: what operators see of them, and what gateways hear of them."""

from collections.abc import AsyncIterator, Sequence
from dataclasses import replace
from datetime import UTC, timedelta

import asyncpg
import grpc
import pytest
import pytest_asyncio
from google.protobuf.duration_pb2 import Duration

from proctor.v1 import access_service_pb2 as access_pb2
from proctor.v1 import access_service_pb2_grpc as access_grpc
from proctor.v1 import key_pb2, key_service_pb2
from proctor.v1 import key_service_pb2_grpc as key_grpc
from proctor.values.names.user import Caller, Role
from services.common.clock import SystemClock
from services.common.grpc.caller import caller_metadata
from services.common.grpc.client import open_channel
from services.common.postgres import PostgresSession, connect_pool
from services.scheduler.audit.audit_record import Author
from services.scheduler.keys import grpc_api, postgres
from services.scheduler.keys.api_key import Replaced
from services.scheduler.keys.delete_old_keys import KEPT, DeleteOldKeys
from services.scheduler.keys.errors import KeyEnded
from services.scheduler.keys.postgres import PostgresKeys
from services.scheduler.postgres import QUERIES, SCHEMA
from tests.fakes.callers import GATEWAY, OPERATOR_METADATA
from tests.fakes.scheduler.batch_harness import BatchHarness, batch_harness
from tests.integration.scheduler.audit.test_changes import changes

pytestmark = pytest.mark.asyncio(loop_scope="module")


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def harness(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[BatchHarness]:
    async with batch_harness(tmp_path_factory.mktemp("scheduler")) as opened:
        yield opened


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def channel(harness: BatchHarness) -> AsyncIterator[grpc.aio.Channel]:
    async with open_channel(harness.address, signer=GATEWAY) as opened:
        yield opened


class Keys:
    """The two services, called by an operator and by a gateway."""

    def __init__(self, channel: grpc.aio.Channel) -> None:
        self.keys: key_grpc.KeyServiceAsyncStub = key_grpc.KeyServiceStub(channel)
        self.access: access_grpc.AccessServiceAsyncStub = access_grpc.AccessServiceStub(channel)

    async def create(self, user: str, **fields: object) -> key_service_pb2.CreateKeyResponse:
        request = key_service_pb2.CreateKeyRequest(user=user, **fields)  # type: ignore[arg-type]  # its fields
        return await self.keys.CreateKey(request, metadata=OPERATOR_METADATA)

    async def rotate(
        self, key_id: str, hours: int | None = None, request_id: str = ""
    ) -> key_service_pb2.RotateKeyResponse:
        request = key_service_pb2.RotateKeyRequest(key_id=key_id, overlap_hours=hours, request_id=request_id)
        return await self.keys.RotateKey(request, metadata=OPERATOR_METADATA)

    async def revoke(self, key_id: str) -> key_pb2.ApiKey:
        request = key_service_pb2.RevokeKeyRequest(key_id=key_id)
        return (await self.keys.RevokeKey(request, metadata=OPERATOR_METADATA)).key

    async def heard(self, version: int = 0, used: Sequence[str] = ()) -> access_pb2.ListAccessChangesResponse:
        request = access_pb2.ListAccessChangesRequest(version=version, used_key_ids=used)
        return await self.access.ListAccessChanges(request)

    async def listed(self, user: str) -> list[key_pb2.ApiKey]:
        """All pages of one key each."""
        found: list[key_pb2.ApiKey] = []
        token = ""
        while True:
            request = key_service_pb2.ListKeysRequest(page_size=1, page_token=token, user=user)
            page = await self.keys.ListKeys(request, metadata=OPERATOR_METADATA)
            found += page.keys
            token = page.next_page_token
            if not token:
                return found


@pytest.fixture
def keys(channel: grpc.aio.Channel) -> Keys:
    return Keys(channel)


async def test_user_has_several_keys_and_the_table_holds_none_of_them(
    harness: BatchHarness, keys: Keys
) -> None:
    first = await keys.create("ann", role=key_pb2.ROLE_VIEWER, note="of a notebook")
    second = await keys.create("ann")
    assert [key.key_id for key in await keys.listed("ann")] == [second.key.key_id, first.key.key_id]
    assert (first.key.role, second.key.role) == (key_pb2.ROLE_VIEWER, key_pb2.ROLE_RUNNER)
    connection = await asyncpg.connect(harness.postgres, server_settings={"search_path": SCHEMA})
    try:
        rows = str(await connection.fetch("SELECT * FROM api_keys"))
    finally:
        await connection.close()
    assert "of a notebook" in rows
    assert first.secret.rpartition("_")[2] not in rows


async def test_gateway_hears_of_each_change_once(harness: BatchHarness, keys: Keys) -> None:
    before = (await keys.heard()).version
    made = await keys.create("bob", days=7)
    heard = await keys.heard(before)
    [known] = heard.keys
    assert (known.key_id, known.user, known.role) == (made.key.key_id, "bob", key_pb2.ROLE_RUNNER)
    assert timedelta(days=6) < known.ends_in.ToTimedelta() <= timedelta(days=7)
    assert not (await keys.heard(heard.version)).keys

    replaced = await keys.rotate(made.key.key_id, hours=1)
    heard = await keys.heard(heard.version)
    ends = {known.key_id: known.ends_in.ToTimedelta() for known in heard.keys}
    assert timedelta(0) < ends[made.key.key_id] <= timedelta(hours=1)
    assert ends[replaced.key.key_id] > timedelta(days=80)

    await keys.revoke(replaced.key.key_id)
    [known] = (await keys.heard(heard.version)).keys
    assert (known.key_id, known.ends_in) == (replaced.key.key_id, Duration())
    of_first = [each[1] for each in await changes(harness, made.key.key_id)]
    of_second = [each[1] for each in await changes(harness, replaced.key.key_id)]
    assert (of_first, of_second) == (["rotate", "create"], ["revoke"])


async def test_many_changes_come_in_pages_and_a_version_of_another_database_begins_anew(
    keys: Keys, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = {(await keys.create("cid")).key.key_id for _ in range(3)}
    monkeypatch.setattr(grpc_api, "_CHANGES", 2)
    found: list[str] = []
    heard = access_pb2.ListAccessChangesResponse(has_more=True)
    while heard.has_more:
        heard = await keys.heard(heard.version)
        assert len(heard.keys) <= 2
        found += [known.key_id for known in heard.keys]
    assert made <= set(found)
    assert len(found) == len(set(found))
    assert (await keys.heard(heard.version + 1)).is_unknown_version


async def test_use_is_noted_to_the_minute(keys: Keys) -> None:
    key_id = (await keys.create("dan")).key.key_id
    assert not (await keys.listed("dan"))[0].HasField("last_used_at")
    await keys.heard(used=[key_id, "unknown"])
    [first] = await keys.listed("dan")
    await keys.heard(used=[key_id])
    [second] = await keys.listed("dan")
    assert first.last_used_at.seconds
    assert first.last_used_at == second.last_used_at


async def test_repeated_request_makes_one_key_and_one_change(harness: BatchHarness, keys: Keys) -> None:
    request_id = "661bc60f-9225-438c-a7d0-797db3523a5b"
    first, second = [await keys.create("ida", request_id=request_id) for _ in range(2)]
    assert first == second
    assert len(await keys.listed("ida")) == 1
    assert len(await changes(harness, first.key.key_id)) == 1


async def test_request_id_that_is_used_again_answers_with_no_key_of_another_order(keys: Keys) -> None:
    request_id = "a61bc60f-9225-438c-a7d0-797db3523a5b"
    first = await keys.create("ivo", request_id=request_id)
    for user, role in (("ivy", key_pb2.ROLE_RUNNER), ("ivo", key_pb2.ROLE_VIEWER)):
        with pytest.raises(grpc.aio.AioRpcError, match=f"has made another key, {first.key.key_id}"):
            await keys.create(user, role=role, request_id=request_id)
    # A key that is to be replaced is replaced, whatever else the id has made.
    second = await keys.create("ivo")
    made = [await keys.rotate(each.key.key_id, 0, request_id) for each in (first, second, second)]
    assert made[1] == made[2]
    assert len({first.secret, second.secret, *(each.secret for each in made)}) == 4
    latest = await keys.listed("ivo")
    assert [key.key_id for key in latest[:2]] == [made[1].key.key_id, made[0].key.key_id]
    assert all(key.expires_at.seconds < latest[0].created_at.seconds + 5 for key in latest[2:])


async def test_ended_session_is_heard_of(keys: Keys) -> None:
    before = (await keys.heard()).version
    hour = Duration(seconds=3600)
    for _ in range(2):
        await keys.access.EndSession(access_pb2.EndSessionRequest(session_id="s-1", ends_in=hour))
    [ended] = (await keys.heard(before)).sessions
    assert ended.session_id == "s-1"
    assert timedelta(minutes=50) < ended.ends_in.ToTimedelta() <= timedelta(hours=1)


@pytest.mark.parametrize("role", [Role.VIEWER, Role.RUNNER, Role.MAINTAINER])
async def test_service_itself_refuses_who_is_no_operator(keys: Keys, role: Role) -> None:
    metadata = caller_metadata(Caller("eve", role))
    for call in (
        keys.keys.CreateKey(key_service_pb2.CreateKeyRequest(user="eve"), metadata=metadata),
        keys.keys.ListKeys(key_service_pb2.ListKeysRequest(), metadata=metadata),
        keys.keys.RevokeKey(key_service_pb2.RevokeKeyRequest(key_id="x"), metadata=metadata),
    ):
        with pytest.raises(grpc.aio.AioRpcError, match="Only operators"):
            await call


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"days": -1}, "days is -1"),
        ({"days": 1826}, "1 to 1825"),
        ({"role": 9}, "role must be one of"),
        ({"note": "x" * 201}, "more than 200"),
        ({"note": "\x1b[31m"}, "control character"),
    ],
)
async def test_key_that_cannot_be_is_refused(keys: Keys, fields: dict[str, object], message: str) -> None:
    with pytest.raises(grpc.aio.AioRpcError, match=message):
        await keys.create("ann", **fields)


@pytest.mark.parametrize("user", ["", "*", " ann", "a\u202eb"])
async def test_key_of_nobody_is_refused(keys: Keys, user: str) -> None:
    with pytest.raises(grpc.aio.AioRpcError, match="user is"):
        await keys.create(user)


async def test_key_that_ended_is_not_replaced_and_an_unknown_one_not_found(keys: Keys) -> None:
    key_id = (await keys.create("fay")).key.key_id
    first = await keys.revoke(key_id)
    assert (await keys.revoke(key_id)).revoked_at == first.revoked_at
    with pytest.raises(grpc.aio.AioRpcError, match="was revoked or is over"):
        await keys.rotate(key_id)
    with pytest.raises(grpc.aio.AioRpcError) as caught:
        await keys.revoke("0" * 16)
    assert caught.value.code() is grpc.StatusCode.NOT_FOUND


async def test_key_that_is_revoked_while_it_is_replaced_has_no_successor(
    harness: BatchHarness, keys: Keys
) -> None:
    key_id = (await keys.create("ian")).key.key_id
    async with await connect_pool(harness.postgres, schema=SCHEMA) as pool:
        stored = PostgresKeys(PostgresSession(pool, QUERIES))
        found = await stored.find(key_id)
        assert found
        # Between what a rotation reads and what it stores.
        await keys.revoke(key_id)
        now = SystemClock().now()
        successor = replace(found, key_id="f" * 16)
        with pytest.raises(KeyEnded):
            await stored.add(successor, b"c" * 32, Author("olga", now), replaced=Replaced(key_id, now))
    assert [key.key_id for key in await keys.listed("ian")] == [key_id]


async def test_keys_are_bounded_and_those_that_ended_do_not_count(
    keys: Keys, monkeypatch: pytest.MonkeyPatch
) -> None:
    key_id = (await keys.create("gus")).key.key_id
    now = SystemClock().now()
    taken = [
        key
        for key in await keys.listed("")
        if not key.HasField("revoked_at") and key.expires_at.ToDatetime(UTC) > now
    ]
    monkeypatch.setattr(postgres, "MAX_KEYS", len(taken))
    with pytest.raises(grpc.aio.AioRpcError, match="keys are taken already"):
        await keys.create("gus")
    await keys.revoke(key_id)
    await keys.create("gus")


async def test_old_keys_and_sessions_are_deleted(harness: BatchHarness, keys: Keys) -> None:
    kept = (await keys.create("hal")).key.key_id
    old = (await keys.create("hal")).key.key_id
    await keys.revoke(old)
    await keys.access.EndSession(access_pb2.EndSessionRequest(session_id="s-2", ends_in=Duration()))
    await harness.execute(
        "UPDATE api_keys SET revoked_at = revoked_at - $2::interval WHERE key_id = $1", old, KEPT
    )
    async with await connect_pool(harness.postgres, schema=SCHEMA) as pool:
        await DeleteOldKeys(PostgresKeys(PostgresSession(pool, QUERIES)), SystemClock()).delete()
    assert [key.key_id for key in await keys.listed("hal")] == [kept]
    assert await harness.count("SELECT count(*) FROM ended_sessions WHERE session_id = 's-2'") == 0
