"""The metrics that there are. Suites, orders, scorers, statistics, pages and documents read them here.

A new metric is an entry here and a scorer in `services/results/scoring`; `make docs` writes the rest.
"""

from collections.abc import Mapping

from proctor.values.metrics.metric import Metric, MetricInput, ScoreKind, Unit
from proctor.values.metrics.options import (
    AVERAGE,
    CHOICES,
    MATCH_OPTIONS,
    NUMERIC_OPTIONS,
    REGEX_OPTIONS,
    VERDICT_OPTIONS,
)

_CHOICE, _LOGPROBS, _TEXT = (MetricInput.CHOICE,), (MetricInput.LOGPROBS,), (MetricInput.TEXT,)
_SQUAD = (MetricInput.CHOICE_TEXT, MetricInput.TEXT)
_HARNESS, _RAJPURKAR, _SKLEARN = "lm-evaluation-harness", "Rajpurkar et al. 2016", "scikit-learn"
_IFEVAL = "Zhou et al. 2023"
_EMPTY = "it is empty"
# Metrics that say how far a score of rollouts may be believed.
# Of judges: the score of an answer, and which of two is better.
VERDICT, PREFERENCE = "verdict", "preference"
UNSUSPECTED, REWARD_UNSUSPECTED = "unsuspected", "reward_unsuspected"
_NO_NUMBER = "it names no number, or more than one"

