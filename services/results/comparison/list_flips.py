"""Lists the samples on which two runs differ, with the prompt, the target and both answers."""

from collections.abc import Sequence
from dataclasses import dataclass

from proctor.values.metrics.names import full_name
from services.common.checked_fields import checked_number
from services.common.requests.page_tokens import key_token, read_key_token
from services.results.comparison.comparability import check_comparable
from services.results.comparison.compared_metrics import all_metrics, shared_tasks, task_named
from services.results.comparison.ports import FlipQuery, FoundFlip
from services.results.comparison.postgres import PostgresPairs
from services.results.outcomes.page_bytes import fitting_count
from services.results.runs.ports import RunRecordStore
from services.results.runs.run_plan import PlannedTask, RunPlan
from services.results.samples.ports import SampleSetStore
from services.results.samples.sample import StoredSample
from services.results.scoring.compiled_scoring import ScoredMetric
from services.results.scoring.score import sample_score
from services.results.statistics.metric_names import UnknownMetric

# The name of the list in its page tokens.
_LIST = "flips"

MAX_PER_PAGE = 500
DEFAULT_PER_PAGE = 50


@dataclass(frozen=True, slots=True)
class Flip:
    """A flip beside its sample; scores are means over rollouts."""

    task: PlannedTask
    sample: StoredSample
    predictions: tuple[str, str]
    scores: tuple[float, float]


@dataclass(frozen=True, slots=True)
class FlipsQuery:
    """A page of flips of a task. No metric: the task's first one that has a number per sample."""

    run_ids: tuple[str, str]
    task: str
    metric: str = ""
    page_size: int = 0
    page_token: str = ""


@dataclass(frozen=True, slots=True)
class FlipsPage:
    """No token on the last page; `total` is over all pages."""

    flips: Sequence[Flip]
    total: int
    next_page_token: str = ""


@dataclass(frozen=True, slots=True)
class ListFlips:
    records: RunRecordStore
    sample_sets: SampleSetStore
    pairs: PostgresPairs

    async def list_page(self, query: FlipsQuery) -> FlipsPage:
        """Whatever way the runs were scored: the answers are shown beside each other."""
        checked_number("page_size", query.page_size, maximum=MAX_PER_PAGE, default=DEFAULT_PER_PAGE)
        records = [await self.records.get(run_id) for run_id in query.run_ids]
        plans = records[0].plan, records[1].plan
        shared_tasks(plans, [query.task])
        check_comparable(records, [query.task], is_forced=True)
        metric = _metric(plans, query)
        start = task_named(plans[0], query.task).first_sample
        # The token carries the total: it is counted once, on the first page.
        sample, total = read_key_token(_LIST, query.page_token, first=(start, -1))
        if total < 0:
            sample, total = sample - 1, await self._total(plans, query.task, metric)
        return await self._page(query, plans, metric, (sample, total))

    async def _page(
        self,
        query: FlipsQuery,
        plans: tuple[RunPlan, RunPlan],
        metric: ScoredMetric,
        position: tuple[int, int],
    ) -> FlipsPage:
        after, total = position
        limit = query.page_size or DEFAULT_PER_PAGE
        tasks = task_named(plans[0], query.task), task_named(plans[1], query.task)
        rollouts = max(plan.rollouts for plan in plans)
        wanted = FlipQuery(query.run_ids, tasks, rollouts, metric.key, after, limit)
        found = await self.pairs.flips(wanted)
        weights = await self.sample_sets.weights(tasks[0].sample_set_id, [one.position for one in found])
        # Prompts may be large: a page is cut by bytes too.
        fitting = found[: fitting_count([one.bytes + weights.get(one.position, 0) for one in found])]
        is_last = len(found) < limit and len(fitting) == len(found)
        token = "" if is_last else key_token(_LIST, (tasks[0].first_sample + fitting[-1].position, total))
        return FlipsPage(await self._beside_samples(tasks[0], metric, fitting), total, token)

    async def _beside_samples(
        self, task: PlannedTask, metric: ScoredMetric, found: Sequence[FoundFlip]
    ) -> list[Flip]:
        """Flips, without those whose rollouts differ in order only."""
        flips = [(one, _scores(one, metric)) for one in found]
        differing = [(one, scores) for one, scores in flips if scores[0] != scores[1]]
        samples = await self.sample_sets.read(task.sample_set_id, [one.position for one, _ in differing])
        return [Flip(task, samples[one.position], one.predictions, scores) for one, scores in differing]

    async def _total(self, plans: tuple[RunPlan, RunPlan], task: str, metric: ScoredMetric) -> int:
        groups = (await self.pairs.pairs(*plans, {task: [metric.key]})).get((task, metric.key), ())
        paired = [group for group in groups if group.has_figures]
        scores = [
            [sample_score(run.scores, metric.pipeline.vote) for run in (one.first, one.second)]
            for one in paired
        ]
        return sum(one.count for one, (first, second) in zip(paired, scores, strict=True) if first != second)


def _metric(plans: Sequence[RunPlan], query: FlipsQuery) -> ScoredMetric:
    """Returns a metric with one number per sample. Raises UnknownMetric."""
    known = [scored for scored in all_metrics(plans).by_task[query.task] if scored.has_numbers]
    name = full_name(query.metric, [name for scored in known for name in scored.names])
    for scored in known:
        if name in ("", *scored.names):
            return scored
    raise UnknownMetric(metric=query.metric, supported=", ".join(scored.key for scored in known))


def _scores(flip: FoundFlip, metric: ScoredMetric) -> tuple[float, float]:
    vote = metric.pipeline.vote
    return sample_score(flip.first.scores, vote), sample_score(flip.second.scores, vote)
