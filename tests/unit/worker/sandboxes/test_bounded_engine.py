"""A task cannot have more of the worker's machine than its operator gives to one sandbox."""

from typing import cast

import pytest

from services.worker.sandboxes.bounded_engine import BoundedEngine
from services.worker.sandboxes.errors import SandboxError
from services.worker.sandboxes.ports import Sandbox, SandboxEngine
from services.worker.sandboxes.sandbox import SandboxLimits, SandboxSpec
from services.worker.sandboxes.wiring import make_sandboxes
from services.worker.settings import WorkerSettings

GIB = 1024**3


class Opened:
    """An engine that opens anything."""

    def __init__(self) -> None:
        self.specs: list[SandboxSpec] = []

    async def open(self, spec: SandboxSpec) -> Sandbox:
        self.specs.append(spec)
        return cast("Sandbox", object())


async def test_sandbox_above_a_bound_is_refused_with_the_setting_and_none_is_opened() -> None:
    inner = Opened()
    engine = BoundedEngine(engine=cast("SandboxEngine", inner), max_memory_bytes=2 * GIB, max_cpus=2)
    with pytest.raises(
        SandboxError, match=r"asks for 1,048,576 MiB of memory, .* 2,048 MiB .*SANDBOX_MAX_MEMORY_BYTES"
    ):
        await engine.open(SandboxSpec(limits=SandboxLimits(memory_bytes=1024 * GIB)))
    with pytest.raises(SandboxError, match=r"asks for 2.5 CPUs, .* at most 2 .*SANDBOX_MAX_CPUS"):
        await engine.open(SandboxSpec(limits=SandboxLimits(cpus=2.5)))
    assert not inner.specs
    await engine.open(SandboxSpec(limits=SandboxLimits(cpus=2, memory_bytes=2 * GIB)))
    assert len(inner.specs) == 1


def test_every_engine_of_a_worker_is_bounded() -> None:
    for name in ("process", "docker", "kubernetes"):
        engine = make_sandboxes(WorkerSettings(), name)
        assert isinstance(engine, BoundedEngine)
        assert engine.max_memory_bytes == 16 * GIB
        assert engine.max_cpus >= 1
