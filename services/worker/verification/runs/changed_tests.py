"""Finds tests that became others while they ran, as by a program that they start and that the agent left."""

import asyncio
import io

from proctor.values.rollout import RolloutTask
from services.common.sandboxes.errors import FilesRefused
from services.common.sandboxes.ports import Sandbox
from services.common.sandboxes.sandbox import TarLimits
from services.common.sandboxes.tar_files import read_files
from services.worker.verification.bundles import inflated_scripts

# Data beside the tests is often theirs to write.
_CODE = (".py", ".sh", ".js", ".mjs", ".cjs", ".ts", ".go", ".rs", ".c", ".cpp", ".rb", ".java", ".bats")
_LIMITS = TarLimits(total_bytes=64 * 1024**2, members=20_000)
_MAX_NAMED = 5


async def changed_tests(sandbox: Sandbox, task: RolloutTask) -> tuple[str, ...]:
    """Suspicions of code of the tests that is another than before they ran. Raises SandboxError.

    Tests that are gone, or leave more than the limits, are none.
    """
    if not task.tests:
        return ()
    with io.BytesIO() as taken:
        try:
            await sandbox.get(task.tests_folder, taken, _LIMITS)
            return await asyncio.to_thread(_differing, task, taken)
        except FilesRefused:
            return ()


def _differing(task: RolloutTask, taken: io.BytesIO) -> tuple[str, ...]:
    given = read_files(io.BytesIO(inflated_scripts(task.tests)), task.tests_folder, TarLimits())
    before = {each.name: each.content for each in given if each.name.endswith(_CODE)}
    after = read_files(taken, task.tests_folder, _LIMITS)
    names = [each.name for each in after if before.get(each.name, each.content) != each.content]
    return tuple(f"{task.tests_folder}/{name} was changed while the tests ran" for name in names[:_MAX_NAMED])
