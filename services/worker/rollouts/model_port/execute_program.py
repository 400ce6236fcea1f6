"""Lets a program work on a task in its sandbox, with the model at a port of the sandbox's loopback."""

import asyncio
import socket
from collections.abc import Awaitable, Callable, Mapping
from contextlib import AbstractAsyncContextManager, suppress
from dataclasses import dataclass

from proctor.values.agents.templates import TEMPLATES, AgentTemplate, filled
from proctor.values.rollout import RolloutSpec
from services.common.clock import Clock
from services.common.sandboxes.errors import CommandRefused, SandboxError
from services.common.sandboxes.ports import Sandbox
from services.common.sandboxes.sandbox import DEFAULT_PATH, Command, CommandResult
from services.worker.rollouts.agent_work import AgentWork
from services.worker.rollouts.budget import WAITS_SECONDS
from services.worker.rollouts.model_port.model_call import ModelAnswer, ModelCall
from services.worker.rollouts.model_port.port_calls import PortCalls
from services.worker.rollouts.programs.agent_program import path_with_program
from services.worker.rollouts.rollout_result import AgentEnd
from services.worker.rollouts.shell.execute_shell import OUTPUT_BYTES
from services.worker.rollouts.shell.shell_protocol import ENVIRONMENT

PORT = 8080
_POLL_SECONDS = 0.2
_MAX_SHOWN_CHARACTERS = 300

ServeModel = Callable[
    [socket.socket, str, Callable[[ModelCall], Awaitable[ModelAnswer]]], AbstractAsyncContextManager[None]
]


class ProgramNotStarted(SandboxError):
    """The agent's program {program} asked its model nothing and failed ({cause}). Install it in the image, or
    put it into the folder that PROCTOR_WORKER_AGENT_PROGRAMS of the worker names.
    """


@dataclass(frozen=True, slots=True)
class ExecuteProgram:
    """`new_token` gives a word that no one can guess; `serve` listens on the port until its block ends."""

    serve: ServeModel
    new_token: Callable[[], str]
    clock: Clock

    async def execute(self, sandbox: Sandbox, work: AgentWork, calls: PortCalls) -> AgentEnd:
        """Raises what its model raised, ProgramNotStarted, and BudgetLost."""
        token = self.new_token()
        # A task of several steps has one budget for the programs of all.
        steps_before = calls.budget.used.agent_steps
        listening = await sandbox.model_port(PORT)
        command = _command(work, token)
        async with self.serve(listening, token, calls.answer):
            calls.begin()
            result = await self._run(sandbox, command, calls)
            calls.note_time()
        if calls.error is not None:
            raise calls.error
        output = result.text
        calls.trajectory.add(
            "system", f"The program ended with exit code {result.exit_code}.\n{output}", self.clock.now()
        )
        if calls.end is not None:
            return calls.end
        if end := calls.budget.time_limit():
            return end
        if result.exit_code and calls.budget.used.agent_steps == steps_before:
            raise ProgramNotStarted(
                program=command.argv[0],
                cause=output.strip()[-_MAX_SHOWN_CHARACTERS:] or f"exit code {result.exit_code}",
            )
        return AgentEnd.SUBMITTED

    async def _run(self, sandbox: Sandbox, command: Command, calls: PortCalls) -> CommandResult:
        """Ends the program where its budgets or its model do."""
        running = asyncio.create_task(sandbox.run(command), name="run an agent's program")
        over = asyncio.create_task(calls.over.wait(), name="wait for the end of its calls")
        try:
            while not running.done():
                seconds = max(calls.seconds_left, _POLL_SECONDS)
                await asyncio.wait((running, over), timeout=seconds, return_when=asyncio.FIRST_COMPLETED)
                if calls.over.is_set() or calls.seconds_left <= 0:
                    calls.over.set()
                    await sandbox.stop_processes()
                    break
            return await running
        except CommandRefused as refused:
            raise ProgramNotStarted(program=command.argv[0], cause=str(refused)) from refused
        finally:
            over.cancel()
            running.cancel()
            with suppress(asyncio.CancelledError, SandboxError):
                await running


def _values(rollout_spec: RolloutSpec, model: str, token: str) -> Mapping[str, str]:
    root_url = f"http://127.0.0.1:{PORT}"
    return {
        "instruction": rollout_spec.task.instruction,
        # Without its provider, which the program would take for one of its own.
        "model": model.partition("/")[2] or model,
        "base_url": f"{root_url}/v1",
        "root_url": root_url,
        "token": token,
    }


def _command(work: AgentWork, token: str) -> Command:
    agent, task = work.rollout_spec.agent, work.rollout_spec.task
    values = _values(work.rollout_spec, work.trajectory.model, token)
    template = TEMPLATES[agent.template] if agent.template else AgentTemplate(agent.command)
    own = {**template.environment, **agent.environment}
    env = {**ENVIRONMENT, **task.environment, **{name: filled(text, values) for name, text in own.items()}}
    if work.program is not None:
        env["PATH"] = path_with_program(env.get("PATH", DEFAULT_PATH))
    return Command(
        tuple(filled(each, values) for each in template.command),
        cwd=task.cwd,
        env=env,
        timeout_seconds=task.limits.agent_seconds + WAITS_SECONDS,
        output_bytes=OUTPUT_BYTES,
    )