_OF_CHOICES = (
    Metric(
        "acc",
        (MetricInput.CHOICE, MetricInput.TARGET_LOGPROB),
        "The chosen one is right, or one of the right ones. Of one text, greedy decoding would give it.",
        ScoreKind.JUDGED,
        alias="accuracy",
    ),
    Metric(
        "acc_norm",
        _LOGPROBS,
        "As `acc`, with log-probabilities per character of the choice.",
        ScoreKind.JUDGED,
        source=_HARNESS,
    ),
    Metric(
        "acc_bytes",
        _LOGPROBS,
        "As `acc`, with log-probabilities per byte of the choice.",
        ScoreKind.JUDGED,
        source=_HARNESS,
    ),
    Metric(
        "mc2", _LOGPROBS, "The share of probability on the right choices.", source="Lin, Hilton & Evans 2022"
    ),
    Metric(
        "brier_score",
        _LOGPROBS,
        "Squared distance, 0 to 2, of the choices' probabilities from 1 for the right one. Less is better.",
        unit=Unit.NUMBER,
        aggregation="brier_score",
        higher_is_better=False,
        source="Brier 1950",
    ),
    Metric(
        "likelihood",
        _LOGPROBS,
        "The log-probability of the right choice. Code that makes the figure gets those of all choices.",
        unit=Unit.NUMBER,
        source=_HARNESS,
    ),
    Metric(
        "f1",
        _CHOICE,
        "F1 of labels.",
        ScoreKind.LABELS,
        options=(AVERAGE,),
        aggregation="f1",
        source=_SKLEARN,
    ),
    Metric(
        "mcc",
        _CHOICE,
        "Matthews' correlation of any number of labels.",
        ScoreKind.LABELS,
        Unit.COEFFICIENT,
        aggregation="matthews_corrcoef",
        source=_SKLEARN,
    ),
)
_OF_TEXTS = (
    Metric(
        "exact_match",
        (MetricInput.CHOICE, MetricInput.TEXT),
        "It equals an accepted text. Of choices, greedy decoding would give a right one; in words as `acc`.",
        ScoreKind.JUDGED,
        options=MATCH_OPTIONS,
        unparsed=_EMPTY,
        source=_HARNESS,
    ),
    Metric(
        "contains",
        _TEXT,
        "It contains an accepted text.",
        ScoreKind.JUDGED,
        options=MATCH_OPTIONS,
        unparsed=_EMPTY,
    ),
    Metric(
        "regex",
        _TEXT,
        "The part that `pattern` finds equals an accepted text, or the target is a pattern and occurs.",
        ScoreKind.JUDGED,
        options=REGEX_OPTIONS,
        unparsed="`pattern` is not found, or it is empty",
    ),
    Metric(
        "numeric",
        _TEXT,
        "Its final number equals that of the target.",
        ScoreKind.JUDGED,
        options=NUMERIC_OPTIONS,
        unparsed="it names no number, or an ambiguous one",
    ),
    Metric(
        "math",
        _TEXT,
        "Its final expression is equal to that of the target: numbers, formulas, sets, intervals, matrices.",
        ScoreKind.JUDGED,
        unparsed="it states no expression, or one that cannot be parsed",
        source="math-verify",
    ),
    Metric(
        "choice",
        _TEXT,
        "The choice that it settles on is the target; both may be a text or a letter.",
        ScoreKind.JUDGED,
        options=(CHOICES,),
        unparsed="it names no choice, several, or one in doubt",
    ),
    Metric(
        VERDICT,
        _TEXT,
        "The score of the label that a judge states at its end, as `Verdict: LABEL` or in JSON.",
        options=VERDICT_OPTIONS,
        unparsed="it ends with no label of the scale, or was cut",
    ),
    Metric(
        PREFERENCE,
        _TEXT,
        "A judge prefers the answer that the target names, `first` or `second`; a `tie` is half.",
        unparsed="it ends with none of the three, or was cut",
    ),
    Metric(
        "squad_em",
        _SQUAD,
        "Equals an accepted text (`doc_to_answers` of choices) but for case, punctuation and articles.",
        ScoreKind.JUDGED,
        unparsed=_EMPTY,
        source=_RAJPURKAR,
    ),
    Metric(
        "squad_f1",
        _SQUAD,
        "The overlap of its words with the best of the accepted texts.",
        alias="f1",
        unparsed=_EMPTY,
        source=_RAJPURKAR,
    ),
    Metric(
        "pearson",
        _TEXT,
        "Pearson's correlation of its number with that of the first target.",
        ScoreKind.NUMBERS,
        Unit.COEFFICIENT,
        aggregation="pearson",
        unparsed=_NO_NUMBER,
        source="scipy",
    ),
    Metric(
        "spearman",
        _TEXT,
        "Spearman's correlation of its number with that of the first target.",
        ScoreKind.RANKS,
        Unit.COEFFICIENT,
        aggregation="spearman",
        unparsed=_NO_NUMBER,
        source="scipy",
    ),
)
_OF_INSTRUCTIONS = (
    Metric(
        "prompt_level_strict_acc",
        _TEXT,
        "It follows all instructions of IFEval that the target names with their parameters.",
        ScoreKind.JUDGED,
        unparsed=_EMPTY,
        source=_IFEVAL,
    ),
    Metric(
        "inst_level_strict_acc",
        _TEXT,
        "Of the instructions of all targets those that are followed.",
        ScoreKind.COUNTS,
        aggregation="share",
        unparsed=_EMPTY,
        source=_IFEVAL,
    ),
    Metric(
        "prompt_level_loose_acc",
        _TEXT,
        "As `prompt_level_strict_acc`; each may be followed by it without stars, its first or its last line.",
        ScoreKind.JUDGED,
        unparsed=_EMPTY,
        source=_IFEVAL,
    ),
    Metric(
        "inst_level_loose_acc",
        _TEXT,
        "As `inst_level_strict_acc`, by the same versions of an answer.",
        ScoreKind.COUNTS,
        aggregation="share",
        unparsed=_EMPTY,
        source=_IFEVAL,
    ),
)
_OF_ALL_TEXTS = (
    Metric(
        "bleu",
        _TEXT,
        "BLEU of all answers together against the accepted texts, with tokens as `13a` makes them.",
        ScoreKind.COUNTS,
        Unit.POINTS,
        aggregation="bleu",
        unparsed=_EMPTY,
        source="sacrebleu",
    ),
    Metric(
        "chrf",
        _TEXT,
        "chrF of all answers together: F2 of runs of up to 6 characters.",
        ScoreKind.COUNTS,
        Unit.POINTS,
        aggregation="chrf",
        unparsed=_EMPTY,
        source="sacrebleu",
    ),
    Metric(
        "chrf++",
        _TEXT,
        "As `chrf`, with runs of up to 2 words.",
        ScoreKind.COUNTS,
        Unit.POINTS,
        aggregation="chrf++",
        unparsed=_EMPTY,
        source="sacrebleu",
    ),
    Metric(
        "ter",
        _TEXT,
        "Edits that make an accepted text of each answer, per 100 words of all these texts. Less is better.",
        ScoreKind.COUNTS,
        Unit.NUMBER,
        aggregation="ter",
        higher_is_better=False,
        unparsed=_EMPTY,
        source="sacrebleu",
    ),
)
_OF_GIVEN_TEXTS = (
    Metric(
        "perplexity",
        (MetricInput.TARGET_LOGPROB,),
        "exp of the mean negative log-probability of the targets. Less is better.",
        ScoreKind.COUNTS,
        Unit.NUMBER,
        aggregation="perplexity",
        higher_is_better=False,
        source=_HARNESS,
    ),
    Metric(
        "word_perplexity",
        (MetricInput.TEXT_LOGPROB,),
        "exp of the negative log-probability of all texts per word. Less is better.",
        ScoreKind.COUNTS,
        Unit.NUMBER,
        aggregation="weighted_perplexity",
        higher_is_better=False,
        source=_HARNESS,
    ),
    Metric(
        "byte_perplexity",
        (MetricInput.TEXT_LOGPROB,),
        "exp of the negative log-probability of all texts per byte of UTF-8. Less is better.",
        ScoreKind.COUNTS,
        Unit.NUMBER,
        aggregation="weighted_perplexity",
        higher_is_better=False,
        source=_HARNESS,
    ),
    Metric(
        "bits_per_byte",
        (MetricInput.TEXT_LOGPROB,),
        "The negative log-probability of all texts in bits per byte of UTF-8. Less is better.",
        ScoreKind.COUNTS,
        Unit.NUMBER,
        aggregation="bits_per_byte",
        higher_is_better=False,
        source=_HARNESS,
    ),
)
_EXECUTED = (
    Metric(
        "pass@1",
        (MetricInput.CODE, MetricInput.ROLLOUT),
        "The tests passed on the code of the answer; of a rollout: its score is 1.",
        ScoreKind.JUDGED,
        source="Chen et al. 2021",
    ),
    Metric("reward", (MetricInput.ROLLOUT,), "The score of a rollout.", source="Harbor"),
    Metric(
        UNSUSPECTED,
        (MetricInput.ROLLOUT,),
        "There is no suspicion about the rollout.",
        ScoreKind.JUDGED,
        may_be_headline=False,
    ),
    Metric(
        REWARD_UNSUSPECTED,
        (MetricInput.ROLLOUT,),
        "The score of a rollout without suspicions; others are left out.",
        may_be_headline=False,
    ),
)


