"""The main job: the starter suite on the real vLLM engine, far above chance and the same twice."""

import pytest
import pytest_asyncio

from proctor.v1 import queue_service_pb2 as queue_pb2
from proctor.v1 import run_pb2, summary_pb2
from proctor.v1 import scheduler_service_pb2 as scheduler_pb2
from tests.e2e.harness.run_ends import all_outcomes, completed, ended
from tests.fakes.eventually import eventually
from tests.harness.stack_harness import StackHarness
from tests.harness.starter_model import MODEL, OTHER, SAMPLES, SUITE

pytestmark = [pytest.mark.asyncio(loop_scope="session"), pytest.mark.thorough]

# Chance: a half, a quarter, nearly nothing.
AT_LEAST = {"sentiment": 0.8, "odd_one": 0.6, "addition": 0.6}
LIMIT_SECONDS = 180.0


@pytest_asyncio.fixture(scope="module", loop_scope="session")
async def examined(stack: StackHarness) -> str:
    return await examine(stack)


async def examine(stack: StackHarness) -> str:
    order = run_pb2.RunOrder(project_id=1, suite=SUITE.name, model=MODEL)
    return await completed(stack, order, LIMIT_SECONDS)


async def test_starter_suite_is_answered_far_above_chance_and_the_same_twice(
    stack: StackHarness, examined: str
) -> None:
    second = await examine(stack)
    summary = await stack.client.summary(examined)
    assert (summary.answered, summary.failed, summary.is_partial) == (SAMPLES, 0, False)
    assert {task: figure >= AT_LEAST[task] for task, figure in means(summary).items()} == dict.fromkeys(
        AT_LEAST, True
    ), means(summary)
    assert means(await stack.client.summary(second)) == means(summary)
    assert await predictions(stack, examined) == await predictions(stack, second)


async def test_tokens_and_times_are_reported(stack: StackHarness, examined: str) -> None:
    summary = await stack.client.summary(examined)
    assert summary.usage.prompt_tokens > SAMPLES
    assert summary.usage.completion_tokens > 0
    assert summary.mean_timing.total_seconds > 0
    assert summary.mean_timing.HasField("first_token_seconds")
    environment = (await stack.client.run(examined)).environment
    assert "vllm" in " ".join(environment.values())
    methods = {task.task: task.scoring_method for task in summary.tasks}
    assert methods["sentiment"] == run_pb2.SCORING_METHOD_LOGLIKELIHOOD
    models = (await stack.client.runs.ListModels(scheduler_pb2.ListModelsRequest())).models
    assert {model.model: model.is_loaded for model in models} == {MODEL: True, OTHER: False}


async def test_a_cancel_leaves_nothing_running_in_the_engine(stack: StackHarness) -> None:
    async def in_engine() -> int:
        [worker] = (await stack.client.queue.GetQueue(queue_pb2.GetQueueRequest())).workers
        return worker.load.running_requests + worker.load.waiting_requests

    async def is_busy() -> bool:
        return await in_engine() > 0

    async def is_empty() -> bool:
        return await in_engine() == 0

    order = run_pb2.RunOrder(project_id=1, suite=SUITE.name, model=MODEL, rollouts=20)
    run_id = await stack.submit(order)
    await eventually(is_busy, "requests are in the engine", LIMIT_SECONDS)
    await stack.client.runs.CancelRun(scheduler_pb2.CancelRunRequest(run_id=run_id))
    await eventually(is_empty, "no request is left in the engine", LIMIT_SECONDS)
    assert (await ended(stack, run_id)).state == run_pb2.RUN_STATE_CANCELLED
    partial = await stack.client.summary(run_id)
    assert partial.is_partial
    assert partial.answered < partial.total == 20 * SAMPLES


def means(summary: summary_pb2.RunSummary) -> dict[str, float]:
    return {task.task: task.metrics[0].mean for task in summary.tasks}


async def predictions(stack: StackHarness, run_id: str) -> list[str]:
    return [item.prediction for item in await all_outcomes(stack, run_id)]
