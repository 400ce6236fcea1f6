"""Decides between two runs by what both have answered so far. The first decision is stored and stays."""

import asyncio
from collections import OrderedDict
from collections.abc import Sequence
from dataclasses import dataclass, field

from proctor.values.comparison import Decision, sample_order
from services.common.structured_logs import get_logger
from services.results.decisions.answered_pairs import AnsweredPairs, paired_metrics
from services.results.decisions.ports import AnsweredSamples
from services.results.runs.errors import RunArchived
from services.results.runs.ports import RunRecordStore
from services.results.runs.run_plan import RunRecord
from services.results.scoring.compiled_scoring import ScoredMetric

# Samples that are read at a time: about those that are on their way.
CHUNK_SAMPLES = 1024
# A test of as many values as pairs takes seconds, so one in so many pairs has to be new. The interval holds
# whenever it is looked at.
TESTED_PER_PAIR = 100
# Of a pair that is pushed out its samples are read again.
MAX_LOOKS = 64

log = get_logger()


@dataclass(frozen=True, slots=True)
class DecisionQuery:
    """A run and its base, over the same samples in the order of a seed."""

    run_id: str
    base_run_id: str
    seed: int
    alpha: float
    margin_points: float | None = None


@dataclass(slots=True)
class _Look:
    """What was read of two runs in their epochs; `lock`: one caller reads on at a time.

    `decision` is that of the first `tested` samples of the order.
    """

    metrics: Sequence[ScoredMetric]
    order: Sequence[int]
    pairs: AnsweredPairs = field(default_factory=AnsweredPairs)
    tested: int = 0
    decision: Decision | None = None
    lock: asyncio.Lock = field(default_factory=asyncio.Lock)


@dataclass(frozen=True, slots=True)
class DecideRuns:
    """Keeps what it has read, so that a look costs what is new. Any replica reads it again from the start."""

    records: RunRecordStore
    answers: AnsweredSamples
    looks: OrderedDict[tuple[object, ...], _Look] = field(default_factory=OrderedDict)

    async def decide(self, query: DecisionQuery) -> Decision | None:
        """None while nothing is decided, or where one of the runs is not open yet or over other samples.

        Also where one is archived.
        """
        run, base = [await self.records.find(each) for each in (query.run_id, query.base_run_id)]
        # Also where the other one was deleted since.
        if stored := next((each.decision for each in (run, base) if each and each.decision), None):
            return stored
        look = await self._look(query, run, base) if run and base else None
        if look is None or run is None:
            return None
        try:
            async with look.lock:
                decision = await self._test(query, run, look)
        except RunArchived as error:
            # The other run was closed and archived since: this one answers everything.
            log.info("runs not decided", run_ids=[query.run_id, query.base_run_id], error=str(error))
            return None
        if decision is None:
            return None
        stored = await self.records.decide(query.run_id, query.base_run_id, decision)
        log.info("runs decided", run_ids=[query.run_id, query.base_run_id], verdict=stored.verdict)
        return stored

    async def _look(self, query: DecisionQuery, run: RunRecord, base: RunRecord) -> _Look | None:
        """A retry of either run begins anew: its failures count as missing."""
        key = query, run.epoch, base.epoch
        if key not in self.looks:
            metrics = paired_metrics(run.plan, base.plan)
            order = await asyncio.to_thread(sample_order, query.seed, run.plan.end_sample) if metrics else []
            self.looks.setdefault(key, _Look(metrics, order))
            if len(self.looks) > MAX_LOOKS:
                self.looks.popitem(last=False)
        found = self.looks.get(key)
        return found if found and found.metrics else None

    async def _test(self, query: DecisionQuery, run: RunRecord, look: _Look) -> Decision | None:
        await self._read_on(query, run, look)
        pairs = look.pairs
        if look.decision is None and pairs.position - look.tested >= max(1, look.tested // TESTED_PER_PAIR):
            # Beside the service: scores of many values take a while.
            look.decision = await asyncio.to_thread(pairs.decided, query.alpha, query.margin_points)
            look.tested = pairs.position
        return look.decision

    async def _read_on(self, query: DecisionQuery, run: RunRecord, look: _Look) -> None:
        """Adds the pairs that follow in the order, up to the first sample that misses an outcome."""
        pairs, names, rollouts = look.pairs, [metric.key for metric in look.metrics], run.plan.rollouts
        while chunk := look.order[pairs.position : pairs.position + CHUNK_SAMPLES]:
            first = await self.answers.read(query.run_id, chunk, names)
            second = await self.answers.read(query.base_run_id, chunk, names)
            for sample in chunk:
                one, other = first.get(sample), second.get(sample)
                if not (one and other) or min(one.outcomes, other.outcomes) < rollouts:
                    return
                pairs.add(look.metrics[one.task_index], one.scores, other.scores, rollouts)
