"""The shell agent at every kind of provider: calls of tools in its form, a fenced block where it refuses."""

import json
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from typing import Any

import pytest

from proctor.values.outcome import Answer, Failure, FailureClass
from proctor.values.plain import Json
from proctor.values.rollout import RolloutAgent, RolloutSpec, RolloutTask, VerifierKind
from proctor.values.sample import ChatMessage, Prompt
from proctor.values.usage import Timing, TokenUsage
from services.common.clock import SystemClock
from services.common.sandboxes.sandbox import Command, CommandResult
from services.worker.engines import engine
from services.worker.engines.engine import EngineResponse
from services.worker.engines.errors import ModelRefused, ProviderFailed, RequestRefused
from services.worker.engines.http.provider_engine import HttpEngine
from services.worker.engines.http.server import Endpoint
from services.worker.engines.openai.api import OpenAIApi
from services.worker.engines.ports import Engine
from services.worker.rollouts.agent_work import AgentWork
from services.worker.rollouts.budget import Budget
from services.worker.rollouts.errors import ToolsRefused
from services.worker.rollouts.execute_agent import ExecuteAgent
from services.worker.rollouts.rollout_result import AgentEnd
from services.worker.rollouts.shell.answer_form import ToolCalls
from services.worker.rollouts.shell.shell_protocol import SUBMIT
from services.worker.rollouts.trajectory import Trajectory
from tests.fakes.providers.model_server import Fault, ModelServer, serving
from tests.fakes.worker.provider_engines import ANTHROPIC, GEMINI, OLLAMA, native_stand

INSTRUCTION = "Mend it.\nDO ls\nDO cat a.py\n"
COMMANDS = ["ls", "cat a.py", f"echo {SUBMIT}"]
NAMES = ["openai", "gemini", "anthropic", "ollama"]


class Shell:
    """Repeats its commands, and lets the agent submit."""

    def __init__(self) -> None:
        self.commands: list[str] = []

    async def run(self, command: Command) -> CommandResult:
        self.commands.append(command.argv[-1])
        output = f"{SUBMIT}\n" if SUBMIT in command.argv[-1] else f"ran {command.argv[-1]}\n"
        return CommandResult(0, output.encode())


@dataclass(slots=True)
class Asker:
    """A model behind its engine, as a worker asks it; `refused` counts calls that were refused."""

    asked: Engine
    model: str
    refused: int = 0
    offered: list[bool] = field(default_factory=list)

    async def __call__(
        self, messages: tuple[ChatMessage, ...], params: object = None, *, tools: Sequence[Json] = ()
    ) -> EngineResponse:
        assert params is None
        sampling = engine.Sampling(max_tokens=64, is_streamed=True)
        if tools:
            sampling = replace(sampling, row_extra={"tools": list(tools)})
        self.offered.append(bool(tools))
        try:
            return await self.asked.generate(self.model, Prompt(messages=messages), sampling)
        except RequestRefused as error:
            self.refused += 1
            raise ToolsRefused(Failure(FailureClass.REFUSED, str(error))) from error


@asynccontextmanager
async def provider(name: str, *, takes_tools: bool = True) -> AsyncIterator[Asker]:
    natives = {native.name: native for native in (GEMINI, ANTHROPIC, OLLAMA)}
    if name in natives:
        async with native_stand(natives[name]) as stand:
            stand.server.models_without_tools = () if takes_tools else ("fake",)
            yield Asker(stand.asked, stand.model)
        return
    async with openai(ModelServer()) as asker:
        yield asker


@asynccontextmanager
async def openai(server: ModelServer) -> AsyncIterator[Asker]:
    async with serving(server) as port:
        asked = HttpEngine(
            OpenAIApi(), Endpoint(f"http://127.0.0.1:{port}/v1", "openai", timeout_seconds=5.0)
        )
        try:
            yield Asker(asked, "openai/fake")
        finally:
            await asked.close()


