"""HTTP and gRPC identify users alike: by the API key where there are keys, else by the given name."""

import json
import uuid
from collections.abc import AsyncIterator

import grpc
import pytest
from pydantic import ValidationError
from structlog.contextvars import merge_contextvars
from structlog.testing import capture_logs

from proctor.client.errors import Refused
from proctor.client.proctor_client import ProctorClient
from proctor.v1 import batch_service_pb2 as batch_pb2
from proctor.v1 import batch_service_pb2_grpc as batch_grpc
from proctor.v1 import dataset_service_pb2 as dataset_pb2
from proctor.v1 import dataset_service_pb2_grpc as dataset_grpc
from proctor.v1 import file_service_pb2 as file_pb2
from proctor.v1 import file_service_pb2_grpc as file_grpc
from proctor.v1 import queue_service_pb2 as queue_pb2
from proctor.v1 import queue_service_pb2_grpc as queue_grpc
from proctor.v1 import run_pb2
from proctor.v1 import scheduler_service_pb2 as scheduler_pb2
from proctor.v1 import scheduler_service_pb2_grpc as scheduler_grpc
from proctor.v1 import suite_service_pb2 as suite_pb2
from proctor.v1 import suite_service_pb2_grpc as suite_grpc
from services.common.api_keys import Pepper
from services.common.clock import SystemClock
from services.common.grpc.caller import caller_of
from services.gateway.auth.identity import Identity
from services.gateway.auth.key_ring import KeyRing
from services.gateway.auth.sessions import Sessions
from services.gateway.auth.settings_keys import SettingsKeys
from services.gateway.http.errors import InvalidUserName
from services.gateway.settings import GatewaySettings
from tests.fakes.gateway.gateway_harness import GatewayHarness, gateway_harness
from tests.fakes.gateway.http_calls import call

API = "/api/v1/benchmarking"
ORDER = {"project_id": 1, "suite": "glue", "config": {"provider": "vllm", "model": "starter"}}
SECRET = "secret-key-of-ann"
KEY = ("authorization", "Bearer secret-key-of-carol")


@pytest.fixture
async def harness() -> AsyncIterator[GatewayHarness]:
    async with gateway_harness(api_keys={"carol": "secret-key-of-carol"}) as running:
        yield running


@pytest.fixture
async def keyless() -> AsyncIterator[GatewayHarness]:
    async with gateway_harness() as running:
        yield running


@pytest.mark.parametrize(
    ("metadata", "user"),
    [
        ((KEY, ("x-proctor-user", "bob")), "bob"),
        ((("x-proctor-user", "bob"),), "bob"),
        ((("x-proctor-user-bin", "Zoë".encode()),), "Zoë"),
        ((), "ann"),
    ],
)
async def test_order_by_grpc_is_of_who_its_metadata_names_where_there_are_no_keys(
    keyless: GatewayHarness, metadata: tuple[tuple[str, str | bytes], ...], user: str
) -> None:
    async with grpc.aio.insecure_channel(keyless.grpc) as channel:
        stub = scheduler_grpc.SchedulerServiceStub(channel)
        order = scheduler_pb2.SubmitRunRequest(order=run_pb2.RunOrder(suite="glue"), user="ann")
        assert (await stub.SubmitRun(order, metadata=metadata)).run.user == user
    counted = user if metadata else "local"
    assert keyless.scheduler.queue.requests == {counted: 1}


async def test_order_with_a_key_is_of_its_holder_whatever_its_body_says(harness: GatewayHarness) -> None:
    async with grpc.aio.insecure_channel(harness.grpc) as channel:
        stub = scheduler_grpc.SchedulerServiceStub(channel)
        order = scheduler_pb2.SubmitRunRequest(order=run_pb2.RunOrder(suite="glue"), user="ann")
        for forged in ((), (("x-proctor-user", "bob"),), (("x-proctor-caller-bin", b"bob"),)):
            assert (await stub.SubmitRun(order, metadata=(KEY, *forged))).run.user == "carol"
    assert harness.scheduler.queue.requests == {"carol": 3}
    assert {caller_of(each.items()).name for each in harness.scheduler.metadata} == {"carol"}


