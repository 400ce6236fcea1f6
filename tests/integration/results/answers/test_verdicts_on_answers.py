"""Verdicts of judges beside the answers of the judged run, and those first about which they disagree."""

from collections.abc import AsyncIterator, Sequence
from typing import Any

import pytest
import pytest_asyncio

from proctor.v1 import annotation_service_pb2 as annotation_pb2
from proctor.v1 import answer_service_pb2 as answer_pb2
from proctor.v1 import outcome_pb2, run_pb2
from proctor.v1 import results_service_pb2 as results_pb2
from proctor.values.judging.scale import OF_PAIRS, read_scale, scale_options
from proctor.values.scoring import MetricUse
from services.results.runs.run_plan import RunPlan
from tests.fakes.results.answered_runs import answered_run, archive, close, judging_run, rows_of
from tests.fakes.results.recorded_run import failed, said
from tests.fakes.results.results_harness import ResultsHarness, results_harness

pytestmark = pytest.mark.asyncio(loop_scope="module")

GRADES = MetricUse("verdict", scale_options(read_scale("1-5")))
PAIRS = (MetricUse("preference"), MetricUse("verdict", scale_options(OF_PAIRS)))


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def harness(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[ResultsHarness]:
    store = tmp_path_factory.mktemp("objects").as_uri()
    async with results_harness(object_store=store) as made:
        yield made


async def answers_of(harness: ResultsHarness, count: int) -> RunPlan:
    prompts = [f"q{at}" for at in range(count)]
    return await answered_run(harness, rows_of(prompts, "judged"), [said(at, "a") for at in range(count)])


async def pages_of(
    harness: ResultsHarness, run: RunPlan, size: int = 3, **asked: Any
) -> list[outcome_pb2.RecordedOutcome]:
    request = results_pb2.ListOutcomesRequest(
        run_id=run.run_id, page_size=size, includes_verdicts=True, **asked
    )
    found: list[outcome_pb2.RecordedOutcome] = []
    while True:
        page = await harness.public.ListOutcomes(request)
        found += page.outcomes
        request.page_token = page.next_page_token
        if not page.next_page_token:
            return found


async def disputed(harness: ResultsHarness, run: RunPlan, **asked: Any) -> list[tuple[int, float]]:
    sort = results_pb2.OUTCOME_SORT_DISAGREEMENT
    found = await pages_of(harness, run, sort=sort, is_descending=True, **asked)
    return [(one.outcome.sample, one.disagreement) for one in found]


async def mark(harness: ResultsHarness, run: RunPlan, samples: Sequence[int], *, is_golden: bool) -> None:
    answers = [answer_pb2.AnswerKey(sample=sample) for sample in samples]
    await harness.answers.MarkAnswers(
        answer_pb2.MarkAnswersRequest(
            run_id=run.run_id, answers=answers, is_golden=is_golden, is_marked_wrong=not is_golden
        )
    )


async def annotate(harness: ResultsHarness, run: RunPlan, user: str, sample: int, label: str) -> None:
    await harness.annotations.AnnotateAnswer(
        annotation_pb2.AnnotateAnswerRequest(run_id=run.run_id, user=user, sample=sample, label=label)
    )


def words(one: outcome_pb2.RecordedOutcome) -> list[tuple[str, str, str, bool | None]]:
    """Model, verdict, reason, and whether people say the same."""
    return [
        (
            each.judge.model,
            each.verdict,
            each.reason,
            each.agrees_with_people if each.HasField("agrees_with_people") else None,
        )
        for each in one.verdicts
    ]


async def test_answers_have_the_verdicts_of_their_judges_in_words_with_reasons(
    harness: ResultsHarness,
) -> None:
    judged = await answers_of(harness, 4)
    texts = [
        "It fits.\nVerdict: yes",
        "No.\nIt does not.\nVerdict: no",
        "Cannot\nsay.",
        "Fine.\nVerdict: yes",
    ]
    yes_no = await judging_run(harness, judged, texts, model="p/one")
    # Of the second answer it says nothing.
    await judging_run(
        harness, judged, ["5", "1", "4"], (GRADES,), row_ids=("0.0", "2.0", "3.0"), model="p/two"
    )
    await mark(harness, judged, [0, 1], is_golden=True)
    first, second, third, last = await pages_of(harness, judged)
    assert words(first) == [("p/two", "5 of 5", "", True), ("p/one", "yes", "It fits.", True)]
    assert words(second) == [("p/one", "no", "No.\nIt does not.", False)]
    assert words(third) == [("p/two", "1 of 5", "", None), ("p/one", "", "Cannot\nsay.", None)]
    assert words(last) == [("p/two", "4 of 5", "", None), ("p/one", "yes", "Fine.", None)]
    unparsed = third.verdicts[1]
    assert (unparsed.status, unparsed.HasField("score")) == (outcome_pb2.OUTCOME_STATUS_UNPARSED, False)
    assert (unparsed.judge.run_id, unparsed.sample, unparsed.rollout) == (yes_no.run_id, 2, 0)
    assert [one.HasField("disagreement") for one in (first, second, third, last)] == [
        True,
        True,
        False,
        False,
    ]
    assert [one.disagreement for one in (first, second)] == [0.0, 1.0]
    # Only where it is asked for, and no texts beside brief answers.
    page = results_pb2.ListOutcomesRequest(run_id=judged.run_id)
    assert not any(one.verdicts for one in (await harness.public.ListOutcomes(page)).outcomes)
    page.includes_verdicts = page.is_brief = True
    assert not any(one.verdicts for one in (await harness.public.ListOutcomes(page)).outcomes)


async def test_the_newest_completed_run_of_a_judge_counts_and_a_suite_called_as_the_run_is_none(
    harness: ResultsHarness,
) -> None:
    judged = await answers_of(harness, 2)
    await judging_run(harness, judged, ["no", "no"], model="p/one")
    await judging_run(harness, judged, ["yes", "yes"], model="p/one")
    await judging_run(harness, judged, ["no", "no"], model="p/one", state=run_pb2.RUN_STATE_FAILED)
    await judging_run(harness, judged, ["yes", "no"], row_ids=("a", "17"), model="p/suite")
    found = await pages_of(harness, judged)
    assert [words(one) for one in found] == [[("p/one", "yes", "", None)]] * 2


async def test_of_a_pair_both_orders_say_whether_the_answer_is_better(harness: ResultsHarness) -> None:
    judged = await answers_of(harness, 2)
    row_ids = ("0.0.first", "0.0.second", "1.0.first", "1.0.second")
    await judging_run(harness, judged, ["first", "first", "tie", "second"], PAIRS, row_ids=row_ids)
    first, second = await pages_of(harness, judged)
    assert [(one.place, one.verdict, one.judge.is_of_pairs) for one in first.verdicts] == [
        ("first", "better", True),
        ("second", "worse", True),
    ]
    assert [one.verdict for one in second.verdicts] == ["tie", "better"]
    assert not first.HasField("disagreement")
    assert await disputed(harness, judged) == []


async def test_what_judges_and_people_disagree_about_comes_first(harness: ResultsHarness) -> None:
    judged = await answers_of(harness, 12)
    says = ["no" if at in (3, 7) else "yes" for at in range(12)]
    await judging_run(harness, judged, ["yes"] * 12)
    await judging_run(harness, judged, says)
    await judging_run(harness, judged, [*"555551555555"], (GRADES,))
    await mark(harness, judged, [5], is_golden=True)
    await mark(harness, judged, [9], is_golden=False)
    ranked = await disputed(harness, judged)
    # Of the grades one says 1 of what a person marked as golden.
    assert ranked[:4] == [(3, 1.0), (5, 1.0), (7, 1.0), (9, 1.0)]
    assert len(ranked) == 12
    assert {apart for _, apart in ranked[4:]} == {0.0}
    filtered = results_pb2.OutcomeFilter(is_golden=True)
    assert await disputed(harness, judged, filter=filtered) == [(5, 1.0)]
    # Of archived verdicts too.
    [first, *_] = await pages_of(harness, judged)
    await archive(harness, first.verdicts[0].judge.run_id)
    assert await disputed(harness, judged) == ranked


async def test_what_one_person_says_shows_in_no_disagreement(harness: ResultsHarness) -> None:
    judged = await answers_of(harness, 3)
    judging = await judging_run(harness, judged, ["yes"] * 3)
    await annotate(harness, judging, "ann", 1, "no")
    assert await disputed(harness, judged) == []
    await annotate(harness, judging, "ben", 1, "no")
    assert await disputed(harness, judged) == [(1, 1.0)]
    [_, second, _] = await pages_of(harness, judged)
    assert words(second)[0][3] is False


async def test_repeated_verdicts_and_rollouts_and_what_was_not_judged(harness: ResultsHarness) -> None:
    outcomes = [said(0, "a"), failed(1), *(said(at, "a") for at in range(2, 40))]
    judged = await answered_run(harness, rows_of([f"q{at}" for at in range(40)], "judged"), outcomes)
    await close(harness, judged)
    row_ids = [f"{at}.0" for at in range(40) if at != 1]
    await judging_run(harness, judged, ["yes"] * 38 + ["no"], row_ids=row_ids)
    found = await pages_of(harness, judged, 7)
    assert [len(one.verdicts) for one in found] == [1, 0, *[1] * 38]
    assert [one.verdicts[0].verdict for one in found if one.verdicts] == ["yes"] * 38 + ["no"]
