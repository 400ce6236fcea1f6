"""Judges collected files by tests, in a sandbox that the agent was never in.

The sandbox gets the files first and the tests afterwards: no process, home or temporary file of the agent is
there. What is installed, the runner of the tests first, stands before the files on the path of imports; no
configuration, plugin or conftest.py of theirs is read.
"""

import asyncio
import io
import json
import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from pathlib import PurePosixPath

from services.common.sandboxes.errors import FilesRefused, VerifierFailed
from services.common.sandboxes.ports import Sandbox, SandboxEngine
from services.common.sandboxes.sandbox import (
    Command,
    CommandResult,
    Ended,
    SandboxLimits,
    SandboxSpec,
    TarLimits,
)
from services.common.sandboxes.tar_files import PackedFile, ReadFile, read_files
from services.worker.verification.agent_files import TestPlaces, made_ready, steers
from services.worker.verification.pytest_request import PytestRequest, Verification
from services.worker.verification.pytest_runner import PACKAGES, RUNNER
from services.worker.verification.ran_tests import other_tests, ran_tests
from services.worker.verification.suspicions.left_files import suspicions_in

_MIB = 1024**2
OUTPUT_BYTES = 20_000
# Passed, failed, interrupted. The others are errors of pytest or of its caller, or that there is no test.
_JUDGED_CODES = frozenset({0, 1, 2})
LIMITS = SandboxLimits(cpus=2.0, memory_bytes=1024 * _MIB, disk_bytes=256 * _MIB, processes=128)

# As for code of a single answer: the nonce is in no module, and a program that ends itself does not write it.
_PROGRAM = f"""
import json, os, sys
def main():
    nonce = sys.stdin.buffer.read()
    tests = sys.argv.pop()
    folder, files = sys.argv.pop(), sys.argv.pop()
    reports, nothing = os.dup(2), os.open(os.devnull, os.O_RDONLY)
    os.dup2(nothing, 0)
    os.dup2(1, 2)
    for name in [name for name in os.environ if name.startswith("PYTEST")]:
        del os.environ[name]
    # A package of the image may be installed as a link to the working folder: it comes after all others.
    own = [path for path in sys.path if (path + "/").startswith((files + "/", folder + "/"))]
    sys.path[:] = [{PACKAGES!r}, *(path for path in sys.path if path not in own)]
    import pytest
    from importlib.metadata import entry_points
    plugins = [point.load() for point in entry_points(group="pytest11")]
    class Count:
        passed = failed = 0
        names, properties = [], {{}}
        def pytest_runtest_logreport(self, report):
            self.failed += report.failed
            self.passed += report.passed and report.when == "call"
            if report.when == "call" and not report.skipped:
                self.names.append(report.nodeid.partition("::")[2])
                for name, value in report.user_properties:
                    if type(value) in (int, float, bool) and len(self.properties) < 100:
                        self.properties[str(name)[:100]] = float(value)
        def pytest_collectreport(self, report):
            self.failed += report.failed
    count = Count()
    os.write(reports, nonce)
    # Helpers of the tests before the files that they judge, both after all that is installed.
    place = tests if os.path.isdir(tests) else os.path.dirname(tests)
    while place.startswith(folder):
        if not os.path.exists(place + "/__init__.py"):
            sys.path.append(place)
        place = os.path.dirname(place)
    sys.path += [os.getcwd(), *own]
    options = ["-c", os.devnull, "--rootdir", folder, "--confcutdir", folder, "-q", "--tb=short"]
    # By an option: a variable would also reach the programs that the tests start.
    options += ["--disable-plugin-autoload", "-p", "no:cacheprovider", "--import-mode=importlib", tests]
    code = pytest.main(options, plugins=[count, *plugins])
    sys.stdout.flush()
    result = [int(code), count.passed, count.failed, count.names, count.properties]
    os.write(reports, nonce + json.dumps(result).encode())
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
        suspicions = await asyncio.to_thread(suspicions_in, request.files, request.folder, request.workspace)
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
                await sandbox.put(request.folder, await asyncio.to_thread(_files, request))
            except FilesRefused as refused:
                return Verification(is_passed=False, detail=str(refused), suspicions=suspicions)
            await sandbox.put(request.tests_folder, request.tests)
            return await self._run(sandbox, request, suspicions)
        finally:
            await asyncio.shield(sandbox.close())

    async def _run(
        self, sandbox: Sandbox, request: PytestRequest, suspicions: tuple[str, ...]
    ) -> Verification:
        nonce = self.new_nonce()
        tests = f"{request.tests_folder}/{request.path}" if request.path else request.tests_folder
        command = Command(
            ("python3", "-I", "-B", "-c", _PROGRAM, request.folder, request.tests_folder, tests),
            cwd=request.tests_folder if request.path else request.folder,
            stdin=nonce.encode(),
            timeout_seconds=request.timeout_seconds,
            output_bytes=OUTPUT_BYTES,
        )
        return _verification(await sandbox.run(command), nonce, request, suspicions)


def _files(request: PytestRequest) -> bytes:
    """What is unpacked before the tests: the agent's files, and helpers of the tests as the task has them."""
    folder, root = PurePosixPath(request.folder), PurePosixPath(request.tests_folder)
    if not root.is_relative_to(folder):
        return made_ready(request.files, request.folder, is_left_out=steers)
    inner = root.relative_to(folder)
    tests = {str(inner / file.name) for file in _read(request.tests, request.tests_folder)}
    places = TestPlaces(
        root=str(inner),
        script=str(inner / request.path),
        scripts=frozenset(str(inner / script) for script in request.scripts),
    )
    helpers = {
        file.name: PackedFile(file.content, file.mode)
        for file in _read(request.workspace, request.folder)
        if places.is_of_tests(file.name) and file.name not in tests
    }
    places = replace(places, files=frozenset({*tests, *helpers}))
    folders = [str(PurePosixPath(file).parent) for file in places.files]
    return made_ready(
        request.files,
        request.folder,
        is_left_out=places.hides,
        folders=(str(inner), *folders),
        added=helpers,
    )


