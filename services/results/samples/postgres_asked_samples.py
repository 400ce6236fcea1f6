"""Samples that go on to a worker: rows become messages at once, as nobody looks into them on the way."""

from collections.abc import Mapping, Sequence

import asyncpg
import orjson

from proctor.v1 import sample_pb2
from services.results.errors import SampleSetNotFound
from services.results.postgres_session import PostgresSession


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
