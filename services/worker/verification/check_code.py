"""Executes code that a model wrote, with the tests of its sample: each answer in a sandbox of its own."""

import asyncio
from collections.abc import Callable
from dataclasses import dataclass, field
from math import ceil

from proctor.values.code import CodeCheck, CodeResult
from services.common.sandboxes.errors import CannotIsolate, SandboxLost, SandboxNotOpened
from services.common.sandboxes.ports import SandboxEngine
from services.common.sandboxes.sandbox import Command, CommandResult, Ended, SandboxLimits, SandboxSpec

# A sandbox may be lost by chance, as when the launcher is restarted; code that fails is not tried again.
_TRIES = 3
# Time on the clock is not a measure of a program on a machine with other work.
_WALL_PER_CPU_SECOND = 5
_MIN_WALL_SECONDS = 10.0
_MIB = 1024**2
OUTPUT_BYTES = 4000
SPEC = SandboxSpec(
    limits=SandboxLimits(cpus=1.0, memory_bytes=512 * _MIB, disk_bytes=64 * _MIB, processes=32),
    can_lower_limits=True,
    lifetime_seconds=900.0,
)
# 128 + SIGXCPU.
_CPU_TIME_IS_OVER = 128 + 24
_DETAIL_CHARACTERS = 300

# The nonce that says that the tests ran to their end is in no module and no variable of the program's; a
# program that ends itself does not write it. What searches the frames of its callers finds it: code and tests
# share a process.
_PROGRAM = """
import os, resource, sys
def main():
    nonce, program = sys.stdin.buffer.read().split(b"\\n", 1)
    seconds = int(sys.argv.pop())
    resource.setrlimit(resource.RLIMIT_CPU, (seconds, seconds + 1))
    report, nothing = os.dup(1), os.open(os.devnull, os.O_RDWR)
    for number in range(3):
        os.dup2(nothing, number)
    os.write(report, nonce)
    try:
        exec(compile(program.decode(), "<answer>", "exec", dont_inherit=True), {})
    except BaseException as error:
        os.write(report, f"{type(error).__name__}: {error}".rstrip(": ")[:1000].encode("utf-8", "replace"))
    else:
        os.write(report, nonce)
    os._exit(0)
main()
"""


@dataclass(slots=True)
class CheckCode:
    """`new_nonce` gives a nonce that no answer can hold; `slots` bounds the open sandboxes."""

    engine: SandboxEngine
    slots: asyncio.Semaphore
    new_nonce: Callable[[], str]
    _can_isolate: bool = field(default=False, init=False)
    _looks: int = field(default=0, init=False)
    _looking: asyncio.Lock = field(default_factory=asyncio.Lock, init=False)
    _problem: str = field(default="", init=False)

    async def problem(self) -> str:
        """Why no answer could be executed, in one sentence; to be asked before a model is paid for one.

        A look opens a sandbox, so those who wait for one share its answer.
        """
        looks = self._looks
        async with self._looking:
            if not self._can_isolate and looks == self._looks:
                problem = (await self.engine.check()).problem
                self._can_isolate = not problem
                self._problem = problem and str(CannotIsolate(problem=problem))
                self._looks += 1
            return self._problem

    async def check(self, check: CodeCheck, answer: str) -> CodeResult:
        """Whatever the program does is its own result. Raises SandboxError where no sandbox held."""
        async with self.slots:
            for _ in range(_TRIES - 1):
                try:
                    return await self._check(check, answer)
                except (SandboxLost, SandboxNotOpened):
                    continue
            return await self._check(check, answer)

    async def _check(self, check: CodeCheck, answer: str) -> CodeResult:
        nonce = self.new_nonce()
        seconds = ceil(check.timeout_seconds)
        command = Command(
            ("python3", "-I", "-c", _PROGRAM, str(seconds)),
            stdin=f"{nonce}\n{check.program(answer)}".encode("utf-8", "replace"),
            timeout_seconds=max(_MIN_WALL_SECONDS, seconds * _WALL_PER_CPU_SECOND),
            output_bytes=OUTPUT_BYTES,
        )
        sandbox = await self.engine.open(SPEC)
        try:
            return _result(await sandbox.run(command), nonce)
        finally:
            await asyncio.shield(sandbox.close())


def _result(result: CommandResult, nonce: str) -> CodeResult:
    """The nonce comes first when the program starts, and again when its tests have ended."""
    if not result.head.startswith(nonce.encode()):
        raise SandboxNotOpened(problem=f"python3 does not start in it ({result.text[:200].strip()}).")
    if result.ended is Ended.TIMED_OUT or result.exit_code == _CPU_TIME_IS_OVER:
        return CodeResult(is_passed=False, detail="timed out")
    if result.ended is not Ended.EXITED:
        return CodeResult(is_passed=False, detail=result.ended.value.replace("_", " "))
    if result.head == 2 * nonce.encode():
        return CodeResult(is_passed=True, detail="passed")
    lines = result.text.removeprefix(nonce).strip().splitlines()
    if result.exit_code or not lines:
        return CodeResult(
            is_passed=False, detail=f"ended itself with code {result.exit_code} before its tests ended"
        )
    return CodeResult(is_passed=False, detail=f"failed: {lines[0][:_DETAIL_CHARACTERS]}")
