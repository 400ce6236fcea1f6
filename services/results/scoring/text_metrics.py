"""Metrics that compare a generated text, as it was read, with the targets."""

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache, cached_property
from typing import TYPE_CHECKING

from proctor.values.code import CodeResult
from proctor.values.making.quickly_made import quickly_made
from proctor.values.metrics.catalogue import REWARD_UNSUSPECTED, UNSUSPECTED
from proctor.values.metrics.metric import ScoreKind
from proctor.values.rollout import RolloutVerdict
from services.results.scoring.answer_rules import (
    AnswerRule,
    ComparingRule,
    SameExpression,
    SameNumber,
    SettledChoice,
    shown_targets,
)
from services.results.scoring.compiled_scoring import CompiledMetric
from services.results.scoring.corpus_metrics import CORPUS_METRICS, corpus_metric, counts_of
from services.results.scoring.instructions.english import load_languages
from services.results.scoring.instructions.followed import FollowedInstructions
from services.results.scoring.numbers.written_numbers import named_number
from services.results.scoring.score import MetricResult, NumberPair, ScoringImpossible, ScoringTarget
from services.results.scoring.stated_verdict import StatedPreference, StatedVerdict
from services.results.scoring.text_match import squad_exact_match, squad_f1

if TYPE_CHECKING:
    from rouge_score.rouge_scorer import RougeScorer
    from sacrebleu.metrics.bleu import BLEU

# ROUGE-L keeps a table of words of the answer by words of the text: this many take a second and 100 MB.
MAX_ROUGE_CELLS = 2_000_000
_OF_SUSPICIONS = (UNSUSPECTED, REWARD_UNSUSPECTED)
_ROUGE_WORD = re.compile("[a-z0-9]+")
_ROUGE_TYPES = {"rouge1": "rouge1", "rouge2": "rouge2", "rougeL": "rougeLsum"}


@dataclass(frozen=True)
class Overlap:
    """How much an answer has of the right texts and of the wrong ones, in per cent."""

    answer: str
    right: Sequence[str]
    wrong: Sequence[str]

    def best(self, measure: str) -> float:
        return max(self._of_texts(measure, self.right, "right"))

    def lead(self, measure: str) -> float:
        return self.best(measure) - max(self._of_texts(measure, self.wrong, "wrong"))

    def is_ahead(self, measure: str) -> float:
        return float(self.lead(measure) > 0)

    def _of_texts(self, measure: str, texts: Sequence[str], kind: str) -> list[float]:
        if not texts:
            raise ScoringImpossible(f"the sample has no {kind} text")
        scores = self._bleu if measure == "bleu" else self._rouge
        return [scores[text][measure] for text in texts]

    @cached_property
    def _bleu(self) -> Mapping[str, Mapping[str, float]]:
        bleu = _bleu_scorer()
        return {text: {"bleu": bleu.corpus_score([self.answer], [[text]]).score} for text in self._texts}

    @cached_property
    def _rouge(self) -> Mapping[str, Mapping[str, float]]:
        words, text_words = _words(self.answer), sum(map(_words, self._texts))
        # Checked before: the scorer offers no way to stop it on the way.
        if words * text_words > MAX_ROUGE_CELLS:
            raise ScoringImpossible(
                f"ROUGE does not compare an answer of {words} words with {text_words} words"
            )
        answer, scored = _with_lines(self.answer), {}
        for text in self._texts:
            found = _rouge_scorer().score(_with_lines(text), answer)
            scored[text] = {name: found[kind].fmeasure * 100 for name, kind in _ROUGE_TYPES.items()}
        return scored

    @property
    def _texts(self) -> set[str]:
        return {*self.right, *self.wrong}


# By name: the measure, and the figure made of it.
OVERLAP_METRICS: Mapping[str, tuple[str, Callable[[Overlap, str], float]]] = {
    f"{measure}_{name}": (measure, of)
    for measure in ("bleu", *_ROUGE_TYPES)
    for name, of in (("max", Overlap.best), ("acc", Overlap.is_ahead), ("diff", Overlap.lead))
}


