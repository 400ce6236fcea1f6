"""Programs of ours that run inside containers: the first process, the start of commands, the relay.

They need a shell. The first process and the relay need python3; without it a bomb of forks may end the
container.
"""

from collections.abc import Mapping, Sequence

from services.common.sandboxes.sandbox import DEFAULT_PATH, Command

# Programs of ours write it when they have started; what is written before is the engine's own message.
STARTED = b"\0"
KILL = b"\n"
HOME = "/home"
_SLACK_SECONDS = 30.0

# It holds the container for as long as its standard input is open, which ends with the worker, and for no
# longer than its lifetime. A byte there orders it to kill all others, which needs no fork. None can trace it.
_FIRST = """
import ctypes, os, select, signal, sys, time
ctypes.CDLL(None).prctl(4, 0, 0, 0, 0)
for ignored in (signal.SIGCHLD, signal.SIGHUP, signal.SIGINT, signal.SIGTERM):
    signal.signal(ignored, signal.SIG_IGN)
end = time.monotonic() + float(sys.argv[1])
while (left := end - time.monotonic()) > 0:
    if select.select([0], [], [], left)[0]:
        if not os.read(0, 1):
            break
        try:
            os.kill(-1, signal.SIGKILL)
        except ProcessLookupError:
            pass
        os.write(1, b"\\0")
os._exit(0)
"""
_FIRST_WITHOUT_PYTHON = """
trap '' HUP INT TERM
while read -r _; do kill -9 -1; printf '\\000'; done
"""
_FIRST_OF_ANY = """
if command -v python3 >/dev/null; then exec python3 -I -S -c "$1" "$3"; fi
eval "$2"
"""

# Standard input cannot be closed for its half over all engines, so its length goes along. Standard error has
# reports of the start and the exit code: processes in the background may hold the output open. One may
# come later than the other, so a mark ends the output.
_START = """
exec 3>&2 2>&1
printf '\\000' >&3
mark=$1 size=$3
cd -- "$2" || { printf %s "$mark"; echo 126 >&3; exit; }
shift 3
if [ "$size" = 0 ]
then env -i "$@" </dev/null 3>&-
else head -c "$size" 3>&- | env -i "$@" 3>&-
fi
code=$?
printf %s "$mark"
echo $code >&3
"""

# Frames: number of the connection, length, content; no content ends the connection.
_RELAY = """
import asyncio, struct, sys
async def main():
    loop, writers, numbers = asyncio.get_running_loop(), {}, 0
    own = asyncio.StreamReader()
    await loop.connect_read_pipe(lambda: asyncio.StreamReaderProtocol(own), sys.stdin.buffer)
    sending = asyncio.Lock()
    def written(data):
        sys.stdout.buffer.write(data)
        sys.stdout.buffer.flush()
    async def send(number, content):
        async with sending:
            data = struct.pack("!II", number, len(content)) + content
            await loop.run_in_executor(None, written, data)
    async def serve(reader, writer):
        nonlocal numbers
        numbers += 1
        number = numbers
        if len(writers) >= 64:
            writer.close()
            return
        writers[number] = writer
        try:
            while content := await reader.read(65536):
                await send(number, content)
        except OSError:
            pass
        finally:
            await send(number, b"")
    await asyncio.start_server(serve, "127.0.0.1", int(await own.readline()))
    written(b"\\0")
    while True:
        number, length = struct.unpack("!II", await own.readexactly(8))
        content = await own.readexactly(length)
        writer = writers.get(number)
        if writer is None:
            continue
        try:
            if content:
                writer.write(content)
                await writer.drain()
            else:
                del writers[number]
                writer.close()
        except OSError:
            pass
try:
    asyncio.run(main())
except asyncio.IncompleteReadError:
    pass
"""

_REACH = """
import socket, sys
try:
    socket.create_connection((sys.argv[1], int(sys.argv[2])), 3).close()
    print("reached")
except OSError:
    print("held")
"""


def first_process(lifetime_seconds: float) -> list[str]:
    """It ends by itself somewhat after its worker should have removed it."""
    seconds = f"{lifetime_seconds + _SLACK_SECONDS:g}"
    return ["/bin/sh", "-c", _FIRST_OF_ANY, "sh", _FIRST, _FIRST_WITHOUT_PYTHON, seconds]


def start_of(command: Command, cwd: str, image: Mapping[str, str], mark: str) -> Sequence[str]:
    """The command with its variables, those of the image, and no others. `mark` follows its output."""
    variables = {"PATH": DEFAULT_PATH, "LANG": "C.UTF-8", **image, "HOME": HOME, **command.env}
    given = [f"{name}={value}" for name, value in variables.items()]
    called = ["sh", "-c", 'exec "$@"', "sh", *command.argv]
    return ["/bin/sh", "-c", _START, "sh", mark, cwd, str(len(command.stdin)), *given, *called]


def relay_process() -> list[str]:
    """It listens on the port that is written to it in a line."""
    return ["python3", "-I", "-c", _RELAY]


def reach(host: str, port: int) -> tuple[str, ...]:
    """Says "reached" or "held"."""
    return ("python3", "-I", "-c", _REACH, host, str(port))
