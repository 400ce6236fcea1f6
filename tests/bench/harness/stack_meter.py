"""CPU and memory of each process of a stack while something goes on, its children included."""

import time
from dataclasses import dataclass

from tests.bench.harness.process_tree import usage_of_tree
from tests.harness.stack_harness import StackHarness


@dataclass
class Measured:
    """Per process: CPU seconds taken and the highest private memory seen."""

    cpu_seconds: dict[str, float]
    peak_mib: dict[str, float]
    wall_seconds: float


class StackMeter:
    """Measures from when it is made; memory only as often as it looks."""

    def __init__(self, stack: StackHarness) -> None:
        self._pids = {name: child.pid for name, child in stack.stack.children.items() if child.pid}
        self._before = self._cpu_seconds()
        self._peaks = dict.fromkeys(self._pids, 0.0)
        self._started = time.monotonic()

    def look(self) -> None:
        for name, pid in self._pids.items():
            self._peaks[name] = max(self._peaks[name], usage_of_tree(pid).anon_mib)

    def measured(self) -> Measured:
        wall = time.monotonic() - self._started
        after = self._cpu_seconds()
        taken = {name: after[name] - before for name, before in self._before.items()}
        return Measured(taken, dict(self._peaks), wall)

    def _cpu_seconds(self) -> dict[str, float]:
        return {name: usage_of_tree(pid).cpu_seconds for name, pid in self._pids.items()}
