"""Every engine that runs on this machine. The process engine runs twice: as the root that has control groups,
and as a user who has nothing. The docker engine runs against podman's service.
"""

import os
import shutil
import sys
import tempfile
from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from kubernetes_asyncio.client import Configuration

from services.common.sandboxes.bubblewrap.engine import BubblewrapEngine, find_bubblewrap
from services.common.sandboxes.bubblewrap.launcher_client import LauncherClient
from services.common.sandboxes.ports import Sandbox, SandboxEngine
from services.common.sandboxes.sandbox import Network, SandboxLimits, SandboxSpec
from services.worker.sandboxes.docker.engine import DockerEngine
from services.worker.sandboxes.kubernetes.engine import KubernetesEngine, PodSettings
from services.worker.sandboxes.modal.engine import ModalEngine, ModalSettings
from tests.fakes.worker.modal_cloud import ModalCloud, fake_cloud
from tests.integration.worker.sandboxes.attempts import files, kernel, network, processes
from tests.integration.worker.sandboxes.cluster import Cluster, fake_cluster
from tests.integration.worker.sandboxes.podman import BASE_IMAGE, Podman, podman_service, problem

MIB = 1024**2
# A small one: what is tried in it is to meet its limits soon.
SMALL = SandboxSpec(
    limits=SandboxLimits(cpus=0.5, memory_bytes=128 * MIB, disk_bytes=32 * MIB, processes=32, files=20_000),
    network=Network.MODEL,
    lifetime_seconds=120.0,
)
_PACKAGE = ("services", "common", "sandboxes", "bubblewrap", "launcher")
_PLAIN_PYTHON = shutil.which("python3", path="/usr/bin:/usr/local/bin") or sys.executable
_UNPRIVILEGED = "process without privileges"
_WITHOUT_PRIVILEGES = ("setpriv", "--reuid=200500", "--regid=200500", "--clear-groups", _PLAIN_PYTHON)


@pytest.fixture(scope="session")
def readable_root() -> Iterator[str]:
    """The launcher's code where any user may read it, wherever the checkout lies."""
    with tempfile.TemporaryDirectory() as folder:
        copied = Path(folder, *_PACKAGE)
        package = Path(__file__).parents[4].joinpath(*_PACKAGE)
        shutil.copytree(package, copied)
        shutil.copy(package.parents[1] / "refused_calls.py", copied.parents[1])
        Path(folder).chmod(0o755)
        yield folder


def make_engine(kind: str, root: str) -> BubblewrapEngine:
    program = find_bubblewrap()
    if kind == _UNPRIVILEGED and os.geteuid() == 0:
        return BubblewrapEngine(program, launcher=LauncherClient(_WITHOUT_PRIVILEGES, root))
    return BubblewrapEngine(program)


PROCESS_ENGINES = ("process", _UNPRIVILEGED) if os.geteuid() == 0 else (_UNPRIVILEGED,)
ENGINES = PROCESS_ENGINES if problem() else (*PROCESS_ENGINES, "docker")
# Pods of the fake cluster and sandboxes of the fake cloud show the contract; what holds code there is the
# runtime of a real one.
FAKED_ENGINES = ("kubernetes", "modal")
CONTRACT_ENGINES = ENGINES if problem() else (*ENGINES, *FAKED_ENGINES)
# What gives up the privileges of a command at Modal is a program of ours, which the fake cloud executes.
ESCAPED_ENGINES = ENGINES if problem() else (*ENGINES, "modal")
_CONTRACT = "test_sandbox_contract"
_ENGINES_OF = {_CONTRACT: CONTRACT_ENGINES, "test_escapes": ESCAPED_ENGINES}


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    marks = metafunc.definition.iter_markers("parametrize")
    if "engine" in metafunc.fixturenames and not any(mark.args[0] == "engine" for mark in marks):
        module = metafunc.module.__name__.rpartition(".")[2]
        metafunc.parametrize("engine", _ENGINES_OF.get(module, ENGINES), indirect=True)


