"""The queue over a socket: exact bodies, changes of limits, and the request limit."""

import uuid
from collections.abc import AsyncIterator
from typing import Any

import pytest

from proctor.client.errors import InternalError
from proctor.client.proctor_client import ProctorClient
from proctor.v1 import queue_service_pb2 as queue_pb2
from proctor.v1 import run_pb2
from proctor.v1 import scheduler_service_pb2 as scheduler_pb2
from proctor.values.messaging import STREAMS_HEALTH
from tests.fakes.eventually import eventually
from tests.fakes.gateway.gateway_harness import GatewayHarness, gateway_harness
from tests.fakes.gateway.http_calls import call

QUEUE = "/api/v1/queue"
API = "/api/v1/benchmarking"
LIMITS = {
    "max_running_runs": 3,
    "max_pending_runs_per_user": 10,
    "max_requests_per_minute": 100,
    "run_time_limit_seconds": 10800.0,
    "min_run_time_seconds": 60.0,
    "highest_priorities": {"*": "normal"},
    "max_stored_bytes_per_user": 100_000_000_000,
    "max_stored_files_per_user": 10_000,
    "max_stored_rows_per_user": 200_000_000,
    "max_stored_bytes_per_project": 0,
}


@pytest.fixture
async def harness() -> AsyncIterator[GatewayHarness]:
    async with gateway_harness() as running:
        yield running


def pending_run() -> run_pb2.Run:
    run = run_pb2.Run(run_id="r2", user="bob", state=run_pb2.RUN_STATE_PENDING, pool="local")
    run.order.suite, run.order.model, run.order.priority = "glue", "vllm/starter", run_pb2.PRIORITY_LOW
    run.created_at.FromSeconds(1_700_000_000)
    run.wait.position, run.wait.blocked_by = 1, "All 3 slots are busy"
    run.wait.estimated_seconds, run.wait.estimated_low_seconds, run.wait.estimated_high_seconds = 60, 30, 90
    run.progress.phase = "waiting"
    return run


async def test_queue_is_shown_with_runs_workers_users_and_limits(harness: GatewayHarness) -> None:
    shown = queue_pb2.GetQueueResponse(
        pending=[pending_run()], pending_total=7, limits=harness.scheduler.queue.limits
    )
    running = shown.running.add(run_id="r1", user="ann", state=run_pb2.RUN_STATE_RUNNING)
    running.progress.total, running.progress.recorded, running.progress.eta_seconds = 10, 5, 2.5
    worker = shown.workers.add(worker_id="w1", pool="local", engine="vllm", provider="vllm", concurrency=64)
    worker.load.prefix_cache_queries, worker.load.prefix_cache_hits, worker.load.kv_cache_usage = 4, 3, 0.5
    shown.users.add(user="bob", pending=1)
    harness.scheduler.queue.queue = shown
    status, body, _ = await call(harness, "GET", f"{QUEUE}?limit=5")
    assert status == 200
    assert [request.page_size for request in harness.scheduler.queue.asked] == [5]
    assert body["pending"] == [
        {
            "job_id": "r2",
            "name": "",
            "tags": [],
            "user": "bob",
            "model_name": "starter",
            "provider": "vllm",
            "benchmark_suite": "glue",
            "project_id": 0,
            "priority": "low",
            "status": "pending",
            "created_at": "2023-11-14T22:13:20Z",
            "pool": "local",
            "progress": {"completed": 0, "total": 0, "percent": 0.0, "current_step": "waiting"},
            **dict.fromkeys(("project_name", "started_at", "deadline", "samples_per_second", "eta_seconds")),
            "wait": {
                "position": 1,
                "blocked_by": "All 3 slots are busy",
                "estimated_seconds": 60.0,
                "estimated_low_seconds": 30.0,
                "estimated_high_seconds": 90.0,
            },
        }
    ]
    assert (body["pending_total"], body["limits"]) == (7, LIMITS)
    assert (body["running"][0]["progress"]["percent"], body["running"][0]["eta_seconds"]) == (50.0, 2.5)
    assert body["workers"][0]["load"] == {
        "running_requests": 0,
        "waiting_requests": 0,
        "kv_cache_usage": 0.5,
        "prefix_hit_rate": 0.75,
    }
    assert body["users"] == [{"user": "bob", "running": 0, "pending": 1}]


