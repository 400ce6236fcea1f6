"""Lists what is recorded of a run, sample by sample, with what was asked and expected."""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from services.results.answers.answer_match import (
    NO_FILTER,
    AnswerFilter,
    AnswerMatch,
    check_filter,
    score_keys,
)
from services.results.answers.find_matching import FindMatching
from services.results.answers.ports import AnswerStore, KeyScan
from services.results.errors import InvalidField, RecordNotFound
from services.results.exports.exported_lines import OutcomeKey
from services.results.outcomes.listed_outcome import ListedOutcome
from services.results.outcomes.outcome import Failure, OutcomeStatus, ScoredOutcome
from services.results.page_token import read_page_token, write_page_token
from services.results.ports import OutcomePage, Stores
from services.results.runs.run_record import RunPlan

MOST_PER_PAGE = 1000
USUAL_PER_PAGE = 100
# Half of what a message may have: the last outcome may go a little beyond it, and sizes are estimates.
MOST_BYTES_PER_PAGE = 8 * 1024 * 1024
BYTES_OF_NUMBERS = 256
BYTES_PER_CHOICE = 16


@dataclass(frozen=True, slots=True)
class ListedPage:
    """No token on the last page."""

    outcomes: list[ListedOutcome]
    next_page_token: str = ""


@dataclass(frozen=True, slots=True)
class OutcomeQuery:
    """What is asked for: a page of a run, of one task or status where given, of what matches a filter."""

    run_id: str
    page_size: int = 0
    page_token: str = ""
    task: str = ""
    status: OutcomeStatus | None = None
    filter: AnswerFilter = NO_FILTER


class ListOutcomes:
    def __init__(self, stores: Stores, answers: AnswerStore, find_matching: FindMatching) -> None:
        self._stores = stores
        self._answers = answers
        self._find_matching = find_matching

    async def __call__(self, query: OutcomeQuery) -> ListedPage:
        if not 0 <= query.page_size <= MOST_PER_PAGE:
            raise InvalidField(field="page_size", problem=f"must be 1 to {MOST_PER_PAGE}, or 0 for the usual")
        record = await self._stores.records.find(query.run_id)
        if record is None:
            raise RecordNotFound(run_id=query.run_id)
        check_filter(query.filter)
        page = _page(record.plan, query)
        found, after = await self._found(record.plan, page, query.filter)
        scored = await self._fitting(record.plan, found)
        if len(scored) < len(found):
            after = scored[-1].key[1:]
        token = "" if after is None else write_page_token(after)
        return ListedPage(await self._beside_samples(record.plan, scored), token)

    async def _found(
        self, plan: RunPlan, page: OutcomePage, wanted: AnswerFilter
    ) -> tuple[Sequence[ScoredOutcome], OutcomeKey | None]:
        """What is on the page, and after which key the next begins; None where there is none."""
        if not wanted.is_set:
            found = await self._stores.outcomes.page(page)
            return found, found[-1].key[1:] if len(found) == page.page_size else None
        [metrics] = score_keys([plan], wanted)
        scan = KeyScan(page.run_id, page.after, page.before_sample, page.page_size, wanted.is_golden)
        matching = await self._find_matching(scan, AnswerMatch(wanted, metrics, page.status))
        return await self._answers.read(page.run_id, matching.keys), matching.after

    async def _fitting(self, plan: RunPlan, found: Sequence[ScoredOutcome]) -> Sequence[ScoredOutcome]:
        """The first outcomes that with their samples make one message: at least one, however large."""
        weights = {
            index: await self._stores.sample_sets.weights(plan.tasks[index].sample_set_id, positions)
            for index, positions in _positions(plan, found).items()
        }
        total = 0
        for count, one in enumerate(found):
            total += weight(one) + weights[one.task_index].get(_position(plan, one), 0)
            if count and total > MOST_BYTES_PER_PAGE:
                return found[:count]
        return found

    async def _beside_samples(self, plan: RunPlan, scored: Sequence[ScoredOutcome]) -> list[ListedOutcome]:
        samples = {
            index: await self._stores.sample_sets.read(plan.tasks[index].sample_set_id, positions)
            for index, positions in _positions(plan, scored).items()
        }
        golden = await self._answers.golden(plan.run_id, [one.key[1:] for one in scored])
        return [
            ListedOutcome(
                plan.tasks[one.task_index],
                samples[one.task_index][_position(plan, one)],
                one,
                one.key[1:] in golden,
            )
            for one in scored
        ]


def _page(plan: RunPlan, query: OutcomeQuery) -> OutcomePage:
    first, before = 0, plan.end_sample
    if query.task:
        index = plan.task_index_named(query.task)
        if index is None:
            names = ", ".join(task.task for task in plan.tasks)
            raise InvalidField(field="task", problem=f"must be one of the run's: {names}")
        first, before = plan.tasks[index].first_sample, plan.tasks[index].end_sample
    # Rollouts start at 0, so -1 comes before all outcomes of the first sample.
    after = read_page_token(query.page_token, first=(first, -1))
    return OutcomePage(query.run_id, after, before, query.page_size or USUAL_PER_PAGE, query.status)


def _position(plan: RunPlan, scored: ScoredOutcome) -> int:
    return scored.outcome.sample - plan.tasks[scored.task_index].first_sample


def _positions(plan: RunPlan, outcomes: Sequence[ScoredOutcome]) -> Mapping[int, list[int]]:
    """Positions in the sample set of each task, by the place of the task."""
    wanted: dict[int, set[int]] = defaultdict(set)
    for one in outcomes:
        wanted[one.task_index].add(_position(plan, one))
    return {index: sorted(positions) for index, positions in wanted.items()}


def weight(scored: ScoredOutcome) -> int:
    """Bytes of an outcome without its sample, nearly."""
    result, said = scored.outcome.result, scored.outcome.answer
    total = BYTES_OF_NUMBERS + len(scored.prediction.encode())
    if isinstance(result, Failure):
        total += len(result.message.encode())
    if said:
        total += BYTES_PER_CHOICE * len(said.choice_token_counts) + len(said.answer.text.encode())
        total += len(said.body_json.encode())
    return total
