"""Export lines made by Postgres, and resumption marks of the files of closed runs."""

import asyncio
from collections import deque
from collections.abc import AsyncGenerator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field

import asyncpg
import orjson

from services.common.postgres import PostgresSession
from services.results.export.errors import RunChanged
from services.results.export.lines import FileMark, LineChunk, LineKind, MarkedFile, WantedLines
from services.results.outcomes.outcome import OutcomeKey
from services.results.runs.run_plan import PlannedTask


class PostgresExportMarks:
    def __init__(self, session: PostgresSession) -> None:
        self._session = session

    async def end(self, file: MarkedFile) -> FileMark | None:
        row = await self._session.fetchrow("read_export_end", file.run_id, file.epoch, file.tag)
        return None if row is None else _mark(row, is_end=True)

    async def last(self, file: MarkedFile, up_to_byte: int | None) -> FileMark:
        row = await self._session.fetchrow(
            "read_last_export_mark", file.run_id, file.epoch, file.tag, up_to_byte
        )
        return FileMark() if row is None else _mark(row)

    async def add(self, file: MarkedFile, mark: FileMark) -> None:
        await self._session.fetchrow(
            "add_export_mark", file.run_id, file.epoch, file.tag, mark.first_byte, *mark.after, mark.is_end
        )


def _mark(row: asyncpg.Record, *, is_end: bool = False) -> FileMark:
    return FileMark(row["first_byte"], (row["sample"], row["rollout"]), is_end)


# One is made while the other is sent.
IN_FLIGHT = 2
# The first bytes come soon, then chunks are as large as they are cheap to hold.
FIRST_SAMPLES = 64
MOST_SAMPLES = 8192
MOST_GROWTH = 8
CHUNK_BYTES = 1024 * 1024
# Where texts are suddenly much longer than those before.
MOST_CHUNK_BYTES = 4 * CHUNK_BYTES


@dataclass(slots=True)
class _Window:
    """Outcomes behind a key, before a sample, on their way."""

    after: OutcomeKey
    end: int
    row: "asyncio.Task[asyncpg.Record | None]"


@dataclass(slots=True)
class _Reading:
    """How far one task of a run was asked for. `samples`: as many as the next window has."""

    wanted: WantedLines
    task: PlannedTask
    asked_to: OutcomeKey
    samples: int = FIRST_SAMPLES
    ahead: deque[_Window] = field(default_factory=deque)

    @property
    def is_asked(self) -> bool:
        return self.asked_to[0] >= self.task.end_sample

    def learn(self, samples: int, size_bytes: int) -> None:
        """The next windows are as large as the last one suggests."""
        fitting = CHUNK_BYTES * max(1, samples) // max(1, size_bytes)
        self.samples = max(1, min(fitting, self.samples * MOST_GROWTH, MOST_SAMPLES))


class PostgresLines:
    """Pages by key and no cursor: a slow reader keeps no transaction open."""

    def __init__(self, session: PostgresSession) -> None:
        self._session = session

    async def chunks(self, wanted: WantedLines, after: OutcomeKey) -> AsyncGenerator[LineChunk]:
        """In order, what comes after a key. Raises RunChanged as soon as another epoch is open."""
        task = wanted.record.plan.tasks[wanted.task_index]
        reading = _Reading(wanted, task, max(after, (task.first_sample, -1)))
        try:
            while True:
                self._ask_ahead(reading)
                if not reading.ahead:
                    return
                chunk = await self._next(reading)
                if chunk is not None:
                    yield chunk
        finally:
            await _give_up(reading.ahead)

    def _ask_ahead(self, reading: _Reading) -> None:
        while len(reading.ahead) < IN_FLIGHT and not reading.is_asked:
            end = min(reading.asked_to[0] + reading.samples, reading.task.end_sample)
            reading.ahead.append(self._ask(reading, reading.asked_to, end))
            reading.asked_to = (end, -1)

    def _ask(self, reading: _Reading, after: OutcomeKey, end: int) -> _Window:
        name, rest = _query(reading.wanted, reading.task)
        plan = reading.wanted.record.plan
        asking = self._session.fetchrow(
            name,
            plan.run_id,
            reading.wanted.record.epoch,
            reading.task.sample_set_id,
            reading.task.first_sample,
            *after,
            end,
            MOST_CHUNK_BYTES,
            *rest,
        )
        return _Window(after, end, asyncio.create_task(asking, name=name))

    async def _next(self, reading: _Reading) -> LineChunk | None:
        """The first of the windows; what did not fit into one is asked for again before the next."""
        window = reading.ahead[0]
        row = await window.row
        reading.ahead.popleft()
        assert row is not None
        if row["epoch"] != reading.wanted.record.epoch:
            raise RunChanged(run_id=reading.wanted.record.plan.run_id)
        if row["lines"] is None:
            reading.learn(window.end - window.after[0], 0)
            return None
        last = (row["last_key"][0], row["last_key"][1])
        if row["is_cut"]:
            reading.ahead.appendleft(self._ask(reading, last, window.end))
        reading.learn(last[0] - window.after[0] + 1, len(row["lines"]))
        return LineChunk(row["lines"], last)


async def _give_up(windows: Sequence[_Window]) -> None:
    for window in windows:
        window.row.cancel()
    for window in windows:
        with suppress(asyncio.CancelledError, Exception):
            await window.row


def _query(wanted: WantedLines, task: PlannedTask) -> tuple[str, tuple[object, ...]]:
    """The name of the query, and its arguments behind those that all have."""
    plan, missing = wanted.record.plan, wanted.missing
    # Half of the id of the run and a number: the same whenever the file is made.
    ids = plan.run_id.replace("-", "")[:20]
    match wanted.kind:
        case LineKind.OUTCOME:
            delimiter = task.scoring.target_delimiter
            return "export_outcome_lines", (_json(task.task), delimiter)
        case LineKind.BATCH_OUTPUT:
            return "export_batch_output", (ids, _json(plan.facts.model))
        case LineKind.BATCH_ERROR:
            told = (_json(missing.code), _json(missing.message))
            return "export_batch_errors", (ids, *told)


def _json(text: str) -> str:
    return orjson.dumps(text).decode()
