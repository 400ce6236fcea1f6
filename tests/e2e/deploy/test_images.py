"""The Dockerfile builds, and its images complete a run as Kubernetes starts them: on read-only roots.

Needs root, buildah and runc, and a base to build on: the Debian that the Dockerfile names, which debootstrap
makes, or an image of buildah's store that PROCTOR_BASE_IMAGE names. It takes minutes: `make test-images`.
"""

import asyncio
import json
import os
import re
import shutil
import subprocess
import sys
import tarfile
import uuid
from collections.abc import AsyncIterator, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import AsyncExitStack, ExitStack, asynccontextmanager, contextmanager
from functools import partial
from io import BytesIO
from pathlib import Path
from typing import Any

import aiohttp
import pytest
import yaml

from proctor.stack.supervision.addresses import choose_addresses
from proctor.stack.supervision.probes import grpc_serves
from tests.fakes.callers import CALLER_KEY
from tests.fakes.dispatch_proof_key import DISPATCH_PROOF_KEY
from tests.fakes.eventually import eventually
from tests.harness.cluster.pod import http_answers
from tests.harness.model_server_process import model_server_process
from tests.harness.servers import nats_server, postgres_server

ROOT = Path(__file__).parents[3]
BASE = os.environ.get("PROCTOR_BASE_IMAGE", "")
BUILDAH = ("buildah", "--storage-driver", "overlay")
# A part of each service that its own extra brings.
SERVICES = {
    "results": "rouge_score",
    "scheduler": "datasets",
    "gateway": "fastapi",
    "worker": "kubernetes_asyncio",
}
BODY = {"model": "openai/fake", "messages": [{"role": "user", "content": "1 + 1 ="}]}
EXTRAS = "gateway,scheduler,results,worker,hub,kubernetes"
Roots = Mapping[str, Path]

pytestmark = [
    pytest.mark.skipif(
        os.geteuid() != 0
        or not all(shutil.which(program) for program in ("buildah", "runc"))
        or not (BASE or shutil.which("debootstrap")),
        reason="images need root, buildah, runc, and debootstrap or a base in PROCTOR_BASE_IMAGE",
    ),
    pytest.mark.timeout(3600),
]


def ran(*command: str, folder: Path | None = None) -> str:
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False, timeout=900)
    assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-3000:]
    return done.stdout.strip()


def buildah(*arguments: str) -> str:
    return ran(*BUILDAH, *arguments)


@contextmanager
def container(image: str) -> Iterator[str]:
    name = buildah("from", "--pull=false", image)
    try:
        yield name
    finally:
        buildah("rm", name)


