"""What judges say of the answers of a run, and how far judges and people are apart on each of them."""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

from proctor.values.judging.scale import verdict_in_words
from proctor.values.metrics.catalogue import PREFERENCE, VERDICT
from proctor.values.outcome import OutcomeStatus
from proctor.values.reasoning.answers import with_reasoning_apart
from services.results.annotations.errors import PairsNotAnnotated
from services.results.annotations.postgres import JudgeVerdict
from services.results.annotations.question import Question, VerdictPlace, question_of
from services.results.answers.marks import Mark
from services.results.answers.ports import AnswerStore
from services.results.outcomes.outcome import OutcomeKey, ScoredOutcome
from services.results.runs.ports import RunRecordStore
from services.results.runs.run_plan import RunPlan
from services.results.scoring.stated_verdict import reason_of

MAX_JUDGES = 10
# The newest judging runs among which they are.
_LOOKED_AT = 50
# Texts of judges that are in memory at a time: they may have thought at length.
_AT_ONCE = 200
# Beyond them reasons are cut: each, and all of a page.
MAX_REASON_CHARACTERS = 2000
MAX_CHARACTERS_OF_PAGE = 1024 * 1024
_MARK_SCORES = {Mark.GOLDEN: 1.0, Mark.WRONG: 0.0}
_WINS = {1.0: "better", 0.5: "tie", 0.0: "worse"}
_HALF, _ROUNDING = 0.5, 1e-9


@dataclass(frozen=True, slots=True)
class AnswerJudge:
    """A judging run. `question` is None of pairs; `repetitions` are verdicts on each answer."""

    run_id: str
    model: str
    prompt: str
    question: Question | None
    repetitions: int

    @property
    def counted_as(self) -> tuple[str, ...]:
        """Of several judges that are the same in this the newest counts."""
        asked = (self.question.key,) if self.question else (self.prompt, self.run_id)
        return self.model, *asked


@dataclass(frozen=True, slots=True)
class AnswerVerdict:
    """`key`: of the outcome in the judging run. Without a verdict `reason` says why there is none.

    `agrees_with_people` is None where they have not settled what they say of the answer.
    """

    judge: AnswerJudge
    key: OutcomeKey
    place: str
    status: OutcomeStatus
    verdict: str
    score: float | None
    reason: str
    agrees_with_people: bool | None


@dataclass(frozen=True, slots=True)
class JudgedAnswer:
    """`disagreement`: how far judges of one question and people are apart, 0 to 1; None of fewer than two."""

    verdicts: Sequence[AnswerVerdict]
    disagreement: float | None


# A question, an answer, and what a judge or people say of it: 0 to 1.
Opinion = tuple[str, OutcomeKey, float]


@dataclass(frozen=True, slots=True)
class PeopleSay:
    """`settled`: mean annotations by question and answer, where two people have annotated it."""

    settled: Mapping[tuple[str, OutcomeKey], float]
    marks: Mapping[OutcomeKey, Mark]

    def score(self, question: str, answer: OutcomeKey) -> float | None:
        """Of an answer without annotations that of its mark; None where people have not settled it."""
        annotated = self.settled.get((question, answer))
        mark = self.marks.get(answer)
        return _MARK_SCORES[mark] if annotated is None and mark else annotated

    def agrees(self, judge: AnswerJudge, answer: OutcomeKey, score: float | None) -> bool | None:
        """Whether a verdict is nearer to what people say than to the opposite."""
        said = self.score(judge.question.key, answer) if judge.question else None
        if said is None or score is None or abs(abs(score - said) - _HALF) < _ROUNDING:
            return None
        return abs(score - said) < _HALF


def disagreements(verdicts: Iterable[Opinion], people: PeopleSay) -> Mapping[OutcomeKey, float]:
    """Of each answer of which two or more say something the furthest that they are apart on one question."""
    said: dict[tuple[str, OutcomeKey], list[float]] = defaultdict(list)
    for question, answer, score in verdicts:
        said[question, answer].append(score)
    apart: dict[OutcomeKey, float] = {}
    for (question, answer), scores in said.items():
        by_people = people.score(question, answer)
        heard = scores if by_people is None else [*scores, by_people]
        if len(heard) > 1:
            apart[answer] = max(apart.get(answer, 0.0), max(heard) - min(heard))
    return apart


def judge_of(plan: RunPlan) -> AnswerJudge:
    """`plan` is that of a judging run."""
    try:
        question = question_of(plan)
    except PairsNotAnnotated:
        question = None
    return AnswerJudge(plan.run_id, plan.facts.model, plan.tasks[0].task, question, plan.rollouts)


@dataclass(frozen=True, slots=True)
class _ReadVerdicts:
    people: PeopleSay
    reason_characters: int

    def verdict(self, judge: AnswerJudge, place: VerdictPlace, scored: ScoredOutcome) -> AnswerVerdict:
        score = scored.scores.get(VERDICT if judge.question else PREFERENCE)
        value = float(score) if isinstance(score, int | float) else None
        return AnswerVerdict(
            judge,
            scored.key[1:],
            place.place,
            scored.status,
            "" if value is None else _in_words(judge, scored.prediction, value),
            value,
            _reason(scored)[: self.reason_characters],
            self.people.agrees(judge, place.judged, value),
        )


def _in_words(judge: AnswerJudge, stated: str, score: float) -> str:
    return verdict_in_words(stated, judge.question.labels) if judge.question else _WINS.get(score, "")


