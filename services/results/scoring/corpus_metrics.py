"""Figures of what answers count together: BLEU, chrF and TER by sacrebleu, perplexities, shares.

The settings are those of lm-evaluation-harness, which are the defaults of sacrebleu.
"""

import math
import re
from collections.abc import Callable, Mapping, Sequence
from functools import cache
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from sacrebleu.metrics.base import Metric

# What an answer counts, as sacrebleu has it: n-grams, lengths, edits.
Counts = Sequence[float]
# TER tries up to 1,000 shifts of words, each in a time that grows with the words: some 35 µs for each word,
# and more where both texts are long.
_MAX_SHIFTS, _MAX_SHIFTED_WORDS, _LONG = 1000, 40_000, 100
_SPACES = re.compile(r"\s+")


def counts_of(name: str, answer: str, texts: Sequence[str]) -> Counts:
    """Of several accepted texts sacrebleu takes the n-grams of all (BLEU) or the best one."""
    if name == "ter":
        _bound_shifts(len(answer.split()))
    # The parts that its own bootstrap uses too.
    [counts] = corpus_metric(name)._extract_corpus_statistics([answer], [[text] for text in texts])  # noqa: SLF001  # the parts of corpus_score
    return [float(count) for count in counts]


def _bound_shifts(words: int) -> None:
    """An answer of more than 40 words gets fewer tries, so that no length makes it a failure.

    Where tries are missing, its edits are counted as they are without further shifts: never too few.
    """
    from sacrebleu.metrics import lib_ter  # noqa: PLC0415  # slow, and few tasks need it

    tries = _MAX_SHIFTED_WORDS * min(1.0, _LONG / max(1, words)) / max(1, words)
    lib_ter._MAX_SHIFT_CANDIDATES = min(_MAX_SHIFTS, 1 + int(tries))  # noqa: SLF001  # it has no option


def corpus_figure(name: str, total: Sequence[float]) -> float:
    """`total`: sums of the counts of the answers."""
    whole = [int(count) if count.is_integer() else count for count in map(float, total)]
    return float(corpus_metric(name)._aggregate_and_compute([whole]).score)  # noqa: SLF001  # as above


@cache
def corpus_metric(name: str) -> "Metric":
    return CORPUS_METRICS[name]()


def _bleu() -> "Metric":
    from sacrebleu.metrics.bleu import BLEU  # noqa: PLC0415  # slow, and few tasks need it

    return BLEU()


def _chrf(**options: Any) -> "Metric":
    from sacrebleu.metrics.chrf import CHRF  # noqa: PLC0415  # as above

    return CHRF(**options)


def _ter() -> "Metric":
    from sacrebleu.metrics.ter import TER  # noqa: PLC0415  # as above

    return TER()


CORPUS_METRICS: Mapping[str, Callable[[], "Metric"]] = {
    "bleu": _bleu,
    "chrf": _chrf,
    "chrf++": lambda: _chrf(word_order=2),
    "ter": _ter,
}


def _words(text: str) -> int:
    """The parts between white space, empty ones at the ends too, as lm-evaluation-harness counts them."""
    return len(_SPACES.split(text))


# By metric, what the log-probability is divided by.
LENGTHS: Mapping[str, Callable[[str], int]] = {
    "perplexity": lambda _: 1,
    "word_perplexity": _words,
    "byte_perplexity": lambda text: len(text.encode()),
    "bits_per_byte": lambda text: len(text.encode()),
}


def _perplexity(total: Counts) -> float:
    logprob, length = total
    try:
        return math.exp(-logprob / length)
    except (OverflowError, ZeroDivisionError):
        return math.inf


def _bits(total: Counts) -> float:
    logprob, length = total
    return -logprob / length / math.log(2) if length else math.inf


def _share(total: Counts) -> float:
    right, of_all = total
    return right / of_all if of_all else math.nan


# By aggregation, of the sums of log-probabilities and lengths.
GIVEN_TEXT_FIGURES: Mapping[str, Callable[[Counts], float]] = {
    "perplexity": _perplexity,
    "weighted_perplexity": _perplexity,
    "bits_per_byte": _bits,
}
# By aggregation, of the sums of what is right and of all that there is.
SHARE_FIGURES: Mapping[str, Callable[[Counts], float]] = {"share": _share}
