"""The time of an agent: its answers and commands count, waits for a provider do not."""

import asyncio

import pytest

from proctor.values.outcome import Answer
from proctor.values.rollout import RolloutAgent, RolloutLimits, RolloutSpec, RolloutTask, VerifierKind
from proctor.values.sample import ChatMessage
from proctor.values.usage import Timing, TokenUsage
from services.common.clock import SystemClock
from services.common.sandboxes.sandbox import Command, CommandResult, Ended
from services.worker.engines.engine import EngineResponse
from services.worker.engines.errors import EngineFailure
from services.worker.rollouts.agent_work import AgentWork
from services.worker.rollouts.budget import Budget
from services.worker.rollouts.execute_agent import ExecuteAgent
from services.worker.rollouts.rollout_result import AgentEnd
from services.worker.rollouts.shell.shell_protocol import SUBMIT
from services.worker.rollouts.trajectory import Trajectory

AGENT_SECONDS = 0.02


class Shell:
    """Runs nothing: a submission takes no time, every other command all that it may."""

    def __init__(self) -> None:
        self.commands: list[Command] = []

    async def run(self, command: Command) -> CommandResult:
        self.commands.append(command)
        if SUBMIT in command.argv[-1]:
            return CommandResult(0, f"{SUBMIT}\n".encode())
        return CommandResult(137, b"", ended=Ended.TIMED_OUT, seconds=command.timeout_seconds)


class Model:
    """Gives its answers one after the other: each took `seconds`, after a longer wait for the provider."""

    def __init__(self, seconds: float, *answers: str | EngineFailure) -> None:
        self.seconds, self.answers = seconds, list(answers)

    async def __call__(self, _: tuple[ChatMessage, ...], *, tools: object = ()) -> EngineResponse:  # noqa: ARG002  # the port
        await asyncio.sleep(3 * AGENT_SECONDS)
        answer = self.answers.pop(0)
        if isinstance(answer, EngineFailure):
            raise answer
        text = f"I go on.\n\n```bash\n{answer}\n```"
        return EngineResponse(Answer(text, "stop"), TokenUsage(10, 5), Timing(self.seconds))


async def end_of(shell: Shell, model: Model) -> AgentEnd:
    task = RolloutTask(
        "task", "Do it.", VerifierKind.REWARD_FILE, limits=RolloutLimits(agent_seconds=AGENT_SECONDS)
    )
    trajectory = Trajectory("session", "proctor-shell", "model")
    rollout_spec = RolloutSpec(task, RolloutAgent(command_seconds=0.8 * AGENT_SECONDS))
    budget = Budget(rollout_spec.agent, AGENT_SECONDS)
    work = AgentWork(rollout_spec, model, trajectory, budget)  # type: ignore[arg-type]  # it takes any messages
    return await ExecuteAgent(SystemClock()).execute(shell, work)  # type: ignore[arg-type]  # of a sandbox only what an agent needs


async def test_waits_for_a_provider_are_not_the_time_of_the_agent() -> None:
    model = Model(0.1 * AGENT_SECONDS, f"echo {SUBMIT}")
    assert await end_of(Shell(), model) is AgentEnd.SUBMITTED


async def test_a_provider_that_fails_after_the_time_of_the_agent_gives_no_score() -> None:
    with pytest.raises(EngineFailure):
        await end_of(Shell(), Model(0.1 * AGENT_SECONDS, EngineFailure("It hangs.")))


async def test_slow_answers_use_up_the_time_of_the_agent() -> None:
    model = Model(AGENT_SECONDS / 2, "sleep 1", f"echo {SUBMIT}", f"echo {SUBMIT}")
    shell = Shell()
    assert await end_of(shell, model) is AgentEnd.TIME_LIMIT
    assert [command.timeout_seconds for command in shell.commands] == [AGENT_SECONDS / 2]


async def test_a_command_gets_no_more_than_the_time_that_is_left() -> None:
    shell = Shell()
    assert (
        await end_of(shell, Model(0.15 * AGENT_SECONDS, "sleep 1", "sleep 2", "sleep 3"))
        is AgentEnd.TIME_LIMIT
    )
    assert [command.timeout_seconds for command in shell.commands] == [0.8 * AGENT_SECONDS]
