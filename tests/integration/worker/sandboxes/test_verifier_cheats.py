"""Files of an agent that try to pass as right: ten ways, judged in a sandbox it was never in.

The agent works in a sandbox of its own. Only the files of its working folder are taken out, and only then do
the tests enter a second one. Eight ways fail there; two work inside the process of the tests, and are
reported.
"""

import io
import uuid
from collections.abc import Callable
from dataclasses import dataclass

import pytest

from services.common.sandboxes.bubblewrap.engine import BubblewrapEngine
from services.common.sandboxes.errors import VerifierFailed
from services.common.sandboxes.ports import Sandbox, SandboxEngine
from services.common.sandboxes.sandbox import Command, SandboxSpec, TarLimits
from services.common.sandboxes.tar_files import pack
from services.worker.verification.execute_pytest import ExecutePytest
from services.worker.verification.pytest_request import PytestRequest, Verification
from services.worker.verification.pytest_runner import pytest_runner
from tests.integration.worker.sandboxes.conftest import SMALL

TESTS = b"""
from doubling import twice, Box

def test_small():
    assert twice(2) == 4

def test_large():
    assert twice(2000) == 4000

def test_box():
    assert Box(3).doubled() == 6
"""
SOLUTION = """
def twice(n):
    return 2 * n

class Box:
    def __init__(self, n): self.n = n
    def doubled(self): return 2 * self.n
"""
WRONG = SOLUTION.replace("2 * ", "3 * ")


def left(**files: str) -> str:
    """A program of the agent that writes these files: `a__b` is a.b."""
    written = {name.replace("__", "."): text for name, text in files.items()}
    return f"for name, text in {written!r}.items(): open('/app/' + name, 'w').write(text)\n"


HOOK = """
import pytest
@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item, call):
    report = yield
    report.outcome = "passed"
    return report
"""
DAEMON = """
import os, time
if os.fork() == 0:
    os.setsid()
    end = time.monotonic() + 60
    while time.monotonic() < end:
        try: open("/tests/test_doubling.py", "w").write("def test(): pass")
        except OSError: pass
    os._exit(0)
"""
PREPARED = """
import os
os.makedirs("/app/tests")
open("/app/tests/test_doubling.py", "w").write("def test(): pass")
os.chmod("/app/tests/test_doubling.py", 0o400)
os.chmod("/app/tests", 0o500)
"""
PATCHES = "import _pytest.python\n_pytest.python.Function.runtest = lambda self: None\n"


@dataclass(frozen=True)
class Cheat:
    name: str
    program: str
    is_reported: bool = False
    passes: bool = False


CHEATS = (
    Cheat(
        "a hook in conftest.py",
        left(
            doubling__py=WRONG,
            conftest__py=HOOK,
        ),
        is_reported=True,
    ),
    Cheat(
        "pytest.ini that only collects",
        left(doubling__py=WRONG, pytest__ini="[pytest]\naddopts = --collect-only\n"),
        is_reported=True,
    ),
    Cheat(
        "a pytest of its own",
        left(doubling__py=WRONG, pytest__py="def main(*_, **__): return 0\nraise SystemExit(0)\n"),
        is_reported=True,
    ),
    Cheat("an exit on import", left(doubling__py="import os\nos._exit(0)\n"), is_reported=True),
    Cheat(
        "a .pth file of the user",
        left(doubling__py=WRONG)
        + "import os, site\nos.makedirs(site.getusersitepackages(), exist_ok=True)\n"
        + "open(site.getusersitepackages() + '/x.pth', 'w').write('import os; os._exit(0)')\n",
    ),
    Cheat(
        "a daemon that swaps the tests",
        left(doubling__py=WRONG) + DAEMON,
    ),
    Cheat(
        "a test file that is there already",
        left(doubling__py=WRONG) + PREPARED,
    ),
    Cheat(
        "a link in the place of the tests",
        left(doubling__py=WRONG)
        + "import os\nos.symlink('/app/mine', '/app/tests')\nos.symlink('/tests', '/app/mine')\n",
    ),
    Cheat(
        "patches pytest from the solution",
        left(
            doubling__py="import _pytest.python\n_pytest.python.Function.runtest = lambda self: None\n"
            + WRONG
        ),
        is_reported=True,
        passes=True,
    ),
    Cheat(
        "an object equal to everything",
        left(
            doubling__py="class All:\n    def __eq__(self, other): return True\ndef twice(n): return All()\n"
            "class Box:\n    def __init__(self, n): pass\n    def doubled(self): return All()\n"
        ),
        is_reported=True,
        passes=True,
    ),
)


