"""Recording: scored, stored once, counted, reported."""

import asyncio
import json
from dataclasses import replace

import pytest

from proctor.values.outcome import Failure, FailureClass, OutcomeStatus
from proctor.values.scoring import ScoringMethod
from services.results.outcomes import record_outcomes
from services.results.outcomes.record_outcomes import Recorded
from services.results.runs.run_plan import RunPlan
from services.results.scoring.score import ScoringTarget
from services.results.summaries.ports import Stores
from tests.fakes.eventually import eventually
from tests.fakes.results.inline_scorer import InlineScorer
from tests.fakes.results.memory_results import MemoryProgress, MemoryRows, memory_stores
from tests.fakes.results.recorded_run import (
    TEXT_SCORING,
    answered,
    batch,
    choice_sample,
    failed,
    new_id,
    plan_of,
    said,
)
from tests.fakes.results.stores import record_outcomes_of

SLOW = "(?:a|b|ab)*[cd]"
"""Over "ab" so often that nobody waits for its end."""
BESIDE = "(?:.)+"
"""Reads the whole text. Whether it may be slow is not known of a pattern that repeats a group."""


class Recorder:
    """A recorder with a run of six samples in two tasks, two rollouts each."""

    def __init__(self) -> None:
        self.rows = MemoryRows()
        self.stores: Stores = memory_stores(self.rows)
        self.progress = MemoryProgress()
        self.scorer = InlineScorer()
        self.record = record_outcomes_of(self.stores, self.progress, self.scorer).record

    async def open(self, method: ScoringMethod = ScoringMethod.LOGLIKELIHOOD) -> RunPlan:
        sets = [new_id(), new_id()]
        for sample_set_id in sets:
            await self.stores.sample_sets.stage(
                sample_set_id, [choice_sample(at, sample_set_id) for at in range(3)]
            )
            await self.stores.sample_sets.commit(sample_set_id, 3)
        plan = replace(plan_of([3, 3], sets, rollouts=2), scoring_method=method)
        return (await self.stores.records.open(plan, 1)).plan

    async def open_texts(self, pattern: str) -> RunPlan:
        """A run of three samples whose answers are read by a pattern, if there is one."""
        sample_set_id = new_id()
        samples = [
            replace(choice_sample(at, sample_set_id), target=ScoringTarget(texts=("c",))) for at in range(3)
        ]
        await self.stores.sample_sets.stage(sample_set_id, samples)
        await self.stores.sample_sets.commit(sample_set_id, 3)
        filters = [{"name": "f", "filter": [{"function": "regex", "regex_pattern": pattern}]}]
        plan = plan_of([3], [sample_set_id])
        filters_json = json.dumps(filters) if pattern else ""
        task = replace(plan.tasks[0], scoring=replace(TEXT_SCORING, filters_json=filters_json))
        return (await self.stores.records.open(replace(plan, tasks=(task,)), 1)).plan


async def test_an_answer_is_scored_against_the_target_of_its_own_task() -> None:
    recorder = Recorder()
    plan = await recorder.open()
    # Number 3 is position 0 of the second task, whose right choice is 0.
    await recorder.record([batch(plan.run_id, [answered(3, 0), answered(4, 0)])])
    kept = recorder.rows.counted(plan.run_id)
    assert [(one.task_index, one.prediction, one.scores["acc"]) for one in kept] == [
        (1, "even", 1.0),
        (1, "even", 0.0),
    ]


async def test_a_failure_is_never_scored() -> None:
    recorder = Recorder()
    plan = await recorder.open()
    await recorder.record([batch(plan.run_id, [failed(0, FailureClass.RATE_LIMIT)])])
    [kept] = recorder.rows.counted(plan.run_id)
    assert (kept.status, kept.scores) == (OutcomeStatus.FAILED, {})


async def test_an_answer_without_its_weights_is_a_failure() -> None:
    recorder = Recorder()
    plan = await recorder.open()
    await recorder.record([batch(plan.run_id, [said(0, "even")])])
    progress = await recorder.stores.records.all_counts(plan)
    assert progress.counts.failures == {"scoring": 1}


async def test_an_answer_that_a_slow_regex_cannot_read_is_kept_and_no_provider_is_blamed() -> None:
    recorder = Recorder()
    plan = await recorder.open_texts(SLOW)
    await recorder.record([batch(plan.run_id, [said(0, "ab" * 60)])])
    [kept] = recorder.rows.counted(plan.run_id)
    assert (kept.status, kept.failure_class) == (OutcomeStatus.FAILED, FailureClass.SCORING)
    assert kept.outcome.answer == said(0, "ab" * 60).result
    assert isinstance(kept.outcome.result, Failure)
    assert kept.outcome.result.message.startswith("The answer could not be scored: the regex ")


