"""The commands of all sandboxes. The first one of a sandbox starts its spawner, which starts the others too.

A kill that no caller asked for delays what comes next in its sandbox: replies to commands that have ended,
and new commands. Without the delay a late kill could end the command that follows.
"""

import os
import selectors
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from typing import Protocol

from services.common.sandboxes.bubblewrap.launcher.box import Box
from services.common.sandboxes.bubblewrap.launcher.enter import kill_all
from services.common.sandboxes.bubblewrap.launcher.spawner import Request, Spawner, start_spawner
from services.common.sandboxes.bubblewrap.launcher.uses_watch import open_watch

FIRST_PROCESS_ENDED = "its first process ended."
# Exit code of a command that a spawner could not start.
_NOT_STARTED = 126
# 128 + SIGKILL, as a shell reports it.
_KILLED = 137


class Reply(Protocol):
    def __call__(self, request: Request, **facts: object) -> None: ...


@dataclass(slots=True)
class RunningCommand:
    box: Box
    request: Request
    oom_kills: int
    """Of its sandbox when it started."""
    excess: str = ""
    """What the memory watch killed it for: "memory" or "files"."""


@dataclass(slots=True)
class HeldCommand:
    """A command that begins when nothing kills in its sandbox any more, with copies of its files."""

    request: Request
    files: Sequence[int]
    opened: ExitStack


@dataclass(slots=True)
class Delayed:
    ended: list[tuple[RunningCommand, int]] = field(default_factory=list)
    held: list[HeldCommand] = field(default_factory=list)


