"""The modal engine alone: its orders, privileges inside, and sandboxes that end without their worker."""

import asyncio
import os
import socket
from collections.abc import AsyncIterator
from dataclasses import replace

import modal
import pytest

from services.common.sandboxes.errors import CannotIsolate, CommandRefused, SandboxLost, SandboxNotOpened
from services.common.sandboxes.sandbox import Command
from services.worker.sandboxes.container import command_output, owners
from services.worker.sandboxes.modal import engine as modal_module
from services.worker.sandboxes.modal.engine import LABEL, OWNER, ModalEngine
from tests.fakes.worker.modal_cloud import ModalCloud, Sandbox
from tests.integration.worker.sandboxes.conftest import MIB, SMALL, modal_engine
from tests.integration.worker.sandboxes.podman import BASE_IMAGE, Podman, problem

pytestmark = pytest.mark.skipif(bool(problem()), reason=problem() or "podman runs")
_END_SECONDS = 30.0


@pytest.fixture
async def hosted(cloud: ModalCloud) -> AsyncIterator[ModalEngine]:
    made = modal_engine(cloud)
    yield made
    await made.close()


async def wait_for_end(sandbox: Sandbox) -> None:
    async with asyncio.timeout(_END_SECONDS):
        while await sandbox.is_running():
            pass


async def test_a_sandbox_is_ordered_with_limits_and_without_a_network_and_secrets(
    cloud: ModalCloud, hosted: ModalEngine
) -> None:
    await hosted.open(replace(SMALL, labels={"proctor.run": "one two"}))
    (made,) = cloud.sandboxes
    order = made.order
    assert (order["cpu"], order["memory"]) == ((0.5, 0.5), (128, 128))
    assert order["block_network"] is True
    assert order["timeout"] == SMALL.lifetime_seconds + 120
    assert set(order) & {"env", "secrets", "volumes", "encrypted_ports"} == set()
    assert made.tags == {"proctor.run": "one-two", LABEL: "true", OWNER: owners.own()}


async def test_commands_have_no_privileges_and_cannot_end_what_holds_the_sandbox(hosted: ModalEngine) -> None:
    sandbox = await hosted.open(SMALL)
    status = (await sandbox.run(Command(("cat", "/proc/self/status")))).text
    facts = dict(line.split(":\t", 1) for line in status.splitlines() if ":\t" in line)
    assert {facts[name] for name in ("CapPrm", "CapEff", "CapBnd", "CapAmb")} == {"0" * 16}
    assert facts["NoNewPrivs"] == "1"
    assert set(facts["Uid"].split()) == {"10000"}
    assert facts["Groups"].split() == []
    listening = await sandbox.model_port(8080)
    kill = "kill -9 -1; for each in /proc/[0-9]*; do kill -9 ${each#/proc/}; done"
    await sandbox.run(Command(("sh", "-c", kill)))
    await sandbox.stop_processes()
    listed = await sandbox.run(Command(("sh", "-c", "cat /proc/[0-9]*/status | grep -c '^Uid:.0'")))
    assert listed.text == "2\n"
    listening.close()


async def test_a_program_of_the_sandbox_does_not_become_the_one_that_starts_as_root(
    podman: Podman, cloud: ModalCloud
) -> None:
    """The image's PATH may begin with a folder of the task, in which an agent writes."""
    container = podman.run("create", BASE_IMAGE, "true").strip()
    podman.run(
        "commit", "--quiet", "--change", "ENV PATH=/work:/usr/bin:/bin", container, "localhost/path:test"
    )
    podman.run("rm", container)
    engine = modal_engine(cloud, "localhost/path:test")
    sandbox = await engine.open(SMALL)
    own = "printf '#!/bin/sh\nid -u >/work/user\n' >/work/python3; chmod +x /work/python3"
    assert (await sandbox.run(Command(("sh", "-c", own)))).is_success
    await sandbox.stop_processes()
    assert (await sandbox.run(Command(("id", "-u")))).text == "10000\n"
    assert not (await sandbox.run(Command(("test", "-e", "/work/user")))).is_success
    await engine.close()


async def test_a_python_that_others_can_replace_is_refused(podman: Podman, cloud: ModalCloud) -> None:
    podman.run("run", "--network=none", "--name=open", BASE_IMAGE, "chmod", "777", "/usr/bin")
    podman.run("commit", "--quiet", "open", "localhost/open:test")
    podman.run("rm", "open")
    engine = modal_engine(cloud, "localhost/open:test")
    with pytest.raises(SandboxNotOpened, match="/usr/bin is not root's alone"):
        await engine.open(SMALL)
    await wait_for_end(cloud.sandboxes[0])


@pytest.mark.thorough
async def test_a_sandbox_outlives_the_silence_while_its_worker_lives_and_ends_with_it(
    cloud: ModalCloud,
) -> None:
    engine = modal_engine(cloud, silence_seconds=3.0)
    sandbox = await engine.open(SMALL)
    assert (await sandbox.run(Command(("sleep", "6")))).is_success
    # A worker that is killed closes nothing.
    for task in asyncio.all_tasks():
        if task.get_name() == "hold a sandbox":
            task.cancel()
    await wait_for_end(cloud.sandboxes[0])
    with pytest.raises(SandboxLost):
        await sandbox.run(Command(("true",)))
    await engine.close()


