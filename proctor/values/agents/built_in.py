"""Agents of Proctor's own that ask a model: their versions, and the budgets that an order leaves out.

A version changes with what an agent tells its model, reads from its answers, or shows it.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType

from proctor.values.rollout import AgentKind, RolloutAgent, VerificationPlace


@dataclass(frozen=True, slots=True)
class BuiltInAgent:
    """Budgets where an order has none: those of the agent whose protocol it speaks, as far as it has them."""

    version: str = ""
    max_steps: int = RolloutAgent().max_steps
    max_tokens: int = RolloutAgent().max_tokens


_USUAL = BuiltInAgent()
_AGENTS: Mapping[AgentKind, BuiltInAgent] = MappingProxyType(
    {
        AgentKind.SHELL: BuiltInAgent("2.0"),
        AgentKind.MINI: BuiltInAgent("1.0", max_steps=250, max_tokens=5_000_000),
        AgentKind.TERMINUS: BuiltInAgent("1.0", max_steps=1000, max_tokens=5_000_000),
    }
)


def built_in(kind: AgentKind) -> BuiltInAgent:
    """Without a version for an agent that asks no model, and for a program."""
    return _AGENTS.get(kind, _USUAL)


def agent_in_words(agent: RolloutAgent) -> str:
    """The agent with its version, as evaluation conditions name it."""
    name = agent.template or " ".join(agent.command) or agent.kind.value
    version = agent.version or built_in(agent.kind).version
    place = ", tests in its sandbox" if agent.verification is VerificationPlace.SAME else ""
    return f"{name} {version}{place}" if version else f"{name}{place}"
