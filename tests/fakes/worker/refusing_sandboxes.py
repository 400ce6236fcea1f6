"""An engine of sandboxes that can open none, as on a machine without namespaces."""

import asyncio
from pathlib import Path

from services.common.clock import SystemClock
from services.common.sandboxes.errors import CannotIsolate
from services.common.sandboxes.ports import Sandbox
from services.common.sandboxes.sandbox import Isolation, SandboxSpec
from services.worker.execution.execute_sample import ExecuteSample
from services.worker.rollouts.errors import FilesNotFetched
from services.worker.rollouts.execute_agent import ExecuteAgent
from services.worker.rollouts.execute_rollout import ExecuteRollout
from services.worker.rollouts.process_rollout import ProcessRollout
from services.worker.rollouts.rests.wait_for_provider import WaitForProvider
from services.worker.rollouts.task_files.fetch_files import FetchFiles
from services.worker.rollouts.task_files.file_cache import FileBundleCache
from services.worker.verification.check_code import CheckCode
from services.worker.verification.execute_pytest import ExecutePytest
from services.worker.verification.pytest_runner import pytest_runner
from services.worker.verification.verify_rollout import VerifyRollout

_PROBLEM = "no sandbox is opened in this test."


class RefusingSandboxes:
    async def check(self) -> Isolation:
        return Isolation("refusing", _PROBLEM)

    async def sweep(self) -> int:
        return 0

    async def open(self, spec: SandboxSpec) -> Sandbox:  # noqa: ARG002  # the port
        raise CannotIsolate(problem=_PROBLEM)

    async def close(self) -> None:
        return


class NoBundles:
    async def part(self, digest: str, first_byte: int) -> bytes:  # noqa: ARG002  # the port
        raise FilesNotFetched(problem="there are none")


def refusing_check() -> CheckCode:
    return CheckCode(RefusingSandboxes(), asyncio.Semaphore(1), lambda: "word")


def refusing_rollouts(execute_sample: ExecuteSample) -> ProcessRollout:
    clock = SystemClock()
    execute_pytest = ExecutePytest(RefusingSandboxes(), pytest_runner, lambda: "word")
    rollouts = ExecuteRollout(
        verifier=VerifyRollout(execute_pytest),
        agents=ExecuteAgent(clock),
        slots=asyncio.Semaphore(1),
        clock=clock,
    )
    files = FetchFiles(NoBundles(), FileBundleCache(Path("/nonexistent"), 0))
    waits = WaitForProvider(execute_sample.refused_runs, clock)
    return ProcessRollout(execute_sample, files, rollouts, waits, lambda *_: None)
