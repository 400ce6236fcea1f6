"""Runs over data sets over the API of results: metrics, leaderboards, lists, comparisons."""

import hashlib
import json
from collections.abc import AsyncIterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

import grpc
import pytest
import pytest_asyncio

from proctor.v1 import (
    comparison_service_pb2,
    leaderboard_pb2,
    leaderboard_service_pb2,
    run_pb2,
    sample_pb2,
    summary_pb2,
)
from proctor.v1 import comparison_service_pb2_grpc as comparison_grpc
from proctor.v1 import export_service_pb2 as export_pb2
from proctor.v1 import export_service_pb2_grpc as export_grpc
from proctor.v1 import leaderboard_service_pb2_grpc as leaderboard_grpc
from proctor.v1 import rescore_service_pb2 as rescore_pb2
from proctor.v1 import rescore_service_pb2_grpc as rescore_grpc
from proctor.v1 import results_service_pb2 as results_pb2
from proctor.v1 import run_record_service_pb2 as run_record_pb2
from proctor.values.sample import Prompt
from proctor.values.scoring import MetricUse, OutputType, TaskGroup, TaskScoring
from services.common.grpc.client import open_channel
from services.common.grpc.errors import remote_error
from services.results.runs.run_plan import RunFacts, TaskProvenance
from services.results.samples.sample import StoredSample
from services.results.scoring.score import ScoringTarget
from tests.fakes.callers import SCHEDULER
from tests.fakes.eventually import eventually
from tests.fakes.results.recorded_run import batch, new_id, plan_of, said
from tests.fakes.results.results_harness import ResultsHarness, results_harness

pytestmark = pytest.mark.asyncio(loop_scope="module")

ROWS = tuple((f"What is {number}?", str(number)) for number in range(12))
"""Prompts and targets."""

Metrics = Mapping[str, Mapping[str, object]]
EXACT: Metrics = {"exact_match": {}}


@dataclass(frozen=True)
class Uploaded:
    """A data set as an upload of its own."""

    rows: Sequence[tuple[str, str]] = ROWS
    name: str = "numbers.jsonl"
    dataset_id: str = field(default_factory=lambda: f"ds_{new_id()}")

    @property
    def samples(self) -> list[StoredSample]:
        return [
            StoredSample(
                at,
                at,
                hashlib.sha256(f"{prompt}/{target}".encode()).digest(),
                Prompt(prompt),
                ScoringTarget(texts=(target,) if target else ()),
            )
            for at, (prompt, target) in enumerate(self.rows)
        ]

    @property
    def digest(self) -> str:
        return hashlib.sha256(repr(self.rows).encode()).hexdigest()


