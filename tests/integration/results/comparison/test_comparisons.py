"""Runs are compared sample by sample on a real Postgres: what is paired, left out, refused."""

from collections.abc import AsyncIterator, Callable
from dataclasses import replace
from typing import NoReturn

import pytest
import pytest_asyncio

from proctor.values.comparison import Verdict
from proctor.values.run import RunState
from proctor.values.scoring import MetricUse, ScoringMethod
from services.common.errors import InvalidParameter, TookTooLong
from services.common.postgres import PostgresSession
from services.results.comparison.compare_runs import CompareQuery
from services.results.comparison.comparison import BENCHMARK
from services.results.comparison.errors import (
    ComparisonTooSlow,
    NoCommonSamples,
    OtherBenchmark,
    OtherScoring,
    RunOfModelNotFound,
)
from services.results.comparison.list_flips import FlipsPage, FlipsQuery
from services.results.comparison.postgres import PART_OUTCOMES
from services.results.runs.conditions import DifferingCondition
from services.results.runs.errors import RecordNotFound, RunNotFrozen
from services.results.runs.run_plan import RunPlan
from services.results.statistics.metric_names import UnknownMetric
from services.results.statistics.paired.difference_estimate import (
    EXACT_MCNEMAR,
    PAIRED_PERMUTATION,
    STRATIFIED_PERMUTATION,
)
from services.results.statistics.paired.mean_difference import ONE_PAIR, mcnemar_p_value
from tests.fakes.results.paired_runs import (
    FAILED,
    UNPARSED,
    PairedRuns,
    Scores,
    TaskOfRun,
    postgres_session,
    right,
    single,
)
from tests.fakes.results.recorded_run import CHOICE_SCORING, new_id

pytestmark = pytest.mark.asyncio(loop_scope="module")


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def session() -> AsyncIterator[PostgresSession]:
    async with postgres_session() as opened:
        yield opened


@pytest.fixture(params=(PART_OUTCOMES, 3), ids=("whole", "in parts"))
def runs(session: PostgresSession, request: pytest.FixtureRequest) -> PairedRuns:
    return PairedRuns(session, request.param)


TEN = [f"sample {at}" for at in range(10)]


async def test_equal_sample_sets_are_paired_by_position(runs: PairedRuns) -> None:
    first = await runs.run(single(TEN, 1, 1, 1, 1, 1, 1, 1, 0, 0, 0))
    second = await runs.run(single(TEN, 0, 0, 0, 0, 1, 1, 1, 1, 0, 0))
    one = await runs.difference(first, second)
    estimate = one.estimate
    assert (estimate.pairs, estimate.first_mean, estimate.second_mean) == (10, 0.7, 0.4)
    assert (estimate.only_first_right, estimate.only_second_right, estimate.test) == (4, 1, EXACT_MCNEMAR)
    assert estimate.p_value == pytest.approx(mcnemar_p_value(4, 1))
    assert one.verdict is Verdict.NOT_SHOWN


async def test_a_compared_macro_f1_is_the_figure_of_the_run(runs: PairedRuns) -> None:
    """Both average over the choices of the task, also over one that was neither right nor taken."""
    macro = replace(CHOICE_SCORING, metrics=(MetricUse("f1", '{"average": "macro"}'),))
    task = TaskOfRun(TEN, [[{"f1": (0, 0)}]] * 10)
    plans = [await runs.run(task, scoring=macro) for _ in range(2)]
    estimate = (await runs.difference(plans[0], plans[1], "f1")).estimate
    summary = await runs.stores.summaries.find(plans[0].run_id, 1)
    assert summary is not None
    assert estimate.first_mean == summary.tasks[0].figures["f1"].mean == 0.5


async def test_other_sample_sets_are_paired_by_digest(runs: PairedRuns) -> None:
    first = await runs.run(single(["a", "b", "c", "d"], 1, 0, 1, 1))
    second = await runs.run(single(["x", "d", "c", "y", "b"], 1, 0, 1, 1, 1))
    estimate = (await runs.difference(first, second)).estimate
    assert (estimate.pairs, estimate.only_first_right, estimate.only_second_right) == (3, 1, 1)
    back = (await runs.difference(second, first)).estimate
    assert (back.pairs, back.difference) == (3, -(estimate.difference or 0.0))


