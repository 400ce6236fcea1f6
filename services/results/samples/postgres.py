"""Sample sets in Postgres. A set is staged under its own id: a commit writes one row and no sample."""

from collections.abc import Mapping, Sequence
from datetime import timedelta
from hashlib import sha256
from typing import Any

import asyncpg
import orjson

from proctor.v1 import sample_pb2
from proctor.values.names.project import declared_or_none
from proctor.values.sample import ChatMessage, Prompt
from services.common.postgres import PostgresSession, PostgresTransaction
from services.results.samples.errors import (
    SampleSetCommitted,
    SampleSetIncomplete,
    SampleSetNotFound,
    UnstorableSamples,
)
from services.results.samples.kept_targets import KeptTargets
from services.results.samples.sample import SampleSet, StoredSample
from services.results.scoring.score import ScoringTarget

SETS_AT_A_TIME = 100
# Short statements: no locks are held long, and vacuum can follow.
SAMPLES_AT_A_TIME = 5000


class PostgresSampleSets:
    """`kept_targets`: shared by the stores of the service's own work. Those that serve users have none: only
    Postgres knows what a user may read.
    """

    def __init__(self, session: PostgresSession, kept_targets: KeptTargets | None = None) -> None:
        self._session = session
        self._kept_targets = kept_targets or KeptTargets(max_bytes=0)

    async def stage(self, staging_id: str, samples: Sequence[StoredSample]) -> None:
        columns, rows = _without_defaults([_row(staging_id, sample) for sample in samples])

        async def stage(transaction: PostgresTransaction) -> None:
            set_row = await transaction.fetchrow("stage_sample_set", sample_set_id=staging_id)
            assert set_row is not None
            if not set_row["is_staged"]:
                raise SampleSetCommitted(sample_set_id=staging_id)
            await transaction.connection.copy_records_to_table("samples", columns=columns, records=rows)

        async def stage_again(transaction: PostgresTransaction) -> None:
            # The lock first: a call beside this one may be about to store the same samples.
            await transaction.fetchrow("stage_sample_set", sample_set_id=staging_id)
            await transaction.execute(
                "unstage_samples", sample_set_id=staging_id, positions=[one.position for one in samples]
            )
            await stage(transaction)

        try:
            try:
                await self._session.run(stage)
            except asyncpg.UniqueViolationError:
                # COPY knows no conflict: what a repeated chunk replaces has to be deleted before.
                await self._session.run(stage_again)
        except asyncpg.CharacterNotInRepertoireError as error:
            raise UnstorableSamples(position=samples[0].position) from error
        self._kept_targets.keep(staging_id, [(sample.position, sample.target) for sample in samples])

    async def commit(
        self, staging_id: str, sample_count: int, project_id: int = 0, content_hash: bytes = b""
    ) -> SampleSet:
        async def commit(transaction: PostgresTransaction) -> SampleSet:
            committed = await _lock(transaction, staging_id)
            if committed is None:
                digest = await _measured(transaction, staging_id, sample_count)
                committed = await _commit(
                    transaction, SampleSet(staging_id, digest), _content_key(project_id, content_hash)
                )
            return committed

        return await self._session.run(commit)

    async def read(self, sample_set_id: str, positions: Sequence[int]) -> Mapping[int, StoredSample]:
        rows = await self._session.fetch("list_samples", sample_set_id=sample_set_id, positions=positions)
        if positions and not rows:
            raise SampleSetNotFound(sample_set_id=sample_set_id)
        return {row["position"]: sample_from_row(row) for row in rows}

    async def weights(self, sample_set_id: str, positions: Sequence[int]) -> Mapping[int, int]:
        rows = await self._session.fetch("weigh_samples", sample_set_id=sample_set_id, positions=positions)
        return {row["position"]: row["bytes"] for row in rows}

    async def targets(self, sample_set_id: str, positions: Sequence[int]) -> Mapping[int, ScoringTarget]:
        found = self._kept_targets.find(sample_set_id, positions)
        if missing := [position for position in positions if position not in found]:
            rows = await self._session.fetch("list_targets", sample_set_id=sample_set_id, positions=missing)
            read = [(position, _target(target)) for position, *target in rows]
            self._kept_targets.keep(sample_set_id, read)
            found.update(read)
        return found

    async def docs(self, sample_set_id: str, positions: Sequence[int]) -> Mapping[int, str]:
        rows = await self._session.fetch("list_docs", sample_set_id=sample_set_id, positions=positions)
        return {row["position"]: row["doc_json"] for row in rows}

    async def clusters(self, sample_set_id: str) -> Mapping[int, str]:
        rows = await self._session.fetch("list_clusters", sample_set_id=sample_set_id)
        return {row["position"]: row["cluster"] for row in rows}

    async def label_count(self, sample_set_id: str) -> int:
        return await self._session.fetchval("read_label_count", sample_set_id=sample_set_id) or 0

    async def delete_staged(self, kept_for: timedelta) -> int:
        deleted: int = await self._session.fetchval(
            "delete_staged_sets", staged_seconds=kept_for.total_seconds()
        )
        await self._delete_samples_of_deleted_sets()
        return deleted

    async def _delete_samples_of_deleted_sets(self) -> None:
        """Completes earlier garbage collections that were killed, too."""
        for row in await self._session.fetch("list_deleted_sets", limit=SETS_AT_A_TIME):
            sample_set_id: str = row["sample_set_id"]
            after: int | None = -1
            while after is not None:
                after = await self._session.fetchval(
                    "delete_set_samples",
                    sample_set_id=sample_set_id,
                    after_position=after,
                    limit=SAMPLES_AT_A_TIME,
                )
            await self._session.execute("delete_deleted_set", sample_set_id=sample_set_id)