def _read(tar: bytes, path: str) -> Iterator[ReadFile]:
    return read_files(io.BytesIO(tar), path, TarLimits()) if tar else iter(())


def _verification(
    result: CommandResult, nonce: str, request: PytestRequest, suspicions: tuple[str, ...]
) -> Verification:
    """The tests' own count. Files that end the process before it is reported have failed them."""
    # On a busy machine the time may be over before the runner has started.
    if result.ended is Ended.TIMED_OUT:
        raise VerifierFailed(problem=f"the tests did not end within {request.timeout_seconds:g} s.")
    # Before the first nonce stands only output of the image, as the warning of a plugin that is loaded.
    _, *reports = (result.head + result.tail).split(nonce.encode())
    if not reports:
        raise VerifierFailed(problem=f"the runner of tests did not start: {result.text[-300:].strip()}")
    output = reports[0].decode("utf-8", "replace")
    if len(reports) != 2:
        detail = f"the files ended the tests ({result.ended.value}, exit code {result.exit_code})"
        return Verification(is_passed=False, detail=detail, output=output, suspicions=suspicions)
    code, passed, failed, names, properties = json.loads(reports[1])
    if code not in _JUDGED_CODES:
        raise VerifierFailed(problem=f"pytest ended with code {code}: {output[-300:].strip()}")
    is_passed = code == 0 and passed > 0 and not failed
    ran = ran_tests(f"{request.path}::{name}" for name in names)
    if is_passed:
        suspicions = (*suspicions, *other_tests(ran, request.solved_tests))
    detail = f"{passed} passed, {failed} failed"
    measured = {name: value for name, value in properties.items() if math.isfinite(value)}
    return Verification(is_passed, detail, output, suspicions, ran, measured)
