"""Ratings over gRPC, from judging runs that are recorded as any run is."""

from collections.abc import AsyncIterator, Sequence
from dataclasses import replace

import pytest
import pytest_asyncio

from proctor.v1 import leaderboard_service_pb2, run_pb2
from proctor.v1 import leaderboard_service_pb2_grpc as leaderboard_grpc
from proctor.v1 import run_record_service_pb2 as run_record_pb2
from proctor.values.judging.scale import OF_PAIRS, scale_options
from proctor.values.sample import Prompt
from proctor.values.scoring import MetricUse, OutputType, TaskScoring
from services.common.grpc.client import open_channel
from services.results.postgres import QUERIES
from services.results.runs.run_plan import RunFacts, RunPlan, TaskProvenance
from services.results.samples.sample import StoredSample
from tests.fakes.callers import SCHEDULER
from tests.fakes.eventually import eventually
from tests.fakes.results.answered_runs import row, rows_of
from tests.fakes.results.recorded_run import TEXT_SCORING, batch, new_id, plan_of, said
from tests.fakes.results.results_harness import ResultsHarness, results_harness

pytestmark = pytest.mark.asyncio(loop_scope="module")

COUNT = 40
PAIRS = (MetricUse("preference"), MetricUse("verdict", scale_options(OF_PAIRS)))
# Two headings, three items and a bold text.
MARKED = "# A\n\n- one\n- two\n1. three\n\n## B\n\nIt is **bold**, 2 * 3 * 4."


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def harness() -> AsyncIterator[ResultsHarness]:
    async with results_harness() as made:
        yield made


async def closed(
    harness: ResultsHarness, plan: RunPlan, samples: Sequence[StoredSample], texts: Sequence[str]
) -> RunPlan:
    """The run, with these answers to the samples of its one task."""
    task = replace(plan.tasks[0], sample_set_id=await harness.store(samples))
    await harness.open(replace(plan, tasks=(task,)))
    await harness.send(batch(plan.run_id, [said(at, text) for at, text in enumerate(texts)]))

    async def all_recorded() -> bool:
        return await harness.recorded(plan.run_id) == len(texts)

    await eventually(all_recorded, "all outcomes are recorded")
    await harness.records.CloseRun(
        run_record_pb2.CloseRunRequest(run_id=plan.run_id, epoch=1, state=run_pb2.RUN_STATE_COMPLETED)
    )
    return plan


async def answers(harness: ResultsHarness, benchmark: str, model: str, text: str) -> RunPlan:
    plan = plan_of([COUNT])
    task = replace(plan.tasks[0], task="rows", scoring=TEXT_SCORING)
    plan = replace(plan, tasks=(task,), facts=RunFacts(benchmark, model=model))
    samples = rows_of([f"q{at}" for at in range(COUNT)], benchmark)
    return await closed(harness, plan, samples, [text] * COUNT)


async def judged(harness: ResultsHarness, first: RunPlan, second: RunPlan, wins: int) -> RunPlan:
    """The first run wins the first pairs; of the others the judge takes what is shown first."""
    places = [(at, place) for at in range(COUNT) for place in ("first", "second")]
    samples = [
        replace(row(at, Prompt(f"v{pair}{place}"), f"{pair}.0.{place}", place), position=at)
        for at, (pair, place) in enumerate(places)
    ]
    plan = plan_of([len(places)])
    task = replace(
        plan.tasks[0],
        task="preference",
        scoring=TaskScoring(OutputType.GENERATE_UNTIL, PAIRS),
        provenance=TaskProvenance(version="1", definition_digest="d1"),
    )
    facts = RunFacts(first.run_id, model="p/judge", against_run_id=second.run_id)
    texts = [f"Verdict: {place if pair < wins else 'first'}" for pair, place in places]
    return await closed(harness, replace(plan, tasks=(task,), facts=facts), samples, texts)


async def ratings(
    harness: ResultsHarness, benchmark: str, **asked: bool
) -> leaderboard_service_pb2.GetRatingsResponse:
    async with open_channel(f"127.0.0.1:{harness.results.grpc.port}", signer=SCHEDULER) as channel:
        stub = leaderboard_grpc.LeaderboardServiceStub(channel)
        request = leaderboard_service_pb2.GetRatingsRequest(benchmark=benchmark, **asked)  # type: ignore[arg-type]  # fields by name
        return await stub.GetRatings(request)


async def test_models_are_rated_by_the_pairs_that_were_judged_in_both_orders(
    harness: ResultsHarness,
) -> None:
    benchmark = new_id()
    good = await answers(harness, benchmark, "p/good", MARKED)
    poor = await answers(harness, benchmark, "p/poor", "short")
    other = await answers(harness, benchmark, "p/other", "short")
    one = await judged(harness, good, poor, wins=30)
    two = await judged(harness, other, poor, wins=0)
    found = await ratings(harness, benchmark)
    assert list(found.judging_run_ids) == [two.run_id, one.run_id]
    assert (found.prompt, found.prompt_version, list(found.judges)) == ("preference", "1", ["p/judge"])
    assert found.matches == 2 * COUNT
    by_model = {each.model: each for each in found.models}
    counts = {name: (each.wins, each.ties, each.losses) for name, each in by_model.items()}
    assert counts == {"p/good": (30, 10, 0), "p/poor": (0, 50, 30), "p/other": (0, 40, 0)}
    assert (by_model["p/good"].rank, by_model["p/poor"].rank, by_model["p/other"].rank) == (1, 2, 2)
    assert found.first_place_bias == pytest.approx(50 / 80)
    assert not found.style_effects
    controlled = await ratings(harness, benchmark, is_style_controlled=True)
    assert [each.name for each in controlled.style_effects] == ["length", "markup"]
    # Only the good model's answers have more of both: style explains all that tells it apart.
    ranks = {each.model: each.rank for each in controlled.models}
    assert ranks["p/good"] == ranks["p/poor"]


async def test_markup_is_counted_as_headings_items_and_bold_texts(harness: ResultsHarness) -> None:
    plan = await answers(harness, new_id(), "p/marked", MARKED)
    async with harness.database() as connection:
        query = QUERIES["list_answer_styles"]
        found = await connection.fetch(*query.call({"run_ids": [plan.run_id], "has_style": True}))
    assert {(one["characters"], one["markup"]) for one in found} == {(len(MARKED), 6)}
