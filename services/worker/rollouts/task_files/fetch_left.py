"""Takes out of a sandbox what an agent left: the folders of its task, and the rest of a writable root."""

import asyncio
import io
from collections.abc import Sequence
from dataclasses import dataclass

from proctor.values.rollout import RolloutTask, VerifierKind
from services.common.sandboxes.errors import FilesOverLimit, FilesRefused
from services.common.sandboxes.ports import Sandbox
from services.common.sandboxes.sandbox import RootParts, TarLimits
from services.worker.rollouts.errors import FilesNotCollected, FilesNotReached, FolderNotWritable
from services.worker.rollouts.task_files.root_files import not_taken, not_writable, taken_root
from services.worker.rollouts.task_files.set_up import make_removed
from services.worker.verification.bundles import LeftFiles, at_their_folders
from services.worker.verification.verifier_result import VerifierResult

_SHOWN = 5


@dataclass(frozen=True, slots=True)
class FetchLeft:
    """`limits` are for each folder, and for what else is in the root together.

    `programs` are the folder of the solution, and those of the sandbox's own. `is_solution`: files that do
    not reach the tests are looked for.
    """

    limits: TarLimits
    root: RootParts
    programs: Sequence[str]
    is_solution: bool

    async def fetch(self, sandbox: Sandbox, task: RolloutTask) -> LeftFiles:
        """Raises SandboxError; FilesNotCollected where folders of the task are over a limit of ours."""
        try:
            files = await self._taken(sandbox, task.workdir)
            await make_removed(sandbox, task.folders)
            tars = {folder: await self._taken(sandbox, folder) for folder in task.folders}
        except FilesOverLimit as over:
            # A limit of ours is no failure of the agent.
            raise FilesNotCollected(problem=str(over)) from over
        except FilesRefused as refused:
            # The agent left what cannot be read: that is its own doing.
            return LeftFiles(b"", problem=str(refused))
        root, over_limit = await self._root(sandbox, task)
        if root:
            tars["/"] = root
        packed = await asyncio.to_thread(at_their_folders, tars) if tars else b""
        unreached = await not_taken(sandbox, task, root, self.programs) if self.is_solution else ()
        return LeftFiles(files, packed, unreached=unreached, over_limit=over_limit)

    async def _root(self, sandbox: Sandbox, task: RolloutTask) -> tuple[bytes, str]:
        """A script of a rubric has the working folder only."""
        if task.verifier is VerifierKind.RUBRICS:
            return b"", ""
        try:
            return await taken_root(sandbox, self.limits, self.root), ""
        except FilesOverLimit as over:
            return b"", str(over)
        except FilesRefused:
            return b"", ""

    async def _taken(self, sandbox: Sandbox, folder: str) -> bytes:
        with io.BytesIO() as taken:
            await sandbox.get(folder, taken, self.limits)
            return taken.getvalue()


def check_reached(left: LeftFiles, result: VerifierResult, said: str, *, is_same: bool) -> None:
    """A limit of ours, or of what sandboxes have, fails no agent and no solution.

    `said` is what a solution printed. Raises SandboxError.
    """
    if left.over_limit and not is_same:
        raise FilesNotCollected(problem=left.over_limit)
    score = f"{result.score:g}"
    if left.unreached and not is_same:
        files = ", ".join(left.unreached[:_SHOWN])
        raise FilesNotReached(files=files, score=score, detail=result.detail)
    if path := not_writable(said):
        raise FolderNotWritable(path=path, score=score, detail=result.detail)
