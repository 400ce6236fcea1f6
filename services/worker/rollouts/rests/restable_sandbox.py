"""A sandbox that is closed while its rollout waits for a provider. Its folders are kept."""

import socket
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field
from tempfile import SpooledTemporaryFile
from typing import IO, BinaryIO, cast

from services.common.sandboxes.errors import FilesRefused
from services.common.sandboxes.ports import Sandbox
from services.common.sandboxes.sandbox import Command, CommandResult, RootParts, TarLimits

# More is kept in a file.
_MEMORY_BYTES = 1024 * 1024
_ROOT = "/"


@dataclass(slots=True)
class RestableSandbox:
    """Each of `folders`, and the `root` as far as it is taken, is kept up to the limits. What lies elsewhere
    ends with a rest, as processes do.
    """

    opened: Callable[[], Awaitable[Sandbox]]
    folders: Sequence[str]
    limits: TarLimits
    root: RootParts = field(default_factory=RootParts)
    _sandbox: Sandbox | None = None
    _kept: dict[str, IO[bytes]] = field(default_factory=dict)

    async def open(self) -> None:
        """Raises what the engine raises."""
        self._sandbox = await self.opened()

    async def rest(self) -> bool:
        """False, with an open sandbox, where its files cannot be kept. Raises SandboxLost."""
        kept: dict[str, IO[bytes]] = {}
        try:
            for folder in self.folders:
                kept[folder] = SpooledTemporaryFile(_MEMORY_BYTES)  # noqa: SIM115  # closed when it wakes
                await self._open.get(folder, cast("BinaryIO", kept[folder]), self.limits)
            kept[_ROOT] = SpooledTemporaryFile(_MEMORY_BYTES)  # noqa: SIM115  # closed when it wakes
            await self._open.get_root(cast("BinaryIO", kept[_ROOT]), self.limits, self.root)
        except FilesRefused:
            _close(kept)
            return False
        except BaseException:
            _close(kept)
            raise
        self._kept, sandbox, self._sandbox = kept, self._open, None
        await sandbox.close()
        return True

    async def wake(self) -> None:
        """In a new sandbox. Raises what the engine raises."""
        await self.open()
        kept, self._kept = self._kept, {}
        try:
            for folder, file in kept.items():
                file.seek(0)
                if tar := file.read():
                    await self._open.put(folder, tar)
        finally:
            _close(kept)

    async def run(self, command: Command) -> CommandResult:
        return await self._open.run(command)

    async def put(self, path: str, tar: bytes) -> None:
        await self._open.put(path, tar)

    async def get(self, path: str, into: BinaryIO, limits: TarLimits) -> None:
        await self._open.get(path, into, limits)

    @property
    def has_root(self) -> bool:
        return self._open.has_root

    async def get_root(self, into: BinaryIO, limits: TarLimits, parts: RootParts) -> None:
        await self._open.get_root(into, limits, parts)

    async def stop_processes(self) -> None:
        await self._open.stop_processes()

    async def model_port(self, port: int) -> socket.socket:
        return await self._open.model_port(port)

    async def close(self) -> None:
        kept, self._kept = self._kept, {}
        _close(kept)
        if self._sandbox is not None:
            await self._sandbox.close()

    @property
    def _open(self) -> Sandbox:
        assert self._sandbox is not None, "it rests"
        return self._sandbox


def _close(files: dict[str, IO[bytes]]) -> None:
    for file in files.values():
        file.close()
