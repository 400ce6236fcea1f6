"""The metrics there are: what output they score, how they are summed up, and which options they take."""

from collections.abc import Mapping
from dataclasses import dataclass

from services.scheduler.suites.task_definition import OutputType

_CHOICE = frozenset({OutputType.MULTIPLE_CHOICE})
_TEXT = frozenset({OutputType.GENERATE_UNTIL})
_BOTH = _CHOICE | _TEXT


@dataclass(frozen=True, slots=True)
class Metric:
    """`aggregation` is what lm-evaluation-harness calls it; a higher figure is better for all of them.

    `needs` is a key without which a task cannot have it. A metric of single labels has no figure where
    several choices are right.
    """

    output_types: frozenset[OutputType]
    aggregation: str = "mean"
    options: frozenset[str] = frozenset()
    needs: Mapping[OutputType, str] | None = None
    is_of_single_labels: bool = False

    def key_needed(self, output_type: OutputType) -> str:
        return (self.needs or {}).get(output_type, "")


_MATCH_OPTIONS = frozenset({"ignore_case", "ignore_punctuation", "ignore_numbers", "regexes_to_ignore"})
_OVER_ANSWERS = {OutputType.MULTIPLE_CHOICE: "doc_to_answers"}
_AGAINST_WRONG = {OutputType.GENERATE_UNTIL: "doc_to_wrong_target"}
_OVERLAPS = ("bleu", "rouge1", "rouge2", "rougeL")

METRICS: Mapping[str, Metric] = {
    "acc": Metric(_CHOICE),
    "acc_norm": Metric(_CHOICE),
    "acc_bytes": Metric(_CHOICE),
    "mc2": Metric(_CHOICE),
    "f1": Metric(_CHOICE, "f1", frozenset({"average"}), is_of_single_labels=True),
    "mcc": Metric(_CHOICE, "matthews_corrcoef", is_of_single_labels=True),
    "exact_match": Metric(_BOTH, options=_MATCH_OPTIONS),
    "contains": Metric(_TEXT, options=_MATCH_OPTIONS),
    "regex": Metric(_TEXT, options=frozenset({"pattern", "ignore_case"})),
    "numeric": Metric(_TEXT, options=frozenset({"tolerance", "relative_tolerance"})),
    "choice": Metric(_TEXT, options=frozenset({"choices"})),
    "squad_em": Metric(_BOTH, needs=_OVER_ANSWERS),
    "squad_f1": Metric(_BOTH, needs=_OVER_ANSWERS),
    "pearson": Metric(_TEXT, "pearson"),
    "spearman": Metric(_TEXT, "spearman"),
    **{f"{overlap}_max": Metric(_TEXT) for overlap in _OVERLAPS},
    **{f"{overlap}_acc": Metric(_TEXT, needs=_AGAINST_WRONG) for overlap in _OVERLAPS},
    **{f"{overlap}_diff": Metric(_TEXT, needs=_AGAINST_WRONG) for overlap in _OVERLAPS},
}


def options_of(name: str, output_type: OutputType) -> frozenset[str]:
    """Options change how texts are held against each other: a choice is right or it is not."""
    is_text_option = METRICS[name].options is _MATCH_OPTIONS
    return frozenset() if is_text_option and output_type not in _TEXT else METRICS[name].options