@pytest.fixture(scope="module")
def base(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    if BASE:
        yield BASE
        return
    image, folder = f"localhost/proctor-base:{uuid.uuid4().hex}", tmp_path_factory.mktemp("debian")
    parts = "--include=python3,python3-venv,ca-certificates"
    ran("debootstrap", "--variant=minbase", parts, _release(), str(folder))
    shutil.rmtree(folder / "var/cache/apt/archives")
    with container("scratch") as name:
        buildah("add", "--quiet", name, str(folder), "/")
        buildah("commit", "--quiet", name, image)
    yield image
    buildah("rmi", image)


def _release() -> str:
    """The Debian that the Dockerfile names."""
    [base] = re.findall(r"^ARG BASE=python:\S+-slim-(\w+)$", (ROOT / "Dockerfile").read_text(), re.MULTILINE)
    return str(base)


@pytest.fixture(scope="module")
def python_of_base(base: str) -> str:
    """The version of Python in it, such as 3.13."""
    with container(base) as name:
        asked = "import sys; print(*sys.version_info[:2], sep='.')"
        return buildah("run", "--isolation", "chroot", name, "--", "python3", "-c", asked)


@pytest.fixture(scope="module")
def context(tmp_path_factory: pytest.TempPathFactory, python_of_base: str) -> Path:
    """The committed files, and a wheelhouse for the Python of the base: a build reaches no index."""
    folder = tmp_path_factory.mktemp("context")
    archive = subprocess.run(
        ("git", "archive", "HEAD"), cwd=ROOT, capture_output=True, check=True, timeout=60
    )
    with tarfile.open(fileobj=BytesIO(archive.stdout)) as files:
        files.extractall(folder, filter="data")
    needs = (f".[{EXTRAS}]", "hatchling>=1.27", "cyclonedx-bom>=7,<8")
    pip = (sys.executable, "-m", "pip", "--quiet")
    # pip builds wheels for its own Python only. Those without compiled parts, some of which the index has as
    # sources only, fit any; the others are fetched for that of the base.
    ran(*pip, "wheel", "-c", "constraints.txt", "-w", "built", *needs, folder=folder)
    (folder / "wheelhouse").mkdir()
    for wheel in folder.glob("built/*-none-any.whl"):
        wheel.rename(folder / "wheelhouse" / wheel.name)
    shutil.rmtree(folder / "built")
    of_base = ("--python-version", python_of_base, "--only-binary=:all:", "--find-links", "wheelhouse")
    ran(*pip, "download", *of_base, "-c", "constraints.txt", "-d", "wheelhouse", *needs, folder=folder)
    for wheel in folder.glob("wheelhouse/proctor_eval-*.whl"):
        wheel.unlink()
    return folder


@pytest.fixture(scope="module")
def roots(base: str, context: Path) -> Iterator[Roots]:
    """The file system of each image."""
    images = {service: f"localhost/proctor-{service}:{uuid.uuid4().hex}" for service in SERVICES}

    def build(service: str) -> None:
        arguments = {"BASE": base, "SERVICE": service, "PIP_NO_INDEX": "1"}
        given = [part for name, value in arguments.items() for part in ("--build-arg", f"{name}={value}")]
        buildah("bud", "--quiet", "--isolation", "chroot", *given, "--tag", images[service], str(context))

    # Each waits for its disk half of the time.
    with ThreadPoolExecutor(2) as builds:
        list(builds.map(build, images))
    with ExitStack() as made:
        found = {}
        for service, image in images.items():
            made.callback(buildah, "rmi", image)
            found[service] = Path(buildah("mount", made.enter_context(container(image))))
            size = int(ran("du", "--summarize", "--bytes", str(found[service])).split()[0])
            print(f"proctor-{service}: {size / 1e6:.0f} MB")  # noqa: T201  # with pytest -s
        yield found


@pytest.mark.parametrize("service", SERVICES)
def test_image_lists_what_it_is_made_of_and_has_neither_pip_nor_a_compiler(
    roots: Roots, service: str
) -> None:
    root = roots[service]
    parts = json.loads((root / "opt/proctor/sbom.json").read_text())
    names = {component["name"] for component in parts["components"]}
    assert {"proctor-eval", "grpcio", SERVICES[service]} <= names
    assert "libc6" in (root / "opt/proctor/debian-packages.txt").read_text()
    assert not list(root.glob("opt/proctor/bin/pip*"))
    assert not [name for name in ("gcc", "cc", "make") if (root / "usr/bin" / name).exists()]


async def test_images_complete_a_run_as_another_user_on_read_only_roots(roots: Roots, tmp_path: Path) -> None:
    async with AsyncExitStack() as running:
        model = await running.enter_async_context(model_server_process())
        postgres = await running.enter_async_context(postgres_server())
        nats = await running.enter_async_context(nats_server())
        pool = {
            "name": "remote",
            "engine": "openai",
            "provider": "openai",
            "base_url": model.url,
            "concurrency": 8,
        }
        (tmp_path / "pools.yaml").write_text(yaml.safe_dump({"pools": [pool]}))
        addresses = dict(zip((*SERVICES, "http"), choose_addresses(5), strict=True))
        environment = {
            "PROCTOR_RESULTS_ADDRESS": str(addresses["results"]),
            "PROCTOR_SCHEDULER_ADDRESS": str(addresses["scheduler"]),
            "PROCTOR_GATEWAY_GRPC_ADDRESS": str(addresses["gateway"]),
            "PROCTOR_GATEWAY_HTTP_ADDRESS": str(addresses["http"]),
            "PROCTOR_WORKER_HEALTH_ADDRESS": str(addresses["worker"]),
            "PROCTOR_WORKER_POOL": "remote",
            "PROCTOR_POOLS_FILE": "/mnt/pools.yaml",
            "PROCTOR_POSTGRES_DSN": postgres.address,
            "PROCTOR_NATS_URL": nats.address,
            "PROCTOR_DISPATCH_PROOF_KEY": DISPATCH_PROOF_KEY,
            "PROCTOR_CALLER_KEY": CALLER_KEY,
        }
        for service in SERVICES:
            await running.enter_async_context(started(service, roots[service], environment, tmp_path))
            if service != "gateway":
                serving = partial(grpc_serves, str(addresses[service]))
                await eventually(serving, f"{service} serves", 60)
        url = f"http://{addresses['http']}"
        await eventually(lambda: http_answers(f"{url}/readyz"), "the gateway is ready", 60)
        assert (await finished_run(url))["status"] == "completed"
        await upload_rows_and_a_batch_file(url)


async def upload_rows_and_a_batch_file(url: str) -> None:
    """Uploads are checked in a process of its own, whose ways differ between versions of Python."""
    rows = aiohttp.FormData()
    rows.add_field("file", b'{"prompt": "1 + 1 ="}\n{"prompt": "2 + 2 ="}\n', filename="rows.jsonl")
    line = {"custom_id": "1", "method": "POST", "url": "/v1/chat/completions", "body": BODY}
    lines = aiohttp.FormData({"purpose": "batch"})
    lines.add_field("file", json.dumps(line).encode(), filename="batch.jsonl")
    async with aiohttp.ClientSession() as session:
        async with session.post(f"{url}/admin/datasets/upload", data=rows) as response:
            assert response.status == 200, await response.text()
            assert (await response.json())["count"] == 2
        async with session.post(f"{url}/v1/files", data=lines) as response:
            assert response.status == 200, await response.text()
            assert (await response.json())["purpose"] == "batch"


async def finished_run(url: str) -> dict[str, Any]:
    order = {"project_id": 1, "suite": "starter", "config": {"provider": "openai", "model": "fake"}}
    async with aiohttp.ClientSession(raise_for_status=True) as session:
        async with session.post(f"{url}/api/v1/benchmarking/run", json=order) as response:
            job = (await response.json())["job_id"]
        found: dict[str, Any] = {}

        async def is_over() -> bool:
            async with session.get(f"{url}/api/v1/benchmarking/results/{job}") as response:
                found.update(await response.json())
            return found["status"] in ("completed", "failed", "cancelled")

        await eventually(is_over, "the run ends", 60)
        return found


@asynccontextmanager
async def started(
    service: str, root: Path, environment: Mapping[str, str], folder: Path
) -> AsyncIterator[None]:
    """Its container runs, and ends by itself after SIGTERM."""
    name, bundle = f"proctor-{uuid.uuid4().hex}", folder / service
    bundle.mkdir()
    given = ["HOME=/tmp", "PATH=/opt/proctor/bin:/usr/bin:/bin"]
    given += [f"{variable}={value}" for variable, value in environment.items()]
    command = ["/opt/proctor/bin/python3", "-P", "-m", f"services.{service}"]
    (bundle / "config.json").write_text(json.dumps(_spec(root, command, given, folder / "pools.yaml")))
    log = (bundle / "log").open("wb")
    running = subprocess.Popen(("runc", "run", "--bundle", str(bundle), name), stdout=log, stderr=log)  # noqa: ASYNC220  # it only starts
    try:
        yield
        assert b"Read-only file system" in within(name, "touch", "/opt/x").stderr
        assert within(name, "id", "-u").stdout.strip() == b"10001"
    except BaseException as error:
        error.add_note((bundle / "log").read_text()[-3000:])
        raise
    finally:
        running.terminate()
        code = await asyncio.to_thread(running.wait, 60)
        log.close()
    assert code == 0, f"{service} did not end by itself after SIGTERM"


def within(name: str, *command: str) -> subprocess.CompletedProcess[bytes]:
    """What a program in the container of that name wrote."""
    return subprocess.run(("runc", "exec", name, *command), capture_output=True, check=False, timeout=30)


def _spec(root: Path, command: list[str], environment: list[str], pools: Path) -> dict[str, Any]:
    """As the kubelet would run it, but on the network of this machine."""
    private = ["nosuid", "mode=1777"]
    mounts = [
        {"destination": "/proc", "type": "proc", "source": "proc"},
        {"destination": "/dev", "type": "tmpfs", "source": "tmpfs", "options": ["nosuid", "mode=755"]},
        {"destination": "/dev/shm", "type": "tmpfs", "source": "tmpfs", "options": private},
        {"destination": "/tmp", "type": "tmpfs", "source": "tmpfs", "options": private},
        {"destination": "/mnt/pools.yaml", "type": "bind", "source": str(pools), "options": ["bind", "ro"]},
    ]
    return {
        "ociVersion": "1.0.2",
        "process": {
            "user": {"uid": 10001, "gid": 10001},
            "args": command,
            "env": environment,
            "cwd": "/tmp",
            "capabilities": {},
            "noNewPrivileges": True,
        },
        "root": {"path": str(root), "readonly": True},
        "mounts": mounts,
        "linux": {"namespaces": [{"type": "pid"}, {"type": "mount"}, {"type": "ipc"}]},
    }
