"""A program as the agent of a task: each of several steps reaches the model from the same sandbox, which has
what programs need to begin."""

import asyncio
from collections.abc import Mapping
from datetime import UTC, datetime
from pathlib import Path

import pytest

from proctor.values.outcome import Answer
from proctor.values.rollout import AgentKind, RolloutAgent, RolloutSpec, RolloutTask, VerifierKind
from proctor.values.sample import ChatMessage
from proctor.values.usage import Timing, TokenUsage
from services.common.clock import SystemClock
from services.common.sandboxes.ports import Sandbox, SandboxEngine
from services.common.sandboxes.sandbox import Command
from services.worker.engines.engine import EngineResponse
from services.worker.rollouts.agent_work import AgentWork
from services.worker.rollouts.budget import Budget
from services.worker.rollouts.execute_agent import ExecuteAgent
from services.worker.rollouts.model_port.execute_program import ExecuteProgram
from services.worker.rollouts.model_port.http import served_model
from services.worker.rollouts.rollout_result import AgentEnd
from services.worker.rollouts.trajectory import Trajectory
from tests.integration.worker.sandboxes.conftest import CONTRACT_ENGINES, PROCESS_ENGINES, SMALL

_PROGRAM = """
import json, sys, urllib.request
body = json.dumps({"messages": [{"role": "user", "content": sys.argv[3]}]}).encode()
headers = {"Authorization": "Bearer " + sys.argv[2], "Content-Type": "application/json"}
urllib.request.urlopen(urllib.request.Request(sys.argv[1] + "/chat/completions", body, headers), timeout=20)
"""


class Model:
    def __init__(self) -> None:
        self.asked: list[str] = []

    async def __call__(
        self,
        messages: tuple[ChatMessage, ...],
        params: Mapping[str, object] | None = None,  # noqa: ARG002  # the port
        *,
        tools: object = (),  # noqa: ARG002  # the port
    ) -> EngineResponse:
        self.asked.append(messages[-1].content)
        return EngineResponse(Answer("Done.", "stop"), TokenUsage(10, 5), Timing(0.001))


async def worked(sandbox: Sandbox, model: Model, instruction: str, budget: Budget) -> AgentEnd:
    task = RolloutTask("task", instruction, VerifierKind.REWARD_FILE, workdir="/work", cwd="/work")
    trajectory = Trajectory("session", "proctor-command", "model")
    trajectory.add("user", instruction, datetime(2026, 1, 1, tzinfo=UTC))
    work = AgentWork(RolloutSpec(task, budget.agent), model, trajectory, budget)
    programs = ExecuteProgram(served_model, lambda: f"token of {instruction}", SystemClock())
    end = await ExecuteAgent(SystemClock(), programs).execute(sandbox, work)
    await sandbox.stop_processes()
    return end


@pytest.mark.parametrize("engine", CONTRACT_ENGINES, indirect=True)
async def test_a_program_reaches_its_model_in_each_step_of_a_task(engine: SandboxEngine) -> None:
    command = ("python3", "-c", _PROGRAM, "{base_url}", "{token}", "{instruction}")
    budget = Budget(RolloutAgent(AgentKind.COMMAND, command=command), 60.0)
    model, sandbox = Model(), await engine.open(SMALL)
    try:
        async with asyncio.timeout(60):
            ends = [await worked(sandbox, model, step, budget) for step in ("first", "second", "third")]
    finally:
        await sandbox.close()
    assert ends == [AgentEnd.SUBMITTED] * 3
    assert model.asked == ["first", "second", "third"]
    assert budget.used.agent_steps == 3


@pytest.mark.parametrize("engine", PROCESS_ENGINES, indirect=True)
async def test_programs_find_the_certificates_of_the_machine(engine: SandboxEngine) -> None:
    """Without any, clients of HTTPS do not begin, such as those of agents' programs."""
    sandbox = await engine.open(SMALL)
    listed = await sandbox.run(
        Command(("sh", "-c", "ls /etc/ssl/certs; touch /etc/ssl/certs/x || ls /etc/ssl"))
    )
    await sandbox.close()
    *names, refused, folders = listed.text.splitlines()
    there = Path("/etc/ssl/certs")
    assert sorted(names) == sorted(each.name for each in there.iterdir())
    assert "Read-only file system" in refused
    assert folders == "certs"