class Commands:
    def __init__(self, *, program: bytes, selector: selectors.BaseSelector, reply: Reply) -> None:
        """`program` filters system calls. The selector gets the socket of each spawner, and as its data the
        number of the sandbox.
        """
        self._program = program
        self._selector = selector
        self._reply = reply
        self._spawners: dict[int, Spawner] = {}
        # By the number of their request, which the spawner answers.
        self._running: dict[int, RunningCommand] = {}
        # Process that kills to its sandbox.
        self._kills: dict[int, Box] = {}
        # By the number of the sandbox.
        self._delayed: dict[int, Delayed] = {}

    def run(self, box: Box, request: Request, files: Sequence[int]) -> None:
        if not self.are_killed(box):
            self._start(box, request, files)
            return
        with ExitStack() as opened:
            copies = []
            for file in files:
                copies.append(os.dup(file))
                opened.callback(os.close, copies[-1])
            self._delayed_in(box).held.append(HeldCommand(request, copies, opened.pop_all()))

    def end_held(self, box: Box) -> None:
        """Ends commands that have not begun, as a kill does with those that have."""
        if delayed := self._delayed.get(box.number):
            for command in delayed.held:
                command.opened.close()
                self._reply(command.request, exit=_KILLED, excess="", oom_kills=0, uses=-1)
            delayed.held.clear()

    def may_run(self, box: Box) -> bool:
        """Whether processes may run beside the first one. If there are none, nothing can fork."""
        own = 2 + (box.number in self._spawners)
        return bool(self._of(box)) or box.group is None or box.group.processes() != own

    def take_ends(self, number: int) -> None:
        """Reads which commands of that sandbox have ended, and answers them."""
        if spawner := self._spawners.get(number):
            for request, code in spawner.ended():
                if ended := self._running.pop(request, None):
                    self._end(ended, code)

    def kill(self, box: Box, excess: str = "") -> None:
        for running in self._of(box):
            running.excess = excess or running.excess
        try:
            self._kills[kill_all(box)] = box
        except OSError:
            # No process can be made: the sandbox may be what takes them all.
            box.kill()

    def are_killed(self, box: Box) -> bool:
        return any(killed is box for killed in self._kills.values())

    def end_process(self, process: int, code: int) -> bool:
        """False where it was neither a spawner nor one that killed."""
        if box := self._kills.pop(process, None):
            if code:
                # Nothing else ends what may still run in it.
                box.kill()
            if not self.are_killed(box):
                self._release(box)
            return True
        for number, spawner in self._spawners.items():
            if spawner.process == process:
                # The next command has another one.
                self._forget_spawner(number)
                return True
        return False

    def forget(self, box: Box) -> None:
        """Answers what is left of a sandbox that is ending."""
        if box.number in self._spawners:
            self._forget_spawner(box.number)
        self._release(box)

    def _of(self, box: Box) -> list[RunningCommand]:
        return [running for running in self._running.values() if running.box is box]

    def _start(self, box: Box, request: Request, files: Sequence[int]) -> None:
        if box.number not in self._spawners:
            spawner = self._spawners[box.number] = start_spawner(box, self._program)
            self._selector.register(spawner.control, selectors.EVENT_READ, box.number)
        if request["watched"]:
            _watch(box, request["watched"])
        self._running[request["id"]] = RunningCommand(box, request, box.group.oom_kills() if box.group else 0)
        try:
            self._spawners[box.number].send(request, files)
        except BlockingIOError:
            del self._running[request["id"]]
            self._reply(request, lost="its commands do not start any more.")
        except (BrokenPipeError, ConnectionResetError):
            # It is answered when the spawner's end is seen, as those before it.
            return
        except OSError:
            del self._running[request["id"]]
            raise

    def _run_held(self, box: Box, command: HeldCommand) -> None:
        with command.opened:
            if box.is_ending:
                self._reply(command.request, lost=FIRST_PROCESS_ENDED)
                return
            try:
                self._start(box, command.request, command.files)
            except OSError as error:
                self._reply(command.request, error=str(error))

    def _end(self, ended: RunningCommand, code: int) -> None:
        if self.are_killed(ended.box):
            self._delayed_in(ended.box).ended.append((ended, code))
        else:
            self._answer(ended, code)

    def _answer(self, ended: RunningCommand, code: int) -> None:
        box = ended.box
        if box.is_ending or (code == _NOT_STARTED and not box.is_alive()):
            self._reply(ended.request, lost=FIRST_PROCESS_ENDED)
            return
        kills = box.group.oom_kills() - ended.oom_kills if box.group else 0
        exit_code = code if code >= 0 else 128 - code
        # It may have ended by itself just before the kill.
        excess = ended.excess if exit_code == _KILLED else ""
        watched = ended.request["watched"]
        uses = box.uses.count(watched) if watched and box.uses is not None else -1
        self._reply(ended.request, exit=exit_code, excess=excess, oom_kills=kills, uses=uses)

    def _forget_spawner(self, number: int) -> None:
        """Killed for memory, as its commands may be, or else a failure of the machine."""
        self.take_ends(number)
        spawner = self._spawners.pop(number)
        self._selector.unregister(spawner.control)
        spawner.control.close()
        left = [running for running in self._running.values() if running.box.number == number]
        if left and not left[0].box.is_ending and left[0].box.is_alive():
            # Nothing waits for the end of these commands any more.
            self.kill(left[0].box)
        for running in left:
            del self._running[running.request["id"]]
            group = running.box.group
            if not running.box.is_ending and group and group.oom_kills() > running.oom_kills:
                self._end(running, _KILLED)
            else:
                self._reply(running.request, lost="what starts its commands ended.")

    def _delayed_in(self, box: Box) -> Delayed:
        return self._delayed.setdefault(box.number, Delayed())

    def _release(self, box: Box) -> None:
        delayed = self._delayed.pop(box.number, Delayed())
        for ended, code in delayed.ended:
            self._answer(ended, code)
        for command in delayed.held:
            self._run_held(box, command)


def _watch(box: Box, files: Sequence[str]) -> None:
    """What cannot be watched is not counted."""
    try:
        box.uses = box.uses or open_watch()
    except OSError:
        return
    if not box.uses.begin(f"/proc/{box.first_process}/root", files):
        box.uses.close()
        box.uses = None
