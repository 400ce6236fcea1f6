"""The Dockerfile builds, and its image starts as Kubernetes runs it: another user, nothing to write but /tmp.

Needs root, buildah and runc, and in PROCTOR_BASE_IMAGE an image of buildah's store to build on: a Debian with
Python 3.11. It takes minutes, so it runs by hand, before a release.
"""

import json
import os
import shutil
import subprocess
import sys
import tarfile
import uuid
from collections.abc import Iterator
from io import BytesIO
from pathlib import Path
from typing import Any

import pytest

from tests.fakes.eventually import eventually
from tests.harness.cluster.pod import http_answers

ROOT = Path(__file__).parents[3]
BASE = os.environ.get("PROCTOR_BASE_IMAGE", "")
BUILDAH = ("buildah", "--storage-driver", "overlay")
PORT = 18080

pytestmark = pytest.mark.skipif(
    not BASE or shutil.which("buildah") is None or shutil.which("runc") is None or os.geteuid() != 0,
    reason="images are built where root has buildah and runc, and PROCTOR_BASE_IMAGE names a base image",
)


def buildah(*arguments: str) -> str:
    done = subprocess.run(
        (*BUILDAH, *arguments),
        capture_output=True,
        text=True,
        check=False,
        timeout=540,
    )
    assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-3000:]
    return done.stdout.strip()


def within(name: str, *command: str) -> subprocess.CompletedProcess[bytes]:
    """What a program in the container of that name wrote."""
    return subprocess.run(("runc", "exec", name, *command), capture_output=True, check=False, timeout=30)


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """The file system of the gateway's image, built from the committed files and a wheelhouse."""
    context = tmp_path_factory.mktemp("context")
    archive = subprocess.run(
        ("git", "archive", "HEAD"), cwd=ROOT, capture_output=True, check=True, timeout=60
    ).stdout
    with tarfile.open(fileobj=BytesIO(archive)) as files:
        files.extractall(context, filter="data")
    needs = (".[gateway]", "hatchling>=1.27", "cyclonedx-bom>=7,<8")
    wheels = (sys.executable, "-m", "pip", "wheel", "--quiet", "-c", "constraints.txt", "-w", "wheelhouse")
    subprocess.run(
        (*wheels, *needs),
        cwd=context,
        check=True,
        timeout=540,
    )
    for wheel in context.glob("wheelhouse/proctor-*.whl"):
        wheel.unlink()
    arguments = {"BASE": BASE, "SERVICE": "gateway", "PIP_NO_INDEX": "1"}
    given = [part for name, value in arguments.items() for part in ("--build-arg", f"{name}={value}")]
    image = f"localhost/proctor-gateway:{uuid.uuid4().hex}"
    buildah("bud", "--quiet", "--isolation", "chroot", *given, "--tag", image, str(context))
    container = buildah("from", image)
    yield Path(buildah("mount", container))
    buildah("rm", container)
    buildah("rmi", image)


def test_image_lists_what_it_is_made_of_and_has_neither_pip_nor_a_compiler(root: Path) -> None:
    parts = json.loads((root / "opt/proctor/sbom.json").read_text())
    names = {component["name"] for component in parts["components"]}
    assert {"proctor", "grpcio", "fastapi"} <= names
    assert "libc6" in (root / "opt/proctor/debian-packages.txt").read_text()
    assert not list(root.glob("opt/proctor/bin/pip*"))
    assert not [name for name in ("gcc", "cc", "make") if (root / "usr/bin" / name).exists()]


async def test_service_starts_as_another_user_on_a_read_only_root(root: Path, tmp_path: Path) -> None:
    command = ["/opt/proctor/bin/python3", "-P", "-m", "services.gateway"]
    environment = [
        "HOME=/tmp",
        "PATH=/opt/proctor/bin:/usr/bin:/bin",
        f"PROCTOR_GATEWAY_HTTP_ADDRESS=127.0.0.1:{PORT}",
        f"PROCTOR_GATEWAY_GRPC_ADDRESS=127.0.0.1:{PORT + 1}",
    ]
    name = f"proctor-{uuid.uuid4().hex}"
    (tmp_path / "config.json").write_text(json.dumps(_spec(root, command, environment)))
    running = subprocess.Popen(("runc", "run", "--bundle", str(tmp_path), name), stderr=subprocess.PIPE)  # noqa: ASYNC220  # it only starts
    try:
        await eventually(lambda: http_answers(f"http://127.0.0.1:{PORT}/healthz"), "an answer", 60)
        write = within(name, "touch", "/opt/x")
        assert b"Read-only file system" in write.stderr
        user = within(name, "id", "-u")
        assert user.stdout.strip() == b"10001"
    finally:
        running.terminate()
    assert running.wait(30) == 0, "it did not end by itself after SIGTERM"


def _spec(root: Path, command: list[str], environment: list[str]) -> dict[str, Any]:
    """As the kubelet would run it, but on the network of this machine."""
    mounts = [
        {"destination": "/proc", "type": "proc", "source": "proc"},
        {"destination": "/dev", "type": "tmpfs", "source": "tmpfs", "options": ["nosuid", "mode=755"]},
        {"destination": "/tmp", "type": "tmpfs", "source": "tmpfs", "options": ["nosuid", "mode=1777"]},
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
