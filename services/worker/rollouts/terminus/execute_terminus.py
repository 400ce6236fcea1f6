"""Lets a model work in a terminal: it types, waits, and is shown the screen."""

import asyncio
import json
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from proctor.values.rollout import RolloutTask
from proctor.values.sample import ChatMessage
from services.common.clock import Clock
from services.common.sandboxes.errors import CommandRefused, SandboxError
from services.common.sandboxes.ports import Sandbox
from services.worker.rollouts.agent_work import AgentWork
from services.worker.rollouts.errors import ContextFull
from services.worker.rollouts.ports import AskModel
from services.worker.rollouts.rollout_result import AgentEnd
from services.worker.rollouts.terminus import prompts
from services.worker.rollouts.terminus.answer import TerminusAnswer, read_answer
from services.worker.rollouts.terminus.ports import Terminal
from services.worker.rollouts.terminus.pty import PtyTerminal
from services.worker.rollouts.terminus.terminal import SeenTerminal, TerminalEnded
from services.worker.rollouts.terminus.tmux import TmuxTerminal

_TOOL, _DONE = "bash_command", "mark_task_complete"
_LENGTH = "length"
_MAX_CAUSE_CHARACTERS = 300
# Answers in a row of which nothing can be executed: each is sent again with all that follow.
_ERRORS_ALLOWED = 10


class NoTerminal(SandboxError):
    """The agent terminus needs bash and tmux, or bash and python3, in the task's image. {cause}"""


async def open_terminal(sandbox: Sandbox, task: RolloutTask) -> Terminal:
    """Raises NoTerminal."""
    environment = {
        "TERM": "xterm-256color",
        "SHELL": "/bin/bash",
        "LANG": "C.UTF-8",
        "TMUX_TMPDIR": "/tmp",  # noqa: S108  # inside
        **task.environment,
    }
    tmux = TmuxTerminal(sandbox, environment)
    own = PtyTerminal(sandbox, environment)
    try:
        if await tmux.start(task.cwd):
            return tmux
        started = await own.start(task.cwd)
    except CommandRefused as refused:
        raise NoTerminal(cause=str(refused)) from refused
    if not started.is_success:
        raise NoTerminal(cause=started.text.strip()[-_MAX_CAUSE_CHARACTERS:])
    return own


@dataclass(slots=True)
class _Session:
    """The conversation and its terminal. `is_pending`: the last answer called the task done."""

    sandbox: Sandbox
    work: AgentWork
    ask: AskModel
    clock: Clock
    seen: SeenTerminal
    history: tuple[ChatMessage, ...] = ()
    is_pending: bool = False
    errors: int = 0

    async def begin(self) -> None:
        self.say(prompts.opening(self.work.rollout_spec.task.instruction, await self._look()))

    def say(self, text: str) -> None:
        self.history = (*self.history, ChatMessage("user", text))

    async def execute(self, answer: TerminusAnswer) -> tuple[str, AgentEnd | None]:
        """The observation, and the end of the agent where it is there."""
        try:
            await self._type(answer)
            state = await self._look()
        except TerminalEnded:
            state = await self._reopened()
        if answer.is_complete and self.is_pending:
            return prompts.shown(state), AgentEnd.SUBMITTED
        self.is_pending = answer.is_complete
        end = self.work.budget.time_limit()
        if answer.is_complete:
            return prompts.confirmation(state), end
        return prompts.observation(state, answer.warnings), end

    async def _type(self, answer: TerminusAnswer) -> None:
        """Raises TerminalEnded."""
        budget, longest = self.work.budget, self.work.rollout_spec.agent.command_seconds
        for command in answer.commands:
            with self._counted():
                await self.seen.terminal.send(command.keys)
                await asyncio.sleep(max(min(command.seconds, longest, budget.seconds_left), 0.0))
            if budget.time_limit():
                return

    async def _look(self) -> str:
        try:
            with self._counted():
                return await self.seen.look()
        except TerminalEnded:
            return await self._reopened()

    async def _reopened(self) -> str:
        """An agent that ends its own terminal goes on in a new one."""
        with self._counted():
            self.seen = SeenTerminal(await open_terminal(self.sandbox, self.work.rollout_spec.task))
            try:
                return f"{prompts.ENDED}{await self.seen.look()}"
            except TerminalEnded:
                return prompts.ENDED

    @contextmanager
    def _counted(self) -> Iterator[None]:
        """What the agent makes slow uses up its time."""
        began = self.clock.monotonic()
        try:
            yield
        finally:
            self.work.budget.add_seconds(self.clock.monotonic() - began)


@dataclass(frozen=True, slots=True)
class ExecuteTerminus:
    clock: Clock

    async def execute(self, sandbox: Sandbox, work: AgentWork, ask: AskModel) -> AgentEnd:
        """Raises NoTerminal, and what the model raises."""
        terminal = await open_terminal(sandbox, work.rollout_spec.task)
        session = _Session(sandbox, work, ask, self.clock, SeenTerminal(terminal))
        await session.begin()
        budget, trajectory = work.budget, work.trajectory
        trajectory.open((), len(trajectory.steps))
        trajectory.add("user", session.history[0].content, self.clock.now())
        while True:
            if end := await budget.begin_agent_step():
                return end
            try:
                response = await ask(session.history)
            except ContextFull:
                return AgentEnd.CONTEXT_FULL
            text = response.answer.text
            session.history = (*session.history, ChatMessage("assistant", text))
            trajectory.add_answer(text, response.usage, self.clock.now())
            await budget.add_answer(response.usage, response.timing.total_seconds)
            if end := budget.time_limit():
                return end
            is_cut_off = response.answer.finish_reason == _LENGTH
            if end := await self._execute(session, read_answer(text), is_cut_off=is_cut_off):
                return end
            await work.checkpoint(trajectory)

    async def _execute(
        self, session: _Session, answer: TerminusAnswer, *, is_cut_off: bool
    ) -> AgentEnd | None:
        trajectory = session.work.trajectory
        if is_cut_off or answer.error:
            reply = prompts.cut_off() if is_cut_off else prompts.not_read(answer.error, answer.warnings)
            trajectory.add("user", reply, self.clock.now())
            session.say(reply)
            session.errors += 1
            return AgentEnd.NO_COMMANDS if session.errors == _ERRORS_ALLOWED else None
        session.errors = 0
        call = _show_calls(session.work, answer)
        reply, end = await session.execute(answer)
        trajectory.add_result(call, reply, self.clock.now())
        session.say(reply)
        return end


def _show_calls(work: AgentWork, answer: TerminusAnswer) -> str:
    """The id of the last call, which has the observation; empty where there is none."""
    step, call = len(work.trajectory.steps), ""
    for number, command in enumerate(answer.commands, 1):
        call = f"call_{step}_{number}"
        arguments = {"keystrokes": command.keys, "duration": command.seconds}
        work.trajectory.add_call(call, _TOOL, json.dumps(arguments))
    if answer.is_complete:
        call = f"call_{step}_{_DONE}"
        work.trajectory.add_call(call, _DONE, "{}")
    return call
