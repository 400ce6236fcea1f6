"""Judges collected files by tests, in a sandbox that the agent was never in.

The sandbox gets the files first and the tests afterwards: no process, home or temporary file of the agent is
there. The runner of the tests stands before the files on the path, and reads no configuration of theirs.
"""

import asyncio
import json
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import PurePosixPath

from services.worker.sandboxes.errors import FilesRefused, VerifierFailed
from services.worker.sandboxes.ports import Sandbox, SandboxEngine
from services.worker.sandboxes.sandbox import (
    Command,
    CommandResult,
    Ended,
    SandboxLimits,
    SandboxSpec,
)
from services.worker.verification.pytest_request import STEERING, PytestRequest, Verification, suspicions_in
from services.worker.verification.pytest_runner import PACKAGES, RUNNER

_MIB = 1024**2
OUTPUT_BYTES = 20_000
# Passed, failed, interrupted, no test at all. The others are errors of pytest or of its caller.
_JUDGED_CODES = frozenset({0, 1, 2, 5})
LIMITS = SandboxLimits(cpus=2.0, memory_bytes=1024 * _MIB, disk_bytes=256 * _MIB, processes=128)

_REMOVE = """
cd "$1" && chmod -R u+rwX . && shift
for name in "$@" '*.pth'; do find . -name "$name" -exec rm -rf {} +; done
"""

# As for code of a single answer: the nonce is in no module, and a program that ends itself does not write it.
_PROGRAM = f"""
import json, os, sys
def main():
    nonce = sys.stdin.buffer.read()
    tests = sys.argv.pop()
    folder = sys.argv.pop()
    reports, nothing = os.dup(2), os.open(os.devnull, os.O_RDONLY)
    os.dup2(nothing, 0)
    os.dup2(1, 2)
    sys.path.insert(0, {PACKAGES!r})
    import pytest
    class Count:
        passed = failed = 0
        def pytest_runtest_logreport(self, report):
            self.failed += report.failed
            self.passed += report.passed and report.when == "call"
        def pytest_collectreport(self, report):
            self.failed += report.failed
    count = Count()
    os.write(reports, nonce)
    sys.path.append(os.getcwd())
    options = ["-c", os.devnull, "--rootdir", folder, "--confcutdir", folder, "-q", "--tb=short"]
    options += ["-p", "no:cacheprovider", "--import-mode=append", tests]
    code = pytest.main(options, plugins=[count])
    sys.stdout.flush()
    os.write(reports, nonce + json.dumps([int(code), count.passed, count.failed]).encode())
    os._exit(0)
main()
"""


@dataclass(frozen=True, slots=True)
class ExecutePytest:
    """`runner` gives a tar of pytest and what it needs. No file of the agent can hold a `new_nonce`."""

    engine: SandboxEngine
    runner: Callable[[], bytes]
    new_nonce: Callable[[], str]

    async def execute(self, request: PytestRequest) -> Verification:
        """Raises SandboxError where no sandbox could be opened or it was lost: that is not a score."""
        suspicions = await asyncio.to_thread(suspicions_in, request.files, request.folder)
        is_inside = PurePosixPath(request.tests_folder).is_relative_to(request.folder)
        spec = SandboxSpec(
            workdir=request.folder,
            writable=(RUNNER,) if is_inside else (request.tests_folder, RUNNER),
            image=request.image,
            limits=LIMITS,
            can_lower_limits=True,
            lifetime_seconds=request.timeout_seconds + 120.0,
        )
        sandbox = await self.engine.open(spec)
        try:
            await sandbox.put(RUNNER, await asyncio.to_thread(self.runner))
            try:
                await sandbox.put(request.folder, request.files)
            except FilesRefused as refused:
                return Verification(is_passed=False, detail=str(refused), suspicions=suspicions)
            if is_inside:
                await self._restore(sandbox, request)
            await sandbox.put(request.tests_folder, request.tests)
            return await self._run(sandbox, request, suspicions)
        finally:
            await asyncio.shield(sandbox.close())

    async def _restore(self, sandbox: Sandbox, request: PytestRequest) -> None:
        """Leaves the task's configuration of pytest only: the agent's is removed, and no file of the agent
        replaces a test."""
        await sandbox.run(Command(("sh", "-c", _REMOVE, "sh", request.folder, *sorted(STEERING))))
        if request.path:
            await sandbox.run(Command(("rm", "-rf", "--", f"{request.tests_folder}/{request.path}")))
        if request.steering:
            await sandbox.put(request.folder, request.steering)

    async def _run(
        self, sandbox: Sandbox, request: PytestRequest, suspicions: tuple[str, ...]
    ) -> Verification:
        nonce = self.new_nonce()
        tests = f"{request.tests_folder}/{request.path}" if request.path else request.tests_folder
        command = Command(
            ("python3", "-I", "-B", "-c", _PROGRAM, request.tests_folder, tests),
            cwd=request.tests_folder if request.path else request.folder,
            stdin=nonce.encode(),
            timeout_seconds=request.timeout_seconds,
            output_bytes=OUTPUT_BYTES,
        )
        return _verification(await sandbox.run(command), nonce, request, suspicions)


def _verification(
    result: CommandResult, nonce: str, request: PytestRequest, suspicions: tuple[str, ...]
) -> Verification:
    """The tests' own count. Files that end the process before it is reported have failed them."""
    # On a busy machine the time may be over before the runner has started.
    if result.ended is Ended.TIMED_OUT:
        raise VerifierFailed(problem=f"the tests did not end within {request.timeout_seconds:g} s.")
    before, *reports = (result.head + result.tail).split(nonce.encode())
    if not reports or before:
        raise VerifierFailed(problem=f"the runner of tests did not start: {result.text[-300:].strip()}")
    output = reports[0].decode("utf-8", "replace")
    if len(reports) != 2:
        detail = f"the files ended the tests ({result.ended.value}, exit code {result.exit_code})"
        return Verification(is_passed=False, detail=detail, output=output, suspicions=suspicions)
    code, passed, failed = json.loads(reports[1])
    if code not in _JUDGED_CODES:
        raise VerifierFailed(problem=f"pytest ended with code {code}: {output[-300:].strip()}")
    missing = max(request.expected_tests - passed - failed, 0)
    is_passed = code == 0 and passed > 0 and not failed and not missing
    detail = f"{passed} passed, {failed} failed" + (f", {missing} did not run" if missing else "")
    return Verification(is_passed, detail, output, suspicions)