async def _lock(transaction: PostgresTransaction, sample_set_id: str) -> SampleSet | None:
    """The committed set that an id stands for; None while it is staged."""
    row = await transaction.fetchrow("lock_sample_set", sample_set_id=sample_set_id)
    if row is None:
        raise SampleSetNotFound(sample_set_id=sample_set_id)
    if row["same_as"] is None and row["digest"] is None:
        return None
    if row["same_as"] is None:
        await transaction.execute("touch_sample_set", sample_set_id=sample_set_id)
        return SampleSet(sample_set_id, row["digest"])
    kept = await transaction.fetchrow("touch_sample_set", sample_set_id=row["same_as"])
    assert kept is not None
    return SampleSet(row["same_as"], kept["digest"])


def _content_key(project_id: int, content_hash: bytes) -> bytes | None:
    """Sets of equal keys become one, within a declared project or outside of all.

    The hash is the sender's: it has the samples in its hands, and to read them again would cost as much as
    to store them. Without one there is no key.
    """
    owner = declared_or_none(project_id).to_bytes(8)
    return sha256(owner + content_hash).digest() if content_hash else None


async def _measured(transaction: PostgresTransaction, staging_id: str, sample_count: int) -> bytes:
    """The digest of a staged set that is complete."""
    staged = await transaction.fetchrow("measure_samples", sample_set_id=staging_id)
    assert staged is not None
    if not staged["staged"] == staged["end_position"] == sample_count:
        raise SampleSetIncomplete(
            sample_set_id=staging_id, staged=staged["staged"], sample_count=sample_count
        )
    digest: bytes = staged["digest"]
    return digest


async def _commit(
    transaction: PostgresTransaction, staged: SampleSet, content_key: bytes | None
) -> SampleSet:
    same = None
    if content_key is not None:
        await transaction.execute("lock_content_key", content_key=content_key)
        same = await transaction.fetchrow("touch_content_key", content_key=content_key)
    staging_id = staged.sample_set_id
    if same is None:
        await transaction.execute(
            "commit_sample_set", sample_set_id=staging_id, digest=staged.digest, content_key=content_key
        )
        return staged
    await transaction.execute("alias_sample_set", sample_set_id=staging_id, same_as=same["sample_set_id"])
    await transaction.execute("delete_samples", sample_set_id=staging_id)
    return SampleSet(same["sample_set_id"], staged.digest)


