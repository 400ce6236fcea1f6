"""The most that a run may cost: when that is reached, and how many samples the rest of the money pays for."""

import math

from proctor.values.run import RunCounts
from proctor.values.usage import NO_TOKENS, TokenUsage
from services.scheduler.runs.lifecycle.run import Run, RunError


def cost_of(run: Run, counts: RunCounts | None) -> float | None:
    """Cost of the run by these counts, earlier epochs included; None without a price."""
    return run.price.cost(counts.usage) if run.price and counts else None


def limit_problem(run: Run, counts: RunCounts | None, unscored: TokenUsage = NO_TOKENS) -> RunError | None:
    """Why a run that still misses answers may ask for no more. `unscored` tokens are in no outcome."""
    if run.order.max_cost is None or run.price is None or counts is None:
        return None
    if run.price.cost(counts.usage.plus(unscored)) >= run.order.max_cost:
        # Without what it has cost: answers that are on their way are still recorded and counted.
        message = f"Resource limits exceeded (cost): the run has reached its max_cost of {_limit(run)}"
        advice = "What was recorded stays; order it again with a higher max_cost."
        return RunError("COST_LIMIT_REACHED", f"{message}. {advice}")
    # Answers without usage cost 0 by our count, so the run would never reach its limit.
    if _asked_answers(run, counts) > 0 and counts.usage == NO_TOKENS and run.price.is_above_zero:
        message = f"The cost limit cannot be kept: {run.order.model} does not report how many tokens it used"
        return RunError("UNSUPPORTED", f"{message}. Order the run without max_cost.")
    return None


def affordable_samples(run: Run, counts: RunCounts | None) -> float:
    """Beyond what is recorded, by the mean cost of an answer so far; infinite where nothing limits.

    0 while the cost of an answer is unknown.
    """
    if run.order.max_cost is None or run.price is None or not run.price.is_above_zero:
        return math.inf
    cost = cost_of(run, counts)
    if not cost or counts is None:
        return 0.0
    return (run.order.max_cost - cost) / cost * max(_asked_answers(run, counts), 1)


def spent(run: Run, cost: float) -> str:
    """A clause of a sentence about a finished run."""
    currency = run.price.currency if run.price else ""
    return f"the run has cost {cost:.6g} {currency} of at most {_limit(run)}"


def _limit(run: Run) -> str:
    return f"{run.order.max_cost:.6g} {run.price.currency if run.price else ''}"


def _asked_answers(run: Run, counts: RunCounts) -> int:
    # Reused answers cost nothing in this run, and most failures have no usage.
    return counts.recorded - counts.failed - run.reused_answers
