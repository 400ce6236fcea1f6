"""The contract of all engines: commands, files, processes, the model port and the end of a sandbox."""

import asyncio
import contextlib
import io
import os
import signal
import time
from collections.abc import AsyncIterator
from dataclasses import replace
from pathlib import Path

import pytest

from services.common.sandboxes.bubblewrap.engine import BubblewrapEngine
from services.common.sandboxes.errors import (
    CommandRefused,
    FilesRefused,
    ImageRefused,
    SandboxLost,
)
from services.common.sandboxes.ports import Sandbox, SandboxEngine
from services.common.sandboxes.sandbox import Command, Ended, Network, SandboxSpec, TarLimits
from services.common.sandboxes.tar_files import PackedFile, pack, read_files
from tests.fakes.eventually import eventually
from tests.integration.worker.sandboxes.conftest import PROCESS_ENGINES, SMALL


async def test_the_engine_can_isolate_here_and_names_what_it_cannot_limit(engine: SandboxEngine) -> None:
    isolation = await engine.check()
    assert isolation.problem == ""
    assert isolation.facts
    limits = isolation.facts["limits"]
    assert bool(isolation.unlimited) is not limits.startswith("control groups")


async def test_a_command_gets_its_arguments_variables_folder_and_input(sandbox: Sandbox) -> None:
    script = 'printf "%s|%s|%s|%s|%s|" "$1" "$WORD" "$PWD" "$HOME" "$SECRET"; cat; echo wrong >&2; exit 7'
    command = Command(("sh", "-c", script, "sh", "a b"), "/tmp", {"WORD": "w ö"}, stdin=b"in" * 50_000)
    result = await sandbox.run(command)
    assert (result.exit_code, result.ended, result.is_success) == (7, Ended.EXITED, False)
    written = "a b|w ö|/tmp|/home||".encode() + b"in" * 50_000 + b"wrong\n"
    assert (result.head, result.tail) == (written[:50_000], written[-50_000:])
    assert result.total_bytes == len(written)
    assert f"\n[{len(written) - 100_000} bytes left out]\n" in result.text


