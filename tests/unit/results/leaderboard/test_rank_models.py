"""Entries of a leaderboard, their ranks, and unranked ones."""

from dataclasses import replace
from itertools import combinations
from random import Random

import pytest

from proctor.values.comparison import TrendDirection
from proctor.values.run import MAX_LEADERBOARD_MODELS, RunState
from proctor.values.scoring import ScoringMethod
from services.common.errors import InvalidParameter
from services.results.leaderboard.leaderboard import (
    Leaderboard,
    PValues,
    Trend,
    distinguishable,
    ranks,
    ties,
    uncompared,
    untested,
)
from services.results.leaderboard.rank_models import LeaderboardQuery
from services.results.runs.conditions import IMPORTED_FROM
from services.results.statistics.metric_names import UnknownMetric
from services.results.statistics.paired.difference_estimate import LEVEL, holm
from tests.fakes.results.closed_runs import BENCHMARK, WHOLE, ClosedRuns, benchmark_figure

QUERY = LeaderboardQuery(BENCHMARK)


def positions(leaderboard: Leaderboard) -> list[tuple[str, int]]:
    return [(entry.model, entry.rank) for entry in leaderboard.entries]


def unranked(leaderboard: Leaderboard) -> dict[str, tuple[str, ...]]:
    return {entry.model: entry.unranked_because for entry in leaderboard.unranked}


def given(count: int, p_values: PValues) -> list[int]:
    return ranks(count, distinguishable(count, p_values))


def test_runs_share_the_rank_of_the_leader_they_are_not_distinguished_from() -> None:
    p_values = {(0, 1): 0.2, (0, 2): 0.001, (1, 2): 0.9, (2, 3): 0.04, (0, 3): 1e-9}
    assert given(4, p_values) == [1, 1, 3, 3]
    assert given(3, {(0, 1): 0.016, (0, 2): 0.02, (1, 2): 1e-9}) == [1, 2, 3]
    assert given(3, {(0, 1): 0.017, (0, 2): 0.9, (1, 2): 0.9}) == [1, 1, 1]


def test_a_pair_that_was_not_compared_is_neither_distinguished_nor_tied() -> None:
    for p_values in ({}, {(0, 1): None}):
        assert given(2, p_values) == [1, 1]
        assert ties(2, p_values, ()) == [[], []]
        assert untested(2, p_values) == [[1], [0]]
    assert given(0, {}) == []
    # One pair of three is known: it is held against the level as if the others had been tested.
    assert given(3, {(0, 1): 0.02}) == [1, 1, 1]
    assert ties(3, {(0, 1): 0.02}, ()) == [[1], [0], []]


async def test_where_less_is_better_the_least_is_first_and_the_best() -> None:
    runs = ClosedRuns()
    for model, mean in (("openai/a", 12.0), ("openai/b", 9.0), ("openai/a", 15.0)):
        runs.add(model, mean, less_is_better=("acc", "score"))
    found = await runs.rank_models.rank(QUERY)
    assert [(entry.model, entry.figure.figure.mean) for entry in found.entries] == [
        ("openai/b", 9.0),
        ("openai/a", 15.0),
    ]
    assert found.less_is_better
    best = await runs.rank_models.rank(replace(QUERY, is_best=True))
    assert [entry.figure.figure.mean for entry in best.entries] == [9.0, 12.0]


def test_pairs_with_a_leader_are_compared_first() -> None:
    assert uncompared([1, 1, 3, 3], {(0, 1): 0.5}) == [(2, 3), (1, 2), (0, 2), (1, 3), (0, 3)]
    assert uncompared([1, 2], {(0, 1): None}) == []


