"""One rollout: an agent works in a sandbox; its files are taken out and judged in a second one."""

import asyncio
import io
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field, replace
from functools import partial

from proctor.values.agents.built_in import built_in
from proctor.values.rollout import (
    DIFF,
    LOG,
    AgentKind,
    RolloutAgent,
    RolloutSpec,
    RolloutTask,
    VerificationPlace,
)
from services.common.clock import Clock
from services.common.sandboxes.errors import SandboxBlocked, SandboxError
from services.common.sandboxes.ports import ImageBuilder, Sandbox
from services.common.sandboxes.sandbox import (
    Command,
    Network,
    RootParts,
    SandboxLimits,
    SandboxSpec,
    TarLimits,
)
from services.common.sandboxes.tar_files import read_files
from services.worker.rollouts.agent_work import AgentWork
from services.worker.rollouts.artifacts import Artifacts
from services.worker.rollouts.budget import WAITS_SECONDS, Budget, Spent
from services.worker.rollouts.errors import (
    StepNotPrepared,
)
from services.worker.rollouts.execute_agent import SOLUTION, ExecuteAgent
from services.worker.rollouts.ports import ArtifactSink, AskModel, BudgetLedger
from services.worker.rollouts.programs.agent_installers import INTO, AgentInstallers
from services.worker.rollouts.programs.agent_program import PLACE, AgentProgram
from services.worker.rollouts.rests.rest import Rest
from services.worker.rollouts.rests.restable_sandbox import RestableSandbox
from services.worker.rollouts.rollout_result import AgentEnd, RolloutResult, TaskStepRecord, diff_of, notes_of
from services.worker.rollouts.task_files.check_lacking import check_lacking
from services.worker.rollouts.task_files.execute_stages import ExecuteStages
from services.worker.rollouts.task_files.fetch_image import FetchImage
from services.worker.rollouts.task_files.fetch_left import FetchLeft, check_reached
from services.worker.rollouts.task_files.root_files import in_own_folders, root_parts
from services.worker.rollouts.task_files.set_up import SETUP_SECONDS, set_up
from services.worker.rollouts.task_steps import SETUP, TaskStep, is_below, overall, task_steps
from services.worker.rollouts.trajectory import Trajectory
from services.worker.verification.bundles import LeftFiles, inflated
from services.worker.verification.image_packages import ImagePackages
from services.worker.verification.verifier_result import VerifierResult
from services.worker.verification.verify_rollout import VerifyRollout, tests_places, with_packages

# Enough for builds in parallel, and an end for a bomb of forks.
MAX_PROCESSES = 128
# Folders of the solution and of what a worker brings, whose content is not the agent's.
_PROGRAMS = (SOLUTION, PLACE, INTO)


def _of_image(_: RolloutAgent) -> None:
    """The default of `find_program`."""


@dataclass(frozen=True, slots=True)
class RolloutExecution:
    """One execution of a rollout. `session_id` and `model` are for the trajectory. Without a `ledger` budgets
    hold for this execution only. `spent` stays where the execution ends without a result.
    """

    rollout_spec: RolloutSpec
    session_id: str
    model: str = ""
    ask: AskModel | None = None
    sink: ArtifactSink | None = None
    ledger: BudgetLedger | None = None
    spent: Spent = field(default_factory=Spent)
    rest: Rest = field(default_factory=Rest)


