"""The agent of an order: budgets that it leaves out, and its words in evaluation conditions."""

import pytest
import yaml

from proctor.v1 import rollout_pb2
from proctor.values.agents.built_in import agent_in_words
from proctor.values.rollout import AgentKind, RolloutAgent
from services.scheduler.rollouts.grpc_api import agent_from_proto
from services.scheduler.rollouts.yaml_suite import write_suite
from services.scheduler.suites.format.yaml_suite_reader import read_document


@pytest.mark.parametrize(
    ("kind", "max_steps", "max_tokens"),
    [(None, 50, 500_000), ("SHELL", 50, 500_000), ("MINI", 250, 5_000_000), ("TERMINUS", 1000, 5_000_000)],
)
def test_budgets_that_an_order_leaves_out_are_those_of_its_agent(
    kind: str | None, max_steps: int, max_tokens: int
) -> None:
    message = rollout_pb2.RolloutAgent()
    if kind:
        message.kind = rollout_pb2.AgentKind.Value(f"AGENT_KIND_{kind}")
    agent = agent_from_proto(message)
    assert (agent.max_steps, agent.max_tokens) == (max_steps, max_tokens)
    message.max_steps = 7
    assert agent_from_proto(message).max_steps == 7


@pytest.mark.parametrize(
    ("agent", "words"),
    [
        (RolloutAgent(), "shell 2.0"),
        (RolloutAgent(AgentKind.MINI), "mini 1.0"),
        (RolloutAgent(AgentKind.TERMINUS), "terminus 1.0"),
        (RolloutAgent(AgentKind.ORACLE), "oracle"),
        (RolloutAgent(AgentKind.COMMAND, template="aider"), "aider"),
        (RolloutAgent(AgentKind.COMMAND, template="aider", version="0.86"), "aider 0.86"),
        (RolloutAgent(AgentKind.COMMAND, command=("my", "agent")), "my agent"),
    ],
)
def test_conditions_name_the_agent_with_its_version(agent: RolloutAgent, words: str) -> None:
    assert agent_in_words(agent) == words
    assert yaml.safe_load(write_suite("mine", [], agent).text)["metadata"]["agent"] == words


@pytest.mark.parametrize("kind", list(AgentKind))
def test_a_suite_that_asks_no_model_is_found_and_in_no_list(kind: AgentKind) -> None:
    document = write_suite("checked", [], RolloutAgent(kind, command=("my", "agent")))
    reading = read_document(document, ())
    assert reading.suite is not None
    assert all(task.asks_no_model is kind.asks_no_model for task in reading.suite.tasks)