def test_pairs_are_distinguished_as_by_holm_over_all_pairs() -> None:
    draw = Random(7)
    for count in (2, 5, 12):
        for _ in range(50):
            pairs = list(combinations(range(count), 2))
            found = [draw.choice([None, draw.random() ** 6, 0.001, 1e-9, 0.9]) for _ in pairs]
            adjusted = holm([1.0 if p_value is None else p_value for p_value in found])
            certain = {
                pair
                for pair, p_value in zip(pairs, adjusted, strict=True)
                if p_value is not None and p_value <= LEVEL
            }
            # Those without a test are there as None, or not at all.
            known = {
                pair: p_value
                for pair, p_value in zip(pairs, found, strict=True)
                if p_value is not None or draw.random() < 0.5
            }
            assert distinguishable(count, known) == certain


async def test_models_are_ranked_by_their_latest_completed_run() -> None:
    runs = ClosedRuns()
    runs.add("p/old", 0.9)
    latest = runs.add("p/old", 0.5)
    runs.add("p/new", 0.6)
    runs.add("p/new", 0.99, state=RunState.FAILED)
    runs.add("p/new", 0.99, state=RunState.CANCELLED)
    leaderboard = await runs.rank_models.rank(QUERY)
    assert [entry.model for entry in leaderboard.entries] == ["p/new", "p/old"]
    assert leaderboard.entries[1].run == latest
    assert not leaderboard.entries[1].is_selected_best
    assert (leaderboard.total_models, leaderboard.metric, leaderboard.conditions.scoring_method) == (
        2,
        "acc",
        ScoringMethod.LOGLIKELIHOOD,
    )


async def test_a_rank_is_the_same_however_few_are_listed() -> None:
    runs = ClosedRuns()
    first, second, _ = [runs.add(f"p/{name}", mean) for name, mean in (("a", 0.9), ("b", 0.8), ("c", 0.7))]
    runs.compared(first, second, 0.02)
    whole = await runs.rank_models.rank(QUERY)
    short = await runs.rank_models.rank(replace(QUERY, max_entries=2))
    # Distinguished if it were the only pair; not over all three.
    assert positions(short) == positions(whole)[:2] == [("p/a", 1), ("p/b", 1)]


async def test_the_best_run_is_marked_as_selected_unless_it_is_the_latest() -> None:
    runs = ClosedRuns()
    best = runs.add("p/fell", 0.9)
    runs.add("p/fell", 0.5)
    runs.add("p/rose", 0.1)
    runs.add("p/rose", 0.8)
    leaderboard = await runs.rank_models.rank(replace(QUERY, is_best=True))
    assert [(one.model, one.is_selected_best) for one in leaderboard.entries] == [
        ("p/fell", True),
        ("p/rose", False),
    ]
    assert leaderboard.entries[0].run == best


async def test_ties_are_reported_pair_by_pair() -> None:
    runs = ClosedRuns()
    first, second, third, fourth = (runs.add(f"p/{mean}", mean) for mean in (0.9, 0.89, 0.88, 0.5))
    for one, other, p_value in [
        (second, first, 0.6),
        (first, third, 0.4),
        (second, third, 1e-6),
        (first, fourth, 1e-6),
        (second, fourth, 1e-6),
        (third, fourth, 0.9),
    ]:
        runs.compared(one, other, p_value)
    leaderboard = await runs.rank_models.rank(QUERY)
    # Two of one rank may differ, and two of different ranks may be tied: a rank is shared with its leader.
    assert positions(leaderboard) == [("p/0.9", 1), ("p/0.89", 1), ("p/0.88", 1), ("p/0.5", 4)]
    assert [entry.tied_with for entry in leaderboard.entries] == [
        ("p/0.89", "p/0.88"),
        ("p/0.9",),
        ("p/0.9", "p/0.5"),
        ("p/0.88",),
    ]
    assert not any(entry.not_compared_with for entry in leaderboard.entries)
    assert runs.pending == []


