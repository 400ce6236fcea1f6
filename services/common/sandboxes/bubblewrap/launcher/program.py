"""The launcher: a small process with one thread and no secret, which makes sandboxes and puts commands into
them.

It is apart from the worker since what it forks dies with the thread that forked it, and since forking a large
process is slow. Requests and replies are JSON in packets on a socket, with files beside them. It ends with
the worker.
"""

import array
import gc
import json
import os
import resource
import select
import selectors
import signal
import socket
import sys
import time
from contextlib import ExitStack, suppress
from pathlib import Path

from services.common.sandboxes.bubblewrap.launcher import syscalls
from services.common.sandboxes.bubblewrap.launcher.box import Box, BoxFailed, can_ignore_children, open_box
from services.common.sandboxes.bubblewrap.launcher.cgroups import (
    Group,
    GroupLimits,
    Hierarchy,
    find_hierarchy,
    group_name,
)
from services.common.sandboxes.bubblewrap.launcher.commands import FIRST_PROCESS_ENDED, Commands
from services.common.sandboxes.bubblewrap.launcher.enter import kill_all, listen_inside
from services.common.sandboxes.bubblewrap.launcher.memory_watch import POLL_SECONDS, excess, watch
from services.common.sandboxes.bubblewrap.launcher.seccomp import filter_for
from services.common.sandboxes.bubblewrap.launcher.spawner import PACKET_BYTES, Request

# Standard input, output and error of a command.
_MAX_FILES = 3
# How often the launcher checks lifetimes while it watches no sandbox.
_IDLE_SECONDS = 1.0
# Below `_STOP_SECONDS` of the client, which then kills the launcher.
_LAST_SECONDS = 2.0
_FIRST_UID, _UIDS = 200_000, 1_000_000_000
# Where this process is in a user namespace with few of them.
_FEW_UIDS = 40_000
# bubblewrap, the first process and the spawner count too.
_OWN_PROCESSES = 3


