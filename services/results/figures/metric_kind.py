"""What kind of scores a metric gives: that is a property of the metric, not of the scores that came up."""

from services.results.figures.label_figures import LABEL_FIGURES
from services.results.figures.number_figures import NUMBER_FIGURES

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
"""Metrics that are 1 or 0, of which pass@k can be told."""


def is_right_or_wrong(metric: str) -> bool:
    """Each answer scores 1 or 0; the mean of a sample's rollouts, and its pass@k, may lie between."""
    name = _name_of(metric)
    return name in RIGHT_OR_WRONG or name.startswith("pass@")


def is_label_metric(metric: str) -> bool:
    return _name_of(metric) in LABEL_FIGURES


def is_number_metric(metric: str) -> bool:
    return _name_of(metric) in NUMBER_FIGURES


def _name_of(metric: str) -> str:
    """Without the filter: the keys of a score read `metric,filter`."""
    return metric.partition(",")[0]
