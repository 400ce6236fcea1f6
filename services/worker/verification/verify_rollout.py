"""Judges what the agent of a rollout left: a second sandbox gets its files, and only then the tests."""

import asyncio
import io
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import PurePosixPath

from proctor.values.rollout import RanTests, RolloutTask, VerifierKind
from services.common.sandboxes.errors import FilesRefused, SandboxBlocked, SandboxError, VerifierFailed
from services.common.sandboxes.ports import Sandbox
from services.common.sandboxes.sandbox import (
    DEFAULT_PATH,
    Command,
    CommandResult,
    Ended,
    SandboxLimits,
    SandboxSpec,
    TarLimits,
)
from services.common.sandboxes.tar_files import pack, read_files
from services.worker.verification.agent_files import STEERING, made_ready
from services.worker.verification.bundles import LeftFiles, inflated, inflated_scripts, with_artifacts
from services.worker.verification.execute_pytest import ExecutePytest
from services.worker.verification.image_packages import ImagePackages
from services.worker.verification.not_started import is_of_files, not_started
from services.worker.verification.pytest_request import PytestRequest, programs_in
from services.worker.verification.pytest_results import read_results
from services.worker.verification.pytest_runner import PACKAGES, RUNNER, SITE
from services.worker.verification.ran_tests import fewer_results, other_tests, other_uses, ran_tests, together
from services.worker.verification.rewards import (
    LOGS,
    REWARD_FILES,
    is_written_by_others,
    read_reward,
    unended_session,
    without_result,
)
from services.worker.verification.runs.changed_tests import changed_tests
from services.worker.verification.runs.other_runners import results_of_others
from services.worker.verification.suspicions.compiled_code import is_cached
from services.worker.verification.suspicions.left_files import suspicions_in
from services.worker.verification.verifier_result import RubricScore, ScriptResult, VerifierResult, weighted

# Twice those of the agent: tests start servers and many workers.
MAX_PROCESSES = 256
# Long enough for the summaries of large test suites, which stand at the end.
OUTPUT_BYTES = 100_000
# Higher ones are those of programs that a signal ended.
_MAX_EXIT_CODE = 128
_OF_OTHERS = "a reward that others than the tests wrote counts for nothing"
_OUTLIVED = "a process that outlived the tests writes the reward"
# A wheel and what is in it, as a multiple of its bytes.
_UNPACKED = 6
# The runner of tests is unpacked by the command that runs them: each command costs as much as its program.
# It is unpacked by the machine's programs: the task's PATH may name a folder of the agent's.
# Whatever lies in the place of the reward was there before the tests.
_WITH_RUNNER = (
    f'(PATH={DEFAULT_PATH}; if [ -L "$2" ] || [ ! -d "$2" ]; '
    'then rm -rf -- "$2" && mkdir -p -- "$2" || exit; '
    'else find "$2" -mindepth 1 -delete || exit; fi; tar -x -f - -C "$1" -o) '
    '&& shift 2 && exec "$@" </dev/null'
)
# Folders that were made for a sandbox cannot be removed themselves. Python would execute what is cached.
# The folder of the reward is there before it is watched.
_EMPTIED = (
    f'PATH={DEFAULT_PATH}; find "$1" -path "*/__pycache__/*.pyc" -delete || exit 1; shift; '
    f"if [ -L {LOGS} ] || [ ! -d {LOGS} ]; then rm -rf -- {LOGS} && mkdir -p -- {LOGS} || exit 1; fi; "
    'for place in "$@"; do find "$place" -mindepth 1 -delete || exit 1; done'
)


