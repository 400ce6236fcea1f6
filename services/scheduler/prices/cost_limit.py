"""The most that a run may cost: when that is reached, and how many samples the rest of the money pays for."""

import math

from services.scheduler.runs.model_price import TokenUsage
from services.scheduler.runs.run import Run, RunError
from services.scheduler.runs.run_counts import RunCounts

_NOTHING = TokenUsage()


def cost_of(run: Run, counts: RunCounts | None) -> float | None:
    """What the run has cost by these counts, those of earlier epochs included; None without a price."""
    return run.price.cost(counts.usage) if run.price and counts else None


def limit_problem(run: Run, counts: RunCounts | None) -> RunError | None:
    """Why a run that still misses answers may ask for no more."""
    cost = cost_of(run, counts)
    if run.order.max_cost is None or cost is None or run.price is None or counts is None:
        return None
    if cost >= run.order.max_cost:
        message = f"Resource limits exceeded (cost): {spent(run, cost)}. What was recorded stays"
        return RunError("COST_LIMIT_REACHED", f"{message}; order it again with a higher max_cost.")
    if _asked_answers(run, counts) and counts.usage == _NOTHING and run.price.is_above_zero:
        message = f"The cost limit cannot be kept: {run.order.model} does not tell how many tokens it used"
        return RunError("UNSUPPORTED", f"{message}. Order the run without max_cost.")
    return None


def affordable_samples(run: Run, counts: RunCounts | None) -> float:
    """Beyond what is recorded, by the mean cost of a sample so far; infinite where nothing limits.

    0 while nothing tells what a sample costs.
    """
    if run.order.max_cost is None or run.price is None:
        return math.inf
    cost = cost_of(run, counts)
    asked = max(counts.recorded - run.reused_answers, 0) if counts else 0
    if not asked or cost is None:
        return 0.0
    mean_cost = cost / asked
    return (run.order.max_cost - cost) / mean_cost if mean_cost else math.inf


def spent(run: Run, cost: float) -> str:
    """As a clause of a sentence."""
    currency = run.price.currency if run.price else ""
    return f"the run has cost {cost:.6g} {currency} of at most {run.order.max_cost:.6g} {currency}"


def _asked_answers(run: Run, counts: RunCounts) -> int:
    return counts.recorded - counts.failed - run.reused_answers
