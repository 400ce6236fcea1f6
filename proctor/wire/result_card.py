"""Result cards: the tree of digests over what a run was and gave, which an installation signs.

Who makes a card and who verifies one without a server take both from here.
"""

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass, field

FORMAT = "proctor-result-card-1"
# What is signed begins with it, so that no signature for something else is one of a card.
_SIGNED = f"{FORMAT}\n".encode()
# Members of a card that its signature covers, in the order of the tree.
SECTIONS = ("format", "key", "run", "samples", "outcomes", "conditions", "engine", "figures")


def canonical(value: object) -> bytes:
    """JSON with sorted keys and without spaces: the same bytes for the same value.

    Raises ValueError for NaN.
    """
    text = json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=False, allow_nan=False)
    return text.encode()


def leaf_digest(content: bytes) -> bytes:
    """SHA-256 of a leaf (RFC 6962, 2.1)."""
    return hashlib.sha256(b"\x00" + content).digest()


def _node_digest(left: bytes, right: bytes) -> bytes:
    return hashlib.sha256(b"\x01" + left + right).digest()


@dataclass(slots=True)
class DigestTree:
    """The Merkle tree of RFC 6962, 2.1, leaf by leaf: it keeps a digest for each bit of their number."""

    leaves: int = 0
    _whole: list[bytes] = field(default_factory=list)

    def add(self, content: bytes) -> None:
        digest, before = leaf_digest(content), self.leaves
        while before & 1:
            digest = _node_digest(self._whole.pop(), digest)
            before >>= 1
        self._whole.append(digest)
        self.leaves += 1

    def root(self) -> bytes:
        """SHA-256 of nothing for a tree without leaves."""
        if not self._whole:
            return hashlib.sha256().digest()
        *rest, root = self._whole
        for digest in reversed(rest):
            root = _node_digest(digest, root)
        return root

    def shown(self) -> Mapping[str, object]:
        return {"count": self.leaves, "root": self.root().hex()}


def signed_content(card: Mapping[str, object]) -> bytes:
    """What the signature of a card is of: the root of the tree over its sections. Raises KeyError."""
    tree = DigestTree()
    for name in SECTIONS:
        tree.add(canonical({name: card[name]}))
    return _SIGNED + tree.root()


@dataclass(slots=True)
class SampleTree:
    """The digests of the samples of exported outcomes, which come by sample and rollout."""

    tree: DigestTree = field(default_factory=DigestTree)
    _last: tuple[object, ...] = ()
    _rollout: int = -1

    def add(self, outcome: Mapping[str, object]) -> bool:
        """Whether it is the first outcome of its sample. Raises KeyError and ValueError for no outcome."""
        sample = (outcome["task"], outcome["doc_id"], outcome["digest"])
        rollout = outcome["rollout"]
        if not isinstance(rollout, int):
            raise ValueError("a rollout is no number")  # noqa: TRY004  # what the line is, not who calls
        is_new = sample != self._last or rollout <= self._rollout
        if is_new:
            self.tree.add(canonical(list(sample)))
        self._last, self._rollout = sample, rollout
        return is_new