@dataclass(frozen=True)
class Api:
    """Results as other services call them."""

    harness: ResultsHarness
    leaderboards: "leaderboard_grpc.LeaderboardServiceAsyncStub"
    comparisons: "comparison_grpc.ComparisonServiceAsyncStub"
    exports: "export_grpc.ExportServiceAsyncStub"
    rescoring: "rescore_grpc.RescoreServiceAsyncStub"

    async def run(
        self, uploaded: Uploaded, model: str, answers: Sequence[Sequence[str]], metrics: Metrics = EXACT
    ) -> str:
        """A completed run, by the answers of each rollout."""
        sample_set_id = await self.harness.store(uploaded.samples)
        uses = tuple(
            MetricUse(name, json.dumps(options) if options else "") for name, options in metrics.items()
        )
        plan = plan_of([len(uploaded.rows)], [sample_set_id], rollouts=len(answers))
        task = replace(
            plan.tasks[0],
            task="rows",
            scoring=TaskScoring(OutputType.GENERATE_UNTIL, uses),
            provenance=TaskProvenance("1", row_source=uploaded.name, row_source_revision=uploaded.digest),
        )
        facts = RunFacts(uploaded.dataset_id, 0, model, 1, "ann", dataset_name=uploaded.name)
        plan = await self.harness.open(
            replace(
                plan,
                tasks=(task,),
                scoring_method=None,
                facts=facts,
                groups=(TaskGroup(uploaded.dataset_id, ("rows",)),),
            )
        )
        outcomes = [
            replace(said(at, text), rollout=rollout)
            for rollout, texts in enumerate(answers)
            for at, text in enumerate(texts)
        ]
        await self.harness.send(batch(plan.run_id, outcomes))

        async def is_recorded() -> bool:
            return await self.harness.recorded(plan.run_id) == len(outcomes)

        await eventually(is_recorded, "all outcomes are recorded")
        await self.harness.records.CloseRun(
            run_record_pb2.CloseRunRequest(run_id=plan.run_id, epoch=1, state=run_pb2.RUN_STATE_COMPLETED)
        )
        return plan.run_id

    async def summary(self, run_id: str) -> summary_pb2.RunSummary:
        request = results_pb2.GetSummaryRequest(run_id=run_id)
        return (await self.harness.public.GetSummary(request)).summary

    async def leaderboard(
        self, uploaded: Uploaded, metric: str = ""
    ) -> leaderboard_service_pb2.GetLeaderboardResponse:
        """The leaderboard once all its runs are compared, which goes on behind its reads."""
        request = leaderboard_service_pb2.GetLeaderboardRequest(benchmark=uploaded.dataset_id, metric=metric)
        found: list[leaderboard_service_pb2.GetLeaderboardResponse] = []

        async def is_whole() -> bool:
            found.append(await self.leaderboards.GetLeaderboard(request))
            return not found[-1].pending_comparisons

        await eventually(is_whole, "all runs of the leaderboard are compared")
        return found[-1]

    async def history(self, uploaded: Uploaded) -> Sequence[leaderboard_pb2.LeaderboardEntry]:
        request = leaderboard_service_pb2.ListHistoryRequest(benchmark=uploaded.dataset_id)
        return (await self.leaderboards.ListHistory(request)).entries

    async def compared(
        self, *run_ids: str, metrics: Sequence[str] = (), is_forced: bool = False
    ) -> comparison_service_pb2.CompareRunsResponse:
        return await self.comparisons.CompareRuns(
            comparison_service_pb2.CompareRunsRequest(run_ids=run_ids, metrics=metrics, is_forced=is_forced)
        )

    async def exported(self, run_id: str, form: str) -> bytes:
        request = export_pb2.ExportRunRequest(
            run_id=run_id, format=export_pb2.ExportFormat.Value(f"EXPORT_FORMAT_{form}")
        )
        return b"".join([piece.content async for piece in self.exports.ExportRun(request)])


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def api() -> AsyncIterator[Api]:
    async with (
        results_harness() as harness,
        open_channel(f"127.0.0.1:{harness.results.grpc.port}", signer=SCHEDULER) as channel,
    ):
        yield Api(
            harness,
            leaderboard_grpc.LeaderboardServiceStub(channel),
            comparison_grpc.ComparisonServiceStub(channel),
            export_grpc.ExportServiceStub(channel),
            rescore_grpc.RescoreServiceStub(channel),
        )


def answers(right: int, *, wordy: bool = False) -> list[str]:
    """So many of them right."""
    texts = [str(number) if number < right else "none of these" for number in range(len(ROWS))]
    return [f"It is {text}" for text in texts] if wordy else texts


def ranks(leaderboard: leaderboard_service_pb2.GetLeaderboardResponse) -> list[tuple[str, float]]:
    return [(one.model, one.figure.mean) for one in leaderboard.entries]


async def test_a_run_without_metrics_is_closed_listed_exported_and_is_on_no_leaderboard(api: Api) -> None:
    uploaded = Uploaded([("Say something.", ""), ("Say nothing.", "")], "prompts.jsonl")
    run_id = await api.run(uploaded, "p/a", [["something", ""]], {})
    summary = await api.summary(run_id)
    assert (summary.total, summary.answered, summary.failed, summary.unparsed) == (2, 2, 0, 0)
    assert not summary.tasks[0].metrics
    assert not summary.groups[0].metrics

    leaderboard = await api.leaderboard(uploaded)
    assert (len(leaderboard.entries), len(leaderboard.unranked), leaderboard.total_models) == (0, 0, 0)
    [past] = await api.history(uploaded)
    assert (past.benchmark, past.dataset_name, past.answered) == (uploaded.dataset_id, "prompts.jsonl", 2)
    assert (past.figure.HasField("mean"), past.unparsed_rate) == (False, 0.0)

    table = (await api.exported(run_id, "CSV")).decode()
    assert "score_" not in table
    assert table.count(",scored,") == 2
    document = json.loads(await api.exported(run_id, "JSON"))
    assert document["run"]["dataset_name"] == "prompts.jsonl"
    assert [one["scores"] for one in document["outcomes"]] == [{}, {}]
    assert await api.exported(run_id, "PARQUET")
    page = (await api.exported(run_id, "HTML")).decode()
    assert "prompts.jsonl by p/a</h1>" in page
    assert uploaded.dataset_id in page
    assert "no metrics were ordered" in page
    assert "<h2>Figures</h2>" not in page


