"""The work of an agent in one execution of its rollout."""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass

from proctor.values.rollout import RolloutSpec
from services.worker.rollouts.budget import Budget
from services.worker.rollouts.ports import AskModel
from services.worker.rollouts.transcript import Transcript


async def _keep_nothing(_: Transcript) -> None:
    """The default checkpoint."""


@dataclass(frozen=True, slots=True)
class AgentWork:
    """`ask` is needed by agents that have a model; `checkpoint` is called after each of their steps."""

    rollout_spec: RolloutSpec
    ask: AskModel | None
    transcript: Transcript
    budget: Budget
    checkpoint: Callable[[Transcript], Awaitable[None]] = _keep_nothing
