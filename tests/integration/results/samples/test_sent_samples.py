"""A sample reaches a worker alike from the scheduler's memory and from results."""

from collections.abc import AsyncIterator
from uuid import uuid4

import pytest
import pytest_asyncio

from proctor.v1 import sample_pb2, work_messages_pb2
from proctor.values.code import CodeAnswer, CodeCheck
from proctor.values.sample import ChatMessage, Prompt, Target
from proctor.wire.values import SAMPLE
from services.common.migrations import migrate
from services.common.postgres import PostgresSession, connect_pool
from services.results.postgres import MIGRATIONS, QUERIES, SCHEMA
from services.results.samples.postgres import PostgresSampleMessages, PostgresSampleSets
from services.results.samples.proto import sample_from_proto
from services.scheduler.dispatch.nats import WireSample, fill_work
from services.scheduler.planning.rendered_samples import AskedSample
from services.scheduler.suites.rendering.sample import RenderedSample
from tests.harness.servers import postgres_server

pytestmark = pytest.mark.asyncio(loop_scope="module")

TEXT = 'Was ist das?\n\tÜber 𝔘nicode, "quotes", \\back\\slashes und \u2028 Zeilen; 答案是…'
TURNS = (
    ChatMessage("system", TEXT),
    ChatMessage("user", "", '{"content": [{"type": "text", "text": "x"}], "name": "ann"}'),
    ChatMessage("assistant", "", '{"tool_calls": [{"id": "1"}]}'),
)
KINDS = {
    "text": RenderedSample(0, 3, b"t" * 32, Prompt(TEXT), target=Target(texts=("a", TEXT))),
    "empty text": RenderedSample(0, 0, b"e" * 32, Prompt("")),
    "chat": RenderedSample(
        0,
        2**40,
        b"c" * 32,
        Prompt(None, TURNS),
        doc_json='{"b": 1, "a": "é"}',
        row_id="row é",
        params_json='{"temperature": 0.50, "z": [1], "a": null}',
    ),
    "choices": RenderedSample(
        0,
        1,
        b"m" * 32,
        Prompt(TEXT),
        choices=(" A", "", f" {TEXT}"),
        target=Target(choice=1, texts=("x",), choice_texts=("1", "2", "3"), wrong_texts=("y",)),
        cluster="passage é",
        choice_ending=" the end",
    ),
    "several right": RenderedSample(
        0, 1, b"s" * 32, Prompt("?"), choices=("a", "b"), target=Target(right_choices=(0, 1))
    ),
    "code": RenderedSample(
        0,
        0,
        b"p" * 32,
        Prompt("def f():"),
        target=Target(texts=("assert f() == 1",)),
        code_check=CodeCheck("def f():\n", "assert f() == 1", CodeAnswer.FIRST_BLOCK, 2.5),
    ),
    "rollout": RenderedSample(0, 0, b"r" * 32, Prompt("Mend it."), rollout_spec=bytes(range(256))),
}


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def session() -> AsyncIterator[PostgresSession]:
    async with postgres_server() as server:
        await migrate(server.address, SCHEMA, MIGRATIONS)
        async with await connect_pool(server.address, schema=SCHEMA) as pool:
            yield PostgresSession(pool, QUERIES)


async def stored(session: PostgresSession, sample: RenderedSample) -> str:
    """As it comes from the scheduler; returns the id of its set."""
    sets, staging_id = PostgresSampleSets(session), str(uuid4())
    sent = SAMPLE.to_proto(sample).SerializeToString()
    await sets.stage(staging_id, [sample_from_proto(sample_pb2.Sample.FromString(sent))])
    return (await sets.commit(staging_id, 1)).sample_set_id


def work_of(sample: WireSample) -> bytes:
    work = work_messages_pb2.WorkSample(sample=7)
    fill_work(work, sample)
    return work.SerializeToString()


@pytest.mark.parametrize("kind", KINDS)
async def test_sample_is_the_same_message(session: PostgresSession, kind: str) -> None:
    sample_set_id = await stored(session, KINDS[kind])
    found = await PostgresSampleMessages(session).read(sample_set_id, [0])
    assert work_of(found[0]) == work_of(AskedSample.of(KINDS[kind]))
