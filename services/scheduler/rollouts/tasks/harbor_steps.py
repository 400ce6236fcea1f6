"""Tasks of Harbor with several steps: a folder for each, with its instruction, files, tests and solution."""

import re
from collections.abc import Iterator, Mapping

from proctor.values.rollout import RolloutStep
from services.scheduler.rollouts.tasks.dockerfiles.placed_files import PlacedFiles
from services.scheduler.rollouts.tasks.errors import InvalidTask, UnsupportedTask
from services.scheduler.rollouts.tasks.fields import Fields, host_free
from services.scheduler.rollouts.tasks.harbor_verifier import (
    TEST_PROGRAM,
    TESTS_FOLDER,
    is_separate,
    read_artifacts,
    refuse_in_verifier,
)
from services.scheduler.rollouts.tasks.task_folder import Files, FolderFile, TaskFolder

MAX_STEPS = 200
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,99}")
_STEP_KEYS = ("name", "agent", "verifier", "min_reward", "healthcheck", "artifacts")
_IMAGE_FILES = (f"{TESTS_FOLDER}/Dockerfile", f"{TESTS_FOLDER}/docker-compose.yaml")
_STRATEGIES = ("mean", "final")


def read_steps(folder: TaskFolder, config: Fields, placed: PlacedFiles) -> tuple[RolloutStep, ...]:
    """Empty for a task of one instruction. Raises TaskError."""
    tables = config.objects("steps")
    if len(tables) > MAX_STEPS:
        raise config.problem("steps", f"a task has at most {MAX_STEPS} steps.")
    steps = tuple(_step(folder, config, table, placed) for table in tables)
    names = [step.name for step in steps]
    if twice := next((name for name in names if names.count(name) > 1), None):
        raise config.problem("steps", f"the name {twice!r} is there twice.")
    if steps and folder.below("tests").keys() & {"Dockerfile", "docker-compose.yaml"}:
        what = f"{TESTS_FOLDER}/Dockerfile beside steps"
        raise UnsupportedTask(task=folder.name, what=what, advice="Leave the task out.")
    return steps


def scores_last_step(config: Fields) -> bool:
    strategy = config.text("multi_step_reward_strategy", _STRATEGIES[0])
    if strategy not in _STRATEGIES:
        problem = f"{strategy!r} is unknown. Known: {', '.join(_STRATEGIES)}."
        raise config.problem("multi_step_reward_strategy", problem)
    return strategy == "final"


def step_tests(folder: TaskFolder, steps: tuple[RolloutStep, ...], baked: Files) -> dict[str, FolderFile]:
    """Tests and the files that steps add to the workspace, in the folders that a worker looks for.

    `baked` are files that the image has in the folder of the tests.
    """
    files = {f"shared/{path}": file for path, file in {**baked, **folder.below("tests")}.items()}
    for step in steps:
        for inner, outer in (("tests", "steps"), ("workdir", "workdirs")):
            below = folder.below(f"steps/{step.name}/{inner}")
            files |= {f"{outer}/{step.name}/{path}": file for path, file in below.items()}
    return files


def step_solutions(folder: TaskFolder, steps: tuple[RolloutStep, ...]) -> dict[str, FolderFile]:
    return {
        f"steps/{step.name}/{path}": file
        for step in steps
        for path, file in folder.below(f"steps/{step.name}/solution").items()
    }


def step_notes(config: Fields) -> Iterator[str]:
    for table in config.objects("steps"):
        name = table.text("name")
        if table.values.get("healthcheck"):
            yield f"healthcheck of the step {name} has no effect"
        if table.inner("agent").values.get("user") or table.inner("verifier").values.get("user"):
            yield f"user of the step {name} has no effect"
    if config.values.get("steps"):
        yield "processes end with their step"


def _step(folder: TaskFolder, config: Fields, table: Fields, placed: PlacedFiles) -> RolloutStep:
    table.note_others(*_STEP_KEYS)
    name = table.text("name")
    if _NAME.fullmatch(name) is None:
        raise table.problem("name", "it must be the name of a folder.")
    below = folder.below(f"steps/{name}")
    if "trajectory.json" in below:
        what = f"steps/{name}/trajectory.json"
        raise UnsupportedTask(task=folder.name, what=what, advice="Leave the task out.")
    agent, verifier = table.inner("agent"), table.inner("verifier")
    refuse_in_verifier(folder.name, verifier)
    image_files = [path for path in below if path in _IMAGE_FILES]
    if verifier.values.get("environment") or image_files:
        what = f"a verifier of another image for the step {name}"
        raise UnsupportedTask(task=folder.name, what=what, advice="Leave the task out.")
    if f"{TESTS_FOLDER}/{TEST_PROGRAM}" not in below and TEST_PROGRAM not in folder.below("tests"):
        raise InvalidTask(folder.name, f"steps/{name}/tests", f"{TEST_PROGRAM} is missing, and in tests too.")
    task_agent, task_verifier = config.inner("agent"), config.inner("verifier")
    has_own_files = is_separate(verifier, default=is_separate(task_verifier, default=False))
    return RolloutStep(
        name=name,
        instruction=folder.text(f"steps/{name}/instruction.md"),
        agent_seconds=agent.number("timeout_sec", task_agent.number("timeout_sec", 1800.0), minimum=1),
        verifier_seconds=verifier.number(
            "timeout_sec", task_verifier.number("timeout_sec", 600.0), minimum=1
        ),
        verifier_environment=host_free(verifier, "env"),
        min_rewards=_min_rewards(table),
        artifacts=read_artifacts(table, placed) if has_own_files else (),
        has_own_files=has_own_files,
    )


def _min_rewards(table: Fields) -> Mapping[str, float]:
    """A number is that of `reward`, as in Harbor."""
    value = table.values.get("min_reward")
    if value is None:
        return {}
    if not isinstance(value, dict):
        return {"reward": table.number("min_reward", 0.0, minimum=-1e9)}
    inner = table.inner("min_reward")
    return {str(key): inner.number(str(key), 0.0, minimum=-1e9) for key in value}
