"""The work of an agent in one execution of its rollout."""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass

from proctor.values.rollout import RolloutSpec
from services.worker.rollouts.budget import Budget
from services.worker.rollouts.ports import AskModel
from services.worker.rollouts.programs.agent_program import AgentProgram
from services.worker.rollouts.trajectory import Trajectory


async def _keep_nothing(_: Trajectory) -> None:
    """The default checkpoint."""


@dataclass(frozen=True, slots=True)
class AgentWork:
    """`ask` is needed by agents that have a model; `checkpoint` is called after each of their steps.

    `program` is the agent's, where the worker brings it.
    """

    rollout_spec: RolloutSpec
    ask: AskModel | None
    trajectory: Trajectory
    budget: Budget
    checkpoint: Callable[[Trajectory], Awaitable[None]] = _keep_nothing
    program: AgentProgram | None = None
