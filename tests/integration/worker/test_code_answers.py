"""Code that models write is executed with its tests, each answer in a sandbox of its own."""

import asyncio
import json
import uuid
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from proctor.values.code import CodeCheck, CodeResult
from services.common.sandboxes.bubblewrap.engine import BubblewrapEngine, find_bubblewrap
from services.common.sandboxes.errors import CannotIsolate, SandboxNotOpened
from services.worker.verification.check_code import CheckCode
from tests.fakes.thorough_cases import first_cases
from tests.fakes.worker.refusing_sandboxes import refusing_check
from tests.reference.golden_reference import folder_of

CHECK = CodeCheck("def f(n):\n", "assert f(2) == 4")


@pytest.fixture
async def checker() -> AsyncIterator[CheckCode]:
    engine = BubblewrapEngine(find_bubblewrap())
    yield CheckCode(engine=engine, slots=asyncio.Semaphore(4), new_nonce=lambda: uuid.uuid4().hex)
    await engine.close()


@first_cases(
    5,
    ("answer", "detail"),
    [
        ("    return 2 * n", "passed"),
        ("    print(n)\n    return n * 2", "passed"),
        ("    return n", "failed: AssertionError"),
        ("    return undefined", "failed: NameError: name 'undefined' is not defined"),
        ("  return (", "failed: SyntaxError: '(' was never closed (<answer>, line 2)"),
        ("    while True: pass", "timed out"),
        ("    return b'1' * (1 << 31)", "out of memory"),
        ("    import time; time.sleep(100)", "timed out"),
        ("    import os; os._exit(0)", "ended itself with code 0 before its tests ended"),
        ("    import sys; sys.exit(0)", "failed: SystemExit: 0"),
        ("    import os; os.kill(os.getpid(), 9)", "ended itself with code 137 before its tests ended"),
        ("    return input()", "failed: EOFError: EOF when reading a line"),
        ("    return open('/etc/shadow').read()", "failed: FileNotFoundError"),
        ("    raise KeyboardInterrupt", "failed: KeyboardInterrupt"),
    ],
)
async def test_a_program_passes_or_its_failure_is_named(checker: CheckCode, answer: str, detail: str) -> None:
    check = CodeCheck(CHECK.prefix, CHECK.tests, timeout_seconds=1.0)
    result = await checker.check(check, answer)
    assert result.is_passed is (detail == "passed")
    if answer.endswith("(1 << 31)"):
        assert result.detail in {detail, "failed: MemoryError"}
    else:
        assert result.detail.startswith(detail)


CHEATS = {
    "prints what a test might": "    import os; os.write(1, b'passed'); os._exit(0)",
    "replaces the exception": "    import builtins; builtins.AssertionError = None; return 5",
    "writes to every file it has": """    import os
    for number in range(64):
        try: os.write(number, b'x')
        except OSError: pass
    os._exit(0)""",
    "looks for the nonce in the main module": "    import os, sys\n    m = sys.modules['__main__']\n"
    "    os.write(1, str(vars(m)).encode()); os._exit(0)",
    "leaves a process that answers later": "    import os, time\n    if os.fork() == 0:\n"
    "        time.sleep(0.2); os.write(1, b'passed')\n    os._exit(0)",
}


@pytest.mark.parametrize("name", CHEATS)
async def test_a_cheat_does_not_pass(checker: CheckCode, name: str) -> None:
    assert not (await checker.check(CHECK, CHEATS[name])).is_passed


async def test_answers_share_no_state(checker: CheckCode) -> None:
    plants = "    open('/work/planted', 'w').write('4'); open('/tmp/planted', 'w').write('4')\n    return 4"
    finds = "    import glob\n    return 4 if glob.glob('/*/planted') else 0"
    first = await checker.check(CHECK, plants)
    results = await asyncio.gather(*(checker.check(CHECK, finds) for _ in range(4)))
    assert first.is_passed
    assert [result.is_passed for result in results] == [False] * 4


async def test_a_sandbox_without_python_gives_no_result() -> None:
    """A place of its own for python3 hides that of the machine."""
    engine = BubblewrapEngine(find_bubblewrap(), read_only=(("/dev/null", "/usr/bin/python3"),))
    checker = CheckCode(engine=engine, slots=asyncio.Semaphore(1), new_nonce=lambda: "nonce")
    with pytest.raises(SandboxNotOpened, match="python3 does not start"):
        await checker.check(CHECK, "    return 4")
    await engine.close()


async def test_a_machine_that_cannot_isolate_gives_no_result() -> None:
    with pytest.raises(CannotIsolate):
        await refusing_check().check(CHECK, "    return 4")


def problems() -> list[dict[str, str]]:
    file: Path = folder_of("PROCTOR_DATA_DIR") / "gen/humaneval.test.jsonl"
    return [json.loads(line) for line in file.read_text(encoding="utf-8").splitlines()]


@first_cases(1, "step", [3, 1])
async def test_humaneval_s_own_solutions_pass_and_empty_ones_fail(checker: CheckCode, step: int) -> None:
    rows = problems()[::step]

    async def judge(row: dict[str, str], answer: str) -> CodeResult:
        check = CodeCheck(row["prompt"], f"{row['test']}\ncheck({row['entry_point']})")
        return await checker.check(check, answer)

    solved = await asyncio.gather(*(judge(row, row["canonical_solution"]) for row in rows))
    empty = await asyncio.gather(*(judge(row, "    pass\n") for row in rows[:40]))
    assert [result for result in solved if not result.is_passed] == []
    assert [result for result in empty if result.is_passed] == []
