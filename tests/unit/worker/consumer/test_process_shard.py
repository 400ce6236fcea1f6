"""A held shard from delivery to settlement: what is acknowledged, when, and what travels on."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator

import pytest

from services.common.clock import SystemClock
from services.worker.consumer.execute_shard import ShardExecutor, Slots
from services.worker.consumer.in_flight import Abandoned, HeldMessages, Holding
from services.worker.consumer.prefetch import Intake, IntakeLimits
from services.worker.consumer.process_shard import Desk, ShardWork
from services.worker.engines.engine import EngineDied, FailureClass, ModelCannotLoad, ModelRefused
from services.worker.engines.engine_cache import Engines
from services.worker.execution.batch_outcomes import OutcomeBatcher
from services.worker.execution.execute_sample import AskingRules, SampleAsker
from services.worker.execution.retry_policy import RetryPolicy
from services.worker.execution.run_states import RefusedRuns, RunControl, RunStates
from services.worker.execution.shard import Failure, RunId
from services.worker.rate_limits.backoff import Backoff
from services.worker.rate_limits.limiter import Paces
from tests.fakes.eventually import eventually
from tests.fakes.held_shard import HeldBackPublisher, HeldShard, a_shard
from tests.fakes.scripted_engine import ScriptedEngine, echo


class Bench:
    """A worker without a stream."""

    def __init__(self) -> None:
        self.engine = ScriptedEngine()
        self.publisher = HeldBackPublisher()
        self.publisher.may_publish.set()
        self.batcher = OutcomeBatcher(self.publisher, lambda: "an id")
        clock = SystemClock()
        intake = Intake(IntakeLimits.for_concurrency(4), 3, clock)
        self.desk = Desk(HeldMessages(), intake, RunStates(), RefusedRuns(clock))
        policy = RetryPolicy(Backoff(), max_tries=1)
        rules = AskingRules(policy, Paces(clock, Backoff()), self.desk.states, self.desk.refused)
        asker = SampleAsker(Engines(self.engine), clock, rules)
        self.slots = Slots(4)
        executor = ShardExecutor(asker, self.batcher, self.slots, self.desk.intake)
        self.work = ShardWork(executor, self.batcher, self.desk, SystemClock())
        self.publishing = asyncio.create_task(self.batcher.run())

    def take(self, message: HeldShard) -> Holding:
        holding = self.desk.held.take(message)
        assert holding is not None
        self.desk.intake.take(len(holding.unfinished), len(message.shard.samples))
        return holding

    def start(self, message: HeldShard) -> tuple[Holding, asyncio.Task[None]]:
        holding = self.take(message)
        return holding, asyncio.create_task(self.work.work_on(holding))

    async def work_on(self, message: HeldShard) -> None:
        await asyncio.wait_for(self.work.work_on(self.take(message)), 5)


@pytest.fixture
async def bench() -> AsyncIterator[Bench]:
    bench = Bench()
    yield bench
    bench.publishing.cancel()
    await asyncio.wait([bench.publishing])


async def stuck(_: str) -> str:
    await asyncio.Event().wait()
    return ""


async def test_a_shard_is_acknowledged_only_after_its_outcomes_are_held(bench: Bench) -> None:
    bench.publisher.may_publish.clear()
    message = HeldShard(a_shard(1, 2, 3))
    _, working = bench.start(message)
    await eventually(lambda: sum(bench.engine.asked.values()) == 3, "all are asked")
    await asyncio.wait((working,), timeout=0.05)
    assert message.fate == []
    bench.publisher.may_publish.set()
    await asyncio.wait_for(working, 5)
    assert message.fate == ["acknowledged"]
    assert sorted(bench.publisher.samples) == [1, 2, 3]
    assert bench.desk.intake.is_idle()


async def test_a_shard_whose_outcomes_cannot_be_sent_goes_back(bench: Bench) -> None:
    bench.publisher.refusal = RuntimeError("no")
    message = HeldShard(a_shard(1))
    await bench.work_on(message)
    assert message.fate == ["given back"]
    assert not bench.desk.held.is_finished(message)


async def test_a_lost_acknowledgement_is_known_again(bench: Bench) -> None:
    message = HeldShard(a_shard(1))
    await bench.work_on(message)
    assert bench.desk.held.is_finished(HeldShard(a_shard(1), faults=1))
    assert not bench.desk.held.is_finished(HeldShard(a_shard(1, attempt=2)))


async def test_a_shard_delivered_again_while_held_goes_on_under_the_newer_delivery(bench: Bench) -> None:
    bench.engine.answer = stuck
    old, new = HeldShard(a_shard(1)), HeldShard(a_shard(1), faults=1)
    holding, working = bench.start(old)
    assert bench.desk.held.take(new) is None
    await bench.desk.held.keep_all()
    assert (old.kept, new.kept) == (0, 1)
    await eventually(lambda: holding.asking is not None, "it is asked")
    holding.abandon(Abandoned.RUN_ENDED)
    await asyncio.wait_for(working, 5)
    assert (old.fate, new.fate) == ([], ["dropped"])


async def test_samples_that_an_earlier_attempt_still_asks_are_not_asked_again(bench: Bench) -> None:
    """As after a wiped stream: the scheduler sends again what is still in flight here."""
    release = asyncio.Event()

    async def first_at_once(text: str) -> str:
        if text != "sample 1":
            await release.wait()
        return text

    bench.engine.answer = first_at_once
    earlier, later = HeldShard(a_shard(1, 2)), HeldShard(a_shard(1, 2, attempt=2))
    holding, first = bench.start(earlier)
    await eventually(lambda: list(holding.unfinished) == [2], "one sample is answered")
    _, second = bench.start(later)
    await eventually(lambda: bench.engine.asked["sample 1"] == 2, "the lost answer is asked for again")
    await asyncio.wait((second,), timeout=0.02)
    assert later.fate == []
    release.set()
    await asyncio.wait_for(asyncio.gather(first, second), 5)
    assert bench.engine.asked["sample 2"] == 1
    assert (earlier.fate, later.fate) == (["acknowledged"], ["acknowledged"])
    assert bench.desk.intake.is_idle()


async def test_nobody_is_asked_for_a_run_that_has_ended(bench: Bench) -> None:
    bench.desk.states.put(RunId("run-1"), RunControl(epoch=1, is_final=True))
    message = HeldShard(a_shard(1))
    await bench.work_on(message)
    assert (message.fate, sum(bench.engine.asked.values())) == (["dropped"], 0)


async def test_what_a_dead_engine_left_over_travels_on_with_a_fault(bench: Bench) -> None:
    async def dies_on_three(text: str) -> str:
        if text == "sample 3":
            await eventually(lambda: bench.engine.in_flight == 1, "the others are answered")
            raise EngineDied("gone")
        return text

    bench.engine.answer = dies_on_three
    message = HeldShard(a_shard(1, 2, 3), faults=1)
    await bench.work_on(message)
    assert (message.rest, message.rest_faults, message.fate) == ((3,), 2, ["acknowledged"])
    assert sorted(bench.publisher.samples) == [1, 2]
    assert bench.desk.intake.closed.is_set()


async def test_a_dead_engine_frees_every_slot_and_the_suspect_is_asked(bench: Bench) -> None:
    async def dies(_: str) -> str:
        raise EngineDied("gone")

    alive, bench.engine.answer = bench.engine.answer, dies
    await asyncio.gather(*(bench.work_on(HeldShard(a_shard(*range(40), number=n))) for n in range(8)))
    assert bench.slots.in_use == 0
    bench.engine.answer = alive
    await bench.work_on(HeldShard(a_shard(41, number=9), faults=1))
    assert bench.publisher.samples == [41]


@pytest.mark.parametrize("answered", [(), (1, 2)])
async def test_a_rest_that_comes_back_at_once_is_a_message_of_its_own(
    bench: Bench, answered: tuple[int, ...]
) -> None:
    """A pull may still be open when the rest is sent; it may be the whole shard."""

    async def dies(text: str) -> str:
        if text not in {f"sample {number}" for number in answered}:
            await eventually(lambda: bench.engine.in_flight == 3 - len(answered), "the others are answered")
            raise EngineDied("gone")
        return text

    bench.engine.answer, alive = dies, bench.engine.answer
    left = [number for number in (1, 2, 3) if number not in answered]
    original = HeldShard(a_shard(1, 2, 3), message_id="run-1/1/1")
    rest = HeldShard(a_shard(*left), faults=1, message_id="run-1/1/1/unique/1")
    taken: list[Holding] = []
    original.on_send = lambda: taken.append(bench.take(rest))
    await bench.work_on(original)
    assert (original.fate, rest.fate) == (["acknowledged"], [])
    bench.engine.answer = alive
    await asyncio.wait_for(bench.work.work_on(taken[0]), 5)
    assert (original.fate, rest.fate) == (["acknowledged"], ["acknowledged"])
    assert sorted(bench.publisher.samples) == [1, 2, 3]


async def test_single_samples_that_come_back_at_once_are_asked(bench: Bench) -> None:
    original = HeldShard(a_shard(1, 2), faults=2, message_id="run-1/1/1")
    singles = [HeldShard(a_shard(n), message_id=f"run-1/1/1/{n}") for n in (1, 2)]
    waiting, taken = iter(singles), list[Holding]()
    original.on_send = lambda: taken.append(bench.take(next(waiting)))
    await bench.work_on(original)
    for holding in taken:
        await asyncio.wait_for(bench.work.work_on(holding), 5)
    assert [each.fate for each in (original, *singles)] == [["acknowledged"]] * 3
    assert bench.publisher.samples == [1, 2]


async def test_a_model_that_cannot_be_loaded_is_no_fault_of_the_samples(bench: Bench) -> None:
    async def refuses(_: str) -> str:
        raise ModelCannotLoad("no such folder")

    bench.engine.answer = refuses
    message = HeldShard(a_shard(1, 2))
    await bench.work_on(message)
    assert (message.rest, message.rest_faults) == ((1, 2), 0)


async def refuses_key(_: str) -> str:
    raise ModelRefused("The server answered 401 (check the API key).")


async def test_a_run_that_the_provider_refuses_is_asked_once_and_travels_on_unrecorded(bench: Bench) -> None:
    bench.engine.answer = refuses_key
    first, second = HeldShard(a_shard(1, 2)), HeldShard(a_shard(3, number=2))
    await bench.work_on(first)
    asked = sum(bench.engine.asked.values())
    await bench.work_on(second)
    assert (first.rest, first.rest_faults, second.rest, second.rest_faults) == ((1, 2), 0, (3,), 0)
    assert sum(bench.engine.asked.values()) == asked, "what is known is not asked again"
    assert bench.desk.refused.reasons == {("run-1", 1): "The server answered 401 (check the API key)."}
    assert bench.publisher.samples == []
    assert bench.desk.intake.is_idle()


async def test_a_refused_run_rests_without_keeping_room_and_is_dropped_when_it_ends(bench: Bench) -> None:
    bench.engine.answer = refuses_key
    message = HeldShard(a_shard(*range(200)))
    holding, working = bench.start(message)
    await eventually(lambda: bool(bench.desk.refused.reasons), "the refusal is known")
    await asyncio.wait_for(bench.desk.intake.turn(0), 5)
    holding.abandon(Abandoned.RUN_ENDED)
    await asyncio.wait_for(working, 0.5)
    assert message.fate == ["dropped"]
    assert bench.desk.intake.is_idle()


async def test_another_run_of_a_refused_one_is_asked_for_itself(bench: Bench) -> None:
    bench.engine.answer = refuses_key
    await bench.work_on(HeldShard(a_shard(1)))
    bench.engine.answer = echo
    other, retried = HeldShard(a_shard(1, run_id="run-2")), HeldShard(a_shard(2, epoch=2))
    await bench.work_on(other)
    await bench.work_on(retried)
    assert (other.fate, retried.fate) == (["acknowledged"], ["acknowledged"])
    assert bench.publisher.samples == [1, 2]


async def test_what_a_draining_worker_leaves_travels_on_without_a_fault(bench: Bench) -> None:
    bench.engine.answer = stuck
    message = HeldShard(a_shard(1, 2))
    holding, working = bench.start(message)
    await eventually(lambda: bench.engine.in_flight == 2, "both are asked")
    holding.abandon(Abandoned.DRAINING)
    await asyncio.wait_for(working, 5)
    assert (message.rest, message.rest_faults, message.fate) == ((1, 2), 0, ["acknowledged"])
    assert bench.engine.aborted == 2
    assert bench.publisher.samples == []


async def test_a_shard_that_was_fatal_twice_is_cut_into_single_samples(bench: Bench) -> None:
    message = HeldShard(a_shard(1, 2, 3), faults=2)
    await bench.work_on(message)
    assert (message.singles, message.fate) == ([1, 2, 3], ["acknowledged"])
    assert not bench.engine.asked


async def test_a_single_sample_that_was_fatal_twice_is_recorded_as_a_failure(bench: Bench) -> None:
    message = HeldShard(a_shard(5), faults=2)
    await bench.work_on(message)
    (outcome,) = bench.publisher.batches[0].outcomes
    assert isinstance(outcome.result, Failure)
    assert outcome.result.failure_class is FailureClass.ENGINE
    assert outcome.result.message.startswith("This sample was delivered 2 times and never ended")
    assert message.fate == ["acknowledged"]
    assert not bench.engine.asked


async def test_a_suspect_is_asked_alone(bench: Bench) -> None:
    release = asyncio.Event()

    async def waits(text: str) -> str:
        await release.wait()
        return text

    bench.engine.answer = waits
    _, first = bench.start(HeldShard(a_shard(1, 2)))
    await eventually(lambda: bench.engine.in_flight == 2, "the first shard is asked")
    _, suspect = bench.start(HeldShard(a_shard(3, number=2), faults=1))
    await asyncio.wait((suspect,), timeout=0.02)
    assert bench.engine.in_flight == 2
    release.set()
    await asyncio.wait_for(asyncio.gather(first, suspect), 5)
    assert sorted(bench.publisher.samples) == [1, 2, 3]
