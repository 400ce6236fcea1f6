"""Lists what several runs answered to the same rows, page by page, for a bounded time per call."""

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from proctor.values.comparison import MAX_COMPARED, MIN_COMPARED
from services.common.checked_fields import checked_number, invalid_field
from services.common.clock import Clock
from services.common.requests.page_tokens import key_token, read_key_token
from services.results.answers.marks import listed_outcome
from services.results.answers.outcome_filter import (
    NO_FILTER,
    SCAN_SECONDS,
    WINDOW_BYTES,
    WINDOW_GROWTH,
    OutcomeFilter,
    OutcomeMatch,
    check_filter,
    score_keys,
)
from services.results.answers.ports import AnswerStore
from services.results.answers.postgres import PostgresSameSamples
from services.results.answers.side_by_side import (
    MAX_SAME,
    PairedRow,
    ShownRow,
    Side,
    crowded_digests,
    differ,
    pair_samples,
)
from services.results.comparison.errors import NoCommonSamples
from services.results.outcomes.outcome import ListedOutcome
from services.results.outcomes.page_bytes import BYTES_OF_NUMBERS, fitting_count
from services.results.runs.ports import RunRecordStore
from services.results.runs.run_plan import RunRecord
from services.results.samples.ports import SampleSetStore

# The name of the list in its page tokens.
_LIST = "side by side"

MAX_PER_PAGE = 200
DEFAULT_PER_PAGE = 20
FIRST_WINDOW = 64
MAX_WINDOW = 4096


@dataclass(frozen=True, slots=True)
class SideBySideQuery:
    """A page of the rows of some runs, of one task where they have several."""

    run_ids: Sequence[str]
    task: str = ""
    is_only_differing: bool = False
    filter: OutcomeFilter = NO_FILTER
    page_size: int = 0
    page_token: str = ""


@dataclass(frozen=True, slots=True)
class SideBySidePage:
    """No token on the last page."""

    rows: Sequence[ShownRow]
    next_page_token: str = ""


@dataclass(frozen=True, slots=True)
class _Wanted:
    """`matches`: the filter of each run; None without one."""

    sides: Sequence[Side]
    matches: Sequence[OutcomeMatch] | None
    is_only_differing: bool


