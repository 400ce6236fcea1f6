"""Makes the engine of sandboxes that the settings name."""

import asyncio
import math
import os
from contextlib import suppress
from dataclasses import dataclass
from importlib.util import find_spec

from services.common.sandboxes.bubblewrap.engine import BubblewrapEngine, find_bubblewrap
from services.common.sandboxes.errors import CannotIsolate, SandboxError
from services.common.sandboxes.ports import ImageBuilder, Sandbox, SandboxEngine
from services.common.sandboxes.sandbox import Isolation, SandboxSpec
from services.common.structured_logs import get_logger
from services.worker.sandboxes.allowed_images import ANY_IMAGE, read_allowed
from services.worker.sandboxes.bounded_engine import BoundedEngine
from services.worker.sandboxes.docker.builder import DockerBuilder
from services.worker.sandboxes.docker.engine import DockerEngine
from services.worker.settings import WorkerSettings

# A worker does not wait longer for its start; what is left then is removed at the next one.
_SWEEP_SECONDS = 15.0
ENGINES = ("process", "docker", "kubernetes", "modal")
# Their sandboxes run on other machines than their worker.
_ELSEWHERE = frozenset({"kubernetes", "modal"})

log = get_logger()


@dataclass(frozen=True, slots=True)
class AbsentEngine:
    """The place of an engine whose package is not installed."""

    name: str
    problem: str

    async def check(self) -> Isolation:
        return Isolation(engine=self.name, problem=self.problem)

    async def sweep(self) -> int:
        return 0

    async def open(self, spec: SandboxSpec) -> Sandbox:  # noqa: ARG002  # the port
        raise CannotIsolate(problem=self.problem)

    async def close(self) -> None:
        """Nothing is open."""


def make_sandboxes(settings: WorkerSettings, name: str = "", *, pulls: bool = True) -> SandboxEngine:
    """`name` is one of ENGINES, and that of the settings where it is empty. `pulls`: absent images."""
    kind = name or settings.sandbox_engine
    machine_cpus = math.inf if kind in _ELSEWHERE else os.cpu_count() or 1
    # The engine of processes says of every image that it needs containers.
    allowed = (ANY_IMAGE,) if kind == "process" else read_allowed(settings.sandbox_images)
    return BoundedEngine(
        engine=_make_engine(settings, kind, pulls=pulls),
        images=(settings.sandbox_image, *allowed),
        max_memory_bytes=settings.sandbox_max_memory_bytes,
        max_cpus=settings.sandbox_max_cpus or machine_cpus,
    )


def make_builder(settings: WorkerSettings) -> ImageBuilder | None:
    """None where images of tasks are not built."""
    if settings.sandbox_engine != "docker" or settings.sandbox_builds == "no":
        return None
    return DockerBuilder(
        unix_socket=str(settings.sandbox_socket),
        images=(settings.sandbox_image, *read_allowed(settings.sandbox_images)),
        has_network=settings.sandbox_builds == "network",
    )


def _make_engine(settings: WorkerSettings, kind: str, *, pulls: bool) -> SandboxEngine:
    if kind == "kubernetes":
        return _make_kubernetes(settings)
    if kind == "modal":
        return _make_modal(settings)
    if kind == "docker":
        return DockerEngine(
            unix_socket=str(settings.sandbox_socket), image=settings.sandbox_image, pulls=pulls
        )
    return BubblewrapEngine(program=find_bubblewrap())


def _make_kubernetes(settings: WorkerSettings) -> SandboxEngine:
    if absent := _absent("kubernetes", "kubernetes_asyncio"):
        return absent
    from services.worker.sandboxes.kubernetes import engine  # noqa: PLC0415  # an extra

    pods = engine.PodSettings(
        namespace=settings.sandbox_namespace,
        image=settings.sandbox_image,
        runtime_class=settings.sandbox_runtime_class,
    )
    return engine.KubernetesEngine(settings=pods)


def _make_modal(settings: WorkerSettings) -> SandboxEngine:
    if settings.sandbox_engine != "modal":
        return AbsentEngine(
            name="modal", problem="it is tried where it is selected only, since it costs money."
        )
    if absent := _absent("modal", "modal"):
        return absent
    from services.worker.sandboxes.modal import engine  # noqa: PLC0415  # an extra

    return engine.ModalEngine(
        settings=engine.ModalSettings(app=settings.sandbox_app, image=settings.sandbox_image)
    )


def _absent(name: str, package: str) -> AbsentEngine | None:
    """The client of a service is an extra: a worker without it says so where a sandbox is needed."""
    if find_spec(package):
        return None
    return AbsentEngine(
        name=name, problem=f"its client is not installed (pip install 'proctor-eval[{name}]')."
    )


async def sweep(engine: SandboxEngine) -> None:
    """Removes what killed workers left. An engine that does not answer is reported by the first rollout."""
    with suppress(SandboxError, OSError):
        async with asyncio.timeout(_SWEEP_SECONDS):
            swept = await engine.sweep()
        if swept:
            log.info("swept sandboxes of workers that are gone", sandboxes=swept)
