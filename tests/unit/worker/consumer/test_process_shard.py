"""A shard from delivery to acknowledgement: when it is acknowledged, and what is forwarded."""

import asyncio
from collections import Counter
from collections.abc import AsyncIterator

import pytest

from proctor.values.outcome import Answer, Failure, FailureClass
from proctor.values.priority import Priority
from proctor.values.run import RunId
from services.common.clock import SystemClock
from services.worker.consumer.concurrency_limit import ConcurrencyLimit
from services.worker.consumer.execute_shard import ExecuteShard
from services.worker.consumer.gpu_time import GpuTime
from services.worker.consumer.in_flight import Abandoned, InFlightShard, InFlightShards
from services.worker.consumer.prefetch import Prefetch, PrefetchLimits
from services.worker.consumer.process_shard import ProcessShard, WorkerContext
from services.worker.engines.engine_cache import EngineCache
from services.worker.engines.errors import EngineDied, ModelCannotLoad, ModelRefused
from services.worker.execution.execute_sample import ExecuteSample, RequestRetryPolicy
from services.worker.execution.outcome_batcher import OutcomeBatcher
from services.worker.execution.run_states import RefusedRuns, RunControl, RunStates
from services.worker.rate_limits.limiter import RateLimiters
from services.worker.rate_limits.waits import Backoff
from tests.fakes.eventually import eventually
from tests.fakes.worker.held_message import FakeShardMessage, HeldBackPublisher, MemoryQuarantine, a_shard
from tests.fakes.worker.refusing_sandboxes import refusing_check, refusing_rollouts
from tests.fakes.worker.scripted_engine import ScriptedEngine, echo


class Bench:
    """A worker without a stream."""

    def __init__(self, gpu_time: GpuTime | None = None) -> None:
        self.engine = ScriptedEngine()
        self.publisher = HeldBackPublisher()
        self.publisher.may_publish.set()
        self.batcher = OutcomeBatcher(self.publisher, lambda: "an id")
        clock = SystemClock()
        prefetch = Prefetch(PrefetchLimits.for_concurrency(4), clock)
        self.context = WorkerContext(InFlightShards(), prefetch, RunStates(), RefusedRuns(clock))
        execute_sample = ExecuteSample(
            engines=EngineCache(self.engine),
            clock=clock,
            request_retry_policy=RequestRetryPolicy(Backoff(), max_tries=1),
            rate_limiters=RateLimiters(clock=clock, backoff=Backoff()),
            run_states=self.context.run_states,
            refused_runs=self.context.refused_runs,
            check_code=refusing_check(),
        )
        self.concurrency = ConcurrencyLimit(4, gpu_time)
        self.quarantine = MemoryQuarantine()
        executor = ExecuteShard(
            execute_sample=execute_sample,
            process_rollout=refusing_rollouts(execute_sample),
            batcher=self.batcher,
            concurrency=self.concurrency,
            prefetch=prefetch,
            quarantine=self.quarantine,
        )
        self.processor = ProcessShard(executor, self.context, SystemClock())
        self.publishing = asyncio.create_task(self.batcher.run())

    def add(self, message: FakeShardMessage) -> InFlightShard:
        in_flight = self.context.in_flight.add(message, Priority.NORMAL)
        assert in_flight is not None
        self.context.prefetch.add(len(in_flight.unfinished), len(message.shard.samples))
        return in_flight

    def start(self, message: FakeShardMessage) -> tuple[InFlightShard, asyncio.Task[None]]:
        in_flight = self.add(message)
        return in_flight, asyncio.create_task(self.processor.process(in_flight))

    async def process(self, message: FakeShardMessage) -> None:
        await asyncio.wait_for(self.processor.process(self.add(message)), 5)


@pytest.fixture
async def bench() -> AsyncIterator[Bench]:
    bench = Bench()
    yield bench
    bench.publishing.cancel()
    await asyncio.wait([bench.publishing])


async def stuck(_: str) -> str:
    await asyncio.Event().wait()
    return ""


