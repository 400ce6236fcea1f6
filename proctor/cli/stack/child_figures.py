"""Figures of the services of the local stack, read from their metrics."""

import asyncio
import urllib.request
from collections.abc import Mapping
from dataclasses import dataclass
from http.client import HTTPException

from proctor.stack.state import StackState

_READ_SECONDS = 1.0
_MIB = 1024 * 1024


@dataclass(frozen=True, slots=True)
class ChildFigures:
    """`answered` and `failed` are samples of a worker since it started, `rate_limited` its requests."""

    memory_bytes: int = 0
    answered: int | None = None
    failed: int | None = None
    rate_limited: int | None = None

    @property
    def text(self) -> str:
        parts = [f"{self.memory_bytes / _MIB:.0f} MiB"] if self.memory_bytes else []
        if self.answered is not None:
            parts.append(f"{self.answered} samples")
        if self.failed:
            parts.append(f"{self.failed} failed")
        if self.rate_limited:
            parts.append(f"{self.rate_limited} rate limited")
        return ", ".join(parts)


async def read_figures(stack: StackState) -> Mapping[str, ChildFigures]:
    """Figures by the names of children; one that does not answer within a second is left out."""
    names = [name for name, child in stack.children.items() if child.metrics]
    texts = await asyncio.gather(*(asyncio.to_thread(_read, stack.children[name].metrics) for name in names))
    return {name: figures_in(text) for name, text in zip(names, texts, strict=True) if text}


def _read(address: str) -> str:
    try:
        with urllib.request.urlopen(
            f"http://{address}/metrics", timeout=_READ_SECONDS
        ) as response:  # our own stack
            return str(response.read().decode())
    except (OSError, HTTPException):
        return ""


def figures_in(text: str) -> ChildFigures:
    """Reads a text in the format of Prometheus."""
    from prometheus_client.parser import (  # noqa: PLC0415  # of the extra `stack`
        text_string_to_metric_families,
    )

    values: dict[tuple[str, str], float] = {}
    for family in text_string_to_metric_families(text):
        for sample in family.samples:
            key = sample.name, sample.labels.get("result", "")
            values[key] = values.get(key, 0.0) + sample.value
    is_worker = ("proctor_worker_concurrency", "") in values
    outcomes = {result: count for (name, result), count in values.items() if name == "proctor_samples_total"}
    answered = int(outcomes.pop("answered", 0))
    return ChildFigures(
        memory_bytes=int(values.get(("process_resident_memory_bytes", ""), 0)),
        answered=answered if is_worker else None,
        failed=int(sum(outcomes.values())) if is_worker else None,
        rate_limited=int(values.get(("proctor_rate_limited_requests_total", ""), 0)) if is_worker else None,
    )