def _overlaps(measure: str, title: str, source: str, alias: str = "") -> tuple[Metric, ...]:
    """Metrics of one measure of overlap, as in the task truthfulqa_gen of lm-evaluation-harness."""
    wrong = (MetricInput.RIGHT_AND_WRONG_TEXT,)
    return (
        Metric(
            f"{measure}_max",
            _TEXT,
            f"{title} against the best right text.",
            unit=Unit.POINTS,
            alias=alias,
            unparsed=_EMPTY,
            source=source,
        ),
        Metric(
            f"{measure}_acc",
            wrong,
            f"{title} of right texts is above that of wrong ones.",
            ScoreKind.JUDGED,
            unparsed=_EMPTY,
            source=source,
        ),
        Metric(
            f"{measure}_diff",
            wrong,
            f"{title} of right texts less that of wrong ones.",
            unit=Unit.POINTS_APART,
            may_be_headline=False,
            unparsed=_EMPTY,
            source=source,
        ),
    )


METRICS: Mapping[str, Metric] = {
    metric.name: metric
    for metric in (
        *_OF_CHOICES,
        *_OF_TEXTS,
        *_OF_INSTRUCTIONS,
        *_OF_ALL_TEXTS,
        *_OF_GIVEN_TEXTS,
        *_EXECUTED,
        *_overlaps("bleu", "BLEU", "sacrebleu"),
        *_overlaps("rouge1", "ROUGE-1", "rouge-score"),
        *_overlaps("rouge2", "ROUGE-2", "rouge-score"),
        *_overlaps("rougeL", "ROUGE-L", "rouge-score", alias="rouge"),
    )
}

# How code of a task may have the values summed up that it makes of log-probabilities.
LIKELIHOOD_AGGREGATIONS = frozenset(metric.aggregation for metric in _OF_GIVEN_TEXTS)