async def test_a_run_without_metrics_is_compared_with_nothing_and_rescored_with_some(api: Api) -> None:
    uploaded = Uploaded()
    unscored = await api.run(uploaded, "p/a", [answers(9)], {})
    scored = await api.run(uploaded, "p/b", [answers(12)])
    for call in (
        api.compared(unscored, scored),
        api.compared(unscored, scored, metrics=["exact_match"]),
        api.comparisons.ListFlips(
            comparison_service_pb2.ListFlipsRequest(first_run_id=unscored, second_run_id=scored, task="rows")
        ),
    ):
        with pytest.raises(grpc.aio.AioRpcError, match="no metric in common") as refused:
            await call
        assert remote_error(refused.value).reason == "NOT_COMPARABLE"
    rescored = await api.rescoring.RescoreTask(
        rescore_pb2.RescoreTaskRequest(
            run_id=unscored,
            task="rows",
            metrics=[sample_pb2.MetricUse(name="exact_match"), sample_pb2.MetricUse(name="f1")],
        )
    )
    assert [(one.metric, one.mean) for one in rescored.summary.metrics] == [
        ("exact_match", 0.75),
        ("squad_f1", 0.75),
    ]
    with pytest.raises(grpc.aio.AioRpcError, match="metrics must be given"):
        await api.rescoring.RescoreTask(rescore_pb2.RescoreTaskRequest(run_id=unscored, task="rows"))


async def test_answers_that_another_metric_cannot_score_are_counted_and_the_first_are_named(
    api: Api,
) -> None:
    rows = [(f"{at}?", "none" if at % 2 else str(at)) for at in range(50)]
    run_id = await api.run(Uploaded(rows), "p/a", [[str(at) for at in range(50)]], {})
    rescored = await api.rescoring.RescoreTask(
        rescore_pb2.RescoreTaskRequest(
            run_id=run_id, task="rows", metrics=[sample_pb2.MetricUse(name="numeric")]
        )
    )
    assert (rescored.summary.answered, rescored.unscored) == (25, 25)
    assert [one.sample for one in rescored.unscored_answers] == list(range(1, 41, 2))
    assert {one.problem for one in rescored.unscored_answers} == {"the target 'none' names no number"}


async def test_answers_to_rows_that_expect_nothing_are_in_no_figure(api: Api) -> None:
    async def rescored(targets: Sequence[str]) -> rescore_pb2.RescoreTaskResponse:
        uploaded = Uploaded([(f"{at}?", target) for at, target in enumerate(targets)])
        run_id = await api.run(uploaded, "p/a", [["yes"] * len(targets)], {})
        return await api.rescoring.RescoreTask(
            rescore_pb2.RescoreTaskRequest(
                run_id=run_id, task="rows", metrics=[sample_pb2.MetricUse(name="f1")]
            )
        )

    some = await rescored(["yes", "", "no", ""])
    assert (some.summary.answered, some.unscored) == (2, 2)
    assert [(one.metric, one.mean) for one in some.summary.metrics] == [("squad_f1", 0.5)]
    assert {one.problem for one in some.unscored_answers} == {"it has no target"}
    with pytest.raises(grpc.aio.AioRpcError, match="such as that to sample 0: it has no target"):
        await rescored(["", ""])


async def test_models_are_ranked_over_a_data_set_and_compared_by_name(api: Api) -> None:
    uploaded = Uploaded()
    metrics: Metrics = {"numeric": {}, "exact_match": {}, "squad_f1": {}}
    good = await api.run(uploaded, "p/good", [answers(12, wordy=True)], metrics)
    poor = await api.run(uploaded, "p/poor", [answers(2)], metrics)
    # A later run without metrics is on no leaderboard and does not represent its model.
    await api.run(uploaded, "p/good", [answers(0)], {})

    for metric in ("", "accuracy", "score", "numeric"):
        leaderboard = await api.leaderboard(uploaded, metric)
        assert ranks(leaderboard) == [("p/good", 1.0), ("p/poor", pytest.approx(2 / 12))]
        assert [one.rank for one in leaderboard.entries] == [1, 2]
    by_match = [("p/poor", pytest.approx(2 / 12)), ("p/good", 0.0)]
    assert ranks(await api.leaderboard(uploaded, "exact_match")) == by_match
    assert ranks(await api.leaderboard(uploaded, "f1"))[0][0] == "p/good"

    by_model = await api.comparisons.CompareRuns(
        comparison_service_pb2.CompareRunsRequest(models=["p/good", "p/poor"], benchmark=uploaded.dataset_id)
    )
    assert by_model == await api.compared(good, poor)
    task, whole = by_model.comparison.differences
    assert (task.task, task.metric, task.test, task.pairs) == ("rows", "numeric", "exact McNemar", 12)
    assert task.difference == whole.difference == pytest.approx(10 / 12)
    assert task.second_unparsed == 10
    [warning] = by_model.comparison.warnings
    assert poor in warning

    flips = await api.comparisons.ListFlips(
        comparison_service_pb2.ListFlipsRequest(first_run_id=good, second_run_id=poor, task="rows")
    )
    assert (flips.total, len(flips.flips)) == (10, 10)