@pytest.mark.parametrize("query", [replace(QUERY, is_best=True), replace(QUERY, project_id=1)])
async def test_a_reading_names_the_pairs_that_were_not_compared_and_waits_for_none(
    query: LeaderboardQuery,
) -> None:
    runs = ClosedRuns()
    best, worse = runs.add("p/a", 0.9), runs.add("p/b", 0.5)
    leaderboard = await runs.rank_models.rank(query)
    assert (positions(leaderboard), leaderboard.pending) == ([("p/a", 1), ("p/b", 1)], 1)
    assert [entry.not_compared_with for entry in leaderboard.entries] == [("p/b",), ("p/a",)]
    assert runs.pending == [(best.run_id, worse.run_id)]
    runs.compared(best, worse, 1e-6)
    leaderboard = await runs.rank_models.rank(query)
    assert (positions(leaderboard), leaderboard.pending) == ([("p/a", 1), ("p/b", 2)], 0)


async def test_pairs_of_listed_models_only_are_named_those_with_the_leader_first() -> None:
    runs = ClosedRuns()
    for index in range(8):
        runs.add(f"p/{index}", 0.5 + index / 100)
    leaderboard = await runs.rank_models.rank(replace(QUERY, max_entries=6))
    assert len(runs.pending) == leaderboard.pending == 6 * 5 / 2
    assert {first for first, _ in runs.pending[:5]} == {leaderboard.entries[0].run.run_id}  # type: ignore[union-attr]  # no baseline
    assert [entry.tied_with for entry in leaderboard.entries] == [()] * 6
    assert all(len(entry.not_compared_with) == 5 for entry in leaderboard.entries)


async def test_a_metric_that_is_never_compared_is_not_tried_again() -> None:
    runs = ClosedRuns()
    first, second = (runs.add(f"p/{mean}", mean, metrics=("pass@4", "score")) for mean in (0.9, 0.8))
    runs.compared(first, second, 0.5, metric="score")
    leaderboard = await runs.rank_models.rank(replace(QUERY, metric="pass@4"))
    assert runs.pending == []
    assert [entry.not_compared_with for entry in leaderboard.entries] == [("p/0.8",), ("p/0.9",)]


async def test_a_run_that_failed_on_much_of_a_task_is_unranked() -> None:
    runs = ClosedRuns()
    runs.add("p/good", 0.7)
    runs.add("p/lucky", 0.76, failing_tasks=("small",))
    runs.add("p/older", 0.6)
    runs.add("p/older", 0.9, failing_tasks=("small", "tiny"))
    leaderboard = await runs.rank_models.rank(QUERY)
    assert [entry.model for entry in leaderboard.entries] == ["p/good", "p/older"]
    assert unranked(leaderboard) == {"p/lucky": ("more than 5% failed: small",)}


async def test_a_trend_is_reported_once_the_runs_are_compared() -> None:
    runs = ClosedRuns()
    before, after = runs.add("p/a", 0.5), runs.add("p/a", 0.75)
    [entry] = (await runs.rank_models.rank(QUERY)).entries
    assert entry.trend == Trend(before.run_id)
    runs.compared(before, after, 0.01)
    [entry] = (await runs.rank_models.rank(QUERY)).entries
    assert entry.trend == Trend(before.run_id, TrendDirection.UP, 0.25, 0.01)


@pytest.mark.parametrize(
    ("p_value", "direction"),
    [(0.01, TrendDirection.DOWN), (0.2, TrendDirection.STEADY), (None, None)],
)
async def test_only_a_shown_difference_is_a_move(
    p_value: float | None, direction: TrendDirection | None
) -> None:
    runs = ClosedRuns()
    before, after = runs.add("p/a", 0.75), runs.add("p/a", 0.5)
    runs.compared(after, before, p_value)
    [entry] = (await runs.rank_models.rank(QUERY)).entries
    assert entry.trend is not None
    assert entry.trend.direction is direction


