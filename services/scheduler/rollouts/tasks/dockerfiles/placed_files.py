"""The places of a Dockerfile's files in a sandbox: the working folder, which is collected, and others."""

from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from posixpath import commonpath, dirname

from proctor.values.rollout import DEFAULT_TESTS_FOLDER, BuiltStage, ImageBuild, SetupStep
from services.scheduler.rollouts.tasks.dockerfiles.read_dockerfile import (
    DockerfileFacts,
    StageFacts,
    read_workdir,
)
from services.scheduler.rollouts.tasks.dockerfiles.run_steps import SYSTEM
from services.scheduler.rollouts.tasks.errors import InvalidTask
from services.scheduler.rollouts.tasks.task_folder import Files, FolderFile, TaskFolder, relative_to

DEFAULT_FOLDER = "/app"
# Folders of many programs: those in them belong together, they themselves do not.
_OF_MANY = frozenset({"/etc", "/home", "/logs", "/mnt", "/opt", "/srv", "/tmp", "/var"})  # noqa: S108  # inside
# They have the sandbox's own programs: they are none of a task's folders, which are taken as a whole. What an
# agent leaves in them is taken with the rest of the root.
_ROOTS = frozenset({"/", "/opt"})
_OWN = SYSTEM | {"tests"}
# Those of the runs of agents and tests, as in Harbor, hide what an image has there.
_HIDING = ("/opt/runner", "/logs/agent", "/logs/artifacts", "/logs/verifier")
_LOGS = "/logs"
_ROOT_HOME = "/root"
# That of the sandbox's user: what an agent leaves there would steer the tests.
_HOME = "/home"
_SHOWN, _MAX_UNPLACED = 5, 100


@dataclass(frozen=True, slots=True)
class PlacedFiles:
    """`workspace` by paths in `workdir`, of which `cwd` is the part where commands run.

    `others` by paths from the root: both sandboxes have them in `folders`. `stage_files` are those of
    `stages`, by paths from the root below `NAME/`. `tests` by paths in their folder, where those of the task
    replace them.
    """

    workdir: str
    cwd: str
    workspace: Files
    others: Files
    folders: tuple[str, ...]
    setup: tuple[SetupStep, ...]
    environment: Mapping[str, str]
    notes: tuple[str, ...]
    packages: tuple[str, ...] = ()
    build: ImageBuild = field(default_factory=ImageBuild)
    stages: tuple[BuiltStage, ...] = ()
    stage_files: Files = field(default_factory=dict)
    tests: Files = field(default_factory=dict)


def is_closed(folder: str) -> bool:
    """Whether a sandbox cannot give a folder to a task."""
    is_hidden = any(f"{folder}/".startswith(f"{each}/") for each in _HIDING)
    return folder in ("/etc", _LOGS) or folder.split("/")[1] in _OWN or is_hidden


def _is_given(folder: str) -> bool:
    """As a whole."""
    return folder not in _ROOTS and not is_closed(folder)


def place(facts: DockerfileFacts, cwd: str, named: Collection[str] = ()) -> PlacedFiles:
    """`cwd` is the root where the task names none: unless that is known, it is where most files are.

    `named` are more folders whose files are judged; they begin empty.
    """
    cwd = "/" if cwd == "//" else cwd
    open_folders = [each for each in (*map(dirname, facts.files), *facts.folders) if _is_given(each)]
    workdir = cwd
    if cwd in _ROOTS:
        counted = Counter(map(_folder_of, open_folders)).most_common(1)
        workdir = counted[0][0] if counted else DEFAULT_FOLDER
        cwd = workdir if cwd == "/" and not facts.is_at_root else cwd
    open_folders += [each for each in named if _is_given(each) and each != _HOME]
    for folder in sorted(set(open_folders)):
        common = commonpath((workdir, folder))
        if common == folder or (common not in _OF_MANY and common != "/"):
            workdir = common
    outside = {_folder_of(each) for each in open_folders if relative_to(each, workdir) is None}
    folders = tuple(sorted(each for each in outside if not any(_is_inside(each, of) for of in outside)))
    workspace, others, closed = _split(facts.files, workdir)
    made = [each for each in (*facts.folders, cwd) if each != workdir and _is_given(each)]
    setup = (SetupStep(("mkdir", "-p", *dict.fromkeys(made)), "/"), *facts.steps) if made else facts.steps
    environment = dict(facts.environment)
    if relative_to(workdir, _ROOT_HOME) is not None:
        environment.setdefault("HOME", _ROOT_HOME)
    build = _build_of(facts, closed)
    of_tests = {relative_to(path, DEFAULT_TESTS_FOLDER): facts.files[path] for path in closed}
    stages = [_placed_stage(str(number), each) for number, each in enumerate(facts.stages)]
    return PlacedFiles(
        workdir,
        cwd,
        workspace,
        others,
        folders,
        setup,
        environment,
        build.notes,
        facts.packages,
        build,
        tuple(stage for stage, _ in stages),
        {path: file for _, files in stages for path, file in files.items()},
        {path: file for path, file in of_tests.items() if path is not None},
    )


