"""The loop of the terminus agent: unreadable answers, the confirmed end, images without a terminal."""

import json
from typing import Any, cast

import pytest

from proctor.values.outcome import Answer
from proctor.values.rollout import AgentKind, RolloutAgent, RolloutSpec, RolloutTask, VerifierKind
from proctor.values.sample import ChatMessage
from proctor.values.usage import Timing, TokenUsage
from services.common.clock import SystemClock
from services.common.sandboxes.errors import CommandRefused
from services.common.sandboxes.ports import Sandbox
from services.common.sandboxes.sandbox import Command, CommandResult
from services.worker.engines.engine import EngineResponse
from services.worker.rollouts.agent_work import AgentWork
from services.worker.rollouts.budget import Budget
from services.worker.rollouts.errors import ContextFull
from services.worker.rollouts.rollout_result import AgentEnd
from services.worker.rollouts.terminus.execute_terminus import ExecuteTerminus, NoTerminal
from services.worker.rollouts.trajectory import Trajectory

DONE = json.dumps({"analysis": "", "plan": "", "commands": [], "task_complete": True})
WAIT = json.dumps({"analysis": "", "plan": "", "commands": []})


class Tmux:
    """A sandbox whose tmux always shows the same."""

    def __init__(self) -> None:
        self.typed: list[str] = []

    async def run(self, command: Command) -> CommandResult:
        if "send-keys" in command.argv:
            self.typed.append(command.argv[-1])
        return CommandResult(0, b"$ ", total_bytes=2)


class Model:
    """Gives its answers in turn, the last one again and again; None is a full context."""

    def __init__(self, *answers: str | None, finish: str = "stop") -> None:
        self.answers, self.finish = list(answers), finish
        self.histories: list[tuple[ChatMessage, ...]] = []

    async def __call__(self, messages: tuple[ChatMessage, ...]) -> EngineResponse:
        self.histories.append(messages)
        answer = self.answers.pop(0) if self.answers[1:] else self.answers[0]
        if answer is None:
            raise ContextFull
        return EngineResponse(Answer(answer, self.finish), TokenUsage(10, 5), Timing(0.001))


async def end_of(model: Model, sandbox: Any = None, **budgets: Any) -> AgentEnd:
    spec = RolloutSpec(
        RolloutTask("task", "Do it.", VerifierKind.REWARD_FILE), RolloutAgent(AgentKind.TERMINUS, **budgets)
    )
    trajectory = Trajectory("session", "proctor-terminus", "model")
    ask = cast("Any", model)
    work = AgentWork(spec, ask, trajectory, Budget(spec.agent, 60.0))
    used = cast("Sandbox", sandbox or Tmux())
    return await ExecuteTerminus(SystemClock()).execute(used, work, ask)


async def test_ten_answers_in_a_row_that_cannot_be_read_end_the_work() -> None:
    model = Model("I am sure it works.")
    assert await end_of(model) is AgentEnd.NO_COMMANDS
    assert len(model.histories) == 10
    assert "Nothing of your answer was executed" in model.histories[1][-1].content
    model = Model(*["no"] * 9, WAIT, *["no"] * 9, DONE, DONE)
    assert await end_of(model) is AgentEnd.SUBMITTED


async def test_the_end_counts_when_it_is_said_twice_in_a_row() -> None:
    model = Model(DONE, WAIT, DONE, DONE)
    assert await end_of(model) is AgentEnd.SUBMITTED
    assert len(model.histories) == 4
    assert "once more" in model.histories[1][-1].content
    assert "once more" not in model.histories[2][-1].content


async def test_an_answer_that_was_cut_off_is_not_executed() -> None:
    keys = json.dumps({"analysis": "", "plan": "", "commands": [{"keystrokes": "ls\n", "duration": 0}]})
    sandbox, model = Tmux(), Model(keys, finish="length")
    assert await end_of(model, sandbox, max_steps=2) is AgentEnd.AGENT_STEP_LIMIT
    assert sandbox.typed == []
    assert "length limit" in model.histories[1][-1].content


async def test_keys_reach_the_terminal_as_they_are() -> None:
    commands = [{"keystrokes": keys, "duration": 0} for keys in ("ls;", "C-c", "", "x\n")]
    answer = json.dumps({"analysis": "", "plan": "", "commands": commands, "task_complete": True})
    sandbox = Tmux()
    assert await end_of(Model(answer, DONE), sandbox) is AgentEnd.SUBMITTED
    # tmux would take the semicolon for its own.
    assert sandbox.typed == ["ls\\;", "C-c", "x\n"]


async def test_a_full_context_ends_the_work() -> None:
    assert await end_of(Model(WAIT, None)) is AgentEnd.CONTEXT_FULL


@pytest.mark.parametrize("is_refused", [True, False])
async def test_an_image_without_a_terminal_gives_no_score(*, is_refused: bool) -> None:
    class Bare:
        async def run(self, command: Command) -> CommandResult:
            if is_refused:
                raise CommandRefused(problem=f"there is no {command.argv[0]}.")
            return CommandResult(127, b"not found", total_bytes=9)

    with pytest.raises(NoTerminal, match="tmux, or bash and python3"):
        await end_of(Model(DONE), Bare())
