"""The command line as a person at a terminal sees it: bars, and the question that Ctrl-C brings."""

import asyncio
import os
import pty
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

from proctor.v1 import run_pb2
from tests.fakes.eventually import eventually
from tests.fakes.gateway.gateway_harness import GatewayHarness, gateway_harness
from tests.harness.processes import bound, end

ROOT = Path(__file__).parents[3]
CTRL_C = b"\x03"
QUESTION = "Cancel the run (c), detach and let it go on (d), or keep watching (Enter)?"


class Screen:
    """A terminal with `proctor run` in it: what was typed goes in, all that was shown is kept."""

    def __init__(self, master: int, process: asyncio.subprocess.Process) -> None:
        self._master = master
        self.process = process
        self.text = ""
        asyncio.get_running_loop().add_reader(master, self._read)

    def type(self, keys: bytes) -> None:
        os.write(self._master, keys)

    async def shows(self, text: str) -> None:
        await eventually(lambda: text in self.text, f"the screen shows {text!r}")

    async def code(self) -> int:
        async with asyncio.timeout(20):
            return await self.process.wait()

    def close(self) -> None:
        asyncio.get_running_loop().remove_reader(self._master)
        os.close(self._master)

    def _read(self) -> None:
        try:
            self.text += os.read(self._master, 65536).decode(errors="replace")
        except OSError:  # the other side was closed
            asyncio.get_running_loop().remove_reader(self._master)


@asynccontextmanager
async def watching(harness: GatewayHarness, state_dir: Path) -> AsyncIterator[Screen]:
    run = run_pb2.Run(run_id="r1", state=run_pb2.RUN_STATE_RUNNING)
    run.order.suite, run.order.model = "glue", "vllm/starter"
    run.progress.total, run.progress.recorded = 100, 40
    run.progress.tasks.add(task="sst2", total=100, recorded=40)
    harness.scheduler.put(run)
    master, slave = pty.openpty()
    own = {"PROCTOR_STATE_DIR": str(state_dir), "PYTHONPATH": str(ROOT), "TERM": "xterm", "COLUMNS": "100"}
    process = await asyncio.create_subprocess_exec(
        # setsid makes the terminal its own: Ctrl-C is a key that is pressed there, not a signal of ours.
        *bound("setsid", "--ctty", sys.executable, "-m", "proctor.cli"),
        *("watch", "r1", "--gateway", harness.grpc),
        stdin=slave,
        stdout=slave,
        stderr=slave,
        env={**os.environ, **own},
    )
    os.close(slave)
    screen = Screen(master, process)
    try:
        await screen.shows("40/100")
        yield screen
    finally:
        await end(process)
        screen.close()


async def test_answer_c_cancels_the_run(tmp_path: Path) -> None:
    async with gateway_harness() as harness, watching(harness, tmp_path) as screen:
        screen.type(CTRL_C)
        await screen.shows(QUESTION)
        screen.type(b"c\n")
        assert await screen.code() == 5
        assert harness.scheduler.runs["r1"].state == run_pb2.RUN_STATE_CANCELLED


async def test_enter_keeps_watching_and_d_detaches(tmp_path: Path) -> None:
    async with gateway_harness() as harness, watching(harness, tmp_path) as screen:
        screen.type(CTRL_C)
        await screen.shows(QUESTION)
        screen.type(b"\n")
        run = harness.scheduler.runs["r1"]
        run.progress.recorded = run.progress.tasks[0].recorded = 55
        harness.scheduler.put(run)
        await screen.shows("55/100")
        screen.type(CTRL_C)
        await eventually(lambda: screen.text.count(QUESTION) == 2, "the question comes again")
        screen.type(b"d\n")
        assert await screen.code() == 130
        assert run.state == run_pb2.RUN_STATE_RUNNING


async def test_second_ctrl_c_detaches(tmp_path: Path) -> None:
    async with gateway_harness() as harness, watching(harness, tmp_path) as screen:
        screen.type(CTRL_C)
        await screen.shows(QUESTION)
        screen.type(CTRL_C)
        assert await screen.code() == 130
        await screen.shows("The run r1 goes on.")
