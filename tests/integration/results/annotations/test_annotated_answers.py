"""People annotate the answers of a run: in one random order, each unseen by the other, and for its judges."""

from collections.abc import AsyncIterator, Sequence
from dataclasses import replace
from uuid import uuid4

import pytest
import pytest_asyncio

from proctor.v1 import annotation_service_pb2 as annotation_pb2
from proctor.v1 import answer_service_pb2 as answer_pb2
from proctor.values.judging.scale import OF_PAIRS, scale_options
from proctor.values.scoring import MetricUse
from services.results.runs.run_plan import RunPlan
from tests.fakes.refusals import refusal_of
from tests.fakes.results.answered_runs import answered_run, archive, close, judging_run, rows_of
from tests.fakes.results.recorded_run import failed, plan_of, said
from tests.fakes.results.results_harness import ResultsHarness, results_harness

pytestmark = pytest.mark.asyncio(loop_scope="module")

COUNT = 40
PAIRS = scale_options(OF_PAIRS)


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def harness(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[ResultsHarness]:
    store = tmp_path_factory.mktemp("objects").as_uri()
    async with results_harness(object_store=store) as made:
        yield made


async def answers_of(harness: ResultsHarness, count: int = COUNT) -> RunPlan:
    return await answered_run(
        harness, rows_of([f"q{at}" for at in range(count)], "judged"), [said(at, "a") for at in range(count)]
    )


async def next_of(harness: ResultsHarness, run: RunPlan, user: str, **asked: bool | int) -> int | None:
    request = annotation_pb2.FindUnannotatedRequest(run_id=run.run_id, user=user, **asked)  # type: ignore[arg-type]  # fields by name
    found = await harness.annotations.FindUnannotated(request)
    return found.sample if found.HasField("sample") else None


async def annotate(harness: ResultsHarness, run: RunPlan, user: str, sample: int, label: str) -> None:
    await harness.annotations.AnnotateAnswer(
        annotation_pb2.AnnotateAnswerRequest(
            run_id=run.run_id, user=user, sample=sample, label=label, comment=f"{user} on {sample}"
        )
    )


async def annotated_in_order(
    harness: ResultsHarness, run: RunPlan, user: str, labels: Sequence[str], **asked: bool | int
) -> list[int]:
    found = []
    for label in labels:
        sample = await next_of(harness, run, user, **asked)
        assert sample is not None
        await annotate(harness, run, user, sample, label)
        found.append(sample)
    return found


async def agreement(harness: ResultsHarness, run: RunPlan, user: str) -> annotation_pb2.GetAgreementResponse:
    return await harness.annotations.GetAgreement(
        annotation_pb2.GetAgreementRequest(run_id=run.run_id, user=user)
    )


async def seen(harness: ResultsHarness, run: RunPlan, user: str) -> list[tuple[int, str, str]]:
    """Over pages of three."""
    request = annotation_pb2.ListAnnotationsRequest(run_id=run.run_id, user=user, page_size=3)
    found: list[tuple[int, str, str]] = []
    while True:
        page = await harness.annotations.ListAnnotations(request)
        assert len(page.annotations) <= 3
        found += [(one.sample, one.user, one.label) for one in page.annotations]
        request.page_token = page.next_page_token
        if not page.next_page_token:
            return found


async def test_two_people_get_the_same_random_order_and_see_each_other_once_both_have_annotated(
    harness: ResultsHarness,
) -> None:
    run = await answers_of(harness)
    of_ann = await annotated_in_order(harness, run, "ann", ["yes", "no", "yes", "yes"])
    assert of_ann != [0, 1, 2, 3]
    assert await seen(harness, run, "ben") == []
    of_ben = await annotated_in_order(harness, run, "ben", ["yes", "no"])
    assert of_ben == of_ann[:2]
    both = [
        (at, user, label) for at, label in zip(of_ben, ["yes", "no"], strict=True) for user in ("ann", "ben")
    ]
    own = [(at, "ann", "yes") for at in of_ann[2:]]
    assert await seen(harness, run, "ben") == sorted(both)
    assert await seen(harness, run, "ann") == sorted([*both, *own])
    # What two people have annotated is left out, what one has annotated is not.
    assert await next_of(harness, run, "cem") == of_ann[2]
    assert await next_of(harness, run, "cem", raters=1) not in of_ann
    assert await next_of(harness, run, "cem", raters=3) == of_ann[0]


async def test_agreement_is_kappa_of_two_people_and_alpha_of_more(harness: ResultsHarness) -> None:
    run = await answers_of(harness)
    alone = await agreement(harness, run, "ann")
    assert (alone.answers, alone.annotated, alone.raters, alone.measure) == (COUNT, 0, 0, 0)
    labels = ["yes", "no", "yes", "no", "yes", ""]
    order = await annotated_in_order(harness, run, "ann", labels)
    await annotated_in_order(harness, run, "ben", ["yes", "no", "no", "no", "yes", "yes"])
    two = await agreement(harness, run, "ben")
    assert (two.annotated, two.annotated_twice, two.own, two.drawn) == (6, 6, 6, 6)
    assert two.measure == annotation_pb2.AGREEMENT_MEASURE_COHENS_KAPPA
    # 4 of 5 agree; by chance 3/5 * 2/5 + 2/5 * 3/5.
    assert (two.raters, two.units) == (2, 5)
    assert two.value == pytest.approx((0.8 - 0.48) / 0.52)
    for sample in order[:3]:
        await annotate(harness, run, "cem", sample, "yes")
    three = await agreement(harness, run, "cem")
    assert (three.measure, three.raters) == (annotation_pb2.AGREEMENT_MEASURE_KRIPPENDORFFS_ALPHA, 3)
    assert -1 < three.value < two.value


async def test_annotations_calibrate_a_judge_as_far_as_the_random_order_has_come(
    harness: ResultsHarness,
) -> None:
    judged = await answers_of(harness)
    judging = await judging_run(harness, judged, ["yes"] * COUNT)
    request = answer_pb2.CalibrateJudgeRequest(run_id=judging.run_id)
    order = await annotated_in_order(harness, judging, "ann", ["no"] * 10)
    assert (await harness.answers.CalibrateJudge(request)).figure.marks == 10
    # Chosen by hand, and so no fair sample: they count once the order has reached them.
    later = [at for at in range(COUNT) if at not in order][:20]
    for sample in later:
        await annotate(harness, judging, "ann", sample, "no")
    assert (await harness.answers.CalibrateJudge(request)).figure.marks < 30
    rest = COUNT - len(order) - len(later)
    await annotated_in_order(harness, judging, "ann", ["yes"] * rest)
    assert await next_of(harness, judging, "ann") is None
    figure = (await harness.answers.CalibrateJudge(request)).figure
    assert (figure.marks, figure.raw) == (COUNT, 1.0)
    assert figure.mean == pytest.approx(rest / COUNT)
    found = await agreement(harness, judged, "ann")
    assert (found.drawn, found.question.name, found.question.run_id) == (COUNT, "correctness", judged.run_id)


async def test_what_judges_disagree_about_comes_first_where_that_is_asked(harness: ResultsHarness) -> None:
    judged = await answers_of(harness, 10)
    await judging_run(harness, judged, ["yes"] * 10)
    judging = await judging_run(harness, judged, ["no" if at in (3, 7) else "yes" for at in range(10)])
    first = await annotated_in_order(harness, judging, "ann", ["yes", "yes"], is_disagreement_first=True)
    assert {*first} == {3, 7}
    assert await next_of(harness, judging, "ann", is_disagreement_first=True) not in {3, 7, None}
    # Verdicts of archived runs too.
    await archive(harness, judging.run_id)
    found = await annotated_in_order(harness, judging, "bob", ["yes", "yes"], is_disagreement_first=True)
    assert found == first
    await close(harness, judged)
    await archive(harness, judged.run_id)
    request = annotation_pb2.FindUnannotatedRequest(run_id=judging.run_id, is_disagreement_first=True)
    assert await refusal_of(harness.annotations.FindUnannotated(request)) == (
        "RUN_ARCHIVED",
        f"The answers of run {judged.run_id} are archived, which this does not read; restore the run first.",
    )


async def test_what_cannot_be_annotated_is_refused(harness: ResultsHarness) -> None:
    samples = rows_of(["q0", "q1"], "failed")
    run = await answered_run(harness, samples, [said(0, "a"), failed(1)])
    request = annotation_pb2.AnnotateAnswerRequest(run_id=run.run_id, sample=1, label="yes", user="ann")
    call = harness.annotations.AnnotateAnswer
    assert await refusal_of(call(request)) == (
        "OUTCOME_NOT_FOUND",
        f"Run {run.run_id} has no answer to sample 1, rollout 0, so nothing was annotated.",
    )
    request.sample, request.label = 0, "maybe"
    assert await refusal_of(call(request)) == ("INVALID_PARAMETER", "label must be yes, no, or empty.")
    request.label, request.comment = "yes", "a" * 2001
    assert (await refusal_of(call(request)))[0] == "INVALID_PARAMETER"
    assert await annotated_in_order(harness, run, "ann", ["yes"]) == [0]
    assert await next_of(harness, run, "ann") is None


async def test_a_run_that_is_not_there_or_not_seen_is_not_reached_through_one_of_its_name(
    harness: ResultsHarness,
) -> None:
    """A suite of somebody's own may be called as a run is."""
    hidden = replace(plan_of([1]), run_id=str(uuid4()))
    judging = await judging_run(harness, hidden, ["yes"])
    calls = (
        harness.annotations.FindUnannotated(annotation_pb2.FindUnannotatedRequest(run_id=judging.run_id)),
        harness.annotations.AnnotateAnswer(
            annotation_pb2.AnnotateAnswerRequest(run_id=judging.run_id, sample=0, label="yes")
        ),
        harness.annotations.ListAnnotations(annotation_pb2.ListAnnotationsRequest(run_id=judging.run_id)),
        harness.annotations.GetAgreement(annotation_pb2.GetAgreementRequest(run_id=judging.run_id)),
        harness.answers.CalibrateJudge(answer_pb2.CalibrateJudgeRequest(run_id=judging.run_id)),
    )
    assert {(await refusal_of(call))[0] for call in calls} == {"RUN_NOT_FOUND"}


async def test_a_judge_of_pairs_by_the_name_of_a_question_is_no_part_of_its_panel(
    harness: ResultsHarness,
) -> None:
    judged = await answers_of(harness, 10)
    judging = await judging_run(harness, judged, ["yes"] * 10)
    await judging_run(harness, judged, ["first"] * 10, (MetricUse("preference"), MetricUse("verdict", PAIRS)))
    panel = await harness.annotations.GetPanel(annotation_pb2.GetPanelRequest(run_id=judging.run_id))
    assert [judge.run_id for judge in panel.judges] == [judging.run_id]


async def test_judges_of_one_question_are_a_panel(harness: ResultsHarness) -> None:
    texts = ["a" * 2 ** (at % 6) for at in range(COUNT)]
    answers = [said(at, text) for at, text in enumerate(texts)]
    judged = await answered_run(harness, rows_of([f"q{at}" for at in range(COUNT)], "judged"), answers)
    one = [at % 2 == 0 for at in range(COUNT)]
    # The others say the same as it of all but the longest answers.
    other = [yes or len(texts[at]) > 16 for at, yes in enumerate(one)]
    verdicts = [["yes" if yes else "no" for yes in said_by] for said_by in (one, one, other)]
    runs = [await judging_run(harness, judged, words) for words in verdicts]
    panel = await harness.annotations.GetPanel(annotation_pb2.GetPanelRequest(run_id=runs[0].run_id))
    assert panel.question.run_id == judged.run_id
    assert {judge.run_id for judge in panel.judges} == {run.run_id for run in runs}
    assert panel.answers == COUNT
    # Two of three judges are the majority.
    assert panel.mean == pytest.approx(sum(one) / COUNT)
    assert 0 < panel.alpha < 1
    assert panel.spread > 0
    leans = {judge.run_id: judge for judge in panel.judges}
    assert leans[runs[2].run_id].length.ci_low > 0 > leans[runs[0].run_id].length.value
    assert not any(judge.HasField("own_family") or judge.is_against_people for judge in panel.judges)
    await annotated_in_order(harness, runs[0], "ann", ["yes"] * 30)
    again = await harness.annotations.GetPanel(annotation_pb2.GetPanelRequest(run_id=judged.run_id))
    assert all(judge.is_against_people for judge in again.judges)
