"""Whether code can be executed is found by few sandboxes, however many samples ask."""

import asyncio

from services.common.sandboxes.sandbox import Isolation
from services.worker.verification.check_code import CheckCode
from tests.fakes.worker.refusing_sandboxes import RefusingSandboxes


class CountingSandboxes(RefusingSandboxes):
    def __init__(self) -> None:
        self.checks = 0
        self.problem = "it is away."

    async def check(self) -> Isolation:
        self.checks += 1
        await asyncio.sleep(0)
        return Isolation("counting", self.problem)


async def test_samples_that_ask_at_once_share_one_look_and_a_failure_is_looked_at_again() -> None:
    engine = CountingSandboxes()
    checker = CheckCode(engine, asyncio.Semaphore(1), lambda: "word")

    async def ask() -> set[str]:
        return set(await asyncio.gather(*(checker.problem() for _ in range(20))))

    (problem,) = await ask()
    assert problem.endswith("it is away.")
    assert engine.checks == 1
    engine.problem = ""
    assert await ask() == {""}
    assert await ask() == {""}
    assert engine.checks == 2
