"""The public gRPC endpoint passes calls on unchanged: answers, streams, errors, deadlines, cancellation."""

from collections.abc import AsyncIterator
from typing import Any

import grpc
import pytest
from grpc_reflection.v1alpha import reflection_pb2

from proctor.client.errors import NotFound, Refused, Unreachable
from proctor.client.proctor_client import ProctorClient, Reconnect
from proctor.v1 import results_service_pb2 as results_pb2
from proctor.v1 import run_pb2
from proctor.v1 import scheduler_service_pb2 as scheduler_pb2
from proctor.v1 import scheduler_service_pb2_grpc as scheduler_grpc
from services.common import traces
from services.common.errors import ErrorKind
from tests.fakes.eventually import eventually
from tests.fakes.gateway.backend_services import refused
from tests.fakes.gateway.gateway_harness import GatewayHarness, gateway_harness


@pytest.fixture
async def harness() -> AsyncIterator[GatewayHarness]:
    async with gateway_harness() as running:
        yield running


@pytest.fixture
async def client(harness: GatewayHarness) -> AsyncIterator[ProctorClient]:
    async with ProctorClient(harness.grpc, user="bob", timeout_seconds=7) as opened:
        yield opened


def pending_run(harness: GatewayHarness, run_id: str = "r1") -> run_pb2.Run:
    run = run_pb2.Run(run_id=run_id, state=run_pb2.RUN_STATE_PENDING)
    harness.scheduler.put(run)
    return run


async def test_order_reaches_the_scheduler_with_user_and_request_id(
    harness: GatewayHarness, client: ProctorClient
) -> None:
    submitted = await client.runs.SubmitRun(
        scheduler_pb2.SubmitRunRequest(order=run_pb2.RunOrder(suite="glue", model="vllm/starter"))
    )
    (request,) = harness.scheduler.submitted
    assert submitted.run.order.suite == "glue"
    assert request.user == "bob"
    assert len(request.request_id) == 36


async def test_an_order_is_estimated_and_not_stored(harness: GatewayHarness, client: ProctorClient) -> None:
    harness.scheduler.estimated_seconds, harness.scheduler.estimated_cost = 90.0, 0.25
    order = run_pb2.RunOrder(suite="glue", model="vllm/starter")
    estimate = await client.runs.EstimateRun(scheduler_pb2.EstimateRunRequest(order=order))
    assert (estimate.estimated_seconds, estimate.estimated_cost) == (90.0, 0.25)
    assert harness.scheduler.estimated == [scheduler_pb2.EstimateRunRequest(order=order, user="bob")]
    assert harness.scheduler.submitted == []


async def test_order_without_request_id_is_repeated_under_one(harness: GatewayHarness) -> None:
    harness.scheduler.answers_to_lose = 1
    async with grpc.aio.insecure_channel(harness.grpc) as channel:
        stub = scheduler_grpc.SchedulerServiceStub(channel)
        await stub.SubmitRun(scheduler_pb2.SubmitRunRequest(order=run_pb2.RunOrder(suite="glue"), user="bob"))
    first, again = harness.scheduler.submitted
    assert first == again
    assert (first.user, len(first.request_id)) == ("bob", 36)


async def test_order_that_is_none_is_refused_in_a_sentence(harness: GatewayHarness) -> None:
    async with grpc.aio.insecure_channel(harness.grpc) as channel:
        submit: grpc.aio.UnaryUnaryMultiCallable[bytes, bytes] = channel.unary_unary(
            "/proctor.v1.SchedulerService/SubmitRun"
        )
        with pytest.raises(
            grpc.aio.AioRpcError, match="The request is not of the type SubmitRunRequest"
        ) as caught:
            await submit(b"\xff")
    assert caught.value.code() is grpc.StatusCode.INVALID_ARGUMENT


async def test_cancel_and_retry_whose_answer_was_lost_are_not_sent_again(
    harness: GatewayHarness, client: ProctorClient
) -> None:
    pending_run(harness)
    harness.scheduler.answers_to_lose = 1
    with pytest.raises(Unreachable, match="scheduler does not answer"):
        await client.runs.CancelRun(scheduler_pb2.CancelRunRequest(run_id="r1"))
    assert (await client.run("r1")).state == run_pb2.RUN_STATE_CANCELLED
    harness.scheduler.answers_to_lose = 1
    with pytest.raises(Unreachable, match="scheduler does not answer"):
        await client.runs.RetryRun(scheduler_pb2.RetryRunRequest(run_id="r1"))
    assert (await client.run("r1")).epoch == 1


