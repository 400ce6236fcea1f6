"""Following a run to its end, and all that was recorded of it."""

import asyncio

from proctor.client.pages import all_pages
from proctor.v1 import outcome_pb2, run_pb2
from proctor.v1 import results_service_pb2 as results_pb2
from tests.harness.stack_harness import StackHarness

LIMIT_SECONDS = 60.0
PAGE_SIZE = 100


async def ended(stack: StackHarness, run_id: str, limit_seconds: float = LIMIT_SECONDS) -> run_pb2.Run:
    """The run in its final state, closed."""
    run = run_pb2.Run()
    async with asyncio.timeout(limit_seconds):
        async for seen in stack.client.watch_run(run_id):
            run = seen
    return run


async def completed(
    stack: StackHarness, order: run_pb2.RunOrder, limit_seconds: float = LIMIT_SECONDS
) -> str:
    """The id of a run of the order, which went well."""
    run_id = await stack.submit(order)
    run = await ended(stack, run_id, limit_seconds)
    assert run.state == run_pb2.RUN_STATE_COMPLETED, run.error
    return run_id


async def all_outcomes(stack: StackHarness, run_id: str, task: str = "") -> list[outcome_pb2.RecordedOutcome]:
    """Page by page."""
    request = results_pb2.ListOutcomesRequest(run_id=run_id, page_size=PAGE_SIZE, task=task)
    pages = all_pages(stack.client.outcomes.ListOutcomes, request)
    return [outcome async for page in pages for outcome in page.outcomes]
