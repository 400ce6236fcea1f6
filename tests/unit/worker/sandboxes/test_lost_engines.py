"""An engine that hangs or goes away loses the sandbox, and never the result of what ran in it."""

import asyncio
from collections.abc import Callable
from types import MappingProxyType, SimpleNamespace
from typing import cast

import aiohttp
import pytest
from aiodocker.containers import DockerContainer
from kubernetes_asyncio.client import CoreV1Api

from services.common.sandboxes.errors import SandboxBlocked, SandboxLost
from services.common.sandboxes.sandbox import Command, SandboxSpec
from services.worker.sandboxes.container.first_process import FirstProcess
from services.worker.sandboxes.container.ports import Container, Life
from services.worker.sandboxes.container.sandbox import ContainerSandbox
from services.worker.sandboxes.docker.container import EngineContainer, FailedStart
from services.worker.sandboxes.kubernetes.container import Pod

AWAY = [TimeoutError(), aiohttp.ServerDisconnectedError(), ConnectionResetError()]


class Away:
    """The API of an engine whose every call fails in one way."""

    id = "id"

    def __init__(self, error: Exception) -> None:
        self._error = error

    async def _fail(self, *_: object, **__: object) -> None:
        raise self._error

    show = delete = exec = read_namespaced_pod = delete_namespaced_pod = _fail


def docker_of(error: Exception) -> Container:
    first = FirstProcess(FailedStart(b""))
    container = cast("DockerContainer", Away(error))
    return EngineContainer(container, first, {}, None, [])  # type: ignore[arg-type]  # no relay is started


def kubernetes_of(error: Exception) -> Container:
    api = cast("CoreV1Api", Away(error))
    return Pod(api, api, "namespace", "name", first=FirstProcess(FailedStart(b"")))


@pytest.mark.parametrize("error", AWAY, ids=repr)
@pytest.mark.parametrize("container_of", [docker_of, kubernetes_of])
async def test_an_engine_that_is_away_loses_the_sandbox_and_its_end_raises_nothing(
    container_of: Callable[[Exception], Container], error: Exception
) -> None:
    container = container_of(error)
    with pytest.raises(SandboxLost):
        await container.life()
    await container.remove()


@pytest.mark.parametrize("error", AWAY, ids=repr)
async def test_a_command_is_lost_with_the_engine(error: Exception) -> None:
    container = docker_of(error)
    with pytest.raises(SandboxLost):
        await container.execute(("true",), has_input=False)


async def test_the_end_of_a_sandbox_raises_nothing_unforeseen() -> None:
    class Broken:
        async def remove(self) -> None:
            raise RuntimeError("unforeseen")

    forgotten: list[ContainerSandbox] = []
    sandbox = ContainerSandbox(cast("Container", Broken()), SandboxSpec(), forgotten.append)
    async with asyncio.timeout(20):
        await sandbox.close()
    assert forgotten == [sandbox]


@pytest.mark.parametrize(
    ("state", "life"),
    [
        ({"Running": True, "OOMKilled": True}, Life.RUNNING),
        ({"Running": False, "OOMKilled": True}, Life.OUT_OF_MEMORY),
        ({"Running": False, "OOMKilled": False}, Life.ENDED),
        ({"Running": False}, Life.ENDED),
    ],
)
async def test_docker_says_why_a_container_ended(state: dict[str, bool], life: Life) -> None:
    class Shown:
        id = "id"

        async def show(self) -> object:
            return {"State": state}

    first = FirstProcess(FailedStart(b""))
    container = EngineContainer(cast("DockerContainer", Shown()), first, {}, None, [])  # type: ignore[arg-type]  # no relay is started
    assert await container.life() is life


@pytest.mark.parametrize(
    ("phase", "reason", "life"),
    [
        ("Running", "", Life.RUNNING),
        ("Failed", "OOMKilled", Life.OUT_OF_MEMORY),
        ("Failed", "Error", Life.ENDED),
    ],
)
async def test_kubernetes_says_why_a_pod_ended(phase: str, reason: str, life: Life) -> None:
    terminated = SimpleNamespace(reason=reason) if reason else None
    status = SimpleNamespace(
        phase=phase, container_statuses=[SimpleNamespace(state=SimpleNamespace(terminated=terminated))]
    )

    class Shown:
        async def read_namespaced_pod(self, *_: str) -> object:
            return SimpleNamespace(metadata=SimpleNamespace(deletion_timestamp=None), status=status)

    api = cast("CoreV1Api", Shown())
    pod = Pod(api, api, "namespace", "name", first=FirstProcess(FailedStart(b"")))
    assert await pod.life() is life


@pytest.mark.parametrize(
    ("life", "error"), [(Life.OUT_OF_MEMORY, SandboxBlocked), (Life.ENDED, SandboxLost)], ids=str
)
async def test_a_container_that_ends_for_its_memory_is_blocked_by_what_it_ran(
    life: Life, error: type[SandboxLost]
) -> None:
    class Ended:
        environment = MappingProxyType[str, str]({})

        async def execute(self, *_: object, **__: object) -> FailedStart:
            return FailedStart(b"")

        async def life(self) -> Life:
            return life

        async def remove(self) -> None:
            pass

    sandbox = ContainerSandbox(cast("Container", Ended()), SandboxSpec(), lambda _: None)
    for _ in range(2):
        with pytest.raises(SandboxLost) as raised:
            await sandbox.run(Command(("true",)))
        assert type(raised.value) is error
    await sandbox.close()
