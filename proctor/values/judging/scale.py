"""The scale of a judge: the labels of its verdicts, and the score that each one stands for."""

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

MAX_LABELS = 20
MAX_QUESTIONS = 20
MAX_LABEL_CHARACTERS = 50
_MAX_GRADE = 10
_FORMS = "write it as yes-no, 1-5, or labels:good=1,fair=0.5,poor=0"


@dataclass(frozen=True, slots=True)
class Scale:
    """`labels`: label → score from 0 to 1, in the order in which a judge is shown them.

    `weights` are those of the questions of a rubric, each answered by a label; empty for a single verdict.
    """

    labels: Mapping[str, float]
    weights: tuple[float, ...] = ()

    @property
    def is_of_numbers(self) -> bool:
        return all(label.isdecimal() for label in self.labels)

    @property
    def verdicts(self) -> int:
        """How many labels a verdict has."""
        return len(self.weights) or 1

    def label_of(self, word: str) -> str | None:
        """The label that a word is, whatever its case; None for any other word."""
        wanted = word.strip().casefold()
        return next((label for label in self.labels if label.casefold() == wanted), None)

    def score(self, labels: Sequence[str]) -> float:
        """The score of one label, or of a rubric the weighted mean of its labels."""
        weights = self.weights or (1.0,)
        given = zip(weights, labels, strict=True)
        return math.fsum(weight * self.labels[label] for weight, label in given) / math.fsum(weights)


YES_NO = Scale({"yes": 1.0, "no": 0.0})
# Which of two answers is better, by the place in which it was shown.
FIRST, SECOND, TIE = "first", "second", "tie"
PAIRS = "first-second-tie"
OF_PAIRS = Scale({FIRST: 1.0, SECOND: 0.0, TIE: 0.5})


def labels_of(word: str) -> Mapping[str, float]:
    """The labels of a scale in words, also of that of pairs. Raises ValueError, a sentence."""
    return (OF_PAIRS if word == PAIRS else read_scale(word)).labels


def verdict_in_words(stated: str, labels: Mapping[str, float]) -> str:
    """A verdict as people read it: "yes", "4 of 5", of a rubric "4, 5 of 5"; of a pair "first is better"."""
    if labels == OF_PAIRS.labels:
        return stated if stated == TIE else f"{stated} is better"
    return f"{stated} of {[*labels][-1]}" if all(map(str.isdecimal, labels)) else stated


def read_scale(word: str) -> Scale:
    """Reads `yes-no`, `1-n` with n from 2 to 10, or `labels:NAME=SCORE,…`. Raises ValueError, a sentence."""
    if word == "yes-no":
        return YES_NO
    if word.startswith("1-"):
        return _grades(word)
    name, separator, listed = word.partition(":")
    if name == "labels" and separator:
        return checked_scale(Scale(dict(map(_label, listed.split(",")))), len(listed.split(",")))
    raise ValueError(f"the scale {word!r:.80} is not known; {_FORMS}")


def _grades(word: str) -> Scale:
    highest = word.removeprefix("1-")
    # As written, since a number of many digits is a scale of as many labels.
    if highest not in map(str, range(2, _MAX_GRADE + 1)):
        raise ValueError(f"the scale {word!r:.80} must end with a number from 2 to {_MAX_GRADE}")
    count = int(highest)
    return Scale({str(grade): (grade - 1) / (count - 1) for grade in range(1, count + 1)})


def _label(text: str) -> tuple[str, float]:
    label, separator, score = text.partition("=")
    try:
        return label.strip(), float(score if separator else "")
    except ValueError as error:
        raise ValueError(f"the label {text!r:.80} of the scale has no score; {_FORMS}") from error


def checked_scale(scale: Scale, given: int | None = None) -> Scale:
    """Raises ValueError for a scale that no verdict could be read by.

    `given`: the number of labels that were written, where some may be the same.
    """
    count = given or len(scale.labels)
    if not 2 <= count <= MAX_LABELS:
        raise ValueError(f"a scale has 2 to {MAX_LABELS} labels, not {count}")
    if len({label.casefold() for label in scale.labels}) < count:
        raise ValueError("two labels of the scale are the same but for their case")
    for label, score in scale.labels.items():
        if not 0 < len(label) <= MAX_LABEL_CHARACTERS or label != label.strip() or not _is_readable(label):
            rule = f"must have 1 to {MAX_LABEL_CHARACTERS} characters of one line, and no comma"
            raise ValueError(f"the label {label!r:.80} {rule}")
        if not 0 <= score <= 1:
            raise ValueError(f"the score of the label {label!r} must be from 0 to 1, not {score}")
    if len(scale.weights) > MAX_QUESTIONS or not all(0 < weight < math.inf for weight in scale.weights):
        raise ValueError(f"a rubric has at most {MAX_QUESTIONS} questions, each with a weight above 0")
    return scale


def _is_readable(label: str) -> bool:
    return label.isprintable() and "," not in label


def scale_options(scale: Scale) -> str:
    """The options of the metric `verdict` that reads this scale, as JSON."""
    options: dict[str, object] = {"labels": dict(scale.labels)}
    if scale.weights:
        options["weights"] = list(scale.weights)
    return json.dumps(options)


def scale_of_options(options: Mapping[str, object]) -> Scale:
    """The scale of the options of the metric `verdict`. Raises ValueError and TypeError."""
    labels, weights = options.get("labels", YES_NO.labels), options.get("weights", ())
    if not isinstance(labels, Mapping) or not isinstance(weights, list | tuple):
        raise TypeError("labels must be an object of labels with scores, and weights a list of numbers")
    scores = {str(label): _number(score) for label, score in labels.items()}
    return checked_scale(Scale(scores, tuple(map(_number, weights))))


def _number(value: object) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise TypeError(f"{value!r:.80} is not a number")
    return float(value)