async def test_a_choice_said_in_words_is_read_or_counted_as_unparsed() -> None:
    recorder = Recorder()
    plan = await recorder.open(ScoringMethod.GENERATE)
    await recorder.record([batch(plan.run_id, [said(0, "It is even."), said(1, "even or odd")])])
    kept = recorder.rows.counted(plan.run_id)
    assert [(one.status, one.prediction, one.scores) for one in kept] == [
        (OutcomeStatus.SCORED, "even", {"acc": 1.0, "mcc": (0, 0)}),
        (OutcomeStatus.UNPARSED, "", {"acc": 0.0, "mcc": (1, -1)}),
    ]


async def test_a_run_whose_scoring_takes_long_holds_up_no_other(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(record_outcomes, "SCORING_LINGER_SECONDS", 0.05)
    recorder = Recorder()
    may_end = recorder.scorer.held["slow"] = asyncio.Event()
    slow, quick = [await recorder.open_texts(BESIDE) for _ in range(2)]
    sent = [batch(slow.run_id, [said(0, "slow")]), batch(quick.run_id, [said(0, "c")])]
    recording = asyncio.ensure_future(recorder.record(sent))
    more = [asyncio.ensure_future(recorder.record([batch(slow.run_id, [said(1, "slow")])])) for _ in range(8)]

    await eventually(
        lambda: [one.run_id for one in recorder.progress.reports] == [quick.run_id], "it is reported"
    )
    assert not recording.done()
    assert await recorder.record([batch(quick.run_id, [said(1, "c")])]) == Recorded(received=1, written=1)
    may_end.set()
    assert await recording == Recorded(received=2, written=2)
    assert sum([one.written for one in await asyncio.gather(*more)]) == 1


async def test_a_run_is_scored_in_one_process_at_a_time() -> None:
    recorder = Recorder()
    may_end = recorder.scorer.held["slow"] = asyncio.Event()
    plan = await recorder.open_texts(BESIDE)
    recording = [
        asyncio.ensure_future(recorder.record([batch(plan.run_id, [said(at, text)])]))
        for at, text in enumerate(["slow", "c", "c"])
    ]
    await eventually(lambda: recorder.scorer.called == 1, "the first one is being scored")
    may_end.set()
    await asyncio.gather(*recording)
    assert (recorder.scorer.called, recorder.scorer.most_at_once) == (3, 1)


@pytest.mark.parametrize(
    ("pattern", "text", "is_beside"),
    [
        ("", "c" * 10**6, False),
        (".*", "c", False),
        (".*", "c" * 10**6, True),
        ("^ *(.*?) *$", "c" * 100, True),
        (BESIDE, "c", True),
    ],
)
async def test_texts_are_scored_at_once_where_none_of_their_length_is_slow(
    pattern: str, text: str, *, is_beside: bool
) -> None:
    recorder = Recorder()
    plan = await recorder.open_texts(pattern)
    await recorder.record([batch(plan.run_id, [said(0, text), said(1, "c")])])
    kept = recorder.rows.counted(plan.run_id)
    assert recorder.scorer.called == is_beside
    assert [one.scores["exact_match"] for one in kept] == [float(text == "c"), 1.0]


@pytest.mark.parametrize(
    ("method", "is_beside"), [(ScoringMethod.GENERATE, True), (ScoringMethod.LOGLIKELIHOOD, False)]
)
async def test_words_are_scored_beside_the_event_loop(method: ScoringMethod, *, is_beside: bool) -> None:
    recorder = Recorder()
    plan = await recorder.open(method)
    await recorder.record([batch(plan.run_id, [answered(0)])])
    assert recorder.scorer.called == is_beside
    [kept] = recorder.rows.counted(plan.run_id)
    assert kept.failure_class is None


async def test_what_belongs_to_no_known_sample_is_dropped_and_counted() -> None:
    recorder = Recorder()
    plan = await recorder.open()
    strangers = [answered(6), answered(0, rollout=2), answered(0, rollout=-1)]
    recorded = await recorder.record(
        [batch(plan.run_id, [*strangers, answered(0)]), batch(new_id(), [answered(0)])]
    )
    assert recorded == Recorded(received=5, written=1, unknown=4)


async def test_duplicates_are_reported_again_but_not_counted_again() -> None:
    recorder = Recorder()
    plan = await recorder.open()
    sent = batch(plan.run_id, [answered(0), answered(0, 1), answered(0, rollout=1)])
    await recorder.record([sent])
    assert await recorder.record([sent]) == Recorded(received=3, written=0, unknown=0)
    first, again = recorder.progress.reports
    assert first == again
    assert (again.counts.recorded, again.shards) == (2, {0: 2})


async def test_a_report_names_the_shards_of_the_batch_and_every_task() -> None:
    recorder = Recorder()
    plan = await recorder.open()
    await recorder.record([batch(plan.run_id, [answered(0)])])
    [report] = recorder.progress.reports
    assert [counts.task for counts in report.counts.tasks] == ["t0", "t1"]
    assert report.counts.environment == {"engine": "fake"}


async def test_nothing_is_reported_of_runs_that_are_unknown() -> None:
    recorder = Recorder()
    await recorder.record([batch(new_id(), [answered(0)])])
    assert recorder.progress.reports == []
