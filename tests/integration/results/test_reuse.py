"""Answers of earlier runs are reused in Postgres: of the same request, sample, rollout and engine only."""

import os
import random
import re
from collections.abc import AsyncIterator, Mapping, Sequence
from dataclasses import dataclass, replace

import pytest
import pytest_asyncio

from proctor.values.outcome import Outcome, OutcomeStatus
from proctor.values.run import RunState
from services.common.migrations import migrate
from services.common.postgres import PostgresSession, connect_pool
from services.results.answers.postgres import PostgresAnswers
from services.results.outcomes.list_missing import ListMissing
from services.results.outcomes.outcome import BEFORE_ALL
from services.results.outcomes.ports import OutcomePage
from services.results.outcomes.postgres import PostgresReuse
from services.results.outcomes.reuse_answers import ReuseAnswers
from services.results.postgres import MIGRATIONS, QUERIES, SCHEMA
from services.results.runs.errors import EpochNotOpen, RecordNotFound
from services.results.runs.run_plan import RunPlan
from services.results.samples.sample import StoredSample
from services.results.summaries.ports import Stores
from tests.fakes.results.recorded_run import answered, choice_sample, failed, new_id, plan_of, said, scored
from tests.fakes.results.stores import postgres_stores
from tests.harness.servers import postgres_server

pytestmark = pytest.mark.asyncio(loop_scope="module")

# How many runs are drawn, with up to 45 answers to be matched each.
CASES = int(os.environ.get("PROCTOR_PROPERTY_CASES", "20"))
SIZE = 12
MANY = 2000
ENGINE = {"engine": "fake", "engine_version": "1"}
ASKED_ALIKE = b"a" * 32


@dataclass
class Stand:
    session: PostgresSession
    stores: Stores
    reuse: ReuseAnswers

    async def open(
        self, samples: Sequence[StoredSample], *, digest: bytes = ASKED_ALIKE, rollouts: int = 1
    ) -> RunPlan:
        sample_set_id = new_id()
        await self.stores.sample_sets.stage(sample_set_id, samples)
        kept = await self.stores.sample_sets.commit(sample_set_id, len(samples))
        plan = plan_of([len(samples)], [kept.sample_set_id], rollouts=rollouts)
        tasks = tuple(replace(task, request_digest=digest) for task in plan.tasks)
        return (await self.stores.records.open(replace(plan, tasks=tasks), 1)).plan

    async def answer(
        self, plan: RunPlan, outcomes: Sequence[Outcome], said: Mapping[str, str] = ENGINE
    ) -> None:
        await self.stores.outcomes.record([scored(plan.run_id, outcome) for outcome in outcomes])
        await self.stores.records.add_environment(plan.run_id, said)

    async def texts(self, plan: RunPlan) -> list[str]:
        """What was said, by sample and rollout."""
        keys = await self.stores.outcomes.page(OutcomePage(plan.run_id, BEFORE_ALL, plan.end_sample, MANY))
        found = await PostgresAnswers(self.session).read(plan.run_id, keys)
        return [one.outcome.answer.text for one in found if one.outcome.answer]

    async def reused(self, plan: RunPlan) -> dict[tuple[int, int], int]:
        """The number that was said, by sample and rollout."""
        keys = await self.stores.outcomes.page(OutcomePage(plan.run_id, BEFORE_ALL, plan.end_sample, MANY))
        return {key: int(text) for key, text in zip(keys, await self.texts(plan), strict=True)}

    async def missing(self, plan: RunPlan) -> list[tuple[int, int]]:
        page = await ListMissing(self.stores.records, self.stores.outcomes).list_page(plan.run_id, 1, 0, "")
        return page.missing


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def harness() -> AsyncIterator[Stand]:
    async with postgres_server() as server:
        await migrate(server.address, SCHEMA, MIGRATIONS)
        async with await connect_pool(server.address, schema=SCHEMA) as pool:
            session = PostgresSession(pool, QUERIES)
            stores = postgres_stores(session)
            yield Stand(
                session, stores, ReuseAnswers(stores.records, stores.outcomes, PostgresReuse(session))
            )


@pytest.fixture
def samples() -> list[StoredSample]:
    salt = new_id()
    return [choice_sample(at, salt) for at in range(SIZE)]


async def test_answers_are_taken_once_with_their_counts(harness: Stand, samples: list[StoredSample]) -> None:
    first, second = await harness.open(samples), await harness.open(samples)
    unparsed = replace(scored(first.run_id, answered(3)), status=OutcomeStatus.UNPARSED)
    await harness.stores.outcomes.record([unparsed])
    await harness.answer(first, [answered(at) for at in range(SIZE) if at not in (3, 5)])
    await harness.answer(first, [failed(5)])
    for _ in range(2):
        assert await harness.reuse.reuse(second.run_id, 1, ENGINE) == SIZE - 1
    counts = (await harness.stores.records.all_counts(second)).counts
    assert (counts.recorded, counts.failed, counts.tasks[0].unparsed) == (SIZE - 1, 0, 1)
    assert counts.usage.prompt_tokens == 0
    assert await harness.missing(second) == [(0, 5)]
    # What is asked after all goes its usual way.
    await harness.answer(second, [answered(5), answered(4)])
    assert (await harness.stores.records.all_counts(second)).counts.recorded == SIZE


