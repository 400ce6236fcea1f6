"""One answer becomes its scores, as lm-evaluation-harness scores it. Failures never come here."""

from services.results.scores.answer import Answer, Score, ScoreValue, ScoringImpossible, Target
from services.results.scores.choice_metrics import WEIGHED_METRICS, TakenChoice, first_largest
from services.results.scores.task_scoring import OutputType, TaskScoring
from services.results.scores.word_scoring import score_spoken_choice, score_text


def score_answer(scoring: TaskScoring, target: Target, answer: Answer) -> Score:
    if scoring.is_unscored:
        return Score("")
    if scoring.output_type is OutputType.GENERATE_UNTIL:
        return score_text(scoring, target, answer)
    if target.choice is None and not target.right_choices:
        raise ScoringImpossible("the sample has no right choice")
    texts = tuple([choice.removeprefix(scoring.target_delimiter) for choice in target.choices])
    if scoring.is_spoken:
        return score_spoken_choice(scoring, target, texts, answer.text)
    return _score_weighed_choices(scoring, target, texts, answer)


def _score_weighed_choices(
    scoring: TaskScoring, target: Target, texts: tuple[str, ...], answer: Answer
) -> Score:
    given, asked = len(answer.choice_logprobs), len(texts)
    if given != asked or not asked:
        raise ScoringImpossible(f"{given} log-probabilities for {asked} choices")
    if not answer.has_logprobs_only:
        # The first choice would always win.
        raise ScoringImpossible("a log-probability is not a number")
    chosen = first_largest(answer.choice_logprobs)
    choice = TakenChoice(target, texts, chosen, answer)
    scores: dict[str, ScoreValue] = {}
    for metric in scoring.metrics:
        if metric.name not in WEIGHED_METRICS:
            raise ScoringImpossible(f"no metric {metric.name!r} for multiple choice")
        scores[metric.name] = WEIGHED_METRICS[metric.name](choice)
    return Score(prediction=texts[chosen], scores=scores)
