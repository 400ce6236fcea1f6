"""Lists what is recorded of a run, sample by sample, with its prompt and target."""

import math
from bisect import bisect_right
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from proctor.values.outcome import OutcomeStatus
from services.common.checked_fields import checked_number
from services.common.clock import Clock
from services.common.requests.page_tokens import (
    MAX_NUMBER,
    key_token,
    read_key_token,
    read_page_token,
    write_page_token,
)
from services.results.answers.errors import TooManyToSort
from services.results.answers.marks import listed_outcome
from services.results.answers.outcome_filter import (
    NO_FILTER,
    SCAN_SECONDS,
    WINDOW_BYTES,
    WINDOW_GROWTH,
    OutcomeFilter,
    OutcomeMatch,
    OutcomeSort,
    SortValue,
    check_filter,
    score_keys,
    task_index,
)
from services.results.answers.ports import AnswerStore, KeyScan, SortedKey, SortedScan
from services.results.answers.show_verdicts import AnswerJudge, JudgedAnswer, ShowVerdicts
from services.results.answers.sorted_keys_cache import SortedKeysCache, cache_key, from_the_first
from services.results.outcomes.outcome import ListedOutcome, OutcomeKey, ScoredOutcome
from services.results.outcomes.page_bytes import BYTES_OF_NUMBERS, fitting_count
from services.results.outcomes.ports import OutcomePage, OutcomeStore
from services.results.runs.ports import RunRecordStore
from services.results.runs.run_plan import RunPlan, RunRecord
from services.results.samples.ports import SampleSetStore

# The name of the list in its page tokens.
_LIST = "outcomes"

MAX_PER_PAGE = 1000
DEFAULT_PER_PAGE = 100
# Where many match, one window makes the page; where few do, the next one is larger.
FIRST_WINDOW = 512
# Bounds one statement: the time limit is checked between statements.
MAX_WINDOW = 8192
# Read in about a second.
MAX_SORTED = 1_500_000
# Maximum bytes of the texts searched for one sorted page.
_SORTED_WINDOW_BYTES = 4 * WINDOW_BYTES


@dataclass(frozen=True, slots=True)
class ListedPage:
    """No token on the last page. `searched_samples`: those looked through, if more follow in their order.

    `verdicts`: of `judges`, where they are asked for, by answer.
    """

    outcomes: list[ListedOutcome]
    next_page_token: str = ""
    searched_samples: int = 0
    judges: Sequence[AnswerJudge] = ()
    verdicts: Mapping[OutcomeKey, JudgedAnswer] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class OutcomeQuery:
    """A page of a run's outcomes: of one task or status where given, and of what matches a filter.

    It begins at `first`, a sample and a rollout, unless a token says where or the page is sorted. `is_brief`:
    without the texts of answers. `includes_verdicts`: with those of its judges.
    """

    run_id: str
    page_size: int = 0
    page_token: str = ""
    task: str = ""
    status: OutcomeStatus | None = None
    filter: OutcomeFilter = NO_FILTER
    first: OutcomeKey = (0, 0)
    is_brief: bool = False
    sort: OutcomeSort | None = None
    includes_verdicts: bool = False


@dataclass(frozen=True, slots=True)
class KeyPage:
    """As `ListedPage`, of keys alone: outcomes that make one message with their samples."""

    keys: Sequence[OutcomeKey]
    next_page_token: str = ""
    searched_samples: int = 0


