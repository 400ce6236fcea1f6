"""Figures of corpora beside the score of a closed run, one for each kind and corpus."""

from collections.abc import AsyncIterator
from dataclasses import replace
from typing import Any

import pytest
import pytest_asyncio
from statsmodels.stats.proportion import proportion_confint

from proctor.v1 import export_service_pb2 as export_pb2
from proctor.v1 import results_service_pb2 as results_pb2
from proctor.v1 import run_record_service_pb2 as run_record_pb2
from proctor.v1 import summary_pb2
from services.common.postgres import PostgresSession, connect_pool
from services.results.leaderboard.postgres import add_closed_run
from services.results.postgres import QUERIES, SCHEMA
from services.results.runs.run_plan import RunPlan
from services.results.summaries.postgres import PostgresSummaries
from tests.fakes.eventually import eventually
from tests.fakes.refusals import refusal_of
from tests.fakes.results.recorded_run import answered, batch
from tests.fakes.results.results_harness import ResultsHarness, results_harness

pytestmark = pytest.mark.asyncio(loop_scope="module")
OVERLAP, CANARY = summary_pb2.CONTAMINATION_KIND_OVERLAP, summary_pb2.CONTAMINATION_KIND_CANARY


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def harness() -> AsyncIterator[ResultsHarness]:
    async with results_harness() as made:
        yield made


def overlap(
    corpus: str = "crawl", found: int = 3, searched: int = 40, **changes: Any
) -> summary_pb2.ContaminationFigure:
    values: dict[str, Any] = {"kind": OVERLAP, "ngram": 13}
    values |= {"corpus": corpus, "found": found, "searched": searched}
    return summary_pb2.ContaminationFigure(**{**values, **changes})


async def record(
    harness: ResultsHarness, run_id: str, figure: summary_pb2.ContaminationFigure
) -> summary_pb2.RunSummary:
    request = results_pb2.RecordContaminationRequest(run_id=run_id, figure=figure, user="ann")
    return (await harness.public.RecordContamination(request)).summary


async def closed(harness: ResultsHarness) -> RunPlan:
    plan = await harness.open_run_of(4)
    assert await refusal_of(record(harness, plan.run_id, overlap())) == (
        "RUN_NOT_FROZEN",
        f"Run {plan.run_id} still takes outcomes, so its figures may change; wait for it or cancel it.",
    )
    await harness.send(batch(plan.run_id, [answered(at) for at in range(4)]))

    async def is_recorded() -> bool:
        return await harness.recorded(plan.run_id) == 4

    await eventually(is_recorded, "all outcomes are recorded")
    await harness.records.CloseRun(run_record_pb2.CloseRunRequest(run_id=plan.run_id, epoch=1))
    return plan


async def test_figures_stand_in_the_summary_by_kind_and_corpus(harness: ResultsHarness) -> None:
    plan = await closed(harness)
    moved = summary_pb2.ContaminationDifference(metric="acc", difference=0.1, ci_low=-0.1, ci_high=0.3)
    await record(harness, plan.run_id, overlap(found=9))
    await record(harness, plan.run_id, overlap("canaries", 0, 7, kind=CANARY, ngram=0))
    stored = await record(harness, plan.run_id, overlap(differences=[moved]))
    asked = results_pb2.GetSummaryRequest(run_id=plan.run_id)
    assert (await harness.public.GetSummary(asked)).summary == stored
    canary, rows = stored.contamination
    assert (canary.corpus, canary.found, canary.searched, rows.corpus) == ("canaries", 0, 7, "crawl")
    for one in stored.contamination:
        ends = proportion_confint(one.found, one.searched, method="wilson")
        assert (one.share, one.ci_low, one.ci_high) == pytest.approx(
            (one.found / one.searched, *ends), abs=1e-12
        )
    assert (rows.user, rows.ngram, [*rows.differences]) == ("ann", 13, [moved])
    assert rows.HasField("recorded_at")
    report = b"".join(
        [
            chunk.content
            async for chunk in harness.exports.ExportRun(
                export_pb2.ExportRunRequest(run_id=plan.run_id, format=export_pb2.EXPORT_FORMAT_HTML)
            )
        ]
    )
    assert b"3 of 40 rows share 13-grams of words with crawl (7.5%, 95 % from 2.6% to 19.9%)." in report


async def test_figures_stay_where_the_run_is_closed_again(harness: ResultsHarness) -> None:
    plan = await closed(harness)
    await record(harness, plan.run_id, overlap())
    async with await connect_pool(harness.postgres.address, schema=SCHEMA) as pool:
        summaries = PostgresSummaries(PostgresSession(pool, QUERIES), add_closed_run)
        stored = await summaries.find(plan.run_id, 1)
        assert stored is not None
        again = await summaries.keep(plan, replace(stored, contamination=(), problems=("x",)), replaces=True)
    assert (again.problems, again.contamination) == (("x",), stored.contamination)


async def test_of_too_many_the_earliest_goes(harness: ResultsHarness) -> None:
    plan = await closed(harness)
    for number in range(21):
        await record(harness, plan.run_id, overlap(f"corpus {number}"))
    stored = await record(harness, plan.run_id, overlap("corpus 21"))
    assert [one.corpus for one in stored.contamination] == [f"corpus {number}" for number in range(2, 22)]


async def test_figures_that_mean_nothing_are_refused(harness: ResultsHarness) -> None:
    plan = await closed(harness)
    outside = summary_pb2.ContaminationDifference(metric="acc", difference=2, ci_low=0, ci_high=1)
    for wrong in (
        overlap(" "),
        overlap(found=41),
        overlap(found=-1),
        overlap(found=0, searched=0),
        overlap(ngram=0),
        overlap(kind=CANARY),
        overlap(kind=0),
        overlap(differences=[outside]),
    ):
        assert (await refusal_of(record(harness, plan.run_id, wrong)))[0] == "INVALID_PARAMETER"
    stored = await harness.public.GetSummary(results_pb2.GetSummaryRequest(run_id=plan.run_id))
    assert not stored.summary.contamination
