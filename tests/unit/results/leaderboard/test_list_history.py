"""The history of closed runs, page by page."""

from dataclasses import replace
from datetime import timedelta

import pytest

from proctor.values.run import RunState
from services.common.errors import InvalidPageToken, InvalidParameter
from services.results.leaderboard.list_history import HistoryPage, HistoryQuery
from services.results.leaderboard.ports import HistoryTotals
from services.results.statistics.metric_names import UnknownMetric
from tests.fakes.results.closed_runs import BENCHMARK, NOON, ClosedRuns


def models(history: HistoryPage) -> list[str]:
    return [entry.model for entry in history.entries]


async def test_closed_runs_are_listed_newest_first_however_they_ended() -> None:
    runs = ClosedRuns()
    runs.add("p/a", 0.5)
    runs.add("p/b", None, state=RunState.FAILED, metrics=())
    runs.add("p/c", 0.7, state=RunState.CANCELLED)
    history = await runs.list_history.list_page(HistoryQuery())
    assert (models(history), history.total) == (["p/c", "p/b", "p/a"], 3)
    assert [entry.figure.figure.mean for entry in history.entries] == [0.7, None, 0.5]
    assert [entry.metric for entry in history.entries] == ["acc", "", "acc"]


async def test_pages_follow_each_other_without_gap_and_the_last_one_says_so() -> None:
    runs = ClosedRuns()
    for index in range(6):
        runs.add(f"p/{index}", 0.5)
    seen, query = [], HistoryQuery(page_size=2)
    while True:
        history = await runs.list_history.list_page(query)
        seen += models(history)
        assert history.total == 6
        if not history.next_page_token:
            break
        query = replace(query, page_token=history.next_page_token)
    assert seen == [f"p/{index}" for index in (5, 4, 3, 2, 1, 0)]


async def test_a_history_is_of_a_model_a_benchmark_and_some_days() -> None:
    runs = ClosedRuns()
    old = runs.add("p/a", 0.5)
    runs.rows.closed[old.run_id] = replace(old, closed_at=NOON - timedelta(days=31))
    runs.add("p/a", 0.6)
    runs.add("p/b", 0.7)
    assert models(await runs.list_history.list_page(HistoryQuery(model="p/a"))) == ["p/a"]
    assert models(await runs.list_history.list_page(HistoryQuery(model="p/a", days=40))) == ["p/a", "p/a"]
    assert len(models(await runs.list_history.list_page(HistoryQuery(benchmark=BENCHMARK)))) == 2
    assert models(await runs.list_history.list_page(HistoryQuery(benchmark="numbers"))) == []


async def test_a_history_is_of_one_state_and_sums_up_all_pages() -> None:
    runs = ClosedRuns()
    for state in (RunState.COMPLETED, RunState.FAILED, RunState.COMPLETED):
        run = runs.add("p/a", 0.5, state=state)
        runs.rows.closed[run.run_id] = replace(run, result=replace(run.result, answered=7, failed=2))
    whole = await runs.list_history.list_page(HistoryQuery(page_size=1, includes_totals=True))
    assert (len(whole.entries), whole.total) == (1, 3)
    assert whole.totals == HistoryTotals(runs=3, completed_runs=2, answered=21, failed=6)
    failed = await runs.list_history.list_page(HistoryQuery(state=RunState.FAILED))
    assert (len(failed.entries), failed.total, failed.totals) == (1, 1, None)


async def test_the_metric_asked_for_is_shown_where_a_run_has_it() -> None:
    runs = ClosedRuns()
    runs.add("p/a", 0.5, metrics=("mcc", "score"))
    runs.add("p/b", 0.6, metrics=("acc", "score"))
    history = await runs.list_history.list_page(HistoryQuery(metric="mcc"))
    assert [(one.metric, one.figure.figure.mean) for one in history.entries] == [
        ("mcc", None),
        ("mcc", 0.5),
    ]


@pytest.mark.parametrize(
    "query", [HistoryQuery(days=-1), HistoryQuery(days=3651), HistoryQuery(page_size=501)]
)
async def test_numbers_out_of_range_are_refused(query: HistoryQuery) -> None:
    with pytest.raises(InvalidParameter):
        await ClosedRuns().list_history.list_page(query)


@pytest.mark.parametrize("token", ["x", "MS4y", "!!", "OTk5OTk5OTk5OTk5OTk5OTk5OTk5LmE"])
async def test_a_page_token_of_ones_own_making_is_refused(token: str) -> None:
    with pytest.raises(InvalidPageToken):
        await ClosedRuns().list_history.list_page(HistoryQuery(page_token=token))


async def test_a_metric_that_no_run_has_is_refused_with_those_there_are() -> None:
    runs = ClosedRuns()
    runs.add("p/a", 0.5)
    with pytest.raises(UnknownMetric, match=r"zzz.*Supported: acc"):
        await runs.list_history.list_page(HistoryQuery(metric="zzz"))
    assert (await ClosedRuns().list_history.list_page(HistoryQuery(metric="zzz"))).total == 0