@dataclass(frozen=True, slots=True)
class ListOutcomes:
    records: RunRecordStore
    sample_sets: SampleSetStore
    outcomes: OutcomeStore
    answers: AnswerStore
    verdicts: ShowVerdicts
    cache: SortedKeysCache
    clock: Clock

    async def list_page(self, query: OutcomeQuery) -> ListedPage:
        record = await self.records.get(query.run_id)
        page = await self.list_keys(record, query)
        scored = await self.answers.read(query.run_id, page.keys, is_brief=query.is_brief)
        listed = await self._beside_samples(record.plan, scored)
        judges = await self.verdicts.judges(query.run_id) if query.includes_verdicts else ()
        verdicts = await self.verdicts.on(query.run_id, judges, [one.key[1:] for one in scored])
        return ListedPage(listed, page.next_page_token, page.searched_samples, judges, verdicts)

    async def list_keys(self, record: RunRecord, query: OutcomeQuery) -> KeyPage:
        """`record` is that of the run."""
        limit = checked_number("page_size", query.page_size, maximum=MAX_PER_PAGE, default=DEFAULT_PER_PAGE)
        check_filter(query.filter)
        for name, number in zip(("first_sample", "first_rollout"), query.first, strict=True):
            checked_number(name, number, maximum=MAX_NUMBER - 1, default=0)
        if query.sort:
            ranked, after = await self._sorted(record, query, query.sort, limit)
        else:
            found, last = await self._found(record.plan, _page(record.plan, query, limit), query.filter)
            ranked, after = [(0.0, key) for key in found], None if last is None else (0.0, last)
        keys = [key for _, key in ranked]
        fitting = keys if query.is_brief else await self._fitting(record.plan, keys)
        if len(fitting) < len(keys):
            after = ranked[len(fitting) - 1]
        token = "" if after is None else _token(query.sort, after)
        searched = 0 if after is None or query.sort else after[1][0] + 1
        return KeyPage(fitting, token, searched)

    async def _found(
        self, plan: RunPlan, page: OutcomePage, wanted: OutcomeFilter
    ) -> tuple[Sequence[OutcomeKey], OutcomeKey | None]:
        """Keys of the page, and the key after which the next page begins; None where there is none."""
        if not wanted.is_set:
            found = await self.outcomes.page(page)
            return found, found[-1] if len(found) == page.page_size else None
        [metrics] = score_keys([plan], wanted)
        scan = KeyScan(page.run_id, page.after, page.before_sample, page.page_size, wanted.mark)
        return await self._matching(scan, OutcomeMatch(wanted, metrics, page.status))

    async def _matching(
        self, scan: KeyScan, wanted: OutcomeMatch
    ) -> tuple[Sequence[OutcomeKey], OutcomeKey | None]:
        """Returns at most `scan.limit` keys; fewer, or no key at all, when the time is up."""
        until = self.clock.monotonic() + SCAN_SECONDS
        found: list[OutcomeKey] = []
        window = replace(scan, limit=FIRST_WINDOW)
        while True:
            keys = await self.answers.keys(window)
            if not keys:
                return found, None
            matched = await self.answers.match(scan.run_id, keys, wanted, WINDOW_BYTES)
            found += [keys[index] for index in matched.indexes]
            if len(found) >= scan.limit:
                return found[: scan.limit], found[scan.limit - 1]
            is_end = len(keys) < window.limit and matched.judged == len(keys)
            last = keys[matched.judged - 1]
            if is_end or self.clock.monotonic() >= until:
                return found, None if is_end else last
            window = replace(window, after=last, limit=_next_size(window.limit, matched.judged))

    async def _sorted(
        self, record: RunRecord, query: OutcomeQuery, sort: OutcomeSort, limit: int
    ) -> tuple[Sequence[SortedKey], SortedKey | None]:
        """The page in the order of a value, and the key after which the next page begins, as in `_found`.

        A filter by text is applied in this order too: one read of all values gives as many keys as one call
        can judge.
        """
        plan = record.plan
        samples = _samples(plan, query.task)
        if len(samples) * plan.rollouts > MAX_SORTED:
            raise TooManyToSort(run_id=plan.run_id, limit=MAX_SORTED)
        wanted = OutcomeMatch(query.filter, score_keys([plan], query.filter, sort)[0], query.status)
        # Of disagreements too all are read, and filtered in this order.
        is_matched = bool(query.filter.row_id or query.filter.text) or sort.value is SortValue.DISAGREEMENT
        size = MAX_WINDOW if is_matched else limit
        after = read_page_token(_list(sort), query.page_token, _sorted_key) if query.page_token else None
        scan = SortedScan(plan.run_id, samples, sort, after, size)
        ranked = await self._ranked(record, scan, wanted)
        if not is_matched:
            return ranked, ranked[-1] if len(ranked) == size else None
        keys = [key for _, key in ranked]
        matched = await self.answers.match(plan.run_id, keys, wanted, _SORTED_WINDOW_BYTES)
        found = [ranked[index] for index in matched.indexes]
        if len(found) > limit:
            return found[:limit], found[limit - 1]
        is_end = len(ranked) < size and matched.judged == len(ranked)
        return found, None if is_end else ranked[matched.judged - 1]

    async def _ranked(self, record: RunRecord, scan: SortedScan, wanted: OutcomeMatch) -> Sequence[SortedKey]:
        """The keys of a scan, of a frozen run from the beginning of the list, which is cached."""
        if scan.sort.value is SortValue.DISAGREEMENT:
            return await self._by_disagreement(scan)
        key = cache_key(record, scan, wanted)
        if key is None:
            return await self.answers.sorted_keys(scan, wanted)
        found = self.cache.page(key, scan)
        if found is None and scan.after is None:
            self.cache.keep(key, await self.answers.sorted_keys(from_the_first(scan), wanted))
            found = self.cache.page(key, scan)
        return await self.answers.sorted_keys(scan, wanted) if found is None else found

    async def _by_disagreement(self, scan: SortedScan) -> Sequence[SortedKey]:
        apart = await self.verdicts.disagreements(scan.run_id)
        sign = -1.0 if scan.sort.is_descending else 1.0
        ranked = sorted((sign * value, key) for key, value in apart.items() if key[0] in scan.samples)
        start = bisect_right(ranked, scan.after) if scan.after else 0
        return ranked[start : start + scan.limit]

    async def _fitting(self, plan: RunPlan, found: Sequence[OutcomeKey]) -> Sequence[OutcomeKey]:
        """The first outcomes that with their samples make one message: at least one, however large."""
        outcomes = await self.answers.weights(plan.run_id, found)
        samples = {
            index: await self.sample_sets.weights(plan.tasks[index].sample_set_id, positions)
            for index, positions in _positions(plan, found).items()
        }
        weights = [
            BYTES_OF_NUMBERS + outcomes.get(key, 0) + samples[index].get(position, 0)
            for key, (index, position) in zip(found, _located(plan, found), strict=True)
        ]
        return found[: fitting_count(weights)]

    async def _beside_samples(self, plan: RunPlan, scored: Sequence[ScoredOutcome]) -> list[ListedOutcome]:
        keys = [one.key[1:] for one in scored]
        samples = {
            index: await self.sample_sets.read(plan.tasks[index].sample_set_id, positions)
            for index, positions in _positions(plan, keys).items()
        }
        marks = await self.answers.marks(plan.run_id, keys)
        return [
            listed_outcome(plan.tasks[index], samples[index][position], one, marks)
            for one, (index, position) in zip(scored, _located(plan, keys), strict=True)
        ]