def load_libraries(metrics: Sequence[CompiledMetric]) -> None:
    """Loads the libraries of the metrics. The second that it takes must not count for an answer."""
    for measure in {OVERLAP_METRICS[metric.name][0] for metric in metrics if metric.name in OVERLAP_METRICS}:
        (_bleu_scorer if measure == "bleu" else _rouge_scorer)()
    for metric in metrics:
        if metric.name in CORPUS_METRICS and not metric.coded:
            corpus_metric(metric.name)
        if isinstance(metric.rule, SameExpression):
            # Reads one, for which the parser builds its tables.
            metric.rule.judge(r"\boxed{\frac{x}{2}}", ("0.5x",))
        if isinstance(metric.rule, FollowedInstructions):
            load_languages()


def _words(text: str) -> int:
    """Number of words, as ROUGE counts them."""
    return len(_ROUGE_WORD.findall(text.lower()))


def _with_lines(text: str) -> str:
    """A sentence per line, which ROUGE-Lsum goes by."""
    # As the task in lm-evaluation-harness does, so that figures are comparable.
    return text.replace(" . ", ".\n")


@cache
def _bleu_scorer() -> "BLEU":
    from sacrebleu.metrics.bleu import BLEU  # noqa: PLC0415  # slow, and few tasks need it

    return BLEU(smooth_method="exp", smooth_value=0.0, force=False, lowercase=False, tokenize="intl")


@cache
def _rouge_scorer() -> "RougeScorer":
    from rouge_score.rouge_scorer import RougeScorer  # noqa: PLC0415  # slow: it loads nltk

    return RougeScorer(list(_ROUGE_TYPES.values()))


def _exact_match(metric: CompiledMetric, prediction: str, target: str) -> float:
    return float(metric.match.is_match(prediction, target))


def _contains(metric: CompiledMetric, prediction: str, target: str) -> float:
    return float(metric.match.is_contained(target, prediction))


def _squad_em(_: CompiledMetric, prediction: str, target: str) -> float:
    return squad_exact_match(prediction, target)


def _squad_f1(_: CompiledMetric, prediction: str, target: str) -> float:
    return squad_f1(prediction, target)


# Scores of a prediction against one accepted text; the best one counts.
MATCH_METRICS: Mapping[str, Callable[[CompiledMetric, str, str], float]] = {
    "exact_match": _exact_match,
    "contains": _contains,
    "squad_em": _squad_em,
    "squad_f1": _squad_f1,
}


