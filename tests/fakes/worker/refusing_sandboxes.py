"""An engine of sandboxes that can open none, as on a machine without namespaces."""

import asyncio

from services.worker.sandboxes.errors import CannotIsolate
from services.worker.sandboxes.ports import Sandbox
from services.worker.sandboxes.sandbox import Isolation, SandboxSpec
from services.worker.verification.check_code import CheckCode

_PROBLEM = "no sandbox is opened in this test."


class RefusingSandboxes:
    async def check(self) -> Isolation:
        return Isolation("refusing", _PROBLEM)

    async def sweep(self) -> int:
        return 0

    async def open(self, spec: SandboxSpec) -> Sandbox:  # noqa: ARG002  # the port
        raise CannotIsolate(problem=_PROBLEM)

    async def close(self) -> None:
        return


def refusing_check() -> CheckCode:
    return CheckCode(RefusingSandboxes(), asyncio.Semaphore(1), lambda: "word")