async def test_a_shard_is_acknowledged_only_after_its_outcomes_are_stored(bench: Bench) -> None:
    bench.publisher.may_publish.clear()
    message = FakeShardMessage(a_shard(1, 2, 3))
    _, working = bench.start(message)
    await eventually(lambda: sum(bench.engine.asked.values()) == 3, "all are asked")
    await asyncio.wait((working,), timeout=0.05)
    assert message.fate == []
    bench.publisher.may_publish.set()
    await asyncio.wait_for(working, 5)
    assert message.fate == ["acknowledged"]
    assert sorted(bench.publisher.samples) == [1, 2, 3]
    assert bench.context.prefetch.is_idle()


async def test_a_shard_whose_outcomes_cannot_be_published_is_nacked(bench: Bench) -> None:
    bench.publisher.refusal = RuntimeError("no")
    message = FakeShardMessage(a_shard(1))
    await bench.process(message)
    assert message.fate == ["nacked"]
    assert not bench.context.in_flight.is_finished(message)


async def test_a_lost_acknowledgement_is_known_again(bench: Bench) -> None:
    message = FakeShardMessage(a_shard(1))
    await bench.process(message)
    assert bench.context.in_flight.is_finished(FakeShardMessage(a_shard(1), failed_deliveries=1))
    assert not bench.context.in_flight.is_finished(FakeShardMessage(a_shard(1, attempt=2)))


async def test_a_redelivered_shard_in_flight_goes_on_under_the_new_delivery(bench: Bench) -> None:
    bench.engine.answer = stuck
    old, new = FakeShardMessage(a_shard(1)), FakeShardMessage(a_shard(1), failed_deliveries=1)
    in_flight, working = bench.start(old)
    assert bench.context.in_flight.add(new, Priority.NORMAL) is None
    await bench.context.in_flight.extend_ack_deadlines()
    assert (old.extended, new.extended) == (0, 1)
    await eventually(lambda: in_flight.executing is not None, "it is asked")
    in_flight.abandon(Abandoned.RUN_FINISHED)
    await asyncio.wait_for(working, 5)
    assert (old.fate, new.fate) == ([], ["terminated"])


async def test_samples_that_an_earlier_attempt_still_asks_are_not_asked_again(bench: Bench) -> None:
    """As after a wiped stream: the scheduler sends again what is still in flight here."""
    release = asyncio.Event()

    async def first_at_once(text: str) -> str:
        if text != "sample 1":
            await release.wait()
        return text

    bench.engine.answer = first_at_once
    earlier, later = FakeShardMessage(a_shard(1, 2)), FakeShardMessage(a_shard(1, 2, attempt=2))
    in_flight, first = bench.start(earlier)
    await eventually(lambda: list(in_flight.unfinished) == [2], "one sample is answered")
    _, second = bench.start(later)
    await eventually(lambda: bench.engine.asked["sample 1"] == 2, "the lost answer is asked for again")
    await asyncio.wait((second,), timeout=0.02)
    assert later.fate == []
    release.set()
    await asyncio.wait_for(asyncio.gather(first, second), 5)
    assert bench.engine.asked["sample 2"] == 1
    assert (earlier.fate, later.fate) == (["acknowledged"], ["acknowledged"])
    assert bench.context.prefetch.is_idle()


async def test_nothing_is_sent_for_a_run_that_has_ended(bench: Bench) -> None:
    bench.context.run_states.put(RunId("run-1"), RunControl(epoch=1, is_final=True))
    message = FakeShardMessage(a_shard(1))
    await bench.process(message)
    assert (message.fate, sum(bench.engine.asked.values())) == (["terminated"], 0)


async def test_the_rest_of_a_dead_engine_is_forwarded_as_a_failed_delivery(bench: Bench) -> None:
    async def dies_on_three(text: str) -> str:
        if text == "sample 3":
            await eventually(lambda: bench.engine.in_flight == 1, "the others are answered")
            raise EngineDied("gone")
        return text

    bench.engine.answer = dies_on_three
    message = FakeShardMessage(a_shard(1, 2, 3), failed_deliveries=1)
    await bench.process(message)
    assert (message.rest, message.rest_failed_deliveries, message.fate) == ((3,), 2, ["acknowledged"])
    assert sorted(bench.publisher.samples) == [1, 2]
    assert bench.context.prefetch.closed.is_set()


