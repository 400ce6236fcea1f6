"""Recorded outcomes as they are looked through, in memory: the same promises as Postgres."""

from collections.abc import Mapping, Sequence
from dataclasses import replace

from proctor.values.outcome import Answer, Failure, FailureClass
from services.results.annotations.postgres import JudgeVerdict
from services.results.annotations.question import VerdictPlace
from services.results.answers.marks import Mark
from services.results.answers.outcome_filter import OutcomeFilter, OutcomeMatch, SortValue
from services.results.answers.ports import KeyScan, Matched, SortedKey, SortedScan
from services.results.outcomes.outcome import OutcomeKey, ScoredOutcome
from services.results.samples.sample import StoredSample
from tests.fakes.results.memory_results import MemoryRows


class NoJudges:
    """Of runs that nobody judges."""

    async def judges(self, *_: object, **__: object) -> Sequence[str]:
        return ()

    async def places(self, *_: object, **__: object) -> Sequence[VerdictPlace]:
        return ()

    async def verdicts(self, *_: object, **__: object) -> Sequence[JudgeVerdict]:
        return ()

    async def settled_scores(self, *_: object, **__: object) -> Mapping[tuple[str, OutcomeKey], float]:
        return {}


class MemoryAnswers:
    """`marked` holds marks by run, sample and rollout."""

    def __init__(self, rows: MemoryRows) -> None:
        self._rows = rows
        self.marked: dict[tuple[str, int, int], Mark] = {}
        self.scans: list[int] = []

    async def keys(self, scan: KeyScan) -> list[OutcomeKey]:
        self.scans.append(scan.limit)
        keys = [
            one.key[1:]
            for one in self._rows.of_run(scan.run_id)
            if one.key[1:] > scan.after
            and one.outcome.sample < scan.before_sample
            and scan.mark in (None, self.marked.get(one.key))
        ]
        return keys[: scan.limit]

    async def sorted_keys(self, scan: SortedScan, wanted: OutcomeMatch) -> list[SortedKey]:
        keyed = OutcomeMatch(replace(wanted.filter, row_id="", text=""), wanted.metrics, wanted.status)
        ranked = [
            (-value if scan.sort.is_descending else value, one.key[1:])
            for one in self._rows.counted(scan.run_id)
            if one.outcome.sample in scan.samples
            and self._matches(keyed, one, self._sample(one))
            and (value := _value(scan.sort.value, one, wanted)) is not None
        ]
        return [one for one in sorted(ranked) if scan.after is None or one > scan.after][: scan.limit]

    async def match(
        self, run_id: str, keys: Sequence[OutcomeKey], wanted: OutcomeMatch, max_bytes: int
    ) -> Matched:
        positions: list[int] = []
        read = 0
        for index, key in enumerate(keys):
            if read >= max_bytes:
                return Matched(positions, index)
            one = self._rows.outcomes.get((run_id, *key))
            if one is None:
                continue
            sample = self._sample(one)
            read += len(_said(one)) + sum(len(text) for text in _asked(sample))
            if one in self._rows.counted(run_id) and self._matches(wanted, one, sample):
                positions.append(index)
        return Matched(positions, len(keys))

    async def weights(self, run_id: str, keys: Sequence[OutcomeKey]) -> Mapping[OutcomeKey, int]:
        return {one.key[1:]: len(_said(one)) for one in await self.read(run_id, keys)}

    async def read(
        self, run_id: str, keys: Sequence[OutcomeKey], *, is_brief: bool = False
    ) -> list[ScoredOutcome]:
        counted = {one.key[1:]: one for one in self._rows.counted(run_id)}
        found = [counted[key] for key in keys if key in counted]
        return [_briefly(one) for one in found] if is_brief else found

    async def digests(self, run_id: str, samples: Sequence[int]) -> Mapping[int, str | None]:
        counted = {one.key[1:]: one for one in self._rows.counted(run_id)}
        found = [counted[sample, 0] for sample in samples if (sample, 0) in counted]
        return {one.outcome.sample: _said(one).strip() if one.outcome.answer else None for one in found}

    async def marks(self, run_id: str, keys: Sequence[OutcomeKey]) -> Mapping[OutcomeKey, Mark]:
        return {key: self.marked[run_id, *key] for key in keys if (run_id, *key) in self.marked}

    def _sample(self, one: ScoredOutcome) -> StoredSample:
        task = self._rows.records[one.run_id].plan.tasks[one.task_index]
        return self._rows.samples[task.sample_set_id][one.outcome.sample - task.first_sample]

    def _matches(self, wanted: OutcomeMatch, one: ScoredOutcome, sample: StoredSample) -> bool:
        chosen = wanted.filter
        texts = [text.casefold() for text in (_said(one), *_reported(one), *_asked(sample))]
        return (
            wanted.status in (None, one.status)
            and chosen.failure_class in (None, _failure_class(one))
            and chosen.mark in (None, self.marked.get(one.key))
            and chosen.row_id.casefold() in (sample.row_id or str(sample.doc_id)).casefold()
            and any(chosen.text.casefold() in text for text in texts)
            and _has_score(chosen, one.scores.get(wanted.metrics[one.task_index] or ""))
            and _has_length(chosen, one)
        )


def _value(sort: SortValue, one: ScoredOutcome, wanted: OutcomeMatch) -> float | None:
    score = one.scores.get(wanted.metrics[one.task_index] or "")
    has_time = isinstance(one.outcome.result, Answer) and not one.is_reused
    values: dict[SortValue, float | None] = {
        SortValue.SAMPLE: float(one.outcome.sample),
        SortValue.SCORE: score if isinstance(score, float) else None,
        SortValue.LENGTH: float(len(_said(one))) if one.outcome.answer else None,
        SortValue.TIME: one.outcome.timing.total_seconds if has_time else None,
    }
    return values[sort]


def _failure_class(one: ScoredOutcome) -> FailureClass | None:
    return one.outcome.result.failure_class if isinstance(one.outcome.result, Failure) else None


def _said(one: ScoredOutcome) -> str:
    answer = one.outcome.answer
    return (answer.text if answer else "") or one.prediction


def _reported(one: ScoredOutcome) -> list[str]:
    """All texts of its body, and the names of its fields with them: near enough for what tests look for."""
    return [one.outcome.answer.body_json] if one.outcome.answer else []


def _asked(sample: StoredSample) -> list[str]:
    return [sample.prompt.text or "", *(turn.content for turn in sample.prompt.messages)]


def _has_score(chosen: OutcomeFilter, score: object) -> bool:
    low, high = chosen.min_score, chosen.max_score
    if low is None and high is None:
        return True
    return isinstance(score, float) and (low is None or score >= low) and (high is None or score <= high)


def _has_length(chosen: OutcomeFilter, one: ScoredOutcome) -> bool:
    least, limit = chosen.min_characters, chosen.max_characters
    if least is None and limit is None:
        return True
    length = len(_said(one))
    is_within = (least is None or length >= least) and (limit is None or length <= limit)
    return one.outcome.answer is not None and is_within


def _briefly(one: ScoredOutcome) -> ScoredOutcome:
    result = one.outcome.result
    answer = Answer("", one.outcome.answer.finish_reason) if one.outcome.answer else None
    if isinstance(result, Failure):
        kept: Answer | Failure = replace(result, message=result.message[:500], answer=answer)
    else:
        kept = answer or Answer("")
    return replace(one, outcome=replace(one.outcome, result=kept), prediction=one.prediction[:500])
