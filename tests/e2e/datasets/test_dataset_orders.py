"""Orders over data sets by gRPC through the whole stack: aliases, endpoints, windows, stored answers."""

import io
from collections.abc import Sequence
from datetime import timedelta

import pytest

from proctor.client.datasets import Upload
from proctor.client.errors import Refused
from proctor.v1 import run_pb2, sample_pb2
from tests.e2e.harness.run_ends import all_outcomes, ended
from tests.fakes.storage.checked_files import batch_line, jsonl
from tests.harness.stack_harness import MODEL, StackHarness

pytestmark = pytest.mark.asyncio(loop_scope="session")

COUNT = 200


async def uploaded(stack: StackHarness, lines: Sequence[object], name: str) -> str:
    answer = await stack.client.upload_dataset(Upload(io.BytesIO(jsonl(lines)), name))
    return answer.dataset.dataset_id


def order_over(dataset_id: str, **fields: object) -> run_pb2.RunOrder:
    return run_pb2.RunOrder(**{"dataset_id": dataset_id, "model": "gpt-4o", **fields})  # type: ignore[arg-type]  # fields of an order


async def completed(stack: StackHarness, order: run_pb2.RunOrder) -> run_pb2.Run:
    run = await ended(stack, await stack.submit(order))
    assert run.state == run_pb2.RUN_STATE_COMPLETED, run.error
    return run


def completion(number: int, **changes: object) -> dict[str, object]:
    body = {"model": "gpt-4o", "prompt": f"KEY=w{number}", "max_tokens": 20}
    return batch_line(number, url="/v1/completions", body=body, **changes)


async def test_lines_by_an_alias_are_completed_and_answers_serve_another_file(stack: StackHarness) -> None:
    dataset_id = await uploaded(stack, [completion(at) for at in range(COUNT)], "first.jsonl")
    first = await completed(stack, order_over(dataset_id, completion_window_seconds=3600))
    assert (first.order.model, first.dataset_name) == (MODEL, "first.jsonl")
    assert first.order.prompt_form == run_pb2.PROMPT_FORM_COMPLETION
    outcomes = await all_outcomes(stack, first.run_id)
    texts = [each.outcome.answer.text for each in sorted(outcomes, key=lambda each: each.outcome.sample)]
    # The space tells that it was continued and not chatted.
    assert texts == [f" The answer is w{at}." for at in range(COUNT)]
    window = first.deadline.ToDatetime() - first.created_at.ToDatetime()
    assert window == timedelta(hours=1)
    asked = (await stack.model_server.stats())["requests"]
    # The same requests under other ids, and one more.
    others = [completion(at, custom_id=f"other-{at}") for at in range(COUNT + 1)]
    other_id = await uploaded(stack, others, "second.jsonl")
    second = await completed(stack, order_over(other_id, reuse_answers=True))
    assert (second.reused_answers, second.progress.total) == (COUNT, COUNT + 1)
    assert (await stack.model_server.stats())["requests"] == asked + 1


async def test_rollouts_and_limit_count_rows_and_scores_are_summed_up(stack: StackHarness) -> None:
    rows = [{"prompt": f"KEY=w{at}", "target": f"w{at}" if at % 2 else "no"} for at in range(COUNT)]
    dataset_id = await uploaded(stack, rows, "sums.jsonl")
    metrics = [sample_pb2.MetricUse(name="contains")]
    run = await completed(stack, order_over(dataset_id, metrics=metrics, limit=10, rollouts=3))
    assert (run.progress.recorded, run.progress.total) == (30, 30)
    summary = await stack.client.summary(run.run_id)
    [task] = summary.tasks
    figures = {figure.metric: figure.mean for figure in task.metrics}
    assert (task.task, figures["contains"]) == ("rows", 0.5)


async def test_faulty_orders_are_refused_at_once_by_a_sentence(stack: StackHarness) -> None:
    dataset_id = await uploaded(stack, [{"prompt": "a"}], "bare.jsonl")
    metrics = [sample_pb2.MetricUse(name="exact_match")]
    refusals = {
        "NO_TARGETS": order_over(dataset_id, metrics=metrics),
        "DATASET_NOT_FOUND": order_over("ds_" + "0" * 32),
        "UNKNOWN_METRIC": order_over(dataset_id, metrics=[sample_pb2.MetricUse(name="bleurt")]),
        "INVALID_PARAMETER": order_over(dataset_id, suite="keyed"),
    }
    for reason, order in refusals.items():
        with pytest.raises(Refused) as refused:
            await stack.submit(order)
        assert refused.value.reason == reason
        assert str(refused.value).endswith(".")
