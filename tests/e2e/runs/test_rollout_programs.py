"""Programs work on tasks: their model is at a port of the sandbox, counted and bounded by the worker.

So do agents that speak the protocol of such a program themselves.
"""

import json
from pathlib import Path
from typing import Any

import pytest

from proctor.client import errors
from proctor.v1 import outcome_pb2, rollout_pb2
from tests.e2e.harness.run_ends import all_outcomes, ended
from tests.fakes.thorough_cases import first_cases
from tests.fakes.worker.task_program import program_command
from tests.harness.rollout_orders import MEND, harbor_tasks, rollouts_order
from tests.harness.stack_harness import StackHarness

pytestmark = pytest.mark.asyncio(loop_scope="session")


def program(mode: str = "whole", **changes: Any) -> rollout_pb2.RolloutAgent:
    fields = {"command": program_command(mode), "environment": {"TOKEN": "{token}"}, **changes}
    return rollout_pb2.RolloutAgent(kind=rollout_pb2.AGENT_KIND_COMMAND, **fields)


async def rollout(
    stack: StackHarness, folder: Path, name: str, agent: rollout_pb2.RolloutAgent
) -> outcome_pb2.RecordedOutcome:
    order = rollouts_order(name, harbor_tasks(folder, {"a": MEND}), agent=agent)
    run_id = (await stack.client.rollouts.SubmitRollouts(order)).runs[0].run_id
    await ended(stack, run_id)
    [outcome] = await all_outcomes(stack, run_id)
    return outcome


@pytest.mark.parametrize("mode", ["whole", "streamed"])
async def test_a_program_works_with_its_model_and_is_judged(
    stack: StackHarness, tmp_path: Path, mode: str
) -> None:
    await stack.model_server.control(reset_stats=True)
    outcome = await rollout(stack, tmp_path, f"program-{mode}", program(mode))
    assert (outcome.outcome.answer.finish_reason, outcome.scores["reward"]) == ("submitted", 1.0)
    stats = await stack.model_server.stats()
    assert stats["requests"] == 3
    # The model is that of the run, whatever the program names.
    assert stats["last_request"]["model"] == "fake"
    record = json.loads(outcome.outcome.answer.body_json)
    usage = outcome.outcome.usage
    assert record["budget"]["tokens"] == usage.prompt_tokens + usage.completion_tokens > 0
    assert record["budget"]["steps"] == 3
    steps = record["trajectory"]["steps"]
    sources = [step["source"] for step in steps]
    assert sources == ["system", "user", "agent", "user", "agent", "user", "agent", "system"]
    assert "return 3 * n" in steps[3]["message"]


@first_cases(1, "kind", ["MINI", "TERMINUS"])
async def test_agents_with_other_protocols_are_ordered_by_their_names(
    stack: StackHarness, tmp_path: Path, kind: str
) -> None:
    agent = rollout_pb2.RolloutAgent(kind=f"AGENT_KIND_{kind}")  # type: ignore[arg-type]  # its name
    outcome = await rollout(stack, tmp_path, kind.lower(), agent)
    assert (outcome.outcome.answer.finish_reason, outcome.scores["reward"]) == ("submitted", 1.0)
    described = json.loads(outcome.outcome.answer.body_json)["trajectory"]["agent"]
    assert (described["name"], described["version"]) == (f"proctor-{kind.lower()}", "1.0")


async def test_no_key_enters_the_sandbox(stack: StackHarness, tmp_path: Path) -> None:
    outcome = await rollout(stack, tmp_path, "program-keys", program())
    said = json.loads(outcome.outcome.answer.body_json)["trajectory"]["steps"][-1]["message"]
    [line] = [line for line in said.splitlines() if line.startswith("environment: ")]
    variables = json.loads(line.removeprefix("environment: "))
    assert len(variables.pop("TOKEN")) >= 32
    assert not [name for name in variables if "KEY" in name or "PROCTOR" in name or "SECRET" in name]


@pytest.mark.parametrize("mode", ["endless", "stubborn"])
async def test_a_budget_ends_a_program_and_what_it_left_is_judged(
    stack: StackHarness, tmp_path: Path, mode: str
) -> None:
    await stack.model_server.control(reset_stats=True)
    outcome = await rollout(stack, tmp_path, f"program-{mode}", program(mode, max_steps=5))
    assert (outcome.outcome.answer.finish_reason, outcome.scores["reward"]) == ("step_limit", 1.0)
    assert (await stack.model_server.stats())["requests"] == 5


async def test_a_program_that_is_not_there_is_a_failure_and_no_score(
    stack: StackHarness, tmp_path: Path
) -> None:
    agent = rollout_pb2.RolloutAgent(kind=rollout_pb2.AGENT_KIND_COMMAND, template="aider")
    outcome = await rollout(stack, tmp_path, "program-absent", agent)
    failure = outcome.outcome.failure
    assert failure.failure_class == outcome_pb2.FAILURE_CLASS_SANDBOX
    assert "aider asked its model nothing" in failure.message
    assert not outcome.scores


async def test_a_model_that_fails_ends_the_program_without_a_score(
    stack: StackHarness, tmp_path: Path
) -> None:
    await stack.model_server.control(fault={"kind": "status", "status": 400})
    try:
        outcome = await rollout(stack, tmp_path, "program-failed", program("stubborn"))
    finally:
        await stack.model_server.control(fault=None)
    assert outcome.outcome.failure.failure_class == outcome_pb2.FAILURE_CLASS_REFUSED
    assert not outcome.scores


@pytest.mark.parametrize(
    ("agent", "said"),
    [
        ({"kind": "AGENT_KIND_COMMAND"}, "give one of them"),
        ({"kind": "AGENT_KIND_COMMAND", "template": "vi"}, "aider, claude-code, codex, gemini, goose, mini"),
        ({"kind": "AGENT_KIND_COMMAND", "template": "aider", "command": ["x"]}, "give one of them"),
        ({"kind": "AGENT_KIND_SHELL", "command": ["x"]}, "belong to an agent of kind command"),
        ({"kind": "AGENT_KIND_MINI", "version": "2"}, "belong to an agent of kind command"),
        ({"kind": "AGENT_KIND_COMMAND", "command": ["x"], "version": "2"}, "by agent.template"),
        ({"kind": "AGENT_KIND_SHELL", "max_cost": -1.0}, "above 0"),
        ({"kind": "AGENT_KIND_SHELL", "max_cost": 1.0}, "No price is known of openai/fake"),
    ],
)
async def test_an_agent_that_cannot_work_is_refused(
    stack: StackHarness, tmp_path: Path, agent: dict[str, Any], said: str
) -> None:
    order = rollouts_order("refused-agent", harbor_tasks(tmp_path, {"a": MEND}))
    order.agent.MergeFrom(rollout_pb2.RolloutAgent(**agent))
    with pytest.raises(errors.Refused, match=said):
        await stack.client.rollouts.SubmitRollouts(order)