async def test_no_variable_of_the_worker_enters(
    engine: SandboxEngine, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-planted")
    opened = await engine.open(SMALL)
    said = (await opened.run(Command(("env",)))).text
    await opened.close()
    assert {line.split("=")[0] for line in said.splitlines()} <= {"PATH", "HOME", "LANG", "PWD"}


@pytest.mark.parametrize(
    ("argv", "code"),
    [
        (("no-such-program",), 127),
        (("/etc/passwd",), 126),
        (("sh", "-c", "kill -9 $$"), 137),
        (("sh", "-c", "kill -PIPE $$"), 141),
    ],
)
async def test_the_code_of_what_cannot_run_or_was_killed(
    sandbox: Sandbox, argv: tuple[str, ...], code: int
) -> None:
    result = await sandbox.run(Command(argv))
    assert (result.exit_code, result.ended) == (code, Ended.EXITED)


async def test_commands_run_at_once_and_keep_their_own_output(sandbox: Sandbox) -> None:
    results = await asyncio.gather(*(sandbox.run(Command(("echo", str(one)))) for one in range(20)))
    assert [result.text for result in results] == [f"{one}\n" for one in range(20)]


async def test_a_background_process_lives_until_processes_are_stopped(sandbox: Sandbox) -> None:
    daemon = "while :; do date +%s%N > /work/beat; done"
    started = await sandbox.run(Command(("sh", "-c", f"setsid sh -c '{daemon}' >/dev/null 2>&1 & echo up")))
    assert started.text == "up\n"
    first = await _changed(sandbox, "")
    assert await _changed(sandbox, first) != first
    await sandbox.stop_processes()
    last = (await sandbox.run(Command(("cat", "/work/beat")))).text
    assert (await sandbox.run(Command(("cat", "/work/beat")))).text == last
    listed = await sandbox.run(Command(("sh", "-c", "ls -d /proc/[0-9]* | wc -l")))
    assert int(listed.text) <= 6


async def test_a_background_process_that_holds_the_output_does_not_hold_the_command(sandbox: Sandbox) -> None:
    started = await sandbox.run(Command(("sh", "-c", "sleep 300 & echo up; exit 3"), timeout_seconds=100))
    assert (started.text, started.exit_code, started.ended) == ("up\n", 3, Ended.EXITED)
    assert started.seconds < 60


# A process that ends meanwhile has no file.
_NO_SLEEP = """
arguments=$(cat /proc/[0-9]*/cmdline 2>&1 | tr '\\0' ' ')
case $arguments in *'sleep '300*) exit 1 ;; esac
"""
_ORPHAN = """
import os
reading, writing = os.pipe()
if not os.fork():
    os.write(writing, str(os.fork() or os._exit(0)).encode())
    os._exit(0)
os.wait()
orphan = int(os.read(reading, 20))
while os.path.exists(f"/proc/{orphan}"):
    pass
"""


async def test_a_process_that_lost_its_parent_is_gone_when_it_ends(sandbox: Sandbox) -> None:
    assert (await sandbox.run(Command(("python3", "-I", "-c", _ORPHAN), timeout_seconds=20))).is_success


async def _changed(sandbox: Sandbox, before: str) -> str:
    async with asyncio.timeout(20):
        while True:
            now = (await sandbox.run(Command(("cat", "/work/beat")))).text
            if now.strip() and now != before and "No such file" not in now:
                return now


@pytest.mark.parametrize(
    "program",
    [
        "trap '' TERM INT HUP; while :; do :; done",
        "setsid sh -c 'sleep 300' & (sleep 300 & exec sleep 300)",
        "yes",
    ],
    ids=["ignores signals", "has children in other sessions", "writes without end"],
)
async def test_a_timeout_ends_the_command_and_all_it_started(sandbox: Sandbox, program: str) -> None:
    started = time.monotonic()
    result = await sandbox.run(Command(("sh", "-c", program), timeout_seconds=0.5))
    assert result.ended is Ended.TIMED_OUT
    assert time.monotonic() - started < 10
    await eventually(lambda: _is_left_alone(sandbox), "nothing of the command is listed")


async def _is_left_alone(sandbox: Sandbox) -> bool:
    """A killed process is listed until it has ended, which takes a moment on a busy machine."""
    listed = await sandbox.run(Command(("sh", "-c", "cat /proc/[0-9]*/comm | sort | tr '\\n' ' '")))
    names = listed.text.split()
    # The first process is python3, or a shell with a child, once that is there again.
    return set(names) <= {"sh", "sleep", "cat", "sort", "tr", "python3"} and names.count("sleep") <= 1


async def test_a_caller_that_gives_up_ends_the_command(sandbox: Sandbox) -> None:
    running = asyncio.create_task(
        sandbox.run(Command(("sh", "-c", "touch /work/up; sleep 300; touch /work/on")))
    )
    async with asyncio.timeout(20):
        while not (await sandbox.run(Command(("test", "-e", "/work/up")))).is_success:
            pass
    running.cancel()
    with contextlib.suppress(asyncio.CancelledError):
        await running

    async def is_gone() -> bool:
        listed = await sandbox.run(Command(("sh", "-c", "cat /proc/[0-9]*/cmdline | tr '\\0' ' '")))
        return "touch /work/on" not in listed.text

    await eventually(is_gone, "the command is not listed")
    assert not (await sandbox.run(Command(("test", "-e", "/work/on")))).is_success


async def test_files_go_in_and_come_out_with_their_modes(sandbox: Sandbox) -> None:
    files: dict[str, bytes | PackedFile] = {
        "a/b.txt": b"text",
        "run.sh": PackedFile(b"#!/bin/sh\necho ran\n", 0o755),
        "leer": b"",
    }
    await sandbox.put("/work/deep/er", pack(files))
    assert (await sandbox.run(Command(("/work/deep/er/run.sh",)))).text == "ran\n"
    with io.BytesIO() as taken:
        await sandbox.get("/work/deep", taken, TarLimits())
        read = {file.name: file for file in read_files(taken, "/work/deep", TarLimits())}
    assert {name: file.content for name, file in read.items()} == {
        "er/a/b.txt": b"text",
        "er/run.sh": b"#!/bin/sh\necho ran\n",
        "er/leer": b"",
    }
    assert read["er/run.sh"].mode == 0o755


async def test_files_of_a_folder_that_its_owner_closed_come_out(sandbox: Sandbox) -> None:
    for mode in ("311", "000"):
        await sandbox.run(Command(("sh", "-c", f"echo kept > /work/left; chmod {mode} /work"), "/"))
        with io.BytesIO() as taken:
            await sandbox.get("/work", taken, TarLimits())
            assert [file.name for file in read_files(taken, "/work", TarLimits())] == ["left"], mode


async def test_files_that_do_not_fit_or_have_no_folder_are_refused(sandbox: Sandbox) -> None:
    with pytest.raises(FilesRefused, match=r"Wrote only|No space left"):
        await sandbox.put("/work", pack({"large": b"x" * (33 * 1024**2)}))
    with pytest.raises(FilesRefused, match="/usr/planted cannot be moved"):
        await sandbox.put("/usr/planted", pack({"x": b"x"}))
    with pytest.raises(FilesRefused, match="tar could not read"):
        await sandbox.get("/work/nothing-here", io.BytesIO(), TarLimits())


ASK = (
    "import socket; s = socket.create_connection(('127.0.0.1', 8080)); s.sendall(b'hi\\n'); print(s.recv(99))"
)


@contextlib.asynccontextmanager
async def served(sandbox: Sandbox, greeting: bytes) -> AsyncIterator[None]:
    """Answers a line at the model port by a greeting and the line."""

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(greeting + await reader.readline())
        await writer.drain()
        writer.close()

    listening = await sandbox.model_port(8080)
    listening.settimeout(0)
    server = await asyncio.start_server(answer, sock=listening)
    yield
    server.close()
    listening.close()


async def asked(sandbox: Sandbox) -> str:
    return (await sandbox.run(Command(("python3", "-c", ASK), timeout_seconds=20))).text


async def test_the_model_port_reaches_the_worker_and_nothing_else(sandbox: Sandbox) -> None:
    async with served(sandbox, b"got "):
        assert await asked(sandbox) == "b'got hi\\n'\n"
        other = Command(("python3", "-c", ASK.replace("8080", "8081")), timeout_seconds=20)
        assert not (await sandbox.run(other)).is_success


async def test_the_model_port_can_be_opened_again_and_reaches_the_latest_server(sandbox: Sandbox) -> None:
    for number in (b"first ", b"second ", b"third "):
        async with served(sandbox, number):
            assert await asked(sandbox) == f"b'{number.decode()}hi\\n'\n"
        assert number.decode() not in await asked(sandbox)
        await sandbox.stop_processes()


async def test_a_sandbox_without_a_network_has_no_model_port(engine: SandboxEngine) -> None:
    opened = await engine.open(replace(SMALL, network=Network.NONE))
    with pytest.raises(CommandRefused, match="without a network"):
        await opened.model_port(8080)
    await opened.close()


async def test_a_closed_sandbox_is_lost_and_closes_again(engine: SandboxEngine) -> None:
    opened = await engine.open(SMALL)
    await opened.close()
    await opened.close()
    with pytest.raises(SandboxLost):
        await opened.run(Command(("true",)))


@pytest.mark.parametrize("engine", PROCESS_ENGINES, indirect=True)
async def test_after_their_holder_was_killed_sandboxes_are_lost_and_new_ones_open(
    engine: SandboxEngine,
) -> None:
    assert isinstance(engine, BubblewrapEngine)
    opened = await engine.open(SMALL)
    running = asyncio.create_task(opened.run(Command(("sleep", "300"))))
    assert (await opened.run(Command(("true",)))).is_success
    assert engine.launcher.process is not None
    os.kill(engine.launcher.process, signal.SIGKILL)
    with pytest.raises(SandboxLost):
        await asyncio.wait_for(running, 20)
    await opened.close()
    again = await engine.open(SMALL)
    assert (await again.run(Command(("echo", "new")))).text == "new\n"
    await again.close()


@pytest.mark.parametrize("engine", PROCESS_ENGINES, indirect=True)
async def test_a_command_whose_spawner_is_killed_is_lost_and_the_next_one_has_another(
    engine: SandboxEngine, sandbox: Sandbox
) -> None:
    assert isinstance(engine, BubblewrapEngine)
    running = asyncio.create_task(sandbox.run(Command(("sh", "-c", "touch up; sleep 300"))))
    async with asyncio.timeout(20):
        while not (await sandbox.run(Command(("test", "-e", "/work/up")))).is_success:
            pass
    # Its children are bubblewrap, then the spawner.
    launcher = engine.launcher.process
    children = Path(f"/proc/{launcher}/task/{launcher}/children").read_text(encoding="ascii").split()
    assert len(children) == 2
    os.kill(int(children[1]), signal.SIGKILL)
    with pytest.raises(SandboxLost, match="what starts its commands ended"):
        await asyncio.wait_for(running, 20)
    async with asyncio.timeout(20):
        while not (await sandbox.run(Command(("sh", "-c", _NO_SLEEP)))).is_success:
            pass


async def test_closing_ends_a_running_command(engine: SandboxEngine) -> None:
    opened = await engine.open(SMALL)
    running = asyncio.create_task(opened.run(Command(("sleep", "300"))))
    await opened.run(Command(("true",)))
    await opened.close()
    with pytest.raises(SandboxLost):
        async with asyncio.timeout(20):
            await running


async def test_a_sandbox_ends_with_its_lifetime(engine: SandboxEngine) -> None:
    opened = await engine.open(replace(SMALL, lifetime_seconds=0.3))
    with pytest.raises(SandboxLost):
        await opened.run(Command(("sleep", "20"), timeout_seconds=20))
    await opened.close()


@pytest.mark.parametrize(
    "command", [Command(()), Command(("echo", "a\0b")), Command(("echo", "x" * 200_000))]
)
async def test_a_command_that_cannot_be_sent_is_refused(sandbox: Sandbox, command: Command) -> None:
    with pytest.raises(CommandRefused):
        await sandbox.run(command)


@pytest.mark.parametrize("engine", PROCESS_ENGINES, indirect=True)
async def test_an_image_is_refused_by_an_engine_without_images(engine: SandboxEngine) -> None:
    with pytest.raises(ImageRefused, match=r"The image python:3\.12 needs containers"):
        await engine.open(SandboxSpec(image="python:3.12"))


# Folders beside the working folder are plain ones, which move; what is the machine's stays.
_AS_IN_A_CONTAINER = """
mkdir /data /root/x && touch /new /opt/y /home/z /logs/kept
mv /logs /tmp/aside && mv /tmp/aside /logs && ls /logs
[ "$(stat -c %d /logs /tmp /opt / | sort -u | wc -l)" = 1 ] && echo one
for folder in /usr /usr/bin /bin /etc /dev /proc/sys/kernel; do touch $folder/planted && echo $folder; done
for mount in /bin /lib /etc /usr /work; do mv $mount /moved && echo $mount; done
head -c 40000000 /dev/zero > /opt/large || echo full
"""


@pytest.mark.parametrize("engine", PROCESS_ENGINES, indirect=True)
async def test_plain_folders_are_of_a_root_that_is_writable(engine: SandboxEngine) -> None:
    opened = await engine.open(replace(SMALL, writable=("/logs",), plain=("/logs",)))
    result = await opened.run(Command(("sh", "-c", f"exec 2>/dev/null\n{_AS_IN_A_CONTAINER}")))
    after = await opened.run(Command(("touch", "/work/usable")))
    await opened.close()
    assert (result.text, after.exit_code) == ("kept\none\nfull\n", 0)


_MANY = "import sys\nfor number in range(25_000): open(f'/moved/work/{number}', 'w').close()\ninput()"


@pytest.mark.parametrize("engine", PROCESS_ENGINES[-1:], indirect=True)
async def test_files_are_counted_where_a_folder_above_them_was_moved(engine: SandboxEngine) -> None:
    """The engine that has no control groups looks at what is in use."""
    opened = await engine.open(replace(SMALL, workdir="/deep/work", writable=("/logs",), plain=("/logs",)))
    moved = f'mv /deep /moved && (sleep 30 | python3 -c "{_MANY}")'
    result = await opened.run(Command(("sh", "-c", moved), "/"))
    await opened.close()
    assert result.ended is Ended.OUT_OF_DISK, result.text


@pytest.mark.parametrize("engine", PROCESS_ENGINES, indirect=True)
async def test_a_link_in_the_place_of_a_folder_is_not_taken(engine: SandboxEngine) -> None:
    opened = await engine.open(replace(SMALL, workdir="/deep/work", writable=("/logs",), plain=("/logs",)))
    moved = await opened.run(Command(("sh", "-c", "mkdir /o /o/work && mv /deep /d && ln -s /o /deep"), "/"))
    with pytest.raises(FilesRefused):
        await opened.get("/deep/work", io.BytesIO(), TarLimits())
    await opened.close()
    assert moved.is_success


async def test_a_folder_of_its_own_is_the_working_folder(engine: SandboxEngine) -> None:
    opened = await engine.open(replace(SMALL, workdir="/app", writable=("/logs", "/app")))
    result = await opened.run(Command(("sh", "-c", "pwd; touch /app/x /logs/x && ls -d /app /logs")))
    await opened.close()
    assert result.text == "/app\n/app\n/logs\n"
