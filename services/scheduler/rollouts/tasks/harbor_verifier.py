"""The verifier of a task of Harbor: in the agent's files, or in files of its own with what the agent left."""

from collections.abc import Iterator
from dataclasses import dataclass, field
from posixpath import join, normpath

from proctor.values.rollout import DEFAULT_TESTS_FOLDER, TaskArtifact
from services.scheduler.rollouts.tasks.dockerfiles.placed_files import PlacedFiles
from services.scheduler.rollouts.tasks.dockerfiles.read_dockerfile import read_dockerfile
from services.scheduler.rollouts.tasks.errors import UnsupportedTask
from services.scheduler.rollouts.tasks.fields import Fields, checked_image
from services.scheduler.rollouts.tasks.task_folder import Files, TaskFolder, relative_to

TESTS_FOLDER = "tests"
TEST_PROGRAM = "test.sh"
_MODES = ("shared", "separate")
_IMAGE_FILES = ("Dockerfile", "docker-compose.yaml")
_PUBLISHED = "/logs/artifacts"
_ADVICE = "Leave the task out."
_PUBLISHED_ADVICE = "Let the agent write them below its working folder, and name that place."


@dataclass(frozen=True, slots=True)
class VerifierFacts:
    """`tests` are empty where the image holds them."""

    tests: Files
    has_own_files: bool = False
    image: str = ""
    environment: dict[str, str] = field(default_factory=dict)
    notes: tuple[str, ...] = ()
    packages: tuple[str, ...] = ()


def read_verifier(folder: TaskFolder, verifier: Fields) -> VerifierFacts:
    """Tests, image and mode. An image of the verifier's own holds the tests. Raises TaskError."""
    tests = folder.below(TESTS_FOLDER)
    own = verifier.inner("environment")
    refuse_in_verifier(folder.name, verifier)
    if not is_separate(verifier, default=False):
        return VerifierFacts(tests)
    image = checked_image(own, "docker_image")
    notes = ["verifier.environment has no effect but by its image"] if len(own.values) > bool(image) else []
    if image:
        return VerifierFacts({}, has_own_files=True, image=image, notes=tuple(notes))
    if "docker-compose.yaml" in tests:
        what = f"{TESTS_FOLDER}/docker-compose.yaml"
        raise UnsupportedTask(task=folder.name, what=what, advice="Write a Dockerfile of one container.")
    if "Dockerfile" not in tests:
        return VerifierFacts(tests, has_own_files=True, notes=tuple(notes))
    facts = read_dockerfile(folder.name, folder.text(f"{TESTS_FOLDER}/Dockerfile"), tests)
    notes += [f"{TESTS_FOLDER}/Dockerfile: {note}" for note in facts.notes]
    inner = {relative_to(path, DEFAULT_TESTS_FOLDER): file for path, file in facts.files.items()}
    if None in inner:
        notes.append(f"{TESTS_FOLDER}/Dockerfile: files outside of {DEFAULT_TESTS_FOLDER} are not there")
    if facts.packages:
        notes.append(f"{TESTS_FOLDER}/Dockerfile: packages that RUN installs are there for the agent too")
    baked = {path: file for path, file in inner.items() if path is not None}
    environment = dict(facts.environment)
    return VerifierFacts(
        baked, has_own_files=True, environment=environment, notes=tuple(notes), packages=facts.packages
    )


def refuse_in_verifier(task: str, verifier: Fields) -> None:
    """Raises TaskError for what no sandbox here has."""
    own = verifier.inner("environment")
    found = {
        f"{verifier.location}collect": bool(verifier.values.get("collect")),
        f"{own.location}os = windows": own.text("os", "linux") != "linux",
        f"{own.location}gpus": own.number("gpus", 0) > 0,
        f"{own.location}tpu": bool(own.values.get("tpu")),
    }
    for what, is_there in found.items():
        if is_there:
            raise UnsupportedTask(task=task, what=f"{verifier.file}, {what}", advice=_ADVICE)


def is_separate(verifier: Fields, *, default: bool) -> bool:
    """An environment implies a mode of its own, as in Harbor."""
    mode = verifier.text("environment_mode", "")
    has_own = bool(verifier.values.get("environment"))
    if mode and mode not in _MODES:
        raise verifier.problem("environment_mode", f"{mode!r} is unknown. Known: {', '.join(_MODES)}.")
    if mode == "shared" and has_own:
        raise verifier.problem("environment_mode", "shared has no environment of its own.")
    return (mode == "separate" or has_own) if mode or has_own else default


def read_artifacts(config: Fields, placed: PlacedFiles) -> tuple[TaskArtifact, ...]:
    """Only what lies in the working folder is collected. Raises TaskError."""
    return tuple(_artifacts(config, placed))


def _artifacts(config: Fields, placed: PlacedFiles) -> Iterator[TaskArtifact]:
    values = config.values.get("artifacts") or []
    if not isinstance(values, list):
        raise config.problem("artifacts", "it must be a list.")
    for number, value in enumerate(values):
        entry = {"source": value} if isinstance(value, str) else value
        if not isinstance(entry, dict):
            raise config.problem("artifacts", "an artifact is a path, or an object with its source.")
        fields = config.at(entry, f"{config.location}artifacts.{number}.")
        fields.note_others("source", "destination", "exclude", "service")
        if fields.text("service", "main") != "main":
            what = f"{config.file}, {fields.location}service"
            raise UnsupportedTask(task=config.task, what=what, advice=_ADVICE)
        source = normpath(join(placed.cwd, fields.text("source")))
        if ".." in fields.text("source").split("/"):
            raise fields.problem("source", "it must have no .. in it.")
        if source == _PUBLISHED or source.startswith(f"{_PUBLISHED}/"):
            what = f"{config.file}, artifacts in {_PUBLISHED}"
            raise UnsupportedTask(task=config.task, what=what, advice=_PUBLISHED_ADVICE)
        if relative_to(source, placed.workdir) is None:
            problem = f"{source} lies outside of the working folder {placed.workdir}."
            raise fields.problem("source", problem)
        yield TaskArtifact(source, fields.texts("exclude"))