async def test_suite_and_data_set_by_grpc_are_of_who_calls(harness: GatewayHarness) -> None:
    async with grpc.aio.insecure_channel(harness.grpc) as channel:
        suites = suite_grpc.SuiteServiceStub(channel)
        await suites.AddSuite(suite_pb2.AddSuiteRequest(user="ann"), metadata=(KEY,))
        header = dataset_pb2.DatasetHeader(name="rows.jsonl", user="ann")
        end = dataset_pb2.UploadDatasetRequest(end=dataset_pb2.DatasetEnd())
        pieces = [dataset_pb2.UploadDatasetRequest(header=header), end]
        datasets = dataset_grpc.DatasetServiceStub(channel)
        await datasets.UploadDataset(iter(pieces), metadata=(KEY,))
    assert [each.user for each in harness.scheduler.suites.added] == ["carol"]
    assert [each.user for each in harness.scheduler.datasets.headers] == ["carol"]


async def test_file_and_batch_by_grpc_are_of_who_calls_and_can_be_repeated(harness: GatewayHarness) -> None:
    async with grpc.aio.insecure_channel(harness.grpc) as channel:
        header = file_pb2.FileHeader(name="a.jsonl", user="ann", purpose=file_pb2.FILE_PURPOSE_BATCH)
        pieces = [
            file_pb2.UploadFileRequest(header=header),
            file_pb2.UploadFileRequest(content=b"{}"),
            file_pb2.UploadFileRequest(end=file_pb2.FileEnd()),
        ]
        files = file_grpc.FileServiceStub(channel)
        file = (await files.UploadFile(iter(pieces), metadata=(KEY,))).file
        batches = batch_grpc.BatchServiceStub(channel)
        for given in ("", "", str(uuid.UUID(int=7))):
            order = batch_pb2.CreateBatchRequest(input_file_id=file.file_id, user="ann", request_id=given)
            assert (await batches.CreateBatch(order, metadata=(KEY,))).batch.user == "carol"
        read = files.ReadFile(file_pb2.ReadFileRequest(file_id=file.file_id, first_byte=1), metadata=(KEY,))
        assert b"".join([piece.content async for piece in read]) == b"}"
    [uploaded] = harness.scheduler.files.headers
    assert (uploaded.user, len(uploaded.request_id)) == ("carol", 36)
    ids = [created.request_id for created in harness.scheduler.batches.created]
    assert len(set(ids)) == 3
    assert (len(ids[0]), ids[2]) == (36, str(uuid.UUID(int=7)))


@pytest.mark.parametrize("name", ["Zoë", "日本"])
async def test_name_of_any_letters_is_the_same_over_http_and_grpc(keyless: GatewayHarness, name: str) -> None:
    assert (await call(keyless, "POST", f"{API}/run", json=ORDER, headers={"X-Proctor-User": name}))[0] == 200
    async with ProctorClient(keyless.grpc, user=name) as client:
        await client.runs.SubmitRun(scheduler_pb2.SubmitRunRequest(order=run_pb2.RunOrder(suite="glue")))
    assert [request.user for request in keyless.scheduler.submitted] == [name, name]
    assert keyless.scheduler.queue.requests == {name: 2}


@pytest.mark.parametrize("name", ["*", " ", "a" * 129, "a\u202eb", "\x1b[31mroot"])
async def test_name_that_is_none_is_refused_over_grpc(keyless: GatewayHarness, name: str) -> None:
    async with ProctorClient(keyless.grpc, user=name) as client:
        with pytest.raises(Refused, match="1 to 128 printable characters"):
            await client.runs.ListSuites(scheduler_pb2.ListSuitesRequest())


def test_name_that_is_no_utf8_is_refused() -> None:
    clock, pepper = SystemClock(), Pepper(b"any")
    settings, ring = SettingsKeys({}, pepper=pepper), KeyRing(clock, pepper)
    identity = Identity(settings=settings, ring=ring, sessions=Sessions(settings, ring, pepper, clock))
    with pytest.raises(InvalidUserName, match="of UTF-8"):
        identity.caller_of({"x-proctor-user": b"Zo\xeb".decode("latin-1")})


async def test_limits_can_be_raised_by_an_operator_who_has_made_too_many_requests(
    keyless: GatewayHarness,
) -> None:
    keyless.scheduler.queue.max_requests = 0
    async with grpc.aio.insecure_channel(keyless.grpc) as channel:
        stub = queue_grpc.QueueServiceStub(channel)
        with pytest.raises(grpc.aio.AioRpcError, match="requests of this minute"):
            await stub.GetQueue(queue_pb2.GetQueueRequest())
        wanted = queue_pb2.QueueLimits(max_requests_per_minute=7)
        changed = await stub.SetLimits(queue_pb2.SetLimitsRequest(limits=wanted))
    assert changed.limits.max_requests_per_minute == 7


