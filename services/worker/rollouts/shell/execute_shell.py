"""Lets a model work in a shell: asks it, executes its commands, and shows it what came of them."""

from collections.abc import Sequence
from dataclasses import dataclass

from proctor.values.rollout import RolloutSpec
from proctor.values.sample import ChatMessage
from services.common.clock import Clock
from services.common.sandboxes.errors import CommandRefused
from services.common.sandboxes.ports import Sandbox
from services.common.sandboxes.sandbox import Command, CommandResult
from services.worker.engines.engine import EngineResponse
from services.worker.engines.tool_calls import result_turn
from services.worker.rollouts.agent_work import AgentWork
from services.worker.rollouts.errors import ContextFull, ToolsRefused
from services.worker.rollouts.ports import AskModel
from services.worker.rollouts.rollout_result import AgentEnd
from services.worker.rollouts.shell.answer_form import (
    FencedBlocks,
    ShellAnswer,
    ShellCall,
    ToolCalls,
)
from services.worker.rollouts.shell.ports import AnswerForm
from services.worker.rollouts.shell.shell_protocol import ENVIRONMENT, is_submission

# More than the model is shown: the middle is cut out of this.
OUTPUT_BYTES = 60_000
# Maximum number of format errors in a row: a model that does not find the form by then mostly never does.
_FORMAT_ERRORS_ALLOWED = 3
# What a shell returns for a command that it cannot run.
_REFUSED = 126


@dataclass(slots=True)
class _Conversation:
    """A history that grows. Its form is chosen by the first answer."""

    work: AgentWork
    ask: AskModel
    clock: Clock
    # Those after the first are for providers that refuse its tools.
    forms: Sequence[AnswerForm]
    history: tuple[ChatMessage, ...] = ()
    format_errors: int = 0
    is_begun: bool = False
    # Steps of the trajectory from earlier task steps.
    kept: int = 0

    @property
    def form(self) -> AnswerForm:
        return self.forms[0]

    def open(self) -> None:
        task, trajectory = self.work.rollout_spec.task, self.work.trajectory
        self.history = self.form.opening(task.instruction, task.cwd)
        trajectory.open(self.form.tools, self.kept)
        for message in self.history:
            trajectory.add(message.role, message.content, self.clock.now())

    async def answer(self) -> EngineResponse:
        """Raises ContextFull, and what the model raises."""
        try:
            response = await self.ask(self.history, tools=self.form.tools)
        except ToolsRefused:
            if self.is_begun or not self.forms[1:]:
                raise
            self.forms = self.forms[1:]
            self.open()
            response = await self.ask(self.history, tools=self.form.tools)
        self.is_begun = True
        return response

    def reply(self, message: ChatMessage) -> None:
        self.history = (*self.history, message)


@dataclass(frozen=True, slots=True)
class ExecuteShell:
    """By default a model calls a tool, or writes fenced blocks where its provider refuses tools."""

    clock: Clock
    forms: Sequence[AnswerForm] = (ToolCalls(), FencedBlocks())

    async def execute(self, sandbox: Sandbox, work: AgentWork, ask: AskModel) -> AgentEnd:
        kept = len(work.trajectory.steps)
        conversation = _Conversation(work, ask, self.clock, self.forms, kept=kept)
        conversation.open()
        # The time of answers and commands. Waits for a provider that hangs, limits the rate or is away do not
        # count: calls have limits of their own, and a call that fails ends the rollout without a score.
        budget, trajectory = work.budget, work.trajectory
        while True:
            if end := await budget.begin_agent_step():
                return end
            try:
                response = await conversation.answer()
            except ContextFull:
                return AgentEnd.CONTEXT_FULL
            trajectory.add_answer(response.answer.text, response.usage, self.clock.now())
            await budget.add_answer(response.usage, response.timing.total_seconds)
            read = conversation.form.read(response.answer)
            _show_calls(work, read)
            if end := budget.time_limit():
                return end
            if end := await self._execute(sandbox, conversation, read):
                return end
            await work.checkpoint(trajectory)

    async def _execute(
        self, sandbox: Sandbox, conversation: _Conversation, read: ShellAnswer
    ) -> AgentEnd | None:
        """Why the agent is at its end; None where it goes on."""
        conversation.reply(read.turn)
        for call in read.calls:
            reply, end = await self._execute_call(sandbox, conversation, call)
            conversation.work.trajectory.add_result(
                _call_id(conversation.work, call), reply, self.clock.now()
            )
            conversation.reply(
                result_turn(call.call_id, reply) if call.call_id else ChatMessage("user", reply)
            )
            if end:
                return end
        if any(not call.problem for call in read.calls):
            conversation.format_errors = 0
            return None
        conversation.format_errors += 1
        if conversation.format_errors == _FORMAT_ERRORS_ALLOWED:
            return AgentEnd.NO_COMMANDS
        if read.correction:
            conversation.work.trajectory.add("user", read.correction, self.clock.now())
            conversation.reply(ChatMessage("user", read.correction))
        return None

    async def _execute_call(
        self, sandbox: Sandbox, conversation: _Conversation, call: ShellCall
    ) -> tuple[str, AgentEnd | None]:
        if call.problem:
            return call.problem, None
        work, budget = conversation.work, conversation.work.budget
        seconds = min(work.rollout_spec.agent.command_seconds, budget.seconds_left)
        result = await _run(sandbox, work.rollout_spec, call.command, seconds)
        budget.add_seconds(result.seconds)
        end = AgentEnd.SUBMITTED if is_submission(result) else budget.time_limit()
        return conversation.form.observation(result, seconds), end


def _show_calls(work: AgentWork, read: ShellAnswer) -> None:
    for call in read.calls:
        work.trajectory.add_call(_call_id(work, call), call.tool, call.arguments)


def _call_id(work: AgentWork, call: ShellCall) -> str:
    """A block has no id of its own; it is the only one of its step."""
    return call.call_id or f"call_{len(work.trajectory.steps)}"


async def _run(sandbox: Sandbox, rollout_spec: RolloutSpec, command: str, seconds: float) -> CommandResult:
    """A command that cannot be started is the agent's own mistake."""
    try:
        return await sandbox.run(shell_command(rollout_spec, ("bash", "-c", command), seconds))
    except CommandRefused as refused:
        return CommandResult(_REFUSED, str(refused).encode())


def shell_command(rollout_spec: RolloutSpec, argv: tuple[str, ...], seconds: float) -> Command:
    return Command(
        argv,
        cwd=rollout_spec.task.cwd,
        env={**ENVIRONMENT, **rollout_spec.task.environment},
        timeout_seconds=seconds,
        output_bytes=OUTPUT_BYTES,
    )
