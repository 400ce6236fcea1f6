"""One rollout: an agent works in a sandbox; its files are taken out and judged in a second one."""

import asyncio
import io
from dataclasses import dataclass

from proctor.values.rollout import AgentKind, Rollout, RolloutTask
from services.common.clock import Clock
from services.worker.rollouts.agent_work import AgentWork
from services.worker.rollouts.artifacts import DIFF, LOG, Artifacts
from services.worker.rollouts.budget import Budget
from services.worker.rollouts.execute_agent import SOLUTION, ExecuteAgent
from services.worker.rollouts.performed import AgentEnd, Performed, diff_of
from services.worker.rollouts.ports import ArtifactSink, AskModel, BudgetLedger
from services.worker.rollouts.transcript import Transcript
from services.worker.sandboxes.errors import FilesRefused, SandboxError
from services.worker.sandboxes.ports import Sandbox
from services.worker.sandboxes.sandbox import Network, SandboxLimits, SandboxSpec, TarLimits
from services.worker.verification.bundles import inflated
from services.worker.verification.verifier_result import VerifierResult
from services.worker.verification.verify_rollout import VerifyRollout

# Enough for builds in parallel, and an end for a bomb of forks.
MAX_PROCESSES = 128
# For the start, the collection of files, and waits for a provider, which are not the agent's time.
_WAITS_SECONDS = 3 * 3600.0


@dataclass(frozen=True, slots=True)
class Performance:
    """One execution of a rollout. `session_id` and `model` are for the transcript. Without a `ledger` budgets
    hold for this execution only.
    """

    rollout: Rollout
    session_id: str
    model: str = ""
    ask: AskModel | None = None
    sink: ArtifactSink | None = None
    ledger: BudgetLedger | None = None


@dataclass(frozen=True, slots=True)
class ExecuteRollout:
    """`slots` bounds the rollouts at a time: each has up to one open sandbox."""

    verifier: VerifyRollout
    agents: ExecuteAgent
    slots: asyncio.Semaphore
    clock: Clock

    async def execute(self, performance: Performance) -> Performed:
        """Raises SandboxError where there is no score; sandboxes are closed in any case."""
        async with self.slots:
            started = self.clock.monotonic()
            task = performance.rollout.task
            agent = performance.rollout.agent.kind
            transcript = Transcript(performance.session_id, f"proctor-{agent}", performance.model)
            workspace = await asyncio.to_thread(inflated, task.workspace)
            artifacts = Artifacts(performance.sink, self.clock)
            budget = Budget(performance.rollout.agent, task.limits.agent_seconds, performance.ledger)
            work = AgentWork(performance.rollout, performance.ask, transcript, budget, artifacts.checkpoint)
            end, files, problem = await self._work(work, workspace, artifacts)
            diff = "" if problem else await asyncio.to_thread(diff_of, workspace, files, task.workdir)
            # Before the tests, which may give no result: what the agent did is shown all the same.
            await artifacts.store(DIFF, diff.encode("utf-8", "replace"))
            try:
                result = VerifierResult(0.0, problem) if problem else await self.verifier.verify(task, files)
            except SandboxError as error:
                await artifacts.store(LOG, str(error).encode("utf-8", "replace"))
                raise
            await artifacts.store(LOG, result.log.encode("utf-8", "replace"))
            seconds = self.clock.monotonic() - started
            return Performed(end, result, transcript, diff, seconds, budget.facts, artifacts.facts)

    async def _work(
        self, work: AgentWork, workspace: bytes, artifacts: Artifacts
    ) -> tuple[AgentEnd, bytes, str]:
        """How the agent ended, a tar of its files, and why there is none."""
        rollout, transcript = work.rollout, work.transcript
        sandbox = await self.verifier.solutions.engine.open(_spec(rollout))
        try:
            await sandbox.put(rollout.task.workdir, workspace)
            try:
                end = await self.agents.execute(sandbox, work)
            except Exception:
                # The model failed: the transcript says how far the agent came. A run that is cancelled waits
                # for nothing.
                await artifacts.store_transcript(transcript)
                raise
            await artifacts.store_transcript(transcript)
            # Before the files are taken: nothing may change them meanwhile.
            await sandbox.stop_processes()
            try:
                files = await _collected(sandbox, rollout.task)
                await artifacts.store_files(files)
                return end, files, ""
            except FilesRefused as refused:
                # The agent left more than is taken out: that is its own doing.
                return end, b"", str(refused)
        finally:
            # Shielded: a rollout that is cancelled leaves no sandbox.
            await asyncio.shield(sandbox.close())


async def _collected(sandbox: Sandbox, task: RolloutTask) -> bytes:
    with io.BytesIO() as taken:
        await sandbox.get(task.workdir, taken, TarLimits())
        return taken.getvalue()


def _spec(rollout: Rollout) -> SandboxSpec:
    limits = rollout.task.limits
    is_oracle = rollout.agent.kind is AgentKind.ORACLE
    return SandboxSpec(
        workdir=rollout.task.workdir,
        writable=("/logs", SOLUTION) if is_oracle else ("/logs",),
        image=rollout.task.image,
        network=Network.MODEL if rollout.agent.kind is AgentKind.COMMAND else Network.NONE,
        limits=SandboxLimits(limits.cpus, limits.memory_bytes, limits.disk_bytes, MAX_PROCESSES),
        lifetime_seconds=limits.agent_seconds + _WAITS_SECONDS,
    )