async def worked(asker: Any, shell: Shell, **budgets: Any) -> tuple[AgentEnd, dict[str, Any]]:
    rollout_spec = RolloutSpec(
        RolloutTask("task", INSTRUCTION, VerifierKind.REWARD_FILE), RolloutAgent(**budgets)
    )
    trajectory = Trajectory("session", "proctor-shell", "model")
    work = AgentWork(rollout_spec, asker, trajectory, Budget(rollout_spec.agent, 60.0))
    end = await ExecuteAgent(SystemClock()).execute(shell, work)  # type: ignore[arg-type]  # of a sandbox only what an agent needs
    return end, json.loads(json.dumps(trajectory.as_json()))


@pytest.mark.parametrize("name", NAMES)
async def test_commands_are_calls_of_a_tool_in_the_form_of_each_provider(name: str) -> None:
    shell = Shell()
    async with provider(name) as asker:
        end, trajectory = await worked(asker, shell)
    assert (end, shell.commands, asker.refused) == (AgentEnd.SUBMITTED, COMMANDS, 0)
    [definition] = trajectory["agent"]["tool_definitions"]
    assert definition["function"]["name"] == "bash"
    steps = [step for step in trajectory["steps"] if step["source"] == "agent"]
    assert [step["message"] for step in steps] == ["Step 1.", "Step 2.", "Step 3."]
    for step, command in zip(steps, COMMANDS, strict=True):
        [call], [result] = step["tool_calls"], step["observation"]["results"]
        assert (call["function_name"], call["arguments"]) == ("bash", {"command": command})
        assert result["source_call_id"] == call["tool_call_id"]
        assert result["content"].startswith("Exit code: 0")


async def test_a_provider_that_refuses_tools_is_asked_for_fenced_blocks() -> None:
    shell = Shell()
    async with provider("ollama", takes_tools=False) as asker:
        end, trajectory = await worked(asker, shell, max_steps=3)
    assert (end, shell.commands) == (AgentEnd.SUBMITTED, COMMANDS)
    # The call that was refused is not a step, and only the form that was used is in the trajectory.
    assert (asker.refused, asker.offered) == (1, [True, False, False, False])
    assert "tool_definitions" not in trajectory["agent"]
    assert [step["source"] for step in trajectory["steps"]] == ["system", "user", "agent", "agent", "agent"]
    assert "exactly one command in one fenced block" in trajectory["steps"][0]["message"]
    assert trajectory["steps"][2]["tool_calls"][0]["arguments"] == {"command": "ls"}


@pytest.mark.parametrize(
    ("status", "message"),
    [
        (404, "No endpoints found that support tool use."),
        (400, '"auto" tool choice requires --enable-auto-tool-choice'),
        (500, "tools param requires --jinja flag"),
    ],
)
async def test_tools_are_refused_by_other_codes_too(status: int, message: str) -> None:
    shell, server = Shell(), ModelServer(fault=Fault("status", status, message=message, count=1))
    async with openai(server) as asker:
        end, _ = await worked(asker, shell, max_steps=3)
    assert (end, shell.commands) == (AgentEnd.SUBMITTED, COMMANDS)
    assert asker.offered == [True, False, False, False]


@pytest.mark.parametrize(
    ("status", "message", "raised"),
    [
        (404, "The model does not exist.", ModelRefused),
        (500, "Failed to parse a tool call.", ProviderFailed),
        (503, "No server is available.", ProviderFailed),
    ],
)
async def test_other_errors_of_a_call_with_tools_mean_what_they_meant(
    status: int, message: str, raised: type[Exception]
) -> None:
    server = ModelServer(fault=Fault("status", status, message=message))
    async with openai(server) as asker:
        sampling = engine.Sampling(max_tokens=64, row_extra={"tools": list(ToolCalls.tools)})
        with pytest.raises(raised) as caught:
            await asker.asked.generate(
                "openai/fake", Prompt(messages=(ChatMessage("user", "Mend it."),)), sampling
            )
    assert caught.type is raised


