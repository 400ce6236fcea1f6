"""The launcher process, as the worker's event loop sees it: requests, replies, and files that go along."""

import array
import asyncio
import json
import os
import socket
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from services.common.sandboxes.bubblewrap.launcher.spawner import PACKET_BYTES
from services.common.sandboxes.errors import CommandRefused, SandboxLost

_ROOT = str(Path(__file__).resolve().parents[4])
_START = (
    "import sys; sys.path.append({root!r}); "
    "from services.common.sandboxes.bubblewrap.launcher.program import main; main()"
)
_GONE = "the process that holds the sandboxes of this worker ended."
# Above `_LAST_SECONDS` of the launcher, in which it removes what its sandboxes left.
_STOP_SECONDS = 5.0

Reply = dict[str, Any]


class LauncherClient:
    """Started on the first request, and again where it died. It gets no variable of the worker.

    `python`: how an interpreter is started, which needs no package. `root`: the folder of `services`.
    """

    def __init__(self, python: Sequence[str] = (sys.executable,), root: str = _ROOT) -> None:
        self._python = tuple(python)
        self._root = root
        self._control: socket.socket | None = None
        self._process: subprocess.Popen[bytes] | None = None
        self._numbers = 0
        self._waiting: dict[int, asyncio.Future[tuple[Reply, list[int]]]] = {}

    @property
    def process(self) -> int | None:
        return self._process.pid if self._process else None

    async def ask(self, request: Reply, files: Sequence[int] = ()) -> tuple[Reply, list[int]]:
        """The reply, and the files that came with it. Raises SandboxLost and CommandRefused."""
        control = self._control or self._start()
        self._numbers += 1
        number = self._numbers
        packet = json.dumps({**request, "id": number}).encode()
        if len(packet) > PACKET_BYTES // 2:
            raise CommandRefused(problem="its arguments and variables are too long; use standard input.")
        waiting: asyncio.Future[tuple[Reply, list[int]]] = asyncio.get_running_loop().create_future()
        self._waiting[number] = waiting
        try:
            await self._send(control, packet, files)
            return await waiting
        finally:
            self._waiting.pop(number, None)

    async def close(self) -> None:
        process, self._process = self._process, None
        self._disconnect()
        if process is not None:
            await asyncio.to_thread(_end, process)

    def _start(self) -> socket.socket:
        if self._process is not None:
            # It is dead, or ends now that its socket is closed.
            self._process.kill()
            self._process.wait()
        own, its = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        own.settimeout(0)
        own.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, PACKET_BYTES)
        arguments = ("-I", "-S", "-c", _START.format(root=self._root), str(os.getpid()), str(its.fileno()))
        with its:
            # By vfork, which takes a moment and runs no handlers of a fork; it dies with this thread.
            self._process = subprocess.Popen(
                (*self._python, *arguments),
                env={},
                pass_fds=(its.fileno(),),
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                cwd="/",
            )
        self._control = own
        asyncio.get_running_loop().add_reader(own, self._receive, own)
        return own

    async def _send(self, control: socket.socket, packet: bytes, files: Sequence[int]) -> None:
        rights = [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array("i", files))] if files else []
        while True:
            try:
                control.sendmsg([packet], rights)
                return
            except BlockingIOError:
                await asyncio.sleep(0.005)
            except OSError as error:
                self._disconnect()
                raise SandboxLost(problem=_GONE) from error

    def _receive(self, control: socket.socket) -> None:
        try:
            content, extra, _, _ = control.recvmsg(
                PACKET_BYTES, socket.CMSG_SPACE(4), socket.MSG_CMSG_CLOEXEC
            )
        except BlockingIOError:
            return
        except OSError:
            content, extra = b"", []
        if not content:
            self._disconnect()
            return
        files = array.array("i")
        for _, _, sent in extra:
            files.frombytes(sent[: len(sent) - len(sent) % files.itemsize])
        reply = json.loads(content)
        waiting = self._waiting.get(reply["id"])
        # The caller has given up: the files that came along would stay open for ever.
        if waiting is None or waiting.done():
            for file in files:
                os.close(file)
            return
        waiting.set_result((reply, list(files)))

    def _disconnect(self) -> None:
        control, self._control = self._control, None
        if control is not None:
            asyncio.get_running_loop().remove_reader(control)
            control.close()
        for waiting in self._waiting.values():
            if not waiting.done():
                waiting.set_exception(SandboxLost(problem=_GONE))


def _end(process: subprocess.Popen[bytes]) -> None:
    """It ends by itself when its socket is closed, after its sandboxes."""
    try:
        process.wait(_STOP_SECONDS)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()
