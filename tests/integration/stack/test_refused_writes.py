"""NATS that refuses messages since a write failed, while its disk has room: it is started again by itself."""

import resource
from pathlib import Path

import psutil

from tests.e2e.harness.entry_points import http
from tests.fakes.eventually import eventually
from tests.fakes.stack.state_dir import temporary_state_dir
from tests.harness.stack_harness import StackOrder, stack_harness

ROWS = 3000


async def test_a_run_waits_for_nats_and_goes_on_once_it_is_started_again() -> None:
    with temporary_state_dir() as state_dir:
        async with stack_harness(state_dir.parent, StackOrder(rows=ROWS)) as stack:
            await stack.model_server.control(latency_seconds=0.1)
            run_id = await stack.submit()

            async def progress() -> tuple[int, str]:
                shown = (await stack.client.run(run_id)).progress
                return shown.recorded, shown.phase

            async def records() -> bool:
                return (await progress())[0] > 0

            await eventually(records, "outcomes are recorded", 60)
            nats = stack.stack.child("nats")
            assert nats.pid is not None
            # As a full disk; the limit ends with the process, as the fullness of a disk would not.
            psutil.Process(nats.pid).rlimit(psutil.RLIMIT_FSIZE, (0, resource.RLIM_INFINITY))
            steps: set[str] = set()
            statuses: set[int] = set()

            async def is_restarted() -> bool:
                steps.add((await progress())[1])
                statuses.add((await http(stack, "GET", "/readyz")).status)
                return nats.restarts > 0

            await eventually(is_restarted, "NATS is started again", 90)
            assert any("which refuses" in step and "it stores no message" in step for step in steps), steps
            assert statuses == {200, 503}

            async def is_done() -> bool:
                return (await progress())[1] == "done"

            await eventually(is_done, "the run is done", 120)
            assert (await progress())[0] == ROWS

            async def is_ready() -> bool:
                return (await http(stack, "GET", "/readyz")).status == 200

            await eventually(is_ready, "all is ready again", 30)
            notes = (Path(stack.stack.options.state_dir) / "logs" / "stack.log").read_text(encoding="utf-8")
            assert "nats refuses messages, although its disk has room" in notes