async def test_providers_that_are_asked_are_shown_with_what_they_allow(harness: GatewayHarness) -> None:
    rate = harness.scheduler.queue.queue.rates.add(pools=["remote"], requests_per_second=2.5)
    rate.rate_limited, rate.allowed_requests_per_second = 4, 3
    _, body, _ = await call(harness, "GET", QUEUE)
    assert body["rates"] == [
        {
            "pools": ["remote"],
            "requests_per_second": 2.5,
            "requests_waiting_for_quota": 0,
            "rate_limited": 4,
            "allowed_requests_per_second": 3.0,
            "allowed_tokens_per_second": None,
            "resume_at": None,
        }
    ]


async def test_streams_that_nats_refuses_are_shown_with_its_reason(harness: GatewayHarness) -> None:
    assert (await call(harness, "GET", QUEUE))[1]["refused_streams"] == []
    harness.scheduler.queue.queue.refused_streams.add(name="OUTCOMES", reason="no space left on device")
    _, body, _ = await call(harness, "GET", QUEUE)
    assert body["refused_streams"] == [{"name": "OUTCOMES", "reason": "no space left on device"}]


async def test_disks_that_fill_up_are_shown_with_what_waits(harness: GatewayHarness) -> None:
    assert (await call(harness, "GET", QUEUE))[1]["full_disks"] == []
    disk = {"name": "the disk of Postgres", "used_share": 0.92, "reason": "it is 92% full; new runs wait"}
    harness.scheduler.queue.queue.full_disks.add(**disk)
    assert (await call(harness, "GET", QUEUE))[1]["full_disks"] == [disk]


async def test_a_gateway_is_ready_only_while_nats_takes_messages(harness: GatewayHarness) -> None:
    assert harness.scheduler_server is not None
    expected = {True: (200, "serving"), False: (503, "not serving"), None: (503, "unreachable")}
    for can_be_used, (status, word) in expected.items():
        await harness.scheduler_server.report(STREAMS_HEALTH, can_be_used)
        found, body, _ = await call(harness, "GET", "/readyz")
        assert (found, body["dependencies"]["streams"]) == (status, word)
        # What is stored is read all the same.
        assert (await call(harness, "GET", QUEUE))[0] == 200


async def test_null_takes_a_limit_back_to_the_setting(harness: GatewayHarness) -> None:
    changes = {"max_running_runs": 1, "min_run_time_seconds": 0.5, "highest_priorities": {"ann": "high"}}
    await call(harness, "PATCH", f"{QUEUE}/limits", json=changes)
    back = {"max_running_runs": None, "highest_priorities": None}
    expected = {**LIMITS, "min_run_time_seconds": 0.5}
    assert (await call(harness, "PATCH", f"{QUEUE}/limits", json=back))[:2] == (200, expected)


async def test_storage_of_the_caller_or_of_a_named_user_is_shown(harness: GatewayHarness) -> None:
    used = {"bytes": 1_500_000, "files": 3, "rows": 1_200}
    shown = {
        "user": "ann",
        "used": used,
        "limit": {"bytes": 100_000_000_000, "files": 10_000, "rows": 200_000_000},
        "shares": [{"kind": "datasets", "used": used}],
    }
    headers = {"X-Proctor-User": "ann"}
    assert (await call(harness, "GET", "/api/v1/storage", headers=headers))[:2] == (200, shown)
    status, body, _ = await call(harness, "GET", "/api/v1/storage?user=bob", headers=headers)
    assert (status, body["user"]) == (200, "bob")


async def test_limits_are_shown_and_only_those_given_are_changed(harness: GatewayHarness) -> None:
    assert (await call(harness, "GET", f"{QUEUE}/limits"))[:2] == (200, {**LIMITS, "last_change": None})
    changes = {"max_running_runs": 1, "min_run_time_seconds": 0.5, "highest_priorities": {"ann": "high"}}
    changed = {**LIMITS, **changes}
    assert (await call(harness, "PATCH", f"{QUEUE}/limits", json=changes))[:2] == (200, changed)
    assert (await call(harness, "PATCH", f"{QUEUE}/limits", json={}))[:2] == (200, changed)