_TARGET = (
    "choices",
    "target_choice",
    "target_texts",
    "right_choices",
    "wrong_texts",
    "choice_texts",
    "choice_ending",
)
_COLUMNS = (
    "sample_set_id",
    "position",
    "doc_id",
    "digest",
    "prompt_text",
    "prompt_messages",
    *_TARGET,
    "cluster",
    "doc_json",
    "row_id",
    "params_json",
    "code_check",
    "rollout_spec",
)
# Postgres writes what is empty in these by itself.
_EMPTY_BY_DEFAULT = frozenset(
    {
        "prompt_messages",
        "choices",
        "target_texts",
        "cluster",
        "right_choices",
        "wrong_texts",
        "choice_texts",
        "choice_ending",
        "doc_json",
        "row_id",
        "params_json",
        "code_check",
        "rollout_spec",
    }
)


def _row(sample_set_id: str, sample: StoredSample) -> tuple[object, ...]:
    """In the order of `_COLUMNS`."""
    messages = [_message_row(message) for message in sample.prompt.messages]
    target = sample.target
    return (
        sample_set_id,
        sample.position,
        sample.doc_id,
        sample.digest,
        sample.prompt.text,
        orjson.dumps(messages).decode() if messages else None,
        target.choices,
        target.choice,
        target.texts,
        target.right_choices,
        target.wrong_texts,
        target.choice_texts,
        target.choice_ending,
        sample.cluster,
        sample.doc_json,
        sample.row_id,
        sample.params_json,
        sample.code_check,
        sample.rollout_spec,
    )


def _without_defaults(
    rows: Sequence[tuple[object, ...]],
) -> tuple[Sequence[str], Sequence[tuple[object, ...]]]:
    """The columns that some row needs, and the rows in these.

    To send and read an empty list takes as long as to store a number.
    """
    used = [
        (name, values)
        for name, values in zip(_COLUMNS, zip(*rows, strict=True), strict=True)
        if name not in _EMPTY_BY_DEFAULT or any(values)
    ]
    return [name for name, _ in used], list(zip(*[values for _, values in used], strict=True))


def _message_row(message: ChatMessage) -> list[str]:
    """Two texts; a third where the turn has more than a role and a content."""
    return [message.role, message.content, *([message.fields_json] if message.fields_json else [])]


def sample_from_row(row: asyncpg.Record, doc_json: str = "") -> StoredSample:
    """`doc_json`: the row of the source, which only exports read."""
    messages = orjson.loads(row["prompt_messages"] or "[]")
    prompt = Prompt(row["prompt_text"], tuple(ChatMessage(*message) for message in messages))
    target = _target([row[name] for name in _TARGET])
    return StoredSample(
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


def _target(columns: Sequence[Any]) -> ScoringTarget:
    """By place: to find each column by its name takes as long again."""
    choices, choice, texts, right_choices, wrong_texts, choice_texts, choice_ending = columns
    return ScoringTarget(
        tuple(choices),
        choice,
        tuple(texts),
        tuple(right_choices),
        tuple(wrong_texts),
        tuple(choice_texts),
        choice_ending,
    )


class PostgresSampleMessages:
    """Reads samples directly as messages, without parsing them on their way to a worker."""

    def __init__(self, session: PostgresSession) -> None:
        self._session = session

    async def read(self, sample_set_id: str, positions: Sequence[int]) -> Mapping[int, sample_pb2.Sample]:
        rows = await self._session.fetch(
            "list_sample_messages", sample_set_id=sample_set_id, positions=positions
        )
        if positions and not rows:
            raise SampleSetNotFound(sample_set_id=sample_set_id)
        return {row["position"]: _message_from_row(row) for row in rows}


def _message_from_row(row: asyncpg.Record) -> sample_pb2.Sample:
    """A sample without target and digest, which no worker may see."""
    sample = sample_pb2.Sample(
        position=row["position"],
        doc_id=row["doc_id"],
        choices=row["choices"],
        cluster=row["cluster"],
        row_id=row["row_id"],
        params_json=row["params_json"],
        rollout_spec=row["rollout_spec"],
        choice_ending=row["choice_ending"],
    )
    if row["code_check"]:
        sample.code_check.ParseFromString(row["code_check"])
    prompt = sample.prompt
    if row["prompt_messages"] is None:
        prompt.text = row["prompt_text"]
    else:
        for role, content, *fields_json in orjson.loads(row["prompt_messages"]):
            prompt.messages.add(role=role, content=content, fields_json="".join(fields_json))
    return sample
