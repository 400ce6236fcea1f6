"""Ports of a rollout: the model that its agent asks, the store of what it makes, the ledger of budgets."""

from collections.abc import Mapping, Sequence
from typing import Protocol

from proctor.values.plain import Json
from proctor.values.rollout import BudgetUse, EarlierUse
from proctor.values.sample import ChatMessage
from services.worker.engines.engine import EngineResponse


class AskModel(Protocol):
    async def __call__(
        self,
        messages: tuple[ChatMessage, ...],
        params: Mapping[str, object] | None = None,
        *,
        tools: Sequence[Json] = (),
    ) -> EngineResponse:
        """The next answer. `params` are a program's, named as in chat completions; those that are set win.

        `tools` may be called by an answer under the run's parameters. Raises ContextFull, and ToolsRefused
        where there are `tools`; whatever else it raises ends the rollout without a score.
        """
        ...


class RolloutPlace(Protocol):
    """The place of a rollout in its worker, which others may have while it rests."""

    def give(self) -> None: ...

    async def take(self) -> None:
        """Waits until there is one again."""
        ...


class ArtifactSink(Protocol):
    @property
    def execution(self) -> str:
        """Id of this execution of the rollout."""
        ...

    async def put(self, name: str, part: int, content: bytes) -> None:
        """Raises ArtifactNotStored."""
        ...


class BudgetLedger(Protocol):
    async def report(self, used: BudgetUse) -> EarlierUse:
        """Records what this execution used so far. Raises BudgetNotRecorded."""
        ...

    async def leave(self, used: BudgetUse, *, is_resting: bool = False) -> None:
        """Records, if possible, that this execution ends without an outcome, by no fault of its own.

        Later executions have the budgets that it had. `is_resting`: the next one waits for the provider.
        """
        ...

    async def rest(self, used: BudgetUse) -> None:
        """Records, if possible, that the rollout rests until the next report."""
        ...