# `make test` makes all their attempts in the first engine, and in each other one of every kind; likewise the
# cases of the contract.
_ATTEMPTED = ("test_escapes", "test_abuse", "test_hostile_files", "test_verifier_cheats")
_KINDS = {
    attempt.name: module.__name__
    for module in (files, kernel, network, processes)
    for attempt in module.ATTEMPTS
}


def pytest_collection_modifyitems(items: Sequence[pytest.Item]) -> None:
    """Leaves the other attempts in the other engines to `make test-thorough`, and the engine without root."""
    tried: set[tuple[str, str, str]] = set()
    for item in items:
        if item.path.parent != Path(__file__).parent or item.path.stem not in (_CONTRACT, *_ATTEMPTED):
            continue
        parameters: dict[str, Any] = item.callspec.params if hasattr(item, "callspec") else {}
        is_of_one_engine = any(mark.args[0] == "engine" for mark in item.iter_markers("parametrize"))
        engine = parameters.get("engine", ENGINES[0])
        if is_of_one_engine or engine == ENGINES[0]:
            continue
        if item.path.stem == _CONTRACT:
            kind = engine, getattr(item, "originalname", item.name), ""
            # The other engines show a third of the contract, each another one.
            tried_there = {each for each in tried if each[0] == engine}
            is_left_out = len(tried_there) % 3 != CONTRACT_ENGINES.index(engine) % 3
            if engine == _UNPRIVILEGED or kind in tried or is_left_out:
                item.add_marker(pytest.mark.thorough)
            tried.add(kind)
            continue
        kind = item.path.stem, engine, _KINDS.get(getattr(parameters.get("attempt"), "name", ""), "")
        if kind in tried:
            item.add_marker(pytest.mark.thorough)
        tried.add(kind)


def kubernetes_engine(cluster: Cluster, image: str = BASE_IMAGE) -> KubernetesEngine:
    async def configure() -> Configuration:
        return Configuration(host=cluster.url)

    return KubernetesEngine(PodSettings("sandboxes", image), configure)


def modal_engine(cloud: ModalCloud, image: str = BASE_IMAGE, silence_seconds: float = 60.0) -> ModalEngine:
    return ModalEngine(ModalSettings("proctor-sandboxes", image, silence_seconds), cloud.client)


@pytest.fixture(scope="session")
def podman() -> Iterator[Podman]:
    with podman_service() as running:
        yield running


@pytest.fixture
async def cluster(podman: Podman) -> AsyncIterator[Cluster]:
    async with fake_cluster(podman.socket) as running:
        yield running


@pytest.fixture
async def cloud(podman: Podman) -> AsyncIterator[ModalCloud]:
    async with fake_cloud(podman.socket) as running:
        yield running


@asynccontextmanager
async def opened_engine(kind: str, request: pytest.FixtureRequest) -> AsyncIterator[SandboxEngine]:
    """An engine of the kind, until the end. It starts podman and other parts that it needs."""
    async with AsyncExitStack() as opened:
        made: SandboxEngine
        if kind == "kubernetes":
            made = kubernetes_engine(
                await opened.enter_async_context(fake_cluster(request.getfixturevalue("podman").socket))
            )
        elif kind == "modal":
            made = modal_engine(
                await opened.enter_async_context(fake_cloud(request.getfixturevalue("podman").socket))
            )
        elif kind == "docker":
            made = DockerEngine(request.getfixturevalue("podman").socket, BASE_IMAGE)
        else:
            made = make_engine(kind, request.getfixturevalue("readable_root"))
        yield made
        await made.close()


@pytest.fixture
async def engine(request: pytest.FixtureRequest) -> AsyncIterator[SandboxEngine]:
    # For `attempt_table`.
    request.node.user_properties.append(("engine", request.param))
    async with opened_engine(request.param, request) as made:
        yield made


@pytest.fixture
async def sandbox(engine: SandboxEngine) -> AsyncIterator[Sandbox]:
    opened = await engine.open(SMALL)
    yield opened
    await opened.close()