async def test_a_metric_with_other_options_is_another_metric(api: Api) -> None:
    uploaded = Uploaded()
    first = await api.run(uploaded, "p/a", [answers(12)], {"regex": {"pattern": r"\d+"}, "exact_match": {}})
    second = await api.run(uploaded, "p/b", [answers(6)], {"regex": {"pattern": r"(\d)"}, "exact_match": {}})
    third = await api.run(uploaded, "p/c", [answers(3)], {"exact_match": {}})

    leaderboard = await api.leaderboard(uploaded, "regex")
    # The newest run says which of two ways it is.
    assert ranks(leaderboard) == [("p/b", 0.5)]
    [unranked] = leaderboard.unranked
    assert list(unranked.unranked_because) == [
        r'metric regex {"pattern": "\\d+"} instead of regex {"pattern": "(\\d)"}'
    ]
    by_match = [("p/a", 1.0), ("p/b", 0.5), ("p/c", 0.25)]
    assert ranks(await api.leaderboard(uploaded, "exact_match")) == by_match
    assert {one.rank for one in (await api.leaderboard(uploaded, "exact_match")).entries} == {1, 3}

    with pytest.raises(grpc.aio.AioRpcError, match="scored regex by other options") as refused:
        await api.compared(first, second)
    assert remote_error(refused.value).reason == "NOT_COMPARABLE"
    forced = (await api.compared(first, second, is_forced=True)).comparison
    other_options, unparsed = forced.warnings
    assert other_options.startswith("regex was scored by other options, which was forced")
    assert second in unparsed
    chosen = (await api.compared(first, second, metrics=["exact_match"])).comparison
    assert chosen.differences[0].difference == pytest.approx(0.5)
    shared = (await api.compared(second, third)).comparison
    assert shared.differences[0].metric == "exact_match"
    # No word of metrics that both have.
    assert list(shared.warnings) == [unparsed]


async def test_runs_over_several_uploads_are_compared_by_the_rows_that_all_have(api: Api) -> None:
    uploaded, again = Uploaded(), Uploaded(name="again.jsonl")
    part = Uploaded(rows=[("New?", "yes"), *reversed(ROWS[:5])], name="part.jsonl")
    first = await api.run(uploaded, "p/a", [answers(12)])
    second = await api.run(again, "p/b", [answers(6)])
    third = await api.run(part, "p/c", [["no", *reversed(answers(3)[:5])]])

    same = (await api.compared(first, second)).comparison
    assert same.differences[0].pairs == 12
    assert same.differences[0].difference == pytest.approx(0.5)
    names = f"numbers.jsonl ({uploaded.dataset_id}), again.jsonl ({again.dataset_id})"
    assert list(same.warnings) == [f"The runs are over uploads of the same content: {names}."]
    partly = (await api.compared(first, third)).comparison
    assert partly.differences[0].pairs == 5
    assert partly.differences[0].difference == pytest.approx(0.4)
    assert len(partly.warnings) == 1
    assert partly.warnings[0].startswith("The runs are over other data sets, and compared on the rows that")
    # Each has its own leaderboard.
    assert [ranks(await api.leaderboard(one)) for one in (uploaded, again)] == [
        [("p/a", 1.0)],
        [("p/b", 0.5)],
    ]


async def test_rollouts_over_a_data_set_have_their_spread_and_pass_at_k(api: Api) -> None:
    uploaded = Uploaded()
    first = await api.run(uploaded, "p/a", [answers(12), answers(6)])
    second = await api.run(uploaded, "p/b", [answers(6), answers(0)])
    assert ranks(await api.leaderboard(uploaded, "exact_match")) == [("p/a", 0.75), ("p/b", 0.25)]
    assert ranks(await api.leaderboard(uploaded, "pass@2")) == [("p/a", 1.0), ("p/b", 0.5)]
    [metric, *_] = (await api.summary(first)).tasks[0].metrics
    assert metric.n == 12
    assert metric.std == pytest.approx(0.3535, abs=1e-3)
    compared = (await api.compared(first, second)).comparison
    assert compared.differences[0].difference == pytest.approx(0.5)


async def test_a_majority_is_reported_where_targets_repeat_and_nowhere_else(api: Api) -> None:
    different, alike = Uploaded(), Uploaded(rows=[(f"{at}?", "yes" if at % 4 else "no") for at in range(12)])
    await api.run(different, "p/a", [answers(12)])
    await api.run(alike, "p/a", [["yes"] * 12])

    async def is_there() -> bool:
        return bool((await api.leaderboard(alike)).baselines)

    await eventually(is_there, "the baselines are computed")
    assert [(one.model, one.figure.mean) for one in (await api.leaderboard(alike)).baselines] == [
        ("baseline/majority", 0.75)
    ]
    assert not (await api.leaderboard(different)).baselines
