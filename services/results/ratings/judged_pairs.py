"""Pairs of answers that judges were asked about, and which of them a rating takes."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

# Verdicts that one rating takes: each becomes a row of some dozens of numbers.
MAX_VERDICTS = 400_000


@dataclass(frozen=True, slots=True)
class PairJudging:
    """A judging run of pairs. `first` and `second` are the judged run and the one that it is against.

    `verdicts`: its samples, two for each pair. `digest` is that of the judge prompt, in hexadecimal.
    """

    run_id: str
    judge: str
    prompt: str
    version: str
    digest: str
    verdicts: int
    first_run_id: str
    first_model: str
    second_run_id: str
    second_model: str


@dataclass(frozen=True, slots=True)
class ChosenJudgings:
    """`judgings` count, newest first. `left_out`: how many more would, were there fewer verdicts."""

    judgings: Sequence[PairJudging] = ()
    left_out: int = 0
    other_prompts: Sequence[str] = ()


def choose_judgings(found: Sequence[PairJudging], prompt: str, judge: str) -> ChosenJudgings:
    """Of each judge and two models the newest of one prompt, as it was in its newest run.

    `found`: newest first. An empty `prompt` is that of the newest one, an empty `judge` is all of them.
    """
    named = [one for one in found if not judge or one.judge == judge]
    newest = next((one for one in named if prompt in ("", one.prompt)), None)
    if newest is None:
        return ChosenJudgings(other_prompts=sorted({one.prompt for one in named}))
    asked = [one for one in named if (one.prompt, one.digest) == (newest.prompt, newest.digest)]
    distinct = list(_of_two_models(asked))
    kept, verdicts = 0, 0
    for one in distinct:
        verdicts += one.verdicts
        if kept and verdicts > MAX_VERDICTS:
            break
        kept += 1
    others = {one.prompt for one in named} - {newest.prompt}
    return ChosenJudgings(distinct[:kept], len(distinct) - kept, sorted(others))


def _of_two_models(judgings: Iterable[PairJudging]) -> Iterable[PairJudging]:
    seen: set[tuple[str, frozenset[str]]] = set()
    for one in judgings:
        models = frozenset((one.first_model, one.second_model))
        if len(models) == 2 and (one.judge, models) not in seen:
            seen.add((one.judge, models))
            yield one


@dataclass(frozen=True, slots=True)
class PairVerdict:
    """Scores of the judged run's answer, 1 (it is better), 0 or a half: shown first, and shown second."""

    run_id: str
    sample: int
    rollout: int
    shown_first: float
    shown_second: float


@dataclass(frozen=True, slots=True)
class AnswerStyle:
    """An answer of a judged run. `digest` is that of its sample.

    `characters` and `markup` (headings, list items, bold texts) are 0 where they were not asked for.
    """

    run_id: str
    sample: int
    rollout: int
    digest: bytes
    characters: int
    markup: int
