"""Task folders with tb_meta.json: files over a repository, rubrics of pytest files, and overrides."""

import fnmatch
import json
from collections.abc import Mapping
from dataclasses import dataclass, replace

from proctor.values.rollout import RolloutLimits, RolloutTask, Rubric, VerifierKind
from services.scheduler.rollouts.tasks.errors import InvalidTask, UnsupportedTask
from services.scheduler.rollouts.tasks.fields import Fields, checked_image
from services.scheduler.rollouts.tasks.task_folder import (
    FolderFile,
    TaskFolder,
    bundle_of,
    path_problem,
)

META, OVERRIDES = "tb_meta.json", "overrides.json"
_APP, _REPO, _INSTRUCTIONS = "/app", "repo", "LM_INSTRUCTIONS.md"
_TIME_LIMIT = "TIMEOUT_SEC"
# Keys of a task that its author has not finished.
_UNFINISHED = ("content_rubric", "location_rubric", "clarity_rubric")
_OVERRIDE_KEYS = (
    "remove_repo_paths",
    "inject_files",
    "lm_instructions",
    "environment_variables",
    "repo",
    "image",
    "folder",
)


@dataclass(frozen=True, slots=True)
class Overrides:
    """Changes of a task. Those of the task's own overrides.json win over those of an order.

    `folder` names the task's folder where an order packs it under another name.
    """

    remove_paths: tuple[str, ...] = ()
    injected: Mapping[str, str] | None = None
    instructions: str = ""
    variables: Mapping[str, str] | None = None
    image: str = ""
    notes: tuple[str, ...] = ()
    folder: str = ""


def read_overrides(task: str, file: str, values: Mapping[str, object]) -> Overrides:
    """Raises InvalidTask for paths that leave the repository, and for values of another type."""
    fields = Fields(task, file, values)
    fields.note_others(*_OVERRIDE_KEYS)
    if fields.inner("repo").values:
        raise _no_git(task, "overrides.json, repo")
    removed = fields.texts("remove_repo_paths")
    injected = {}
    for item in fields.objects("inject_files"):
        item.note_others("path", "content")
        injected[item.text("path")] = item.text("content")
    for path in (*(path.rstrip("/") for path in removed), *injected):
        if problem := path_problem(path):
            raise InvalidTask(task, file, problem)
    return Overrides(
        removed,
        injected,
        fields.text("lm_instructions", ""),
        fields.variables("environment_variables"),
        checked_image(fields, "image"),
        tuple(fields.notes),
        fields.text("folder", ""),
    )


def with_variables(task: RolloutTask, folder: str, overrides: Overrides) -> RolloutTask:
    """Adapts tasks of other forms, of which overrides change variables only."""
    if overrides.remove_paths or overrides.injected or overrides.instructions:
        problem = f"of folders without {META} only environment_variables and image are overridden."
        raise InvalidTask(folder, "overrides", problem)
    variables = dict(overrides.variables or {})
    limit = Fields(folder, OVERRIDES, variables).number(_TIME_LIMIT, task.limits.agent_seconds, minimum=1)
    variables.pop(_TIME_LIMIT, None)
    return replace(
        task,
        environment={**task.environment, **variables},
        limits=replace(task.limits, agent_seconds=limit),
        notes=(*task.notes, *overrides.notes),
    )


def read_tb_meta(folder: TaskFolder, ordered: Overrides | None = None) -> RolloutTask:
    """`ordered` are overrides of the order. Raises TaskError."""
    meta = Fields(folder.name, META, _json(folder, META))
    meta.note_others("task_id", "metadata", "repo", "lm", "evaluation")
    # What is in the folder describes the task; what it was made from is not fetched.
    if meta.inner("repo").text("git_url", ""):
        raise _no_git(folder.name, f"{META}, repo.git_url")
    own = Overrides()
    if OVERRIDES in folder.files:
        own = read_overrides(folder.name, OVERRIDES, _json(folder, OVERRIDES))
    layers = (ordered or Overrides(), own)
    evaluation = meta.inner("evaluation")
    for key in _UNFINISHED:
        if evaluation.values.get(key):
            raise UnsupportedTask(
                task=folder.name,
                what=f"{META}, evaluation.{key}",
                advice="The task was created and not finished: write evaluation.rubrics and test_scripts.",
            )
    evaluation.note_others("rubrics", "test_scripts", *_UNFINISHED)
    tests = _tests(folder, evaluation)
    variables = {name: value for layer in layers for name, value in (layer.variables or {}).items()}
    limit = Fields(folder.name, OVERRIDES, variables).number(
        _TIME_LIMIT, RolloutLimits().agent_seconds, minimum=1
    )
    image = own.image or layers[0].image
    files = _files(folder, layers)
    instruction = _instruction(folder, meta, layers)
    files[_INSTRUCTIONS] = FolderFile(instruction.encode())
    return RolloutTask(
        task_id=meta.text("task_id", folder.name),
        instruction=instruction,
        verifier=VerifierKind.RUBRICS,
        workdir=_APP,
        cwd=f"{_APP}/{_REPO}",
        tests_folder=f"{_APP}/{_REPO}",
        rubrics=_rubrics(evaluation, tests),
        environment={name: value for name, value in variables.items() if name != _TIME_LIMIT},
        limits=RolloutLimits(agent_seconds=limit),
        workspace=bundle_of(files),
        tests=bundle_of({path: file for path, (_, file) in tests.items()}),
        solution=bundle_of(folder.below("solution")),
        notes=(
            *meta.notes,
            *(note for layer in layers for note in layer.notes),
            *(() if image else _notes(folder)),
        ),
        image=image,
    )


