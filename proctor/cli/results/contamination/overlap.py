"""Which rows share n-grams of words with a corpus, and which canaries it holds."""

import math
import re
from collections import Counter, deque
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from statistics import NormalDist

_WORD = re.compile(r"\w+", re.UNICODE)
# As BIG-bench wrote it first, and many others after it.
_CANARY = re.compile(r"canary\s+GUID:?\s+([0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12})", re.IGNORECASE)
# Longer than any word that is searched for, and than a canary.
_CARRIED = 400
_Z = NormalDist().inv_cdf(0.975)


@dataclass(frozen=True, slots=True)
class Share:
    """A share with its 95 % interval (Wilson 1927)."""

    found: int
    of: int

    @property
    def mean(self) -> float:
        return self.found / self.of

    @property
    def interval(self) -> tuple[float, float]:
        n, p = self.of, self.mean
        middle = (p + _Z**2 / (2 * n)) / (1 + _Z**2 / n)
        half = _Z / (1 + _Z**2 / n) * math.sqrt(p * (1 - p) / n + _Z**2 / (4 * n**2))
        return max(0.0, middle - half), min(1.0, middle + half)


@dataclass(frozen=True, slots=True)
class Difference:
    """A mean minus another one with its 95 % interval (Welch 1947, normal)."""

    mean: float
    low: float
    high: float


class RowGrams:
    """The n-grams of rows, looked for in a corpus. Its memory is that of the rows, whatever the corpus has.

    Words are runs of letters and digits, without case. A row with fewer words than n is looked for as a
    whole, one without words never. `n` is 13 as in Brown et al. 2020 ("Language models are few-shot
    learners", appendix C).
    """

    def __init__(self, texts: Sequence[str], n: int = 13) -> None:
        self._rows_of: dict[tuple[str, ...], list[int]] = {}
        self._grams: list[int] = []
        for row, text in enumerate(texts):
            words = _words(text)
            grams = set(_grams(words, min(n, len(words)))) if words else set()
            self._grams.append(len(grams))
            for gram in grams:
                self._rows_of.setdefault(gram, []).append(row)
        self._lengths = sorted({len(gram) for gram in self._rows_of})
        self._seen: set[tuple[str, ...]] = set()

    def read(self, pieces: Iterable[str]) -> None:
        """Looks through a document."""
        last: deque[str] = deque(maxlen=max(self._lengths, default=1))
        for word in _streamed_words(pieces):
            last.append(word)
            words = tuple(last)
            for length in self._lengths:
                gram = words[-length:]
                if len(gram) == length and gram in self._rows_of:
                    self._seen.add(gram)

    def shares(self) -> Sequence[float]:
        """Of each row the share of its n-grams that the corpus has; 0 of one without words."""
        found = Counter(row for gram in self._seen for row in self._rows_of[gram])
        return [found[row] / count if count else 0.0 for row, count in enumerate(self._grams)]


def find_canaries(pieces: Iterable[str], wanted: Sequence[str]) -> frozenset[str]:
    """The GUIDs of canaries in a document, and which of the wanted texts it has."""
    found: set[str] = set()
    carried = max(_CARRIED, *(len(text) for text in wanted)) if wanted else _CARRIED
    tail = ""
    for piece in pieces:
        text = tail + piece
        found |= {match[1].lower() for match in _CANARY.finditer(text)}
        found |= {each for each in wanted if each in text}
        tail = text[-carried:]
    return frozenset(found)


def difference(first: Sequence[float], second: Sequence[float]) -> Difference | None:
    """None with fewer than two of either."""
    if min(len(first), len(second)) < 2:
        return None
    means = [math.fsum(each) / len(each) for each in (first, second)]
    variance = sum(
        math.fsum((value - mean) ** 2 for value in each) / (len(each) - 1) / len(each)
        for each, mean in zip((first, second), means, strict=True)
    )
    half = _Z * math.sqrt(variance)
    return Difference(means[0] - means[1], means[0] - means[1] - half, means[0] - means[1] + half)


def _words(text: str) -> Sequence[str]:
    return _WORD.findall(text.lower())


def _grams(words: Sequence[str], n: int) -> Iterator[tuple[str, ...]]:
    return (tuple(words[at : at + n]) for at in range(len(words) - n + 1))


def _streamed_words(pieces: Iterable[str]) -> Iterator[str]:
    """The words of a document. One at the end of a piece may go on in the next."""
    tail = ""
    for piece in pieces:
        text = tail + piece.lower()
        tail, last = "", None
        for match in _WORD.finditer(text):
            if last:
                yield last[0]
            last = match
        if last and last.end() == len(text):
            # No row has so long a word: letters without an end would fill the memory.
            tail = last[0][:_CARRIED]
        elif last:
            yield last[0]
    if tail:
        yield tail