@dataclass(frozen=True, slots=True)
class VerifyRollout:
    """`wheels` gives a tar of those that tests install, empty where there is none.

    `find_packages` blocks: packages that the image of a task has, where its sandbox is of no image.
    """

    execute_pytest: ExecutePytest
    wheels: Callable[[bytes], bytes] = lambda _: b""
    find_packages: Callable[[Sequence[str]], ImagePackages] = lambda _: ImagePackages()

    async def verify(
        self, task: RolloutTask, left: LeftFiles, sandbox: Sandbox | None = None
    ) -> VerifierResult:
        """Raises SandboxError; VerifierFailed is not a score.

        The tests judge in a `sandbox` that is given, which the agent was in, else in a fresh one.

        Where the tests give no result, or could not start, they are tried on the files that the task began
        with: what they meet there too is not the agent's doing. What only its files cause scores 0, and so
        does a failure to find tests that ran on the task's solution.
        """
        packages = await asyncio.to_thread(self.find_packages, task.packages)
        judged_with = packages
        if left.installed and sandbox is None:
            judged_with = await asyncio.to_thread(self.find_packages, (*task.packages, *left.installed))
            if not packages.folder:
                # The task's variables name no folder of packages yet.
                task = with_packages(task, judged_with)
        is_named = partial(_is_named, task, packages)
        try:
            judged = self._judge_in(sandbox, task, left) if sandbox else self._judge(task, left, judged_with)
            result = await judged
            line = await asyncio.to_thread(not_started, result, is_named)
        except (VerifierFailed, FilesRefused, SandboxBlocked) as error:
            failure: SandboxError = error
            result = VerifierResult(0.0, f"by the agent's files: {error.facts['problem']}", str(error))
        else:
            solved = task.solved_tests
            if not line or (is_of_files(line) and (solved.count or solved.other_results)):
                return result
            failure = VerifierFailed(problem=f"they could not start: {line}")
        if await self.fails_without_agent(task):
            raise failure
        return result

    async def fails_without_agent(self, task: RolloutTask) -> bool:
        """Whether the tests give no result for the files that the task began with. Raises SandboxError."""
        packages = await asyncio.to_thread(self.find_packages, task.packages)
        begun = await asyncio.to_thread(_begun, task)
        is_named = partial(_is_named, task, packages)
        try:
            result = await self._judge(task, begun, packages)
            return bool(await asyncio.to_thread(not_started, result, is_named))
        except (VerifierFailed, FilesRefused, SandboxBlocked):
            return True

    async def _judge_in(self, sandbox: Sandbox, task: RolloutTask, left: LeftFiles) -> VerifierResult:
        """Nothing of the agent's is in the folders of the tests and of their runner."""
        suspicions = await asyncio.to_thread(_suspicions, task, left)
        places = tests_places(task)
        emptied = await sandbox.run(
            Command(("/bin/sh", "-c", _EMPTIED, "sh", task.workdir, *places), cwd="/")
        )
        if not emptied.is_success:
            return VerifierResult(0.0, "the folders of the tests cannot be emptied", suspicions=suspicions)
        wheels = await asyncio.to_thread(self.wheels, task.tests) if task.tests else b""
        return await self._execute(sandbox, task, suspicions, wheels)

    async def _judge(self, task: RolloutTask, left: LeftFiles, packages: ImagePackages) -> VerifierResult:
        if task.verifier is VerifierKind.RUBRICS:
            return await self._judge_rubrics(task, left.files)
        suspicions = await asyncio.to_thread(_suspicions, task, left)
        if task.has_own_files:
            left = await asyncio.to_thread(_own_files, task, left)
        wheels = await asyncio.to_thread(self.wheels, task.tests) if task.tests else b""
        sandbox = await self.execute_pytest.engine.open(_spec(task, packages, len(wheels)))
        try:
            try:
                if left.others:
                    await sandbox.put("/", await asyncio.to_thread(_others, task, left.others))
                await sandbox.put(task.workdir, await asyncio.to_thread(_ready, task, left.files))
            except FilesRefused as refused:
                return VerifierResult(0.0, str(refused), suspicions=suspicions)
            return await self._execute(sandbox, task, suspicions, wheels)
        finally:
            await asyncio.shield(sandbox.close())

    async def _judge_rubrics(self, task: RolloutTask, files: bytes) -> VerifierResult:
        """Runs each script in a sandbox of its own: none sees what another left."""
        tests = await asyncio.to_thread(inflated, task.tests)
        workspace = await asyncio.to_thread(inflated, task.workspace)
        rubrics: list[RubricScore] = []
        results: list[ScriptResult] = []
        suspicions: set[str] = set()
        ran: list[RanTests] = []
        measured: dict[str, float] = {}
        for rubric in task.rubrics:
            passed = 0
            for script in rubric.scripts:
                request = PytestRequest(
                    files=files,
                    tests=tests,
                    timeout_seconds=task.limits.verifier_seconds,
                    folder=task.workdir,
                    tests_folder=task.tests_folder,
                    path=script,
                    scripts=tuple(each for rubric in task.rubrics for each in rubric.scripts),
                    workspace=workspace,
                    image=task.image,
                    solved_tests=ran_tests(
                        name for name in task.solved_tests.names if name.startswith(f"{script}::")
                    ),
                )
                verification = await self.execute_pytest.execute(request)
                passed += verification.is_passed
                output = f"{verification.detail}\n{verification.output}"
                results.append(ScriptResult(script, verification.is_passed, output))
                suspicions.update(verification.suspicions)
                ran.append(verification.ran)
                measured |= verification.measured
            scored = RubricScore(
                rubric.rubric_id, rubric.criterion, rubric.weight, passed, len(rubric.scripts)
            )
            rubrics.append(scored)
        passed, scripts = sum(each.passed for each in rubrics), sum(each.scripts for each in rubrics)
        return VerifierResult(
            score=weighted(tuple(rubrics)),
            detail=f"{passed} of {scripts} test scripts passed",
            log="\n".join(f"=== {each.path}: {each.output}" for each in results),
            rubrics=tuple(rubrics),
            suspicions=tuple(sorted(suspicions)),
            scripts=tuple(results),
            ran=together(ran),
            rewards=tuple(measured.items()),
        )

    async def _execute(
        self, sandbox: Sandbox, task: RolloutTask, suspicions: tuple[str, ...], wheels: bytes
    ) -> VerifierResult:
        """The task's own program, as it is."""
        if task.tests:
            await sandbox.put(task.tests_folder, await asyncio.to_thread(inflated_scripts, task.tests))
            if wheels:
                await sandbox.put(f"{RUNNER}/wheels", wheels)
        is_reward = task.verifier is VerifierKind.REWARD_FILE
        command = Command(
            ("/bin/sh", "-c", _WITH_RUNNER, "sh", RUNNER, LOGS, *task.test_command),
            stdin=await asyncio.to_thread(self.execute_pytest.runner),
            cwd=task.cwd,
            env=_environment(task),
            timeout_seconds=task.limits.verifier_seconds,
            output_bytes=OUTPUT_BYTES,
            watched=REWARD_FILES if is_reward else (),
        )
        result = await sandbox.run(command)
        if result.ended is Ended.TIMED_OUT:
            raise VerifierFailed(problem=f"the tests did not end within {task.limits.verifier_seconds:g} s.")
        is_of_others = is_reward and await is_written_by_others(sandbox)
        # What the tests or the files that they execute have started writes no reward any more.
        await sandbox.stop_processes()
        if is_of_others:
            return VerifierResult(0.0, _OF_OTHERS, result.text, suspicions=(*suspicions, _OUTLIVED))
        if task.verifier is VerifierKind.PYTEST_SUMMARY:
            verdict = _of_summary(result.text, suspicions)
            unended = await unended_session(sandbox) if verdict.score else ()
            verdict = replace(verdict, suspicions=(*verdict.suspicions, *unended))
        else:
            verdict = await read_reward(sandbox, result.text, task.solved_tests, suspicions)
            counted = 0 if verdict.ran.count else await asyncio.to_thread(results_of_others, verdict.log)
            ran = replace(verdict.ran, reward_uses=result.uses or 0, other_results=counted)
            verdict = replace(verdict, ran=ran)
        if not verdict.score:
            return verdict
        changed = await changed_tests(sandbox, task)
        others = (*other_tests(verdict.ran, task.solved_tests), *_ended_early(result, task.verifier))
        # Tests with a reward for each part write it more often the more is done.
        if verdict.score >= 1:
            uses = other_uses(result.uses, task.solved_tests)
            others = (*uses, *others, *fewer_results(verdict.ran, task.solved_tests))
        return replace(verdict, suspicions=(*verdict.suspicions, *others, *changed))


