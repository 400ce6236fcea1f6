"""Given texts: whether greedy decoding gives them, and perplexities as lm-evaluation-harness has them."""

import math

import pytest

from proctor.values.outcome import Answer, ChoiceScore
from proctor.values.scoring import MetricUse, OutputType, TaskScoring
from services.results.scoring.compiled_scoring import compile_scoring
from services.results.scoring.score import ScoringImpossible, ScoringTarget
from services.results.scoring.score_answer import score_answer
from services.results.summaries.corpus_figures import corpus_figures

WORDS = compile_scoring(TaskScoring(OutputType.LOGLIKELIHOOD, (MetricUse("acc"), MetricUse("perplexity"))))
TEXTS = compile_scoring(
    TaskScoring(
        OutputType.LOGLIKELIHOOD_ROLLING,
        tuple(map(MetricUse, ("word_perplexity", "byte_perplexity", "bits_per_byte"))),
    )
)


def of_text(text: str) -> ScoringTarget:
    return ScoringTarget((text,), 0)


def weighed(logprob: float, *, is_greedy: bool = False) -> Answer:
    return Answer(choices=(ChoiceScore(logprob, is_greedy),))


def test_a_word_is_right_where_greedy_decoding_gives_it() -> None:
    scores = [
        score_answer(WORDS, of_text(" door"), weighed(value, is_greedy=is_greedy))
        for value, is_greedy in ((-0.5, True), (-2.0, False))
    ]
    assert [score.scores for score in scores] == [{"acc": 1.0}, {"acc": 0.0}]
    figure = corpus_figures(WORDS, [(n, score.stored) for n, score in enumerate(scores)], None)["perplexity"]
    assert figure.mean == pytest.approx(math.exp(1.25))
    assert figure.n == 2


def test_texts_count_by_their_words_and_bytes() -> None:
    """Words are what stands between white space, and at the ends what is not there too."""
    texts = {"A cat sät.\n": -8.0, " one": -1.5}
    scores = [score_answer(TEXTS, of_text(text), weighed(value)) for text, value in texts.items()]
    assert [score.values["word_perplexity"] for score in scores] == [[-8.0, 4], [-1.5, 2]]
    figures = corpus_figures(TEXTS, [(n, score.stored) for n, score in enumerate(scores)], None)
    size = sum(len(text.encode()) for text in texts)
    assert {name: figure.mean for name, figure in figures.items()} == {
        "word_perplexity": pytest.approx(math.exp(9.5 / 6)),
        "byte_perplexity": pytest.approx(math.exp(9.5 / size)),
        "bits_per_byte": pytest.approx(9.5 / size / math.log(2)),
    }
    assert figures["bits_per_byte"].ci_low is not None


def test_a_perplexity_that_is_no_number_is_undefined() -> None:
    score = score_answer(TEXTS, of_text("word"), weighed(-1e5))
    figures = corpus_figures(TEXTS, [(0, score.stored), (1, score.stored)], None)
    assert (figures["word_perplexity"].mean, figures["word_perplexity"].n) == (None, 2)


@pytest.mark.parametrize("answer", [weighed(-math.inf), weighed(math.nan), Answer("said")])
def test_an_answer_without_a_finite_log_probability_has_no_score(answer: Answer) -> None:
    with pytest.raises(ScoringImpossible):
        score_answer(WORDS, of_text(" door"), answer)
