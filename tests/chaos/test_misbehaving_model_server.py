"""The model server fails in mid-run, for a while or for good: that is never taken for an answer."""

import pytest

from tests.chaos.faults.faulted_run import FaultedRun
from tests.chaos.faults.run_audit import assert_right
from tests.fakes.eventually import eventually
from tests.fakes.thorough_cases import first_cases
from tests.harness.stack_harness import StackHarness

pytestmark = pytest.mark.asyncio(loop_scope="session")

# Every request that the worker has open fails at least once.
FAULTED = 100

FAULTS: dict[str, dict[str, object]] = {
    "429 with Retry-After": {"kind": "status", "status": 429, "retry_after": "1"},
    "500": {"kind": "status", "status": 500},
    "half an answer": {"kind": "half_body"},
    # Longer than the worker waits for an answer.
    "nothing for 30 s": {"kind": "hang", "seconds": 30},
}


@first_cases(1, "fault", FAULTS.values(), ids=FAULTS.keys())
async def test_run_outlives_a_model_server_that_fails_for_a_while(
    stack: StackHarness, fault: dict[str, object]
) -> None:
    server = stack.model_server
    run = await FaultedRun.start(stack)
    await run.strike_at(0.3, lambda: server.control(fault=fault))
    await eventually(lambda: has_faulted(stack), f"{FAULTED} requests have failed", 30)
    await server.control(fault=None)
    await assert_right(run)


async def has_faulted(stack: StackHarness) -> bool:
    return int((await stack.model_server.stats())["faulted"]) >= FAULTED


async def test_failures_of_a_server_that_stays_broken_are_reported_and_never_scored(
    stack: StackHarness,
) -> None:
    """Half of the later requests are refused: the run fails, and its figures are those of the answers."""
    server = stack.model_server
    run = await FaultedRun.start(stack)
    refusal = {"kind": "status", "status": 400, "message": "no such thing", "share": 0.5}
    await run.strike_at(0.3, lambda: server.control(fault=refusal))
    ended = await run.ended()
    await server.control(fault=None)
    summary = await stack.client.summary(run.run_id)
    assert ended.error.reason == "TOO_MANY_FAILURES"
    assert summary.failures == {"refused": summary.failed}
    assert 0 < summary.failed == (await server.stats())["faulted"]
    [figure] = summary.tasks[0].metrics
    assert (figure.n, figure.mean) == (run.total - summary.failed, 1.0)
