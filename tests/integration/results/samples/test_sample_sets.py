"""Sample sets: staged, committed and stored once where they are equal, in memory and in Postgres alike."""

import asyncio
from collections.abc import AsyncIterator
from dataclasses import replace
from datetime import timedelta

import pytest
import pytest_asyncio

from proctor.values.names.project import FIRST_DECLARED
from proctor.values.sample import ChatMessage, Prompt
from services.common.migrations import migrate
from services.common.postgres import PostgresSession, connect_pool
from services.results.postgres import MIGRATIONS, QUERIES, SCHEMA
from services.results.samples.errors import SampleSetCommitted, SampleSetIncomplete, SampleSetNotFound
from services.results.samples.sample import StoredSample
from services.results.scoring.score import ScoringTarget
from services.results.summaries.ports import Stores
from tests.fakes.results.memory_results import MemoryRows, memory_stores
from tests.fakes.results.recorded_run import choice_sample, content_hash, new_id, plan_of
from tests.fakes.results.stores import postgres_stores
from tests.harness.servers import postgres_server

pytestmark = pytest.mark.asyncio(loop_scope="module")


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def postgres() -> AsyncIterator[Stores]:
    async with postgres_server() as server:
        await migrate(server.address, SCHEMA, MIGRATIONS)
        async with await connect_pool(server.address, schema=SCHEMA) as pool:
            yield postgres_stores(PostgresSession(pool, QUERIES))


@pytest.fixture(params=["memory", "postgres"])
def stores(request: pytest.FixtureRequest, postgres: Stores) -> Stores:
    return postgres if request.param == "postgres" else memory_stores(MemoryRows())


async def test_a_set_is_readable_once_committed(stores: Stores) -> None:
    sample_set_id = new_id()
    chat = Prompt(None, (ChatMessage("system", "Be brief."), ChatMessage("user", "Why?")))
    samples = [
        replace(choice_sample(0, sample_set_id), prompt=chat, cluster="passage"),
        StoredSample(1, 5, bytes(32), Prompt("How?"), ScoringTarget((), None, ("so", "thus"))),
    ]
    await stores.sample_sets.stage(sample_set_id, samples)
    with pytest.raises(SampleSetNotFound):
        await stores.sample_sets.read(sample_set_id, [0])
    await stores.sample_sets.stage(sample_set_id, samples[1:])
    committed = await stores.sample_sets.commit(sample_set_id, 2)
    assert await stores.sample_sets.commit(sample_set_id, 2) == committed
    assert await stores.sample_sets.read(sample_set_id, [1, 0]) == {0: samples[0], 1: samples[1]}
    assert await stores.sample_sets.targets(sample_set_id, [1, 7]) == {1: samples[1].target}
    assert await stores.sample_sets.clusters(sample_set_id) == {0: "passage"}
    assert await stores.sample_sets.label_count(sample_set_id) == 0
    assert (await stores.sample_sets.weights(sample_set_id, [1, 7])) == {1: len("How?sothus")}
    with pytest.raises(SampleSetCommitted):
        await stores.sample_sets.stage(sample_set_id, samples)


async def test_all_that_a_target_may_hold_is_kept(stores: Stores) -> None:
    sample_set_id = new_id()
    several = ScoringTarget((" a", " b", " c"), None, ("b", "c"), (1, 2), ("a",), ("A", "B", "C"))
    sample = replace(choice_sample(0, sample_set_id), target=several, doc_json="{}")
    await stores.sample_sets.stage(sample_set_id, [sample])
    await stores.sample_sets.commit(sample_set_id, 1)
    assert await stores.sample_sets.targets(sample_set_id, [0]) == {0: several}
    assert await stores.sample_sets.label_count(sample_set_id) == 3
    assert (await stores.sample_sets.read(sample_set_id, [0]))[0].target == several


async def test_chunks_that_come_together_make_the_set_that_they_make_one_by_one(stores: Stores) -> None:
    one_by_one, together = new_id(), new_id()
    chunks = [[choice_sample(at, "chunks") for at in range(start, start + 50)] for start in range(0, 400, 50)]
    for chunk in chunks:
        await stores.sample_sets.stage(one_by_one, chunk)
    async with asyncio.TaskGroup() as group:
        for chunk in reversed(chunks):
            group.create_task(stores.sample_sets.stage(together, chunk))
    content = content_hash([sample for chunk in chunks for sample in chunk])
    kept = await stores.sample_sets.commit(one_by_one, 400, content_hash=content)
    assert await stores.sample_sets.commit(together, 400, content_hash=content) == kept