def _json(folder: TaskFolder, file: str) -> Mapping[str, object]:
    try:
        values = json.loads(folder.text(file))
    except (ValueError, RecursionError) as error:
        raise InvalidTask(folder.name, file, "it is not JSON.") from error
    if not isinstance(values, dict):
        raise InvalidTask(folder.name, file, "it must be a JSON object.")
    return values


def _no_git(task: str, what: str) -> UnsupportedTask:
    advice = "Repositories are not fetched: put the files into overlay_repo_files, and leave git_url empty."
    return UnsupportedTask(task=task, what=what, advice=advice)


def _instruction(folder: TaskFolder, meta: Fields, layers: tuple[Overrides, ...]) -> str:
    """The instruction of the overrides, else of the file that the agent sees, else of tb_meta.json."""
    overridden = [layer.instructions for layer in layers if layer.instructions]
    if overridden:
        return overridden[-1]
    path = f"overlay_files/{_INSTRUCTIONS}"
    if path in folder.files:
        return folder.text(path)
    return meta.inner("lm").text("instructions")


def _files(folder: TaskFolder, layers: tuple[Overrides, ...]) -> dict[str, FolderFile]:
    repo = dict(folder.below("overlay_repo_files"))
    for layer in layers:
        for pattern in layer.remove_paths:
            repo = {path: file for path, file in repo.items() if not _is_removed(path, pattern)}
        repo |= {path: FolderFile(text.encode()) for path, text in (layer.injected or {}).items()}
    return {**folder.below("overlay_files"), **{f"{_REPO}/{path}": file for path, file in repo.items()}}


def _is_removed(path: str, pattern: str) -> bool:
    """A file, a folder with all in it, or a pattern; one without a slash is one of names."""
    name = path if "/" in pattern.rstrip("/") else path.rsplit("/", 1)[-1]
    below = path.startswith(f"{pattern.rstrip('/')}/")
    return below or (not pattern.endswith("/") and (path == pattern or fnmatch.fnmatchcase(name, pattern)))


def _tests(folder: TaskFolder, evaluation: Fields) -> dict[str, tuple[str, FolderFile]]:
    """Path → the rubric and the file. A script without content is a file of the folder `evaluation`."""
    found: dict[str, tuple[str, FolderFile]] = {}
    for script in evaluation.objects("test_scripts"):
        script.note_others("path", "rubric_id", "content")
        path = script.text("path")
        if problem := path_problem(path):
            raise script.problem("path", problem)
        if path in found:
            raise script.problem("path", f"{path} is there twice.")
        content = script.text("content", "") or folder.text(f"evaluation/{path}")
        found[path] = (script.text("rubric_id"), FolderFile(content.encode()))
    return found


def _rubrics(evaluation: Fields, tests: Mapping[str, tuple[str, FolderFile]]) -> tuple[Rubric, ...]:
    rubrics = []
    for item in evaluation.objects("rubrics"):
        item.note_others("id", "criterion", "weight")
        rubric_id = item.text("id")
        scripts = tuple(path for path, (of, _) in tests.items() if of == rubric_id)
        rubrics.append(Rubric(rubric_id, item.text("criterion", ""), item.number("weight", 1.0), scripts))
    ids = [rubric.rubric_id for rubric in rubrics]
    if len(set(ids)) < len(ids):
        raise evaluation.problem("rubrics", "an id is there twice.")
    if not any(rubric.weight and rubric.scripts for rubric in rubrics):
        raise evaluation.problem("rubrics", "at least one rubric needs a weight above 0 and a test script.")
    for path, (rubric_id, _) in tests.items():
        if rubric_id not in ids:
            raise evaluation.problem("test_scripts", f"{path} is of the unknown rubric {rubric_id!r}.")
    return tuple(rubrics)


def _notes(folder: TaskFolder) -> tuple[str, ...]:
    has_image = any(path == "Dockerfile" for path in folder.files)
    return ("the Dockerfile is not built: the machine's programs are used",) if has_image else ()
