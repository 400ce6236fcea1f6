"""The budgets of a rollout: steps, tokens, cost and time, over all its executions in an epoch of the run."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from proctor.values.rollout import BudgetUse, EarlierUse, RolloutAgent
from proctor.values.usage import NO_TOKENS, TokenUsage
from services.worker.rollouts.errors import BudgetLost
from services.worker.rollouts.ports import BudgetLedger
from services.worker.rollouts.rollout_result import AgentEnd

# Beyond the time of the agent: for the start, the collection of files, and waits for a provider.
WAITS_SECONDS = 3 * 3600.0
_NAMES = {
    AgentEnd.AGENT_STEP_LIMIT: "steps",
    AgentEnd.TOKEN_LIMIT: "tokens",
    AgentEnd.COST_LIMIT: "cost",
    AgentEnd.TIME_LIMIT: "time",
}


@dataclass(slots=True)
class Spent:
    """The use of an execution, whatever becomes of it; `budget` is set where it begins."""

    budget: "Budget | None" = None

    @property
    def usage(self) -> TokenUsage:
        """With that of earlier executions: no other outcome counts their tokens."""
        if self.budget is None:
            return NO_TOKENS
        return self.budget.used.usage.plus(self.budget.earlier.usage)

    async def leave(self, *, is_resting: bool = False) -> None:
        """Gives back the budgets of an execution that is not at its end."""
        if self.budget is not None and self.budget.ledger is not None and self.budget.used.agent_steps:
            await self.budget.ledger.leave(self.budget.used, is_resting=is_resting)

    async def rest(self) -> None:
        """Others of its order may have the rollout's place, until it reports again."""
        if self.budget is not None and self.budget.ledger is not None:
            await self.budget.ledger.rest(self.budget.used)


@dataclass(slots=True)
class Budget:
    """The budget of one execution.

    A step is recorded before it begins, and its answer as it comes: only tokens of a request in flight, and
    the time of commands, are lost with a killed worker.
    """

    agent: RolloutAgent
    agent_seconds: float
    ledger: BudgetLedger | None = None
    used: BudgetUse = field(default_factory=BudgetUse)
    earlier: EarlierUse = field(default_factory=EarlierUse)
    # Seconds of use at which the present task step ends.
    task_step_until: float | None = None

    def begin_task_step(self, seconds: float) -> None:
        """Bounds the time of a step, beside that of the whole task."""
        self.task_step_until = self.used.seconds + seconds

    async def begin_agent_step(self) -> AgentEnd | None:
        """Why no step may begin; None where one is begun. Raises BudgetNotRecorded and BudgetLost."""
        begun = replace(self.used, agent_steps=self.used.agent_steps + 1)
        if self.ledger is not None:
            self.earlier = await self.ledger.report(begun)
        if end := self._end(begun):
            return end
        self.used = begun
        return None

    async def add_answer(self, usage: TokenUsage, seconds: float) -> None:
        """Raises BudgetNotRecorded."""
        self.used = self.used.plus(BudgetUse(usage=usage, seconds=seconds))
        if self.ledger is not None:
            self.earlier = await self.ledger.report(self.used)

    def add_seconds(self, seconds: float) -> None:
        self.used = self.used.plus(BudgetUse(seconds=seconds))

    def time_limit(self) -> AgentEnd | None:
        """TIME_LIMIT where no time is left. Raises BudgetLost."""
        if self.seconds_left > 0:
            return None
        if self.task_step_until is not None and self.used.seconds >= self.task_step_until:
            return AgentEnd.TIME_LIMIT
        return self._own(AgentEnd.TIME_LIMIT, is_own=self.used.seconds >= self.agent_seconds)

    @property
    def seconds_left(self) -> float:
        left = self.agent_seconds - self._total.seconds
        return left if self.task_step_until is None else min(left, self.task_step_until - self.used.seconds)

    @property
    def tokens_left(self) -> int:
        """At least one: a step that has begun has an answer."""
        return max(1, self.agent.max_tokens - self._total.usage.total_tokens)

    @property
    def facts(self) -> Mapping[str, object]:
        """Use of the budget for the record, and that of lost executions if there are any."""
        facts: dict[str, object] = {**self._facts_of(self._total)}
        if self.earlier.executions:
            facts["lost_executions"] = self.earlier.executions
            facts["lost"] = self._facts_of(self.earlier.used)
        return facts

    @property
    def _total(self) -> BudgetUse:
        return self.used.plus(self.earlier.used)

    def _end(self, begun: BudgetUse) -> AgentEnd | None:
        """The first budget that has no room for the step."""
        used = {end: (self._amount(end, begun), self._amount(end, self.earlier.used)) for end in _NAMES}
        for end, (own, lost) in used.items():
            limit = self._limit(end)
            if limit is not None and own + lost >= limit:
                return self._own(end, is_own=own >= limit)
        return None

    def _own(self, end: AgentEnd, *, is_own: bool) -> AgentEnd:
        """The end of an agent that used up the budget itself.

        Where lost executions used a part of it, the rollout fails.
        """
        if is_own or not self.earlier.executions:
            return end
        raise BudgetLost(budget=_NAMES[end], executions=self.earlier.executions)

    def _limit(self, end: AgentEnd) -> float | None:
        """A step that is begun may be the last one."""
        match end:
            case AgentEnd.AGENT_STEP_LIMIT:
                return self.agent.max_steps + 1
            case AgentEnd.TOKEN_LIMIT:
                return self.agent.max_tokens
            case AgentEnd.COST_LIMIT:
                return self.agent.max_cost
            case _:
                return self.agent_seconds

    def _amount(self, end: AgentEnd, used: BudgetUse) -> float:
        match end:
            case AgentEnd.AGENT_STEP_LIMIT:
                return used.agent_steps
            case AgentEnd.TOKEN_LIMIT:
                return used.usage.total_tokens
            case AgentEnd.COST_LIMIT:
                return self._cost(used) or 0.0
            case _:
                return used.seconds

    def _cost(self, used: BudgetUse) -> float | None:
        return self.earlier.price.cost(used.usage) if self.earlier.price else None

    def _facts_of(self, used: BudgetUse) -> Mapping[str, object]:
        facts: dict[str, object] = {
            "steps": used.agent_steps,
            "tokens": used.usage.total_tokens,
            "seconds": round(used.seconds, 3),
        }
        cost = self._cost(used)
        if cost is not None and self.earlier.price is not None:
            facts |= {"cost": cost, "currency": self.earlier.price.currency}
        return facts
