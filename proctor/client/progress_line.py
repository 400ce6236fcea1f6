"""The progress of a run on one line, which a terminal and a notebook both write over."""

import sys
from dataclasses import dataclass, field
from typing import TextIO

from proctor.v1 import run_pb2
from proctor.values.run import FINAL_NUMBERS
from proctor.wire.enums import word_of
from proctor.wire.rollout_orders import answering_model

_BAR = 24


@dataclass(slots=True)
class ProgressLine:
    out: TextIO = field(default_factory=lambda: sys.stderr)
    _width: int = 0

    def show(self, run: run_pb2.Run) -> None:
        text = progress_text(run)
        end = "\n" if run.state in FINAL_NUMBERS and not run.progress.is_closing else ""
        # What was longer before is written over by spaces.
        self.out.write(f"\r{text.ljust(self._width)}{end}")
        self.out.flush()
        self._width = len(text)


def progress_text(run: run_pb2.Run) -> str:
    progress = run.progress
    share = progress.recorded / progress.total if progress.total else 0.0
    bar = "█" * round(share * _BAR)
    state = word_of(run_pb2.RunState, run.state)
    phase = progress.phase if run.state == run_pb2.RUN_STATE_RUNNING and progress.phase else state
    counts = f"{progress.recorded:,} of {progress.total:,}" if progress.total else ""
    left = f"{progress.eta_seconds:.0f} s left" if progress.HasField("eta_seconds") else ""
    waiting = run.wait.blocked_by if run.state == run_pb2.RUN_STATE_PENDING else ""
    said = " · ".join(part for part in (counts, phase, left, waiting) if part)
    return f"{answering_model(run.order)} {bar:░<{_BAR}} {said}"
