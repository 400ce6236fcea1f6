"""A program's calls: its history reaches the model as the program shows it, with what providers need."""

import json
import socket
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, cast

import pytest

from proctor.values.outcome import Answer, Failure, FailureClass
from proctor.values.rollout import AgentKind, RolloutAgent, RolloutSpec, RolloutTask, VerifierKind
from proctor.values.sample import ChatMessage
from proctor.values.usage import Timing, TokenUsage
from services.common.clock import SystemClock
from services.common.sandboxes.ports import Sandbox
from services.common.sandboxes.sandbox import Command, CommandResult
from services.worker.engines.engine import EngineResponse
from services.worker.engines.tool_calls import called_tools, with_call_ids
from services.worker.rollouts.agent_work import AgentWork
from services.worker.rollouts.budget import Budget
from services.worker.rollouts.errors import ModelFailed
from services.worker.rollouts.model_port.execute_program import ExecuteProgram, ProgramNotStarted
from services.worker.rollouts.model_port.http import served_model
from services.worker.rollouts.model_port.model_call import CallRefused, ModelCall
from services.worker.rollouts.model_port.port_calls import PortCalls
from services.worker.rollouts.rollout_result import AgentEnd
from services.worker.rollouts.trajectory import Trajectory


def call(call_id: str, command: str, **extra: object) -> dict[str, Any]:
    function = {"name": "shell", "arguments": json.dumps({"command": command})}
    return {"id": call_id, "type": "function", "function": function, **extra}


def turn(*calls: dict[str, Any], **fields: object) -> ChatMessage:
    return ChatMessage("assistant", "", json.dumps({"tool_calls": calls, **fields}))


def answer(*calls: dict[str, Any], **fields: object) -> EngineResponse:
    message = {"role": "assistant", "content": "", "tool_calls": calls, **fields}
    body = json.dumps({"choices": [{"message": message}]})
    return EngineResponse(Answer("", "tool_calls", body_json=body), TokenUsage(10, 5), Timing(0.001))


@dataclass
class Model:
    answers: list[EngineResponse | ModelFailed]
    histories: list[tuple[ChatMessage, ...]] = field(default_factory=list)
    params: list[Mapping[str, object]] = field(default_factory=list)

    async def __call__(
        self,
        messages: tuple[ChatMessage, ...],
        params: Mapping[str, object] | None = None,
        *,
        tools: object = (),  # noqa: ARG002  # the port
    ) -> EngineResponse:
        self.histories.append(messages)
        self.params.append(params or {})
        given = self.answers.pop(0)
        if isinstance(given, ModelFailed):
            raise given
        return given


async def kept(_: Trajectory) -> None: ...


def port_calls(model: Model) -> PortCalls:
    budget = Budget(RolloutAgent(AgentKind.COMMAND), 60.0)
    calls = PortCalls(model, budget, Trajectory("session", "agent", "model"), kept, SystemClock())
    calls.begin()
    return calls


SAID = ChatMessage("user", "Mend it.")


async def asked(calls: PortCalls, *turns: ChatMessage) -> None:
    await calls.answer(ModelCall((SAID, *turns), {}, "model", is_streamed=False))


REFUSED = ModelFailed(Failure(FailureClass.REFUSED, "It takes no images."), TokenUsage(3))


async def test_a_refused_call_after_an_answer_is_the_programs_own_fault() -> None:
    calls = port_calls(Model([answer(), REFUSED, answer()]))
    await asked(calls)
    with pytest.raises(CallRefused, match="It takes no images") as refused:
        await asked(calls)
    assert refused.value.status == 400
    assert calls.budget.used.usage == TokenUsage(13, 5)
    await asked(calls)
    assert not calls.over.is_set()


async def test_a_program_that_its_provider_refuses_from_the_start_gives_no_score() -> None:
    calls = port_calls(Model([REFUSED]))
    with pytest.raises(CallRefused, match="its model failed"):
        await asked(calls)
    assert calls.error is REFUSED


