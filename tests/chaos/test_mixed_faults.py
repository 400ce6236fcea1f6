"""Faults of every kind in one run, in an order drawn from a seed."""

import random
from functools import partial

import pytest

from tests.chaos.faults.faulted_run import Fault, FaultedRun
from tests.chaos.faults.run_audit import assert_right
from tests.chaos.faults.stack_faults import kill, wipe
from tests.harness.stack_harness import StackHarness

# `make test` strikes with each kind of fault alone, in other files.
pytestmark = [pytest.mark.asyncio(loop_scope="session"), pytest.mark.thorough]

SHARES = (0.15, 0.3, 0.45, 0.6, 0.75)


def faults(stack: StackHarness) -> list[Fault]:
    """Kills, the loss of all streams, and a server whose next hundred answers are useless."""
    bad_answers = (
        {"kind": "status", "status": 500, "count": 100},
        {"kind": "status", "status": 429, "retry_after": "1", "count": 100},
        {"kind": "half_body", "count": 100},
    )
    return [
        *(partial(kill, stack, name) for name in ("worker", "scheduler", "results", "nats", "postgres")),
        partial(wipe, stack),
        *(partial(stack.model_server.control, fault=fault) for fault in bad_answers),
    ]


@pytest.mark.parametrize("seed", [3, 4])
async def test_run_outlives_one_fault_after_another(stack: StackHarness, seed: int) -> None:
    drawn = random.Random(seed).sample(faults(stack), k=len(SHARES))
    run = await FaultedRun.start(stack)
    for share, fault in zip(SHARES, drawn, strict=True):
        await run.strike_at(share, fault)
    await assert_right(run)