@dataclass(slots=True)
class Script:
    """A model that answers messages of the OpenAI protocol, one after the other."""

    answers: list[dict[str, Any]]
    histories: list[list[ChatMessage]] = field(default_factory=list)

    async def __call__(self, messages: tuple[ChatMessage, ...], *, tools: object) -> EngineResponse:
        assert tools
        self.histories.append(list(messages))
        message = self.answers.pop(0)
        body = json.dumps({"choices": [{"message": message}]}) if "tool_calls" in message else ""
        answer = Answer(message.get("content") or "", message.pop("finish", "stop"), body_json=body)
        return EngineResponse(answer, TokenUsage(10, 5), Timing(0.001))


def call(number: int, arguments: str, name: str = "bash") -> dict[str, Any]:
    return {"id": f"c{number}", "type": "function", "function": {"name": name, "arguments": arguments}}


def calling(*calls: dict[str, Any], **more: Any) -> dict[str, Any]:
    return {"role": "assistant", "content": None, "tool_calls": list(calls), **more}


async def test_several_calls_are_executed_in_their_order_and_each_has_a_result() -> None:
    first = calling(
        call(1, '{"command": "ls"}'),
        call(2, '{"command": "rm x"}', "python"),
        call(3, '{"command": "pwd"}'),
        reasoning_content="Hm.",
    )
    model, shell = Script([first, calling(call(4, json.dumps({"command": f"echo {SUBMIT}"})))]), Shell()
    end, trajectory = await worked(model, shell)
    assert (end, shell.commands) == (AgentEnd.SUBMITTED, ["ls", "pwd", f"echo {SUBMIT}"])
    said, *results = model.histories[1][2:]
    fields = json.loads(said.fields_json)
    assert [each["id"] for each in fields["tool_calls"]] == ["c1", "c2", "c3"]
    assert fields["reasoning_content"] == "Hm."
    assert [(each.role, json.loads(each.fields_json)["tool_call_id"]) for each in results] == [
        ("tool", "c1"),
        ("tool", "c2"),
        ("tool", "c3"),
    ]
    assert "no such tool" in results[1].content
    observed = trajectory["steps"][2]["observation"]["results"]
    assert [each["source_call_id"] for each in observed] == ["c1", "c2", "c3"]


@pytest.mark.parametrize("arguments", ["{", "[]", '{"command": ""}', '{"command": 7}', '{"cmd": "ls"}'])
async def test_three_answers_without_a_command_end_the_work(arguments: str) -> None:
    model, shell = Script([calling(call(number, arguments)) for number in range(4)]), Shell()
    end, _ = await worked(model, shell)
    assert (end, shell.commands, len(model.histories)) == (AgentEnd.NO_COMMANDS, [], 3)
    assert "must be a JSON object" in model.histories[1][-1].content


async def test_a_call_that_was_cut_off_is_answered_as_such() -> None:
    cut = calling(call(1, '{"command": "ec'), finish="length")
    model, shell = Script([cut, calling(call(2, json.dumps({"command": f"echo {SUBMIT}"})))]), Shell()
    assert (await worked(model, shell))[0] is AgentEnd.SUBMITTED
    assert "cut off" in model.histories[1][-1].content


async def test_a_model_that_ignores_tools_may_write_a_block() -> None:
    block = {"content": "```bash\nls\n```"}
    model, shell = (
        Script([{"content": "I look."}, block, {"content": f"```bash\necho {SUBMIT}\n```"}]),
        Shell(),
    )
    end, trajectory = await worked(model, shell)
    assert (end, shell.commands) == (AgentEnd.SUBMITTED, ["ls", f"echo {SUBMIT}"])
    assert "Call bash with your command" in model.histories[1][-1].content
    assert model.histories[2][-1].role == "user"
    assert trajectory["steps"][4]["observation"]["results"][0]["content"].startswith("Exit code: 0")


async def test_a_refusal_after_the_first_answer_gives_no_score() -> None:
    async with provider("ollama") as asker:

        async def ask(messages: tuple[ChatMessage, ...], *, tools: Sequence[Json] = ()) -> EngineResponse:
            if len(messages) > 2:
                raise ToolsRefused(Failure(FailureClass.REFUSED, "No."))
            return await asker(messages, tools=tools)

        with pytest.raises(ToolsRefused):
            await worked(ask, Shell())
