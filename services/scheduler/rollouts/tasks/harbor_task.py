"""Task folders of Harbor: task.toml, instruction.md, and folders for environment, tests and solution."""

import re
import tomllib
from collections.abc import Sequence
from dataclasses import replace
from posixpath import normpath

from proctor.values.rollout import DEFAULT_TESTS_FOLDER, RolloutLimits, RolloutStep, RolloutTask, VerifierKind
from services.scheduler.rollouts.tasks.dockerfiles.placed_files import (
    PlacedFiles,
    is_closed,
    place,
    workdir_facts,
)
from services.scheduler.rollouts.tasks.dockerfiles.read_dockerfile import DockerfileFacts, read_dockerfile
from services.scheduler.rollouts.tasks.errors import InvalidTask, UnsupportedTask
from services.scheduler.rollouts.tasks.fields import Fields, checked_image, host_free
from services.scheduler.rollouts.tasks.harbor_steps import (
    read_steps,
    scores_last_step,
    step_notes,
    step_solutions,
    step_tests,
)
from services.scheduler.rollouts.tasks.harbor_verifier import (
    TEST_PROGRAM,
    VerifierFacts,
    is_separate,
    read_artifacts,
    read_verifier,
)
from services.scheduler.rollouts.tasks.named_folders import named_folders
from services.scheduler.rollouts.tasks.task_folder import Files, TaskFolder, bundle_of

CONFIG = "task.toml"
_VERSIONS = ("1.0", "1.1", "1.2", "1.3", "1.4")
_LATEST = _VERSIONS[-1]
_MIB, _GIB = 1024**2, 1024**3
_SIZE = re.compile(r"(\d+(?:\.\d+)?)\s*([KMGT])i?B?", re.IGNORECASE)
_UNITS = {"K": 1024, "M": _MIB, "G": _GIB, "T": 1024 * _GIB}
_MAX_SIZE = 1024**5
_INSTRUCTION = re.compile(r"(?:steps/[^/]+/)?instruction\.md")
_TESTS = re.compile(r"(?:steps/[^/]+/)?tests/")
_COMPOSE = ("environment/docker-compose", "environment/compose.")
_ROOT_KEYS = ("schema_version", "version", "source", "artifacts", "multi_step_reward_strategy", "task")
_TABLES = ("metadata", "agent", "verifier", "solution", "environment", "steps")
_AGENT_KEYS = ("timeout_sec", "user")
_VERIFIER_KEYS = ("timeout_sec", "env", "environment_mode", "environment", "collect", "user")
_ENVIRONMENT_KEYS = (
    *("docker_image", "workdir", "env", "os", "cpus", "memory", "memory_mb", "storage", "storage_mb"),
    *("gpus", "gpu_types", "tpu", "mcp_servers", "skills_dir", "healthcheck", "build_timeout_sec"),
    *("network_mode", "allow_internet", "allowed_hosts"),
)


def read_harbor(folder: TaskFolder, ordered_image: str = "") -> RolloutTask:
    """`ordered_image` replaces that of the task. Raises TaskError."""
    config = Fields(folder.name, CONFIG, _toml(folder))
    environment, verifier, agent = map(config.inner, ("environment", "verifier", "agent"))
    _note_unknown(config, environment, verifier, agent)
    _refuse_unsupported(folder, config, environment)
    named_image = ordered_image or checked_image(environment, "docker_image")
    image = _image(folder, is_named=bool(named_image))
    judged = read_verifier(folder, verifier)
    placed = _placed(environment, image, _named(folder))
    steps = read_steps(folder, config, placed)
    if not steps and not judged.image and TEST_PROGRAM not in judged.tests:
        raise InvalidTask(folder.name, "tests", f"{TEST_PROGRAM} is missing.")
    separate = (judged.has_own_files, *(step.has_own_files for step in steps))
    return RolloutTask(
        task_id=config.inner("task").text("name", folder.name),
        instruction=_instruction(folder, steps),
        verifier=VerifierKind.REWARD_FILE,
        workdir=placed.workdir,
        cwd=placed.cwd,
        test_command=("bash", f"{DEFAULT_TESTS_FOLDER}/{TEST_PROGRAM}"),
        environment={**placed.environment, **host_free(environment, "env")},
        verifier_environment=judged.environment | host_free(verifier, "env"),
        limits=_limits(config, steps),
        workspace=bundle_of(placed.workspace),
        tests=bundle_of(_tests(folder, steps, placed, judged)),
        solution=bundle_of(step_solutions(folder, steps) if steps else folder.below("solution")),
        notes=(
            *placed.notes,
            *judged.notes,
            *_notes(config, environment),
            *step_notes(config),
            *config.notes,
        ),
        image=named_image,
        has_own_files=judged.has_own_files,
        artifacts=read_artifacts(config, placed) if any(separate) else (),
        verifier_image=judged.image,
        steps=steps,
        scores_last_step=scores_last_step(config),
        others=bundle_of(placed.others),
        folders=placed.folders,
        setup=placed.setup,
        packages=(*placed.packages, *judged.packages),
        context=bundle_of(folder.below("environment")) if placed.build.images else b"",
        build=placed.build,
        stages=placed.stages,
        stage_files=bundle_of(placed.stage_files),
    )


def _note_unknown(config: Fields, environment: Fields, verifier: Fields, agent: Fields) -> None:
    version = config.text("schema_version", config.text("version", "1.0"))
    if version not in _VERSIONS:
        config.notes.append(f"schema_version {version[:20]!r} is unknown, and read as {_LATEST}")
    config.note_others(*_ROOT_KEYS, *_TABLES)
    environment.note_others(*_ENVIRONMENT_KEYS)
    verifier.note_others(*_VERIFIER_KEYS)
    agent.note_others(*_AGENT_KEYS)