@pytest.fixture
def verifier(engine: SandboxEngine) -> ExecutePytest:
    return ExecutePytest(engine=engine, runner=pytest_runner, new_nonce=lambda: uuid.uuid4().hex)


async def judged(verifier: ExecutePytest, program: str, *, seconds: float = 60.0) -> Verification:
    """What an agent's program leaves, taken out and judged."""
    agent: Sandbox = await verifier.engine.open(SandboxSpec(workdir="/app"))
    worked = await agent.run(Command(("python3", "-c", program), timeout_seconds=30))
    assert worked.is_success, worked.text
    with io.BytesIO() as taken:
        await agent.get("/app", taken, TarLimits())
        files = taken.read()
    request = PytestRequest(files, pack({"test_doubling.py": TESTS}), timeout_seconds=seconds)
    try:
        return await verifier.execute(request)
    finally:
        await agent.close()


async def test_the_right_solution_passes_and_none_fails(verifier: ExecutePytest) -> None:
    right = await judged(verifier, left(doubling__py=SOLUTION))
    assert (right.is_passed, right.detail, right.suspicions) == (True, "3 passed, 0 failed", ())
    nothing = await judged(verifier, "pass")
    assert (nothing.is_passed, nothing.detail.split(",")[0]) == (False, "0 passed")
    wrong = await judged(verifier, left(doubling__py=WRONG))
    assert (wrong.is_passed, wrong.detail) == (False, "0 passed, 3 failed")


@pytest.mark.parametrize("cheat", CHEATS, ids=lambda cheat: cheat.name)
async def test_a_cheat_fails_or_is_reported(
    verifier: ExecutePytest, cheat: Cheat, record_property: Callable[[str, object], None]
) -> None:
    if cheat.passes:
        record_property("outcome", "reported")
    verification = await judged(verifier, cheat.program)
    assert verification.is_passed is cheat.passes
    assert bool(verification.suspicions) is cheat.is_reported


async def test_tests_that_do_not_end_give_no_score(verifier: ExecutePytest) -> None:
    with pytest.raises(VerifierFailed, match="did not end within 2 s"):
        await judged(verifier, left(doubling__py="while True: pass"), seconds=2.0)


async def test_output_that_looks_like_a_result_is_none(verifier: ExecutePytest) -> None:
    forged = "import os\nos.write(1, b'[0, 3, 0]')\nos.write(2, b'[0, 3, 0]')\nos._exit(0)\n"
    assert not (await judged(verifier, left(doubling__py=forged))).is_passed


async def test_uses_of_watched_files_are_counted(engine: SandboxEngine) -> None:
    """By engines of containers they are not: nothing of theirs looks in from outside."""
    sandbox = await engine.open(SMALL)

    async def uses(script: str, folder: str) -> int | None:
        watched = (f"{folder}/one", f"{folder}/two")
        command = Command(("sh", "-c", script), "/work", watched=watched)
        return (await sandbox.run(command)).uses

    counted = [
        await uses("echo 1 > one; echo x > other; mkdir deep; echo 1 > deep/one", "/work"),
        await uses("cat one; echo 1 >> two; mv other one", "/work"),
        await uses("true", "/work"),
        # What is not there cannot be watched.
        await uses("echo 1 > one", "/nothing"),
    ]
    await sandbox.close()
    assert counted == ([3, 6, 0, None] if isinstance(engine, BubblewrapEngine) else [None] * 4)
