"""Cost of a rollout beside its model: CPU of the worker and of what it starts, and time; also 16 at once.

Each rollout is that of a trivial task: an agent of two steps, files in and out, a second sandbox with tests.
Beside it the price of its parts, and of HumanEval's own solutions executed and judged (with
`PROCTOR_DATA_DIR`). `PROCTOR_BENCH_ROLLOUTS` sets how many of each are measured (default 50).
"""

import asyncio
import json
import os
import tempfile
import time
import uuid
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import median

from rich.console import Console
from rich.table import Table

from proctor.values.code import CodeCheck
from proctor.values.outcome import Answer
from proctor.values.plain import Json
from proctor.values.rollout import AgentKind, RolloutAgent, RolloutSpec
from proctor.values.sample import ChatMessage
from proctor.values.usage import Timing, TokenUsage
from services.common.clock import SystemClock
from services.common.sandboxes.bubblewrap.engine import BubblewrapEngine, find_bubblewrap
from services.common.sandboxes.sandbox import Command, SandboxSpec
from services.worker.engines.engine import EngineResponse
from services.worker.rollouts.execute_agent import ExecuteAgent
from services.worker.rollouts.execute_rollout import ExecuteRollout, RolloutExecution
from services.worker.verification.check_code import CheckCode
from services.worker.verification.execute_pytest import ExecutePytest
from services.worker.verification.pytest_runner import pytest_runner
from services.worker.verification.verify_rollout import VerifyRollout
from tests.bench.harness.process_tree import usage_of_tree
from tests.harness.rollout_tasks import RIGHT, harbor_folder, read_task

COUNT = int(os.environ.get("PROCTOR_BENCH_ROLLOUTS", "50"))
PARALLEL = (1, 16)
ANSWERS = 100
LIMIT_SECONDS = 600.0
# Written by the test itself: what is measured is the machinery, and not an interpreter with pytest.
GRADE = 'grep -q "return 2" doubling.py'

Action = Callable[[], Awaitable[object]]


@dataclass(frozen=True, slots=True)
class Cost:
    """Seconds for one action, on average; the median of latencies."""

    what: str
    parallel: int
    cpu_seconds: float
    own_cpu_seconds: float
    wall_seconds: float
    latency_seconds: float


async def measured(what: str, parallel: int, actions: list[Action]) -> Cost:
    """CPU is that of this process and of all it starts: launcher, bubblewrap, commands."""
    slots, latencies = asyncio.Semaphore(parallel), []

    async def act(action: Action) -> None:
        async with slots:
            began = time.monotonic()
            await action()
            latencies.append(time.monotonic() - began)

    cpu, own, began = usage_of_tree(os.getpid()).cpu_seconds, time.process_time(), time.monotonic()
    async with asyncio.timeout(LIMIT_SECONDS):
        await asyncio.gather(*(act(action) for action in actions))
    count = len(actions)
    return Cost(
        what=what,
        parallel=parallel,
        cpu_seconds=(usage_of_tree(os.getpid()).cpu_seconds - cpu) / count,
        own_cpu_seconds=(time.process_time() - own) / count,
        wall_seconds=(time.monotonic() - began) / count,
        latency_seconds=median(latencies),
    )


class Script:
    """Two answers of a model that asks nothing of the machine."""

    def __init__(self) -> None:
        right = RIGHT.encode("unicode_escape").decode()
        done = "echo COMPLETE_TASK_AND_SUBMIT_FINAL_OUTPUT"
        self._commands = iter((f"printf '{right}' > doubling.py", done))

    async def __call__(
        self,
        messages: tuple[ChatMessage, ...],
        params: Mapping[str, object] | None = None,
        *,
        tools: Sequence[Json] = (),
    ) -> EngineResponse:
        assert messages
        assert tools
        assert params is None
        answer = Answer(f"```bash\n{next(self._commands)}\n```", "stop")
        return EngineResponse(answer, TokenUsage(10, 10), Timing(0.0))


def rollouts_of(engine: BubblewrapEngine, folder: Path) -> Action:
    task = read_task(harbor_folder(folder / "task", test=GRADE))
    clock = SystemClock()
    verifier = VerifyRollout(ExecutePytest(engine, pytest_runner, lambda: uuid.uuid4().hex))
    executing = ExecuteRollout(
        verifier=verifier, agents=ExecuteAgent(clock), slots=asyncio.Semaphore(max(PARALLEL)), clock=clock
    )

    async def one() -> None:
        rollout_spec = RolloutSpec(task, RolloutAgent(AgentKind.SHELL))
        rollout_result = await executing.execute(
            RolloutExecution(rollout_spec, uuid.uuid4().hex, "openai/fake", Script())
        )
        assert rollout_result.result.score == 1.0, rollout_result.result

    return one


def answers_of(engine: BubblewrapEngine, parallel: int) -> list[Action]:
    folder = os.environ.get("PROCTOR_DATA_DIR")
    if not folder:
        return []
    lines = (Path(folder) / "gen/humaneval.test.jsonl").read_text(encoding="utf-8").splitlines()
    checking = CheckCode(engine, asyncio.Semaphore(parallel), lambda: uuid.uuid4().hex)

    def judging(row: dict[str, str]) -> Action:
        check = CodeCheck(row["prompt"], f"{row['test']}\ncheck({row['entry_point']})")

        async def judge() -> None:
            assert (await checking.check(check, row["canonical_solution"])).is_passed

        return judge

    return [judging(json.loads(line)) for line in lines[:ANSWERS]]


async def costs(folder: Path) -> list[Cost]:
    engine = BubblewrapEngine(find_bubblewrap())
    try:
        rollout = rollouts_of(engine, folder)

        async def opened() -> None:
            await (await engine.open(SandboxSpec())).close()

        sandbox = await engine.open(SandboxSpec())

        async def command() -> None:
            assert (await sandbox.run(Command(("true",)))).is_success

        # The first of each reads programs from disk.
        for action in (rollout, opened, command):
            await action()
        found = []
        for parallel in PARALLEL:
            found.append(await measured("open and close a sandbox", parallel, [opened] * COUNT))
            found.append(await measured("a command (true)", parallel, [command] * COUNT))
            found.append(await measured("a whole rollout", parallel, [rollout] * COUNT))
            if answers := answers_of(engine, parallel):
                found.append(await measured("an answer of HumanEval, judged", parallel, answers))
        await sandbox.close()
        return found
    finally:
        await engine.close()


async def main() -> None:
    with tempfile.TemporaryDirectory() as folder:
        found = await costs(Path(folder))
    table = Table(title=f"Rollouts without their model, {COUNT} of each ({ANSWERS} answers)")
    for column in ("what", "at a time", "CPU ms", "of it the worker", "wall ÷ n ms", "latency ms"):
        table.add_column(column, justify="left" if column == "what" else "right")
    for cost in found:
        seconds = (cost.cpu_seconds, cost.own_cpu_seconds, cost.wall_seconds, cost.latency_seconds)
        table.add_row(cost.what, str(cost.parallel), *(f"{each * 1000:.1f}" for each in seconds))
    Console(width=110).print(table)