async def test_a_limited_run_has_its_samples_from_a_whole_one(
    harness: Stand, samples: list[StoredSample]
) -> None:
    whole = await harness.open(samples)
    await harness.answer(whole, [answered(at) for at in range(SIZE)])
    part = await harness.open(samples[:5])
    assert await harness.reuse.reuse(part.run_id, 1, ENGINE) == 5
    more = await harness.open([*samples, replace(choice_sample(SIZE, new_id()), position=SIZE)])
    assert await harness.reuse.reuse(more.run_id, 1, ENGINE) == SIZE
    assert await harness.missing(more) == [(0, SIZE)]


async def test_what_is_left_is_taken_from_an_older_run(harness: Stand, samples: list[StoredSample]) -> None:
    older, newer = await harness.open(samples), await harness.open(samples)
    await harness.answer(older, [answered(at) for at in range(8)])
    await harness.answer(newer, [answered(at, 1) for at in range(6, SIZE)])
    third = await harness.open(samples)
    assert await harness.reuse.reuse(third.run_id, 1, ENGINE) == SIZE


async def test_the_nth_of_equal_samples_has_the_nth_answer(
    harness: Stand, samples: list[StoredSample]
) -> None:
    alike = [replace(one, digest=samples[0].digest) for one in samples]
    first, second = await harness.open(alike), await harness.open([*alike[:7], *samples[7:]])
    await harness.answer(first, [said(at, f"answer {at}") for at in range(SIZE)])
    for _ in range(2):
        assert await harness.reuse.reuse(second.run_id, 1, ENGINE) == 7
    assert await harness.texts(second) == [f"answer {at}" for at in range(7)]


async def test_a_sample_whose_answer_failed_has_one_that_no_other_takes(
    harness: Stand, samples: list[StoredSample]
) -> None:
    alike = [replace(one, digest=samples[0].digest) for one in samples]
    first, second = await harness.open(alike), await harness.open(alike[:7])
    lost = (1, 3, 8)
    await harness.answer(first, [said(at, f"answer {at}") for at in range(SIZE) if at not in lost])
    await harness.answer(first, [failed(at) for at in lost])
    for _ in range(2):
        assert await harness.reuse.reuse(second.run_id, 1, ENGINE) == 7
    assert await harness.texts(second) == [f"answer {at}" for at in (0, 7, 2, 9, 4, 5, 6)]


async def test_no_answer_is_given_to_two_samples(harness: Stand, samples: list[StoredSample]) -> None:
    alike = [replace(one, digest=samples[0].digest) for one in samples]
    first, second = await harness.open(alike[:5]), await harness.open(alike)
    await harness.answer(first, [said(at, f"answer {at}") for at in (0, 2, 4)])
    assert await harness.reuse.reuse(second.run_id, 1, ENGINE) == 3
    assert await harness.texts(second) == ["answer 0", "answer 2", "answer 4"]
    assert len(await harness.missing(second)) == SIZE - 3


async def test_rollouts_of_equal_samples_are_matched_one_by_one(
    harness: Stand, samples: list[StoredSample]
) -> None:
    alike = [replace(one, digest=samples[0].digest) for one in samples[:3]]
    first, second = await harness.open(alike, rollouts=2), await harness.open(alike, rollouts=2)
    answers = [
        replace(said(at, f"{at}.{rollout}"), rollout=rollout) for at in range(3) for rollout in range(2)
    ]
    await harness.answer(first, [one for one in answers if (one.sample, one.rollout) != (1, 1)])
    assert await harness.reuse.reuse(second.run_id, 1, ENGINE) == 5
    assert await harness.missing(second) == [(1, 1)]
    assert await harness.texts(second) == ["0.0", "0.1", "1.0", "2.0", "2.1"]


@pytest.mark.parametrize("seed", range(CASES))
async def test_whatever_is_equal_each_answer_is_taken_once_and_the_nth_by_the_nth(
    harness: Stand, seed: int
) -> None:
    draw = random.Random(seed)
    salt, rollouts = new_id(), draw.randint(1, 3)
    kinds = [choice_sample(kind, salt).digest for kind in range(draw.randint(1, 4))]
    mine, theirs = [
        [replace(choice_sample(at, salt), digest=draw.choice(kinds)) for at in range(draw.randint(1, 15))]
        for _ in range(2)
    ]
    first = await harness.open(theirs, rollouts=draw.randint(1, 3))
    second = await harness.open(mine, rollouts=rollouts)
    keys = [(at, rollout) for at in range(len(theirs)) for rollout in range(first.rollouts)]
    lost = {key for key in keys if draw.random() < 0.3}
    await harness.answer(first, [failed(at, rollout=rollout) for at, rollout in lost])
    given = [key for key in keys if key not in lost]
    await harness.answer(first, [replace(said(at, str(at)), rollout=rollout) for at, rollout in given])
    expected = expected_answers(mine, theirs, given, rollouts)
    for _ in range(2):
        assert await harness.reuse.reuse(second.run_id, 1, ENGINE) == len(expected)
    assert await harness.reused(second) == expected


