"""Figures of judging runs, corrected by marks on the answers that they judge."""

from collections.abc import AsyncIterator
from dataclasses import replace

import pytest
import pytest_asyncio

from proctor.v1 import answer_service_pb2 as answer_pb2
from proctor.v1 import run_pb2
from proctor.v1 import run_record_service_pb2 as run_record_pb2
from proctor.values.judging.scale import read_scale, scale_options
from proctor.values.scoring import MetricUse, OutputType, TaskScoring
from services.results.runs.run_plan import RunFacts, RunPlan
from tests.fakes.eventually import eventually
from tests.fakes.refusals import refusal_of
from tests.fakes.results.answered_runs import answered_run, archive, rows_of
from tests.fakes.results.recorded_run import batch, plan_of, said
from tests.fakes.results.results_harness import ResultsHarness, results_harness

pytestmark = pytest.mark.asyncio(loop_scope="module")

COUNT, MARKS = 60, 40
RIGHT = [at % 3 != 0 for at in range(COUNT)]
# The judge takes every fifth wrong answer for right, and cannot be read at the end.
SAYS_YES = [right or at % 5 == 0 for at, right in enumerate(RIGHT)]


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def harness(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[ResultsHarness]:
    async with results_harness(object_store=tmp_path_factory.mktemp("objects").as_uri()) as made:
        yield made


async def judging_run(harness: ResultsHarness, benchmark: str, row_id: str = "{}.0") -> RunPlan:
    samples = [
        replace(one, row_id=row_id.format(at))
        for at, one in enumerate(rows_of([f"judge {at}" for at in range(COUNT)]))
    ]
    plan = plan_of([COUNT], [await harness.store(samples)])
    metric = MetricUse("verdict", scale_options(read_scale("yes-no")))
    task = replace(
        plan.tasks[0], task="correctness", scoring=TaskScoring(OutputType.GENERATE_UNTIL, (metric,))
    )
    plan = replace(plan, tasks=(task,), facts=RunFacts(benchmark, model="p/judge"))
    await harness.open(plan)
    verdicts = ["Verdict: yes" if yes else "Verdict: no" for yes in SAYS_YES[:-1]]
    await harness.send(batch(plan.run_id, [said(at, text) for at, text in enumerate([*verdicts, "?"])]))

    async def all_recorded() -> bool:
        return await harness.recorded(plan.run_id) == COUNT

    await eventually(all_recorded, "all verdicts are recorded")
    return plan


async def marked(harness: ResultsHarness, judged: RunPlan, samples: range) -> None:
    for golden in (True, False):
        keys = [answer_pb2.AnswerKey(sample=at) for at in samples if RIGHT[at] is golden]
        await harness.answers.MarkAnswers(
            answer_pb2.MarkAnswersRequest(
                run_id=judged.run_id, answers=keys, is_golden=golden, is_marked_wrong=not golden, user="ann"
            )
        )


async def test_marks_correct_the_figure_of_a_judge(harness: ResultsHarness) -> None:
    judged = await answered_run(
        harness, rows_of([f"q{at}" for at in range(COUNT)], "judged"), [said(at, "a") for at in range(COUNT)]
    )
    judging = await judging_run(harness, judged.run_id)
    request = answer_pb2.CalibrateJudgeRequest(run_id=judging.run_id)
    raw = (await harness.answers.CalibrateJudge(request)).figure
    assert (raw.samples, raw.marks, raw.HasField("mean")) == (COUNT - 1, 0, False)
    assert raw.raw == pytest.approx(sum(SAYS_YES[:-1]) / (COUNT - 1))
    assert raw.advice == "Uncalibrated: 30 more marks of answers drawn at random calibrate it."
    await marked(harness, judged, range(20))
    few = (await harness.answers.CalibrateJudge(request)).figure
    assert (few.marks, few.HasField("mean"), few.advice[:16]) == (20, False, "Uncalibrated: 10")
    await marked(harness, judged, range(20, 29))
    last = (await harness.answers.CalibrateJudge(request)).figure
    assert (last.marks, last.HasField("mean")) == (29, False)
    assert last.advice == "Uncalibrated: 1 more mark of answers drawn at random calibrates it."
    await marked(harness, judged, range(29, MARKS))
    figure = (await harness.answers.CalibrateJudge(request)).figure
    assert (figure.samples, figure.marks) == (COUNT - 1, MARKS)
    assert figure.error_rate == pytest.approx(sum(map(int.__ne__, SAYS_YES[:MARKS], RIGHT[:MARKS])) / MARKS)
    assert figure.ci_low < sum(RIGHT) / COUNT < figure.ci_high
    assert figure.mean < figure.raw
    assert figure.advice == "Marks alone cannot halve the interval: it takes more samples."
    # As before where its verdicts, and the answers that they judge, are archived.
    for archived in (judged, judging):
        close = run_record_pb2.CloseRunRequest(
            run_id=archived.run_id, epoch=1, state=run_pb2.RUN_STATE_COMPLETED
        )
        await harness.records.CloseRun(close)
        await archive(harness, archived.run_id)
        assert (await harness.answers.CalibrateJudge(request)).figure == figure
    other = answer_pb2.CalibrateJudgeRequest(run_id=judged.run_id)
    assert await refusal_of(harness.answers.CalibrateJudge(other)) == (
        "INVALID_PARAMETER",
        f"Run {judged.run_id} has no verdicts on single answers: name a judging run.",
    )


async def test_two_judged_runs_are_compared_each_corrected_by_its_marks(harness: ResultsHarness) -> None:
    rows = rows_of([f"both {at}" for at in range(COUNT)], "both")
    answers = [said(at, "a") for at in range(COUNT)]
    judged = [await answered_run(harness, rows, answers) for _ in range(2)]
    judging = [await judging_run(harness, run.run_id) for run in judged]
    request = answer_pb2.CalibrateJudgeRequest(run_id=judging[0].run_id, against_run_id=judging[1].run_id)
    await marked(harness, judged[0], range(MARKS))
    few = (await harness.answers.CalibrateJudge(request)).difference
    assert (few.pairs, few.HasField("difference")) == (COUNT - 1, False)
    assert few.remark == "fewer than 30 samples of a run are marked"
    await marked(harness, judged[1], range(COUNT - 1))
    found = (await harness.answers.CalibrateJudge(request)).difference
    assert found.pairs == COUNT - 1
    # Of the first run by its own marks, of the second by all of them.
    one = (await harness.answers.CalibrateJudge(request)).figure.mean
    assert found.first_mean == pytest.approx(one)
    assert found.second_mean == pytest.approx(sum(RIGHT[:-1]) / (COUNT - 1), abs=0.01)
    assert found.difference == pytest.approx(found.first_mean - found.second_mean)
    assert found.ci_low < 0 < found.ci_high
    assert 0.05 < found.p_value <= 1
    other = await judging_run(
        harness, (await answered_run(harness, rows_of(["else"], "else"), answers[:1])).run_id
    )
    request.against_run_id = other.run_id
    reason, sentence = await refusal_of(harness.answers.CalibrateJudge(request))
    assert (reason, "judge other samples" in sentence) == ("INVALID_PARAMETER", True)


async def test_a_run_over_a_suite_with_the_metric_of_verdicts_is_no_judging_run(
    harness: ResultsHarness,
) -> None:
    run = await judging_run(harness, "quiz", "row {}")
    request = answer_pb2.CalibrateJudgeRequest(run_id=run.run_id)
    assert (await refusal_of(harness.answers.CalibrateJudge(request)))[0] == "INVALID_PARAMETER"