def _reason(scored: ScoredOutcome) -> str:
    if scored.outcome.failure:
        return scored.outcome.failure.message
    answer = scored.outcome.answer
    return reason_of(with_reasoning_apart(answer).text) if answer else ""


class VerdictStore(Protocol):
    """Finds judging runs, their verdicts, and what people say."""

    async def judges(self, run_id: str, limit: int) -> Sequence[str]:
        """Completed runs whose benchmark is the run, newest first."""
        ...

    async def places(self, run_ids: Sequence[str], keys: Sequence[OutcomeKey]) -> Sequence[VerdictPlace]:
        """Samples of judging runs that ask about some answers."""
        ...

    async def verdicts(self, question: Question, run_ids: Sequence[str]) -> Sequence[JudgeVerdict]:
        """Mean verdicts of judging runs on all answers."""
        ...

    async def settled_scores(
        self, run_id: str, questions: Sequence[str]
    ) -> Mapping[tuple[str, OutcomeKey], float]:
        """By question and answer, where two people or more have annotated it."""
        ...


@dataclass(frozen=True, slots=True)
class ShowVerdicts:
    records: RunRecordStore
    annotations: VerdictStore
    answers: AnswerStore

    async def judges(self, run_id: str) -> Sequence[AnswerJudge]:
        """The newest ones, each of another model, prompt or scale; one read where a run has none."""
        found: dict[tuple[str, ...], AnswerJudge] = {}
        for judging_id in await self.annotations.judges(run_id, _LOOKED_AT):
            # None of a project that the caller does not see; a suite may be called as the run is.
            record = await self.records.find(judging_id)
            if record and record.plan.judged_run_id == run_id and len(found) < MAX_JUDGES:
                judge = judge_of(record.plan)
                found.setdefault(judge.counted_as, judge)
        return [*found.values()]

    async def on(
        self, run_id: str, judges: Sequence[AnswerJudge], keys: Sequence[OutcomeKey]
    ) -> Mapping[OutcomeKey, JudgedAnswer]:
        """Verdicts on some answers, by judge; answers without one are left out."""
        if not judges or not keys:
            return {}
        people = await self._people(run_id, judges, keys)
        places: dict[str, list[VerdictPlace]] = defaultdict(list)
        for place in await self.annotations.places([judge.run_id for judge in judges], keys):
            places[place.run_id].append(place)
        count = sum(judge.repetitions * len(places[judge.run_id]) for judge in judges)
        read = _ReadVerdicts(people, min(MAX_REASON_CHARACTERS, MAX_CHARACTERS_OF_PAGE // max(1, count)))
        verdicts: dict[OutcomeKey, list[AnswerVerdict]] = defaultdict(list)
        for judge in judges:
            for place, verdict in await self._of_judge(judge, places[judge.run_id], read):
                verdicts[place.judged].append(verdict)
        apart = disagreements(_opinions(verdicts), people)
        return {key: JudgedAnswer(said, apart.get(key)) for key, said in verdicts.items()}

    async def disagreements(self, run_id: str) -> Mapping[OutcomeKey, float]:
        """Of all answers of a run: reads all verdicts of its judges."""
        judges = await self.judges(run_id)
        of_question: dict[str, list[AnswerJudge]] = defaultdict(list)
        for judge in judges:
            if judge.question:
                of_question[judge.question.key].append(judge)
        opinions: list[Opinion] = []
        for key, asked in of_question.items():
            assert asked[0].question
            found = await self.annotations.verdicts(asked[0].question, [judge.run_id for judge in asked])
            opinions += [(key, one.key, one.verdict) for one in found]
        answers = sorted({answer for _, answer, _ in opinions})
        return disagreements(opinions, await self._people(run_id, judges, answers))

    async def _people(
        self, run_id: str, judges: Sequence[AnswerJudge], keys: Sequence[OutcomeKey]
    ) -> PeopleSay:
        questions = sorted({judge.question.key for judge in judges if judge.question})
        settled = await self.annotations.settled_scores(run_id, questions) if questions else {}
        return PeopleSay(settled, await self.answers.marks(run_id, keys))

    async def _of_judge(
        self, judge: AnswerJudge, places: Sequence[VerdictPlace], read: _ReadVerdicts
    ) -> Sequence[tuple[VerdictPlace, AnswerVerdict]]:
        asked = {place.sample: place for place in places}
        keys = [(sample, rollout) for sample in asked for rollout in range(judge.repetitions)]
        found: list[tuple[VerdictPlace, AnswerVerdict]] = []
        for start in range(0, len(keys), _AT_ONCE):
            for scored in await self.answers.read(judge.run_id, keys[start : start + _AT_ONCE]):
                place = asked[scored.outcome.sample]
                found.append((place, read.verdict(judge, place, scored)))
        return found


def _opinions(verdicts: Mapping[OutcomeKey, Sequence[AnswerVerdict]]) -> Sequence[Opinion]:
    """Of each judge one on an answer: the mean of its repeated verdicts."""
    scores: dict[tuple[str, str, OutcomeKey], list[float]] = defaultdict(list)
    for key, said in verdicts.items():
        for one in said:
            if one.judge.question and one.score is not None:
                scores[one.judge.run_id, one.judge.question.key, key].append(one.score)
    return [(question, key, sum(given) / len(given)) for (_, question, key), given in scores.items()]