@dataclass(frozen=True, slots=True)
class ExecuteRollout:
    """`slots` bounds the rollouts at a time. Each has one open sandbox; with several steps it has two.

    `collected` bounds what is taken of an agent's working folder. `find_program` blocks, and returns None
    where the image has the program of an agent. `builder` is None where images are not built.
    `find_installers` blocks.
    """

    verifier: VerifyRollout
    agents: ExecuteAgent
    slots: asyncio.Semaphore
    clock: Clock
    collected: TarLimits = field(default_factory=TarLimits)
    find_program: Callable[[RolloutAgent], AgentProgram | None] = _of_image
    builder: ImageBuilder | None = None
    find_installers: Callable[[], AgentInstallers] = AgentInstallers

    async def execute(self, execution: RolloutExecution) -> RolloutResult:
        """Raises SandboxError where there is no score; sandboxes are closed in any case."""
        async with execution.rest.in_slot(self.slots):
            started = self.clock.monotonic()
            execution, packages = await self._with_image(execution)
            task = execution.rollout_spec.task
            program = await asyncio.to_thread(self.find_program, execution.rollout_spec.agent)
            trajectory = _trajectory(execution, program)
            workspace = await asyncio.to_thread(inflated, task.workspace)
            artifacts = Artifacts(execution.sink, self.clock)
            budget = Budget(execution.rollout_spec.agent, task.limits.agent_seconds, execution.ledger)
            execution.spent.budget = budget
            work = AgentWork(
                execution.rollout_spec, execution.ask, trajectory, budget, artifacts.checkpoint, program
            )
            installers = await asyncio.to_thread(self.find_installers)
            rollout = _OneRollout(self, work, workspace, artifacts, packages, installers, execution.rest)
            steps: tuple[TaskStepRecord, ...] = ()
            if task.steps:
                steps = await rollout.in_task_steps()
                end = steps[-1].end
                result = overall(steps, only_last=task.scores_last_step, solved=task.solved_tests)
            else:
                end, result = await rollout.at_once()
            await artifacts.store(LOG, result.log.encode("utf-8", "replace"))
            seconds = self.clock.monotonic() - started
            return RolloutResult(
                end=end,
                result=result,
                verification=execution.rollout_spec.agent.verification,
                trajectory=trajectory,
                diff=rollout.diff,
                agent_notes=rollout.agent_notes,
                seconds=seconds,
                budget=budget.facts,
                artifacts=artifacts.facts,
                steps=steps,
                notes=rollout.work.rollout_spec.task.notes,
                earlier_usage=budget.earlier.usage,
            )

    async def _with_image(self, execution: RolloutExecution) -> tuple[RolloutExecution, ImagePackages]:
        """The task with its image, or with variables by which its commands find the packages of one."""
        rollout_spec = execution.rollout_spec
        engine = self.verifier.execute_pytest.engine
        task = await FetchImage(engine, self.builder, self.collected).fetch(rollout_spec.task)
        packages = await asyncio.to_thread(self.verifier.find_packages, task.packages)
        task = replace(
            with_packages(task, packages),
            setup=tuple(
                replace(step, environment=packages.variables(step.environment)) for step in task.setup
            ),
            notes=(*task.notes, *packages.notes),
        )
        return replace(execution, rollout_spec=replace(rollout_spec, task=task)), packages