@pytest.mark.parametrize(
    ("path", "expected"),
    [
        ("SchedulerService/PauseRun", "PauseRunRequest"),
        ("SchedulerService/WatchRun", "WatchRunRequest"),
        ("QueueService/GetQueue", "GetQueueRequest"),
        ("QueueService/SetLimits", "SetLimitsRequest"),
    ],
)
async def test_request_that_is_none_is_refused_in_a_sentence(
    keyless: GatewayHarness, path: str, expected: str
) -> None:
    async with grpc.aio.insecure_channel(keyless.grpc) as channel:
        with pytest.raises(
            grpc.aio.AioRpcError, match=f"The request is not of the type {expected}"
        ) as caught:
            async for _ in _answers(channel, path):
                pass
    assert caught.value.code() is grpc.StatusCode.INVALID_ARGUMENT


async def _answers(channel: grpc.aio.Channel, path: str) -> AsyncIterator[bytes]:
    if path.endswith("WatchRun"):
        watch: grpc.aio.UnaryStreamMultiCallable[bytes, bytes] = channel.unary_stream(f"/proctor.v1.{path}")
        async for answer in watch(b"\xff"):
            yield answer
    else:
        ask: grpc.aio.UnaryUnaryMultiCallable[bytes, bytes] = channel.unary_unary(f"/proctor.v1.{path}")
        yield await ask(b"\xff")


@pytest.mark.parametrize(
    "keys",
    [
        {"ann": ""},
        {"ann": SECRET[:15]},
        {"": SECRET},
        {"*": SECRET},
        {"ann": SECRET + " "},
        {"ann": SECRET[:8] + "\t" + SECRET[8:]},
        {"ann": 8 * "abcde"},
        {"ann": SECRET, "bob": SECRET},
        {"ann": 16 * "\u00e9"},
    ],
)
def test_keys_that_would_admit_any_caller_or_none_are_refused(
    keys: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PROCTOR_GATEWAY_API_KEYS", json.dumps(keys))
    with pytest.raises(ValidationError, match="api_keys"):
        GatewaySettings()


async def test_a_key_may_have_spaces_between_its_characters(monkeypatch: pytest.MonkeyPatch) -> None:
    key = "~ four words of carol!"
    monkeypatch.setenv("PROCTOR_GATEWAY_API_KEYS", json.dumps({"carol": key}))
    given = GatewaySettings().api_keys["carol"].get_secret_value()
    async with gateway_harness(api_keys={"carol": given}) as running:
        for headers in ({"X-API-Key": key}, {"Authorization": f"Bearer {key}"}):
            status, _, _ = await call(running, "GET", "/api/v1/queue", headers=headers)
            assert status == 200


@pytest.mark.parametrize("field", ["http_address", "grpc_address"])
def test_gateway_serves_other_machines_only_with_keys_or_when_an_operator_says_so(field: str) -> None:
    everywhere = {field: "0.0.0.0:8080"}
    with pytest.raises(ValidationError, match="reached from other machines"):
        GatewaySettings.model_validate(everywhere)
    GatewaySettings.model_validate({**everywhere, "api_keys": {"carol": "secret-key-of-carol"}})
    GatewaySettings.model_validate({**everywhere, "allow_anonymous": True})


async def test_log_of_a_grpc_call_names_its_user_and_keys_stay_in_the_gateway(
    harness: GatewayHarness,
) -> None:
    with capture_logs(processors=[merge_contextvars]) as lines:
        async with grpc.aio.insecure_channel(harness.grpc) as channel:
            stub = queue_grpc.QueueServiceStub(channel)
            metadata = (KEY, ("x-proctor-user", "bob"), ("x-request-id", "r-1"))
            await stub.GetQueue(queue_pb2.GetQueueRequest(page_size=1), metadata=metadata)
    [line] = [line for line in lines if line["event"] == "grpc request"]
    assert (line["user"], line["method"]) == ("carol", "/proctor.v1.QueueService/GetQueue")
    assert line["peer"].startswith("ipv4:127.0.0.1")
    received = {key for key, _ in harness.scheduler.queue.metadata}
    assert "x-request-id" in received
    assert not received & {"authorization", "x-proctor-user"}