def _limits(config: Fields, steps: tuple[RolloutStep, ...]) -> RolloutLimits:
    environment = config.inner("environment")
    return RolloutLimits(
        cpus=environment.number("cpus", 1.0, minimum=0.1),
        memory_bytes=_bytes(environment, "memory_mb", "memory", 2 * _GIB),
        disk_bytes=min(_bytes(environment, "storage_mb", "storage", _GIB), _GIB),
        # The time of all steps, each of which has its own.
        agent_seconds=sum(step.agent_seconds for step in steps)
        or config.inner("agent").number("timeout_sec", 1800.0, minimum=1),
        verifier_seconds=config.inner("verifier").number("timeout_sec", 600.0, minimum=1),
    )


def _tests(
    folder: TaskFolder, steps: tuple[RolloutStep, ...], placed: PlacedFiles, judged: VerifierFacts
) -> Files:
    """An image of the verifier's own has all of its tests."""
    if steps:
        return step_tests(folder, steps, placed.tests)
    return judged.tests if judged.has_own_files else {**placed.tests, **judged.tests}


def _instruction(folder: TaskFolder, steps: tuple[RolloutStep, ...]) -> str:
    """The instructions of all steps, for people; an agent gets one after the other."""
    if not steps:
        return folder.text("instruction.md")
    return "\n\n".join(f"## {step.name}\n\n{step.instruction}" for step in steps)


def _toml(folder: TaskFolder) -> dict[str, object]:
    try:
        return tomllib.loads(folder.text(CONFIG))
    # Also a number of thousands of digits, and tables in tables without an end.
    except (ValueError, RecursionError) as error:
        raise InvalidTask(folder.name, CONFIG, f"it is not TOML: {error}.") from error


def _refuse_unsupported(folder: TaskFolder, config: Fields, environment: Fields) -> None:
    """Refuses fields that would change the result. Other unsupported fields are notes of the task."""
    has_image = bool(config.inner("verifier").inner("environment").values.get("docker_image"))
    found = {
        "trajectory.json": "trajectory.json" in folder.files,
        "environment/docker-compose.yaml, which starts several containers": any(
            path.startswith(_COMPOSE) for path in folder.files
        ),
        f"{CONFIG}, verifier.environment.docker_image beside steps": has_image
        and bool(config.values.get("steps")),
        f"{CONFIG}, environment.os = windows": environment.text("os", "linux") != "linux",
        f"{CONFIG}, environment.gpus": environment.number("gpus", 0) > 0,
        f"{CONFIG}, environment.tpu": bool(environment.values.get("tpu")),
        f"{CONFIG}, environment.mcp_servers": bool(environment.values.get("mcp_servers")),
        f"{CONFIG}, environment.skills_dir": bool(environment.values.get("skills_dir")),
    }
    for what, is_there in found.items():
        if is_there:
            raise UnsupportedTask(task=folder.name, what=what, advice="Leave the task out.")


def _image(folder: TaskFolder, *, is_named: bool) -> DockerfileFacts:
    """An image that is named is there: of what it was built from, only where it starts is read."""
    files = folder.below("environment")
    if "Dockerfile" not in files:
        return DockerfileFacts()
    if is_named:
        return workdir_facts(folder, "environment/Dockerfile")
    return read_dockerfile(folder.name, folder.text("environment/Dockerfile"), files)


def _named(folder: TaskFolder) -> Sequence[str]:
    """Folders that the instructions and the tests name, those of all steps."""
    texts = [path for path in folder.files if _INSTRUCTION.fullmatch(path)]
    tests = {path: file for path, file in folder.files.items() if _TESTS.match(path)}
    return [*named_folders("\n".join(map(folder.text, texts)), tests)]


def _placed(environment: Fields, image: DockerfileFacts, named: Sequence[str]) -> PlacedFiles:
    """A container without a working folder starts in the root."""
    named_folder = environment.text("workdir", "")
    cwd = normpath(named_folder or image.workdir)
    if not cwd.startswith("/"):
        raise environment.problem("workdir", "it must be an absolute path.")
    if is_closed(cwd):
        raise environment.problem("workdir", f"the working folder {cwd} is one of the system's.")
    return place(replace(image, is_at_root=image.is_at_root or bool(named_folder)), cwd, named)


def _bytes(fields: Fields, in_mib: str, as_text: str, default: int) -> int:
    if fields.values.get(in_mib) is not None:
        return _whole(fields, in_mib, fields.number(in_mib, 0, minimum=1) * _MIB)
    text = fields.text(as_text, "")
    if not text:
        return default
    found = _SIZE.fullmatch(text.strip())
    if found is None:
        raise fields.problem(as_text, 'it must be a size, such as "2G".')
    return _whole(fields, as_text, float(found[1]) * _UNITS[found[2].upper()])


def _whole(fields: Fields, key: str, size: float) -> int:
    if size > _MAX_SIZE:
        raise fields.problem(key, "it is more than any machine has.")
    return int(size)


def _notes(config: Fields, environment: Fields) -> list[str]:
    notes = []
    if environment.text("network_mode", "") in ("public", "allowlist") or environment.values.get(
        "allow_internet"
    ):
        notes.append("the task asks for a network, and its sandbox has none")
    if environment.values.get("healthcheck"):
        notes.append("environment.healthcheck has no effect")
    if config.values.get("artifacts") and not is_separate(config.inner("verifier"), default=False):
        notes.append("artifacts has no effect: the working folder is collected")
    if config.inner("agent").values.get("user") or config.inner("verifier").values.get("user"):
        notes.append("user has no effect: commands run as an ordinary user")
    return notes
