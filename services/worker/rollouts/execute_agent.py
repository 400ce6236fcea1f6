"""Lets an agent work in an open sandbox until it submits, or a budget is used up."""

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass

from proctor.values.rollout import AgentKind, Rollout
from proctor.values.sample import ChatMessage
from services.common.clock import Clock
from services.worker.rollouts.budget import Budget
from services.worker.rollouts.errors import ContextFull
from services.worker.rollouts.model_port.execute_program import ExecuteProgram
from services.worker.rollouts.model_port.port_calls import PortCalls
from services.worker.rollouts.performed import AgentEnd
from services.worker.rollouts.ports import AskModel
from services.worker.rollouts.shell_protocol import (
    ENVIRONMENT,
    commands_in,
    correction,
    is_submission,
    observation,
    opening,
)
from services.worker.rollouts.transcript import Transcript
from services.worker.sandboxes.errors import CommandRefused
from services.worker.sandboxes.ports import Sandbox
from services.worker.sandboxes.sandbox import Command, CommandResult
from services.worker.verification.bundles import inflated

SOLUTION = "/solution"
_SOLVE = f"{SOLUTION}/solve.sh"
# Above what the model is shown (`_MAX_OUTPUT_LENGTH`): the middle is cut out of this.
OUTPUT_BYTES = 60_000
# In a row: a model that does not find the form by then mostly never does.
_FORMAT_ERRORS_ALLOWED = 3
_LENGTH = "length"
# What a shell returns for a command that it cannot run.
_REFUSED = 126


async def _keep_nothing(_: Transcript) -> None:
    """The default checkpoint."""


@dataclass(frozen=True, slots=True)
class AgentWork:
    """`ask` is needed by agents that have a model; `checkpoint` is called after each of their steps."""

    rollout: Rollout
    ask: AskModel | None
    transcript: Transcript
    budget: Budget
    checkpoint: Callable[[Transcript], Awaitable[None]] = _keep_nothing


@dataclass(frozen=True, slots=True)
class ExecuteAgent:
    clock: Clock
    programs: ExecuteProgram | None = None

    async def execute(self, sandbox: Sandbox, work: AgentWork) -> AgentEnd:
        rollout, transcript = work.rollout, work.transcript
        if rollout.agent.kind is AgentKind.NONE:
            return AgentEnd.SUBMITTED
        if rollout.agent.kind is AgentKind.ORACLE or work.ask is None:
            return await self._solve(sandbox, rollout, transcript)
        if rollout.agent.kind is AgentKind.COMMAND:
            return await self._execute_program(sandbox, work, work.ask)
        return await self._converse(sandbox, work, work.ask)

    async def _execute_program(self, sandbox: Sandbox, work: AgentWork, ask: AskModel) -> AgentEnd:
        assert self.programs is not None
        calls = PortCalls(ask, work.budget, work.transcript, work.checkpoint, self.clock)
        return await self.programs.execute(sandbox, work.rollout, work.transcript.model, calls)

    async def _solve(self, sandbox: Sandbox, rollout: Rollout, transcript: Transcript) -> AgentEnd:
        await sandbox.put(SOLUTION, await asyncio.to_thread(inflated, rollout.task.solution))
        result = await sandbox.run(_command(rollout, ("bash", _SOLVE), rollout.task.limits.agent_seconds))
        transcript.add("agent", "The solution of the task.", self.clock.now())
        transcript.add_action(f"bash {_SOLVE}", observation(result, rollout.task.limits.agent_seconds))
        return AgentEnd.SUBMITTED

    async def _converse(self, sandbox: Sandbox, work: AgentWork, ask: AskModel) -> AgentEnd:
        rollout, transcript = work.rollout, work.transcript
        messages = opening(rollout.task.instruction, rollout.task.cwd)
        for message in messages:
            transcript.add(message.role, message.content, self.clock.now())
        history: tuple[ChatMessage, ...] = messages
        format_errors = 0
        # The time of answers and commands. Waits for a provider that hangs, limits the rate or is away do not
        # count: calls have limits of their own, and a call that fails ends the rollout without a score.
        budget = work.budget
        while True:
            if end := await budget.begin_step():
                return end
            try:
                answer = await ask(history)
            except ContextFull:
                return AgentEnd.CONTEXT_FULL
            transcript.add_answer(answer.text, answer.usage, self.clock.now())
            budget.add_answer(answer.usage, answer.timing.total_seconds)
            if end := budget.time_limit():
                return end
            commands = commands_in(answer.text)
            if len(commands) == 1:
                format_errors = 0
                command_seconds = min(rollout.agent.command_seconds, budget.seconds_left)
                result = await _run(sandbox, rollout, commands[0], command_seconds)
                budget.add_seconds(result.seconds)
                reply = observation(result, command_seconds)
                transcript.add_action(commands[0], reply)
                if is_submission(result):
                    return AgentEnd.SUBMITTED
                if end := budget.time_limit():
                    return end
            else:
                format_errors += 1
                if format_errors == _FORMAT_ERRORS_ALLOWED:
                    return AgentEnd.NO_COMMANDS
                reply = correction(len(commands), is_cut_off=answer.finish_reason == _LENGTH)
                transcript.add("user", reply, self.clock.now())
            await work.checkpoint(transcript)
            history = (*history, ChatMessage("assistant", answer.text), ChatMessage("user", reply))


async def _run(sandbox: Sandbox, rollout: Rollout, command: str, seconds: float) -> CommandResult:
    """A command that cannot be started is the agent's own mistake."""
    try:
        return await sandbox.run(_command(rollout, ("bash", "-c", command), seconds))
    except CommandRefused as refused:
        return CommandResult(_REFUSED, str(refused).encode())


def _command(rollout: Rollout, argv: tuple[str, ...], seconds: float) -> Command:
    return Command(
        argv,
        cwd=rollout.task.cwd,
        env={**ENVIRONMENT, **rollout.task.environment},
        timeout_seconds=seconds,
        output_bytes=OUTPUT_BYTES,
    )
