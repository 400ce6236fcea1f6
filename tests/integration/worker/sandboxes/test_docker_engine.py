"""The docker engine alone: containers that end with their worker, images, an engine that is away."""

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import AsyncIterator
from dataclasses import replace
from pathlib import Path

import pytest

from services.common.sandboxes.errors import CannotIsolate, SandboxLost, SandboxNotOpened
from services.common.sandboxes.sandbox import Command, SandboxSpec
from services.worker.sandboxes.docker.engine import DockerEngine
from services.worker.sandboxes.docker.owners import LABEL, labels
from tests.harness.processes import bound, killed_at_the_end
from tests.integration.worker.sandboxes.conftest import SMALL
from tests.integration.worker.sandboxes.podman import BASE_IMAGE, Podman, problem

needs_podman = pytest.mark.skipif(bool(problem()), reason=problem())
_END_SECONDS = 30.0


@pytest.fixture
async def docker(podman: Podman) -> AsyncIterator[DockerEngine]:
    engine = DockerEngine(podman.socket, BASE_IMAGE)
    yield engine
    await engine.close()


def containers(podman: Podman) -> set[str]:
    listed = podman.run("ps", "--all", "--quiet", "--filter", f"label={LABEL}")
    return set(listed.split())


def wait_for_none(podman: Podman, of: set[str]) -> None:
    deadline = time.monotonic() + _END_SECONDS
    while left := containers(podman) & of:
        assert time.monotonic() < deadline, left


@needs_podman
def test_containers_end_with_their_worker_without_a_sweep(podman: Podman) -> None:
    before = containers(podman)
    program = Path(__file__).with_name("killed_worker.py")
    root = str(Path(__file__).resolve().parents[4])
    command = bound(sys.executable, str(program), "docker", podman.socket, BASE_IMAGE)
    with killed_at_the_end(
        subprocess.Popen(command, stdout=subprocess.PIPE, env={**os.environ, "PYTHONPATH": root})
    ) as worker:
        assert worker.stdout is not None
        assert worker.stdout.readline() == b"3 opened\n"
        made = containers(podman) - before
        assert len(made) == 3
        worker.send_signal(signal.SIGKILL)
    wait_for_none(podman, made)


@needs_podman
async def test_the_next_worker_sweeps_what_was_made_and_never_started(
    podman: Podman, docker: DockerEngine
) -> None:
    # A process of this number has started at another time than that.
    owner = {**labels({}), "proctor.sandbox.owner": f"{_machine()}.{os.getpid()}.1"}
    options = [option for name, value in owner.items() for option in ("--label", f"{name}={value}")]
    left = podman.run("create", *options, BASE_IMAGE, "true").strip()
    own = await docker.open(SMALL)
    other = podman.run("create", BASE_IMAGE, "true").strip()
    # A container of a worker elsewhere, which may start it at once.
    elsewhere = ("--label", f"{LABEL}=1", "--label", "proctor.sandbox.owner=elsewhere.1.1")
    young = podman.run("create", *elsewhere, BASE_IMAGE, "true").strip()
    assert await docker.sweep() == 1
    assert (await own.run(Command(("echo", "mine")))).text == "mine\n"
    kept = podman.run("ps", "--all", "--quiet", "--no-trunc")
    assert left not in kept
    assert other in kept
    assert young in kept
    podman.run("rm", other, young)


def _machine() -> str:
    return labels({})["proctor.sandbox.owner"].split(".")[0]


@needs_podman
async def test_a_container_has_no_privileges(podman: Podman, docker: DockerEngine) -> None:
    before = containers(podman)
    sandbox = await docker.open(replace(SMALL, labels={"proctor.run": "one"}))
    status = (await sandbox.run(Command(("cat", "/proc/self/status")))).text
    facts = dict(line.split(":\t", 1) for line in status.splitlines() if ":\t" in line)
    assert {facts[name] for name in ("CapInh", "CapPrm", "CapEff", "CapBnd", "CapAmb")} == {"0" * 16}
    assert (facts["NoNewPrivs"], facts["Seccomp"]) == ("1", "2")
    assert "0" not in facts["Uid"].split()
    (made,) = containers(podman) - before
    (shown,) = json.loads(podman.run("inspect", made))
    host = shown["HostConfig"]
    assert (host["NetworkMode"], host["ReadonlyRootfs"], host["Privileged"]) == ("none", True, False)
    assert (host["Memory"], host["PidsLimit"]) == (SMALL.limits.memory_bytes, SMALL.limits.processes)
    assert shown["Config"]["Labels"]["proctor.run"] == "one"


@needs_podman
async def test_variables_of_the_image_are_there_and_those_of_the_command_win(
    podman: Podman, docker: DockerEngine
) -> None:
    variables = ("PATH=/opt/tool:/usr/bin:/bin", "TOOL=image", "A=b=c")
    changes = [option for each in variables for option in ("--change", f"ENV {each}")]
    made = podman.run("create", BASE_IMAGE, "true").strip()
    podman.run("commit", "--quiet", *changes, made, "localhost/with-variables:test")
    sandbox = await docker.open(replace(SMALL, image="localhost/with-variables:test"))
    said = await sandbox.run(Command(("sh", "-c", 'echo "$PATH|$TOOL|$A|$HOME"'), env={"TOOL": "own"}))
    assert said.text == "/opt/tool:/usr/bin:/bin|own|b=c|/home\n"
    await sandbox.close()
    podman.run("rm", made)


@needs_podman
async def test_an_image_that_is_not_there_is_named(podman: Podman, docker: DockerEngine) -> None:
    with pytest.raises(SandboxNotOpened, match="localhost/no-such:image is not there and cannot be pulled"):
        await docker.open(SandboxSpec(image="localhost/no-such:image"))
    asking = DockerEngine(podman.socket, "localhost/no-such:image", pulls=False)
    isolation = await asking.check()
    await asking.close()
    assert isolation.problem == (
        "the image localhost/no-such:image is not there; it is pulled for the first sandbox."
    )


@needs_podman
async def test_an_engine_that_removes_a_container_loses_the_sandbox(
    podman: Podman, docker: DockerEngine
) -> None:
    before = containers(podman)
    sandbox = await docker.open(SMALL)
    (made,) = containers(podman) - before
    podman.run("rm", "--force", "--time=0", made)
    with pytest.raises(SandboxLost):
        await sandbox.run(Command(("true",)))
    await sandbox.close()


async def test_an_engine_that_is_away_is_named_with_the_setting(tmp_path: Path) -> None:
    engine = DockerEngine(str(tmp_path / "docker.sock"), BASE_IMAGE)
    isolation = await engine.check()
    assert isolation.problem == (
        f"no container engine answers at {tmp_path}/docker.sock; start Docker or podman's service, and set "
        "PROCTOR_WORKER_SANDBOX_SOCKET to its socket."
    )
    with pytest.raises(CannotIsolate, match="no container engine answers"):
        await engine.open(SMALL)
    with pytest.raises(CannotIsolate, match="no container engine answers"):
        await engine.sweep()
    await engine.close()
