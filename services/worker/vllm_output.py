"""What vLLM's own processes print: passed on to the worker's log, its end kept for when they do not start."""

from __future__ import annotations

import os
import sys
import threading
from collections import deque
from collections.abc import Sequence

_KEPT_LINES = 400
# Processes that failed are ending; one that hangs must not hold the answer up.
_LAST_WORDS_SECONDS = 2.0


class VllmOutput:
    """A pipe that the processes write to (see `vllm_lifeline`), read until the last of them has ended."""

    def __init__(self) -> None:
        read_end, self.write_end = os.pipe()
        self._kept: deque[str] = deque(maxlen=_KEPT_LINES)
        self._reading = threading.Thread(target=self._read, args=(read_end,), name="vllm-output", daemon=True)
        self._reading.start()

    def close(self) -> None:
        """Once the processes have theirs: only they keep the pipe open."""
        os.close(self.write_end)

    def last_lines(self) -> Sequence[str]:
        self._reading.join(_LAST_WORDS_SECONDS)
        return list(self._kept)

    def _read(self, read_end: int) -> None:
        with open(read_end, encoding="utf-8", errors="replace") as lines:
            for line in lines:
                self._kept.append(line.rstrip())
                sys.stderr.write(line)
