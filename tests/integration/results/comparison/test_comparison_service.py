"""Comparisons and flips from the door of results: runs are recorded, closed and compared over gRPC."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace

import grpc
import pytest
import pytest_asyncio

from proctor.v1 import comparison_pb2, comparison_service_pb2, run_pb2
from proctor.v1 import comparison_service_pb2_grpc as comparison_grpc
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
async def comparisons_of(
    harness: ResultsHarness,
) -> "AsyncIterator[comparison_grpc.ComparisonServiceAsyncStub]":
    async with open_channel(f"127.0.0.1:{harness.results.grpc.port}", signer=SCHEDULER) as channel:
        yield comparison_grpc.ComparisonServiceStub(channel)


async def recorded(harness: ResultsHarness, benchmark: str, right: int, limit: int | None = None) -> RunPlan:
    """An open run that has so many answers right; every sample asks for the parity of its position."""
    sample_set_id = await harness.store([choice_sample(position) for position in range(SAMPLES)])
    facts = RunFacts(benchmark, model=f"p/{right}", limit=limit)
    plan = replace(plan_of([SAMPLES], [sample_set_id]), facts=facts, groups=(TaskGroup(benchmark, ("t0",)),))
    plan = await harness.open(plan)
    choices = [at % 2 if at < right else 1 - at % 2 for at in range(SAMPLES)]
    await harness.send(batch(plan.run_id, [answered(at, choice) for at, choice in enumerate(choices)]))

    async def is_recorded() -> bool:
        return await harness.recorded(plan.run_id) == SAMPLES

    await eventually(is_recorded, "all outcomes are recorded")
    return plan


async def closed(harness: ResultsHarness, benchmark: str, right: int) -> str:
    plan = await recorded(harness, benchmark, right)
    request = run_record_pb2.CloseRunRequest(run_id=plan.run_id, epoch=1, state=run_pb2.RUN_STATE_COMPLETED)
    await harness.records.CloseRun(request)
    return plan.run_id


async def test_runs_are_compared_with_what_that_proves(harness: ResultsHarness) -> None:
    benchmark = new_id()
    runs = [await closed(harness, benchmark, right) for right in (38, 20)]
    async with comparisons_of(harness) as comparisons:
        request = comparison_service_pb2.CompareRunsRequest(run_ids=runs, metrics=["accuracy"])
        comparison = (await comparisons.CompareRuns(request)).comparison
        by_model = comparison_service_pb2.CompareRunsRequest(
            models=["p/38", "p/20"], benchmark=benchmark, metrics=["accuracy"]
        )
        assert (await comparisons.CompareRuns(by_model)).comparison == comparison
    assert [(run.model, run.score) for run in comparison.runs] == [("p/38", 0.95), ("p/20", 0.5)]
    assert {run.scoring_method for run in comparison.runs} == {run_pb2.SCORING_METHOD_LOGLIKELIHOOD}
    task, whole = comparison.differences
    assert (task.task, task.metric, task.test, task.pairs) == ("t0", "acc", "exact McNemar", SAMPLES)
    assert task.difference == pytest.approx(0.45)
    assert (task.only_first_right, task.only_second_right) == (18, 0)
    assert 0 < task.ci_low < task.difference < task.ci_high
    assert task.p_value == task.adjusted_p_value < 0.001
    assert task.smallest_detectable > 0
    assert task.verdict == whole.verdict == comparison_pb2.VERDICT_FIRST_BETTER
    assert (whole.task, whole.test, comparison.corrected_over) == ("", "exact McNemar", 1)


async def test_what_is_undefined_is_unset(harness: ResultsHarness) -> None:
    runs = [await closed(harness, "twins", 20) for _ in range(2)]
    async with comparisons_of(harness) as comparisons:
        request = comparison_service_pb2.CompareRunsRequest(run_ids=runs, metrics=["mcc"])
        comparison = (await comparisons.CompareRuns(request)).comparison
    [task, _] = comparison.differences
    assert (task.difference, task.p_value, task.verdict) == (0.0, 1.0, comparison_pb2.VERDICT_NOT_SHOWN)
    assert not task.HasField("ci_low")
    assert not task.HasField("smallest_detectable")
    assert not task.HasField("difference_if_parsed")
    assert task.remark


async def test_flips_are_paged_with_prompts_targets_and_predictions(harness: ResultsHarness) -> None:
    first, second = [await closed(harness, "flips", right) for right in (38, 20)]
    request = comparison_service_pb2.ListFlipsRequest(
        first_run_id=first, second_run_id=second, task="t0", page_size=10
    )
    async with comparisons_of(harness) as comparisons:
        page = await comparisons.ListFlips(request)
        request.page_token = page.next_page_token
        rest = await comparisons.ListFlips(request)
    assert (page.total, rest.total, len(page.flips), len(rest.flips)) == (18, 18, 10, 8)
    assert rest.next_page_token == ""
    flip = page.flips[0]
    assert (flip.doc_id, flip.prompt, flip.target) == (20, "20 is", "even")
    assert (flip.first_prediction, flip.second_prediction) == ("even", "odd")
    assert (flip.first_score, flip.second_score, len(flip.digest)) == (1.0, 0.0, 32)


async def test_a_run_is_gated_against_its_base(harness: ResultsHarness) -> None:
    base, worse, like = [await closed(harness, "gates", right) for right in (38, 10, 38)]
    async with comparisons_of(harness) as comparisons:
        failing = comparison_service_pb2.GateRunRequest(run_id=worse, base_run_id=base, margin_points=5)
        decided = (await comparisons.GateRun(failing)).gate
        equal = comparison_service_pb2.GateRunRequest(run_id=like, base_run_id=base, margin_points=20)
        passed = (await comparisons.GateRun(equal)).gate
        equal.ClearField("margin_points")
        few = (await comparisons.GateRun(equal)).gate
        equal.metrics["t1"] = "acc"
        with pytest.raises(grpc.aio.AioRpcError, match="'t1' is not a task of every run: t0"):
            await comparisons.GateRun(equal)
    assert decided.verdict == comparison_pb2.GATE_VERDICT_FAIL
    [task] = decided.tasks
    assert task.margin == 0.05
    assert task.difference.difference == pytest.approx(-0.7)
    assert task.upper_limit < -0.05
    assert (task.difference.only_first_right, task.difference.only_second_right) == (0, 28)
    assert [run.model for run in decided.runs] == ["p/10", "p/38"]
    assert passed.verdict == comparison_pb2.GATE_VERDICT_PASS
    assert passed.tasks[0].lower_limit > -0.2
    assert (few.verdict, few.margin_points) == (comparison_pb2.GATE_VERDICT_INCONCLUSIVE, 1)
    assert few.tasks[0].reason.startswith("40 pairs decide nothing at this margin; about ")


async def test_a_gate_of_other_conditions_or_an_incomplete_run_decides_nothing(
    harness: ResultsHarness,
) -> None:
    base = await closed(harness, "conditions", 38)
    limited = await recorded(harness, "conditions", 38, limit=SAMPLES)
    cancelled = await recorded(harness, "conditions", 38)
    for plan, state in ((limited, "RUN_STATE_COMPLETED"), (cancelled, "RUN_STATE_CANCELLED")):
        await harness.records.CloseRun(
            run_record_pb2.CloseRunRequest(run_id=plan.run_id, epoch=1, state=run_pb2.RunState.Value(state))
        )
    request = comparison_service_pb2.GateRunRequest(base_run_id=base, margin_points=20)
    async with comparisons_of(harness) as comparisons:
        request.run_id = limited.run_id
        other = (await comparisons.GateRun(request)).gate
        request.may_differ.append("limit")
        allowed = (await comparisons.GateRun(request)).gate
        request.run_id = cancelled.run_id
        ended = (await comparisons.GateRun(request)).gate
        request.may_differ.append("weather")
        with pytest.raises(grpc.aio.AioRpcError, match="'weather' is no condition"):
            await comparisons.GateRun(request)
    assert list(other.reasons) == ["The runs differ in limit: 40 against none."]
    assert other.verdict == ended.verdict == comparison_pb2.GATE_VERDICT_INCONCLUSIVE
    assert list(ended.reasons) == [f"Run {cancelled.run_id} ended as cancelled."]
    assert allowed.verdict == comparison_pb2.GATE_VERDICT_PASS


async def test_a_size_is_planned_from_the_spread_of_two_runs(harness: ResultsHarness) -> None:
    runs = [await closed(harness, "sizes", right) for right in (30, 20)]
    request = comparison_service_pb2.PlanSizeRequest(run_ids=runs, difference_points=5)
    async with comparisons_of(harness) as comparisons:
        plan = (await comparisons.PlanSize(request)).plan
        request.run_ids.append(new_id())
        with pytest.raises(grpc.aio.AioRpcError, match="run_ids must be 2, not 3"):
            await comparisons.PlanSize(request)
        request = comparison_service_pb2.PlanSizeRequest(run_ids=runs)
        with pytest.raises(grpc.aio.AioRpcError, match="difference_points must be above 0"):
            await comparisons.PlanSize(request)
    assert [run.run_id for run in plan.runs] == runs
    task, whole = plan.tasks
    assert (task.difference.task, whole.difference.task, task.rows, task.wanted) == ("t0", "", 40, 0.05)
    # A quarter of the pairs differ. Connor 1987, Biometrics 43:207, by the normal distribution; exact tests
    # need a few more pairs.
    [size] = task.sizes
    by_normal = (1.96 * 0.25**0.5 + 0.8416 * (0.25 - 0.05**2) ** 0.5) ** 2 / 0.05**2
    assert by_normal < size.rows < 1.06 * by_normal
    assert not size.HasField("rollouts")
    assert plan.warnings[0].startswith("The runs have one rollout")


async def test_refusals_say_why(harness: ResultsHarness) -> None:
    one, other = await closed(harness, "refusals", 5), await closed(harness, "elsewhere", 5)
    still_open = (await recorded(harness, "refusals", 5)).run_id
    for run_ids, metrics, code, reason in (
        ([one, still_open], [], grpc.StatusCode.FAILED_PRECONDITION, "RUN_NOT_FROZEN"),
        ([one, other], [], grpc.StatusCode.FAILED_PRECONDITION, "NOT_COMPARABLE"),
        ([one, new_id()], [], grpc.StatusCode.NOT_FOUND, "RUN_NOT_FOUND"),
        ([one, one], [], grpc.StatusCode.INVALID_ARGUMENT, "INVALID_PARAMETER"),
        ([one, "x"], [], grpc.StatusCode.INVALID_ARGUMENT, "INVALID_PARAMETER"),
        (
            [one, await closed(harness, "refusals", 5)],
            ["bleu"],
            grpc.StatusCode.INVALID_ARGUMENT,
            "UNKNOWN_METRIC",
        ),
    ):
        async with comparisons_of(harness) as comparisons:
            with pytest.raises(grpc.aio.AioRpcError) as refused:
                await comparisons.CompareRuns(
                    comparison_service_pb2.CompareRunsRequest(run_ids=run_ids, metrics=metrics)
                )
        assert (refused.value.code(), remote_error(refused.value).reason) == (code, reason)


async def test_a_closed_run_is_compared_with_the_others_soon(harness: ResultsHarness) -> None:
    benchmark = new_id()
    runs = [await closed(harness, benchmark, right) for right in (38, 20)]

    async def is_stored() -> bool:
        async with harness.database() as database:
            found = await database.fetchval(
                "SELECT count(*) FROM run_comparisons WHERE first_run_id = ANY ($1::uuid[]) AND task = ''",
                runs,
            )
        return bool(found)

    # A busy machine takes longer than the first try has, and the second one comes after the others.
    await eventually(is_stored, "the runs were compared", 150)


async def test_a_name_that_postgres_cannot_hold_is_refused(harness: ResultsHarness) -> None:
    flips = comparison_service_pb2.ListFlipsRequest(
        first_run_id=new_id(), second_run_id=new_id(), task="t0", metric="\0"
    )
    async with comparisons_of(harness) as comparisons:
        for asked in (
            comparisons.CompareRuns(
                comparison_service_pb2.CompareRunsRequest(benchmark="glue", models=["p/m", "p/m\0"])
            ),
            comparisons.CompareRuns(
                comparison_service_pb2.CompareRunsRequest(benchmark="\0", models=["p/m", "p/n"])
            ),
            comparisons.ListFlips(flips),
        ):
            with pytest.raises(grpc.aio.AioRpcError, match="holds a NUL character") as refused:
                await asked
            assert refused.value.code() is grpc.StatusCode.INVALID_ARGUMENT
