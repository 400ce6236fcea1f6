"""Values come back from the wire as they were; only page tokens that a list gave are taken."""

import json
import math
from dataclasses import fields, replace
from datetime import UTC, datetime

import pytest

from proctor.v1 import queue_service_pb2 as queue_pb2
from proctor.v1 import run_pb2
from proctor.values.generation import GenerationParams
from proctor.values.priority import Priority
from proctor.values.run import RunCounts, RunId, TaskCounts
from proctor.values.scoring import MetricUse, PromptForm, Reasoning, ScoringMethod, Truncation
from services.common.errors import InvalidPageToken, InvalidParameter
from services.scheduler.limits.queue_limits import LIMIT_NAMES, LimitChanges
from services.scheduler.runs.grpc_queue_api import changes_from_proto
from services.scheduler.runs.lifecycle.postgres_rows import from_json, order_from_json, order_to_json, to_json
from services.scheduler.runs.lifecycle.run import Run
from services.scheduler.runs.orders.order_rules import first_problem
from services.scheduler.runs.orders.proto import ORDER, order_from_proto
from services.scheduler.runs.orders.run_order import RunOrder
from services.scheduler.runs.reads.proto import brief_to_proto, cursor_from_token, token_behind
from services.scheduler.runs.reads.run_snapshot import RunProgress, RunSnapshot
from services.scheduler.suites.suite import Generation

FULL = RunOrder(
    suite="glue",
    model="vllm/Qwen/Qwen3-0.6B",
    project_id=7,
    tasks=("rte", "sst2"),
    limit=5,
    num_fewshot=0,
    rollouts=3,
    priority=Priority.LOW,
    params=GenerationParams(0.5, 0.9, 40, 16, 0, 1.1, 2048, {"min_p": 0.1, "x": [True, {"y": None}]}),
    scoring_method=ScoringMethod.LOGLIKELIHOOD,
    truncation=Truncation.LEFT,
    prompt_form=PromptForm.CHAT,
    reasoning=Reasoning.KEEP,
)
BARE = RunOrder(suite="glue", model="openai/x")
OVER_ROWS = RunOrder(
    suite="",
    model="openai/x",
    dataset_id="ds_1",
    priority=Priority.NORMAL,
    metrics=(MetricUse("contains", '{"ignore_case": true}'), MetricUse("squad_f1")),
    line_models=("gpt-4o", "x"),
    completion_window_seconds=3600,
)


@pytest.mark.parametrize("order", [FULL, BARE, OVER_ROWS], ids=["full", "bare", "rows"])
def test_order_survives_both_forms(order: RunOrder) -> None:
    assert order_from_proto(ORDER.to_proto(order)) == order
    assert order_from_json(order_to_json(order), order.priority) == order


def test_order_is_stored_under_the_names_of_its_fields() -> None:
    stored = json.loads(order_to_json(replace(BARE, parallel_group="ann/1", parallel=3)))
    assert stored.keys() == {each.name for each in fields(RunOrder)} - {"priority"}
    assert stored.items() >= {"parallel_group": "ann/1", "parallel": 3}.items()


def test_one_of_many_runs_is_reported_without_what_may_be_long() -> None:
    order = replace(
        FULL,
        tasks=("x" * 1000,) * 1000,
        row_rollouts=(1, 2) * 10**5,
        params=GenerationParams(provider_params={"x": "y" * 10**6}),
    )
    run = Run(
        RunId("a"), order, "ann", "local", ScoringMethod.GENERATE, datetime(2026, 11, 20, tzinfo=UTC),
        environment={f"task {number}": "x" * 100 for number in range(1000)},
    )  # fmt: skip
    message = brief_to_proto(RunSnapshot(run, RunProgress(7, 5, "running")))
    assert message.ByteSize() < 1000
    assert (message.order.model, message.order.limit, message.progress.total) == (FULL.model, FULL.limit, 7)


def test_one_of_many_runs_of_rollouts_says_how_many_each_task_has() -> None:
    order = replace(BARE, rollouts=2, row_rollouts=(1, 2), parallel_group="ann/1", parallel=3)
    run = Run(RunId("a"), order, "ann", "local", ScoringMethod.GENERATE, datetime(2026, 11, 20, tzinfo=UTC))
    message = brief_to_proto(RunSnapshot(run, RunProgress(3, 0, "running")))
    assert list(message.order.row_rollouts) == [1, 2]


def test_unset_is_distinguished_from_zero() -> None:
    assert order_from_proto(run_pb2.RunOrder()).limit is None
    assert order_from_proto(run_pb2.RunOrder(limit=0)).limit == 0
    assert order_from_proto(run_pb2.RunOrder(rollouts=0)).rollouts == 0
    assert order_from_proto(run_pb2.RunOrder()).rollouts == 1


def test_limits_to_go_back_are_reported_by_name_and_others_are_refused() -> None:
    fields = [field.name for field in queue_pb2.QueueLimits.DESCRIPTOR.fields]
    request = queue_pb2.SetLimitsRequest(reset=fields)
    assert changes_from_proto(request) == LimitChanges(reset=frozenset(LIMIT_NAMES))
    with pytest.raises(InvalidParameter, match="there is no such limit: there are max_running_runs, "):
        changes_from_proto(queue_pb2.SetLimitsRequest(reset=["max_running"]))


def test_word_of_a_newer_client_is_refused() -> None:
    order = run_pb2.RunOrder()
    order.priority = 99  # type: ignore[assignment]  # an open enum takes any number
    with pytest.raises(InvalidParameter, match="priority has the unknown value 99"):
        order_from_proto(order)


def test_number_that_json_lacks_is_left_to_the_order_to_refuse() -> None:
    order = run_pb2.RunOrder(suite="glue")
    order.params.provider_params["foo"] = math.nan
    problem = first_problem(order_from_proto(order))
    assert problem is not None
    assert problem.field == "provider_params"


def test_counts_and_generation_survive_json() -> None:
    counts = RunCounts(2, (TaskCounts("a", 5, 1, 2),), {"timeout": 1}, {"engine": "vllm 1"})
    assert from_json(RunCounts, to_json(counts)) == counts
    assert from_json(RunCounts, to_json(None)) is None
    generation = Generation(("\n", "."), 8, 0.5, 0.9)
    assert from_json(Generation, to_json(generation)) == generation


def test_page_token_leads_behind_the_run() -> None:
    created_at = datetime(2026, 11, 20, 1, 2, 3, 456789, tzinfo=UTC)
    run_id = RunId("6f1f2c64-5c3e-4b43-8f7a-2f4d7a6d0f7e")
    run = Run(run_id, BARE, "local", "remote", ScoringMethod.GENERATE, created_at)
    cursor = cursor_from_token(token_behind(run, 12))
    assert cursor is not None
    assert (cursor.created_at, cursor.run_id, cursor.total) == (created_at, run_id, 12)


@pytest.mark.parametrize("token", ["x", "bm9uc2Vuc2U=", "MjAyNi0xMS0yMCBub3BlCg=="])
def test_foreign_page_token_is_refused(token: str) -> None:
    with pytest.raises(InvalidPageToken):
        cursor_from_token(token)