async def test_equal_samples_of_a_task_are_paired_one_to_one(runs: PairedRuns) -> None:
    first = await runs.run(single(["twice", "twice", "once"], 1, 0, 1))
    second = await runs.run(single(["once", "twice", "twice", "twice"], 1, 1, 1, 0))
    estimate = (await runs.difference(first, second)).estimate
    assert (estimate.pairs, estimate.only_first_right, estimate.only_second_right) == (3, 0, 1)


async def test_samples_of_a_passage_are_judged_together(runs: PairedRuns) -> None:
    clusters = ["p", "p", "p", "q", "q", "q", "", "", "", ""]
    texts = [f"question {at}" for at in range(10)]
    first = await runs.run(single(texts, 1, 1, 1, 1, 1, 1, 1, 0, 0, 0, clusters=clusters))
    second = await runs.run(single(texts, 0, 0, 0, 1, 1, 1, 0, 0, 0, 0, clusters=clusters))
    estimate = (await runs.difference(first, second)).estimate
    assert (estimate.pairs, estimate.clusters, estimate.test) == (10, 6, PAIRED_PERMUTATION)
    assert estimate.p_value == 0.5  # two units differ, by 3 and by 1: of four swaps two reach 4


async def test_rollouts_are_averaged_before_they_are_compared(runs: PairedRuns) -> None:
    first = await runs.run(TaskOfRun(["a", "b"], [[right(1), right(0)], [right(1), right(1)]]))
    second = await runs.run(TaskOfRun(["a", "b"], [[right(0), right(0)], [right(1), right(1)]]))
    estimate = (await runs.difference(first, second)).estimate
    assert (estimate.pairs, estimate.first_mean, estimate.second_mean) == (2, 0.75, 0.5)
    assert estimate.test == PAIRED_PERMUTATION


async def test_failures_are_left_out_and_counted(runs: PairedRuns) -> None:
    first = await runs.run(single(TEN[:5], 1, FAILED, 1, 0, FAILED))
    second = await runs.run(single(TEN[:5], 0, 1, FAILED, 0, FAILED))
    one = await runs.difference(first, second)
    assert (one.estimate.pairs, one.tally.first_failed, one.tally.second_failed) == (2, 2, 2)
    assert one.estimate.difference == 0.5


async def test_a_sample_that_failed_in_some_rollouts_counts_by_the_others(runs: PairedRuns) -> None:
    first = await runs.run(TaskOfRun(["a", "b"], [[FAILED, right(1)], [right(1), right(0)]]))
    second = await runs.run(TaskOfRun(["a", "b"], [[right(0), right(0)], [right(0), right(0)]]))
    one = await runs.difference(first, second)
    assert (one.estimate.pairs, one.estimate.first_mean, one.tally.first_failed) == (2, 0.75, 0)


async def test_unparsed_answers_count_as_wrong_and_their_effect_is_shown(runs: PairedRuns) -> None:
    first = await runs.run(single(TEN[:4], 1, UNPARSED, UNPARSED, 1))
    second = await runs.run(single(TEN[:4], 1, 1, 0, 0))
    one = await runs.difference(first, second)
    assert one.if_parsed is not None
    assert (one.estimate.difference, one.if_parsed.difference, one.if_parsed.pairs) == (0.0, 0.5, 2)
    assert (one.tally.first_unparsed, one.tally.second_unparsed) == (2, 0)
    clean = await runs.difference(second, await runs.run(single(TEN[:4], 1, 1, 1, 1)))
    assert (clean.if_parsed, clean.verdict_if_parsed, clean.depends_on_unparsed) == (None, None, False)