class Launcher:
    def __init__(self, control: socket.socket) -> None:
        self._control = control
        self._hierarchy: Hierarchy = find_hierarchy()
        self._program = filter_for(os.uname().machine)
        self._can_ignore_children = can_ignore_children()
        self._boxes: dict[int, Box] = {}
        self._numbers = 0
        self._selector = selectors.DefaultSelector()
        self._commands = Commands(program=self._program, selector=self._selector, reply=self._reply)
        # Process to the request that it answers when it ends.
        self._waiting: dict[int, Request] = {}
        self._closing: dict[int, list[Request]] = {}
        self._to_remove: list[Group] = []
        self._sweep()

    def serve(self) -> None:
        """Serves until the worker is gone."""
        woken, wake = socket.socketpair()
        for end in (woken, wake):
            end.settimeout(0)
        # A child that ends between two looks wakes the `select`, which a signal alone does not do.
        signal.set_wakeup_fd(wake.fileno(), warn_on_full_buffer=False)
        signal.signal(signal.SIGCHLD, lambda *_: None)
        self._selector.register(self._control, selectors.EVENT_READ)
        self._selector.register(woken, selectors.EVENT_READ)
        while True:
            for key, _ in self._selector.select(self._timeout()):
                if key.data is not None:
                    self._commands.take_ends(key.data)
                elif key.fileobj is woken:
                    woken.recv(4096)
                elif not self._receive():
                    signal.set_wakeup_fd(-1)
                    return
            self._reap()
            self._look()

    def end(self) -> None:
        for box in self._boxes.values():
            box.kill()
        deadline = time.monotonic() + _LAST_SECONDS
        while (self._boxes or self._to_remove) and time.monotonic() < deadline:
            self._reap()
            self._remove_groups()
            select.select([], [], [], 0.02)

    def _timeout(self) -> float:
        return POLL_SECONDS if any(box.watched for box in self._boxes.values()) else _IDLE_SECONDS

    def _receive(self) -> bool:
        """False where the worker has closed the socket."""
        space = socket.CMSG_SPACE(_MAX_FILES * 4)
        content, extra, _, _ = self._control.recvmsg(PACKET_BYTES, space, socket.MSG_CMSG_CLOEXEC)
        files = array.array("i")
        for _, _, sent in extra:
            files.frombytes(sent[: len(sent) - len(sent) % files.itemsize])
        try:
            if content:
                self._handle(json.loads(content), list(files))
        finally:
            for file in files:
                os.close(file)
        return bool(content)

    def _handle(self, request: Request, files: list[int]) -> None:
        try:
            match request["do"]:
                case "describe":
                    problem, version = self._hierarchy.problem, self._hierarchy.version
                    self._reply(request, cgroups=version, problem=problem, is_root=os.geteuid() == 0)
                case "sweep":
                    self._reply(request, swept=self._sweep())
                case "open":
                    self._open(request)
                case _:
                    self._act(request, files)
        except (BoxFailed, OSError) as error:
            self._reply(request, error=str(error))

    def _act(self, request: Request, files: list[int]) -> None:
        box = self._boxes.get(request["box"])
        if request["do"] == "close":
            self._close(request, box)
        elif box is None or box.is_ending:
            self._reply(request, lost=FIRST_PROCESS_ENDED)
        elif request["do"] == "run":
            self._commands.run(box, request, files)
        elif request["do"] == "kill":
            self._commands.end_held(box)
            if self._commands.may_run(box):
                self._waiting[kill_all(box)] = request
            else:
                self._reply(request)
        else:
            reply = json.dumps({"id": request["id"]}).encode()
            self._waiting[listen_inside(box, request["port"], self._control, reply)] = request

    def _open(self, request: Request) -> None:
        self._numbers += 1
        limits, group = request["limits"], None
        request["uid"], request["can_ignore"] = _uid(self._numbers), self._can_ignore_children
        if self._hierarchy.parents:
            processes = limits["processes"] + _OWN_PROCESSES
            bounds = GroupLimits(limits["memory_bytes"], processes, limits["cpus"])
            group = self._hierarchy.make(group_name(self._numbers), bounds)
        else:
            limits["data_bytes"] = limits["memory_bytes"]
        with ExitStack() as undone:
            if group is not None:
                undone.callback(self._to_remove.append, group)
            box = open_box(self._numbers, request, group, self._program)
            undone.pop_all()
        is_watched = group is None and watch(box)
        self._boxes[box.number] = box
        self._reply(request, box=box.number, is_watched=is_watched, first_process=box.first_process)

    def _close(self, request: Request, box: Box | None) -> None:
        if box is None:
            self._reply(request)
            return
        box.kill()
        self._closing.setdefault(box.number, []).append(request)

    def _reap(self) -> None:
        while True:
            try:
                process, status = os.waitpid(-1, os.WNOHANG)
            except ChildProcessError:
                break
            if not process:
                break
            code = os.waitstatus_to_exitcode(status)
            if process in self._waiting:
                self._finish(self._waiting.pop(process), code)
            elif not self._commands.end_process(process, code):
                self._end_box(process)
        self._remove_groups()

    def _finish(self, request: Request, code: int) -> None:
        box = self._boxes.get(request["box"])
        if request["do"] == "port":
            if code:
                self._reply(request, error="its network namespace cannot be joined")
        elif code and box:
            # Nothing else ends what may still run in it.
            box.kill()
            self._reply(request, lost="its processes cannot be killed.")
        else:
            self._reply(request)

    def _end_box(self, holder: int) -> None:
        for box in list(self._boxes.values()):
            if box.holder == holder:
                del self._boxes[box.number]
                box.is_ending = True
                self._commands.forget(box)
                box.release()
                if box.group is not None:
                    self._to_remove.append(box.group)
                    self._remove_groups()
                for request in self._closing.pop(box.number, []):
                    self._reply(request)

    def _remove_groups(self) -> None:
        self._to_remove = [group for group in self._to_remove if not group.remove()]

    def _look(self) -> None:
        now = time.monotonic()
        for box in self._boxes.values():
            if now > box.ends_at:
                box.kill()
            elif not box.watched or self._commands.are_killed(box):
                continue
            elif found := excess(box):
                self._commands.kill(box, found)

    def _sweep(self) -> int:
        left = list(self._hierarchy.left_behind())
        for group in left:
            if not group.remove():
                self._to_remove.append(group)
        return len(left)

    def _reply(self, request: Request, **facts: object) -> None:
        # The end of the worker is seen when the socket is read.
        with suppress(BrokenPipeError, ConnectionResetError):
            self._control.sendmsg([json.dumps({"id": request["id"], **facts}).encode()])


def _uid(number: int) -> int:
    """One of its own for each sandbox, where this process may choose; limits and files of users are then
    apart.
    """
    own = os.geteuid()
    if own:
        return own
    known = int(Path("/proc/self/uid_map").read_text(encoding="ascii").split()[2])
    if known > _FIRST_UID + _UIDS:
        return _FIRST_UID + (os.getpid() * 1000 + number) % _UIDS
    return max(1, known - _FEW_UIDS) + number % min(_FEW_UIDS, known - 1)


def main() -> None:
    worker, file = int(sys.argv[1]), int(sys.argv[2])
    syscalls.die_with(worker)
    # Ctrl-C at a terminal is the worker's to handle.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    # A sandbox of the same user may have many files on their way, which count for all (unix(7)).
    _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))
    # What is run inside a sandbox must not have it.
    os.set_inheritable(file, False)  # noqa: FBT003  # positional only
    launcher = Launcher(socket.socket(fileno=file))
    # What it forks shares its memory until one of them writes, which counting references does.
    gc.freeze()
    try:
        launcher.serve()
    finally:
        launcher.end()
