"""Cost of a run, estimated from completed runs."""

import pytest

from proctor.values.usage import ModelPrice, TokenUsage
from services.scheduler.runs.admission.planned_rows import PlannedRows
from services.scheduler.runs.admission.run_estimate import CompletedRun
from services.scheduler.runs.reads.run_list import PastUsage
from services.scheduler.runs.reads.run_snapshot import estimated_cost
from tests.fakes.scheduler.scheduler_harness import toy_order

PRICE = ModelPrice(1, 10)


def past(total: int, usage: TokenUsage, tasks: tuple[str, ...] = (), limit: int | None = None) -> PastUsage:
    return PastUsage(CompletedRun(tasks, limit, rollouts=1, total=total, seconds=1.0), usage)


def test_it_is_the_cost_of_a_sample_times_the_samples() -> None:
    history = [past(100, TokenUsage(10_000, 500)), past(300, TokenUsage(30_000, 1_500), limit=3)]
    estimate = estimated_cost(toy_order(rollouts=2), PRICE, history)
    assert estimate == pytest.approx(2 * (10_000 * 1 + 500 * 10) / 1e6)


def test_runs_of_the_same_tasks_count_more_than_others() -> None:
    history = [past(10, TokenUsage(1_000), ("other",)), past(10, TokenUsage(50), ("own",), limit=10)]
    estimate = estimated_cost(toy_order(tasks=("own",), limit=4), PRICE, history)
    assert estimate == pytest.approx(4 * 5 / 1e6)


def test_a_run_whose_server_counted_oddly_does_not_speak_for_the_others() -> None:
    history = [past(10, TokenUsage(tokens)) for tokens in (100, 10**18, 120)]
    assert estimated_cost(toy_order(), PRICE, history) == pytest.approx(10 * 12 / 1e6)


def test_an_order_of_another_size_costs_by_its_own_number_of_samples() -> None:
    history = [past(100, TokenUsage(10_000, 500))]
    rows = [PlannedRows((), None, {"one": 60, "two": 40})]
    estimate = estimated_cost(toy_order(limit=50), PRICE, history, rows)
    assert estimate == pytest.approx(90 * (100 * 1 + 5 * 10) / 1e6)


def test_without_history_or_tokens_there_is_none() -> None:
    assert estimated_cost(toy_order(), PRICE, []) is None
    assert estimated_cost(toy_order(), PRICE, [past(100, TokenUsage())]) is None
    assert estimated_cost(toy_order(), PRICE, [past(100, TokenUsage(10), limit=5)]) is None
