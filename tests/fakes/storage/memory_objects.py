"""An object store in memory. `refuse_after` puts it says that it has no room."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from services.common.errors import ObjectStoreUnavailable


@dataclass
class MemoryObjects:
    contents: dict[str, bytes] = field(default_factory=dict)
    refuse_after: int = 1_000_000
    fetched: list[tuple[str, int]] = field(default_factory=list)

    def put(self, key: str, chunks: Sequence[bytes]) -> None:
        if len(self.contents) >= self.refuse_after:
            raise ObjectStoreUnavailable(problem="no space left")
        self.contents[key] = b"".join(chunks)

    def get(self, key: str) -> bytes:
        return self.contents[key]

    def get_range(self, key: str, start: int, length: int) -> bytes:
        self.fetched.append((key, length))
        return self.contents[key][start : start + length]

    def keys(self, prefix: str) -> Iterator[str]:
        return iter([key for key in self.contents if key.startswith(prefix)])

    def delete(self, keys: Sequence[str]) -> None:
        for key in keys:
            self.contents.pop(key, None)
