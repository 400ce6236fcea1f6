"""Each agent that needs nothing in the image works on a task in a real sandbox; its model is scripted.

So does a program that the worker brings.
"""

import json
import tempfile
import zipfile
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from proctor.values.plain import Json
from proctor.values.rollout import AgentKind, RolloutAgent, RolloutSpec
from proctor.values.sample import ChatMessage, Prompt
from services.worker.engines import engine
from services.worker.engines.engine import EngineResponse
from services.worker.engines.http.provider_engine import HttpEngine
from services.worker.engines.http.server import Endpoint
from services.worker.engines.openai.api import OpenAIApi
from services.worker.rollouts.execute_rollout import RolloutExecution
from services.worker.rollouts.programs.file_programs import FilePrograms
from services.worker.rollouts.rollout_result import RolloutResult
from services.worker.rollouts.terminus.tmux import TmuxTerminal
from tests.fakes.providers.model_server import ModelServer, serving
from tests.fakes.worker.task_program import PROGRAM
from tests.harness.rollout_orders import MEND
from tests.harness.rollout_tasks import harbor_folder, opened_rollouts, read_task


async def worked(
    folder: Path, agent: RolloutAgent, instruction: str = MEND, find_program: Any = lambda _: None
) -> RolloutResult:
    harbor_folder(folder)
    (folder / "instruction.md").write_text(instruction)
    spec = RolloutSpec(read_task(folder), agent)
    async with serving(ModelServer()) as port, opened_rollouts() as opened:
        asked = HttpEngine(
            OpenAIApi(), Endpoint(f"http://127.0.0.1:{port}/v1", "openai", timeout_seconds=30.0)
        )

        async def ask(
            messages: tuple[ChatMessage, ...],
            params: object = None,  # noqa: ARG001  # the port
            *,
            tools: Sequence[Json] = (),
        ) -> EngineResponse:
            assert not tools
            sampling = engine.Sampling(max_tokens=64)
            return await asked.generate("openai/fake", Prompt(messages=messages), sampling)

        rollouts = replace(opened, find_program=find_program)
        try:
            return await rollouts.execute(RolloutExecution(spec, "session", "openai/fake", ask))
        finally:
            await asked.close()


def built_in(kind: AgentKind) -> RolloutAgent:
    return RolloutAgent(kind, max_steps=8)


def steps_of(result: RolloutResult) -> list[dict[str, Any]]:
    steps: list[dict[str, Any]] = json.loads(result.record_json)["trajectory"]["steps"]
    return steps


def observed(step: dict[str, Any]) -> str:
    return str(step["observation"]["results"][0]["content"])


async def test_mini_mends_a_task_by_blocks(tmp_path: Path) -> None:
    result = await worked(tmp_path / "a", built_in(AgentKind.MINI))
    assert (result.end.value, result.result.score) == ("submitted", 1.0)
    steps = steps_of(result)
    assert [step["source"] for step in steps] == ["system", "user", "agent", "agent", "agent"]
    assert observed(steps[2]).startswith("<returncode>0</returncode>\n<output>\ndoubling.py\n")


@pytest.mark.parametrize("has_tmux", [True, False])
async def test_terminus_mends_a_task_in_a_terminal(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, *, has_tmux: bool
) -> None:
    if not has_tmux:

        async def none(*_: object) -> bool:
            return False

        monkeypatch.setattr(TmuxTerminal, "start", none)
    result = await worked(tmp_path / "a", built_in(AgentKind.TERMINUS))
    assert (result.end.value, result.result.score) == ("submitted", 1.0)
    steps = steps_of(result)
    assert [step["source"] for step in steps] == ["user", "agent", "agent", "agent", "agent"]
    assert "ls && cat doubling.py\ndoubling.py\n" in observed(steps[1])
    assert "return 3 * n" in observed(steps[1])
    # The end is asked for once more.
    assert "once more" in observed(steps[3])
    assert [call["function_name"] for call in steps[4]["tool_calls"]] == ["mark_task_complete"]


async def test_an_agent_that_ends_its_terminal_goes_on_in_a_new_one(tmp_path: Path) -> None:
    result = await worked(tmp_path / "a", built_in(AgentKind.TERMINUS), f"DO kill -9 -1\n{MEND}")
    assert (result.end.value, result.result.score) == ("submitted", 1.0)
    assert "The terminal had ended" in observed(steps_of(result)[1])


_MAIN = """import os, sys
def main():
    words = dict(each[2:].split("=", 1) for each in sys.argv[1:] if "=" in each)
    os.environ["TOKEN"] = os.environ["OPENAI_API_KEY"]
    sys.argv[1:] = [os.environ["OPENAI_BASE_URL"], words["task"], "whole"]
    exec(PROGRAM, {"__name__": "program"})
"""


@pytest.mark.parametrize("is_shown", [True, False])
async def test_a_program_is_brought_by_the_worker(tmp_path: Path, *, is_shown: bool) -> None:
    folder = tmp_path / "programs" / "mini-swe-agent"
    folder.mkdir(parents=True)
    with zipfile.ZipFile(folder / "mini_swe_agent-0.1-py3-none-any.whl", "w") as files:
        files.writestr("program_of_test.py", f"PROGRAM = {PROGRAM!r}\n{_MAIN}")
        files.writestr(
            "mini_swe_agent-0.1.dist-info/entry_points.txt",
            "[console_scripts]\nmini = program_of_test:main\n",
        )
    # Readable by the user of the sandbox, which a folder of a test is not.
    with tempfile.TemporaryDirectory() as open_folder:
        Path(open_folder).chmod(0o755)
        files_of = FilePrograms(tmp_path / "programs", Path(open_folder) / "unpacked", is_shown)
        agent = RolloutAgent(AgentKind.COMMAND, max_steps=8, template="mini-swe-agent", version="0.1")
        result = await worked(tmp_path / "a", agent, find_program=files_of.find)
    assert (result.end.value, result.result.score) == ("submitted", 1.0)
    described = json.loads(result.record_json)["trajectory"]["agent"]
    assert (described["name"], described["version"]) == ("mini-swe-agent", "0.1")