async def test_a_failing_provider_ends_the_rollout_after_answers_too() -> None:
    failed = ModelFailed(Failure(FailureClass.PROVIDER_ERROR, "It is down."))
    calls = port_calls(Model([answer(), failed]))
    await asked(calls)
    with pytest.raises(CallRefused, match="its model failed"):
        await asked(calls)
    assert calls.error is failed


async def test_no_answer_may_be_longer_than_what_is_left_of_the_tokens() -> None:
    model = Model([answer(), answer()])
    calls = port_calls(model)
    most = calls.budget.agent.max_tokens
    for asked_length in (10**9, 20):
        await calls.answer(ModelCall((SAID,), {"max_tokens": asked_length, "max_completion_tokens": 10**9}))
    assert model.params == [
        {"max_tokens": most, "max_completion_tokens": most},
        {"max_tokens": 20, "max_completion_tokens": most - 15},
    ]


async def test_an_id_that_a_later_answer_has_too_changes_no_earlier_turn() -> None:
    model = Model([answer(call("call_0", "ls")), answer(call("call_0", "cat a")), answer()])
    calls = port_calls(model)
    await asked(calls)
    await asked(calls, turn(call("call_0", "ls")))
    await asked(calls, turn(call("call_0", "ls")), turn(call("call_0", "cat a")))
    shown = [json.loads(each.fields_json)["tool_calls"] for each in model.histories[-1][1:]]
    assert shown == [[call("call_0", "ls")], [call("call_0", "cat a")]]


async def test_what_a_provider_needs_back_is_added_to_the_turn_that_a_program_shows() -> None:
    signed = call("call_0", "ls", extra_content={"google": {"thought_signature": "s"}})
    model = Model([answer(signed, reasoning_content="I look."), answer()])
    calls = port_calls(model)
    await asked(calls)
    plain = call("call_0", "ls")
    # The program has its own space between words of JSON.
    plain["function"]["arguments"] = '{ "command":"ls" }'
    await asked(calls, turn(plain))
    fields = json.loads(model.histories[-1][1].fields_json)
    assert fields["reasoning_content"] == "I look."
    assert fields["tool_calls"] == [{**plain, "extra_content": {"google": {"thought_signature": "s"}}}]


def test_calls_without_an_id_get_one_that_no_other_answer_has() -> None:
    named = [with_call_ids(answer(call("", "ls"), call("own", "ls")).answer) for _ in range(2)]
    [first, own], [second, _] = map(called_tools, named)
    assert own.call_id == "own"
    assert first.call_id.startswith("call_proctor_")
    assert first.call_id != second.call_id
    assert called_tools(named[0])[0] == first


class Stand:
    """A sandbox whose program ends at once, with `code`."""

    def __init__(self, code: int) -> None:
        self.code = code

    async def model_port(self, _: int) -> Any:
        return socket.create_server(("127.0.0.1", 0))

    async def run(self, _: Command) -> CommandResult:
        return CommandResult(self.code, b"aider: not found")


async def end_of(code: int, steps_before: int) -> AgentEnd:
    calls = port_calls(Model([]))
    for _ in range(steps_before):
        await calls.budget.begin_agent_step()
    task = RolloutTask("task", "Do it.", VerifierKind.REWARD_FILE)
    rollout_spec = RolloutSpec(task, RolloutAgent(AgentKind.COMMAND, command=("aider",)))
    programs = ExecuteProgram(served_model, lambda: "token", SystemClock())
    work = AgentWork(rollout_spec, calls.ask, calls.trajectory, calls.budget)
    return await programs.execute(cast("Sandbox", Stand(code)), work, calls)


@pytest.mark.parametrize("steps_before", [0, 2])
async def test_a_program_that_does_not_start_is_judged_in_no_step_of_its_task(steps_before: int) -> None:
    with pytest.raises(ProgramNotStarted) as refused:
        await end_of(127, steps_before)
    assert refused.value.facts == {"program": "aider", "cause": "aider: not found"}
    assert await end_of(0, steps_before) is AgentEnd.SUBMITTED
