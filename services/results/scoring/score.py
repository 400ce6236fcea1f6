"""Targets of samples, and scores of answers."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from hashlib import blake2b

from proctor.values.making.quickly_made import quickly_made

# The label, and the vote, of an answer in words that could not be read.
# No label is below 0, so it is never right and votes for nothing.
UNREAD = -1
# (target, predicted), for metrics that need all samples at once.
LabelPair = tuple[int, int]
# (target, predicted), or where rollouts vote (score, number of the prediction).
NumberPair = tuple[int | float, int | float]
# Whole numbers are not made floats between processes: what is stored tells 1 from 1.0.
ScoreValue = int | float | NumberPair
# A score, or what Python code of a task makes of an answer for its own aggregation: any value of JSON.
StoredValue = object


class ScoringImpossible(ValueError):
    """The answer does not fit the task: a choice without log-probability, a metric the task cannot have."""


@quickly_made
@dataclass(frozen=True, slots=True)
class ScoringTarget:
    """The target of a sample. `choices` are continuations, delimiter included, as the model sees.

    Either `choice` or, where several are right, `right_choices`. Metrics compare an answer with `texts`, and
    some with `wrong_texts` too. `choice_texts` are the texts of the choices: an answer may name a choice by
    them, and metrics compare the text of the chosen one with `texts`. `choice_ending`: the end of every
    choice where only its log-probability counts.
    """

    choices: tuple[str, ...] = ()
    choice: int | None = None
    texts: tuple[str, ...] = ()
    right_choices: tuple[int, ...] = ()
    wrong_texts: tuple[str, ...] = ()
    choice_texts: tuple[str, ...] = ()
    choice_ending: str = ""

    def texts_of_choices(self, delimiter: str) -> tuple[str, ...]:
        """The choices without the delimiter before each, which those with a context of their own lack."""
        if self.choice_ending:
            return self.choices
        return tuple([choice.removeprefix(delimiter) for choice in self.choices])


@quickly_made
@dataclass(frozen=True, slots=True)
class Score:
    """`prediction`: the chosen choice, or the text that was read; "" when none could be (`is_unparsed`).

    A metric that needs a number of the answer is left out of `scores` where none was read. `read`: what each
    filter leaves for Python code of the task that scores. `values`: counts, and what that code makes beside
    numbers.
    """

    prediction: str
    scores: Mapping[str, ScoreValue] = field(default_factory=dict)
    is_unparsed: bool = False
    read: Mapping[str, object] = field(default_factory=dict)
    values: Mapping[str, object] = field(default_factory=dict)

    @property
    def stored(self) -> Mapping[str, object]:
        """By metric, as the outcome keeps it."""
        return {**self.scores, **self.values} if self.values else self.scores


@quickly_made
@dataclass(frozen=True, slots=True)
class MetricResult:
    """The result of one metric. `value` None: it lacks what the metric needs; `prediction` None: it
    could not be read. `voted`: the text, or the label of a choice, for which a rollout votes where those of a
    sample do. `counts`: what the answer adds to a figure of all, instead of a value.
    """

    value: ScoreValue | None
    prediction: str | None
    voted: str | int | None
    counts: Sequence[float] = ()

    @property
    def vote(self) -> int:
        """The same for the same text, and exact as a double."""
        if self.voted is None:
            return UNREAD
        if isinstance(self.voted, int):
            return self.voted
        # Six bytes: 48 bits fit exactly into the 53 of a double, as which scores are stored.
        return int.from_bytes(blake2b(self.voted.encode(), digest_size=6).digest())


@dataclass(frozen=True, slots=True)
class Vote:
    """The first `voters` rollouts of a sample vote; `counts_unread`: those that could not be read do too."""

    voters: int
    counts_unread: bool = False


def sample_score(scores: Sequence[ScoreValue], vote: Vote | None = None) -> float:
    """Mean over the rollouts; where they vote, the score of the most frequent prediction.

    Of several the first counts.
    """
    if vote is None:
        return sum(number_of_score(score) for score in scores) / len(scores)
    votes = [score for score in scores[: vote.voters] if isinstance(score, Sequence)]
    # Where no rollout could be read, the unread ones give the score: 0.
    read = votes if vote.counts_unread else [each for each in votes if each[1] != UNREAD] or votes
    counts = Counter(each[1] for each in read)
    return float(max(read, key=lambda each: counts[each[1]])[0])


def number_of_score(score: ScoreValue) -> float:
    assert not isinstance(score, Sequence)
    return score
