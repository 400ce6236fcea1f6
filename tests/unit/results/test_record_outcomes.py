"""Recording: scored, kept once, counted, told."""

from services.results.outcomes.outcome import FailureClass, OutcomeStatus
from services.results.outcomes.record_outcomes import Recorded, RecordOutcomes
from services.results.ports import OutcomePage, Stores
from services.results.runs.run_record import RunPlan
from tests.fakes.memory_results import MemoryProgress, memory_stores
from tests.fakes.recorded_run import answered, batch, choice_sample, failed, new_id, plan_of, said


class Desk:
    """A recorder with a run of six samples in two tasks, two rollouts each."""

    def __init__(self) -> None:
        self.stores: Stores = memory_stores()
        self.progress = MemoryProgress()
        self.record = RecordOutcomes(self.stores, self.progress)

    async def open(self) -> RunPlan:
        sets = [new_id(), new_id()]
        for set_id in sets:
            await self.stores.sample_sets.stage(set_id, [choice_sample(at, set_id) for at in range(3)])
            await self.stores.sample_sets.commit(set_id, 3)
        return (await self.stores.records.open(plan_of([3, 3], sets, rollouts=2), 1)).plan


async def test_an_answer_is_scored_against_the_target_of_its_own_task() -> None:
    desk = Desk()
    plan = await desk.open()
    # Number 3 is position 0 of the second task, whose right choice is 0.
    await desk.record([batch(plan.run_id, [answered(3, 0), answered(4, 0)])])
    kept = await desk.stores.outcomes.page(OutcomePage(plan.run_id, (0, -1), 6, 10))
    assert [(one.task_index, one.prediction, one.scores["acc"]) for one in kept] == [
        (1, "even", 1.0),
        (1, "even", 0.0),
    ]


async def test_a_failure_is_never_scored() -> None:
    desk = Desk()
    plan = await desk.open()
    await desk.record([batch(plan.run_id, [failed(0, FailureClass.RATE_LIMIT)])])
    [kept] = await desk.stores.outcomes.page(OutcomePage(plan.run_id, (0, -1), 6, 10))
    assert (kept.status, kept.scores) == (OutcomeStatus.FAILED, {})


async def test_an_answer_without_its_weights_is_a_failure() -> None:
    desk = Desk()
    plan = await desk.open()
    await desk.record([batch(plan.run_id, [said(0, "even")])])
    counts = await desk.stores.records.all_counts(plan)
    assert counts.failures == {"provider_error": 1}


async def test_what_belongs_to_no_known_sample_is_dropped_and_counted() -> None:
    desk = Desk()
    plan = await desk.open()
    strangers = [answered(6), answered(0, rollout=2), answered(0, rollout=-1)]
    recorded = await desk.record(
        [batch(plan.run_id, [*strangers, answered(0)]), batch(new_id(), [answered(0)])]
    )
    assert recorded == Recorded(received=5, written=1, unknown=4)


async def test_duplicates_are_told_again_but_not_counted_again() -> None:
    desk = Desk()
    plan = await desk.open()
    sent = batch(plan.run_id, [answered(0), answered(0, 1), answered(0, rollout=1)])
    await desk.record([sent])
    assert await desk.record([sent]) == Recorded(received=3, written=0, unknown=0)
    first, again = desk.progress.reports
    assert first == again
    assert (again.recorded, again.shards) == (2, {0: 2})


async def test_a_report_names_the_shards_of_the_batch_and_every_task() -> None:
    desk = Desk()
    plan = await desk.open()
    await desk.record([batch(plan.run_id, [answered(0)])])
    [report] = desk.progress.reports
    assert (list(report.tasks), report.environment) == (["t0", "t1"], {"engine": "fake"})


async def test_nothing_is_told_of_runs_that_nobody_knows() -> None:
    desk = Desk()
    await desk.record([batch(new_id(), [answered(0)])])
    assert desk.progress.reports == []
