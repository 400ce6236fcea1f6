"""Sample sets in Postgres. A set is staged under its own id: a commit writes one row and no sample."""

from collections.abc import Mapping, Sequence
from datetime import datetime

import asyncpg
import orjson

from proctor.v1 import sample_pb2
from services.results.postgres_session import PostgresSession, PostgresTransaction
from services.results.samples.errors import (
    SampleSetCommitted,
    SampleSetIncomplete,
    SampleSetNotFound,
    UnstorableText,
)
from services.results.samples.sample import ChatMessage, Prompt, Sample, SampleSet
from services.results.scoring.answer import Target

SETS_AT_A_TIME = 100
SAMPLES_AT_A_TIME = 5000
SAMPLE_COLUMNS = (
    "set_id",
    "position",
    "doc_id",
    "digest",
    "prompt_text",
    "prompt_messages",
    "choices",
    "target_choice",
    "target_texts",
    "cluster",
    "right_choices",
    "wrong_texts",
    "choice_texts",
    "doc_json",
    "row_id",
    "params_json",
)


class PostgresSampleSets:
    def __init__(self, session: PostgresSession) -> None:
        self._session = session

    async def stage(self, staging_id: str, samples: Sequence[Sample]) -> None:
        async def once() -> None:
            async with self._session.transaction() as transaction:
                await transaction.execute("stage_sample_set", staging_id)
                if await _lock(transaction, staging_id) is not None:
                    raise SampleSetCommitted(sample_set_id=staging_id)
                await transaction.execute("unstage_samples", staging_id, [one.position for one in samples])
                await transaction.connection.copy_records_to_table(
                    "samples", columns=SAMPLE_COLUMNS, records=[_row(staging_id, one) for one in samples]
                )

        try:
            await self._session.repeat(once)
        except asyncpg.CharacterNotInRepertoireError as error:
            raise UnstorableText(position=samples[0].position) from error

    async def commit(self, staging_id: str, sample_count: int) -> SampleSet:
        async def once() -> SampleSet:
            async with self._session.transaction() as transaction:
                committed = await _lock(transaction, staging_id)
                return committed or await _commit(transaction, staging_id, sample_count)

        return await self._session.repeat(once)

    async def read(self, set_id: str, positions: Sequence[int]) -> Mapping[int, Sample]:
        rows = await self._session.fetch("read_samples", set_id, positions)
        if positions and not rows:
            raise SampleSetNotFound(sample_set_id=set_id)
        return {row["position"]: sample_from_row(row) for row in rows}

    async def weights(self, set_id: str, positions: Sequence[int]) -> Mapping[int, int]:
        rows = await self._session.fetch("weigh_samples", set_id, positions)
        return {row["position"]: row["bytes"] for row in rows}

    async def targets(self, set_id: str, positions: Sequence[int]) -> Mapping[int, Target]:
        rows = await self._session.fetch("read_targets", set_id, positions)
        return {row["position"]: _target(row) for row in rows}

    async def clusters(self, set_id: str) -> Mapping[int, str]:
        rows = await self._session.fetch("read_clusters", set_id)
        return {row["position"]: row["cluster"] for row in rows}

    async def label_count(self, set_id: str) -> int:
        row = await self._session.fetchrow("read_label_count", set_id)
        return 0 if row is None else int(row["labels"])

    async def sweep(self, touched_before: datetime) -> int:
        row = await self._session.fetchrow("sweep_sample_sets", touched_before)
        await self._delete_dropped_samples()
        return 0 if row is None else int(row["swept"])

    async def sweep_unused(self, touched_before: datetime) -> int:
        unused = await self._session.fetch("list_unused_sample_sets", touched_before, SETS_AT_A_TIME)
        swept = [await self._drop_unused(row["set_id"], touched_before) for row in unused]
        await self._delete_dropped_samples()
        return sum(swept)

    async def _drop_unused(self, set_id: str, touched_before: datetime) -> bool:
        """The lock first: what was opened with the set before is seen by the statement behind it."""

        async def once() -> bool:
            async with self._session.transaction() as transaction:
                if await transaction.fetchrow("hold_untouched_sample_set", set_id, touched_before) is None:
                    return False
                return await transaction.fetchrow("drop_unused_sample_set", set_id) is not None

        return await self._session.repeat(once)

    async def _delete_dropped_samples(self) -> None:
        """Also what a kill left of an earlier sweep."""
        for row in await self._session.fetch("list_dropped_sample_sets", SETS_AT_A_TIME):
            set_id: str = row["set_id"]
            after: int | None = -1
            while after is not None:
                last = await self._session.fetchrow(
                    "delete_dropped_samples", set_id, after, SAMPLES_AT_A_TIME
                )
                after = None if last is None else last["position"]
            await self._session.fetch("forget_dropped_sample_set", set_id)


