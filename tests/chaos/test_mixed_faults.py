"""Faults of every kind in one run, in an order drawn from a seed."""

import random
from collections.abc import AsyncIterator
from functools import partial

import pytest
import pytest_asyncio

from tests.chaos.run_audit import assert_right
from tests.chaos.stands import kill, struck_stack, wipe
from tests.chaos.struck_run import Fault, StruckRun
from tests.whole_stack import WholeStack

pytestmark = pytest.mark.asyncio(loop_scope="module")

SHARES = (0.15, 0.3, 0.45, 0.6, 0.75)


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def standing() -> AsyncIterator[WholeStack]:
    async with struck_stack() as stack:
        yield stack


def faults(standing: WholeStack) -> list[Fault]:
    """Kills, the loss of all streams, and a server whose next hundred answers are useless."""
    bad_answers = (
        {"kind": "status", "status": 500, "count": 100},
        {"kind": "status", "status": 429, "retry_after": "1", "count": 100},
        {"kind": "half_body", "count": 100},
    )
    return [
        *(partial(kill, standing, name) for name in ("worker", "scheduler", "results", "nats", "postgres")),
        partial(wipe, standing),
        *(partial(standing.model_server.control, fault=fault) for fault in bad_answers),
    ]


@pytest.mark.parametrize("seed", [3])
async def test_run_outlives_one_fault_after_another(standing: WholeStack, seed: int) -> None:
    drawn = random.Random(seed).sample(faults(standing), k=len(SHARES))
    run = await StruckRun.start(standing)
    for share, fault in zip(SHARES, drawn, strict=True):
        await run.strike_at(share, fault)
    await assert_right(run)
