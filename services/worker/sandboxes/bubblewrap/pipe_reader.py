"""The output of a command, read from a pipe that its background processes may hold open."""

import asyncio
import os

from services.worker.sandboxes.output import KeptOutput

# What a pipe of Linux holds by default.
_READ_BYTES = 65536
# The most that an unprivileged process can make a pipe hold (fs/pipe-max-size).
_PIPE_BYTES = 1024 * 1024


class PipeReader:
    """The reading end of a pipe, until `stop`: background processes may hold the pipe open."""

    def __init__(self, file: int, kept: KeptOutput) -> None:
        os.set_blocking(file, False)
        self._file, self._kept = file, kept
        self._loop = asyncio.get_running_loop()
        self._is_ended = False
        self._loop.add_reader(file, self._read)

    def stop(self) -> None:
        """Takes what is there already: at most what fits in a pipe, since one may write on and on."""
        for _ in range(_PIPE_BYTES // _READ_BYTES):
            if self._is_ended or not self._read():
                break
        self._end()

    def _read(self) -> bool:
        try:
            part = os.read(self._file, _READ_BYTES)
        except BlockingIOError:
            return False
        if not part:
            self._end()
            return False
        self._kept.add(part)
        return True

    def _end(self) -> None:
        if not self._is_ended:
            self._is_ended = True
            self._loop.remove_reader(self._file)
            os.close(self._file)
