"""Makes the engine of sandboxes that the settings name."""

from contextlib import suppress

from services.common.structured_logs import get_logger
from services.worker.sandboxes.bubblewrap.engine import BubblewrapEngine, find_bubblewrap
from services.worker.sandboxes.docker.engine import DockerEngine
from services.worker.sandboxes.errors import SandboxError
from services.worker.sandboxes.ports import SandboxEngine
from services.worker.settings import WorkerSettings

ENGINES = ("process", "docker")

log = get_logger()


def make_sandboxes(settings: WorkerSettings, name: str = "", *, pulls: bool = True) -> SandboxEngine:
    """`name` is one of ENGINES, and that of the settings where it is empty. `pulls`: absent images."""
    if (name or settings.sandbox) == "docker":
        return DockerEngine(
            unix_socket=str(settings.sandbox_socket), image=settings.sandbox_image, pulls=pulls
        )
    return BubblewrapEngine(find_bubblewrap())


async def sweep(engine: SandboxEngine) -> None:
    """Removes what killed workers left. An engine that does not answer is reported by the first rollout."""
    with suppress(SandboxError):
        if swept := await engine.sweep():
            log.info("swept sandboxes of workers that are gone", sandboxes=swept)