async def test_refusal_keeps_its_reason_sentence_and_facts(
    harness: GatewayHarness, client: ProctorClient
) -> None:
    facts = {"suite": "glu", "supported": "glue, starter"}
    harness.scheduler.refusal = refused(ErrorKind.INVALID, "UNKNOWN_SUITE", "There is no suite glu.", **facts)
    with pytest.raises(Refused) as caught:
        await client.runs.SubmitRun(scheduler_pb2.SubmitRunRequest(order=run_pb2.RunOrder(suite="glu")))
    error = caught.value
    assert (error.reason, error.message, error.facts) == ("UNKNOWN_SUITE", "There is no suite glu.", facts)


async def test_refusals_of_results_and_of_streams_keep_theirs_too(client: ProctorClient) -> None:
    with pytest.raises(NotFound, match="Run r9 not found"):
        await client.summary("r9")
    with pytest.raises(NotFound, match="Run r9 not found"):
        await anext(client.watch_run("r9"))


async def test_results_answer_through_the_same_proxy(client: ProctorClient) -> None:
    page = await client.outcomes.ListOutcomes(results_pb2.ListOutcomesRequest(page_token="p1"))
    assert page.next_page_token == "after p1"


async def test_deadline_and_metadata_of_the_caller_travel_on(harness: GatewayHarness) -> None:
    pending_run(harness)
    async with grpc.aio.insecure_channel(harness.grpc) as channel:
        stub = scheduler_grpc.SchedulerServiceStub(channel)
        request = scheduler_pb2.GetRunRequest(run_id="r1")
        await stub.GetRun(request, timeout=7, metadata=(("traceparent", "00-abc"),))
        await stub.GetRun(request)
    first, second = harness.scheduler.deadlines
    assert first is not None
    assert 5 < first < 8  # gRPC rounds what it sends
    assert second is None
    assert harness.scheduler.metadata[0]["traceparent"] == "00-abc"


async def test_gateway_that_traces_is_between_its_caller_and_the_backend() -> None:
    """The context of the caller beside its own would make the backend's span a child of the caller's."""
    trace, caller = "0af7651916cd43dd8448eb211c80319c", "b7ad6b7169203331"
    # Nothing listens there: what is exported is dropped.
    traces.start_traces("gateway", "http://127.0.0.1:1", 1.0, begins_traces=True)
    try:
        async with gateway_harness() as harness, grpc.aio.insecure_channel(harness.grpc) as channel:
            pending_run(harness)
            stub = scheduler_grpc.SchedulerServiceStub(channel)
            metadata = (("traceparent", f"00-{trace}-{caller}-01"),)
            await stub.GetRun(scheduler_pb2.GetRunRequest(run_id="r1"), metadata=metadata)
            [sent] = harness.scheduler.traceparents
    finally:
        traces.stop_traces()
    assert sent.split("-")[1] == trace
    assert sent.split("-")[2] != caller


async def test_stream_sends_each_change_and_ends_with_the_run(
    harness: GatewayHarness, client: ProctorClient
) -> None:
    run = pending_run(harness)
    seen = []
    async for snapshot in client.watch_run("r1"):
        seen.append(snapshot.state)
        run.state = run_pb2.RUN_STATE_COMPLETED if snapshot.state == run_pb2.RUN_STATE_RUNNING else run.state
        run.state = run_pb2.RUN_STATE_RUNNING if snapshot.state == run_pb2.RUN_STATE_PENDING else run.state
        harness.scheduler.put(run)
    assert seen == [run_pb2.RUN_STATE_PENDING, run_pb2.RUN_STATE_RUNNING, run_pb2.RUN_STATE_COMPLETED]


async def test_watcher_who_leaves_is_noticed_by_the_scheduler(
    harness: GatewayHarness, client: ProctorClient
) -> None:
    pending_run(harness)
    watch = client.watch_run("r1")
    await anext(watch)
    assert harness.scheduler.watches_open == 1
    await watch.aclose()
    await eventually(lambda: harness.scheduler.watches_open == 0, "the watch is closed behind the gateway")