def _build_of(facts: DockerfileFacts, closed: list[str]) -> ImageBuild:
    """`closed` are files in folders that no task is given."""
    copied = [
        path.target for each in facts.stages for path in each.copies if is_closed(path.target.rstrip("/"))
    ]
    in_tests = [each for each in facts.folders if relative_to(each, DEFAULT_TESTS_FOLDER) is not None]
    notes = (*facts.notes, *_closed_notes([*closed, *copied]), *_made_notes(in_tests))
    unplaced = (*closed, *copied, *in_tests)[:_MAX_UNPLACED]
    return replace(facts.build, notes=notes, unplaced=unplaced)


def workdir_facts(folder: TaskFolder, dockerfile: str) -> DockerfileFacts:
    """Of an image that is there. Its root, and folders that no task is given, say nothing."""
    try:
        facts = read_workdir(folder.name, folder.text(dockerfile))
    except InvalidTask:
        return DockerfileFacts()
    return DockerfileFacts() if is_closed(facts.workdir) else facts


def _placed_stage(name: str, stage: StageFacts) -> tuple[BuiltStage, Files]:
    placed = place(stage.facts, stage.facts.workdir)
    inside = {f"{placed.workdir.lstrip('/')}/{path}": file for path, file in placed.workspace.items()}
    copies = tuple(path for path in stage.copies if not is_closed(path.target.rstrip("/")))
    built = BuiltStage(name, placed.workdir, placed.folders, placed.setup, copies)
    return built, {f"{name}/{path}": file for path, file in (inside | dict(placed.others)).items()}


def _folder_of(path: str) -> str:
    """The folder that a sandbox makes for it."""
    first, *rest = path.lstrip("/").split("/")
    return f"/{first}/{rest[0]}" if f"/{first}" in _OF_MANY and rest else f"/{first}"


def _is_inside(folder: str, other: str) -> bool:
    return folder != other and folder.startswith(f"{other}/")


def _split(files: Files, workdir: str) -> tuple[Files, Files, list[str]]:
    """Files of the working folder, those of other folders, and paths in folders that no task is given."""
    workspace: dict[str, FolderFile] = {}
    others: dict[str, FolderFile] = {}
    closed = []
    for path, file in files.items():
        inner = relative_to(path, workdir)
        if inner is not None and inner != ".":
            workspace[inner] = file
        elif is_closed(dirname(path)):
            closed.append(path)
        else:
            others[path.lstrip("/")] = file
    return workspace, others, closed


def _closed_notes(closed: Sequence[str]) -> Iterator[str]:
    of_tests = [path for path in closed if relative_to(path, DEFAULT_TESTS_FOLDER) is not None]
    if others := [path for path in closed if path not in of_tests]:
        yield f"files of the Dockerfile in folders of the machine's own are not there: {_named(others)}"
    if of_tests:
        place = DEFAULT_TESTS_FOLDER
        yield f"files of the Dockerfile in {place} are there for the tests only: {_named(of_tests)}"


def _made_notes(folders: Sequence[str]) -> Iterator[str]:
    if folders:
        yield f"what RUN makes there is not there for the tests: {_named(folders)}"


def _named(paths: Sequence[str]) -> str:
    more = f" and {len(paths) - _SHOWN} more" if len(paths) > _SHOWN else ""
    return f"{', '.join(paths[:_SHOWN])}{more}"
