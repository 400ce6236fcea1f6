"""Options of metrics. A name means the same wherever it stands, and has one schema."""

from proctor.values.judging.scale import MAX_LABEL_CHARACTERS, MAX_LABELS, MAX_QUESTIONS
from proctor.values.metrics.metric import MetricOption
from proctor.values.scoring import OutputType

# Characters. A pattern that is longer is a text that was meant for another metric.
MAX_TEXT = 5000
_TRUE_OR_FALSE = {"type": "boolean"}
_FROM_ZERO = {"type": "number", "minimum": 0}
_PATTERN = {"type": "string", "format": "regex"}

_IGNORE_CASE = MetricOption("ignore_case", _TRUE_OR_FALSE, "false", "Upper and lower case are the same.")
MATCH_OPTIONS = (
    _IGNORE_CASE,
    MetricOption("ignore_punctuation", _TRUE_OR_FALSE, "false", "ASCII punctuation is left out."),
    MetricOption("ignore_numbers", _TRUE_OR_FALSE, "false", "Digits are left out."),
    MetricOption(
        "regexes_to_ignore",
        {"type": "array", "items": _PATTERN},
        "none",
        "Matches of these patterns are left out first.",
    ),
)
REGEX_OPTIONS = (
    MetricOption(
        "pattern",
        {"type": "string", "minLength": 1, "maxLength": MAX_TEXT, "format": "regex"},
        "the target",
        "Its first match in the answer, or the first group of that which is not empty, is compared with the"
        " target. Without it the target is the pattern, and must occur.",
    ),
    _IGNORE_CASE,
)
NUMERIC_OPTIONS = (
    MetricOption(
        "tolerance", _FROM_ZERO, "0", "How far the number of the answer may lie from that of the target."
    ),
    MetricOption(
        "relative_tolerance",
        _FROM_ZERO,
        "0",
        "The same as a share of the target's number; one of the two is enough.",
    ),
)
_TEXTS = {
    "type": "array",
    "minItems": 2,
    "maxItems": 1000,
    "uniqueItems": True,
    "items": {"type": "string", "minLength": 1, "maxLength": MAX_TEXT},
}
CHOICES = MetricOption("choices", _TEXTS, "the letters A to J", "The texts to choose from.")
AVERAGE = MetricOption(
    "average",
    {"enum": ["binary", "macro", "micro", "weighted"]},
    "binary",
    "Over labels: of label 1 only, of all labels alike, of all answers, or by the labels' frequency.",
    OutputType.MULTIPLE_CHOICE,
)
VERDICT_OPTIONS = (
    MetricOption(
        "labels",
        {
            "type": "object",
            "minProperties": 2,
            "maxProperties": MAX_LABELS,
            "propertyNames": {"minLength": 1, "maxLength": MAX_LABEL_CHARACTERS, "pattern": "^[^,]+$"},
            "additionalProperties": {"type": "number", "minimum": 0, "maximum": 1},
        },
        "yes 1, no 0",
        "The labels of a verdict with their scores.",
    ),
    MetricOption(
        "weights",
        {
            "type": "array",
            "minItems": 1,
            "maxItems": MAX_QUESTIONS,
            "items": {"type": "number", "exclusiveMinimum": 0},
        },
        "one verdict",
        "Of the questions of a rubric: each has a verdict, and the score is their weighted mean.",
    ),
)