async def test_backend_that_is_away_is_named(harness: GatewayHarness, client: ProctorClient) -> None:
    await harness.stop_backends()
    with pytest.raises(Unreachable, match="scheduler does not answer") as caught:
        await client.runs.ListSuites(scheduler_pb2.ListSuitesRequest())
    assert caught.value.reason == "DEPENDENCY_UNAVAILABLE"


async def test_gateway_that_is_not_there_is_said_so() -> None:
    async with ProctorClient("127.0.0.1:1") as client:
        with pytest.raises(Unreachable, match=r"No gateway answers at 127\.0\.0\.1:1"):
            await client.runs.ListSuites(scheduler_pb2.ListSuitesRequest())
        with pytest.raises(Unreachable):
            await anext(client.watch_run("r1", Reconnect(give_up_seconds=0.2, pause_seconds=0.05)))


async def test_reflection_lists_the_public_services_only() -> None:
    async with (
        gateway_harness(grpc_reflection=True) as described,
        grpc.aio.insecure_channel(described.grpc) as channel,
    ):
        ask: grpc.aio.StreamStreamMultiCallable[Any, Any] = channel.stream_stream(
            "/grpc.reflection.v1alpha.ServerReflection/ServerReflectionInfo",
            request_serializer=reflection_pb2.ServerReflectionRequest.SerializeToString,
            response_deserializer=reflection_pb2.ServerReflectionResponse.FromString,
        )
        call = ask(iter([reflection_pb2.ServerReflectionRequest(list_services="")]))
        answer = await anext(aiter(call))
    names = {service.name for service in answer.list_services_response.service}
    ours = {name for name in names if name.startswith("proctor.")}
    topics = (
        "Scheduler",
        "Suite",
        "Queue",
        "Change",
        "Audit",
        "Dataset",
        "Results",
        "Comparison",
        "Leaderboard",
        "Rescore",
        "Export",
        "Import",
        "Answer",
        "Annotation",
        "File",
        "Batch",
        "Storage",
        "Rollout",
        "Artifact",
        "Key",
        "Project",
        "Schedule",
        "Notice",
    )
    assert ours == {f"proctor.v1.{topic}Service" for topic in topics}


async def test_health_says_serving_only_while_the_backends_answer(harness: GatewayHarness) -> None:
    serving, not_serving = b"\x08\x01", b"\x08\x02"
    async with grpc.aio.insecure_channel(harness.grpc) as channel:
        check: grpc.aio.UnaryUnaryMultiCallable[bytes, bytes] = channel.unary_unary(
            "/grpc.health.v1.Health/Check"
        )

        async def is_not_serving() -> bool:
            return await check(b"") == not_serving

        assert await check(b"") == serving
        await harness.stop_backends()
        await eventually(is_not_serving, "health says NOT_SERVING")


async def test_calls_are_counted_by_name_and_refused_over_the_limit(harness: GatewayHarness) -> None:
    pending_run(harness)
    harness.scheduler.queue.max_requests = 2
    async with ProctorClient(harness.grpc, user="bob") as bob:
        await bob.run("r1")
        await anext(bob.watch_run("r1"))
        with pytest.raises(Refused, match="2 requests of this minute") as raised:
            await bob.runs.ListSuites(scheduler_pb2.ListSuitesRequest())
    facts = {"user": "bob", "limit": "2", "retry_after_seconds": "12"}
    assert (raised.value.reason, raised.value.facts) == ("TOO_MANY_REQUESTS", facts)
    assert isinstance(raised.value.__cause__, grpc.aio.AioRpcError)
    assert raised.value.__cause__.code() is grpc.StatusCode.RESOURCE_EXHAUSTED
    async with ProctorClient(harness.grpc) as local:
        assert (await local.runs.ListSuites(scheduler_pb2.ListSuitesRequest())).suites
    assert harness.scheduler.queue.requests == {"bob": 3, "local": 1} == harness.scheduler.queue.reads


async def test_message_above_the_ceiling_is_refused_before_it_is_forwarded(harness: GatewayHarness) -> None:
    async with grpc.aio.insecure_channel(harness.grpc) as channel:
        check: grpc.aio.UnaryUnaryMultiCallable[bytes, bytes] = channel.unary_unary(
            "/proctor.v1.SuiteService/CheckSuite"
        )
        with pytest.raises(grpc.aio.AioRpcError) as raised:
            await check(b"a" * 9 * 1024 * 1024)
    assert raised.value.code() is grpc.StatusCode.RESOURCE_EXHAUSTED
