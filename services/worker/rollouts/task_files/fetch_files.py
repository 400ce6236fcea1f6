"""Fetches the files of a task by their digests, part by part, and keeps them for the next rollout."""

import asyncio
import hashlib
from collections import Counter
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from typing import Protocol

from proctor.values.rollout import Bundle, RolloutSpec
from services.worker.rollouts.errors import FilesNotFetched

# Larger than any bundle that the scheduler stores.
MAX_BUNDLE_BYTES = 80 * 1024 * 1024


class BundleSource(Protocol):
    async def part(self, digest: str, first_byte: int) -> bytes:
        """The next bytes; fewer than all only before the end. Raises FilesNotFetched after some tries."""
        ...


class BundleCache(Protocol):
    """Blocks, so it is called in a thread."""

    def get(self, digest: str) -> bytes | None:
        """None where it is not there, or spoilt."""
        ...

    def put(self, digest: str, content: bytes) -> None:
        """Keeps the files. Failures are ignored: the files are fetched again."""
        ...


class _Locks:
    """A lock for each digest that is in use: two rollouts of a task fetch its files once."""

    def __init__(self) -> None:
        self._locks: dict[str, asyncio.Lock] = {}
        self._waiting: Counter[str] = Counter()

    @asynccontextmanager
    async def of(self, digest: str) -> AsyncIterator[None]:
        lock = self._locks.setdefault(digest, asyncio.Lock())
        self._waiting[digest] += 1
        try:
            async with lock:
                yield
        finally:
            self._waiting[digest] -= 1
            if not self._waiting[digest]:
                del self._waiting[digest], self._locks[digest]


@dataclass(frozen=True, slots=True)
class FetchFiles:
    source: BundleSource
    cache: BundleCache
    locks: _Locks = field(default_factory=_Locks)

    async def fetch(self, rollout_spec: RolloutSpec) -> RolloutSpec:
        """The spec with the files of its task. Raises FilesNotFetched."""
        bundles = rollout_spec.task.bundles
        if not bundles:
            return rollout_spec
        files = {bundle.kind: await self._content(bundle) for bundle in bundles}
        return replace(rollout_spec, task=rollout_spec.task.with_files(files))

    async def _content(self, bundle: Bundle) -> bytes:
        async with self.locks.of(bundle.digest):
            content = await asyncio.to_thread(self.cache.get, bundle.digest)
            if content is None:
                content = await self._fetched(bundle)
                await asyncio.to_thread(self.cache.put, bundle.digest, content)
            return content

    async def _fetched(self, bundle: Bundle) -> bytes:
        if not 0 <= bundle.size_bytes <= MAX_BUNDLE_BYTES:
            raise FilesNotFetched(problem=f"they have {bundle.size_bytes:,} bytes.")
        content = bytearray()
        while len(content) < bundle.size_bytes:
            part = await self.source.part(bundle.digest, len(content))
            content += part
            if not part or len(content) > bundle.size_bytes:
                raise FilesNotFetched(problem=f"they have not the {bundle.size_bytes:,} bytes of their task.")
        if await asyncio.to_thread(_digest, content) != bundle.digest:
            raise FilesNotFetched(problem="their digest is not that of their task.")
        return bytes(content)


def _digest(content: bytearray) -> str:
    """A fraction of a second for a large bundle, in a thread."""
    return hashlib.sha256(content).hexdigest()
