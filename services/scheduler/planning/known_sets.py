"""Sample sets that results has already: a run of the same rows sends none of its samples again.

The rows are rendered all the same, and the hash of what was rendered decides.
"""

import hashlib
from collections import OrderedDict
from collections.abc import Hashable, Sequence
from dataclasses import dataclass

from services.scheduler.planning.ports import CommittedSet
from services.scheduler.suites.rendering.sample import RenderedSample

# An id and two hashes each; a leaderboard has as many as its suites have tasks.
MAX_SETS = 10_000


class ContentHash:
    """SHA-256 over all that results stores of samples, in order; results takes sets of the same hash for one.

    A sample's own digest covers what is asked and expected, and not its row, which exports show.
    """

    def __init__(self) -> None:
        # Two, so that all of a chunk is hashed at once: where chunks end depends on time.
        self._digests, self._rows = hashlib.sha256(), hashlib.sha256()

    def add(self, samples: Sequence[RenderedSample]) -> None:
        self._digests.update(b"".join([sample.digest for sample in samples]))
        self._rows.update("".join(map(_row_text, samples)).encode())

    def digest(self) -> bytes:
        return hashlib.sha256(self._digests.digest() + self._rows.digest()).digest()


def _row_text(sample: RenderedSample) -> str:
    cluster, row_id, doc = sample.cluster, sample.row_id, sample.doc_json
    return f"{sample.doc_id} {len(cluster)} {len(row_id)} {len(doc)} {cluster}{row_id}{doc}"


@dataclass(frozen=True, slots=True)
class KnownSet:
    committed: CommittedSet
    content_hash: bytes


class KnownSets:
    """The set that a task became when it was planned last, by facts that nearly always decide its rows."""

    def __init__(self, maximum: int = MAX_SETS) -> None:
        self._sets: OrderedDict[Hashable, KnownSet] = OrderedDict()
        self._maximum = maximum

    def likely(self, facts: Hashable) -> KnownSet | None:
        return self._sets.get(facts)

    def remember(self, facts: Hashable, known: KnownSet) -> None:
        self._sets[facts] = known
        self._sets.move_to_end(facts)
        if len(self._sets) > self._maximum:
            self._sets.popitem(last=False)

    def forget(self, facts: Hashable) -> None:
        self._sets.pop(facts, None)
