"""Refusals before a store is reached, and how pages are filled."""

import json
from dataclasses import replace

import pytest

from proctor.values.outcome import OutcomeStatus
from proctor.values.sample import MAX_READ_SAMPLES
from proctor.values.scoring import MetricUse, OutputType, TaskScoring
from services.common.clock import SystemClock
from services.common.errors import InvalidParameter
from services.results.answers.list_outcomes import ListOutcomes, OutcomeQuery
from services.results.answers.show_verdicts import ShowVerdicts
from services.results.answers.sorted_keys_cache import SortedKeysCache
from services.results.outcomes import page_bytes
from services.results.outcomes.list_missing import WINDOW_SAMPLES, ListMissing
from services.results.runs.errors import EpochOver, RecordNotFound
from services.results.runs.open_run import OpenRun
from services.results.runs.run_plan import RunPlan
from services.results.samples.errors import SampleNotFound
from services.results.samples.store_sample_set import ReadSamples, StoreSampleSet
from services.results.summaries.ports import Stores
from tests.fakes.results.memory_answers import MemoryAnswers, NoJudges
from tests.fakes.results.memory_results import MemoryRows, memory_stores
from tests.fakes.results.recorded_run import answered, choice_sample, failed, new_id, plan_of, said, scored


def store(stores: Stores) -> StoreSampleSet:
    return StoreSampleSet(stores.sample_sets)


async def open_run(stores: Stores, sizes: list[int], rollouts: int = 1) -> RunPlan:
    sets = [new_id() for _ in sizes]
    for sample_set_id, size in zip(sets, sizes, strict=True):
        await stores.sample_sets.stage(
            sample_set_id, [choice_sample(at, sample_set_id) for at in range(size)]
        )
        await stores.sample_sets.commit(sample_set_id, size)
    return (await OpenRun(stores.records).open(plan_of(sizes, sets, rollouts=rollouts), 1)).plan


async def test_samples_come_in_the_order_asked_even_twice() -> None:
    stores = memory_stores()
    plan = await open_run(stores, [3])
    read = await ReadSamples(stores.sample_sets).read(plan.tasks[0].sample_set_id, [2, 0, 2])
    assert [sample.position for sample in read] == [2, 0, 2]


async def test_a_position_that_is_not_there_is_named() -> None:
    stores = memory_stores()
    plan = await open_run(stores, [3])
    with pytest.raises(SampleNotFound) as refused:
        await ReadSamples(stores.sample_sets).read(plan.tasks[0].sample_set_id, [0, 3])
    assert refused.value.facts["position"] == 3


async def test_too_many_positions_and_bad_samples_are_refused() -> None:
    stores = memory_stores()
    with pytest.raises(InvalidParameter, match="positions must be at most"):
        await ReadSamples(stores.sample_sets).read(new_id(), range(MAX_READ_SAMPLES + 1))
    with pytest.raises(InvalidParameter, match="digest of sample 0 must have 32 bytes"):
        await store(stores).stage(new_id(), [replace(choice_sample(0), digest=b"short")])
    with pytest.raises(InvalidParameter, match="position must be 0 or more"):
        await store(stores).stage(new_id(), [replace(choice_sample(0), position=-1)])
    with pytest.raises(InvalidParameter, match="a set has at least one sample"):
        await store(stores).commit(new_id(), 0)


async def test_a_plan_that_cannot_be_scored_or_counted_is_refused() -> None:
    stores = memory_stores()
    plan = await open_run(stores, [3, 3])
    open_it = OpenRun(stores.records).open
    scoring = TaskScoring(OutputType.GENERATE_UNTIL, (MetricUse("exact_match"),), filters_json="[{}]")
    unreadable = replace(plan, tasks=(replace(plan.tasks[0], scoring=scoring),))
    bad_filter = [{"name": "n", "filter": [{"function": "regex", "regex_pattern": "("}]}]
    bad_filters = replace(scoring, filters_json=json.dumps(bad_filter))
    bad_metric = MetricUse("exact_match", '{"regexes_to_ignore": ["["]}')
    bad_metrics = replace(scoring, metrics=(bad_metric,), filters_json="")
    overlapping = replace(plan, tasks=(plan.tasks[0], replace(plan.tasks[1], first_sample=2)))
    with pytest.raises(InvalidParameter, match="scoring cannot be read"):
        await open_it(unreadable, 1)
    for broken in (bad_filters, bad_metrics):
        with pytest.raises(InvalidParameter, match=r"scoring cannot be read: .* at position 0"):
            await open_it(replace(plan, tasks=(replace(plan.tasks[0], scoring=broken),)), 1)
    with pytest.raises(InvalidParameter, match="lies within the samples of t0"):
        await open_it(overlapping, 1)
    with pytest.raises(InvalidParameter, match="rollouts must be 1 or more"):
        await open_it(replace(plan, rollouts=0), 1)