@quickly_made
@dataclass(frozen=True)
class ReadText:
    """`prediction`: the answer as filtered; None where the filter found nothing, which matches no text.

    `code_result` is set where a worker executed the answer, `verdict` where it judged a rollout.
    `is_cut`: the model had no more tokens.
    """

    target: ScoringTarget
    prediction: str | None
    code_result: CodeResult | None = None
    verdict: RolloutVerdict | None = None
    is_cut: bool = False

    def score(self, metric: CompiledMetric) -> MetricResult:
        # In the order of what they take: most answers are compared with texts.
        if metric.rule:
            return self._ruled(metric, metric.rule)
        if metric.name in MATCH_METRICS:
            return self._result(self._best_match(metric))
        if metric.name in _OF_SUSPICIONS:
            return self._unsuspected(metric.name)
        if metric.is_executed:
            return self._executed(is_graded=metric.entry.kind is ScoreKind.GRADED)
        if metric.entry.kind.is_correlation:
            return self._result(self._numbers)
        if metric.name in CORPUS_METRICS:
            counts = counts_of(metric.name, self.prediction or "", self.target.texts)
            return MetricResult(None, self.prediction, self.prediction, counts)
        if metric.name not in OVERLAP_METRICS:
            raise ScoringImpossible(f"no metric {metric.name!r} for generated text")
        measure, figure = OVERLAP_METRICS[metric.name]
        return self._result(figure(self._overlap, measure))

    def _ruled(self, metric: CompiledMetric, rule: AnswerRule) -> MetricResult:
        if isinstance(rule, StatedVerdict | StatedPreference):
            return self._stated(rule)
        if isinstance(rule, FollowedInstructions):
            return self._followed(rule, is_counted=metric.is_counted)
        return self._judged(rule)

    def _result(self, value: float | NumberPair | None) -> MetricResult:
        """Refuses an answer without a value: it names no number, which the metric needs."""
        return MetricResult(value, None if value is None else self.prediction, self.prediction)

    def _executed(self, *, is_graded: bool) -> MetricResult:
        """The verdict on a rollout, else the result of the answer's code: its score, or whether it passed."""
        judged = self.verdict or self.code_result
        if judged is None:
            raise ScoringImpossible("its code was not executed with it; retry the run instead")
        value = judged.score if is_graded else float(judged.is_passed)
        # Reasoning that never ended left no code.
        has_answer = self.verdict is not None or self.prediction is not None
        return MetricResult(value, judged.detail if has_answer else None, judged.detail)

    def _unsuspected(self, name: str) -> MetricResult:
        if self.verdict is None:
            raise ScoringImpossible("its rollout was not judged with it; retry the run instead")
        is_suspected, score = self.verdict.suspicions > 0, self.verdict.score
        value = float(not is_suspected) if name == UNSUSPECTED else None if is_suspected else score
        return MetricResult(value, self.verdict.detail, self.verdict.detail)

    def _stated(self, rule: StatedVerdict | StatedPreference) -> MetricResult:
        """A verdict that cannot be read has no score: taken for the lowest, it would be one."""
        labels = rule.read(self.prediction or "", is_cut=self.is_cut)
        if labels is None:
            return MetricResult(None, None, None)
        prediction = ", ".join(labels)
        return MetricResult(rule.score(labels, self.target.texts), prediction, prediction)

    def _followed(self, rule: FollowedInstructions, *, is_counted: bool) -> MetricResult:
        """Whether all instructions are followed; counted are those that are, and all that there are."""
        followed = self._instructions.get(rule.is_loose)
        if followed is None:
            followed = rule.followed(self.prediction or "", self.target.texts)
            self._instructions[rule.is_loose] = followed
        if is_counted:
            counts = [float(sum(followed)), float(len(followed))]
            return MetricResult(None, self.prediction, self.prediction, counts)
        return self._result(float(all(followed)))

    @cached_property
    def _instructions(self) -> dict[bool, Sequence[bool]]:
        """Which of them are followed, once found out: of each prompt two metrics are scored."""
        return {}

    def _judged(self, rule: ComparingRule) -> MetricResult:
        answer, targets = self.prediction or "", self.target.texts
        if isinstance(rule, SettledChoice | SameNumber | SameExpression):
            judged = rule.judge(answer, targets, is_cut=self.is_cut)
        else:
            judged = rule.judge(answer, targets)
        prediction = judged.prediction or None
        return MetricResult(float(judged.is_right and prediction is not None), prediction, prediction)

    def _best_match(self, metric: CompiledMetric) -> float:
        if self.prediction is None:
            return 0.0
        match = MATCH_METRICS[metric.name]
        return max([match(metric, self.prediction, text) for text in self.target.texts], default=0.0)

    @cached_property
    def _numbers(self) -> NumberPair | None:
        """The right number, and the one that the answer names."""
        target = _target_number(self.target)
        named = None if self.prediction is None else named_number(self.prediction)
        return None if named is None else (target, named)

    @cached_property
    def _overlap(self) -> Overlap:
        return Overlap(self.prediction or "", self.target.texts, self.target.wrong_texts)


def check_target(metric: CompiledMetric, target: ScoringTarget) -> None:
    """Raises ScoringImpossible where no answer can be compared with the sample's target."""
    if isinstance(metric.rule, StatedVerdict | StatedPreference):
        metric.rule.check(target.texts)
        return
    if not target.texts:
        raise ScoringImpossible("it has no target")
    if metric.rule:
        metric.rule.check(target.texts)
    if metric.entry.kind.is_correlation:
        _target_number(target)


def _target_number(target: ScoringTarget) -> float:
    number = named_number(target.texts[0]) if target.texts else None
    if number is None:
        raise ScoringImpossible(f"the target {shown_targets(target.texts[:1])} is not a number")
    return number
