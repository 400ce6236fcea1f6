"""The consumer of outcomes on a real NATS: batches, and messages that cannot be recorded."""

import asyncio
import uuid
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager

import asyncpg
import pytest
import pytest_asyncio
from prometheus_client import REGISTRY

from proctor.values.messaging import outcome_subject
from proctor.values.outcome import Failure, Outcome
from services.common.errors import DependencyUnavailable
from services.common.nats.connection import connect_nats
from services.common.nats.jetstream import JetStream
from services.common.nats.pull import Puller
from services.common.nats.streams import OUTCOMES, outcome_consumer
from services.results.outcomes import nats as nats_outcome_consumer
from services.results.outcomes.nats import MESSAGES_PER_PULL, WRITERS, NatsOutcomeConsumer
from services.results.outcomes.outcome import OutcomeBatch
from services.results.outcomes.record_outcomes import Recorded
from tests.fakes.dispatch_proof_key import DISPATCH_PROOF_KEY
from tests.fakes.eventually import eventually
from tests.fakes.results.recorded_run import answered, batch, new_id
from tests.fakes.results.results_harness import batch_to_proto
from tests.harness.servers import nats_server

pytestmark = pytest.mark.asyncio(loop_scope="module")

ACK_WAIT_SECONDS = 1.0


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def jetstream() -> AsyncIterator[JetStream]:
    async with nats_server() as server:
        connection = await connect_nats(server.address, "test")
        made = JetStream(connection)
        yield made
        await connection.close()


class Recorder:
    """Keeps what it is given; refuses the first sample of some runs, and everything while it is away.

    Slow runs take as long as they must.
    """

    def __init__(self) -> None:
        self.calls: list[list[OutcomeBatch]] = []
        self.refused: set[str] = set()
        self.slow: set[str] = set()
        self.slow_may_end = asyncio.Event()
        self.trouble: Exception | None = None
        self.attempts = 0
        self.last: list[str] = []
        self.is_away = False

    async def __call__(self, batches: Sequence[OutcomeBatch]) -> Recorded:
        self.attempts += 1
        self.last = [one.run_id for one in batches]
        if any(one.run_id in self.slow for one in batches):
            await self.slow_may_end.wait()
        if self.is_away:
            raise DependencyUnavailable(dependency="Postgres")
        if self.trouble is not None:
            raise self.trouble
        answers = [(one.run_id, answer) for one in batches for answer in one.outcomes]
        if any(run_id in self.refused and is_refused(answer) for run_id, answer in answers):
            raise ValueError("no row of mine")
        self.calls.append(list(batches))
        return Recorded(len(batches), len(batches))

    @property
    def runs(self) -> list[str]:
        return [one.run_id for call in self.calls for one in call]

    def outcomes_of(self, run_id: str) -> list[Outcome]:
        batches = [one for call in self.calls for one in call]
        return [outcome for one in batches if one.run_id == run_id for outcome in one.outcomes]


def is_refused(outcome: Outcome) -> bool:
    return outcome.sample == 0 and not isinstance(outcome.result, Failure)


@asynccontextmanager
async def consuming(jetstream: JetStream, recorder: Recorder) -> AsyncIterator[None]:
    consumer = NatsOutcomeConsumer(
        puller=Puller(jetstream, outcome_consumer(ACK_WAIT_SECONDS), MESSAGES_PER_PULL),
        record=recorder,
        max_outcomes=1000,
        linger_seconds=0.1,
        dispatch_proof_key=DISPATCH_PROOF_KEY,
    )
    running = asyncio.ensure_future(consumer.run())
    try:
        yield
    finally:
        # Also where a test fails: it would take the messages of the next one.
        consumer.stop()
        await asyncio.wait_for(running, 10)


async def send(jetstream: JetStream, run_id: str, samples: int = 1) -> None:
    outcomes = [answered(sample) for sample in range(samples)]
    payload = batch_to_proto(batch(run_id, outcomes)).SerializeToString()
    await jetstream.publish(outcome_subject(run_id), payload, uuid.uuid4().hex)


async def is_empty(jetstream: JetStream) -> bool:
    return await jetstream.pending(OUTCOMES, "outcomes.>") == 0


async def test_messages_that_come_together_are_recorded_together(jetstream: JetStream) -> None:
    recorder, runs = Recorder(), [new_id() for _ in range(12)]
    for run_id in runs:
        await send(jetstream, run_id)
    async with consuming(jetstream, recorder):
        await eventually(lambda: is_empty(jetstream), "all are taken")
    assert sorted(recorder.runs) == sorted(runs)
    assert len(recorder.calls) < len(runs)