def with_packages(task: RolloutTask, packages: ImagePackages) -> RolloutTask:
    """With variables by which the commands of its agent and of its tests find the packages."""
    own = {**task.environment, **task.verifier_environment} if task.verifier_environment else {}
    return replace(
        task,
        environment=packages.variables(task.environment),
        verifier_environment=packages.variables(own) if own else {},
    )


def tests_places(task: RolloutTask) -> tuple[str, ...]:
    """Folders beside the working folder that the tests need in the agent's own sandbox."""
    is_inside = PurePosixPath(task.tests_folder).is_relative_to(task.workdir)
    return (RUNNER, *((task.tests_folder,) if task.tests and not is_inside else ()))


def _environment(task: RolloutTask) -> Mapping[str, str]:
    """The task's variables, with the runner of tests before its own programs and modules."""
    own = {"PATH": DEFAULT_PATH, **task.environment, **task.verifier_environment}
    modules = [PACKAGES, SITE, *filter(None, [own.get("PYTHONPATH")])]
    return {
        "PYTHONDONTWRITEBYTECODE": "1",
        **own,
        "PATH": f"{RUNNER}/bin:{own['PATH']}",
        "PYTHONPATH": ":".join(modules),
    }


def _is_named(task: RolloutTask, packages: ImagePackages, name: str) -> bool:
    """Whether the instruction or a file that the task begins with has this name in it.

    A package that the image would have is none that the agent was to make.
    """
    if packages.lacks(name):
        return False
    if name in task.instruction:
        return True
    files = read_files(io.BytesIO(inflated(task.workspace)), task.workdir, TarLimits())
    return any(name in file.name or name.encode() in file.content for file in files)


