"""BLEU and ROUGE of an answer against right and wrong texts, as in lm-evaluation-harness's truthfulqa_gen.

Both libraries are slow to import and slow at work (milliseconds per answer): not for the event loop's thread.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache, cached_property
from typing import TYPE_CHECKING

from services.results.scoring.answer import ScoringImpossible

if TYPE_CHECKING:
    from rouge_score.rouge_scorer import RougeScorer
    from sacrebleu.metrics.bleu import BLEU

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
        answer, scored = _with_lines(self.answer), {}
        for text in self._texts:
            found = _rouge_scorer().score(_with_lines(text), answer)
            scored[text] = {name: found[kind].fmeasure * 100 for name, kind in _ROUGE_TYPES.items()}
        return scored

    @property
    def _texts(self) -> set[str]:
        return {*self.right, *self.wrong}


OVERLAP_METRICS: Mapping[str, tuple[str, Callable[[Overlap, str], float]]] = {
    f"{measure}_{name}": (measure, of)
    for measure in ("bleu", *_ROUGE_TYPES)
    for name, of in (("max", Overlap.best), ("acc", Overlap.is_ahead), ("diff", Overlap.lead))
}
"""By name: what is measured, and which figure of it."""


def _with_lines(text: str) -> str:
    """A sentence per line, which ROUGE-Lsum goes by."""
    return text.replace(" . ", ".\n")


@cache
def _bleu_scorer() -> "BLEU":
    from sacrebleu.metrics.bleu import BLEU  # noqa: PLC0415  # slow, and few tasks need it

    return BLEU(smooth_method="exp", smooth_value=0.0, force=False, lowercase=False, tokenize="intl")


@cache
def _rouge_scorer() -> "RougeScorer":
    from rouge_score.rouge_scorer import RougeScorer  # noqa: PLC0415  # slow: it loads nltk

    return RougeScorer(list(_ROUGE_TYPES.values()))