async def test_limits_are_taken_as_they_are_shown(harness: GatewayHarness) -> None:
    """`max_stored_bytes_per_project` too, where 0 means no limit."""
    assert (await call(harness, "PATCH", f"{QUEUE}/limits", json=LIMITS))[:2] == (200, LIMITS)
    sent = harness.scheduler.queue.changes[-1]
    assert (sent.limits.HasField("max_stored_bytes_per_project"), list(sent.reset)) == (True, [])


@pytest.mark.parametrize(
    ("body", "field"),
    [
        ({"max_running_runs": 0}, "max_running_runs"),
        ({"max_running_runs": "many"}, "max_running_runs"),
        ({"max_running_runs": "3"}, "max_running_runs"),
        ({"max_running_runs": True}, "max_running_runs"),
        ({"min_run_time_seconds": True}, "min_run_time_seconds"),
        ({"min_run_time_seconds": -1}, "min_run_time_seconds"),
        ({"run_time_limit_seconds": 0}, "run_time_limit_seconds"),
        ({"highest_priorities": {}}, "highest_priorities"),
        ({"highest_priorities": {"ann": "urgent"}}, "highest_priorities.ann"),
        ({"max_running": 3}, "max_running"),
        ({"max_stored_bytes_per_user": 0}, "max_stored_bytes_per_user"),
        ({"max_stored_bytes_per_user": 2**50 + 1}, "max_stored_bytes_per_user"),
    ],
)
async def test_a_bad_limit_is_refused_by_name(
    harness: GatewayHarness, body: dict[str, Any], field: str
) -> None:
    status, problem, _ = await call(harness, "PATCH", f"{QUEUE}/limits", json=body)
    assert status == 422
    assert [fault["field"] for fault in problem["errors"]] == [field]
    assert field in problem["detail"]


async def test_answer_that_is_too_large_for_us_is_our_fault(harness: GatewayHarness) -> None:
    harness.scheduler.put(run_pb2.Run(run_id="r1", user="x" * 17_000_000))
    status, problem, response = await call(harness, "GET", f"{API}/results")
    assert (status, problem["reason"], response.headers.get("Retry-After")) == (500, "INTERNAL", None)
    async with ProctorClient(harness.grpc) as client:
        with pytest.raises(InternalError, match="too large to be sent"):
            await client.runs.ListRuns(scheduler_pb2.ListRunsRequest())


async def test_too_long_a_page_is_refused(harness: GatewayHarness) -> None:
    assert (await call(harness, "GET", f"{QUEUE}?limit=501"))[0] == 422


async def test_waiting_job_says_why_and_for_how_long(harness: GatewayHarness) -> None:
    run = pending_run()
    run.run_id = str(uuid.uuid4())
    harness.scheduler.put(run)
    wait = {
        "position": 1,
        "blocked_by": "All 3 slots are busy",
        "estimated_seconds": 60.0,
        "estimated_low_seconds": 30.0,
        "estimated_high_seconds": 90.0,
    }
    assert (await call(harness, "GET", f"{API}/results/{run.run_id}"))[1]["wait"] == wait
    assert (await call(harness, "GET", f"{API}/results"))[1]["results"][0]["wait"] == wait
    run.ClearField("wait")
    harness.scheduler.put(run)
    assert "wait" not in (await call(harness, "GET", f"{API}/results"))[1]["results"][0]


async def test_job_is_paused_and_resumed(harness: GatewayHarness) -> None:
    run_id = str(uuid.uuid4())
    harness.scheduler.put(run_pb2.Run(run_id=run_id, state=run_pb2.RUN_STATE_RUNNING))
    paused = await call(harness, "POST", f"{API}/pause/{run_id}")
    assert paused[:2] == (200, {"message": f"Job {run_id} paused successfully"})
    resumed = await call(harness, "POST", f"{API}/resume/{run_id}")
    assert resumed[:2] == (200, {"message": f"Job {run_id} is queued to resume"})
    status, problem, _ = await call(harness, "POST", f"{API}/resume/{run_id}")
    assert (status, problem["reason"]) == (409, "RUN_NOT_PAUSED")
    assert (await call(harness, "POST", f"{API}/pause/none"))[0] == 404


