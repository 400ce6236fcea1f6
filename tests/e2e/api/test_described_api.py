"""Schemathesis against a real stack: no error of the server, and no answer that is not described.

`make test-api EXAMPLES=…` is the long form: so many cases per operation and phase.
"""

import logging
import os
from pathlib import Path

import pytest

from tests.e2e.harness.described_api import describe_with, things_to_name, walk
from tests.fakes.stack.state_dir import temporary_state_dir
from tests.harness.stack_harness import SHORT_TIMEOUTS, StackOrder, stack_harness

EXAMPLES = os.environ.get("PROCTOR_TEST_API_EXAMPLES", "1")
SECONDS = os.environ.get("PROCTOR_TEST_API_SECONDS", "30")
# Schemathesis ends the case that it is at, and the shrinking of one that failed.
WALK_LIMIT_SECONDS = float(SECONDS) + 240.0
LIMITS = "/api/v1/queue/limits"
# As many orders as come, and no limit of reads.
MANY = {
    "PROCTOR_SCHEDULER_MAX_READS_PER_MINUTE": "0",
    "PROCTOR_SCHEDULER_MAX_PENDING_RUNS_PER_USER": "1000",
}


@pytest.mark.timeout(2 * WALK_LIMIT_SECONDS + 120.0)
async def test_every_answer_is_described_and_none_is_an_error_of_the_server(tmp_path: Path) -> None:
    order = StackOrder(rows=40, environment=SHORT_TIMEOUTS | MANY)
    with temporary_state_dir() as state_dir:
        async with stack_harness(state_dir.parent, order) as stack:
            description = tmp_path / "openapi.json"
            await describe_with(stack, await things_to_name(stack), description)
            size = ("--max-examples", EXAMPLES, "--max-time", SECONDS)
            found = await walk(stack, description, WALK_LIMIT_SECONDS, *size, "--exclude-path", LIMITS)
            # Last, because it changes the limits that the others go by.
            only = ("--max-examples", EXAMPLES, "--include-path", LIMITS)
            of_limits = await walk(stack, description, WALK_LIMIT_SECONDS, *only)
    logging.getLogger(__name__).info("%d cases", found.cases + of_limits.cases)
    # How many there are, depends on the machine: the walk ends after SECONDS.
    assert found.cases > 10
    assert of_limits.cases > 10
    assert found.code == 0, found.report
    assert of_limits.code == 0, of_limits.report