async def test_missing_samples_are_found_over_many_windows_in_pages() -> None:
    stores = memory_stores()
    size = 2 * WINDOW_SAMPLES + 3
    plan = await open_run(stores, [size])
    holes = {0, WINDOW_SAMPLES - 1, WINDOW_SAMPLES, size - 1}
    done = [scored(plan.run_id, answered(sample)) for sample in range(size) if sample not in holes]
    await stores.outcomes.record(done)
    list_missing = ListMissing(stores.records, stores.outcomes).list_page
    found: list[tuple[int, int]] = []
    token, pages = "", 0
    while token or not pages:
        page = await list_missing(plan.run_id, 1, 2, token)
        found, token, pages = found + page.missing, page.next_page_token, pages + 1
        assert len(page.missing) <= 2
    assert found == [(0, sample) for sample in sorted(holes)]


async def test_missing_samples_are_asked_of_the_present_epoch_only() -> None:
    stores = memory_stores()
    plan = await open_run(stores, [2])
    list_missing = ListMissing(stores.records, stores.outcomes).list_page
    await stores.records.open(plan, 2)
    with pytest.raises(EpochOver):
        await list_missing(plan.run_id, 1, 0, "")
    with pytest.raises(RecordNotFound):
        await list_missing(new_id(), 1, 0, "")
    with pytest.raises(InvalidParameter, match="page_size"):
        await list_missing(plan.run_id, 2, 10_001, "")


def listing(stores: Stores, answers: MemoryAnswers) -> ListOutcomes:
    verdicts = ShowVerdicts(stores.records, NoJudges(), answers)
    return ListOutcomes(
        stores.records,
        stores.sample_sets,
        stores.outcomes,
        answers,
        verdicts,
        SortedKeysCache(),
        SystemClock(),
    )


async def test_outcomes_are_listed_in_pages_beside_their_samples() -> None:
    rows = MemoryRows()
    stores = memory_stores(rows)
    plan = await open_run(stores, [2, 2])
    outcomes = [answered(0), failed(1), answered(2), answered(3)]
    await stores.outcomes.record([scored(plan.run_id, one, task_index=one.sample // 2) for one in outcomes])
    list_outcomes = listing(stores, MemoryAnswers(rows))
    first = await list_outcomes.list_page(OutcomeQuery(plan.run_id, page_size=2))
    rest = await list_outcomes.list_page(OutcomeQuery(plan.run_id, page_token=first.next_page_token))
    assert [one.sample.position for one in (*first.outcomes, *rest.outcomes)] == [0, 1, 0, 1]
    assert rest.next_page_token == ""
    of_status = await list_outcomes.list_page(OutcomeQuery(plan.run_id, status=OutcomeStatus.FAILED))
    assert [one.scored.outcome.sample for one in of_status.outcomes] == [1]
    with pytest.raises(InvalidParameter, match="task must be one of the run's: t0, t1"):
        await list_outcomes.list_page(OutcomeQuery(plan.run_id, task="t2"))


async def test_a_page_ends_before_it_is_too_large_for_one_message(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(page_bytes, "MAX_BYTES_PER_PAGE", 1500)
    rows = MemoryRows()
    stores = memory_stores(rows)
    plan = await open_run(stores, [6])
    large = said(3, "x" * 9000)
    outcomes = [large if sample == 3 else answered(sample) for sample in range(6)]
    await stores.outcomes.record([scored(plan.run_id, one) for one in outcomes])
    list_outcomes = listing(stores, MemoryAnswers(rows))
    pages, token = [], None
    while token != "":
        page = await list_outcomes.list_page(OutcomeQuery(plan.run_id, page_token=token or ""))
        pages.append([one.scored.outcome.sample for one in page.outcomes])
        token = page.next_page_token
    assert pages == [[0, 1, 2], [3], [4, 5]]
