"""The bounds of a sandbox, which the operator sets: tasks are users', and say themselves what they need."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

from services.common.sandboxes.errors import ImageNotAllowed, SandboxTooLarge
from services.common.sandboxes.ports import Sandbox, SandboxEngine
from services.common.sandboxes.sandbox import Isolation, SandboxSpec
from services.worker.sandboxes.allowed_images import is_allowed

_MIB = 1024**2


@dataclass(frozen=True, slots=True, kw_only=True)
class BoundedEngine:
    """An engine that opens no sandbox above its bounds, and none from another image than these.

    `max_cpus` may be infinite. `images` are prefixes.
    """

    engine: SandboxEngine
    images: Sequence[str]
    max_memory_bytes: int
    max_cpus: float

    async def check(self) -> Isolation:
        return await self.engine.check()

    async def sweep(self) -> int:
        return await self.engine.sweep()

    async def open(self, spec: SandboxSpec) -> Sandbox:
        """Raises `SandboxTooLarge` and `ImageNotAllowed` beside the errors of the engine."""
        if spec.image and not is_allowed(spec.image, self.images):
            raise ImageNotAllowed(image=spec.image)
        limits = spec.limits
        if spec.can_lower_limits:
            lowered = replace(
                limits,
                cpus=min(limits.cpus, self.max_cpus),
                memory_bytes=min(limits.memory_bytes, self.max_memory_bytes),
            )
            return await self.engine.open(replace(spec, limits=lowered))
        if limits.memory_bytes > self.max_memory_bytes:
            raise SandboxTooLarge(
                wanted=f"{limits.memory_bytes // _MIB:,} MiB of memory",
                maximum=f"{self.max_memory_bytes // _MIB:,} MiB",
                setting="PROCTOR_WORKER_SANDBOX_MAX_MEMORY_BYTES",
            )
        if limits.cpus > self.max_cpus:
            raise SandboxTooLarge(
                wanted=f"{limits.cpus:g} CPUs",
                maximum=f"{self.max_cpus:g}",
                setting="PROCTOR_WORKER_SANDBOX_MAX_CPUS",
            )
        return await self.engine.open(spec)

    async def close(self) -> None:
        await self.engine.close()