def _begun(task: RolloutTask) -> LeftFiles:
    """The files that the task begins with."""
    return LeftFiles(inflated(task.workspace), inflated(task.others) if task.others else b"")


def _suspicions(task: RolloutTask, left: LeftFiles) -> tuple[str, ...]:
    begun = _begun(task)
    inside = suspicions_in(left.files, task.workdir, begun.files, inflated(task.tests))
    path = task.environment.get("PATH", "")
    programs = programs_in(left.files, task.workdir, path, begun.files)
    # Where the tests work in the root, it is on the path of imports.
    imported = inflated(task.tests) if task.cwd == "/" else b""
    outside = [
        *suspicions_in(left.others, "/", begun.others, imported),
        *programs_in(left.others, "/", path, begun.others),
    ]
    return (*inside, *programs, *(f"/{each}" for each in dict.fromkeys(outside)))


def _others(task: RolloutTask, others: bytes) -> bytes:
    """Without files of the agent's that steer every runner of tests, since they lie above its tests."""
    own = {file.name for file in read_files(io.BytesIO(_begun(task).others or pack({})), "/", TarLimits())}
    is_left_out = partial(_steers_all, own)
    return made_ready(others, "/", is_left_out=is_left_out)


def _steers_all(own: Collection[str], name: str) -> bool:
    return is_cached(name) or (name in (*STEERING, "pyproject.toml") and name not in own)


def _own_files(task: RolloutTask, left: LeftFiles) -> LeftFiles:
    """An image of the verifier's own has no file of the task's."""
    begun = LeftFiles(pack({})) if task.verifier_image else _begun(task)
    return replace(begun, files=with_artifacts(begun.files, left.files, task.workdir, task.artifacts))


def _ready(task: RolloutTask, files: bytes) -> bytes:
    """The files with the folders that the tests need, whatever is in their place."""
    workdir = PurePosixPath(task.workdir)
    needed = [PurePosixPath(task.cwd), *([PurePosixPath(task.tests_folder)] if task.tests else [])]
    inner = [str(each.relative_to(workdir)) for each in needed if each.is_relative_to(workdir)]
    return made_ready(files, task.workdir, is_left_out=is_cached, folders=inner)


def _spec(task: RolloutTask, packages: ImagePackages, wheels_bytes: int) -> SandboxSpec:
    limits, unpacked = task.limits, _UNPACKED * wheels_bytes
    # An image of the verifier's own holds the tests, which a writable folder would hide.
    own = (*((task.tests_folder,) if task.tests else ()), RUNNER, "/logs")
    return SandboxSpec(
        workdir=task.workdir,
        writable=(*task.folders, *own),
        image=task.verifier_image or task.image,
        limits=SandboxLimits(limits.cpus, limits.memory_bytes, limits.disk_bytes + unpacked, MAX_PROCESSES),
        lifetime_seconds=limits.verifier_seconds + 300.0,
        shown=packages.shown,
        # Tests may remove folders of the task, which no mount allows.
        # The folder of the reward is there before it is watched.
        plain=(*task.folders, *own, LOGS),
    )


def _ended_early(result: CommandResult, verifier: VerifierKind) -> Iterator[str]:
    """Files of an agent that print results of their own, or write a reward, end the tests before theirs.

    The exit code of tests with a reward says nothing, unless a signal ended them.
    """
    is_of_pytest = verifier is VerifierKind.PYTEST_SUMMARY
    if result.exit_code > _MAX_EXIT_CODE or (is_of_pytest and result.exit_code):
        yield f"the tests ended with exit code {result.exit_code}, though they say that they passed"


def _of_summary(log: str, suspicions: tuple[str, ...]) -> VerifierResult:
    """All or nothing."""
    results = read_results(log)
    if results is None:
        raise without_result("they printed no result of pytest", log)
    if results.summaries > 1:
        suspicions = (*suspicions, "the output has several summaries of pytest")
    detail = f"{results.passed} of {results.total} tests passed"
    return VerifierResult(float(results.is_passed), detail, log, suspicions=suspicions, ran=results.ran)