async def test_a_verdict_over_unparsed_answers_is_that_of_the_benchmark_too(runs: PairedRuns) -> None:
    """The first run is right wherever both could be read, and could not be read on half of its answers."""
    rows = [f"row {at}" for at in range(60)]
    unread: list[float | Scores | None] = [UNPARSED] * 30
    first = await runs.run(single(rows, *[1] * 30, *unread), single(rows[:30], *[1] * 30), model="p/a")
    second = await runs.run(single(rows, *[0] * 12, *[1] * 48), single(rows[:30], *[1] * 30), model="p/b")
    comparison = await runs.compared(first, second)
    [task, clean, whole] = comparison.differences
    assert (task.verdict, task.verdict_if_parsed) == (Verdict.SECOND_BETTER, Verdict.FIRST_BETTER)
    assert (clean.if_parsed, clean.depends_on_unparsed) == (None, False)
    # Weighed by the samples that count: 60 and 30, then 30 and 30.
    assert whole.estimate.difference == pytest.approx((12 - 30) / 90)
    assert whole.if_parsed is not None
    assert whole.if_parsed.difference == pytest.approx(12 / 60)
    assert whole.if_parsed.pairs == 60
    assert (whole.verdict, whole.verdict_if_parsed) == (Verdict.SECOND_BETTER, Verdict.FIRST_BETTER)
    assert task.depends_on_unparsed
    assert whole.depends_on_unparsed
    assert [run.unparsed_rate for run in comparison.runs] == [pytest.approx(30 / 90), 0.0]
    [warning] = comparison.warnings
    assert warning.startswith(f"Run {first.run_id} of p/a: 33.3% of the answers could not be parsed")


async def test_label_metrics_are_compared_over_all_samples_together(runs: PairedRuns) -> None:
    targets = [0, 1] * 5
    first = await runs.run(single(TEN, *(right(1, label) for label in targets)))
    second = await runs.run(single(TEN, *(right(at > 3, label) for at, label in enumerate(targets))))
    estimate = (await runs.difference(first, second, "mcc")).estimate
    assert estimate.first_mean == pytest.approx(1.0)
    assert estimate.test == PAIRED_PERMUTATION
    assert estimate.second_mean == pytest.approx(0.2)
    assert estimate.p_value == 0.125


async def test_every_pair_and_task_is_corrected_together(runs: PairedRuns) -> None:
    texts = [f"long {at}" for at in range(40)]
    better, worse = single(texts, *[1] * 40), single(texts, *[1] * 20, *[0] * 20)
    plans = [await runs.run(task, better) for task in (better, worse, worse)]
    comparison = await runs.compared(*plans)
    assert [run.run_id for run in comparison.runs] == [plan.run_id for plan in plans]
    assert [run.score for run in comparison.runs] == [1.0, 0.75, 0.75]
    assert [(one.first, one.second, one.task) for one in comparison.differences] == [
        (first, second, task)
        for first, second in ((0, 1), (0, 2), (1, 2))
        for task in ("t0", "t1", BENCHMARK)
    ]
    assert comparison.corrected_over == 9
    first, _, benchmark, *_ = comparison.differences
    assert first.adjusted_p_value == pytest.approx(9 * mcnemar_p_value(20, 0))
    assert first.verdict is Verdict.FIRST_BETTER
    assert (benchmark.metric, benchmark.estimate.test, benchmark.estimate.pairs) == (
        "acc",
        STRATIFIED_PERMUTATION,
        80,
    )
    assert benchmark.estimate.difference == pytest.approx(0.25)
    assert comparison.differences[-1].verdict is Verdict.NOT_SHOWN


async def test_metrics_are_chosen_by_name(runs: PairedRuns) -> None:
    plans = [await runs.run(single(TEN, *[1] * 9, last)) for last in (0, 1)]
    for words, expected in (
        ((), [("t0", "acc"), ("", "acc")]),
        (("accuracy",), [("t0", "acc"), ("", "acc")]),
        (("mcc", "acc"), [("t0", "acc"), ("t0", "mcc"), ("", "acc"), ("", "mcc")]),
        (("score",), [("t0", "acc"), ("", "score")]),
    ):
        comparison = await runs.compared(*plans, metrics=words)
        assert [(one.task, one.metric) for one in comparison.differences] == expected
    with pytest.raises(UnknownMetric, match="acc, mcc, score"):
        await runs.compared(*plans, metrics=["bleu"])


async def test_one_sample_is_undefined(runs: PairedRuns) -> None:
    plans = [await runs.run(single(["alone"], score)) for score in (1, 0)]
    comparison = await runs.compared(*plans)
    [task, benchmark] = comparison.differences
    assert (task.estimate.difference, task.estimate.p_value, task.estimate.remark) == (1.0, None, ONE_PAIR)
    assert (task.verdict, benchmark.verdict) == (Verdict.UNDEFINED, Verdict.UNDEFINED)
    assert comparison.corrected_over == 0


