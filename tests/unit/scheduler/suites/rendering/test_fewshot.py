"""Few-shot draws follow the reference's rules."""

from random import Random

import pytest

from services.scheduler.suites.errors import FewshotPoolTooSmall
from services.scheduler.suites.rendering.render_task import SEED, FewshotDraws
from services.scheduler.suites.suite import FewshotRule, FewshotSampler

POOL = [{"text": str(number)} for number in range(10)]


def test_one_generator_is_kept_over_the_documents() -> None:
    draws = FewshotDraws("task", FewshotRule(num_fewshot=2, drops_document=False), POOL)
    expected = Random(SEED)
    for document in POOL:
        assert [POOL[index] for index in draws.draw(document)] == expected.sample(POOL, 2)


def test_a_document_is_left_out_of_one_more_than_asked_for() -> None:
    draws = FewshotDraws("task", FewshotRule(num_fewshot=2), POOL)
    expected = Random(SEED)
    for document in POOL:
        drawn = [row for row in expected.sample(POOL, 3) if row != document][:2]
        assert [POOL[index] for index in draws.draw(document)] == drawn


def test_a_document_that_stands_in_the_pool_often_is_left_out_of_a_second_draw() -> None:
    document = {"text": "same"}
    pool = [document] * 4 + POOL[:4]
    draws = FewshotDraws("task", FewshotRule(num_fewshot=2), pool)
    expected = Random(SEED)
    seconds = 0
    for _ in range(20):
        drawn = [row for row in expected.sample(pool, 3) if row != document][:2]
        if len(drawn) < 2:
            drawn, seconds = expected.sample(POOL[:4], 2), seconds + 1
        assert [pool[index] for index in draws.draw(document)] == drawn
    assert 0 < seconds < 20


def test_a_pool_that_is_mostly_the_document_is_too_small() -> None:
    pool = [{"text": "same"}] * 4 + POOL[:1]
    with pytest.raises(FewshotPoolTooSmall):
        FewshotDraws("task", FewshotRule(num_fewshot=2), pool).draw(pool[0])


def test_the_seed_is_that_of_the_task() -> None:
    draws = FewshotDraws("task", FewshotRule(num_fewshot=3, drops_document=False, seed=7), POOL)
    assert [POOL[index] for index in draws.draw({})] == Random(7).sample(POOL, 3)


def test_all_examples_of_the_file_can_be_asked_for() -> None:
    rule = FewshotRule(num_fewshot=10, samples=tuple(POOL))
    assert sorted(FewshotDraws("task", rule, POOL).draw({})) == list(range(10))
    fewer = FewshotRule(num_fewshot=4, samples=tuple(POOL))
    drawn = [POOL[index] for index in FewshotDraws("task", fewer, POOL).draw({})]
    assert drawn == Random(SEED).sample(POOL, 5)[:4]


def test_the_first_ones_are_those_of_the_pool_without_the_document() -> None:
    rule = FewshotRule(sampler=FewshotSampler.FIRST_N, num_fewshot=2)
    assert FewshotDraws("task", rule, POOL).draw(POOL[0]) == [1, 2]
    assert FewshotDraws("task", rule, POOL).draw({"text": "else"}) == [0, 1]


def test_no_examples_draw_nothing() -> None:
    assert FewshotDraws("task", FewshotRule(), []).draw(POOL[0]) == []


@pytest.mark.parametrize("sampler", list(FewshotSampler))
@pytest.mark.parametrize("drops_document", [True, False])
def test_a_pool_that_is_too_small_is_reported(sampler: FewshotSampler, drops_document: bool) -> None:  # noqa: FBT001  # a parameter of the test
    rule = FewshotRule(sampler=sampler, drops_document=drops_document, num_fewshot=11)
    with pytest.raises(FewshotPoolTooSmall):
        FewshotDraws("task", rule, POOL).draw(POOL[0])
