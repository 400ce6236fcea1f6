"""Budgets of a rollout hold over its executions; what was lost with a worker gives no score."""

from dataclasses import dataclass, field

import pytest

from proctor.values.rollout import BudgetUse, EarlierUse, RolloutAgent
from proctor.values.usage import ModelPrice, TokenUsage
from services.worker.rollouts.budget import Budget, Spent
from services.worker.rollouts.errors import BudgetLost
from services.worker.rollouts.rollout_result import AgentEnd

ANSWER = TokenUsage(80, 20)
AGENT = RolloutAgent(max_steps=10, max_tokens=1000, max_cost=1.0)
# A thousandth of 1.0 for each answer.
PRICE = ModelPrice(input_per_million=10.0, output_per_million=10.0)


@dataclass
class Ledger:
    """Records what it is sent; earlier executions used `earlier`."""

    earlier: EarlierUse = field(default_factory=EarlierUse)
    reports: list[BudgetUse] = field(default_factory=list)

    async def report(self, used: BudgetUse) -> EarlierUse:
        self.reports.append(used)
        return self.earlier

    async def leave(self, used: BudgetUse, *, is_resting: bool = False) -> None: ...

    async def rest(self, used: BudgetUse) -> None: ...


async def steps_of(budget: Budget, usage: TokenUsage = ANSWER, seconds: float = 1.0) -> tuple[int, AgentEnd]:
    """How many steps the budget has room for, and which part of it ends them."""
    for steps in range(100):
        if end := await budget.begin_agent_step():
            return steps, end
        await budget.add_answer(usage, seconds)
        if end := budget.time_limit():
            return steps + 1, end
    raise AssertionError("the budget has no end")


@pytest.mark.parametrize(
    ("agent", "seconds", "ended"),
    [
        (RolloutAgent(max_steps=7), 1e9, (7, AgentEnd.AGENT_STEP_LIMIT)),
        (RolloutAgent(max_tokens=650), 1e9, (7, AgentEnd.TOKEN_LIMIT)),
        (RolloutAgent(max_cost=0.0065), 1e9, (7, AgentEnd.COST_LIMIT)),
        (RolloutAgent(), 6.5, (7, AgentEnd.TIME_LIMIT)),
    ],
)
async def test_each_budget_ends_a_rollout(
    agent: RolloutAgent, seconds: float, ended: tuple[int, AgentEnd]
) -> None:
    ledger = Ledger(EarlierUse(price=PRICE))
    assert await steps_of(Budget(agent, seconds, ledger)) == ended


async def test_a_step_is_recorded_before_it_is_begun_and_its_answer_as_it_comes() -> None:
    ledger = Ledger()
    budget = Budget(AGENT, 100.0, ledger)
    assert await budget.begin_agent_step() is None
    await budget.add_answer(ANSWER, 2.0)
    budget.add_seconds(3.0)
    assert await budget.begin_agent_step() is None
    assert ledger.reports == [BudgetUse(1), BudgetUse(1, ANSWER, 2.0), BudgetUse(2, ANSWER, 5.0)]


@pytest.mark.parametrize(
    ("lost", "named"),
    [
        (BudgetUse(agent_steps=7), "steps"),
        (BudgetUse(usage=TokenUsage(600, 100)), "tokens"),
        (BudgetUse(usage=TokenUsage(cached_tokens=97_000, prompt_tokens=0)), ""),
        (BudgetUse(seconds=98.0), "time"),
    ],
)
async def test_what_a_lost_execution_used_is_gone_and_is_no_score(lost: BudgetUse, named: str) -> None:
    budget = Budget(AGENT, 101.0, Ledger(EarlierUse(lost, 1, None)))
    if not named:
        assert await steps_of(budget) == (10, AgentEnd.AGENT_STEP_LIMIT)
        return
    with pytest.raises(BudgetLost, match=rf"worker \(1\) used up its {named}"):
        await steps_of(budget)
    assert budget.used.agent_steps == 3


async def test_the_cost_of_lost_executions_counts() -> None:
    lost = EarlierUse(BudgetUse(usage=TokenUsage(99_650, 0)), 2, PRICE)
    budget = Budget(RolloutAgent(max_tokens=10**9, max_cost=1.0), 1e9, Ledger(lost))
    with pytest.raises(BudgetLost, match="cost"):
        await steps_of(budget)
    assert budget.used.agent_steps == 4
    assert budget.facts == {
        "steps": 4,
        "tokens": 100_050,
        "seconds": 4.0,
        "cost": pytest.approx(1.0005),
        "currency": "USD",
        "lost_executions": 2,
        "lost": {
            "steps": 0,
            "tokens": 99_650,
            "seconds": 0.0,
            "cost": pytest.approx(0.9965),
            "currency": "USD",
        },
    }


async def test_an_agent_that_used_up_a_budget_alone_is_judged_though_executions_were_lost() -> None:
    ledger = Ledger()
    budget = Budget(AGENT, 1e9, ledger)
    for _ in range(AGENT.max_steps):
        assert await budget.begin_agent_step() is None
    ledger.earlier = EarlierUse(BudgetUse(agent_steps=5), 1)
    assert await budget.begin_agent_step() is AgentEnd.AGENT_STEP_LIMIT


async def test_what_the_machinery_broke_is_counted_and_not_charged() -> None:
    budget = Budget(AGENT, 101.0, Ledger(EarlierUse(left=TokenUsage(900, 90))))
    assert await steps_of(budget) == (10, AgentEnd.AGENT_STEP_LIMIT)
    assert "lost" not in budget.facts
    assert Spent(budget).usage == TokenUsage(900 + 800, 90 + 200)