async def test_runs_without_common_samples_are_refused(runs: PairedRuns) -> None:
    first, second = await runs.run(single(["a"], 1)), await runs.run(single(["b"], 1))
    with pytest.raises(NoCommonSamples):
        await runs.compared(first, second)


async def test_runs_that_failed_on_everything_are_compared_as_undefined(runs: PairedRuns) -> None:
    first, second = [await runs.run(single(TEN[:2], FAILED, FAILED)) for _ in range(2)]
    one = await runs.difference(first, second)
    assert (one.estimate.pairs, one.tally.first_failed, one.verdict) == (0, 2, Verdict.UNDEFINED)


async def test_a_run_that_is_not_frozen_is_refused(runs: PairedRuns) -> None:
    finished, open_run = await runs.run(single(TEN[:1], 1)), await runs.open_run(single(TEN[:1], 1))
    with pytest.raises(RunNotFrozen):
        await runs.compared(finished, open_run)


async def test_a_cancelled_run_is_compared_with_a_warning(runs: PairedRuns) -> None:
    finished, cancelled = await runs.run(single(TEN[:2], 1, 1)), await runs.open_run(single(TEN[:2], 1))
    await runs.close(cancelled, RunState.CANCELLED)
    comparison = await runs.compared(finished, cancelled)
    assert comparison.differences[0].estimate.pairs == 1
    assert comparison.warnings == [f"Run {cancelled.run_id} ended as cancelled; what it has is compared."]


async def test_runs_scored_in_different_ways_are_compared_by_force_only(runs: PairedRuns) -> None:
    first = await runs.run(single(TEN[:2], 1, 1))
    second = await runs.run(single(TEN[:2], 1, 0), method=ScoringMethod.GENERATE)
    with pytest.raises(OtherScoring) as refused:
        await runs.compared(first, second)
    assert refused.value.facts == {
        "difference": "scoring_method",
        "first": "loglikelihood",
        "second": "generate",
    }
    comparison = await runs.compared(first, second, is_forced=True)
    assert comparison.differences[0].estimate.difference == 0.5
    assert comparison.warnings == [
        "Choices were scored in different ways, which was forced: loglikelihood, generate."
    ]


async def test_runs_of_other_benchmarks_are_refused(runs: PairedRuns, session: PostgresSession) -> None:
    first, second = await runs.run(single(["a"], 1)), await PairedRuns(session).run(single(["a"], 1))
    with pytest.raises(OtherBenchmark):
        await runs.compared(first, second, is_forced=True)


async def test_other_limits_and_tasks_are_said(runs: PairedRuns) -> None:
    first = await runs.run(single(TEN, *[1] * 10), single(TEN[:2], 1, 1))
    second = await runs.run(single(TEN[:5], *[0] * 5), limit=5)
    comparison = await runs.compared(first, second)
    assert [(one.task, one.estimate.pairs) for one in comparison.differences] == [("t0", 5), (BENCHMARK, 5)]
    assert DifferingCondition("limit", ("none", "5")) in comparison.conditions
    assert comparison.warnings == [
        "Not every run has these tasks, which are left out: t1.",
    ]


async def test_models_are_compared_by_their_latest_run_over_all_rows(runs: PairedRuns) -> None:
    await runs.run(single(TEN, *[0] * 10), model="p/a")
    latest = await runs.run(single(TEN, *[1] * 10), model="p/a")
    await runs.run(single(TEN[:2], 0, 0), model="p/a", limit=2)
    other = await runs.run(single(TEN, *[1] * 10), model="p/b")
    comparison = await runs.compare_runs.compare(
        CompareQuery(models=("p/a", "p/b"), benchmark=runs.benchmark)
    )
    assert [run.run_id for run in comparison.runs] == [latest.run_id, other.run_id]
    with pytest.raises(RunOfModelNotFound):
        await runs.compare_runs.compare(CompareQuery(models=("p/a", "p/c"), benchmark=runs.benchmark))