@dataclass(slots=True)
class _OneRollout:
    """An agent at work in its sandbox, and the judgement of what it leaves."""

    parts: ExecuteRollout
    work: AgentWork
    workspace: bytes
    artifacts: Artifacts
    packages: ImagePackages
    installers: AgentInstallers
    rest: Rest
    root: RootParts = field(default_factory=RootParts)
    diff: str = ""
    agent_notes: str = ""

    async def at_once(self) -> tuple[AgentEnd, VerifierResult]:
        """The agent's sandbox is closed before the tests begin, unless they judge in it."""
        async with self._opened() as sandbox:
            task = self.work.rollout_spec.task
            end = await self._agent(sandbox, task)
            left = await self._left(sandbox)
            if _is_same(self.work.rollout_spec):
                await self._store_left(left)
                return end, await self._judged(task, left, sandbox)
        await self._store_left(left)
        return end, await self._judged(task, left)

    async def in_task_steps(self) -> tuple[TaskStepRecord, ...]:
        """The steps that were judged; one sandbox for all of them. Raises SandboxError."""
        records: list[TaskStepRecord] = []
        left: LeftFiles | None = None
        try:
            async with self._opened() as sandbox:
                steps = await asyncio.to_thread(task_steps, self.work.rollout_spec.task)
                for each in steps:
                    await self._prepare(sandbox, each)
                    self.work.budget.begin_task_step(each.step.agent_seconds)
                    end = await self._agent(sandbox, each.task)
                    left = await self._left(sandbox)
                    result = await self._judged(each.task, left)
                    records.append(TaskStepRecord(each.step.name, end, result))
                    if left.problem or is_below(dict(result.rewards), each.step.min_rewards):
                        break
        except Exception:
            # Not where it is cancelled: a cancelled rollout stores nothing more.
            await self._store_latest(left)
            raise
        await self._store_latest(left)
        return tuple(records)

    async def _store_latest(self, left: LeftFiles | None) -> None:
        """Once for all steps: a smaller artifact would not replace all parts of one before."""
        if left is not None:
            await self._store_left(left)

    @asynccontextmanager
    async def _opened(self) -> AsyncIterator[Sandbox]:
        rollout_spec, engine = self.work.rollout_spec, self.parts.verifier.execute_pytest.engine
        self.root = await asyncio.to_thread(root_parts, rollout_spec.task, _PROGRAMS)
        stages = ExecuteStages(engine, self.parts.collected)
        task, copied = await stages.execute(rollout_spec.task, self.packages)
        sandbox = RestableSandbox(
            partial(engine.open, self._sandbox_spec()),
            (rollout_spec.task.workdir, *rollout_spec.task.folders, *self.installers.writable),
            self.parts.collected,
            self.root,
        )
        await sandbox.open()
        try:
            self.rest.sandbox = sandbox
            self.rest.needs_processes = _needs_processes(rollout_spec)
            program = self.work.program
            if program is not None and not program.is_shown:
                await sandbox.put(PLACE, await asyncio.to_thread(program.packed))
            await sandbox.put(task.workdir, self.workspace)
            if task.others:
                await sandbox.put("/", await asyncio.to_thread(inflated, task.others))
            for files in copied:
                await sandbox.put("/", files)
            if task.setup or copied:
                await self._set_up(sandbox, task)
            if not sandbox.has_root:
                task = in_own_folders(self.work.rollout_spec.task)
                self.work = replace(self.work, rollout_spec=replace(rollout_spec, task=task))
            yield sandbox
        finally:
            # Shielded: a rollout that is cancelled leaves no sandbox.
            await asyncio.shield(sandbox.close())

    def _sandbox_spec(self) -> SandboxSpec:
        """A program that is put into the sandbox takes none of the task's memory."""
        rollout_spec, program = self.work.rollout_spec, self.work.program
        task, limits, kind = rollout_spec.task, rollout_spec.task.limits, rollout_spec.agent.kind
        own = ["/logs", *self.installers.writable, *([SOLUTION] if kind is AgentKind.ORACLE else [])]
        if _is_same(rollout_spec):
            own += tests_places(task)
        # The Dockerfile may have made some of them.
        own = [each for each in own if each not in task.folders]
        memory, disk = limits.memory_bytes, limits.disk_bytes
        shown = (*self.packages.shown, *self.installers.shown)
        if program is not None and program.is_shown:
            shown += ((str(program.folder), PLACE),)
        elif program is not None:
            own.append(PLACE)
            size = 2 * program.size_bytes
            memory, disk = memory + size, disk + size
        return SandboxSpec(
            workdir=task.workdir,
            writable=(*task.folders, *own),
            image=task.image,
            network=Network.MODEL if kind is AgentKind.COMMAND else Network.NONE,
            limits=SandboxLimits(limits.cpus, memory, disk, MAX_PROCESSES),
            lifetime_seconds=limits.agent_seconds
            + WAITS_SECONDS
            + (SETUP_SECONDS if task.setup else 0.0)
            + sum(step.verifier_seconds + SETUP_SECONDS for step in task.steps)
            + (limits.verifier_seconds if _is_same(rollout_spec) else 0.0),
            shown=shown,
            # Where tests judge in it, the agent must not move the folders of their runner.
            plain=() if _is_same(rollout_spec) else (*task.folders, *own),
        )

    async def _set_up(self, sandbox: RestableSandbox, task: RolloutTask) -> None:
        """From then on the task is one whose files are as the steps have left them."""
        ready = await set_up(sandbox, task, self.parts.collected, self.root)
        self.work = replace(self.work, rollout_spec=replace(self.work.rollout_spec, task=ready))
        sandbox.folders = (ready.workdir, *ready.folders, *self.installers.writable)
        self.workspace = await asyncio.to_thread(inflated, ready.workspace)

    async def _prepare(self, sandbox: Sandbox, each: TaskStep) -> None:
        """Raises StepNotPrepared."""
        workdir = each.task.cwd
        await sandbox.put(workdir, each.added)
        files = read_files(io.BytesIO(each.added), workdir, TarLimits())
        if any(file.name == SETUP for file in files):
            command = Command(
                ("bash", f"{workdir}/{SETUP}"),
                cwd=each.task.cwd,
                env=each.task.environment,
                timeout_seconds=SETUP_SECONDS,
            )
            result = await sandbox.run(command)
            if not result.is_success:
                raise StepNotPrepared(step=each.step.name, output=result.text.strip()[-300:])

    async def _agent(self, sandbox: Sandbox, task: RolloutTask) -> AgentEnd:
        task = replace(task, environment=self.installers.variables(task.environment))
        work = replace(self.work, rollout_spec=replace(self.work.rollout_spec, task=task))
        try:
            end = await self.parts.agents.execute(sandbox, work)
        except SandboxBlocked:
            # By what it started, if the tests run without that: its files are gone then, or blocked too.
            await self.artifacts.store_trajectory(work.trajectory)
            if await self.parts.verifier.fails_without_agent(task):
                raise
            return AgentEnd.BLOCKED
        except Exception:
            # The model failed: the trajectory says how far the agent came. A run that is cancelled waits
            # for nothing.
            await self.artifacts.store_trajectory(work.trajectory)
            raise
        # A program may end while it rests: its client has waited long enough.
        await self.rest.end()
        await self.artifacts.store_trajectory(work.trajectory)
        # Before the files are taken: nothing may change them meanwhile. Services stay for tests beside them.
        if not _is_same(self.work.rollout_spec):
            await sandbox.stop_processes()
        return end

    async def _left(self, sandbox: Sandbox) -> LeftFiles:
        with suppress(SandboxBlocked):
            return await self._taken(sandbox)
        # By processes of the agent's, which stay for tests beside them. They may have no room left.
        try:
            await sandbox.stop_processes()
            return await self._taken(sandbox)
        except SandboxBlocked as blocked:
            if await self.parts.verifier.fails_without_agent(self.work.rollout_spec.task):
                raise
            return LeftFiles(b"", problem=f"by what the agent left: {blocked.facts['problem']}")

    async def _taken(self, sandbox: Sandbox) -> LeftFiles:
        is_solution = self.work.rollout_spec.agent.kind is AgentKind.ORACLE
        files = FetchLeft(self.parts.collected, self.root, _PROGRAMS, is_solution)
        left = await files.fetch(sandbox, self.work.rollout_spec.task)
        if left.problem or not self.installers.there:
            return left
        listed = await sandbox.run(self.installers.list_installed())
        return replace(left, installed=self.installers.installed(listed.text))

    async def _store_left(self, left: LeftFiles) -> None:
        """Stores files and changes whether or not the tests give a result."""
        if left.problem:
            return
        await self.artifacts.store_files(left.files)
        task = self.work.rollout_spec.task
        self.diff = await asyncio.to_thread(diff_of, self.workspace, left.files, task.workdir)
        if left.others:
            begun = await asyncio.to_thread(inflated, task.others)
            self.diff += await asyncio.to_thread(diff_of, begun, left.others, "/")
        self.agent_notes = await asyncio.to_thread(notes_of, self.workspace, left.files, task.workdir)
        await self.artifacts.store(DIFF, self.diff.encode("utf-8", "replace"))

    async def _judged(
        self, task: RolloutTask, left: LeftFiles, sandbox: Sandbox | None = None
    ) -> VerifierResult:
        if left.problem:
            return VerifierResult(0.0, left.problem)
        try:
            result = await self.parts.verifier.verify(task, left, sandbox)
            if result.score < 1.0:
                is_solution = self.work.rollout_spec.agent.kind is AgentKind.ORACLE
                said = self.work.trajectory.last_output if is_solution else ""
                check_reached(left, result, said, is_same=sandbox is not None)
                if is_solution:
                    await asyncio.to_thread(check_lacking, task, result, said, left)
        except SandboxError as error:
            await self.artifacts.store(LOG, str(error).encode("utf-8", "replace"))
            raise
        return result


def _trajectory(execution: RolloutExecution, program: AgentProgram | None) -> Trajectory:
    agent = execution.rollout_spec.agent
    version = program.version if program else built_in(agent.kind).version
    name = agent.template or f"proctor-{agent.kind}"
    return Trajectory(execution.session_id, name, execution.model, version)


def _is_same(rollout_spec: RolloutSpec) -> bool:
    return rollout_spec.agent.verification is VerificationPlace.SAME


def _needs_processes(rollout_spec: RolloutSpec) -> bool:
    """A program waits in the sandbox, or tests judge services that run there."""
    return rollout_spec.agent.kind is AgentKind.COMMAND or _is_same(rollout_spec)