def _page(plan: RunPlan, query: OutcomeQuery, limit: int) -> OutcomePage:
    samples = _samples(plan, query.task)
    sample, rollout = query.first
    # The key before the first one. Rollouts start at 0, so -1 comes before all outcomes of a sample.
    start = (sample, rollout - 1) if sample >= samples.start else (samples.start, -1)
    after = read_key_token(_LIST, query.page_token, first=start)
    return OutcomePage(query.run_id, after, samples.stop, limit, query.status)


def _samples(plan: RunPlan, task: str) -> range:
    """The samples of a task; "" for all of the run."""
    if not task:
        return range(plan.end_sample)
    chosen = plan.tasks[task_index(plan, task)]
    return range(chosen.first_sample, chosen.end_sample)


def _token(sort: OutcomeSort | None, after: SortedKey) -> str:
    value, key = after
    return write_page_token(_list(sort), repr(value), *key) if sort else key_token(_LIST, key)


def _list(sort: OutcomeSort) -> str:
    """The name of the list in page tokens: a token of another order is refused."""
    return f"{_LIST} by {sort.value}{' down' if sort.is_descending else ''}"


def _sorted_key(parts: list[str]) -> SortedKey:
    value, sample, rollout = float(parts[0]), *map(int, parts[1:])
    if not (math.isfinite(value) and 0 <= sample < MAX_NUMBER and 0 <= rollout < MAX_NUMBER):
        raise ValueError("no list has such a key")
    return value, (sample, rollout)


def _located(plan: RunPlan, keys: Sequence[OutcomeKey]) -> list[tuple[int, int]]:
    """The index of each outcome's task, and the position of its sample in the task's set."""
    located = []
    for sample, _ in keys:
        index = plan.task_index_of(sample)
        assert index is not None
        located.append((index, sample - plan.tasks[index].first_sample))
    return located


def _positions(plan: RunPlan, keys: Sequence[OutcomeKey]) -> Mapping[int, list[int]]:
    """Positions in the sample set of each task, by the index of the task."""
    wanted: dict[int, set[int]] = defaultdict(set)
    for index, position in _located(plan, keys):
        wanted[index].add(position)
    return {index: sorted(positions) for index, positions in wanted.items()}


def _next_size(asked: int, judged: int) -> int:
    """Grows the window where texts are short. Where they are long, it shrinks to what was judged."""
    return min(asked * WINDOW_GROWTH, MAX_WINDOW) if judged >= asked else max(1, judged)