def expected_answers(
    mine: Sequence[StoredSample],
    theirs: Sequence[StoredSample],
    given: Sequence[tuple[int, int]],
    rollouts: int,
) -> dict[tuple[int, int], int]:
    """The sample whose answer each (sample, rollout) has."""
    expected: dict[tuple[int, int], int] = {}
    for digest in {sample.digest for sample in mine}:
        wanted = [at for at, sample in enumerate(mine) if sample.digest == digest]
        equal = [at for at, sample in enumerate(theirs) if sample.digest == digest]
        for rollout in range(rollouts):
            beside = {
                own: other for own, other in zip(wanted, equal, strict=False) if (other, rollout) in given
            }
            lacking = [own for own in wanted if own not in beside]
            spare = [other for other in equal[len(wanted) :] if (other, rollout) in given]
            for own, other in (*beside.items(), *zip(lacking, spare, strict=False)):
                expected[own, rollout] = other
    return expected


async def test_equal_samples_are_matched_without_comparing_each_with_each(harness: Stand) -> None:
    """Each with each would be millions of pairs."""
    salt = new_id()
    alike = [replace(choice_sample(at, salt), digest=choice_sample(0, salt).digest) for at in range(MANY)]
    first, second = await harness.open(alike), await harness.open(alike)
    await harness.answer(first, [said(at, f"answer {at}") for at in range(MANY)])
    async with harness.session.transaction() as transaction:
        await transaction.execute("join_by_hash")
        statement, *arguments = QUERIES["reuse_answers"].call(
            {
                "run_id": second.run_id,
                "epoch": 1,
                "task_index": 0,
                "source_run_id": first.run_id,
                "source_task_index": 0,
            }
        )
        plan = await transaction.connection.fetchval(
            f"EXPLAIN (ANALYZE, FORMAT JSON) {statement}", *arguments
        )
    counts = re.findall(r'"(?:Actual Rows|Rows Removed by Join Filter)": ([\d.]+)', plan)
    assert max(map(float, counts)) <= 2 * MANY
    assert await harness.texts(second) == [f"answer {at}" for at in range(MANY)]


async def test_only_the_same_rollouts_are_taken(harness: Stand, samples: list[StoredSample]) -> None:
    once = await harness.open(samples)
    await harness.answer(once, [answered(at) for at in range(SIZE)])
    thrice = await harness.open(samples, rollouts=3)
    assert await harness.reuse.reuse(thrice.run_id, 1, ENGINE) == SIZE
    assert {rollout for rollout, _ in await harness.missing(thrice)} == {1, 2}
    await harness.answer(thrice, [answered(at, rollout=2) for at in range(SIZE)])
    again = await harness.open(samples)
    assert await harness.reuse.reuse(again.run_id, 1, ENGINE) == SIZE


@pytest.mark.parametrize(
    ("said", "asked", "digest"),
    [
        (ENGINE, {**ENGINE, "engine_version": "2"}, ASKED_ALIKE),
        (ENGINE, ENGINE, b"b" * 32),
        (ENGINE, {}, ASKED_ALIKE),
        ({}, ENGINE, ASKED_ALIKE),
    ],
    ids=["another version", "another request", "nothing known now", "nothing known then"],
)
async def test_other_answers_are_not_taken(
    harness: Stand, samples: list[StoredSample], said: dict[str, str], asked: dict[str, str], digest: bytes
) -> None:
    first, second = await harness.open(samples), await harness.open(samples, digest=digest)
    await harness.answer(first, [answered(at) for at in range(SIZE)], said)
    assert await harness.reuse.reuse(second.run_id, 1, asked) == 0
    assert len(await harness.missing(second)) == SIZE


async def test_a_frozen_run_takes_nothing_and_an_unknown_one_is_refused(
    harness: Stand, samples: list[StoredSample]
) -> None:
    first, second = await harness.open(samples), await harness.open(samples)
    await harness.answer(first, [answered(at) for at in range(SIZE)])
    await harness.stores.records.freeze(second, 1, RunState.CANCELLED, allow_partial=True)
    assert await harness.reuse.reuse(second.run_id, 1, ENGINE) == 0
    with pytest.raises(EpochNotOpen):
        await harness.reuse.reuse(first.run_id, 2, ENGINE)
    with pytest.raises(RecordNotFound):
        await harness.reuse.reuse(new_id(), 1, ENGINE)
