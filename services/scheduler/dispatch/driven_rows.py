"""Rows of the runs that are driven, read together: one query for all, however many drivers ask."""

import asyncio
from collections import Counter
from dataclasses import dataclass, field
from typing import NamedTuple

from proctor.values.run import RunId
from services.common.clock import Clock
from services.common.errors import RunNotFound
from services.scheduler.runs.lifecycle.ports import RunStore
from services.scheduler.runs.lifecycle.run import Run

# A driver asks at each of its steps, which are a second apart at most.
_ASKED_SECONDS = 3.0


class _Row(NamedTuple):
    run: Run
    read_at: float


@dataclass
class DrivenRows:
    """A row is at most `max_age_seconds` old when it is asked for, and never older than one given before."""

    runs: RunStore
    clock: Clock
    max_age_seconds: float
    _rows: dict[RunId, _Row] = field(default_factory=dict)
    _asked_at: dict[RunId, float] = field(default_factory=dict)
    _waiting: Counter[RunId] = field(default_factory=Counter)
    _reading: asyncio.Lock = field(default_factory=asyncio.Lock)

    async def read(self, run_id: RunId) -> Run:
        """Raises `RunNotFound`."""
        asked_at = self._asked_at[run_id] = self.clock.monotonic()
        if not self._is_read_since(run_id, asked_at - self.max_age_seconds):
            self._waiting[run_id] += 1
            try:
                async with self._reading:
                    # Another driver may have read it meanwhile: a slow query serves all who wait for it.
                    if not self._is_read_since(run_id, asked_at):
                        await self._read_all()
            finally:
                self._waiting[run_id] -= 1
        if run_id not in self._rows:
            raise RunNotFound(run_id=run_id)
        return self._rows[run_id].run

    async def read_now(self, run_id: RunId) -> Run:
        """The row as it is after the caller has changed it. Raises `RunNotFound`."""
        asked_at = self.clock.monotonic()
        run = await self.runs.get(run_id)
        self._keep(run, asked_at)
        return run

    async def _read_all(self) -> None:
        # The time before the read: a row is at least as young as this says.
        asked_at = self.clock.monotonic()
        self._waiting = +self._waiting
        self._asked_at = {
            run_id: at
            for run_id, at in self._asked_at.items()
            if at >= asked_at - _ASKED_SECONDS or run_id in self._waiting
        }
        found = await self.runs.among(tuple(self._asked_at))
        self._rows = {run_id: row for run_id, row in self._rows.items() if row.read_at >= asked_at}
        for run in found:
            self._keep(run, asked_at)

    def _keep(self, run: Run, asked_at: float) -> None:
        known = self._rows.get(run.run_id)
        if known is None or known.read_at <= asked_at:
            self._rows[run.run_id] = _Row(run, asked_at)

    def _is_read_since(self, run_id: RunId, moment: float) -> bool:
        row = self._rows.get(run_id)
        return row is not None and row.read_at >= moment