async def test_message_that_looks_like_the_end_of_a_pull_is_taken_from_the_stream(
    jetstream: JetStream,
) -> None:
    """A worker may store any header: what is neither read nor acknowledged stays in flight for ever."""
    recorder, run_id = Recorder(), new_id()
    publish = jetstream.connection.jetstream().publish
    for status in ("100", "404", "408", "409", "503"):
        await publish(outcome_subject(run_id), b"", headers={"Status": status})
    await send(jetstream, run_id)
    async with consuming(jetstream, recorder):
        await eventually(lambda: is_empty(jetstream), "all are taken")
    assert recorder.runs == [run_id]


async def test_messages_are_held_while_postgres_is_away(jetstream: JetStream) -> None:
    recorder, run_id = Recorder(), new_id()
    recorder.is_away = True
    await send(jetstream, run_id)
    async with consuming(jetstream, recorder):
        # So many attempts take longer than the wait for an acknowledgement: the message must not come again.
        await eventually(lambda: recorder.attempts == 5, "it is tried again and again")
        assert not await is_empty(jetstream)
        recorder.is_away = False
        await eventually(lambda: is_empty(jetstream), "it is taken")
    assert recorder.runs == [run_id]


async def test_batches_that_take_long_hold_up_no_others(
    jetstream: JetStream, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(nats_outcome_consumer, "RECORD_TIMEOUT_SECONDS", 0.05)
    recorder, quick, slow = Recorder(), new_id(), [new_id() for _ in range(WRITERS + 1)]
    recorder.slow.update(slow)
    async with consuming(jetstream, recorder):
        for run_id in slow:
            await send(jetstream, run_id)
            await eventually(lambda: recorder.last == [run_id], "it is being recorded")  # noqa: B023  # awaited
        await send(jetstream, quick)
        await eventually(lambda: recorder.runs == [quick], "the other run is recorded")
        recorder.slow_may_end.set()
        await eventually(lambda: is_empty(jetstream), "all are taken")
    assert sorted(recorder.runs) == sorted([quick, *slow])


async def test_one_message_that_cannot_be_recorded_holds_no_other_back(jetstream: JetStream) -> None:
    recorder, bad, good = Recorder(), new_id(), new_id()
    recorder.refused.add(bad)
    await send(jetstream, bad)
    await send(jetstream, good)
    async with consuming(jetstream, recorder):
        await eventually(lambda: good in recorder.runs, "the good one is recorded")
        await eventually(lambda: bad in recorder.runs, "the bad one is given up")
        await eventually(lambda: is_empty(jetstream), "nothing is left")
    [outcome] = recorder.outcomes_of(bad)
    assert isinstance(outcome.result, Failure)
    assert outcome.result.message == "The answer could not be recorded; the log of results says why."


async def test_one_answer_that_cannot_be_recorded_spoils_no_other_of_its_message(
    jetstream: JetStream,
) -> None:
    recorder, run_id = Recorder(), new_id()
    recorder.refused.add(run_id)
    await send(jetstream, run_id, samples=3)
    async with consuming(jetstream, recorder):
        await eventually(lambda: is_empty(jetstream), "it is settled")
    kept = recorder.outcomes_of(run_id)
    assert [one.sample for one in kept if isinstance(one.result, Failure)] == [0]
    assert [one.sample for one in kept if not isinstance(one.result, Failure)] == [1, 2]


def counted() -> float:
    return REGISTRY.get_sample_value("proctor_outcome_messages_unrecorded_total") or 0.0


@pytest.mark.parametrize("trouble", [asyncpg.UndefinedTableError("no table"), KeyError("a mistake of ours")])
async def test_answers_outlive_any_trouble_that_is_not_theirs(
    jetstream: JetStream, monkeypatch: pytest.MonkeyPatch, trouble: Exception
) -> None:
    monkeypatch.setattr(nats_outcome_consumer, "MAX_BACKOFF_SECONDS", 0.05)
    recorder, run_id = Recorder(), new_id()
    recorder.trouble = trouble
    await send(jetstream, run_id)
    before = counted()
    async with consuming(jetstream, recorder):
        await eventually(lambda: recorder.attempts > 8, "it comes again and again")
        recorder.trouble = None
        await eventually(lambda: is_empty(jetstream), "it is taken")
    # For the operator, who has to mend the cause.
    assert counted() >= before + 8
    assert recorder.outcomes_of(run_id) == [answered(0)]