async def test_a_dead_engine_releases_the_concurrency_limit_and_the_next_shard_is_executed(
    bench: Bench,
) -> None:
    async def dies(_: str) -> str:
        raise EngineDied("gone")

    alive, bench.engine.answer = bench.engine.answer, dies
    await asyncio.gather(*(bench.process(FakeShardMessage(a_shard(*range(40), number=n))) for n in range(8)))
    assert bench.concurrency.in_use == 0
    bench.engine.answer = alive
    await bench.process(FakeShardMessage(a_shard(41, number=9), failed_deliveries=1))
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
    original = FakeShardMessage(a_shard(1, 2, 3), message_id="run-1/1/1")
    rest = FakeShardMessage(a_shard(*left), failed_deliveries=1, message_id="run-1/1/1/unique/1")
    taken: list[InFlightShard] = []
    original.on_send = lambda: taken.append(bench.add(rest))
    await bench.process(original)
    assert (original.fate, rest.fate) == (["acknowledged"], [])
    bench.engine.answer = alive
    await asyncio.wait_for(bench.processor.process(taken[0]), 5)
    assert (original.fate, rest.fate) == (["acknowledged"], ["acknowledged"])
    assert sorted(bench.publisher.samples) == [1, 2, 3]


async def test_single_samples_that_come_back_at_once_are_asked(bench: Bench) -> None:
    original = FakeShardMessage(a_shard(1, 2), failed_deliveries=2, message_id="run-1/1/1")
    singles = [FakeShardMessage(a_shard(n), message_id=f"run-1/1/1/{n}") for n in (1, 2)]
    waiting, taken = iter(singles), list[InFlightShard]()
    original.on_send = lambda: taken.append(bench.add(next(waiting)))
    await bench.process(original)
    for in_flight in taken:
        await asyncio.wait_for(bench.processor.process(in_flight), 5)
    assert [each.fate for each in (original, *singles)] == [["acknowledged"]] * 3
    assert bench.publisher.samples == [1, 2]


async def test_a_model_that_cannot_be_loaded_is_no_failed_delivery(bench: Bench) -> None:
    async def refuses(_: str) -> str:
        raise ModelCannotLoad("no such folder")

    bench.engine.answer = refuses
    message = FakeShardMessage(a_shard(1, 2))
    await bench.process(message)
    assert (message.rest, message.rest_failed_deliveries) == ((1, 2), 0)


async def refuses_key(_: str) -> str:
    raise ModelRefused("The server answered 401 (check the API key).")


async def test_a_refused_run_is_sent_once_and_forwarded_unrecorded(bench: Bench) -> None:
    bench.engine.answer = refuses_key
    first, second = FakeShardMessage(a_shard(1, 2)), FakeShardMessage(a_shard(3, number=2))
    await bench.process(first)
    asked = sum(bench.engine.asked.values())
    await bench.process(second)
    assert (first.rest, first.rest_failed_deliveries, second.rest, second.rest_failed_deliveries) == (
        (1, 2),
        0,
        (3,),
        0,
    )
    assert sum(bench.engine.asked.values()) == asked, "what is known is not asked again"
    assert bench.context.refused_runs.reasons == {
        ("run-1", 1): "The server answered 401 (check the API key)."
    }
    assert bench.publisher.samples == []
    assert bench.context.prefetch.is_idle()


async def test_a_refused_run_waits_without_room_and_is_terminated_when_it_ends(bench: Bench) -> None:
    bench.engine.answer = refuses_key
    message = FakeShardMessage(a_shard(*range(200)))
    in_flight, working = bench.start(message)
    await eventually(lambda: bool(bench.context.refused_runs.reasons), "the refusal is known")
    await asyncio.wait_for(bench.context.prefetch.until_room(Priority.HIGH), 5)
    in_flight.abandon(Abandoned.RUN_FINISHED)
    await asyncio.wait_for(working, 0.5)
    assert message.fate == ["terminated"]
    assert bench.context.prefetch.is_idle()


async def test_another_run_of_a_refused_one_is_asked_for_itself(bench: Bench) -> None:
    bench.engine.answer = refuses_key
    await bench.process(FakeShardMessage(a_shard(1)))
    bench.engine.answer = echo
    other, retried = FakeShardMessage(a_shard(1, run_id="run-2")), FakeShardMessage(a_shard(2, epoch=2))
    await bench.process(other)
    await bench.process(retried)
    assert (other.fate, retried.fate) == (["acknowledged"], ["acknowledged"])
    assert bench.publisher.samples == [1, 2]


