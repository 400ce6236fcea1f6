"""Sandboxes as use cases see them: one port for all engines."""

import socket
from typing import BinaryIO, Protocol

from proctor.values.rollout import ImageBuild
from services.common.sandboxes.sandbox import (
    Command,
    CommandResult,
    Isolation,
    RootParts,
    SandboxSpec,
    TarLimits,
)


class Sandbox(Protocol):
    """Files move only as tar streams through commands that run inside; nothing is opened by path from
    outside.
    """

    async def run(self, command: Command) -> CommandResult:
        """Runs a command and returns when it ended. Its background processes stay, until `stop_processes`.

        At its timeout every process of the sandbox is killed. Raises SandboxLost and CommandRefused.
        """
        ...

    async def put(self, path: str, tar: bytes) -> None:
        """Unpacks `tar` into the folder `path`, which is made. Raises FilesRefused and SandboxLost."""
        ...

    async def get(self, path: str, into: BinaryIO, limits: TarLimits) -> None:
        """Writes a tar of what is in the folder `path`. Its content is hostile: `tar_files` reads it.

        Raises FilesRefused where it is over the limits or is not a tar, and SandboxLost.
        """
        ...

    @property
    def has_root(self) -> bool:
        """Whether commands can write to its root, and not only to the folders of its spec."""
        ...

    async def get_root(self, into: BinaryIO, limits: TarLimits, parts: RootParts) -> None:
        """As `get`, of a root that can be written to, by paths from it: nothing of mounts, or of the
        machine's own folders. Writes nothing where only such folders are there, or the root is read-only.
        """
        ...

    async def stop_processes(self) -> None:
        """Kills every process inside; the files stay."""
        ...

    async def model_port(self, port: int) -> socket.socket:
        """A socket that listens on the sandbox's own loopback, for the worker to serve on.

        Can be repeated for the same port once the socket before is closed.
        Raises CommandRefused where the sandbox was opened with no network at all.
        """
        ...

    async def close(self) -> None:
        """Kills every process and removes every file. Can be repeated."""
        ...


class SandboxEngine(Protocol):
    async def check(self) -> Isolation:
        """Opens a sandbox and looks. Never raises a SandboxError."""
        ...

    async def sweep(self) -> int:
        """Removes what killed workers left behind; returns how many sandboxes that were."""
        ...

    async def open(self, spec: SandboxSpec) -> Sandbox:
        """Raises SandboxNotOpened, CannotIsolate where the machine or the image does not allow it, and
        ImageRefused where the engine has no images.
        """
        ...

    async def close(self) -> None:
        """Closes all sandboxes."""
        ...


class ImageBuilder(Protocol):
    async def build(self, context: bytes, build: ImageBuild) -> str:
        """The name of an image that is built from a Dockerfile and its folder, once for each content.

        `context` is a tar, compressed by gzip. Raises ImageNotBuilt and ImageNotAllowed.
        """
        ...
