"""An engine that hangs or goes away loses the sandbox, and never the result of what ran in it."""

import asyncio
from collections.abc import Callable
from typing import cast

import aiohttp
import pytest
from aiodocker.containers import DockerContainer
from kubernetes_asyncio.client import CoreV1Api

from services.common.sandboxes.errors import SandboxLost
from services.common.sandboxes.sandbox import SandboxSpec
from services.worker.sandboxes.container.first_process import FirstProcess
from services.worker.sandboxes.container.ports import Container
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
        await container.is_alive()
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