async def test_the_rest_of_a_draining_worker_is_forwarded_without_a_failed_delivery(bench: Bench) -> None:
    bench.engine.answer = stuck
    message = FakeShardMessage(a_shard(1, 2))
    in_flight, working = bench.start(message)
    await eventually(lambda: bench.engine.in_flight == 2, "both are asked")
    in_flight.abandon(Abandoned.DRAINING)
    await asyncio.wait_for(working, 5)
    assert (message.rest, message.rest_failed_deliveries, message.fate) == ((1, 2), 0, ["acknowledged"])
    assert bench.engine.aborted == 2
    assert bench.publisher.samples == []


async def test_a_shard_that_was_fatal_twice_is_cut_into_single_samples(bench: Bench) -> None:
    message = FakeShardMessage(a_shard(1, 2, 3), failed_deliveries=2)
    await bench.process(message)
    assert (message.singles, message.fate) == ([1, 2, 3], ["acknowledged"])
    assert not bench.engine.asked


@pytest.mark.parametrize("ends", [2, 3])
async def test_a_sample_that_ended_three_workers_alone_is_recorded_as_a_failure(
    bench: Bench, ends: int
) -> None:
    bench.quarantine.begun[RunId("run-1"), 5] = ends
    message = FakeShardMessage(a_shard(5), failed_deliveries=4)
    await bench.process(message)
    (outcome,) = bench.publisher.batches[0].outcomes
    assert message.fate == ["acknowledged"]
    if ends < 3:
        assert isinstance(outcome.result, Answer)
        assert not bench.quarantine.begun, "it ended no worker"
        return
    assert isinstance(outcome.result, Failure)
    assert outcome.result.failure_class is FailureClass.ENGINE
    assert outcome.result.message.startswith("This sample was executed alone 3 times")
    assert not bench.engine.asked


async def test_a_death_while_a_suspect_waits_for_its_turn_does_not_count(bench: Bench) -> None:
    """A worker that is killed now has pulled each of them, and executes only one."""
    bench.engine.answer = stuck
    started = [bench.start(FakeShardMessage(a_shard(n, number=n), failed_deliveries=9)) for n in (1, 2, 3)]
    await eventually(lambda: bench.engine.in_flight == 1, "one of them is asked")
    assert bench.quarantine.begun == {(RunId("run-1"), 1): 1}
    for in_flight, _ in started:
        in_flight.abandon(Abandoned.DRAINING)
    await asyncio.wait_for(asyncio.gather(*(working for _, working in started)), 5)
    assert not bench.quarantine.begun, "a drain is not the sample's fault"


@pytest.mark.parametrize(
    ("error", "counted"), [(EngineDied("gone"), 1), (ModelCannotLoad("no such folder"), 0)]
)
async def test_the_end_of_an_engine_counts_where_it_executed_one_sample(
    bench: Bench, error: Exception, counted: int
) -> None:
    async def fails(_: str) -> str:
        raise error

    bench.engine.answer = fails
    await bench.process(FakeShardMessage(a_shard(1), failed_deliveries=1))
    await bench.process(FakeShardMessage(a_shard(2, number=2)))
    assert bench.quarantine.begun == Counter({(RunId("run-1"), 1): counted})


async def test_a_sample_that_failed_before_is_executed_alone(bench: Bench) -> None:
    release = asyncio.Event()

    async def waits(text: str) -> str:
        await release.wait()
        return text

    bench.engine.answer = waits
    _, first = bench.start(FakeShardMessage(a_shard(1, 2)))
    await eventually(lambda: bench.engine.in_flight == 2, "the first shard is asked")
    _, suspect = bench.start(FakeShardMessage(a_shard(3, number=2), failed_deliveries=1))
    await asyncio.wait((suspect,), timeout=0.02)
    assert bench.engine.in_flight == 2
    release.set()
    await asyncio.wait_for(asyncio.gather(first, suspect), 5)
    assert sorted(bench.publisher.samples) == [1, 2, 3]