@dataclass(frozen=True, slots=True)
class ListSideBySide:
    records: RunRecordStore
    sample_sets: SampleSetStore
    answers: AnswerStore
    same_samples: PostgresSameSamples
    clock: Clock

    async def list_page(self, query: SideBySideQuery) -> SideBySidePage:
        _check(query)
        limit = checked_number("page_size", query.page_size, maximum=MAX_PER_PAGE, default=DEFAULT_PER_PAGE)
        records = [await self.records.get(run_id) for run_id in query.run_ids]
        sides = [_side(record, query.task) for record in records]
        position, _ = read_key_token(_LIST, query.page_token, first=(-1, 0))
        if position < 0:
            await self._check_common(sides)
        wanted = _Wanted(sides, _matches(sides, query.filter), query.is_only_differing)
        rows, behind = await self._find(wanted, position + 1, limit)
        fitting = rows[: fitting_count(await self._weights(sides, rows))]
        if len(fitting) < len(rows):
            behind = fitting[-1].first
        is_last = behind + 1 >= sides[0].task.sample_count
        shown = await self._shown(sides, fitting)
        return SideBySidePage(shown, "" if is_last else key_token(_LIST, (behind, 0)))

    async def _find(self, wanted: _Wanted, start: int, limit: int) -> tuple[list[PairedRow], int]:
        """Rows from a position on, and the last position that was looked at."""
        until = self.clock.monotonic() + SCAN_SECONDS
        found: list[PairedRow] = []
        size, end = FIRST_WINDOW, wanted.sides[0].task.sample_count
        while start < end:
            window = range(start, min(start + size, end))
            rows = await self._paired(wanted, window)
            rows, judged = await self._matching(wanted, rows)
            found += rows
            if len(found) >= limit:
                return found[:limit], found[limit - 1].first
            # Long texts: go on behind the last row that was looked at.
            start = window.stop if judged is None else judged + 1
            if self.clock.monotonic() >= until:
                break
            size = min(size * WINDOW_GROWTH, MAX_WINDOW) if judged is None else max(1, size // WINDOW_GROWTH)
        return found, start - 1

    async def _paired(self, wanted: _Wanted, window: range) -> list[PairedRow]:
        """Rows of the first run that another has as well, and that some run has an outcome for."""
        first = wanted.sides[0]
        partners = await asyncio.gather(*(self._pairs(first, side, window) for side in wanted.sides[1:]))
        rows = [(at, *(pairs.get(at) for pairs in partners)) for at in window]
        rows = [row for row in rows if any(other is not None for other in row[1:])]
        digests = await asyncio.gather(
            *(
                self.answers.digests(side.plan.run_id, _numbers(side, [row[index] for row in rows]))
                for index, side in enumerate(wanted.sides)
            )
        )
        found = []
        for row in rows:
            numbers = [
                None if at is None else side.sample(at) for side, at in zip(wanted.sides, row, strict=True)
            ]
            is_any = any(number in found for found, number in zip(digests, numbers, strict=True))
            is_differing = differ(
                [
                    found.get(number)
                    for found, number in zip(digests, numbers, strict=True)
                    if number is not None
                ]
            )
            if is_any and (is_differing or not wanted.is_only_differing):
                found.append(PairedRow(row, is_differing))
        return found

    async def _pairs(self, first: Side, other: Side, window: range) -> Mapping[int, int]:
        """Positions in the other run's set by those in the first one's."""
        ids = first.task.sample_set_id, other.task.sample_set_id
        if ids[0] == ids[1]:
            return {at: at for at in window}
        beside = await self.same_samples.at_same_position(*ids, window)
        pairs = {at: at for at, there in beside.items() if there.is_same_row}
        digests = sorted({there.digest for there in beside.values() if not there.is_same_row})
        if digests:
            of_sets = [
                await self.same_samples.by_digest(sample_set_id, digests, MAX_SAME + 1)
                for sample_set_id in ids
            ]
            crowded = crowded_digests(*of_sets)
            pairs |= pair_samples(
                *([one for one in of_set if one.digest not in crowded] for of_set in of_sets)
            )
            pairs |= {
                at: at for at, there in beside.items() if there.is_same_sample and there.digest in crowded
            }
        return pairs

    async def _matching(self, wanted: _Wanted, rows: list[PairedRow]) -> tuple[list[PairedRow], int | None]:
        """Rows in which an answer matches, and the last row examined if the search stopped early."""
        if wanted.matches is None or not rows:
            return rows, None
        matching: set[int] = set()
        judged = len(rows)
        for index, (side, match) in enumerate(zip(wanted.sides, wanted.matches, strict=True)):
            asked = [
                (at, (side.sample(position), 0))
                for at, row in enumerate(rows[:judged])
                if (position := row.positions[index]) is not None
            ]
            keys = [key for _, key in asked]
            found = await self.answers.match(side.plan.run_id, keys, match, WINDOW_BYTES)
            matching |= {asked[which][0] for which in found.indexes}
            if found.judged < len(asked):
                judged = asked[found.judged][0]
        kept = [row for at, row in enumerate(rows[:judged]) if at in matching]
        return kept, None if judged == len(rows) else rows[judged].first - 1

    async def _shown(self, sides: Sequence[Side], rows: Sequence[PairedRow]) -> list[ShownRow]:
        first = sides[0]
        positions = [row.first for row in rows]
        samples = await self.sample_sets.read(first.task.sample_set_id, positions) if rows else {}
        answers = [await self._listed(side, index, rows) for index, side in enumerate(sides)]
        shown = []
        for row in rows:
            beside = [
                None if at is None else listed.get(at)
                for listed, at in zip(answers, row.positions, strict=True)
            ]
            shown.append(ShownRow(first.task, samples[row.first], beside, row.is_differing))
        return shown

    async def _listed(self, side: Side, index: int, rows: Sequence[PairedRow]) -> Mapping[int, ListedOutcome]:
        """Outcomes by position in the run's own set."""
        positions = [at for row in rows if (at := row.positions[index]) is not None]
        keys = [(side.sample(at), 0) for at in positions]
        scored = await self.answers.read(side.plan.run_id, keys)
        marks = await self.answers.marks(side.plan.run_id, keys)
        samples = await self.sample_sets.read(side.task.sample_set_id, positions) if positions else {}
        found = {}
        for one in scored:
            at = one.outcome.sample - side.task.first_sample
            found[at] = listed_outcome(side.task, samples[at], one, marks)
        return found

    async def _weights(self, sides: Sequence[Side], rows: Sequence[PairedRow]) -> list[int]:
        """Bytes of each row with its answers, nearly."""
        first = sides[0].task.sample_set_id
        asked = await self.sample_sets.weights(first, [row.first for row in rows])
        totals = [BYTES_OF_NUMBERS * len(sides) + asked.get(row.first, 0) for row in rows]
        for index, side in enumerate(sides):
            positions = [row.positions[index] for row in rows]
            weights = await self.answers.weights(
                side.plan.run_id, [(number, 0) for number in _numbers(side, positions)]
            )
            for which, at in enumerate(positions):
                totals[which] += 0 if at is None else weights.get((side.sample(at), 0), 0)
        return totals

    async def _check_common(self, sides: Sequence[Side]) -> None:
        first = sides[0]
        for other in sides[1:]:
            ids = first.task.sample_set_id, other.task.sample_set_id
            if ids[0] != ids[1] and not await self.same_samples.has_any(*ids):
                raise NoCommonSamples(first=first.plan.run_id, second=other.plan.run_id)


def _numbers(side: Side, positions: Sequence[int | None]) -> list[int]:
    """Numbers in the run of the positions that there are."""
    return [side.sample(at) for at in positions if at is not None]


def _check(query: SideBySideQuery) -> None:
    runs = query.run_ids
    if not MIN_COMPARED <= len(runs) <= MAX_COMPARED or len(set(runs)) < len(runs):
        raise invalid_field("run_ids", f"must be {MIN_COMPARED} to {MAX_COMPARED} different runs")
    check_filter(query.filter)


def _side(record: RunRecord, task: str) -> Side:
    plan = record.plan
    names = [planned.task for planned in plan.tasks]
    if task in names:
        return Side(plan, names.index(task))
    if not task and len(names) == 1:
        return Side(plan, 0)
    raise invalid_field("task", f"must be one of run {plan.run_id}: {', '.join(names)}")


def _matches(sides: Sequence[Side], wanted: OutcomeFilter) -> Sequence[OutcomeMatch] | None:
    if not wanted.is_set:
        return None
    keys = score_keys([side.plan for side in sides], wanted)
    return [OutcomeMatch(wanted, of_run) for of_run in keys]