async def test_job_that_waits_again_says_how_urgent_it_is(harness: GatewayHarness) -> None:
    for way, begins in (("resume", "is queued to resume"), ("retry", "is queued to retry")):
        run = run_pb2.Run(run_id=str(uuid.uuid4()), state=run_pb2.RUN_STATE_PAUSED)
        run.order.priority = run_pb2.PRIORITY_NORMAL
        harness.scheduler.put(run)
        _, body, _ = await call(harness, "POST", f"{API}/{way}/{run.run_id}")
        assert body["message"].startswith(f"Job {run.run_id} {begins}")
        assert body["message"].endswith(", with priority normal")


async def test_requests_over_the_limit_are_refused_with_the_time_to_wait(harness: GatewayHarness) -> None:
    harness.scheduler.queue.max_requests = 2
    for _ in range(2):
        assert (await call(harness, "GET", QUEUE))[0] == 200
    status, problem, response = await call(harness, "POST", f"{API}/run", json={"no": "order"})
    assert (status, problem["reason"], problem["retry_after"]) == (429, "TOO_MANY_REQUESTS", 12)
    assert response.headers["Retry-After"] == "12"
    assert "2 requests of this minute" in problem["detail"]
    for free in ("/healthz", "/readyz", "/openapi.json"):
        assert (await call(harness, "GET", free))[0] == 200
    assert (await call(harness, "PATCH", f"{QUEUE}/limits", json={"max_running_runs": 2}))[0] == 200
    assert (await call(harness, "GET", QUEUE, headers={"X-Proctor-User": "bob"}))[0] == 200


async def test_requests_are_counted_by_name_where_there_are_no_keys(harness: GatewayHarness) -> None:
    for headers in ({}, {"X-Proctor-User": "bob"}, {"X-API-Key": "any", "X-Proctor-User": "bob"}):
        await call(harness, "GET", QUEUE, headers=headers)
    assert harness.scheduler.queue.requests == {"local": 1, "bob": 2}


async def test_changes_of_limits_are_counted(harness: GatewayHarness) -> None:
    await call(harness, "PATCH", f"{QUEUE}/limits", json={"max_running_runs": 2})
    assert harness.scheduler.queue.requests == {"local": 1}
    assert harness.scheduler.queue.reads == {"local": 0}


async def test_requests_that_only_read_are_counted_as_reads(harness: GatewayHarness) -> None:
    await call(harness, "GET", QUEUE)
    await call(harness, "HEAD", QUEUE)
    await call(harness, "POST", f"{API}/run", json={"no": "order"})
    assert harness.scheduler.queue.requests == {"local": 3}
    assert harness.scheduler.queue.reads == {"local": 2}


async def test_requests_that_lead_nowhere_or_cannot_be_read_count_too(harness: GatewayHarness) -> None:
    json = {"Content-Type": "application/json"}
    answers = [
        await call(harness, "POST", f"{API}/run", data=b"{bad", headers=json),
        await call(harness, "GET", f"{API}/nothing"),
        await call(harness, "DELETE", f"{API}/run"),
    ]
    assert [status for status, _, _ in answers] == [422, 404, 405]
    assert harness.scheduler.queue.requests == {"local": 3}


async def test_requests_are_counted_while_the_scheduler_is_away_and_after_it(harness: GatewayHarness) -> None:
    """It answers again within the minute: what it does not know of is part of the limit."""
    harness.scheduler.queue.max_requests = 5
    assert (await call(harness, "GET", QUEUE))[0] == 200
    harness.scheduler.queue.is_counting = False
    assert [(await call(harness, "GET", QUEUE))[0] for _ in range(5)] == [200] * 4 + [429]
    _, problem, response = await call(harness, "GET", QUEUE)
    assert problem["reason"] == "TOO_MANY_REQUESTS"
    assert int(response.headers["Retry-After"]) == problem["retry_after"] > 0
    assert "5 requests of this minute" in problem["detail"]
    assert (await call(harness, "GET", QUEUE, headers={"X-Proctor-User": "bob"}))[0] == 200
    harness.scheduler.queue.is_counting = True

    async def is_asked_again() -> bool:
        assert (await call(harness, "GET", QUEUE))[0] == 429
        return harness.scheduler.queue.requests["local"] > 1

    await eventually(is_asked_again, "the scheduler counts again")
