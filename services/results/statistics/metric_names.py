"""The names of metrics: what kind of scores each gives, and which one a word means."""

from collections.abc import Iterable

from proctor.values.scoring import SHORT_NAMES
from services.results.scoring.compiled_scoring import ScoredMetric
from services.results.statistics.correlations import NUMBER_FIGURES
from services.results.statistics.label_figures import LABEL_FIGURES

# Figures over several rollouts: any of k is right, all of k are.
PASSES = ("pass@", "pass^")
# Metrics that are 1 or 0, for which these are defined.
RIGHT_OR_WRONG = frozenset(
    {
        "acc",
        "acc_norm",
        "acc_bytes",
        "exact_match",
        "contains",
        "regex",
        "numeric",
        "choice",
        "squad_em",
        "bleu_acc",
        "rouge1_acc",
        "rouge2_acc",
        "rougeL_acc",
    }
)
ACCURACY = "accuracy"
METRICS_BY_WORD = {ACCURACY: "acc"}
SCORE = "score"


def is_right_or_wrong(metric: str) -> bool:
    """Whether each answer scores 1 or 0; means over rollouts, pass@k and pass^k may lie between."""
    name = _name_of(metric)
    return name in RIGHT_OR_WRONG or name.startswith(PASSES)


def is_label_metric(metric: str) -> bool:
    return _name_of(metric) in LABEL_FIGURES


def is_number_metric(metric: str) -> bool:
    return _name_of(metric) in NUMBER_FIGURES


def is_rank_metric(metric: str) -> bool:
    """Only the order of the numbers counts."""
    return _name_of(metric) == "spearman"


def _name_of(metric: str) -> str:
    """The name without the filter: the keys of a score read `metric,filter`."""
    return metric.partition(",")[0]


def metric_named(word: str, metrics: Iterable[str]) -> str | None:
    """The metric that a user means: by its name, or its name without the filter it is read through.

    No word means accuracy; a benchmark without acc is represented by its score.
    """
    known = list(metrics)
    if word in SHORT_NAMES and word not in known:
        word = SHORT_NAMES[word]
    if word in ("", ACCURACY):
        return next((name for name in (METRICS_BY_WORD[ACCURACY], SCORE) if name in known), None)
    return next((one for one in known if one == word or one.startswith(f"{word},")), None)


def has_numbers(scored: ScoredMetric) -> bool:
    """Every sample has a score of its own; else the figure is one of all samples together."""
    return scored.metric.name not in LABEL_FIGURES and scored.metric.name not in NUMBER_FIGURES
