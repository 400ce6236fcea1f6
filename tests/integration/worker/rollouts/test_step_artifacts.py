"""Steps of a task leave one set of artifacts, and no solution for the step after them."""

import asyncio
import io
import json
import tarfile
import uuid
from collections.abc import AsyncIterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from proctor.values.rollout import AgentKind, RolloutAgent, RolloutSpec
from services.common.clock import SystemClock
from services.common.sandboxes.bubblewrap.engine import BubblewrapEngine, find_bubblewrap
from services.worker.rollouts.errors import StepNotPrepared
from services.worker.rollouts.execute_agent import ExecuteAgent
from services.worker.rollouts.execute_rollout import ExecuteRollout, RolloutExecution
from services.worker.verification.execute_pytest import ExecutePytest
from services.worker.verification.pytest_runner import pytest_runner
from services.worker.verification.verify_rollout import VerifyRollout
from tests.harness.rollout_tasks import read_task, steps_folder, write


@dataclass
class Parts:
    """A store of artifacts: a part is replaced by its number, and none is removed."""

    execution: str = "e"
    stored: dict[tuple[str, int], bytes] = field(default_factory=dict)

    async def put(self, name: str, part: int, content: bytes) -> None:
        self.stored[name, part] = content

    def whole(self, name: str) -> bytes:
        return b"".join(content for (kind, _), content in sorted(self.stored.items()) if kind == name)

    @property
    def files(self) -> set[str]:
        with tarfile.open(fileobj=io.BytesIO(self.whole("files.tar.gz")), mode="r:gz") as tar:
            return {member.name.removeprefix("./") for member in tar if member.isfile()}


@pytest.fixture
async def rollouts() -> AsyncIterator[ExecuteRollout]:
    engine, clock = BubblewrapEngine(find_bubblewrap()), SystemClock()
    execute_pytest = ExecutePytest(engine, pytest_runner, lambda: uuid.uuid4().hex)
    try:
        yield ExecuteRollout(VerifyRollout(execute_pytest), ExecuteAgent(clock), asyncio.Semaphore(1), clock)
    finally:
        await engine.close()


async def performed(rollouts: ExecuteRollout, folder: Path, parts: Parts) -> dict[str, Any]:
    """The record of the task's own solution."""
    rollout_spec = RolloutSpec(read_task(folder), RolloutAgent(AgentKind.ORACLE))
    async with asyncio.timeout(60):
        done = await rollouts.execute(RolloutExecution(rollout_spec, "session", sink=parts))
    record: dict[str, Any] = json.loads(done.record_json)
    return record


FIRST, SECOND = "steps/first/solution/solve.sh", "steps/second/solution/solve.sh"


async def test_artifacts_are_those_of_the_last_step_where_it_leaves_less(
    rollouts: ExecuteRollout, tmp_path: Path
) -> None:
    folder = steps_folder(tmp_path / "a")
    large = "head -c 3000000 /dev/urandom > large.bin; echo '# x' >> doubling.py\n"
    write(
        folder, {FIRST: large, SECOND: "rm large.bin form.txt given.txt setup.sh; sed -i '$d' doubling.py\n"}
    )
    parts = Parts()
    record = await performed(rollouts, folder, parts)
    assert parts.files == {"doubling.py"}
    assert record["diff"] == ""
    assert parts.whole("diff.patch") == b""
    assert {name for name, _ in parts.stored} == {"files.tar.gz", "trajectory.json", "verifier.log"}


async def test_artifacts_are_those_of_the_step_before_where_one_cannot_begin(
    rollouts: ExecuteRollout, tmp_path: Path
) -> None:
    folder, parts = steps_folder(tmp_path / "a"), Parts()
    write(folder, {"steps/second/workdir/setup.sh": "exit 3\n"})
    with pytest.raises(StepNotPrepared):
        await performed(rollouts, folder, parts)
    assert parts.files == {"doubling.py"}
    assert b"+++ b/doubling.py" in parts.whole("diff.patch")


async def test_a_step_without_a_solution_does_not_execute_that_of_the_step_before(
    rollouts: ExecuteRollout, tmp_path: Path
) -> None:
    folder = steps_folder(tmp_path / "a")
    write(folder, {FIRST: "echo again >> count.txt\n"})
    (folder / SECOND).unlink()
    record = await performed(rollouts, folder, Parts())
    assert "+again" in record["diff"]
    assert record["diff"].count("+again") == 1