async def test_sets_without_a_hash_are_shared_with_none(stores: Stores) -> None:
    committed = []
    for _ in range(2):
        sample_set_id = new_id()
        await stores.sample_sets.stage(sample_set_id, [choice_sample(0, "no hash")])
        committed.append(await stores.sample_sets.commit(sample_set_id, 1))
        assert committed[-1].sample_set_id == sample_set_id
    assert committed[0].digest == committed[1].digest


async def test_a_set_with_gaps_is_not_committed(stores: Stores) -> None:
    sample_set_id = new_id()
    await stores.sample_sets.stage(
        sample_set_id, [choice_sample(0, sample_set_id), choice_sample(2, sample_set_id)]
    )
    for count in (2, 3):
        with pytest.raises(SampleSetIncomplete):
            await stores.sample_sets.commit(sample_set_id, count)
    with pytest.raises(SampleSetNotFound):
        await stores.sample_sets.commit(new_id(), 1)


async def test_a_set_whose_samples_share_other_passages_is_another_set(stores: Stores) -> None:
    """Its figures have other errors: they rest on how many passages there are."""
    salt = new_id()
    committed = []
    for clusters in (("", ""), ("p", "p"), ("p", "q"), ("p", "p")):
        sample_set_id = new_id()
        samples = [replace(choice_sample(at, salt), cluster=cluster) for at, cluster in enumerate(clusters)]
        await stores.sample_sets.stage(sample_set_id, samples)
        kept = await stores.sample_sets.commit(sample_set_id, 2, content_hash=content_hash(samples))
        committed.append(kept.sample_set_id)
    assert len(set(committed)) == 3
    assert committed[1] == committed[3]
    assert await stores.sample_sets.clusters(committed[0]) == {}
    assert await stores.sample_sets.clusters(committed[2]) == {0: "p", 1: "q"}


async def test_a_set_whose_rows_differ_or_that_is_of_another_project_is_another_set(stores: Stores) -> None:
    """Else whoever asks the same would read rows of others, or could write them beforehand."""
    salt, first, committed = new_id(), FIRST_DECLARED + 1, []
    for doc, doc_id, project_id in (
        ('{"q": 1, "note": "secret"}', 0, 0),
        ('{"q": 1}', 0, 0),
        ('{"q": 1}', 7, 0),
        ('{"q": 1}', 0, first),
        ('{"q": 1}', 0, first + 1),
        # In no declared project, as the second.
        ('{"q": 1}', 0, 5),
        ('{"q": 1}', 0, first),
    ):
        sample_set_id = new_id()
        sample = replace(choice_sample(0, salt), doc_json=doc, doc_id=doc_id)
        await stores.sample_sets.stage(sample_set_id, [sample])
        kept = await stores.sample_sets.commit(sample_set_id, 1, project_id, content_hash([sample]))
        assert await stores.sample_sets.docs(kept.sample_set_id, [0]) == {0: doc}
        committed.append(kept)
    ids = [kept.sample_set_id for kept in committed]
    assert len(set(ids)) == 5
    assert (ids[5], ids[6]) == (ids[1], ids[3])
    # What is asked is equal, and that is what comparisons go by.
    assert len({kept.digest for kept in committed}) == 1


async def test_leftovers_are_swept_and_committed_sets_stay(stores: Stores) -> None:
    kept = new_id()
    await stores.sample_sets.stage(kept, [choice_sample(at, kept) for at in range(2)])
    await stores.sample_sets.commit(kept, 2)
    await stores.records.open(plan_of([2], [kept]), 1)
    left = new_id()
    await stores.sample_sets.stage(left, [choice_sample(0, left)])
    assert await stores.sample_sets.delete_staged(timedelta(days=1000)) == 0
    assert await stores.sample_sets.delete_staged(timedelta(minutes=-1)) >= 1
    assert len(await stores.sample_sets.read(kept, [0, 1])) == 2
    with pytest.raises(SampleSetNotFound):
        await stores.sample_sets.commit(left, 1)