async def test_sandboxes_of_dead_workers_are_swept_and_others_stay(
    cloud: ModalCloud, hosted: ModalEngine
) -> None:
    for _ in range(3):
        await hosted.open(SMALL)
    own, dead, elsewhere = cloud.sandboxes
    machine = owners.own().split(".")[0]
    dead.tags[OWNER] = f"{machine}.{os.getpid()}.1"
    elsewhere.tags[OWNER] = "elsewhere.1.1"
    assert await hosted.sweep() == 1
    assert [await one.is_running() for one in (own, dead, elsewhere)] == [True, False, True]


async def test_an_account_that_is_missing_is_named(cloud: ModalCloud, hosted: ModalEngine) -> None:
    cloud.problem = modal.exception.AuthError("Token missing. Could not authenticate client.")
    said = "Modal answers: Token missing. Could not authenticate client."
    assert (await hosted.check()).problem == said
    with pytest.raises(CannotIsolate, match="Token missing"):
        await hosted.open(SMALL)
    with pytest.raises(CannotIsolate, match="Token missing"):
        await hosted.sweep()
    cloud.problem = TimeoutError()
    assert (await hosted.check()).problem == "Modal does not answer (TimeoutError)."


async def test_an_image_that_cannot_be_built_is_named(cloud: ModalCloud) -> None:
    engine = modal_engine(cloud, "localhost/no-such:image")
    with pytest.raises(SandboxNotOpened, match=r"Modal answers: Image build failed: .*no-such"):
        await engine.open(SMALL)


async def test_a_network_that_is_not_blocked_is_no_isolation(
    cloud: ModalCloud, hosted: ModalEngine, monkeypatch: pytest.MonkeyPatch
) -> None:
    cloud.network = "host"
    with socket.create_server(("127.0.0.1", 0)) as outside:
        monkeypatch.setattr(modal_module, "_OUTSIDE", outside.getsockname())
        assert (await hosted.check()).problem == "a sandbox reached 127.0.0.1, though its network is blocked."


async def test_a_command_above_modal_s_own_limit_is_refused(hosted: ModalEngine) -> None:
    sandbox = await hosted.open(SMALL)
    with pytest.raises(CommandRefused, match="too long; use standard input"):
        await sandbox.run(Command(("echo", "x" * 61_000)))
    assert (await sandbox.run(Command(("wc", "-c"), stdin=b"x" * MIB))).text.split() == [str(MIB)]


async def test_a_sandbox_that_modal_ended_is_lost(cloud: ModalCloud, hosted: ModalEngine) -> None:
    sandbox = await hosted.open(SMALL)
    await cloud.sandboxes[0].terminate.aio()
    with pytest.raises(SandboxLost):
        await sandbox.run(Command(("true",)))
    await sandbox.close()


@pytest.mark.thorough
async def test_output_that_comes_after_the_exit_code_is_not_lost(
    cloud: ModalCloud, hosted: ModalEngine
) -> None:
    sandbox = await hosted.open(SMALL)
    cloud.sandboxes[0].faults.late_seconds = 1.5
    # A process in the background holds the output open.
    result = await sandbox.run(Command(("sh", "-c", "sleep 60 & echo late; exit 3")))
    assert (result.text, result.exit_code) == ("late\n", 3)
    many = await sandbox.run(Command(("head", "-c", str(20 * MIB), "/dev/zero"), output_bytes=100))
    assert (many.total_bytes, many.exit_code) == (20 * MIB, 0)
    assert (await sandbox.run(Command(("true",), cwd="/none"))).exit_code == 126


async def test_output_that_does_not_come_loses_the_sandbox(
    cloud: ModalCloud, hosted: ModalEngine, monkeypatch: pytest.MonkeyPatch
) -> None:
    sandbox = await hosted.open(SMALL)
    monkeypatch.setattr(command_output, "_LATE_SECONDS", 0.5)
    cloud.sandboxes[0].faults.late_seconds = 60.0
    with pytest.raises(SandboxLost, match="the rest of a command's output did not come"):
        await sandbox.run(Command(("echo", "late")))


@pytest.mark.parametrize("fault", ["input", "output"])
async def test_an_error_of_a_stream_loses_the_sandbox_and_is_no_time_out(
    cloud: ModalCloud, hosted: ModalEngine, fault: str
) -> None:
    sandbox = await hosted.open(SMALL)
    setattr(cloud.sandboxes[0].faults, fault, RuntimeError("an empty message"))
    with pytest.raises(SandboxLost, match="Modal answers: an empty message"):
        await sandbox.run(Command(("cat",), stdin=b"x", timeout_seconds=60.0))


async def test_input_that_a_command_leaves_unread_is_no_loss(cloud: ModalCloud, hosted: ModalEngine) -> None:
    sandbox = await hosted.open(SMALL)
    cloud.sandboxes[0].faults.input = ConnectionResetError("it has ended")
    # No other input comes, so it ends by itself.
    ended = await sandbox.run(Command(("sh", "-c", "kill -9 $PPID; exit 0"), stdin=b"x"))
    assert ended.exit_code == 137
