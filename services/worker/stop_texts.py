"""Stop sequences that a server does not take: the answer ends where it would have ended there."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from services.worker.engine import Generated


def cut_at_stops(generated: Generated, stops: Sequence[str]) -> Generated:
    """Up to the first of the stop sequences, without it; what was generated after it stays counted."""
    found = [at for stop in stops if stop and (at := generated.text.find(stop)) >= 0]
    if not found:
        return generated
    return replace(generated, text=generated.text[: min(found)], finish_reason="stop")