@pytest.mark.parametrize(
    "query",
    [
        CompareQuery(),
        CompareQuery(run_ids=("a",)),
        CompareQuery(run_ids=("a", "a")),
        CompareQuery(run_ids=tuple("abcdefg")),
        CompareQuery(run_ids=("a", "b"), models=("a", "b"), benchmark="s"),
        CompareQuery(models=("a", "b")),
    ],
)
async def test_a_query_that_names_no_two_to_six_runs_is_refused(
    runs: PairedRuns, query: CompareQuery
) -> None:
    with pytest.raises(InvalidParameter):
        await runs.compare_runs.compare(query)


async def test_an_unknown_run_or_task_is_refused(runs: PairedRuns) -> None:
    plans = [await runs.run(single(TEN[:2], 1, 0)) for _ in range(2)]
    with pytest.raises(RecordNotFound):
        await runs.compare_runs.compare(CompareQuery((plans[0].run_id, new_id())))
    with pytest.raises(InvalidParameter, match="t9"):
        await runs.compare_runs.compare(CompareQuery((plans[0].run_id, plans[1].run_id), tasks=("t9",)))


class SlowCalls:
    """Ends every call, as one that takes too long."""

    async def call(self, seconds: float, function: Callable[..., object], *_arguments: object) -> NoReturn:
        raise TookTooLong(f"{function.__qualname__} took over {seconds:g} s")


async def test_runs_whose_comparison_takes_too_long_are_not_called_incomparable(runs: PairedRuns) -> None:
    plans = [await runs.run(single(TEN[:2], 1, 0)) for _ in range(2)]
    slow = replace(runs.compare_runs, compare_pair=replace(runs.compare_pair, calls=SlowCalls()))
    with pytest.raises(ComparisonTooSlow, match="name fewer tasks or metrics") as raised:
        await slow.compare(CompareQuery((plans[0].run_id, plans[1].run_id)))
    assert raised.value.reason == "COMPARISON_TOO_SLOW"


async def flips(runs: PairedRuns, *plans: RunPlan, size: int = 2, metric: str = "") -> list[FlipsPage]:
    query = FlipsQuery((plans[0].run_id, plans[1].run_id), "t0", metric, size)
    pages = [await runs.list_flips.list_page(query)]
    while pages[-1].next_page_token:
        pages.append(await runs.list_flips.list_page(replace(query, page_token=pages[-1].next_page_token)))
    return pages


async def test_flips_are_listed_page_by_page_in_the_order_of_the_first_run(runs: PairedRuns) -> None:
    first = await runs.run(single(TEN, 1, 0, 1, 0, 1, 1, FAILED, 1, 0, 0))
    second = await runs.run(single(list(reversed(TEN)), 1, 0, 0, 0, 1, 1, 0, 1, 0, 0))
    pages = await flips(runs, first, second)
    found = [flip for page in pages for flip in page.flips]
    assert [flip.sample.doc_id for flip in found] == [0, 7, 9]
    assert [len(page.flips) for page in pages] == [2, 1]
    assert {page.total for page in pages} == {len(found)}
    assert (found[0].predictions, found[0].scores) == (("yes", "no"), (1.0, 0.0))


async def test_flips_show_means_over_rollouts_and_leave_out_other_orders(runs: PairedRuns) -> None:
    first = await runs.run(TaskOfRun(["a", "b"], [[right(1), right(0)], [right(1), right(1)]]))
    second = await runs.run(TaskOfRun(["a", "b"], [[right(0), right(1)], [right(0), right(1)]]))
    [page] = await flips(runs, first, second, size=10)
    assert [(flip.sample.prompt.text, flip.scores) for flip in page.flips] == [("b", (1.0, 0.5))]
    assert page.total == 1


async def test_flips_need_a_metric_with_a_number_per_sample(runs: PairedRuns) -> None:
    plans = [await runs.run(single(TEN[:2], 1, score)) for score in (0, 1)]
    [page] = await flips(runs, *plans, metric="accuracy")
    assert page.total == 1
    with pytest.raises(UnknownMetric, match="Supported: acc"):
        await flips(runs, *plans, metric="mcc")


async def test_a_page_of_heavy_samples_ends_before_it_is_too_large(runs: PairedRuns) -> None:
    texts = [f"{at}" * 3_000_000 for at in range(5)]
    plans = [await runs.run(single(texts, *[score] * 5)) for score in (0, 1)]
    pages = await flips(runs, *plans, size=500)
    assert [len(page.flips) for page in pages] == [2, 2, 1]
