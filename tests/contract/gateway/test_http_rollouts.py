"""Orders of rollouts over a socket: exact bodies, filters, and an order that is not there."""

from typing import Any

import pytest
from pydantic import ValidationError

from proctor.v1 import rollout_pb2, rollout_service_pb2, run_pb2
from services.gateway.api.rollouts import RolloutsRequest
from tests.fakes.gateway.gateway_harness import GatewayHarness
from tests.fakes.gateway.http_calls import call

ROLLOUTS = "/api/v1/rollouts"
ORDER_ID = "8f3c2a10-0000-4000-8000-0000000000aa"


@pytest.fixture(autouse=True)
def order(harness: GatewayHarness) -> rollout_service_pb2.RolloutsOrder:
    agent = rollout_pb2.RolloutAgent(
        kind=rollout_pb2.AGENT_KIND_SHELL,
        max_steps=50,
        max_tokens=500_000,
        command_seconds=60,
        max_cost=0.5,
        verification=rollout_pb2.VERIFICATION_PLACE_FRESH,
    )
    made = rollout_service_pb2.RolloutsOrder(
        order_id=ORDER_ID, suite="mine", suite_version=2, user="ann", agent=agent, rollouts=3
    )
    made.task_ids.extend(["one", "two"])
    made.models.append("openai/fake")
    made.created_at.FromSeconds(1_700_000_000)
    run = made.runs.add(run_id="r1", user="ann", state=run_pb2.RUN_STATE_RUNNING)
    run.order.model, run.order.suite = "openai/fake", "mine"
    run.created_at.FromSeconds(1_700_000_000)
    harness.scheduler.rollouts.orders.append(made)
    return made


async def test_orders_are_listed_with_their_jobs(harness: GatewayHarness) -> None:
    status, body, _ = await call(harness, "GET", f"{ROLLOUTS}?suite=mine@2&status=running&limit=5")
    assert status == 200
    [asked] = harness.scheduler.rollouts.listed
    assert (asked.suite, asked.state, asked.page_size) == ("mine@2", run_pb2.RUN_STATE_RUNNING, 5)
    assert not asked.HasField("project_id")
    [shown] = body["results"]
    jobs: list[dict[str, Any]] = shown.pop("jobs")
    assert [(job["job_id"], job["status"], job["benchmark_suite"]) for job in jobs] == [
        ("r1", "running", "mine")
    ]
    assert shown == {
        "order_id": ORDER_ID,
        "suite": "mine@2",
        "user": "ann",
        "project_id": 0,
        "project_name": None,
        "agent": {
            "kind": "shell",
            "max_steps": 50,
            "max_tokens": 500_000,
            "command_seconds": 60.0,
            "max_cost": 0.5,
            "template": "",
            "command": [],
            "version": "",
            "verification": "fresh",
        },
        "rollouts": 3,
        "task_ids": ["one", "two"],
        "models": ["openai/fake"],
        "created_at": "2023-11-14T22:13:20Z",
    }
    assert (body["total"], body["next_cursor"]) == (1, None)


def test_an_order_has_the_tests_of_solutions_and_the_tasks_of_models() -> None:
    body: dict[str, Any] = {
        "suite": "mine",
        "tasks_digest": "a" * 64,
        "models": ["openai/fake"],
        "model_tasks": {"openai/fake": {"one": 3}},
        "solved_tests": {"one": {"count": 2, "names": ["test.py::test_a"]}},
    }
    order = RolloutsRequest.model_validate(body).to_proto("ann", "")
    assert dict(order.model_tasks["openai/fake"].rollouts) == {"one": 3}
    assert order.solved_tests["one"] == rollout_pb2.RanTests(count=2, names=["test.py::test_a"])
    with pytest.raises(ValidationError):
        RolloutsRequest.model_validate(body | {"model_tasks": {"openai/fake": {"one": 0}}})


async def test_a_page_leads_to_the_next(
    harness: GatewayHarness, order: rollout_service_pb2.RolloutsOrder
) -> None:
    harness.scheduler.rollouts.orders.append(order)
    _, first, _ = await call(harness, "GET", f"{ROLLOUTS}?limit=1")
    assert (first["total"], first["next_cursor"]) == (2, "1")
    _, last, _ = await call(harness, "GET", f"{ROLLOUTS}?limit=1&cursor={first['next_cursor']}")
    assert last["next_cursor"] is None


async def test_an_order_is_shown_alone(harness: GatewayHarness) -> None:
    status, body, _ = await call(harness, "GET", f"{ROLLOUTS}/{ORDER_ID}")
    assert (status, body["order_id"]) == (200, ORDER_ID)


async def test_an_unknown_order_is_not_found(harness: GatewayHarness) -> None:
    status, problem, _ = await call(harness, "GET", f"{ROLLOUTS}/never")
    assert (status, problem["reason"]) == (404, "ROLLOUTS_ORDER_NOT_FOUND")


@pytest.mark.parametrize("query", ["limit=0", "limit=101", "status=odd", "project_id=-1", "other=1"])
async def test_a_faulty_parameter_is_refused(harness: GatewayHarness, query: str) -> None:
    status, _, _ = await call(harness, "GET", f"{ROLLOUTS}?{query}")
    assert status == 422
