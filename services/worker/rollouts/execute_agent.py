"""Lets an agent work in an open sandbox until it submits, or a budget is used up."""

import asyncio
from dataclasses import dataclass

from proctor.values.rollout import AgentKind, RolloutSpec
from services.common.clock import Clock
from services.common.sandboxes.ports import Sandbox
from services.common.sandboxes.sandbox import Command
from services.worker.rollouts.agent_work import AgentWork
from services.worker.rollouts.model_port.execute_program import ExecuteProgram
from services.worker.rollouts.model_port.port_calls import PortCalls
from services.worker.rollouts.ports import AskModel
from services.worker.rollouts.rollout_result import AgentEnd
from services.worker.rollouts.shell.execute_shell import ExecuteShell, shell_command
from services.worker.rollouts.shell.mini_blocks import MiniBlocks
from services.worker.rollouts.shell.shell_protocol import observation
from services.worker.rollouts.terminus.execute_terminus import ExecuteTerminus
from services.worker.rollouts.trajectory import Trajectory
from services.worker.verification.bundles import inflated_scripts

SOLUTION = "/solution"
_SOLVE = f"{SOLUTION}/solve.sh"


@dataclass(frozen=True, slots=True)
class ExecuteAgent:
    clock: Clock
    programs: ExecuteProgram | None = None

    async def execute(self, sandbox: Sandbox, work: AgentWork) -> AgentEnd:
        rollout_spec, trajectory = work.rollout_spec, work.trajectory
        if rollout_spec.agent.kind is AgentKind.NONE:
            return AgentEnd.SUBMITTED
        if rollout_spec.agent.kind is AgentKind.ORACLE or work.ask is None:
            return await self._solve(sandbox, rollout_spec, trajectory)
        if rollout_spec.agent.kind is AgentKind.COMMAND:
            return await self._execute_program(sandbox, work, work.ask)
        if rollout_spec.agent.kind is AgentKind.MINI:
            return await ExecuteShell(self.clock, (MiniBlocks(),)).execute(sandbox, work, work.ask)
        if rollout_spec.agent.kind is AgentKind.TERMINUS:
            return await ExecuteTerminus(self.clock).execute(sandbox, work, work.ask)
        return await ExecuteShell(self.clock).execute(sandbox, work, work.ask)

    async def _execute_program(self, sandbox: Sandbox, work: AgentWork, ask: AskModel) -> AgentEnd:
        assert self.programs is not None
        calls = PortCalls(ask, work.budget, work.trajectory, work.checkpoint, self.clock)
        return await self.programs.execute(sandbox, work, calls)

    async def _solve(self, sandbox: Sandbox, rollout_spec: RolloutSpec, trajectory: Trajectory) -> AgentEnd:
        # That of an earlier step of the task must not be executed again.
        await sandbox.run(Command(("rm", "-rf", "--", _SOLVE), cwd="/"))
        await sandbox.put(SOLUTION, await asyncio.to_thread(inflated_scripts, rollout_spec.task.solution))
        seconds = rollout_spec.task.limits.agent_seconds
        result = await sandbox.run(shell_command(rollout_spec, ("bash", _SOLVE), seconds))
        trajectory.add("agent", "The solution of the task.", self.clock.now())
        trajectory.add_action(f"bash {_SOLVE}", observation(result, seconds))
        return AgentEnd.SUBMITTED
