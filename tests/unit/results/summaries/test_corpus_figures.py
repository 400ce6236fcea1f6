"""BLEU, chrF and TER of all answers are those of sacrebleu, as lm-evaluation-harness asks for them."""

import random
from collections.abc import Callable, Sequence

import numpy as np
import pytest
import sacrebleu

from proctor.values.outcome import Answer
from proctor.values.scoring import MetricUse, OutputType, TaskScoring
from services.results.scoring.compiled_scoring import InvalidScoring, compile_scoring
from services.results.scoring.corpus_metrics import counts_of
from services.results.scoring.score import ScoringTarget
from services.results.scoring.score_answer import score_answer
from services.results.summaries.corpus_figures import corpus_figures

NAMES = ("bleu", "chrf", "chrf++", "ter")
SCORING = compile_scoring(TaskScoring(OutputType.GENERATE_UNTIL, tuple(map(MetricUse, NAMES))))
WORDS = ["the", "a", "cat", "sat", "on", "mat,", "quickly.", "Größe", "猫は", "座る", "!", "ran", "12,5"]
Whole = Callable[[Sequence[str], Sequence[Sequence[str]]], float]
THEIRS: dict[str, Whole] = {
    "bleu": lambda said, right: sacrebleu.corpus_bleu(said, right).score,
    "chrf": lambda said, right: sacrebleu.corpus_chrf(said, right).score,
    "chrf++": lambda said, right: sacrebleu.corpus_chrf(said, right, word_order=2).score,
    "ter": lambda said, right: sacrebleu.corpus_ter(said, right).score,
}


def texts(count: int, seed: int, texts_each: int = 1) -> tuple[list[str], list[list[str]]]:
    """Answers that share words with their accepted texts; some say nothing."""
    draws = random.Random(seed)
    right = [[" ".join(draws.choices(WORDS, k=9)) for _ in range(texts_each)] for _ in range(count)]
    said = [" ".join(draws.sample(one[0].split(), draws.choice([0, 4, 9]))) for one in right]
    return said, right


def stored(said: Sequence[str], right: Sequence[Sequence[str]]) -> list[tuple[int, dict[str, object]]]:
    scores = [
        score_answer(SCORING, ScoringTarget(texts=tuple(one)), Answer(text))
        for text, one in zip(said, right, strict=True)
    ]
    assert [score.is_unparsed for score in scores] == [not text for text in said]
    return [(number, dict(score.stored)) for number, score in enumerate(scores)]


@pytest.mark.parametrize("texts_each", [1, 3])
def test_figures_are_those_of_the_whole_corpus(texts_each: int) -> None:
    said, right = texts(60, 1, texts_each)
    figures = corpus_figures(SCORING, stored(said, right), None)
    for name in NAMES:
        assert figures[name].mean == pytest.approx(THEIRS[name](said, list(zip(*right, strict=True))), 1e-12)
        assert figures[name].n == 60


def test_the_interval_is_that_of_a_bootstrap_over_clusters() -> None:
    """Answers that are all there twice say no more than once."""
    said, right = texts(40, 2)
    once = corpus_figures(SCORING, stored(said, right), None)["bleu"]
    twice = stored(said * 2, right * 2)
    clustered = corpus_figures(SCORING, twice, lambda samples: samples.astype(np.int64) % 40)["bleu"]
    assert clustered.mean == pytest.approx(once.mean)
    # Smoothed where a draw shares no n-grams of a length.
    assert clustered.stderr == pytest.approx(once.stderr, 0.01)
    apart = corpus_figures(SCORING, twice, None)["bleu"]
    assert apart.stderr is not None
    assert once.stderr is not None
    assert 0.6 < apart.stderr / once.stderr < 0.8
    assert once.ci_low is not None
    assert once.mean is not None
    assert once.ci_high is not None
    assert once.ci_low < once.mean < once.ci_high


def test_one_answer_has_no_interval_and_none_no_figure() -> None:
    said, right = texts(1, 3)
    figure = corpus_figures(SCORING, stored(said, right), None)["chrf"]
    assert (figure.n, figure.ci_low) == (1, None)
    assert corpus_figures(SCORING, [], None)["chrf"].mean is None


def test_votes_leave_no_corpus() -> None:
    votes = '[{"name": "maj", "filter": [{"function": "majority_vote"}]}]'
    with pytest.raises(InvalidScoring, match="bleu is of all answers"):
        compile_scoring(TaskScoring(OutputType.GENERATE_UNTIL, (MetricUse("bleu"),), votes))


def test_the_shifts_of_long_answers_are_bounded_and_their_edits_are_never_too_few() -> None:
    words = np.random.default_rng(3).choice([f"w{number}" for number in range(40)], (2, 80))
    for length, most in ((80, 1.1), (30, 1.0)):
        answer, text = (" ".join(each[:length]) for each in words)
        # First: the bound of the last answer stays in the library.
        theirs = sacrebleu.corpus_ter([answer], [[text]]).score
        edits, counted = counts_of("ter", answer, [text])
        assert theirs - 1e-9 <= edits / counted * 100 <= most * theirs + 1e-9
        assert counted == length