async def test_more_models_than_listed_are_counted() -> None:
    runs = ClosedRuns()
    for index in range(12):
        runs.add(f"p/{index}", index / 100)
    leaderboard = await runs.rank_models.rank(QUERY)
    assert (len(leaderboard.entries), leaderboard.total_models) == (10, 12)
    assert len((await runs.rank_models.rank(replace(QUERY, max_entries=3))).entries) == 3
    with pytest.raises(InvalidParameter):
        await runs.rank_models.rank(replace(QUERY, max_entries=MAX_LEADERBOARD_MODELS + 1))


async def test_a_project_has_a_leaderboard_of_its_own() -> None:
    runs = ClosedRuns()
    runs.add("p/a", 0.5, project_id=7)
    runs.add("p/a", 0.6, project_id=8)
    runs.add("p/b", 0.7, project_id=8)
    leaderboard = await runs.rank_models.rank(replace(QUERY, project_id=7))
    assert [(one.model, one.figure.figure.mean) for one in leaderboard.entries] == [("p/a", 0.5)]


async def test_a_benchmark_without_runs_has_an_empty_leaderboard() -> None:
    runs = ClosedRuns()
    assert await runs.rank_models.rank(QUERY) == Leaderboard("headline")
    runs.add("p/a", 0.5, state=RunState.FAILED)
    assert await runs.rank_models.rank(QUERY) == Leaderboard("headline")


async def test_a_metric_goes_by_its_word_or_its_name_and_an_unknown_one_is_refused() -> None:
    runs = ClosedRuns()
    runs.add("p/a", 0.5, metrics=("exact_match,strict", "score"))
    assert (await runs.rank_models.rank(QUERY)).metric == "exact_match,strict"
    assert (await runs.rank_models.rank(replace(QUERY, metric="accuracy"))).metric == "score"
    assert (await runs.rank_models.rank(replace(QUERY, metric="exact_match"))).metric == "exact_match,strict"
    with pytest.raises(UnknownMetric) as refused:
        await runs.rank_models.rank(replace(QUERY, metric="acc"))
    assert refused.value.facts == {"metric": "acc", "supported": "exact_match,strict, score"}


async def test_a_log_does_not_choose_the_metric_of_a_leaderboard_with_own_runs() -> None:
    runs = ClosedRuns()
    runs.add("p/own", 0.5, metrics=("acc", "score"))
    theirs = runs.add(
        "p/theirs", 0.9, WHOLE.with_values({IMPORTED_FROM: "inspect"}), metrics=("match", "score")
    )
    leaderboard = await runs.rank_models.rank(QUERY)
    assert (leaderboard.metric, [one.model for one in leaderboard.entries]) == ("acc", ["p/own"])
    leaderboard = await runs.rank_models.rank(replace(QUERY, like_run_id=theirs.run_id))
    assert (leaderboard.metric, [one.model for one in leaderboard.entries]) == ("match", ["p/theirs"])


async def test_a_benchmark_of_logs_alone_has_their_metric() -> None:
    runs = ClosedRuns()
    runs.add("p/theirs", 0.9, WHOLE.with_values({IMPORTED_FROM: "inspect"}), metrics=("match", "score"))
    leaderboard = await runs.rank_models.rank(QUERY)
    assert (leaderboard.metric, [one.model for one in leaderboard.entries]) == ("match", ["p/theirs"])


async def test_baselines_are_those_of_the_newest_run_that_has_them() -> None:
    runs = ClosedRuns()
    first, second = runs.add("p/a", 0.5), runs.add("p/b", 0.6)
    floor = {"random": {"acc": benchmark_figure(0.25)}, "longest": {"f1": benchmark_figure(0.3)}}
    runs.rows.run_baselines[first.run_id] = floor
    leaderboard = await runs.rank_models.rank(QUERY)
    assert [(one.model, one.figure, one.run) for one in leaderboard.baselines] == [
        ("baseline/random", benchmark_figure(0.25), None)
    ]
    runs.rows.run_baselines[second.run_id] = {"random": {"acc": benchmark_figure(0.5)}}
    assert (await runs.rank_models.rank(QUERY)).baselines[0].figure == benchmark_figure(0.5)
