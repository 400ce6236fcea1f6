"""Leaderboard and history from the door of results: runs are recorded, closed, compared and read."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace

import grpc
import numpy as np
import pytest
import pytest_asyncio
from scipy import stats

from proctor.v1 import leaderboard_pb2, leaderboard_service_pb2, run_pb2
from proctor.v1 import leaderboard_service_pb2_grpc as leaderboard_grpc
from proctor.v1 import run_record_service_pb2 as run_record_pb2
from proctor.values.scoring import TaskGroup
from services.common.grpc.client import open_channel
from services.common.grpc.errors import remote_error
from services.results.runs.run_plan import RunFacts, RunPlan
from tests.fakes.callers import SCHEDULER
from tests.fakes.eventually import eventually
from tests.fakes.results.recorded_run import answered, batch, choice_sample, new_id, plan_of
from tests.fakes.results.results_harness import ResultsHarness, results_harness

pytestmark = pytest.mark.asyncio(loop_scope="module")

SAMPLES = 40


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def harness() -> AsyncIterator[ResultsHarness]:
    async with results_harness() as made:
        yield made


@asynccontextmanager
async def entries_of(
    harness: ResultsHarness,
) -> "AsyncIterator[leaderboard_grpc.LeaderboardServiceAsyncStub]":
    async with open_channel(f"127.0.0.1:{harness.results.grpc.port}", signer=SCHEDULER) as channel:
        yield leaderboard_grpc.LeaderboardServiceStub(channel)


async def examined(
    harness: ResultsHarness,
    facts: RunFacts,
    right: int,
    state: run_pb2.RunState.ValueType = run_pb2.RUN_STATE_COMPLETED,
) -> RunPlan:
    """A closed run that has so many answers right; every sample asks for the parity of its position."""
    sample_set_id = await harness.store([choice_sample(position) for position in range(SAMPLES)])
    plan = plan_of([SAMPLES], [sample_set_id])
    plan = await harness.open(replace(plan, facts=facts, groups=(TaskGroup(facts.benchmark, ("t0",)),)))
    choices = [at % 2 if at < right else 1 - at % 2 for at in range(SAMPLES)]
    await harness.send(batch(plan.run_id, [answered(at, choice) for at, choice in enumerate(choices)]))

    async def is_recorded() -> bool:
        return await harness.recorded(plan.run_id) == SAMPLES

    await eventually(is_recorded, "all outcomes are recorded")
    request = run_record_pb2.CloseRunRequest(run_id=plan.run_id, epoch=1, state=state)
    await harness.records.CloseRun(request)
    return plan


async def test_models_are_ranked_with_ties_trend_and_floor(harness: ResultsHarness) -> None:
    benchmark = new_id()
    await examined(harness, RunFacts(benchmark, model="p/good"), right=4)
    good = await examined(harness, RunFacts(benchmark, model="p/good"), right=39)
    close = await examined(harness, RunFacts(benchmark, model="p/close"), right=38)
    await examined(harness, RunFacts(benchmark, model="p/poor"), right=5)
    await examined(harness, RunFacts(benchmark, model="p/short", limit=3), right=40)
    async with entries_of(harness) as stub:
        request = leaderboard_service_pb2.GetLeaderboardRequest(benchmark=benchmark, metric="accuracy")

        async def is_compared() -> bool:
            leaderboard = await stub.GetLeaderboard(request)
            directions = [one.trend.direction for one in leaderboard.entries]
            return (
                bool(leaderboard.baselines)
                and directions[0] != 0
                and [one.rank for one in leaderboard.entries][-1] == 3
            )

        await eventually(is_compared, "the runs are compared and the baselines are computed")
        leaderboard = await stub.GetLeaderboard(request)
    assert [(one.run_id, one.rank, list(one.tied_with)) for one in leaderboard.entries[:2]] == [
        (good.run_id, 1, ["p/close"]),
        (close.run_id, 1, ["p/good"]),
    ]
    assert leaderboard.entries[0].trend.direction == leaderboard_pb2.TREND_DIRECTION_UP
    assert leaderboard.entries[0].trend.difference == pytest.approx(35 / 40)
    assert leaderboard.entries[0].figure.mean == pytest.approx(39 / 40)
    assert not leaderboard.entries[1].HasField("trend")
    assert [(one.model, list(one.unranked_because)) for one in leaderboard.unranked] == [
        ("p/short", ["limit 3 instead of none"])
    ]
    assert [(one.model, one.figure.mean) for one in leaderboard.baselines] == [
        ("baseline/random", 0.5),
        ("baseline/majority", 0.5),
        ("baseline/longest", 0.5),
    ]
    assert (leaderboard.total_models, leaderboard.metric) == (3, "acc")
    assert leaderboard.scoring_method == run_pb2.SCORING_METHOD_LOGLIKELIHOOD
    assert leaderboard.HasField("last_updated")


async def test_repeated_runs_say_what_two_single_runs_must_differ_by(harness: ResultsHarness) -> None:
    """The first run has 4 rows more right than the second, 2 more than the third; rows of runs are nested."""
    benchmark = new_id()
    runs = [await examined(harness, RunFacts(benchmark, model="p/a"), right) for right in (24, 20, 22)]
    await examined(harness, RunFacts(benchmark, model="p/b"), 30)
    async with entries_of(harness) as stub:
        board = await stub.GetLeaderboard(leaderboard_service_pb2.GetLeaderboardRequest(benchmark=benchmark))
        noise = await stub.GetNoise(leaderboard_service_pb2.GetNoiseRequest(run_id=runs[0].run_id))
        alone = await stub.GetNoise(
            leaderboard_service_pb2.GetNoiseRequest(run_id=board.entries[0].run_id, metric="acc")
        )
        with pytest.raises(grpc.aio.AioRpcError, match="beauty"):
            await stub.GetNoise(
                leaderboard_service_pb2.GetNoiseRequest(run_id=runs[0].run_id, metric="beauty")
            )
    assert board.repeated_runs == 3
    means = np.array([24, 20, 22]) / SAMPLES
    assert board.noise_floor == pytest.approx(stats.t(2).ppf(0.975) * np.sqrt(2 * means.var(ddof=1)))
    assert list(noise.run_ids) == [run.run_id for run in reversed(runs)]
    assert (noise.metric, noise.rollouts, [task.rows for task in noise.tasks]) == ("acc", 1, [SAMPLES])
    scores = np.array([[1.0] * right + [0.0] * (SAMPLES - right) for right in (24, 20, 22)])
    residuals = scores - scores.mean(axis=0) - scores.mean(axis=1, keepdims=True) + scores.mean()
    error = np.square(residuals).sum() / (2 * (SAMPLES - 1))
    assert noise.split.rollout == pytest.approx(np.sqrt(error / SAMPLES))
    assert noise.split.run == pytest.approx(np.sqrt(max(0.0, means.var(ddof=1) - error / SAMPLES)))
    assert noise.tasks[0].split == noise.split
    # The other model ran once, with one rollout.
    assert (list(alone.run_ids), alone.HasField("split")) == ([board.entries[0].run_id], False)


async def test_a_history_lists_what_was_closed(harness: ResultsHarness) -> None:
    facts = RunFacts(new_id(), model="p/a", project_id=7, num_fewshot=0)
    whole = await examined(harness, facts, right=10)
    failed = await examined(harness, facts, right=20, state=run_pb2.RUN_STATE_FAILED)
    async with entries_of(harness) as stub:
        first = await stub.ListHistory(
            leaderboard_service_pb2.ListHistoryRequest(benchmark=facts.benchmark, page_size=1)
        )
        second = await stub.ListHistory(
            leaderboard_service_pb2.ListHistoryRequest(
                benchmark=facts.benchmark, page_size=1, page_token=first.next_page_token
            )
        )
    [newest], [oldest] = first.entries, second.entries
    assert (newest.run_id, newest.state, newest.figure.mean) == (
        failed.run_id,
        run_pb2.RUN_STATE_FAILED,
        0.5,
    )
    assert (oldest.run_id, oldest.project_id, oldest.num_fewshot, oldest.answered) == (
        whole.run_id,
        7,
        0,
        SAMPLES,
    )
    assert (oldest.rank, oldest.unparsed_rate, oldest.task_count, first.total) == (0, 0.0, 1, 2)
    assert not second.next_page_token


async def test_closed_runs_are_returned_by_their_ids_with_the_metric(harness: ResultsHarness) -> None:
    facts = RunFacts(new_id(), model="p/a")
    closed = await examined(harness, facts, right=10)
    other = await examined(harness, facts, right=20)
    asked = [closed.run_id, new_id(), closed.run_id]
    async with entries_of(harness) as stub:
        request = leaderboard_service_pb2.ListClosedRunsRequest(run_ids=asked, metric="acc")
        [entry] = (await stub.ListClosedRuns(request)).entries
        assert (entry.run_id, entry.figure.metric, entry.figure.mean) == (closed.run_id, "acc", 0.25)
        request = leaderboard_service_pb2.ListClosedRunsRequest(run_ids=[other.run_id], metric="beauty")
        [entry] = (await stub.ListClosedRuns(request)).entries
        assert not entry.figure.HasField("mean")
        for wrong in (["x"], [closed.run_id] * 501):
            with pytest.raises(grpc.aio.AioRpcError, match="run_ids"):
                await stub.ListClosedRuns(leaderboard_service_pb2.ListClosedRunsRequest(run_ids=wrong))


async def test_a_benchmark_that_was_never_run_has_an_empty_leaderboard_and_history(
    harness: ResultsHarness,
) -> None:
    async with entries_of(harness) as stub:
        leaderboard = await stub.GetLeaderboard(
            leaderboard_service_pb2.GetLeaderboardRequest(benchmark="nothing")
        )
        history = await stub.ListHistory(leaderboard_service_pb2.ListHistoryRequest(benchmark="nothing"))
    assert (list(leaderboard.entries), leaderboard.total_models, leaderboard.HasField("last_updated")) == (
        [],
        0,
        False,
    )
    assert (list(history.entries), history.total) == ([], 0)


async def test_an_unknown_metric_and_a_limit_out_of_range_are_refused(harness: ResultsHarness) -> None:
    facts = RunFacts(new_id(), model="p/a")
    await examined(harness, facts, right=10)
    async with entries_of(harness) as stub:
        for request, reason in (
            (
                leaderboard_service_pb2.GetLeaderboardRequest(benchmark=facts.benchmark, metric="beauty"),
                "UNKNOWN_METRIC",
            ),
            (
                leaderboard_service_pb2.GetLeaderboardRequest(benchmark=facts.benchmark, max_entries=101),
                "INVALID_PARAMETER",
            ),
            (
                leaderboard_service_pb2.GetLeaderboardRequest(benchmark=facts.benchmark, scoring_method=9),  # type: ignore[arg-type]  # a number that no enum has
                "INVALID_PARAMETER",
            ),
        ):
            with pytest.raises(grpc.aio.AioRpcError) as refused:
                await stub.GetLeaderboard(request)
            assert remote_error(refused.value).reason == reason


async def test_a_name_that_postgres_cannot_hold_is_refused(harness: ResultsHarness) -> None:
    async with entries_of(harness) as entries:
        for asked in (
            entries.GetLeaderboard(leaderboard_service_pb2.GetLeaderboardRequest(benchmark="\0")),
            entries.GetLeaderboard(
                leaderboard_service_pb2.GetLeaderboardRequest(benchmark="glue", metric="\0")
            ),
            entries.ListHistory(leaderboard_service_pb2.ListHistoryRequest(model="p/m\0")),
            entries.ListHistory(leaderboard_service_pb2.ListHistoryRequest(benchmark="\0")),
        ):
            with pytest.raises(grpc.aio.AioRpcError, match="holds a NUL character") as refused:
                await asked
            assert refused.value.code() is grpc.StatusCode.INVALID_ARGUMENT