async def _lock(transaction: PostgresTransaction, set_id: str) -> SampleSet | None:
    """The committed set that an id stands for; None while it is staged."""
    row = await transaction.fetchrow("lock_sample_set", set_id)
    if row is None:
        raise SampleSetNotFound(sample_set_id=set_id)
    if row["same_as"] is None and row["digest"] is None:
        return None
    if row["same_as"] is None:
        await transaction.execute("touch_sample_set", set_id)
        return SampleSet(set_id, row["digest"])
    kept = await transaction.fetchrow("touch_sample_set", row["same_as"])
    assert kept is not None
    return SampleSet(row["same_as"], kept["digest"])


async def _commit(transaction: PostgresTransaction, staging_id: str, sample_count: int) -> SampleSet:
    staged = await transaction.fetchrow("measure_samples", staging_id)
    assert staged is not None
    if not staged["staged"] == staged["end_position"] == sample_count:
        raise SampleSetIncomplete(
            sample_set_id=staging_id, staged=staged["staged"], sample_count=sample_count
        )
    digest: bytes = staged["digest"]
    await transaction.execute("lock_digest", digest)
    same = await transaction.fetchrow("touch_sample_set_of_digest", digest)
    if same is None:
        await transaction.execute("commit_sample_set", staging_id, digest)
        return SampleSet(staging_id, digest)
    await transaction.execute("alias_sample_set", staging_id, same["set_id"])
    await transaction.execute("drop_samples", staging_id)
    return SampleSet(same["set_id"], digest)


def _row(set_id: str, sample: Sample) -> tuple[object, ...]:
    messages = [_message_row(message) for message in sample.prompt.messages]
    return (
        set_id,
        sample.position,
        sample.doc_id,
        sample.digest,
        sample.prompt.text,
        orjson.dumps(messages).decode() if messages else None,
        sample.target.choices,
        sample.target.choice,
        sample.target.texts,
        sample.cluster,
        sample.target.right_choices,
        sample.target.wrong_texts,
        sample.target.choice_texts,
        sample.doc_json,
        sample.row_id,
        sample.params_json,
    )


def _message_row(message: ChatMessage) -> list[str]:
    """Two texts; a third where the turn has more than a role and a content."""
    return [message.role, message.content, *([message.fields_json] if message.fields_json else [])]


def sample_from_row(row: asyncpg.Record, choices: str = "choices", doc_json: str = "") -> Sample:
    """`choices` is the column of the continuations; only exports read the row that it was made from."""
    messages = orjson.loads(row["prompt_messages"] or "[]")
    prompt = Prompt(row["prompt_text"], tuple(ChatMessage(*message) for message in messages))
    target = _target(row, choices)
    return Sample(
        row["position"],
        row["doc_id"],
        row["digest"],
        prompt,
        target,
        row["cluster"],
        doc_json,
        row["row_id"],
        row["params_json"],
    )


def _target(row: asyncpg.Record, choices: str = "choices") -> Target:
    return Target(
        tuple(row[choices]),
        row["target_choice"],
        tuple(row["target_texts"]),
        tuple(row["right_choices"]),
        tuple(row["wrong_texts"]),
        tuple(row["choice_texts"]),
    )


class PostgresAskedSamples:
    def __init__(self, session: PostgresSession) -> None:
        self._session = session

    async def read(self, set_id: str, positions: Sequence[int]) -> Mapping[int, sample_pb2.Sample]:
        rows = await self._session.fetch("read_asked_samples", set_id, positions)
        if positions and not rows:
            raise SampleSetNotFound(sample_set_id=set_id)
        return {row["position"]: _asked_from_row(row) for row in rows}


def _asked_from_row(row: asyncpg.Record) -> sample_pb2.Sample:
    """Without target and digest, which no worker may see."""
    sample = sample_pb2.Sample(
        position=row["position"],
        doc_id=row["doc_id"],
        choices=row["choices"],
        cluster=row["cluster"],
        row_id=row["row_id"],
        params_json=row["params_json"],
    )
    prompt = sample.prompt
    if row["prompt_messages"] is None:
        prompt.text = row["prompt_text"]
    else:
        for role, content, *fields_json in orjson.loads(row["prompt_messages"]):
            prompt.messages.add(role=role, content=content, fields_json="".join(fields_json))
    return sample
